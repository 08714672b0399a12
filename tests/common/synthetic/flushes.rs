//! A dataset with one cause in it.

use crate::common::synthetic::trace::{Trace, file, process};
use iotrace_bpf::export::{DatasetWriter, Options, VIEWS};
use iotrace_bpf::rows::{Coverage, Row};
use iotrace_bpf::vocabulary::{Kind, Layer};
use std::path::Path;

/// Of a program that flushes its log so many times, 5 ms each.
pub fn flushes(to: &Path, times: i64) {
    let mut trace = Trace::default();
    trace.row(process(1, None));
    trace.row(file(1, "/data/log"));
    trace.row(Row::Coverage(Coverage {
        layer: Layer::Syscall,
        target: "kernel".to_owned(),
        symbol: "fsync".to_owned(),
        tier: Some("tp_btf"),
        status: "attached",
        reason: None,
        offset: None,
        insn: None,
    }));
    for n in 0..times {
        let call = trace.call(1, None, (Layer::Syscall, "fsync", Kind::Sync), n * 6_000_000, 5_000_000);
        trace.edit(call).file_id = Some(1);
    }
    let options = Options { path: to, host: "node1", force: false, owner: None, views: VIEWS };
    let mut writer = DatasetWriter::create(options).unwrap();
    trace.finish().into_iter().for_each(|row| writer.push(row).unwrap());
    writer.finish().unwrap();
}
