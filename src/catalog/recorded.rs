//! What a call does, as those see it that read its record: by the fields that its values are in.

use crate::catalog::Src;
use crate::catalog::effect::Effect;
use crate::catalog::role::{
    Does, Dup, HintSet, Inner, Lock, Open, OpenedIn, Request, RequestAction, Seek, SubmitAction, Variables,
};
use crate::catalog::variables::Meaning;

/// What a call does to a set of hints (`MPI_Info`), by the fields of its record.
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

/// What a call does to asynchronous operations, by the fields of its record. A request is an opaque value, unique in
/// its process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Async {
    /// Nothing.
    No,
    /// Submits one: `got` is its request.
    Submit,
    /// Submits one: `got` is its request, which counts within `handle`.
    SubmitOf,
    /// Submits those in array 0.
    SubmitList,
    /// Begins the one split operation of `handle`.
    Begin,
    /// Ends it; `len` is what it moved, where that is known.
    End,
    /// Returns when its requests are complete: `handle` (one; `len` is then what it moved) or array 0 (a list).
    Wait,
    /// Completes those of its requests that have changed when it returns: `handle` and then `got`, or array 0 and then 1.
    Test,
    /// Asks about a request, or wants it cancelled, which completes nothing.
    Ask,
    /// Frees a request before it is complete: its end will not be seen.
    Free,
    /// Completes requests that count within `handle`: a list of `len` in array 0, or all of a kind (`len` below 0).
    WaitIds,
    /// Cancels them.
    CancelIds,
    /// Cancels all that count within `handle`, if there are any.
    CancelAll,
    /// Takes the result, `got`, of request `handle`.
    Return,
}

/// What a call was given that is neither offset nor size, by the fields of its record: the columns `cmd` and `arg`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Argument {
    Nothing,
    /// `len` is a command of `fcntl`, and above it the low half of its argument.
    Command,
    /// `len` is the offset that was asked for, `got` what it counts from.
    Seek,
    /// Of a stream: `len` is where it stood before, `off` where it stands, `got` what the offset counts from.
    StreamSeek,
    /// `off` is the operation of `flock`.
    Flock,
    /// As of `Command`, and the low 16 bits of `off` are the kind of lock.
    RecordLock,
    /// `off` is the descriptor that another one is made of.
    Descriptor,
    /// `off` is what was found: whether requests are complete, or how many.
    Outcome,
}

impl Does {
    pub const fn hints(self) -> Hints {
        match self {
            Self::Open(Open { opened_in: OpenedIn::Hints(_), .. }) => Hints::Off,
            Self::HintSet(hints) => match hints {
                HintSet::Create { .. } => Hints::Create,
                HintSet::Set { .. } => Hints::Set,
                HintSet::Delete { .. } => Hints::Delete,
                HintSet::Dup { .. } => Hints::Dup,
                HintSet::Free { .. } => Hints::Free,
                HintSet::Give { .. } => Hints::Off,
                HintSet::GiveView { .. } => Hints::Len,
            },
            _ => Hints::None,
        }
    }

    pub const fn asynchronous(self) -> Async {
        match self {
            Self::Submit(s) => match s.action {
                SubmitAction::Request => Async::Submit,
                SubmitAction::List => Async::SubmitList,
                SubmitAction::Split => Async::Begin,
            },
            Self::Request(r) => match r.action {
                RequestAction::End => Async::End,
                RequestAction::Wait => Async::Wait,
                RequestAction::Test => Async::Test,
                RequestAction::Ask => Async::Ask,
                RequestAction::Free => Async::Free,
                RequestAction::WaitIds => Async::WaitIds,
                RequestAction::CancelIds => Async::CancelIds,
                RequestAction::Return => Async::Return,
            },
            Self::Variables(Variables { submits: true, .. }) => Async::SubmitOf,
            Self::Variables(Variables { cancels: true, .. }) => Async::CancelAll,
            _ => Async::No,
        }
    }

    /// What is in the columns `cmd` and `arg`; `syscall`: it is a system call.
    pub const fn argument(self, syscall: bool) -> Argument {
        match self {
            Self::Seek(Seek { asked: Src::StreamPos, .. }) => Argument::StreamSeek,
            Self::Seek(_) => Argument::Seek,
            Self::Lock(Lock { command: Src::None, .. }) => Argument::Flock,
            Self::Lock(_) => Argument::RecordLock,
            Self::Command(_) | Self::Inherit(_) | Self::Dup(Dup { command: Src::Pair(..), .. }) => Argument::Command,
            Self::Dup(_) if syscall => Argument::Descriptor,
            Self::Request(Request { outcome: Src::OutInt(_), .. }) => Argument::Outcome,
            _ => Argument::Nothing,
        }
    }

    /// What a call of HDF5 means.
    pub const fn effect(self) -> Effect {
        match self {
            Self::Hdf5(h) => h.effect,
            _ => Effect::Nothing,
        }
    }

    pub const fn meaning(self) -> Meaning {
        match self {
            Self::Variables(v) => v.meaning,
            _ => Meaning::Nothing,
        }
    }

    pub const fn inner(self) -> Option<Inner> {
        match self {
            Self::Inner(inner) => Some(inner),
            _ => None,
        }
    }
}
