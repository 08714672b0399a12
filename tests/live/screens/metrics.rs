//! What a real Prometheus scrapes while a program runs is what the program did, what the kernel counted, and what the
//! dataset of the same run has.

use crate::common::live::{self, Data, Running, tracer, until};
use crate::common::machine::device::{self, Device};
use crate::common::programs;
use crate::common::sql;
use crate::common::tools::prometheus::{Prometheus, Samples, get};
use crate::screens::monitoring;
use iotrace_bpf::export::Dataset;
use iotrace_bpf::rows::{Metric, Span};
use iotrace_bpf::vocabulary::{Kind, Layer};
use serde_json::Value;
use std::collections::BTreeMap;
use std::fs;
use std::io::Write as _;
use std::net::{SocketAddr, TcpListener};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// Labels of a sample.
fn of(labels: &[(&str, &str)]) -> BTreeMap<String, String> {
    labels.iter().map(|(k, v)| ((*k).to_owned(), (*v).to_owned())).collect()
}

/// The address that a tracer reports to serve.
pub fn address(stderr: &Path) -> SocketAddr {
    let mut found = None;
    until("the tracer's address", || {
        let text = fs::read_to_string(stderr).unwrap();
        let output =
            text.lines().find_map(|l| l.strip_prefix("iotrace-bpf: metrics at http://")?.strip_suffix("/metrics"));
        found = output.map(|a| a.parse().unwrap());
        found.is_some()
    });
    found.unwrap()
}

/// A program that is traced, has done its I/O, and waits.
struct Paused {
    tracer: Running,
    truth: Value,
    address: SocketAddr,
    dataset: PathBuf,
    stderr: PathBuf,
}

impl Paused {
    fn begin(work: &Path, dir: &Path) -> Self {
        let [dataset, stdout, stderr] = ["run.iotrace", "stdout", "stderr"].map(|name| work.join(name));
        let mut command = tracer();
        command
            .args(["--metrics", "127.0.0.1:0", "-o"])
            .arg(&dataset)
            .arg("--")
            .arg(programs::build("metered"))
            .arg(dir);
        command.stdin(Stdio::piped()).stdout(fs::File::create(&stdout).unwrap());
        let tracer = Running::spawn(command.stderr(fs::File::create(&stderr).unwrap()));
        let address = address(&stderr);
        let mut truth = None;
        until("the program's own counts", || {
            truth = fs::read_to_string(&stdout).unwrap().lines().find_map(|l| serde_json::from_str(l).ok());
            truth.is_some()
        });
        Self { tracer, truth: truth.unwrap(), address, dataset, stderr }
    }

    fn truth(&self, group: &str, name: &str) -> f64 {
        self.truth[group][name].as_i64().unwrap() as f64
    }

    /// The program ends, and with it the trace.
    fn end(mut self) -> Data {
        drop(self.tracer.0.stdin.take());
        let status = self.tracer.wait();
        assert!(status.success(), "{}", fs::read_to_string(&self.stderr).unwrap());
        Data::read(&self.dataset).lossless()
    }
}

/// Outermost calls by layer and operation, each with a figure, as samples.
fn by_op(data: &Data, figure: impl Fn(&Span) -> f64) -> Samples {
    let mut sums = Samples::new();
    for span in data.spans.iter().filter(|s| s.layer_top) {
        *sums.entry(of(&[("layer", span.layer.name()), ("op", span.op)])).or_default() += figure(span);
    }
    sums
}

/// Counts of calls and bytes are the program's own. Returns the bytes that system calls wrote.
fn compare_program(paused: &Paused, prometheus: &Prometheus) -> f64 {
    let value = |query: &str| prometheus.value(query);
    let count = |op: &str| value(&format!("sum(iotrace_op_duration_seconds_count{{op='{op}'}})"));
    for op in ["fwrite", "fread", "fseek", "fopen", "fclose"] {
        assert_eq!(count(op), Some(paused.truth("stdio", op)), "{op}");
    }
    for op in ["pwritev", "preadv", "fdatasync"] {
        assert_eq!(count(op), Some(paused.truth("posix", op)), "{op}");
    }
    let failed = |op: &str| value(&format!("sum(iotrace_op_failed_total{{op='{op}'}})"));
    assert_eq!((failed("pwritev"), failed("preadv"), failed("fopen")), (Some(5.0), Some(0.0), Some(1.0)));
    // Where it is known on which kind of file system, and where not.
    let on = prometheus.samples("iotrace_op_duration_seconds_count{op='pwritev'}");
    let call = [("layer", "syscall"), ("op", "pwritev")];
    let local = of(&[&call[..], &[("fs", "xfs"), ("scope", "local")]].concat());
    assert_eq!(on, Samples::from([(local, 16.0), (of(&call), 5.0)]));
    let printed = |group: &str, at: usize| paused.truth["bytes"][group][at].as_f64();
    let bytes = |layer: &str, direction: &str| {
        value(&format!("iotrace_bytes_total{{layer='{layer}',direction='{direction}',fs='xfs',scope='local'}}"))
    };
    assert_eq!([bytes("stdio", "read"), bytes("stdio", "write")], [printed("stdio", 0), printed("stdio", 1)]);
    let written = printed("stdio", 1).zip(printed("direct", 1)).map(|(a, b)| a + b);
    assert_eq!(bytes("syscall", "write"), written);
    written.unwrap()
}

/// What the kernel counts of the device, both as the tracer saw it and as the node has it.
fn compare_device(prometheus: &Prometheus, device: &Device, before: &[i64]) {
    let disk = disk(device);
    let value = |query: &str| prometheus.value(query);
    device::run("sync", &[]);
    let requests = |what: &str, labels: &str| value(&format!("{what}{{device='{disk}',{labels}}}"));
    until("the device's figures", || {
        let after = device.counters();
        let grown = |at: usize| Some((after[at] - before[at]) as f64);
        let now = |at: usize| Some(after[at] as f64);
        let sectors = |n: Option<f64>| n.map(|n| n * 512.0);
        requests("iotrace_op_duration_seconds_count", "op='read'") == grown(0)
            && requests("iotrace_bytes_total", "direction='read'") == sectors(grown(2))
            && requests("iotrace_bytes_total", "direction='write'") == sectors(grown(6))
            && requests("iotrace_node_device_requests_total", "op='read'") == now(0)
            && requests("iotrace_node_device_bytes_total", "op='read'") == sectors(now(2))
            && requests("iotrace_node_device_requests_total", "op='write'") == now(4)
            && requests("iotrace_node_device_bytes_total", "op='write'") == sectors(now(6))
    });
}

/// Prometheus has parsed what it read: units are not in the format from before `OpenMetrics`.
fn check_metadata(prometheus: &Prometheus) {
    let value = |query: &str| prometheus.value(query);
    until("the metadata", || prometheus.metadata("iotrace_op_duration_seconds").is_some());
    let [kind, unit, help] = prometheus.metadata("iotrace_op_duration_seconds").unwrap();
    assert_eq!((kind.as_str(), unit.as_str()), ("histogram", "seconds"));
    assert!(help.contains("layer_top"), "{help}");
    assert_eq!(value("sum(iotrace_lost_events_total)"), Some(0.0));
    assert_eq!(value("iotrace_traced_processes"), Some(1.0));
    assert_eq!(value("up"), Some(1.0));
    for family in ["iotrace_op_duration_seconds_count", "iotrace_bytes_total", "iotrace_node_cpu_seconds_total"] {
        assert_eq!(value(&format!("max(resets({family}[10m]))")), Some(0.0), "{family} went back");
    }
}

/// Debian's own checker of such texts finds nothing; another path is not found.
fn check_pages(address: SocketAddr) {
    let (head, page) = get(address, "/metrics", "text/plain").unwrap();
    assert!(head.contains("Content-Type: text/plain; version=0.0.4"), "{head}");
    let mut checker = Command::new("promtool");
    checker.args(["check", "metrics"]).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut checker = checker.spawn().unwrap();
    checker.stdin.take().unwrap().write_all(page.as_bytes()).unwrap();
    let output = checker.wait_with_output().unwrap();
    let printed = [output.stdout, output.stderr].map(|w| String::from_utf8(w).unwrap());
    assert!(output.status.success() && printed == ["", ""], "{printed:?}");
    assert!(get(address, "/", "").unwrap().0.starts_with("HTTP/1.1 200 "));
    assert!(get(address, "/other", "").unwrap().0.starts_with("HTTP/1.1 404 "));
}

/// Figures of all calls, as Prometheus has them.
struct Scraped {
    calls: Samples,
    seconds: Samples,
    /// Calls of at most 8 us.
    fast: Samples,
    failed: Samples,
    own: Samples,
    moved: Samples,
    probes: Samples,
    left_out: Option<f64>,
}

impl Scraped {
    fn new(prometheus: &Prometheus) -> Self {
        Self {
            calls: prometheus.samples("sum by (layer, op) (iotrace_op_duration_seconds_count{layer!='block'})"),
            seconds: prometheus.samples("sum by (layer, op) (iotrace_op_duration_seconds_sum{layer!='block'})"),
            fast: prometheus
                .samples("sum by (layer, op) (iotrace_op_duration_seconds_bucket{layer!='block',le='8e-06'})"),
            failed: prometheus.samples("sum by (layer, op) (iotrace_op_failed_total{layer!='block'})"),
            own: prometheus.samples("sum by (layer) (iotrace_op_self_seconds_total)"),
            moved: prometheus.samples("sum by (layer, direction) (iotrace_bytes_total{layer!='block'})"),
            probes: prometheus.samples("iotrace_probes{status='attached'}"),
            left_out: prometheus.value("iotrace_left_out_calls_total{what='excluded_calls'}"),
        }
    }

    /// They are those of the dataset.
    fn compare(&self, data: &Data) {
        assert_eq!(self.calls, by_op(data, |_| 1.0));
        assert_eq!(self.failed, by_op(data, |s| f64::from(u8::from(s.errno != 0))));
        assert_eq!(self.fast, by_op(data, |s| f64::from(u8::from(s.net_ns() <= 8000))));
        let close = |seen: &Samples, truth: &Samples| {
            let near = |(a, b): (&f64, &f64)| (a - b).abs() <= 1e-9 * b.max(1.0);
            seen.keys().eq(truth.keys()) && seen.values().zip(truth.values()).all(near)
        };
        let truth = by_op(data, |s| s.net_ns() as f64 / 1e9);
        assert!(close(&self.seconds, &truth), "{:?} and {truth:?}", self.seconds);
        let mut truth = Samples::new();
        for span in &data.spans {
            *truth.entry(of(&[("layer", span.layer.name())])).or_default() += span.self_ns as f64 / 1e9;
        }
        assert!(close(&self.own, &truth), "{:?} and {truth:?}", self.own);
        let mut truth = Samples::new();
        for span in data.spans.iter().filter(|s| s.layer_top && [Kind::Read, Kind::Write].contains(&s.kind)) {
            for kind in [Kind::Read, Kind::Write] {
                let bytes = if span.kind == kind { span.bytes.unwrap_or(0) } else { 0 };
                let labels = of(&[("layer", span.layer.name()), ("direction", kind.name())]);
                *truth.entry(labels).or_default() += bytes as f64;
            }
        }
        assert_eq!(self.moved, truth);
        for layer in [Layer::Stdio, Layer::Syscall, Layer::Block] {
            let attached = data.coverage.iter().filter(|c| c.layer == layer && c.status == "attached").count();
            let labels = of(&[("layer", layer.name()), ("status", "attached")]);
            assert_eq!(self.probes.get(&labels), Some(&(attached as f64)), "{layer}");
        }
    }
}

/// The same figures are rows of the dataset. `written`: bytes that the program wrote to the device.
fn compare_rows(dataset: &Path, left_out: Option<f64>, device: &Device, written: f64) {
    let mut last: BTreeMap<(&str, Option<String>), f64> = BTreeMap::new();
    let mut rows = Vec::new();
    Dataset::open(dataset)
        .unwrap()
        .rows(|row: Metric| {
            last.insert((row.name, row.label.clone()), row.value);
            rows.push(row);
            Ok(())
        })
        .unwrap();
    // The end of the program is a call on a pipe that came later.
    assert!(left_out <= last.get(&("excluded_calls", Some("syscall".to_owned()))).copied(), "{left_out:?}");
    let after = device.counters();
    let bytes = last[&("node_device_bytes", Some(format!("{} write", disk(device))))];
    assert!(bytes >= written && bytes <= (after[6] * 512) as f64, "{bytes}, {}", after[6] * 512);
    for resource in ["cpu", "io", "memory"] {
        let label = Some(format!("{resource} some"));
        let there = last.contains_key(&("node_pressure_seconds", label));
        assert_eq!(there, Path::new("/proc/pressure").join(resource).exists(), "{resource}");
    }
    let totals = ["node_cpu_seconds", "node_network_bytes", "node_device_bytes", "node_device_requests"];
    let mut before: BTreeMap<(&str, &Option<String>), f64> = BTreeMap::new();
    for row in rows.iter().filter(|r| totals.contains(&r.name)) {
        // Only what has changed is written.
        assert!(before.insert((row.name, &row.label), row.value).is_none_or(|b| b < row.value), "{row:?}");
    }
}

fn disk(device: &Device) -> &str {
    device.name.trim_start_matches("/dev/")
}

#[test]
fn prometheus_matches_the_program_and_the_dataset() {
    let work = live::scratch();
    let device = Device::new(work.path(), "xfs");
    let before = device.counters();
    let paused = Paused::begin(work.path(), &device.mount);
    let prometheus = Prometheus::start(work.path(), paused.address, Path::new(monitoring::RULES));

    // The last call on a file is there; so are those before it.
    until("the last call", || prometheus.value("iotrace_op_duration_seconds_count{op='fdatasync'}") == Some(1.0));
    let written = compare_program(&paused, &prometheus);
    compare_device(&prometheus, &device, &before);
    check_metadata(&prometheus);
    monitoring::check(&prometheus);
    let scraped = Scraped::new(&prometheus);
    check_pages(paused.address);

    drop(prometheus);
    let dataset = paused.dataset.clone();
    let data = paused.end();
    // The program has made no call on a file since: all of the dataset was there.
    scraped.compare(&data);
    compare_rows(&dataset, scraped.left_out, &device, written);
}

/// CPU seconds of the node in user mode, by the kernel, now.
fn cpu_user() -> f64 {
    let text = fs::read_to_string("/proc/stat").unwrap();
    // In user mode, and the same of what is nice.
    let ticks: f64 = text.split_whitespace().skip(1).take(2).map(|n| n.parse::<f64>().unwrap()).sum();
    ticks / nix::unistd::sysconf(nix::unistd::SysconfVar::CLK_TCK).unwrap().unwrap() as f64
}

#[test]
fn the_node_has_five_resolutions() {
    let work = live::scratch();
    let dir = work.path().join("run.iotrace");
    let before = cpu_user();
    let mut command = tracer();
    command.args(["--batch", "--json", "-d", "1s", "-o"]).arg(&dir).args(["--", "sh", "-c"]);
    // Something for the CPUs to do, and then nothing.
    command.arg("i=0; while [ $i -lt 300000 ]; do i=$((i + 1)); done; sleep 3");
    let out = command.output().unwrap();
    assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stderr));
    let after = cpu_user();
    let ticks: Vec<Value> = out.stderr.split(|b| *b == b'\n').filter_map(|l| serde_json::from_slice(l).ok()).collect();
    let node = &ticks.last().unwrap()["node"];
    let missing: Vec<&str> = node["missing"].as_array().unwrap().iter().map(|m| m["path"].as_str().unwrap()).collect();
    let absent = ["/proc/pressure/cpu", "/proc/pressure/io", "/proc/pressure/memory"];
    assert_eq!(missing, absent.into_iter().filter(|p| !Path::new(p).exists()).collect::<Vec<_>>());

    let resolutions = node["resolutions"].as_array().unwrap();
    let widths: Vec<i64> = resolutions.iter().map(|r| r["width_ns"].as_i64().unwrap()).collect();
    assert_eq!(widths, [100_000_000, 1_000_000_000, 10_000_000_000, 60_000_000_000, 600_000_000_000]);
    let [fine, seconds] = [0, 1].map(|at| resolutions[at]["points"].as_array().unwrap());
    assert_eq!(fine.len(), 10);
    assert!(seconds.len() >= 2, "{seconds:?}");
    let number = |point: &Value, key: &str| point[key].as_f64().unwrap_or_else(|| panic!("{key} of {point}"));
    for points in [fine, seconds] {
        assert!(points.windows(2).all(|w| w[0]["to_ns"] == w[1]["from_ns"]), "{points:?}");
        let levels =
            points.iter().all(|p| number(p, "memory_available_bytes") > 0.0 && number(p, "dirty_bytes") >= 0.0);
        assert!(levels, "{points:?}");
    }
    // Rates times their time: no more than the kernel counted from before the first to after the last.
    let used: f64 =
        seconds.iter().map(|p| number(p, "cpu_user") * (number(p, "to_ns") - number(p, "from_ns")) / 1e9).sum();
    assert!(used > 0.0 && used <= after - before + 0.02, "{used} of {}", after - before);
    compare_view(&dir, resolutions);
}

/// The dataset has the same points, but for those that a look came late for.
fn compare_view(dataset: &Path, resolutions: &[Value]) {
    let rows = sql::query(dataset, "FROM v_node");
    let mut compared = 0;
    for resolution in resolutions {
        let width = resolution["width_ns"].as_i64().unwrap();
        let length = |point: &Value| point["to_ns"].as_i64().unwrap() - point["from_ns"].as_i64().unwrap();
        for point in resolution["points"].as_array().unwrap().iter().filter(|point| length(point) <= 2 * width) {
            let is_its = |row: &&Value| {
                row["resolution_ns"] == width && row["from_ns"] == point["from_ns"] && row["to_ns"] == point["to_ns"]
            };
            let row = rows.iter().find(is_its).unwrap_or_else(|| panic!("no row of {width} ns for {point}"));
            for (name, value) in point.as_object().unwrap() {
                let (Some(ours), Some(sql)) = (value.as_f64(), row[name].as_f64()) else {
                    assert_eq!(value.is_null(), row[name].is_null(), "{name} of {point}");
                    continue;
                };
                assert!((ours - sql).abs() <= 1e-6 * ours.abs().max(1.0), "{name}: {ours}, SQL {sql}, of {point}");
            }
            compared += 1;
        }
    }
    assert!(compared > 5, "{compared}");
    assert!(rows.iter().any(|row| row["resolution_ns"] == 600_000_000_000_i64), "a point that is as long as the trace");
}

#[test]
fn a_port_in_use_is_an_error_before_anything_is_started() {
    let work = live::scratch();
    let marker = work.path().join("started");
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let in_use = taken.local_addr().unwrap().to_string();
    for (address, expected) in [
        (in_use.as_str(), "another program listens there"),
        // For documentation: no host has it (RFC 5737).
        ("192.0.2.1:9464", "that is no address of this machine"),
    ] {
        let out = tracer().args(["--metrics", address, "--", "touch"]).arg(&marker).output().unwrap();
        let output = String::from_utf8_lossy(&out.stderr);
        assert_eq!(out.status.code(), Some(125), "{output}");
        assert!(output.contains(&format!("--metrics {address}: ")) && output.contains(expected), "{output}");
        assert!(!marker.exists(), "{address}");
    }
}
