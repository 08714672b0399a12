//! Checks of a release that is there: it can be built again bit for bit, is one small file, and starts quickly.

use anyhow::{Context, Result, bail};
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use super::packages::{self, needed};
use super::tree::read;
use super::{NAME, SUMS, anew, build, epoch, quiet, size};
use crate::Tree;

const LARGEST: u64 = 25_000_000;
const SLOWEST: Duration = Duration::from_millis(20);
const STARTS: usize = 20;

/// Fails where a promise of docs/install.md does not hold, and prints the figures.
pub fn run(tree: &Tree, output: &Path, work: &Path) -> Result<()> {
    let sums = read(&output.join(SUMS)).context("there are no packages to check: cargo xtask dist makes them")?;
    let sums = String::from_utf8(sums)?;
    quiet(Command::new("sha256sum").args(["--check", "--quiet", SUMS]).current_dir(output))?;

    let again = work.join("again");
    anew(&again)?;
    let built = build::release(&tree.root, &again.join("build"), epoch()?)?;
    let packages = again.join("packages");
    packages::make(&built, &packages, &again.join("packing"), epoch()?)?;
    let other = String::from_utf8(read(&packages.join(SUMS))?)?;
    let differing: Vec<&str> = sums.lines().filter(|line| !other.lines().any(|other| other == *line)).collect();
    if !differing.is_empty() {
        bail!(
            "built again, these are not the same (were they built from these sources? cargo xtask dist builds them):\n  {}",
            differing.join("\n  ")
        );
    }
    println!("built twice, the same: {} files", sums.lines().count());

    for directory in [tree.root.clone(), tree.target.clone(), again.clone()] {
        absent(&built, &directory)?;
    }
    let program = again.join("packing").join(NAME);
    let libraries = needed(&program)?;
    if !libraries.is_empty() {
        bail!("not static, needs {}", libraries.join(", "));
    }
    let bytes = size(&program)?;
    println!("size: {bytes} bytes, static");
    if bytes > LARGEST {
        bail!("more than {LARGEST} bytes");
    }
    let start = median(&program)?;
    println!("--help: median of {STARTS} starts {:.1} ms", start.as_secs_f64() * 1e3);
    if start > SLOWEST {
        bail!("more than {} ms; was the machine busy?", SLOWEST.as_millis());
    }
    Ok(())
}

/// The program as built has all of its debug information, uncompressed: no name of this machine's directories is in it.
fn absent(file: &Path, directory: &Path) -> Result<()> {
    let (bytes, name) = (read(file)?, directory.as_os_str().as_encoded_bytes());
    if bytes.windows(name.len()).any(|part| part == name) {
        bail!("{} names {}", file.display(), directory.display());
    }
    Ok(())
}

fn median(program: &Path) -> Result<Duration> {
    let mut times = Vec::new();
    for _ in 0..STARTS {
        let begin = Instant::now();
        quiet(Command::new(program).arg("--help"))?;
        times.push(begin.elapsed());
    }
    times.sort();
    Ok(times[STARTS / 2])
}
