//! Processes with a root directory, mounts and process numbers of their own: what they do is seen from outside, and files
//! have the paths that the processes know.

use crate::common::live::{self, Data, Running};
use crate::common::programs;
use crate::common::ways::{self, Attached};
use iotrace_bpf::rows::{Process, Span};
use iotrace_bpf::vocabulary::{Kind, Layer};
use serde_json::Value;
use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

fn one<'a>(processes: impl Iterator<Item = &'a Process>) -> &'a Process {
    let all: Vec<_> = processes.collect();
    assert_eq!(all.len(), 1, "{all:?}");
    all[0]
}

#[test]
fn two_containers_of_one_image() {
    let work = live::scratch();
    let (low, stage) = (work.path().join("image"), work.path().join("stage"));
    ways::image(&low, "stdio_mix");
    fs::create_dir(&stage).unwrap();
    // Mounts, network and process numbers of their own; the lower directory of both is the same, in memory because not
    // every file system can be below an overlay. The first only changes its root, the second moves to its own for good.
    let script = "set -e; mount -t tmpfs tmpfs \"$1\"; cd \"$1\"; cp -a \"$0\" low
        for n in 1 2; do
            mkdir up$n work$n root$n
            mount -t overlay overlay -o lowerdir=low,upperdir=up$n,workdir=work$n root$n
        done
        chroot root1 /bin/stdio_mix /data
        cd root2; pivot_root . old; exec /bin/stdio_mix /data";
    let unshare = ["unshare", "--mount", "--pid", "--net", "--fork", "sh", "-c", script].map(PathBuf::from);
    let command = [&unshare[..], &[low, stage.clone()]].concat();
    let traced = live::trace(work.path(), &[], &command);
    let data = traced.data().lossless();
    let truths: Vec<Value> = traced.stdout.lines().take(2).map(|l| serde_json::from_str(l).unwrap()).collect();

    let mixes: Vec<&Process> = data.processes.values().filter(|p| p.exe.as_deref() == Some("/bin/stdio_mix")).collect();
    assert_eq!(mixes.len(), 2, "{:?}", data.processes);
    for (process, truth) in mixes.iter().zip(&truths) {
        assert_ne!(Some(i64::from(process.pid)), truth["pid"].as_i64(), "it has the number that the node gives it");
        // Before it was executed the process was `chroot` or a shell, which use stdio, too.
        let own =
            |s: &&Span| s.process_ix == process.process_ix && data.path(s).is_some_and(|p| p.starts_with("/data"));
        let calls: Vec<&Span> = data.layer(Layer::Stdio).filter(own).collect();
        // Once: the probes of one library are not there twice because two paths lead to it.
        for op in ["fprintf", "vfprintf", "fputs", "fwrite", "fread", "fgets", "fclose"] {
            let seen = calls.iter().filter(|s| s.op == op && s.layer_top).count();
            assert_eq!(Some(seen as u64), truth["calls"][op].as_u64(), "{op}");
        }
        for (kind, bytes) in [(Kind::Read, &truth["read"]), (Kind::Write, &truth["written"])] {
            let moved: i64 = calls.iter().filter(|s| s.kind == kind).filter_map(|s| s.bytes).sum();
            assert_eq!(Some(moved), bytes.as_i64());
        }
        let written = calls.iter().filter(|s| s.kind == Kind::Write);
        let paths: BTreeSet<&Path> = written.filter_map(|s| data.path(s)).collect();
        assert_eq!(paths, ["/data/lines.txt", "/data/blocks.dat"].map(Path::new).into());
    }
    // The same names, and other files, on file systems that the tracer itself has not mounted.
    let files: Vec<_> = data.files.values().filter(|f| f.path.as_deref() == Some("/data/lines.txt")).collect();
    assert_eq!(files.len(), 2);
    assert_ne!((files[0].dev, files[0].mount_id), (files[1].dev, files[1].mount_id));
    assert!(files.iter().all(|f| f.fstype.as_deref() == Some("overlay") && !f.unlinked), "{files:?}");
    assert_eq!(fs::read_dir(stage).unwrap().count(), 0, "the mounts were the containers' own");
}

#[test]
fn a_process_in_a_container_is_attached_to() {
    let work = live::scratch();
    let root = work.path().join("root");
    ways::image(&root, "looper");
    let script = "mount --bind \"$0\" \"$0\" && cd \"$0\" && pivot_root . old && exec /bin/looper /data /data/truth 8";
    // A root directory alone, and a mount namespace.
    let chroot = ["chroot".as_ref(), root.as_path(), "/bin/looper".as_ref(), "/data".as_ref(), "/data/truth".as_ref()];
    let ways: [(&str, Vec<&Path>); 2] = [
        ("chroot", [&chroot[..], &["8".as_ref()]].concat()),
        ("unshare", vec![Path::new("unshare"), "-m".as_ref(), "sh".as_ref(), "-c".as_ref(), script.as_ref(), &root]),
    ];
    for (way, command) in ways {
        let _ = fs::remove_file(root.join("data/truth"));
        let mut started = Command::new(command[0]);
        let mut looper = Running::spawn(started.args(&command[1..]).stdout(Stdio::null()));
        let truth = root.join("data/truth");
        live::until("looper", || live::truth(&truth).pwrites > 5);
        let dir = work.path().join(way);
        fs::create_dir(&dir).unwrap();
        let tracer = Attached::to(&dir, &[], looper.pid());
        let before = live::truth(&truth);
        assert!(looper.wait().success(), "{way}");
        let after = live::truth(&truth);
        let data = tracer.data().lossless();
        let on = |op: &'static str, path: &'static str| {
            data.calls(op).filter(|s| data.path(s) == Some(Path::new(path))).count() as i64
        };
        // A call may be under way when the truth is read.
        let pwrites = on("pwrite64", "/data/looper.dat");
        assert!(pwrites >= after.pwrites - before.pwrites - 1 && pwrites > 10, "{way}: {pwrites}");
        let fwrites =
            on("fwrite", "/data/looper.txt") + data.calls("fwrite").filter(|s| s.file_id.is_none()).count() as i64;
        assert!(fwrites >= after.fwrites - before.fwrites - 1 && fwrites > 10, "{way}: {fwrites}");
        assert_eq!(one(data.processes.values()).exe.as_deref(), Some("/bin/looper"), "{way}");
    }
}

#[test]
fn data_of_a_container_is_like_any_other() {
    // A renamed and a removed file below a root of its own, and others of the same names outside of it.
    let work = live::scratch();
    let root = work.path().join("root");
    ways::image(&root, "std_io");
    let lines = "50";
    let outside = work.path().join("data");
    fs::create_dir(&outside).unwrap();
    let script = "chroot \"$0\" /bin/std_io /data \"$2\" && \"$1\" \"$3\" \"$2\"";
    let program = programs::build("std_io");
    let arguments = [Path::new("sh"), "-c".as_ref(), script.as_ref(), &root, &program, lines.as_ref(), &outside];
    let data: Data = live::trace(work.path(), &["--layers", "syscall"], &arguments).data().lossless();
    let inside = ways::system_calls(&data, Path::new("/data"));
    assert!(inside.len() > 5);
    assert_eq!(inside, ways::system_calls(&data, &outside));
}
