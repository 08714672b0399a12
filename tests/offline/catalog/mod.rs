//! The catalog beside the libraries that are installed: every function has a row or a reason, and probes are where they cost least.

mod hdf5_functions;
mod netcdf_functions;
mod stdio_functions;
mod stepped;
