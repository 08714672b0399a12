//! Demotes functions: removes probes that cost more than the calls that they measure, while the trace runs.
//!
//! What such functions do with a stream's buffer needs no probe: what the library calls when the buffer is empty or full gets
//! one instead; the position of the stream then gives the bytes that they moved. How many calls these were is estimated from
//! short windows in which their probes are back.

use crate::event::wire::Busy;
use crate::loader::attach::links::ALL;
use crate::loader::attach::{Engine, Links, Probes, Set};
use crate::loader::code::plan::PlannedProbe;
use crate::loader::kernel::LibTier;
use crate::rows::Coverage;
use crate::skel::IotraceProgs;
use libbpf_rs::Link;

impl Probes {
    /// Has the probes of a row no longer among those that are to be set, but those of slow paths. The verdicts; nothing where
    /// the file has no such row, or no such paths.
    pub(super) fn demote(&mut self, row: u16, reason: &str) -> Option<Vec<Coverage>> {
        let of = |probe: &PlannedProbe| probe.spec == row;
        let first = self.demoted.is_empty();
        if self.tier == LibTier::Single || (first && self.slow_paths.is_empty()) {
            return None;
        }
        let found: Vec<_> = self.parts.iter_mut().flat_map(|part| part.extract_if(.., |probe| of(probe))).collect();
        if found.is_empty() {
            return None;
        }
        let attached = |probe: &PlannedProbe| probe.verdict(&self.name, Ok(self.tier.name()));
        let demoted = |probe| Coverage { status: "demoted", reason: Some(reason.to_owned()), ..attached(probe) };
        let verdicts = found.iter().map(demoted).chain(self.slow_paths.iter().map(attached)).collect();
        self.demoted.extend(found);
        self.parts.push(std::mem::take(&mut self.slow_paths));
        self.parts.retain(|part| !part.is_empty());
        Some(verdicts)
    }

    /// Attaches the probes wanted now; returns those to detach.
    fn renew(&mut self, progs: &IotraceProgs<'_>) -> Vec<Link> {
        let mut gone = Vec::new();
        let mut set = std::mem::replace(&mut self.set, Set::All(Links::default()));
        let mut exchange = |pid, links: &mut Links| {
            // A process that has ended has none; they go with the others that it had.
            if let Some(new) = self.links(progs, pid) {
                gone.extend(std::mem::replace(links, new).all());
            }
        };
        match &mut set {
            Set::Each(all) => all.values_mut().for_each(|own| exchange(own.pid as i32, &mut own.links)),
            Set::All(links) => exchange(ALL, links),
        }
        self.set = set;
        gone
    }

    /// Sets these besides.
    fn beside(&self, probes: &[PlannedProbe], progs: &IotraceProgs<'_>) -> Vec<Link> {
        let set =
            |pid| crate::loader::attach::links::many(progs, &self.path(), probes, self.tier, pid).unwrap_or_default();
        match &self.set {
            Set::Each(all) => all.values().flat_map(|own| set(own.pid as i32)).collect(),
            Set::All(_) => set(ALL),
        }
    }
}

impl Engine {
    /// Sets all probes but those of a function anew, in every file that has it. Those from before, which [`Self::leave`] takes
    /// away; until [`Self::exchanged`] returns true calls may hit two. Nothing: it keeps its probes, for nothing would show what
    /// its calls move.
    pub fn demote(&mut self, row: u16, busy: &Busy, at_ns: i64, progs: &IotraceProgs<'_>) -> Option<Vec<Link>> {
        let mut gone = Vec::new();
        let mut any = false;
        for probes in self.classified.values_mut().filter_map(|classified| classified.probes.as_mut()) {
            let Some(verdicts) = probes.demote(row, &reason(busy, at_ns)) else { continue };
            any = true;
            gone.append(&mut probes.renew(progs));
            self.coverage.extend(verdicts);
        }
        any.then(|| {
            self.demoted.insert(row);
            gone
        })
    }

    pub fn is_demoted(&self, row: u16) -> bool {
        self.demoted.contains(&row)
    }

    /// Sets the probes of demoted functions for a moment; [`Self::leave`] takes them away.
    pub fn open_window(&self, progs: &IotraceProgs<'_>) -> Vec<Link> {
        let files = self.classified.values().filter_map(|classified| classified.probes.as_ref());
        let demoted = files.filter(|probes| !probes.demoted.is_empty());
        demoted.flat_map(|probes| probes.beside(&probes.demoted, progs)).collect()
    }
}

/// The reason where a file is met later.
pub(super) const BEFORE: &str = "the function was demoted before the file was mapped";

fn reason(busy: &Busy, at_ns: i64) -> String {
    let each = u64::from(busy.took) / u64::from(busy.calls.max(1));
    format!(
        "from {:.3} s on: a thread made {} calls of {each} ns in {:.2} ms, so that their probe cost more than they did; their \
         bytes follow from where the stream stands, their number is estimated (--max-overhead none keeps every call)",
        at_ns as f64 / 1e9,
        busy.calls,
        busy.elapsed as f64 / 1e6
    )
}
