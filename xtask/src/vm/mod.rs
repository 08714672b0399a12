//! `cargo xtask vm`: live tests on Debian's kernels, in QEMU.

pub mod doc;
mod image;
mod kernels;
mod qemu;
mod suite;

use anyhow::{Context, Result, anyhow, bail};
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

use crate::setup::{self, Package, Sign, package};
use crate::{Tree, kept, programs, shell, venv};
use kernels::Kernel;
pub use kernels::VERSIONS as KERNELS;
use qemu::End;
use suite::{Built, ConsoleLine, Verdict};

/// What this needs besides the packages of `cargo xtask setup`.
const PACKAGES: &[Package] = &[
    package("qemu-system-x86", "qemu-system-x86", Sign::Program("qemu-system-x86_64"), "runs the kernels"),
    package("busybox-static", "busybox", Sign::Program("busybox"), "the first programs in them"),
    package("kmod", "kmod", Sign::Program("modprobe"), "finds their modules"),
    package("xz-utils", "xz", Sign::Program("xz"), "unpacks their modules"),
    package("xfsprogs", "xfsprogs", Sign::Program("mkfs.xfs"), "makes a disk for them"),
    package("dmsetup", "dmsetup", Sign::Program("dmsetup"), "a test in them maps a device"),
    package("mdadm", "mdadm", Sign::Program("mdadm"), "a test in them stripes one"),
    package("nfs-kernel-server", "nfs-utils", Sign::Program("rpc.nfsd"), "a test in them mounts what it exports"),
];

/// Runs the suite on the kernels of these versions at the same time, prints what ran and writes the kernels' sections of
/// docs/kernels.md; a test that failed is an error.
pub fn run(tree: &Tree, which: &str) -> Result<()> {
    let versions: Vec<&'static str> = KERNELS.iter().copied().filter(|v| which == "all" || which == *v).collect();
    if versions.is_empty() {
        bail!("there is no kernel {which}: use {} or all", KERNELS.join(", "));
    }
    if !shell::is_root() {
        bail!("the virtual machines see this one's files as root; run: sudo -E env PATH=\"$PATH\" cargo xtask vm");
    }
    let Machines { dir, kernels } = prepare(tree, &versions)?;
    venv::make(tree)?;
    let built = build()?;
    for name in programs::names() {
        programs::compile(&tree.root, &tree.target, name).map_err(|e| anyhow!(e))?;
    }
    let outcomes: Vec<Result<Outcome>> = thread::scope(|scope| {
        let (dir, built) = (&dir, &built);
        let start = |kernel| scope.spawn(move || one(tree, dir, kernel, built));
        let machines: Vec<_> = kernels.iter().map(start).collect();
        let panicked = || Err(anyhow!("a thread of xtask panicked"));
        machines.into_iter().map(|m| m.join().unwrap_or_else(|_| panicked())).collect()
    });
    let bad =
        kernels.iter().zip(outcomes).map(|(kernel, outcome)| report(kernel, outcome)).collect::<Result<Vec<_>>>()?;
    let bad = bad.concat();
    if !bad.is_empty() {
        bail!(
            "{}\nThe consoles are in {1}/KERNEL.console, the output of tests in {1}/job-KERNEL",
            bad.join("\n"),
            dir.display()
        );
    }
    Ok(())
}

/// What machines run on.
pub struct Machines {
    /// Where what is made for them is.
    dir: PathBuf,
    kernels: Vec<Kernel>,
}

/// Installs and fetches what the machines need.
pub fn prepare(tree: &Tree, versions: &[&'static str]) -> Result<Machines> {
    setup::all()?;
    setup::packages(PACKAGES)?;
    let dir = tree.target.join("vm");
    fs::create_dir_all(&dir).with_context(|| format!("cannot make {}", dir.display()))?;
    let kernels = versions.iter().map(|v| kernels::get(v, &dir)).collect::<Result<_>>()?;
    Ok(Machines { dir, kernels })
}

/// Prints what came of a kernel and writes its section of docs/kernels.md; returns what went wrong.
fn report(kernel: &Kernel, outcome: Result<Outcome>) -> Result<Vec<String>> {
    let problems = match outcome {
        Ok(outcome) => {
            print!("{}", outcome.report(&kernel.release));
            let problems = outcome.problems();
            if problems.is_empty() {
                let volume =
                    "Debian's, in QEMU with 2 emulated processors;\next4 and xfs on virtio disks, ext4 on null_blk";
                doc::write(kernel.version, &doc::section(volume, &outcome.notes, &outcome.left_out())?)?;
            }
            problems
        }
        Err(why) => vec![format!("{why:#}")],
    };
    Ok(problems.into_iter().map(|problem| format!("Linux {}: {problem}", kernel.version)).collect())
}

/// Builds the tests of the suite.
fn build() -> Result<Vec<Built>> {
    let path = kept::program()?;
    let list = shell::output(&path, &["--list", "--format", "terse"])?;
    let tests: Vec<&str> = list.lines().filter_map(|line| line.strip_suffix(": test")).collect();
    let of = |file: &suite::File| {
        let is_in = |test: &&&str| test.strip_prefix(file.name).is_some_and(|rest| rest.starts_with("::"));
        tests.iter().filter(is_in).map(|test| (*test).to_owned()).collect()
    };
    Ok(suite::SUITE.iter().map(|file| Built { file, path: path.clone(), tests: of(file) }).collect())
}

/// What came of a kernel.
#[derive(Default)]
struct Outcome {
    end: End,
    took: Duration,
    /// The script came to its end.
    done: bool,
    /// How the datasets that were kept differ from SQL.
    comparison: Option<String>,
    /// Volume, file of tests, how long, verdicts.
    ran: Vec<Ran>,
    /// Volume, test, reason.
    not_run: Vec<[String; 3]>,
    notes: Vec<doc::Note>,
    /// The last lines of the console.
    tail: Vec<String>,
}

struct Ran {
    volume: String,
    name: String,
    took: Option<Duration>,
    verdicts: BTreeMap<String, Verdict>,
    /// Tests that failed at first: machines are emulated beside each other, and slow.
    second: Vec<String>,
    log: PathBuf,
}

impl Ran {
    /// Tests that failed run a second time, and what comes of that counts.
    fn second_try(&mut self, log: &str) {
        self.second = self.verdicts.iter().filter(|(_, v)| **v == Verdict::Failed).map(|(t, _)| t.clone()).collect();
        self.verdicts.extend(suite::verdicts(log, &self.second));
    }
}

/// Runs the suite on one kernel.
fn one(tree: &Tree, dir: &Path, kernel: &Kernel, built: &[Built]) -> Result<Outcome> {
    let initramfs = image::make(kernel)?;
    let job = dir.join(format!("job-{}", kernel.version));
    if job.exists() {
        fs::remove_dir_all(&job).with_context(|| format!("cannot remove {}", job.display()))?;
    }
    fs::create_dir_all(&job).with_context(|| format!("cannot make {}", job.display()))?;
    let tracer = tree.target.join("debug/iotrace-bpf");
    let script = suite::script(&tree.root, &job, &kernel.base, &tracer.to_string_lossy(), built);
    fs::write(job.join("job.sh"), script).with_context(|| format!("cannot write to {}", job.display()))?;

    let console = dir.join(format!("{}.console", kernel.version));
    let mut watch = Watch { version: kernel.version, job: &job, start: Instant::now(), began: Instant::now() };
    let mut outcome = Outcome::default();
    outcome.end = qemu::run(kernel, &initramfs, &job, &console, |line| watch.line(line, &mut outcome))?;
    if outcome.done {
        let tests = &built.first().context("no tests")?.path;
        let comparison = kept::compare(tests, &job.join(suite::KEPT));
        outcome.comparison = comparison.err().map(|e| format!("datasets of this machine differ from SQL:\n{e:#}"));
    }
    outcome.took = watch.start.elapsed();
    outcome.read_verdicts(built);
    for volume in suite::VOLUMES {
        let text = fs::read_to_string(job.join(format!("{volume}.tiers"))).unwrap_or_default();
        outcome.notes.extend(doc::notes(&text)?);
    }
    Ok(outcome)
}

/// A machine while it runs.
struct Watch<'a> {
    version: &'a str,
    job: &'a Path,
    start: Instant,
    /// When the tests that run now began.
    began: Instant,
}

impl Watch<'_> {
    fn progress(&self, text: &str) {
        println!("  {:5} {:4} s  {text}", self.version, self.start.elapsed().as_secs());
    }

    /// A line of its console.
    fn line(&mut self, line: &str, to: &mut Outcome) {
        to.tail.push(line.to_owned());
        if to.tail.len() > 60 {
            to.tail.remove(0);
        }
        match suite::parse_line(line) {
            Some(ConsoleLine::Kernel(release)) => self.progress(&format!("kernel {release} is up")),
            Some(ConsoleLine::Begin { volume, name }) => {
                self.began = Instant::now();
                self.progress(&format!("{name} on {volume}"));
                let log = self.job.join(format!("{volume}.{name}.log"));
                let (volume, name) = (volume.to_owned(), name.to_owned());
                to.ran.push(Ran { volume, name, took: None, verdicts: BTreeMap::new(), second: Vec::new(), log });
            }
            Some(ConsoleLine::Again { volume, name }) => {
                self.progress(&format!("{name} on {volume}: again what failed"));
            }
            Some(ConsoleLine::End { .. }) => {
                if let Some(ran) = to.ran.last_mut() {
                    ran.took = Some(self.began.elapsed());
                }
            }
            Some(ConsoleLine::LeftOut { volume, name, why }) => {
                self.progress(&format!("{name} on {volume}: not run: {why}"));
                to.not_run.push([volume, name, why].map(str::to_owned));
            }
            Some(ConsoleLine::Done) => to.done = true,
            Some(ConsoleLine::Test(text)) => self.progress(&format!("  {text}")),
            None => {}
        }
    }
}

impl Outcome {
    /// The verdicts of tests that ran, from their logs.
    fn read_verdicts(&mut self, built: &[Built]) {
        for ran in &mut self.ran {
            let asked = built.iter().find(|b| b.file.name == ran.name).map(|b| b.tests.as_slice()).unwrap_or_default();
            let skipped =
                |test: &String| self.not_run.iter().any(|[volume, name, _]| *volume == ran.volume && name == test);
            let asked: Vec<String> = asked.iter().filter(|test| !skipped(test)).cloned().collect();
            ran.verdicts = suite::verdicts(&fs::read_to_string(&ran.log).unwrap_or_default(), &asked);
            if let Ok(again) = fs::read_to_string(ran.log.with_extension("again.log")) {
                ran.second_try(&again);
            }
        }
    }

    /// The table of what ran, by volume and file, and how each layer was probed.
    fn report(&self, release: &str) -> String {
        let mut text = format!("\nLinux {release}: {} s\n", self.took.as_secs());
        text += "  volume     tests                 passed  failed  unfinished    took\n";
        for ran in &self.ran {
            let count = |verdict: Verdict| ran.verdicts.values().filter(|v| **v == verdict).count();
            let took = ran.took.map_or_else(|| "-".to_owned(), |t| format!("{} s", t.as_secs()));
            let [passed, failed, unfinished] = [Verdict::Passed, Verdict::Failed, Verdict::Unfinished].map(count);
            text += &format!("  {:9} {:21} {passed:6}  {failed:6}  {unfinished:10}  {took:>6}\n", ran.volume, ran.name);
        }
        for ran in &self.ran {
            for test in ran.second.iter().filter(|test| ran.verdicts.get(*test) == Some(&Verdict::Passed)) {
                let log = ran.log.display();
                text += &format!("  {:9} {test}: failed, and passed when it ran again: {log}\n", ran.volume);
            }
        }
        for [volume, name, why] in &self.not_run {
            text += &format!("  {volume:9} {name}: not run: {why}\n");
        }
        let mut tiers: BTreeMap<(&str, &str), (u64, usize)> = BTreeMap::new();
        for note in self.notes.iter().filter(|n| n.attached > 0) {
            let (most, traces) = tiers.entry((&note.layer, &note.tier)).or_default();
            (*most, *traces) = ((*most).max(note.attached), *traces + 1);
        }
        for ((layer, tier), (most, traces)) in tiers {
            text += &format!("  {layer:8} by {tier:15} up to {most} probes, in {traces} traces\n");
        }
        text
    }

    /// What went wrong; empty when all is well.
    fn problems(&self) -> Vec<String> {
        let mut problems: Vec<String> = self.comparison.iter().cloned().collect();
        let tail = || self.tail.join("\n    ");
        match &self.end {
            End::Panic(why) => problems.push(format!("{why}; the console's end:\n    {}", tail())),
            End::TimeOut => {
                problems.push(format!("no end within {} s; the console's end:\n    {}", self.took.as_secs(), tail()));
            }
            End::Off if !self.done => problems.push(format!("it stopped early; the console's end:\n    {}", tail())),
            End::Off => {}
        }
        for ran in &self.ran {
            for (test, verdict) in ran.verdicts.iter().filter(|(_, v)| **v != Verdict::Passed) {
                let what = if *verdict == Verdict::Failed { "failed" } else { "did not come to its end" };
                problems.push(format!("{test} {what} on {}: {}", ran.volume, ran.log.display()));
            }
        }
        problems
    }

    /// Tests that ran nowhere, with the reason.
    fn left_out(&self) -> BTreeMap<String, String> {
        self.not_run.iter().map(|[volume, name, why]| (format!("{name} on {volume}"), why.clone())).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn outcome(end: End, done: bool, verdict: Verdict) -> Outcome {
        let ran = Ran {
            volume: "ext4".into(),
            name: "room::a".into(),
            took: None,
            verdicts: BTreeMap::from([("room::a::one".to_owned(), verdict)]),
            second: Vec::new(),
            log: PathBuf::from("/j/log"),
        };
        let not_run = vec![["xfs", "room::b", "too much"].map(str::to_owned)];
        let tail = vec!["last words".to_owned()];
        Outcome { end, took: Duration::ZERO, done, comparison: None, ran: vec![ran], not_run, notes: Vec::new(), tail }
    }

    #[test]
    fn problems_are_listed() {
        assert_eq!(outcome(End::Off, true, Verdict::Passed).problems(), Vec::<String>::new());
        assert_eq!(outcome(End::Off, true, Verdict::Failed).problems(), ["room::a::one failed on ext4: /j/log"]);
        for end in [End::Panic("Kernel panic - not syncing".into()), End::TimeOut, End::Off] {
            let problems = outcome(end, false, Verdict::Unfinished).problems();
            assert_eq!(problems.len(), 2, "{problems:?}");
            assert!(problems[0].ends_with("last words"), "{problems:?}");
        }
    }

    #[test]
    fn a_second_try_counts_and_is_named() {
        let mut outcome = outcome(End::Off, true, Verdict::Failed);
        outcome.ran[0].second_try("test room::a::one ... ok\n\ntest result: ok. 1 passed\n");
        assert_eq!(outcome.problems(), Vec::<String>::new());
        assert!(outcome.report("6.1.0").contains("room::a::one: failed, and passed when it ran again: /j/log"));
        let mut outcome = self::outcome(End::Off, true, Verdict::Failed);
        outcome.ran[0].second_try(
            "test room::a::one ... FAILED\n\nfailures:\n    room::a::one\n\ntest result: FAILED. 0 passed; 1 failed\n",
        );
        assert_eq!(outcome.problems(), ["room::a::one failed on ext4: /j/log"]);
    }

    #[test]
    fn the_report_names_what_was_not_run() {
        let report = outcome(End::Off, true, Verdict::Passed).report("6.1.0");
        assert!(report.contains("xfs       room::b: not run: too much"), "{report}");
        assert!(report.contains("ext4      room::a                    1       0           0       -"), "{report}");
    }
}
