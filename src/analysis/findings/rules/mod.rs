//! All rules, the most specific first: that is the order in which they claim time.

mod data;
mod devices;
mod kernel;
mod libraries;
mod metadata;
mod parallel;
mod shared;
mod stdio;

use crate::analysis::findings::case::{Case, Found};
use crate::analysis::findings::groups::group::{Group, LIBRARY};
use crate::base::text::time;
use crate::vocabulary::{Kind, Layer};

/// A number that a condition compares with; `--rules FILE` can change it.
#[derive(Debug, Clone, Copy)]
pub struct Threshold {
    pub name: &'static str,
    pub value: f64,
    pub about: &'static str,
}

/// What a finding is about: its condition in words, the layers it needs, and the function that looks for it.
pub struct Rule {
    pub id: &'static str,
    /// The cause.
    pub about: &'static str,
    pub advice: &'static str,
    /// Where the condition is from.
    pub source: &'static str,
    /// Layers without which it cannot be decided.
    pub needs: &'static [Layer],
    /// Can be decided by sums alone (`--aggregate`).
    pub sums: bool,
    /// Is about devices and processes, whose numbers are those of one node.
    pub one_node: bool,
    pub thresholds: &'static [Threshold],
    pub sql: &'static str,
    pub find: fn(&mut Case) -> Vec<Found>,
}

const fn at_least(name: &'static str, value: f64, about: &'static str) -> Threshold {
    Threshold { name, value, about }
}

/// What one of so many calls takes.
fn each(seconds: f64, calls: i64) -> String {
    time((seconds * 1e9 / calls.max(1) as f64) as i64)
}

fn is_transfer(kind: Kind) -> bool {
    matches!(kind, Kind::Read | Kind::Write)
}

/// Is it the call that the program made itself?
fn own(group: &Group) -> bool {
    group.key.called == (group.key.layer, group.key.op)
}

/// Seconds that the messages of a collective call take here: those of opening a file do, which is collective, too. Where
/// there are fewer CPUs than ranks, that is most of its time.
fn exchange(case: &Case) -> f64 {
    const OPENS: [&str; 7] =
        ["MPI_File_open", "ncmpi_open", "ncmpi_create", "nc_open_par", "nc_create_par", "H5Fopen", "H5Fcreate"];
    let inside = case.pick(|group| OPENS.contains(&group.key.called.1));
    let files = case.calls(&only(case, &inside, own)).max(1);
    case.seconds(&inside, &[LIBRARY]) / files as f64
}

fn only(case: &Case, picked: &[usize], wanted: impl Fn(&Group) -> bool) -> Vec<usize> {
    picked.iter().copied().filter(|at| wanted(case.group(*at))).collect()
}

/// Rules that ask whose bytes of requests are.
pub const OF_BYTES: [&str; 3] =
    [kernel::DIRTY_THROTTLING.id, devices::OWN_WRITE_BACK.id, devices::WRITE_AMPLIFICATION.id];

pub const RULES: &[Rule] = &[
    kernel::ERRORS,
    kernel::STUCK,
    devices::DIRECT_MISALIGNED,
    shared::CONFLICTING_RANKS,
    kernel::SWAP,
    kernel::READAHEAD_WASTE,
    kernel::COPY_UP,
    libraries::HEADER_GROWTH,
    libraries::FILL_VALUES,
    libraries::BLOCKING_PUTS,
    libraries::HDF5_CHUNK_CACHE,
    libraries::HDF5_METADATA,
    libraries::ELEMENT_AT_A_TIME,
    parallel::COLLECTIVE_BROKEN,
    parallel::DATA_SIEVING,
    shared::MISALIGNED_SHARED,
    parallel::INDEPENDENT_STRIDED,
    parallel::NONBLOCKING_BLOCKS,
    parallel::ONE_WRITER,
    parallel::COLLECTIVE_WAIT,
    kernel::CPU_WAIT,
    kernel::RETRIES,
    kernel::DIRTY_THROTTLING,
    kernel::INTERFERENCE,
    devices::OWN_WRITE_BACK,
    data::SYNC_WRITES,
    data::SYNC_PER_RECORD,
    kernel::DEVICE_LIMIT,
    data::DIRECT_DEPTH_ONE,
    data::PARTIAL_PAGE_OVERWRITE,
    devices::WRITE_AMPLIFICATION,
    data::REREAD,
    data::RANDOM_READS,
    data::READAHEAD_SMALL,
    data::STDIO_FLUSH,
    stdio::STDIO_TURNS,
    stdio::STDIO_BULK,
    shared::FILE_PER_PROCESS,
    metadata::FAILED_LOOKUPS,
    metadata::METADATA_STORM,
    data::SMALL_TRANSFERS,
    kernel::LOCK_WAIT,
    parallel::RANK_IMBALANCE,
    libraries::LAYER_OVERHEAD,
    devices::NOT_OVERLAPPED,
];
