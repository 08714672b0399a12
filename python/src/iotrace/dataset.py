"""A dataset, or several of one run, and what one asks of it."""

import os
import sys
import warnings
from pathlib import Path
from types import TracebackType
from typing import Any, Generic, Self, TypeVar, cast

import duckdb

from . import _calls, _frames, _plots, _program, _series, _sums, _tables
from ._calls import Names, Numbers, Seconds
from .errors import LossWarning, SumsWarning, Unreadable

#: `pandas.DataFrame` or `polars.DataFrame`.
Frame = TypeVar("Frame")

_FINDINGS = {
    "run": "Int64",
    "rule": "string",
    "severity": "string",
    "title": "string",
    "seconds": "Float64",
    "share": "Float64",
    "gain_low_s": "Float64",
    "gain_high_s": "Float64",
    "advice": "string",
    "sql": "string",
    "spans": "integers",
    "files": "strings",
    "functions": "strings",
    "ranks": "integers",
    "processes": "integers",
}


class Dataset(Generic[Frame]):
    """A dataset, or several of one run side by side: nodes, and the periods of each.

    Get one with `iotrace.open`. Every method reads the tables when it is called, and returns a data frame of pandas, or
    of Polars with `polars=True`. Figures come from the views of `views.sql`, of findings from `iotrace-bpf`.

    Columns whose name ends in `_ns` are nanoseconds. Times count from the start of the trace; `net_ns`, `inclusive_ns`,
    `exclusive_ns` and `time_ns` are without the time of the tracer's hooks. Columns of bytes are bytes. Null means "has
    none" or "not known", never 0. `docs/schema.md` of the tracer describes every table and view.

    Attributes:
        path: The directory, with links followed.
        connection: The DuckDB connection with the views. It reads no file outside of the directory.
        polars: Whether answers are data frames of Polars.
        aggregate: Whether the trace has sums (`--aggregate`) in place of single calls.
        complete: Whether nothing was lost, as `complete` of the report says: else sums are too small.
        ended: Whether every tracer wrote its end; without it the last seconds may be missing.
    """

    def __init__(
        self, path: str | os.PathLike[str], *, polars: bool = False, program: str | os.PathLike[str] | None = None
    ) -> None:
        """Opens the directory; see `iotrace.open`."""
        if polars:
            _frames.need_polars()
        self.path, views = _tables.directory(path)
        self.polars = polars
        self._program = program
        self.connection = _tables.connect(self.path, views)
        try:
            self._look()
        except BaseException:
            self.connection.close()
            raise

    def _look(self) -> None:
        """Reads the facts, and warns of what is missing."""
        self.aggregate: bool = self._one("SELECT count(*) > 0 FROM meta WHERE key = 'aggregate'")
        # Calls that are only missing one by one are in the sums.
        lost = self._one("SELECT coalesce(sum(lost), 0)::HUGEINT FROM v_loss WHERE place <> 'detail'")
        self.complete: bool = self._one("SELECT count(*) = 0 FROM v_loss WHERE place <> 'detail'")
        self.ended: bool = self._one(
            """SELECT count(*) = 0 FROM (SELECT DISTINCT host FROM datasets)
               WHERE host NOT IN (SELECT host FROM meta WHERE key = 'end_ns')"""
        )
        if not self.complete:
            _warn(f"{self.path}: {lost} events were lost, so sums are too small; see losses()", LossWarning)
        if not self.ended:
            _warn(f"{self.path}: the trace runs, or its tracer was killed: the last seconds are missing", LossWarning)
        several = self._one("SELECT count(DISTINCT host) > 1 FROM datasets")
        # Where there is one node, nothing has to be known of its clock.
        clocks = "v_clocks" if several else "(SELECT DISTINCT host, 0 AS offset_ns FROM datasets)"
        self._execute(
            f"""CREATE TEMP TABLE iotrace_nodes AS
                SELECT host, min(d.t0_wall_ns) + any_value(c.offset_ns) AS began_ns,
                       coalesce(min(d.t0_wall_ns) + any_value(c.offset_ns)
                                - min(min(d.t0_wall_ns) + any_value(c.offset_ns)) OVER (), 0)::BIGINT AS shift_ns
                FROM datasets d JOIN {clocks} c USING (host) GROUP BY host"""
        )

    def close(self) -> None:
        """Closes the connection."""
        self.connection.close()

    def __enter__(self) -> Self:
        """The dataset; the connection is closed at the end of `with`."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Closes the connection."""
        self.close()

    def __repr__(self) -> str:
        """The directory and the state of what is in it."""
        state = "complete" if self.complete else "with losses"
        return f"<iotrace.Dataset {str(self.path)!r}: {'sums' if self.aggregate else 'calls'}, {state}>"

    def sql(self, query: str, parameters: list[Any] | None = None) -> Frame:
        """The answer to a query of your own over the tables and views.

        Args:
            query: SQL of DuckDB; `SHOW TABLES` lists the views.
            parameters: The values of `?` in it.

        Raises:
            duckdb.Error: When DuckDB refuses the query.
        """
        return cast(Frame, _frames.of_relation(self.connection.sql(query, params=parameters or None), self.polars))

    def meta(self) -> Frame:
        """Facts about the run (view `meta`): `host`, `key`, `value`."""
        return self._frame("FROM meta ORDER BY host, key")

    def nodes(self) -> Frame:
        """The nodes and their clocks (view `v_clocks`): `host`, `offset_ns` (added to its wall clock), `how`, ..."""
        return self._frame("FROM v_clocks")

    def coverage(self) -> Frame:
        """What was traced (view `v_coverage`): of each layer its probes, and why others are missing.

        A layer without attached probes has no rows elsewhere, which means nothing then.
        """
        return self._frame("FROM v_coverage")

    def losses(self) -> Frame:
        """What was lost (view `v_loss`): `layer`, `place` (the cause), `lost` (events); no rows when nothing was."""
        return self._frame("FROM v_loss")

    def layers(self) -> Frame:
        """Each layer (view `v_layers`): calls, `inclusive_ns`, `exclusive_ns`, bytes asked and moved, errors.

        Traces with sums have a row for requests (`block`) too, and no `nested_calls`.
        """
        return self._frame(_sums.LAYERS if self.aggregate else "FROM v_layers")

    def ops(self) -> Frame:
        """Each function (view `v_ops`): as `layers`, with the distribution of durations in ns."""
        return self._frame(_sums.OPS if self.aggregate else "FROM v_ops")

    def files(self) -> Frame:
        """Each file and layer (view `v_files`): `path`, calls by kind, `time_ns`, bytes read and written."""
        return self._frame(_sums.FILES if self.aggregate else "FROM v_files")

    def ranks(self) -> Frame:
        """Each rank, or process without one, and layer (view `v_ranks`): calls, bytes, inclusive and exclusive time."""
        return self._frame(_sums.RANKS if self.aggregate else "FROM v_ranks")

    def processes(self) -> Frame:
        """The processes (view `processes`) with their `command`: pid, rank, program, user, job, times, exit code."""
        return self._frame(
            """SELECT p.*, c.command FROM processes p
               JOIN v_commands c ON c.host IS NOT DISTINCT FROM p.host AND c.process_ix = p.process_ix
               ORDER BY p.host, p.process_ix"""
        )

    def waits(self, by: str = "part") -> Frame:
        """Where the time of system calls went.

        Args:
            by: `part`: the parts that add up (view `v_waiting`), each with the function that has most of it. `file`:
                the parts by function, file and program (view `v_waiting_by_file`), of single calls only.

        Raises:
            ValueError: When `by` is neither.
        """
        views = {"part": "v_waiting", "file": "v_waiting_by_file"}
        if by not in views:
            raise ValueError(f"by={by!r}: it is one of 'part', 'file'")
        if by == "file":
            self._needs_calls("waits(by='file')")
        return self._frame(f"FROM {views[by]}")

    def calls(
        self,
        layer: Names | None = None,
        op: Names | None = None,
        *,
        kind: Names | None = None,
        file: str | None = None,
        rank: Numbers | None = None,
        pid: Numbers | None = None,
        host: Names | None = None,
        time: tuple[Seconds | None, Seconds | None] | None = None,
        slower_than: Seconds | None = None,
        failed: bool | None = None,
        limit: int | None = None,
    ) -> Frame:
        """Single calls (view `v_calls`: all columns of `spans`, with `path`, `object` and `command`), in order of time.

        `wall_ns` is the start in ns since 1970, of all nodes by one clock. A large trace has millions of calls: filter
        here, not in the data frame.

        Args:
            layer: `hdf5`, `mpiio`, `stdio`, `syscall`, ...; one or several, as `op`, `kind`, `rank`, `pid` and `host`.
            op: The function, as `pwrite64`.
            kind: `read`, `write`, `open`, `close`, `meta`, `sync`, `seek`, `mmap`, `wait`, `other`.
            file: A pattern of paths, as `/scratch/*.h5`; `*` matches `/` as well.
            rank: The number of the MPI process.
            pid: The process.
            host: The node.
            time: Calls that began from the first of these times on and before the second, in seconds since the start of
                the first node's trace; `None` is open.
            slower_than: Calls that took longer (`net_ns`), in seconds.
            failed: Only calls that failed, or only those that did not.
            limit: At most that many, the earliest.
        """
        self._needs_calls("calls()")
        where, values = _calls.conditions(layer, op, kind, file, rank, pid, host, time, slower_than, failed)
        query = f"""SELECT c.*, c.start_ns + n.began_ns AS wall_ns
                    FROM v_calls c LEFT JOIN iotrace_nodes n ON n.host IS NOT DISTINCT FROM c.host
                    WHERE {where} ORDER BY c.start_ns + coalesce(n.shift_ns, 0), c.host, c.span_id LIMIT ?"""
        return self._frame(query, [*values, 2**62 if limit is None else limit])

    def call_tree(self, span_id: int, host: str | None = None) -> Frame:
        """One call down to the device, a line for each call and request inside it (macro `call_tree`).

        Args:
            span_id: The call.
            host: Its node: of several nodes ids are those of one.
        """
        return self._frame("FROM call_tree(?::BIGINT, ?::VARCHAR)", [span_id, host])

    def timeline(self, bin: Seconds = 0.1, by: str = "layer", layer: str | None = None) -> Frame:
        """Calls, bytes and times by time (table `rollup`): calls count where they began.

        Args:
            bin: The width of a row, in seconds: a multiple of 0.1.
            by: `layer`, `op`, `kind`, `rank` (or process) or `host`.
            layer: Only this layer: of several layers the bytes are those of each, which are often the same bytes.

        Returns:
            `t_ns` (start of the bin, since the start of the first node's trace), what it is by, `calls`, `bytes_read`,
            `bytes_written`, `inclusive_ns`, `exclusive_ns`, `max_ns`, `errors`.
        """
        return self._frame(*_series.timeline(_series.bin_ns(bin), by, layer))

    def heatmap(self, by: str = "rank", *, value: str = "bytes", bin: Seconds = 0.1, layer: str = "syscall") -> Frame:
        """The cells of `plot_heatmap`: `t_ns`, `rank` or `file`, and the value; cells without calls have no row.

        Args:
            by: `rank` (processes without a rank by their command) or `file`.
            value: `bytes` (moved by reads and writes), `calls`, or `time` (ns in outermost calls of the layer).
            bin: The width of a cell in seconds, a multiple of 0.1. Sums of files (`--aggregate`) are of about 1 s.
            layer: The layer whose calls count.
        """
        return self._frame(*self._cells(by, value, bin, layer))

    def plot_heatmap(
        self,
        by: str = "rank",
        *,
        value: str = "bytes",
        bin: Seconds = 0.1,
        layer: str = "syscall",
        rows: int = 20,
        ax: Any = None,
    ) -> Any:
        """Draws when each rank or file had how much I/O (needs `iotrace[plot]`). Arguments are those of `heatmap`.

        Args:
            by: `rank` or `file`.
            value: `bytes`, `calls` or `time`.
            bin: The width of a cell in seconds.
            layer: The layer whose calls count.
            rows: Ranks or files that are shown, those with the most; ranks stand in their order.
            ax: The `matplotlib` axes to draw on; a new figure without.

        Returns:
            The axes.
        """
        cells = self._execute(*self._cells(by, value, bin, layer)).fetchall()
        what = f"{_series.VALUES[value]}, layer {layer}, each {_calls.ns(bin) / 1e9:g} s"
        return _plots.heatmap(cells, _series.bin_ns(bin), by, what, rows, ax)

    def plot_timeline(
        self, value: str = "bytes", *, bin: Seconds = 0.1, by: str = "kind", layer: str = "syscall", ax: Any = None
    ) -> Any:
        """Draws I/O by time, a line for each kind of call, or layer, rank, ... (needs `iotrace[plot]`).

        Args:
            value: `bytes` (read and written, per second), `calls` (per second) or `time` (seconds in calls per second).
            bin: The width of a step in seconds, a multiple of 0.1.
            by: `kind`, `op`, `rank`, `host`.
            layer: The layer whose calls count.
            ax: The `matplotlib` axes to draw on; a new figure without.

        Returns:
            The axes.
        """
        width = _series.bin_ns(bin)
        query, values = _series.timeline(width, by, layer)
        columns = {"bytes": "bytes_read + bytes_written", "calls": "calls", "time": "inclusive_ns / 1e9"}
        if value not in columns:
            raise ValueError(f"value={value!r}: it is one of {', '.join(map(repr, columns))}")
        steps = self._execute(f'SELECT t_ns, "{by}", {columns[value]} FROM ({query})', values).fetchall()
        unit = {"bytes": "bytes/s", "calls": "calls/s", "time": "seconds in calls per second"}[value]
        return _plots.timeline(steps, width, by, f"{unit}, layer {layer}", ax)

    def report(self) -> dict[str, Any]:
        """The whole report as `iotrace-bpf report --json` gives it; of several runs `{"runs": [...]}`.

        Raises:
            ProgramNotFound: When there is no program: `program=` of `iotrace.open`, else `$IOTRACE_BPF`, else `PATH`.
            ProgramFailed: When it refuses the dataset.
        """
        return _program.report(_program.find(self._program), self.path)

    def findings(self) -> Frame:
        """What is slow and why, the costliest first, as the report of `iotrace-bpf` finds it.

        Returns:
            `run` (0 when all is of one run), `rule`, `severity`, `title`, `seconds` that it costs, `share` of the time
            in calls, `gain_low_s` and `gain_high_s` (what removing it would save), `advice`, `sql` (a query for
            `Dataset.sql`), and evidence: lists of `spans` (ids), `files`, `functions` of the
            program, `ranks`, `processes` (pids).

        Raises:
            ProgramNotFound: When there is no program, as in `report`.
            ProgramFailed: When it refuses the dataset.
        """
        return cast(Frame, _frames.of_rows(_program.finding_rows(self.report()), _FINDINGS, self.polars))

    def _cells(self, by: str, value: str, bin: Seconds, layer: str) -> tuple[str, list[Any]]:
        return _series.heatmap(_series.bin_ns(bin), by, value, layer, self.aggregate)

    def _needs_calls(self, what: str) -> None:
        if self.aggregate:
            _warn(f"{self.path} has sums (--aggregate): {what} has only the calls that --detail selected", SumsWarning)

    def _execute(self, query: str, values: list[Any] | None = None) -> duckdb.DuckDBPyConnection:
        try:
            return self.connection.execute(query, values)
        except duckdb.Error as wrong:
            raise Unreadable(f"{str(self.path)!r}: {wrong}") from wrong

    def _one(self, query: str) -> Any:
        row = self._execute(query).fetchone()
        return row[0] if row else None

    def _frame(self, query: str, values: list[Any] | None = None) -> Frame:
        try:
            return self.sql(query, values)
        except duckdb.Error as wrong:
            raise Unreadable(f"{str(self.path)!r}: {wrong}") from wrong


def _warn(text: str, category: type[Warning]) -> None:
    """Warns at the line that called this package."""
    here, frame, level = Path(__file__).parent, sys._getframe(1), 2
    while frame.f_back and Path(frame.f_code.co_filename).parent == here:
        frame, level = frame.f_back, level + 1
    warnings.warn(text, category, stacklevel=level)
