//! The threads of a trace: one reads the rings, one works on their records, others sample, serve and show.

use crate::base::notices::Notices;
use crate::baseline::Baseline;
use crate::catalog::Row;
use crate::cli::RecordArgs;
use crate::correlate::Config;
use crate::loader::kernel::rings::{self, Gauges};
use crate::loader::kernel::sums::Taker;
use crate::loader::processes::mounts::known::KnownMounts;
use crate::loader::session::{Options, Session};
use crate::loader::stacks::resolve::Resolver;
use crate::record::flight::SharedAlarm;
use crate::record::flight::viewer::Viewer;
use crate::record::output::Output;
use crate::record::output::display::Display;
use crate::record::output::metrics_endpoint::Serving;
use crate::record::readahead::ReadAhead;
use crate::record::session::control::{self, Control};
use crate::record::session::detail::Chooser;
use crate::record::session::note::Note;
use crate::record::session::sampler::{Board, Sampler, Wanted};
use crate::record::session::stacks::Stacks;
use crate::record::session::worker;
use crate::vocabulary::Layer;
use anyhow::{Context as _, Result};
use libbpf_rs::MapHandle;
use nix::sys::signal::SigSet;
use std::io::PipeWriter;
use std::net::TcpListener;
use std::sync::Arc;
use std::sync::mpsc::{self, Receiver, Sender};
use std::thread::JoinHandle;

/// Batches that may wait for the worker.
const QUEUE: usize = 256;

/// The threads, and what comes back from them.
pub struct Threads {
    pub control: Receiver<Control>,
    pub drain: JoinHandle<Result<()>>,
    pub worker: JoinHandle<worker::Ended>,
    pub viewer: Viewer,
    pub display: Display,
    /// The metrics endpoint: it serves until this is dropped.
    pub served: Option<Serving>,
}

/// What the session feeds the threads by. The worker ends after these are dropped.
pub struct Feeds {
    pub notes: Sender<Note>,
    /// Gets the calls in flight.
    pub sender: Sender<Control>,
    pub gauges: Arc<Gauges>,
    /// Samples the node, until the trace ends.
    pub sampler: Option<Sampler>,
    /// Aggregate mode: reads the sums.
    pub sums: Option<Taker>,
    /// Looks for slow calls and takes their stacks.
    pub stacks: Stacks,
    /// When what is kept in memory is written.
    pub alarm: Option<SharedAlarm>,
}

/// What the threads depend on.
pub struct Setup<'a> {
    pub args: &'a RecordArgs,
    pub t0: u64,
    pub layers: &'a [Layer],
    pub options: &'a Options,
    pub notices: &'a Notices,
    pub signals: &'a SigSet,
}

impl Setup<'_> {
    /// Starts them; the pipe ends the reading of the rings.
    ///
    /// # Errors
    /// When a thread cannot be started, or a table of the kernel cannot be used.
    pub fn start(
        &self,
        session: &Session<'_>,
        specs: Vec<Row>,
        ring_maps: Vec<MapHandle>,
        writer: Output,
        listener: Option<TcpListener>,
    ) -> Result<(Threads, Feeds, PipeWriter)> {
        let (args, t0, notices) = (self.args, self.t0, self.notices);
        let (stopped, stop) = std::io::pipe().context("pipe to end the trace by")?;
        let gauges = Arc::new(Gauges::default());
        let (batches, inbox) = mpsc::sync_channel(QUEUE);
        let (notes, inbox_of_notes) = mpsc::channel();
        let control::Channel { records, sender, receiver: control } = control::channel(self.signals)?;
        // The processes that are muted are chosen from the rings' records, and what is read ahead.
        let longest = if self.options.detail.is_some() || args.advise_readahead { rings::POLL } else { rings::SELDOM };
        let drain = rings::drain(ring_maps, batches, records, Arc::clone(&gauges), longest, stopped)?;
        let config = self.config(specs);
        let (rows, rank_vars) = (config.specs.clone(), config.rank_vars.clone());
        let stacks = Stacks::wanted(&args.stacks, &rows, notices);
        let chooser = match self.options.detail {
            Some(_) => Some(Chooser::new(args.detail.clone(), rank_vars.clone(), session.choice()?)),
            None => None,
        };
        let ahead = args.advise_readahead.then(|| ReadAhead::start(&rows, rings::now)).transpose()?;
        let viewer = Viewer::start(move || Resolver::new(rows, rank_vars, t0))?;
        let node = Arc::new(Board::default());
        let served = listener.map(|l| Serving::begin(l, args, self.layers, &gauges, &node)).transpose()?;
        let display = Display::wanted(args, t0, &gauges, &node);
        let shown = display.current().is_some();
        let wanted = Wanted { shown, fine: !self.options.aggregate };
        let sampler = Sampler::start(t0, Arc::clone(&node), Arc::clone(&gauges), notes.clone(), wanted)?;
        let alarm = args.flight.flight.map(SharedAlarm::new);
        let worker = worker::start(worker::Worker {
            writer,
            config,
            mounts: KnownMounts::read(),
            gauges: Arc::clone(&gauges),
            current: display.current(),
            totals: served.as_ref().map(Serving::totals),
            triggers: args.flight.trigger.clone(),
            chooser,
            ahead,
            baseline: self.baseline(),
            alarm: alarm.clone(),
            notices: notices.clone(),
            inbox,
            notes: inbox_of_notes,
        })?;
        let sums = if self.options.aggregate { Some(self.sums(session, notes.clone())?) } else { None };
        let threads = Threads { control, drain, worker, viewer, display, served };
        Ok((threads, Feeds { notes, sender, gauges, sampler: Some(sampler), sums, stacks, alarm }, stop))
    }

    /// What calls are compared with. Without it a run is what it is otherwise.
    fn baseline(&self) -> Option<Baseline> {
        let opened = Baseline::open(self.args.baseline.clone()?);
        opened.inspect_err(|why| self.notices.note(&format!("calls are not compared with earlier runs: {why:#}"))).ok()
    }

    fn config(&self, specs: Vec<Row>) -> Config {
        let args = self.args;
        let slow = args.stacks.iter().map(|limit| (limit.layer, limit.time.as_nanos() as i64)).collect();
        let config = Config { t0: self.t0, specs, aggregate: self.options.aggregate, slow, ..Config::default() };
        config.before(&args.rank_vars, &args.size_vars, &args.job_vars)
    }

    fn sums(&self, session: &Session<'_>, notes: Sender<Note>) -> Result<Taker> {
        let sums = session.sums(self.options.detail.as_ref())?;
        // A worker that failed has given the reason.
        Taker::start(sums, move |batch| drop(notes.send(Note::Sums(batch))))
    }
}
