//! Datasets of many nodes and days as one tree whose directories are conditions (Hive partitions):
//! `date=2026-11-27/node=n1/start=…/TABLE-….parquet`. `DuckDB`, Spark and Polars read only the directories that a query
//! needs, and each `start=…` is a dataset that `report` and the others read. Small parts are joined: in a tree of many
//! nodes opening each would take longer than reading it.

mod keep;

use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};

use crate::export::Dataset;
use crate::export::files::file::give_to_caller;
use crate::export::reading::join::join;
use crate::export::report::datasets;
use crate::rows::Meta;

/// Adds the complete datasets in `dir` to the tree `to`, parts as links to the same files where that is possible and
/// small ones joined, and returns which were left out and why. Those that are there already stay as they are. With
/// `keep_days` older days are removed then, but for those of datasets in `dir`: they would come again.
pub fn add(dir: &Path, to: &Path, keep_days: Option<u32>) -> Result<Vec<String>> {
    let all = if Dataset::is_one(dir) { vec![dir.to_owned()] } else { datasets(dir) };
    if all.is_empty() {
        bail!("{} holds no dataset", dir.display());
    }
    let (mut notes, mut days) = (Vec::new(), BTreeSet::new());
    for path in all.iter().filter(|path| !path.starts_with(to)) {
        match place(path) {
            Ok(Ok(place)) => {
                add_one(path, to, &place.path())?;
                days.insert(place.day);
            }
            Ok(Err(why)) => notes.push(format!("{}: {why}, left out", path.display())),
            Err(why) => notes.push(format!("{}: {why:#}, left out", path.display())),
        }
    }
    // Without a complete dataset there may be no tree yet.
    if let Some(keep) = keep_days.filter(|_| to.is_dir()) {
        notes.extend(keep::keep_days(to, keep, &days)?);
    }
    Ok(notes)
}

/// The partition of a dataset.
struct Partition {
    day: String,
    node: String,
    start_ns: i64,
}

impl Partition {
    fn path(&self) -> PathBuf {
        PathBuf::from(format!("date={}/node={}/start={}", self.day, component(&self.node), self.start_ns))
    }
}

/// Where a dataset goes, or why it does not.
fn place(path: &Path) -> Result<Result<Partition, String>> {
    let dataset = Dataset::open(path)?;
    let (mut start, mut ended) = (None, false);
    dataset.rows(|row: Meta| {
        match row.key.as_str() {
            "t0_wall_ns" => start = row.value.parse::<i64>().ok(),
            "end_ns" => ended = true,
            _ => {}
        }
        Ok(())
    })?;
    Ok(match (start, dataset.hosts().as_slice(), ended) {
        (_, _, false) => Err("not complete yet".to_owned()),
        (Some(start), [host], true) if dataset.warnings().is_empty() => {
            Ok(Partition { day: keep::day(start), node: host.clone(), start_ns: start })
        }
        _ => {
            Err(dataset.warnings().first().map_or_else(|| "no start, or several nodes".to_owned(), ToString::to_string))
        }
    })
}

/// A name as part of a path: what could be taken for something else is written as `%2F`.
fn component(name: &str) -> String {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_".contains(&byte) || byte == b'.' && name.len() > 2;
    name.bytes().map(|byte| if plain(byte) { char::from(byte).to_string() } else { format!("%{byte:02X}") }).collect()
}

/// Where no link can be made.
const IS_COPIED: [io::ErrorKind; 3] =
    [io::ErrorKind::CrossesDevices, io::ErrorKind::PermissionDenied, io::ErrorKind::TooManyLinks];

/// Whole or not at all.
fn add_one(from: &Path, tree: &Path, place: &Path) -> Result<()> {
    let to = &tree.join(place);
    if to.symlink_metadata().is_ok() {
        return Ok(());
    }
    let above = place.ancestors().skip(1).collect::<Vec<_>>();
    for directory in above.into_iter().rev().map(|part| tree.join(part)) {
        make(&directory)?;
    }
    let new = to.with_extension(format!("{}.new", std::process::id()));
    let added = add_parts(from, &new)
        .and_then(|()| fs::rename(&new, to).with_context(|| format!("cannot create {}", to.display())));
    if added.is_err() {
        // A part of it may be there.
        let _ = fs::remove_dir_all(&new);
    }
    added
}

/// Makes a directory, if it is not there, for the caller of sudo.
fn make(directory: &Path) -> Result<()> {
    match fs::create_dir(directory) {
        Err(e) if e.kind() == io::ErrorKind::AlreadyExists => Ok(()),
        made => {
            made.with_context(|| format!("cannot create {}", directory.display()))?;
            give_to_caller(directory)
        }
    }
}

/// A link is the same file, whose owner stays who it was: only copies, and what was joined, are the caller's.
fn add_parts(from: &Path, to: &Path) -> Result<()> {
    make(to)?;
    let mut all = Vec::new();
    for entry in fs::read_dir(from).with_context(|| format!("cannot list {}", from.display()))? {
        let entry = entry.with_context(|| format!("cannot list {}", from.display()))?;
        if entry.file_type().is_ok_and(|kind| kind.is_file()) {
            all.push(entry.file_name());
        }
    }
    let names: Vec<String> = all.iter().filter_map(|name| Some(name.to_str()?.to_owned())).collect();
    let joined = join(from, to, &names)?;
    for name in all.iter().filter(|name| name.to_str().is_none_or(|name| !joined.contains(name))) {
        let (old, new) = (from.join(name), to.join(name));
        let what = || format!("cannot copy {} to {}", old.display(), new.display());
        match fs::hard_link(&old, &new) {
            Err(e) if IS_COPIED.contains(&e.kind()) => {
                fs::copy(&old, &new).with_context(what)?;
                give_to_caller(&new)?;
            }
            linked => linked.with_context(what)?,
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_one_component_whatever_is_in_it() {
        assert_eq!(component("node-1.cluster_a"), "node-1.cluster_a");
        assert_eq!(component("../x=1 y"), "..%2Fx%3D1%20y");
        assert_eq!(component(".."), "%2E%2E");
    }
}
