//! How long a trace takes to begin and to end, of a program that maps every library of the catalog.

use anyhow::{Context, Result, bail};
use std::io::{BufRead as _, BufReader};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, SystemTime};

use super::turns::table;
use super::{Bench, median, number};
use crate::programs;

/// The entries of `meta` with durations.
const FACTS: [(&str, &str); 3] = [("load_ns", "load"), ("attach_ns", "attach"), ("detach_ns", "detach")];
/// How long the tracer of a running program may take to attach.
const SETTLED: Duration = Duration::from_secs(2);

/// What one trace took, in ns.
struct Phases {
    /// From the start of the tracer to the first instruction of the program.
    begin: Option<f64>,
    facts: [f64; 3],
    /// From the last instruction of the program to the end of the tracer.
    end: f64,
}

pub fn run(bench: &Bench) -> Result<String> {
    let libraries = ["hdf5-openmpi", "netcdf-mpi", "pnetcdf"];
    let program = bench.compile("everything", &programs::openmpi("mpicc"), &libraries)?;
    let mut all: [Vec<Phases>; 3] = Default::default();
    for _ in 0..bench.rounds {
        all[0].push(launched(bench, &mut Command::new(&program), false)?);
        all[1].push(launched(bench, bench.recording(&["--", &program]), true)?);
        all[2].push(attached(bench, &program)?);
    }
    let names = ["untraced", "launched", "-p"];
    let rows = names.iter().zip(&all).map(|(name, all)| {
        let ms = |each: &dyn Fn(&Phases) -> f64| {
            let ns = median(&all.iter().map(each).collect::<Vec<_>>());
            if ns.is_nan() { String::new() } else { format!("{:.0}", ns / 1e6) }
        };
        let begin = ms(&|p| p.begin.unwrap_or(f64::NAN));
        let facts = [0, 1, 2].map(|fact| ms(&|p| p.facts[fact]));
        [(*name).to_owned(), begin].into_iter().chain(facts).chain([ms(&|p| p.end)]).collect()
    });
    let heads: Vec<&str> = ["", "start to first instruction"]
        .into_iter()
        .chain(FACTS.map(|(_, name)| name))
        .chain(["end of the program to end of the tracer"])
        .collect();
    let title =
        "A program that maps MPI, HDF5, NetCDF, PnetCDF and the C library, all layers of the default, in ms; medians";
    Ok(table(title, &heads, &rows.collect::<Vec<_>>()))
}

fn now() -> Result<f64> {
    Ok(SystemTime::now().duration_since(SystemTime::UNIX_EPOCH)?.as_nanos() as f64)
}

/// The `meta` of the last recording.
fn facts(bench: &Bench) -> Result<[f64; 3]> {
    let report = bench.report()?;
    Ok(FACTS.map(|(fact, _)| report["header"]["took"][fact].as_f64().unwrap_or(f64::NAN)))
}

fn launched(bench: &Bench, mut command: impl std::borrow::BorrowMut<Command>, traced: bool) -> Result<Phases> {
    let command = command.borrow_mut();
    let start = now()?;
    let out = command.stderr(Stdio::null()).output().with_context(|| format!("cannot start {command:?}"))?;
    let over = now()?;
    let stdout = String::from_utf8_lossy(&out.stdout);
    let (began, ended) =
        number(&stdout, "began").zip(number(&stdout, "ended")).context("the program printed nothing")?;
    let facts = if traced { facts(bench)? } else { [f64::NAN; 3] };
    Ok(Phases { begin: Some(began - start), facts, end: over - ended })
}

fn attached(bench: &Bench, program: &str) -> Result<Phases> {
    let mut program = Waiting::start(program)?;
    let mut tracer = bench.recording(&["-p", &program.child.id().to_string()]);
    let mut tracer = tracer.stdout(Stdio::null()).stderr(Stdio::null()).spawn().context("cannot start the tracer")?;
    std::thread::sleep(SETTLED);
    let ended = program.end()?;
    let status = tracer.wait().context("waiting for the tracer")?;
    if !status.success() {
        bail!("the tracer of a running program failed: {status}");
    }
    Ok(Phases { begin: None, facts: facts(bench)?, end: now()? - ended })
}

/// The program, which waits for the end of its input.
struct Waiting {
    child: Child,
    stdout: BufReader<std::process::ChildStdout>,
}

impl Waiting {
    fn start(program: &str) -> Result<Self> {
        let mut command = Command::new(program);
        command.arg("wait").stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.spawn().context("cannot start the program")?;
        let mut stdout = BufReader::new(child.stdout.take().context("its output")?);
        stdout.read_line(&mut String::new()).context("its first line")?;
        Ok(Self { child, stdout })
    }

    /// Ends it; when that was.
    fn end(&mut self) -> Result<f64> {
        drop(self.child.stdin.take());
        let mut line = String::new();
        self.stdout.read_line(&mut line).context("its last line")?;
        self.child.wait().context("waiting for the program")?;
        number(&line, "ended").context("the program did not print when it ended")
    }
}

impl Drop for Waiting {
    fn drop(&mut self) {
        drop(self.child.stdin.take());
        let _ = self.child.wait();
    }
}
