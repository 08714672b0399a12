//! Where the slow calls of one process of a dataset were made: the stacks of `--stacks`, read in another thread.

use crate::analysis::durations::slow_stacks;
use crate::analysis::trace::losses::Quality;
use crate::analysis::trace::source::Source as _;
use crate::export::report::Union;
use crate::summary::view::{Focus, ProcessPart, Stacks};
use anyhow::Result;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

/// Those of the process that is looked at, and kept as long as it is.
#[derive(Default)]
pub struct Slow(Option<(i32, Arc<Mutex<Arc<Stacks>>>)>);

impl Slow {
    /// What was found up to now, if stacks are wanted.
    pub fn of(&mut self, path: &Path, focus: &Focus) -> Option<Arc<Stacks>> {
        let Some(wanted) = focus.process.as_ref().filter(|of| of.part == ProcessPart::Stacks) else {
            self.0 = None;
            return None;
        };
        let (_, found) = match self.0.take().filter(|(of, _)| *of == wanted.process_ix) {
            Some(begun) => self.0.insert(begun),
            None => self.0.insert((wanted.process_ix, begin(path, wanted.process_ix))),
        };
        Some(Arc::clone(&found.lock().unwrap_or_else(PoisonError::into_inner)))
    }
}

fn begin(path: &Path, process_ix: i32) -> Arc<Mutex<Arc<Stacks>>> {
    let found = Arc::new(Mutex::new(none("the stacks are being read")));
    let (path, into) = (path.to_owned(), Arc::clone(&found));
    let read = move || {
        let stacks = read(&path, process_ix).unwrap_or_else(|e| none(&format!("{e:#}")));
        *into.lock().unwrap_or_else(PoisonError::into_inner) = stacks;
    };
    match std::thread::Builder::new().name("stacks".into()).spawn(read) {
        Ok(_) => found,
        Err(e) => Arc::new(Mutex::new(none(&format!("thread to read stacks: {e}")))),
    }
}

fn none(why: &str) -> Arc<Stacks> {
    Arc::new(Stacks { why_not: Some(why.to_owned()), ..Stacks::default() })
}

fn read(path: &Path, process_ix: i32) -> Result<Arc<Stacks>> {
    let mut dataset = Union::open(path)?;
    let mut stacks = slow_stacks::Stacks::default();
    dataset.spans(&mut |span| {
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
    use crate::summary::view::ProcessFocus;
    use crate::vocabulary::{Kind, Layer};
    use std::time::Duration;

    /// What there is in the end of one process.
    fn found(path: &Path, process_ix: i32) -> Arc<Stacks> {
        let process = Some(ProcessFocus { process_ix, pid: 7, part: ProcessPart::Stacks });
        let focus = Focus { process, ..Focus::default() };
        let mut slow = Slow::default();
        assert_eq!(slow.of(path, &Focus::default()), None, "stacks are not wanted");
        loop {
            let stacks = slow.of(path, &focus).unwrap();
            if stacks.why_not.as_deref() != Some("the stacks are being read") {
                return stacks;
            }
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    #[test]
    fn slow_calls_are_those_of_the_process() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("run");
        let options = Options { path: &path, host: "vm", force: false, owner: None, views: VIEWS };
        let mut writer = DatasetWriter::create(options).unwrap();
        for (number, process_ix) in [(1, 1), (2, 1), (3, 2)] {
            let call = (Layer::Syscall, "fsync", Kind::Sync);
            let mut span = Span::new(span_id(1, number), call, process_ix, (i64::from(number) * 1000, 500));
            span.stack_id = Some(number as i32);
            writer.push(Row::Span(Box::new(span))).unwrap();
        }
        for (stack_id, frame) in [(1, "write_log"), (2, "write_log"), (3, "other")] {
            writer.push(Row::Stack(Stack { stack_id, frames: vec![frame.to_owned()] })).unwrap();
        }
        writer.finish().unwrap();
        let stacks = found(&path, 1);
        let rows: Vec<_> =
            stacks.slow.iter().map(|row| (row.op, row.calls, row.time_ns, row.frames.as_slice())).collect();
        assert_eq!(rows, [("fsync", 2, 1000, &["write_log".to_owned()][..])]);
        assert!(found(&path, 9).why_not.as_ref().unwrap().contains("--stacks slow"));
        assert!(found(&dir.path().join("none"), 1).why_not.is_some());
    }
}
