"""A program as people write them with h5py: `h5py_mix.py DIR` prints the bytes it moved of each dataset as JSON."""

import json
import os
import sys

import h5py
import numpy

path = os.path.join(sys.argv[1], "py.h5")
written, read = {}, {}
with h5py.File(path, "w") as f:
    grid = f.create_dataset("grid", (100, 200), "f4", chunks=(10, 20), maxshape=(None, 200), compression=4, shuffle=True)
    grid[...] = numpy.ones((100, 200))
    grid[3:7, ::2] = numpy.zeros((4, 100), "f4")
    grid.resize((120, 200))
    written["/grid"] = 100 * 200 * 8 + 4 * 100 * 4
    f["g/plain"] = numpy.arange(10, dtype="i2")
    written["/g/plain"] = 10 * 2
    f["g/checked"] = numpy.float64(1)
    f.create_dataset("g/sums", data=numpy.zeros(9, "i4"), chunks=(3,), fletcher32=True)
    written["/g/sums"] = 9 * 4
    written["/g/checked"] = 8
    grid.attrs["units"] = "m"
with h5py.File(path) as f:
    f["grid"][5:15].sum()
    f["/g/plain"][()]
    f["g"]["sums"].astype("f8")[2:4]
    read = {"/grid": 10 * 200 * 4, "/g/plain": 10 * 2, "/g/sums": 2 * 8}
print(json.dumps({"version": h5py.version.hdf5_version, "written": written, "read": read}))
