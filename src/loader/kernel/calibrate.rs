//! What hooks cost on this machine without their programs' own time: measured with programs that only take the time, on a
//! function of our own and on the system call in it that moves data. The time of the real programs is measured while they run
//! (`bpf/core/cost.h`).

use crate::loader::cache::Cache;
use crate::loader::code::{prologue, safety};
use crate::loader::kernel::{self, LibTier};
use crate::loader::processes::maps;
use crate::skel::{OpenTrialSkel, TrialSkel, TrialSkelBuilder, iot_calibration, types as t};
use anyhow::{Context as _, Result, anyhow};
use libbpf_rs::skel::{OpenSkel as _, SkelBuilder as _};
use libbpf_rs::{Link, ProgramInput, UprobeMultiOpts, UprobeOpts};
use serde::{Deserialize, Serialize};
use std::fmt;
use std::fs::{self, File};
use std::hint::black_box;
use std::mem::MaybeUninit;
use std::os::unix::fs::FileExt as _;
use std::path::Path;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// Calls of a round. For so long there are rounds, of which the fastest counts: others were interrupted.
const CALLS: u32 = 50;
const MEASURED: Duration = Duration::from_millis(12);
const LEAST_ROUNDS: usize = 5;
/// Bytes that a call reads: after it the first caches are as calls that move data leave them. With what hooks need still in
/// them, hooks cost half as much.
const READ: usize = 64 * 1024;

/// For so long what a run has measured counts for later ones.
const LASTS: Duration = Duration::from_hours(1);

/// What the programs of both probes of a function cost, and what all of it is taken to cost at least and at most, in ns. A
/// measurement may have been disturbed, and calls with a system call in them must keep their probes.
const PROGRAMS_NS: u32 = 500;
const PROBE_NS: (u32, u32) = (1500, 10_000);

/// What a run has measured, and when (seconds since 1970).
#[derive(Serialize, Deserialize)]
struct Measured {
    at: u64,
    fixed: Fixed,
}

/// Costs in ns of one call, programs not included.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Fixed {
    /// `None`: not measured.
    pub library: Option<Library>,
    /// The hooks of a system call, half of it at its entry.
    pub syscall: u32,
    /// By how much the duration that is recorded is longer than the call alone.
    pub sys_inside: u32,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Library {
    /// A probe at the entry of a function, on an instruction that the kernel emulates.
    pub entry: u32,
    /// The probe for its return.
    pub leave: u32,
    /// By how much the duration that is recorded is longer than the call alone.
    pub inside: u32,
}

impl Fixed {
    /// As the kernel side has it; `share` of its time at most probes that can go may cost a thread.
    pub fn wire(&self, share: Option<f64>) -> t::iot_fixed {
        let Library { entry, leave, inside } = self.library.unwrap_or_default();
        let probe = entry.saturating_add(leave).saturating_add(PROGRAMS_NS).clamp(PROBE_NS.0, PROBE_NS.1);
        t::iot_fixed {
            probe,
            every: share.map_or(0, |share| (f64::from(probe) / share.max(0.001)) as u32),
            entry,
            leave,
            inside,
            sys_enter: self.syscall / 2,
            sys_leave: self.syscall - self.syscall / 2,
            sys_inside: self.sys_inside,
        }
    }
}

impl fmt::Display for Fixed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "system call {} ns, {} of them inside; ", self.syscall, self.sys_inside)?;
        match self.library {
            Some(Library { entry, leave, inside }) => {
                write!(f, "library call {entry} + {leave} ns, {inside} of them inside")
            }
            None => f.write_str("library call not measured"),
        }
    }
}

/// The function that is probed. It begins with an instruction that the kernel emulates: a `push`, for it has a call to make.
/// The comparison keeps it from being a jump, and needs no stack where nothing is optimized.
#[inline(never)]
fn probed(meter: &mut Meter) -> bool {
    meter.read() > 0
}

/// The measured system calls: what is read, and where it goes.
struct Meter {
    file: File,
    to: Vec<u8>,
}

impl Meter {
    /// What a call does.
    #[inline(never)]
    fn read(&mut self) -> usize {
        self.file.read_at(black_box(&mut self.to), 0).unwrap_or(0)
    }

    /// What a call takes in ns, in the fastest round.
    fn alone<T>(&mut self, call: fn(&mut Self) -> T) -> f64 {
        self.hooked(call, &mut iot_calibration::default()).took
    }

    /// The same with what the programs have measured meanwhile.
    fn hooked<T>(&mut self, call: fn(&mut Self) -> T, counters: &mut iot_calibration) -> Hooked {
        let call = black_box(call);
        let mut round = || {
            take(counters);
            let begun = Instant::now();
            for _ in 0..CALLS {
                black_box(call(self));
            }
            let took = begun.elapsed().as_nanos() as f64;
            let seen = take(counters);
            let each = |ns: f64| ns / f64::from(CALLS);
            Hooked {
                took: each(took),
                recorded: each(seen.inside as f64),
                entry: each(seen.entry as f64),
                leave: each(seen.leave as f64),
            }
        };
        let begun = Instant::now();
        let (mut least, mut rounds) = (round(), 1);
        while rounds < LEAST_ROUNDS || begun.elapsed() < MEASURED {
            let now = round();
            if now.took < least.took {
                least = now;
            }
            rounds += 1;
        }
        least
    }
}

/// A call with hooks, in ns.
#[derive(Debug, Clone, Copy, Default)]
struct Hooked {
    took: f64,
    /// The duration that hooks would record.
    recorded: f64,
    /// The programs themselves.
    entry: f64,
    leave: f64,
}

/// What the programs have counted since the last time. They write to it, which the compiler does not know.
fn take(counters: &mut iot_calibration) -> iot_calibration {
    let counters = black_box(counters);
    let seen = *counters;
    (counters.inside, counters.entry, counters.leave) = (0, 0, 0);
    seen
}

/// Where the probe of [`probed`] stands in our executable's file.
fn probe_offset(exe: &Path) -> Result<usize> {
    let address = probed as *const () as u64;
    let text = fs::read("/proc/self/maps").context("/proc/self/maps")?;
    let own = maps::mappings(&text).into_iter().find(|m| (m.start..m.end).contains(&address));
    let offset = own.map(|m| address - m.start + m.offset).context("our own function is not mapped")?;
    let mut code = [0; 64];
    File::open(exe).and_then(|file| file.read_exact_at(&mut code, offset)).context("our own executable")?;
    let probe = prologue::choose(&code, code.len() as u64, 0).context("our own function")?;
    Ok(offset as usize + usize::from(probe.skip))
}

/// The programs that are attached to measure library calls: entry, and return where that is another one.
fn attach(skel: &TrialSkel<'_>, tier: LibTier, exe: &Path, at: usize, returns: bool) -> Result<Vec<Link>> {
    let (progs, pid) = (&skel.progs, std::process::id() as i32);
    let multi = || UprobeMultiOpts { offsets: vec![at], ..Default::default() };
    let mut links = vec![match tier {
        LibTier::Session => {
            let opts = UprobeMultiOpts { session: true, ..multi() };
            progs.iot_calibrate_session.attach_uprobe_multi_with_opts(pid, exe, "", opts)?
        }
        LibTier::Multi => progs.iot_calibrate_multi_entry.attach_uprobe_multi_with_opts(pid, exe, "", multi())?,
        LibTier::Single => {
            progs.iot_calibrate_single_entry.attach_uprobe_with_opts(pid, exe, at, UprobeOpts::default())?
        }
    }];
    if returns && tier == LibTier::Multi {
        let opts = UprobeMultiOpts { retprobe: true, ..multi() };
        links.push(progs.iot_calibrate_multi_leave.attach_uprobe_multi_with_opts(pid, exe, "", opts)?);
    } else if returns && tier == LibTier::Single {
        let opts = UprobeOpts { retprobe: true, ..Default::default() };
        links.push(progs.iot_calibrate_single_leave.attach_uprobe_with_opts(pid, exe, at, opts)?);
    }
    Ok(links)
}

fn open(store: &mut MaybeUninit<libbpf_rs::OpenObject>, tier: Option<LibTier>) -> Result<OpenTrialSkel<'_>> {
    let mut open: OpenTrialSkel<'_> = TrialSkelBuilder::default().open(store).context("opening the programs")?;
    let progs = &mut open.progs;
    match tier {
        Some(LibTier::Session) => progs.iot_calibrate_session.set_autoload(true),
        Some(LibTier::Multi) => {
            progs.iot_calibrate_multi_entry.set_autoload(true);
            progs.iot_calibrate_multi_leave.set_autoload(true);
        }
        Some(LibTier::Single) => {
            progs.iot_calibrate_single_entry.set_autoload(true);
            progs.iot_calibrate_single_leave.set_autoload(true);
        }
        None => {}
    }
    progs.iot_calibrate_this.set_autoload(true);
    progs.iot_calibrate_sys_enter.set_autoload(true);
    progs.iot_calibrate_sys_exit.set_autoload(true);
    Ok(open)
}

/// What hooks cost here; library probes where they are attached in this way. Measured, unless three runs of the last
/// hour have done so.
///
/// # Errors
/// When the kernel refuses the programs, which it does not where it allows a trace.
pub fn fixed(tier: Option<LibTier>) -> Result<Fixed> {
    let tier = tier.filter(|_| may_return());
    let cache = Cache::new("calibration.json", &tier);
    let mut runs: Vec<Measured> = cache.as_ref().and_then(Cache::read).unwrap_or_default();
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs();
    runs.retain(|run| now.checked_sub(run.at).is_some_and(|age| age < LASTS.as_secs()));
    if let [a, b, c, ..] = runs.as_slice() {
        return Ok(median([a.fixed, b.fixed, c.fixed]));
    }
    let fixed = measure(tier)?;
    runs.push(Measured { at: now, fixed });
    // Where it cannot be kept it is measured again.
    let _ = cache.map(|cache| cache.write(runs));
    Ok(fixed)
}

/// Of each figure the one in the middle: one of the runs may have been disturbed.
fn median(runs: [Fixed; 3]) -> Fixed {
    let middle = |of: &dyn Fn(&Fixed) -> u32| {
        let mut values = runs.each_ref().map(of);
        values.sort_unstable();
        values[1]
    };
    let library = |of: fn(&Library) -> u32| middle(&|run| run.library.as_ref().map_or(0, of));
    Fixed {
        library: runs.iter().all(|run| run.library.is_some()).then(|| Library {
            entry: library(|l| l.entry),
            leave: library(|l| l.leave),
            inside: library(|l| l.inside),
        }),
        syscall: middle(&|run| run.syscall),
        sys_inside: middle(&|run| run.sys_inside),
    }
}

fn measure(tier: Option<LibTier>) -> Result<Fixed> {
    let exe = Path::new("/proc/self/exe");
    let mut store = MaybeUninit::uninit();
    let mut skel: TrialSkel<'_> = open(&mut store, tier)?.load().map_err(|e| anyhow!(kernel::reason(&e)))?;
    let data = skel.maps.bss_data.take().context("the programs have no data")?;
    let (calls, syscalls) = (&mut data.iot_calibrated_calls, &mut data.iot_calibrated_syscalls);
    skel.progs.iot_calibrate_this.test_run(ProgramInput::default()).context("naming the thread that measures")?;
    let mut meter = Meter { file: File::open(exe).context("our own executable")?, to: vec![0; READ] };
    let mut fixed = Fixed::default();
    // The kernel takes its time to detach, for which no thread has to wait.
    let detach = |links: Vec<Link>| drop(std::thread::Builder::new().spawn(move || drop(links)));
    let alone = meter.alone(Meter::read);
    let of_system_calls =
        vec![skel.progs.iot_calibrate_sys_enter.attach()?, skel.progs.iot_calibrate_sys_exit.attach()?];
    let both = meter.hooked(Meter::read, syscalls);
    fixed.syscall = whole(both.took - alone - both.entry - both.leave);
    fixed.sys_inside = whole(both.recorded - alone);
    if let Some(tier) = tier {
        // With hooks on the system call inside: one makes the other slower.
        let at = probe_offset(exe)?;
        let alone = meter.alone(probed);
        calls.alone = 1;
        let mut links = attach(&skel, tier, exe, at, false)?;
        let entry = meter.hooked(probed, calls);
        if tier != LibTier::Session {
            detach(std::mem::replace(&mut links, attach(&skel, tier, exe, at, true)?));
        }
        calls.alone = 0;
        let both = meter.hooked(probed, calls);
        detach(links);
        fixed.library = Some(Library {
            entry: whole(entry.took - alone - entry.entry),
            leave: whole(both.took - entry.took - both.leave),
            inside: whole(both.recorded - alone),
        });
    }
    detach(of_system_calls);
    Ok(fixed)
}

/// May a call of ours return through a return probe? A sandbox around the tracer could end it for that.
fn may_return() -> bool {
    let status = fs::read("/proc/self/status").map(|text| maps::status(&text)).unwrap_or_default();
    let uname = nix::sys::utsname::uname();
    let release = uname.as_ref().map(|u| u.release().to_string_lossy()).unwrap_or_default();
    safety::return_probes_allowed(&release, status.seccomp.unwrap_or(0)).is_ok()
}

/// In whole ns.
fn whole(ns: f64) -> u32 {
    ns.max(0.0) as u32
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_function_that_is_probed_is_found_and_begins_with_what_the_kernel_emulates() {
        let exe = Path::new("/proc/self/exe");
        let at = probe_offset(exe).unwrap();
        let mut code = [0; 32];
        File::open(exe).unwrap().read_exact_at(&mut code, at as u64).unwrap();
        let probe = prologue::choose(&code, 32, 0).unwrap();
        assert_eq!((probe.skip, probe.class), (0, prologue::InsnClass::Emulated), "{}", probe.text);
    }

    #[test]
    fn a_run_that_was_disturbed_does_not_count() {
        let library = |entry, leave, inside| Some(Library { entry, leave, inside });
        let runs = [
            Fixed { library: library(300, 500, 410), syscall: 200, sys_inside: 90 },
            Fixed { library: library(9000, 480, 8000), syscall: 190, sys_inside: 100 },
            Fixed { library: library(310, 0, 400), syscall: 7000, sys_inside: 95 },
        ];
        assert_eq!(median(runs), Fixed { library: library(310, 480, 410), syscall: 200, sys_inside: 95 });
    }

    #[test]
    fn what_probes_may_cost_follows_from_what_they_cost_here() {
        let limits = |entry, leave, share| {
            let fixed = Fixed { library: Some(Library { entry, leave, inside: 0 }), ..Fixed::default() };
            let limits = fixed.wire(share);
            (limits.probe, limits.every)
        };
        assert_eq!(limits(1346, 2613, Some(0.1)), (4459, 44590));
        assert_eq!(limits(300, 500, Some(0.1)), (1500, 15000));
        assert_eq!(limits(300, 500, None), (1500, 0));
        assert_eq!(limits(9000, u32::MAX, Some(0.1)), (10_000, 100_000));
        let not_measured = Fixed::default().wire(Some(0.5));
        assert_eq!((not_measured.probe, not_measured.every), (1500, 3000));
    }

    #[test]
    fn costs_are_not_negative() {
        assert_eq!([whole(-3.0), whole(3.7)], [0, 3]);
    }
}
