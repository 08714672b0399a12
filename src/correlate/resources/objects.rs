//! Datasets, variables, attributes, groups and types inside files: by name, with their shapes.

use std::collections::HashSet;

use crate::HashMap;
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
    /// How many objects there had been when it was used last.
    last: i32,
}

/// An object is forgotten when so many others have come since its last use, unless it is open. One that comes back has
/// another id.
const REMEMBERED: i32 = 65_536;
/// How often it is looked what can be forgotten: after so many objects.
const ROUND: i32 = 16_384;
/// Of so many processes it is remembered that they made or opened an object, those that did so last: in a year ever new ones
/// open the same. An object that an earlier one makes again is taken for the same one.
const OWNERS: usize = 256;

/// The objects opened; ids count from 1.
#[derive(Default)]
pub struct Objects {
    ids: HashMap<(Scope, &'static str, Vec<u8>), i32>,
    all: HashMap<i32, State>,
    changed: Vec<i32>,
    /// How many there have been.
    count: i32,
    /// How many there had been when some were forgotten last.
    forgot_at: i32,
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
        let known = known.filter(|id| self.state(*id).is_some_and(|o| !(made && o.known_to.contains(&by))));
        let id = known.unwrap_or_else(|| {
            let id = self.add(path.scope, path.class, key.2.clone(), handle);
            self.ids.insert(key, id);
            id
        });
        let count = self.count;
        if let Some(state) = self.all.get_mut(&id) {
            state.last = count;
            let known = state.known_to.iter().rposition(|owner| *owner == by);
            if let Some(oldest) = known.or((state.known_to.len() == OWNERS).then_some(0)) {
                state.known_to.remove(oldest);
            }
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
        self.count += 1;
        let (id, last) = (self.count, self.count);
        self.all
            .insert(id, State { handle, scope, class, name, shape, known_to, queued: true, forgotten: false, last });
        self.changed.push(id);
        id
    }

    /// An object has another name from now on.
    pub fn rename(&mut self, id: i32, path: &ObjectPath) {
        let base = path.location.and_then(|id| self.state(id)).map_or(&b""[..], |o| o.name.as_slice());
        let name = absolute(base, path.name);
        let Some(state) = self.all.get_mut(&id).filter(|o| o.name != name) else { return };
        // The file may not have been known when it got its name.
        let scope = std::mem::replace(&mut state.scope, path.scope);
        let before = (scope, state.class, std::mem::replace(&mut state.name, name.clone()));
        let now = (path.scope, state.class, name);
        if !std::mem::replace(&mut state.queued, true) {
            self.changed.push(id);
        }
        if self.ids.get(&before) == Some(&id) {
            self.ids.remove(&before);
        }
        self.ids.insert(now, id);
    }

    fn state(&self, id: i32) -> Option<&State> {
        self.all.get(&id)
    }

    fn state_mut(&mut self, id: i32) -> Option<&mut State> {
        self.all.get_mut(&id)
    }

    /// Have so many come that some are to be forgotten?
    pub fn has_many(&self) -> bool {
        self.count - self.forgot_at >= ROUND
    }

    /// Forgets those that were not used for long and are not open.
    pub fn forget(&mut self, open: &HashSet<i32>) {
        self.forgot_at = self.count;
        let count = self.count;
        let gone =
            self.all.extract_if(|id, state| count - state.last > REMEMBERED && !state.queued && !open.contains(id));
        for (id, State { scope, class, name, .. }) in gone {
            let key = (scope, class, name);
            if self.ids.get(&key) == Some(&id) {
                self.ids.remove(&key);
            }
        }
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
        let Some(state) = self.all.get_mut(&id) else { return };
        state.last = self.count;
        if state.forgotten && !state.queued {
            state.queued = true;
            self.changed.push(id);
        }
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

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    const BY: Owner = Owner::Process(1);

    fn opened(objects: &mut Objects, name: &str) -> i32 {
        let path = ObjectPath { scope: Scope::File(1), location: None, name: name.as_bytes(), class: "dataset" };
        objects.open(&path, 1, BY, false)
    }

    /// Opens so many others, and writes and forgets as the tracker does.
    fn come(objects: &mut Objects, names: std::ops::Range<i32>, open: &HashSet<i32>) {
        for name in names {
            opened(objects, &format!("/{name}"));
            if objects.has_many() {
                objects.write(&mut Vec::new());
                objects.forget(open);
            }
        }
    }

    #[test]
    fn objects_that_were_not_used_for_long_are_forgotten_but_open_ones() {
        let mut objects = Objects::default();
        let [kept, used, gone] = ["/open", "/used", "/gone"].map(|name| opened(&mut objects, name));
        let open = HashSet::from([kept]);
        come(&mut objects, 0..REMEMBERED, &open);
        objects.used(used);
        come(&mut objects, REMEMBERED..2 * REMEMBERED - ROUND, &open);
        assert_eq!([kept, used, gone].map(|id| objects.state(id).is_some()), [true, true, false]);
        assert!((objects.all.len() as i32) <= REMEMBERED + 2 * ROUND && objects.ids.len() == objects.all.len());
        assert_eq!(opened(&mut objects, "/open"), kept);
        assert!(opened(&mut objects, "/gone") > gone);
    }

    #[test]
    fn of_ever_new_processes_the_last_ones_are_remembered() {
        let mut objects = Objects::default();
        let path = ObjectPath { scope: Scope::File(1), location: None, name: b"/x", class: "dataset" };
        let last = 2 * OWNERS as u32;
        let ids: HashSet<i32> = (1..=last).map(|by| objects.open(&path, 1, Owner::Process(by), false)).collect();
        assert_eq!(ids, HashSet::from([1]));
        assert_eq!(objects.state(1).unwrap().known_to.len(), OWNERS);
        // One that opens it now and then is among the last ones.
        let first = last - OWNERS as u32 + 1;
        for by in [first, last + 1] {
            objects.open(&path, 1, Owner::Process(by), false);
        }
        assert_eq!(objects.open(&path, 1, Owner::Process(first + 1), true), 1, "it was not known to know one");
        assert_eq!(objects.open(&path, 1, Owner::Process(first), true), 2, "made where it knew one");
    }

    #[test]
    fn one_whose_file_becomes_known_with_its_next_name_is_forgotten_like_others() {
        let mut objects = Objects::default();
        let path = |scope, name| ObjectPath { scope, location: None, name, class: "variable" };
        let id = objects.open(&path(Scope::Handle(7), b"/a"), 7, BY, false);
        objects.rename(id, &path(Scope::File(1), b"/b"));
        assert_eq!(objects.open(&path(Scope::File(1), b"/b"), 7, BY, false), id);
        assert_eq!(objects.ids.len(), 1);
        come(&mut objects, 0..REMEMBERED + ROUND, &HashSet::new());
        assert!(objects.state(id).is_none() && objects.ids.len() == objects.all.len());
        assert!(objects.open(&path(Scope::File(1), b"/b"), 7, BY, false) > id);
    }
}
