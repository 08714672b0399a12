//! What was learned about a program: kept for its user, and offered when it is traced again.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};
use serde::{Deserialize, Serialize};

use crate::base::text::{percent, quoted, time};
use crate::export::as_invoking_user;
use crate::export::programs::program;
use crate::state;
use crate::tune::profile::ahead_file;
use crate::tune::settings::Settings;

/// Files that are looked at, and bytes of each.
const FILES: usize = 1000;
const BYTES: u64 = 1 << 16;
/// Characters of a program's path in the name of a file.
const NAME: usize = 120;

/// The settings that made a program faster, for files of these types.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Learned {
    pub program: PathBuf,
    /// Extensions of its data files.
    pub types: BTreeSet<String>,
    pub settings: Settings,
    /// Medians of so many runs.
    pub before_s: f64,
    pub after_s: f64,
    pub runs: usize,
    /// ns since 1970.
    pub at_ns: i64,
}

/// Where it is kept.
fn directory() -> Option<PathBuf> {
    Some(state::folder()?.join("tuned"))
}

impl Learned {
    /// The name of its files, without an extension.
    fn name(&self) -> String {
        let plain = |c: char| if c.is_ascii_alphanumeric() || "._-".contains(c) { c } else { '_' };
        let program: String = self.program.to_string_lossy().trim_start_matches('/').chars().map(plain).collect();
        let start = program.len().saturating_sub(NAME);
        let types: Vec<String> = self.types.iter().map(|kind| kind.chars().map(plain).collect()).collect();
        let types: String = types.join("+").chars().take(NAME / 2).collect();
        format!("{}+{types}", program.get(start..).unwrap_or(&program))
    }

    fn hints(&self, dir: &Path) -> PathBuf {
        dir.join(self.name() + ".hints")
    }

    /// Keeps it, in place of what was learned of this program and these types before; returns lines of a shell that set it.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn keep(&self) -> Result<Vec<String>> {
        let dir = directory().context("there is no home directory to keep in what was learned")?;
        as_invoking_user(|| self.keep_in(&dir))
    }

    fn keep_in(&self, dir: &Path) -> Result<Vec<String>> {
        let what = || format!("cannot write to {}", dir.display());
        state::make(dir).with_context(what)?;
        state::replace(&self.hints(dir), &self.settings.hints_file("")).with_context(what)?;
        let text = serde_json::to_string_pretty(self)? + "\n";
        state::replace(&dir.join(self.name() + ".json"), &text).with_context(what)?;
        Ok(self.settings.lines(&self.hints(dir)))
    }

    /// For the user, before the program runs again.
    fn offer(&self, dir: &Path) -> String {
        let types: Vec<String> = self.types.iter().map(|kind| format!(".{kind}")).collect();
        let files = if types.is_empty() { String::new() } else { format!(" with files {}", types.join(", ")) };
        let seconds = |s: f64| time((s * 1e9) as i64);
        format!(
            "{}{files} took {} instead of {} ({} less) with: {}",
            quoted(&self.program),
            seconds(self.after_s),
            seconds(self.before_s),
            percent(1.0 - self.after_s / self.before_s.max(f64::MIN_POSITIVE)),
            self.settings.lines(&self.hints(dir)).join("; ")
        )
    }
}

/// What was learned about the program of a command, in sentences. Nothing where nothing can be read.
pub fn offers(command: &[OsString]) -> Vec<String> {
    let Some(dir) = directory() else { return Vec::new() };
    as_invoking_user(|| Ok(offers_in(&dir, command))).unwrap_or_default()
}

fn offers_in(dir: &Path, command: &[OsString]) -> Vec<String> {
    let first = command.first().and_then(|name| program(&name.to_string_lossy()));
    let words = command.iter().map(PathBuf::from).chain(first);
    let programs: BTreeSet<PathBuf> = words.filter_map(|word| word.canonicalize().ok()).collect();
    let entries = fs::read_dir(dir).into_iter().flatten().flatten().take(FILES);
    let paths = entries.map(|entry| entry.path()).filter(|path| path.extension().is_some_and(|kind| kind == "json"));
    let mut known: Vec<Learned> = paths.filter_map(|path| read(&path)).collect();
    known.retain(|learned| programs.contains(&learned.program) && !is_set(&learned.settings, dir, learned));
    known.sort_by_key(|learned| std::cmp::Reverse(learned.at_ns));
    known.iter().map(|learned| learned.offer(dir)).collect()
}

fn read(path: &Path) -> Option<Learned> {
    serde_json::from_str(&state::read(path, BYTES).ok()?).ok()
}

/// Does the command run with it already?
fn is_set(settings: &Settings, dir: &Path, learned: &Learned) -> bool {
    let variables = settings.environment.iter().all(|(name, value)| std::env::var(name).ok() == *value);
    let hints = std::env::var_os(crate::tune::settings::ROMIO_HINTS);
    let ahead = |(device, kib): (&String, &u64)| {
        fs::read_to_string(ahead_file(device)).is_ok_and(|now| now.trim() == kib.to_string())
    };
    variables
        && settings.read_ahead_kib.iter().all(ahead)
        && (settings.hints.is_empty() || hints.is_some_and(|path| Path::new(&path) == learned.hints(dir)))
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    fn learned(program: &Path, types: &[&str]) -> Learned {
        Learned {
            program: program.to_owned(),
            types: types.iter().map(|kind| (*kind).to_owned()).collect(),
            settings: Settings::hints(&[("romio_ds_write", "disable")]),
            before_s: 2.0,
            after_s: 1.5,
            runs: 5,
            at_ns: 7,
        }
    }

    #[test]
    fn what_is_kept_is_offered_to_the_same_program() {
        let dir = tempfile::tempdir().unwrap();
        let state = dir.path().join("state");
        let [program, other] = ["a sim", "other"].map(|name| dir.path().canonicalize().unwrap().join(name));
        fs::write(&program, "").unwrap();
        fs::write(&other, "").unwrap();
        let lines = learned(&program, &["nc"]).keep_in(&state).unwrap();
        let hints = lines[0].strip_prefix("export ROMIO_HINTS=").unwrap();
        assert_eq!(fs::read_to_string(hints).unwrap(), "romio_ds_write disable\n");
        let offers =
            |words: &[&Path]| offers_in(&state, &words.iter().map(|word| OsString::from(*word)).collect::<Vec<_>>());
        let expected = format!(
            "{} with files .nc took 1.50 s instead of 2.00 s (25.0% less) with: export ROMIO_HINTS={hints}",
            quoted(&program)
        );
        assert_eq!(offers(&[Path::new("mpirun"), &program, Path::new("x")]), [expected]);
        assert_eq!(offers(&[Path::new("mpirun"), &other]), [""; 0]);
        // Other types stand beside it; the same take its place.
        learned(&program, &["h5"]).keep_in(&state).unwrap();
        learned(&program, &["h5"]).keep_in(&state).unwrap();
        assert_eq!(offers(&[&program]).len(), 2);
        assert_eq!(fs::read_dir(&state).unwrap().count(), 4);
    }

    #[test]
    fn damaged_files_are_left_out() {
        let dir = tempfile::tempdir().unwrap();
        let program = dir.path().canonicalize().unwrap().join("sim");
        fs::write(&program, "").unwrap();
        fs::write(dir.path().join("x.json"), "{\"program\":").unwrap();
        std::os::unix::fs::symlink("/dev/zero", dir.path().join("y.json")).unwrap();
        nix::unistd::mkfifo(&dir.path().join("z.json"), nix::sys::stat::Mode::S_IRWXU).unwrap();
        assert_eq!(offers_in(dir.path(), &[program.into()]), [""; 0]);
        assert_eq!(offers_in(&dir.path().join("none"), &[]), [""; 0]);
    }

    #[test]
    fn names_of_files_are_short_and_plain() {
        let long = PathBuf::from(format!("/home/a/{}/sim", "d\u{e9}/".repeat(200)));
        let name = learned(&long, &["n/c", "h5"]).name();
        assert!(name.len() < 200 && name.ends_with("_sim+h5+n_c") && !name.contains('/'), "{name}");
    }
}
