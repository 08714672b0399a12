//! Perf events: those that run a program each time they happen, of all processes on all CPUs, and those that count.

use crate::node::counters::Count;
use libbpf_rs::{Link, ProgramMut};
use nix::errno::Errno;
use perf_event::Builder;
use perf_event::events::Software;
use rustix::process::{PidfdFlags, PidfdGetfdFlags, getpid, pidfd_getfd, pidfd_open};
use std::fs::File;
use std::io::{self, Read as _};
use std::os::fd::{AsRawFd as _, IntoRawFd as _, OwnedFd};

/// Events that a program is attached to.
pub const MINOR_FAULTS: Software = Software::PAGE_FAULTS_MIN;
pub const MAJOR_FAULTS: Software = Software::PAGE_FAULTS_MAJ;

/// Opens an event. The descriptor is a duplicate that programs which are executed do not inherit; see `Cargo.toml`.
fn open(builder: Builder<'_>) -> Result<OwnedFd, Errno> {
    let event = builder.build().map_err(|e| Errno::from_raw(e.raw_os_error().unwrap_or_default()))?;
    let errno = |e: rustix::io::Errno| Errno::from_raw(e.raw_os_error());
    let own = pidfd_open(getpid(), PidfdFlags::empty()).map_err(errno)?;
    pidfd_getfd(&own, event.as_raw_fd(), PidfdGetfdFlags::empty()).map_err(errno)
}

/// The tasks whose events are counted.
#[derive(Debug, Clone, Copy)]
pub enum Scope<'a> {
    /// A thread, from when it executes another program on, and whatever it starts.
    Command(i32),
    /// A thread, and whatever it starts from now on.
    Thread(i32),
    /// The members of the control group of this directory, on one CPU.
    Group(&'a File, usize),
    /// Everybody, on one CPU.
    Cpu(usize),
}

/// An event that counts.
#[derive(Debug)]
pub struct Counting(File);

impl Counting {
    /// `kind` and `config` as the kernel has them.
    ///
    /// # Errors
    /// When there is no such event here, or it may not be counted.
    pub fn open(kind: u32, config: u64, scope: Scope<'_>) -> Result<Self, Errno> {
        let mut builder = match scope {
            Scope::Command(tid) | Scope::Thread(tid) => Builder::new().observe_pid(tid),
            Scope::Group(directory, cpu) => Builder::new().observe_cgroup(directory).one_cpu(cpu),
            Scope::Cpu(cpu) => Builder::new().any_pid().one_cpu(cpu),
        };
        let command = matches!(scope, Scope::Command(_));
        builder.exclude_kernel(false).exclude_hv(false).enabled(!command).enable_on_exec(command);
        builder.inherit(matches!(scope, Scope::Command(_) | Scope::Thread(_)));
        builder.attrs_mut().type_ = kind;
        builder.attrs_mut().config = config;
        open(builder).map(|fd| Self(fd.into()))
    }

    /// What it, and events that it was inherited by, have counted.
    ///
    /// # Errors
    /// When the kernel does not give it.
    pub fn read(&self) -> io::Result<Count> {
        // `PERF_FORMAT_TOTAL_TIME_ENABLED | PERF_FORMAT_TOTAL_TIME_RUNNING`, as the builder asks for.
        let mut words = [[0; 8]; 3];
        (&self.0).read_exact(words.as_flattened_mut())?;
        let [value, enabled_ns, running_ns] = words.map(u64::from_ne_bytes);
        Ok(Count { value, enabled_ns, running_ns })
    }
}

/// Attaches a program to each single event, of any process, on every CPU that is online.
pub fn attach(program: &ProgramMut, event: Software, cpus: usize) -> Result<Vec<Link>, String> {
    let mut links = Vec::new();
    for cpu in 0..cpus {
        let mut builder = Builder::new().kind(event).any_pid().one_cpu(cpu);
        builder.exclude_kernel(false).exclude_hv(false).sample_period(1);
        let event = match open(builder) {
            Ok(event) => event,
            Err(Errno::ENODEV) => continue,
            Err(why) => return Err(format!("perf_event_open: {why}")),
        };
        // The link closes it.
        links.push(program.attach_perf_event(event.into_raw_fd()).map_err(|e| format!("{e:#}"))?);
    }
    Ok(links)
}
