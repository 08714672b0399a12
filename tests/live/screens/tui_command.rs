//! The dashboard with a command: its output, what is typed to it, Ctrl-C and its exit status. And with one process: its calls,
//! its stack, and signals to it.

use super::tui::{AFTER, Running, TRACER, is_restored};
use crate::common::live;
use crate::common::tools::pane::Pane;
use std::fs;
use std::io::Write as _;
use std::os::unix::process::ExitStatusExt as _;
use std::path::Path;
use std::process::{Command, Stdio};

/// A script under the dashboard. `redirected`: what the shell does with streams of the tracer.
fn command(work: &Path, script: &str, redirected: &str) -> Pane {
    fs::write(work.join("script"), script).unwrap();
    Pane::new(
        work,
        (100, 30),
        &format!("cd {} && {TRACER} --tui --report report -- sh script {redirected}{AFTER}", work.display()),
    )
}

#[test]
fn a_command_has_a_pane_for_its_output_a_terminal_and_its_exit_status() {
    let work = live::scratch();
    let script = "printf '\\033[31mfirst\\033[0m\\033]0;owned\\007\\n'
        test -t 0 && test -t 1 && test -t 2 && echo all terminals
        dd if=/dev/zero of=data bs=4k count=20 2>/dev/null
        read line
        echo got $line >/dev/tty
        exit 3";
    let pane = command(work.path(), script, "");
    pane.shows(&["LIVE", "output of the command", "first", "all terminals", "syscall", "! type"]);
    assert_ne!(pane.value("pane_title"), "owned");
    pane.after(&["!"], &["type to the command:"]);
    pane.after(&["hello", "Enter"], &["got hello", "ENDED", "has ended: exit status 3"]);
    pane.keys(&["O"]);
    pane.shows_no("layers");
    pane.keys(&["O"]);
    pane.shows_no("got hello");
    pane.after(&["q"], &["first", "got hello", "the command has ended: exit status 3", "left 3"]);
    is_restored(&pane);
}

#[test]
fn ctrl_c_interrupts_the_command_and_the_dashboard_stays() {
    let work = live::scratch();
    let pane = command(work.path(), "trap 'echo cleaned up; exit 5' INT; echo ready; while :; do sleep 0.1; done", "");
    pane.shows(&["LIVE", "ready"]);
    pane.after(&["C-c"], &["cleaned up", "ENDED", "exit status 5"]);
    // Now it is the dashboard's.
    pane.after(&["C-c"], &["left 5"]);
    is_restored(&pane);
    let pane = command(work.path(), "echo ready; exec sleep 600", "");
    pane.shows(&["LIVE", "ready"]);
    pane.after(&["C-c"], &["ENDED", "signal 2 (SIGINT)"]);
    pane.after(&["q"], &["left 130"]);
}

#[test]
fn a_command_goes_on_when_the_dashboard_is_left_and_files_get_what_they_got() {
    let work = live::scratch();
    let script = "echo in the file >&2; echo before; while [ ! -e go ]; do sleep 0.1; done; echo after; exit 4";
    let pane = command(work.path(), script, "2> errors");
    pane.shows(&["LIVE", "before"]);
    pane.keys(&["q"]);
    live::until("the terminal", || pane.value("alternate_on") == "0");
    pane.shows(&["before"]);
    fs::write(work.path().join("go"), "").unwrap();
    pane.shows(&["after", "left 4"]);
    let errors = fs::read_to_string(work.path().join("errors")).unwrap();
    assert!(errors.starts_with("in the file\n") && errors.contains("the command goes on"), "{errors}");
    is_restored(&pane);
}

#[test]
fn a_command_may_flood_its_terminal_close_it_and_open_it_again() {
    let work = live::scratch();
    let script = "yes 0123456789 | head -n 200000
        echo flood over
        exec < /dev/null > /dev/null 2>&1
        sleep 1
        yes again | head -n 100000 > /dev/tty
        echo all of it > /dev/tty
        exit 6";
    let pane = command(work.path(), script, "");
    pane.shows(&["all of it", "ENDED", "exit status 6"]);
    pane.after(&["q"], &["all of it", "left 6"]);
    is_restored(&pane);
}

#[test]
fn a_terminal_that_the_user_has_stopped_holds_up_no_command() {
    let work = live::scratch();
    let script = "echo before; while [ ! -e go ]; do sleep 0.1; done
        yes 0123456789 | head -n 300000; touch written; echo after; exit 4";
    let pane = command(work.path(), script, "");
    pane.shows(&["LIVE", "before"]);
    pane.keys(&["q"]);
    live::until("the terminal", || pane.value("alternate_on") == "0");
    pane.shows(&["before"]);
    pane.keys(&["C-s"]);
    fs::write(work.path().join("go"), "").unwrap();
    live::until("the end of the output", || work.path().join("written").exists());
    pane.after(&["C-q"], &["after", "left 4"]);
    is_restored(&pane);
}

#[test]
fn without_a_terminal_and_without_the_command_nothing_is_shown() {
    let work = live::scratch();
    let refused = Command::new(TRACER).args(["--tui", "--", "true"]).stdin(Stdio::null()).output().unwrap();
    let text = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert_eq!((refused.status.code(), text.contains("--tui needs a terminal")), (Some(125), true), "{text}");
    let pane = Pane::new(work.path(), (100, 30), &format!("{TRACER} --tui -- /no/such/program{AFTER}"));
    pane.shows(&["/no/such/program: No such file", "left 127"]);
    is_restored(&pane);
}

#[test]
fn the_calls_and_the_stack_of_a_process_are_followed_until_a_signal_ends_it() {
    let work = live::scratch();
    let log = work.path().join("log");
    let mut file = fs::File::create(&log).unwrap();
    let tail = ["---disable-inotify", "-f", "-s", "0.1"];
    let mut tail = Running(Command::new("tail").args(tail).arg(&log).stdout(Stdio::null()).spawn().unwrap());
    let pane = Pane::new(work.path(), (120, 40), &format!("{TRACER} -p {}{AFTER}", tail.0.id()));
    pane.shows(&["LIVE"]);
    // Its row comes with its first call.
    pane.after(&["2"], &["processes, time in I/O", "F9 signal", "tail ---disable"]);
    pane.after(&["f"], &["calls of", "following (Space: pause)"]);
    live::until("a call", || {
        writeln!(file, "line").unwrap();
        let text = pane.text();
        // One line, or several, as fast as it reads.
        let bytes = |l: &str| l.rsplit_once(") = ")?.1.split(' ').next()?.parse::<u64>().ok();
        let is_read = |l: &&str| l.contains("read(\"") && l.contains("/log\"");
        text.lines().filter(is_read).any(|l| bytes(l).is_some_and(|n| n > 0 && n % 5 == 0))
    });
    pane.after(&["Space"], &["PAUSED"]);
    pane.after(&["/", "errno!=0", "Enter"], &["filter: errno!=0"]);
    pane.after(&["c"], &["where the threads of", "tail", "kernel", "nanosleep"]);
    pane.after(&["F9"], &["Send a signal", "> 15 SIGTERM"]);
    pane.after(&["Enter"], &["SIGTERM to process", "y: send"]);
    pane.after(&["n", "K", "Enter", "y"], &["ENDED"]);
    assert_eq!(tail.0.wait().unwrap().signal(), Some(15));
    pane.after(&["q"], &["left 0"]);
    is_restored(&pane);
}
