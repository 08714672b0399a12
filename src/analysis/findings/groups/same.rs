//! Files that several datasets have an id of their own for, and that are one: of tracers on one node, or on a file system that
//! nodes share.

use crate::HashMap;
use crate::analysis::trace::source::Hosts;
use crate::rows::{File, Mount};

/// Files that are compared.
const FILES_MAX: usize = 1 << 17;

/// What files of two datasets have in common if they are one.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
enum Identity {
    /// Numbers of devices and inodes are those of a node.
    OfNode { node: u32, dev: i64, ino: i64, generation: i64 },
    /// A file system has one inode number for a file on all nodes; those that FUSE programs make up may be in use for
    /// another file elsewhere, as those of a file that was removed.
    Shared { source: String, ino: i64, name: String },
}

/// Which ids of files stand for one file.
#[derive(Debug, Clone, Default)]
pub struct Same {
    /// The first id of each dataset, and its node.
    nodes: Vec<(i64, u32)>,
    /// What is mounted from other nodes, by mount.
    remote: HashMap<i32, String>,
    first: HashMap<Identity, i32>,
    /// The id that another dataset has for a file, by those that it has in later ones.
    ids: HashMap<i32, i32>,
    full: bool,
}

impl Same {
    /// From these ids on files are of these hosts. Of one dataset there are none.
    pub fn of(hosts: &Hosts) -> Self {
        let node = |host: &str| hosts.0.iter().position(|(_, known)| known == host).unwrap_or(0);
        let nodes = hosts.0.iter().map(|(first, host)| (*first, u32::try_from(node(host)).unwrap_or(u32::MAX)));
        Self { nodes: nodes.collect(), ..Self::default() }
    }

    /// There were more files than can be compared.
    pub const fn is_full(&self) -> bool {
        self.full
    }

    pub fn mount(&mut self, mount: &Mount) {
        if self.nodes.len() > 1 && mount.scope == "remote" {
            self.remote.insert(mount.mount_id, format!("{} {}", mount.fstype, mount.source));
        }
    }

    /// Mounts come before the files on them.
    pub fn file(&mut self, file: &File) {
        if self.nodes.len() < 2 || self.full || !is_data(file) {
            return;
        }
        let id = file.file_id;
        let first = *self.first.entry(self.identity(file)).or_insert(id);
        let first = self.ids.get(&first).copied().unwrap_or(first);
        if first != id {
            self.ids.insert(id, first);
        }
        if self.first.len() > FILES_MAX {
            let nodes = std::mem::take(&mut self.nodes);
            *self = Self { nodes, full: true, ..Self::default() };
        }
    }

    fn identity(&self, file: &File) -> Identity {
        let name = file.first_path.as_ref().or(file.path.as_ref()).and_then(|path| path.rsplit('/').next());
        let source = file.mount_id.and_then(|mount| self.remote.get(&mount));
        if let (Some(source), Some(name)) = (source, name) {
            Identity::Shared { source: source.clone(), ino: file.ino, name: name.to_owned() }
        } else {
            let node = self.node(file.file_id);
            Identity::OfNode { node, dev: file.dev, ino: file.ino, generation: file.generation }
        }
    }

    /// The node whose tracer gave an id to a file.
    pub fn node(&self, file: i32) -> u32 {
        let after = self.nodes.partition_point(|(first, _)| *first <= i64::from(file));
        after.checked_sub(1).and_then(|at| self.nodes.get(at)).map_or(0, |(_, node)| *node)
    }

    /// The id of a file in another dataset, if that is the one to take.
    pub fn other(&self, file: Option<i32>) -> Option<i32> {
        self.ids.get(&file?).copied()
    }
}

/// Is it no standard stream, device, library, and none of /proc?
pub fn is_data(file: &File) -> bool {
    ["data", "temp"].contains(&file.role) && file.fstype.as_deref() != Some("devtmpfs")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::analysis::findings::tests::made::{file, mount};

    /// Files of a dataset each on these hosts: inode, mount, and the path that it has there.
    fn ids<const N: usize>(files: [(&str, i64, i32, &str); N]) -> [i32; N] {
        let hosts = files.iter().enumerate().map(|(n, (host, ..))| (n as i64 * 10, (*host).to_owned()));
        let mut same = Same::of(&Hosts(hosts.collect()));
        for (id, fstype, scope) in [(1, "ext4", "local"), (2, "lustre", "remote"), (3, "lustre", "remote")] {
            same.mount(&mount(id, fstype, scope));
        }
        let id = |n: usize| n as i32 * 10 + 1;
        for (n, (_, ino, mount, path)) in files.into_iter().enumerate() {
            let file = file(id(n));
            let first_path = Some(path.to_owned());
            same.file(&File { ino, mount_id: Some(mount), first_path, ..file });
        }
        std::array::from_fn(|n| same.other(Some(id(n))).unwrap_or(id(n)))
    }

    #[test]
    fn one_inode_number_on_two_nodes_is_two_files() {
        assert_eq!(ids([("a", 7, 1, "/tmp/x"), ("b", 7, 1, "/tmp/x")]), [1, 11]);
    }

    #[test]
    fn one_node_has_one_file_whoever_traces_it() {
        assert_eq!(ids([("a", 7, 1, "/tmp/x"), ("b", 7, 1, "/tmp/x"), ("a", 7, 1, "/tmp/y")]), [1, 11, 1]);
    }

    #[test]
    fn a_file_of_a_shared_file_system_is_one_on_all_nodes() {
        assert_eq!(ids([("a", 7, 2, "/lustre/x"), ("b", 7, 3, "/scratch/x"), ("b", 8, 3, "/scratch/x")]), [1, 1, 21]);
        assert_eq!(ids([("a", 7, 2, "/lustre/x"), ("b", 7, 3, "/lustre/y")]), [1, 11], "another file since");
        assert_eq!(ids([("a", 7, 2, "/lustre/x"), ("b", 7, 1, "/lustre/x")]), [1, 11], "a local one");
    }
}
