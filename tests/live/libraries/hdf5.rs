//! HDF5 as programs use it: every function, the bytes and shapes of every object, with MPI and without, old and new.

use crate::common::live::{self, Data};
use crate::common::recording::Recording;
use crate::common::{programs, sql, ways};
use iotrace_bpf::catalog::{self, Family};
use iotrace_bpf::rows::{Object, Span};
use iotrace_bpf::vocabulary::{Kind, Layer, flag};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fs;
use std::path::Path;
use std::process::Command;
use std::sync::LazyLock;

type Counts = BTreeMap<String, i64>;

/// Selections of dataspaces, too.
const EVERY: &[&str] = &["--layers", "netcdf,pnetcdf,hdf5=all,mpiio,mpi,stdio,syscall,block"];

fn counts(truth: &Value) -> Counts {
    truth.as_object().unwrap().iter().map(|(name, n)| (name.clone(), n.as_i64().unwrap())).collect()
}

fn count<'a>(spans: impl Iterator<Item = &'a Span>) -> Counts {
    let mut counts = Counts::new();
    for span in spans {
        *counts.entry(span.op.to_owned()).or_default() += 1;
    }
    counts
}

fn hdf5(data: &Data) -> impl Iterator<Item = &Span> {
    data.layer(Layer::Hdf5).filter(|s| s.layer_top)
}

/// Calls and failed calls by function are those that the program counted.
fn called(data: &Data, truth: &Value) {
    assert_eq!(data.losses, []);
    assert_eq!(count(hdf5(data)), counts(&truth["calls"]));
    assert_eq!(count(hdf5(data).filter(|s| s.errno != 0)), counts(&truth["errors"]));
}

fn python(script: &str, work: &Path) -> (Value, live::Traced) {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/programs").join(script);
    let traced = live::trace(work, EVERY, &[sql::python().as_path(), &script, work]);
    let first = traced.stdout.lines().next().unwrap_or_default();
    (serde_json::from_str(first).unwrap_or_else(|e| panic!("{e}: {}{}", traced.stdout, traced.stderr)), traced)
}

/// The versions of HDF5 in the dataset.
fn versions(data: &Data) -> Vec<&str> {
    let libraries = data.meta.iter().filter(|(key, _)| key.starts_with("library."));
    libraries.filter_map(|(_, value)| value.strip_prefix("HDF5 ")?.split(':').next()).collect()
}

#[test]
fn every_function_is_seen_as_often_as_it_is_called() {
    let work = live::scratch();
    let program = programs::build("hdf5_all");
    let traced = live::trace(work.path(), EVERY, &[program.as_path(), work.path()]);
    let truth: Value = serde_json::from_str(traced.stdout.lines().next().unwrap()).unwrap();
    let data = traced.data();
    called(&data, &truth);
    // The program leaves nothing out that its library has.
    let library = Command::new("ldd").arg(&program).output().unwrap().stdout;
    let library = String::from_utf8(library).unwrap();
    let library =
        library.lines().find(|l| l.contains("libhdf5")).unwrap().split_whitespace().nth(2).unwrap().to_owned();
    let symbols = Command::new("nm").args(["-D", "--defined-only", &library]).output().unwrap().stdout;
    let symbols = String::from_utf8(symbols).unwrap();
    let exported =
        |name: &str| symbols.lines().any(|l| l.split(' ').nth(2).and_then(|n| n.split('@').next()) == Some(name));
    for row in catalog::rows().iter().filter(|r| r.family == Family::Hdf5 && r.inner().is_none() && exported(r.symbol))
    {
        assert!(truth["calls"][row.symbol].as_i64() > Some(0), "{} is not called", row.symbol);
    }
}

#[test]
fn functions_of_newer_versions_are_seen_too() {
    let work = live::scratch();
    let (truth, traced) = python("hdf5_new.py", work.path());
    let data = traced.data();
    called(&data, &truth);
    assert_eq!(versions(&data), [truth["version"].as_str().unwrap()]);
    let mut transfers: Vec<&Span> = hdf5(&data).filter(|s| matches!(s.kind, Kind::Read | Kind::Write)).collect();
    transfers.sort_by_key(|s| s.start_ns);
    let moved: Vec<Value> = transfers.iter().map(|s| json!([s.op, s.bytes.unwrap()])).collect();
    assert_eq!(Value::from(moved), truth["moved"]);
    for span in hdf5(&data) {
        assert_eq!(span.flags & flag::NONBLOCKING != 0, span.op.ends_with("_async"), "{span:?}");
    }
    let about =
        |op: &str| data.calls(op).map(|s| s.object_id.map(|id| data.objects[&id].name.as_str())).collect::<Vec<_>>();
    assert_eq!(about("H5Dread_async"), [Some("/g/flat")]);
    // One of several datasets is the one, of more it is none.
    assert_eq!(about("H5Dwrite_multi"), [None, Some("/g/chunked"), None]);
    assert!(data.calls("H5Dwrite_multi").all(|s| data.path(s) == Some(&work.path().join("new.h5"))));
    shapes(&data, &work.path().join("new.h5"));
}

#[test]
fn a_program_with_h5py_has_its_bytes_and_shapes() {
    let work = live::scratch();
    let (truth, traced) = python("h5py_mix.py", work.path());
    let data = traced.data();
    assert_eq!(data.losses, []);
    assert_eq!(versions(&data), [truth["version"].as_str().unwrap()]);
    assert_eq!(moved(&data, |s, o| s.kind == Kind::Write && o.class == "dataset"), counts(&truth["written"]));
    assert_eq!(moved(&data, |s, o| s.kind == Kind::Read && o.class == "dataset"), counts(&truth["read"]));
    shapes(&data, &work.path().join("py.h5"));
    // It gives its handles back by reference counts.
    let handles: Vec<_> = data.handles.values().filter(|h| h.layer == Layer::Hdf5).collect();
    assert!(handles.len() > 8 && handles.iter().all(|h| h.flags == 0), "{handles:?}");
    let closed = |id: Option<i64>| data.spans.iter().find(|s| Some(s.span_id) == id).map(|s| s.op);
    assert!(handles.iter().all(|h| closed(h.close_span_id) == Some("H5Idec_ref")), "{handles:?}");
}

#[test]
fn datasets_that_are_only_opened_have_their_shapes() {
    let script = ways::script("hdf5_open.py");
    for package in ["h5py.libs", "netcdf4.libs"] {
        let work = live::scratch();
        let made = Command::new(sql::python()).arg(&script).arg(work.path()).output().unwrap();
        assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
        let library = ways::wheel_library(package);
        let data = live::trace(work.path(), &[], &[&sql::python(), &script, work.path(), &library]).data();
        assert_eq!(data.calls("H5Dopen2").count(), 4);
        assert_eq!(data.calls("H5Pget_chunk").count(), 0, "the program makes no such call");
        shapes(&data, &work.path().join("there.h5"));
    }
}

/// Bytes moved, by the object's name, of the calls that are asked for.
fn moved(data: &Data, which: impl Fn(&Span, &Object) -> bool) -> Counts {
    let mut sums = Counts::new();
    for span in hdf5(data).filter(|s| matches!(s.kind, Kind::Read | Kind::Write) && s.errno == 0) {
        let object = &data.objects[&span.object_id.unwrap_or_else(|| panic!("which object? {span:?}"))];
        if which(span, object) {
            *sums.entry(object.name.clone()).or_default() += span.bytes.unwrap_or_else(|| panic!("how many? {span:?}"));
        }
    }
    sums
}

/// A shape as `h5dump` shows it.
#[derive(Debug, Default, PartialEq)]
struct Shape {
    dims: Vec<i64>,
    chunk: Vec<i64>,
    filters: Vec<String>,
}

/// The numbers between the first parentheses.
fn numbers(text: &str) -> Vec<i64> {
    let inside = text.split_once('(').and_then(|(_, rest)| rest.split_once(')'));
    inside.map_or_else(Vec::new, |(inside, _)| inside.split(',').map(|n| n.trim().parse().unwrap()).collect())
}

/// The datasets and attributes of a file: class and name, and shape.
fn h5dump(file: &Path) -> BTreeMap<(&'static str, String), Shape> {
    let out = Command::new("h5dump").arg("-pH").arg(file).output().unwrap();
    assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stderr));
    let mut found: BTreeMap<(&'static str, String), Shape> = BTreeMap::new();
    // What is open: names of objects, or nothing for other blocks.
    let mut open: Vec<Option<(&'static str, String)>> = Vec::new();
    for line in String::from_utf8(out.stdout).unwrap().lines().map(str::trim) {
        let classes = [("GROUP \"", "group"), ("DATASET \"", "dataset"), ("ATTRIBUTE \"", "attribute")];
        let object = classes.iter().find_map(|(word, class)| {
            Some((*class, line.strip_prefix(word)?.split('"').next()?.trim_start_matches('/').to_owned()))
        });
        let names: Vec<&str> = open.iter().flatten().map(|(_, name)| name.as_str()).filter(|n| !n.is_empty()).collect();
        let class = open.iter().flatten().next_back().map_or("group", |(class, _)| *class);
        if line.ends_with('{') {
            open.push(object);
            continue;
        }
        if line.starts_with('}') {
            open.pop();
            continue;
        }
        if class == "group" {
            continue;
        }
        let shape = found.entry((class, format!("/{}", names.join("/")))).or_default();
        let first = line.split_whitespace().next().unwrap_or_default();
        match first {
            "DATASPACE" => shape.dims = numbers(line),
            "CHUNKED" => shape.chunk = numbers(line),
            "PREPROCESSING" | "CHECKSUM" | "COMPRESSION" => {
                let mut words = line.split_whitespace().skip(1);
                let name = words.next().unwrap().to_lowercase();
                let level = words.skip_while(|w| *w != "LEVEL").nth(1);
                shape.filters.push(level.map_or(name.clone(), |level| format!("{name}({level})")));
            }
            _ => {}
        }
    }
    found
}

/// The shapes of a file's objects are those that `h5dump` shows.
fn shapes(data: &Data, file: &Path) {
    let of_file = |o: &&Object| o.file_id.and_then(|id| data.files[&id].path.as_deref()) == file.to_str();
    // Of several objects of one name the last one is the one that is there.
    let objects: BTreeMap<_, _> =
        data.objects.values().filter(of_file).map(|o| ((o.class, o.name.clone()), o)).collect();
    let mut compared = 0;
    for (key, shape) in h5dump(file) {
        let Some(object) = objects.get(&key) else { continue };
        compared += 1;
        assert_eq!(object.dims.as_ref(), Some(&shape.dims), "{key:?}");
        if key.0 == "attribute" {
            assert_eq!((&object.chunk, &object.filters), (&None, &None), "{key:?}");
        } else {
            assert_eq!(object.chunk.as_ref(), Some(&shape.chunk), "{key:?}");
            assert_eq!(object.filters.as_ref(), Some(&shape.filters.join(",")), "{key:?}");
        }
    }
    assert!(compared >= 3, "{compared} objects of {}", file.display());
}

const RANKS: i32 = 3;

/// A run of `hdf5_mix` and its trace.
struct Mix {
    recording: Recording,
    data: Data,
    ranks: i32,
}

fn mix(ranks: i32) -> Mix {
    let record = |work: &Path| {
        let out = Command::new(programs::build("hdf5_mix")).arg(work).arg("before").output().unwrap();
        assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stderr));
        let program = programs::build(if ranks == 1 { "hdf5_mix" } else { "hdf5_mix_mpi" });
        let number = ranks.to_string();
        let mpirun = ["mpirun", "--allow-run-as-root", "--oversubscribe", "-np", &number].map(OsStr::new);
        let command = [program.as_os_str(), work.as_os_str()];
        let command = [if ranks == 1 { &[] } else { &mpirun[..] }, &command].concat();
        live::trace(work, EVERY, &command)
    };
    let recording = Recording::shared(&format!("hdf5_mix_of_{ranks}"), record);
    Mix { data: recording.traced().data(), recording, ranks }
}

static ALONE: LazyLock<Mix> = LazyLock::new(|| mix(1));
static TOGETHER: LazyLock<Mix> = LazyLock::new(|| mix(RANKS));

impl Mix {
    fn each_rank(&self, check: impl Fn(&Data, i64, &Value)) {
        assert_eq!(self.data.losses, []);
        for rank in 0..self.ranks {
            let truth = fs::read(self.recording.work().join(format!("truth.{rank}.json"))).unwrap();
            let truth: Value = serde_json::from_slice(&truth).unwrap();
            check(&self.data, truth["pid"].as_i64().unwrap(), &truth);
        }
    }

    fn file(&self, name: &str) -> std::path::PathBuf {
        self.recording.work().join(name)
    }
}

fn both(check: impl Fn(&Mix)) {
    check(&ALONE);
    check(&TOGETHER);
}

#[test]
fn every_call_and_every_byte_of_every_object_is_counted() {
    both(|mix| {
        mix.each_rank(|data, pid, truth| {
            let own = |s: &&Span| i64::from(s.pid) == pid;
            assert_eq!(count(hdf5(data).filter(own)), counts(&truth["hdf5"]));
            let moved = |kind| moved(data, |s, _| i64::from(s.pid) == pid && s.kind == kind);
            assert_eq!(moved(Kind::Read), counts(&truth["read"]));
            assert_eq!(moved(Kind::Write), counts(&truth["written"]));
            for span in hdf5(data).filter(own) {
                assert_eq!((span.req_bytes, span.offset), (span.bytes, None), "{span:?}");
            }
        });
    });
}

#[test]
fn collective_transfers_are_marked() {
    both(|mix| {
        mix.each_rank(|data, pid, truth| {
            let marked = hdf5(data).filter(|s| i64::from(s.pid) == pid && s.flags & flag::COLLECTIVE != 0);
            let mut expected = counts(&truth["collective"]);
            expected.retain(|_, n| *n > 0);
            assert_eq!(count(marked), expected);
        });
    });
    assert!(TOGETHER.data.calls("H5Dwrite").any(|s| s.flags & flag::COLLECTIVE != 0));
}

#[test]
fn objects_have_the_shapes_that_h5dump_shows() {
    both(|mix| {
        shapes(&mix.data, &mix.file("mix.h5"));
        // Also of datasets that were there before and that are only opened.
        shapes(&mix.data, &mix.file("before.h5"));
        mix.each_rank(|data, _, truth| {
            let last: BTreeMap<&str, Option<i32>> =
                data.objects.values().map(|o| (o.name.as_str(), o.elem_size)).collect();
            for (name, size) in counts(&truth["size"]) {
                assert_eq!(last[name.as_str()].map(i64::from), Some(size), "{name}");
            }
        });
        let again: Vec<_> = mix.data.objects.values().filter(|o| o.name == "/run/again").collect();
        let again: Vec<_> = again.iter().map(|o| (o.dims.clone().unwrap(), o.elem_size.unwrap())).collect();
        assert_eq!(again, [(vec![3], 1), (vec![5], 8)], "one name, two datasets");
        // Apart from that one, what all ranks make is one object.
        let names = mix.data.objects.values().filter(|o| o.name != "/run/again").map(|o| (o.class, &o.name));
        let mut seen: Vec<_> = names.collect();
        let all = seen.len();
        seen.sort_unstable();
        seen.dedup();
        assert_eq!(seen.len(), all, "{seen:?}");
    });
}

#[test]
fn a_handle_with_two_references_ends_with_the_second() {
    both(|mix| {
        mix.each_rank(|data, pid, _| {
            let flush = data.calls("H5Fflush").find(|s| i64::from(s.pid) == pid).unwrap();
            let handle = &data.handles[&flush.handle_id.unwrap()];
            assert_eq!((handle.flags, data.path(flush)), (0, Some(mix.file("before.h5").as_path())));
            let last = data.calls("H5Idec_ref").find(|s| i64::from(s.pid) == pid).unwrap();
            assert_eq!(handle.close_span_id, Some(last.span_id));
        });
    });
}

#[test]
fn the_report_has_the_version_of_the_library() {
    both(|mix| {
        mix.each_rank(|data, _, truth| assert_eq!(versions(data), [truth["version"].as_str().unwrap()]));
        let out = live::tracer().arg("report").arg(&mix.recording.traced().dir).arg("--json").output().unwrap();
        let report: Value = serde_json::from_slice(&out.stdout).unwrap();
        let version = versions(&mix.data)[0];
        let libraries = report["header"]["libraries"].as_array().unwrap();
        let output = |l: &&Value| l.as_str().unwrap().starts_with(&format!("HDF5 {version}: /"));
        assert_eq!(libraries.iter().filter(output).count(), 1, "{libraries:?}");
        let line = mix.recording.traced().report.lines().find(|l| l.trim_start().starts_with("libraries")).unwrap();
        assert!(line.contains(&format!("HDF5 {version}")), "{line}");
        sql::compare(&mix.recording.traced().dir);
    });
}
