//! The ways in which a program is run: untraced, traced, and under what others would measure it with.

use anyhow::{Context, Result, anyhow, bail};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use super::Cost;
use crate::{Tree, programs, shell};

/// How the program runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Way {
    Alone,
    Traced,
    /// `--aggregate`.
    Summed,
    /// Another process is traced.
    Beside,
    /// Under the least that a tracer of system calls does: `xtask/bench/floor.bpf.c`.
    Floor,
    /// With the least that a preloaded library does: `xtask/bench/stamps.c`.
    Stamps,
    /// bpftrace prints a line for each call.
    Bpftrace,
    /// bpftrace fills a histogram.
    Histogram,
    PerfTrace,
    Strace,
}

/// What is compared with, in the order of the table's columns.
pub const WAYS: [(Way, &str); 9] = [
    (Way::Traced, "traced"),
    (Way::Summed, "with --aggregate"),
    (Way::Beside, "beside a traced process"),
    (Way::Floor, "floor"),
    (Way::Stamps, "two clock reads, preloaded"),
    (Way::Bpftrace, "bpftrace, a line each"),
    (Way::Histogram, "bpftrace, a histogram"),
    (Way::PerfTrace, "perf trace"),
    (Way::Strace, "strace"),
];

/// Everything that it takes to run the program.
pub struct Bench {
    tracer: PathBuf,
    program: String,
    work: PathBuf,
    floor: PathBuf,
    object: PathBuf,
    stamps: PathBuf,
}

impl Bench {
    /// Compiles the program and its peers.
    pub fn new(tree: &Tree, work: &Path) -> Result<Self> {
        let program = programs::compile(&tree.root, &tree.target, "costs").map_err(|e| anyhow!(e))?;
        let [floor, object, stamps] = ["floor", "floor.bpf.o", "stamps.so"].map(|name| work.join(name));
        let library = libbpf(&tree.target)?;
        let include = library.join("include");
        let mut clang = Command::new("clang");
        clang.args(["-g", "-O2", "-target", "bpf", "-mcpu=v3", "-D__TARGET_ARCH_x86", "-Ibpf", "-I"]).arg(&include);
        shell::run(clang.args(["-c", "xtask/bench/floor.bpf.c", "-o"]).arg(&object))?;
        let mut cc = Command::new("cc");
        cc.args(["-O2", "xtask/bench/floor.c", "-I"]).arg(&include).arg(library.join("libbpf.a"));
        shell::run(cc.args(["-lelf", "-lz", "-o"]).arg(&floor))?;
        shell::run(Command::new("cc").args(["-O2", "-shared", "-fPIC", "xtask/bench/stamps.c", "-o"]).arg(&stamps))?;
        Ok(Self {
            tracer: tree.target.join("debug/iotrace-bpf"),
            program: program.to_string_lossy().into_owned(),
            work: work.to_path_buf(),
            floor,
            object,
            stamps,
        })
    }

    /// What one call takes in ns, as the program says.
    pub fn time(&self, cost: &Cost, way: Way) -> Result<f64> {
        let work = self.work.to_string_lossy().into_owned();
        let args = [&*self.program, &work, cost.call];
        let alone = || {
            let mut command = Command::new(args[0]);
            command.args(&args[1..]);
            command
        };
        let traced = |more: &[&str]| {
            let mut command = Command::new(&self.tracer);
            command.args(["--layers", cost.layers, "--force", "-o"]).arg(self.work.join("trace")).args(more);
            command.arg("--").args(args);
            command
        };
        let bpftrace = |script: String| {
            let mut command = Command::new("bpftrace");
            command.args(["-q", "-o"]).arg(self.work.join("bpftrace.out"));
            command.args(["-c", &args.join(" "), "-e", &script]);
            command
        };
        match way {
            Way::Alone => said(&mut alone()),
            Way::Traced => said(&mut traced(&[])),
            Way::Summed => said(&mut traced(&["--aggregate"])),
            Way::Beside => {
                let _other = Other::start(&self.tracer, cost.layers, &self.work)?;
                said(&mut alone())
            }
            Way::Floor => said(Command::new(&self.floor).arg(&self.object).args(args)),
            Way::Stamps => said(alone().env("LD_PRELOAD", &self.stamps)),
            Way::Bpftrace => {
                said(&mut bpftrace(cost.script("printf(\"%d %d %lld %lld\\n\", pid, tid, @at[KEY], nsecs)")))
            }
            Way::Histogram => said(&mut bpftrace(cost.script("@ns = hist(nsecs - @at[KEY])"))),
            Way::PerfTrace => said(Command::new("perf").args(["trace", "-o", "/dev/null", "--"]).args(args)),
            Way::Strace => said(Command::new("strace").args(["-f", "-o", "/dev/null"]).args(args)),
        }
    }
}

/// A traced process that does nothing, and its tracer.
struct Other {
    sleeper: Child,
    tracer: Child,
}

impl Other {
    fn start(tracer: &Path, layers: &str, work: &Path) -> Result<Self> {
        let sleeper = Command::new("sleep").arg("1000").spawn().context("cannot start sleep")?;
        let output = work.join("beside");
        let _ = fs::remove_dir_all(&output);
        let mut command = Command::new(tracer);
        command.args(["--layers", layers, "-p", &sleeper.id().to_string(), "-o"]).arg(&output);
        let tracer = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().context("cannot start the tracer")?;
        let mut other = Self { sleeper, tracer };
        // It has attached everything when the first parts are closed, 5 s after its start.
        for _ in 0..600 {
            if output.join("coverage-00002.parquet").exists() {
                return Ok(other);
            }
            if let Some(status) = other.tracer.try_wait().context("waiting for the tracer")? {
                bail!("the tracer of another process ended: {status}");
            }
            std::thread::sleep(std::time::Duration::from_millis(100));
        }
        bail!("the tracer of another process did not begin within a minute")
    }
}

impl Drop for Other {
    fn drop(&mut self) {
        // The tracer ends with the last process that it traces.
        let _ = self.sleeper.kill();
        let _ = self.sleeper.wait();
        let _ = self.tracer.wait();
    }
}

/// Where the libbpf is that the tracer was built with.
fn libbpf(target: &Path) -> Result<PathBuf> {
    let build = target.join("debug/build");
    let entries = fs::read_dir(&build).with_context(|| build.display().to_string())?.flatten();
    let mut found = entries.map(|entry| entry.path().join("out")).filter(|p| p.join("libbpf.a").exists());
    found.next().with_context(|| format!("no libbpf below {}", build.display()))
}

/// Runs the program; what it says one call took.
fn said(command: &mut Command) -> Result<f64> {
    let out = command.stderr(Stdio::piped()).output().with_context(|| format!("cannot start {command:?}"))?;
    if !out.status.success() {
        bail!("{command:?} failed: {}\n{}", out.status, String::from_utf8_lossy(&out.stderr));
    }
    let said = String::from_utf8_lossy(&out.stdout);
    number(&said).with_context(|| format!("{command:?} said {said:?}, not a time"))
}

/// The program's line; the tracer's report follows it.
fn number(said: &str) -> Option<f64> {
    said.lines().next()?.split_whitespace().nth(1)?.parse().ok()
}
