//! `repair`: makes a dataset whose tracer was killed what one is that was ended in order, as far as its rows are there.

use std::io::Write;
use std::path::Path;

use anyhow::{Context as _, Result, bail};

use crate::base::text::escape;
use crate::export::dataset::names;
use crate::export::files::directory::Directory;
use crate::export::reading::compact::{Fewer, compact};

/// How deep directories of nodes, periods and datasets may be in each other.
const DEPTH: usize = 8;

/// Repairs the dataset in `dir`, or all those in the directories below it, and reports what it did.
///
/// # Errors
/// When there is none, or one is still being written or cannot be repaired: the others are, then.
pub fn run(dir: &Path, out: &mut dyn Write) -> Result<()> {
    let (mut found, mut failed) = (0_usize, Vec::new());
    let directory = Directory::existing(dir, nix::unistd::geteuid().is_root())?;
    each(&directory, DEPTH, &mut |dataset| {
        found += 1;
        failed.extend(dataset.and_then(|dataset| repair(dataset, out)).err());
    })?;
    match failed.pop() {
        None if found == 0 => bail!("{} holds no dataset; give a directory written with --output", dir.display()),
        None => Ok(()),
        Some(error) if failed.is_empty() => Err(error),
        Some(error) => {
            Err(error.context(format!("{} of {found} datasets were not repaired; of the last one", failed.len() + 1)))
        }
    }
}

/// Calls `act` with this directory, if it is a dataset, or with those below it, or why they cannot be taken.
fn each(directory: &Directory, depth: usize, act: &mut dyn FnMut(Result<&Directory>)) -> Result<()> {
    let entries = directory.entries()?;
    if entries.iter().any(|name| names::parse(name).is_some()) {
        act(Ok(directory));
    } else if let Some(depth) = depth.checked_sub(1) {
        for name in entries {
            match directory.below(&name) {
                Ok(Some(below)) => each(&below, depth, act)?,
                Ok(None) => {}
                Err(error) => act(Err(error)),
            }
        }
    }
    Ok(())
}

fn repair(dataset: &Directory, out: &mut dyn Write) -> Result<()> {
    let entries = dataset.entries()?;
    let open: Vec<_> = entries.iter().filter(|name| names::parse(name).is_some_and(|part| part.open)).collect();
    open.iter().try_for_each(|name| dataset.remove(name))?;
    let done = compact(dataset)?;
    let mut did = Vec::new();
    if !open.is_empty() {
        let parts = if open.len() == 1 { "part" } else { "parts" };
        did.push(format!("{} open {parts} removed, which nothing can read", open.len()));
    }
    let rows = |fewer: &Fewer| format!("{} of {} rows of {}", fewer.rows, fewer.before, fewer.table);
    if !done.tables.is_empty() {
        let rows: Vec<_> = done.tables.iter().map(rows).collect();
        did.push(format!("one row for each id left: {}", rows.join(", ")));
    }
    did.extend(done.kept.iter().map(|why| format!("left as it is: {why}")));
    let did = if did.is_empty() { "nothing to repair".to_owned() } else { did.join("; ") };
    let shown = dataset.path().display().to_string();
    writeln!(out, "{}: {}", escape(&shown), escape(&did)).context("cannot write what was done")
}
