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
    setup::packages(setup::PACKAGES)?;
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

/// `.config/nextest.toml` has which live tests run beside each other. Their datasets are compared with SQL meanwhile, and the
/// library's own tests run on what they leave of the CPUs.
fn nextest(tree: &Tree, no_live: bool, args: &[String], notes: &Path) -> Result<()> {
    let workspace = |targets: &[&str]| {
        let mut command = nextest_by(Command::new("cargo"));
        command.args(["--workspace", "--exclude", fuzz::PACKAGE]).args(targets).args(args);
        command
    };
    if no_live {
        return shell::run(&mut workspace(&["--lib", "--bins", "--test", "offline"]));
    }
    let dir = tree.target.join("kept");
    if dir.exists() {
        fs::remove_dir_all(&dir).with_context(|| format!("cannot remove {}", dir.display()))?;
    }
    fs::create_dir_all(&dir).with_context(|| format!("cannot make {}", dir.display()))?;
    let live = |targets: &[&str]| shell::run(workspace(targets).env(NOTES, notes).env(kept::LATER, &dir));
    let run = || {
        // The targets are named, for without the library's package others would be built anew, with other features.
        if args.is_empty() {
            beside_the_library(|| live(&["--bins", "--test", "live", "--test", "offline"]))
        } else {
            live(&["--lib", "--bins", "--tests"])
        }
    };
    let (result, differences) = kept::beside(&kept::program()?, &dir, run)?;
    if !differences.is_empty() {
        bail!("datasets of live tests differ from SQL:\n{}", differences.join("\n"));
    }
    result
}

/// The test runner, with two threads for each CPU: `.config/nextest.toml` has how many of them a test takes.
fn nextest_by(mut cargo: Command) -> Command {
    let threads = 2 * thread::available_parallelism().map_or(1, usize::from);
    cargo.args(["nextest", "run"]).env("NEXTEST_TEST_THREADS", threads.to_string());
    cargo
}

/// Runs the library's own tests where the others, which wait more than they compute, leave a CPU.
fn beside_the_library(others: impl FnOnce() -> Result<()>) -> Result<()> {
    let library = |cargo| {
        let mut command = nextest_by(cargo);
        command.args(["--package", LIBRARY, "--lib"]).env(NOT_OPTIMISED.0, NOT_OPTIMISED.1);
        command
    };
    shell::run(library(Command::new("cargo")).arg("--no-run"))?;
    let mut command = library(shell::idle("cargo"));
    let (of_library, others) = thread::scope(|scope| {
        let of_library = scope.spawn(move || command.output().context("cannot start cargo"));
        let others = others();
        (of_library.join().map_err(|_| anyhow!("a thread of xtask panicked")), others)
    });
    let out = of_library??;
    println!("\n== tests of the library");
    print!("{}{}", String::from_utf8_lossy(&out.stdout), String::from_utf8_lossy(&out.stderr));
    if !out.status.success() {
        bail!("tests of the library failed: {}", out.status);
    }
    others
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
