//! A dataset in which the run of another one happens again and again, and several times side by side.

use anyhow::{Result, ensure};
use iotrace_bpf::export::report::{Ids, Renumber};
use iotrace_bpf::export::{Dataset, DatasetWriter, Options, Times, VIEWS};
use iotrace_bpf::rows::{
    Block, BlockBytes, BlockLink, CallPath, Coverage, File, FilePath, Handle, Hist, Loss, Meta, Metric, Mount, Object,
    Process, Rollup, Row, SEQ_BITS, Span, Stack, Thread,
};
use std::path::Path;
use std::time::Duration;

/// Pids of a copy begin so far behind those of the one before.
const PIDS: i32 = 100_000;
/// A copy begins so long after the one before, in ns.
const LATER_NS: i64 = 1_000_000;

/// One of the copies of a run that are side by side: with processes, ranks and files of its own.
struct Copy {
    number: i32,
    ids: [i64; 9],
    ranks: i32,
}

impl Copy {
    fn own<T: Renumber + Times + Clone>(&self, row: &T, later: i64) -> T {
        let mut row = row.clone();
        row.renumber(&Ids(&self.ids));
        row.shift(-later - i64::from(self.number) * LATER_NS);
        row
    }

    fn pid(&self, pid: i32) -> i32 {
        pid + self.number * PIDS
    }

    fn rank(&self, rank: Option<i32>) -> Option<i32> {
        rank.map(|rank| rank + self.number * self.ranks)
    }

    /// What a program writes has another name in each copy; libraries are the same.
    fn path(&self, path: String, role: &str) -> String {
        if self.number == 0 || role == "lib" { path } else { format!("{path}.{:03}", self.number) }
    }
}

/// What happens again and again.
struct Run {
    spans: Vec<Span>,
    block: Vec<Block>,
    links: Vec<BlockLink>,
    bytes: Vec<BlockBytes>,
    rollup: Vec<Rollup>,
    hist: Vec<Hist>,
    /// How long it takes, in ns; numbers of calls of a thread, and of requests.
    length: i64,
    seqs: i64,
    requests: i64,
}

impl Run {
    fn read(dataset: &Dataset) -> Result<Self> {
        let mut spans: Vec<Span> = dataset.all()?;
        // As they end.
        spans.sort_by_key(Span::end_ns);
        let block: Vec<Block> = dataset.all()?;
        let end = spans.last().map_or(0, Span::end_ns);
        Ok(Self {
            length: (end / 1_000_000_000 + 1) * 1_000_000_000,
            seqs: spans.iter().map(|s| s.span_id & ((1 << SEQ_BITS) - 1)).max().unwrap_or(0) + 1,
            requests: block.iter().map(|b| b.req_id).max().unwrap_or(0) + 1,
            spans,
            block,
            links: dataset.all()?,
            bytes: dataset.all()?,
            rollup: dataset.all()?,
            hist: dataset.all()?,
        })
    }

    /// The copies, whose ids do not meet.
    fn copies(&self, dataset: &Dataset, copies: i32) -> Result<Vec<Copy>> {
        let columns =
            ["process_ix", "thread_ix", "file_id", "handle_id", "object_id", "", "path_id", "mount_id", "stack_id"];
        let greatest = dataset.greatest(&columns)?;
        let ranks = self.spans.iter().filter_map(|s| s.rank).max().map_or(0, |rank| rank + 1);
        let of = |number: i32| {
            let mut ids = columns.map(|column| i64::from(number) * (greatest.get(column).copied().unwrap_or(0) + 1));
            // Mounts and stacks are those of the node and of the program.
            (ids[7], ids[8]) = (0, 0);
            Copy { number, ids, ranks }
        };
        Ok((0..copies).map(of).collect())
    }

    /// Its calls and requests for the `time`th time, in all copies at once.
    fn write(&self, time: i64, copies: &[Copy], writer: &mut DatasetWriter) -> Result<()> {
        let (later, id) = (time * self.length, time * self.seqs);
        let request = |copy: &Copy, id: i64| id + (time * copies.len() as i64 + i64::from(copy.number)) * self.requests;
        for (span, copy) in self.spans.iter().flat_map(|span| copies.iter().map(move |copy| (span, copy))) {
            let mut span = copy.own(span, later);
            (span.span_id, span.root_id) = (span.span_id + id, span.root_id + id);
            (span.parent_id, span.async_id) = (span.parent_id.map(|p| p + id), span.async_id.map(|a| a + id));
            (span.pid, span.tid) = (copy.pid(span.pid), copy.pid(span.tid));
            span.rank = copy.rank(span.rank);
            // Ids of 53 bits, each time and in each copy others.
            span.coll_id = span.coll_id.map(|c| (c ^ (request(copy, 0) << 20)) & ((1 << 53) - 1));
            writer.push(Row::Span(Box::new(span)))?;
        }
        for copy in copies {
            for block in &self.block {
                let block = copy.own(block, later);
                let (req_id, pid) = (request(copy, block.req_id), copy.pid(block.pid));
                writer.push(Row::Block(Block { req_id, pid, ..block }))?;
            }
            for link in &self.links {
                let link = copy.own(link, 0);
                let (req_id, span_id, root_id) = (request(copy, link.req_id), link.span_id + id, link.root_id + id);
                writer.push(Row::BlockLink(BlockLink { req_id, span_id, root_id, ..link }))?;
            }
            for bytes in &self.bytes {
                let bytes = copy.own(bytes, 0);
                let span_id = bytes.span_id.map(|s| s + id);
                writer.push(Row::BlockBytes(BlockBytes { req_id: request(copy, bytes.req_id), span_id, ..bytes }))?;
            }
            for rollup in &self.rollup {
                let rollup = copy.own(rollup, later);
                let (pid, rank) = (copy.pid(rollup.pid), copy.rank(rollup.rank));
                writer.push(Row::Rollup(Rollup { pid, rank, ..rollup }))?;
            }
            for hist in &self.hist {
                writer.push(Row::Hist(copy.own(hist, later)))?;
            }
        }
        Ok(())
    }
}

/// Writes a dataset in which the run of another one happens `copies` times at once, until there are so many
/// calls.
pub fn repeat(from: &Path, wanted: u64, copies: i32, to: &Path) -> Result<()> {
    let dataset = Dataset::open(from)?;
    let host = dataset.hosts().into_iter().next().unwrap_or_default();
    let run = Run::read(&dataset)?;
    ensure!(copies > 0 && !run.spans.is_empty(), "{} has no calls, or no copy is wanted", from.display());
    let copies = run.copies(&dataset, copies)?;
    let mut writer = DatasetWriter::create(Options { path: to, host: &host, force: false, owner: None, views: VIEWS })?;
    let times = wanted.div_ceil((run.spans.len() * copies.len()) as u64) as i64;
    for time in 0..times {
        run.write(time, &copies, &mut writer)?;
        writer.tick(Duration::from_nanos((time * run.length) as u64))?;
    }
    for meta in dataset.all::<Meta>()? {
        let value = if meta.key == "end_ns" { (times * run.length).to_string() } else { meta.value };
        writer.push(Row::Meta(Meta { value, ..meta }))?;
    }
    for copy in &copies {
        entities(&dataset, copy, &mut writer)?;
    }
    dataset.all::<Mount>()?.into_iter().try_for_each(|row| writer.push(Row::Mount(Box::new(row))))?;
    dataset.all::<Stack>()?.into_iter().try_for_each(|row| writer.push(Row::Stack(row)))?;
    dataset.all::<Metric>()?.into_iter().try_for_each(|row| writer.push(Row::Metric(row)))?;
    dataset.all::<Loss>()?.into_iter().try_for_each(|row| writer.push(Row::Loss(row)))?;
    dataset.all::<Coverage>()?.into_iter().try_for_each(|row| writer.push(Row::Coverage(row)))?;
    writer.finish()?;
    Ok(())
}

/// The files, processes and the like of a copy.
fn entities(dataset: &Dataset, copy: &Copy, writer: &mut DatasetWriter) -> Result<()> {
    let mut roles = std::collections::HashMap::new();
    for file in dataset.all::<File>()? {
        roles.insert(file.file_id, file.role);
        let mut file = copy.own(&file, 0);
        file.path = file.path.map(|path| copy.path(path, file.role));
        writer.push(Row::File(Box::new(file)))?;
    }
    for path in dataset.all::<FilePath>()? {
        let role = roles.get(&path.file_id).copied().unwrap_or("data");
        let file_id = path.file_id + copy.ids[2] as i32;
        writer.push(Row::FilePath(FilePath { file_id, path: copy.path(path.path, role), ..path }))?;
    }
    for process in dataset.all::<Process>()? {
        let process = copy.own(&process, 0);
        let (pid, rank) = (copy.pid(process.pid), copy.rank(process.rank));
        writer.push(Row::Process(Box::new(Process { pid, rank, ..process })))?;
    }
    for thread in dataset.all::<Thread>()? {
        let mut thread = thread;
        thread.renumber(&Ids(&copy.ids));
        (thread.pid, thread.tid) = (copy.pid(thread.pid), copy.pid(thread.tid));
        writer.push(Row::Thread(thread))?;
    }
    for handle in dataset.all::<Handle>()? {
        let handle = copy.own(&handle, 0);
        writer.push(Row::Handle(Handle { pid: copy.pid(handle.pid), ..handle }))?;
    }
    dataset.all::<Object>()?.iter().try_for_each(|row| writer.push(Row::Object(copy.own(row, 0))))?;
    dataset.all::<CallPath>()?.iter().try_for_each(|row| writer.push(Row::CallPath(copy.own(row, 0))))
}
