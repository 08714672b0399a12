"""Opens a directory of datasets in DuckDB, through the views that stand in it."""

import os
from pathlib import Path

import duckdb

from .errors import NotADataset, Unreadable

_WAY_OUT = "give a directory written by `iotrace-bpf --output`, or one that holds several"


def directory(path: str | os.PathLike[str]) -> tuple[Path, Path]:
    """The directory with its links followed, and the `views.sql` to use.

    Of several datasets it is that of the last one by name, which is the latest period.

    Raises:
        NotADataset: When there is no dataset.
    """
    given = Path(path)
    if not given.is_dir():
        what = "is no directory" if given.exists() else "does not exist"
        raise NotADataset(f"{str(given)!r} {what}: {_WAY_OUT}")
    found: list[Path] = []
    without: list[Path] = []
    for at, below, names in os.walk(given.resolve()):
        below.sort()
        if any(name.startswith("meta-") and name.endswith(".parquet") for name in names):
            (found if "views.sql" in names else without).append(Path(at))
    if not found and without:
        raise NotADataset(f"{str(without[0])!r} has tables but no views.sql: copy that of another dataset into it")
    if not found:
        raise NotADataset(f"{str(given)!r} holds no dataset: {_WAY_OUT}")
    return given.resolve(), found[-1] / "views.sql"


def connect(root: Path, views: Path) -> duckdb.DuckDBPyConnection:
    """A database with the views, which reads no file outside of the directory: views of a dataset may be a stranger's.

    Raises:
        NotADataset: When DuckDB cannot name the directory.
        Unreadable: When the views cannot be created.
    """
    try:
        name = os.fsencode(root).decode()
    except UnicodeDecodeError:
        raise NotADataset(f"{str(root)!r}: DuckDB reads only paths that are UTF-8; rename the directory") from None
    if "\\" in name:
        raise NotADataset(f"{name!r}: DuckDB cannot read a path with a backslash; rename the directory")
    pattern = "".join(f"[{c}]" if c in "*?[" else c for c in name)
    db = duckdb.connect()
    try:
        allowed = ", ".join(_quoted(f"{one}/") for one in dict.fromkeys([name, pattern]))
        db.execute(f"SET allowed_directories = [{allowed}]")
        db.execute("SET enable_external_access = false")
        db.execute(f"SET VARIABLE iotrace_dir = {_quoted(pattern)}")
        db.execute(views.read_text())
        db.execute("FROM datasets").fetchall()
    except (duckdb.Error, OSError, UnicodeDecodeError) as wrong:
        db.close()
        raise Unreadable(f"{str(root)!r}: {wrong}") from wrong
    return db


def _quoted(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"
