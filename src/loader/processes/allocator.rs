//! The memory that the C library's allocator keeps of this process. A trace goes on for days, and what a burst of events
//! took is to be the machine's again.
#![allow(unsafe_code)]

use nix::libc;
use std::time::{Duration, Instant};

/// By default there are eight arenas for each CPU, and what is free in one of them is nothing to a thread of another
/// (mallopt(3), `M_ARENA_MAX`). Two: threads that allocate at once seldom wait for each other.
const ARENAS: libc::c_int = 2;
/// How often free pages are given back.
const EVERY: Duration = Duration::from_mins(1);

/// Limits the arenas. Before there are other threads, each of which would have its own.
pub fn prepare() {
    // SAFETY: `mallopt` takes two numbers, and locks what it changes.
    unsafe { libc::mallopt(libc::M_ARENA_MAX, ARENAS) };
}

/// Gives free pages of all arenas back to the kernel.
pub fn trim() {
    // SAFETY: `malloc_trim` takes a number, locks each arena while it looks at it, and takes no memory that is in use.
    unsafe { libc::malloc_trim(0) };
}

/// Gives free pages back now and then.
#[derive(Debug)]
pub struct Trimming {
    last: Instant,
}

impl Default for Trimming {
    fn default() -> Self {
        Self { last: Instant::now() }
    }
}

impl Trimming {
    pub fn trim_if_due(&mut self) {
        if self.last.elapsed() >= EVERY {
            self.last = Instant::now();
            trim();
        }
    }
}
