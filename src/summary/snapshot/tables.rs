//! Rows of processes, files and the call tree.

use std::sync::Arc;

use crate::rows::Process;
use crate::summary::accumulate::Summary;
use crate::summary::bins::Merge as _;
use crate::summary::sums::procs::ProcessSums;
use crate::summary::sums::recent::event;
use crate::summary::view::{
    FileDetail, FileRow, Files, HeatCell, NodeDetail, NodeId, Others, ProcessRow, Processes, Sums, Tree, TreeNode,
    Window,
};
use crate::vocabulary::LAYERS;

/// Rows of a table at most; the rest is summed up.
const MAX_ROWS: usize = 1000;

impl Summary {
    /// A row for each process, or for each thread.
    pub(in crate::summary) fn process_rows(&self, window: Option<Window>, threads: bool) -> Processes {
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
                command: facts.map(|f| command(&f.cmdline)).unwrap_or_default().into(),
                cmdline: facts.map(|f| f.cmdline.join(" ")).unwrap_or_default().into(),
                host: self.dims.hosts.get(&ix).cloned(),
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

    pub(in crate::summary) fn file_rows(&self) -> Files {
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
        let entry = self.dims.files.get(&id);
        let mount = entry.and_then(|f| f.row.mount_id).and_then(|m| self.dims.mounts.get(&m));
        let [calls_per_s, bytes_per_s, _] =
            self.per_s(f.rate.per_s(self.second), None, [f.sums.calls, f.sums.bytes(), 0]);
        Some(FileRow {
            file_id: id,
            path: entry.map(|f| Arc::clone(&f.path)).unwrap_or_default(),
            fstype: entry.and_then(|f| f.row.fstype.as_deref()).map(Into::into),
            mount: mount.map(|m| m.path.as_str().into()),
            role: entry.map_or("", |f| f.row.role),
            size: entry.and_then(|f| f.row.size_last.or(f.row.size_first)),
            unlinked: entry.is_some_and(|f| f.row.unlinked),
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

    pub(in crate::summary) fn file_detail(&self, id: i32) -> Option<FileDetail> {
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

    pub(in crate::summary) fn tree_rows(&self) -> Tree {
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

    pub(in crate::summary) fn node_detail(&self, id: NodeId) -> Option<NodeDetail> {
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
}

/// A command with its program by the last part of the path: programs of one directory differ at once.
pub(in crate::summary) fn command(cmdline: &[String]) -> String {
    let Some((program, arguments)) = cmdline.split_first() else { return String::new() };
    // Some processes write a text of their own there, which is no path.
    let path = program.starts_with(['/', '.']);
    let last = program.rsplit('/').next().filter(|name| path && !name.is_empty()).unwrap_or(program);
    std::iter::once(last).chain(arguments.iter().map(String::as_str)).collect::<Vec<_>>().join(" ")
}

/// Cuts a table, and sums up what is cut.
fn cut<T>(rows: &mut Vec<T>, other: &mut Others, sums: impl Fn(&T) -> Sums) {
    for row in rows.iter().skip(MAX_ROWS) {
        other.rows += 1;
        other.sums.merge(&sums(row));
    }
    rows.truncate(MAX_ROWS);
}

#[cfg(test)]
mod tests {
    use super::command;

    #[test]
    fn a_program_is_called_by_the_last_part_of_its_path() {
        let of = |argv: &[&str]| command(&argv.iter().map(|a| (*a).to_owned()).collect::<Vec<_>>());
        assert_eq!(of(&["/work/my dir/bin/solver", "-o", "/work/out dir"]), "solver -o /work/out dir");
        assert_eq!(of(&["./solver"]), "solver");
        assert_eq!(of(&["-bash"]), "-bash");
        assert_eq!(of(&["sshd: root@pts/0"]), "sshd: root@pts/0");
        assert_eq!(of(&["/"]), "/");
        assert_eq!(of(&["", "x"]), " x");
        assert_eq!(of(&[]), "");
    }
}
