"""Compares what otf2-print shows of an archive with the rows of the dataset that it is of: `otf2_counts.py ARCHIVE`, in
the directory of the dataset. Prints the number of events of each kind as JSON."""

import collections
import glob
import json
import re
import subprocess
import sys

import duckdb
import otf2
from otf2.enums import GroupType

db = duckdb.connect()
db.execute(open(glob.glob("**/views.sql", recursive=True)[0]).read())
archive = sys.argv[1] + "/traces.otf2"


def printed(*options):
    out = subprocess.run(["otf2-print", *options, archive], check=True, capture_output=True, text=True)
    return out.stdout.splitlines()


def wanted(query):
    return db.execute(query).fetchone()[0]


IO = "layer IN ('syscall', 'stdio', 'mpiio', 'hdf5', 'netcdf', 'pnetcdf')"
MOVES = f"{IO} AND layer_top AND kind IN ('read', 'write', 'sync')"
DONE = f"{IO} AND layer_top AND errno = 0 AND flags & 64 = 0"
HANDLES = f"""FROM handles h JOIN spans s ON s.host = h.host AND s.span_id = h.%s
              LEFT JOIN handles p ON p.host = h.host AND p.handle_id = h.parent_handle_id WHERE h.{IO}"""
DUPLICATE = "s.op IN ('dup', 'dup2', 'dup3', 'fcntl') AND p.handle_id IS NOT NULL"
SEEKS = f"""{DONE} AND kind = 'seek' AND "offset" IS NOT NULL AND (cmd LIKE '%SEEK%' OR layer = 'stdio')"""
LOCKS = "flags & 64 = 0 AND (op = 'flock' AND cmd IS NOT NULL OR cmd SIMILAR TO 'F_(OFD_)?SETLKW?' AND arg IN (0, 1, 2))"
TAKES = "(cmd IN ('LOCK_SH', 'LOCK_EX') OR cmd LIKE 'F%' AND arg < 2)"
EVENTS = {
    "ENTER": "SELECT count(*) FROM spans",
    "LEAVE": "SELECT count(*) FROM spans",
    "IO_OPERATION_BEGIN": f"SELECT count(*) FROM spans WHERE {MOVES}",
    "IO_OPERATION_ISSUED": f"SELECT count(*) FROM spans WHERE {MOVES} AND flags & 4 <> 0",
    "IO_OPERATION_COMPLETE":
        f"SELECT count(*) FROM spans WHERE {MOVES} AND flags & 64 = 0 AND NOT (flags & 4 <> 0 AND errno = 125)",
    "IO_OPERATION_CANCELLED":
        f"SELECT count(*) FROM spans WHERE {MOVES} AND flags & 64 = 0 AND flags & 4 <> 0 AND errno = 125",
    "IO_OPERATION_TEST": """SELECT count(*) FROM spans t JOIN spans o ON o.host = t.host AND o.span_id = t.async_id
                            WHERE t.op LIKE 'MPI%' AND t.arg = 0 AND t.flags & 4 = 0 AND o.flags & 4 <> 0""",
    "IO_CREATE_HANDLE": f"SELECT count(*) {HANDLES % 'open_span_id'} AND NOT ({DUPLICATE})",
    "IO_DUPLICATE_HANDLE": f"SELECT count(*) {HANDLES % 'open_span_id'} AND {DUPLICATE}",
    "IO_DESTROY_HANDLE": f"SELECT count(*) {HANDLES % 'close_span_id'}",
    "IO_SEEK": f"SELECT count(*) FROM spans WHERE {SEEKS}",
    "IO_ACQUIRE_LOCK": f"SELECT count(*) FROM spans WHERE {LOCKS} AND {TAKES} AND errno = 0",
    "IO_TRY_LOCK": f"SELECT count(*) FROM spans WHERE {LOCKS} AND {TAKES} AND errno <> 0",
    "IO_RELEASE_LOCK": f"SELECT count(*) FROM spans WHERE {LOCKS} AND NOT {TAKES} AND errno = 0",
    "IO_CHANGE_FLAGS": f"SELECT count(*) FROM spans WHERE {DONE} AND cmd IN ('F_SETFL', 'F_SETFD')",
    "IO_DELETE_FILE": f"""SELECT count(*) FROM spans WHERE {DONE} AND coalesce(file_id, path_id) IS NOT NULL AND op IN
                          ('unlink', 'unlinkat', 'rmdir', 'remove', 'MPI_File_delete', 'H5Fdelete', 'nc_delete',
                           'ncmpi_delete', 'io_uring.unlinkat')""",
}
DEFINITIONS = {
    "IO_PARADIGM": "SELECT 6",
    "LOCATION": "SELECT count(DISTINCT (host, span_id >> 33)) FROM spans",
    "SYSTEM_TREE_NODE": "SELECT 1 + count(DISTINCT host) FROM spans",
}

events, moved, last, stacks = collections.Counter(), collections.Counter(), {}, collections.defaultdict(list)
modes, seeks, locks, collective = {}, collections.Counter(), collections.Counter(), collections.Counter()
for line in printed():
    fields = re.match(r"([A-Z_]+) +(\d+) +(\d+)  (.*)", line)
    if not fields:
        continue
    name, location, at, rest = fields[1], fields[2], int(fields[3]), fields[4]
    events[name] += 1
    assert at >= last.get(location, 0), line
    last[location] = at
    if name == "ENTER":
        stacks[location].append(rest)
    elif name == "LEAVE":
        assert stacks[location].pop() == rest, line
    elif name == "IO_SEEK":
        asked, whence, result = re.search(r"Request: (-?\d+), Whence: (\w+), Offset Result: (\d+)", rest).groups()
        seeks[int(asked), whence, int(result)] += 1
    elif name.endswith("_LOCK"):
        locks[name, re.search(r"Type: (\w+)", rest)[1]] += 1
    elif name == "IO_OPERATION_BEGIN":
        modes[re.search(r"Matching Id: (\d+)", rest)[1]] = re.search(r"Mode: (\w+)", rest)[1]
        if "COLLECTIVE" in re.search(r"Flags: (NONE|\{.*?\})", rest)[1]:
            collective[int(re.search(r'Handle: ".*?" <(\d+)>', rest)[1]), int(location)] += 1
    elif name == "IO_OPERATION_COMPLETE":
        result = int(re.search(r"Bytes Result: (\d+)", rest)[1])
        if result != 2**64 - 1:
            moved[modes[re.search(r"Matching Id: (\d+)", rest)[1]]] += result
assert not any(stacks.values()), stacks
for name, query in EVENTS.items():
    assert events[name] == wanted(query), (name, events[name], wanted(query))
for kind in ("read", "write"):
    bytes_ = wanted(f"SELECT coalesce(sum(bytes), 0) FROM spans WHERE {MOVES} AND kind = '{kind}' AND errno = 0")
    assert moved[kind.upper()] == bytes_ > 0, (kind, moved, bytes_)
# Of streams only where they went is known, where they did not seek from where they were or from the start.
wanted_seeks = {row[:3]: row[3] for row in db.execute(f"""
  SELECT coalesce(arg, "offset"), CASE WHEN arg IS NULL OR cmd LIKE '%SET' THEN 'FROM_START' WHEN cmd LIKE '%CUR' THEN 'FROM_CURRENT'
           WHEN cmd LIKE '%END' THEN 'FROM_END' ELSE cmd[6:] END,
         if(cmd IN ('MPI_SEEK_CUR', 'MPI_SEEK_END'), 18446744073709551615, "offset"::HUGEINT), count(*)
  FROM spans WHERE {SEEKS} GROUP BY ALL""").fetchall()}
assert seeks == wanted_seeks, (seeks - collections.Counter(wanted_seeks), wanted_seeks)
for name, kinds in {"ACQUIRE": TAKES + " AND errno = 0", "TRY": TAKES + " AND errno <> 0"}.items():
    for kind, taken in {"SHARED": "cmd = 'LOCK_SH' OR arg = 0", "EXCLUSIVE": "cmd = 'LOCK_EX' OR cmd LIKE 'F%' AND arg = 1"}.items():
        number = wanted(f"SELECT count(*) FROM spans WHERE {LOCKS} AND {kinds} AND ({taken})")
        assert locks[f"IO_{name}_LOCK", kind] == number, (name, kind, locks, number)
unknown = set(events) - set(EVENTS)
assert not unknown, unknown

definitions = collections.Counter(line.split()[0] for line in printed("-G") if line.strip())
for name, query in DEFINITIONS.items():
    assert definitions[name] == wanted(query), (name, definitions[name], wanted(query))
assert definitions["IO_HANDLE"] >= wanted(f"SELECT count(*) FROM handles WHERE {IO}"), definitions
parents = wanted(f"""SELECT count(*) FROM handles h JOIN handles p
                       ON p.host = h.host AND p.handle_id = h.parent_handle_id
                     WHERE h.{IO} AND p.{IO}""")
assert sum(line.startswith("IO_HANDLE ") and "Parent: UNDEFINED" not in line for line in printed("-G")) == parents

# Communicators, as the module of OTF2 reads them: which ranks opened which file together.
opened, members = collections.Counter(), {}
with otf2.reader.open(archive) as trace:
    for handle in trace.definitions.io_handles:
        group = handle.comm and handle.comm.group
        members[handle._ref] = group and [location._ref for location in group.members]
        if handle.io_paradigm.identification == "MPI-IO" and group:
            ranks = [int(re.match(r"MPI Rank (\d+)", location.group.name)[1]) for location in group.members]
            assert (group.group_type == GroupType.COMM_SELF) == (ranks == []), group
            opened[handle.file.name, tuple(ranks)] += 1
wanted_opens = collections.Counter()
for path, size, ranks in db.execute("""
  SELECT path, comm_size, [r.rank FOR r IN by_rank] FROM v_collectives
  WHERE op = 'MPI_File_open' AND comm_size >= ranks""").fetchall():
    wanted_opens[path, () if size == 1 else tuple(ranks)] += len(ranks)
assert opened == wanted_opens, (opened, wanted_opens)
# A collective operation is on a handle of a communicator that its thread's process is of.
collective_io = wanted(f"SELECT count(*) FROM spans WHERE {MOVES} AND flags & 1 <> 0")
assert sum(collective.values()) == collective_io, (collective, collective_io)
for (handle, location), number in collective.items():
    assert members[handle] is None or members[handle] == [] or location in members[handle], (handle, location, number)
events["collective operations with a communicator"] = sum(
    number for (handle, _), number in collective.items() if members[handle] is not None)
print(json.dumps(events))
