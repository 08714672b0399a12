//! Compares the dashboard, `--batch` and the metrics over a dataset with the report on it, figure by figure. What the report
//! says is compared with SQL elsewhere.

use std::collections::BTreeMap;
use std::path::Path;

use iotrace_bpf::batch;
use iotrace_bpf::export::report::{self, Bytes, LayerRow, Report, Source as _, Union};
use iotrace_bpf::metrics::counts::Counts;
use iotrace_bpf::replay::Replay;
use iotrace_bpf::rows::{Mount, PARTS, Row};
use iotrace_bpf::summary::view::{self, Focus, Grouping, Screen, Snapshot, Source as _, Sums, grouped};
use iotrace_bpf::vocabulary::Layer;

/// Both have every figure that the other one has of the dataset, or datasets, in `dir`, and it is the same.
pub fn agree(dir: &Path) {
    let report = report::build(&mut Union::open(dir).unwrap()).unwrap();
    let mut replay = Replay::open(dir).unwrap();
    replay.wait(&Focus::default());
    let mut shown = |screen| (*replay.snapshot(&Focus { screen, ..Focus::default() })).clone();
    let of = Compared { dir, report: &report };
    let overview = shown(Screen::Overview);
    of.layers(&overview);
    of.waiting(&overview);
    of.losses(&overview, &shown(Screen::Coverage));
    of.functions(&shown(Screen::Latency));
    of.files(&shown(Screen::Files));
    of.metrics();
    // Sums do not show which calls the program made itself.
    if !report.header.aggregate {
        of.asked(&overview);
        of.imbalance(&overview);
        of.ranks(&shown(Screen::Processes));
    }
}

struct Compared<'a> {
    dir: &'a Path,
    report: &'a Report,
}

/// Known bytes.
fn known(bytes: Bytes) -> i64 {
    bytes.sum.unwrap_or(0)
}

impl Compared<'_> {
    #[allow(clippy::needless_pass_by_value, reason = "callers compare what they have just put together")]
    fn same<T: PartialEq + std::fmt::Debug>(&self, what: &str, shown: T, reported: T) {
        assert_eq!(shown, reported, "{what} of {}: shown, and in the report", self.dir.display());
    }

    fn layers(&self, shown: &Snapshot) {
        let text = batch::object(shown);
        let figures = |row: &LayerRow| {
            let exclusive_ns = row.exclusive_ns.unwrap_or(0);
            (row.calls, known(row.moved), row.inclusive_ns, exclusive_ns, row.errors)
        };
        for row in &self.report.layers {
            let of_layer = |r: &&view::LayerRow| r.layer.is_some_and(|layer| layer.name() == row.layer);
            let Some(seen) = shown.overview.layers.iter().find(of_layer) else {
                panic!("{} of {} is not shown", row.layer, self.dir.display())
            };
            let Sums { calls, dur_ns, self_ns, errors, .. } = seen.sums;
            self.same(row.layer, (calls, seen.sums.bytes(), dur_ns, self_ns, errors), figures(row));
            let in_batch = text["layers"].as_array().unwrap().iter().find(|l| l["layer"] == row.layer).unwrap();
            self.same(&format!("--batch, {}", row.layer), in_batch["sums"]["dur_ns"].as_i64(), Some(row.inclusive_ns));
            let share = row.exclusive_share.unwrap_or(0.0);
            assert!((seen.self_share - share).abs() < 1e-9, "{}: {} {share}", row.layer, seen.self_share);
        }
    }

    fn functions(&self, shown: &Snapshot) {
        for layer in self.report.layers.iter().filter(|layer| layer.layer != Layer::Block.name()) {
            for op in &layer.ops {
                let same = |r: &&view::OpRow| r.layer.name() == layer.layer && r.op == op.op;
                let Some(seen) = shown.latency.ops.iter().find(same) else { panic!("{} is not shown", op.op) };
                let Sums { calls, dur_ns, self_ns, .. } = seen.sums;
                let figures = (calls, seen.sums.bytes(), dur_ns, Some(self_ns));
                let reported = (op.calls - op.nested_calls, known(op.moved), op.inclusive_ns, op.exclusive_ns);
                self.same(op.op, figures, reported);
            }
        }
    }

    fn waiting(&self, shown: &Snapshot) {
        let parts: BTreeMap<_, _> = self.report.waiting.iter().map(|row| (row.part, row.ns)).collect();
        for ((part, _), ns) in PARTS.iter().zip(shown.overview.parts) {
            self.same(part, ns, parts.get(part).copied().unwrap_or(0));
        }
    }

    fn asked(&self, shown: &Snapshot) {
        let Some(asked) = shown.overview.chain.first() else { return };
        let amplification = &self.report.amplification;
        let reported = (known(amplification.read.asked), known(amplification.write.asked));
        self.same("what was asked for", (asked.bytes_read, asked.bytes_written), reported);
        for step in shown.overview.chain.iter().filter(|step| step.layer.is_some_and(|l| l != Layer::Block)) {
            let name = step.layer.unwrap().name();
            let of = |chain: &report::Chain| {
                chain.steps.iter().find(|s| s.layer == name).map_or(0, |step| known(step.bytes))
            };
            let reported = (of(&amplification.read), of(&amplification.write));
            self.same(&format!("amplification, {name}"), (step.bytes_read, step.bytes_written), reported);
        }
    }

    fn imbalance(&self, shown: &Snapshot) {
        let all = self.report.ranks.imbalance.iter().find(|row| row.layer == "all");
        let seen = shown.overview.imbalance;
        self.same("slowest rank", seen.map(|i| i.slowest), all.map(|i| i.slowest));
        if let (Some(seen), Some(all)) = (seen, all) {
            assert!((seen.max_to_mean - all.max_to_mean).abs() < 1e-9, "{seen:?} {all:?}");
            let bytes = [seen, *all].map(|row| row.bytes_max_to_mean.unwrap_or(0.0));
            assert!((bytes[0] - bytes[1]).abs() < 1e-9, "{seen:?} {all:?}");
        }
    }

    /// Of ranks, and of processes without one together.
    fn ranks(&self, shown: &Snapshot) {
        type Figures = (i64, i64, i64, BTreeMap<&'static str, i64>);
        let mut reported = BTreeMap::<Option<i32>, Figures>::new();
        for row in &self.report.ranks.rows {
            let of = reported.entry(row.rank).or_default();
            (of.0, of.1, of.2) = (of.0 + row.calls, of.1 + row.own_ns, of.2 + row.own_bytes);
            row.exclusive_ns.iter().for_each(|(layer, ns)| *of.3.entry(layer.name()).or_default() += ns);
        }
        let seen = grouped(&shown.processes.rows, Grouping::Rank).into_iter().map(|row| {
            let exclusive: BTreeMap<_, _> = row.self_by_layer.iter().map(|(layer, ns)| (layer.name(), *ns)).collect();
            (row.rank, (row.sums.calls, row.sums.dur_ns, row.sums.bytes(), exclusive))
        });
        let seen: BTreeMap<Option<i32>, Figures> = seen.filter(|(_, f)| f.0 > 0 || !f.3.is_empty()).collect();
        reported.retain(|_, f| f.0 > 0 || !f.3.is_empty());
        self.same("ranks", seen, reported);
    }

    fn files(&self, shown: &Snapshot) {
        for row in self.report.files.iter().filter(|row| row.host.is_none() || self.report.nodes.len() < 2) {
            let Some(seen) = shown.files.rows.iter().find(|seen| seen.file_id == row.file_id) else {
                panic!("file {} is not shown", row.file_id)
            };
            let mut sums = (0, 0, 0, 0, 0);
            for layer in row.layers.iter().filter(|l| ["syscall", "vfs"].contains(&l.layer)) {
                sums.0 += layer.calls;
                sums.1 += known(layer.read);
                sums.2 += known(layer.written);
                sums.3 += layer.time_ns;
                sums.4 += layer.errors;
            }
            let Sums { calls, bytes_read, bytes_written, dur_ns, errors, .. } = seen.sums;
            let what = format!("file {}", row.path.as_deref().unwrap_or("without a name"));
            self.same(&what, (calls, bytes_read, bytes_written, dur_ns, errors), sums);
            let top = row.layers.first().map(|layer| layer.layer);
            let kinds = |kind: &str| -> i64 {
                let layers = row.layers.iter().filter(|l| ["syscall", "vfs"].contains(&l.layer));
                layers.filter_map(|layer| layer.kinds.get(kind)).sum()
            };
            self.same(&what, (seen.opens, seen.syncs, seen.metas), (kinds("open"), kinds("sync"), kinds("meta")));
            // A function of layer app inside a phase is a call on the file, and no outermost one of its layer.
            let top = if seen.top_layer == Some(Layer::App) { Some(Layer::App.name()) } else { top };
            self.same(&what, seen.top_layer.map(Layer::name), top);
        }
    }

    fn losses(&self, overview: &Snapshot, coverage: &Snapshot) {
        let losses = coverage.coverage.losses.iter().filter(|loss| loss.count != 0);
        let seen: BTreeMap<_, _> = losses.map(|l| ((l.layer.map(Layer::name), l.place), l.count)).collect();
        let reported = self.report.losses.iter().map(|l| ((l.layer, l.place), l.count)).collect();
        self.same("losses", seen, reported);
        let share = self.report.tracing.as_ref().map(|tracing| tracing.share);
        self.same("share of the tracer", overview.status.tracing, share);
    }

    /// What a trace that serves metrics would have served at its end.
    fn metrics(&self) {
        let mut union = Union::open(self.dir).unwrap();
        let mut counts = Counts::new(&[]).summed(self.report.header.aggregate);
        union
            .rows(|row: Mount| {
                counts.push(&[Row::Mount(Box::new(row))]);
                Ok(())
            })
            .unwrap();
        let mut take = |row: Row| {
            counts.push(&[row]);
            Ok(())
        };
        union.files(&mut |row| take(Row::File(Box::new(row.clone())))).unwrap();
        union.spans(&mut |row| take(Row::Span(Box::new(row.clone())))).unwrap();
        union.sums(&mut |row| take(Row::FileRollup(Box::new(row.clone())))).unwrap();
        union.losses(&mut |row| take(Row::Loss(row.clone()))).unwrap();
        let lost: i64 = self.report.losses.iter().map(|row| row.count.max(0)).sum();
        self.same("metrics, lost", counts.lost().map(|(_, _, n)| n as i64).sum(), lost);
        for layer in self.report.layers.iter().filter(|layer| layer.layer != Layer::Block.name()) {
            let ops = || counts.ops().into_iter().filter(|(of, ..)| of.name() == layer.layer);
            let calls: u64 = ops().map(|(.., op)| op.durations.count).sum();
            let failed: u64 = ops().map(|(.., op)| op.failed).sum();
            let self_ns: u128 = ops().map(|(.., op)| op.self_ns).sum();
            let bytes: u64 =
                counts.bytes().filter(|(of, ..)| of.name() == layer.layer).map(|(.., bytes)| bytes[0] + bytes[1]).sum();
            let seen = (calls as i64, failed as i64, self_ns as i64, bytes as i64);
            let reported = (layer.calls, layer.errors, layer.exclusive_ns.unwrap_or(0), known(layer.moved));
            self.same(&format!("metrics, {}", layer.layer), seen, reported);
        }
    }
}
