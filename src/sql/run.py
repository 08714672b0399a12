"""Answers queries over the views in a file: those given, piped or typed."""

import csv
import os
import sys

sys.path.pop(0)  # A module in the working directory is none of ours.
import duckdb

db = duckdb.connect()
db.execute(open(sys.argv[1]).read())


def show(answer):
    if sys.stdout.isatty():
        answer.show(max_rows=1000)
        return
    out = csv.writer(sys.stdout, lineterminator="\n")
    out.writerow(answer.columns)
    out.writerows(answer.query("answer", "SELECT COLUMNS(*)::VARCHAR FROM answer").fetchall())


def typed():
    """Statements as they are typed; each ends with a semicolon."""
    import readline  # Lines can be edited then.

    text = ""
    while True:
        try:
            text += input("-> " if text else "iotrace> ") + "\n"
        except KeyboardInterrupt:
            print()
            text = ""
        except EOFError:
            print()
            return
        if text.rstrip().endswith(";"):
            yield text
            text = ""


def attempt(query):
    try:
        for statement in db.extract_statements(query):
            if statement.expected_result_type == [duckdb.ExpectedResultType.QUERY_RESULT]:
                show(db.sql(statement.query))
            else:
                db.execute(statement)
        return 0
    except duckdb.Error as wrong:
        print(wrong, file=sys.stderr)
        return 1


try:
    if len(sys.argv) > 2:
        code = attempt(sys.argv[2])
    elif sys.stdin.isatty():
        for query in typed():
            attempt(query)
        code = 0
    else:
        code = attempt(sys.stdin.read())
    sys.stdout.flush()
except BrokenPipeError:
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    code = 0
sys.exit(code)
