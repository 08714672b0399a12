//! The proof of `whatif`: what it answers for recorded runs, beside runs in which just that is different.

use anyhow::{Context, Result, bail};
use serde_json::Value;
use std::path::PathBuf;

use super::list::{Files, Run, Setting, at, plain};
use super::measure::Measure;
use super::table::{CLOSE, Marker, median};
use crate::Tree;

/// What of it is run, and how.
#[derive(clap::Args)]
pub struct Wish {
    /// Runs of each kind
    #[arg(long, default_value_t = 3, value_parser = clap::value_parser!(u16).range(1..))]
    runs: u16,
    /// A tracer that is there, instead of one that is built
    #[arg(long)]
    tracer: Option<PathBuf>,
    /// A directory on a disk, on a file system with direct I/O; `iotrace-cases` is made in it
    #[arg(long, default_value = "/var/tmp")]
    dir: PathBuf,
    /// Only these pairs
    names: Vec<String>,
}

const MARKER: Marker = Marker {
    path: "docs/acting.md",
    begin: "<!-- whatif: written by `cargo xtask whatif` -->",
    end: "<!-- end of whatif -->",
};

/// A program as it is recorded, and as it is in what `whatif` is asked about.
struct Pair {
    name: &'static str,
    /// Options of `whatif`.
    options: &'static str,
    about: &'static str,
    recorded: (Files, Run),
    changed: (Files, Run),
}

const NO_FILES: Files = Files { prepare: "", cold: false };

const fn files(prepare: &'static str, cold: bool) -> Files {
    Files { prepare, cold }
}

/// Both have the same files.
const fn pair(
    name: &'static str,
    options: &'static str,
    about: &'static str,
    files: Files,
    [recorded, changed]: [Run; 2],
) -> Pair {
    Pair { name, options, about, recorded: (files, recorded), changed: (files, changed) }
}

const MIB: u64 = 1 << 20;
const READ_32: &str = "{bin}/case_reads make {dir}/file 32";
const READ_128: &str = "{bin}/case_reads make {dir}/file 128";

const PAIRS: &[Pair] = &[
    pair(
        "fsync",
        "--sync off",
        "fsync after each of 1000 records of 64 KiB; none",
        NO_FILES,
        [plain("{bin}/case_records sync {dir}/log 1000 65536"), plain("{bin}/case_records plain {dir}/log 1000 65536")],
    ),
    pair(
        "fdatasync",
        "--sync off",
        "fdatasync after each of 500 records of 256 KiB; none",
        NO_FILES,
        [
            plain("{bin}/case_records datasync {dir}/log 500 262144"),
            plain("{bin}/case_records plain {dir}/log 500 262144"),
        ],
    ),
    pair(
        "o-dsync",
        "--sync off",
        "1000 writes of 64 KiB with O_DSYNC; without",
        NO_FILES,
        [
            plain("{bin}/case_records o-dsync {dir}/log 1000 65536"),
            plain("{bin}/case_records plain {dir}/log 1000 65536"),
        ],
    ),
    pair(
        "sqlite",
        "--sync off",
        "300 transactions of SQLite; with `pragma synchronous = off`",
        NO_FILES,
        [
            plain("{python3} {cases}/inserts.py each {dir}/base 300"),
            plain("{python3} {cases}/inserts.py unsynced {dir}/base 300"),
        ],
    ),
    pair(
        "msync",
        "--sync off",
        "msync after each of 1500 records in a mapping; none",
        NO_FILES,
        [
            plain("{bin}/case_records mapped {dir}/map 1500 65536"),
            plain("{bin}/case_records mapped-plain {dir}/map 1500 65536"),
        ],
    ),
    pair(
        "direct-read",
        "--device {device}=2x",
        "direct reads, 16 MiB/s of the device; 32 MiB/s",
        files(READ_32, true),
        [
            at(Setting::Throttled(16 * MIB), "{bin}/case_reads direct {dir}/file 1048576"),
            at(Setting::Throttled(32 * MIB), "{bin}/case_reads direct {dir}/file 1048576"),
        ],
    ),
    pair(
        "direct-write",
        "--device {device}=0.5x",
        "direct writes, 64 MiB/s of the device; 32 MiB/s",
        NO_FILES,
        [
            at(Setting::Throttled(64 * MIB), "{bin}/case_writes direct {dir}/file 1048576 64"),
            at(Setting::Throttled(32 * MIB), "{bin}/case_writes direct {dir}/file 1048576 64"),
        ],
    ),
    pair(
        "cold-read",
        "--device {device}=2x",
        "reads of a file that is not in the page cache, 16 MiB/s of the device; 32 MiB/s",
        files(READ_32, true),
        [
            at(Setting::Throttled(16 * MIB), "dd if={dir}/file of=/dev/null bs=1M status=none"),
            at(Setting::Throttled(32 * MIB), "dd if={dir}/file of=/dev/null bs=1M status=none"),
        ],
    ),
    pair(
        "in-turn-cached",
        "--cache all",
        "reads a file four times, each after it was dropped from the page cache; in the page cache",
        files(READ_128, false),
        [plain("{bin}/case_reads all-cold {dir}/file 65536"), plain("{bin}/case_reads passes {dir}/file 65536")],
    ),
    Pair {
        name: "shuffled-cached",
        options: "--cache all",
        about: "reads each 4 KiB of a file in no order, from the device; in the page cache",
        recorded: (files(READ_32, true), plain("{bin}/case_reads shuffled {dir}/file 4096")),
        changed: (files(READ_32, false), plain("{bin}/case_reads shuffled {dir}/file 4096")),
    },
    pair(
        "in-turn-cold",
        "--cache 0",
        "reads a file four times, first from the device; each time",
        files(READ_128, false),
        [plain("{bin}/case_reads first-cold {dir}/file 65536"), plain("{bin}/case_reads all-cold {dir}/file 65536")],
    ),
    pair(
        "one-writer",
        "--ranks-writing 1",
        "each of four ranks writes 128 MiB; rank 0 what it gathers of all",
        NO_FILES,
        [
            plain("{openmpi} -np 4 {bin}/case_ranks block {dir}/file 64 2097152"),
            plain("{openmpi} -np 4 {bin}/case_ranks gathered {dir}/file 64 2097152"),
        ],
    ),
    pair(
        "four-writers",
        "--ranks-writing 4",
        "rank 0 writes what it gathers of four; each its own 128 MiB",
        NO_FILES,
        [
            plain("{openmpi} -np 4 {bin}/case_ranks gathered {dir}/file 64 2097152"),
            plain("{openmpi} -np 4 {bin}/case_ranks block {dir}/file 64 2097152"),
        ],
    ),
    pair(
        "cold-and-faster",
        "--cache 0 --device {device}=2x",
        "reads a file four times, first from the device with 32 MiB/s; each time with 64 MiB/s",
        files(READ_32, false),
        [
            at(Setting::Throttled(32 * MIB), "{bin}/case_reads first-cold {dir}/file 65536"),
            at(Setting::Throttled(64 * MIB), "{bin}/case_reads all-cold {dir}/file 65536"),
        ],
    ),
];

/// What was seen of a pair, a value of each try.
#[derive(Default)]
struct Seen {
    recorded: Vec<f64>,
    low: Vec<f64>,
    high: Vec<f64>,
    changed: Vec<f64>,
}

impl Seen {
    /// The middle of each predicted range over the seconds of the changed run.
    fn ratios(&self) -> impl Iterator<Item = f64> {
        let middle = self.low.iter().zip(&self.high).map(|(low, high)| f64::midpoint(*low, *high));
        middle.zip(&self.changed).map(|(predicted, seconds)| predicted / seconds)
    }

    /// By which factor each changed run is outside of its range: 1 within it.
    fn outside(&self) -> impl Iterator<Item = f64> {
        let ranges = self.low.iter().zip(&self.high).zip(&self.changed);
        ranges.map(|((low, high), seconds)| (low / seconds).max(seconds / high).max(1.0))
    }

    /// By which factor the ends of each range are apart.
    fn widths(&self) -> impl Iterator<Item = f64> {
        self.low.iter().zip(&self.high).map(|(low, high)| high / low)
    }
}

pub fn run(tree: &Tree, wish: &Wish) -> Result<()> {
    let pairs = chosen(&wish.names)?;
    let _lock = super::ready(tree)?;
    let tracer = super::tracer(tree, wish.tracer.as_deref())?;
    let measure = Measure {
        runner: super::Runner::new(tree)?,
        tracer: None,
        work: wish.dir.join("iotrace-cases"),
        runs: wish.runs,
    };
    let (mut lines, mut all) = (Vec::new(), Vec::new());
    for pair in pairs {
        let seen = tried(pair, &measure, &tracer);
        measure.runner.go_on()?;
        match seen {
            Ok(seen) => {
                lines.push(line(pair, &seen));
                all.push(seen);
            }
            Err(error) => {
                eprintln!("{}: {error:#}", pair.name);
                lines.push(format!("| {} | `{}` | not run | - | - | - | - |", pair.name, pair.options));
            }
        }
        println!("{}", lines.last().map_or("", String::as_str));
    }
    let tables = format!("{}\n\n{HEAD}\n{}", summary(&all), lines.join("\n"));
    println!("\n{tables}");
    if wish.names.is_empty() { MARKER.write(&tables) } else { Ok(()) }
}

/// How close all tries are.
fn summary(all: &[Seen]) -> String {
    let outside: Vec<f64> = all.iter().flat_map(Seen::outside).collect();
    let (tries, within) = (outside.len(), outside.iter().filter(|factor| **factor <= 1.0).count());
    let close = outside.iter().filter(|factor| **factor < CLOSE.end).count();
    let middle = all.iter().flat_map(Seen::ratios).filter(|ratio| CLOSE.contains(ratio)).count();
    let widths: Vec<f64> = all.iter().flat_map(Seen::widths).collect();
    format!(
        "Tries whose changed run is within the predicted range, or outside of it by a factor below {}: {close} of {tries}\n\
         ({within} within it). With the middle of the range within {} to {} of it: {middle} of {tries}. The ends of a range are\n\
         a factor of {:.2} apart (median).",
        CLOSE.end,
        CLOSE.start,
        CLOSE.end,
        median(&widths)
    )
}

fn chosen(names: &[String]) -> Result<Vec<&'static Pair>> {
    if let Some(name) = names.iter().find(|name| PAIRS.iter().all(|pair| pair.name != **name)) {
        let known: Vec<&str> = PAIRS.iter().map(|pair| pair.name).collect();
        bail!("there is no pair {name}; there are {}", known.join(", "));
    }
    Ok(PAIRS.iter().filter(|pair| names.is_empty() || names.iter().any(|name| pair.name == name)).collect())
}

fn tried(pair: &Pair, measure: &Measure, tracer: &std::path::Path) -> Result<Seen> {
    let mut seen = Seen::default();
    for _ in 0..measure.runs {
        let (files, run) = &pair.recorded;
        let answer = measure.traced((files, run), tracer, ("whatif", pair.options))?;
        let (low, high) = range(&answer).with_context(|| format!("not an answer: {answer}"))?;
        seen.low.push(low);
        seen.high.push(high);
        seen.recorded.push(measure.untraced(files, run)?);
        let (files, run) = &pair.changed;
        seen.changed.push(measure.untraced(files, run)?);
    }
    Ok(seen)
}

/// Seconds of the run with all conditions.
fn range(answer: &str) -> Option<(f64, f64)> {
    let answer: Value = serde_json::from_str(answer).ok()?;
    answer["together"]["low_s"].as_f64().zip(answer["together"]["high_s"].as_f64())
}

const HEAD: &str = "| pair | options | as recorded; changed | recorded s | predicted s | changed s | ratio of each try |\n\
    |---|---|---|---|---|---|---|";

fn line(pair: &Pair, seen: &Seen) -> String {
    let ratios: Vec<String> = seen.ratios().map(|ratio| format!("{ratio:.2}")).collect();
    format!(
        "| {} | `{}` | {} | {:.3} | {:.3} to {:.3} | {:.3} | {} |",
        pair.name,
        pair.options.replace("{device}", "loop0"),
        pair.about,
        median(&seen.recorded),
        median(&seen.low),
        median(&seen.high),
        median(&seen.changed),
        ratios.join(", ")
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_has_the_range_and_what_each_try_came_to() {
        let seen = Seen { recorded: vec![2.0], low: vec![0.8, 1.0], high: vec![1.2, 1.0], changed: vec![1.0, 0.8] };
        let wanted = "| fsync | `--sync off` | fsync after each of 1000 records of 64 KiB; none | 2.000 | 0.900 to 1.100 | 0.900 | 1.00, 1.25 |";
        assert_eq!(line(&PAIRS[0], &seen), wanted);
        assert_eq!(range(r#"{"together": {"low_s": 1, "high_s": 2.5}}"#), Some((1.0, 2.5)));
        let wide = Seen { low: vec![0.8; 3], high: vec![1.2; 3], changed: vec![1.0, 0.5, 1.5], ..Seen::default() };
        assert_eq!(wide.outside().map(|factor| (factor * 100.0).round()).collect::<Vec<_>>(), [100.0, 160.0, 125.0]);
        let wanted = "below 1.5: 2 of 3 (1 within it). With the middle of the range within 0.67 to 1.5 of it: 1 of 3.";
        assert!(summary(&[wide]).replace('\n', " ").contains(wanted), "{}", summary(&[Seen::default()]));
        assert!(range("{}").is_none() && chosen(&["none".to_owned()]).is_err());
    }
}
