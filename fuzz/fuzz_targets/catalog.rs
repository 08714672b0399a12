//! A catalog file, as `--probes` names it.
#![no_main]

use std::sync::LazyLock;

use iotrace_bpf::catalog::Catalog;
use libfuzzer_sys::fuzz_target;

static BUILT_IN: LazyLock<Catalog> = LazyLock::new(Catalog::built_in);

fuzz_target!(|data: &[u8]| {
    let Ok(text) = std::str::from_utf8(data) else { return };
    let mut catalog = BUILT_IN.clone();
    match catalog.add_file("my.toml", text) {
        Ok(()) => catalog.user_rows().for_each(|row| assert!(!row.symbol.is_empty())),
        Err(error) => assert!(format!("{error:#}").starts_with("my.toml"), "{error:#}"),
    }
});
