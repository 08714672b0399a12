"""Conditions on calls, as SQL with parameters."""

from collections.abc import Sequence
from datetime import timedelta
from typing import Any, TypeAlias

Seconds: TypeAlias = float | timedelta
Names: TypeAlias = str | Sequence[str]
Numbers: TypeAlias = int | Sequence[int]


def ns(seconds: Seconds) -> int:
    """Whole ns of a time in seconds."""
    if isinstance(seconds, timedelta):
        return round(seconds.total_seconds() * 1e9)
    return round(seconds * 1e9)


def conditions(
    layer: Names | None,
    op: Names | None,
    kind: Names | None,
    file: str | None,
    rank: Numbers | None,
    pid: Numbers | None,
    host: Names | None,
    time: tuple[Seconds | None, Seconds | None] | None,
    slower_than: Seconds | None,
    failed: bool | None,
) -> tuple[str, list[Any]]:
    """What the wanted calls have in common: a condition over `v_calls c` and `iotrace_nodes n`, and its parameters."""
    terms: list[str] = []
    values: list[Any] = []
    for column, wanted in (("layer", layer), ("op", op), ("kind", kind), ("rank", rank), ("pid", pid), ("host", host)):
        if wanted is not None:
            terms.append(f"list_contains(?, c.{column})")
            values.append([wanted] if isinstance(wanted, str | int) else list(wanted))
    if file is not None:
        terms.append("c.path GLOB ?")
        values.append(file)
    since, until = time or (None, None)
    for bound, sign in ((since, ">="), (until, "<")):
        if bound is not None:
            terms.append(f"c.start_ns + coalesce(n.shift_ns, 0) {sign} ?")
            values.append(ns(bound))
    if slower_than is not None:
        terms.append("c.net_ns > ?")
        values.append(ns(slower_than))
    if failed is not None:
        terms.append("c.errno <> 0" if failed else "c.errno = 0")
    return " AND ".join(terms) or "true", values
