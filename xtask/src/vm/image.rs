//! The first file system of the virtual machine: busybox, the modules that reach the host's files and the disks, and init.

use anyhow::{Context, Result, bail};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::kernels::Kernel;
use crate::shell;

const MODULES: &[&str] = &[
    "virtio_pci",
    "virtio_blk",
    "virtiofs",
    "overlay",
    "ext4",
    "xfs",
    "loop",
    "null_blk",
    "configfs",
    "dm_mod",
    "lzo-rle", // zram compresses with it
    "zram",
];
const INIT: &str = include_str!("init.sh");
/// Directories that init mounts on.
const DIRECTORIES: &[&str] = &["bin", "proc", "sys", "dev", "h", "o", "n", "t", "m"];

/// Makes the image of a kernel and gives its path.
pub fn make(kernel: &Kernel) -> Result<PathBuf> {
    let mut archive = Archive::default();
    for name in DIRECTORIES {
        archive.directory(name);
    }
    let busybox = shell::which("busybox").context("busybox is not there: apt-get install busybox-static")?;
    archive.file("bin/busybox", &read(&busybox)?);
    archive.file("init", INIT.as_bytes());
    let mut order = String::new();
    for path in modules(kernel)? {
        let (name, bytes) = module(&path)?;
        archive.file(&format!("m/{name}"), &bytes);
        order += &format!("{name}\n");
    }
    archive.file("m/order", order.as_bytes());
    let image = kernel.base.join("initramfs");
    fs::write(&image, archive.finish()).with_context(|| format!("cannot write {}", image.display()))?;
    Ok(image)
}

fn read(path: &Path) -> Result<Vec<u8>> {
    fs::read(path).with_context(|| format!("cannot read {}", path.display()))
}

/// The files of the modules and of those that they need, in the order in which they load; some are in the kernel itself.
fn modules(kernel: &Kernel) -> Result<Vec<PathBuf>> {
    let mut paths: Vec<PathBuf> = Vec::new();
    for name in MODULES {
        let base = kernel.base.to_string_lossy();
        let modules = shell::output("modprobe", &["-d", &base, "-S", &kernel.release, "--show-depends", name])
            .with_context(|| format!("kernel {} has no {name}", kernel.release))?;
        for line in modules.lines() {
            if let Some(path) = line.strip_prefix("insmod ").map(|rest| PathBuf::from(rest.trim()))
                && !paths.contains(&path)
            {
                paths.push(path);
            }
        }
    }
    Ok(paths)
}

/// A module's name and its bytes; busybox loads none that are compressed.
fn module(path: &Path) -> Result<(String, Vec<u8>)> {
    let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let Some(plain) = name.strip_suffix(".xz") else {
        if path.extension().is_none_or(|extension| extension != "ko") {
            bail!("{} is packed in a way that is not known here", path.display());
        }
        return Ok((name, read(path)?));
    };
    let out = Command::new("xz").arg("-dc").arg(path).output().context("cannot start xz")?;
    if !out.status.success() {
        bail!("xz cannot unpack {}: {}", path.display(), String::from_utf8_lossy(&out.stderr));
    }
    Ok((plain.to_owned(), out.stdout))
}

/// A cpio archive as the kernel reads it, Documentation/driver-api/early-userspace/buffer-format.rst.
#[derive(Default)]
struct Archive {
    bytes: Vec<u8>,
    entries: u32,
}

impl Archive {
    fn directory(&mut self, name: &str) {
        self.entry(name, 0o040_755, &[]);
    }

    fn file(&mut self, name: &str, content: &[u8]) {
        self.entry(name, 0o100_755, content);
    }

    fn finish(mut self) -> Vec<u8> {
        self.entry("TRAILER!!!", 0, &[]);
        self.bytes
    }

    fn entry(&mut self, name: &str, mode: u32, content: &[u8]) {
        self.entries += 1;
        let mut header = String::from("070701");
        // Inode, mode, user, group, links, time, size, device (2), its number (2), length of the name, no checksum.
        let fields = [self.entries, mode, 0, 0, 1, 0, content.len() as u32, 0, 0, 0, 0, name.len() as u32 + 1, 0];
        for field in fields {
            header += &format!("{field:08x}");
        }
        self.bytes.extend(header.as_bytes());
        self.bytes.extend(name.as_bytes());
        self.bytes.push(0);
        self.align();
        self.bytes.extend(content);
        self.align();
    }

    fn align(&mut self) {
        self.bytes.resize(self.bytes.len().next_multiple_of(4), 0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_archive_has_aligned_entries_and_an_end() {
        let mut archive = Archive::default();
        archive.directory("bin");
        archive.file("init", b"hello");
        let bytes = archive.finish();
        assert_eq!(bytes.len() % 4, 0);
        let text = String::from_utf8_lossy(&bytes);
        // Magic, inode, mode; a header and its name end on a multiple of four.
        assert!(text.starts_with("07070100000001000041ed"), "{text}");
        let file = 110 + "bin\0".len() + 2;
        assert_eq!(&text[file..file + 22], "07070100000002000081ed");
        assert_eq!(&text[file + 54..file + 62], "00000005", "size");
        assert_eq!(&text[file + 94..file + 102], "00000005", "length of the name");
        assert_eq!(&text[file + 110..file + 115], "init\0");
        assert!(text.contains("hello") && text.trim_end_matches('\0').ends_with("TRAILER!!!"));
    }

    #[test]
    fn init_makes_what_it_mounts_on() {
        for name in ["/h", "/o", "/n", "/t"] {
            assert!(INIT.contains(&format!(" {name}")) && DIRECTORIES.contains(&&name[1..]), "{name}");
        }
    }
}
