//! Another user exchanges the output directory, or one above it, for a link while a tracer that runs through sudo begins: nothing
//! is written, and no owner changes, where the link leads.

use crate::common::live;
use nix::fcntl::{AT_FDCWD, RenameFlags, renameat2};
use std::fs;
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _, PermissionsExt as _, chown, symlink};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

/// The owner of the directory in which files are exchanged.
const MALLORY: u32 = 65534;
/// Another user.
const ALICE: u32 = 1000;

const RUNS: usize = 3;

/// Names, kinds, owners and modes of all that is below a directory, and when they changed.
fn look(dir: &Path) -> Vec<String> {
    let mut all = Vec::new();
    for entry in fs::read_dir(dir).unwrap() {
        let path = entry.unwrap().path();
        let m = fs::symlink_metadata(&path).unwrap();
        all.push(format!("{} {:o} {} {} {}", path.display(), m.mode(), m.uid(), m.ctime(), m.ctime_nsec()));
        if m.is_dir() {
            all.extend(look(&path));
        }
    }
    all.sort();
    all
}

/// Runs tracers that write to `output`, a path below the directory of Mallory, who exchanges `here` in it for a link all the
/// time. Where the link leads to nothing changes, and the command has run or was never begun.
fn exchange(caller: u32, here: &str, output: &str, options: &[&str]) {
    let work = live::scratch();
    fs::set_permissions(work.path(), fs::Permissions::from_mode(0o755)).unwrap();
    let (victim, own) = (work.path().join("victim"), work.path().join("mallory"));
    fs::create_dir_all(victim.join("sub")).unwrap();
    fs::write(victim.join("precious"), "data").unwrap();
    fs::DirBuilder::new().mode(0o755).create(&own).unwrap();
    let (real, link) = (own.join(here), own.join("link"));
    fs::create_dir(&real).unwrap();
    symlink(&victim, &link).unwrap();
    let sub = real.join("sub");
    if output.contains("/sub/") {
        fs::create_dir(&sub).unwrap();
    }
    for path in [&own, &real, &sub].into_iter().filter(|path| path.exists()) {
        chown(path, Some(MALLORY), Some(MALLORY)).unwrap();
    }
    let before = (look(&victim), fs::metadata(&victim).unwrap().ctime_nsec());
    let over = AtomicBool::new(false);
    thread::scope(|scope| {
        scope.spawn(|| {
            while !over.load(Ordering::Relaxed) {
                // There may be nothing in its place for a moment.
                let _ = renameat2(AT_FDCWD, &real, AT_FDCWD, &link, RenameFlags::RENAME_EXCHANGE);
                thread::yield_now();
            }
        });
        for _ in 0..RUNS {
            let mut tracer = live::tracer();
            tracer.args(["--layers", "syscall"]).args(options).arg("-o").arg(own.join(output)).args(["--", "true"]);
            tracer.env("SUDO_UID", caller.to_string()).env("SUDO_GID", caller.to_string());
            let out = tracer.output().unwrap();
            let text_out = String::from_utf8_lossy(&out.stderr);
            assert!([Some(0), Some(125)].contains(&out.status.code()) && !text_out.contains("panicked"), "{text_out}");
        }
        over.store(true, Ordering::Relaxed);
    });
    assert_eq!((look(&victim), fs::metadata(&victim).unwrap().ctime_nsec()), before);
}

#[test]
fn a_directory_that_is_exchanged_for_a_link_leads_nowhere() {
    for caller in [MALLORY, ALICE] {
        exchange(caller, "run", "run", &["--force"]);
    }
}

#[test]
fn neither_does_one_above_it() {
    for caller in [MALLORY, ALICE] {
        exchange(caller, "above", "above/run", &["--force"]);
        exchange(caller, "above", "above/sub/run", &["--rotate-time", "1s"]);
    }
}
