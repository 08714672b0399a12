//! What a tracer needed over time, and whether that was more and more. Pure.

use std::fmt;

/// What was seen of a tracer, each second.
#[derive(Debug, Default)]
pub struct Figures {
    /// Bytes.
    pub memory: Vec<u64>,
    pub descriptors: Vec<u64>,
    /// How long it went on.
    pub seconds: u64,
    /// In all, by its own count.
    pub records: f64,
    pub lost: f64,
}

/// The share of the time that is left out: buffers are filled for the first time then.
const WARM_UP: usize = 5;
/// Memory that comes and goes: what waits to be written, and what the allocator keeps.
const MEMORY: (u64, u64) = (8 << 20, 10);
/// By so many percent at most memory may have grown after `SETTLED` minutes, where it is to be level.
const LEVEL: u64 = 5;
const SETTLED: u64 = 20;
/// Minutes around a moment of which the middle sample counts.
const AROUND: u64 = 2;
/// Files of parts and datasets, and connections.
const DESCRIPTORS: (u64, u64) = (16, 10);

/// The last sample, as a line.
pub struct Now(u64, u64, f64, f64);

impl fmt::Display for Now {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self(memory, descriptors, records, lost) = self;
        write!(f, "{} MiB, {descriptors} descriptors, {records} records, {lost} lost", memory >> 20)
    }
}

impl Figures {
    pub fn last(&self) -> Option<Now> {
        Some(Now(*self.memory.last()?, *self.descriptors.last()?, self.records, self.lost))
    }

    /// What is wrong; empty when all is well. `level`: after work of so many minutes memory is to be as much as once it has
    /// settled.
    pub fn problems(&self, name: &str, ceiling: u64, level: Option<u64>) -> Vec<String> {
        let mut problems = Vec::new();
        let most = self.memory.iter().copied().max().unwrap_or(0);
        if most > ceiling {
            problems.push(format!("{name}: {} MiB of memory, more than {} MiB", most >> 20, ceiling >> 20));
        }
        if let Some([from, to]) = grows(&self.memory, MEMORY) {
            problems.push(format!(
                "{name}: memory grows all the time: {} KiB, {} KiB at the end",
                from >> 10,
                to >> 10
            ));
        }
        if let Some([from, to]) = level.and_then(|minutes| self.settled(minutes)) {
            problems.push(format!(
                "{name}: memory is not level: {} KiB after {SETTLED} minutes, {} KiB at the end",
                from >> 10,
                to >> 10
            ));
        }
        if let Some([from, to]) = grows(&self.descriptors, DESCRIPTORS) {
            problems.push(format!("{name}: descriptors grow all the time: {from}, {to} at the end"));
        }
        if self.records < 1.0 {
            problems.push(format!("{name}: no record was seen"));
        }
        problems
    }

    /// Memory once it has settled and at the end of the work, where it has grown between.
    fn settled(&self, minutes: u64) -> Option<[u64; 2]> {
        let per_minute = |minute: u64| (minute * 60 * self.memory.len() as u64 / self.seconds.max(1)) as usize;
        let around =
            |minute: u64| self.memory.get(per_minute(minute - AROUND)..per_minute(minute + AROUND)).map(median);
        let end = minutes.checked_sub(AROUND).filter(|end| *end > SETTLED + AROUND)?;
        let (from, to) = (around(SETTLED)?, around(end)?);
        (to > from + from * LEVEL / 100).then_some([from, to])
    }
}

fn warm(values: &[u64]) -> &[u64] {
    &values[values.len() / WARM_UP..]
}

fn median(values: &[u64]) -> u64 {
    let mut sorted = values.to_vec();
    sorted.sort_unstable();
    sorted.get(sorted.len() / 2).copied().unwrap_or(0)
}

/// Whether values have grown from each third of the time to the next, and by more than so much, and than so many percent, in
/// all: the middle ones of the first and the last third.
fn grows(values: &[u64], (least, percent): (u64, u64)) -> Option<[u64; 2]> {
    let thirds: Vec<u64> = warm(values).chunks(warm(values).len().div_ceil(3).max(1)).map(median).collect();
    let (from, to) = (*thirds.first()?, *thirds.last()?);
    (thirds.is_sorted() && to > from + least && to > from + from * percent / 100).then_some([from, to])
}

/// The sum of the samples of a family on a page of metrics.
pub fn sum(page: &str, family: &str) -> f64 {
    let names = [family.to_owned(), format!("{family}_total")];
    let samples = page.lines().filter_map(|line| {
        let (sample, value) = line.rsplit_once(' ')?;
        let name = sample.split('{').next()?;
        names.iter().any(|n| n == name).then(|| value.parse::<f64>().ok())?
    });
    samples.sum()
}

pub fn table(traces: &[(&'static str, Figures)]) -> String {
    let mut text = String::from(
        "\n| trace | minutes | memory, MiB: after the first fifth | highest | at the end | descriptors | highest | at the end | records | lost |\n|---|---|---|---|---|---|---|---|---|---|\n",
    );
    for (name, figures) in traces {
        let three = |values: &[u64], shift: u32| {
            let [first, last] = [warm(values).first(), values.last()].map(|v| v.copied().unwrap_or(0) >> shift);
            format!("{first} | {} | {last}", values.iter().max().copied().unwrap_or(0) >> shift)
        };
        text += &format!(
            "| {name} | {} | {} | {} | {} | {} |\n",
            figures.seconds / 60,
            three(&figures.memory, 20),
            three(&figures.descriptors, 0),
            figures.records,
            figures.lost
        );
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steady_growth_is_reported_and_fluctuation_is_not() {
        const LIMIT: (u64, u64) = (10, 10);
        let line = |slope: u64| (0..300).map(|n| 100 + n * slope).collect::<Vec<u64>>();
        assert_eq!(grows(&line(0), LIMIT), None);
        assert_eq!(grows(&line(1), LIMIT), Some([200, 360]));
        // It takes its time to begin with, and then stays.
        let begins: Vec<u64> = (0..300).map(|n| if n < 59 { n } else { 400 }).collect();
        assert_eq!(grows(&begins, LIMIT), None);
        let saw: Vec<u64> = (0..300).map(|n| n % 50 * 10).collect();
        assert_eq!(grows(&saw, LIMIT), None);
        assert_eq!((grows(&[], LIMIT), grows(&[1], LIMIT), grows(&[1, 2], LIMIT)), (None, None, None));
    }

    #[test]
    fn memory_that_is_to_be_level_may_grow_by_a_twentieth() {
        // Each second of an hour of work, and two minutes of a report.
        let figures = |from: u64, to: u64| {
            let of = |second: u64| if second < 3600 { from + (to - from) * second / 3600 } else { 2 * to };
            Figures { memory: (0..3720).map(of).collect(), seconds: 3720, records: 1.0, ..Figures::default() }
        };
        let problems = |figures: &Figures| figures.problems("a", u64::MAX, Some(60)).len();
        assert_eq!((problems(&figures(1000, 1070)), problems(&figures(1000, 1090))), (0, 1));
        assert_eq!(figures(1000, 1090).problems("a", u64::MAX, Some(20)).len(), 0, "it has hardly settled");
    }

    #[test]
    fn a_ceiling_is_one() {
        let figures = Figures { memory: vec![1 << 20, 3 << 20, 1 << 20], records: 1.0, ..Figures::default() };
        assert_eq!(figures.problems("a", 2 << 20, None), ["a: 3 MiB of memory, more than 2 MiB"]);
        assert_eq!(figures.problems("a", 3 << 20, None), [""; 0]);
        assert_eq!(Figures::default().problems("a", 1, None), ["a: no record was seen"]);
    }

    #[test]
    fn samples_of_a_family_are_summed_up() {
        let page = "# TYPE iotrace_lost_events counter\niotrace_lost_events_total{layer=\"mpi\",reason=\"ring\"} 2\n\
                    iotrace_lost_events_total{layer=\"hdf5\",reason=\"ring\"} 3\niotrace_lost_events_created 9\niotrace_records_total 1.5e3\n";
        assert!((sum(page, "iotrace_lost_events") - 5.0).abs() < 1e-9);
        assert!((sum(page, "iotrace_records") - 1500.0).abs() < 1e-9);
    }
}
