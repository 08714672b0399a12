//! What calls took in earlier runs, in a file: durations by function, size, file system and device, and calls by function.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::path::Path;

use anyhow::{Context as _, Result, bail};
use serde::{Deserialize, Serialize};

use crate::base::hist::{Histogram, REPORT_BITS};
use crate::export::as_invoking_user;
use crate::state;

/// Changes when files mean something else.
const VERSION: u32 = 1;
/// No store is larger; what runs have not met for longest is forgotten.
const MOST_BYTES: usize = 8 << 20;
const MOST_CELLS: usize = 4096;
/// Calls of a cell that count at most: of more all counts are halved, so that what came last counts most.
const MOST_CALLS: u64 = 1_000_000;
/// Of one run at most half as many, so that one run does not take the place of all others.
const MOST_OF_RUN: u64 = MOST_CALLS / 2;
/// Runs whose number of calls is kept.
const LAST_RUNS: usize = 20;
/// From so many calls on the first and the last percent of them is a call at least.
const LEAST_CALLS: u64 = 100;
/// What differs from run to run is not known of one.
const LEAST_RUNS: u64 = 2;

pub type Durations = Histogram<REPORT_BITS>;

/// Calls that are alike.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Key {
    pub layer: String,
    pub op: String,
    /// The class of their size; none of those that move no data.
    pub size: Option<String>,
    /// The file system, and its device, source or mount; empty where that is not known.
    pub fs: String,
    pub device: String,
}

impl Key {
    pub fn function(&self) -> Function {
        (self.layer.clone(), self.op.clone())
    }
}

/// How long they took.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Earlier {
    pub runs: u64,
    /// When the last run was, in ns since 1970.
    at_ns: i64,
    /// Of all together.
    ns: u64,
    durations: Durations,
}

impl Earlier {
    /// Their durations and their mean, where there were enough.
    pub fn enough(&self) -> Option<(&Durations, i64)> {
        let calls = self.durations.total();
        let mean = i64::try_from(self.ns / calls.max(1)).unwrap_or(i64::MAX);
        (calls >= LEAST_CALLS && self.runs >= LEAST_RUNS).then_some((&self.durations, mean))
    }

    fn learn(&mut self, mut run: Seen, at_ns: i64) {
        while run.durations.total() > MOST_OF_RUN {
            run.halve();
        }
        let mut all = Seen { ns: self.ns.saturating_add(run.ns), durations: std::mem::take(&mut self.durations) };
        all.durations.merge(&run.durations);
        while all.durations.total() > MOST_CALLS {
            all.halve();
        }
        *self = Self { runs: self.runs.saturating_add(1), at_ns, ns: all.ns, durations: all.durations };
    }
}

/// The calls of one run.
#[derive(Debug, Clone, Default)]
pub struct Seen {
    pub ns: u64,
    pub durations: Durations,
}

impl Seen {
    pub fn add(&mut self, ns: i64) {
        self.ns = self.ns.saturating_add(u64::try_from(ns).unwrap_or(0));
        self.durations.add(ns);
    }

    /// The mean stays.
    fn halve(&mut self) {
        let before = self.durations.total();
        self.durations.halve();
        self.ns = (u128::from(self.ns) * u128::from(self.durations.total()) / u128::from(before.max(1))) as u64;
    }
}

/// Layer and function.
pub type Function = (String, String);

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    version: u32,
    cells: Vec<(Key, Earlier)>,
    functions: Vec<(Function, Vec<i64>)>,
}

/// What is known of earlier runs.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Store {
    cells: BTreeMap<Key, Earlier>,
    /// Calls in each of the last runs that called it.
    functions: BTreeMap<Function, Vec<i64>>,
}

impl Store {
    /// What the file has; nothing where there is none.
    ///
    /// # Errors
    /// When it cannot be read, or is no store.
    pub fn read(path: &Path) -> Result<Self> {
        let text = match as_invoking_user(|| Ok(state::read(path, MOST_BYTES as u64))) {
            Ok(Err(e)) if e.kind() == io::ErrorKind::NotFound => return Ok(Self::default()),
            read => read.and_then(|read| Ok(read?)).with_context(|| format!("cannot read {}", path.display()))?,
        };
        Self::parse(&text).with_context(|| {
            format!("{} is no baseline of this version: remove it, or name another file", path.display())
        })
    }

    fn parse(text: &str) -> Result<Self> {
        let File { version, cells, functions } = serde_json::from_str(text)?;
        if version != VERSION {
            bail!("its version is {version}, and not {VERSION}");
        }
        Ok(Self { cells: cells.into_iter().collect(), functions: functions.into_iter().collect() })
    }

    /// Adds a run to the file. What other runs have added meanwhile stays in it.
    ///
    /// # Errors
    /// When it cannot be read or written.
    pub fn add(path: &Path, run: Vec<(Key, Seen)>, at_ns: i64) -> Result<Self> {
        let what = || format!("cannot write {}", path.display());
        let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or_else(|| Path::new("."));
        let held = as_invoking_user(|| {
            state::make(folder)?;
            Ok(state::hold(folder)?)
        });
        let _held = held.with_context(what)?;
        let mut store = Self::read(path)?;
        store.learn(run, at_ns);
        let text = store.text()?;
        as_invoking_user(|| Ok(state::replace(path, &text)?)).with_context(what)?;
        Ok(store)
    }

    fn learn(&mut self, run: Vec<(Key, Seen)>, at_ns: i64) {
        let mut calls = BTreeMap::<Function, i64>::new();
        for (key, seen) in run {
            let of = calls.entry(key.function()).or_default();
            *of = of.saturating_add(i64::try_from(seen.durations.total()).unwrap_or(i64::MAX));
            self.cells.entry(key).or_default().learn(seen, at_ns);
        }
        for (function, calls) in calls {
            let runs = self.functions.entry(function).or_default();
            runs.push(calls);
            runs.drain(..runs.len().saturating_sub(LAST_RUNS));
        }
    }

    /// What stands in a file, without what found no room.
    fn text(&mut self) -> Result<String> {
        let mut most = MOST_CELLS;
        loop {
            if self.cells.len() > most {
                let mut all: Vec<(Key, Earlier)> = std::mem::take(&mut self.cells).into_iter().collect();
                all.sort_by_key(|(_, earlier)| std::cmp::Reverse(earlier.at_ns));
                all.truncate(most);
                self.cells = all.into_iter().collect();
                let left: BTreeSet<Function> = self.cells.keys().map(Key::function).collect();
                self.functions.retain(|function, _| left.contains(function));
            }
            let (cells, functions) = (self.cells.clone(), self.functions.clone());
            let cells = cells.into_iter().collect();
            let file = File { version: VERSION, cells, functions: functions.into_iter().collect() };
            let text = serde_json::to_string(&file)? + "\n";
            if text.len() <= MOST_BYTES || most == 0 {
                return Ok(text);
            }
            most = self.cells.len() / 2;
        }
    }

    /// Calls like these.
    pub fn get(&self, key: &Key) -> Option<&Earlier> {
        self.cells.get(key)
    }

    /// The most calls of a function in any of the last runs, where there were enough runs.
    pub fn most_calls(&self, function: &Function) -> Option<i64> {
        let runs = self.functions.get(function).filter(|runs| runs.len() as u64 >= LEAST_RUNS)?;
        runs.iter().max().copied()
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use std::os::unix::fs::MetadataExt as _;

    fn key(op: &str) -> Key {
        let [layer, op, fs, device] = ["syscall", op, "ext4", "sda"].map(str::to_owned);
        Key { layer, op, size: Some("<=1K".to_owned()), fs, device }
    }

    fn calls(n: u64, ns: i64) -> Seen {
        let mut seen = Seen::default();
        seen.durations.add_n(ns, n);
        seen.ns = n * ns as u64;
        seen
    }

    #[test]
    fn runs_add_up_until_there_is_enough() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("state/baseline.json");
        assert_eq!(Store::read(&path).unwrap(), Store::default());
        let enough = |store: &Store| store.get(&key("read")).unwrap().enough().map(|(all, mean)| (all.total(), mean));
        let store = Store::add(&path, vec![(key("read"), calls(1000, 10))], 1).unwrap();
        let most = |store: &Store, op: &str| store.most_calls(&key(op).function());
        assert_eq!((enough(&store), most(&store, "read")), (None, None), "one run is none");
        let store = Store::add(&path, vec![(key("read"), calls(3000, 20)), (key("open"), calls(99, 1))], 2).unwrap();
        assert_eq!(enough(&store), Some((4000, 17)));
        let store = Store::add(&path, vec![(key("open"), calls(1, 1))], 3).unwrap();
        assert_eq!(store.get(&key("open")).unwrap().enough().map(|(_, mean)| mean), Some(1));
        assert_eq!([most(&store, "open"), most(&store, "read")], [Some(99), Some(3000)]);
        assert_eq!(Store::read(&path).unwrap(), store);
        assert_eq!(std::fs::metadata(&path).unwrap().mode() & 0o777, 0o600);
    }

    #[test]
    fn old_calls_count_less_and_less() {
        let mut store = Store::default();
        store.learn(vec![(key("read"), calls(10 * MOST_CALLS, 10))], 1);
        let total = |store: &Store| store.get(&key("read")).unwrap().durations.total();
        assert!((MOST_OF_RUN / 2..=MOST_OF_RUN).contains(&total(&store)));
        (0..2).for_each(|_| store.learn(vec![(key("read"), calls(MOST_CALLS, 10))], 1));
        let mut runs = 0;
        while store.get(&key("read")).unwrap().durations.quantile(0.5) == Some(10) {
            store.learn(vec![(key("read"), calls(MOST_CALLS, 50))], 2);
            assert!(total(&store) <= MOST_CALLS);
            runs += 1;
        }
        assert!((2..6).contains(&runs), "{runs} runs until the median follows");
        let (_, mean) = store.get(&key("read")).unwrap().enough().unwrap();
        assert!((20..50).contains(&mean), "{mean}");
        (0..100).for_each(|n| store.learn(vec![(key("open"), calls(100 - n, 1))], 3));
        assert_eq!(store.most_calls(&key("open").function()), Some(20), "of the last runs alone");
    }

    #[test]
    fn what_was_not_met_for_longest_is_forgotten() {
        let mut store = Store::default();
        for n in 0..MOST_CELLS as i64 + 10 {
            store.learn(vec![(key(&n.to_string()), calls(1, 1))], n);
        }
        let text = store.text().unwrap();
        let back = Store::parse(&text).unwrap();
        assert_eq!(back.cells.len(), MOST_CELLS);
        assert!(back.get(&key("9")).is_none() && back.get(&key("10")).is_some());
        // Names that are as long as none is.
        store.cells.clear();
        for n in 0..200 {
            store.learn(vec![(key(&format!("{n}{}", "x".repeat(1 << 16))), calls(1, 1))], n);
        }
        let text = store.text().unwrap();
        assert!(text.len() <= MOST_BYTES);
        assert_eq!((store.cells.len(), store.functions.len()), (50, 50));
        assert!(Store::parse(&text).unwrap().cells.values().all(|earlier| earlier.at_ns >= 150));
    }

    #[test]
    fn a_damaged_file_is_named_and_stays() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("b.json");
        let wrong = |text: &str| {
            std::fs::write(&path, text).unwrap();
            let why = format!("{:#}", Store::add(&path, vec![(key("read"), calls(1, 1))], 1).unwrap_err());
            assert_eq!(std::fs::read_to_string(&path).unwrap(), text);
            why
        };
        for text in ["", "{\"version\":1", "[]", "{\"version\":1,\"cells\":[[1,2]],\"functions\":[]}"] {
            let why = wrong(text);
            assert!(why.contains("b.json is no baseline of this version: remove it, or name another file: "), "{why}");
        }
        assert!(wrong("{\"version\":2,\"cells\":[],\"functions\":[]}").ends_with("its version is 2, and not 1"));
        assert!(wrong(&" ".repeat(MOST_BYTES + 1)).ends_with("b.json: it is too long"));
        std::fs::remove_file(&path).unwrap();
        std::os::unix::fs::symlink("/dev/zero", &path).unwrap();
        assert!(format!("{:#}", Store::read(&path).unwrap_err()).starts_with("cannot read "));
        let within = path.join("x");
        assert!(format!("{:#}", Store::add(&within, Vec::new(), 1).unwrap_err()).starts_with("cannot write "));
        // Strange counts are no harm.
        let strange = "{\"version\":1,\"cells\":[[{\"layer\":\"syscall\",\"op\":\"read\",\"size\":null,\"fs\":\"\",\"device\":\"\"},\
                       {\"runs\":18446744073709551615,\"at_ns\":-1,\"ns\":18446744073709551615,\
                       \"durations\":[[1,18446744073709551615],[99999,1]]}]],\"functions\":[[[\"\",\"\"],[-1,-1]]]}";
        let mut store = Store::parse(strange).unwrap();
        let own = Key { size: None, fs: String::new(), device: String::new(), ..key("read") };
        assert_eq!(store.get(&own).unwrap().enough().map(|(_, mean)| mean), Some(1));
        store.learn(vec![(own, calls(5, 5))], 1);
        assert!(store.text().unwrap().len() < 1000);
    }
}
