//! The root of a span that was written a while ago: block requests come long after the calls they serve.

use std::collections::VecDeque;

use crate::HashMap;
use crate::correlate::calls::stack::Tree;

/// Trees of more than one span that are remembered: of 10 000 a second those of 52 s. Linux writes back what was dirtied 30 s ago
/// (`vm.dirty_expire_centisecs`), and looks each 5 s.
const MAX_TREES: usize = 1 << 19;

/// The trees of a thread.
#[derive(Default)]
struct ThreadTrees {
    /// Calls up to this number are written; `None` before the first.
    written: Option<u32>,
    /// First and last number of each tree that has more than a root, by the last.
    trees: VecDeque<(u32, u32)>,
    /// The outermost phase that is open: the root of everything after it.
    phase: Option<u32>,
    gone: bool,
}

/// What is known per thread. A call of no remembered tree is its own root, which most are.
#[derive(Default)]
pub struct Roots {
    threads: HashMap<u32, ThreadTrees>,
    /// The thread of each tree, in the order in which they were written.
    order: VecDeque<u32>,
    /// So many of them were there when old ones were last forgotten.
    old: usize,
}

impl Roots {
    /// A thread of which spans will be written.
    pub fn begin(&mut self, thread: u32) {
        self.threads.entry(thread).or_default();
    }

    /// A phase was entered outside of every call.
    pub fn enter(&mut self, thread: u32, seq: u32) {
        self.threads.entry(thread).or_default().phase = Some(seq);
    }

    /// A tree was written; `complete` when no call that began before its end is still open.
    pub fn wrote(&mut self, thread: u32, tree: Tree, complete: bool) {
        let known = self.threads.entry(thread).or_default();
        known.phase.take_if(|phase| *phase == tree.root);
        if complete {
            known.written = known.written.max(Some(tree.last));
        }
        if tree.last > tree.root {
            known.trees.push_back((tree.root, tree.last));
            self.order.push_back(thread);
            if self.order.len() > MAX_TREES {
                self.forget();
            }
        }
    }

    /// Forgets the trees that were there when this was last called: a program that forks has few trees in each process.
    pub fn forget_old(&mut self) {
        for _ in 0..self.old {
            self.forget();
        }
        self.old = self.order.len();
    }

    fn forget(&mut self) {
        let Some(thread) = self.order.pop_front() else { return };
        self.old = self.old.saturating_sub(1);
        if let Some(known) = self.threads.get_mut(&thread) {
            known.trees.pop_front();
            if known.gone && known.trees.is_empty() {
                self.threads.remove(&thread);
            }
        }
    }

    /// Nothing more will be written for the thread.
    pub fn end(&mut self, thread: u32) {
        if let Some(known) = self.threads.get_mut(&thread) {
            known.gone = true;
            if known.trees.is_empty() {
                self.threads.remove(&thread);
            }
        }
    }

    /// The number of the root of a call; `None` while that is still open.
    pub fn root(&self, thread: u32, seq: u32) -> Option<u32> {
        let Some(known) = self.threads.get(&thread) else { return Some(seq) };
        let from = known.trees.partition_point(|t| t.1 < seq);
        // Trees nest only where waiting calls were written early, so the first few decide.
        let holds = known.trees.range(from..).take(8).find(|t| t.0 <= seq);
        match holds {
            Some((root, _)) => Some(*root),
            None if known.phase.is_some_and(|phase| phase <= seq) => known.phase,
            None if known.gone || known.written >= Some(seq) => Some(seq),
            None => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tree(root: u32, last: u32) -> Tree {
        Tree { root, last, id: 0 }
    }

    #[test]
    fn old_trees_and_threads_that_had_only_such_are_forgotten() {
        let mut roots = Roots::default();
        for thread in 0..1000 {
            roots.begin(thread);
            roots.wrote(thread, tree(2, 5), true);
            roots.end(thread);
        }
        roots.forget_old();
        roots.wrote(1000, tree(2, 5), true);
        assert_eq!([0, 1000].map(|thread| roots.root(thread, 4)), [Some(2); 2], "all are kept once");
        roots.forget_old();
        assert_eq!([0, 1000].map(|thread| roots.root(thread, 4)), [Some(4), Some(2)]);
        assert_eq!(roots.threads.keys().collect::<Vec<_>>(), [&1000]);
        roots.forget_old();
        assert_eq!(roots.root(1000, 4), Some(4));
    }

    #[test]
    fn a_root_is_known_once_its_tree_is_written() {
        let mut roots = Roots::default();
        roots.begin(1);
        assert_eq!(roots.root(1, 3), None);
        roots.wrote(1, tree(2, 5), true);
        roots.wrote(1, tree(6, 6), true);
        assert_eq!([1, 2, 4, 6].map(|seq| roots.root(1, seq)), [Some(1), Some(2), Some(2), Some(6)]);
        assert_eq!(roots.root(1, 7), None);
        roots.end(1);
        assert_eq!([4, 7].map(|seq| roots.root(1, seq)), [Some(2), Some(7)]);
    }

    #[test]
    fn an_open_phase_is_the_root_of_what_comes_after_it() {
        let mut roots = Roots::default();
        roots.wrote(1, tree(1, 2), true);
        roots.enter(1, 4);
        assert_eq!([2, 3, 4, 9].map(|seq| roots.root(1, seq)), [Some(1), None, Some(4), Some(4)]);
        // Calls whose enclosing ones were still to come.
        roots.wrote(1, tree(5, 6), false);
        assert_eq!([6, 7].map(|seq| roots.root(1, seq)), [Some(5), Some(4)]);
        roots.wrote(1, tree(4, 9), true);
        assert_eq!([3, 6, 8, 10].map(|seq| roots.root(1, seq)), [Some(3), Some(5), Some(4), None]);
    }

    #[test]
    fn trees_written_early_keep_their_own_root() {
        let mut roots = Roots::default();
        roots.wrote(1, tree(5, 8), false);
        assert_eq!([6, 9].map(|seq| roots.root(1, seq)), [Some(5), None]);
        roots.wrote(1, tree(1, 12), true);
        assert_eq!([3, 6, 10].map(|seq| roots.root(1, seq)), [Some(1), Some(5), Some(1)]);
    }
}
