"""`modules.py MODE DIR MODULES PATHS`: imports many modules from the last of many directories (`long`), or with that
alone (`short`). `make` makes both."""

import importlib
import os
import sys

mode, top, modules, paths = *sys.argv[1:3], int(sys.argv[3]), int(sys.argv[4])
directories = [os.path.join(top, f"directory{i}") for i in range(paths)]
names = [f"module_{i}" for i in range(modules)]
if mode == "make":
    for directory in directories:
        os.makedirs(directory, exist_ok=True)
    for name in names:
        with open(os.path.join(directories[-1], name + ".py"), "w") as file:
            file.write("value = 1\n")
else:
    sys.dont_write_bytecode = True
    sys.path[:0] = directories if mode == "long" else directories[-1:]
    print(sum(importlib.import_module(name).value for name in names))
