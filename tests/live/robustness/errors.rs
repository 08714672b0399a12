//! Failures are reported with their cause, and never prevent the run of the command.

use crate::common::live::{self, Data};
use crate::common::machine::tmpfs::Mounted;
use crate::common::{sql, ways};
use iotrace_bpf::vocabulary::Layer;
use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;
use std::process::Command;
use std::sync::mpsc;

/// The status and the error message of a tracer with these arguments.
fn printed(args: &[&str]) -> (Option<i32>, String) {
    let out = live::tracer().args(args).output().unwrap();
    (out.status.code(), String::from_utf8_lossy(&out.stderr).into_owned())
}

/// It fails with a message that holds this, and does not panic.
fn fails(code: i32, args: &[&str], message: &str) {
    let (status, text_out) = printed(args);
    assert_eq!(status, Some(code), "{args:?}: {text_out}");
    assert!(text_out.contains(message) && !text_out.contains("panicked"), "{args:?}: {text_out}");
}

#[test]
fn wrong_usage() {
    fails(2, &[], "COMMAND");
    fails(2, &["--nonsense", "--", "true"], "--nonsense");
    fails(2, &["--layers", "bogus", "--", "true"], "no such layer");
    fails(2, &["--duration", "soon", "--", "true"], "30s");
    fails(2, &["--duration", "30", "--", "true"], "30s");
    fails(2, &["--ring-size", "7K", "--", "true"], "1M to 64G");
    fails(2, &["-p", "1", "--", "true"], "cannot be used with");
    fails(2, &["-p", "none"], "none");
    fails(2, &["--force", "--", "true"], "--output");
}

#[test]
fn processes_that_cannot_be_attached_to() {
    let mut gone = Command::new("true").spawn().unwrap();
    gone.wait().unwrap();
    let gone = gone.id().to_string();
    fails(125, &["-p", &gone], &format!("no such process: {gone}"));

    // A thread of this process.
    let (send, thread) = mpsc::channel();
    let (stop, stopped) = mpsc::channel::<()>();
    let waiting = std::thread::spawn(move || {
        send.send(nix::unistd::gettid()).unwrap();
        let _ = stopped.recv();
    });
    let tid = thread.recv().unwrap().to_string();
    let pid = std::process::id();
    fails(125, &["-p", &tid], &format!("{tid} is a thread of process {pid}; use -p {pid}"));
    drop(stop);
    waiting.join().unwrap();

    // Its own number, which only a shell that becomes the tracer can give it.
    let own = "exec \"$0\" -p $$";
    let out =
        Command::new("timeout").args(["60", "sh", "-c", own, env!("CARGO_BIN_EXE_iotrace-bpf")]).output().unwrap();
    let text_out = String::from_utf8_lossy(&out.stderr);
    assert_eq!(out.status.code(), Some(125));
    assert!(text_out.contains("is this tracer itself"), "{text_out}");
}

#[test]
fn without_root_there_is_an_error() {
    let work = live::scratch();
    // Where everybody may execute it.
    let tracer = work.path().join("tracer");
    fs::copy(env!("CARGO_BIN_EXE_iotrace-bpf"), &tracer).unwrap();
    fs::set_permissions(work.path(), std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    let mut command = Command::new("timeout");
    command.args(["60", "setpriv", "--reuid", "65534", "--regid", "65534", "--clear-groups"]).arg(&tracer);
    let out = command.args(["-o", "/tmp/never.iotrace", "--", "touch"]).arg(work.path().join("ran")).output().unwrap();
    let text_out = String::from_utf8_lossy(&out.stderr);
    assert_eq!(out.status.code(), Some(125), "{text_out}");
    for expected in
        ["missing capabilities: CAP_BPF (the kernel loads no programs), CAP_PERFMON (", "sudo", "docs/service.md"]
    {
        assert!(text_out.contains(expected), "{text_out}");
    }
    assert!(!Path::new("/tmp/never.iotrace").exists());
    assert!(!work.path().join("ran").exists());

    // And the command that would fix it.
    let mut doctor = Command::new("timeout");
    doctor.args(["60", "setpriv", "--reuid", "65534", "--regid", "65534", "--clear-groups"]).arg(&tracer);
    let out = doctor.args(["doctor", "--fix-hints"]).output().unwrap();
    let hints = String::from_utf8_lossy(&out.stdout);
    assert_eq!(out.status.code(), Some(1), "{hints}");
    let commands: Vec<&str> = hints.lines().filter(|line| !line.starts_with('#')).collect();
    let [.., setcap] = commands[..] else { panic!("no command: {hints}") };
    assert!(setcap.contains("setcap cap_bpf,cap_perfmon,") && setcap.ends_with(tracer.to_str().unwrap()), "{hints}");
}

#[test]
fn a_bad_output_directory_is_refused_before_the_command_starts() {
    let work = live::scratch();
    let ran = work.path().join("ran");
    let refused = |output: &Path, options: &[&str], message: &str| {
        let args = [options, &["-o", output.to_str().unwrap(), "--", "touch", ran.to_str().unwrap()]].concat();
        fails(125, &args, message);
        assert!(!ran.exists(), "the command ran in spite of {message}");
    };
    let full = work.path().join("full");
    fs::create_dir(&full).unwrap();
    fs::write(full.join("precious"), "data").unwrap();
    refused(&full, &[], "exists and is not empty");
    refused(&full, &["--force"], "'precious'");
    assert_eq!(fs::read_to_string(full.join("precious")).unwrap(), "data");
    refused(&work.path().join("no/parent"), &[], "parent directory does not exist");
    refused(&full.join("precious"), &[], "not a directory");
    let link = work.path().join("link");
    std::os::unix::fs::symlink(&full, &link).unwrap();
    refused(&link, &[], "symbolic link");
    refused(Path::new("/proc/nowhere"), &[], "/proc/nowhere");

    // An earlier dataset is replaced when that is asked for, and only then.
    assert_eq!(live::trace(work.path(), &[], &["true"]).code, Some(0));
    let dataset = work.path().join("run.iotrace");
    refused(&dataset, &[], "--force");
    let before = Data::read(&dataset).meta["t0_ns"].clone();
    let traced = live::trace(work.path(), &["--force"], &["true"]);
    assert_ne!(traced.data().meta["t0_ns"], before);
}

#[test]
fn a_full_disk_fails_the_trace_and_not_the_command() {
    let work = live::scratch();
    let disk = Mounted::tmpfs(work.path().join("disk"), "600k");
    let dataset = disk.0.join("run.iotrace");
    let out = work.path().join("out");
    // The first calls are in parts that are closed before the disk is full.
    let script = "echo first > \"$0\"; sleep 7; dd if=/dev/zero of=\"$0.big\" bs=1 count=400000 status=none; echo last > \"$0\"; exit 3";
    let mut tracer = live::tracer();
    tracer.arg("-o").arg(&dataset).args(["--", "sh", "-c", script]).arg(&out);
    let ended = tracer.output().unwrap();
    let text_out = String::from_utf8_lossy(&ended.stderr);
    assert_eq!(ended.status.code(), Some(125), "{text_out}");
    assert!(text_out.contains(dataset.to_str().unwrap()) && text_out.contains("No space left"), "{text_out}");
    assert!(text_out.contains("only counted in memory") && !text_out.contains("panicked"), "{text_out}");
    // The trace went on as well.
    let counted = &text_out;
    let line = counted.lines().find(|line| line.starts_with("syscall ")).unwrap_or_else(|| panic!("{counted}"));
    let calls: usize = line.split_whitespace().nth_back(1).unwrap().parse().unwrap();
    assert!(calls > 1000 && counted.contains("in no dataset"), "{counted}");
    // The command came to its end.
    assert_eq!(fs::read_to_string(&out).unwrap(), "last\n");
    assert_eq!(fs::metadata(work.path().join("out.big")).unwrap().size(), 400_000);
    // What was closed before is there.
    let data = Data::read_part(&dataset);
    assert!(data.calls("write").any(|s| data.path(s) == Some(&out) && s.bytes == Some(6)));
    // No call of dd is missing without being counted.
    let number = |text: &str, before: &str| -> usize {
        let after = text.split(before).nth(1).unwrap_or_else(|| panic!("{before}: {text}"));
        after.split_whitespace().next().unwrap().parse().unwrap()
    };
    let (unwritten, lost) = (number(&text_out, "(os error 28); "), number(counted, "  lost "));
    assert!(lost >= unwritten && unwritten > 1000, "{lost} {unwritten}");
    assert!((400_000..900_000).contains(&(data.spans.len() + lost + calls)), "{} {lost} {calls}", data.spans.len());
    sql::readable(&dataset);
}

#[test]
fn only_the_layers_asked_for_are_traced() {
    let work = live::scratch();
    let traced = |layers: &str| -> Data {
        let out = work.path().join("out");
        let command = ["sh", "-c", "md5sum \"$1\" > \"$0\"; sync \"$0\"", out.to_str().unwrap(), "/etc/passwd"];
        live::trace(work.path(), &["--force", "--layers", layers], &command).data().lossless()
    };
    let layers = |data: &Data| -> Vec<Layer> {
        let mut layers: Vec<Layer> = data.spans.iter().map(|s| s.layer).collect();
        layers.sort_unstable();
        layers.dedup();
        layers
    };
    let data = traced("syscall");
    assert_eq!((layers(&data), data.block.len()), (vec![Layer::Syscall], 0));
    let data = traced("stdio");
    assert_eq!((layers(&data), data.block.len()), (vec![Layer::Stdio], 0));
    let data = traced("stdio,syscall");
    assert_eq!((layers(&data), data.block.len()), (vec![Layer::Stdio, Layer::Syscall], 0));
    let data = traced("block");
    assert_eq!(layers(&data), []);
}

#[test]
fn calls_that_find_no_room_are_counted() {
    const COUNT: i64 = 100_000;
    // The tracer stands still meanwhile.
    const PROGRAM: &str = "
import os, signal, sys
fd, tracer = os.open(sys.argv[1], os.O_RDONLY), os.getppid()
os.kill(tracer, signal.SIGSTOP)
for _ in range(int(sys.argv[2])): os.pread(fd, 1, 0)
os.kill(tracer, signal.SIGCONT)
";
    let work = live::scratch();
    let from = work.path().join("from");
    fs::write(&from, "x").unwrap();
    // Not whatever is called so: some are scripts that start forty processes, more than such rings have room for.
    let python = ways::python();
    let command = [python.to_str().unwrap(), "-c", PROGRAM, from.to_str().unwrap(), &COUNT.to_string()];
    let traced = live::trace(work.path(), &["--ring-size", "1M", "--layers", "syscall"], &command);
    let data = traced.data();
    let recorded = data.calls("pread64").filter(|s| data.path(s) == Some(&from)).count() as i64;
    let lost: i64 = data.losses.iter().map(|l| l.count).sum();
    assert!(data.losses.iter().all(|l| (l.layer, l.place) == (Some(Layer::Syscall), "ring")), "{:?}", data.losses);
    assert_eq!(recorded + lost, COUNT, "{recorded} recorded, {lost} lost");
    assert!(lost > 0, "nothing was lost");
    assert!(traced.report.contains("lost"), "{}", traced.report);
}

#[test]
fn doctor_reports_that_this_kernel_is_ready() {
    let out = live::tracer().arg("doctor").output().unwrap();
    let text_out = String::from_utf8_lossy(&out.stdout);
    assert_eq!(out.status.code(), Some(0), "{text_out}");
    assert!(text_out.ends_with("ready to trace\n"), "{text_out}");
    for kind in ["tp_btf", "uprobe"] {
        assert!(text_out.lines().any(|line| line.contains(kind) && line.contains("ok")), "{text_out}");
    }
}
