//! The Python packages that the tests read datasets with, and trace, in `target/venv`.

use anyhow::{Context, Result};
use std::fs;
use std::process::Command;

use crate::{Tree, shell};

const REQUIREMENTS: &str = "tests/requirements.txt";

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
    let mut pip = Command::new(dir.join("bin/python"));
    pip.args(["-m", "pip", "install", "--quiet", "--disable-pip-version-check", "-r", REQUIREMENTS]);
    shell::run(&mut pip).context("the tests need these Python packages; is there a network?")?;
    fs::write(&stamp, wanted).with_context(|| format!("cannot write {}", stamp.display()))
}
