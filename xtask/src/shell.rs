//! Runs other programs, and names what went wrong when they fail.

use anyhow::{Context, Result, bail};
use std::env;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Prints the command, runs it, and fails when it does.
pub fn run(command: &mut Command) -> Result<()> {
    println!("+ {}", line(command));
    let status = command.status().with_context(|| format!("cannot start {}", line(command)))?;
    if !status.success() {
        bail!("{} failed: {status}", line(command));
    }
    Ok(())
}

/// The standard output of a command that must succeed.
pub fn output(program: &str, args: &[&str]) -> Result<String> {
    let out = Command::new(program).args(args).output().with_context(|| format!("cannot start {program}"))?;
    if !out.status.success() {
        bail!("{program} {} failed: {}\n{}", args.join(" "), out.status, String::from_utf8_lossy(&out.stderr));
    }
    String::from_utf8(out.stdout).with_context(|| format!("the output of {program} is not text"))
}

/// A command that runs where nothing else wants the CPU: tests may run beside it.
pub fn idle(program: impl AsRef<OsStr>) -> Command {
    let mut command = Command::new("chrt");
    command.args(["--idle", "0"]).arg(program);
    command
}

/// A command that comes after what tests do, and before what [`idle`] runs.
pub fn low(program: impl AsRef<OsStr>) -> Command {
    let mut command = Command::new("nice");
    command.args(["-n", "19"]).arg(program);
    command
}

/// Where a program is, as a shell would find it.
pub fn which(program: &str) -> Option<PathBuf> {
    env::split_paths(&env::var_os("PATH")?).map(|dir| dir.join(program)).find(|file| is_program(file))
}

fn is_program(file: &Path) -> bool {
    use std::os::unix::fs::PermissionsExt;
    file.metadata().is_ok_and(|m| m.is_file() && m.permissions().mode() & 0o111 != 0)
}

/// Whether this process runs as root.
pub fn is_root() -> bool {
    use std::os::unix::fs::MetadataExt;
    // The owner of our own entry in /proc is our effective user.
    std::fs::metadata("/proc/self").is_ok_and(|m| m.uid() == 0)
}

fn line(command: &Command) -> String {
    let words = std::iter::once(command.get_program()).chain(command.get_args());
    words.map(|w| quote(&w.to_string_lossy())).collect::<Vec<_>>().join(" ")
}

fn quote(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_=+./,:@%".contains(c);
    if !word.is_empty() && word.chars().all(plain) {
        word.to_string()
    } else {
        format!("'{}'", word.replace('\'', r"'\''"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_is_printed_as_one_would_type_it() {
        let mut command = Command::new("cc");
        command.args(["-o", "a b", "it's", ""]);
        assert_eq!(line(&command), r"cc -o 'a b' 'it'\''s' ''");
    }

    #[test]
    fn programs_are_found_on_the_path() {
        assert!(which("sh").is_some());
        assert!(which("no-such-program").is_none());
    }

    #[test]
    fn a_failing_command_is_an_error_with_its_cause() {
        let error = run(Command::new("sh").args(["-c", "exit 3"])).unwrap_err();
        assert!(format!("{error:#}").contains("sh -c 'exit 3' failed: exit status: 3"), "{error:#}");
        let error = run(&mut Command::new("no-such-program")).unwrap_err();
        assert!(format!("{error:#}").contains("cannot start no-such-program"), "{error:#}");
    }
}
