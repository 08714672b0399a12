//! The rings: made to a memory budget, drained by one thread on a timer, passed on in batches.

use crate::event::wire;
use crate::loader::kernel::libbpf;
use crate::skel::IotraceMaps;
use anyhow::{Context as _, Result};
use libbpf_rs::libbpf_sys::bpf_map_create_opts;
use libbpf_rs::{MapCore as _, MapFlags, MapHandle, MapType, RingBuffer, RingBufferBuilder};
use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use std::cell::{Cell, RefCell};
use std::io::PipeReader;
use std::os::fd::{AsFd as _, AsRawFd as _};
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::sync::mpsc::{Sender, SyncSender};
use std::thread::JoinHandle;
use std::time::Duration;

/// Time between two looks at the rings. A ring must hold what arrives in it between two looks.
pub const POLL: Duration = Duration::from_millis(5);
/// The same, while a look brings fewer bytes than `LITTLE`: a ring that fills wakes us.
pub const SELDOM: Duration = Duration::from_millis(80);
const LITTLE: usize = 4096;
/// A record may be committed this much later than the time it carries and still be in order, in ns.
const SLACK: u64 = 300_000_000;
/// A batch is passed on when it has this many bytes.
const BATCH: usize = 256 * 1024;
/// Smallest ring.
const MIN_RING: u64 = 64 * 1024;
/// More shards than this do not relieve contention further.
const MAX_SHARDS: u32 = 64;

/// Records as they came out of the rings.
pub struct Batch {
    pub data: Vec<u8>,
    /// Where each record ends in `data`. Records start at multiples of 8 bytes.
    pub ends: Vec<usize>,
    /// Everything earlier than this (monotonic ns) is in this batch or was in one before.
    pub watermark: u64,
}

impl Batch {
    fn new(bytes: usize) -> Self {
        Self { data: Vec::with_capacity(bytes), ends: Vec::new(), watermark: 0 }
    }

    fn push(&mut self, record: &[u8]) {
        self.data.extend_from_slice(record);
        self.ends.push(self.data.len());
        self.data.resize(self.data.len().next_multiple_of(8), 0);
    }

    /// The records, in the order they were drained.
    pub fn records(&self) -> impl Iterator<Item = &[u8]> {
        let mut from = 0;
        self.ends.iter().map(move |&end| {
            let record = &self.data[from..end];
            from = end.next_multiple_of(8);
            record
        })
    }
}

/// How many rings of which size.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Layout {
    pub shards: u32,
    /// Bytes of one ring of each class: life cycle, calls, block.
    pub bytes: [u32; 3],
}

impl Layout {
    /// Divides a budget: an eighth for life cycle, an eighth for block, the rest for calls, over the CPUs.
    /// Ring sizes are powers of two of pages, so up to half of a share stays unused.
    pub fn new(budget: u64, cpus: u32) -> Self {
        let shards = cpus.clamp(1, MAX_SHARDS);
        let size = |share: u64| {
            let each = (share / u64::from(shards)).clamp(MIN_RING, 1 << 30);
            1u32 << each.ilog2()
        };
        Self { shards, bytes: [size(budget / 8), size(budget / 4 * 3), size(budget / 8)] }
    }

    /// Rings in all.
    pub fn count(&self) -> u32 {
        self.shards * 3
    }

    /// Memory of all rings, in bytes.
    pub fn total(&self) -> u64 {
        self.bytes.iter().map(|b| u64::from(*b) * u64::from(self.shards)).sum()
    }
}

/// The thread that puts rings into their table.
pub type Placing = JoinHandle<Result<()>>;

/// Makes the rings, in the order of their keys, on a thread: the kernel takes its time for the memory.
pub fn create(layout: Layout) -> Result<JoinHandle<Result<Vec<MapHandle>>>> {
    let create = move || {
        let opts = bpf_map_create_opts { sz: size_of::<bpf_map_create_opts>() as _, ..Default::default() };
        let sizes = layout.bytes.into_iter().flat_map(|bytes| std::iter::repeat_n(bytes, layout.shards as usize));
        let create = |bytes| {
            MapHandle::create(MapType::RingBuf, Some("iot_ring"), 0, 0, bytes, &opts)
                .with_context(|| format!("ring buffer of {bytes} bytes; --ring-size sets the budget of all"))
        };
        sizes.map(create).collect()
    };
    std::thread::Builder::new().name("rings".into()).spawn(create).context("thread to make the rings")
}

/// Puts the rings into the map of maps. The handles must live as long as the drain.
///
/// After a change of such a table the kernel waits until no program uses what was there before, so a thread does it;
/// all at once, where the kernel can.
pub fn allocate(layout: Layout, rings: &[MapHandle], maps: &IotraceMaps<'_>) -> Result<Placing> {
    let keys: Vec<u8> = (0..layout.count()).flat_map(u32::to_ne_bytes).collect();
    let values: Vec<u8> = rings.iter().flat_map(|ring| ring.as_fd().as_raw_fd().to_ne_bytes()).collect();
    let table = MapHandle::try_from(&maps.iot_rings).context("table of rings")?;
    let allocate = move || {
        if table.update_batch(&keys, &values, layout.count(), MapFlags::ANY, MapFlags::ANY).is_ok() {
            return Ok(());
        }
        for (key, value) in keys.chunks(size_of::<u32>()).zip(values.chunks(size_of::<i32>())) {
            table.update(key, value, MapFlags::ANY).context("ring buffer into its table")?;
        }
        Ok(())
    };
    let placing = std::thread::Builder::new().name("rings".into()).spawn(allocate);
    placing.context("thread to put rings into their table")
}

/// Figures of the rings, for the display.
#[derive(Debug, Default)]
pub struct Gauges {
    /// Records that came out of the rings.
    pub records: AtomicU64,
    /// How full the fullest ring was since that was last asked for, in millionths.
    fill: AtomicU32,
    /// The same, for a second reader.
    fill_for_metrics: AtomicU32,
}

impl Gauges {
    /// How full the fullest ring was since the last time that this was asked for, 0 to 1.
    pub fn take_fill(&self) -> f64 {
        f64::from(self.fill.swap(0, Ordering::Relaxed)) / 1e6
    }

    /// The same since the metrics asked last.
    pub fn take_fill_for_metrics(&self) -> f64 {
        f64::from(self.fill_for_metrics.swap(0, Ordering::Relaxed)) / 1e6
    }

    fn filled(&self, bytes: u64, of: u32) {
        let part = (bytes as f64 / f64::from(of.max(1))).min(1.0);
        for fill in [&self.fill, &self.fill_for_metrics] {
            fill.fetch_max((part * 1e6) as u32, Ordering::Relaxed);
        }
    }
}

/// What a record takes in its ring: a header of 8 bytes, and full words.
const fn taken(record: &[u8]) -> u64 {
    record.len().next_multiple_of(8) as u64 + 8
}

/// What the drain thread passes on.
pub enum Drained {
    Batch(Batch),
    /// The rings are empty and stay so: everything has been passed on.
    End,
}

/// Monotonic time in ns, the clock of every record.
pub fn now() -> u64 {
    use nix::time::{ClockId, clock_gettime};
    clock_gettime(ClockId::CLOCK_MONOTONIC).map_or(0, |t| t.tv_sec() as u64 * 1_000_000_000 + t.tv_nsec() as u64)
}

/// Starts the thread that empties the rings until the other end of `stop` is closed and nothing is left in them.
///
/// What is for the attach engine goes to `engine` at once; everything goes to `out`, which is bounded: when the reader is slow this
/// thread waits and the rings fill, where loss is counted. While little comes it looks less often, at least once in `longest`.
pub fn drain(
    rings: Vec<MapHandle>,
    out: SyncSender<Drained>,
    engine: Sender<wire::Record>,
    gauges: Arc<Gauges>,
    longest: Duration,
    stop: PipeReader,
) -> Result<JoinHandle<Result<()>>> {
    std::thread::Builder::new()
        .name("drain".into())
        .spawn(move || {
            let batch = Rc::new(RefCell::new(Batch::new(0)));
            // What came out of each ring at one look was in it then: as much as the ring holds at most.
            let emptied: Vec<(Rc<Cell<u64>>, u32)> = rings.iter().map(|r| (Rc::default(), r.max_entries())).collect();
            let mut builder = RingBufferBuilder::new();
            for (ring, (bytes, _)) in rings.iter().zip(&emptied) {
                let (batch, out, engine) = (Rc::clone(&batch), out.clone(), engine.clone());
                let bytes = Rc::clone(bytes);
                builder.add(ring, move |record: &[u8]| {
                    bytes.set(bytes.get() + taken(record));
                    if wire::is_for_engine(record) {
                        if let Ok(record) = wire::Decoder::default().decode(record) {
                            // The session may have ended; then nothing is attached any more.
                            let _ = engine.send(record);
                        }
                        return 0;
                    }
                    let mut current = batch.borrow_mut();
                    current.push(record);
                    if current.data.len() >= BATCH {
                        let full = std::mem::replace(&mut *current, Batch::new(BATCH + 8192));
                        if out.send(Drained::Batch(full)).is_err() {
                            return -1;
                        }
                    }
                    0
                })?;
            }
            let rings = builder.build().context("ring buffers")?;
            let mut wait = POLL;
            loop {
                let begun = now();
                // Wakes early when a ring fills; otherwise nothing has signalled and consume() looks at all.
                let last = ends(&rings, &stop, wait)?;
                rings.consume().or_else(interrupted)?;
                for (bytes, size) in &emptied {
                    gauges.filled(bytes.take(), *size);
                }
                let mut part = std::mem::replace(&mut *batch.borrow_mut(), Batch::new(0));
                wait = if part.data.len() < LITTLE { (wait * 2).min(longest) } else { POLL };
                part.watermark = begun.saturating_sub(SLACK);
                if out.send(Drained::Batch(part)).is_err() {
                    return Ok(()); // the reader has failed and reported why
                }
                if last {
                    let _ = out.send(Drained::End);
                    return Ok(());
                }
            }
        })
        .context("thread that drains the rings")
}

/// Waits until a ring fills, the time is over or the trace ends: does it?
fn ends(rings: &RingBuffer<'_>, stop: &PipeReader, longest: Duration) -> Result<bool> {
    let timeout = PollTimeout::try_from(longest).unwrap_or(PollTimeout::MAX);
    let mut fds = [libbpf::fills(rings), stop.as_fd()].map(|fd| PollFd::new(fd, PollFlags::POLLIN));
    match poll(&mut fds, timeout) {
        Ok(_) => Ok(fds[1].any().unwrap_or(true)),
        Err(Errno::EINTR) => Ok(false),
        Err(e) => Err(e).context("waiting for the rings"),
    }
}

fn interrupted(e: libbpf_rs::Error) -> Result<()> {
    if e.kind() == libbpf_rs::ErrorKind::Interrupted { Ok(()) } else { Err(e).context("reading the rings") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_layout_keeps_its_budget() {
        for (budget, cpus) in [(64 << 20, 2), (64 << 20, 192), (1 << 30, 8), (1 << 20, 4)] {
            let l = Layout::new(budget, cpus);
            assert!(l.bytes.iter().all(|b| b.is_power_of_two()));
            let floor = u64::from(l.count()) * MIN_RING;
            assert!(l.total() <= budget.max(floor), "{budget} over {cpus}: {l:?}");
        }
    }

    #[test]
    fn the_fullest_ring_counts_until_it_was_asked_for() {
        let gauges = Gauges::default();
        let record = [0u8; 56];
        gauges.filled(taken(&record) * 512, 64 * 1024);
        gauges.filled(taken(&record), 64 * 1024);
        assert!((gauges.take_fill() - 0.5).abs() < 1e-6);
        assert!(gauges.take_fill() < 1e-9);
        assert!((gauges.take_fill_for_metrics() - 0.5).abs() < 1e-6, "a read does not reset the gauge for others");
        gauges.filled(1 << 40, 64 * 1024);
        assert!((gauges.take_fill() - 1.0).abs() < 1e-6, "refilled while it was emptied");
    }

    #[test]
    fn a_batch_gives_back_its_records() {
        let mut b = Batch::new(0);
        for r in [&b"abc"[..], b"", b"12345678", b"x"] {
            b.push(r);
        }
        let back: Vec<&[u8]> = b.records().collect();
        assert_eq!(back, [&b"abc"[..], b"", b"12345678", b"x"]);
    }
}
