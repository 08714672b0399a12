//! The program: reads the command line, calls the library, turns the outcome into an exit status.

use clap::Parser as _;
use clap::error::ErrorKind;
use iotrace_bpf::cli::{Action, Cli};
use iotrace_bpf::loader::launch;
use iotrace_bpf::{doctor, export, probes, record, replay};
use std::ffi::OsString;
use std::io::{self, Write as _};
use std::process::ExitCode;

/// Our own failures, so that they cannot be taken for the command's.
const TOOL_FAILED: u8 = 125;

fn main() -> ExitCode {
    let args: Vec<OsString> = std::env::args_os().skip(1).collect();
    let outcome = match args.split_first() {
        Some((first, rest)) if first == launch::LAUNCHER => launch::launcher_main(rest).map(|()| 0),
        Some((first, rest)) if first == launch::GUARDIAN => launch::guardian_main(rest).map(|()| 0),
        _ => run(parse()),
    };
    match outcome {
        Ok(code) => ExitCode::from(code),
        Err(e) => {
            // Errors tell their own way out; a closed stderr must not hide the exit status.
            let _ = writeln!(io::stderr(), "iotrace-bpf: {e:#}");
            ExitCode::from(TOOL_FAILED)
        }
    }
}

/// The command line; ends the program where it is wrong.
fn parse() -> Cli {
    Cli::try_parse().unwrap_or_else(|e| {
        // A closed stderr must not hide the exit status.
        let _ = e.print();
        if e.kind() == ErrorKind::UnknownArgument {
            let _ =
                writeln!(io::stderr(), "A command to trace goes after --: iotrace-bpf [OPTIONS] -- COMMAND ARGS...");
        }
        std::process::exit(e.exit_code())
    })
}

fn run(cli: Cli) -> anyhow::Result<u8> {
    match cli.command {
        None => record::record(&cli.record),
        Some(Action::Replay { dir, show }) => match replay::run(&dir, &show) {
            Err(e) if export::reader_left(&e) => Ok(0),
            shown => shown.map(|()| 0),
        },
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
        Action::Report { dir, json } => export::report::run(dir, *json, &mut out)?,
        Action::Probes { action } => probes::run(action, &mut out)?,
        Action::Replay { .. } => {}
        Action::Doctor => code = doctor::run(&mut out)?,
    }
    out.flush()?;
    Ok(code)
}
