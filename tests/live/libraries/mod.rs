//! HDF5, `NetCDF`, `PnetCDF`, MPI-IO and C streams.

mod chatty;
mod chosen;
mod hdf5;
mod mpi_hdf5;
mod mpiio;
mod mpiio_async;
mod mpiio_groups;
mod netcdf;
mod netcdf_par;
mod pnetcdf_lists;
mod stacks;
mod stdio;
mod stdio_calls;
