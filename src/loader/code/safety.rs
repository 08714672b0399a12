//! When a return probe would kill the traced process.
//!
//! The kernel is not asked by trial here as it is elsewhere: the trial is what kills.

/// `Seccomp:` in `/proc/PID/status` of a process whose system calls go through a filter.
const FILTERED: u32 = 2;

/// Whether a process may get return probes, on the kernel of that release (`uname -r`).
///
/// From Linux 6.11 on a return probe makes the process execute a system call of its own, `uretprobe`. A seccomp filter
/// that does not know it, which is every filter older than it, refuses it or ends the process
/// (<https://github.com/systemd/systemd/issues/34615>). Linux 6.14 takes that system call past the filters. Stable
/// updates of 6.12 and 6.13 do so too, but the release number of a distribution does not show whether it has them.
///
/// Errors: the reason, for the verdict on the probe.
pub fn return_probes_allowed(kernel_release: &str, seccomp_mode: u32) -> Result<(), String> {
    if seccomp_mode != FILTERED {
        return Ok(());
    }
    match version(kernel_release) {
        Some((6, 11..=13)) => Err(format!(
            "the process has a seccomp filter, and on Linux 6.11 to 6.13 (this is {kernel_release}) a return probe makes \
             a system call that filters end the process for (systemd issue 34615); run it without the filter or on 6.14"
        )),
        Some(_) => Ok(()),
        None => Err(format!(
            "the process has a seccomp filter, and whether return probes are safe with it on kernel \
             {kernel_release:?} is not known: its release is not of the form 6.12.1"
        )),
    }
}

fn version(release: &str) -> Option<(u32, u32)> {
    let (major, rest) = release.split_once('.')?;
    let minor = rest.split(|c: char| !c.is_ascii_digit()).next()?;
    Some((major.parse().ok()?, minor.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::return_probes_allowed;

    #[test]
    fn filtered_processes_on_the_affected_kernels_are_refused() {
        for release in ["6.11.0", "6.12", "6.12.94-fc", "6.13.2-200.fc41.x86_64", "6.12-rc1", "6.11.0-29-generic"] {
            let why = return_probes_allowed(release, 2).unwrap_err();
            assert!(why.contains("34615") && why.contains(release), "{why}");
        }
    }

    #[test]
    fn other_kernels_and_other_processes_are_allowed() {
        for release in ["5.15.0-130-generic", "6.1.0", "6.10.14", "6.14.0", "6.18.44-fc-v669", "7.0.0", "16.12.0"] {
            assert_eq!(return_probes_allowed(release, 2), Ok(()), "{release}");
        }
        for mode in [0, 1] {
            assert_eq!(return_probes_allowed("6.12.1", mode), Ok(()));
            assert_eq!(return_probes_allowed("", mode), Ok(()));
        }
    }

    #[test]
    fn an_unreadable_release_is_not_trusted() {
        for release in ["", "6", "6.", "six.twelve", ".12", "6.x"] {
            assert!(return_probes_allowed(release, 2).unwrap_err().contains("not known"), "{release}");
        }
    }
}
