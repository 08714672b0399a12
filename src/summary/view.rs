//! What the screens show, as plain data, and what they ask for: the boundary between the summary and the dashboard.
//!
//! Times are nanoseconds since the start of the trace. A layer's calls, bytes and times count its outermost calls, as
//! everywhere; `self_ns` is exclusive time. Texts (paths, names, commands) are as the traced programs gave them: they
//! are escaped where they are shown. Tables are cut at a cap, and what is cut is in their `other`.

pub use crate::summary::groups::{Grouping, grouped, spread};
pub use crate::summary::screens::*;

use nix::sys::signal::Signal;
use serde::{Deserialize, Serialize};
use std::path::PathBuf;
use std::sync::Arc;

use crate::analysis::findings::Findings;
use crate::inflight::InFlight;
use crate::node::Recent;
use crate::summary::filter::Filter;
use crate::vocabulary::Layer;

/// The screens, in the order of their tabs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Screen {
    #[default]
    Overview,
    Processes,
    Files,
    Tree,
    Latency,
    InFlight,
    Events,
    Devices,
    Coverage,
    Findings,
}

impl Screen {
    /// All of them, in this order.
    pub const ALL: [Self; 10] = [
        Self::Overview,
        Self::Processes,
        Self::Files,
        Self::Tree,
        Self::Latency,
        Self::InFlight,
        Self::Events,
        Self::Devices,
        Self::Coverage,
        Self::Findings,
    ];
}

/// Every table of the screens, by the name that it has in a saved layout.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum TableId {
    Layers,
    TopProcesses,
    TopFiles,
    Processes,
    Files,
    FileOps,
    Handles,
    Objects,
    Tree,
    Inverted,
    Slowest,
    NodeFiles,
    Waterfall,
    Ops,
    Flights,
    Events,
    Devices,
    Users,
    Mounts,
    Groups,
    Losses,
    Refused,
    Findings,
    Output,
    Followed,
    Stacks,
}

/// What the dashboard asks for besides what every screen shows.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Focus {
    /// What of `Snapshot` beside `status`, `history` and `overview` is wanted; the rest may be empty. With the overview come
    /// `processes` and `files`.
    pub screen: Screen,
    /// Figures over this window only; all that is kept when there is none.
    pub window: Option<Window>,
    pub filter: Option<Arc<Filter>>,
    /// On the processes screen: a row for each thread.
    pub threads: bool,
    /// The file of `Snapshot::file`, and the datasets and handles in it.
    pub file_id: Option<i32>,
    /// The node of `Snapshot::node`.
    pub node: Option<NodeId>,
    /// Any span of the call tree of `Snapshot::waterfall`.
    pub span_id: Option<i64>,
    pub measure: Measure,
    /// What `Snapshot::latency` is of: all operations of all layers, of a layer, or one.
    pub layer: Option<Layer>,
    pub op: Option<&'static str>,
    /// What `Snapshot::process` is of.
    pub process: Option<ProcessFocus>,
}

impl Focus {
    /// The process whose stacks are wanted: that a screen shows which has them.
    pub fn stacks_of(&self) -> Option<&ProcessFocus> {
        self.process.as_ref().filter(|of| self.screen == Screen::Processes && of.part == ProcessPart::Stacks)
    }
}

/// What the dashboard asks the trace to do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Command {
    /// Writes a dataset from now on.
    StartRecording(PathBuf),
    StopRecording,
    /// Writes what the flight recorder keeps.
    WriteFlight,
    /// Writes the spans of a selection (window, filter, file, node or tree) as a dataset in a new directory.
    Export(PathBuf),
    /// Ends a search that goes on.
    Cancel,
    /// Sends a signal to a process.
    Signal {
        process_ix: i32,
        pid: i32,
        signal: Signal,
    },
    /// Types these bytes on the terminal of the command.
    Type(Vec<u8>),
}

/// Where snapshots come from: a trace that goes on, or a dataset.
///
/// None of this blocks for long: what takes time goes on in other threads, and the next snapshots show how far it is.
pub trait Source {
    /// The figures as they are now. The same `Arc` as before where nothing has changed.
    fn snapshot(&mut self, focus: &Focus) -> Arc<Snapshot>;

    /// Does it; the answer is shown to the user.
    ///
    /// # Errors
    /// Names why it cannot be done.
    fn command(&mut self, command: Command, focus: &Focus) -> Result<String, String>;
}

/// Everything there is to see. Parts are shared between snapshots, so that a clone costs nothing.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Snapshot {
    pub run: Arc<RunHeader>,
    /// What there is to look at.
    pub kept: Window,
    /// What the figures are over.
    pub window: Window,
    pub status: Status,
    pub history: Arc<History>,
    pub overview: Arc<Overview>,
    pub processes: Arc<Processes>,
    pub files: Arc<Files>,
    pub file: Option<Arc<FileDetail>>,
    pub tree: Arc<Tree>,
    pub node: Option<Arc<NodeDetail>>,
    pub waterfall: Option<Arc<Waterfall>>,
    pub latency: Arc<Latency>,
    pub events: Arc<Events>,
    pub devices: Arc<Devices>,
    pub coverage: Arc<Coverage>,
    /// What is wrong: of a trace that goes on, in its last minute.
    pub findings: Arc<Findings>,
    /// What has entered and not returned; `None` where that is not known, as of a dataset.
    pub inflight: Option<Arc<InFlight>>,
    /// What the node did lately; `None` of a dataset.
    pub recent_node: Option<Arc<Recent>>,
    /// The calls or stacks of the process that was asked for.
    pub process: Option<ProcessDetail>,
    /// What the command writes to its terminal, if the dashboard has the user's.
    pub output: Option<Arc<CommandOutput>>,
    /// What is being read or searched, for the screen that asked.
    pub loading: Option<Loading>,
    /// What the figures leave out, and why, in sentences: damaged parts, caps that were reached, filters that could not
    /// be applied to what is long gone.
    pub notes: Arc<[String]>,
}

/// What is looked at.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct RunHeader {
    /// A trace that goes on, not a dataset.
    pub live: bool,
    /// The command, or the processes attached to, or the directory of the dataset.
    pub title: String,
    pub host: String,
    pub kernel: String,
    /// Wall time of time 0, nanoseconds since 1970.
    pub t0_wall_ns: Option<i64>,
    /// The trace has ended: nothing new comes.
    pub ended: bool,
    /// Calls are summed up (`--aggregate`): single ones are those of `--detail`.
    pub summed: bool,
}

/// The permanent line.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Status {
    pub events: u64,
    pub events_per_s: f64,
    /// Everything that a hook saw and that is not in the figures.
    pub lost: u64,
    /// The part of the run that tracing took, if it is known.
    pub tracing: Option<f64>,
    /// The same by layer (`None`: not known), the most first; without those that lost nothing.
    pub lost_by_layer: Vec<(Option<Layer>, u64)>,
    /// How full the fullest ring was in the last second, 0 to 1.
    pub ring_fill: Option<f64>,
    /// Of one CPU, 0 to 1 and more.
    pub own_cpu: Option<f64>,
    pub own_memory: Option<u64>,
    pub recording: Option<Recording>,
    pub probes_attached: usize,
    pub probes: usize,
    /// Processes that are traced now, and those that were.
    pub processes: usize,
    pub processes_ended: usize,
}

/// A dataset that is being written.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Recording {
    pub path: String,
    pub bytes: u64,
    pub bytes_per_s: f64,
}

/// Work that goes on in another thread.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Loading {
    pub what: String,
    /// 0 to 1.
    pub done: f64,
}
