"""Answers of DuckDB as data frames of pandas or Polars."""

from typing import Any, cast

import duckdb

from .errors import MissingExtra

_INTEGERS = {"TINYINT", "SMALLINT", "INTEGER", "BIGINT", "UTINYINT", "USMALLINT", "UINTEGER"}


def narrow(relation: duckdb.DuckDBPyRelation) -> duckdb.DuckDBPyRelation:
    """Sums as 64-bit integers: DuckDB's have 128 bits, which no data frame has. Beyond the range they are its ends."""

    def column(name: str, kind: str) -> str:
        quoted = '"' + name.replace('"', '""') + '"'
        if kind != "HUGEINT":
            return quoted
        most = f"WHEN {quoted} > {2**63 - 1} THEN {2**63 - 1}"
        least = f"WHEN {quoted} < {-(2**63)} THEN {-(2**63)}"
        return f"(CASE {most} {least} ELSE {quoted} END)::BIGINT AS {quoted}"

    kinds = [str(kind) for kind in relation.types]
    if "HUGEINT" not in kinds or len(set(relation.columns)) != len(kinds):
        return relation
    return relation.project(", ".join(map(column, relation.columns, kinds)))


def of_relation(relation: duckdb.DuckDBPyRelation, polars: bool) -> Any:
    """All rows of an answer. In pandas, integers with nulls are `Int64` and not doubles."""
    relation = narrow(relation)
    if polars:
        need_polars()
        return relation.pl()
    frame = relation.df()
    for at, kind in enumerate(relation.types):
        if str(kind) in _INTEGERS and frame.dtypes.iloc[at].kind == "f":
            frame.isetitem(at, frame.iloc[:, at].astype("Int64"))
    return frame


def of_rows(rows: list[dict[str, Any]], columns: dict[str, str], polars: bool) -> Any:
    """Rows that did not come from DuckDB, with the types of their columns as pandas has them, `object` for lists."""
    if polars:
        pl = need_polars()
        kinds = {"string": pl.String, "Int64": pl.Int64, "Float64": pl.Float64}
        lists = {"integers": pl.List(pl.Int64), "strings": pl.List(pl.String)}
        return pl.DataFrame(rows, schema={name: (kinds | lists)[kind] for name, kind in columns.items()})
    import pandas as pd

    kinds = {name: "object" if kind in ("integers", "strings") else kind for name, kind in columns.items()}
    # The stubs know only the names of types that are literals.
    return pd.DataFrame(rows, columns=list(columns)).astype(cast(Any, kinds))


def need_polars() -> Any:
    """The module `polars`.

    Raises:
        MissingExtra: When it, or `pyarrow`, is not installed.
    """
    try:
        import polars
        import pyarrow  # type: ignore[import-untyped]  # noqa: F401
    except ImportError as wrong:
        raise MissingExtra(f"data frames of Polars need {wrong.name}: pip install 'iotrace[polars]'") from wrong
    return polars
