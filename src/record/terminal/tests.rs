//! Of a terminal with programs that write more than there is room for, close it, and read nothing.

use super::*;
use rustix::termios::{OptionalActions, tcgetattr, tcsetattr};
use std::io::pipe;

/// A terminal that changes nothing of what is written to it.
fn raw() -> (Terminal, File, PathBuf) {
    let (terminal, slave) = Terminal::open().unwrap();
    let mut settings = tcgetattr(&slave.fd).unwrap();
    settings.make_raw();
    tcsetattr(&slave.fd, OptionalActions::Now, &settings).unwrap();
    (terminal, File::from(slave.fd), slave.path)
}

fn numbered(lines: u32) -> String {
    let lines: Vec<String> = (0..lines).map(|n| format!("line {n}")).collect();
    lines.join("\n") + "\n"
}

fn until(terminal: &Terminal, what: impl Fn(&State) -> bool) {
    let mut state = terminal.state();
    while !what(&state) {
        state = terminal.changed(state, STALL);
    }
}

#[test]
fn a_view_is_made_anew_only_when_something_came() {
    let mut state = State::default();
    state.take(b"one\r\n");
    let before = state.view();
    assert!(Arc::ptr_eq(&before, &state.view()));
    state.take(b"two");
    let texts: Vec<String> = state.view().lines.iter().map(|line| line.text.to_string()).collect();
    assert_eq!(texts, ["one", "two"]);
}

#[test]
fn output_is_read_while_nobody_looks_and_its_end_is_no_error() {
    let (terminal, mut slave, _) = raw();
    // Far more than a terminal holds: this ends only because it is read.
    slave.write_all(numbered(100_000).as_bytes()).unwrap();
    terminal.ended("exit status 0".to_owned());
    drop(slave);
    until(&terminal, |state| state.over);
    let output = terminal.output();
    assert_eq!((&*output.lines.last().unwrap().text, output.ended.as_deref()), ("line 99999", Some("exit status 0")));
}

#[test]
fn a_command_that_closes_its_terminal_may_open_it_again() {
    let (terminal, slave, path) = raw();
    drop(slave);
    until(&terminal, |state| state.over);
    let mut again = OpenOptions::new().write(true).custom_flags(nix::libc::O_NOCTTY).open(path).unwrap();
    again.write_all(&vec![b'x'; 1 << 20]).unwrap();
    again.write_all(b"\nagain").unwrap();
    until(&terminal, |state| state.lines.all().last().is_some_and(|line| &*line.text == "again"));
    assert!(!terminal.state().over);
    terminal.ended("exit status 0".to_owned());
    drop(again);
    until(&terminal, |state| state.over);
}

#[test]
fn a_slow_terminal_of_the_user_gets_everything() {
    let (terminal, mut slave, _) = raw();
    let (mut from, to) = pipe().unwrap();
    terminal.give_back_to(File::from(std::os::fd::OwnedFd::from(to)));
    let bytes: Vec<u8> = (0..3_000_000_u32).map(|n| b'a' + (n % 23) as u8).collect();
    let sent = bytes.clone();
    let command = std::thread::spawn(move || slave.write_all(&sent).unwrap());
    let mut got = vec![0; bytes.len()];
    from.read_exact(&mut got).unwrap();
    assert!(got == bytes);
    command.join().unwrap();
}

#[test]
fn a_terminal_of_the_user_that_takes_nothing_holds_up_neither_the_command_nor_the_tracer() {
    let (terminal, mut slave, _) = raw();
    let (mut from, to) = pipe().unwrap();
    slave.write_all(b"before\n").unwrap();
    until(&terminal, |state| !state.lines.all().is_empty());
    terminal.give_back_to(File::from(std::os::fd::OwnedFd::from(to)));
    // Nobody reads the pipe.
    slave.write_all(numbered(300_000).as_bytes()).unwrap();
    assert_eq!(&*terminal.output().lines[0].text, "before");
    terminal.ended("exit status 0".to_owned());
    drop(slave);
    until(&terminal, |state| state.over);
    terminal.rest();
    let mut got = Vec::new();
    let mut buffer = [0; 4096];
    while !got.ends_with(b"\nline 299999\n") {
        let n = from.read(&mut buffer).unwrap();
        got.extend(&buffer[..n]);
    }
    let text = String::from_utf8(got).unwrap();
    assert!(text.starts_with("before\nline 0\n") && text.contains(" bytes of output are missing: "));
}

#[test]
fn who_types_does_not_wait_for_a_command_that_reads_nothing() {
    let (terminal, slave, _) = raw();
    let refused = std::iter::repeat_with(|| terminal.type_in(&[b'x'; 4096])).find_map(Result::err);
    assert_eq!(refused.unwrap(), "the command does not take input");
    drop(slave);
}
