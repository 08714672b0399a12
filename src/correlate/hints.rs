//! Hints that a program gives with a file: sets of keys and values (`MPI_Info`), from their making to their end.

use std::collections::{BTreeMap, HashMap};

use super::call::succeeded;
use super::paths::lossy_path;
use super::processes::Owner;
use super::things::Seen;
use crate::catalog;
use crate::event::TextKind;

/// Keys and values.
pub type Set = BTreeMap<String, String>;

/// Every set that lives, by process, copy of the library and handle.
#[derive(Default)]
pub struct Hints {
    sets: HashMap<(Owner, u16, u64), Set>,
}

impl Hints {
    /// Does to sets what the call did; returns what it gives to a file.
    pub fn call(&mut self, seen: &Seen) -> Option<&Set> {
        if seen.row.hints == catalog::Hints::None || !succeeded(seen.call) {
            return None;
        }
        let name = |raw: u64| (seen.owner, seen.copy, raw);
        let text = |what| seen.text(what).map(lossy_path);
        let (handle, off, len) = (seen.call.handle, seen.call.off, seen.call.len);
        match seen.row.hints {
            catalog::Hints::None => {}
            catalog::Hints::Create => drop(self.sets.insert(name(handle?), Set::new())),
            catalog::Hints::Set => {
                // A set that was not seen made has keys that are not known.
                let (key, value) = (text(TextKind::Path)?, text(TextKind::Path2)?);
                self.sets.get_mut(&name(handle?))?.insert(key, value);
            }
            catalog::Hints::Delete => drop(self.sets.get_mut(&name(handle?))?.remove(&text(TextKind::Path)?)),
            catalog::Hints::Dup => {
                let copy = self.sets.get(&name(handle?))?.clone();
                self.sets.insert(name(off?), copy);
            }
            catalog::Hints::Free => drop(self.sets.remove(&name(handle?))),
            catalog::Hints::Off => return self.sets.get(&name(off?)),
            catalog::Hints::Len => return self.sets.get(&name(len?)),
        }
        None
    }

    /// A process is gone, or executes another program.
    pub fn gone(&mut self, owner: Owner) {
        self.sets.retain(|(of, ..), _| *of != owner);
    }
}
