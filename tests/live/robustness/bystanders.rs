//! Processes that are no targets: they get no breakpoint, whatever is traced beside them; and targets do, from their
//! first call on.

use crate::common::live::{self, Data, Running};
use crate::common::{programs, ways};
use iotrace_bpf::vocabulary::Layer;
use std::fs;
use std::process::{Command, Stdio};

const LIBC: &str = "/libc.so";
/// In the wheel of h5py.
const HDF5: &str = "/libhdf5-";

/// Pages of the C library's code that a process has copies of: a breakpoint makes one, nothing else does.
fn copied_pages(pid: u32) -> u64 {
    copied_pages_of(pid, LIBC)
}

fn copied_pages_of(pid: u32, library: &str) -> u64 {
    let text = fs::read_to_string(format!("/proc/{pid}/smaps")).unwrap();
    let mut in_code = false;
    let mut copied = 0;
    for line in text.lines() {
        if line.split(' ').next().is_some_and(|range| range.contains('-')) {
            in_code = line.contains("r-xp") && line.contains(library);
        } else if let Some(kib) = line.strip_prefix("Anonymous:").filter(|_| in_code) {
            copied += kib.trim().strip_suffix(" kB").unwrap().parse::<u64>().unwrap() / 4;
        }
    }
    copied
}

/// A program that uses the C library and does nothing else.
fn bystander() -> Running {
    with(Command::new("sleep").arg("600"), LIBC)
}

/// A program that has mapped a library.
fn with(program: &mut Command, library: &str) -> Running {
    let running = Running::spawn(program);
    live::until("its library", || {
        fs::read_to_string(format!("/proc/{}/maps", running.pid())).unwrap().contains(library)
    });
    running
}

#[test]
fn a_program_that_uses_hdf5_beside_a_trace_of_hdf5_has_no_breakpoints() {
    let work = live::scratch();
    let import = || with(Command::new(ways::python()).args(["-c", "import h5py, time; time.sleep(600)"]), HDF5);
    let (before, target) = (import(), import());
    let mut traced = ways::Attached::to(work.path(), &[], target.pid());
    let pages = |running: &Running| [HDF5, LIBC].map(|library| copied_pages_of(running.pid(), library));
    assert!(pages(&target).iter().all(|copied| *copied > 0), "a target has breakpoints: {:?}", pages(&target));
    assert_eq!((pages(&before), pages(&import())), ([0, 0], [0, 0]));
    assert!(traced.goes_on());
}

#[test]
fn only_attached_processes_have_breakpoints() {
    let work = live::scratch();
    let (before, target) = (bystander(), bystander());
    assert_eq!((copied_pages(before.pid()), copied_pages(target.pid())), (0, 0));
    let output = work.path().join("output");
    let mut tracer = Running::spawn(
        live::tracer()
            .args(["-p", &target.pid().to_string(), "-o"])
            .arg(work.path().join("run.iotrace"))
            .stdout(Stdio::null())
            .stderr(fs::File::create(&output).unwrap()),
    );
    let own = live::named_child_of(tracer.pid(), "iotrace-bpf");
    live::until_it_traces(own, &output);
    assert!(copied_pages(target.pid()) > 0, "a target has breakpoints");
    assert_eq!(copied_pages(before.pid()), 0, "a process from before has none");
    assert_eq!(copied_pages(bystander().pid()), 0, "a process from after has none");
    live::send(own, nix::sys::signal::Signal::SIGINT);
    assert!(tracer.wait().success());
    assert_eq!(copied_pages(before.pid()), 0);
}

#[test]
fn only_a_command_and_its_children_have_breakpoints() {
    let work = live::scratch();
    let stranger = bystander();
    let (inner, pids) = (work.path().join("inner"), work.path().join("pids"));
    // A program, one that it forks and that executes another, and both stay.
    let script = format!("sleep 600 & echo $$ $! > {0}; mv {0} {1}; wait", inner.display(), pids.display());
    let mut tracer = Running::spawn(
        live::tracer()
            .arg("-o")
            .arg(work.path().join("run.iotrace"))
            .args(["--", "sh", "-c", &script])
            .stdout(Stdio::null())
            .stderr(Stdio::null()),
    );
    live::until("the command", || pids.exists());
    let own = fs::read_to_string(&pids).unwrap();
    let own: Vec<u32> = own.split_whitespace().map(|pid| pid.parse().unwrap()).collect();
    live::until("the program that was executed", || {
        fs::read_to_string(format!("/proc/{}/comm", own[1])).unwrap() == "sleep\n" && copied_pages(own[1]) > 0
    });
    assert!(copied_pages(own[0]) > 0);
    assert_eq!((copied_pages(stranger.pid()), copied_pages(bystander().pid())), (0, 0));
    live::send(own[1], nix::sys::signal::Signal::SIGKILL);
    assert!(tracer.wait().success());
}

/// Traces `forked`; every call of it was recorded.
fn forks(children: i64) -> Data {
    const CALLS: i64 = 50;
    let work = live::scratch();
    let program = programs::build("forked").display().to_string();
    let file = work.path().join("lines").display().to_string();
    let command = [program, file, children.to_string(), CALLS.to_string()];
    let data = live::trace(work.path(), &["--layers", "stdio,syscall"], &command).data().lossless();
    assert_eq!(data.calls("fputs").count() as i64, 2 * children * CALLS);
    data
}

#[test]
fn the_first_call_of_a_process_that_was_forked_is_recorded() {
    let data = forks(4);
    assert!(data.coverage.iter().all(|c| c.status != "shared"), "each has probes of its own");
}

#[test]
fn with_too_many_targets_all_processes_have_probes_and_coverage_reports_it() {
    let data = forks(40);
    let shared = data.coverage.iter().find(|c| c.status == "shared").unwrap();
    assert_eq!(shared.layer, Layer::Stdio);
    assert!(shared.reason.as_deref().unwrap().contains("every process"), "{shared:?}");
}
