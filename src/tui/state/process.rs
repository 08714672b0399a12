//! What a user does with one process: follows its calls, looks at its stacks, sends it a signal; and with the command that
//! the dashboard has started.

use std::sync::Arc;

use nix::sys::signal::Signal;

use crate::summary::filter::Filter;
use crate::summary::view::{Command, ProcessDetail, ProcessFocus, ProcessPart, ProcessRow, Screen, Snapshot, grouped};
use crate::tui::state::{Effect, Popup, Prompt, PromptKind, State, TableId};
use crate::tui::terminal::input::Key;

/// What a terminal sends for Ctrl-C and Ctrl-D.
const INTERRUPT: u8 = 3;
const END: u8 = 4;

/// How much of the screen the output of the command takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum OutputPane {
    #[default]
    Part,
    Whole,
    Hidden,
}

/// A signal that is being chosen, for a process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Signalling {
    pub process_ix: i32,
    pub pid: i32,
    pub signal: Signal,
    /// It is chosen: send it?
    pub chosen: bool,
}

impl State {
    /// A key that is about one process, or about the command; `None` where it is not.
    pub(super) fn process_key(&mut self, key: Key, snapshot: &Snapshot) -> Option<Effect> {
        let on_processes = self.screen == Screen::Processes;
        let follows = on_processes && self.follows();
        match key {
            Key::Char('O') if snapshot.output.is_some() => self.next_output_pane(),
            Key::Char('!') if runs(snapshot) => self.prompt = Some(Prompt::new(PromptKind::Type, "")),
            Key::F(9) | Key::Char('K') if on_processes => self.choose_signal(snapshot),
            Key::Char('f') if on_processes => self.look_at(snapshot, ProcessPart::Calls(None)),
            Key::Char('c') if on_processes => self.look_at(snapshot, ProcessPart::Stacks),
            Key::Char(' ') if follows => self.pause(snapshot),
            Key::Char('F') => {
                let table = self.focused().filter(|id| [TableId::Followed, TableId::Output].contains(id))?;
                let table = self.tables.entry(table).or_default();
                table.follow = !table.follow;
            }
            Key::Char('/') if follows && self.focused() == Some(TableId::Followed) => {
                let text = self.filter_of_process().map_or("", Filter::text);
                self.prompt = Some(Prompt::new(PromptKind::FilterProcess, text));
            }
            _ => return None,
        }
        Some(Effect::None)
    }

    fn follows(&self) -> bool {
        self.process.as_ref().is_some_and(|of| matches!(of.part, ProcessPart::Calls(_)))
    }

    /// The filter on the calls that are followed.
    fn filter_of_process(&self) -> Option<&Filter> {
        match &self.process.as_ref()?.part {
            ProcessPart::Calls(filter) => filter.as_deref(),
            ProcessPart::Stacks => None,
        }
    }

    /// Ctrl-C is the command's as long as it runs.
    pub(super) fn interrupt(snapshot: &Snapshot) -> Effect {
        if runs(snapshot) { Effect::Command(Command::Type(vec![INTERRUPT])) } else { Effect::Quit }
    }

    /// What is typed to the command: a line, or the end of its input.
    pub(super) fn typed(text: &str, end: bool) -> Effect {
        let bytes = if end { vec![END] } else { format!("{text}\r").into_bytes() };
        Effect::Command(Command::Type(bytes))
    }

    fn next_output_pane(&mut self) {
        self.output = match self.output {
            OutputPane::Part => OutputPane::Whole,
            OutputPane::Whole => OutputPane::Hidden,
            OutputPane::Hidden => OutputPane::Part,
        };
    }

    /// The process of the selected row.
    fn process_of_row(&self, snapshot: &Snapshot) -> Result<ProcessRow, String> {
        let id = self.selected(TableId::Processes).ok_or("no process is selected")?;
        let rows = &snapshot.processes.rows;
        let row = grouped(rows, self.grouping).into_iter().find(|r| r.id() == id).ok_or("no process is selected")?;
        match self.grouping.members(rows, &row).as_slice() {
            [one] => Ok((*one).clone()),
            _ if row.members <= 1 => Ok(row),
            _ => Err("this row is of several processes: p chooses rows of single ones".to_owned()),
        }
    }

    fn look_at(&mut self, snapshot: &Snapshot, part: ProcessPart) {
        match self.process_of_row(snapshot) {
            Ok(row) => {
                let table = if part == ProcessPart::Stacks { TableId::Stacks } else { TableId::Followed };
                self.process = Some(ProcessFocus { process_ix: row.process_ix, pid: row.pid, part });
                self.paused = None;
                let shown = self.tables.entry(table).or_default();
                (shown.selected, shown.follow) = (None, table == TableId::Followed);
                self.pane.insert(self.index(), table);
            }
            Err(why) => self.notify(true, why),
        }
    }

    /// Back to the processes alone.
    pub(super) fn leave_process(&mut self) {
        (self.process, self.paused) = (None, None);
    }

    pub(super) fn filter_process(&mut self, new: Option<Filter>) {
        if let Some(ProcessFocus { part: ProcessPart::Calls(filter), .. }) = &mut self.process {
            *filter = new.map(Arc::new);
            self.paused = None;
        }
    }

    fn pause(&mut self, snapshot: &Snapshot) {
        self.paused = match (self.paused.take(), &snapshot.process) {
            (None, Some(ProcessDetail::Calls(rows))) => Some(Arc::clone(rows)),
            _ => None,
        };
    }

    fn choose_signal(&mut self, snapshot: &Snapshot) {
        match self.process_of_row(snapshot).and_then(|row| may_signal(snapshot, row)) {
            Ok(row) => {
                let (process_ix, pid) = (row.process_ix, row.pid);
                self.open_signals(Signalling { process_ix, pid, signal: Signal::SIGTERM, chosen: false });
            }
            Err(why) => self.notify(true, why),
        }
    }

    /// The list with the signal in sight.
    fn open_signals(&mut self, signalling: Signalling) {
        const ABOVE: usize = 6;
        self.open(Popup::Signal(signalling));
        let at = Signal::iterator().position(|s| s == signalling.signal).unwrap_or(0);
        self.scroll = if signalling.chosen { 0 } else { at.saturating_sub(ABOVE) as u16 };
    }

    pub(super) fn signal_key(&mut self, now: Signalling, key: Key) -> Effect {
        let step = |back: bool| {
            let all: Vec<Signal> = Signal::iterator().collect();
            let at = all.iter().position(|s| *s == now.signal).unwrap_or(0);
            let next = if back { at.saturating_sub(1) } else { (at + 1).min(all.len() - 1) };
            Signalling { signal: all[next], ..now }
        };
        match (now.chosen, key) {
            (false, Key::Down | Key::Char('j')) => self.open_signals(step(false)),
            (false, Key::Up | Key::Char('k')) => self.open_signals(step(true)),
            (false, Key::Enter) => self.open_signals(Signalling { chosen: true, ..now }),
            (true, Key::Char('y' | 'Y')) => {
                self.popup = None;
                let Signalling { process_ix, pid, signal, .. } = now;
                return Effect::Command(Command::Signal { process_ix, pid, signal });
            }
            _ => self.popup = None,
        }
        Effect::None
    }
}

/// Does the command that the dashboard has started run?
fn runs(snapshot: &Snapshot) -> bool {
    snapshot.output.as_ref().is_some_and(|output| output.ended.is_none())
}

/// Only a process that runs, on this node.
fn may_signal(snapshot: &Snapshot, row: ProcessRow) -> Result<ProcessRow, String> {
    let here = &snapshot.run.host;
    match &row.host {
        _ if !snapshot.run.live => Err("this is a recording: its processes are no longer there".to_owned()),
        Some(host) if **host != **here => {
            Err(format!("process {} is on {host}: a signal can be sent on this node only", row.pid))
        }
        _ if row.end_ns.is_some() => Err(format!("process {} has ended", row.pid)),
        _ => Ok(row),
    }
}
