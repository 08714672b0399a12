//! A tracer that is started as one of several ranks of a job. The ranks of a node meet at a socket. The first one starts the
//! tracer of the node, a process of its own, so that what ends a rank does not end the trace, and waits for it; the others
//! become their programs as soon as they are traced.

use super::control::{self, Control};
use super::job::{self, Job};
use super::ranks::Ranks;
use super::{TICK, said};
use crate::loader::launch;
use anyhow::{Context as _, Result, bail};
use nix::sys::signal::{SigSet, Signal, kill};
use nix::sys::socket::{UnixCredentials, getsockopt, sockopt::PeerCredentials};
use nix::unistd::{Pid, Uid, geteuid};
use rustix::process::{PidfdFlags, PidfdGetfdFlags, Resource, Rlimit, getpid, pidfd_getfd, pidfd_open, setrlimit};
use std::ffi::OsString;
use std::io::{ErrorKind, Read, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::os::linux::net::SocketAddrExt as _;
use std::os::unix::fs::MetadataExt as _;
use std::os::unix::net::{SocketAddr, UnixListener, UnixStream};
use std::os::unix::process::{CommandExt as _, ExitStatusExt as _};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc::Receiver;
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

/// First argument of the tracer of a node: then how many ranks that has, and the command line. Its standard input is the
/// socket.
pub const NODE: &str = "__node";
/// First argument of the first rank's program, until it is traced: then the socket's name, and the command.
pub const OWN: &str = "__rank";
/// What the tracer answers a rank: this, or why not.
pub const GO: &[u8] = b"go";

/// A rank whose tracer could not begin.
const TOOL_FAILED: u8 = 125;
/// How many ranks: not known.
const UNKNOWN: &str = "-";
/// Between two tries to meet: one rank has left the socket and the next one has not taken it.
const RETRY: Duration = Duration::from_millis(10);
const TRIES: u32 = 500;
/// How long a tracer that fails may take to say why.
const SAYING: Duration = Duration::from_secs(5);

/// This node's name.
pub fn host() -> String {
    nix::unistd::gethostname().map_or_else(|_| "unknown".into(), |host| host.to_string_lossy().into_owned())
}

/// Meets the other ranks of the job on this node, if there is a job, and runs the command as one of them: the exit status, if
/// this process has not become the command or ended as it did.
///
/// # Errors
/// When they cannot be met.
pub fn meet(command: &[OsString]) -> Result<Option<u8>> {
    let Some(job) = job::of(|name| std::env::var(name).ok(), maker) else { return Ok(None) };
    let name = format!("iotrace-bpf/{}/{}", geteuid(), job.name);
    let address = SocketAddr::from_abstract_name(&name).context("a socket for the ranks of this node")?;
    for _ in 0..TRIES {
        match UnixListener::bind_addr(&address) {
            Ok(listener) => return first(&listener, &job, &name, command).map(Some),
            Err(e) if e.kind() == ErrorKind::AddrInUse => {}
            Err(e) => return Err(e).context("a socket for the ranks of this node"),
        }
        match UnixStream::connect_addr(&address) {
            Ok(tracer) => {
                if let Err(why) = admitted(tracer) {
                    let why = if why.is_empty() { "the tracer of this node has ended" } else { &why };
                    said::print(&format!("{}: not traced: {why}", host()));
                }
                return Ok(Some(execute(command)));
            }
            Err(e) if e.kind() == ErrorKind::ConnectionRefused => thread::sleep(RETRY),
            Err(e) => return Err(e).context("the tracer of the other ranks of this node"),
        }
    }
    bail!("somebody has the socket for the ranks of this node and does not answer: @{name}")
}

/// Who made a socket that we inherited: a process, in its PID namespace.
fn maker(fd: i32) -> Option<String> {
    let own = pidfd_open(getpid(), PidfdFlags::empty()).ok()?;
    let socket = pidfd_getfd(&own, fd, PidfdGetfdFlags::empty()).ok()?;
    let namespace = std::fs::metadata("/proc/self/ns/pid").ok()?.ino();
    Some(format!("{} {namespace}", peer(&socket).ok()?.pid()))
}

/// Who is at the other end of a socket.
pub fn peer(socket: &impl AsFd) -> nix::Result<UnixCredentials> {
    getsockopt(socket, PeerCredentials)
}

/// May this user be traced, or trace us?
pub fn is_trusted(uid: u32) -> bool {
    let uid = Uid::from_raw(uid);
    uid.is_root() || uid == geteuid()
}

/// The first rank blocks the signals that it waits for, and a child inherits that.
fn unblock() -> Result<()> {
    SigSet::empty().thread_set_mask().context("unblocking signals")
}

/// Waits until this process is traced; why it is not, empty when the tracer has ended.
fn admitted(mut tracer: UnixStream) -> Result<(), String> {
    let peer = peer(&tracer).map_err(|e| format!("its tracer is not known: {e}"))?;
    if !is_trusted(peer.uid()) {
        return Err(format!("user {} has taken the place of its tracer", peer.uid()));
    }
    let mut said = Vec::new();
    // One that is gone has said nothing.
    let _ = tracer.read_to_end(&mut said);
    if said == GO { Ok(()) } else { Err(String::from_utf8_lossy(&said).into_owned()) }
}

/// Becomes the command; the exit status if that fails.
fn execute(command: &[OsString]) -> u8 {
    let error = launch::execute(command);
    said::print(&error.to_string());
    error.code as u8
}

/// The first rank's program, until it is traced. Its launcher is to learn of a tracer that cannot begin, which has said why.
///
/// # Errors
/// When the tracer cannot be asked.
pub fn own_main(args: &[OsString]) -> Result<u8> {
    let [name, command @ ..] = args else { bail!("{OWN} is for internal use") };
    unblock()?;
    let address = SocketAddr::from_abstract_name(name.as_encoded_bytes()).context("the socket of the tracer")?;
    let admitted = UnixStream::connect_addr(&address).map_err(|e| e.to_string()).and_then(admitted);
    match admitted {
        Ok(()) => return Ok(execute(command)),
        Err(why) if why.is_empty() => {}
        Err(why) => said::print(&format!("{}: not traced: {why}", host())),
    }
    Ok(TOOL_FAILED)
}

/// The ranks that the tracer of a node is started for, and its command line.
///
/// # Errors
/// When it was not started by a rank.
pub fn node(args: &[OsString]) -> Result<(Ranks, &[OsString])> {
    let [ranks, line @ ..] = args else { bail!("{NODE} is for internal use") };
    unblock()?;
    // What the launcher gave the rank, such as its end of a connection: it waits for the last one who has it.
    let inherited = std::fs::read_dir("/proc/self/fd").context("descriptors")?.flatten();
    let inherited: Vec<i32> = inherited.filter_map(|entry| entry.file_name().to_str()?.parse().ok()).collect();
    for fd in inherited.into_iter().filter(|fd| *fd > 2) {
        // One of them was the list's own.
        let _ = nix::unistd::close(fd);
    }
    let listener = std::io::stdin().as_fd().try_clone_to_owned().context("the socket of the ranks")?;
    Ok((Ranks::new(listener.into(), ranks.to_str().and_then(|n| n.parse().ok())), line))
}

/// Starts the tracer of this node, and the first rank's program.
fn first(listener: &UnixListener, job: &Job, name: &str, command: &[OsString]) -> Result<u8> {
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
    let control = control::channel(&signals)?.receiver;
    listener.set_nonblocking(true).context("the socket of the ranks")?;
    let socket = listener.try_clone().context("the socket of the ranks")?;
    let mut tracer = Command::new("/proc/self/exe")
        .arg(NODE)
        .arg(job.local.map_or_else(|| UNKNOWN.to_owned(), |ranks| ranks.to_string()))
        .args(std::env::args_os().skip(1))
        .stdin(OwnedFd::from(socket))
        // Not the launcher's, which waits until nobody has them any more.
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        // What the launcher does to the rank, it does to its group.
        .process_group(0)
        .spawn()
        .context("starting the tracer of this node")?;
    let relays = [relay(tracer.stdout.take(), std::io::stdout())?, relay(tracer.stderr.take(), std::io::stderr())?];
    let mut program = Command::new("/proc/self/exe")
        .arg(OWN)
        .arg(name)
        .args(command)
        .spawn()
        .context("starting the program of the first rank")?;
    let status = wait(&mut program, &mut tracer, listener, &control)?;
    if let Some(signal) = status.signal() {
        end_by(signal);
    }
    let code = launch::shell_code(status) as u8;
    // The launcher must learn of a failure at once: it would wait for ranks that wait for this one. A tracer that could not
    // begin ends now, and is to say why.
    let until = match code {
        0 => None,
        TOOL_FAILED => Some(Instant::now() + SAYING),
        _ => return Ok(code),
    };
    let traced = loop {
        if let Some(traced) = tracer.try_wait().context("waiting for the tracer of this node")? {
            break traced;
        }
        if until.is_some_and(|until| Instant::now() > until) {
            return Ok(code);
        }
        if ending(&control) {
            let _ = kill(Pid::from_raw(tracer.id() as i32), Signal::SIGTERM);
        }
    };
    for relay in relays {
        // A closed output is no failure.
        let _ = relay.join();
    }
    Ok(if code == 0 && !traced.success() { launch::shell_code(traced) as u8 } else { code })
}

/// Waits for the program. Signals that end are passed on to it; ranks that find no tracer any more are let go.
fn wait(
    program: &mut Child,
    tracer: &mut Child,
    listener: &UnixListener,
    control: &Receiver<Control>,
) -> Result<ExitStatus> {
    loop {
        if let Some(status) = program.try_wait().context("waiting for the program")? {
            return Ok(status);
        }
        if tracer.try_wait().context("waiting for the tracer of this node")?.is_some() {
            while listener.accept().is_ok() {}
        }
        if ending(control) {
            let _ = kill(Pid::from_raw(program.id() as i32), Signal::SIGTERM);
        }
    }
}

/// Waits a moment. Has a signal come that ends processes? The terminal sends Ctrl-C to the program itself.
fn ending(control: &Receiver<Control>) -> bool {
    matches!(control.recv_timeout(TICK), Ok(Control::Signal(Signal::SIGTERM | Signal::SIGHUP)))
}

/// Writes what the tracer says where the rank does.
fn relay(from: Option<impl Read + Send + 'static>, mut to: impl Write + Send + 'static) -> Result<JoinHandle<()>> {
    let mut from = from.context("what the tracer of this node says")?;
    let copy = move || {
        let mut bytes = [0; 8192];
        while let Ok(n @ 1..) = from.read(&mut bytes) {
            if to.write_all(&bytes[..n]).and_then(|()| to.flush()).is_err() {
                return;
            }
        }
    };
    thread::Builder::new().name("relay".into()).spawn(copy).context("thread for what the tracer says")
}

/// Ends as the program did, which launchers tell from an exit status. Returns only where that is not possible.
fn end_by(signal: i32) {
    // The program has left its core, if that is wanted.
    let _ = setrlimit(Resource::Core, Rlimit { current: Some(0), maximum: Some(0) });
    let _ = signal_hook::low_level::emulate_default_handler(signal);
}
