//! The index as a file of Parquet, with a column for each of [`COLUMNS`].

use std::fs::{File, Permissions};
use std::io;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, fchown};
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use arrow_array::builder::{ListBuilder, StringBuilder};
use arrow_array::cast::AsArray as _;
use arrow_array::types::{Float64Type, Int64Type, TimestampNanosecondType};
use arrow_array::{
    Array, ArrayRef, BooleanArray, Float64Array, Int64Array, ListArray, RecordBatch, StringArray,
    TimestampNanosecondArray,
};
use nix::unistd::geteuid;
use parquet::arrow::ArrowWriter;
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;

use crate::base::sudo;
use crate::export::Directory;
use crate::export::reading::guarded::guarded;
use crate::runs::row::{COLUMNS, COMPUTED, Of, Run};

/// Its name in the directory.
pub const INDEX: &str = "runs.parquet";
/// No index of so many runs is larger.
const MOST_BYTES: u64 = 256 << 20;
/// How long another program may hold it, and how often that is looked at.
const PATIENCE: Duration = Duration::from_secs(5);
const LOOK: Duration = Duration::from_millis(20);

/// The index in a directory. While it is held, programs that hold it as well wait.
pub struct Index {
    directory: Directory,
    /// The file that was there, locked.
    file: Option<File>,
}

impl Index {
    /// Locks the index of a directory, which may have none.
    ///
    /// # Errors
    /// When the directory or the index cannot be opened, another program holds it for too long, or a privileged program would
    /// read what another user has written.
    pub fn hold(dir: &Path) -> Result<Self> {
        let directory = Directory::unlocked(dir, sudo::invoking_user(), geteuid().is_root())?;
        let until = Instant::now() + PATIENCE;
        loop {
            let Some(file) = there(dir, &directory)? else { return Ok(Self { directory, file: None }) };
            match file.try_lock() {
                Err(std::fs::TryLockError::WouldBlock) => {
                    ensure!(Instant::now() < until, "another program holds {}", dir.join(INDEX).display());
                    std::thread::sleep(LOOK);
                }
                // Some network file systems have no locks. It is replaced as a whole all the same.
                Ok(()) | Err(std::fs::TryLockError::Error(_)) => {
                    let (own, now) = (file.metadata()?, there(dir, &directory)?);
                    let now = now.map(|now| now.metadata()).transpose()?;
                    let trusted = sudo::invoking_user().map(|(uid, _)| uid).into_iter().chain([0]);
                    ensure!(
                        !geteuid().is_root() || trusted.into_iter().any(|uid| uid == own.uid()),
                        "it belongs to user {}, and a privileged program does not read it",
                        own.uid()
                    );
                    // Who held it before may have replaced it.
                    if now.is_some_and(|now| (now.dev(), now.ino()) == (own.dev(), own.ino())) {
                        return Ok(Self { directory, file: Some(file) });
                    }
                    ensure!(Instant::now() < until, "{} is replaced again and again", dir.join(INDEX).display());
                }
            }
        }
    }

    /// The runs in it; none where there is no index.
    ///
    /// # Errors
    /// When it is no index.
    pub fn read(&self) -> Result<Vec<Run>> {
        self.file.as_ref().map_or_else(|| Ok(Vec::new()), |file| read(file.try_clone()?))
    }

    /// Makes it anew, whole or not at all. It keeps its owner and mode.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn replace(&self, runs: &[Run]) -> Result<()> {
        let new = format!("{INDEX}.{}.new", std::process::id());
        let written = self.directory.create_file(&new).and_then(|file| {
            let old = self.file.as_ref().map(File::metadata).transpose()?;
            if let Some(old) = &old {
                file.set_permissions(Permissions::from_mode(old.mode() & 0o666))?;
                if geteuid().is_root() {
                    fchown(&file, Some(old.uid()), Some(old.gid()))?;
                }
            }
            write(file, runs)?;
            self.directory.rename(&new, INDEX)
        });
        if written.is_err() {
            // A part of it may be there.
            let _ = self.directory.remove(&new);
        }
        written
    }
}

/// The index that has the name now, if one has.
fn there(dir: &Path, directory: &Directory) -> Result<Option<File>> {
    match dir.join(INDEX).symlink_metadata() {
        Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(None),
        _ => directory.open_file(INDEX).map(Some),
    }
}

fn write(file: File, runs: &[Run]) -> Result<()> {
    let batch = batch(runs)?;
    let mut writer = ArrowWriter::try_new(file, batch.schema(), None)?;
    writer.write(&batch)?;
    writer.close()?;
    Ok(())
}

fn batch(runs: &[Run]) -> Result<RecordBatch> {
    let column = |of: &Of| -> ArrayRef {
        let all = runs.iter();
        match of {
            Of::Text(at) => Arc::new(all.map(|run| Some((at.of)(run))).collect::<StringArray>()),
            Of::TextIfAny(at) => Arc::new(all.map(|run| (at.of)(run).as_deref()).collect::<StringArray>()),
            Of::Texts(at) => Arc::new(lists(all.map(|run| (at.of)(run).as_slice()))),
            Of::Count(at) | Of::Bytes(at) => Arc::new(all.map(|run| Some(*(at.of)(run))).collect::<Int64Array>()),
            Of::Seconds(at) => Arc::new(all.map(|run| Some(*(at.of)(run))).collect::<Float64Array>()),
            Of::SecondsIfAny(at) | Of::FactorIfAny(at) => {
                Arc::new(all.map(|run| *(at.of)(run)).collect::<Float64Array>())
            }
            Of::Time(at) => {
                let times = TimestampNanosecondArray::from_iter_values(all.map(|run| *(at.of)(run)));
                Arc::new(times.with_timezone("UTC"))
            }
            Of::Truth(at) => Arc::new(all.map(|run| Some(*(at.of)(run))).collect::<BooleanArray>()),
        }
    };
    Ok(RecordBatch::try_from_iter_with_nullable(COLUMNS.iter().map(|of| (of.name, column(&of.of), true)))?)
}

fn lists<'a>(all: impl Iterator<Item = &'a [String]>) -> ListArray {
    let mut lists = ListBuilder::new(StringBuilder::new());
    for texts in all {
        for text in texts {
            lists.values().append_value(text);
        }
        lists.append(true);
    }
    lists.finish()
}

fn read(file: File) -> Result<Vec<Run>> {
    ensure!(file.metadata()?.len() <= MOST_BYTES, "that is no index");
    guarded(|| {
        let mut runs = Vec::new();
        for batch in ParquetRecordBatchReaderBuilder::try_new(file)?.build()? {
            let batch = batch?;
            let mut rows = vec![Run::default(); batch.num_rows()];
            for column in COLUMNS {
                let values = match batch.column_by_name(column.name) {
                    None if COMPUTED.contains(&column.name) => continue,
                    values => values.with_context(|| format!("no column {}", column.name))?,
                };
                fill(&column.of, values, &mut rows).with_context(|| column.name)?;
            }
            runs.extend(rows);
        }
        Ok(runs)
    })
}

/// Puts the values of a column into rows. One without a value keeps what it has.
fn fill(of: &Of, values: &ArrayRef, rows: &mut [Run]) -> Result<()> {
    let valid = rows.iter_mut().enumerate().filter(|(row, _)| values.is_valid(*row));
    match of {
        Of::Text(at) => {
            let texts = values.as_string_opt::<i32>().context("no text")?;
            valid.for_each(|(row, run)| texts.value(row).clone_into((at.to)(run)));
        }
        Of::TextIfAny(at) => {
            let texts = values.as_string_opt::<i32>().context("no text")?;
            valid.for_each(|(row, run)| *(at.to)(run) = Some(texts.value(row).to_owned()));
        }
        Of::Texts(at) => {
            let lists = values.as_list_opt::<i32>().context("no list")?;
            for (row, run) in valid {
                let texts = lists.value(row);
                let texts = texts.as_string_opt::<i32>().context("no list of texts")?;
                *(at.to)(run) = texts.iter().flatten().map(str::to_owned).collect();
            }
        }
        Of::Count(at) | Of::Bytes(at) => {
            let counts = values.as_primitive_opt::<Int64Type>().context("no number")?;
            valid.for_each(|(row, run)| *(at.to)(run) = counts.value(row));
        }
        Of::Seconds(at) => {
            let seconds = values.as_primitive_opt::<Float64Type>().context("no number")?;
            valid.for_each(|(row, run)| *(at.to)(run) = seconds.value(row));
        }
        Of::SecondsIfAny(at) | Of::FactorIfAny(at) => {
            let seconds = values.as_primitive_opt::<Float64Type>().context("no number")?;
            valid.for_each(|(row, run)| *(at.to)(run) = Some(seconds.value(row)));
        }
        Of::Time(at) => {
            let times = values.as_primitive_opt::<TimestampNanosecondType>().context("no time")?;
            valid.for_each(|(row, run)| *(at.to)(run) = times.value(row));
        }
        Of::Truth(at) => {
            let truths = values.as_boolean_opt().context("neither yes nor no")?;
            valid.for_each(|(row, run)| *(at.to)(run) = truths.value(row));
        }
    }
    Ok(())
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use std::fs;

    fn full() -> Run {
        Run {
            path: "a/b".into(),
            dataset_bytes: 7,
            start_ns: 1_795_000_000_000_000_001,
            duration_s: 1.5,
            nodes: vec!["n1".into(), "n2".into()],
            user: Some("anna".into()),
            job: Some("4711".into()),
            command: "dd".into(),
            processes: 3,
            ranks: 2,
            calls: 9,
            read_bytes: 10,
            written_bytes: 11,
            calls_s: 0.5,
            finding: Some("reread".into()),
            finding_s: Some(0.25),
            findings: vec!["reread".into()],
            complete: true,
            earlier_runs: 4,
            usual_s: Some(1.25),
            usual_calls_s: Some(0.5),
            slowdown: Some(1.2),
        }
    }

    fn in_it(dir: &Path) -> Vec<Run> {
        Index::hold(dir).unwrap().read().unwrap()
    }

    #[test]
    fn an_index_has_what_was_written() {
        let dir = tempfile::tempdir().unwrap();
        assert_eq!(in_it(dir.path()), []);
        let runs = [full(), Run { path: ".".into(), ..Run::default() }];
        Index::hold(dir.path()).unwrap().replace(&runs).unwrap();
        assert_eq!(in_it(dir.path()), runs);
        // Commands are in it: it is the user's own, until the user gives it to others.
        let mode = |dir: &Path| dir.join(INDEX).metadata().unwrap().mode() & 0o777;
        assert_eq!(mode(dir.path()), 0o600);
        fs::set_permissions(dir.path().join(INDEX), Permissions::from_mode(0o644)).unwrap();
        Index::hold(dir.path()).unwrap().replace(&runs[1..]).unwrap();
        assert_eq!(in_it(dir.path()), runs[1..]);
        assert_eq!(mode(dir.path()), 0o644);
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 1);
    }

    #[test]
    fn an_index_of_an_earlier_version_lacks_what_is_computed() {
        let dir = tempfile::tempdir().unwrap();
        let all = batch(&[full()]).unwrap();
        let kept: Vec<usize> = (0..COLUMNS.len()).filter(|at| !COMPUTED.contains(&COLUMNS[*at].name)).collect();
        let old = all.project(&kept).unwrap();
        let mut writer =
            ArrowWriter::try_new(File::create(dir.path().join(INDEX)).unwrap(), old.schema(), None).unwrap();
        writer.write(&old).unwrap();
        writer.close().unwrap();
        let none = Run { earlier_runs: 0, usual_s: None, usual_calls_s: None, slowdown: None, ..full() };
        assert_eq!(in_it(dir.path()), [none]);
    }

    #[test]
    fn holders_wait_for_each_other() {
        let dir = tempfile::tempdir().unwrap();
        Index::hold(dir.path()).unwrap().replace(&[]).unwrap();
        let add = |n: i64| {
            let index = Index::hold(dir.path()).unwrap();
            let mut runs = index.read().unwrap();
            runs.push(Run { start_ns: n, ..full() });
            index.replace(&runs).unwrap();
        };
        std::thread::scope(|threads| {
            for n in 0..8 {
                threads.spawn(move || add(n));
            }
        });
        let mut starts: Vec<i64> = in_it(dir.path()).iter().map(|run| run.start_ns).collect();
        starts.sort_unstable();
        assert_eq!(starts, [0, 1, 2, 3, 4, 5, 6, 7]);
    }

    #[test]
    fn what_is_no_index_is_an_error() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join(INDEX);
        fs::write(&path, "PAR1 and no more").unwrap();
        assert!(Index::hold(dir.path()).unwrap().read().is_err());
        // Another program's table.
        let batch = RecordBatch::try_from_iter([("path", Arc::new(Int64Array::from(vec![1])) as ArrayRef)]).unwrap();
        let mut writer = ArrowWriter::try_new(File::create(&path).unwrap(), batch.schema(), None).unwrap();
        writer.write(&batch).unwrap();
        writer.close().unwrap();
        let error = Index::hold(dir.path()).unwrap().read().unwrap_err();
        assert_eq!(format!("{error:#}"), "path: no text");
        // Nothing is written through a link.
        fs::rename(&path, dir.path().join("other")).unwrap();
        std::os::unix::fs::symlink("other", &path).unwrap();
        assert!(Index::hold(dir.path()).is_err());
    }
}
