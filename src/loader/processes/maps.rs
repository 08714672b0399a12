//! Reads the text of `/proc/PID/maps`, `/proc/self/mountinfo`, `/proc/PID/status` and `/proc/PID/stat`.
//!
//! A line that does not have the kernel's form is passed over: these files are views of a process that is changing.

/// Device number in the kernel's own encoding.
const fn device(major: u32, minor: u32) -> u32 {
    (major << 20) | (minor & 0xf_ffff)
}

/// A mapping of a process.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mapping {
    pub start: u64,
    pub end: u64,
    /// Of the mapping's start in the file.
    pub offset: u64,
    /// `r`, `w`, `x`, then `p` (private) or `s` (shared); `-` for what it lacks.
    pub perms: [u8; 4],
    /// Device number, (major << 20) | minor; 0 without a file.
    pub dev: u32,
    /// 0 without a file.
    pub inode: u64,
    /// As the process sees it; empty, or a name in brackets, without a file.
    pub path: Vec<u8>,
    /// The file has no name any more.
    pub deleted: bool,
}

impl Mapping {
    /// Code of a file: what can be probed.
    pub fn is_code(&self) -> bool {
        self.inode != 0 && self.perms[2] == b'x'
    }
}

/// The mappings in the content of `/proc/PID/maps`.
pub fn mappings(text: &[u8]) -> Vec<Mapping> {
    lines(text).filter_map(mapping).collect()
}

/// A line of it.
pub fn mapping(line: &[u8]) -> Option<Mapping> {
    let mut fields = line.splitn(6, |&b| b == b' ');
    let (start, end) = pair(fields.next()?, b'-')?;
    let perms = fields.next()?.try_into().ok()?;
    let offset = hex(fields.next()?)?;
    let (major, minor) = pair(fields.next()?, b':')?;
    let inode = decimal(fields.next()?)?;
    // Padded to a column; a path starts with a slash, so no blank of it is lost.
    let path = fields.next().unwrap_or_default().trim_ascii_start();
    let (path, deleted) = match path.strip_suffix(b" (deleted)") {
        Some(path) => (path, true),
        None => (path, false),
    };
    let dev = device(u32::try_from(major).ok()?, u32::try_from(minor).ok()?);
    Some(Mapping { start, end, offset, perms, dev, inode, path: unescape(path, b"\n"), deleted })
}

/// A mounted file system.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MountEntry {
    pub mount_id: i32,
    pub parent: i32,
    /// Device number, (major << 20) | minor.
    pub dev: u32,
    /// The directory of the file system that is mounted.
    pub root: Vec<u8>,
    /// Where it is mounted.
    pub path: Vec<u8>,
    pub options: Vec<u8>,
    pub fstype: Vec<u8>,
    pub source: Vec<u8>,
    /// Options of the file system, not of this mount of it.
    pub super_options: Vec<u8>,
}

/// The mounts in the content of `/proc/PID/mountinfo`.
pub fn mounts(text: &[u8]) -> Vec<MountEntry> {
    lines(text).filter_map(mount).collect()
}

fn mount(line: &[u8]) -> Option<MountEntry> {
    let mut fields = line.split(|&b| b == b' ');
    let mount_id = decimal(fields.next()?)?;
    let parent = decimal(fields.next()?)?;
    let mut dev = fields.next()?.splitn(2, |&b| b == b':');
    let dev = device(decimal(dev.next()?)?, decimal(dev.next()?)?);
    let mut text = |field: &[u8]| unescape(field, b" \t\n\\#");
    let [root, path, options] = [fields.next()?, fields.next()?, fields.next()?].map(&mut text);
    // Any number of optional fields, up to a dash.
    fields.by_ref().find(|field| field == b"-")?;
    let [fstype, source, super_options] =
        [fields.next()?, fields.next()?, fields.next().unwrap_or_default()].map(&mut text);
    Some(MountEntry { mount_id, parent, dev, root, path, options, fstype, source, super_options })
}

/// Fields of `/proc/PID/status`. `None` and empty: not there.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Status {
    pub tgid: Option<u32>,
    pub ppid: Option<u32>,
    /// The real user.
    pub uid: Option<u32>,
    /// 0: none, 1: strict, 2: filter. Absent from kernels without seccomp.
    pub seccomp: Option<u32>,
    /// The process that traces it with ptrace(2); 0: none.
    pub tracer: Option<u32>,
    /// How many filters its system calls go through (Linux 5.9).
    pub filters: Option<u32>,
    /// The thread's number in each of its PID namespaces, outermost first.
    pub ns_pid: Vec<u32>,
}

/// Reads the content of `/proc/PID/status`.
pub fn status(text: &[u8]) -> Status {
    let mut status = Status::default();
    for line in lines(text) {
        let Some(colon) = line.iter().position(|&b| b == b':') else { continue };
        let (key, rest) = (&line[..colon], &line[colon + 1..]);
        let mut values = rest.split(u8::is_ascii_whitespace).filter(|v| !v.is_empty());
        match key {
            b"Tgid" => status.tgid = values.next().and_then(decimal),
            b"PPid" => status.ppid = values.next().and_then(decimal),
            b"Uid" => status.uid = values.next().and_then(decimal),
            b"TracerPid" => status.tracer = values.next().and_then(decimal),
            b"Seccomp" => status.seccomp = values.next().and_then(decimal),
            b"Seccomp_filters" => status.filters = values.next().and_then(decimal),
            b"NSpid" => status.ns_pid = values.filter_map(decimal).collect(),
            _ => {}
        }
    }
    status
}

/// Fields of `/proc/PID/stat`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Stat {
    pub pid: u32,
    /// At most 15 bytes, of any kind.
    pub comm: Vec<u8>,
    pub state: char,
    pub ppid: u32,
    /// It ends: the kernel has begun to take away what it has, which may take a while.
    pub exiting: bool,
    /// Clock ticks (`sysconf(_SC_CLK_TCK)`) since boot; with the pid it names a process for ever.
    pub start_ticks: u64,
}

/// `include/linux/sched.h`.
const PF_EXITING: u64 = 4;

/// Reads the content of `/proc/PID/stat`; `None` when it has another form.
pub fn stat(text: &[u8]) -> Option<Stat> {
    // The name is whatever the program set, parentheses and blanks included: it ends at the last parenthesis.
    let open = text.iter().position(|&b| b == b'(')?;
    let close = text.iter().rposition(|&b| b == b')')?;
    let comm = text.get(open + 1..close)?.to_vec();
    let mut fields = text[close + 1..].split(u8::is_ascii_whitespace).filter(|f| !f.is_empty());
    let state = char::from(*fields.next()?.first()?);
    let parent = decimal(fields.next()?)?;
    // proc_pid_stat(5): the state is field 3, the parent 4, the flags 9, the start 22.
    let flags: u64 = decimal(fields.nth(9 - 5)?)?;
    let start_ticks = decimal(fields.nth(22 - 10)?)?;
    let exiting = flags & PF_EXITING != 0;
    Some(Stat { pid: decimal(text[..open].trim_ascii())?, comm, state, ppid: parent, exiting, start_ticks })
}

fn lines(text: &[u8]) -> impl Iterator<Item = &[u8]> {
    text.split(|&b| b == b'\n').filter(|line| !line.is_empty())
}

fn hex(field: &[u8]) -> Option<u64> {
    u64::from_str_radix(std::str::from_utf8(field).ok()?, 16).ok()
}

fn decimal<T: std::str::FromStr>(field: &[u8]) -> Option<T> {
    std::str::from_utf8(field).ok()?.parse().ok()
}

/// Two hexadecimal numbers.
fn pair(field: &[u8], between: u8) -> Option<(u64, u64)> {
    let at = field.iter().position(|&b| b == between)?;
    Some((hex(&field[..at])?, hex(&field[at + 1..])?))
}

/// Puts back the bytes of `escaped`, which the kernel wrote as a backslash and three octal digits.
fn unescape(field: &[u8], escaped: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(field.len());
    let mut rest = field;
    while let Some((&first, after)) = rest.split_first() {
        let byte = match after {
            [a @ b'0'..=b'3', b @ b'0'..=b'7', c @ b'0'..=b'7', ..] if first == b'\\' => {
                Some(((a - b'0') << 6) | ((b - b'0') << 3) | (c - b'0')).filter(|byte| escaped.contains(byte))
            }
            _ => None,
        };
        out.push(byte.unwrap_or(first));
        rest = if byte.is_some() { &after[3..] } else { after };
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn one(line: &str) -> Mapping {
        mappings(line.as_bytes()).pop().unwrap()
    }

    #[test]
    fn a_mapping_of_a_library() {
        let m = one("7f1c2a000000-7f1c2a155000 r-xp 00026000 fd:01 1837                      /usr/lib/libc.so.6\n");
        assert_eq!((m.start, m.end, m.offset), (0x7f1c_2a00_0000, 0x7f1c_2a15_5000, 0x26000));
        assert_eq!((m.dev, m.inode, &m.perms), ((0xfd << 20) | 1, 1837, b"r-xp"));
        assert_eq!((m.path.as_slice(), m.deleted, m.is_code()), (&b"/usr/lib/libc.so.6"[..], false, true));
    }

    #[test]
    fn mappings_without_a_file_and_with_odd_names() {
        let m = one("7ffd1-7ffd2 rw-p 00000000 00:00 0 ");
        assert!(m.path.is_empty() && m.inode == 0 && !m.is_code());
        assert_eq!(one("7ffd1-7ffd2 r-xp 00000000 00:00 0   [vdso]").path, b"[vdso]");
        let m = one("1-2 r-xp 0 08:100000 9   /tmp/a b\\012c\\040 (deleted) (deleted)");
        assert_eq!(m.path, b"/tmp/a b\nc\\040 (deleted)");
        assert!(m.deleted);
        let text = b"1-2 r-xp 0 08:01 9   /tmp/\xff\xfe\nnonsense\n\n3-4 r--p 0 08:01 9   /x\n";
        let paths: Vec<_> = mappings(text).into_iter().map(|m| m.path).collect();
        assert_eq!(paths, [b"/tmp/\xff\xfe".to_vec(), b"/x".to_vec()]);
    }

    #[test]
    fn lines_of_another_form_are_passed_over() {
        for line in [
            "",
            "-",
            "1-2",
            "1-2 r-xp",
            "1-2 r-x 0 8:1 9 /x",
            "1-2 r-xp 0 8 9 /x",
            "1-g r-xp 0 8:1 9 /x",
            "1-2 r-xp 0 8:1 x /x",
            "11111111111111111-2 r-xp 0 8:1 9 /x",
            "1-2 r-xp 0 8:111111111 9 /x",
        ] {
            assert_eq!(mappings(line.as_bytes()), [], "{line}");
        }
    }

    #[test]
    fn own_mappings_have_our_program_as_code() {
        use std::os::unix::{ffi::OsStrExt, fs::MetadataExt};
        let exe = std::env::current_exe().unwrap();
        let inode = exe.metadata().unwrap().ino();
        let maps = mappings(&std::fs::read("/proc/self/maps").unwrap());
        let lines = std::fs::read_to_string("/proc/self/maps").unwrap().lines().count();
        assert!(maps.len().abs_diff(lines) <= 4, "{} of {lines}", maps.len());
        let code: Vec<_> = maps.iter().filter(|m| m.is_code() && m.path == exe.as_os_str().as_bytes()).collect();
        assert!(!code.is_empty() && code.iter().all(|m| m.inode == inode), "{code:?}");
    }

    #[test]
    fn a_mount_with_optional_fields_and_escapes() {
        let text = b"36 35 98:0 /mnt1 /mnt\\040two\\134x rw,noatime master:1 propagate_from:2 - ext3 /dev/root rw,errors=continue\n\
            37 35 0:22 / /t rw - tmpfs  rw,size=1k\n\
            38 35 0:23 / /no rw master:1\n\
            39 35 zz / /no rw - x y z\n";
        let found = mounts(text);
        assert_eq!(found.len(), 2);
        let m = &found[0];
        assert_eq!((m.mount_id, m.parent, m.dev), (36, 35, 98 << 20));
        assert_eq!((m.root.as_slice(), m.path.as_slice()), (&b"/mnt1"[..], &b"/mnt two\\x"[..]));
        assert_eq!((m.options.as_slice(), m.fstype.as_slice()), (&b"rw,noatime"[..], &b"ext3"[..]));
        assert_eq!((m.source.as_slice(), m.super_options.as_slice()), (&b"/dev/root"[..], &b"rw,errors=continue"[..]));
        assert_eq!((found[1].source.as_slice(), found[1].dev), (&b""[..], 22));
    }

    #[test]
    fn own_mounts_have_a_root() {
        let text = std::fs::read("/proc/self/mountinfo").unwrap();
        let found = mounts(&text);
        assert_eq!(found.len(), lines(&text).count());
        assert!(found.iter().any(|m| m.path == b"/"));
        assert!(found.iter().any(|m| m.path == b"/proc" && m.fstype == b"proc"));
    }

    #[test]
    fn status_of_a_contained_process() {
        let text = b"Name:\ta:b\nState:\tt (tracing stop)\nTgid:\t12\nPPid:\t3\nTracerPid:\t44\nUid:\t1000\t0\t0\t0\nNSpid:\t12\t7\t1\nSeccomp:\t2\nSeccomp_filters:\t9\n";
        let expected = Status {
            tgid: Some(12),
            ppid: Some(3),
            uid: Some(1000),
            seccomp: Some(2),
            tracer: Some(44),
            filters: Some(9),
            ns_pid: vec![12, 7, 1],
        };
        assert_eq!(status(text), expected);
        assert_eq!(status(b"Uid:\nTgid: x\nState:\n:::\n"), Status::default());
    }

    #[test]
    fn own_status_and_stat_agree_with_the_system() {
        let s = status(&std::fs::read("/proc/self/status").unwrap());
        let t = stat(&std::fs::read("/proc/self/stat").unwrap()).unwrap();
        assert_eq!(s.tgid, Some(std::process::id()));
        assert_eq!((t.pid, t.ppid), (std::process::id(), std::os::unix::process::parent_id()));
        assert_eq!((s.uid, s.ppid), (Some(nix::unistd::getuid().as_raw()), Some(t.ppid)));
        assert_eq!(s.ns_pid.first(), Some(&std::process::id()));
    }

    #[test]
    fn stat_with_parentheses_in_the_name() {
        let tail = " S 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 1 21 4242 23 24";
        let t = stat(format!("77 (a) (b) R 1{tail}").as_bytes()).unwrap();
        assert_eq!((t.comm.as_slice(), t.state, t.ppid), (&b"a) (b"[..], 'R', 1));
        let t = stat(format!("77 (x){tail}").as_bytes()).unwrap();
        assert_eq!((t.comm.as_slice(), t.start_ticks, t.exiting), (&b"x"[..], 4242, false));
        let t = stat(format!("77 (x){}", tail.replace(" 10 ", " 4194572 ")).as_bytes()).unwrap();
        assert!(t.exiting && t.start_ticks == 4242);
        for odd in ["", "77", "77 (x", "77 )x(", "77 (x)", "77 (x) R", "x (x) R 1 2", "77 (x) R 1 2 3"] {
            assert_eq!(stat(odd.as_bytes()), None, "{odd}");
        }
    }

    proptest! {
        #[test]
        fn nothing_panics(text in prop::collection::vec(prop_oneof![any::<u8>(), prop::sample::select(b"0123456789 -:/\\()\n\tx".to_vec())], 0..300)) {
            mappings(&text);
            mounts(&text);
            status(&text);
            stat(&text);
        }
    }
}
