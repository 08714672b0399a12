//! Options of `whatif`.

use std::path::PathBuf;

use clap::Args;

use crate::whatif::condition::{Cache, Condition, Faster, conditions};

#[derive(Debug, Args)]
pub struct WhatifArgs {
    /// The dataset, or a directory with those of several nodes or periods
    pub dir: PathBuf,
    /// A device is so many times as fast: sda=2x, all=0.5x (may be repeated)
    #[arg(long, value_name = "NAME=FACTORx", value_parser = Faster::parse)]
    device: Vec<Faster>,
    /// So many ranks write what all ranks write
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    ranks_writing: Option<u32>,
    /// Nothing waits until data is on a device: no fsync, msync, `MPI_File_sync`, `H5Fflush`, `O_SYNC`
    #[arg(long, value_name = "off", value_parser = ["off"], hide_possible_values = true)]
    sync: Option<String>,
    /// Each read comes from the device (0), or is in the page cache (all)
    #[arg(long, value_name = "0|all", value_parser = Cache::parse)]
    cache: Option<Cache>,
    /// Machine-readable
    #[arg(long)]
    pub json: bool,
}

impl WhatifArgs {
    /// What is to have been different.
    ///
    /// # Errors
    /// When nothing is, or options do not go together.
    pub fn conditions(&self) -> Result<Vec<Condition>, String> {
        conditions(self.ranks_writing.map(|ranks| ranks as usize), self.cache, self.sync.is_some(), &self.device)
    }
}
