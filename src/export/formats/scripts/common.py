"""What both scripts begin with: the views over the datasets, and text that no terminal takes for a command.

Arguments: the file of views, a directory that is removed afterwards, and the output inside of it.
"""

import sys

sys.path.pop(0)  # A module in the working directory is none of ours.
import duckdb

VIEWS, SCRATCH, OUTPUT = sys.argv[1:4]


def connect(database=":memory:"):
    """The views, in a new database; what does not fit in memory goes to the scratch directory."""
    db = duckdb.connect(database)
    db.execute("SET temp_directory = ?", [SCRATCH + "/duckdb"])
    db.execute("SET memory_limit = '1GB'")
    db.execute("SET threads = 2")
    db.execute("SET enable_progress_bar = false")
    db.execute(open(VIEWS).read())
    return db


def rows(db, query, *values):
    """The rows of a query, as they are read."""
    cursor = db.cursor()
    # A cursor has no variables of the connection that it is of.
    cursor.execute("SET VARIABLE iotrace_dir = ?", db.execute("SELECT getvariable('iotrace_dir')").fetchone())
    answer = cursor.execute(query, list(values))
    while some := answer.fetchmany(4096):
        yield from some


def plain(text):
    """Names from traces are bytes from strangers: control characters are escaped."""
    return "".join(c if c.isprintable() else f"\\u{ord(c):04x}" for c in text)
