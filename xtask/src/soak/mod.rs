//! What the tracer needs over an hour: two traces of a mix of I/O that does not end, and a look at the tracers each second.

mod growth;

use anyhow::{Context, Result, anyhow, bail};
use std::fs;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use self::growth::Figures;
use crate::{Tree, programs, setup, shell};

/// What is asked for on the command line.
#[derive(Debug, Clone, clap::Args)]
pub struct Wish {
    /// How long the work goes on
    #[arg(long, default_value_t = 60, value_parser = clap::value_parser!(u64).range(1..))]
    minutes: u64,
    /// Percent of the time that each of the two programs is at work
    #[arg(long, default_value_t = 15, value_parser = clap::value_parser!(u8).range(1..=100))]
    busy: u8,
    /// Most memory that a tracer may have, in MiB
    #[arg(long, default_value_t = 768)]
    ceiling: u64,
    /// A directory on a disk
    #[arg(long, default_value = "/var/tmp")]
    dir: PathBuf,
    /// Not the tracer that is built for this
    #[arg(long)]
    tracer: Option<PathBuf>,
}

/// A way to trace: its name, its options, and whether its memory is to be level.
const MODES: [(&str, &[&str], bool); 2] = [
    ("every call", &["--rotate-time", "2m", "--keep-size", "500M"], false),
    ("--system --aggregate", &["--system", "--aggregate"], true),
];

/// How long a tracer may take to end once its program has.
const ENDING: Duration = Duration::from_mins(2);
const SECOND: Duration = Duration::from_secs(1);

/// Runs both traces beside each other for that long, prints a table, and fails when a tracer has needed more and more.
pub fn run(tree: &Tree, wish: &Wish) -> Result<()> {
    if !shell::is_root() {
        bail!("tracing needs root; run: sudo -E env PATH=\"$PATH\" cargo xtask soak");
    }
    setup::all()?;
    if wish.tracer.is_none() {
        crate::build_tracer()?;
    }
    let work = wish.dir.join(format!("iotrace-soak-{}", std::process::id()));
    fs::create_dir(&work).with_context(|| format!("cannot make {}", work.display()))?;
    let traces = measure(tree, wish, &work);
    fs::remove_dir_all(&work).with_context(|| format!("cannot remove {}", work.display()))?;
    let traces = traces?;
    print!("{}", growth::table(&traces));
    let level = MODES.map(|(.., level)| level.then_some(wish.minutes));
    let problems =
        traces.iter().zip(level).map(|((name, figures), level)| figures.problems(name, wish.ceiling << 20, level));
    let problems: Vec<String> = problems.flatten().collect();
    if problems.is_empty() { Ok(()) } else { bail!("{}", problems.join("\n")) }
}

/// A trace that goes on.
struct Trace {
    name: &'static str,
    tracer: Child,
    /// Where its own figures are.
    page: String,
    figures: Figures,
}

impl Drop for Trace {
    fn drop(&mut self) {
        // Of one that has ended nothing is left to do; the program of one that has not ends by itself.
        let _ = self.tracer.kill();
        let _ = self.tracer.wait();
    }
}

fn measure(tree: &Tree, wish: &Wish, work: &Path) -> Result<Vec<(&'static str, Figures)>> {
    let program = programs::compile(&tree.root, &tree.target, "soak").map_err(|e| anyhow!(e))?;
    let tracer = wish.tracer.clone().unwrap_or_else(|| tree.target.join("debug/iotrace-bpf"));
    let begin = |(number, (name, options, _)): (usize, &(&'static str, &[&str], bool))| {
        let own = work.join(number.to_string());
        fs::create_dir(&own).with_context(|| format!("cannot make {}", own.display()))?;
        let seconds = wish.minutes * 60;
        let command =
            [&*program.to_string_lossy(), &own.to_string_lossy(), &seconds.to_string(), &wish.busy.to_string()]
                .map(str::to_owned);
        Trace::begin(name, &tracer, options, &work.join(format!("{number}.iotrace")), &command)
    };
    let mut traces = MODES.iter().enumerate().map(begin).collect::<Result<Vec<_>>>()?;
    let start = Instant::now();
    let end = start + Duration::from_secs(wish.minutes * 60) + ENDING;
    let mut minutes = 0;
    loop {
        thread::sleep(SECOND);
        let mut alive = false;
        for trace in &mut traces {
            if trace.look()? {
                trace.figures.seconds = start.elapsed().as_secs();
                alive = true;
            }
        }
        if !alive {
            break;
        }
        if Instant::now() > end {
            bail!("a tracer has not ended {} s after its program", ENDING.as_secs());
        }
        if start.elapsed().as_secs() / 60 > minutes {
            minutes += 1;
            let lines = traces.iter().filter_map(|t| Some(format!("{}: {}", t.name, t.figures.last()?)));
            println!("{minutes} min  {}", lines.collect::<Vec<_>>().join("    "));
        }
    }
    Ok(traces.iter_mut().map(|trace| (trace.name, std::mem::take(&mut trace.figures))).collect())
}

impl Trace {
    fn begin(name: &'static str, tracer: &Path, options: &[&str], output: &Path, command: &[String]) -> Result<Self> {
        let mut tracer = Command::new(tracer);
        tracer
            .args(["--no-tui", "--metrics", "127.0.0.1:0"])
            .args(options)
            .arg("-o")
            .arg(output)
            .arg("--")
            .args(command);
        for name in ["SUDO_UID", "SUDO_GID"] {
            tracer.env_remove(name);
        }
        let mut tracer = tracer.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().context("starting the tracer")?;
        let mut stderr = BufReader::new(tracer.stderr.take().context("the output of the tracer")?);
        let mut trace = Self { name, tracer, page: String::new(), figures: Figures::default() };
        let mut line = String::new();
        while trace.page.is_empty() {
            line.clear();
            if stderr.read_line(&mut line).context("the output of the tracer")? == 0 {
                bail!("the tracer ({name}) has ended early");
            }
            eprint!("{name}: {line}");
            let address =
                line.trim().rsplit_once("metrics at http://").and_then(|(_, url)| url.strip_suffix("/metrics"));
            address.unwrap_or_default().clone_into(&mut trace.page);
        }
        // From now on its output goes among that of this program.
        thread::spawn(move || stderr.lines().map_while(Result::ok).for_each(|line| eprintln!("{name}: {line}")));
        Ok(trace)
    }

    /// Notes what the tracer needs; false when it has ended.
    fn look(&mut self) -> Result<bool> {
        if let Some(status) = self.tracer.try_wait().context("waiting for the tracer")? {
            return if status.success() { Ok(false) } else { bail!("{}: {status}", self.name) };
        }
        let process = PathBuf::from(format!("/proc/{}", self.tracer.id()));
        let status = fs::read_to_string(process.join("status")).unwrap_or_default();
        let memory =
            status.lines().find_map(|l| l.strip_prefix("VmRSS:")?.split_whitespace().next()?.parse::<u64>().ok());
        let descriptors = fs::read_dir(process.join("fd")).map(Iterator::count);
        // One that is about to end has neither, nor a page.
        if let (Some(kib), Ok(descriptors)) = (memory, descriptors) {
            self.figures.memory.push(kib << 10);
            self.figures.descriptors.push(descriptors as u64);
        }
        if let Ok(page) = page(&self.page) {
            self.figures.records = growth::sum(&page, "iotrace_records");
            self.figures.lost = growth::sum(&page, "iotrace_lost_events");
        }
        Ok(true)
    }
}

fn page(address: &str) -> Result<String> {
    let mut stream = TcpStream::connect(address)?;
    stream.set_read_timeout(Some(SECOND))?;
    stream.write_all(b"GET /metrics HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")?;
    let mut page = String::new();
    stream.read_to_string(&mut page)?;
    Ok(page)
}
