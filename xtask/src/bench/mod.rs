//! What tracing costs, beside other tools: tables of ratios in Markdown, and no test.

mod calls;
mod capacity;
mod memory;
mod other;
mod parts;
mod phases;
mod runs;
mod turns;
mod ways;

use anyhow::{Context, Result, anyhow, bail};
use clap::ValueEnum;
use serde_json::Value;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::{Tree, programs, setup, shell};

/// What is measured together.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Group {
    /// What the hooks add to one call
    Calls,
    /// What they add to whole runs of programs
    Runs,
    /// How many calls per second there may be, how large they are on disk, and how long attaching takes
    Capacity,
    /// What parts of the tracer cost by themselves
    Parts,
}

/// Measures something, and makes tables of it.
type Measure = fn(&Bench) -> Result<String>;

const GROUPS: [(Group, Measure); 4] = [
    (Group::Calls, calls::run),
    (Group::Runs, runs::run),
    (Group::Capacity, capacity::run),
    (Group::Parts, parts::run),
];

/// What bpftrace and perf read of tracepoints.
fn tracefs() -> Result<()> {
    const AT: &str = "/sys/kernel/tracing";
    if Path::new(AT).join("events").exists() {
        return Ok(());
    }
    shell::run(Command::new("mount").args(["-t", "tracefs", "tracefs", AT]))
}

/// Measures one group, or all of them, and prints their tables.
pub fn run(tree: &Tree, group: Option<Group>, rounds: u16, dir: &Path) -> Result<()> {
    if !shell::is_root() {
        bail!("tracing needs root; run: sudo -E env PATH=\"$PATH\" cargo xtask bench");
    }
    setup::all()?;
    setup::packages(setup::PEERS)?;
    tracefs()?;
    shell::run(Command::new("cargo").args(["build", "--release", "--bin", "iotrace-bpf", "--example", "throughput"]))?;
    let work = dir.join(format!("iotrace-bench-{}", std::process::id()));
    fs::create_dir(&work).with_context(|| format!("cannot make {}", work.display()))?;
    let bench = Bench { root: tree.root.clone(), target: tree.target.clone(), work, rounds };
    let wanted = GROUPS.into_iter().filter(|(of, _)| group.is_none_or(|group| group == *of));
    let result = wanted.map(|(_, measure)| measure(&bench)).try_for_each(|table| {
        println!("{}", table?);
        Ok(())
    });
    fs::remove_dir_all(&bench.work).with_context(|| format!("cannot remove {}", bench.work.display()))?;
    result
}

/// What all groups need.
pub struct Bench {
    root: PathBuf,
    target: PathBuf,
    /// An empty directory on the file system that is measured on.
    work: PathBuf,
    rounds: u16,
}

impl Bench {
    fn tracer(&self) -> Command {
        Command::new(self.target.join("release/iotrace-bpf"))
    }

    /// The tracer, recording to `trace` in the working directory.
    fn recording(&self, options: &[&str]) -> Command {
        let mut command = self.tracer();
        command.args(["--force", "-o"]).arg(self.work.join("trace")).args(options).current_dir(&self.work);
        command
    }

    /// Figures of the last recording.
    fn report(&self) -> Result<Value> {
        let out = self.tracer().arg("report").arg(self.work.join("trace")).arg("--json").output()?;
        serde_json::from_slice(&out.stdout).context("the report is not JSON")
    }

    /// A program of `tests/programs`.
    fn program(&self, name: &str) -> Result<String> {
        let path = programs::compile(&self.root, &self.target, name).map_err(|e| anyhow!(e))?;
        Ok(path.to_string_lossy().into_owned())
    }

    /// Compiles a program of `xtask/bench` into the working directory; `libraries` are names that pkg-config knows.
    fn compile(&self, name: &str, compiler: &str, libraries: &[&str]) -> Result<String> {
        let out = self.work.join(name);
        let mut command = Command::new(compiler);
        command.args(["-O2", "-pthread", "-o"]).arg(&out).arg(format!("xtask/bench/{name}.c"));
        if !libraries.is_empty() {
            let flags = shell::output("pkg-config", &[&["--cflags", "--libs"], libraries].concat())?;
            command.arg("-Wl,--no-as-needed").args(flags.split_whitespace());
        }
        shell::run(&mut command)?;
        Ok(out.to_string_lossy().into_owned())
    }

    /// The size of the last recording.
    fn recorded_bytes(&self) -> Result<u64> {
        let parts = fs::read_dir(self.work.join("trace")).context("the recording")?.flatten();
        let parts = parts.filter(|entry| entry.path().extension().is_some_and(|e| e == "parquet"));
        Ok(parts.filter_map(|entry| entry.metadata().ok()).map(|m| m.len()).sum())
    }
}

/// Calls in a recording from the report, and how many were lost.
fn calls_and_losses(report: &Value) -> (f64, f64) {
    let sum = |of: &str, fields: &[&str], skip: &str| -> f64 {
        let rows = report[of].as_array().into_iter().flatten().filter(|row| row["layer"] != skip);
        rows.flat_map(|row| fields.iter().filter_map(|field| row[*field].as_f64())).fold(0.0, |sum, n| sum + n)
    };
    (sum("layers", &["calls", "nested_calls"], "block"), sum("losses", &["count"], ""))
}

/// Runs a program that prints a number: the second field of its line that begins with `what`.
fn measured(command: &mut Command, what: &str) -> Result<f64> {
    let out = command.stderr(Stdio::piped()).output().with_context(|| format!("cannot start {command:?}"))?;
    if !out.status.success() {
        bail!("{command:?} failed: {}\n{}", out.status, String::from_utf8_lossy(&out.stderr));
    }
    let stdout = String::from_utf8_lossy(&out.stdout);
    number(&stdout, what).with_context(|| format!("{command:?} printed no '{what}' but {stdout:?}"))
}

fn number(stdout: &str, what: &str) -> Option<f64> {
    let mut lines = stdout.lines().map(|line| line.split_whitespace());
    lines.find_map(|mut fields| if fields.next() == Some(what) { fields.next()?.parse().ok() } else { None })
}

fn median(values: &[f64]) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    sorted.get(sorted.len() / 2).copied().unwrap_or(f64::NAN)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_is_found_among_what_else_is_printed() {
        let stdout = "a report\ncalls 12\nns 7\ncalls 13\n";
        assert_eq!((number(stdout, "calls"), number(stdout, "ns"), number(stdout, "a")), (Some(12.0), Some(7.0), None));
    }

    #[test]
    fn calls_are_those_of_all_layers_and_requests_are_none() {
        let report = serde_json::json!({
            "layers": [
                {"layer": "syscall", "calls": 3, "nested_calls": 1},
                {"layer": "hdf5", "calls": 2, "nested_calls": 5},
                {"layer": "block", "calls": 9, "nested_calls": 0},
            ],
            "losses": [{"layer": null, "place": "ring", "count": 4}],
        });
        let (calls, lost) = calls_and_losses(&report);
        assert!((calls - 11.0).abs() < 1e-9 && (lost - 4.0).abs() < 1e-9, "{calls} {lost}");
    }
}
