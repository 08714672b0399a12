//! The tracer's own PID namespace. Its process ids are those shown and accepted; the kernel side finds them
//! by how deep the namespace is, and its inode.

use crate::loader::kernel;
use crate::skel::TrialSkelBuilder;
use libbpf_rs::ProgramInput;
use libbpf_rs::skel::{OpenSkel as _, SkelBuilder as _};
use std::fs;
use std::mem::MaybeUninit;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;

/// The inode of the first PID namespace (`include/linux/proc_ns.h`).
const PROC_PID_INIT_INO: u32 = 0xEFFF_FFFC;

/// A PID namespace; the default is the node's own.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct PidNamespace {
    /// How many are around it.
    pub level: u32,
    pub inode: u32,
}

/// Is the tracer in a PID namespace of its own (a container), and not in the node's?
///
/// # Errors
/// When /proc is not there, or is that of another PID namespace.
pub fn is_nested() -> Result<bool, String> {
    let own = fs::read_link("/proc/self").map_err(|e| format!("/proc/self: {e}; is /proc mounted?"))?;
    if own != Path::new(&std::process::id().to_string()) {
        return Err(format!("/proc is that of another PID namespace: there this process is {}", own.display()));
    }
    Ok(inode()? != PROC_PID_INIT_INO)
}

fn inode() -> Result<u32, String> {
    let inode = fs::metadata("/proc/self/ns/pid").map_err(|e| format!("/proc/self/ns/pid: {e}"))?.ino();
    u32::try_from(inode).map_err(|_| format!("/proc/self/ns/pid has the inode {inode}"))
}

/// The tracer's own.
///
/// # Errors
/// When it is not known.
pub fn own() -> Result<PidNamespace, String> {
    if !is_nested()? {
        return Ok(PidNamespace::default());
    }
    // A mount of /proc shows only what is below it, so the kernel is asked.
    let refused = |e: libbpf_rs::Error| format!("how deep the PID namespace is: {}", kernel::reason(&e));
    kernel::libbpf_log();
    let mut store = MaybeUninit::uninit();
    let mut open = TrialSkelBuilder::default().open(&mut store).map_err(refused)?;
    open.progs.iot_trial_level.set_autoload(true);
    let level = open.load().map_err(refused)?.progs.iot_trial_level.test_run(ProgramInput::default());
    Ok(PidNamespace { level: level.map_err(refused)?.return_value, inode: inode()? })
}
