//! What is kept of a run.

use std::collections::BTreeSet;
use std::path::{Component, Path, PathBuf};

use anyhow::Result;
use serde::Serialize;

use crate::analysis::trace::source::Source as _;
use crate::export::report::{Report, Union};
use crate::vocabulary::{Kind, Layer};

/// The columns of the index: the row, and how a column of each name is written, read and compared.
macro_rules! columns {
    ($($(#[$about:meta])* $field:ident: $of:ident($type:ty) = $name:literal,)+) => {
        /// A run: one row of the index.
        #[derive(Debug, Clone, Default, PartialEq, Serialize)]
        pub struct Run {
            $($(#[$about])* pub $field: $type,)+
        }

        /// All columns, in the order of the index. Conditions name them too.
        pub static COLUMNS: &[Column] = &[
            $(Column { name: $name, of: Of::$of(At { of: |run| &run.$field, to: |run| &mut run.$field }) },)+
        ];
    };
}

columns! {
    /// Where its datasets are, below the directory of the index; `.` for that itself.
    path: Text(String) = "path",
    /// Bytes of all parts of its datasets: a run that goes on has more later.
    dataset_bytes: Bytes(i64) = "dataset_bytes",
    start_ns: Time(i64) = "start",
    duration_s: Seconds(f64) = "duration_s",
    nodes: Texts(Vec<String>) = "nodes",
    /// Of the first process that has one.
    user: TextIfAny(Option<String>) = "user",
    job: TextIfAny(Option<String>) = "job",
    command: Text(String) = "command",
    processes: Count(i64) = "processes",
    ranks: Count(i64) = "ranks",
    /// System calls, and the bytes that they read and wrote.
    calls: Count(i64) = "calls",
    read_bytes: Bytes(i64) = "read_bytes",
    written_bytes: Bytes(i64) = "written_bytes",
    /// Wall time in calls on the critical path, as the report has it.
    calls_s: Seconds(f64) = "calls_s",
    /// The worst finding, and its seconds, if they are known.
    finding: TextIfAny(Option<String>) = "finding",
    finding_s: SecondsIfAny(Option<f64>) = "finding_s",
    /// The rules of all findings, the worst first.
    findings: Texts(Vec<String>) = "findings",
    /// False: something was lost, or the end was not recorded.
    complete: Truth(bool) = "complete",
    /// Earlier runs of the same user, command and ranks, at most 20, and medians of their durations and times in calls. The
    /// rest is null for fewer than three.
    earlier_runs: Count(i64) = "earlier_runs",
    usual_s: SecondsIfAny(Option<f64>) = "usual_s",
    usual_calls_s: SecondsIfAny(Option<f64>) = "usual_calls_s",
    /// The duration in parts of the usual one.
    slowdown: FactorIfAny(Option<f64>) = "slowdown",
}

/// Since the index has them. They are computed from all of its rows, and one without them is an index, too.
pub const COMPUTED: [&str; 4] = ["earlier_runs", "usual_s", "usual_calls_s", "slowdown"];

/// Where a row has the value of a column.
#[derive(Debug)]
pub struct At<T: 'static> {
    pub of: fn(&Run) -> &T,
    pub to: fn(&mut Run) -> &mut T,
}

/// What a column has.
#[derive(Debug)]
pub enum Of {
    Text(At<String>),
    TextIfAny(At<Option<String>>),
    /// Any of several.
    Texts(At<Vec<String>>),
    Count(At<i64>),
    Bytes(At<i64>),
    Seconds(At<f64>),
    SecondsIfAny(At<Option<f64>>),
    FactorIfAny(At<Option<f64>>),
    /// In ns since 1970.
    Time(At<i64>),
    Truth(At<bool>),
}

/// A column of the index.
#[derive(Debug)]
pub struct Column {
    pub name: &'static str,
    pub of: Of,
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
            ..Self::default()
        })
    }
}

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
