"""Asks a dataset by plain joins in pandas, without knowing that rows may repeat: plain.py DIR FILE... The sums are those of the
views, and of each FILE the bytes that were written to it are its size."""

import glob
import os
import sys

import duckdb
import pandas as pd

IDS = {"files": "file_id", "handles": "handle_id", "objects": "object_id", "processes": "process_ix",
       "threads": "thread_ix", "mounts": "mount_id", "stacks": "stack_id", "meta": "key"}
sizes = {os.path.realpath(path): os.stat(path).st_size for path in sys.argv[2:]}
os.chdir(sys.argv[1])


def table(name):
    return pd.read_parquet(sorted(glob.glob(f"{name}-*.parquet")), dtype_backend="pyarrow")


for name, key in IDS.items():
    ids = table(name)[key]
    assert ids.is_unique, f"{name}: {len(ids)} rows of {ids.nunique()} ids"

db = duckdb.connect()
db.execute(open("views.sql").read())
spans, files, processes = table("spans"), table("files"), table("processes")
assert len(sizes) and len(files) >= len(sizes) and len(processes) > 1, (len(files), len(processes))

joined = spans.merge(files, on=["host", "file_id"])
assert len(joined) == spans["file_id"].notna().sum(), f"{len(joined)} rows of {spans['file_id'].notna().sum()} calls on files"
top = joined[joined["layer_top"] & (joined["layer"] == "syscall")]
written = top[top["kind"] == "write"].groupby("path", observed=True)["bytes"].sum()
assert {path: int(written.get(path, 0)) for path in sizes} == sizes, (written.to_dict(), sizes)

views = db.sql("SELECT path, calls, coalesce(bytes_written, 0) FROM v_files WHERE layer = 'syscall' AND path IS NOT NULL").fetchall()
calls = top.groupby("path", observed=True).size()
for path in {path for path, _, _ in views}:
    of = [view for view in views if view[0] == path]
    asked = (sum(view[1] for view in of), sum(view[2] for view in of))
    assert asked == (calls[path], written.get(path, 0)), (path, asked, calls[path], written.get(path, 0))

per_process = spans.merge(processes, on=["host", "process_ix"], suffixes=("", "_of"))
asked = dict(db.sql("SELECT pid, count(*) FROM spans GROUP BY pid").fetchall())
assert per_process.groupby("pid_of").size().to_dict() == asked, (per_process.groupby("pid_of").size(), asked)
print(f"{len(spans)} calls, {len(files)} files, {len(processes)} processes")
