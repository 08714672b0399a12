//! The release build: one static file, without a trace of where it was built.

use anyhow::{Context, Result, bail};
use std::env;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::NAME;
use crate::{setup, shell};

const TARGET: &str = "x86_64-unknown-linux-gnu";
/// The C library inside, and relocations in bits: in the usual form they take a megabyte.
const STATIC: [&str; 2] = ["-Ctarget-feature=+crt-static", "-Clink-arg=-Wl,-z,pack-relative-relocs"];

/// Builds the tracer in `target`.
pub fn release(root: &Path, target: &Path, epoch: u64) -> Result<PathBuf> {
    setup::all()?;
    let moved = moved(root, target)?;
    let rust_flags = [STATIC.map(str::to_owned).as_slice(), &maps("--remap-path-prefix", &moved)].concat();
    // C comes from the registry; another value of CFLAGS for each checkout would only make cargo build it again.
    let c_flags = maps("-ffile-prefix-map", &[moved[0].clone(), moved[2].clone()]).join(" ");
    let mut cargo = Command::new("cargo");
    cargo.args(["build", "--locked", "--profile", "dist", "--target", TARGET, "--features", "static", "--bin", NAME]);
    cargo.env("CARGO_TARGET_DIR", target).env("SOURCE_DATE_EPOCH", epoch.to_string());
    cargo.env("CARGO_ENCODED_RUSTFLAGS", rust_flags.join("\u{1f}")).env("CFLAGS", c_flags);
    // Incremental builds cut the program up by what was built before.
    cargo.env_remove("RUSTFLAGS").env("CARGO_INCREMENTAL", "0");
    cargo.env(format!("LIBBPF_SYS_LIBRARY_PATH_{TARGET}").replace('-', "_"), archives()?);
    shell::run(&mut cargo)?;
    Ok(target.join(TARGET).join("dist").join(NAME))
}

/// Where the compiler finds libelf.a and libz.a: rustc does not look there by itself.
fn archives() -> Result<PathBuf> {
    let find = |name: &str| shell::output("gcc", &[&format!("-print-file-name={name}")]);
    let (elf, z) = (find("libelf.a")?, find("libz.a")?);
    // A name without a directory: not found.
    match (Path::new(elf.trim()).parent(), Path::new(z.trim()).parent()) {
        (Some(dir), Some(other)) if dir == other && dir.is_absolute() => Ok(dir.to_path_buf()),
        _ => bail!("libelf.a or libz.a is not there: Debian has both in libelf-dev and zlib1g-dev"),
    }
}

/// Directories of this machine, and what stands in the program in their place.
fn moved(root: &Path, target: &Path) -> Result<[(PathBuf, &'static str); 3]> {
    let home = || Some(PathBuf::from(env::var_os("HOME")?).join(".cargo"));
    let cargo = env::var_os("CARGO_HOME").map(PathBuf::from).or_else(home);
    let registry = cargo.context("neither CARGO_HOME nor HOME is set")?.join("registry/src");
    // Of several that fit, rustc and gcc take the last: the target directory is mostly inside of the root.
    Ok([(registry, "/registry"), (root.to_path_buf(), "/iotrace-bpf"), (target.to_path_buf(), "/build")])
}

/// The option for each of these directories.
fn maps(option: &str, moved: &[(PathBuf, &str)]) -> Vec<String> {
    moved.iter().map(|(from, to)| format!("{option}={}={to}", from.display())).collect()
}
