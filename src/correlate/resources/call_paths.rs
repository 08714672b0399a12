//! The paths that calls name, each once: whatever it leads to, and whether or not there is anything.

use std::collections::HashMap as ByText;
use std::sync::Arc;

use crate::HashMap;
use crate::rows::{CallPath, Row};

/// So many other paths may come after the last use of one until it is forgotten; one that comes back has another id.
const REMEMBERED: u64 = 2 * 65_536;
/// How often it is looked what can be forgotten: after so many paths.
const ROUND: u64 = 16_384;

struct PathEntry {
    path: Arc<str>,
    /// Its row was written.
    written: bool,
    /// How many paths had come when it was used last.
    last: u64,
}

/// Every path that was named lately; ids count from 1.
#[derive(Default)]
pub struct Named {
    all: HashMap<i32, PathEntry>,
    /// By a hash that a program which chooses the paths does not know.
    by_path: ByText<Arc<str>, i32>,
    last: i32,
    /// Paths that have come.
    came: u64,
    /// When it is looked next what can be forgotten.
    next: u64,
    changed: Vec<i32>,
}

impl Named {
    /// The id of a path. Its row is written even if no call does: it may be long until a call is over.
    pub fn id(&mut self, path: &str) -> i32 {
        if let Some(id) = self.by_path.get(path).copied() {
            self.used(id);
            return id;
        }
        self.last += 1;
        self.came += 1;
        let path: Arc<str> = Arc::from(path);
        self.all.insert(self.last, PathEntry { path: Arc::clone(&path), written: true, last: self.came });
        self.by_path.insert(path, self.last);
        self.changed.push(self.last);
        self.last
    }

    pub fn path(&self, id: i32) -> Option<&str> {
        Some(&self.all.get(&id)?.path)
    }

    /// A row refers to it.
    pub fn used(&mut self, id: i32) {
        let Some(known) = self.all.get_mut(&id) else { return };
        known.last = self.came;
        if !std::mem::replace(&mut known.written, true) {
            self.changed.push(id);
        }
    }

    /// Their rows count for nothing any more.
    pub fn forgotten(&mut self, ids: &[i32]) {
        for id in ids {
            if let Some(known) = self.all.get_mut(id) {
                known.written = false;
            }
        }
    }

    /// Writes those that came, and forgets those that were not used for long.
    pub fn write(&mut self, out: &mut Vec<Row>) {
        for path_id in self.changed.drain(..) {
            if let Some(known) = self.all.get(&path_id) {
                out.push(Row::CallPath(CallPath { path_id, path: known.path.to_string() }));
            }
        }
        if self.came >= self.next + ROUND {
            self.next = self.came;
            let came = self.came;
            for (_, known) in self.all.extract_if(|_, known| came - known.last > REMEMBERED) {
                self.by_path.remove(&known.path);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(named: &mut Named) -> Vec<(i32, String)> {
        let mut out = Vec::new();
        named.write(&mut out);
        let path = |row| if let Row::CallPath(CallPath { path_id, path }) = row { Some((path_id, path)) } else { None };
        out.into_iter().filter_map(path).collect()
    }

    #[test]
    fn each_path_is_written_once_and_again_when_its_row_is_gone() {
        let mut named = Named::default();
        assert_eq!([named.id("/a"), named.id("/b"), named.id("/a")], [1, 2, 1]);
        assert_eq!(written(&mut named), [(1, "/a".to_owned()), (2, "/b".to_owned())]);
        assert_eq!((named.id("/a"), written(&mut named)), (1, Vec::new()));
        named.forgotten(&[1, 2]);
        named.used(2);
        assert_eq!(written(&mut named), [(2, "/b".to_owned())]);
        assert_eq!((named.id("/a"), written(&mut named)), (1, vec![(1, "/a".to_owned())]));
    }

    #[test]
    fn what_is_remembered_is_bounded() {
        let mut named = Named::default();
        let first = named.id("/first");
        for n in 0..2 * (REMEMBERED + ROUND) {
            named.id(&format!("/{n}"));
            named.used(first);
            let come = written(&mut named).len();
            assert!(come >= 1 && named.all.len() == named.by_path.len());
        }
        assert!(named.all.len() as u64 <= REMEMBERED + ROUND, "{}", named.all.len());
        assert_eq!(named.id("/first"), first);
        assert!(named.id("/0") > first + 1, "it was forgotten, and is another one now");
    }
}
