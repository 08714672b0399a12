//! Which calls a query is about, and which group each belongs to.

use std::collections::{BTreeSet, BinaryHeap};

use anyhow::{Result, ensure};

use crate::HashMap;
use crate::analysis::calls::{Figures, is_topmost, request_failed};
use crate::analysis::nesting::{Nesting, is_phase};
use crate::analysis::trace::source::Source;
use crate::base::usage::{bail, hint, list};
use crate::query::group::{Group, Owner};
use crate::query::options::{By, Query};
use crate::rows::{Block, FileRollup, Span};
use crate::summary::filter::fields::fields;
use crate::summary::filter::{CallFields, Filter};
use crate::vocabulary::{Kind, Layer};

/// Calls of phases that are remembered.
const PHASES_MAX: usize = 2 << 20;
/// Calls of all ranks together that are numbered.
const NUMBERED_MAX: usize = 1 << 22;

/// Is there a device of that name: one that got requests, or that files are on?
///
/// # Errors
/// Names those that there are.
pub fn check_device(name: &str, source: &mut dyn Source) -> Result<()> {
    let (mut known, mut numbers) = (BTreeSet::new(), BTreeSet::new());
    source.mounts(&mut |mount| {
        let names = mount.device.iter().chain(&mount.disk);
        known.extend(names.map(|name| name.strip_prefix("/dev/").unwrap_or(name).to_owned()));
        Ok(())
    })?;
    source.blocks(&mut |block| {
        // Many requests, few devices.
        if numbers.insert((block.dev, block.device.is_some())) || !known.contains(name) {
            known.insert(block.device_name());
        }
        Ok(())
    })?;
    source.sums(&mut |row| {
        known.extend(row.device.clone());
        Ok(())
    })?;
    if !known.contains(name) {
        let there = if known.is_empty() { "none".to_owned() } else { list(&known) };
        bail!("the trace has no device {name}{}; it has {there}", hint(name, &known));
    }
    Ok(())
}

/// Where a call is among the others.
type Position = (i64, i64);

fn position(span: &Span) -> Position {
    (span.start_ns, span.span_id)
}

/// Of the calls around a call, what a query may ask about.
#[derive(Debug, Clone, Copy, Default)]
pub struct Ancestors {
    /// The innermost phase around it.
    phase: Option<i64>,
    /// Is a call of the function that is asked for around it?
    inside: bool,
}

/// Finds the calls around each call, in the order of the dataset.
#[derive(Default)]
pub struct AncestorTracker(Nesting<bool>);

impl AncestorTracker {
    pub fn of(&mut self, span: &Span, selection: &Selection) -> Ancestors {
        let wanted = selection.query.inside.as_deref();
        if wanted.is_none() && !selection.follows_phases() {
            return Ancestors::default();
        }
        let inside = self.0.above(span).unwrap_or(false);
        let phase = self.0.enter(span, inside || wanted == Some(span.op)).phase;
        Ancestors { phase, inside }
    }
}

/// What has to be known about a trace before its calls are read.
pub struct Selection<'a> {
    query: &'a Query,
    /// By index of the process: calls that it made before its rank was known are of that rank, too.
    ranks: HashMap<i32, i32>,
    /// By id; only where the filter looks at paths.
    paths: HashMap<i32, String>,
    /// Calls of phases: the function, and the phase around them.
    phases: HashMap<i64, (&'static str, Option<i64>)>,
    /// The first and the last call of each rank that is asked for.
    numbered: Option<HashMap<Owner, (Position, Position)>>,
    /// Names of devices, in the order in which they came.
    devices: Vec<String>,
    /// There were too many calls of phases.
    pub phases_overflow: bool,
}

impl<'a> Selection<'a> {
    pub fn new(query: &'a Query, source: &mut dyn Source) -> Result<Self> {
        let mut own = Self {
            query,
            ranks: HashMap::default(),
            paths: HashMap::default(),
            phases: HashMap::default(),
            numbered: None,
            devices: Vec::new(),
            phases_overflow: false,
        };
        source.processes(&mut |process| {
            own.ranks.extend(process.rank.map(|rank| (process.process_ix, rank)));
            Ok(())
        })?;
        if query.filter.as_ref().is_some_and(Filter::is_of_paths) {
            source.files(&mut |file| {
                match &file.path {
                    Some(path) => own.paths.insert(file.file_id, path.clone()),
                    None => own.paths.remove(&file.file_id),
                };
                Ok(())
            })?;
        }
        if own.follows_phases() {
            own.find_phases(source)?;
        }
        if let Some(numbers) = &query.calls {
            own.numbered = Some(own.number(source, *numbers.start(), *numbers.end())?);
        }
        Ok(own)
    }

    /// Must it be known which phase a call is in?
    fn follows_phases(&self) -> bool {
        self.query.phase.is_some() || self.query.by == By::Phase
    }

    fn find_phases(&mut self, source: &mut dyn Source) -> Result<()> {
        let mut nesting = Nesting::default();
        source.spans(&mut |span| {
            let around = nesting.of(span);
            if is_phase(span) {
                if self.phases.len() < PHASES_MAX {
                    self.phases.insert(span.span_id, (span.op, around.phase));
                } else {
                    self.phases_overflow = true;
                }
            }
            Ok(())
        })
    }

    /// The positions of the `first`-th and the `last`-th matching call of each rank.
    fn number(
        &self,
        source: &mut dyn Source,
        first: usize,
        last: usize,
    ) -> Result<HashMap<Owner, (Position, Position)>> {
        let mut earliest = HashMap::<Owner, BinaryHeap<Position>>::default();
        let mut kept = 0_usize;
        let mut tracker = AncestorTracker::default();
        source.spans(&mut |span| {
            if !self.fits(span, tracker.of(span, self)) {
                return Ok(());
            }
            let calls = earliest.entry(self.owner(span)).or_default();
            calls.push(position(span));
            if calls.len() > last {
                calls.pop();
            } else {
                kept += 1;
                ensure!(
                    kept <= NUMBERED_MAX,
                    "there are too many ranks to number so many calls of each: ask for fewer"
                );
            }
            Ok(())
        })?;
        let ends = |(owner, calls): (Owner, BinaryHeap<Position>)| {
            let sorted = calls.into_sorted_vec();
            Some((owner, (*sorted.get(first - 1)?, *sorted.last()?)))
        };
        Ok(earliest.into_iter().filter_map(ends).collect())
    }

    fn rank(&self, process_ix: Option<i32>, recorded: Option<i32>) -> Option<i32> {
        process_ix.and_then(|ix| self.ranks.get(&ix).copied()).or(recorded)
    }

    /// Whose call it is.
    pub fn owner(&self, span: &Span) -> Owner {
        Owner::of(span, self.rank(Some(span.process_ix), span.rank))
    }

    /// Whose calls were summed up.
    pub fn owner_of_sum(&self, row: &FileRollup) -> Owner {
        Owner::of_sum(row, self.rank(row.process_ix, row.rank))
    }

    fn path(&self, file: Option<i32>) -> Option<&str> {
        self.paths.get(&file?).map(String::as_str)
    }

    fn in_time(&self, start_ns: i64) -> bool {
        self.query.time.as_ref().is_none_or(|time| time.contains(&start_ns))
    }

    /// The phases around a call, the innermost first.
    fn around(&self, phase: Option<i64>) -> impl Iterator<Item = &'static str> {
        let known = |id: Option<i64>| self.phases.get(&id?);
        std::iter::successors(known(phase), move |(_, outer)| known(*outer)).map(|(op, _)| *op)
    }

    /// Every condition but that of the number.
    fn fits(&self, span: &Span, ancestors: Ancestors) -> bool {
        let rank = self.rank(Some(span.process_ix), span.rank);
        let fields = CallFields { rank, ..fields(span, self.path(span.file_id)) };
        self.in_time(span.start_ns)
            && self.query.filter.as_ref().is_none_or(|filter| filter.matches(&fields))
            && self.query.phase.as_deref().is_none_or(|name| self.around(ancestors.phase).any(|op| op == name))
            && (self.query.inside.is_none() || ancestors.inside)
    }

    /// The group of a call; none where the query is not about it.
    pub fn span(&self, span: &Span, ancestors: Ancestors) -> Option<Group> {
        if !self.fits(span, ancestors) {
            return None;
        }
        if let Some(numbered) = &self.numbered {
            let (first, last) = numbered.get(&self.owner(span))?;
            if !(*first..=*last).contains(&position(span)) {
                return None;
            }
        }
        Some(match self.query.by {
            // Requests have one; it is filled in with them.
            By::Layer | By::Device => Group::All,
            By::Rank => Group::Owner(self.owner(span)),
            By::File => Group::File(span.file_id),
            By::Op => Group::Op(span.op),
            By::Phase => Group::Phase(self.around(ancestors.phase).next()),
            By::Time(width) => bin(span.start_ns, width),
        })
    }

    /// The same of a request to a device, with what it comes to. Requests that stacked devices hand down are the same
    /// request again, and count only by device.
    pub fn request(&mut self, block: &Block) -> Option<((Kind, Figures), Group)> {
        let (kind, figures) = Figures::of_request(block)?;
        let of_device = self.query.by == By::Device || self.query.device.is_some();
        if !(of_device || is_topmost(block)) || !self.is_on_device(block) || !self.in_time(block.issue_ns) {
            return None;
        }
        let fields = CallFields {
            layer: Layer::Block,
            op: block.op,
            kind,
            path: None,
            pid: block.pid,
            tid: block.pid,
            rank: None,
            dur_ns: figures.inclusive_ns,
            self_ns: 0,
            offset: block.sector.checked_mul(512),
            bytes: Some(figures.bytes()),
            errno: i16::from(request_failed(block)),
        };
        if self.query.filter.as_ref().is_some_and(|filter| !filter.matches(&fields)) {
            return None;
        }
        let group = match self.query.by {
            By::Op => Group::Op(block.op),
            By::Device => self.device(block),
            By::Time(width) => bin(block.issue_ns, width),
            By::Layer => Group::All,
            // Requests have none of these.
            By::Rank | By::File | By::Phase => return None,
        };
        Some(((kind, figures), group))
    }

    /// Is it to the device that is asked for, if any?
    pub fn is_on_device(&self, block: &Block) -> bool {
        self.query.device.as_ref().is_none_or(|wanted| *wanted == block.device_name())
    }

    /// The group of its device.
    pub fn device(&mut self, block: &Block) -> Group {
        self.named(block.device_name())
    }

    fn named(&mut self, name: String) -> Group {
        let known = self.devices.iter().position(|known| *known == name);
        Group::Device(known.unwrap_or_else(|| {
            self.devices.push(name);
            self.devices.len() - 1
        }))
    }

    /// The name of a device by its number.
    pub fn device_of(&self, number: usize) -> Option<&str> {
        self.devices.get(number).map(String::as_str)
    }

    /// The group of calls that were summed up.
    pub fn sums(&mut self, row: &FileRollup) -> Option<Group> {
        let fields = CallFields {
            layer: row.layer,
            op: row.op,
            kind: row.kind,
            path: self.path(row.file_id),
            pid: row.pid.unwrap_or(0),
            tid: 0,
            rank: self.rank(row.process_ix, row.rank),
            dur_ns: 0,
            self_ns: 0,
            offset: None,
            bytes: None,
            errno: 0,
        };
        if self.query.filter.as_ref().is_some_and(|filter| !filter.matches(&fields)) {
            return None;
        }
        let of_device = self.query.by == By::Device || self.query.device.is_some();
        if of_device
            && (row.layer != Layer::Block || self.query.device.as_ref().is_some_and(|d| row.device.as_ref() != Some(d)))
        {
            return None;
        }
        Some(match self.query.by {
            By::Layer => Group::All,
            By::Rank => Group::Owner(self.owner_of_sum(row)),
            By::File => Group::File(row.file_id),
            By::Op => Group::Op(row.op),
            By::Device => self.named(row.device.clone().unwrap_or_else(|| "unknown".to_owned())),
            By::Phase | By::Time(_) => return None,
        })
    }

    /// Why sums cannot answer, if so.
    pub fn beyond_sums(&self) -> Option<&'static str> {
        let query = self.query;
        if query.filter.as_ref().is_some_and(|filter| !filter.is_of_sums()) {
            Some("a condition is on what single calls have")
        } else if query.calls.is_some() {
            Some("--calls is about single calls")
        } else if query.phase.is_some() || query.inside.is_some() || query.by == By::Phase {
            Some("sums do not know the phase of a call, nor the call around it")
        } else if query.time.is_some() || matches!(query.by, By::Time(_)) {
            Some("sums are over long times")
        } else {
            None
        }
    }
}

fn bin(ns: i64, width: i64) -> Group {
    let width = width.max(1);
    Group::Time(ns.div_euclid(width).saturating_mul(width))
}
