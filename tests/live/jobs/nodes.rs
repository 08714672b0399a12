//! Four nodes and one job over all of them that writes a shared file: a tracer around the daemon of Open MPI on each, or one
//! started for each rank. The datasets side by side have one report and one set of views.

use crate::common::job::{self, NODES, Own};
use crate::common::live::{self, Data};
use crate::common::{programs, sql};
use iotrace_bpf::export::report::{self, Report, Union};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::fs;
use std::path::Path;

/// The ranks of the report on all nodes are where they were, and its figures are those of the views.
fn union_is_complete(run: &Path, per_node: i32) -> Report {
    sql::compare(run);
    let report = report::build(&mut Union::open(run).unwrap()).unwrap();
    let hosts: Vec<&str> = report.nodes.iter().map(|node| node.host.as_str()).collect();
    assert_eq!(hosts, ["node1", "node2", "node3", "node4"]);
    let rows = report.ranks.rows.iter().filter(|row| row.rank.is_some());
    let ranks: Vec<_> = rows.map(|row| (row.rank, row.hosts.clone())).collect();
    let node = |rank| vec![format!("node{}", rank / per_node + 1)];
    assert_eq!(ranks, (0..NODES * per_node).map(|rank| (Some(rank), node(rank))).collect::<Vec<_>>());
    report
}

#[test]
fn four_nodes_have_one_report() {
    let work = live::scratch();
    let (run, out) = (work.path().join("run"), work.path().join("out"));
    fs::create_dir(&run).unwrap();
    fs::create_dir(&out).unwrap();
    let daemon = format!(
        "#!/bin/sh -e\nexec {} --no-tui --ring-size 16M -o {}/$(hostname) -- orted \"$@\"\n",
        env!("CARGO_BIN_EXE_iotrace-bpf"),
        run.display()
    );
    let program = programs::build("mpiio_mix");
    let command = ["--map-by", "node", "-np", "4"].map(OsStr::new).into_iter();
    let command: Vec<&OsStr> = command.chain([program.as_os_str(), out.as_os_str()]).collect();
    let ran = job::run(work.path(), Own::Network, 1, Some(&daemon), &command);
    let (output, erred) = (String::from_utf8_lossy(&ran.stdout), String::from_utf8_lossy(&ran.stderr));
    assert!(ran.status.success(), "{output}{erred}");
    for rank in 0..NODES {
        let data = Data::read(&run.join(format!("node{}", rank + 1))).lossless();
        assert_eq!(data.meta["host"], format!("node{}", rank + 1));
        assert_eq!(job::ranks(&data).into_keys().collect::<Vec<_>>(), [rank]);
        job::rank_is_that_of_its_environment(&data, &out, rank);
    }
    let report = union_is_complete(&run, 1);

    // All clocks are one, and the offsets that the opens allow contain 0.
    for node in &report.nodes[1..] {
        let (least, most) = (node.clock.least_ns.unwrap(), node.clock.most_ns.unwrap());
        assert!(least <= 0 && most >= 0 && node.clock.how == "wall" && node.clock.calls > 1, "{node:?}");
    }

    // Collective calls have one id on all nodes.
    let collectives =
        "SELECT op, comm_size::INT AS size, ranks::INT AS ranks, count(*)::INT AS calls FROM v_collectives
        WHERE comm_size = 4 GROUP BY ALL HAVING count(*) > 0 AND ranks <> 4";
    assert_eq!(sql::query(&run, collectives), [] as [Value; 0]);
    let whole = "SELECT bool_and(ranks = 4) AS whole, count(*) > 20 AS many FROM v_collectives WHERE comm_size = 4";
    assert_eq!(sql::query(&run, whole), [json!({"whole": true, "many": true})]);
}

#[test]
fn of_the_tracers_of_all_ranks_one_on_each_node_traces() {
    const PER_NODE: i32 = 2;
    let work = live::scratch();
    let (run, out) = (work.path().join("run"), work.path().join("out"));
    fs::create_dir(&out).unwrap();
    let program = programs::build("mpiio_mix");
    // Ranks one after the other: two on each node.
    let mut command: Vec<&OsStr> = ["--map-by", "slot", "-np", "8"].map(OsStr::new).into();
    command.extend([env!("CARGO_BIN_EXE_iotrace-bpf"), "--ring-size", "16M", "-o"].map(OsStr::new));
    command.extend([run.as_os_str(), "--".as_ref(), program.as_os_str(), out.as_os_str()]);
    let ran = job::run(work.path(), Own::Processes, PER_NODE, None, &command);
    let (output, erred) = (String::from_utf8_lossy(&ran.stdout), String::from_utf8_lossy(&ran.stderr));
    assert!(ran.status.success(), "{output}{erred}");
    assert_eq!(job::tracers(), 0);

    // One dataset and one report for each node, and the report names which.
    assert_eq!(live::datasets(&run), (1..=NODES).map(|n| run.join(format!("node{n}"))).collect::<Vec<_>>());
    for n in 1..=NODES {
        assert_eq!(erred.matches(&format!(" on node{n}: ")).count(), 1, "{erred}");
        assert_eq!(erred.matches(&format!("dataset in {}/node{n}\n", run.display())).count(), 1, "{erred}");
        let data = Data::read(&run.join(format!("node{n}"))).lossless();
        assert_eq!(data.meta["host"], format!("node{n}"));
        let there = (n - 1) * PER_NODE..n * PER_NODE;
        assert_eq!(job::ranks(&data).into_keys().collect::<Vec<_>>(), there.clone().collect::<Vec<_>>());
        // Each is the process that the launcher started, or the child of that: nothing else is in the dataset.
        let pids: BTreeSet<i32> = data.processes.values().map(|p| p.pid).collect();
        assert_eq!(pids, job::ranks(&data).values().map(|p| p.pid).collect());
        assert!(data.processes.values().all(|p| p.exit_code == Some(0)), "{:?}", data.processes);
        there.for_each(|rank| job::rank_is_that_of_its_environment(&data, &out, rank));
    }
    union_is_complete(&run, PER_NODE);
}
