//! The first screen.

use crate::analysis::calls::Sums;
pub use crate::analysis::parallel::ranks::Imbalance;
use crate::rows::PARTS;
use crate::summary::screens::distribution::Percentiles;
use crate::vocabulary::Layer;

/// Screen 1.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Overview {
    /// Every layer that is traced, top to bottom.
    pub layers: Vec<LayerRow>,
    /// Bytes from the calls that the program made itself down to the device.
    pub chain: Vec<ChainStep>,
    /// Over ranks that have done I/O, by the calls that the program made itself; `None` with fewer than two.
    pub imbalance: Option<Imbalance>,
    /// Calls asked the page cache for these bytes, and these were not there.
    pub cache_bytes: i64,
    pub cache_miss_bytes: i64,
    /// What outermost system calls spent their time on, in ns: [`PARTS`].
    pub parts: [i64; PARTS.len()],
}

/// One layer.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct LayerRow {
    pub layer: Option<Layer>,
    /// Over the window.
    pub sums: Sums,
    /// Over the last second that is complete (live), or over the window (replay).
    pub calls_per_s: f64,
    pub read_per_s: f64,
    pub written_per_s: f64,
    /// Part of the exclusive time of all layers, 0 to 1.
    pub self_share: f64,
    pub latency: Option<Percentiles>,
    /// No probe of this layer is attached: no figures, which means nothing about the program.
    pub covered: bool,
    /// Why not, where that is known.
    pub why_not: Option<String>,
    pub lost: u64,
}

/// One step of the amplification chain.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct ChainStep {
    /// `None`: what the program asked for with the calls that it made itself, whatever their layer.
    pub layer: Option<Layer>,
    pub bytes_read: i64,
    pub bytes_written: i64,
    /// Bytes over those of the first step.
    pub ratio: f64,
}
