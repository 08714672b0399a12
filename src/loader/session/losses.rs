//! What was lost: counted by the kernel side, by cause and layer.

use crate::loader::session::Session;
use crate::rows::{DETAIL, Loss};
use crate::skel::types::iot_loss;
use crate::vocabulary::{LAYERS, Layer};
use libbpf_rs::{MapCore, MapFlags};
use std::time::Instant;

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
        let losses = &self.skel.maps.iot_losses;
        for loss in (0..iot_loss::IOT_LOSS_KINDS.0).filter(|loss| *loss != iot_loss::IOT_LOSS_CLAIMED.0) {
            for (cpu, layer, n) in counts(losses, loss) {
                let seen = self.seen_losses.entry((loss, layer, cpu)).or_default();
                if n > *seen {
                    rows.push(Loss {
                        t_ns,
                        layer: LAYERS.get(layer).copied().filter(|l| *l != Layer::App),
                        cpu: Some(cpu as i16),
                        place: loss_name(loss),
                        process_ix: None,
                        count: (n - *seen) as i64,
                    });
                    *seen = n;
                }
            }
        }
        // How often a copy of a program claimed what the first one had missed.
        let claimed = || counts(losses, iot_loss::IOT_LOSS_CLAIMED.0).iter().map(|(_, _, n)| n).sum();
        rows.extend(self.misses.losses(t_ns, claimed));
        rows
    }

    /// Rings are there from now on. That hooks found none before is no loss: the trace begins later.
    pub fn begin_ring_losses(&mut self) {
        let ring = iot_loss::IOT_LOSS_RING.0;
        let seen = counts(&self.skel.maps.iot_losses, ring);
        self.seen_losses.extend(seen.into_iter().map(|(cpu, layer, n)| ((ring, layer, cpu), n)));
    }
}

/// CPU, layer and count of those that are not zero; empty where the kernel does not give them.
fn counts(losses: &impl MapCore, loss: u32) -> Vec<(usize, usize, u64)> {
    let by_cpu = losses.lookup_percpu(&loss.to_ne_bytes(), MapFlags::ANY).ok().flatten().unwrap_or_default();
    let of_cpu = |(cpu, bytes): (usize, &Vec<u8>)| {
        let layers = bytes.as_chunks().0.iter().map(|n| u64::from_ne_bytes(*n)).enumerate();
        layers.filter(|(_, n)| *n > 0).map(move |(layer, n)| (cpu, layer, n)).collect::<Vec<_>>()
    };
    by_cpu.iter().enumerate().flat_map(of_cpu).collect()
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
    (iot_loss::IOT_LOSS_CLAIMED, "claimed"),
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
