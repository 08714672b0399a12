//! The tracer's own share of what the report is about.

use anyhow::Result;
use serde::Serialize;

use crate::analysis::layers::LayerRow;
use crate::analysis::trace::share::{self, TRUSTED_SHARE};
use crate::analysis::trace::source::Source;
use crate::analysis::utilisation::{Utilisation, Utilisations};
use crate::base::text::{percent, time};
use crate::vocabulary::Layer;

/// By how much tracing lengthened the run, as the hooks measured it.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Tracing {
    /// `seconds` as a part of the run.
    pub share: f64,
    /// Of several nodes, of the one with the greatest share, as `run_ns`.
    pub seconds: f64,
    /// For how long calls waited until libraries that they map had probes, in seconds. It is not in `seconds`.
    pub held_s: f64,
    /// What a recorded call cost its thread; `None` without calls.
    pub ns_per_call: Option<f64>,
    /// How long the run was: from when all was attached until the last target ended, or the trace.
    pub run_ns: i64,
}

/// What hooks cost, if that was recorded, and how busy the node was.
pub fn read(source: &mut dyn Source, layers: &[LayerRow]) -> Result<(Option<Tracing>, Vec<Utilisation>)> {
    let (mut costs, mut node) = (share::Tracing::default(), Utilisations::default());
    source.metrics(&mut |row| {
        costs.add(row);
        Ok(())
    })?;
    source.metrics_of_nodes(&mut |host, row| {
        node.add(host, row);
        Ok(())
    })?;
    let node = node.finish();
    let (Some(run_ns), Some(share)) = (costs.run_ns(), costs.share()) else { return Ok((None, node)) };
    let ops = layers.iter().filter(|row| row.layer != Layer::Block.name()).flat_map(|row| &row.ops);
    let calls: i64 = ops.map(|op| op.calls - op.estimated_calls).sum();
    let ns_per_call = (calls > 0).then(|| costs.hooks_ns / calls as f64);
    let (seconds, held_s) = (costs.tracing_ns() / 1e9, costs.held_ns() / 1e9);
    Ok((Some(Tracing { share, seconds, held_s, ns_per_call, run_ns }), node))
}

impl Tracing {
    /// How long the run was held for probes, if it was.
    pub fn held(&self) -> Option<String> {
        (self.held_s > 0.0)
            .then(|| format!("{} of the run, until libraries had probes", time((self.held_s * 1e9) as i64)))
    }

    /// Are seconds distorted by more than they may be?
    pub fn warning(&self) -> Option<String> {
        let share = percent(self.share);
        (self.share > TRUSTED_SHARE).then(|| format!("tracing took about {share} of the run: do not trust its seconds"))
    }

    /// For the head of the report: `about 4.0% of the run (2.10 s of 52.0 s), 1.30 us a call`.
    pub fn text(&self) -> String {
        let (share, own, run) = (percent(self.share), time((self.seconds * 1e9) as i64), time(self.run_ns));
        let each = self.ns_per_call.map_or_else(String::new, |ns| format!(", {} a call", time(ns as i64)));
        format!("about {share} of the run ({own} of {run}){each}")
    }
}
