//! The options of a trace: what is traced and recorded, where it goes, and what it may cost.

use crate::batch::Batch;
use crate::catalog::Phase;
use crate::cli::detail::Detail;
use crate::cli::trigger::Trigger;
use crate::cli::values::{
    Budget, LayerChoice, budget, disk_size, duration, filter, layer_choice, period, phase, pid, size, stacks, tick,
};
use crate::loader::stacks::slow::Limit;
use crate::summary::filter::Filter;
use crate::vocabulary::Layer;
use clap::Args;
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
pub const GROUPS: [&str; 5] = [TARGETS, RECORDED, WHERE, COST, OUTPUT];

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
