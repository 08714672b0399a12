//! Limits of resources that the caller has set: the tracer raises its own as far as it may, the command keeps the
//! caller's, and one that is in the way is named.

use anyhow::Error;
use nix::sys::resource::{RLIM_INFINITY, Resource, getrlimit, setrlimit};
use nix::sys::signal::{SigSet, Signal};
use std::io;
use std::sync::OnceLock;

/// What a trace takes of open files: about 330 for all programs and maps, and some for each library.
const OPEN_FILES: u64 = 512;
/// More than any trace takes.
const PLENTY: u64 = 1 << 16;

/// What is raised, to where if that is allowed, and its name for the launcher.
const RAISED: [(Resource, u64, &str); 2] =
    [(Resource::RLIMIT_NOFILE, PLENTY, "nofile"), (Resource::RLIMIT_FSIZE, RLIM_INFINITY, "fsize")];
/// No limits were changed; a limit without bounds.
const NONE: &str = "-";

/// The soft and the hard limit; `RLIM_INFINITY`, the largest number: without bounds.
type Limit = (u64, u64);

/// What the caller had set, where that was changed, for the command.
static CALLERS: OnceLock<Vec<(Resource, Limit)>> = OnceLock::new();

/// Raises the limits of this process, and blocks the signal that would end it at the limit on the size of files: the
/// write fails instead. Before there are other threads.
pub fn prepare() {
    ignore_size();
    CALLERS.get_or_init(|| RAISED.into_iter().filter_map(|(resource, wanted, _)| raise(resource, wanted)).collect());
}

/// A write beyond the limit on the size of files is an error of this thread and of those that it starts, and no more.
pub fn ignore_size() {
    // It cannot fail with a signal that there is. A command unblocks all.
    let _ = SigSet::from_iter([Signal::SIGXFSZ]).thread_block();
}

/// What it was before, if that has changed.
fn raise(resource: Resource, wanted: u64) -> Option<(Resource, Limit)> {
    let old = getrlimit(resource).ok()?;
    // None of them is lowered.
    let most = wanted.max(old.1);
    let _ = setrlimit(resource, most, most).or_else(|_| setrlimit(resource, old.1, old.1));
    (getrlimit(resource).ok()? != old).then_some((resource, old))
}

/// The soft limit, if there is one.
fn soft(resource: Resource) -> Option<u64> {
    getrlimit(resource).ok().map(|(soft, _)| soft).filter(|soft| *soft != RLIM_INFINITY)
}

/// The caller's limits, for the launcher.
pub fn callers() -> String {
    let all = CALLERS.get().map(Vec::as_slice).unwrap_or_default();
    if all.is_empty() {
        return NONE.to_owned();
    }
    let number = |n: u64| if n == RLIM_INFINITY { NONE.to_owned() } else { n.to_string() };
    let name = |resource| RAISED.iter().find(|r| r.0 == resource).map_or("", |r| r.2);
    let texts = all.iter().map(|(of, (soft, hard))| format!("{}:{}:{}", name(*of), number(*soft), number(*hard)));
    texts.collect::<Vec<_>>().join(",")
}

/// The same as the launcher is given them, for [`restore`].
pub fn inherit(text: &str) {
    let number = |text: &str| if text == NONE { Some(RLIM_INFINITY) } else { text.parse().ok() };
    let one = |text: &str| {
        let mut parts = text.split(':');
        let (name, soft, hard) = (parts.next()?, number(parts.next()?)?, number(parts.next()?)?);
        let resource = RAISED.iter().find(|r| r.2 == name)?.0;
        Some((resource, (soft, hard)))
    };
    CALLERS.get_or_init(|| text.split(',').filter_map(one).collect());
}

/// Gives a process that becomes the command the caller's limits.
///
/// # Errors
/// When the kernel refuses that, which it does not where they were raised before.
pub fn restore() -> io::Result<()> {
    let all = CALLERS.get().map(Vec::as_slice).unwrap_or_default();
    all.iter().try_for_each(|(resource, (soft, hard))| Ok(setrlimit(*resource, *soft, *hard)?))
}

const WAYS_OUT: &str = "in limits.conf(5) or LimitNOFILE= and LimitFSIZE= of a service; as root, or with CAP_SYS_RESOURCE, the \
                        tracer raises it by itself";

/// How many files may be open, or why these are too few.
///
/// # Errors
/// When a trace takes more.
pub fn open_files() -> Result<String, String> {
    match soft(Resource::RLIMIT_NOFILE) {
        Some(most) if most < OPEN_FILES => {
            Err(format!("{most} open files are allowed (ulimit -n), and a trace takes {OPEN_FILES}"))
        }
        most => Ok(most.map_or_else(|| "unlimited".to_owned(), |most| format!("{most} are allowed"))),
    }
}

/// The hard limit on open files, below which every process may set its own.
pub fn most_open_files() -> u64 {
    getrlimit(Resource::RLIMIT_NOFILE).map_or(0, |(_, hard)| hard)
}

/// What to do about it.
pub const OPEN_FILES_WAY_OUT: &str = "raise the limit: ulimit -n 65536 where the hard limit allows it, else nofile in limits.conf(5) \
                                      or LimitNOFILE= of a service; as root, or with CAP_SYS_RESOURCE, the tracer raises it by itself";

/// A limit that is in the way, and the way out.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
struct InTheWay(String);

/// Adds the limit to an error that it caused.
pub fn explained(error: Error) -> Error {
    if error.downcast_ref::<InTheWay>().is_some() {
        return error;
    }
    let number = error.chain().find_map(|cause| cause.downcast_ref::<io::Error>()?.raw_os_error());
    // libbpf's errors are texts.
    let is = |errno: nix::errno::Errno| {
        number == Some(errno as i32) || format!("{error:#}").contains(&format!("(os error {})", errno as i32))
    };
    let why = if is(nix::errno::Errno::EMFILE) {
        soft(Resource::RLIMIT_NOFILE)
            .map(|most| format!("too many open files: {most} are allowed (ulimit -n); raise that"))
    } else if is(nix::errno::Errno::EFBIG) {
        soft(Resource::RLIMIT_FSIZE)
            .map(|most| format!("no file may be larger than {most} bytes (ulimit -f); raise that"))
    } else {
        None
    };
    match why {
        Some(why) => error.context(InTheWay(format!("{why} limit {WAYS_OUT}"))),
        None => error,
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use anyhow::Context as _;

    #[test]
    fn an_error_of_a_limit_names_it_once() {
        let error = |n| Error::from(io::Error::from_raw_os_error(n)).context("cannot write x");
        let message = format!("{:#}", explained(explained(error(24)).context("more")));
        assert_eq!(message.matches("ulimit -n").count(), 1, "{message}");
        assert!(
            message.contains("limits.conf") && message.ends_with("cannot write x: Too many open files (os error 24)"),
            "{message}"
        );
        assert_eq!(format!("{:#}", explained(error(28))), "cannot write x: No space left on device (os error 28)");
        // Without a limit it is the file system's.
        let efbig = format!("{:#}", explained(error(27)));
        assert_eq!(efbig.contains("ulimit -f"), soft(Resource::RLIMIT_FSIZE).is_some(), "{efbig}");
        let of_text: Error =
            Result::<(), _>::Err(anyhow::anyhow!("libbpf: failed (os error 24)")).context("x").unwrap_err();
        assert!(format!("{:#}", explained(of_text)).contains("ulimit -n"));
    }

    #[test]
    fn what_the_launcher_is_given_is_what_it_sets() {
        inherit("nofile:64:128,fsize:-:-,bogus:1:2,fsize:x:1");
        let all = CALLERS.get().unwrap();
        assert_eq!(
            *all,
            [(Resource::RLIMIT_NOFILE, (64, 128)), (Resource::RLIMIT_FSIZE, (RLIM_INFINITY, RLIM_INFINITY))]
        );
        assert_eq!(callers(), "nofile:64:128,fsize:-:-");
    }
}
