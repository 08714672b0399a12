//! The first screen: layers, amplification, imbalance.

use crate::analysis::calls::ratio;
use crate::summary::accumulate::{From, Summary};
use crate::summary::groups::imbalance;
use crate::summary::view::{ChainStep, DeviceSample, Imbalance, LayerRow, Overview, Sums, Window};
use crate::vocabulary::{LAYERS, Layer};

impl Summary {
    pub(in crate::summary) fn overview(&self, window: Option<Window>) -> Overview {
        let sums = self.layers.sum(window);
        let total = sums.iter().map(|s| s.self_ns.max(0)).fold(0, i64::saturating_add);
        let covered = self.dims.covered();
        let lost = self.dims.lost_by_layer().1;
        let row = |layer: Layer| {
            let mut s = sums[layer as usize];
            let mut rate = self.rates[layer as usize].per_s(self.second);
            let mut latency = self.ops.total(layer, window);
            if layer == Layer::Block && self.from != From::Sums {
                let (d, of) = (self.disks.top.history.sum(window), self.disks.top.sums(window));
                let DeviceSample { requests: calls, bytes_read, bytes_written, dur_ns, .. } = d;
                s = Sums { calls, bytes_read, bytes_written, dur_ns, errors: of.errors, ..s };
                rate = self.disks.top.rate.per_s(self.second);
                latency = of.device.percentiles(Some(of.device_max));
            }
            let (known, why_not) = covered.get(&layer).cloned().unwrap_or_default();
            if s == Sums::default() && !covered.contains_key(&layer) {
                return None;
            }
            let [calls_per_s, read_per_s, written_per_s] =
                self.per_s(rate, window, [s.calls, s.bytes_read, s.bytes_written]);
            Some(LayerRow {
                layer: Some(layer),
                sums: s,
                calls_per_s,
                read_per_s,
                written_per_s,
                self_share: ratio(s.self_ns.max(0) as f64, total as f64),
                latency,
                covered: known || s != Sums::default(),
                why_not: why_not.filter(|_| !known),
                lost: lost.iter().find(|(l, _)| *l == Some(layer)).map_or(0, |(_, n)| *n),
            })
        };
        let layers: Vec<LayerRow> = LAYERS.into_iter().filter_map(row).collect();
        let [cache_bytes, cache_miss_bytes] = self.cache.sum(window);
        Overview {
            chain: self.chain(&layers, window),
            layers,
            imbalance: self.imbalance(window),
            cache_bytes,
            cache_miss_bytes,
            parts: self.parts.sum(window),
        }
    }

    fn chain(&self, layers: &[LayerRow], window: Option<Window>) -> Vec<ChainStep> {
        // What the program asked for is known from the calls only.
        if self.from != From::Spans {
            return Vec::new();
        }
        let program = self.asked.sum(window);
        let asked = program[0].saturating_add(program[1]);
        let step = |layer, [bytes_read, bytes_written]: [i64; 2]| {
            let ratio = ratio(bytes_read.saturating_add(bytes_written) as f64, asked as f64);
            ChainStep { layer, bytes_read, bytes_written, ratio }
        };
        let mut chain = vec![step(None, program)];
        for row in layers.iter().filter(|r| r.layer != Some(Layer::Block)) {
            if row.sums.bytes() > 0 {
                chain.push(step(row.layer, [row.sums.bytes_read, row.sums.bytes_written]));
            }
        }
        if layers.iter().any(|r| r.layer == Some(Layer::Block)) {
            chain.push(step(Some(Layer::Block), self.disks.traced.sum(window)));
        }
        chain
    }

    fn imbalance(&self, window: Option<Window>) -> Option<Imbalance> {
        let rank = |ix: i32| self.dims.processes.get(&ix).and_then(|facts| facts.rank);
        imbalance(self.processes.processes.iter().map(|(ix, p)| (rank(*ix).or(p.rank), p.total(window))))
    }
}
