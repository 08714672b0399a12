//! Brings the index up to date: for a list of all runs, or for one that has ended.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

use crate::export::holds_datasets;
use crate::export::report::{Union, build};
use crate::runs::earlier;
use crate::runs::index::{INDEX, Index};
use crate::runs::row::{Identity, Run};

/// The runs below a directory, the newest first, and what went wrong with the index or with datasets. A run that the index
/// has as it is now is not read again.
///
/// # Errors
/// When there is no dataset.
pub fn all(dir: &Path) -> Result<(Vec<Run>, Vec<String>)> {
    // The index is not held while datasets are read: traces that end meanwhile enter their runs.
    let (known, mut notes) = match Index::hold(dir).and_then(|index| index.read()) {
        Ok(known) => (known, Vec::new()),
        Err(why) => (Vec::new(), vec![format!("{}: {why:#}; it is made again", dir.join(INDEX).display())]),
    };
    let unreadable = !notes.is_empty();
    let runs = sorted(found(dir, dir, &known, &mut notes)?);
    if runs != known || unreadable {
        let kept = Index::hold(dir).and_then(|index| {
            let now = if unreadable { Vec::new() } else { index.read()? };
            index.replace(&merged(runs.clone(), &known, now))
        });
        notes.extend(kept.err().map(|why| format!("no index is kept: {why:#}")));
    }
    Ok((runs, notes))
}

/// What came of entering runs into an index.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Entered {
    /// What went wrong with datasets.
    pub notes: Vec<String>,
    /// The run differs from all earlier ones, and how to see in what.
    pub differs: Option<String>,
}

/// Enters the runs whose datasets are in a directory, or below it, into the index of the nearest directory above that has one.
/// Without an index nothing is done.
///
/// # Errors
/// When the index cannot be read or written.
pub fn enter(ended: &Path) -> Result<Entered> {
    // One that is gone has no runs.
    let Ok(ended) = ended.canonicalize() else { return Ok(Entered::default()) };
    let has_index = |dir: &&Path| dir.join(INDEX).symlink_metadata().is_ok();
    let Some(dir) = ended.ancestors().find(has_index).filter(|_| holds_datasets(&ended)) else {
        return Ok(Entered::default());
    };
    let below = ended.strip_prefix(dir).unwrap_or(&ended);
    let is_below = |run: &Run| Path::new(&run.path).starts_with(below);
    let mut notes = Vec::new();
    let known = Index::hold(dir)?.read().with_context(|| dir.join(INDEX).display().to_string())?;
    let mut runs = found(dir, &ended, &known, &mut notes)?;
    let entered: Vec<String> = runs.iter().map(|run| run.path.clone()).collect();
    runs.extend(known.iter().filter(|run| !is_below(run)).cloned());
    let index = Index::hold(dir)?;
    let now = index.read()?;
    let runs = merged(runs, &known, now);
    index.replace(&runs)?;
    let differs = entered.iter().find_map(|path| earlier::message(dir, &runs, path));
    Ok(Entered { notes, differs })
}

/// The runs whose datasets are in `below`, which is `dir` or in it.
fn found(dir: &Path, below: &Path, known: &[Run], notes: &mut Vec<String>) -> Result<Vec<Run>> {
    let mut runs = Vec::new();
    for mut union in Union::open_runs(below)? {
        let identity = Identity::of(dir, &union);
        if let Some(same) = known.iter().find(|run| run.identity() == identity) {
            runs.push(same.clone());
            continue;
        }
        let path: PathBuf = dir.join(&identity.path);
        match build(&mut union).and_then(|report| Run::of(identity, &mut union, &report)) {
            Ok(run) => runs.push(run),
            Err(why) => notes.push(format!("{}: {why:#}", path.display())),
        }
    }
    Ok(runs)
}

/// With the rows that others have entered since `known` was read, of which `now` is what has become.
fn merged(mut runs: Vec<Run>, known: &[Run], now: Vec<Run>) -> Vec<Run> {
    // What was read last is entered first when it took less time to read: a run that goes on has fewer bytes.
    let read = |run: &Run| (run.complete, run.dataset_bytes);
    for run in now.into_iter().filter(|run| known.iter().all(|known| known.identity() != run.identity())) {
        match runs.iter_mut().find(|own| own.path == run.path) {
            Some(own) if read(&run) > read(own) => *own = run,
            Some(_) => {}
            None => runs.push(run),
        }
    }
    sorted(runs)
}

/// In the order of the index, and with what each took against earlier ones.
fn sorted(mut runs: Vec<Run>) -> Vec<Run> {
    earlier::fill(&mut runs);
    runs.sort_by(|a, b| b.start_ns.cmp(&a.start_ns).then_with(|| a.path.cmp(&b.path)));
    runs
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use std::fs;

    fn copy(from: &Path, to: &Path) {
        fs::create_dir_all(to).unwrap();
        for entry in fs::read_dir(from).unwrap() {
            let entry = entry.unwrap();
            fs::copy(entry.path(), to.join(entry.file_name())).unwrap();
        }
    }

    fn recorded(name: &str, to: &Path) {
        copy(&Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/fixtures/report").join(name), to);
    }

    /// What a list of all runs gives that no index has.
    fn listed(dir: &Path) -> Vec<Run> {
        let mut notes = Vec::new();
        sorted(found(dir, dir, &[], &mut notes).unwrap())
    }

    fn in_index(dir: &Path) -> Vec<Run> {
        Index::hold(dir).unwrap().read().unwrap()
    }

    #[test]
    fn a_run_that_ends_is_entered_where_there_is_an_index() {
        let dir = tempfile::tempdir().unwrap();
        let (old, new) = (dir.path().join("old"), dir.path().join("2026/11/new"));
        recorded("sqlite", &old);
        assert_eq!(enter(&old).unwrap(), Entered::default());
        assert!(!dir.path().join(INDEX).exists(), "none is made");
        all(dir.path()).unwrap();
        recorded("tar", &new);
        assert_eq!(enter(&new).unwrap(), Entered::default());
        assert_eq!(in_index(dir.path()), listed(dir.path()));
        assert_eq!(in_index(dir.path()).len(), 2);
        // The same once more, another one in its place, and the command once more elsewhere.
        enter(&new).unwrap();
        assert_eq!(in_index(dir.path()).len(), 2);
        fs::remove_dir_all(&new).unwrap();
        recorded("fio", &new);
        enter(&new).unwrap();
        assert_eq!(in_index(dir.path()), listed(dir.path()));
        // What has no runs changes nothing, and the nearest index is the one.
        enter(&dir.path().join("gone")).unwrap();
        let near = dir.path().join("near/by");
        recorded("import", &near);
        all(near.parent().unwrap()).unwrap();
        let far = in_index(dir.path());
        enter(&near).unwrap();
        assert_eq!(in_index(dir.path()), far);
        assert_eq!(in_index(near.parent().unwrap()).len(), 1);
    }

    #[test]
    fn runs_that_end_together_are_all_entered() {
        let dir = tempfile::tempdir().unwrap();
        recorded("sqlite", &dir.path().join("first"));
        all(dir.path()).unwrap();
        let names = ["tar", "fio", "import", "hdf5"];
        std::thread::scope(|threads| {
            for name in names {
                let to = dir.path().join(name);
                threads.spawn(move || {
                    recorded(name, &to);
                    enter(&to).unwrap();
                });
            }
            // A list of all runs meanwhile forgets none.
            threads.spawn(|| all(dir.path()).unwrap());
        });
        let mut paths: Vec<String> = in_index(dir.path()).into_iter().map(|run| run.path).collect();
        paths.sort();
        assert_eq!(paths, ["fio", "first", "hdf5", "import", "tar"]);
    }

    #[test]
    fn of_two_rows_of_a_run_that_of_more_is_kept() {
        let dir = tempfile::tempdir().unwrap();
        recorded("sqlite", &dir.path().join("run"));
        let whole = listed(dir.path());
        let part = vec![Run { complete: false, dataset_bytes: 1, calls: 0, ..whole[0].clone() }];
        // Whoever read it last.
        assert_eq!(merged(part.clone(), &[], whole.clone()), whole);
        assert_eq!(merged(whole.clone(), &[], part), whole);
    }

    #[test]
    fn an_index_that_is_none_stays_and_is_named() {
        let dir = tempfile::tempdir().unwrap();
        recorded("sqlite", &dir.path().join("run"));
        fs::write(dir.path().join(INDEX), "a file of the user's").unwrap();
        let why = format!("{:#}", enter(&dir.path().join("run")).unwrap_err());
        assert!(why.contains(INDEX), "{why}");
        assert_eq!(fs::read_to_string(dir.path().join(INDEX)).unwrap(), "a file of the user's");
    }
}
