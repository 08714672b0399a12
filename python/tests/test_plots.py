"""Pictures show the figures of the tables."""

import numpy as np
import pytest
from matplotlib import pyplot

import iotrace
from iotrace._plots import printable


@pytest.fixture(autouse=True)
def closed():
    yield
    pyplot.close("all")


def drawn(ax):
    """The values of the cells."""
    return np.ma.filled(ax.images[0].get_array(), 0)


@pytest.mark.parametrize(("by", "value"), [("rank", "bytes"), ("rank", "calls"), ("file", "bytes"), ("file", "time")])
def test_a_heatmap_has_the_sums(either, by, value):
    cells = either.heatmap(by, value=value)
    ax = either.plot_heatmap(by, value=value, rows=10_000)
    assert drawn(ax).sum() == cells[value].sum() > 0
    assert len(ax.get_yticks()) == cells[cells[value] > 0][by].nunique()


def test_bytes_of_a_heatmap_are_those_of_the_layer(calls):
    moved = int(calls.layers().set_index("layer").loc["syscall", "moved"])
    assert drawn(calls.plot_heatmap("rank")).sum() == calls.heatmap()["bytes"].sum() == moved
    files = calls.files()
    files = files[files["layer"] == "syscall"]
    assert calls.heatmap("file")["bytes"].sum() == files["bytes_read"].sum() + files["bytes_written"].sum()


def test_ranks_stand_in_order_and_time(nodes):
    ax = nodes.plot_heatmap(bin=1)
    assert [label.get_text() for label in ax.get_yticklabels()] == ["rank 0", "rank 1"]
    assert drawn(ax).tolist() == [[4096], [8192]]
    assert ax.get_xlim() == (4, 5)


def test_most_files_are_left_out(calls):
    ax = calls.plot_heatmap("file", rows=3)
    totals = calls.heatmap("file").groupby("file")["bytes"].sum().sort_values(ascending=False)
    assert sorted(drawn(ax).sum(axis=1)) == sorted(totals[:3])
    assert f"(3 of {(totals > 0).sum()})" in ax.get_title()
    ax.figure.canvas.draw()


def test_a_heatmap_without_calls(calls):
    ax = calls.plot_heatmap(layer="netcdf")
    assert ax.texts[0].get_text() == "no such calls"


def test_names_of_strangers_are_escaped(nodes):
    labels = [label.get_text() for label in nodes.plot_heatmap("file").get_yticklabels()]
    assert sorted(labels) == ["/scratch/one\\x1b[31m.h5", "/scratch/two.h5"]
    assert printable("/tmp/$a$\u202e") == "/tmp/$a$\\u202e"
    assert len(printable("x" * 1000)) == 48


def test_a_long_trace_has_a_narrow_picture(calls):
    from iotrace import _plots

    cells = [(at * 10**9, "rank 0", 1) for at in range(0, 1_000_000, 1000)]
    ax = _plots.heatmap(cells, 10**8, "rank", "calls", 20, None)
    assert drawn(ax).shape[1] <= 2000 and drawn(ax).sum() == 1000


@pytest.mark.parametrize("value", ["bytes", "calls", "time"])
def test_a_timeline_is_drawn(calls, value):
    ax = calls.plot_timeline(value)
    columns = {"bytes": ["bytes_read", "bytes_written"], "calls": ["calls"], "time": ["inclusive_ns"]}[value]
    line = calls.timeline(by="kind", layer="syscall")
    total = line[columns].sum().sum() / (1e9 if value == "time" else 1)
    steps = 0.0
    for one in ax.lines:
        x, y = one.get_data()
        steps += float((np.diff(x) * y[:-1]).sum())
    assert steps == pytest.approx(total)
    ax.figure.canvas.draw()


def test_axes_of_ones_own(calls):
    _, ax = pyplot.subplots()
    assert calls.plot_heatmap(ax=ax) is ax and calls.plot_timeline(ax=ax) is ax


def test_without_matplotlib(calls, monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "matplotlib", None)
    with pytest.raises(iotrace.MissingExtra, match=r"iotrace\[plot\]"):
        calls.plot_heatmap()


def test_without_polars(calls, monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "polars", None)
    with pytest.raises(iotrace.MissingExtra, match=r"polars.*iotrace\[polars\]"):
        iotrace.open(calls.path, polars=True)
