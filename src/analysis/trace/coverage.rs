//! Which layers were seen at all, and by which probes.

use std::collections::BTreeMap;

use anyhow::Result;
use serde::Serialize;

use crate::analysis::trace::source::Source;
use crate::rows::Coverage;
use crate::vocabulary::{LAYERS, Layer};

/// How much of a layer was seen.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct LayerCoverage {
    pub layer: &'static str,
    pub attached: usize,
    pub probes: usize,
    /// Functions that the libraries do not have, of other versions: no program can call them.
    pub absent: usize,
    /// Attached probes by tier.
    pub tiers: BTreeMap<&'static str, usize>,
    /// Why probes were not attached, with their number.
    pub refused: BTreeMap<String, usize>,
    /// Functions whose calls were shorter than their probe and lost it while the trace ran, and why: their bytes are exact,
    /// the number of their calls is estimated.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub demoted: BTreeMap<String, String>,
    /// Why calls inside I/O were not recorded all the time.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub paused: Option<String>,
    /// Set when no probe is attached: why nothing can be known about the layer.
    pub not_covered: Option<String>,
}

/// A program that could not be looked into, and why: calls of the libraries in it are not seen.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct OpaqueProgram {
    pub program: String,
    pub reason: String,
}

/// Coverage by layer, row by row.
#[derive(Debug, Clone)]
pub struct Layers {
    layers: Vec<LayerCoverage>,
    opaque: Vec<OpaqueProgram>,
}

impl Default for Layers {
    fn default() -> Self {
        Self { layers: LAYERS.iter().map(|layer| LayerCoverage::new(*layer)).collect(), opaque: Vec::new() }
    }
}

impl Layers {
    pub fn add(&mut self, row: &Coverage) {
        self.layers[row.layer as usize].add(row);
        if row.layer == Layer::App && row.symbol.is_empty() {
            let reason = row.reason.clone().unwrap_or_default();
            self.opaque.push(OpaqueProgram { program: row.target.clone(), reason });
        }
    }

    /// One row per layer, top to bottom, whether or not it has probes; and the programs that could not be looked into.
    pub fn finish(mut self) -> (Vec<LayerCoverage>, Vec<OpaqueProgram>) {
        self.layers.iter_mut().for_each(LayerCoverage::explain);
        (self.layers, self.opaque)
    }
}

/// Coverage of a source.
pub fn coverage(source: &mut dyn Source) -> Result<(Vec<LayerCoverage>, Vec<OpaqueProgram>)> {
    let mut layers = Layers::default();
    source.coverage(&mut |row| {
        layers.add(row);
        Ok(())
    })?;
    Ok(layers.finish())
}

impl LayerCoverage {
    fn new(layer: Layer) -> Self {
        let (tiers, refused) = (BTreeMap::new(), BTreeMap::new());
        let demoted = BTreeMap::new();
        Self {
            layer: layer.name(),
            attached: 0,
            probes: 0,
            absent: 0,
            tiers,
            refused,
            demoted,
            paused: None,
            not_covered: None,
        }
    }

    fn add(&mut self, row: &Coverage) {
        if row.status == "absent" && !row.symbol.is_empty() {
            self.absent += 1;
            return;
        }
        if row.status == "paused" {
            // The last one has the total time.
            self.paused.clone_from(&row.reason);
            return;
        }
        if row.status == "demoted" {
            self.demoted.entry(row.symbol.clone()).or_insert_with(|| row.reason.clone().unwrap_or_default());
            return;
        }
        self.probes += 1;
        if row.status == "attached" {
            self.attached += 1;
            *self.tiers.entry(row.tier.unwrap_or("unknown tier")).or_default() += 1;
        } else {
            let reason = row.reason.as_deref().unwrap_or("no reason recorded");
            *self.refused.entry(format!("{}: {reason}", row.status)).or_default() += 1;
        }
    }

    fn explain(&mut self) {
        if self.attached == 0 {
            let main = self.refused.iter().max_by_key(|(_, n)| **n).map(|(reason, _)| reason.clone());
            let none = if self.absent > 0 { "the library has none of its functions" } else { "no probes" };
            self.not_covered = Some(main.unwrap_or_else(|| none.to_owned()));
        }
    }
}
