//! `replay`: the dashboard over a recorded dataset. What the sums of the dataset give is there at once; calls are read in
//! another thread, as far as they are asked for.

mod reading;
mod stacks;

use self::reading::{Job, Wish, describe, lock, made_from, tree};
use self::stacks::Slow;
use crate::analysis::trace::source::IdKind;
use crate::base::text::escape;
use crate::cli::ShowArgs;
use crate::export::report::{Source as _, Union};
use crate::summary::selection;
use crate::summary::view::{Command, Focus, Loading, ProcessDetail, Screen, Snapshot, Source, Waterfall};
use crate::summary::{From, Summary};
use crate::{batch, tui};
use anyhow::{Result, bail};
use std::collections::BTreeSet;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// Shows a dataset until the user leaves.
///
/// # Errors
/// When it cannot be read, or there is nothing to show it on.
pub fn run(dir: &Path, show: &ShowArgs) -> Result<()> {
    let mut replay = Replay::open(dir)?;
    if show.batch {
        replay.wait(&Focus { filter: show.filter.clone().map(Arc::new), ..Focus::default() });
        // A dataset does not change: one tick is all there is.
        let once = batch::Batch { ticks: Some(1), delay: Duration::ZERO, ..show.batch() };
        return batch::run(&mut replay, &once, &mut std::io::stdout().lock(), |_| false);
    }
    if show.no_tui || !tui::wanted() {
        bail!("replay needs a terminal; use --batch, or iotrace-bpf report {}", dir.display());
    }
    let options = tui::Options { stop: tui::stop_on_signals()?, filter: show.filter.clone().map(Arc::new) };
    let shown = tui::run(&mut replay, &options);
    for warning in replay.warnings() {
        let _ = writeln!(std::io::stderr(), "iotrace-bpf: {}", escape(warning));
    }
    shown
}

/// One call with what it caused, once it has been read.
type Found = Arc<Mutex<Option<Arc<Waterfall>>>>;

/// The last snapshot, what it was asked with, and how far reading was.
type Last = (Focus, (u64, u64, bool, bool), Arc<Snapshot>);

/// A dataset, as the dashboard sees it.
pub struct Replay {
    path: PathBuf,
    /// What describes the run.
    facts: Summary,
    /// The sums of the dataset: few rows for many calls.
    sums: Job,
    /// All calls.
    all: Job,
    /// Those of a filter or a window.
    chosen: Option<Job>,
    instance: Option<(i64, Found, Arc<AtomicBool>)>,
    slow: Slow,
    warnings: BTreeSet<String>,
    last: Option<Last>,
}

impl Replay {
    /// Reads what describes the run; begins to read its sums and the calls.
    ///
    /// # Errors
    /// When there is no dataset, or nothing of it can be read.
    pub fn open(path: &Path) -> Result<Self> {
        let runs = Union::open_related(path)?;
        if let [.., last] = runs.as_slice()
            && runs.len() > 1
        {
            let last = last.directories().first().map(|path| path.display().to_string()).unwrap_or_default();
            bail!(
                "{} holds {} runs that have nothing to do with each other; give one of them: {last}",
                path.display(),
                runs.len()
            );
        }
        let mut dataset = Union::open(path)?;
        let mut known = Summary::new(made_from(&dataset)).finding(dataset.nodes().len(), &dataset.hosts(IdKind::File));
        describe(&mut dataset, &mut known)?;
        let warnings = dataset.warnings().into_iter().collect();
        let sums = Job::sums(path, &known)?;
        let all = Job::calls(path, Wish::default(), &known)?;
        let path = path.to_owned();
        Ok(Self {
            path,
            facts: known,
            sums,
            all,
            chosen: None,
            instance: None,
            slow: Slow::default(),
            warnings,
            last: None,
        })
    }

    fn warnings(&self) -> Vec<String> {
        let mut all = self.warnings.clone();
        for job in [&self.sums, &self.all] {
            all.extend(lock(&job.shared.warnings).iter().cloned());
        }
        all.into_iter().collect()
    }

    /// Waits until everything that a focus is about has been read.
    pub fn wait(&mut self, focus: &Focus) {
        self.snapshot(focus);
        while self.reading(focus).is_some_and(|job| !job.shared.over.load(Ordering::Acquire)) {
            std::thread::sleep(Duration::from_millis(1));
        }
    }

    fn reading(&self, focus: &Focus) -> Option<&Job> {
        if focus.filter.is_some() || self.chosen.is_some() { self.chosen.as_ref() } else { Some(&self.all) }
    }

    /// Begins and ends readings so that there is one for what is asked.
    fn choose(&mut self, focus: &Focus) {
        let exact =
            matches!(focus.screen, Screen::Files | Screen::Tree | Screen::Events | Screen::Devices | Screen::Findings);
        let wish =
            Wish { filter: focus.filter.clone(), window: focus.window.filter(|_| exact || focus.filter.is_some()) };
        if wish == Wish::default() {
            self.chosen = None;
        } else if self.chosen.as_ref().is_none_or(|job| job.wish != wish) {
            match Job::calls(&self.path, wish, &self.facts) {
                Ok(job) => self.chosen = Some(job),
                Err(e) => _ = self.warnings.insert(format!("{e:#}")),
            }
        }
    }

    /// The tree of a call, read once and kept as long as it is looked at.
    fn instance(&mut self, span_id: i64, root_id: Option<i64>) -> Option<Arc<Waterfall>> {
        if self.instance.as_ref().is_none_or(|(id, ..)| *id != span_id) {
            let found = Found::default();
            let over = Arc::new(AtomicBool::new(false));
            let (path, into, done) = (self.path.clone(), Arc::clone(&found), Arc::clone(&over));
            let mut summary = Summary::new(From::Spans);
            summary.knows(&self.facts);
            let read = move || {
                // What cannot be read is among the warnings of the whole.
                if let Ok(waterfall) = tree(&path, span_id, root_id, &mut summary) {
                    *lock(&into) = waterfall.map(Arc::new);
                }
                done.store(true, Ordering::Release);
            };
            let started = std::thread::Builder::new().name("instance".into()).spawn(read);
            if started.is_err() {
                over.store(true, Ordering::Release);
            }
            self.instance = Some((span_id, found, over));
        }
        self.instance.as_ref().and_then(|(_, found, _)| lock(found).clone())
    }
}

impl Source for Replay {
    fn snapshot(&mut self, focus: &Focus) -> Arc<Snapshot> {
        self.choose(focus);
        let job = self.chosen.as_ref().unwrap_or(&self.all);
        let over = job.shared.over.load(Ordering::Acquire);
        let complete = over && !job.shared.cancel.load(Ordering::Relaxed);
        let (read, rows) = (job.shared.read.load(Ordering::Relaxed), job.shared.rows.load(Ordering::Relaxed));
        let found = self.instance.as_ref().is_some_and(|(_, _, over)| over.load(Ordering::Acquire));
        let state = (read, self.sums.shared.read.load(Ordering::Relaxed), over, found);
        let slow = self.slow.of(&self.path, focus).map(ProcessDetail::Stacks);
        if let Some((before, was, snapshot)) = &self.last
            && before == focus
            && *was == state
            && (slow.is_none() || snapshot.process == slow)
        {
            return Arc::clone(snapshot);
        }
        // These screens need only sums, as long as nothing is left out.
        let summed = matches!(focus.screen, Screen::Overview | Screen::Processes | Screen::Latency | Screen::Coverage);
        let mut snapshot = if !complete && summed && self.chosen.is_none() {
            let mut snapshot = self.sums.shared.look().snapshot(focus);
            if focus.screen == Screen::Overview {
                let files = Focus { screen: Screen::Files, ..Focus::default() };
                snapshot.files = job.shared.look().snapshot(&files).files;
            }
            snapshot
        } else {
            job.shared.look().snapshot(focus)
        };
        snapshot.process = slow.or(snapshot.process);
        let root = focus.span_id.and_then(|id| job.shared.look().root_of(id));
        let mut warnings = self.warnings.clone();
        for shared in [&self.sums.shared, &job.shared] {
            warnings.extend(lock(&shared.warnings).iter().cloned());
        }
        snapshot.kept = self.sums.shared.look().kept();
        if focus.window.is_none() {
            snapshot.window = snapshot.kept;
        }
        if !over {
            let done = if rows == 0 { 0.0 } else { read as f64 / rows as f64 };
            snapshot.loading = Some(Loading { what: "calls".to_owned(), done });
        }
        if let Some(id) = focus.span_id {
            // Asked first: what is found between the two would be missing, without a hint that it is still read.
            self.instance(id, root);
            let over = self.instance.as_ref().is_some_and(|(_, _, over)| over.load(Ordering::Acquire));
            snapshot.waterfall = self.instance(id, root);
            if !over {
                snapshot.loading = Some(Loading { what: "the calls inside it".to_owned(), done: 0.0 });
            }
        } else {
            self.instance = None;
        }
        let mut notes = snapshot.notes.to_vec();
        notes.extend(warnings);
        snapshot.notes = notes.into();
        let snapshot = Arc::new(snapshot);
        self.last = Some((focus.clone(), state, Arc::clone(&snapshot)));
        snapshot
    }

    fn command(&mut self, command: Command, focus: &Focus) -> Result<String, String> {
        match command {
            Command::StartRecording(_) | Command::StopRecording | Command::WriteFlight => {
                Err("this is a recording".to_owned())
            }
            Command::Export(path) => {
                let job = self.chosen.as_ref().unwrap_or(&self.all);
                if !job.shared.over.load(Ordering::Acquire) {
                    return Err("the calls have not been read yet".to_owned());
                }
                let rows = job.shared.look().selection(focus);
                selection::export(rows, &path, &self.facts.host())
            }
            Command::Cancel => {
                let job = self.chosen.as_ref().unwrap_or(&self.all);
                job.shared.cancel.store(true, Ordering::Relaxed);
                Ok("reading was ended; figures are of the calls that were read".to_owned())
            }
            Command::Signal { .. } => Err("this is a recording: its processes are no longer there".to_owned()),
            Command::Type(_) => Err("this is a recording: no command runs".to_owned()),
        }
    }
}
