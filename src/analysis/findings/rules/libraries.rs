//! How programs use the I/O libraries.

use std::collections::BTreeMap;

use super::{Rule, at_least, each, exchange, is_transfer, only, own};
use crate::analysis::findings::case::{Case, Found};
use crate::analysis::findings::groups::group::{Group, IN_CALLS, LIBRARY, WITH_LOOP};
use crate::base::text::{bytes, percent};
use crate::vocabulary::{Kind, Layer};

/// Groups of the critical lane by the function that the program called.
fn by_called(case: &Case, wanted: impl Fn(&Group) -> bool) -> BTreeMap<(Layer, &'static str), Vec<usize>> {
    let mut by = BTreeMap::<_, Vec<usize>>::new();
    for at in case.pick(wanted) {
        by.entry(case.group(at).key.called).or_default().push(at);
    }
    by
}

/// Functions that end the definition of a file of `NetCDF`.
const ENDDEF: [&str; 6] = ["nc_enddef", "nc__enddef", "ncmpi_enddef", "ncmpi__enddef", "nc_redef", "ncmpi_redef"];

pub const HEADER_GROWTH: Rule = Rule {
    id: "header-growth",
    about: "new definitions did not fit into the header of a NetCDF file, and all of its data was moved to make room",
    advice: "define everything before the first data, or reserve room: nc__enddef(ncid, 65536, 4, 0, 4), hint nc_header_align_size",
    source: "NetCDF-C documentation, nc__enddef; PnetCDF hints",
    needs: &[Layer::Syscall],
    sums: false,
    one_node: false,
    thresholds: &[at_least("bytes", 1_048_576.0, "read again while a definition ended")],
    sql: "SELECT op, count(*) AS calls, sum(dur_ns) / 1e9 AS s FROM spans WHERE op LIKE '%enddef' GROUP BY ALL",
    find: header_growth,
};

fn header_growth(case: &mut Case) -> Vec<Found> {
    let inside = case.pick(|group| ENDDEF.contains(&group.key.called.1));
    let reads = only(case, &inside, |group| group.key.layer == Layer::Syscall && group.key.kind == Kind::Read);
    let moved = case.sum(&reads, |group| group.bytes);
    if (moved as f64) < case.threshold("bytes") {
        return Vec::new();
    }
    let ends = case.calls(&only(case, &inside, own));
    let took = case.seconds(&inside, &IN_CALLS);
    let what = format!("the header grew and {} of data were moved, in {ends} ends of definitions", bytes(moved));
    case.found(what, inside, &IN_CALLS, (took * 0.8, took))
}

/// Functions that allocate the space of datasets and variables.
const DEFINE: [&str; 8] = [
    "nc_enddef",
    "nc__enddef",
    "ncmpi_enddef",
    "ncmpi_fill_var_rec",
    "H5Dcreate2",
    "H5Dcreate1",
    "H5Dcreate_anon",
    "H5Dset_extent",
];

pub const FILL_VALUES: Rule = Rule {
    id: "fill-values",
    about: "space was filled with fill values when it was defined, and data was written over them",
    advice: "switch filling off: nc_set_fill(ncid, NC_NOFILL, &old), nc_def_var_fill, H5Pset_fill_time(dcpl, H5D_FILL_TIME_NEVER)",
    source: "NetCDF-C and HDF5 documentation; Drishti",
    needs: &[Layer::Syscall],
    sums: false,
    one_node: false,
    thresholds: &[at_least("bytes", 4_194_304.0, "written while space was defined")],
    sql: "SELECT r.op, sum(s.bytes) AS written, sum(s.dur_ns) / 1e9 AS s FROM spans s JOIN spans r ON s.host IS NOT DISTINCT FROM r.host AND s.root_id = r.span_id WHERE s.layer = 'syscall' AND s.kind = 'write' GROUP BY ALL ORDER BY written DESC",
    find: fill_values,
};

fn fill_values(case: &mut Case) -> Vec<Found> {
    let inside = case.pick(|group| DEFINE.contains(&group.key.called.1));
    let writes = only(case, &inside, |group| group.key.layer == Layer::Syscall && group.key.kind == Kind::Write);
    let written = case.sum(&writes, |group| group.bytes);
    if (written as f64) < case.threshold("bytes") {
        return Vec::new();
    }
    let took = case.seconds(&inside, &IN_CALLS);
    let what = format!("{} of fill values written when space was defined", bytes(written));
    case.found(what, inside, &IN_CALLS, (took * 0.75, took))
}

pub const BLOCKING_PUTS: Rule = Rule {
    id: "blocking-puts",
    about: "each small put or get of PnetCDF is a collective call of its own",
    advice: "use ncmpi_iput_* (or ncmpi_bput_*) and one ncmpi_wait_all for many of them",
    source: "PnetCDF documentation, nonblocking API",
    needs: &[Layer::Pnetcdf],
    sums: true,
    one_node: false,
    thresholds: &[
        at_least("calls", 50.0, "calls of a rank"),
        at_least("bytes", 1_048_576.0, "the mean size is below this"),
    ],
    sql: "SELECT op, count(*) AS calls, avg(req_bytes) AS mean_bytes, sum(dur_ns) / 1e9 AS s FROM spans WHERE layer = 'pnetcdf' AND op LIKE '%_all' GROUP BY ALL ORDER BY s DESC",
    find: blocking_puts,
};

fn blocking_puts(case: &mut Case) -> Vec<Found> {
    let inside = case.pick(|group| {
        let (layer, op) = group.key.called;
        layer == Layer::Pnetcdf
            && op.ends_with("_all")
            && (op.starts_with("ncmpi_put_") || op.starts_with("ncmpi_get_"))
    });
    let calls_of = only(case, &inside, own);
    let calls = case.calls(&calls_of);
    let size = case.sum(&calls_of, |group| group.asked) as f64 / calls.max(1) as f64;
    if (calls as f64) < case.threshold("calls") || size >= case.threshold("bytes") {
        return Vec::new();
    }
    let took = case.seconds(&inside, &IN_CALLS);
    let moved = case.run.transfer(Kind::Write, case.sum(&calls_of, |group| group.asked));
    let what = format!("{calls} blocking collective puts or gets, {} each", each(took, calls));
    let one = took / calls as f64;
    // A put that is only posted is checked and packed, too.
    let posted = case.seconds(&calls_of, &[LIBRARY]);
    // The call that waits for all of them is collective.
    let messages = exchange(case);
    let left = (moved.0 + one + messages, moved.1 + 4.0 * one + posted + messages * 3.0);
    case.found(what, inside, &IN_CALLS, (took * 0.85 - left.1, took - left.0))
}

pub const HDF5_CHUNK_CACHE: Rule = Rule {
    id: "hdf5-chunk-cache",
    about: "chunks of a dataset are read, and decompressed, again and again: they do not stay in the chunk cache",
    advice: "make the chunk cache larger than the chunks of one access (H5Pset_chunk_cache; h5py: rdcc_nbytes), or read along the chunks",
    source: "HDF5 documentation, chunking; analysis rule X06",
    needs: &[Layer::Hdf5, Layer::Syscall],
    sums: false,
    one_node: false,
    thresholds: &[at_least("times", 2.5, "bytes read from the file over the size of what was read")],
    sql: "SELECT host, object_id, count(*) AS calls, sum(self_ns) / 1e9 AS library_s FROM spans WHERE layer = 'hdf5' AND kind = 'read' GROUP BY ALL ORDER BY library_s DESC",
    find: hdf5_chunk_cache,
};

fn hdf5_chunk_cache(case: &mut Case) -> Vec<Found> {
    let libraries = [Layer::Hdf5, Layer::Netcdf];
    case.leaves_out_mixed();
    let reads = by_called(case, |group| libraries.contains(&group.key.called.0));
    let mut found = Vec::new();
    for ((_, op), inside) in reads {
        let of_file = only(case, &inside, |g| g.key.layer == Layer::Syscall && g.key.kind == Kind::Read && !g.mixed);
        let read = case.sum(&of_file, |group| group.bytes);
        let extent = case.sum(&of_file, |group| group.extent.map_or(0, |(from, to)| to.saturating_sub(from)));
        let calls = case.calls(&only(case, &inside, |group| own(group) && group.key.kind == Kind::Read));
        let times = read as f64 / extent.max(1) as f64;
        if calls < 2 || times < case.threshold("times") {
            continue;
        }
        let took = case.seconds(&inside, &IN_CALLS);
        let library = case.seconds(&inside, &[LIBRARY]);
        let again = took * (1.0 - 1.0 / times);
        let what = format!(
            "{calls} calls of {op} read the same chunks {times:.1} times; {} of the time is the library, which decompresses",
            percent(library / took.max(1e-9))
        );
        found.extend(case.found(what, inside, &IN_CALLS, (again * 0.9, took * 0.99)));
    }
    found
}

pub const HDF5_METADATA: Rule = Rule {
    id: "hdf5-metadata",
    about: "attributes of HDF5 are written or created, or the file is flushed, again and again",
    advice: "write an attribute once, at the end, and flush seldom; keep counters in memory or in one dataset",
    source: "HDF5 documentation, attributes; analysis rule X19",
    needs: &[Layer::Hdf5],
    sums: true,
    one_node: false,
    thresholds: &[at_least("calls", 200.0, "calls")],
    sql: "SELECT op, count(*) AS calls, sum(dur_ns) / 1e9 AS s FROM spans WHERE layer = 'hdf5' AND op LIKE 'H5A%' GROUP BY ALL ORDER BY s DESC",
    find: hdf5_metadata,
};

fn is_metadata((layer, op): (Layer, &str)) -> bool {
    layer == Layer::Hdf5 && (op.starts_with("H5A") || ["H5Fflush", "H5Dflush", "H5Oflush"].contains(&op))
}

fn hdf5_metadata(case: &mut Case) -> Vec<Found> {
    let inside = case.pick(|group| is_metadata(group.key.called));
    let calls = case.calls(&only(case, &inside, own));
    if (calls as f64) < case.threshold("calls") {
        return Vec::new();
    }
    let took = case.seconds(&inside, &WITH_LOOP);
    let what = format!("{calls} calls of HDF5 on attributes, or to flush, {} each", each(took, calls));
    case.found(what, inside, &WITH_LOOP, (took * 0.85, took))
}

pub const ELEMENT_AT_A_TIME: Rule = Rule {
    id: "element-at-a-time",
    about: "each call of a library moves a few bytes: the calls cost the time, not the file system",
    advice: "move a whole slice in a call: hyperslabs, nc_put_vara, dataset[i:j] of h5py",
    source: "HDF5 and NetCDF documentation",
    needs: &[Layer::Hdf5],
    sums: true,
    one_node: false,
    thresholds: &[at_least("calls", 1000.0, "calls"), at_least("bytes", 4096.0, "the mean size is below this")],
    sql: "SELECT op, count(*) AS calls, avg(req_bytes) AS mean_bytes, sum(dur_ns) / 1e9 AS s FROM spans WHERE layer IN ('hdf5', 'netcdf', 'pnetcdf') AND parent_id IS NULL GROUP BY ALL ORDER BY s DESC",
    find: element_at_a_time,
};

fn element_at_a_time(case: &mut Case) -> Vec<Found> {
    let libraries = [Layer::Hdf5, Layer::Netcdf, Layer::Pnetcdf];
    let by = by_called(case, |group| libraries.contains(&group.key.called.0) && !is_metadata(group.key.called));
    let mut small = Vec::new();
    let mut calls = 0;
    for inside in by.into_values() {
        let own = only(case, &inside, |group| own(group) && is_transfer(group.key.kind) && group.sized > 0);
        let (n, asked) = (case.calls(&own), case.sum(&own, |group| group.asked));
        if n as f64 >= case.threshold("calls") && (asked as f64) < case.threshold("bytes") * n as f64 {
            calls = n.saturating_add(calls);
            small.extend(inside);
        }
    }
    let Some(first) = small.first().map(|at| case.group(*at).key.called) else { return Vec::new() };
    // What the library is asked for besides each transfer: selections, types, handles.
    let around = case.pick(|group| {
        group.key.called.0 == first.0 && !is_transfer(group.key.kind) && own(group) && group.calls >= calls / 2
    });
    small.extend(around);
    let took = case.seconds(&small, &WITH_LOOP);
    let what = format!("{calls} calls of {} for a few bytes each, {} each", first.1, each(took, calls));
    // Short calls are slower by more than the hooks' own time: caches and branch predictors begin anew after each of them.
    case.found(what, small, &WITH_LOOP, (took * 0.55, took))
}

pub const LAYER_OVERHEAD: Rule = Rule {
    id: "layer-overhead",
    about: "a library spends the time itself: conversion of types, filters, packing, and not the file system",
    advice: "use the same type in memory and in the file, and one byte order; leave filters out or choose a cheaper one",
    source: "HDF5 documentation, datatype conversion and filters; analysis rule X08",
    needs: &[Layer::Syscall],
    sums: true,
    one_node: false,
    thresholds: &[
        at_least("share", 0.5, "part of the time of these calls that is the library's own"),
        at_least("run_share", 0.2, "part of the run"),
    ],
    sql: "SELECT layer, op, count(*) AS calls, sum(self_ns) / 1e9 AS library_s, sum(dur_ns) / 1e9 AS s FROM spans WHERE layer IN ('hdf5', 'netcdf', 'pnetcdf') GROUP BY ALL ORDER BY library_s DESC",
    find: layer_overhead,
};

fn layer_overhead(case: &mut Case) -> Vec<Found> {
    let libraries = [Layer::Hdf5, Layer::Netcdf, Layer::Pnetcdf];
    let calls = by_called(case, |group| libraries.contains(&group.key.called.0) && !group.key.collective);
    let mut found = Vec::new();
    for ((layer, op), inside) in calls {
        let own = only(case, &inside, own);
        if !own.iter().any(|at| is_transfer(case.group(*at).key.kind)) {
            continue;
        }
        let (library, took) = (case.seconds(&inside, &[LIBRARY]), case.seconds(&inside, &IN_CALLS));
        if library < case.threshold("share") * took || library < case.threshold("run_share") * case.run.wall {
            continue;
        }
        let what =
            format!("{} of the time of {} calls of {op} is {layer} itself", percent(library / took), case.calls(&own));
        found.extend(case.found(what, inside, &[LIBRARY], (library * 0.6, library)));
    }
    found
}
