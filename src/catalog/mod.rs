//! The catalog: one row per traced function, system calls included.
//!
//! A row is data. Its index is the probe's cookie, the index into the kernel side's array of specs and
//! the `spec` of every event. Adding a function adds a row here and nothing in `bpf/`.

mod aio;
mod fault;
pub mod fuse;
pub mod hdf5;
mod jump;
pub mod library;
mod mpi;
mod mpiio;
mod netcdf;
pub mod nfs;
mod number;
mod operation;
pub mod phase;
mod pnetcdf;
mod stdio;
pub mod symbol;
mod syscall;
mod user;
pub mod value;
pub mod variables;
mod vfs;

pub use library::{Catalog, Library};
pub use phase::Phase;
pub use syscall::COPIES;
pub use user::LIBRARY_LAYERS;

use crate::catalog::hdf5::{Accessor, Messages, Tells};
pub use crate::catalog::number::Layout;
use crate::catalog::variables::Meaning;
use crate::vocabulary::{Kind, Layer};

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
    /// A library (or the phases) of the user, by its number in the [`Catalog`].
    User(u8),
}

impl Family {
    /// Built-in families that live in files. Those of a run are in its [`Catalog`].
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

    /// Where a library of the family says which version it is.
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

    /// Is it part of a library that has a family of its own, which tells the version?
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

/// Where the content of a file says a version.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Version {
    Nowhere,
    /// The first number with a dot in the text that a symbol stands for.
    Symbol(&'static str),
    /// What stands between these texts.
    Text(&'static str, &'static str),
}

/// Where a value of a call comes from. Argument positions count from 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Src {
    /// There is none.
    None,
    /// The 64-bit argument.
    Arg(u8),
    /// The argument as a signed 32-bit integer.
    Int(u8),
    /// The 64-bit word an argument points at, read at entry.
    In(u8),
    /// The 64-bit word an argument points at, read at return.
    Out(u8),
    /// The product of two arguments.
    Mul(u8, u8),
    /// A count (an `int`) times the size of the Open MPI datatype that the second argument points at.
    Typed(u8, u8),
    /// The same with a 64-bit count.
    TypedLong(u8, u8),
    /// The length of the string an argument points at, at return.
    Strlen(u8),
    /// The result.
    Ret,
    /// The result times an argument.
    RetTimes(u8),
    /// Bytes transferred, from the Open MPI status that an argument points at.
    Status(u8),
    /// What was asked for, when the call succeeds.
    Asked,
    /// The sum of an I/O vector: pointer, count.
    Iov(u8, u8),
    /// The same of the one in a `struct msghdr`.
    Message(u8),
    /// The file position before the call (system calls).
    Pos,
    /// The `int` an argument points at, read at entry.
    InInt(u8),
    /// The `int` an argument points at, read at return.
    OutInt(u8),
    /// The 64-bit member of the struct an argument points at, at this offset, read at return.
    Field(u8, u32),
    /// The same of an `int`.
    FieldInt(u8, u32),
    /// What a call inside this one told: see `Row::takes`.
    Note(u8),
    /// The product of two notes.
    Notes(u8, u8),
    /// An `int` argument times a note.
    CountNote(u8, u8),
    /// A 64-bit argument times a note.
    ArgNote(u8, u8),
    /// Bytes transferred, from the MPICH status that an argument points at: a count in two parts, so far into it.
    StatusSplit(u8, u32),
    /// A count (an `int`) times the size of the MPICH datatype that the second argument is, if it is a predefined one.
    TypedNumber(u8, u8),
    /// The `int` behind a pointer in the struct that an argument points at: where the pointer is, where the `int` is.
    Through(u8, u32, u8),
    /// The result, an `int`.
    RetInt,
    /// Notes come once for each of as many things as an argument says: the sum of the products of two of them. Such a
    /// row takes three notes.
    Rounds(u8, u8, u8),
    /// A fixed number.
    Const(u8),
    /// The length of the string an argument points at, and of the newline that is written after it.
    Line(u8),
    /// The value that a pointer variable of the library has at entry, by its name.
    Global(&'static str),
    /// Where in the file the stream stood that is the handle, before the call (C library).
    StreamPos,
    /// The same, after the call.
    StreamEnd,
    /// The bytes from there to there.
    StreamMoved,
    /// A 64-bit count times the size of an MPI datatype: any of Open MPI, the predefined ones of MPICH.
    MpiSize(u8, u8),
    /// The 64-bit member, at this offset, of the struct that the pointer leads to which an argument points at.
    Behind(u8, u32),
    /// The same of an `int`.
    BehindInt(u8, u32),
    /// The same of 64 bits, and of the result instead of an argument.
    RetBehind(u32),
    /// Two `int` arguments: one in the low half, the other above it.
    Pair(u8, u8),
    /// An `int` argument in the low half, a note + 1 above it (0: it was not told).
    PairNote(u8, u8),
    /// An `int` argument in the low 16 bits, the `int` that the other points at above it (0: none).
    PairOut(u8, u8),
    /// The argument times a number.
    Scaled(u8, u16),
    /// The result times a number.
    RetScaled(u16),
    /// Whether the descriptor that the call makes (else its first argument) is closed by an exec (system calls).
    Cloexec,
}

impl Src {
    /// The arguments that it looks at.
    fn arguments(self) -> [Option<u8>; 2] {
        match self {
            Self::Arg(a)
            | Self::Int(a)
            | Self::In(a)
            | Self::Out(a)
            | Self::Strlen(a)
            | Self::Line(a)
            | Self::RetTimes(a)
            | Self::Status(a)
            | Self::InInt(a)
            | Self::OutInt(a)
            | Self::Field(a, _)
            | Self::FieldInt(a, _)
            | Self::CountNote(a, _)
            | Self::Scaled(a, _)
            | Self::ArgNote(a, _)
            | Self::StatusSplit(a, _)
            | Self::Message(a)
            | Self::Through(a, ..)
            | Self::Rounds(a, ..)
            | Self::Behind(a, _)
            | Self::BehindInt(a, _)
            | Self::PairNote(a, _) => [Some(a), None],
            Self::Mul(a, b)
            | Self::Typed(a, b)
            | Self::TypedLong(a, b)
            | Self::TypedNumber(a, b)
            | Self::MpiSize(a, b)
            | Self::Pair(a, b)
            | Self::PairOut(a, b)
            | Self::Iov(a, b) => [Some(a), Some(b)],
            Self::None
            | Self::Ret
            | Self::RetInt
            | Self::RetBehind(_)
            | Self::RetScaled(_)
            | Self::Asked
            | Self::Pos
            | Self::Note(_)
            | Self::Notes(..)
            | Self::Const(_)
            | Self::Global(_)
            | Self::StreamPos
            | Self::StreamEnd
            | Self::StreamMoved
            | Self::Cloexec => [None; 2],
        }
    }
}

/// How the arguments of a function inside the kernel name a file, and what part of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum About {
    Nothing,
    /// A `struct file`.
    File,
    /// A `struct file`, then a buffer, its size, and where the position is.
    Buffer,
    /// A `struct file`, then a `struct iov_iter`, and where the position is.
    Iter,
    /// A `struct kiocb`, then a `struct iov_iter`.
    Kiocb,
    /// A `struct path`.
    Path,
    /// The second argument is a `struct dentry`.
    Dentry,
    /// The third is.
    Entry,
    /// The result is a `struct file`.
    Opened,
}

/// How many elements an array of the program has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Count {
    /// Always this many.
    Const(u8),
    /// An `int` argument.
    Arg(u8),
    /// The result, an `int`.
    Ret,
    /// The `int` an argument points at; where it points at nothing, 256 bytes, those beyond the array's end without meaning.
    At(u8),
    /// One per dimension of something whose rank only the reader knows: it takes as many as there are dimensions, at
    /// least 8 words are sent, those beyond the array's end without meaning.
    Rank,
}

/// When an array is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum When {
    Entry,
    /// If the call succeeds.
    Return,
}

/// An array of the program that goes with the call, as `TextKind::Ints` or `TextKind::Longs` of this slot (0 to 15).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Words {
    pub when: When,
    pub arg: u8,
    /// Bytes of an element: 4 or 8, or of a struct of 32-bit integers.
    pub elem: u8,
    pub count: Count,
    pub slot: u8,
    pub deref: Deref,
    /// The number of elements is a rank: where ranks are not known, so many are read from now on.
    pub rank: bool,
}

/// What the elements of an array lead to, which is sent instead of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Deref {
    /// They are the values themselves.
    No,
    /// Pointers to as many 64-bit integers (at most 252).
    Longs(u8),
    /// Pointers to the first indices of boxes; those of the next argument, if there are any, lead to their counts, one
    /// per dimension. The values are where the last box ends in the first dimension and then, for 1, 2, 3 and more
    /// dimensions, how many elements all boxes have, as far as counts could be read.
    Boxes,
    /// Ranks in the job of the members of a communicator of Open MPI, as runs of three: the first, the last, and their
    /// distance. `count` says how many 64-bit integers into it the pointer to its group stands.
    Members,
    /// How a dataset of HDF5 is stored: the library's `H5O_layout_t`; of a dataset in chunks the next slot has the
    /// number of its filters and their `H5Z_filter_info_t`.
    Storage,
}

impl Words {
    /// 64-bit elements.
    pub(crate) const fn longs(slot: u8, when: When, arg: u8, count: Count) -> Self {
        Self { when, arg, elem: 8, count, slot, deref: Deref::No, rank: false }
    }
    /// 32-bit elements.
    pub(crate) const fn ints(slot: u8, when: When, arg: u8, count: Count) -> Self {
        Self { when, arg, elem: 4, count, slot, deref: Deref::No, rank: false }
    }
    /// Structs of 32-bit integers, each of so many bytes.
    pub(crate) const fn structs(slot: u8, when: When, arg: u8, count: Count, bytes: u8) -> Self {
        Self { when, arg, elem: bytes, count, slot, deref: Deref::No, rank: false }
    }
    /// What each of the pointers leads to, `words` of it.
    pub(crate) const fn behind(slot: u8, when: When, arg: u8, count: Count, words: u8) -> Self {
        Self { when, arg, elem: 8, count, slot, deref: Deref::Longs(words), rank: false }
    }
    /// What boxes come to, of as many as an argument says.
    pub(crate) const fn boxes(slot: u8, arg: u8, number: u8) -> Self {
        Self { deref: Deref::Boxes, ..Self::longs(slot, When::Entry, arg, Count::Arg(number)) }
    }
    /// Members of a communicator of Open MPI, whose group stands so many bytes into it.
    pub(crate) const fn members(slot: u8, arg: u8, group: u32) -> Self {
        let count = Count::Const((group / 8) as u8);
        Self { when: When::Return, arg, elem: 4, count, slot, deref: Deref::Members, rank: false }
    }
    /// How the dataset of HDF5 is stored that an argument leads to.
    pub(crate) const fn storage(slot: u8, arg: u8) -> Self {
        Self { when: When::Return, arg, elem: 8, count: Count::Const(0), slot, deref: Deref::Storage, rank: false }
    }
    pub(crate) const fn rank(mut self) -> Self {
        self.rank = true;
        self
    }
    /// The same array of a function with that many arguments in front.
    pub(crate) const fn later(mut self, arguments: u8) -> Self {
        self.arg += arguments;
        self.count = match self.count {
            Count::Arg(a) => Count::Arg(a + arguments),
            Count::At(a) => Count::At(a + arguments),
            other => other,
        };
        self
    }
}

/// What an inner function of a library tells the call it runs in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum Note {
    /// Points of a selection.
    Points,
    /// Points of a dataspace's whole extent.
    Extent,
    /// Bytes of an element of a datatype.
    TypeSize,
    /// Rank and dimensions of a dataspace.
    Dims,
    /// Processes of a communicator.
    Ranks,
    /// Bytes of a block of raw data that is read.
    Block,
    /// Dimensions of a variable.
    Rank,
    /// Their lengths, in words that go with the call.
    Shape,
    /// Elements of an attribute.
    Length,
    /// Open MPI's own MPI-IO has opened a file.
    Ompio,
    /// Its copy of ROMIO has.
    Romio,
    /// How a dataset is stored, in words that go with the call.
    Storage,
}

/// Where the field of a structure is read that an accessor returns, which cannot be probed cheaply itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FieldAt {
    /// At the entry of this function, of its first two arguments.
    Entry(&'static str),
    /// At calls of the accessor in these functions.
    CallsIn(&'static [&'static str]),
    /// At calls of the accessor everywhere in its file but behind a call of this function in the same one.
    CallsNotAfter(&'static str),
}

impl FieldAt {
    /// The functions that it names.
    pub fn symbols(self) -> impl Iterator<Item = &'static str> {
        let (one, several) = match self {
            Self::Entry(name) | Self::CallsNotAfter(name) => (Some(name), &[][..]),
            Self::CallsIn(names) => (None, names),
        };
        one.into_iter().chain(several.iter().copied())
    }
}

/// How a call says that it failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fails {
    /// It cannot.
    Never,
    /// A negative result (as 32 bits for `int`, as 64 for the kernel and `hid_t`).
    Negative,
    /// A negative 32-bit result.
    NegativeInt,
    /// A null or zero result.
    Zero,
    /// A non-zero 32-bit result, which is the library's own code.
    NonZero,
    /// A null or zero result means that nothing was moved, a failure if the stream has its error indicator set.
    Eof,
    /// The same with a 32-bit result of -1.
    EofInt,
}

/// What a call does to handles.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    /// Nothing; it may name a file by path only.
    None,
    /// Uses `handle`.
    Use,
    /// Makes `handle`; `len` is the mode argument, `off` the handle it is opened in (dataset in file, path below dirfd),
    /// `got` the number of processes that open it together; of a system call, whether an exec closes it.
    Open,
    /// Ends `handle`.
    Close,
    /// Ends the handle in `off`, successful or not, and opens `handle`.
    Reopen,
    /// Makes `handle` another name of the handle in `off`; `got` as of `Open`.
    Dup,
    /// Ends the file's name (unlink); the file is known by path.
    Unlink,
    /// Moves a name from path to path2.
    Rename,
    /// What path and path2 name change places.
    Exchange,
    /// Gives what path names the name path2, too.
    Link,
    /// Ends the descriptors from `off` to `len`, or has them closed by an exec: `got` are its flags.
    CloseRange,
    /// `got` says whether an exec closes `handle`.
    Inherit,
}

/// What a call does to a set of hints (`MPI_Info`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Hints {
    /// Nothing.
    None,
    /// Makes `handle`.
    Create,
    /// Gives the key `path` in `handle` the value `path2`.
    Set,
    /// Takes the key `path` out of `handle`.
    Delete,
    /// Makes `off`, with what is in `handle`.
    Dup,
    /// Ends `handle`.
    Free,
    /// Gives those of `off` to the file.
    Off,
    /// Gives those of `len` to the file.
    Len,
}

/// What a call does to asynchronous operations. A request is an opaque value, unique in its process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Async {
    /// Nothing.
    No,
    /// Submits one: `got` is its request.
    Submit,
    /// Submits one: `got` is its request, which counts within `handle`.
    SubmitOf,
    /// Submits those in words 0.
    SubmitList,
    /// Begins the one split operation of `handle`.
    Begin,
    /// Ends it; `len` is what it moved, where that is told.
    End,
    /// Returns when its requests are complete: `handle` (one; `len` is then what it moved) or words 0 (a list).
    Wait,
    /// Completes those of its requests that have changed when it returns: `handle` and then `got`, or words 0 and then 1.
    Test,
    /// Asks about a request, or wants it cancelled, which completes nothing.
    Ask,
    /// Gives a request up: nobody will see its end.
    Free,
    /// Completes requests that count within `handle`: a list of `len` in words 0, or all of a kind (`len` below 0).
    WaitIds,
    /// Cancels them.
    CancelIds,
    /// Cancels all that count within `handle`, if there are any.
    CancelAll,
    /// Takes the result, `got`, of request `handle`.
    Return,
}

/// What a call was given that is neither place nor size: the columns `cmd` and `arg` say it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Argument {
    Nothing,
    /// `len` is a command of `fcntl`, and above it the low half of its argument.
    Command,
    /// `len` is the offset that was asked for, `got` what it counts from.
    Seek,
    /// `off` is the descriptor that another one is made of.
    Descriptor,
    /// `off` is what was found: whether requests are complete, or how many.
    Outcome,
}

/// Where the structs in words 2, one for each request in words 0, say what an operation moved.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Status {
    /// 32-bit integers of a struct.
    pub ints: u8,
    /// The one with the low half of the count; the next has the high half.
    pub at: u8,
    /// The lowest bit of the high half is not part of the count.
    pub split: bool,
}

/// Slots of words, read at entry, that hold `struct aiocb`s (17 words each): what a helper thread is going to do.
pub const JOB_SYNC: u8 = 12;
pub const JOB_READ: u8 = 13;
pub const JOB_WRITE: u8 = 14;
/// Each says by itself whether it reads or writes (`aio_lio_opcode`).
pub const JOB_LIST: u8 = 15;

/// Slots of words of a call that opens a file of MPI-IO: runs of ranks in the job of those that open it together
/// ([`Deref::Members`]); any from the implementation that has opened it.
pub const OPENED_BY: u8 = 0;
pub const OMPIO_OPENED: u8 = 1;
pub const ROMIO_OPENED: u8 = 2;

/// The implementations of MPI-IO.
pub const OMPIO: &str = "OMPIO";
pub const ROMIO: &str = "ROMIO";

/// One traced function.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Row {
    pub family: Family,
    pub layer: Layer,
    /// The exported symbol, or the system call's name.
    pub symbol: &'static str,
    /// The name in the output.
    pub op: &'static str,
    pub kind: Kind,
    pub role: Role,
    pub handle: Src,
    pub len: Src,
    pub off: Src,
    pub got: Src,
    /// Argument that points at a path or name.
    pub path: Option<u8>,
    /// The call fills it in.
    pub names: bool,
    pub path2: Option<u8>,
    /// Arguments with the directory descriptor a relative path starts from (absent: working directory).
    pub base: Option<u8>,
    pub base2: Option<u8>,
    pub fails: Fails,
    /// `flag::COLLECTIVE` and the like.
    pub flags: i32,
    /// Opens an object (dataset, attribute, group) inside a file, of this class.
    pub object: Option<&'static str>,
    /// Only calls whose argument has one of these two values are recorded.
    pub only: Option<(u8, u32, u32)>,
    /// Argument with a `struct stat` (true: `struct statx`) filled at return, which identifies the file.
    pub stat: Option<(u8, bool)>,
    /// The call makes no span: its `got` is told to the innermost open call, if that takes such a note.
    pub note: Option<Note>,
    /// The function returns a field of its first argument's structure, which is read elsewhere instead.
    pub accessor: Option<Accessor>,
    /// Notes the call takes from calls inside it, the first three (of a kind: in their order); values for `Src::Note`.
    pub takes: [Option<Note>; 3],
    /// It takes the arrays of all such notes, and no values.
    pub every: bool,
    /// Arrays that go with the call.
    pub words: [Option<Words>; 4],
    /// Recorded only while a call of an I/O library is open on the thread, or when it waits for a request (`handle`, or
    /// the array that is read at entry) that such a call submitted.
    pub inside: bool,
    /// `got` is a request that rows with `inside` wait for.
    pub submits: bool,
    pub asynchronous: Async,
    /// What structs in words 2 look like.
    pub statuses: Option<Status>,
    pub hints: Hints,
    /// Recorded only outside calls of its own layer.
    pub outermost: bool,
    /// Not recorded with this result, unless it is 0.
    pub quiet: u8,
    /// `handle` is a file descriptor, whatever the layer.
    pub descriptor: bool,
    /// What it says of shapes; its values are then what that says they are.
    pub tells: Tells,
    /// What it says of variables; the same.
    pub meaning: Meaning,
    /// Functions inside the kernel: which file.
    pub about: About,
    /// System calls that the row's `only` leaves out are those of the next row.
    pub otherwise: bool,
    /// The first argument is an address: it is about the file that is mapped there, and left out where none is.
    pub mapped: bool,
    /// It moves data from one file to another. Behind the row of a call are that of one which takes from a file, and gives to
    /// none that is recorded, and the half that reads.
    pub copies: Copies,
    pub argument: Argument,
    /// Its path is told when it enters: it changes what that is seen from, or does not return to the memory that it is
    /// in.
    pub early: bool,
    /// Only with `--sockets`.
    pub sockets: bool,
    /// Not recorded: it leaves calls without a return, by setting the stack pointer to `got`.
    pub jumps: bool,
    /// Does no I/O, and is called often: probed only where all of its layer is asked for (`--layers hdf5=all`).
    pub secondary: bool,
    /// Most calls only touch a stream's buffer and are shorter than their probe, which goes while the trace runs where they come
    /// often: where the stream stands tells what they moved.
    pub brief: bool,
    /// Communication, recorded only inside I/O: where a thread does it all the time its probe goes for a while.
    pub pauses: bool,
    /// Probed only in the place of brief functions: fills a stream's buffer (read), empties it (write), or ends it.
    pub slow_path: Option<Kind>,
}

/// What the arguments of a call that copies are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Copies {
    Nothing,
    /// Descriptor and pointer to an offset of the source, then of the destination; length.
    Ranges,
    /// Destination, source, pointer to an offset of that; length.
    Send,
    /// Source, destination, length.
    Pipes,
    /// Of another row's call, or told by the kernel side.
    Part,
}

const fn row(family: Family, layer: Layer, symbol: &'static str, kind: Kind) -> Row {
    Row {
        family,
        layer,
        symbol,
        op: symbol,
        kind,
        role: Role::Use,
        handle: Src::None,
        len: Src::None,
        off: Src::None,
        got: Src::None,
        path: None,
        names: false,
        path2: None,
        base: None,
        base2: None,
        fails: Fails::Negative,
        flags: 0,
        object: None,
        only: None,
        stat: None,
        note: None,
        accessor: None,
        takes: [None; 3],
        every: false,
        words: [None; 4],
        inside: false,
        submits: false,
        asynchronous: Async::No,
        statuses: None,
        hints: Hints::None,
        outermost: false,
        quiet: 0,
        descriptor: false,
        tells: Tells::Nothing,
        meaning: Meaning::Nothing,
        about: About::Nothing,
        otherwise: false,
        mapped: false,
        copies: Copies::Nothing,
        argument: Argument::Nothing,
        early: false,
        sockets: false,
        jumps: false,
        secondary: false,
        brief: false,
        pauses: false,
        slow_path: None,
    }
}

impl Row {
    /// A phase: a function that is known for what runs inside it, and may last as long as the program.
    pub fn is_phase(&self) -> bool {
        self.layer == Layer::App && self.kind == Kind::Other && matches!(self.role, Role::None | Role::Use)
    }

    /// Are its paths those of files? Others name hints, or what is in a file that a handle stands for.
    pub fn names_files(&self) -> bool {
        let opens = matches!(self.role, Role::Open | Role::Reopen) && self.object.is_none();
        let asks = !matches!(self.role, Role::Use) && self.handle == Src::None && self.hints == Hints::None;
        self.path.is_some() && (self.layer == Layer::Syscall || opens || asks)
    }

    const fn kind(mut self, kind: Kind) -> Self {
        self.kind = kind;
        self
    }
    const fn op(mut self, op: &'static str) -> Self {
        self.op = op;
        self
    }
    const fn role(mut self, role: Role) -> Self {
        self.role = role;
        self
    }
    const fn handle(mut self, src: Src) -> Self {
        self.handle = src;
        self
    }
    const fn len(mut self, src: Src) -> Self {
        self.len = src;
        self
    }
    const fn off(mut self, src: Src) -> Self {
        self.off = src;
        self
    }
    const fn got(mut self, src: Src) -> Self {
        self.got = src;
        self
    }
    const fn path(mut self, arg: u8) -> Self {
        self.path = Some(arg);
        self
    }
    /// Argument that the call fills with a name.
    const fn names(mut self, arg: u8) -> Self {
        self.path = Some(arg);
        self.names = true;
        self
    }
    const fn path2(mut self, arg: u8) -> Self {
        self.path2 = Some(arg);
        self
    }
    const fn base(mut self, arg: u8) -> Self {
        self.base = Some(arg);
        self
    }
    const fn base2(mut self, arg: u8) -> Self {
        self.base2 = Some(arg);
        self
    }
    const fn fails(mut self, fails: Fails) -> Self {
        self.fails = fails;
        self
    }
    const fn flags(mut self, flags: i32) -> Self {
        self.flags = flags;
        self
    }
    const fn object(mut self, class: &'static str) -> Self {
        self.object = Some(class);
        self
    }
    const fn only(mut self, arg: u8, a: u32, b: u32) -> Self {
        self.only = Some((arg, a, b));
        self
    }
    const fn stat(mut self, arg: u8, extended: bool) -> Self {
        self.stat = Some((arg, extended));
        self
    }
    const fn note(mut self, note: Note, value: Src) -> Self {
        self.note = Some(note);
        self.got = value;
        self
    }
    const fn accessor(mut self, what: Accessor) -> Self {
        self.accessor = Some(what);
        self
    }
    const fn takes(mut self, at: usize, note: Note) -> Self {
        self.takes[at] = Some(note);
        self
    }
    const fn takes_every(mut self, note: Note) -> Self {
        self.every = true;
        self.takes(0, note)
    }
    const fn words(mut self, at: usize, words: Words) -> Self {
        self.words[at] = Some(words);
        self
    }
    const fn inside(mut self) -> Self {
        self.inside = true;
        self
    }
    const fn submits(mut self, request: Src) -> Self {
        self.submits = true;
        self.got = request;
        self
    }

    const fn asynchronous(mut self, what: Async) -> Self {
        self.asynchronous = what;
        self
    }
    const fn hints(mut self, hints: Hints) -> Self {
        self.hints = hints;
        self
    }
    const fn statuses(mut self, at: usize, words: Words, status: Status) -> Self {
        self.statuses = Some(status);
        self.words(at, words)
    }
    const fn outermost(mut self) -> Self {
        self.outermost = true;
        self
    }
    const fn quiet(mut self, result: u8) -> Self {
        self.quiet = result;
        self
    }
    const fn descriptor(mut self) -> Self {
        self.descriptor = true;
        self
    }
    const fn tells(mut self, what: Tells) -> Self {
        self.tells = what;
        self
    }
    const fn about(mut self, what: About) -> Self {
        self.about = what;
        self
    }
    const fn otherwise(mut self) -> Self {
        self.otherwise = true;
        self
    }
    const fn mapped(mut self) -> Self {
        self.mapped = true;
        self
    }
    const fn copies(mut self, what: Copies) -> Self {
        self.copies = what;
        self
    }
    const fn brief(mut self) -> Self {
        self.brief = true;
        self
    }
    const fn pauses(mut self) -> Self {
        self.pauses = true;
        self
    }
    const fn slow_path(mut self, does: Kind) -> Self {
        self.slow_path = Some(does);
        self
    }
    const fn secondary(mut self) -> Self {
        self.secondary = true;
        self
    }
    const fn argument(mut self, what: Argument) -> Self {
        self.argument = what;
        self
    }
    const fn early(mut self) -> Self {
        self.early = true;
        self
    }
    const fn sockets(mut self) -> Self {
        self.sockets = true;
        self
    }
    const fn meaning(mut self, what: Meaning) -> Self {
        self.meaning = what;
        self
    }

    /// The layers of which one must be traced for this row to be probed. What finds file I/O complete is part of that.
    pub fn layers(&self) -> [Layer; 2] {
        let completes = self.inside && self.asynchronous != Async::No;
        [self.layer, if completes { Layer::Mpiio } else { self.layer }]
    }

    /// The arguments that are looked at, as bits.
    pub fn arguments(&self) -> u16 {
        let sources = [self.handle, self.len, self.off, self.got].into_iter().flat_map(Src::arguments);
        let whole = [self.path, self.path2, self.base, self.base2, self.only.map(|o| o.0), self.stat.map(|s| s.0)];
        let words = self.words.into_iter().flatten().flat_map(|w| {
            let count = match w.count {
                Count::Arg(a) | Count::At(a) => Some(a),
                Count::Const(_) | Count::Ret | Count::Rank => None,
            };
            [Some(w.arg), (w.deref == Deref::Boxes).then_some(w.arg + 1), count]
        });
        let first = self.jumps.then_some(0);
        sources.chain(whole).chain(words).chain([first]).flatten().fold(0, |bits, arg| bits | 1 << arg)
    }

    /// The messages of an object header that the function reads: its code says where it puts them, and the probe reads
    /// them there.
    pub fn messages(&self) -> Option<Messages> {
        self.words.iter().flatten().any(|words| words.deref == Deref::Storage).then_some(hdf5::STORED)
    }

    /// Does it look at arguments beyond the six in registers?
    pub fn stack_arguments(&self) -> bool {
        self.arguments() >> 6 != 0
    }
}

/// Every row, libraries first; the position of a row is its number on the wire.
pub fn rows() -> Vec<Row> {
    let (netcdf, pnetcdf) = (netcdf::rows(), pnetcdf::rows());
    let (hdf5, mpiio, mpi) = (hdf5::rows(), mpiio::rows(), mpi::rows());
    let libraries = [netcdf, pnetcdf, hdf5, mpiio, mpi].concat();
    let kernel = [syscall::ROWS, operation::ROWS, vfs::ROWS, fault::ROWS].concat();
    [&libraries, stdio::ROWS, aio::ROWS.as_flattened(), jump::ROWS, &kernel].concat()
}

/// Are there calls of a layer that are left out unless all are asked for?
pub fn has_secondary(layer: Layer) -> bool {
    layer == Layer::Mpi || rows().iter().any(|row| row.layer == layer && row.secondary)
}

/// The number of a system call on this machine, by name.
pub fn syscall_number(name: &str) -> Option<u32> {
    number::X86_64.iter().find(|(n, _)| *n == name).map(|(_, nr)| *nr)
}

/// The numbers of a system call in 64-bit and x32 tasks.
pub fn long_numbers(name: &str) -> impl Iterator<Item = u32> {
    number::X86_64.iter().chain(number::X32).filter(move |(n, _)| *n == name).map(|(_, nr)| *nr)
}

/// The numbers of a system call in 32-bit tasks, and where these have the arguments.
pub fn short_numbers(name: &str) -> impl Iterator<Item = (u32, Layout)> {
    number::I386.iter().filter(move |(n, ..)| *n == name).map(|(_, nr, layout)| (*nr, *layout))
}

/// The number that the kernel knows an operation of `io_uring` or libaio by.
pub fn opcode(name: &str) -> Option<u8> {
    operation::OPCODES.iter().find(|(n, _)| *n == name).map(|(_, opcode)| *opcode)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    #[test]
    fn a_symbol_stands_in_one_row_of_its_family() {
        let mut seen = HashSet::new();
        for row in rows() {
            assert!(seen.insert((row.family, row.symbol)), "{} stands twice", row.symbol);
        }
    }

    #[test]
    fn every_system_call_has_a_number() {
        for row in rows().iter().filter(|r| r.family == Family::Syscall) {
            let call = row.op.split('.').next().unwrap_or(row.op);
            assert!(syscall_number(call).is_some(), "{} has no number", row.symbol);
        }
    }

    #[test]
    fn every_operation_has_an_opcode_of_its_own() {
        let mut seen = HashSet::new();
        for row in rows().iter().filter(|r| matches!(r.family, Family::Uring | Family::Aio)) {
            let opcode = opcode(row.symbol).unwrap_or_else(|| panic!("{} has no opcode", row.symbol));
            assert!(seen.insert((row.family, opcode)), "{} has another's opcode", row.symbol);
        }
        assert_eq!(seen.len(), operation::OPCODES.len());
    }

    #[test]
    fn opens_say_what_they_open() {
        for row in rows().iter().filter(|r| matches!(r.role, Role::Open | Role::Reopen)) {
            assert!(row.handle != Src::None, "{} opens nothing", row.symbol);
        }
    }
}
