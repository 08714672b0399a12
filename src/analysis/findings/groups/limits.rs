//! What is remembered has limits. Where one is reached, rules that would judge by a part of what happened are not applied.

/// Something of which there was more than is remembered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Limit {
    /// Groups of calls: later ones are of no file.
    Groups,
    /// Blocks of files in which writes of ranks begin or end.
    Blocks,
    /// Calls that order accesses of ranks.
    Orders,
    /// Operations that other threads carry out.
    Operations,
    /// Streams and what was last done with each.
    Streams,
    /// Paths of one group of calls.
    Paths,
    /// Requests by device, process and time.
    Requests,
    /// Files and requests that were written to devices.
    Written,
    /// Reads and write-back by time.
    WriteBack,
    /// Files of several datasets.
    Files,
}

/// Why rules are not applied, and which.
const STOPPED: [(Limit, &str, &[&str]); 10] = [
    (
        Limit::Groups,
        "calls are on more files than are kept apart",
        &["misaligned-shared", "write-amplification", "file-per-process"],
    ),
    (Limit::Blocks, "ranks wrote to more blocks of files than are remembered", &["misaligned-shared"]),
    (Limit::Orders, "ranks flushed, closed or locked files more often than is remembered", &["conflicting-ranks"]),
    (
        Limit::Operations,
        "more operations were carried out by other threads than are remembered",
        &["independent-strided", "one-writer", "rank-imbalance"],
    ),
    (Limit::Streams, "there were more streams than are remembered", &["stdio-turns"]),
    (Limit::Paths, "more paths were named than are counted", &["metadata-storm"]),
    (
        Limit::Requests,
        "processes used devices for longer than is remembered",
        &["swap", "readahead-waste", "interference", "own-write-back", "device-limit", "write-amplification"],
    ),
    (Limit::Written, "more was written to devices than is remembered", &["write-amplification", "own-write-back"]),
    (Limit::WriteBack, "there were more reads and write-back of devices than are remembered", &["own-write-back"]),
    (
        Limit::Files,
        "datasets have more files than can be compared",
        &["conflicting-ranks", "misaligned-shared", "file-per-process", "write-amplification"],
    ),
];

/// The limits that were reached.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Limits(u16);

impl Limits {
    pub const fn reach(&mut self, limit: Limit) {
        self.0 |= 1 << limit as u16;
    }

    pub const fn has(self, limit: Limit) -> bool {
        self.0 & (1 << limit as u16) != 0
    }

    /// Those of both.
    #[must_use]
    pub const fn and(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    /// Why a rule cannot be applied.
    pub fn against(self, rule: &str) -> Option<&'static str> {
        let stops = |(limit, _, rules): &&(Limit, &str, &[&str])| self.has(*limit) && rules.contains(&rule);
        STOPPED.iter().find(stops).map(|(_, why, _)| *why)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::analysis::findings::rules::RULES;

    #[test]
    fn each_limit_stops_rules_that_there_are() {
        let mut seen = Limits::default();
        for (limit, why, rules) in STOPPED {
            assert!(!seen.has(limit) && !rules.is_empty());
            seen.reach(limit);
            for rule in rules {
                assert!(RULES.iter().any(|known| known.id == *rule), "{rule}");
                let mut one = Limits::default();
                one.reach(limit);
                assert_eq!(one.against(rule), Some(why));
            }
        }
        assert_eq!((Limits::default().against("swap"), seen.against("sync-writes")), (None, None));
    }
}
