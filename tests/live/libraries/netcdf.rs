//! Programs of NetCDF-C in one process: every function that moves data, with the bytes and variables it was about.

use crate::common::live::{self, Data, Traced};
use crate::common::recording::Recording;
use crate::common::tools::ncdump;
use crate::common::{programs, sql};
use iotrace_bpf::rows::{Object, Span};
use iotrace_bpf::vocabulary::{Kind, Layer, flag};
use serde_json::Value;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::LazyLock;

struct Mix {
    recording: Recording,
    data: Data,
    truth: Value,
}

/// One run serves several tests.
static MIX: LazyLock<Mix> = LazyLock::new(|| {
    let record = |work: &Path| live::trace(work, &[], &[programs::build("netcdf_mix").as_path(), work]);
    let recording = Recording::shared("netcdf_mix", record);
    let (data, truth) = (recording.traced().data().lossless(), program_counts(recording.traced()));
    Mix { recording, data, truth }
});

/// The first line that a traced program printed, as JSON.
fn program_counts(traced: &Traced) -> Value {
    serde_json::from_str(traced.stdout.lines().next().unwrap()).unwrap()
}

fn numbers(truth: &Value) -> BTreeMap<String, i64> {
    truth.as_object().unwrap().iter().map(|(name, n)| (name.clone(), n.as_i64().unwrap())).collect()
}

/// What the program called itself, not what the library called for it.
fn outermost(data: &Data) -> impl Iterator<Item = &Span> {
    data.layer(Layer::Netcdf).filter(|s| s.layer_top)
}

fn not_zero(totals: BTreeMap<String, i64>) -> BTreeMap<String, i64> {
    totals.into_iter().filter(|(_, n)| *n != 0).collect()
}

/// The variables of a file, by name.
fn variables<'a>(data: &'a Data, path: &Path) -> BTreeMap<&'a str, &'a Object> {
    let file = data.files.values().find(|f| f.path.as_deref().map(Path::new) == Some(path)).unwrap().file_id;
    let of_file = |o: &&Object| o.file_id == Some(file) && o.class == "variable";
    data.objects.values().filter(of_file).map(|o| (o.name.as_str(), o)).collect()
}

fn dims(data: &Data, path: &Path) -> BTreeMap<String, Vec<i64>> {
    let all = variables(data, path);
    all.into_iter().map(|(name, o)| (name.to_owned(), o.dims.clone().unwrap())).collect()
}

#[test]
fn every_function_is_seen_with_its_bytes_and_errors() {
    let totals = Data::totals(outermost(&MIX.data));
    let of = |what: fn(&live::Total) -> i64| totals.iter().map(|(op, t)| (op.clone(), what(t))).collect();
    assert_eq!(of(|t| t.calls), numbers(&MIX.truth["netcdf"]));
    assert_eq!(not_zero(of(|t| t.moved)), numbers(&MIX.truth["bytes"]));
    assert_eq!(not_zero(of(|t| t.errors)), numbers(&MIX.truth["errors"]));
    let unknown = |s: &&Span| matches!(s.kind, Kind::Read | Kind::Write) && s.req_bytes.is_none() && s.errno == 0;
    assert_eq!(MIX.data.layer(Layer::Netcdf).find(unknown), None);
}

#[test]
fn a_failed_call_has_the_librarys_own_code_and_what_it_was_asked() {
    let failed: Vec<&Span> = outermost(&MIX.data).filter(|s| s.errno != 0).collect();
    let of = |op: &str| -> Vec<(Option<i64>, Option<i64>, Option<i64>)> {
        failed.iter().filter(|s| s.op == op).map(|s| (s.ret, s.req_bytes, s.bytes)).collect()
    };
    // ENOENT, NC_EBADID, NC_EINVALCOORDS.
    assert_eq!(of("nc_open"), [(Some(2), None, None)]);
    assert_eq!(of("nc_close"), [(Some(-33), None, None)]);
    assert_eq!(of("nc_get_vara_float"), [(Some(-40), Some(24), None); 4]);
    assert!(failed.iter().all(|s| s.errno == -1));
}

#[test]
fn variables_are_those_that_ncdump_shows() {
    for name in ["classic.nc", "offset.nc", "data.nc", "four.nc"] {
        let path = MIX.recording.work().join(name);
        assert_eq!(dims(&MIX.data, &path), ncdump::variables(&path), "{name}");
    }
    let path = MIX.recording.work().join("four.nc");
    let four = variables(&MIX.data, &path);
    let of = |name: &str| (four[name].chunk.clone(), four[name].elem_size, four[name].filters.as_deref());
    assert_eq!(of("/numbers"), (Some(vec![1, 3, 2]), Some(8), Some("shuffle,deflate(2),fletcher32")));
    assert_eq!(of("/results/deep/packed"), (Some(vec![1, 3, 4]), Some(2), Some("deflate(3)")));
    assert_eq!(of("/points").1, Some(24));
    // Calls are about them, also where the program asked for nothing but the id.
    let about = |s: &&Span| s.object_id == Some(four["/numbers"].object_id);
    let reads = outermost(&MIX.data).filter(|s| s.op == "nc_get_vara_float").filter(about).count();
    assert_eq!(reads, 3);
}

#[test]
fn what_is_written_is_written_inside_these_calls() {
    let data = &MIX.data;
    let files: Vec<PathBuf> = ["classic.nc", "four.nc"].iter().map(|name| MIX.recording.work().join(name)).collect();
    let own = |s: &&Span| data.path(s).is_some_and(|path| files.iter().any(|f| f == path));
    let mut layers = BTreeMap::new();
    for write in data.layer(Layer::Syscall).filter(|s| s.kind == Kind::Write).filter(own) {
        assert!(data.ancestors(write).any(|a| a.layer == Layer::Netcdf), "{write:?}");
        let through = data.ancestors(write).any(|a| a.layer == Layer::Hdf5);
        *layers.entry((data.path(write), through)).or_insert(0) += write.bytes.unwrap();
    }
    let [classic, four] = files.iter().map(|f| Some(f.as_path())).collect::<Vec<_>>().try_into().unwrap();
    assert!(layers[&(classic, false)] > 0 && layers[&(four, true)] > 0, "{layers:?}");
    // The handle of the file, then HDF5's, then the descriptor.
    let of = |layer: Layer| data.handles.values().filter(move |h| h.layer == layer);
    let path = |id: Option<i32>| id.and_then(|id| data.files[&id].path.as_deref().map(Path::new));
    let netcdf: Vec<_> = of(Layer::Netcdf).filter(|h| path(h.file_id) == four && h.object_id.is_none()).collect();
    assert_eq!(netcdf.len(), 3);
    for handle in netcdf {
        let hdf5: Vec<_> = of(Layer::Hdf5).filter(|h| h.parent_handle_id == Some(handle.handle_id)).collect();
        assert_eq!(hdf5.iter().filter(|h| h.object_id.is_none()).count(), 1, "below {handle:?}");
        let below = |h: &&iotrace_bpf::rows::Handle| h.parent_handle_id == Some(hdf5[0].handle_id);
        assert!(of(Layer::Syscall).any(|h| below(&h)), "below {:?}", hdf5[0]);
        assert!(handle.end_ns.is_some() && handle.mode.is_some());
    }
    let groups: Vec<_> = of(Layer::Netcdf).filter_map(|h| data.objects.get(&h.object_id?)).collect();
    assert!(groups.iter().any(|o| (o.class, o.name.as_str()) == ("group", "/results/deep")));
}

#[test]
fn no_call_is_collective_in_a_file_of_one_process() {
    assert_eq!(MIX.data.layer(Layer::Netcdf).find(|s| s.flags & flag::COLLECTIVE != 0), None);
}

#[test]
fn the_report_agrees_with_sql() {
    let text = live::report_of(&MIX.recording.traced().dir, "functions,handles");
    for line in ["  netcdf   nc_", "  netcdf ", "> hdf5 dataset /numbers", "> netcdf group /results"] {
        assert!(text.contains(line), "{line:?} is not in\n{text}");
    }
    sql::compare(&MIX.recording.traced().dir);
}

/// Bytes read and written of each variable.
fn moved(data: &Data) -> Value {
    let mut all: BTreeMap<&str, BTreeMap<&str, i64>> = BTreeMap::new();
    let variables = data.objects.values().filter(|o| o.class == "variable");
    let names: BTreeMap<i32, &str> = variables.map(|o| (o.object_id, o.name.as_str())).collect();
    for span in outermost(data) {
        let way = match span.kind {
            Kind::Read => "read",
            Kind::Write => "written",
            _ => continue,
        };
        if let Some(name) = span.object_id.and_then(|id| names.get(&id)) {
            *all.entry(way).or_default().entry(name).or_default() += span.bytes.unwrap();
        }
    }
    serde_json::to_value(all).unwrap()
}

#[test]
fn a_fortran_program_calls_the_same_functions() {
    let work = live::scratch();
    let file = work.path().join("f.nc");
    let traced = live::trace(work.path(), &[], &[programs::build("netcdf_f").as_path(), &file]);
    let data = traced.data().lossless();
    assert_eq!(moved(&data), program_counts(&traced));
    assert_eq!(dims(&data, &file), ncdump::variables(&file));
}

#[test]
fn a_python_package_brings_libraries_of_its_own() {
    let work = live::scratch();
    let file = work.path().join("wheel.nc");
    let python = Path::new(env!("CARGO_MANIFEST_DIR")).join("target/venv/bin/python");
    let program = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/programs/netcdf_wheel.py");
    let traced = live::trace(work.path(), &[], &[python.as_path(), &program, &file]);
    let data = traced.data().lossless();
    let library = data.coverage.iter().find(|c| c.symbol == "nc_put_vara" && c.status == "attached").unwrap();
    assert!(library.target.contains("netcdf4.libs/libnetcdf-"), "{library:?}");
    assert_eq!(moved(&data), program_counts(&traced));
    assert_eq!(dims(&data, &file), ncdump::variables(&file));
    let field = variables(&data, &file)["/field"];
    assert_eq!((field.chunk.clone(), field.filters.as_deref()), (Some(vec![1, 30, 40]), Some("shuffle,deflate(4)")));
}
