//! What calls of one library say beyond their row.

pub(crate) mod collectives;
pub(crate) mod hdf5;
pub(crate) mod hints;
pub(crate) mod mpiio;
pub(crate) mod netcdf;
