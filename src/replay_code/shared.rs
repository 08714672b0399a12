//! What ranks have in common: numbers of files, hints, objects; and of each rank numbers of variables.

use std::collections::{BTreeMap, BTreeSet};

use crate::HashMap;
use crate::replay_code::program::{FIRST_COMMUNICATOR, Object};

/// What ranks share: the files and hints that they were given.
#[derive(Default)]
pub struct Shared {
    pub files: Vec<(String, Found)>,
    index: HashMap<String, usize>,
    pub hints: Vec<Vec<(String, String)>>,
    pub ops: Vec<String>,
    pub objects: Vec<Object>,
    pub communicators: Vec<Vec<[i64; 3]>>,
    object_index: HashMap<Object, i64>,
    /// Numbers of objects that text is written to, or read from.
    pub text: BTreeSet<i64>,
    pub buffer: i64,
    pub calls: BTreeMap<String, i64>,
    pub left_out: BTreeMap<String, i64>,
    pub notes: BTreeSet<String>,
}

/// The first call that named a file, and what the file was then.
#[derive(Debug, Clone, Copy)]
pub struct Found {
    at_ns: i64,
    pub bytes: Option<i64>,
}

impl Shared {
    /// With numbers for these files in natural order, so that names which count are numbers which count.
    pub fn of(mut paths: Vec<String>) -> Self {
        paths.sort_by_cached_key(|path| natural(path));
        paths.dedup();
        let index = paths.iter().cloned().zip(0..).collect();
        let files = paths.into_iter().map(|path| (path, Found { at_ns: i64::MAX, bytes: None })).collect();
        Self { files, index, ..Self::default() }
    }

    /// The number of a file. `found`: its bytes, where this call does not make it.
    pub fn file(&mut self, path: &str, at_ns: i64, found: Option<i64>) -> i64 {
        let next = self.files.len();
        let at = *self.index.entry(path.to_owned()).or_insert(next);
        if at == next {
            self.files.push((path.to_owned(), Found { at_ns, bytes: found }));
        } else if let Some((_, known)) = self.files.get_mut(at)
            && at_ns < known.at_ns
        {
            *known = Found { at_ns, bytes: found };
        }
        at as i64
    }

    /// The number of a function's name.
    pub fn op(&mut self, op: &str) -> usize {
        self.ops.iter().position(|known| *known == op).unwrap_or_else(|| {
            self.ops.push(op.to_owned());
            self.ops.len() - 1
        })
    }

    pub fn object(&mut self, object: &Object) -> i64 {
        if let Some(at) = self.object_index.get(object) {
            return *at;
        }
        let at = self.objects.len() as i64;
        self.object_index.insert(object.clone(), at);
        self.objects.push(object.clone());
        at
    }

    /// The number of a communicator of some of the ranks.
    pub fn communicator(&mut self, ranks: &[[i64; 3]]) -> i64 {
        let at = self.communicators.iter().position(|known| known == ranks).unwrap_or_else(|| {
            self.communicators.push(ranks.to_vec());
            self.communicators.len() - 1
        });
        FIRST_COMMUNICATOR + at as i64
    }

    /// The number of a set of hints, from 1.
    pub fn hints(&mut self, hints: &[(String, String)]) -> i64 {
        let at = self.hints.iter().position(|known| known == hints).unwrap_or_else(|| {
            self.hints.push(hints.to_vec());
            self.hints.len() - 1
        });
        at as i64 + 1
    }
}

/// What sorts numbers in names by their value.
fn natural(path: &str) -> Vec<(String, u64, String)> {
    let mut parts = Vec::new();
    let mut rest = path;
    while !rest.is_empty() {
        let digits = rest.find(|c: char| c.is_ascii_digit()).unwrap_or(rest.len());
        let (text, number) = rest.split_at(digits);
        let end = number.find(|c: char| !c.is_ascii_digit()).unwrap_or(number.len());
        let (number, left) = number.split_at(end);
        parts.push((text.to_owned(), number.parse().unwrap_or(u64::MAX), number.to_owned()));
        rest = left;
    }
    parts
}

/// Numbers for handles and the like: of those that are free the smallest.
#[derive(Default)]
pub struct Slots {
    by_id: HashMap<i64, i64>,
    free: BTreeSet<i64>,
    next: i64,
}

impl Slots {
    pub fn get(&self, id: i64) -> Option<i64> {
        self.by_id.get(&id).copied()
    }

    pub fn take(&mut self, id: i64) -> i64 {
        self.release(id);
        let slot = self.free.pop_first().unwrap_or_else(|| {
            self.next += 1;
            self.next - 1
        });
        self.by_id.insert(id, slot);
        slot
    }

    pub fn release(&mut self, id: i64) -> Option<i64> {
        let slot = self.by_id.remove(&id)?;
        self.free.insert(slot);
        Some(slot)
    }

    /// All that are taken, the earliest first.
    pub fn ids(&self) -> Vec<i64> {
        let mut ids: Vec<i64> = self.by_id.keys().copied().collect();
        ids.sort_unstable();
        ids
    }

    pub const fn most(&self) -> i64 {
        self.next
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_in_names_are_in_order() {
        let shared = Shared::of(["/d/10", "/d/9", "/d/a", "/d/9"].map(str::to_owned).to_vec());
        let names: Vec<&str> = shared.files.iter().map(|(path, _)| path.as_str()).collect();
        assert_eq!(names, ["/d/9", "/d/10", "/d/a"]);
    }

    #[test]
    fn the_smallest_free_variable_is_taken() {
        let mut slots = Slots::default();
        assert_eq!([7, 8, 9].map(|id| slots.take(id)), [0, 1, 2]);
        assert_eq!(slots.release(8), Some(1));
        assert_eq!((slots.take(11), slots.take(12), slots.most()), (1, 3, 4));
        assert_eq!((slots.get(8), slots.ids()), (None, vec![7, 9, 11, 12]));
    }
}
