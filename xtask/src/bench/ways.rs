//! The ways in which a program is run: untraced, traced, and under what others would measure it with.

use anyhow::{Context, Result};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::calls::Cost;
use super::other::Other;
use super::{Bench, measured};
use crate::shell;

/// How the program runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Way {
    Alone,
    Traced,
    /// `--aggregate`.
    Summed,
    /// Another process is traced.
    Beside,
    /// Under the least that a tracer does: `xtask/bench/floor.bpf.c`.
    Floor,
    /// The same, of another process.
    FloorBeside,
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
pub const WAYS: [(Way, &str); 10] = [
    (Way::Traced, "traced"),
    (Way::Summed, "with --aggregate"),
    (Way::Beside, "beside a traced process"),
    (Way::Floor, "floor"),
    (Way::FloorBeside, "floor of another process"),
    (Way::Stamps, "two clock reads, preloaded"),
    (Way::Bpftrace, "bpftrace, a line each"),
    (Way::Histogram, "bpftrace, a histogram"),
    (Way::PerfTrace, "perf trace"),
    (Way::Strace, "strace"),
];

/// Everything that it takes to run the program.
pub struct Ways<'a> {
    bench: &'a Bench,
    program: String,
    floor: PathBuf,
    object: PathBuf,
    stamps: PathBuf,
}

impl<'a> Ways<'a> {
    /// Compiles the program and its peers.
    pub fn new(bench: &'a Bench) -> Result<Self> {
        let program = bench.program("costs")?;
        let [floor, object, stamps] = ["floor", "floor.bpf.o", "stamps.so"].map(|name| bench.work.join(name));
        let library = libbpf(&bench.target)?;
        let include = library.join("include");
        let mut clang = Command::new("clang");
        clang.args(["-g", "-O2", "-target", "bpf", "-mcpu=v3", "-D__TARGET_ARCH_x86", "-Ibpf", "-I"]).arg(&include);
        shell::run(clang.args(["-c", "xtask/bench/floor.bpf.c", "-o"]).arg(&object))?;
        let mut cc = Command::new("cc");
        cc.args(["-O2", "xtask/bench/floor.c", "-I"]).arg(&include).arg(library.join("libbpf.a"));
        shell::run(cc.args(["-lelf", "-lz", "-o"]).arg(&floor))?;
        shell::run(Command::new("cc").args(["-O2", "-shared", "-fPIC", "xtask/bench/stamps.c", "-o"]).arg(&stamps))?;
        Ok(Self { bench, program, floor, object, stamps })
    }

    /// What one call takes in ns, as the program measures.
    pub fn time(&self, cost: &Cost, way: Way) -> Result<f64> {
        let work = self.bench.work.to_string_lossy().into_owned();
        let args = [&*self.program, &work, cost.call];
        let measured = |command: &mut Command| measured(command, cost.call);
        let alone = || {
            let mut command = Command::new(args[0]);
            command.args(&args[1..]);
            command
        };
        let traced = |more: &[&str]| {
            let mut command = self.bench.recording(&["--layers", cost.layers, "--max-overhead", "none"]);
            command.args(more).arg("--").args(args);
            command
        };
        let floor = |whose: &str| {
            let mut command = Command::new(&self.floor);
            command.arg(&self.object).args([cost.layers, whose]).args(args);
            command
        };
        let bpftrace = |script: String| {
            let mut command = Command::new("bpftrace");
            command.args(["-q", "-o"]).arg(self.bench.work.join("bpftrace.out"));
            command.args(["-c", &args.join(" "), "-e", &script]);
            command
        };
        match way {
            Way::Alone => measured(&mut alone()),
            Way::Traced => measured(&mut traced(&[])),
            Way::Summed => measured(&mut traced(&["--aggregate"])),
            Way::Beside => {
                let _other = Other::start(self.bench, &["--layers", cost.layers], None)?;
                measured(&mut alone())
            }
            Way::Floor => measured(&mut floor("it")),
            Way::FloorBeside => measured(&mut floor("other")),
            Way::Stamps => measured(alone().env("LD_PRELOAD", &self.stamps)),
            Way::Bpftrace => {
                measured(&mut bpftrace(cost.script("printf(\"%d %d %lld %lld\\n\", pid, tid, @at[KEY], nsecs)")))
            }
            Way::Histogram => measured(&mut bpftrace(cost.script("@ns = hist(nsecs - @at[KEY])"))),
            Way::PerfTrace => measured(Command::new("perf").args(["trace", "-o", "/dev/null", "--"]).args(args)),
            Way::Strace => measured(Command::new("strace").args(["-f", "-o", "/dev/null"]).args(args)),
        }
    }
}

/// Where the libbpf is that the tracer was built with.
fn libbpf(target: &Path) -> Result<PathBuf> {
    let build = target.join("release/build");
    let entries = fs::read_dir(&build).with_context(|| build.display().to_string())?.flatten();
    let mut found = entries.map(|entry| entry.path().join("out")).filter(|p| p.join("libbpf.a").exists());
    found.next().with_context(|| format!("no libbpf below {}", build.display()))
}
