"""Two copies of the HDF5 library in one process, those of the wheels of h5py and netCDF4: `two_hdf5.py DIR`.

Prints how often it wrote and read datasets of each file.
"""

import json
import pathlib
import sys

import h5py
import netCDF4
import numpy as np

directory = pathlib.Path(sys.argv[1])
counts = {"by_h5py.h5": {"H5Dwrite": 0, "H5Dread": 0}, "by_netcdf4.nc": {"H5Dwrite": 0, "H5Dread": 0}}
part = np.arange(10.0)

for mode in ["w", "a"]:
    with h5py.File(directory / "by_h5py.h5", mode) as file:
        field = file.require_dataset("field", shape=(100,), dtype="f8")
        for i in range(7):
            field[i * 10 : (i + 1) * 10] = part
            counts["by_h5py.h5"]["H5Dwrite"] += 1
        for i in range(3):
            assert (field[i * 10 : (i + 1) * 10] == part).all()
            counts["by_h5py.h5"]["H5Dread"] += 1
    with netCDF4.Dataset(directory / "by_netcdf4.nc", mode) as file:
        if mode == "w":
            file.createDimension("n", 100)
            file.createVariable("field", "f8", ("n",))
        variable = file["field"]
        for i in range(5):
            variable[i * 10 : (i + 1) * 10] = part
            counts["by_netcdf4.nc"]["H5Dwrite"] += 1
        for i in range(2):
            assert (variable[i * 10 : (i + 1) * 10] == part).all()
            counts["by_netcdf4.nc"]["H5Dread"] += 1

print(json.dumps(counts))
