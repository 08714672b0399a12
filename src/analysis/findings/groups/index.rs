//! Where the group of a key is. There can be half a million: the keys are in the groups, and not here once more.

use hashbrown::HashTable;

use crate::analysis::findings::groups::group::{Group, Key};

/// Numbers of groups by their keys.
#[derive(Debug, Clone, Default)]
pub struct Index {
    numbers: HashTable<u32>,
    hasher: ahash::RandomState,
}

impl Index {
    /// The number of the group with this key among all.
    pub fn get(&self, key: &Key, all: &[Group]) -> Option<usize> {
        let is_it = |at: &u32| all.get(*at as usize).is_some_and(|group| group.key == *key);
        self.numbers.find(self.hasher.hash_one(key), is_it).map(|at| *at as usize)
    }

    /// Adds the last one of all groups, the key of which is not here.
    pub fn insert_last(&mut self, all: &[Group]) {
        let Some(last) = all.last() else { return };
        let hash_of = |at: &u32| all.get(*at as usize).map_or(0, |group| self.hasher.hash_one(group.key));
        self.numbers.insert_unique(self.hasher.hash_one(last.key), (all.len() - 1) as u32, hash_of);
    }
}
