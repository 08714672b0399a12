//! The command line, and nothing behind it.

pub mod detail;
pub mod help;
pub mod look;
mod query;
mod replay_code;
pub mod top;
pub mod trigger;
pub mod tune;
mod values;
mod whatif;

pub use crate::cli::values::{Budget, LayerChoice, duration, slow, which};

use crate::analysis::findings::Which;
use crate::batch::Batch;
use crate::catalog::Phase;
use crate::cli::detail::Detail;
use crate::cli::look::ReportArgs;
use crate::cli::query::QueryArgs;
use crate::cli::replay_code::ReplayCodeArgs;
use crate::cli::top::TopArgs;
use crate::cli::trigger::Trigger;
use crate::cli::tune::TuneArgs;
use crate::cli::values::{
    budget, disk_size, filter, layer_choice, library_layer, period, phase, pid, size, stacks, tick,
};
use crate::cli::whatif::WhatifArgs;
use crate::compare::OneProcess;
use crate::compare::condition::Condition;
use crate::export::formats::{Format, Weight};
use crate::loader::stacks::slow::Limit;
use crate::summary::filter::Filter;
use crate::vocabulary::Layer;
use clap::{Args, Parser, Subcommand};
use clap_complete::Shell;
use std::ffi::OsString;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

/// The groups of the help.
const TARGETS: &str = "What to trace";
const RECORDED: &str = "What to record";
const WHERE: &str = "Where to";
const COST: &str = "What it costs";
const OUTPUT: &str = "Output";
const GROUPS: [&str; 5] = [TARGETS, RECORDED, WHERE, COST, OUTPUT];

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

/// What to trace and where to.
#[derive(Debug, Args)]
pub struct RecordArgs {
    /// Running processes, and what they fork from now on
    #[arg(short, long = "pid", value_name = "PID", value_delimiter = ',', value_parser = pid, conflicts_with = "run",
          help_heading = TARGETS)]
    pub pid: Vec<u32>,
    /// Every process of a control group
    ///
    /// And of those below it, whenever it comes in: a directory of version 2, or the path in /proc/PID/cgroup. With a
    /// COMMAND: for as long as that runs, wherever it does.
    #[arg(long, value_name = "PATH", conflicts_with_all = ["pid", "system"], help_heading = TARGETS)]
    pub cgroup: Option<PathBuf>,
    /// Every process of the node, or while a COMMAND runs
    #[arg(long, conflicts_with = "pid", help_heading = TARGETS)]
    pub system: bool,
    /// Record the dataset DIR, a new or empty directory
    ///
    /// Started by mpirun or srun for several ranks: DIR/NODE, of all ranks on the node.
    #[arg(short, long, value_name = "DIR", help_heading = WHERE)]
    pub output: Option<PathBuf>,
    #[command(flatten, next_help_heading = WHERE)]
    pub rotate: RotateArgs,
    #[command(flatten, next_help_heading = WHERE)]
    pub flight: FlightArgs,
    /// Replace the dataset in DIR
    #[arg(long, requires = "output", help_heading = WHERE, hide_short_help = true)]
    pub force: bool,
    #[arg(long, value_name = "LIST", value_delimiter = ',', value_parser = layer_choice, help_heading = TARGETS,
          help = "Only these layers: hdf5,mpiio,syscall,block, ...", long_help = layers_help())]
    pub layers: Vec<LayerChoice>,
    /// Count in the kernel, do not record every call
    ///
    /// Sums by process, file, layer and operation. The default of --system without --output; no: record every call.
    #[arg(long, help_heading = RECORDED, value_name = "yes|no", num_args = 0..=1, require_equals = true, default_missing_value = "yes", hide_possible_values = true, value_parser = clap::builder::BoolishValueParser::new())]
    pub aggregate: Option<bool>,
    /// Count, and record these: slow, rank=N, critical
    ///
    /// Count as with --aggregate, and record these calls one by one besides: slow (longer than is usual for the function; with
    /// all that runs inside them), slow=TIME, slow=LAYER:TIME, rank=N (all of that rank), file=GLOB (all on such files),
    /// critical (all of the process that waits most in its file accesses, chosen each second), finding (all of the
    /// processes that a finding is about, while it holds), finding=RULE, finding=critical.
    #[arg(long, value_name = "LIST", value_delimiter = ',', conflicts_with = "flight", help_heading = RECORDED)]
    pub detail: Vec<Detail>,
    /// Stacks of slow calls: slow, slow=50ms
    ///
    /// Of the kernel and of the program: slow (10ms or more), slow=TIME, slow=LAYER:TIME. Of calls during which the thread
    /// waited: `spans.stack_id`, view `v_slow_stacks`.
    #[arg(long, value_name = "LIST", value_delimiter = ',', value_parser = stacks, help_heading = RECORDED)]
    pub stacks: Vec<Limit>,
    /// Most time that probes may take of a thread (10%)
    ///
    /// Where they take more, stdio functions whose calls are shorter than their probe (fgetc, fwrite into a buffer) lose it;
    /// their bytes stay exact. So does MPI communication while it never stops. The number of such calls is estimated.
    /// 10%, 0.1; none: keep every call.
    #[arg(long, value_name = "SHARE", default_value = "10%", value_parser = budget, help_heading = COST)]
    pub max_overhead: Budget,
    /// Compare calls with those of earlier runs, and learn
    ///
    /// Each call is very fast, fast, normal, slow or very slow against calls like it in the runs before that had this option:
    /// `spans.speed`, `report --section speed`. The runs are kept in FILE, or in the user's state folder.
    #[arg(long, value_name = "FILE", num_args = 0..=1, require_equals = true, help_heading = RECORDED, hide_short_help = true)]
    pub baseline: Option<Option<PathBuf>>,
    /// Calls on sockets and pipes, too
    #[arg(long, help_heading = RECORDED, hide_short_help = true)]
    pub sockets: bool,
    #[command(flatten, next_help_heading = TARGETS)]
    pub added: AddedArgs,
    /// Have the kernel read ahead for programs that read at a fixed distance
    ///
    /// Or backwards, which the kernel reads from the device one by one: the tracer asks for what they will read next, by
    /// `posix_fadvise(2)` on a descriptor of its own, at most 32 MiB ahead of each open file. It ends where it does not help. The
    /// report has how many reads then came from the page cache, and the time that they saved. Changes nothing in the program;
    /// needs its single calls, so not with --aggregate.
    #[arg(long, help_heading = COST, hide_short_help = true)]
    pub advise_readahead: bool,
    /// End the trace after 500ms, 30s, 5m, 1h
    #[arg(long, value_name = "TIME", value_parser = duration, help_heading = TARGETS)]
    pub duration: Option<Duration>,
    /// Memory of the kernel's ring buffers (64M)
    #[arg(long, value_name = "SIZE", default_value = "64M", value_parser = size, help_heading = COST, hide_short_help = true)]
    pub ring_size: u64,
    /// Serve figures for Prometheus during the trace
    ///
    /// At http://ADDR:PORT/metrics; see docs/metrics.md.
    #[arg(long, value_name = "ADDR:PORT", value_parser = crate::metrics::endpoint::address, help_heading = WHERE,
          hide_short_help = true)]
    pub metrics: Option<SocketAddr>,
    /// Environment variables with a process's rank, read before the usual ones
    #[arg(long, value_name = "NAMES", value_delimiter = ',', help_heading = RECORDED, hide_short_help = true)]
    pub rank_vars: Vec<String>,
    /// The same for the number of ranks
    #[arg(long, value_name = "NAMES", value_delimiter = ',', help_heading = RECORDED, hide_short_help = true)]
    pub size_vars: Vec<String>,
    /// The same for the job's id
    #[arg(long, value_name = "NAMES", value_delimiter = ',', help_heading = RECORDED, hide_short_help = true)]
    pub job_vars: Vec<String>,
    #[command(flatten, next_help_heading = OUTPUT)]
    pub output_args: OutputArgs,
    /// The dashboard also with a COMMAND
    ///
    /// The command gets a terminal of its own: what it writes is in a pane, see docs/dashboard.md.
    #[arg(long, conflicts_with_all = ["no_tui", "batch", "quiet"], help_heading = OUTPUT)]
    pub tui: bool,
    #[command(flatten, next_help_heading = OUTPUT)]
    pub show: ShowArgs,
    /// Options from a file, too
    ///
    /// Its keys are the long options (ring-size = "64M"). Those of the command line win.
    #[arg(long, value_name = "FILE.toml", help_heading = OUTPUT, hide_short_help = true)]
    pub config: Option<PathBuf>,
    /// A command to start, and all its children
    #[arg(last = true, value_name = "COMMAND", required_unless_present_any = ["pid", "cgroup", "system"],
          help_heading = TARGETS)]
    pub run: Vec<OsString>,
}

impl RecordArgs {
    /// The option that traces whole groups of processes, not single ones.
    pub const fn wide(&self) -> Option<&'static str> {
        match (self.system, &self.cgroup) {
            (true, _) => Some("--system"),
            (false, Some(_)) => Some("--cgroup"),
            (false, None) => None,
        }
    }

    /// Are calls summed up in the kernel?
    pub fn aggregates(&self) -> bool {
        self.aggregate.unwrap_or(!self.detail.is_empty() || (self.system && self.output.is_none()))
    }
}

/// When one dataset ends and the next begins.
#[derive(Debug, Clone, Copy, Default, Args)]
pub struct RotateArgs {
    /// A new dataset in DIR after this time
    ///
    /// --output holds one directory for each, named by when it began (UTC).
    #[arg(long, value_name = "TIME", value_parser = period, requires = "output", conflicts_with = "force",
          hide_short_help = true)]
    pub rotate_time: Option<Duration>,
    /// The same when a dataset has this size: 500M, 1G
    #[arg(long, hide_short_help = true, value_name = "SIZE", value_parser = disk_size, requires = "output", conflicts_with = "force")]
    pub rotate_size: Option<u64>,
    /// Remove the oldest datasets in --output when all together are larger
    #[arg(long, hide_short_help = true, value_name = "SIZE", value_parser = disk_size, requires = "output", conflicts_with = "force")]
    pub keep_size: Option<u64>,
}

impl RotateArgs {
    /// Do datasets follow each other?
    pub const fn is_wanted(&self) -> bool {
        self.rotate_time.is_some() || self.rotate_size.is_some() || self.keep_size.is_some()
    }
}

/// What is kept in memory, and when it is written.
#[derive(Debug, Clone, Default, Args)]
pub struct FlightArgs {
    /// Keep the last TIME in memory, write it when asked
    ///
    /// Nothing else is written: a dataset of it goes into a new directory in --output, named by when (UTC), at each SIGUSR2,
    /// with W on the dashboard, and when a --trigger fires.
    #[arg(long, value_name = "TIME", value_parser = period, requires = "output",
          conflicts_with_all = ["rotate_time", "rotate_size", "force", "aggregate"])]
    pub flight: Option<Duration>,
    /// Memory of --flight: the oldest is forgotten earlier when there is no more
    #[arg(long, hide_short_help = true, value_name = "SIZE", default_value = "256M", value_parser = size, requires = "flight")]
    pub flight_memory: u64,
    /// What makes --flight write: slow=1s,error,stuck=10s
    ///
    /// Besides SIGUSR2: slow=TIME or slow=LAYER:TIME (a call took that long), error or
    /// error=NAME (EIO: a call failed so), stuck=TIME (a call has not returned for that long), crash (a signal ended a
    /// process), finding (a rule found something that it had not found before, of at least 5% of the last minute),
    /// finding=RULE or finding=critical, very-slow=TIME (with --baseline: a call took that long, and was very slow against
    /// earlier runs).
    #[arg(long, value_name = "LIST", value_delimiter = ',', requires = "flight", hide_short_help = true)]
    pub trigger: Vec<Trigger>,
}

/// What is printed of a trace, and where.
#[derive(Debug, Clone, Default, Args)]
pub struct OutputArgs {
    /// The report to FILE (-: stdout), not to stderr
    ///
    /// With --batch: the figures. Without a COMMAND they go to stdout anyway. Ranks of a job: FILE.NODE.
    #[arg(long, value_name = "FILE")]
    pub report: Option<PathBuf>,
    /// Print only errors: no report, no dashboard
    ///
    /// Nor messages. A file that --report names is written.
    #[arg(short, long, conflicts_with = "batch")]
    pub quiet: bool,
}

/// What is shown while it happens, or of a dataset, and how.
#[derive(Debug, Clone, Default, Args)]
pub struct ShowArgs {
    /// No dashboard, even on a terminal
    #[arg(long, hide_short_help = true)]
    pub no_tui: bool,
    /// Show only some calls: 'layer=hdf5 and dur>10ms'
    ///
    /// On the dashboard and with --batch. Fields: layer, op, kind, file, pid, tid, rank, dur, self, bytes, offset, errno;
    /// see docs/dashboard.md.
    #[arg(long = "where", value_name = "FILTER", value_parser = filter)]
    pub filter: Option<Filter>,
    /// Figures as lines, again and again; no dashboard
    #[arg(long, hide_short_help = true)]
    pub batch: bool,
    /// Time between two ticks of --batch: 500ms, 1s
    #[arg(short, long, value_name = "TIME", default_value = "1s", value_parser = tick, requires = "batch",
          hide_short_help = true)]
    pub delay: Duration,
    /// End after this many ticks of --batch
    #[arg(short = 'n', long, value_name = "N", requires = "batch", hide_short_help = true, value_parser = clap::value_parser!(u64).range(1..))]
    pub ticks: Option<u64>,
    /// One JSON object for each tick of --batch
    #[arg(long, requires = "batch", hide_short_help = true)]
    pub json: bool,
}

impl ShowArgs {
    /// What `--batch` is to do.
    pub fn batch(&self) -> Batch {
        let filter = self.filter.clone().map(Arc::new);
        Batch { json: self.json, delay: self.delay, ticks: self.ticks, filter }
    }
}

/// What is traced besides the built-in catalog.
#[derive(Debug, Clone, Default, Args)]
pub struct AddedArgs {
    /// A function of the program, around the I/O in it
    ///
    /// It becomes a span around that I/O. Of another file with @FILE (name or path). Or lines of one of its functions,
    /// SOURCE:FIRST-LAST (solver.c:42-87), of a program that was compiled with -g.
    #[arg(long, value_name = "FUNCTION[@FILE]", value_parser = phase)]
    pub phase: Vec<Phase>,
    /// Functions of your own libraries, from a catalog
    ///
    /// `iotrace-bpf probes generate` makes such a file.
    #[arg(long, value_name = "FILE.toml", hide_short_help = true)]
    pub probes: Vec<PathBuf>,
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
        /// Print only the commands that mend what is wrong, for this machine
        ///
        /// As lines for a shell: read them before you run them. What no command mends stands there as a comment.
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

fn layers_help() -> String {
    let usual = Layer::names(Layer::is_usual);
    format!(
        "Trace only these layers: {usual} (by default all of these; with --system and --cgroup syscall and \
         block, for library probes slow every process of the node that maps the libraries), vfs (page faults on mapped \
         files), fs (with vfs: functions inside the kernel); phases and layers of --probes files are added. hdf5=all: \
         also the selection calls of dataspaces; mpi=all: also communication that is part of other communication; \
         hdf5:H5D*,mpiio:MPI_File_write*: of a layer of libraries only functions with such names, and those that show \
         what they do: calls that make, end or describe handles, objects, hints and requests, or move a position"
    )
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
