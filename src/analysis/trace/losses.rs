//! What was lost, and which figures that could have distorted.

use std::collections::BTreeMap;

use anyhow::Result;
use serde::Serialize;

use crate::analysis::trace::source::Source;
use crate::rows::Loss;
use crate::vocabulary::{LAYERS, Layer};

/// Events seen by a hook and not in the trace.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct LossRow {
    /// `None`: it could have been any layer.
    pub layer: Option<&'static str>,
    pub place: &'static str,
    pub count: i64,
}

/// Which figures loss could have distorted.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Quality {
    lost: [bool; LAYERS.len()],
}

impl Quality {
    /// Counts, bytes and durations of the layer are whole.
    pub fn complete(&self, layer: Layer) -> bool {
        !self.lost[layer as usize]
    }

    /// Exclusive times of the layer are whole: a call lost below leaves its time with the caller.
    pub fn exclusive(&self, layer: Layer) -> bool {
        !self.lost[layer as usize..].iter().any(|lost| *lost)
    }

    /// Nothing was lost anywhere.
    pub fn all(&self) -> bool {
        self.exclusive(LAYERS[0])
    }
}

/// What was lost at one place of a layer.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Lost {
    pub count: i64,
    /// When it was last noticed, in ns since the start of the trace.
    pub last_ns: i64,
}

/// All losses, summed up by layer and place.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Losses(BTreeMap<(Option<Layer>, &'static str), Lost>);

impl Losses {
    pub fn add(&mut self, row: &Loss) {
        let lost = self.0.entry((row.layer, row.place)).or_default();
        lost.count = lost.count.saturating_add(row.count);
        lost.last_ns = lost.last_ns.max(row.t_ns);
    }

    /// Adds those of another time.
    pub fn merge(&mut self, later: &Self) {
        for (key, more) in &later.0 {
            let lost = self.0.entry(*key).or_default();
            lost.count = lost.count.saturating_add(more.count);
            lost.last_ns = lost.last_ns.max(more.last_ns);
        }
    }

    /// That nothing was lost at a place is known, too.
    pub fn expect(&mut self, layer: Layer, place: &'static str) {
        self.0.entry((Some(layer), place)).or_default();
    }

    /// By layer and place.
    pub fn iter(&self) -> impl Iterator<Item = (Option<Layer>, &'static str, Lost)> {
        self.0.iter().map(|((layer, place), lost)| (*layer, *place, *lost))
    }

    /// Everything that is in no figure, and the same by layer (`None`: it could have been any), the most first. Calls that
    /// are only missing one by one are in the sums.
    pub fn by_layer(&self) -> (u64, Vec<(Option<Layer>, u64)>) {
        let mut by_layer: BTreeMap<Option<Layer>, u64> = BTreeMap::new();
        for (layer, _, lost) in self.iter().filter(|(_, place, _)| *place != crate::rows::DETAIL) {
            let sum = by_layer.entry(layer).or_default();
            *sum = sum.saturating_add(u64::try_from(lost.count).unwrap_or(0));
        }
        let mut by_layer: Vec<_> = by_layer.into_iter().filter(|(_, n)| *n > 0).collect();
        by_layer.sort_by_key(|(_, n)| std::cmp::Reverse(*n));
        (by_layer.iter().map(|(_, n)| *n).fold(0, u64::saturating_add), by_layer)
    }

    /// The part of the events of a layer, of which so many were recorded, that is missing: 0 to 1.
    pub fn share(&self, layer: Layer, recorded: i64) -> f64 {
        let of_layer = self.by_layer().1.into_iter().filter(|(of, _)| of.is_none_or(|of| of == layer));
        let lost: u64 = of_layer.map(|(_, n)| n).fold(0, u64::saturating_add);
        if lost == 0 { 0.0 } else { lost as f64 / (lost as f64 + recorded as f64) }
    }

    /// The greatest first.
    pub fn rows(&self) -> Vec<LossRow> {
        let row = |(layer, place, lost): (Option<Layer>, _, Lost)| LossRow {
            layer: layer.map(Layer::name),
            place,
            count: lost.count,
        };
        let mut rows: Vec<_> = self.iter().filter(|(.., lost)| lost.count != 0).map(row).collect();
        rows.sort_by_key(|row| std::cmp::Reverse(row.count));
        rows
    }

    /// Which figures they could have distorted.
    pub fn quality(&self) -> Quality {
        let mut lost = [false; LAYERS.len()];
        for (layer, count) in self.by_layer().1 {
            match layer {
                Some(layer) => lost[layer as usize] |= count > 0,
                None => lost = [true; LAYERS.len()],
            }
        }
        Quality { lost }
    }
}

/// What a source has lost.
pub fn losses(source: &mut dyn Source) -> Result<Losses> {
    let mut losses = Losses::default();
    source.losses(&mut |row| {
        losses.add(row);
        Ok(())
    })?;
    Ok(losses)
}
