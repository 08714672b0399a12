//! The end of a recording: the last rows, the report, and the command if it still runs.

use crate::base::{notices, text};
use crate::cli::RecordArgs;
use crate::export;
use crate::loader::processes::allocator;
use crate::loader::processes::launch::{self, Launched};
use crate::record::output::destination::Destination;
use crate::record::output::report::Report;
use crate::record::session::control::{Control, pass_on};
use crate::record::session::worker;
use crate::record::threads::Threads;
use crate::record::{DUMP, TICK, WRITE};
use crate::runs::{self, Entered};
use anyhow::{Result, anyhow};
use nix::sys::signal::Signal;
use std::io::Write as _;
use std::sync::mpsc::{Receiver, RecvTimeoutError};

/// How a trace ended.
pub struct Ended {
    pub outcome: Result<Option<u8>>,
    /// The exit status of the command, when it ended with the trace.
    pub code: Option<u8>,
    pub command: Option<Launched>,
    /// A signal, the time or the user ended it, and not its targets.
    pub stopped: bool,
    /// The command got a signal to end.
    pub warned: bool,
}

impl Ended {
    /// Waits for the threads and for the command, and prints the report; returns the exit status. `several`: there may
    /// be more than one dataset.
    ///
    /// # Errors
    /// The first failure of the trace, of reading the rings, of writing or of the screen.
    pub fn finish(
        mut self,
        args: &RecordArgs,
        threads: Threads,
        mut destination: Destination,
        report: &Report,
        (several, of_ranks): (bool, bool),
    ) -> Result<u8> {
        let Threads { control, drain, worker, viewer, mut display, served: _served } = threads;
        viewer.end();
        let drained = drain.join().map_err(|_| {
            anyhow!("the thread that drains the rings panicked: a bug of iotrace-bpf; please report the lines above")
        })?;
        // Signals that came while the trace ended.
        let late =
            control.try_iter().filter_map(|late| if let Control::Signal(signal) = late { Some(signal) } else { None });
        let signals: Vec<Signal> = late.collect();
        let mut waiting = Waiting { warned: self.warned, signals: signals.into_iter(), control: &control };
        let worker::Ended { written, counted } = worker
            .join()
            .map_err(|_| anyhow!("the worker thread panicked: a bug of iotrace-bpf; please report the lines above"))?;
        let shown = display.end(&control, self.stopped);
        destination.notices.screen_ended();
        if let Some(counted) = counted.filter(|_| !args.show.batch) {
            // What it cannot be written to must not hide why there is no dataset.
            let _ = report.write(|out| Ok(out.write_all(counted.as_bytes())?));
        }
        let started = self.command.is_some() || args.run.is_empty() || of_ranks;
        let recorded = self.outcome.is_ok() && written.is_ok();
        let published = if started && recorded {
            publish(args, &mut destination, report, several).map(|()| enter_run(&destination, of_ranks))
        } else {
            Ok(())
        };
        // A session that failed may have a command that was never released.
        let goes_on = self.outcome.is_ok() || written.is_err();
        if let Some(why) = [published, drained, written, shown].into_iter().find_map(Result::err) {
            if let Some(command) = self.command.as_mut().filter(|_| goes_on)
                && command.ended()?.is_none()
            {
                // The command goes on to its end; the failure is printed last, where it is seen.
                let what = if recorded { "the end of the trace" } else { "recording" };
                let _ = writeln!(std::io::stderr(), "iotrace-bpf: {what} has failed; the command goes on untraced");
                waiting.wait_for(command)?;
                display.rest();
            }
            return Err(why);
        }
        if let Some(code) = self.outcome?.or(self.code) {
            return Ok(code);
        }
        // The time was over before the command: it runs on untraced, and its exit status is still ours.
        let code = self.command.map_or(Ok(0), |mut command| waiting.wait_for(&mut command));
        display.rest();
        code
    }
}

/// Prints the report of a dataset, and moves it to its path.
fn publish(args: &RecordArgs, destination: &mut Destination, report: &Report, several: bool) -> Result<()> {
    destination.find();
    if !args.show.batch && !several && !report.is_unwanted() {
        // What the threads of the trace have left free is in an arena that this thread takes nothing from.
        allocator::trim();
        let wish = export::report::Wish { look: report.look(), ..Default::default() };
        report.write(|out| export::report::run_with(&destination.path, &wish, out).map(drop))?;
    }
    // Datasets of a flight recorder were reported when they were written.
    if args.flight.flight.is_none()
        && let Some(dir) = destination.settle()?
    {
        let what = if several { "datasets" } else { "dataset" };
        notices::note(&format!("{what} in {}", text::escape(dir.as_os_str().as_encoded_bytes())));
    }
    Ok(())
}

/// Enters a run into an index that there is. What goes wrong there is no failure of the trace.
fn enter_run(destination: &Destination, of_ranks: bool) {
    let Some(own) = destination.kept() else { return };
    // Nodes of a job are one run.
    let run = own.parent().filter(|parent| of_ranks && !parent.as_os_str().is_empty()).unwrap_or(&own);
    let entered = runs::enter(run).unwrap_or_else(|why| Entered { notes: vec![format!("{why:#}")], differs: None });
    for note in entered.notes {
        notices::note(&format!("the index of runs: {note}"));
    }
    if let Some(differs) = entered.differs {
        notices::note(&differs);
    }
}

/// For a command that is no longer traced.
struct Waiting<'a> {
    /// A signal was passed on to it.
    warned: bool,
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
            let message = self.signals.next().map(Control::Signal).map_or_else(|| self.control.recv_timeout(TICK), Ok);
            match message {
                Ok(Control::Signal(s)) if ![Signal::SIGCHLD, DUMP, WRITE].contains(&s) => {
                    if self.warned {
                        return Ok(128 + s as u8);
                    }
                    self.warned = true;
                    pass_on(command, s);
                }
                Ok(_) | Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => return Err(anyhow!("the thread for signals ended")),
            }
        }
    }
}
