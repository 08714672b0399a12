//! Whatever a kernel allows: the functions that the coverage calls attached are recorded as often as a program calls them.

use crate::common::{live, programs};
use iotrace_bpf::rows::Span;
use iotrace_bpf::vocabulary::{Kind, Layer};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

const RANKS: i32 = 2;

#[test]
fn attached_functions_of_a_parallel_program_are_recorded_as_often_as_they_are_called() {
    let work = live::scratch();
    let out = work.path().join("out");
    let (program, ranks, mpirun) = (programs::build("demo"), RANKS.to_string(), programs::openmpi("mpirun"));
    let mpirun = [&mpirun, "--allow-run-as-root", "--oversubscribe", "-np", &ranks].map(Path::new);
    let command = [&mpirun[..], &[program.as_path(), &out]].concat();
    let data = live::trace(work.path(), &["--layers", "hdf5,mpiio,stdio,syscall,block"], &command).data().lossless();
    // Of several names of a function one may be attached, and it is the one in the spans.
    let attached = |layer: Layer| -> BTreeSet<&str> {
        let rows = data.coverage.iter().filter(|c| c.layer == layer && c.status == "attached");
        rows.map(|c| c.symbol.as_str()).collect()
    };
    let own = |rank: i32, pid: i64, layer: Layer| {
        let data = &data;
        data.layer(layer).filter(move |s| {
            s.rank == Some(rank)
                && i64::from(s.pid) == pid
                && s.layer_top
                && data.ancestors(s).all(|a| a.layer == layer)
        })
    };
    for rank in 0..RANKS {
        let truth: Value = serde_json::from_slice(&fs::read(out.join(format!("truth.{rank}.json"))).unwrap()).unwrap();
        let pid = truth["pid"].as_i64().unwrap();
        // The libraries use each other, so calls of the program's own are those on files that only it uses.
        let log = out.join(format!("log.{rank}"));
        let shared = out.join("shared.dat");
        for (layer, group, file) in
            [(Layer::Hdf5, "hdf5", None), (Layer::Mpiio, "mpiio", Some(&shared)), (Layer::Stdio, "stdio", Some(&log))]
        {
            let attached = attached(layer);
            if layer == Layer::Mpiio && !attached.contains("MPI_File_open") {
                // Which file a call is about is not known, so those that HDF5 makes where it is not probed are among them.
                let calls = truth[group].as_object().unwrap().iter();
                let data_calls = calls.filter(|(name, _)| name.contains("_read") || name.contains("_write"));
                for (name, n) in data_calls.filter(|(name, _)| attached.contains(name.as_str())) {
                    let seen = own(rank, pid, layer).filter(|s| s.op == *name).count() as i64;
                    assert!(Some(seen) >= n.as_i64(), "{seen} of {n} calls of {name} on rank {rank}");
                }
                assert!(own(rank, pid, layer).any(|s| s.kind == Kind::Write && s.bytes > Some(0)), "rank {rank}");
                continue;
            }
            let on_file = |s: &&Span| file.is_none_or(|f| data.path(s) == Some(f));
            let moves = |s: &&Span| matches!(s.kind, Kind::Read | Kind::Write);
            let mut seen: BTreeMap<&str, i64> = BTreeMap::new();
            for span in own(rank, pid, layer).filter(on_file).filter(|s| file.is_none() || moves(s)) {
                *seen.entry(span.op).or_default() += 1;
            }
            let called: BTreeMap<&str, i64> = truth[group]
                .as_object()
                .unwrap()
                .iter()
                .map(|(name, n)| (name.as_str(), n.as_i64().unwrap()))
                .filter(|(name, _)| attached.contains(name) && (file.is_none() || seen.contains_key(name)))
                .collect();
            assert_eq!(seen, called, "{group} of rank {rank}");
            let moved =
                |kind| own(rank, pid, layer).filter(on_file).filter(move |s| s.kind == kind).map(|s| s.bytes.unwrap());
            for (kind, bytes) in [(Kind::Read, "bytes_read"), (Kind::Write, "bytes_written")] {
                assert_eq!(
                    moved(kind).sum::<i64>(),
                    truth[format!("{group}_{bytes}")],
                    "{group} {bytes} of rank {rank}"
                );
                assert!(moved(kind).count() > 0, "{group} of rank {rank} has calls that move data");
            }
        }
    }
}
