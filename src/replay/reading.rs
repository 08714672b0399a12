//! Reads a dataset into sums, in a thread of its own.

use crate::analysis::trace::source::{Hosts, IdKind};
use crate::export::report::{Renumber, Source as _, Union};
use crate::export::{Table, Times};
use crate::rows::{AGGREGATE, Block, BlockLink, File, FileRollup, Hist, Mount, Process, Row, Span};
use crate::summary::filter::Filter;
use crate::summary::view::{Waterfall, Window};
use crate::summary::{From, Summary};
use anyhow::{Context as _, Result, bail};
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// Rows that are added per lock: the screen waits for as many at most.
const CHUNK: usize = 512;
/// How long the reader yields to the screen.
const PASS: Duration = Duration::from_micros(50);

/// Which calls are read.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Wish {
    pub filter: Option<Arc<Filter>>,
    pub window: Option<Window>,
}

/// A reading that goes on, or is over.
pub struct Job {
    pub wish: Wish,
    pub shared: Arc<Shared>,
}

pub struct Shared {
    summary: Mutex<Summary>,
    window: Option<Window>,
    /// Rows read, and rows there are.
    pub read: AtomicU64,
    pub rows: AtomicU64,
    /// A viewer waits for it.
    looks: AtomicBool,
    pub over: AtomicBool,
    pub cancel: AtomicBool,
    pub warnings: Mutex<BTreeSet<String>>,
}

pub fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Drop for Job {
    fn drop(&mut self) {
        self.shared.cancel.store(true, Ordering::Relaxed);
    }
}

impl Job {
    /// Reads the sums of the dataset, into what is known of the run.
    pub fn sums(path: &Path, facts: &Summary) -> Result<Self> {
        Self::start(path, Wish::default(), facts.clone(), Shared::read_sums)
    }

    /// Reads calls.
    pub fn calls(path: &Path, wish: Wish, facts: &Summary) -> Result<Self> {
        let (from, read): (_, fn(&Shared, &Path) -> Result<()>) = match facts.from() {
            From::Sums => (From::Sums, Shared::read_summed),
            From::Spans | From::Rollups => (From::Spans, Shared::read_calls),
        };
        let mut summary = Summary::new(from).only(wish.filter.clone(), wish.window).finding(1, &Hosts::default());
        summary.knows(facts);
        Self::start(path, wish, summary, read)
    }

    fn start(path: &Path, wish: Wish, summary: Summary, read: fn(&Shared, &Path) -> Result<()>) -> Result<Self> {
        let shared = Arc::new(Shared {
            summary: Mutex::new(summary),
            window: wish.window,
            read: AtomicU64::new(0),
            rows: AtomicU64::new(0),
            looks: AtomicBool::new(false),
            over: AtomicBool::new(false),
            cancel: AtomicBool::new(false),
            warnings: Mutex::default(),
        });
        let (path, to) = (path.to_owned(), Arc::clone(&shared));
        let read = move || {
            if let Err(e) = read(&to, &path) {
                lock(&to.warnings).insert(format!("{e:#}"));
            }
            to.over.store(true, Ordering::Release);
        };
        std::thread::Builder::new().name("reading".into()).spawn(read).context("thread that reads")?;
        Ok(Self { wish, shared })
    }
}

impl Shared {
    /// The figures as far as they have been read. The reader makes room: it would take the lock again at once.
    pub fn look(&self) -> MutexGuard<'_, Summary> {
        self.looks.store(true, Ordering::Relaxed);
        let summary = lock(&self.summary);
        self.looks.store(false, Ordering::Relaxed);
        summary
    }

    /// Sums first: they give the kind of call of a distribution.
    fn read_sums(&self, path: &Path) -> Result<()> {
        if lock(&self.summary).from() == From::Sums {
            return self.read_summed(path);
        }
        let dataset = Union::open(path)?;
        let done = self.table(&dataset, None, Row::Rollup).and_then(|()| self.table(&dataset, None, Row::Hist));
        lock(&self.warnings).extend(dataset.warnings());
        done
    }

    /// Of calls that were summed up there are only sums.
    fn read_summed(&self, path: &Path) -> Result<()> {
        let dataset = Union::open(path)?;
        self.rows.store(dataset.count::<FileRollup>() + dataset.count::<Hist>(), Ordering::Relaxed);
        let done = self
            .table(&dataset, Some("from_ns"), |row| Row::FileRollup(Box::new(row)))
            .and_then(|()| self.table(&dataset, None, Row::Hist));
        lock(&self.warnings).extend(dataset.warnings());
        done
    }

    /// Requests first: then it is known of a call what it caused on devices.
    fn read_calls(&self, path: &Path) -> Result<()> {
        let dataset = Union::open(path)?;
        self.rows.store(
            dataset.count::<Span>()
                + dataset.count::<Block>()
                + dataset.count::<BlockLink>()
                + dataset.count::<FileRollup>(),
            Ordering::Relaxed,
        );
        let done = self
            .table(&dataset, Some("issue_ns"), Row::Block)
            .and_then(|()| self.table(&dataset, None, Row::BlockBytes))
            .and_then(|()| self.table(&dataset, None, Row::BlockLink))
            .and_then(|()| self.table(&dataset, Some("start_ns"), |row| Row::Span(Box::new(row))))
            // Calls of demoted functions.
            .and_then(|()| self.table(&dataset, Some("from_ns"), |row| Row::FileRollup(Box::new(row))));
        lock(&self.warnings).extend(dataset.warnings());
        done
    }

    /// Of a table whose rows have a time, those far from the window are not read.
    fn table<T: Table + Times + Renumber>(
        &self,
        dataset: &Union,
        time: Option<&'static str>,
        row: fn(T) -> Row,
    ) -> Result<()> {
        let mut rows = Vec::with_capacity(CHUNK);
        let take = |value: T| {
            rows.push(row(value));
            if rows.len() == CHUNK { self.take(&mut rows) } else { Ok(()) }
        };
        match (time, self.window) {
            (Some(column), Some(w)) => dataset.rows_around(column, &(w.from_ns..w.to_ns), take)?,
            _ => dataset.rows(take)?,
        }
        self.take(&mut rows)
    }

    fn take(&self, rows: &mut Vec<Row>) -> Result<()> {
        if self.cancel.load(Ordering::Relaxed) {
            bail!("reading was ended before all calls had been read");
        }
        while self.looks.load(Ordering::Relaxed) {
            std::thread::sleep(PASS);
        }
        let mut summary = lock(&self.summary);
        for row in &*rows {
            summary.push(row);
        }
        self.read.fetch_add(rows.len() as u64, Ordering::Relaxed);
        rows.clear();
        Ok(())
    }
}

/// What the figures of a dataset are made from before its calls are read.
pub fn made_from(dataset: &Union) -> From {
    if dataset.facts().contains_key(AGGREGATE) { From::Sums } else { From::Rollups }
}

/// What describes the run: small tables.
pub fn describe(dataset: &mut Union, to: &mut Summary) -> Result<()> {
    let mut rows = Vec::new();
    dataset.meta(&mut each(&mut rows, Row::Meta))?;
    dataset.coverage(&mut each(&mut rows, Row::Coverage))?;
    dataset.losses(&mut each(&mut rows, Row::Loss))?;
    dataset.metrics(&mut each(&mut rows, Row::Metric))?;
    for row in &rows {
        to.push(row);
    }
    described(dataset, to, |row: Mount| Row::Mount(Box::new(row)))?;
    let mut processes = Vec::new();
    dataset.rows(|process: Process| {
        processes.push(process.process_ix);
        to.push(&Row::Process(Box::new(process)));
        Ok(())
    })?;
    if dataset.nodes().len() > 1 {
        hosts(dataset, &processes, to);
    }
    described(dataset, to, Row::Thread)?;
    described(dataset, to, |row: File| Row::File(Box::new(row)))?;
    described(dataset, to, Row::Handle)?;
    described(dataset, to, Row::CallPath)?;
    described(dataset, to, Row::Object)
}

/// Which processes were on which node.
fn hosts(dataset: &Union, processes: &[i32], to: &mut Summary) {
    let mut known: BTreeMap<&str, Arc<str>> = BTreeMap::new();
    for ix in processes {
        if let Some(origin) = dataset.origin(IdKind::Process, i64::from(*ix)) {
            to.on_node(*ix, known.entry(origin.host).or_insert_with(|| origin.host.into()));
        }
    }
}

fn each<T: Clone>(to: &mut Vec<Row>, row: fn(T) -> Row) -> impl FnMut(&T) -> Result<()> {
    move |value| {
        to.push(row(value.clone()));
        Ok(())
    }
}

fn described<T: Table + Times + Renumber>(dataset: &Union, to: &mut Summary, row: fn(T) -> Row) -> Result<()> {
    dataset.rows(|value: T| {
        to.push(&row(value));
        Ok(())
    })
}

/// Reads the tree that a call is part of.
pub fn tree(path: &Path, span_id: i64, root_id: Option<i64>, into: &mut Summary) -> Result<Option<Waterfall>> {
    let mut dataset = Union::open(path)?;
    let mut root = root_id;
    if root.is_none() {
        dataset.rows(|span: Span| {
            if span.span_id == span_id {
                root = Some(span.root_id);
            }
            Ok(())
        })?;
    }
    let Some(root) = root else { return Ok(None) };
    let mut requests = BTreeSet::new();
    let roots = BTreeSet::from([root]);
    dataset.links_of_roots(&roots, |link| {
        requests.insert(link.req_id);
        into.push(&Row::BlockLink(link));
        Ok(())
    })?;
    dataset.requests(&requests, |block| {
        into.push(&Row::Block(block));
        Ok(())
    })?;
    dataset.spans_of_roots(&roots, &mut |span| {
        into.push(&Row::Span(Box::new(span.clone())));
        Ok(())
    })?;
    Ok(into.waterfall(span_id))
}
