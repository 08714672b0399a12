//! The run itself: what was traced, what was covered, what was lost.

use std::collections::BTreeMap;

use anyhow::Result;
use serde::Serialize;

use crate::analysis::trace::source::Source;
use crate::base::text;
use crate::node::counters::MAJOR;
use crate::node::figures::Figure;

/// What was traced, where and when.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Header {
    pub command: Option<String>,
    pub host: Option<String>,
    pub kernel: Option<String>,
    pub version: Option<String>,
    pub schema: Option<String>,
    pub mode: Option<String>,
    pub clock: Option<String>,
    /// Start of the trace, ns since 1970.
    pub start_wall_ns: Option<i64>,
    /// The same for people, in UTC.
    pub start: Option<String>,
    pub duration_ns: i64,
    /// False: the end was not recorded (the tracer was killed), the duration goes to the last event.
    pub end_recorded: bool,
    pub processes: usize,
    pub ranks: usize,
    /// Files that calls touched.
    pub files: usize,
    /// Of more files than a report keeps apart: one in which no more time was spent than that may be missing among those with
    /// the most.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub unseen_file_ns: Option<i64>,
    /// Calls were summed up in the kernel (`--aggregate`): single ones, and which the program made itself, are not known.
    pub aggregate: bool,
    /// Which were recorded one by one besides (`--detail`).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub detail: Option<String>,
    /// What came of `--advise-readahead`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub read_ahead: Option<String>,
    /// Calls on sockets, pipes, terminals and devices, which are left out on purpose.
    pub excluded_calls: i64,
    /// Page faults of the traced processes for which the kernel waited, on files or not (`PERF_COUNT_SW_PAGE_FAULTS_MAJ`).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub major_faults: Option<i64>,
    /// Device requests that had not completed when the trace ended.
    pub requests_in_flight: i64,
    /// Device requests that are over, and had no completion event: they are not in times and bytes.
    pub requests_end_unseen: i64,
    /// Of a dataset that was kept in memory until something asked for it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub flight: Option<Flight>,
    /// How long the tracer took to begin and to end.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub took: Option<Took>,
    /// Libraries that the traced processes mapped: name, version and file.
    pub libraries: Vec<String>,
    /// How many opens of MPI-IO each implementation served.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub mpiio: BTreeMap<&'static str, i64>,
    /// Reads and writes whose bytes are not known, by layer and reason.
    pub unknown_bytes: BTreeMap<String, i64>,
}

/// What it took to trace.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
#[allow(clippy::struct_field_names, reason = "the names of `meta`")]
pub struct Took {
    /// To find out what the kernel allows, and to load the programs.
    pub load_ns: i64,
    /// To attach them, and to look into the files that were mapped.
    pub attach_ns: i64,
    pub detach_ns: i64,
}

/// Why what was kept in memory was written, and how far it reaches.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Flight {
    pub trigger: String,
    /// The time that was to be kept.
    pub asked_ns: i64,
    /// The time in which nothing is missing.
    pub kept_ns: i64,
}

/// The facts of `meta`. Counts and the duration of a run without a recorded end are filled in by the caller.
pub fn header(source: &mut dyn Source) -> Result<Header> {
    let mut meta = BTreeMap::new();
    source.meta(&mut |row| {
        meta.insert(row.key.clone(), row.value.clone());
        Ok(())
    })?;
    let text_of = |key: &str| meta.get(key).cloned();
    // A running total, and a figure of the end.
    let (mut excluded_calls, mut requests_in_flight, mut requests_end_unseen) = (0, 0, 0);
    let mut major_faults: Option<i64> = None;
    let mut unknown_bytes = BTreeMap::new();
    source.metrics(&mut |row| {
        match row.name {
            "excluded_calls" => excluded_calls = excluded_calls.max(row.value as i64),
            name if name == Figure::TargetFaults.name() && row.label.as_deref() == Some(MAJOR) => {
                major_faults = major_faults.max(Some(row.value as i64));
            }
            "requests_in_flight" => requests_in_flight = row.value as i64,
            "requests_end_unseen" => requests_end_unseen = row.value as i64,
            "unknown_bytes" => {
                // A total, too.
                let count: &mut i64 = unknown_bytes.entry(row.label.clone().unwrap_or_default()).or_default();
                *count = (*count).max(row.value as i64);
            }
            _ => {}
        }
        Ok(())
    })?;
    let mut libraries: Vec<(usize, String)> = meta
        .iter()
        .filter_map(|(key, value)| Some((key.strip_prefix("library.")?.parse().ok()?, value.clone())))
        .collect();
    libraries.sort();
    let number = |key: &str| meta.get(key).and_then(|v| v.parse::<i64>().ok());
    let start_wall_ns = number("t0_wall_ns");
    let end = number("end_ns");
    Ok(Header {
        command: text_of("command"),
        host: text_of("host"),
        kernel: text_of("kernel"),
        version: text_of("version"),
        schema: text_of("schema"),
        mode: text_of("mode"),
        clock: text_of("clock"),
        start_wall_ns,
        start: start_wall_ns.map(text::wall),
        duration_ns: end.unwrap_or(0),
        end_recorded: end.is_some(),
        processes: 0,
        ranks: 0,
        files: 0,
        aggregate: meta.contains_key(crate::rows::AGGREGATE),
        detail: text_of(crate::rows::DETAIL),
        read_ahead: text_of(crate::rows::READ_AHEAD),
        excluded_calls,
        major_faults,
        requests_in_flight,
        requests_end_unseen,
        flight: text_of("trigger").map(|trigger| Flight {
            trigger,
            asked_ns: number("flight_ns").unwrap_or(0),
            kept_ns: end.unwrap_or(0).saturating_sub(number("flight_from_ns").unwrap_or(0)),
        }),
        took: number("load_ns").map(|load_ns| Took {
            load_ns,
            attach_ns: number("attach_ns").unwrap_or(0),
            detach_ns: number("detach_ns").unwrap_or(0),
        }),
        libraries: libraries.into_iter().map(|(_, value)| value).collect(),
        mpiio: BTreeMap::new(),
        unknown_bytes,
        unseen_file_ns: None,
    })
}
