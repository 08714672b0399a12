//! How long frames take, by part.

use std::collections::VecDeque;
use std::time::Duration;

/// The last ones of each part.
#[derive(Debug, Clone, Default)]
pub struct Times {
    /// Figures from the source.
    pub figures: Last,
    /// Cells from figures.
    pub drawing: Last,
    /// Cells that have changed to the terminal.
    pub terminal: Last,
}

/// The last times of one part.
#[derive(Debug, Clone, Default)]
pub struct Last {
    times: VecDeque<Duration>,
    pub count: u64,
}

impl Last {
    const KEPT: usize = 1000;

    pub fn add(&mut self, time: Duration) {
        self.count += 1;
        if self.times.len() == Self::KEPT {
            self.times.pop_front();
        }
        self.times.push_back(time);
    }

    /// Median and 95th percentile.
    pub fn figures(&self) -> Option<(Duration, Duration)> {
        let mut sorted: Vec<Duration> = self.times.iter().copied().collect();
        sorted.sort_unstable();
        let at = |part: usize| sorted.get(sorted.len() * part / 100).copied();
        Some((at(50)?, at(95)?))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_thousand_count() {
        let mut last = Last::default();
        assert_eq!(last.figures(), None);
        (1..=5000).for_each(|ms| last.add(Duration::from_millis(ms)));
        assert_eq!(last.figures(), Some((Duration::from_millis(4501), Duration::from_millis(4951))));
        assert_eq!(last.count, 5000);
    }
}
