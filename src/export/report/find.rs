//! The datasets in a directory or below it, with what is known of each before its rows are read.

use std::path::{Path, PathBuf};

use anyhow::{Result, ensure};

use crate::analysis::trace::source::IdKind;
use crate::export::Dataset;
use crate::export::report::related::DatasetMeta;
use crate::rows::{Meta, SEQ_BITS};

/// The columns that hold ids, by what they are ids of.
pub const IDS: [(IdKind, &[&str]); 9] = [
    (IdKind::Process, &["process_ix", "client_process_ix", "server_process_ix"]),
    (IdKind::Span, &["span_id", "root_id", "client_span_id", "last_span_id"]),
    (IdKind::File, &["file_id"]),
    (IdKind::Handle, &["handle_id", "parent_handle_id"]),
    (IdKind::Object, &["object_id"]),
    (IdKind::Request, &["req_id"]),
    (IdKind::Path, &["path_id", "path2_id"]),
    (IdKind::Mount, &["mount_id"]),
    (IdKind::Stack, &["stack_id"]),
];
/// Threads that made no calls have ids, too.
const THREAD: &str = "thread_ix";

/// A dataset that can be read.
pub struct ReadableDataset {
    pub host: String,
    pub dataset: Dataset,
    pub meta: DatasetMeta,
    /// The greatest id of each kind. Spans: of a thread.
    pub greatest: [i64; IDS.len()],
}

/// The dataset in `path`, or those in the directories below it; and what cannot be read.
///
/// # Errors
/// When there is none, or none can be read.
pub fn find(path: &Path) -> Result<(Vec<ReadableDataset>, Vec<String>)> {
    let error = match Dataset::open(path) {
        Ok(dataset) => return Ok(known(vec![dataset], Vec::new())),
        Err(error) => error,
    };
    let (mut found, mut unreadable, mut first) = (Vec::new(), Vec::new(), None);
    for path in datasets(path) {
        match Dataset::open(&path) {
            Ok(dataset) => found.push(dataset),
            Err(error) => {
                unreadable.push(format!("left out: {error:#}"));
                first = first.or(Some(error));
            }
        }
    }
    if found.is_empty() {
        return Err(first.unwrap_or(error));
    }
    let (known, unreadable) = known(found, unreadable);
    ensure!(!known.is_empty(), "no dataset below {} can be read; {}", path.display(), unreadable.join("; "));
    Ok((known, unreadable))
}

fn known(found: Vec<Dataset>, mut unreadable: Vec<String>) -> (Vec<ReadableDataset>, Vec<String>) {
    let several = found.len() > 1;
    let mut known = Vec::new();
    for dataset in found {
        let greatest = match greatest(&dataset) {
            Ok(greatest) => greatest,
            Err(error) if several => {
                unreadable.push(format!("{} left out: {error:#}", dataset.path().display()));
                continue;
            }
            // Ids of one dataset need no range of their own.
            Err(_) => Default::default(),
        };
        let mut meta = DatasetMeta::default();
        // What cannot be read of it is a warning of the dataset.
        let _ = dataset.rows(|row: Meta| {
            meta.0.insert(row.key, row.value);
            Ok(())
        });
        let host = meta.0.get("host").cloned().or_else(|| dataset.hosts().first().cloned()).unwrap_or_default();
        known.push(ReadableDataset { host, dataset, meta, greatest });
    }
    (known, unreadable)
}

/// The directories below this one that datasets are in, in order of name. Links are not followed: what they lead to may be
/// there a second time.
pub fn datasets(path: &Path) -> Vec<PathBuf> {
    let Ok(entries) = std::fs::read_dir(path) else { return Vec::new() };
    let directories = entries.filter_map(Result::ok).filter(|entry| entry.file_type().is_ok_and(|t| t.is_dir()));
    let mut below: Vec<PathBuf> = directories.map(|entry| entry.path()).collect();
    below.sort();
    below.into_iter().flat_map(|dir| if Dataset::is_one(&dir) { vec![dir] } else { datasets(&dir) }).collect()
}

/// The greatest id of each kind in a dataset.
fn greatest(dataset: &Dataset) -> Result<[i64; IDS.len()]> {
    let mut columns = IDS.map(|(_, columns)| columns).concat();
    columns.push(THREAD);
    let greatest = dataset.greatest(&columns)?;
    let threads = greatest.get(THREAD).copied().unwrap_or(0);
    Ok(IDS.map(|(kind, columns)| {
        let most = columns.iter().filter_map(|column| greatest.get(column)).copied().max().unwrap_or(0);
        if kind == IdKind::Span { threads.max(most >> SEQ_BITS) } else { most }
    }))
}
