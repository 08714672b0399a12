//! `tune`: settings that may help against the findings of a run are tried on the program itself, or on a replay of its I/O,
//! and those that make it faster are kept for its user.

mod candidates;
mod command;
mod learned;
mod measure;
mod profile;
mod render;
mod replays;
mod settings;

use std::collections::BTreeSet;
use std::ffi::{OsStr, OsString};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::SystemTime;

use anyhow::{Context as _, Result, bail, ensure};
use nix::unistd::geteuid;

pub use crate::tune::command::{RUN, run_main};
pub use crate::tune::learned::offers;

use crate::base::notices;
use crate::base::text::time;
use crate::export::as_invoking_user;
use crate::export::report::{self, Report};
use crate::tune::command::{Run, Runner, drop_from_cache, shell};
use crate::tune::learned::Learned;
use crate::tune::measure::{Measured, Outcome, fastest, rounds};
use crate::tune::profile::ProgramProfile;
use crate::tune::render::Tried;
use crate::tune::replays::{ALWAYS, Replays};
use crate::tune::settings::Settings;

/// What is asked for.
#[derive(Debug)]
pub struct Wish<'a> {
    /// A trace of the program; without it the program is traced first.
    pub dataset: Option<&'a Path>,
    /// The program; without it a replay of the dataset.
    pub command: &'a [OsString],
    pub runs: usize,
    /// A line of a shell before each run.
    pub prepare: Option<&'a OsStr>,
    /// Files that are read are not in the page cache when a run begins.
    pub cold: bool,
    /// How far devices read ahead is tried, too.
    pub devices: bool,
    /// Where the files of replays are.
    pub dir: &'a Path,
    pub json: bool,
    pub width: usize,
}

/// What is run.
enum Target {
    Command(Vec<OsString>, Vec<PathBuf>),
    Replays(Replays),
}

struct Variant {
    tried: Tried,
    /// Of several replays; 0: the program as it is.
    program: usize,
}

struct Tuning<'a> {
    wish: &'a Wish<'a>,
    runner: Runner,
    target: Target,
    variants: Vec<Variant>,
    /// All runs of each.
    measured: Vec<Measured>,
}

/// Which variants made the program faster, by number.
#[derive(Default)]
struct Faster {
    /// Most of all.
    best: Option<usize>,
    /// Of those that only set something: they help the program as it is.
    settings: Option<usize>,
}

/// Tries what may help, prints what came of it, and keeps what helped.
///
/// # Errors
/// When the program cannot be traced or replayed, fails as it is, or `out` cannot be written to.
pub fn run(wish: &Wish, out: &mut dyn Write) -> Result<()> {
    ensure!(
        !wish.devices || geteuid().is_root(),
        "--devices changes settings of the kernel, which needs root: use sudo"
    );
    let temporary = std::env::temp_dir();
    let parent = if wish.command.is_empty() { wish.dir } else { &temporary };
    let make = || Ok(tempfile::Builder::new().prefix("iotrace-tune.").tempdir_in(parent)?);
    let scratch = as_invoking_user(make).with_context(|| format!("cannot make a directory in {}", parent.display()))?;
    let mut runner = Runner::new(scratch.path())?;
    let dataset = match wish.dataset {
        Some(dataset) => dataset.to_owned(),
        None => traced(wish, scratch.path(), &mut runner)?,
    };
    let (mut source, report) = report::single(&dataset, &report::Wish::default())?;
    let mut profile = profile::of(&mut source, &report)?;
    let target = if wish.command.is_empty() {
        let replays = Replays::make(&dataset, &profile, scratch.path(), &mut runner)?;
        // That library and that device serve it now.
        let parallel = profile.romio || profile.ompio;
        (profile.ompio, profile.romio) = (parallel && replays.by_openmpi, parallel && !replays.by_openmpi);
        profile.devices = profile::device_of(scratch.path());
        Target::Replays(replays)
    } else {
        Target::Command(wish.command.to_vec(), profile.read.clone())
    };
    let variants = variants(&profile, wish.devices, &target);
    let mut tuning = Tuning { wish, runner, target, variants, measured: Vec::new() };
    let outcome = tuning.outcome(&profile, &report)?;
    let text = if wish.json { render::json(&outcome)? } else { render::text(&outcome, wish.width) };
    out.write_all(text.as_bytes()).context("cannot write what came of it")
}

/// Traces the program as it is.
fn traced(wish: &Wish, dir: &Path, runner: &mut Runner) -> Result<PathBuf> {
    prepare(runner, wish.prepare.map(shell).as_deref())?;
    notices::note("tracing the command as it is");
    let dataset = dir.join("run.iotrace");
    let mut tracer = Command::new("/proc/self/exe");
    tracer.arg("--quiet").arg("-o").arg(&dataset).arg("--").args(wish.command);
    match runner.timed(tracer)? {
        Outcome::Done(_) => Ok(dataset),
        Outcome::Failed(why) => bail!("the traced run failed: {why}"),
        Outcome::Stopped(signal) => bail!("{signal}: stopped"),
    }
}

fn prepare(runner: &mut Runner, command: Option<&[OsString]>) -> Result<()> {
    let Some(command) = command else { return Ok(()) };
    match runner.timed(Runner::as_user(command))? {
        Outcome::Done(_) => Ok(()),
        Outcome::Failed(why) => bail!("the command that prepares a run failed: {why}"),
        Outcome::Stopped(signal) => bail!("{signal}: stopped"),
    }
}

/// The program as it is, its fixed replays, and the program with each of the settings.
fn variants(profile: &ProgramProfile, devices: bool, target: &Target) -> Vec<Variant> {
    let of = |settings: Settings, rules: Vec<&'static str>, program: usize, fixed: Vec<&'static str>| Variant {
        tried: Tried::new(settings, (fixed, profile.gain(&rules)), rules),
        program,
    };
    let replays: &[_] = if let Target::Replays(replays) = target { &replays.programs } else { &[] };
    let fixed = replays.iter().enumerate().skip(1);
    let fixed = fixed.map(|(at, replay)| of(Settings::default(), replay.fixed.clone(), at, replay.fixed.clone()));
    let settings = candidates::of(profile, devices).into_iter().map(|one| of(one.settings, one.rules, 0, Vec::new()));
    std::iter::once(of(Settings::default(), Vec::new(), 0, Vec::new())).chain(fixed).chain(settings).collect()
}

impl Tuning<'_> {
    fn outcome(&mut self, profile: &ProgramProfile, report: &Report) -> Result<render::Outcome> {
        let mut faster = Faster::default();
        if self.variants.len() > 1 {
            let all: Vec<usize> = (0..self.variants.len()).collect();
            let runs = self.wish.runs;
            notices::note(&format!(
                "{} variants to try, {runs} runs of each and of the program as it is",
                all.len() - 1
            ));
            let measured = self.rounds(&all)?;
            faster = self.together(&measured)?;
        }
        for (variant, measured) in self.variants.iter_mut().zip(&self.measured) {
            variant.tried.add(measured, &self.measured[0]);
        }
        let rules: BTreeSet<&str> =
            self.variants.iter().flat_map(|variant| variant.tried.rules.iter().copied()).collect();
        let untried = profile.rules.iter().map(|(rule, _)| *rule).filter(|rule| !rules.contains(rule)).collect();
        let tried: Vec<Tried> = std::mem::take(&mut self.variants).into_iter().map(|variant| variant.tried).collect();
        let Faster { best, settings } = faster;
        let lines = settings.map_or_else(Vec::new, |at| keep(&tried, at, profile, self.wish));
        let command = report.header.command.clone().unwrap_or_default();
        Ok(render::Outcome { command, variants: tried, best, settings, lines, untried })
    }

    /// Runs these variants by turns; the first is the program as it is. What is returned is of these runs alone.
    fn rounds(&mut self, all: &[usize]) -> Result<Vec<Measured>> {
        let runs = self.wish.runs;
        let begun = std::time::Instant::now();
        let mut last = 0;
        let measured = rounds(all.len(), runs, &mut |round, at| {
            if round != last {
                last = round;
                let left = begun.elapsed().as_nanos() as f64 / round as f64 * (runs - round) as f64;
                notices::note(&format!("round {} of {runs}: about {} more", round + 1, time(left as i64)));
            }
            self.once(all[at])
        })?;
        self.measured.resize_with(self.variants.len(), Measured::default);
        for (at, one) in all.iter().zip(&measured) {
            self.measured[*at].add(one);
        }
        Ok(measured)
    }

    /// One run of a variant.
    fn once(&mut self, at: usize) -> Result<Outcome> {
        let variant = &self.variants[at];
        let (command, files, always, before) = match &self.target {
            Target::Command(command, files) => {
                (command.clone(), files.clone(), [].as_slice(), self.wish.prepare.map(shell))
            }
            Target::Replays(replays) => {
                let before = replays.prepare(variant.program);
                (replays.command(variant.program), Vec::new(), ALWAYS, Some(before))
            }
        };
        prepare(&mut self.runner, before.as_deref())?;
        if self.wish.cold {
            let made = if let Target::Replays(replays) = &self.target { replays.files() } else { files };
            drop_from_cache(&made)?;
        }
        self.runner.run(&Run { command: &command, settings: &variant.tried.settings, always })
    }

    /// Which helped; where several settings did, all of them are tried together.
    fn together(&mut self, measured: &[Measured]) -> Result<Faster> {
        let Some(base) = measured.first() else { return Ok(Faster::default()) };
        let best = fastest(measured, |_| true);
        let Some(single) = fastest(measured, |at| self.variants[at].program == 0) else {
            return Ok(Faster { best, settings: None });
        };
        let helps = |at: &usize| self.variants[*at].program == 0 && measured[*at].beats(base);
        let mut helping: Vec<usize> = (1..measured.len()).filter(helps).collect();
        helping.sort_by(|a, b| measured[*a].side().median.total_cmp(&measured[*b].side().median));
        let (mut all, mut rules) = (Settings::default(), Vec::new());
        for at in helping {
            let tried = &self.variants[at].tried;
            if let Some(more) = all.and(&tried.settings) {
                all = more;
                rules.extend(tried.rules.iter().copied().filter(|rule| !rules.contains(rule)).collect::<Vec<_>>());
            }
        }
        if self.variants.iter().any(|variant| variant.tried.settings == all) {
            return Ok(Faster { best, settings: Some(single) });
        }
        notices::note(&format!("all that helped together: {}", all.description()));
        self.variants.push(Variant { tried: Tried::new(all, (Vec::new(), None), rules), program: 0 });
        let new = self.variants.len() - 1;
        let again = self.rounds(&[0, single, new])?;
        let settings = if again[2].beats(&again[1]) { new } else { single };
        let best = if best == Some(single) { Some(settings) } else { best };
        Ok(Faster { best, settings: Some(settings) })
    }
}

/// Keeps the settings that helped; returns lines of a shell that set them.
fn keep(tried: &[Tried], at: usize, profile: &ProgramProfile, wish: &Wish) -> Vec<String> {
    let (best, base) = (&tried[at], &tried[0]);
    let learned = Learned {
        program: profile.program.clone().unwrap_or_else(|| wish.command.first().map(PathBuf::from).unwrap_or_default()),
        types: profile.types.clone(),
        settings: best.settings.clone(),
        before_s: base.median_s.unwrap_or(0.0),
        after_s: best.median_s.unwrap_or(0.0),
        runs: best.times_s.len(),
        at_ns: SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).map_or(0, |d| d.as_nanos() as i64),
    };
    learned.keep().unwrap_or_else(|e| {
        notices::print(&format!("what was learned is not kept: {e:#}"));
        best.settings.lines(Path::new("FILE"))
    })
}
