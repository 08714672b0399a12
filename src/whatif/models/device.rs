//! `--device NAME=2x`: what calls waited for a device takes half as long.

use anyhow::Result;

use super::{critical, length, of_parts};
use crate::analysis::findings::groups::group::{DEVICE, DEVQUEUE, FLUSH, JOURNAL, SLEEP, THROTTLE, WRITEBACK};
use crate::analysis::findings::split::Portion;
use crate::vocabulary::{Kind, Layer};
use crate::whatif::condition::Faster;
use crate::whatif::devices::Devices;
use crate::whatif::model::{Bounds, Change, Recorded, seconds};

/// Waits in which requests of others, and of other devices, may have been as well.
const POSSIBLE: [usize; 5] = [DEVQUEUE, WRITEBACK, JOURNAL, FLUSH, THROTTLE];
/// The part of the time of calls from which on a limit held their requests back, as the rule `device-limit` has it.
const HELD_BACK: f64 = 0.5;

/// Calls whose data comes from a device, or goes there, before they return.
fn is_from_device(portion: &Portion<'_>) -> bool {
    let (group, key) = (portion.group, &portion.group.key);
    let read = key.kind == Kind::Read && group.miss.saturating_add(group.ahead) > 0;
    let direct = key.direct && matches!(key.kind, Kind::Read | Kind::Write);
    key.layer == Layer::Syscall && (read || direct)
}

/// Calls that wait until data is on a device.
fn is_flush(portion: &Portion<'_>) -> bool {
    let key = &portion.group.key;
    key.layer == Layer::Syscall && (key.kind == Kind::Sync || key.synced)
}

/// They slept for longer than their requests were in the device: something held these back, to which the device is as slow
/// as that.
fn is_held_back(portion: &Portion<'_>) -> bool {
    is_from_device(portion) && of_parts(portion, &[SLEEP, DEVQUEUE]) >= HELD_BACK * seconds(portion)
}

/// The parts that scale for certain, and possibly.
type Both = (Vec<usize>, Vec<usize>);

fn parts(portion: &Portion<'_>) -> Both {
    let (mut certain, mut possible) = (vec![DEVICE], POSSIBLE.to_vec());
    if is_held_back(portion) {
        certain.extend([SLEEP, DEVQUEUE]);
        possible.retain(|part| *part != DEVQUEUE);
    } else if is_from_device(portion) || is_flush(portion) {
        // For pages that another thread reads, or the thread of the journal.
        possible.push(SLEEP);
    }
    (certain, possible)
}

/// Is it on this device? Not known of calls that are about no file, or many.
fn is_on(portion: &Portion<'_>, faster: &Faster, devices: &Devices) -> Option<bool> {
    let group = portion.group;
    let file = if group.mixed { None } else { group.key.file.or(group.file.value) };
    devices.has(faster.name.as_deref(), file)
}

pub fn model<'a>(
    faster: &'a Faster,
    recorded: &Recorded<'_>,
    devices: &'a Devices,
) -> Result<(String, Change<'a>, f64)> {
    if let Some(name) = &faster.name {
        devices.check(name)?;
    }
    let times = 1.0 / faster.factor;
    let change = move |portion: &Portion<'_>, bounds: &mut Bounds| {
        let Some(known) = is_on(portion, faster, devices).map_or(Some(false), |on| on.then_some(true)) else {
            return false;
        };
        let (certain, possible) = parts(portion);
        let waited = |part: &usize| bounds.high[*part] > 0.0;
        let touched = certain.iter().chain(&possible).any(waited);
        let maybe = (times.min(1.0), times.max(1.0));
        let by = if known { (times, times) } else { maybe };
        for (part, by) in certain.iter().map(|part| (part, by)).chain(possible.iter().map(|part| (part, maybe))) {
            bounds.scale(*part, by);
        }
        touched
    };
    // What was read ahead or written back beside the program is then no longer hidden.
    let busy_s = devices.busy_s(faster.name.as_deref());
    let at_most_s = if faster.factor < 1.0 { busy_s * times } else { 0.0 };
    Ok((description(faster, recorded, devices, busy_s), Box::new(change), at_most_s))
}

fn description(faster: &Faster, recorded: &Recorded<'_>, devices: &Devices, busy_s: f64) -> String {
    let of = |wanted: Option<bool>, which: fn(Both) -> Vec<usize>| {
        critical(recorded, |portion| {
            if is_on(portion, faster, devices) == wanted { of_parts(portion, &which(parts(portion))) } else { 0.0 }
        })
    };
    let (certain, possible) = (of(Some(true), |parts| parts.0), of(Some(true), |parts| parts.1));
    let unknown = of(None, |parts| [parts.0, parts.1].concat());
    let held =
        critical(recorded, |portion| if is_held_back(portion) { of_parts(portion, &[SLEEP, DEVQUEUE]) } else { 0.0 });
    let mut text = format!(
        "calls waited {} for requests in the device, which scale, and {} in its queue, for write-back, the journal and flushes, \
         and otherwise asleep in reads and flushes, which may",
        length(certain),
        length(possible)
    );
    if held > 0.0 {
        text += &format!("; of the first, requests were held back {} before the device, by a limit", length(held));
    }
    if unknown > 0.0 {
        text += &format!("; {} of calls whose device is not known may", length(unknown));
    }
    if faster.factor < 1.0 {
        text += &format!("; at most as long as the device, which was busy for {}, is then", length(busy_s));
    }
    text
}
