//! Files beyond a bound are not examined and the reason names the bound; real programs and libraries are within all.

use std::fs::File;
use std::path::{Path, PathBuf};

use crate::catalog::Catalog;
use crate::loader::code::bounds;
use crate::loader::code::elf::{Elf, ElfError};
use crate::loader::code::outline::{self, Outline, Unread};
use crate::loader::code::plan::{Plan, Planner};
use crate::loader::hostile::{self, FILES, LOADED};

fn planner() -> Planner {
    let mut catalog = Catalog::built_in();
    // A name of C++, so that all names of C++ are looked at.
    catalog.add_phase(&"ns::Grid::step".parse().unwrap()).unwrap();
    Planner::new(catalog)
}

fn classify(path: &Path) -> Result<(Elf, Vec<u8>), Unread> {
    let planner = planner();
    outline::classify(&mut Outline::default(), &File::open(path).unwrap(), |name| planner.takes(name))
}

#[test]
fn a_file_beyond_a_bound_names_the_bound() {
    let dir = tempfile::tempdir().unwrap();
    for hostile in FILES.iter().chain([&LOADED]) {
        let path = hostile.write(dir.path());
        let Err(why) = classify(&path) else { panic!("{} is examined", hostile.name) };
        assert_eq!(why.status(), "skipped", "{}: {why}", hostile.name);
        let why = why.to_string();
        assert!(why.starts_with("too large to examine (") && why.contains(hostile.beyond), "{}: {why}", hostile.name);
        std::fs::remove_file(path).unwrap();
    }
    let (elf, bytes) = classify(&hostile::sound(dir.path())).unwrap();
    assert_eq!(elf.symbols.keys().collect::<Vec<_>>(), ["H5Fclose", "H5Fopen"]);
    let plan = planner().plan("small.so", &elf, &bytes, &|_| true);
    assert_eq!(plan.settled.iter().filter(|c| c.reason.as_deref().is_some_and(|r| r.contains("too large"))).count(), 0);
}

/// All symbols of a file, whatever they are called.
fn all(bytes: &[u8]) -> Result<Elf, ElfError> {
    Elf::parse(bytes, |_| true)
}

#[test]
fn headers_of_any_number_of_sections_and_segments_are_too_large() {
    let dir = tempfile::tempdir().unwrap();
    let mut bytes = std::fs::read(hostile::sound(dir.path())).unwrap();
    assert!(all(&bytes).is_ok());
    // As many sections as fit behind the first, which has their number.
    let at = bytes.len() as u64;
    bytes[40..48].copy_from_slice(&at.to_le_bytes());
    bytes[60..62].fill(0);
    let number = bounds::SECTIONS as u64 + 1;
    let mut first = [0; 64];
    first[32..40].copy_from_slice(&number.to_le_bytes());
    bytes.extend(first);
    bytes.resize(bytes.len() + 64 * bounds::SECTIONS, 0);
    let too_large = |what: &str| Err(ElfError::TooLarge(what.to_owned()));
    assert_eq!(all(&bytes), too_large("more than 65536 sections"));
    let mut bytes = std::fs::read(hostile::sound(dir.path())).unwrap();
    bytes[32..40].copy_from_slice(&0x1000_u64.to_le_bytes());
    bytes[56..58].copy_from_slice(&(bounds::SEGMENTS as u16 + 1).to_le_bytes());
    bytes.resize(0x1000 + 56 * (bounds::SEGMENTS + 1) + bytes.len(), 0);
    assert_eq!(all(&bytes), too_large("more than 4096 segments"));
}

#[test]
fn code_is_looked_at_up_to_a_bound() {
    let dir = tempfile::tempdir().unwrap();
    let (mut elf, bytes) = classify(&hostile::sound(dir.path())).unwrap();
    // As many functions as may be, each of them all there is.
    let symbol = elf.symbols["H5Fopen"][0];
    let large = |n: u64| crate::loader::code::elf::Symbol {
        target: crate::loader::code::elf::Target::Code(0x1000 + n),
        vaddr: 0x1000 + n,
        size: 0xf000,
        ..symbol
    };
    // What the C library is known by.
    for name in ["fclose", "fread", "fwrite"] {
        elf.symbols.insert(name.to_owned(), vec![symbol]);
    }
    elf.symbols.insert("fopen".to_owned(), (0..bounds::WANTED as u64).map(large).collect());
    let Plan { settled, probes, .. } = planner().plan("libc.so", &elf, &bytes, &|_| true);
    let beyond = settled.iter().filter(|c| c.status == "skipped" && c.reason.as_deref().unwrap().contains("of code"));
    assert!(beyond.count() > 1000);
    assert!(probes.len() < 1000);
}

/// The largest programs and libraries of this machine.
fn largest() -> Vec<PathBuf> {
    let home = std::env::var("HOME").unwrap_or_default();
    let mut dirs: Vec<PathBuf> =
        ["/usr/bin", "/usr/lib/x86_64-linux-gnu", "/usr/lib/chromium"].map(PathBuf::from).into();
    let toolchains = std::fs::read_dir(Path::new(&home).join(".rustup/toolchains")).into_iter().flatten().flatten();
    dirs.extend(toolchains.map(|entry| entry.path().join("lib")));
    let files = dirs.iter().filter_map(|dir| std::fs::read_dir(dir).ok()).flatten().flatten();
    let size = |path: &PathBuf| path.metadata().map_or(0, |m| m.len());
    let mut files: Vec<PathBuf> = files.map(|entry| entry.path()).filter(|path| path.is_file()).collect();
    files.push(std::env::current_exe().unwrap());
    files.sort_by_key(|path| std::cmp::Reverse(size(path)));
    files.truncate(12);
    files
}

#[test]
fn the_largest_programs_and_libraries_are_classified() {
    let files = largest();
    assert!(files.len() == 12 && files[0].metadata().unwrap().len() > 50 << 20, "{files:?}");
    for path in files {
        let mut start = [0; 4];
        let is_elf =
            std::io::Read::read_exact(&mut File::open(&path).unwrap(), &mut start).is_ok() && start == *b"\x7fELF";
        if is_elf {
            let begun = std::time::Instant::now();
            let symbols = classify(&path).map(|(elf, _)| elf.symbols.len());
            println!(
                "{} {} MB: {symbols:?} in {:?}",
                path.display(),
                path.metadata().unwrap().len() >> 20,
                begun.elapsed()
            );
            assert!(!matches!(symbols, Err(Unread::TooLarge(_))), "{}: {symbols:?}", path.display());
        }
    }
}
