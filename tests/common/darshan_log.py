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
for layer, module in {"syscall": "POSIX", "stdio": "STDIO", "mpiio": "MPIIO"}.items():
    for kind, name in {"read": "READ", "write": "WRITTEN"}.items():
        calls, moved = db.execute(f"""SELECT count(*), coalesce(sum(s.bytes), 0) {SEEN} AND s.layer = '{layer}'
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
        rows = db.execute(f"""SELECT coalesce(s."offset", -1), s.bytes {SEEN} AND s.layer = '{layer}'
                              AND s.kind = '{kind}' AND s.bytes > 0""").fetchall()
        assert sorted(segments) == sorted(rows), (trace, kind, len(segments), len(rows))

files = {name: {counter: value for counter, value in counters.items() if value} for name, counters in by_file.items()}
print(json.dumps({"job": {"nprocs": report.metadata["job"]["nprocs"], "exe": report.metadata["exe"]},
                  "modules": sorted(report.modules), "sums": {k: v for k, v in sums.items() if v}, "files": files}))
