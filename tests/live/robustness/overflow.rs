//! A tracer that gets no processor while a program calls: whatever finds no room in the rings is counted, each layer by itself,
//! and what comes after that is recorded again.

use crate::common::live::{self, Data, Running};
use crate::common::machine::device::Device;
use crate::common::programs;
use iotrace_bpf::vocabulary::Layer;
use nix::sys::signal::Signal;
use std::fs;
use std::io::{BufRead as _, BufReader, Write as _};
use std::path::{Path, PathBuf};
use std::process::{ChildStdin, ChildStdout, Stdio};

/// More than the smallest rings hold.
const COUNT: usize = 20_000;

/// `flood`, traced with the smallest rings.
struct Flood {
    running: Running,
    tracer: u32,
    to: ChildStdin,
    from: BufReader<ChildStdout>,
    /// What the tracer writes.
    output: PathBuf,
}

impl Flood {
    fn start(work: &Path, layers: &str, what: &str, file: &Path, count: usize) -> Self {
        let program = programs::build(if what == "hdf5" { "flood_h5" } else { "flood" });
        let mut tracer = live::tracer();
        // Where a processor is fast, calls on streams are brief enough to be demoted, and are not recorded then.
        tracer
            .args(["--max-overhead", "none", "--ring-size", "1M", "--layers", layers, "-o"])
            .arg(work.join("run.iotrace"))
            .arg("--");
        tracer.arg(program).arg(what).arg(file).arg(count.to_string());
        let output = work.join("output");
        tracer.stderr(fs::File::create(&output).unwrap());
        let mut running = Running::spawn(tracer.stdin(Stdio::piped()).stdout(Stdio::piped()));
        let (to, from) = (running.0.stdin.take().unwrap(), BufReader::new(running.0.stdout.take().unwrap()));
        let tracer = live::child_of(running.pid());
        let mut flood = Self { running, tracer, to, from, output };
        assert_eq!(flood.line(), "ready\n");
        flood
    }

    fn line(&mut self) -> String {
        let mut line = String::new();
        self.from.read_line(&mut line).unwrap();
        line
    }

    /// How many calls it has made, after one more flood.
    fn go(&mut self) -> i64 {
        self.to.write_all(b"g").unwrap();
        self.line().trim().parse().unwrap()
    }

    /// The same, with a tracer that does not run meanwhile.
    fn overflow(&mut self, times: usize) {
        live::send(self.tracer, Signal::SIGSTOP);
        live::until("the tracer to stop", || live::state(self.tracer) == Some('T'));
        for _ in 0..times {
            self.go();
        }
        live::send(self.tracer, Signal::SIGCONT);
    }

    /// What the tracer reports at its end.
    fn end(self) -> String {
        let Self { mut running, to, from, output, .. } = self;
        drop((to, from));
        assert_eq!(running.wait().code(), Some(0));
        fs::read_to_string(output).unwrap()
    }
}

/// What a layer lost; nothing was lost otherwise than in a ring, except what belongs to no layer.
fn lost(data: &Data, layers: &[Layer]) -> Vec<i64> {
    for loss in &data.losses {
        assert!(loss.place == "ring" && loss.layer.is_none_or(|layer| layers.contains(&layer)), "{:?}", data.losses);
    }
    let of = |layer| data.losses.iter().filter(|l| l.layer == Some(layer)).map(|l| l.count).sum();
    layers.iter().copied().map(of).collect()
}

/// Floods that find no room, and one that does, as far as there is room. How many calls there were, and what was recorded.
fn flooded(layers: &str, what: &str, count: usize, times: usize) -> (tempfile::TempDir, i64, Data) {
    let work = live::scratch();
    let mut flood = Flood::start(work.path(), layers, what, &work.path().join("file"), count);
    flood.overflow(times);
    let made = flood.go();
    let output = flood.end();
    assert!(output.contains("lost"), "{output}");
    let data = Data::read(&work.path().join("run.iotrace"));
    (work, made, data)
}

/// Recorded calls and lost ones are those that there were; the last ones, after the ring was emptied, are recorded.
fn adds_up(data: &Data, op: &str, lost: i64, made: i64, file: Option<&Path>) {
    let calls: Vec<_> = data.calls(op).filter(|s| file.is_none_or(|f| data.path(s) == Some(f))).collect();
    let recorded = calls.len() as i64;
    assert_eq!(recorded + lost, made, "{op}: {recorded} recorded, {lost} lost, {:?}", data.losses);
    assert!(lost > 0 && recorded > 0, "{op}: {recorded} recorded, {lost} lost");
}

#[test]
fn library_calls_and_the_system_calls_in_them() {
    let (work, made, data) = flooded("stdio,syscall", "fwrite", COUNT, 1);
    let lost = lost(&data, &[Layer::Stdio, Layer::Syscall]);
    let file = work.path().join("file");
    // A call on a stream whose file is not known has none.
    adds_up(&data, "fwrite", lost[0], made, None);
    adds_up(&data, "write", lost[1], made, Some(&file));
}

#[test]
fn system_calls_that_miss_the_page_cache() {
    let (work, made, data) = flooded("syscall", "pread", COUNT / 2, 1);
    let lost = lost(&data, &[Layer::Syscall]);
    let file = work.path().join("file");
    // Once when the file is made, and before each flood; the rings may still be full at the second one.
    let advices = 3 - data.calls("fadvise64").filter(|s| data.path(s) == Some(&file)).count() as i64;
    assert!((0..=1).contains(&advices), "{advices} calls of fadvise64 lost");
    adds_up(&data, "pread64", lost[0] - advices, made, Some(&file));
    // What goes before a call is lost with it.
    let mut reads = data.calls("pread64").filter(|s| data.path(s) == Some(&file));
    assert_eq!(reads.find(|s| s.miss_bytes != Some(4096)), None);
}

#[test]
fn page_faults() {
    // Where the pages of a file are in larger pieces, a fault is for such a piece.
    let (work, made, data) = flooded("syscall,vfs", "fault", COUNT / 4, 20);
    // What dirties a page has a record of its own, which is no call's.
    let lost = lost(&data, &[Layer::Vfs, Layer::Syscall]);
    let file = work.path().join("file");
    adds_up(&data, "page_fault_write", lost[0], made, Some(&file));
    // Before each flood the pages are unmapped.
    adds_up(&data, "madvise", lost[1], 21, Some(&file));
}

#[test]
fn calls_of_hdf5() {
    let (_work, made, data) = flooded("hdf5", "hdf5", COUNT / 2, 1);
    let lost = lost(&data, &[Layer::Hdf5])[0];
    // One space and one dataset are made at the beginning.
    let recorded = data.layer(Layer::Hdf5).count() as i64;
    let ended = data.calls("H5Fcreate").count() + data.calls("H5Dcreate2").count();
    let implied = data.layer(Layer::Hdf5).filter(|s| !["H5Screate_simple", "H5Dwrite", "H5Sclose"].contains(&s.op));
    assert_eq!(implied.count(), ended, "{:?}", Data::totals(data.layer(Layer::Hdf5)).keys());
    assert_eq!(recorded + lost, 3 * made + 3, "{recorded} recorded, {lost} lost");
    assert!(lost > 0 && data.calls("H5Dwrite").count() > 0);
}

/// Requests that all devices have completed, as the kernel counts them: reads, writes, discards, flushes.
fn completed() -> i64 {
    let stat = |device: fs::DirEntry| {
        let text = fs::read_to_string(device.path().join("stat")).unwrap_or_default();
        let numbers: Vec<i64> = text.split_whitespace().map(|n| n.parse().unwrap()).collect();
        [0, 4, 11, 15].iter().map(|at| numbers.get(*at).copied().unwrap_or(0)).sum::<i64>()
    };
    fs::read_dir("/sys/block").unwrap().map(|device| stat(device.unwrap())).sum()
}

/// Requests that are with a device now.
fn in_flight() -> i64 {
    let of = |device: fs::DirEntry| {
        let text = fs::read_to_string(device.path().join("inflight")).unwrap_or_default();
        text.split_whitespace().map(|n| n.parse::<i64>().unwrap()).sum::<i64>()
    };
    fs::read_dir("/sys/block").unwrap().map(|device| of(device.unwrap())).sum()
}

/// Requests of all devices are recorded, and the device of one that is lost is not known.
#[test]
fn requests_to_devices() {
    // In memory: only what the test asks for goes to a device.
    let shm = tempfile::tempdir_in("/dev/shm").unwrap();
    let device = Device::new(shm.path(), "ext4");
    for tries in 1.. {
        let work = tempfile::tempdir_in("/dev/shm").unwrap();
        let before = completed();
        let layers = "syscall,block";
        let mut flood = Flood::start(work.path(), layers, "direct", Path::new(&device.name), COUNT / 5);
        let (earlier, begun, own) = (in_flight(), completed(), device.counters()[0]);
        flood.overflow(1);
        let made = flood.go();
        assert_eq!(device.counters()[0] - own, made, "another one reads this device");
        let during = completed() - begun;
        let output = flood.end();
        let at_most = completed() - before;

        let data = Data::read(&work.path().join("run.iotrace"));
        let (lost, recorded) = (lost(&data, &[Layer::Block, Layer::Syscall])[0], data.block.len() as i64);
        let of_device = data.block.iter().filter(|b| b.dev == device.number).count() as i64;
        assert!((1..made).contains(&of_device) && lost >= made - of_device, "{of_device} of {made}, {lost} lost");
        assert!(output.contains("lost"), "{output}");
        // What others have on the way when the trace begins or ends may be in it or not.
        if during == at_most && earlier == 0 {
            assert_eq!(recorded + lost, during, "{recorded} recorded, {lost} lost");
            return;
        }
        assert!((made..=at_most).contains(&(recorded + lost)), "{recorded} + {lost}, {during} to {at_most}");
        if tries == 5 {
            return;
        }
    }
}
