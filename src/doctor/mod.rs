//! `iotrace-bpf doctor`: what this kernel and these privileges allow, and what to do about the rest.

mod hints;

use crate::base::notices;
use crate::catalog;
use crate::doctor::hints::{Fix, Machine, Wrong};
use crate::loader::kernel::hooks::Group;
use crate::loader::kernel::privileges::{self, Capability, HOLD};
use crate::loader::kernel::{self, Capabilities, programs};
use crate::loader::processes::{limits, namespace};
use crate::vocabulary::Layer;
use anyhow::Result;
use std::fs;
use std::io::Write;
use std::path::Path;

const BTF: &str = "/sys/kernel/btf/vmlinux";

/// One check.
struct Check {
    name: &'static str,
    /// What was found, or what is wrong with it.
    found: Result<String, String>,
    /// What to do when it is wrong.
    way_out: &'static str,
    /// Nothing can be traced without it.
    needed: bool,
    fix: Fix,
}

/// Checks before a trace, so that the message names the cause and not what followed from it. `launches`: of a command.
pub fn preflight(launches: bool) -> Result<()> {
    for check in [capabilities(), btf(), lockdown(), pid_namespace(), open_files()] {
        if let Err(why) = check.found {
            anyhow::bail!("{why}\n  {}", check.way_out);
        }
    }
    for Capability { name, lost, .. } in privileges::missing().iter().filter(|c| launches || c.name != HOLD) {
        notices::note(&format!("warning: without {name}: {lost}"));
    }
    Ok(())
}

fn user() -> Check {
    let id = nix::unistd::geteuid();
    Check {
        name: "user",
        found: Ok(if id.is_root() { "root".into() } else { id.to_string() }),
        way_out: "",
        needed: true,
        fix: Fix::Nothing,
    }
}

const WAY_TO_CAPABILITIES: &str = "run it with sudo (a launched command still runs as you), or give it these capabilities \
                                   (docs/service.md); in a container: docker run --privileged --pid=host";

/// Those that nothing goes without, in one.
fn capabilities() -> Check {
    capabilities_of(&privileges::missing())
}

fn capabilities_of(missing: &[Capability]) -> Check {
    let needed = missing.iter().filter(|c| c.needed).map(|c| format!("{} ({})", c.name, c.lost));
    let needed = needed.collect::<Vec<_>>().join(", ");
    Check {
        name: "capabilities",
        found: if needed.is_empty() {
            Ok("all that are needed".into())
        } else {
            Err(format!("missing capabilities: {needed}"))
        },
        way_out: WAY_TO_CAPABILITIES,
        needed: true,
        fix: fix_of(missing),
    }
}

/// All in one command.
fn fix_of(missing: &[Capability]) -> Fix {
    Fix::Capabilities(missing.iter().map(|c| c.name).collect())
}

/// One for each of the others that is missing.
fn other_capabilities() -> impl Iterator<Item = Check> {
    let missing = privileges::missing();
    let fix = fix_of(&missing);
    missing.into_iter().filter(|c| !c.needed).map(move |c| Check {
        name: c.name,
        found: Err(c.lost.into()),
        way_out: WAY_TO_CAPABILITIES,
        needed: false,
        fix: fix.clone(),
    })
}

fn btf() -> Check {
    Check {
        name: "kernel types",
        found: if Path::new(BTF).exists() {
            Ok(BTF.into())
        } else {
            Err(format!("{BTF} is missing: the kernel does not describe its types"))
        },
        way_out: "use a kernel built with CONFIG_DEBUG_INFO_BTF=y (every large distribution's is, since 2021), and mount /sys",
        needed: true,
        fix: Fix::Types,
    }
}

fn lockdown() -> Check {
    lockdown_of(&fs::read_to_string("/sys/kernel/security/lockdown").unwrap_or_default())
}

fn pid_namespace() -> Check {
    let nested =
        |nested| if nested { "one of its own (a container): what is outside of it is not seen" } else { "the node's" };
    Check {
        name: "PID namespace",
        found: namespace::is_nested().map(|is| nested(is).into()),
        way_out: "mount the /proc of the namespace that it runs in (unshare --mount-proc, or mount -t proc proc /proc in a mount \
                  namespace of its own)",
        needed: true,
        fix: Fix::Proc,
    }
}

/// `text` is the kernel's list of modes, the one in force in brackets; empty where it cannot be read.
fn lockdown_of(text: &str) -> Check {
    let mode = text.split_once('[').and_then(|(_, rest)| rest.split_once(']')).map(|(mode, _)| mode);
    Check {
        name: "lockdown",
        found: match mode {
            Some("confidentiality") => {
                Err("the kernel is locked down (confidentiality): no program may read kernel memory".into())
            }
            Some(mode) => Ok(mode.into()),
            None => Ok("not in force, or securityfs is not mounted".into()),
        },
        way_out: "boot with lockdown=integrity, or without lockdown",
        needed: true,
        fix: Fix::Lockdown,
    }
}

fn tiers(caps: &Capabilities) -> Vec<Check> {
    // Of the last three one is enough.
    let fix = |needed| if needed || caps.lib_tier().is_none() { Fix::Advice } else { Fix::Nothing };
    let of = |name, verdict: &Result<(), String>, way_out, needed| Check {
        name,
        found: verdict.clone().map(|()| "works".to_owned()),
        way_out,
        needed,
        fix: fix(needed),
    };
    vec![
        of(
            "tp_btf",
            &caps.tp_btf,
            "system calls, processes and block requests are traced through it: Linux 5.11 or newer",
            true,
        ),
        of("uprobe.session", &caps.session, "not needed: the next kind is used (Linux 6.13 has it)", false),
        of("uprobe.multi", &caps.multi, "without it probes detach slowly and are capped (Linux 6.6 has it)", false),
        of("uprobe", &caps.single, "without any of the three no library layer can be traced", false),
    ]
}

/// The processes that library probes slow.
fn library_layers() -> Check {
    let all = Layer::names(Layer::is_library);
    Check {
        name: "library probes",
        found: Ok(format!(
            "run in every process of the node that maps the libraries, traced or not: --system and --cgroup leave {all} out \
             unless --layers names them"
        )),
        way_out: "",
        needed: false,
        fix: Fix::Nothing,
    }
}

/// Every group of programs, loaded for real.
fn groups(caps: &Capabilities) -> Vec<Check> {
    let verdicts = programs::try_groups(caps.lib_tier(), &catalog::rows());
    let check = |(group, verdict): (Group, Result<(), String>)| Check {
        name: group.shows(),
        found: verdict.map(|()| "its programs load".to_owned()),
        way_out: match group.absent() {
            Some(_) => "not needed where there is none; if there is one, it must be there before the trace begins",
            None => "coverage in a trace lists what is missing without it; please report the text above and the kernel",
        },
        needed: group == Group::Process,
        fix: match group.absent() {
            Some(_) if hints::exports() => Fix::NfsServer,
            Some(_) => Fix::Nothing,
            None => Fix::Advice,
        },
    };
    verdicts.into_iter().map(check).collect()
}

fn open_files() -> Check {
    Check {
        name: "open files",
        found: limits::open_files(),
        way_out: limits::OPEN_FILES_WAY_OUT,
        needed: true,
        fix: Fix::OpenFiles,
    }
}

fn kernel_addresses() -> Check {
    kernel_addresses_of(&fs::read_to_string("/proc/sys/kernel/kptr_restrict").unwrap_or_default())
}

/// `text` is the value of `kernel.kptr_restrict`; empty where it cannot be read.
fn kernel_addresses_of(text: &str) -> Check {
    Check {
        name: "kernel addresses",
        found: if text.trim() == "2" {
            Err("kernel.kptr_restrict is 2: stacks have no kernel functions, requests of journals are not recognised"
                .into())
        } else {
            Ok("shown to privileged processes".into())
        },
        way_out: "sysctl kernel.kptr_restrict=1",
        needed: false,
        fix: Fix::Addresses,
    }
}

/// Prints every check, or only what fixes those that failed; the exit status is 0 when a trace can run.
pub fn run(fix_hints: bool, out: &mut dyn Write) -> Result<u8> {
    limits::prepare();
    let checks = checks();
    let ready = checks.iter().all(|c| c.found.is_ok() || !c.needed);
    if fix_hints {
        let wrong = |check: Check| {
            let Check { name, found, way_out, fix, .. } = check;
            found.err().map(|why| Wrong { name, why, way_out, fix })
        };
        let wrong: Vec<Wrong> = checks.into_iter().filter_map(wrong).collect();
        for line in hints::lines(&wrong, &Machine::here(limits::most_open_files())) {
            writeln!(out, "{line}")?;
        }
    } else {
        print(&checks, ready, out)?;
    }
    Ok(u8::from(!ready))
}

fn checks() -> Vec<Check> {
    let mut checks = vec![user(), capabilities(), btf(), lockdown(), pid_namespace(), open_files()];
    let possible = checks.iter().all(|c| c.found.is_ok());
    checks.extend(other_capabilities());
    checks.push(kernel_addresses());
    if possible {
        kernel::quiet_libbpf();
        match kernel::try_all() {
            Ok(caps) => {
                checks.extend(tiers(&caps));
                checks.push(library_layers());
                checks.extend(groups(&caps));
            }
            Err(why) => checks.push(Check {
                name: "trial",
                found: Err(why),
                way_out: "the tracer tries probes on its own executable, which it must be able to read",
                needed: true,
                fix: Fix::Advice,
            }),
        }
    }
    checks
}

fn print(checks: &[Check], ready: bool, out: &mut dyn Write) -> Result<()> {
    let release = nix::sys::utsname::uname().map(|u| u.release().to_string_lossy().into_owned()).unwrap_or_default();
    writeln!(out, "kernel {release}, {} CPUs", libbpf_rs::num_possible_cpus().unwrap_or(0))?;
    for check in checks {
        match &check.found {
            Ok(found) => writeln!(out, "  ok   {:<16} {found}", check.name)?,
            Err(why) => {
                let mark = if check.needed { "FAIL" } else { "no" };
                writeln!(out, "  {mark:<4} {:<16} {why}\n       {:<16} -> {}", check.name, "", check.way_out)?;
            }
        }
    }
    if checks.iter().any(|c| c.found.is_err() && c.fix != Fix::Nothing) {
        writeln!(out, "iotrace-bpf doctor --fix-hints prints the commands that fix this")?;
    }
    writeln!(out, "{}", if ready { "ready to trace" } else { "cannot trace" })?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn confidentiality_is_refused_with_a_reason() {
        let check = lockdown_of("none integrity [confidentiality]\n");
        assert!(check.found.unwrap_err().contains("locked down"));
        assert_eq!(lockdown_of("none [integrity] confidentiality\n").found, Ok("integrity".into()));
        assert!(lockdown_of("").found.is_ok());
    }

    #[test]
    fn addresses_that_are_hidden_from_root_are_found() {
        for (text, ok) in [("0\n", true), ("1\n", true), ("2\n", false), ("", true)] {
            assert_eq!(kernel_addresses_of(text).found.is_ok(), ok, "{text}");
        }
    }

    #[test]
    fn all_missing_capabilities_have_one_remedy() {
        let missing = privileges::missing_in("CapEff:\t0\n");
        let check = capabilities_of(&missing);
        assert!(check.found.unwrap_err().starts_with("missing capabilities: CAP_BPF"));
        assert_eq!(check.fix, Fix::Capabilities(missing.iter().map(|c| c.name).collect()));
    }
}
