//! Writes a large dataset, for measurements: `cargo run --release --example large -- CALLS COPIES OUT [FROM]`.
//! It has the calls of a recorded run (`FROM`; else the fixture of a parallel HDF5 program), again and again and in copies
//! side by side.

mod repeat;

use anyhow::{Context as _, Result};
use std::path::{Path, PathBuf};
use std::time::Instant;

fn main() -> Result<()> {
    let mut args = std::env::args().skip(1);
    let calls: u64 = args.next().context("how many calls?")?.parse().context("the number of calls")?;
    let copies: i32 = args.next().context("how many copies of the run side by side?")?.parse().context("the copies")?;
    let to = PathBuf::from(args.next().context("into which directory?")?);
    let fixture = || Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/mpi_hdf5");
    let from = args.next().map_or_else(fixture, PathBuf::from);
    let begun = Instant::now();
    repeat::repeat(&from, calls, copies, &to)?;
    println!("{} written in {:.1} s", to.display(), begun.elapsed().as_secs_f64());
    Ok(())
}
