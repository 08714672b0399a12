//! `--sync off`: nothing waits until data is on a device.

use std::collections::{BTreeMap, BTreeSet};

use super::{ModelInputs, critical, is, length};
use crate::analysis::findings::groups::group::{CPU, FLUSH, Group, IN_CALLS, JOURNAL, RUNQ, WRITEBACK};
use crate::analysis::findings::split::{Portion, USUAL};
use crate::vocabulary::{Kind, Layer};
use crate::whatif::costs::Costs;
use crate::whatif::model::{Bounds, Change, Recorded, seconds};

/// What writes wait for because others flush.
const OF_FLUSHES: [usize; 3] = [WRITEBACK, JOURNAL, FLUSH];

/// Flushes of a trace.
struct Flushes {
    /// Functions of libraries that flush. Those of stdio fill the page cache, which is no flush.
    functions: BTreeSet<(Layer, &'static str)>,
    /// Files of processes that are flushed.
    files: BTreeSet<(i32, i32)>,
}

impl Flushes {
    fn of(recorded: &Recorded<'_>) -> Self {
        let (mut functions, mut files) = (BTreeSet::new(), BTreeSet::new());
        for portion in recorded.portions().filter(|portion| portion.group.key.kind == Kind::Sync) {
            let key = &portion.group.key;
            if key.layer < Layer::Syscall && key.layer != Layer::Stdio {
                functions.insert((key.layer, key.op));
            }
            files.extend(key.file.map(|file| (key.process, file)));
        }
        Self { functions, files }
    }
}

/// What a call is to a flush.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Role {
    Flush,
    /// With `O_SYNC` or `O_DSYNC`.
    Synced,
    SyncedDirect,
    /// Part of a function of a library that flushes, or that itself.
    Inside,
    /// Removes or cuts files that were flushed.
    Freeing,
    /// Writes to a file that is flushed.
    Beside,
}

fn role(group: &Group, flushes: &Flushes, costs: &Costs) -> Option<Role> {
    let key = &group.key;
    let write = key.layer == Layer::Syscall && key.kind == Kind::Write;
    let flushed = key.file.is_some_and(|file| flushes.files.contains(&(key.process, file)));
    match key.kind {
        Kind::Sync if key.layer == Layer::Syscall => Some(Role::Flush),
        _ if write && key.synced && key.direct => Some(Role::SyncedDirect),
        _ if write && key.synced => Some(Role::Synced),
        _ if flushes.functions.contains(&key.called) => Some(Role::Inside),
        _ if key.layer == Layer::Syscall && costs.freed(key.op) > 0.0 => Some(Role::Freeing),
        _ if write && flushed => Some(Role::Beside),
        _ => None,
    }
}

/// Seconds of the writes of a portion if they went to the page cache, at best and mostly, where that is known.
fn buffered(portion: &Portion<'_>, costs: &Costs) -> (Option<f64>, Option<f64>) {
    let group = portion.group;
    let size = group.bytes as f64 / group.calls.max(1) as f64;
    let all = |one: f64| one * group.calls as f64 * portion.scale;
    (costs.writes.cheapest(size).map(all), costs.writes.usual(size).map(all))
}

/// Seconds of a copy of what was written.
fn copied(portion: &Portion<'_>) -> f64 {
    portion.group.bytes as f64 / USUAL.1 * portion.scale
}

/// The least that buffered writes take: as fast as memory is, where it is not known.
fn least(portion: &Portion<'_>, costs: &Costs) -> f64 {
    buffered(portion, costs).0.unwrap_or_else(|| copied(portion))
}

/// All but what was on a CPU, or waited for one.
fn waits() -> Vec<usize> {
    IN_CALLS.iter().copied().filter(|part| *part != CPU && *part != RUNQ).collect()
}

fn changed(role: Role, portion: &Portion<'_>, bounds: &mut Bounds, inputs: &ModelInputs<'_>) {
    let (split, costs) = (inputs.split, inputs.costs);
    match role {
        // The kernel writes the data later, beside the program.
        Role::Flush => bounds.remove(&IN_CALLS, true),
        Role::Synced => {
            bounds.remove(&waits(), true);
            let most = buffered(portion, costs).1.map(|most| most + copied(portion));
            bounds.limit_cpu((least(portion, costs), most));
        }
        Role::SyncedDirect => bounds.remove(&OF_FLUSHES, true),
        Role::Inside if is(portion.group, Kind::Write) => {
            // The data is written once, at some time, in large pieces.
            let least = split.transfer(Kind::Write, portion.group.bytes).0 * portion.scale;
            let times = (least / seconds(portion).max(1e-9)).min(1.0);
            for part in IN_CALLS {
                bounds.scale(part, (times, 1.0));
            }
        }
        Role::Inside => bounds.remove(&IN_CALLS, false),
        // Those that waited for a CPU have slept before. The file may be older than the run, or than what is kept in memory, and
        // have blocks all the same.
        Role::Freeing => {
            let left = 1.0 - costs.freed(portion.group.key.op);
            for part in waits().into_iter().chain([RUNQ]) {
                bounds.scale(part, (left, 1.0));
            }
        }
        Role::Beside => {
            bounds.remove(&OF_FLUSHES, false);
        }
    }
}

pub fn model<'a>(recorded: &Recorded<'_>, inputs: &ModelInputs<'a>) -> (String, Change<'a>, f64) {
    let flushes = Flushes::of(recorded);
    let description = description(recorded, &flushes, inputs.costs);
    let inputs = *inputs;
    let change = move |portion: &Portion<'_>, bounds: &mut Bounds| {
        let role = role(portion.group, &flushes, inputs.costs);
        if let Some(role) = role {
            changed(role, portion, bounds, &inputs);
        }
        role.is_some()
    };
    (description, Box::new(change), 0.0)
}

fn description(recorded: &Recorded<'_>, flushes: &Flushes, costs: &Costs) -> String {
    let mut sums = BTreeMap::<Role, (i64, f64)>::new();
    let portions = recorded.lanes.first().map_or(&[][..], |lane| lane.portions.as_slice());
    for portion in portions {
        if let Some(role) = role(portion.group, flushes, costs) {
            let (calls, all) = sums.entry(role).or_default();
            *calls = calls.saturating_add(portion.group.calls);
            *all += seconds(portion);
        }
    }
    let of = |wanted: Role, figure: &dyn Fn(&Portion<'_>) -> f64| {
        let is_wanted = |portion: &Portion<'_>| role(portion.group, flushes, costs) == Some(wanted);
        length(critical(recorded, |portion| if is_wanted(portion) { figure(portion) } else { 0.0 }))
    };
    let mut parts = Vec::new();
    for (role, (calls, all)) in sums {
        let all = length(all);
        parts.push(match role {
            Role::Flush => {
                format!("{calls} flushes took {all} and are not made: the kernel writes the data later, beside the program")
            }
            Role::Synced => {
                let known = if costs.writes.is_empty() { "memory can" } else { "the cheapest tenth of other writes do" };
                format!(
                    "{calls} writes with O_SYNC or O_DSYNC took {all} and cost what writes to the page cache do: {} as {known}, at \
                     most what they were on a CPU or waited for one",
                    of(Role::Synced, &|portion| least(portion, costs))
                )
            }
            Role::SyncedDirect => format!("{calls} direct writes with O_SYNC or O_DSYNC took {all}, and wait for no flush"),
            Role::Inside => format!(
                "{calls} functions of libraries that flush, and calls in them, took {all}: at best their data is written in large \
                 pieces some time, at worst they take as long elsewhere"
            ),
            Role::Freeing => {
                format!("{calls} calls that remove or cut files took {all}, and at best do not wait for files that were flushed: without that they have no blocks yet")
            }
            Role::Beside => format!("{calls} writes to the same files took {all}, and may wait for no write-back and journal"),
        });
    }
    if parts.is_empty() { "no call waits until data is on a device".to_owned() } else { parts.join("; ") }
}
