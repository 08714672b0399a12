"""Answers queries over the dataset of the working directory: query.py QUERIES.json, of which each gives a list of rows

Only the views that the queries need are defined: DuckDB takes a second of CPU for all of them."""

import glob
import json
import re
import sys

import duckdb

queries = json.load(open(sys.argv[1]))
db = duckdb.connect()
db.execute("SET enable_progress_bar = false")
statements = db.extract_statements(open(glob.glob("**/views.sql", recursive=True)[0]).read())
named = [(re.findall(r"CREATE OR REPLACE (?:VIEW|MACRO) (\w+)", s.query), s) for s in statements]
defined = {name: s.query for names, s in named for name in names}


def needed(text, found):
    """Adds the names of what a text uses, and of what that uses."""
    for name in set(re.findall(r"\w+", text)) & set(defined) - found:
        found.add(name)
        needed(defined[name], found)
    return found


every = any("duckdb_views" in query for query in queries)
names = set(defined) if every else needed(" ".join(queries), set())
for makes, statement in named:
    if names.issuperset(makes):
        db.execute(statement)


def ask(query):
    try:
        rows = db.execute(query)
    except duckdb.Error as error:
        sys.exit(f"{query}: {error}")
    names = [column[0] for column in rows.description]
    return [dict(zip(names, row)) for row in rows.fetchall()]


# DuckDB shows the progress of what takes long before it.
print("\n" + json.dumps([ask(query) for query in queries], default=str))
