"""`inserts.py MODE FILE COUNT`: inserts COUNT rows into SQLite, `each` in a transaction of its own all in `one`, or each and
`unsynced`, which does not flush."""

import sqlite3
import sys

mode, path, count = *sys.argv[1:3], int(sys.argv[3])
base = sqlite3.connect(path, isolation_level=None)
if mode == "unsynced":
    base.execute("pragma synchronous = off")
base.execute("create table log(step integer, text text)")
if mode == "one":
    base.execute("begin")
for step in range(count):
    base.execute("insert into log values (?, ?)", (step, "a record of the log"))
if mode == "one":
    base.execute("commit")
base.close()
