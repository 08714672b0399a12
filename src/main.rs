//! The program: reads the command line, calls the library, turns the outcome into an exit status.

use iotrace_bpf::analysis::findings::Config;
use iotrace_bpf::base::objects::{self, Objects};
use iotrace_bpf::base::text::message;
use iotrace_bpf::base::usage::{WrongUsage, wrong};
use iotrace_bpf::cli::{Action, Cli, help};
use iotrace_bpf::export::formats::Wish;
use iotrace_bpf::loader::processes::{guardian, launch};
use iotrace_bpf::query::power::Table;
use iotrace_bpf::record::job::ranks;
use iotrace_bpf::record::{self, TOOL_FAILED};
use iotrace_bpf::{
    cli, compare, config, doctor, export, manual, probes, query, replay, replay_code, rules, runs, sql, top, tune,
    whatif,
};
use std::ffi::OsString;
use std::io::{self, Write as _};
use std::path::PathBuf;
use std::process::ExitCode;

/// The command line, or a file of settings that it names, is wrong.
const WRONG_USAGE: u8 = 2;
/// `report --fail-on` found something.
const FOUND: u8 = 3;

fn main() -> ExitCode {
    objects::provide(Objects {
        iotrace: iotrace_bpf_objects::IOTRACE,
        trial: iotrace_bpf_objects::TRIAL,
        types: iotrace_bpf_objects::TYPES,
    });
    // A panic of a decoder on damaged bytes becomes a warning that names the file.
    let usual = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |panic| {
        if !export::decoding() {
            usual(panic);
        }
    }));
    let args: Vec<OsString> = std::env::args_os().skip(1).collect();
    let outcome = match args.split_first() {
        Some((first, rest)) if first == launch::LAUNCHER => launch::launcher_main(rest).map(|()| 0),
        Some((first, rest)) if first == ranks::NODE => node(rest),
        Some((first, rest)) if first == guardian::GUARDIAN => guardian::main(rest).map(|()| 0),
        Some((first, rest)) if first == tune::RUN => Ok(tune::run_main(rest)),
        None => {
            let _ = write!(io::stderr(), "{}", help::GUIDE);
            return ExitCode::from(WRONG_USAGE);
        }
        Some(_) => run(parse(std::env::args_os().collect())),
    };
    match outcome {
        Ok(code) => ExitCode::from(code),
        Err(e) => {
            // Errors name their remedy; a closed stderr must not hide the exit status.
            let _ = writeln!(io::stderr(), "iotrace-bpf: {}", message(&format!("{e:#}")));
            ExitCode::from(if e.is::<WrongUsage>() { WRONG_USAGE } else { TOOL_FAILED })
        }
    }
}

/// The command line and the file of its `--config`; ends the program where they are wrong.
fn parse(line: Vec<OsString>) -> Cli {
    config::parse(line).unwrap_or_else(|wrong| {
        // A closed stderr must not hide the exit status.
        let code = match wrong {
            config::Wrong::File(why) => {
                let _ = writeln!(io::stderr(), "iotrace-bpf: {}", message(&why));
                WRONG_USAGE.into()
            }
            config::Wrong::Usage(mut e) => {
                let text = help::shown(&mut e);
                let _ = if e.use_stderr() {
                    write!(anstream::stderr(), "{text}")
                } else {
                    write!(anstream::stdout(), "{text}")
                };
                e.exit_code()
            }
        };
        std::process::exit(code)
    })
}

/// The tracer of the ranks of a job on this node.
fn node(args: &[OsString]) -> anyhow::Result<u8> {
    let (meeting, line) = ranks::Meeting::inherit(args)?;
    let line = std::env::args_os().take(1).chain(line.iter().cloned()).collect();
    Ok(meeting.end(record::record_ranks(parse(line).record, &meeting)))
}

fn run(cli: Cli) -> anyhow::Result<u8> {
    match cli.command {
        None => record::record(&cli.record),
        Some(Action::Replay { dir, show }) => match replay::run(&dir, &show) {
            Err(e) if export::reader_left(&e) => Ok(0),
            shown => shown.map(|()| 0),
        },
        Some(Action::Top(args)) => match top::run(&args) {
            Err(e) if export::reader_left(&e) => Ok(0),
            shown => shown.map(|()| 0),
        },
        Some(Action::Sql { dir, query }) => sql::run(&dir, query.as_deref()),
        Some(action) => match show(&action) {
            Err(e) if export::reader_left(&e) => Ok(0),
            shown => shown,
        },
    }
}

fn show(action: &Action) -> anyhow::Result<u8> {
    let mut out = io::stdout().lock();
    let mut code = 0;
    match action {
        Action::Report { dir, shown, rules, fail_on, html } => {
            let config = rules.as_deref().map(Config::read).transpose().map_err(|e| wrong(&e))?.unwrap_or_default();
            let (format, look, only) = (shown.format(), shown.look(&out), shown.only());
            let wish = export::report::Wish { format, look, config, ask: &sql::rows, only };
            let found = match html {
                Some(file) => export::html::run(dir, file, &wish)?,
                None => export::report::run_with(dir, &wish, &mut out)?,
            };
            if fail_on.is_some_and(|limit| found.iter().any(|finding| limit.applies(finding))) {
                code = FOUND;
            }
        }
        Action::Compare { dirs, with, process, json, fail_if } => {
            let width = export::report::WIDTH;
            let held = match (dirs.as_slice(), with.as_slice(), process.as_slice()) {
                ([dir], [], [a, b]) => compare::processes(dir, [a, b], *json, fail_if, width, &mut out)?,
                (dirs, with, []) => compare::run(sides(dirs, with)?, *json, fail_if, width, &mut out)?,
                _ => {
                    let why =
                        "give one dataset and two processes: iotrace-bpf compare DIR --process rank=0 --process rank=1";
                    return Err(WrongUsage(why.to_owned()).into());
                }
            };
            if !held.is_empty() {
                code = FOUND;
            }
        }
        Action::Runs { dir, conditions, top, json } => {
            let look = cli::look::of(&out, None);
            let look = runs::Look { json: *json, top: *top, width: look.width.unwrap_or(usize::MAX) };
            notes(runs::run(dir, conditions, look, &mut out)?);
        }
        Action::Query(args) => {
            let query = args.query().map_err(WrongUsage)?;
            let power = args.power.as_deref().map(Table::read).transpose().map_err(|e| wrong(&e))?.unwrap_or_default();
            notes(query::run(&args.dir, &query, &power, args.format, &mut out)?);
        }
        Action::Export { dir, to, output, table, weight, filter, time, keep_days } => {
            drop(out);
            let wish = Wish {
                to: *to,
                table: table.as_deref(),
                weight: *weight,
                only: filter.as_ref().map(|filter| filter as _),
                time: time.as_ref(),
                output: output.as_deref(),
                keep_days: *keep_days,
            };
            notes(export::formats::run(dir, &wish)?);
            return Ok(0);
        }
        Action::ReplayCode(args) => {
            notes(replay_code::run(&args.dir, &args.wish())?);
        }
        Action::Tune(args) => {
            let width = cli::look::of(&out, None).width.unwrap_or(usize::MAX);
            tune::run(&args.wish(width), &mut out)?;
        }
        Action::Whatif(args) => {
            let conditions = args.conditions().map_err(WrongUsage)?;
            let width = cli::look::of(&out, None).width.unwrap_or(export::report::WIDTH);
            notes(whatif::run(&args.dir, &conditions, args.json, width, &mut out)?);
        }
        Action::Rules { action } => rules::run(action.as_ref(), &mut out)?,
        Action::Repair { dir } => export::reading::repair::run(dir, &mut out)?,
        Action::Probes { action } => probes::run(action, &mut out)?,
        Action::Replay { .. } | Action::Sql { .. } | Action::Top(_) => {}
        Action::Doctor { fix_hints } => code = doctor::run(*fix_hints, &mut out)?,
        Action::Completions { shell } => manual::completions(*shell, &mut out)?,
        Action::Man { dir } => manual::pages(dir)?,
    }
    out.flush()?;
    Ok(code)
}

/// What an answer lacks, on stderr.
fn notes(notes: Vec<String>) {
    for note in notes {
        eprintln!("iotrace-bpf: {}", message(&note));
    }
}

/// The datasets of each side of a comparison.
fn sides<'a>(dirs: &'a [PathBuf], with: &'a [PathBuf]) -> Result<[&'a [PathBuf]; 2], WrongUsage> {
    match (dirs, with) {
        ([a, b], []) => Ok([std::slice::from_ref(a), std::slice::from_ref(b)]),
        ([], _) | (_, []) => {
            let why = "give two datasets: iotrace-bpf compare A B\n\
                       or several on each side: iotrace-bpf compare A1 A2 A3 -- B1 B2 B3";
            Err(WrongUsage(why.to_owned()))
        }
        (a, b) => Ok([a, b]),
    }
}
