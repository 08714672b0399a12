//! The dashboard in a real terminal: live and on a dataset, key by key, and the terminal as it was before afterwards.

use crate::common::recording::Recording;
use crate::common::tools::pane::Pane;
use crate::common::{live, programs};
use iotrace_bpf::summary::view::{Focus, Screen, Snapshot, Source};
use iotrace_bpf::tui;
use std::fs;
use std::io::Write as _;
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, LazyLock};
use std::time::{Duration, Instant};

pub const TRACER: &str = env!("CARGO_BIN_EXE_iotrace-bpf");

/// What a shell prints when the dashboard has ended, with the modes of the terminal.
pub const AFTER: &str = "; echo left $?; stty -a; sleep 600";

/// A dataset that is always the same.
const FIXTURE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/fixtures/mpi_hdf5");

/// A parallel HDF5 program, recorded once for all tests.
static RECORDED: LazyLock<Recording> = LazyLock::new(|| {
    let record = |work: &Path| {
        let (program, mpirun) = (programs::build("demo"), programs::openmpi("mpirun"));
        let mpirun = [&mpirun, "--allow-run-as-root", "--oversubscribe", "-np", "2"].map(Path::new);
        let traced = live::trace(work, &[], &[&mpirun[..], &[program.as_path(), &work.join("out")]].concat());
        assert_eq!(traced.code, Some(0), "{}", traced.stderr);
        traced
    };
    Recording::shared("demo_of_2_ranks", record)
});

fn recorded() -> &'static Path {
    &RECORDED.traced().dir
}

fn replay(work: &Path, size: (u16, u16), dir: &Path) -> Pane {
    Pane::new(work, size, &format!("{TRACER} replay {}{AFTER}", dir.display()))
}

/// Nothing of the dashboard is left on the terminal.
pub fn is_restored(pane: &Pane) {
    let text = pane.shows(&["left ", "icanon"]);
    assert!(text.contains(" icanon") && text.contains(" echo ") && !text.contains("-icanon"), "{text}");
    for flag in ["alternate_on", "mouse_any_flag"] {
        assert_eq!(pane.value(flag), "0", "{flag}");
    }
    assert_eq!(pane.value("cursor_flag"), "1");
}

/// Ends when the test does.
pub struct Running(pub Child);

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn a_dataset_answers_which_layer_which_file_which_rank_and_what_was_lost() {
    let work = live::scratch();
    let pane = replay(work.path(), (120, 40), recorded());
    pane.shows(&["FILE", "hdf5", "mpiio", "syscall", "demo.h5", "lost 0", "imbalance of 2 ranks"]);
    pane.after(&["2"], &["time in I/O from", "rank"]);
    pane.after(&["3"], &["files (system calls)", "demo.h5"]);
    pane.after(&["Enter"], &["offset over time", "calls on it", "handles"]);
    pane.after(&["Escape"], &["files (system calls)"]);
    pane.after(&["4"], &["call tree", "calls inside each other"]);
    pane.after(&["Enter"], &["slowest calls of"]);
    pane.after(&["Tab", "Enter"], &["one call from"]);
    pane.after(&["5"], &["durations of all calls", "distribution"]);
    pane.after(&["6"], &["a dataset has nothing in flight"]);
    pane.after(&["7"], &["calls in the order", "following"]);
    pane.after(&["8"], &["devices (all requests on the node)", "mounts of traced files"]);
    pane.after(&["9"], &["probes by library", "nothing was lost", "libhdf5"]);
    pane.after(&["?"], &["Everywhere", "Coverage and losses"]);
    pane.keys(&["Escape"]);
    pane.shows_no("Everywhere");
    pane.after(&["q"], &["left 0"]);
    is_restored(&pane);
}

#[test]
fn a_filter_is_typed_corrected_and_taken_away() {
    let work = live::scratch();
    let pane = replay(work.path(), (120, 40), recorded());
    pane.shows(&["FILE", "syscall"]);
    pane.after(&["4"], &["call tree", "calls inside each other"]);
    pane.after(&["/", "layer=nothing", "Enter"], &["filter: layer=nothing", "at character"]);
    pane.after(&["C-u", "op=H5Dread", "Enter"], &["filter: op=H5Dread"]);
    pane.keys(&["Escape"]);
    pane.shows_no("filter:");
    pane.shows(&["calls inside each other"]);
}

#[test]
fn rows_are_searched_and_their_sql_is_copied() {
    let work = live::scratch();
    let pane = replay(work.path(), (120, 40), Path::new(FIXTURE));
    pane.shows(&["FILE", "imbalance of 2 ranks"]);
    pane.after(&["3", "n"], &["search rows for:"]);
    pane.after(&["DEMO.H5", "Enter", "y"], &["The calls behind this row", "file_id =", "copied, if this terminal"]);
    pane.keys(&["Escape"]);
    pane.shows_no("The calls behind");
    pane.after(&["n", "Enter"], &["offset over time", "demo.h5"]);
    pane.after(&["q"], &["left 0"]);
    is_restored(&pane);
}

#[test]
fn a_layout_is_kept_for_the_next_time() {
    let work = live::scratch();
    let pane = replay(work.path(), (120, 40), Path::new(FIXTURE));
    pane.shows(&["FILE", "imbalance of 2 ranks"]);
    pane.after(&["2", "p", "p"], &["ranks, time in I/O"]);
    let kept = work.path().join("config/iotrace-bpf/layout.toml");
    fs::create_dir(work.path().join("config")).unwrap();
    pane.after(&["w"], &["the layout is kept in"]);
    pane.after(&["q"], &["left 0"]);
    drop(pane);
    let pane = replay(work.path(), (120, 40), Path::new(FIXTURE));
    pane.shows(&["FILE", "imbalance of 2 ranks"]);
    pane.after(&["2"], &["ranks, time in I/O"]);
    drop(pane);
    fs::write(&kept, "grouping = 7").unwrap();
    let pane = replay(work.path(), (120, 40), Path::new(FIXTURE));
    pane.shows(&["the default layout is used", "layout.toml"]);
    pane.after(&["2"], &["processes, time in I/O"]);
}

#[test]
fn a_terminal_may_change_its_size() {
    let work = live::scratch();
    let pane = replay(work.path(), (80, 24), recorded());
    pane.shows(&["FILE", "syscall", "lost 0"]);
    pane.resize(200, 60);
    pane.shows(&["calls over time"]);
    pane.resize(30, 8);
    pane.shows(&["too small"]);
    pane.resize(80, 24);
    pane.shows(&["layers: per second", "lost 0"]);
}

/// The process of the dashboard in a terminal.
fn dashboard(pane: &Pane) -> String {
    let shell = pane.value("pane_pid");
    let children = fs::read_to_string(format!("/proc/{shell}/task/{shell}/children")).unwrap();
    children.split_whitespace().next().unwrap().to_owned()
}

#[test]
fn sigterm_gives_the_terminal_back() {
    let work = live::scratch();
    let pane = replay(work.path(), (80, 24), recorded());
    pane.shows(&["FILE", "syscall"]);
    assert_eq!(pane.value("alternate_on"), "1");
    assert!(Command::new("kill").args(["-TERM", &dashboard(&pane)]).status().unwrap().success());
    is_restored(&pane);
}

#[test]
fn it_ends_when_its_terminal_is_gone() {
    let work = live::scratch();
    let pane = replay(work.path(), (80, 24), recorded());
    pane.shows(&["FILE", "syscall"]);
    let process = format!("/proc/{}", dashboard(&pane));
    drop(pane);
    let begun = Instant::now();
    while Path::new(&process).exists() {
        assert!(begun.elapsed() < Duration::from_mins(2), "it goes on without a terminal");
        std::thread::sleep(Duration::from_millis(50));
    }
}

#[test]
fn names_of_files_do_nothing_to_the_terminal() {
    let work = live::scratch();
    // Title, colour, clear screen, newline, right-to-left override, and a byte that is no UTF-8.
    let name = b"a\x1b]0;owned\x07\x1b[31m\x1b[2J\nb\xe2\x80\xaec\xff.dat";
    let file = work.path().join(std::ffi::OsStr::from_bytes(name));
    fs::write(&file, b"content").unwrap();
    let traced = live::trace(work.path(), &[], &[Path::new("cat"), &file]);
    assert_eq!(traced.code, Some(0), "{}", traced.stderr);
    let pane = replay(work.path(), (200, 50), &traced.dir);
    let title = pane.value("pane_title");
    let text = pane.after(&["3"], &["files (system calls)", "\\x1b]0;owned\\x07", "\\u{202e}c\\xff.dat"]);
    assert!(text.contains("\\x1b[2J\\x0ab"), "{text}");
    assert_eq!(pane.value("pane_title"), title);
    for screen in ["1", "2", "4", "7"] {
        pane.keys(&[screen]);
    }
    pane.after(&["9"], &["probes by library"]);
    assert_eq!(pane.value("pane_title"), title);
}

#[test]
fn a_dashboard_shows_a_running_process_and_its_trace_is_recorded() {
    let work = live::scratch();
    let data = work.path().join("fio.dat");
    let name = format!("--filename={}", data.display());
    let options =
        ["--name=job", &name, "--rw=randwrite", "--bs=4k", "--size=8m", "--time_based", "--runtime=600", "--thread"];
    let fio = Command::new("fio").args(options).arg("--rate_iops=500").stdout(Stdio::null()).spawn().unwrap();
    let fio = Running(fio);
    while !data.exists() {
        std::thread::sleep(std::time::Duration::from_millis(50));
    }
    let line = format!("cd {} && {TRACER} -p {}{AFTER}", work.path().display(), fio.0.id());
    let pane = Pane::new(work.path(), (120, 40), &line);
    pane.shows(&["LIVE", "syscall", "lost 0", "not recording", "fio.dat"]);
    pane.after(&["3"], &["files (system calls)", "fio.dat"]);
    pane.after(&["4"], &["call tree", "write"]);
    pane.after(&["z"], &["FROZEN"]);
    pane.after(&["z", "7"], &["following", "fio.dat"]);
    pane.after(&["1", "m"], &["layers: since the mark at", "SINCE"]);
    pane.after(&["2", "p"], &["threads since the mark at", "fio"]);
    pane.after(&["S"], &["The SQL behind this table", "GROUP BY c.process_ix, c.tid", "when this trace is recorded"]);
    pane.keys(&["Escape"]);
    pane.shows_no("The SQL behind");
    pane.after(&["R", "C-u"], &["record to directory:"]);
    pane.after(&["kept.iotrace", "Enter"], &["REC"]);
    pane.after(&["q"], &["Leave?"]);
    pane.after(&["y"], &["left 0"]);
    is_restored(&pane);
    assert!(fs::read_dir(work.path().join("kept.iotrace")).unwrap().count() > 0);
}

#[test]
fn what_is_stuck_is_shown_until_it_returns() {
    let work = live::scratch();
    let (fifo, output) = (work.path().join("slow"), work.path().join("stdout"));
    assert!(Command::new("mkfifo").arg(&fifo).status().unwrap().success());
    let mut stuck = Command::new(programs::build("stuck"));
    stuck.arg("read").arg(&fifo).stdin(Stdio::piped()).stdout(fs::File::create(&output).unwrap());
    let mut stuck = Running(stuck.spawn().unwrap());
    live::until("the program", || fs::read_to_string(&output).unwrap().contains("ready"));
    let pane = Pane::new(work.path(), (120, 40), &format!("{TRACER} -p {}{AFTER}", stuck.0.id()));
    pane.shows(&["LIVE"]);
    stuck.0.stdin.as_mut().unwrap().write_all(b"\n").unwrap();
    // The call, and where its thread is inside the kernel.
    let text = pane.after(&["6"], &["in flight at", "fread", "pipe_read"]);
    assert!(text.contains("stuck"), "{text}");
    fs::write(&fifo, [0; 100]).unwrap();
    pane.shows_no("fread");
}

/// A source of nothing, in which a screen makes the thread that shows, and another one a thread beside it, panic.
struct Panicking;

impl Source for Panicking {
    fn snapshot(&mut self, focus: &Focus) -> Arc<Snapshot> {
        match focus.screen {
            Screen::Coverage => panic!("on the thread that shows\nin two lines"),
            Screen::Devices => {
                let beside = std::thread::spawn(|| panic!("on a thread beside it\nin two lines"));
                assert!(beside.join().is_err());
            }
            _ => {}
        }
        Arc::default()
    }

    fn command(&mut self, _: iotrace_bpf::summary::view::Command, _: &Focus) -> Result<String, String> {
        Err("nothing to do".to_owned())
    }
}

#[test]
#[ignore = "needs a terminal: the test below runs it in one"]
fn the_dashboard_over_what_panics() {
    let stop = Arc::new(AtomicBool::new(false));
    let shown = tui::run(&mut Panicking, &tui::Options { filter: None, stop });
    panic!("it ended: {:#}", shown.unwrap_err());
}

#[test]
fn a_panic_is_printed_on_a_restored_terminal() {
    for (screen, output) in [("9", "on the thread that shows"), ("8", "on a thread beside it")] {
        let work = live::scratch();
        let this = std::env::current_exe().unwrap();
        // A backtrace would scroll the message out of sight.
        let line = format!(
            "RUST_BACKTRACE=0 {} --exact --ignored --nocapture screens::tui::the_dashboard_over_what_panics{AFTER}",
            this.display()
        );
        let pane = Pane::new(work.path(), (120, 40), &line);
        pane.shows(&["1 Over", "q quit"]);
        assert_eq!(pane.value("alternate_on"), "1");
        let text = pane.after(&[screen], &[output, "left 101"]);
        // Each line begins at the left.
        assert!(text.lines().any(|l| l == "in two lines"), "{text}");
        is_restored(&pane);
    }
}

#[test]
fn a_damaged_part_is_reported_on_the_dashboard() {
    let work = live::scratch();
    let dir = work.path().join("damaged");
    fs::create_dir(&dir).unwrap();
    for entry in fs::read_dir(FIXTURE).unwrap() {
        let from = entry.unwrap().path();
        let mut bytes = fs::read(&from).unwrap();
        if from.ends_with("spans-00002.parquet") {
            // The pages, not the footer.
            bytes[200..20_000].fill(0xff);
        }
        fs::write(dir.join(from.file_name().unwrap()), bytes).unwrap();
    }
    let pane = replay(work.path(), (120, 40), &dir);
    pane.shows(&["FILE", "spans-00002.parquet: not readable"]);
    pane.after(&["9"], &["probes by library", "spans-00002.parquet"]);
    assert_eq!(pane.value("alternate_on"), "1");
    pane.after(&["q"], &["left 0"]);
}

#[test]
fn the_environment_takes_colours_and_unicode_away() {
    let work = live::scratch();
    let pane = replay(work.path(), (120, 40), Path::new(FIXTURE));
    pane.shows(&["FILE", "imbalance of 2 ranks", "─ layers"]);
    assert!(pane.coloured().contains("\x1b[3"), "{:?}", pane.coloured());
    let work = live::scratch();
    let line = format!("NO_COLOR=1 LC_ALL=C {TRACER} replay {FIXTURE}{AFTER}");
    let pane = Pane::new(work.path(), (120, 40), &line);
    let text = pane.shows(&["FILE", "imbalance of 2 ranks", "- layers"]);
    assert!(text.is_ascii(), "{text}");
    let coloured = pane.coloured();
    assert!(!coloured.contains("\x1b[3") && !coloured.contains("\x1b[9"), "{coloured:?}");
}

/// A parallel program that runs for long, and its ranks.
struct Parallel(Child);

impl Parallel {
    fn start(out: &Path) -> Self {
        let mut mpirun = Command::new(programs::openmpi("mpirun"));
        mpirun.args(["--allow-run-as-root", "--oversubscribe", "-np", "2"]).arg(programs::build("demo"));
        let started = Self(mpirun.arg(out).arg("100000").stdout(Stdio::null()).spawn().unwrap());
        live::until("both ranks", || started.ranks().len() == 2 && out.join("shared.dat").exists());
        started
    }

    fn ranks(&self) -> Vec<String> {
        let pid = self.0.id();
        let children = fs::read_to_string(format!("/proc/{pid}/task/{pid}/children")).unwrap_or_default();
        children.split_whitespace().map(str::to_owned).collect()
    }

    fn send(&self, signal: &str, rank: usize) {
        assert!(Command::new("kill").args([signal, &self.ranks()[rank]]).status().unwrap().success());
    }
}

impl Drop for Parallel {
    fn drop(&mut self) {
        // It ends its ranks, also those that are stopped.
        let _ = Command::new("kill").args(["-CONT"]).args(self.ranks()).status();
        let _ = Command::new("kill").args(["-TERM", &self.0.id().to_string()]).status();
        let _ = self.0.wait();
    }
}

#[test]
fn a_dashboard_in_another_terminal_shows_a_parallel_program() {
    let work = live::scratch();
    let program = Parallel::start(&work.path().join("out"));
    let line = format!("{TRACER} -p {},{}{AFTER}", program.0.id(), program.ranks().join(","));
    // High enough for the whole call tree, whatever costs most.
    let pane = Pane::new(work.path(), (120, 90), &line);
    // Which layer costs most, which file, which rank is slowest, and whether anything is lost.
    let text = pane.shows(&["LIVE", "slowest rank", "demo.h5", "lost 0", "ring "]);
    for layer in ["hdf5", "mpiio", "mpi ", "syscall"] {
        let row = text.lines().find(|l| l.starts_with(layer)).unwrap_or_default();
        assert!(row.contains('%'), "{layer} has no share of the time:\n{text}");
    }
    pane.after(&["2"], &["time in I/O from", "most time in", "3 proc"]);
    pane.after(&["3"], &["files (system calls)", "demo.h5", "shared.dat"]);
    pane.after(&["4"], &["call tree", "H5Dwrite", "MPI_File_"]);
    pane.after(&["9"], &["probes by library", "libhdf5", "nothing was lost"]);
    // What is stuck: one rank stands still, and the other one waits for it inside a call.
    pane.after(&["6"], &["in flight at"]);
    let age = |line: &str| line.split_whitespace().next()?.strip_suffix('s')?.parse::<f64>().ok();
    let waits = || pane.text().lines().any(|l| age(l).is_some_and(|s| s > 2.0));
    // Where it stands between two calls of its own, the other one waits in a call of MPI that does no I/O: then again.
    live::until("a call that waits", || {
        program.send("-STOP", 1);
        let begun = Instant::now();
        while begun.elapsed() < Duration::from_secs(6) && !waits() {
            std::thread::sleep(Duration::from_millis(100));
        }
        let waits = waits();
        program.send("-CONT", 1);
        waits
    });
    pane.after(&["q"], &["left 0"]);
    is_restored(&pane);
}
