//! One trace on the kernel side: what it has attached, what it finds, and its end.

mod demote;
mod load;
mod losses;
mod pause;
mod targets;

pub use crate::loader::kernel::programs::{Options, Scope, Stores, stores};
pub use crate::loader::session::losses::{EXCLUDED, UNPLACED};

use crate::catalog::Row;
use crate::event::wire::Busy;
use crate::event::{Event, Measured};
use crate::loader::attach::Engine;
use crate::loader::attach::pauses::Pause;
use crate::loader::code::version::Library;
use crate::loader::kernel::calibrate::Fixed;
use crate::loader::kernel::detail::{Choice, Plan, Slow, Sources};
use crate::loader::kernel::hooks::{END_CALLS, Group, HOOKS, OPEN_CALLS, SLOW_CALLS};
use crate::loader::kernel::misses::Misses;
use crate::loader::kernel::rings::Placing;
use crate::loader::kernel::sums::Sums;
use crate::loader::processes::maps;
use crate::loader::stacks::inflight::{self, Look};
use crate::rows::Coverage;
use crate::skel::{IotraceProgs, IotraceSkel};
use crate::vocabulary::Layer;
use anyhow::{Context as _, Result};
use libbpf_rs::Link;
use std::collections::{BTreeSet, HashMap, HashSet};
use std::time::{Duration, Instant};

/// How long after probes were set calls return whose entry was before them: that is no loss.
const SETTLE: Duration = Duration::from_secs(1);

/// A loaded and attached trace.
pub struct Session<'obj> {
    skel: IotraceSkel<'obj>,
    /// Those of library probes among others; see [`Loaded`](crate::loader::kernel::programs::Loaded).
    second: Option<IotraceSkel<'obj>>,
    engine: Engine,
    rows: Vec<Row>,
    layers: Vec<Layer>,
    links: Vec<Link>,
    /// Programs that run when they are read, by name.
    iterators: HashMap<&'static str, Link>,
    hooks: Vec<Coverage>,
    seen_losses: HashMap<(u32, usize, usize), u64>,
    misses: Misses,
    /// How long it took so far to attach.
    attaching: Duration,
    /// When returns without an entry are losses again.
    settles: Option<Instant>,
    /// Processes that were looked into since then, as far as they asked.
    looked_into: BTreeSet<u32>,
    /// How much each process sends besides sums.
    sources: Option<Sources>,
    /// Processes of a held command that have begun with the probes that they are to have, by number.
    begun: HashSet<u32>,
    /// Calls may meet probes twice.
    exchanging: bool,
    /// Until the rings are in their table.
    placing: Option<Placing>,
    /// Calls are summed up: those of a window would count twice.
    summing: bool,
    /// When the calls of demoted functions are looked at next, and how long after the last time that is.
    window: Option<(Instant, Duration)>,
    /// The probes of MPI communication.
    pause: Pause,
    /// Why they were paused first.
    paused_for: Option<(i64, Busy)>,
    /// How often a thread may call them, once in this time.
    every: Duration,
    /// What hooks cost on this machine, if that could be measured.
    fixed: Result<Fixed>,
}

/// What hooks have cost the traced threads.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Hooked {
    /// All of them, in ns.
    pub total_ns: u64,
    /// The greatest part of its time that they have cost a thread since the last look, 0 to 1.
    pub part: f64,
}

/// The programs of the second object. Those that are not loaded are not asked for.
fn probes<'a, 'obj>(first: &'a IotraceSkel<'obj>, second: Option<&'a IotraceSkel<'obj>>) -> &'a IotraceProgs<'obj> {
    &second.unwrap_or(first).progs
}

impl Session<'_> {
    /// The command has a filter of system calls by us, besides those that we have ourselves.
    pub fn expect_filters(&mut self) {
        let own = std::fs::read("/proc/self/status").map(|text| maps::status(&text)).unwrap_or_default();
        self.engine.expect_filters(own.filters.unwrap_or(0) + 1);
    }

    /// How long it took so far to attach hooks and to look into files that were mapped.
    pub fn attaching(&self) -> Duration {
        self.attaching
    }

    /// Which hooks on the page cache and on requests are attached.
    pub fn measured(&self) -> Measured {
        let is = |group| {
            let hook = HOOKS.iter().find(|(_, _, g)| *g == group).map(|(_, hook, _)| *hook);
            self.hooks.iter().any(|c| Some(c.symbol.as_str()) == hook && c.status == "attached")
        };
        Measured {
            pages: is(Group::Pages),
            throttling: is(Group::Throttling),
            locks: is(Group::Locks),
            requests: is(Group::Block),
            system_calls: self.layers.contains(&Layer::Syscall),
        }
    }

    /// The tables of aggregate mode.
    ///
    /// # Errors
    /// When the kernel gives no memory for them.
    pub fn sums(&self, detail: Option<&Plan>) -> Result<Sums> {
        let slow = detail.map(|plan| Slow::create(&self.skel.maps, plan, &self.rows)).transpose()?;
        Sums::create(&self.skel.maps, slow)
    }

    /// Chooses the calls that are sent although they are summed up.
    ///
    /// # Errors
    /// When the kernel does not show its tables.
    pub fn choice(&self) -> Result<Choice> {
        Choice::create(&self.skel.maps)
    }

    /// Of which processes how many calls were only summed up that were wanted one by one, since the last time.
    pub fn refused(&mut self) -> Vec<(u32, u64)> {
        let Some(mut sources) = self.sources.take() else { return Vec::new() };
        let refused = sources.tick(|| self.numbers().collect());
        self.sources = Some(sources);
        refused
    }

    /// Takes the probes of processes away that have ended.
    pub fn tidy(&mut self) {
        let alive: HashSet<u32> = self.numbers().collect();
        self.begun.retain(|process| alive.contains(process));
        self.engine.retain(|process| alive.contains(&process));
        if self.exchanging && self.engine.exchanged() {
            self.set_exchanging(false);
        }
        self.share();
    }

    fn set_exchanging(&mut self, on: bool) {
        self.exchanging = on;
        if let Some(data) = self.skel.maps.bss_data.as_deref_mut() {
            data.iot_exchanging = u32::from(on);
        }
    }

    /// Sets those probes in all processes that are too many for each.
    fn share(&mut self) {
        if self.engine.has_too_many() {
            self.set_exchanging(true);
            self.engine.share(probes(&self.skel, self.second.as_ref()));
        }
    }

    /// Sets for the kernel side whether library probes stay as they are now.
    fn set_settled(&mut self, settled: bool) {
        if let Some(data) = self.skel.maps.data_data.as_deref_mut() {
            data.iot_settled = u32::from(settled);
        }
    }

    /// Ends the trace in the kernel: no hook fires after this. Requests of devices that are not over.
    pub fn detach(&mut self) -> Vec<Event> {
        let before: HashSet<u64> = inflight::requests(&self.skel.maps).iter().map(|r| r.req).collect();
        let goes_on = self.has_targets();
        // All at once, or what runs on would be seen by some of the hooks only.
        self.forget_targets();
        self.engine.remember();
        self.engine.take_away();
        // The last ones first: other copies of a program would take what the first one does not see any more.
        while self.links.pop().is_some() {}
        if goes_on {
            self.engine.wait_until_gone();
        }
        // Taken out: open calls are sent once.
        if let Some(end) = self.iterators.remove(END_CALLS) {
            inflight::run(&end);
        }
        self.misses.last();
        // The end of requests issued while the hooks are detached is not seen.
        let after = inflight::requests(&self.skel.maps);
        after.iter().filter(|r| before.contains(&r.req)).map(inflight::open).collect()
    }

    /// What has entered and not returned; the reason where the kernel does not allow to look.
    pub fn look(&self) -> Result<Look> {
        let open = self.iterators.get(OPEN_CALLS).context("the kernel refused the BPF iterator over tasks, which lists what is in flight; `iotrace-bpf doctor` shows why")?;
        inflight::look(open, &self.skel.maps)
    }

    /// What reads the calls that have not returned and are at least this old: for one reader, once.
    ///
    /// # Errors
    /// Where the kernel does not allow to look.
    pub fn slow_calls(&mut self, age: Duration) -> Result<Link> {
        let data = self.skel.maps.bss_data.as_deref_mut().context("the programs have no data")?;
        data.iot_slow_age = age.as_nanos() as u64;
        self.iterators.remove(SLOW_CALLS).context("--stacks: the kernel refused the BPF iterator over tasks; `iotrace-bpf doctor` shows why, or leave --stacks out")
    }

    /// Verdicts since the last call.
    pub fn verdicts(&mut self) -> Vec<Coverage> {
        let mut rows = std::mem::take(&mut self.hooks);
        rows.extend(self.engine.verdicts());
        rows
    }

    /// Libraries that were found since the last call.
    pub fn libraries(&mut self) -> Vec<Library> {
        self.engine.libraries()
    }

    /// Verdicts on layers that no probe was tried for, at the end of a trace.
    pub fn uncovered(&self) -> Vec<Coverage> {
        let unasked = [Layer::Vfs, Layer::Fs].into_iter().filter(|l| !self.layers.contains(l)).map(|layer| Coverage {
            layer,
            target: String::new(),
            symbol: String::new(),
            tier: None,
            status: "skipped",
            reason: Some("layer not selected".to_owned()),
            offset: None,
            insn: None,
        });
        self.engine.uncovered().into_iter().chain(unasked).chain(self.paused()).collect()
    }

    /// What hooks cost here, their programs not included.
    pub const fn fixed(&self) -> &Result<Fixed> {
        &self.fixed
    }

    /// What hooks have cost the traced threads so far, and the greatest part of one since the last call.
    pub fn hooked(&mut self) -> Hooked {
        let Some(data) = self.skel.maps.bss_data.as_deref_mut() else { return Hooked::default() };
        let hooked = &mut data.iot_hooked;
        hooked.look = hooked.look.wrapping_add(1);
        let part = std::mem::take(&mut hooked.part);
        Hooked { total_ns: hooked.total, part: f64::from(part) / f64::from(1 << 20) }
    }
}

impl Drop for Session<'_> {
    /// Also when something failed or panicked on the way: no process keeps a probe.
    fn drop(&mut self) {
        self.detach();
        self.engine.wait_until_gone();
    }
}
