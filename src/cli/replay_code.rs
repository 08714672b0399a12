//! Options of `replay-code`.

use std::path::PathBuf;

use clap::Args;
use glob::Pattern;

use crate::replay_code::{Advise, Language, Wish, layer};
use crate::vocabulary::Layer;

#[derive(Debug, Args)]
pub struct ReplayCodeArgs {
    /// The dataset, or a directory with those of several nodes or periods; or a description (FILE.toml)
    pub dir: PathBuf,
    /// A new directory for the source, a Makefile and a README
    #[arg(short, long, value_name = "DIR")]
    output: PathBuf,
    /// The interface that the program uses: netcdf, pnetcdf, hdf5, mpiio, posix [default: the highest that the trace has]
    #[arg(long, value_name = "NAME", value_parser = layer)]
    layer: Option<Layer>,
    /// The language of the program; Fortran with hdf5 and pnetcdf only
    #[arg(long, value_enum, default_value_t)]
    language: Language,
    /// Only files whose path fits this pattern of a shell (may be repeated) [default: all outside of system directories]
    #[arg(long = "file", value_name = "PATTERN")]
    files: Vec<Pattern>,
    /// Wait between calls as long as the program did, on average
    #[arg(long)]
    keep_time: bool,
    /// Make the fixed variant: change what findings of the report advise to change
    #[arg(long)]
    advise: bool,
    /// So many calls of a rank may be in no loop
    #[arg(long, value_name = "CALLS", default_value_t = 100_000)]
    limit: usize,
}

impl ReplayCodeArgs {
    pub fn wish(&self) -> Wish<'_> {
        Wish {
            language: self.language,
            layer: self.layer,
            files: &self.files,
            keep_time: self.keep_time,
            advise: if self.advise { Advise::All } else { Advise::Nothing },
            limit: self.limit,
            output: &self.output,
        }
    }
}
