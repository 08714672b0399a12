//! `replay-code`: from a recorded trace, or a description, a program in C or Fortran that makes the I/O.

mod advise;
#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod advise_tests;
mod calls;
mod described;
mod description;
mod emit;
mod fortran;
mod loops;
mod names;
mod program;
mod rank;
mod ranks;
mod read;
mod readme;
mod select;
mod shared;
mod writer;

use std::fs;
use std::io::Write as _;
use std::path::Path;

pub use crate::replay_code::names::is_system;

use anyhow::{Context as _, Result};
use clap::ValueEnum;
use glob::Pattern;

use crate::export::report::{Source as _, Union, build};
use crate::export::{create_new_file, give_to_caller};
use crate::replay_code::program::Program;
use crate::replay_code::ranks::Group;
use crate::vocabulary::Layer;

/// Which findings of the report change the program.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Advise<'a> {
    Nothing,
    Only(&'a str),
    All,
}

/// What programs are written in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, ValueEnum)]
pub enum Language {
    #[default]
    C,
    Fortran,
}

/// What is asked for.
#[derive(Debug)]
pub struct Wish<'a> {
    pub language: Language,
    pub layer: Option<Layer>,
    pub files: &'a [Pattern],
    pub keep_time: bool,
    pub advise: Advise<'a>,
    pub limit: usize,
    /// A new directory.
    pub output: &'a Path,
}

/// Writes the program of the datasets in `dir`, and returns what the user should know.
///
/// # Errors
/// When there is no dataset, nothing in it can be replayed, or the program cannot be written.
pub fn run(dir: &Path, wish: &Wish<'_>) -> Result<Vec<String>> {
    if dir.extension().is_some_and(|extension| extension == "toml") && dir.is_file() {
        let program = description::read(dir, wish.limit)?;
        let groups = ranks::group(&program.ranks);
        write_all(dir, wish, &program, (&groups, None))?;
        return Ok(Vec::new());
    }
    if let (Language::Fortran, Some(layer)) = (wish.language, wish.layer) {
        fortran::has(layer)?;
    }
    let mut datasets = Union::open(dir)?;
    let choice = described::Choice { layer: wish.layer, files: wish.files, limit: wish.limit };
    let mut program = read::read(&mut datasets, &choice)?;
    let mut groups = ranks::group(&program.ranks);
    let fixed = if wish.advise == Advise::Nothing {
        None
    } else {
        let report = build(&mut datasets)?;
        let found = report.findings.findings.iter().map(|finding| finding.rule);
        let wanted = |rule: &&str| wish.advise == Advise::All || wish.advise == Advise::Only(rule);
        let rules: Vec<&str> = found.filter(wanted).collect();
        Some(advise::advise(&mut program, &mut groups, &rules))
    };
    write_all(dir, wish, &program, (&groups, fixed.as_deref()))?;
    let mut notes = datasets.warnings();
    let left_out: i64 = program.left_out.values().sum();
    if left_out > 0 {
        notes.push(format!("{left_out} calls are not in the program: see {}", wish.output.join("README.md").display()));
    }
    Ok(notes)
}

fn write_all(
    dir: &Path,
    wish: &Wish<'_>,
    program: &Program,
    (groups, fixed): (&[Group], Option<&[String]>),
) -> Result<()> {
    let sources = match wish.language {
        Language::C => emit::sources(program, groups, wish.keep_time)?,
        Language::Fortran => fortran::sources(program, groups, wish.keep_time)?,
    };
    let readme = readme::readme(dir, program, &sources, (wish.keep_time, fixed));
    fs::create_dir(wish.output).with_context(|| format!("cannot make the directory {}", wish.output.display()))?;
    for (name, text) in sources.texts.into_iter().chain([("README.md", readme)]) {
        let path = wish.output.join(name);
        let mut file = create_new_file(&path)?;
        file.write_all(text.as_bytes()).with_context(|| format!("cannot write {}", path.display()))?;
    }
    give_to_caller(wish.output)
}

/// A layer by the name on the command line: that of the interface, or of the layer.
///
/// # Errors
/// When there is none that programs are generated for.
pub fn layer(name: &str) -> Result<Layer, String> {
    let known = read::LAYERS.map(interface);
    let at = known.iter().position(|known| known == name);
    at.map(|at| read::LAYERS[at]).ok_or_else(|| format!("interfaces are {}", known.join(", ")))
}

/// The name of a layer on the command line.
fn interface(layer: Layer) -> String {
    if layer == Layer::Syscall { "posix".into() } else { layer.to_string() }
}
