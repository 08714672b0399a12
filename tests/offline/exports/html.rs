//! `report --html`: the page opens in a browser without an error, and what it shows is what `DuckDB` finds in the dataset.

use crate::common::sql;
use crate::common::synthetic::trace;
use assert_cmd::Command;
use iotrace_bpf::export::{DatasetWriter, Options, VIEWS};
use iotrace_bpf::rows::{Block, Row, Span, span_id};
use iotrace_bpf::vocabulary::{Kind, Layer, flag};
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::Output;

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

fn fixture(name: &str) -> PathBuf {
    root().join("tests/fixtures").join(name)
}

fn report(dir: &Path, page: &Path) -> Output {
    let mut command = Command::cargo_bin("iotrace-bpf").unwrap();
    command.arg("report").arg(dir).arg("--html").arg(page).output().unwrap()
}

/// Runs a script of `tests/common/html`.
fn script(name: &str, args: &[&Path]) -> String {
    let script = root().join("tests/common/html").join(name);
    let out = std::process::Command::new(sql::python()).arg(script).args(args).output().unwrap();
    let (output, erred) = (String::from_utf8_lossy(&out.stdout), String::from_utf8_lossy(&out.stderr));
    assert!(out.status.success(), "{name}: {output}{erred}");
    output.into_owned()
}

/// Makes the page of a dataset, lets a browser open it, and returns its size.
fn check(dir: &Path) -> u64 {
    let work = tempfile::tempdir().unwrap();
    let page = work.path().join("page.html");
    let out = report(dir, &page);
    assert!(out.status.success() && out.stdout.is_empty(), "{}", String::from_utf8_lossy(&out.stderr));
    print!("{}", script("check.py", &[&page, dir]));
    page.metadata().unwrap().len()
}

fn synthetic(ranks: &str, steps: &str) -> u64 {
    let work = tempfile::tempdir().unwrap();
    let dir = work.path().join("synthetic");
    script("synthetic.py", &[&fixture("mpi_hdf5"), &dir, Path::new(ranks), Path::new(steps)]);
    check(&dir)
}

#[test]
fn a_recorded_parallel_run_is_shown() {
    let size = check(&fixture("mpi_hdf5"));
    assert!(size < 600_000, "{size}");
}

#[test]
fn sums_are_shown() {
    let size = check(&fixture("aggregate"));
    assert!(size < 600_000, "{size}");
}

#[test]
fn sixty_ranks_are_shown_one_by_one() {
    let size = synthetic("60", "50");
    assert!(size < 5_000_000, "{size}");
}

#[test]
fn thousands_of_ranks_are_shown() {
    let size = synthetic("4096", "3");
    assert!(size < 5_000_000, "{size}");
}

/// The functions of `crowded`, from the top layer down.
const OPS: [(Layer, [&str; 12]); 3] = [
    (
        Layer::Hdf5,
        [
            "H5Dwrite", "H5Dread", "H5Dopen2", "H5Dclose", "H5Awrite", "H5Aread", "H5Aopen", "H5Fopen", "H5Fclose",
            "H5Fflush", "H5Gopen2", "H5Gclose",
        ],
    ),
    (
        Layer::Mpiio,
        [
            "MPI_File_write",
            "MPI_File_read",
            "MPI_File_write_at",
            "MPI_File_read_at",
            "MPI_File_write_all",
            "MPI_File_read_all",
            "MPI_File_write_at_all",
            "MPI_File_read_at_all",
            "MPI_File_open",
            "MPI_File_close",
            "MPI_File_sync",
            "MPI_File_seek",
        ],
    ),
    (
        Layer::Syscall,
        [
            "pwrite64",
            "pread64",
            "write",
            "read",
            "openat",
            "close",
            "fsync",
            "fdatasync",
            "lseek",
            "ftruncate",
            "unlinkat",
            "newfstatat",
        ],
    ),
];

/// Writes a dataset in which everything that the page sums up is more than it keeps apart, with as many calls.
fn crowded(dir: &Path, calls: i64) {
    let options = Options { path: dir, host: "vm", force: false, owner: None, views: VIEWS };
    let mut writer = DatasetWriter::create(options).unwrap();
    let mut push = |row: Row| writer.push(row).unwrap();
    let long = 1_000_000_000_000;
    for (key, value) in [("t0_ns", "0"), ("t0_wall_ns", "1700000000000000000"), ("end_ns", "1000000000000")] {
        push(trace::meta(key, value));
    }
    (1..=600).for_each(|ix| push(trace::process(ix, Some(ix - 1))));
    (1..=40).for_each(|id| push(trace::file(id, &format!("/scratch/project/output/step.{id:04}.h5"))));
    // Numbers that look like chance, always the same.
    let mut state = 1_u64;
    let mut chance = |below: u64| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 16) % below
    };
    for call in 0..calls / 3 {
        let process = 1 + chance(600) as u32;
        let (at, id) = (chance(long) as i64, |level: i64| span_id(process, (call * 4 + level) as u32));
        for (level, (layer, ops)) in (0_i64..).zip(OPS) {
            let op = chance(12) as usize;
            let kind = [Kind::Write, Kind::Read, Kind::Meta][(op % 3).min(2)];
            let mut span =
                Span::new(id(level), (layer, ops[op], kind), process as i32, (at + level, 900_000_000 - level));
            (span.parent_id, span.root_id, span.depth) = ((level > 0).then(|| id(level - 1)), id(0), level as i8);
            (span.pid, span.rank, span.file_id) =
                (1000 + process as i32, Some(process as i32 - 1), Some(1 + chance(40) as i32));
            (span.self_ns, span.errno) = (300_000_000 + chance(1 << 28) as i64, (chance(3) == 0).into());
            span.bytes = (kind != Kind::Meta).then(|| 1 << chance(40));
            span.device_ns = (layer == Layer::Syscall).then_some(100_000_000);
            span.cpu_ns = span.device_ns;
            if layer == Layer::Mpiio {
                (span.coll_id, span.flags) = (Some(call / 35), flag::COLLECTIVE);
            }
            push(Row::Span(Box::new(span)));
        }
        if call % 8 == 0 {
            let (dev, dur_ns) = ((8 << 20) + chance(40) as i32, Some(1 + chance(1 << 30) as i64));
            push(Row::Block(Block { dev, dur_ns, ..request(call, at) }));
        }
    }
    writer.finish().unwrap();
}

fn request(req_id: i64, at: i64) -> Block {
    Block {
        req_id,
        dev: 0,
        device: None,
        op: "write",
        class: "sync",
        req_flags: 0,
        sector: req_id * 8,
        bytes: 1 << 30,
        pid: 1001,
        queue_ns: at,
        insert_ns: None,
        issue_ns: at,
        dur_ns: None,
        status: Some(0),
        nr_bios: 1,
        merges: 0,
        splits: 0,
        upper_dev: None,
        upper_sector: None,
        qdepth: 100,
    }
}

/// Sums of a few calls here are as long as those of 20 million of usual ones.
#[test]
fn a_page_does_not_grow_with_the_number_of_calls() {
    let work = tempfile::tempdir().unwrap();
    let sizes = [120_000, 360_000].map(|calls| {
        let (dir, page) = (work.path().join(calls.to_string()), work.path().join(format!("{calls}.html")));
        crowded(&dir, calls);
        let out = report(&dir, &page);
        assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stderr));
        let text = std::fs::read_to_string(&page).unwrap();
        let (_, data) = text.split_once("id=\"data\">").unwrap();
        let data: Value = serde_json::from_str(data.split_once("</script>").unwrap().0).unwrap();
        // More than is kept apart: time and ranks, nodes of the tree, collective calls and their arrivals, devices.
        for cube in ["calls", "sizes", "latency", "tree"] {
            let of = &data["cubes"][cube];
            assert!(of["bin_step"].as_i64() > Some(1), "{cube}: {}", of["bin_step"]);
            let column = if cube == "tree" { "ns" } else { "calls" };
            assert!(of["values"][column].as_array().unwrap().len() > 10_000, "{cube}");
        }
        assert!(data["tree"]["merged"].as_i64() > Some(0) && data["devices"]["left_out"].as_i64() > Some(0));
        let collectives = data["collectives"]["list"].as_array().unwrap();
        assert!(data["collectives"]["number"].as_u64().unwrap() as usize > collectives.len());
        assert!(collectives.iter().any(|call| call["arrivals"].is_null()));
        println!("{} bytes of {calls} calls", text.len());
        assert!(text.len() < 5_000_000);
        text.len()
    });
    assert!(sizes[1] < sizes[0] + sizes[0] / 10, "{sizes:?}");
}

#[test]
fn nodes_of_a_job_are_shown_in_one_page() {
    let work = tempfile::tempdir().unwrap();
    for node in ["0", "1", "2"] {
        let args = ["4", "20", node].map(Path::new);
        let dir = work.path().join("nodes").join(node);
        script("synthetic.py", &[&[&*fixture("mpi_hdf5"), &*dir], &args[..]].concat());
    }
    check(&work.path().join("nodes"));
}

#[test]
fn a_file_that_exists_is_not_replaced() {
    let work = tempfile::tempdir().unwrap();
    let page = work.path().join("page.html");
    std::fs::write(&page, "mine").unwrap();
    let out = report(&fixture("mpi_hdf5"), &page);
    let erred = String::from_utf8_lossy(&out.stderr);
    assert!(out.status.code() == Some(125) && erred.contains("page.html exists"), "{erred}");
    assert_eq!(std::fs::read_to_string(&page).unwrap(), "mine");
}

#[test]
fn runs_that_have_nothing_to_do_with_each_other_are_refused() {
    let work = tempfile::tempdir().unwrap();
    let page = work.path().join("page.html");
    let out = report(&root().join("tests/fixtures"), &page);
    let erred = String::from_utf8_lossy(&out.stderr);
    assert!(out.status.code() == Some(125) && erred.contains("give one: "), "{erred}");
    assert!(!page.exists());
}
