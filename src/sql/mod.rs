//! `sql`: a dataset's views in `DuckDB`, be that a program or a module of Python, from any working directory.

use crate::export::programs::{Views, is_special, program, python, views};
use anyhow::{Context as _, Result, anyhow, bail};
use serde_json::Value;
use std::io::IsTerminal as _;
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::Command;

/// What Python does in place of the program.
const SCRIPT: &str = include_str!("run.py");

/// Becomes a program that answers `query`, or what is typed or piped, about the datasets in `dir`.
///
/// # Errors
/// When there is no dataset, or no `DuckDB`.
pub fn run(dir: &Path, query: Option<&str>) -> Result<u8> {
    let views = views(dir)?;
    let mut command = command(dir, &views, query, !std::io::stdout().is_terminal())?;
    Err(anyhow!(command.exec()).context(format!("cannot execute {}", command.get_program().display())))
}

/// The rows that answer a query about the datasets in `dir`, as objects.
///
/// # Errors
/// When there is no dataset, no `DuckDB`, or it refuses the query: then in its words.
pub fn rows(dir: &Path, query: &str) -> Result<Vec<Value>> {
    let views = views(dir)?;
    let query =
        format!("SELECT to_json(answer)::VARCHAR AS row FROM ({}) AS answer", query.trim_end_matches([';', ' ', '\n']));
    let out = command(dir, &views, Some(&query), true)?.output().context("cannot execute DuckDB")?;
    if !out.status.success() {
        let why = String::from_utf8_lossy(&out.stderr);
        bail!("{}", why.lines().find(|line| !line.is_empty()).unwrap_or("DuckDB failed"));
    }
    // One column: a heading, and lines in quotes, in which quotes are doubled.
    let text = String::from_utf8_lossy(&out.stdout).into_owned();
    let plain = |line: &str| line.strip_prefix('"')?.strip_suffix('"').map(|inner| inner.replace("\"\"", "\""));
    let row = |line: &str| serde_json::from_str(&plain(line).unwrap_or_else(|| line.to_owned())).context("a row");
    text.lines().skip(1).map(row).collect()
}

/// A program that answers `query`, or what is typed or piped.
fn command(dir: &Path, views: &Views, query: Option<&str>, plain: bool) -> Result<Command> {
    let path = views.path();
    let mut command = if let Some(duckdb) = program("duckdb") {
        let mut command = Command::new(duckdb);
        command.args(["-init", &path]).args(plain.then_some("-csv"));
        command.args(query.iter().flat_map(|query| ["-c", query]));
        command
    } else if let Some(python) = python(&["duckdb"]) {
        let mut command = Command::new(python);
        command.args(["-c", SCRIPT, &path]).args(query);
        command
    } else {
        bail!(
            "no DuckDB was found: neither a program duckdb in PATH nor a module of python3; get one with \
             'pip install duckdb' (the module), 'pip install duckdb-cli' or from https://duckdb.org/install (the program)"
        );
    };
    if is_special(dir) {
        command.current_dir(dir);
    }
    Ok(command)
}
