//! Files that are no programs, or broken ones.

use proptest::prelude::*;

use crate::loader::code::elf::{Elf, ElfError};
use crate::loader::code::outline::Outline;
use crate::loader::code::plan::Planner;
use crate::loader::code::tests::{STDIO, build, planner, read};

thread_local! {
    /// For all files of a test: making one takes longer than a file.
    static PLANNER: Planner = planner();
}

#[test]
fn files_of_another_kind_are_named() {
    let parse = |bytes: &[u8]| Elf::parse(bytes, |_| true);
    assert_eq!(parse(b""), Err(ElfError::NotElf));
    assert_eq!(parse(b"#!/bin/sh\n"), Err(ElfError::NotElf));
    assert_eq!(parse(b"\x7fEL"), Err(ElfError::NotElf));
    assert_eq!(parse(b"\x7fELF"), Err(ElfError::Truncated(4)));
    assert_eq!(parse(b"\x7fELF\x02\x01\x01"), Err(ElfError::Truncated(7)));
    let real = read("/bin/true");
    let changed = |at: usize, bytes: &[u8]| {
        let mut copy = real.clone();
        copy[at..at + bytes.len()].copy_from_slice(bytes);
        parse(&copy).unwrap_err()
    };
    assert_eq!(changed(4, &[1]), ElfError::Bits32);
    assert_eq!(changed(18, &[183, 0]), ElfError::Machine(183));
    assert_eq!(changed(5, &[2, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 2, 0, 22]), ElfError::Machine(22));
    assert_eq!(changed(16, &[1, 0]), ElfError::Type(1));
    assert_eq!(changed(16, &[4, 0]), ElfError::Type(4));
    assert_eq!(changed(40, &[0; 8]), ElfError::NoSections);
    let far = changed(40, &[0xff; 8]);
    assert!(matches!(far, ElfError::Damaged { what: "section headers", .. }), "{far}");
    let far = changed(32, &[0xff; 8]);
    assert!(matches!(far, ElfError::Damaged { what: "program headers", .. }), "{far}");
    let relocatable = ElfError::Type(1).to_string();
    assert!(relocatable.contains("type 1"), "{relocatable}");
}

/// Reads and plans, as the loader does; only that it ends without a panic counts.
fn survives(bytes: &[u8]) -> Result<usize, ElfError> {
    let elf = Elf::parse(bytes, |_| true)?;
    let mut all = elf.clone();
    // All rows planned, each at some symbol of the file.
    let some = elf.symbols.values().cycle();
    PLANNER.with(|planner| {
        let catalog = planner.catalog();
        let names = catalog.libraries().iter().flat_map(|l| l.symbols.iter().copied());
        for (symbols, name) in some.zip(names.chain(catalog.rows().iter().map(|row| row.symbol))) {
            all.symbols.insert(name.to_owned(), symbols.clone());
        }
        Ok(planner.plan("x", &all, bytes, &|_| true).probes.len())
    })
}

#[test]
fn truncated_files_are_errors() {
    let real = read("/bin/true");
    assert!(survives(&real).is_ok());
    // The section headers are the last thing in the file.
    for length in (0..real.len()).step_by(97) {
        assert!(survives(&real[..length]).is_err(), "{length} bytes");
    }
}

#[test]
fn damaged_headers_do_not_panic() {
    let dir = tempfile::tempdir().unwrap();
    let real = read(build(&dir, STDIO, &[]));
    // File header and program headers.
    for at in 0..64 + 56 * 13 {
        for value in [0, 1, 0x7f, 0xff, !real[at]].into_iter().filter(|value| *value != real[at]) {
            let mut copy = real.clone();
            copy[at] = value;
            let _ = survives(&copy);
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]
    #[test]
    fn mutated_files_do_not_panic(changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..40), end: prop::sample::Index) {
        let mut bytes = read("/bin/true");
        let length = bytes.len();
        for (at, value) in changes {
            // Half of the damage where it hurts: the headers at both ends.
            let at = at.index(2 * length);
            let at = if at < length { at } else if at % 2 == 0 { at % 800 } else { length - 1 - at % 1900 };
            bytes[at] = value;
        }
        let mut outline = Outline::default();
        let _ = (survives(&bytes), outlined(&mut outline, &bytes));
        bytes.truncate(end.index(length));
        let _ = (survives(&bytes), outlined(&mut outline, &bytes));
    }
}

/// What is read of a file for its symbols gives the same as all of it, but for relocations.
fn outlined(outline: &mut Outline, bytes: &[u8]) -> bool {
    let part = |buffer: &mut [u8], at: u64| {
        buffer.copy_from_slice(&bytes[at as usize..][..buffer.len()]);
        Ok(())
    };
    let Ok(read) = outline.of(bytes.len(), part) else { return false };
    let Ok(of_part) = Elf::parse(read, |_| true) else { return false };
    let whole = Elf::parse(bytes, |_| true);
    let slots = whole.as_ref().map(|elf| elf.slots.clone()).unwrap_or_default();
    assert_eq!(Ok(Elf { slots, ..of_part }), whole);
    true
}

#[test]
fn the_outline_of_a_file_has_its_symbols() {
    let mut outline = Outline::default();
    let (mut files, mut read_bytes, mut all_bytes) = (0, 0, 0);
    let there = ["/usr/bin", "/usr/lib/x86_64-linux-gnu"].into_iter().flat_map(|dir| std::fs::read_dir(dir).unwrap());
    let mut paths: Vec<_> = there.map(|entry| entry.unwrap().path()).filter(|path| path.is_file()).collect();
    paths.sort();
    // Large and small ones, programs and libraries, one after the other in one buffer.
    for path in paths.iter().step_by(5) {
        let bytes = read(path);
        let is_elf = Elf::parse(&bytes, |_| false).is_ok();
        assert_eq!(outlined(&mut outline, &bytes), is_elf, "{}", path.display());
        if is_elf {
            files += 1;
            all_bytes += bytes.len();
            read_bytes += outline.bytes();
        }
    }
    assert!(files > 100, "{files} files");
    assert!(read_bytes < all_bytes / 2, "{read_bytes} of {all_bytes} bytes of {files} files");
}
