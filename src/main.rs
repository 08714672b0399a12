//! The program: reads the command line, calls the library, turns the outcome into an exit status.

use clap::Parser as _;
use iotrace_bpf::cli::{Action, Cli, ProbesAction};
use iotrace_bpf::loader::launch;
use iotrace_bpf::{doctor, export, probes, record};
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
        _ => run(Cli::parse()),
    };
    match outcome {
        Ok(code) => ExitCode::from(code),
        Err(e) if broken_pipe(&e) => ExitCode::SUCCESS,
        Err(e) => {
            // Errors tell their own way out; a closed stderr must not hide the exit status.
            let _ = writeln!(io::stderr(), "iotrace-bpf: {e:#}");
            ExitCode::from(TOOL_FAILED)
        }
    }
}

fn run(cli: Cli) -> anyhow::Result<u8> {
    let mut out = io::stdout().lock();
    match cli.command {
        None => {
            drop(out);
            return record::record(&cli.record);
        }
        Some(Action::Report { dir, json }) => export::report::run(&dir, json, &mut out)?,
        Some(Action::Probes { action: ProbesAction::List }) => probes::list(&mut out)?,
        Some(Action::Doctor) => return doctor::run(&mut out),
    }
    out.flush()?;
    Ok(0)
}

fn broken_pipe(e: &anyhow::Error) -> bool {
    e.chain().any(|c| c.downcast_ref::<io::Error>().is_some_and(|e| e.kind() == io::ErrorKind::BrokenPipe))
}
