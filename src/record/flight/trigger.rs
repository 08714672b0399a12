//! What asks the flight recorder for a dataset: pure.

use crate::analysis::findings::Finding;
use crate::analysis::speed::VERY_SLOW;
use crate::base::text;
use crate::cli::trigger::Trigger;
use crate::export::Why;
use crate::inflight::{InFlight, Open, Operation, OperationKind};
use crate::rows::{Process, Row, Span};
use crate::vocabulary::{Kind, Layer, flag};
use nix::errno::Errno;
use nix::sys::signal::Signal;
use std::collections::{HashMap, HashSet};
use std::time::Duration;

/// Errors that programs meet every day: when they try whether something is there, allowed or possible, or do not want to wait.
const EVERYDAY: [Errno; 30] = [
    Errno::EPERM,
    Errno::ENOENT,
    Errno::EINTR,
    Errno::ENXIO,
    Errno::EBADF,
    Errno::EAGAIN,
    Errno::EACCES,
    Errno::EBUSY,
    Errno::EEXIST,
    Errno::EXDEV,
    Errno::ENOTDIR,
    Errno::EISDIR,
    Errno::EINVAL,
    Errno::ENOTTY,
    Errno::ESPIPE,
    Errno::EPIPE,
    Errno::ERANGE,
    Errno::ENOSYS,
    Errno::ENOTEMPTY,
    Errno::ELOOP,
    Errno::ENODATA,
    Errno::ETIME,
    Errno::EOPNOTSUPP,
    Errno::ENOTSOCK,
    Errno::ENOTCONN,
    Errno::ECONNRESET,
    Errno::ECONNREFUSED,
    Errno::EALREADY,
    Errno::EINPROGRESS,
    Errno::ECANCELED,
];

/// Signals that end a process which did something wrong, or used up something.
const CRASHES: [Signal; 10] = [
    Signal::SIGILL,
    Signal::SIGTRAP,
    Signal::SIGABRT,
    Signal::SIGBUS,
    Signal::SIGFPE,
    Signal::SIGKILL,
    Signal::SIGSEGV,
    Signal::SIGXCPU,
    Signal::SIGXFSZ,
    Signal::SIGSYS,
];

/// What a trigger found, and the file that it is about.
pub struct Found {
    pub why: Why,
    pub file_id: Option<i32>,
}

/// The first of these rows that asks for a dataset.
pub fn first(triggers: &[Trigger], rows: &[Row]) -> Option<Found> {
    if triggers.is_empty() {
        return None;
    }
    rows.iter().find_map(|row| triggers.iter().find_map(|trigger| trigger.check(row)))
}

impl Trigger {
    fn check(self, row: &Row) -> Option<Found> {
        match (self, row) {
            (Self::Slow { layer, time }, Row::Span(call)) => {
                // A phase is as long as what happens in it, a wait is reported by the operation it waits for, and what
                // has not returned is stuck.
                let counts = layer.map_or(call.layer != Layer::App, |layer| call.layer == layer)
                    && call.kind != Kind::Wait
                    && call.flags & flag::UNFINISHED == 0;
                (counts && reaches(call.dur_ns, time)).then(|| {
                    Found::call(call, &format!("slow: {} {} took {}", call.layer, call.op, text::time(call.dur_ns)))
                })
            }
            (Self::VerySlow(time), Row::Span(call)) if call.speed == Some(VERY_SLOW) && call.kind != Kind::Wait => {
                let usual = text::time(call.usual_ns.unwrap_or(0));
                let what = || {
                    let took = text::time(call.dur_ns);
                    format!("very slow: {} {} took {took}, {usual} on average in earlier runs", call.layer, call.op)
                };
                reaches(call.dur_ns, time).then(|| Found::call(call, &what()))
            }
            (Self::Slow { layer, time }, Row::Block(request)) if layer.is_none_or(|l| l == Layer::Block) => {
                let end = request.issue_ns.saturating_add(request.dur_ns?);
                let took = end.saturating_sub(request.queue_ns);
                let device = request.device.as_deref().unwrap_or("a device");
                let what =
                    || format!("slow: block {} took {} (pid {}, {device})", request.op, text::time(took), request.pid);
                reaches(took, time).then(|| Found::at(what(), end))
            }
            (Self::Error(which), Row::Span(call)) if call.errno > 0 => {
                let errno = Errno::from_raw(call.errno.into());
                let counts = which.map_or_else(|| !EVERYDAY.contains(&errno), |which| which == errno);
                counts.then(|| {
                    Found::call(call, &format!("error: {} {} failed: {}", call.layer, call.op, text::errno(call.errno)))
                })
            }
            (Self::Error(None), Row::Block(request)) if request.status.is_some_and(|status| status != 0) => {
                let device = request.device.as_deref().unwrap_or("a device");
                let what = format!("error: block {} failed (pid {}, {device})", request.op, request.pid);
                Some(Found::at(what, request.issue_ns.saturating_add(request.dur_ns.unwrap_or(0))))
            }
            (Self::Crash, Row::Process(process)) => crash(process),
            _ => None,
        }
    }
}

fn reaches(took: i64, time: Duration) -> bool {
    u128::try_from(took).is_ok_and(|took| took >= time.as_nanos())
}

fn crash(process: &Process) -> Option<Found> {
    let signal = Signal::try_from(process.exit_code? - 128).ok().filter(|s| CRASHES.contains(s))?;
    let program = process.exe.as_deref().unwrap_or("a process");
    Some(Found::at(format!("crash: {signal} ended {program} (pid {})", process.pid), process.end_ns?))
}

/// Does a finding ask for a dataset?
pub fn wants(triggers: &[Trigger], finding: &Finding) -> bool {
    triggers.iter().any(|trigger| matches!(trigger, Trigger::Finding(which) if which.applies(finding)))
}

/// What is written of a finding that asks for a dataset.
pub fn of_finding(finding: &Finding, now_ns: i64) -> Found {
    let text = format!("finding: {}: {}", finding.rule, finding.title);
    Found { why: Why { text, at_ns: now_ns, span_id: finding.evidence.spans.first().copied() }, file_id: None }
}

impl Found {
    fn at(text: String, at_ns: i64) -> Self {
        Self { why: Why { text, at_ns, span_id: None }, file_id: None }
    }

    fn call(call: &Span, what: &str) -> Self {
        let rank = call.rank.map_or_else(String::new, |rank| format!(", rank {rank}"));
        let (text, at_ns) = (format!("{what} (pid {}{rank})", call.pid), call.start_ns.saturating_add(call.dur_ns));
        Self { why: Why { text, at_ns, span_id: Some(call.span_id) }, file_id: call.file_id }
    }
}

/// Calls and requests that have not returned for too long; each is reported once.
#[derive(Debug)]
pub struct Stuck {
    time: Duration,
    reported: HashSet<Key>,
}

/// Whether it is a request of a device, and its number: requests and calls are numbered apart.
type Key = (bool, i64);

impl Stuck {
    /// `None` without such a trigger.
    pub fn wanted(triggers: &[Trigger]) -> Option<Self> {
        let times = triggers.iter().filter_map(|t| if let Trigger::Stuck(time) = t { Some(*time) } else { None });
        Some(Self { time: times.min()?, reported: HashSet::new() })
    }

    /// The oldest of them that was not reported yet.
    pub fn find(&mut self, now: &InFlight) -> Option<Why> {
        let age = |call: &Open| now.at_ns.saturating_sub(call.start_ns);
        let all = now.operations.iter().filter_map(|o| Some((o, open_call(o)?)));
        let stuck: HashMap<Key, _> =
            all.filter(|(_, call)| reaches(age(call), self.time)).map(|(o, call)| (key(o, call), (o, call))).collect();
        let new = stuck.iter().filter(|(key, _)| !self.reported.contains(key)).map(|(_, found)| *found);
        let oldest = new.min_by_key(|(_, call)| (call.start_ns, call.id));
        // What is stuck stays so until it returns.
        self.reported = stuck.keys().copied().collect();
        let (operation, call) = oldest?;
        let inner = operation.innermost().filter(|inner| inner.id != call.id);
        let inner = inner.map_or_else(String::new, |inner| format!(", in {} {}", inner.layer, inner.op));
        let file = operation.file().map_or_else(String::new, |file| format!(", {file}"));
        let text = format!(
            "stuck: {} {} has not returned for {}{inner} (pid {}{file})",
            call.layer,
            call.op,
            text::time(age(call)),
            operation.pid
        );
        Some(Why { text, at_ns: now.at_ns, span_id: (operation.kind != OperationKind::Request).then_some(call.id) })
    }
}

/// The call of an operation whose age counts: the outermost one. A phase is as long as what happens in it, and a wait
/// is reported by the operation it waits for.
fn open_call(operation: &Operation) -> Option<&Open> {
    operation.calls.iter().find(|call| call.layer != Layer::App && call.kind != Kind::Wait)
}

fn key(operation: &Operation, call: &Open) -> Key {
    (operation.kind == OperationKind::Request, call.id)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::export::dataset::tests::span;
    use crate::rows::Block;

    const MS: i64 = 1_000_000;

    fn triggers(list: &str) -> Vec<Trigger> {
        list.split(',').map(|t| t.parse().unwrap()).collect()
    }

    fn found(list: &str, row: Row) -> Option<String> {
        first(&triggers(list), &[row]).map(|found| found.why.text)
    }

    fn call(layer: Layer, kind: Kind, millis: i64, errno: i16) -> Row {
        Row::Span(Box::new(Span { layer, kind, dur_ns: millis * MS, errno, pid: 7, rank: Some(3), ..span(1, 1, 0) }))
    }

    #[test]
    fn triggers_are_read_and_wrong_ones_are_named() {
        let ms = Duration::from_millis;
        let list = triggers("slow=100ms,slow=hdf5:2s,error,error=EIO,stuck=1m,crash,very-slow=5ms");
        let expected = [
            Trigger::Slow { layer: None, time: ms(100) },
            Trigger::Slow { layer: Some(Layer::Hdf5), time: ms(2000) },
            Trigger::Error(None),
            Trigger::Error(Some(Errno::EIO)),
            Trigger::Stuck(ms(60_000)),
            Trigger::Crash,
            Trigger::VerySlow(ms(5)),
        ];
        assert_eq!(list, expected);
        for (wrong, expected) in [
            ("", "triggers are: slow=TIME"),
            ("slow", "triggers are:"),
            ("crash=1", "triggers are:"),
            ("slow=disk:1s", "no such layer; layers are: "),
            ("slow=1y", "unknown unit"),
            ("stuck=", "no time with its unit: 500ms, 30s"),
            ("stuck=30", "a time needs its unit: 30s, 30ms or 30m"),
            ("error=EVIL", "\"EVIL\" is not the name of an error of errno(3)"),
        ] {
            let error = wrong.parse::<Trigger>().unwrap_err();
            assert!(error.contains(expected), "{wrong}: {error}");
        }
    }

    #[test]
    fn calls_and_requests_are_slow() {
        let read = |layer, millis| call(layer, Kind::Read, millis, 0);
        let message = found("slow=100ms", read(Layer::Syscall, 100)).unwrap();
        assert_eq!(message, "slow: syscall read took 100 ms (pid 7, rank 3)");
        assert_eq!(found("slow=100ms", read(Layer::Syscall, 99)), None);
        assert!(found("slow=hdf5:10ms", read(Layer::Hdf5, 10)).is_some());
        assert_eq!(found("slow=hdf5:10ms", read(Layer::Syscall, 10)), None);
        // Phases only when they are named, and never waits for others.
        assert_eq!(found("slow=10ms", read(Layer::App, 10)), None);
        assert!(found("slow=app:10ms", read(Layer::App, 10)).is_some());
        assert_eq!(found("slow=10ms", call(Layer::Syscall, Kind::Wait, 500, 0)), None);
        let cut = Row::Span(Box::new(Span { dur_ns: 500 * MS, flags: flag::UNFINISHED, ..span(1, 1, 0) }));
        assert_eq!(found("slow=10ms", cut), None);
        let request = |status| {
            let all = Block {
                req_id: 1,
                dev: 1,
                device: Some("sda".to_owned()),
                op: "write",
                class: "sync",
                req_flags: 0,
                sector: 0,
                bytes: 512,
                pid: 7,
                queue_ns: 5 * MS,
                insert_ns: None,
                issue_ns: 55 * MS,
                dur_ns: Some(50 * MS),
                status,
                nr_bios: 1,
                merges: 0,
                splits: 0,
                upper_dev: None,
                upper_sector: None,
                qdepth: 1,
            };
            Row::Block(all)
        };
        let message = found("slow=block:100ms", request(Some(0))).unwrap();
        assert_eq!(message, "slow: block write took 100 ms (pid 7, sda)");
        assert_eq!(found("slow=101ms,error", request(Some(0))), None);
        assert!(found("error", request(Some(10))).unwrap().contains("block write failed (pid 7, sda)"));
    }

    #[test]
    fn calls_are_very_slow_against_earlier_runs() {
        let read = |speed, kind, millis| {
            let span = Span { kind, speed, usual_ns: Some(2 * MS), dur_ns: millis * MS, pid: 7, ..span(1, 1, 0) };
            found("very-slow=5ms", Row::Span(Box::new(span)))
        };
        let message = read(Some(VERY_SLOW), Kind::Read, 5).unwrap();
        assert_eq!(message, "very slow: syscall read took 5.00 ms, 2.00 ms on average in earlier runs (pid 7)");
        assert_eq!(read(Some(VERY_SLOW), Kind::Read, 4), None);
        assert_eq!(read(Some(VERY_SLOW), Kind::Wait, 50), None);
        assert_eq!([Some("slow"), None].map(|speed| read(speed, Kind::Read, 50)), [None, None]);
    }

    #[test]
    fn errors_count_unless_they_are_everyday() {
        let failed = |errno: Errno| call(Layer::Syscall, Kind::Write, 1, errno as i16);
        assert_eq!(found("error", failed(Errno::EIO)).unwrap(), "error: syscall read failed: EIO (pid 7, rank 3)");
        for errno in [Errno::ENOSPC, Errno::ENOMEM, Errno::ESTALE, Errno::EROFS, Errno::EUCLEAN] {
            assert!(found("error", failed(errno)).is_some(), "{errno}");
        }
        for errno in EVERYDAY {
            assert_eq!(found("error", failed(errno)), None);
        }
        // One that is named counts, whichever it is, and no other.
        assert!(found("error=ENOENT", failed(Errno::ENOENT)).is_some());
        assert_eq!(found("error=ENOENT", failed(Errno::EIO)), None);
        // A library reports only that it failed.
        assert_eq!(found("error", call(Layer::Hdf5, Kind::Open, 1, -1)), None);
    }

    #[test]
    fn processes_crash_by_some_signals() {
        let ended = |exit_code| {
            let exe = Some("/bin/app".to_owned());
            let process = Process { pid: 7, end_ns: Some(9), exe, exit_code, ..Process::placeholder(1, 0) };
            found("crash", Row::Process(Box::new(process)))
        };
        assert_eq!(ended(Some(128 + 11)).unwrap(), "crash: SIGSEGV ended /bin/app (pid 7)");
        assert!(ended(Some(128 + 9)).is_some());
        for other in [None, Some(0), Some(1), Some(255), Some(128 + 15), Some(128 + 2), Some(128 + 13)] {
            assert_eq!(ended(other), None);
        }
    }

    fn open(id: i64, layer: Layer, op: &str, kind: Kind, start_ns: i64) -> Open {
        let file = (layer == Layer::Syscall).then(|| "/lock".to_owned());
        Open { id, layer, op: op.to_owned(), kind, start_ns, file, bytes: None, offset: None }
    }

    /// As they are looked at: named by the innermost call, as old as the outermost that is no phase.
    fn operation(kind: OperationKind, calls: Vec<Open>) -> Operation {
        let outermost = calls.iter().find(|c| c.layer != Layer::App).unwrap_or(&calls[0]).start_ns;
        Operation {
            kind,
            id: calls.last().unwrap().id,
            start_ns: outermost,
            age_ns: 0,
            pid: 7,
            tid: 7,
            comm: "app".to_owned(),
            rank: None,
            calls,
            kernel: Vec::new(),
            user: Vec::new(),
        }
    }

    #[test]
    fn a_stuck_call_is_reported_once() {
        let flock = |id| operation(OperationKind::Calls, vec![open(id, Layer::Syscall, "flock", Kind::Other, id)]);
        let look = |at_ns, ids: &[i64]| InFlight { at_ns, operations: ids.iter().map(|id| flock(*id)).collect() };
        assert!(Stuck::wanted(&triggers("slow=1s,crash")).is_none());
        let mut stuck = Stuck::wanted(&triggers("stuck=2s,stuck=1s")).unwrap();
        let second = 1000 * MS;
        assert_eq!(stuck.find(&look(second, &[5, 6])), None);
        let why = stuck.find(&look(second + 5, &[5, 6])).unwrap();
        assert_eq!(why.text, "stuck: syscall flock has not returned for 1.00 s (pid 7, /lock)");
        assert_eq!((why.at_ns, why.span_id), (second + 5, Some(5)));
        assert_eq!(stuck.find(&look(second + 5, &[5, 6])), None);
        // Another one, and the first one again after it had returned.
        assert!(stuck.find(&look(second + 6, &[6])).unwrap().text.contains("1.00 s"));
        assert!(stuck.find(&look(2 * second, &[5, 6])).is_some());
    }

    #[test]
    fn a_busy_call_is_reported_once_and_by_its_own_name() {
        let second = 1000 * MS;
        let mut stuck = Stuck::wanted(&triggers("stuck=10s")).unwrap();
        // In a phase, with another call inside each second.
        let look = |at: i64| {
            let calls = vec![
                open(1, Layer::App, "solve", Kind::Other, 0),
                open(2, Layer::Hdf5, "H5Dwrite", Kind::Write, second),
                open(2 + at, Layer::Syscall, "pwrite64", Kind::Write, at * second - 5),
            ];
            InFlight { at_ns: at * second, operations: vec![operation(OperationKind::Calls, calls)] }
        };
        assert_eq!(stuck.find(&look(10)), None);
        let why = stuck.find(&look(11)).unwrap();
        let expected = "stuck: hdf5 H5Dwrite has not returned for 10.0 s, in syscall pwrite64 (pid 7, /lock)";
        assert_eq!((why.text.as_str(), why.span_id), (expected, Some(2)));
        for at in 12..60 {
            assert_eq!(stuck.find(&look(at)), None);
        }
    }

    #[test]
    fn phases_and_waiting_are_not_stuck_and_what_is_in_them_is() {
        let second = 1000 * MS;
        let mut stuck = Stuck::wanted(&triggers("stuck=10s")).unwrap();
        let phase = || open(1, Layer::App, "compute", Kind::Other, 0);
        let idle = operation(OperationKind::Calls, vec![open(2, Layer::Syscall, "io_uring_enter", Kind::Wait, 0)]);
        let computes = operation(OperationKind::Calls, vec![phase()]);
        let operations = vec![computes, idle];
        assert_eq!(stuck.find(&InFlight { at_ns: 3600 * second, operations: operations.clone() }), None);
        // A call that began late in a wait that began early.
        let inner = open(4, Layer::Syscall, "pwrite64", Kind::Write, 3600 * second);
        let waits = vec![phase(), open(3, Layer::Mpiio, "MPI_Wait", Kind::Wait, 0), inner];
        let at = |at_ns| InFlight { at_ns, operations: vec![operation(OperationKind::Calls, waits.clone())] };
        assert_eq!(stuck.find(&at(3605 * second)), None);
        assert_eq!(stuck.find(&at(3610 * second)).unwrap().span_id, Some(4));
    }

    #[test]
    fn a_request_and_a_call_of_one_number_are_two() {
        let second = 1000 * MS;
        let mut stuck = Stuck::wanted(&triggers("stuck=10s")).unwrap();
        let call = operation(OperationKind::Calls, vec![open(5, Layer::Syscall, "flock", Kind::Other, 0)]);
        let request = operation(OperationKind::Request, vec![open(5, Layer::Block, "write", Kind::Write, second)]);
        let at = |at_ns| InFlight { at_ns, operations: vec![call.clone(), request.clone()] };
        assert_eq!(stuck.find(&at(10 * second)).unwrap().span_id, Some(5));
        let why = stuck.find(&at(11 * second)).unwrap();
        assert_eq!((why.text.as_str(), why.span_id), ("stuck: block write has not returned for 10.0 s (pid 7)", None));
    }
}
