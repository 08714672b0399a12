//! What the pictures have in common: time bins, ranks and files, by number.

use std::collections::BTreeMap;

use anyhow::Result;
use serde_json::{Value, json};

use crate::HashMap;
use crate::analysis::trace::source::{IdKind, Source};
use crate::base::text::escape;
use crate::export::report::Report;

/// Time bins of a page.
pub const BINS: u32 = 400;
/// Ranks, or processes without one, that are kept apart.
const RANKS_MAX: usize = 4096;

/// The time of a trace in equal bins.
#[derive(Debug, Clone, Copy)]
pub struct Time {
    pub bin_ns: i64,
}

impl Time {
    pub fn of(duration_ns: i64) -> Self {
        Self { bin_ns: (duration_ns.max(0) / i64::from(BINS)).saturating_add(1) }
    }

    /// The bin of a moment; what is before or after the trace counts in the first or last one.
    pub fn bin(self, ns: i64) -> u32 {
        (ns.max(0) / self.bin_ns).min(i64::from(BINS) - 1) as u32
    }
}

/// Ranks in their order, then processes without one, then what belongs to no known process.
pub struct Ranks {
    labels: Vec<String>,
    of_rank: HashMap<i32, usize>,
    of_process: HashMap<i32, usize>,
    /// So many are one row of the page.
    step: usize,
}

impl Ranks {
    pub fn read(source: &mut dyn Source) -> Result<Self> {
        let mut known = BTreeMap::<i32, (Option<i32>, String)>::new();
        source.processes(&mut |p| {
            let name = p.exe.as_deref().and_then(|exe| exe.rsplit('/').next()).unwrap_or("");
            known.insert(p.process_ix, (p.rank, format!("pid {} {}", p.pid, escape(name))));
            Ok(())
        })?;
        let mut rows = BTreeMap::<(bool, i32), String>::new();
        for (ix, (rank, name)) in &known {
            let label = rank.map_or_else(|| name.trim_end().to_owned(), |rank| format!("rank {rank}"));
            rows.entry((rank.is_none(), rank.unwrap_or(*ix))).or_insert(label);
        }
        let at: HashMap<(bool, i32), usize> = rows.keys().enumerate().map(|(at, key)| (*key, at)).collect();
        let of_rank = at.iter().filter(|((without, _), _)| !without).map(|((_, rank), at)| (*rank, *at)).collect();
        let row = |(ix, (rank, _)): (&i32, &(Option<i32>, String))| {
            Some((*ix, *at.get(&(rank.is_none(), rank.unwrap_or(*ix)))?))
        };
        let of_process = known.iter().filter_map(row).collect();
        let mut labels: Vec<String> = rows.into_values().collect();
        labels.push("process not known".to_owned());
        let step = (labels.len() - 1).div_ceil(RANKS_MAX).max(1);
        Ok(Self { labels, of_rank, of_process, step })
    }

    /// The row of a call.
    pub fn row(&self, process_ix: Option<i32>, rank: Option<i32>) -> u32 {
        let process = process_ix.and_then(|ix| self.of_process.get(&ix));
        let at = process.or_else(|| rank.and_then(|rank| self.of_rank.get(&rank)));
        (at.copied().unwrap_or(self.labels.len() - 1) / self.step) as u32
    }

    pub fn len(&self) -> u32 {
        self.labels.len().div_ceil(self.step) as u32
    }

    /// The rows of the page: of several that are one, the first and the last.
    pub fn labels(&self) -> Vec<String> {
        let label = |group: &[String]| match group {
            [first, .., last] => format!("{first} to {last}"),
            group => group.concat(),
        };
        self.labels.chunks(self.step).map(label).collect()
    }
}

/// The files that took the most time, as in the report; the others together; and none.
pub struct Files {
    names: Vec<Value>,
    at: HashMap<(Option<String>, i32), u32>,
    of_data: u32,
    several: bool,
}

impl Files {
    pub fn of(report: &Report) -> Self {
        let name = |file: &crate::export::report::FileRow| {
            let path = file.path.as_deref().map_or_else(|| format!("file {} (name not known)", file.file_id), escape);
            let host = file.host.as_deref().map_or_else(String::new, |host| format!("{}: ", escape(host)));
            json!({ "name": host + &path, "role": file.role })
        };
        let at = report.files.iter().enumerate().map(|(at, file)| ((file.host.clone(), file.file_id), at as u32));
        let others = [json!({ "name": "(other files)", "role": "" }), json!({ "name": "(no file)", "role": "" })];
        Self {
            names: report.files.iter().map(name).chain(others).collect(),
            at: at.collect(),
            of_data: report.files.iter().take_while(|file| !file.is_library()).count() as u32,
            several: report.files.iter().any(|file| file.host.is_some()),
        }
    }

    /// The number of a file of the source.
    pub fn number(&self, source: &dyn Source, file_id: Option<i32>) -> u32 {
        let others = self.names.len() as u32 - 2;
        let Some(id) = file_id else { return others + 1 };
        let key = if self.several {
            source.origin(IdKind::File, i64::from(id)).map(|own| (Some(own.host.to_owned()), own.id as i32))
        } else {
            Some((None, id))
        };
        key.and_then(|key| self.at.get(&key)).copied().unwrap_or(others)
    }

    /// Numbers below are of files that are no libraries and the like, which come last.
    pub const fn of_data(&self) -> u32 {
        self.of_data
    }

    pub fn len(&self) -> usize {
        self.names.len()
    }

    pub fn names(&self) -> &[Value] {
        &self.names
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::rows::{Process, Row};

    #[test]
    fn damaged_times_stay_within_the_bins() {
        for duration in [i64::MIN, 0, 1, i64::MAX] {
            let time = Time::of(duration);
            assert_eq!((time.bin(i64::MIN), time.bin(0)), (0, 0));
            assert!(time.bin(i64::MAX) < BINS);
        }
        assert_eq!(Time::of(4000).bin(3999), 363);
    }

    fn process(ix: i32, rank: Option<i32>) -> Row {
        let exe = Some("/bin/a\nb".to_owned());
        Row::Process(Box::new(Process {
            process_ix: ix,
            pid: 100 + ix,
            ppid: 1,
            start_ns: 0,
            end_ns: None,
            exe,
            cmdline: Vec::new(),
            uid: 0,
            user: None,
            cgroup: None,
            container: None,
            container_name: None,
            container_image: None,
            unit: None,
            rank,
            world_size: None,
            job_id: None,
            step_id: None,
            exit_code: None,
        }))
    }

    #[test]
    fn ranks_come_first_and_processes_of_one_rank_are_one_row() {
        let mut rows = vec![process(1, None), process(2, Some(1)), process(3, Some(0)), process(4, Some(1))];
        let ranks = Ranks::read(&mut rows).unwrap();
        assert_eq!(ranks.labels(), ["rank 0", "rank 1", "pid 101 a\\x0ab", "process not known"]);
        let row = |ix, rank| ranks.row(ix, rank);
        assert_eq!([row(Some(4), None), row(Some(9), Some(0)), row(Some(9), None), row(None, None)], [1, 0, 3, 3]);
    }

    #[test]
    fn more_than_a_page_keeps_apart_share_rows() {
        let mut rows: Vec<Row> = (0..5000).map(|ix| process(ix, Some(ix))).collect();
        let ranks = Ranks::read(&mut rows).unwrap();
        assert_eq!((ranks.len(), ranks.labels()[1].as_str()), (2501, "rank 2 to rank 3"));
        assert_eq!(ranks.row(Some(4999), None), 2499);
    }
}
