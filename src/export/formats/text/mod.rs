//! `--to text`: a dataset as lines to read and to grep. First what the node and the run are, each line with a `#`; then
//! a line for each call and each request to a device in the order of time, with what caused it.

mod callers;
mod lines;
mod platform;
mod windows;

use std::collections::{BTreeMap, BTreeSet};
use std::io::Write;
use std::ops::Range;

use anyhow::{Context, Result};

use crate::HashMap;
use crate::analysis::only::{Condition, Only};
use crate::analysis::trace::source::{IdKind, Source};
use crate::export::formats::texts::Texts;
use crate::export::report::{Config, Finding, Report, Scope, Union, build_of};
use crate::rows::{Block, BlockLink, Span};
use callers::Callers;
use lines::{Around, Cause};
use windows::Windows;

/// Calls that are named as the cause of one request; its line has the number of the others.
const CAUSES: usize = 8;

/// What is written of the calls.
#[derive(Clone, Copy)]
pub struct Chosen<'a> {
    /// Only calls that fulfil this, and requests for them.
    pub only: Option<&'a dyn Condition>,
    /// Only what began then, in ns since the start of the trace.
    pub time: Option<&'a Range<i64>>,
}

/// Writes all lines, and returns what of the datasets they do not have. Calls are read in windows of time: memory does
/// not grow with their number.
pub fn write(union: &mut Union, chosen: Chosen<'_>, out: &mut dyn Write) -> Result<Vec<String>> {
    let scope = Scope { only_findings: true, ..Scope::default() };
    let report = build_of(union, &Config::default(), &scope)?;
    let only = Only::read(union, chosen.only, report.header.aggregate)?;
    let texts = Texts::read(union)?;
    platform::write(union, &report, out).context("cannot write the text")?;
    let mut text = Text { rules: rules(union, &report), union, only, texts, callers: Callers::default() };
    let limits = chosen.time.cloned().unwrap_or(i64::MIN..i64::MAX);
    text.begun_before(limits.start)?;
    for window in text.windows()?.within(&limits) {
        text.window(&window, out)?;
    }
    let mut warnings = Source::warnings(text.union);
    warnings.extend(
        text.texts.overflow.then(|| "there are more names of files than are kept: some are missing".to_owned()),
    );
    Ok(warnings)
}

/// The rules whose findings name a call, where an id means one call only.
fn rules(union: &Union, report: &Report) -> HashMap<i64, Vec<&'static str>> {
    let mut rules = HashMap::<i64, Vec<&'static str>>::default();
    if union.hosts(IdKind::Span).0.is_empty() {
        let of = |finding: &Finding| finding.evidence.spans.iter().map(|id| (*id, finding.rule)).collect::<Vec<_>>();
        report.findings.findings.iter().flat_map(of).for_each(|(id, rule)| rules.entry(id).or_default().push(rule));
    }
    rules
}

/// What a window of time has, in its order.
enum Event {
    Call(Box<Span>),
    Request(Block),
}

impl Event {
    /// A call comes before those inside it.
    fn key(&self) -> (i64, bool, i8, i64) {
        match self {
            Self::Call(span) => (span.start_ns, false, span.depth, span.span_id),
            Self::Request(block) => (block.issue_ns, true, 0, block.req_id),
        }
    }
}

struct Text<'a> {
    union: &'a Union,
    only: Only<'a>,
    texts: Texts,
    callers: Callers,
    rules: HashMap<i64, Vec<&'static str>>,
}

/// The calls that led to a request, those with the most bytes first, and how many more there are.
type Causes = HashMap<i64, (Vec<Cause>, usize)>;

impl Text<'_> {
    fn windows(&self) -> Result<Windows> {
        let mut windows = Windows::default();
        self.union.rows(|span: Span| {
            windows.add(span.start_ns);
            Ok(())
        })?;
        self.union.rows(|block: Block| {
            windows.add(block.issue_ns);
            Ok(())
        })?;
        Ok(windows)
    }

    /// Calls that are open then have names for those inside them.
    fn begun_before(&mut self, ns: i64) -> Result<()> {
        let mut open = Vec::new();
        self.union.rows_around("start_ns", &(i64::MIN..ns), |span: Span| {
            if span.start_ns < ns && span.end_ns() > ns {
                open.push(span);
            }
            Ok(())
        })?;
        open.sort_by_key(|span| (span.start_ns, span.depth, span.span_id));
        for span in &open {
            self.callers.enter(span);
        }
        Ok(())
    }

    fn window(&mut self, window: &Range<i64>, out: &mut dyn Write) -> Result<()> {
        let mut events = Vec::new();
        self.union.rows_around("start_ns", window, |span: Span| {
            if window.contains(&span.start_ns) {
                events.push(Event::Call(Box::new(span)));
            }
            Ok(())
        })?;
        let mut requests = BTreeSet::new();
        self.union.rows_around("issue_ns", window, |block: Block| {
            if window.contains(&block.issue_ns) {
                requests.insert(block.req_id);
                events.push(Event::Request(block));
            }
            Ok(())
        })?;
        let causes = self.causes(&requests)?;
        events.sort_by_key(Event::key);
        for event in &events {
            let line = match event {
                Event::Call(span) => self.call(span),
                Event::Request(block) => self.request(block, causes.get(&block.req_id)),
            };
            if let Some(line) = line {
                writeln!(out, "{line}").context("cannot write the text")?;
            }
        }
        Ok(())
    }

    /// The node, where there are several, and the id there.
    fn own(&self, kind: IdKind, id: i64) -> (Option<&str>, i64) {
        self.union.origin(kind, id).map_or((None, id), |origin| (Some(origin.host), origin.id))
    }

    fn call(&mut self, span: &Span) -> Option<String> {
        // Also of those that are left out: others are inside them.
        let caller = self.callers.enter(span);
        if !self.only.span(span) {
            return None;
        }
        let (host, id) = self.own(IdKind::Span, span.span_id);
        let by = |parent| Cause { id: self.own(IdKind::Span, parent).1, op: caller, how: None, bytes: None };
        let around = Around {
            host,
            id,
            path: self.texts.path(span),
            path2: self.texts.path2(span),
            object: self.texts.object(span),
            causes: &span.parent_id.map(by).into_iter().collect::<Vec<_>>(),
            more: 0,
            rules: self.rules.get(&span.span_id).map_or(&[], Vec::as_slice),
        };
        Some(lines::call(span, &around))
    }

    fn request(&self, block: &Block, causes: Option<&(Vec<Cause>, usize)>) -> Option<String> {
        if causes.is_none() && self.only.is_restricted() {
            return None;
        }
        let (host, id) = self.own(IdKind::Request, block.req_id);
        let (causes, more) = causes.map_or((&[][..], 0), |(causes, more)| (causes.as_slice(), *more));
        let around = Around { host, id, path: None, path2: None, object: None, causes, more, rules: &[] };
        Some(lines::request(block, &around))
    }

    /// The calls that these requests are for: that submitted them, or wrote the bytes that they write back.
    fn causes(&self, requests: &BTreeSet<i64>) -> Result<Causes> {
        let (Some(first), Some(last)) = (requests.first(), requests.last()) else { return Ok(Causes::default()) };
        let mut links = Vec::new();
        self.union.links_of_requests(&(*first..last.saturating_add(1)), |link: BlockLink| {
            if requests.contains(&link.req_id) {
                links.push(link);
            }
            Ok(())
        })?;
        let mut calls: BTreeMap<i64, Option<&'static str>> = links.iter().map(|link| (link.span_id, None)).collect();
        let roots = links.iter().map(|link| link.root_id).collect();
        self.union.spans_below(&roots, |span| {
            if let Some(op) = calls.get_mut(&span.span_id) {
                *op = self.only.span(&span).then_some(span.op);
            }
            Ok(())
        })?;
        // The most bytes of each request first.
        links.sort_by_key(|link| (link.req_id, -link.bytes, link.span_id));
        let mut causes = Causes::default();
        for link in links {
            let op = calls.get(&link.span_id).copied().flatten();
            if op.is_none() && self.only.is_restricted() {
                continue;
            }
            let (named, more) = causes.entry(link.req_id).or_default();
            if named.len() >= CAUSES {
                *more += 1;
                continue;
            }
            let (_, id) = self.own(IdKind::Span, link.span_id);
            named.push(Cause { id, op, how: Some(link.how), bytes: Some(link.bytes) });
        }
        Ok(causes)
    }
}
