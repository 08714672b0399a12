//! How many calls per second there may be, how much memory and disk that takes, and how long attaching takes.

use anyhow::{Context, Result};
use std::fs;
use std::process::Stdio;
use std::time::Duration;

use super::turns::table;
use super::{Bench, calls_and_losses, number, phases};
use crate::shell;

/// Threads that read, and how many calls they make in a second; 0: as many as they can.
const STORMS: &[(u32, u32)] =
    &[(1, 250_000), (1, 500_000), (1, 750_000), (1, 1_000_000), (1, 1_500_000), (1, 0), (2, 0)];
/// How long, in seconds.
const LONG: &str = "10";

pub fn run(bench: &Bench) -> Result<String> {
    Ok(throughput(bench)? + &storms(bench)? + &phases::run(bench)?)
}

/// One core, from records to Parquet.
fn throughput(bench: &Bench) -> Result<String> {
    let program = bench.target.join("release/examples/throughput").to_string_lossy().into_owned();
    let rounds = bench.rounds.to_string();
    let work = bench.work.to_string_lossy().into_owned();
    let stdout = shell::output(&program, &["2000000", &rounds, &work])?;
    Ok(format!("\nFrom the records of a parallel HDF5 run to Parquet, on one core\n\n{stdout}"))
}

/// System calls as fast as they come, with all that is recorded.
fn storms(bench: &Bench) -> Result<String> {
    let program = bench.compile("storm", "cc", &[])?;
    let mut rows = Vec::new();
    for (threads, rate) in STORMS {
        eprintln!("{threads} threads, {rate} calls per second");
        let file = bench.work.join("storm.data");
        let mut command = bench.recording(&["--layers", "syscall", "--", &program]);
        command.arg(&file).args([&threads.to_string(), &rate.to_string(), LONG]);
        let mut child =
            command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().context("cannot start the tracer")?;
        let status = format!("/proc/{}/status", child.id());
        let mut most = 0.0_f64;
        while child.try_wait().context("waiting for the tracer")?.is_none() {
            most = most.max(fs::read_to_string(&status).ok().and_then(|s| number(&s, "VmHWM:")).unwrap_or(0.0));
            std::thread::sleep(Duration::from_millis(100));
        }
        let out = child.wait_with_output().context("the tracer")?;
        let stdout = String::from_utf8_lossy(&out.stdout);
        let (made, ns) = number(&stdout, "calls").zip(number(&stdout, "ns")).context("the program printed nothing")?;
        let (recorded, lost) = calls_and_losses(&bench.report()?);
        let rate = if *rate == 0 { "as many as it can".to_owned() } else { rate.to_string() };
        rows.push(vec![
            threads.to_string(),
            rate,
            format!("{:.0}", made * 1e9 / ns),
            format!("{:.0}", recorded * 1e9 / ns),
            format!("{lost:.0} ({:.1} %)", lost * 100.0 / made),
            format!("{:.0}", most / 1024.0),
            format!("{:.1}", bench.recorded_bytes()? as f64 / recorded),
        ]);
    }
    let heads =
        ["threads", "asked per second", "made per second", "recorded", "lost", "memory in MiB", "bytes per call"];
    let title = format!("pread of 1 byte in cache for {LONG} s, recorded to Parquet (--layers syscall)");
    Ok(table(&title, &heads, &rows))
}
