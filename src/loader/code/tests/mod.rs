//! ELF reading and planning on real libraries, on programs built here, and on broken files.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::catalog::Catalog;
use crate::loader::code::elf::{Elf, Symbol, Target};
use crate::loader::code::plan::{Plan, Planner};

mod built;
mod damaged;
mod real;

const LIBC: &str = "/lib/x86_64-linux-gnu/libc.so.6";
const LIBMPI: &str = "/lib/x86_64-linux-gnu/libmpi.so.40";
const LIBHDF5: &str = "/lib/x86_64-linux-gnu/libhdf5_openmpi.so.103";
const LIBPNETCDF: &str = "/lib/x86_64-linux-gnu/libpnetcdf.so.0d";
const LIBMPICH: &str = "/lib/x86_64-linux-gnu/libmpich.so.12";
const LIBRARIES: [&str; 4] = [LIBC, LIBMPI, LIBHDF5, LIBMPICH];

const STDIO: &str = r#"
#include <stdio.h>
int main(void) {
    char buffer[9];
    FILE *f = fopen("/dev/null", "r+");
    fwrite("x", 1, 1, f); fread(buffer, 1, 9, f);
    return fclose(f);
}"#;

fn read(path: impl AsRef<Path>) -> Vec<u8> {
    std::fs::read(&path).unwrap_or_else(|e| panic!("{}: {e}", path.as_ref().display()))
}

fn planner() -> Planner {
    Planner::new(Catalog::built_in())
}

fn planned(bytes: &[u8]) -> (Elf, Plan) {
    let planner = planner();
    let elf = Elf::parse(bytes, |name| planner.takes(name)).unwrap();
    let plan = planner.plan("the file", &elf, bytes, &|_| true);
    (elf, plan)
}

fn output(program: &str, args: &[&str]) -> String {
    let out = Command::new(program).args(args).output().unwrap_or_else(|e| panic!("{program}: {e}"));
    assert!(out.status.success(), "{program} {args:?}: {}", String::from_utf8_lossy(&out.stderr));
    String::from_utf8_lossy(&out.stdout).into_owned()
}

/// Builds a C program.
fn build(dir: &tempfile::TempDir, source: &str, flags: &[&str]) -> PathBuf {
    let c = dir.path().join("program.c");
    let exe = dir.path().join("program");
    std::fs::write(&c, source).unwrap();
    let mut args = vec!["-O1", "-o", exe.to_str().unwrap(), c.to_str().unwrap()];
    args.extend(flags);
    output("cc", &args);
    exe
}

/// The executable segments as readelf shows them: (file offset, address, size in the file).
fn executable_segments(path: &str) -> Vec<(u64, u64, u64)> {
    let hex = |s: &str| u64::from_str_radix(s.trim_start_matches("0x"), 16).unwrap();
    let text = output("readelf", &["-lW", path]);
    let lines = text.lines().map(|l| l.split_whitespace().collect::<Vec<_>>());
    // LOAD offset virtual physical file-size memory-size R E align
    lines
        .filter(|f| f.first() == Some(&"LOAD") && f[6..f.len() - 1].concat().contains('E'))
        .map(|f| (hex(f[1]), hex(f[2]), hex(f[4])))
        .collect()
}

/// Defined functions as nm shows them: name without version -> addresses.
fn functions(path: &str, table: &[&str]) -> BTreeMap<String, BTreeSet<u64>> {
    let mut found: BTreeMap<_, BTreeSet<_>> = BTreeMap::new();
    for line in output("nm", &[table, &["--defined-only", path]].concat()).lines() {
        let fields: Vec<_> = line.split_whitespace().collect();
        if let [address, "T" | "W", name] = fields[..] {
            let name = name.split('@').next().unwrap();
            found.entry(name.to_owned()).or_default().insert(u64::from_str_radix(address, 16).unwrap());
        }
    }
    found
}

fn code_offsets(symbols: &[Symbol]) -> BTreeSet<u64> {
    let offset = |s: &Symbol| if let Target::Code(offset) = s.target { Some(offset) } else { None };
    symbols.iter().filter_map(offset).collect()
}

/// What a plan did not probe: symbol, status, reason.
fn settled(plan: &Plan) -> Vec<(&str, &str, &str)> {
    plan.settled.iter().map(|c| (c.symbol.as_str(), c.status, c.reason.as_deref().unwrap())).collect()
}
