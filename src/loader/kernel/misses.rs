//! Events that no program saw, because the kernel does not run one inside itself.

use crate::rows::Loss;
use crate::vocabulary::Layer;
use libbpf_rs::query::ProgInfoIter;
use std::collections::HashMap;

/// How often skipped runs are asked for.
const EVERY_NS: i64 = 1_000_000_000;

/// Copies of a program for one hook: what the first one misses, another one claims (`bpf/block/block.h`).
pub const COPIED: [&str; 5] = ["iot_bio_queue", "iot_rq_insert", "iot_rq_issue", "iot_rq_complete", "iot_bio_complete"];

/// Which of several copies a program is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Copy {
    Only,
    First,
    Other,
}

impl Copy {
    /// By its name, which ends in the number of the copy.
    pub fn of(program: &str) -> Self {
        match COPIED.iter().find_map(|hook| program.strip_prefix(hook)) {
            None => Self::Only,
            Some("0") => Self::First,
            Some(_) => Self::Other,
        }
    }
}

#[derive(Debug)]
struct Program {
    layer: Layer,
    copy: Copy,
    seen: u64,
}

/// What is known of skipped runs.
#[derive(Debug, Default)]
pub struct Misses {
    /// Our programs by the number that the kernel gave them.
    programs: HashMap<u32, Program>,
    /// Of first copies, by the last count.
    first: u64,
    /// Of these, those that were reported as lost.
    reported: u64,
    read: i64,
}

impl Misses {
    pub fn add(&mut self, id: u32, name: &str, layer: Layer) {
        self.programs.insert(id, Program { layer, copy: Copy::of(name), seen: 0 });
    }

    /// The last count is still to come, whenever the one before was.
    pub fn last(&mut self) {
        self.read = -EVERY_NS;
    }

    /// What was missed since the last look, if it is time for one. `claimed`: how much of what first copies missed
    /// others claimed; it is asked for after the kernel's counts, so that it is not behind them.
    pub fn losses(&mut self, t_ns: i64, claimed: impl FnOnce() -> u64) -> Vec<Loss> {
        // The kernel lists every program of the machine; now and then is enough.
        if t_ns - self.read < EVERY_NS {
            return Vec::new();
        }
        self.read = t_ns;
        let infos = ProgInfoIter::default().map(|info| (info.id, info.recursion_misses));
        self.count(t_ns, infos, claimed)
    }

    fn count(
        &mut self,
        t_ns: i64,
        misses: impl Iterator<Item = (u32, u64)>,
        claimed: impl FnOnce() -> u64,
    ) -> Vec<Loss> {
        let loss = |layer: Layer, count: u64| Loss {
            t_ns,
            layer: Some(layer).filter(|l| *l != Layer::App),
            cpu: None,
            place: "recursion",
            process_ix: None,
            count: count as i64,
        };
        let mut rows = Vec::new();
        for (id, misses) in misses {
            let Some(program) = self.programs.get_mut(&id) else { continue };
            let new = misses.saturating_sub(program.seen);
            program.seen = program.seen.max(misses);
            match program.copy {
                Copy::Only if new > 0 => rows.push(loss(program.layer, new)),
                Copy::First => self.first += new,
                Copy::Only | Copy::Other => {}
            }
        }
        let unseen = self.first.saturating_sub(claimed());
        if unseen > self.reported {
            rows.push(loss(Layer::Block, unseen - self.reported));
            self.reported = unseen;
        }
        rows
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_another_copy_claimed_is_not_lost() {
        let mut misses = Misses::default();
        for (id, name) in [(1, "iot_rq_issue0"), (2, "iot_rq_issue1"), (3, "iot_sys_exit"), (4, "iot_rq_complete0")] {
            misses.add(id, name, if id == 3 { Layer::Syscall } else { Layer::Block });
        }
        let mut count = |counts: [u64; 4], claimed: u64| -> Vec<(Option<Layer>, i64)> {
            let counts = (1..).zip(counts).chain([(9, 9)]);
            misses.count(0, counts, || claimed).into_iter().map(|l| (l.layer, l.count)).collect()
        };
        assert_eq!(count([3, 1, 0, 2], 5), []);
        assert_eq!(count([4, 1, 2, 2], 5), [(Some(Layer::Syscall), 2), (Some(Layer::Block), 1)]);
        assert_eq!(count([4, 1, 2, 2], 5), []);
    }
}
