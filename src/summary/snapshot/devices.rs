//! Rows of devices and mounts.

use crate::analysis::calls::ratio;
use crate::summary::accumulate::Summary;
use crate::summary::snapshot::tables::command;
use crate::summary::view::{DeviceRow, DeviceUser, Devices, MountRow, Window};

impl Summary {
    pub(in crate::summary) fn device_rows(&self, window: Option<Window>) -> Devices {
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
                        command: facts.map(|f| command(&f.cmdline)).unwrap_or_default().into(),
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
                history_width_ns: d.history.width_ns(),
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
