"""Runs all views on Spark and on DuckDB, and compares their rows: spark.py VIEWS.sql VIEWS-SPARK.sql (in the directory)"""

import decimal
import os
import re
import sys

import duckdb
from pyspark.sql import Row, SparkSession

# Left out. Directories have a scheme in Spark; and which of equal ones comes first is nobody's promise.
BUT = {
    "datasets": {"dir"},
    "v_imbalance": {"slowest"},
    "v_slowest": {"worst_op", "worst_layer"},
    "v_collectives": {"last_rank", "slowest_rank"},
}
# What others are made of is worked out once.
CACHED = ("spans", "block_links", "files", "handles", "processes", "datasets", "v_own", "v_inside", "v_asked", "v_ranks", "v_clocks", "v_spans")

db = duckdb.connect()
db.execute(open(sys.argv[1]).read())
small = {
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.sql.shuffle.partitions": "1",
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    "spark.sql.session.timeZone": "UTC",
}
builder = SparkSession.builder.master("local[2]")
for key, value in small.items():
    builder = builder.config(key, value)
spark = builder.getOrCreate()
spark.sparkContext.setLogLevel("ERROR")
spark.conf.set("iotrace.dir", os.getcwd())
for statement in open(sys.argv[2]).read().split(";\n"):
    if statement.strip():
        spark.sql(statement)
        made = re.search(r"TEMPORARY VIEW (\w+)", statement)
        if made and made[1] in CACHED:
            spark.catalog.cacheTable(made[1])


def plain(value):
    """A value as both would write it: sets in order, fractions to nine digits."""
    if isinstance(value, Row):
        value = value.asDict()
    if isinstance(value, dict):
        return tuple((key, plain(value[key])) for key in sorted(value))
    if isinstance(value, (list, tuple)):
        # DuckDB has no list where Spark has an empty one.
        return tuple(sorted((plain(one) for one in value), key=repr)) or None
    if isinstance(value, decimal.Decimal):
        value = int(value) if value == value.to_integral_value() else float(value)
    if isinstance(value, float):
        return float(f"{value:.9g}")
    return value


def table(names, rows, but):
    keep = sorted(name for name in names if name not in but)
    return keep, sorted((tuple(plain(row[names.index(name)]) for name in keep) for row in rows), key=repr)


wrong, compared = [], 0
duckdb_only = {"frequent", "darshan"}
questions = {
    view: (f"FROM {view}", f"SELECT * FROM {view}", BUT.get(view, set()))
    for (view,) in db.execute("SELECT view_name FROM duckdb_views() WHERE NOT internal").fetchall()
    if view not in duckdb_only
}
host, call = db.execute("SELECT host, root_id FROM v_slowest LIMIT 1").fetchone()
tree = f"SELECT * FROM call_tree({call}, '{host}')"
questions["call_tree"] = (tree, tree, set())
for what, (ours, theirs, but) in questions.items():
    asked = db.execute(ours)
    ours = table([column[0] for column in asked.description], asked.fetchall(), but)
    answer = spark.sql(theirs)
    theirs = table(answer.columns, [tuple(row) for row in answer.collect()], but)
    compared += len(ours[1])
    if ours[0] != theirs[0]:
        wrong.append(f"{what}: columns {ours[0]} of DuckDB, {theirs[0]} of Spark")
    elif ours[1] != theirs[1]:
        differ = [pair for pair in zip(ours[1], theirs[1]) if pair[0] != pair[1]][:1]
        wrong.append(f"{what}: {len(ours[1])} rows of DuckDB, {len(theirs[1])} of Spark: {ours[0]} {differ}")
print(f"{len(questions)} views, {compared} rows compared, {len(wrong)} views differ")
print("\n".join(wrong))
sys.exit(1 if wrong else 0)
