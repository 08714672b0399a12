//! HDF5: the effect of property lists and dataspaces on the objects and transfers that they are passed to.

use crate::HashMap;
use crate::catalog::Row;
pub use crate::catalog::libraries::hdf5::{ANY_CLASS, DATASETS};
use crate::catalog::libraries::hdf5::{DEFLATE, Effect, FILTERS, LAYOUT, ListEffect, PIPELINE, SpaceEffect};
use crate::correlate::calls::call::succeeded;
use crate::correlate::resources::objects::{Objects, Shape};
use crate::correlate::resources::processes::Owner;
use crate::correlate::seen::{Found, Seen};
use crate::vocabulary::flag;

mod storage;

/// `H5P_DEFAULT` (H5Ppublic.h).
const DEFAULT: u64 = 0;
/// `H5D_CHUNKED` of `H5D_layout_t` (H5Dpublic.h).
const CHUNKED: u64 = 2;
/// `H5FD_MPIO_COLLECTIVE` of `H5FD_mpio_xfer_t` (H5FDpublic.h).
const COLLECTIVE: u64 = 1;
/// `H5S_SCALAR` and `H5S_NULL` of `H5S_class_t` (H5Spublic.h).
const SCALAR: u64 = 0;
const NULL: u64 = 2;
/// `H5Z_FILTER_ALL` (H5Zpublic.h).
const ALL_FILTERS: u64 = 0;

/// Where an identifier has its type: above these bits (`ID_BITS`, H5Ipkg.h, where a `hid_t` has 64).
const TYPE_SHIFT: u32 = 56;
/// Types (`H5I_type_t`, H5Ipublic.h). Attributes and maps, and what comes before 10, have other numbers in other versions.
const GROUP: u64 = 2;
const DATATYPE: u64 = 3;
const DATASPACE: u64 = 4;
const DATASET: u64 = 5;
const AFTER_OBJECTS: u64 = 8;

/// The class of an object that is opened: from the function, or from the identifier.
pub fn class(of_row: &'static str, raw: u64) -> &'static str {
    match (of_row, raw >> TYPE_SHIFT) {
        (ANY_CLASS, GROUP) => "group",
        (ANY_CLASS, DATATYPE) => "type",
        (ANY_CLASS, DATASET) => "dataset",
        (class, _) => class,
    }
}

/// May this identifier stand for something that is not in a file, such as a property list?
pub fn is_of_memory(raw: u64) -> bool {
    matches!(raw >> TYPE_SHIFT, DATATYPE | DATASPACE | AFTER_OBJECTS..)
}

/// An identifier of a process and a copy of the library.
type Key = (Owner, u16, u64);

/// A property list, of whatever class.
#[derive(Debug, Clone, Default)]
struct List {
    chunk: Option<Vec<i64>>,
    filters: Option<Vec<String>>,
    collective: bool,
    /// The object that it came from.
    of: Option<i32>,
    /// Its filters as far as the program queried them.
    queried: Vec<Option<String>>,
}

#[derive(Debug, Clone, Default)]
struct Space {
    dims: Option<Vec<i64>>,
    /// The object that it came from.
    of: Option<i32>,
}

/// Everything that is remembered between calls.
#[derive(Default)]
pub struct Hdf5 {
    lists: HashMap<Key, List>,
    spaces: HashMap<Key, Space>,
    /// References to handles that have more than one.
    references: HashMap<Key, u64>,
}

impl Hdf5 {
    /// A call ended: learns from it. Returns the flags of its span.
    pub fn call(&mut self, seen: &Seen, found: &Found, objects: &mut Objects) -> i32 {
        if seen.row.effect() == Effect::Nothing || !succeeded(seen.call) {
            return 0;
        }
        let (len, got) = (seen.call.len, seen.call.got);
        let key = |raw: u64| (seen.owner, seen.copy, raw);
        match seen.row.effect() {
            Effect::Dataset { .. } => {
                let list = got.map(|raw| self.list(key(raw))).unwrap_or_default();
                let shape = Shape {
                    // The size comes after the dimensions: a dataset with a size and no dimensions is a scalar.
                    dims: seen.numbers(0).or_else(|| len.map(|_| Vec::new())),
                    chunk: list.chunk,
                    elem_size: len.map(size),
                    filters: list.filters,
                };
                shaped(found, objects, shape);
            }
            Effect::Attribute { .. } => {
                let dims = got.and_then(|raw| self.spaces.get(&key(raw))?.dims.clone());
                shaped(found, objects, Shape { dims, elem_size: len.map(size), ..Shape::default() });
            }
            Effect::Opened { .. } => {
                let dims = seen.numbers(0).or_else(|| got.filter(|rank| *rank == 0).map(|_| Vec::new()));
                let layout = seen.numbers(LAYOUT).unwrap_or_default();
                let chunk = storage::chunk(&layout, dims.as_ref().map(Vec::len), len);
                let filters = storage::filters(&layout, &seen.numbers(PIPELINE).unwrap_or_default());
                shaped(found, objects, Shape { dims, chunk, elem_size: len.map(size), filters });
            }
            Effect::Extent | Effect::Grown => extent(seen, found, objects),
            Effect::Transfer { .. } | Effect::Transfers { .. } => {
                if let (Some(id), Some(got)) = (found.object, got) {
                    objects.learn(id, |shape| shape.elem_size = shape.elem_size.or(Some(size(got))));
                }
                let list = seen.call.off.and_then(|raw| self.lists.get(&key(raw)));
                return if list.is_some_and(|list| list.collective) { flag::COLLECTIVE } else { 0 };
            }
            Effect::List { effect, .. } => self.follow_list(seen, found, objects, effect),
            Effect::Space { effect, .. } => self.follow_space(seen, found, objects, effect),
            Effect::Nothing
            | Effect::Result { .. }
            | Effect::Made
            | Effect::Named { .. }
            | Effect::References { .. }
            | Effect::Reference => {}
        }
        0
    }

    /// What is known of a list; the default one sets nothing.
    fn list(&self, key: Key) -> List {
        match self.lists.get(&key) {
            Some(list) => list.clone(),
            None if key.2 == DEFAULT => List::new(),
            None => List::default(),
        }
    }

    fn follow_list(&mut self, seen: &Seen, found: &Found, objects: &mut Objects, effect: ListEffect) {
        let (len, got) = (seen.call.len, seen.call.got);
        let key = |raw: u64| (seen.owner, seen.copy, raw);
        let new = match effect {
            ListEffect::New => Some(List::new()),
            ListEffect::Unknown => Some(List::default()),
            ListEffect::Copy => seen.call.off.map(|raw| List { of: None, ..self.list(key(raw)) }),
            ListEffect::Of => {
                let shape = found.object.and_then(|id| objects.shape(id).cloned()).unwrap_or_default();
                Some(List { chunk: shape.chunk, filters: shape.filters, of: found.object, ..List::default() })
            }
            _ => None,
        };
        if let (Some(raw), Some(list)) = (got, new) {
            self.lists.insert(key(raw), list);
            return;
        }
        let Some(raw) = seen.call.off.filter(|raw| *raw != DEFAULT) else { return };
        if effect == ListEffect::Close {
            self.lists.remove(&key(raw));
            return;
        }
        let list = self.lists.entry(key(raw)).or_default();
        if !matches!(
            effect,
            ListEffect::GetChunk | ListEffect::GetLayout | ListEffect::GetFilterCount | ListEffect::GetFilter
        ) {
            list.of = None; // it is changed, and the object is not
        }
        match (effect, got) {
            (ListEffect::Chunk, _) => list.chunk = seen.numbers(0).or(list.chunk.take()),
            (ListEffect::Layout, Some(layout)) if layout != CHUNKED => list.chunk = Some(Vec::new()),
            (ListEffect::Filter(filter), level) => list.add(named(filter, level)),
            (ListEffect::AnyFilter, Some(filter)) => list.add(with_level(seen, filter)),
            (ListEffect::ModifyFilter, Some(filter)) => list.replace(&with_level(seen, filter)),
            (ListEffect::RemoveFilter, Some(filter)) => list.remove(filter),
            (ListEffect::Collective, Some(mode)) => list.collective = mode == COLLECTIVE,
            (ListEffect::GetChunk, Some(rank)) if len.is_some_and(|room| rank <= room) => {
                list.chunk = seen.numbers(0).or(list.chunk.take());
                list.teach(objects);
            }
            (ListEffect::GetLayout, Some(layout)) if layout != CHUNKED => {
                (list.chunk, list.filters) = (Some(Vec::new()), Some(Vec::new()));
                list.teach(objects);
            }
            (ListEffect::GetFilterCount, Some(count)) => {
                // Not more than can be (`H5Z_MAX_NFILTERS`, H5Zpublic.h).
                list.queried = vec![None; (count as usize).min(32)];
                list.finish_query(objects);
            }
            (ListEffect::GetFilter, Some(filter)) => {
                if let Some(slot) = len.and_then(|at| list.queried.get_mut(at as usize)) {
                    *slot = Some(with_level(seen, filter));
                }
                list.finish_query(objects);
            }
            _ => {}
        }
    }

    fn follow_space(&mut self, seen: &Seen, found: &Found, objects: &mut Objects, effect: SpaceEffect) {
        let (off, got) = (seen.call.off, seen.call.got);
        let key = |raw: u64| (seen.owner, seen.copy, raw);
        let dims_of = |spaces: &HashMap<Key, Space>, raw: Option<u64>| spaces.get(&key(raw?))?.dims.clone();
        let new = match effect {
            SpaceEffect::New => Some(Space { dims: Some(seen.numbers(0).unwrap_or_default()), of: None }),
            SpaceEffect::Class => {
                let dims = off.filter(|class| matches!(*class, SCALAR | NULL)).map(|_| Vec::new());
                Some(Space { dims, of: None })
            }
            SpaceEffect::Copy => Some(Space { dims: dims_of(&self.spaces, off), of: None }),
            SpaceEffect::Of => {
                let dims = found.object.and_then(|id| objects.shape(id)?.dims.clone());
                Some(Space { dims, of: found.object })
            }
            _ => None,
        };
        if let (Some(raw), Some(space)) = (got, new) {
            self.spaces.insert(key(raw), space);
            return;
        }
        let Some(raw) = off else { return };
        let dims = match effect {
            SpaceEffect::Close => {
                self.spaces.remove(&key(raw));
                return;
            }
            SpaceEffect::Extent => seen.numbers(0).or(Some(Vec::new())),
            SpaceEffect::Same => dims_of(&self.spaces, got),
            SpaceEffect::None => None,
            // A call that asks for the number alone gets no dimensions.
            SpaceEffect::GetExtent if seen.numbers(0).is_some() || got == Some(0) => {
                Some(seen.numbers(0).unwrap_or_default())
            }
            _ => return,
        };
        let space = self.spaces.entry(key(raw)).or_default();
        space.dims = dims;
        if let (SpaceEffect::GetExtent, Some(id)) = (effect, space.of) {
            objects.learn(id, |shape| shape.dims.clone_from(&space.dims));
        }
    }

    /// A call wants to close a handle: does that end it? It does not while there are other references to it.
    pub fn closes(&mut self, seen: &Seen) -> bool {
        let Some(raw) = seen.call.handle else { return true };
        let key = (seen.owner, seen.copy, raw);
        let left = match (seen.row.effect(), seen.call.got) {
            (Effect::References { .. }, Some(left)) => left,
            _ => self.references.get(&key).map_or(0, |n| n.saturating_sub(1)),
        };
        self.refer(key, left);
        if left == 0 {
            self.lists.remove(&key);
            self.spaces.remove(&key);
        }
        left == 0
    }

    /// There are so many references to a handle now.
    pub fn references(&mut self, seen: &Seen) {
        if let (Effect::References { .. }, Some(raw), Some(count)) =
            (seen.row.effect(), seen.call.handle, seen.call.got)
        {
            self.refer((seen.owner, seen.copy, raw), count);
        }
    }

    /// There is one reference more.
    pub fn reference(&mut self, seen: &Seen, raw: u64) {
        let key = (seen.owner, seen.copy, raw);
        let count = self.references.get(&key).copied().unwrap_or(1);
        self.refer(key, count.saturating_add(1));
    }

    fn refer(&mut self, key: Key, count: u64) {
        if count > 1 {
            self.references.insert(key, count);
        } else {
            self.references.remove(&key);
        }
    }

    /// The program of a process has ended.
    pub fn gone(&mut self, owner: Owner) {
        self.lists.retain(|key, _| key.0 != owner);
        self.spaces.retain(|key, _| key.0 != owner);
        self.references.retain(|key, _| key.0 != owner);
    }
}

impl List {
    /// As it is when it was just made.
    fn new() -> Self {
        Self { chunk: Some(Vec::new()), filters: Some(Vec::new()), ..Self::default() }
    }

    fn add(&mut self, filter: String) {
        if let Some(filters) = &mut self.filters {
            filters.push(filter);
        }
    }

    fn replace(&mut self, filter: &str) {
        for known in self.filters.iter_mut().flatten().filter(|known| name(known) == name(filter)) {
            filter.clone_into(known);
        }
    }

    fn remove(&mut self, filter: u64) {
        if filter == ALL_FILTERS {
            self.filters = Some(Vec::new());
        } else if let Some(filters) = &mut self.filters {
            let gone = named(filter as i32, None);
            filters.retain(|known| name(known) != gone);
        }
    }

    fn finish_query(&mut self, objects: &mut Objects) {
        if let Some(all) = self.queried.iter().cloned().collect() {
            self.filters = Some(all);
            self.teach(objects);
        }
    }

    /// Its settings are those of the object that it came from.
    fn teach(&self, objects: &mut Objects) {
        let Some(id) = self.of else { return };
        objects.learn(id, |shape| {
            shape.chunk = self.chunk.clone().or(shape.chunk.take());
            shape.filters = self.filters.clone().or(shape.filters.take());
        });
    }
}

/// An object's shape became known.
fn shaped(found: &Found, objects: &mut Objects, shape: Shape) {
    let Some(id) = found.object else { return };
    objects.learn(id, |known| {
        *known = Shape {
            dims: shape.dims.or(known.dims.take()),
            chunk: shape.chunk.or(known.chunk.take()),
            elem_size: shape.elem_size.or(known.elem_size),
            filters: shape.filters.or(known.filters.take()),
        };
    });
}

/// An object's dimensions changed.
fn extent(seen: &Seen, found: &Found, objects: &mut Objects) {
    let (Some(id), Some(numbers)) = (found.object, seen.numbers(0)) else { return };
    objects.learn(id, |shape| {
        // How many numbers there are, only the object knows.
        for (dim, new) in shape.dims.iter_mut().flatten().zip(numbers) {
            *dim = if seen.row.effect() == Effect::Grown { new.max(*dim) } else { new };
        }
    });
}

/// Bytes of an element.
fn size(bytes: u64) -> i32 {
    i32::try_from(bytes).unwrap_or(i32::MAX)
}

/// A filter as it is written: by name where the library has one, else by number.
pub fn named(filter: i32, level: Option<u64>) -> String {
    let name =
        FILTERS.iter().find(|(id, _)| *id == filter).map_or_else(|| filter.to_string(), |(_, name)| (*name).to_owned());
    match level {
        Some(level) if filter == DEFLATE => format!("{name}({level})"),
        _ => name,
    }
}

fn with_level(seen: &Seen, filter: u64) -> String {
    named(filter as i32, seen.numbers(0).and_then(|n| n.first().map(|level| *level as u64)))
}

/// The filter without its level.
fn name(filter: &str) -> &str {
    filter.split('(').next().unwrap_or(filter)
}

/// Why it is not known how much a call of this function moved.
pub fn unknown(row: &Row) -> &'static str {
    match row.effect() {
        _ if row.flags & flag::NONBLOCKING != 0 => "asynchronous call: another thread may have done it",
        Effect::Transfers { .. } => "several datasets: the sizes of some were not seen",
        _ => "the library's inner functions were not seen",
    }
}

#[cfg(test)]
mod tests;
