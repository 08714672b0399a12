//! `PnetCDF` calls on lists of thousands of boxes: their bytes are those that the program computes and that stand in
//! the file.

use crate::common::live::{self, Data, Traced};
use crate::common::programs;
use crate::common::tools::ncdump;
use iotrace_bpf::export::Dataset;
use iotrace_bpf::rows::{FileRollup, Span};
use iotrace_bpf::vocabulary::{Kind, Layer};
use serde_json::Value;
use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;
use std::process::Command;
use tempfile::TempDir;

const RANKS: usize = 2;
/// Its list is longer than what is looked at.
const TOO_MANY: &str = "ncmpi_iget_varn_uint";
/// The variables of the file and the bytes of an element in the program's memory.
const VARIABLES: [(&str, i64); 6] =
    [("together", 4), ("alone", 4), ("queued", 4), ("buffered", 2), ("records", 8), ("mixed", 8)];

fn run(options: &[&str]) -> (TempDir, Traced, Vec<Value>) {
    let work = live::scratch();
    let own = ["--allow-run-as-root", "--oversubscribe", "-np"].map(PathBuf::from);
    let mpirun = [programs::openmpi("mpirun").into()].into_iter().chain(own).chain([RANKS.to_string().into()]);
    let command: Vec<PathBuf> = mpirun.chain([programs::build("pnetcdf_lists"), work.path().to_owned()]).collect();
    let traced = live::trace(work.path(), options, &command);
    let truth = |rank: usize| fs::read(work.path().join(format!("truth.{rank}.json"))).unwrap();
    let truths = (0..RANKS).map(|rank| serde_json::from_slice(&truth(rank)).unwrap()).collect();
    (work, traced, truths)
}

fn totals<'a>(spans: impl Iterator<Item = &'a Span>, what: fn(&Span) -> i64) -> BTreeMap<&'a str, i64> {
    let mut all = BTreeMap::new();
    spans.for_each(|span| *all.entry(span.op).or_default() += what(span));
    all.into_iter().filter(|(_, n)| *n != 0).collect()
}

fn numbers(truth: &Value) -> BTreeMap<&str, i64> {
    truth.as_object().unwrap().iter().map(|(name, n)| (name.as_str(), n.as_i64().unwrap())).collect()
}

/// How many elements of a variable were written: the others have the value that it was filled with.
fn written(work: &TempDir, variable: &str) -> i64 {
    let out = Command::new("ncdump").args(["-v", variable]).arg(work.path().join("lists.nc")).output().unwrap();
    assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stderr));
    let text = String::from_utf8(out.stdout).unwrap();
    let (_, data) = text.split_once("data:").unwrap();
    data.split([' ', ',', '\n']).filter(|word| *word == "1").count() as i64
}

#[test]
fn long_lists_have_the_bytes_that_were_moved() {
    let (work, traced, truths) = run(&[]);
    let data: Data = traced.data().lossless();
    let own = |rank: usize| {
        let pid = truths[rank]["pid"].as_i64();
        data.layer(Layer::Pnetcdf).filter(move |s| s.layer_top && Some(i64::from(s.pid)) == pid)
    };
    for (rank, truth) in truths.iter().enumerate() {
        assert_eq!(totals(own(rank), |_| 1), numbers(&truth["pnetcdf"]), "rank {rank}");
        assert_eq!(totals(own(rank), |s| s.bytes.unwrap_or(0)), numbers(&truth["bytes"]), "rank {rank}");
        assert!(own(rank).all(|s| s.errno == 0), "rank {rank}");
    }
    // Each element was written once.
    for (variable, bytes) in VARIABLES {
        let name = format!("/{variable}");
        let on = |s: &&Span| s.object_id.is_some_and(|id| data.objects[&id].name == name);
        let moved: i64 =
            data.layer(Layer::Pnetcdf).filter(|s| s.kind == Kind::Write).filter(on).map(|s| s.bytes.unwrap()).sum();
        assert!(moved > 0);
        assert_eq!(moved, written(&work, variable) * bytes, "{variable}");
    }
    let dims = ncdump::variables(&work.path().join("lists.nc"));
    for (name, lengths) in &dims {
        let known = data.objects.values().find(|o| o.name == *name).and_then(|o| o.dims.as_ref());
        assert_eq!(known, Some(lengths), "{name}");
    }
    assert_eq!(dims.len(), VARIABLES.len());
    // What is not known is not lost.
    let unknown = |s: &&Span| matches!(s.kind, Kind::Read | Kind::Write) && s.bytes.is_none();
    assert_eq!(totals(data.layer(Layer::Pnetcdf).filter(unknown), |_| 1), BTreeMap::from([(TOO_MANY, RANKS as i64)]));
    assert!(!traced.report.contains("INCOMPLETE"), "{}", traced.report);
    assert!(traced.report.contains("bytes unknown, pnetcdf: "), "{}", traced.report);
}

#[test]
fn sums_have_the_same_bytes() {
    let (_work, traced, truths) = run(&["--aggregate"]);
    traced.data().lossless();
    let mut wanted: BTreeMap<&str, i64> = BTreeMap::new();
    for truth in &truths {
        for (op, bytes) in numbers(&truth["bytes"]) {
            *wanted.entry(op).or_default() += bytes;
        }
    }
    let mut seen: BTreeMap<&str, i64> = BTreeMap::new();
    let set = Dataset::open(&traced.dir).unwrap();
    set.rows::<FileRollup>(|sum| {
        if sum.layer == Layer::Pnetcdf && sum.bytes > 0 {
            *seen.entry(sum.op).or_default() += sum.bytes;
        }
        Ok(())
    })
    .unwrap();
    assert_eq!(seen, wanted);
}
