//! The Prolog, `TaskProlog` and Epilog of `dist/slurm`, as Slurm calls them: as root, around a job in a control group.

use crate::common::group;
use crate::common::live;
use serde_json::Value;
use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::os::unix::net::UnixDatagram;
use std::path::Path;
use std::process::{Command, Output};
use std::time::Duration;

const JOB: &str = "4711";
const USER: &str = "65534";

/// Runs a script with the variables that slurmd sets.
fn script(name: &str, jobs: &Path) -> Output {
    let mut command = Command::new(Path::new(env!("CARGO_MANIFEST_DIR")).join("dist/slurm").join(name));
    command.env("SLURM_JOB_ID", JOB).env("SLURM_JOB_UID", USER);
    command.env("IOTRACE_JOBS", jobs).env("IOTRACE_CGROUPS", jobs.join("groups"));
    command.env("IOTRACE_TRACER", env!("CARGO_BIN_EXE_iotrace-bpf"));
    command.env("NOTIFY_SOCKET", jobs.with_file_name("ready")).env_remove("SUDO_UID").env_remove("SUDO_GID");
    let out = command.output().unwrap();
    assert!(out.status.success(), "{name}: {}", String::from_utf8_lossy(&out.stderr));
    out
}

#[test]
fn a_job_of_slurm_is_traced_from_prolog_to_epilog_and_its_user_gets_the_dataset() {
    let work = live::scratch();
    let jobs = work.path().join("jobs");
    let dir = jobs.join(JOB);
    let ready = UnixDatagram::bind(work.path().join("ready")).unwrap();
    ready.set_read_timeout(Some(Duration::from_mins(1))).unwrap();
    let (out, node) = (script("prolog.sh", &jobs), nix::unistd::gethostname().unwrap());
    assert_eq!((out.stdout.as_slice(), out.stderr.as_slice()), (&b""[..], &b""[..]));
    assert_eq!(fs::metadata(&dir).unwrap().uid(), 0, "root writes where only root may");

    // As slurmd does after the Prolog.
    let group = group::Group::new("slurm");
    fs::create_dir(jobs.join("groups")).unwrap();
    std::os::unix::fs::symlink(&group.0, jobs.join("groups").join(format!("job_{JOB}"))).unwrap();
    let dataset = dir.join(&node);
    let mut message = [0; 64];
    let n = ready.recv(&mut message).unwrap();
    assert_eq!(String::from_utf8_lossy(&message[..n]).trim(), "READY=1");
    let task = script("task_prolog.sh", &jobs);
    assert_eq!(String::from_utf8_lossy(&task.stdout), format!("export IOTRACE_DATASET={}\n", dir.display()));
    let wrote = work.path().join("wrote");
    let step = group.script(&format!("exec dd if=/dev/zero of={} bs=4096 count=300 status=none", wrote.display()));
    assert!(Command::new(&step[0]).args(&step[1..]).status().unwrap().success());

    script("epilog.sh", &jobs);
    let log = fs::read_to_string(dir.join(format!("log.{}", node.to_string_lossy()))).unwrap();
    assert!(!dir.join(format!("pid.{}", node.to_string_lossy())).exists(), "{log}");
    for path in [&dir, &dataset] {
        assert_eq!(fs::metadata(path).unwrap().uid().to_string(), USER, "{}", path.display());
    }
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
