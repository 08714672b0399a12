//! Datasets, attributes and groups inside files, by name.

use std::collections::HashMap;

use super::paths::{absolute, lossy_path};
use super::rows::{Object, Row};

/// Where a name counts: one file, or one handle whose file is not known.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Scope {
    File(i32),
    Handle(i32),
}

/// Every object opened; ids count from 1.
#[derive(Default)]
pub struct Objects {
    ids: HashMap<(Scope, &'static str, Vec<u8>), i32>,
    names: Vec<Vec<u8>>,
    fresh: Vec<Object>,
}

impl Objects {
    /// The object called `name` as seen from the object `location` (none: the file itself).
    pub fn open(&mut self, scope: Scope, location: Option<i32>, name: &[u8], class: &'static str, handle: i32) -> i32 {
        let base = location.and_then(|id| self.names.get(id as usize - 1)).map_or(&b""[..], Vec::as_slice);
        let name = absolute(base, name);
        let next = self.names.len() as i32 + 1;
        let id = *self.ids.entry((scope, class, name.clone())).or_insert(next);
        if id == next {
            self.fresh.push(Object {
                object_id: id,
                handle_id: Some(handle),
                file_id: if let Scope::File(file) = scope { Some(file) } else { None },
                name: lossy_path(&name),
                class,
                dims: None,
                chunk: None,
                elem_size: None,
                filters: None,
            });
            self.names.push(name);
        }
        id
    }

    pub fn write(&mut self, out: &mut Vec<Row>) {
        out.extend(self.fresh.drain(..).map(Row::Object));
    }
}
