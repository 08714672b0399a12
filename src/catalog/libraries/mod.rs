//! The libraries and other sources of calls: what a file is recognised by, which version it is, and the rows of functions,
//! one module for each library; `jump` for how functions are left without a return.

pub(super) mod aio;
pub mod hdf5;
pub(super) mod jump;
pub(super) mod mpi;
pub(super) mod mpiio;
pub(super) mod netcdf;
pub(super) mod pnetcdf;
pub(super) mod stdio;

use crate::catalog::{OMPIO, ROMIO, Row};
use crate::vocabulary::Layer;

/// The rows of all libraries; the position of a row is its number on the wire.
pub(super) fn rows() -> Vec<Row> {
    let (netcdf, pnetcdf) = (netcdf::rows(), pnetcdf::rows());
    let (hdf5, mpiio, mpi) = (hdf5::rows(), mpiio::rows(), mpi::rows());
    let libraries = [netcdf, pnetcdf, hdf5, mpiio, mpi].concat();
    [&libraries, stdio::ROWS, aio::ROWS.as_flattened(), jump::ROWS].concat()
}

/// Which set of symbols a row belongs to; a library is recognised by the symbols it exports.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Family {
    /// libnetcdf, with or without parallel I/O.
    Netcdf,
    /// libpnetcdf.
    Pnetcdf,
    /// libhdf5, any build.
    Hdf5,
    /// Open MPI's libmpi.
    OpenMpi,
    /// The same, where its structures differ: version 4.
    OpenMpi4,
    /// The same of version 5.
    OpenMpi5,
    /// Components of Open MPI, which are files of their own, or part of its libmpi: collectives chosen by tables.
    OmpiTuned,
    /// Simple collectives.
    OmpiBasic,
    /// Collectives in levels.
    OmpiHan,
    /// Collectives in shared memory.
    OmpiSm,
    /// Messages over all transports.
    OmpiOb1,
    /// Messages over UCX.
    OmpiUcx,
    /// Open MPI's own MPI-IO.
    Ompio,
    /// Open MPI's copy of ROMIO.
    OmpiRomio,
    /// MPICH's library, and those with its ABI.
    Mpich,
    /// MPICH's library with the ABI of the MPI standard.
    MpiAbi,
    /// The C library.
    Libc,
    /// What was a library of its own before glibc 2.34.
    Librt,
    /// Not a library: the kernel's system calls.
    Syscall,
    /// Requests of `io_uring`.
    Uring,
    /// Control blocks of libaio.
    Aio,
    /// Functions inside the kernel.
    Kernel,
    /// Not a library either: page faults on mapped files.
    Fault,
    /// A library (or the phases) of the user, by its number in the [`Catalog`](crate::catalog::Catalog).
    User(u8),
}

impl Family {
    /// Built-in families that live in files. Those of a run are in its [`Catalog`](crate::catalog::Catalog).
    pub const LIBRARIES: [Self; 18] = [
        Self::Netcdf,
        Self::Pnetcdf,
        Self::Hdf5,
        Self::OpenMpi,
        Self::OpenMpi4,
        Self::OpenMpi5,
        Self::Mpich,
        Self::MpiAbi,
        Self::OmpiTuned,
        Self::OmpiBasic,
        Self::OmpiHan,
        Self::OmpiSm,
        Self::OmpiOb1,
        Self::OmpiUcx,
        Self::Ompio,
        Self::OmpiRomio,
        Self::Libc,
        Self::Librt,
    ];

    /// A file that defines all of these is a library of the family.
    pub const fn sentinels(self) -> &'static [&'static str] {
        match self {
            Self::Netcdf => &["nc_open", "nc_put_vara"],
            Self::Pnetcdf => &["ncmpi_create", "ncmpi_enddef"],
            Self::Hdf5 => &["H5Fopen", "H5Dwrite"],
            Self::OpenMpi | Self::OpenMpi4 => &["MPI_File_open", "ompi_mpi_comm_world"],
            Self::OpenMpi5 => &["MPI_File_open", "ompi_mpi_comm_world", "MPI_Session_init"],
            Self::OmpiTuned => &["ompi_coll_tuned_comm_query"],
            Self::OmpiBasic => &["mca_coll_basic_comm_query"],
            Self::OmpiHan => &["mca_coll_han_comm_query"],
            Self::OmpiSm => &["mca_coll_sm_comm_query"],
            Self::OmpiOb1 => &["mca_pml_ob1_enable"],
            Self::OmpiUcx => &["mca_pml_ucx_enable"],
            Self::Ompio => &["mca_io_ompio_file_open"],
            Self::OmpiRomio => &["mca_io_romio_dist_MPI_File_open"],
            // `MPI_DUP_FN` of its mpi.h.
            Self::Mpich => &["MPI_File_open", "MPIR_Err_return_comm", "MPIR_Dup_fn"],
            Self::MpiAbi => &["MPI_File_open", "MPIR_Err_return_comm", "MPI_Abi_get_version"],
            Self::Libc => &["fopen", "fwrite", "fclose"],
            Self::Librt => &["aio_write", "lio_listio"],
            Self::Syscall | Self::Uring | Self::Aio | Self::Kernel | Self::Fault | Self::User(_) => &[],
        }
    }

    /// ... unless it defines one of these.
    pub const fn lacks(self) -> &'static [&'static str] {
        match self {
            Self::OpenMpi4 => &["MPI_Session_init"],
            Self::MpiAbi => &["MPIR_Dup_fn"],
            Self::Librt => &["fopen"],
            _ => &[],
        }
    }

    /// How names of files begin that look like a library of the family: one that cannot be read deserves a verdict, and
    /// one verdict is enough.
    pub const fn file_names(self) -> &'static [&'static str] {
        match self {
            // Not the Fortran and C++ ones, whose calls go through it.
            Self::Netcdf => &["libnetcdf.", "libnetcdf-", "libnetcdf_mpi", "libnetcdf_par"],
            Self::Pnetcdf => &["libpnetcdf"],
            Self::Hdf5 => &["libhdf5"],
            Self::OpenMpi => &["libmpi"],
            Self::Libc => &["libc.", "libc-", "ld-musl"],
            _ => &[],
        }
    }

    /// Where a library of the family has its version.
    pub const fn version(self) -> Version {
        match self {
            // H5public.h and H5init.c: `H5_VERS_INFO`.
            Self::Hdf5 => Version::Symbol("H5_lib_vers_info_g"),
            // ompi/runtime/ompi_mpi_init.c: `OMPI_IDENT_STRING`.
            Self::OpenMpi => Version::Symbol("ompi_version_string"),
            // src/mpi/init/initinfo.c (MPICH).
            Self::Mpich | Self::MpiAbi => Version::Symbol("MPII_Version_string"),
            // src/libs/... of PnetCDF: `PNETCDF_VERSION` and when it was released, as ident and for ncmpi_inq_libvers.
            Self::Pnetcdf => Version::Symbol("pnetcdf_libvers"),
            // csu/version.c: the banner.
            Self::Libc => Version::Text(" release version ", ".\n"),
            _ => Version::Nowhere,
        }
    }

    /// Is it part of a library with a family of its own, which has the version?
    pub const fn is_part(self) -> bool {
        matches!(
            self,
            Self::OpenMpi4
                | Self::OpenMpi5
                | Self::OmpiTuned
                | Self::OmpiBasic
                | Self::OmpiHan
                | Self::OmpiSm
                | Self::OmpiOb1
                | Self::OmpiUcx
                | Self::Ompio
                | Self::OmpiRomio
        )
    }

    /// The name shown to people.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Netcdf => "NetCDF",
            Self::Pnetcdf => "PnetCDF",
            Self::Hdf5 => "HDF5",
            Self::OpenMpi | Self::OpenMpi4 | Self::OpenMpi5 => "Open MPI",
            Self::OmpiTuned | Self::OmpiBasic | Self::OmpiHan | Self::OmpiSm | Self::OmpiOb1 | Self::OmpiUcx => {
                "Open MPI part"
            }
            Self::Ompio => OMPIO,
            Self::OmpiRomio => ROMIO,
            Self::Mpich => "MPICH",
            Self::MpiAbi => "MPI ABI",
            Self::Libc | Self::Librt => "C library",
            Self::Syscall => "system calls",
            Self::Uring => "io_uring",
            Self::Aio => "libaio",
            Self::Kernel => "kernel functions",
            Self::Fault => "page faults",
            Self::User(_) => "user",
        }
    }

    /// The layer its rows belong to.
    pub const fn layer(self) -> Layer {
        match self {
            Self::Netcdf => Layer::Netcdf,
            Self::Pnetcdf => Layer::Pnetcdf,
            Self::Hdf5 => Layer::Hdf5,
            Self::OpenMpi
            | Self::OpenMpi4
            | Self::OpenMpi5
            | Self::Mpich
            | Self::MpiAbi
            | Self::Ompio
            | Self::OmpiRomio => Layer::Mpiio,
            Self::OmpiTuned | Self::OmpiBasic | Self::OmpiHan | Self::OmpiSm | Self::OmpiOb1 | Self::OmpiUcx => {
                Layer::Mpi
            }
            Self::Libc | Self::Librt => Layer::Stdio,
            Self::Syscall | Self::Uring | Self::Aio => Layer::Syscall,
            Self::Kernel | Self::Fault => Layer::Vfs,
            Self::User(_) => Layer::App,
        }
    }
}

/// Where the content of a file has a version.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Version {
    Nowhere,
    /// The first number with a dot in the text that a symbol stands for.
    Symbol(&'static str),
    /// What stands between these texts.
    Text(&'static str, &'static str),
}
