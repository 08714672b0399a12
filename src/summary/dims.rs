//! What ids stand for: files, handles, objects, processes, mounts; and the facts, verdicts and losses of the run.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use crate::analysis::trace::losses::{Losses, Lost};
use crate::analysis::trace::share::{HELD_NS, HOOKS_NS, TRACING_NS, Tracing};
use crate::node::figures::FIGURES;
use crate::rows::{Coverage, File, Handle, Loss, Meta, Metric, Mount, Object, Process, Row};
use crate::summary::bins::{Bins, Merge as _};
use crate::summary::view::{
    Coverage as CoverageView, CoverageGroup, CoverageRow, HandleRow, LossRow, ObjectRow, RunHeader, Sums,
};
use crate::vocabulary::Layer;

/// Rows of each kind that are kept at most.
const MAX: usize = 65_536;
/// Verdicts that are shown one by one, handles and objects of a file.
const MAX_SHOWN: usize = 500;

/// A file, with its path ready to be shared.
#[derive(Debug, Clone)]
pub struct FileEntry {
    pub path: Arc<str>,
    pub row: File,
}

/// All of them. The last row of an id counts.
#[derive(Debug, Clone)]
pub struct Dims {
    pub files: HashMap<i32, FileEntry>,
    paths: HashMap<i32, Vec<Arc<str>>>,
    handles: BTreeMap<i32, Handle>,
    objects: BTreeMap<i32, Object>,
    pub processes: BTreeMap<i32, Process>,
    /// The nodes of processes, where rows are of several.
    pub hosts: BTreeMap<i32, Arc<str>>,
    pub mounts: BTreeMap<i32, Mount>,
    pub run: RunHeader,
    meta: BTreeMap<String, String>,
    groups: BTreeMap<(Layer, String), CoverageGroup>,
    verdicts: Vec<Coverage>,
    refused: Vec<CoverageRow>,
    more_refused: u64,
    losses: Losses,
    pub lost: Bins<i64>,
    /// Functions that were demoted.
    pub demoted: BTreeSet<String>,
    /// Calls of MPI were not recorded all the time.
    pub paused: bool,
    metrics: BTreeMap<(&'static str, String), f64>,
    pub tracing: Tracing,
    /// Rows that found no room.
    pub forgotten: u64,
}

fn put<K: Ord, V>(map: &mut BTreeMap<K, V>, key: K, value: V, forgotten: &mut u64) {
    if map.len() < MAX || map.contains_key(&key) {
        map.insert(key, value);
    } else {
        *forgotten += 1;
    }
}

impl Dims {
    pub fn new(width_ns: i64, max: usize) -> Self {
        Self {
            files: HashMap::new(),
            paths: HashMap::new(),
            handles: BTreeMap::new(),
            objects: BTreeMap::new(),
            processes: BTreeMap::new(),
            hosts: BTreeMap::new(),
            mounts: BTreeMap::new(),
            run: RunHeader::default(),
            meta: BTreeMap::new(),
            groups: BTreeMap::new(),
            verdicts: Vec::new(),
            refused: Vec::new(),
            more_refused: 0,
            losses: Losses::default(),
            lost: Bins::new(width_ns, max),
            demoted: BTreeSet::new(),
            paused: false,
            metrics: BTreeMap::new(),
            tracing: Tracing::default(),
            forgotten: 0,
        }
    }

    pub fn path(&self, file: i32) -> Option<Arc<str>> {
        self.files.get(&file).map(|f| Arc::clone(&f.path))
    }

    pub fn paths(&self, file: i32) -> Vec<Arc<str>> {
        self.paths.get(&file).cloned().unwrap_or_default()
    }

    /// A device by the name it is mounted by, or by its numbers.
    pub fn device(&self, dev: i32) -> Arc<str> {
        let of = |m: &&Mount| m.dev == i64::from(dev) && m.source.starts_with("/dev/");
        match self.mounts.values().find(of) {
            Some(mount) => mount.source.trim_start_matches("/dev/").into(),
            None => format!("{}:{}", dev >> 20, dev & 0xf_ffff).into(),
        }
    }

    pub fn file(&mut self, row: File) {
        if self.files.len() >= MAX && !self.files.contains_key(&row.file_id) {
            self.forgotten += 1;
            return;
        }
        let path: Arc<str> = row.path.as_deref().unwrap_or("").into();
        let known = self.paths.entry(row.file_id).or_default();
        if !path.is_empty() && known.len() < 16 && !known.contains(&path) {
            known.push(Arc::clone(&path));
        }
        self.files.insert(row.file_id, FileEntry { path, row });
    }

    pub fn handle(&mut self, row: Handle) {
        put(&mut self.handles, row.handle_id, row, &mut self.forgotten);
    }

    pub fn object(&mut self, row: Object) {
        put(&mut self.objects, row.object_id, row, &mut self.forgotten);
    }

    pub fn process(&mut self, row: Process) {
        put(&mut self.processes, row.process_ix, row, &mut self.forgotten);
    }

    pub fn mount(&mut self, row: Mount) {
        put(&mut self.mounts, row.mount_id, row, &mut self.forgotten);
    }

    pub fn meta(&mut self, Meta { key, value }: Meta) {
        match key.as_str() {
            "host" => self.run.host.clone_from(&value),
            "kernel" => self.run.kernel.clone_from(&value),
            "command" => self.run.title.clone_from(&value),
            "t0_wall_ns" => self.run.t0_wall_ns = value.parse().ok(),
            "end_ns" => self.run.ended = true,
            _ => {}
        }
        put(&mut self.meta, key, value, &mut self.forgotten);
    }

    pub fn end_ns(&self) -> Option<i64> {
        self.meta.get("end_ns")?.parse().ok()
    }

    /// Figures of the node are not of the trace, and the time of tracing is nothing that was left out.
    pub fn metric(&mut self, row: &Metric) {
        self.tracing.add(row);
        if [HOOKS_NS, TRACING_NS, HELD_NS].contains(&row.name) || FIGURES.iter().any(|f| f.name() == row.name) {
            return;
        }
        let key = (row.name, row.label.clone().unwrap_or_default());
        put(&mut self.metrics, key, row.value, &mut self.forgotten);
    }

    pub fn loss(&mut self, row: &Loss) {
        self.lost.at(row.t_ns).merge(&row.count);
        self.losses.add(row);
    }

    pub fn verdict(&mut self, row: &Coverage) {
        if self.verdicts.len() < MAX {
            self.verdicts.push(row.clone());
        }
        if row.status == "paused" {
            self.paused = true;
            return;
        }
        let target: Arc<str> = row.target.as_str().into();
        let key = (row.layer, row.target.clone());
        if self.groups.len() >= MAX && !self.groups.contains_key(&key) {
            self.forgotten += 1;
            return;
        }
        let group = self.groups.entry(key).or_insert_with(|| CoverageGroup {
            layer: row.layer,
            target: Arc::clone(&target),
            attached: 0,
            absent: 0,
            refused: 0,
            skipped: 0,
            tiers: Vec::new(),
            stepped: 0,
        });
        match row.status {
            "attached" => group.attached += 1,
            "absent" => group.absent += 1,
            "refused" => group.refused += 1,
            "demoted" => {
                // It has a verdict from when it was attached.
                self.demoted.insert(row.symbol.clone());
                return;
            }
            _ => group.skipped += 1,
        }
        group.stepped += usize::from(row.insn == Some("stepped"));
        if let Some(tier) = row.tier {
            match group.tiers.iter_mut().find(|(t, _)| *t == tier) {
                Some((_, n)) => *n += 1,
                None => group.tiers.push((tier, 1)),
            }
        }
        if row.status == "attached" {
            return;
        }
        if self.refused.len() >= MAX_SHOWN {
            self.more_refused += 1;
            return;
        }
        self.refused.push(CoverageRow {
            layer: row.layer,
            target,
            symbol: row.symbol.as_str().into(),
            status: row.status,
            reason: row.reason.as_deref().map(Into::into),
        });
    }

    /// All of it as rows.
    pub fn rows(&self) -> Vec<Row> {
        let meta = self.meta.iter().map(|(key, value)| Meta { key: key.clone(), value: value.clone() });
        let mut rows: Vec<Row> = meta.map(Row::Meta).collect();
        rows.extend(self.files.values().map(|f| Row::File(Box::new(f.row.clone()))));
        rows.extend(self.handles.values().cloned().map(Row::Handle));
        rows.extend(self.objects.values().cloned().map(Row::Object));
        rows.extend(self.processes.values().cloned().map(|row| Row::Process(Box::new(row))));
        rows.extend(self.mounts.values().cloned().map(|m| Row::Mount(Box::new(m))));
        rows.extend(self.verdicts.iter().cloned().map(Row::Coverage));
        let loss = |(layer, place, lost): (Option<Layer>, _, Lost)| Loss {
            t_ns: lost.last_ns,
            layer,
            cpu: None,
            place,
            process_ix: None,
            count: lost.count,
        };
        rows.extend(self.losses.iter().map(loss).map(Row::Loss));
        rows
    }

    /// Layers with a verdict: whether a probe is attached, and a reason if not.
    pub fn covered(&self) -> BTreeMap<Layer, (bool, Option<String>)> {
        let mut layers: BTreeMap<Layer, (bool, Option<String>)> = BTreeMap::new();
        for group in self.groups.values() {
            layers.entry(group.layer).or_default().0 |= group.attached > 0;
        }
        for row in &self.refused {
            let layer = layers.entry(row.layer).or_default();
            if layer.1.is_none() {
                let reason = row.reason.as_deref().unwrap_or(row.status);
                layer.1 = Some(reason.to_owned());
            }
        }
        layers
    }

    /// Probes that are attached, and that should be.
    pub fn probes(&self) -> (usize, usize) {
        let attached = self.groups.values().map(|g| g.attached).sum();
        (attached, attached + self.groups.values().map(|g| g.refused).sum::<usize>())
    }

    /// Everything lost, and by layer, the most first.
    pub fn lost_by_layer(&self) -> (u64, Vec<(Option<Layer>, u64)>) {
        self.losses.by_layer()
    }

    pub fn coverage(&self) -> CoverageView {
        let row = |(layer, place, lost): (Option<Layer>, _, Lost)| LossRow {
            layer,
            place,
            count: lost.count,
            last_ns: lost.last_ns,
        };
        let mut losses: Vec<LossRow> = self.losses.iter().map(row).collect();
        losses.sort_by_key(|l| std::cmp::Reverse(l.count));
        CoverageView {
            groups: self.groups.values().cloned().collect(),
            refused: self.refused.clone(),
            more_refused: self.more_refused,
            losses,
            excluded: self.metrics.iter().map(|((n, l), v)| ((*n).into(), l.as_str().into(), *v)).collect(),
        }
    }

    /// The handles on a file as a tree, parents before children, and how many were left out.
    pub fn handles(&self, file: i32) -> (Vec<HandleRow>, u64) {
        let of: BTreeMap<i32, &Handle> =
            self.handles.iter().filter(|(_, h)| h.file_id == Some(file)).map(|(id, h)| (*id, h)).collect();
        let mut children: BTreeMap<Option<i32>, Vec<i32>> = BTreeMap::new();
        for (id, handle) in &of {
            let parent = handle.parent_handle_id.filter(|p| p != id && of.contains_key(p));
            children.entry(parent).or_default().push(*id);
        }
        let mut rows = Vec::new();
        let mut work: Vec<(i32, usize)> =
            children.remove(&None).unwrap_or_default().into_iter().rev().map(|id| (id, 0)).collect();
        while let Some((id, depth)) = work.pop() {
            // Taken out, so that no circle of parents is walked twice.
            work.extend(children.remove(&Some(id)).unwrap_or_default().into_iter().rev().map(|c| (c, depth + 1)));
            let Some(h) = of.get(&id).filter(|_| rows.len() < MAX_SHOWN) else { continue };
            rows.push(HandleRow {
                handle_id: id,
                parent: h.parent_handle_id,
                depth,
                layer: h.layer,
                pid: h.pid,
                raw: h.raw,
                comm_size: h.comm_size,
                object: h.object_id.and_then(|o| self.objects.get(&o)).map(|o| o.name.as_str().into()),
                start_ns: h.start_ns,
                end_ns: h.end_ns,
                hints: h.hints.clone().unwrap_or_default(),
            });
        }
        let more = of.len().saturating_sub(rows.len()) as u64;
        (rows, more)
    }

    pub fn objects(&self, file: i32, sums: &HashMap<i32, Sums>) -> (Vec<ObjectRow>, u64) {
        let all = self.objects.values().filter(|o| o.file_id == Some(file));
        let mut rows: Vec<ObjectRow> = all
            .map(|o| ObjectRow {
                object_id: o.object_id,
                name: o.name.as_str().into(),
                class: o.class,
                dims: o.dims.clone(),
                chunk: o.chunk.clone(),
                elem_size: o.elem_size,
                filters: o.filters.as_deref().map(Into::into),
                sums: sums.get(&o.object_id).copied().unwrap_or_default(),
            })
            .collect();
        rows.sort_by_key(|r| std::cmp::Reverse(r.sums.dur_ns));
        let more = rows.len().saturating_sub(MAX_SHOWN) as u64;
        rows.truncate(MAX_SHOWN);
        (rows, more)
    }
}
