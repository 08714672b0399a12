//! Runs one case: as it is and fixed, in turn, with and without the tracer.

use anyhow::{Context, Result, bail};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::command::{Beside, Runner};
use super::findings::{self, Finding};
use super::list::{Case, Files, Run};
use super::setting::{self, Stage};

/// What was seen of a case.
pub struct Outcome {
    pub case: &'static Case,
    /// What each traced run found.
    pub found: Vec<Vec<Finding>>,
    /// The same of the fixed program.
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
                seen.found.push(self.findings(case, &case.bad, tracer)?);
            }
            seen.bad.push(self.untraced(&case.files(), &case.bad)?);
            if let Some(good) = &case.good {
                seen.good.push(self.untraced(&case.files(), good)?);
            }
        }
        if let (Some(tracer), Some(good)) = (&self.tracer, &case.good) {
            seen.found_in_good = self.findings(case, good, tracer)?;
        }
        Ok(seen)
    }

    pub fn untraced(&self, files: &Files, run: &Run) -> Result<f64> {
        let stage = self.stage(files, run)?;
        self.timed(run, &self.runner.grouped(run.command, &stage), &stage)
    }

    fn findings(&self, case: &Case, run: &Run, tracer: &Path) -> Result<Vec<Finding>> {
        findings::read(&self.traced((&case.files(), run), tracer, ("report", ""))?)
    }

    /// What a command of the tracer, with its options, answers in JSON about a run.
    pub fn traced(&self, (files, run): (&Files, &Run), tracer: &Path, ask: (&str, &str)) -> Result<String> {
        // Not on the disk that is traced.
        let data = Path::new("/dev/shm").join(format!("iotrace-cases-{}", std::process::id()));
        let found = self.stage(files, run).and_then(|stage| {
            let [tracer, data] = [tracer, data.as_path()].map(|path| path.to_string_lossy().into_owned());
            let mut args = vec![tracer.clone(), "--force".to_owned(), "-o".to_owned(), data.clone(), "--".to_owned()];
            args.extend(self.runner.grouped(run.command, &stage));
            self.timed(run, &args, &stage)?;
            let (command, options) = ask;
            let mut args = vec![command.to_owned(), data, "--json".to_owned()];
            args.extend(self.runner.args(options, &stage));
            let answer = Command::new(&tracer).args(args).output().with_context(|| format!("cannot start {tracer}"))?;
            if !answer.status.success() {
                bail!("`{command}` has no answer: {}", String::from_utf8_lossy(&answer.stderr));
            }
            Ok(String::from_utf8_lossy(&answer.stdout).into_owned())
        });
        // There is none when the tracer did not start.
        let _ = fs::remove_dir_all(&data);
        found
    }

    /// A setting with files, before anything runs in it.
    fn stage(&self, files: &Files, run: &Run) -> Result<Stage> {
        self.runner.go_on()?;
        let mut stage = Stage::new(&self.work, run.setting)?;
        if !files.prepare.is_empty() {
            self.runner.timed(&self.runner.args(files.prepare, &stage), &stage.dir)?;
        }
        // What was written before is not in the way of what runs now.
        setting::quiet(&mut Command::new("sync"))?;
        stage.complete()?;
        if files.cold {
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
