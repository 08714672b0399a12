//! MPI-IO by three libraries and both implementations: every function, its bytes, hints, communicators, collective ids and
//! the communication below it.

use crate::common::live::{self, Data, Traced};
use crate::common::recording::Recording;
use crate::common::{programs, sql};
use iotrace_bpf::rows::{Handle, Span};
use iotrace_bpf::vocabulary::{Kind, Layer, flag};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::LazyLock;

const RANKS: i32 = 4;

struct Run {
    name: &'static str,
    _recording: Recording,
    out: PathBuf,
    dataset: PathBuf,
    data: Data,
}

fn openmpi(ranks: i32, options: &[&str]) -> Vec<String> {
    launcher(programs::openmpi("mpirun"), ranks, options)
}

fn launcher(mpirun: String, ranks: i32, options: &[&str]) -> Vec<String> {
    let own = ["--allow-run-as-root", "--oversubscribe", "-np", &ranks.to_string()].map(str::to_owned);
    let options = options.iter().map(ToString::to_string);
    [mpirun].into_iter().chain(own).chain(options).collect()
}

fn mpich(ranks: i32) -> Vec<String> {
    vec![programs::mpich("mpirun"), "-np".into(), ranks.to_string()]
}

/// Traces a program that leaves its truth in a directory, its first argument.
fn record(work: &Path, options: &[&str], launcher: &[String], program: &str, more: &[&str]) -> Traced {
    let out = work.join("out");
    fs::create_dir(&out).unwrap();
    let mut command = launcher.to_vec();
    command.push(programs::build(program).display().to_string());
    command.push(out.display().to_string());
    command.extend(more.iter().map(ToString::to_string));
    live::trace(work, options, &command)
}

/// The trace of a program that several tests look at.
fn run(name: &'static str, launcher: &[String], program: &str, more: &[&str]) -> Run {
    let shared = format!("mpiio_{}", name.replace(|c: char| !c.is_alphanumeric(), "_"));
    Run::of(name, Recording::shared(&shared, |work| record(work, &[], launcher, program, more)))
}

/// One trace of each serves all tests of this file.
static RUNS: LazyLock<[Run; 4]> = LazyLock::new(|| {
    [
        run("Open MPI, its own", &openmpi(RANKS, &[]), "mpiio_mix", &[]),
        run("Open MPI, ROMIO", &openmpi(RANKS, &["--mca", "io", "romio321"]), "mpiio_mix", &["no-iall"]),
        run("MPICH", &mpich(RANKS), "mpiio_mix_mpich", &[]),
        run("Open MPI 5", &launcher(programs::openmpi5("mpirun"), RANKS, &[]), "mpiio_mix_openmpi5", &[]),
    ]
});

impl Run {
    fn of(name: &'static str, recording: Recording) -> Self {
        let data = recording.traced().data().lossless();
        let (out, dataset) = (recording.work().join("out"), recording.traced().dir.clone());
        Self { name, out, dataset, data, _recording: recording }
    }

    fn truth(&self, rank: i32) -> Value {
        serde_json::from_slice(&fs::read(self.out.join(format!("truth.{rank}.json"))).unwrap()).unwrap()
    }

    /// The calls of MPI-IO that the program made itself. What a library does when it ends comes after the last.
    fn calls(&self, rank: i32) -> impl Iterator<Item = &Span> {
        let of_rank = move |s: &&Span| s.layer == Layer::Mpiio && s.layer_top && s.rank == Some(rank);
        let last = self.data.calls("MPI_File_delete").filter(of_rank).map(|s| s.start_ns).max().unwrap();
        let own = move |s: &&Span| s.start_ns <= last && s.op != "MPI_Wait";
        self.data.spans.iter().filter(of_rank).filter(own)
    }

    fn is_of(&self, span: &Span, file: &str) -> bool {
        self.data.path(span) == Some(&self.out.join(file))
    }

    /// The MPI handles on a file.
    fn handles(&self, file: &str) -> Vec<&Handle> {
        let path = self.out.join(file);
        let is = |h: &&Handle| {
            let of = h.file_id.and_then(|id| self.data.files[&id].path.as_deref());
            h.layer == Layer::Mpiio && of.map(Path::new) == Some(&path)
        };
        self.data.handles.values().filter(is).collect()
    }

    /// Everything below a call.
    fn below<'a>(&'a self, call: &'a Span) -> impl Iterator<Item = &'a Span> {
        self.data.spans.iter().filter(move |s| self.data.ancestors(s).any(|a| a.span_id == call.span_id))
    }
}

fn numbers(object: &Value) -> BTreeMap<String, i64> {
    object.as_object().unwrap().iter().map(|(name, n)| (name.clone(), n.as_i64().unwrap())).collect()
}

fn sums<'a>(spans: impl Iterator<Item = (&'a str, Option<i64>)>) -> BTreeMap<String, i64> {
    let mut sums = BTreeMap::new();
    for (name, value) in spans.filter_map(|(name, value)| Some((name, value?))) {
        *sums.entry(name.to_owned()).or_default() += value;
    }
    sums
}

#[test]
fn every_call_is_seen_once_with_its_bytes() {
    for run in RUNS.iter() {
        for rank in 0..RANKS {
            let truth = run.truth(rank);
            let calls = sums(run.calls(rank).map(|s| (s.op, Some(1))));
            assert_eq!(calls, numbers(&truth["calls"]), "calls, rank {rank}, {}", run.name);
            let data = || run.calls(rank).filter(|s| matches!(s.kind, Kind::Read | Kind::Write));
            let asked = sums(data().map(|s| (s.op, s.req_bytes)));
            assert_eq!(asked, numbers(&truth["asked"]), "asked, rank {rank}, {}", run.name);
            let moved = sums(data().map(|s| (s.op, s.bytes)));
            assert_eq!(moved, numbers(&truth["moved"]), "moved, rank {rank}, {}", run.name);
            // Unknown is only what a read without a status got.
            let unknown: Vec<&str> = data().filter(|s| s.bytes.is_none()).map(|s| s.op).collect();
            assert_eq!(unknown, ["MPI_File_read"], "rank {rank}, {}", run.name);
        }
    }
}

#[test]
fn every_function_of_the_catalog_is_called() {
    let called = |family| {
        let rows = iotrace_bpf::catalog::rows();
        rows.into_iter().filter(move |r| r.family == family && r.layer == Layer::Mpiio && r.inner().is_none())
    };
    let [_, _, run, _] = &*RUNS;
    let truth = numbers(&run.truth(0)["calls"]);
    for row in called(iotrace_bpf::catalog::Family::Mpich) {
        // It has nothing to do with a file.
        let not_called = ["MPI_File_create_errhandler", "MPI_Info_delete"].contains(&row.symbol);
        assert_ne!(truth.contains_key(row.symbol), not_called, "{}", row.symbol);
    }
}

#[test]
fn failed_calls_have_the_codes_of_the_library() {
    for run in RUNS.iter() {
        for rank in 0..RANKS {
            let truth = run.truth(rank);
            let failed = |op: &'static str| {
                let of_rank = run.data.calls(op).filter(move |s| s.rank == Some(rank) && s.errno != 0);
                of_rank.map(|s| (s.errno, s.ret)).collect::<Vec<_>>()
            };
            assert_eq!(failed("MPI_File_open"), [(-1, truth["missing"].as_i64())], "{}", run.name);
            assert_eq!(failed("MPI_File_delete"), [(-1, truth["undeleted"].as_i64())], "{}", run.name);
        }
    }
}

#[test]
fn handles_have_mode_communicator_and_hints() {
    for run in RUNS.iter() {
        let amode = run.truth(0)["amode"].as_i64().map(|m| m as i32);
        let facts = |file: &str| -> BTreeSet<_> {
            run.handles(file).into_iter().map(|h| (h.process_ix, h.mode, h.comm_size, h.hints.clone())).collect()
        };
        let hints = |pairs: &[(&str, &str)]| {
            Some(pairs.iter().map(|(k, v)| ((*k).to_owned(), (*v).to_owned())).collect::<Vec<_>>())
        };
        // Opened with a copy of hints of which one was changed afterwards; the change came with a view and by itself.
        let given = hints(&[("cb_nodes", "2"), ("romio_ds_write", "enable")]);
        let mix = facts("mix.dat");
        assert_eq!(mix.len(), RANKS as usize, "{}", run.name);
        for (_, mode, comm_size, hints) in mix {
            assert_eq!((mode, comm_size, &hints), (amode, Some(RANKS), &given), "{}", run.name);
        }
        for (file, sizes) in
            [("even.dat", vec![2, 2]), ("self.dat", vec![1, 1, 1, 1, 4, 4, 4, 4]), ("own.dat", vec![1; 4])]
        {
            let handles = run.handles(file);
            let mut seen: Vec<_> = handles.iter().filter_map(|h| h.comm_size).collect();
            seen.sort_unstable();
            assert_eq!(seen, sizes, "{file}, {}", run.name);
            assert!(handles.iter().all(|h| h.hints.is_none() && h.open_span_id.is_some() && h.end_ns.is_some()));
        }
        // None was made up: each was seen opened.
        let made_up =
            run.data.handles.values().filter(|h| h.flags != 0 && [Layer::Mpiio, Layer::Mpi].contains(&h.layer));
        assert_eq!(made_up.map(|h| (h.layer, h.raw)).collect::<Vec<_>>(), [], "{}", run.name);
    }
}

#[test]
fn a_collective_call_has_one_id_on_all_ranks() {
    for run in RUNS.iter() {
        let mut by_id: BTreeMap<i64, Vec<&Span>> = BTreeMap::new();
        for span in run.data.layer(Layer::Mpiio) {
            let with_file = span.flags & flag::COLLECTIVE != 0 && span.handle_id.is_some();
            assert_eq!(span.coll_id.is_some(), with_file, "{} of {}", span.op, run.name);
            if let Some(id) = span.coll_id {
                assert!((0..1 << 53).contains(&id));
                by_id.entry(id).or_default().push(span);
            }
        }
        for (id, spans) in by_id {
            let ops: BTreeSet<&str> = spans.iter().map(|s| s.op).collect();
            let ranks: BTreeSet<i32> = spans.iter().filter_map(|s| s.rank).collect();
            let sizes: BTreeSet<_> = spans.iter().map(|s| run.data.handles[&s.handle_id.unwrap()].comm_size).collect();
            assert_eq!((ops.len(), sizes.len(), ranks.len()), (1, 1, spans.len()), "{id}: {ops:?}, {}", run.name);
            assert_eq!(sizes, BTreeSet::from([Some(spans.len() as i32)]), "{id}: {ops:?}, {}", run.name);
        }
        // The same calls in the same order.
        let order = |rank: i32| {
            let mut own: Vec<&Span> = run.calls(rank).filter(|s| run.is_of(s, "mix.dat")).collect();
            own.sort_by_key(|s| s.start_ns);
            own.iter().filter_map(|s| s.coll_id).collect::<Vec<_>>()
        };
        let first = order(0);
        assert!(first.len() > 30, "{}", run.name);
        assert!((1..RANKS).all(|rank| order(rank) == first), "{}", run.name);
    }
}

#[test]
fn the_view_of_collective_calls_agrees_with_the_calls() {
    for run in RUNS.iter() {
        let rows = sql::query(&run.dataset, "FROM v_collectives");
        let whole = rows.iter().filter(|r| r["op"] == "MPI_File_write_at_all" && r["ranks"] == RANKS);
        // Twice of all ranks: with 4000 bytes of each, and with nothing of rank 1.
        assert_eq!(whole.clone().map(|r| r["asked"].clone()).collect::<Vec<_>>(), [16000, 12000], "{}", run.name);
        for row in whole {
            let calls: Vec<&Span> = run.data.spans.iter().filter(|s| s.coll_id == row["coll_id"].as_i64()).collect();
            let starts = calls.iter().map(|s| s.start_ns);
            let waits = starts.clone().max().unwrap() - starts.min().unwrap();
            let writes = |call: &Span| -> Vec<i64> {
                run.below(call)
                    .filter(|s| s.layer == Layer::Syscall && s.kind == Kind::Write)
                    .filter_map(|s| s.bytes)
                    .collect()
            };
            let aggregators = calls.iter().filter(|call| !writes(call).is_empty()).count();
            assert_eq!(row["first_waits_ns"], waits, "{}", run.name);
            assert_eq!((&row["aggregators"], &row["run"]), (&aggregators.into(), &1.into()), "{}", run.name);
            // Ranges that touch become one write; nothing is written twice.
            let written: i64 = calls.iter().flat_map(|call| writes(call)).sum();
            assert_eq!((&row["syscall_bytes"], &row["asked"]), (&written.into(), &written.into()), "{}", run.name);
        }
    }
}

/// Communication inside communication.
fn nested(run: &Run) -> usize {
    let outer = |span: &&Span| run.data.ancestors(span).any(|a| a.layer == Layer::Mpi);
    run.data.layer(Layer::Mpi).filter(outer).count()
}

#[test]
fn communication_inside_communication_is_seen_when_all_of_it_is_asked_for() {
    for run in RUNS.iter() {
        assert_eq!(nested(run), 0, "{}", run.name);
    }
    let layers = ["--layers", "mpiio,mpi=all,syscall"];
    let all = Recording::own(|work| record(work, &layers, &openmpi(RANKS, &[]), "mpiio_mix", &[]));
    let all = Run::of("all", all);
    assert!(nested(&all) > 0);
    let outermost = |run: &Run| run.data.layer(Layer::Mpi).filter(|s| s.layer_top).count();
    assert!(outermost(&all) > 0 && outermost(&RUNS[0]) > 0);
}

#[test]
fn communication_is_seen_inside_calls_and_only_there() {
    for run in RUNS.iter() {
        let mpi: Vec<&Span> = run.data.layer(Layer::Mpi).collect();
        for span in &mpi {
            assert!(run.data.ancestors(span).any(|a| a.layer == Layer::Mpiio), "{} of {}", span.op, run.name);
            assert_eq!((span.file_id, span.handle_id, span.bytes), (None, None, None), "{}", span.op);
        }
        // A collective write of interleaved blocks sends them to those who write.
        for rank in 0..RANKS {
            let views = run.calls(rank).filter(|s| s.op == "MPI_File_set_view").map(|s| s.start_ns);
            let viewed = views.min().unwrap();
            let write = run.calls(rank).find(|s| s.op == "MPI_File_write_all" && s.start_ns > viewed).unwrap();
            let sent: Vec<&Span> = run.below(write).filter(|s| s.layer == Layer::Mpi).collect();
            assert!(!sent.is_empty(), "rank {rank}, {}", run.name);
            let time: i64 = sent.iter().filter(|s| s.layer_top).map(|s| s.dur_ns).sum();
            assert!(time <= write.dur_ns, "rank {rank}, {}", run.name);
        }
        let bytes: i64 = mpi.iter().filter_map(|s| s.req_bytes).sum();
        assert!(bytes > 0, "{}", run.name);
    }
}

#[test]
fn fortran_calls_are_seen_once() {
    for (name, launcher, program) in [("Open MPI", openmpi(2, &[]), "mpiio_f"), ("MPICH", mpich(2), "mpiio_f_mpich")] {
        let run = Run::of(name, Recording::own(|work| record(work, &[], &launcher, program, &[])));
        for (binding, nodes, bytes) in [("mpif", "1", 400), ("module", "2", 1600), ("f08", "3", 1200)] {
            let file = format!("{binding}.dat");
            for rank in 0..2 {
                let spans = run.data.layer(Layer::Mpiio).filter(|s| s.rank == Some(rank) && run.is_of(s, &file));
                let mut spans: Vec<&Span> = spans.collect();
                spans.sort_by_key(|s| s.start_ns);
                let seen: Vec<_> = spans.iter().map(|s| (s.op, s.req_bytes, s.bytes)).collect();
                let moved = Some(bytes);
                let expected = [
                    ("MPI_File_open", None, None),
                    ("MPI_File_write_at_all", moved, moved),
                    ("MPI_File_iread_at", moved, moved),
                    ("MPI_File_close", None, None),
                ];
                assert_eq!(seen, expected, "{binding}, rank {rank}, {name}");
            }
            let hints = Some(vec![("cb_nodes".to_owned(), nodes.to_owned())]);
            let handles = run.handles(&file);
            assert_eq!(handles.len(), 2, "{binding}, {name}");
            assert!(
                handles.iter().all(|h| h.comm_size == Some(2) && h.hints == hints),
                "{binding}, {name}: {handles:?}"
            );
        }
    }
}

#[test]
fn ranks_come_from_the_variables_that_are_named() {
    let work = live::scratch();
    let options = ["--rank-vars", "NO_SUCH,MY_RANK", "--size-vars", "MY_SIZE", "--job-vars", "MY_JOB"];
    let set = ["env", "MY_RANK=7", "PMI_RANK=1", "MY_SIZE=9", "MY_JOB=x", "cat", "/etc/hostname"];
    let data = live::trace(work.path(), &options, &set).data();
    let of = |p: &iotrace_bpf::rows::Process| (p.rank, p.world_size, p.job_id.clone());
    let cat = data.processes.values().find(|p| p.exe.as_deref().is_some_and(|exe| exe.ends_with("cat"))).unwrap();
    assert_eq!(of(cat), (Some(7), Some(9), Some("x".to_owned())));
}
