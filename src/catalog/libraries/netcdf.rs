//! NetCDF-C rows. Signatures: the headers of 4.9.0 (`netcdf.h`, `netcdf_par.h`, `netcdf_mem.h`, `netcdf_filter.h`). An `ncid` is an `int`: the file
//! in its high half, the group in its low half. Results are 0, negative `NC_E...`, or a positive error number of the system.

use crate::catalog::Src::{self, Arg, Behind, BehindInt, FromInner, Int, Mul, Out, OutInt, PairInner, RetBehind};
use crate::catalog::def::{Def, row, rows};
use crate::catalog::role::{Inner, InnerValue, Variables};
use crate::catalog::variables::{Element, Meaning, Region, slot};
use crate::catalog::{Array, Count, Fails, Family, Row, When};
use crate::vocabulary::{Kind, Layer, flag};

const fn nc(symbol: &'static str, kind: Kind) -> Def<Variables> {
    row(Family::Netcdf, Layer::Netcdf, symbol, kind).handle(Int(0)).variables().fails(Fails::NonZero)
}
/// A call that is collective in a file that was opened for parallel access.
const fn all(row: Def<Variables>) -> Def<Variables> {
    row.flags(flag::COLLECTIVE)
}
const fn meta(symbol: &'static str) -> Def<Variables> {
    nc(symbol, Kind::Meta)
}
/// The library itself often calls these, too.
const fn asks(symbol: &'static str) -> Def<Variables> {
    meta(symbol).outermost()
}
/// Changes what the file is made of.
const fn define(symbol: &'static str) -> Def<Variables> {
    all(meta(symbol))
}
/// `int f(path, mode, ..., int *ncid)`
const fn open(symbol: &'static str, ncid: u8) -> Def<Variables> {
    nc(symbol, Kind::Open).opens(OutInt(ncid)).path(0).len(Int(1)).meaning(Meaning::File { parallel: false })
}
/// The same with a communicator.
const fn open_par(symbol: &'static str) -> Def<Variables> {
    all(open(symbol, 4)).meaning(Meaning::File { parallel: true })
}
const fn close(symbol: &'static str) -> Def<Variables> {
    all(nc(symbol, Kind::Close)).closes().meaning(Meaning::End)
}
const fn by_path(symbol: &'static str) -> Def<Variables> {
    meta(symbol).unrelated().handle(Src::None).path(0)
}
/// `(ncid, varid, ...)`
const fn variable(symbol: &'static str, meaning: Meaning) -> Def<Variables> {
    meta(symbol).id(Int(1)).meaning(meaning)
}
const fn is_variable(symbol: &'static str) -> Def<Variables> {
    variable(symbol, Meaning::Variable { new: false })
}
/// `(ncid, varid, name, ...)`
const fn attribute(symbol: &'static str, meaning: Meaning) -> Def<Variables> {
    variable(symbol, meaning).path(2)
}
/// `(ncid, type, ...)`. Of a predefined type the library also answers without a file.
const fn type_of(symbol: &'static str) -> Def<Variables> {
    variable(symbol, Meaning::Type).unrelated()
}
const fn ids(arg: u8, count: Count) -> Array {
    Array::ints(slot::IDS, When::Return, arg, count)
}
const fn per_dimension(slot: u8, arg: u8) -> Array {
    Array::longs(slot, When::Entry, arg, Count::Rank)
}
/// `(ncid, varid, [start, [count, [stride, ...]]] data)`. The number of dimensions is an inner value.
const fn data(symbol: &'static str, kind: Kind, region: Region, element: Element, stride: bool) -> Def<Variables> {
    let row = all(nc(symbol, kind)).meaning(Meaning::Data(region, element)).id(PairInner(1, 0));
    match region {
        Region::Whole => row.wants(0, InnerValue::Shape),
        Region::One => row.array(0, per_dimension(slot::START, 2)),
        _ => {
            let row = row.wants(0, InnerValue::Rank).wants(1, InnerValue::Shape);
            let row = row.array(0, per_dimension(slot::START, 2)).array(1, per_dimension(slot::COUNT, 3));
            if stride { row.array(2, per_dimension(slot::STRIDE, 4)) } else { row }
        }
    }
}

/// The functions of a name for each type in memory, and the bytes of an element.
macro_rules! typed {
    ($stem:literal) => {
        [
            ($stem, Element::Variable),
            (concat!($stem, "_text"), Element::Bytes(1)),
            (concat!($stem, "_schar"), Element::Bytes(1)),
            (concat!($stem, "_uchar"), Element::Bytes(1)),
            (concat!($stem, "_ubyte"), Element::Bytes(1)),
            (concat!($stem, "_short"), Element::Bytes(2)),
            (concat!($stem, "_ushort"), Element::Bytes(2)),
            (concat!($stem, "_int"), Element::Bytes(4)),
            (concat!($stem, "_uint"), Element::Bytes(4)),
            (concat!($stem, "_long"), Element::Bytes(8)),
            (concat!($stem, "_longlong"), Element::Bytes(8)),
            (concat!($stem, "_ulonglong"), Element::Bytes(8)),
            (concat!($stem, "_float"), Element::Bytes(4)),
            (concat!($stem, "_double"), Element::Bytes(8)),
            // Pointers to the strings.
            (concat!($stem, "_string"), Element::Bytes(8)),
        ]
    };
}

fn data_rows() -> impl Iterator<Item = Row> {
    [
        (Kind::Write, Region::Whole, false, typed!("nc_put_var")),
        (Kind::Write, Region::One, false, typed!("nc_put_var1")),
        (Kind::Write, Region::Box, false, typed!("nc_put_vara")),
        (Kind::Write, Region::Box, true, typed!("nc_put_vars")),
        (Kind::Write, Region::Box, true, typed!("nc_put_varm")),
        (Kind::Read, Region::Whole, false, typed!("nc_get_var")),
        (Kind::Read, Region::One, false, typed!("nc_get_var1")),
        (Kind::Read, Region::Box, false, typed!("nc_get_vara")),
        (Kind::Read, Region::Box, true, typed!("nc_get_vars")),
        (Kind::Read, Region::Box, true, typed!("nc_get_varm")),
    ]
    .into_iter()
    .flat_map(|(kind, region, stride, names)| {
        names.into_iter().map(move |(symbol, element)| data(symbol, kind, region, element, stride).done())
    })
}

/// `(ncid, varid, name, [type, [length,]] data)`
fn attribute_rows() -> impl Iterator<Item = Row> {
    let put = typed!("nc_put_att").into_iter().map(|(symbol, element)| {
        let row = all(attribute(symbol, Meaning::AttributeData(element)));
        let row = row.kind(Kind::Write);
        if symbol.ends_with("_text") || symbol.ends_with("_string") {
            row.len(Arg(3)).done()
        } else {
            row.len(Arg(4)).got(Int(3)).done()
        }
    });
    let get = typed!("nc_get_att").into_iter().map(|(symbol, element)| {
        let row = attribute(symbol, Meaning::AttributeData(element)).wants(0, InnerValue::Length).len(FromInner(0));
        row.kind(Kind::Read).done()
    });
    put.chain(get)
}

/// An exported function that the calls run through and that has values which their arguments lack.
const fn inner(symbol: &'static str, gives: InnerValue, value: Src) -> Def<Inner> {
    nc(symbol, Kind::Other).gives(gives, value)
}

const ROWS: &[Row] = rows![
    open("nc_create", 2),
    open("nc__create", 4),
    open("nc__create_mp", 5),
    open("nc_create_mem", 3),
    open_par("nc_create_par"),
    open_par("nc_create_par_fortran"),
    open("nc_open", 2),
    open("nc__open", 3),
    open("nc__open_mp", 4),
    open("nc_open_mem", 4),
    open("nc_open_memio", 3),
    open_par("nc_open_par"),
    open_par("nc_open_par_fortran"),
    close("nc_close"),
    close("nc_close_memio"),
    close("nc_abort"),
    by_path("nc_delete"),
    by_path("nc_delete_mp"),
    all(nc("nc_sync", Kind::Sync)),
    define("nc_redef"),
    define("nc_enddef"),
    define("nc__enddef"),
    define("nc_set_fill"),
    variable("nc_var_par_access", Meaning::Access).len(Int(2)),
    nc("nc_put_rec", Kind::Write).meaning(Meaning::Inner),
    nc("nc_get_rec", Kind::Read).meaning(Meaning::Inner),
    nc("nc_copy_var", Kind::Write).handle(Int(2)).meaning(Meaning::Inner),
    nc("nc_copy_att", Kind::Write).handle(Int(3)).meaning(Meaning::Inner),
    // Dimensions.
    define("nc_def_dim").len(Arg(2)).id(OutInt(3)).meaning(Meaning::Dimension { new: true }),
    define("nc_rename_dim"),
    asks("nc_inq_dim").id(Int(1)).len(Out(3)).meaning(Meaning::Dimension { new: false }),
    asks("nc_inq_dimlen").id(Int(1)).len(Out(2)).meaning(Meaning::Dimension { new: false }),
    asks("nc_inq_dimid"),
    asks("nc_inq_dimids"),
    asks("nc_inq_dimname"),
    asks("nc_inq_unlimdim"),
    asks("nc_inq_unlimdims"),
    // Variables.
    define("nc_def_var")
        .path(1)
        .len(Int(2))
        .got(Int(3))
        .id(OutInt(5))
        .array(0, Array::ints(slot::IDS, When::Entry, 4, Count::Arg(3)).rank())
        .meaning(Meaning::Variable { new: true }),
    define("nc_rename_var").path(2).id(Int(1)).meaning(Meaning::Variable { new: false }),
    is_variable("nc_inq_var").outermost().names(2).len(OutInt(3)).got(OutInt(4)).array(0, ids(5, Count::At(4)).rank()),
    is_variable("nc_inq_varid").outermost().path(1).id(OutInt(2)),
    is_variable("nc_inq_varname").outermost().names(2),
    is_variable("nc_inq_vartype").len(OutInt(2)),
    is_variable("nc_inq_varndims").outermost().got(OutInt(2)),
    is_variable("nc_inq_vardimid").outermost().array(0, ids(2, Count::Rank)),
    asks("nc_inq_varids"),
    asks("nc_inq_varnatts"),
    all(variable("nc_def_var_chunking", Meaning::Storage))
        .len(Int(2))
        .array(0, Array::longs(slot::CHUNK, When::Entry, 3, Count::Rank)),
    variable("nc_inq_var_chunking", Meaning::Storage)
        .len(OutInt(2))
        .array(0, Array::longs(slot::CHUNK, When::Return, 3, Count::Rank)),
    all(variable("nc_def_var_deflate", Meaning::Deflate)).len(Int(2)).got(Mul(3, 4)),
    variable("nc_inq_var_deflate", Meaning::Deflate)
        .len(OutInt(2))
        .got(OutInt(3))
        .array(0, Array::ints(slot::PARAMETERS, When::Return, 4, Count::Const(1))),
    all(variable("nc_def_var_fletcher32", Meaning::Checksum)).len(Int(2)),
    variable("nc_inq_var_fletcher32", Meaning::Checksum).len(OutInt(2)),
    all(variable("nc_def_var_filter", Meaning::Filter))
        .len(Int(2))
        .array(0, Array::ints(slot::PARAMETERS, When::Entry, 4, Count::Arg(3))),
    variable("nc_inq_var_filter_ids", Meaning::Filters).array(0, ids(3, Count::At(2))),
    // These come through nc_def_var_filter.
    define("nc_def_var_szip"),
    define("nc_def_var_zstandard"),
    define("nc_def_var_bzip2"),
    define("nc_def_var_blosc"),
    define("nc_def_var_fill"),
    define("nc_def_var_endian"),
    define("nc_def_var_quantize"),
    meta("nc_def_var_chunking_ints"),
    meta("nc_set_var_chunk_cache"),
    meta("nc_set_var_chunk_cache_ints"),
    asks("nc_inq_var_chunking_ints"),
    asks("nc_inq_var_filter"),
    asks("nc_inq_var_filter_info"),
    asks("nc_inq_var_szip"),
    asks("nc_inq_var_zstandard"),
    asks("nc_inq_var_bzip2"),
    asks("nc_inq_var_blosc"),
    asks("nc_inq_var_fill"),
    asks("nc_inq_var_endian"),
    asks("nc_inq_var_quantize"),
    // Types.
    define("nc_def_compound").len(Arg(1)).id(OutInt(3)).meaning(Meaning::Type),
    define("nc_def_opaque").len(Arg(1)).id(OutInt(3)).meaning(Meaning::Type),
    define("nc_def_vlen").id(OutInt(3)).meaning(Meaning::ListType),
    define("nc_def_enum").len(Int(1)).id(OutInt(3)).meaning(Meaning::SameType),
    define("nc_insert_compound"),
    define("nc_insert_array_compound"),
    define("nc_insert_enum"),
    type_of("nc_inq_type").len(Out(3)),
    type_of("nc_inq_user_type").len(Out(3)),
    // These come through nc_inq_user_type, or ask for parts.
    asks("nc_inq_compound"),
    asks("nc_inq_compound_name"),
    asks("nc_inq_compound_size"),
    asks("nc_inq_compound_nfields"),
    asks("nc_inq_compound_field"),
    asks("nc_inq_compound_fieldname"),
    asks("nc_inq_compound_fieldindex"),
    asks("nc_inq_compound_fieldoffset"),
    asks("nc_inq_compound_fieldtype"),
    asks("nc_inq_compound_fieldndims"),
    asks("nc_inq_compound_fielddim_sizes"),
    asks("nc_inq_vlen"),
    asks("nc_inq_opaque"),
    asks("nc_inq_enum"),
    asks("nc_inq_enum_member"),
    asks("nc_inq_enum_ident"),
    asks("nc_inq_typeid"),
    asks("nc_inq_typeids"),
    // Attributes.
    attribute("nc_inq_att", Meaning::Attribute).got(OutInt(3)).len(Out(4)),
    attribute("nc_inq_atttype", Meaning::Attribute).got(OutInt(3)),
    attribute("nc_inq_attlen", Meaning::Attribute).len(Out(3)),
    all(attribute("nc_del_att", Meaning::NoAttribute)),
    all(attribute("nc_rename_att", Meaning::NoAttribute)),
    asks("nc_inq_attid"),
    asks("nc_inq_attname"),
    // Groups.
    define("nc_def_grp").opens(OutInt(2)).id(Arg(0)).path(1).object("group").meaning(Meaning::Group),
    define("nc_rename_grp"),
    asks("nc_inq_ncid").path(1).id(OutInt(2)).meaning(Meaning::Group),
    asks("nc_inq_grp_ncid").path(1).id(OutInt(2)).meaning(Meaning::Group),
    asks("nc_inq_grp_full_ncid").path(1).id(OutInt(2)).meaning(Meaning::Group),
    asks("nc_inq_grpname").names(1).meaning(Meaning::GroupName),
    asks("nc_inq_grpname_full").names(2).meaning(Meaning::GroupName),
    asks("nc_inq_grpname_len"),
    asks("nc_inq_grps").got(OutInt(1)).array(0, ids(2, Count::At(1))).meaning(Meaning::Groups),
    asks("nc_inq_grp_parent").id(OutInt(1)).meaning(Meaning::GroupParent),
    // The file.
    asks("nc_inq"),
    asks("nc_inq_ndims"),
    asks("nc_inq_nvars"),
    asks("nc_inq_natts"),
    asks("nc_inq_rec"),
    asks("nc_inq_format"),
    asks("nc_inq_format_extended"),
    asks("nc_inq_path"),
    // NC_var of nc3internal.h: xsz, shape, dsizes, name, then ndims (the same since 3.x). The pointer is an argument since 4.5.
    inner("NC_lookupvar", InnerValue::Rank, Behind(2, 32)),
    // NC_VAR_INFO_T of nc4internal.h: hdr (24 bytes), alt_name, container, then ndims; 4.7 to 4.10.
    inner("nc4_find_grp_h5_var", InnerValue::Rank, Behind(4, 40)),
    inner("NC_getshape", InnerValue::Shape, Int(2))
        .array(0, Array::longs(slot::SHAPE, When::Return, 3, Count::Arg(2)).rank()),
    // NC_attr of nc3internal.h: xsz, name, type, then nelems.
    inner("NC_findattr", InnerValue::Length, RetBehind(24)).fails(Fails::Zero),
    // NC_ATT_INFO_T of nc4internal.h: hdr (24 bytes), container, then len.
    inner("nc4_find_grp_att", InnerValue::Length, BehindInt(4, 32)),
];

pub(in crate::catalog) fn rows() -> Vec<Row> {
    data_rows().chain(attribute_rows()).chain(ROWS.iter().copied()).collect()
}
