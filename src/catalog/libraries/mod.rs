//! Rows of functions of libraries: one module for each library, and `jump` for how functions are left without a return.

pub(super) mod aio;
pub mod hdf5;
pub(super) mod jump;
pub(super) mod mpi;
pub(super) mod mpiio;
pub(super) mod netcdf;
pub(super) mod pnetcdf;
pub(super) mod stdio;
