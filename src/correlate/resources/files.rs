//! Files by identity: their paths over time, sizes, roles.

mod names;

use std::collections::{BTreeMap, HashSet};

use crate::HashMap;
use crate::base::paths::{Rooted, below, lossy_path};
use crate::correlate::resources::files::names::leave;
use crate::event::{FileKey, Mounted, Sighting, Striping};
use crate::rows::{File, FilePath, Mount, PATHS, Row};

struct FileState {
    row: File,
    path: Option<Vec<u8>>,
    /// Where that starts.
    root: u64,
    /// Its other names, the oldest first: a file with hard links has several.
    others: Vec<(u64, Vec<u8>)>,
    /// Link count as last reported; 0: not known, or none.
    links: u32,
    /// Paths that it was seen by besides the first one.
    more: Vec<String>,
    /// The path in its file system.
    inside: Option<Vec<u8>>,
    /// What the kernel calls that.
    fstype: String,
    /// The mount it was opened through; 0: not known.
    mount: i32,
    /// The device that mounts of its file system have.
    fs_dev: u32,
    /// Its file system is gone: what is known of where it lies stays.
    settled: bool,
    /// Paths not written yet: a file that no span uses is never written.
    paths: Vec<FilePath>,
    used: bool,
    queued: bool,
    /// The size changed; worth a row when the file is closed, not at every write.
    resized: bool,
    /// Reported by the kernel side, and not only the subject of a query such as stat.
    reported: bool,
    /// `reported` or `asked` of [`Files`] when it was used last.
    last: u64,
}

/// A file is forgotten when so many others were reported, or asked about, since its last use, unless it is open. One
/// that comes back has another id. For reported ones this must be more than the kernel side remembers (`iot_files` in
/// `bpf/files/path.h`): it reports again what it has forgotten itself.
const REMEMBERED: u64 = 2 * 65_536;
/// The same for unlinked files: only open handles lead to them.
const NAMELESS: u64 = 4096;
/// How often it is looked what can be forgotten: after so many files.
const ROUND: u64 = 16_384;

impl FileState {
    fn is_at(&self, (root, path): Rooted) -> bool {
        self.root == root && self.path.as_deref() == Some(path)
    }

    /// It has another name now. Where it was on a file system that is gone is the last that is known.
    fn leaves_host_path(&mut self) {
        if !self.settled {
            self.row.host_path = None;
        }
    }

    fn names(&self) -> impl Iterator<Item = &String> {
        self.row.first_path.iter().chain(&self.more)
    }

    /// It is known by this path, too.
    fn lists(&mut self, path: &str) {
        if self.names().all(|p| p != path) && self.more.len() + 1 < PATHS {
            self.more.push(path.to_owned());
        }
    }

    /// The row as it is written.
    fn to_row(&self) -> File {
        let paths = self.row.first_path.as_ref().map(|_| self.names().cloned().collect());
        File { paths, ..self.row.clone() }
    }

    fn other(&self, (root, path): Rooted) -> Option<usize> {
        self.others.iter().position(|(r, p)| (*r, p.as_slice()) == (root, path))
    }
}

/// Every file that was seen lately; ids count from 1.
#[derive(Default)]
pub struct Files {
    all: HashMap<i32, Box<FileState>>,
    last: i32,
    /// Number of reports of files by the kernel side.
    reported: u64,
    /// Those that were only asked about.
    asked: u64,
    /// When it is looked next what can be forgotten.
    next: u64,
    /// What was forgotten, until it is taken.
    gone: Vec<i32>,
    by_key: HashMap<FileKey, i32>,
    /// The last file of a device and inode, whatever its generation.
    by_inode: HashMap<(u32, u64), i32>,
    /// Of file systems of layers: by the file below that carries the data.
    by_data: HashMap<FileKey, i32>,
    /// By root directory and path.
    by_path: BTreeMap<(u64, Vec<u8>), i32>,
    /// Of files that were not reported yet.
    striped: HashMap<FileKey, Striping>,
    mounts: Vec<Mount>,
    /// The number of that list.
    list: u64,
    /// The mount namespace that is the host's.
    host: i64,
    changed: Vec<i32>,
}

impl Files {
    /// The mounts that files lie on; files seen before are looked up again, if these may have changed it.
    pub fn set_mounts(&mut self, mut mounts: Vec<Mount>, host: i64) {
        mounts.sort_by_key(|m| std::cmp::Reverse(m.path.len()));
        let before = std::mem::replace(&mut self.mounts, mounts);
        self.host = host;
        let differ =
            |a: &[Mount], b: &[Mount]| -> Vec<i64> { a.iter().filter(|m| !b.contains(m)).map(|m| m.dev).collect() };
        let devices: HashSet<i64> =
            [differ(&before, &self.mounts), differ(&self.mounts, &before)].into_iter().flatten().collect();
        for id in self.ids() {
            let Some(state) = self.get(id).filter(|state| state.path.is_some()) else { continue };
            let is_found = state.row.mount_id == Some(state.mount) && !devices.contains(&state.fs_dev.into());
            if !is_found && self.locate(id) {
                self.mark(id);
            }
        }
    }

    /// Mounts were made, some perhaps with the devices of file systems that are gone.
    pub fn mounted(&mut self, Mounted { number, mounts, host, replaced, .. }: Mounted) {
        if !replaced.is_empty() {
            for state in self.all.values_mut().filter(|state| replaced.contains(&state.fs_dev.into())) {
                state.settled = true;
            }
        }
        // Each was read after those before.
        if number > self.list {
            self.list = number;
            self.set_mounts(mounts, host);
        }
    }

    fn ids(&self) -> Vec<i32> {
        let mut ids: Vec<i32> = self.all.keys().copied().collect();
        ids.sort_unstable();
        ids
    }

    fn state(&mut self, id: i32) -> Option<&mut FileState> {
        self.all.get_mut(&id).map(Box::as_mut)
    }

    fn get(&self, id: i32) -> Option<&FileState> {
        self.all.get(&id).map(Box::as_ref)
    }

    /// A file that was seen before. Generation 0 matches any: stat and /proc do not have it.
    pub fn known(&self, key: FileKey) -> Option<i32> {
        let exact = self.by_key.get(&key).copied();
        exact.or_else(|| {
            let id = *self.by_inode.get(&(key.dev, key.ino))?;
            let row = &self.get(id)?.row;
            ((key.generation == 0 || row.generation == 0) && !row.unlinked).then_some(id)
        })
    }

    /// The file that has its data in this one: itself, or one on a file system of layers that was seen before.
    pub fn of_data(&self, key: FileKey) -> Option<i32> {
        self.by_data.get(&key).copied().or_else(|| self.known(key))
    }

    /// The device that its data is on, and the one by which the journal of its file system is known.
    pub fn devices(&self, id: i32) -> [u32; 2] {
        let Some(state) = self.get(id) else { return [0; 2] };
        state.row.data_dev.map_or([state.row.dev as u32, state.fs_dev], |dev| [dev as u32; 2])
    }

    pub fn intern(&mut self, key: FileKey) -> i32 {
        let Some(id) = self.known(key) else { return self.add(key) };
        if key.generation != 0 && !self.by_key.contains_key(&key) {
            self.by_key.remove(&FileKey { generation: 0, ..key });
            self.by_key.insert(key, id);
            if let Some(state) = self.state(id) {
                state.row.generation = i64::from(key.generation);
            }
            self.mark(id);
        }
        id
    }

    fn add(&mut self, key: FileKey) -> i32 {
        self.last += 1;
        let id = self.last;
        self.asked += 1;
        let row = File::placeholder(id, key);
        let state = FileState {
            row,
            path: None,
            root: 0,
            others: Vec::new(),
            links: 0,
            more: Vec::new(),
            inside: None,
            fstype: String::new(),
            mount: 0,
            fs_dev: key.dev,
            settled: false,
            paths: Vec::new(),
            used: false,
            queued: false,
            resized: false,
            reported: false,
            last: self.asked,
        };
        self.all.insert(id, Box::new(state));
        self.by_key.insert(key, id);
        self.by_inode.insert((key.dev, key.ino), id);
        id
    }

    /// The kernel side reports a file.
    pub fn seen(&mut self, t_ns: i64, key: FileKey, seen: &Sighting) -> i32 {
        let mut id = self.intern(key);
        if self.get(id).is_some_and(|state| state.settled) {
            // Files of one image have the same numbers in each container.
            id = self.add(key);
        }
        if key.generation == 0 && seen.links > 0 && self.get(id).is_some_and(|state| state.row.unlinked) {
            // The inode is used again; only the unlink shows it.
            id = self.add(key);
        }
        if let Some(data) = seen.data {
            self.by_data.insert(data, id);
        }
        if let Some(striping) = self.striped.remove(&key) {
            self.set_striping(id, striping);
        }
        self.reported += 1;
        let reported = self.reported;
        let Some(state) = self.state(id) else { return id };
        (state.reported, state.last) = (true, reported);
        state.mount = seen.mount;
        if seen.fs_dev != 0 {
            state.fs_dev = seen.fs_dev;
        }
        state.inside.clone_from(&seen.inside);
        state.fstype.clone_from(&seen.fstype);
        state.links = seen.links;
        let before = state.row.clone();
        let row = &mut state.row;
        row.unlinked = seen.links == 0;
        row.size_first.get_or_insert(seen.size as i64);
        row.blksize = seen.block_size.and_then(|bytes| i32::try_from(bytes).ok()).or(row.blksize);
        if let Some(data) = seen.data {
            (row.data_dev, row.data_ino) = (Some(i64::from(data.dev)), Some(data.ino as i64));
        }
        if *row != before {
            self.mark(id);
        }
        self.called(t_ns, id, (seen.root, &seen.path), true);
        self.locate(id);
        self.resize(id, seen.size as i64);
        id
    }

    /// The striping of a file, from its file system; it may come before the file is reported.
    pub fn is_striped(&mut self, key: FileKey, striping: Striping) {
        match self.by_key.get(&key).copied() {
            Some(id) => self.set_striping(id, striping),
            None => drop(self.striped.insert(key, striping)),
        }
    }

    fn set_striping(&mut self, id: i32, striping: Striping) {
        if let Some(state) = self.state(id) {
            (state.row.stripe_count, state.row.stripe_size) = (Some(striping.count), Some(striping.size));
        }
        self.mark(id);
    }

    /// A descriptor from 0 to 2 that was open before the trace began.
    pub fn is_stdio(&mut self, id: i32) {
        if let Some(state) = self.state(id) {
            state.row.role = "stdio";
        }
        self.mark(id);
    }

    /// Finds the mount that it lies on, and its path in the host's; are they others than before?
    fn locate(&mut self, id: i32) -> bool {
        let Some(state) = self.get(id).filter(|state| !state.settled) else { return false };
        let (mount, dev) = (state.mount, i64::from(state.fs_dev));
        let path = state.path.as_deref().unwrap_or_default();
        let holds = |m: &&Mount| below(m.path.as_bytes(), path).is_some();
        // What the kernel mounts for itself has numbers from 0, too. The list of mounts has more about FUSE than its own name.
        let is_of =
            |m: &&Mount| [m.fstype.as_str(), ""].contains(&state.fstype.as_str()) || m.fstype.starts_with("fuse");
        // A path leads through the mounts of its process, and the numbers of mounts are used again.
        let find = |keep: &dyn Fn(&&Mount) -> bool| self.mounts.iter().find(keep);
        let found = find(&|m| m.mount_id == mount && m.dev == dev)
            .or_else(|| find(&|m| m.dev == dev && holds(m)))
            .or_else(|| find(&|m| [0, m.mount_id].contains(&mount) && holds(m) && is_of(m)))
            .map(|m| (m.mount_id, m.fstype.clone()));
        let host_path = state.inside.as_deref().and_then(|inside| self.host_path(dev, mount, inside));
        let Some(state) = self.state(id) else { return false };
        let mut changed = false;
        if host_path.is_some() && state.row.host_path != host_path {
            state.row.host_path = host_path;
            changed = true;
        }
        let lies_on = match found {
            Some((mount, fstype)) => (Some(mount), Some(fstype)),
            // The one found by its path, before the mount was known, was another one.
            None if !state.fstype.is_empty() => (None, Some(state.fstype.clone())),
            None => return changed,
        };
        let row = &mut state.row;
        changed |= (row.mount_id, &row.fstype) != (lies_on.0, &lies_on.1);
        (row.mount_id, row.fstype) = lies_on;
        changed
    }

    /// Where the host has mounted a file: through the same mount, else where it has most of the file system.
    fn host_path(&self, dev: i64, mount: i32, inside: &[u8]) -> Option<String> {
        let here = self.mounts.iter().filter(|m| m.mount_ns == self.host && m.dev == dev);
        let holding = here.filter_map(|m| Some((m, below(m.root.as_bytes(), inside)?)));
        let (m, rest) = holding.min_by_key(|(m, _)| (m.mount_id != mount, m.root.len(), m.mount_id))?;
        let path = [m.path.trim_end_matches('/').as_bytes(), rest].concat();
        Some(if path.is_empty() { "/".to_owned() } else { lossy_path(&path) })
    }

    /// The mount that it lies on.
    pub fn mount(&self, id: i32) -> Option<&Mount> {
        let state = self.get(id)?;
        let mount = state.row.mount_id?;
        let of = |m: &&Mount| m.mount_id == mount;
        // Numbers of mounts are used again; FUSE and btrfs have other devices in the list.
        let here = self.mounts.iter().find(|m| of(m) && m.dev == i64::from(state.fs_dev));
        here.or_else(|| self.mounts.iter().find(of))
    }

    /// The devices that its data may be on.
    pub fn devs(&self, id: i32) -> [Option<i64>; 2] {
        self.get(id).map_or([None; 2], |state| [Some(state.row.dev), state.row.data_dev])
    }

    pub fn path(&self, id: i32) -> Option<&[u8]> {
        self.get(id)?.path.as_deref()
    }

    pub fn role(&self, id: i32) -> &'static str {
        self.get(id).map_or("data", |state| state.row.role)
    }

    /// Have so many come that some are to be forgotten?
    pub fn has_many(&self) -> bool {
        self.reported + self.asked >= self.next + ROUND
    }

    /// Forgets those that were not used for long and are not open.
    pub fn forget(&mut self, open: &HashSet<i32>) {
        self.next = self.reported + self.asked;
        let (reported, asked) = (self.reported, self.asked);
        let gone = self.all.extract_if(|id, state| {
            let since = if state.reported { reported } else { asked } - state.last;
            let room = if state.row.unlinked { NAMELESS } else { REMEMBERED };
            since > room && !state.queued && !open.contains(id)
        });
        for (id, state) in gone {
            self.gone.push(id);
            let FileState { row, root, path, others, .. } = *state;
            let (dev, ino, generation) = (row.dev as u32, row.ino as u64, row.generation as u32);
            for key in [FileKey { dev, generation, ino }, FileKey { dev, generation: 0, ino }] {
                if self.by_key.get(&key) == Some(&id) {
                    self.by_key.remove(&key);
                }
            }
            if self.by_inode.get(&(dev, ino)) == Some(&id) {
                self.by_inode.remove(&(dev, ino));
            }
            for name in path.map(|path| (root, path)).into_iter().chain(others) {
                leave(&mut self.by_path, &name, id);
            }
        }
        let all = &self.all;
        self.by_data.retain(|_, id| all.contains_key(id));
    }

    /// What was forgotten since this was asked last.
    pub fn gone(&mut self) -> Vec<i32> {
        std::mem::take(&mut self.gone)
    }

    /// Its size as last reported.
    pub fn size(&self, id: i32) -> Option<i64> {
        self.get(id)?.row.size_last
    }

    pub fn resize(&mut self, id: i32, size: i64) {
        if let Some(state) = self.state(id).filter(|state| state.row.size_last != Some(size)) {
            state.row.size_last = Some(size);
            state.resized = true;
        }
    }

    /// A write ended at `end`.
    pub fn wrote_to(&mut self, id: i32, end: i64) {
        if self.get(id).is_some_and(|state| state.row.size_last.is_some_and(|size| size < end)) {
            self.resize(id, end);
        }
    }

    /// A handle on it was closed.
    pub fn closed(&mut self, id: i32) {
        if self.get(id).is_some_and(|state| state.resized) {
            self.mark(id);
        }
    }

    /// A written row refers to it.
    pub fn used(&mut self, id: i32) {
        let (reported, asked) = (self.reported, self.asked);
        let Some(state) = self.state(id) else { return };
        state.last = if state.reported { reported } else { asked };
        if !std::mem::replace(&mut state.used, true) {
            self.mark(id);
        }
    }

    /// Their rows count for nothing any more.
    pub fn forgotten(&mut self, ids: &[i32]) {
        for id in ids {
            if let Some(state) = self.state(*id) {
                state.used = false;
            }
        }
    }

    fn mark(&mut self, id: i32) {
        if let Some(state) = self.state(id).filter(|state| state.used && !state.queued) {
            state.queued = true;
            self.changed.push(id);
        }
    }

    /// Writes what changed.
    pub fn write(&mut self, out: &mut Vec<Row>) {
        for id in std::mem::take(&mut self.changed) {
            let Some(state) = self.state(id) else { continue };
            (state.queued, state.resized) = (false, false);
            out.push(Row::File(Box::new(state.to_row())));
            // With their room: most files never get another name.
            out.extend(std::mem::take(&mut state.paths).into_iter().map(Row::FilePath));
        }
    }

    /// Writes the final row of every file.
    pub fn finish(&mut self, out: &mut Vec<Row>) {
        for id in self.ids() {
            self.closed(id);
        }
        self.write(out);
    }
}

#[cfg(test)]
mod tests;
