//! Requests by device, as `/sys/block/*/stat` counts them: stacked devices have each their own.

use std::collections::BTreeMap;

use serde::Serialize;

use crate::HashMap;
use crate::analysis::calls::request_failed;
use crate::analysis::trace::losses::Quality;
use crate::analysis::trace::source::{Hosts, IdKind, Source};
use crate::base::hist::{Histogram, REPORT_BITS};
use crate::rows::{Block, FileRollup};
use crate::vocabulary::Layer;

/// One device of a node. Requests of all programs on it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct DeviceRow {
    /// Of several nodes: the one that it is on.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub host: Option<String>,
    /// Its name, or its numbers (`8:0`).
    pub device: String,
    pub reads: i64,
    pub bytes_read: i64,
    pub writes: i64,
    pub bytes_written: i64,
    pub flushes: i64,
    pub discards: i64,
    /// Time between queue and driver, and in the device; of requests that are over.
    pub queue_ns: i64,
    pub device_ns: i64,
    /// Nearest rank, within 1/64. `None` where requests were summed up.
    pub p99_ns: Option<i64>,
    pub max_ns: i64,
    /// Requests in the device at once, at most.
    pub max_qdepth: i64,
    pub errors: i64,
    /// Requests that were not over when the trace ended, in no other figure.
    pub unfinished: i64,
    pub complete: bool,
}

#[derive(Default)]
struct Sum {
    row: DeviceRow,
    durations: Histogram<REPORT_BITS>,
}

fn add(to: &mut i64, n: i64) {
    *to = to.saturating_add(n);
}

impl Sum {
    /// So many requests with so many bytes.
    fn requests(&mut self, op: &str, n: i64, bytes: i64) {
        let row = &mut self.row;
        let (calls, sum) = match op {
            "read" => (&mut row.reads, Some(&mut row.bytes_read)),
            "write" => (&mut row.writes, Some(&mut row.bytes_written)),
            "flush" => (&mut row.flushes, None),
            "discard" => (&mut row.discards, None),
            _ => return,
        };
        add(calls, n);
        if let Some(sum) = sum {
            add(sum, bytes);
        }
    }
}

/// Sums up by node and device.
pub struct Devices {
    /// Whose requests, and processes, are which.
    hosts: [Hosts; 2],
    /// By number: names are read once for each.
    of_requests: HashMap<(Option<String>, i32), Sum>,
    of_sums: BTreeMap<(Option<String>, String), Sum>,
}

impl Devices {
    pub fn new(source: &dyn Source) -> Self {
        let hosts = [IdKind::Request, IdKind::Process].map(|kind| source.hosts(kind));
        Self { hosts, of_requests: HashMap::default(), of_sums: BTreeMap::new() }
    }

    pub fn block(&mut self, block: &Block) {
        let host = self.hosts[0].of(block.req_id).map(str::to_owned);
        let sum = self.of_requests.entry((host, block.dev)).or_default();
        if sum.row.device.is_empty() {
            sum.row.device = block.device_name();
        }
        add(&mut sum.row.queue_ns, block.issue_ns.saturating_sub(block.queue_ns));
        sum.row.max_qdepth = sum.row.max_qdepth.max(block.qdepth.into());
        add(&mut sum.row.errors, request_failed(block).into());
        if let Some(ns) = block.dur_ns {
            add(&mut sum.row.device_ns, ns);
            sum.row.max_ns = sum.row.max_ns.max(ns);
            sum.durations.add(ns);
        }
        if block.status.is_none() {
            add(&mut sum.row.unfinished, 1);
        } else {
            sum.requests(block.op, 1, block.bytes.into());
        }
    }

    /// Requests that were summed up.
    pub fn sums(&mut self, row: &FileRollup) {
        let (Layer::Block, Some(device)) = (row.layer, &row.device) else { return };
        let host = row.process_ix.and_then(|id| self.hosts[1].of(id.into())).map(str::to_owned);
        let sum = self.of_sums.entry((host, device.clone())).or_default();
        sum.requests(row.op, row.calls, row.bytes);
        add(&mut sum.row.device_ns, row.dur_ns);
        add(&mut sum.row.queue_ns, row.wait_ns);
        add(&mut sum.row.errors, row.errors);
        sum.row.max_ns = sum.row.max_ns.max(row.max_ns);
    }

    /// Those with the most time first.
    pub fn rows(self, quality: &Quality) -> Vec<DeviceRow> {
        let complete = quality.complete(Layer::Block);
        let quantile = |sum: &Sum| sum.durations.quantile(0.99).map(|ns| i64::try_from(ns).unwrap_or(i64::MAX));
        let of_requests = self.of_requests.into_iter().map(|((host, _), sum)| {
            let p99_ns = quantile(&sum).map(|ns| ns.min(sum.row.max_ns));
            DeviceRow { host, p99_ns, complete, ..sum.row }
        });
        let of_sums =
            self.of_sums.into_iter().map(|((host, device), sum)| DeviceRow { host, device, complete, ..sum.row });
        let mut rows: Vec<DeviceRow> = of_requests.chain(of_sums).collect();
        rows.sort_by(|a, b| {
            b.device_ns.cmp(&a.device_ns).then_with(|| (&a.host, &a.device).cmp(&(&b.host, &b.device)))
        });
        rows
    }
}
