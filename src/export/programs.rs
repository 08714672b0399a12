//! Programs of the user, `DuckDB` and Python, and the views that they have datasets by.

use std::fs::File;
use std::io::Write as _;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context as _, Result, bail};
use nix::sys::memfd::{MFdFlags, memfd_create};

use super::{VIEWS, holds_datasets};

/// What would be part of a pattern in the name of a directory.
const SPECIAL: [char; 4] = ['*', '?', '[', '\\'];

/// Whether the views are those of the working directory, because the name of the directory would be a pattern.
pub fn is_special(dir: &Path) -> bool {
    dir.to_str().is_none_or(|dir| dir.contains(SPECIAL))
}

/// The views as a file without a name that is gone with the programs that have it open.
///
/// # Errors
/// When there is no dataset, or no memory.
pub fn views(dir: &Path) -> Result<File> {
    if !holds_datasets(dir) {
        bail!("{} holds no dataset; give a directory written with --output", dir.display());
    }
    let fd = memfd_create("views.sql", MFdFlags::empty()).context("memory for the views")?;
    let mut file = File::from(fd);
    let at = std::path::absolute(dir).with_context(|| dir.display().to_string())?;
    if let Some(at) = at.to_str().filter(|_| !is_special(dir)) {
        writeln!(file, "SET VARIABLE iotrace_dir = '{}';", at.replace('\'', "''")).context("memory for the views")?;
    }
    file.write_all(VIEWS.as_bytes()).context("memory for the views")?;
    Ok(file)
}

/// The path of a program.
pub fn program(name: &str) -> Option<PathBuf> {
    let is_program =
        |path: &PathBuf| path.metadata().is_ok_and(|meta| meta.is_file() && meta.permissions().mode() & 0o111 != 0);
    std::env::split_paths(&std::env::var_os("PATH")?).map(|dir| dir.join(name)).find(is_program)
}

/// A Python that has these modules.
pub fn python(modules: &[&str]) -> Option<PathBuf> {
    ["python3", "python"].into_iter().filter_map(program).find(|python| has_modules(python, modules))
}

fn has_modules(python: &Path, modules: &[&str]) -> bool {
    // A module in the working directory would be taken for one of them, but for this.
    let script = format!("import sys; sys.path.pop(0); import {}", modules.join(", "));
    let mut command = Command::new(python);
    command.args(["-c", &script]).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    command.status().is_ok_and(|status| status.success())
}
