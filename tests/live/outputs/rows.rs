//! Tables that describe entities have one row for each id when a trace has ended, or was killed and repaired: a plain
//! join counts right, by the sizes of the files that were written.

use crate::common::live::{self, Running};
use crate::common::sql;
use iotrace_bpf::export::Dataset;
use iotrace_bpf::rows::{File, Process};
use nix::sys::signal::Signal;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

/// Writes 20 files, each by a process of its own, and gives each another name: both are described again.
const SCRIPT: &str = "cd \"$1\" && for i in 11 12 13 14 15 16 17 18 19 20; do
    dd if=/dev/zero of=first$i bs=${i}00 count=$i 2>/dev/null && mv first$i second$i && cat second$i >/dev/null
done; : >done; exec sleep \"$2\"";

fn written(work: &Path) -> Vec<PathBuf> {
    (11..=20).map(|i| work.join(format!("second{i}"))).collect()
}

/// Plain joins find the files, and the same as the views.
fn plain(dataset: &Path, files: &[PathBuf]) {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/common/readers/plain.py");
    let out = Command::new(sql::python()).arg(script).arg(dataset).args(files).output().unwrap();
    let (output, erred) = (String::from_utf8_lossy(&out.stdout), String::from_utf8_lossy(&out.stderr));
    assert!(out.status.success(), "{}: {output}{erred}", dataset.display());
}

#[test]
fn of_a_trace_that_ended_in_order() {
    let work = live::scratch();
    let path = work.path().to_str().unwrap();
    let traced = live::trace(work.path(), &[], &["sh", "-c", SCRIPT, "sh", path, "0"]);
    assert_eq!(traced.code, Some(0), "{}", traced.stderr);
    plain(&traced.dir, &written(work.path()));
}

fn repair(dataset: &Path) -> Output {
    live::tracer().arg("repair").arg(dataset).output().unwrap()
}

#[test]
fn of_one_that_was_killed_and_repaired() {
    let work = live::scratch();
    let (dataset, output) = (work.path().join("run.iotrace"), work.path().join("stderr"));
    let mut tracer = live::tracer();
    tracer.arg("-o").arg(&dataset).args(["--", "sh", "-c", SCRIPT, "sh"]).arg(work.path()).arg("60");
    let mut guard = Running::spawn(tracer.stdout(Stdio::null()).stderr(fs::File::create(&output).unwrap()));
    live::until("the files", || work.path().join("done").exists());
    // Parts that were closed after the last of them: what is in open parts is lost. Tables are closed one after the other.
    let parts = || fs::read_dir(&dataset).unwrap().map(|e| e.unwrap().file_name().into_string().unwrap());
    let closed = || {
        ["spans-", "files-", "processes-"]
            .map(|table| parts().filter(|name| name.starts_with(table) && name.ends_with(".parquet")).count())
    };
    let before = closed();
    live::until("parts to be closed", || closed().iter().zip(before).all(|(now, before)| *now > before));
    let early = repair(&dataset);
    assert_eq!(early.status.code(), Some(125));
    assert!(String::from_utf8_lossy(&early.stderr).contains("is being written"), "{early:?}");
    live::send(live::child_of(guard.pid()), Signal::SIGKILL);
    assert!(!guard.wait().success());

    let cut = Dataset::open(&dataset).unwrap();
    let ids = (cut.last_by_id::<File>().unwrap().len() as u64, cut.last_by_id::<Process>().unwrap().len() as u64);
    assert!(cut.count::<File>() > ids.0 && cut.count::<Process>() > ids.1, "no row was written again: {ids:?}");
    let first = repair(&dataset);
    assert!(first.status.success(), "{first:?}");
    let did = String::from_utf8_lossy(&first.stdout);
    assert!(did.contains(&format!("{} of {} rows of files", ids.0, cut.count::<File>())), "{did}");
    assert!(!parts().any(|name| name.ends_with(".inprogress")));
    plain(&dataset, &written(work.path()));
    let again = repair(&dataset);
    assert!(String::from_utf8_lossy(&again.stdout).ends_with(": nothing to repair\n"), "{again:?}");
}
