"""A log of Darshan, written by its own library, of calls that Darshan would have seen.

Most counters are those of the view `darshan`, of spans that are left after DARSHAN_SEES; EXTRA has the others.
"""

import hashlib
import re
import struct
from collections import Counter, defaultdict

import cffi
from darshan.discover_darshan import find_utils

ffi = cffi.FFI()
ffi.cdef("""
struct job { int64_t uid, start_s, start_ns, end_s, end_ns, nprocs, jobid; char metadata[1024]; };
struct mount { char type[3015]; char path[3015]; };
struct name_ref { void *record; void *table; void *previous; struct name_ref *next; void *rest[5]; };
void *darshan_log_create(const char *, int, int);
int darshan_log_put_job(void *, struct job *);
int darshan_log_put_exe(void *, char *);
int darshan_log_put_mounts(void *, struct mount *, int);
int darshan_log_put_namehash(void *, struct name_ref *);
int darshan_log_put_mod(void *, int, void *, int, int);
void darshan_log_close(void *);
char *darshan_log_get_lib_version(void);
int darshan_accumulator_create(int, int64_t, void **);
int darshan_accumulator_inject(void *, void *, int);
int darshan_accumulator_emit(void *, void *, void *);
int darshan_accumulator_destroy(void *);
extern char *posix_counter_names[], *posix_f_counter_names[], *mpiio_counter_names[], *mpiio_f_counter_names[];
extern char *h5f_counter_names[], *h5f_f_counter_names[], *h5d_counter_names[], *h5d_f_counter_names[];
extern char *pnetcdf_file_counter_names[], *pnetcdf_file_f_counter_names[];
extern char *pnetcdf_var_counter_names[], *pnetcdf_var_f_counter_names[];
extern char *stdio_counter_names[], *stdio_f_counter_names[];
""")
lib = find_utils(ffi, None)

NS = 1_000_000_000
SHARED = -1
HEADER = 4096 - 1080 - 1  # What a header has for the command and the mounts.
LONGEST_NAME = 4096

# By name in the view: id and version of the module, names of its counters in the library, its rows in file_sums,
# and whether the library reduces records of all ranks to one.
MODULES = {
    "POSIX": (1, 4, "posix", "layer = 'syscall'", True),
    "MPIIO": (2, 3, "mpiio", "layer = 'mpiio'", True),
    "H5F": (3, 3, "h5f", "layer = 'hdf5' AND t.object_id IS NULL", False),
    "H5D": (4, 2, "h5d", "layer = 'hdf5' AND class = 'dataset'", False),
    "PNETCDF_FILE": (5, 3, "pnetcdf_file", "layer = 'pnetcdf'", False),
    "PNETCDF_VAR": (6, 1, "pnetcdf_var", "layer = 'pnetcdf' AND class = 'variable'", False),
    "STDIO": (9, 2, "stdio", "layer = 'stdio'", True),
}
TRACES = {"POSIX": (10, 1, "syscall"), "MPIIO": (11, 2, "mpiio")}
HEATMAP, HEATMAP_VERSION = 15, 1
# Names that stand for records in readers.
HEATMAPS = {"syscall": ("heatmap:POSIX", 16592106915301738621), "stdio": ("heatmap:STDIO", 3989511027826779520),
            "mpiio": ("heatmap:MPIIO", 3668870418325792824)}
BIN_SECONDS, MOST_BINS = 0.1, 200

# Directories that Darshan leaves out unless it is configured otherwise.
LEFT_OUT = ["/etc/", "/dev/", "/usr/", "/bin/", "/boot/", "/lib/", "/opt/", "/sbin/", "/sys/", "/proc/", "/var/"]

# The C library calls of the program and of libraries that succeeded: system calls that a function on streams makes are
# none of these, those that threads of the C library make for asynchronous I/O are.
DARSHAN_SEES = """
CREATE TABLE shifts AS
  WITH starts AS (SELECT d.host, min(d.t0_wall_ns - d.later_ns + coalesce(c.offset_ns, 0)) AS wall_ns
                  FROM datasets d LEFT JOIN v_clocks c ON c.host IS NOT DISTINCT FROM d.host GROUP BY d.host)
  SELECT host, wall_ns, wall_ns - min(wall_ns) OVER () AS shift_ns FROM starts;
ALTER VIEW spans RENAME TO all_spans;
CREATE TABLE spans AS
  SELECT s.* REPLACE (s.start_ns + coalesce(shift_ns, 0) AS start_ns,
    -- Darshan takes what a call of MPI asks for, and not its status.
    if(s.layer = 'mpiio' AND s.kind IN ('read', 'write'), coalesce(s.req_bytes, s.bytes), s.bytes) AS bytes)
  FROM all_spans s LEFT JOIN shifts t ON t.host IS NOT DISTINCT FROM s.host
       LEFT JOIN (SELECT host, span_id FROM all_spans
                  WHERE layer = 'stdio' AND op NOT LIKE '%aio%' AND op <> 'lio_listio') p
         ON p.host IS NOT DISTINCT FROM s.host AND p.span_id = s.parent_id
  WHERE s.errno = 0 AND s.flags & 64 = 0 AND s.layer IN ('syscall', 'stdio', 'mpiio', 'hdf5', 'pnetcdf')
    AND NOT (s.layer = 'syscall' AND p.span_id IS NOT NULL)
    AND NOT (s.layer = 'stdio' AND (s.op LIKE '%aio%' OR s.op = 'lio_listio'));
CREATE TABLE ranks AS
  WITH io AS (SELECT DISTINCT host, process_ix FROM file_sums WHERE file_id IS NOT NULL),
       known AS (SELECT p.host, p.process_ix, p.rank,
                        row_number() OVER (ORDER BY p.host, p.start_ns, p.process_ix) - 1 AS nth,
                        bool_or(p.rank IS NOT NULL) OVER () AS ranked
                 FROM processes p SEMI JOIN io ON io.host IS NOT DISTINCT FROM p.host AND io.process_ix = p.process_ix)
  SELECT host, process_ix, if(ranked, rank, nth)::BIGINT AS rank FROM known WHERE NOT ranked OR rank IS NOT NULL;
CREATE TABLE named AS
  SELECT host, file_id, coalesce(path, 'dev ' || (dev >> 20) || ':' || (dev & 1048575) || ' inode ' || ino) AS path,
         coalesce(nullif(blksize, 0), 4096) AS alignment
  FROM files WHERE role NOT IN ('proc', 'socket', 'pipe');
-- Reads and writes of system calls with the last byte before, which is 0 again after each open and close of the file by
-- the process. Those that moved nothing count. None where calls are in sums: these have no order.
CREATE TABLE accesses AS
  WITH calls AS (
    SELECT *, start_ns + dur_ns AS end_ns FROM spans
    WHERE layer = 'syscall' AND layer_top AND file_id IS NOT NULL AND (
      kind IN ('open', 'close') OR kind IN ('read', 'write') AND "offset" IS NOT NULL AND bytes IS NOT NULL)),
  eras AS (SELECT *, sum((kind IN ('open', 'close'))::INT) OVER (
             PARTITION BY host, process_ix, file_id ORDER BY end_ns, span_id) AS era FROM calls)
  SELECT host, process_ix, layer, file_id, object_id, kind, "offset",
         coalesce(lag("offset" + bytes - 1) OVER (
           PARTITION BY host, process_ix, file_id, kind, era ORDER BY end_ns, span_id), 0) AS last,
         lag(kind) OVER (PARTITION BY host, process_ix, file_id ORDER BY end_ns, span_id) AS last_kind
  FROM eras WHERE kind IN ('read', 'write')
    AND NOT EXISTS (FROM file_rollup WHERE layer = 'syscall' AND calls_error IS NULL);
"""

# Rows of a table with the rank, the path and the object they are about.
WHERE = """
  FROM {table} t JOIN ranks r ON r.host IS NOT DISTINCT FROM t.host AND r.process_ix = t.process_ix
       JOIN named n ON n.host IS NOT DISTINCT FROM t.host AND n.file_id = t.file_id
       LEFT JOIN (SELECT host, object_id, name AS object, class, dims, chunk, elem_size FROM objects) o
         ON o.host IS NOT DISTINCT FROM t.host AND o.object_id = t.object_id
"""

VARIABLE = "class = 'variable'"
PUTS = {f"{direction.upper()}_VAR{form.upper()}":
        f"sum(calls) FILTER (op SIMILAR TO 'ncmpi_{direction}_var{form}(_.*)?')"
        for direction in ("put", "get", "iput", "iget", "bput")
        for form in ("", "1", "a", "s", "m", "n", *(("d",) if direction in ("put", "get") else ()))}
ASYNCHRONOUS, COLLECTIVE = "op SIMILAR TO 'ncmpi_(iput|iget|bput)_.*'", "op LIKE '%\\_all' ESCAPE '\\'"


def accesses(kind):
    """Reads or writes of variables, each in one of three."""
    name = {"read": "READS", "write": "WRITES"}[kind]
    return {f"NB_{name}": f"sum(calls) FILTER (kind = '{kind}' AND {ASYNCHRONOUS})",
            f"COLL_{name}": f"sum(calls) FILTER (kind = '{kind}' AND {COLLECTIVE} AND NOT {ASYNCHRONOUS})",
            f"INDEP_{name}": f"sum(calls) FILTER (kind = '{kind}' AND NOT {COLLECTIVE} AND NOT {ASYNCHRONOUS})"}


# Counters that the view has not, or has by another definition: by module and table, in SQL.
SLOWEST = {f"MAX_{kind.upper()}_TIME_SIZE":
           f"arg_max(bytes, net_ns) FILTER (layer_top AND kind = '{kind}' AND bytes IS NOT NULL)"
           for kind in ("read", "write")}
EXTRA = {
    ("POSIX", "file_sums"): {
        "DUPS": "sum(calls) FILTER (op IN ('dup', 'dup2', 'dup3'))",
        "OPENS": "sum(calls) FILTER (kind = 'open' OR op IN ('dup', 'dup2', 'dup3'))",
        "RENAME_SOURCES": "sum(calls) FILTER (op LIKE 'rename%')",
        "FILE_ALIGNMENT": "any_value(alignment)",
    },
    ("POSIX", "accesses"): {
        **{f"SEQ_{kind.upper()}S": f"count(*) FILTER (kind = '{kind}' AND \"offset\" > last)"
           for kind in ("read", "write")},
        **{f"CONSEC_{kind.upper()}S": f"count(*) FILTER (kind = '{kind}' AND \"offset\" = last + 1)"
           for kind in ("read", "write")},
        "RW_SWITCHES": "count(*) FILTER (kind <> last_kind)",
        "FILE_NOT_ALIGNED": 'count(*) FILTER ("offset" % alignment <> 0)',
    },
    ("POSIX", "spans"): SLOWEST,
    ("MPIIO", "spans"): SLOWEST,
    ("H5D", "spans"): {**SLOWEST, "USE_MPIIO_COLLECTIVE": "max(flags & 1)"},
    ("PNETCDF_VAR", "spans"): SLOWEST,
    ("STDIO", "file_sums"): {"FDOPENS": "sum(calls) FILTER (op = 'fdopen')"},
    ("MPIIO", "file_sums"): {"VIEWS": "sum(calls) FILTER (op = 'MPI_File_set_view')"},
    ("MPIIO", "handles"): {
        "HINTS": "count(*) FILTER (cardinality(hints) > 0)",
        "MODE": "arg_max(mode, handle_id)",
        # Opened by one rank alone; those that were open before are none (bit 0).
        "INDEP_OPENS": "count(*) FILTER (comm_size = 1 AND flags & 1 = 0)",
        "COLL_OPENS": "count(*) FILTER (coalesce(comm_size, 2) <> 1 AND flags & 1 = 0)",
    },
    ("H5F", "file_sums"): {
        "USE_MPIIO": "(EXISTS (FROM file_sums m WHERE m.layer = 'mpiio'"
                     " AND m.host IS NOT DISTINCT FROM any_value(t.host) AND m.file_id = any_value(t.file_id)))::INT"},
    ("H5D", "file_sums"): {
        "FLUSHES": "sum(calls) FILTER (op = 'H5Dflush')",
        "DATASPACE_NDIMS": "max(len(dims))",
        "DATASPACE_NPOINTS": "max(list_product(dims))",
        "DATATYPE_SIZE": "max(elem_size)",
        # From the last dimension, which changes fastest.
        **{f"CHUNK_SIZE_D{n}": f"max(chunk[-{n}])" for n in range(1, 6)},
    },
    ("PNETCDF_FILE", "file_sums"): {
        "CREATES": "sum(calls) FILTER (op = 'ncmpi_create')",
        "OPENS": "sum(calls) FILTER (op = 'ncmpi_open')",
        "REDEFS": "sum(calls) FILTER (op = 'ncmpi_redef')",
        "INDEP_WAITS": "sum(calls) FILTER (op = 'ncmpi_wait')",
        "COLL_WAITS": "sum(calls) FILTER (op = 'ncmpi_wait_all')",
        "SYNCS": "sum(calls) FILTER (kind = 'sync')",
        "BYTES_READ": "sum(bytes) FILTER (kind = 'read')",
        "BYTES_WRITTEN": "sum(bytes) FILTER (kind = 'write')",
        "F_WAIT_START_TIMESTAMP": "min(first_ns) FILTER (op LIKE 'ncmpi_wait%') / 1e9",
        "F_WAIT_END_TIMESTAMP": "max(last_ns) FILTER (op LIKE 'ncmpi_wait%') / 1e9",
        "F_WAIT_TIME": "sum(dur_ns) FILTER (op LIKE 'ncmpi_wait%') / 1e9",
    },
    ("PNETCDF_VAR", "file_sums"): {
        **accesses("read"), **accesses("write"), **PUTS,
        "NDIMS": "max(len(dims))", "NPOINTS": "max(list_product(dims))", "DATATYPE_SIZE": "max(elem_size)",
    },
}
COMMON = re.compile(r"(ACCESS|STRIDE)\d_(ACCESS|STRIDE|COUNT)")


def check(result, what):
    if result < 0:
        sys.exit(f"the library of Darshan cannot write {what}")


def counter_names(prefix):
    """The counters of a module, as the library orders them, without the module's name."""
    names = getattr(lib, prefix + "_counter_names")
    found = []
    while not (name := ffi.string(names[len(found)]).decode()).endswith("NUM_INDICES"):
        found.append(name)
    return found


def record_id(name):
    return int.from_bytes(hashlib.blake2b(name.encode(), digest_size=8).digest(), "little")


class Names:
    """Names of records, by id."""

    def __init__(self):
        self.all = {}

    def of(self, name):
        name = plain(name).encode()[:LONGEST_NAME].decode(errors="ignore")
        number = record_id(name)
        self.all[number] = name
        return number

    def write(self, log):
        references, keep = ffi.new("struct name_ref[]", len(self.all)), []
        for ix, (number, name) in enumerate(self.all.items()):
            keep.append(ffi.new("char[]", struct.pack("<Q", number) + name.encode()))
            references[ix].record = keep[-1]
            if ix + 1 < len(self.all):
                references[ix].next = ffi.addressof(references, ix + 1)
        check(lib.darshan_log_put_namehash(log, references if self.all else ffi.NULL), "names")


class Merged:
    """Counters of one record, of the processes of a rank."""

    def __init__(self):
        self.values = {}
        self.common = {"ACCESS": Counter(), "STRIDE": Counter()}

    def add(self, values):
        for name, value in values.items():
            if COMMON.fullmatch(name):
                continue
            old = self.values.get(name)
            if old is not None:
                least, most = name.endswith("START_TIMESTAMP"), name.endswith("END_TIMESTAMP") or "MAX_" in name
                value = min(old, value) if least else max(old, value) if most else old + value
            self.values[name] = value
        for word, counts in self.common.items():
            for n in range(1, 5):
                if f"{word}{n}_COUNT" in values:
                    counts[values[f"{word}{n}_{word}"]] += values[f"{word}{n}_COUNT"]

    def complete(self):
        for word, counts in self.common.items():
            ordered = sorted(counts.items(), key=lambda pair: (-pair[1], -pair[0]))
            for n, (value, count) in enumerate(ordered[:4], 1):
                self.values[f"{word}{n}_{word}"], self.values[f"{word}{n}_COUNT"] = value, count
        return self.values


class Module:
    """The records of a module."""

    def __init__(self, db, name):
        self.name = name
        self.id, self.version, library, self.rows, self.reduces = MODULES[name]
        prefix = {"MPIIO": "MPIIO_"}.get(name, name + "_")
        self.counters = [name.removeprefix(prefix) for name in counter_names(library)]
        self.fcounters = [name.removeprefix(prefix) for name in counter_names(library + "_f")]
        self.records = defaultdict(Merged)
        self.read(db)

    def read(self, db):
        kept = {"H5D": " AND class = 'dataset'", "PNETCDF_VAR": f" AND {VARIABLE}"}.get(self.name, "")
        query = f"""SELECT r.rank, n.path, any_value(object),
                           map(list(replace(counter, module || '_', '')), list(value))
                    {WHERE.format(table="darshan")} WHERE module = '{self.name}'{kept}
                    GROUP BY r.rank, n.path, t.host, t.process_ix, t.file_id, t.object_id ORDER BY ALL"""
        known = {*self.counters, *self.fcounters}
        for rank, path, name, values in rows(db, query):
            self.records[path, name, rank].add({key: value for key, value in values.items() if key in known})
        for (module, table), counters in EXTRA.items():
            if module == self.name:
                self.read_extra(db, table, counters)
        if self.name == "POSIX":
            self.read_strides(db)

    def read_extra(self, db, table, counters):
        columns = ", ".join(f'coalesce({sql}, 0) AS "{name}"' for name, sql in counters.items())
        name = "object" if self.name in ("H5D", "PNETCDF_VAR") else "NULL::VARCHAR"
        query = f"""SELECT r.rank, n.path, {name} AS name, {columns} {WHERE.format(table=table)}
                    WHERE {self.rows} GROUP BY r.rank, n.path, name ORDER BY ALL"""
        for rank, path, name, *values in rows(db, query):
            if table == "file_sums" or (path, name, rank) in self.records:
                self.records[path, name, rank].values.update(zip(counters, values))

    def read_strides(self, db):
        """Gaps between accesses, where these have an order; none from the first byte, and none that is empty."""
        query = f"""SELECT r.rank, n.path, if(last > 0, greatest("offset" - last - 1, 0), 0) AS gap, count(*)
                    {WHERE.format(table="accesses")} GROUP BY r.rank, n.path, gap ORDER BY ALL"""
        found = defaultdict(Counter)
        for rank, path, gap, number in rows(db, query):
            found[path, None, rank][gap] += number
        for key, gaps in found.items():
            self.records[key].common["STRIDE"] = Counter({gap: number for gap, number in gaps.items() if gap})

    def packed(self, key, names):
        """A record as the log has it."""
        path, name, rank = key
        values = self.records[key].complete()
        number = names.of(path if name is None else f"{path}:{name}")
        around = struct.pack("<Q", names.of(path)) if self.name in ("H5D", "PNETCDF_VAR") else b""
        whole = [max(min(int(values.get(counter) or 0), 2**63 - 1), -2**63) for counter in self.counters]
        real = [float(values.get(counter) or 0) for counter in self.fcounters]
        return (struct.pack("<Qq", number, rank) + around + struct.pack(f"<{len(whole)}q", *whole)
                + struct.pack(f"<{len(real)}d", *real))

    def write(self, log, names, nprocs):
        subjects = defaultdict(list)
        for path, name, rank in self.records:
            subjects[path, name].append(rank)
        for (path, name), ranks in subjects.items():
            packed = [self.packed((path, name, rank), names) for rank in sorted(ranks)]
            if self.reduces and nprocs > 1 and len(packed) == nprocs:
                packed = [self.reduced(packed, nprocs)]
            for record in packed:
                put(log, self.id, record, self.version)

    def reduced(self, packed, nprocs):
        """One record of all ranks, as the library makes it."""
        accumulator = ffi.new("void **")
        check(lib.darshan_accumulator_create(self.id, nprocs, accumulator), f"records of {self.name}")
        check(lib.darshan_accumulator_inject(accumulator[0], ffi.from_buffer(b"".join(packed)), len(packed)),
              f"records of {self.name}")
        metrics, whole = ffi.new("char[4096]"), ffi.new("char[]", len(packed[0]))
        check(lib.darshan_accumulator_emit(accumulator[0], metrics, whole), f"records of {self.name}")
        lib.darshan_accumulator_destroy(accumulator[0])
        return packed[0][:8] + struct.pack("<q", SHARED) + bytes(ffi.buffer(whole))[16:]


def put(log, module, data, version):
    if data:
        check(lib.darshan_log_put_mod(log, module, ffi.from_buffer(bytearray(data)), len(data), version), "records")


ACCESSES = WHERE.format(table="spans") + """
  WHERE layer_top AND layer = '{layer}' AND kind IN ('read', 'write') AND bytes > 0
"""


def write_traces(db, log, names):
    """DXT: each read and write, as it is read from the dataset."""
    for module, version, layer in TRACES.values():
        accesses = ACCESSES.format(layer=layer)
        counted = f"""SELECT n.path, r.rank, count(*) FILTER (kind = 'write'), count(*) FILTER (kind = 'read'),
                             any_value(t.host) {accesses} GROUP BY n.path, r.rank"""
        counts = {row[:2]: row[2:] for row in rows(db, counted)}
        query = f"""SELECT n.path, r.rank, coalesce("offset", -1), bytes, start_ns, dur_ns {accesses}
                    ORDER BY n.path, r.rank, kind DESC, start_ns, span_id"""
        last, segments = None, bytearray()
        for path, rank, offset, length, start, duration in rows(db, query):
            if (path, rank) != last or len(segments) >= 1 << 20:
                put(log, module, segments, version)
                segments = bytearray()
            if (path, rank) != last:
                writes, reads, host = counts[path, rank]
                host = plain(host or "").encode()[:63]
                segments += struct.pack("<Qqq64sqq", names.of(path), rank, 0, host, writes, reads)
                last = (path, rank)
            segments += struct.pack("<qqdd", offset, length, start / NS, (start + duration) / NS)
        put(log, module, segments, version)


def write_heatmaps(db, log, end_ns):
    """Bytes over time, by module and rank."""
    seconds = BIN_SECONDS
    while end_ns / NS / seconds >= MOST_BINS:
        seconds *= 2
    bins, width = int(end_ns / NS / seconds) + 1, int(seconds * NS)
    for layer, (_, number) in HEATMAPS.items():
        query = f"""
          WITH calls AS (SELECT r.rank, kind, bytes, greatest(start_ns, 0) AS s, greatest(dur_ns, 1) AS d
                         {ACCESSES.format(layer=layer)}),
               parts AS (SELECT *, unnest(range(s // {width}, (s + d - 1) // {width} + 1)) AS bin FROM calls)
          SELECT rank, kind, least(bin, {bins - 1}) AS bin,
                 sum(bytes * ((least(s + d, (bin + 1) * {width}) - greatest(s, bin * {width}))::DOUBLE / d))
          FROM parts GROUP BY ALL ORDER BY ALL"""
        maps = defaultdict(lambda: {"write": [0.0] * bins, "read": [0.0] * bins})
        for rank, kind, bin_, moved in rows(db, query):
            maps[rank][kind][bin_] += moved
        for rank, both in sorted(maps.items()):
            values = [value for kind in ("write", "read") for value in rounded(both[kind])]
            put(log, HEATMAP, struct.pack("<QqdqQQ", number, rank, seconds, bins, 0, 0)
                + struct.pack(f"<{2 * bins}q", *values), HEATMAP_VERSION)


def rounded(values):
    """Whole numbers with the same sum."""
    total, before = 0.0, 0
    for value in values:
        total += value
        yield round(total) - before
        before = round(total)


def one(db, query):
    return next(rows(db, query), (None,))[0]


def write_header(db, log, end_ns, nprocs):
    start = one(db, "SELECT min(wall_ns) FROM shifts") or 0
    job = one(db, "SELECT job_id FROM processes WHERE job_id IS NOT NULL ORDER BY rank NULLS LAST, process_ix") or ""
    digits = re.match(r"\d+", job)
    number = int(digits[0]) if digits else one(db, "SELECT pid FROM processes ORDER BY process_ix") or 0
    uid = one(db, "SELECT uid FROM processes JOIN ranks USING (host, process_ix) ORDER BY ranks.rank") or 0
    end = start + end_ns
    version = ffi.string(lib.darshan_log_get_lib_version()).decode()
    header = ffi.new("struct job *", {
        "uid": uid, "start_s": start // NS, "start_ns": start % NS, "end_s": end // NS, "end_ns": end % NS,
        "nprocs": nprocs, "jobid": min(number, 2**63 - 1),
        "metadata": f"lib_ver={version}\nwriter=iotrace-bpf\n".encode()})
    check(lib.darshan_log_put_job(log, header), "the job")
    command = one(db, "SELECT command FROM v_commands JOIN ranks USING (host, process_ix) ORDER BY ranks.rank") or ""
    check(lib.darshan_log_put_exe(log, ffi.new("char[]", plain(command).encode()[:HEADER // 2])), "the command")
    found, room = [], HEADER // 2
    for fstype, path in rows(db, """SELECT any_value(fstype), path FROM mounts WHERE path <> ''
                                    GROUP BY path ORDER BY length(path) DESC, path"""):
        fstype, path = plain(fstype).encode(), plain(path).encode()
        room -= len(fstype) + len(path) + 2
        if room < 0:
            break
        found.append({"type": fstype, "path": path})
    check(lib.darshan_log_put_mounts(log, ffi.new("struct mount[]", found or 1), len(found)), "mounts")


def main():
    db = connect(SCRATCH + "/calls.duckdb")
    db.execute(DARSHAN_SEES)
    db.execute("DELETE FROM named WHERE " + " OR ".join(f"starts_with(path, '{path}')" for path in LEFT_OUT))
    nprocs = one(db, "SELECT max(greatest(rank + 1, coalesce(world_size, 0))) FROM ranks JOIN"
                     " (SELECT host, process_ix, world_size FROM processes) USING (host, process_ix)")
    if nprocs is None:
        sys.exit("there are no calls on files, of which a log of Darshan is made")
    last = """SELECT greatest(coalesce(max(last_ns), 0), coalesce((SELECT max(start_ns + dur_ns) FROM spans), 0))
              FROM file_sums"""
    ended = one(db, "SELECT max(TRY_CAST(value AS BIGINT) + shift_ns) FROM meta JOIN shifts USING (host)"
                    " WHERE key = 'end_ns'")
    end_ns = max(one(db, last), ended or 0)
    modules = [Module(db, name) for name in MODULES]
    names = Names()
    for module in modules:
        for path, name, _ in module.records:
            names.of(path)
            if name is not None:
                names.of(f"{path}:{name}")
    for (path,) in rows(db, "SELECT DISTINCT path FROM named ORDER BY path"):
        names.of(path)
    names.all.update({number: name for name, number in HEATMAPS.values()})
    log = lib.darshan_log_create(OUTPUT.encode(), 0, 0)
    if log == ffi.NULL:
        sys.exit("the library of Darshan cannot create a log")
    write_header(db, log, end_ns, nprocs)
    names.write(log)
    for module in modules:
        module.write(log, names, nprocs)
    write_traces(db, log, names)
    write_heatmaps(db, log, end_ns)
    lib.darshan_log_close(log)


main()
