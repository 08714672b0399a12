//! Parallel programs of NetCDF-4 and `PnetCDF`, rank by rank: calls, bytes, collective calls, requests, layers below.

use crate::common::live::{self, Data};
use crate::common::recording::Recording;
use crate::common::tools::ncdump;
use crate::common::{programs, sql};
use iotrace_bpf::rows::{Handle, Span};
use iotrace_bpf::vocabulary::{Kind, Layer, flag};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::LazyLock;

const RANKS: usize = 3;

struct Job {
    recording: Recording,
    data: Data,
    truths: Vec<Value>,
}

fn run(program: &str) -> Job {
    let own = ["--allow-run-as-root", "--oversubscribe", "-np"].map(PathBuf::from);
    let mpirun = [programs::openmpi("mpirun").into()].into_iter().chain(own).chain([RANKS.to_string().into()]);
    let record = |work: &Path| {
        let command: Vec<PathBuf> = mpirun.chain([programs::build(program), work.to_owned()]).collect();
        live::trace(work, &[], &command)
    };
    let recording = Recording::shared(program, record);
    let data = recording.traced().data().lossless();
    let truth = |rank: usize| fs::read(recording.work().join(format!("truth.{rank}.json"))).unwrap();
    let truths = (0..RANKS).map(|rank| serde_json::from_slice(&truth(rank)).unwrap()).collect();
    Job { recording, data, truths }
}

/// One run of each serves all tests.
static NETCDF: LazyLock<Job> = LazyLock::new(|| run("netcdf_par"));
static PNETCDF: LazyLock<Job> = LazyLock::new(|| run("pnetcdf_mix"));

impl Job {
    /// What a rank's program called itself.
    fn own(&self, rank: usize, layer: Layer) -> impl Iterator<Item = &Span> {
        let pid = self.truths[rank]["pid"].as_i64();
        self.data.layer(layer).filter(move |s| s.layer_top && Some(i64::from(s.pid)) == pid)
    }

    fn totals(&self, rank: usize, layer: Layer, what: fn(&Span) -> i64) -> BTreeMap<String, i64> {
        let mut all = BTreeMap::new();
        for span in self.own(rank, layer) {
            *all.entry(span.op.to_owned()).or_default() += what(span);
        }
        all.into_iter().filter(|(_, n)| *n != 0).collect()
    }

    fn handles(&self, layer: Layer, name: &str) -> Vec<&Handle> {
        let path = self.recording.work().join(name);
        let of_file = |h: &&Handle| {
            h.file_id.is_some_and(|id| self.data.files[&id].path.as_deref().map(Path::new) == Some(&path))
        };
        self.data.handles.values().filter(|h| h.layer == layer).filter(of_file).collect()
    }

    /// The lengths of the dimensions of a file's variables.
    fn dims(&self, name: &str) -> BTreeMap<String, Vec<i64>> {
        let path = self.recording.work().join(name);
        let of_file = |id: i32| self.data.files[&id].path.as_deref().map(Path::new) == Some(&path);
        let variables = self.data.objects.values().filter(|o| o.class == "variable" && o.file_id.is_some_and(of_file));
        variables.map(|o| (o.name.clone(), o.dims.clone().unwrap())).collect()
    }
}

fn numbers(truth: &Value) -> BTreeMap<String, i64> {
    truth
        .as_object()
        .unwrap()
        .iter()
        .map(|(name, n)| (name.clone(), n.as_i64().unwrap()))
        .filter(|(_, n)| *n != 0)
        .collect()
}

#[test]
fn every_rank_of_a_parallel_netcdf_4_program_is_seen() {
    for rank in 0..RANKS {
        let truth = &NETCDF.truths[rank];
        let totals = |what| NETCDF.totals(rank, Layer::Netcdf, what);
        assert_eq!(totals(|_| 1), numbers(&truth["netcdf"]), "rank {rank}");
        assert_eq!(totals(|s| s.bytes.unwrap_or(0)), numbers(&truth["bytes"]), "rank {rank}");
        let collective = |s: &Span| i64::from(s.flags & flag::COLLECTIVE != 0);
        assert_eq!(totals(collective), numbers(&truth["collective"]), "rank {rank}");
    }
    assert_eq!(NETCDF.dims("par.nc"), ncdump::variables(&NETCDF.recording.work().join("par.nc")));
}

#[test]
fn a_netcdf_file_stands_on_hdf5_on_mpi_io_on_a_descriptor() {
    let files: Vec<&Handle> = NETCDF.handles(Layer::Netcdf, "par.nc");
    assert_eq!(files.len(), 2 * RANKS);
    for file in files {
        let below = |layer: Layer, parent: &Handle| -> Vec<&Handle> {
            let all = NETCDF.handles(layer, "par.nc");
            all.into_iter().filter(|h| h.parent_handle_id == Some(parent.handle_id)).collect()
        };
        let hdf5: Vec<&Handle> = below(Layer::Hdf5, file).into_iter().filter(|h| h.object_id.is_none()).collect();
        assert_eq!(hdf5.len(), 1, "below {file:?}");
        let mpi = below(Layer::Mpiio, hdf5[0]);
        assert_eq!(mpi.len(), 1, "below {:?}", hdf5[0]);
        assert!(!below(Layer::Syscall, mpi[0]).is_empty(), "below {:?}", mpi[0]);
    }
    // A put goes through all of them.
    let data = &NETCDF.data;
    let through = |op: &str| -> BTreeSet<Vec<Layer>> {
        let path = NETCDF.recording.work().join("par.nc");
        let writes = data.layer(Layer::Syscall).filter(|s| s.kind == Kind::Write && data.path(s) == Some(&path));
        let inside = writes.filter(|s| data.ancestors(s).any(|a| a.op == op));
        inside.map(|s| data.ancestors(s).map(|a| a.layer).collect()).collect()
    };
    assert_eq!(through("nc_put_vara_double"), BTreeSet::from([vec![Layer::Mpiio, Layer::Hdf5, Layer::Netcdf]]));
}

#[test]
fn every_function_of_pnetcdf_is_seen_with_its_bytes_on_every_rank() {
    for rank in 0..RANKS {
        let truth = &PNETCDF.truths[rank];
        let totals = |what| PNETCDF.totals(rank, Layer::Pnetcdf, what);
        assert_eq!(totals(|_| 1), numbers(&truth["pnetcdf"]), "rank {rank}");
        assert_eq!(totals(|s| s.bytes.unwrap_or(0)), numbers(&truth["bytes"]), "rank {rank}");
        let mut failed = numbers(&truth["errors"]);
        for (op, n) in numbers(&truth["cancelled"]) {
            *failed.entry(op).or_default() += n;
        }
        assert_eq!(totals(|s| i64::from(s.errno != 0)), failed, "rank {rank}");
    }
    let unknown = |s: &&Span| matches!(s.kind, Kind::Read | Kind::Write) && s.req_bytes.is_none();
    assert_eq!(PNETCDF.data.layer(Layer::Pnetcdf).find(unknown), None);
    assert_eq!(PNETCDF.dims("five.nc"), ncdump::variables(&PNETCDF.recording.work().join("five.nc")));
}

#[test]
fn functions_for_all_ranks_are_collective() {
    for span in PNETCDF.data.layer(Layer::Pnetcdf).filter(|s| matches!(s.kind, Kind::Read | Kind::Write | Kind::Wait)) {
        let attribute = span.op.contains("_att");
        let wanted = span.op.ends_with("_all") || attribute && span.kind == Kind::Write;
        assert_eq!(span.flags & flag::COLLECTIVE != 0, wanted, "{span:?}");
    }
}

/// Bytes of an element in memory, by the function's name; those that take a datatype are called with these.
fn element(op: &str) -> i64 {
    match op.rsplit('_').next().unwrap() {
        "text" | "schar" | "uchar" => 1,
        "short" | "ushort" => 2,
        "int" | "uint" | "float" => 4,
        "vara" if op.starts_with("ncmpi_iput") => 4,
        _ => 8,
    }
}

#[test]
fn what_is_queued_is_written_by_the_wait() {
    let data = &PNETCDF.data;
    let submitted: Vec<&Span> = data.layer(Layer::Pnetcdf).filter(|s| s.flags & flag::ASYNC != 0).collect();
    let submits = |s: &&Span| ["ncmpi_iput", "ncmpi_iget", "ncmpi_bput"].iter().any(|stem| s.op.starts_with(stem));
    assert!(submitted.iter().all(submits));
    // They end when a wait does, or a cancel, or the close that cancels them; they do nothing themselves.
    let ends: BTreeMap<(i32, i64), &str> =
        data.layer(Layer::Pnetcdf).filter(|s| !submits(s)).map(|s| ((s.tid, s.start_ns + s.dur_ns), s.op)).collect();
    let mut by_end: BTreeMap<&str, Vec<&Span>> = BTreeMap::new();
    for span in submitted {
        assert_eq!(span.async_id, Some(span.span_id));
        by_end.entry(ends[&(span.tid, span.start_ns + span.dur_ns)]).or_default().push(span);
        assert!(!data.layer(Layer::Mpiio).any(|s| s.parent_id == Some(span.span_id)), "{span:?}");
    }
    assert_eq!(
        by_end.keys().copied().collect::<Vec<_>>(),
        ["ncmpi_cancel", "ncmpi_close", "ncmpi_wait", "ncmpi_wait_all"]
    );
    for (op, n) in [("ncmpi_cancel", 1), ("ncmpi_close", 1), ("ncmpi_wait", 2)] {
        assert_eq!(by_end[op].len(), n * RANKS, "{op}");
        assert!(
            by_end[op].iter().all(|s| (s.errno != 0) == (op != "ncmpi_wait") && s.bytes.is_none() == (s.errno != 0))
        );
    }
    // In the file an element has the size of the variable's type.
    let in_file = |s: &&Span| {
        let size = data.objects[&s.object_id.unwrap()].elem_size.unwrap();
        s.bytes.unwrap() / element(s.op) * i64::from(size)
    };
    let queued: i64 = by_end["ncmpi_wait_all"].iter().filter(|s| s.kind == Kind::Write).map(in_file).sum();
    let waits = |s: &&Span| data.parent(s).is_some_and(|p| p.op == "ncmpi_wait_all") && s.kind == Kind::Write;
    let written: i64 = data.layer(Layer::Mpiio).filter(waits).map(|s| s.bytes.unwrap()).sum();
    assert_eq!(written, queued);
}

#[test]
fn pnetcdf_calls_hold_those_of_mpi_io() {
    let data = &PNETCDF.data;
    let five = PNETCDF.recording.work().join("five.nc");
    for span in data.layer(Layer::Mpiio).filter(|s| data.path(s) == Some(&five)) {
        assert_eq!(data.parent(span).map(|p| p.layer), Some(Layer::Pnetcdf), "{span:?}");
    }
    // A file has one handle of MPI-IO, and one more for calls that are not collective.
    let files = PNETCDF.handles(Layer::Pnetcdf, "five.nc");
    assert_eq!(files.len(), 3 * RANKS);
    for mpi in PNETCDF.handles(Layer::Mpiio, "five.nc") {
        assert!(files.iter().any(|f| mpi.parent_handle_id == Some(f.handle_id)), "{mpi:?}");
        let below = PNETCDF.handles(Layer::Syscall, "five.nc");
        assert!(below.iter().any(|fd| fd.parent_handle_id == Some(mpi.handle_id)), "{mpi:?}");
    }
    assert!(files.iter().all(|f| f.end_ns.is_some()));
}

#[test]
fn the_reports_agree_with_sql() {
    for (job, lines) in [
        (&NETCDF, ["    6  netcdf ", "    6      > mpiio ", "    6        > syscall fd "]),
        (&PNETCDF, ["    9  pnetcdf ", "  > mpiio ", "ncmpi_wait_all"]),
    ] {
        let text = live::report_of(&job.recording.traced().dir, "functions,handles");
        for line in lines {
            assert!(text.contains(line), "{line:?} is not in\n{text}");
        }
        sql::compare(&job.recording.traced().dir);
    }
}
