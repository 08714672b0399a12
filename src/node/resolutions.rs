//! The last ten points at each of several resolutions, in fixed memory: rates of totals, means of levels.
//!
//! A point of a coarse resolution is made of the totals at its two ends and not of finer points, so that nothing is lost
//! between them: ten points of a second add up to that of ten seconds.

use std::collections::VecDeque;

use crate::node::figures::{Digest, LEVELS, TOTALS};

/// 100 ms, 1 s, 10 s, 1 min, 10 min.
pub const WIDTHS_NS: [i64; 5] = [100_000_000, 1_000_000_000, 10_000_000_000, 60_000_000_000, 600_000_000_000];
/// Points of each.
pub const POINTS: usize = 10;

/// What was between two looks.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Point {
    pub from_ns: i64,
    pub to_ns: i64,
    /// Per second.
    pub rates: [Option<f64>; TOTALS.len()],
    pub means: [Option<f64>; LEVELS.len()],
}

impl Point {
    /// One figure, by its name.
    pub fn figure(&self, name: &str) -> Option<f64> {
        let index = |names: &[&str]| names.iter().position(|n| *n == name);
        index(&TOTALS).and_then(|at| self.rates[at]).or_else(|| self.means[index(&LEVELS)?])
    }
}

/// Of one resolution.
#[derive(Debug, Clone, PartialEq, Default)]
struct Ring {
    /// The look that the next point begins at.
    begun: Option<(i64, Digest)>,
    /// Sums and numbers of the levels since then.
    levels: [(f64, u32); LEVELS.len()],
    points: VecDeque<Point>,
}

impl Ring {
    fn push(&mut self, width: i64, t_ns: i64, now: &Digest) {
        let Some((from_ns, begun)) = self.begun else {
            self.begun = Some((t_ns, *now));
            return;
        };
        if t_ns <= from_ns {
            return;
        }
        for ((sum, n), level) in self.levels.iter_mut().zip(now.levels) {
            if let Some(level) = level {
                (*sum, *n) = (*sum + level, *n + 1);
            }
        }
        if t_ns.div_euclid(width) == from_ns.div_euclid(width) {
            return;
        }
        let seconds = (t_ns - from_ns) as f64 / 1e9;
        let mut rates = [None; TOTALS.len()];
        for ((rate, now), before) in rates.iter_mut().zip(now.totals).zip(begun.totals) {
            // A total that is smaller than before began anew: its device was taken away, or the kernel corrected itself.
            *rate = now.zip(before).map(|(now, before)| (now - before).max(0.0) / seconds);
        }
        let means = self.levels.map(|(sum, n)| (n > 0).then(|| sum / f64::from(n)));
        if self.points.len() == POINTS {
            self.points.pop_front();
        }
        self.points.push_back(Point { from_ns, to_ns: t_ns, rates, means });
        self.levels = Default::default();
        self.begun = Some((t_ns, *now));
    }
}

/// All resolutions.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Resolutions {
    rings: [Ring; WIDTHS_NS.len()],
}

impl Resolutions {
    /// Takes a look; times go up. A point ends with the first look in a new interval of its width.
    pub fn push(&mut self, t_ns: i64, now: &Digest) {
        for (ring, width) in self.rings.iter_mut().zip(WIDTHS_NS) {
            ring.push(width, t_ns, now);
        }
    }

    /// Widths and points, the finest first, the oldest point first.
    pub fn points(&self) -> impl Iterator<Item = (i64, &VecDeque<Point>)> {
        WIDTHS_NS.into_iter().zip(self.rings.iter().map(|r| &r.points))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const MS: i64 = 1_000_000;

    fn look(total: f64, level: f64) -> Digest {
        Digest { totals: [Some(total); TOTALS.len()], levels: [Some(level); LEVELS.len()] }
    }

    fn widths(r: &Resolutions) -> Vec<usize> {
        r.points().map(|(_, points)| points.len()).collect()
    }

    #[test]
    fn ten_points_of_each_are_kept() {
        let mut r = Resolutions::default();
        // Two hours of looks every 100 ms; each second 20 are added.
        for n in 0..=72_000 {
            r.push(n * 100 * MS, &look(2.0 * n as f64, n as f64));
        }
        assert_eq!(widths(&r), [10; 5]);
        for (width, points) in r.points() {
            assert_eq!(points.back().map(|p| (p.from_ns, p.to_ns)), Some((7_200_000 * MS - width, 7_200_000 * MS)));
            assert!(points.iter().all(|p| p.to_ns - p.from_ns == width && p.rates == [Some(20.0); TOTALS.len()]));
            let looks = (width / (100 * MS)) as f64;
            // Looks n-looks+1 to n.
            assert_eq!(points.back().map(|p| p.means[0]), Some(Some(72_000.0 - (looks - 1.0) / 2.0)));
        }
    }

    #[test]
    fn the_first_point_is_as_long_as_it_was() {
        let mut r = Resolutions::default();
        r.push(250 * MS, &look(5.0, 1.0));
        assert_eq!(widths(&r), [0; 5]);
        r.push(350 * MS, &look(6.0, 3.0));
        r.push(1010 * MS, &look(7.0, 5.0));
        assert_eq!(widths(&r), [2, 1, 0, 0, 0]);
        let (_, seconds) = r.points().nth(1).unwrap();
        assert_eq!((seconds[0].from_ns, seconds[0].to_ns, seconds[0].means[0]), (250 * MS, 1010 * MS, Some(4.0)));
        assert_eq!(seconds[0].rates[0], Some(2.0 / 0.76));
    }

    #[test]
    fn missing_counters_have_no_rate_and_a_decrease_counts_as_zero() {
        let mut r = Resolutions::default();
        r.push(0, &look(5.0, 1.0));
        r.push(0, &look(9.0, 9.0));
        r.push(100 * MS, &look(4.0, 1.0));
        r.push(200 * MS, &Digest::default());
        let (_, points) = r.points().next().unwrap();
        assert_eq!((points[0].rates[0], points[0].means[0]), (Some(0.0), Some(1.0)));
        assert_eq!((points[1].rates[0], points[1].means[0]), (None, None));
    }

    proptest! {
        #[test]
        fn fine_points_add_up_to_the_coarse_one(steps in prop::collection::vec((80 * MS..130 * MS, 0..1000u32), 300..400)) {
            let (mut r, mut t, mut total) = (Resolutions::default(), 0, 0);
            r.push(0, &look(0.0, 0.0));
            for (step, grown) in steps {
                (t, total) = (t + step, total + grown);
                r.push(t, &look(f64::from(total), 0.0));
            }
            let points: Vec<_> = r.points().map(|(_, p)| p.clone()).collect();
            let amount = |p: &Point| p.rates[0].unwrap() * (p.to_ns - p.from_ns) as f64 / 1e9;
            let coarse = points[2].back().unwrap();
            let fine: Vec<_> = points[1].iter().filter(|p| p.from_ns >= coarse.from_ns && p.to_ns <= coarse.to_ns).collect();
            prop_assert!(!fine.is_empty());
            // One that has begun after the coarse one ended may have pushed out the first of the ten.
            if fine[0].from_ns == coarse.from_ns {
                let sum: f64 = fine.iter().map(|p| amount(p)).sum();
                prop_assert!((sum - amount(coarse)).abs() < 1e-6 * sum.max(1.0), "{sum} and {}", amount(coarse));
            }
            prop_assert!(points.iter().flatten().all(|p| p.to_ns > p.from_ns));
        }
    }
}
