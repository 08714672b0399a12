//! The targets of a trace: from the command line, processes that exist already, and how the dataset describes them.

use crate::base::notices;
use crate::cli::RecordArgs;
use crate::loader::processes::existing;
use crate::loader::session::{Scope, Session};
use crate::record::session::note::Note;
use anyhow::{Result, anyhow};
use std::path::PathBuf;
use std::sync::mpsc::Sender;

/// Numbers kept for processes that begin between the two looks at those that there are.
const SPARE: usize = 1024;

/// The number of a command that is started. Where nothing is, another process has it.
pub const COMMAND: u32 = 1;

/// What the command line asked for.
#[derive(Debug)]
pub enum Targets {
    /// A command that is started.
    Command(String),
    Listed(Vec<u32>),
    /// The members of a control group: its directory, and its number.
    Group(PathBuf, u64),
    Node,
}

impl Targets {
    /// # Errors
    /// When there is no such process or control group, or it may not be looked at.
    pub fn new(args: &RecordArgs) -> Result<Self> {
        if args.system {
            return Ok(Self::Node);
        }
        if let Some(name) = &args.cgroup {
            return existing::group(name).map(|(directory, number)| Self::Group(directory, number));
        }
        existing::check(&args.pid)?;
        if args.run.is_empty() {
            return Ok(Self::Listed(args.pid.clone()));
        }
        Ok(Self::Command(args.run.iter().map(|a| a.to_string_lossy()).collect::<Vec<_>>().join(" ")))
    }

    pub const fn scope(&self) -> Scope {
        match self {
            Self::Command(_) | Self::Listed(_) => Scope::Listed,
            Self::Group(_, number) => Scope::Group(*number),
            Self::Node => Scope::Node,
        }
    }

    /// Can the trace go on without targets? Others may come.
    pub fn may_come(&self) -> bool {
        self.scope() != Scope::Listed
    }

    /// Numbers of processes that are kept for those that there are already. The first one is a command's.
    pub fn reserved(&self) -> Result<u32> {
        let there = if self.may_come() { self.list()?.len() + SPARE } else { self.list()?.len() };
        Ok(u32::try_from(there + 1).unwrap_or(u32::MAX / 2))
    }

    /// `meta.command` and `meta.mode`.
    pub fn describe(&self) -> (String, &'static str) {
        match self {
            Self::Command(command) => (command.clone(), "launch"),
            Self::Listed(pids) => {
                (format!("-p {}", pids.iter().map(u32::to_string).collect::<Vec<_>>().join(",")), "attach")
            }
            Self::Group(directory, _) => (format!("--cgroup {}", directory.display()), "cgroup"),
            Self::Node => ("--system".to_owned(), "system"),
        }
    }

    /// Is a command that is about to begin one of them?
    pub fn has(&self, pid: u32) -> Result<bool> {
        match self {
            Self::Group(directory, _) => Ok(existing::members(directory)?.contains(&pid)),
            Self::Command(_) | Self::Listed(_) | Self::Node => Ok(true),
        }
    }

    fn list(&self) -> Result<Vec<u32>> {
        match self {
            Self::Command(_) => Ok(Vec::new()),
            Self::Listed(pids) => Ok(pids.clone()),
            Self::Group(directory, _) => existing::all(Some(directory)),
            Self::Node => existing::all(None),
        }
    }

    /// Makes existing processes targets, and sends their descriptions to the worker. The hooks are attached already, so
    /// that a process which begins meanwhile is a target by itself. `reserved` are the numbers that are kept for them.
    ///
    /// # Errors
    /// When none of those that were listed is there any more.
    pub fn attach(&self, reserved: u32, session: &mut Session<'_>, notes: &Sender<Note>) -> Result<()> {
        let first = if self.may_come() { COMMAND + 1 } else { COMMAND };
        let pids = self.list()?;
        let over = (pids.len() + first as usize).saturating_sub(reserved as usize + 1);
        if over > 0 {
            notices::note(&format!("warning: {over} processes began while the trace did and are not traced"));
        }
        let mut traced = false;
        for (process, pid) in (first..=reserved).zip(pids) {
            if !session.add_target(pid, process, true)? {
                continue;
            }
            if existing::ended(pid) {
                session.remove_target(pid);
                continue;
            }
            let _ = notes.send(Note::Events(existing::events(pid, process)));
            // Its system calls are seen from here on: should it end while its libraries are attached to, they are kept.
            traced = true;
            session.attach_process(pid, None, false);
        }
        if matches!(self, Self::Listed(_)) && !traced {
            return Err(anyhow!("every process of -p ended before it could be traced"));
        }
        if !self.may_come() {
            session.list_threads();
        }
        Ok(())
    }
}
