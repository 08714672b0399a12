"""Opens datasets and closes them. `hdf5_open.py DIR` makes their file first, `hdf5_open.py DIR LIBRARY` opens them in that HDF5."""
import ctypes
import pathlib
import sys

NAMES = ["g/plain", "g/chunked", "g/packed", "g/strange"]


def make(path):
    import h5py
    import numpy

    with h5py.File(path, "w") as f:
        f.create_dataset("g/plain", data=numpy.arange(24.0).reshape(4, 6))
        f.create_dataset("g/chunked", shape=(10, 20, 30), dtype="i2", chunks=(5, 1, 30), maxshape=(None, 20, 30))
        f.create_dataset("g/packed", shape=(1 << 20,), dtype="f4", chunks=(1 << 16,), shuffle=True, compression="gzip",
                         compression_opts=7, fletcher32=True)
        f.create_dataset("g/strange", shape=(8,), dtype=[("a", "i1"), ("b", "f8")], chunks=(4,))


def open_all(path, library):
    hdf5 = ctypes.CDLL(library)
    handle = ctypes.c_int64
    for name in ("H5Fopen", "H5Dopen2"):
        getattr(hdf5, name).restype = handle
    file = handle(hdf5.H5Fopen(str(path).encode(), 0, handle(0)))
    for name in NAMES:
        dataset = hdf5.H5Dopen2(file, name.encode(), handle(0))
        assert dataset >= 0, name
        hdf5.H5Dclose(handle(dataset))
    hdf5.H5Fclose(file)


path = pathlib.Path(sys.argv[1]) / "there.h5"
if len(sys.argv) > 2:
    open_all(path, sys.argv[2])
else:
    make(path)
