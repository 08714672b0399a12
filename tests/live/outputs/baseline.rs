//! Calls against those of earlier runs (`--baseline`): the classes are those that `DuckDB` finds in the datasets of these runs.

use crate::common::machine::device::Device;
use crate::common::machine::group::unified;
use crate::common::{live, sql};
use serde_json::Value;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// Requests per second that a slow device has: one in each slice of time that the kernel hands out.
const SLOW: u32 = 10;

/// The class of each call of a dataset and how long calls like it took on average, from all calls of earlier datasets; null where
/// these are too few.
const TRUTH: &str = r#"
import bisect, collections, duckdb, json, math, sys
CALLS = """SELECT s.span_id, s.speed, s.usual_ns, s.dur_ns - coalesce(s.probe_ns, 0), s.layer, s.op,
    CASE WHEN s.kind IN ('read', 'write') THEN s.bytes END, coalesce(f.fstype, ''),
    coalesce(m.device, CASE WHEN m.server IS NOT NULL THEN m.source END, m.path, '')
  FROM read_parquet('{0}/spans-*.parquet') s LEFT JOIN read_parquet('{0}/files-*.parquet') f USING (file_id)
    LEFT JOIN read_parquet('{0}/mounts-*.parquet') m USING (mount_id)
  WHERE s.layer_top AND s.layer <> 'app' AND s.flags & 64 = 0"""
SIZES = [100, 1 << 10, 10 << 10, 100 << 10, 1 << 20, 4 << 20, 10 << 20, 100 << 20, 1 << 30]
def calls(dataset):
    size = lambda bytes: None if bytes is None else bisect.bisect_left(SIZES, bytes)
    return [(id, speed, usual, net, (layer, op, size(bytes), *place))
            for id, speed, usual, net, layer, op, bytes, *place in duckdb.sql(CALLS.format(dataset)).fetchall()]
*earlier, now = sys.argv[1:]
took, runs = collections.defaultdict(list), collections.defaultdict(set)
for dataset in earlier:
    for _, _, _, net, like in calls(dataset):
        took[like].append(net)
        runs[like].add(dataset)
def bucket(ns):
    shift = max(ns.bit_length() - 6, 0)
    low = ns >> shift << shift
    return low, low + (1 << shift) - 1
def limits(like):
    all, n = sorted(took[like]), len(took[like])
    if n < 100 or len(runs[like]) < 2: return None
    at = lambda q: bucket(all[max(math.ceil(n * q), 1) - 1])
    return at(0.01)[0], at(0.1)[0], at(0.9)[1], at(0.99)[1], sum(all) // n
def speed(like, ns, known={}):
    if like not in known: known[like] = limits(like)
    if known[like] is None: return None, None
    least, less, more, most, mean = known[like]
    name = ("very slow" if ns > most else "slow" if ns > more else "very fast" if ns < least else "fast" if ns < less else "normal")
    return name, mean
wrong, counts = [], collections.Counter()
for id, found, usual, ns, like in calls(now):
    wanted = speed(like, ns)
    if wanted != (found, usual): wrong.append((id, like, ns, found, usual, wanted))
    if like[:2] == ("syscall", "read") and found: counts[found] += 1
print(json.dumps({"wrong": wrong[:10], "reads": counts}))
"#;

/// The classes of the reads of a dataset that were compared; those of all calls are those of the truth.
fn classes(earlier: &[PathBuf], now: &Path) -> Value {
    let out = Command::new(sql::python()).args(["-c", TRUTH]).args(earlier).arg(now).output().unwrap();
    assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stderr));
    let found: Value = serde_json::from_slice(&out.stdout).unwrap();
    assert_eq!(found["wrong"].as_array().unwrap(), &Vec::<Value>::new());
    found["reads"].clone()
}

/// A control group that has few requests per second of a device, which is removed in the end.
struct Slow(PathBuf);

impl Slow {
    fn new(device: i32) -> Self {
        let number = format!("{}:{}", device >> 20, device & 0xf_ffff);
        let name = format!("iotrace-test-slow-{}", std::process::id());
        let first = Path::new("/sys/fs/cgroup/blkio");
        let (group, file, limit) = if first.exists() {
            (first.join(name), "blkio.throttle.read_iops_device", format!("{number} {SLOW}"))
        } else {
            fs::write(unified().join("cgroup.subtree_control"), "+io").unwrap();
            (unified().join(name), "io.max", format!("{number} riops={SLOW}"))
        };
        fs::create_dir(&group).unwrap();
        fs::write(group.join(file), limit).unwrap();
        Self(group)
    }

    fn enter(&self) -> String {
        format!("echo $$ > {}/cgroup.procs && ", self.0.display())
    }
}

impl Drop for Slow {
    fn drop(&mut self) {
        let _ = (0..100).find(|_| {
            std::thread::sleep(std::time::Duration::from_millis(20));
            fs::remove_dir(&self.0).is_ok()
        });
    }
}

/// Direct reads of a file on a device of its own.
struct Reads {
    device: Device,
    work: tempfile::TempDir,
}

impl Reads {
    fn new() -> Self {
        let work = live::scratch();
        let device = Device::new(work.path(), "ext4");
        fs::write(device.mount.join("data"), vec![7; 1 << 20]).unwrap();
        Self { device, work }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.work.path().join(name)
    }

    /// So many reads of 4 KiB, after something that the shell does.
    fn record(&self, name: &str, options: &[&str], (before, reads): (&str, u32)) -> Output {
        let dd = format!(
            "{before}exec dd if={}/data of=/dev/null bs=4k count={reads} iflag=direct status=none",
            self.device.mount.display()
        );
        let mut tracer = live::tracer();
        tracer.args(["--layers", "syscall,block", "--quiet"]).args(options).env("XDG_STATE_HOME", self.path("state"));
        let out = tracer.arg("-o").arg(self.path(name)).args(["--", "sh", "-c", &dd]).output().unwrap();
        assert_eq!(out.status.code(), Some(0), "{}", String::from_utf8_lossy(&out.stderr));
        out
    }
}

#[test]
fn a_device_that_has_become_slow_is_found() {
    let reads = Reads::new();
    let baseline = format!("--baseline={}", reads.path("b.json").display());
    let learned = ["first", "second", "third"].map(|name| {
        reads.record(name, &[&baseline], ("", 120));
        reads.path(name)
    });
    classes(&learned[..1], &learned[1]);
    classes(&learned[..2], &learned[2]);
    assert!(!reads.path("state").exists(), "nothing but the file is written");
    let kept = fs::read(reads.path("b.json")).unwrap();

    // As before, and slow. Each learns from all before.
    reads.record("again", &[&baseline], ("", 120));
    let usual = classes(&learned, &reads.path("again"));
    assert_eq!(usual.as_object().unwrap().values().map(|n| n.as_i64().unwrap()).sum::<i64>(), 120, "{usual}");
    fs::write(reads.path("b.json"), &kept).unwrap();
    let slow = Slow::new(reads.device.number);
    reads.record("slow", &[&baseline], (&slow.enter(), 40));
    let found = classes(&learned, &reads.path("slow"));
    assert!(found["very slow"].as_i64() > Some(20), "{found}");

    // The report names the function, and so does SQL.
    sql::compare(&reads.path("slow"));
    sql::compare(&reads.path("again"));
    let out = live::tracer().args(["report", "--json"]).arg(reads.path("slow")).output().unwrap();
    let report: Value = serde_json::from_slice(&out.stdout).unwrap();
    let row = &report["speed"][0];
    assert_eq!([&row["layer"], &row["op"], &row["unusual"][0]], ["syscall", "read", "slow"], "{row}");
    assert_eq!((row["compared"].as_i64(), &row["classes"][4]["calls"]), (Some(40), &found["very slow"]));
    let text = live::report_of(&reads.path("slow"), "speed");
    assert!(text.contains("Against earlier runs: ") && text.contains(" in slow and very slow calls"), "{text}");
    println!("{text}");

    // What the flight recorder is asked for by the first of them, where no earlier run was as slow.
    fs::write(reads.path("b.json"), &kept).unwrap();
    let flight = ["--flight", "20s", "--trigger", "very-slow=50ms", &baseline];
    reads.record("flight", &flight, (&slow.enter(), 40));
    let written = live::datasets(&reads.path("flight"));
    let why = &live::Data::read(&written[0]).meta["trigger"];
    assert!(why.starts_with("very slow: syscall read took ") && why.contains(" on average in earlier runs"), "{why}");
}

#[test]
fn a_baseline_is_the_users_own_and_a_damaged_one_costs_no_run() {
    let reads = Reads::new();
    let own = reads.path("state/iotrace-bpf/baseline.json");
    reads.record("none", &[], ("", 5));
    assert!(!reads.path("state").exists(), "nobody has asked for it");
    reads.record("first", &["--baseline"], ("", 5));
    assert!(fs::read_to_string(&own).unwrap().starts_with("{\"version\":1,"));
    fs::write(&own, "{}").unwrap();
    let mut tracer = live::tracer();
    tracer.args(["--baseline", "--layers", "syscall"]).env("XDG_STATE_HOME", reads.path("state"));
    let out = tracer.arg("-o").arg(reads.path("damaged")).args(["--", "true"]).output().unwrap();
    let text = String::from_utf8_lossy(&out.stderr);
    assert!(
        text.contains("calls are not compared with earlier runs: ") && text.contains("remove it, or name"),
        "{text}"
    );
    assert_eq!((out.status.code(), fs::read_to_string(&own).unwrap().as_str()), (Some(0), "{}"));
    assert!(live::Data::read(&reads.path("damaged")).spans.iter().all(|span| span.speed.is_none()));
}
