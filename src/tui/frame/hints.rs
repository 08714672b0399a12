//! The keys in the last line of the screen: first what is special here.

use crate::summary::view::{ProcessPart, Screen, Snapshot};
use crate::tui::state::{State, TableId};

/// As many of them as have room are seen.
pub fn keys(snapshot: &Snapshot, state: &State) -> String {
    let part = state.process.as_ref().filter(|_| state.screen == Screen::Processes).map(|of| &of.part);
    let here = match part {
        Some(ProcessPart::Calls(_)) if state.focused() == Some(TableId::Followed) => {
            "Space pause  F newest  / filter  Esc close  e alone  Tab table  F9 signal  "
        }
        Some(ProcessPart::Calls(_)) => "Space pause  Tab table  Esc close  f follow  c stacks  F9 signal  ",
        Some(ProcessPart::Stacks) => "Esc close  e alone  Tab table  f follow  c stacks  F9 signal  ",
        None if state.screen == Screen::Processes && snapshot.run.live => "f follow  c stacks  F9 signal  ",
        None if state.screen == Screen::Processes => "f calls  c slow stacks  ",
        None => "",
    };
    let command = match &snapshot.output {
        Some(output) if output.ended.is_none() => "O output  ! type  C-c interrupt  ",
        Some(_) => "O output  ",
        None => "",
    };
    let (stop, record) = if snapshot.run.live { ("freeze", "R record  ") } else { ("window", "") };
    let filter = if here.contains("/ filter") { "" } else { "/ filter  " };
    format!(
        "q quit  ? help  {here}{command}{filter}Enter look into  Esc back  s sort  z {stop}  d details  {record}S SQL"
    )
}
