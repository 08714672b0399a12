//! What is kept of a run.

use std::collections::BTreeSet;
use std::path::{Component, Path, PathBuf};

use anyhow::Result;
use serde::Serialize;

use crate::analysis::trace::source::Source as _;
use crate::export::report::{Report, Union};
use crate::vocabulary::{Kind, Layer};

/// A run: one row of the index.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Run {
    /// Where its datasets are, below the directory of the index; `.` for that itself.
    pub path: String,
    /// Bytes of all parts of its datasets: a run that goes on has more later.
    pub dataset_bytes: i64,
    /// In ns since 1970.
    pub start_ns: i64,
    pub duration_s: f64,
    pub nodes: Vec<String>,
    /// Of the first process that has one.
    pub user: Option<String>,
    pub job: Option<String>,
    pub command: String,
    pub processes: i64,
    pub ranks: i64,
    /// System calls, and the bytes that they read and wrote.
    pub calls: i64,
    pub read_bytes: i64,
    pub written_bytes: i64,
    /// Wall time in calls on the critical path, as the report has it.
    pub calls_s: f64,
    /// The worst finding, and its seconds, if they are known.
    pub finding: Option<String>,
    pub finding_s: Option<f64>,
    /// The rules of all findings, the worst first.
    pub findings: Vec<String>,
    /// False: something was lost, or the end was not recorded.
    pub complete: bool,
}

/// What a run is known by: as long as this is the same, so is the rest.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Identity {
    pub path: String,
    dataset_bytes: i64,
}

impl Identity {
    pub fn of(dir: &Path, union: &Union) -> Self {
        let directories = union.directories();
        let bytes = directories.iter().flat_map(|dir| std::fs::read_dir(dir).into_iter().flatten());
        let bytes = bytes.filter_map(|entry| entry.ok()?.metadata().ok()).map(|meta| meta.len() as i64);
        let path = common(&directories);
        let path = path.strip_prefix(dir).unwrap_or(&path).to_string_lossy().into_owned();
        let path = if path.is_empty() { ".".to_owned() } else { path };
        Self { path, dataset_bytes: bytes.fold(0, i64::saturating_add) }
    }
}

/// The directory that all are in, or the only one.
fn common(directories: &[&Path]) -> PathBuf {
    let mut common: Vec<Component<'_>> = directories.first().map(|dir| dir.components().collect()).unwrap_or_default();
    for dir in directories {
        let same = common.iter().zip(dir.components()).take_while(|(a, b)| *a == b).count();
        common.truncate(same);
    }
    common.iter().collect()
}

impl Run {
    pub fn identity(&self) -> Identity {
        Identity { path: self.path.clone(), dataset_bytes: self.dataset_bytes }
    }

    /// The row of a run from its report.
    pub fn of(identity: Identity, union: &mut Union, report: &Report) -> Result<Self> {
        let (mut user, mut job) = (None, None);
        union.processes(&mut |process| {
            user = user.take().or_else(|| process.user.clone());
            job = job.take().or_else(|| process.job_id.clone());
            Ok(())
        })?;
        let calls = report.layers.iter().find(|row| row.layer == Layer::Syscall.name());
        let moved = |kind: Kind| {
            let ops = calls.iter().flat_map(|row| &row.ops).filter(|op| op.kind == kind.name());
            ops.filter_map(|op| op.moved.sum).fold(0, i64::saturating_add)
        };
        let header = &report.header;
        let worst = report.findings.findings.first();
        let nodes: BTreeSet<String> = report.nodes.iter().map(|node| node.host.clone()).collect();
        Ok(Self {
            path: identity.path,
            dataset_bytes: identity.dataset_bytes,
            start_ns: header.start_wall_ns.unwrap_or(0),
            duration_s: header.duration_ns as f64 / 1e9,
            nodes: nodes.into_iter().collect(),
            user,
            job,
            command: header.command.clone().unwrap_or_default(),
            processes: header.processes as i64,
            ranks: header.ranks as i64,
            calls: calls.map_or(0, |row| row.calls),
            read_bytes: moved(Kind::Read),
            written_bytes: moved(Kind::Write),
            calls_s: report.findings.calls_s,
            finding: worst.map(|finding| finding.rule.to_owned()),
            finding_s: worst.and_then(|finding| finding.seconds),
            findings: report.findings.findings.iter().map(|finding| finding.rule.to_owned()).collect(),
            complete: report.complete && header.end_recorded,
        })
    }
}

/// What a column has.
#[derive(Debug, Clone, Copy)]
pub enum Of {
    Text(fn(&Run) -> Option<&str>),
    /// Any of several.
    Texts(fn(&Run) -> &[String]),
    Count(fn(&Run) -> i64),
    Bytes(fn(&Run) -> i64),
    Seconds(fn(&Run) -> Option<f64>),
    /// In ns since 1970.
    Time(fn(&Run) -> i64),
    Truth(fn(&Run) -> bool),
}

/// A column of the index, which conditions name too.
#[derive(Debug, Clone, Copy)]
pub struct Column {
    pub name: &'static str,
    pub of: Of,
}

const fn column(name: &'static str, of: Of) -> Column {
    Column { name, of }
}

/// All columns, in the order of the index.
pub const COLUMNS: &[Column] = &[
    column("path", Of::Text(|run| Some(&run.path))),
    column("dataset_bytes", Of::Bytes(|run| run.dataset_bytes)),
    column("start", Of::Time(|run| run.start_ns)),
    column("duration_s", Of::Seconds(|run| Some(run.duration_s))),
    column("nodes", Of::Texts(|run| &run.nodes)),
    column("user", Of::Text(|run| run.user.as_deref())),
    column("job", Of::Text(|run| run.job.as_deref())),
    column("command", Of::Text(|run| Some(&run.command))),
    column("processes", Of::Count(|run| run.processes)),
    column("ranks", Of::Count(|run| run.ranks)),
    column("calls", Of::Count(|run| run.calls)),
    column("read_bytes", Of::Bytes(|run| run.read_bytes)),
    column("written_bytes", Of::Bytes(|run| run.written_bytes)),
    column("calls_s", Of::Seconds(|run| Some(run.calls_s))),
    column("finding", Of::Text(|run| run.finding.as_deref())),
    column("finding_s", Of::Seconds(|run| run.finding_s)),
    column("findings", Of::Texts(|run| &run.findings)),
    column("complete", Of::Truth(|run| run.complete)),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn datasets_of_a_run_have_one_directory() {
        let of = |paths: &[&str]| common(&paths.iter().map(Path::new).collect::<Vec<_>>()).display().to_string();
        assert_eq!(of(&["all/run"]), "all/run");
        assert_eq!(of(&["all/run/node1", "all/run/node2"]), "all/run");
        assert_eq!(of(&["all/1", "other/1"]), "");
    }
}
