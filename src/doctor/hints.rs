//! `doctor --fix-hints`: the commands that fix what the checks found, as lines for a shell.
//!
//! A command stands alone on its line only where it is safe to paste. What changes how the machine boots, or must be done
//! elsewhere, is a comment.

use crate::base::text::{escape, quoted};
use std::fs;
use std::path::{Path, PathBuf};

/// What fixes a check that failed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Fix {
    /// Nothing is wrong, or nothing can be done.
    Nothing,
    /// The way out of the check, as a comment for people.
    Advice,
    /// These capabilities are missing.
    Capabilities(Vec<&'static str>),
    /// Types of the kernel are missing.
    Types,
    /// The kernel is locked down.
    Lockdown,
    /// `/proc` is missing, or another namespace's.
    Proc,
    OpenFiles,
    /// `kernel.kptr_restrict` hides addresses from everyone.
    Addresses,
    /// The NFS server has exports and is not loaded.
    NfsServer,
}

/// A check that failed.
#[derive(Debug, Clone)]
pub struct Wrong {
    pub name: &'static str,
    pub why: String,
    pub way_out: &'static str,
    pub fix: Fix,
}

/// How packages are installed here.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Packages {
    tool: &'static str,
    install: &'static str,
    /// The package with the program setcap.
    setcap: &'static str,
    /// The package with a kernel that has BTF.
    kernel: &'static str,
    /// What writes the boot menu after a change of /etc/default/grub.
    boot: &'static str,
}

const PACKAGES: [Packages; 3] = [
    Packages {
        tool: "apt-get",
        install: "apt-get install",
        setcap: "libcap2-bin",
        kernel: "linux-image-amd64 (Debian) or linux-image-generic (Ubuntu)",
        boot: "update-grub",
    },
    Packages {
        tool: "dnf",
        install: "dnf install",
        setcap: "libcap",
        kernel: "kernel",
        boot: "grub2-mkconfig -o /boot/grub2/grub.cfg",
    },
    Packages {
        tool: "zypper",
        install: "zypper install",
        setcap: "libcap-progs",
        kernel: "kernel-default",
        boot: "grub2-mkconfig -o /boot/grub2/grub.cfg",
    },
];

/// What commands depend on.
#[derive(Debug, Clone)]
pub struct Machine {
    pub root: bool,
    pub sudo: bool,
    pub setcap: bool,
    pub packages: Option<Packages>,
    /// This program.
    pub program: PathBuf,
    /// sysfs is mounted.
    pub sysfs: bool,
    /// The hard limit on open files.
    pub most_files: u64,
}

impl Machine {
    /// This one.
    pub fn here(most_files: u64) -> Self {
        let path = std::env::var_os("PATH").unwrap_or_default();
        // Programs for root are not in the PATH of every user.
        let directories: Vec<PathBuf> =
            std::env::split_paths(&path).chain(["/usr/sbin", "/sbin"].map(PathBuf::from)).collect();
        let has = |program: &str| directories.iter().any(|directory| directory.join(program).is_file());
        Self {
            root: nix::unistd::geteuid().is_root(),
            sudo: has("sudo"),
            setcap: has("setcap"),
            packages: PACKAGES.into_iter().find(|packages| has(packages.tool)),
            program: std::env::current_exe().unwrap_or_else(|_| PathBuf::from("iotrace-bpf")),
            sysfs: Path::new("/sys/kernel").exists(),
            most_files,
        }
    }

    /// A command for root.
    fn as_root(&self, command: &str) -> String {
        if self.root || !self.sudo { command.to_owned() } else { format!("sudo {command}") }
    }
}

/// The NFS server exports something.
pub fn exports() -> bool {
    let is_export = |line: &str| !line.trim().is_empty() && !line.trim_start().starts_with('#');
    fs::read_to_string("/etc/exports").is_ok_and(|text| text.lines().any(is_export))
}

/// The lines for all of them.
pub fn lines(wrong: &[Wrong], machine: &Machine) -> Vec<String> {
    let mut lines = Vec::new();
    for (i, one) in wrong.iter().enumerate().filter(|(_, one)| one.fix != Fix::Nothing) {
        // Missing capabilities are several checks with one remedy.
        if one.fix == Fix::Advice || wrong[..i].iter().all(|before| before.fix != one.fix) {
            lines.extend(hint(one, machine));
        }
    }
    if lines.is_empty() {
        lines.push("# nothing to fix".to_owned());
    } else if !machine.root && !machine.sudo && lines.iter().any(|line| !line.starts_with('#')) {
        lines.insert(0, "# sudo is not installed: run these as root, for example in the shell of su -".to_owned());
    }
    lines
}

fn hint(wrong: &Wrong, machine: &Machine) -> Vec<String> {
    let mut lines = vec![format!("# {}: {}", wrong.name, escape(wrong.why.replace('\n', " ")))];
    match &wrong.fix {
        Fix::Nothing => {}
        Fix::Advice => lines.push(format!("#   {}", wrong.way_out)),
        Fix::Capabilities(missing) => lines.extend(capabilities(missing, machine)),
        Fix::Types if !machine.sysfs => lines.push(machine.as_root("mount -t sysfs sysfs /sys")),
        Fix::Types => {
            lines.push("#   install a kernel with CONFIG_DEBUG_INFO_BTF=y and boot it".to_owned());
            lines.extend(machine.packages.map(|p| format!("#   {} {}", machine.as_root(p.install), p.kernel)));
        }
        Fix::Lockdown => {
            lines.push(
                "#   remove lockdown=confidentiality from GRUB_CMDLINE_LINUX in /etc/default/grub, then".to_owned(),
            );
            let boot = machine.packages.map_or("update-grub", |packages| packages.boot);
            lines.push(format!("#   {} && {}", machine.as_root(boot), machine.as_root("reboot")));
        }
        // A mount over the /proc of others would harm them: only in a mount namespace of its own.
        Fix::Proc => {
            lines.push("#   put what you want to trace in place of doctor".to_owned());
            lines.push(machine.as_root(&format!(
                "unshare --mount sh -c 'mount -t proc proc /proc && exec \"$0\" \"$@\"' {} doctor",
                quoted(&machine.program)
            )));
        }
        Fix::OpenFiles if machine.most_files >= ENOUGH_FILES => lines.push(format!("ulimit -n {ENOUGH_FILES}")),
        Fix::OpenFiles => {
            lines.push(machine.as_root(&format!("prlimit --pid $$ --nofile={ENOUGH_FILES}:{ENOUGH_FILES}")));
        }
        Fix::Addresses => {
            lines.push(machine.as_root("sysctl kernel.kptr_restrict=1"));
            lines.push("#   until the next boot; for good: kernel.kptr_restrict = 1 in /etc/sysctl.d/".to_owned());
        }
        Fix::NfsServer => lines.push(machine.as_root("modprobe nfsd")),
    }
    lines
}

/// More than a trace needs.
const ENOUGH_FILES: u64 = 65536;

fn capabilities(missing: &[&str], machine: &Machine) -> Vec<String> {
    if machine.root {
        let names: Vec<_> =
            missing.iter().map(|name| format!("--cap-add={}", name.trim_start_matches("CAP_"))).collect();
        return vec![
            "#   root lacks them in a container: start that with --privileged --pid=host, or at least with".to_owned(),
            format!("#   {}", names.join(" ")),
        ];
    }
    let program = quoted(&machine.program);
    let mut lines = vec![
        "#   simplest: run it with sudo; a command that it launches still runs as you. Or give the program the"
            .to_owned(),
        "#   capabilities; whoever may execute it can then trace every process:".to_owned(),
    ];
    if !machine.setcap
        && let Some(packages) = machine.packages
    {
        lines.push(machine.as_root(&format!("{} {}", packages.install, packages.setcap)));
    }
    let names = missing.join(",").to_ascii_lowercase();
    lines.push(machine.as_root(&format!("setcap {names}+ep {program}")));
    // In sudoers other names need other quotes.
    if machine.sudo && Path::new(&program) == machine.program {
        lines.push("#   or let this user run it with sudo without a password, and become as good as root:".to_owned());
        let rule = format!("\"$USER ALL=(root) NOPASSWD: {program}\"");
        lines.push(format!("#   echo {rule} | sudo EDITOR=tee visudo -f /etc/sudoers.d/iotrace-bpf"));
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    fn machine() -> Machine {
        Machine {
            root: false,
            sudo: true,
            setcap: true,
            packages: Some(PACKAGES[0]),
            program: "/usr/bin/iotrace-bpf".into(),
            sysfs: true,
            most_files: 1 << 20,
        }
    }

    /// The commands, and the whole text, for a check that failed.
    fn hints(fix: Fix, machine: &Machine) -> (Vec<String>, String) {
        let wrong = Wrong { name: "a check", why: "it\nfails".into(), way_out: "do that", fix };
        let lines = lines(&[wrong.clone(), wrong], machine);
        (lines.iter().filter(|line| !line.starts_with('#')).cloned().collect(), lines.join("\n"))
    }

    #[test]
    fn each_fault_has_the_commands_of_its_machine() {
        let user = machine();
        let root = Machine { root: true, ..machine() };
        let suse =
            Machine { setcap: false, packages: Some(PACKAGES[2]), program: "/home/a b/it's".into(), ..machine() };
        let capabilities = || Fix::Capabilities(vec!["CAP_BPF", "CAP_SYSLOG"]);
        let few = Machine { most_files: 256, ..machine() };
        for (fix, machine, expected) in [
            (capabilities(), &user, &["sudo setcap cap_bpf,cap_syslog+ep /usr/bin/iotrace-bpf"][..]),
            (
                capabilities(),
                &suse,
                &["sudo zypper install libcap-progs", "sudo setcap cap_bpf,cap_syslog+ep '/home/a b/it'\\''s'"],
            ),
            (capabilities(), &root, &[]),
            (Fix::Types, &user, &[]),
            (Fix::Types, &Machine { sysfs: false, ..machine() }, &["sudo mount -t sysfs sysfs /sys"]),
            (Fix::Lockdown, &user, &[]),
            (Fix::OpenFiles, &user, &["ulimit -n 65536"]),
            (Fix::OpenFiles, &few, &["sudo prlimit --pid $$ --nofile=65536:65536"]),
            (Fix::Addresses, &root, &["sysctl kernel.kptr_restrict=1"]),
            (Fix::NfsServer, &user, &["sudo modprobe nfsd"]),
            (Fix::Advice, &user, &[]),
        ] {
            let (commands, text) = hints(fix.clone(), machine);
            assert_eq!(commands, expected, "{fix:?}");
            let shown = if fix == Fix::Advice { 2 } else { 1 };
            assert!(text.contains("# a check: it fails\n") && text.matches("a check").count() == shown, "{text}");
        }
        assert!(hints(capabilities(), &root).1.contains("--cap-add=BPF --cap-add=SYSLOG"));
        assert!(hints(Fix::Types, &suse).1.contains("sudo zypper install kernel-default"));
        assert!(hints(Fix::Lockdown, &user).1.contains("#   sudo update-grub && sudo reboot"));
        assert!(hints(Fix::Advice, &user).1.ends_with("#   do that"));
        assert_eq!(hints(Fix::Nothing, &user).1, "# nothing to fix");
    }

    #[test]
    fn without_sudo_the_commands_are_for_root() {
        let (commands, text) = hints(Fix::NfsServer, &Machine { sudo: false, ..machine() });
        assert_eq!(commands, ["modprobe nfsd"]);
        assert!(text.starts_with("# sudo is not installed"), "{text}");
    }

    #[test]
    fn no_text_of_a_check_leaves_its_comment() {
        let wrong = Wrong { name: "x", why: "a\nrm -rf /\r\u{2028}b".into(), way_out: "", fix: Fix::Advice };
        let all = lines(&[wrong], &machine()).join("\n");
        assert!(all.lines().all(|line| line.starts_with('#')), "{all}");
    }

    #[test]
    fn a_shell_accepts_what_is_printed() {
        let all = [
            Fix::Capabilities(vec!["CAP_BPF"]),
            Fix::Types,
            Fix::Lockdown,
            Fix::Proc,
            Fix::OpenFiles,
            Fix::Addresses,
            Fix::NfsServer,
        ];
        for machine in [machine(), Machine { program: "/a b/'$(touch x)'".into(), sysfs: false, ..machine() }] {
            for fix in &all {
                let text = hints(fix.clone(), &machine).1;
                let checked = std::process::Command::new("sh").args(["-n", "-c", &text]).output();
                assert!(checked.is_ok_and(|out| out.status.success() && out.stderr.is_empty()), "{text}");
            }
        }
    }
}
