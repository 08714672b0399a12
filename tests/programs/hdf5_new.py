"""Calls every function that does or decides I/O and that HDF5 has since 1.10, in the library that h5py brings along.

`hdf5_new.py DIR` prints, as JSON, the library's version, the calls and errors by function, and the bytes moved by each call.
Without h5py itself, which makes calls of its own.
"""

import ctypes
import glob
import importlib.util
import json
import os
import sys
from ctypes import byref, c_char_p, c_int, c_int64, c_uint, c_uint32, c_uint64, c_void_p

package = os.path.dirname(importlib.util.find_spec("h5py").origin)
(path,) = [p for p in glob.glob(os.path.join(package, "..", "h5py.libs", "libhdf5-*")) if "_hl" not in p]
lib = ctypes.CDLL(os.path.realpath(path))

calls, errors, moved = {}, {}, []
IDS = ("open", "create", "get_space", "get_type", "reopen", "copy", "Ropen", "Pcreate", "Screate")


def plain(value):
    """Integers fill a register, whatever their type in C."""
    return c_int64(value) if isinstance(value, int) else value


def raw(name, *args):
    function = getattr(lib, name)
    function.restype = c_int64 if any(word in name for word in IDS) else c_int
    return function(*map(plain, args))


def call(name, *args, fails=False, bytes=None):
    """Calls a function and counts it; on success its result, which must not be negative."""
    for text in args:
        if isinstance(text, str):
            raise TypeError(text)
    result = raw(name, *args)
    calls[name] = calls.get(name, 0) + 1
    if result < 0:
        errors[name] = errors.get(name, 0) + 1
    if (result < 0) != fails:
        sys.exit(f"{name}{args}: {result}")
    if bytes is not None:
        moved.append([name, bytes])
    return result


def later(name, *args, **kwargs):
    """The same of a function that takes an event set."""
    return call(name, b"hdf5_new.py", b"later", 1, *args, events, **kwargs)


def known(name):
    return c_int64.in_dll(lib, name).value


def longs(*values):
    return (c_uint64 * len(values))(*values)


def ids(*values):
    return (c_int64 * len(values))(*values)


raw("H5open")
version = [c_uint() for _ in range(3)]
raw("H5get_libversion", *map(byref, version))
INT, SHORT, DOUBLE, CHAR = (known(f"H5T_NATIVE_{t}_g") for t in ("INT", "SHORT", "DOUBLE", "SCHAR"))
FILE_ACCESS, DATASET_CREATE, DATASET_ACCESS, TRANSFER = (
    known(f"H5P_CLS_{c}_ID_g") for c in ("FILE_ACCESS", "DATASET_CREATE", "DATASET_ACCESS", "DATASET_XFER")
)
raw("H5Eset_auto2", 0, None, None)
directory = os.fsencode(sys.argv[1])
name = os.path.join(directory, b"new.h5")
buffer = (ctypes.c_double * 4096)()
info = ctypes.create_string_buffer(4096)
flag, count, number = ctypes.c_bool(), ctypes.c_size_t(), c_uint32()
ROWS, COLUMNS = 20, 30
ALL = 0

events = call("H5EScreate")

# Property lists.
access = call("H5Pcreate", FILE_ACCESS)
call("H5Pset_driver_by_name", access, b"sec2", None)
call("H5Pset_driver_by_value", access, 0, None)
call("H5Pset_relax_file_integrity_checks", access, 0)
call("H5Pset_vol", access, raw("H5VLget_connector_id_by_name", b"native") & 0xFFFFFFFF, None, fails=True)
call("H5Pset_fapl_onion", access, None, fails=True)
call("H5Pclose", access)
transfer = call("H5Pcreate", TRANSFER)
call("H5Pset_selection_io", transfer, 0)
call("H5Pset_modify_write_buf", transfer, 0)
call("H5Pset_dataset_io_hyperslab_selection", transfer, 1, 0, longs(0), longs(1), longs(1), longs(1))
call("H5Pget_actual_selection_io_mode", transfer, byref(number))
call("H5Pget_no_selection_io_cause", transfer, byref(number))
call("H5Pclose", transfer)
reach = call("H5Pcreate", DATASET_ACCESS)
call("H5Pset_virtual_spatial_tree", reach, 0)
call("H5Pclose", reach)
how = call("H5Pcreate", DATASET_CREATE)
call("H5Pset_chunk", how, 2, longs(5, 10))
call("H5Pset_deflate", how, 3)

# A file, datasets, a group, a type and attributes, each with an event set.
file = later("H5Fcreate_async", name, 2, 0, 0)
later("H5Fclose_async", file)
file = later("H5Fopen_async", name, 1, 0)
later("H5Fclose_async", later("H5Freopen_async", file))
space = call("H5Screate_simple", 2, longs(ROWS, COLUMNS), longs(2**64 - 1, COLUMNS))
fixed = call("H5Screate_simple", 2, longs(ROWS, COLUMNS), None)
group = later("H5Gcreate_async", file, b"g", 0, 0, 0)
later("H5Gclose_async", group)
group = later("H5Gopen_async", file, b"g", 0)
later("H5Gget_info_async", group, info)
later("H5Gget_info_by_name_async", file, b"g", info, 0)
later("H5Gget_info_by_idx_async", file, b"/", 0, 0, 0, info, 0)
chunked = later("H5Dcreate_async", group, b"chunked", SHORT, space, 0, how, 0)
later("H5Dwrite_async", chunked, INT, ALL, ALL, 0, buffer, bytes=ROWS * COLUMNS * 4)
later("H5Dclose_async", chunked)
flat = later("H5Dcreate_async", group, b"flat", INT, fixed, 0, 0, 0)
later("H5Dwrite_async", flat, DOUBLE, ALL, ALL, 0, buffer, bytes=ROWS * COLUMNS * 8)
later("H5Dread_async", flat, SHORT, ALL, ALL, 0, buffer, bytes=ROWS * COLUMNS * 2)
chunked = later("H5Dopen_async", group, b"chunked", 0)
later("H5Dset_extent_async", chunked, longs(ROWS + 5, COLUMNS))
call("H5Sclose", later("H5Dget_space_async", chunked))

attribute = later("H5Acreate_async", flat, b"a", SHORT, fixed, 0, 0)
later("H5Awrite_async", attribute, INT, buffer, bytes=ROWS * COLUMNS * 4)
later("H5Aread_async", attribute, CHAR, buffer, bytes=ROWS * COLUMNS)
later("H5Aclose_async", attribute)
later("H5Aclose_async", later("H5Acreate_by_name_async", group, b"flat", b"b", SHORT, fixed, 0, 0, 0))
later("H5Aclose_async", later("H5Aopen_async", flat, b"a", 0))
later("H5Aclose_async", later("H5Aopen_by_name_async", group, b"flat", b"b", 0, 0))
later("H5Aclose_async", later("H5Aopen_by_idx_async", group, b"flat", 0, 0, 0, 0, 0))
later("H5Arename_async", flat, b"b", b"c")
later("H5Arename_by_name_async", group, b"flat", b"c", b"d", 0)
later("H5Aexists_async", flat, b"d", byref(flag))
later("H5Aexists_by_name_async", group, b"flat", b"d", byref(flag), 0)
assert flag.value

later("H5Lcreate_hard_async", group, b"flat", group, b"hard", 0, 0)
later("H5Lcreate_soft_async", b"/g/flat", group, b"soft", 0, 0)
later("H5Lexists_async", group, b"soft", byref(flag), 0)
later("H5Ldelete_async", group, b"soft", 0)
LINK = ctypes.CFUNCTYPE(c_int, c_int64, c_char_p, c_void_p, c_void_p)
each = LINK(lambda where, name, info, data: 0)
later("H5Literate_async", group, 0, 0, None, each, None)
later("H5Ocopy_async", group, b"flat", group, b"copy", 0, 0)
later("H5Ldelete_by_idx_async", group, b".", 0, 0, 1, 0)
member = later("H5Oopen_async", group, b"flat", 0)
later("H5Oflush_async", member)
later("H5Orefresh_async", member)
later("H5Oclose_async", member)
later("H5Oclose_async", later("H5Oopen_by_idx_async", file, b"g", 0, 0, 0, 0))
later("H5Oget_info_by_name_async", group, b"flat", info, 1, 0)
kind = raw("H5Tcopy", INT)
later("H5Tcommit_async", group, b"t", kind, 0, 0, 0)
later("H5Tclose_async", kind)
later("H5Tclose_async", later("H5Topen_async", group, b"t", 0))
later("H5Fflush_async", file, 0)

# Several datasets in one call: some converted, in pieces of chunks, in a selection.
part = call("H5Screate_simple", 2, longs(ROWS + 5, COLUMNS), None)
call("H5Sselect_hyperslab", part, 0, longs(1, 1), None, longs(6, 7), None)
line = call("H5Screate_simple", 1, longs(42), None)
pieces = call("H5Screate_simple", 2, longs(ROWS + 5, COLUMNS), None)


def several(name, sets, bytes, wrapper=call):
    """Calls a function of several datasets: of each its handle, type in memory and dataspaces."""
    columns = [ids(*column) for column in zip(*sets)]
    buffers = (c_void_p * len(sets))(*[ctypes.addressof(buffer)] * len(sets))
    wrapper(name, len(sets), *columns, 0, buffers, bytes=bytes)


whole, some = (flat, DOUBLE, ALL, ALL), (chunked, INT, line, part)
every = (chunked, DOUBLE, pieces, ALL)
several("H5Dwrite_multi", [whole, some], 600 * 8 + 42 * 4)
several("H5Dread_multi", [some, whole], 42 * 4 + 600 * 8)
several("H5Dwrite_multi", [every], 750 * 8)
another = call("H5Dcreate2", group, b"another", DOUBLE, part, 0, how, 0)
several("H5Dwrite_multi", [(another, CHAR, ALL, ALL), every, whole], 750 + 750 * 8 + 600 * 8)
several("H5Dread_multi", [(another, SHORT, line, part), some, whole], 42 * 2 + 42 * 4 + 600 * 8)
several("H5Dread_multi", [], 0)
several("H5Dwrite_multi_async", [(another, INT, line, part), whole, some], 2 * 42 * 4 + 600 * 8, later)
several("H5Dread_multi_async", [whole, (another, CHAR, ALL, ALL)], 600 * 8 + 750, later)
call("H5Dclose", another)

# Chunks as they are in the file.
block = ctypes.create_string_buffer(4096)
call("H5Dflush", chunked)
size = c_uint64()
call("H5Dget_chunk_storage_size", chunked, longs(0, 0), byref(size))
room = ctypes.c_size_t(len(block))
call("H5Dread_chunk2", chunked, 0, longs(0, 0), byref(number), block, byref(room), bytes=size.value)
call("H5Dread_chunk1", chunked, 0, longs(0, 0), byref(number), block, bytes=size.value)
call("H5Dwrite_chunk", chunked, 0, number.value, longs(0, 0), size.value, block, bytes=size.value)
CHUNK = ctypes.CFUNCTYPE(c_int, c_void_p, c_uint, c_uint64, c_uint64, c_void_p)
call("H5Dchunk_iter", chunked, 0, CHUNK(lambda *_: 0), None)
later("H5Dclose_async", chunked)

# Links and objects.
for v in (1, 2):
    call(f"H5Lget_info{v}", group, b"hard", info, 0)
    call(f"H5Lget_info_by_idx{v}", group, b".", 0, 0, 0, info, 0)
    call(f"H5Literate{v}", group, 0, 0, None, each, None)
    call(f"H5Literate_by_name{v}", file, b"g", 0, 0, None, each, None, 0)
    call(f"H5Lvisit{v}", group, 0, 0, each, None)
    call(f"H5Lvisit_by_name{v}", file, b"g", 0, 0, each, None, 0)
call("H5Oget_info3", flat, info, 1)
call("H5Oget_info_by_name3", group, b"flat", info, 1, 0)
call("H5Oget_info_by_idx3", group, b".", 0, 0, 0, info, 1, 0)
call("H5Ovisit3", group, 0, 0, each, None, 1)
call("H5Ovisit_by_name3", file, b"g", 0, 0, each, None, 1, 0)
call("H5Oget_info3", flat, info, 1)
# An `H5O_token_t` (16 bytes, behind the file's number) takes two registers.
token = [int.from_bytes(info.raw[8 + i : 16 + i], "little") for i in (0, 8)]
call("H5Oclose", call("H5Oopen_by_token", file, *[c_uint64(half) for half in token]))
call("H5Oget_native_info", flat, info, 8)
call("H5Oget_native_info_by_name", group, b"flat", info, 8, 0)
call("H5Oget_native_info_by_idx", group, b".", 0, 0, 0, info, 8, 0)

# References.
reference = ctypes.create_string_buffer(64)
call("H5Rcreate_object", file, b"/g/flat", 0, reference)
call("H5Oclose", call("H5Ropen_object", reference, 0, 0))
call("H5Oclose", later("H5Ropen_object_async", reference, 0, 0))
call("H5Rget_obj_type3", reference, 0, byref(number))
call("H5Rget_obj_name", reference, 0, info, len(info))
raw("H5Rdestroy", reference)
call("H5Rcreate_region", file, b"/g/flat", fixed, 0, reference)
call("H5Sclose", call("H5Ropen_region", reference, 0, 0))
call("H5Sclose", later("H5Ropen_region_async", reference, 0, 0))
raw("H5Rdestroy", reference)
call("H5Rcreate_attr", file, b"/g/flat", b"a", 0, reference)
call("H5Aclose", call("H5Ropen_attr", reference, 0, 0))
call("H5Aclose", later("H5Ropen_attr_async", reference, 0, 0))
raw("H5Rdestroy", reference)
call("H5Treclaim", INT, fixed, 0, buffer)

# The event set: without an asynchronous connector everything is done.
call("H5ESget_count", events, byref(count))
call("H5ESget_err_status", events, byref(flag))
call("H5ESget_err_count", events, byref(count))
call("H5ESwait", events, 2**63 - 1, byref(count), byref(flag))
assert count.value == 0 and not flag.value
call("H5EScancel", events, byref(count), byref(flag))
later("H5Dclose_async", flat)
later("H5Gclose_async", group)
later("H5Fclose_async", file)
for one in (space, fixed, part, line, pieces):
    call("H5Sclose", one)
call("H5Pclose", how)
call("H5ESclose", events)
assert call("H5Fis_accessible", name, 0) == 1
other = os.path.join(directory, b"other.h5")
call("H5Fclose", call("H5Fcreate", other, 2, 0, 0))
call("H5Fdelete", other, 0)

numbers = ".".join(str(v.value) for v in version)
print(json.dumps({"version": numbers, "calls": calls, "errors": errors, "moved": moved}))
