//! The cases: what runs where, and what has to be found in it.

mod calls;
mod innocent;
mod libraries;
mod system;

/// What a report has to say of a case.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Expect {
    /// This rule, before all others.
    Rule(&'static str),
    /// Nothing at all.
    Nothing,
    /// Anything but this rule: what it advises makes the program slower.
    Not(&'static str),
}

/// A program as it is, and fixed.
#[derive(Debug, Clone, Copy)]
pub struct Case {
    pub name: &'static str,
    pub expect: Expect,
    /// Rules that are right as well, also of the fixed program.
    pub also: &'static [&'static str],
    /// What is wrong, and what fixes it.
    pub about: &'static str,
    /// Makes the files, before each run; empty: there are none.
    pub prepare: &'static str,
    /// The page cache is empty when the program starts.
    pub cold: bool,
    pub bad: Run,
    /// None: there is nothing to fix.
    pub good: Option<Run>,
}

/// The files of a run, before it begins.
#[derive(Debug, Clone, Copy)]
pub struct Files {
    /// Makes them; empty: there are none.
    pub prepare: &'static str,
    /// The page cache is empty then.
    pub cold: bool,
}

impl Case {
    pub const fn files(&self) -> Files {
        Files { prepare: self.prepare, cold: self.cold }
    }
}

/// A command with its surroundings. `command.rs` has what stands in braces.
#[derive(Debug, Clone, Copy)]
pub struct Run {
    pub command: &'static str,
    pub setting: Setting,
    /// What runs at the same time, from before its begin until after its end.
    pub beside: &'static [&'static str],
}

/// Where a command works. All but the first are made for one run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Setting {
    /// A directory on the file system of the working directory.
    Plain,
    /// A file system of so many MiB.
    Image(u64),
    /// The same, and the command's control group has so many bytes per second of its device.
    Throttled(u64),
    /// The same, and its device has so many bytes per second for all commands together.
    SlowDisk(u64),
    /// The same, with so many bytes of dirty pages.
    FewDirty(u64),
    /// The same, with so many KiB of read-ahead.
    ReadAhead(u64),
    /// The command's control group has so many MiB of memory, and there is swap space.
    Memory(u64),
    /// Files are made in the lower layer of an overlayfs.
    Overlay,
    /// Files are made below a bindfs, which is a FUSE file system.
    Fuse,
}

/// A command in a plain directory.
pub const fn plain(command: &'static str) -> Run {
    Run { command, setting: Setting::Plain, beside: &[] }
}

/// A command in a setting.
pub const fn at(setting: Setting, command: &'static str) -> Run {
    Run { command, setting, beside: &[] }
}

/// A case in plain directories, which prepares nothing.
const fn case(name: &'static str, rule: &'static str, about: &'static str, bad: Run, good: Run) -> Case {
    let expect = Expect::Rule(rule);
    Case { name, expect, also: &[], about, prepare: "", cold: false, bad, good: Some(good) }
}

/// All cases, those in which something has to be found first.
pub fn all() -> impl Iterator<Item = &'static Case> {
    [calls::CASES, libraries::CASES, system::CASES, innocent::CASES].into_iter().flatten()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn names_are_different_and_every_cause_can_be_fixed() {
        let names: BTreeSet<&str> = all().map(|case| case.name).collect();
        assert_eq!(names.len(), all().count());
        assert!(all().all(|case| matches!(case.expect, Expect::Nothing) == case.good.is_none()));
        assert!(all().filter(|case| matches!(case.expect, Expect::Rule(_))).count() >= 24);
    }
}
