//! Aggregate mode: a thread that takes the kernel side's sums once a second, each exactly once.
//!
//! There are two tables of sums of calls. The empty one replaces the one in use; the kernel does so and
//! waits until no program uses the other any more (`maybe_wait_bpf_programs`, kernel/bpf/syscall.c), which is then read
//! and emptied. Two tables of requests take turns with them: which one is in use changes just before, so that one wait
//! is for both.
//!
//! Calls have a sum for each thread that makes them, to which no other thread adds. Those of a process are put together
//! later (`correlate::aggregate::sums`); what follows from other figures of a sum is worked out here, where it costs the calls
//! nothing.

use crate::event::{About, Counts, Event, Figures, Histograms, Sum, wire};
use crate::loader::kernel::detail::Slow;
use crate::loader::kernel::rings::now;
use crate::skel::IotraceMaps;
use anyhow::{Context as _, Result, anyhow, bail};
use libbpf_rs::libbpf_sys::{BPF_F_NO_PREALLOC, bpf_map_create_opts};
use libbpf_rs::{MapCore as _, MapFlags, MapHandle, MapType};
use std::collections::BTreeMap;
use std::os::fd::{AsFd as _, AsRawFd as _};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread::JoinHandle;
use std::time::Duration;

/// Entries of each table of calls. There is memory for those that are used, 2 KiB each: 128 MiB when all of both tables
/// are. They are of threads and not of CPUs, of which a node may have hundreds: a table for each CPU would be as many
/// times that.
const ENTRIES: u32 = 32_768;
/// Of each table of requests: by process, device and operation. Both have their 5 MB from the start.
pub const REQUEST_ENTRIES: u32 = 2048;
/// Entries that are read at once.
const BATCH: u32 = 1024;
/// Between two times that they are taken; less when they fill.
const PERIOD: Duration = Duration::from_secs(1);
const SHORTEST: Duration = Duration::from_millis(125);
/// Batches that may wait to be used: some 20 MB each when all entries are.
const WAITING: usize = 8;

/// Buckets that are not empty, and their counts.
type Buckets = Vec<(usize, u32)>;

/// The kernel side's tables of sums.
pub struct Sums {
    current: MapHandle,
    calls: [MapHandle; 2],
    /// Where programs look which of the tables of requests is in use.
    turn: MapHandle,
    requests: [MapHandle; 2],
    /// Which of both is.
    used: usize,
    rests: MapHandle,
    histograms: MapHandle,
    /// What they held when they were read last: they only grow.
    seen_rests: BTreeMap<u32, (Figures, Histograms)>,
    seen_histograms: BTreeMap<u32, Histograms>,
    from: u64,
    /// Learns from them from when on a call is slow.
    slow: Option<Slow>,
}

impl Sums {
    /// Makes the tables and installs the first one.
    ///
    /// # Errors
    /// When the kernel gives no memory for them.
    pub fn create(maps: &IotraceMaps<'_>, slow: Option<Slow>) -> Result<Self> {
        let table = || {
            let opts = bpf_map_create_opts {
                sz: size_of::<bpf_map_create_opts>() as _,
                map_flags: BPF_F_NO_PREALLOC,
                ..Default::default()
            };
            let (key, value) = wire::sum_sizes();
            MapHandle::create(MapType::Hash, Some("iot_sum_map"), key, value, ENTRIES, &opts)
                .with_context(|| format!("cannot create a BPF map of {ENTRIES} sums (memory of the kernel)"))
        };
        let handle = |map: &libbpf_rs::Map<'_>| MapHandle::try_from(map).context("a table of sums");
        let mut sums = Self {
            current: handle(&maps.iot_sums)?,
            calls: [table()?, table()?],
            turn: handle(&maps.iot_request_turn)?,
            requests: [handle(&maps.iot_request_sums)?, handle(&maps.iot_request_sums_too)?],
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

    /// Puts the other tables in place; the ones before are not used any more when it returns.
    fn swap(&mut self) -> Result<()> {
        let next = 1 - self.used;
        let fd = self.calls[next].as_fd().as_raw_fd();
        self.turn
            .update(&0_u32.to_ne_bytes(), &(next as u32).to_ne_bytes(), MapFlags::ANY)
            .context("changing to the other table of requests")?;
        self.current
            .update(&0_u32.to_ne_bytes(), &fd.to_ne_bytes(), MapFlags::ANY)
            .context("installing a table of sums")?;
        self.used = next;
        Ok(())
    }

    /// What was summed up since the last time, and how full the table of calls was: 0 to 1.
    fn take(&mut self) -> Result<(Vec<Event>, f64)> {
        let full = self.used;
        self.swap()?;
        let time = now();
        let from = std::mem::replace(&mut self.from, time);
        let mut events = Vec::new();
        let mut rows: BTreeMap<u32, Histograms> = BTreeMap::new();
        let mut add = |sum: Sum, histograms: &Histograms| {
            add_up(rows.entry(sum.row).or_insert(wire::NO_COUNTS), histograms);
            events.push(Event::Sum(Box::new(sum)));
        };
        let mut read = |key: &[u8], value: &[u8]| {
            let (about, process, row, alone) = wire::sum_key(key)?;
            let (figures, histograms) = wire::figures(value, alone)?;
            add(Sum { time, from, process, row, about, rest: false, figures }, &histograms);
            Some(())
        };
        let fill = f64::from(empty(&self.calls[full], &mut read)?) / f64::from(ENTRIES);
        empty(&self.requests[full], &mut read)?;
        for (row, figures, histograms) in self.rests()? {
            add(Sum { time, from, process: None, row, about: About::Nothing, rest: true, figures }, &histograms);
        }
        for (row, mut histograms) in rows {
            add_up(&mut histograms, &self.counted(row)?);
            let [durations, sizes] = histograms.map(|counts| filled(&counts));
            if let Some(slow) = &mut self.slow {
                slow.took(row, &durations);
            }
            events.push(Event::Counts(Box::new(Counts { time, from, row, durations, sizes })));
        }
        for row in self.slow.as_ref().map(Slow::unsummed).unwrap_or_default() {
            let [durations, _] = self.counted(row)?;
            if let Some(slow) = &mut self.slow {
                slow.took(row, &filled(&durations));
            }
        }
        self.slow.as_mut().map_or(Ok(()), Slow::learn)?;
        Ok((events, fill))
    }

    /// Durations and sizes of the calls of a row since the last time that are in no sum.
    fn counted(&mut self, row: u32) -> Result<Histograms> {
        let value = self.histograms.lookup(&row.to_ne_bytes(), MapFlags::ANY).context("reading histograms")?;
        let Some(all) = value.as_deref().and_then(wire::counts) else { return Ok(wire::NO_COUNTS) };
        let seen = self.seen_histograms.insert(row, all).unwrap_or(wire::NO_COUNTS);
        Ok(grown(&seen, &all))
    }

    /// What found no room since the last time, by row.
    fn rests(&mut self) -> Result<Vec<(u32, Figures, Histograms)>> {
        let mut new = Vec::new();
        for (key, value) in
            self.rests.lookup_batch(self.rests.max_entries(), MapFlags::ANY, MapFlags::ANY).context("reading sums")?
        {
            let (Some(row), Some((all, counts))) =
                (key.first_chunk().map(|k| u32::from_ne_bytes(*k)), wire::figures(&value, false))
            else {
                continue;
            };
            if all.calls + all.nested + all.errors == 0 {
                continue;
            }
            let (seen, seen_counts) = self.seen_rests.entry(row).or_insert((Figures::default(), wire::NO_COUNTS));
            if *seen != all {
                new.push((row, all.since(seen), grown(seen_counts, &counts)));
                (*seen, *seen_counts) = (all, counts);
            }
        }
        Ok(new)
    }
}

/// Reads a table that is not in use, and empties it; returns how many sums it held.
fn empty(table: &MapHandle, mut to: impl FnMut(&[u8], &[u8]) -> Option<()>) -> Result<u32> {
    let mut all = 0;
    // The library takes a batch that is not full for the last one, and an error for the end: until nothing is left.
    while table.keys().next().is_some() {
        let before = all;
        for (key, value) in
            table.lookup_and_delete_batch(BATCH, MapFlags::ANY, MapFlags::ANY).context("reading sums")?
        {
            to(&key, &value).context("a sum of the kernel cannot be read")?;
            all += 1;
        }
        if all == before {
            bail!("reading a BPF map of sums makes no progress: the kernel returns the same entries again");
        }
    }
    Ok(all)
}

/// By how much the counts of buckets have grown. They may have wrapped around.
fn grown(before: &Histograms, after: &Histograms) -> Histograms {
    let mut new = *after;
    new.iter_mut().flatten().zip(before.iter().flatten()).for_each(|(n, b)| *n = n.wrapping_sub(*b));
    new
}

fn add_up(to: &mut Histograms, new: &Histograms) {
    to.iter_mut().flatten().zip(new.iter().flatten()).for_each(|(n, more)| *n = n.saturating_add(*more));
}

fn filled(counts: &[u32]) -> Buckets {
    counts.iter().copied().enumerate().filter(|(_, n)| *n > 0).collect()
}

/// What was taken at once, until it is used.
pub struct Batch {
    pub events: Vec<Event>,
    #[expect(dead_code, reason = "counted by its references")]
    waiting: Arc<()>,
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
    pub fn start(sums: Sums, mut to: impl FnMut(Batch) + Send + 'static) -> Result<Self> {
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
        self.thread.join().map_err(|_| {
            anyhow!("the thread that takes sums panicked: a bug of iotrace-bpf; please report the lines above")
        })?
    }
}

fn run(mut sums: Sums, stopped: &Receiver<()>, to: &mut impl FnMut(Batch)) -> Result<()> {
    let mut period = PERIOD;
    let waiting = Arc::new(());
    loop {
        let last = stopped.recv_timeout(period) == Err(RecvTimeoutError::Disconnected);
        // While the output takes nothing, sums stay where they are. Those without an entry there are counted.
        if !last && Arc::strong_count(&waiting) > WAITING {
            continue;
        }
        let (events, fill) = sums.take()?;
        if !events.is_empty() {
            to(Batch { events, waiting: Arc::clone(&waiting) });
        }
        if last {
            return Ok(());
        }
        // What does not fit is reported without its owner.
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
    fn growth_is_reported_across_the_wrap_of_the_counter() {
        let counts = |first: [u32; 3]| {
            let mut counts = wire::NO_COUNTS;
            counts[1][..3].copy_from_slice(&first);
            counts
        };
        let [durations, sizes] = grown(&counts([1, u32::MAX, 7]), &counts([3, 1, 7])).map(|counts| filled(&counts));
        assert_eq!((durations, sizes), (vec![], vec![(0, 2), (1, 2)]));
    }
}
