//! MPI-IO rows, for each ABI of MPI. Signatures: MPI-4.0 chapter 14; `MPI_File` is a pointer; results are codes, 0 for
//! success.
//!
//! The Fortran bindings of Open MPI and MPICH call these functions of the C library, so they need no rows.

use crate::catalog::Src::{self, Arg, FromInner, In, Int, Out, OutInt, Through};
use crate::catalog::def::{Def, row};
use crate::catalog::libraries::mpi::{ABIS, Abi};
use crate::catalog::role::{Data as Values, HintSet, InnerValue, Open, RequestAction, Seek, SubmitAction};
use crate::catalog::{Array, Count, Fails, Family, OMPIO_OPENED, OPENED_BY, ROMIO_OPENED, Row, When};
use crate::vocabulary::{Kind, Layer, flag};

/// What the arguments of a function that moves data are.
#[derive(Clone, Copy)]
enum Shape {
    /// `(fh, buf, count, datatype, status)`
    Blocking,
    /// `(fh, buf, count, datatype)`, ended by a function of its own.
    Begin,
    /// `(fh, buf, count, datatype, request)`
    Start,
}
use Shape::{Begin, Blocking, Start};

/// A function that moves data, in its two forms: with a count of 32 and of 64 bits.
macro_rules! data {
    ($($name:literal: $kind:ident $shape:ident $(at $at:ident)? $(all $all:ident)?;)+) => {
        &[$(Data {
            symbols: [concat!("MPI_File_", $name), concat!("MPI_File_", $name, "_c")],
            kind: Kind::$kind,
            shape: $shape,
            at: data!(@set $($at)?),
            all: data!(@set $($all)?),
        }),+]
    };
    (@set) => { false };
    (@set $set:ident) => { $set };
}

struct Data {
    symbols: [&'static str; 2],
    kind: Kind,
    shape: Shape,
    /// The argument behind the file is an offset in etypes of the view.
    at: bool,
    /// Every rank of the file's communicator calls it.
    all: bool,
}

const DATA: &[Data] = data! {
    "read": Read Blocking;
    "read_at": Read Blocking at true;
    "read_all": Read Blocking all true;
    "read_at_all": Read Blocking at true all true;
    "read_shared": Read Blocking;
    "read_ordered": Read Blocking all true;
    "write": Write Blocking;
    "write_at": Write Blocking at true;
    "write_all": Write Blocking all true;
    "write_at_all": Write Blocking at true all true;
    "write_shared": Write Blocking;
    "write_ordered": Write Blocking all true;
    "read_all_begin": Read Begin all true;
    "read_at_all_begin": Read Begin at true all true;
    "read_ordered_begin": Read Begin all true;
    "write_all_begin": Write Begin all true;
    "write_at_all_begin": Write Begin at true all true;
    "write_ordered_begin": Write Begin all true;
    "iread": Read Start;
    "iread_at": Read Start at true;
    "iread_all": Read Start all true;
    "iread_at_all": Read Start at true all true;
    "iread_shared": Read Start;
    "iwrite": Write Start;
    "iwrite_at": Write Start at true;
    "iwrite_all": Write Start all true;
    "iwrite_at_all": Write Start at true all true;
    "iwrite_shared": Write Start;
};

/// `(fh, buf, status)`: the second halves.
const ENDS: &[&str] = &[
    "MPI_File_read_all_end",
    "MPI_File_read_at_all_end",
    "MPI_File_read_ordered_end",
    "MPI_File_write_all_end",
    "MPI_File_write_at_all_end",
    "MPI_File_write_ordered_end",
];

/// A row of a function that moves data.
fn data(abi: Abi, data: &Data, large: bool) -> Row {
    let first = if data.at { 2 } else { 1 };
    let (count, datatype, last) = (first + 1, first + 2, first + 3);
    let mut row = abi.sized(abi.file(data.symbols[usize::from(large)], data.kind), count, datatype, large);
    if data.at {
        row = row.off(Arg(1));
    }
    if data.all {
        row = all(row);
    }
    match data.shape {
        Blocking => row.got(abi.status(last)).done(),
        Begin => row.submits(SubmitAction::Split, Src::None).done(),
        Start => row.submits(SubmitAction::Request, abi.out(last)).awaited().done(),
    }
}

/// A call that every rank of the file's communicator makes.
const fn all<P: Copy>(row: Def<P>) -> Def<P> {
    row.flags(flag::COLLECTIVE)
}

impl Abi {
    const fn mpiio(self, symbol: &'static str, kind: Kind) -> Def<Values> {
        row(self.family(), Layer::Mpiio, symbol, kind).fails(Fails::NonZero)
    }
    /// A call on a file, its first argument.
    const fn file(self, symbol: &'static str, kind: Kind) -> Def<Values> {
        self.mpiio(symbol, kind).handle(Arg(0))
    }
    /// `(comm, filename, amode, info, fh)`
    fn open(self, symbol: &'static str) -> Def<Open> {
        all(self.mpiio(symbol, Kind::Open).opens(Out(4)).path(1).mode(Int(2)).with_hints(self.handle(3)))
    }
    /// `(fh, offset, whence)`
    const fn seek(self, symbol: &'static str) -> Def<Seek> {
        self.file(symbol, Kind::Seek).seeks(Arg(1), Arg(1), Int(2))
    }
    /// A call on hints, which libraries also use for themselves.
    const fn hinting(self, symbol: &'static str, set: HintSet) -> Def<HintSet> {
        self.mpiio(symbol, Kind::Meta).hint_set(set).outermost()
    }
}

/// Calls that move no data.
fn others(abi: Abi) -> Vec<Row> {
    let file = |symbol, kind| abi.file(symbol, kind);
    let meta = |symbol| abi.file(symbol, Kind::Meta);
    let view = HintSet::GiveView { handle: Arg(0), set: abi.handle(5), off: Arg(1) };
    let give = HintSet::Give { handle: Arg(0), set: abi.handle(1) };
    vec![
        all(abi.mpiio("MPI_File_close", Kind::Close).closes(In(0))).done(),
        // The file is known by its path, and is no longer there.
        abi.mpiio("MPI_File_delete", Kind::Meta).unrelated().path(0).done(),
        all(file("MPI_File_sync", Kind::Sync)).done(),
        all(abi.mpiio("MPI_File_set_view", Kind::Meta).hint_set(view)).done(),
        meta("MPI_File_get_view").done(),
        abi.seek("MPI_File_seek").done(),
        all(abi.seek("MPI_File_seek_shared")).done(),
        meta("MPI_File_get_position").done(),
        meta("MPI_File_get_position_shared").done(),
        meta("MPI_File_get_byte_offset").done(),
        all(meta("MPI_File_set_size").len(Arg(1))).done(),
        meta("MPI_File_get_size").done(),
        all(meta("MPI_File_preallocate").len(Arg(1))).done(),
        meta("MPI_File_get_amode").done(),
        meta("MPI_File_get_group").done(),
        all(abi.mpiio("MPI_File_set_info", Kind::Meta).hint_set(give)).done(),
        meta("MPI_File_get_info").done(),
        meta("MPI_File_get_type_extent").done(),
        meta("MPI_File_get_type_extent_c").done(),
        all(meta("MPI_File_set_atomicity")).done(),
        meta("MPI_File_get_atomicity").done(),
        // Often of no file (`MPI_FILE_NULL`): what holds for files that are opened later.
        abi.mpiio("MPI_File_set_errhandler", Kind::Other).unrelated().done(),
        abi.mpiio("MPI_File_get_errhandler", Kind::Other).unrelated().done(),
        abi.mpiio("MPI_File_create_errhandler", Kind::Other).unrelated().done(),
        file("MPI_File_call_errhandler", Kind::Other).done(),
        abi.hinting("MPI_Info_create", HintSet::Create { set: abi.out(0) }).done(),
        abi.hinting("MPI_Info_set", HintSet::Set { set: abi.handle(0) }).path(1).path2(2).done(),
        abi.hinting("MPI_Info_delete", HintSet::Delete { set: abi.handle(0) }).path(1).done(),
        abi.hinting("MPI_Info_dup", HintSet::Dup { set: abi.handle(0), new: abi.out(1) }).done(),
        abi.hinting("MPI_Info_free", HintSet::Free { set: abi.inout(0) }).done(),
    ]
}

/// How many processes open a file together.
fn opens() -> Vec<Row> {
    // `c_local_group` in `struct ompi_communicator_t` (ompi/communicator/communicator.h) and `grp_proc_count` in
    // `struct ompi_group_t` (ompi/group/group.h), as `MPI_Comm_size` of 4.1.4, 4.1.8 and 5.0.11 reads them.
    const LOCAL_GROUP_4: u16 = 0xf8;
    const LOCAL_GROUP_5: u16 = 0x108;
    const PROC_COUNT: u8 = 0x10;
    let open_mpi = |family, group| {
        let open = Abi::OpenMpi.open("MPI_File_open").family(family);
        let open = open.wants(0, InnerValue::Ompio).wants(1, InnerValue::Romio);
        open.got(Through(0, group, PROC_COUNT)).array(0, Array::members(OPENED_BY, 0, group)).done()
    };
    let mut rows = vec![open_mpi(Family::OpenMpi4, LOCAL_GROUP_4), open_mpi(Family::OpenMpi5, LOCAL_GROUP_5)];
    // Both take the communicator first, of which an `int` is read: which of the two is called shows what opened the file.
    let opened = |family, symbol, gives, slot| {
        let row = row(family, Layer::Mpiio, symbol, Kind::Other).fails(Fails::NonZero).gives(gives, Src::None);
        row.array(0, Array::ints(slot, When::Return, 0, Count::Const(1))).done()
    };
    rows.push(opened(Family::Ompio, "mca_io_ompio_file_open", InnerValue::Ompio, OMPIO_OPENED));
    rows.push(opened(Family::OmpiRomio, "mca_io_romio_dist_MPI_File_open", InnerValue::Romio, ROMIO_OPENED));
    for abi in [Abi::Mpich, Abi::Standard] {
        // ROMIO duplicates the communicator, and asks for the size of the copy (ad_opencoll.c).
        rows.push(abi.open("MPI_File_open").wants(0, InnerValue::Ranks).got(FromInner(0)).done());
        rows.push(abi.mpiio("MPI_Comm_size", Kind::Other).gives(InnerValue::Ranks, OutInt(1)).done());
        // Every function that moves data first asks for this of its datatype (ROMIO, mpi-io/*.c).
        rows.push(abi.mpiio("MPI_Type_size_x", Kind::Other).gives(InnerValue::TypeSize, Out(1)).done());
    }
    rows
}

pub(in crate::catalog) fn rows() -> Vec<Row> {
    let mut rows = opens();
    for abi in ABIS {
        for form in DATA {
            rows.extend([data(abi, form, false), data(abi, form, true)]);
        }
        let end = |symbol: &&'static str| {
            all(abi.file(symbol, Kind::Wait)).request(RequestAction::End).moved(abi.status(2)).done()
        };
        rows.extend(ENDS.iter().map(end));
        rows.extend(others(abi));
    }
    rows
}
