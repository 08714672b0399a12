//! Failed look-ups: system calls that named a path and failed, by directory and error.

use std::collections::BTreeMap;

use anyhow::Result;
use roaring::RoaringBitmap;
use serde::Serialize;

use crate::HashMap;
use crate::analysis::trace::losses::Quality;
use crate::analysis::trace::source::{IdKind, Source};
use crate::base::text;
use crate::rows::Span;
use crate::vocabulary::Layer;

/// Rows in the report.
const TOP: usize = 20;
/// So many paths, each with each of its errors, are remembered.
const REMEMBERED_MAX: usize = 1 << 20;

/// All of them.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct FailedLookups {
    pub calls: i64,
    pub time_ns: i64,
    /// Those with the most calls.
    pub rows: Vec<FailedLookup>,
    /// How many there are besides.
    pub more: usize,
    pub complete: bool,
}

/// One error in one directory.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct FailedLookup {
    /// Of several nodes: the one that it is on.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub host: Option<String>,
    /// `None`: what the path starts from, or the path itself, is not known.
    pub directory: Option<String>,
    pub errno: i16,
    /// Its name.
    pub error: String,
    pub calls: i64,
    /// How many paths in that directory.
    pub paths: u64,
    pub time_ns: i64,
    pub complete: bool,
}

#[derive(Default)]
struct Figures {
    calls: i64,
    time: i64,
    paths: u64,
}

impl Figures {
    fn add(&mut self, other: &Self) {
        self.calls = self.calls.saturating_add(other.calls);
        self.time = self.time.saturating_add(other.time);
        self.paths += other.paths;
    }
}

/// Sums up by path and error.
#[derive(Default)]
pub struct Lookups {
    figures: HashMap<(i32, i16), Figures>,
    overflow: bool,
}

impl Lookups {
    pub fn span(&mut self, span: &Span) {
        let (Layer::Syscall, Some(path), true) = (span.layer, span.path_id, span.errno != 0) else { return };
        let key = (path, span.errno);
        if self.figures.len() >= REMEMBERED_MAX && !self.figures.contains_key(&key) {
            self.overflow = true;
            return;
        }
        let figures = self.figures.entry(key).or_default();
        figures.add(&Figures { calls: 1, time: span.net_ns(), paths: 0 });
        figures.paths = 1;
    }

    /// By directory, those with the most calls first.
    pub fn finish(self, source: &mut dyn Source, quality: &Quality) -> Result<FailedLookups> {
        let failed: RoaringBitmap = self.figures.keys().map(|(path, _)| *path as u32).collect();
        let mut directories = HashMap::<i32, String>::default();
        source.paths(&mut |row| {
            if let Some(directory) = directory(&row.path).filter(|_| failed.contains(row.path_id as u32)) {
                directories.insert(row.path_id, directory.to_owned());
            }
            Ok(())
        })?;
        let mut rows = BTreeMap::<(Option<String>, Option<String>, i16), Figures>::new();
        for ((path, errno), figures) in &self.figures {
            let host = source.origin(IdKind::Path, i64::from(*path)).map(|origin| origin.host.to_owned());
            rows.entry((host, directories.get(path).cloned(), *errno)).or_default().add(figures);
        }
        let complete = !self.overflow && quality.complete(Layer::Syscall);
        let row = |((host, directory, errno), f): ((_, _, i16), Figures)| FailedLookup {
            host,
            directory,
            errno,
            error: text::errno(errno),
            calls: f.calls,
            paths: f.paths,
            time_ns: f.time,
            complete,
        };
        let mut rows: Vec<FailedLookup> = rows.into_iter().map(row).collect();
        rows.sort_by_key(|row| std::cmp::Reverse(row.calls));
        let mut all = Figures::default();
        for row in &rows {
            all.add(&Figures { calls: row.calls, time: row.time_ns, paths: 0 });
        }
        let more = rows.len().saturating_sub(TOP);
        rows.truncate(TOP);
        Ok(FailedLookups { calls: all.calls, time_ns: all.time, rows, more, complete })
    }
}

/// The directory that a path is in. Of one that starts nowhere it is not known.
pub fn directory(path: &str) -> Option<&str> {
    let (directory, _) = path.rsplit_once('/')?;
    Some(if directory.is_empty() { "/" } else { directory })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_is_in_a_directory_if_it_starts_somewhere() {
        let cases =
            [("/a/b", Some("/a")), ("/a", Some("/")), ("/", Some("/")), ("a", None), ("a/b", Some("a")), ("", None)];
        for (path, want) in cases {
            assert_eq!(directory(path), want, "{path}");
        }
    }
}
