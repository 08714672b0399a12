//! Runs the fuzz targets of `fuzz/`: each over its corpus, and then on inputs made of it that take new branches.
//!
//! Only the project's own crates are compiled for it, with `fuzz/instrumented` in the place of rustc; libraries are those of
//! the tests. `cargo fuzz` has them compiled for it, too, which takes as long as all of the tests' build.

use anyhow::{Context, Result, anyhow, bail};
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::thread;

use crate::{Tree, setup, shell};

/// The targets, which tests leave out: nothing of them runs there.
pub const PACKAGE: &str = "iotrace-bpf-fuzz";
/// Names a program that cargo runs instead of rustc for crates of the workspace.
const WRAPPER: &str = "RUSTC_WORKSPACE_WRAPPER";
/// Where the targets are, and with each one's name: the inputs to begin with, and those that failed.
const TARGETS: &str = "fuzz/fuzz_targets";
const CORPUS: &str = "fuzz/corpus";
const ARTIFACTS: &str = "fuzz/artifacts";

/// An input that takes longer (s) or more memory (MiB) fails.
const LIMITS: [&str; 2] = ["-timeout=10", "-rss_limit_mb=1024"];
/// Runs of a target from this many seconds on are with optimised code.
const LONG: u32 = 60;
/// Lines of the output of a target that are shown when it fails.
const SHOWN: usize = 40;

/// Each target, or the one that is named, for so many seconds; 0: over its corpus only.
pub fn run(tree: &Tree, seconds: u32, target: Option<&str>) -> Result<()> {
    let known = targets(&tree.root.join(TARGETS))?;
    let chosen: Vec<&String> = known.iter().filter(|name| target.is_none_or(|target| target == *name)).collect();
    if chosen.is_empty() {
        bail!("{} is no fuzz target; there are: {}", target.unwrap_or_default(), known.join(", "));
    }
    setup::all()?;
    let mut build = Command::new("cargo");
    build.args(["build", "--package", PACKAGE, "--bins"]);
    // To optimise the project's crates takes four minutes, which a short run does not win back.
    let level = if seconds < LONG { "0" } else { "1" };
    build.env("CARGO_PROFILE_DEV_OPT_LEVEL", level);
    let wrapper = std::env::var_os(WRAPPER).unwrap_or_default();
    shell::run(build.env(WRAPPER, tree.root.join("fuzz/instrumented")).env("FUZZ_RUSTC", wrapper))?;
    let mut failed = Vec::new();
    println!("\n{}", Figures::HEADER);
    for names in chosen.chunks(thread::available_parallelism().map_or(1, usize::from)) {
        for (name, outcome) in names.iter().zip(together(tree, names, seconds)) {
            let outcome = outcome?;
            println!("{}", outcome.figures.row(name));
            if !outcome.passed {
                failed.push(format!("{name}: {}", outcome.why()));
            }
        }
    }
    if failed.is_empty() {
        return Ok(());
    }
    bail!("{}", failed.join("\n"));
}

/// The names of the files there.
fn targets(dir: &Path) -> Result<Vec<String>> {
    let mut names = Vec::new();
    for entry in fs::read_dir(dir).with_context(|| format!("cannot list {}", dir.display()))? {
        let path = entry.with_context(|| format!("cannot list {}", dir.display()))?.path();
        names.extend(path.file_stem().map(|stem| stem.to_string_lossy().into_owned()));
    }
    names.sort();
    Ok(names)
}

/// What became of a target.
struct Outcome {
    passed: bool,
    figures: Figures,
    output: String,
}

impl Outcome {
    /// The end of its output, and which input it was.
    fn why(&self) -> String {
        let lines: Vec<&str> = self.output.lines().collect();
        let end = &lines[lines.len().saturating_sub(SHOWN)..];
        let input = self.output.lines().find_map(|line| line.split_once("Test unit written to ").map(|(_, path)| path));
        format!("failed\n{}\nthe input: {}", end.join("\n"), input.unwrap_or("one of its corpus"))
    }
}

/// Runs targets at the same time: each takes one CPU.
fn together(tree: &Tree, names: &[&String], seconds: u32) -> Vec<Result<Outcome>> {
    thread::scope(|scope| {
        let running: Vec<_> = names.iter().map(|name| scope.spawn(move || one(tree, name, seconds))).collect();
        let panicked = || Err(anyhow!("a thread of xtask panicked"));
        running.into_iter().map(|target| target.join().unwrap_or_else(|_| panicked())).collect()
    })
}

/// Runs a target in a directory of its own, which keeps what it finds, and its output.
fn one(tree: &Tree, name: &str, seconds: u32) -> Result<Outcome> {
    let dir = tree.target.join("fuzz").join(name);
    let make = |path: PathBuf| {
        fs::create_dir_all(&path).with_context(|| format!("cannot make {}", path.display())).map(|()| path)
    };
    let (found, temporary) = (make(dir.join("found"))?, make(dir.join("tmp"))?);
    let (corpus, artifacts) = (make(tree.root.join(CORPUS).join(name))?, make(tree.root.join(ARTIFACTS).join(name))?);
    let output = dir.join("output");
    let file = File::create(&output).with_context(|| format!("cannot write {}", output.display()))?;
    let mut command = Command::new(tree.target.join("debug").join(name));
    command.args(LIMITS).arg("-print_final_stats=1");
    command.arg(format!("-artifact_prefix={}/", artifacts.display()));
    command.arg(if seconds == 0 { "-runs=0".to_owned() } else { format!("-max_total_time={seconds}") });
    command.args([&found, &corpus]).env("TMPDIR", &temporary);
    let status = command.stdout(file.try_clone()?).stderr(file).status();
    let status = status.with_context(|| format!("cannot start the fuzz target {name}"))?;
    let _ = fs::remove_dir_all(temporary);
    let output = fs::read(&output).with_context(|| format!("cannot read {}", output.display()))?;
    let output = String::from_utf8_lossy(&output).into_owned();
    Ok(Outcome { passed: status.success(), figures: Figures::of(&output), output })
}

/// What a run came to, as libFuzzer reports it.
#[derive(Debug, Default, PartialEq, Eq)]
struct Figures {
    executions: Option<u64>,
    per_second: Option<u64>,
    /// Branches that were taken.
    coverage: Option<u64>,
    /// Inputs that take different ones, those of the corpus and new ones.
    inputs: Option<u64>,
    memory_mib: Option<u64>,
}

impl Figures {
    const HEADER: &str = "target      executions    per s   coverage   inputs   MiB";

    fn of(output: &str) -> Self {
        let stat = |name: &str| {
            output.lines().rev().find_map(|line| {
                line.strip_prefix("stat::")?.strip_prefix(name)?.strip_prefix(':')?.trim().parse().ok()
            })
        };
        // #128  DONE   cov: 40 ft: 43 corp: 3/9b lim: 4 exec/s: 0 rss: 30Mb
        let last = |name: &str| {
            output.lines().rev().filter(|line| line.starts_with('#')).find_map(|line| {
                let value = line.split_once(name)?.1.trim_start();
                value.split(|c: char| !c.is_ascii_digit()).next()?.parse().ok()
            })
        };
        Self {
            executions: stat("number_of_executed_units"),
            per_second: stat("average_exec_per_sec"),
            coverage: last(" cov:"),
            inputs: last(" corp:"),
            memory_mib: stat("peak_rss_mb"),
        }
    }

    fn row(&self, name: &str) -> String {
        let shown = |n: Option<u64>| n.map_or("?".to_owned(), |n| n.to_string());
        format!(
            "{name:10} {:>11} {:>8} {:>10} {:>8} {:>5}",
            shown(self.executions),
            shown(self.per_second),
            shown(self.coverage),
            shown(self.inputs),
            shown(self.memory_mib)
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const OUTPUT: &str = "INFO: seed corpus: files: 3\n#4\tINITED cov: 12 ft: 13 corp: 2/5b exec/s: 0 rss: 30Mb\n\
        #128\tDONE   cov: 40 ft: 43 corp: 3/9b lim: 4 exec/s: 0 rss: 31Mb\nDone 128 runs in 5 second(s)\n\
        stat::number_of_executed_units: 128\nstat::average_exec_per_sec:     25\nstat::peak_rss_mb:              31\n";

    #[test]
    fn figures_are_those_of_the_end() {
        let figures = Figures::of(OUTPUT);
        let expected = Figures {
            executions: Some(128),
            per_second: Some(25),
            coverage: Some(40),
            inputs: Some(3),
            memory_mib: Some(31),
        };
        assert_eq!(figures, expected);
        assert_eq!(figures.row("elf").len(), Figures::HEADER.len());
        assert!(Figures::default().row("elf").contains('?'));
    }

    #[test]
    fn a_failure_names_the_input() {
        let output = "thread panicked\nartifact_prefix='a/'; Test unit written to a/crash-1\nBase64: AA==\n".to_owned();
        let outcome = Outcome { passed: false, figures: Figures::default(), output };
        assert!(outcome.why().ends_with("the input: a/crash-1"), "{}", outcome.why());
    }

    #[test]
    fn every_target_is_built_and_has_a_corpus() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
        let manifest = fs::read_to_string(root.join("fuzz/Cargo.toml")).unwrap();
        let targets = targets(&root.join(TARGETS)).unwrap();
        assert_eq!(manifest.matches("[[bin]]").count(), targets.len());
        for name in targets {
            assert!(manifest.contains(&format!("path = \"fuzz_targets/{name}.rs\"")), "{name}");
            assert!(fs::read_dir(root.join(CORPUS).join(&name)).unwrap().count() > 9, "{name}");
        }
    }
}
