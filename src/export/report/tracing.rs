//! The tracer's own share of what the report is about.

use anyhow::Result;
use serde::Serialize;

use super::layers::LayerRow;
use super::source::Source;
use crate::export::text::{percent, time};
use crate::export::{HOOKS_NS, TRACING_NS, TRUSTED_SHARE, tracing_share};
use crate::words::Layer;

/// By how much tracing lengthened the run, as the hooks measured it.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Tracing {
    /// `seconds` as a part of the time that the trace lasted.
    pub share: f64,
    /// Of several nodes, of the one with most.
    pub seconds: f64,
    /// What a recorded call cost its thread; `None` without calls.
    pub ns_per_call: Option<f64>,
}

/// What hooks cost, if that was recorded. `duration_ns` is how long the trace lasted.
pub fn read(source: &mut dyn Source, duration_ns: i64, layers: &[LayerRow]) -> Result<Option<Tracing>> {
    let (mut hooks_ns, mut tracing_ns) = (0.0_f64, None::<f64>);
    source.metrics(&mut |row| {
        match row.name {
            HOOKS_NS => hooks_ns = hooks_ns.max(row.value),
            TRACING_NS => tracing_ns = Some(tracing_ns.unwrap_or(0.0).max(row.value)),
            _ => {}
        }
        Ok(())
    })?;
    let ops = layers.iter().filter(|row| row.layer != Layer::Block.name()).flat_map(|row| &row.ops);
    let calls: i64 = ops.map(|op| op.calls - op.estimated_calls).sum();
    Ok(tracing_ns.map(|ns| Tracing {
        share: tracing_share(ns, duration_ns),
        seconds: ns / 1e9,
        ns_per_call: (calls > 0).then(|| hooks_ns / calls as f64),
    }))
}

impl Tracing {
    /// Are seconds distorted by more than it may be?
    pub fn warning(&self) -> Option<String> {
        let share = percent(self.share);
        (self.share > TRUSTED_SHARE).then(|| format!("tracing took about {share} of the run: do not trust its seconds"))
    }

    /// For the head of the report: `about 4 % of the run (2.1 s of 52 s), 1.3 us a call`.
    pub fn text(&self, duration_ns: i64) -> String {
        let (share, own) = (percent(self.share), time((self.seconds * 1e9) as i64));
        let each = self.ns_per_call.map_or_else(String::new, |ns| format!(", {} a call", time(ns as i64)));
        format!("about {share} of the run ({own} of {}){each}", time(duration_ns))
    }
}
