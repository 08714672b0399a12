//! Every check that needs no run of the program; any warning is a failure.

use anyhow::{Context, Result, anyhow};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::thread;

use crate::{Tree, arrows, prose, setup, shell, venv};

/// Where hand-written C is; what lies deeper (`bpf/vmlinux`) is generated.
const C_DIRECTORIES: &[&str] = &["bpf", "tests/programs", "tests/cases"];
/// C that is generated.
const GENERATED: &str = "vmlinux";

/// What is written in Python and checked: the package, and the notebooks in `examples`.
const PYTHON: &[&str] = &["python", "examples"];

/// Runs the checks, the quick ones first, and those with Python last: its packages, among them Spark's, keep a CPU busy for
/// a minute, and come while others are checked. With `text` only what needs no compiler is checked.
pub fn run(tree: &Tree, text: bool) -> Result<()> {
    setup::packages(setup::BUILD)?;
    step("format of Rust");
    shell::run(Command::new("cargo").args(["fmt", "--all", "--check"]))?;
    step("format of C");
    shell::run(Command::new("clang-format").args(["--dry-run", "-Werror"]).args(c_files(C_DIRECTORIES)?))?;
    step("directions of imports");
    arrows::check(Path::new("src"))?;
    step("documents");
    prose::check(Path::new("."))?;
    let (checked, python) = thread::scope(|scope| {
        let python = scope.spawn(|| venv::make(tree));
        (if text { Ok(()) } else { rust() }, python.join().map_err(|_| anyhow!("a thread of xtask panicked")))
    });
    checked.and(python?)?;
    step("Python");
    let ruff = || Command::new(tree.target.join("venv/bin/ruff"));
    shell::run(ruff().args(["format", "--no-cache", "--check"]).args(PYTHON))?;
    shell::run(ruff().args(["check", "--no-cache"]).args(PYTHON))?;
    println!("\nNo complaints.");
    Ok(())
}

/// What compiles.
fn rust() -> Result<()> {
    // Nothing is linked: a library in C++ that fuzzing needs is not compiled where another one is named.
    let cargo = |task: &str| {
        let mut command = Command::new("cargo");
        command.args([task, "--workspace"]).env("CUSTOM_LIBFUZZER_PATH", "target/libfuzzer.a");
        command
    };
    step("clippy");
    shell::run(cargo("clippy").args(["--all-targets", "--", "-D", "warnings"]))?;
    step("documentation");
    shell::run(cargo("doc").args(["--no-deps", "--document-private-items"]).env("RUSTDOCFLAGS", "-Dwarnings"))
}

fn step(name: &str) {
    println!("\n== {name}");
}

fn c_files(directories: &[impl AsRef<Path>]) -> Result<Vec<PathBuf>> {
    let mut files = Vec::new();
    for directory in directories.iter().map(AsRef::as_ref) {
        let what = || format!("cannot list {}", directory.display());
        for entry in fs::read_dir(directory).with_context(what)? {
            let path = entry.with_context(what)?.path();
            if path.is_dir() && !path.ends_with(GENERATED) {
                files.extend(c_files(&[path])?);
            } else if is_c(&path) {
                files.push(path);
            }
        }
    }
    files.sort();
    Ok(files)
}

fn is_c(path: &Path) -> bool {
    path.extension().is_some_and(|extension| ["c", "cc", "h"].iter().any(|c| extension == *c))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn programs_of_tests_and_of_the_kernel_are_checked() {
        let programs = Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/programs");
        let files = c_files(&[programs]).unwrap();
        assert!(files.iter().any(|f| f.ends_with("demo.c")), "{files:?}");
        assert!(c_files(&["no/such/directory"]).is_err());
        let kernel = Path::new(env!("CARGO_MANIFEST_DIR")).join("../bpf");
        let files = c_files(&[kernel]).unwrap();
        assert!(
            files.iter().any(|f| f.ends_with("core/contract.h")) && files.iter().any(|f| f.ends_with("trial.bpf.c"))
        );
        assert!(!files.iter().any(|f| f.ends_with("vmlinux.h")), "{files:?}");
    }

    /// What a wrapper of rustc prints of a source with a lint of clippy and a link to nothing, and whether it compiled it.
    fn wrapped(wrapper: &str, path: &str, args: &[&str]) -> (String, bool) {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
        let dir = std::env::temp_dir().join(format!("xtask-lint-{}", std::process::id()));
        let source = dir.join(path);
        fs::create_dir_all(source.parent().unwrap()).unwrap();
        let text = "/// See [`Nothing`].\npub fn one(all: &Vec<u8>) -> usize {\n    all.len()\n}\nfn main() {}\n";
        fs::write(&source, text).unwrap();
        let mut command = Command::new(root.join(wrapper));
        command.args(["rustc", "--edition=2024"]).args(args).args([path, "-Dwarnings", "-Adead_code"]);
        command.args(["--emit=metadata", "--out-dir", "out"]);
        let out = command.env("FUZZ_RUSTC", root.join(".ci/rustc")).current_dir(&dir).output().unwrap();
        fs::remove_dir_all(dir).unwrap();
        (String::from_utf8_lossy(&out.stderr).into_owned(), out.status.success())
    }

    #[test]
    fn what_is_built_in_ci_is_linted_and_its_documents_are_checked() {
        const LINT: &str = "writing `&Vec` instead of `&[_]`";
        const LINK: &str = "unresolved link to `Nothing`";
        let cases: [(&str, &str, &[&str], [bool; 2]); 6] = [
            (".ci/rustc", "src/lib.rs", &["--crate-name", "iotrace_bpf", "--crate-type", "lib"], [false, true]),
            (".ci/rustc", "src/lib.rs", &["--crate-name", "iotrace_bpf", "--test"], [true, false]),
            (".ci/rustc", "main.rs", &["--crate-name", "iotrace_bpf", "--crate-type", "bin"], [true, true]),
            (".ci/rustc", "build.rs", &["--crate-name", "build_script_build"], [true, false]),
            ("fuzz/instrumented", "fuzz/fuzz_targets/elf.rs", &["--crate-name", "elf"], [true, false]),
            (
                "fuzz/instrumented",
                "src/lib.rs",
                &["--crate-name", "iotrace_bpf", "--crate-type", "lib"],
                [false, false],
            ),
        ];
        for (wrapper, path, args, [lint, link]) in cases {
            let (text, compiled) = wrapped(wrapper, path, args);
            assert_eq!([text.contains(LINT), text.contains(LINK)], [lint, link], "{wrapper} {args:?}: {text}");
            assert_eq!(compiled, !lint && !link, "{wrapper} {args:?}: {text}");
        }
    }
}
