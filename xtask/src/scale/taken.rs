//! What a question took, and what a size has.

use anyhow::{Context, Result};
use serde_json::Value;
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

/// One question's figures.
#[derive(Debug, Clone, Default)]
pub struct Answer {
    pub seconds: f64,
    /// Most memory, and bytes read, page cache included.
    pub memory: u64,
    pub read: u64,
    /// Seconds of all cores together.
    pub cpu: f64,
    /// Why there is no answer.
    pub error: Option<String>,
    pub sums: BTreeMap<String, f64>,
}

impl Answer {
    /// What the program in Python noted, in order.
    pub fn read(note: &Path) -> Result<Vec<(String, Self)>> {
        let text = fs::read_to_string(note).with_context(|| format!("cannot read {}", note.display()))?;
        let one = |line: &str| -> Result<(String, Self)> {
            let row: Value = serde_json::from_str(line).with_context(|| format!("a line of {}", note.display()))?;
            let number = |key: &str| row.get(key).and_then(Value::as_u64);
            let float = |key: &str| row.get(key).and_then(Value::as_f64).unwrap_or(f64::NAN);
            let sums = row.get("sums").and_then(Value::as_object).into_iter().flatten();
            let answer = Self {
                seconds: float("seconds"),
                memory: number("memory").unwrap_or(0),
                read: number("read").unwrap_or(0),
                cpu: float("cpu"),
                error: row.get("error").and_then(Value::as_str).map(str::to_owned),
                sums: sums.filter_map(|(name, value)| Some((name.clone(), value.as_f64()?))).collect(),
            };
            Ok((row.get("what").and_then(Value::as_str).unwrap_or_default().to_owned(), answer))
        };
        text.lines().map(one).collect()
    }

    pub fn line(&self) -> String {
        let failed = self.error.as_ref().map(|error| format!(", {error}")).unwrap_or_default();
        let (mib, mb) = (self.memory >> 20, self.read / 1_000_000);
        format!("{:.1} s, {:.1} s of CPU, {mib} MiB, {mb} MB read{failed}", self.seconds, self.cpu)
    }
}

/// Runs a command whose output goes to a file, for so many seconds at most; and whether it succeeded.
pub fn taken(command: &mut Command, out: &Path, limit: u64) -> Result<(Answer, bool)> {
    let file = fs::File::create(out).with_context(|| format!("cannot write {}", out.display()))?;
    let begun = Instant::now();
    let mut child = command.stdin(Stdio::null()).stdout(file).spawn().context("cannot start iotrace-bpf")?;
    let mut answer = Answer::default();
    let own = PathBuf::from(format!("/proc/{}", child.id()));
    let figure = |file: &str, name: &str| {
        let text = fs::read_to_string(own.join(file)).ok()?;
        text.lines().find_map(|l| l.strip_prefix(name)?.split_whitespace().next()?.parse::<u64>().ok())
    };
    let status = loop {
        if let Some(status) = child.try_wait().context("waiting for iotrace-bpf")? {
            break status;
        }
        // Both only grow.
        answer.memory = figure("status", "VmHWM:").map_or(answer.memory, |kib| kib << 10);
        answer.read = figure("io", "rchar:").unwrap_or(answer.read);
        answer.cpu = cpu(&own).unwrap_or(answer.cpu);
        if begun.elapsed() > Duration::from_secs(limit) {
            child.kill().context("ending iotrace-bpf")?;
            answer.error = Some("time".to_owned());
        }
        thread::sleep(Duration::from_millis(10));
    };
    answer.seconds = begun.elapsed().as_secs_f64();
    if !status.success() && answer.error.is_none() {
        answer.error = Some(status.to_string());
    }
    Ok((answer, status.success()))
}

/// The time of a process on CPUs so far, in seconds.
fn cpu(process: &Path) -> Option<f64> {
    let text = fs::read_to_string(process.join("stat")).ok()?;
    // Behind the name, which may have blanks in it; proc_pid_stat(5) numbers utime 14 and stime 15, in hundredths.
    let mut fields = text.rsplit_once(')')?.1.split_whitespace().skip(11);
    let mut next = || fields.next()?.parse::<f64>().ok();
    Some((next()? + next()?) / 100.0)
}

/// One of the datasets of a tree.
pub fn dataset_below(tree: &Path) -> Result<PathBuf> {
    let mut path = tree.to_owned();
    while !path.join("views.sql").exists() {
        let below = fs::read_dir(&path).with_context(|| format!("cannot read {}", path.display()))?;
        path = below
            .filter_map(|entry| Some(entry.ok()?.path()))
            .find(|path| path.is_dir())
            .with_context(|| format!("no dataset in {}", tree.display()))?;
    }
    Ok(path)
}

/// Datasets of so many nodes.
pub struct Size {
    pub nodes: u32,
    pub spans: u64,
    pub files: u64,
    pub bytes: u64,
    /// By engine and question.
    pub answers: Vec<(&'static str, String, Answer)>,
    /// Answers that are not what they have to be.
    pub wrong: Vec<String>,
}

impl Size {
    pub fn of(nodes: u32, tree: &Path, truth: &Value) -> Result<Self> {
        let (mut files, mut bytes) = (0, 0);
        let mut below = vec![tree.to_owned()];
        while let Some(directory) = below.pop() {
            for entry in fs::read_dir(&directory).with_context(|| format!("cannot read {}", directory.display()))? {
                let entry = entry?;
                let meta = entry.metadata()?;
                if meta.is_dir() {
                    below.push(entry.path());
                } else {
                    files += 1;
                    bytes += meta.len();
                }
            }
        }
        let spans = truth.get("spans").and_then(Value::as_u64).context("the number of calls that were made")?;
        Ok(Self { nodes, spans, files, bytes, answers: Vec::new(), wrong: Vec::new() })
    }

    pub fn line(&self) -> String {
        let Self { nodes, spans, files, bytes, .. } = self;
        format!("{nodes} nodes: {spans} calls, {files} files, {} MB", bytes / 1_000_000)
    }

    pub fn answer(&self, engine: &str, what: &str) -> Option<&Answer> {
        self.answers.iter().find(|(of, question, _)| *of == engine && question == what).map(|(_, _, answer)| answer)
    }

    /// Whether the report has the layers that were made.
    pub fn compare_report(&mut self, report: &Path, truth: &Value) -> Result<()> {
        let text = fs::read(report).with_context(|| format!("cannot read {}", report.display()))?;
        let report: Value = serde_json::from_slice(&text).context("the report is not JSON")?;
        let layers = report.get("layers").and_then(Value::as_array).context("the report has no layers")?;
        for (layer, made) in truth.get("layers").and_then(Value::as_object).into_iter().flatten() {
            let row = layers.iter().find(|row| row.get("layer").and_then(Value::as_str) == Some(layer));
            let calls = row.and_then(|row| row.get("calls"));
            if calls != made.get("calls") {
                let what =
                    format!("{} nodes: report: {calls:?} calls of {layer}, {:?} made", self.nodes, made.get("calls"));
                self.wrong.push(what);
            }
        }
        Ok(())
    }

    /// Whether both engines have the calls that were made.
    pub fn compare_calls(&mut self, truth: &Value) {
        let layers = || truth.get("layers").and_then(Value::as_object).into_iter().flatten();
        let made = |figure: &str| -> f64 { layers().filter_map(|(_, l)| l.get(figure)?.as_f64()).sum() };
        let sums = [
            ("calls", "calls"),
            ("nested_calls", "nested_calls"),
            ("exclusive_ns", "exclusive_ns"),
            ("moved", "moved"),
        ];
        let mut wrong = Vec::new();
        for (engine, what, answer) in self.answers.iter().filter(|(_, what, _)| what == "v_layers") {
            for (column, figure) in sums {
                let Some(found) = answer.sums.get(column) else { continue };
                if (found - made(figure)).abs() > 1e-9 * made(figure) {
                    wrong.push(format!(
                        "{} nodes: {engine} {what}: {column} {found}, {} made",
                        self.nodes,
                        made(figure)
                    ));
                }
            }
        }
        self.wrong.extend(wrong);
    }
}
