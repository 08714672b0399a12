//! Runs the tracer on real programs and reads back what it recorded.

use iotrace_bpf::export::{Dataset, Table};
use iotrace_bpf::rows::{
    Block, BlockBytes, BlockLink, CallPath, Coverage, File, FilePath, Handle, Loss, Meta, Object, Process, SEQ_BITS,
    Span, Thread,
};
use iotrace_bpf::vocabulary::Layer;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::ffi::OsStr;
use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Output, Stdio};
use std::time::{Duration, Instant};
use tempfile::TempDir;

/// No trace of these tests takes longer, even where the processor is emulated; one that does is killed and fails.
const LIMIT: &str = "240";

/// A new directory on the disk (a test of the block layer needs one; /tmp may be in memory), or on the file system that
/// `IOTRACE_TEST_DIR` names.
pub fn scratch() -> TempDir {
    let dir = std::env::var_os("IOTRACE_TEST_DIR").unwrap_or_else(|| env!("CARGO_TARGET_TMPDIR").into());
    tempfile::tempdir_in(dir).unwrap()
}

/// Sections of the report on a dataset, with all rows.
pub fn report_of(dir: &Path, sections: &str) -> String {
    let out = tracer().arg("report").arg(dir).args(["--top", "10000", "--section", sections]).output().unwrap();
    assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stderr));
    String::from_utf8(out.stdout).unwrap()
}

/// The tracer, not under sudo, that cannot run for ever. What it keeps from run to run it shares with other tests only.
pub fn tracer() -> Command {
    tracer_with_cache(&Path::new(env!("CARGO_TARGET_TMPDIR")).join("cache"))
}

/// The tracer that keeps there what it keeps from run to run.
pub fn tracer_with_cache(cache: &Path) -> Command {
    let mut command = Command::new("timeout");
    command.args(["--signal=KILL", LIMIT, env!("CARGO_BIN_EXE_iotrace-bpf")]);
    command.env("CACHE_DIRECTORY", cache);
    // Each program looks into all directories of cargo's LD_LIBRARY_PATH: hundreds of calls more than users have.
    for name in ["SUDO_UID", "SUDO_GID", "LD_LIBRARY_PATH"] {
        command.env_remove(name);
    }
    command
}

/// How many times as long as usual things may take: more where the processor is emulated.
pub fn slower() -> u64 {
    std::env::var("IOTRACE_TEST_SLOWER").map_or(1, |times| times.parse().unwrap())
}

/// The datasets in a directory, the oldest first.
pub fn datasets(dir: &Path) -> Vec<PathBuf> {
    let mut all: Vec<_> = fs::read_dir(dir).unwrap().map(|e| e.unwrap().path()).collect();
    all.sort();
    all
}

/// A recorded command and what came of it.
#[derive(Serialize, Deserialize)]
pub struct Traced {
    /// The dataset.
    pub dir: PathBuf,
    pub code: Option<i32>,
    /// What the command wrote.
    pub stdout: String,
    /// What both wrote.
    pub stderr: String,
    pub report: String,
}

impl Traced {
    /// The dataset, of a trace that went well.
    pub fn data(&self) -> Data {
        assert_eq!(self.code, Some(0), "{}", self.stderr);
        Data::read(&self.dir)
    }
}

/// Traces a command; the dataset is `work/run.iotrace`, its stdout the file `work/stdout`, the report `work/report`. Where the
/// processor is emulated there is neither a report, which takes two seconds there, nor messages.
pub fn trace<S: AsRef<OsStr>>(work: &Path, options: &[&str], command: &[S]) -> Traced {
    trace_by(tracer(), work, options, command)
}

/// The same by this tracer.
pub fn trace_by<S: AsRef<OsStr>>(tracer: Command, work: &Path, options: &[&str], command: &[S]) -> Traced {
    trace_shown(tracer, slower() == 1, work, options, command)
}

/// The same with report and messages on any processor.
pub fn trace_with_messages<S: AsRef<OsStr>>(work: &Path, options: &[&str], command: &[S]) -> Traced {
    trace_shown(tracer(), true, work, options, command)
}

fn trace_shown<S: AsRef<OsStr>>(
    mut tracer: Command,
    shown: bool,
    work: &Path,
    options: &[&str],
    command: &[S],
) -> Traced {
    let dir = work.join("run.iotrace");
    let [out, report] = ["stdout", "report"].map(|name| work.join(name));
    tracer.args(options).arg("-o").arg(&dir);
    if shown {
        tracer.arg("--report").arg(&report);
    } else {
        tracer.arg("--quiet");
    }
    tracer.arg("--").args(command).stdout(fs::File::create(&out).unwrap());
    let Output { status, stderr, .. } = tracer.stderr(Stdio::piped()).output().unwrap();
    let stderr = String::from_utf8_lossy(&stderr).into_owned();
    // A tracer that fails early has made none.
    let report = fs::read_to_string(report).unwrap_or_default();
    Traced { dir, code: status.code(), stdout: fs::read_to_string(out).unwrap(), stderr, report }
}

/// All of a dataset that the tests ask about.
pub struct Data {
    pub spans: Vec<Span>,
    pub files: BTreeMap<i32, File>,
    pub handles: BTreeMap<i32, Handle>,
    pub objects: BTreeMap<i32, Object>,
    pub processes: BTreeMap<i32, Process>,
    pub threads: BTreeMap<i32, Thread>,
    pub paths: Vec<FilePath>,
    pub named: BTreeMap<i32, String>,
    pub block: Vec<Block>,
    pub links: Vec<BlockLink>,
    pub owners: Vec<BlockBytes>,
    pub losses: Vec<Loss>,
    pub coverage: Vec<Coverage>,
    pub meta: BTreeMap<String, String>,
    by_id: HashMap<i64, usize>,
}

impl Data {
    /// Reads a dataset that is complete.
    pub fn read(dir: &Path) -> Self {
        let data = Self::read_part(dir);
        assert!(data.meta.contains_key("end_ns"), "the dataset has no end");
        data
    }

    /// Reads what is there of a dataset.
    pub fn read_part(dir: &Path) -> Self {
        let set = Dataset::open(dir).unwrap();
        let spans: Vec<Span> = rows(&set);
        let by_id: HashMap<i64, usize> = spans.iter().enumerate().map(|(at, s)| (s.span_id, at)).collect();
        assert_eq!(by_id.len(), spans.len(), "every span stands in the table once");
        let data = Self {
            by_id,
            spans,
            files: set.last_by_id().unwrap(),
            handles: set.last_by_id().unwrap(),
            objects: set.last_by_id().unwrap(),
            processes: set.last_by_id().unwrap(),
            threads: set.last_by_id().unwrap(),
            paths: rows(&set),
            named: rows::<CallPath>(&set).into_iter().map(|p| (p.path_id, p.path)).collect(),
            block: rows(&set),
            links: rows(&set),
            owners: rows(&set),
            losses: rows(&set),
            coverage: rows(&set),
            meta: rows::<Meta>(&set).into_iter().map(|m| (m.key, m.value)).collect(),
        };
        if let Some(file) = std::env::var_os("IOTRACE_TEST_TIERS") {
            data.note_tiers(Path::new(&file));
        }
        data
    }

    /// Notes how each layer was probed and what was seen of it: `cargo xtask` makes docs/kernels.md of these lines.
    fn note_tiers(&self, log: &Path) {
        let release = nix::sys::utsname::uname().unwrap().release().to_string_lossy().into_owned();
        // A test's thread has its name: ROOM::FILE::TEST. Threads that it starts have none, and note nothing.
        let thread = std::thread::current();
        let Some((file, test)) = thread.name().and_then(|name| name.rsplit_once("::")) else { return };
        let mut layers: BTreeMap<Layer, Vec<&Coverage>> = BTreeMap::new();
        for verdict in &self.coverage {
            layers.entry(verdict.layer).or_default().push(verdict);
        }
        let mut lines = String::new();
        for (layer, verdicts) in layers {
            let is = |status: &str| verdicts.iter().filter(|v| v.status == status).count();
            let tiers: BTreeSet<&str> = verdicts.iter().filter_map(|v| v.tier).collect();
            let tiers = tiers.into_iter().collect::<Vec<_>>().join("+");
            let calls = if layer == Layer::Block { self.block.len() } else { self.layer(layer).count() };
            let why = verdicts.iter().find(|v| v.status == "refused").and_then(|v| v.reason.as_deref()).unwrap_or("");
            let [layer, why] = [layer.name(), &why.replace(['\t', '\n'], " ")];
            let (attached, refused) = (is("attached"), is("refused"));
            lines += &format!("{file}\t{test}\t{release}\t{layer}\t{tiers}\t{attached}\t{refused}\t{calls}\t{why}\n");
        }
        let mut log = fs::OpenOptions::new().create(true).append(true).open(log).unwrap();
        log.write_all(lines.as_bytes()).unwrap();
    }

    /// What calls add to the time of their layer is, in each thread, the time in which there was any of them:
    /// operations at once are not added. Returns how much of the time of all calls overlaps.
    pub fn layers_are_unions(&self) -> i64 {
        let mut threads: BTreeMap<(i64, Layer), Vec<&Span>> = BTreeMap::new();
        for span in self.spans.iter().filter(|s| s.layer_top) {
            threads.entry((span.span_id >> SEQ_BITS, span.layer)).or_default().push(span);
        }
        let mut overlap = 0;
        for (thread, mut spans) in threads {
            spans.sort_by_key(|s| s.start_ns);
            let (mut until, mut union) = (i64::MIN, 0);
            for span in &spans {
                union += (span.end_ns() - span.start_ns.max(until)).max(0);
                until = until.max(span.end_ns());
            }
            let sum = |of: fn(&Span) -> i64| spans.iter().map(|s| of(s)).sum::<i64>();
            let (added, hooks) = (sum(Span::inclusive_ns), sum(|s| s.probe_ns.unwrap_or(0)));
            assert!(added <= union && added >= union - hooks, "{thread:?}: {added} of {union} ns, hooks {hooks}");
            overlap += sum(|s| s.dur_ns) - union;
        }
        overlap
    }

    /// Nothing was lost.
    pub fn lossless(self) -> Self {
        assert_eq!(self.lost(), Vec::<&Loss>::new());
        self
    }

    /// What the tracer lost. Of ends of requests for which the kernel runs no program (docs/architecture.md) no test is the cause.
    pub fn lost(&self) -> Vec<&Loss> {
        self.losses.iter().filter(|l| l.place != "request_end").collect()
    }

    /// Whatever a row refers to is in its own dataset, except calls in those before.
    pub fn resolves(&self) {
        for span in &self.spans {
            assert!(self.processes.contains_key(&span.process_ix), "{span:?}");
            assert!(self.threads.contains_key(&((span.span_id >> SEQ_BITS) as i32)), "{span:?}");
            assert!(span.file_id.is_none_or(|id| self.files.contains_key(&id)), "{span:?}");
            assert!(span.handle_id.is_none_or(|id| self.handles.contains_key(&id)), "{span:?}");
            assert!(span.path_id.is_none_or(|id| self.named.contains_key(&id)), "{span:?}");
            assert!(span.path2_id.is_none_or(|id| self.named.contains_key(&id)), "{span:?}");
        }
        for handle in self.handles.values() {
            assert!(handle.file_id.is_none_or(|id| self.files.contains_key(&id)), "{handle:?}");
            assert!(self.processes.contains_key(&handle.process_ix), "{handle:?}");
            assert!(handle.parent_handle_id.is_none_or(|id| self.handles.contains_key(&id)), "{handle:?}");
        }
        for bytes in &self.owners {
            assert!(bytes.file_id.is_none_or(|id| self.files.contains_key(&id)), "{bytes:?}");
            assert!(bytes.process_ix.is_none_or(|ix| self.processes.contains_key(&ix)), "{bytes:?}");
        }
        for key in ["schema", "version", "host", "command", "t0_ns", "t0_wall_ns", "run_t0_ns", "end_ns"] {
            assert!(self.meta.contains_key(key), "{key}");
        }
        assert!(self.coverage.iter().any(|c| c.status == "attached"));
    }

    /// The last known path of the file a call was about.
    pub fn path(&self, span: &Span) -> Option<&Path> {
        self.files[&span.file_id?].path.as_deref().map(Path::new)
    }

    /// The calls of a function.
    pub fn calls<'a>(&'a self, op: &'a str) -> impl Iterator<Item = &'a Span> {
        self.spans.iter().filter(move |s| s.op == op)
    }

    /// The calls of a layer.
    pub fn layer(&self, layer: Layer) -> impl Iterator<Item = &Span> {
        self.spans.iter().filter(move |s| s.layer == layer)
    }

    /// The call a call was made in.
    pub fn parent(&self, span: &Span) -> Option<&Span> {
        Some(&self.spans[self.by_id[&span.parent_id?]])
    }

    /// Everything a call was made in, the innermost first.
    pub fn ancestors<'a>(&'a self, span: &'a Span) -> impl Iterator<Item = &'a Span> {
        std::iter::successors(self.parent(span), |s| self.parent(s))
    }

    /// Calls, errors, bytes asked for and bytes moved, by function.
    pub fn totals<'a>(spans: impl Iterator<Item = &'a Span>) -> BTreeMap<String, Total> {
        let mut totals: BTreeMap<String, Total> = BTreeMap::new();
        for span in spans {
            let total = totals.entry(span.op.to_owned()).or_default();
            total.calls += 1;
            total.errors += i64::from(span.errno != 0);
            total.asked += span.req_bytes.unwrap_or(0);
            total.moved += span.bytes.unwrap_or(0);
        }
        totals
    }
}

pub fn rows<T: Table>(set: &Dataset) -> Vec<T> {
    let mut rows = Vec::new();
    set.rows(|row| {
        rows.push(row);
        Ok(())
    })
    .unwrap();
    rows
}

/// Sums over calls.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Total {
    pub calls: i64,
    pub errors: i64,
    pub asked: i64,
    pub moved: i64,
}

/// A process that is killed at the end of its test.
pub struct Running(pub Child);

impl Running {
    pub fn spawn(command: &mut Command) -> Self {
        Self(command.spawn().unwrap())
    }

    pub fn pid(&self) -> u32 {
        self.0.id()
    }

    pub fn wait(&mut self) -> ExitStatus {
        self.0.wait().unwrap()
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Waits until something is so; what takes longer than the limit of a trace fails.
pub fn until(what: &str, mut so: impl FnMut() -> bool) {
    let limit = Instant::now() + Duration::from_mins(3);
    while !so() {
        assert!(Instant::now() < limit, "waited in vain: {what}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// The first child of a process, once there is one: the tracer's, of what `tracer()` starts.
pub fn child_of(pid: u32) -> u32 {
    let list = format!("/proc/{pid}/task/{pid}/children");
    let first = || fs::read_to_string(&list).ok()?.split(' ').next()?.parse().ok();
    let mut found = None;
    until("a child", || {
        found = first();
        found.is_some()
    });
    found.unwrap()
}

/// The child of a process that has this name.
pub fn named_child_of(pid: u32, name: &str) -> u32 {
    let named = |pid: &u32| fs::read_to_string(format!("/proc/{pid}/comm")).is_ok_and(|comm| comm.trim_end() == name);
    let mut found = None;
    until(name, || {
        let children = fs::read_to_string(format!("/proc/{pid}/task/{pid}/children")).unwrap_or_default();
        found = children.split_whitespace().filter_map(|p| p.parse().ok()).find(named);
        found.is_some()
    });
    found.unwrap()
}

/// The state of a process in the kernel's letters, while it is there: `T` is stopped, `Z` has ended.
pub fn state(pid: u32) -> Option<char> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    stat.rsplit_once(") ")?.1.chars().next()
}

/// Waits until a tracer has attached to all that it was to, and handles signals: it answers. `stderr` is what it printed.
pub fn until_it_traces(tracer: u32, output: &Path) {
    use nix::sys::signal::Signal;
    // The first thing that it does about signals is to block them.
    until("the tracer", || has_signal(tracer, "SigBlk", Signal::SIGUSR1));
    send(tracer, Signal::SIGUSR1);
    until("the trace", || fs::read_to_string(output).unwrap().contains("in flight "));
}

/// Is a signal in one of the masks of a process, `proc_pid_status(5)`?
pub fn has_signal(pid: u32, mask: &str, signal: nix::sys::signal::Signal) -> bool {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    let bits = status.lines().find_map(|line| line.strip_prefix(mask)?.strip_prefix(":\t"));
    bits.and_then(|bits| u64::from_str_radix(bits, 16).ok()).is_some_and(|bits| bits >> (signal as u32 - 1) & 1 == 1)
}

/// Sends a signal.
pub fn send(pid: u32, signal: nix::sys::signal::Signal) {
    nix::sys::signal::kill(nix::unistd::Pid::from_raw(pid as i32), signal).unwrap();
}

/// What `looper` reports that it has done so far.
#[derive(Debug, Clone, Copy)]
pub struct Truth {
    pub pid: u32,
    pub ready: bool,
    pub fwrites: i64,
    pub pwrites: i64,
}

/// Reads looper's file of truth; nothing is done while there is none.
pub fn truth(path: &Path) -> Truth {
    let bytes = fs::read(path).unwrap_or_default();
    let number = |at: usize| bytes.get(8 * at..8 * at + 8).map_or(0, |b| i64::from_ne_bytes(b.try_into().unwrap()));
    Truth { pid: number(0) as u32, ready: number(1) == 1, fwrites: number(2), pwrites: number(3) }
}

/// Has looper end in good order.
pub fn stop_looper(truth: &Path) {
    use std::os::unix::fs::FileExt as _;
    const STOP: u64 = 6 * 8;
    fs::OpenOptions::new().write(true).open(truth).unwrap().write_all_at(&1_i64.to_ne_bytes(), STOP).unwrap();
}
