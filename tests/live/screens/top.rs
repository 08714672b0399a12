//! Several nodes on one dashboard: real tracers that serve their metrics, one of which ends in the middle.

use crate::common::live::{Running, scratch, tracer};
use crate::common::tools::pane::Pane;
use crate::screens::metrics::address;
use std::fs;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};

const TRACER: &str = env!("CARGO_BIN_EXE_iotrace-bpf");

/// A tracer of a program that writes, as a rank, until a file is there.
struct Node {
    tracer: Running,
    address: SocketAddr,
    end: PathBuf,
}

fn node(work: &Path, rank: &str) -> Node {
    let [stderr, file, end] = ["stderr", "file", "end"].map(|name| work.join(format!("{name}.{rank}")));
    let writes = r#"while [ ! -e "$1" ]; do dd if=/dev/zero of="$0" bs=4k count=20 conv=fsync 2>&-; sleep 0.1; done"#;
    let mut command = tracer();
    command.args(["--metrics", "127.0.0.1:0", "--rank-vars", "PLACE", "--", "sh", "-c", writes]).args([&file, &end]);
    command.env("PLACE", rank).stderr(fs::File::create(&stderr).unwrap());
    let tracer = Running::spawn(&mut command);
    Node { tracer, address: address(&stderr), end }
}

#[test]
fn a_node_whose_trace_ends_is_shown_as_such_and_the_other_goes_on() {
    let work = scratch();
    let [mut one, mut two] = ["11", "12"].map(|rank| node(work.path(), rank));
    let line = format!("{TRACER} top {} {} -d 500ms; echo left $?; sleep 600", one.address, two.address);
    let pane = Pane::new(work.path(), (120, 40), &line);
    let text = pane.shows(&["2 of 2 nodes answer", "ranks, time in I/O over", " 11 ", " 12 ", "█"]);
    // Both are this machine, and so have their addresses for names.
    for node in [&one, &two] {
        assert!(text.lines().any(|row| row.starts_with(&node.address.to_string())), "{text}");
    }
    pane.after(&["Enter"], &["layers of", "syscall", "findings of the last minute"]);
    pane.after(&["Escape"], &["ranks, time in I/O over"]);
    fs::write(&one.end, "").unwrap();
    pane.shows(&["1 of 2 nodes answer", "has not answered for", "Connection refused"]);
    // A gap in one row, and figures in the other.
    pane.shows(&["··"]);
    pane.after(&["q"], &["left 0"]);
    fs::write(&two.end, "").unwrap();
    // What ends them is a file in a directory that goes with this function.
    for node in [&mut one, &mut two] {
        assert!(node.tracer.wait().success());
    }
}
