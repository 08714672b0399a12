//! `--baseline`: gives each call its class against earlier runs, and learns from the calls of this one.

mod store;

use std::collections::BTreeSet;
use std::path::PathBuf;

use anyhow::{Context as _, Result};

use crate::HashMap;
use crate::analysis::calls::is_data;
use crate::analysis::kinds::FileKinds;
use crate::analysis::speed::{EARLIER_CALLS, Limits, is_compared, label};
use crate::analysis::transfers::sizes::CLASSES;
use crate::baseline::store::{Key, Seen, Store};
use crate::rows::{File, Metric, Mount, Row, Span};
use crate::state;
use crate::vocabulary::Layer;

/// The file in the user's state folder.
const FILE: &str = "baseline.json";
/// Kinds of calls that a run is compared in at most, and file systems.
const MOST_CELLS: usize = 4096;
const MOST_FILE_SYSTEMS: usize = 1024;
/// Of the calls that came last, so many kinds are found without a look at all: a call is compared in some 20 ns.
const RECENT: usize = 64;
/// No class of size.
const NO_SIZE: usize = usize::MAX;

/// A file system: its type, and its device, source or mount.
type FileSystem = (String, String);

/// Calls that are alike: layer, function, class of size, and number of the file system of their file.
type Like = (Layer, &'static str, usize, u16);

/// Calls of this run, and what is known of those before.
struct Cell {
    usual: Option<(Limits, i64)>,
    seen: Seen,
}

/// Compares the calls of a run with those of earlier runs.
pub struct Baseline {
    path: PathBuf,
    earlier: Store,
    cells: Vec<Cell>,
    /// Where cells are.
    known: HashMap<Like, usize>,
    recent: [Option<(Like, usize)>; RECENT],
    /// Devices by mount.
    mounts: HashMap<i32, String>,
    /// By number; the first is that of calls on no known file.
    file_systems: Vec<FileSystem>,
    /// File systems of files.
    files: FileKinds,
    /// Calls that found no room.
    left_out: u64,
}

impl Baseline {
    /// By the baseline in this file, or in that of the user.
    ///
    /// # Errors
    /// When there is no folder for it, or it is damaged.
    pub fn open(file: Option<PathBuf>) -> Result<Self> {
        let own = || Some(state::folder()?.join(FILE));
        let path = file.or_else(own).context("there is no home directory to keep it in: name a file")?;
        let earlier = Store::read(&path)?;
        Ok(Self::of(path, earlier))
    }

    fn of(path: PathBuf, earlier: Store) -> Self {
        Self {
            path,
            earlier,
            cells: Vec::new(),
            known: HashMap::default(),
            recent: [None; RECENT],
            mounts: HashMap::default(),
            file_systems: vec![FileSystem::default()],
            files: FileKinds::default(),
            left_out: 0,
        }
    }

    /// Gives calls their classes, and counts them. The file of a call may come after it.
    pub fn compare(&mut self, rows: &mut [Row]) {
        for row in rows.iter() {
            match row {
                Row::Mount(mount) => {
                    self.mounts.insert(mount.mount_id, device(mount));
                }
                Row::File(file) => self.file(file),
                _ => {}
            }
        }
        for row in rows {
            if let Row::Span(span) = row {
                self.span(span);
            }
        }
    }

    fn file(&mut self, file: &File) {
        let device = file.mount_id.and_then(|id| self.mounts.get(&id)).cloned().unwrap_or_default();
        let file_system = (file.fstype.clone().unwrap_or_default(), device);
        let known = self.file_systems.iter().position(|known| *known == file_system);
        let number = known.unwrap_or_else(|| {
            if self.file_systems.len() >= MOST_FILE_SYSTEMS {
                return 0;
            }
            self.file_systems.push(file_system);
            self.file_systems.len() - 1
        });
        self.files.set(file.file_id, number);
    }

    fn span(&mut self, span: &mut Span) {
        if !is_compared(span) {
            return;
        }
        let like = self.like(span);
        let Some(cell) = self.cell(like) else {
            self.left_out += 1;
            return;
        };
        let ns = span.net_ns();
        cell.seen.add(ns);
        if let Some((limits, mean)) = &cell.usual {
            (span.speed, span.usual_ns) = (Some(limits.class(ns)), Some(*mean));
        }
    }

    /// The cell of a call, if it finds room.
    fn cell(&mut self, like: Like) -> Option<&mut Cell> {
        let (_, op, size, file_system) = like;
        let recent = ((op.as_ptr().addr() / 8) ^ size.wrapping_mul(7) ^ (usize::from(file_system) * 31)) % RECENT;
        let at = match self.recent[recent] {
            Some((known, at)) if known == like => at,
            _ => {
                let at = self.known.get(&like).copied().or_else(|| self.make(like))?;
                self.recent[recent] = Some((like, at));
                at
            }
        };
        self.cells.get_mut(at)
    }

    fn make(&mut self, like: Like) -> Option<usize> {
        let at = self.cells.len();
        if at >= MOST_CELLS {
            return None;
        }
        let earlier = self.earlier.get(&key(&like, &self.file_systems)).and_then(store::Earlier::enough);
        let usual = earlier.and_then(|(durations, mean)| Some((Limits::of(durations)?, mean)));
        self.cells.push(Cell { usual, seen: Seen::default() });
        self.known.insert(like, at);
        Some(at)
    }

    fn like(&self, span: &Span) -> Like {
        let bytes = span.bytes.filter(|_| is_data(span.kind));
        let size = bytes.and_then(|bytes| CLASSES.iter().position(|(most, _)| bytes <= *most)).unwrap_or(NO_SIZE);
        (span.layer, span.op, size, self.files.get(span.file_id) as u16)
    }

    /// The end of the run, or of one of its periods: how many calls of its functions there were in earlier ones, as rows of
    /// this time.
    pub fn rows(&self, t_ns: i64) -> Vec<Row> {
        let called: BTreeSet<(Layer, &str)> = self.known.keys().map(|(layer, op, ..)| (*layer, *op)).collect();
        let row = |(layer, op): (Layer, &str)| {
            let calls = self.earlier.most_calls(&(layer.name().to_owned(), op.to_owned()))?;
            let label = Some(label(layer, op));
            Some(Row::Metric(Metric { t_ns, name: EARLIER_CALLS, label, value: calls as f64 }))
        };
        called.into_iter().filter_map(row).collect()
    }

    /// Keeps what the run has shown, and goes on with the next period.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn learn(&mut self, now_ns: i64) -> Result<()> {
        let mut cells = std::mem::take(&mut self.cells);
        self.recent = [None; RECENT];
        let seen = |(like, at): (Like, usize)| {
            Some((key(&like, &self.file_systems), std::mem::take(&mut cells.get_mut(at)?.seen)))
        };
        let run = std::mem::take(&mut self.known).into_iter().filter_map(seen).collect();
        self.earlier = Store::add(&self.path, run, now_ns)?;
        Ok(())
    }

    /// What was not compared, in words.
    pub fn left_out(&self) -> Option<String> {
        let n = self.left_out;
        (n > 0).then(|| format!("{n} calls of more than {MOST_CELLS} kinds were not compared, and not learned"))
    }
}

/// What tells the device of a mount from others, if it has none what is mounted there, or where.
fn device(mount: &Mount) -> String {
    let source = mount.server.is_some().then_some(&mount.source);
    mount.device.as_ref().or(source).unwrap_or(&mount.path).clone()
}

fn key(&(layer, op, size, file_system): &Like, file_systems: &[FileSystem]) -> Key {
    let (fs, device) = file_systems.get(usize::from(file_system)).cloned().unwrap_or_default();
    let size = CLASSES.get(size).map(|(_, name)| (*name).to_owned());
    Key { layer: layer.name().to_owned(), op: op.to_owned(), size, fs, device }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::vocabulary::{Kind, flag};

    fn call(seq: i64, file: Option<i32>, bytes: i64, ns: i64) -> Row {
        let span = Span::new(seq, (Layer::Syscall, "pread64", Kind::Read), 1, (0, ns));
        Row::Span(Box::new(Span { file_id: file, bytes: Some(bytes), ..span }))
    }

    fn mount(id: i32, device: Option<&str>, server: Option<&str>) -> Row {
        Row::Mount(Box::new(Mount {
            mount_id: id,
            mount_ns: 1,
            path: "/mnt".to_owned(),
            root: "/".to_owned(),
            fstype: "ext4".to_owned(),
            scope: "local",
            source: "source".to_owned(),
            server: server.map(str::to_owned),
            options: String::new(),
            super_options: String::new(),
            lower: None,
            upper: None,
            dev: 1,
            device: device.map(str::to_owned),
            disk: None,
            model: None,
            block_size: None,
            opt_io_size: None,
            rotational: None,
            scheduler: None,
        }))
    }

    fn file(id: i32, mount: i32) -> Row {
        Row::File(Box::new(File {
            file_id: id,
            dev: 1,
            ino: i64::from(id),
            generation: 0,
            path: None,
            first_path: None,
            paths: None,
            host_path: None,
            fstype: Some("ext4".to_owned()),
            mount_id: Some(mount),
            size_first: None,
            size_last: None,
            blksize: None,
            stripe_count: None,
            stripe_size: None,
            data_dev: None,
            data_ino: None,
            role: "data",
            unlinked: false,
        }))
    }

    /// One run with calls, after which it is kept.
    fn run(path: &std::path::Path, mut rows: Vec<Row>) -> (Vec<Option<&'static str>>, Vec<Row>) {
        let mut baseline = Baseline::open(Some(path.to_owned())).unwrap();
        // What is known of a file may come after its calls.
        rows.extend([mount(1, Some("sda"), None), file(1, 1)]);
        baseline.compare(&mut rows);
        let earlier = baseline.rows(7);
        baseline.learn(1).unwrap();
        assert_eq!(baseline.left_out(), None);
        let speed = |row: &Row| if let Row::Span(span) = row { Some(span.speed) } else { None };
        (rows.iter().filter_map(speed).collect(), earlier)
    }

    #[test]
    fn calls_are_compared_with_those_like_them() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("b.json");
        let usual = || (0..60).map(|seq| call(seq, Some(1), 4096, 1000)).collect::<Vec<_>>();
        for _ in 0..2 {
            let (speeds, earlier) = run(&path, usual());
            assert!(speeds.iter().all(Option::is_none) && earlier.is_empty());
        }
        let mut rows = vec![
            call(1, Some(1), 4096, 5000),
            call(2, Some(1), 5000, 1),
            // Other sizes, and calls on no file.
            call(3, Some(1), 40_960, 5000),
            call(4, None, 4096, 5000),
            call(5, Some(1), 4096, 1000),
        ];
        let mut open = call(6, Some(1), 4096, 5000);
        if let Row::Span(span) = &mut open {
            span.flags = flag::UNFINISHED;
        }
        rows.push(open);
        let (speeds, earlier) = run(&path, rows);
        assert_eq!(speeds, [Some("very slow"), Some("very fast"), None, None, Some("normal"), None]);
        let label = Some("syscall pread64".to_owned());
        assert_eq!(earlier, [Row::Metric(Metric { t_ns: 7, name: EARLIER_CALLS, label, value: 60.0 })]);
    }

    #[test]
    fn a_mount_is_its_device_or_what_is_mounted_or_where() {
        let name = |row: Row| if let Row::Mount(mount) = row { device(&mount) } else { String::new() };
        let names = [(Some("sda"), Some("nas")), (None, Some("nas")), (None, None)];
        assert_eq!(names.map(|(device, server)| name(mount(1, device, server))), ["sda", "source", "/mnt"]);
    }

    #[test]
    fn a_period_is_a_run() {
        let dir = tempfile::tempdir().unwrap();
        let mut baseline = Baseline::open(Some(dir.path().join("b.json"))).unwrap();
        let mut last = None;
        for _ in 0..3 {
            let mut rows: Vec<Row> = (0..60).map(|seq| call(seq, None, 1, 1000)).collect();
            baseline.compare(&mut rows);
            baseline.learn(1).unwrap();
            last = if let Row::Span(span) = rows.remove(0) { span.usual_ns } else { None };
        }
        assert_eq!(last, Some(1000));
    }

    #[test]
    fn what_finds_no_room_is_counted() {
        let mut baseline = Baseline::of(PathBuf::new(), Store::default());
        let ops: Vec<&'static str> = (0..MOST_CELLS + 3).map(|n| &*format!("op{n}").leak()).collect();
        for op in ops.iter().chain(&ops[..5]) {
            let span = Span::new(1, (Layer::Hdf5, op, Kind::Other), 1, (0, 1));
            baseline.compare(&mut [Row::Span(Box::new(span))]);
        }
        assert!(baseline.left_out().unwrap().starts_with("3 calls of more than 4096 kinds"));
    }
}
