//! Recordings that several tests look at. `cargo nextest` starts a process for each test: the first one that needs a
//! recording makes it, and the others of this run take it.

use crate::common::live::{Traced, scratch};
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::time::Duration;
use tempfile::TempDir;

/// Recordings of other runs are removed when they are older: those may still go on.
const OLD: Duration = Duration::from_hours(6);
/// In a recording's directory once it is complete: how the trace ended.
const TRACED: &str = "traced.json";

/// A trace and the directory that it and its program wrote to, which a recording of one test removes when it is dropped.
pub struct Recording {
    work: PathBuf,
    traced: Traced,
    _own: Option<TempDir>,
}

impl Recording {
    /// Of one test.
    pub fn own(record: impl FnOnce(&Path) -> Traced) -> Self {
        let own = scratch();
        Self { work: own.path().to_owned(), traced: record(own.path()), _own: Some(own) }
    }

    pub fn work(&self) -> &Path {
        &self.work
    }

    pub fn traced(&self) -> &Traced {
        &self.traced
    }

    /// The recording of that name of this run of tests. A second try records anew, as what was recorded may be what failed.
    pub fn shared(name: &str, record: impl FnOnce(&Path) -> Traced) -> Self {
        let of_run = |run| Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("recordings-{run}"));
        let first = std::env::var("NEXTEST_ATTEMPT").is_ok_and(|attempt| attempt == "1");
        let Some(all) = std::env::var("NEXTEST_RUN_ID").ok().filter(|_| first).map(of_run) else {
            return Self::own(record);
        };
        fs::create_dir_all(&all).unwrap();
        let lock = File::create(all.join(format!("{name}.lock"))).unwrap();
        lock.lock().unwrap();
        let work = all.join(name);
        if let Ok(json) = fs::read(work.join(TRACED)) {
            return Self { work, traced: serde_json::from_slice(&json).unwrap(), _own: None };
        }
        remove_old(all.parent().unwrap());
        // Of a test that failed while it recorded.
        let _ = fs::remove_dir_all(&work);
        fs::create_dir(&work).unwrap();
        let traced = record(&work);
        fs::write(work.join(TRACED), serde_json::to_vec(&traced).unwrap()).unwrap();
        Self { work, traced, _own: None }
    }
}

fn remove_old(dir: &Path) {
    let is_old = |path: &Path| {
        let age = path.metadata().and_then(|m| m.modified()).ok().and_then(|at| at.elapsed().ok());
        age.is_some_and(|age| age > OLD)
    };
    let all = fs::read_dir(dir).unwrap().filter_map(Result::ok);
    for entry in all.filter(|e| e.file_name().to_string_lossy().starts_with("recordings-") && is_old(&e.path())) {
        let _ = fs::remove_dir_all(entry.path());
    }
}
