//! Sums by time, rank, file, side and bucket: sparse, and made coarser in time and ranks where they are too many.

use serde_json::{Value, json};

use crate::HashMap;

/// Cells that are kept in memory before the cube is made coarser.
const IN_MEMORY: usize = 1 << 20;
/// A picture keeps so many time bins, and then so many ranks, before both are halved in turn.
const ENOUGH_BINS: u32 = 100;
const ENOUGH_RANKS: u32 = 512;

/// What a cell is about. The order is that in the file: along time first, so that neighbours have near numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Key {
    pub rank: u32,
    pub file: u32,
    /// Layer and direction.
    pub side: u32,
    /// A size, a duration, a node of the call tree.
    pub bucket: u32,
    pub bin: u32,
}

/// How many of each there are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Shape {
    pub bins: u32,
    pub ranks: u32,
    pub files: u32,
    pub sides: u32,
    pub buckets: u32,
}

/// Cells with `V` sums.
pub struct Cube<const V: usize> {
    names: [&'static str; V],
    cells: HashMap<Key, [i64; V]>,
    bins: u32,
    ranks: u32,
    /// Time bins and ranks of the page that are one here.
    bin_step: u32,
    rank_step: u32,
}

impl<const V: usize> Cube<V> {
    pub fn new(names: [&'static str; V], bins: u32, ranks: u32) -> Self {
        Self { names, cells: HashMap::default(), bins: bins.max(1), ranks: ranks.max(1), bin_step: 1, rank_step: 1 }
    }

    /// Adds to a cell, whose bin and rank are those of the page.
    pub fn add(&mut self, key: Key, values: [i64; V]) {
        let key = Key { bin: key.bin / self.bin_step, rank: key.rank / self.rank_step, ..key };
        merge(self.cells.entry(key).or_insert([0; V]), values);
        if self.cells.len() > IN_MEMORY {
            self.coarsen();
        }
    }

    /// Halves time or ranks; false when there is nothing left to halve.
    fn coarsen(&mut self) -> bool {
        let (bins, ranks) = (self.bins.div_ceil(self.bin_step), self.ranks.div_ceil(self.rank_step));
        let (by_bin, by_rank) = match (bins, ranks) {
            (1, 1) => return false,
            _ if bins > ENOUGH_BINS => (2, 1),
            _ if ranks > ENOUGH_RANKS => (1, 2),
            _ if bins >= ranks => (2, 1),
            _ => (1, 2),
        };
        self.bin_step = self.bin_step.saturating_mul(by_bin);
        self.rank_step = self.rank_step.saturating_mul(by_rank);
        let mut coarse = HashMap::<Key, [i64; V]>::default();
        for (key, values) in std::mem::take(&mut self.cells) {
            let key = Key { bin: key.bin / by_bin, rank: key.rank / by_rank, ..key };
            merge(coarse.entry(key).or_insert([0; V]), values);
        }
        self.cells = coarse;
        true
    }

    /// The cube for the page, whose numbers are at most `budget` bytes of text where halving time and ranks comes to that.
    pub fn finish(mut self, budget: usize, (files, sides, buckets): (usize, usize, usize)) -> Value {
        let mut shape = self.shape((files, sides, buckets));
        let mut cells = self.sorted(shape);
        while text_len(&cells) > budget && self.coarsen() {
            shape = self.shape((files, sides, buckets));
            cells = self.sorted(shape);
        }
        let steps: Vec<u64> = cells.iter().map(|(step, _)| *step).collect();
        let column = |at: usize| cells.iter().map(|(_, values)| values[at]).collect::<Vec<i64>>();
        let values: serde_json::Map<String, Value> =
            self.names.iter().enumerate().map(|(at, name)| ((*name).to_owned(), json!(column(at)))).collect();
        json!({
            "bins": shape.bins, "bin_step": self.bin_step, "ranks": shape.ranks, "rank_step": self.rank_step,
            "files": shape.files, "sides": shape.sides, "buckets": shape.buckets,
            "steps": steps, "values": values,
        })
    }

    fn shape(&self, (files, sides, buckets): (usize, usize, usize)) -> Shape {
        Shape {
            bins: self.bins.div_ceil(self.bin_step),
            ranks: self.ranks.div_ceil(self.rank_step),
            files: files.max(1) as u32,
            sides: sides.max(1) as u32,
            buckets: buckets.max(1) as u32,
        }
    }

    /// The cells in their order: how far each is from the one before, and its sums.
    fn sorted(&self, shape: Shape) -> Vec<(u64, [i64; V])> {
        let mut cells: Vec<_> = self.cells.iter().map(|(key, values)| (shape.number(*key), *values)).collect();
        cells.sort_unstable_by_key(|(number, _)| *number);
        let mut last = 0;
        for (number, _) in &mut cells {
            let step = number.saturating_sub(last);
            last = std::mem::replace(number, step);
        }
        cells
    }
}

/// Bytes of the numbers of cells as text, each with a comma.
fn text_len<const V: usize>(cells: &[(u64, [i64; V])]) -> usize {
    let digits = |n: u64| n.checked_ilog10().unwrap_or(0) as usize + 2;
    let of_values =
        |values: &[i64; V]| values.iter().map(|n| digits(n.unsigned_abs()) + usize::from(*n < 0)).sum::<usize>();
    cells.iter().map(|(step, values)| digits(*step) + of_values(values)).sum()
}

impl Shape {
    /// The number of a cell: below 2^53 for all that a page has.
    fn number(&self, key: Key) -> u64 {
        let mixed = [(key.file, self.files), (key.side, self.sides), (key.bucket, self.buckets), (key.bin, self.bins)];
        mixed
            .iter()
            .fold(u64::from(key.rank), |number, (at, of)| number * u64::from(*of) + u64::from((*at).min(of - 1)))
    }
}

fn merge<const V: usize>(to: &mut [i64; V], from: [i64; V]) {
    to.iter_mut().zip(from).for_each(|(sum, n)| *sum = sum.saturating_add(n));
}

#[cfg(test)]
mod tests {
    use super::*;

    fn filled(ranks: u32, bins: u32) -> Cube<1> {
        let mut cube = Cube::new(["calls"], bins, ranks);
        for rank in 0..ranks {
            for bin in 0..bins {
                cube.add(Key { rank, file: 0, side: 0, bucket: 0, bin }, [1]);
            }
        }
        cube
    }

    fn calls(value: &Value) -> i64 {
        value["values"]["calls"].as_array().into_iter().flatten().filter_map(Value::as_i64).sum()
    }

    #[test]
    fn a_small_cube_is_kept_as_it_is() {
        // Each cell has a call and is next to the one before: two digits and commas.
        let value = filled(4, 400).finish(4 * 1600, (1, 1, 1));
        assert_eq!((&value["bin_step"], &value["rank_step"], calls(&value)), (&json!(1), &json!(1), 1600));
        assert_eq!(value["steps"][1], json!(1));
    }

    #[test]
    fn a_large_one_loses_time_before_ranks_and_no_call() {
        let value = filled(4096, 400).finish(300_000, (1, 1, 1));
        assert_eq!((&value["bins"], &value["ranks"]), (&json!(100), &json!(512)));
        assert_eq!((value["steps"].as_array().map(Vec::len), calls(&value)), (Some(51_200), 4096 * 400));
        let least = filled(8, 8).finish(0, (1, 1, 1));
        assert_eq!((&least["bins"], &least["ranks"], calls(&least)), (&json!(1), &json!(1), 64));
    }

    #[test]
    fn the_text_is_within_the_budget_however_large_sums_are() {
        for calls in [1, 1000, i64::MAX, i64::MIN] {
            let mut cube = Cube::new(["calls"], 64, 64);
            (0..64 * 64).for_each(|n| {
                cube.add(Key { rank: n % 64, file: n % 7, side: 0, bucket: n % 5, bin: n / 64 }, [calls]);
            });
            let value = cube.finish(20_000, (7, 1, 5));
            let text = value["steps"].to_string().len() + value["values"]["calls"].to_string().len();
            assert!((8_000..=20_000 + 4).contains(&text), "{calls}: {text}");
        }
    }

    #[test]
    fn sums_of_damaged_numbers_do_not_overflow() {
        let mut cube = Cube::new(["ns"], 1, 1);
        let key = Key { rank: 0, file: 0, side: 0, bucket: 0, bin: 0 };
        cube.add(key, [i64::MAX]);
        cube.add(key, [i64::MAX]);
        assert_eq!(cube.finish(1, (1, 1, 1))["values"]["ns"][0], json!(i64::MAX));
    }
}
