//! Asks the kernel which file a mapping really shows. A path of overlayfs leads to an inode of its own, and probes go to
//! the one below it, which other paths may lead to as well.

use crate::event::{FileKey, wire};
use crate::loader::maps::Mapping;
use crate::skel::IotraceProgs;
use crate::skel::types::iot_real;
use libbpf_rs::ProgramInput;

/// The file that a process has mapped there; what /proc says, where the kernel cannot be asked (before Linux 5.17).
pub fn file(progs: &IotraceProgs<'_>, pid: u32, mapping: &Mapping) -> FileKey {
    let question = iot_real { pid, address: mapping.start, ..Default::default() };
    let mut bytes = wire::real_bytes(&question).to_vec();
    let input = ProgramInput { context_in: Some(&mut bytes), ..Default::default() };
    let asked = progs.iot_real_file.test_run(input).is_ok();
    let answer = wire::real(&bytes).filter(|answer| asked && answer.found != 0);
    let told = FileKey { dev: mapping.dev, generation: 0, ino: mapping.inode };
    answer.map_or(told, |a| FileKey { dev: a.dev, generation: a.generation, ino: a.ino })
}
