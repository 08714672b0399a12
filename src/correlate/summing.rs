//! What calls come to that are not recorded one by one: sums of the kernel side, and estimates.

use super::{Correlator, relative};
use crate::catalog;
use crate::correlate::aggregate::demoted::Estimate;
use crate::correlate::aggregate::paused::Unrecorded;
use crate::correlate::aggregate::rollup::Rollups;
use crate::correlate::aggregate::sums::{Opened, Subject, Sums};
use crate::correlate::devices::class;
use crate::correlate::resources::processes::{Owned, Owner, ThreadState};
use crate::correlate::tracker::ResourceTracker;
use crate::event::{About, Sum};
use crate::rows::{Row, span_id};
use crate::vocabulary::{Kind, Layer};

impl Correlator {
    pub(super) fn settle_estimates(&mut self, last: bool) {
        for (pending, estimates) in self.demoted.settle(last) {
            let sums = self.sums.as_mut().unwrap_or(&mut self.estimates);
            let of = (pending.until, &pending.subject);
            add_estimates(&mut self.rollups, sums, &self.specs, self.t0, of, &estimates);
        }
    }

    /// Calls that were not recorded one by one. With sums nothing is in windows that is not in these.
    pub(super) fn unrecorded(&mut self, unrecorded: Vec<Unrecorded>) {
        for Unrecorded { process, until, estimate } in unrecorded {
            let subject = Subject { process, ..Subject::default() };
            let of = (until, &subject);
            add_estimates(&mut self.rollups, &mut self.estimates, &self.specs, self.t0, of, &[estimate]);
        }
    }

    pub(super) fn write_sums(&mut self, now: u64, out: &mut Vec<Row>) {
        self.settle_estimates(true);
        if let Some(sums) = &mut self.sums {
            sums.write(relative(now, self.t0), true, self.t0, out);
        }
        self.estimates.write(relative(now, self.t0), true, self.t0, out);
    }

    /// What is known of a process that ends is remembered for the sums that still come.
    pub(super) fn sums_of_gone(&mut self, t_ns: i64, process: u32) {
        let Self { sums: Some(sums), resources, processes, .. } = self else { return };
        let was = (processes.owned(process, None), processes.ranks(process));
        sums.gone(t_ns, process, was, |o| current(resources, o));
    }

    /// Layer, operation and kind of a row that is summed up.
    pub(super) fn summed(&self, row: u32) -> Option<(Layer, &'static str, Kind)> {
        let at = row as usize;
        if let Some(row) = self.specs.get(at) {
            return Some((row.layer, row.op, row.kind));
        }
        let op = class::operation(u32::try_from(at - self.specs.len()).ok()?, 1);
        let kind = match op {
            "read" => Kind::Read,
            "write" => Kind::Write,
            "flush" => Kind::Sync,
            _ => Kind::Other,
        };
        Some((Layer::Block, op, kind))
    }

    /// What the kernel side has summed up.
    pub(super) fn sum(&mut self, sum: &Sum) {
        let Some(op) = self.summed(sum.row) else { return };
        let Some(sums) = &mut self.sums else { return };
        if let Some(row) = self.specs.get(sum.row as usize).filter(|row| row.brief) {
            self.demoted.summed(sum.row as u16, row.kind == Kind::Write, &sum.figures);
        }
        let process = sum.process.map(|(process, program)| {
            sums.was(process, program).unwrap_or_else(|| self.processes.owned(process, program))
        });
        let mut subject = Subject { process, rest: sum.rest, ..Subject::default() };
        match sum.about {
            About::Nothing => {}
            About::File(key) => {
                let mapped = self.specs.get(sum.row as usize).is_some_and(|row| row.family == catalog::Family::Fault);
                let below = if mapped { self.resources.files.of_data(key) } else { None };
                subject.file = Some(below.unwrap_or_else(|| self.resources.files.intern(key)));
            }
            About::Handle { raw, opened } => {
                let owner = sum.process.map(|(process, _)| Owner::Process(process));
                let known = opened.and_then(|(thread, seq)| sums.handle(sum.process?.0, span_id(thread, seq)));
                let found = known.map(|o| current(&self.resources, &o)).or_else(|| {
                    let handle = self.resources.handles.find(owner?, (op.0, 0, raw))?;
                    Some(current(&self.resources, &Opened { handle, file: None, object: None }))
                });
                (subject.file, subject.object) = found.map_or((None, None), |o| (o.file, o.object));
            }
            About::Device(dev) => {
                subject.device =
                    Some(self.blocks.name(dev).unwrap_or_else(|| format!("{}:{}", dev >> 20, dev & 0xf_ffff)));
            }
        }
        subject.file.inspect(|id| self.resources.files.used(*id));
        subject.object.inspect(|id| self.resources.objects.used(*id));
        // Requests have a table of their own, with or without sums.
        if op.0 != Layer::Block {
            self.rollups.sum(relative(sum.from, self.t0), op, sum.row, subject.process, &sum.figures);
        }
        sums.add(op, subject, &sum.figures);
    }
}

/// A handle with what is known of it now.
pub(super) fn current(resources: &ResourceTracker, opened: &Opened) -> Opened {
    resources.handles.row(opened.handle).map_or(*opened, |row| Opened {
        handle: opened.handle,
        file: row.file_id.or(opened.file),
        object: row.object_id.or(opened.object),
    })
}

/// The process of a thread, where it is known.
pub(super) fn owned(thread: &ThreadState) -> Option<Owned> {
    let process_ix = thread.owner.process_ix();
    (process_ix >= 0).then_some(Owned { process_ix, pid: thread.pid, rank: thread.rank })
}

/// Adds the sums of calls before this time that are not recorded.
pub(super) fn add_estimates(
    rollups: &mut Rollups,
    sums: &mut Sums,
    specs: &[catalog::Row],
    t0: u64,
    (until, subject): (u64, &Subject),
    estimates: &[Estimate],
) {
    for estimate in estimates {
        let Some(row) = specs.get(usize::from(estimate.row)) else { continue };
        let (op, figures) = ((row.layer, row.op, row.kind), estimate.figures(until));
        rollups.sum(relative(until, t0), op, u32::from(estimate.row), subject.process, &figures);
        sums.add(op, subject.clone(), &figures);
    }
}
