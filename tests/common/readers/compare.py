"""Compares a report with the views over its dataset, or datasets (the working directory):

compare.py REPORT.json ERROR [tables]

To plan a view takes most of its time, and most of that each of the many places that lead to files: with `tables` the files
are read once, to tables, and each view is worked out once, to a table that other views begin with. The plans of views over
files and over each other are those of runs without it.
"""

import functools
import glob
import json
import re
import sys
import tempfile

import duckdb

report = json.load(open(sys.argv[1]))
error = float(sys.argv[2])
tables = sys.argv[3:] == ["tables"]
db = duckdb.connect()
of_files = 0
for statement in db.extract_statements(open(glob.glob("**/views.sql", recursive=True)[0]).read()):
    db.execute(statement)
    made = re.search(r"CREATE OR REPLACE VIEW (\w+) AS\b.*\bread_parquet\(parts", statement.query, re.DOTALL)
    if tables and "SET VARIABLE iotrace_absent" in statement.query:
        # All parts from now on, not only those that have all columns.
        db.execute("RESET VARIABLE iotrace_some")
    elif tables and made and not made[1].startswith("v_"):
        name = made[1]
        db.execute(f"CREATE TABLE read AS FROM {name}; DROP VIEW {name}; ALTER TABLE read RENAME TO {name}")
        of_files += 1
assert not tables or of_files > 15, of_files
wrong = []
compared = 0


# Asked once.
@functools.cache
def fetched(query):
    result = db.execute(query)
    return [column[0] for column in result.description], result.fetchall()


def rows(query):
    names, values = fetched(query)
    return [dict(zip(names, row)) for row in values]


def same(what, ours, sql, within=0.0):
    """Equal, or within a relative error; whole numbers of percentiles may be off by one on top."""
    global compared
    compared += 1
    if ours is None or sql is None or within == 0.0:
        good = ours == sql
    else:
        good = abs(ours - float(sql)) <= within * abs(float(sql)) + (1 if within == error else 1e-9)
    if not good:
        wrong.append(f"{what}: report {ours}, SQL {sql}")


def index(rows, *keys):
    found = {tuple(row[key] for key in keys): row for row in rows}
    assert len(found) == len(rows), f"{keys} are not unique"
    return found


def keys(what, ours, sql):
    for key in set(ours) ^ set(sql):
        wrong.append(f"{what} {key}: only in {'the report' if key in ours else 'SQL'}")
    return sorted(set(ours) & set(sql), key=str)


def joins(node):
    """The conditions of each join of a query that was run."""
    if "JOIN" in node.get("type", ""):
        conditions = node["extra_info"].get("Conditions", [])
        yield conditions if isinstance(conditions, list) else [conditions]
    for below in node.get("children") or node.get("operator", []):
        yield from joins(below)


# Every view runs, on an empty dataset too. No join has only the host as key and sorts the rest out afterwards: that is all
# rows of a host with each other.
SAME = (" = ", " IS NOT DISTINCT FROM ")
views = [row["view_name"] for row in rows("SELECT view_name FROM duckdb_views() WHERE NOT internal")]
assert len(views) > 30, views
all_joins = 0
with tempfile.NamedTemporaryFile(suffix=".json") as profile:
    # The plan is that of the query that is run.
    db.execute("PRAGMA enable_profiling = 'json'")
    db.execute(f"PRAGMA profiling_output = '{profile.name}'")
    for view in views:
        if tables:
            db.execute(f"CREATE TABLE read AS FROM {view}")
        else:
            fetched(f"FROM {view}")
        for conditions in joins(json.load(open(profile.name))):
            all_joins += 1
            keys_of = {c for c in conditions if any(same in c for same in SAME)}
            if len(conditions) > 1 and keys_of and all(c.startswith("host ") for c in keys_of):
                wrong.append(f"{view}: joins all rows of a host with each other: {conditions}")
        if tables:
            db.execute(f"DROP VIEW {view}; ALTER TABLE read RENAME TO {view}")
    db.execute("PRAGMA disable_profiling")
assert all_joins > len(views), f"{all_joins} joins in the plans of {len(views)} views"

# Layers and functions; requests are a layer of the report and a table of their own in SQL.
sql_layers = index(rows("FROM v_layers"), "layer")
sql_ops = index(rows("FROM v_ops"), "layer", "op")
device = """SELECT 'block' AS layer, {op} AS op, count(*) AS calls, 0 AS nested_calls, sum(dur_ns)::BIGINT AS inclusive_ns,
  NULL AS exclusive_ns, NULL AS exclusive_share, count(*) FILTER (status <> 0) AS errors, 0 AS moved_unknown_calls,
  sum(bytes) FILTER (op IN ('read', 'write')) AS asked,
  sum(CASE WHEN status = 0 THEN bytes ELSE 0 END) FILTER (op IN ('read', 'write')) AS moved,
  min(dur_ns) AS min_ns, avg(dur_ns) AS mean_ns, stddev_samp(dur_ns) AS stddev_ns,
  quantile_disc(dur_ns, 0.5) AS p50_ns, quantile_disc(dur_ns, 0.99) AS p99_ns, max(dur_ns) AS max_ns
  FROM block WHERE status IS NOT NULL GROUP BY ALL"""
sql_layers |= index([r for r in rows(device.format(op="NULL")) if r["calls"]], "layer")
sql_ops |= index(rows(device.format(op="op")), "layer", "op")
our_layers = index(report["layers"], "layer")
our_ops = {(layer["layer"], op["op"]): op for layer in report["layers"] for op in layer["ops"]}


def figures(what, ours, sql):
    for figure in ("calls", "nested_calls", "inclusive_ns", "exclusive_ns", "errors"):
        same(f"{what} {figure}", ours[figure], sql[figure])
    same(f"{what} asked", ours["asked"]["sum"], sql["asked"])
    same(f"{what} moved", ours["moved"]["sum"], sql["moved"])
    same(f"{what} share", ours["exclusive_share"], sql["exclusive_share"], 1e-9)


for key in keys("layer", our_layers, sql_layers):
    figures(key, our_layers[key], sql_layers[key])
    same(f"{key} unknown", our_layers[key]["moved"]["unknown_calls"], sql_layers[key]["moved_unknown_calls"])
for key in keys("function", our_ops, sql_ops):
    ours, sql = our_ops[key], sql_ops[key]
    figures(key, ours, sql)
    for figure in ("min_ns", "max_ns"):
        same(f"{key} {figure}", ours[figure], sql[figure])
    for figure in ("mean_ns", "stddev_ns"):
        same(f"{key} {figure}", ours[figure], sql[figure], 1e-6)
    for figure in ("p50_ns", "p99_ns"):
        # Both have the middle of a bucket; those of requests are exact in SQL.
        same(f"{key} {figure}", ours[figure], sql[figure], error if key[0] == "block" else 0)

# What system calls spent their time on.
sql_waiting = index(rows("FROM v_waiting"), "part")
our_waiting = index(report["waiting"], "part")
for key in keys("part of time", our_waiting, sql_waiting):
    for figure in ("ns", "op", "op_ns", "op_calls"):
        same(f"{key} {figure}", our_waiting[key][figure], sql_waiting[key][figure])
    same(f"{key} share", our_waiting[key]["share"], sql_waiting[key]["share"], 1e-9)

# What was traced.
sql_coverage = index(rows("FROM v_coverage"), "layer")
our_coverage = {(layer["layer"],): layer for layer in report["coverage"] if layer["probes"] or layer["absent"]}
for key in keys("coverage", our_coverage, sql_coverage):
    for figure in ("attached", "probes", "absent"):
        same(f"coverage {key} {figure}", our_coverage[key][figure], sql_coverage[key][figure])

# Amplification: what was asked, then the layers.
sql_steps = index(rows("FROM v_amplification"), "kind", "layer")
our_steps = {}
for kind in ("read", "write"):
    chain = report["amplification"][kind]
    if chain["asked_calls"]:
        our_steps[kind, "asked"] = {"calls": chain["asked_calls"], "bytes": chain["asked"]}
    for step in chain["steps"]:
        if step["not_covered"] is None:
            our_steps[kind, step["layer"]] = step
for key in keys("step", our_steps, sql_steps):
    ours, sql = our_steps[key], sql_steps[key]
    same(f"{key} calls", ours["calls"], sql["calls"])
    same(f"{key} bytes", ours["bytes"]["sum"], sql["bytes"])
    same(f"{key} unknown", ours["bytes"]["unknown_calls"], sql["unknown_calls"])
    if key[1] != "asked":
        same(f"{key} ratio", ours["to_asked"], sql["to_asked"], 1e-9)
sql_called = index(rows("FROM v_amplification_by_called"), "kind", "called", "layer")
our_called = {}
for kind in ("read", "write"):
    for called in report["amplification"][kind]["by_called"]:
        layer, device = called["layer"], called["device"]
        if called["asked_calls"]:
            our_called[kind, layer, "asked"] = called["asked"] | {"calls": called["asked_calls"]}
        for name, moved in called["moved"].items():
            our_called[kind, layer, name] = moved | {"ratio": called["syscall_to_asked"] if name == "syscall" else None}
        if device or called["device_to_asked"] is not None:
            our_called[kind, layer, "block"] = {"sum": device, "unknown_calls": 0, "ratio": called["device_to_asked"]}
for key in keys("called", our_called, sql_called):
    ours, sql = our_called[key], sql_called[key]
    same(f"{key} bytes", ours["sum"], sql["bytes"])
    same(f"{key} unknown", ours["unknown_calls"], sql["unknown_calls"])
    if "calls" in ours:
        same(f"{key} calls", ours["calls"], sql["calls"])
    if key[2] in ("syscall", "block"):
        same(f"{key} ratio", ours["ratio"], sql["to_asked"], 1e-9)

# Phases.
sql_phases = {}
for row in rows("FROM v_phases"):
    sql_phases.setdefault(row["op"], []).append(row)
our_phases = {phase["op"]: phase for phase in report["phases"]}
for op in keys("phase", our_phases, sql_phases):
    ours, sql = our_phases[op], sql_phases[op]
    for figure in ("calls", "unfinished_calls", "inclusive_ns", "exclusive_ns"):
        same(f"phase {op} {figure}", ours[figure], sql[0][figure])
    sql_inside = index([row for row in sql if row["layer"] is not None], "layer")
    our_inside = index(ours["layers"], "layer")
    for key in keys(f"phase {op}", our_inside, sql_inside):
        layer, of = our_inside[key], sql_inside[key]
        same(f"phase {op} {key} calls", layer["calls"], of["layer_calls"])
        same(f"phase {op} {key} read", layer["read"]["sum"], of["bytes_read"])
        same(f"phase {op} {key} written", layer["written"]["sum"], of["bytes_written"])
        unknown = layer["read"]["unknown_calls"] + layer["written"]["unknown_calls"]
        same(f"phase {op} {key} unknown", unknown, of["unknown_calls"])
        same(f"phase {op} {key} time", layer["time_ns"], of["time_ns"])

aggregate = report["header"]["aggregate"]

# Files.
# Where there is one dataset the report has no host of its rows.
only = rows("SELECT min(host) AS host FROM datasets")[0]["host"]
sql_files = index(rows("FROM v_files"), "host", "file_id", "layer")
our_files = {
    (file.get("host", only), file["file_id"], layer["layer"]): (file, layer)
    for file in report["files"]
    for layer in file["layers"]
}
assert report["header"]["files"] == len({key[:2] for key in sql_files})
if report["header"]["files"] <= 20:
    keys("file", our_files, sql_files)
for key, (file, layer) in our_files.items():
    sql = sql_files[key]
    same(f"file {key} path", file["path"], sql["path"])
    for ours, name in (("calls", "calls"), ("time_ns", "time_ns"), ("errors", "errors")):
        same(f"file {key} {name}", layer[ours], sql[name])
    same(f"file {key} read", layer["read"]["sum"], sql["bytes_read"])
    same(f"file {key} written", layer["written"]["sum"], sql["bytes_written"])
    for kind, name in (("read", "reads"), ("write", "writes"), ("open", "opens"), ("meta", "metas"), ("sync", "syncs")):
        same(f"file {key} {name}", layer["kinds"].get(kind, 0), sql[name])

# An engine keeps the durations of files in fewer digits.
exact = """SELECT host, file_id, layer, quantile_disc(net_ns, 0.99) AS p99_ns FROM spans
  WHERE layer_top AND file_id IS NOT NULL GROUP BY ALL"""
sql_exact = index(rows(exact), "host", "file_id", "layer")
for key in keys("durations of file", sql_exact, sql_files):
    same(f"file {key} p99", sql_exact[key]["p99_ns"], sql_files[key]["p99_ns"], 1e-6)

# Failed look-ups.
sql_stacks = {}
for row in rows("FROM v_slow_stacks"):
    key = (row["layer"], row["op"], tuple(row["frames"]))
    calls, time = sql_stacks.get(key, (0, 0))
    sql_stacks[key] = (calls + row["calls"], time + row["time_ns"])
for row in report["slow_stacks"]:
    key = (row["layer"], row["op"], tuple(row["frames"]))
    same(f"stack {key}", (row["calls"], row["time_ns"]), sql_stacks[key])
if len(report["slow_stacks"]) < 20:
    same("stacks", len(report["slow_stacks"]), len(sql_stacks))

sql_failed = index(rows("FROM v_failed_lookups"), "host", "directory", "errno")
our_failed = {(row.get("host", only), row["directory"], row["errno"]): row for row in report["failed_lookups"]["rows"]}
assert report["failed_lookups"]["more"] == len(sql_failed) - len(our_failed)
same("failed look-ups", report["failed_lookups"]["calls"], sum(row["calls"] for row in sql_failed.values()))
if not report["failed_lookups"]["more"]:
    keys("failed look-up", our_failed, sql_failed)
for key, ours in our_failed.items():
    for figure in ("calls", "paths", "time_ns"):
        same(f"failed look-up {key} {figure}", ours[figure], sql_failed[key][figure])

# Sizes and rates of calls by process, file and direction. Of --aggregate there are no single calls.
sql_bandwidth = index(rows("FROM v_bandwidth"), "host", "file_id", "process_ix", "kind")
our_bandwidth = {
    (row.get("host", only), row["file_id"], row["process_ix"], row["kind"]): row for row in report["bandwidth"]["rows"]
}
same("bandwidths", len(our_bandwidth) + report["bandwidth"]["more"], len(sql_bandwidth))
for key, ours in our_bandwidth.items():
    theirs = sql_bandwidth[key]
    for figure in ("samples", "bytes"):
        same(f"bandwidth {key} {figure}", ours[figure], theirs[figure])
    for what, suffix in (("size", "bytes"), ("bps", "bps")):
        for figure in ("min", "max", "mean", "stddev"):
            same(f"bandwidth {key} {what} {figure}", ours[what][figure], theirs[f"{figure}_{suffix}"], 1e-6)

# Failed calls by error and directory. Those that were only counted have no rows in SQL.
# Without a directory nodes are together, here under the name of one of them.
sql_errors = index(rows("""SELECT if(path LIKE '%/%', host, (SELECT min(host) FROM datasets)) AS host, layer, error,
  CASE WHEN path LIKE '%/%' THEN coalesce(nullif(regexp_replace(path, '/[^/]*$', ''), ''), '/') END AS directory,
  sum(calls)::BIGINT AS calls, sum(time_ns)::BIGINT AS time_ns FROM v_errors GROUP BY ALL"""), "host", "layer", "error", "directory")
our_errors = {}
for row in report["errors"]:
    if row["error"] != "not recorded":
        key = (row.get("host", only), row["layer"], row["error"].replace("EDEADLK", "EDEADLOCK"), row["directory"])
        our_errors[key] = row
if aggregate:
    sql_errors = {}
for key in keys("error", our_errors, sql_errors):
    for figure in ("calls", "time_ns"):
        same(f"error {key} {figure}", our_errors[key][figure], sql_errors[key][figure])

# Reads and writes by size.
sql_sizes = index(rows("""SELECT layer, kind, sum(n)::BIGINT AS calls, list(n ORDER BY class) AS sizes
  FROM (SELECT layer, kind, class, sum(sizes[class])::BIGINT AS n
        FROM file_sums, (SELECT unnest(range(1, 11)) AS class) WHERE kind IN ('read', 'write') AND layer <> 'block' GROUP BY ALL)
  GROUP BY ALL HAVING sum(n) > 0"""), "layer", "kind")
our_sizes = {key: row for key, row in index(report["sizes"], "layer", "kind").items() if row["calls"]}
for key in keys("sizes", our_sizes, sql_sizes):
    for figure in ("calls", "sizes"):
        same(f"sizes {key} {figure}", our_sizes[key][figure], sql_sizes[key][figure])
ends = [100, 1 << 10, 10 << 10, 100 << 10, 1 << 20, 4 << 20, 10 << 20, 100 << 20, 1 << 30, None]
viewed = {key: [0] * len(ends) for key in our_sizes}
for row in rows("FROM v_sizes"):
    viewed.setdefault((row["layer"], row["kind"]), [0] * len(ends))[ends.index(row["at_most"])] += row["calls"]
for key in keys("v_sizes", our_sizes, viewed):
    same(f"v_sizes {key}", our_sizes[key]["sizes"], viewed[key])

# Devices. Of requests that were summed up SQL has other rows.
if not aggregate:
    sql_devices = index(rows("FROM v_devices"), "host", "device", "dev")
    our_devices = [row | {"host": row.get("host", only)} for row in report["devices"]]
    figures_of = ("reads", "bytes_read", "writes", "bytes_written", "flushes", "discards", "queue_ns", "device_ns", "max_qdepth", "errors", "unfinished")
    def figures_in(row):
        name = row["device"] or f"{row['dev'] >> 20}:{row['dev'] & 0xfffff}"
        return (row["host"], name, *(row[figure] or 0 for figure in figures_of))
    same("devices", sorted(map(figures_in, our_devices), key=str), sorted(map(figures_in, sql_devices.values()), key=str))

# Collective calls, rank by rank.
sql_collective = index(
    [row for row in rows("FROM v_aggregators") if row["path"] is not None and row["rank"] is not None],
    "path",
    "op",
    "rank",
)
our_collective = {
    (row["path"], row["op"], rank["rank"]): rank
    for row in report["collectives"] if row["path"] is not None
    for rank in row["ranks"] if rank["rank"] is not None
}
for key in keys("collective", our_collective, sql_collective):
    for figure in ("collectives", "aggregated", "syscalls", "bytes"):
        same(f"collective {key} {figure}", our_collective[key][figure], sql_collective[key][figure])

# Ranks, or processes.
sql_ranks = {}
for row in rows("FROM v_ranks"):
    one = (row["host"], *row["pids"]) if row["rank"] is None else None
    sql_ranks.setdefault((row["rank"], one), {})[row["layer"]] = row
for row in report["ranks"]["rows"]:
    one = (row.get("hosts", [only])[0], *row["pids"]) if row["rank"] is None else None
    key = (row["rank"], one)
    sql = sql_ranks.pop(key, {})
    same(f"rank {key} calls", row["calls"], sum(layer["own_calls"] for layer in sql.values()))
    for layer, figures_of in sql.items():
        same(f"rank {key} {layer}", row["exclusive_ns"].get(layer, 0), figures_of["exclusive_ns"])
    for figure, name in (("syscall_read", "bytes_read"), ("syscall_written", "bytes_written")):
        same(f"rank {key} {figure}", row[figure], sql.get("syscall", {name: 0})[name])
    others = ("app", "syscall", "vfs", "fs", "block")
    spent = sum(layer["own_inclusive_ns"] for name, layer in sql.items() if name not in others)
    same(f"rank {key} library", row["library_ns"], spent)
# What ranks spent their time on: of one node, whose times are not shifted.
share = report["ranks"].get("share")
if share and len(report["nodes"]) < 2 and "filter" not in report:
    lives = {row["rank"]: row["ns"] for row in rows("""
        SELECT rank, max(end_ns) - min(greatest(start_ns, 0)) AS ns
        FROM processes WHERE rank IS NOT NULL GROUP BY rank HAVING count(*) = count(end_ns)""")}
    spent = {row["rank"]: row for row in rows("""
        SELECT rank, coalesce(sum(exclusive_ns) FILTER (layer NOT IN ('app', 'mpi', 'block')), 0)::BIGINT AS io,
               coalesce(sum(exclusive_ns) FILTER (layer = 'mpi'), 0)::BIGINT AS mpi
        FROM v_ranks WHERE rank IS NOT NULL GROUP BY rank""")}
    if share["ranks"] and lives.keys() == {row["rank"] for row in report["ranks"]["rows"] if row["rank"] is not None}:
        io = mpi = 0
        for rank, wall in lives.items():
            of = spent.get(rank, {"io": 0, "mpi": 0})
            mpi += min(of["mpi"], wall)
            io += min(of["io"], wall - min(of["mpi"], wall))
        same("share of ranks", [share[key] for key in ("wall_ns", "io_ns", "mpi_ns", "application_ns")],
             [sum(lives.values()), io, mpi, sum(lives.values()) - io - mpi])
# How busy the CPUs were.
cpu = [row["share"] for row in report["utilisation"] if row["resource"] == "cpu"]
if cpu and len(report["nodes"]) < 2:
    grown = {row["label"]: row["s"] for row in rows("""
        SELECT label, max(value) - min(value) AS s FROM metrics WHERE name = 'node_cpu_seconds' GROUP BY label""")}
    same("utilisation of CPUs", cpu[0], 1 - (grown.get("idle", 0) + grown.get("iowait", 0)) / sum(grown.values()), 1e-9)
if sql_ranks:
    wrong.append(f"ranks only in SQL: {list(sql_ranks)}")
# Neither processes without ranks nor a single rank can be out of balance.
sql_imbalance = index([row for row in rows("FROM v_imbalance") if row["time_max_to_mean"] is not None], "layer")
our_imbalance = index(report["ranks"]["imbalance"], "layer")
for key in keys("imbalance", our_imbalance, sql_imbalance):
    row, sql = our_imbalance[key], sql_imbalance[key]
    same(f"imbalance {key} max", row["max_ns"], sql["max_ns"])
    same(f"imbalance {key} slowest", row["slowest"], sql["slowest"])
    same(f"imbalance {key} time", row["max_to_mean"], sql["time_max_to_mean"], 1e-9)
    same(f"imbalance {key} bytes", row.get("bytes_max_to_mean"), sql["bytes_max_to_mean"], 1e-9)

# What each layer takes; that of devices is in SQL only.
sql_composed = index(
    [row for row in rows("FROM v_composition") if row["layer"] != "block"], "called", "op", "collective", "layer"
)
our_composed = index(report["composition"], "called", "op", "collective", "layer")
for key in keys("composition", our_composed, sql_composed):
    for figure in ("calls", "parts", "latency_ns", "added_ns", "bytes"):
        same(f"composition {key} {figure}", our_composed[key][figure], sql_composed[key][figure])
    same(f"composition {key} throughput", our_composed[key]["throughput_bps"], sql_composed[key]["throughput_bps"], 1e-9)

# The slowest calls, and one tree.
sql_slowest = index(rows("FROM v_slowest"), "host", "root_id")
slowest = rows("FROM v_slowest")[:1]
if slowest:
    same("slowest", report["slowest"][0]["tree"]["dur_ns"], slowest[0]["net_ns"])
for call in report["slowest"]:
    key = (call.get("host", only), call["root_id"])
    if key in sql_slowest:
        same(f"tree {key} calls", call["calls"], sql_slowest[key]["calls"])
        if slowest[0]["root_id"] == call["root_id"] and slowest[0]["host"] == key[0]:
            same(f"tree {key} pid", call["pid"], slowest[0]["pid"])
    lines = rows(f"SELECT * FROM call_tree({call['root_id']}, '{key[0]}')")
    same(f"tree {key} lines", call["calls"], sum(1 for line in lines if line["layer"] != "block"))

# Functions against earlier runs.
sql_speed = index(rows("FROM v_speed"), "layer", "op")
our_speed = index(report["speed"], "layer", "op")
for key in keys("speed", our_speed, sql_speed):
    row, sql = our_speed[key], sql_speed[key]
    for figure in ("calls", "earlier_calls", "compared", "usual_ns"):
        same(f"speed {key} {figure}", row[figure], sql[figure])
    same(f"speed {key} time", row["ns"], sql["time_ns"])
    same(f"speed {key} unusual", ", ".join(row["unusual"]), sql["unusual"])
    for speed in row["classes"]:
        for figure in ("calls", "ns"):
            same(f"speed {key} {speed['speed']} {figure}", speed[figure], sql[f"{speed['speed'].replace(' ', '_')}_{figure}"])

# The tracer's share; of several nodes the report gives the one with the greatest.
sql_tracing = rows("FROM v_tracing")
if sql_tracing:
    most = max(sql_tracing, key=lambda row: row["share"] or 0)
    for figure in ("share", "seconds"):
        same(f"tracing {figure}", report["tracing"][figure], most[figure], 1e-9)
    same("tracing held", report["tracing"]["held_s"], most["held_seconds"], 1e-9)
if len(sql_tracing) == 1:
    same("tracing ns_per_call", report["tracing"]["ns_per_call"], most["ns_per_call"], 1e-9)

# The nodes, and what is known of their clocks.
sql_clocks = index(rows("FROM v_clocks"), "host")
# Without facts SQL knows of no node.
our_clocks = {(node["host"],): node["clock"] for node in report["nodes"] if only is not None}
for key in keys("node", our_clocks, sql_clocks):
    for figure in ("offset_ns", "least_ns", "most_ns", "calls", "how"):
        same(f"clock {key} {figure}", our_clocks[key][figure], sql_clocks[key][figure])

print(f"{compared} figures compared, {len(wrong)} differ")
print("\n".join(wrong[:50]))
sys.exit(1 if wrong else 0)
