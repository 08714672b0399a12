//! One line on the terminal while a process is traced: time, events, loss, probes.

use std::fmt;
use std::time::Duration;

/// The figures of the line.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Status {
    pub elapsed: Duration,
    pub processes: usize,
    /// Records that came out of the rings so far, and in the last second.
    pub records: u64,
    pub per_second: u64,
    pub lost: u64,
    pub attached: usize,
    pub probes: usize,
}

impl fmt::Display for Status {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let s = self.elapsed.as_secs();
        write!(
            f,
            "{:02}:{:02}:{:02}  {} processes  {} records ({}/s)  lost {}  probes {}/{}  Ctrl-C ends",
            s / 3600,
            s / 60 % 60,
            s % 60,
            self.processes,
            self.records,
            self.per_second,
            self.lost,
            self.attached,
            self.probes
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_as_a_line() {
        let s = Status {
            elapsed: Duration::from_secs(3725),
            processes: 4,
            records: 1200,
            per_second: 300,
            lost: 0,
            attached: 60,
            probes: 62,
        };
        insta::assert_snapshot!(s, @"01:02:05  4 processes  1200 records (300/s)  lost 0  probes 60/62  Ctrl-C ends");
    }
}
