//! Every function of C standard I/O is recorded as often as it is called, with its bytes at their place in the file.

use crate::common::live::{self, Data};
use crate::common::programs;
use iotrace_bpf::catalog::{self, Family};
use iotrace_bpf::rows::{Coverage, Span};
use iotrace_bpf::vocabulary::{Kind, Layer};
use serde_json::Value;
use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

/// Runs `stdio_all`, however it was built; its truth, and what was recorded of the process itself.
fn stdio_all(work: &Path, program: &str) -> (Value, Data) {
    let dir = work.join("all");
    fs::create_dir(&dir).unwrap();
    let traced = live::trace(work, &[], &[programs::build(program).as_path(), &dir]);
    let mut data = traced.data().lossless();
    let truth: Value = serde_json::from_slice(&fs::read(dir.join("truth.json")).unwrap()).unwrap();
    data.spans.retain(|s| i64::from(s.pid) == truth["pid"].as_i64().unwrap());
    (truth, data)
}

/// The verdicts on the functions of the library (or static program) in which most were probed.
fn verdicts(data: &Data) -> BTreeMap<&str, &Coverage> {
    let stdio = || data.coverage.iter().filter(|c| c.layer == Layer::Stdio && !c.symbol.is_empty());
    let attached = |target: &str| stdio().filter(|c| c.target == target && c.status == "attached").count();
    let target = stdio().map(|c| c.target.as_str()).max_by_key(|target| attached(target)).unwrap();
    // A symbol with two versions has two verdicts.
    stdio().filter(|c| c.target == target).map(|c| (c.symbol.as_str(), c)).collect()
}

/// The name under which calls of a symbol are recorded: that of the symbol that was probed at its address.
fn op(verdicts: &BTreeMap<&str, &Coverage>, symbol: &str) -> &'static str {
    let other = verdicts[symbol].reason.as_deref().and_then(|why| why.strip_prefix("alias of "));
    let symbol = other.map_or(symbol, |rest| rest.split(' ').next().unwrap());
    catalog::rows().iter().find(|r| r.family == Family::Libc && r.symbol == symbol).unwrap().op
}

/// Numbers by symbol as numbers by recorded name.
fn by_op(verdicts: &BTreeMap<&str, &Coverage>, numbers: &Value) -> BTreeMap<&'static str, i64> {
    let mut all = BTreeMap::new();
    for (symbol, n) in numbers.as_object().unwrap() {
        *all.entry(op(verdicts, symbol)).or_default() += n.as_i64().unwrap();
    }
    all
}

fn sums<'a>(
    spans: impl Iterator<Item = &'a Span>,
    value: impl Fn(&Span) -> Option<i64>,
) -> BTreeMap<&'static str, i64> {
    let mut all = BTreeMap::new();
    for (op, n) in spans.filter_map(|s| Some((s.op, value(s)?))) {
        *all.entry(op).or_default() += n;
    }
    all
}

/// Calls and bytes are those that the program counted.
fn agree(program: &str) -> (Value, Data) {
    let work = live::scratch();
    let (truth, data) = stdio_all(work.path(), program);
    let verdicts = verdicts(&data);
    // Functions of the library call each other, and the program is right about those it called.
    let top = || data.layer(Layer::Stdio).filter(|s| s.layer_top);
    let moves = || top().filter(|s| matches!(s.kind, Kind::Read | Kind::Write));
    assert_eq!(sums(top(), |_| Some(1)), by_op(&verdicts, &truth["calls"]), "calls");
    assert_eq!(sums(moves(), |s| s.bytes), by_op(&verdicts, &truth["bytes"]), "bytes");
    assert_eq!(sums(top(), |s| (s.errno != 0).then_some(1)), by_op(&verdicts, &truth["errors"]), "errors");
    // Each where the stream stood.
    let places = sums(moves().filter(|s| s.errno == 0 && s.bytes.is_some()), |s| s.offset);
    assert_eq!(places, by_op(&verdicts, &truth["offset"]), "offsets");
    (truth, data)
}

#[test]
fn calls_and_bytes_are_the_programs_own() {
    let (truth, data) = agree("stdio_all");
    // Nothing of the catalog that the library has was left out.
    // Asynchronous I/O, which is of the same library, has its own program.
    let asynchronous = |symbol: &str| symbol.starts_with("aio_") || symbol.starts_with("lio_");
    for (symbol, verdict) in verdicts(&data).into_iter().filter(|(symbol, _)| !asynchronous(symbol)) {
        let called = truth["calls"].get(symbol).is_some();
        let here =
            verdict.status == "attached" || verdict.reason.as_deref().is_some_and(|why| why.starts_with("alias"));
        assert_eq!(called, here, "{symbol}: {} {:?}", verdict.status, verdict.reason);
    }
}

#[test]
fn a_call_that_moves_the_position_has_the_new_one() {
    let work = live::scratch();
    let (_, data) = stdio_all(work.path(), "stdio_all");
    let file = work.path().join("all/reads");
    let mut calls: Vec<&Span> = data.layer(Layer::Stdio).filter(|s| data.path(s) == Some(&file)).collect();
    calls.sort_by_key(|s| s.start_ns);
    let asks = ["ftell", "ftello", "fgetpos"];
    let moves = calls.iter().filter(|s| s.kind == Kind::Seek || asks.contains(&s.op));
    let asked: Vec<_> = moves.clone().filter(|s| s.cmd.is_some()).map(|s| (s.cmd, s.arg)).collect();
    assert_eq!(asked, [(Some("SEEK_SET"), Some(5)), (Some("SEEK_CUR"), Some(2)), (Some("SEEK_END"), None)]);
    let places: Vec<_> = moves.map(|s| (s.op, s.offset, s.errno)).collect();
    let expected = [
        ("fseek", Some(5), 0),
        ("ftell", Some(5), 0),
        ("fgetpos", Some(5), 0),
        ("fseeko", Some(8), 0),
        ("ftello", Some(8), 0),
        ("fgetpos", Some(8), 0),
        ("fseeko", Some(135), 0),
        ("ftello", Some(135), 0),
        ("fsetpos", Some(5), 0),
        ("fsetpos", Some(8), 0),
        ("rewind", Some(0), 0),
        ("fseek", None, -1),
    ];
    assert_eq!(places, expected);
}

#[test]
fn streams_have_the_files_that_they_are_on() {
    let work = live::scratch();
    let (_, data) = stdio_all(work.path(), "stdio_all");
    let dir = work.path().join("all");
    let path = |name: &str| if name == "stdout as started" { work.path().join("stdout") } else { dir.join(name) };
    for (op, name, calls) in [
        ("puts", "stdout as started", 1),
        ("puts", "own_stdout", 1),
        ("puts", "stdout", 1),
        ("printf", "stdout", 2),
        ("scanf", "stdin", 2),
        ("gets", "stdin", 4),
        ("perror", "stderr", 1),
        ("getwchar", "wide_stdin", 2),
        ("wprintf", "wide_stdout", 2),
        ("dprintf", "dprintf", 2),
    ] {
        let path = path(name);
        let on_it = data.calls(op).filter(|s| s.layer_top && data.path(s) == Some(&path));
        assert_eq!(on_it.count(), calls, "{op} of {name}");
    }
    // In memory, at the end of a pipe: no file, and no place in it.
    let writes = data.layer(Layer::Stdio).filter(|s| s.layer_top && s.kind == Kind::Write);
    let none: Vec<_> = writes.filter(|s| s.file_id.is_none()).collect();
    assert!(none.len() >= 4);
    assert!(none.iter().all(|s| s.offset.is_none() && s.handle_id.is_some()), "a place in no file");
    let piped: Vec<_> = data.calls("fgets").filter(|s| s.bytes == Some(5)).collect();
    assert_eq!(piped.len(), 1);
    assert_eq!((piped[0].file_id, piped[0].offset), (None, None));

    // A stream opened by two functions, one inside the other, is one handle; so is one that is closed by two.
    for (outer, inner) in [("tmpfile", "fdopen"), ("pclose", "fclose")] {
        let call = data.calls(outer).next().unwrap();
        let below = data.calls(inner).find(|s| s.parent_id == Some(call.span_id)).unwrap();
        assert_eq!(call.handle_id, below.handle_id, "{outer}");
    }
    // freopen ends what the stream was, also when it fails: stdout three times, stdin once, a file once. What stdin and
    // stderr were before was never used.
    let reopens: Vec<_> = data.spans.iter().filter(|s| s.op.starts_with("freopen")).collect();
    let ended = |call: &Span| {
        let mut streams = data.handles.values().filter(|h| h.layer == Layer::Stdio);
        streams.any(|h| h.close_span_id == Some(call.span_id) && Some(h.handle_id) != call.handle_id)
    };
    assert_eq!((reopens.len(), reopens.iter().filter(|s| ended(s)).count()), (7, 5));
    assert!(reopens.iter().all(|s| s.errno == 0 || ended(s)));
    // Nothing was made up but the streams that were there before.
    let before: Vec<_> = data.handles.values().filter(|h| h.layer == Layer::Stdio && h.flags & 1 != 0).collect();
    let pid = data.calls("perror").next().unwrap().pid;
    assert!(before.iter().filter(|h| h.pid == pid).count() <= 3, "{before:#?}");
}

#[test]
fn a_static_program_is_traced_as_well() {
    agree("stdio_all_static");
}
