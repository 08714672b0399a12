//! What is decided before anything of a trace starts: what is traced, and where from.

use crate::base::{notices, usage};
use crate::catalog::Catalog;
use crate::cli::{LayerChoice, RecordArgs};
use crate::loader::code::remembered::Remembered;
use crate::loader::processes::launch::Slave;
use crate::loader::processes::namespace;
use crate::loader::session::Options;
use crate::metrics::endpoint;
use crate::record::job::{rank, ranks};
use crate::record::output::rotation::Rotation;
use crate::record::session::run::Started;
use crate::record::session::targets::Targets;
use crate::record::session::{begin, detail};
use crate::record::{DUMP, WRITE};
use crate::vocabulary::Layer;
use crate::{doctor, probes, tui};
use anyhow::{Context as _, Result, anyhow};
use nix::sys::signal::{SigSet, Signal};
use std::net::TcpListener;
use std::thread::JoinHandle;

/// The options, checked and put to use.
pub struct Plan {
    pub catalog: Catalog,
    pub layers: Vec<Layer>,
    pub targets: Targets,
    pub rotation: Option<Rotation>,
    /// More than one dataset may be written.
    pub several: bool,
    pub host: String,
    /// Of the metrics endpoint.
    pub listener: Option<TcpListener>,
    /// The signals that the trace handles, blocked from now on in this thread and those that it starts.
    pub signals: SigSet,
    of_ranks: bool,
}

impl Plan {
    /// # Errors
    /// When options contradict each other or this system, or name what is not there.
    pub fn new(args: &RecordArgs, of_ranks: bool) -> Result<Self> {
        let mut catalog = probes::catalog(&args.added)?;
        let layers = probes::layers(&args.layers, &catalog, args.wide().is_some())?;
        catalog.ask_for_all(args.layers.iter().filter(|choice| choice.all).map(|choice| choice.layer));
        let whole = |layer| args.layers.iter().any(|choice| choice.layer == layer && choice.functions.is_none());
        for LayerChoice { layer, functions, .. } in args.layers.iter().filter(|choice| !whole(choice.layer)) {
            let chosen = functions.iter().try_for_each(|pattern| catalog.choose(*layer, pattern));
            chosen.map_err(|why| usage::wrong(&why))?;
        }
        if let Some(why) = args.wide().and_then(|_| probes::slows(&layers)) {
            notices::note(&why);
        }
        if args.tui && !tui::wanted() {
            anyhow::bail!(
                "--tui needs a terminal on standard input and output; -o DIR records without one, for replay"
            );
        }
        doctor::preflight(!args.run.is_empty())?;
        if !args.stacks.is_empty() && args.aggregates() && args.detail.is_empty() {
            usage::bail!(
                "--stacks needs calls that are recorded one by one: add --detail slow, or leave out --aggregate"
            );
        }
        if args.advise_readahead && args.aggregates() {
            usage::bail!(
                "--advise-readahead needs reads that are recorded one by one: leave out --aggregate and --detail; with \
                 --system add -o DIR"
            );
        }
        if args.baseline.is_some() && args.aggregates() {
            usage::bail!(
                "--baseline needs calls that are recorded one by one: leave out --aggregate and --detail; with --system add -o \
                 DIR"
            );
        }
        let targets = Targets::new(args)?;
        let keeps = args.flight.flight.is_some();
        let rotation = if keeps { None } else { Rotation::wanted(args.rotate)? };
        let several = rotation.is_some() || keeps;
        let host = rank::host();
        // The port before the command, too.
        let listener = args.metrics.map(endpoint::bind).transpose()?;
        let signals = block_signals(keeps)?;
        Ok(Self { catalog, layers, targets, rotation, several, host, listener, signals, of_ranks })
    }

    /// Does the catalog have functions of libraries in these layers?
    pub fn has_libraries(&self) -> bool {
        self.catalog.serves(&self.layers)
    }

    /// The files that earlier runs found to have nothing to probe. A file may have something for probes of the user, and
    /// nothing of what is asked for.
    pub fn remembered(&self, args: &RecordArgs) -> Remembered {
        let chosen = args.layers.iter().any(|choice| choice.functions.is_some());
        if chosen || !(args.added.phase.is_empty() && args.added.probes.is_empty()) {
            return Remembered::default();
        }
        let all: Vec<Layer> = args.layers.iter().filter(|choice| choice.all).map(|choice| choice.layer).collect();
        Remembered::load(&self.layers, &all)
    }

    /// Starts the command while the programs are loaded, where it is the only target. On that terminal, if there is one.
    ///
    /// # Errors
    /// When there can be no thread for it.
    pub fn start_command(
        &self,
        args: &RecordArgs,
        remembered: &Remembered,
        slave: &mut Option<Slave>,
    ) -> Result<Option<JoinHandle<Result<Started>>>> {
        let early = !args.run.is_empty() && !self.of_ranks && matches!(self.targets, Targets::Command(_));
        let known = remembered.files().map(|plain| plain.version).collect();
        early.then(|| begin::starting(&args.run, self.has_libraries(), known, slave.take())).transpose()
    }

    /// What the kernel side needs to know.
    ///
    /// # Errors
    /// When the targets cannot be counted, or there is no namespace of processes.
    pub fn options(&self, args: &RecordArgs) -> Result<Options> {
        Ok(Options {
            layers: self.layers.clone(),
            ring_bytes: args.ring_size,
            sockets: args.sockets,
            reserved: self.targets.reserved()? + if self.of_ranks { ranks::ROOM } else { 0 },
            scope: self.targets.scope(),
            namespace: namespace::own().map_err(|e| anyhow!("{e}"))?,
            aggregate: args.aggregates(),
            detail: detail::plan(&args.detail),
            max_overhead: args.max_overhead.share(),
        })
    }
}

/// Before the threads, so that all of them inherit the mask and only one of them waits for signals.
fn block_signals(keeps: bool) -> Result<SigSet> {
    let mut signals = SigSet::from_iter([Signal::SIGINT, Signal::SIGTERM, Signal::SIGHUP, Signal::SIGCHLD, DUMP]);
    if keeps {
        signals.add(WRITE);
    }
    signals.thread_block().context("blocking signals")?;
    Ok(signals)
}
