//! How a trace gets its targets: those that there are, a command, the ranks of a job; and their counters.

use crate::base::sudo;
use crate::event::Event;
use crate::loader::code::remembered::Version;
use crate::loader::kernel::counters::{Counters, Of};
use crate::loader::kernel::privileges;
use crate::loader::kernel::rings::now;
use crate::loader::processes::guardian::{self, Guard};
use crate::loader::processes::launch::{self, Slave};
use crate::record::session::control::Control;
use crate::record::session::note::Note;
use crate::record::session::run::{Run, Started};
use crate::record::session::targets::{COMMAND, Targets};
use anyhow::{Context as _, Result, anyhow};
use std::ffi::OsString;
use std::io::Write as _;
use std::sync::Arc;
use std::thread::JoinHandle;

/// Lets a supervisor (systemd, or whatever set `NOTIFY_SOCKET`: `sd_notify(3)`) know that from now on no call is missed. Not
/// with a command, which has the same variable, and reports for itself.
fn report_ready() {
    // A supervisor that does not listen is none of the trace's errors.
    let _ = sd_notify::notify(false, &[sd_notify::NotifyState::Ready]);
}

fn start(run: &[OsString], held: bool, known: &[Version], slave: Option<Slave>) -> Result<Started> {
    let command = launch::launch(run, held, slave)?;
    let guard = command.listener().ok().map(|listener| guardian::start()?.of(command.pid(), listener, known));
    let guard = guard.transpose()?;
    let counters = Counters::open(Of::Command(command.pid()));
    Ok(Started { command, guard, counters })
}

/// Starts a command as the first target, while the trace is prepared. It is held only for probes of
/// libraries, and not where it maps a file that is known to have none. On that terminal, if there is one for it.
///
/// # Errors
/// When there can be no thread for it.
pub fn starting(
    run: &[OsString],
    libraries: bool,
    known: Vec<Version>,
    slave: Option<Slave>,
) -> Result<JoinHandle<Result<Started>>> {
    let run = run.to_vec();
    let start = move || start(&run, libraries && privileges::may_hold(), &known, slave);
    std::thread::Builder::new().name("start".into()).spawn(start).context("thread to start the command")
}

impl Run<'_, '_> {
    /// Makes targets of what is there, starts the command, or takes in the ranks that have come. The exit status of a command
    /// that could not be started.
    ///
    /// # Errors
    /// When there is no process to trace, or a probe could not be set.
    pub fn begin_targets(&mut self) -> Result<Option<u8>> {
        self.targets.attach(self.reserved, self.session, &self.feeds.notes)?;
        let of = match self.targets {
            // Not yet there.
            Targets::Command(_) => None,
            Targets::Listed(pids) => Some(Of::Processes(pids)),
            Targets::Group(directory, _) => Some(Of::Group(directory)),
            Targets::Node => Some(Of::Node),
        };
        if let Some(of) = of {
            self.count(Counters::open(of));
        }
        if self.ranks.is_some() {
            self.meet();
            return Ok(None);
        }
        if self.args.run.is_empty() {
            report_ready();
            return Ok(None);
        }
        self.launch()
    }

    /// Begins to read what the kernel counts of the targets.
    fn count(&self, counters: Counters) {
        if let Some(sampler) = &self.feeds.sampler {
            sampler.count(counters);
        }
    }

    /// Takes in the ranks that have come.
    pub fn meet(&mut self) {
        if let Some(ranks) = &mut self.ranks {
            let sampler = self.feeds.sampler.as_ref().filter(|_| matches!(self.targets, Targets::Command(_)));
            let count = |pid| {
                if let Some(sampler) = sampler {
                    sampler.count(Counters::open(Of::Command(pid)));
                }
            };
            let guards = ranks.look(self.reserved + 1, self.targets, self.session, &self.feeds.notes, count);
            for guard in guards {
                // A listener that cannot be used is dropped, and lets all calls go on.
                let _ = self.hold(guard);
            }
        }
    }

    /// Has calls that a library may come with wait until its probes are set.
    fn hold(&mut self, guard: Guard) -> Result<()> {
        let guard = Arc::new(guard);
        guard.listen(self.feeds.sender.clone(), Control::Waits)?;
        self.guards.add(guard);
        self.session.expect_filters();
        Ok(())
    }

    /// Starts the command; its exit status if it could not be started.
    fn launch(&mut self) -> Result<Option<u8>> {
        // Others than the command run already.
        let Started { mut command, guard, counters } = match self.starting.take() {
            Some(starting) => starting.join().map_err(|_| {
                anyhow!(
                    "the thread that starts the command panicked: a bug of iotrace-bpf; please report the lines above"
                )
            })??,
            None => start(&self.args.run, false, &[], self.slave.take())?,
        };
        if let Some(guard) = guard {
            self.hold(guard)?;
        }
        if self.targets.has(command.pid())? {
            let process = Event::Process {
                time: now(),
                process: COMMAND,
                parent: None,
                runs: false,
                pid: command.pid(),
                ppid: std::process::id(),
                uid: sudo::invoking_user().map_or_else(|| nix::unistd::getuid().as_raw(), |(uid, _)| uid),
            };
            let _ = self.feeds.notes.send(Note::Events(vec![process]));
            self.session.add_target(command.pid(), COMMAND, false)?;
        }
        if matches!(self.targets, Targets::Command(_)) {
            self.count(counters);
        }
        // A terminal has sent this to all that were there: the command was not, and would never know.
        if let Some(signal) = self.asked_to_end() {
            self.stopped = true;
            let _ = writeln!(std::io::stderr(), "iotrace-bpf: {signal}: the command was not started");
            return Ok(Some(128 + signal as u8));
        }
        let name = self.args.run.first().context("a command")?;
        match command.go(name)? {
            Ok(()) => {
                self.command = Some(command);
                Ok(None)
            }
            Err(e) => {
                let _ = writeln!(std::io::stderr(), "iotrace-bpf: {e}");
                Ok(Some(e.code as u8))
            }
        }
    }
}
