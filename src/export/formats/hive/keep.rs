//! `--keep-days`: old partitions of the tree are removed.

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;
use std::time::SystemTime;

use anyhow::{Context, Result};

use crate::base::text;

const DAY_NS: i64 = 86_400_000_000_000;
/// `st_blocks` counts these, whatever the file system has.
const BLOCK: u64 = 512;

/// The day of a time in ns since 1970, in UTC: `2026-11-27`.
pub fn day(ns: i64) -> String {
    let mut wall = text::wall(ns);
    wall.truncate(wall.find(' ').unwrap_or(wall.len()));
    wall
}

/// The day of a partition by the name of its directory.
fn day_of(name: &str) -> Option<&str> {
    let day = name.strip_prefix("date=")?;
    let plain = |(at, byte): (usize, u8)| if matches!(at, 4 | 7) { byte == b'-' } else { byte.is_ascii_digit() };
    (day.len() == 10 && day.bytes().enumerate().all(plain)).then_some(day)
}

/// Removes the partitions before today and the `days` - 1 days before it, the oldest first, but for those of the days
/// `kept`, and returns what was removed. Names that are no partition's, and symbolic links, stay.
pub fn keep_days(tree: &Path, days: u32, kept: &BTreeSet<String>) -> Result<Vec<String>> {
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).map_or(0, |now| now.as_nanos() as i64);
    let first = day(now.saturating_sub(i64::from(days - 1).saturating_mul(DAY_NS)).max(0));
    let mut old = BTreeSet::new();
    for entry in fs::read_dir(tree).with_context(|| format!("cannot list {}", tree.display()))? {
        let entry = entry.with_context(|| format!("cannot list {}", tree.display()))?;
        let Ok(name) = entry.file_name().into_string() else { continue };
        // A link's own type: it is none.
        let is_directory = entry.file_type().is_ok_and(|kind| kind.is_dir());
        if is_directory && day_of(&name).is_some_and(|day| day < first.as_str() && !kept.contains(day)) {
            old.insert(name);
        }
    }
    let mut removed = Vec::new();
    for name in old {
        let path = tree.join(&name);
        let bytes = freed(&path);
        match fs::remove_dir_all(&path) {
            // Another node keeps the same tree.
            Err(e) if e.kind() == std::io::ErrorKind::NotFound => {}
            gone => {
                gone.with_context(|| format!("cannot remove {}", path.display()))?;
                let bytes = text::bytes(i64::try_from(bytes).unwrap_or(i64::MAX));
                removed.push(format!("{}: before the last {days} days, removed; {bytes} are free", path.display()));
            }
        }
    }
    Ok(removed)
}

/// What a directory takes on disk that no link elsewhere keeps.
fn freed(dir: &Path) -> u64 {
    let Ok(entries) = fs::read_dir(dir) else { return 0 };
    let of = |entry: fs::DirEntry| match entry.metadata() {
        Ok(own) if own.is_dir() => freed(&entry.path()),
        Ok(own) if own.nlink() == 1 => own.blocks() * BLOCK,
        _ => 0,
    };
    entries.filter_map(Result::ok).map(of).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_days_are_partitions() {
        assert_eq!(day_of("date=2026-11-27"), Some("2026-11-27"));
        for name in ["date=2026-11-2", "date=2026-11-027", "date=2026_11_27", "date=+026-11-27", "2026-11-27", "date="]
        {
            assert_eq!(day_of(name), None, "{name}");
        }
        assert_eq!(day_of("date=2026-11-2\u{661}"), None);
        assert_eq!((day(0), day(1_795_747_649_000_000_000)), ("1970-01-01".to_owned(), "2026-11-27".to_owned()));
    }
}
