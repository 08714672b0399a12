//! What devices did, and for whom.

use std::collections::{BTreeMap, HashMap, VecDeque};

use super::bins::{Bins, Merge as _, Rate};
use super::spread::Counts;
use super::view::DeviceSample;
use crate::correlate::rows::{Block, BlockBytes};

/// Devices and users of a device that are told apart at most.
const MAX_DEVICES: usize = 256;
const MAX_USERS: usize = 256;
/// Requests that are remembered until it is told whose they are.
const MAX_REQUESTS: usize = 16_384;

/// One device.
#[derive(Debug, Clone)]
pub struct Disk {
    pub sums: DeviceSample,
    pub errors: i64,
    pub depth_sum: i64,
    pub depth_max: i64,
    /// Up to when a request was in the device, and how long one was.
    busy_until: i64,
    pub busy_ns: i64,
    pub queue: Counts,
    pub device: Counts,
    pub queue_max: i64,
    pub device_max: i64,
    pub classes: BTreeMap<(&'static str, &'static str), (i64, i64)>,
    /// Requests and bytes by process.
    pub users: HashMap<Option<i32>, (i64, i64)>,
    pub other_users: i64,
    pub rate: Rate,
    pub history: Bins<DeviceSample>,
}

/// All devices.
#[derive(Debug, Clone)]
pub struct Disks {
    pub all: BTreeMap<i32, Disk>,
    pub history: Bins<DeviceSample>,
    /// Bytes read and written that are known to be of traced processes.
    pub traced: [i64; 2],
    /// The last requests: device, and whether they write.
    requests: HashMap<i64, (i32, Option<bool>)>,
    order: VecDeque<i64>,
    width: (i64, usize),
}

impl Disks {
    pub fn new(width_ns: i64, max: usize) -> Self {
        Self {
            all: BTreeMap::new(),
            history: Bins::new(width_ns, max),
            traced: [0; 2],
            requests: HashMap::new(),
            order: VecDeque::new(),
            width: (width_ns, max),
        }
    }

    pub fn block(&mut self, block: &Block, second: i64) {
        // Not over when the trace ended: the kernel does not count it, either.
        let Some(dur_ns) = block.dur_ns else { return };
        let write = match block.op {
            "read" => Some(false),
            "write" => Some(true),
            _ => None,
        };
        if self.order.len() >= MAX_REQUESTS
            && let Some(old) = self.order.pop_front()
        {
            self.requests.remove(&old);
        }
        self.order.push_back(block.req_id);
        self.requests.insert(block.req_id, (block.dev, write));
        let bytes = i64::from(block.bytes);
        let [read, written] = match write {
            Some(false) => [bytes, 0],
            Some(true) => [0, bytes],
            None => [0, 0],
        };
        let queue_ns = block.issue_ns.saturating_sub(block.queue_ns).max(0);
        let sample = DeviceSample { requests: 1, bytes_read: read, bytes_written: written, dur_ns, queue_ns };
        // What a stacked device hands down has been counted there.
        if block.upper_dev.is_none() {
            self.history.at(block.issue_ns).merge(&sample);
        }
        if self.all.len() >= MAX_DEVICES && !self.all.contains_key(&block.dev) {
            return;
        }
        let width = self.width;
        let disk = self.all.entry(block.dev).or_insert_with(|| Disk::new(width));
        disk.sums.merge(&sample);
        disk.history.at(block.issue_ns).merge(&sample);
        disk.errors += i64::from(block.status.is_some_and(|status| status != 0));
        disk.depth_sum += i64::from(block.qdepth);
        disk.depth_max = disk.depth_max.max(block.qdepth.into());
        // Requests come by completion, so what overlaps the last one counts once.
        let end = block.issue_ns.saturating_add(dur_ns);
        disk.busy_ns += (end - block.issue_ns.max(disk.busy_until)).max(0);
        disk.busy_until = disk.busy_until.max(end);
        disk.queue.value(queue_ns);
        disk.device.value(dur_ns);
        disk.queue_max = disk.queue_max.max(queue_ns);
        disk.device_max = disk.device_max.max(dur_ns);
        let class = disk.classes.entry((block.op, block.class)).or_default();
        *class = (class.0 + 1, class.1 + bytes);
        disk.rate.add(second, [1, read, written]);
    }

    pub fn whose(&mut self, part: &BlockBytes) {
        let Some((dev, write)) = self.requests.get(&part.req_id).copied() else { return };
        if let (Some(write), true) = (write, part.process_ix.is_some() || part.span_id.is_some()) {
            self.traced[usize::from(write)] += part.bytes;
        }
        let Some(disk) = self.all.get_mut(&dev) else { return };
        if disk.users.len() >= MAX_USERS && !disk.users.contains_key(&part.process_ix) {
            disk.other_users += part.bytes;
            return;
        }
        let user = disk.users.entry(part.process_ix).or_default();
        *user = (user.0 + 1, user.1 + part.bytes);
    }
}

impl Disk {
    fn new((width_ns, max): (i64, usize)) -> Self {
        Self {
            sums: DeviceSample::default(),
            errors: 0,
            depth_sum: 0,
            depth_max: 0,
            busy_until: i64::MIN,
            busy_ns: 0,
            queue: Counts::default(),
            device: Counts::default(),
            queue_max: 0,
            device_max: 0,
            classes: BTreeMap::new(),
            users: HashMap::new(),
            other_users: 0,
            rate: Rate::default(),
            history: Bins::new(width_ns, max),
        }
    }
}
