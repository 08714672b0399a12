//! The protocol between a rank and the tracer of its node: one request, one answer.

use anyhow::{Context as _, Result};
use nix::sys::socket::{UnixCredentials, getsockopt, sockopt::PeerCredentials};
use nix::unistd::{Uid, geteuid};
use std::io::{ErrorKind, Read as _, Write as _};
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;
use std::time::Duration;

/// Longer than any question or answer is.
const LONGEST: usize = 4096;

/// The request of a rank; see [`ask`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RankRequest {
    pub rank: Option<u32>,
    pub program: Option<u32>,
    pub guard: Option<i32>,
}

/// What the tracer answers a rank.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Answer {
    /// It is traced from its next execution on.
    Go,
    /// It may become traced when this trace has ended.
    Later,
    /// It runs untraced.
    Not(String),
    /// There is no trace, and the rank fails.
    Failed(String),
}

/// The process at the other end of a socket.
///
/// # Errors
/// When the kernel does not give it.
pub fn peer(socket: &impl AsFd) -> nix::Result<UnixCredentials> {
    getsockopt(socket, PeerCredentials)
}

/// May this user be traced, or trace us?
pub fn is_trusted(uid: u32) -> bool {
    let uid = Uid::from_raw(uid);
    uid.is_root() || uid == geteuid()
}

/// The hello of a rank: its number, that of its program, where that is a child of it, and the descriptor
/// that it has as the connection to the guardian of that.
pub fn ask(tracer: &mut UnixStream, rank: Option<u32>, program: Option<u32>, guard: Option<i32>) {
    let field = |number: Option<u32>| number.map_or_else(|| "-".to_owned(), |number| number.to_string());
    // One that is gone does not answer either.
    let guard = guard.and_then(|fd| u32::try_from(fd).ok());
    let _ = tracer.write_all(format!("{} {} {}\n", field(rank), field(program), field(guard)).as_bytes());
}

/// The same as the tracer reads it: a rank that sends nothing for this time is dropped.
///
/// # Errors
/// When it sends something else, or nothing.
pub fn request(rank: &mut UnixStream, patience: Duration) -> Result<RankRequest> {
    let text = receive(rank, patience)?;
    let mut parts = text.trim_end().split(' ');
    let mut next = || parts.next().context("it sent no process id");
    Ok(RankRequest { rank: next()?.parse().ok(), program: next()?.parse().ok(), guard: next()?.parse().ok() })
}

/// Sends the answer to a rank. Returns whether that worked.
pub fn answer(rank: &mut UnixStream, answer: &Answer) -> bool {
    let text = match answer {
        Answer::Go => "g".to_owned(),
        Answer::Later => "l".to_owned(),
        Answer::Not(why) => format!("n{why}"),
        Answer::Failed(why) => format!("f{why}"),
    };
    rank.write_all(text.as_bytes()).is_ok()
}

/// The same as the rank receives it; nothing when the tracer has ended.
///
/// # Errors
/// When it sends nothing for this time.
pub fn answered(tracer: &mut UnixStream, patience: Duration) -> Result<Option<Answer>> {
    let text = match receive(tracer, patience) {
        Err(e) if e.downcast_ref::<std::io::Error>().is_some_and(|e| e.kind() == ErrorKind::WouldBlock) => {
            return Err(e.context("the tracer of this node does not answer"));
        }
        text => text.unwrap_or_default(),
    };
    let mut rest = text.chars();
    Ok(match (rest.next(), rest.as_str()) {
        (Some('g'), _) => Some(Answer::Go),
        (Some('l'), _) => Some(Answer::Later),
        (Some('n'), why) => Some(Answer::Not(why.to_owned())),
        (Some('f'), why) => Some(Answer::Failed(why.to_owned())),
        _ => None,
    })
}

fn receive(from: &mut UnixStream, patience: Duration) -> Result<String> {
    from.set_read_timeout(Some(patience))?;
    let mut line = [0; LONGEST];
    let n = from.read(&mut line)?;
    Ok(String::from_utf8_lossy(&line[..n]).into_owned())
}
