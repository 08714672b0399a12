//! The command line, and nothing behind it: here its commands, and in `record` the options of a trace.

pub mod detail;
pub mod help;
pub mod look;
mod query;
mod record;
mod replay_code;
pub mod top;
pub mod trigger;
pub mod tune;
mod values;
mod whatif;

pub use crate::cli::record::{AddedArgs, FlightArgs, OutputArgs, RecordArgs, RotateArgs, ShowArgs};
pub use crate::cli::values::{Budget, LayerChoice, duration, slow, which};

use crate::analysis::findings::Which;
use crate::cli::look::ReportArgs;
use crate::cli::query::QueryArgs;
use crate::cli::replay_code::ReplayCodeArgs;
use crate::cli::top::TopArgs;
use crate::cli::tune::TuneArgs;
use crate::cli::values::{filter, library_layer, pid};
use crate::cli::whatif::WhatifArgs;
use crate::compare::OneProcess;
use crate::compare::condition::Condition;
use crate::export::formats::{Format, Weight};
use crate::summary::filter::Filter;
use crate::vocabulary::Layer;
use clap::{Parser, Subcommand};
use clap_complete::Shell;
use std::path::PathBuf;

/// See what a program's I/O really does, through every layer at once.
#[derive(Debug, Parser)]
#[command(
    name = "iotrace-bpf",
    version,
    args_conflicts_with_subcommands = true,
    subcommand_negates_reqs = true,
    subcommand_value_name = "SUBCOMMAND",
    after_help = "Examples:\n  \
        sudo iotrace-bpf -o run.iotrace -- mpirun -np 4 ./app    trace a command and all its children\n  \
        mpirun -np 64 iotrace-bpf -o run -- ./app                a job: one tracer on each node (or srun)\n  \
        sudo iotrace-bpf -p 4711 --duration 30s                  trace a running process for half a minute\n  \
        sudo iotrace-bpf --cgroup /system.slice/db.service       every process of a control group\n  \
        sudo iotrace-bpf --system -o node.iotrace -- sleep 60    the whole node for a minute\n  \
        iotrace-bpf --report io.txt -- gzip -c f > f.gz          stdout is the command's; the report goes to a file, or stderr\n  \
        iotrace-bpf report run.iotrace                           the summary of a recorded dataset\n  \
        iotrace-bpf replay run.iotrace                           the dashboard over a recorded dataset\n\n\
         SIGUSR1 makes a tracer print what is in flight on stderr: calls that have not returned, with their stacks.\n\
         SIGUSR2 makes one with --flight write what it keeps in memory.\n\n\
        Exit status: that of the command (128+N for signal N); 2 for wrong usage or a wrong file of settings, 3 when\n\
        --fail-on or --fail-if holds, 125 when the tracer fails, 126 or 127 when the command cannot be executed or found.\n\n\
        Times and sizes have a unit: 500us, 100ms, 30s, 5m, 1h; 64K, 16M, 1G, 2T."
)]
pub struct Cli {
    #[command(subcommand)]
    pub command: Option<Action>,
    #[command(flatten)]
    pub record: RecordArgs,
}

/// What else the program can do.
#[derive(Debug, Subcommand)]
pub enum Action {
    /// What is wrong in a dataset, and its figures
    Report {
        /// The dataset, or a directory with those of several nodes or periods
        dir: PathBuf,
        #[command(flatten)]
        shown: ReportArgs,
        /// Change thresholds of rules, or switch rules off: a table for each rule, as [sync-per-record] with calls = 50 or
        /// off = true
        #[arg(long, value_name = "FILE")]
        rules: Option<PathBuf>,
        /// Exit with 3 when something was found: by this rule, or at least as severe as `warn` or `critical`
        #[arg(long, value_name = "RULE|warn|critical", value_parser = values::which)]
        fail_on: Option<Which>,
        /// Write one HTML file with pictures that filter each other, which opens without a network: a new file
        #[arg(long, value_name = "FILE",
              conflicts_with_all = ["json", "format", "section", "top", "sort", "filter", "coverage", "width"])]
        html: Option<PathBuf>,
    },
    /// What changed between two runs, or several
    ///
    /// Several on each side: compare A1 A2 -- B1 B2.
    Compare {
        /// The two datasets, or those of the first side
        #[arg(required = true, value_name = "DIR")]
        dirs: Vec<PathBuf>,
        /// Two ranks or processes of one dataset: rank=N or pid=N, given twice
        #[arg(long, value_name = "PROCESS")]
        process: Vec<OneProcess>,
        /// Those of the second side
        #[arg(last = true, value_name = "DIR")]
        with: Vec<PathBuf>,
        /// Machine-readable, with all figures
        #[arg(long)]
        json: bool,
        /// Exit with 3 when a figure changed by more, and by more than runs of one side differ: 'time>10%',
        /// 'syscall.bytes>0%', 'time<-20%'
        #[arg(long, value_name = "NAME>N%")]
        fail_if: Vec<Condition>,
    },
    /// The runs below a directory, the newest first
    ///
    /// When, who, how much, and what was wrong with each.
    Runs {
        /// A directory with datasets of many runs
        dir: PathBuf,
        /// Only runs like this: user=anna, `duration_s>5m`
        ///
        /// Of several conditions all must hold: command~sim, `written_bytes>10G`,
        /// findings=sync-per-record, start>2026-11-01, complete=no.
        #[arg(long = "where", value_name = "CONDITION")]
        conditions: Vec<crate::runs::condition::Condition>,
        /// So many of them
        #[arg(long, value_name = "N")]
        top: Option<usize>,
        /// Machine-readable, with all columns
        #[arg(long)]
        json: bool,
    },
    /// One figure of chosen calls, by rank, file, time
    ///
    /// Of the calls that fulfil conditions, by rank, file, function, device, phase or time.
    Query(QueryArgs),
    /// A dataset in the formats of other programs
    Export {
        /// The dataset, or a directory with those of several nodes or periods
        dir: PathBuf,
        /// The format
        #[arg(long, value_enum)]
        to: Format,
        /// A new file, or of all tables and of otf2 a new directory; standard output without
        #[arg(short, long, value_name = "FILE")]
        output: Option<PathBuf>,
        /// The table, where the format has one
        #[arg(long, value_name = "NAME")]
        table: Option<String>,
        /// What stacks of --to folded weigh
        #[arg(long, value_enum, default_value_t)]
        weight: Weight,
        /// Of --to text: only calls that fulfil a condition, and requests for them: 'file~*.h5 and dur>1ms'
        #[arg(long = "where", value_name = "FILTER", value_parser = filter)]
        filter: Option<Filter>,
        /// Of --to text: calls and requests that begin in this time since the start of the trace: 1s-2.5s, 100ms- or
        /// -2s
        #[arg(long, value_name = "FROM-TO", value_parser = crate::query::options::window, allow_hyphen_values = true)]
        time: Option<std::ops::Range<i64>>,
        /// Of --to hive: then remove the days before today and the N-1 days before it, but none of a dataset in DIR
        #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=36_500))]
        keep_days: Option<u32>,
    },
    /// A program that makes the I/O of a trace again
    ///
    /// In C or Fortran, with MPI.
    ReplayCode(ReplayCodeArgs),
    /// Try settings that may make a command faster
    ///
    /// Hints for MPI-IO and other settings that the findings of a trace suggest are tried on the command itself, or on a
    /// replay of its I/O, by turns with the command as it is. Those that help are printed, and kept for the next trace.
    Tune(TuneArgs),
    /// How long a run would take if it was different
    ///
    /// A faster device, no flushes, an empty or full page cache, other ranks that write: as a range, with what it rests on.
    Whatif(WhatifArgs),
    /// What the report looks for: causes, advice
    Rules {
        #[command(subcommand)]
        action: Option<RulesAction>,
    },
    /// The dashboard over a recorded dataset
    Replay {
        /// The dataset
        dir: PathBuf,
        #[command(flatten)]
        show: ShowArgs,
    },
    /// The dashboard over several nodes, live
    ///
    /// While they are traced, from the metrics that each tracer serves.
    Top(TopArgs),
    /// The views of a dataset in SQL
    ///
    /// Opens its views in the program duckdb, or in python3 with that module, from any directory.
    Sql {
        /// The dataset, or a directory with those of several nodes or periods
        dir: PathBuf,
        /// What to answer, as CSV where stdout is no terminal; without it what is typed or comes on stdin
        query: Option<String>,
    },
    /// Complete the dataset of a killed tracer
    ///
    /// It becomes what it would be after an end in order: open parts are removed, each id has one row.
    Repair {
        /// The dataset, or a directory with those of several nodes or periods
        dir: PathBuf,
    },
    /// The functions that are traced
    Probes {
        #[command(subcommand)]
        action: ProbesAction,
    },
    /// What this machine allows, and what to do
    ///
    /// What this kernel and these privileges allow, and what to do about the rest.
    Doctor {
        /// Print only the commands that fix what is wrong, for this machine
        ///
        /// As lines for a shell: read them before you run them. What no command fixes stands there as a comment.
        #[arg(long)]
        fix_hints: bool,
    },
    /// What a shell completes of the command line; packages install it
    #[command(hide = true)]
    Completions {
        /// The shell
        shell: Shell,
    },
    /// The manual: one page for the program, and one for each of its commands; packages install them
    #[command(hide = true)]
    Man {
        /// Write the pages into this directory
        #[arg(value_name = "DIR")]
        dir: PathBuf,
    },
}

/// About the rules of the report.
#[derive(Debug, Subcommand)]
pub enum RulesAction {
    /// All rules
    List,
    /// The cause that a rule names, its condition, what to do, and where it is from
    Show {
        /// The rule
        id: String,
    },
}

/// About the catalog.
#[derive(Debug, Subcommand)]
pub enum ProbesAction {
    /// Every row: layer, library, function, operation, kind
    List {
        /// Machine-readable
        #[arg(long)]
        json: bool,
        /// With the functions of this catalog file
        #[arg(long, value_name = "FILE.toml")]
        probes: Vec<PathBuf>,
    },
    /// A catalog file for a library, from its exported functions, debug information or header
    Generate {
        /// The library
        #[arg(value_name = "LIB.so")]
        library: PathBuf,
        /// Take types from this C header, preprocessed by cc (or the compiler in CC), and not from debug information
        #[arg(long, value_name = "FILE.h")]
        header: Option<PathBuf>,
        #[arg(long, default_value = "app", value_parser = library_layer, help = library_layers_help())]
        layer: Layer,
        /// Write this file, which must not exist
        #[arg(short, long, value_name = "FILE.toml")]
        output: Option<PathBuf>,
    },
    /// What would be attached to a process or to files, where, and why not
    Check {
        /// A running process: the files that it maps
        #[arg(short, long, value_name = "PID", value_parser = pid, conflicts_with = "paths")]
        pid: Option<u32>,
        /// Programs and libraries
        #[arg(value_name = "PATH", required_unless_present = "pid")]
        paths: Vec<PathBuf>,
        #[command(flatten)]
        added: AddedArgs,
        /// Machine-readable
        #[arg(long)]
        json: bool,
    },
}

fn library_layers_help() -> String {
    format!("The layer of its functions: {}", Layer::names(Layer::is_in_files))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_definition_is_sound() {
        use clap::CommandFactory as _;
        Cli::command().debug_assert();
    }
}
