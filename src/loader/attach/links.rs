//! Sets the probes of one file: as links of many, or one by one.

use crate::loader::code::plan::PlannedProbe;
use crate::loader::code::returns::ExitPoint;
use crate::loader::kernel::LibTier;
use crate::skel::IotraceProgs;
use crate::skel::types::iot_cookie;
use libbpf_rs::{Link, UprobeMultiOpts, UprobeOpts};
use std::collections::BTreeMap;
use std::path::Path;

/// Every process, for the kernel.
pub const ALL: i32 = -1;

/// The breakpoints of a probe, each with its cookie: the entry, and the exit points of a function without return probe.
fn breakpoints(probe: &PlannedProbe) -> BTreeMap<u64, u64> {
    if let Some(edges) = &probe.edges {
        return edges.iter().map(|edge| (edge.offset, probe.cookie_at(edge))).collect();
    }
    let whole = probe.cookie();
    let mut points = BTreeMap::from([(probe.offset, whole)]);
    if let Some(exits) = &probe.exit_points {
        *points.entry(probe.offset).or_default() |= 1 << iot_cookie::IOT_COOKIE_NO_RETPROBE.0;
        for exit in exits {
            let (at, bit) = match exit {
                ExitPoint::Return(at) => (at, iot_cookie::IOT_COOKIE_LEAVE),
                ExitPoint::Jump(at) => (at, iot_cookie::IOT_COOKIE_JUMP),
            };
            *points.entry(*at).or_insert(whole) |= 1 << bit.0;
        }
    }
    points
}

/// Those of a probe that is set with many others, as the kernel is to set them: what would leave calls open comes last.
fn points_of(probe: &PlannedProbe) -> Vec<(u64, u64)> {
    let Some(framed) = &probe.framed else { return breakpoints(probe).into_iter().collect() };
    let (entry, exit) = probe.cookies_in_frame(framed);
    framed.exits.iter().map(|at| (*at, exit)).chain([(framed.offset, entry)]).collect()
}

/// Does the kernel probe its return, where it is set with many others?
fn has_return_probe(probe: &PlannedProbe) -> bool {
    probe.exit_points.is_none() && probe.framed.is_none()
}

/// Probes of a file in one process, or in [`ALL`] that map it.
pub fn many(
    progs: &IotraceProgs<'_>,
    path: &Path,
    probes: &[PlannedProbe],
    tier: LibTier,
    pid: i32,
) -> Result<Vec<Link>, String> {
    // libbpf-rs does not compare the lengths of these two; they are equal here by construction.
    let opts = |points: Vec<(u64, u64)>, retprobe, session| UprobeMultiOpts {
        offsets: points.iter().map(|(at, _)| *at as usize).collect(),
        cookies: points.iter().map(|(_, cookie)| *cookie).collect(),
        retprobe,
        session,
        ..Default::default()
    };
    let text = |e: libbpf_rs::Error| format!("{e:#}");
    let points = |with_return: bool| -> Vec<(u64, u64)> {
        probes.iter().filter(|p| has_return_probe(p) == with_return).flat_map(points_of).collect()
    };
    let mut links = Vec::new();
    if tier == LibTier::Session {
        for (points, session) in [(points(true), true), (points(false), false)] {
            // A link of a session makes the kernel probe returns in processes that it is not of, too, whatever its
            // program wants. Where there must be no return probe, it would be one in the middle of a function.
            let prog = if session {
                &progs.iot_uprobe_session
            } else if progs.iot_uprobe_multi.autoload() {
                &progs.iot_uprobe_multi
            } else {
                &progs.iot_uprobe_entry
            };
            if !points.is_empty() {
                let opts = opts(points, false, session);
                links.push(prog.attach_uprobe_multi_with_opts(pid, path, "", opts).map_err(text)?);
            }
        }
        return Ok(links);
    }
    // The return first: an entry without its return would leave its frame open.
    let with_return = probes.iter().filter(|p| has_return_probe(p));
    let returns: Vec<_> = with_return.map(|p| (p.offset, p.cookie())).collect();
    if !returns.is_empty() {
        let opts = opts(returns, true, false);
        links.push(progs.iot_uretprobe_multi.attach_uprobe_multi_with_opts(pid, path, "", opts).map_err(text)?);
    }
    let opts = opts([points(true), points(false)].concat(), false, false);
    links.push(progs.iot_uprobe_multi.attach_uprobe_multi_with_opts(pid, path, "", opts).map_err(text)?);
    Ok(links)
}

/// One probe of a file, in all processes that map it.
pub fn single(progs: &IotraceProgs<'_>, path: &Path, probe: &PlannedProbe) -> Result<Vec<Link>, String> {
    let opts = |cookie, retprobe| UprobeOpts { cookie, retprobe, ..Default::default() };
    let text = |e: libbpf_rs::Error| format!("{e:#}");
    let mut links = Vec::new();
    if probe.exit_points.is_none() {
        let (at, opts) = (probe.offset as usize, opts(probe.cookie(), true));
        links.push(progs.iot_uretprobe.attach_uprobe_with_opts(ALL, path, at, opts).map_err(text)?);
    }
    for (at, cookie) in breakpoints(probe) {
        let opts = opts(cookie, false);
        links.push(progs.iot_uprobe.attach_uprobe_with_opts(ALL, path, at as usize, opts).map_err(text)?);
    }
    Ok(links)
}
