//! The datasets of a job of many nodes that are made of a recorded run: what holds in a recorded one holds in them, and
//! both engines and the report find what was put in.

#[path = "../../../examples/scale/copied.rs"]
mod copied;
#[path = "../../../examples/scale/generate.rs"]
mod generate;
#[path = "../../../examples/scale/id_ranges.rs"]
mod id_ranges;
#[path = "../../../examples/scale/node.rs"]
mod node;
#[path = "../../../examples/scale/recorded.rs"]
mod recorded;
#[path = "../../../examples/scale/sums.rs"]
mod sums;

use crate::common::sql::python;

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::path::{Path, PathBuf};
use std::process::Command;

use iotrace_bpf::export::{Dataset, schema};
use iotrace_bpf::rows::{File, Handle, Process, Span};
use node::Job;
use serde_json::Value;
use sums::Sums;

const JOB: Job = Job { nodes: 4, ranks: 6, spans: 40_000, seconds: 600, seed: 7, different: 3 };

fn made(tree: &Path, job: Job) -> Sums {
    let from = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/mpi_hdf5");
    generate::generate(&from, job, tree).unwrap()
}

fn dataset(tree: &Path, node: u32) -> Dataset {
    Dataset::open(&JOB.directory(tree, node)).unwrap()
}

#[test]
fn each_node_is_a_dataset_like_a_recorded_one() {
    let dir = tempfile::tempdir().unwrap();
    let tree = dir.path().join("tree");
    let sums = made(&tree, JOB);
    let mut found = Sums::default();
    let mut ranks = BTreeSet::new();
    let mut meetings = HashMap::<i64, BTreeSet<u32>>::new();
    for node in 0..JOB.nodes {
        let dataset = dataset(&tree, node);
        assert_eq!(dataset.hosts(), [Job::host(node)]);
        assert_eq!(dataset.schema("spans").unwrap().fields(), schema::<Span>().fields());
        let spans: Vec<Span> = dataset.all().unwrap();
        let by_id: BTreeMap<i64, &Span> = spans.iter().map(|span| (span.span_id, span)).collect();
        assert_eq!(by_id.len(), spans.len(), "ids are unique");
        let processes: BTreeMap<i32, Process> = dataset.last_by_id().unwrap();
        let files: BTreeMap<i32, File> = dataset.last_by_id().unwrap();
        let handles: BTreeMap<i32, Handle> = dataset.last_by_id().unwrap();
        for span in &spans {
            found.add(span);
            if let Some(parent) = span.parent_id.map(|id| by_id[&id]) {
                assert!(parent.start_ns <= span.start_ns && span.end_ns() <= parent.end_ns(), "{span:?} in {parent:?}");
                assert_eq!((parent.root_id, parent.pid, parent.tid), (span.root_id, span.pid, span.tid));
            }
            assert!(span.self_ns <= span.net_ns(), "{span:?}");
            assert_eq!(processes[&span.process_ix].pid, span.pid);
            assert!(span.file_id.is_none_or(|id| files.contains_key(&id)), "{span:?}");
            // Its own, or one that the launcher left open.
            let owner = span.handle_id.map(|id| handles[&id].process_ix);
            assert!(
                owner.is_none_or(|it| it == span.process_ix || processes[&it].rank.is_none()),
                "{span:?} {owner:?}"
            );
            ranks.extend(span.rank);
            meetings.entry(span.coll_id.unwrap_or(-1)).or_default().insert(node);
        }
        // Parts end as the tracer ends them: not one for all.
        assert!(
            dataset.count::<Span>() >= JOB.spans * 3 / 4 && spans.iter().any(|span| span.start_ns > 500_000_000_000)
        );
    }
    assert_eq!(found, sums);
    assert_eq!(ranks.len() as u32, JOB.nodes * JOB.ranks);
    meetings.remove(&-1);
    assert!(!meetings.is_empty() && meetings.values().all(|nodes| nodes.len() as u32 == JOB.nodes), "{meetings:?}");
    // The same again.
    let again = dir.path().join("again");
    assert_eq!(made(&again, JOB), sums);
    assert_eq!(dataset(&again, 3).all::<Span>().unwrap(), dataset(&tree, 3).all::<Span>().unwrap());
    assert_ne!(made(&dir.path().join("other"), Job { seed: 8, ..JOB }), sums);
}

/// What the program in Python notes of one engine.
fn asked(engine: &str, tree: &Path, views: &str) -> PathBuf {
    let note = tree.with_extension(engine);
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/common/readers/scale.py");
    let views = JOB.directory(tree, 0).join(views);
    // Those that were rewritten for many nodes, and one of rules; all are compared on small datasets.
    let only = "v_layers,v_files,v_clocks,v_ranks,file-per-process";
    let mut command = Command::new(python());
    command.arg(script).arg(engine).arg(tree).arg(views).arg(&note).args(["--memory", "1GB", "--only", only]);
    command.args(["--rules", env!("CARGO_BIN_EXE_iotrace-bpf")]);
    let out = command.output().unwrap();
    assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stderr));
    note
}

#[test]
fn both_engines_and_the_report_have_the_calls_that_were_made() {
    let dir = tempfile::tempdir().unwrap();
    let tree = dir.path().join("tree");
    let sums = made(&tree, JOB).json();
    let out = Command::new(env!("CARGO_BIN_EXE_iotrace-bpf")).arg("report").arg(&tree).arg("--json").output().unwrap();
    let report: Value = serde_json::from_slice(&out.stdout).unwrap();
    let layers = sums["layers"].as_object().unwrap();
    assert!(layers.len() > 3);
    for (layer, made) in layers {
        let row = report["layers"].as_array().unwrap().iter().find(|row| row["layer"] == **layer).unwrap();
        for figure in ["calls", "nested_calls", "inclusive_ns", "exclusive_ns"] {
            assert_eq!(row[figure], made[figure], "{layer} {figure}");
        }
    }
    // The clocks that are off are found, as far as calls show it.
    for (node, row) in (0..).zip(report["nodes"].as_array().unwrap()) {
        let (ahead, clock) = (JOB.ahead_ns(node), &row["clock"]);
        let bound = |name: &str| clock[name].as_i64();
        assert!(
            bound("least_ns").is_none_or(|least| least <= -ahead) && bound("most_ns").is_none_or(|most| most >= -ahead),
            "{row}"
        );
    }

    let notes = [asked("duckdb", &tree, "views.sql"), asked("spark", &tree, "views-spark.sql")];
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/common/readers/scale.py");
    let out = Command::new(python()).arg(script).arg("compare").args(&notes).output().unwrap();
    assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stdout));
    assert!(String::from_utf8_lossy(&out.stdout).starts_with("9 answers compared, 0 figures differ"), "{out:?}");
    for note in notes {
        let text = std::fs::read_to_string(note).unwrap();
        let rows = text.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
        let answer = rows.into_iter().find(|row| row["what"] == "v_layers").unwrap();
        let made: i64 = layers.values().map(|layer| layer["calls"].as_i64().unwrap()).sum();
        assert_eq!(answer["sums"]["calls"].as_f64(), Some(made as f64), "{answer}");
    }
}
