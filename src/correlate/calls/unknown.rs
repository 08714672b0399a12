//! Counts the calls whose bytes are not known, by layer and reason.

use std::collections::BTreeMap;

use crate::rows::{Metric, Row};
use crate::vocabulary::Layer;

/// The metric's name.
const NAME: &str = "unknown_bytes";

/// Totals since the start.
#[derive(Default)]
pub struct Unknown {
    counts: BTreeMap<(Layer, &'static str), i64>,
    changed: bool,
}

impl Unknown {
    pub fn add(&mut self, layer: Layer, reason: &'static str) {
        *self.counts.entry((layer, reason)).or_default() += 1;
        self.changed = true;
    }

    /// Writes the totals, if there are new ones.
    pub fn report(&mut self, t_ns: i64, out: &mut Vec<Row>) {
        if std::mem::take(&mut self.changed) {
            out.extend(self.counts.iter().map(|((layer, reason), count)| {
                let label = Some(format!("{layer}: {reason}"));
                Row::Metric(Metric { t_ns, name: NAME, label, value: *count as f64 })
            }));
        }
    }
}
