"""Makes a dataset of many ranks: synthetic.py FIXTURE OUT RANKS STEPS [NODE]. Tables have the schema of the fixture's. Of the
nodes of one job, numbered from 0, each has so many ranks, and began later than the one before.

In each step every rank makes a collective write (with two system calls inside it) at its own time, and reads back alone.
"""

import glob
import os
import sys

import pyarrow as pa
import pyarrow.parquet as pq

STEP_NS = 10_000_000
LATER_NS = 3_000_000


def span(rank, seq, layer, op, kind, start, dur, **more):
    row = {"span_id": ((rank + 1) << 33) + seq, "root_id": ((rank + 1) << 33) + seq, "layer": layer, "op": op,
           "kind": kind, "depth": 0, "layer_top": True, "process_ix": rank + 1, "pid": 1000 + rank, "tid": 1000 + rank, "rank": rank,
           "cpu": 0, "start_ns": start, "dur_ns": dur, "self_ns": dur, "file_id": 1 + rank % 3, "errno": 0, "flags": 0}
    return {**row, **more}


def spans(rank, steps):
    for step in range(steps):
        seq = step * 4
        start = step * STEP_NS + (rank * 7919 + step * 104_729) % (STEP_NS // 2)
        outer = ((rank + 1) << 33) + seq
        inside = {"parent_id": outer, "root_id": outer, "depth": 1}
        yield span(rank, seq, "mpiio", "MPI_File_write_at_all", "write", start, 900_000, self_ns=100_000, bytes=12_288,
                   coll_id=77 + step, flags=1, file_id=1)
        yield span(rank, seq + 1, "syscall", "pwrite64", "write", start + 1000, 500_000, bytes=8192, cpu_ns=100_000, device_ns=300_000, **inside)
        yield span(rank, seq + 2, "syscall", "pwrite64", "write", start + 600_000, 300_000, bytes=4096, cpu_ns=300_000, **inside)
        yield span(rank, seq + 3, "syscall", "pread64", "read", start + 2_000_000, 1000 * (1 + rank % 50), bytes=100 + rank)


def write(fixture, out, table, host, rows):
    model = sorted(glob.glob(f"{fixture}/{table}-*.parquet"))[0]
    about = {key: value for key, value in pq.read_metadata(model).metadata.items() if key.startswith(b"iotrace.")}
    about[b"iotrace.host"] = host.encode()
    schema = pq.read_schema(model).with_metadata(about)
    columns = {name: [row.get(name) for row in rows] for name in schema.names}
    columns["host"] = [host] * len(rows)
    plain = [pa.array(columns[f.name], type=f.type.value_type).dictionary_encode() if pa.types.is_dictionary(f.type)
             else pa.array(columns[f.name], type=f.type) for f in schema]
    arrays = [array.cast(f.type) for array, f in zip(plain, schema)]
    pq.write_table(pa.table(arrays, schema=schema), f"{out}/{table}-00001.parquet", compression="zstd")


def main(fixture, out, ranks, steps, node=0):
    os.makedirs(out)
    host, first = f"synthetic{node}", node * ranks
    tables = {os.path.basename(path).rsplit("-", 1)[0] for path in glob.glob(f"{fixture}/*.parquet")}
    rows = {table: [] for table in tables}
    rows["spans"] = [{**row, "rank": first + row["rank"]} for rank in range(ranks) for row in spans(rank, steps)]
    rows["processes"] = [{"process_ix": r + 1, "pid": 1000 + r, "ppid": 1, "start_ns": 0, "exe": "/bin/model", "cmdline": ["model"],
                          "uid": 0, "rank": first + r, "world_size": ranks} for r in range(ranks)]
    rows["files"] = [{"file_id": n, "dev": 1, "ino": n, "gen": 0, "path": path, "role": "data", "unlinked": False}
                     for n, path in enumerate(["/data/</script><!--\u202e.nc", "/data/a b.h5", "/data/c\n.h5"], 1)]
    facts = {"host": host, "command": "mpirun model", "t0_ns": "0", "t0_wall_ns": str(1_700_000_000_000_000_000 + node * LATER_NS),
             "end_ns": str(steps * STEP_NS)}
    rows["meta"] = [{"key": key, "value": value} for key, value in facts.items()]
    for table in tables:
        write(fixture, out, table, host, rows[table])


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], *map(int, sys.argv[3:]))
