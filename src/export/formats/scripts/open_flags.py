"""What the flags of an open mean in OTF2: access, creation and status."""

from otf2.enums import IoAccessMode, IoCreationFlag, IoStatusFlag

O_ACCMODE, O_DIRECTORY = 3, 0o200000

ACCESS = {0: IoAccessMode.READ_ONLY, 1: IoAccessMode.WRITE_ONLY, 2: IoAccessMode.READ_WRITE}
# Flags of open(2), of MPI_File_open and of H5Fopen or H5Fcreate: bit by bit.
CREATION = {
    "syscall": {0o100: IoCreationFlag.CREATE, 0o1000: IoCreationFlag.TRUNCATE, O_DIRECTORY: IoCreationFlag.DIRECTORY,
                0o200: IoCreationFlag.EXCLUSIVE, 0o400: IoCreationFlag.NO_CONTROLLING_TERMINAL,
                0o400000: IoCreationFlag.NO_FOLLOW, 0o10000000: IoCreationFlag.PATH,
                0o20000000: IoCreationFlag.TEMPORARY_FILE, 0o100000: IoCreationFlag.LARGEFILE},
    "mpiio": {1: IoCreationFlag.CREATE, 64: IoCreationFlag.EXCLUSIVE, 32: IoCreationFlag.UNIQUE,
              256: IoCreationFlag.NO_SEEK},
    "hdf5": {2: IoCreationFlag.TRUNCATE, 4: IoCreationFlag.EXCLUSIVE, 16: IoCreationFlag.CREATE},
}
STATUS = {
    "syscall": {0o2000000: IoStatusFlag.CLOSE_ON_EXEC, 0o2000: IoStatusFlag.APPEND, 0o4000: IoStatusFlag.NON_BLOCKING,
                0o20000: IoStatusFlag.ASYNC, 0o4000000: IoStatusFlag.SYNC, 0o10000: IoStatusFlag.DATA_SYNC,
                0o40000: IoStatusFlag.AVOID_CACHING, 0o1000000: IoStatusFlag.NO_ACCESS_TIME},
    "mpiio": {128: IoStatusFlag.APPEND, 16: IoStatusFlag.DELETE_ON_CLOSE},
}


def bits(table, kind, value):
    flags = kind.NONE
    for bit, flag in table.items():
        if value is not None and value & bit == bit:
            flags = flags | flag
    return flags


def access(layer, mode):
    """The access mode in the flags of an open; None: not known."""
    if mode is None:
        return None
    if layer == "syscall":
        return ACCESS.get(mode & O_ACCMODE, IoAccessMode.READ_WRITE)
    if layer == "mpiio":
        return IoAccessMode.READ_ONLY if mode & 2 else IoAccessMode.WRITE_ONLY if mode & 4 else IoAccessMode.READ_WRITE
    return IoAccessMode.READ_WRITE if mode & 0x17 else IoAccessMode.READ_ONLY
