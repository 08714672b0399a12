//! Functions inside the kernel: where it allows probes on them, each system call has the ones that it goes through; where it
//! does not, verdicts report that, and the rest is traced.

use crate::common::live::{self, Data};
use iotrace_bpf::rows::Span;
use iotrace_bpf::vocabulary::Layer;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

fn run(program: &str, args: &[&str]) {
    let out = Command::new(program).args(args).output().unwrap_or_else(|e| panic!("{program}: {e}"));
    assert!(out.status.success(), "{program} {args:?}: {}", String::from_utf8_lossy(&out.stderr));
}

/// An ext4 of its own, whatever the tests run on.
struct Mounted(PathBuf);

impl Mounted {
    fn new(work: &Path) -> Self {
        let (image, mount) = (work.join("image"), work.join("mount"));
        fs::File::create(&image).unwrap().set_len(64 << 20).unwrap();
        fs::create_dir(&mount).unwrap();
        run("mkfs.ext4", &["-q", "-F", image.to_str().unwrap()]);
        run("mount", &["-o", "loop", image.to_str().unwrap(), mount.to_str().unwrap()]);
        Self(mount)
    }
}

impl Drop for Mounted {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg(&self.0).status();
    }
}

const PROGRAM: &str = "
import os, sys
name = sys.argv[1] + '/data'
fd = os.open(name, os.O_RDWR | os.O_CREAT)
for n in range(3):
    assert os.pwrite(fd, b'x' * 10000, n * 10000) == 10000
os.fsync(fd)
os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_DONTNEED)
os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_RANDOM)
assert len(os.pread(fd, 10000, 0)) == 10000
assert len(os.pread(fd, 50000, 20000)) == 10000
os.lseek(fd, 4096, os.SEEK_SET)
assert os.readv(fd, [bytearray(100), bytearray(200)]) == 300
os.ftruncate(fd, 12345)
os.posix_fallocate(fd, 20000, 5000)
os.close(fd)
os.rename(name, name + '2')
os.unlink(name + '2')
try:
    os.open(name, os.O_RDONLY)
except FileNotFoundError:
    pass
";

/// What system calls on the file call, how often, and with which offset, bytes asked for and moved.
type Calls<'a> = Vec<(&'a str, Option<i64>, Option<i64>, Option<i64>)>;

fn inside<'a>(data: &'a Data, layer: Layer, file: &Path) -> Calls<'a> {
    let of = |s: &&Span| s.layer == layer && data.path(s).is_some_and(|p| p.starts_with(file.parent().unwrap()));
    let mut spans: Vec<&Span> = data.spans.iter().filter(of).collect();
    spans.sort_by_key(|s| s.start_ns);
    spans.iter().map(|s| (s.op, s.offset, s.req_bytes, s.bytes)).collect()
}

#[test]
fn system_calls_have_the_kernel_functions_that_they_go_through() {
    let work = live::scratch();
    let mounted = Mounted::new(work.path());
    let file = mounted.0.join("data");
    let options = ["--layers", "syscall,vfs,fs"];
    let data = live::trace(work.path(), &options, &["python3", "-c", PROGRAM, mounted.0.to_str().unwrap()]).data();
    let data = data.lossless();
    let attached = |symbol: &str| {
        let verdict =
            data.coverage.iter().find(|c| c.symbol == symbol).unwrap_or_else(|| panic!("no verdict: {symbol}"));
        assert!(verdict.status == "attached" || verdict.reason.is_some(), "{verdict:?}");
        verdict.status == "attached"
    };
    let expected = |all: Calls<'static>| -> Calls<'static> { all.into_iter().filter(|c| attached(c.0)).collect() };
    let some = |a: i64, b: i64, c: i64| (Some(a), Some(b), Some(c));
    let with = |op: &'static str, (a, b, c): (Option<i64>, Option<i64>, Option<i64>)| (op, a, b, c);
    let none = (None, None, None);
    let vfs = [
        with("do_filp_open", none),
        with("vfs_write", some(0, 10000, 10000)),
        with("vfs_write", some(10000, 10000, 10000)),
        with("vfs_write", some(20000, 10000, 10000)),
        with("vfs_fsync_range", none),
        with("vfs_read", some(0, 10000, 10000)),
        with("vfs_read", some(20000, 50000, 10000)),
        with("do_truncate", (Some(12345), None, None)),
        with("vfs_fallocate", (Some(20000), Some(5000), None)),
        with("vfs_unlink", none),
    ];
    let seen: Calls = inside(&data, Layer::Vfs, &file).into_iter().filter(|c| c.0 != "vfs_getattr").collect();
    assert_eq!(seen, expected(vfs.to_vec()));
    let fs = [
        with("ext4_file_write_iter", some(0, 10000, 10000)),
        with("ext4_file_write_iter", some(10000, 10000, 10000)),
        with("ext4_file_write_iter", some(20000, 10000, 10000)),
        with("ext4_sync_file", none),
        with("ext4_file_read_iter", some(0, 10000, 10000)),
        with("ext4_file_read_iter", some(20000, 50000, 10000)),
        with("ext4_file_read_iter", some(4096, 300, 300)),
    ];
    assert_eq!(inside(&data, Layer::Fs, &file), expected(fs.to_vec()));
    // Each is inside the call that it belongs to, on the same file. (On overlayfs it may be the file below.)
    let on_file = |s: &&Span| data.path(s).is_some_and(|p| p.starts_with(&mounted.0));
    for span in data.spans.iter().filter(|s| matches!(s.layer, Layer::Vfs | Layer::Fs)).filter(on_file) {
        let call = data.ancestors(span).find(|s| s.layer == Layer::Syscall).unwrap();
        assert_eq!((span.file_id, span.errno), (call.file_id, call.errno), "{span:?} in {call:?}");
    }
    if attached("do_filp_open") {
        let opens = |s: &&Span| s.op == "openat" || s.op == "open";
        let callers =
            data.calls("do_filp_open").map(|s| data.ancestors(s).find(|s| s.layer == Layer::Syscall).unwrap());
        // Programs are opened by it, too: by calls that execute them.
        let (of_opens, others): (Vec<&Span>, Vec<&Span>) = callers.partition(opens);
        assert_eq!(of_opens.len(), data.spans.iter().filter(opens).count());
        assert!(others.iter().all(|s| s.op == "execve"), "{others:?}");
        assert!(data.calls("do_filp_open").any(|s| s.errno == 2));
    }
    let renames = usize::from(attached("vfs_rename"));
    assert_eq!(data.calls("vfs_rename").count(), renames);
    // What is missed is the system call's, whatever is open inside it.
    let misses: Vec<Option<i64>> = data.calls("pread64").filter(on_file).map(|s| s.miss_bytes).collect();
    assert_eq!(misses, [Some(10000); 2]);
}

#[test]
fn kernel_functions_are_left_out_by_default() {
    let work = live::scratch();
    let data = live::trace(work.path(), &[], &["cat", "/etc/passwd"]).data().lossless();
    for layer in [Layer::Vfs, Layer::Fs] {
        assert_eq!(data.layer(layer).count(), 0);
        let verdicts: Vec<&str> = data.coverage.iter().filter(|c| c.layer == layer).map(|c| c.status).collect();
        assert_eq!(verdicts, ["skipped"]);
    }
}
