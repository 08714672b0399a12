//! The proof of the findings: programs of known cause, what a report says of them, and what fixing them really saves.

mod command;
mod findings;
mod list;
mod measure;
mod setting;
mod table;
pub mod whatif;

use anyhow::{Context, Result, anyhow, bail};
use std::fs::File;
use std::path::{Path, PathBuf};

use self::command::Runner;
use self::list::Case;
use self::measure::Measure;
use self::table::Tried;
use crate::{Tree, programs, setup, shell, venv};

/// What of it is run, and how.
#[derive(clap::Args)]
pub struct Wish {
    /// Runs of each kind; the figures are medians
    #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u16).range(1..))]
    runs: u16,
    /// Only measure what fixing saves
    #[arg(long)]
    untraced: bool,
    /// A tracer that is there, instead of one that is built
    #[arg(long, conflicts_with = "untraced")]
    tracer: Option<PathBuf>,
    /// A directory on a disk, on a file system with direct I/O; `iotrace-cases` is made in it
    #[arg(long, default_value = "/var/tmp")]
    dir: PathBuf,
    /// Only these cases
    names: Vec<String>,
}

/// What runs need: root, the programs, and that nobody else is at work as long as what this returns lives.
fn ready(tree: &Tree) -> Result<File> {
    if !shell::is_root() {
        bail!("tracing needs root; run: sudo -E env PATH=\"$PATH\" cargo xtask cases");
    }
    setup::all()?;
    venv::make(tree)?;
    for name in programs::cases() {
        programs::compile(&tree.root, &tree.target, name).map_err(|e| anyhow!(e))?;
    }
    let lock = File::create(tree.target.join("cases.lock")).context("cannot make cases.lock")?;
    lock.try_lock().context("another run of `cargo xtask cases` or `whatif` is at work")?;
    Ok(lock)
}

pub fn run(tree: &Tree, wish: &Wish) -> Result<()> {
    let cases = chosen(&wish.names)?;
    let _lock = ready(tree)?;
    let work = wish.dir.join("iotrace-cases");
    let tracer = if wish.untraced { None } else { Some(tracer(tree, wish.tracer.as_deref())?) };
    let traced = tracer.is_some();
    let measure = Measure { runner: Runner::new(tree)?, tracer, work, runs: wish.runs };

    let tried = try_all(&measure, &cases)?;
    let lines = |line: fn(&Tried) -> String| tried.iter().map(line).collect::<Vec<_>>().join("\n");
    let times = format!("{}\n{}", table::TIMES, lines(table::times));
    if !traced {
        println!("\n{times}");
        return Ok(());
    }
    let goals = table::goals(&tried);
    let tables = format!("{}\n\n{}\n{}\n\n{times}", goals.text, table::FOUND, lines(table::found));
    println!("\n{tables}");
    if wish.names.is_empty() {
        table::MARKER.write(&tables)?;
    }
    if goals.failed {
        bail!("the goals are not reached");
    }
    Ok(())
}

fn chosen(names: &[String]) -> Result<Vec<&'static Case>> {
    if let Some(name) = names.iter().find(|name| list::all().all(|case| case.name != **name)) {
        let known: Vec<&str> = list::all().map(|case| case.name).collect();
        bail!("there is no case {name}; there are {}", known.join(", "));
    }
    Ok(list::all().filter(|case| names.is_empty() || names.iter().any(|name| case.name == name)).collect())
}

/// The one that is there, or one that is built.
fn tracer(tree: &Tree, there: Option<&Path>) -> Result<PathBuf> {
    if let Some(tracer) = there {
        return Ok(tracer.to_owned());
    }
    crate::build_tracer()?;
    Ok(tree.target.join("debug/iotrace-bpf"))
}

/// Runs the cases in turn. One that cannot be run does not end it, a signal does.
fn try_all(measure: &Measure, cases: &[&'static Case]) -> Result<Vec<Tried>> {
    let mut tried = Vec::new();
    for &case in cases {
        let one = Tried { case, seen: measure.case(case) };
        measure.runner.go_on()?;
        println!("{}", if measure.tracer.is_some() { table::found(&one) } else { table::times(&one) });
        if let Err(error) = &one.seen {
            eprintln!("{}: {error:#}", case.name);
        }
        tried.push(one);
    }
    Ok(tried)
}
