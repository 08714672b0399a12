"""Makes views-spark.sql from views.sql, the DuckDB views: spark_views.py VIEWS.sql > VIEWS-SPARK.sql

What Spark calls otherwise is translated by sqlglot; how tables are read, and functions of our own, are written here."""

import re
import sys

import sqlglot
from sqlglot import exp

HEAD = """-- Questions about a trace, as Spark SQL views over its Parquet tables: those of views.sql, which explains them. Made from it by
-- tests/common/readers/spark_views.py. In Python (pip install pyspark, 4.1 or newer), DIR being a dataset, or a directory that those of
-- several nodes are in, on any file system that Spark reads, and VIEWS a copy of this file:
--
--   spark.conf.set("iotrace.dir", DIR)
--   for statement in open(VIEWS).read().split(";\\n"):
--       if statement.strip(): spark.sql(statement)
--   spark.table("v_ops").show()
--
-- All views and functions are temporary: they belong to the session.

-- Levels of calls are few, calls are many.
SET spark.sql.cteRecursionRowLimit = -1;

-- Otherwise each view is worked out anew, down to the footers of the files, wherever it is named.
SET spark.sql.legacy.storeAnalyzedPlanForView = true;

"""

# Parts of different versions may have different columns.
TABLE = """CREATE OR REPLACE TEMPORARY VIEW parts_{0} AS
SELECT *, _metadata.file_path AS filename, _metadata.row_index AS file_row_number
FROM parquet.`${{iotrace.dir}}` WITH (recursiveFileLookup = true, pathGlobFilter = '{0}-*.parquet', mergeSchema = true);

"""

# A table of calls and requests is all parts without the columns of where a row stands.
READ = re.compile(r"read_parquet\(parts\('(\w+)'\)([^)]*)\)")
PLAIN = re.compile(r"AS (?:SELECT (DISTINCT )\* )?FROM (read_parquet\(parts\('\w+'\), union_by_name = true\));?$")
# Spark's functions in SQL may not stand where rows are sorted: this one is written out.
RANK = re.compile(r"CREATE OR REPLACE MACRO layer_rank\(layer\) AS list_position\(\s*\[(.*)\], layer\)", re.S)
# The last row of an id: sqlglot leaves the number of each row among the columns.
LAST = re.compile(r"SELECT \*(?: EXCLUDE \((.*?)\))?\s+FROM (\w+)\s+QUALIFY (row_number\(\) OVER \(.*\)) = 1", re.S)
TREE = re.compile(r"CREATE OR REPLACE MACRO call_tree\([^)]*\) AS TABLE")
# Of every row, where Java would try the expression at each character of its path.
DIRECTORY = "SUBSTRING(filename, 1, LENGTH(filename) - INSTR(REVERSE(filename), '/') + 1)"
SIGNATURE = """CREATE OR REPLACE TEMPORARY FUNCTION call_tree(call_id BIGINT, node STRING DEFAULT NULL)
RETURNS TABLE (call STRING, layer STRING, start_ns BIGINT, dur_ns BIGINT, self_ns BIGINT, bytes BIGINT, offset BIGINT,
  errno INT, span_id BIGINT) RETURN
"""


def last(found):
    but = f"{found[1]}, place" if found[1] else "place"
    return f"SELECT * EXCLUDE ({but}) FROM (SELECT *, {found[3]} AS place FROM {found[2]}) WHERE place = 1"


def replaced(node):
    """Columns that stand in the place of others: Spark has them behind those that are left."""
    star = node.this if isinstance(node, exp.Column) else node
    if isinstance(star, exp.Star) and star.args.get("replace"):
        instead = star.args["replace"]
        star.set("except_", [*(star.args.get("except_") or []), *(exp.column(new.alias) for new in instead)])
        star.set("replace", None)
        for new in reversed(instead):
            node.parent_select.expressions.insert(1, new)
    return node


def counted(node):
    """The element at a place that is no number: Spark's brackets count from 0, and sqlglot sees to numbers only."""
    if isinstance(node, exp.Bracket) and not isinstance(node.expressions[0], exp.Literal):
        return exp.func("element_at", node.this, node.expressions[0])
    return node


def spark(statement, layers):
    statement = PLAIN.sub(r"AS SELECT \1* EXCLUDE (filename, file_row_number) FROM \2", statement)
    # Only what needs to know the file of a row asks for it, and drops what it asked for.
    statement = re.sub(r"EXCLUDE \(filename(, dir)?\)", r"EXCLUDE (filename, file_row_number\1)", statement)
    statement = READ.sub(r"parts_\1", statement)
    statement = LAST.sub(last, statement)
    table_of_call = TREE.match(statement)
    statement = TREE.sub("", statement)
    tree = sqlglot.parse_one(statement, read="duckdb").transform(replaced).transform(counted)
    text = tree.sql("spark", pretty=True, comments=False)
    text = re.sub(r"PERCENTILE_DISC\((.+?), ([\d.]+)\)", r"PERCENTILE_DISC(\2) WITHIN GROUP (ORDER BY \1)", text)
    text = re.sub(r"LAYER_RANK\(([\w.]+)\)", rf"ARRAY_POSITION(ARRAY({layers}), \1)", text)
    text = text.replace("REGEXP_REPLACE(filename, '[^/]*$', '')", DIRECTORY)
    if table_of_call:
        return SIGNATURE + text
    return text.replace("CREATE OR REPLACE VIEW", "CREATE OR REPLACE TEMPORARY VIEW")


def views(text):
    tables = sorted({found[1] for found in READ.finditer(text)})
    plain = re.sub(r"--[^\n]*", "", text)
    layers = RANK.search(plain)[1]
    statements = [s.strip().removesuffix(";") for s in plain.split(";\n") if s.strip()]
    # The path of the parts for DuckDB.
    ours = [s for s in statements if not RANK.match(s) and not re.match(r"(RE)?SET |CREATE OR REPLACE MACRO parts", s)]
    translated = [spark(s, layers) for s in ours]
    return HEAD + "".join(TABLE.format(t) for t in tables) + "".join(s + ";\n\n" for s in translated)


if __name__ == "__main__":
    sys.stdout.write(views(open(sys.argv[1]).read()).rstrip("\n") + "\n")
