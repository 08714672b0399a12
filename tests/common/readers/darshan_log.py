"""Compares a log, as PyDarshan reads it, with the rows of the dataset that it is of: `darshan_log.py LOG`, in the
directory of the dataset. Prints each counter that is not 0, summed over all records, as JSON."""

import collections
import glob
import json
import sys
import warnings

import duckdb

warnings.simplefilter("ignore")
import darshan  # noqa: E402

report = darshan.DarshanReport(sys.argv[1], read_all=True)
db = duckdb.connect()
db.execute(open(glob.glob("**/views.sql", recursive=True)[0]).read())

sums, by_file = collections.Counter(), collections.defaultdict(collections.Counter)
for module in set(report.records) - {"DXT_POSIX", "DXT_MPIIO", "HEATMAP"}:
    for record in report.records[module].to_df()["counters"].to_dict("records"):
        for name, value in record.items():
            if name not in ("id", "rank"):
                sums[name] += int(value)
                by_file[report.name_records[record["id"]]][name] += int(value)

# The rows that Darshan would have seen, counted another way than the script does.
LEFT_OUT = "/(etc|dev|usr|bin|boot|lib|opt|sbin|sys|proc|var)/.*"
SEEN = f"""
  FROM spans s JOIN files f ON f.host = s.host AND f.file_id = s.file_id
       JOIN processes p ON p.host = s.host AND p.process_ix = s.process_ix
       LEFT JOIN spans o ON o.host = s.host AND o.span_id = s.parent_id
  WHERE s.errno = 0 AND s.flags & 64 = 0 AND s.layer_top AND f.role NOT IN ('proc', 'socket', 'pipe')
    AND NOT regexp_full_match(coalesce(f.path, ''), '{LEFT_OUT}')
    AND (p.rank IS NOT NULL OR (SELECT bool_and(rank IS NULL) FROM processes))
    AND NOT (s.layer = 'syscall' AND coalesce(o.layer, '') = 'stdio' AND o.op NOT LIKE '%aio%')
    AND NOT (s.layer = 'stdio' AND s.op LIKE '%aio%')"""
# Of MPI-IO it counts what was asked for.
MOVED = "if(s.layer = 'mpiio', coalesce(s.req_bytes, s.bytes), s.bytes)"
for layer, module in {"syscall": "POSIX", "stdio": "STDIO", "mpiio": "MPIIO"}.items():
    for kind, name in {"read": "READ", "write": "WRITTEN"}.items():
        calls, moved = db.execute(f"""SELECT count(*), coalesce(sum({MOVED}), 0) {SEEN} AND s.layer = '{layer}'
                                      AND s.kind = '{kind}'""").fetchone()
        assert sums[f"{module}_BYTES_{name}"] == moved, (module, name, sums[f"{module}_BYTES_{name}"], moved)
        names = [f"{module}_{kind.upper()}S"] if module != "MPIIO" else [
            f"MPIIO_{way}_{kind.upper()}S" for way in ("INDEP", "COLL", "SPLIT", "NB")]
        assert sum(sums[counter] for counter in names) == calls, (names, calls)
        mapped = report.heatmaps.get(module)
        assert moved == 0 or int(mapped.to_df([kind]).values.sum()) == moved, (module, kind, moved)

for trace, layer in {"DXT_POSIX": "syscall", "DXT_MPIIO": "mpiio"}.items():
    records = report.records[trace].to_df() if trace in report.records else []
    for kind in ("read", "write"):
        segments = [tuple(row) for record in records if record[f"{kind}_count"]
                    for row in record[f"{kind}_segments"][["offset", "length"]].itertuples(index=False)]
        rows = db.execute(f"""SELECT coalesce(s."offset", -1), {MOVED} {SEEN} AND s.layer = '{layer}'
                              AND s.kind = '{kind}' AND {MOVED} > 0""").fetchall()
        assert sorted(segments) == sorted(rows), (trace, kind, len(segments), len(rows))

# Call by call, as macros of darshan-runtime/lib/darshan-posix.c do it: of each process and file.
class Record:
    def __init__(self):
        self.counters, self.last = collections.Counter(), {"read": 0, "write": 0}
        self.last_kind, self.slowest = None, {"read": (-1, 0), "write": (-1, 0)}
        self.sizes, self.strides = collections.Counter(), collections.Counter()
        self.first, self.time = {}, collections.Counter()

    def call(self, op, kind, offset, moved, start, end, net):
        if kind in ("open", "close", "read", "write"):
            self.first[kind] = min(self.first.get(kind, start), start)
        if kind in ("open", "close"):
            self.last = {"read": 0, "write": 0}
        if op in ("fsync", "fdatasync"):
            kind = "write"
        elif kind not in ("read", "write"):
            counted = kind in ("open", "close", "seek") or "stat" in op and "statfs" not in op or op.startswith(("dup", "rename"))
            self.time["META"] += net if counted else 0
            return
        self.time[kind.upper()] += net
        if op not in ("fsync", "fdatasync"):
            self.access(kind, offset, moved, net)

    def access(self, kind, offset, moved, net):
        last = self.last[kind]
        name = kind.upper() + "S"
        self.counters[f"POSIX_SEQ_{name}"] += offset > last
        self.counters[f"POSIX_CONSEC_{name}"] += offset == last + 1
        self.counters["POSIX_RW_SWITCHES"] += self.last_kind not in (None, kind)
        stride = offset - last - 1 if offset > last and last else 0
        self.strides[stride] += 1
        self.sizes[moved] += 1
        self.last[kind], self.last_kind = offset + moved - 1, kind
        if net > self.slowest[kind][0]:
            self.slowest[kind] = (net, moved)

    def common(self, word, values):
        """The four most frequent ones, the greater first; 0 is none."""
        ordered = sorted(((number, value) for value, number in values.items() if value), reverse=True)[:4]
        for n, (number, value) in enumerate(ordered, 1):
            self.counters[f"POSIX_{word}{n}_{word}"], self.counters[f"POSIX_{word}{n}_COUNT"] = value, number


def compare_call_by_call():
    made = collections.defaultdict(Record)
    # A process alone, without MPI, is rank 0.
    alone = 0 if report.metadata["job"]["nprocs"] == 1 else "NULL"
    calls = db.execute(f"""SELECT coalesce(p.rank, {alone}), p.process_ix, f.path, s.op, s.kind, s."offset", s.bytes, s.start_ns, s.start_ns + s.dur_ns,
                                 s.net_ns, s.layer_ns {SEEN} AND s.layer = 'syscall' AND f.path IS NOT NULL
                           ORDER BY s.start_ns + s.dur_ns, s.span_id""").fetchall()
    for rank, process, path, op, kind, offset, moved, start, end, net, own in calls:
        if kind not in ("read", "write") or (offset is not None and moved is not None):
            made[rank, process, path].call(op, kind, offset, moved, start, end, net)
    by_rank, compared = collections.Counter((rank, path) for rank, _, path in made), 0
    frames = report.records["POSIX"].to_df()
    logged = {}
    for whole, real in zip(frames["counters"].to_dict("records"), frames["fcounters"].to_dict("records")):
        logged[report.name_records[whole["id"]], whole["rank"]] = {**whole, **real}
    shared = {path for path, rank in logged if rank == -1}
    for (rank, process, path), record in made.items():
        if path in shared or by_rank[rank, path] > 1 or rank is None:
            continue
        compared += 1
        record.common("ACCESS", record.sizes)
        record.common("STRIDE", record.strides)
        wrote = logged[path, rank]
        for kind, (_, moved) in record.slowest.items():
            ties = {m for _, _, p, _, k, _, m, _, _, n, _ in calls if p == path and k == kind and n == record.slowest[kind][0]}
            assert not ties or wrote[f"POSIX_MAX_{kind.upper()}_TIME_SIZE"] in ties, (path, kind, ties)
        for name in [n for n in wrote if "ACCESS" in n or "STRIDE" in n or "_SEQ_" in n or "CONSEC" in n or "SWITCHES" in n]:
            assert wrote[name] == record.counters[name], (path, rank, name, wrote[name], record.counters[name])
        for kind, start in record.first.items():
            assert abs(wrote[f"POSIX_F_{kind.upper()}_START_TIMESTAMP"] - start / 1e9) < 1e-6, (path, kind)
        for what in ("READ", "WRITE", "META"):
            assert abs(wrote[f"POSIX_F_{what}_TIME"] - record.time[what] / 1e9) < 1e-6, (path, what, wrote, record.time)
    # The rank whose reads, writes and metadata took least or most time.
    for path in shared:
        of = {rank: sum(record.time.values()) / 1e9 for (rank, _, p), record in made.items() if p == path}
        if not of or None in of:
            continue  # A file without a path, which has another name there; processes without ranks have numbers there.
        wrote = logged[path, -1]
        for name, time in {"FASTEST": min(of.values()), "SLOWEST": max(of.values())}.items():
            assert abs(of[wrote[f"POSIX_{name}_RANK"]] - time) < 1e-6, (path, name, wrote, of)
            assert abs(wrote[f"POSIX_F_{name}_RANK_TIME"] - time) < 1e-6, (path, name)
    return compared


# Of sums the order is not known.
compared = 0 if db.execute("SELECT count(*) FROM spans").fetchone()[0] == 0 else compare_call_by_call()
files = {name: {counter: value for counter, value in counters.items() if value} for name, counters in by_file.items()}
print(json.dumps({"compared": compared, "job": {"nprocs": report.metadata["job"]["nprocs"], "exe": report.metadata["exe"]},
                  "modules": sorted(report.modules), "sums": {k: v for k, v in sums.items() if v}, "files": files}))
