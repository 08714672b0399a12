//! Measures the way from the rings to the dataset: `cargo run --release --example throughput [SPANS [RUNS [DIR]]]`.
//! Prints how many calls one core decodes, correlates and writes in a second, how many where a second one is free to
//! write row groups, and bytes per call on disk.

mod recorded;
mod stages;

use anyhow::{Context as _, Result};
use iotrace_bpf::loader::kernel::rings::Batch;
use nix::time::{ClockId, clock_gettime};
use recorded::Recorded;
use stages::{correlate, decode, write};
use std::path::PathBuf;
use std::time::Instant;

fn main() -> Result<()> {
    let mut args = std::env::args().skip(1);
    let wanted: usize = args.next().map_or(Ok(2_000_000), |n| n.parse()).context("the number of calls")?;
    let runs: usize = args.next().map_or(Ok(3), |n| n.parse()).context("the number of runs")?;
    let dir = args.next().map_or_else(std::env::temp_dir, PathBuf::from);
    let (batches, spans) = Recorded::read()?.batches(wanted);
    let of = |each: fn(&Batch) -> usize| batches.iter().map(each).sum::<usize>();
    println!("{spans} calls: {} records, {} MB", of(|b| b.ends.len()), of(|b| b.data.len()) / 1_000_000);
    let mut times: [Vec<i64>; 3] = Default::default();
    let mut walls = Vec::new();
    let mut bytes = 0;
    for run in 0..runs {
        times[0].push(timed(|| decode(&batches))?);
        times[1].push(timed(|| correlate(&batches, &mut |_| Ok(())))?);
        let to = dir.join(format!("throughput-{}-{run}.iotrace", std::process::id()));
        let begun = Instant::now();
        times[2].push(timed(|| {
            bytes = write(&batches, &to, spans)?;
            Ok(())
        })?);
        walls.push(begun.elapsed().as_nanos() as i64);
        std::fs::remove_dir_all(&to)?;
    }
    let [decode, correlate, all] = times.map(median);
    let wall = median(walls);
    println!("\n| stage | ns per call | million calls per second |\n|---|---|---|");
    let stages =
        [("bytes to events", decode), ("events to rows", correlate - decode), ("rows to Parquet", all - correlate)];
    for (stage, ns) in stages.into_iter().chain([("all, one core", all), ("all, with a core for row groups", wall)]) {
        println!("| {stage} | {:.0} | {:.2} |", ns as f64 / spans as f64, spans as f64 * 1e3 / ns as f64);
    }
    println!("\n{:.1} bytes per call on disk, in all tables", bytes as f64 / spans as f64);
    Ok(())
}

fn median(mut times: Vec<i64>) -> i64 {
    times.sort_unstable();
    times[times.len() / 2]
}

/// What it took of the CPU, in ns.
fn timed(work: impl FnOnce() -> Result<()>) -> Result<i64> {
    let cpu = || clock_gettime(ClockId::CLOCK_PROCESS_CPUTIME_ID).map(|t| t.tv_sec() * 1_000_000_000 + t.tv_nsec());
    let begun = cpu()?;
    work()?;
    Ok(cpu()? - begun)
}
