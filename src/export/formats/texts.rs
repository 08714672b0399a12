//! Names of files, paths and objects, by their ids.

use anyhow::Result;

use crate::HashMap;
use crate::export::report::Union;
use crate::rows::{CallPath, File, Object, Span};

/// Bytes of names that are kept; a call of a file without a name has none.
const BYTES_MAX: usize = 128 << 20;

/// Memory that a name takes beside its bytes.
const ENTRY: usize = 48;

#[derive(Debug, Default)]
pub struct Texts {
    files: HashMap<i32, Box<str>>,
    paths: HashMap<i32, Box<str>>,
    objects: HashMap<i32, Box<str>>,
    bytes: usize,
    /// There are more than there is room for.
    pub overflow: bool,
}

impl Texts {
    pub fn read(union: &Union) -> Result<Self> {
        let mut texts = Self::default();
        union.rows(|row: File| {
            if let Some(path) = row.path.filter(|_| texts.has_room()) {
                texts.bytes += path.len() + ENTRY;
                texts.files.insert(row.file_id, path.into());
            }
            Ok(())
        })?;
        union.rows(|row: CallPath| {
            if texts.has_room() {
                texts.bytes += row.path.len() + ENTRY;
                texts.paths.insert(row.path_id, row.path.into());
            }
            Ok(())
        })?;
        union.rows(|row: Object| {
            if texts.has_room() {
                texts.bytes += row.name.len() + ENTRY;
                texts.objects.insert(row.object_id, row.name.into());
            }
            Ok(())
        })?;
        Ok(texts)
    }

    fn has_room(&mut self) -> bool {
        self.overflow |= self.bytes >= BYTES_MAX;
        self.bytes < BYTES_MAX
    }

    /// The file that a call is about, or else the path that it names.
    pub fn path(&self, span: &Span) -> Option<&str> {
        let file = span.file_id.and_then(|id| self.files.get(&id));
        file.or_else(|| self.paths.get(&span.path_id?)).map(AsRef::as_ref)
    }

    /// The second path that it names: the new name of a rename.
    pub fn path2(&self, span: &Span) -> Option<&str> {
        self.paths.get(&span.path2_id?).map(AsRef::as_ref)
    }

    pub fn object(&self, span: &Span) -> Option<&str> {
        self.objects.get(&span.object_id?).map(AsRef::as_ref)
    }
}
