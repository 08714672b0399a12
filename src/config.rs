//! Options from a file: its keys become arguments in front of those of the command line, and one parser checks both.
//!
//! The file is untrusted text: nothing in it may do more than make an error, which names file, line and key.

use crate::base::usage::hint;
use crate::cli::Cli;
use crate::cli::trigger::Trigger;
use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::parser::ValueSource;
use clap::{Arg, ArgAction, ArgMatches, Command, CommandFactory as _, Parser as _};
use std::ffi::OsString;
use std::fmt::Display;
use std::io::Read as _;
use std::ops::Range;
use std::path::PathBuf;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

/// The option that names the file, which cannot stand in it.
const CONFIG: &str = "config";
/// The value of an option that may also stand alone: true or false in a file.
const YES_OR_NO: &str = "yes|no";
/// As long as no file of options is.
const MAX_FILE: u64 = 1 << 20;

/// Why a command line is not accepted.
#[derive(Debug)]
pub enum Wrong {
    /// As the parser of the command line reports it.
    Usage(clap::Error),
    /// About the file.
    File(String),
}

/// Parses a command line (with the program's name first) and the file that its `--config` names.
///
/// # Errors
/// When one of them is wrong.
pub fn parse(args: Vec<OsString>) -> Result<Cli, Wrong> {
    let path = given(&args).ok().and_then(|given| given.get_one::<PathBuf>(CONFIG).cloned());
    let Some(path) = path else { return Cli::try_parse_from(args).map_err(Wrong::Usage).and_then(agreeing) };
    let name = path.display().to_string();
    let mut text = String::new();
    std::fs::File::open(&path)
        .and_then(|file| file.take(MAX_FILE + 1).read_to_string(&mut text))
        .map_err(|e| Wrong::File(format!("cannot read {name}: {e}")))?;
    if text.len() as u64 > MAX_FILE {
        return Err(Wrong::File(format!("{name}: longer than 1 MiB: that is no file of options")));
    }
    parse_with(args, &name, &text).and_then(agreeing)
}

/// What the parser does not know of options that do not go together.
fn agreeing(cli: Cli) -> Result<Cli, Wrong> {
    let args = &cli.record;
    let several = args.flight.flight.is_some() || args.rotate.is_wanted();
    let why = if !args.detail.is_empty() && !args.aggregates() {
        "--detail chooses the calls that are recorded besides sums; with --aggregate=no all are"
    } else if args.baseline.is_none() && args.flight.trigger.iter().any(|t| matches!(t, Trigger::VerySlow(_))) {
        "--trigger very-slow compares calls with those of earlier runs: add --baseline"
    } else if args.output_args.report.is_some() && several && !args.show.batch {
        "--report: --flight and datasets that follow each other have no report at the end; `iotrace-bpf report DIR` makes one"
    } else {
        return Ok(cli);
    };
    Err(Wrong::Usage(Cli::command().error(ErrorKind::ArgumentConflict, why)))
}

/// What stands on the command line, whether or not it is right.
fn given(args: &[OsString]) -> Result<ArgMatches, clap::Error> {
    Cli::command().ignore_errors(true).args_override_self(true).try_get_matches_from(args)
}

/// The same with the file's text.
fn parse_with(args: Vec<OsString>, name: &str, text: &str) -> Result<Cli, Wrong> {
    let mut command = Cli::command();
    command.build();
    let line = given(&args).map_err(Wrong::Usage)?;
    let options = Options { file: Source { name, text }, command: &command, line: &line };
    let given = options.read().map_err(Wrong::File)?;
    let mut args = args.into_iter();
    let program = args.next();
    let all = program.into_iter().chain(given.iter().map(|g| OsString::from(&g.argument))).chain(args);
    Cli::try_parse_from(all).map_err(|e| options.explain(e, &given))
}

/// The text of the file and its name for messages.
struct Source<'a> {
    name: &'a str,
    text: &'a str,
}

impl Source<'_> {
    fn error(&self, at: Option<Range<usize>>, what: impl Display) -> String {
        let line = at.and_then(|at| self.text.get(..at.start)).map(|before| before.matches('\n').count() + 1);
        line.map_or_else(|| format!("{}: {what}", self.name), |line| format!("{}:{line}: {what}", self.name))
    }
}

/// An option that the file sets, and the argument that it is.
struct ConfigOption {
    key: String,
    value: String,
    at: Range<usize>,
    argument: String,
}

struct Options<'a> {
    file: Source<'a>,
    /// All options there are.
    command: &'a Command,
    /// What the command line gives.
    line: &'a ArgMatches,
}

impl Options<'_> {
    fn read(&self) -> Result<Vec<ConfigOption>, String> {
        let table = DeTable::parse(self.file.text).map_err(|e| self.file.error(e.span(), e.message()))?;
        let mut given = Vec::new();
        for (key, value) in table.get_ref() {
            let arg = self.known(key.get_ref()).ok_or_else(|| self.unknown(key.span(), key.get_ref()))?;
            let arguments = self.arguments(arg, key.get_ref(), value)?;
            if !self.is_overruled(arg) {
                given.extend(arguments);
            }
        }
        given.sort_by_key(|g| g.at.start);
        Ok(given)
    }

    fn options(&self) -> impl Iterator<Item = &Arg> {
        let acts = |arg: &&Arg| matches!(arg.get_action(), ArgAction::Set | ArgAction::Append | ArgAction::SetTrue);
        self.command.get_arguments().filter(acts).filter(|arg| arg.get_long().is_some_and(|long| long != CONFIG))
    }

    fn known(&self, key: &str) -> Option<&Arg> {
        self.options().find(|arg| arg.get_long() == Some(key))
    }

    fn unknown(&self, at: Range<usize>, key: &str) -> String {
        let known = self.options().filter_map(Arg::get_long).collect::<Vec<_>>().join(", ");
        let similar = hint(key, self.options().filter_map(Arg::get_long));
        let key = key.escape_debug();
        self.file.error(Some(at), format!("{key}: no such key{similar}; keys are the long options: {known}"))
    }

    /// Flags on the command line win: also those that cannot be used with this one.
    fn is_overruled(&self, arg: &Arg) -> bool {
        let on_line = |arg: &Arg| {
            let known = self.line.try_contains_id(arg.get_id().as_str()).unwrap_or(false);
            known && self.line.value_source(arg.get_id().as_str()) == Some(ValueSource::CommandLine)
        };
        let conflict = |other: &Arg| {
            let names =
                |a: &Arg, b: &Arg| self.command.get_arg_conflicts_with(a).iter().any(|c| c.get_id() == b.get_id());
            names(arg, other) || names(other, arg)
        };
        on_line(arg) || self.command.get_arguments().any(|other| on_line(other) && conflict(other))
    }

    /// What the value of a key is as arguments.
    fn arguments(&self, arg: &Arg, key: &str, value: &Spanned<DeValue>) -> Result<Vec<ConfigOption>, String> {
        let wrong =
            |at: Range<usize>, expected: &str| Err(self.file.error(Some(at), format!("{key}: expected {expected}")));
        let at = value.span();
        match (arg.get_action(), value.get_ref()) {
            (action, DeValue::Boolean(on)) if matches!(action, ArgAction::SetTrue) || stands_alone(arg) => {
                if !on {
                    return Ok(Vec::new());
                }
                Ok(vec![ConfigOption { key: key.to_owned(), value: String::new(), at, argument: format!("--{key}") }])
            }
            (ArgAction::SetTrue, _) => wrong(at, "true or false"),
            (ArgAction::Append, DeValue::Array(list)) => {
                list.iter().map(|item| self.argument(arg, key, item)).collect()
            }
            _ => Ok(vec![self.argument(arg, key, value)?]),
        }
    }

    fn argument(&self, arg: &Arg, key: &str, value: &Spanned<DeValue>) -> Result<ConfigOption, String> {
        let what = || arg.get_value_names().and_then(|names| names.first()).map_or("VALUE", |name| name.as_str());
        let text = match value.get_ref() {
            DeValue::String(text) => Some(text.to_string()),
            DeValue::Integer(n) => i64::from_str_radix(n.as_str(), n.radix()).ok().map(|n| n.to_string()),
            DeValue::Float(n) => Some(n.as_str().to_owned()),
            DeValue::Boolean(on) if what() == YES_OR_NO => Some(if *on { "yes" } else { "no" }.to_owned()),
            _ => None,
        };
        let expected = || {
            let list = if matches!(arg.get_action(), ArgAction::Append) { ", or a list of these" } else { "" };
            format!("{key}: expected a text or a number{list}: {}, as after --{key}", what())
        };
        let value_at = value.span();
        let text = text.ok_or_else(|| self.file.error(Some(value_at.clone()), expected()))?;
        let argument = format!("--{key}={text}");
        Ok(ConfigOption { key: key.to_owned(), value: text, at: value_at, argument })
    }

    /// Adds the line in the file to an error about an option of the file.
    fn explain(&self, error: clap::Error, given: &[ConfigOption]) -> Wrong {
        let text = |kind| match error.get(kind) {
            Some(ContextValue::String(text)) => text.as_str(),
            _ => "",
        };
        // As in "--duration <TIME>" and "--aggregate[=<yes|no>]".
        let key =
            text(ContextKind::InvalidArg).split([' ', '=', '[']).next().unwrap_or_default().trim_start_matches("--");
        let value = text(ContextKind::InvalidValue);
        let mut of_key = given.iter().filter(|g| g.key == key);
        let Some(first) = of_key.clone().next() else { return Wrong::Usage(error) };
        let at = of_key.find(|g| g.value.split(',').any(|part| part == value)).unwrap_or(first).at.clone();
        let message = error.to_string();
        // The rest is about the command line.
        let message = message.split("\n\n").next().unwrap_or_default().trim_start_matches("error: ").trim_end();
        Wrong::File(self.file.error(Some(at), format!("{key}: {message}")))
    }
}

/// Is it on without a value? What takes `yes` or `no` gets that.
fn stands_alone(arg: &Arg) -> bool {
    let is_optional = arg.get_num_args().is_some_and(|range| range.takes_values() && range.min_values() == 0);
    is_optional && arg.get_value_names().is_none_or(|names| names.iter().all(|name| name != YES_OR_NO))
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::cli::LayerChoice;
    use crate::vocabulary::Layer;
    use proptest::prelude::*;
    use std::time::Duration;

    fn parsed(line: &[&str], text: &str) -> Result<Cli, Wrong> {
        let args = std::iter::once("iotrace-bpf").chain(line.iter().copied()).map(OsString::from).collect();
        parse_with(args, "my.toml", text)
    }

    fn refused(line: &[&str], text: &str) -> String {
        match parsed(line, text) {
            Ok(_) => panic!("accepted: {text}"),
            Err(Wrong::File(why)) => why,
            Err(Wrong::Usage(e)) => format!("usage: {e}"),
        }
    }

    #[test]
    fn keys_are_options() {
        let text = "layers = ['syscall', 'block']\nring-size = \"128M\"\nduration = '90s'\nsockets = true\nforce = false\n\
                    output = 'out dir'\npid = [17, 0x12]\nprobes = ['a.toml']\nphase = ['step', 'flush@libstore.so']\n\
                    rank-vars = 'MY_RANK'\naggregate = false\n";
        let args = parsed(&[], text).unwrap().record;
        assert_eq!(args.layers, [Layer::Syscall, Layer::Block].map(LayerChoice::from));
        assert_eq!((args.ring_size, args.duration), (128 << 20, Some(Duration::from_secs(90))));
        assert_eq!((args.sockets, args.force, args.aggregate), (true, false, Some(false)));
        assert_eq!(parsed(&[], "aggregate = true\npid = 1").unwrap().record.aggregate, Some(true));
        assert_eq!(args.output, Some(PathBuf::from("out dir")));
        let baseline = |value: &str| parsed(&[], &format!("pid = 1\nbaseline = {value}")).unwrap().record.baseline;
        assert_eq!(["false", "true", "'b.json'"].map(baseline), [None, Some(None), Some(Some("b.json".into()))]);
        assert_eq!(args.pid, [17, 18]);
        assert_eq!(args.added.probes, [PathBuf::from("a.toml")]);
        assert_eq!(args.added.phase.len(), 2);
        assert_eq!(args.rank_vars, ["MY_RANK"]);
    }

    #[test]
    fn the_command_line_wins() {
        let text = "layers = ['syscall', 'block']\nduration = '90s'\npid = 17\nring-size = '32M'\n";
        let args = parsed(&["--layers", "stdio", "--duration=1s"], text).unwrap().record;
        assert_eq!((args.layers, args.duration), (vec![Layer::Stdio.into()], Some(Duration::from_secs(1))));
        assert_eq!((args.pid, args.ring_size), (vec![17], 32 << 20));
        // Also over what it cannot be used with.
        let args = parsed(&["--", "true", "--duration=2s"], text).unwrap().record;
        assert_eq!((args.pid.len(), args.run.len(), args.duration), (0, 2, Some(Duration::from_secs(90))));
        // What the command line asks for twice stays wrong.
        assert!(refused(&["--duration=1s", "--duration=2s"], text).starts_with("usage: "));
    }

    #[test]
    fn what_is_wrong_is_named_with_its_line() {
        let cases = [
            (
                "pid = 1\nfrob = 1",
                "my.toml:2: frob: no such key; keys are the long options: pid, cgroup, system, output, ",
            ),
            ("config = 'x'", "my.toml:1: config: no such key"),
            ("durations = '1s'", "my.toml:1: durations: no such key (did you mean \"duration\"?); keys are"),
            (
                "pid = 1\nduration = 30",
                "my.toml:2: duration: invalid value '30' for '--duration <TIME>': a time needs its unit: 30s, 30ms or 30m",
            ),
            (
                "pid = 1\nring-size = 67108864",
                "my.toml:2: ring-size: invalid value '67108864' for '--ring-size <SIZE>': a size",
            ),
            ("[output]\nx = 1", "my.toml:1: output: expected a text or a number: DIR, as after --output"),
            ("\nsockets = 1", "my.toml:2: sockets: expected true or false"),
            ("aggregate = 'perhaps'", "my.toml:1: aggregate: "),
            ("ring-size = true", "my.toml:1: ring-size: expected a text or a number"),
            ("duration = true", "my.toml:1: duration: expected a text or a number: TIME"),
            ("duration = ['1s']", "my.toml:1: duration: expected a text or a number: TIME"),
            ("layers = 1979-05-27", "my.toml:1: layers: expected a text or a number, or a list of these: LIST"),
            ("layers = [['syscall']]", "my.toml:1: layers: expected a text or a number, or a list"),
            ("pid = 99999999999999999999", "my.toml:1: pid: expected a text or a number"),
            (
                "pid = 1\n\nduration = 'soon'",
                "my.toml:3: duration: invalid value 'soon' for '--duration <TIME>': \"soon\" is no time",
            ),
            (
                "pid = 1\nlayers = [\n 'syscall',\n 'disk']",
                "my.toml:4: layers: invalid value 'disk' for '--layers <LIST>': no",
            ),
            ("pid = 'x'", "my.toml:1: pid: invalid value 'x' for '--pid <PID>': expected the number of a process"),
            ("pid = 1\noutput = ''", "my.toml:2: output: "),
            ("pid = 1\npid = 2", "my.toml:2: duplicate key"),
            ("pid = ", "my.toml:1: "),
        ];
        for (text, expected) in cases {
            let error = refused(&[], text);
            assert!(error.starts_with(expected), "{text:?}: {error}");
        }
        // What is missing has no line.
        assert!(refused(&[], "").contains("<COMMAND>..."));
        assert!(refused(&[], "pid = 1\nforce = true").contains("--output"));
    }

    /// Texts that look like files of options, more or less.
    fn odd() -> impl Strategy<Value = String> {
        let keys: Vec<String> = Cli::command().get_arguments().filter_map(Arg::get_long).map(str::to_owned).collect();
        let key = prop_oneof![proptest::sample::select(keys), "[a-z\"'.\\[\\]-]{0,12}"];
        let value = prop_oneof![
            "\"[^\"]{0,20}\"",
            "'.{0,20}'",
            "[-+0-9a-fxob._]{0,40}",
            "\\[.{0,20}\\]",
            Just("true".to_owned()),
            Just("{a=1}".to_owned()),
            Just("[".repeat(500)),
            Just("\"\\u0000\\uD7FF--\"".to_owned()),
            Just("['-p', '--', '']".to_owned()),
            "\\PC{0,20}",
        ];
        proptest::collection::vec((key, value), 0..6)
            .prop_map(|lines| lines.into_iter().map(|(key, value)| [key, value].join(" = ") + "\n").collect())
    }

    proptest! {
        /// Whatever stands in the file, it is an error with the file's name or the line's, and never a panic.
        #[test]
        fn odd_files_are_refused_or_read(text in prop_oneof![odd(), "\\PC{0,200}", any::<String>()]) {
            match parsed(&["-p", "1"], &text) {
                Err(Wrong::File(why)) => prop_assert!(why.starts_with("my.toml"), "{why}"),
                Err(Wrong::Usage(e)) => prop_assert!(!e.to_string().is_empty()),
                Ok(cli) => prop_assert_eq!(cli.record.pid, [1]),
            }
        }
    }
}
