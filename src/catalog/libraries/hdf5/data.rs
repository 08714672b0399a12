//! Files, datasets and attributes.

use crate::catalog::Src::{self, Arg, FromInner, InnerProduct, Int, Ret, Rounds};
use crate::catalog::def::{Def, rows};
use crate::catalog::libraries::hdf5::{
    DATASETS, Effect, ListEffect, SpaceEffect, about, answer, close, dims, h5, inside, list, long_answer, on, plain,
    unnamed,
};
use crate::catalog::role::{Data, Hdf5, InnerValue, Open};
use crate::catalog::{Array, Count, Fails, Row, When};
use crate::vocabulary::Kind;

/// `hid_t f(name, flags, ...)`: opens a file.
const fn file(symbol: &'static str) -> Def<Open> {
    h5(symbol, Kind::Open).opens(Ret).path(0).mode(Int(1))
}
/// `f(name, ...)` of a file that is not opened.
const fn named(symbol: &'static str) -> Def<Data> {
    plain(symbol, Kind::Meta).path(0)
}
/// Makes a dataset; `list` is the argument with its property list. The library asks for dimensions and size when it
/// keeps them in the dataset it makes or opens (`H5D__cache_dataspace_info`, then the layout's construction, H5Dint.c).
const fn dataset(row: Def<Open>, list: u8) -> Def<Hdf5> {
    shaped(row.effect(Effect::Dataset { element: FromInner(1), list: Arg(list) }))
}
/// Opens a dataset, or something that may be one.
pub(super) const fn opened(row: Def<Open>) -> Def<Hdf5> {
    shaped(row.effect(Effect::Opened { element: FromInner(1), rank: FromInner(0) })).wants(2, InnerValue::Storage)
}
const fn shaped(row: Def<Hdf5>) -> Def<Hdf5> {
    row.wants(0, InnerValue::Dims).wants(1, InnerValue::TypeSize)
}
/// Makes an attribute in the dataspace of an argument.
const fn attribute(row: Def<Open>, space: u8) -> Def<Hdf5> {
    row.wants(0, InnerValue::TypeSize).effect(Effect::Attribute { element: FromInner(0), space: Arg(space) })
}
const fn attribute_opened(row: Def<Open>) -> Def<Hdf5> {
    row.wants(0, InnerValue::TypeSize).effect(Effect::Opened { element: FromInner(0), rank: Src::None })
}
/// The attribute's name follows that of the object which has it.
const fn by_name(row: Def<Open>) -> Def<Open> {
    row.path2(2)
}
/// A call that moves what is selected. The library converts a source into a destination and asks for their sizes in
/// this order (`H5D__typeinfo_init`, H5Dio.c; `H5A__read` and `H5A__write`, H5Aint.c): of a write the memory's type is
/// the first, of a read the second.
const fn selected(row: Def<Data>) -> Def<Data> {
    row.wants(0, InnerValue::Points).wants(1, InnerValue::TypeSize).wants(2, InnerValue::TypeSize)
}
/// `(dataset, memory type, memory space, file space, transfer list, buffer)`.
const fn read(symbol: &'static str) -> Def<Hdf5> {
    let transfer = Effect::Transfer { bytes: InnerProduct(0, 2), list: Arg(4), element: FromInner(1) };
    selected(on(symbol, Kind::Read)).effect(transfer)
}
const fn write(symbol: &'static str) -> Def<Hdf5> {
    let transfer = Effect::Transfer { bytes: InnerProduct(0, 1), list: Arg(4), element: FromInner(2) };
    selected(on(symbol, Kind::Write)).effect(transfer)
}
/// `(number of datasets, datasets, memory types, memory spaces, file spaces, transfer list, buffers)`.
const fn several(symbol: &'static str, kind: Kind, memory: u8) -> Def<Hdf5> {
    let row = selected(on(symbol, kind)).handle(Src::In(1));
    let row = row.effect(Effect::Transfers { bytes: Rounds(0, 0, memory), list: Arg(5) });
    row.array(0, Array::longs(DATASETS, When::Entry, 1, Count::Arg(0)))
}
/// `(dataset, transfer list, offset, filters, ...)`, of so many bytes in the file.
const fn chunk(symbol: &'static str, kind: Kind, bytes: Src) -> Def<Hdf5> {
    on(symbol, kind).effect(Effect::Transfer { bytes, list: Arg(1), element: Src::None })
}
const fn read_chunk(symbol: &'static str) -> Def<Hdf5> {
    chunk(symbol, Kind::Read, FromInner(0)).wants(0, InnerValue::Block)
}
/// A call that moves all of an attribute.
const fn whole(symbol: &'static str, kind: Kind, bytes: Src) -> Def<Hdf5> {
    let row = on(symbol, kind).wants(0, InnerValue::Extent);
    let row = row.wants(1, InnerValue::TypeSize).wants(2, InnerValue::TypeSize);
    row.effect(Effect::Transfer { bytes, list: Src::None, element: Src::None })
}
const fn space(symbol: &'static str) -> Def<Hdf5> {
    let of = Effect::Space { space: Src::None, effect: SpaceEffect::Of, value: Ret };
    about(symbol).fails(Fails::Negative).effect(of)
}
/// `(dataset, dimensions)`.
const fn extent(symbol: &'static str, effect: Effect) -> Def<Hdf5> {
    about(symbol).array(0, dims(When::Entry, 1, Count::Rank)).effect(effect)
}
/// Works in memory alone.
const fn memory(symbol: &'static str) -> Def<Data> {
    plain(symbol, Kind::Other)
}

pub(super) const ROWS: &[Row] = rows![
    file("H5Fcreate"),
    file("H5Fopen"),
    h5("H5Freopen", Kind::Open).dups(Ret, Arg(0)),
    close("H5Fclose"),
    on("H5Fflush", Kind::Sync),
    named("H5Fdelete"),
    named("H5Fis_accessible"),
    named("H5Fis_hdf5"),
    about("H5Fmount"),
    about("H5Funmount"),
    about("H5Fstart_swmr_write"),
    about("H5Fget_filesize"),
    about("H5Fget_eoa"),
    about("H5Fincrement_filesize"),
    long_answer("H5Fget_freespace"),
    long_answer("H5Fget_free_sections"),
    long_answer("H5Fget_file_image"),
    about("H5Fget_info1"),
    about("H5Fget_info2"),
    list("H5Fget_access_plist", ListEffect::Unknown),
    list("H5Fget_create_plist", ListEffect::Unknown),
    about("H5Fset_mdc_config"),
    about("H5Fset_libver_bounds"),
    about("H5Fset_latest_format"),
    about("H5Fset_mpi_atomicity"),
    about("H5Fset_dset_no_attrs_hint"),
    about("H5Fclear_elink_file_cache"),
    about("H5Fstart_mdc_logging"),
    about("H5Fstop_mdc_logging"),
    about("H5Fformat_convert"),
    plain("H5close", Kind::Close),
    //
    dataset(inside("H5Dcreate1", "dataset"), 4),
    dataset(inside("H5Dcreate2", "dataset"), 5),
    dataset(unnamed("H5Dcreate_anon", "dataset"), 3),
    opened(inside("H5Dopen1", "dataset")),
    opened(inside("H5Dopen2", "dataset")),
    close("H5Dclose"),
    read("H5Dread"),
    write("H5Dwrite"),
    several("H5Dread_multi", Kind::Read, 2),
    several("H5Dwrite_multi", Kind::Write, 1),
    read_chunk("H5Dread_chunk"),
    read_chunk("H5Dread_chunk1"),
    read_chunk("H5Dread_chunk2"),
    chunk("H5Dwrite_chunk", Kind::Write, Arg(4)),
    extent("H5Dset_extent", Effect::Extent),
    extent("H5Dextend", Effect::Grown),
    on("H5Dflush", Kind::Sync),
    on("H5Drefresh", Kind::Sync),
    about("H5Dformat_convert"),
    space("H5Dget_space"),
    long_answer("H5Dget_type"),
    list("H5Dget_create_plist", ListEffect::Of),
    list("H5Dget_access_plist", ListEffect::Unknown),
    about("H5Dget_space_status"),
    // The size and the address may be 0 or all ones.
    long_answer("H5Dget_storage_size").fails(Fails::Never),
    long_answer("H5Dget_offset").fails(Fails::Never),
    about("H5Dget_num_chunks"),
    about("H5Dget_chunk_info"),
    about("H5Dget_chunk_info_by_coord"),
    about("H5Dget_chunk_storage_size"),
    about("H5Dget_chunk_index_type"),
    about("H5Dchunk_iter"),
    about("H5Dvlen_get_buf_size"),
    memory("H5Dvlen_reclaim"),
    memory("H5Diterate"),
    memory("H5Dfill"),
    memory("H5Dgather"),
    memory("H5Dscatter"),
    //
    attribute(inside("H5Acreate1", "attribute"), 3),
    attribute(inside("H5Acreate2", "attribute"), 3),
    attribute(by_name(inside("H5Acreate_by_name", "attribute")), 4),
    attribute_opened(inside("H5Aopen", "attribute")),
    attribute_opened(inside("H5Aopen_name", "attribute")),
    attribute_opened(by_name(inside("H5Aopen_by_name", "attribute"))),
    attribute_opened(unnamed("H5Aopen_by_idx", "attribute")),
    attribute_opened(unnamed("H5Aopen_idx", "attribute")),
    close("H5Aclose"),
    whole("H5Aread", Kind::Read, InnerProduct(0, 2)),
    whole("H5Awrite", Kind::Write, InnerProduct(0, 1)),
    about("H5Adelete"),
    about("H5Adelete_by_name"),
    about("H5Adelete_by_idx"),
    about("H5Arename"),
    about("H5Arename_by_name"),
    answer("H5Aexists"),
    answer("H5Aexists_by_name"),
    answer("H5Aiterate1"),
    answer("H5Aiterate2"),
    answer("H5Aiterate_by_name"),
    about("H5Aget_info"),
    about("H5Aget_info_by_name"),
    about("H5Aget_info_by_idx"),
    long_answer("H5Aget_name_by_idx"),
    answer("H5Aget_num_attrs"),
    long_answer("H5Aget_storage_size").fails(Fails::Never),
    space("H5Aget_space"),
    list("H5Aget_create_plist", ListEffect::Unknown),
    long_answer("H5Aget_type"),
];
