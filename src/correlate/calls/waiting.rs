//! What the time of a call was spent on, in parts that add up: on a CPU, in a run queue, and what it slept for.

use crate::catalog::Row;
use crate::correlate::devices::block::Blocks;
use crate::correlate::devices::busy::{Busy, For};
use crate::correlate::resources::files::Files;
use crate::event::{Cached, Call, Measured, OffCpu};
use crate::rows::{Mount, PARTS, Span};
use crate::vocabulary::{Kind, Layer};

/// Waits for all files of a file system.
const SYNCFS: &str = "syncfs";

/// What a call may have slept for. Its own requests come first, then those for its file, then those of its file system:
/// a moment at which several were on their way counts for the first.
#[derive(Debug, Clone, Copy, Default)]
pub struct Causes {
    /// ns that the kernel made it wait: too much is dirty, or a lock is not free.
    pub throttled: Option<u64>,
    pub locked: Option<u64>,
    /// Requests that the thread submitted itself: in the device, and before.
    pub own: [Option<For>; 2],
    pub pages: Option<For>,
    pub journal: Option<For>,
    pub flush: Option<For>,
    /// Where nothing else is known: a lock on a file, or the server of a file system.
    pub rest: Rest,
}

/// What the rest of a sleep is.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Rest {
    #[default]
    Unknown,
    Lock,
    Remote,
}

/// Columns of a span, in ns. `None`: not known.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Parts {
    pub cpu: Option<i64>,
    pub runq: Option<i64>,
    pub throttle: Option<i64>,
    pub lock: Option<i64>,
    pub writeback: Option<i64>,
    pub journal: Option<i64>,
    pub flush: Option<i64>,
    pub devqueue: Option<i64>,
    pub device: Option<i64>,
    pub remote: Option<i64>,
}

/// Takes as much of what is left as there is.
fn take(left: &mut u64, ns: u64) -> i64 {
    let part = ns.min(*left);
    *left -= part;
    signed(part)
}

fn signed(ns: u64) -> i64 {
    i64::try_from(ns).unwrap_or(i64::MAX)
}

/// The parts of a call that took `net` ns without hooks. `requests`: those that are over, and the time of the call;
/// `None`: they are not measured.
pub fn parts(net: u64, off_cpu: Option<OffCpu>, causes: &Causes, requests: Option<(&Busy, [u64; 2])>) -> Parts {
    let away = off_cpu.map(|off| off.all.min(net));
    let runq = off_cpu.zip(away).map(|(off, away)| off.queued.min(away));
    // Without times of the scheduler, no more than the call took.
    let mut left = away.unwrap_or(net) - runq.unwrap_or(0);
    let throttle = causes.throttled.map(|ns| take(&mut left, ns));
    let lock = causes.locked.map(|ns| take(&mut left, ns));
    // The journal waits for flushes, too.
    let kinds = [causes.own[0], causes.own[1], causes.pages, causes.flush, causes.journal];
    let times = requests.and_then(|(busy, during)| match left {
        0 => Some([0; 5]),
        _ => busy.split(kinds, during),
    });
    let [device, devqueue, writeback, flush, journal] = match times {
        Some(times) => times.map(|ns| Some(take(&mut left, ns))),
        None => [None; 5],
    };
    let rest = signed(left);
    Parts {
        cpu: away.map(|away| signed(net - away)),
        runq: runq.map(signed),
        throttle,
        lock: if causes.rest == Rest::Lock { Some(lock.unwrap_or(0) + rest) } else { lock },
        writeback,
        journal,
        flush,
        devqueue,
        device,
        remote: Some(if causes.rest == Rest::Remote { rest } else { 0 }),
    }
}

/// The parts of a call of a library: what it slept for is what the calls inside it did, none of which was added yet.
pub fn of_library(net: u64, off_cpu: Option<OffCpu>, measured: Measured) -> Parts {
    let Parts { cpu, runq, .. } = parts(net, off_cpu, &Causes::default(), None);
    let none = |known: bool| (known && measured.system_calls).then_some(0);
    let requests = none(measured.requests);
    Parts {
        cpu,
        runq,
        throttle: none(measured.throttling),
        lock: none(measured.locks),
        writeback: requests,
        journal: requests,
        flush: requests,
        devqueue: requests,
        device: requests,
        remote: none(true),
    }
}

/// The parts of a call that has a record of its own, and the device for whose flushes it waited, if it did.
pub fn of(row: &Row, call: &Call, cached: Option<Cached>, seen: &Surroundings<'_>) -> (Parts, Option<u32>) {
    let net = call.dur.saturating_sub(call.probe);
    if call.unfinished || matches!(row.layer, Layer::Vfs | Layer::Fs) {
        return (Parts::default(), None);
    }
    if row.layer != Layer::Syscall {
        return (of_library(net, call.off_cpu, seen.measured), None);
    }
    // Of most nothing is asked: they did not sleep.
    let sleeps = call.off_cpu.is_none_or(|off| off.all > off.queued);
    let mut causes = Causes {
        throttled: seen.measured.throttling.then(|| cached.map_or(0, |c| c.throttled)),
        locked: seen.measured.locks.then(|| cached.map_or(0, |c| c.locked)),
        ..Causes::default()
    };
    if sleeps {
        seen.causes(row, call.thread, &mut causes);
    }
    // `sync` waits for files of which it names none.
    let requests = seen.measured.requests && (row.kind != Kind::Sync || seen.file.is_some());
    let during = [call.start, call.start.saturating_add(call.dur)];
    let parts = parts(net, call.off_cpu, &causes, requests.then(|| (seen.blocks.busy(), during)));
    let flush = match causes.flush {
        Some(For::Flush(dev)) if parts.flush.is_some_and(|ns| ns > 0) => Some(dev),
        _ => None,
    };
    (parts, flush)
}

/// What is known around a call.
pub struct Surroundings<'a> {
    pub blocks: &'a Blocks,
    pub files: &'a Files,
    pub measured: Measured,
    pub file: Option<i32>,
}

/// Does another machine, or a daemon, do the work?
fn is_served(mount: &Mount) -> bool {
    mount.scope == "remote" || mount.fstype.starts_with("fuse")
}

impl<'a> Surroundings<'a> {
    fn causes(&self, row: &Row, thread: u32, causes: &mut Causes) {
        causes.own = [Some(For::Service(thread)), Some(For::Queue(thread))];
        if matches!(row.op, "flock" | "fcntl") {
            causes.rest = Rest::Lock;
        }
        let Some(file) = self.file else { return };
        let [dev, journal] = self.files.devices(file);
        let mount = self.files.mount(file);
        causes.pages = Some(if row.symbol == SYNCFS { For::Device(dev) } else { For::File(file) });
        // Reads wait for neither.
        if !matches!(row.kind, Kind::Read | Kind::Wait) {
            // btrfs has no device of its own, and is mounted by the name of one.
            let named = |m: &'a Mount| [m.device.as_deref(), m.disk.as_deref(), m.source.strip_prefix("/dev/")];
            let names = mount.into_iter().flat_map(named).flatten();
            causes.journal = Some(For::Journal(journal));
            causes.flush = self.blocks.device(names).map(For::Flush);
        }
        if causes.rest == Rest::Unknown && mount.is_some_and(is_served) {
            causes.rest = Rest::Remote;
        }
    }
}

impl Span {
    /// The parts of its `net_ns`, in the order of [`PARTS`]; those that were not measured are 0. `None`: the scheduler's
    /// times are not known.
    pub fn parts(&self) -> Option<[i64; PARTS.len()]> {
        let known = [Some(self.cpu_ns?), self.runq_ns].into_iter().chain(self.sleeps());
        let mut parts = [0; PARTS.len()];
        parts.iter_mut().zip(known).for_each(|(part, ns)| *part = ns.unwrap_or(0));
        parts[PARTS.len() - 1] = parts.iter().fold(self.net_ns(), |left, ns| left.saturating_sub(*ns)).max(0);
        Some(parts)
    }

    /// The columns of what it slept for, in the order of [`PARTS`].
    fn sleeps(&self) -> [Option<i64>; 8] {
        [
            self.throttle_ns,
            self.lock_ns,
            self.writeback_ns,
            self.journal_ns,
            self.flush_ns,
            self.devqueue_ns,
            self.device_ns,
            self.remote_ns,
        ]
    }

    fn sleeps_mut(&mut self) -> [&mut Option<i64>; 8] {
        [
            &mut self.throttle_ns,
            &mut self.lock_ns,
            &mut self.writeback_ns,
            &mut self.journal_ns,
            &mut self.flush_ns,
            &mut self.devqueue_ns,
            &mut self.device_ns,
            &mut self.remote_ns,
        ]
    }

    /// Adds what a call right inside this one slept for, which is a library's: system calls know themselves.
    pub fn add_sleep(&mut self, inside: &Self) {
        let kernel = matches!(self.layer, Layer::Syscall | Layer::Vfs | Layer::Fs | Layer::Block);
        if kernel || inside.cpu_ns.is_some_and(|cpu| cpu >= inside.net_ns()) {
            return;
        }
        for (sum, part) in self.sleeps_mut().into_iter().zip(inside.sleeps()) {
            if let (Some(sum), Some(part)) = (sum, part) {
                *sum = sum.saturating_add(part);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::catalog;
    use crate::correlate::testing::{call, spec};
    use proptest::prelude::*;

    const ALL: Measured = Measured { pages: true, throttling: true, locks: true, requests: true, system_calls: true };

    impl Parts {
        fn all(&self) -> [Option<i64>; 10] {
            let Self { cpu, runq, throttle, lock, writeback, journal, flush, devqueue, device, remote } = *self;
            [cpu, runq, throttle, lock, writeback, journal, flush, devqueue, device, remote]
        }
    }

    /// On a CPU for 10 of 110 ns, and queued for 20.
    fn slept(rest: Rest, busy: &Busy) -> Parts {
        let causes = Causes {
            throttled: Some(5),
            locked: Some(7),
            own: [Some(For::Service(1)), Some(For::Queue(1))],
            pages: Some(For::File(1)),
            journal: Some(For::Journal(1)),
            flush: Some(For::Flush(1)),
            rest,
        };
        parts(110, Some(OffCpu { all: 100, queued: 20 }), &causes, Some((busy, [1000, 1110])))
    }

    #[test]
    fn each_moment_counts_once_for_the_first_cause_that_fits() {
        let mut busy = Busy::default();
        busy.add(For::Queue(1), 990, 1010);
        busy.add(For::Service(1), 1005, 1020);
        busy.add(For::File(1), 1015, 1030);
        busy.add(For::File(2), 1000, 1110);
        busy.add(For::Journal(1), 1020, 1035);
        busy.add(For::Flush(1), 1035, 1040);
        let parts = slept(Rest::Unknown, &busy);
        assert_eq!(parts.all(), [10, 20, 5, 7, 10, 5, 5, 5, 15, 0].map(Some));
        assert_eq!(slept(Rest::Remote, &busy), Parts { remote: Some(28), ..parts });
        assert_eq!(slept(Rest::Lock, &busy), Parts { lock: Some(35), ..parts });
    }

    #[test]
    fn without_times_of_the_scheduler_nothing_is_known() {
        let causes = Causes { throttled: Some(500), ..Causes::default() };
        let known = parts(100, None, &causes, None);
        assert_eq!(known.all(), [None, None, Some(100), None, None, None, None, None, None, Some(0)]);
    }

    #[test]
    fn calls_of_libraries_have_the_sum_of_those_inside_them() {
        let of_library = of_library(100, Some(OffCpu { all: 60, queued: 10 }), ALL);
        assert_eq!(of_library.all(), [40, 10, 0, 0, 0, 0, 0, 0, 0, 0].map(Some));
        let span = |op: &'static str, layer: Layer| Span {
            cpu_ns: Some(1),
            lock_ns: Some(2),
            device_ns: Some(3),
            flush_ns: None,
            ..Span::new(1, (layer, op, Kind::Write), 0, (0, 10))
        };
        let mut around = span("fwrite", Layer::Stdio);
        around.add_sleep(&span("write", Layer::Syscall));
        assert_eq!((around.lock_ns, around.device_ns, around.flush_ns), (Some(4), Some(6), None));
        around.add_sleep(&Span { cpu_ns: Some(10), ..span("write", Layer::Syscall) });
        assert_eq!(around.lock_ns, Some(4), "it was on a CPU all the time");
        let mut system_call = span("write", Layer::Syscall);
        system_call.add_sleep(&span("vfs_write", Layer::Vfs));
        assert_eq!(system_call.lock_ns, Some(2), "which has its own");
    }

    #[test]
    fn unfinished_calls_and_functions_of_the_kernel_have_no_parts() {
        let (blocks, files) = (Blocks::default(), Files::default());
        let seen = Surroundings { blocks: &blocks, files: &files, measured: ALL, file: None };
        let row = |symbol: &str| catalog::rows()[usize::from(spec(symbol))];
        let off_cpu = Some(OffCpu { all: 9, queued: 1 });
        let ended = Call { off_cpu, ..call(0, 1, 0, 0, 10) };
        assert_eq!(of(&row("write"), &ended, None, &seen).0.cpu, Some(1));
        assert_eq!(of(&row("write"), &Call { unfinished: true, ..ended }, None, &seen).0, Parts::default());
        assert_eq!(of(&row("vfs_read"), &ended, None, &seen).0, Parts::default());
        assert_eq!(of(&row("flock"), &ended, None, &seen).0.lock, Some(8));
    }

    proptest! {
        #[test]
        fn parts_never_come_to_more_than_the_call(
            times in prop::collection::vec((0..5usize, 0..200u64, 0..60u64), 0..30),
            net in 0..200u64, all in 0..250u64, queued in 0..250u64, throttled in 0..100u64, locked in 0..100u64,
        ) {
            let kinds = [For::Service(1), For::Queue(1), For::File(1), For::Journal(1), For::Flush(1)];
            let mut busy = Busy::default();
            for (kind, from, length) in times {
                busy.add(kinds[kind], from, from + length);
            }
            let causes = Causes {
                throttled: Some(throttled),
                locked: Some(locked),
                own: [Some(kinds[0]), Some(kinds[1])],
                pages: Some(kinds[2]),
                journal: Some(kinds[3]),
                flush: Some(kinds[4]),
                rest: Rest::Remote,
            };
            let off_cpu = Some(OffCpu { all, queued });
            let parts = parts(net, off_cpu, &causes, Some((&busy, [0, net]))).all();
            prop_assert!(parts.iter().all(|part| part.is_some_and(|ns| ns >= 0)));
            // With a server as the rest they are all of it.
            prop_assert_eq!(parts.iter().flatten().sum::<i64>(), net as i64);
        }
    }
}
