//! `report --html`: the report and its pictures as one file, which a browser shows without a network.
//!
//! Rows are summed up into cubes of a bounded size: the file does not grow with the number of calls, and what a reader
//! selects in it (files, ranks, times) filters the cubes.

mod accesses;
mod axes;
mod collect;
mod collectives;
mod cube;
mod devices;
mod page;
mod tree;

use std::io::{BufWriter, Write as _};
use std::path::Path;

use anyhow::{Context, Result, bail};
use serde_json::{Value, json};

use crate::base::text;
use crate::export::files::file::create_new_file;
use crate::export::report::{self, Finding, Report, Wish};

/// Writes the page on the dataset in `dir` into a new file, and returns what was found.
///
/// # Errors
/// When there is no readable dataset, there are several runs, or the file exists or cannot be written.
pub fn run(dir: &Path, file: &Path, wish: &Wish) -> Result<Vec<Finding>> {
    if file.symlink_metadata().is_ok() {
        bail!("{} exists: remove it, or give another name", file.display());
    }
    let (mut union, mut report) = report::single(dir, wish)?;
    let mut data = collect::collect(&mut union, &report)?;
    if let Value::Object(data) = &mut data {
        data.insert("report".to_owned(), facts(&report, dir));
    }
    let out = create_new_file(file)?;
    let mut out = BufWriter::new(out);
    let title = text::escape(dir.display().to_string());
    page::write(&title, &data, &mut out)
        .and_then(|()| out.flush())
        .with_context(|| format!("cannot write {}", file.display()))?;
    Ok(std::mem::take(&mut report.findings.findings))
}

/// What the page shows of the report as it is.
fn facts(report: &Report, dir: &Path) -> Value {
    json!({
        "dataset": dir.display().to_string(),
        "header": report.header,
        "findings": report.findings.findings,
        "not_evaluated": report.findings.not_evaluated,
        "unexplained_s": report.findings.unexplained_s,
        "calls_s": report.findings.calls_s,
        "tracing": report.tracing,
        "tracing_warning": report.tracing.as_ref().and_then(report::Tracing::warning),
        "nodes": report.nodes,
        "complete": report.complete,
        "losses": report.losses,
        "warnings": report.warnings,
        "coverage": report.coverage,
        "opaque": report.opaque,
        "imbalance": report.ranks.imbalance,
    })
}
