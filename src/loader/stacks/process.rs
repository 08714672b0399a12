//! Where the threads of a process are, from `/proc`. Reading it may wait for a lock that a program holds while it is
//! executed: only a thread on which no other waits may do it.

use crate::loader::processes::maps;
use std::fs;
use std::io::{Error, ErrorKind};
use std::path::Path;

/// One thread, from `/proc/PID/task/TID`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Waiting {
    pub tid: i32,
    pub name: String,
    /// The letter of `/proc/PID/stat`: R runs, S sleeps, D waits for a device or the like, T is stopped.
    pub state: char,
    /// The function in which it waits.
    pub waits_in: Option<String>,
    /// Functions, the innermost first, or why they are not known.
    pub kernel: Result<Vec<String>, String>,
}

/// The first threads of a process, and how many more it has.
///
/// # Errors
/// Why there are none to be seen.
pub fn threads(pid: i32, most: usize) -> Result<(Vec<Waiting>, usize), String> {
    let tasks = format!("/proc/{pid}/task");
    let entries = fs::read_dir(&tasks).map_err(|e| match e.kind() {
        ErrorKind::NotFound => format!("process {pid} has ended"),
        _ => format!("{tasks}: {e}"),
    })?;
    let mut ids: Vec<i32> = entries.flatten().filter_map(|e| e.file_name().to_str()?.parse().ok()).collect();
    ids.sort_unstable();
    let more = ids.len().saturating_sub(most);
    ids.truncate(most);
    let found = ids.into_iter().filter_map(|tid| thread(tid, &Path::new(&tasks).join(tid.to_string())));
    Ok((found.collect(), more))
}

/// `None`: it has ended.
fn thread(tid: i32, dir: &Path) -> Option<Waiting> {
    let stat = maps::stat(&fs::read(dir.join("stat")).ok()?)?;
    let (name, state) = (String::from_utf8_lossy(&stat.comm).into_owned(), stat.state);
    let waits_in = fs::read_to_string(dir.join("wchan")).ok().filter(|name| !name.is_empty() && name != "0");
    let kernel = match fs::read_to_string(dir.join("stack")) {
        Ok(text) => match functions(&text) {
            none if none.is_empty() && state == 'R' => {
                Err("it runs: there is no stack of what does not wait".to_owned())
            }
            none if none.is_empty() => Err("the kernel shows an empty one".to_owned()),
            functions => Ok(functions),
        },
        Err(e) => Err(why_no_stack(&e)),
    };
    Some(Waiting { tid, name, state, waits_in, kernel })
}

fn why_no_stack(e: &Error) -> String {
    match e.kind() {
        ErrorKind::PermissionDenied => "the kernel shows /proc/PID/stack with CAP_SYS_ADMIN only".to_owned(),
        ErrorKind::NotFound => "this kernel has no /proc/PID/stack (CONFIG_STACKTRACE)".to_owned(),
        _ => format!("/proc/PID/stack: {e}"),
    }
}

/// `[<0>] pipe_read+0x2b3/0x3f0` for each function.
fn functions(stack: &str) -> Vec<String> {
    let name = |line: &str| line.split_once("] ").map_or(line, |(_, name)| name).trim().to_owned();
    stack.lines().map(name).filter(|name| !name.is_empty()).collect()
}

/// When a process began: the kernel's ticks since the node did.
pub fn began(pid: i32) -> Option<u64> {
    maps::stat(&fs::read(format!("/proc/{pid}/stat")).ok()?).map(|stat| stat.start_ticks)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use std::process::{Command, Stdio};

    #[test]
    fn names_of_threads_hold_anything() {
        let rest = (4..30).map(|field| field.to_string()).collect::<Vec<_>>().join(" ");
        let dir = tempfile::tempdir().unwrap();
        let of = |stat: &[u8]| {
            fs::write(dir.path().join("stat"), stat).unwrap();
            thread(7, dir.path()).map(|t| (t.name, t.state))
        };
        for (name, state, shown) in [(&b"a) S (b"[..], 'D', "a) S (b"), (&b"\xff\n"[..], 'T', "\u{fffd}\n")] {
            let stat = [&b"7 ("[..], name, format!(") {state} {rest}").as_bytes()].concat();
            assert_eq!(of(&stat).unwrap(), (shown.to_owned(), state));
        }
        for damaged in [&b""[..], b"7", b"7 (a", b"7 (a)", b"7 )a( "] {
            assert_eq!(of(damaged), None);
        }
    }

    #[test]
    fn a_stack_is_its_functions() {
        let text = "[<0>] pipe_read+0x2b3/0x3f0\n[<0>] __x64_sys_read+0x1/0x2 [ext4]\n";
        assert_eq!(functions(text), ["pipe_read+0x2b3/0x3f0", "__x64_sys_read+0x1/0x2 [ext4]"]);
        assert!(functions("").is_empty());
    }

    #[test]
    fn a_process_that_waits_is_seen_to_and_one_that_ended_is_not() {
        let mut child = Command::new("cat").stdin(Stdio::piped()).stdout(Stdio::null()).spawn().unwrap();
        let pid = child.id() as i32;
        let waits = || threads(pid, 4).unwrap().0.first().is_some_and(|t| t.state == 'S' && t.name == "cat");
        while !waits() {
            std::thread::sleep(std::time::Duration::from_millis(5));
        }
        assert!(began(pid).unwrap() >= began(std::process::id() as i32).unwrap());
        assert_eq!(threads(pid, 0).unwrap(), (Vec::new(), 1));
        drop(child.stdin.take());
        child.wait().unwrap();
        assert_eq!(threads(pid, 4).unwrap_err(), format!("process {pid} has ended"));
        assert_eq!(began(pid), None);
    }
}
