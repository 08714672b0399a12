//! Asks the kernel which file a mapping really shows. A path of overlayfs leads to an inode of its own, and probes go to
//! the one below it, which other paths may lead to as well.

use crate::event::{FileKey, Written, wire};
use crate::loader::code::examine::Seen;
use crate::skel::IotraceProgs;
use crate::skel::types::iot_real;
use libbpf_rs::ProgramInput;

/// The file that a process has mapped there; as in /proc where the kernel has no query (before Linux 5.17).
pub fn file(progs: &IotraceProgs<'_>, pid: u32, seen: &Seen) -> FileKey {
    let (dev, ino) = seen.inode();
    let from_proc = FileKey { dev, generation: 0, ino };
    let Seen::Mapping(mapping) = seen else { return from_proc };
    let answer = ask(progs, &iot_real { pid, address: mapping.start, fd: -1, ..Default::default() });
    answer.map_or(from_proc, |(file, _)| file)
}

/// The file that a thread has open as this descriptor, and when it was last written. Nothing of the file system is
/// asked, which may not answer.
pub fn descriptor(progs: &IotraceProgs<'_>, tid: u32, fd: i32) -> Option<(FileKey, Written)> {
    ask(progs, &iot_real { pid: tid, fd, ..Default::default() })
}

fn ask(progs: &IotraceProgs<'_>, question: &iot_real) -> Option<(FileKey, Written)> {
    let mut bytes = wire::real_bytes(question).to_vec();
    let input = ProgramInput { context_in: Some(&mut bytes), ..Default::default() };
    progs.iot_real_file.test_run(input).ok()?;
    let a = wire::real(&bytes).filter(|answer| answer.found != 0)?;
    let file = FileKey { dev: a.dev, generation: a.generation, ino: a.ino };
    Some((file, (a.sec as i64, i64::from(a.nsec))))
}
