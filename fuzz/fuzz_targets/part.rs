//! Parts of a dataset, as `report` and `replay` read them. Each is behind a byte for its table and two for its length.
#![no_main]
#![allow(clippy::expect_used)] // A panic is how a target fails.

use std::fs;
use std::panic;
use std::path::PathBuf;
use std::sync::LazyLock;
use std::time::Duration;

use iotrace_bpf::batch::{self, Batch};
use iotrace_bpf::export::{TABLES, decoding, report};
use iotrace_bpf::replay::Replay;
use iotrace_bpf::summary::view::Focus;
use libfuzzer_sys::fuzz_target;

static DATASET: LazyLock<PathBuf> = LazyLock::new(|| {
    let dir = std::env::temp_dir().join(format!("iotrace-fuzz-{}", std::process::id()));
    fs::create_dir_all(&dir).expect("a directory for a dataset");
    dir
});

/// What damaged bytes make of a decoder is caught by who calls it: no failure.
fn decoders_may_panic() {
    let fail = panic::take_hook();
    panic::set_hook(Box::new(move |about| {
        if !decoding() {
            fail(about);
        }
    }));
}

/// Nothing of a dataset acts on the terminal.
fn is_plain(output: &[u8]) {
    let output = std::str::from_utf8(output).expect("text");
    assert!(!output.contains(|c: char| c.is_control() && c != '\n'), "{output:?}");
}

fuzz_target!(init: decoders_may_panic(), |data: &[u8]| {
    let mut rest = data;
    let mut written = Vec::new();
    while let Some((&[table, low, high], behind)) = rest.split_first_chunk() {
        let length = usize::from(u16::from_le_bytes([low, high]));
        let (bytes, behind) = behind.split_at(behind.len().min(length));
        rest = behind;
        let table = TABLES[usize::from(table) % TABLES.len()];
        let part = DATASET.join(format!("{table}-{:05}.parquet", written.len() + 1));
        fs::write(&part, bytes).expect("a part");
        written.push(part);
    }
    read();
    for part in written {
        fs::remove_file(part).expect("a part");
    }
});

fn read() {
    for json in [false, true] {
        let mut output = Vec::new();
        match report::run(&DATASET, json, &mut output) {
            Ok(()) => is_plain(&output),
            Err(error) => assert!(!error.to_string().is_empty()),
        }
    }
    let Ok(mut replay) = Replay::open(&DATASET) else { return };
    replay.wait(&Focus::default());
    for json in [false, true] {
        let mut output = Vec::new();
        let once = Batch { ticks: Some(1), delay: Duration::ZERO, json, ..Batch::default() };
        batch::run(&mut replay, &once, &mut output, |_| false).expect("it is written to memory");
        is_plain(&output);
    }
}
