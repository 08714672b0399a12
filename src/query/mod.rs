//! `query`: one figure of the calls that fulfil conditions, for each layer and group.
//!
//! Definitions are those of the report (`crate::analysis`): calls, inclusive time, bytes and errors are of the outermost
//! calls of a layer, exclusive time of all calls, durations are without the tracer's hooks. Rows are streamed; what is kept
//! of them is bounded, and where a bound is met the answer says so.

mod group;
pub mod options;
pub mod power;
mod render;
mod requests;
mod select;
mod table;

use std::collections::BTreeSet;
use std::io::Write;
use std::path::Path;

use anyhow::{Context, Result, bail};

use crate::analysis::trace::losses;
use crate::analysis::trace::source::Source;
use crate::base::usage::hint;
use crate::catalog;
use crate::export::report::Union;
use crate::query::group::Groups;
use crate::query::options::{By, Format, Metric, Query, Scope};
use crate::query::power::Table;
use crate::query::requests::{Energy, Requests};
use crate::query::select::{AncestorTracker, Selection};
use crate::query::table::{Answer, List};
use crate::rows::{AGGREGATE, DETAIL};
use crate::vocabulary::flag;

/// Answers a query about the datasets in a directory, and returns what is to be known about the answer.
///
/// # Errors
/// When there is no readable dataset, it has sums in place of what is asked, or `out` cannot be written to.
pub fn run(dir: &Path, query: &Query, power: &Table, format: Format, out: &mut dyn Write) -> Result<Vec<String>> {
    let mut runs = Union::open_related(dir)?;
    let [run] = runs.as_mut_slice() else {
        let (dir, n) = (dir.display(), runs.len());
        bail!("{dir} holds {n} runs that have nothing to do with each other: give one of them");
    };
    let answer = answer(run, query, power)?;
    render::write(&answer, query, format, out).context("cannot write the answer")?;
    let mut notes = answer.notes;
    notes.extend(run.warnings());
    Ok(notes)
}

/// Facts of a run that decide what can be asked.
struct Run {
    /// Calls are in sums.
    aggregate: bool,
    /// Some calls were recorded besides.
    detail: bool,
    duration_ns: i64,
}

impl Run {
    fn read(source: &mut dyn Source) -> Result<Self> {
        let mut run = Self { aggregate: false, detail: false, duration_ns: 0 };
        source.meta(&mut |row| {
            match row.key.as_str() {
                AGGREGATE => run.aggregate = true,
                DETAIL => run.detail = true,
                "end_ns" => run.duration_ns = row.value.parse().unwrap_or(0),
                _ => {}
            }
            Ok(())
        })?;
        Ok(run)
    }
}

fn answer(source: &mut dyn Source, query: &Query, power: &Table) -> Result<Answer> {
    let scope = query.scope().map_err(anyhow::Error::msg)?;
    let run = Run::read(source)?;
    let mut selection = Selection::new(query, source)?;
    let from_sums = run.aggregate && query.metric != Metric::List;
    if from_sums {
        refuse_sums(query, &selection)?;
    }
    if let Some(name) = &query.device {
        select::check_device(name, source)?;
    }
    let mut notes = Vec::new();
    let mut answer = if query.metric == Metric::List {
        if run.aggregate {
            notes.push(only_detail(&run)?);
        }
        list(source, query, scope, &mut selection)?
    } else {
        let mut groups = Groups::default();
        let mut devices = Vec::new();
        if query.metric.is_of_links() {
            devices = links(source, (query, &mut selection), (power, &run), &mut groups, &mut notes)?;
        } else {
            count(source, scope, (&mut selection, &mut groups), run.aggregate, &mut notes)?;
        }
        notes.extend(overflows(&groups));
        let mut answer = table::answer(source, query, &selection, groups)?;
        answer.devices = devices;
        answer
    };
    if answer.rows.is_empty() {
        notes.push(format!("nothing in the trace fulfils the conditions{}", misspelt(&query.functions)));
    }
    if selection.phases_overflow {
        notes.push("there are too many calls of phases to keep all: later ones are missing from the answer".to_owned());
    }
    if !losses::losses(source)?.quality().all() {
        notes.push("events were lost, so that figures may be too low: iotrace-bpf report names them".to_owned());
    }
    notes.append(&mut answer.notes);
    answer.notes = notes;
    Ok(answer)
}

/// Functions that the catalog lacks, with those that are close: they may be misspelt, or of a program's own catalog.
fn misspelt(functions: &[String]) -> String {
    let known: BTreeSet<&str> = catalog::rows().iter().map(|row| row.op).collect();
    let unknown = functions.iter().filter(|function| !known.contains(function.as_str()));
    let named = |function: &String| {
        format!("; no function of the catalog is called {function:?}{}", hint(function, known.iter().copied()))
    };
    unknown.map(named).collect()
}

fn refuse_sums(query: &Query, selection: &Selection) -> Result<()> {
    let metric = query.metric.name();
    let why = match selection.beyond_sums() {
        Some(why) => why.to_owned(),
        None if query.metric.is_of_sums() => return Ok(()),
        None => format!(
            "--metric {metric} needs single calls; sums have inclusive, exclusive, throughput, calls, max and avg"
        ),
    };
    bail!(
        "the trace was recorded with --aggregate: {why}; record without it, or with --detail and ask for --metric list"
    )
}

fn only_detail(run: &Run) -> Result<String> {
    if !run.detail {
        bail!("the trace was recorded with --aggregate and has no single calls: record without it, or with --detail");
    }
    Ok("the trace has sums of calls: only those recorded with --detail are listed".to_owned())
}

/// Puts calls, requests and sums into groups.
fn count(
    source: &mut dyn Source,
    scope: Scope,
    (selection, groups): (&mut Selection, &mut Groups),
    aggregate: bool,
    notes: &mut Vec<String>,
) -> Result<()> {
    if scope.calls {
        let mut tracker = AncestorTracker::default();
        source.spans(&mut |span| {
            let ancestors = tracker.of(span, selection);
            if span.flags & flag::SUMMED == 0
                && let Some(group) = selection.span(span, ancestors)
            {
                groups.span(span, selection.owner(span), group);
            }
            Ok(())
        })?;
    }
    if scope.requests && !aggregate {
        source.blocks(&mut |block| {
            if let Some((figures, group)) = selection.request(block) {
                groups.request(block, figures, group);
            }
            Ok(())
        })?;
    }
    // Without --aggregate these are of functions whose probes were taken away.
    let beyond = selection.beyond_sums();
    let mut left = 0_i64;
    source.sums(&mut |row| {
        match (beyond, selection.sums(row)) {
            (None, Some(group)) => groups.sums(row, selection.owner_of_sum(row), group),
            (Some(_), _) => left = left.saturating_add(row.calls),
            (None, None) => {}
        }
        Ok(())
    })?;
    if let Some(why) = beyond.filter(|_| left > 0) {
        notes.push(format!("{left} calls whose number is estimated are left out: {why}"));
    }
    Ok(())
}

/// Gives requests to the calls that led to them, and returns what their devices took.
fn links(
    source: &mut dyn Source,
    (query, selection): (&Query, &mut Selection),
    (power, run): (&Table, &Run),
    groups: &mut Groups,
    notes: &mut Vec<String>,
) -> Result<Vec<requests::Device>> {
    let of_energy = query.metric == Metric::Energy;
    let energy = of_energy.then(|| Energy::read(source, power, run.duration_ns)).transpose()?;
    let mut requests = Requests::read(source)?;
    requests.calls(source, selection, groups)?;
    requests.requests(source, (query, selection), groups, energy.as_ref())?;
    if requests.overflow || energy.as_ref().is_some_and(|energy| energy.overflow) {
        notes.push("there are too many requests: figures are of a part of them".to_owned());
    }
    let devices = energy.map(Energy::devices).unwrap_or_default();
    Ok(devices.into_iter().filter(|one| query.device.as_ref().is_none_or(|wanted| *wanted == one.name)).collect())
}

fn list(source: &mut dyn Source, query: &Query, scope: Scope, selection: &mut Selection) -> Result<Answer> {
    let mut list = List::new(query.limit);
    if scope.calls {
        let mut tracker = AncestorTracker::default();
        source.spans(&mut |span| {
            let ancestors = tracker.of(span, selection);
            if selection.span(span, ancestors).is_some() {
                list.span(span, selection.owner(span));
            }
            Ok(())
        })?;
    }
    if scope.requests {
        source.blocks(&mut |block| {
            if selection.request(block).is_some() {
                list.request(block);
            }
            Ok(())
        })?;
    }
    list.finish(source)
}

fn overflows(groups: &Groups) -> Vec<String> {
    let mut notes = Vec::new();
    if groups.overflow {
        notes.push("there are too many groups: those that came late are together in (others)".to_owned());
    }
    if groups.owners_overflow {
        notes.push("there are too many ranks and groups: times of ranks that came late are missing".to_owned());
    }
    notes
}

/// Do rows of one layer come in the order of their group, and not of their figure?
const fn is_ordered(by: By) -> bool {
    matches!(by, By::Time(_) | By::Rank)
}
