//! The ABIs of MPI, and the rows of MPI communication and completion.

use crate::catalog::def::{Def, row};
use crate::catalog::role::{Data as Values, InnerValue, Request, RequestAction};
use crate::catalog::{Array, Async, Count, Fails, Family, Row, Src, Status, When};
use crate::vocabulary::{Kind, Layer};

/// How handles, statuses and datatypes of an MPI library look.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::catalog) enum Abi {
    /// Handles are pointers to structures, which are read.
    OpenMpi,
    /// Handles are numbers of 32 bits (MPICH and what has its ABI: Intel MPI, Cray MPICH, MVAPICH).
    Mpich,
    /// Handles are opaque pointers (MPI-5.0 chapter 20), here those of MPICH and Intel MPI.
    Standard,
}

pub(in crate::catalog) const ABIS: [Abi; 3] = [Abi::OpenMpi, Abi::Mpich, Abi::Standard];

impl Abi {
    pub const fn family(self) -> Family {
        match self {
            Self::OpenMpi => Family::OpenMpi,
            Self::Mpich => Family::Mpich,
            Self::Standard => Family::MpiAbi,
        }
    }

    /// A handle that is passed.
    pub const fn handle(self, arg: u8) -> Src {
        match self {
            Self::Mpich => Src::Int(arg),
            Self::OpenMpi | Self::Standard => Src::Arg(arg),
        }
    }

    /// A handle that an argument points at, when the call returns.
    pub const fn out(self, arg: u8) -> Src {
        match self {
            Self::Mpich => Src::OutInt(arg),
            Self::OpenMpi | Self::Standard => Src::Out(arg),
        }
    }

    /// The same when it enters.
    pub const fn inout(self, arg: u8) -> Src {
        match self {
            Self::Mpich => Src::InInt(arg),
            Self::OpenMpi | Self::Standard => Src::In(arg),
        }
    }

    /// Bytes transferred, from the status that an argument points at.
    pub const fn status(self, arg: u8) -> Src {
        match self {
            Self::OpenMpi => Src::Status(arg),
            // The count comes first (MPICH, mpi.h).
            Self::Mpich => Src::StatusSplit(arg, 0),
            // It is in `MPI_internal`, behind source, tag and error (MPICH, mpi_abi.h).
            Self::Standard => Src::StatusSplit(arg, 12),
        }
    }

    /// How a status looks, in ints: see `status`.
    const fn layout(self) -> Status {
        match self {
            Self::OpenMpi => Status { ints: 6, at: 4, split: false },
            Self::Mpich => Status { ints: 5, at: 0, split: true },
            Self::Standard => Status { ints: 8, at: 3, split: true },
        }
    }

    /// Takes as length a count times the size of a datatype; `large`: the count has 64 bits.
    pub const fn sized(self, row: Def<Values>, count: u8, datatype: u8, large: bool) -> Def<Values> {
        match (self, large) {
            (Self::OpenMpi, false) => row.len(Src::Typed(count, datatype)),
            (Self::OpenMpi, true) => row.len(Src::TypedLong(count, datatype)),
            (_, false) => row.wants(0, InnerValue::TypeSize).len(Src::CountInner(count, 0)),
            (_, true) => row.wants(0, InnerValue::TypeSize).len(Src::ArgInner(count, 0)),
        }
    }
}

/// Where a function has the count and the datatype of what this process gives (or of what it gets, where it gives
/// nothing).
type Data = Option<(u8, u8)>;
const NONE: Data = None;
const GIVES: Data = Some((1, 2));
const REDUCES: Data = Some((2, 3));
const GETS: Data = Some((4, 5));
const GETS_OWN: Data = Some((5, 6));

macro_rules! communication {
    ($($name:literal: $data:ident;)+) => { &[$((concat!("MPI_", $name), concat!("MPI_", $name, "_c"), $data)),+] };
}

/// Functions and their forms with 64-bit counts.
const COMMUNICATION: &[(&str, &str, Data)] = communication! {
    "Bcast": GIVES;
    "Gather": GIVES;
    "Gatherv": GIVES;
    "Allgather": GIVES;
    "Allgatherv": GIVES;
    "Scatter": GETS;
    "Scatterv": GETS_OWN;
    "Alltoall": NONE;
    "Alltoallv": NONE;
    "Alltoallw": NONE;
    "Reduce": REDUCES;
    "Allreduce": REDUCES;
    "Scan": REDUCES;
    "Exscan": REDUCES;
    "Reduce_scatter": NONE;
    "Reduce_scatter_block": REDUCES;
    "Ibcast": GIVES;
    "Iallgather": GIVES;
    "Ialltoall": NONE;
    "Ialltoallv": NONE;
    "Iallreduce": REDUCES;
    "Send": GIVES;
    "Ssend": GIVES;
    "Isend": GIVES;
    "Issend": GIVES;
    "Recv": GIVES;
    "Irecv": GIVES;
    "Sendrecv": GIVES;
};

/// Functions that move no data of the program.
const CONTROL: &[&str] = &[
    "MPI_Barrier",
    "MPI_Ibarrier",
    "MPI_Probe",
    "MPI_Iprobe",
    "MPI_Comm_dup",
    "MPI_Comm_split",
    "MPI_Comm_split_type",
];

/// What Open MPI's own I/O component (OMPIO) calls in place of these: functions of the library and of its components,
/// which are files of their own in version 4. Arguments are those of the functions of MPI (ompi/mca/coll/coll.h,
/// ompi/mca/pml/pml.h, ompi/mca/common/ompio, ompi/request/request.h; versions 4.1 and 5.0).
const COMPONENTS: &[(Family, &[(&str, Data)])] = &[
    (
        Family::OpenMpi,
        &[
            ("ompi_fcoll_base_coll_allgather_array", GIVES),
            ("ompi_fcoll_base_coll_allgatherv_array", GIVES),
            ("ompi_fcoll_base_coll_bcast_array", GIVES),
            ("ompi_fcoll_base_coll_gather_array", GIVES),
            ("ompi_fcoll_base_coll_gatherv_array", GIVES),
            ("ompi_fcoll_base_coll_scatterv_array", GETS_OWN),
            ("ompi_coll_base_allgather_intra_basic_linear", GIVES),
            ("ompi_coll_base_allgatherv_intra_basic_default", GIVES),
            ("ompi_coll_base_alltoall_intra_basic_linear", NONE),
            ("ompi_coll_base_alltoallv_intra_basic_linear", NONE),
            ("ompi_coll_base_barrier_intra_basic_linear", NONE),
            ("ompi_coll_base_bcast_intra_basic_linear", GIVES),
            ("ompi_coll_base_gather_intra_basic_linear", GIVES),
            ("ompi_coll_base_reduce_intra_basic_linear", REDUCES),
            ("ompi_coll_base_scatter_intra_basic_linear", GETS),
        ],
    ),
    (
        Family::OmpiTuned,
        &[
            ("ompi_coll_tuned_allgather_intra_dec_fixed", GIVES),
            ("ompi_coll_tuned_allgather_intra_dec_dynamic", GIVES),
            ("ompi_coll_tuned_allgatherv_intra_dec_fixed", GIVES),
            ("ompi_coll_tuned_allgatherv_intra_dec_dynamic", GIVES),
            ("ompi_coll_tuned_allreduce_intra_dec_fixed", REDUCES),
            ("ompi_coll_tuned_allreduce_intra_dec_dynamic", REDUCES),
            ("ompi_coll_tuned_alltoall_intra_dec_fixed", NONE),
            ("ompi_coll_tuned_alltoall_intra_dec_dynamic", NONE),
            ("ompi_coll_tuned_alltoallv_intra_dec_fixed", NONE),
            ("ompi_coll_tuned_alltoallv_intra_dec_dynamic", NONE),
            ("ompi_coll_tuned_barrier_intra_dec_fixed", NONE),
            ("ompi_coll_tuned_barrier_intra_dec_dynamic", NONE),
            ("ompi_coll_tuned_bcast_intra_dec_fixed", GIVES),
            ("ompi_coll_tuned_bcast_intra_dec_dynamic", GIVES),
            ("ompi_coll_tuned_gather_intra_dec_fixed", GIVES),
            ("ompi_coll_tuned_gather_intra_dec_dynamic", GIVES),
            ("ompi_coll_tuned_reduce_intra_dec_fixed", REDUCES),
            ("ompi_coll_tuned_reduce_intra_dec_dynamic", REDUCES),
            ("ompi_coll_tuned_scatter_intra_dec_fixed", GETS),
            ("ompi_coll_tuned_scatter_intra_dec_dynamic", GETS),
        ],
    ),
    (
        Family::OmpiBasic,
        &[
            ("mca_coll_basic_allreduce_intra", REDUCES),
            ("mca_coll_basic_alltoallw_intra", NONE),
            ("mca_coll_basic_barrier_intra_log", NONE),
            ("mca_coll_basic_bcast_log_intra", GIVES),
            ("mca_coll_basic_exscan_intra", REDUCES),
            ("mca_coll_basic_gatherv_intra", GIVES),
            ("mca_coll_basic_reduce_log_intra", REDUCES),
            ("mca_coll_basic_scan_intra", REDUCES),
            ("mca_coll_basic_scatterv_intra", GETS_OWN),
        ],
    ),
    (
        Family::OmpiHan,
        &[
            ("mca_coll_han_allgather_intra_dynamic", GIVES),
            ("mca_coll_han_allgatherv_intra_dynamic", GIVES),
            ("mca_coll_han_allreduce_intra_dynamic", REDUCES),
            ("mca_coll_han_barrier_intra_dynamic", NONE),
            ("mca_coll_han_bcast_intra_dynamic", GIVES),
            ("mca_coll_han_gather_intra_dynamic", GIVES),
            ("mca_coll_han_reduce_intra_dynamic", REDUCES),
            ("mca_coll_han_scatter_intra_dynamic", GETS),
        ],
    ),
    (
        Family::OmpiSm,
        &[
            ("mca_coll_sm_allreduce_intra", REDUCES),
            ("mca_coll_sm_barrier_intra", NONE),
            ("mca_coll_sm_bcast_intra", GIVES),
            ("mca_coll_sm_reduce_intra", REDUCES),
        ],
    ),
    (
        Family::OmpiOb1,
        &[
            ("mca_pml_ob1_send", GIVES),
            ("mca_pml_ob1_isend", GIVES),
            ("mca_pml_ob1_recv", GIVES),
            ("mca_pml_ob1_irecv", GIVES),
        ],
    ),
    (
        Family::OmpiUcx,
        &[
            ("mca_pml_ucx_send", GIVES),
            ("mca_pml_ucx_isend", GIVES),
            ("mca_pml_ucx_recv", GIVES),
            ("mca_pml_ucx_irecv", GIVES),
        ],
    ),
];

/// Where OMPIO waits for messages.
const WAITS: &[&str] = &[
    "ompi_request_default_wait",
    "ompi_request_default_wait_all",
    "ompi_request_default_wait_any",
    "ompi_request_default_wait_some",
];

impl Abi {
    /// Recorded only inside a call of an I/O library.
    const fn mpi(self, symbol: &'static str, kind: Kind) -> Def<Values> {
        row(self.family(), Layer::Mpi, symbol, kind).unrelated().fails(Fails::NonZero).inside()
    }

    fn communication(self, symbol: &'static str, data: Data, large: bool) -> Def<Values> {
        let row = self.mpi(symbol, Kind::Other);
        match (self, data, large) {
            (Self::OpenMpi, Some((count, datatype)), false) => row.len(Src::Typed(count, datatype)),
            (Self::OpenMpi, Some((count, datatype)), true) => row.len(Src::TypedLong(count, datatype)),
            (Self::Mpich, Some((count, datatype)), _) => row.len(Src::TypedNumber(count, datatype)),
            _ => row,
        }
    }

    /// Calls that find requests complete, also those of file I/O, which may be called anywhere.
    fn completion(self) -> [Row; 11] {
        use RequestAction::{Ask, Free, Test, Wait};
        let request = |symbol, action, handle| self.mpi(symbol, Kind::Wait).handle(handle).request(action);
        let array = |slot, when| match self {
            Self::Mpich => Array::ints(slot, when, 1, Count::Arg(0)),
            Self::OpenMpi | Self::Standard => Array::longs(slot, when, 1, Count::Arg(0)),
        };
        let list = |symbol, action| request(symbol, action, Src::None).array(0, array(0, When::Entry));
        // One status for each request, whose number is the first argument.
        let all = |row: Def<Request>, arg| {
            let layout = self.layout();
            let bytes = layout.ints * size_of::<i32>() as u8;
            row.statuses(2, Array::structs(2, When::Return, arg, Count::Arg(0), bytes), layout)
        };
        let some = |symbol| list(symbol, Test).array(1, array(1, When::Return));
        // Whether they are complete, or how many, is in the `int` that an argument points at.
        let found = |row: Def<Request>, arg| row.outcome(Src::OutInt(arg));
        let one = |symbol, action| request(symbol, action, self.inout(0));
        [
            one("MPI_Wait", Wait).moved(self.status(1)),
            all(list("MPI_Waitall", Wait), 2),
            some("MPI_Waitany").moved(self.status(3)),
            some("MPI_Waitsome").moved(self.status(4)),
            found(one("MPI_Test", Test), 1).result(self.out(0)).moved(self.status(2)),
            all(found(some("MPI_Testall"), 2), 3),
            found(some("MPI_Testany"), 3).moved(self.status(4)),
            found(some("MPI_Testsome"), 2).moved(self.status(4)),
            found(request("MPI_Request_get_status", Ask, self.handle(0)), 1),
            one("MPI_Cancel", Ask),
            one("MPI_Request_free", Free),
        ]
        .map(Def::<Request>::done)
    }
}

pub(in crate::catalog) fn rows() -> Vec<Row> {
    let mut rows = Vec::new();
    for abi in ABIS {
        for (symbol, large, data) in COMMUNICATION {
            rows.push(abi.communication(symbol, *data, false).done());
            rows.push(abi.communication(large, *data, true).done());
        }
        rows.extend(CONTROL.iter().map(|symbol| abi.mpi(symbol, Kind::Other).done()));
        rows.extend(abi.completion());
    }
    for (family, functions) in COMPONENTS {
        let row = |(symbol, data): &(&'static str, Data)| {
            Abi::OpenMpi.communication(symbol, *data, false).family(*family).done()
        };
        rows.extend(functions.iter().map(row));
    }
    rows.extend(WAITS.iter().map(|symbol| Abi::OpenMpi.mpi(symbol, Kind::Wait).done()));
    // What a collective call does with messages takes as long as it does, and there are many of them. What finds requests
    // complete may do so for file I/O.
    let outermost = |row: Row| {
        let alone = row.asynchronous() == Async::No;
        Row { outermost: alone, pauses: alone, ..row }
    };
    rows.into_iter().map(outermost).collect()
}
