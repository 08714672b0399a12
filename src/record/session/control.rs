//! What wakes the session: mappings and busy functions from the rings, signals, the dashboard.

use crate::event::wire::{Busy, Mapped, Record};
use crate::loader::processes::guardian::Guard;
use crate::loader::processes::launch::Launched;
use crate::loader::processes::seccomp::Notice;
use anyhow::{Context as _, Result};
use nix::sys::signal::{SigSet, Signal, kill, killpg};
use nix::unistd::Pid;
use std::sync::Arc;
use std::sync::mpsc::{self, Receiver, Sender};

/// What wakes the session.
pub enum Control {
    Signal(Signal),
    Mapped(Mapped),
    /// Calls of a function are shorter than their probe, and many.
    Busy(Busy),
    /// A call of a held command waits, until its guard lets it go on.
    Waits(Notice, Arc<Guard>),
    /// The user has left the dashboard.
    Left,
}

/// One channel for everything that wakes the session.
pub struct Channel {
    /// For records that are not for the worker.
    pub records: Sender<Record>,
    pub sender: Sender<Control>,
    pub receiver: Receiver<Control>,
}

/// Signals must be blocked in all threads.
///
/// # Errors
/// When the threads cannot be started.
pub fn channel(signals: &SigSet) -> Result<Channel> {
    let (sender, receiver) = mpsc::channel();
    let (records, inbox) = mpsc::channel();
    let to_session = sender.clone();
    std::thread::Builder::new()
        .name("mappings".into())
        .spawn(move || {
            inbox.into_iter().try_for_each(|record| match record {
                Record::Mapped(mapped) => to_session.send(Control::Mapped(mapped)),
                Record::Busy(busy) => to_session.send(Control::Busy(busy)),
                Record::Event(_) | Record::Partial => Ok(()),
            })
        })
        .context("thread for mappings")?;
    let (signals, to_session) = (*signals, sender.clone());
    std::thread::Builder::new()
        .name("signals".into())
        .spawn(move || while signals.wait().is_ok_and(|s| to_session.send(Control::Signal(s)).is_ok()) {})
        .context("thread for signals")?;
    Ok(Channel { records, sender, receiver })
}

/// The terminal sends Ctrl-C to the command itself, where it is the command's; other signals reach only us.
pub fn pass_on(command: &Launched, signal: Signal) {
    let pid = Pid::from_raw(command.pid() as i32);
    // It may have ended by itself.
    let _ = match (signal, command.is_alone()) {
        (Signal::SIGINT, false) => Ok(()),
        // As its own terminal would: to all of its processes.
        (Signal::SIGINT, true) => killpg(pid, signal),
        _ => kill(pid, signal),
    };
}
