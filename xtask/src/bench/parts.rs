//! What parts of the tracer cost by themselves: `benches/parts.rs`, whose figures criterion leaves in files.

use anyhow::{Context, Result};
use serde_json::Value;
use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::SystemTime;

use super::Bench;
use crate::shell;

pub fn run(bench: &Bench) -> Result<String> {
    let begin = SystemTime::now();
    // Its messages go where those of cargo go.
    shell::run(Command::new("bash").args(["-c", "cargo bench --bench parts -- --noplot >&2"]))?;
    let mut rows = Vec::new();
    for group in entries(&bench.target.join("criterion"))? {
        for part in entries(&group)? {
            let read = |file: &str| -> Option<Value> {
                let file = part.join("new").join(file);
                let new = file.metadata().and_then(|m| m.modified()).is_ok_and(|at| at >= begin);
                serde_json::from_slice(&new.then(|| fs::read(file).ok())??).ok()
            };
            // A directory of the report has neither, and what is of an earlier run may not be there any more.
            let Some((what, figures)) = read("benchmark.json").zip(read("estimates.json")) else { continue };
            let ns = figures["median"]["point_estimate"].as_f64().context("a median")?;
            let each = what["throughput"]["Elements"].as_f64().map(|n| format!("{:.0}", ns / n)).unwrap_or_default();
            rows.push(format!("| {} | {:.0} | {each} |\n", what["full_id"].as_str().unwrap_or_default(), ns / 1e3));
        }
    }
    rows.sort_unstable();
    Ok(format!("\nParts by themselves, medians\n\n| part | µs | ns per call |\n|---|---|---|\n{}", rows.concat()))
}

fn entries(dir: &Path) -> Result<Vec<std::path::PathBuf>> {
    let entries = fs::read_dir(dir).with_context(|| format!("cannot read {}", dir.display()))?;
    Ok(entries.flatten().map(|entry| entry.path()).filter(|path| path.is_dir()).collect())
}
