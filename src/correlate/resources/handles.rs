//! Handles: what opens returned, per process, through dup, fork, exec and reuse.

use std::collections::{BTreeMap, HashSet};

use crate::HashMap;
use crate::correlate::resources::processes::Owner;
use crate::rows::{Handle, Row};
use crate::vocabulary::Layer;

/// Hints: keys and values.
pub type Set = BTreeMap<String, String>;

/// Bit 0 of a handle's flags.
const EXISTED_BEFORE: i32 = 1;

/// How a program names a handle: the layer it belongs to, which copy of the library, and the value.
pub type Name = (Layer, u16, u64);

struct HandleState {
    row: Handle,
    owner: Owner,
    /// Processes that hold it.
    refs: u32,
    close_on_exec: bool,
    /// When its open returned: a close that began earlier means the one that had the name before.
    known_from: i64,
    before: Option<i32>,
    queued: bool,
    /// Its parent is only what it is another name of.
    copied: bool,
}

/// A handle to be made.
#[derive(Debug, Clone, Copy)]
pub struct New {
    pub owner: Owner,
    pub pid: i32,
    pub name: Name,
    pub mode: Option<i32>,
    /// How many processes opened it together.
    pub comm_size: Option<i32>,
    pub close_on_exec: bool,
    pub file: Option<i32>,
    /// The call that made it; none for a handle that was there before.
    pub span: Option<i64>,
    pub start_ns: i64,
    pub known_from: i64,
}

/// A call that ends a handle.
#[derive(Debug, Clone, Copy)]
pub struct Closing {
    pub span: i64,
    pub start_ns: i64,
    pub end_ns: i64,
}

/// Every open handle; ids count from 1.
#[derive(Default)]
pub struct Handles {
    all: HashMap<i32, HandleState>,
    tables: HashMap<Owner, HashMap<Name, i32>>,
    last: i32,
    changed: Vec<i32>,
    retired: Vec<i32>,
    /// Those whose rows must be written anew: none, except where datasets follow each other.
    forgotten: HashSet<i32>,
}

impl Handles {
    pub fn find(&self, owner: Owner, name: Name) -> Option<i32> {
        self.tables.get(&owner)?.get(&name).copied()
    }

    pub fn row(&self, id: i32) -> Option<&Handle> {
        self.all.get(&id).map(|h| &h.row)
    }

    pub fn file(&self, id: i32) -> Option<i32> {
        self.row(id)?.file_id
    }

    /// The files that a process has open.
    pub fn files(&self) -> HashSet<i32> {
        self.all.values().filter_map(|h| h.row.file_id).collect()
    }

    /// The objects that handles stand for.
    pub fn objects(&self) -> impl Iterator<Item = i32> {
        self.all.values().filter_map(|h| h.row.object_id)
    }

    fn change(&mut self, id: i32, what: impl FnOnce(&mut HandleState)) {
        if let Some(state) = self.all.get_mut(&id) {
            what(state);
            if !state.queued {
                state.queued = true;
                self.changed.push(id);
            }
        }
    }

    /// Makes a handle. One that has the name already ends: its close was not seen, or this call implies it.
    pub fn make(&mut self, new: New) -> i32 {
        self.last += 1;
        let id = self.last;
        let before = self.tables.entry(new.owner).or_default().insert(new.name, id);
        if let Some(old) = before {
            self.release(old, new.owner, new.start_ns, None);
            if let Some(older) = self.all.get_mut(&old).and_then(|h| h.before.take()) {
                self.retired.push(older);
            }
        }
        let row = Handle {
            handle_id: id,
            parent_handle_id: None,
            layer: new.name.0,
            file_id: new.file,
            object_id: None,
            process_ix: new.owner.process_ix(),
            pid: new.pid,
            raw: new.name.2 as i64,
            mode: new.mode,
            flags: if new.span.is_some() { 0 } else { EXISTED_BEFORE },
            comm_size: new.comm_size,
            comm_ranks: None,
            implementation: None,
            hints: None,
            open_span_id: new.span,
            close_span_id: None,
            start_ns: new.start_ns,
            end_ns: None,
        };
        let state = HandleState {
            row,
            owner: new.owner,
            refs: 1,
            close_on_exec: new.close_on_exec,
            known_from: new.known_from,
            before,
            queued: true,
            copied: false,
        };
        self.all.insert(id, state);
        self.changed.push(id);
        id
    }

    /// A process gives a handle up. It ends when its opener does, or the last one.
    fn release(&mut self, id: i32, owner: Owner, end_ns: i64, span: Option<i64>) {
        let Some(h) = self.all.get_mut(&id) else { return };
        h.refs = h.refs.saturating_sub(1);
        // A child that lets go of an inherited handle changes nothing that is written.
        if h.row.end_ns.is_none() && (h.refs == 0 || h.owner == owner) {
            self.change(id, |h| (h.row.end_ns, h.row.close_span_id) = (Some(end_ns), span));
        }
    }

    /// Ends the handle of that name; returns which one it was.
    pub fn close(&mut self, owner: Owner, name: Name, by: Closing) -> Option<i32> {
        let id = self.find(owner, name)?;
        let state = self.all.get(&id)?;
        if state.known_from > by.start_ns
            && let Some(before) = state.before
        {
            // Another thread got the name again before this call returned.
            self.change(before, |h| (h.row.end_ns, h.row.close_span_id) = (Some(by.end_ns), Some(by.span)));
            return Some(before);
        }
        if let Some(table) = self.tables.get_mut(&owner) {
            table.remove(&name);
        }
        self.release(id, owner, by.end_ns, Some(by.span));
        Some(id)
    }

    /// The descriptors of a process in this range.
    pub fn descriptors(&self, owner: Owner, first: u32, last: u32) -> Vec<u64> {
        let range = u64::from(first)..=u64::from(last);
        let all = self.tables.get(&owner).into_iter().flat_map(HashMap::keys);
        let mut found: Vec<u64> = all
            .filter(|(layer, _, raw)| *layer == Layer::Syscall && range.contains(raw))
            .map(|(_, _, raw)| *raw)
            .collect();
        found.sort_unstable();
        found
    }

    /// Sets whether a descriptor survives an exec.
    pub fn inherit(&mut self, owner: Owner, name: Name, survives: bool) {
        if let Some(state) = self.find(owner, name).and_then(|id| self.all.get_mut(&id)) {
            state.close_on_exec = !survives;
        }
    }

    /// A call that closed it is written: it can be forgotten once nothing refers to it.
    pub fn retire(&mut self, id: i32) {
        self.retired.push(id);
    }

    /// Their rows count for nothing any more.
    pub fn forgotten(&mut self, ids: &[i32]) {
        self.forgotten.extend(ids.iter().filter(|id| self.all.contains_key(id)));
    }

    /// A written row refers to it, and its row to those that it was opened in.
    pub fn used(&mut self, id: i32) {
        let mut at = Some(id);
        while let Some(here) = at.filter(|id| self.forgotten.remove(id)) {
            self.change(here, |_| {});
            at = self.row(here).and_then(|row| row.parent_handle_id);
        }
    }

    /// Gives a handle a parent, unless it has one already, which it is not only a copy of.
    pub fn adopt(&mut self, child: i32, parent: i32) {
        let has_none = |h: &HandleState| h.copied || h.row.parent_handle_id.is_none();
        if child != parent && self.all.get(&child).is_some_and(has_none) {
            self.change(child, |h| (h.row.parent_handle_id, h.copied) = (Some(parent), false));
        }
    }

    /// A handle is another name of one: that is its parent, unless it gets one that it belongs to.
    pub fn copied(&mut self, child: i32, from: i32) {
        self.change(child, |h| (h.row.parent_handle_id, h.copied) = (Some(from), true));
    }

    pub fn set_object(&mut self, id: i32, object: i32) {
        self.change(id, |h| h.row.object_id = Some(object));
    }

    /// The ranks in the job that opened it together, and which implementation of MPI-IO serves it, as far as that
    /// is known.
    pub fn opened(&mut self, id: i32, ranks: Option<String>, implementation: Option<&'static str>) {
        self.change(id, |h| (h.row.comm_ranks, h.row.implementation) = (ranks, implementation));
    }

    /// The program gave hints with it. Earlier hints hold unless these replace them.
    pub fn give(&mut self, id: i32, hints: &Set) {
        self.change(id, |h| {
            let known = h.row.hints.take().unwrap_or_default();
            let mut all: Set = known.into_iter().collect();
            all.extend(hints.iter().map(|(key, value)| (key.clone(), value.clone())));
            h.row.hints = Some(all.into_iter().collect());
        });
    }

    /// The file of a handle became known; so did that of the handles of its layer that it was opened in.
    pub fn learn(&mut self, id: i32, file: i32) {
        let mut at = Some(id);
        while let Some(known) = at.and_then(|id| self.row(id)).filter(|h| h.file_id.is_none()) {
            let (here, layer) = (known.handle_id, known.layer);
            at = known.parent_handle_id.filter(|p| self.row(*p).is_some_and(|h| h.layer == layer));
            self.change(here, |h| h.row.file_id = Some(file));
        }
    }

    /// A child has what its parent has.
    pub fn fork(&mut self, parent: Owner, child: Owner) {
        let Some(table) = self.tables.get(&parent).cloned() else { return };
        for id in table.values() {
            if let Some(state) = self.all.get_mut(id) {
                state.refs += 1;
            }
        }
        self.tables.insert(child, table);
    }

    /// Handles used before it was known whose they are.
    pub fn belong(&mut self, before: Owner, now: Owner) {
        let Some(table) = self.tables.remove(&before) else { return };
        for id in table.values() {
            self.change(*id, |h| (h.owner, h.row.process_ix) = (now, now.process_ix()));
        }
        let known = self.tables.entry(now).or_default();
        for (name, id) in table {
            known.entry(name).or_insert(id);
        }
    }

    /// Library handles and close-on-exec descriptors end.
    pub fn exec(&mut self, owner: Owner, t_ns: i64) {
        let all = &self.all;
        let goes = |id: i32| all.get(&id).is_none_or(|h| h.row.layer != Layer::Syscall || h.close_on_exec);
        let Some(table) = self.tables.get_mut(&owner) else { return };
        let gone = table.extract_if(|_, id| goes(*id)).map(|(_, id)| id).collect();
        self.end_all(gone, owner, t_ns);
    }

    pub fn exit(&mut self, owner: Owner, t_ns: i64) {
        let gone = self.tables.remove(&owner).map(|t| t.into_values().collect());
        self.end_all(gone.unwrap_or_default(), owner, t_ns);
    }

    fn end_all(&mut self, mut gone: Vec<i32>, owner: Owner, t_ns: i64) {
        gone.sort_unstable();
        for id in gone {
            self.release(id, owner, t_ns, None);
            self.retire(id);
        }
    }

    /// Writes what changed, forgets what is retired; returns the files written rows refer to.
    pub fn write(&mut self, out: &mut Vec<Row>, files: &mut Vec<i32>) {
        for id in self.changed.drain(..) {
            if let Some(state) = self.all.get_mut(&id) {
                state.queued = false;
                self.forgotten.remove(&id);
                files.extend(state.row.file_id);
                out.push(Row::Handle(state.row.clone()));
            }
        }
        while let Some(id) = self.retired.pop() {
            if self.all.get(&id).is_some_and(|h| h.refs == 0) {
                self.forgotten.remove(&id);
                let before = self.all.remove(&id).and_then(|h| h.before);
                self.retired.extend(before);
            }
        }
    }
}
