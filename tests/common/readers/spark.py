"""Runs all views and the queries of rules on Spark and on DuckDB, and compares their rows, in the directory of the datasets:
spark.py VIEWS.sql VIEWS-SPARK.sql RULES.tsv (of each rule its name and its query)"""

import decimal
import os
import re
import sys

import duckdb
from pyspark.sql import Row, SparkSession

# Directories have a scheme in Spark.
BUT = {"datasets": {"dir"}}
# Rules that ask for what these datasets have none of.
WITHOUT_ROWS = {
    "blocking-puts",
    "data-sieving",
    "header-growth",
    "nonblocking-blocks",
    "readahead-waste",
    "swap",
    "sync-writes",
}

db = duckdb.connect()
db.execute(open(sys.argv[1]).read())
small = {
    "spark.driver.extraJavaOptions": "-XX:+UseSerialGC -XX:TieredStopAtLevel=1",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.sql.shuffle.partitions": "1",
    "spark.sql.files.openCostInBytes": "0",
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    "spark.sql.optimizer.maxIterations": "20",
    "spark.sql.session.timeZone": "UTC",
}
builder = SparkSession.builder.master("local[2]")
for key, value in small.items():
    builder = builder.config(key, value)
spark = builder.getOrCreate()
spark.sparkContext.setLogLevel("ERROR")
spark.conf.set("iotrace.dir", os.getcwd())


def plain(value):
    """A value as both would write it: fractions to nine digits."""
    if isinstance(value, Row):
        value = value.asDict()
    if isinstance(value, dict):
        return tuple((key, plain(value[key])) for key in sorted(value))
    if isinstance(value, (list, tuple)):
        # DuckDB has no list where Spark has an empty one.
        return tuple(plain(one) for one in value) or None
    if isinstance(value, decimal.Decimal):
        value = int(value) if value == value.to_integral_value() else float(value)
    if isinstance(value, float):
        return float(f"{value:.9g}")
    return value


def table(names, rows, but):
    keep = sorted(name for name in names if name not in but)
    return keep, sorted((tuple(plain(row[names.index(name)]) for name in keep) for row in rows), key=repr)


wrong, seen, compared, empty = [], set(), 0, []


def compare(what, query, answer):
    global compared
    seen.add(what)
    asked = db.execute(query)
    ours = table([column[0] for column in asked.description], asked.fetchall(), BUT.get(what, set()))
    theirs = table(answer.columns, [tuple(row) for row in answer.collect()], BUT.get(what, set()))
    compared += len(ours[1])
    if ours[0] != theirs[0]:
        wrong.append(f"{what}: columns {ours[0]} of DuckDB, {theirs[0]} of Spark")
    elif ours[1] != theirs[1]:
        differ = [pair for pair in zip(ours[1], theirs[1]) if pair[0] != pair[1]][:1]
        wrong.append(f"{what}: {len(ours[1])} rows of DuckDB, {len(theirs[1])} of Spark: {ours[0]} {differ}")
    elif not ours[1]:
        empty.append(what)


for statement in open(sys.argv[2]).read().split(";\n"):
    if not statement.strip():
        continue
    spark.sql(statement)
    made = re.search(r"TEMPORARY VIEW (\w+)", statement)
    if made and not made[1].startswith("parts_"):
        # Worked out once, for what is made of it, too: Spark plans all that a view is made of wherever it is named.
        rows = spark.table(made[1]).localCheckpoint()
        compare(made[1], f"FROM {made[1]}", rows)
        rows.createOrReplaceTempView(made[1])
host, call = db.execute("SELECT host, root_id FROM v_slowest LIMIT 1").fetchone()
tree = f"SELECT * FROM call_tree({call}, '{host}')"
compare("call_tree", tree, spark.sql(tree))
wrong += [f"{what}: no rows to compare" for what in empty]

# The same text for both: it is what a report gives with a finding.
rules = dict(line.rstrip("\n").split("\t") for line in open(sys.argv[3]))
empty.clear()
for rule, query in rules.items():
    compare(f"rule {rule}", query, spark.sql(query))
wrong += [f"{what}: no rows to compare" for what in empty if what.removeprefix("rule ") not in WITHOUT_ROWS]

views = {view for (view,) in db.execute("SELECT view_name FROM duckdb_views() WHERE NOT internal").fetchall()}
wrong += [f"{view}: not there on Spark" for view in views - seen]
print(f"{len(seen)} views and rules, {compared} rows compared, {len(wrong)} differ")
print("\n".join(wrong))
sys.exit(1 if wrong else 0)
