//! The options of `top`.

use std::time::Duration;

use clap::Args;

use crate::cli::values::tick;
use crate::cluster::target::{self, Target};

/// Which nodes are shown, and how.
#[derive(Debug, Clone, Args)]
pub struct TopArgs {
    /// Where a tracer serves its metrics (--metrics): HOST:PORT or http://HOST:PORT/metrics
    #[arg(required = true, value_name = "NODE", value_delimiter = ',', value_parser = target::parse)]
    pub nodes: Vec<Target>,
    /// Time between two requests to a node: 500ms, 2s
    #[arg(short, long, value_name = "TIME", default_value = "2s", value_parser = tick)]
    pub delay: Duration,
    /// Write figures as lines again and again, and no dashboard
    #[arg(long)]
    pub batch: bool,
    /// End after this many ticks of --batch
    #[arg(short = 'n', long, value_name = "N", requires = "batch", value_parser = clap::value_parser!(u64).range(1..))]
    pub ticks: Option<u64>,
    /// One JSON object for each tick of --batch
    #[arg(long, requires = "batch")]
    pub json: bool,
}
