//! `whatif`: how long a recorded run would have taken if one thing had been different, as a range.
//!
//! The time in calls is what the findings split into disjoint parts (`crate::analysis::findings::split`): a condition changes
//! some of them, with costs that were measured in the same trace. What no condition is about stays as it was.

mod after;
pub mod condition;
mod costs;
mod devices;
mod model;
mod models;
mod render;
#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests;

use std::io::Write;
use std::path::Path;

use anyhow::{Context, Result, bail, ensure};
use serde::Serialize;

use crate::analysis::findings::groups::group::UNKNOWN;
use crate::analysis::findings::{Collect, Trace, unseen};
use crate::analysis::nesting::Nesting;
use crate::analysis::trace::coverage::coverage;
use crate::analysis::trace::losses::{Losses, losses};
use crate::analysis::trace::share::{TRUSTED_SHARE, Tracing};
use crate::analysis::trace::source::Source;
use crate::base::text::percent;
use crate::export::report::Union;
use crate::rows::AGGREGATE;
use crate::vocabulary::{Layer, flag};
use condition::Condition;
use costs::Costs;
use devices::Devices;
use model::{Model, Range, Recorded};
use models::ModelInputs;

/// The critical lane: a rank, or processes one after the other.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Critical {
    pub rank: Option<i32>,
    pub processes: Vec<i32>,
    /// Seconds that it was in calls.
    pub calls_s: f64,
}

/// What a condition comes to.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Alone {
    /// As on the command line.
    pub condition: String,
    #[serde(flatten)]
    pub range: Range,
    /// Calls of the critical lane that it is about, and their seconds as recorded.
    pub calls: i64,
    pub seconds: f64,
    /// What the range rests on.
    pub model: String,
}

/// The run as it was, and as it would have been.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Answer {
    /// Seconds of the recorded run, without those that tracing took, which come next.
    pub run_s: f64,
    pub tracing_s: f64,
    pub critical: Critical,
    pub conditions: Vec<Alone>,
    pub together: Range,
    /// What makes figures less than they seem.
    pub caveats: Vec<String>,
}

/// Answers for the datasets in a directory, as JSON or in lines of that width, and returns what could not be read.
///
/// # Errors
/// When there is no readable dataset, it has not what a condition needs, or `out` cannot be written to.
pub fn run(dir: &Path, conditions: &[Condition], json: bool, width: usize, out: &mut dyn Write) -> Result<Vec<String>> {
    let mut runs = Union::open_related(dir)?;
    let [run] = runs.as_mut_slice() else {
        let (dir, n) = (dir.display(), runs.len());
        bail!("{dir} holds {n} runs that have nothing to do with each other: give one of them");
    };
    let answer = answer(run, conditions)?;
    let text = if json {
        crate::base::text::json(&serde_json::to_string_pretty(&answer)?) + "\n"
    } else {
        render::text(&answer, width)
    };
    out.write_all(text.as_bytes()).context("cannot write the answer")?;
    Ok(run.warnings())
}

/// Facts of the run.
struct Run {
    end_ns: Option<i64>,
    tracing: Tracing,
    losses: Losses,
}

impl Run {
    fn read(source: &mut dyn Source) -> Result<Self> {
        let mut run = Self { end_ns: None, tracing: Tracing::default(), losses: losses(source)? };
        let mut aggregate = false;
        source.meta(&mut |row| {
            match row.key.as_str() {
                AGGREGATE => aggregate = true,
                "end_ns" => run.end_ns = row.value.parse().ok(),
                _ => {}
            }
            Ok(())
        })?;
        source.metrics(&mut |row| {
            run.tracing.add(row);
            Ok(())
        })?;
        ensure!(
            !aggregate,
            "the trace was recorded with --aggregate and has no single calls, which the model is made of: record without it"
        );
        let share = run.tracing.share().unwrap_or(0.0);
        ensure!(
            share <= TRUSTED_SHARE,
            "tracing took about {} of the run: its seconds say nothing about other runs. Record less: --layers syscall,block, \
             or --max-overhead 5%",
            percent(share)
        );
        Ok(run)
    }

    fn caveats(&self) -> Vec<String> {
        let (lost, _) = self.losses.by_layer();
        let known = [
            (lost > 0, format!("{lost} events were lost: times of calls may be too low")),
            (self.tracing.share().is_none(), "what tracing took of the run was not recorded".to_owned()),
            (self.end_ns.is_none(), "the end of the run was not recorded".to_owned()),
        ];
        known.into_iter().filter(|(is, _)| *is).map(|(_, text)| text).collect()
    }
}

fn answer(source: &mut dyn Source, conditions: &[Condition]) -> Result<Answer> {
    let run = Run::read(source)?;
    let (coverage, _) = coverage(source)?;
    let (mut collect, mut nesting) = (Collect::new(source)?, Nesting::default());
    let (mut costs, mut last) = (Costs::default(), 0);
    source.spans(&mut |span| {
        let around = nesting.of(span);
        last = span.end_ns().max(last);
        if span.flags & flag::SUMMED == 0 {
            collect.span(span, &around);
            costs.span(span, collect.is_synced(span));
        }
        Ok(())
    })?;
    let of_devices = conditions.iter().any(|condition| matches!(condition, Condition::Device(_)));
    let devices = if of_devices { Devices::read(source)? } else { Devices::default() };
    let trace = Trace {
        duration_ns: run.tracing.run_ns().or(run.end_ns).unwrap_or(last),
        tracing: run.tracing.share(),
        coverage: &coverage,
        losses: &run.losses,
        aggregate: false,
        nodes: source.nodes().len(),
    };
    let split = collect.split(source, &trace)?;
    seen(Layer::Syscall, &trace, split.calls(Layer::Syscall))?;
    if of_devices {
        seen(Layer::Block, &trace, devices.requests)?;
    }
    // While the run was held for probes it was in no call.
    let (run_s, tracing_s) = split.run_s();
    let tracing_s = tracing_s + run.tracing.held_ns() / 1e9;
    let recorded = Recorded::new((run_s, tracing_s), split.lanes());
    let waits_unknown: f64 = recorded.lanes.iter().take(1).flat_map(|l| &l.portions).map(|p| p.parts[UNKNOWN]).sum();
    ensure!(
        waits_unknown <= recorded.calls_s() / 2.0,
        "the trace has not what {} of the time in calls went to: record on a kernel that has the scheduler's times \
         (CONFIG_SCHED_INFO; `iotrace-bpf doctor`)",
        percent(waits_unknown / recorded.calls_s().max(1e-9))
    );
    let inputs = ModelInputs { split: &split, costs: &costs, devices: &devices };
    let models = conditions.iter().map(|condition| models::of(condition, &recorded, &inputs));
    let models = models.collect::<Result<Vec<Model<'_>>>>()?;
    Ok(answer_of(&recorded, &models, tracing_s, run.caveats()))
}

/// # Errors
/// When a layer was not recorded, or much of it was lost.
fn seen(layer: Layer, trace: &Trace<'_>, calls: i64) -> Result<()> {
    if let Some(why) = unseen(layer, trace, calls) {
        bail!("{why}: record with --layers syscall,block, as is the default, and a --ring-size that loses nothing");
    }
    Ok(())
}

fn answer_of(recorded: &Recorded<'_>, models: &[Model<'_>], tracing_s: f64, caveats: Vec<String>) -> Answer {
    let alone = |model: &Model<'_>| {
        let touched = recorded.touched(model);
        Alone {
            condition: model.condition.clone(),
            range: recorded.with(&[model]),
            calls: touched.calls,
            seconds: touched.seconds,
            model: model.description.clone(),
        }
    };
    let lane = recorded.lanes.first();
    let critical = Critical {
        rank: lane.and_then(|lane| lane.rank),
        processes: lane.map_or_else(Vec::new, |lane| lane.pids.clone()),
        calls_s: recorded.calls_s(),
    };
    Answer {
        run_s: recorded.run_s,
        tracing_s,
        critical,
        conditions: models.iter().map(alone).collect(),
        together: recorded.with(&models.iter().collect::<Vec<_>>()),
        caveats,
    }
}
