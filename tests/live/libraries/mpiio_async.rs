//! Non-blocking and split MPI-IO, from submission to completion, whichever call finds it complete.

use crate::common::live::{self, Data};
use crate::common::programs;
use iotrace_bpf::rows::Span;
use iotrace_bpf::vocabulary::{Kind, Layer, flag};
use serde_json::Value;
use std::collections::BTreeMap;
use std::fs;

const RANKS: i32 = 2;

fn openmpi(io: &str) -> Vec<String> {
    let own =
        ["--allow-run-as-root", "--oversubscribe", "--mca", "io", io, "-np", &RANKS.to_string()].map(str::to_owned);
    [programs::openmpi("mpirun")].into_iter().chain(own).chain([program("mpiio_async")]).collect()
}

fn mpich() -> Vec<String> {
    vec![programs::mpich("mpirun"), "-np".into(), RANKS.to_string(), program("mpiio_async_mpich")]
}

fn program(name: &str) -> String {
    programs::build(name).display().to_string()
}

/// Traces the program; what each rank reports that it did, and what was recorded.
fn run(command: &[String], options: &[&str]) -> (Vec<Value>, Data) {
    let work = live::scratch();
    let out = work.path().to_owned();
    let command = [command, &[out.display().to_string()]].concat();
    let data = live::trace(work.path(), options, &command).data().lossless();
    assert!(data.layers_are_unions() > 0, "no operations at once");
    let truth = (0..RANKS).map(|rank| fs::read(out.join(format!("truth.{rank}.json"))).unwrap());
    (truth.map(|text| serde_json::from_slice(&text).unwrap()).collect(), data)
}

fn end(span: &Span) -> i64 {
    span.start_ns + span.dur_ns
}

/// The operations of a rank are those that it reports, each complete when and where it was found so.
fn check(name: &str, rank: usize, truth: &Value, data: &Data) {
    let own = |s: &&Span| s.rank == Some(rank as i32);
    for printed in truth["operations"].as_array().unwrap() {
        let what = format!("{printed}, rank {rank}, {name}");
        let is = |s: &&Span| own(s) && Some(s.op) == printed["op"].as_str() && s.offset == printed["offset"].as_i64();
        let spans: Vec<&Span> = data.spans.iter().filter(is).collect();
        assert_eq!(spans.len(), 1, "{what}");
        let span = spans[0];
        assert_eq!((span.layer, span.errno), (Layer::Mpiio, 0), "{what}");
        assert_eq!(span.flags & (flag::ASYNC | flag::NONBLOCKING), flag::ASYNC | flag::NONBLOCKING, "{what}");
        assert_eq!((span.async_id, span.req_bytes), (Some(span.span_id), printed["asked"].as_i64()), "{what}");

        let by = printed["by"].as_str().unwrap();
        assert_eq!(span.flags & flag::UNFINISHED != 0, by.is_empty(), "{what}");
        let moved = printed["moved"].as_i64().filter(|moved| *moved >= 0);
        // A write that is complete wrote all; what is not complete is not known.
        let known = moved.or(printed["asked"].as_i64()).filter(|_| !by.is_empty());
        assert_eq!(span.bytes, known, "{what}");
        if !by.is_empty() {
            let mut completing = data.calls(by).filter(|s| own(s) && s.layer == Layer::Mpiio && end(s) == end(span));
            let found = completing.next().unwrap_or_else(|| panic!("nothing completes {what}"));
            // A call that completes several names the first.
            assert!(found.async_id == span.async_id || by == "MPI_Waitall", "{what}");
        }
    }
    let printed = truth["completions"].as_object().unwrap().iter().map(|(op, n)| (op.as_str(), n.as_i64().unwrap()));
    let mut seen: BTreeMap<&str, i64> = BTreeMap::new();
    for span in data.spans.iter().filter(own).filter(|s| s.kind == Kind::Wait && s.layer == Layer::Mpiio) {
        *seen.entry(span.op).or_default() += 1;
    }
    assert_eq!(seen, printed.collect(), "rank {rank}, {name}");
    // The program tests until what it tests is complete, once in each way.
    for op in ["MPI_Test", "MPI_Testany", "MPI_Testall", "MPI_Testsome"] {
        let mut tests: Vec<&Span> = data.calls(op).filter(own).filter(|s| s.layer == Layer::Mpiio).collect();
        tests.sort_by_key(|s| s.start_ns);
        let outcomes: Vec<_> = tests.iter().map(|s| s.arg).collect();
        let (last, before) = outcomes.split_last().unwrap();
        assert_eq!(*last, Some(1), "{op}, rank {rank}, {name}");
        assert!(before.iter().all(|found| *found == Some(0)), "{op}, rank {rank}, {name}: {outcomes:?}");
    }
}

#[test]
fn operations_end_where_they_are_found_complete() {
    for (name, command) in
        [("Open MPI, its own", openmpi("ompio")), ("Open MPI, ROMIO", openmpi("romio321")), ("MPICH", mpich())]
    {
        let (truth, data) = run(&command, &[]);
        for (rank, truth) in truth.iter().enumerate() {
            check(name, rank, truth, &data);
        }
        // Waiting for messages is no I/O: it is seen inside of I/O calls only.
        for span in data.layer(Layer::Mpi) {
            assert!(data.ancestors(span).any(|a| a.layer == Layer::Mpiio), "{} of {name}", span.op);
        }
        // A wait on another thread is that thread's.
        let elsewhere = data.calls("MPI_Wait").filter(|s| s.layer == Layer::Mpiio && s.tid != s.pid);
        assert_eq!(elsewhere.count(), RANKS as usize, "{name}");
    }
}

#[test]
fn system_calls_of_helper_threads_belong_to_the_operation() {
    for (name, command) in [("Open MPI", openmpi("ompio")), ("MPICH", mpich())] {
        let (_, data) = run(&command, &[]);
        let mut below: BTreeMap<i64, i64> = BTreeMap::new();
        for write in data.layer(Layer::Syscall).filter(|s| s.op == "pwrite64") {
            let Some(operation) = data.ancestors(write).find(|a| a.op == "MPI_File_iwrite_at") else { continue };
            let aio = data.parent(write).unwrap();
            assert_eq!((aio.op, aio.layer, aio.async_id), ("aio_write", Layer::Stdio, write.async_id), "{name}");
            assert_eq!(write.root_id, operation.root_id, "{name}");
            assert!(aio.bytes == write.bytes || operation.flags & flag::UNFINISHED != 0, "{name}");
            assert_ne!(write.tid, operation.tid, "{name}");
            *below.entry(operation.span_id).or_default() += write.bytes.unwrap();
        }
        let done = data.calls("MPI_File_iwrite_at").filter(|s| s.flags & flag::UNFINISHED == 0);
        let asked: BTreeMap<i64, i64> = done.map(|s| (s.span_id, s.req_bytes.unwrap())).collect();
        assert!(asked.len() > 10, "{name}");
        for (operation, bytes) in asked {
            assert_eq!(below.get(&operation), Some(&bytes), "{name}");
        }
    }
}

#[test]
fn completion_is_seen_without_the_layer_of_communication() {
    let (truth, data) = run(&openmpi("ompio"), &["--layers", "mpiio,syscall"]);
    for (rank, truth) in truth.iter().enumerate() {
        check("only MPI-IO", rank, truth, &data);
    }
    assert_eq!(data.layer(Layer::Mpi).count(), 0);
}
