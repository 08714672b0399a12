//! The flight recorder: what the last seconds held, written when something asks for it, and nothing else.

use crate::common::live::{self, Data, Running, datasets};
use crate::common::{programs, sql};
use iotrace_bpf::rows::Span;
use iotrace_bpf::vocabulary::flag;
use nix::sys::signal::Signal;
use std::collections::BTreeMap;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// `marks`, traced by the flight recorder.
struct Flight {
    running: Running,
    tracer: u32,
    /// Where the program is at work.
    dir: PathBuf,
    /// The datasets, the output of the tracer, the output of the program.
    all: PathBuf,
    output: PathBuf,
    truth: PathBuf,
}

impl Flight {
    fn start(work: &Path, options: &[&str]) -> Self {
        let (dir, all) = (work.join("dir"), work.join("all"));
        let (output, truth) = (work.join("stderr"), work.join("stdout"));
        fs::create_dir_all(&dir).unwrap();
        let mut tracer = live::tracer();
        let layers = if options.contains(&"--layers") { &[][..] } else { &["--layers", "syscall,block"] };
        tracer.args(layers).args(options).arg("-o").arg(&all).arg("--");
        tracer.arg(programs::build("marks")).arg(&dir).stdout(File::create(&truth).unwrap());
        let running = Running::spawn(tracer.stderr(File::create(&output).unwrap()));
        let tracer = live::child_of(running.pid());
        Self { running, tracer, dir, all, output, truth }
    }

    fn output(&self) -> String {
        fs::read_to_string(&self.output).unwrap()
    }

    /// What the program did: each mark, when it began and when it ended.
    fn marks(&self) -> Vec<[i64; 3]> {
        let text = fs::read_to_string(&self.truth).unwrap();
        let whole = text.split_inclusive('\n').filter(|line| line.ends_with('\n'));
        let number = |word: &str| word.parse().unwrap();
        whole.map(|line| line.split_whitespace().map(number).collect::<Vec<_>>().try_into().unwrap()).collect()
    }

    fn until_marks(&self, n: usize) {
        live::until("marks", || self.marks().len() >= n);
    }

    fn send(&self, what: &str) {
        File::create(self.dir.join(what)).unwrap();
    }

    /// Waits until the tracer reports that it has written the n-th dataset, which it is.
    fn written(&self, n: usize) -> PathBuf {
        live::until("a dataset", || self.output().matches(" calls of the last ").count() >= n);
        let all = datasets(&self.all);
        assert_eq!(all.len(), n, "{}", self.output());
        all.into_iter().last().unwrap()
    }

    /// The program ends; the exit status of the tracer, and its output.
    fn end(mut self) -> (Option<i32>, String) {
        self.send("end");
        let code = self.running.wait().code();
        (code, self.output())
    }

    /// Reads a dataset and compares it with what the program reports that it did, in the time of the dataset.
    /// Marks at the very edge are in it in part.
    fn check(&self, dataset: &Path) -> Data {
        let data = Data::read(dataset).lossless();
        data.resolves();
        sql::compare(dataset);
        for span in &data.spans {
            let there = |id: i64| data.spans.iter().any(|s| s.span_id == id);
            assert!(span.parent_id.is_none_or(there) && there(span.root_id), "{span:?}");
        }
        let [from, until] = edges(&data);
        let mut writes: BTreeMap<PathBuf, Vec<&Span>> = BTreeMap::new();
        for write in data.calls("write") {
            writes.entry(data.path(write).unwrap_or(Path::new("")).to_owned()).or_default().push(write);
        }
        let (mut whole, mut absent) = (0, 0);
        for [n, began, ended] in self.marks() {
            let path = self.dir.join(format!("mark-{n}"));
            let seen = writes.get(&path).map_or(0, Vec::len) as i64;
            if began >= from && ended <= until {
                whole += 1;
                assert_eq!(seen, 50 + n, "mark {n}");
                assert!(writes[&path].iter().all(|w| w.bytes == Some(100 + n) && w.flags & flag::UNFINISHED == 0));
            } else if ended < from - DELAY {
                absent += 1;
                assert_eq!(seen, 0, "mark {n}");
            } else {
                assert!(seen <= 50 + n);
            }
        }
        assert!(whole >= 6 && absent >= 4, "{whole} marks are there, {absent} are not");
        // What is looked at it with.
        for action in [vec!["report"], vec!["replay", "--batch", "-n", "1"]] {
            let mut looked = Command::new(env!("CARGO_BIN_EXE_iotrace-bpf"));
            let out = looked.args(action).arg(dataset).output().unwrap();
            assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stderr));
        }
        data
    }
}

/// A row comes up to this long after the call has returned.
const DELAY: i64 = 1_500_000_000;

/// The time of which a dataset has all calls, on the clock of the program.
fn edges(data: &Data) -> [i64; 2] {
    let number = |key: &str| data.meta[key].parse::<i64>().unwrap();
    let at = |key: &str| number("t0_ns") + number(key);
    [at("flight_from_ns"), at("trigger_ns").max(at("end_ns") - DELAY)]
}

fn report(dataset: &Path) -> String {
    let out = Command::new(env!("CARGO_BIN_EXE_iotrace-bpf")).arg("report").arg(dataset).output().unwrap();
    String::from_utf8(out.stdout).unwrap()
}

/// Holds the lock that the program waits for, from before its request to wait until this is dropped.
fn hold_lock(flight: &Flight) -> nix::fcntl::Flock<File> {
    let file = File::create(flight.dir.join("lock")).unwrap();
    let lock = nix::fcntl::Flock::lock(file, nix::fcntl::FlockArg::LockExclusive).unwrap();
    flight.send("wait");
    let tracer = flight.tracer;
    let children = fs::read_to_string(format!("/proc/{tracer}/task/{tracer}/children")).unwrap();
    let is_program = |pid: &&str| fs::read_to_string(format!("/proc/{pid}/comm")).is_ok_and(|c| c.starts_with("marks"));
    let inside = format!("/proc/{}/stack", children.split_whitespace().find(is_program).unwrap());
    live::until("the lock", || fs::read_to_string(&inside).unwrap().contains("flock"));
    lock
}

#[test]
fn a_signal_and_a_slow_call_write_what_came_before() {
    let work = live::scratch();
    let flight = Flight::start(work.path(), &["--flight", "6s", "--trigger", "slow=syscall:400ms"]);
    flight.until_marks(50);
    assert_eq!(datasets(&flight.all), <[PathBuf; 0]>::default(), "nothing is written while nothing asks");
    live::send(flight.tracer, Signal::SIGUSR2);
    let first = flight.written(1);
    let data = flight.check(&first);
    assert_eq!((data.meta["trigger"].as_str(), data.meta["flight_ns"].as_str()), ("SIGUSR2", "6000000000"));
    assert!(report(&first).contains("\nwritten   SIGUSR2\nkept      all of the last "), "{}", report(&first));

    let lock = hold_lock(&flight);
    // As long as the trigger asks for, by the clock of the program: it has been in the call since before.
    std::thread::sleep(std::time::Duration::from_millis(450));
    drop(lock);
    let second = flight.written(2);
    let data = flight.check(&second);
    let slow: Vec<&Span> = data.calls("flock").collect();
    let [slow] = slow.as_slice() else { panic!("{slow:?}") };
    assert_eq!(data.path(slow), Some(flight.dir.join("lock").as_path()));
    assert!(slow.dur_ns >= 400_000_000 && slow.flags & flag::UNFINISHED == 0, "{slow:?}");
    assert_eq!(data.meta["trigger_span_id"], slow.span_id.to_string());
    let why = format!("slow: syscall flock took {} (pid {}), ", iotrace_bpf::base::text::time(slow.dur_ns), slow.pid);
    assert!(
        data.meta["trigger"].starts_with(&why) && data.meta["trigger"].ends_with("/lock"),
        "{:?}",
        data.meta["trigger"]
    );

    // Ids of a run mean the same in all of its datasets.
    let both = [&first, &second].map(|d| Data::read(d));
    assert_eq!(both[0].meta["run_t0_ns"], both[1].meta["run_t0_ns"]);
    let (all, names) = (flight.all.clone(), [&first, &second].map(|d| d.display().to_string()));
    let (code, output) = flight.end();
    assert_eq!(code, Some(0), "{output}");
    assert_eq!(datasets(&all).len(), 2, "nothing asked for another one: {output}");
    for (name, why) in names.iter().zip(["SIGUSR2: ", "slow: syscall flock took "]) {
        assert!(output.lines().any(|l| l.starts_with(&format!("iotrace-bpf: {why}")) && l.ends_with(name)), "{output}");
    }
}

#[test]
fn what_is_stuck_is_written_while_it_is() {
    let work = live::scratch();
    // A request of a busy disk may be stuck as well.
    let flight = Flight::start(work.path(), &["--layers", "syscall", "--flight", "3s", "--trigger", "stuck=1s"]);
    flight.until_marks(30);
    let lock = hold_lock(&flight);
    let dataset = flight.written(1);
    let data = Data::read(&dataset).lossless();
    data.resolves();
    sql::compare(&dataset);
    drop(lock);
    let open: Vec<&Span> = data.spans.iter().filter(|s| s.flags & flag::UNFINISHED != 0).collect();
    let [stuck] = open.as_slice() else { panic!("{open:?}") };
    assert_eq!((stuck.op, stuck.ret, stuck.parent_id, stuck.root_id), ("flock", None, None, stuck.span_id));
    assert_eq!(data.path(stuck), Some(flight.dir.join("lock").as_path()));
    assert!(stuck.dur_ns >= 1_000_000_000);
    assert_eq!(data.meta["trigger_span_id"], stuck.span_id.to_string());
    let why = &data.meta["trigger"];
    assert!(why.starts_with("stuck: syscall flock has not returned for ") && why.ends_with("/lock)"), "{why}");
    let dump = &data.meta["in_flight"];
    assert!(dump.contains(&format!("pid {}", stuck.pid)) && dump.contains("flock"), "{dump}");
    let (code, output) = flight.end();
    assert_eq!((code, output.matches(" calls of the last ").count()), (Some(0), 1), "{output}");
}

/// A file system with little room, as long as this lives.
struct Small(PathBuf);

impl Small {
    fn new(path: PathBuf) -> Self {
        fs::create_dir_all(&path).unwrap();
        let mounted =
            Command::new("mount").args(["-t", "tmpfs", "-o", "size=2m", "small"]).arg(&path).status().unwrap();
        assert!(mounted.success());
        Self(path)
    }
}

impl Drop for Small {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg("-l").arg(&self.0).status();
    }
}

#[test]
fn a_full_disk_costs_a_dataset_and_not_the_trace() {
    let work = live::scratch();
    let _full = Small::new(work.path().join("dir/full"));
    let small = Small::new(work.path().join("all"));
    let flight = Flight::start(work.path(), &["--flight", "6s", "--trigger", "error"]);
    flight.until_marks(4);
    // No room at all.
    let filler = small.0.join("hog");
    let mut dd = Command::new("dd");
    dd.args(["if=/dev/zero", "bs=4k", "status=none"]).arg(format!("of={}", filler.display())).stderr(Stdio::null());
    assert!(!dd.status().unwrap().success());
    live::send(flight.tracer, Signal::SIGUSR2);
    live::until("a failure", || flight.output().contains("warning: no dataset could be written"));
    assert!(flight.output().contains("No space left on device"), "{}", flight.output());
    assert_eq!(datasets(&small.0), std::slice::from_ref(&filler), "what was begun is removed");
    fs::remove_file(&filler).unwrap();

    // The next one is written, by a call that fails for the same reason.
    flight.send("fail");
    let dataset = flight.written(1);
    let data = Data::read(&dataset).lossless();
    data.resolves();
    let failed: Vec<&Span> = data.calls("write").filter(|s| s.errno != 0).collect();
    let [failed] = failed.as_slice() else { panic!("{failed:?}") };
    assert_eq!((failed.errno, data.path(failed)), (28, Some(work.path().join("dir/full/file").as_path())));
    assert_eq!(data.meta["trigger_span_id"], failed.span_id.to_string());
    assert!(data.meta["trigger"].contains("error: syscall write failed: ENOSPC"), "{}", data.meta["trigger"]);
    let [from, until] = edges(&data);
    let within: Vec<[i64; 3]> = flight.marks().into_iter().filter(|[_, b, e]| *b >= from && *e <= until).collect();
    assert!(within.len() >= 6);
    for [n, ..] in within {
        let path = flight.dir.join(format!("mark-{n}"));
        assert_eq!(data.calls("write").filter(|s| data.path(s) == Some(&path)).count() as i64, 50 + n, "mark {n}");
    }
    let (code, output) = flight.end();
    // The command went well; that a dataset is missing is reported all the same.
    assert_eq!(code, Some(125), "{output}");
    assert!(output.contains("1 of 2 datasets could not be written"), "{output}");
}

#[test]
fn a_crash_at_the_end_is_written_and_a_good_end_is_not() {
    let work = live::scratch();
    let trace = |name: &str, script: &str| {
        let all = work.path().join(name);
        let mut tracer = live::tracer();
        tracer.args(["--flight", "30s", "--trigger", "crash", "-o"]).arg(&all);
        let out = tracer.args(["--", "sh", "-c", script]).arg(work.path()).output().unwrap();
        (out.status.code(), String::from_utf8_lossy(&out.stderr).into_owned(), datasets(&all))
    };
    let (code, output, all) = trace("good", "echo x > \"$0/file\"");
    assert_eq!((code, all.len()), (Some(0), 0), "{output}");
    assert!(output.contains("no dataset was written: nothing asked for one"), "{output}");

    let (code, output, all) = trace("bad", "echo x > \"$0/file\"; kill -SEGV $$");
    assert_eq!((code, all.len()), (Some(128 + 11), 1), "{output}");
    let data = Data::read(&all[0]).lossless();
    data.resolves();
    sql::compare(&all[0]);
    let crashed = data.processes.values().find(|p| p.exit_code == Some(128 + 11)).unwrap();
    assert!(data.meta["trigger"].starts_with("crash: SIGSEGV ended "), "{}", data.meta["trigger"]);
    assert!(data.meta["trigger"].ends_with(&format!("(pid {})", crashed.pid)), "{}", data.meta["trigger"]);
    let file = work.path().join("file");
    let wrote: Vec<_> = data.calls("write").filter(|s| data.path(s) == Some(&file)).map(|s| s.bytes).collect();
    assert_eq!(wrote, [Some(2)]);
    assert!(data.spans.iter().all(|s| s.pid == crashed.pid));
}
