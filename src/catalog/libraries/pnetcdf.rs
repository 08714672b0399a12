//! `PnetCDF` rows. Signatures: pnetcdf.h of 1.12.3. An `ncid` is an `int`, a request an `int` that counts within it. Results are
//! 0 or negative `NC_E...`.

use crate::catalog::Src::{self, Arg, FromInner, Int, MpiSize, Out, OutInt, Pair, PairInner, PairOut};
use crate::catalog::def::{Def, row, rows};
use crate::catalog::role::{Inner, InnerValue, Request, RequestAction, Variables};
use crate::catalog::variables::{Element, Meaning, Region, slot};
use crate::catalog::{Array, Count, Fails, Family, Row, When};
use crate::vocabulary::{Kind, Layer, flag};

const fn ncmpi(symbol: &'static str, kind: Kind) -> Def<Variables> {
    row(Family::Pnetcdf, Layer::Pnetcdf, symbol, kind).handle(Int(0)).variables().fails(Fails::NonZero)
}
/// A call that every rank of the file's communicator makes.
const fn all<P: Copy>(row: Def<P>) -> Def<P> {
    row.flags(flag::COLLECTIVE)
}
const fn meta(symbol: &'static str) -> Def<Variables> {
    ncmpi(symbol, Kind::Meta)
}
const fn define(symbol: &'static str) -> Def<Variables> {
    all(meta(symbol))
}
/// `int f(comm, path, mode, info, int *ncid)`
const fn open(symbol: &'static str) -> Def<Variables> {
    let row = all(ncmpi(symbol, Kind::Open)).opens(OutInt(4)).path(1).len(Int(2));
    row.meaning(Meaning::File { parallel: true })
}
/// What was submitted and not waited for is cancelled.
const fn close(symbol: &'static str) -> Def<Variables> {
    all(ncmpi(symbol, Kind::Close)).closes().meaning(Meaning::End).cancels()
}
const fn variable(symbol: &'static str, meaning: Meaning) -> Def<Variables> {
    meta(symbol).id(Int(1)).meaning(meaning)
}
const fn is_variable(symbol: &'static str) -> Def<Variables> {
    variable(symbol, Meaning::Variable { new: false })
}
const fn attribute(symbol: &'static str, meaning: Meaning) -> Def<Variables> {
    variable(symbol, meaning).path(2)
}
/// `(ncid, number, requests, statuses)`
const fn requests(symbol: &'static str, kind: Kind, what: RequestAction) -> Def<Request> {
    ncmpi(symbol, kind)
        .requests(what, Int(1))
        .array(0, Array::ints(0, When::Entry, 2, Count::Arg(1)))
        .array(1, Array::ints(1, When::Return, 3, Count::Arg(1)))
}
const fn per_dimension(slot: u8, arg: u8) -> Array {
    Array::longs(slot, When::Entry, arg, Count::Rank)
}

/// The arguments between variable and data.
#[derive(Clone, Copy)]
enum Args {
    Whole,
    One,
    Box,
    Stride,
    Map,
    List,
    Filetype,
}

/// What the functions of a name have in common.
#[derive(Clone, Copy)]
struct Api {
    kind: Kind,
    flags: i32,
    /// A request comes back, through the last argument.
    submits: bool,
    /// They work on several variables.
    several: bool,
}

impl Api {
    const fn new(kind: Kind) -> Self {
        Self { kind, flags: 0, submits: false, several: false }
    }
    const fn all(self) -> Self {
        Self { flags: flag::COLLECTIVE, ..self }
    }
    const fn submits(self) -> Self {
        Self { submits: true, ..self }
    }
    const fn several(self) -> Self {
        Self { several: true, ..self }
    }
}

/// `(ncid, varid, [start, [count, [stride, [map,]]]] data, [datatypes, datatype,] [request])`. The number of dimensions
/// is an inner value.
const fn data(symbol: &'static str, api: Api, args: Args, element: Element) -> Def<Variables> {
    let row = ncmpi(symbol, api.kind).flags(api.flags).id(PairInner(1, 0));
    let start = per_dimension(slot::START, 2);
    let boxes = row.array(0, start).array(1, per_dimension(slot::COUNT, 3));
    let (region, row, buffer) = match args {
        Args::Whole => (Region::Whole, row, 2),
        Args::One => (Region::One, row.array(0, start), 3),
        Args::Box => (Region::Box, boxes, 4),
        Args::Stride => (Region::Box, boxes.array(2, per_dimension(slot::STRIDE, 4)), 5),
        Args::Map => (Region::Box, boxes.array(2, per_dimension(slot::STRIDE, 4)), 6),
        Args::List => {
            // The record is the first dimension.
            (Region::List, row.id(Pair(1, 2)).array(0, Array::boxes(slot::BOXES, 3, 2)), 5)
        }
        Args::Filetype => (Region::Datatype, row.id(Int(1)).got(FromInner(0)), 3),
    };
    let row = match (region, element) {
        (Region::List, Element::Datatype) => row,
        (Region::List, _) => row.wants(0, InnerValue::Length).len(FromInner(0)),
        (Region::Datatype, _) => row.wants(0, InnerValue::Length),
        _ => row.wants(0, InnerValue::Rank),
    };
    let (row, request) = match element {
        Element::Datatype => (row.len(MpiSize(buffer + 1, buffer + 2)), buffer + 3),
        _ => (row, buffer + 1),
    };
    let row = row.meaning(Meaning::Data(region, element));
    if api.submits { row.submits(OutInt(request)).awaited() } else { row }
}

/// `(ncid, number, varids, ...)`: regions of several variables.
const fn several(symbol: &'static str, api: Api, element: Element) -> Def<Variables> {
    let element = match element {
        Element::Datatype => Element::Datatypes,
        other => other,
    };
    let row = ncmpi(symbol, api.kind).flags(api.flags).meaning(Meaning::Data(Region::Several, element));
    row.array(0, Array::ints(slot::IDS, When::Entry, 2, Count::Arg(1))).wants_every(InnerValue::Rank)
}

/// The functions of a name for each type in memory, and the bytes of an element.
macro_rules! typed {
    ($stem:expr, $tail:expr) => {
        [
            (concat!($stem, $tail), Element::Datatype),
            (concat!($stem, "_text", $tail), Element::Bytes(1)),
            (concat!($stem, "_schar", $tail), Element::Bytes(1)),
            (concat!($stem, "_uchar", $tail), Element::Bytes(1)),
            (concat!($stem, "_short", $tail), Element::Bytes(2)),
            (concat!($stem, "_ushort", $tail), Element::Bytes(2)),
            (concat!($stem, "_int", $tail), Element::Bytes(4)),
            (concat!($stem, "_uint", $tail), Element::Bytes(4)),
            (concat!($stem, "_long", $tail), Element::Bytes(8)),
            (concat!($stem, "_longlong", $tail), Element::Bytes(8)),
            (concat!($stem, "_ulonglong", $tail), Element::Bytes(8)),
            (concat!($stem, "_float", $tail), Element::Bytes(4)),
            (concat!($stem, "_double", $tail), Element::Bytes(8)),
        ]
    };
}

/// The names of a stem for each way to select elements, and for each type.
macro_rules! functions {
    ($stem:expr, $tail:expr) => {
        [
            (Args::Whole, typed!($stem, $tail)),
            (Args::One, typed!(concat!($stem, "1"), $tail)),
            (Args::Box, typed!(concat!($stem, "a"), $tail)),
            (Args::Stride, typed!(concat!($stem, "s"), $tail)),
            (Args::Map, typed!(concat!($stem, "m"), $tail)),
        ]
    };
}

fn data_rows() -> impl Iterator<Item = Row> {
    let lists = vec![
        (Api::new(Kind::Write), typed!("ncmpi_put_varn", "")),
        (Api::new(Kind::Write).all(), typed!("ncmpi_put_varn", "_all")),
        (Api::new(Kind::Read), typed!("ncmpi_get_varn", "")),
        (Api::new(Kind::Read).all(), typed!("ncmpi_get_varn", "_all")),
        (Api::new(Kind::Write).submits(), typed!("ncmpi_iput_varn", "")),
        (Api::new(Kind::Write).submits(), typed!("ncmpi_bput_varn", "")),
        (Api::new(Kind::Read).submits(), typed!("ncmpi_iget_varn", "")),
    ];
    let lists = lists.into_iter().map(|(api, names)| (api, Args::List, names));
    let others = vec![
        (Api::new(Kind::Write), functions!("ncmpi_put_var", "")),
        (Api::new(Kind::Write).all(), functions!("ncmpi_put_var", "_all")),
        (Api::new(Kind::Read), functions!("ncmpi_get_var", "")),
        (Api::new(Kind::Read).all(), functions!("ncmpi_get_var", "_all")),
        (Api::new(Kind::Write).submits(), functions!("ncmpi_iput_var", "")),
        (Api::new(Kind::Write).submits(), functions!("ncmpi_bput_var", "")),
        (Api::new(Kind::Read).submits(), functions!("ncmpi_iget_var", "")),
        (Api::new(Kind::Write).several(), functions!("ncmpi_mput_var", "")),
        (Api::new(Kind::Write).several().all(), functions!("ncmpi_mput_var", "_all")),
        (Api::new(Kind::Read).several(), functions!("ncmpi_mget_var", "")),
        (Api::new(Kind::Read).several().all(), functions!("ncmpi_mget_var", "_all")),
    ];
    let others = others.into_iter().flat_map(|(api, names)| names.into_iter().map(move |(args, n)| (api, args, n)));
    lists.chain(others).flat_map(|(api, args, names)| {
        names.into_iter().map(move |(symbol, element)| {
            if api.several { several(symbol, api, element) } else { data(symbol, api, args, element) }.done()
        })
    })
}

/// Data of one variable, laid out by a datatype in the file as well.
fn filetype_rows() -> impl Iterator<Item = Row> {
    [
        ("ncmpi_put_vard", Api::new(Kind::Write)),
        ("ncmpi_put_vard_all", Api::new(Kind::Write).all()),
        ("ncmpi_get_vard", Api::new(Kind::Read)),
        ("ncmpi_get_vard_all", Api::new(Kind::Read).all()),
    ]
    .into_iter()
    .map(|(symbol, api)| data(symbol, api, Args::Filetype, Element::Datatype).done())
}

/// `(ncid, varid, name, [type, [length,]] data)`. The plain functions have the type of the file.
fn attribute_rows() -> impl Iterator<Item = Row> {
    let in_file = |element| if element == Element::Datatype { Element::Variable } else { element };
    let put = typed!("ncmpi_put_att", "").into_iter().map(move |(symbol, element)| {
        let row = all(attribute(symbol, Meaning::AttributeData(in_file(element)))).kind(Kind::Write);
        if symbol.ends_with("_text") { row.len(Arg(3)) } else { row.len(Arg(4)).got(Int(3)) }.done()
    });
    let get = typed!("ncmpi_get_att", "").into_iter().map(move |(symbol, element)| {
        attribute(symbol, Meaning::AttributeData(in_file(element))).kind(Kind::Read).done()
    });
    put.chain(get)
}

/// An exported function that the calls run through and that has values which their arguments lack.
const fn inner(symbol: &'static str, gives: InnerValue, value: Src) -> Def<Inner> {
    ncmpi(symbol, Kind::Other).gives(gives, value)
}

const ROWS: &[Row] = rows![
    open("ncmpi_create"),
    open("ncmpi_open"),
    close("ncmpi_close"),
    close("ncmpi_abort"),
    meta("ncmpi_delete").unrelated().handle(Src::None).path(0),
    all(ncmpi("ncmpi_sync", Kind::Sync)),
    all(ncmpi("ncmpi_sync_numrecs", Kind::Sync)),
    all(ncmpi("ncmpi_flush", Kind::Sync)),
    define("ncmpi_redef"),
    define("ncmpi_enddef"),
    define("ncmpi__enddef"),
    define("ncmpi_set_fill"),
    define("ncmpi_begin_indep_data"),
    define("ncmpi_end_indep_data"),
    all(requests("ncmpi_wait_all", Kind::Wait, RequestAction::WaitIds)),
    requests("ncmpi_wait", Kind::Wait, RequestAction::WaitIds),
    requests("ncmpi_cancel", Kind::Other, RequestAction::CancelIds),
    meta("ncmpi_buffer_attach"),
    meta("ncmpi_buffer_detach"),
    // Dimensions.
    define("ncmpi_def_dim").len(Arg(2)).id(OutInt(3)).meaning(Meaning::Dimension { new: true }),
    define("ncmpi_rename_dim"),
    meta("ncmpi_inq_dim").id(Int(1)).len(Out(3)).meaning(Meaning::Dimension { new: false }),
    meta("ncmpi_inq_dimlen").id(Int(1)).len(Out(2)).meaning(Meaning::Dimension { new: false }),
    meta("ncmpi_inq_dimid"),
    meta("ncmpi_inq_dimname"),
    meta("ncmpi_inq_unlimdim"),
    // Variables.
    define("ncmpi_def_var")
        .path(1)
        .len(Int(2))
        .got(Int(3))
        .id(OutInt(5))
        .array(0, Array::ints(slot::IDS, When::Entry, 4, Count::Arg(3)).rank())
        .meaning(Meaning::Variable { new: true }),
    define("ncmpi_rename_var").path(2).id(Int(1)).meaning(Meaning::Variable { new: false }),
    is_variable("ncmpi_inq_var")
        .names(2)
        .len(OutInt(3))
        .got(OutInt(4))
        .array(0, Array::ints(slot::IDS, When::Return, 5, Count::At(4)).rank()),
    is_variable("ncmpi_inq_varid").path(1).id(OutInt(2)),
    is_variable("ncmpi_inq_varname").names(2),
    is_variable("ncmpi_inq_vartype").len(OutInt(2)),
    is_variable("ncmpi_inq_varndims").got(OutInt(2)),
    is_variable("ncmpi_inq_vardimid").array(0, Array::ints(slot::IDS, When::Return, 2, Count::Rank)),
    define("ncmpi_def_var_fill"),
    all(ncmpi("ncmpi_fill_var_rec", Kind::Other)),
    meta("ncmpi_inq_varnatts"),
    meta("ncmpi_inq_varoffset"),
    meta("ncmpi_inq_var_fill"),
    // Attributes.
    all(attribute("ncmpi_del_att", Meaning::NoAttribute)),
    all(attribute("ncmpi_rename_att", Meaning::NoAttribute)),
    define("ncmpi_copy_att").handle(Int(3)),
    attribute("ncmpi_inq_att", Meaning::Attribute).got(OutInt(3)).len(Out(4)),
    attribute("ncmpi_inq_atttype", Meaning::Attribute).got(OutInt(3)),
    attribute("ncmpi_inq_attlen", Meaning::Attribute).len(Out(3)),
    meta("ncmpi_inq_attid"),
    meta("ncmpi_inq_attname"),
    // The file.
    meta("ncmpi_inq"),
    meta("ncmpi_inq_ndims"),
    meta("ncmpi_inq_nvars"),
    meta("ncmpi_inq_natts"),
    meta("ncmpi_inq_num_rec_vars"),
    meta("ncmpi_inq_num_fix_vars"),
    meta("ncmpi_inq_recsize"),
    meta("ncmpi_inq_format"),
    meta("ncmpi_inq_version"),
    meta("ncmpi_inq_path"),
    meta("ncmpi_inq_striping"),
    meta("ncmpi_inq_header_size"),
    meta("ncmpi_inq_header_extent"),
    meta("ncmpi_inq_file_format").unrelated().handle(Src::None).path(0),
    // dispatch and drivers/common of 1.12.3: (ndims, type, count, ..., esize, ...) of blocking calls, (ndims, count, ...) of
    // all with a request, (type, ..., elements, ...) of datatypes, and argument 5 is the number of elements.
    inner("ncmpii_buftype_decode", InnerValue::Rank, PairOut(0, 6))
        .array(0, Array::longs(slot::SHAPE, When::Return, 2, Count::Arg(0)).rank()),
    inner("ncmpii_create_imaptype", InnerValue::Rank, Int(0))
        .array(0, Array::longs(slot::SHAPE, When::Return, 1, Count::Arg(0)).rank()),
    inner("ncmpii_dtype_decode", InnerValue::Length, Out(3)),
    inner("ncmpio_pack_xbuf", InnerValue::Length, Arg(5)),
    inner("ncmpio_unpack_xbuf", InnerValue::Length, Arg(5)),
];

pub(in crate::catalog) fn rows() -> Vec<Row> {
    data_rows().chain(filetype_rows()).chain(attribute_rows()).chain(ROWS.iter().copied()).collect()
}
