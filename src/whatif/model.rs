//! From changed parts of calls to a changed run: what a lane's calls take then, and which lane is the slowest then.

use serde::Serialize;

use crate::analysis::findings::groups::group::{CPU, RUNQ};
use crate::analysis::findings::split::{OfLane, Parts, Portion};

/// What the parts of some calls take at least and at most, in seconds.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Bounds {
    pub low: Parts,
    pub high: Parts,
}

impl Bounds {
    /// As they were measured.
    pub const fn measured(parts: Parts) -> Self {
        Self { low: parts, high: parts }
    }

    /// A part takes so many times as long, at least and at most.
    pub fn scale(&mut self, part: usize, (low, high): (f64, f64)) {
        self.low[part] *= low;
        self.high[part] *= high;
    }

    /// Parts that take no time any more: for certain, or possibly.
    pub fn remove(&mut self, parts: &[usize], certain: bool) {
        for part in parts {
            self.scale(*part, (0.0, if certain { 0.0 } else { 1.0 }));
        }
    }

    /// Calls do not sleep, and take no longer on a CPU than this, at least and at most. They wait for one at most as long as
    /// they are on it: what waits longer has slept before.
    pub fn limit_cpu(&mut self, (low, high): (f64, Option<f64>)) {
        self.low[CPU] = self.low[CPU].min(low);
        self.high[CPU] = self.high[CPU].min(high.unwrap_or(f64::INFINITY).max(self.low[CPU]));
        self.low[RUNQ] = 0.0;
        self.high[RUNQ] = self.high[RUNQ].min(self.high[CPU]);
    }

    fn total(&self) -> (f64, f64) {
        (self.low.iter().sum(), self.high.iter().sum())
    }
}

/// Changes the parts of calls that a condition is about, and returns whether it is about these.
pub type Change<'a> = Box<dyn Fn(&Portion<'_>, &mut Bounds) -> bool + 'a>;

/// A condition as a model.
pub struct Model<'a> {
    pub condition: String,
    /// What it rests on.
    pub description: String,
    pub change: Change<'a>,
    /// What the critical lane does besides takes so many seconds less at best.
    pub besides_s: f64,
    /// The run may take so many seconds for another reason than calls.
    pub at_most_s: f64,
}

/// How long a run would have taken.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Range {
    pub low_s: f64,
    pub high_s: f64,
    /// The same over what was recorded.
    pub low_share: f64,
    pub high_share: f64,
}

/// Calls of the critical lane that a condition is about, and their time as it was.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Touched {
    pub calls: i64,
    pub seconds: f64,
}

/// A run as it was.
pub struct Recorded<'a> {
    /// Seconds, without what tracing took.
    pub run_s: f64,
    /// The critical one first.
    pub lanes: Vec<OfLane<'a>>,
}

impl<'a> Recorded<'a> {
    /// The run without tracing is no shorter than the time of its calls, which have none of it.
    pub fn new((run_s, tracing_s): (f64, f64), lanes: Vec<OfLane<'a>>) -> Self {
        let mut recorded = Self { run_s: 0.0, lanes };
        recorded.run_s = (run_s - tracing_s).max(recorded.calls_s());
        recorded
    }

    /// Seconds of the critical lane in calls.
    pub fn calls_s(&self) -> f64 {
        self.lanes.first().map_or(0.0, |lane| lane.portions.iter().map(seconds).sum())
    }

    pub fn portions(&self) -> impl Iterator<Item = &Portion<'a>> {
        self.lanes.iter().flat_map(|lane| &lane.portions)
    }

    /// With these conditions together. At best what the critical lane saves, the run does. At worst another lane then has more
    /// to do than it.
    pub fn with(&self, models: &[&Model<'_>]) -> Range {
        let changes: Vec<(f64, f64)> = self.lanes.iter().map(|lane| change(lane, models)).collect();
        let Some(critical) = changes.first() else { return self.range(self.run_s, self.run_s) };
        let then = self.lanes.iter().zip(&changes).map(|(lane, (_, high))| lane.own_s + high).fold(0.0, f64::max);
        let own = self.lanes.first().map_or(0.0, |lane| lane.own_s);
        let outside = self.run_s - self.calls_s();
        let besides = models.iter().map(|model| model.besides_s).sum::<f64>();
        let low = (self.run_s + critical.0).max(outside) - besides;
        let high = models.iter().map(|model| model.at_most_s).fold(self.run_s + critical.1.max(then - own), f64::max);
        self.range(low.max(0.0), high.max(outside))
    }

    fn range(&self, low_s: f64, high_s: f64) -> Range {
        let share = |seconds: f64| seconds / self.run_s.max(1e-9);
        Range { low_s, high_s, low_share: share(low_s), high_share: share(high_s) }
    }

    /// What a condition is about.
    pub fn touched(&self, model: &Model<'_>) -> Touched {
        let mut touched = Touched::default();
        for portion in self.lanes.first().into_iter().flat_map(|lane| &lane.portions) {
            if (model.change)(portion, &mut Bounds::measured(portion.parts)) {
                touched.calls = touched.calls.saturating_add(portion.group.calls);
                touched.seconds += seconds(portion);
            }
        }
        touched
    }
}

pub fn seconds(portion: &Portion<'_>) -> f64 {
    portion.parts.iter().sum()
}

/// By how much the calls of a lane take longer then: at least, and at most.
fn change(lane: &OfLane<'_>, models: &[&Model<'_>]) -> (f64, f64) {
    let mut sum = (0.0, 0.0);
    for portion in &lane.portions {
        let mut bounds = Bounds::measured(portion.parts);
        // Each changes what those before it have left.
        let mut changed = false;
        for model in models {
            changed |= (model.change)(portion, &mut bounds);
        }
        if changed {
            let ((low, high), before) = (bounds.total(), seconds(portion));
            // What is less by rounding is none.
            sum = (sum.0 + low.min(high) - before, sum.1 + high.max(low) - before);
        }
    }
    sum
}
