//! The names of files: given, removed, and moved with their directories.

use std::collections::BTreeMap;

use crate::base::paths::{self, Rooted, lossy_path, moved_inside};
use crate::correlate::resources::files::Files;
use crate::rows::{FilePath, PATHS};

/// A path leads to the file no more.
pub(super) fn leave(by_path: &mut BTreeMap<(u64, Vec<u8>), i32>, path: &(u64, Vec<u8>), id: i32) {
    if by_path.get(path) == Some(&id) {
        by_path.remove(path);
    }
}

impl Files {
    /// A file has a path from now on; what it was called last may still be another name of it.
    pub(super) fn called(&mut self, t_ns: i64, id: i32, (root, path): Rooted, keep: bool) {
        let Some(state) = self.all.get_mut(&id) else { return };
        if path.is_empty() || state.is_at((root, path)) {
            return;
        }
        if let Some(at) = state.other((root, path)) {
            state.others.remove(at);
        }
        let before = std::mem::replace(&mut state.root, root);
        let old = state.path.replace(path.to_vec()).map(|old| (before, old));
        let mut gone: Vec<(u64, Vec<u8>)> = Vec::new();
        if keep {
            state.others.extend(old);
            // It has no more names than its link count: the oldest ones were unlinked unseen.
            let most = (state.links.max(1) as usize).min(PATHS) - 1;
            gone.extend(state.others.drain(..state.others.len().saturating_sub(most)));
        } else {
            gone.extend(old);
        }
        for old in gone {
            leave(&mut self.by_path, &old, id);
        }
        self.by_path.insert((root, path.to_vec()), id);
        let text = lossy_path(path);
        let Some(state) = self.state(id) else { return };
        if state.row.role != "stdio" {
            state.row.role = paths::role(path);
        }
        state.row.first_path.get_or_insert_with(|| text.clone());
        state.lists(&text);
        state.row.path = Some(text.clone());
        state.paths.push(FilePath { file_id: id, path: text, from_ns: t_ns });
        self.mark(id);
    }

    /// A path that led to the file, perhaps through links: its name until a better one is seen.
    pub fn asked_about(&mut self, t_ns: i64, id: i32, path: Rooted) {
        if self.path(id).is_none() {
            self.called(t_ns, id, path, true);
            self.locate(id);
        }
    }

    pub fn by_path(&self, (root, path): Rooted) -> Option<i32> {
        self.by_path.get(&(root, path.to_vec())).copied()
    }

    /// A name is removed. Its file has another one, or none that is known, or none at all.
    pub fn unlink(&mut self, t_ns: i64, (root, path): Rooted) {
        let Some(id) = self.by_path.remove(&(root, path.to_vec())) else { return };
        let Some(state) = self.state(id) else { return };
        state.links = state.links.saturating_sub(1);
        if let Some(at) = state.other((root, path)) {
            state.others.remove(at);
        } else if let Some((root, next)) = state.others.pop() {
            state.inside = None;
            state.leaves_host_path();
            self.called(t_ns, id, (root, &next), false);
            self.locate(id);
        } else {
            state.row.unlinked = state.links == 0;
        }
        self.mark(id);
    }

    /// A file gets another name.
    pub fn link(&mut self, (root, from): Rooted, to: &[u8]) {
        let Some(id) = self.by_path((root, from)) else { return };
        let Some(state) = self.state(id) else { return };
        state.links = state.links.max(1) + 1;
        if state.others.len() + 1 < PATHS {
            state.others.push((root, to.to_vec()));
            state.lists(&lossy_path(to));
            self.by_path.insert((root, to.to_vec()), id);
            self.mark(id);
        }
    }

    /// The names of a file, or of everything below a directory, where these move.
    fn moved(&self, root: u64, from: &[u8], to: &[u8]) -> Vec<(i32, Vec<u8>, Vec<u8>)> {
        let dir = [from, b"/"].concat();
        let inside =
            self.by_path.range((root, dir.clone())..).take_while(|((r, p), _)| *r == root && p.starts_with(&dir));
        let named = inside.map(|((_, p), id)| (*id, p.clone()));
        let all = named.chain(self.by_path((root, from)).map(|id| (id, from.to_vec())));
        all.map(|(id, old)| {
            let new = [to, &old[from.len()..]].concat();
            (id, old, new)
        })
        .collect()
    }

    /// Moves a file, or everything below a directory.
    pub fn rename(&mut self, t_ns: i64, root: u64, from: &[u8], to: &[u8]) {
        let file = self.by_path((root, from));
        // Of two names of one file the kernel leaves both.
        if from == to || (file.is_some() && file == self.by_path((root, to))) {
            return;
        }
        let moved = self.moved(root, from, to);
        if !moved.is_empty() {
            self.unlink(t_ns, (root, to));
        }
        self.moves(t_ns, root, moved);
    }

    /// Two files, or everything below two directories, are exchanged (`RENAME_EXCHANGE`).
    pub fn exchange(&mut self, t_ns: i64, root: u64, one: &[u8], other: &[u8]) {
        if one != other {
            let moved = [self.moved(root, one, other), self.moved(root, other, one)].concat();
            self.moves(t_ns, root, moved);
        }
    }

    fn moves(&mut self, t_ns: i64, root: u64, moved: Vec<(i32, Vec<u8>, Vec<u8>)>) {
        for (id, old, _) in &moved {
            leave(&mut self.by_path, &(root, old.clone()), *id);
        }
        for (id, old, new) in moved {
            let Some(state) = self.all.get_mut(&id) else { continue };
            if let Some(at) = state.other((root, &old)) {
                state.others[at].1.clone_from(&new);
                state.lists(&lossy_path(&new));
                self.by_path.insert((root, new), id);
                self.mark(id);
            } else if state.is_at((root, &old)) {
                state.inside = state.inside.as_deref().and_then(|inside| moved_inside(inside, &old, &new));
                state.leaves_host_path();
                self.called(t_ns, id, (root, &new), false);
                self.locate(id);
            }
        }
    }
}
