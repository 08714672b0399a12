//! The datasets of a job, a node at a time on each core.

use anyhow::{Context as _, Result};
use std::collections::BTreeMap;
use std::ops::Range;
use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU32, Ordering};

use super::id_ranges::IdRanges;
use super::node::{self, Job};
use super::recorded::Recorded;
use super::sums::Sums;

/// Writes them into a new tree, made of a recorded run, and returns what their calls come to.
pub fn generate(from: &Path, job: Job, tree: &Path) -> Result<Sums> {
    let run = Recorded::read(from)?;
    let ids = IdRanges::new(&run, job.ranks as i32);
    std::fs::create_dir(tree).with_context(|| format!("cannot make {}", tree.display()))?;
    let own = job.nodes.min(job.different.max(1));
    let sums = each(0..own, |number| node::write((job, number), &run, &ids, tree, None))?;
    each(own..job.nodes, |number| node::write((job, number), &run, &ids, tree, Some(number % own)))?;
    let mut all = Sums::default();
    (0..job.nodes).filter_map(|number| sums.get(&(number % own))).for_each(|sums| all.merge(sums));
    Ok(all)
}

/// Does something for each node, on all cores, and returns what comes of it by node.
fn each<T: Send>(nodes: Range<u32>, work: impl Fn(u32) -> Result<T> + Sync) -> Result<BTreeMap<u32, T>> {
    let (next, all) = (AtomicU32::new(nodes.start), Mutex::new(BTreeMap::new()));
    let turns = || -> Result<()> {
        loop {
            let number = next.fetch_add(1, Ordering::Relaxed);
            if !nodes.contains(&number) {
                return Ok(());
            }
            let done = work(number)?;
            if let Ok(mut all) = all.lock() {
                all.insert(number, done);
            }
        }
    };
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    std::thread::scope(|scope| {
        let threads: Vec<_> = (0..cores).map(|_| scope.spawn(turns)).collect();
        threads.into_iter().try_for_each(|thread| thread.join().unwrap_or_else(|_| anyhow::bail!("a writer panicked")))
    })?;
    all.into_inner().ok().context("a writer panicked")
}
