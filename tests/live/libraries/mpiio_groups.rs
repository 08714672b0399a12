//! The ranks that open a file of MPI-IO together, by split communicators too, and the implementation that serves it.

use crate::common::live::{self, Data, Traced};
use crate::common::{programs, sql};
use iotrace_bpf::rows::{Handle, Span};
use iotrace_bpf::vocabulary::Layer;
use serde::Deserialize;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::PathBuf;
use tempfile::TempDir;

const RANKS: i32 = 4;

/// What a rank of the program reports of one of its opens.
#[derive(Deserialize)]
struct Truth {
    file: String,
    ranks: Vec<i64>,
    /// 1: code of ROMIO called `open()`.
    romio: i32,
}

struct Run {
    _work: TempDir,
    traced: Traced,
    data: Data,
    out: PathBuf,
    truth: BTreeMap<i32, Vec<Truth>>,
}

fn run(mpirun: &str, options: &[&str], program: &str) -> Run {
    let work = live::scratch();
    let out = work.path().join("out");
    fs::create_dir(&out).unwrap();
    let number = RANKS.to_string();
    let mut command: Vec<&str> = [mpirun, "-np", &number].into_iter().chain(options.iter().copied()).collect();
    let (program, dir) = (programs::build(program).display().to_string(), out.display().to_string());
    command.extend([program.as_str(), &dir]);
    let traced = live::trace(work.path(), &[], &command);
    let data = traced.data().lossless();
    let text = |rank: i32| fs::read(out.join(format!("truth.{rank}.json"))).unwrap();
    let truth = (0..RANKS).map(|rank| (rank, serde_json::from_slice(&text(rank)).unwrap())).collect();
    Run { _work: work, traced, data, out, truth }
}

fn openmpi(io: &str) -> Run {
    run(&programs::openmpi("mpirun"), &["--allow-run-as-root", "--oversubscribe", "--mca", "io", io], "mpiio_groups")
}

fn openmpi5(io: &str) -> Run {
    let options = ["--allow-run-as-root", "--oversubscribe", "--mca", "io", io];
    run(&programs::openmpi5("mpirun"), &options, "mpiio_groups_openmpi5")
}

impl Run {
    /// The opens of a rank, in their order.
    fn opens(&self, rank: i32) -> Vec<(&Span, &Handle)> {
        let of_rank = self.data.calls("MPI_File_open").filter(|s| s.rank == Some(rank));
        let mut opens: Vec<_> = of_rank.map(|s| (s, &self.data.handles[&s.handle_id.unwrap()])).collect();
        opens.sort_by_key(|(span, _)| span.start_ns);
        opens
    }

    fn each(&self, check: &mut dyn FnMut(&Span, &Handle, &Truth)) {
        for (rank, truth) in &self.truth {
            let opens = self.opens(*rank);
            assert_eq!(opens.len(), truth.len(), "rank {rank}");
            for ((span, handle), truth) in opens.into_iter().zip(truth) {
                assert_eq!(self.data.path(span), Some(self.out.join(&truth.file).as_path()));
                check(span, handle, truth);
            }
        }
    }
}

/// The numbers that ranges like `0-3,8-14:2` stand for.
fn numbers(text: &str) -> Vec<i64> {
    let of = |part: &str| -> Vec<i64> {
        let (range, step) = part.split_once(':').unwrap_or((part, "1"));
        let (first, last) = range.split_once('-').unwrap_or((range, range));
        (first.parse().unwrap()..=last.parse().unwrap()).step_by(step.parse().unwrap()).collect()
    };
    text.split(',').flat_map(of).collect()
}

fn sorted(ranks: &[i64]) -> Vec<i64> {
    ranks.iter().copied().collect::<BTreeSet<_>>().into_iter().collect()
}

#[test]
fn open_mpi_gives_the_openers_and_the_driver_of_a_file() {
    for run in [openmpi("ompio"), openmpi("romio321"), openmpi5("ompio"), openmpi5("romio341")] {
        let mut groups: BTreeMap<i64, BTreeSet<Vec<i64>>> = BTreeMap::new();
        let mut callers: BTreeMap<i64, Vec<i64>> = BTreeMap::new();
        let mut served = BTreeSet::new();
        run.each(&mut |span, handle, truth| {
            assert_eq!(handle.comm_ranks.as_deref().map(numbers), Some(sorted(&truth.ranks)), "{handle:?}");
            assert_eq!(handle.comm_size, Some(truth.ranks.len() as i32));
            let by = if truth.romio == 1 { "ROMIO" } else { "OMPIO" };
            assert_ne!(truth.romio, -1);
            assert_eq!(handle.implementation, Some(by), "{handle:?}");
            served.insert(by);
            groups.entry(span.coll_id.unwrap()).or_default().insert(sorted(&truth.ranks));
            callers.entry(span.coll_id.unwrap()).or_default().push(i64::from(span.rank.unwrap()));
        });
        // One id for each group and time: communicators of one size that have one file open are distinguished.
        for (id, groups) in &groups {
            assert_eq!(groups.len(), 1);
            assert_eq!(groups.first(), Some(&sorted(&callers[id])));
            assert_eq!(groups.first().map(Vec::len), Some(callers[id].len()));
        }
        assert_eq!(groups.len(), 1 + 2 * 2 + 1 + RANKS as usize);
        let by: Vec<&str> = served.into_iter().collect();
        let opens = 4 * 4 + 3;
        let line = format!("MPI-IO by {} ({opens} opens)", by.join(", "));
        assert!(run.traced.report.contains(&line), "{line}\n{}", run.traced.report);
        assert!(!run.traced.report.contains("of unknown version"), "{}", run.traced.report);
        let views = "SELECT comm_ranks, ranks::INT AS ranks FROM v_collectives WHERE op = 'MPI_File_open'";
        let views = sql::query(&run.traced.dir, views);
        assert_eq!(views.len(), groups.len());
        for view in views {
            assert_eq!(numbers(view["comm_ranks"].as_str().unwrap()).len() as i64, view["ranks"].as_i64().unwrap());
        }
    }
}

#[test]
fn mpich_has_romio() {
    let run = run(&programs::mpich("mpirun"), &[], "mpiio_groups_mpich");
    run.each(&mut |_, handle, truth| {
        assert_eq!((handle.implementation, handle.comm_size), (Some("ROMIO"), Some(truth.ranks.len() as i32)));
        assert_eq!(handle.comm_ranks, None);
    });
    let below = run.data.handles.values().filter(|h| h.layer != Layer::Mpiio);
    assert!(below.clone().count() > 0 && below.clone().all(|h| h.implementation.is_none() && h.comm_ranks.is_none()));
    assert!(run.traced.report.contains("MPI-IO by ROMIO (19 opens)"), "{}", run.traced.report);
}
