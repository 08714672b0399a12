//! Where the slow calls of one process of a dataset were made: the stacks of `--stacks`, read in another thread.

use crate::analysis::durations::slow_stacks;
use crate::analysis::trace::losses::Quality;
use crate::analysis::trace::source::Source as _;
use crate::export::report::Union;
use crate::summary::view::{Focus, Stacks};
use anyhow::{Result, bail};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

/// Those of the process that is looked at, and kept as long as it is.
#[derive(Default)]
pub struct Slow(Option<Reading>);

/// A reading that goes on, or is over. Dropping it ends it: a dataset may have more calls than can be read while someone waits.
struct Reading {
    process_ix: i32,
    /// `None`: not yet.
    found: Arc<Mutex<Option<Arc<Stacks>>>>,
    unwanted: Arc<AtomicBool>,
}

impl Drop for Reading {
    fn drop(&mut self) {
        self.unwanted.store(true, Ordering::Relaxed);
    }
}

impl Slow {
    /// What was found, if stacks are wanted.
    pub fn of(&mut self, path: &Path, focus: &Focus) -> Option<Arc<Stacks>> {
        let Some(wanted) = focus.stacks_of() else {
            self.0 = None;
            return None;
        };
        let reading = match self.0.take().filter(|reading| reading.process_ix == wanted.process_ix) {
            Some(begun) => self.0.insert(begun),
            None => self.0.insert(Reading::begin(path, wanted.process_ix)),
        };
        Some(reading.found().unwrap_or_else(|| none("the stacks are being read (Esc: stop)")))
    }
}

impl Reading {
    fn begin(path: &Path, process_ix: i32) -> Self {
        let (found, unwanted) = (Arc::new(Mutex::new(None)), Arc::new(AtomicBool::new(false)));
        let (path, into, stop) = (path.to_owned(), Arc::clone(&found), Arc::clone(&unwanted));
        let work = move || {
            let stacks = read(&path, process_ix, &stop).unwrap_or_else(|e| none(&format!("{e:#}")));
            put(&into, stacks);
        };
        if let Err(e) = std::thread::Builder::new().name("stacks".into()).spawn(work) {
            put(&found, none(&format!("thread to read stacks: {e}")));
        }
        Self { process_ix, found, unwanted }
    }

    fn found(&self) -> Option<Arc<Stacks>> {
        self.found.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

fn put(into: &Mutex<Option<Arc<Stacks>>>, stacks: Arc<Stacks>) {
    *into.lock().unwrap_or_else(PoisonError::into_inner) = Some(stacks);
}

fn none(why: &str) -> Arc<Stacks> {
    Arc::new(Stacks { why_not: Some(why.to_owned()), ..Stacks::default() })
}

fn read(path: &Path, process_ix: i32, unwanted: &AtomicBool) -> Result<Arc<Stacks>> {
    let mut dataset = Union::open(path)?;
    let mut stacks = slow_stacks::Stacks::default();
    dataset.spans(&mut |span| {
        if unwanted.load(Ordering::Relaxed) {
            bail!("reading was ended");
        }
        if span.process_ix == process_ix {
            stacks.span(span);
        }
        Ok(())
    })?;
    // The dashboard shows on every screen what was lost.
    let slow = stacks.finish(&mut dataset, &Quality::default())?;
    Ok(if slow.is_empty() {
        none("none was taken of its calls: record slow calls with --stacks slow")
    } else {
        Arc::new(Stacks { slow, ..Stacks::default() })
    })
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::export::{DatasetWriter, Options, VIEWS};
    use crate::rows::{Row, Span, Stack, span_id};
    use crate::summary::view::{ProcessFocus, ProcessPart, Screen};
    use crate::vocabulary::{Kind, Layer};
    use std::time::Duration;

    fn focus(screen: Screen, process_ix: i32) -> Focus {
        let process = Some(ProcessFocus { process_ix, pid: 7, part: ProcessPart::Stacks });
        Focus { screen, process, ..Focus::default() }
    }

    /// What there is in the end of one process.
    fn found(path: &Path, process_ix: i32) -> Arc<Stacks> {
        let mut slow = Slow::default();
        assert_eq!(slow.of(path, &Focus::default()), None, "stacks are not wanted");
        loop {
            slow.of(path, &focus(Screen::Processes, process_ix)).unwrap();
            match slow.0.as_ref().unwrap().found() {
                Some(stacks) => return stacks,
                None => std::thread::sleep(Duration::from_millis(5)),
            }
        }
    }

    /// With a slow call of each of these processes.
    fn dataset(path: &Path, processes: &[i32]) {
        let options = Options { path, host: "vm", force: false, owner: None, views: VIEWS };
        let mut writer = DatasetWriter::create(options).unwrap();
        for (number, process_ix) in (1..).zip(processes) {
            let call = (Layer::Syscall, "fsync", Kind::Sync);
            let mut span = Span::new(span_id(1, number), call, *process_ix, (i64::from(number) * 1000, 500));
            span.stack_id = Some(number as i32);
            writer.push(Row::Span(Box::new(span))).unwrap();
        }
        for (stack_id, frame) in [(1, "write_log"), (2, "write_log"), (3, "other")] {
            writer.push(Row::Stack(Stack { stack_id, frames: vec![frame.to_owned()] })).unwrap();
        }
        writer.finish().unwrap();
    }

    #[test]
    fn slow_calls_are_those_of_the_process() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("run");
        dataset(&path, &[1, 1, 2]);
        let stacks = found(&path, 1);
        let rows: Vec<_> =
            stacks.slow.iter().map(|row| (row.op, row.calls, row.time_ns, row.frames.as_slice())).collect();
        assert_eq!(rows, [("fsync", 2, 1000, &["write_log".to_owned()][..])]);
        assert!(found(&path, 9).why_not.as_ref().unwrap().contains("--stacks slow"));
        assert!(found(&dir.path().join("none"), 1).why_not.is_some());
    }

    #[test]
    fn stacks_that_nobody_looks_at_any_more_are_not_read() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("run");
        dataset(&path, &[1]);
        let mut slow = Slow::default();
        assert_eq!(slow.of(&path, &focus(Screen::Files, 1)), None, "another screen does not show them");
        assert!(slow.0.is_none());
        for next in [focus(Screen::Processes, 2), focus(Screen::Files, 1), Focus::default()] {
            slow.of(&path, &focus(Screen::Processes, 1)).unwrap();
            let unwanted = Arc::clone(&slow.0.as_ref().unwrap().unwanted);
            assert!(!unwanted.load(Ordering::Relaxed));
            slow.of(&path, &next);
            assert!(unwanted.load(Ordering::Relaxed), "{next:?}");
            assert_eq!(read(&path, 1, &unwanted).unwrap_err().to_string(), "reading was ended");
        }
    }
}
