//! Sums to a snapshot: only what the screen that is open shows.

use std::sync::Arc;

use crate::hist::bucket_bounds;
use crate::rows::Process;
use crate::summary::accumulate::{From, Summary};
use crate::summary::bins::Merge as _;
use crate::summary::groups::imbalance;
use crate::summary::procs::ProcessSums;
use crate::summary::recent::event;
use crate::summary::spread::Counts;
use crate::summary::view::{
    ChainStep, DeviceRow, DeviceSample, DeviceUser, Devices, Events, FileDetail, FileRow, Files, Focus, HeatCell,
    History, Imbalance, Latency, LayerRow, Measure, MountRow, NodeDetail, NodeId, OpRow, Others, Overview, ProcessRow,
    Processes, Screen, Snapshot, Status, Sums, Tree, TreeNode, Window,
};
use crate::vocabulary::{LAYERS, Layer};

/// Rows of a table at most; the rest is summed up.
const MAX_ROWS: usize = 1000;

fn ratio(part: f64, whole: f64) -> f64 {
    if whole > 0.0 { part / whole } else { 0.0 }
}

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
            run: Arc::new(self.dims.run.clone()),
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
            inflight: None,
            recent_node: None,
            loading: None,
            notes: self.notes(focus).into(),
        }
    }

    /// All there is to look at.
    pub fn kept(&self) -> Window {
        Window { from_ns: 0, to_ns: self.end_ns() }
    }

    /// Up to where there are figures.
    pub(super) fn end_ns(&self) -> i64 {
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
    fn per_s(&self, rate: [f64; 3], window: Option<Window>, sums: [i64; 3]) -> [f64; 3] {
        if self.dims.run.live && !self.dims.run.ended && window.is_none() {
            return rate;
        }
        let w = window.unwrap_or(Window { from_ns: 0, to_ns: self.end_ns() });
        let seconds = w.to_ns.saturating_sub(w.from_ns).max(1) as f64 / 1e9;
        sums.map(|n| n as f64 / seconds)
    }

    pub(super) fn overview(&self, window: Option<Window>) -> Overview {
        let sums = self.layers.sum(window);
        let total = sums.iter().map(|s| s.self_ns.max(0)).fold(0, i64::saturating_add);
        let covered = self.dims.covered();
        let lost = self.dims.lost_by_layer().1;
        let row = |layer: Layer| {
            let mut s = sums[layer as usize];
            let mut rate = self.rates[layer as usize].per_s(self.second);
            let mut latency = self.ops.total(layer, window);
            if layer == Layer::Block && self.from != From::Sums {
                let (d, of) = (self.disks.top.history.sum(window), self.disks.top.sums(window));
                let DeviceSample { requests: calls, bytes_read, bytes_written, dur_ns, .. } = d;
                s = Sums { calls, bytes_read, bytes_written, dur_ns, errors: of.errors, ..s };
                rate = self.disks.top.rate.per_s(self.second);
                latency = of.device.percentiles(Some(of.device_max));
            }
            let (known, why_not) = covered.get(&layer).cloned().unwrap_or_default();
            if s == Sums::default() && !covered.contains_key(&layer) {
                return None;
            }
            let [calls_per_s, read_per_s, written_per_s] =
                self.per_s(rate, window, [s.calls, s.bytes_read, s.bytes_written]);
            Some(LayerRow {
                layer: Some(layer),
                sums: s,
                calls_per_s,
                read_per_s,
                written_per_s,
                self_share: ratio(s.self_ns.max(0) as f64, total as f64),
                latency,
                covered: known || s != Sums::default(),
                why_not: why_not.filter(|_| !known),
                lost: lost.iter().find(|(l, _)| *l == Some(layer)).map_or(0, |(_, n)| *n),
            })
        };
        let layers: Vec<LayerRow> = LAYERS.into_iter().filter_map(row).collect();
        let [cache_bytes, cache_miss_bytes] = self.cache.sum(window);
        Overview {
            chain: self.chain(&layers, window),
            layers,
            imbalance: self.imbalance(window),
            cache_bytes,
            cache_miss_bytes,
            parts: self.parts.sum(window),
        }
    }

    fn chain(&self, layers: &[LayerRow], window: Option<Window>) -> Vec<ChainStep> {
        // What the program asked for is known from the calls only.
        if self.from != From::Spans {
            return Vec::new();
        }
        let program = self.asked.sum(window);
        let asked = program[0].saturating_add(program[1]);
        let step = |layer, [bytes_read, bytes_written]: [i64; 2]| {
            let ratio = ratio(bytes_read.saturating_add(bytes_written) as f64, asked as f64);
            ChainStep { layer, bytes_read, bytes_written, ratio }
        };
        let mut chain = vec![step(None, program)];
        for row in layers.iter().filter(|r| r.layer != Some(Layer::Block)) {
            if row.sums.bytes() > 0 {
                chain.push(step(row.layer, [row.sums.bytes_read, row.sums.bytes_written]));
            }
        }
        if layers.iter().any(|r| r.layer == Some(Layer::Block)) {
            chain.push(step(Some(Layer::Block), self.disks.traced.sum(window)));
        }
        chain
    }

    fn imbalance(&self, window: Option<Window>) -> Option<Imbalance> {
        let rank = |ix: i32| self.dims.processes.get(&ix).and_then(|facts| facts.rank);
        imbalance(self.processes.processes.iter().map(|(ix, p)| (rank(*ix).or(p.rank), p.total(window))))
    }

    /// A row for each process, or for each thread.
    pub(super) fn process_rows(&self, window: Option<Window>, threads: bool) -> Processes {
        let table = &self.processes;
        let all: Vec<((i32, Option<i32>), &ProcessSums)> = if threads {
            table.by_thread.iter().map(|((ix, tid), p)| ((*ix, Some(*tid)), p)).collect()
        } else {
            table.processes.iter().map(|(ix, p)| ((*ix, None), p)).collect()
        };
        let width = all.iter().map(|(_, p)| p.own.width_ns()).max().unwrap_or(1);
        let mut rows: Vec<ProcessRow> = Vec::new();
        for ((ix, tid), p) in all {
            let sums = p.total(window);
            let [calls_per_s, read_per_s, written_per_s] =
                self.per_s(p.rate.per_s(self.second), window, [sums.calls, sums.bytes_read, sums.bytes_written]);
            let mut heat =
                vec![HeatCell::default(); p.own.all().len() * p.own.width_ns() as usize / width as usize + 1];
            for (at, bin) in p.own.all().iter().enumerate() {
                let cell = HeatCell { bytes: bin.bytes(), dur_ns: bin.dur_ns };
                if let Some(sum) = heat.get_mut((at as i64 * p.own.width_ns() / width) as usize) {
                    sum.merge(&cell);
                }
            }
            let facts = self.dims.processes.get(&ix);
            let word = |of: fn(&Process) -> &Option<String>| facts.and_then(|f| of(f).as_deref()).map(Into::into);
            let by_layer = LAYERS.into_iter().map(|l| (l, p.self_ns[l as usize])).filter(|(_, ns)| *ns != 0);
            rows.push(ProcessRow {
                process_ix: ix,
                tid,
                members: 1,
                pid: p.pid,
                ppid: facts.map_or(0, |f| f.ppid),
                rank: facts.and_then(|f| f.rank).or(p.rank),
                exe: facts.and_then(|f| f.exe.as_deref()).unwrap_or_default().into(),
                command: facts.map(|f| f.cmdline.join(" ")).unwrap_or_default().into(),
                cgroup: word(|f| &f.cgroup),
                user: word(|f| &f.user),
                container: word(|f| &f.container),
                unit: word(|f| &f.unit),
                job: word(|f| &f.job_id),
                uid: facts.map_or(0, |f| f.uid),
                threads: if threads { 1 } else { table.threads.get(&ix).copied().unwrap_or(0) },
                start_ns: facts.map_or(0, |f| f.start_ns),
                end_ns: facts.and_then(|f| f.end_ns),
                exit_code: facts.and_then(|f| f.exit_code),
                sums,
                system: p.system,
                self_by_layer: by_layer.collect(),
                read_ns: p.read_ns,
                write_ns: p.write_ns,
                meta_ns: p.meta_ns,
                calls_per_s,
                read_per_s,
                written_per_s,
                heat,
            });
        }
        rows.sort_by_key(|r| (r.rank.is_none(), r.rank, std::cmp::Reverse(r.sums.dur_ns)));
        let mut other = if threads { table.other_threads } else { table.other };
        cut(&mut rows, &mut other, |r| r.sums);
        Processes { rows, other: (other.rows > 0).then_some(other), heat_from_ns: 0, heat_width_ns: width }
    }

    pub(super) fn file_rows(&self) -> Files {
        let mut ids: Vec<(i64, i32)> = self.files.files.iter().map(|(id, f)| (f.sums.dur_ns, *id)).collect();
        ids.sort_unstable_by_key(|(dur, id)| (std::cmp::Reverse(*dur), *id));
        let mut other = self.files.other;
        for (_, id) in ids.iter().skip(MAX_ROWS) {
            other.rows += 1;
            if let Some(file) = self.files.files.get(id) {
                other.sums.merge(&file.sums);
            }
        }
        let rows = ids.iter().take(MAX_ROWS).filter_map(|(_, id)| self.file_row(*id)).collect();
        Files { rows, other: (other.rows > 0).then_some(other) }
    }

    fn file_row(&self, id: i32) -> Option<FileRow> {
        let f = self.files.files.get(&id)?;
        let facts = self.dims.files.get(&id);
        let mount = facts.and_then(|f| f.row.mount_id).and_then(|m| self.dims.mounts.get(&m));
        let [calls_per_s, bytes_per_s, _] =
            self.per_s(f.rate.per_s(self.second), None, [f.sums.calls, f.sums.bytes(), 0]);
        Some(FileRow {
            file_id: id,
            path: facts.map(|f| Arc::clone(&f.path)).unwrap_or_default(),
            fstype: facts.and_then(|f| f.row.fstype.as_deref()).map(Into::into),
            mount: mount.map(|m| m.path.as_str().into()),
            role: facts.map_or("", |f| f.row.role),
            size: facts.and_then(|f| f.row.size_last.or(f.row.size_first)),
            unlinked: facts.is_some_and(|f| f.row.unlinked),
            sums: f.sums,
            opens: f.opens,
            syncs: f.syncs,
            metas: f.metas,
            placed: f.placed,
            consecutive: f.consecutive,
            sequential: f.sequential,
            small: f.small,
            miss_bytes: f.miss_bytes,
            latency: f.latency.percentiles(Some(f.max_ns)),
            readers: f.readers.len() as u32,
            writers: f.writers.len() as u32,
            top_layer: f.top,
            device_bytes: f.device_bytes,
            calls_per_s,
            bytes_per_s,
        })
    }

    pub(super) fn file_detail(&self, id: i32) -> Option<FileDetail> {
        let f = self.files.files.get(&id)?;
        let (handles, more_handles) = self.dims.handles(id);
        let (objects, more_objects) = self.dims.objects(id, &self.objects);
        let mut points = f.points.clone();
        points.sort_by_key(|p| p.t_ns);
        Some(FileDetail {
            file_id: id,
            row: self.file_row(id)?,
            paths: self.dims.paths(id),
            points,
            every_nth: f.every_nth.max(1),
            sizes: f.sizes.sorted(),
            strides: f.strides.sorted(),
            other_sizes: f.sizes.other,
            other_strides: f.strides.other,
            ops: f.ops(),
            handles,
            objects,
            more_handles,
            more_objects,
        })
    }

    pub(super) fn tree_rows(&self) -> Tree {
        let mut nodes = Vec::new();
        let by_time = |ids: &[NodeId]| {
            let mut ids = ids.to_vec();
            ids.sort_by_key(|id| self.tree.node(*id).map_or(0, |n| n.sums.dur_ns));
            ids
        };
        let mut work: Vec<(NodeId, usize)> = by_time(self.tree.roots()).into_iter().map(|id| (id, 0)).collect();
        while let Some((id, depth)) = work.pop() {
            let Some(n) = self.tree.node(id) else { continue };
            work.extend(by_time(&n.children).into_iter().map(|id| (id, depth + 1)));
            nodes.push(TreeNode {
                id,
                parent: n.parent,
                depth,
                layer: n.layer,
                op: n.op,
                kind: n.kind,
                sums: n.sums,
                max_ns: n.max_ns,
                device_bytes: n.device_bytes,
            });
        }
        Tree { nodes, other: (self.tree.other.rows > 0).then_some(self.tree.other) }
    }

    fn node_detail(&self, id: NodeId) -> Option<NodeDetail> {
        let n = self.tree.node(id)?;
        let path = |id: &i32| self.dims.path(*id).unwrap_or_default();
        let mut files: Vec<_> = n.files.iter().map(|(id, s)| (path(id), *s)).collect();
        files.sort_by_key(|(_, s)| std::cmp::Reverse(s.dur_ns));
        Some(NodeDetail {
            id,
            latency: n.latency.percentiles(Some(n.max_ns)),
            slowest: n.slowest.iter().map(|s| event(s, &self.dims)).collect(),
            files,
            other_files: (n.other_files.rows > 0).then_some(n.other_files),
        })
    }

    fn latency(&self, focus: &Focus) -> Latency {
        let measure = focus.measure;
        let chosen = || self.ops.chosen(focus.layer, focus.op);
        let width_ns = chosen().map(|(_, _, op)| op.over_time(measure).width_ns()).max().unwrap_or(1);
        let mut columns: Vec<Counts> = Vec::new();
        let mut all = Counts::default();
        let mut max = 0;
        let first = focus.window.map_or(0, |w| (w.from_ns.max(0) / width_ns) as usize);
        for (_, _, op) in chosen() {
            let bins = op.over_time(measure);
            let (from, of) = bins.of(focus.window);
            for (at, bin) in of.iter().enumerate() {
                let column = ((from + at) as i64 * bins.width_ns() / width_ns) as usize - first.min(from);
                if column >= columns.len() {
                    columns.resize(column + 1, Counts::default());
                }
                columns[column].merge(bin);
            }
            all.merge(&op.counts(measure, focus.window));
            max = max.max(op.max_ns);
        }
        let row = |bucket: i16| bucket_bounds(bucket).0.checked_ilog2().unwrap_or(0);
        let (low, high) = all.iter().fold((u32::MAX, 0), |(low, high), (b, _)| (low.min(row(b)), high.max(row(b))));
        let rows: Vec<u64> = if low > high { Vec::new() } else { (low..=high).map(|r| 1u64 << r).collect() };
        let column = |counts: &Counts| {
            let mut cells = vec![0u32; rows.len()];
            for (bucket, n) in counts.iter() {
                if let Some(cell) = cells.get_mut((row(bucket).saturating_sub(low)) as usize) {
                    *cell = cell.saturating_add(u32::try_from(n).unwrap_or(u32::MAX));
                }
            }
            cells
        };
        let histogram = all.iter().map(|(b, n)| {
            let (low, high) = bucket_bounds(b);
            (low, high, n)
        });
        let exact = measure == Measure::Latency && focus.window.is_none() && max > 0;
        let mut ops: Vec<OpRow> = self
            .ops
            .chosen(None, None)
            .map(|(layer, name, op)| OpRow {
                layer,
                op: name,
                kind: op.kind,
                sums: op.sums,
                latency: op.counts(Measure::Latency, None).percentiles(Some(op.max_ns).filter(|m| *m > 0)),
            })
            .collect();
        ops.sort_by_key(|o| std::cmp::Reverse(o.sums.dur_ns));
        Latency {
            measure,
            layer: focus.layer,
            op: focus.op,
            from_ns: first as i64 * width_ns,
            width_ns,
            columns: columns.iter().map(column).collect(),
            rows,
            histogram: histogram.collect(),
            total: all.total(),
            percentiles: all.percentiles(exact.then_some(max)),
            ops,
        }
    }

    fn events(&self, window: Option<Window>) -> Events {
        let (rows, first) = self.recent.tail(window, &self.dims);
        Events { rows, before: self.recent.gone, first }
    }

    pub(super) fn device_rows(&self, window: Option<Window>) -> Devices {
        let end = self.end_ns().max(1);
        let mut rows: Vec<DeviceRow> = Vec::new();
        for (dev, d) in &self.disks.all {
            let sums = d.history.sum(window);
            let [requests_per_s, read_per_s, written_per_s] =
                self.per_s(d.rate.per_s(self.second), window, [sums.requests, sums.bytes_read, sums.bytes_written]);
            // Rows outside a window were not taken, or the window is filled up to whole samples.
            let length = match window {
                None => end,
                Some(w) if self.window.is_some() => w.to_ns.saturating_sub(w.from_ns),
                Some(w) => d.covered_ns(w),
            };
            let of = d.sums(window);
            let mut classes: Vec<_> = of.classes.iter().map(|((op, class), (n, b))| (*op, *class, *n, *b)).collect();
            classes.sort_by_key(|c| std::cmp::Reverse(c.3));
            let mut users: Vec<DeviceUser> = of
                .users
                .iter()
                .map(|(ix, (requests, bytes))| {
                    let facts = ix.and_then(|ix| self.dims.processes.get(&ix));
                    DeviceUser {
                        process_ix: *ix,
                        pid: facts.map(|f| f.pid),
                        rank: facts.and_then(|f| f.rank),
                        command: facts.map(|f| f.cmdline.join(" ")).unwrap_or_default().into(),
                        requests: *requests,
                        bytes: *bytes,
                    }
                })
                .collect();
            users.sort_by_key(|u| (std::cmp::Reverse(u.bytes), u.process_ix));
            rows.push(DeviceRow {
                dev: *dev,
                name: self.dims.device(*dev),
                requests: sums.requests,
                bytes_read: sums.bytes_read,
                bytes_written: sums.bytes_written,
                errors: of.errors,
                requests_per_s,
                read_per_s,
                written_per_s,
                busy: ratio(of.busy_ns as f64, length as f64).min(1.0),
                depth_mean: ratio(of.depth_sum as f64, of.requests as f64),
                depth_max: of.depth_max,
                queue: of.queue.percentiles(Some(of.queue_max)),
                device: of.device.percentiles(Some(of.device_max)),
                classes,
                users,
                other_users: of.other_users,
                history: d.history.all().to_vec(),
            });
        }
        rows.sort_by_key(|r| std::cmp::Reverse(r.bytes_read.saturating_add(r.bytes_written)));
        Devices { rows, mounts: self.mounts(), dirty: self.dirty.iter().copied().collect() }
    }

    /// Those that files lie on.
    fn mounts(&self) -> Vec<MountRow> {
        let mut rows: Vec<MountRow> = Vec::new();
        for (id, m) in &self.dims.mounts {
            let mut row = MountRow {
                path: m.path.as_str().into(),
                fstype: m.fstype.as_str().into(),
                source: m.source.as_str().into(),
                options: m.options.as_str().into(),
                dev: m.dev,
                scheduler: m.scheduler.as_deref().map(Into::into),
                rotational: m.rotational,
                ..MountRow::default()
            };
            for (file, sums) in &self.files.files {
                if self.dims.files.get(file).is_some_and(|f| f.row.mount_id == Some(*id)) {
                    row.files += 1;
                    row.sums.merge(&sums.sums);
                }
            }
            if row.files > 0 {
                rows.push(row);
            }
        }
        rows.sort_by_key(|r| std::cmp::Reverse(r.sums.dur_ns));
        rows
    }
}

/// Cuts a table, and sums up what is cut.
fn cut<T>(rows: &mut Vec<T>, other: &mut Others, sums: impl Fn(&T) -> Sums) {
    for row in rows.iter().skip(MAX_ROWS) {
        other.rows += 1;
        other.sums.merge(&sums(row));
    }
    rows.truncate(MAX_ROWS);
}
