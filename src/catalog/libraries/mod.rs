//! Rows of functions of libraries: one module for each library, and `jump` for how functions are left without a return.

pub(super) mod aio;
pub mod hdf5;
pub(super) mod jump;
pub(super) mod mpi;
pub(super) mod mpiio;
pub(super) mod netcdf;
pub(super) mod pnetcdf;
pub(super) mod stdio;

use crate::catalog::Row;

/// The rows of all libraries; the position of a row is its number on the wire.
pub(super) fn rows() -> Vec<Row> {
    let (netcdf, pnetcdf) = (netcdf::rows(), pnetcdf::rows());
    let (hdf5, mpiio, mpi) = (hdf5::rows(), mpiio::rows(), mpi::rows());
    let libraries = [netcdf, pnetcdf, hdf5, mpiio, mpi].concat();
    [&libraries, stdio::ROWS, aio::ROWS.as_flattened(), jump::ROWS].concat()
}
