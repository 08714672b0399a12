//! One row of the catalog.

use crate::catalog::effect::{Effect, Messages, STORED};
use crate::catalog::recorded::{Argument, Async, Hints};
use crate::catalog::role::{Data, Does, Inner, InnerValue, Role, Values};
use crate::catalog::variables::Meaning;
use crate::catalog::{About, Array, Copies, Count, Deref, Fails, Family, Lines, Src, Status};
use crate::vocabulary::{Kind, Layer};

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
    /// What it does, with the values that it takes for that.
    pub does: Does,
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
    /// It is about an object (dataset, attribute, group) inside a file, of this class.
    pub object: Option<&'static str>,
    /// Only calls whose argument has one of these two values are recorded.
    pub only: Option<(u8, u32, u32)>,
    /// Argument with a `struct stat` (true: `struct statx`) filled at return, which identifies the file.
    pub stat: Option<(u8, bool)>,
    /// What it wants of calls inside it, the first three (of a kind: in their order); values for `Src::FromInner`.
    pub wants: [Option<InnerValue>; 3],
    /// It wants the arrays of all such inner calls, and no values.
    pub wants_every: bool,
    /// Arrays that go with the call.
    pub arrays: [Option<Array>; 4],
    /// Recorded only while a call of an I/O library is open on the thread, or when it waits for a request (one, or the
    /// array that is read at entry) that such a call submitted.
    pub inside: bool,
    /// Rows with `inside` wait for its request.
    pub awaited: bool,
    /// What structs in array 2 look like.
    pub statuses: Option<Status>,
    /// Recorded only outside calls of its own layer.
    pub outermost: bool,
    /// Not recorded with this result, unless it is 0.
    pub quiet: u8,
    /// Its handle is a file descriptor, whatever the layer.
    pub descriptor: bool,
    /// Functions inside the kernel: which file.
    pub about: About,
    /// System calls that the row's `only` leaves out are those of the next row.
    pub otherwise: bool,
    /// The first argument is an address: it is about the file that is mapped there, and left out where none is.
    pub mapped: bool,
    /// It moves data from one file to another. Behind the row of a call are that of one which takes from a file, and gives to
    /// none that is recorded, and the half that reads.
    pub copies: Copies,
    /// Its path is sent when it enters: it changes what that is seen from, or does not return to the memory that it is
    /// in.
    pub early: bool,
    /// Only with `--sockets`.
    pub sockets: bool,
    /// Does no I/O, and is called often: probed only where all of its layer is asked for (`--layers hdf5=all`).
    pub secondary: bool,
    /// Most calls only touch a stream's buffer and are shorter than their probe, which goes while the trace runs where they come
    /// often: the position of the stream shows what they moved.
    pub brief: bool,
    /// Communication, recorded only inside I/O: where a thread does it all the time its probe goes for a while.
    pub pauses: bool,
    /// Probed only in place of brief functions: fills a stream's buffer (read), empties it (write), or ends it.
    pub slow_path: Option<Kind>,
}

impl Row {
    pub const fn role(&self) -> Role {
        self.does.role()
    }

    /// Its values by the fields of the record.
    pub const fn values(&self) -> Values {
        self.does.values()
    }

    pub const fn hints(&self) -> Hints {
        self.does.hints()
    }

    pub const fn asynchronous(&self) -> Async {
        self.does.asynchronous()
    }

    pub fn argument(&self) -> Argument {
        self.does.argument(self.layer == Layer::Syscall)
    }

    /// What it means for property lists, dataspaces and shapes of HDF5.
    pub const fn effect(&self) -> Effect {
        self.does.effect()
    }

    /// What it means for variables of `NetCDF`.
    pub const fn meaning(&self) -> Meaning {
        self.does.meaning()
    }

    /// Of a function that is not recorded: the inner value that it gives to the call around it.
    pub const fn inner(&self) -> Option<Inner> {
        self.does.inner()
    }

    /// Leaves calls without a return.
    pub const fn jumps(&self) -> bool {
        matches!(self.does, Does::Jump(_))
    }

    /// A phase: a function that is known for what runs inside it, and may last as long as the program.
    pub fn is_phase(&self) -> bool {
        self.layer == Layer::App && self.kind == Kind::Other && matches!(self.role(), Role::None | Role::Use)
    }

    /// The lines that a phase is of; none: a function.
    pub fn lines(&self) -> Option<Lines> {
        Lines::parse(self.symbol).filter(|_| self.is_phase())?.ok()
    }

    /// Is its own span all that is missing where it is not probed? What makes, ends or describes handles, objects, lists,
    /// hints and requests, or moves a position, shows what later calls do.
    pub fn stands_alone(&self) -> bool {
        let plain = matches!(self.role(), Role::None | Role::Use) && self.slow_path.is_none();
        plain
            && match self.does {
                Does::Data(_) | Does::Lock(_) => true,
                Does::Hdf5(_) => self.effect().stands_alone(),
                Does::Variables(v) => !v.submits && !v.cancels && v.meaning.stands_alone(),
                _ => false,
            }
    }

    /// Are its paths those of files? Others name hints, or what is in a file that a handle stands for.
    pub fn names_files(&self) -> bool {
        let opens = matches!(self.role(), Role::Open | Role::Reopen) && self.object.is_none();
        let asks = self.role() != Role::Use && self.values().handle == Src::None && self.hints() == Hints::None;
        self.path.is_some() && (self.layer == Layer::Syscall || opens || asks)
    }

    /// The same call where it changes no handle and no name any more.
    #[must_use]
    pub const fn without_effect(&self) -> Self {
        let Values { handle, len, off, got } = self.values();
        Self { does: Does::Data(Data { uses: false, handle, len, off, got }), ..*self }
    }

    /// The layers of which one must be traced for this row to be probed. What finds file I/O complete is part of that.
    pub fn layers(&self) -> [Layer; 2] {
        let completes = self.inside && self.asynchronous() != Async::No;
        [self.layer, if completes { Layer::Mpiio } else { self.layer }]
    }

    /// The arguments that are looked at, as bits.
    pub fn arguments(&self) -> u16 {
        let sources = self.values().all().into_iter().flat_map(Src::arguments);
        let whole = [self.path, self.path2, self.base, self.base2, self.only.map(|o| o.0), self.stat.map(|s| s.0)];
        let arrays = self.arrays.into_iter().flatten().flat_map(|array| {
            let count = match array.count {
                Count::Arg(a) | Count::At(a) => Some(a),
                Count::Const(_) | Count::Ret | Count::Rank => None,
            };
            [Some(array.arg), (array.deref == Deref::Boxes).then_some(array.arg + 1), count]
        });
        sources.chain(whole).chain(arrays).flatten().fold(0, |bits, arg| bits | 1 << arg)
    }

    /// The messages of an object header that the function reads: its code shows where it puts them, and the probe reads
    /// them there.
    pub fn messages(&self) -> Option<Messages> {
        self.arrays.iter().flatten().any(|array| array.deref == Deref::Storage).then_some(STORED)
    }

    /// Does it look at arguments beyond the six in registers?
    pub fn stack_arguments(&self) -> bool {
        self.arguments() >> 6 != 0
    }
}
