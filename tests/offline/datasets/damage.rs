//! Damaged datasets, as `report` and `replay` meet them: what cannot be read is named, the rest is shown, nothing fails or waits for ever.

use crate::common::peak;
use crate::common::synthetic::extreme;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;

use arrow_array::builder::{ListBuilder, StringBuilder};
use arrow_array::{ArrayRef, RecordBatch, StringArray};
use arrow_schema::DataType;
use iotrace_bpf::export::{DatasetWriter, Options, VIEWS};
use iotrace_bpf::replay::Replay;
use iotrace_bpf::summary::view::{Focus, Screen, Source};
use parquet::arrow::ArrowWriter;
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
use parquet::basic::{Compression, Encoding, ZstdLevel};
use parquet::file::metadata::KeyValue;
use parquet::file::properties::{EnabledStatistics, WriterProperties, WriterPropertiesBuilder, WriterVersion};
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

/// The output of a reader, and its exit status. Whatever the bytes are: it ends, and nothing of them acts on a terminal.
fn read(reader: &[&str], dir: &Path) -> (String, Option<i32>) {
    let mut command = Command::new("timeout");
    command.args(LIMIT).arg(env!("CARGO_BIN_EXE_iotrace-bpf")).args(reader).arg(dir);
    let out = command.output().unwrap();
    let output = String::from_utf8([out.stdout, out.stderr].concat()).unwrap();
    assert!(matches!(out.status.code(), Some(0 | 125)), "{reader:?} ends with {}: {output}", out.status);
    assert!(!output.contains("panicked"), "{reader:?}: {output}");
    assert!(!output.contains(|c: char| c.is_control() && c != '\n'), "{reader:?}: {output:?}");
    assert!(!output.is_empty(), "{reader:?} printed nothing");
    (output, out.status.code())
}

/// Every reader goes on past this part, and names it.
fn is_named(part: &str, dir: &Path, how: &str) {
    for reader in READERS {
        let (output, code) = read(reader, dir);
        assert_eq!(code, Some(0), "{how} {part}, {reader:?}: {output}");
        assert!(output.contains(&format!("{part}: not readable")), "{how} {part}, {reader:?}: {output}");
        assert!(part.starts_with("spans") || output.contains("hdf5"), "{how} {part}, {reader:?}: {output}");
    }
}

type Change = fn(&Path);

const NONE: EnabledStatistics = EnabledStatistics::None;

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
fn a_table_with_the_file_name_of_another_is_named() {
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
            let (output, code) = read(reader, dir.path());
            assert_eq!(code, Some(0), "without {part}: {output}");
        }
    }
    // Only one is left.
    for part in parts() {
        let dir = tempfile::tempdir().unwrap();
        fs::copy(recorded().join(&part), dir.path().join(&part)).unwrap();
        for reader in READERS {
            let (output, code) = read(reader, dir.path());
            assert_eq!(code, Some(0), "only {part}: {output}");
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
            let (output, code) = read(reader, &path);
            assert_eq!(code, Some(0), "{reader:?}: {output}");
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

/// What a reader of a dataset may need (MiB). One of a small dataset needs about 40.
const CEILING: u64 = 400;

/// Writes `files-00009.parquet` of as many row groups of a recorded file with these paths.
fn bomb(dir: &Path, groups: usize, paths: &StringArray, how: fn(WriterPropertiesBuilder) -> WriterPropertiesBuilder) {
    let recorded = fs::File::open(recorded().join("files-00002.parquet")).unwrap();
    let batch = ParquetRecordBatchReaderBuilder::try_new(recorded).unwrap().build().unwrap().next().unwrap().unwrap();
    let schema = batch.schema();
    let at = schema.index_of("path").unwrap();
    let with = |path: &str| {
        let mut columns = batch.slice(0, 1).columns().to_vec();
        columns[at] = Arc::new(StringArray::from(vec![path])) as ArrayRef;
        RecordBatch::try_new(Arc::clone(&schema), columns).unwrap()
    };
    let fact = |key: &str, value: &str| KeyValue::new(key.to_owned(), value.to_owned());
    let properties = how(WriterProperties::builder())
        .set_compression(Compression::ZSTD(ZstdLevel::try_new(3).unwrap()))
        .set_key_value_metadata(Some(vec![fact("iotrace.schema", "1"), fact("iotrace.host", "vm")]));
    let file = fs::File::create(dir.join("files-00009.parquet")).unwrap();
    let mut writer = ArrowWriter::try_new(file, Arc::clone(&schema), Some(properties.build())).unwrap();
    for _ in 0..groups {
        paths.iter().flatten().for_each(|path| writer.write(&with(path)).unwrap());
        writer.flush().unwrap();
    }
    writer.close().unwrap();
}

#[test]
fn a_few_bytes_that_stand_for_gigabytes_are_named_and_the_rest_is_shown() {
    type How = fn(WriterPropertiesBuilder) -> WriterPropertiesBuilder;
    let long = |bytes: usize| StringArray::from(vec!["a".repeat(bytes)]);
    let same = |bytes: usize, rows: usize| StringArray::from(vec!["a".repeat(bytes).as_str(); rows]);
    let plain = |p: WriterPropertiesBuilder| p.set_dictionary_enabled(false).set_statistics_enabled(NONE);
    let dictionary =
        |p: WriterPropertiesBuilder| p.set_statistics_enabled(NONE).set_dictionary_page_size_limit(64 << 20);
    let alike = |p: WriterPropertiesBuilder| {
        p.set_dictionary_enabled(false)
            .set_statistics_enabled(NONE)
            .set_writer_version(WriterVersion::PARQUET_2_0)
            .set_column_encoding("path".into(), Encoding::DELTA_BYTE_ARRAY)
    };
    let bombs: [(&str, usize, StringArray, How, &str); 5] = [
        ("one path of 100 MB, 20 times", 20, long(100 << 20), plain, "bytes of a page"),
        ("one path of 8 MB, 40 times", 40, long(8 << 20), plain, "bytes of one string"),
        ("a dictionary of one path of 8 MB, 40 times", 40, long(8 << 20), dictionary, "bytes of one string"),
        ("1.5 MB for each of 300 rows, 20 times", 20, same(3 << 19, 300), dictionary, "its strings come to more bytes"),
        (
            "1 MB for each of 200 rows, like the one before",
            20,
            same(1 << 20, 200),
            alike,
            "is not one that iotrace-bpf writes",
        ),
    ];
    for (what, groups, paths, how, why) in bombs {
        let dir = copy();
        bomb(dir.path(), groups, &paths, how);
        let size = dir.path().join("files-00009.parquet").metadata().unwrap().len();
        assert!(size < 2 << 20, "{what}: {size} bytes");
        for reader in READERS {
            let (output, code) = read(reader, dir.path());
            assert_eq!(code, Some(0), "{what}, {reader:?}: {output}");
            assert!(
                output.contains("files-00009.parquet: not readable") && output.contains(why),
                "{what}, {reader:?}: {output}"
            );
            assert!(output.contains("hdf5"), "{what}, {reader:?}: {output}");
            let mut command = Command::new(env!("CARGO_BIN_EXE_iotrace-bpf"));
            let mut child =
                command.args(reader).arg(dir.path()).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
            let most = peak::of(child.id());
            assert!(child.wait().unwrap().success());
            assert!(most > 0 && most < CEILING << 10, "{what}, {reader:?}: {} MiB", most >> 10);
        }
    }
}

#[test]
fn long_paths_in_many_rows_are_read() {
    let dir = copy();
    let paths: Vec<String> = (0..5000).map(|n| format!("/{}/{n}", "a/".repeat(2000))).collect();
    bomb(dir.path(), 1, &StringArray::from(paths), |p| p.set_max_row_group_row_count(Some(65_536)));
    for reader in READERS {
        let (output, code) = read(reader, dir.path());
        assert_eq!(code, Some(0), "{reader:?}");
        assert!(!output.contains("not readable"), "{reader:?}: {}", &output[..output.len().min(2000)]);
    }
}

/// Many short command lines and one long one, as of a linker: what each may be is more than is read, what they are is not.
#[test]
fn one_long_command_line_among_many_is_read() {
    let dir = copy();
    let part = parts().into_iter().find(|name| name.starts_with("processes")).unwrap();
    let recorded = fs::File::open(dir.path().join(part)).unwrap();
    let builder = ParquetRecordBatchReaderBuilder::try_new(recorded).unwrap();
    let facts = builder.metadata().file_metadata().key_value_metadata().cloned();
    let batch = builder.build().unwrap().next().unwrap().unwrap();
    let schema = batch.schema();
    let at = schema.index_of("cmdline").unwrap();
    let properties = WriterProperties::builder().set_key_value_metadata(facts).build();
    let file = fs::File::create(dir.path().join("processes-00009.parquet")).unwrap();
    let mut writer = ArrowWriter::try_new(file, Arc::clone(&schema), Some(properties)).unwrap();
    let with = |words: &[&str]| {
        let DataType::List(item) = batch.schema().field(at).data_type().clone() else { panic!("cmdline is no list") };
        let mut line = ListBuilder::new(StringBuilder::new()).with_field(item);
        line.append_value(words.iter().map(|word| Some(*word)));
        let mut columns = batch.slice(0, 1).columns().to_vec();
        columns[at] = Arc::new(line.finish()) as ArrayRef;
        RecordBatch::try_new(Arc::clone(&schema), columns).unwrap()
    };
    writer.write(&with(&["ld", &"o".repeat(100 << 10)])).unwrap();
    let short = with(&["sh", "-c", "true"]);
    (0..2000).for_each(|_| writer.write(&short).unwrap());
    writer.close().unwrap();
    for reader in READERS {
        let (output, code) = read(reader, dir.path());
        assert_eq!(code, Some(0), "{reader:?}");
        assert!(!output.contains("not readable"), "{reader:?}: {}", &output[..output.len().min(2000)]);
    }
}

/// What bytes of a file become.
#[derive(Debug, Clone)]
enum Damage {
    Flipped(Vec<(Index, u8)>),
    Replaced(Index, Vec<u8>),
    Cut(Index),
    Longer(Vec<u8>),
    /// Bytes near the end, where the footer is, which has the places of everything else.
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
            let (output, code) = read(reader, dir.path());
            // Where it gives up, it names the file.
            let named = changes.iter().any(|(part, _)| output.contains(part.as_str()));
            prop_assert!(code == Some(0) || named || output.contains("has schema"), "{reader:?}: {output}");
            let cut = changes.iter().find(|(_, change)| matches!(change, Damage::Cut(_)));
            prop_assert!(cut.is_none_or(|(part, _)| output.contains(part.as_str())) || code != Some(0), "{reader:?}: {output}");
        }
    }
}

#[test]
fn nodes_whose_ids_have_no_bounds_are_named() {
    let dir = tempfile::tempdir().unwrap();
    for node in ["node1", "node2"] {
        fs::rename(copy().keep(), dir.path().join(node)).unwrap();
        bomb(&dir.path().join(node), 1, &StringArray::from(vec!["/a"]), |part| part.set_statistics_enabled(NONE));
    }
    let (output, status) = read(&["report"], dir.path());
    assert_eq!(status, Some(125), "{output}");
    let left_out = |node: &str| output.contains(&format!("{node} left out: files-00009.parquet has no statistics"));
    assert!(left_out("node1") && left_out("node2"), "{output}");
}
