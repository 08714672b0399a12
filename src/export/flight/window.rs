//! The last rows of a trace, kept in memory: which are forgotten, and the rows of a dataset of those that are there.
//!
//! Pure: the time is an argument. Rows are kept in chunks of time, and go by chunks. A chunk describes all that its rows
//! refer to, so that none needs another. The calls in it are packed as they are in a dataset.

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, Result};
use arrow_schema::SchemaRef;
use bytes::Bytes;
use parquet::arrow::ArrowWriter;
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;

use crate::correlate::CallSums;
use crate::export::dataset::batches::Rows;
use crate::export::dataset::described::{is_of_node, is_total};
use crate::export::dataset::table::{GROUP_ROWS, Table as _, properties, schema};
use crate::rows::{File, FilePath, Loss, Metric, Process, Row, Rpc, Span};

/// The longest and shortest time of a chunk, and how many of them a window has in between.
const LONGEST: Duration = Duration::from_secs(5);
const SHORTEST: Duration = Duration::from_millis(250);
const CHUNKS: u32 = 16;
/// A chunk ends early when it takes this part of the memory.
const SHARE: usize = 8;
/// So few calls are kept as they are: packing costs some kilobytes.
const FEW: usize = 64;
/// Where calls are lost that there is no memory for.
const PLACE: &str = "flight_memory";

/// Name and label of a figure.
type Name = (&'static str, Option<String>);

/// The calls of a chunk.
enum Calls {
    Plain(Vec<Span>),
    Packed(Bytes),
}

/// What came within some time.
struct Chunk {
    ended: Duration,
    /// All but calls.
    rows: Vec<Row>,
    calls: Calls,
    count: usize,
    bytes: usize,
}

/// What is kept.
pub struct Window {
    length: Duration,
    ceiling: usize,
    /// Those that have ended, the oldest first.
    chunks: VecDeque<Arc<Chunk>>,
    /// The memory that they take.
    bytes: usize,
    /// The one that rows go to, when it began, and the memory it takes.
    rows: Vec<Row>,
    calls: Vec<Span>,
    began: Duration,
    open_bytes: usize,
    /// Whatever came from then on is there.
    from: Duration,
    /// The last figures of the node that were forgotten: they hold until they change.
    node: BTreeMap<Name, Metric>,
    /// Calls that were forgotten too early, and until when they had come.
    short: VecDeque<(Duration, usize)>,
    schema: SchemaRef,
}

impl Window {
    /// For rows of this time, in this memory.
    pub fn new(length: Duration, ceiling: usize) -> Self {
        Self {
            length,
            ceiling,
            chunks: VecDeque::new(),
            bytes: 0,
            rows: Vec::new(),
            calls: Vec::new(),
            began: Duration::ZERO,
            open_bytes: 0,
            from: Duration::ZERO,
            node: BTreeMap::new(),
            short: VecDeque::new(),
            schema: schema::<Span>(),
        }
    }

    /// Keeps a row. What is made anew for each dataset (sums), or holds for all of them, is not for it.
    pub fn push(&mut self, row: Row) {
        match row {
            Row::Span(call) => {
                self.open_bytes += size_of::<Span>();
                self.calls.push(*call);
            }
            Row::Rollup(_) | Row::Hist(_) | Row::Mount(_) | Row::Coverage(_) | Row::Meta(_) => {}
            row => {
                self.open_bytes += size_of::<Row>() + heap(&row);
                self.rows.push(row);
            }
        }
    }

    /// Is it time to end the chunk that rows go to?
    pub fn is_due(&self, now: Duration) -> bool {
        let age = now.saturating_sub(self.began);
        // However much memory there is: the thread that packs a chunk takes no rows meanwhile.
        let large = self.open_bytes >= self.ceiling / SHARE || self.calls.len() >= GROUP_ROWS;
        large || age >= (self.length / CHUNKS).clamp(SHORTEST, LONGEST)
    }

    /// Ends the chunk that rows go to, and forgets what is too old or too much.
    ///
    /// # Errors
    /// When calls cannot be packed.
    pub fn seal(&mut self, now: Duration) -> Result<()> {
        let mut rows = std::mem::take(&mut self.rows);
        rows.shrink_to_fit();
        let of_rows = rows.iter().map(|row| size_of::<Row>() + heap(row)).sum::<usize>();
        let mut calls = std::mem::take(&mut self.calls);
        let count = calls.len();
        let (calls, of_calls) = if count <= FEW {
            calls.shrink_to_fit();
            (Calls::Plain(calls), count * size_of::<Span>())
        } else {
            let packed = pack(&self.schema, &calls)?;
            let of_calls = packed.len();
            (Calls::Packed(packed), of_calls)
        };
        let bytes = of_rows + of_calls;
        self.bytes += bytes;
        self.chunks.push_back(Arc::new(Chunk { ended: now, rows, calls, count, bytes }));
        (self.began, self.open_bytes) = (now, 0);
        self.forget(now);
        Ok(())
    }

    fn forget(&mut self, now: Duration) {
        let is_old = |ended: Duration| ended.saturating_add(self.length) <= now;
        // The rest is for the chunk that rows go to.
        let room = self.ceiling - self.ceiling / SHARE;
        while self.short.front().is_some_and(|(ended, _)| is_old(*ended)) {
            self.short.pop_front();
        }
        while let Some(chunk) = self.chunks.front().filter(|c| is_old(c.ended) || self.bytes > room) {
            if !is_old(chunk.ended) && chunk.count > 0 {
                self.short.push_back((chunk.ended, chunk.count));
            }
            let figures = chunk.rows.iter().filter_map(|row| if let Row::Metric(m) = row { Some(m) } else { None });
            for figure in figures.filter(|m| is_of_node(m)) {
                self.node.insert((figure.name, figure.label.clone()), figure.clone());
            }
            self.bytes -= chunk.bytes;
            self.from = chunk.ended;
            self.chunks.pop_front();
        }
    }

    /// The memory that all of it takes.
    #[cfg(test)]
    pub fn bytes(&self) -> usize {
        self.bytes + self.open_bytes
    }

    /// All that is there and sealed.
    pub fn snapshot(&self) -> WindowSnapshot {
        WindowSnapshot {
            from: self.from,
            node: self.node.values().cloned().collect(),
            chunks: self.chunks.iter().cloned().collect(),
            short: self.short.iter().map(|(_, calls)| calls).sum(),
        }
    }
}

/// What was there at one moment. It shares its memory with the window.
pub struct WindowSnapshot {
    /// Whatever came from then on is there.
    pub from: Duration,
    /// Calls that would be there with more memory.
    pub short: usize,
    node: Vec<Metric>,
    chunks: Vec<Arc<Chunk>>,
}

impl WindowSnapshot {
    /// The rows of a dataset, with these calls that had not returned: one that has returned since is written as it was.
    /// Returns the number of calls.
    ///
    /// # Errors
    /// Those of `each`, or when calls cannot be unpacked.
    pub fn rows(self, open: Vec<Span>, mut each: impl FnMut(Row) -> Result<()>) -> Result<usize> {
        let mut open: BTreeMap<i64, Span> = open.into_iter().map(|call| (call.span_id, call)).collect();
        let (mut sums, mut totals, mut entities) = (CallSums::default(), Totals::default(), Entities::default());
        let mut count = 0;
        self.node.into_iter().try_for_each(|figure| each(Row::Metric(figure)))?;
        if let (1.., Ok(lost)) = (self.short, i64::try_from(self.short)) {
            let t_ns = i64::try_from(self.from.as_nanos()).unwrap_or(i64::MAX);
            each(Row::Loss(Loss { t_ns, layer: None, cpu: None, place: PLACE, process_ix: None, count: lost }))?;
        }
        let mut take = |call: Span, open: &mut BTreeMap<i64, Span>, each: &mut dyn FnMut(Row) -> Result<()>| {
            open.remove(&call.span_id);
            sums.add(&call);
            count += 1;
            each(Row::Span(Box::new(call)))
        };
        for chunk in self.chunks {
            match &chunk.calls {
                Calls::Plain(calls) => calls.iter().try_for_each(|c| take(c.clone(), &mut open, &mut each))?,
                Calls::Packed(packed) => {
                    for batch in ParquetRecordBatchReaderBuilder::try_new(packed.clone())?.build()? {
                        Span::decode(&batch?)?.into_iter().try_for_each(|c| take(c, &mut open, &mut each))?;
                    }
                }
            }
            totals.next();
            for row in &chunk.rows {
                let row = totals.add(row.clone());
                entities.keep(row).map_or(Ok(()), &mut each)?;
            }
        }
        for call in std::mem::take(&mut open).into_values() {
            take(call, &mut open, &mut each)?;
        }
        entities.rows().into_iter().chain(sums.rows()).try_for_each(each)?;
        Ok(count)
    }
}

/// Figures that count from the start of a chunk, from the start of the first one.
#[derive(Default)]
struct Totals(HashMap<Name, [f64; 2]>);

impl Totals {
    fn next(&mut self) {
        for [before, last] in self.0.values_mut() {
            *before += std::mem::take(last);
        }
    }

    fn add(&mut self, mut row: Row) -> Row {
        if let Row::Metric(total) = &mut row
            && is_total(total)
        {
            let [before, last] = self.0.entry((total.name, total.label.clone())).or_default();
            *last = total.value;
            total.value += *before;
        }
        row
    }
}

/// The last row of each entity: each chunk describes it.
#[derive(Default)]
struct Entities {
    all: BTreeMap<(u8, i32), Row>,
    paths: BTreeMap<(i32, i64), FilePath>,
}

impl Entities {
    /// Gives back what is no row of an entity.
    fn keep(&mut self, row: Row) -> Option<Row> {
        let entity = match &row {
            Row::Process(r) => (0, r.process_ix),
            Row::Thread(r) => (1, r.thread_ix),
            Row::File(r) => (2, r.file_id),
            Row::Handle(r) => (3, r.handle_id),
            Row::Object(r) => (4, r.object_id),
            Row::CallPath(r) => (5, r.path_id),
            Row::FilePath(r) => {
                self.paths.insert((r.file_id, r.from_ns), r.clone());
                return None;
            }
            _ => return Some(row),
        };
        self.all.insert(entity, row);
        None
    }

    fn rows(self) -> Vec<Row> {
        self.all.into_values().chain(self.paths.into_values().map(Row::FilePath)).collect()
    }
}

fn pack(schema: &SchemaRef, calls: &[Span]) -> Result<Bytes> {
    const WHAT: &str = "keeping calls in memory";
    let properties = properties::<Span>("", calls.len())?;
    let mut writer = ArrowWriter::try_new(Vec::new(), SchemaRef::clone(schema), Some(properties)).context(WHAT)?;
    Rows::<Span, &Span>::from_iter(calls).batches(schema, "", |batch| writer.write(&batch).context(WHAT))?;
    Ok(writer.into_inner().context(WHAT)?.into())
}

/// The memory that a row takes besides itself.
fn heap(row: &Row) -> usize {
    let text = |text: &Option<String>| text.as_ref().map_or(0, String::capacity);
    let texts = |texts: &[&Option<String>]| texts.iter().map(|t| text(t)).sum::<usize>();
    match row {
        Row::Block(r) => text(&r.device),
        Row::BlockBytes(r) => text(&r.cgroup),
        Row::File(r) => {
            let paths: usize = r.paths.iter().flatten().map(|p| size_of::<String>() + p.capacity()).sum();
            size_of::<File>() + paths + texts(&[&r.path, &r.first_path, &r.host_path, &r.fstype])
        }
        Row::FilePath(r) => r.path.capacity(),
        Row::CallPath(r) => r.path.capacity(),
        Row::Handle(r) => {
            r.hints.iter().flatten().map(|(k, v)| size_of::<[String; 2]>() + k.capacity() + v.capacity()).sum()
        }
        Row::Object(r) => {
            let numbers = [&r.dims, &r.chunk].into_iter().flatten().map(|n| n.capacity() * size_of::<i64>());
            r.name.capacity() + text(&r.filters) + numbers.sum::<usize>()
        }
        Row::Process(r) => {
            let words = r.cmdline.iter().map(|word| size_of::<String>() + word.capacity()).sum::<usize>();
            size_of::<Process>()
                + words
                + texts(&[&r.exe, &r.user, &r.cgroup, &r.container, &r.container_name, &r.container_image])
                + texts(&[&r.unit, &r.job_id, &r.step_id])
        }
        Row::Rpc(_) => size_of::<Rpc>(),
        Row::Thread(r) => r.comm.capacity(),
        Row::Metric(r) => text(&r.label),
        _ => 0,
    }
}
