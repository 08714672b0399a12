//! Bytes per second over time, by node, layer and kind: those of the view `v_bandwidth_over_time`.

use std::collections::BTreeMap;

use anyhow::Result;

use super::messages::{CounterDescriptor, TrackDescriptor};
use super::packets::Packets;
use crate::rows::Span;
use crate::vocabulary::{Kind, Layer};

/// A bin of time.
const BIN_NS: i64 = 100_000_000;
/// Bins that are kept.
const BINS_MAX: usize = 1 << 19;

/// What a bin has by itself, and by how much the bytes of it and of all later ones are more than those of the one
/// before.
#[derive(Debug, Clone, Copy, Default)]
struct Bin {
    own: f64,
    step: f64,
}

type Key = (Option<String>, Layer, Kind);

#[derive(Debug, Default)]
pub struct Rates {
    all: BTreeMap<Key, BTreeMap<i64, Bin>>,
    bins: usize,
    /// There are more than there is room for.
    pub overflow: bool,
}

impl Rates {
    pub fn add(&mut self, host: Option<&str>, span: &Span) {
        let bytes = span.bytes.filter(|bytes| *bytes > 0 && span.layer_top);
        let Some(bytes) = bytes.filter(|_| matches!(span.kind, Kind::Read | Kind::Write)) else { return };
        if self.bins >= BINS_MAX {
            self.overflow = true;
            return;
        }
        let (start, took) = (span.start_ns, span.dur_ns.max(1));
        let end = start.saturating_add(took);
        let (first, last) = (start.div_euclid(BIN_NS), end.saturating_sub(1).div_euclid(BIN_NS));
        let share = |ns: i64| bytes as f64 * (ns as f64 / took as f64);
        let bins = self.all.entry((host.map(str::to_owned), span.layer, span.kind)).or_default();
        let before = bins.len();
        if first == last {
            bins.entry(first).or_default().own += bytes as f64;
        } else {
            bins.entry(first).or_default().own += share((first + 1).saturating_mul(BIN_NS).saturating_sub(start));
            bins.entry(last).or_default().own += share(end.saturating_sub(last.saturating_mul(BIN_NS)));
            if last - first > 1 {
                bins.entry(first + 1).or_default().step += share(BIN_NS);
                bins.entry(last).or_default().step -= share(BIN_NS);
            }
        }
        self.bins += bins.len() - before;
    }

    /// A track for each, with a value wherever the rate changes.
    pub fn write(self, packets: &mut Packets<'_>) -> Result<()> {
        for ((host, layer, kind), bins) in self.all {
            let node = host.map(|host| crate::base::text::escape(host) + ": ").unwrap_or_default();
            let track = packets.track(TrackDescriptor {
                name: Some(format!("{node}{layer} {} by second", kind.name())),
                counter: Some(CounterDescriptor { unit_name: Some("B/s".to_owned()) }),
                ..TrackDescriptor::default()
            })?;
            let per_second = 1e9 / BIN_NS as f64;
            let mut level = 0.0_f64;
            let mut next = bins.keys().skip(1).copied().map(Some).chain([None]);
            for (bin, Bin { own, step }) in &bins {
                // What is left of sums of fractions is no byte.
                level = if (level + step).abs() < 1e-3 { 0.0 } else { level + step };
                packets.count(track, bin.saturating_mul(BIN_NS), (own + level) * per_second)?;
                if next.next().flatten() != Some(bin + 1) {
                    packets.count(track, (bin + 1).saturating_mul(BIN_NS), level * per_second)?;
                }
            }
        }
        Ok(())
    }
}
