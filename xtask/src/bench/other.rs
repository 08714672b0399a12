//! What runs beside a traced process.

use super::Bench;
use crate::shell;
use anyhow::{Context as _, Result, bail};
use std::fs;
use std::process::{Child, Command, Stdio};

/// A traced process that does nothing, and its tracer.
pub struct Other {
    sleeper: Child,
    tracer: Child,
}

impl Other {
    /// One that has the libraries of a program, traced with the layers of the default.
    ///
    /// # Errors
    /// When it cannot be started, or not be traced.
    pub fn with_libraries(bench: &Bench, program: &str) -> Result<Self> {
        let list = shell::output("ldd", &[program])?;
        // NAME => PATH (ADDRESS)
        let paths = list.lines().filter_map(|line| line.split_once("=> ")?.1.split_whitespace().next());
        Self::start(bench, &[], Some(&paths.collect::<Vec<_>>().join(":")))
    }

    /// One that has these libraries preloaded.
    ///
    /// # Errors
    /// When it cannot be started, or not be traced.
    pub fn start(bench: &Bench, options: &[&str], preloaded: Option<&str>) -> Result<Self> {
        let mut sleeper = Command::new("sleep");
        sleeper.arg("1000").envs(preloaded.map(|paths| ("LD_PRELOAD", paths)));
        let sleeper = sleeper.spawn().context("cannot start sleep")?;
        let output = bench.work.join("beside");
        let _ = fs::remove_dir_all(&output);
        let mut command = bench.tracer();
        command.args(options).args(["-p", &sleeper.id().to_string(), "-o"]).arg(&output);
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
