"""Opening, filters, frames, and times of several nodes."""

import shutil
import stat
import warnings
from datetime import timedelta

import duckdb
import pandas as pd
import polars as pl
import pytest

import iotrace


@pytest.fixture(autouse=True)
def strict():
    """A warning that no test expects is a failure."""
    with warnings.catch_warnings():
        warnings.simplefilter("error", UserWarning)
        yield


def test_what_is_no_dataset(tmp_path):
    with pytest.raises(iotrace.NotADataset, match="does not exist"):
        iotrace.open(tmp_path / "nothing")
    file = tmp_path / "file"
    file.write_text("")
    with pytest.raises(iotrace.NotADataset, match="is no directory"):
        iotrace.open(file)
    with pytest.raises(iotrace.NotADataset, match=r"holds no dataset.*--output"):
        iotrace.open(tmp_path)


def test_a_dataset_without_views(data, tmp_path):
    copy = shutil.copytree(data / "periods/0", tmp_path / "run")
    (copy / "views.sql").unlink()
    with pytest.raises(iotrace.NotADataset, match=r"no views\.sql"):
        iotrace.open(copy)


def test_damaged_tables(data, tmp_path):
    copy = shutil.copytree(data / "periods/0", tmp_path / "run")
    for part in copy.glob("files-*.parquet"):
        part.write_bytes(part.read_bytes()[:-20])
    with pytest.raises(iotrace.Unreadable, match="files-"):
        iotrace.open(copy).files()


@pytest.mark.parametrize("name", ["it's", "run[1]*", "a?b", 'quoted "run"', "-o"])
def test_names_of_directories(data, tmp_path, name):
    copy = shutil.copytree(data / "periods/0", tmp_path / name)
    with iotrace.open(copy) as run, iotrace.open(data / "periods/0") as plain:
        pd.testing.assert_frame_equal(run.layers(), plain.layers())
        assert len(run.layers()) == 1 and run.report() == plain.report()


def test_a_link_to_a_dataset(data, tmp_path):
    (tmp_path / "link").symlink_to(data / "periods/0")
    assert len(iotrace.open(tmp_path / "link").layers()) == 1


def test_names_that_duckdb_cannot_read(data, tmp_path):
    copy = shutil.copytree(data / "periods/0", tmp_path / "back\\slash")
    with pytest.raises(iotrace.NotADataset, match="backslash"):
        iotrace.open(copy)


def test_views_of_a_stranger_reach_no_other_file(data, tmp_path):
    copy = shutil.copytree(data / "periods/0", tmp_path / "run")
    secret = tmp_path / "secret.csv"
    secret.write_text("a\n1\n")
    views = (copy / "views.sql").read_text()
    for theft in (
        f"COPY (SELECT 1) TO '{tmp_path}/written.csv'",
        f"CREATE TABLE stolen AS FROM '{secret}'",
        f"CREATE TABLE stolen AS FROM read_text('{copy}/../secret.csv')",
        "SET enable_external_access = true",
        f"SET allowed_directories = ['{tmp_path}']",
    ):
        (copy / "views.sql").write_text(f"{theft};\n{views}")
        with pytest.raises(iotrace.Unreadable):
            iotrace.open(copy)
        assert sorted(path.name for path in tmp_path.iterdir()) == ["run", "secret.csv"]


def test_losses_are_warned_of(data):
    with pytest.warns(iotrace.LossWarning, match=r"3 events were lost.*losses\(\)") as warned:
        run = iotrace.open(data / "lossy")
    assert warned[0].filename == __file__
    assert not run.complete and run.ended and "with losses" in repr(run)
    assert run.losses()["lost"].sum() == 3


def test_a_killed_tracer_is_warned_of(data):
    with pytest.warns(iotrace.LossWarning, match="killed"):
        run = iotrace.open(data / "killed")
    assert run.complete and not run.ended


def test_sums_have_no_single_calls(sums):
    assert sums.aggregate
    with pytest.warns(iotrace.SumsWarning, match="--detail") as warned:
        assert len(sums.calls()) == 0
    assert warned[0].filename == __file__
    with pytest.warns(iotrace.SumsWarning):
        sums.waits(by="file")


def test_filters_of_calls(calls):
    every = calls.calls()
    assert len(every) == calls.sql("SELECT count(*) AS n FROM spans")["n"][0] > 1000

    def same(wanted, expected):
        assert 0 < len(expected) < len(every)
        assert list(wanted["span_id"]) == list(expected["span_id"])

    same(calls.calls("hdf5"), every[every["layer"] == "hdf5"])
    same(calls.calls(["hdf5", "mpiio"]), every[every["layer"].isin(["hdf5", "mpiio"])])
    same(calls.calls(op=("read", "pwrite64")), every[every["op"].isin(["read", "pwrite64"])])
    same(calls.calls(kind="sync"), every[every["kind"] == "sync"])
    same(calls.calls(rank=1), every[every["rank"] == 1])
    same(calls.calls(rank=[0, 1]), every[every["rank"].notna()])
    pid = every["pid"].iloc[-1]
    same(calls.calls(pid=int(pid)), every[every["pid"] == pid])
    same(calls.calls(file="*/demo.h5"), every[every["path"].str.endswith("/demo.h5", na=False)])
    same(calls.calls(slower_than=0.001), every[every["net_ns"] > 1_000_000])
    same(calls.calls(slower_than=timedelta(milliseconds=1)), every[every["net_ns"] > 1_000_000])
    same(calls.calls(failed=True), every[every["errno"] != 0])
    same(calls.calls(failed=False), every[every["errno"] == 0])
    middle = int(every["start_ns"].median())
    same(calls.calls(time=(middle / 1e9, None)), every[every["start_ns"] >= middle])
    same(calls.calls(time=(None, middle / 1e9)), every[every["start_ns"] < middle])
    same(calls.calls(limit=10), every[:10])
    assert len(calls.calls(layer="no such layer")) == 0
    # Values are no part of the query.
    assert len(calls.calls(op="' OR true --", file="'")) == 0


def test_integers_stay_integers(calls):
    every = calls.calls()
    for name in ("parent_id", "rank", "bytes", "span_id"):
        assert pd.api.types.is_integer_dtype(every[name].dtype), name
    assert every["parent_id"].isna().any() and every["bytes"].isna().any()
    assert str(calls.layers()["moved"].dtype) in ("int64", "Int64")
    values = (
        "(VALUES (170141183460469231731687303715884105727), (-170141183460469231731687303715884105727), (7), (NULL))"
    )
    big = calls.sql(f"SELECT n::HUGEINT AS n FROM {values} AS v (n)")
    assert big["n"].tolist() == [2**63 - 1, -(2**63), 7, pd.NA]


def test_polars_has_the_same(either):
    frames = iotrace.open(either.path, polars=True)
    for name in ("meta", "nodes", "coverage", "layers", "ops", "files", "ranks", "processes", "waits", "timeline"):
        ours, theirs = getattr(frames, name)(), getattr(either, name)()
        assert isinstance(ours, pl.DataFrame)
        assert (ours.shape, ours.columns) == (theirs.shape, list(theirs.columns)), name
    assert frames.layers()["calls"].to_list() == either.layers()["calls"].to_list()
    assert frames.findings()["rule"].to_list() == either.findings()["rule"].to_list()
    assert frames.findings().columns == list(either.findings().columns)
    assert frames.sql("SELECT sum(calls) AS n FROM rollup_bins")["n"].dtype == pl.Int64


def test_nodes_have_one_clock(nodes):
    assert list(nodes.nodes()["how"]) == ["reference", "calls"]
    every = nodes.calls()
    views = nodes.sql("SELECT host, span_id, wall_ns FROM v_spans")
    both = every.merge(views, on=["host", "span_id"])
    assert len(both) == len(every) == len(views) == 12
    assert (both["wall_ns_x"] == both["wall_ns_y"]).all()
    # Each collective call began on both nodes at nearly the same time, in the order of that time.
    opens = every[every["op"] == "MPI_File_open"]
    assert list(opens["coll_id"]) == sorted(opens["coll_id"])
    writes = nodes.calls(op="pwrite64", time=(4, 5))
    assert sorted(writes["bytes"]) == [4096, 8192]
    # The own times of the second node are 2 s less.
    assert sorted(writes["start_ns"] // 1_000_000_000) == [2, 4]


def test_a_timeline_of_nodes_has_one_clock(nodes):
    line = nodes.timeline(bin=1, by="rank", layer="syscall")
    assert line[["t_ns", "rank", "bytes_written"]].values.tolist() == [
        [4_000_000_000, "rank 0", 4096],
        [4_000_000_000, "rank 1", 8192],
    ]


def test_periods_follow_each_other(data):
    run = iotrace.open(data / "periods")
    assert list(run.calls()["start_ns"]) == [1_000_000_000, 11_000_000_000]
    assert list(run.timeline(bin=0.5)["t_ns"]) == [1_000_000_000, 11_000_000_000]
    assert run.files()["calls"].tolist() == [2]


@pytest.mark.parametrize("by", ["layer", "op", "kind", "rank", "host"])
def test_a_timeline_adds_up_to_the_sums(either, by):
    rollup = either.sql("SELECT sum(calls) AS calls, sum(errors) AS errors, sum(self_ns) AS ns FROM rollup_bins")
    line = either.timeline(bin=0.3, by=by)
    assert [line["calls"].sum(), line["errors"].sum(), line["exclusive_ns"].sum()] == rollup.iloc[0].tolist()
    assert (line["t_ns"] % 300_000_000 == 0).all()
    assert not line[["t_ns", by]].duplicated().any()


def test_a_timeline_has_the_calls_of_the_layers(calls):
    line = calls.timeline().groupby("layer")["calls"].sum()
    assert line.to_dict() == calls.layers().set_index("layer")["calls"].to_dict()


def test_wrong_arguments(calls):
    for wrong in (0, -1, 0.05, 0.25):
        with pytest.raises(ValueError, match=r"multiple of 0\.1"):
            calls.timeline(bin=wrong)
    for call in (
        lambda: calls.timeline(by="nothing"),
        lambda: calls.heatmap(by="nothing"),
        lambda: calls.heatmap(value="nothing"),
        lambda: calls.waits(by="nothing"),
        lambda: calls.plot_timeline("nothing"),
    ):
        with pytest.raises(ValueError, match="'nothing': it is one of"):
            call()


def test_a_query_of_ones_own(calls):
    answer = calls.sql("SELECT count(*) AS n FROM spans WHERE layer = ?", ["hdf5"])
    assert answer["n"][0] == len(calls.calls("hdf5"))
    with pytest.raises(duckdb.Error, match="nothing"):
        calls.sql("SELECT nothing FROM spans")


def test_without_the_program(data, monkeypatch, tmp_path):
    calls = data / "calls"
    with pytest.raises(iotrace.ProgramNotFound, match="no/such/program"):
        iotrace.open(calls, program="/no/such/program").findings()
    monkeypatch.delenv("IOTRACE_BPF")
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(iotrace.ProgramNotFound, match="IOTRACE_BPF"):
        iotrace.open(calls).findings()
    script = tmp_path / "iotrace-bpf"

    def program(text):
        script.write_text(f"#!/bin/sh\n{text}\n")
        script.chmod(script.stat().st_mode | stat.S_IXUSR)

    for text, why in (
        ("echo broken >&2; exit 125", "ended with 125: broken"),
        ("echo '['", "no JSON"),
        ("echo '[]'", "gave list"),
        ("echo '{}'", "another version"),
    ):
        program(text)
        with pytest.raises(iotrace.ProgramFailed, match=why):
            iotrace.open(calls).findings()
    two = '{"findings": [{"rule": "r", "evidence": {"ranks": [1]}}]}'
    program(f"""echo '{{"runs": [{{"report": {{"findings": []}}}}, {{"report": {two}}}]}}'""")
    found = iotrace.open(calls).findings()
    assert found[["run", "rule", "ranks", "files"]].values.tolist() == [[1, "r", [1], []]]
