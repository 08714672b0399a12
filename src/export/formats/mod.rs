//! `export`: a dataset in the formats of other programs. Rows are streamed: memory does not grow with their number.

mod cell;
mod folded;
mod hive;
mod perfetto;
mod script;
mod tables;
mod text;
mod texts;

use std::io::{BufWriter, Write};
use std::ops::Range;
use std::path::Path;

use anyhow::{Context, Result};
use clap::ValueEnum;

use crate::analysis::only::Condition;
use crate::base::usage::{bail, hint};
use crate::export::TABLES;
use crate::export::files::file::create_new_file;
use crate::export::report::Union;

/// What is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Format {
    /// A file for each table, or one table
    Csv,
    /// One table as a stream of Arrow IPC
    Arrow,
    /// Stacks of functions with a weight, a line each: for programs that draw flame graphs
    Folded,
    /// A trace for Perfetto: calls, requests and counters over time
    Perfetto,
    /// Lines to read and to grep: the platform, then each call and request in the order of time, with what caused it
    Text,
    /// An archive of OTF2 with I/O records, a new directory: for Vampir, Cube and otf2-print
    Otf2,
    /// A tree of directories by date and node, in which `DuckDB`, Spark and Polars read what a query needs; adds to one that is
    /// there
    Hive,
    /// A log of Darshan: for `PyDarshan`, darshan-parser and Drishti
    Darshan,
}

/// What a stack of `folded` weighs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, ValueEnum)]
pub enum Weight {
    /// Exclusive time in ns
    #[default]
    Time,
    /// What system calls waited for, in ns: the innermost frame
    Wait,
    /// Bytes that system calls moved
    Bytes,
    /// Calls
    Calls,
}

/// What is asked for.
#[derive(Clone, Copy)]
pub struct Wish<'a> {
    pub to: Format,
    pub table: Option<&'a str>,
    pub weight: Weight,
    /// Only these calls, and those that began then: of `text`.
    pub only: Option<&'a dyn Condition>,
    pub time: Option<&'a Range<i64>>,
    /// Standard output without.
    pub output: Option<&'a Path>,
    /// So many days stay in the tree of `hive`.
    pub keep_days: Option<u32>,
}

/// Writes the datasets in `dir` in another format, and returns what of them could not be read.
///
/// # Errors
/// When there is no dataset, what is asked for does not go together, or nothing can be written.
pub fn run(dir: &Path, wish: &Wish<'_>) -> Result<Vec<String>> {
    if let Some(table) = wish.table.filter(|table| !TABLES.contains(table)) {
        bail!("there is no table {table}{}; tables are: {}", hint(table, TABLES), TABLES.join(", "));
    }
    if wish.to != Format::Text && (wish.only.is_some() || wish.time.is_some()) {
        bail!("--where and --time select calls of --to text; leave them out here");
    }
    if wish.to != Format::Hive && wish.keep_days.is_some() {
        bail!("--keep-days removes old days of the tree of --to hive; leave it out here");
    }
    match (wish.to, wish.table, wish.output) {
        (Format::Csv, None, Some(to)) => tables::all_csv(dir, to),
        (Format::Csv, Some(table), to) => tables::csv(dir, table, &mut *open(to)?),
        (Format::Csv, None, None) => bail!("give a directory for all tables (-o DIR), or one table (--table spans)"),
        (Format::Arrow, Some(table), to) => tables::arrow(dir, table, &mut *open(to)?),
        (Format::Arrow, None, _) => bail!("a stream of Arrow has one table: --table spans"),
        (Format::Folded | Format::Perfetto | Format::Text, Some(_), _) => {
            bail!("this format is made of all tables: leave --table out")
        }
        (Format::Folded, None, to) => {
            let mut datasets = Union::open(dir)?;
            let mut out = open(to)?;
            folded::write(&mut datasets, wish.weight, &mut *out)?;
            out.flush().context("cannot write the stacks")?;
            Ok(crate::export::report::Source::warnings(&datasets))
        }
        (Format::Perfetto, None, to) => {
            let datasets = Union::open(dir)?;
            let mut out = open(to)?;
            let mut warnings = perfetto::write(&datasets, &mut *out)?;
            out.flush().context("cannot write the trace")?;
            warnings.extend(crate::export::report::Source::warnings(&datasets));
            Ok(warnings)
        }
        (Format::Text, None, to) => {
            let mut datasets = Union::open(dir)?;
            let mut out = open(to)?;
            let warnings = text::write(&mut datasets, text::Chosen { only: wish.only, time: wish.time }, &mut *out)?;
            out.flush().context("cannot write the text")?;
            Ok(warnings)
        }
        (Format::Otf2, None, Some(to)) => script::OTF2.run(dir, to),
        (Format::Darshan, None, Some(to)) => script::DARSHAN.run(dir, to),
        (Format::Hive, None, Some(to)) => hive::add(dir, to, wish.keep_days),
        (Format::Hive, None, None) => bail!("give the directory of the tree (-o DIR)"),
        (Format::Otf2 | Format::Darshan | Format::Hive, Some(_), _) => {
            bail!("this format has all tables: leave --table out")
        }
        (Format::Otf2, None, None) => bail!("an archive of OTF2 is a directory: give a new one (-o DIR)"),
        (Format::Darshan, None, None) => bail!("give a file for the log (-o FILE.darshan)"),
    }
}

fn open(to: Option<&Path>) -> Result<Box<dyn Write>> {
    let Some(path) = to else { return Ok(Box::new(BufWriter::new(std::io::stdout().lock()))) };
    let file = create_new_file(path)?;
    Ok(Box::new(BufWriter::new(file)))
}
