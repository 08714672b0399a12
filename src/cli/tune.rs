//! Options of `tune`.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::Args;

use crate::tune::Wish;

#[derive(Debug, Args)]
pub struct TuneArgs {
    /// A dataset of the command; without it the command is traced first
    #[arg(value_name = "DIR", required_unless_present = "run")]
    dataset: Option<PathBuf>,
    /// Runs of the command as it is, and with each setting
    #[arg(short, long, value_name = "N", default_value_t = 5, value_parser = clap::value_parser!(u16).range(2..))]
    runs: u16,
    /// A line for a shell before each run: 'rm -rf out'
    #[arg(short, long, value_name = "LINE", requires = "run")]
    prepare: Option<OsString>,
    /// Before each run, take the files that it reads out of the page cache
    #[arg(long)]
    cold: bool,
    /// Also try how far the kernel reads ahead of devices; for the time of a run that holds for all programs on the node
    #[arg(long)]
    devices: bool,
    /// The directory for the files of a replay: it is on the file system that is measured
    #[arg(long, value_name = "DIR", default_value = ".", conflicts_with = "run")]
    dir: PathBuf,
    /// Machine-readable, with all times
    #[arg(long)]
    json: bool,
    /// The command; without it a replay of the dataset is run
    #[arg(last = true, value_name = "COMMAND")]
    run: Vec<OsString>,
}

impl TuneArgs {
    /// The wish, for output of that width.
    pub fn wish(&self, width: usize) -> Wish<'_> {
        Wish {
            dataset: self.dataset.as_deref(),
            command: &self.run,
            runs: usize::from(self.runs),
            prepare: self.prepare.as_deref(),
            cold: self.cold,
            devices: self.devices,
            dir: &self.dir,
            json: self.json,
            width,
        }
    }
}
