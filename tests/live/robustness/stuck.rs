//! A file system that does not answer costs its own file, and not the targets.

use crate::common::live::{self, Data, Running};
use crate::common::programs;
use std::fs;
use std::path::PathBuf;
use std::process::Command;

/// A directory that a daemon serves as another, which is not mounted any more in the end.
struct Mounted {
    daemon: Running,
    mount: PathBuf,
}

impl Drop for Mounted {
    fn drop(&mut self) {
        live::send(self.daemon.pid(), nix::sys::signal::Signal::SIGCONT);
        let _ = Command::new("umount").arg(&self.mount).status();
        let _ = self.daemon.0.wait();
    }
}

#[test]
fn code_on_a_stuck_file_system_blocks_nothing() {
    let work = live::scratch();
    let (below, mount) = (work.path().join("below"), work.path().join("mount"));
    for dir in [&below, &mount] {
        fs::create_dir(dir).unwrap();
    }
    fs::copy("/proc/self/exe", below.join("libhdf5.so.stuck")).unwrap();
    let daemon = Running::spawn(Command::new("bindfs").arg("-f").args([&below, &mount]));
    live::until("the mount", || fs::read_to_string("/proc/mounts").unwrap().contains(mount.to_str().unwrap()));
    let mounted = Mounted { daemon, mount };
    let library = mounted.mount.join("libhdf5.so.stuck");
    let command = [
        programs::build("map_stuck").into_os_string(),
        library.clone().into_os_string(),
        mounted.daemon.pid().to_string().into(),
    ];
    let traced = live::trace(work.path(), &[], &command);
    assert_eq!(traced.code, Some(0), "{}", traced.stderr);
    assert!(traced.stdout.starts_with("another program\nboth are over\n"), "{}", traced.stdout);
    let data = Data::read(&traced.dir);
    let verdict = data.coverage.iter().find(|c| c.target == library.to_str().unwrap()).unwrap();
    assert_eq!(verdict.status, "refused");
    assert!(verdict.reason.as_deref().unwrap().contains("was not read within"), "{verdict:?}");
}
