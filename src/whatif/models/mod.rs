//! One model for each condition: which parts of calls it changes, and by how much at least and at most.

mod cache;
mod device;
mod ranks;
mod sync;

use anyhow::Result;

use crate::analysis::findings::groups::group::Group;
use crate::analysis::findings::split::{Portion, Split};
use crate::base::text::time;
use crate::vocabulary::{Kind, Layer};
use crate::whatif::after::Slept;
use crate::whatif::condition::{Cache, Condition};
use crate::whatif::costs::Costs;
use crate::whatif::devices::Devices;
use crate::whatif::model::{Model, Recorded};

/// What models rest on.
#[derive(Clone, Copy)]
pub struct ModelInputs<'a> {
    pub split: &'a Split,
    pub costs: &'a Costs,
    pub devices: &'a Devices,
}

/// The model of a condition.
///
/// # Errors
/// When the trace has not what it rests on.
pub fn of<'a>(condition: &'a Condition, recorded: &Recorded<'_>, inputs: &ModelInputs<'a>) -> Result<Model<'a>> {
    let (description, change, at_most_s) = match condition {
        Condition::RanksWriting(ranks) => ranks::model(*ranks, recorded, inputs.split)?,
        Condition::Cache(cache) => cache::model(*cache, recorded, inputs.costs)?,
        Condition::SyncOff => sync::model(recorded, inputs),
        Condition::Device(faster) => device::model(faster, recorded, inputs.devices)?,
    };
    let (besides, besides_s) = match condition {
        Condition::SyncOff => (AFTER, after(Slept::Flush, recorded, inputs)),
        Condition::Cache(Cache::Everything) => (AFTER, after(Slept::Read, recorded, inputs)),
        Condition::RanksWriting(ranks) => {
            ("to gather their data takes", ranks::gathering_s(*ranks, recorded, inputs.split))
        }
        _ => ("", 0.0),
    };
    let description = match besides_s {
        0.0 => description,
        _ => format!("{description}; {besides} at best {} less", length(besides_s)),
    };
    Ok(Model { condition: condition.to_string(), description, change, besides_s, at_most_s })
}

const AFTER: &str = "what comes after these sleeps takes";

/// In the critical lane.
fn after(slept: Slept, recorded: &Recorded<'_>, inputs: &ModelInputs<'_>) -> f64 {
    let lane = recorded.lanes.first().into_iter();
    let processes = lane.flat_map(|lane| &lane.portions).map(|portion| portion.group.key.process).collect();
    inputs.costs.after.shorter(slept, &processes)
}

/// A system call of a kind that did not fail.
fn is(group: &Group, kind: Kind) -> bool {
    group.key.layer == Layer::Syscall && group.key.kind == kind && group.key.errno == 0
}

/// Seconds of some parts.
fn of_parts(portion: &Portion<'_>, parts: &[usize]) -> f64 {
    parts.iter().map(|part| portion.parts[*part]).sum()
}

/// Sums a figure up over the critical lane.
fn critical(recorded: &Recorded<'_>, of: impl Fn(&Portion<'_>) -> f64) -> f64 {
    recorded.lanes.first().map_or(0.0, |lane| lane.portions.iter().map(of).sum())
}

fn length(seconds: f64) -> String {
    time((seconds * 1e9) as i64)
}
