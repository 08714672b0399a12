//! Files, datasets and attributes.

use crate::catalog::Src::{self, Arg, Int, Note as Told, Notes, Ret, Rounds};
use crate::catalog::hdf5::{
    DATASETS, List, Space, Tells, about, answer, close, dims, h5, inside, list, long_answer, nameless, on, plain,
};
use crate::catalog::{Count, Fails, Note, Role, Row, When, Words};
use crate::vocabulary::Kind;

/// `hid_t f(name, flags, ...)`: opens a file.
const fn file(symbol: &'static str) -> Row {
    h5(symbol, Kind::Open).role(Role::Open).handle(Ret).path(0).len(Int(1))
}
/// `f(name, ...)` of a file that is not opened.
const fn named(symbol: &'static str) -> Row {
    plain(symbol, Kind::Meta).path(0)
}
/// Makes a dataset; `list` is the argument with its property list. The library asks for dimensions and size when it
/// keeps them in the dataset it makes or opens (`H5D__cache_dataspace_info`, then the layout's construction, H5Dint.c).
const fn dataset(row: Row, list: u8) -> Row {
    shaped(row).got(Arg(list)).tells(Tells::Dataset)
}
/// Opens a dataset, or something that may be one.
pub(super) const fn opened(row: Row) -> Row {
    shaped(row).got(Told(0)).takes(2, Note::Storage).tells(Tells::Opened)
}
const fn shaped(row: Row) -> Row {
    row.takes(0, Note::Dims).takes(1, Note::TypeSize).len(Told(1))
}
/// Makes an attribute in the dataspace of an argument.
const fn attribute(row: Row, space: u8) -> Row {
    row.takes(0, Note::TypeSize).len(Told(0)).got(Arg(space)).tells(Tells::Attribute)
}
const fn attribute_opened(row: Row) -> Row {
    row.takes(0, Note::TypeSize).len(Told(0)).tells(Tells::Opened)
}
/// The attribute's name follows that of the object which has it.
const fn by_name(row: Row) -> Row {
    row.path2(2)
}
/// A call that moves what is selected. The library converts a source into a destination and asks for their sizes in
/// this order (`H5D__typeinfo_init`, H5Dio.c; `H5A__read` and `H5A__write`, H5Aint.c): of a write the memory's type is
/// the first, of a read the second.
const fn selected(row: Row) -> Row {
    row.takes(0, Note::Points).takes(1, Note::TypeSize).takes(2, Note::TypeSize)
}
/// `(dataset, memory type, memory space, file space, transfer list, buffer)`.
const fn read(symbol: &'static str) -> Row {
    selected(on(symbol, Kind::Read)).len(Notes(0, 2)).got(Told(1)).off(Arg(4)).tells(Tells::Transfer)
}
const fn write(symbol: &'static str) -> Row {
    selected(on(symbol, Kind::Write)).len(Notes(0, 1)).got(Told(2)).off(Arg(4)).tells(Tells::Transfer)
}
/// `(number of datasets, datasets, memory types, memory spaces, file spaces, transfer list, buffers)`.
const fn several(symbol: &'static str, kind: Kind, memory: u8) -> Row {
    let row = selected(on(symbol, kind)).handle(Src::In(1)).len(Rounds(0, 0, memory)).off(Arg(5));
    row.words(0, Words::longs(DATASETS, When::Entry, 1, Count::Arg(0))).tells(Tells::Transfers)
}
/// `(dataset, transfer list, offset, filters, buffer, ...)`: what the chunk takes in the file.
const fn read_chunk(symbol: &'static str) -> Row {
    on(symbol, Kind::Read).takes(0, Note::Block).len(Told(0)).off(Arg(1)).tells(Tells::Transfer)
}
/// A call that moves all of an attribute.
const fn whole(row: Row) -> Row {
    row.takes(0, Note::Extent).takes(1, Note::TypeSize).takes(2, Note::TypeSize).tells(Tells::Transfer)
}
const fn space(symbol: &'static str) -> Row {
    long_answer(symbol).tells(Tells::Space(Space::Of))
}
/// `(dataset, dimensions)`.
const fn extent(symbol: &'static str, tells: Tells) -> Row {
    about(symbol).words(0, dims(When::Entry, 1, Count::Rank)).tells(tells)
}
/// Works in memory alone.
const fn memory(symbol: &'static str) -> Row {
    plain(symbol, Kind::Other)
}

pub(super) const ROWS: &[Row] = &[
    file("H5Fcreate"),
    file("H5Fopen"),
    h5("H5Freopen", Kind::Open).role(Role::Dup).handle(Ret).off(Arg(0)),
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
    list("H5Fget_access_plist"),
    list("H5Fget_create_plist"),
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
    dataset(nameless("H5Dcreate_anon", "dataset"), 3),
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
    on("H5Dwrite_chunk", Kind::Write).len(Arg(4)).off(Arg(1)).tells(Tells::Transfer),
    extent("H5Dset_extent", Tells::Extent),
    extent("H5Dextend", Tells::Grown),
    on("H5Dflush", Kind::Sync),
    on("H5Drefresh", Kind::Sync),
    about("H5Dformat_convert"),
    space("H5Dget_space"),
    long_answer("H5Dget_type"),
    long_answer("H5Dget_create_plist").tells(Tells::List(List::Of)),
    list("H5Dget_access_plist"),
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
    attribute_opened(nameless("H5Aopen_by_idx", "attribute")),
    attribute_opened(nameless("H5Aopen_idx", "attribute")),
    close("H5Aclose"),
    whole(on("H5Aread", Kind::Read)).len(Notes(0, 2)),
    whole(on("H5Awrite", Kind::Write)).len(Notes(0, 1)),
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
    list("H5Aget_create_plist"),
    long_answer("H5Aget_type"),
];
