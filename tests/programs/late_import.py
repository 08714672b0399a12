"""Imports an extension module with a library of its own while it runs: `late_import.py DIR WRITES`.

Writes its number to DIR/pid and goes on when DIR/go exists: then imports h5py and writes DIR/late.h5.
"""

import os
import pathlib
import sys
import time

directory = pathlib.Path(sys.argv[1])
(directory / "pid").write_text(str(os.getpid()))
while not (directory / "go").exists():
    time.sleep(0.01)

import h5py

with h5py.File(directory / "late.h5", "w") as file:
    field = file.create_dataset("field", shape=(int(sys.argv[2]),), dtype="f8")
    for i in range(int(sys.argv[2])):
        field[i : i + 1] = i
