//! A tracer that is started as one of several ranks of a job. The first one that comes on a node starts the tracer of the node, a
//! process of its own, so that what ends a rank does not end the trace, and waits for it; the others become their programs
//! as soon as they are traced. Whatever goes wrong in that costs the trace, and not the program.

use crate::base::{notices, sudo};
use crate::loader::kernel::privileges;
use crate::loader::processes::launch::{self, Launched};
use crate::loader::processes::{guardian, limits};
use crate::record::job::launcher::{self, Job};
use crate::record::job::rank_protocol::{self, Answer};
use crate::record::job::ranks::{NODE, UNKNOWN};
use crate::record::job::rendezvous::Rendezvous;
use crate::record::session::control::{self, Control, pass_on};
use crate::record::{TICK, TOOL_FAILED};
use anyhow::{Context as _, Result, bail};
use nix::fcntl::{FcntlArg, FdFlag, fcntl};
use nix::sys::resource::{Resource, setrlimit};
use nix::sys::signal::{SigSet, Signal, kill};
use nix::unistd::Pid;
use rustix::process::{PidfdFlags, PidfdGetfdFlags, getpid, pidfd_getfd, pidfd_open};
use std::ffi::OsString;
use std::fs::File;
use std::io::{Read, Write};
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::fs::MetadataExt as _;
use std::os::unix::process::{CommandExt as _, ExitStatusExt as _};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::Receiver;
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

/// How long a rank tries to be traced.
const PATIENCE: Duration = Duration::from_secs(10);
/// Between two tries.
const RETRY: Duration = Duration::from_millis(20);
/// How long a tracer may take to begin or to end.
const LONGEST: Duration = Duration::from_mins(1);
/// How long a tracer that fails may take to report why.
const REPORTING: Duration = Duration::from_secs(5);

/// This node's name.
pub fn host() -> String {
    nix::unistd::gethostname().map_or_else(|_| "unknown".into(), |host| host.to_string_lossy().into_owned())
}

/// Meets the other ranks of the job on this node, if there is a job, and runs the command as one of them: the exit status, if
/// this process has not become the command or ended as it did.
///
/// # Errors
/// When the command cannot be waited for.
pub fn meet(command: &[OsString]) -> Result<Option<u8>> {
    let var = |name: &str| std::env::var(name).ok();
    let Some(job) = launcher::of(var, maker, (host(), sudo::invoking_user())) else { return Ok(None) };
    let why = match come(&job) {
        Ok(Met::Traced) => None,
        Ok(Met::First(rendezvous, lock)) => match First::start(&rendezvous, &lock, &job, command) {
            Ok(first) => {
                drop(lock);
                return first.run(command).map(Some);
            }
            Err(e) => Some(format!("{e:#}")),
        },
        Ok(Met::Failed(why)) => {
            notices::print(&format!("{}: {why}", host()));
            return Ok(Some(TOOL_FAILED));
        }
        Err(e) => Some(format!("{e:#}")),
    };
    if let Some(why) = why {
        untraced(&why);
    }
    let error = launch::execute(command);
    notices::print(&error.to_string());
    Ok(Some(error.code as u8))
}

/// What comes of a meeting.
enum Met {
    /// There is no tracer yet: this is the first rank. The lock is that of the tracer.
    First(Rendezvous, File),
    Traced,
    /// The tracer cannot begin.
    Failed(String),
}

/// Tries until the tracer of this node answers, or there is none. The error is why this rank is not traced.
fn come(job: &Job) -> Result<Met> {
    let until = Instant::now() + PATIENCE;
    let mut guard = None;
    loop {
        let rendezvous = Rendezvous::of(&job.name)?;
        if let Some(lock) = rendezvous.lock()? {
            return Ok(Met::First(rendezvous, lock));
        }
        if Instant::now() > until {
            bail!(
                "no tracer of this node answered in time, and another process holds its lock (an earlier trace of this job?)"
            );
        }
        if let Some(mut tracer) = rendezvous.connect()? {
            // Once: a filter stays.
            if guard.is_none() {
                guard = Some(guardian::hold_ourselves().ok());
            }
            let guarded = guard.as_ref().and_then(Option::as_ref).map(AsRawFd::as_raw_fd);
            rank_protocol::ask(&mut tracer, job.rank, None, guarded);
            match rank_protocol::answered(&mut tracer, LONGEST)? {
                None | Some(Answer::Later) => {}
                Some(Answer::Go) => return Ok(Met::Traced),
                Some(Answer::Failed(why)) => return Ok(Met::Failed(why)),
                Some(Answer::Not(why)) => bail!(why),
            }
        }
        thread::sleep(RETRY);
    }
}

fn untraced(why: &str) {
    notices::print(&format!("{}: not traced: {why}", host()));
}

/// The process that made a socket which we inherited, in its PID namespace.
fn maker(fd: i32) -> Option<String> {
    let own = pidfd_open(getpid(), PidfdFlags::empty()).ok()?;
    let socket = pidfd_getfd(&own, fd, PidfdGetfdFlags::empty()).ok()?;
    let namespace = std::fs::metadata("/proc/self/ns/pid").ok()?.ino();
    Some(format!("{} {namespace}", rank_protocol::peer(&socket).ok()?.pid()))
}

/// The first rank of a node: its program, which waits to begin, and the tracer.
struct First {
    program: Launched,
    tracer: Child,
    relays: [JoinHandle<()>; 2],
    control: Receiver<Control>,
    answer: Result<Option<Answer>>,
    /// A signal that ends processes has come.
    end_sent: bool,
}

impl First {
    /// Starts both, and waits for the tracer's answer.
    fn start(rendezvous: &Rendezvous, lock: &File, job: &Job, command: &[OsString]) -> Result<Self> {
        let listener = rendezvous.listen()?;
        // The last three the launcher sends to all processes of a rank, and only the program knows what they are for.
        let signals = SigSet::from_iter([
            Signal::SIGINT,
            Signal::SIGTERM,
            Signal::SIGHUP,
            Signal::SIGCHLD,
            Signal::SIGQUIT,
            Signal::SIGUSR1,
            Signal::SIGUSR2,
        ]);
        signals.thread_block().context("blocking signals")?;
        limits::ignore_size();
        let control = control::channel(&signals)?.receiver;
        let program = launch::launch(command, privileges::may_hold(), None)?;
        let guard =
            program.listener().ok().map(|listener| guardian::start()?.of(program.pid(), listener, &[])).transpose()?;
        // Before there is a tracer, so that it can report when it cannot begin.
        let mut asked = rendezvous.connect()?.context("the socket of the ranks of this node")?;
        rank_protocol::ask(&mut asked, job.rank, Some(program.pid()), guard.as_ref().map(AsRawFd::as_raw_fd));
        fcntl(lock, FcntlArg::F_SETFD(FdFlag::empty())).context("the lock of the ranks of this node")?;
        let mut tracer = Command::new("/proc/self/exe")
            .arg(NODE)
            .arg(&job.name)
            .arg(job.local.map_or_else(|| UNKNOWN.to_owned(), |ranks| ranks.to_string()))
            .arg(lock.as_raw_fd().to_string())
            .args(std::env::args_os().skip(1))
            .stdin(OwnedFd::from(listener))
            // Not the launcher's, which waits until all copies are closed.
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            // What the launcher does to the rank, it does to its group.
            .process_group(0)
            .spawn()
            .context("starting the tracer of this node")?;
        let relays = [relay(tracer.stdout.take(), std::io::stdout())?, relay(tracer.stderr.take(), std::io::stderr())?];
        let answer = rank_protocol::answered(&mut asked, LONGEST);
        Ok(Self { program, tracer, relays, control, answer, end_sent: false })
    }

    /// Lets the program run, and waits for it and for the tracer: the exit status, which is the program's.
    fn run(mut self, command: &[OsString]) -> Result<u8> {
        let traced = match &self.answer {
            Ok(Some(Answer::Go)) => true,
            // The tracer itself reports it.
            Ok(Some(Answer::Failed(_))) => {
                self.wait_for_tracer(Some(Instant::now() + REPORTING));
                return Ok(TOOL_FAILED);
            }
            other => {
                untraced(&match other {
                    Ok(Some(Answer::Not(why))) => why.clone(),
                    Err(e) => format!("{e:#}"),
                    Ok(_) => "the tracer of this node has ended".to_owned(),
                });
                false
            }
        };
        if let Err(e) = self.program.go(command.first().context("a command")?)? {
            notices::print(&e.to_string());
            return Ok(e.code as u8);
        }
        let status = loop {
            if let Some(status) = self.program.ended()? {
                break status;
            }
            if let Some(signal) = self.end_signal() {
                pass_on(&self.program, signal);
                self.end_sent = true;
            }
        };
        if let Some(signal) = status.signal() {
            end_by(signal);
        }
        // The launcher must learn of a failure at once: it would wait for ranks that wait for this one.
        if status.success() && traced {
            self.wait_for_tracer(None);
        }
        Ok(launch::shell_code(status) as u8)
    }

    /// Waits for the end of the tracer, so that the launcher waits for the dataset. The second signal ends the trace.
    fn wait_for_tracer(mut self, until: Option<Instant>) {
        while matches!(self.tracer.try_wait(), Ok(None)) {
            if until.is_some_and(|until| Instant::now() > until) {
                return;
            }
            if self.end_signal().is_some() && std::mem::replace(&mut self.end_sent, true) {
                let _ = kill(Pid::from_raw(self.tracer.id() as i32), Signal::SIGTERM);
            }
        }
        for relay in self.relays {
            // A closed output is no failure.
            let _ = relay.join();
        }
    }

    /// Waits a moment for a signal that ends processes. The terminal sends Ctrl-C to the program itself.
    fn end_signal(&self) -> Option<Signal> {
        match self.control.recv_timeout(TICK) {
            Ok(Control::Signal(signal @ (Signal::SIGTERM | Signal::SIGHUP))) => Some(signal),
            _ => None,
        }
    }
}

/// Copies the tracer's output to that of the rank.
fn relay(from: Option<impl Read + Send + 'static>, mut to: impl Write + Send + 'static) -> Result<JoinHandle<()>> {
    let mut from = from.context("the output of the tracer of this node")?;
    let copy = move || {
        let mut bytes = [0; 8192];
        while let Ok(n @ 1..) = from.read(&mut bytes) {
            if to.write_all(&bytes[..n]).and_then(|()| to.flush()).is_err() {
                return;
            }
        }
    };
    thread::Builder::new().name("relay".into()).spawn(copy).context("thread for the output of the tracer")
}

/// Ends as the program did: launchers distinguish a signal from an exit status. Returns only where that is not possible.
fn end_by(signal: i32) {
    // The program has left its core, if that is wanted.
    let _ = setrlimit(Resource::RLIMIT_CORE, 0, 0);
    let _ = signal_hook::low_level::emulate_default_handler(signal);
}
