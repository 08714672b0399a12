//! The display of a running trace: a dashboard on the terminal, lines of `--batch`, or none.

use crate::analysis::trace::source::Hosts;
use crate::base::notices;
use crate::cli::RecordArgs;
use crate::loader::kernel::rings::Gauges;
use crate::loader::processes::launch;
use crate::record::flight::SharedAlarm;
use crate::record::output::destination::Destination;
use crate::record::output::report::Report;
use crate::record::session::control::Control;
use crate::record::session::live::{Live, LiveState};
use crate::record::session::sampler::Board;
use crate::record::terminal::Terminal;
use crate::record::{DUMP, WRITE};
use crate::summary::{From, Summary};
use crate::{batch, export, tui};
use anyhow::{Context as _, Result, anyhow};
use nix::sys::signal::Signal;
use std::process::ExitStatus;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::thread::JoinHandle;
use std::time::Duration;

/// How often a dashboard that outlives the trace looks for signals.
const LOOK: Duration = Duration::from_millis(200);

/// What it takes to begin.
pub struct Begin<'a> {
    pub destination: &'a Destination,
    pub host: &'a str,
    /// To report that the user has left.
    pub left: Sender<Control>,
    /// Takes requests for a dataset of what is kept in memory, if that is where rows go.
    pub alarm: Option<SharedAlarm>,
    /// Where lines go.
    pub report: Report,
}

enum How {
    Dashboard(tui::Options),
    Batch(batch::Batch),
}

/// The dashboard, or the lines of `--batch`.
pub struct Display {
    current: Option<(Arc<LiveState>, How)>,
    shows: bool,
    stop: Arc<AtomicBool>,
    /// That of the command, while the dashboard has the user's.
    pub terminal: Option<Terminal>,
    /// Dropped to wake and end the lines.
    over: Option<Sender<()>>,
    thread: Option<JoinHandle<Result<()>>>,
}

impl Display {
    /// A command keeps its terminal, unless `--tui` gives it one of its own.
    pub fn wanted(args: &RecordArgs, t0: u64, gauges: &Arc<Gauges>, node: &Arc<Board>) -> Self {
        let stop = Arc::new(AtomicBool::new(false));
        let how = if args.show.batch {
            Some(How::Batch(args.show.batch()))
        } else if args.tui || (args.run.is_empty() && !args.show.no_tui && !args.output_args.quiet && tui::wanted()) {
            let filter = args.show.filter.clone().map(Arc::new);
            Some(How::Dashboard(tui::Options { stop: Arc::clone(&stop), filter }))
        } else {
            None
        };
        let shows = matches!(how, Some(How::Dashboard(_)));
        let from = if args.aggregates() { From::Sums } else { From::Spans };
        let summary = Summary::new(from).live();
        let summary = if shows { summary.finding(1, &Hosts::default()) } else { summary };
        let current = how.map(|how| (Arc::new(LiveState::new(t0, summary, Arc::clone(gauges), Arc::clone(node))), how));
        Self { current, shows, stop, terminal: None, over: None, thread: None }
    }

    /// What the worker feeds.
    pub fn current(&self) -> Option<Arc<LiveState>> {
        self.current.as_ref().map(|(current, _)| Arc::clone(current))
    }

    /// Is the terminal taken?
    pub const fn shows(&self) -> bool {
        self.shows
    }

    /// Starts to show, when the targets are known.
    ///
    /// # Errors
    /// When a thread cannot be started.
    pub fn begin(&mut self, Begin { destination, host, left, alarm, report }: Begin) -> Result<()> {
        let Some((current, how)) = self.current.take() else { return Ok(()) };
        let asked = !destination.is_temporary();
        let mut live =
            Live::new(current, &destination.path, asked, destination.wanted.clone(), destination.notices.clone(), host);
        if let Some(alarm) = alarm {
            live = live.keeping(alarm);
        }
        let terminal = self.terminal.clone();
        if let Some(terminal) = &terminal {
            live = live.with_terminal(terminal.clone());
        }
        if self.shows {
            destination.notices.on_screen();
        }
        let (over, ends) = mpsc::channel::<()>();
        let notices = destination.notices.clone();
        self.over = Some(over);
        let show = move || {
            let shown = match how {
                How::Dashboard(options) => tui::run(&mut live, &options),
                How::Batch(batch) => {
                    let wait = |delay| matches!(ends.recv_timeout(delay), Err(RecvTimeoutError::Timeout));
                    report.write(|out| batch::run(&mut live, &batch, out, wait))
                }
            };
            if let Some(terminal) = terminal {
                terminal.give_back();
                if terminal.output().ended.is_none() {
                    notices.note("the command goes on, and the trace with it");
                }
            }
            // The session may have ended by itself.
            let _ = left.send(Control::Left);
            shown.or_else(|e| if export::reader_left(&e) { Ok(()) } else { Err(e) })
        };
        self.thread = Some(std::thread::Builder::new().name("screen".into()).spawn(show).context("thread that shows")?);
        Ok(())
    }

    /// The command has ended so.
    pub fn command_ended(&self, status: ExitStatus) {
        if let Some(terminal) = &self.terminal {
            terminal.ended(launch::ending(status));
        }
    }

    /// The trace is over: waits until the user has seen enough, unless the user or a limit has ended it. The output of the
    /// command is on the user's terminal then.
    ///
    /// # Errors
    /// What went wrong with showing.
    pub fn end(&mut self, control: &Receiver<Control>, stopped: bool) -> Result<()> {
        let shown = self.wait(control, stopped);
        if let Some(terminal) = &self.terminal {
            terminal.give_back();
            if let Some(ended) = &terminal.output().ended {
                terminal.rest();
                notices::note(&format!("the command has ended: {ended}"));
            }
        }
        shown
    }

    /// The command has ended, after the trace: what it wrote last is printed, too.
    pub fn rest(&self) {
        self.terminal.iter().for_each(Terminal::rest);
    }

    fn wait(&mut self, control: &Receiver<Control>, stopped: bool) -> Result<()> {
        let Some(thread) = self.thread.take() else { return Ok(()) };
        self.over = None;
        if stopped || !self.shows {
            self.stop.store(true, Ordering::Relaxed);
        }
        while !thread.is_finished() {
            match control.recv_timeout(LOOK) {
                Ok(Control::Signal(s)) if ![Signal::SIGCHLD, DUMP, WRITE].contains(&s) => {
                    self.stop.store(true, Ordering::Relaxed);
                }
                Err(RecvTimeoutError::Disconnected) => break,
                _ => {}
            }
        }
        self.shows = false;
        thread.join().map_err(|_| {
            anyhow!("the thread that shows panicked: a bug of iotrace-bpf; please report the lines above")
        })?
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn a_dashboard_outlives_signals_that_ask_for_something() {
        // Each is sent when the one before was dealt with.
        let (to, control) = mpsc::sync_channel(0);
        let stop = Arc::new(AtomicBool::new(false));
        let stopped = Arc::clone(&stop);
        let screen = move || {
            for signal in [WRITE, DUMP, Signal::SIGCHLD, Signal::SIGCHLD] {
                to.send(Control::Signal(signal))?;
            }
            assert!(!stopped.load(Ordering::Relaxed));
            to.send(Control::Signal(Signal::SIGTERM))?;
            to.send(Control::Signal(Signal::SIGCHLD))?;
            assert!(stopped.load(Ordering::Relaxed));
            Ok(())
        };
        let thread = Some(std::thread::spawn(screen));
        let mut display = Display { current: None, shows: true, stop, terminal: None, over: None, thread };
        display.end(&control, false).unwrap();
    }
}
