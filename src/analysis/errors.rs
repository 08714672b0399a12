//! Failed calls by the name of their error and the directory of what they were about.

use std::collections::BTreeMap;

use anyhow::Result;
use serde::Serialize;

use crate::HashMap;
use crate::analysis::files;
use crate::analysis::lookups::directory;
use crate::analysis::trace::losses::Quality;
use crate::analysis::trace::source::{IdKind, Source};
use crate::base::text;
use crate::rows::{FileRollup, Span};
use crate::vocabulary::Layer;

/// Functions, each with each of its errors and files, that are remembered.
const REMEMBERED_MAX: usize = 1 << 18;
/// Of failed calls that were only counted.
const NOT_RECORDED: &str = "not recorded";

/// One error of one layer in one directory. Outermost calls of the layer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ErrorRow {
    /// Of several nodes: the one that it is on.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub host: Option<String>,
    pub layer: &'static str,
    /// Its name: `failed` where libraries have none, `not recorded` where calls were only counted.
    pub error: String,
    /// `None`: the call had no file and no path, or its name is not known.
    pub directory: Option<String>,
    pub calls: i64,
    pub time_ns: i64,
    /// The function with the most of these calls.
    pub op: &'static str,
    pub op_calls: i64,
    /// The error is that nothing has the name: programs look for files in many directories.
    pub lookup: bool,
    pub complete: bool,
}

/// What a failed call was about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
struct Key {
    layer: Layer,
    op: &'static str,
    /// `None`: not recorded.
    errno: Option<i16>,
    file: Option<i32>,
    path: Option<i32>,
}

/// Calls, and their time in ns.
type Sum = (i64, i64);

fn add(to: &mut Sum, (calls, ns): Sum) {
    *to = (to.0.saturating_add(calls), to.1.saturating_add(ns));
}

/// Sums up by function, error and file.
#[derive(Default)]
pub struct Errors {
    sums: HashMap<Key, Sum>,
    overflow: bool,
}

impl Errors {
    pub fn span(&mut self, span: &Span) {
        if span.layer_top && span.errno != 0 {
            let Span { layer, op, errno, file_id: file, path_id: path, .. } = *span;
            self.add(Key { layer, op, errno: Some(errno), file, path }, (1, span.net_ns()));
        }
    }

    /// Calls that were summed up: how many failed, and not why nor for how long.
    pub fn sums(&mut self, row: &FileRollup) {
        if row.errors > 0 {
            let FileRollup { layer, op, file_id: file, errors, .. } = *row;
            self.add(Key { layer, op, errno: None, file, path: None }, (errors, 0));
        }
    }

    fn add(&mut self, key: Key, sum: Sum) {
        if self.sums.len() >= REMEMBERED_MAX && !self.sums.contains_key(&key) {
            self.overflow = true;
            return;
        }
        add(self.sums.entry(key).or_default(), sum);
    }

    /// All of them by number: those of libraries, which often stand for others, and failed look-ups last.
    pub fn finish(self, source: &mut dyn Source, quality: &Quality) -> Result<Vec<ErrorRow>> {
        let files = files::described(source, self.sums.keys().filter_map(|key| key.file))?;
        let mut paths: HashMap<i32, Option<String>> =
            self.sums.keys().filter_map(|key| key.path).map(|id| (id, None)).collect();
        source.paths(&mut |row| {
            if let Some(known) = paths.get_mut(&row.path_id) {
                *known = directory(&row.path).map(str::to_owned);
            }
            Ok(())
        })?;
        let mut rows = BTreeMap::<_, BTreeMap<&'static str, Sum>>::new();
        for (key, sum) in &self.sums {
            let of_file = key.file.and_then(|id| files.get(&id)?.path.as_deref());
            let of_path = || key.path.and_then(|id| paths.get(&id)?.clone());
            let directory = of_file.map_or_else(of_path, |path| directory(path).map(str::to_owned));
            // Without a directory nodes are together: not all of these calls are on a file.
            let id = key.file.map(|id| (IdKind::File, id)).or_else(|| key.path.map(|id| (IdKind::Path, id)));
            let id = id.filter(|_| directory.is_some());
            let host = id.and_then(|(kind, id)| Some(source.origin(kind, i64::from(id))?.host.to_owned()));
            add(rows.entry((host, key.layer, key.errno, directory)).or_default().entry(key.op).or_default(), *sum);
        }
        let row =
            |((host, layer, errno, directory), ops): ((_, Layer, Option<i16>, _), BTreeMap<&'static str, Sum>)| {
                let mut all = Sum::default();
                for sum in ops.values() {
                    add(&mut all, *sum);
                }
                let (op, (op_calls, _)) = ops.into_iter().rev().max_by_key(|(_, sum)| sum.0)?;
                let error = match errno {
                    None => NOT_RECORDED.to_owned(),
                    Some(errno) => text::errno(errno),
                };
                Some(ErrorRow {
                    host,
                    layer: layer.name(),
                    error,
                    directory,
                    calls: all.0,
                    time_ns: all.1,
                    op,
                    op_calls,
                    lookup: errno == Some(nix::libc::ENOENT as i16),
                    complete: !self.overflow && quality.complete(layer),
                })
            };
        let mut rows: Vec<ErrorRow> = rows.into_iter().filter_map(row).collect();
        rows.sort_by_key(|row| (row.lookup, row.error == text::FAILED, std::cmp::Reverse(row.calls)));
        Ok(rows)
    }
}
