//! Requests to block devices over time, and how many were in each device.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use crate::analysis::calls::{Figures, Sums};
use crate::base::text::escape;
use crate::export::html::axes::{BINS, Time};
use crate::rows::{Block, FileRollup};

/// Devices that are kept apart.
const DEVICES_MAX: usize = 32;

#[derive(Clone, Default)]
struct Bin {
    sums: Sums,
    depth: i64,
}

/// By device and time.
#[derive(Default)]
pub struct Devices {
    by_name: BTreeMap<String, Vec<Bin>>,
    left_out: i64,
}

impl Devices {
    pub fn block(&mut self, block: &Block, time: Time) {
        let Some((_, figures)) = Figures::of_request(block) else { return };
        let name = block.device_name();
        if let Some(bin) = self.bin(name, time.bin(block.issue_ns)) {
            bin.sums.merge(&figures.sums());
            bin.depth = bin.depth.max(i64::from(block.qdepth));
        }
    }

    /// Requests that were summed up: their number in the device is not known.
    pub fn sums(&mut self, row: &FileRollup, time: Time) {
        let name = row.device.clone().unwrap_or_else(|| "(device not known)".to_owned());
        if let Some(bin) = self.bin(name, time.bin(row.from_ns)) {
            bin.sums.merge(&Figures::of_sum(row).sums());
        }
    }

    fn bin(&mut self, name: String, at: u32) -> Option<&mut Bin> {
        if !self.by_name.contains_key(&name) && self.by_name.len() >= DEVICES_MAX {
            self.left_out = self.left_out.saturating_add(1);
            return None;
        }
        let bins = self.by_name.entry(name).or_insert_with(|| vec![Bin::default(); BINS as usize]);
        bins.get_mut(at as usize)
    }

    pub fn finish(self) -> Value {
        let device = |(name, bins): (String, Vec<Bin>)| {
            let column = |of: fn(&Bin) -> i64| bins.iter().map(of).collect::<Vec<_>>();
            json!({
                "name": escape(name),
                "requests": column(|bin| bin.sums.calls),
                "read": column(|bin| bin.sums.bytes_read),
                "written": column(|bin| bin.sums.bytes_written),
                "ns": column(|bin| bin.sums.dur_ns),
                "depth": column(|bin| bin.depth),
            })
        };
        json!({ "left_out": self.left_out, "list": self.by_name.into_iter().map(device).collect::<Vec<_>>() })
    }
}
