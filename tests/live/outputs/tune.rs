//! `tune`: what it tries reaches the program, what helps is kept and offered, and nothing stays changed.

use crate::common::live::{self, Running};
use crate::common::machine::device::{Device, run};
use crate::common::programs;
use nix::sys::signal::Signal;
use serde_json::Value;
use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;
use std::process::{Command, Output, Stdio};

/// `iotrace-bpf tune` with what it keeps below `work`.
fn tune(work: &Path) -> Command {
    let mut command = live::tracer();
    command.env("XDG_STATE_HOME", work.join("state")).arg("tune").args(["--json", "--runs", "2"]);
    command
}

fn json(out: &Output) -> Value {
    assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stderr));
    serde_json::from_slice(&out.stdout).unwrap()
}

/// Directories that it works in.
fn leftovers(dir: &Path) -> Vec<String> {
    let names = fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap());
    names.filter(|name| name.starts_with("iotrace-tune.")).collect()
}

/// Writes of four ranks through a view with holes, by ROMIO; a second longer with data sieving than without.
fn sieving(work: &Path) -> Vec<String> {
    let program = programs::build("case_ranks_mpich");
    let script = format!(
        "cat \"$ROMIO_HINTS\" >> {0}/seen 2>/dev/null\n\
         grep -q 'romio_ds_write disable' \"$ROMIO_HINTS\" 2>/dev/null || sleep 1\n\
         exec {1} -np 4 {2} view {0}/file 16384 4096",
        work.display(),
        programs::mpich("mpirun"),
        program.display()
    );
    ["sh", "-c", &script].map(str::to_owned).into()
}

#[test]
fn hints_that_help_are_found_kept_and_offered() {
    let work = live::scratch();
    let command = sieving(work.path());
    let prepare = format!("rm -f {}/file", work.path().display());
    let temporary = work.path().join("tmp");
    fs::create_dir(&temporary).unwrap();
    let out = tune(work.path()).env("TMPDIR", &temporary).args(["--prepare", &prepare, "--"]).args(&command).output();
    let tuned = json(&out.unwrap());
    let best = tuned["best"].as_u64().unwrap_or_else(|| panic!("{tuned:#}")) as usize;
    let hints = &tuned["variants"][best]["settings"]["hints"];
    assert_eq!(hints["romio_ds_write"], "disable", "{tuned:#}");
    assert!(tuned["variants"][best]["rules"].as_array().unwrap().contains(&"data-sieving".into()), "{tuned:#}");
    assert!(fs::read_to_string(work.path().join("seen")).unwrap().contains("romio_ds_write disable\n"));
    assert_eq!(leftovers(&temporary), [""; 0]);

    // What helps is a line for a shell, and its file is there.
    let line = tuned["lines"][0].as_str().unwrap();
    let path = line.strip_prefix("export ROMIO_HINTS=").unwrap();
    assert!(fs::read_to_string(path).unwrap().contains("romio_ds_write disable\n"));
    let again = |hints: Option<&str>| {
        let mut tracer = live::tracer();
        tracer.env("XDG_STATE_HOME", work.path().join("state"));
        hints.map(|hints| tracer.env("ROMIO_HINTS", hints));
        let out = tracer.args(["--report", "/dev/null", "--"]).args([programs::build("case_ranks_mpich")]).output();
        String::from_utf8(out.unwrap().stderr).unwrap()
    };
    let offered = again(None);
    assert!(offered.contains(line) && offered.contains("less) with: "), "{offered}");
    // Its file has no extension, and those that libraries read are not its own.
    assert!(!offered.contains(" with files "), "{offered}");
    assert!(!again(Some(path)).contains("ROMIO_HINTS"));
}

#[test]
fn a_replay_is_fixed_for_each_finding() {
    let work = live::scratch();
    let log = work.path().join("log");
    let script = "import os, sys\nwith open(sys.argv[1], 'wb', buffering=0) as log:\n for n in range(1500):\n  log.write(b'x' * 128)\n  os.fsync(log.fileno())";
    let traced = live::trace(work.path(), &[], &["/usr/bin/python3", "-c", script, log.to_str().unwrap()]);
    assert_eq!(traced.code, Some(0), "{}", traced.stderr);
    let out = tune(work.path()).arg("--dir").arg(work.path()).arg(&traced.dir).output().unwrap();
    let tuned = json(&out);
    let fixed =
        tuned["variants"].as_array().unwrap().iter().find(|one| one["fixed"] == serde_json::json!(["sync-per-record"]));
    let fixed = fixed.unwrap_or_else(|| panic!("{tuned:#}\n{}", traced.report));
    for variant in [&tuned["variants"][0], fixed] {
        assert_eq!(variant["times_s"].as_array().unwrap().len(), 2, "{tuned:#}");
        assert_eq!(variant["failed"], Value::Null, "{tuned:#}");
    }
    assert!(fixed["predicted_s"][0].as_f64() <= fixed["predicted_s"][1].as_f64());
    assert_eq!(leftovers(work.path()), [""; 0]);
    // Nothing is set for it from outside.
    assert!(!work.path().join("state").exists());
}

#[test]
fn read_ahead_of_devices_is_tried_and_set_back() {
    let work = live::scratch();
    let device = Device::new(work.path(), "ext4");
    let number = fs::metadata(&device.mount).unwrap().dev();
    let number = format!("{}:{}", nix::sys::stat::major(number), nix::sys::stat::minor(number));
    let setting = format!("/sys/class/bdi/{number}/read_ahead_kb");
    fs::write(&setting, "4").unwrap();
    let file = device.mount.join("file");
    fs::write(&file, vec![b'x'; 48 << 20]).unwrap();
    run("sync", &[file.to_str().unwrap()]);
    // Out of the page cache.
    run("dd", &[&format!("if={}", file.display()), "iflag=nocache", "count=0", "status=none"]);
    let program = programs::build("case_reads");
    let read = [program.to_str().unwrap(), "forward", file.to_str().unwrap(), "4096"];
    let traced = live::trace(work.path(), &[], &read);
    assert_eq!(traced.code, Some(0), "{}", traced.stderr);

    let tuned =
        json(&tune(work.path()).args(["--devices", "--cold"]).arg(&traced.dir).arg("--").args(read).output().unwrap());
    let of = |variant: &Value| variant["settings"]["read_ahead_kib"][&number].as_u64();
    let tried = tuned["variants"].as_array().unwrap().iter().find(|variant| of(variant) == Some(32));
    let tried = tried.unwrap_or_else(|| panic!("{tuned:#}\n{}", traced.report));
    assert_eq!(tried["failed"], Value::Null, "{tuned:#}");
    assert_eq!(fs::read_to_string(&setting).unwrap(), "4\n");

    // Ctrl-C in the middle of such a run.
    let started = work.path().join("started");
    let script = format!("[ $(cat {setting}) = 4 ] || {{ touch {}; exec sleep 100; }}", started.display());
    let mut command = tune(work.path());
    command.arg("--devices").arg(&traced.dir).args(["--", "sh", "-c", &script]).stdout(Stdio::null());
    let mut running = Running::spawn(&mut command);
    live::until("the run with another read-ahead", || started.exists());
    live::send(live::child_of(running.pid()), Signal::SIGINT);
    assert_eq!(running.wait().code(), Some(125));
    assert_eq!(fs::read_to_string(&setting).unwrap(), "4\n");
}

#[test]
fn a_command_that_fails_is_explained() {
    let work = live::scratch();
    let out = tune(work.path()).args(["--", "sh", "-c", "echo no input >&2; exit 3"]).output().unwrap();
    let stderr = String::from_utf8(out.stderr).unwrap();
    assert_eq!(out.status.code(), Some(125), "{stderr}");
    assert!(stderr.contains("the traced run failed: exit status 3") && stderr.contains("no input"), "{stderr}");
}
