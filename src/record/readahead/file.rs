//! A file that a program reads, opened once more to have the kernel read parts of it.

use crate::record::readahead::pattern::{JOINED, Range};
use rustix::fs::{Advice, FileType, Mode, OFlags};
use rustix::io::{Errno, ReadWriteFlags};
use std::fs::File;
use std::io::{self, IoSliceMut};
use std::num::NonZeroU64;
use std::os::fd::AsRawFd as _;

/// Opened only to be read ahead.
#[derive(Debug)]
pub struct Opened {
    file: File,
    size: u64,
}

impl Opened {
    /// What the process has open at that descriptor, if it is a regular file with that inode: the number may be of another
    /// file by now.
    ///
    /// # Errors
    /// When it is not, and when it cannot be opened.
    pub fn of(pid: u32, fd: u64, ino: u64) -> io::Result<Self> {
        let path = format!("/proc/{pid}/fd/{fd}");
        // Opening a device or a FIFO may have effects: looked at first.
        let looked = rustix::fs::open(path, OFlags::PATH | OFlags::CLOEXEC, Mode::empty())?;
        let stat = rustix::fs::fstat(&looked)?;
        let regular = FileType::from_raw_mode(stat.st_mode) == FileType::RegularFile;
        if !regular || stat.st_ino != ino {
            return Err(io::Error::other("another file has that descriptor now"));
        }
        let same = format!("/proc/self/fd/{}", looked.as_raw_fd());
        let file = rustix::fs::open(same, OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NONBLOCK, Mode::empty())?;
        // A look at a byte reads no more than its page.
        rustix::fs::fadvise(&file, 0, None, Advice::Random)?;
        Ok(Self { file: File::from(file), size: stat.st_size as u64 })
    }

    /// How long it was when it was opened.
    pub const fn size(&self) -> u64 {
        self.size
    }

    /// Is the begin of the range in the page cache? `false` where its file system cannot say.
    pub fn has(&self, range: Range) -> bool {
        let mut byte = [0];
        // Fails where it would wait for the device: preadv2(2).
        let read =
            rustix::io::preadv2(&self.file, &mut [IoSliceMut::new(&mut byte)], range.offset, ReadWriteFlags::NOWAIT);
        !matches!(read, Err(Errno::AGAIN | Errno::OPNOTSUPP))
    }

    /// Has the kernel read the range into the page cache, and does not wait for it.
    ///
    /// # Errors
    /// When the kernel refuses it.
    pub fn ask(&self, range: Range) -> io::Result<()> {
        // Of one request the kernel reads no more than it reads ahead of the device at a time (force_page_cache_ra).
        let end = range.offset.saturating_add(range.bytes).min(self.size);
        for offset in (range.offset..end).step_by(JOINED as usize) {
            let bytes = NonZeroU64::new(JOINED.min(end - offset));
            rustix::fs::fadvise(&self.file, offset, bytes, Advice::WillNeed)?;
        }
        Ok(())
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use std::os::unix::fs::MetadataExt as _;

    #[test]
    fn the_file_of_a_descriptor_is_opened_and_no_other() {
        let mut file = tempfile::NamedTempFile::new().unwrap();
        io::Write::write_all(&mut file, &[7; 9000]).unwrap();
        let ino = file.as_file().metadata().unwrap().ino();
        let (pid, fd) = (std::process::id(), file.as_file().as_raw_fd() as u64);
        let opened = Opened::of(pid, fd, ino).unwrap();
        assert_eq!(opened.size(), 9000);
        let range = Range { offset: 0, bytes: 4096 };
        opened.ask(range).unwrap();
        assert!(opened.has(range), "it was just written");
        assert!(Opened::of(pid, fd, ino + 1).is_err());
        assert!(Opened::of(pid, 1_000_000, ino).is_err());
        let null = File::open("/dev/null").unwrap();
        let ino = null.metadata().unwrap().ino();
        assert!(Opened::of(pid, null.as_raw_fd() as u64, ino).is_err(), "no regular file");
    }
}
