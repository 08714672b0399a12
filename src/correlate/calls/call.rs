//! The columns that follow from the record of one call alone: result, error, bytes, offset, flags.

use crate::catalog::libraries::hdf5::Effect;
use crate::catalog::variables::Meaning;
use crate::catalog::{Argument, Async, Copies, Fails, Family, Hints, Role, Row, Src};
use crate::event::Call;
use crate::vocabulary::{Kind, Layer, flag};

/// The columns of a span that follow from its record and its catalog row alone.
#[derive(Debug, PartialEq, Eq)]
pub struct CallColumns {
    pub offset: Option<i64>,
    pub bytes: Option<i64>,
    pub req_bytes: Option<i64>,
    pub cmd: Option<&'static str>,
    pub arg: Option<i64>,
    pub ret: Option<i64>,
    pub errno: i16,
    pub flags: i32,
}

/// A call that succeeded, as far as it got.
pub fn succeeded(call: &Call) -> bool {
    call.status >= 0 && !call.unfinished
}

pub fn columns(row: &Row, call: &Call) -> CallColumns {
    let values = row.values();
    let plain = matches!(row.role(), Role::Use | Role::None);
    let ok = succeeded(call);
    let (cmd, arg) = argument(row, call);
    // What a call was given is no number of bytes.
    let given = !matches!(row.argument(), Argument::Nothing | Argument::Descriptor | Argument::Outcome);
    let len = call.len.map(count).filter(|_| !given);
    let asynchronous = row.asynchronous() != Async::No;
    // The bytes of an operation are known when it completes; the call that waits for it moves none itself.
    let submits = matches!(row.asynchronous(), Async::Submit | Async::SubmitOf | Async::SubmitList | Async::Begin);
    // Where a stream stood is no number of bytes.
    let counts = row.hints() != Hints::Len && values.len != Src::StreamPos;
    let len = len.filter(|_| (submits || !asynchronous) && counts);
    let returned = call.got.map(count).filter(|_| ok && plain && !given);
    let got = returned.filter(|_| !asynchronous);
    // Calls about shapes and variables have no offset and no number of bytes.
    let describes = row.effect() != Effect::Nothing || row.meaning() != Meaning::Nothing;
    let moves = matches!(row.effect(), Effect::Transfer { .. } | Effect::Transfers { .. });
    let off = call.off.filter(|_| plain && !describes && !matches!(row.hints(), Hints::Off | Hints::Dup));
    let off = off.filter(|_| !matches!(row.argument(), Argument::Outcome | Argument::Flock | Argument::RecordLock));
    let bytes = match got.filter(|_| !describes) {
        _ if moves => len.filter(|_| ok),
        // MPI has no short write without an error.
        None if ok && !asynchronous && row.layer == Layer::Mpiio && row.kind == Kind::Write => len,
        other => other,
    };
    let set = |on: bool, bit: i32| if on { bit } else { 0 };
    CallColumns {
        offset: off.filter(|_| ok || !matches!(values.off, Src::Ret | Src::StreamEnd)).map(|off| off as i64),
        bytes,
        // A copy asks for as much as there is: `cp` passes 2^63 bytes.
        req_bytes: if row.copies == Copies::Nothing { len.filter(|_| plain && (moves || !describes)) } else { bytes },
        cmd,
        arg,
        ret: result(row, call, if values.got == Src::Ret { returned } else { got }),
        errno: errno(row, call),
        flags: row.flags
            | set(call.direct, flag::DIRECT)
            | set(call.truncated, flag::TRUNCATED)
            | set(call.unfinished, flag::UNFINISHED)
            | set(row.family == Family::Fault && call.status > 0, flag::MAJOR),
    }
}

impl CallColumns {
    /// Fills in what the shape and mode of the variable of the call determine.
    pub fn apply_access(&mut self, row: &Row, call: &Call, requested: Option<i64>, collective: bool) {
        self.req_bytes = requested;
        // There are no short reads or writes without an error; what moves nothing is done at once.
        self.bytes = requested.filter(|n| succeeded(call) && (row.asynchronous() == Async::No || *n == 0));
        if row.layer == Layer::Netcdf && !collective {
            self.flags &= !flag::COLLECTIVE;
        }
    }
}

fn count(bytes: u64) -> i64 {
    i64::try_from(bytes).unwrap_or(i64::MAX)
}

fn result(row: &Row, call: &Call, got: Option<i64>) -> Option<i64> {
    if call.unfinished {
        return None;
    }
    let values = row.values();
    if matches!(row.role(), Role::Open | Role::Reopen | Role::Dup) && values.handle == Src::Ret {
        if row.fails == Fails::Zero {
            return None; // a pointer
        }
        if let (true, Some(handle)) = (call.status >= 0, call.handle) {
            return Some(handle as i64);
        }
    }
    // lseek: the new position.
    let position = call.off.filter(|_| values.off == Src::Ret && call.status >= 0);
    // The code that a function returns is no number of bytes.
    let result = matches!(values.got, Src::Ret | Src::RetInt);
    let returned = got.filter(|_| result || !matches!(row.fails, Fails::NonZero | Fails::NegativeInt));
    returned.or(position.map(|off| off as i64)).or(Some(i64::from(code(row, call.status))))
}

/// What a call was given, or found: its variant by name, and a number.
fn argument(row: &Row, call: &Call) -> (Option<&'static str>, Option<i64>) {
    match row.argument() {
        Argument::Nothing => (None, None),
        Argument::Command => {
            let Some(len) = call.len else { return (None, None) };
            let known = command(len);
            let value = (len >> 32) as i32;
            (known.map(|(_, name, _)| *name), known.filter(|(.., takes)| *takes).map(|_| i64::from(value)))
        }
        Argument::RecordLock => {
            let name = call.len.and_then(command).map(|(_, name, _)| *name);
            (name, call.off.map(|lock| i64::from(lock as i16)))
        }
        Argument::Flock => {
            let operation = call.off.map(|operation| operation as i32);
            let name = FLOCK.iter().find(|(n, _)| operation.is_some_and(|operation| operation & !LOCK_NB == *n));
            (name.map(|(_, name)| *name), operation.map(i64::from))
        }
        Argument::Seek => (whence(row, call), call.len.map(|offset| offset as i64)),
        Argument::StreamSeek => {
            let whence = whence(row, call);
            // The offset itself is not recorded: it follows from where the stream stood and stands.
            let offset = match (whence, call.off.filter(|_| succeeded(call))) {
                (Some("SEEK_SET"), Some(after)) => Some(after as i64),
                (Some("SEEK_CUR"), Some(after)) => call.len.map(|before| after.wrapping_sub(before) as i64),
                _ => None,
            };
            (whence, offset)
        }
        Argument::Descriptor => (None, call.off.map(|old| i64::from(old as i32))),
        Argument::Outcome => (None, call.off.filter(|_| succeeded(call)).map(|found| found as i64)),
    }
}

/// A command of `fcntl`, from itself and its argument above it.
fn command(len: u64) -> Option<&'static (u32, &'static str, bool)> {
    COMMANDS.iter().find(|(number, ..)| *number == len as u32)
}

/// What an offset counts from.
fn whence(row: &Row, call: &Call) -> Option<&'static str> {
    let table = if row.layer == Layer::Mpiio { &MPI_WHENCE[..] } else { &WHENCE[..] };
    // The standard ABI of MPI has numbers of its own.
    let given = call.got.filter(|_| row.family != Family::MpiAbi)? as i32;
    table.iter().find(|(number, _)| *number == given).map(|(_, name)| *name)
}

/// include/uapi/linux/fs.h
const WHENCE: [(i32, &str); 5] =
    [(0, "SEEK_SET"), (1, "SEEK_CUR"), (2, "SEEK_END"), (3, "SEEK_DATA"), (4, "SEEK_HOLE")];

/// `mpi.h` of Open MPI and of MPICH.
const MPI_WHENCE: [(i32, &str); 3] = [(600, "MPI_SEEK_SET"), (602, "MPI_SEEK_CUR"), (604, "MPI_SEEK_END")];

/// Operations of `flock`, and the flag with which it does not wait: include/uapi/asm-generic/fcntl.h.
const FLOCK: [(i32, &str); 3] = [(1, "LOCK_SH"), (2, "LOCK_EX"), (8, "LOCK_UN")];
const LOCK_NB: i32 = 4;

/// Commands of `fcntl`, and whether the argument is a number: include/uapi/asm-generic/fcntl.h,
/// include/uapi/linux/fcntl.h.
const COMMANDS: [(u32, &str, bool); 38] = [
    (0, "F_DUPFD", true),
    (1, "F_GETFD", false),
    (2, "F_SETFD", true),
    (3, "F_GETFL", false),
    (4, "F_SETFL", true),
    (5, "F_GETLK", false),
    (6, "F_SETLK", false),
    (7, "F_SETLKW", false),
    (8, "F_SETOWN", true),
    (9, "F_GETOWN", false),
    (10, "F_SETSIG", true),
    (11, "F_GETSIG", false),
    (15, "F_SETOWN_EX", false),
    (16, "F_GETOWN_EX", false),
    (17, "F_GETOWNER_UIDS", false),
    (36, "F_OFD_GETLK", false),
    (37, "F_OFD_SETLK", false),
    (38, "F_OFD_SETLKW", false),
    (1024, "F_SETLEASE", true),
    (1025, "F_GETLEASE", false),
    (1026, "F_NOTIFY", true),
    (1027, "F_DUPFD_QUERY", true),
    (1028, "F_CREATED_QUERY", false),
    (1029, "F_CANCELLK", false),
    (1030, "F_DUPFD_CLOEXEC", true),
    (1031, "F_SETPIPE_SZ", true),
    (1032, "F_GETPIPE_SZ", false),
    (1033, "F_ADD_SEALS", true),
    (1034, "F_GET_SEALS", false),
    (1035, "F_GET_RW_HINT", false),
    (1036, "F_SET_RW_HINT", false),
    (1037, "F_GET_FILE_RW_HINT", false),
    (1038, "F_SET_FILE_RW_HINT", false),
    (1039, "F_GETDELEG", false),
    (1040, "F_SETDELEG", false),
    // With the larger `struct flock64`, of 32-bit programs.
    (12, "F_GETLK", false),
    (13, "F_SETLK", false),
    (14, "F_SETLKW", false),
];

/// The code that a call returned: positive ones come marked as failures (`iot_status` of `bpf/calls/call.h`).
pub fn code(row: &Row, status: i32) -> i32 {
    const MARK: i32 = i32::MIN;
    // A negative code has the bit below the sign bit set.
    if row.fails == Fails::NonZero && status < MARK >> 1 { status ^ MARK } else { status }
}

/// The kernel's own codes that a program never sees as such (`ERESTARTSYS` and its kin): of functions inside the kernel.
const RESTART: std::ops::RangeInclusive<i32> = 512..=516;
const EINTR: i16 = 4;

fn errno(row: &Row, call: &Call) -> i16 {
    match (call.status < 0, row.layer) {
        (false, _) => 0,
        (true, Layer::Syscall | Layer::Vfs | Layer::Fs) if RESTART.contains(&call.status.saturating_neg()) => EINTR,
        (true, Layer::Syscall | Layer::Vfs | Layer::Fs) => {
            i16::try_from(call.status.saturating_neg()).unwrap_or(i16::MAX)
        }
        (true, _) => -1,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::catalog;
    use crate::correlate::testing::{call, spec};

    fn of(symbol: &str, call: Call) -> CallColumns {
        columns(&catalog::rows()[usize::from(spec(symbol))], &call)
    }

    #[test]
    fn a_short_read_has_requested_and_actual_bytes() {
        let got =
            of("pread64", Call { len: Some(100), got: Some(40), off: Some(7), direct: true, ..call(0, 1, 0, 0, 1) });
        let flags = flag::DIRECT;
        assert_eq!(
            got,
            CallColumns {
                offset: Some(7),
                bytes: Some(40),
                req_bytes: Some(100),
                cmd: None,
                arg: None,
                ret: Some(40),
                errno: 0,
                flags
            }
        );
    }

    #[test]
    fn what_copies_asks_for_what_it_moves() {
        let all = Call { len: Some(i64::MAX as u64), got: Some(4096), ..call(0, 1, 0, 0, 1) };
        let row = |op: &str, kind: Kind| {
            let rows = catalog::rows();
            *rows
                .iter()
                .find(|r| r.op == op && r.kind == kind && r.layer == Layer::Syscall)
                .unwrap_or_else(|| panic!("{op}"))
        };
        for call in ["copy_file_range", "sendfile", "splice", "tee"] {
            let half = format!("{call}.read");
            for row in [row(call, Kind::Write), row(call, Kind::Read), row(&half, Kind::Read)] {
                let f = columns(&row, &all);
                assert_eq!((f.req_bytes, f.bytes, f.ret), (Some(4096), Some(4096), Some(4096)), "{}", row.symbol);
            }
            let failed = columns(&row(call, Kind::Write), &Call { status: -28, ..all });
            assert_eq!((failed.req_bytes, failed.bytes), (None, None));
        }
        assert_eq!(columns(&row("io_uring.splice", Kind::Write), &all).req_bytes, Some(4096));
    }

    #[test]
    fn a_failed_call_moved_nothing() {
        let failed = |symbol: &str, status: i32| {
            let f = of(symbol, Call { status, len: Some(9), got: Some(3), ..call(0, 1, 0, 0, 1) });
            (f.bytes, f.req_bytes, f.ret, f.errno)
        };
        assert_eq!(failed("write", -28), (None, Some(9), Some(-28), 28));
        assert_eq!(failed("read", -512), (None, Some(9), Some(-512), 4));
        assert_eq!(failed("MPI_File_write_at", -1), (None, Some(9), Some(-1), -1));
        assert_eq!(failed("openat", i32::MIN), (None, None, Some(i64::from(i32::MIN)), i16::MAX));
    }

    #[test]
    fn a_seek_returns_the_new_position_and_a_failed_one_has_none() {
        let seek = |status: i32, off: i64| {
            let f = of("lseek", Call { status, off: Some(off as u64), ..call(0, 1, 0, 0, 1) });
            (f.offset, f.ret, f.errno)
        };
        assert_eq!(seek(0, 4096), (Some(4096), Some(4096), 0));
        assert_eq!(seek(-9, -9), (None, Some(-9), 9));
    }

    #[test]
    fn what_a_call_was_given_is_no_size() {
        let of = |symbol: &str, call: Call| {
            let f = of(symbol, call);
            (f.cmd, f.arg, f.ret, f.bytes, f.req_bytes)
        };
        // Also where it failed.
        let seek = |status: i32| Call {
            status,
            off: Some(90),
            len: Some(-10_i64 as u64),
            got: Some(2),
            ..call(0, 1, 0, 0, 1)
        };
        assert_eq!(of("lseek", seek(0)), (Some("SEEK_END"), Some(-10), Some(90), None, None));
        assert_eq!(of("lseek", seek(-22)), (Some("SEEK_END"), Some(-10), Some(-22), None, None));
        let command = |number: u64, value: u64| Call { len: Some(number | value << 32), ..call(0, 1, 0, 0, 1) };
        let other = "fcntl on flags";
        let lock = |number: u64, kind: u64| Call { off: Some(kind), ..command(number, 0xffff_1234) };
        // SEEK_END above F_WRLCK; a pointer that cannot be read.
        assert_eq!(of("fcntl F_SETLK", lock(7, 0x2_0001)), (Some("F_SETLKW"), Some(1), Some(0), None, None));
        assert_eq!(of("fcntl F_OFD_SETLK", command(37, 0)), (Some("F_OFD_SETLK"), None, Some(0), None, None));
        assert_eq!(of(other, command(14, 1)), (Some("F_SETLKW"), None, Some(0), None, None));
        let flock = |operation| of("flock", Call { off: Some(operation), ..call(0, 1, 0, 0, 1) });
        assert_eq!(flock(6), (Some("LOCK_EX"), Some(6), Some(0), None, None));
        assert_eq!(flock(8), (Some("LOCK_UN"), Some(8), Some(0), None, None));
        assert_eq!(flock(99), (None, Some(99), Some(0), None, None));
        assert_eq!(of(other, command(4, 0o2000)), (Some("F_SETFL"), Some(0o2000), Some(0), None, None));
        assert_eq!(of(other, command(4000, 1)), (None, None, Some(0), None, None));
        let dup = Call { off: Some(5), handle: Some(9), ..call(0, 1, 0, 0, 1) };
        assert_eq!(of("dup", dup), (None, Some(5), Some(9), None, None));
    }

    #[test]
    fn seeks_of_libraries_have_what_they_count_from() {
        let of = |symbol: &str, status: i32, whence: i32, before: i64, after: i64| {
            let (off, len, got) = (Some(after as u64), Some(before as u64), Some(whence as u64));
            let f = of(symbol, Call { status, len, got, off, ..call(0, 1, 0, 0, 1) });
            (f.cmd, f.arg, f.offset, f.bytes, f.req_bytes, f.ret)
        };
        assert_eq!(of("fseek", 0, 0, 7, 90), (Some("SEEK_SET"), Some(90), Some(90), None, None, Some(0)));
        assert_eq!(of("fseeko", 0, 1, 100, 90), (Some("SEEK_CUR"), Some(-10), Some(90), None, None, Some(0)));
        assert_eq!(of("fseeko64", 0, 2, 7, 90), (Some("SEEK_END"), None, Some(90), None, None, Some(0)));
        assert_eq!(of("fseek", -1, 0, 7, 7), (Some("SEEK_SET"), None, None, None, None, Some(-1)));
        let seek = "MPI_File_seek";
        assert_eq!(of(seek, 0, 602, -8, -8), (Some("MPI_SEEK_CUR"), Some(-8), Some(-8), None, None, Some(0)));
        assert_eq!(of(seek, 0, 601, 5, 5), (None, Some(5), Some(5), None, None, Some(0)));
    }

    #[test]
    fn an_mpi_write_without_a_count_wrote_all_and_a_read_is_not_known() {
        let moved = |symbol: &str| of(symbol, Call { len: Some(9), ..call(0, 1, 0, 0, 1) }).bytes;
        assert_eq!([moved("MPI_File_write_all"), moved("MPI_File_read_all"), moved("fwrite")], [Some(9), None, None]);
        let cut_off = of("MPI_File_write_all", Call { len: Some(9), unfinished: true, ..call(0, 1, 0, 0, 1) });
        assert_eq!((cut_off.bytes, cut_off.ret, cut_off.flags), (None, None, flag::UNFINISHED | flag::COLLECTIVE));
    }
}
