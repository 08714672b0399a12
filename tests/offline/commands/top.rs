//! `top` over servers of this test, and its reader of metrics beside that of Prometheus's own library.

use crate::common::sql::python;
use assert_cmd::Command;
use iotrace_bpf::metrics::counts::Counts;
use iotrace_bpf::metrics::page::{Node, Own, Page, page};
use iotrace_bpf::metrics::reader;
use iotrace_bpf::metrics::text::Format;
use iotrace_bpf::node::figures;
use iotrace_bpf::vocabulary::Layer;
use predicates::str::contains;
use serde_json::{Value, json};
use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpListener};
use std::process;
use std::thread;

fn top(args: &[&str]) -> Command {
    let mut command = Command::cargo_bin("iotrace-bpf").unwrap();
    command.arg("top").args(args);
    command
}

#[test]
fn wrong_usage_has_a_reason() {
    let cases: [(&[&str], &str); 5] = [
        (&[], "<NODE>"),
        (&["node1"], "expected HOST:PORT or http://HOST:PORT/metrics"),
        (&["https://node1:9464"], "http, not https"),
        (&["node1:1", "--json"], "--batch"),
        (&["node1:1", "-d", "1ms"], "expected 100ms to 24h"),
    ];
    for (args, reason) in cases {
        top(args).assert().code(2).stderr(contains(reason));
    }
    top(&["node1:1"]).assert().code(125).stderr(contains("top needs a terminal; use --batch"));
}

/// A server that answers so often with a page that it makes from the number of the request, and then is gone.
fn serve(times: u32, page: impl Fn(u32) -> String + Send + 'static) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    thread::spawn(move || {
        for n in 0..times {
            let (mut client, _) = listener.accept().unwrap();
            let mut head = Vec::new();
            let mut byte = [0];
            while !head.ends_with(b"\r\n\r\n") && client.read(&mut byte).is_ok_and(|n| n == 1) {
                head.extend(byte);
            }
            let text = page(n);
            let _ =
                write!(client, "HTTP/1.1 200 OK\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{text}", text.len());
        }
    });
    address
}

/// The page of a tracer whose ranks are in I/O for so many seconds each time that it is asked.
fn tracer(node: &str, ranks: [(i32, u32); 2], started: u32, n: u32) -> String {
    let mut text = format!(
        "# TYPE iotrace_build info\niotrace_build_info{{version=\"1\",node=\"{node}\"}} 1\n\
         process_start_time_seconds {started}\niotrace_traced_processes 2\n"
    );
    for (rank, each) in ranks {
        text += &format!("iotrace_program_io_seconds_total{{rank=\"{rank}\"}} {}\n", each * n);
        text += &format!("iotrace_program_calls_total{{rank=\"{rank}\"}} {}\n", 100 * n);
    }
    text + "# EOF\n"
}

#[test]
fn a_node_that_ends_or_hangs_has_a_reason_and_keeps_no_other_waiting() {
    // The fifth request finds another trace.
    let first = serve(u32::MAX, |n| tracer("first", [(0, 1), (1, 1)], u32::from(n >= 4), n % 4));
    let slow = serve(u32::MAX, |n| tracer("slow", [(2, 1), (3, 9)], 0, n));
    let dies = serve(3, |n| tracer("dies", [(4, 1), (5, 1)], 0, n));
    let other = serve(u32::MAX, |_| "node_load1 0.5\n".to_owned());
    // The kernel takes the connection, and nobody answers.
    let hangs = TcpListener::bind("127.0.0.1:0").unwrap();
    let addresses = [first, slow, dies, other, hangs.local_addr().unwrap()].map(|a| a.to_string());
    let mut args: Vec<&str> = addresses.iter().map(String::as_str).collect();
    args.extend(["--batch", "--json", "-d", "500ms", "-n", "14"]);
    let out = top(&args).assert().success().get_output().stdout.clone();
    let ticks: Vec<Value> =
        String::from_utf8(out).unwrap().lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(ticks.len(), 14);
    let last = ticks.last().unwrap();
    let nodes = last["nodes"].as_array().unwrap();
    let states: Vec<&str> = nodes.iter().map(|node| node["state"].as_str().unwrap()).collect();
    assert_eq!(states, ["answers", "answers", "silent", "silent", "silent"], "{last:#}");
    let why = |at: usize| nodes[at]["why"].as_str().unwrap();
    assert_eq!(why(2), "Connection refused");
    assert!(why(3).contains("not from iotrace-bpf"), "{}", why(3));
    assert_eq!(why(4), "no answer within 5 s");
    let names: Vec<&str> = nodes.iter().map(|node| node["node"].as_str().unwrap()).collect();
    assert_eq!(names[..3], ["first", "slow", "dies"]);
    assert_eq!(names[3..], [&*addresses[3], &*addresses[4]]);
    // What is known of the node that is gone stays, and it is not compared.
    let was = nodes[2]["io_over_time"].as_array().unwrap();
    assert!(was.iter().any(Value::is_number) && was.last().unwrap().is_null(), "{was:?}");
    assert!(nodes[2]["of_mean"].is_null() && nodes[2]["per_second"].is_null());
    assert_eq!(nodes[1]["restarts"], 0);
    assert!(nodes[0]["restarts"].as_u64().unwrap() >= 1, "{last:#}");
    assert!(nodes[1]["per_second"]["calls"].as_f64().unwrap() > 0.0);
    assert_eq!(last["stragglers"][0]["name"], "rank 3 on slow", "{last:#}");
    assert_eq!(last["ranks"].as_array().unwrap().len(), 6);
    // It was there while it was asked, whatever became of the one that hangs.
    assert!(ticks.iter().any(|tick| tick["nodes"][2]["state"] == "answers"));
}

#[test]
fn lines_for_people_name_stragglers_and_reasons() {
    let even = serve(u32::MAX, |n| tracer("ev\u{1b}[31men", [(0, 1), (1, 1)], 0, n));
    let slow = serve(u32::MAX, |n| tracer("slow", [(2, 1), (3, 9)], 0, n));
    let gone = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let nodes = format!("{even},{slow},{gone}");
    let out = top(&[&nodes, "--batch", "-d", "500ms", "-n", "3"]).assert().success().get_output().stdout.clone();
    let text = String::from_utf8(out).unwrap();
    let last = text.split("\n\n").filter(|tick| !tick.is_empty()).last().unwrap();
    assert!(last.contains("straggler: rank 3 on slow (") && last.contains("no answer: Connection refused"), "{text}");
    assert!(last.contains("ev\\x1b[31men"), "{text}");
}

/// Samples of pages as the parsers of `prometheus_client` read them.
fn read_by_prometheus(pages: &Value) -> Value {
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/common/readers/exposition.py");
    let mut child = process::Command::new(python())
        .arg(script)
        .stdin(process::Stdio::piped())
        .stdout(process::Stdio::piped())
        .spawn()
        .unwrap();
    child.stdin.take().unwrap().write_all(pages.to_string().as_bytes()).unwrap();
    let out = child.wait_with_output().unwrap();
    assert!(out.status.success());
    serde_json::from_slice(&out.stdout).unwrap()
}

/// The same as our reader has them.
fn read_by_us(text: &str) -> Value {
    let mut samples: Vec<Value> = reader::samples(text)
        .map(|sample| {
            let sample = sample.unwrap();
            let mut labels: Vec<(&str, &str)> = sample.labels.iter().map(|(name, value)| (*name, &**value)).collect();
            labels.sort_unstable();
            json!([sample.name, labels, sample.value.to_string()])
        })
        .collect();
    samples.sort_by_key(Value::to_string);
    json!(samples)
}

#[test]
fn our_reader_reads_what_that_of_prometheus_reads() {
    let own = Own { node: "a\"b\\c\nd{},=#é".to_owned(), ring_fill: 0.25, cpu_ns: 1_500_000_000, ..Own::default() };
    let mut readings = figures::cpu("cpu  150 0 0 25", 100.0);
    readings.extend(figures::network("e\"th:7 1 0 0 0 0 0 0 8 1 0 0 0 0 0 0"));
    let node = Node { readings, sources: vec![("/proc/stat", true)] };
    let counts = Counts::new(&[Layer::Hdf5, Layer::Syscall, Layer::Block]);
    let of = |format| page(format, &Page { counts: &counts, own: &own, node: &node });
    // What other writers do: blanks, a comma at the end, times, exemplars, escapes.
    let open = "# TYPE a counter\n# HELP a It \\\"is\\\" {x=\"1\"}\na_total{x=\"}\\\\ # \\n\",y=\"\"} 1e3 17.5\n\
        # TYPE h histogram\nh_bucket{le=\"1.0\"} 4 # {trace=\"a b\"} 0.5\nh_bucket{le=\"+Inf\"} 5\nh_count 5\nh_sum 3.25\n\
        # TYPE g gauge\ng{x=\"é\"} -Inf\n# EOF\n";
    let plain = "a { x = \"1\" , y = \"two, \\\"3\\\"\", } -2.5e3 1700000000000\n\n# a comment\nb\t7\nc{} 0.1\n";
    let texts = [
        ("openmetrics", of(Format::OpenMetrics)),
        ("prometheus", of(Format::Prometheus)),
        ("openmetrics", open.to_owned()),
        ("prometheus", plain.to_owned()),
    ];
    let pages = texts.iter().map(|(format, text)| json!({"format": format, "text": text})).collect::<Vec<_>>();
    let theirs = read_by_prometheus(&json!(pages));
    for ((format, text), theirs) in texts.iter().zip(theirs.as_array().unwrap()) {
        let mut theirs: Vec<Value> = theirs
            .as_array()
            .unwrap()
            .iter()
            .map(|sample| {
                let value: f64 = sample[2].as_str().unwrap().parse().unwrap();
                json!([sample[0], sample[1], value.to_string()])
            })
            .collect();
        theirs.sort_by_key(Value::to_string);
        assert!(!theirs.is_empty());
        assert_eq!(read_by_us(text), json!(theirs), "{format}: {text}");
    }
}
