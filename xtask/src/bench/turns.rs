//! Figures of rows that are measured in several ways by turns, so that what else the machine does meets all of them.

use anyhow::Result;
use std::collections::BTreeMap;

use super::median;

/// By number of the row and way, one figure for each round.
pub struct Turns<W> {
    figures: BTreeMap<(usize, W), Vec<f64>>,
}

impl<W: Ord + Copy> Turns<W> {
    /// Measures every row in all its ways, again and again. `ways` gives those of a row.
    pub fn measure(
        rounds: u16,
        rows: usize,
        ways: impl Fn(usize) -> Vec<W>,
        mut each: impl FnMut(usize, W) -> Result<f64>,
    ) -> Result<Self> {
        let mut turns = Self { figures: BTreeMap::new() };
        for round in 1..=rounds {
            eprintln!("round {round} of {rounds}");
            for row in 0..rows {
                for way in ways(row) {
                    let figure = each(row, way)?;
                    turns.figures.entry((row, way)).or_default().push(figure);
                }
            }
        }
        Ok(turns)
    }

    fn of(&self, row: usize, way: W) -> &[f64] {
        self.figures.get(&(row, way)).map(Vec::as_slice).unwrap_or_default()
    }

    pub fn has(&self, row: usize, way: W) -> bool {
        !self.of(row, way).is_empty()
    }

    pub fn median(&self, row: usize, way: W) -> f64 {
        median(self.of(row, way))
    }

    /// What a way adds to another, and its ratio to that: medians over the rounds, each against its own round.
    pub fn against(&self, row: usize, way: W, other: W) -> (f64, f64) {
        let pairs = || self.of(row, way).iter().zip(self.of(row, other));
        let added: Vec<f64> = pairs().map(|(with, without)| with - without).collect();
        let ratios: Vec<f64> = pairs().map(|(with, without)| with / without).collect();
        (median(&added), median(&ratios))
    }
}

/// A table in Markdown.
pub fn table(title: &str, heads: &[&str], rows: &[Vec<String>]) -> String {
    let line = |cells: &[String]| format!("| {} |\n", cells.join(" | "));
    let heads: Vec<String> = heads.iter().map(ToString::to_string).collect();
    let rows: String = rows.iter().map(|cells| line(cells)).collect();
    format!("\n{title}\n\n{}|{}\n{rows}", line(&heads), "---|".repeat(heads.len()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ratios_are_of_one_round() {
        let mut next = [100.0, 150.0, 200.0, 300.0, 400.0, 600.0].into_iter();
        let turns = Turns::measure(3, 1, |_| vec![0, 1], |_, _| Ok(next.next().unwrap_or(f64::NAN))).unwrap();
        let (added, ratio) = turns.against(0, 1, 0);
        assert!((added - 100.0).abs() < 1e-9 && (ratio - 1.5).abs() < 1e-9, "{added} {ratio}");
        assert!(turns.has(0, 1) && !turns.has(0, 2) && turns.median(1, 0).is_nan());
    }

    #[test]
    fn a_table_has_a_line_below_its_heads() {
        let text = table("What", &["a", "b"], &[vec!["1".into(), String::new()]]);
        assert_eq!(text, "\nWhat\n\n| a | b |\n|---|---|\n| 1 |  |\n");
    }
}
