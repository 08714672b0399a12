//! What happens to the directory of a dataset while it is written: it is full, a quota is used up, it is removed, it gets
//! another name. The command goes on in any case.

use crate::common::live::{self, Data, Running};
use crate::common::machine::device::{Device, run};
use crate::common::machine::tmpfs::Mounted;
use crate::common::sql;
use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::Stdio;

/// Writes to a file, waits until it may go on, and writes to another one.
const COMMAND: &str =
    "echo first > \"$0/first\"; while [ ! -e \"$0/go\" ]; do sleep 0.05; done; echo last > \"$0/last\"; exit 3";

/// A trace in the background, of which something is done to its dataset meanwhile.
struct Trace {
    work: PathBuf,
    guard: Running,
}

/// How it ended, and its output.
struct Ended {
    code: Option<i32>,
    output: String,
}

impl Trace {
    /// The command has written to its first file.
    fn of(work: &Path, dataset: &Path, options: &[&str]) -> Self {
        Self::running(work, dataset, options, COMMAND)
    }

    fn running(work: &Path, dataset: &Path, options: &[&str], command: &str) -> Self {
        for name in ["first", "go", "last"] {
            let _ = fs::remove_file(work.join(name));
        }
        let mut tracer = live::tracer();
        tracer.args(options).arg("-o").arg(dataset).args(["--", "sh", "-c", command]).arg(work);
        tracer.stdout(Stdio::null()).stderr(fs::File::create(work.join("stderr")).unwrap());
        let guard = Running::spawn(&mut tracer);
        live::until("the command", || work.join("first").exists());
        Self { work: work.to_owned(), guard }
    }

    /// The command goes on, to its end.
    fn ends(mut self) -> Ended {
        fs::write(self.work.join("go"), "").unwrap();
        let code = self.guard.wait().code();
        assert_eq!(fs::read_to_string(self.work.join("last")).unwrap(), "last\n", "the command went on");
        let output = fs::read_to_string(self.work.join("stderr")).unwrap();
        assert!(!output.contains("panicked"), "{output}");
        Ended { code, output }
    }
}

impl Ended {
    /// It failed, for these reasons.
    fn fails(&self, reasons: &[&str]) {
        assert_eq!(self.code, Some(125), "{}", self.output);
        for reason in reasons {
            assert!(self.output.contains(reason), "{reason}: {}", self.output);
        }
    }
}

/// Writes as much as there is room for.
fn fill(path: &Path) {
    let mut ballast = fs::File::create(path).unwrap();
    // The last bytes one by one.
    for size in [1 << 16, 1 << 10, 1] {
        while ballast.write_all(&vec![7; size]).is_ok() {}
    }
}

#[test]
fn a_disk_that_is_full_when_the_last_parts_are_written_costs_these() {
    let work = live::scratch();
    for options in [&[][..], &["--aggregate"]] {
        let disk = Mounted::tmpfs(work.path().join("disk"), "4m");
        let dataset = disk.0.join("run.iotrace");
        let trace = Trace::of(work.path(), &dataset, options);
        fill(&disk.0.join("ballast"));
        trace.ends().fails(&[dataset.to_str().unwrap(), "no space left", "closed parts", "readable"]);
        // What was closed before, which is little.
        Data::read_part(&dataset);
        sql::readable(&dataset);
        drop(disk);
        fs::remove_dir(work.path().join("disk")).unwrap();
    }
}

#[test]
fn datasets_before_the_disk_was_full_are_complete() {
    let work = live::scratch();
    let disk = Mounted::tmpfs(work.path().join("disk"), "4m");
    let all = disk.0.join("all");
    let trace = Trace::of(work.path(), &all, &["--rotate-time", "1s", "--layers", "syscall"]);
    live::until("the second dataset", || all.exists() && live::datasets(&all).len() > 1);
    let first = live::datasets(&all)[0].clone();
    live::until("the first one's end", || Data::read_part(&first).meta.contains_key("end_ns"));
    fill(&disk.0.join("ballast"));
    trace.ends().fails(&[all.to_str().unwrap(), "no space left"]);
    let data = Data::read(&first).lossless();
    data.resolves();
    assert!(data.calls("write").any(|s| data.path(s) == Some(&work.path().join("first"))));
    let report = live::tracer().arg("report").arg(&all).output().unwrap();
    assert!(report.status.success(), "{}", String::from_utf8_lossy(&report.stderr));
}

#[test]
fn a_quota_that_is_used_up_fails_the_trace_and_not_the_command() {
    let work = live::scratch();
    let device = Device::new(work.path(), "btrfs");
    let own = device.mount.join("own");
    let path = own.to_str().unwrap();
    run("btrfs", &["-q", "subvolume", "create", path]);
    run("btrfs", &["quota", "enable", path]);
    run("btrfs", &["qgroup", "limit", "1500k", path]);
    let dataset = own.join("run.iotrace");
    // It makes more calls than there is room for, in parts that are closed from time to time.
    let many = "echo first > \"$0/first\"; while [ ! -e \"$0/go\" ]; do sleep 0.05; done
        dd if=/dev/zero of=\"$0/big\" bs=1 count=400000 status=none; echo last > \"$0/last\"; exit 3";
    let trace = Trace::running(work.path(), &dataset, &["--layers", "syscall"], many);
    live::until("a closed part", || dataset.join("spans-00002.parquet").exists());
    trace.ends().fails(&[
        dataset.to_str().unwrap(),
        "the quota is used up",
        "uota exceeded",
        "closed parts",
        "only counted in memory",
    ]);
    let data = Data::read_part(&dataset);
    assert!(data.calls("write").any(|s| data.path(s) == Some(&work.path().join("first"))));
    sql::readable(&dataset);
}

#[test]
fn a_directory_that_is_removed_costs_the_dataset_and_nothing_else() {
    let work = live::scratch();
    let place = work.path().join("place");
    for options in [&[][..], &["--rotate-time", "1s"]] {
        fs::create_dir(&place).unwrap();
        let dataset = place.join("run.iotrace");
        let trace = Trace::of(work.path(), &dataset, options);
        // It may be about to make a file in it.
        live::until("nothing left", || {
            let _ = fs::remove_dir_all(&dataset);
            !dataset.exists()
        });
        trace.ends().fails(&[dataset.to_str().unwrap(), "was removed during the trace"]);
        assert!(live::datasets(&place).is_empty(), "nothing is written elsewhere");
        fs::remove_dir(&place).unwrap();
    }
}

#[test]
fn a_directory_that_gets_another_name_is_written_to_its_end() {
    let work = live::scratch();
    let (given, moved) = (work.path().join("run.iotrace"), work.path().join("moved"));
    for (options, something_else) in [(&[][..], false), (&[], true), (&["--rotate-time", "1s"], true)] {
        let trace = Trace::of(work.path(), &given, options);
        fs::rename(&given, &moved).unwrap();
        if something_else {
            fs::create_dir(&given).unwrap();
        }
        let ended = trace.ends();
        assert_eq!(ended.code, Some(3), "{}", ended.output);
        assert!(ended.output.contains(&format!(" in {}\n", moved.display())), "{}", ended.output);
        let datasets = if options.is_empty() { vec![moved.clone()] } else { live::datasets(&moved) };
        let all: Vec<Data> = datasets.iter().map(|dir| Data::read(dir).lossless()).collect();
        for name in ["first", "last"] {
            let file = work.path().join(name);
            let writes = |data: &Data| data.calls("write").filter(|s| data.path(s) == Some(&file)).count();
            assert_eq!(all.iter().map(writes).sum::<usize>(), 1, "{name}");
        }
        assert!(!given.exists() || live::datasets(&given).is_empty(), "nothing is written elsewhere");
        let _ = fs::remove_dir(&given);
        fs::remove_dir_all(&moved).unwrap();
    }
}

#[test]
fn a_report_that_cannot_be_written_does_not_leave_the_command_alone() {
    let work = live::scratch();
    let options = ["--duration", "1s", "--report", "/dev/full"];
    let trace = Trace::of(work.path(), &work.path().join("run.iotrace"), &options);
    let stderr = work.path().join("stderr");
    live::until("the failure", || fs::read_to_string(&stderr).unwrap().contains("the command goes on untraced"));
    trace.ends().fails(&["the end of the trace has failed", "No space left on device"]);
}
