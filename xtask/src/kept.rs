//! Datasets that live tests kept to be compared with SQL. Live tests wait for each other: what needs no trace is done beside
//! them, or after.

use anyhow::{Context, Result, bail};
use serde_json::Value;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use crate::shell;

/// Names the directory in which tests keep datasets (tests/common/sql.rs).
pub const LATER: &str = "IOTRACE_TEST_COMPARE_LATER";
/// The test that compares what is in the directory of `IOTRACE_TEST_KEPT`.
const TEST: &str = "kept::datasets_agree_with_sql";
/// Of a dataset that is complete.
const COMPLETE: &str = "kept";

/// Builds the live tests; the path of their program.
pub fn program() -> Result<String> {
    let mut command = Command::new("cargo");
    // The whole workspace, so that its features are those of `cargo xtask test` and nothing is built twice.
    command.args(["test", "--workspace", "--test", "live", "--no-run", "--message-format=json-render-diagnostics"]);
    println!("+ building the tests");
    let out = command.stderr(Stdio::inherit()).output().context("cannot start cargo")?;
    if !out.status.success() {
        bail!("the tests cannot be built: {}", out.status);
    }
    executable(&String::from_utf8_lossy(&out.stdout)).context("cargo built no live tests")
}

/// The path of the live tests, from cargo's JSON messages.
fn executable(output: &str) -> Option<String> {
    let messages = output.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
    let mut live = messages.filter(|m| m["profile"]["test"] == true && m["target"]["name"] == "live");
    live.find_map(|m| Some(m["executable"].as_str()?.to_owned()))
}

/// Compares the datasets in a directory with SQL: what differs is the error.
pub fn compare(program: &str, dir: &Path) -> Result<()> {
    // One is compared at a time: those that are left when all tests have ended keep one core waiting.
    let mut command = shell::low(program);
    command.args(["--exact", TEST, "--ignored"]).env("IOTRACE_TEST_KEPT", dir);
    let out = command.output().with_context(|| format!("cannot start {program}"))?;
    let text = String::from_utf8_lossy(&out.stdout);
    if !out.status.success() || !text.contains("1 passed") {
        bail!("{text}{}", String::from_utf8_lossy(&out.stderr));
    }
    Ok(())
}

/// Compares what comes into a directory until `run` has returned and nothing is left there; returns its result, and the
/// differences.
pub fn beside<T>(program: &str, dir: &Path, run: impl FnOnce() -> T) -> Result<(T, Vec<String>)> {
    let ended = AtomicBool::new(false);
    thread::scope(|scope| {
        let comparison = scope.spawn(|| each(program, dir, &ended));
        let result = run();
        ended.store(true, Ordering::Relaxed);
        let differences = comparison.join().unwrap_or_else(|_| bail!("a thread of xtask panicked"))?;
        Ok((result, differences))
    })
}

fn each(program: &str, dir: &Path, ended: &AtomicBool) -> Result<Vec<String>> {
    let mut differences = Vec::new();
    let (taken, mut count) = (dir.join("taken"), 0_usize);
    loop {
        // Asked for before: what comes later is seen the next time.
        let last = ended.load(Ordering::Relaxed);
        let new = complete(dir)?;
        for copy in &new {
            let name = copy.file_name().context("a copy without a name")?;
            fs::create_dir(&taken).with_context(|| format!("cannot make {}", taken.display()))?;
            fs::rename(copy, taken.join(name)).with_context(|| format!("cannot move {}", copy.display()))?;
            count += 1;
            if let Err(e) = compare(program, &taken) {
                differences.push(format!("{}: {e:#}", name.to_string_lossy()));
            }
            fs::remove_dir_all(&taken).with_context(|| format!("cannot remove {}", taken.display()))?;
        }
        if new.is_empty() && last {
            println!("{count} datasets compared with SQL, {} differ", differences.len());
            return Ok(differences);
        }
        if new.is_empty() {
            thread::sleep(Duration::from_secs(1));
        }
    }
}

/// The copies in a directory that are complete.
fn complete(dir: &Path) -> Result<Vec<PathBuf>> {
    let entries = fs::read_dir(dir).with_context(|| format!("cannot list {}", dir.display()))?;
    let mut all: Vec<PathBuf> = entries.filter_map(|entry| Some(entry.ok()?.path())).collect();
    all.retain(|path| path.extension().is_some_and(|extension| extension == COMPLETE));
    all.sort();
    Ok(all)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_incomplete_is_not_taken_and_what_differs_is_named() {
        let dir = std::env::temp_dir().join(format!("xtask-kept-{}", std::process::id()));
        let keep = |name: &str| fs::create_dir_all(dir.join(name)).unwrap();
        keep("a.test-1");
        // Exists, and is no such program: each comparison fails.
        let ((), differences) = beside("false", &dir, || keep("b.test-2.kept")).unwrap();
        assert!(matches!(differences.as_slice(), [one] if one.starts_with("b.test-2.kept: ")), "{differences:?}");
        assert!(dir.join("a.test-1").exists() && !dir.join("b.test-2.kept").exists());
        fs::remove_dir_all(&dir).unwrap();
    }

    #[test]
    fn the_path_of_the_tests_is_in_the_messages_of_cargo() {
        let messages = "{\"reason\":\"compiler-artifact\",\"target\":{\"name\":\"live\"},\"profile\":{\"test\":true},\"executable\":\"/t/live-1\"}\n\
                    {\"reason\":\"compiler-artifact\",\"target\":{\"name\":\"iotrace-bpf\"},\"profile\":{\"test\":false},\"executable\":\"/t/iotrace-bpf\"}\n\
                    {\"reason\":\"compiler-artifact\",\"target\":{\"name\":\"lib\"},\"profile\":{\"test\":true},\"executable\":null}\nnoise\n";
        assert_eq!(executable(messages).as_deref(), Some("/t/live-1"));
        assert_eq!(executable("noise\n"), None);
    }
}
