"""An archive of OTF2 with I/O records. Rows come sorted by thread and time; of a thread, the open calls are kept."""

from contextlib import closing
from dataclasses import dataclass, field

import otf2
from otf2.definitions import IoDirectory, IoRegularFile
from otf2.enums import (IoAccessMode, IoCreationFlag, IoHandleFlag, IoOperationFlag, IoOperationMode, IoParadigmClass,
                        IoParadigmFlag, IoParadigmProperty, IoSeekOption, IoStatusFlag, LocationGroupType,
                        LockType, Paradigm, RegionRole, SystemTreeDomain, Type)
from otf2.event_writer import EventWriter

UNKNOWN = 2**64 - 1  # OTF2_UNDEFINED_UINT64
COLLECTIVE, ASYNCHRONOUS, UNFINISHED = 1, 4, 64
ECANCELED = 125

# By layer: identification, name, class, flags, and how meta names the library.
PARADIGMS = {
    "syscall": ("POSIX", "POSIX I/O", IoParadigmClass.SERIAL, IoParadigmFlag.OS, None),
    "stdio": ("ISOC", "ISO C I/O", IoParadigmClass.SERIAL, IoParadigmFlag.NONE, "C library"),
    "mpiio": ("MPI-IO", "MPI-IO", IoParadigmClass.PARALLEL, IoParadigmFlag.NONE, "MPI"),
    "hdf5": ("HDF5", "HDF5", IoParadigmClass.PARALLEL, IoParadigmFlag.NONE, "HDF5"),
    "netcdf": ("netCDF", "NetCDF", IoParadigmClass.PARALLEL, IoParadigmFlag.NONE, "NetCDF"),
    "pnetcdf": ("PnetCDF", "PnetCDF", IoParadigmClass.PARALLEL, IoParadigmFlag.NONE, "PnetCDF"),
}
PARALLEL = {"hdf5", "netcdf", "pnetcdf"}  # Libraries on MPI-IO.
MODES = {"read": IoOperationMode.READ, "write": IoOperationMode.WRITE, "sync": IoOperationMode.FLUSH}
METADATA = {"open", "close", "meta", "seek"}
WHENCE = {"SEEK_SET": IoSeekOption.FROM_START, "SEEK_CUR": IoSeekOption.FROM_CURRENT,
          "SEEK_END": IoSeekOption.FROM_END, "SEEK_DATA": IoSeekOption.DATA, "SEEK_HOLE": IoSeekOption.HOLE,
          "MPI_SEEK_SET": IoSeekOption.FROM_START, "MPI_SEEK_CUR": IoSeekOption.FROM_CURRENT,
          "MPI_SEEK_END": IoSeekOption.FROM_END}
LOCKS = {"SHARED": LockType.SHARED, "EXCLUSIVE": LockType.EXCLUSIVE}
DUPLICATES = {"dup", "dup2", "dup3", "fcntl"}
DELETES = {"unlink", "unlinkat", "rmdir", "remove", "MPI_File_delete", "H5Fdelete", "nc_delete", "ncmpi_delete",
           "io_uring.unlinkat"}

CALLS = """
WITH calls AS (
  SELECT s.host, s.span_id >> 33 AS thread, s.wall_ns, s.span_id, s.depth, s.layer, s.op, s.kind, s.layer_top, s.pid,
         s.process_ix, s.file_id, s.handle_id, s.path_id, s.cmd, s.arg, s."offset", s.bytes, s.req_bytes, s.errno,
         s.flags, s.async_id, s.dur_ns, s.self_ns
  FROM v_spans s),
operations AS (FROM calls WHERE flags & 4 <> 0),
-- Kinds of locks of fcntl: F_RDLCK, F_WRLCK, F_UNLCK.
lock_calls AS (
  SELECT *, CASE cmd WHEN 'LOCK_SH' THEN 'SHARED' WHEN 'LOCK_EX' THEN 'EXCLUSIVE' WHEN 'LOCK_UN' THEN NULL
            ELSE ['SHARED', 'EXCLUSIVE', NULL][arg + 1] END AS lock
  FROM calls WHERE layer = 'syscall' AND flags & 64 = 0 AND (cmd IN ('LOCK_SH', 'LOCK_EX', 'LOCK_UN')
    OR cmd IN ('F_SETLK', 'F_SETLKW', 'F_OFD_SETLK', 'F_OFD_SETLKW') AND arg BETWEEN 0 AND 2)),
-- What is released is the lock that was taken last on the handle.
locks AS (
  SELECT host, span_id, coalesce(lock, last_value(CASE WHEN errno = 0 THEN lock END IGNORE NULLS) OVER (
           PARTITION BY host, process_ix, handle_id ORDER BY wall_ns + dur_ns, span_id), 'EXCLUSIVE') AS lock,
         CASE WHEN lock IS NULL THEN 'release' WHEN errno = 0 THEN 'acquire' ELSE 'try' END AS does
  FROM lock_calls),
-- An operation ends with the call that found it complete, on whatever thread.
completing AS (
  SELECT host, process_ix, wall_ns + dur_ns AS end_ns, min(thread) AS thread FROM calls
  WHERE async_id IS NOT NULL AND flags & 4 = 0 GROUP BY ALL),
events AS (
  SELECT c.thread AS location, c.wall_ns AS at_ns, 1 AS nth, c.*, o.handle_id AS tested_handle, o.layer AS tested_layer,
         o.file_id AS tested_file, l.does, l.lock
  FROM calls c LEFT JOIN locks l ON l.host IS NOT DISTINCT FROM c.host AND l.span_id = c.span_id LEFT JOIN operations o
    ON c.op LIKE 'MPI%' AND c.arg = 0 AND c.flags & 4 = 0
   AND o.host IS NOT DISTINCT FROM c.host AND o.span_id = c.async_id
  UNION ALL
  SELECT coalesce(c.thread, o.thread), o.wall_ns + o.dur_ns, 0, o.*, NULL, NULL, NULL, NULL, NULL
  FROM operations o LEFT JOIN completing c
    ON c.host IS NOT DISTINCT FROM o.host AND c.process_ix = o.process_ix AND c.end_ns = o.wall_ns + o.dur_ns
  WHERE o.flags & 64 = 0)
FROM events ORDER BY host, location, at_ns, nth, span_id
"""


@dataclass(slots=True)
class Event:
    """A row of CALLS, in the order of its columns."""
    location: int
    at: int
    begins: int
    host: str
    thread: int
    wall: int
    span: int
    depth: int
    layer: str
    op: str
    kind: str
    top: bool
    pid: int
    process: int
    file: int | None
    handle: int | None
    path: int | None
    cmd: str | None
    arg: int | None
    offset: int | None
    bytes: int | None
    requested: int | None
    errno: int
    flags: int
    operation: int | None
    duration: int
    self: int
    tested_handle: int | None
    tested_layer: str | None
    tested_file: int | None
    locks: str | None
    lock: str | None

    @property
    def asynchronous(self):
        return bool(self.flags & ASYNCHRONOUS)

    @property
    def moves(self):
        """Whether it is an I/O operation: outermost, so that bytes of a paradigm count once."""
        return self.kind in MODES and self.top and self.layer in PARADIGMS


@dataclass(slots=True)
class Handle:
    definition: object
    parent: tuple | None
    layer: str
    mode: int | None
    access: object | None


class Definitions:
    """Everything events refer to: in memory, as a reader has it."""

    def __init__(self, db, archive):
        self.db, self.all = db, archive.definitions
        self.regions, self.files, self.handles, self.locations, self.groups = {}, {}, {}, {}, {}
        self.opened, self.closed, self.unnamed = {}, {}, {}
        self.errno = self.all.attribute("errno", "Error number of a failed call; -1: of a library", type=Type.INT64)
        self.offset = self.all.attribute("offset", "Offset in the file, in bytes or etypes", type=Type.INT64)
        self.root = self.all.system_tree_node("all nodes", class_name="machine")
        self.nodes, self.paradigms = {}, {}
        for (host,) in rows(db, "SELECT DISTINCT host FROM datasets ORDER BY host"):
            node = self.all.system_tree_node(plain(host), class_name="node", parent=self.root)
            self.all.system_tree_node_domain(node, SystemTreeDomain.SHARED_MEMORY)
            self.nodes[host] = node
        self.hosts = {host: ix for ix, host in enumerate(self.nodes)}
        self.define_paradigms()
        self.define_files()
        self.define_threads()
        self.communicators = Communicators(db, self.all, self.location)
        self.define_handles()

    def define_paradigms(self):
        libraries = [value.split(": ")[0] for (value,) in rows(
            self.db, "SELECT value FROM meta WHERE key LIKE 'library.%' ORDER BY host, key")]
        kernels = [value for (value,) in rows(self.db, "SELECT value FROM meta WHERE key = 'kernel' ORDER BY host")]
        for layer, (identification, name, kind, flags, library) in PARADIGMS.items():
            versions = kernels if library is None else [
                text for text in libraries if text.startswith(library) or library == "MPI" and "MPI" in text]
            properties = {IoParadigmProperty.VERSION: plain(", ".join(dict.fromkeys(versions)))} if versions else {}
            self.paradigms[layer] = self.all.io_paradigms.create(identification, name, kind, flags, properties)

    def define_files(self):
        directories = set(rows(self.db, "SELECT DISTINCT host, file_id FROM handles"
                               " WHERE layer = 'syscall' AND mode & ? <> 0", O_DIRECTORY))
        query = """SELECT f.host, f.file_id, f.path, m.scope, f.dev, f.ino, f.fstype, m.path, m.source,
                          f.stripe_count, f.stripe_size
                   FROM files f LEFT JOIN mounts m ON m.host IS NOT DISTINCT FROM f.host AND m.mount_id = f.mount_id"""
        for host, number, path, scope, dev, ino, *facts in rows(self.db, query):
            path = f"dev {dev >> 20}:{dev & 0xfffff} inode {ino}" if path is None else path
            is_directory = (host, number) in directories
            where = self.root if scope == "remote" else self.nodes[host]
            file = self.file(("file", host, number), path, where, is_directory)
            facts = [f"{dev >> 20}:{dev & 0xfffff}", str(ino), *facts]
            names = ["device", "inode", "file system", "mount point", "mount source", "stripe count", "stripe size"]
            for name, value in zip(names, facts):
                if value not in (None, ""):
                    self.all.io_file_property(file, name, value=plain(str(value)))

    def file(self, key, path, scope, is_directory=False):
        if key not in self.files:
            kind = IoDirectory if is_directory else IoRegularFile
            self.files[key] = self.all.io_files.create(plain(path), scope=scope, _type=kind)
        return self.files[key]

    def define_handles(self):
        query = """SELECT h.host, h.handle_id, h.parent_handle_id, h.layer, h.file_id, h.mode, h.flags, h.open_span_id,
                          h.close_span_id, o.name
                   FROM handles h LEFT JOIN objects o
                     ON o.host IS NOT DISTINCT FROM h.host AND o.object_id = h.object_id
                   ORDER BY h.host, h.handle_id"""
        found = {(row[0], row[1]): row[2:] for row in rows(self.db, query)}
        self.communicators.spread({key: row[0] for key, row in found.items()},
                                  {key for key, row in found.items() if row[1] in PARALLEL})
        for key, (parent, layer, *_) in found.items():
            self.define_handle(key, found, [])
            _, _, _, _, _, opening, closing, _ = found[key]
            if opening is not None:
                self.opened.setdefault((key[0], opening), []).append(key)
            if closing is not None:
                self.closed.setdefault((key[0], closing), []).append(key)
        self.settle_access()

    def define_handle(self, key, found, inside):
        """Parents first; a circle, in damaged rows, is cut."""
        if key in self.handles or key not in found or key in inside:
            return self.handles.get(key)
        parent, layer, file, mode, flags, _, _, name = found[key]
        outer = None
        if parent is not None:
            outer = self.define_handle((key[0], parent), found, [*inside, key])
        paradigm = self.paradigms.get(layer)
        if paradigm is None:
            return None
        file = self.files.get(("file", key[0], file))
        definition = self.all.io_handles.create(
            plain(name if name is not None else file.name if file else f"{layer} handle {key[1]}"), file=file,
            io_paradigm=paradigm, io_handle_flags=IoHandleFlag.PRE_CREATED if flags & 1 else IoHandleFlag.NONE,
            comm=self.communicators.of.get(key), parent=outer.definition if outer else None)
        self.handles[key] = Handle(definition, (key[0], parent), layer, mode, access(layer, mode))
        return self.handles[key]

    def settle_access(self):
        """Of a handle without flags of its own: those of the handle below (the descriptor of a stream), or around."""
        for handle in self.handles.values():
            outer = self.handles.get(handle.parent)
            if outer is not None and outer.mode is None and outer.access is None:
                outer.access = handle.access
        for handle in self.handles.values():
            outer = self.handles.get(handle.parent)
            if handle.access is None:
                handle.access = outer.access if outer and outer.access is not None else IoAccessMode.READ_WRITE
            if IoHandleFlag.PRE_CREATED == handle.definition.io_handle_flags:
                self.all.io_pre_created_handle_state(handle.definition, handle.access,
                                                     bits(STATUS.get(handle.layer, {}), IoStatusFlag, handle.mode))

    def define_threads(self):
        query = """SELECT t.host, t.thread_ix, t.tid, t.comm, t.process_ix, p.pid, p.rank, p.exe
                   FROM threads t LEFT JOIN processes p
                     ON p.host IS NOT DISTINCT FROM t.host AND p.process_ix = t.process_ix
                   ORDER BY t.host, p.rank NULLS LAST, t.process_ix, t.thread_ix"""
        self.threads = {(row[0], row[1]): row[2:] for row in rows(self.db, query)}

    def location(self, host, thread, pid):
        if (host, thread) in self.locations:
            return self.locations[host, thread]
        tid, comm, process, pid, rank, exe = self.threads.get((host, thread), (0, "not known", -1, pid, None, None))
        if (host, process) not in self.groups:
            program = exe.rsplit("/", 1)[-1] if exe else comm
            name = f"{program} (pid {pid})" if rank is None else f"MPI Rank {rank}: {program} (pid {pid})"
            self.groups[host, process] = self.all.location_groups.create(
                plain(name), location_group_type=LocationGroupType.PROCESS, system_tree_parent=self.nodes[host])
        of = self.all.locations.create(plain(f"{comm} (tid {tid})"), group=self.groups[host, process])
        return self.locations.setdefault((host, thread), of)

    def region(self, event):
        key = (event.layer, event.op)
        if key not in self.regions:
            role = (RegionRole.FUNCTION if event.layer not in PARADIGMS
                    else RegionRole.FILE_IO_METADATA if event.kind in METADATA else RegionRole.FILE_IO)
            paradigms = {"app": Paradigm.USER, "mpi": Paradigm.MPI, "mpiio": Paradigm.MPI}
            paradigm = paradigms.get(event.layer, Paradigm.NONE)
            self.regions[key] = self.all.region(plain(event.op), description=plain(f"layer {event.layer}"),
                                                region_role=role, paradigm=paradigm)
        return self.regions[key]

    def handle_of(self, host, handle, layer, file):
        """The handle of a call; of one without, such as a registered file of io_uring, one per file that was there."""
        known = self.handles.get((host, handle))
        if known is not None:
            return known.definition
        key = (host, layer, file)
        if key not in self.unnamed:
            of = self.files.get(("file", host, file))
            self.unnamed[key] = self.all.io_handles.create(
                of.name if of else "not known", file=of, io_paradigm=self.paradigms[layer],
                io_handle_flags=IoHandleFlag.PRE_CREATED)
            self.all.io_pre_created_handle_state(self.unnamed[key], IoAccessMode.READ_WRITE, IoStatusFlag.NONE)
        return self.unnamed[key]

    def deleted(self, event):
        """The file that a call removed; one that no call opened has only its name."""
        if event.file is not None or event.path is None:
            return self.files.get(("file", event.host, event.file))
        key = ("path", event.host, event.path)
        if key not in self.files:
            named = list(rows(self.db, "SELECT path FROM paths WHERE host IS NOT DISTINCT FROM ? AND path_id = ?",
                              event.host, event.path))
            return self.file(key, named[0][0] if named else "not known", self.nodes[event.host])
        return self.files[key]


@dataclass(slots=True)
class Frame:
    """A call that is open: until when, and what of that is calls inside it."""
    event: Event
    own: int
    inside: int = field(default=0)

    @property
    def end(self):
        """Of the call that submits an operation: after its own time and the calls inside it."""
        return self.own + (self.inside if self.event.asynchronous else 0)


class Location:
    """The events of one thread, in order of time."""

    def __init__(self, archive, definitions, first):
        self.definitions, self.open, self.last = definitions, [], 0
        self.writer = EventWriter(archive, definitions.location(first.host, first.location, first.pid))

    def time(self, at):
        """Rows of damaged traces may go back in time; an archive may not."""
        self.last = max(self.last, at, 0)
        return self.last

    def take(self, event):
        if event.begins:
            self.leave(lambda frame: frame.event.depth >= event.depth, event.at)
            self.enter(event)
        else:
            self.leave(lambda frame: frame.end < event.at, event.at)
            self.finish(event, self.time(event.at))

    def enter(self, event):
        at = self.time(event.at)
        self.writer.enter(at, self.definitions.region(event))
        if event.moves:
            flags = IoOperationFlag.NONE
            if event.flags & COLLECTIVE:
                flags = flags | IoOperationFlag.COLLECTIVE
            if event.asynchronous:
                flags = flags | IoOperationFlag.NON_BLOCKING
            attributes = {} if event.offset is None else {self.definitions.offset: event.offset}
            requested = UNKNOWN if event.requested is None or event.requested < 0 else event.requested
            self.writer.io_operation_begin(at, self.handle(event), MODES[event.kind], flags, requested,
                                           self.matching(event.host, event.span), attributes)
        self.open.append(Frame(event, event.at + (event.self if event.asynchronous else event.duration)))

    def leave(self, is_over, latest=None):
        while self.open and is_over(self.open[-1]):
            frame = self.open.pop()
            event = frame.event
            at = self.time(frame.end if latest is None else min(frame.end, latest))
            if event.asynchronous:
                if event.moves:
                    self.writer.io_operation_issued(at, self.handle(event), self.matching(event.host, event.span))
            else:
                self.finish(event, at)
            self.writer.leave(at, self.definitions.region(event),
                              {self.definitions.errno: event.errno} if event.errno and not event.asynchronous else {})
            if self.open:
                self.open[-1].inside += at - event.at

    def finish(self, event, at):
        """What is so when a call or operation is over."""
        if event.moves:
            self.complete(event, at)
        if event.operation is not None and event.tested_layer in PARADIGMS:
            of = self.definitions.handle_of(event.host, event.tested_handle, event.tested_layer, event.tested_file)
            self.writer.io_operation_test(at, of, self.matching(event.host, event.operation))
        for key in self.definitions.opened.get((event.host, event.span), ()):
            self.create(event, key, at)
        for key in self.definitions.closed.get((event.host, event.span), ()):
            if key in self.definitions.handles:
                self.writer.io_destroy_handle(at, self.definitions.handles[key].definition)
        if event.locks is not None:
            self.lock(event, at)
        if event.errno or event.flags & UNFINISHED or not event.top:
            return
        if event.op in DELETES and event.layer in PARADIGMS:
            if file := self.definitions.deleted(event):
                self.writer.io_delete_file(at, self.definitions.paradigms[event.layer], file)
        elif event.kind == "seek" and event.offset is not None:
            self.seek(event, at)
        elif event.op == "fcntl" and event.cmd in ("F_SETFL", "F_SETFD"):
            # FD_CLOEXEC is 1.
            flags = bits(STATUS["syscall"], IoStatusFlag, event.arg) if event.cmd == "F_SETFL" else (
                IoStatusFlag.CLOSE_ON_EXEC if event.arg and event.arg & 1 else IoStatusFlag.NONE)
            self.writer.io_change_status_flags(at, self.handle(event), flags)

    def lock(self, event, at):
        of, lock = self.handle(event), LOCKS[event.lock]
        if event.locks == "release":
            if event.errno == 0:
                self.writer.io_release_lock(at, of, lock)
        elif event.locks == "acquire":
            self.writer.io_acquire_lock(at, of, lock)
        else:
            self.writer.io_try_lock(at, of, lock)

    def seek(self, event, at):
        asked, whence, result = event.arg, WHENCE.get(event.cmd), max(event.offset, 0)
        if asked is None or whence is None:
            if event.layer != "stdio":
                return
            # Where the stream went is known, and not what was asked for.
            asked, whence = event.offset, IoSeekOption.FROM_START
        elif event.layer == "mpiio" and event.cmd != "MPI_SEEK_SET":
            # The offset is what was asked for: where it led to is not recorded.
            result = UNKNOWN
        self.writer.io_seek(at, self.handle(event), asked, whence, result)

    def complete(self, event, at):
        of, matching = self.handle(event), self.matching(event.host, event.span)
        if event.flags & UNFINISHED:
            return
        if event.asynchronous and event.errno == ECANCELED:
            self.writer.io_operation_cancelled(at, of, matching)
            return
        moved = 0 if event.errno or event.kind == "sync" else UNKNOWN if event.bytes is None else max(event.bytes, 0)
        self.writer.io_operation_complete(at, of, moved, matching,
                                          {self.definitions.errno: event.errno} if event.errno else {})

    def create(self, event, key, at):
        handle = self.definitions.handles.get(key)
        if handle is None:
            return
        status = bits(STATUS.get(handle.layer, {}), IoStatusFlag, handle.mode)
        old = self.definitions.handles.get(handle.parent)
        if event.op in DUPLICATES and old is not None:
            self.writer.io_duplicate_handle(at, old.definition, handle.definition, status)
        else:
            creation = bits(CREATION.get(handle.layer, {}), IoCreationFlag, handle.mode)
            self.writer.io_create_handle(at, handle.definition, handle.access, creation, status)

    def handle(self, event):
        return self.definitions.handle_of(event.host, event.handle, event.layer, event.file)

    def matching(self, host, span):
        """An id that no other node has."""
        return (self.definitions.hosts[host] << 53 | span) & UNKNOWN

    def close(self):
        self.leave(lambda _: True)
        self.writer.close()


class Archive(otf2.writer.Writer):
    """Events of a thread are closed when they are complete, so that memory does not grow with the number of threads."""

    def event_writer_from_location(self, location):
        """The definitions, written last, would open each location again, and empty it."""


def main():
    db = connect()
    with closing(Archive(OUTPUT, timer_resolution=1_000_000_000)) as archive:
        archive.creator = "iotrace-bpf"
        definitions = Definitions(db, archive)
        location, current = None, None
        for row in rows(db, CALLS):
            event = Event(*row)
            if (event.host, event.location) != current:
                if location is not None:
                    location.close()
                location, current = Location(archive, definitions, event), (event.host, event.location)
            location.take(event)
        if location is None:
            sys.exit("there are no calls in spans, of which an archive of OTF2 is made: record without --aggregate")
        location.close()
        # Times are ns since 1970; the writer takes the time of writing for that of the first event.
        archive._realtime_timestamp = archive._first_timestamp / 1e9


main()
