//! Which QEMU runs the kernels: the system's, or in Debian 12 that of its backports, fetched without installing it.

use anyhow::{Context, Result, bail};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::shell;

const PROGRAM: &str = "qemu-system-x86_64";
/// From this version on what QEMU translated for one process is used for others that run the same file, wherever it is
/// mapped (`CF_PCREL` of target/i386, in 8.0). A program starts in half the time then, the tracer in three quarters.
const FAST: u32 = 8;
/// Debian 12 has 7.2. All libraries that the one of its backports needs are those of 7.2.
const RELEASE: &str = "VERSION_CODENAME=bookworm";
const SUITE: &str = "bookworm-backports";
const SOURCE: &str = "deb [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] http://deb.debian.org/debian";
/// The program, and the firmware that it loads.
const PACKAGES: [&str; 3] = ["qemu-system-x86", "qemu-system-data", "seabios"];
/// Where the packages have firmware.
const FIRMWARE: [&str; 2] = ["usr/share/qemu", "usr/share/seabios"];

/// An emulator that runs here.
pub struct Emulator {
    program: PathBuf,
    /// Where its firmware is, if it would not find it by itself.
    firmware: Vec<PathBuf>,
}

impl Emulator {
    fn unpacked(base: &Path) -> Self {
        Self {
            program: base.join("usr/bin").join(PROGRAM),
            firmware: FIRMWARE.iter().map(|dir| base.join(dir)).collect(),
        }
    }

    /// A command that starts it.
    pub fn command(&self) -> Command {
        let mut command = Command::new(&self.program);
        for dir in &self.firmware {
            command.arg("-L").arg(dir);
        }
        command
    }

    fn version(&self) -> Result<u32> {
        let text = shell::output(&self.program.to_string_lossy(), &["--version"])?;
        major(&text).with_context(|| format!("{} has an unknown version: {text}", self.program.display()))
    }
}

/// The emulator to use; below `dir` is the one that was fetched.
pub fn get(dir: &Path) -> Result<Emulator> {
    let system = Emulator { program: PROGRAM.into(), firmware: Vec::new() };
    let is_release = fs::read_to_string("/etc/os-release").is_ok_and(|text| text.lines().any(|line| line == RELEASE));
    if !is_release || system.version()? >= FAST {
        return Ok(system);
    }
    let base = dir.join("qemu");
    let unpacked = Emulator::unpacked(&base);
    if unpacked.version().is_ok() {
        return Ok(unpacked);
    }
    match fetch(&base).and_then(|()| unpacked.version()) {
        Ok(_) => Ok(unpacked),
        Err(why) => {
            eprintln!("warning: {why:#}; the QEMU of this system is used, which is slower");
            Ok(system)
        }
    }
}

/// Unpacks the packages of the backports to `base`. Their lists are beside it: the system's sources stay as they are.
fn fetch(base: &Path) -> Result<()> {
    let download = base.with_file_name("download-qemu");
    for old in [base, &download] {
        if old.exists() {
            fs::remove_dir_all(old).with_context(|| format!("cannot remove {}", old.display()))?;
        }
    }
    for part in ["lists/partial", "cache", "packages"] {
        let part = download.join(part);
        fs::create_dir_all(&part).with_context(|| format!("cannot make {}", part.display()))?;
    }
    let list = download.join("sources.list");
    fs::write(&list, format!("{SOURCE} {SUITE} main\n")).with_context(|| format!("cannot write {}", list.display()))?;
    let apt = |action: &[&str]| {
        let mut command = Command::new("apt-get");
        command.args(["-qq", "-o", "APT::Sandbox::User=root", "-o", "Dir::Etc::SourceParts=/dev/null"]);
        for (option, value) in [("Etc::SourceList", &list), ("State::Lists", &download.join("lists"))] {
            command.arg("-o").arg(format!("Dir::{option}={}", value.display()));
        }
        command.arg("-o").arg(format!("Dir::Cache={}", download.join("cache").display()));
        shell::run(command.args(action).current_dir(download.join("packages")).stderr(Stdio::null()))
            .with_context(|| format!("cannot fetch QEMU from {SUITE}; is there a network?"))
    };
    apt(&["update"])?;
    apt(&[&["-t", SUITE, "download"], &PACKAGES[..]].concat())?;
    let unpacked = download.join("unpacked");
    let mut count = 0;
    for file in fs::read_dir(download.join("packages")).context("cannot list what was fetched")? {
        let file = file.context("cannot list what was fetched")?.path();
        shell::run(Command::new("dpkg-deb").arg("-x").args([&file, &unpacked]))?;
        count += 1;
    }
    if count != PACKAGES.len() {
        bail!("{SUITE} gave {count} packages of {}", PACKAGES.len());
    }
    // Last, so that it is only there when it is complete.
    fs::rename(&unpacked, base).with_context(|| format!("cannot rename {}", unpacked.display()))?;
    fs::remove_dir_all(&download).with_context(|| format!("cannot remove {}", download.display()))
}

/// The first number of the version in what QEMU prints.
fn major(text: &str) -> Option<u32> {
    text.strip_prefix("QEMU emulator version ")?.split('.').next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_version_is_read() {
        assert_eq!(major("QEMU emulator version 10.0.2 (Debian 1:10.0.2+ds-2)\nCopyright"), Some(10));
        assert_eq!(major("QEMU emulator version 7.2.22"), Some(7));
        assert_eq!(major("bash: no such program"), None);
    }
}
