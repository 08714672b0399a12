//! What calls do, each with the values it takes for that and no others.
//!
//! On the wire every call has four values, which the record names after the commonest use: handle, len, off and got
//! ([`Values`]). The role of a call defines what they are.

use crate::catalog::Src;
use crate::catalog::effect::{Accessor, Effect};
use crate::catalog::variables::Meaning;

/// The values of a call by the fields of its record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Values {
    pub handle: Src,
    pub len: Src,
    pub off: Src,
    pub got: Src,
}

impl Values {
    /// Every value in the order of the record.
    pub const fn all(self) -> [Src; 4] {
        [self.handle, self.len, self.off, self.got]
    }
}

/// What a call does to handles and names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    /// Nothing; it may name a file by path only.
    None,
    /// Uses a handle.
    Use,
    /// Makes a handle.
    Open,
    /// Ends a handle.
    Close,
    /// Ends one handle, successful or not, and makes another one.
    Reopen,
    /// Makes another name of a handle.
    Dup,
    /// Ends the file's name (unlink); the file is known by path.
    Unlink,
    /// Moves a name from path to path2.
    Rename,
    /// The files at path and path2 change names.
    Exchange,
    /// Gives the file at path the name path2, too.
    Link,
    /// Ends a range of descriptors, or has them closed by an exec.
    CloseRange,
    /// Changes whether an exec closes a descriptor.
    Inherit,
}

/// What a call does, with the sources of the values it does that with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Does {
    Data(Data),
    Seek(Seek),
    Command(Command),
    Lock(Lock),
    Open(Open),
    Reopen(Reopen),
    Dup(Dup),
    Close(Close),
    CloseRange(CloseRange),
    Inherit(Inherit),
    Names(Names),
    HintSet(HintSet),
    Submit(Submit),
    Request(Request),
    Hdf5(Hdf5),
    Variables(Variables),
    Inner(Inner),
    Jump(Jump),
}

/// Moves bytes, or asks about or changes something that a handle or a path stands for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Data {
    /// The handle is one that calls of this layer open: [`Role::Use`].
    pub uses: bool,
    pub handle: Src,
    /// Bytes that were asked for; of stdio calls that move none, where the stream stood before.
    pub len: Src,
    /// Offset in the file; of stdio, where the stream stood before or stands afterwards.
    pub off: Src,
    /// Bytes moved, or the result.
    pub got: Src,
}

/// Moves the position in a file to an offset that is counted from somewhere.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Seek {
    pub handle: Src,
    /// The position afterwards; of MPI-IO, which does not return it, the offset that was asked for.
    pub position: Src,
    /// The offset that was asked for; of a stream, where it stood before.
    pub asked: Src,
    pub whence: Src,
}

/// A command of `fcntl` and the low half of its argument above it ([`Src::Pair`]).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Command {
    pub handle: Src,
    pub command: Src,
}

/// Takes or releases a lock on a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Lock {
    pub handle: Src,
    /// As of [`Command`]; of `flock` there is none.
    pub command: Src,
    /// The operation of `flock`; of `fcntl` the kind of lock, in the low 16 bits.
    pub lock: Src,
}

/// Makes a handle.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Open {
    pub handle: Src,
    pub mode: Src,
    pub opened_in: OpenedIn,
    /// How many processes open it together; of system calls, whether an exec closes it.
    pub got: Src,
}

/// What a handle is opened with, besides a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OpenedIn {
    Nothing,
    /// The handle it is opened in (dataset in file), or on (stream on descriptor).
    Handle(Src),
    /// A set of hints that goes to the file.
    Hints(Src),
}

/// Ends `old`, successful or not, and opens `handle`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Reopen {
    pub handle: Src,
    pub old: Src,
    pub mode: Src,
}

/// Makes `handle` another name of `old`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Dup {
    pub handle: Src,
    pub old: Src,
    /// Of system calls, whether an exec closes it.
    pub cloexec: Src,
    /// As of [`Command`].
    pub command: Src,
}

/// Ends `handle`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Close {
    pub handle: Src,
    /// Where the stream stood.
    pub position: Src,
}

/// Ends the descriptors from `first` to `last`, or has them closed by an exec, by `flags`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CloseRange {
    pub first: Src,
    pub last: Src,
    pub flags: Src,
}

/// Changes whether an exec closes `handle`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Inherit {
    pub handle: Src,
    pub cloexec: Src,
    /// As of [`Command`].
    pub command: Src,
}

/// Changes names of files, which are paths.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Names {
    Unlink,
    Rename,
    Exchange,
    Link,
}

/// Works on a set of hints (`MPI_Info`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HintSet {
    Create {
        set: Src,
    },
    /// Gives the key `path` the value `path2`.
    Set {
        set: Src,
    },
    /// Takes the key `path` out.
    Delete {
        set: Src,
    },
    Dup {
        set: Src,
        new: Src,
    },
    Free {
        set: Src,
    },
    /// Gives it to a file.
    Give {
        handle: Src,
        set: Src,
    },
    /// Gives it to a file together with a view that begins at an offset.
    GiveView {
        handle: Src,
        set: Src,
        off: Src,
    },
}

/// Submits an asynchronous operation that moves `data`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Submit {
    /// Without `got`.
    pub data: Data,
    pub action: SubmitAction,
    pub request: Src,
}

/// How the operation that was submitted is named.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SubmitAction {
    /// By its request, an opaque value that is unique in its process.
    Request,
    /// By requests in array 0.
    List,
    /// It is the one split operation of the handle.
    Split,
}

/// Waits for asynchronous operations, asks about them or gives them up.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Request {
    pub action: RequestAction,
    /// The handle is a file in which requests count, or that has a split operation: [`Role::Use`].
    pub uses: bool,
    /// The request, if it is one, or the file.
    pub request: Src,
    /// What it moved, where that is known; of [`RequestAction::WaitIds`] and [`RequestAction::CancelIds`] how many
    /// requests, all of a kind where it is below 0.
    pub moved: Src,
    /// Whether requests are complete, or how many.
    pub outcome: Src,
    /// The result of the operation; of [`RequestAction::Test`] the request when the call returns.
    pub result: Src,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RequestAction {
    /// Ends the split operation of a file.
    End,
    /// Returns when its requests are complete: one, or those in array 0.
    Wait,
    /// Completes those of its requests that have changed when it returns: one, or those in array 0 and then 1.
    Test,
    /// Asks about a request, or wants it cancelled, which completes nothing.
    Ask,
    /// Frees a request before it is complete: its end will not be seen.
    Free,
    /// Completes requests that count within a file: a list in array 0, or all of a kind.
    WaitIds,
    /// Cancels them.
    CancelIds,
    /// Takes the result of a request.
    Return,
}

/// A call of HDF5 that shows property lists, dataspaces, or the shapes of objects.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Hdf5 {
    pub role: Role,
    pub handle: Src,
    /// The handle that `handle` is opened in, or another name of.
    pub from: Src,
    pub effect: Effect,
}

/// A call of NetCDF-C or `PnetCDF`, whose values [`crate::catalog::variables`] describes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Variables {
    pub role: Role,
    pub meaning: Meaning,
    pub handle: Src,
    pub len: Src,
    /// The variable, or what else an id stands for.
    pub id: Src,
    pub got: Src,
    /// It submits a request, `got`, which counts within the file.
    pub submits: bool,
    /// It cancels all requests that count within the file.
    pub cancels: bool,
}

/// An inner function of a library: what it knows goes to the innermost open call, if that wants such a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Inner {
    pub gives: InnerValue,
    pub value: Src,
    /// The function returns a field of its first argument's structure, which is read elsewhere instead.
    pub accessor: Option<Accessor>,
}

/// Leaves calls without a return, by setting the stack pointer to a field of its first argument. It is not recorded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Jump {
    /// Bytes to the field.
    pub at: u16,
}

/// What an inner function of a library knows of the call it runs in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum InnerValue {
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
    /// Their lengths, in an array that goes with the call.
    Shape,
    /// Elements of an attribute.
    Length,
    /// Open MPI's own MPI-IO has opened a file.
    Ompio,
    /// Its copy of ROMIO has.
    Romio,
    /// How a dataset is stored, in arrays that go with the call.
    Storage,
}

impl Does {
    pub const fn role(self) -> Role {
        match self {
            Self::Data(Data { uses, .. })
            | Self::Request(Request { uses, .. })
            | Self::Submit(Submit { data: Data { uses, .. }, .. }) => {
                if uses {
                    Role::Use
                } else {
                    Role::None
                }
            }
            Self::Seek(_)
            | Self::Command(_)
            | Self::Lock(_)
            | Self::Inner(_)
            | Self::HintSet(HintSet::Give { .. } | HintSet::GiveView { .. }) => Role::Use,
            Self::HintSet(_) | Self::Jump(_) => Role::None,
            Self::Open(_) => Role::Open,
            Self::Reopen(_) => Role::Reopen,
            Self::Dup(_) => Role::Dup,
            Self::Close(_) => Role::Close,
            Self::CloseRange(_) => Role::CloseRange,
            Self::Inherit(_) => Role::Inherit,
            Self::Names(Names::Unlink) => Role::Unlink,
            Self::Names(Names::Rename) => Role::Rename,
            Self::Names(Names::Exchange) => Role::Exchange,
            Self::Names(Names::Link) => Role::Link,
            Self::Hdf5(h) => h.role,
            Self::Variables(v) => v.role,
        }
    }

    /// Its values by the fields of the record.
    pub const fn values(self) -> Values {
        const NONE: Src = Src::None;
        let (handle, len, off, got) = match self {
            Self::Data(d) => (d.handle, d.len, d.off, d.got),
            Self::Seek(s) => (s.handle, s.asked, s.position, s.whence),
            Self::Command(c) => (c.handle, c.command, NONE, NONE),
            Self::Lock(l) => (l.handle, l.command, l.lock, NONE),
            Self::Open(o) => match o.opened_in {
                OpenedIn::Nothing => (o.handle, o.mode, NONE, o.got),
                OpenedIn::Handle(from) | OpenedIn::Hints(from) => (o.handle, o.mode, from, o.got),
            },
            Self::Reopen(r) => (r.handle, r.mode, r.old, NONE),
            Self::Dup(d) => (d.handle, d.command, d.old, d.cloexec),
            Self::Close(c) => (c.handle, c.position, NONE, NONE),
            Self::CloseRange(c) => (NONE, c.last, c.first, c.flags),
            Self::Inherit(i) => (i.handle, i.command, NONE, i.cloexec),
            Self::Names(_) => (NONE, NONE, NONE, NONE),
            Self::HintSet(hints) => match hints {
                HintSet::Create { set } | HintSet::Set { set } | HintSet::Delete { set } | HintSet::Free { set } => {
                    (set, NONE, NONE, NONE)
                }
                HintSet::Dup { set, new } => (set, NONE, new, NONE),
                HintSet::Give { handle, set } => (handle, NONE, set, NONE),
                HintSet::GiveView { handle, set, off } => (handle, set, off, NONE),
            },
            Self::Submit(s) => (s.data.handle, s.data.len, s.data.off, s.request),
            Self::Request(r) => (r.request, r.moved, r.outcome, r.result),
            Self::Hdf5(h) => {
                let (len, off, got) = h.effect.values();
                (h.handle, len, if matches!(off, Src::None) { h.from } else { off }, got)
            }
            Self::Variables(v) => (v.handle, v.len, v.id, v.got),
            Self::Inner(i) => (NONE, NONE, NONE, i.value),
            Self::Jump(j) => (NONE, NONE, NONE, Src::Field(0, j.at)),
        };
        Values { handle, len, off, got }
    }
}

impl Does {
    /// The same with every source of a value replaced, of what functions of HDF5 do.
    pub(super) fn with_sources(self, of: impl Fn(Src) -> Src) -> Self {
        match self {
            Self::Data(d) => {
                let (handle, len, off, got) = (of(d.handle), of(d.len), of(d.off), of(d.got));
                Self::Data(Data { handle, len, off, got, ..d })
            }
            Self::Open(o) => {
                let opened_in = match o.opened_in {
                    OpenedIn::Handle(handle) => OpenedIn::Handle(of(handle)),
                    other => other,
                };
                Self::Open(Open { handle: of(o.handle), mode: of(o.mode), opened_in, got: of(o.got) })
            }
            Self::Dup(d) => Self::Dup(Dup { handle: of(d.handle), old: of(d.old), ..d }),
            Self::Close(c) => Self::Close(Close { handle: of(c.handle), ..c }),
            Self::Hdf5(h) => {
                let (handle, from, effect) = (of(h.handle), of(h.from), h.effect.with_sources(of));
                Self::Hdf5(Hdf5 { handle, from, effect, ..h })
            }
            other => other,
        }
    }
}
