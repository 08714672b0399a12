//! Perf events: those that run a program each time they happen, of all processes on all CPUs, and those that count.
#![allow(unsafe_code)]

use crate::node::counters::Count;
use libbpf_rs::{Link, ProgramMut};
use nix::errno::Errno;
use nix::libc;
use std::fs::File;
use std::io::{self, Read as _};
use std::os::fd::{AsRawFd as _, BorrowedFd, FromRawFd as _, IntoRawFd as _, OwnedFd};

/// `include/uapi/linux/perf_event.h`: `PERF_TYPE_SOFTWARE`, `PERF_COUNT_SW_PAGE_FAULTS_MIN`, `PERF_COUNT_SW_PAGE_FAULTS_MAJ`.
const SOFTWARE: u32 = 1;
pub const MINOR_FAULTS: u64 = 5;
pub const MAJOR_FAULTS: u64 = 6;
/// The bit `disabled`: attaching enables it.
const DISABLED: u64 = 1;
/// The bits `inherit` and `enable_on_exec`.
const INHERIT: u64 = 1 << 1;
const ENABLE_ON_EXEC: u64 = 1 << 12;
/// `PERF_FORMAT_TOTAL_TIME_ENABLED | PERF_FORMAT_TOTAL_TIME_RUNNING`.
const TIMES: u64 = 3;
/// `PERF_FLAG_PID_CGROUP`, `PERF_FLAG_FD_CLOEXEC`.
const GROUP: libc::c_ulong = 4;
const CLOSE_ON_EXEC: libc::c_ulong = 8;
/// Any process, any CPU.
const ANY: i32 = -1;

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
    open_of(&attr, ANY, cpu, 0)
}

fn open_of(attr: &Attr, whom: i32, cpu: i32, flags: libc::c_ulong) -> Result<OwnedFd, Errno> {
    let flags = flags | CLOSE_ON_EXEC;
    // SAFETY: the kernel reads `attr.size` bytes of `attr`, which lives until it returns; the other arguments are numbers.
    let fd = unsafe { libc::syscall(libc::SYS_perf_event_open, &raw const *attr, whom, cpu, -1, flags) };
    // SAFETY: a descriptor that the kernel has just given us, and nobody else has.
    Errno::result(fd).map(|fd| unsafe { OwnedFd::from_raw_fd(fd as i32) })
}

/// Whose events are counted.
#[derive(Debug, Clone, Copy)]
pub enum Whom<'a> {
    /// A thread, from when it executes another program on, and whatever it starts.
    Command(i32),
    /// A thread, and whatever it starts from now on.
    Thread(i32),
    /// The members of a control group, on one CPU.
    Group(BorrowedFd<'a>, i32),
    /// Everybody, on one CPU.
    Cpu(i32),
}

/// An event that counts.
#[derive(Debug)]
pub struct Counting(File);

impl Counting {
    /// `kind` and `config` as the kernel has them.
    ///
    /// # Errors
    /// When there is no such event here, or it may not be counted.
    pub fn open(kind: u32, config: u64, whom: Whom<'_>) -> Result<Self, Errno> {
        let (bits, id, cpu, flags) = match whom {
            Whom::Command(pid) => (DISABLED | ENABLE_ON_EXEC | INHERIT, pid, ANY, 0),
            Whom::Thread(tid) => (INHERIT, tid, ANY, 0),
            Whom::Group(directory, cpu) => (0, directory.as_raw_fd(), cpu, GROUP),
            Whom::Cpu(cpu) => (0, ANY, cpu, 0),
        };
        let attr = Attr { kind, size: size_of::<Attr>() as u32, config, read_format: TIMES, bits, ..Attr::default() };
        open_of(&attr, id, cpu, flags).map(|fd| Self(fd.into()))
    }

    /// What it, and events that it was inherited by, have counted.
    ///
    /// # Errors
    /// When the kernel does not tell.
    pub fn read(&self) -> io::Result<Count> {
        let mut words = [[0; 8]; 3];
        (&self.0).read_exact(words.as_flattened_mut())?;
        let [value, enabled_ns, running_ns] = words.map(u64::from_ne_bytes);
        Ok(Count { value, enabled_ns, running_ns })
    }
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
