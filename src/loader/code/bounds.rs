//! How much of a file the tracer looks at: any user of a node can map any file, and a tracer that runs as root must not
//! spend its memory or its time on it.
//!
//! What is beyond a bound is not classified, and its verdict names the bound. Each is several times what the largest
//! programs and libraries have that are in use: a compiler with all its symbols (`librustc_driver`: 186 000 symbols, 22
//! MB of names), Node.js (100 000, 13 MB), a browser with all its symbols (a million, 150 MB).

use std::time::Duration;

/// Larger files are not read at all: what is read of one is filled in at its own offset in memory.
pub const FILE: u64 = 1 << 30;
/// Entries of the symbol tables. The tables of a program linked from a hundred million lines have one to two million.
pub const SYMBOLS: usize = 4 << 20;
/// Bytes of symbol names, each counted as often as a symbol has it: many symbols may share one name.
pub const NAMES: usize = 512 << 20;
/// Bytes of one name. C++ templates make names of tens of thousands.
pub const NAME: usize = 1 << 20;
/// Sections, segments and notes. A program has tens; the kernel starts none with more than 1170 segments.
pub const SECTIONS: usize = 1 << 16;
pub const SEGMENTS: usize = 1 << 12;
pub const NOTES: usize = 1 << 10;
/// Relocations that are searched for variables. A browser that is not stripped has a million.
pub const RELOCATIONS: usize = 16 << 20;
/// Bytes that are read for the symbols of a file, and bytes that are read of one that has functions to probe.
pub const TABLES: usize = 384 << 20;
pub const CONTENT: usize = 512 << 20;
/// Symbols that are kept while a file is read, and bytes of their names.
pub const KEPT: usize = 1 << 20;
pub const KEPT_NAMES: usize = 128 << 20;
/// Of them, those with a name that the catalog has. All libraries in one static program come to some thousands; a phase
/// that is a C++ template can have thousands of instances.
pub const WANTED: usize = 1 << 13;
/// Functions in the table that stack unwinders use.
pub const FUNCTIONS: usize = 1 << 20;
/// Bytes of machine code that are decoded to find where a file's functions can be probed. Those of MPI and HDF5
/// together have less than one million.
pub const CODE: u64 = 32 << 20;
/// For one file, from its first byte to its symbols: what no bound above foresees. Those named above take half a
/// second.
pub const TIME: Duration = Duration::from_secs(10);

/// How a bound is named.
pub fn more_than(number: usize, of: &str) -> String {
    format!("more than {number} {of}")
}
