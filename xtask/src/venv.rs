//! The Python packages that the tests read datasets with, and trace, in `target/venv`.

use anyhow::{Context, Result};
use std::fs;
use std::path::Path;
use std::process::Command;

use crate::{Tree, shell};

const REQUIREMENTS: &str = "tests/requirements.txt";
/// Installs them in a third of the CPU time that pip takes.
const UV: &str = "uv==0.13.9";
/// `PyPI` has its source only, some 470 MB: to compress the wheel, which is unpacked at once, takes two thirds of the time.
const PYSPARK: &str = "--config-settings-package=pyspark:--build-option=--compression=stored";

/// Makes the environment, anew when `tests/requirements.txt` changed.
pub fn make(tree: &Tree) -> Result<()> {
    let wanted = fs::read_to_string(REQUIREMENTS).with_context(|| format!("cannot read {REQUIREMENTS}"))?;
    let dir = tree.target.join("venv");
    // Written last, so that it stands only in a complete environment.
    let stamp = dir.join("requirements.txt");
    if fs::read_to_string(&stamp).is_ok_and(|have| have == wanted) {
        return Ok(());
    }
    if dir.exists() {
        fs::remove_dir_all(&dir).with_context(|| format!("cannot remove {}", dir.display()))?;
    }
    shell::run(Command::new("python3").args(["-m", "venv"]).arg(&dir))?;
    if let Err(why) = with_uv(&dir) {
        // It does not read pip's settings: an index of a site's own, for example.
        eprintln!("warning: {why:#}; pip is used, which takes longer");
        shell::run(pip(&dir).args(["-r", REQUIREMENTS]))
            .context("the tests need these Python packages; is there a network?")?;
    }
    fs::write(&stamp, wanted).with_context(|| format!("cannot write {}", stamp.display()))
}

fn with_uv(dir: &Path) -> Result<()> {
    shell::run(pip(dir).arg(UV))?;
    let mut uv = Command::new(dir.join("bin/uv"));
    // Its cache would be another 3 GB.
    uv.args(["pip", "install", "--quiet", "--no-cache", "--system-certs", PYSPARK, "--python"]);
    shell::run(uv.arg(dir.join("bin/python")).args(["-r", REQUIREMENTS]))
}

fn pip(dir: &Path) -> Command {
    let mut pip = Command::new(dir.join("bin/python"));
    pip.args(["-m", "pip", "install", "--quiet", "--disable-pip-version-check"]);
    pip
}
