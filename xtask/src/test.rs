//! Runs every test with `cargo nextest`, or with `cargo test` where that is not installed.

use anyhow::{Context, Result, bail};
use std::fs;
use std::path::Path;
use std::process::Command;

use crate::vm::doc;
use crate::{Tree, fuzz, kept, setup, shell, speedscope, venv};

/// Names the file in which live tests note how each layer was probed (tests/common/live.rs).
const NOTES: &str = "IOTRACE_TEST_TIERS";

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

/// One run; `.config/nextest.toml` keeps live tests from running beside each other. Their datasets are compared with SQL
/// meanwhile.
fn nextest(tree: &Tree, no_live: bool, args: &[String], notes: &Path) -> Result<()> {
    let mut command = Command::new("cargo");
    command.env(NOTES, notes).args(["nextest", "run", "--workspace", "--exclude", fuzz::PACKAGE, "--all-targets"]);
    if no_live {
        command.args(["--filterset", "not binary(live)"]);
        return shell::run(command.args(args));
    }
    let dir = tree.target.join("kept");
    if dir.exists() {
        fs::remove_dir_all(&dir).with_context(|| format!("cannot remove {}", dir.display()))?;
    }
    fs::create_dir_all(&dir).with_context(|| format!("cannot make {}", dir.display()))?;
    let run = || shell::run(command.env(kept::LATER, &dir).args(args));
    let (result, differences) = kept::beside(&kept::program()?, &dir, run)?;
    if !differences.is_empty() {
        bail!("datasets of live tests differ from SQL:\n{}", differences.join("\n"));
    }
    result
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
