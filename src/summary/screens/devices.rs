//! Devices, mounts, coverage and losses.

use std::sync::Arc;

use crate::analysis::calls::Sums;
use crate::summary::screens::distribution::Percentiles;
use crate::summary::screens::history::DeviceSample;
use crate::vocabulary::Layer;

/// Screen 8.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Devices {
    pub rows: Vec<DeviceRow>,
    pub mounts: Vec<MountRow>,
    /// Pages waiting to be written, the whole node; oldest first, one a second.
    pub dirty: Vec<DirtySample>,
}

/// One device.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct DeviceRow {
    /// (major << 20) | minor.
    pub dev: i32,
    pub name: Arc<str>,
    pub requests: i64,
    pub bytes_read: i64,
    pub bytes_written: i64,
    pub errors: i64,
    pub requests_per_s: f64,
    pub read_per_s: f64,
    pub written_per_s: f64,
    /// Part of the window in which a request was in the device, at most 1.
    pub busy: f64,
    /// Requests in the device, mean over requests, and most.
    pub depth_mean: f64,
    pub depth_max: i64,
    /// From queue to issue, and from issue to completion.
    pub queue: Option<Percentiles>,
    pub device: Option<Percentiles>,
    /// Operation, class, requests, bytes; the most bytes first.
    pub classes: Vec<(&'static str, &'static str, i64, i64)>,
    /// The processes that share it; the most bytes first.
    pub users: Vec<DeviceUser>,
    pub other_users: i64,
    /// Of `History`'s samples, as many.
    pub history: Vec<DeviceSample>,
    /// Length of a sample.
    pub history_width_ns: i64,
}

/// Whose bytes go to a device.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct DeviceUser {
    /// `None`: of no traced process, or not known.
    pub process_ix: Option<i32>,
    pub pid: Option<i32>,
    pub rank: Option<i32>,
    pub command: Arc<str>,
    pub requests: i64,
    pub bytes: i64,
}

/// One mount that traced files lie on.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct MountRow {
    pub path: Arc<str>,
    pub fstype: Arc<str>,
    pub source: Arc<str>,
    pub options: Arc<str>,
    pub dev: i64,
    pub scheduler: Option<Arc<str>>,
    pub rotational: Option<bool>,
    pub files: u64,
    pub sums: Sums,
}

/// Dirty memory at one time, bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct DirtySample {
    pub t_ns: i64,
    pub dirty: i64,
    pub writeback: i64,
    /// Above these the kernel begins to write, and makes writers wait.
    pub background_threshold: Option<i64>,
    pub threshold: Option<i64>,
}

/// Screen 9.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Coverage {
    /// By layer and file.
    pub groups: Vec<CoverageGroup>,
    /// Probes that are not attached; the first ones.
    pub refused: Vec<CoverageRow>,
    pub more_refused: u64,
    /// By layer and place, the most first.
    pub losses: Vec<LossRow>,
    /// What was left out on purpose: name, label, how often.
    pub excluded: Vec<(Arc<str>, Arc<str>, f64)>,
}

/// The probes of a layer in one file.
#[derive(Debug, Clone, PartialEq)]
pub struct CoverageGroup {
    pub layer: Layer,
    pub target: Arc<str>,
    /// How many of each are attached, absent, refused, skipped.
    pub attached: usize,
    pub absent: usize,
    pub refused: usize,
    pub skipped: usize,
    /// How they are attached: tier, count.
    pub tiers: Vec<(&'static str, usize)>,
    /// Attached at an instruction that costs a step each time.
    pub stepped: usize,
}

/// A probe that is not attached.
#[derive(Debug, Clone, PartialEq)]
pub struct CoverageRow {
    pub layer: Layer,
    pub target: Arc<str>,
    pub symbol: Arc<str>,
    pub status: &'static str,
    pub reason: Option<Arc<str>>,
}

/// What was lost at one place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LossRow {
    pub layer: Option<Layer>,
    pub place: &'static str,
    pub count: i64,
    pub last_ns: i64,
}
