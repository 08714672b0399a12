//! The processes that are traced: which these are, and which probes they get.

use crate::event::{FileKey, Written};
use crate::loader::attach::{Engine, Target};
use crate::loader::code::examine::Seen;
use crate::loader::code::remembered::Inode;
use crate::loader::kernel::hooks::LIST_THREADS;
use crate::loader::processes::guardian::Next;
use crate::loader::processes::seccomp::{Call, Notice};
use crate::loader::processes::{existing, maps, real};
use crate::loader::session::load::lib_key;
use crate::loader::session::{SETTLE, Session, probes};
use crate::loader::stacks::inflight;
use crate::rows::Coverage;
use crate::skel::IotraceProgs;
use crate::skel::types::{iot_armed, iot_lib_state};
use crate::vocabulary::Layer;
use anyhow::{Context as _, Result};
use libbpf_rs::{MapCore as _, MapFlags};
use std::collections::BTreeSet;
use std::time::Instant;

/// How often the table of targets is emptied at the end.
const FORGET_ROUNDS: u32 = 4;

impl Session<'_> {
    /// Makes a process a target, unless it is one; `armed: false` means from its next exec on. Is it a new one?
    pub fn add_target(&self, pid: u32, process: u32, armed: bool) -> Result<bool> {
        let mut value = process.to_ne_bytes().to_vec();
        let state = if armed { iot_armed::IOT_ARMED.0 as u16 } else { 0 };
        value.extend(state.to_ne_bytes());
        value.extend(0_u16.to_ne_bytes());
        value.extend(0_u32.to_ne_bytes());
        match self.skel.maps.iot_targets.update(&pid.to_ne_bytes(), &value, MapFlags::NO_EXIST) {
            Ok(()) => {
                if armed && existing::copies_stacks(pid) {
                    value[4] |= iot_armed::IOT_COPIES_STACKS.0 as u8;
                    // It may have ended.
                    let _ = self.skel.maps.iot_targets.update(&pid.to_ne_bytes(), &value, MapFlags::EXIST);
                }
                Ok(true)
            }
            Err(e) if e.kind() == libbpf_rs::ErrorKind::AlreadyExists => Ok(false),
            Err(e) => {
                Err(e).with_context(|| format!("cannot enter process {pid} into the BPF map of traced processes"))
            }
        }
    }

    /// All that run already are targets: from now on a thread that the kernel side does not know is none of a target, which
    /// is what system calls of all others ask. Not where processes become targets by themselves.
    pub fn list_threads(&mut self) {
        let listed = self.iterators.get(LIST_THREADS).is_some_and(inflight::run);
        if listed && let Some(data) = self.skel.maps.data_data.as_deref_mut() {
            data.iot_unlisted = 0;
        }
    }

    /// Attaches to every library that a process maps, if it is a target. The layers that have new probes. `moved`: its
    /// first thread is another one by now.
    pub fn attach_process(&mut self, pid: u32, asked: Option<(FileKey, Written)>, moved: bool) -> BTreeSet<Layer> {
        let before = self.engine.verdicts();
        if moved && let Some(process) = self.process_of(pid) {
            self.engine.forget(process);
        }
        if let Some((file, written)) = asked
            && self.engine.is_classified(file, written)
        {
            self.mark(file, true);
            // Processes that waited for its probes get them.
            let inode = (file.dev, file.ino);
            if self.process_of(pid).is_some_and(|process| self.engine.lacks(process, inode)) {
                self.attach_to(pid, Some(inode));
            }
        } else {
            // A process that is gone takes its mappings along; the next one that maps the file is asked again.
            let settled = self.attach_to(pid, asked.map(|(file, _)| (file.dev, file.ino)));
            if let Some((file, _)) = asked {
                self.looked_into.insert(pid);
                self.mark(file, settled.contains(&(file.dev, file.ino)));
                self.engine.learn(file);
            }
        }
        self.new_layers(before)
    }

    /// Before a call of a held command goes on: the probes that its process needs from then on. Nothing is lost
    /// meanwhile. What need not be asked again.
    pub fn prepare(&mut self, notice: &Notice) -> Next {
        let before = self.engine.verdicts();
        let knows_file = match notice.call {
            Call::Map(fd) => self.prepare_mapping(notice.tid, fd),
            Call::Start => {
                self.begun.extend(self.process_of(notice.tid));
                // The program and its loader are mapped, which may be the C library; other libraries come by `mmap`.
                let settled = self.attach_to(notice.tid, None);
                !settled.is_empty() && settled.iter().all(|inode| !self.engine.sets_in_each(Some(*inode)))
            }
            // A thread that begins is the guardian's own affair: this is the first one of a process.
            Call::Fork => {
                if self.engine.sets_in_each(None)
                    && let Some(process) = self.process_of(notice.tid)
                    && self.begun.insert(process)
                {
                    self.attach_to(notice.tid, None);
                }
                false
            }
        };
        self.new_layers(before);
        // It has what its parent has.
        Next { knows_file, knows_forks: !self.engine.sets_in_each(None) }
    }

    /// True: nothing has to be done where that file is mapped.
    fn prepare_mapping(&mut self, tid: u32, fd: i32) -> bool {
        let Some((file, written)) = real::descriptor(probes(&self.skel, self.second.as_ref()), tid, fd) else {
            return false;
        };
        let inode = Some((file.dev, file.ino));
        if self.engine.is_classified(file, written) && !self.engine.sets_in_each(inode) {
            return true;
        }
        let status = std::fs::read(format!("/proc/{tid}/status")).map(|text| maps::status(&text)).unwrap_or_default();
        let pid = status.tgid.unwrap_or(tid);
        let Some(process) = self.process_of(pid) else { return false };
        if self.engine.spares(Target { pid, process }) {
            return false;
        }
        self.attaches(process, |engine, progs| {
            engine.meet(Target { pid, process }, &Seen::Descriptor(fd, (file.dev, file.ino)), progs);
            engine.learn(file);
        });
        self.mark(file, true);
        self.engine.is_classified(file, written) && !self.engine.sets_in_each(inode)
    }

    /// Sets the probes of what a process maps; see [`Engine::attach_process`].
    fn attach_to(&mut self, pid: u32, asked: Option<Inode>) -> Vec<Inode> {
        let Some(process) = self.process_of(pid) else { return Vec::new() };
        self.attaches(process, |engine, progs| engine.attach_process(Target { pid, process }, asked, progs))
    }

    fn set_several(&mut self, process: u32) {
        let several = u32::from(self.engine.may_have_several(process));
        if let Some(data) = self.skel.maps.bss_data.as_deref_mut() {
            data.iot_several = several;
        }
    }

    fn attaches<T>(&mut self, process: u32, set: impl FnOnce(&mut Engine, &IotraceProgs<'_>) -> T) -> T {
        self.set_settled(false);
        self.set_several(process);
        let begun = Instant::now();
        let done = set(&mut self.engine, probes(&self.skel, self.second.as_ref()));
        // It may be known by now that stacks are switched.
        self.set_several(process);
        self.share();
        self.engine.wait_for_vetoes();
        self.attaching += begun.elapsed();
        self.settles = Some(Instant::now() + SETTLE);
        done
    }

    /// The layers that have new probes since the verdicts `before`.
    fn new_layers(&mut self, before: Vec<Coverage>) -> BTreeSet<Layer> {
        let new = self.engine.verdicts();
        let layers = new.iter().filter(|c| c.status == "attached").map(|c| c.layer).collect();
        self.hooks.extend(before.into_iter().chain(new));
        layers
    }

    /// The numbers of all targets.
    pub(super) fn numbers(&self) -> impl Iterator<Item = u32> {
        let targets = &self.skel.maps.iot_targets;
        let values = targets.keys().filter_map(|pid| targets.lookup(&pid, MapFlags::ANY).ok().flatten());
        values.filter_map(|value| value.first_chunk().map(|b| u32::from_ne_bytes(*b)))
    }

    /// Of processes that were looked into as far as what they asked about: what was not asked about (a question found no room,
    /// or a mapping became executable later) is there now.
    pub(super) fn look_again(&mut self) {
        for pid in std::mem::take(&mut self.looked_into) {
            // Its number may be another process's by now.
            if let Some(process) = self.process_of(pid) {
                let progs = probes(&self.skel, self.second.as_ref());
                self.engine.attach_process(Target { pid, process }, None, progs);
            }
        }
    }

    fn mark(&self, file: FileKey, classified: bool) {
        let key = lib_key(file);
        let libs = &self.skel.maps.iot_libs;
        if !classified {
            let _ = libs.delete(&key);
        } else if let Ok(Some(mut value)) = libs.lookup(&key, MapFlags::ANY)
            && let Some(state) = value.first_chunk_mut()
        {
            // With it stands when the file was written, as the kernel side saw it. A table that had no room for it only
            // means that the file is asked about again.
            let each = self.engine.sets_in_each(Some((file.dev, file.ino)));
            let new = if each { iot_lib_state::IOT_LIB_PROBED } else { iot_lib_state::IOT_LIB_CLASSIFIED };
            *state = new.0.to_ne_bytes();
            let _ = libs.update(&key, &value, MapFlags::EXIST);
        }
    }

    /// The number that it has as a target, while it is one.
    pub fn process_of(&self, pid: u32) -> Option<u32> {
        let value = self.skel.maps.iot_targets.lookup(&pid.to_ne_bytes(), MapFlags::ANY).ok().flatten()?;
        value.first_chunk().map(|bytes| u32::from_ne_bytes(*bytes))
    }

    /// A target no more.
    pub fn remove_target(&mut self, pid: u32) {
        // It may have ended by itself.
        let _ = self.skel.maps.iot_targets.delete(&pid.to_ne_bytes());
        self.targets_changed();
    }

    /// Each thread is to look again whether its process is a target.
    fn targets_changed(&mut self) {
        if let Some(data) = self.skel.maps.data_data.as_deref_mut() {
            data.iot_targets_at = data.iot_targets_at.wrapping_add(1).max(1);
        }
    }

    /// There are no targets any more. Until its fork is seen through, a new process may be added: a few rounds find it.
    pub(super) fn forget_targets(&mut self) {
        for _ in 0..FORGET_ROUNDS {
            let pids: Vec<_> = self.skel.maps.iot_targets.keys().collect();
            if pids.is_empty() {
                break;
            }
            for pid in pids {
                let _ = self.skel.maps.iot_targets.delete(&pid);
            }
        }
        self.targets_changed();
    }

    /// Are there processes left to trace?
    pub fn has_targets(&self) -> bool {
        self.skel.maps.iot_targets.keys().next().is_some()
    }

    /// The number of processes that are traced now.
    pub fn targets(&self) -> usize {
        self.skel.maps.iot_targets.keys().count()
    }
}
