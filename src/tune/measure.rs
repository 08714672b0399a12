//! Runs of several variants by turns, and which of them is faster.

use anyhow::{Result, bail};
use nix::sys::signal::Signal;

use crate::compare::{Change, Side, noise};

/// A variant that is slower than the program as it is by this factor in its first runs gets no more.
const HOPELESS: f64 = 1.25;
const FIRST_RUNS: usize = 2;

/// How one run ended.
#[derive(Debug, Clone, PartialEq)]
pub enum Outcome {
    /// After so many seconds.
    Done(f64),
    /// Why it did not do what it should.
    Failed(String),
    /// The user wants no more.
    Stopped(Signal),
}

/// The runs of one variant.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Measured {
    pub times: Vec<f64>,
    /// Why it has no more runs.
    pub failed: Option<String>,
    /// It was much slower.
    pub hopeless: bool,
}

impl Measured {
    pub fn side(&self) -> Side {
        Side::of(&self.times)
    }

    /// Is it faster than those runs, in each of its own?
    pub fn beats(&self, other: &Self) -> bool {
        let (own, other) = (self.side(), other.side());
        self.failed.is_none() && noise(&other, &own) == Change::BeyondNoise && own.median < other.median
    }

    /// Of these runs, too.
    pub fn add(&mut self, more: &Self) {
        self.times.extend(&more.times);
        self.failed = self.failed.take().or_else(|| more.failed.clone());
        self.hopeless |= more.hopeless;
    }

    fn goes_on(&self) -> bool {
        self.failed.is_none() && !self.hopeless
    }
}

/// Runs each of `variants` so often, one after the other, and begins each round with another one: what drifts hits all alike.
/// The first is the program as it is.
///
/// # Errors
/// When that fails, or it is stopped.
pub fn rounds(
    variants: usize,
    runs: usize,
    run: &mut dyn FnMut(usize, usize) -> Result<Outcome>,
) -> Result<Vec<Measured>> {
    let mut all = vec![Measured::default(); variants];
    for round in 0..runs {
        for at in (0..variants).map(|n| (n + round) % variants) {
            if !all[at].goes_on() {
                continue;
            }
            match run(round, at)? {
                Outcome::Done(seconds) => all[at].times.push(seconds),
                Outcome::Failed(why) if at == 0 => bail!("the command fails as it is: {why}"),
                Outcome::Failed(why) => all[at].failed = Some(why),
                Outcome::Stopped(signal) => bail!("{signal}: stopped; nothing was learned"),
            }
        }
        if round + 1 == FIRST_RUNS {
            let slowest = all.first().map_or(0.0, |base| base.side().most);
            for variant in all.iter_mut().skip(1).filter(|variant| variant.times.len() == FIRST_RUNS) {
                variant.hopeless = variant.side().least > slowest * HOPELESS;
            }
        }
    }
    Ok(all)
}

/// The fastest of the variants of a kind that beat the first one.
pub fn fastest(all: &[Measured], is: impl Fn(usize) -> bool) -> Option<usize> {
    let base = all.first()?;
    let faster = all.iter().enumerate().skip(1).filter(|(at, variant)| is(*at) && variant.beats(base));
    faster.min_by(|a, b| a.1.side().median.total_cmp(&b.1.side().median)).map(|(at, _)| at)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    /// Runs that take so long by variant; the n-th run of each adds a little.
    fn measured(seconds: &[f64], runs: usize) -> (Vec<Measured>, Vec<(usize, usize)>) {
        let mut order = Vec::new();
        let all = rounds(seconds.len(), runs, &mut |round, at| {
            order.push((round, at));
            Ok(if seconds[at] < 0.0 {
                Outcome::Failed("exit status 3".into())
            } else {
                Outcome::Done(seconds[at] + round as f64 / 100.0)
            })
        });
        (all.unwrap(), order)
    }

    #[test]
    fn variants_take_turns() {
        let (all, order) = measured(&[1.0, 0.9, 1.1], 3);
        assert_eq!(order, [(0, 0), (0, 1), (0, 2), (1, 1), (1, 2), (1, 0), (2, 2), (2, 0), (2, 1)]);
        assert!(all.iter().all(|one| one.times.len() == 3));
        assert_eq!(fastest(&all, |_| true), Some(1));
    }

    #[test]
    fn within_the_noise_nothing_is_better() {
        // 1.00, 1.01, 1.02 and 0.99, 1.00, 1.01 overlap.
        assert_eq!(fastest(&measured(&[1.0, 0.99], 3).0, |_| true), None);
        // Of one run it is not known by how much runs differ.
        assert_eq!(fastest(&measured(&[1.0, 0.5], 1).0, |_| true), None);
        assert_eq!(fastest(&[], |_| true), None);
    }

    #[test]
    fn variants_that_fail_or_are_much_slower_end_early() {
        let (all, _) = measured(&[1.0, -1.0, 2.0, 0.5], 5);
        assert_eq!(all.iter().map(|one| one.times.len()).collect::<Vec<_>>(), [5, 0, 2, 5]);
        assert_eq!(all[1].failed.as_deref(), Some("exit status 3"));
        assert!(all[2].hopeless && !all[3].hopeless);
        assert_eq!(fastest(&all, |_| true), Some(3));
        assert_eq!(fastest(&all, |at| at < 3), None);
    }

    #[test]
    fn a_program_that_fails_as_it_is_cannot_be_tuned() {
        let error = rounds(2, 5, &mut |_, _| Ok(Outcome::Failed("exit status 1".into()))).unwrap_err();
        assert_eq!(error.to_string(), "the command fails as it is: exit status 1");
        let error = rounds(2, 5, &mut |_, _| Ok(Outcome::Stopped(Signal::SIGINT))).unwrap_err();
        assert_eq!(error.to_string(), "SIGINT: stopped; nothing was learned");
    }
}
