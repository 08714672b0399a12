//! Files and mounts are recorded as stat(1), lsblk(8) and mountinfo have them; paths are those of the process and of the host.

use crate::common::live::{self, Data, Running};
use crate::common::machine::device::{Device, run};
use crate::common::ways::{self, Attached};
use iotrace_bpf::export::Dataset;
use iotrace_bpf::rows::{File, FilePath, Mount};
use nix::fcntl::{AT_FDCWD, RenameFlags, renameat2};
use serde_json::Value;
use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;
use std::process::{Command, Stdio};

fn number(dev: u64) -> i64 {
    (nix::sys::stat::major(dev) << 20 | nix::sys::stat::minor(dev)) as i64
}

/// Where the host sees a file, there is that file; how many were found so.
fn host_paths_lead_to_their_files<'a>(files: impl Iterator<Item = &'a File>) -> usize {
    let named = files.filter(|f| !f.unlinked);
    let found = named.filter_map(|f| Some((f, fs::symlink_metadata(f.host_path.as_ref()?).ok()?)));
    let mut count = 0;
    for (file, meta) in found {
        assert_eq!((meta.ino() as i64, number(meta.dev())), (file.ino, file.dev), "{file:?}");
        count += 1;
    }
    count
}

fn below<'a>(data: &'a Data, dir: &str) -> BTreeMap<String, &'a File> {
    let path = |f: &File| f.path.as_deref()?.strip_prefix(dir)?.strip_prefix('/').map(str::to_owned);
    data.files.values().filter_map(|f| Some((path(f)?, f))).collect()
}

#[test]
fn names_come_and_go_and_files_stay() {
    let work = live::scratch();
    let dir = work.path().join("d");
    fs::create_dir(&dir).unwrap();
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/programs/names.py");
    let traced = live::trace(work.path(), &["--layers", "syscall"], &[Path::new("python3"), &script, &dir]);
    let truth: Value = serde_json::from_str(traced.stdout.lines().next().unwrap()).unwrap();
    let data = traced.data().lossless();

    let dir = dir.to_str().unwrap();
    let at = |name: &str| Some(format!("{dir}/{name}"));
    let nameless = |what: &str| Some(format!("{dir}/#{}", truth[what]["ino"]));
    let memfd = || Some("/memfd:in memory".to_owned());
    // What it is, what it was called first, what last, whether it has a name at the end.
    let cases = [
        ("removed", at("removed"), at("removed"), true),
        ("renamed", at("before"), at("after"), false),
        ("in a renamed directory", at("dir/in"), at("moved/in"), false),
        ("without a name", nameless("without a name"), nameless("without a name"), true),
        ("named later", nameless("named later"), at("named"), false),
        ("memfd", memfd(), memfd(), true),
        ("again 0", at("again"), at("again"), true),
        ("again 1", at("again"), at("again"), false),
    ];
    for (what, first, last, unlinked) in cases {
        let truth = &truth[what];
        let is =
            |f: &&File| Some(f.ino) == truth["ino"].as_i64() && Some(f.dev) == truth["dev"].as_i64() && f.path == last;
        let found: Vec<&File> = data.files.values().filter(is).collect();
        let [file] = found[..] else { panic!("{what}: {found:?}") };
        assert_eq!((&file.first_path, &file.path, file.unlinked), (&first, &last, unlinked), "{what}");
        assert_eq!(file.blksize.map(i64::from), truth["blksize"].as_i64(), "{what}");
        assert_eq!(file.size_last, truth["size"].as_i64(), "{what}");
        let written: i64 =
            data.calls("write").filter(|s| s.file_id == Some(file.file_id)).filter_map(|s| s.bytes).sum();
        assert_eq!(Some(written), truth["size"].as_i64(), "{what}");
        if what == "memfd" {
            assert_eq!((file.fstype.as_deref(), &file.host_path), (Some("tmpfs"), &None));
        } else {
            assert_eq!(file.host_path, last, "{what}");
        }
    }
    assert!(host_paths_lead_to_their_files(data.files.values()) > 10);
}

#[test]
fn files_that_another_process_renames_are_the_same_by_their_new_names() {
    let work = live::scratch();
    let dir = work.path().join("files");
    fs::create_dir(&dir).unwrap();
    let at = |name: &str| dir.join(name);
    let script = ways::script("renamed.py");
    let traced = std::thread::scope(|scope| {
        scope.spawn(|| {
            live::until("the program", || at("go").exists());
            fs::rename(at("x"), at("y")).unwrap();
            fs::rename(at("d"), at("e")).unwrap();
            renameat2(AT_FDCWD, &at("one"), AT_FDCWD, &at("other"), RenameFlags::RENAME_EXCHANGE).unwrap();
            fs::write(at("went"), "").unwrap();
        });
        live::trace(work.path(), &["--layers", "syscall"], &[Path::new("python3"), &script, &dir])
    });
    let printed: Vec<String> = serde_json::from_str(traced.stdout.lines().next().unwrap()).unwrap();
    assert_eq!(printed, [at("b"), at("a")].map(|path| path.to_str().unwrap().to_owned()), "they have changed places");
    let data = traced.data().lossless();
    // The names that each had, the last one as it has it now.
    let cases: [&[&str]; 7] =
        [&["x", "y"], &["d/s/in", "e/s/in"], &["one", "other"], &["other", "one"], &["a", "b"], &["b", "a"], &["x"]];
    for names in cases {
        let meta = fs::metadata(at(names[names.len() - 1])).unwrap();
        let is = |f: &&File| (f.ino, f.dev) == (meta.ino() as i64, number(meta.dev()));
        let found: Vec<&File> = data.files.values().filter(is).collect();
        let [file] = found[..] else { panic!("{names:?}: {found:?}") };
        let paths: Vec<&FilePath> = data.paths.iter().filter(|p| p.file_id == file.file_id).collect();
        let want: Vec<String> = names.iter().map(|name| at(name).to_str().unwrap().to_owned()).collect();
        assert_eq!(paths.iter().map(|p| &p.path).collect::<Vec<_>>(), want.iter().collect::<Vec<_>>());
        assert!(paths.is_sorted_by_key(|p| p.from_ns), "{paths:?}");
        assert_eq!((file.path.as_ref(), file.first_path.as_ref()), (want.last(), want.first()));
        assert_eq!((&file.host_path, file.unlinked), (&file.path, false), "{names:?}");
        let written: i64 =
            data.calls("write").filter(|s| s.file_id == Some(file.file_id)).filter_map(|s| s.bytes).sum();
        assert_eq!(written, meta.len() as i64, "{names:?}");
    }
}

#[test]
fn files_of_subvolumes_are_those_that_stat_names() {
    let work = live::scratch();
    let device = Device::new(work.path(), "btrfs");
    let at = |name: &str| device.mount.join(name).to_str().unwrap().to_owned();
    run("btrfs", &["-q", "subvolume", "create", &at("one")]);
    fs::write(at("one/same"), "0").unwrap();
    run("btrfs", &["-q", "subvolume", "snapshot", &at("one"), &at("two")]);
    let script = "
import os, sys
os.chdir(sys.argv[1])
for name, size in [('top', 1), ('one/same', 2), ('two/same', 3), ('one/new', 4)]:
    fd = os.open(name, os.O_CREAT | os.O_RDWR | os.O_APPEND)
    os.write(fd, b'x' * size)
    os.stat(name)
    os.close(fd)
    os.stat(name)
    os.rename(name, name + '.moved')
    fd = os.open(name + '.moved', os.O_WRONLY | os.O_APPEND)
    os.write(fd, b'y' * 10)
    os.close(fd)
";
    let command = ["python3", "-c", script, device.mount.to_str().unwrap()];
    let data = live::trace(work.path(), &["--layers", "syscall"], &command).data().lossless();
    let mut devices = Vec::new();
    for (name, written) in [("top", 11), ("one/same", 12), ("two/same", 13), ("one/new", 14)] {
        let path = at(&format!("{name}.moved"));
        let printed = run("stat", &["-c", "%Hd %Ld %i", &path]);
        let printed: Vec<i64> = printed.split(' ').map(|n| n.parse().unwrap()).collect();
        let is =
            |f: &&File| f.path.as_ref() == Some(&path) || (f.dev, f.ino) == (printed[0] << 20 | printed[1], printed[2]);
        let found: Vec<&File> = data.files.values().filter(is).collect();
        let [file] = found[..] else { panic!("{name}: {found:?}") };
        assert_eq!((file.dev, file.ino), (printed[0] << 20 | printed[1], printed[2]), "{name}");
        assert_eq!(
            (&file.path, &file.host_path, &file.first_path),
            (&Some(path.clone()), &Some(path), &Some(at(name)))
        );
        assert_eq!(file.fstype.as_deref(), Some("btrfs"));
        let of = |op: &'static str| data.calls(op).filter(|s| s.file_id == Some(file.file_id)).collect::<Vec<_>>();
        assert_eq!(of("write").iter().filter_map(|s| s.bytes).sum::<i64>(), written, "{name}");
        assert_eq!((of("newfstatat").len() + of("stat").len(), of("rename").len()), (2, 1), "{name}");
        devices.push((file.dev, file.mount_id));
    }
    // Three subvolumes, one mount.
    assert_eq!(devices.iter().map(|(dev, _)| dev).collect::<std::collections::BTreeSet<_>>().len(), 3, "{devices:?}");
    let mounts: BTreeMap<i32, Mount> = Dataset::open(&work.path().join("run.iotrace")).unwrap().last_by_id().unwrap();
    assert!(devices.iter().all(|(_, id)| mounts[&id.unwrap()].path == device.mount.to_str().unwrap()));
}

#[test]
fn a_file_with_hard_links_is_one_file_with_all_its_names() {
    let work = live::scratch();
    let dir = work.path().join("files");
    fs::create_dir(&dir).unwrap();
    fs::write(dir.join("old"), "0\n").unwrap();
    fs::hard_link(dir.join("old"), dir.join("other")).unwrap();
    let script = "set -e; cd \"$0\"; echo 1 >> old; echo 22 >> other; echo 333 >> old
        echo 4444 > one; ln one two; echo 55555 >> two; ln two three; rm one";
    let command = [Path::new("sh"), "-c".as_ref(), script.as_ref(), &dir];
    let data = live::trace(work.path(), &["--layers", "syscall"], &command).data().lossless();
    let at = |name: &str| dir.join(name).to_str().unwrap().to_owned();
    // What wrote to it, its names as find(1) knows them, and those besides that it has lost; the last one it was opened
    // by.
    for (name, lost, last, written) in [("other", None, "old", 9), ("two", Some("one"), "two", 11)] {
        let same = run("find", &[dir.to_str().unwrap(), "-samefile", &at(name)]);
        let mut names: Vec<String> = same.lines().map(str::to_owned).chain(lost.map(at)).collect();
        names.sort_unstable();
        let meta = fs::metadata(at(name)).unwrap();
        let is = |f: &&File| (f.ino, f.dev) == (meta.ino() as i64, number(meta.dev()));
        let found: Vec<&File> = data.files.values().filter(is).collect();
        let [file] = found[..] else { panic!("{name}: {found:?}") };
        let mut paths = file.paths.clone().unwrap();
        assert_eq!(paths.first(), file.first_path.as_ref());
        paths.sort_unstable();
        assert_eq!(paths, names);
        assert_eq!((file.path.as_deref(), file.unlinked), (Some(&*at(last)), false));
        let bytes: i64 = data.calls("write").filter(|s| s.file_id == Some(file.file_id)).filter_map(|s| s.bytes).sum();
        assert_eq!(bytes, written, "{name}");
    }
}

#[test]
fn the_host_sees_the_files_of_a_container_elsewhere() {
    let work = live::scratch();
    let root = work.path().join("root");
    ways::image(&root, "stdio_mix");
    // A root directory of its own; a directory of the host somewhere else; a file system that the host does not see.
    let script = "set -e; mkdir \"$1/bound\"; chroot \"$0\" /bin/stdio_mix /data
        mount --bind \"$0\" \"$1/bound\"; cd \"$1/bound\"; mkdir vol; mkdir data/vol; mount --bind vol data/vol
        pivot_root . old; /bin/stdio_mix /data/vol";
    let stage = work.path().join("stage");
    fs::create_dir(&stage).unwrap();
    let command = ["unshare", "--mount", "sh", "-c", script, root.to_str().unwrap(), stage.to_str().unwrap()];
    let data = live::trace(work.path(), &["--layers", "syscall"], &command).data().lossless();
    let host = root.to_str().unwrap();
    let files = below(&data, "/data");
    for (name, there) in [("lines.txt", "data/lines.txt"), ("vol/blocks.dat", "vol/blocks.dat")] {
        assert_eq!(files[name].host_path, Some(format!("{host}/{there}")), "{name}");
        assert_eq!(files[name].fstype.as_deref(), files["blocks.dat"].fstype.as_deref());
    }
    assert!(host_paths_lead_to_their_files(data.files.values()) > 10);
    let own = files["vol/blocks.dat"].mount_id;
    assert!(own.is_some() && own != files["blocks.dat"].mount_id, "{files:?}");
}

#[test]
fn files_that_were_open_before_have_their_paths_on_the_host() {
    let work = live::scratch();
    let root = work.path().join("root");
    ways::image(&root, "looper");
    for (way, command) in [
        (
            "chroot",
            ["chroot", root.to_str().unwrap(), "/bin/looper", "/data", "/data/truth", "8"].map(str::to_owned).to_vec(),
        ),
        ("unshare", {
            let script =
                "mount --bind \"$0\" \"$0\" && cd \"$0\" && pivot_root . old && exec /bin/looper /data /data/truth 8";
            ["unshare", "-m", "sh", "-c", script, root.to_str().unwrap()].map(str::to_owned).to_vec()
        }),
    ] {
        let truth = root.join("data/truth");
        let _ = fs::remove_file(&truth);
        let mut looper = Running::spawn(Command::new(&command[0]).args(&command[1..]).stdout(Stdio::null()));
        live::until("looper", || live::truth(&truth).pwrites > 5);
        let dir = work.path().join(way);
        fs::create_dir(&dir).unwrap();
        let tracer = Attached::to(&dir, &[], looper.pid());
        assert!(looper.wait().success(), "{way}");
        let data = tracer.data().lossless();
        let files = below(&data, "/data");
        let host = root.join("data/looper.dat").to_str().unwrap().to_owned();
        assert_eq!(files["looper.dat"].host_path, Some(host), "{way}");
        assert!(host_paths_lead_to_their_files(files.into_values()) > 0, "{way}");
    }
}

fn lsblk() -> BTreeMap<String, Value> {
    let text = run("lsblk", &["--json", "--all", "--list", "--output", "NAME,MAJ:MIN,PKNAME,ROTA,SCHED,LOG-SEC,MODEL"]);
    let all: Value = serde_json::from_str(&text).unwrap();
    let devices = all["blockdevices"].as_array().unwrap().clone();
    devices.into_iter().map(|d| (d["maj:min"].as_str().unwrap().trim().to_owned(), d)).collect()
}

#[test]
fn mounts_match_those_of_the_system() {
    let work = live::scratch();
    let device = Device::new(work.path(), "ext4");
    let late = work.path().join("late");
    fs::create_dir(&late).unwrap();
    let lines = fs::read_to_string("/proc/self/mountinfo").unwrap();
    let devices = lsblk();
    // A mount that the tracer has not seen when it started.
    let script = "echo a > \"$0/a\"; mount -t tmpfs -o size=1M late \"$1\"; echo b > \"$1/b\"";
    let command = [Path::new("sh"), "-c".as_ref(), script.as_ref(), &device.mount, &late];
    let traced = live::trace(work.path(), &["--layers", "syscall"], &command);
    run("umount", &[late.to_str().unwrap()]);
    let data = traced.data().lossless();
    let mounts: BTreeMap<i32, Mount> = Dataset::open(&traced.dir).unwrap().last_by_id().unwrap();

    let mut on_disks = 0;
    for line in lines.lines() {
        let fields: Vec<&str> = line.split(' ').collect();
        let dash = fields.iter().position(|f| *f == "-").unwrap();
        let mount = &mounts[&fields[0].parse().unwrap()];
        let (root, path, options) = (fields[3], fields[4], fields[5]);
        if line.contains('\\') {
            continue; // escaped
        }
        assert_eq!([&mount.root, &mount.path, &mount.options], [root, path, options]);
        assert_eq!(
            [&mount.fstype, &mount.source, &mount.super_options],
            [fields[dash + 1], fields[dash + 2], fields[dash + 3]]
        );
        let Some(about) = devices.get(fields[2]) else {
            assert!(mount.device.is_none() || mount.fstype == "btrfs", "{mount:?}");
            continue;
        };
        on_disks += 1;
        let text = |name: &str| about[name].as_str().map(|s| s.trim().to_owned());
        assert_eq!(mount.device, text("name"), "{mount:?}");
        assert_eq!(mount.disk, text("pkname").or_else(|| text("name")), "{mount:?}");
        assert_eq!((&mount.scheduler, &mount.model), (&text("sched"), &text("model")), "{mount:?}");
        assert_eq!(
            (mount.rotational, mount.block_size.map(i64::from)),
            (about["rota"].as_bool(), about["log-sec"].as_i64())
        );
        assert_eq!(mount.scope, "local");
    }
    assert!(on_disks > 0, "no mount has a disk: {lines}");

    let on = |file: &str| {
        let file = data.files.values().find(|f| f.path.as_deref().is_some_and(|p| p.ends_with(file))).unwrap();
        (file, &mounts[&file.mount_id.unwrap()])
    };
    let ((_, disk), (file, memory)) = (on("mount/a"), on("late/b"));
    assert_eq!((disk.dev, disk.scope), (i64::from(device.number), "local"));
    assert_eq!((memory.fstype.as_str(), memory.scope, memory.source.as_str()), ("tmpfs", "memory", "late"));
    assert_eq!(file.host_path, Some(late.join("b").to_str().unwrap().to_owned()));
    let own = fs::metadata("/proc/self/ns/mnt").unwrap().ino() as i64;
    assert_eq!([disk.mount_ns, memory.mount_ns], [own; 2]);
}

#[test]
fn numbers_of_mounts_that_are_gone_are_those_of_the_next_ones() {
    let work = live::scratch();
    let script = "set -e; for n in 1 2 3; do mkdir $0/$n; mount -t tmpfs name$n $0/$n; echo $n > $0/$n/file; \
                  stat -c %d $0/$n/file; sleep 1; umount $0/$n; done";
    let traced =
        live::trace(work.path(), &["--layers", "syscall"], &["sh", "-c", script, work.path().to_str().unwrap()]);
    let devices: Vec<&str> = traced.stdout.lines().take(3).collect();
    assert!(devices[0] == devices[1] || devices[1] == devices[2], "no device was used again: {devices:?}");
    let data = traced.data().lossless();
    let file = |n: u32| {
        let path = work.path().join(format!("{n}/file"));
        data.files.values().find(|f| f.path.as_deref() == path.to_str()).unwrap()
    };
    for n in 1..=3 {
        assert_eq!((&file(n).host_path, file(n).fstype.as_deref()), (&file(n).path, Some("tmpfs")));
    }
    let mounts: BTreeMap<i32, Mount> = Dataset::open(&traced.dir).unwrap().last_by_id().unwrap();
    let last = &mounts[&file(3).mount_id.unwrap()];
    assert_eq!((last.source.as_str(), Some(last.path.as_str())), ("name3", work.path().join("3").to_str()));
}
