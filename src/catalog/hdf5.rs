//! HDF5 rows. Signatures: HDF5 1.10 to 2.x reference manual; `hid_t` is 64 bits wide, negative means failure.

use super::Src::{Arg, Int, Ret};
use super::{Fails, Family, Role, Row, row};
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

pub(super) const ROWS: &[Row] = &[
    file("H5Fcreate"),
    file("H5Fopen"),
    close("H5Fclose"),
    on("H5Fflush", Kind::Sync),
    inside("H5Dcreate2", "dataset"),
    inside("H5Dopen2", "dataset"),
    on("H5Dread", Kind::Read),
    on("H5Dwrite", Kind::Write),
    on("H5Dset_extent", Kind::Meta),
    on("H5Dflush", Kind::Sync),
    close("H5Dclose"),
    inside("H5Acreate2", "attribute"),
    inside("H5Aopen", "attribute"),
    on("H5Aread", Kind::Read),
    on("H5Awrite", Kind::Write),
    close("H5Aclose"),
    inside("H5Gcreate2", "group"),
    inside("H5Gopen2", "group"),
    close("H5Gclose"),
];
