//! What is printed in place of an action: the guide, the short help, and how to correct a command line.

use crate::base::text::escape;
use crate::base::usage::closest;
use crate::cli::Cli;
use crate::cli::record::GROUPS;
use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{Arg, Command, CommandFactory as _, Error};

/// For a command line without arguments.
pub const GUIDE: &str = "\
iotrace-bpf shows what a program's I/O does, from HDF5 and MPI-IO to the disk.

  iotrace-bpf doctor                          can this machine trace?
  sudo iotrace-bpf -- COMMAND ARGS...         trace a command; report on stderr
  sudo iotrace-bpf -o run.iotrace -- COMMAND  the same, and keep the dataset
  sudo iotrace-bpf -p PID --duration 30s      trace a running process
  iotrace-bpf report run.iotrace              what is wrong and what it costs

Under sudo a launched command still runs as you, with its own stdin and stdout.
Options: iotrace-bpf -h or --help; of one command: iotrace-bpf help report
From a symptom (slow, hangs, small files) to its cause: docs/symptoms.md
Everything else: docs/usage.md
";

const USAGE: &str = "\
Usage: iotrace-bpf [OPTIONS] [-- COMMAND ARGS...], or iotrace-bpf SUBCOMMAND";
const SEE: &str = "--help has all options, examples and exit statuses; help report: of one command\n";

/// A help text or an error of the parser as it is printed.
pub fn shown(error: &mut Error) -> String {
    match error.kind() {
        ErrorKind::DisplayHelp => short(error),
        ErrorKind::UnknownArgument | ErrorKind::InvalidSubcommand => corrected(error),
        _ => error.render().ansi().to_string(),
    }
}

/// The short help of the program is ours, so that it fits a screen; those of commands are short anyway.
fn short(help: &Error) -> String {
    let mut command = Cli::command();
    // What stands before has the name by which the program was called.
    let groups = |text: String| text.split_once("\nCommands:").map(|(_, groups)| groups.to_owned());
    let wanted = groups(help.render().to_string());
    if wanted.is_some() && wanted == groups(command.render_help().to_string()) {
        screen(&command)
    } else {
        help.render().ansi().to_string()
    }
}

/// Columns of names in front of their descriptions.
const NAMES: usize = 28;

/// A line for each command, and for each option that many traces need, by group.
fn screen(command: &Command) -> String {
    let line = |name: &str, about: String| format!("  {name:<NAMES$}{about}\n");
    let mut out = format!("{}\n{USAGE}\nCommands:\n", command.get_about().cloned().unwrap_or_default());
    let shown = |action: &&Command| action.get_name() != "help" && !action.is_hide_set();
    for action in command.get_subcommands().filter(shown) {
        out += &line(action.get_name(), action.get_about().cloned().unwrap_or_default().to_string());
    }
    for group in GROUPS {
        out += &format!("{group}:\n");
        let of_group = |arg: &&Arg| arg.get_help_heading() == Some(group) && !arg.is_positional();
        for arg in command.get_arguments().filter(of_group).filter(|arg| !arg.is_hide_short_help_set()) {
            out += &line(&name(arg), arg.get_help().cloned().unwrap_or_default().to_string());
        }
    }
    out + SEE
}

/// `-o, --output DIR`
fn name(arg: &Arg) -> String {
    let short = arg.get_short().map_or_else(|| "    ".to_owned(), |short| format!("-{short}, "));
    let takes_value = arg.get_action().takes_values() && !arg.is_require_equals_set();
    let value = arg.get_value_names().and_then(|names| names.first()).filter(|_| takes_value);
    let value = value.map_or_else(String::new, |value| format!(" {value}"));
    format!("{short}--{}{value}", arg.get_long().unwrap_or_default())
}

/// An unknown word or option, with what was probably meant.
fn corrected(error: &mut Error) -> String {
    // To pass an option on as a value is never meant.
    error.remove(ContextKind::Suggested);
    let mut text = error.render().ansi().to_string();
    let kind = if error.kind() == ErrorKind::InvalidSubcommand {
        ContextKind::InvalidSubcommand
    } else {
        ContextKind::InvalidArg
    };
    let Some(ContextValue::String(word)) = error.get(kind) else { return text };
    let top = error.get(ContextKind::Usage).is_some_and(|usage| is_of_program(&usage.to_string()));
    if word.starts_with('-') || !top {
        return text;
    }
    let command = Cli::command();
    if let Some(known) = closest(word, command.get_subcommands().map(Command::get_name).chain(["help"])) {
        text += &format!("Did you mean the command '{known}'?\n");
    }
    if error.kind() == ErrorKind::UnknownArgument {
        text += &format!("A command to trace goes after --: iotrace-bpf [OPTIONS] -- {}\n", escape(word));
    }
    text
}

/// Is it the usage of the program, and not of one of its commands?
fn is_of_program(usage: &str) -> bool {
    usage.contains("[OPTIONS] [--")
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use clap::Parser as _;

    fn answer(args: &[&str]) -> String {
        let mut error = Cli::try_parse_from(std::iter::once(&"iotrace-bpf").chain(args)).unwrap_err();
        anstream::adapter::strip_str(&shown(&mut error)).to_string()
    }

    #[test]
    fn the_guide_is_short_and_its_commands_are_right() {
        assert_eq!(GUIDE.lines().count(), 12);
        assert!(GUIDE.lines().all(|line| line.len() <= 80), "{GUIDE}");
        let mut commands = 0;
        for line in GUIDE.lines().filter(|line| line.starts_with("  ")) {
            let command = line.trim_start().trim_start_matches("sudo ").split("   ").next().unwrap();
            let words = command.split_whitespace().map(|word| if word == "PID" { "17" } else { word });
            assert!(Cli::try_parse_from(words).is_ok(), "{command}");
            commands += 1;
        }
        assert_eq!(commands, 5);
    }

    #[test]
    fn the_short_help_fits_a_screen() {
        let text = answer(&["-h"]);
        assert!((24..=40).contains(&text.lines().count()), "{}\n{text}", text.lines().count());
        assert!(text.lines().all(|line| line.len() <= 80), "{text}");
        for group in ["What to trace:", "What to record:", "Where to:", "What it costs:", "Output:"] {
            assert!(text.lines().any(|line| line == group), "{group}\n{text}");
        }
        let mut renamed = Cli::try_parse_from(["/opt/io trace", "-h"]).unwrap_err();
        assert_eq!(shown(&mut renamed), text);
        assert!(answer(&["--help"]).lines().count() > 100);
        assert!(answer(&["probes", "-h"]).contains("generate"));
        assert!(answer(&["report", "-h"]).contains("--fail-on"));
    }

    #[test]
    fn what_was_meant_is_suggested() {
        for (args, expected) in [
            (&["repot", "x"][..], "Did you mean the command 'report'?"),
            (&["./app"], "A command to trace goes after --: iotrace-bpf [OPTIONS] -- ./app"),
            (&["help", "repot"], "'report'"),
            (&["probes", "chek"], "'check'"),
            (&["--layer", "hdf5", "--", "true"], "'--layers'"),
            (&["report", "x", "--formt", "text"], "'--format'"),
            (&["export", "x", "--to", "perfeto"], "'perfetto'"),
            (&["query", "x", "--metric", "latncy"], "'latency'"),
            (&["query", "x", "--metric", "calls", "--by", "rnak"], "\"rank\""),
            (&["report", "x", "--section", "filez"], "\"files\""),
            (&["report", "x", "--where", "layr=hdf5"], "\"layer\""),
            (&["report", "x", "--where", "layer=hdf"], "\"hdf5\""),
            (&["report", "x", "--where", "kind=wriet"], "\"write\""),
            (&["report", "x", "--fail-on", "sync-per-recrd"], "\"sync-per-record\""),
            (&["--detail", "find", "--", "true"], "\"finding\""),
            (&["--flight", "3s", "-o", "d", "--trigger", "crahs", "--", "true"], "\"crash\""),
            (&["--flight", "3s", "-o", "d", "--trigger", "error=ENOSPACE", "--", "true"], "\"ENOSPC\""),
        ] {
            let text = answer(args);
            assert!(text.contains(expected), "{args:?}: {text}");
            assert!(!text.contains("as a value, use"), "{args:?}: {text}");
        }
        // Nothing that is unlike everything gets a suggestion, and no command of ours one to trace.
        assert!(!answer(&["xyzzy"]).contains("Did you mean"));
        assert!(!answer(&["probes", "list", "extra"]).contains("goes after --"));
    }
}
