//! The calls that are replayed: which call of the trace, which of its values, and the statement in C.

mod hdf5;
mod mpiio;
mod nc;
mod netcdf;
mod pnetcdf;
mod posix;

use crate::vocabulary::Layer;

/// A value of a call, as a number of the generated program.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Arg {
    /// The variable with the handle that the call uses; of a call that closes it, for the last time.
    Handle,
    /// The variable that gets the handle.
    Opened,
    /// The number of the file that the call names.
    File,
    /// The same, of a file that was there when the call named it.
    KnownFile,
    /// The file's second name.
    SecondFile,
    /// How it is opened: flags of `open`, those of MPI-IO, and of other libraries.
    OpenFlags,
    Amode,
    Mode,
    /// Who opens it together.
    Communicator,
    /// Its hints.
    Hints,
    Offset,
    /// The plain argument, and what it counts from.
    Argument,
    Whence,
    /// Bytes asked for and moved.
    Requested,
    Moved,
    /// The variable of the request that the call begins, or waits for.
    Begun,
    Awaited,
    /// The number of a dataset, variable, attribute or group, and the variable of the file that it is in.
    Object,
    Container,
    /// Bytes of an element in memory.
    ElementSize,
    /// How many elements, and the number of their type in `NetCDF`.
    Elements,
    Type,
    /// 1: the transfer is collective.
    Collective,
    /// Start and count of each dimension: `{start}` and `{count}`. The last argument.
    Selection,
}

/// What a call does with its handle.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Does {
    Opens,
    Uses,
    Closes,
}

/// A call of the trace as a statement.
#[derive(Debug, Clone, Copy)]
pub struct Row {
    pub layer: Layer,
    /// Its names in the trace; `*` at the end is a type, and `_all` where it is collective.
    pub ops: &'static [&'static str],
    pub does: Does,
    pub args: &'static [Arg],
    /// `{0}` is the first argument, `{op}` the name, `{turn}` what the second one grows by with the rank.
    pub c: &'static str,
}

impl Row {
    fn covers(&self, op: &str) -> bool {
        self.ops.iter().any(|own| covers(own, op))
    }
}

/// Whether a name of rows is that of a function. It is put into the program as it stands: it comes from a dataset, and is
/// one of a library or nothing.
pub fn covers(own: &str, op: &str) -> bool {
    let rest_is_type = |rest: &str| {
        let rest = rest.strip_suffix("_all").unwrap_or(rest);
        TYPES.iter().any(|(name, ..)| *name == rest)
    };
    match own.strip_suffix('*') {
        Some(begins) => op.strip_prefix(begins).is_some_and(rest_is_type),
        None => own == op,
    }
}

/// The row of the calls that ranks wait in for each other.
pub const BARRIER: usize = 0;
/// The row of a position that a descriptor had before its first call.
pub const POSITION: usize = 1;

/// All of them. Of several rows for one call the first counts whose values the trace has.
const TABLES: [&[Row]; 10] = [
    posix::ROWS,
    mpiio::ROWS,
    hdf5::ROWS,
    netcdf::ROWS,
    netcdf::ATTRIBUTES,
    netcdf::VARIABLES,
    pnetcdf::ROWS,
    pnetcdf::ATTRIBUTES,
    pnetcdf::VARIABLES,
    pnetcdf::REQUESTS,
];
const ROW_COUNT: usize = {
    let (mut count, mut at) = (0, 0);
    while at < TABLES.len() {
        count += TABLES[at].len();
        at += 1;
    }
    count
};

pub fn rows() -> impl Iterator<Item = &'static Row> {
    TABLES.into_iter().flatten()
}

/// Types in names of functions of `NetCDF`: their bytes and their numbers.
const TYPES: &[(&str, i64, i64)] = &[
    ("schar", 1, 1),
    ("text", 1, 2),
    ("short", 2, 3),
    ("int", 4, 4),
    ("float", 4, 5),
    ("double", 8, 6),
    ("uchar", 1, 7),
    ("ubyte", 1, 7),
    ("ushort", 2, 8),
    ("uint", 4, 9),
    ("long", 8, 10),
    ("longlong", 8, 10),
    ("ulonglong", 8, 11),
];

/// The type in the name of a function: its bytes and its number.
pub fn element_type(op: &str) -> Option<(i64, i64)> {
    let named = |part: &str| TYPES.iter().find(|(name, ..)| *name == part);
    op.split('_').find_map(named).map(|(_, bytes, number)| (*bytes, *number))
}

/// A row with the name of the function, which is the number of it among those that the program has.
pub const fn function(row: usize, op: usize) -> usize {
    op * ROW_COUNT + row
}

/// The row, and the number of the name.
pub fn parts(function: usize) -> Option<(&'static Row, usize)> {
    Some((rows().nth(function % ROW_COUNT)?, function / ROW_COUNT))
}

/// The row of a function.
pub fn named(op: &str) -> Option<usize> {
    rows().position(|row| row.covers(op))
}

/// The rows of a call of a layer, with their numbers.
pub fn of(layer: Layer, op: &str) -> impl Iterator<Item = (usize, &'static Row)> {
    rows().enumerate().filter(move |(_, row)| row.layer == layer && row.covers(op))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_names_of_libraries_are_covered() {
        for (op, covered) in [
            ("pwrite64", true),
            ("nc_put_vara_double", true),
            ("ncmpi_put_vara_double_all", true),
            ("ncmpi_iput_var_int", true),
            ("nc_put_att_text", true),
            ("nc_put_vara_double_x, 0); system(\"id\"); (", false),
            ("nc_put_vara_", false),
            ("nc_put_vara_double_all_all", false),
            ("pwrite64);", false),
            ("", false),
        ] {
            assert_eq!(named(op).is_some(), covered, "{op}");
        }
    }
}
