//! Programs on events that the kernel counts in software, of all processes on all CPUs: page faults.
#![allow(unsafe_code)]

use libbpf_rs::{Link, ProgramMut};
use nix::errno::Errno;
use nix::libc;
use std::os::fd::{FromRawFd as _, IntoRawFd as _, OwnedFd};

/// `include/uapi/linux/perf_event.h`: `PERF_TYPE_SOFTWARE`, `PERF_COUNT_SW_PAGE_FAULTS_MIN`, `PERF_COUNT_SW_PAGE_FAULTS_MAJ`.
const SOFTWARE: u32 = 1;
pub const MINOR_FAULTS: u64 = 5;
pub const MAJOR_FAULTS: u64 = 6;
/// The bit `disabled`: attaching enables it.
const DISABLED: u64 = 1;
/// `PERF_FLAG_FD_CLOEXEC`.
const CLOSE_ON_EXEC: libc::c_ulong = 8;

/// `struct perf_event_attr` in its first version, `PERF_ATTR_SIZE_VER0`.
#[repr(C)]
#[derive(Default)]
struct Attr {
    kind: u32,
    size: u32,
    config: u64,
    sample_period: u64,
    sample_type: u64,
    read_format: u64,
    bits: u64,
    wakeup_events: u32,
    bp_type: u32,
    config1: u64,
}
const _: () = assert!(size_of::<Attr>() == 64);

/// Each single event, of any process on this CPU.
fn open(config: u64, cpu: i32) -> Result<OwnedFd, Errno> {
    let size = size_of::<Attr>() as u32;
    let attr = Attr { kind: SOFTWARE, size, config, sample_period: 1, bits: DISABLED, ..Attr::default() };
    // SAFETY: the kernel reads `size` bytes of `attr`, which lives until it returns; the other arguments are numbers.
    let fd = unsafe { libc::syscall(libc::SYS_perf_event_open, &raw const attr, -1, cpu, -1, CLOSE_ON_EXEC) };
    // SAFETY: a descriptor that the kernel has just given us, and nobody else has.
    Errno::result(fd).map(|fd| unsafe { OwnedFd::from_raw_fd(fd as i32) })
}

/// Attaches a program to an event on every CPU that is online.
pub fn attach(program: &ProgramMut, config: u64, cpus: i32) -> Result<Vec<Link>, String> {
    let mut links = Vec::new();
    for cpu in 0..cpus {
        let event = match open(config, cpu) {
            Ok(event) => event,
            Err(Errno::ENODEV) => continue,
            Err(why) => return Err(format!("perf_event_open: {why}")),
        };
        // The link closes it.
        links.push(program.attach_perf_event(event.into_raw_fd()).map_err(|e| format!("{e:#}"))?);
    }
    Ok(links)
}
