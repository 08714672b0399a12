//! Counts what did not make it into the output, by place and layer.

use std::collections::BTreeMap;

use crate::rows::{Loss, Row};
use crate::vocabulary::Layer;

/// Losses since the last report.
#[derive(Default)]
pub struct Losses {
    counts: BTreeMap<(&'static str, Option<Layer>), i64>,
}

impl Losses {
    pub fn add(&mut self, place: &'static str, layer: Option<Layer>, count: usize) {
        if count > 0 {
            *self.counts.entry((place, layer)).or_default() += count as i64;
        }
    }

    /// Reports and forgets.
    pub fn report(&mut self, t_ns: i64, out: &mut Vec<Row>) {
        while let Some(((place, layer), count)) = self.counts.pop_first() {
            out.push(Row::Loss(Loss { t_ns, layer, cpu: None, place, process_ix: None, count }));
        }
    }
}
