//! How a report looks where it goes: the options of `report`, the environment, and the terminal.

use std::io::IsTerminal;

use clap::{Args, ValueEnum};
use ratatui::crossterm::terminal;

use crate::analysis::only::Condition;
use crate::cli::values::filter;
use crate::export::report::{self, Look, Section};
use crate::summary::filter::Filter;

/// The widest that a report becomes on a terminal: lines beyond are hard to follow.
const WIDEST: usize = 200;

/// What a report is written as.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Format {
    Text,
    /// All figures
    Json,
    /// Markdown, as GitHub has it
    Md,
    /// The table of one --section, with all rows
    Csv,
}

/// What of a report is written, and how.
#[derive(Debug, Clone, Args)]
pub struct ReportArgs {
    #[arg(long, value_enum, default_value_t = Format::Text)]
    format: Format,
    /// Machine-readable: --format json
    #[arg(long, conflicts_with = "format")]
    json: bool,
    /// Only these sections, or all: run, findings, time, files, functions, ranks, phases, nodes, collectives, aggregators,
    /// sizes, errors, devices, stacks, speed, slowest, layers, waiting, amplification, bandwidth, composition, lookups,
    /// handles, losses, coverage
    #[arg(long, value_name = "NAMES", value_delimiter = ',', value_parser = section)]
    section: Vec<Chosen>,
    /// Rows of each table
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    top: Option<u32>,
    /// Sort tables by a column: time, calls, read, written, errors, ...
    #[arg(long, value_name = "COLUMN")]
    sort: Option<String>,
    /// Only calls that fulfil a condition: 'file~*.h5 and dur>1ms'; fields as on the dashboard
    #[arg(long = "where", value_name = "FILTER", value_parser = filter)]
    filter: Option<Filter>,
    /// Each layer's probes and all losses, in place of two lines
    #[arg(long)]
    coverage: bool,
    /// Columns of the text; without it COLUMNS, or those of the terminal; full paths where there is none
    #[arg(long, value_name = "COLUMNS", value_parser = clap::value_parser!(u16).range(60..))]
    width: Option<u16>,
}

/// A section, or all.
#[derive(Clone, Copy)]
pub enum Chosen {
    All,
    One(&'static Section),
}

impl std::fmt::Debug for Chosen {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::All => "all",
            Self::One(section) => section.name,
        })
    }
}

fn section(name: &str) -> Result<Chosen, String> {
    if name == "all" { Ok(Chosen::All) } else { report::section(name).map(Chosen::One) }
}

impl ReportArgs {
    pub fn format(&self) -> report::Format {
        match self.format {
            _ if self.json => report::Format::Json,
            Format::Text => report::Format::Text,
            Format::Json => report::Format::Json,
            Format::Md => report::Format::Markdown,
            Format::Csv => report::Format::Csv,
        }
    }

    /// What it looks like where it is written to.
    pub fn look(&self, out: &impl IsTerminal) -> Look {
        let each = |chosen: &Chosen| match chosen {
            Chosen::All => report::SECTIONS.iter().collect(),
            Chosen::One(section) => vec![*section],
        };
        let sections: Vec<_> = self.section.iter().flat_map(each).collect();
        Look {
            sections: (!sections.is_empty()).then_some(sections),
            top: self.top.map(|n| n as usize),
            sort: self.sort.clone(),
            coverage: self.coverage,
            ..of(out, self.width.map(usize::from))
        }
    }

    pub fn only(&self) -> Option<&dyn Condition> {
        self.filter.as_ref().map(|filter| filter as &dyn Condition)
    }
}

/// The width that was asked for, or that of a terminal, and colours where there is one.
pub fn of(out: &impl IsTerminal, width: Option<usize>) -> Look {
    let set = |name: &str| std::env::var(name).ok().filter(|value| !value.is_empty());
    let is_terminal = out.is_terminal();
    let size = || terminal::size().ok().map(|(columns, _)| usize::from(columns).min(WIDEST));
    let columns = || set("COLUMNS").and_then(|columns| columns.parse().ok()).filter(|n: &usize| *n > 0);
    let width = width.or_else(columns).or_else(|| if is_terminal { size() } else { None });
    let colours = is_terminal && set("NO_COLOR").is_none() && set("TERM").is_none_or(|term| term != "dumb");
    Look { width, colours, ..Look::default() }
}
