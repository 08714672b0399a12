//! Programs of the user, `DuckDB` and Python, and the views that they have datasets by.

use std::fs::File;
use std::io::Write as _;
use std::os::fd::AsRawFd as _;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context as _, Result, bail};
use nix::sys::memfd::{MFdFlags, memfd_create};

use super::dataset::tables::empty_parts;
use super::{VIEWS, holds_datasets};

/// What would be part of a pattern in the name of a directory.
const SPECIAL: [char; 4] = ['*', '?', '[', '\\'];

/// Whether the views are those of the working directory, because the name of the directory would be a pattern.
pub fn is_special(dir: &Path) -> bool {
    dir.to_str().is_none_or(|dir| dir.contains(SPECIAL))
}

/// The views as files without names that are gone with the programs that have them open.
pub struct Views {
    file: File,
    /// Parts without rows, which its first line names.
    _parts: Vec<File>,
}

impl Views {
    /// Of what is to be executed, for this process and those that it becomes or starts.
    pub fn path(&self) -> String {
        path(&self.file)
    }
}

fn path(file: &File) -> String {
    format!("/proc/self/fd/{}", file.as_raw_fd())
}

fn in_memory(name: &str) -> Result<File> {
    // The descriptor stays open in programs.
    Ok(memfd_create(name, MFdFlags::empty()).context("memory for the views")?.into())
}

/// The views over the datasets in a directory, those of earlier versions as well.
///
/// # Errors
/// When there is no dataset, or no memory.
pub fn views(dir: &Path) -> Result<Views> {
    if !holds_datasets(dir) {
        bail!("{} holds no dataset; give a directory written with --output", dir.display());
    }
    let mut file = in_memory("views.sql")?;
    let at = std::path::absolute(dir).with_context(|| dir.display().to_string())?;
    if let Some(at) = at.to_str().filter(|_| !is_special(dir)) {
        writeln!(file, "SET VARIABLE iotrace_dir = '{}';", at.replace('\'', "''")).context("memory for the views")?;
    }
    let (mut parts, mut none) = (Vec::new(), Vec::new());
    for (table, bytes) in empty_parts()? {
        let mut part = in_memory(table)?;
        part.write_all(&bytes).context("memory for the views")?;
        none.push(format!("'{table}': ['{}']", path(&part)));
        parts.push(part);
    }
    writeln!(file, "SET VARIABLE iotrace_none = MAP {{{}}};", none.join(", ")).context("memory for the views")?;
    file.write_all(VIEWS.as_bytes()).context("memory for the views")?;
    Ok(Views { file, _parts: parts })
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
