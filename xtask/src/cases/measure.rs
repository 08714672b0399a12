//! Runs one case: as it is and mended, in turn, with and without the tracer.

use anyhow::{Context, Result, bail};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::command::{Beside, Runner};
use super::findings::{self, Finding};
use super::list::{Case, Run};
use super::setting::{self, Stage};

/// What was seen of a case.
pub struct Outcome {
    pub case: &'static Case,
    /// What each traced run found.
    pub found: Vec<Vec<Finding>>,
    /// The same of the mended program.
    pub found_in_good: Vec<Finding>,
    /// Seconds of the runs without a tracer.
    pub bad: Vec<f64>,
    pub good: Vec<f64>,
}

/// How cases are run.
pub struct Measure {
    pub runner: Runner,
    /// None: only times are measured.
    pub tracer: Option<PathBuf>,
    pub work: PathBuf,
    pub runs: u16,
}

impl Measure {
    pub fn case(&self, case: &'static Case) -> Result<Outcome> {
        let mut seen = Outcome { case, found: vec![], found_in_good: vec![], bad: vec![], good: vec![] };
        for _ in 0..self.runs {
            if let Some(tracer) = &self.tracer {
                seen.found.push(self.traced(case, &case.bad, tracer)?);
            }
            seen.bad.push(self.untraced(case, &case.bad)?);
            if let Some(good) = &case.good {
                seen.good.push(self.untraced(case, good)?);
            }
        }
        if let (Some(tracer), Some(good)) = (&self.tracer, &case.good) {
            seen.found_in_good = self.traced(case, good, tracer)?;
        }
        Ok(seen)
    }

    fn untraced(&self, case: &Case, run: &Run) -> Result<f64> {
        let stage = self.stage(case, run)?;
        self.timed(run, &self.runner.grouped(run.command, &stage), &stage)
    }

    fn traced(&self, case: &Case, run: &Run, tracer: &Path) -> Result<Vec<Finding>> {
        // Not on the disk that is traced.
        let data = Path::new("/dev/shm").join(format!("iotrace-cases-{}", std::process::id()));
        let found = self.stage(case, run).and_then(|stage| {
            let [tracer, data] = [tracer, data.as_path()].map(|path| path.to_string_lossy().into_owned());
            let mut args = vec![tracer.clone(), "--force".to_owned(), "-o".to_owned(), data.clone(), "--".to_owned()];
            args.extend(self.runner.grouped(run.command, &stage));
            self.timed(run, &args, &stage)?;
            let report = Command::new(&tracer).args(["report", &data, "--json"]).output();
            let report = report.with_context(|| format!("cannot start {tracer}"))?;
            if !report.status.success() {
                bail!("there is no report: {}", String::from_utf8_lossy(&report.stderr));
            }
            findings::read(&String::from_utf8_lossy(&report.stdout))
        });
        // There is none when the tracer did not start.
        let _ = fs::remove_dir_all(&data);
        found
    }

    /// A setting with files, before anything runs in it.
    fn stage(&self, case: &Case, run: &Run) -> Result<Stage> {
        self.runner.go_on()?;
        let mut stage = Stage::new(&self.work, run.setting)?;
        if !case.prepare.is_empty() {
            self.runner.timed(&self.runner.args(case.prepare, &stage), &stage.dir)?;
        }
        // What was written before is not in the way of what runs now.
        setting::quiet(&mut Command::new("sync"))?;
        stage.complete()?;
        if case.cold {
            fs::write("/proc/sys/vm/drop_caches", "3").context("cannot drop the page cache")?;
        }
        Ok(stage)
    }

    fn timed(&self, run: &Run, args: &[String], stage: &Stage) -> Result<f64> {
        let beside: Vec<Vec<String>> = run.beside.iter().map(|command| self.runner.grouped(command, stage)).collect();
        let _beside = Beside::start(&beside, &stage.dir)?;
        self.runner.timed(args, &stage.dir)
    }
}
