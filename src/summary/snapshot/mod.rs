//! Sums to a snapshot: only what the screen that is open shows.

mod devices;
mod latency;
mod overview;
mod tables;

use std::sync::Arc;

use crate::analysis::findings::Findings;
use crate::rows::Span;
use crate::summary::accumulate::{From, Summary};
use crate::summary::bins::Merge as _;
use crate::summary::filter::fields::fields;
use crate::summary::view::{
    DeviceSample, Events, Focus, History, ProcessDetail, ProcessFocus, ProcessPart, RunHeader, Screen, Snapshot,
    Status, Sums, Window,
};
use crate::vocabulary::{LAYERS, Layer};

impl Summary {
    /// The figures as they are.
    pub fn snapshot(&self, focus: &Focus) -> Snapshot {
        let kept = self.kept();
        // A window on all there is leaves nothing out.
        let all = |w: &Window| w.from_ns <= kept.from_ns && w.to_ns >= kept.to_ns;
        let whole = Focus { window: None, ..focus.clone() };
        let focus = if focus.window.as_ref().is_some_and(all) { &whole } else { focus };
        let is = |screen| focus.screen == screen;
        Snapshot {
            run: Arc::new(RunHeader { summed: self.from == From::Sums, ..self.dims.run.clone() }),
            kept,
            window: focus.window.unwrap_or(kept),
            status: self.status(),
            history: Arc::new(self.history()),
            overview: Arc::new(self.overview(focus.window)),
            processes: if is(Screen::Processes) || is(Screen::Overview) {
                Arc::new(self.process_rows(focus.window, focus.threads && is(Screen::Processes)))
            } else {
                Arc::default()
            },
            files: if is(Screen::Files) || is(Screen::Overview) { Arc::new(self.file_rows()) } else { Arc::default() },
            file: focus.file_id.filter(|_| is(Screen::Files)).and_then(|id| self.file_detail(id)).map(Arc::new),
            tree: if is(Screen::Tree) { Arc::new(self.tree_rows()) } else { Arc::default() },
            node: focus.node.filter(|_| is(Screen::Tree)).and_then(|id| self.node_detail(id)).map(Arc::new),
            waterfall: focus.span_id.and_then(|id| self.recent.waterfall(id, &self.dims)).map(Arc::new),
            latency: if is(Screen::Latency) { Arc::new(self.latency(focus)) } else { Arc::default() },
            events: if is(Screen::Events) { Arc::new(self.events(focus.window)) } else { Arc::default() },
            devices: if is(Screen::Devices) { Arc::new(self.device_rows(focus.window)) } else { Arc::default() },
            coverage: if is(Screen::Coverage) { Arc::new(self.dims.coverage()) } else { Arc::default() },
            findings: if is(Screen::Findings) { Arc::new(self.found(focus.window)) } else { Arc::default() },
            inflight: None,
            recent_node: None,
            process: focus.process.as_ref().filter(|_| is(Screen::Processes)).and_then(|of| self.process(of)),
            output: None,
            loading: None,
            notes: self.notes(focus).into(),
        }
    }

    /// All there is to look at.
    pub fn kept(&self) -> Window {
        Window { from_ns: 0, to_ns: self.end_ns() }
    }

    /// Up to where there are figures.
    pub(in crate::summary) fn end_ns(&self) -> i64 {
        let length = |n: usize, width: i64| (n as i64).saturating_mul(width);
        let bins = length(self.layers.all().len(), self.layers.width_ns());
        let disk = length(self.disks.top.history.all().len(), self.disks.top.history.width_ns());
        self.dims.end_ns().unwrap_or_else(|| self.now_ns.max(bins).max(disk))
    }

    fn notes(&self, focus: &Focus) -> Vec<String> {
        let mut notes = Vec::new();
        let mut note = |n: u64, what: &str| {
            if n > 0 {
                notes.push(format!("{n} {what}"));
            }
        };
        note(self.dims.forgotten, "files, processes, handles or objects are not known by name: there are too many");
        note(self.ops.lost, "calls are in no distribution: there are too many different functions");
        note(self.tree.other.rows, "calls found no room in the call tree");
        if !self.dims.demoted.is_empty() {
            let names: Vec<&str> = self.dims.demoted.iter().map(String::as_str).collect();
            let names = names.join(", ");
            notes.push(format!("the number of calls of {names} is estimated: they are shorter than their probe"));
        }
        if self.dims.paused {
            notes.push("the number of MPI calls is estimated: there were too many to record each".to_owned());
        }
        if focus.window.is_some() && self.window != focus.window && matches!(focus.screen, Screen::Files | Screen::Tree)
        {
            notes.push("files and the call tree are over all that was seen, not over the window".to_owned());
        }
        if self.from == From::Sums {
            if matches!(focus.screen, Screen::Tree | Screen::Events) {
                notes.push(
                    "calls are summed up: single ones, and what calls what, are known of those of --detail only"
                        .to_owned(),
                );
            }
            if self.filter.as_ref().is_some_and(|filter| !filter.is_of_sums()) {
                notes.push(
                    "calls are summed up: a filter may be on layer, op, kind, file, pid and rank only".to_owned(),
                );
            }
        }
        if self.filter.is_some() && matches!(focus.screen, Screen::Devices) {
            notes.push("devices are shown whole: the filter is on calls".to_owned());
        }
        notes
    }

    fn status(&self) -> Status {
        let (lost, lost_by_layer) = self.dims.lost_by_layer();
        let (probes_attached, probes) = self.dims.probes();
        let ended = self.dims.processes.values().filter(|p| p.end_ns.is_some()).count();
        let processes = self.dims.processes.len() - ended;
        Status {
            tracing: self.dims.tracing.share(),
            lost,
            lost_by_layer,
            probes_attached,
            probes,
            processes,
            processes_ended: ended,
            ..Status::default()
        }
    }

    fn history(&self) -> History {
        let width_ns = self.layers.width_ns().max(self.disks.top.history.width_ns()).max(self.dims.lost.width_ns());
        let length =
            usize::try_from(self.end_ns() / width_ns + 1).unwrap_or(0).min(2 * crate::summary::accumulate::BINS);
        let coarse = |from: i64, at: usize| (at as i64 * from / width_ns) as usize;
        let mut layers: Vec<(Layer, Vec<Sums>)> = Vec::new();
        let bins = self.layers.all();
        for layer in LAYERS {
            if bins.iter().all(|b| b[layer as usize] == Sums::default()) {
                continue;
            }
            let mut samples = vec![Sums::default(); length];
            for (at, bin) in bins.iter().enumerate() {
                if let Some(sample) = samples.get_mut(coarse(self.layers.width_ns(), at)) {
                    sample.merge(&bin[layer as usize]);
                }
            }
            layers.push((layer, samples));
        }
        let mut device = vec![DeviceSample::default(); length];
        for (at, bin) in self.disks.top.history.all().iter().enumerate() {
            if let Some(sample) = device.get_mut(coarse(self.disks.top.history.width_ns(), at)) {
                sample.merge(bin);
            }
        }
        let mut lost = vec![0; length];
        for (at, n) in self.dims.lost.all().iter().enumerate() {
            if let Some(sample) = lost.get_mut(coarse(self.dims.lost.width_ns(), at)) {
                *sample = n.saturating_add(*sample);
            }
        }
        History { from_ns: 0, width_ns, layers, device, lost }
    }

    /// Per second: of the last second when live, else over the window.
    pub(in crate::summary) fn per_s(&self, rate: [f64; 3], window: Option<Window>, sums: [i64; 3]) -> [f64; 3] {
        if self.dims.run.live && !self.dims.run.ended && window.is_none() {
            return rate;
        }
        let w = window.unwrap_or(Window { from_ns: 0, to_ns: self.end_ns() });
        let seconds = w.to_ns.saturating_sub(w.from_ns).max(1) as f64 / 1e9;
        sums.map(|n| n as f64 / seconds)
    }

    /// What is wrong, where somebody looks at that.
    fn found(&self, window: Option<Window>) -> Findings {
        let Some(findings) = &self.findings else { return Findings::default() };
        let run_ns = match self.window.or(window) {
            _ if self.dims.run.live => None,
            Some(window) => Some(window.to_ns.saturating_sub(window.from_ns)),
            None => self.dims.tracing.run_ns().or_else(|| self.dims.end_ns()),
        };
        findings.find(run_ns, self.from == From::Sums)
    }

    /// The stacks of a process are the source's, not of its calls.
    fn process(&self, of: &ProcessFocus) -> Option<ProcessDetail> {
        match &of.part {
            ProcessPart::Calls(filter) => {
                let matches = |s: &Span| {
                    let path = s.file_id.and_then(|id| self.dims.path(id));
                    filter.as_ref().is_none_or(|f| f.matches(&fields(s, path.as_deref())))
                };
                let wanted = |s: &Span| s.process_ix == of.process_ix && matches(s);
                Some(ProcessDetail::Calls(self.recent.only(wanted, &self.dims).into()))
            }
            ProcessPart::Stacks => None,
        }
    }

    fn events(&self, window: Option<Window>) -> Events {
        let (rows, first) = self.recent.tail(window, &self.dims);
        Events { rows, before: self.recent.gone, first }
    }
}
