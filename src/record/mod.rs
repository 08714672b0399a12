//! One recording from start to end: `plan` what is traced, start the `threads`, run the session, `finish`.

mod finish;
pub mod flight;
pub mod job;
mod output;
mod plan;
mod readahead;
pub mod session;
mod terminal;
mod threads;

use self::job::{rank, ranks};
use self::output::display;
use self::plan::Plan;
use self::threads::Setup;
use crate::base::{notices, sudo};
use crate::cli::RecordArgs;
use crate::loader::kernel;
use crate::loader::kernel::rings::now;
use crate::loader::kernel::trial::Trial;
use crate::loader::processes::guardian::Guards;
use crate::loader::processes::{allocator, limits};
use crate::loader::session::{Session, stores};
use crate::record::finish::Ended;
use crate::record::flight::trigger::Stuck;
use crate::record::job::ranks::{Meeting, Ranks};
use crate::record::output::destination::Destination;
use crate::record::output::report::Report;
use crate::record::session::run::{Run, Totals};
use crate::record::terminal::Terminal;
use crate::{export, tune};
use anyhow::{Context as _, Result};
use nix::sys::signal::Signal;
use std::time::{Duration, Instant};

/// Our own failures, so that they cannot be taken for the command's.
pub const TOOL_FAILED: u8 = 125;
/// How often the session looks at losses, targets and the clock.
const TICK: Duration = Duration::from_millis(200);
/// Asks for what is in flight.
const DUMP: Signal = Signal::SIGUSR1;
/// Asks for a dataset of what is kept in memory.
const WRITE: Signal = Signal::SIGUSR2;

/// Records as the command line asks; returns the exit status.
pub fn record(args: &RecordArgs) -> Result<u8> {
    if !args.run.is_empty()
        && let Some(code) = rank::meet(&args.run)?
    {
        return Ok(code);
    }
    if !args.run.is_empty() && !args.output_args.quiet {
        for offer in tune::offers(&args.run) {
            notices::note(&offer);
        }
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

fn trace(args: &RecordArgs, ranks: Option<Ranks<'_>>) -> Result<u8> {
    let begun = Instant::now();
    if args.output_args.quiet {
        notices::be_quiet();
    }
    allocator::prepare();
    limits::prepare();
    let of_ranks = ranks.is_some();
    let plan = Plan::new(args, of_ranks)?;
    kernel::quiet_libbpf();
    // They take their time, and need nothing of what follows.
    std::thread::Builder::new().name("types".into()).spawn(kernel::prepare).context("thread for the kernel's types")?;
    let mut trial = Trial::start(plan.has_libraries())?;
    let remembered = plan.remembered(args);
    let (terminal, mut slave) = if args.tui && !args.run.is_empty() {
        Terminal::open().map(|(terminal, slave)| (Some(terminal), Some(slave)))?
    } else {
        (None, None)
    };
    let starting = plan.start_command(args, &remembered, &mut slave)?;

    // The output before the command: a bad file or directory must not cost a run.
    let report = Report::open(args, of_ranks)?;
    let mut destination = Destination::new(args.output.as_deref());
    let writer = destination.writer(&plan.host, args, plan.rotation.as_ref())?;

    let options = plan.options(args)?;
    let Plan { catalog, layers, targets, rotation, several, host, listener, signals, .. } = plan;
    let specs = catalog.rows().to_vec();
    let mut stores = stores();
    let (mut session, ring_maps) = Session::load(&mut stores, &mut trial, catalog, &options, remembered)?;
    let (t0, loading) = (now(), begun.elapsed());
    let setup =
        Setup { args, t0, layers: &layers, options: &options, notices: &destination.notices, signals: &signals };
    let (mut threads, feeds, stop) = setup.start(&session, specs, ring_maps, writer, listener)?;
    threads.display.terminal = terminal;
    let board = threads.display.current().filter(|_| threads.display.shows());
    let begin = display::Begin {
        destination: &destination,
        host: &host,
        left: feeds.sender.clone(),
        alarm: feeds.alarm.clone(),
        report: report.clone(),
    };
    let mut run = Run {
        args,
        targets: &targets,
        reserved: options.reserved - if of_ranks { ranks::ROOM } else { 0 },
        session: &mut session,
        feeds,
        control: &threads.control,
        drain: &threads.drain,
        t0,
        totals: Totals::default(),
        guards: Guards::default(),
        starting,
        slave,
        command: None,
        ranks,
        viewer: &threads.viewer,
        dump: false,
        rotation,
        stuck: Stuck::wanted(&args.flight.trigger),
        board,
        display: &mut threads.display,
        begin: Some(begin),
        stopped: false,
        warned: false,
        loading,
    };
    run.send_meta(&host, trial.found()?);
    let outcome = run.trace();
    let code = run.end(stop);
    let (command, stopped, warned) = (run.command.take(), run.stopped, run.warned);
    drop(run);
    let ended = Ended { outcome, code, command, stopped, warned };
    ended.finish(args, threads, destination, &report, (several, of_ranks))
}

/// Nanoseconds since 1970.
fn wall() -> u64 {
    std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).map_or(0, |d| d.as_nanos() as u64)
}
