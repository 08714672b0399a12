//! Decodes untrusted bytes: damaged ones become errors.

use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind};

use anyhow::{Result, anyhow};
use parquet::file::metadata::ParquetMetaData;

pub(crate) fn fact(metadata: &ParquetMetaData, key: &str) -> Option<String> {
    let facts = metadata.file_metadata().key_value_metadata()?;
    facts.iter().find(|fact| fact.key == key)?.value.clone()
}

/// The decoder indexes by damaged bytes and panics; to us that is one more part that cannot be read.
/// Whatever `decode` was working on is given up afterwards, so nothing half-changed is seen.
pub(crate) fn guarded<V>(decode: impl FnOnce() -> Result<V>) -> Result<V> {
    let before = DECODING.replace(true);
    let done = catch_unwind(AssertUnwindSafe(decode));
    DECODING.set(before);
    done.unwrap_or_else(|_| Err(anyhow!("damaged")))
}

thread_local! {
    static DECODING: Cell<bool> = const { Cell::new(false) };
}

/// Whether this thread decodes a dataset: a panic is caught then, and no failure of this program.
pub fn decoding() -> bool {
    DECODING.get()
}
