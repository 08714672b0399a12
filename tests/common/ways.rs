//! What the tests of the ways into a process share: attaching in the background, files of a directory compared with strace.

use super::live::{self, Data, Running, Total};
use super::tools::strace;
use iotrace_bpf::rows::Span;
use iotrace_bpf::vocabulary::Layer;
use std::collections::{BTreeMap, HashMap};
use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// The Python that `cargo xtask test` sets up, with the packages of `tests/requirements.txt`.
pub fn python() -> PathBuf {
    let python = Path::new(env!("CARGO_MANIFEST_DIR")).join("target/venv/bin/python");
    assert!(python.exists(), "{} is missing: run `cargo xtask test`", python.display());
    python
}

/// The HDF5 library of a Python package, which brings its own.
pub fn wheel_library(package: &str) -> PathBuf {
    let site = python().with_file_name("../lib").canonicalize().unwrap();
    let site = fs::read_dir(site).unwrap().flatten().find(|e| e.path().join("site-packages").exists()).unwrap();
    let libraries = fs::read_dir(site.path().join("site-packages").join(package)).unwrap().flatten();
    let is_hdf5 = |path: &PathBuf| path.file_name().unwrap().to_string_lossy().starts_with("libhdf5-");
    libraries.map(|e| e.path()).find(is_hdf5).unwrap()
}

/// A file in `tests/programs` that needs no compiler.
pub fn script(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/programs").join(name)
}

/// A tracer in the background, of a process that runs already.
pub struct Attached {
    guard: Running,
    dataset: PathBuf,
}

impl Attached {
    /// Attaches; the probes of the libraries that the process has mapped by now are in place.
    pub fn to(work: &Path, options: &[&str], pid: u32) -> Self {
        let dataset = work.join("run.iotrace");
        let mut tracer = live::tracer();
        tracer.args(options).arg("-o").arg(&dataset).args(["-p", &pid.to_string()]);
        let output = work.join("stderr");
        let guard = Running::spawn(tracer.stdout(Stdio::null()).stderr(fs::File::create(&output).unwrap()));
        live::until_it_traces(live::child_of(guard.pid()), &output);
        Self { guard, dataset }
    }

    /// Is it still there?
    pub fn goes_on(&mut self) -> bool {
        self.guard.0.try_wait().unwrap().is_none()
    }

    /// What was recorded until the process ended.
    pub fn data(mut self) -> Data {
        let status = self.guard.wait();
        assert!(status.success(), "{status}: {}", fs::read_to_string(self.dataset.with_file_name("stderr")).unwrap());
        Data::read(&self.dataset)
    }
}

/// The number that a program has written to DIR/pid by itself, once it has.
pub fn waits(dir: &Path) -> u32 {
    let read = || fs::read_to_string(dir.join("pid")).ok()?.parse().ok();
    let mut pid = None;
    live::until("the program", || {
        pid = read();
        pid.is_some()
    });
    pid.unwrap()
}

/// Lets a program go on that waits for DIR/go.
pub fn go(dir: &Path) {
    fs::write(dir.join("go"), "").unwrap();
}

/// The number of calls by function and file.
pub struct Counts(HashMap<(&'static str, PathBuf), usize>);

impl Counts {
    pub fn of(data: &Data) -> Self {
        let mut counts = HashMap::new();
        for span in &data.spans {
            if let Some(path) = data.path(span) {
                *counts.entry((span.op, path.to_owned())).or_default() += 1;
            }
        }
        Self(counts)
    }

    pub fn get(&self, op: &'static str, path: &Path) -> usize {
        self.0.get(&(op, path.to_owned())).copied().unwrap_or_default()
    }
}

/// Successful system calls on the files below a directory: calls, bytes asked for and moved, by function.
pub fn system_calls(data: &Data, dir: &Path) -> BTreeMap<String, Total> {
    let below = |s: &&Span| s.errno == 0 && data.path(s).is_some_and(|p| p.starts_with(dir) && p != dir);
    Data::totals(data.layer(Layer::Syscall).filter(below))
}

/// The same, as strace sees a command.
pub fn straced<S: AsRef<OsStr>>(work: &Path, dir: &Path, command: &[S]) -> BTreeMap<String, Total> {
    let (_, calls) = strace::run(&work.join("strace"), &["-y"], command);
    let inside = format!("{}/", dir.display());
    let known = |name: &str| iotrace_bpf::catalog::syscall_number(name).is_some();
    let mut totals: BTreeMap<String, Total> = BTreeMap::new();
    for call in calls.into_iter().filter(|c| known(&c.name) && c.result >= 0) {
        if !call.args.iter().any(|arg| arg.contains(&inside)) {
            continue;
        }
        let total = totals.entry(call.name.clone()).or_default();
        total.calls += 1;
        if call.name.contains("read") || call.name.contains("write") {
            total.asked += call.asked();
            total.moved += call.result;
        }
    }
    totals
}

/// Compares a program's system calls on the files below a directory with what strace sees in a second run, in a
/// directory of the same name: `command` is given it.
pub fn as_strace_sees(data: &Data, work: &Path, dir: &Path, command: impl Fn(&Path) -> Vec<PathBuf>) {
    let second = work.join("second");
    fs::create_dir(&second).unwrap();
    let theirs = straced(work, &second, &command(&second));
    let ours = system_calls(data, dir);
    assert!(ours.len() > 3, "{ours:?}");
    assert_eq!(ours, theirs);
}

/// A directory tree with a program of the tests and what it needs to run.
pub fn image(dir: &Path, program: &str) {
    let put = |from: &Path| {
        let to = dir.join(from.strip_prefix("/").unwrap());
        fs::create_dir_all(to.parent().unwrap()).unwrap();
        fs::copy(from, to).unwrap();
    };
    let built = super::programs::build(program);
    fs::create_dir_all(dir.join("bin")).unwrap();
    fs::copy(&built, dir.join("bin").join(program)).unwrap();
    for name in ["data", "old"] {
        fs::create_dir(dir.join(name)).unwrap();
    }
    let out = Command::new("ldd").arg(&built).output().unwrap();
    let text = String::from_utf8(out.stdout).unwrap();
    let libraries = text.split_whitespace().filter(|word| word.starts_with('/'));
    libraries.for_each(|library| put(Path::new(library)));
}
