//! A parallel program through every layer: HDF5, MPI-IO, C standard I/O, system calls and the disk, rank by rank.

use crate::common::live::{self, Data};
use crate::common::recording::Recording;
use crate::common::{programs, sql};
use iotrace_bpf::rows::{Handle, Span};
use iotrace_bpf::vocabulary::{Kind, Layer};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::LazyLock;

const RANKS: i32 = 4;

struct Demo {
    recording: Recording,
    out: PathBuf,
    data: Data,
}

/// One run serves all tests of this file.
static DEMO: LazyLock<Demo> = LazyLock::new(|| {
    let record = |work: &Path| {
        let (program, ranks, mpirun) = (programs::build("demo"), RANKS.to_string(), programs::openmpi("mpirun"));
        let mpirun = [&mpirun, "--allow-run-as-root", "--oversubscribe", "-np", &ranks].map(Path::new);
        live::trace(work, &[], &[&mpirun[..], &[program.as_path(), &work.join("out")]].concat())
    };
    let recording = Recording::shared("demo_of_4_ranks", record);
    Demo { out: recording.work().join("out"), data: recording.traced().data(), recording }
});

fn truth(rank: i32) -> Value {
    serde_json::from_slice(&fs::read(DEMO.out.join(format!("truth.{rank}.json"))).unwrap()).unwrap()
}

/// The calls of a rank's own process in a layer that the program made itself, not a library above.
fn direct(rank: i32, layer: Layer) -> impl Iterator<Item = &'static Span> {
    let data = &DEMO.data;
    let pid = truth(rank)["pid"].as_i64();
    data.layer(layer).filter(move |s| {
        s.rank == Some(rank) && Some(i64::from(s.pid)) == pid && data.ancestors(s).all(|a| a.layer == layer)
    })
}

fn calls(truth: &Value) -> BTreeMap<String, i64> {
    truth.as_object().unwrap().iter().map(|(name, n)| (name.clone(), n.as_i64().unwrap())).collect()
}

#[test]
fn nothing_is_lost() {
    assert_eq!(DEMO.data.losses, []);
    let ranks: BTreeSet<i32> = DEMO.data.spans.iter().filter_map(|s| s.rank).collect();
    assert_eq!(ranks, (0..RANKS).collect());
    for rank in 0..RANKS {
        let pid = truth(rank)["pid"].as_i64();
        let process = DEMO.data.processes.values().find(|p| Some(i64::from(p.pid)) == pid).unwrap();
        assert_eq!((process.rank, process.world_size, process.exit_code), (Some(rank), Some(RANKS), Some(0)));
    }
}

#[test]
fn every_rank_made_the_calls_it_counted() {
    for rank in 0..RANKS {
        let truth = truth(rank);
        for (layer, group) in [(Layer::Hdf5, "hdf5"), (Layer::Mpiio, "mpiio")] {
            let seen = Data::totals(direct(rank, layer).filter(|s| s.layer_top));
            let seen: BTreeMap<String, i64> = seen.into_iter().map(|(op, total)| (op, total.calls)).collect();
            assert_eq!(seen, calls(&truth[group]), "{group} of rank {rank}");
        }
        // The MPI library reads files with the C library, too.
        let log = DEMO.out.join(format!("log.{rank}"));
        let own = direct(rank, Layer::Stdio).filter(|s| s.layer_top && DEMO.data.path(s) == Some(&log));
        let seen: BTreeMap<String, i64> = Data::totals(own).into_iter().map(|(op, t)| (op, t.calls)).collect();
        assert_eq!(seen, calls(&truth["stdio"]), "stdio of rank {rank}");
    }
}

#[test]
fn every_rank_moved_the_bytes_it_counted() {
    for rank in 0..RANKS {
        let truth = truth(rank);
        let moved = |layer, kind, only: Option<&Path>| {
            let spans = direct(rank, layer).filter(|s| s.layer_top && s.kind == kind);
            let spans = spans.filter(|s| only.is_none() || DEMO.data.path(s) == only);
            Value::from(spans.map(|s| s.bytes.unwrap()).sum::<i64>())
        };
        assert_eq!(moved(Layer::Hdf5, Kind::Read, None), truth["hdf5_bytes_read"], "rank {rank}");
        assert_eq!(moved(Layer::Hdf5, Kind::Write, None), truth["hdf5_bytes_written"], "rank {rank}");
        assert_eq!(moved(Layer::Mpiio, Kind::Read, None), truth["mpiio_bytes_read"], "rank {rank}");
        assert_eq!(moved(Layer::Mpiio, Kind::Write, None), truth["mpiio_bytes_written"], "rank {rank}");
        let log = DEMO.out.join(format!("log.{rank}"));
        assert_eq!(moved(Layer::Stdio, Kind::Read, Some(&log)), truth["stdio_bytes_read"], "rank {rank}");
        assert_eq!(moved(Layer::Stdio, Kind::Write, Some(&log)), truth["stdio_bytes_written"], "rank {rank}");
        let posix = DEMO.out.join(format!("renamed.{rank}"));
        assert_eq!(moved(Layer::Syscall, Kind::Read, Some(&posix)), truth["posix_bytes_read"], "rank {rank}");
        assert_eq!(moved(Layer::Syscall, Kind::Write, Some(&posix)), truth["posix_bytes_written"], "rank {rank}");
    }
}

#[test]
fn a_dataset_write_reaches_the_file() {
    let data = &DEMO.data;
    let file = DEMO.out.join("demo.h5");
    let mut inside: BTreeMap<i64, Vec<&Span>> = BTreeMap::new();
    for span in &data.spans {
        inside.entry(span.root_id).or_default().push(span);
    }
    let roots: Vec<&Span> = data.calls("H5Dwrite").filter(|s| s.parent_id.is_none()).collect();
    assert_eq!(roots.len(), 8 * RANKS as usize);
    let mut written = 0;
    for root in &roots {
        let tree = &inside[&root.span_id];
        let mpi: Vec<&&Span> = tree.iter().filter(|s| s.op.starts_with("MPI_File_write")).collect();
        assert!(!mpi.is_empty(), "rank {:?} wrote nothing", root.rank);
        assert_eq!(data.path(root), Some(file.as_path()));
        let below = tree.iter().filter(|s| s.layer == Layer::Syscall && s.kind == Kind::Write);
        for write in below.filter(|s| data.path(s) == Some(&file)) {
            assert!(data.ancestors(write).any(|a| a.op.starts_with("MPI_File_write")), "{write:?}");
            written += write.bytes.unwrap();
        }
    }
    // Two datasets of 4 steps x 64 rows x 4 ranks x 256 columns of doubles.
    assert_eq!(written, 2 * 4 * 64 * 4 * 256 * 8);
}

#[test]
fn what_was_written_is_linked_to_the_disk() {
    let data = &DEMO.data;
    let requests: BTreeMap<i64, &iotrace_bpf::rows::Block> = data.block.iter().map(|b| (b.req_id, b)).collect();
    let spans: BTreeMap<i64, &Span> = data.spans.iter().map(|s| (s.span_id, s)).collect();
    let names = ["demo.h5".to_owned(), "shared.dat".to_owned()];
    for name in names.into_iter().chain((0..RANKS).map(|rank| format!("log.{rank}"))) {
        let path = DEMO.out.join(&name);
        let on_file = |id: i64| data.path(spans[&id]) == Some(&path);
        let links: Vec<_> = data.links.iter().filter(|l| l.how == "writeback" && on_file(l.span_id)).collect();
        let linked: i64 = links.iter().map(|l| l.bytes).sum();
        let carried: BTreeSet<i64> = links.iter().map(|l| l.req_id).collect();
        let carried: i64 = carried.iter().map(|id| i64::from(requests[id].bytes)).sum();
        let size = fs::metadata(&path).unwrap().len() as i64;
        assert!(linked >= size, "{name}: {linked} of {size} bytes are linked");
        assert!(carried >= size, "{name}: requests of {carried} bytes carried {size}");
        for link in links {
            assert_eq!((spans[&link.span_id].kind, requests[&link.req_id].op), (Kind::Write, "write"));
            assert_eq!(link.root_id, spans[&link.span_id].root_id);
        }
    }
}

#[test]
fn handles_form_a_tree_down_to_the_descriptor() {
    let data = &DEMO.data;
    let file = DEMO.out.join("demo.h5");
    let of = |layer, parent: Option<i32>| -> Vec<&Handle> {
        let on_file =
            |h: &&Handle| h.file_id.is_some_and(|id| data.files[&id].path.as_deref().map(Path::new) == Some(&file));
        let handles =
            data.handles.values().filter(|h| h.layer == layer && (parent.is_none() || h.parent_handle_id == parent));
        handles.filter(on_file).collect()
    };
    let files: Vec<&Handle> = of(Layer::Hdf5, None).into_iter().filter(|h| h.object_id.is_none()).collect();
    // Each rank created it and opened it again.
    assert_eq!(files.len(), 2 * RANKS as usize);
    for hdf5 in files {
        let mpi = of(Layer::Mpiio, Some(hdf5.handle_id));
        assert_eq!(mpi.len(), 1, "below {hdf5:?}");
        let descriptors = of(Layer::Syscall, Some(mpi[0].handle_id));
        assert!(!descriptors.is_empty(), "below {:?}", mpi[0]);
        assert!([hdf5, mpi[0]].iter().all(|h| h.end_ns.is_some() && h.close_span_id.is_some()));
    }
    let objects: BTreeSet<(&str, &str)> = data.objects.values().map(|o| (o.class, o.name.as_str())).collect();
    for wanted in [("group", "/results"), ("dataset", "/results/field"), ("dataset", "/results/history")] {
        assert!(objects.contains(&wanted), "{wanted:?} is not in {objects:?}");
    }
    assert!(objects.iter().any(|(class, name)| *class == "attribute" && name.ends_with("version")), "{objects:?}");
}

#[test]
fn the_report_shows_every_layer_and_agrees_with_sql() {
    let text = live::report_of(&DEMO.recording.traced().dir, "layers");
    for layer in ["hdf5", "mpiio", "mpi", "stdio", "syscall", "block"] {
        assert!(text.lines().any(|line| line.trim_start().starts_with(layer)), "{layer} is not in\n{text}");
    }
    let out = live::tracer().arg("report").arg(&DEMO.recording.traced().dir).arg("--json").output().unwrap();
    let json: Value = serde_json::from_slice(&out.stdout).unwrap();
    let layers: Vec<&str> = json["layers"].as_array().unwrap().iter().filter_map(|l| l["layer"].as_str()).collect();
    assert_eq!(layers, ["hdf5", "mpiio", "mpi", "stdio", "syscall", "block"]);
    sql::compare(&DEMO.recording.traced().dir);
}
