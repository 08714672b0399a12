//! Rust's standard library: `std_io DIR LINES`. Buffered and plain writes, reads, seeks, a rename and a removal, in the
//! main thread and in another.

use std::fs::{self, File, OpenOptions};
use std::io::{BufRead, BufReader, BufWriter, Read, Result, Seek, SeekFrom, Write};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

fn text(path: &Path, lines: usize) -> Result<()> {
    let mut out = BufWriter::with_capacity(1000, File::create(path)?);
    for i in 0..lines {
        writeln!(out, "line {i}")?;
    }
    out.into_inner()?.sync_all()?;
    let read = BufReader::new(File::open(path)?).lines().collect::<Result<Vec<_>>>()?;
    assert_eq!(read.len(), lines);
    Ok(())
}

fn blocks(path: &Path) -> Result<()> {
    let mut file = OpenOptions::new().read(true).write(true).create(true).truncate(true).open(path)?;
    for i in 0..10 {
        file.write_all_at(&[i; 512], u64::from(i) * 4096)?;
    }
    file.seek(SeekFrom::Start(4096))?;
    let mut block = [0; 512];
    file.read_exact(&mut block)?;
    assert_eq!(block, [1; 512]);
    file.set_len(100)?;
    drop(file);
    let renamed = path.with_extension("renamed");
    fs::rename(path, &renamed)?;
    fs::remove_file(renamed)
}

fn main() -> Result<()> {
    let mut args = std::env::args().skip(1);
    let (Some(dir), Some(lines)) = (args.next().map(PathBuf::from), args.next()) else { std::process::exit(2) };
    let lines = lines.parse().expect("a number");
    let other = dir.join("thread.blocks");
    let thread = std::thread::spawn(move || blocks(&other));
    text(&dir.join("text"), lines)?;
    thread.join().expect("the other thread")?;
    assert!(File::open(dir.join("missing")).is_err());
    Ok(())
}
