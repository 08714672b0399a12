//! Runs every test with `cargo nextest`, or with `cargo test` where that is not installed.

use anyhow::{Context, Result, anyhow, bail};
use std::fs;
use std::path::Path;
use std::process::Command;
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use crate::vm::{self, doc};
use crate::{Tree, fuzz, kept, setup, shell, speedscope, venv};

/// Names the file in which live tests note how each layer was probed (tests/common/live.rs).
const NOTES: &str = "IOTRACE_TEST_TIERS";

/// How long machines may take to boot, before tests run beside them.
const BOOT: Duration = Duration::from_mins(3);

/// `args` go to the test runner. With `no_live` the tests that trace real programs are left out, with `machines` those on
/// other kernels run beside all others.
pub fn run(tree: &Tree, no_live: bool, machines: bool, args: &[String]) -> Result<()> {
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
        nextest(tree, no_live, machines, args, &notes)?;
    } else {
        cargo_test(no_live, args, &notes)?;
        if machines {
            vm::prepare(tree, "all")?.run(tree, vm::ALONE, &|| ()).report()?;
        }
    }
    if !no_live && args.is_empty() {
        doc::write_running(&notes)?;
    }
    if no_live {
        println!("\n*** LEFT OUT: the live tests");
    }
    Ok(())
}

/// `.config/nextest.toml` keeps live tests from running beside each other. Their datasets are compared with SQL meanwhile.
fn nextest(tree: &Tree, no_live: bool, machines: bool, args: &[String], notes: &Path) -> Result<()> {
    let command = |profile: &str| {
        let mut command = Command::new("cargo");
        command.args(["nextest", "run", "--workspace", "--exclude", fuzz::PACKAGE]);
        command.args(["--lib", "--bins", "--tests"]);
        command.args(["--profile", profile]).env(NOTES, notes);
        command
    };
    if no_live {
        return shell::run(command("default").args(["--filterset", "not binary(live)"]).args(args));
    }
    let dir = tree.target.join("kept");
    if dir.exists() {
        fs::remove_dir_all(&dir).with_context(|| format!("cannot remove {}", dir.display()))?;
    }
    fs::create_dir_all(&dir).with_context(|| format!("cannot make {}", dir.display()))?;
    let tests = |profile: &str| shell::run(command(profile).env(kept::LATER, &dir).args(args));
    let run = || if machines { beside_machines(tree, tests) } else { tests("default") };
    let (result, differences) = kept::beside(&kept::program()?, &dir, run)?;
    if !differences.is_empty() {
        bail!("datasets of live tests differ from SQL:\n{}", differences.join("\n"));
    }
    result
}

/// Runs the tests of profile `beside` while there are machines, and then those of profile `alone`.
fn beside_machines(tree: &Tree, tests: impl Fn(&str) -> Result<()>) -> Result<()> {
    let machines = vm::prepare(tree, "all")?;
    let (booted, boots) = mpsc::channel();
    let (beside, ended) = thread::scope(|scope| {
        let machines = &machines;
        let running = scope.spawn(move || machines.run(tree, vm::BESIDE, &|| _ = booted.send(())));
        // A kernel that gets no CPU while it boots finds that its timers do not work.
        let all_booted = (0..machines.count()).try_for_each(|_| boots.recv_timeout(BOOT));
        if all_booted.is_err() {
            println!("not all machines have booted: the tests go on");
        }
        let beside = tests("beside");
        (beside, running.join().map_err(|_| anyhow!("a thread of xtask panicked")))
    });
    let results = [beside, tests("alone"), ended.and_then(|machines| machines.report())];
    let errors: Vec<String> = results.into_iter().filter_map(|r| Some(format!("{:#}", r.err()?))).collect();
    if errors.is_empty() { Ok(()) } else { bail!("{}", errors.join("\n")) }
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
