//! What each hook adds to a call: the same program untraced, traced, beside a traced one, and under strace, by turns.

use anyhow::{Context, Result, anyhow, bail};
use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use crate::{Tree, programs, setup, shell};

/// A call of `tests/programs/costs.c`, the layers whose hooks it meets, and what that is in words.
struct Cost {
    call: &'static str,
    layers: &'static str,
    what: &'static str,
}

const COSTS: &[Cost] = &[
    Cost { call: "pread", layers: "syscall", what: "pread of 1 byte in cache" },
    Cost { call: "getppid", layers: "syscall", what: "call that is not recorded" },
    Cost { call: "open", layers: "syscall", what: "open and close" },
    Cost { call: "fwrite", layers: "stdio", what: "fwrite into the buffer" },
    Cost { call: "fault", layers: "vfs", what: "page fault on a mapped file" },
    Cost { call: "direct", layers: "block", what: "direct read of 4 KiB: block only" },
    Cost { call: "direct", layers: "syscall,block", what: "direct read of 4 KiB: with its call" },
];

/// How the program runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Way {
    Alone,
    Traced,
    /// Another process is traced.
    Beside,
    Strace,
}

/// Prints a table of times and ratios. All ways take turns in each round, so that what else the machine does meets all of them.
pub fn run(tree: &Tree, rounds: u16, dir: &Path) -> Result<()> {
    if !shell::is_root() {
        bail!("tracing needs root; run: sudo -E env PATH=\"$PATH\" cargo xtask bench");
    }
    setup::packages(setup::PACKAGES)?;
    crate::build_tracer()?;
    let program = programs::compile(&tree.root, &tree.target, "costs").map_err(|e| anyhow!(e))?;
    let work = dir.join(format!("iotrace-bench-{}", std::process::id()));
    fs::create_dir(&work).with_context(|| format!("cannot make {}", work.display()))?;
    let result = measure(tree, rounds, &work, &program.to_string_lossy());
    fs::remove_dir_all(&work).with_context(|| format!("cannot remove {}", work.display()))?;
    print!("{}", table(&result?));
    Ok(())
}

/// The times in ns by number of the row of `COSTS` and way, one for each round.
type Times = BTreeMap<(usize, Way), Vec<f64>>;

fn measure(tree: &Tree, rounds: u16, work: &Path, program: &str) -> Result<Times> {
    let tracer = tree.target.join("debug/iotrace-bpf");
    let mut times = Times::new();
    for round in 1..=rounds {
        eprintln!("round {round} of {rounds}");
        for (row, cost) in COSTS.iter().enumerate() {
            let args = [program, &work.to_string_lossy(), cost.call].map(str::to_owned);
            for way in [Way::Alone, Way::Traced, Way::Beside, Way::Strace] {
                let ns = match way {
                    Way::Alone => time(Command::new(&args[0]).args(&args[1..])),
                    Way::Traced => {
                        let mut command = Command::new(&tracer);
                        command.args(["--layers", cost.layers, "--force", "-o"]).arg(work.join("trace"));
                        time(command.arg("--").args(&args))
                    }
                    Way::Beside => {
                        let _other = Other::start(&tracer, cost.layers, work)?;
                        time(Command::new(&args[0]).args(&args[1..]))
                    }
                    Way::Strace => time(Command::new("strace").args(["-f", "-o", "/dev/null"]).args(&args)),
                };
                times.entry((row, way)).or_default().push(ns?);
            }
        }
    }
    Ok(times)
}

/// Runs the program; what it says one call took.
fn time(command: &mut Command) -> Result<f64> {
    let out = command.stderr(Stdio::inherit()).output().with_context(|| format!("cannot start {command:?}"))?;
    if !out.status.success() {
        bail!("{command:?} failed: {}", out.status);
    }
    let said = String::from_utf8_lossy(&out.stdout);
    // The tracer's report follows the program's line.
    let line = said.lines().next().unwrap_or_default();
    let ns = line.split_whitespace().nth(1).and_then(|ns| ns.parse().ok());
    ns.with_context(|| format!("{command:?} said {line:?}, not a time"))
}

/// A traced process that does nothing, and its tracer.
struct Other {
    sleeper: Child,
    tracer: Child,
}

impl Other {
    fn start(tracer: &Path, layers: &str, work: &Path) -> Result<Self> {
        let sleeper = Command::new("sleep").arg("1000").spawn().context("cannot start sleep")?;
        let output = work.join("beside");
        let _ = fs::remove_dir_all(&output);
        let mut command = Command::new(tracer);
        command.args(["--layers", layers, "-p", &sleeper.id().to_string(), "-o"]).arg(&output);
        let tracer = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().context("cannot start the tracer")?;
        let mut other = Self { sleeper, tracer };
        // It has attached everything when the first parts are closed, 5 s after its start.
        for _ in 0..600 {
            if output.join("coverage-00002.parquet").exists() {
                return Ok(other);
            }
            if let Some(status) = other.tracer.try_wait().context("waiting for the tracer")? {
                bail!("the tracer of another process ended: {status}");
            }
            std::thread::sleep(std::time::Duration::from_millis(100));
        }
        bail!("the tracer of another process did not begin within a minute")
    }
}

impl Drop for Other {
    fn drop(&mut self) {
        // The tracer ends with the last process that it traces.
        let _ = self.sleeper.kill();
        let _ = self.sleeper.wait();
        let _ = self.tracer.wait();
    }
}

fn median(values: &[f64]) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    sorted.get(sorted.len() / 2).copied().unwrap_or(f64::NAN)
}

/// What a way adds in ns, and its ratio to the untraced program: medians over the rounds, each against its own round.
fn added(times: &Times, row: usize, way: Way) -> (f64, f64) {
    let of = |way| times.get(&(row, way)).map(Vec::as_slice).unwrap_or_default();
    let pairs = || of(way).iter().zip(of(Way::Alone));
    let added: Vec<f64> = pairs().map(|(with, without)| with - without).collect();
    let ratios: Vec<f64> = pairs().map(|(with, without)| with / without).collect();
    (median(&added), median(&ratios))
}

fn table(times: &Times) -> String {
    let mut text = String::from(
        "\nns of one call, and in brackets the ratio to the untraced program; medians\n\n\
         | call | layers | untraced | traced adds | beside a traced process adds | strace adds | traced / strace |\n\
         |---|---|---|---|---|---|---|\n",
    );
    for (row, cost) in COSTS.iter().enumerate() {
        let alone = median(times.get(&(row, Way::Alone)).map(Vec::as_slice).unwrap_or_default());
        let [traced, beside, strace] = [Way::Traced, Way::Beside, Way::Strace].map(|way| added(times, row, way));
        let cell = |(ns, ratio): (f64, f64)| format!("{ns:.0} ({ratio:.2})");
        text += &format!(
            "| {} | {} | {alone:.0} | {} | {} | {} | {:.3} |\n",
            cost.what,
            cost.layers,
            cell(traced),
            cell(beside),
            cell(strace),
            traced.0 / strace.0
        );
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ratios_are_of_one_round() {
        let mut times = Times::new();
        times.insert((0, Way::Alone), vec![100.0, 200.0, 400.0]);
        times.insert((0, Way::Traced), vec![150.0, 300.0, 600.0]);
        let (ns, ratio) = added(&times, 0, Way::Traced);
        assert!((ns - 100.0).abs() < 1e-9 && (ratio - 1.5).abs() < 1e-9, "{ns} {ratio}");
    }

    #[test]
    fn every_call_is_one_of_the_program() {
        let source = include_str!("../../tests/programs/costs.c");
        assert!(COSTS.iter().all(|cost| source.contains(&format!("{{\"{}\", call_", cost.call))));
    }
}
