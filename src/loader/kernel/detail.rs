//! Aggregate mode: which calls the kernel side also sends one by one, from when on one is slow, and which processes send too many.

use crate::base::hist::{BUCKETS, bucket_bounds};
use crate::catalog::Row;
use crate::event::FileKey;
use crate::loader::kernel::spec::{self, BLOCK_OPS};
use crate::skel::IotraceMaps;
use crate::skel::types::iot_detail_flag;
use crate::vocabulary::{Kind, Layer};
use anyhow::{Context as _, Result};
use libbpf_rs::{MapCore as _, MapFlags, MapHandle};
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::time::Duration;

/// Entries of each table: processes, files, requests in flight.
pub const ENTRIES: u32 = 65_536;

/// A call that takes longer than so many of a thousand of its function is slow, if it also takes this many times as long as the
/// middle one, and this long at all.
const USUAL_OF_1000: u64 = 999;
const TIMES_MEDIAN: u64 = 8;
const LEAST: Duration = Duration::from_millis(1);
/// Of a function of which fewer calls are known, and for how long it is.
const ENOUGH: u64 = 1000;
const UNKNOWN: Duration = Duration::from_millis(100);
/// After so many looks what is known counts half.
const HALF_LIFE: u32 = 60;

/// For how many ticks a process that sent too much is muted: 2 s.
const MUTED_TICKS: u32 = 10;
/// How often what is known of processes that are gone is forgotten, in ticks.
const FORGET_TICKS: u32 = 100;

/// From when on a call of a row is slow.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Limit {
    Never,
    Fixed(Duration),
    /// From what is usual.
    Learned,
}

/// Which calls are sent one by one.
#[derive(Debug, Clone, Default)]
pub struct Plan {
    /// By layer, the ones behind before those before; of none: all layers.
    pub slow: Vec<(Option<Layer>, Limit)>,
    pub processes: bool,
    pub files: bool,
}

impl Plan {
    /// `iot_config.detail`.
    pub fn bits(&self) -> u8 {
        let flags = [
            (!self.slow.is_empty(), iot_detail_flag::IOT_DETAIL_SLOW),
            (self.processes, iot_detail_flag::IOT_DETAIL_PROCESSES),
            (self.files, iot_detail_flag::IOT_DETAIL_FILES),
        ];
        flags.into_iter().filter(|(on, _)| *on).fold(0, |bits, (_, flag)| bits | flag.0 as u8)
    }

    /// By row of the catalog, and behind them by operation of devices.
    fn limits(&self, rows: &[Row]) -> Vec<Limit> {
        let of = |layer: Layer| {
            let limit = |exact: bool| {
                let fits = |l: &Option<Layer>| if exact { *l == Some(layer) } else { l.is_none() };
                self.slow.iter().rev().find(|(l, _)| fits(l)).map(|(_, limit)| *limit)
            };
            limit(true).or_else(|| limit(false)).unwrap_or(Limit::Never)
        };
        // A server waits for requests as long as there are none.
        let idles = |row: &Row| row.kind == Kind::Wait && row.layer == Layer::Syscall;
        let row = |row: &Row| if idles(row) || row.is_phase() { Limit::Never } else { of(row.layer) };
        rows.iter().map(row).chain(std::iter::repeat_n(of(Layer::Block), BLOCK_OPS as usize)).collect()
    }
}

/// Learns from when on calls are slow, and passes that to the kernel side.
pub struct Slow {
    table: MapHandle,
    limits: Vec<Limit>,
    /// Rows whose calls are not summed up in the kernel: it only counts how long they take.
    unsummed: Vec<u32>,
    known: BTreeMap<u32, Vec<u64>>,
    looks: u32,
}

impl Slow {
    /// Writes what is known before the first call.
    ///
    /// # Errors
    /// When the kernel does not take it.
    pub fn create(maps: &IotraceMaps<'_>, plan: &Plan, rows: &[Row]) -> Result<Self> {
        let table = MapHandle::try_from(&maps.iot_slow).context("the table of limits")?;
        let limits = plan.limits(rows);
        let unsummed = (0..rows.len() as u32).filter(|row| !spec::is_summed(&rows[*row as usize])).collect();
        let slow = Self { table, limits, unsummed, known: BTreeMap::new(), looks: 0 };
        for (row, limit) in slow.limits.iter().enumerate() {
            let limit = match limit {
                Limit::Never => None,
                Limit::Fixed(time) => Some(*time),
                Limit::Learned => Some(UNKNOWN),
            };
            slow.set(row as u32, limit)?;
        }
        Ok(slow)
    }

    fn set(&self, row: u32, limit: Option<Duration>) -> Result<()> {
        let limit = limit.map_or(u64::MAX, ns);
        self.table
            .update(&row.to_ne_bytes(), &limit.to_ne_bytes(), MapFlags::ANY)
            .context("cannot set the limit of --detail slow in its BPF map")
    }

    /// Rows that are not in the sums.
    pub fn unsummed(&self) -> Vec<u32> {
        self.unsummed.iter().copied().filter(|row| self.learns(*row)).collect()
    }

    fn learns(&self, row: u32) -> bool {
        self.limits.get(row as usize) == Some(&Limit::Learned)
    }

    /// So many calls of a row took so long since the last look, by bucket.
    pub fn took(&mut self, row: u32, counts: &[(usize, u32)]) {
        if !self.learns(row) || counts.is_empty() {
            return;
        }
        let known = self.known.entry(row).or_insert_with(|| vec![0; BUCKETS]);
        for (bucket, n) in counts {
            if let Some(count) = known.get_mut(*bucket) {
                *count += u64::from(*n);
            }
        }
    }

    /// All durations of this look were added.
    ///
    /// # Errors
    /// When the kernel does not take a limit.
    pub fn learn(&mut self) -> Result<()> {
        self.looks += 1;
        let halve = self.looks.is_multiple_of(HALF_LIFE);
        for (row, known) in &mut self.known {
            if halve {
                for n in known.iter_mut() {
                    *n /= 2;
                }
            }
            let limit = usual(known).unwrap_or(UNKNOWN);
            self.table
                .update(&row.to_ne_bytes(), &ns(limit).to_ne_bytes(), MapFlags::ANY)
                .context("cannot set the limit of --detail slow in its BPF map")?;
        }
        Ok(())
    }
}

fn ns(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

/// How long calls take at most that are not slow, from the counts of the durations so far.
fn usual(counts: &[u64]) -> Option<Duration> {
    let all: u64 = counts.iter().sum();
    if all < ENOUGH {
        return None;
    }
    let quantile = |of_1000: u64| {
        let mut left = all.saturating_mul(of_1000) / 1000;
        let bucket = counts.iter().position(|n| {
            let last = *n >= left;
            left = left.saturating_sub(*n);
            last
        });
        bucket_bounds(bucket.map_or(i16::MAX, |b| b as i16)).1
    };
    Some(Duration::from_nanos(quantile(USUAL_OF_1000).max(quantile(500).saturating_mul(TIMES_MEDIAN))).max(LEAST))
}

/// Chooses processes and files whose calls are sent one by one.
pub struct Choice {
    processes: MapHandle,
    files: MapHandle,
}

impl Choice {
    /// # Errors
    /// When the kernel does not show its tables.
    pub fn create(maps: &IotraceMaps<'_>) -> Result<Self> {
        let handle = |map: &libbpf_rs::Map<'_>| {
            MapHandle::try_from(map).context("a table of processes and files with recorded calls")
        };
        Ok(Self { processes: handle(&maps.iot_full_procs)?, files: handle(&maps.iot_full_files)? })
    }

    /// Has every call of the process sent? False when the kernel's table is full.
    pub fn process(&self, process: u32, all: bool) -> bool {
        put(&self.processes, process, all)
    }

    /// Has every call on the file sent. False when the kernel's table is full.
    pub fn file(&self, file: FileKey) -> bool {
        let mut key = file.ino.to_ne_bytes().to_vec();
        key.extend(file.dev.to_ne_bytes());
        key.extend(file.generation.to_ne_bytes());
        self.files.update(&key, &1_u32.to_ne_bytes(), MapFlags::ANY).is_ok()
    }
}

/// Puts a process into a set, or takes it out.
fn put(set: &MapHandle, process: u32, is_in: bool) -> bool {
    let key = process.to_ne_bytes();
    if is_in { set.update(&key, &1_u32.to_ne_bytes(), MapFlags::ANY).is_ok() } else { set.delete(&key).is_ok() }
}

/// How many calls of a process were sent, and how many were not.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Source {
    sent: u64,
    /// There was no room.
    refused: u64,
    /// There was no room to remember them.
    forgotten: u64,
}

/// Monitors how much each process sends.
pub struct Sources {
    table: MapHandle,
    muted: MapHandle,
    full: MapHandle,
    limiter: Limiter,
    ticks: u32,
}

impl Sources {
    /// # Errors
    /// When the kernel does not show its tables.
    pub fn create(maps: &IotraceMaps<'_>) -> Result<Self> {
        let handle = |map: &libbpf_rs::Map<'_>| {
            MapHandle::try_from(map).context("a table of processes and files with recorded calls")
        };
        let table = handle(&maps.iot_sources)?;
        let (muted, full) = (handle(&maps.iot_muted)?, handle(&maps.iot_full_procs)?);
        Ok(Self { table, muted, full, limiter: Limiter::default(), ticks: 0 })
    }

    /// Of which processes how many calls were not sent since the last tick. Where there was no room, the one that sends most
    /// is muted for a while. `alive` gives the processes that there are.
    pub fn tick(&mut self, alive: impl FnOnce() -> BTreeSet<u32>) -> Vec<(u32, u64)> {
        let mut now = BTreeMap::new();
        for key in self.table.keys() {
            let Some(process) = key.first_chunk().map(|k| u32::from_ne_bytes(*k)) else { continue };
            let Ok(Some(value)) = self.table.lookup(&key, MapFlags::ANY) else { continue };
            let (words, _) = value.as_chunks();
            let field = |at: usize| words.get(at).map_or(0, |w| u64::from_ne_bytes(*w));
            now.insert(process, Source { sent: field(0), refused: field(1), forgotten: field(2) });
        }
        let verdict = self.limiter.tick(&now);
        for (process, muted) in verdict.muted {
            put(&self.muted, process, muted);
        }
        self.ticks += 1;
        if self.ticks.is_multiple_of(FORGET_TICKS) {
            let alive = alive();
            for process in now.keys().filter(|process| !alive.contains(process)) {
                for table in [&self.table, &self.muted, &self.full] {
                    let _ = table.delete(&process.to_ne_bytes());
                }
                self.limiter.forget(*process);
            }
        }
        verdict.refused
    }
}

/// What follows from a tick.
#[derive(Debug, PartialEq, Eq, Default)]
struct Verdict {
    refused: Vec<(u32, u64)>,
    /// Processes that are muted from now on, and that are not any more.
    muted: Vec<(u32, bool)>,
}

/// Decides which processes send too much: pure.
#[derive(Default)]
struct Limiter {
    before: HashMap<u32, Source>,
    muted: BTreeMap<u32, u32>,
}

impl Limiter {
    fn tick(&mut self, now: &BTreeMap<u32, Source>) -> Verdict {
        let mut verdict = Verdict::default();
        let mut most: Option<(u64, u32)> = None;
        let mut full = false;
        for (process, source) in now {
            let before = self.before.insert(*process, *source).unwrap_or_default();
            let sent = source.sent.saturating_sub(before.sent);
            let refused = source.refused.saturating_sub(before.refused);
            let forgotten = source.forgotten.saturating_sub(before.forgotten);
            if refused + forgotten > 0 {
                verdict.refused.push((*process, refused + forgotten));
            }
            if !self.muted.contains_key(process) {
                full |= refused > 0;
                most = most.max(Some((sent + refused, *process)));
            }
        }
        self.muted.retain(|process, left| {
            *left -= 1;
            if *left == 0 {
                verdict.muted.push((*process, false));
            }
            *left > 0
        });
        if let (true, Some((_, process))) = (full, most) {
            self.muted.insert(process, MUTED_TICKS);
            verdict.muted.push((process, true));
        }
        verdict
    }

    fn forget(&mut self, process: u32) {
        self.before.remove(&process);
        self.muted.remove(&process);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_usual_is_learned_from_many_calls() {
        let mut counts = vec![0; BUCKETS];
        let at = |ns: i64| usize::from(crate::base::hist::bucket_of(ns).unsigned_abs());
        counts[at(1_000)] = 998;
        assert_eq!(usual(&counts), None);
        counts[at(5_000_000)] = 1;
        counts[at(900_000_000)] = 1;
        // 999 of 1000 took at most so long; below a millisecond nothing is slow.
        let limit = usual(&counts).unwrap_or_default();
        assert!((Duration::from_millis(5)..Duration::from_millis(7)).contains(&limit), "{limit:?}");
        counts[at(1_000)] = 1_000_000;
        assert_eq!(usual(&counts), Some(LEAST));
        // Calls that all take about as long are not slow, whatever the last of a thousand is.
        let mut even = vec![0; BUCKETS];
        even[at(10_000_000)] = 5_000;
        assert!(usual(&even).is_some_and(|limit| limit >= Duration::from_millis(80)));
    }

    #[test]
    fn the_exact_layer_and_the_last_setting_win() {
        let fixed = |ms| Limit::Fixed(Duration::from_millis(ms));
        let slow = vec![(None, Limit::Learned), (Some(Layer::Hdf5), fixed(5)), (Some(Layer::Hdf5), fixed(7))];
        let rows = crate::catalog::rows();
        let limits = Plan { slow, ..Plan::default() }.limits(&rows);
        let of = |symbol: &str| rows.iter().position(|r| r.symbol == symbol).map(|at| limits[at]);
        assert_eq!(of("H5Dwrite"), Some(fixed(7)));
        assert_eq!(of("pread64"), Some(Limit::Learned));
        assert_eq!([of("MPI_Wait"), of("io_getevents")], [Some(Limit::Learned), Some(Limit::Never)]);
        assert_eq!(limits.len(), rows.len() + BLOCK_OPS as usize);
        assert_eq!(limits.last(), Some(&Limit::Learned));
        assert!(Plan::default().limits(&rows).iter().all(|l| *l == Limit::Never));
    }

    #[test]
    fn the_process_that_sends_most_is_muted_for_a_while() {
        let mut limiter = Limiter::default();
        let source = |sent, refused| Source { sent, refused, forgotten: 0 };
        let calm = BTreeMap::from([(1, source(50, 0)), (2, source(10, 0))]);
        assert_eq!(limiter.tick(&calm), Verdict::default());
        // What a thread could not remember is counted, and no process sent too much.
        let forgot = BTreeMap::from([(1, Source { forgotten: 5, ..source(50, 0) }), (2, source(10, 0))]);
        assert_eq!(limiter.tick(&forgot), Verdict { refused: vec![(1, 5)], muted: vec![] });
        let full = BTreeMap::from([(1, Source { forgotten: 5, ..source(60, 3) }), (2, source(90, 7))]);
        assert_eq!(limiter.tick(&full), Verdict { refused: vec![(1, 3), (2, 7)], muted: vec![(2, true)] });
        // What it would send now mutes no other process.
        for n in 1..=MUTED_TICKS {
            let later =
                BTreeMap::from([(1, Source { forgotten: 5, ..source(60, 3) }), (2, source(90, 7 + u64::from(n)))]);
            let verdict = limiter.tick(&later);
            assert_eq!(verdict.refused, [(2, 1)]);
            assert_eq!(verdict.muted, if n == MUTED_TICKS { vec![(2, false)] } else { vec![] });
        }
    }
}
