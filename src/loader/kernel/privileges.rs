//! The capabilities that tracing takes, and what is lost without each.

/// Something that the kernel lets only some processes do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Capability {
    /// Of `include/uapi/linux/capability.h`.
    number: u32,
    pub name: &'static str,
    /// Nothing can be traced without it.
    pub needed: bool,
    /// `CAP_SYS_ADMIN` does for it.
    admin: bool,
    /// What is lost without it.
    pub lost: &'static str,
}

const SYS_ADMIN: u32 = 21;
/// The privileges to hold a command. Processes that are attached to are never held.
pub const HOLD: &str = "CAP_SYS_ADMIN";

/// In the order of what they give.
const ALL: [Capability; 7] = [
    Capability { number: 39, name: "CAP_BPF", needed: true, admin: true, lost: "the kernel loads no programs" },
    Capability {
        number: 38,
        name: "CAP_PERFMON",
        needed: true,
        admin: true,
        lost: "no programs that trace: they read the memory of the kernel and of processes",
    },
    Capability {
        number: 19,
        name: "CAP_SYS_PTRACE",
        needed: false,
        admin: false,
        lost: "processes of other users cannot be attached to, and libraries that they map are not found",
    },
    Capability {
        number: 2,
        name: "CAP_DAC_READ_SEARCH",
        needed: false,
        admin: false,
        lost: "libraries in directories that this user may not read get no probes",
    },
    Capability {
        number: 40,
        name: "CAP_CHECKPOINT_RESTORE",
        needed: false,
        admin: true,
        lost: "libraries that were deleted or replaced while they are mapped get no probes (/proc/PID/map_files)",
    },
    Capability {
        number: SYS_ADMIN,
        name: HOLD,
        needed: false,
        admin: true,
        lost: "a command is not held while a library that it maps gets probes: first calls of the library may be missing",
    },
    Capability {
        number: 34,
        name: "CAP_SYSLOG",
        needed: false,
        admin: false,
        lost: "functions of the kernel have no addresses: none in stacks of what is in flight",
    },
];

/// May a command get a filter of system calls and keep the rights that `sudo` and its kind give?
pub fn may_hold() -> bool {
    missing().iter().all(|c| c.name != HOLD)
}

/// What this process does not have.
pub fn missing() -> Vec<Capability> {
    missing_in(&std::fs::read_to_string("/proc/self/status").unwrap_or_default())
}

/// `status` is `/proc/self/status`. Empty where that has no answer.
pub fn missing_in(status: &str) -> Vec<Capability> {
    let mask = status.lines().find_map(|l| u64::from_str_radix(l.strip_prefix("CapEff:")?.trim(), 16).ok());
    let has = |number: u32| mask.is_none_or(|mask| mask >> number & 1 != 0);
    let given = |c: &Capability| has(c.number) || (c.admin && has(SYS_ADMIN));
    ALL.into_iter().filter(|c| !given(c)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lacks(mask: u64) -> Vec<&'static str> {
        missing_in(&format!("Name:\tx\nCapEff:\t{mask:016x}\n")).iter().map(|c| c.name).collect()
    }

    #[test]
    fn what_is_missing_is_named() {
        assert_eq!(lacks(u64::MAX), Vec::<&str>::new());
        assert_eq!(lacks(0), ALL.map(|c| c.name));
        // Docker's usual ones (moby, oci/caps/defaults.go).
        assert_eq!(
            lacks(0xa804_25fb),
            [
                "CAP_BPF",
                "CAP_PERFMON",
                "CAP_SYS_PTRACE",
                "CAP_DAC_READ_SEARCH",
                "CAP_CHECKPOINT_RESTORE",
                "CAP_SYS_ADMIN",
                "CAP_SYSLOG"
            ]
        );
        // One that is larger than others stands for them.
        assert_eq!(lacks(1 << SYS_ADMIN), ["CAP_SYS_PTRACE", "CAP_DAC_READ_SEARCH", "CAP_SYSLOG"]);
        assert!(missing_in("").is_empty());
    }
}
