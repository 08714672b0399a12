//! Runs every test with `cargo nextest`, or with `cargo test` where that is not installed.

use anyhow::{Context, Result, anyhow, bail};
use std::fs;
use std::path::Path;
use std::process::Command;
use std::thread;

use crate::vm::doc;
use crate::{Tree, fuzz, kept, setup, shell, speedscope, venv};

/// Names the file in which live tests note how each layer was probed (tests/common/live.rs).
const NOTES: &str = "IOTRACE_TEST_TIERS";

/// The package of everything but the program and its tests.
const LIBRARY: &str = "iotrace-bpf-lib";

/// All targets but the library's own tests. They are named: without the library's package others would be built anew, with
/// other features.
const WITHOUT_LIBRARY: &[&str] = &["--bins", "--test", "live", "--test", "offline"];

/// Tests with Spark, which computes for minutes.
const ENGINES: &str = "test(/^datasets::(spark|scale)::/)";

/// Live tests beside which nothing may compute: what waits for a CPU is a finding, a busy CPU slows the hooks that a test
/// times, and `tune` goes by how long programs wait for a device. `.config/nextest.toml` has them alone in other runs.
const QUIET: &str = "binary(live) & test(/^(outputs::(findings|tune)|robustness::share|screens::watch)::/)";

/// How the library's own tests are built: not optimised, that takes a third of the time. A profile of its own would have
/// all other packages built again.
const NOT_OPTIMISED: (&str, &str) = ("CARGO_PROFILE_DEV_OPT_LEVEL", "0");

/// `args` go to the test runner. With `no_live` the tests that trace real programs are left out.
pub fn run(tree: &Tree, no_live: bool, args: &[String]) -> Result<()> {
    if !no_live && !shell::is_root() {
        bail!(
            "the live tests trace real programs, which needs root; run one of\n  \
             sudo -E env PATH=\"$PATH\" cargo xtask test\n  cargo xtask test --no-live     (leaves them out)"
        );
    }
    setup::all()?;
    venv::make(tree)?;
    speedscope::make(tree)?;
    if no_live {
        println!("\n*** LEFT OUT: the live tests, which alone show that tracing works\n");
    }
    let notes = tree.target.join("live.tiers");
    let _ = fs::remove_file(&notes);
    if shell::which("cargo-nextest").is_some() {
        nextest(tree, no_live, args, &notes)?;
    } else {
        cargo_test(no_live, args, &notes)?;
    }
    if !no_live && args.is_empty() {
        doc::write_running(&notes)?;
    }
    if no_live {
        println!("\n*** LEFT OUT: the live tests");
    }
    Ok(())
}

/// `.config/nextest.toml` has which live tests run beside each other. Their datasets are compared with SQL meanwhile, and what
/// only computes runs on what they leave of the CPUs.
fn nextest(tree: &Tree, no_live: bool, args: &[String], notes: &Path) -> Result<()> {
    if no_live {
        return shell::run(workspace(Command::new("cargo")).args(["--lib", "--bins", "--test", "offline"]).args(args));
    }
    let dir = tree.target.join("kept");
    if dir.exists() {
        fs::remove_dir_all(&dir).with_context(|| format!("cannot remove {}", dir.display()))?;
    }
    fs::create_dir_all(&dir).with_context(|| format!("cannot make {}", dir.display()))?;
    let live = |targets: &[&str]| {
        let mut command = workspace(Command::new("cargo"));
        shell::run(command.args(targets).args(args).env(NOTES, notes).env(kept::LATER, &dir))
    };
    let run = || {
        if !args.is_empty() {
            return live(&["--lib", "--bins", "--tests"]);
        }
        shell::run(library(Command::new("cargo")).arg("--no-run"))?;
        let selected = |tests: &str| live(&[WITHOUT_LIBRARY, &["--filterset", tests]].concat());
        let quiet = selected(QUIET);
        let idle = || {
            let mut cargo = shell::idle("cargo");
            cargo.env("NEXTEST_PROFILE", "idle");
            cargo
        };
        let others = format!("not ({ENGINES} | {QUIET})");
        // They run whatever came of those before.
        quiet.and(beside([library(idle()), engines(idle())], || selected(&others)))
    };
    let (result, differences) = kept::beside(&kept::program()?, &dir, run)?;
    if !differences.is_empty() {
        bail!("datasets of live tests differ from SQL:\n{}", differences.join("\n"));
    }
    result
}

/// The test runner, with two threads for each CPU: `.config/nextest.toml` has how many of them a test takes.
fn runner(mut cargo: Command) -> Command {
    let threads = 2 * thread::available_parallelism().map_or(1, usize::from);
    cargo.args(["nextest", "run"]).env("NEXTEST_TEST_THREADS", threads.to_string());
    cargo
}

fn workspace(cargo: Command) -> Command {
    let mut command = runner(cargo);
    command.args(["--workspace", "--exclude", fuzz::PACKAGE]);
    command
}

fn library(cargo: Command) -> Command {
    let mut command = runner(cargo);
    command.args(["--package", LIBRARY, "--lib"]).env(NOT_OPTIMISED.0, NOT_OPTIMISED.1);
    command
}

fn engines(cargo: Command) -> Command {
    let mut command = workspace(cargo);
    command.args(WITHOUT_LIBRARY).args(["--filterset", ENGINES]);
    command
}

/// Runs `computing` beside each other and the others. What they print comes at the end.
fn beside(computing: [Command; 2], others: impl FnOnce() -> Result<()>) -> Result<()> {
    let (computed, others) = thread::scope(|scope| {
        let computed = computing.map(|mut command| scope.spawn(move || command.output()));
        let others = others();
        (computed.map(|one| one.join().map_err(|_| anyhow!("a thread of xtask panicked"))), others)
    });
    let mut failed = others.err();
    for out in computed {
        let out = out?.context("cannot start cargo")?;
        print!("\n{}{}", String::from_utf8_lossy(&out.stdout), String::from_utf8_lossy(&out.stderr));
        if !out.status.success() {
            failed.get_or_insert_with(|| anyhow!("tests that ran beside the live ones failed: {}", out.status));
        }
    }
    failed.map_or(Ok(()), Err)
}

/// Two runs, because only one of them may use threads.
fn cargo_test(no_live: bool, args: &[String], notes: &Path) -> Result<()> {
    let mut command = Command::new("cargo");
    command.args(["test", "--workspace", "--exclude", fuzz::PACKAGE, "--no-fail-fast", "--lib", "--bins"]);
    shell::run(command.args(["--test", "offline"]).args(args))?;
    if no_live {
        return Ok(());
    }
    let mut command = Command::new("cargo");
    command.env(NOTES, notes).args(["test", "--test", "live"]).args(args).args(["--", "--test-threads=1"]);
    shell::run(&mut command)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tests_that_need_quiet_are_alone_in_other_runs_too() {
        let config = include_str!("../../.config/nextest.toml");
        let alone = format!("filter = '{QUIET}'\nthreads-required = \"num-test-threads\"");
        assert!(config.contains(&alone), "{config}");
    }
}
