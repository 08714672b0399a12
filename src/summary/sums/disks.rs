//! What devices did, and for which processes.

use std::borrow::Cow;
use std::collections::{BTreeMap, HashMap, VecDeque};

use crate::analysis::calls::{Figures, Sums, is_data, is_topmost};
use crate::rows::{Block, BlockBytes};
use crate::summary::bins::{Bins, Merge, Rate};
use crate::summary::sums::spread::{COLUMN_NS, COLUMNS, Counts};
use crate::summary::view::{DeviceSample, Window};
use crate::vocabulary::Kind;

/// Devices, and users of a device, with sums of their own at most.
const MAX_DEVICES: usize = 256;
const MAX_USERS: usize = 256;
/// Requests that are remembered until it is known which processes they are of.
const MAX_REQUESTS: usize = 16_384;

/// What a device did, in all of the time or a part of it.
#[derive(Debug, Clone, Default)]
pub struct DiskSums {
    pub requests: i64,
    pub errors: i64,
    pub depth_sum: i64,
    pub depth_max: i64,
    pub busy_ns: i64,
    pub queue: Counts,
    pub device: Counts,
    pub queue_max: i64,
    pub device_max: i64,
    /// Requests and bytes by operation and class.
    pub classes: BTreeMap<(&'static str, &'static str), (i64, i64)>,
    /// Requests and bytes by process.
    pub users: BTreeMap<Option<i32>, (i64, i64)>,
    /// Bytes of users that found no room.
    pub other_users: i64,
}

/// One device.
#[derive(Debug, Clone)]
pub struct Disk {
    /// Up to when a request was in the device.
    busy_until: i64,
    pub rate: Rate,
    pub history: Bins<DeviceSample>,
    total: DiskSums,
    over_time: Bins<DiskSums>,
}

/// All devices.
#[derive(Debug, Clone)]
pub struct Disks {
    pub all: BTreeMap<i32, Disk>,
    /// All topmost requests: what a stacked device hands down has been counted there.
    pub top: Disk,
    /// Bytes read and written that are known to be of traced processes.
    pub traced: Bins<[i64; 2]>,
    /// The last requests: device, when, and whether they write.
    requests: HashMap<i64, (i32, i64, Option<bool>)>,
    order: VecDeque<i64>,
    width: (i64, usize),
}

impl Disks {
    pub fn new(width_ns: i64, max: usize) -> Self {
        Self {
            all: BTreeMap::new(),
            top: Disk::new((width_ns, max)),
            traced: Bins::new(width_ns, max),
            requests: HashMap::new(),
            order: VecDeque::new(),
            width: (width_ns, max),
        }
    }

    pub fn block(&mut self, block: &Block, second: i64) {
        // Not over when the trace ended: the kernel does not count it, either.
        let Some((kind, figures)) = Figures::of_request(block) else { return };
        let write = is_data(kind).then_some(kind == Kind::Write);
        if self.order.len() >= MAX_REQUESTS
            && let Some(old) = self.order.pop_front()
        {
            self.requests.remove(&old);
        }
        self.order.push_back(block.req_id);
        self.requests.insert(block.req_id, (block.dev, block.issue_ns, write));
        if is_topmost(block) {
            let Sums { bytes_read, bytes_written, .. } = figures.sums();
            self.top.add(block, &figures, [bytes_read, bytes_written], second);
        }
        // The kernel counts what a failed one asked for, too (/sys/block/*/stat).
        let bytes = i64::from(block.bytes);
        let asked = write.map_or([0, 0], |write| if write { [0, bytes] } else { [bytes, 0] });
        if self.all.len() >= MAX_DEVICES && !self.all.contains_key(&block.dev) {
            return;
        }
        let width = self.width;
        self.all.entry(block.dev).or_insert_with(|| Disk::new(width)).add(block, &figures, asked, second);
    }

    pub fn bytes(&mut self, part: &BlockBytes) {
        let Some((dev, t_ns, write)) = self.requests.get(&part.req_id).copied() else { return };
        if let (Some(write), true) = (write, part.process_ix.is_some() || part.span_id.is_some()) {
            self.traced.at(t_ns)[usize::from(write)].merge(&part.bytes);
        }
        let Some(disk) = self.all.get_mut(&dev) else { return };
        for sums in disk.sums_at(t_ns) {
            sums.used(part.process_ix, (1, part.bytes));
        }
    }
}

fn add(sum: &mut (i64, i64), (n, bytes): (i64, i64)) {
    *sum = (sum.0 + n, sum.1.saturating_add(bytes));
}

impl DiskSums {
    fn used(&mut self, by: Option<i32>, requests: (i64, i64)) {
        if self.users.len() >= MAX_USERS && !self.users.contains_key(&by) {
            self.other_users = self.other_users.saturating_add(requests.1);
        } else {
            add(self.users.entry(by).or_default(), requests);
        }
    }
}

impl Merge for DiskSums {
    fn merge(&mut self, other: &Self) {
        self.requests += other.requests;
        self.errors += other.errors;
        self.depth_sum += other.depth_sum;
        self.depth_max = self.depth_max.max(other.depth_max);
        self.busy_ns = self.busy_ns.saturating_add(other.busy_ns);
        self.queue.merge(&other.queue);
        self.device.merge(&other.device);
        self.queue_max = self.queue_max.max(other.queue_max);
        self.device_max = self.device_max.max(other.device_max);
        other.classes.iter().for_each(|(class, n)| add(self.classes.entry(*class).or_default(), *n));
        other.users.iter().for_each(|(user, n)| self.used(*user, *n));
        self.other_users = self.other_users.saturating_add(other.other_users);
    }
}

impl Disk {
    fn new((width_ns, max): (i64, usize)) -> Self {
        Self {
            busy_until: i64::MIN,
            rate: Rate::default(),
            history: Bins::new(width_ns, max),
            total: DiskSums::default(),
            over_time: Bins::new(COLUMN_NS, COLUMNS),
        }
    }

    /// A request, with the bytes that count as read and written.
    fn add(&mut self, block: &Block, figures: &Figures, [bytes_read, bytes_written]: [i64; 2], second: i64) {
        let dur_ns = figures.inclusive_ns;
        let queue_ns = block.issue_ns.saturating_sub(block.queue_ns).max(0);
        let sample = DeviceSample { requests: 1, bytes_read, bytes_written, dur_ns, queue_ns };
        self.history.at(block.issue_ns).merge(&sample);
        self.rate.add(second, [1, bytes_read, bytes_written]);
        // Requests come by completion, so what overlaps the last one counts once.
        let end = block.issue_ns.saturating_add(dur_ns);
        let busy_ns = end.saturating_sub(block.issue_ns.max(self.busy_until)).max(0);
        self.busy_until = self.busy_until.max(end);
        for sums in self.sums_at(block.issue_ns) {
            sums.requests += 1;
            sums.errors += figures.errors;
            sums.depth_sum += i64::from(block.qdepth);
            sums.depth_max = sums.depth_max.max(block.qdepth.into());
            sums.busy_ns = sums.busy_ns.saturating_add(busy_ns);
            sums.queue.value(queue_ns);
            sums.device.value(dur_ns);
            sums.queue_max = sums.queue_max.max(queue_ns);
            sums.device_max = sums.device_max.max(dur_ns);
            add(sums.classes.entry((block.op, block.class)).or_default(), (1, i64::from(block.bytes)));
        }
    }

    /// What is summed up of a time.
    fn sums_at(&mut self, t_ns: i64) -> [&mut DiskSums; 2] {
        [&mut self.total, self.over_time.at(t_ns)]
    }

    /// Everything, or what began in a window.
    pub fn sums(&self, window: Option<Window>) -> Cow<'_, DiskSums> {
        match window {
            None => Cow::Borrowed(&self.total),
            Some(_) => Cow::Owned(self.over_time.sum(window)),
        }
    }

    /// How long the samples are that these sums are of.
    pub fn covered_ns(&self, window: Window) -> i64 {
        self.over_time.of(Some(window)).1.len() as i64 * self.over_time.width_ns()
    }
}
