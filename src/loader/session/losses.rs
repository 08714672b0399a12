//! What was lost: counted by the kernel side, by cause and layer.

use crate::loader::session::Session;
use crate::rows::{DETAIL, Loss};
use crate::skel::types::{iot_limit, iot_loss};
use crate::vocabulary::{LAYERS, Layer};
use libbpf_rs::{MapCore as _, MapFlags};
use std::time::Instant;

/// Layers that the table of losses has room for.
const LOSS_LAYERS: u32 = iot_limit::IOT_LAYERS.0;

/// Calls that are left out on purpose: counted, and not a loss.
pub const EXCLUDED: &str = "excluded";

/// Page faults that are not looked at because another thread changes the mappings meanwhile: most of them are
/// on memory without a file, so they are counted, and no loss.
pub const UNPLACED: &str = "mapping";

impl Session<'_> {
    /// What was lost since the last call; `t_ns` is relative to `t0`. Calls that were left out on purpose
    /// (sockets, pipes, terminals, devices) are among them, as [`EXCLUDED`].
    pub fn losses(&mut self, t_ns: i64) -> Vec<Loss> {
        if self.settles.is_some_and(|at| Instant::now() >= at) {
            self.settles = None;
            self.look_again();
            self.set_settled(true);
            self.engine.rest();
        }
        let mut rows = Vec::new();
        let losses = iot_loss::IOT_LOSS_KINDS.0;
        for key in (0..losses * LOSS_LAYERS).filter(|key| key / LOSS_LAYERS != iot_loss::IOT_LOSS_TAKEN.0) {
            let Ok(Some(counts)) = self.skel.maps.iot_losses.lookup_percpu(&key.to_ne_bytes(), MapFlags::ANY) else {
                continue;
            };
            for (cpu, bytes) in counts.iter().enumerate() {
                let n = bytes.first_chunk().map_or(0, |b| u64::from_ne_bytes(*b));
                let seen = self.seen_losses.entry((key, cpu)).or_default();
                if n > *seen {
                    let layer = LAYERS.get((key % LOSS_LAYERS) as usize).copied();
                    rows.push(Loss {
                        t_ns,
                        layer: layer.filter(|l| *l != Layer::App),
                        cpu: Some(cpu as i16),
                        place: loss_name(key / LOSS_LAYERS),
                        process_ix: None,
                        count: (n - *seen) as i64,
                    });
                    *seen = n;
                }
            }
        }
        let losses = &self.skel.maps.iot_losses;
        rows.extend(self.misses.losses(t_ns, || Self::taken(losses)));
        rows
    }

    /// How often a copy of a program took what the first one had missed.
    fn taken(losses: &impl libbpf_rs::MapCore) -> u64 {
        let count = |layer: u32| -> u64 {
            let key = iot_loss::IOT_LOSS_TAKEN.0 * LOSS_LAYERS + layer;
            let counts = losses.lookup_percpu(&key.to_ne_bytes(), MapFlags::ANY).ok().flatten().unwrap_or_default();
            counts.iter().filter_map(|bytes| bytes.first_chunk()).map(|b| u64::from_ne_bytes(*b)).sum()
        };
        (0..LOSS_LAYERS).map(count).sum()
    }
}

/// The name of a loss in the dataset, in the order of their numbers.
const LOSS_NAMES: [(iot_loss, &str); iot_loss::IOT_LOSS_KINDS.0 as usize] = [
    (iot_loss::IOT_LOSS_RING, "ring"),
    (iot_loss::IOT_LOSS_DEPTH, "stack_depth"),
    (iot_loss::IOT_LOSS_STORAGE, "task_storage"),
    (iot_loss::IOT_LOSS_RETURN, "unmatched_return"),
    (iot_loss::IOT_LOSS_TEXT, "text"),
    (iot_loss::IOT_LOSS_MAP_FULL, "map_full"),
    (iot_loss::IOT_LOSS_OTHER_STACK, "other_stack"),
    (iot_loss::IOT_LOSS_MAPPING, UNPLACED),
    (iot_loss::IOT_LOSS_EXCLUDED, EXCLUDED),
    (iot_loss::IOT_LOSS_DETAIL, DETAIL),
    (iot_loss::IOT_LOSS_REQUEST_END, "request_end"),
    (iot_loss::IOT_LOSS_TAKEN, "taken"),
];

const _: () = {
    let mut i = 0;
    while i < LOSS_NAMES.len() {
        assert!(LOSS_NAMES[i].0.0 as usize == i, "losses stand in the order of their numbers");
        i += 1;
    }
};

fn loss_name(loss: u32) -> &'static str {
    LOSS_NAMES.get(loss as usize).map_or("unknown", |(_, name)| name)
}
