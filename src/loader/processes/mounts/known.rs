//! The mounts that files are opened through: those of the start, and those that come while the trace goes on.

use crate::loader::processes::mounts;
use crate::rows::Mount;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use std::collections::HashSet;
use std::fs::File;
use std::os::fd::AsFd as _;

/// Number and device, as the kernel side reports them.
type Key = (i32, i64);

/// What was found out about mounts.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct NewMounts {
    pub new: Vec<Mount>,
    /// Devices of file systems that are gone, whose numbers the new ones have.
    pub replaced: HashSet<i64>,
}

/// All mounts that were found, by their last rows.
pub struct KnownMounts {
    all: Vec<Mount>,
    /// The tracer's own mount namespace.
    host: i64,
    /// Those that were looked for in the mount namespaces of the processes that use them.
    sought: HashSet<Key>,
    /// The host's list, which wakes pollers when it changes.
    list: Option<File>,
}

impl KnownMounts {
    pub fn new(all: Vec<Mount>) -> Self {
        let host = mounts::namespace(std::process::id()).unwrap_or(0);
        let sought = all.iter().map(key).collect();
        Self { all, host, sought, list: File::open("/proc/self/mountinfo").ok() }
    }

    pub fn all(&self) -> &[Mount] {
        &self.all
    }

    pub const fn host(&self) -> i64 {
        self.host
    }

    /// Reads the mounts of process `pid` when it uses one that was made during the trace, or in another mount namespace.
    pub fn look_for(&mut self, mount: Key, pid: u32) -> NewMounts {
        if mount.0 == 0 {
            return NewMounts::default();
        }
        // The kernel gives the number and the device of a mount that is gone to the next one: containers that run one after
        // the other have the same.
        if self.has_changed() {
            self.sought.clear();
        }
        if !self.sought.insert(mount) {
            return NewMounts::default();
        }
        let mut there = mounts::of(pid);
        // The host's view of it, if it has one.
        if there.iter().all(|m| m.mount_ns != self.host) {
            there.extend(mounts::of(std::process::id()));
        }
        self.take(mount, &there)
    }

    /// Whether something was mounted or unmounted since the last call: proc(5), `/proc/PID/mounts`.
    fn has_changed(&self) -> bool {
        let Some(list) = &self.list else { return false };
        let mut fds = [PollFd::new(list.as_fd(), PollFlags::POLLPRI)];
        poll(&mut fds, PollTimeout::ZERO).is_ok_and(|n| n > 0)
    }

    /// The mounts of some namespaces were read, to find this one.
    fn take(&mut self, mount: Key, there: &[Mount]) -> NewMounts {
        self.sought.extend(there.iter().map(key));
        let namespaces: HashSet<i64> = there.iter().map(|m| m.mount_ns).collect();
        let is_there = |old: &Mount| there.iter().any(|m| is_same(m, old));
        let is_gone = |old: &Mount| namespaces.contains(&old.mount_ns) && !is_there(old);
        let mut new: Vec<Mount> = there.iter().filter(|m| !self.all.contains(m)).cloned().collect();
        let known = new.iter().chain(&self.all);
        if known.clone().all(|m| key(m) != mount) {
            // Its process has ended, or cannot reach it: only another mount of its file system can be looked at.
            let like = known.clone().find(|m| m.dev == mount.1).cloned();
            new.extend(like.map(|like| Mount {
                mount_id: mount.0,
                mount_ns: 0,
                path: String::new(),
                root: String::new(),
                ..like
            }));
        }
        // Of a file system that is mounted elsewhere, too, the device is its own still.
        let stays: HashSet<i64> = self.all.iter().filter(|old| is_there(old)).map(|m| m.dev).collect();
        let mut replaced = HashSet::new();
        self.all.retain(|old| {
            let again = new.iter().any(|m| m.mount_id == old.mount_id);
            let other = (again && !is_there(old)) || (is_gone(old) && new.iter().any(|m| m.dev == old.dev));
            // A made-up one gives way to what is known of it.
            if other && old.mount_ns != 0 && !stays.contains(&old.dev) {
                replaced.insert(old.dev);
            }
            !again && !other
        });
        self.all.extend(new.iter().cloned());
        NewMounts { new, replaced }
    }
}

fn key(mount: &Mount) -> Key {
    (mount.mount_id, mount.dev)
}

/// The same mount, whatever its options are now.
fn is_same(a: &Mount, b: &Mount) -> bool {
    let of = |m: &Mount| (key(m), m.mount_ns);
    of(a) == of(b) && [&a.path, &a.root, &a.fstype, &a.source] == [&b.path, &b.root, &b.fstype, &b.source]
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOST: i64 = 100;
    const OTHER: i64 = 200;

    fn mount(mount_id: i32, dev: i64, mount_ns: i64, path: &str) -> Mount {
        Mount {
            mount_id,
            mount_ns,
            path: path.to_owned(),
            root: "/".to_owned(),
            fstype: "overlay".to_owned(),
            scope: "local",
            source: "overlay".to_owned(),
            server: None,
            options: "rw".to_owned(),
            super_options: String::new(),
            lower: None,
            upper: None,
            dev,
            device: None,
            disk: None,
            model: None,
            block_size: None,
            opt_io_size: None,
            rotational: None,
            scheduler: None,
        }
    }

    fn known(all: &[Mount]) -> KnownMounts {
        KnownMounts { host: HOST, list: None, ..KnownMounts::new(all.to_vec()) }
    }

    fn paths(known: &KnownMounts) -> Vec<(i32, &str)> {
        known.all().iter().map(|m| (m.mount_id, m.path.as_str())).collect()
    }

    #[test]
    fn a_number_that_is_used_again_is_the_new_mount_s() {
        let (root, first) = (mount(1, 8, HOST, "/"), mount(2, 40, HOST, "/c/first"));
        let mut known = known(&[root.clone(), first]);
        let second = mount(2, 40, HOST, "/c/second");
        let found = known.take((2, 40), &[root.clone(), second.clone()]);
        assert_eq!(found, NewMounts { new: vec![second], replaced: HashSet::from([40]) });
        assert_eq!(paths(&known), [(1, "/"), (2, "/c/second")]);
        // And with another number on the same device.
        let third = mount(3, 40, HOST, "/c/third");
        let found = known.take((3, 40), &[root, third.clone()]);
        assert_eq!(found, NewMounts { new: vec![third], replaced: HashSet::from([40]) });
        assert_eq!(paths(&known), [(1, "/"), (3, "/c/third")]);
    }

    #[test]
    fn what_is_still_mounted_stays() {
        let (root, inside) = (mount(1, 8, HOST, "/"), mount(7, 40, OTHER, "/"));
        let mut known = known(&[root.clone(), inside]);
        // A file system is mounted once more, and another one with other options.
        let again = mount(5, 8, HOST, "/again");
        let read_only = Mount { options: "ro".to_owned(), ..root };
        let found = known.take((5, 8), &[read_only.clone(), again.clone()]);
        assert_eq!(found, NewMounts { new: vec![read_only, again], replaced: HashSet::new() });
        // Another namespace was not looked at.
        assert_eq!(paths(&known), [(7, "/"), (1, "/"), (5, "/again")]);
        // A file of the first file system is mounted in one container, and then in another one.
        let root = known.all()[1].clone();
        let first = mount(8, 8, OTHER, "/etc/hosts");
        assert_eq!(known.take((8, 8), &[root.clone(), first]).replaced, HashSet::new());
        let second = mount(8, 8, OTHER, "/etc/resolv.conf");
        let found = known.take((8, 8), &[root, second.clone()]);
        assert_eq!(found, NewMounts { new: vec![second], replaced: HashSet::new() });
    }

    #[test]
    fn of_one_that_cannot_be_found_another_of_its_file_system_is_described() {
        let root = mount(1, 8, HOST, "/");
        let mut known = known(std::slice::from_ref(&root));
        let found = known.take((9, 8), std::slice::from_ref(&root));
        assert_eq!(found.new.iter().map(|m| (m.mount_id, m.mount_ns, m.dev)).collect::<Vec<_>>(), [(9, 0, 8)]);
        let real = mount(9, 8, OTHER, "/data");
        let found = known.take((9, 8), &[root, real.clone()]);
        assert_eq!(found, NewMounts { new: vec![real], replaced: HashSet::new() });
        assert_eq!(paths(&known), [(1, "/"), (9, "/data")]);
    }
}
