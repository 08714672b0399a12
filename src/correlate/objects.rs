//! Datasets, variables, attributes and groups inside files, by name.

use std::collections::{BTreeSet, HashMap};

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
    all: Vec<Object>,
    changed: BTreeSet<i32>,
}

impl Objects {
    /// The object called `name` as seen from the object `location` (none: the file itself).
    pub fn open(&mut self, scope: Scope, location: Option<i32>, name: &[u8], class: &'static str, handle: i32) -> i32 {
        let base = location.and_then(|id| self.names.get(id as usize - 1)).map_or(&b""[..], Vec::as_slice);
        let name = absolute(base, name);
        let next = self.names.len() as i32 + 1;
        let id = *self.ids.entry((scope, class, name.clone())).or_insert(next);
        if id == next {
            self.all.push(Object {
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
            self.changed.insert(id);
        }
        id
    }

    /// An object has another name from now on, seen from the same place.
    pub fn rename(&mut self, id: i32, scope: Scope, location: Option<i32>, name: &[u8]) {
        let base = location.and_then(|id| self.names.get(id as usize - 1)).map_or(&b""[..], Vec::as_slice);
        let name = absolute(base, name);
        let Some((known, object)) = self.names.get_mut(id as usize - 1).zip(self.all.get_mut(id as usize - 1)) else {
            return;
        };
        if *known != name {
            let old = std::mem::replace(known, name.clone());
            self.ids.remove(&(scope, object.class, old));
            object.name = lossy_path(&name);
            self.ids.insert((scope, object.class, name), id);
            self.changed.insert(id);
        }
    }

    /// More became known of an object.
    pub fn describe(&mut self, id: i32, what: impl FnOnce(&mut Object)) {
        let Some(object) = self.all.get_mut(id as usize - 1) else { return };
        let before = object.clone();
        what(object);
        if *object != before {
            self.changed.insert(id);
        }
    }

    pub fn write(&mut self, out: &mut Vec<Row>) {
        while let Some(id) = self.changed.pop_first() {
            out.extend(self.all.get(id as usize - 1).cloned().map(Row::Object));
        }
    }
}
