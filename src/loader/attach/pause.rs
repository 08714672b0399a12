//! Pauses probes: takes those of MPI communication away for a while, where a thread does nothing else.
//!
//! What is sent outside of I/O is not recorded and pays for its probes all the same, and inside small collective I/O
//! they cost more than all else. In short windows the probes are back, and when calls have become rare they stay.

use crate::loader::attach::{Engine, Links, Probes, Set};
use crate::loader::kernel::LibTier;
use crate::skel::IotraceProgs;
use libbpf_rs::Link;

impl Probes {
    /// What is set of those that can be paused, to be taken away.
    pub(super) fn pause(&mut self, links: &mut Links) -> Vec<Link> {
        self.paused = true;
        std::mem::take(&mut links.pausing)
    }

    /// Calls this for what is set in each process, or in all.
    fn each(&mut self, mut act: impl FnMut(&Self, i32, &mut Links)) {
        let mut set = std::mem::replace(&mut self.set, Set::All(Links::default()));
        match &mut set {
            Set::Each(all) => all.values_mut().for_each(|own| act(self, own.pid as i32, &mut own.links)),
            Set::All(links) => act(self, crate::loader::attach::links::ALL, links),
        }
        self.set = set;
    }
}

impl Engine {
    /// Not where each probe is set by itself: to set and to take away as many would take too long.
    pub fn can_pause(&self) -> bool {
        self.tier.as_ref().is_ok_and(|tier| *tier != LibTier::Single)
    }

    /// Those to be taken away, in every file that has some.
    pub fn pause(&mut self) -> Vec<Link> {
        self.paused = true;
        let mut gone = Vec::new();
        for probes in self.files_that_pause() {
            probes.paused = true;
            probes.each(|_, _, links| gone.append(&mut links.pausing));
        }
        gone
    }

    /// Sets them again.
    pub fn resume(&mut self, progs: &IotraceProgs<'_>) {
        self.paused = false;
        for probes in self.files_that_pause() {
            probes.paused = false;
            probes.each(|probes, pid, links| {
                links.pausing = probes.parts_in(&probes.pausing, progs, pid).unwrap_or_default();
            });
        }
    }

    fn files_that_pause(&mut self) -> impl Iterator<Item = &mut Probes> {
        let probes = self.classified.values_mut().filter_map(|classified| classified.probes.as_mut());
        probes.filter(|probes| !probes.pausing.is_empty())
    }
}
