"""Draws with matplotlib."""

from collections import defaultdict
from collections.abc import Iterable
from typing import Any

from .errors import MissingExtra

_NAME = 48


def _axes(ax: Any, height: float) -> Any:
    try:
        from matplotlib import pyplot
    except ImportError as wrong:
        raise MissingExtra("plots need matplotlib: pip install 'iotrace[plot]'") from wrong
    return pyplot.subplots(figsize=(9, height), layout="constrained")[1] if ax is None else ax


def printable(name: str) -> str:
    """A name of a stranger as a label: control characters escaped, the end of a long one."""
    plain = "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in name)
    return plain if len(plain) <= _NAME else "…" + plain[1 - _NAME :]


def _order(name: str) -> tuple[int, int, str]:
    """Ranks by number, and all others behind them."""
    number = name.removeprefix("rank ")
    return (0, int(number), "") if number != name and number.isdigit() else (1, 0, name)


def heatmap(cells: list[tuple[int, str, Any]], width: int, by: str, what: str, rows: int, ax: Any) -> Any:
    """Draws cells: start in ns, name of the row, value."""
    sums: defaultdict[str, float] = defaultdict(float)
    for _, name, value in cells:
        if value:
            sums[name] += float(value)
    shown = sorted(sums, key=lambda name: (-sums[name], _order(name)))[: max(rows, 1)]
    if by == "rank":
        shown.sort(key=_order)
    ax = _axes(ax, 1.5 + 0.28 * max(len(shown), 3))
    ax.set_xlabel("seconds since the start of the trace")
    ax.set_title(f"{what}" + (f" ({len(shown)} of {len(sums)})" if len(shown) < len(sums) else ""))
    if not shown:
        ax.text(0.5, 0.5, "no such calls", ha="center", va="center", transform=ax.transAxes)
        return ax
    first = min(at for at, name, _ in cells if name in sums) // width
    bins = max(at for at, name, _ in cells if name in sums) // width - first + 1
    drawn, per = _raster(cells, shown, first, bins, width)
    extent = (first * width / 1e9, (first + bins) * width / 1e9, len(shown) - 0.5, -0.5)
    image = ax.imshow(drawn, aspect="auto", interpolation="nearest", extent=extent, cmap="viridis")
    ax.set_yticks(range(len(shown)), [printable(name) for name in shown], parse_math=False)
    ax.figure.colorbar(image, ax=ax, label=f"sum of {per} bins" if per > 1 else None)
    return ax


#: Columns of the picture: more cannot be seen, and a long trace has millions.
_COLUMNS = 2000


def _raster(cells: list[tuple[int, str, Any]], shown: list[str], first: int, bins: int, width: int) -> tuple[Any, int]:
    """The values as rows and columns, and how many bins a column has."""
    import numpy as np

    per = -(-bins // _COLUMNS)
    drawn = np.zeros((len(shown), -(-bins // per)))
    row = {name: at for at, name in enumerate(shown)}
    for at, name, value in cells:
        if name in row:
            drawn[row[name], (at // width - first) // per] += float(value)
    return np.ma.masked_equal(drawn, 0), per


def timeline(steps: Iterable[tuple[int, str, Any]], width: int, by: str, what: str, ax: Any) -> Any:
    """Draws steps: start in ns, name of the line, value, which becomes one per second."""
    lines: defaultdict[str, dict[int, float]] = defaultdict(dict)
    for at, name, value in steps:
        lines[name][at // width] = float(value) / (width / 1e9)
    ax = _axes(ax, 3.5)
    ax.set_xlabel("seconds since the start of the trace")
    ax.set_ylabel(what)
    for name, line in sorted(lines.items(), key=lambda one: _order(one[0])):
        if any(line.values()):
            edges = sorted({edge for at in line for edge in (at, at + 1)})
            # A step without calls between two others is 0.
            values = [line.get(edge, 0.0) for edge in edges]
            (drawn,) = ax.plot([edge * width / 1e9 for edge in edges], values, drawstyle="steps-post")
            drawn.set_label(printable(name).replace("$", r"\$"))
    if ax.lines:
        ax.legend(title=by)
    return ax
