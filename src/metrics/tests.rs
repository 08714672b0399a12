//! From rows to the page.

use crate::analysis::findings::{Evidence, Finding, Findings, Severity};
use crate::analysis::nesting::Nesting;
use crate::analysis::parallel::ranks::OwnCalls;
use crate::analysis::trace::share::{HOOKS_NS, TRACING_NS};
use crate::event::FileKey;
use crate::export::dataset::tests::sums;
use crate::metrics::counts::Counts;
use crate::metrics::families::{ALL, Type};
use crate::metrics::page::{Node, Own, Page, page};
use crate::metrics::text::Format;
use crate::node::counters::{self, COUNTERS, Count};
use crate::node::figures;
use crate::rows::{Block, Coverage, File, FileRollup, Loss, Metric, Mount, Process, Row, Span, span_id};
use crate::vocabulary::{Kind, Layer};
use std::collections::{BTreeMap, BTreeSet};

fn whole(counts: &Counts, node: &Node) -> String {
    page(Format::OpenMetrics, &Page { counts, own: &own(), node })
}

fn span(layer: Layer, op: &'static str, kind: Kind, dur_ns: i64) -> Span {
    Span { layer, op, kind, dur_ns, self_ns: dur_ns / 2, ..crate::export::dataset::tests::span(1, 1, 0) }
}

fn file(file_id: i32, fstype: &str, mount_id: Option<i32>) -> Row {
    Row::File(Box::new(File {
        fstype: Some(fstype.to_owned()),
        mount_id,
        ..File::placeholder(file_id, FileKey::default())
    }))
}

fn mount(mount_id: i32, scope: &'static str) -> Row {
    Row::Mount(Box::new(Mount {
        mount_id,
        mount_ns: 1,
        path: "/".into(),
        root: "/".into(),
        fstype: "ext4".into(),
        scope,
        source: "/dev/vda".into(),
        server: None,
        options: String::new(),
        super_options: String::new(),
        lower: None,
        upper: None,
        dev: 1,
        device: None,
        disk: None,
        model: None,
        block_size: None,
        opt_io_size: None,
        rotational: None,
        scheduler: None,
    }))
}

fn request(dev: i32, device: Option<&str>, op: &'static str, bytes: i32, dur_ns: Option<i64>) -> Row {
    Row::Block(Block {
        req_id: 1,
        dev,
        device: device.map(str::to_owned),
        op,
        class: "sync",
        req_flags: 0,
        sector: 0,
        bytes,
        pid: 1,
        queue_ns: 1000,
        insert_ns: None,
        issue_ns: 3500,
        dur_ns,
        status: Some(i16::from(bytes == 1)),
        nr_bios: 1,
        merges: 0,
        splits: 0,
        upper_dev: None,
        upper_sector: None,
        qdepth: 1,
    })
}

fn loss(layer: Option<Layer>, place: &'static str, count: i64) -> Row {
    Row::Loss(Loss { t_ns: 0, layer, cpu: None, place, process_ix: None, count })
}

fn verdict(symbol: &str, status: &'static str) -> Row {
    Row::Coverage(Coverage {
        layer: Layer::Stdio,
        target: "libc".into(),
        symbol: symbol.into(),
        tier: None,
        status,
        reason: None,
        offset: None,
        insn: None,
    })
}

fn process(process_ix: i32, end_ns: Option<i64>) -> Row {
    Row::Process(Box::new(Process { pid: process_ix, end_ns, ..Process::placeholder(process_ix, 0) }))
}

const fn total(name: &'static str, t_ns: i64, value: f64) -> Row {
    Row::Metric(Metric { t_ns, name, label: None, value })
}

fn excluded(value: f64) -> Row {
    Row::Metric(Metric { t_ns: 0, name: "excluded_calls", label: Some("syscall".into()), value })
}

/// A call on a file, that moved bytes.
fn moved(op: &'static str, kind: Kind, file_id: i32, bytes: i64) -> Span {
    Span { file_id: Some(file_id), bytes: Some(bytes), ..span(Layer::Syscall, op, kind, 1500) }
}

fn counts() -> Counts {
    let mut counts = Counts::new(&[Layer::Stdio, Layer::Syscall, Layer::Block]);
    counts.push(&[
        mount(7, "local"),
        // The file comes after its calls, as the correlator has it.
        Row::Span(Box::new(Span { speed: Some("very slow"), ..moved("read", Kind::Read, 3, 100) })),
        Row::Span(Box::new(Span { errno: 5, bytes: None, ..moved("read", Kind::Read, 3, 0) })),
        Row::Span(Box::new(Span { layer_top: false, errno: 5, ..moved("read", Kind::Read, 3, 1000) })),
        Row::Span(Box::new(moved("write", Kind::Write, 3, 50))),
        Row::Span(Box::new(moved("getdents64", Kind::Meta, 3, 999))),
        Row::Span(Box::new(span(Layer::Hdf5, "H5Dread", Kind::Read, 3_000_000_000))),
        file(3, "ext4", Some(7)),
        loss(Some(Layer::Syscall), "ring", 2),
        loss(None, "late", 1),
        verdict("fread", "attached"),
        verdict("fwrite", "attached"),
        verdict("gets", "absent"),
        verdict("", "skipped"),
        process(1, None),
        process(2, None),
        excluded(4.0),
        total(HOOKS_NS, 1000, 90.0),
        total(TRACING_NS, 1000, 0.0),
        request(1, Some("vda"), "read", 512, Some(1_000_000)),
        request(1, None, "read", 1024, Some(3_000_000)),
        request(1, Some("vda"), "flush", 0, Some(5)),
        request(1, Some("vda"), "write", 1, Some(5)),
        request(1, Some("vda"), "read", 4096, None),
    ]);
    counts.push(&[
        Row::Span(Box::new(Span { speed: Some("very slow"), ..moved("read", Kind::Read, 3, 1) })),
        // Of a file that is not known to be on a mount.
        file(4, "ext4", None),
        Row::Span(Box::new(moved("read", Kind::Read, 4, 10))),
        loss(Some(Layer::Syscall), "ring", 3),
        process(1, Some(5)),
        excluded(9.0),
        total(HOOKS_NS, 2000, 600.0),
        total(TRACING_NS, 2000, 250.0),
    ]);
    let finding = Finding {
        rule: "lock-wait",
        severity: Severity::Warn,
        title: String::new(),
        seconds: Some(2.5),
        share: Some(0.05),
        gain_low_s: None,
        gain_high_s: None,
        advice: String::new(),
        evidence: Evidence::default(),
        sql: String::new(),
    };
    let mut nesting = Nesting::default();
    let mut own = OwnCalls::default();
    let written = Span { rank: Some(3), ..moved("write", Kind::Write, 3, 50) };
    let failed = Span { span_id: span_id(2, 1), errno: 5, bytes: None, ..moved("read", Kind::Read, 3, 0) };
    let inside = Span { span_id: span_id(2, 2), parent_id: Some(failed.span_id), ..moved("read", Kind::Read, 3, 7) };
    for span in [written, failed, inside] {
        let around = nesting.of(&span);
        own.span(&span, &around);
    }
    counts.add_own(&own);
    counts.set_findings(&Findings { findings: vec![finding], trusted: true, ..Findings::default() });
    counts
}

fn node() -> Node {
    let mut readings = figures::cpu("cpu  150 0 0 25", 100.0);
    readings.extend(figures::memory("MemTotal: 4 kB"));
    readings.extend(figures::pressure("io", "some total=2500000"));
    readings.extend(figures::network("e\"th:7 1 0 0 0 0 0 0 8 1 0 0 0 0 0 0"));
    readings.extend(figures::devices("254 0 vda 1 0 8 3 2 0 16 5 0 4 9", |_| true));
    let count = |value| Count { value, enabled_ns: 1, running_ns: 1 };
    readings.extend(counters::readings((0..COUNTERS.len()).map(|at| (at, count(7 * (at as u64 + 1))))));
    Node { readings, sources: vec![("/proc/stat", true), ("/proc/pressure/cpu", false)] }
}

fn own() -> Own {
    Own {
        node: "node1".to_owned(),
        records: 12,
        ring_fill: 0.25,
        ring_bytes: 1 << 26,
        cpu_ns: 1_500_000_000,
        memory_bytes: Some(4096),
        started_ns: 1_700_000_000_123_456_789,
    }
}

/// Samples by what stands before their value.
fn samples(text: &str) -> BTreeMap<&str, &str> {
    let lines = text.lines().filter(|l| !l.starts_with('#'));
    let samples: Vec<_> = lines.map(|l| l.rsplit_once(' ').unwrap()).collect();
    let by_name: BTreeMap<_, _> = samples.iter().copied().collect();
    assert_eq!(by_name.len(), samples.len(), "every sample stands there once:\n{text}");
    by_name
}

#[test]
fn every_call_request_loss_and_verdict_counts_once() {
    let text = whole(&counts(), &node());
    let samples = samples(&text);
    let is = |name: &str, value: &str| assert_eq!(samples.get(name), Some(&value), "{name} in\n{text}");
    let ext4 = "fs=\"ext4\",scope=\"local\"";
    is(&format!("iotrace_op_duration_seconds_count{{layer=\"syscall\",op=\"read\",{ext4}}}"), "3");
    is(&format!("iotrace_op_duration_seconds_sum{{layer=\"syscall\",op=\"read\",{ext4}}}"), "0.000004500");
    is(&format!("iotrace_op_duration_seconds_bucket{{layer=\"syscall\",op=\"read\",{ext4},le=\"1e-06\"}}"), "0");
    is(&format!("iotrace_op_duration_seconds_bucket{{layer=\"syscall\",op=\"read\",{ext4},le=\"2e-06\"}}"), "3");
    is(&format!("iotrace_op_failed_total{{layer=\"syscall\",op=\"read\",{ext4}}}"), "1");
    // All four, the one inside another of its layer too.
    is(&format!("iotrace_op_self_seconds_total{{layer=\"syscall\",op=\"read\",{ext4}}}"), "0.000003000");
    is(&format!("iotrace_bytes_total{{layer=\"syscall\",direction=\"read\",{ext4}}}"), "101");
    is(&format!("iotrace_bytes_total{{layer=\"syscall\",direction=\"write\",{ext4}}}"), "50");
    is("iotrace_bytes_total{layer=\"syscall\",direction=\"read\",fs=\"ext4\"}", "10");
    is("iotrace_op_duration_seconds_count{layer=\"hdf5\",op=\"H5Dread\"}", "1");
    is("iotrace_op_speed_total{layer=\"syscall\",op=\"read\",speed=\"very slow\"}", "2");
    is("iotrace_bytes_total{layer=\"hdf5\",direction=\"read\"}", "0");
    is("iotrace_op_duration_seconds_count{layer=\"block\",op=\"read\",device=\"vda\"}", "2");
    is("iotrace_op_duration_seconds_sum{layer=\"block\",op=\"read\",device=\"vda\"}", "0.004000000");
    is("iotrace_op_duration_seconds_count{layer=\"block\",op=\"flush\",device=\"vda\"}", "1");
    is("iotrace_op_failed_total{layer=\"block\",op=\"write\",device=\"vda\"}", "1");
    is("iotrace_bytes_total{layer=\"block\",direction=\"read\",device=\"vda\"}", "1536");
    is("iotrace_program_calls_total{rank=\"3\"}", "1");
    is("iotrace_program_bytes_total{rank=\"3\",direction=\"write\"}", "50");
    is("iotrace_program_io_seconds_total{rank=\"3\"}", "0.000001500");
    // The one inside another is not the program's own.
    is("iotrace_program_calls_total", "1");
    is("iotrace_program_failed_total", "1");
    is("iotrace_program_bytes_total{direction=\"read\"}", "0");
    is("iotrace_device_queue_seconds_total{device=\"vda\",op=\"read\"}", "0.000005000");
    is("iotrace_lost_events_total{layer=\"syscall\",reason=\"ring\"}", "5");
    is("iotrace_lost_events_total{layer=\"block\",reason=\"ring\"}", "0");
    is("iotrace_lost_events_total{layer=\"unknown\",reason=\"late\"}", "1");
    is("iotrace_left_out_calls_total{what=\"excluded_calls\"}", "9");
    is("iotrace_hooks_seconds_total", "0.000000600");
    is("iotrace_tracing_seconds_total", "0.000000250");
    is("iotrace_tracing_ratio", "0.25");
    is("iotrace_finding_seconds{rule=\"lock-wait\"}", "2.5");
    is("iotrace_finding_seconds{rule=\"reread\"}", "0");
    is("iotrace_probes{layer=\"stdio\",status=\"attached\"}", "2");
    is("iotrace_probes{layer=\"stdio\",status=\"absent\"}", "1");
    is("iotrace_probes{layer=\"syscall\",status=\"attached\"}", "0");
    assert!(!text.contains("status=\"skipped\""), "a verdict on a whole layer is none on a probe");
    is("iotrace_traced_processes", "1");
    is("iotrace_records_total", "12");
    is("iotrace_ring_fill_ratio", "0.25");
    is("process_cpu_seconds_total", "1.500000000");
    is("process_start_time_seconds", "1700000000.123456789");
    is("iotrace_node_cpu_seconds_total{mode=\"user\"}", "1.5");
    is("iotrace_target_cpu_seconds_total", "0.000000007");
    is("iotrace_target_page_faults_total{kind=\"major\"}", "21");
    is("iotrace_target_hardware_events_total{event=\"branch_misses\"}", "70");
    is("iotrace_node_pressure_seconds_total{resource=\"io\",kind=\"some\"}", "2.5");
    is("iotrace_node_network_bytes_total{interface=\"e\\\"th\",direction=\"sent\"}", "8");
    is("iotrace_node_device_bytes_total{device=\"vda\",op=\"write\"}", "8192");
    is("iotrace_node_device_in_flight{device=\"vda\"}", "0");
    is("iotrace_node_source{source=\"/proc/pressure/cpu\"}", "0");
}

#[test]
fn every_metric_is_on_the_page_with_its_type_and_the_labels_that_are_documented() {
    let text = whole(&counts(), &node());
    let types: Vec<&str> = text.lines().filter_map(|l| l.strip_prefix("# TYPE ")?.split(' ').next()).collect();
    assert_eq!(types, ALL.iter().map(|(f, _)| f.name).collect::<Vec<_>>());
    let mut seen: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    for name in samples(&text).keys() {
        let (name, labels) = name.split_once('{').unwrap_or((name, ""));
        let of = |suffixes: &[&str]| suffixes.iter().find_map(|s| name.strip_suffix(s)).unwrap_or(name);
        let family = ALL.iter().map(|(f, _)| f).find(|f| match f.kind {
            Type::Counter => of(&["_total"]) == f.name,
            Type::Info => of(&["_info"]) == f.name,
            Type::Histogram => of(&["_bucket", "_count", "_sum"]) == f.name,
            Type::Gauge => name == f.name,
        });
        let family = family.unwrap_or_else(|| panic!("{name} is of no family"));
        let labels = labels.trim_end_matches('}').split("\",").filter_map(|l| Some(l.split_once('=')?.0));
        seen.entry(family.name).or_default().extend(labels.filter(|l| *l != "le"));
    }
    for (f, _) in &ALL {
        let documented: BTreeSet<&str> = f.labels.split(", ").filter(|l| !l.is_empty()).collect();
        assert_eq!(seen.get(f.name), Some(&documented), "{}", f.name);
    }
}

#[test]
fn of_calls_that_were_summed_up_the_program_made_system_calls_and_of_demoted_ones_their_number_is_known() {
    let row = |layer, calls_error| FileRollup {
        rank: Some(1),
        calls: 5,
        bytes: 50,
        dur_ns: 500,
        errors: 2,
        calls_error,
        ..sums(layer, "read", Kind::Read)
    };
    let of = |aggregate, row: &FileRollup| {
        let mut own = OwnCalls::default();
        own.sums(row, aggregate);
        own.by_rank().map(|(rank, sums)| (rank, sums.calls, sums.bytes_read, sums.dur_ns, sums.errors)).next()
    };
    assert_eq!(of(true, &row(Layer::Syscall, None)), Some((Some(1), 5, 50, 500, 2)));
    assert_eq!(of(true, &row(Layer::Hdf5, None)), None, "its system calls are counted");
    assert_eq!(of(false, &row(Layer::Stdio, Some(1))), Some((Some(1), 5, 0, 0, 0)));
    assert_eq!(of(false, &row(Layer::Syscall, None)), None, "each call has come by itself");
}

#[test]
fn findings_whose_seconds_cannot_be_trusted_have_no_samples() {
    let mut counts = counts();
    counts.set_findings(&Findings::default());
    assert!(!whole(&counts, &node()).contains("iotrace_finding_seconds{"));
}

#[test]
fn file_systems_and_devices_are_listed_up_to_a_number() {
    let mut counts = Counts::new(&[]);
    for n in 0..1000 {
        counts.push(&[
            file(n, &format!("fuse.{n}"), None),
            Row::Span(Box::new(moved("read", Kind::Read, n, 1))),
            request(n, Some(&format!("sd{n}")), "read", 1, Some(1)),
        ]);
    }
    // A number that is none.
    counts.push(&[file(-1, "x", None), Row::Span(Box::new(moved("read", Kind::Read, -1, 1)))]);
    let read: u64 = counts.bytes().map(|(.., [read, _])| read).sum();
    let places: BTreeSet<_> = counts.ops().into_iter().map(|(_, _, place, _)| place.fs.clone()).collect();
    assert_eq!((read, counts.device_bytes().map(|(_, [read, _])| read).sum::<u64>()), (1001, 1000));
    assert_eq!((places.len(), places.contains("other"), places.contains("")), (65, true, true));
    assert_eq!(counts.device_bytes().count(), 257);
}

#[test]
fn totals_never_go_back_whatever_comes() {
    let mut counts = Counts::new(&[Layer::Syscall]);
    let strange = [
        Row::Span(Box::new(Span { self_ns: -5, bytes: Some(-7), ..moved("read", Kind::Read, 1, 0) })),
        Row::Span(Box::new(Span { dur_ns: -1, ..moved("write", Kind::Write, i32::MAX, 0) })),
        loss(Some(Layer::Syscall), "ring", -3),
        request(1, None, "read", -1, Some(-1)),
        excluded(-1.0),
        process(1, Some(1)),
    ];
    let totals = |counts: &Counts| -> Vec<f64> {
        let text = whole(counts, &Node::default());
        let total =
            |(name, value): (&&str, &&str)| (!name.starts_with("iotrace_probes")).then(|| value.parse().unwrap());
        samples(&text).iter().filter_map(total).collect()
    };
    counts.push(&strange);
    let before = totals(&counts);
    counts.push(&strange);
    let after = totals(&counts);
    assert_eq!(before.len(), after.len());
    assert!(before.iter().zip(&after).all(|(before, after)| before <= after), "{before:?} {after:?}");
}

#[test]
fn calls_and_requests_that_were_summed_up_count_to_the_bucket_that_their_bin_ends_in() {
    let mut durations = vec![0; 32];
    (durations[0], durations[3]) = (2, 1); // below 128 ns; 512 to 1023 ns
    let durations = Some(durations);
    let read = FileRollup {
        calls: 3,
        bytes: 300,
        dur_ns: 900,
        self_ns: 700,
        errors: 1,
        durations: durations.clone(),
        ..sums(Layer::Syscall, "read", Kind::Read)
    };
    let request = FileRollup { device: Some("vda".into()), file_id: None, layer: Layer::Block, ..read.clone() };
    let mut counts = Counts::new(&[Layer::Syscall]);
    counts.push(&[file(1, "ext4", None), Row::FileRollup(Box::new(read)), Row::FileRollup(Box::new(request))]);
    let (layer, op, place, figures) = counts.ops()[0];
    assert_eq!(
        (layer, op, place.fs.as_str(), figures.failed, figures.self_ns),
        (Layer::Syscall, "read", "ext4", 1, 700)
    );
    assert_eq!(
        (figures.durations.count, figures.durations.sum_ns, &figures.durations.buckets[..2]),
        (3, 900, &[2, 1][..])
    );
    let (device, op, requests) = counts.requests().next().unwrap();
    assert_eq!((device, op, requests.durations.count), ("vda", "read", 3));
    assert_eq!(counts.device_bytes().collect::<Vec<_>>(), [("vda", [300, 0])]);
}
