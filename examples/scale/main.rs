//! Writes the datasets of a job of many nodes, made of one recorded run: `cargo run --release --example scale FROM
//! TREE` with `--nodes` and what else `--help` shows. Prints what their calls come to, as JSON.

mod copied;
mod generate;
mod id_ranges;
mod node;
mod recorded;
mod sums;

use anyhow::Result;
use clap::Parser;
use std::path::PathBuf;

#[derive(Parser)]
#[command(about)]
struct Cli {
    /// A recorded dataset of ranks
    from: PathBuf,
    /// A new directory
    tree: PathBuf,
    #[arg(long, default_value_t = 1)]
    nodes: u32,
    /// Of each node
    #[arg(long, default_value_t = 64)]
    ranks: u32,
    /// Calls of each node, about
    #[arg(long, default_value_t = 500_000)]
    spans: u64,
    /// How long the job runs
    #[arg(long, default_value_t = 3600)]
    seconds: u64,
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Nodes whose calls are made; others have the calls of these in other ranks, which takes a tenth of the time
    #[arg(long, default_value_t = 50)]
    different: u32,
}

fn main() -> Result<()> {
    let Cli { from, tree, nodes, ranks, spans, seconds, seed, different } = Cli::parse();
    let job = node::Job { nodes, ranks, spans, seconds, seed, different };
    let sums = generate::generate(&from, job, &tree)?;
    println!("{}", sums.json());
    Ok(())
}
