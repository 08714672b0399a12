//! Which calls a report is about, where it is not about all of them.

use anyhow::{Result, ensure};

use crate::HashMap;
use crate::analysis::trace::source::Source;
use crate::rows::{FileRollup, Span};

/// A condition on calls.
pub trait Condition {
    /// As the user wrote it.
    fn text(&self) -> &str;
    fn holds(&self, span: &Span, path: Option<&str>) -> bool;
    /// The same of calls that were summed up.
    fn holds_of_sums(&self, row: &FileRollup, path: Option<&str>) -> bool;
    /// Can it be decided by sums?
    fn is_of_sums(&self) -> bool;
    /// Does it look at paths?
    fn is_of_paths(&self) -> bool;
}

/// The calls that a condition holds for; all without one.
#[derive(Default)]
pub struct Only<'a> {
    condition: Option<&'a dyn Condition>,
    /// Of all files, where the condition is on paths: memory grows with their number.
    paths: HashMap<i32, String>,
}

impl<'a> Only<'a> {
    /// # Errors
    /// When the source cannot be read, or has only sums, and the condition is on what they do not have.
    pub fn read(source: &mut dyn Source, condition: Option<&'a dyn Condition>, aggregate: bool) -> Result<Self> {
        let mut only = Self { condition, paths: HashMap::default() };
        let Some(condition) = condition else { return Ok(only) };
        ensure!(
            !aggregate || condition.is_of_sums(),
            "--where {:?}: the dataset has sums of calls (--aggregate), by layer, op, kind, file, pid and rank only",
            condition.text()
        );
        if condition.is_of_paths() {
            source.files(&mut |file| {
                if let Some(path) = &file.path {
                    only.paths.insert(file.file_id, path.clone());
                }
                Ok(())
            })?;
        }
        Ok(only)
    }

    /// Is anything left out?
    pub const fn is_restricted(&self) -> bool {
        self.condition.is_some()
    }

    pub fn span(&self, span: &Span) -> bool {
        self.condition.is_none_or(|condition| condition.holds(span, self.path(span.file_id)))
    }

    pub fn sums(&self, row: &FileRollup) -> bool {
        self.condition.is_none_or(|condition| condition.holds_of_sums(row, self.path(row.file_id)))
    }

    fn path(&self, file: Option<i32>) -> Option<&str> {
        self.paths.get(&file?).map(String::as_str)
    }
}
