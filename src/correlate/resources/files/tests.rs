//! Files are the same by all their names, as long as these lead to them, and are forgotten when there are too many.
#![allow(clippy::unwrap_used)]

use crate::correlate::resources::files::*;

fn key(ino: u64) -> FileKey {
    FileKey { dev: 1, generation: 0, ino }
}

fn seen(files: &mut Files, t_ns: i64, key: FileKey, (root, path): Rooted, mount: i32) -> i32 {
    files.seen(t_ns, key, &Sighting { path: path.to_vec(), root, mount, links: 1, ..Sighting::default() })
}

fn written(files: &mut Files) -> Vec<(i32, String, bool)> {
    let mut out = Vec::new();
    files.write(&mut out);
    let row = |r: &Row| match r {
        Row::File(f) => Some((f.file_id, f.path.clone().unwrap_or_default(), f.unlinked)),
        _ => None,
    };
    out.iter().filter_map(row).collect()
}

#[test]
fn a_file_is_written_when_used_and_when_changed() {
    let mut files = Files::default();
    let id = seen(&mut files, 1, key(1), (0, b"/d/a"), 0);
    assert_eq!(written(&mut files), []);
    files.used(id);
    assert_eq!(written(&mut files), [(1, "/d/a".into(), false)]);
    files.used(id);
    files.wrote_to(id, 10);
    assert_eq!(written(&mut files), []);
    files.closed(id);
    assert_eq!(written(&mut files).len(), 1);
    assert_eq!(files.get(id).unwrap().row.size_last, Some(10));
}

#[test]
fn renaming_a_directory_moves_what_is_below_it() {
    let mut files = Files::default();
    for (ino, path) in [(1, "/d/a"), (2, "/d/s/b"), (3, "/dd/c"), (4, "/e/a")] {
        let id = seen(&mut files, 0, key(ino), (0, path.as_bytes()), 0);
        files.used(id);
    }
    written(&mut files);
    files.rename(5, 0, b"/d", b"/x");
    assert_eq!(written(&mut files), [(1, "/x/a".into(), false), (2, "/x/s/b".into(), false)]);
    files.rename(6, 0, b"/x/a", b"/e/a");
    assert_eq!(written(&mut files), [(4, "/e/a".into(), true), (1, "/e/a".into(), false)]);
    assert_eq!(files.by_path((0, b"/e/a")), Some(1));
    assert_eq!(files.by_path((0, b"/x/a")), None);
}

#[test]
fn a_rename_by_another_process_is_known_from_the_next_open() {
    let mut files = Files::default();
    let [x, y] = [(1, "/x"), (2, "/y")].map(|(ino, path)| seen(&mut files, 0, key(ino), (0, path.as_bytes()), 0));
    // The first goes to /z, another file comes to /x; the second goes to where the first was.
    assert_eq!(seen(&mut files, 1, key(1), (0, b"/z"), 0), x);
    assert_eq!(seen(&mut files, 2, key(2), (0, b"/x"), 0), y);
    assert_eq!(["/x", "/y", "/z"].map(|path| files.by_path((0, path.as_bytes()))), [Some(y), None, Some(x)]);
    let paths = |files: &Files, id: i32| -> Vec<(String, i64)> {
        files.get(id).unwrap().paths.iter().map(|p| (p.path.clone(), p.from_ns)).collect()
    };
    assert_eq!(paths(&files, x), [("/x".into(), 0), ("/z".into(), 1)]);
    assert_eq!(paths(&files, y), [("/y".into(), 0), ("/x".into(), 2)]);
    files.unlink(3, (0, b"/x"));
    assert!(files.get(y).unwrap().row.unlinked && !files.get(x).unwrap().row.unlinked);
}

#[test]
fn exchanged_files_have_each_other_s_names() {
    let mut files = Files::default();
    let ids =
        [(1, "/a"), (2, "/d/b"), (3, "/e/c")].map(|(ino, path)| seen(&mut files, 0, key(ino), (0, path.as_bytes()), 0));
    let paths = |files: &Files| ids.map(|id| String::from_utf8(files.path(id).unwrap().to_vec()).unwrap());
    files.exchange(1, 0, b"/a", b"/d/b");
    assert_eq!(paths(&files), ["/d/b", "/a", "/e/c"]);
    files.exchange(2, 0, b"/d", b"/e");
    assert_eq!(paths(&files), ["/e/b", "/a", "/d/c"]);
    // What the other one is called is not known: it has another name, but this one is there.
    files.exchange(3, 0, b"/a", b"/unknown");
    assert_eq!(paths(&files), ["/e/b", "/unknown", "/d/c"]);
    let found = ["/a", "/d/b", "/e/c", "/e/b", "/d/c"].map(|path| files.by_path((0, path.as_bytes())));
    assert_eq!(found, [None, None, None, Some(ids[0]), Some(ids[2])]);
    assert!(ids.iter().all(|id| !files.get(*id).unwrap().row.unlinked));
}

#[test]
fn a_file_has_the_names_that_are_left() {
    let mut files = Files::default();
    let linked = |links: u32, path: &[u8]| Sighting { path: path.to_vec(), links, ..Sighting::default() };
    let id = files.seen(0, key(1), &linked(2, b"/a"));
    assert_eq!(files.seen(1, key(1), &linked(2, b"/b")), id);
    assert_eq!(["/a", "/b"].map(|path| files.by_path((0, path.as_bytes()))), [Some(id); 2]);
    assert_eq!(files.get(id).unwrap().names().collect::<Vec<_>>(), ["/a", "/b"]);
    // Neither does anything: they are one file.
    files.rename(2, 0, b"/a", b"/b");
    files.rename(2, 0, b"/b", b"/a");
    files.rename(3, 0, b"/a", b"/c");
    files.unlink(4, (0, b"/b"));
    assert_eq!((files.path(id), files.get(id).unwrap().row.unlinked), (Some(&b"/c"[..]), false));
    files.link((0, b"/c"), b"/e");
    files.unlink(5, (0, b"/c"));
    assert_eq!((files.path(id), files.get(id).unwrap().row.unlinked), (Some(&b"/e"[..]), false));
    files.unlink(5, (0, b"/e"));
    assert!(files.get(id).unwrap().row.unlinked && files.by_path.is_empty());
    assert_eq!(files.get(id).unwrap().names().collect::<Vec<_>>(), ["/a", "/b", "/c", "/e"]);
    // One whose other name was not seen.
    let id = files.seen(6, key(2), &linked(2, b"/d"));
    files.unlink(7, (0, b"/d"));
    assert!(!files.get(id).unwrap().row.unlinked);
    // There is but one name: another process has renamed it, or removed the first.
    files.seen(8, key(2), &linked(1, b"/e"));
    files.seen(9, key(2), &linked(1, b"/f"));
    assert_eq!(["/d", "/e", "/f"].map(|path| files.by_path((0, path.as_bytes()))), [None, None, Some(id)]);
}

#[test]
fn the_striping_of_a_file_may_come_before_the_file() {
    let mut files = Files::default();
    let striping = Striping { count: 4, size: 1 << 20 };
    files.is_striped(key(1), striping);
    let ids = [1, 2].map(|ino| seen(&mut files, 0, key(ino), (0, format!("/{ino}").as_bytes()), 0));
    files.is_striped(key(2), striping);
    let striping = ids.map(|id| files.get(id).map(|state| (state.row.stripe_count, state.row.stripe_size)));
    assert_eq!((striping, files.striped.len()), ([Some((Some(4), Some(1 << 20))); 2], 0));
}

#[test]
fn the_same_path_below_another_root_is_another_file() {
    let mut files = Files::default();
    let (here, there) = (seen(&mut files, 0, key(1), (1, b"/d/a"), 0), seen(&mut files, 0, key(2), (2, b"/d/a"), 0));
    files.rename(1, 2, b"/d", b"/x");
    assert_eq!([files.by_path((1, b"/d/a")), files.by_path((2, b"/d/a"))], [Some(here), None]);
    assert_eq!(files.by_path((2, b"/x/a")), Some(there));
    files.unlink(0, (2, b"/d/a"));
    assert!(!files.get(here).unwrap().row.unlinked);
    files.unlink(0, (2, b"/x/a"));
    assert!(files.get(there).unwrap().row.unlinked && !files.get(here).unwrap().row.unlinked);
}

#[test]
fn an_inode_used_again_after_an_unlink_is_another_file() {
    let mut files = Files::default();
    assert_eq!(seen(&mut files, 0, key(1), (0, b"/a"), 0), 1);
    files.unlink(0, (0, b"/a"));
    assert_eq!(seen(&mut files, 1, key(1), (0, b"/b"), 0), 2);
    assert_eq!(files.intern(key(1)), 2);
}

#[test]
fn a_missing_generation_is_the_one_of_the_kernel() {
    let known = FileKey { generation: 7, ..key(1) };
    let mut files = Files::default();
    // Found open at attach, then used; asked about by name in between and afterwards.
    assert_eq!(seen(&mut files, 0, key(1), (0, b"/a"), 0), 1);
    assert_eq!([files.intern(known), files.intern(key(1)), files.intern(known)], [1, 1, 1]);
    assert_eq!(files.get(1).unwrap().row.generation, 7);
    // The inode is used again.
    files.unlink(0, (0, b"/a"));
    assert_eq!(files.intern(key(1)), 2);
    let again = FileKey { generation: 8, ..key(1) };
    assert_eq!([files.intern(again), files.intern(key(1)), files.intern(known)], [2, 2, 1]);
}

fn mount(mount_id: i32, mount_ns: i64, dev: i64, [root, path]: [&str; 2]) -> Mount {
    Mount {
        mount_id,
        mount_ns,
        path: path.into(),
        root: root.into(),
        fstype: format!("fs{mount_id}"),
        scope: "local",
        dev,
        ..Mount::default()
    }
}

#[test]
fn the_longest_mount_holds_a_file() {
    let on = |dev: i64, id: i32, path: &str| mount(id, 1, dev, ["/", path]);
    let plain = |id: i32, path: &str| on(0, id, path);
    let mut files = Files::default();
    let early = seen(&mut files, 0, key(1), (0, b"/data/x"), 0);
    files.set_mounts(vec![plain(1, "/"), plain(2, "/data")], 1);
    let late = seen(&mut files, 0, key(2), (0, b"/database"), 0);
    assert_eq!(files.get(early).unwrap().row.fstype.as_deref(), Some("fs2"));
    assert_eq!(files.get(late).unwrap().row.mount_id, Some(1));
    // In another mount namespace the path is of no use; the mount's number is, as soon as it is known.
    let inside = seen(&mut files, 0, key(3), (9, b"/data/y"), 7);
    assert_eq!(files.get(inside).unwrap().row.mount_id, None);
    files.set_mounts(vec![plain(1, "/"), plain(2, "/data"), on(1, 7, "/elsewhere")], 1);
    assert_eq!(files.get(inside).unwrap().row.fstype.as_deref(), Some("fs7"));
    // The number is another mount's by now.
    files.set_mounts(vec![plain(1, "/"), plain(2, "/data"), on(5, 7, "/elsewhere")], 1);
    let later = seen(&mut files, 0, key(4), (9, b"/data/z"), 7);
    assert_eq!((files.get(inside).unwrap().row.mount_id, files.get(later).unwrap().row.mount_id), (Some(7), None));
}

#[test]
fn a_new_mount_has_only_files_written_again_that_lie_on_it() {
    let mut files = Files::default();
    let mounts = [mount(1, 1, 0, ["/", "/"]), mount(2, 1, 0, ["/", "/data"])];
    files.set_mounts(mounts.to_vec(), 1);
    let ids = [(1, b"/data/x".as_slice()), (2, b"/late/x")].map(|(n, path)| seen(&mut files, 0, key(n), (0, path), 0));
    for id in ids {
        files.used(id);
    }
    assert_eq!(written(&mut files).len(), 2);
    let mounts = [&mounts[..], &[mount(3, 1, 0, ["/", "/late"])]].concat();
    files.set_mounts(mounts, 1);
    assert_eq!(written(&mut files), [(ids[1], "/late/x".into(), false)]);
}

#[test]
fn the_host_has_a_path_of_its_own() {
    let mut files = Files::default();
    // Namespace 2 has a directory of the host's disk at /data, and a file system that the host has not mounted.
    let mounts = [
        mount(1, 1, 1, ["/", "/"]),
        mount(2, 1, 1, ["/vol", "/mnt"]),
        mount(7, 2, 1, ["/vol/7", "/data"]),
        mount(8, 2, 3, ["/", "/own"]),
    ];
    files.set_mounts(mounts.to_vec(), 1);
    let mut see = |ino, dev, path: &[u8], inside: &[u8], mount| {
        let (path, inside) = (path.to_vec(), Some(inside.to_vec()));
        let key = FileKey { dev, ..key(ino) };
        files.seen(0, key, &Sighting { path, inside, mount, root: 9, links: 1, ..Sighting::default() })
    };
    let ids =
        [see(1, 1, b"/data/x", b"/vol/7/x", 7), see(2, 1, b"/mnt/7/y", b"/vol/7/y", 2), see(3, 3, b"/own/z", b"/z", 8)];
    let host = |files: &Files| ids.map(|id| files.get(id).unwrap().row.host_path.clone());
    let text = |path: &str| Some(path.to_owned());
    assert_eq!(host(&files), [text("/vol/7/x"), text("/mnt/7/y"), None]);
    files.rename(1, 9, b"/data/x", b"/data/d/x");
    files.set_mounts([&mounts[..], &[mount(9, 1, 3, ["/", "/late"])]].concat(), 1);
    assert_eq!(host(&files), [text("/vol/7/d/x"), text("/mnt/7/y"), text("/late/z")]);
}

#[test]
fn a_mount_with_the_number_of_one_that_is_gone_has_its_own_files() {
    let mut files = Files::default();
    let see = |files: &mut Files, ino, name: &str| {
        let (path, inside) = (format!("/c/{name}").into_bytes(), Some(b"/x".to_vec()));
        let key = FileKey { dev: 40, ..key(ino) };
        files.seen(0, key, &Sighting { path, inside, mount: 2, links: 1, ..Sighting::default() })
    };
    let of = |name: &str| mount(2, 1, 40, ["/", name]);
    files.set_mounts(vec![of("/c/first")], 1);
    let first = see(&mut files, 1, "first/x");
    let mounts = vec![of("/c/second")];
    files.mounted(Mounted { time: 0, number: 2, mounts, host: 1, replaced: HashSet::from([40]) });
    let second = see(&mut files, 2, "second/x");
    // One that was read before, and comes later.
    files.mounted(Mounted { time: 0, number: 1, mounts: Vec::new(), host: 1, replaced: HashSet::new() });
    let host = |files: &Files, id| files.get(id).unwrap().row.host_path.clone().unwrap();
    assert_eq!([first, second].map(|id| host(&files, id)), ["/c/first/x", "/c/second/x"]);
    // The same number again, of the same image perhaps.
    let third = see(&mut files, 1, "second/x");
    assert_eq!([first, third].map(|id| host(&files, id)), ["/c/first/x", "/c/second/x"]);
}

#[test]
fn a_file_without_a_name_stays_the_same() {
    let mut files = Files::default();
    let nameless = Sighting { path: b"/memfd:x".to_vec(), fstype: "tmpfs".into(), ..Sighting::default() };
    let id = files.seen(0, key(1), &nameless);
    assert_eq!(files.seen(1, key(1), &nameless), id);
    assert!(files.get(id).unwrap().row.unlinked);
    assert_eq!(files.get(id).unwrap().row.fstype.as_deref(), Some("tmpfs"));
    assert_eq!(files.seen(2, key(1), &Sighting { path: b"/other".to_vec(), links: 1, ..Sighting::default() }), id + 1);
}

/// So many files that the kernel side reports, or that calls only ask about, removed or not.
fn come(files: &mut Files, first: u64, count: u64, reported: bool, removed: bool, open: &HashSet<i32>) {
    for n in first..first + count {
        let path = format!("/new.{n}");
        let id = if reported {
            seen(files, 0, key(n), (0, path.as_bytes()), 0)
        } else {
            let id = files.intern(key(n));
            files.asked_about(0, id, (0, path.as_bytes()));
            id
        };
        files.used(id);
        if removed {
            files.unlink(0, (0, path.as_bytes()));
        }
        files.write(&mut Vec::new());
        if files.has_many() {
            files.forget(open);
        }
    }
}

#[test]
fn what_is_remembered_is_bounded() {
    for (reported, removed, most) in
        [(true, true, NAMELESS), (false, true, NAMELESS), (true, false, REMEMBERED), (false, false, REMEMBERED)]
    {
        let mut files = Files::default();
        let open = seen(&mut files, 0, key(1), (0, b"/open"), 0);
        files.unlink(0, (0, b"/open"));
        come(&mut files, 2, most + 2 * ROUND, reported, removed, &HashSet::from([open]));
        let known = files.all.len() as u64;
        assert!(known <= most + ROUND + 1, "{known}");
        assert_eq!([files.by_key.len() as u64, files.by_inode.len() as u64], [known; 2]);
        assert_eq!(files.by_path.len() as u64, if removed { 0 } else { known - 1 });
        // The inode is used again, by another file, or it comes back.
        let again = seen(&mut files, 0, key(2), (0, b"/again"), 0);
        assert_eq!((again, files.known(key(1))), (files.last, Some(open)));
        // What is asked about one that was forgotten has no answer.
        files.used(2);
        files.wrote_to(2, 10);
        files.closed(2);
        assert_eq!((files.path(2), files.devs(2)), (None, [None; 2]));
        files.finish(&mut Vec::new());
    }
}

#[test]
fn one_that_is_used_is_remembered() {
    let mut files = Files::default();
    let (used, other) = (seen(&mut files, 0, key(1), (0, b"/used"), 0), seen(&mut files, 0, key(2), (0, b"/b"), 0));
    for round in 0..REMEMBERED / ROUND + 2 {
        come(&mut files, 10 + round * ROUND, ROUND, true, false, &HashSet::new());
        files.used(used);
    }
    assert_eq!((files.path(used), files.path(other)), (Some(&b"/used"[..]), None));
    // Those that are only asked about do not count: the kernel side has not forgotten this one for them.
    let reported = seen(&mut files, 0, key(3), (0, b"/reported"), 0);
    come(&mut files, 1 << 40, REMEMBERED + 2 * ROUND, false, false, &HashSet::new());
    assert_eq!(files.path(reported), Some(&b"/reported"[..]));
    // One that has a name again is remembered like others.
    files.unlink(0, (0, b"/reported"));
    assert_eq!(files.seen(0, FileKey { generation: 7, ..key(4) }, &Sighting::default()), files.last);
    let link = FileKey { generation: 3, ..key(5) };
    let id = seen(&mut files, 0, link, (0, b"/one"), 0);
    files.unlink(0, (0, b"/one"));
    assert_eq!(seen(&mut files, 0, link, (0, b"/other"), 0), id);
    come(&mut files, 1 << 41, 2 * ROUND, true, false, &HashSet::new());
    assert_eq!((files.path(id), files.path(reported)), (Some(&b"/other"[..]), None));
}
