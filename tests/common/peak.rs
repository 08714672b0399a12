//! The most memory that a process ever had.

use std::fs;
use std::time::Duration;

/// In KiB, by the kernel, until the process ends.
pub fn of(pid: u32) -> u64 {
    let mut most = 0;
    while let Some(now) = now(pid) {
        most = now.max(most);
        std::thread::sleep(Duration::from_millis(2));
    }
    most
}

/// `None`: it has ended.
fn now(pid: u32) -> Option<u64> {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    line.split_whitespace().next()?.parse().ok()
}
