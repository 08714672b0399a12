//! Looks into files that processes map, on a thread of its own: a file system may answer late or never.

use crate::event::Written;
use crate::loader::code::elf::Elf;
use crate::loader::code::outline::{self, Outline, Unread};
use crate::loader::code::plan::{Plan, Planner};
use crate::loader::code::remembered::{Inode, Version};
use crate::loader::processes::maps::{self, Mapping};
use crate::vocabulary::Layer;
use nix::fcntl::OFlag;
use nix::unistd::Pid;
use std::collections::HashMap;
use std::fs::File;
use std::io::{BufRead as _, BufReader};
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

/// How long one file, or the list of what a process maps, may be waited for, and how much CPU time it may take. The process
/// waits meanwhile. Time in the run queue is neither: on a busy node every file takes longer.
const LIMIT: Duration = Duration::from_secs(2);
/// The least time between two looks at the thread.
const LOOK: Duration = Duration::from_millis(10);
/// How long a device that did not answer is not asked again.
const AVOIDED: Duration = Duration::from_secs(30);

/// A file that a process maps, or is about to map.
#[derive(Debug, Clone)]
pub enum Seen {
    Mapping(Mapping),
    /// By a descriptor of a thread.
    Descriptor(i32, Inode),
}

impl Seen {
    pub const fn inode(&self) -> Inode {
        match self {
            Self::Mapping(m) => (m.dev, m.inode),
            Self::Descriptor(_, inode) => *inode,
        }
    }

    fn open(&self, pid: u32) -> Result<File, String> {
        match self {
            Self::Mapping(m) => open(pid, m),
            Self::Descriptor(fd, _) => {
                let file = named(&format!("/proc/{pid}/fd/{fd}")).map_err(|e| format!("cannot be read: {e}"))?;
                let regular = file.metadata().map_err(|e| e.to_string())?.is_file();
                if regular { Ok(file) } else { Err("is no regular file".into()) }
            }
        }
    }

    /// Which version of the file it is.
    pub fn version(&self, pid: u32) -> Option<Version> {
        match self {
            Self::Mapping(m) => Version::at(&map_file(pid, m)),
            Self::Descriptor(fd, _) => Version::at(&format!("/proc/{pid}/fd/{fd}")),
        }
    }

    /// Its path as the process sees it.
    pub fn name(&self, pid: u32) -> String {
        match self {
            Self::Mapping(m) => String::from_utf8_lossy(&m.path).into_owned(),
            Self::Descriptor(fd, _) => {
                let path = std::fs::read_link(format!("/proc/{pid}/fd/{fd}")).unwrap_or_default();
                let path = path.as_os_str().as_bytes();
                String::from_utf8_lossy(path.strip_suffix(b" (deleted)").unwrap_or(path)).into_owned()
            }
        }
    }
}

/// What was found.
pub struct Examined {
    pub file: File,
    pub written: Option<Written>,
    /// Nothing, where it was changed meanwhile.
    pub version: Option<Version>,
    pub elf: Elf,
    /// What is needed of the file, where it has a symbol that may be wanted.
    pub bytes: Vec<u8>,
    pub plan: Plan,
}

/// Why there is nothing.
pub struct Unreadable {
    pub written: Option<Written>,
    pub why: Unread,
}

/// Examines files.
pub struct Examiner {
    planner: Arc<Planner>,
    layers: Vec<Layer>,
    outline: Outline,
    /// Devices that did not answer, and until when they are not asked.
    avoided: HashMap<u32, Instant>,
}

impl Examiner {
    pub fn new(planner: Arc<Planner>, layers: Vec<Layer>) -> Self {
        Self { planner, layers, outline: Outline::default(), avoided: HashMap::new() }
    }

    /// Looks into a file.
    pub fn examine(&mut self, pid: u32, seen: &Seen, name: &str) -> Result<Examined, Unreadable> {
        let dev = seen.inode().0;
        if self.avoided.get(&dev).is_some_and(|until| Instant::now() < *until) {
            return Err(Late::Waits.into());
        }
        let (planner, layers) = (Arc::clone(&self.planner), self.layers.clone());
        let (seen, name) = (seen.clone(), name.to_owned());
        let mut outline = std::mem::take(&mut self.outline);
        let (found, outline) = within(LIMIT, move || {
            let found = look(pid, &seen, &name, &planner, &layers, &mut outline);
            (found, outline)
        })
        .inspect_err(|late| {
            if *late == Late::Waits {
                self.avoided.insert(dev, Instant::now() + AVOIDED);
            }
        })?;
        self.outline = outline;
        found
    }

    /// Gives back what only the look into files needs.
    pub fn rest(&mut self) {
        self.outline = Outline::default();
    }
}

/// Why a function has no result.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Late {
    /// Something that it waits for does not come.
    Waits,
    /// It takes too much time on a CPU.
    Computes,
    /// It panicked, or there was no thread for it.
    Failed,
}

impl From<Late> for Unreadable {
    fn from(late: Late) -> Self {
        let seconds = LIMIT.as_secs();
        let why = match late {
            Late::Waits => Unread::Other(format!("was not read within {seconds} s")),
            Late::Computes => Unread::TooLarge(format!("more than {seconds} s of CPU")),
            Late::Failed => Unread::Other("examining it failed".to_owned()),
        };
        Self { written: None, why }
    }
}

/// The result of a function that may never return: then its thread stays behind.
fn within<T: Send + 'static>(limit: Duration, work: impl FnOnce() -> T + Send + 'static) -> Result<T, Late> {
    let (sender, result) = mpsc::sync_channel(1);
    let thread = Arc::new(OnceLock::new());
    let own = Arc::clone(&thread);
    let begun = Instant::now();
    let spawned = std::thread::Builder::new().name("examine".into()).spawn(move || {
        let _ = own.set(nix::unistd::gettid());
        // It may not be needed any more.
        let _ = sender.send(work());
    });
    spawned.map_err(|_| Late::Failed)?;
    let mut pause = limit;
    loop {
        match result.recv_timeout(pause) {
            Ok(found) => return Ok(found),
            Err(RecvTimeoutError::Disconnected) => return Err(Late::Failed),
            Err(RecvTimeoutError::Timeout) => {}
        }
        let known = thread.get().map_or(Scheduled::NOT_BEGUN, |tid| scheduled(*tid).unwrap_or_default());
        let elapsed = begun.elapsed();
        if let Some(late) = known.late(elapsed, limit) {
            return Err(late);
        }
        pause = LOOK.max(limit.saturating_sub(known.waited(elapsed).max(known.on_cpu)));
    }
}

/// How much of its time a thread had a CPU, and how much it was kept from one.
#[derive(Debug, Default)]
struct Scheduled {
    on_cpu: Duration,
    run_queue: Duration,
    /// It has a CPU now, or is kept from one.
    runs: bool,
}

impl Scheduled {
    /// Before its first run a thread has no number; it is kept from a CPU.
    const NOT_BEGUN: Self = Self { on_cpu: Duration::ZERO, run_queue: Duration::ZERO, runs: true };

    /// How much of the time since its start it waited for something else than a CPU.
    const fn waited(&self, elapsed: Duration) -> Duration {
        elapsed.saturating_sub(self.on_cpu.saturating_add(self.run_queue))
    }

    fn late(&self, elapsed: Duration, limit: Duration) -> Option<Late> {
        if self.on_cpu >= limit {
            return Some(Late::Computes);
        }
        // The kernel adds up how long it was kept from a CPU when it gets one.
        (self.waited(elapsed) >= limit && !self.runs).then_some(Late::Waits)
    }
}

/// The first two figures of a thread's `schedstat`, in ns (Documentation/scheduler/sched-stats.rst), where the kernel has it,
/// and its state.
fn scheduled(thread: Pid) -> Option<Scheduled> {
    let of = |file: &str| std::fs::read_to_string(format!("/proc/self/task/{thread}/{file}")).ok();
    let runs = of("stat")?.rsplit_once(") ")?.1.starts_with('R');
    let text = of("schedstat")?;
    let mut figures = text.split_whitespace().map(|ns| ns.parse().ok().map(Duration::from_nanos));
    Some(Scheduled { on_cpu: figures.next()??, run_queue: figures.next()??, runs })
}

fn look(
    pid: u32,
    seen: &Seen,
    name: &str,
    planner: &Planner,
    layers: &[Layer],
    outline: &mut Outline,
) -> Result<Examined, Unreadable> {
    let file = seen.open(pid).map_err(|why| Unreadable { written: None, why: Unread::Other(why) })?;
    let (written, before) = (written(&file), Version::of(&file));
    let read = outline::classify(outline, &file, |symbol| planner.takes(symbol));
    let (elf, bytes) = read.map_err(|why| Unreadable { written, why })?;
    let mut plan = planner.plan(name, &elf, &bytes, &|layer| layers.contains(&layer));
    planner.plan_lines(&mut plan, name, &elf, || outline::with_debug(&file));
    let version = before.filter(|before| Version::of(&file) == Some(*before));
    Ok(Examined { file, written, version, elf, bytes, plan })
}

/// The code that a process maps, each file once. `None`: there is no such process, or it does not answer.
pub fn code(pid: u32) -> Option<Vec<Mapping>> {
    within(LIMIT, move || {
        let lines = BufReader::new(File::open(format!("/proc/{pid}/maps")).ok()?).split(b'\n').map_while(Result::ok);
        let mut seen = std::collections::HashSet::new();
        let code = lines.filter_map(|line| maps::mapping(&line)).filter(Mapping::is_code);
        Some(code.filter(|m| seen.insert((m.dev, m.inode))).collect())
    })
    .ok()
    .flatten()
}

/// Opened without waiting: the name may mean something else by now, even something on which open blocks.
fn named(path: &str) -> std::io::Result<File> {
    std::fs::OpenOptions::new().read(true).custom_flags(OFlag::O_NONBLOCK.bits()).open(path)
}

fn map_file(pid: u32, m: &Mapping) -> String {
    format!("/proc/{pid}/map_files/{:x}-{:x}", m.start, m.end)
}

/// Opens what a process has mapped, whatever its name means now: the file may be deleted or in a container.
pub fn open(pid: u32, m: &Mapping) -> Result<File, String> {
    let exact = map_file(pid, m);
    let by_name = format!("/proc/{pid}/root{}", String::from_utf8_lossy(&m.path));
    let file = File::open(&exact)
        .or_else(|first| if m.deleted { Err(first) } else { named(&by_name) })
        .map_err(|e| format!("cannot be read: {e}"))?;
    let metadata = file.metadata().map_err(|e| e.to_string())?;
    if !metadata.is_file() || metadata.ino() != m.inode {
        return Err("its name stands for another file now".into());
    }
    Ok(file)
}

fn written(file: &File) -> Option<Written> {
    file.metadata().ok().map(|m| (m.mtime(), m.mtime_nsec()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicBool, Ordering};

    const SHORT: Duration = Duration::from_millis(50);
    const LONG: Duration = Duration::from_mins(1);

    #[test]
    fn waiting_and_computing_are_different_reasons() {
        assert_eq!(within(LONG, || 1), Ok(1));
        assert_eq!(within(SHORT, || std::thread::sleep(LONG)), Err(Late::Waits));
        let end = Arc::new(AtomicBool::new(false));
        let ended = Arc::clone(&end);
        let computes = move || while !ended.load(Ordering::Relaxed) {};
        assert_eq!(within(SHORT, computes), Err(Late::Computes));
        end.store(true, Ordering::Relaxed);
        assert_eq!(within(LONG, || panic!("on purpose")), Err::<(), _>(Late::Failed));
    }

    #[test]
    fn a_thread_that_is_kept_from_a_cpu_is_not_late() {
        assert_eq!(Scheduled::NOT_BEGUN.late(LONG, SHORT), None);
        let sleeps = Scheduled { run_queue: LONG, ..Scheduled::default() };
        assert_eq!([LONG, LONG + SHORT].map(|elapsed| sleeps.late(elapsed, SHORT)), [None, Some(Late::Waits)]);
        let computes = Scheduled { on_cpu: SHORT, ..Scheduled::NOT_BEGUN };
        assert_eq!(computes.late(LONG, SHORT), Some(Late::Computes));
    }

    #[test]
    fn only_a_file_that_is_waited_for_says_so() {
        let why = |late: Late| Unreadable::from(late).why;
        assert_eq!(why(Late::Waits).to_string(), "was not read within 2 s");
        assert_eq!(why(Late::Computes).to_string(), "too large to examine (more than 2 s of CPU)");
        assert_eq!((why(Late::Waits).status(), why(Late::Computes).status()), ("refused", "skipped"));
    }
}
