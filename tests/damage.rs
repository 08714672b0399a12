//! Damaged datasets, as `report` and `replay` meet them: what cannot be read is named, the rest is shown, nothing fails or waits for ever.
#![allow(clippy::unwrap_used)]

#[path = "common/extreme.rs"]
mod extreme;
#[path = "common/trace.rs"]
#[allow(dead_code)] // Shared: every test uses its part.
mod trace;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use iotrace_bpf::export::{DatasetWriter, Options, VIEWS};
use iotrace_bpf::replay::Replay;
use iotrace_bpf::summary::view::{Focus, Screen, Source};
use proptest::prelude::*;
use proptest::sample::{Index, select};
use tempfile::TempDir;

/// Everything that reads a dataset without a terminal. What is left running after a minute is killed, and fails.
const READERS: [&[&str]; 4] =
    [&["report"], &["report", "--json"], &["replay", "--batch"], &["replay", "--batch", "--json"]];
const LIMIT: [&str; 2] = ["--signal=KILL", "60"];

/// Parts that each of them needs, and whose columns no other table has.
const NEEDED: [&str; 5] = ["spans", "files", "processes", "handles", "meta"];

fn recorded() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/mpi_hdf5")
}

fn parts() -> Vec<String> {
    let entries = fs::read_dir(recorded()).unwrap();
    let mut names: Vec<_> = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

/// A recorded dataset, to be damaged.
fn copy() -> TempDir {
    let dir = tempfile::tempdir().unwrap();
    for name in parts() {
        fs::copy(recorded().join(&name), dir.path().join(&name)).unwrap();
    }
    dir
}

/// What a reader says, and its exit status. Whatever the bytes are: it ends by itself, and nothing of them acts on a terminal.
fn read(reader: &[&str], dir: &Path) -> (String, Option<i32>) {
    let mut command = Command::new("timeout");
    command.args(LIMIT).arg(env!("CARGO_BIN_EXE_iotrace-bpf")).args(reader).arg(dir);
    let out = command.output().unwrap();
    let said = String::from_utf8([out.stdout, out.stderr].concat()).unwrap();
    assert!(matches!(out.status.code(), Some(0 | 125)), "{reader:?} ends with {}: {said}", out.status);
    assert!(!said.contains("panicked"), "{reader:?}: {said}");
    assert!(!said.contains(|c: char| c.is_control() && c != '\n'), "{reader:?}: {said:?}");
    assert!(!said.is_empty(), "{reader:?} says nothing");
    (said, out.status.code())
}

/// Every reader goes on past this part, and says its name.
fn is_named(part: &str, dir: &Path, how: &str) {
    for reader in READERS {
        let (said, code) = read(reader, dir);
        assert_eq!(code, Some(0), "{how} {part}, {reader:?}: {said}");
        assert!(said.contains(&format!("{part}: not readable")), "{how} {part}, {reader:?}: {said}");
        assert!(part.starts_with("spans") || said.contains("hdf5"), "{how} {part}, {reader:?}: {said}");
    }
}

type Change = fn(&Path);

#[test]
fn what_is_no_part_is_named_and_the_rest_is_shown() {
    let changes: [(&str, Change); 6] = [
        ("empty", |part| fs::write(part, "").unwrap()),
        ("cut off", |part| {
            let whole = fs::read(part).unwrap();
            fs::write(part, &whole[..whole.len() / 2]).unwrap();
        }),
        ("a directory for", |part| fs::create_dir(part).unwrap()),
        ("a pipe for", |part| nix::unistd::mkfifo(part, nix::sys::stat::Mode::S_IRUSR).unwrap()),
        ("a link to nothing for", |part| std::os::unix::fs::symlink("nothing", part).unwrap()),
        ("a link to itself for", |part| std::os::unix::fs::symlink(part.file_name().unwrap(), part).unwrap()),
    ];
    for part in parts() {
        let dir = copy();
        let path = dir.path().join(&part);
        for (how, change) in changes {
            if path.is_dir() {
                fs::remove_dir(&path).unwrap();
            } else if how.ends_with("for") {
                fs::remove_file(&path).unwrap();
            }
            change(&path);
            is_named(&part, dir.path(), how);
            if how == "empty" {
                fs::copy(recorded().join(&part), &path).unwrap();
            }
        }
    }
}

#[test]
fn a_table_in_the_place_of_another_is_named() {
    for table in NEEDED {
        for other in NEEDED.iter().filter(|other| **other != table) {
            let dir = copy();
            let part = format!("{table}-00002.parquet");
            fs::copy(recorded().join(format!("{other}-00002.parquet")), dir.path().join(&part)).unwrap();
            is_named(&part, dir.path(), &format!("{other} as"));
        }
    }
}

#[test]
fn a_table_that_is_gone_costs_what_is_in_it() {
    for part in parts() {
        let dir = copy();
        fs::remove_file(dir.path().join(&part)).unwrap();
        for reader in READERS {
            let (said, code) = read(reader, dir.path());
            assert_eq!(code, Some(0), "without {part}: {said}");
        }
    }
    // Only one is left.
    for part in parts() {
        let dir = tempfile::tempdir().unwrap();
        fs::copy(recorded().join(&part), dir.path().join(&part)).unwrap();
        for reader in READERS {
            let (said, code) = read(reader, dir.path());
            assert_eq!(code, Some(0), "only {part}: {said}");
        }
    }
}

#[test]
fn numbers_beyond_all_bounds_are_shown_as_they_are() {
    for aggregate in [false, true] {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("run");
        let options = Options { path: &path, host: "vm", force: false, owner: None, views: VIEWS };
        let mut writer = DatasetWriter::create(options).unwrap();
        for row in extreme::rows(aggregate) {
            writer.push(row).unwrap();
        }
        writer.finish().unwrap();
        for reader in READERS {
            let (said, code) = read(reader, &path);
            assert_eq!(code, Some(0), "{reader:?}: {said}");
        }
        let mut replay = Replay::open(&path).unwrap();
        let screens =
            [Screen::Overview, Screen::Processes, Screen::Files, Screen::Tree, Screen::Latency, Screen::Events];
        for screen in screens.into_iter().chain([Screen::Devices, Screen::InFlight, Screen::Coverage]) {
            let focus = Focus { screen, ..Focus::default() };
            replay.wait(&focus);
            assert_eq!(replay.snapshot(&focus).notes.iter().find(|note| note.contains("not readable")), None);
        }
    }
}

/// What bytes of a file become.
#[derive(Debug, Clone)]
enum Damage {
    Flipped(Vec<(Index, u8)>),
    Replaced(Index, Vec<u8>),
    Cut(Index),
    Longer(Vec<u8>),
    /// Bytes near the end, where the footer is, which says where everything else stands.
    Footer(Vec<(Index, u8)>),
}

fn damage() -> impl Strategy<Value = Damage> {
    let flips = || prop::collection::vec((any::<Index>(), 1u8..), 1..5);
    let bytes = || prop::collection::vec(any::<u8>(), 1..300);
    prop_oneof![
        flips().prop_map(Damage::Flipped),
        (any::<Index>(), bytes()).prop_map(|(at, bytes)| Damage::Replaced(at, bytes)),
        any::<Index>().prop_map(Damage::Cut),
        bytes().prop_map(Damage::Longer),
        flips().prop_map(Damage::Footer),
    ]
}

fn damaged(mut bytes: Vec<u8>, damage: &Damage) -> Vec<u8> {
    let len = bytes.len();
    if len == 0 {
        return bytes;
    }
    match damage {
        Damage::Flipped(flips) => flips.iter().for_each(|(at, bits)| bytes[at.index(len)] ^= bits),
        Damage::Replaced(at, by) => bytes.iter_mut().skip(at.index(len)).zip(by).for_each(|(old, new)| *old = *new),
        Damage::Cut(at) => bytes.truncate(at.index(len)),
        Damage::Longer(more) => bytes.extend(more),
        Damage::Footer(flips) => {
            let footer = len.min(2000);
            for (at, bits) in flips {
                bytes[len - footer + at.index(footer)] ^= bits;
            }
        }
    }
    bytes
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 60, max_shrink_iters: 60, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn no_bytes_make_a_reader_fail_or_act_on_the_terminal(
        changes in prop::collection::vec((select(parts()), damage()), 1..4),
    ) {
        let dir = copy();
        for (part, change) in &changes {
            let path = dir.path().join(part);
            fs::write(&path, damaged(fs::read(&path).unwrap_or_default(), change)).unwrap();
        }
        for reader in READERS {
            let (said, code) = read(reader, dir.path());
            // Where it gives up, it says which of the files it is about.
            let named = changes.iter().any(|(part, _)| said.contains(part.as_str()));
            prop_assert!(code == Some(0) || named || said.contains("has schema"), "{reader:?}: {said}");
            let cut = changes.iter().find(|(_, change)| matches!(change, Damage::Cut(_)));
            prop_assert!(cut.is_none_or(|(part, _)| said.contains(part.as_str())) || code != Some(0), "{reader:?}: {said}");
        }
    }
}
