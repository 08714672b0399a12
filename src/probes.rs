//! `iotrace-bpf probes`: the catalog as people read it.

use crate::catalog;
use std::io::{self, Write};

/// Writes a line per row.
pub fn list(out: &mut dyn Write) -> io::Result<()> {
    writeln!(out, "{:<13} {:<38} {:<8} KIND", "LIBRARY", "FUNCTION", "LAYER")?;
    for row in catalog::rows() {
        // An inner function has no calls of its own: it tells what the call is about that it runs in.
        let kind = if row.note.is_some() { "inner" } else { row.kind.name() };
        writeln!(out, "{:<13} {:<38} {:<8} {kind}", row.family.name(), row.symbol, row.layer)?;
    }
    Ok(())
}
