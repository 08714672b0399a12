//! `iotrace-bpf probes`: the catalog as people read it.

use crate::catalog;
use std::io::{self, Write};

/// Writes a line per row.
pub fn list(out: &mut dyn Write) -> io::Result<()> {
    writeln!(out, "{:<13} {:<32} {:<8} KIND", "LIBRARY", "FUNCTION", "LAYER")?;
    for row in catalog::rows() {
        writeln!(out, "{:<13} {:<32} {:<8} {}", row.family.name(), row.symbol, row.layer, row.kind.name())?;
    }
    Ok(())
}
