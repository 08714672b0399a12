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
    /// They were not there at this time, in ns.
    pub since: u64,
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
    /// Whether it is to be polled for this batch of events, and when it was polled for one before.
    poll_due: bool,
    polled_at: u64,
    /// When the batch began to be worked off.
    now: u64,
}

impl KnownMounts {
    /// Those of the tracer's own namespace.
    pub fn read() -> Self {
        // Opened first: what changes while it is read is noticed.
        let list = File::open("/proc/self/mountinfo").ok();
        let host = mounts::namespace(std::process::id()).unwrap_or(0);
        Self { list, ..Self::of(mounts::of(std::process::id()), host) }
    }

    fn of(all: Vec<Mount>, host: i64) -> Self {
        let sought = all.iter().map(key).collect();
        Self { all, host, sought, list: None, poll_due: true, polled_at: 0, now: 0 }
    }

    pub fn all(&self) -> &[Mount] {
        &self.all
    }

    pub const fn host(&self) -> i64 {
        self.host
    }

    /// Events that were read from the rings before `now`, in ns, come next: what they name was mounted before.
    pub const fn begin_batch(&mut self, now: u64) {
        (self.poll_due, self.now) = (true, now);
    }

    /// Reads the mounts of process `pid` when it uses one that was made during the trace, or in another mount namespace.
    pub fn look_for(&mut self, mount: Key, pid: u32) -> NewMounts {
        if mount.0 == 0 {
            return NewMounts::default();
        }
        // The kernel gives number and device of a mount that is gone to the next one: containers that run one after
        // the other have the same.
        let mut found = NewMounts::default();
        if std::mem::replace(&mut self.poll_due, false) {
            let since = std::mem::replace(&mut self.polled_at, self.now);
            if self.has_changed() {
                found = NewMounts { since, ..self.renew(&mounts::of(std::process::id())) };
            }
        }
        if self.sought.insert(mount) {
            let mut there = mounts::of(std::process::id());
            // After chroot a process sees a part of the host's, by other paths.
            if mounts::namespace(pid) != Some(self.host) {
                there.extend(mounts::of(pid));
            }
            found.new.extend(self.add(mount, &there));
        }
        found
    }

    /// Whether something was mounted or unmounted since the last call: proc(5), `/proc/PID/mounts`.
    fn has_changed(&self) -> bool {
        let Some(list) = &self.list else { return false };
        let mut fds = [PollFd::new(list.as_fd(), PollFlags::POLLPRI)];
        poll(&mut fds, PollTimeout::ZERO).is_ok_and(|n| n > 0)
    }

    /// The host's mounts are these now. One that is gone is forgotten when another one has its number, or its device: until
    /// then processes may use it, after `umount --lazy`.
    fn renew(&mut self, there: &[Mount]) -> NewMounts {
        let new: Vec<Mount> = there.iter().filter(|m| !self.all.contains(m)).cloned().collect();
        let is_there = |old: &Mount| there.iter().any(|m| is_same(m, old));
        let of_host = || self.all.iter().filter(|old| old.mount_ns == self.host);
        let stays: HashSet<i64> = of_host().filter(|old| is_there(old)).map(|m| m.dev).collect();
        let added: HashSet<i64> = new.iter().map(|m| m.dev).collect();
        let gone = of_host().filter(|old| !is_there(old)).map(|m| m.dev);
        let replaced: HashSet<i64> = gone.filter(|dev| added.contains(dev) && !stays.contains(dev)).collect();
        let again: HashSet<i32> = new.iter().map(|m| m.mount_id).collect();
        self.all.retain(|old| !again.contains(&old.mount_id) && !replaced.contains(&old.dev));
        self.sought.retain(|(id, dev)| !again.contains(id) && !replaced.contains(dev));
        self.sought.extend(new.iter().map(key));
        self.all.extend(new.iter().cloned());
        NewMounts { new, replaced, since: 0 }
    }

    /// Of mounts that are there, adds those that are not known, and one for `mount` if it is not among them.
    fn add(&mut self, mount: Key, there: &[Mount]) -> Vec<Mount> {
        // A made-up one gives way to what is known of it.
        let real: HashSet<Key> = self.all.iter().filter(|m| m.mount_ns != 0).map(key).collect();
        let mut new: Vec<Mount> = there.iter().filter(|m| !real.contains(&key(m))).cloned().collect();
        self.all.retain(|old| new.iter().all(|m| m.mount_id != old.mount_id));
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
        self.sought.extend(new.iter().map(key));
        self.all.extend(new.iter().cloned());
        new
    }
}

fn key(mount: &Mount) -> Key {
    (mount.mount_id, mount.dev)
}

/// The same mount of the same file system, whatever its options are now.
fn is_same(a: &Mount, b: &Mount) -> bool {
    (key(a), a.mount_ns) == (key(b), b.mount_ns)
        && [&a.path, &a.root, &a.fstype, &a.source] == [&b.path, &b.root, &b.fstype, &b.source]
        && (&a.lower, &a.upper) == (&b.lower, &b.upper)
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
            dev,
            ..Mount::default()
        }
    }

    fn paths(known: &KnownMounts) -> Vec<(i32, &str)> {
        known.all().iter().map(|m| (m.mount_id, m.path.as_str())).collect()
    }

    #[test]
    fn a_number_that_is_used_again_is_the_new_mount_s() {
        let (root, first) = (mount(1, 8, HOST, "/"), mount(2, 40, HOST, "/c/first"));
        let mut known = KnownMounts::of(vec![root.clone(), first], HOST);
        // What the first container had inside.
        assert_eq!(known.add((9, 40), &[mount(9, 40, OTHER, "/")]).len(), 1);
        let second = mount(2, 40, HOST, "/c/second");
        let found = known.renew(&[root.clone(), second.clone()]);
        assert_eq!(found, NewMounts { new: vec![second], replaced: HashSet::from([40]), since: 0 });
        assert_eq!(paths(&known), [(1, "/"), (2, "/c/second")]);
        assert!(!known.sought.contains(&(9, 40)), "that of the second one is looked for");
        // And with another number on the same device; containers may differ in their layers only.
        let third = Mount { upper: Some("/layers/3".to_owned()), ..mount(3, 40, HOST, "/c/second") };
        let found = known.renew(&[root, third.clone()]);
        assert_eq!(found, NewMounts { new: vec![third], replaced: HashSet::from([40]), since: 0 });
        assert_eq!(paths(&known), [(1, "/"), (3, "/c/second")]);
    }

    #[test]
    fn what_is_still_mounted_stays() {
        let (root, inside) = (mount(1, 8, HOST, "/"), mount(7, 40, OTHER, "/"));
        let mut known = KnownMounts::of(vec![root.clone(), inside], HOST);
        // A file system is mounted once more, and its first mount has other options.
        let again = mount(5, 8, HOST, "/again");
        let read_only = Mount { options: "ro".to_owned(), ..root };
        let found = known.renew(&[read_only.clone(), again.clone()]);
        assert_eq!(found, NewMounts { new: vec![read_only.clone(), again], replaced: HashSet::new(), since: 0 });
        assert_eq!(paths(&known), [(7, "/"), (1, "/"), (5, "/again")]);
        // After `umount --lazy` processes use it on.
        assert_eq!(known.renew(std::slice::from_ref(&read_only)), NewMounts::default());
        assert_eq!(paths(&known), [(7, "/"), (1, "/"), (5, "/again")]);
        // Another one has its number, on the device of one that is still there.
        let third = mount(5, 8, HOST, "/third");
        let found = known.renew(&[read_only, third.clone()]);
        assert_eq!(found, NewMounts { new: vec![third], replaced: HashSet::new(), since: 0 });
        assert_eq!(paths(&known), [(7, "/"), (1, "/"), (5, "/third")]);
    }

    #[test]
    fn of_one_that_cannot_be_found_another_of_its_file_system_is_described() {
        let root = mount(1, 8, HOST, "/");
        let mut known = KnownMounts::of(vec![root.clone()], HOST);
        let found = known.add((9, 8), std::slice::from_ref(&root));
        assert_eq!(found.iter().map(|m| (m.mount_id, m.mount_ns, m.dev)).collect::<Vec<_>>(), [(9, 0, 8)]);
        let real = mount(9, 8, OTHER, "/data");
        assert_eq!(known.add((9, 8), &[root, real.clone()]), [real]);
        assert_eq!(paths(&known), [(1, "/"), (9, "/data")]);
    }
}
