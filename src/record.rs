//! One recording from start to end: session, worker, signals, summary.

pub mod flight;
pub mod job;
mod output;
pub mod session;

use self::job::{rank, ranks};
use self::output::{metrics_endpoint, viewers};
use self::session::{begin, control, detail, note, worker};
use crate::cli::RecordArgs;
use crate::correlate::Config;
use crate::loader::code::remembered::Remembered;
use crate::loader::kernel;
use crate::loader::kernel::rings::{self, Gauges, now};
use crate::loader::kernel::sums::Taker;
use crate::loader::kernel::trial::Trial;
use crate::loader::processes::guardian::Guards;
use crate::loader::processes::launch::{self, Launched};
use crate::loader::processes::{limits, mounts, namespace};
use crate::loader::session::{Options, Session, stores};
use crate::loader::stacks::resolve::Resolver;
use crate::metrics::endpoint;
use crate::record::flight::SharedAlarm;
use crate::record::flight::trigger::Stuck;
use crate::record::flight::viewer::Viewer;
use crate::record::job::ranks::{Meeting, Ranks};
use crate::record::output::destination::Destination;
use crate::record::output::report::Report;
use crate::record::output::rotation::Rotation;
use crate::record::output::viewers::Watching;
use crate::record::session::control::Control;
use crate::record::session::detail::Chooser;
use crate::record::session::run::{Run, Totals};
use crate::record::session::sampler::{Board, Sampler};
use crate::record::session::stacks::Stacks;
use crate::record::session::targets::Targets;
use crate::vocabulary::Layer;
use crate::{doctor, export, notices, probes, sudo, text};
use anyhow::{Context as _, Result, anyhow};
use nix::sys::signal::{SigSet, Signal, kill};
use nix::unistd::Pid;
use std::io::Write as _;
use std::sync::Arc;
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::time::{Duration, Instant};

/// Our own failures, so that they cannot be taken for the command's.
pub const TOOL_FAILED: u8 = 125;
/// How often the session looks at losses, targets and the clock.
const TICK: Duration = Duration::from_millis(200);
/// Batches that may wait for the worker.
const QUEUE: usize = 256;
/// Asks for what is in flight.
const DUMP: Signal = Signal::SIGUSR1;
/// Asks for a dataset of what is kept in memory.
const WRITE: Signal = Signal::SIGUSR2;

/// Records as the command line says; returns the exit status.
pub fn record(args: &RecordArgs) -> Result<u8> {
    if !args.run.is_empty()
        && let Some(code) = rank::meet(&args.run)?
    {
        return Ok(code);
    }
    trace(args, None).map_err(limits::explained)
}

/// Records the ranks of a job on this node, in a directory named by it; returns the exit status.
pub fn record_ranks(mut args: RecordArgs, meeting: &Meeting) -> Result<u8> {
    if let Some(all) = args.output.take() {
        let own = all.join(rank::host());
        meeting.claim(&own)?;
        export::make_shared(&all, sudo::invoking_user(), nix::unistd::geteuid().is_root())?;
        args.output = Some(own);
    }
    trace(&args, Some(Ranks::new(meeting))).map_err(limits::explained)
}

/// The files that earlier runs found to have nothing to probe. A file may have something for probes of the user.
fn remembered(args: &RecordArgs, layers: &[Layer]) -> Remembered {
    if !(args.added.phase.is_empty() && args.added.probes.is_empty()) {
        return Remembered::default();
    }
    let all: Vec<Layer> = args.layers.iter().filter(|choice| choice.all).map(|choice| choice.layer).collect();
    Remembered::load(layers, &all)
}

fn trace(args: &RecordArgs, ranks: Option<Ranks<'_>>) -> Result<u8> {
    let begun = Instant::now();
    if args.tell.quiet {
        notices::be_quiet();
    }
    limits::prepare();
    let mut catalog = probes::catalog(&args.added)?;
    let layers = probes::layers(&args.layers, &catalog, args.wide().is_some())?;
    catalog.ask_for_all(args.layers.iter().filter(|choice| choice.all).map(|choice| choice.layer));
    if let Some(whom) = args.wide().and_then(|_| probes::slows(&layers)) {
        notices::note(&whom);
    }
    doctor::preflight(!args.run.is_empty())?;
    let of_ranks = ranks.is_some();
    if !args.stacks.is_empty() && args.aggregates() && args.detail.is_empty() {
        anyhow::bail!("--stacks needs calls that are recorded one by one: add --detail slow, or leave out --aggregate");
    }
    let targets = Targets::new(args)?;
    let keeps = args.flight.flight;
    let rotation = if keeps.is_some() { None } else { Rotation::wanted(args.rotate)? };
    let several = rotation.is_some() || keeps.is_some();
    let host = rank::host();

    // The port before the command, too.
    let listener = args.metrics.map(endpoint::bind).transpose()?;

    // Before the threads, so that all of them inherit the mask and only one of them waits for signals.
    let mut signals = SigSet::from_iter([Signal::SIGINT, Signal::SIGTERM, Signal::SIGHUP, Signal::SIGCHLD, DUMP]);
    if keeps.is_some() {
        signals.add(WRITE);
    }
    signals.thread_block().context("blocking signals")?;

    kernel::quiet_libbpf();
    // They take their time, and need nothing of what follows.
    std::thread::Builder::new().name("types".into()).spawn(kernel::prepare).context("thread for the kernel's types")?;
    let mut trial = Trial::start(catalog.serves(&layers))?;
    let early = !args.run.is_empty() && !of_ranks && matches!(targets, Targets::Command(_));
    let remembered = remembered(args, &layers);
    let known = remembered.files().map(|plain| plain.version).collect();
    let starting = early.then(|| begin::starting(&args.run, catalog.serves(&layers), known)).transpose()?;

    // The output before the command: a bad file or directory must not cost a run.
    let report = Report::open(args, of_ranks)?;
    let mut destination = Destination::new(args.output.as_deref());
    let writer = destination.writer(&host, args, rotation.as_ref())?;

    let specs = catalog.rows().to_vec();
    let traced = layers.clone();
    let reserved = targets.reserved()?;
    let options = Options {
        layers,
        ring_bytes: args.ring_size,
        sockets: args.sockets,
        reserved: reserved + if of_ranks { ranks::ROOM } else { 0 },
        scope: targets.scope(),
        namespace: namespace::own().map_err(|e| anyhow!("{e}"))?,
        aggregate: args.aggregates(),
        detail: detail::plan(&args.detail),
        max_overhead: args.max_overhead.share(),
    };
    let mut stores = stores();
    let (mut session, ring_maps) = Session::load(&mut stores, &mut trial, catalog, &options, remembered)?;

    let t0 = now();
    let loading = begun.elapsed();
    let (stopped, stop) = std::io::pipe().context("pipe to end the trace by")?;
    let gauges = Arc::new(Gauges::default());
    let (batches, inbox) = mpsc::sync_channel(QUEUE);
    let (notes, inbox_of_notes) = mpsc::channel();
    let control::Channel { records, sender, receiver: control } = control::channel(&signals)?;
    // Whom to listen to is chosen by what comes out of the rings.
    let longest = if options.detail.is_some() { rings::POLL } else { rings::SELDOM };
    let drain = rings::drain(ring_maps, batches, records, Arc::clone(&gauges), longest, stopped)?;
    let slow = args.stacks.iter().map(|limit| (limit.layer, limit.time.as_nanos() as i64)).collect();
    let config = Config { t0, specs, aggregate: options.aggregate, slow, ..Config::default() }.before(
        &args.rank_vars,
        &args.size_vars,
        &args.job_vars,
    );
    let (rows, rank_vars) = (config.specs.clone(), config.rank_vars.clone());
    let stacks = Stacks::wanted(&args.stacks, &rows, &destination.notices);
    let chooser = options
        .detail
        .is_some()
        .then(|| Ok::<_, anyhow::Error>(Chooser::new(args.detail.clone(), rank_vars.clone(), session.choice()?)));
    let chooser = chooser.transpose()?;
    let viewer = Viewer::start(move || Resolver::new(rows, rank_vars, t0))?;
    let node = Arc::new(Board::default());
    let served = listener.map(|l| metrics_endpoint::Serving::begin(l, args, &traced, &gauges, &node)).transpose()?;
    let mut watching = Watching::wanted(args, t0, &gauges, &node);
    let sampler =
        Sampler::start(t0, Arc::clone(&node), Arc::clone(&gauges), notes.clone(), watching.watch().is_some())?;
    let board = watching.watch().filter(|_| watching.shows());
    let alarm = keeps.map(SharedAlarm::new);
    let worker = worker::start(worker::Worker {
        writer,
        config,
        mounts: mounts::of(std::process::id()),
        gauges: Arc::clone(&gauges),
        watch: watching.watch(),
        totals: served.as_ref().map(metrics_endpoint::Serving::totals),
        triggers: args.flight.trigger.clone(),
        chooser,
        alarm: alarm.clone(),
        notices: destination.notices.clone(),
        inbox,
        notes: inbox_of_notes,
    })?;

    let sums = options.aggregate.then(|| {
        let sums = session.sums(options.detail.as_ref())?;
        let notes = notes.clone();
        // A worker that failed has given the reason.
        Taker::start(sums, move |events| drop(notes.send(note::Note::Events(events))))
    });
    let mut run = Run {
        sums: sums.transpose()?,
        stacks,
        args,
        targets: &targets,
        reserved,
        session: &mut session,
        notes,
        control: &control,
        drain: &drain,
        t0,
        gauges,
        totals: Totals::default(),
        sampler: Some(sampler),
        sender: sender.clone(),
        guards: Guards::default(),
        starting,
        command: None,
        ranks,
        viewer: &viewer,
        dump: false,
        rotation,
        alarm: alarm.clone(),
        stuck: Stuck::wanted(&args.flight.trigger),
        board,
        watching: &mut watching,
        begin: Some(viewers::Begin {
            destination: &destination,
            host: &host,
            left: sender,
            alarm,
            report: report.clone(),
        }),
        told: false,
        warned: false,
        loading,
    };
    run.tell_meta(&host, trial.found()?);
    let outcome = run.trace();
    let code = run.end(stop);
    let (mut command, ended_by_us, warned) = (run.command.take(), run.told, run.warned);
    drop(run);
    viewer.end();
    let drained = drain.join().map_err(|_| anyhow!("the thread that drains the rings panicked"))?;
    // Signals that came while the trace ended.
    let signals: Vec<Signal> = control
        .try_iter()
        .filter_map(|late| match late {
            Control::Signal(signal) => Some(signal),
            _ => None,
        })
        .collect();
    let mut waiting = Waiting { told: warned, signals: signals.into_iter(), control: &control };
    let worker::Ended { written, counted } = worker.join().map_err(|_| anyhow!("the worker thread panicked"))?;
    let shown = watching.end(&control, ended_by_us);
    destination.notices.screen_ended();
    if let Some(counted) = counted.filter(|_| !args.show.batch) {
        // What it cannot be written to must not hide why there is no dataset.
        let _ = report.write(|out| Ok(out.write_all(counted.as_bytes())?));
    }
    let started = command.is_some() || args.run.is_empty() || of_ranks;
    if started && outcome.is_ok() && written.is_ok() {
        destination.find();
        if !args.show.batch && !several && !report.is_unwanted() {
            report.write(|out| export::report::run(&destination.path, false, out))?;
        }
        if keeps.is_some() {
            // Each was told when it was written.
        } else if let Some(dir) = destination.settle()? {
            let what = if several { "datasets" } else { "dataset" };
            notices::note(&format!("{what} in {}", text::escape(dir.as_os_str().as_encoded_bytes())));
        }
    }
    if let (Some(command), Err(_)) = (&mut command, &written)
        && command.ended()?.is_none()
    {
        // It is not to blame and goes on to its end; the failure is told last, where it is read.
        let _ = writeln!(std::io::stderr(), "iotrace-bpf: recording has failed; the command goes on untraced");
        waiting.wait_for(command)?;
    }
    drained?;
    written?;
    shown?;
    if let Some(code) = outcome?.or(code) {
        return Ok(code);
    }
    // The time was over before the command: it runs on untraced, and its exit status is still ours.
    command.map_or(Ok(0), |mut command| waiting.wait_for(&mut command))
}

/// For a command that is no longer traced.
struct Waiting<'a> {
    /// A signal was passed on to it.
    told: bool,
    /// Those that came while the trace ended.
    signals: std::vec::IntoIter<Signal>,
    control: &'a Receiver<Control>,
}

impl Waiting<'_> {
    /// Waits until it ends. Signals are passed on; the second one ends the waiting.
    fn wait_for(&mut self, command: &mut Launched) -> Result<u8> {
        loop {
            if let Some(status) = command.ended()? {
                return Ok(launch::shell_code(status) as u8);
            }
            let heard = self.signals.next().map(Control::Signal).map_or_else(|| self.control.recv_timeout(TICK), Ok);
            match heard {
                Ok(Control::Signal(s)) if ![Signal::SIGCHLD, DUMP, WRITE].contains(&s) => {
                    if self.told {
                        return Ok(128 + s as u8);
                    }
                    self.told = true;
                    pass_on(command, s);
                }
                Ok(_) | Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => return Err(anyhow!("the thread for signals ended")),
            }
        }
    }
}

/// The terminal sends Ctrl-C to the command itself; other signals reach only us.
fn pass_on(command: &Launched, signal: Signal) {
    if signal != Signal::SIGINT {
        // It may have ended by itself.
        let _ = kill(Pid::from_raw(command.pid() as i32), signal);
    }
}

/// Nanoseconds since 1970.
fn wall() -> u64 {
    std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).map_or(0, |d| d.as_nanos() as u64)
}
