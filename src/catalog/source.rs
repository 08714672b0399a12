//! Where values of a call come from.

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
    Field(u8, u16),
    /// The same of an `int`.
    FieldInt(u8, u16),
    /// What a call inside this one gives: see `Row::wants`.
    FromInner(u8),
    /// The product of two inner values.
    InnerProduct(u8, u8),
    /// An `int` argument times an inner value.
    CountInner(u8, u8),
    /// A 64-bit argument times an inner value.
    ArgInner(u8, u8),
    /// Bytes transferred, from the MPICH status that an argument points at: a count in two parts, so far into it.
    StatusSplit(u8, u16),
    /// A count (an `int`) times the size of the MPICH datatype that the second argument is, if it is a predefined one.
    TypedNumber(u8, u8),
    /// The `int` behind a pointer in the struct that an argument points at: where the pointer is, where the `int` is.
    Through(u8, u16, u8),
    /// The result, an `int`.
    RetInt,
    /// Inner values come in rounds, whose number is an argument: the sum over them of the product of two. Such a row
    /// wants three.
    Rounds(u8, u8, u8),
    /// A fixed number.
    Const(u8),
    /// The length of the string an argument points at, and of the newline that is written after it.
    Line(u8),
    /// The value that a pointer variable of the library has at entry.
    Global(Variable),
    /// Where in the file the stream stood that is the handle, before the call (C library).
    StreamPos,
    /// The same, after the call.
    StreamEnd,
    /// The bytes from there to there.
    StreamMoved,
    /// A 64-bit count times the size of an MPI datatype: any of Open MPI, the predefined ones of MPICH.
    MpiSize(u8, u8),
    /// The 64-bit member, at this offset, of the struct that the pointer leads to which an argument points at.
    Behind(u8, u8),
    /// The same of an `int`.
    BehindInt(u8, u8),
    /// The same of 64 bits, and of the result instead of an argument.
    RetBehind(u8),
    /// Two `int` arguments: one in the low half, the other above it.
    Pair(u8, u8),
    /// An `int` argument in the low half, an inner value + 1 above it (0: it is not known).
    PairInner(u8, u8),
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
    pub(super) fn arguments(self) -> [Option<u8>; 2] {
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
            | Self::CountInner(a, _)
            | Self::Scaled(a, _)
            | Self::ArgInner(a, _)
            | Self::StatusSplit(a, _)
            | Self::Message(a)
            | Self::Through(a, ..)
            | Self::Rounds(a, ..)
            | Self::Behind(a, _)
            | Self::BehindInt(a, _)
            | Self::PairInner(a, _) => [Some(a), None],
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
            | Self::FromInner(_)
            | Self::InnerProduct(..)
            | Self::Const(_)
            | Self::Global(_)
            | Self::StreamPos
            | Self::StreamEnd
            | Self::StreamMoved
            | Self::Cloexec => [None; 2],
        }
    }
}

/// A pointer variable of the C library.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Variable {
    Stdin,
    Stdout,
    Stderr,
}

impl Variable {
    pub const fn symbol(self) -> &'static str {
        match self {
            Self::Stdin => "stdin",
            Self::Stdout => "stdout",
            Self::Stderr => "stderr",
        }
    }
}
