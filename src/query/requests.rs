//! Requests that calls led to, and what of the energy of devices they took.

use std::collections::BTreeMap;

use anyhow::Result;
use serde::Serialize;

use crate::HashMap;
use crate::analysis::calls::{Figures, is_topmost};
use crate::analysis::nesting::Nesting;
use crate::analysis::trace::source::Source;
use crate::query::group::{Groups, Linked};
use crate::query::options::{By, Query};
use crate::query::power::{Disks, Table, Watts};
use crate::query::select::{AncestorTracker, Selection};
use crate::rows::{Block, DISCARD};
use crate::vocabulary::{LAYERS, flag};

/// Links of requests to calls that are kept.
const LINKS_MAX: usize = 1 << 22;
/// Times that are kept in which devices were busy.
const INTERVALS_MAX: usize = 1 << 22;

/// A link of a call to a request.
#[derive(Debug, Clone, Copy)]
struct Link {
    span_id: i64,
    req_id: i64,
    bytes: i64,
    writeback: bool,
}

/// What of a request a group has: bytes that its calls wrote, and bytes in requests that they submitted.
#[derive(Debug, Clone, Copy, Default)]
struct Part {
    written: i64,
    submitted: i64,
}

impl Part {
    /// A request is linked to the call that submitted it and to those that wrote its data: it counts once.
    fn bytes(self) -> i64 {
        self.written.max(self.submitted)
    }
}

/// The groups around a call, one of each layer: that of the outermost call.
type Around = [Option<u32>; LAYERS.len()];

/// What a device did and took.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Device {
    #[serde(rename = "device")]
    pub name: String,
    pub class: &'static str,
    pub watts: Watts,
    /// In which it had at least one request.
    pub busy_ns: i64,
    pub run_ns: i64,
    pub active_joules: f64,
    pub idle_joules: f64,
}

/// When a device had requests.
#[derive(Debug, Default)]
struct Busy {
    /// Apart from each other: start and end.
    intervals: BTreeMap<i64, i64>,
    /// The durations of all requests, which may overlap.
    sum_ns: i64,
}

impl Busy {
    fn add(&mut self, mut from: i64, mut to: i64) {
        self.sum_ns = self.sum_ns.saturating_add(to.saturating_sub(from));
        while let Some((start, end)) = self.intervals.range(..=to).next_back().map(|(s, e)| (*s, *e)) {
            if end < from {
                break;
            }
            self.intervals.remove(&start);
            (from, to) = (from.min(start), to.max(end));
        }
        self.intervals.insert(from, to);
    }

    fn ns(&self) -> i64 {
        self.intervals.iter().fold(0, |sum, (from, to)| sum.saturating_add(to.saturating_sub(*from)))
    }
}

/// Which requests which groups have. Memory grows with the number of links, up to a limit.
pub struct Requests {
    links: Vec<Link>,
    /// By request, then by group.
    parts: HashMap<i64, Vec<(u32, Part)>>,
    /// Some links were left out.
    pub overflow: bool,
}

impl Requests {
    /// The links of a trace, but for those of requests that move no data.
    pub fn read(source: &mut dyn Source) -> Result<Self> {
        let mut own = Self { links: Vec::new(), parts: HashMap::default(), overflow: false };
        source.links(&mut |link| {
            if link.how == DISCARD {
                return Ok(());
            }
            if own.links.len() >= LINKS_MAX {
                own.overflow = true;
                return Ok(());
            }
            let (span_id, req_id, bytes) = (link.span_id, link.req_id, link.bytes);
            own.links.push(Link { span_id, req_id, bytes, writeback: link.how == "writeback" });
            Ok(())
        })?;
        own.links.sort_by_key(|link| link.span_id);
        Ok(own)
    }

    /// Gives the requests of all calls to the groups of the outermost matching calls around them, layer by layer.
    pub fn calls(&mut self, source: &mut dyn Source, selection: &Selection, groups: &mut Groups) -> Result<()> {
        let mut tracker = AncestorTracker::default();
        let mut calls = Nesting::<Around>::default();
        source.spans(&mut |span| {
            let ancestors = tracker.of(span, selection);
            let mut around = calls.above(span).unwrap_or_default();
            if span.flags & flag::SUMMED == 0
                && let Some(group) = selection.span(span, ancestors)
            {
                groups.span(span, selection.owner(span), group);
                let number = groups.number(span.layer, group) as u32;
                around[span.layer as usize].get_or_insert(number);
            }
            calls.enter(span, around);
            self.linked(span.span_id, &around);
            Ok(())
        })
    }

    fn linked(&mut self, span_id: i64, around: &Around) {
        let from = self.links.partition_point(|link| link.span_id < span_id);
        for link in self.links[from..].iter().take_while(|link| link.span_id == span_id) {
            for group in around.iter().flatten() {
                let parts = self.parts.entry(link.req_id).or_default();
                let at = parts.iter().position(|(known, _)| known == group).unwrap_or_else(|| {
                    parts.push((*group, Part::default()));
                    parts.len() - 1
                });
                let part = &mut parts[at].1;
                let bytes = if link.writeback { &mut part.written } else { &mut part.submitted };
                *bytes = bytes.saturating_add(link.bytes);
            }
        }
    }

    /// Adds the requests to the groups: each once to each, with its part of the energy.
    pub fn requests(
        &self,
        source: &mut dyn Source,
        (query, selection): (&Query, &mut Selection),
        groups: &mut Groups,
        energy: Option<&Energy>,
    ) -> Result<()> {
        source.blocks(&mut |block| {
            let (Some(parts), Some((_, figures))) = (self.parts.get(&block.req_id), Figures::of_request(block)) else {
                return Ok(());
            };
            let counts = energy.is_some() || query.by == By::Device || query.device.is_some() || is_topmost(block);
            if !counts || !selection.is_on_device(block) {
                return Ok(());
            }
            let joules = match energy {
                None => 0.0,
                Some(energy) => match energy.of(block) {
                    Some(joules) => joules,
                    None => return Ok(()),
                },
            };
            for (group, part) in parts {
                let Some(layer) = groups.layer(*group as usize) else { continue };
                let same_layer = || parts.iter().filter(|(other, _)| groups.layer(*other as usize) == Some(layer));
                let all = same_layer().fold(0_i64, |sum, (_, part)| sum.saturating_add(part.bytes()));
                let share =
                    if all > 0 { part.bytes() as f64 / all as f64 } else { 1.0 / same_layer().count().max(1) as f64 };
                let linked = Linked {
                    requests: 1,
                    bytes: part.bytes(),
                    device_ns: figures.inclusive_ns,
                    joules: joules * share,
                };
                let number = if query.by == By::Device {
                    groups.number(layer, selection.device(block))
                } else {
                    *group as usize
                };
                if let Some(sum) = groups.at(number) {
                    sum.linked(&linked);
                }
            }
            Ok(())
        })?;
        Ok(())
    }
}

/// What devices took over a run: a device takes its active power while it has requests, which share it by how long they
/// are in the device, and its idle power else.
#[derive(Debug, Default)]
pub struct Energy {
    /// By name, with the joules of a ns that a request is in the device.
    devices: BTreeMap<String, (Device, f64)>,
    /// Times when devices were busy are missing.
    pub overflow: bool,
}

impl Energy {
    /// Of a run that lasted so long, if that is known.
    pub fn read(source: &mut dyn Source, table: &Table, mut run_ns: i64) -> Result<Self> {
        let mut disks = Disks::default();
        source.mounts(&mut |mount| {
            disks.mount(mount);
            Ok(())
        })?;
        let mut all = BTreeMap::<String, Busy>::new();
        let (mut kept, mut overflow) = (0_usize, false);
        source.blocks(&mut |block| {
            let Some(dur_ns) = block.dur_ns else { return Ok(()) };
            if kept >= INTERVALS_MAX {
                overflow = true;
                return Ok(());
            }
            let busy = all.entry(block.device_name()).or_default();
            let before = busy.intervals.len();
            let end = block.issue_ns.saturating_add(dur_ns.max(0));
            busy.add(block.issue_ns, end);
            kept = kept.saturating_add(busy.intervals.len()).saturating_sub(before);
            run_ns = run_ns.max(end);
            Ok(())
        })?;
        let device = |(name, busy): (String, Busy)| {
            let (class, watts) = table.of(&name, disks.rotational(&name));
            let busy_ns = busy.ns();
            let active_joules = watts.active * busy_ns as f64 / 1e9;
            let idle_joules = watts.idle * run_ns.saturating_sub(busy_ns).max(0) as f64 / 1e9;
            let device = Device { name: name.clone(), class, watts, busy_ns, run_ns, active_joules, idle_joules };
            (name, (device, if busy.sum_ns > 0 { active_joules / busy.sum_ns as f64 } else { 0.0 }))
        };
        Ok(Self { devices: all.into_iter().map(device).collect(), overflow })
    }

    /// Joules of one request; none where its device takes no power of its own.
    fn of(&self, block: &Block) -> Option<f64> {
        let (device, joules_per_ns) = self.devices.get(&block.device_name())?;
        let ns = block.dur_ns.unwrap_or(0).max(0);
        (device.watts.active > 0.0).then_some(joules_per_ns * ns as f64)
    }

    /// All devices that had requests.
    pub fn devices(self) -> Vec<Device> {
        self.devices.into_values().map(|(device, _)| device).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_device_is_busy_once_however_many_requests_it_has() {
        let mut busy = Busy::default();
        for (from, to) in [(10, 20), (30, 40), (15, 18), (20, 25), (50, 50)] {
            busy.add(from, to);
        }
        assert_eq!((busy.ns(), busy.sum_ns, busy.intervals.len()), (25, 28, 3));
        busy.add(0, 60);
        assert_eq!((busy.ns(), busy.intervals.len()), (60, 1));
    }

    proptest! {
        #[test]
        fn busy_time_is_that_of_each_ns(requests in prop::collection::vec((0..200_i64, 0..30_i64), 0..40)) {
            let mut busy = Busy::default();
            for (from, ns) in &requests {
                busy.add(*from, from + ns);
            }
            let covered = (0..300).filter(|at| requests.iter().any(|(from, ns)| (*from..from + ns).contains(at))).count();
            prop_assert_eq!(busy.ns(), covered as i64);
        }
    }
}
