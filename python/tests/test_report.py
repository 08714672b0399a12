"""The figures are those of `iotrace-bpf report --json`."""

import warnings
from collections import defaultdict

import pandas as pd
import pytest
from conftest import WHOLE

import iotrace

FIGURES = ["calls", "inclusive_ns", "exclusive_ns", "errors"]


@pytest.fixture(scope="module", params=[*WHOLE, "lossy", "killed"])
def both(request, data):
    """A dataset and its report."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", iotrace.LossWarning)
        run = iotrace.open(data / request.param)
    with run:
        yield run, run.report()


def rows(frame, *keys):
    """Rows by their keys, null as None."""
    plain = frame.astype(object).where(frame.notna(), None)
    found = {tuple(row[key] for key in keys): row for row in plain.to_dict("records")}
    assert len(found) == len(frame)
    return found


def test_layers(both):
    run, report = both
    ours = rows(run.layers(), "layer")
    # Requests are a layer of the report; of single calls they are a table of their own.
    theirs = {(row["layer"],): row for row in report["layers"] if row["layer"] != "block" or run.aggregate}
    assert set(ours) == set(theirs) and theirs
    for key, row in theirs.items():
        assert [ours[key][name] for name in FIGURES] == [row[name] for name in FIGURES], key
        assert ours[key]["exclusive_share"] == pytest.approx(row["exclusive_share"])
        assert (ours[key]["moved"], ours[key]["moved_unknown_calls"]) == tuple(row["moved"].values()), key
        if not run.aggregate:
            assert (ours[key]["nested_calls"], ours[key]["asked"]) == (row["nested_calls"], row["asked"]["sum"]), key


def test_ops(both):
    run, report = both
    ours = rows(run.ops(), "layer", "op")
    theirs = {(layer["layer"], op["op"]): op for layer in report["layers"] for op in layer["ops"]}
    theirs = {key: op for key, op in theirs.items() if key[0] != "block" or run.aggregate}
    assert set(ours) == set(theirs)
    for key, op in theirs.items():
        for name in FIGURES:
            assert ours[key][name] == op[name], (key, name)
        assert ours[key]["max_ns"] == op["max_ns"], key


def test_files(both):
    run, report = both
    ours = run.files()
    assert report["header"]["files"] == len(ours[["host", "file_id"]].drop_duplicates())
    only = ours["host"].iloc[0]
    by_key = rows(ours, "host", "file_id", "layer")
    assert report["files"]
    for file in report["files"]:
        for layer in file["layers"]:
            row = by_key[file.get("host", only), file["file_id"], layer["layer"]]
            assert row["path"] == file["path"]
            theirs = [layer[name] for name in ("calls", "time_ns", "errors")]
            assert [row[name] for name in ("calls", "time_ns", "errors")] == theirs, file["path"]
            assert (row["bytes_read"], row["bytes_written"]) == (layer["read"]["sum"], layer["written"]["sum"])
            for kind, name in (("read", "reads"), ("write", "writes"), ("open", "opens"), ("sync", "syncs")):
                assert row[name] == layer["kinds"].get(kind, 0), (file["path"], name)


def test_ranks(both):
    run, report = both
    ours = defaultdict(dict)
    for row in run.ranks().to_dict("records"):
        one = (int(row["rank"]),) if not pd.isna(row["rank"]) else (None, *row["pids"])
        ours[one][row["layer"]] = row
    theirs = report["ranks"]["rows"]
    assert theirs
    for row in theirs:
        layers = ours[(row["rank"],) if row["rank"] is not None else (None, *row["pids"])]
        for layer, ns in row["exclusive_ns"].items():
            assert layers[layer]["exclusive_ns"] == ns, (row["rank"], layer)
        moved = layers.get("syscall", {"bytes_read": 0, "bytes_written": 0})
        assert (moved["bytes_read"], moved["bytes_written"]) == (row["syscall_read"], row["syscall_written"])


def test_waits(both):
    run, report = both
    ours = [tuple(row) for row in run.waits()[["part", "ns", "op", "op_ns", "op_calls"]].itertuples(index=False)]
    assert ours == [tuple(row[name] for name in ("part", "ns", "op", "op_ns", "op_calls")) for row in report["waiting"]]


def test_coverage(both):
    run, report = both
    columns = ["layer", "attached", "probes", "absent"]
    ours = [tuple(row) for row in run.coverage()[columns].itertuples(index=False)]
    theirs = [row for row in report["coverage"] if row["probes"] or row["absent"]]
    assert ours == [tuple(row[name] for name in columns) for row in theirs]


def test_losses(both):
    run, report = both
    assert run.complete == report["complete"]
    ours = {(row["layer"], row["place"]): row["lost"] for row in run.losses().to_dict("records")}
    assert ours == {(row["layer"], row["place"]): row["count"] for row in report["losses"]}


def test_slowest_call(both):
    run, report = both
    if run.aggregate:
        assert report["slowest"] == []
        return
    slowest = report["slowest"][0]
    calls = run.calls(pid=slowest["pid"], op=slowest["tree"]["op"])
    call = calls[calls["span_id"] == slowest["root_id"]].iloc[0]
    assert (call["net_ns"], call["start_ns"]) == (slowest["tree"]["dur_ns"], slowest["start_ns"])
    tree = run.call_tree(slowest["root_id"], call["host"])
    assert (tree["layer"] != "block").sum() == slowest["calls"]


def test_findings(both):
    run, report = both
    ours = run.findings()
    columns = ["rule", "severity", "title", "seconds", "share", "gain_low_s", "gain_high_s", "advice", "sql"]
    assert ours[columns].to_dict("records") == [
        {name: finding[name] for name in columns} for finding in report["findings"]
    ]
    for row, finding in zip(ours.itertuples(), report["findings"], strict=True):
        evidence = {name: list(getattr(row, name)) for name in ("spans", "files", "functions", "ranks", "processes")}
        assert evidence == finding["evidence"]
        assert len(run.sql(row.sql)) > 0 or run.aggregate
    assert list(ours["run"].unique()) in ([], [0])


def test_something_is_found(data):
    with pytest.warns(iotrace.LossWarning):
        found = iotrace.open(data / "lossy").findings()
    assert "sync-per-record" in set(found["rule"])
