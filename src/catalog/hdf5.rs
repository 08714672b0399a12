//! HDF5 rows. Signatures: HDF5 1.10 to 2.x reference manual; `hid_t` is 64 bits wide, negative means failure.

use super::Src::{self, Arg, Int, Notes, Ret};
use super::{Fails, Family, Note, Role, Row, row};
use crate::words::{Kind, Layer};

const fn h5(symbol: &'static str, kind: Kind) -> Row {
    row(Family::Hdf5, Layer::Hdf5, symbol, kind)
}
/// `hid_t f(name, flags, ...)`: opens a file.
const fn file(symbol: &'static str) -> Row {
    h5(symbol, Kind::Open).role(Role::Open).handle(Ret).path(0).len(Int(1))
}
/// `hid_t f(location, name, ...)`: opens something inside a file.
const fn inside(symbol: &'static str, class: &'static str) -> Row {
    h5(symbol, Kind::Open).role(Role::Open).handle(Ret).off(Arg(0)).path(1).object(class)
}
/// `herr_t f(handle, ...)`.
const fn on(symbol: &'static str, kind: Kind) -> Row {
    h5(symbol, kind).handle(Arg(0)).fails(Fails::NegativeInt)
}
const fn close(symbol: &'static str) -> Row {
    on(symbol, Kind::Close).role(Role::Close)
}
/// A call that moves what is selected. The library converts a source into a destination and asks for their sizes in
/// this order (`H5D__typeinfo_init`, H5Dio.c; `H5A__read` and `H5A__write`, H5Aint.c): of a write the memory's type is
/// the first, of a read the second.
const fn selected(row: Row) -> Row {
    row.takes(0, Note::Points).takes(1, Note::TypeSize).takes(2, Note::TypeSize).got(Src::Asked)
}
/// A call that moves all of an attribute.
const fn whole(row: Row) -> Row {
    row.takes(0, Note::Extent).takes(1, Note::TypeSize).takes(2, Note::TypeSize).got(Src::Asked)
}
/// An inner function that tells what the call it runs in is about. These are exported, because the parts of the library
/// call each other through them.
const fn note(symbol: &'static str, note: Note) -> Row {
    h5(symbol, Kind::Other).note(note, Ret)
}

pub(super) const ROWS: &[Row] = &[
    file("H5Fcreate"),
    file("H5Fopen"),
    close("H5Fclose"),
    on("H5Fflush", Kind::Sync),
    inside("H5Dcreate2", "dataset"),
    inside("H5Dopen2", "dataset"),
    selected(on("H5Dread", Kind::Read)).len(Notes(0, 2)),
    selected(on("H5Dwrite", Kind::Write)).len(Notes(0, 1)),
    on("H5Dset_extent", Kind::Meta),
    on("H5Dflush", Kind::Sync),
    close("H5Dclose"),
    inside("H5Acreate2", "attribute"),
    inside("H5Aopen", "attribute"),
    whole(on("H5Aread", Kind::Read)).len(Notes(0, 2)),
    whole(on("H5Awrite", Kind::Write)).len(Notes(0, 1)),
    close("H5Aclose"),
    inside("H5Gcreate2", "group"),
    inside("H5Gopen2", "group"),
    close("H5Gclose"),
    note("H5S_get_select_npoints", Note::Points),
    note("H5S_get_simple_extent_npoints", Note::Extent),
    note("H5T_get_size", Note::TypeSize),
];
