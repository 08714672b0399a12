//! Formats that libraries for Python write: scripts that the user's Python runs over the dataset's views.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context as _, Result, bail};

use crate::export::files::file::give_to_caller;
use crate::export::programs::{is_special, python, views};
use crate::export::report::{Source as _, Union};

/// A script and what it needs.
#[derive(Debug, Clone, Copy)]
pub(super) struct Script {
    text: &'static str,
    modules: &'static [&'static str],
    install: &'static str,
}

/// Writes archives of OTF2.
pub(super) const OTF2: Script = Script {
    text: concat!(
        include_str!("scripts/common.py"),
        "\n\n",
        include_str!("scripts/open_flags.py"),
        "\n\n",
        include_str!("scripts/communicators.py"),
        "\n\n",
        include_str!("scripts/otf2.py")
    ),
    modules: &["duckdb", "otf2"],
    install: "pip install duckdb otf2",
};

/// Writes logs of Darshan.
pub(super) const DARSHAN: Script = Script {
    text: concat!(include_str!("scripts/common.py"), "\n\n", include_str!("scripts/darshan.py")),
    modules: &["duckdb", "darshan"],
    install: "pip install duckdb darshan",
};

impl Script {
    /// Writes what was recorded in `dir` to `output`, which is there when it is complete, and returns what of the
    /// datasets could not be read.
    pub(super) fn run(&self, dir: &Path, output: &Path) -> Result<Vec<String>> {
        let warnings = Union::open(dir)?.warnings();
        if output.symlink_metadata().is_ok() {
            bail!("{} exists already: remove it, or give another name (-o)", output.display());
        }
        let views = views(dir)?;
        let Some(python) = python(self.modules) else {
            bail!(
                "this format needs a python3 in PATH that has the modules {}; install them with '{}'",
                self.modules.join(" and "),
                self.install
            );
        };
        let scratch = Scratch::beside(output)?;
        let whole = scratch.0.join("output");
        let mut command = Command::new(python);
        command.args(["-c", self.text]).arg(views.path()).arg(&scratch.0).arg(&whole);
        if is_special(dir) {
            command.current_dir(dir);
        }
        let out = command.stdin(Stdio::null()).output().context("cannot execute Python")?;
        if !out.status.success() {
            // The last line of Python's own messages is the one that names what is wrong.
            let why = String::from_utf8_lossy(&out.stderr);
            bail!("{}", why.lines().rfind(|line| !line.trim().is_empty()).unwrap_or("Python failed"));
        }
        give_to_caller(&whole)?;
        fs::rename(&whole, output).with_context(|| format!("cannot create {}", output.display()))?;
        Ok(warnings)
    }
}

/// A directory next to the output that is removed again, whatever happens.
struct Scratch(PathBuf);

impl Scratch {
    fn beside(output: &Path) -> Result<Self> {
        let output = std::path::absolute(output).with_context(|| output.display().to_string())?;
        let Some(name) = output.file_name() else { bail!("{} is not the name of a file", output.display()) };
        let mut hidden = std::ffi::OsString::from(".");
        hidden.push(name);
        hidden.push(format!(".{}", std::process::id()));
        let path = output.with_file_name(hidden);
        fs::create_dir(&path).with_context(|| format!("cannot create {}", path.display()))?;
        Ok(Self(path))
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}
