//! Datasets, variables, attributes, groups and types inside files: by name, with their shapes.

use std::collections::HashMap;

use crate::base::paths::{absolute, lossy_path};
use crate::correlate::resources::processes::Owner;
use crate::rows::{Object, Row};

/// Where a name counts: one file, or one handle whose file is not known.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Scope {
    File(i32),
    Handle(i32),
}

/// A name, as seen from an object (none: the file itself).
pub struct ObjectPath<'a> {
    pub scope: Scope,
    pub location: Option<i32>,
    pub name: &'a [u8],
    pub class: &'static str,
}

/// What is known of an object's shape.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Shape {
    pub dims: Option<Vec<i64>>,
    /// Empty: not chunked.
    pub chunk: Option<Vec<i64>>,
    /// Bytes of an element in the file.
    pub elem_size: Option<i32>,
    /// Empty: none.
    pub filters: Option<Vec<String>>,
}

struct State {
    handle: i32,
    scope: Scope,
    class: &'static str,
    name: Vec<u8>,
    shape: Shape,
    /// Processes that made or opened it.
    known_to: Vec<Owner>,
    queued: bool,
    /// Its row is not known any more where it was written.
    forgotten: bool,
}

/// Every object opened; ids count from 1.
#[derive(Default)]
pub struct Objects {
    ids: HashMap<(Scope, &'static str, Vec<u8>), i32>,
    all: Vec<State>,
    changed: Vec<i32>,
}

impl Objects {
    /// The object of that path; `made`: by this process and this call.
    ///
    /// Nothing can be made where something is. So what a process makes where it knew something is another object; what
    /// it makes where only others made something is the one that all of them make together.
    pub fn open(&mut self, path: &ObjectPath, handle: i32, by: Owner, made: bool) -> i32 {
        let base = path.location.and_then(|id| self.state(id)).map_or(&b""[..], |o| o.name.as_slice());
        let name = absolute(base, path.name);
        let key = (path.scope, path.class, name);
        let known = self.ids.get(&key).copied();
        let known = known.filter(|id| !(made && self.state(*id).is_some_and(|o| o.known_to.contains(&by))));
        let id = known.unwrap_or_else(|| {
            let id = self.add(path.scope, path.class, key.2.clone(), handle);
            self.ids.insert(key, id);
            id
        });
        if let Some(state) = self.state_mut(id).filter(|o| !o.known_to.contains(&by)) {
            state.known_to.push(by);
        }
        id
    }

    /// An object that is made without a name, and may get one later.
    pub fn anonymous(&mut self, scope: Scope, class: &'static str, handle: i32, by: Owner) -> i32 {
        let id = self.add(scope, class, Vec::new(), handle);
        if let Some(state) = self.state_mut(id) {
            state.known_to.push(by);
        }
        id
    }

    /// It gets one; the first one it had stays.
    pub fn name(&mut self, id: i32, location: Option<i32>, name: &[u8]) {
        let base = location.and_then(|id| self.state(id)).map_or(&b""[..], |o| o.name.as_slice());
        let name = absolute(base, name);
        let Some(state) = self.state_mut(id).filter(|o| o.name.is_empty()) else { return };
        state.name.clone_from(&name);
        let key = (state.scope, state.class, name);
        if !std::mem::replace(&mut state.queued, true) {
            self.changed.push(id);
        }
        self.ids.insert(key, id);
    }

    fn add(&mut self, scope: Scope, class: &'static str, name: Vec<u8>, handle: i32) -> i32 {
        let (shape, known_to) = (Shape::default(), Vec::new());
        self.all.push(State { handle, scope, class, name, shape, known_to, queued: true, forgotten: false });
        let id = self.all.len() as i32;
        self.changed.push(id);
        id
    }

    /// An object has another name from now on.
    pub fn rename(&mut self, id: i32, path: &ObjectPath) {
        let base = path.location.and_then(|id| self.state(id)).map_or(&b""[..], |o| o.name.as_slice());
        let name = absolute(base, path.name);
        let Some(state) = self.state_mut(id).filter(|o| o.name != name) else { return };
        let before = std::mem::replace(&mut state.name, name.clone());
        if !std::mem::replace(&mut state.queued, true) {
            self.changed.push(id);
        }
        self.ids.remove(&(path.scope, path.class, before));
        self.ids.insert((path.scope, path.class, name), id);
    }

    fn state(&self, id: i32) -> Option<&State> {
        self.all.get(usize::try_from(id).ok()?.checked_sub(1)?)
    }

    fn state_mut(&mut self, id: i32) -> Option<&mut State> {
        self.all.get_mut(usize::try_from(id).ok()?.checked_sub(1)?)
    }

    pub fn shape(&self, id: i32) -> Option<&Shape> {
        self.state(id).map(|o| &o.shape)
    }

    /// More is known of an object's shape, or it has changed.
    pub fn learn(&mut self, id: i32, what: impl FnOnce(&mut Shape)) {
        let Some(state) = self.state_mut(id) else { return };
        let before = state.shape.clone();
        what(&mut state.shape);
        if state.shape != before && !state.queued {
            state.queued = true;
            self.changed.push(id);
        }
    }

    /// Their rows count for nothing any more.
    pub fn forgotten(&mut self, ids: &[i32]) {
        for id in ids {
            if let Some(state) = self.state_mut(*id) {
                state.forgotten = true;
            }
        }
    }

    /// A written row refers to it.
    pub fn used(&mut self, id: i32) {
        let Some(state) = self.state_mut(id).filter(|o| o.forgotten && !o.queued) else { return };
        state.queued = true;
        self.changed.push(id);
    }

    /// Writes the rows that changed.
    pub fn write(&mut self, out: &mut Vec<Row>) {
        for id in std::mem::take(&mut self.changed) {
            let Some(state) = self.state_mut(id) else { continue };
            (state.queued, state.forgotten) = (false, false);
            out.push(Row::Object(Object {
                object_id: id,
                handle_id: Some(state.handle),
                file_id: if let Scope::File(file) = state.scope { Some(file) } else { None },
                name: lossy_path(&state.name),
                class: state.class,
                dims: state.shape.dims.clone(),
                chunk: state.shape.chunk.clone(),
                elem_size: state.shape.elem_size,
                filters: state.shape.filters.as_ref().map(|f| f.join(",")),
            }));
        }
    }
}
