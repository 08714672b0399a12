//! POSIX asynchronous I/O: what was asked, what moved, and the helper threads' system calls below it.

use crate::common::live::{self, Data};
use crate::common::programs;
use iotrace_bpf::rows::Span;
use iotrace_bpf::vocabulary::{Kind, Layer, flag};
use serde_json::Value;
use std::collections::BTreeMap;

#[test]
fn operations_are_the_programs_own_down_to_the_system_calls() {
    let work = live::scratch();
    let traced = live::trace(work.path(), &[], &[programs::build("aio_mix").as_path(), work.path()]);
    let truth: Value = serde_json::from_str(traced.stdout.lines().next().unwrap()).unwrap();
    let data = traced.data().lossless();
    let file = work.path().join("aio.dat");

    let own = |s: &&Span| s.op.starts_with("aio_") || s.op.starts_with("lio_");
    let calls = Data::totals(data.layer(Layer::Stdio).filter(own));
    let calls: BTreeMap<&str, i64> = calls.iter().map(|(op, total)| (op.trim_end_matches("64"), total.calls)).collect();
    let printed = truth["calls"].as_object().unwrap();
    assert_eq!(calls, printed.iter().map(|(op, n)| (op.as_str(), n.as_i64().unwrap())).collect());

    let submitted: Vec<&Span> = data.spans.iter().filter(|s| own(s) && s.flags & flag::ASYNC != 0).collect();
    assert_eq!(submitted.len(), 8);
    let moved = |reads: bool| -> i64 {
        submitted.iter().filter(|s| (s.kind == Kind::Read) == reads).filter_map(|s| s.bytes).sum()
    };
    assert_eq!([moved(true), moved(false)].map(Some), [truth["read"].as_i64(), truth["written"].as_i64()]);
    let returned: i64 = data.calls("aio_return").filter_map(|s| s.ret).sum();
    assert_eq!(returned, moved(true) + moved(false));

    // Each transfer of the file is one system call of a helper, below the call that asked for it. Before it asks for an fsync
    // the library looks at the descriptor's flags.
    let mut by_call: BTreeMap<i64, i64> = BTreeMap::new();
    for call in
        data.layer(Layer::Syscall).filter(|s| data.path(s) == Some(&file) && !["openat", "fcntl"].contains(&s.op))
    {
        let parent = data.parent(call).unwrap();
        assert!(submitted.iter().any(|s| s.span_id == parent.span_id), "{} below {}", call.op, parent.op);
        assert_eq!((call.async_id, call.root_id, call.depth), (Some(parent.span_id), parent.span_id, 1));
        assert_ne!(call.tid, parent.tid);
        *by_call.entry(parent.span_id).or_default() += call.bytes.unwrap_or(0);
    }
    assert_eq!(by_call, submitted.iter().map(|s| (s.span_id, s.bytes.unwrap())).collect());
    for call in submitted {
        assert!(call.op == "lio_listio" || data.path(call) == Some(&file), "{}", call.op);
        assert_eq!((call.flags & flag::UNFINISHED, call.errno), (0, 0), "{}", call.op);
    }
}
