//! The command line, and nothing behind it.

pub mod detail;
pub mod look;
mod query;
mod replay_code;
pub mod trigger;
mod values;

pub use crate::cli::values::{Budget, LayerChoice, duration, slow, which};

use crate::analysis::findings::Which;
use crate::batch::Batch;
use crate::catalog::Phase;
use crate::cli::detail::Detail;
use crate::cli::look::ReportArgs;
use crate::cli::query::QueryArgs;
use crate::cli::replay_code::ReplayCodeArgs;
use crate::cli::trigger::Trigger;
use crate::cli::values::{
    budget, disk_size, filter, layer_choice, library_layer, period, phase, pid, seconds, size, stacks,
};
use crate::compare::condition::Condition;
use crate::export::formats::{Format, Weight};
use crate::loader::stacks::slow::Limit;
use crate::summary::filter::Filter;
use crate::vocabulary::Layer;
use clap::{Args, Parser, Subcommand};
use std::ffi::OsString;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

/// See what a program's I/O really does, through every layer at once.
#[derive(Debug, Parser)]
#[command(
    name = "iotrace-bpf",
    version,
    args_conflicts_with_subcommands = true,
    subcommand_negates_reqs = true,
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
        Exit status: that of the command (128+N for signal N); 2 for wrong usage, 125 when the tracer fails,\n\
        126 or 127 when the command cannot be executed or found."
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
    /// Attach to running processes (and what they fork from now on)
    #[arg(short, long = "pid", value_name = "PID", value_delimiter = ',', value_parser = pid, conflicts_with = "run")]
    pub pid: Vec<u32>,
    /// Trace every process of a control group, and of those below it, whenever it comes in: a directory of version 2, or the
    /// path in /proc/PID/cgroup. With a COMMAND: for as long as that runs, wherever it does
    #[arg(long, value_name = "PATH", conflicts_with_all = ["pid", "system"])]
    pub cgroup: Option<PathBuf>,
    /// Trace every process of the node. With a COMMAND: for as long as that runs
    #[arg(long, conflicts_with = "pid")]
    pub system: bool,
    /// Take options from this file, too: its keys are the long options (ring-size = "64M"). Those given here win
    #[arg(long, value_name = "FILE.toml")]
    pub config: Option<PathBuf>,
    /// Record the dataset DIR: created, refused when it exists and is not empty. Started by mpirun or srun for several ranks:
    /// DIR/NODE, of all ranks on the node
    #[arg(short, long, value_name = "DIR")]
    pub output: Option<PathBuf>,
    #[command(flatten)]
    pub rotate: RotateArgs,
    #[command(flatten)]
    pub flight: FlightArgs,
    /// Replace the dataset in DIR
    #[arg(long, requires = "output")]
    pub force: bool,
    #[arg(long, value_name = "LIST", value_delimiter = ',', value_parser = layer_choice, help = layers_help())]
    pub layers: Vec<LayerChoice>,
    /// Count in the kernel instead of recording every call: sums by process, file, layer and operation. The default of --system
    /// without --output; no: record every call
    #[arg(long, value_name = "yes|no", num_args = 0..=1, require_equals = true, default_missing_value = "yes", hide_possible_values = true, value_parser = clap::builder::BoolishValueParser::new())]
    pub aggregate: Option<bool>,
    /// Count as with --aggregate, and record these calls one by one besides: slow (longer than is usual for the function; with all
    /// that runs inside them), slow=TIME, slow=LAYER:TIME, rank=N (all of that rank), file=GLOB (all on such files), finding (all
    /// of the processes that a finding is about, while it holds), finding=RULE, finding=critical
    #[arg(long, value_name = "LIST", value_delimiter = ',', conflicts_with = "flight")]
    pub detail: Vec<Detail>,
    /// Take the stacks of slow calls, of the kernel and of the program: slow (10ms or more), slow=TIME, slow=LAYER:TIME. Of
    /// calls during which the thread waited: `spans.stack_id`, view `v_slow_stacks`
    #[arg(long, value_name = "LIST", value_delimiter = ',', value_parser = stacks)]
    pub stacks: Vec<Limit>,
    /// Take probes away that take more than this share of a thread's time: of stdio functions whose calls are shorter
    /// than their probe (fgetc, fwrite into a buffer; their bytes stay exact), and of MPI communication while it
    /// never stops. The number of such calls is estimated. 10%, 0.1; none: keep every call
    #[arg(long, value_name = "SHARE", default_value = "10%", value_parser = budget)]
    pub max_overhead: Budget,
    /// Record calls on sockets and pipes, too
    #[arg(long)]
    pub sockets: bool,
    #[command(flatten)]
    pub added: AddedArgs,
    /// End the trace by itself after this time: 500ms, 30s, 5m, 1h
    #[arg(long, value_name = "TIME", value_parser = duration)]
    pub duration: Option<Duration>,
    /// Memory of the kernel's ring buffers, all together: 16M, 1G
    #[arg(long, value_name = "SIZE", default_value = "64M", value_parser = size)]
    pub ring_size: u64,
    /// Serve figures for Prometheus at http://ADDR:PORT/metrics while the trace goes on; see docs/metrics.md
    #[arg(long, value_name = "ADDR:PORT", value_parser = crate::metrics::endpoint::address)]
    pub metrics: Option<SocketAddr>,
    /// Environment variables with a process's rank, looked at before the usual
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    pub rank_vars: Vec<String>,
    /// The same for the number of ranks
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    pub size_vars: Vec<String>,
    /// The same for the job's id
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    pub job_vars: Vec<String>,
    #[command(flatten)]
    pub output_args: OutputArgs,
    #[command(flatten)]
    pub show: ShowArgs,
    /// The command to start and trace with all its children
    #[arg(last = true, value_name = "COMMAND", required_unless_present_any = ["pid", "cgroup", "system"])]
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
    /// Begin a new dataset after this time: --output holds one directory for each, named by when it began (UTC)
    #[arg(long, value_name = "TIME", value_parser = period, requires = "output", conflicts_with = "force")]
    pub rotate_time: Option<Duration>,
    /// The same when a dataset has this size: 500M, 1G
    #[arg(long, value_name = "SIZE", value_parser = disk_size, requires = "output", conflicts_with = "force")]
    pub rotate_size: Option<u64>,
    /// Remove the oldest datasets in --output when all together are larger
    #[arg(long, value_name = "SIZE", value_parser = disk_size, requires = "output", conflicts_with = "force")]
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
    /// Write nothing but keep the last TIME of the trace in memory: a dataset of it is written into a new directory in
    /// --output, named by when (UTC), at each SIGUSR2, with W on the dashboard, and when a --trigger fires
    #[arg(long, value_name = "TIME", value_parser = period, requires = "output",
          conflicts_with_all = ["rotate_time", "rotate_size", "force", "aggregate"])]
    pub flight: Option<Duration>,
    /// Memory of --flight: the oldest is forgotten earlier when there is no more
    #[arg(long, value_name = "SIZE", default_value = "256M", value_parser = size, requires = "flight")]
    pub flight_memory: u64,
    /// What --flight writes a dataset for, besides: slow=TIME or slow=LAYER:TIME (a call took that long), error or
    /// error=NAME (EIO: a call failed so), stuck=TIME (a call has not returned for that long), crash (a signal ended a
    /// process), finding (a rule found something that it had not found before, of at least 5% of the last minute),
    /// finding=RULE or finding=critical
    #[arg(long, value_name = "LIST", value_delimiter = ',', requires = "flight")]
    pub trigger: Vec<Trigger>,
}

/// What is printed of a trace, and where.
#[derive(Debug, Clone, Default, Args)]
pub struct OutputArgs {
    /// Write the report (with --batch: the figures) to FILE, - for stdout, and not to stderr, or without a COMMAND to
    /// stdout. Ranks of a job: FILE.NODE
    #[arg(long, value_name = "FILE")]
    pub report: Option<PathBuf>,
    /// Print nothing but errors: no report (unless --report names a file), no messages, no dashboard
    #[arg(short, long, conflicts_with = "batch")]
    pub quiet: bool,
}

/// What is shown while it happens, or of a dataset, and how.
#[derive(Debug, Clone, Default, Args)]
pub struct ShowArgs {
    /// No dashboard, even on a terminal
    #[arg(long)]
    pub no_tui: bool,
    /// Show only calls that fulfil a condition, on the dashboard and with --batch: 'layer=hdf5 and dur>10ms'. Fields: layer,
    /// op, kind, file, pid, tid, rank, dur, self, bytes, offset, errno; see docs/dashboard.md
    #[arg(long = "where", value_name = "FILTER", value_parser = filter)]
    pub filter: Option<Filter>,
    /// Write figures as lines again and again, and no dashboard
    #[arg(long)]
    pub batch: bool,
    /// Seconds between two ticks of --batch
    #[arg(short, long, value_name = "SECONDS", default_value = "1", value_parser = seconds, requires = "batch")]
    pub delay: Duration,
    /// End after this many ticks of --batch
    #[arg(short = 'n', long, value_name = "N", requires = "batch", value_parser = clap::value_parser!(u64).range(1..))]
    pub ticks: Option<u64>,
    /// One JSON object for each tick of --batch
    #[arg(long, requires = "batch")]
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
    /// Show a function of the program as a span around the I/O it does; of another file with @FILE (name or path)
    #[arg(long, value_name = "FUNCTION[@FILE]", value_parser = phase)]
    pub phase: Vec<Phase>,
    /// Trace the functions of this catalog file, too (see probes generate)
    #[arg(long, value_name = "FILE.toml")]
    pub probes: Vec<PathBuf>,
}

/// What else the program can do.
#[derive(Debug, Subcommand)]
pub enum Action {
    /// Summary of a recorded dataset
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
    /// What changed between two runs, or between several on each side: compare A1 A2 -- B1 B2
    Compare {
        /// The two datasets, or those of the first side
        #[arg(required = true, value_name = "DIR")]
        dirs: Vec<PathBuf>,
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
    /// One figure of the calls that fulfil conditions, by rank, file, function, device, phase or time
    Query(QueryArgs),
    /// A dataset in a format that other programs read
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
    },
    /// A program in C that makes the I/O of a trace
    ReplayCode(ReplayCodeArgs),
    /// What the report looks for
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
    /// Ask a dataset in SQL: opens its views in a program duckdb, or in python3 with that module, from any directory
    Sql {
        /// The dataset, or a directory with those of several nodes or periods
        dir: PathBuf,
        /// What to answer, as CSV where stdout is no terminal; without it what is typed or comes on stdin
        query: Option<String>,
    },
    /// Make a dataset whose tracer was killed what one is that ended in order: open parts are removed, each id has one
    /// row
    Repair {
        /// The dataset, or a directory with those of several nodes or periods
        dir: PathBuf,
    },
    /// The catalog of traced functions
    Probes {
        #[command(subcommand)]
        action: ProbesAction,
    },
    /// What this kernel and these privileges allow, and what to do about the rest
    Doctor,
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
         also the selection calls of dataspaces; mpi=all: also communication that is part of other communication"
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
