//! The Prolog, `TaskProlog` and Epilog of `dist/slurm`, as Slurm calls them: as root, around a job in a control group.

use crate::common::live;
use crate::common::machine::group;
use nix::sys::signal::{Signal, killpg};
use nix::unistd::Pid;
use serde_json::Value;
use std::fs;
use std::os::unix::fs::{MetadataExt as _, symlink};
use std::os::unix::net::UnixDatagram;
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::time::Duration;

const JOB: &str = "4711";
const USER: &str = "65534";

/// Runs a script with the variables that slurmd sets.
fn script(name: &str, jobs: &Path) -> Output {
    let mut command = Command::new(Path::new(env!("CARGO_MANIFEST_DIR")).join("dist/slurm").join(name));
    command.env("SLURM_JOB_ID", JOB).env("SLURM_JOB_UID", USER);
    command.env("IOTRACE_JOBS", jobs).env("IOTRACE_RUN", jobs.with_file_name("run"));
    command.env("IOTRACE_CGROUPS", jobs.with_file_name("groups"));
    command.env("IOTRACE_TRACER", env!("CARGO_BIN_EXE_iotrace-bpf"));
    command.env("NOTIFY_SOCKET", jobs.with_file_name("ready")).env_remove("SUDO_UID").env_remove("SUDO_GID");
    command.process_group(0).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let child = command.spawn().unwrap();
    let group = Pid::from_raw(child.id() as i32);
    let out = child.wait_with_output().unwrap();
    assert!(out.status.success(), "{name}: {}", String::from_utf8_lossy(&out.stderr));
    // As slurmd does with what a script leaves behind (`_kill_pg` in src/common/run_command.c); nothing may be there.
    for signal in [Signal::SIGTERM, Signal::SIGKILL] {
        let _ = killpg(group, signal);
    }
    out
}

#[test]
fn a_job_of_slurm_is_traced_from_prolog_to_epilog_and_its_user_gets_the_dataset() {
    let work = live::scratch();
    let jobs = work.path().join("jobs");
    let node = nix::unistd::gethostname().unwrap();
    let dir = jobs.join(JOB).join(&node);
    let ready = UnixDatagram::bind(work.path().join("ready")).unwrap();
    ready.set_read_timeout(Some(Duration::from_mins(1))).unwrap();
    let out = script("prolog.sh", &jobs);
    assert_eq!((out.stdout.as_slice(), out.stderr.as_slice()), (&b""[..], &b""[..]));
    assert_eq!(fs::metadata(&dir).unwrap().uid(), 0, "root writes where only root may");

    // As slurmd does after the Prolog.
    let group = group::Group::new("slurm");
    let groups = jobs.with_file_name("groups");
    fs::create_dir(&groups).unwrap();
    symlink(&group.0, groups.join(format!("job_{JOB}"))).unwrap();
    let dataset = dir.join("sums.iotrace");
    let mut message = [0; 64];
    let n = ready.recv(&mut message).unwrap();
    assert_eq!(String::from_utf8_lossy(&message[..n]).trim(), "READY=1");
    let task = script("task_prolog.sh", &jobs);
    assert_eq!(String::from_utf8_lossy(&task.stdout), format!("export IOTRACE_DATASET={}\n", jobs.join(JOB).display()));
    let wrote = work.path().join("wrote");
    let step = group.script(&format!("exec dd if=/dev/zero of={} bs=4096 count=300 status=none", wrote.display()));
    assert!(Command::new(&step[0]).args(&step[1..]).status().unwrap().success());

    script("epilog.sh", &jobs);
    let log = fs::read_to_string(dir.join("log")).unwrap();
    assert_eq!(fs::read_dir(jobs.with_file_name("run")).unwrap().count(), 0, "{log}");
    for path in [&dir, &dataset] {
        assert_eq!(fs::metadata(path).unwrap().uid().to_string(), USER, "{}", path.display());
    }
    assert_eq!(fs::metadata(jobs.join(JOB)).unwrap().uid(), 0, "a requeued job has another directory in it");
    let report = live::tracer().args(["report", "--json"]).arg(&dataset).output().unwrap();
    let report: Value = serde_json::from_slice(&report.stdout).unwrap();
    let file = report["files"].as_array().unwrap().iter().find(|file| file["path"] == wrote.to_str().unwrap());
    assert_eq!(file.unwrap_or_else(|| panic!("{report} {log}"))["layers"][0]["kinds"]["write"], 300);
}

#[test]
fn prolog_and_epilog_never_fail() {
    let work = live::scratch();
    let no_directory = work.path().join("file");
    fs::write(&no_directory, "").unwrap();
    for name in ["prolog.sh", "task_prolog.sh", "epilog.sh"] {
        script(name, &no_directory.join("jobs"));
    }
}
