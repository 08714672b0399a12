//! Aggregate mode: a thread that takes the kernel side's sums once a second, each exactly once.
//!
//! There are two tables of sums. The empty one is put in the place of the one in use; the kernel does so and waits until no
//! program uses the other any more (`maybe_wait_bpf_programs`, kernel/bpf/syscall.c), which is then read and emptied.

use crate::event::{About, BUCKETS, Counts, Event, Figures, Sum, wire};
use crate::loader::detail::Slow;
use crate::loader::rings::now;
use crate::skel::IotraceMaps;
use anyhow::{Context as _, Result, anyhow, bail};
use libbpf_rs::libbpf_sys::bpf_map_create_opts;
use libbpf_rs::{MapCore as _, MapFlags, MapHandle, MapType};
use std::collections::{BTreeMap, BTreeSet};
use std::os::fd::{AsFd as _, AsRawFd as _};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread::JoinHandle;
use std::time::Duration;

/// Entries of each table.
const ENTRIES: u32 = 32_768;
/// Entries that are read at once.
const BATCH: u32 = 1024;
/// Between two times that they are taken; less when they fill.
const PERIOD: Duration = Duration::from_secs(1);
const SHORTEST: Duration = Duration::from_millis(125);
/// Operations of devices, behind the rows of the catalog (`IOT_BLOCK_OPS`).
pub const BLOCK_OPS: u32 = 16;

type Histograms = [[u32; BUCKETS]; 2];
/// Buckets that are not empty, and their counts.
type Buckets = Vec<(usize, u32)>;

/// The kernel side's tables of sums.
pub struct Sums {
    current: MapHandle,
    tables: [MapHandle; 2],
    used: usize,
    rests: MapHandle,
    histograms: MapHandle,
    /// What they held when they were read last: they only grow.
    seen_rests: BTreeMap<u32, Figures>,
    seen_histograms: BTreeMap<u32, Histograms>,
    from: u64,
    /// Who learns from them when a call is slow.
    slow: Option<Slow>,
}

impl Sums {
    /// Makes the tables and hangs the first one into its place.
    ///
    /// # Errors
    /// When the kernel gives no memory for them.
    pub fn create(maps: &IotraceMaps<'_>, slow: Option<Slow>) -> Result<Self> {
        let table = || {
            let opts = bpf_map_create_opts { sz: size_of::<bpf_map_create_opts>() as _, ..Default::default() };
            let (key, value) = wire::sum_sizes();
            MapHandle::create(MapType::Hash, Some("iot_sum_map"), key, value, ENTRIES, &opts)
                .with_context(|| format!("a table of {ENTRIES} sums"))
        };
        let handle = |map: &libbpf_rs::Map<'_>| MapHandle::try_from(map).context("a table of sums");
        let mut sums = Self {
            current: handle(&maps.iot_sums)?,
            tables: [table()?, table()?],
            used: 1,
            rests: handle(&maps.iot_rests)?,
            histograms: handle(&maps.iot_hists)?,
            seen_rests: BTreeMap::new(),
            seen_histograms: BTreeMap::new(),
            from: now(),
            slow,
        };
        sums.swap()?;
        Ok(sums)
    }

    /// Puts the other table in place; nobody uses the one before any more when it returns.
    fn swap(&mut self) -> Result<()> {
        let next = 1 - self.used;
        let fd = self.tables[next].as_fd().as_raw_fd();
        self.current
            .update(&0_u32.to_ne_bytes(), &fd.to_ne_bytes(), MapFlags::ANY)
            .context("putting a table of sums into its place")?;
        self.used = next;
        Ok(())
    }

    /// What was summed up since the last time, and how full the table was: 0 to 1.
    fn take(&mut self) -> Result<(Vec<Event>, f64)> {
        let full = self.used;
        self.swap()?;
        let time = now();
        let from = std::mem::replace(&mut self.from, time);
        let mut events = Vec::new();
        let mut rows = BTreeSet::new();
        let table = &self.tables[full];
        // The library takes a batch that is not full for the last one, and an error for the end: until nothing is left.
        while table.keys().next().is_some() {
            let before = events.len();
            for (key, value) in
                table.lookup_and_delete_batch(BATCH, MapFlags::ANY, MapFlags::ANY).context("reading sums")?
            {
                let (Some((about, process, row)), Some(figures)) = (wire::sum_key(&key), wire::figures(&value)) else {
                    bail!("a sum of the kernel cannot be read");
                };
                rows.insert(row);
                events.push(Event::Sum(Box::new(Sum { time, from, process, row, about, rest: false, figures })));
            }
            if events.len() == before {
                bail!("the kernel does not hand over its sums");
            }
        }
        let fill = events.len() as f64 / f64::from(ENTRIES);
        for (row, figures) in self.rests()? {
            rows.insert(row);
            let sum = Sum { time, from, process: None, row, about: About::Nothing, rest: true, figures };
            events.push(Event::Sum(Box::new(sum)));
        }
        for row in rows {
            let Some([durations, sizes]) = self.counted(row)? else { continue };
            if let Some(slow) = &mut self.slow {
                slow.took(row, &durations);
            }
            events.push(Event::Counts(Box::new(Counts { time, from, row, durations, sizes })));
        }
        for row in self.slow.as_ref().map(Slow::told).unwrap_or_default() {
            if let (Some([durations, _]), Some(slow)) = (self.counted(row)?, &mut self.slow) {
                slow.took(row, &durations);
            }
        }
        self.slow.as_mut().map_or(Ok(()), Slow::learn)?;
        Ok((events, fill))
    }

    /// Durations and sizes of the calls of a row since the last time, by bucket.
    fn counted(&mut self, row: u32) -> Result<Option<[Buckets; 2]>> {
        let value = self.histograms.lookup(&row.to_ne_bytes(), MapFlags::ANY).context("reading histograms")?;
        let Some(all) = value.as_deref().and_then(wire::counts) else { return Ok(None) };
        let seen = self.seen_histograms.insert(row, all).unwrap_or([[0; BUCKETS]; 2]);
        Ok(Some([0, 1].map(|what| grown(&seen[what], &all[what]))))
    }

    /// What found no room since the last time, by row.
    fn rests(&mut self) -> Result<Vec<(u32, Figures)>> {
        let mut new = Vec::new();
        for (key, value) in
            self.rests.lookup_batch(self.rests.max_entries(), MapFlags::ANY, MapFlags::ANY).context("reading sums")?
        {
            let (Some(row), Some(all)) = (key.first_chunk().map(|k| u32::from_ne_bytes(*k)), wire::figures(&value))
            else {
                continue;
            };
            if all.calls + all.nested + all.errors == 0 {
                continue;
            }
            let seen = self.seen_rests.entry(row).or_default();
            if *seen != all {
                new.push((row, all.since(seen)));
                *seen = all;
            }
        }
        Ok(new)
    }
}

/// By how much the counts of buckets have grown. They may have wrapped around.
fn grown(before: &[u32], after: &[u32]) -> Buckets {
    let new = before.iter().zip(after).map(|(b, a)| a.wrapping_sub(*b));
    new.enumerate().filter(|(_, n)| *n > 0).collect()
}

/// The thread that takes them.
pub struct Taker {
    thread: JoinHandle<Result<()>>,
    stop: Sender<()>,
}

impl Taker {
    /// Takes the sums until it is stopped, and hands them on.
    ///
    /// # Errors
    /// When there is no thread to be had.
    pub fn start(sums: Sums, mut to: impl FnMut(Vec<Event>) + Send + 'static) -> Result<Self> {
        let (stop, stopped) = channel();
        let thread = std::thread::Builder::new()
            .name("sums".into())
            .spawn(move || run(sums, &stopped, &mut to))
            .context("thread that takes sums")?;
        Ok(Self { thread, stop })
    }

    /// Takes them for the last time: no hook may be attached any more.
    ///
    /// # Errors
    /// When they could not be read, now or before.
    pub fn finish(self) -> Result<()> {
        drop(self.stop);
        self.thread.join().map_err(|_| anyhow!("the thread that takes sums panicked"))?
    }
}

fn run(mut sums: Sums, stopped: &Receiver<()>, to: &mut impl FnMut(Vec<Event>)) -> Result<()> {
    let mut period = PERIOD;
    loop {
        let last = stopped.recv_timeout(period) == Err(RecvTimeoutError::Disconnected);
        let (events, fill) = sums.take()?;
        if !events.is_empty() {
            to(events);
        }
        if last {
            return Ok(());
        }
        // What does not fit is told without saying whose it is.
        period = if fill > 0.5 {
            (period / 2).max(SHORTEST)
        } else if fill < 0.1 {
            PERIOD.min(period * 2)
        } else {
            period
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_grew_is_told_also_around_the_end_of_the_counter() {
        assert_eq!(grown(&[1, u32::MAX, 7], &[3, 1, 7]), [(0, 2), (1, 2)]);
    }
}
