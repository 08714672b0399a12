//! Processes that breakpoints would harm.

use crate::loader::processes::maps;

/// Debuggers, by the names of their processes.
const DEBUGGERS: [&str; 5] = ["gdb", "gdbserver", "lldb", "lldb-server", "rr"];

/// Why a process must not get breakpoints.
///
/// Valgrind's tools read the code of their program, breakpoints included, make other code of it, and end it by SIGTRAP.
/// A debugger may set a breakpoint of its own where one of ours is: the kernel takes it for ours, and the program does
/// not stop.
pub(super) fn harmed(pid: u32) -> Option<String> {
    let exe = std::fs::read_link(format!("/proc/{pid}/exe")).unwrap_or_default();
    let name = exe.file_name().unwrap_or_default().as_encoded_bytes();
    if name.ends_with(b"-amd64-linux") && exe.components().any(|part| part.as_os_str() == "valgrind") {
        return Some("valgrind translates the program's code, and would translate the breakpoints".to_owned());
    }
    let status = std::fs::read(format!("/proc/{pid}/status")).map(|text| maps::status(&text)).unwrap_or_default();
    let tracer = status.tracer.filter(|tracer| *tracer != 0)?;
    let tracer = std::fs::read_to_string(format!("/proc/{tracer}/comm")).unwrap_or_default();
    let debugger = DEBUGGERS.into_iter().find(|name| *name == tracer.trim_end())?;
    Some(format!("{debugger} debugs the process, and would lose breakpoints to ours"))
}
