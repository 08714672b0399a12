"""Sums over bins of time: the timeline and the heat map."""

from typing import Any

from ._calls import Seconds, ns

#: The bins in which the tracer adds up.
BIN_NS = 100_000_000

#: What a bin is by: its expression over `rollup_bins r` and the command of its process.
BY = {
    "layer": "r.layer",
    "op": "r.op",
    "kind": "r.kind",
    "host": "r.host",
    "rank": "coalesce('rank ' || coalesce(p.rank, r.rank), coalesce(p.command, '?') || ' (pid ' || r.pid || ')')",
}

#: What a cell of the heat map is the sum of, and its unit.
VALUES = {"bytes": "bytes moved", "calls": "calls", "time": "ns in calls"}

#: Rows to add up, by what the heat map has rows of: where they stand, what they are by, and the values.
_CELLS = {
    "rank": f"""
        SELECT r.host, r.t_ns AS at_ns, r.layer, {BY["rank"]} AS label, r.calls,
               CASE WHEN r.kind IN ('read', 'write') THEN r.bytes END AS bytes, r.dur_ns AS time
        FROM rollup_bins r
             LEFT JOIN v_commands p ON p.host IS NOT DISTINCT FROM r.host AND p.process_ix = r.process_ix""",
    "file": """
        SELECT s.host, s.start_ns AS at_ns, s.layer, coalesce(f.path, 'file ' || s.file_id) AS label, 1 AS calls,
               CASE WHEN s.kind IN ('read', 'write') THEN s.bytes END AS bytes, s.layer_ns AS time
        FROM spans s LEFT JOIN files f ON f.host IS NOT DISTINCT FROM s.host AND f.file_id = s.file_id
        WHERE s.layer_top AND s.file_id IS NOT NULL""",
    "file of sums": """
        SELECT s.host, s.from_ns AS at_ns, s.layer, coalesce(f.path, 'file ' || s.file_id) AS label, s.calls,
               CASE WHEN s.kind IN ('read', 'write') THEN s.bytes END AS bytes, s.dur_ns AS time
        FROM file_rollup s LEFT JOIN files f ON f.host IS NOT DISTINCT FROM s.host AND f.file_id = s.file_id
        WHERE s.file_id IS NOT NULL""",
}


def bin_ns(seconds: Seconds) -> int:
    """The width of bins in ns.

    Raises:
        ValueError: When it is not a multiple of 0.1 s.
    """
    width = ns(seconds)
    if width <= 0 or width % BIN_NS:
        raise ValueError(f"bin={seconds!r}: the tracer adds up bins of 0.1 s; give a multiple of 0.1")
    return width


def timeline(width: int, by: str, layer: str | None) -> tuple[str, list[Any]]:
    """The query of `Dataset.timeline`.

    Raises:
        ValueError: When `by` is none of those there are.
    """
    query = f"""
        SELECT (r.t_ns + coalesce(n.shift_ns, 0)) // {width} * {width} AS t_ns, {_among("by", by, BY)} AS "{by}",
               sum(r.calls) AS calls,
               coalesce(sum(r.bytes) FILTER (r.kind = 'read'), 0) AS bytes_read,
               coalesce(sum(r.bytes) FILTER (r.kind = 'write'), 0) AS bytes_written,
               sum(r.dur_ns) AS inclusive_ns, sum(r.self_ns) AS exclusive_ns, max(r.max_ns) AS max_ns,
               sum(r.errors) AS errors
        FROM rollup_bins r LEFT JOIN iotrace_nodes n ON n.host IS NOT DISTINCT FROM r.host
             LEFT JOIN v_commands p ON p.host IS NOT DISTINCT FROM r.host AND p.process_ix = r.process_ix
        WHERE ?::VARCHAR IS NULL OR r.layer = ? GROUP BY 1, 2 ORDER BY 1, 2"""
    return query, [layer, layer]


def heatmap(width: int, by: str, value: str, layer: str, sums: bool) -> tuple[str, list[Any]]:
    """The query of `Dataset.heatmap`: of files from single calls, or with `sums` from the kernel's sums.

    Raises:
        ValueError: When `by` or `value` is none of those there are.
    """
    _among("value", value, VALUES)
    cells = _among("by", by, {"rank": _CELLS["rank"], "file": _CELLS["file of sums" if sums else "file"]})
    query = f"""
        SELECT (c.at_ns + coalesce(n.shift_ns, 0)) // {width} * {width} AS t_ns, c.label AS "{by}",
               coalesce(sum(c.{value}), 0) AS "{value}"
        FROM ({cells}) c LEFT JOIN iotrace_nodes n ON n.host IS NOT DISTINCT FROM c.host
        WHERE c.layer = ? GROUP BY 1, 2 ORDER BY 1, 2"""
    return query, [layer]


def _among(name: str, wanted: str, known: dict[str, Any]) -> Any:
    if wanted not in known:
        raise ValueError(f"{name}={wanted!r}: it is one of {', '.join(map(repr, known))}")
    return known[wanted]
