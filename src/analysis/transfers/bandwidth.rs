//! Bytes and bandwidth of the reads and writes of each process on each file: how many, least, most, mean and deviation.

use anyhow::Result;
use serde::Serialize;

use crate::HashMap;
use crate::analysis::files;
use crate::analysis::moments::Moments;
use crate::analysis::trace::losses::Quality;
use crate::analysis::trace::source::{IdKind, Source};
use crate::rows::{Process, Span};
use crate::vocabulary::{Kind, Layer};

/// Rows in the report.
const TOP: usize = 1000;
/// Processes, each with each of its files and directions, that are remembered.
const REMEMBERED_MAX: usize = 1 << 17;

/// All of them.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Bandwidths {
    /// Those with the most bytes.
    pub rows: Vec<BandwidthRow>,
    /// How many there are besides.
    pub more: usize,
}

/// System calls of a process that moved bytes of a file in one direction.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct BandwidthRow {
    /// Of several nodes: the one that it is on.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub host: Option<String>,
    /// As in the dataset of that node.
    pub file_id: Option<i64>,
    pub path: Option<String>,
    pub process_ix: i64,
    pub pid: Option<i32>,
    pub command: Option<String>,
    pub kind: &'static str,
    /// Calls.
    pub samples: i64,
    pub bytes: i64,
    /// Of a call.
    pub size: Spread,
    /// Bytes per second of a call.
    pub bps: Spread,
    pub complete: bool,
}

/// How values spread.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Spread {
    pub min: f64,
    pub mean: f64,
    pub max: f64,
    /// Of the sample; none of a single call.
    pub stddev: Option<f64>,
}

#[derive(Debug, Clone, Copy)]
struct Sample {
    min: f64,
    max: f64,
    moments: Moments,
}

impl Default for Sample {
    fn default() -> Self {
        Self { min: f64::INFINITY, max: 0.0, moments: Moments::default() }
    }
}

impl Sample {
    fn add(&mut self, value: f64) {
        (self.min, self.max) = (self.min.min(value), self.max.max(value));
        self.moments.add(value);
    }

    fn spread(&self) -> Spread {
        Spread { min: self.min, mean: self.moments.mean, max: self.max, stddev: self.moments.deviation() }
    }
}

#[derive(Debug, Default)]
struct Figures {
    bytes: i64,
    size: Sample,
    bps: Sample,
}

type Key = (i32, Option<i32>, Kind);

/// Sums up by process, file and direction.
#[derive(Default)]
pub struct Bandwidth {
    figures: HashMap<Key, Figures>,
    overflow: bool,
}

impl Bandwidth {
    pub fn span(&mut self, span: &Span) {
        let Some(bytes) = span.bytes.filter(|bytes| *bytes > 0) else { return };
        if span.layer != Layer::Syscall || !span.layer_top || !matches!(span.kind, Kind::Read | Kind::Write) {
            return;
        }
        let key = (span.process_ix, span.file_id, span.kind);
        if self.figures.len() >= REMEMBERED_MAX && !self.figures.contains_key(&key) {
            self.overflow = true;
            return;
        }
        let figures = self.figures.entry(key).or_default();
        figures.bytes = figures.bytes.saturating_add(bytes);
        figures.size.add(bytes as f64);
        figures.bps.add(bytes as f64 * 1e9 / span.net_ns().max(1) as f64);
    }

    /// Those with the most bytes first.
    pub fn finish(self, source: &mut dyn Source, quality: &Quality) -> Result<Bandwidths> {
        let mut all: Vec<(Key, Figures)> = self.figures.into_iter().collect();
        all.sort_by_key(|(key, figures)| (std::cmp::Reverse(figures.bytes), *key));
        let more = all.len().saturating_sub(TOP);
        all.truncate(TOP);
        let described = files::described(source, all.iter().filter_map(|((_, file, _), _)| *file))?;
        let mut processes: HashMap<i32, Option<(i32, Option<String>)>> =
            all.iter().map(|((ix, ..), _)| (*ix, None)).collect();
        source.processes(&mut |process: &Process| {
            if let Some(known) = processes.get_mut(&process.process_ix) {
                let line = Some(process.cmdline.join(" ")).filter(|line| !line.is_empty());
                *known = Some((process.pid, line.or_else(|| process.exe.clone())));
            }
            Ok(())
        })?;
        let complete = !self.overflow && quality.complete(Layer::Syscall);
        let source = &*source;
        let row = |((process, file, kind), figures): (Key, Figures)| {
            let origin = |kind, id: i32| source.origin(kind, i64::from(id)).map(|o| (o.host.to_owned(), o.id));
            let of_process = origin(IdKind::Process, process);
            let known = processes.get(&process).cloned().flatten();
            BandwidthRow {
                process_ix: of_process.as_ref().map_or(i64::from(process), |(_, id)| *id),
                host: of_process.map(|(host, _)| host),
                file_id: file.map(|id| origin(IdKind::File, id).map_or(i64::from(id), |(_, id)| id)),
                path: file.and_then(|id| described.get(&id)?.path.clone()),
                pid: known.as_ref().map(|(pid, _)| *pid),
                command: known.and_then(|(_, command)| command),
                kind: kind.name(),
                samples: figures.size.moments.count,
                bytes: figures.bytes,
                size: figures.size.spread(),
                bps: figures.bps.spread(),
                complete,
            }
        };
        Ok(Bandwidths { rows: all.into_iter().map(row).collect(), more })
    }
}
