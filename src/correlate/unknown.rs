//! Counts calls that moved data and do not tell how much, by layer and reason.

use std::collections::BTreeMap;

use super::rows::{Metric, Row};
use crate::words::Layer;

/// Counts since the start, and whether they were reported.
#[derive(Default)]
pub struct Unknown {
    counts: BTreeMap<(Layer, &'static str), (u64, bool)>,
}

impl Unknown {
    pub fn add(&mut self, layer: Layer, reason: &'static str) {
        let count = self.counts.entry((layer, reason)).or_default();
        *count = (count.0 + 1, true);
    }

    /// Reports the totals that changed.
    pub fn report(&mut self, t_ns: i64, out: &mut Vec<Row>) {
        for ((layer, reason), (count, changed)) in &mut self.counts {
            if std::mem::take(changed) {
                let label = Some(format!("{layer}: {reason}"));
                out.push(Row::Metric(Metric { t_ns, name: "unknown_bytes", label, value: *count as f64 }));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn totals_are_reported_when_they_changed() {
        let mut unknown = Unknown::default();
        let mut told = |unknown: &mut Unknown| {
            let mut out = Vec::new();
            unknown.report(7, &mut out);
            let metric = |row: Row| if let Row::Metric(m) = row { (m.label.unwrap_or_default(), m.value) } else { panic!() };
            out.into_iter().map(metric).collect::<Vec<_>>()
        };
        unknown.add(Layer::Hdf5, "why");
        unknown.add(Layer::Netcdf, "why");
        unknown.add(Layer::Netcdf, "why");
        assert_eq!(told(&mut unknown), [("netcdf: why".to_owned(), 2.0), ("hdf5: why".to_owned(), 1.0)]);
        assert_eq!(told(&mut unknown), []);
        unknown.add(Layer::Hdf5, "why");
        assert_eq!(told(&mut unknown), [("hdf5: why".to_owned(), 2.0)]);
    }
}
