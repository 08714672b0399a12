//! `--cache 0` and `--cache all`: each read comes from the device, or is in the page cache.

use anyhow::{Result, bail, ensure};

use super::{critical, is, length};
use crate::analysis::findings::groups::group::{DEVICE, DEVQUEUE, Group};
use crate::analysis::findings::split::Portion;
use crate::base::text::bytes;
use crate::vocabulary::Kind;
use crate::whatif::condition::Cache;
use crate::whatif::costs::{Costs, READING};
use crate::whatif::model::{Bounds, Change, Recorded, seconds};

const PAGE: f64 = 4096.0;

fn is_read(group: &Group) -> bool {
    is(group, Kind::Read) && !group.key.direct
}

pub fn model<'a>(cache: Cache, recorded: &Recorded<'_>, costs: &'a Costs) -> Result<(String, Change<'a>, f64)> {
    ensure!(costs.reads > 0, "no read of the trace goes through the page cache");
    if costs.unknown == costs.reads {
        bail!(
            "the trace has not what reads found in the page cache: record with the hooks that count it, which \
             `iotrace-bpf doctor` names"
        );
    }
    Ok(match cache {
        Cache::Everything => {
            ensure!(
                !costs.hits.is_empty(),
                "no read of the trace found its data in the page cache, so what that costs is not known: trace a run that \
                 reads something twice"
            );
            (all_description(recorded, costs), Box::new(move |portion, bounds| all(portion, bounds, costs)), 0.0)
        }
        Cache::Nothing => {
            ensure!(
                costs.has_misses(),
                "no read of the trace came from a device, so what that costs is not known: trace a run that reads something \
                 that is not in the page cache"
            );
            (none_description(recorded, costs), Box::new(move |portion, bounds| none(portion, bounds, costs)), 0.0)
        }
    })
}

/// Reads of which some came from a device.
fn missed(portion: &Portion<'_>) -> bool {
    let group = portion.group;
    let waited = portion.parts[DEVICE] + portion.parts[DEVQUEUE] > 0.0;
    is_read(group) && (group.miss.saturating_add(group.ahead) > 0 || waited)
}

/// What reads cost at best that are in the page cache, and mostly, if that is known.
fn as_hits(portion: &Portion<'_>, costs: &Costs) -> (f64, Option<f64>) {
    let group = portion.group;
    let size = group.bytes as f64 / group.calls.max(1) as f64;
    let all = |one: f64| one * group.calls as f64 * portion.scale;
    (costs.hits.cheapest(size).map_or(0.0, all), costs.hits.usual(size).map(all))
}

fn all(portion: &Portion<'_>, bounds: &mut Bounds, costs: &Costs) -> bool {
    if missed(portion) {
        bounds.remove(&READING, true);
        bounds.limit_cpu(as_hits(portion, costs));
        return true;
    }
    // A write of a part of a page reads the rest of it first.
    let key = &portion.group.key;
    let reads = is(portion.group, Kind::Write) && !key.direct && !key.synced;
    let waited = reads && bounds.high[DEVICE] + bounds.high[DEVQUEUE] > 0.0;
    if waited {
        bounds.remove(&[DEVICE, DEVQUEUE], false);
    }
    waited
}

fn all_description(recorded: &Recorded<'_>, costs: &Costs) -> String {
    let of = |figure: &dyn Fn(&Portion<'_>) -> f64| {
        critical(recorded, |portion| if missed(portion) { figure(portion) } else { 0.0 })
    };
    let calls = of(&|portion| portion.group.calls as f64);
    let slept = of(&|portion| READING.iter().map(|part| portion.parts[*part]).sum());
    format!(
        "{calls:.0} reads of files of which some came from a device took {}, {} of that asleep for it: without that, as long as \
         the cheapest tenth of reads of that size that were in the page cache, {}, or as the middle one of them",
        length(of(&|portion| seconds(portion))),
        length(slept),
        length(of(&|portion| as_hits(portion, costs).0))
    )
}

/// Bytes of reads that were in the page cache, in how many calls, and whether those are in the order of the file.
fn found(portion: &Portion<'_>) -> Option<(f64, f64, bool)> {
    let group = portion.group;
    let brought = group.miss.saturating_add(group.ahead);
    let hit = group.bytes.saturating_sub(brought);
    if !is_read(group) || hit <= 0 {
        return None;
    }
    let calls = group.calls as f64 * hit as f64 / group.bytes as f64;
    let consecutive = group.consecutive.saturating_mul(2) >= group.calls;
    // A device is read by the page.
    let bytes = if consecutive { hit as f64 } else { (hit as f64).max(calls * PAGE) };
    Some((bytes, calls, consecutive))
}

/// By how much reads take longer that come from a device.
fn longer(portion: &Portion<'_>, costs: &Costs) -> Option<(f64, f64)> {
    let (bytes, calls, consecutive) = found(portion)?;
    let (low, high) = costs.reading(consecutive, bytes, calls)?;
    Some((low * portion.scale, high * portion.scale))
}

/// The time is that of the device: a faster one has an effect on it.
fn none(portion: &Portion<'_>, bounds: &mut Bounds, costs: &Costs) -> bool {
    let Some((low, high)) = longer(portion, costs) else { return false };
    bounds.low[DEVICE] += low;
    bounds.high[DEVICE] += high;
    true
}

fn none_description(recorded: &Recorded<'_>, costs: &Costs) -> String {
    let sum = |of: &dyn Fn(&Portion<'_>) -> f64| critical(recorded, of);
    let calls = sum(&|portion| found(portion).map_or(0.0, |(_, calls, _)| calls));
    let all = sum(&|portion| found(portion).map_or(0.0, |(bytes, ..)| bytes));
    let low = sum(&|portion| longer(portion, costs).map_or(0.0, |(low, _)| low));
    let high = sum(&|portion| longer(portion, costs).map_or(0.0, |(_, high)| high));
    format!(
        "{} in {calls:.0} reads were in the page cache: {} to {} longer when they come from a device, at what that cost where \
         reads in the same order missed",
        bytes(all as i64),
        length(low),
        length(high)
    )
}
