//! Reads from the kernel what has entered and not returned. It takes a few milliseconds and waits for no other thread: what costs
//! time is made of it by [`crate::loader::stacks::resolve`].

use crate::event::{Event, Request, wire};
use crate::loader::kernel::rings::now;
use crate::skel::IotraceMaps;
use crate::skel::types::{iot_inflight, iot_op, iot_stopped};
use anyhow::{Context as _, Result};
use libbpf_rs::{Iter, Link, MapCore, MapFlags};
use std::collections::HashMap;
use std::io::Read as _;

/// What the kernel side knows of at one moment.
pub struct Look {
    /// Monotonic, ns.
    pub at: u64,
    /// Threads with open calls.
    pub threads: Vec<iot_stopped>,
    /// Requests of `io_uring` and libaio, with the process that submitted each.
    pub operations: Vec<(u32, iot_op)>,
    /// Requests of devices.
    pub requests: Vec<iot_inflight>,
}

/// Runs a program over all threads that writes nothing. Has it seen all of them?
pub fn run(link: &Link) -> bool {
    Iter::new(link).is_ok_and(|mut iter| iter.read_to_end(&mut Vec::new()).is_ok())
}

pub fn look(link: &Link, maps: &IotraceMaps<'_>) -> Result<Look> {
    let mut iter = Iter::new(link).context("asking the kernel what is in flight")?;
    let mut bytes = Vec::new();
    iter.read_to_end(&mut bytes).context("reading what is in flight")?;
    let threads = bytes.chunks_exact(size_of::<iot_stopped>()).filter_map(wire::value).collect();
    let pids: HashMap<u32, u32> = maps.iot_targets.keys().filter_map(|key| target(&maps.iot_targets, &key)).collect();
    let operations = values::<iot_op>(&maps.iot_ops);
    Ok(Look {
        at: now(),
        threads,
        operations: operations.into_iter().filter_map(|op| Some((*pids.get(&op.process)?, op))).collect(),
        requests: requests(maps),
    })
}

/// Requests of devices that are not over.
pub fn requests(maps: &IotraceMaps<'_>) -> Vec<iot_inflight> {
    values(&maps.iot_requests)
}

/// What the dataset has of one that is not over at the end of the trace.
pub fn open(r: &iot_inflight) -> Event {
    Event::Request(Request {
        req: r.req,
        dev: r.dev,
        sector: r.sector,
        bytes: r.bytes,
        cmd_flags: r.cmd_flags,
        status: 0,
        nr_bios: r.nr_bios,
        splits: r.splits,
        pid: r.pid,
        queued: r.queued,
        inserted: (r.inserted != 0).then_some(r.inserted),
        issued: r.issued,
        completed: None,
        unseen: None,
        upper: (r.upper_dev != 0).then_some((r.upper_dev, r.upper_sector)),
    })
}

/// The number of a target's process, and its pid.
fn target(targets: &impl MapCore, key: &[u8]) -> Option<(u32, u32)> {
    let value = targets.lookup(key, MapFlags::ANY).ok()??;
    let number = |bytes: &[u8]| bytes.first_chunk().map(|b| u32::from_ne_bytes(*b));
    Some((number(&value)?, number(key)?))
}

fn values<T: plain::Plain + Copy>(map: &impl MapCore) -> Vec<T> {
    map.keys().filter_map(|key| wire::value(&map.lookup(&key, MapFlags::ANY).ok()??)).collect()
}
