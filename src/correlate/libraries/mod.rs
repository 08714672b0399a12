//! Meaning of the calls of single libraries, beyond their catalog row.

pub(crate) mod collectives;
pub(crate) mod hdf5;
pub(crate) mod hints;
pub(crate) mod mpiio;
pub(crate) mod netcdf;
