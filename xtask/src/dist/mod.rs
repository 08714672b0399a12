//! Packages of the tracer: an archive, a .deb and an .rpm, the same bytes each time.

mod build;
mod check;
mod licences;
mod packages;
mod tree;

use anyhow::{Context, Result, bail};
use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::{Tree, setup, shell};

const NAME: &str = "iotrace-bpf";
const VERSION: &str = env!("CARGO_PKG_VERSION");
/// What the packages are for; docs/kernels.md lists what another needs.
const MACHINE: &str = "x86_64";
const DEBIAN_MACHINE: &str = "amd64";
const SUMS: &str = "SHA256SUMS";

/// What is asked for on the command line.
#[derive(Debug, Clone, clap::Args)]
pub struct Wish {
    /// Package this tracer, and build none
    #[arg(long, value_name = "PATH")]
    tracer: Option<PathBuf>,
    /// Where the packages go, and with --check are; otherwise `dist/packages` in cargo's target directory
    #[arg(short, long, value_name = "DIR")]
    output: Option<PathBuf>,
    /// Check packages that are there: build them again elsewhere and compare, measure size and start
    #[arg(long, conflicts_with = "tracer")]
    check: bool,
}

/// Makes the packages, or checks them.
pub fn run(tree: &Tree, wish: &Wish) -> Result<()> {
    if env::consts::ARCH != MACHINE {
        bail!("packages are made on {MACHINE} only: docs/kernels.md lists what {} needs", env::consts::ARCH);
    }
    setup::all()?;
    let work = tree.target.join("dist");
    let output = wish.output.clone().unwrap_or_else(|| work.join("packages"));
    if wish.check {
        return check::run(tree, &output, &work);
    }
    let epoch = epoch()?;
    let built = match &wish.tracer {
        Some(tracer) => tracer.clone(),
        None => build::release(&tree.root, &work.join("build"), epoch)?,
    };
    let packing = output.join(".packing");
    let made = packages::make(&built, &output, &packing, epoch)?;
    fs::remove_dir_all(&packing).with_context(|| format!("cannot remove {}", packing.display()))?;
    for path in made {
        println!("{:>12}  {}", size(&path)?, path.display());
    }
    Ok(())
}

/// The time that stands in packages, in seconds since 1970: of the last commit, unless the environment names one
/// (<https://reproducible-builds.org/specs/source-date-epoch/>).
fn epoch() -> Result<u64> {
    const VARIABLE: &str = "SOURCE_DATE_EPOCH";
    let text = match env::var(VARIABLE) {
        Ok(text) => text,
        Err(_) => shell::output("git", &["log", "-1", "--format=%ct"])
            .with_context(|| format!("sources without git have no time of their own: set {VARIABLE}"))?,
    };
    text.trim().parse().with_context(|| format!("{VARIABLE}: {text} is no number of seconds"))
}

fn size(path: &Path) -> Result<u64> {
    Ok(fs::metadata(path).with_context(|| format!("cannot read {}", path.display()))?.len())
}

/// An empty directory in place of what was there.
fn anew(dir: &Path) -> Result<()> {
    if dir.exists() {
        fs::remove_dir_all(dir).with_context(|| format!("cannot remove {}", dir.display()))?;
    }
    fs::create_dir_all(dir).with_context(|| format!("cannot make {}", dir.display()))
}

/// Runs a command without printing it, and gives what it writes.
fn quiet(command: &mut Command) -> Result<Vec<u8>> {
    let program = command.get_program().to_string_lossy().into_owned();
    let out = command.output().with_context(|| format!("cannot start {program}"))?;
    if !out.status.success() {
        bail!("{program} failed: {}\n{}", out.status, String::from_utf8_lossy(&out.stderr));
    }
    Ok(out.stdout)
}
