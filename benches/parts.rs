//! What the parts cost that touch neither kernel nor disk, and the writer of Parquet: `cargo bench --bench parts`.

#![allow(clippy::unwrap_used, reason = "what a benchmark does not expect is a failure")]

#[path = "../examples/throughput/recorded.rs"]
mod recorded;
#[path = "../examples/throughput/stages.rs"]
mod stages;

use criterion::{BatchSize, Criterion, Throughput, criterion_group, criterion_main};
use iotrace_bpf::catalog::Catalog;
use iotrace_bpf::export::report;
use iotrace_bpf::loader::code::elf::Elf;
use iotrace_bpf::loader::code::outline::Outline;
use iotrace_bpf::loader::code::plan::Planner;
use iotrace_bpf::loader::processes::maps;
use iotrace_bpf::rows::Row;
use iotrace_bpf::summary::{From, Summary};
use recorded::Recorded;
use std::hint::black_box;

/// A library with many functions that are probed, and one with none.
const PROBED: &str = "/lib/x86_64-linux-gnu/libhdf5_openmpi.so.103";
const OTHER: &str = "/lib/x86_64-linux-gnu/libstdc++.so.6";

/// Calls that one core works off, stage by stage: each takes in the one before.
fn calls(c: &mut Criterion) {
    let (batches, calls) = Recorded::read().unwrap().batches(1);
    let mut rows: Vec<Row> = Vec::new();
    let mut keep = |some: &mut Vec<Row>| {
        rows.append(some);
        Ok(())
    };
    stages::correlate(&batches, &mut keep).unwrap();
    let mut group = c.benchmark_group("calls");
    group.throughput(Throughput::Elements(calls as u64)).sample_size(20);
    group.bench_function("to events", |b| b.iter(|| stages::decode(&batches).unwrap()));
    group.bench_function("to rows", |b| b.iter(|| stages::correlate(&batches, &mut |_| Ok(())).unwrap()));
    group.bench_function("to a dataset", |b| {
        let dir = tempfile::tempdir().unwrap();
        let to = dir.path().join("calls.iotrace");
        let afresh = || {
            if to.exists() {
                std::fs::remove_dir_all(&to).unwrap();
            }
        };
        b.iter_batched(afresh, |()| stages::write(&batches, &to, calls).unwrap(), BatchSize::PerIteration);
    });
    group.bench_function("from rows to a summary", |b| {
        b.iter(|| {
            let mut summary = Summary::new(From::Spans);
            for row in &rows {
                summary.push(row);
            }
            summary
        });
    });
    group.bench_function("from rows to a report", |b| b.iter(|| report::build(&mut rows).unwrap()));
    group.finish();
}

/// What a program waits for that maps a library.
fn libraries(c: &mut Criterion) {
    let planner = Planner::new(Catalog::built_in());
    let mut group = c.benchmark_group("libraries");
    for (name, path) in [("with probes", PROBED), ("without", OTHER)] {
        let bytes = std::fs::read(path).unwrap();
        let part = |buffer: &mut [u8], at: u64| {
            buffer.copy_from_slice(&bytes[at as usize..][..buffer.len()]);
            Ok(())
        };
        let parse = |bytes: &[u8]| Elf::parse(bytes, |symbol| planner.takes(symbol)).unwrap();
        let mut outline = Outline::default();
        group.bench_function(format!("symbols, {name}"), |b| {
            b.iter(|| parse(outline.of(bytes.len(), part).unwrap()).symbols.len());
        });
        let elf = parse(&bytes);
        group.bench_function(format!("plan, {name}"), |b| {
            b.iter(|| planner.plan(path, &elf, &bytes, &|_| true));
        });
    }
    let text = std::fs::read("/proc/self/maps").unwrap();
    group.bench_function("list of mappings", |b| b.iter(|| maps::mappings(black_box(&text))));
    group.finish();
}

criterion_group!(parts, calls, libraries);
criterion_main!(parts);
