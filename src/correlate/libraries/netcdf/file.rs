//! What is known of one open file of NetCDF-C or `PnetCDF`: dimensions, variables, types, attributes.

use std::collections::HashMap;

/// A dimension; ids count in the whole file.
#[derive(Debug, Clone, Copy, Default)]
pub struct Dimension {
    pub len: Option<i64>,
    /// It was made without a length.
    pub grows: bool,
}

/// A variable; ids count in its group.
#[derive(Debug, Clone, Default)]
pub struct Variable {
    pub object: Option<i32>,
    pub rank: Option<usize>,
    /// Ids of its dimensions.
    pub dims: Option<Vec<i32>>,
    /// Their lengths as last seen without ids.
    pub shape: Option<Vec<i64>>,
    /// `nc_type`.
    pub kind: Option<i32>,
    /// At least as many as there are dimensions; empty: not made of chunks.
    pub chunk: Option<Vec<i64>>,
    /// In the order in which they are applied: `H5Z_filter_t` and its first parameter.
    pub filters: Vec<(i32, Option<i64>)>,
    /// Calls on it are collective.
    pub collective: bool,
}

/// A variable's or the file's attribute.
#[derive(Debug, Clone, Copy, Default)]
pub struct Attribute {
    pub elements: Option<i64>,
    pub kind: Option<i32>,
}

/// Handle of the group, id of the variable.
pub type Key = (i32, i32);

/// Everything of a file, by the ids that calls use.
#[derive(Debug, Default)]
pub struct File {
    pub parallel: bool,
    pub dimensions: HashMap<i32, Dimension>,
    pub variables: HashMap<Key, Variable>,
    /// Bytes of an element of types that the file itself defines.
    pub types: HashMap<i32, i64>,
    pub attributes: HashMap<(Key, Vec<u8>), Attribute>,
    /// `ncid`s of the groups that have handles.
    pub groups: Vec<u64>,
    /// How many groups there are in a group.
    pub numbers: HashMap<i32, usize>,
}

/// Sizes in memory of the types that every file has: `NC_BYTE` (1) to `NC_STRING` (12), netcdf.h.
const ATOMIC: [i64; 12] = [1, 1, 2, 4, 4, 8, 1, 2, 4, 8, 8, 8];

/// `NC_CHAR` and `NC_STRING`, netcdf.h.
pub const CHAR: i32 = 2;
pub const STRING: i32 = 12;

impl File {
    /// Bytes of an element of a type.
    pub fn size(&self, kind: i32) -> Option<i64> {
        let atomic = usize::try_from(kind).ok().and_then(|kind| ATOMIC.get(kind.checked_sub(1)?));
        atomic.or_else(|| self.types.get(&kind)).copied()
    }

    /// The lengths of a variable's dimensions.
    pub fn lengths(&self, variable: &Variable) -> Option<Vec<i64>> {
        let by_id = |dims: &Vec<i32>| dims.iter().map(|id| self.dimensions.get(id)?.len).collect();
        let empty = || variable.rank.filter(|rank| *rank == 0).map(|_| Vec::new());
        variable.dims.as_ref().and_then(by_id).or_else(|| variable.shape.clone()).or_else(empty)
    }

    /// Does a dimension of the variable grow, as far as that is known?
    pub fn grows(&self, variable: &Variable) -> bool {
        let grows = |id: &i32| self.dimensions.get(id).is_some_and(|d| d.grows);
        variable.dims.as_ref().is_some_and(|dims| dims.iter().any(grows))
    }

    /// Something was written up to these indices (exclusive) of the variable's first dimensions; those beyond its last have
    /// no meaning.
    pub fn reached(&mut self, key: Key, ends: &[i64]) {
        let Some(dims) = self.variables.get(&key).and_then(|v| v.dims.clone()) else { return };
        // Nothing is written where one count is 0.
        if ends.iter().take(dims.len()).any(|end| *end == 0) {
            return;
        }
        for (id, end) in dims.iter().zip(ends) {
            if let Some(len) = self.dimensions.get_mut(id).and_then(|d| d.len.as_mut()) {
                *len = (*len).max(*end);
            }
        }
    }
}

impl Variable {
    /// Chunk sizes; none if it is not made of chunks.
    pub fn chunk(&self) -> Option<Vec<i64>> {
        let sizes = self.chunk.as_ref()?;
        if sizes.is_empty() { Some(Vec::new()) } else { Some(sizes.get(..self.rank?)?.to_vec()) }
    }

    pub fn filter(&mut self, id: i32, parameter: Option<i64>) {
        match self.filters.iter_mut().find(|(known, _)| *known == id) {
            Some((_, known)) => *known = parameter.or(*known),
            None => self.filters.push((id, parameter)),
        }
    }
}
