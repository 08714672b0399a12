//! The stacks of slow calls: threads whose calls have been open for long are looked at while they wait, and a copy of what
//! names need is taken, for a thread may go on and a process may end before they are found.

use crate::catalog::Row;
use crate::event::wire;
use crate::inflight::Frame;
use crate::loader::processes::maps::{self, Mapping};
use crate::loader::stacks::symbols::Symbols;
use crate::loader::stacks::unwind::{Registers, Unwinder, waits_at};
use crate::rows::span_id;
use crate::skel::types::iot_stopped;
use crate::vocabulary::Layer;
use anyhow::{Context as _, Result};
use libbpf_rs::{Iter, Link};
use std::collections::{HashMap, HashSet};
use std::fs::{self, File};
use std::io::Read as _;
use std::os::unix::fs::FileExt as _;
use std::sync::Arc;
use std::time::Duration;

/// What of a stack is copied, in bytes.
const COPY: usize = 64 << 10;

/// From when on a call is slow: calls of a layer, or of all.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limit {
    pub layer: Option<Layer>,
    pub time: Duration,
}

/// When calls of this layer are slow, where a limit is for it: of several the shortest.
pub fn of(limits: &[Limit], layer: Layer) -> Option<Duration> {
    limits.iter().filter(|l| l.layer.is_none_or(|of| of == layer)).map(|l| l.time).min()
}

/// A thread in a slow call.
pub struct Sample {
    /// `span_id` of its calls that are slow, or may become so.
    pub calls: Vec<i64>,
    pid: u32,
    kernel: Vec<u64>,
    at: Registers,
    /// What return probes wrote over: by address.
    back: HashMap<u64, u64>,
    stack: Vec<u8>,
    mappings: Arc<[Mapping]>,
}

/// What looks for slow calls.
pub struct Looker {
    link: Link,
    rows: Vec<Row>,
    limits: Vec<Limit>,
    /// Calls that are open and have a stack.
    taken: HashSet<i64>,
}

impl Looker {
    pub fn new(link: Link, rows: Vec<Row>, limits: Vec<Limit>) -> Self {
        Self { link, rows, limits, taken: HashSet::new() }
    }

    /// Threads that wait in calls that have been open for half of their limit, and whose stack has not been taken; at most `room`.
    /// A second look finds what is left.
    ///
    /// # Errors
    /// When the kernel does not answer.
    pub fn look(&mut self, room: usize) -> Result<Vec<Sample>> {
        let mut bytes = Vec::new();
        Iter::new(&self.link)
            .and_then(|mut iter| Ok(iter.read_to_end(&mut bytes)?))
            .context("asking the kernel for slow calls")?;
        let mut open: HashSet<i64> = HashSet::new();
        let mut samples = Vec::new();
        let mut mappings: HashMap<u32, Arc<[Mapping]>> = HashMap::new();
        for thread in bytes.chunks_exact(size_of::<iot_stopped>()).filter_map(wire::value::<iot_stopped>) {
            let calls: Vec<i64> = self.slow(&thread).collect();
            open.extend(&calls);
            let new: Vec<i64> = calls.into_iter().filter(|id| !self.taken.contains(id)).collect();
            if new.is_empty() || thread.waits == 0 || samples.len() == room {
                continue;
            }
            if let Some(sample) = sample(&thread, new, &mut mappings) {
                self.taken.extend(&sample.calls);
                samples.push(sample);
            }
        }
        self.taken.retain(|id| open.contains(id));
        Ok(samples)
    }

    fn slow(&self, thread: &iot_stopped) -> impl Iterator<Item = i64> {
        let open = &thread.open[..(thread.calls as usize).min(thread.open.len())];
        let is_slow = |layer, age| of(&self.limits, layer).is_some_and(|limit| age >= limit.as_nanos() as u64 / 2);
        open.iter()
            .filter(move |o| {
                let row = self.rows.get(usize::from(o.spec));
                row.is_some_and(|row| is_slow(row.layer, thread.time.saturating_sub(o.start)))
            })
            .map(|o| span_id(thread.thread, o.seq))
    }
}

fn sample(thread: &iot_stopped, calls: Vec<i64>, mappings: &mut HashMap<u32, Arc<[Mapping]>>) -> Option<Sample> {
    let pid = thread.tgid;
    let at = Registers { ip: thread.ip, sp: thread.sp, bp: thread.bp };
    let mut stack = vec![0; COPY];
    let copied = File::open(format!("/proc/{pid}/mem")).ok()?.read_at(&mut stack, at.sp).ok()?;
    stack.truncate(copied);
    let mappings = mappings.entry(pid).or_insert_with(|| {
        fs::read(format!("/proc/{pid}/maps")).map(|text| maps::mappings(&text)).unwrap_or_default().into()
    });
    if !waits_at(pid, thread.tid, at.sp) {
        return None;
    }
    let back = &thread.back[..(thread.returns as usize).min(thread.back.len())];
    Some(Sample {
        calls,
        pid,
        kernel: thread.stack[..(thread.kernel as usize).min(thread.stack.len())].to_vec(),
        at,
        back: back.iter().map(|r| (r.stack, r.address)).collect(),
        stack,
        mappings: Arc::clone(mappings),
    })
}

/// Names the frames of samples, and remembers what it has read for that.
#[derive(Default)]
pub struct Namer {
    unwinder: Unwinder,
    symbols: Symbols,
}

impl Namer {
    /// The frames of a stack, the innermost first: those of the kernel, then those of the program.
    pub fn name(&mut self, sample: &Sample) -> Vec<Frame> {
        let mut frames = self.symbols.kernel(&sample.kernel);
        for frame in &mut frames {
            frame.module = Some("kernel".to_owned());
        }
        let modules = self.unwinder.modules(sample.pid, &sample.mappings);
        let word = |address: u64| {
            let from = usize::try_from(address.checked_sub(sample.at.sp)?).ok()?;
            Some(u64::from_ne_bytes(*sample.stack.get(from..)?.first_chunk()?))
        };
        let stack = self.unwinder.walk(&modules, sample.at, &sample.back, word);
        frames.extend(self.symbols.program(sample.pid, &sample.mappings, &stack));
        frames
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_shortest_limit_of_a_layer_counts() {
        let limit = |layer, ms| Limit { layer, time: Duration::from_millis(ms) };
        let limits = [limit(None, 20), limit(Some(Layer::Hdf5), 5), limit(Some(Layer::Syscall), 90)];
        let ms = |layer| of(&limits, layer).map(|time| time.as_millis());
        assert_eq!([ms(Layer::Hdf5), ms(Layer::Syscall), ms(Layer::Mpiio)], [Some(5), Some(20), Some(20)]);
        assert_eq!(of(&limits[1..], Layer::Mpiio), None);
    }
}
