//! What is wrong now: rules over the last minute, applied from time to time while the trace goes on, for metrics, `--trigger`
//! and `--detail`.

use crate::analysis::findings::{Finding, Findings, Live};
use crate::analysis::nesting::{FORGETS, Nesting};
use crate::analysis::parallel::ranks::OwnCalls;
use crate::rows::Row;
use crate::vocabulary::flag;
use std::collections::HashSet;
use std::time::Duration;

/// How often rules are applied.
const EVERY: Duration = Duration::from_secs(2);

/// Follows the rows of a trace.
pub struct Watch {
    nesting: Nesting,
    live: Live,
    /// What programs called themselves, where that is wanted.
    own: Option<OwnCalls>,
    aggregate: bool,
    next: Duration,
    /// When threads are forgotten.
    forgets: Duration,
    /// Rules whose findings were wanted at the last look, to see which are new.
    held: HashSet<&'static str>,
}

impl Watch {
    /// `own`: sums of what programs call themselves are taken, as metrics have them.
    pub fn new(aggregate: bool, own: bool) -> Self {
        Self {
            nesting: Nesting::default(),
            live: Live::new(true, 1),
            own: own.then(OwnCalls::default),
            aggregate,
            next: EVERY,
            forgets: FORGETS,
            held: HashSet::new(),
        }
    }

    /// Takes rows, in the order of the correlator.
    pub fn push(&mut self, rows: &[Row]) {
        for row in rows {
            match row {
                Row::Span(span) => {
                    let around = self.nesting.of(span);
                    // What a summed call comes to is in the sums.
                    if span.flags & flag::SUMMED == 0 {
                        self.live.span(span, &around);
                        self.own.iter_mut().for_each(|own| own.span(span, &around));
                    }
                }
                Row::FileRollup(row) => {
                    self.live.sums(row);
                    self.own.iter_mut().for_each(|own| own.sums(row, self.aggregate));
                }
                Row::Block(block) if !self.aggregate => self.live.block(block),
                _ => self.live.describe(row),
            }
        }
    }

    /// What programs called themselves since this was taken before, where that is wanted.
    pub fn take_own(&mut self) -> Option<OwnCalls> {
        self.own.as_mut().map(std::mem::take)
    }

    /// Applies the rules, if it is time to.
    pub fn look(&mut self, elapsed: Duration) -> Option<Findings> {
        if elapsed < self.next {
            return None;
        }
        self.next = elapsed + EVERY;
        if elapsed >= self.forgets {
            self.forgets = elapsed + FORGETS;
            self.nesting.forget_idle();
        }
        self.live.tick(elapsed.as_nanos() as i64);
        Some(self.live.find(None, self.aggregate))
    }

    /// The wanted ones of the findings of a look whose rules had none in the look before: one that grows until it is wanted is
    /// new then.
    pub fn new_ones<'a>(&mut self, all: &'a Findings, wanted: impl Fn(&Finding) -> bool) -> Vec<&'a Finding> {
        let now: Vec<&Finding> = all.findings.iter().filter(|finding| wanted(finding)).collect();
        let before = std::mem::replace(&mut self.held, now.iter().map(|finding| finding.rule).collect());
        now.into_iter().filter(|finding| !before.contains(finding.rule)).collect()
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::analysis::findings::Severity;
    use crate::rows::{Coverage, Span, span_id};
    use crate::vocabulary::{Kind, Layer};

    const MS: i64 = 1_000_000;

    /// A flush of 10 ms at each of these ms.
    fn flushes(at: impl Iterator<Item = i64>) -> Vec<Row> {
        let call = (Layer::Syscall, "fsync", Kind::Sync);
        at.map(|ms| Row::Span(Box::new(Span::new(span_id(1, ms as u32), call, 1, (ms * MS, 10 * MS))))).collect()
    }

    fn covered() -> Row {
        Row::Coverage(Coverage {
            layer: Layer::Syscall,
            target: "kernel".to_owned(),
            symbol: "fsync".to_owned(),
            tier: Some("tp_btf"),
            status: "attached",
            reason: None,
            offset: None,
            insn: None,
        })
    }

    fn rules(found: &Findings) -> Vec<(&str, u64)> {
        found.findings.iter().map(|f| (f.rule, f.seconds.unwrap().round() as u64)).collect()
    }

    #[test]
    fn findings_are_of_the_last_minute_and_new_once() {
        let mut watch = Watch::new(false, false);
        let at = Duration::from_secs;
        watch.push(&[covered()]);
        watch.push(&flushes((0..1500).step_by(15)));
        assert_eq!(watch.look(at(1)), None, "it is too early");
        let first = watch.look(at(2)).unwrap();
        assert_eq!((rules(&first), watch.new_ones(&first, |_| true).len()), (vec![("sync-per-record", 1)], 1));
        watch.push(&flushes((20_000..50_000).step_by(15)));
        let more = watch.look(at(50)).unwrap();
        assert_eq!((rules(&more), watch.new_ones(&more, |_| true).len()), (vec![("sync-per-record", 21)], 0));
        // Each slice is forgotten as a whole.
        let mut later = Vec::new();
        for s in (52..140).step_by(2) {
            later.push(watch.look(at(s)).unwrap());
        }
        let last = later.last().unwrap();
        assert_eq!((rules(last), watch.new_ones(last, |_| true).len()), (vec![], 0));
        let most = later.iter().map(|found| rules(found).first().map_or(0, |(_, s)| *s));
        assert!(most.clone().is_sorted_by(|a, b| a >= b), "{:?}", most.collect::<Vec<_>>());
        watch.push(&flushes((140_000..142_000).step_by(15)));
        let again = watch.look(at(142)).unwrap();
        assert_eq!(watch.new_ones(&again, |_| true).len(), 1);
    }

    #[test]
    fn threads_without_a_call_for_two_minutes_are_forgotten() {
        let mut watch = Watch::new(false, false);
        let mut look = |s, rows: &[Row]| {
            watch.push(rows);
            watch.look(Duration::from_secs(s));
            watch.nesting.threads()
        };
        assert_eq!([look(2, &flushes(0..1)), look(60, &[]), look(62, &[]), look(120, &[])], [1, 1, 1, 0]);
        assert_eq!([look(180, &flushes(180_000..180_001)), look(240, &[]), look(300, &[])], [1, 0, 0]);
    }

    #[test]
    fn sums_of_ranks_are_taken_only_where_they_are_wanted() {
        for wanted in [false, true] {
            let mut watch = Watch::new(false, wanted);
            let calls = |own: Option<OwnCalls>| own.map(|own| own.by_rank().map(|(_, sums)| sums.calls).sum::<i64>());
            watch.push(&flushes((0..45).step_by(15)));
            assert_eq!(calls(watch.take_own()), wanted.then_some(3));
            assert_eq!(calls(watch.take_own()), wanted.then_some(0));
        }
    }

    #[test]
    fn a_finding_that_grows_until_it_is_wanted_is_new_then() {
        let mut watch = Watch::new(false, false);
        watch.push(&[covered()]);
        let critical = |finding: &Finding| finding.severity == Severity::Critical;
        // 0.2 of 2 s, of 4 s and then 2.2 of 6 s.
        watch.push(&flushes((0..300).step_by(15)));
        let new = [2, 4, 6, 8].map(|s| {
            if s == 6 {
                watch.push(&flushes((2_000..5_000).step_by(15)));
            }
            let found = watch.look(Duration::from_secs(s)).unwrap();
            assert_eq!(found.findings.len(), 1);
            watch.new_ones(&found, critical).len()
        });
        assert_eq!(new, [0, 0, 1, 0]);
    }
}
