//! Programs that make the I/O of a trace again: as it was, and fixed for each finding alone and for all.

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, bail};
use glob::Pattern;

use crate::export::as_invoking_user;
use crate::export::programs::program;
use crate::replay_code::{self, Advise, Language, Wish};
use crate::tune::command::Runner;
use crate::tune::measure::Outcome;
use crate::tune::profile::ProgramProfile;

/// Calls of a rank outside of loops, as `replay-code` has it.
const LIMIT: usize = 100_000;
/// So that Open MPI runs as many ranks as were traced on this node (versions 4 and 5), also for root: the program is ours.
pub const ALWAYS: &[(&str, &str)] = &[
    ("OMPI_MCA_rmaps_base_oversubscribe", "1"),
    ("PRTE_MCA_rmaps_default_mapping_policy", ":oversubscribe"),
    ("OMPI_ALLOW_RUN_AS_ROOT", "1"),
    ("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1"),
    ("PRTE_ALLOW_RUN_AS_ROOT", "1"),
    ("PRTE_ALLOW_RUN_AS_ROOT_CONFIRM", "1"),
];

/// A program, compiled.
pub struct Replay {
    program: PathBuf,
    /// The findings that it is fixed for; none: it is as it was.
    pub fixed: Vec<&'static str>,
}

/// All of a trace.
pub struct Replays {
    pub programs: Vec<Replay>,
    launcher: PathBuf,
    /// Its name says that it is Open MPI's.
    pub by_openmpi: bool,
    ranks: usize,
    /// Where their files are.
    data: PathBuf,
}

impl Replays {
    /// Makes them, below `scratch`.
    ///
    /// # Errors
    /// When the trace cannot be replayed, or there is no compiler.
    pub fn make(dataset: &Path, profile: &ProgramProfile, scratch: &Path, runner: &mut Runner) -> Result<Self> {
        let (compiler, launcher, by_openmpi) = mpi(profile);
        let data = scratch.join("data");
        as_invoking_user(|| fs::create_dir(&data).with_context(|| format!("cannot create {}", data.display())))?;
        let mut replays = Self { programs: Vec::new(), launcher, by_openmpi, ranks: profile.ranks.max(1), data };
        let rules: Vec<&'static str> = profile.rules.iter().map(|(rule, _)| *rule).collect();
        let each = rules.iter().map(|rule| (Advise::Only(rule), vec![*rule]));
        let mut sources = Vec::new();
        // Where data is moved; else all that a program may have looked for while it started.
        let files: Vec<Pattern> =
            profile.used.iter().filter_map(|path| Pattern::new(&Pattern::escape(path)).ok()).collect();
        let first = std::iter::once((Advise::Nothing, Vec::new()));
        for (number, (advise, fixed)) in first.chain(each).chain([(Advise::All, rules.clone())]).enumerate() {
            let output = scratch.join(format!("replay-{number}"));
            let source = as_invoking_user(|| source(dataset, &files, advise, &output))?;
            // What no generated program can fix, or fixes as another one does.
            if sources.contains(&source) {
                continue;
            }
            sources.push(source);
            compile(&output, &compiler, runner)?;
            replays.programs.push(Replay { program: output.join("replay"), fixed });
        }
        Ok(replays)
    }

    /// The command that makes the files as they were before.
    pub fn prepare(&self, at: usize) -> Vec<OsString> {
        let program = self.programs.get(at).map(|replay| replay.program.clone()).unwrap_or_default();
        vec![program.into(), "-p".into(), self.data.clone().into()]
    }

    pub fn command(&self, at: usize) -> Vec<OsString> {
        let program = self.programs.get(at).map(|replay| replay.program.clone()).unwrap_or_default();
        vec![
            self.launcher.clone().into(),
            "-n".into(),
            self.ranks.to_string().into(),
            program.into(),
            self.data.clone().into(),
        ]
    }

    /// All files of the programs.
    pub fn files(&self) -> Vec<PathBuf> {
        let (mut files, mut next) = (Vec::new(), vec![self.data.clone()]);
        while let Some(dir) = next.pop() {
            for entry in fs::read_dir(dir).into_iter().flatten().flatten() {
                match entry.file_type() {
                    Ok(kind) if kind.is_dir() => next.push(entry.path()),
                    Ok(kind) if kind.is_file() => files.push(entry.path()),
                    _ => {}
                }
            }
        }
        files
    }
}

/// Writes a program, and returns its text.
fn source(dataset: &Path, files: &[Pattern], advise: Advise, output: &Path) -> Result<[String; 2]> {
    let (language, layer) = (Language::C, None);
    replay_code::run(dataset, &Wish { language, layer, files, keep_time: false, advise, limit: LIMIT, output })?;
    let read = |name: &str| {
        let path = output.join(name);
        fs::read_to_string(&path).with_context(|| format!("cannot read {}", path.display()))
    };
    Ok([read("replay.c")?, read("replay.h")?])
}

/// The compiler and the launcher of the MPI that the program had, by Debian's names, or whatever there is; and whether it is
/// Open MPI. Debian's libraries for files are built with Open MPI.
fn mpi(profile: &ProgramProfile) -> (PathBuf, PathBuf, bool) {
    let by_openmpi = profile.ompio || profile.libraries || !profile.romio;
    let family = if by_openmpi { "openmpi" } else { "mpich" };
    match (program(&format!("mpicc.{family}")), program(&format!("mpirun.{family}"))) {
        (Some(compiler), Some(launcher)) => (compiler, launcher, by_openmpi),
        _ => ("mpicc".into(), "mpirun".into(), by_openmpi),
    }
}

fn compile(dir: &Path, compiler: &Path, runner: &mut Runner) -> Result<()> {
    let mut cc = OsString::from("CC=");
    cc.push(compiler);
    let make = ["make".into(), "-C".into(), dir.into(), cc];
    match runner.timed(Runner::as_user(&make))? {
        Outcome::Done(_) => Ok(()),
        Outcome::Failed(why) => bail!("{} does not compile: {why}", dir.display()),
        Outcome::Stopped(signal) => bail!("{signal}: stopped"),
    }
}
