//! Seccomp user notification: system calls of a command that wait until a listener lets them continue.
//!
//! See `seccomp_unotify(2)`. A call that waits is neither stopped nor traced in the sense of ptrace(2): its parent, a
//! debugger and a shell's job control see a process in a system call that takes a moment.
#![allow(unsafe_code)]

use nix::errno::Errno;
use nix::libc;
use std::io;
use std::os::fd::{AsRawFd as _, BorrowedFd, FromRawFd as _, OwnedFd};

/// `include/uapi/linux/audit.h`: `AUDIT_ARCH_X86_64`.
const X86_64: u32 = 0xc000_003e;
/// Bit 30 of a system call's number: x32.
const X32: u32 = 1 << 30;
/// Offsets in `struct seccomp_data`; of arguments the lower half.
const NR: u32 = 0;
const ARCH: u32 = 4;
const PROT: u32 = 16 + 8 * 2;
const FD: u32 = 16 + 8 * 4;

/// A call that waits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Notice {
    /// Names it towards the kernel.
    pub id: u64,
    /// The thread, in the receiver's PID namespace; 0: it has no number there.
    pub tid: u32,
    pub call: Call,
}

/// What a thread waits in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Call {
    /// `mmap` of this descriptor as code.
    Map(i32),
    /// The first call of a program, after its libraries are mapped and before it runs.
    Start,
    /// The first call of a forked process, and of a thread.
    Fork,
}

const fn statement(code: u32, k: u32) -> libc::sock_filter {
    libc::sock_filter { code: code as u16, jt: 0, jf: 0, k }
}

const fn jump(code: u32, k: u32, jt: u8, jf: u8) -> libc::sock_filter {
    libc::sock_filter { code: (libc::BPF_JMP | code) as u16, jt, jf, k }
}

const LOAD: u32 = libc::BPF_LD | libc::BPF_W | libc::BPF_ABS;
const EQUAL: u32 = libc::BPF_JEQ | libc::BPF_K;
const BITS: u32 = libc::BPF_JSET | libc::BPF_K;
const RETURN: u32 = libc::BPF_RET | libc::BPF_K;

/// `mmap` of a descriptor with `PROT_EXEC`, `set_tid_address` (C libraries call it when a program starts; musl also
/// after a fork) and `set_robust_list` (the GNU C library calls it then, and after a fork).
fn filter() -> [libc::sock_filter; 13] {
    [
        statement(LOAD, ARCH),
        jump(EQUAL, X86_64, 0, 10),
        statement(LOAD, NR),
        jump(EQUAL, libc::SYS_set_tid_address as u32, 7, 0),
        jump(EQUAL, libc::SYS_set_robust_list as u32, 6, 0),
        jump(EQUAL, libc::SYS_mmap as u32, 1, 0),
        jump(EQUAL, libc::SYS_mmap as u32 | X32, 0, 5),
        statement(LOAD, PROT),
        jump(BITS, libc::PROT_EXEC as u32, 0, 3),
        statement(LOAD, FD),
        // Memory without a file.
        jump(BITS, 1 << 31, 1, 0),
        statement(RETURN, libc::SECCOMP_RET_USER_NOTIF),
        statement(RETURN, libc::SECCOMP_RET_ALLOW),
    ]
}

/// From now on such calls of this thread, and of all that it begins, wait for the owner of the descriptor. It is closed
/// when the thread executes a program.
///
/// Without `CAP_SYS_ADMIN` the kernel wants `no_new_privs`, which would take their rights from `sudo` and its kind:
/// refused then.
///
/// # Errors
/// `EACCES` without the capability; `EBUSY` when a filter with a listener is there already (a container's, for
/// example); `EINVAL` before Linux 5.19.
pub fn install() -> io::Result<OwnedFd> {
    let mut filter = filter();
    let program = libc::sock_fprog { len: filter.len() as u16, filter: filter.as_mut_ptr() };
    // While the listener looks at a call no signal but a deadly one ends it: `mmap` does not know EINTR.
    let flags = libc::SECCOMP_FILTER_FLAG_NEW_LISTENER | libc::SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV;
    // SAFETY: the kernel reads the program, which lives until it returns; the other arguments are numbers.
    let fd = unsafe {
        libc::syscall(libc::SYS_seccomp, libc::SECCOMP_SET_MODE_FILTER, flags as libc::c_ulong, &raw const program)
    };
    // SAFETY: a descriptor that the kernel has just given us, and no other code has.
    Ok(Errno::result(fd).map(|fd| unsafe { OwnedFd::from_raw_fd(fd as i32) })?)
}

mod ioctl {
    use nix::libc;

    nix::ioctl_readwrite!(receive, b'!', 0, libc::seccomp_notif);
    nix::ioctl_readwrite!(send, b'!', 1, libc::seccomp_notif_resp);
}

/// The next call that waits; `None` when it was over before.
///
/// # Errors
/// When the descriptor is no listener.
pub fn receive(listener: BorrowedFd<'_>) -> io::Result<Option<Notice>> {
    let data = libc::seccomp_data { nr: 0, arch: 0, instruction_pointer: 0, args: [0; 6] };
    let mut notice = libc::seccomp_notif { id: 0, pid: 0, flags: 0, data };
    // SAFETY: the kernel writes a notice into `notice`, which is all zeros as it wants.
    match unsafe { ioctl::receive(listener.as_raw_fd(), &raw mut notice) } {
        Ok(_) => {}
        Err(Errno::ENOENT | Errno::EINTR | Errno::EAGAIN) => return Ok(None),
        Err(e) => return Err(e.into()),
    }
    let call = match i64::from(notice.data.nr) {
        libc::SYS_set_tid_address => Call::Start,
        libc::SYS_set_robust_list => Call::Fork,
        _ => Call::Map(notice.data.args[4] as i32),
    };
    Ok(Some(Notice { id: notice.id, tid: notice.pid, call }))
}

/// Has a call that waits and its listener wake each other on one processor, which takes a fraction of the time
/// (Linux 6.6).
pub fn wake_at_once(listener: BorrowedFd<'_>) {
    /// `SECCOMP_IOCTL_NOTIF_SET_FLAGS`, `SECCOMP_USER_NOTIF_FD_SYNC_WAKE_UP` of `include/uapi/linux/seccomp.h`.
    const SET_FLAGS: libc::c_ulong = nix::request_code_write!(b'!', 4, size_of::<u64>());
    const SYNC_WAKE_UP: libc::c_ulong = 1;
    // SAFETY: the kernel takes both as numbers. Older ones refuse.
    let _ = unsafe { libc::ioctl(listener.as_raw_fd(), SET_FLAGS, SYNC_WAKE_UP) };
}

/// Lets a call go on. One that is over by now needs it no more.
pub fn go_on(listener: BorrowedFd<'_>, id: u64) {
    let flags = libc::SECCOMP_USER_NOTIF_FLAG_CONTINUE as u32;
    let mut response = libc::seccomp_notif_resp { id, val: 0, error: 0, flags };
    // SAFETY: the kernel reads the response, which lives until it returns.
    let _ = unsafe { ioctl::send(listener.as_raw_fd(), &raw mut response) };
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The filter's verdict on a call: its few instructions, interpreted.
    fn verdict(nr: u32, arch: u32, prot: u32, fd: i32) -> u32 {
        let filter = filter();
        let (mut at, mut value) = (0, 0);
        loop {
            let insn = filter[at];
            let code = u32::from(insn.code);
            at += 1;
            let taken = match code {
                c if c == LOAD => {
                    value = match insn.k {
                        NR => nr,
                        ARCH => arch,
                        PROT => prot,
                        FD => fd as u32,
                        other => panic!("{other}"),
                    };
                    continue;
                }
                c if c == RETURN => return insn.k,
                c if c == libc::BPF_JMP | EQUAL => value == insn.k,
                c if c == libc::BPF_JMP | BITS => value & insn.k != 0,
                other => panic!("{other}"),
            };
            at += usize::from(if taken { insn.jt } else { insn.jf });
        }
    }

    #[test]
    fn only_code_of_files_and_beginnings_wait() {
        let waits = |nr: i64, prot, fd| verdict(nr as u32, X86_64, prot, fd) == libc::SECCOMP_RET_USER_NOTIF;
        assert!(waits(libc::SYS_mmap, 5, 3));
        assert!(waits(libc::SYS_mmap, 7, 0));
        assert!(waits(libc::SYS_mmap | i64::from(X32), 5, 3));
        assert!(!waits(libc::SYS_mmap, 5, -1), "memory without a file");
        assert!(!waits(libc::SYS_mmap, 3, 3), "data");
        assert!(waits(libc::SYS_set_tid_address, 0, 0));
        assert!(waits(libc::SYS_set_robust_list, 0, 0));
        for nr in [libc::SYS_read, libc::SYS_mprotect, libc::SYS_execve, libc::SYS_clone, 335, 336] {
            assert!(!waits(nr, 7, 3), "{nr}");
        }
        // The numbers of 32-bit programs mean something else.
        assert_eq!(verdict(libc::SYS_mmap as u32, 0x4000_0003, 5, 3), libc::SECCOMP_RET_ALLOW);
    }
}
