"""`elements.py LIBRARY MODE FILE COUNT`: reads COUNT numbers, `each` by itself or as one `slice`, with h5py or netcdf4."""

import sys

import numpy

library, mode, path, count = *sys.argv[1:4], int(sys.argv[4])
if library == "h5py":
    import h5py

    file = h5py.File(path, "w")
    field = file.create_dataset("field", data=numpy.arange(count))
else:
    import netCDF4

    file = netCDF4.Dataset(path, "w")
    file.createDimension("x", count)
    field = file.createVariable("field", "i8", ("x",))
    field[:] = numpy.arange(count)
if mode == "each":
    total = sum(int(field[i]) for i in range(count))
else:
    total = int(field[:].sum())
print(total)
file.close()
