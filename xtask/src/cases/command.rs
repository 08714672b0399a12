//! The commands of cases: what stands in braces in them, and how they are run and timed.

use anyhow::{Context, Result, bail};
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::sleep;
use std::time::{Duration, Instant};

use super::setting::Stage;
use crate::{Tree, programs};

/// A command that takes longer is stuck.
const LIMIT: Duration = Duration::from_mins(2);
/// How long a command that was sent a signal may take for that.
const GRACE: Duration = Duration::from_secs(10);
/// How exactly its end is seen.
const TICK: Duration = Duration::from_millis(1);

/// What commands have in common.
pub struct Runner {
    args: Vec<(&'static str, String)>,
    /// The standard error of the last command.
    stderr: PathBuf,
    stop: Arc<AtomicBool>,
}

impl Runner {
    pub fn new(tree: &Tree) -> Result<Self> {
        let stop = Arc::new(AtomicBool::new(false));
        for signal in [signal_hook::consts::SIGINT, signal_hook::consts::SIGTERM, signal_hook::consts::SIGHUP] {
            signal_hook::flag::register(signal, Arc::clone(&stop)).context("cannot wait for signals")?;
        }
        let path = |path: PathBuf| path.to_string_lossy().into_owned();
        let args = vec![
            ("{root}", path(tree.root.clone())),
            ("{cases}", path(tree.root.join("tests/cases"))),
            ("{bin}", path(tree.target.join("programs"))),
            ("{python}", path(tree.target.join("venv/bin/python"))),
            // Another of that name may stand before it and be a script that looks for the real one.
            ("{python3}", "/usr/bin/python3".to_owned()),
            ("{openmpi}", format!("{} --allow-run-as-root --oversubscribe", programs::openmpi("mpirun"))),
            ("{mpich}", programs::mpich("mpirun")),
        ];
        Ok(Self { args, stderr: tree.target.join("cases.stderr"), stop })
    }

    /// The arguments of a command on a stage.
    pub fn args(&self, command: &str, stage: &Stage) -> Vec<String> {
        let mut text = command.to_owned();
        for (word, meaning) in &self.args {
            text = text.replace(word, meaning);
        }
        text = text.replace("{dir}", &stage.dir.to_string_lossy()).replace("{device}", &stage.device);
        text.split_whitespace().map(str::to_owned).collect()
    }

    /// The same, in the stage's control group.
    pub fn grouped(&self, command: &str, stage: &Stage) -> Vec<String> {
        let args = self.args(command, stage);
        let Some(group) = stage.group else { return args };
        let script = format!("echo $$ > {group}/tasks && exec \"$@\"");
        ["sh", "-c", &script, "sh"].map(str::to_owned).into_iter().chain(args).collect()
    }

    /// Runs a command that must succeed; the seconds that it took.
    pub fn timed(&self, args: &[String], dir: &Path) -> Result<f64> {
        let stderr = File::create(&self.stderr).with_context(|| format!("cannot make {}", self.stderr.display()))?;
        let mut child = spawn(args, dir, stderr.into())?;
        let begin = Instant::now();
        let status = loop {
            if let Some(status) = child.try_wait().context("cannot wait for a command")? {
                break status;
            }
            if self.stop.load(Ordering::Relaxed) || begin.elapsed() > LIMIT {
                end(&mut child)?;
                self.go_on()?;
                bail!("`{}` did not end within {} s", args.join(" "), LIMIT.as_secs());
            }
            sleep(TICK);
        };
        let seconds = begin.elapsed().as_secs_f64();
        self.go_on()?;
        if !status.success() {
            let stderr = fs::read_to_string(&self.stderr).unwrap_or_default();
            bail!("`{}` failed: {status}\n{}", args.join(" "), stderr.trim());
        }
        Ok(seconds)
    }

    /// An error once a signal asked this to end.
    pub fn go_on(&self) -> Result<()> {
        if self.stop.load(Ordering::Relaxed) {
            bail!("interrupted");
        }
        Ok(())
    }
}

/// Asks a command to end, and makes it.
fn end(child: &mut Child) -> Result<()> {
    let asked = Instant::now();
    let _ = Command::new("kill").arg(child.id().to_string()).status();
    while child.try_wait().context("cannot wait for a command")?.is_none() {
        if asked.elapsed() > GRACE {
            child.kill().context("cannot end a command")?;
        }
        sleep(TICK);
    }
    Ok(())
}

fn spawn(args: &[String], dir: &Path, stderr: Stdio) -> Result<Child> {
    let (program, args) = args.split_first().context("an empty command")?;
    let mut command = Command::new(program);
    command.args(args).current_dir(dir).stdin(Stdio::null()).stdout(Stdio::null()).stderr(stderr);
    command.spawn().with_context(|| format!("cannot start {program}"))
}

/// What commands need until they do what they are there for.
const BEGINS: Duration = Duration::from_secs(1);

/// Commands that run as long as this lives.
pub struct Beside(Vec<Child>);

impl Beside {
    pub fn start(commands: &[Vec<String>], dir: &Path) -> Result<Self> {
        let mut beside = Self(Vec::new());
        for args in commands {
            beside.0.push(spawn(args, dir, Stdio::null())?);
        }
        if !commands.is_empty() {
            sleep(BEGINS);
        }
        Ok(beside)
    }
}

impl Drop for Beside {
    fn drop(&mut self) {
        for child in &mut self.0 {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}
