//! The calls that are replayed as statements of Fortran: which function, and what it is given.

use crate::replay_code::calls::covers;

/// Functions of the trace, and their statements: as in [`Row`](crate::replay_code::calls::Row), with `{f}` for the
/// function in Fortran, `{data}` and `{one}` for all data as its type, and an element of it.
const STATEMENTS: &[(&[&str], &str)] = &[
    (
        &["H5Fcreate", "H5Fopen"],
        "call {f}(path({1}), {2}, id({0}), error, access_prp=access_by({3}, {4}))\ncall good(\"{op}\", error)",
    ),
    (
        &["H5Gcreate2", "H5Gcreate1", "H5Dcreate2", "H5Dcreate1", "H5Acreate2", "H5Acreate1", "H5Acreate_by_name"],
        "call create_object(\"{op}\", id({1}), {2}, id({0}))",
    ),
    (
        &[
            "H5Gopen2",
            "H5Gopen1",
            "H5Dopen2",
            "H5Dopen1",
            "H5Aopen",
            "H5Aopen_by_name",
            "H5Aopen_name",
            "H5Aopen_idx",
            "H5Aopen_by_idx",
            "H5Oopen",
        ],
        "call open_object(\"{op}\", id({1}), {2}, id({0}))",
    ),
    (
        &["H5Fclose", "H5Gclose", "H5Dclose", "H5Aclose", "H5Oclose"],
        "call {f}(id({0}), error)\ncall good(\"{op}\", error)",
    ),
    (
        &["H5Dread", "H5Dwrite"],
        "call {f}(id({0}), type_of({2}), buffer, error, memory_of({count}), selected({1}, {start}, {count}), by({3}))\n\
         call good(\"{op}\", error)",
    ),
    (&["H5Awrite", "H5Aread"], "call {f}(id({0}), type_of({2}), buffer, error)\ncall good(\"{op}\", error)"),
    (&["H5Fflush"], "call {f}(id({0}), h5f_scope_global_f, error)\ncall good(\"{op}\", error)"),
    (
        &["ncmpi_create", "ncmpi_open"],
        "call good(\"{op}\", {f}(communicator({3}), path({1}), {2}, hints({4}), nc({0})))",
    ),
    (&["ncmpi_close"], "call good(\"{op}\", {f}(nc({0})))\ncall forget(nc({0}))"),
    (&["ncmpi_def_var"], "call good(\"{op}\", define(nc({0}), {1}))"),
    (
        &[
            "ncmpi_enddef",
            "ncmpi_redef",
            "ncmpi_sync",
            "ncmpi_begin_indep_data",
            "ncmpi_end_indep_data",
            "ncmpi_flush",
            "ncmpi_sync_numrecs",
        ],
        "call good(\"{op}\", {f}(nc({0})))",
    ),
    (&["ncmpi_wait_all", "ncmpi_wait"], "call good(\"{op}\", {f}(nc({0}), nf_req_all, requests, states))"),
    (&["ncmpi__enddef"], "call good(\"enddef\", nfmpi_enddef(nc({0})))"),
    (
        &["ncmpi_put_att_text"],
        "call good(\"{op}\", {f}(nc({0}), variable(nc({0}), {1}), objects({1})%attribute, \
         int({2}, mpi_offset_kind), text(:{2})))",
    ),
    (
        &["ncmpi_put_att_*"],
        "call good(\"{op}\", {f}(nc({0}), variable(nc({0}), {1}), objects({1})%attribute, {3}, \
         int({2}, mpi_offset_kind), {data}))",
    ),
    (&["ncmpi_get_att_*"], "call good(\"{op}\", {f}(nc({0}), variable(nc({0}), {1}), objects({1})%attribute, {data}))"),
    (&["ncmpi_put_var_*", "ncmpi_get_var_*"], "call good(\"{op}\", {f}(nc({0}), variable(nc({0}), {1}), {data}))"),
    (
        &["ncmpi_put_vara_*", "ncmpi_get_vara_*"],
        "call good(\"{op}\", {f}(nc({0}), variable(nc({0}), {1}), {start}, {count}, {data}))",
    ),
    (
        &["ncmpi_put_var1_*", "ncmpi_get_var1_*"],
        "call good(\"{op}\", {f}(nc({0}), variable(nc({0}), {1}), {start}, {one}))",
    ),
    (
        &["ncmpi_put_vars_*", "ncmpi_get_vars_*"],
        "call good(\"{op}\", {f}(nc({0}), variable(nc({0}), {1}), {start}, {count}, ones({count}), {data}))",
    ),
    (
        &["ncmpi_put_varm_*", "ncmpi_get_varm_*"],
        "call good(\"{op}\", {f}(nc({0}), variable(nc({0}), {1}), {start}, {count}, ones({count}), map_of({count}), \
         {data}))",
    ),
    (
        &["ncmpi_put_varn_*", "ncmpi_get_varn_*"],
        "call good(\"{op}\", {f}(nc({0}), variable(nc({0}), {1}), 1, {start}, {count}, {data}))",
    ),
    (
        &["ncmpi_iput_var_*", "ncmpi_iget_var_*"],
        "call good(\"{op}\", {f}(nc({0}), variable(nc({0}), {1}), {data}, request))",
    ),
    (
        &["ncmpi_iput_vara_*", "ncmpi_iget_vara_*"],
        "call good(\"{op}\", {f}(nc({0}), variable(nc({0}), {1}), {start}, {count}, {data}, request))",
    ),
    (
        &["ncmpi_iput_var1_*", "ncmpi_iget_var1_*"],
        "call good(\"{op}\", {f}(nc({0}), variable(nc({0}), {1}), {start}, {one}, request))",
    ),
    (
        &["ncmpi_iput_vars_*", "ncmpi_iget_vars_*"],
        "call good(\"{op}\", {f}(nc({0}), variable(nc({0}), {1}), {start}, {count}, ones({count}), {data}, request))",
    ),
    (
        &["ncmpi_iput_varm_*", "ncmpi_iget_varm_*"],
        "call good(\"{op}\", {f}(nc({0}), variable(nc({0}), {1}), {start}, {count}, ones({count}), map_of({count}), \
         {data}, request))",
    ),
    (
        &["ncmpi_iput_varn_*", "ncmpi_iget_varn_*"],
        "call good(\"{op}\", {f}(nc({0}), variable(nc({0}), {1}), 1, {start}, {count}, {data}, request))",
    ),
];

/// Types in names of functions of C, those in names of Fortran, and all data as the type.
const TYPES: &[(&str, &str, &str)] = &[
    ("schar", "int1", "bytes"),
    ("text", "text", "text"),
    ("short", "int2", "shorts"),
    ("int", "int", "ints"),
    ("float", "real", "reals"),
    ("double", "double", "doubles"),
    ("uchar", "int1", "bytes"),
    ("ubyte", "int1", "bytes"),
    ("ushort", "int2", "shorts"),
    ("uint", "int", "ints"),
    ("long", "int8", "longs"),
    ("longlong", "int8", "longs"),
    ("ulonglong", "int8", "longs"),
];
/// Those that are another type in Fortran.
const OTHER: &[&str] = &["uchar", "ubyte", "ushort", "uint", "long", "ulonglong"];

/// The statements of a function of the trace, one on each line.
pub fn of(op: &str) -> Option<&'static str> {
    let found = STATEMENTS.iter().find(|(ops, _)| ops.iter().any(|own| covers(own, op)));
    found.map(|(_, statements)| *statements)
}

fn element(op: &str) -> Option<&'static (&'static str, &'static str, &'static str)> {
    op.split('_').find_map(|part| TYPES.iter().find(|(name, ..)| *name == part))
}

/// The function in Fortran, as a program names it.
pub fn function(op: &str) -> String {
    // One name for all types: the module of `PnetCDF` has not these, and `pnetcdf.f90` declares them.
    let is_whole = op.starts_with("ncmpi_put_var_") && op.ends_with("_all");
    if is_whole { "put_var_all".into() } else { named(op) }
}

/// The function in Fortran.
fn named(op: &str) -> String {
    let Some(name) = op.strip_prefix("ncmpi_") else { return format!("{}_f", op.to_lowercase()) };
    let typed = |part: &str| element(part).map_or_else(|| part.to_owned(), |(_, fortran, _)| (*fortran).to_owned());
    format!("nfmpi_{}", name.split('_').map(typed).collect::<Vec<_>>().join("_"))
}

/// All data, as the type of a function.
pub fn data(op: &str) -> &'static str {
    element(op).map_or("bytes", |(.., data)| data)
}

/// An element of it.
pub fn one(op: &str) -> String {
    match data(op) {
        "text" => "text".into(),
        data => format!("{data}(1)"),
    }
}

/// The function in Fortran, of one whose type Fortran has not.
pub fn other(op: &str) -> Option<String> {
    element(op).filter(|(name, ..)| OTHER.contains(name)).map(|_| named(op))
}
