//! Block requests: how many were in flight, which spans they serve, whose their bytes are.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, BinaryHeap, VecDeque};

use crate::HashMap;
use crate::correlate::calls::roots::Roots;
use crate::correlate::calls::stack::Tree;
use crate::correlate::devices::busy::{Busy, For};
use crate::correlate::devices::class::{self, is_write, operation, submitted};
use crate::correlate::devices::dirty::{Attribution, Dirty, Part, Writer};
use crate::event::{Bio, Cgroup, Dirtied, Request};
use crate::rows::{Block, BlockBytes, BlockLink, Metric, Row, span_id};

/// How long a completed request waits for those issued before it, whose device is not known until they complete.
const HOLD_NS: u64 = 1_000_000_000;

/// Links that wait for the root of their span.
const MAX_WAITING_LINKS: usize = 64 << 10;

/// A bio on its way, with whose bytes it carries.
struct Sent {
    bio: Bio,
    file: Option<i32>,
    parts: Vec<Part>,
}

/// The process and file of some bytes, or the control group if only that is known, and how that is known.
type Owner = (Option<Writer>, Option<i32>, Option<u64>, &'static str);

/// Requests in flight at once that are remembered, as many as the kernel side does. More are none: of those the end was lost.
const MAX_IN_FLIGHT: usize = 1 << 16;

/// Flushes of a device that are remembered.
const MAX_FLUSHES: usize = 4096;

/// Threads that are remembered after their end.
const MAX_ENDED: usize = 1 << 18;

/// How long it is remembered at least which call another is part of (ns). Linux writes back what was dirtied 30 s ago
/// (`vm.dirty_expire_centisecs`), and looks each 5 s; a slow device may be behind.
const REMEMBERED: u64 = 300 * 1_000_000_000;

#[derive(Default)]
struct InFlight {
    issued: u64,
    bios: Vec<Sent>,
}

struct Done {
    request: Request,
    row: Block,
    links: BTreeMap<((u32, u32, u32), &'static str), u64>,
    owners: BTreeMap<Owner, u64>,
}

/// A flush of a device that is over.
struct Flush {
    queued: u64,
    completed: u64,
    req_id: i64,
}

/// Requests in flight, and what links them to spans.
#[derive(Default)]
pub struct Blocks {
    in_flight: HashMap<u64, InFlight>,
    issues: BTreeSet<(u64, u64)>,
    /// Completed requests by time of issue.
    done: BTreeMap<(u64, u64), Done>,
    /// Completion times of each device's requests in flight, as of the last row written.
    devices: HashMap<u32, BinaryHeap<Reverse<u64>>>,
    names: HashMap<u32, String>,
    dirty: Dirty,
    busy: Busy,
    /// Flushes of each device, in the order in which they were over.
    flushes: HashMap<u32, VecDeque<Flush>>,
    roots: Roots,
    /// Process of each thread, also of those that have ended: what they dirtied is written back later.
    processes: HashMap<u32, i32>,
    /// Those that have ended, in that order.
    ended: VecDeque<u32>,
    /// When calls of long ago were last forgotten.
    forgot: u64,
    /// Control groups in which there was a traced process: their paths, by the kernel's numbers.
    cgroups: HashMap<u64, String>,
    waiting: HashMap<u32, Vec<(u32, BlockLink)>>,
    waiting_count: usize,
    /// Written ranges dropped because there were too many.
    forgotten: usize,
    /// Requests that did not complete.
    open: usize,
    /// Those whose end was not seen.
    unseen: usize,
}

impl Blocks {
    pub fn thread_begins(&mut self, thread: u32, process_ix: i32) {
        self.roots.begin(thread);
        self.processes.insert(thread, process_ix);
    }

    pub fn thread_ends(&mut self, thread: u32, out: &mut Vec<Row>) {
        self.roots.end(thread);
        self.resolve(thread, out);
        self.ended.push_back(thread);
        if self.ended.len() > MAX_ENDED
            && let Some(oldest) = self.ended.pop_front()
        {
            self.processes.remove(&oldest);
        }
    }

    /// Forgets of calls of long ago what they were part of, when it is time to.
    pub fn forget_old(&mut self, now: u64) {
        if now.saturating_sub(self.forgot) >= REMEMBERED {
            self.forgot = now;
            self.roots.forget_old();
        }
    }

    /// A file is forgotten.
    pub fn forget(&mut self, file: i32) {
        self.dirty.forget(file);
    }

    /// A traced process is in a control group.
    pub fn in_cgroup(&mut self, cgroup: &Cgroup) {
        if let Some(id) = cgroup.id {
            self.cgroups.entry(id).or_insert_with(|| cgroup.path.clone());
        }
    }

    /// A phase was entered outside of every call.
    pub fn phase_begins(&mut self, thread: u32, seq: u32) {
        self.roots.enter(thread, seq);
    }

    pub fn tree(&mut self, thread: u32, tree: Tree, complete: bool, out: &mut Vec<Row>) {
        self.roots.wrote(thread, tree, complete);
        if self.waiting_count > 0 {
            self.resolve(thread, out);
        }
    }

    /// The root of a call that was written; `None` while it is open.
    pub fn root(&self, thread: u32, seq: u32) -> Option<u32> {
        self.roots.root(thread, seq)
    }

    /// A write to the page cache returned.
    pub fn wrote(&mut self, file: i32, off: u64, bytes: u64, writer: Writer, during: [u64; 2]) {
        self.forgotten += self.dirty.wrote(file, off, bytes, writer, during);
    }

    /// Pages became dirty, through a mapping or by a call whose range is not known.
    pub fn dirtied(&mut self, file: i32, dirty: &Dirtied) {
        let writer = (dirty.thread, dirty.seq.map(|seq| (seq, seq)));
        self.forgotten += self.dirty.dirtied(file, dirty.off, dirty.bytes, writer, dirty.time);
    }

    /// The name of a device.
    pub fn named(&mut self, dev: u32, name: String) {
        self.names.insert(dev, name);
    }

    pub fn name(&self, dev: u32) -> Option<String> {
        self.names.get(&dev).cloned()
    }

    pub fn bio(&mut self, time: u64, bio: Bio, file: Option<i32>) {
        let end = bio.off.saturating_add(bio.bytes);
        let parts = file.map_or_else(Vec::new, |f| self.dirty.parts(f, bio.off, end, bio.queued));
        let flight = self.in_flight.entry(bio.req).or_default();
        if flight.bios.is_empty() {
            flight.issued = time;
            self.issues.insert((time, bio.req));
        }
        flight.bios.push(Sent { bio, file, parts });
        if self.in_flight.len() > MAX_IN_FLIGHT
            && let Some((_, oldest)) = self.issues.pop_first()
        {
            self.in_flight.remove(&oldest);
        }
    }

    /// When requests were on their way.
    pub const fn busy(&self) -> &Busy {
        &self.busy
    }

    /// How long write-back of a file, and the journal that is known by this device, took a time.
    pub fn by_itself(&self, file: i32, journal: u32, during: [u64; 2]) -> [Option<i64>; 2] {
        [For::File(file), For::Journal(journal)].map(|what| self.busy.during(what, during))
    }

    /// The first of these devices that has requests.
    pub fn device<'a>(&self, names: impl IntoIterator<Item = &'a str>) -> Option<u32> {
        names.into_iter().find_map(|name| self.names.iter().find(|(_, known)| *known == name)).map(|(dev, _)| *dev)
    }

    /// Links a call, which waited for flushes of this device, with those.
    pub fn waited_for_flushes(
        &mut self,
        dev: u32,
        (thread, seq): (u32, u32),
        [from, to]: [u64; 2],
        out: &mut Vec<Row>,
    ) {
        let flushes = self.flushes.get(&dev).into_iter().flatten().rev();
        // In the order in which they were over.
        let during = flushes.take_while(|flush| flush.completed > from).filter(|flush| flush.queued < to);
        let requests: Vec<i64> = during.map(|flush| flush.req_id).collect();
        let span = span_id(thread, seq);
        for req_id in requests.into_iter().rev() {
            self.link(thread, seq, BlockLink { req_id, span_id: span, root_id: span, bytes: 0, how: "flush" }, out);
        }
    }

    /// A part of a request is complete for which a call may wait.
    fn over(&mut self, bio: &Bio, file: Option<i32>, request: &Request, completed: u64) {
        let write = is_write(request.cmd_flags);
        let pages = bio.file.filter(|_| write).map(|key| For::Device(key.dev));
        let file = file.filter(|_| write).map(For::File);
        let journal = bio.journal.map(For::Journal);
        let by_itself = pages.or(file).or(journal).is_some();
        for what in [pages, file, journal].into_iter().flatten() {
            self.busy.add(what, bio.queued, completed);
        }
        if let Some((thread, _)) = bio.submitter.filter(|_| !by_itself) {
            self.busy.add(For::Queue(thread), bio.queued.min(request.issued), request.issued);
            self.busy.add(For::Service(thread), request.issued, completed);
        }
    }

    /// A flush is over.
    fn flushed(&mut self, request: &Request, completed: u64) {
        self.busy.add(For::Flush(request.dev), request.queued, completed);
        let flushes = self.flushes.entry(request.dev).or_default();
        flushes.push_back(Flush { queued: request.queued, completed, req_id: request.req as i64 });
        if flushes.len() > MAX_FLUSHES {
            flushes.pop_front();
        }
    }

    pub fn request(&mut self, request: Request, relative: impl Fn(u64) -> i64, out: &mut Vec<Row>) {
        let mut flight = self.in_flight.remove(&request.req).unwrap_or_default();
        self.issues.remove(&(flight.issued, request.req));
        let flags = request.cmd_flags;
        let mut links: BTreeMap<((u32, u32, u32), &'static str), u64> = BTreeMap::new();
        let bios: Vec<&Bio> = flight.bios.iter().map(|sent| &sent.bio).collect();
        let class = class::of(flags, request.bytes, &bios);
        for Sent { bio, file, parts } in &mut flight.bios {
            // Written back while the call that wrote it went on: by now it may have returned.
            let unknown = parts.iter().any(|p| p.known == Attribution::No);
            if let (true, Some(file), true) = (is_write(flags), *file, unknown) {
                *parts = self.dirty.parts_begun(file, bio.off, bio.off.saturating_add(bio.bytes), bio.queued);
            }
        }
        let owners = owners(&request, class, &flight.bios, |cgroup| self.cgroups.contains_key(&cgroup));
        for Sent { bio, file, parts } in &flight.bios {
            if let Some(completed) = request.completed {
                self.over(bio, *file, &request, completed);
            }
            if let Some((thread, Some(seq))) = bio.submitter {
                let by = (thread, seq, bio.of.unwrap_or(seq));
                *links.entry((by, submitted(flags, bio))).or_default() += bio.bytes;
            }
            if let (true, Some(file)) = (is_write(flags), file) {
                for part in parts {
                    // What only shares a page with what a call wrote is not the call's.
                    if let (Some((thread, Some((seq, of)))), Attribution::Range | Attribution::Page) =
                        (part.writer, part.known)
                    {
                        *links.entry(((thread, seq, of), "writeback")).or_default() += part.bytes;
                    }
                }
                // What a stacked device handed down is over before it is over there.
                if request.upper.is_none() {
                    self.dirty.clear(*file, bio.off, bio.off.saturating_add(bio.bytes), bio.queued);
                }
            }
        }
        if let Some(completed) = request.completed.filter(|_| class == "flush") {
            self.flushed(&request, completed);
        }
        let row = Block {
            req_id: request.req as i64,
            dev: request.dev as i32,
            device: self.names.get(&request.dev).cloned(),
            op: operation(flags, request.bytes),
            class,
            req_flags: (flags & 0x7fff_ffff) as i32,
            sector: request.sector as i64,
            bytes: i32::try_from(request.bytes).unwrap_or(i32::MAX),
            pid: request.pid as i32,
            queue_ns: relative(request.queued),
            insert_ns: request.inserted.map(&relative),
            issue_ns: relative(request.issued),
            dur_ns: request.completed.map(|at| i64::try_from(at.saturating_sub(request.issued)).unwrap_or(i64::MAX)),
            status: request.completed.map(|_| i16::from(request.status)),
            nr_bios: count(request.nr_bios),
            merges: count(request.nr_bios.saturating_sub(1)),
            splits: count(request.splits),
            upper_dev: request.upper.map(|(dev, _)| dev as i32),
            upper_sector: request.upper.map(|(_, sector)| sector as i64),
            qdepth: 1,
        };
        self.open += usize::from(request.completed.is_none() && request.unseen.is_none());
        self.unseen += usize::from(request.unseen.is_some());
        self.done.insert((request.issued, request.req), Done { request, row, links, owners });
        self.write(Some(request.known_at()), out);
    }

    /// Writes the requests of which no earlier one can still complete; without `now`, all.
    fn write(&mut self, now: Option<u64>, out: &mut Vec<Row>) {
        while let Some(entry) = self.done.first_entry() {
            let issued = entry.key().0;
            let open = self.issues.first().is_some_and(|first| first.0 <= issued);
            if now.is_some_and(|now| open && now.saturating_sub(issued) < HOLD_NS) {
                return;
            }
            let Done { request, mut row, links, owners } = entry.remove();
            let device = self.devices.entry(request.dev).or_default();
            // When one whose end was not seen left the device is not known, and later ones may have been written.
            if request.unseen.is_none() {
                while device.peek().is_some_and(|end| end.0 <= request.issued) {
                    device.pop();
                }
                device.push(Reverse(request.completed.unwrap_or(u64::MAX)));
                row.qdepth = i16::try_from(device.len()).unwrap_or(i16::MAX);
            }
            let req_id = row.req_id;
            out.push(Row::Block(row));
            for ((writer, file_id, cgroup, known_by), bytes) in owners {
                out.push(Row::BlockBytes(BlockBytes {
                    req_id,
                    process_ix: writer.and_then(|(thread, _)| self.processes.get(&thread).copied()),
                    file_id,
                    span_id: writer.and_then(|(thread, call)| Some(span_id(thread, call?.0))),
                    cgroup: cgroup.and_then(|cgroup| self.cgroups.get(&cgroup).cloned()),
                    bytes: bytes as i64,
                    known_by,
                }));
            }
            for (((thread, seq, of), how), bytes) in links {
                let span = span_id(thread, seq);
                self.link(
                    thread,
                    of,
                    BlockLink { req_id, span_id: span, root_id: span, bytes: bytes as i64, how },
                    out,
                );
            }
        }
    }

    /// The root of its span is that of the call `of`.
    fn link(&mut self, thread: u32, of: u32, mut link: BlockLink, out: &mut Vec<Row>) {
        match self.roots.root(thread, of) {
            None if self.waiting_count < MAX_WAITING_LINKS => {
                self.waiting.entry(thread).or_default().push((of, link));
                self.waiting_count += 1;
            }
            root => {
                link.root_id = span_id(thread, root.unwrap_or(of));
                out.push(Row::BlockLink(link));
            }
        }
    }

    fn resolve(&mut self, thread: u32, out: &mut Vec<Row>) {
        if let Some(links) = self.waiting.remove(&thread) {
            self.waiting_count -= links.len();
            for (of, link) in links {
                self.link(thread, of, link, out);
            }
        }
    }

    /// Writes everything that waits, and how many requests were still in their devices: they are not lost, but not over
    /// either.
    pub fn finish(&mut self, t_ns: i64, out: &mut Vec<Row>) {
        self.write(None, out);
        let value = self.open as f64;
        out.push(Row::Metric(Metric { t_ns, name: "requests_in_flight", label: None, value }));
        let value = self.unseen as f64;
        out.push(Row::Metric(Metric { t_ns, name: "requests_end_unseen", label: None, value }));
        // No loss: on tmpfs and network file systems no request ever comes that would clear a range.
        let value = self.forgotten as f64;
        out.push(Row::Metric(Metric { t_ns, name: "dirty_ranges_forgotten", label: None, value }));
        let mut threads: Vec<u32> = self.waiting.keys().copied().collect();
        threads.sort_unstable();
        for thread in threads {
            self.thread_ends(thread, out);
        }
    }
}

fn count(n: u16) -> i16 {
    i16::try_from(n).unwrap_or(i16::MAX)
}

/// Whose the bytes of a request are: each of them once. Where no call is known that dirtied pages, the control group that they
/// are charged to may be `ours`.
fn owners(request: &Request, class: &str, bios: &[Sent], ours: impl Fn(u64) -> bool) -> BTreeMap<Owner, u64> {
    let mut owners: BTreeMap<Owner, u64> = BTreeMap::new();
    let mut left = u64::from(request.bytes);
    let mut give = |owner: Owner, bytes: u64| {
        let bytes = bytes.min(left);
        left -= bytes;
        if bytes > 0 {
            *owners.entry(owner).or_default() += bytes;
        }
    };
    for Sent { bio, file, parts } in bios {
        let other = match class {
            "journal" => "journal",
            "meta" => "meta",
            _ if bio.submitter.is_some() => "submitted",
            _ => Attribution::No.name(),
        };
        let cgroup = bio.cgroup.filter(|cgroup| ours(*cgroup));
        let unknown = (None, *file, cgroup, cgroup.map_or(Attribution::No.name(), |_| "cgroup"));
        let of = |p: &Part| if p.known == Attribution::No { unknown } else { (p.writer, *file, None, p.known.name()) };
        match (is_write(request.cmd_flags), file) {
            (true, Some(_)) => parts.iter().for_each(|p| give(of(p), p.bytes)),
            (true, None) if bio.file.is_some() => give(unknown, bio.bytes),
            _ => {
                let by = bio.submitter.map(|(thread, seq)| (thread, seq.map(|seq| (seq, bio.of.unwrap_or(seq)))));
                give((by, *file, None, other), bio.bytes);
            }
        }
    }
    give((None, None, None, Attribution::No.name()), u64::MAX);
    owners
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What a process dirtied may be written back long after its end: `vm.dirty_expire_centisecs` is a setting.
    #[test]
    fn threads_that_have_ended_are_forgotten_by_number_alone() {
        let mut blocks = Blocks::default();
        for thread in 0..=MAX_ENDED as u32 {
            blocks.thread_begins(thread, 7);
            blocks.thread_ends(thread, &mut Vec::new());
        }
        (1..10).for_each(|n| blocks.forget_old(n * REMEMBERED));
        assert_eq!((blocks.processes.len(), blocks.processes.contains_key(&0)), (MAX_ENDED, false));
    }

    #[test]
    fn requests_whose_ends_were_lost_are_not_remembered_for_ever() {
        let mut blocks = Blocks::default();
        let of = |req: u64| Bio {
            req,
            file: None,
            off: 0,
            bytes: 4096,
            queued: req,
            submitter: None,
            of: None,
            journal: None,
            meta: false,
            kernel: true,
            cgroup: None,
        };
        let most = MAX_IN_FLIGHT as u64;
        for req in 0..most + 10 {
            blocks.bio(req, of(req), None);
            blocks.bio(req, of(req), None);
        }
        assert_eq!((blocks.in_flight.len(), blocks.issues.len()), (MAX_IN_FLIGHT, MAX_IN_FLIGHT));
        assert_eq!(blocks.issues.first(), Some(&(10, 10)));
        assert!(blocks.in_flight.values().all(|flight| flight.bios.len() == 2));
    }
}
