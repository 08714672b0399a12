"""netCDF4 from PyPI, which brings libraries of its own: writes and reads FILE, and prints how many bytes of each variable."""
import json
import sys

import netCDF4
import numpy

moved = {"written": {}, "read": {}}


def put(variable, where, data):
    variable[where] = data
    tally("written", variable, data.nbytes)


def get(variable, where):
    data = variable[where]
    tally("read", variable, data.nbytes)
    return data


def tally(how, variable, n):
    path = variable.group().path.rstrip("/") + "/" + variable.name
    moved[how][path] = moved[how].get(path, 0) + n


with netCDF4.Dataset(sys.argv[1], "w") as file:
    file.title = "from Python"
    file.createDimension("time", None)
    file.createDimension("y", 30)
    file.createDimension("x", 40)
    field = file.createVariable("field", "f8", ("time", "y", "x"), zlib=True, complevel=4, shuffle=True, chunksizes=(1, 30, 40))
    inner = file.createGroup("model").createGroup("run")
    index = inner.createVariable("index", "i4", ("y",))
    scalar = inner.createVariable("scalar", "i2")
    for variable in (field, index, scalar):
        variable.set_auto_maskandscale(False)
    for step in range(5):
        put(field, step, numpy.full((30, 40), step, dtype="f8"))
    put(index, slice(None), numpy.arange(30, dtype="i4"))
    put(scalar, Ellipsis, numpy.array(7, dtype="i2"))

with netCDF4.Dataset(sys.argv[1]) as file:
    file.set_auto_maskandscale(False)
    field = file["field"]
    assert get(field, slice(None))[3, 2, 1] == 3
    assert get(field, (4, slice(0, 30, 3), slice(1, 5)))[0, 0] == 4
    assert get(file["model/run/index"], slice(10, 20))[0] == 10
    assert get(file["model/run/scalar"], Ellipsis) == 7

print(json.dumps(moved))
