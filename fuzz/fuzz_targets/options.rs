//! A file of options, as `--config` names it.
#![no_main]
#![allow(clippy::expect_used)] // A panic is how a target fails.

use std::ffi::OsString;
use std::fs;
use std::path::PathBuf;
use std::sync::LazyLock;

use iotrace_bpf::config::{self, Wrong};
use libfuzzer_sys::fuzz_target;

static FILE: LazyLock<PathBuf> =
    LazyLock::new(|| std::env::temp_dir().join(format!("iotrace-fuzz-{}.toml", std::process::id())));

fuzz_target!(|data: &[u8]| {
    fs::write(&*FILE, data).expect("a file for options");
    let line = ["iotrace-bpf", "-p", "1", "--config"].map(OsString::from);
    match config::parse(line.into_iter().chain([FILE.clone().into_os_string()]).collect()) {
        Ok(cli) => assert_eq!(cli.record.pid, [1]),
        Err(Wrong::File(why)) => assert!(why.contains("iotrace-fuzz"), "{why}"),
        Err(Wrong::Usage(error)) => assert!(!error.to_string().is_empty()),
    }
});
