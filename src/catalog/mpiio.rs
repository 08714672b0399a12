//! MPI-IO rows, Open MPI. Signatures: MPI-3.1 chapter 13. `MPI_File` is a pointer; results are error classes, 0 for success.

use super::Src::{Arg, In, Int, Out, Status, Typed};
use super::{Fails, Family, Role, Row, row};
use crate::words::{Kind, Layer, flag};

const fn mpi(symbol: &'static str, kind: Kind) -> Row {
    row(Family::OpenMpi, Layer::Mpiio, symbol, kind).handle(Arg(0)).fails(Fails::NonZero)
}
/// A call that every rank of the file's communicator makes.
const fn all(row: Row) -> Row {
    row.flags(flag::COLLECTIVE)
}
/// `(fh, buf, count, datatype, status)`
const fn read(symbol: &'static str) -> Row {
    mpi(symbol, Kind::Read).len(Typed(2, 3)).got(Status(4))
}
const fn write(symbol: &'static str) -> Row {
    mpi(symbol, Kind::Write).len(Typed(2, 3)).got(Status(4))
}
/// `(fh, offset, buf, count, datatype, status)`; the offset counts etypes of the file view.
const fn read_at(symbol: &'static str) -> Row {
    mpi(symbol, Kind::Read).off(Arg(1)).len(Typed(3, 4)).got(Status(5))
}
const fn write_at(symbol: &'static str) -> Row {
    mpi(symbol, Kind::Write).off(Arg(1)).len(Typed(3, 4)).got(Status(5))
}

pub(super) const ROWS: &[Row] = &[
    all(mpi("MPI_File_open", Kind::Open).role(Role::Open).path(1).len(Int(2)).handle(Out(4))),
    all(mpi("MPI_File_close", Kind::Close).role(Role::Close).handle(In(0))),
    mpi("MPI_File_delete", Kind::Meta).role(Role::None).handle(super::Src::None).path(0),
    read("MPI_File_read"),
    all(read("MPI_File_read_all")),
    read_at("MPI_File_read_at"),
    all(read_at("MPI_File_read_at_all")),
    read("MPI_File_read_shared"),
    all(read("MPI_File_read_ordered")),
    write("MPI_File_write"),
    all(write("MPI_File_write_all")),
    write_at("MPI_File_write_at"),
    all(write_at("MPI_File_write_at_all")),
    write("MPI_File_write_shared"),
    all(write("MPI_File_write_ordered")),
    all(mpi("MPI_File_sync", Kind::Sync)),
    all(mpi("MPI_File_set_view", Kind::Meta).off(Arg(1))),
    mpi("MPI_File_seek", Kind::Seek).off(Arg(1)),
    all(mpi("MPI_File_seek_shared", Kind::Seek).off(Arg(1))),
    all(mpi("MPI_File_set_size", Kind::Meta).len(Arg(1))),
    mpi("MPI_File_get_size", Kind::Meta),
    all(mpi("MPI_File_preallocate", Kind::Meta).len(Arg(1))),
];
