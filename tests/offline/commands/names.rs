//! Names that try to act on a terminal: nothing of them gets there as it is, wherever in a dataset they stand.

use std::fs;
use std::os::unix::ffi::OsStringExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::common::synthetic::trace::{Trace, file, handle, meta, process, rest};
use iotrace_bpf::export::{DatasetWriter, Options, VIEWS};
use iotrace_bpf::rows::{Coverage, File, Loss, Metric, Mount, Object, Process, Row, Thread};
use iotrace_bpf::vocabulary::{Kind, Layer};

/// Title, colour, clear screen, lines, delete, a control character beyond ASCII, right-to-left override, an invisible space.
const HOSTILE: &str = "a\x1b]0;owned\x07\x1b[31m\x1b[2J\r\nb\x7f\u{9b}31m\u{202e}c\u{200b}";
const READERS: [&[&str]; 7] = [
    &["report"],
    &["report", "--json"],
    &["report", "--section", "all", "--width", "100"],
    &["report", "--section", "all", "--format", "md"],
    &["report", "--section", "files", "--format", "csv"],
    &["replay", "--batch"],
    &["replay", "--batch", "--json"],
];

fn acts(c: char) -> bool {
    c != '\n' && (c.is_control() || matches!(c, '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}'))
}

fn output(reader: &[&str], dir: &Path) -> (String, Option<i32>) {
    let out = Command::new(env!("CARGO_BIN_EXE_iotrace-bpf")).args(reader).arg(dir).output().unwrap();
    let output = String::from_utf8([out.stdout, out.stderr].concat()).unwrap();
    assert!(
        !output.contains(acts),
        "{reader:?}: {:?}",
        output.lines().filter(|line| line.contains(acts)).collect::<Vec<_>>()
    );
    (output, out.status.code())
}

fn name() -> String {
    HOSTILE.to_owned()
}

/// A dataset in which every text that comes from elsewhere is hostile.
fn dataset() -> Vec<Row> {
    let mut t = Trace::default();
    for key in ["command", "host", "kernel", "cpu", "run", "trigger", "detail", "version", HOSTILE] {
        t.row(meta(key, HOSTILE));
    }
    for row in rest(1, 0) {
        t.row(match row {
            Row::Coverage(row) => {
                Row::Coverage(Coverage { target: name(), symbol: name(), reason: Some(name()), ..row })
            }
            Row::Object(row) => Row::Object(Object { name: name(), ..row }),
            Row::Thread(row) => Row::Thread(Thread { comm: name(), ..row }),
            Row::Mount(row) => {
                let known = Mount { path: name(), source: name(), options: name(), root: name(), ..*row };
                Row::Mount(Box::new(Mount {
                    fstype: name(),
                    server: Some(name()),
                    device: Some(name()),
                    model: Some(name()),
                    ..known
                }))
            }
            Row::Metric(row) => Row::Metric(Metric { name: "unknown_bytes", label: Some(name()), ..row }),
            row => row,
        });
    }
    t.row(Row::Loss(Loss { t_ns: 0, layer: None, cpu: None, place: HOSTILE, process_ix: None, count: 1 }));
    for status in ["refused", "absent", HOSTILE] {
        let layer = Layer::Netcdf;
        let (target, symbol, reason) = (name(), name(), Some(name()));
        t.row(Row::Coverage(Coverage { layer, target, symbol, tier: None, status, reason, offset: None, insn: None }));
    }
    for id in 1..4 {
        if let Row::File(row) = file(id, HOSTILE) {
            t.row(Row::File(Box::new(File {
                fstype: Some(name()),
                first_path: Some(name()),
                paths: Some(vec![name()]),
                host_path: Some(name()),
                ..*row
            })));
        }
        if let Row::Process(row) = process(id, (id < 3).then_some(id)) {
            let known = Process {
                exe: Some(name()),
                cmdline: vec![name(), name()],
                user: Some(name()),
                unit: Some(name()),
                ..*row
            };
            t.row(Row::Process(Box::new(Process {
                cgroup: Some(name()),
                container: Some(name()),
                container_name: Some(name()),
                container_image: Some(name()),
                job_id: Some(name()),
                step_id: Some(name()),
                ..known
            })));
        }
        t.row(handle(id, None, Layer::Hdf5, id, Some(1)));
        let phase = t.call(id as u32, None, (Layer::App, HOSTILE, Kind::Other), 0, 100_000);
        let call = t.call(id as u32, Some(phase), (Layer::Hdf5, HOSTILE, Kind::Write), 10, 50_000);
        t.moved(call, id, 1000);
        let span = t.edit(call);
        (span.handle_id, span.object_id) = (Some(id), Some(1));
        let write = t.call(id as u32, Some(call), (Layer::Syscall, HOSTILE, Kind::Write), 20, 40_000);
        t.moved(write, id, 1000);
        t.request(i64::from(id), write, ("write", HOSTILE), 4096, 100);
    }
    t.finish()
}

fn write(path: &Path, host: &str) {
    let options = Options { path, host, force: false, owner: None, views: VIEWS };
    let mut writer = DatasetWriter::create(options).unwrap();
    for row in dataset() {
        writer.push(row).unwrap();
    }
    writer.finish().unwrap();
}

#[test]
fn no_text_of_a_dataset_acts_on_a_terminal() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("run");
    write(&path, HOSTILE);
    for reader in READERS {
        let (output, code) = output(reader, &path);
        assert_eq!(code, Some(0), "{reader:?}: {output}");
        let json = reader.contains(&"--json");
        assert!(output.contains(if json { "\\u001b]0;owned" } else { "\\x1b]0;owned" }), "{reader:?}: {output}");
        if json {
            let value: serde_json::Value = serde_json::from_str(&output).unwrap();
            assert!(value["files"].as_array().unwrap().iter().any(|file| file["path"] == HOSTILE), "{output}");
        }
    }
    // Two nodes, whose names stand in front of others.
    write(&dir.path().join("other"), &format!("other{HOSTILE}"));
    for reader in &READERS[..2] {
        assert_eq!(output(reader, dir.path()).1, Some(0), "{reader:?}");
    }
}

#[test]
fn no_name_of_a_directory_acts_on_a_terminal() {
    let dir = tempfile::tempdir().unwrap();
    let name = [HOSTILE.replace('\n', "").as_bytes(), b"\xff"].concat();
    let path = dir.path().join(PathBuf::from(std::ffi::OsString::from_vec(name)));
    for reader in READERS {
        // Not there; nothing in it; damaged; one of those below is meant.
        let _ = fs::remove_dir_all(&path);
        assert_eq!(output(reader, &path).1, Some(125), "{reader:?}");
        fs::create_dir(&path).unwrap();
        assert_eq!(output(reader, &path).1, Some(125), "{reader:?}");
        fs::write(path.join("spans-00001.parquet"), "nothing").unwrap();
        assert_eq!(output(reader, &path).1, Some(125), "{reader:?}");
        output(reader, dir.path());
        write_over(&path);
        assert_eq!(output(reader, &path).1, Some(0), "{reader:?}");
    }
}

/// A dataset that has been cut off, in a directory that is there.
fn write_over(path: &Path) {
    fs::remove_dir_all(path).unwrap();
    write(path, "vm");
    fs::rename(path.join("threads-00002.parquet"), path.join("threads-00002.parquet.inprogress")).unwrap();
}
