//! Debian's kernels: found by apt, fetched without installing them, unpacked below `target/vm`.

use anyhow::{Context, Result, anyhow, bail};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::shell;

/// The kernels that the tests run on: those of Debian 12, with single user probes only, and with `uprobe.multi`.
pub const VERSIONS: &[&str] = &["6.1", "6.12"];

/// A kernel that is unpacked.
pub struct Kernel {
    pub version: &'static str,
    /// As in `uname -r`.
    pub release: String,
    /// The bootable image.
    pub image: PathBuf,
    /// What `lib/modules` is in.
    pub base: PathBuf,
}

/// The kernel of a version, fetched unless the newest one is there already.
pub fn get(version: &'static str, dir: &Path) -> Result<Kernel> {
    for tool in ["apt-cache", "apt-get", "dpkg-deb"] {
        if shell::which(tool).is_none() {
            bail!("{tool} is not there: the kernels are Debian's packages, so this needs Debian or Ubuntu");
        }
    }
    let base = dir.join(format!("kernel-{version}"));
    // Lists that are old name packages that the servers do not have any more.
    let mut failure = match fetch(version, &base) {
        Ok(()) => return unpacked(version, base),
        Err(why) => why,
    };
    if shell::is_root() {
        shell::run(Command::new("apt-get").args(["-qq", "update"]))?;
        match fetch(version, &base) {
            Ok(()) => return unpacked(version, base),
            Err(why) => failure = why,
        }
    }
    if base.exists() {
        eprintln!("warning: {failure:#}; the kernel in {} is used", base.display());
        return unpacked(version, base);
    }
    Err(failure)
}

fn fetch(version: &str, base: &Path) -> Result<()> {
    let names = shell::output("apt-cache", &["pkgnames", &format!("linux-image-{version}.")])?;
    let package = newest(&names, version).ok_or_else(|| {
        anyhow!(
            "apt knows no package linux-image-{version}.*-cloud-amd64; in Debian 12 the suite bookworm-security has it \
             (6.12 also bookworm-backports): add it to /etc/apt/sources.list, then apt-get update"
        )
    })?;
    // Written last, so that it stands only beside a complete kernel.
    let stamp = base.join("package");
    if fs::read_to_string(&stamp).is_ok_and(|have| have == package) {
        return Ok(());
    }
    let download = base.with_file_name(format!("download-{version}"));
    for old in [base, &download] {
        if old.exists() {
            fs::remove_dir_all(old).with_context(|| format!("cannot remove {}", old.display()))?;
        }
    }
    fs::create_dir_all(&download).with_context(|| format!("cannot make {}", download.display()))?;
    let mut command = Command::new("apt-get");
    shell::run(command.args(["-qq", "download", package]).current_dir(&download).stderr(Stdio::null()))
        .with_context(|| format!("cannot fetch {package}; is there a network?"))?;
    let file = only_entry(&download)?;
    shell::run(Command::new("dpkg-deb").arg("-x").args([&file, base]))?;
    let release = release(base)?;
    // The package makes this list when it is installed.
    shell::run(Command::new("depmod").arg("-b").arg(base).arg(release))?;
    fs::remove_dir_all(&download).with_context(|| format!("cannot remove {}", download.display()))?;
    fs::write(&stamp, package).with_context(|| format!("cannot write {}", stamp.display()))
}

fn unpacked(version: &'static str, base: PathBuf) -> Result<Kernel> {
    let release = release(&base)?;
    let image = base.join("boot").join(format!("vmlinuz-{release}"));
    if !image.is_file() {
        bail!("{} is not in the package: remove {} and try again", image.display(), base.display());
    }
    Ok(Kernel { version, release, image, base })
}

fn release(base: &Path) -> Result<String> {
    let modules = only_entry(&base.join("lib/modules"))?;
    Ok(modules.file_name().unwrap_or_default().to_string_lossy().into_owned())
}

fn only_entry(dir: &Path) -> Result<PathBuf> {
    let entries = fs::read_dir(dir).with_context(|| format!("cannot list {}", dir.display()))?;
    let mut paths: Vec<PathBuf> = entries.filter_map(|e| Some(e.ok()?.path())).collect();
    match (paths.pop(), paths.is_empty()) {
        (Some(path), true) => Ok(path),
        _ => bail!("{} should hold exactly one entry", dir.display()),
    }
}

/// The newest small kernel of a version among the names of packages.
fn newest<'a>(names: &'a str, version: &str) -> Option<&'a str> {
    let prefix = format!("linux-image-{version}.");
    let ours = |name: &&str| name.starts_with(&prefix) && name.ends_with("-cloud-amd64");
    names.lines().map(str::trim).filter(ours).max_by_key(|name| numbers(name))
}

/// The numbers in a name, in order: versions compare by them.
fn numbers(name: &str) -> Vec<u64> {
    name.split(|c: char| !c.is_ascii_digit()).filter_map(|digits| digits.parse().ok()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_newest_kernel_is_found_by_its_numbers() {
        let names = "linux-image-6.1.0-9-cloud-amd64\nlinux-image-6.1.0-56-cloud-amd64\nlinux-image-6.1.0-57-amd64\n\
                     linux-image-6.1.0-58-cloud-amd64-unsigned\nlinux-image-6.12.117+deb12-cloud-amd64\n\
                     linux-image-6.12.90+deb12-cloud-amd64\n";
        assert_eq!(newest(names, "6.1"), Some("linux-image-6.1.0-56-cloud-amd64"));
        assert_eq!(newest(names, "6.12"), Some("linux-image-6.12.117+deb12-cloud-amd64"));
        assert_eq!(newest(names, "5.10"), None);
    }

    #[test]
    fn a_directory_with_one_entry_gives_it() {
        let dir = std::env::temp_dir().join(format!("xtask-kernels-{}", std::process::id()));
        fs::create_dir_all(dir.join("one")).unwrap();
        assert_eq!(only_entry(&dir).unwrap(), dir.join("one"));
        fs::create_dir(dir.join("two")).unwrap();
        assert!(only_entry(&dir).is_err());
        fs::remove_dir_all(&dir).unwrap();
    }
}
