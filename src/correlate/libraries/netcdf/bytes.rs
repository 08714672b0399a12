//! How many bytes a call moves, from its counts and what is known of its variable.

use crate::catalog::Async;
use crate::catalog::variables::{Element, Meaning, Region, slot};
use crate::correlate::libraries::netcdf::On;
use crate::correlate::libraries::netcdf::file::{CHAR, File, Key, STRING, Variable};
use crate::correlate::seen::Seen;
use crate::vocabulary::Layer;

/// Reasons for bytes that are not known.
pub const RANK: &str = "the number of dimensions of the variable was not seen";
pub const TYPE: &str = "the size of the type was not seen";
pub const LENGTH: &str = "the length of the attribute was not seen";
const LENGTHS: &str = "the lengths of the dimensions were not seen";
const COUNTS: &str = "the counts could not be read as a whole";
const DATATYPES: &str = "a list of MPI datatypes";
const INSIDE: &str = "the calls inside it have no byte counts";

type Bytes = Result<i64, &'static str>;

/// More dimensions than any variable has (`NC_MAX_VAR_DIMS`, netcdf.h): not a number of dimensions.
const MAX_DIMENSIONS: u64 = 1024;
/// `NC_REQ_NULL`, pnetcdf.h.
const NO_REQUEST: i64 = -1;

/// Values that inner functions passed to the call.
#[derive(Debug, Clone, Copy, Default)]
pub struct InnerValues {
    pub rank: Option<usize>,
    /// Bytes of an element in memory.
    pub size: Option<i64>,
}

impl InnerValues {
    pub fn of(on: &On, region: Region) -> Self {
        let packed = on.above().checked_sub(1).filter(|_| !matches!(region, Region::List | Region::Datatype));
        let rank = packed.map(|n| n & 0xffff).filter(|rank| *rank <= MAX_DIMENSIONS);
        let size = packed.map(|n| (n >> 16) as i64).filter(|size| *size > 0);
        Self { rank: rank.map(|rank| rank as usize), size }
    }
}

/// `nc_type` of the functions that have it in their name and not among their arguments.
pub fn text_type(op: &str) -> Option<i32> {
    match op.rsplit('_').next() {
        Some("text") => Some(CHAR),
        Some("string") => Some(STRING),
        _ => None,
    }
}

/// The bytes of a call on one variable.
pub fn of(on: &On, file: &File, key: Key, region: Region, element: Element, inner: InnerValues) -> Bytes {
    let variable = file.variables.get(&key).cloned().unwrap_or_default();
    let submits = on.seen.row.asynchronous() == Async::SubmitOf;
    if submits && on.ok && on.got() == Some(NO_REQUEST) {
        return Ok(0); // nothing to move makes no request
    }
    let elements = || elements(on, file, &variable, region);
    let in_file = || {
        let size = variable.kind.and_then(|kind| file.size(kind));
        match size {
            Some(size) => Ok(elements()?.saturating_mul(size)),
            None => hdf5_inside(on.seen).ok_or(TYPE),
        }
    };
    match (element, on.len()) {
        (Element::Bytes(size), _) => Ok(elements()?.saturating_mul(i64::from(size))),
        (Element::Variable, _) => in_file(),
        (Element::Datatypes, _) => Err(DATATYPES),
        (Element::Datatype, Some(size)) if size < 0 => Ok(elements()?.saturating_mul(-size)),
        (Element::Datatype, Some(bytes)) => Ok(bytes),
        (Element::Datatype, None) => match inner.size {
            Some(size) => Ok(elements()?.saturating_mul(size)),
            // No datatype: what is in memory is what is in the file.
            None => in_file(),
        },
    }
}

/// How many elements a call on one variable moves.
fn elements(on: &On, file: &File, variable: &Variable, region: Region) -> Bytes {
    let seen = on.seen;
    let shape = seen.numbers(slot::SHAPE);
    match region {
        Region::One => Ok(1),
        Region::Whole => match shape {
            Some(shape) => Ok(product(&shape)),
            None if variable.rank == Some(0) => Ok(1),
            None => whole(file, variable),
        },
        Region::Box => match (shape, seen.numbers(slot::COUNT)) {
            // PnetCDF passes its counts, NetCDF the lengths that replace counts that are not given.
            (Some(shape), counts) if seen.row.layer == Layer::Pnetcdf || counts.is_none() => Ok(product(&shape)),
            (_, counts) => boxed(counts.as_deref(), variable.rank.ok_or(RANK)?),
        },
        Region::List => list(on, variable),
        Region::Datatype => on.got().ok_or(COUNTS),
        Region::Several => Err(COUNTS),
    }
}

fn product(counts: &[i64]) -> i64 {
    counts.iter().fold(1, |all, n| all.saturating_mul(*n))
}

fn boxed(counts: Option<&[i64]>, rank: usize) -> Bytes {
    match counts {
        _ if rank == 0 => Ok(1),
        Some(counts) => counts.get(..rank).map(product).ok_or(COUNTS),
        None => Err(COUNTS),
    }
}

/// All of a variable as this process knows it: others may have made it grow.
fn whole(file: &File, variable: &Variable) -> Bytes {
    let lengths = file.lengths(variable).filter(|_| !(file.parallel && file.grows(variable)));
    lengths.as_deref().map(product).ok_or(LENGTHS)
}

/// Several boxes of one variable.
fn list(on: &On, variable: &Variable) -> Bytes {
    let given = on.len().filter(|_| on.seen.row.meaning() != Meaning::Data(Region::List, Element::Datatype));
    let sums = || on.seen.numbers(slot::BOXES);
    match (on.above(), variable.rank) {
        (0, _) => Ok(0),
        (_, Some(0)) => Ok(1),
        (_, Some(rank)) => sums().and_then(|sums| sums.get(rank).copied()).or(given).ok_or(COUNTS),
        (_, None) => given.ok_or(RANK),
    }
}

/// The bytes of a call on several variables: each with its own counts.
pub fn several(seen: &Seen, element: Element) -> Bytes {
    let Element::Bytes(size) = element else { return Err(DATATYPES) };
    let variables = seen.numbers(slot::IDS).unwrap_or_default();
    let counts: Vec<Vec<i64>> = seen.arrays(slot::SHAPE).collect();
    if counts.len() != variables.len() {
        return Err(COUNTS);
    }
    let elements = counts.iter().fold(0_i64, |sum, counts| sum.saturating_add(product(counts)));
    Ok(elements.saturating_mul(i64::from(size)))
}

/// What calls of the same layer and kind right inside this one were asked to move.
pub fn inside(seen: &Seen) -> Bytes {
    let calls = seen.below.iter().map(|node| &node.span).filter(|s| s.parent_id.is_none() && s.errno == 0);
    let mut asked = calls.filter(|s| s.layer == seen.row.layer && s.kind == seen.row.kind).map(|s| s.req_bytes);
    asked.try_fold(0_i64, |sum, bytes| Some(sum.saturating_add(bytes?))).ok_or(INSIDE)
}

/// The bytes requested of HDF5 by a call that shares its type: the last transfer inside it, after those that read metadata.
fn hdf5_inside(seen: &Seen) -> Option<i64> {
    let mut calls = seen.below.iter().map(|node| &node.span).filter(|s| s.parent_id.is_none());
    calls.rfind(|s| s.layer == Layer::Hdf5 && s.kind == seen.row.kind && s.op.starts_with("H5D"))?.req_bytes
}

/// Up to which index (exclusive) of the variable's first dimensions a call goes.
pub fn ends(seen: &Seen, region: Region) -> Vec<i64> {
    let array = |slot| seen.numbers(slot).unwrap_or_default();
    let (starts, counts) = (array(slot::START), array(slot::COUNT));
    match region {
        Region::One => starts.iter().map(|start| start.saturating_add(1)).collect(),
        Region::Box => {
            let strides = seen.numbers(slot::STRIDE);
            let stride = |d: usize| strides.as_ref().and_then(|s| s.get(d)).copied().unwrap_or(1);
            let end = |(d, (start, count)): (usize, (&i64, &i64))| {
                let last = count.saturating_sub(1).saturating_mul(stride(d));
                if *count > 0 { start.saturating_add(last).saturating_add(1) } else { 0 }
            };
            starts.iter().zip(&counts).enumerate().map(end).collect()
        }
        // Without an end no box has elements.
        Region::List => array(slot::BOXES).first().copied().into_iter().collect(),
        _ => Vec::new(),
    }
}
