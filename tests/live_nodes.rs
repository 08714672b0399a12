//! Four nodes: network and host name namespaces, a tracer around the daemon of Open MPI on each, and one job over all of them
//! that writes a shared file. The datasets side by side have one report and one set of views.

#![allow(clippy::unwrap_used, reason = "what a test does not expect is a failure")]

#[path = "common/live.rs"]
mod live;
#[path = "common/programs.rs"]
mod programs;
#[path = "common/sql.rs"]
mod sql;

use iotrace_bpf::export::report::{self, Union};
use iotrace_bpf::words::{Kind, Layer};
use live::Data;
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

const NODES: i32 = 4;

/// Makes the nodes and runs the job over them: WORK PROGRAM TRACER... `mpirun` itself is on a node without ranks.
const CLUSTER: &str = r#"
work=$1 program=$2 mpirun=$3; shift 3
export IOT_WORK=$work IOT_TRACER="$*"
hostname head
ip link set lo up
ip link add hub type bridge
ip addr add 10.99.0.100/24 dev hub
ip link set hub up
nodes=
trap 'kill $nodes' EXIT
for n in 1 2 3 4; do
    unshare --net --uts sh -c "hostname node$n; echo > $work/node$n.up; exec sleep 1000" & pid=$!
    nodes="$nodes $pid"
    echo $pid > $work/node$n.pid
    until [ -e $work/node$n.up ]; do sleep 0.05; done
    ip link add hub$n type veth peer name eth0 netns $pid
    ip link set hub$n master hub up
    nsenter -t $pid -n ip addr add 10.99.0.$n/24 dev eth0
    nsenter -t $pid -n ip link set eth0 up
    nsenter -t $pid -n ip link set lo up
    echo "10.99.0.$n slots=1" >> $work/hosts
done
# What mpirun starts instead of ssh: HOST COMMAND...; and what that starts there instead of its daemon.
cat > $work/agent <<'AGENT'
#!/bin/sh -e
node=node${1##*.}
shift
exec nsenter -t $(cat $IOT_WORK/$node.pid) -n -u sh -c "$*"
AGENT
cat > $work/daemon <<'DAEMON'
#!/bin/sh -e
exec $IOT_TRACER -o $IOT_WORK/run/$(hostname) -- orted "$@"
DAEMON
chmod +x $work/agent $work/daemon
mkdir $work/run $work/out
net=10.99.0.0/24
$mpirun --allow-run-as-root --leave-session-attached --mca plm_rsh_agent $work/agent --mca orte_launch_agent $work/daemon --mca btl tcp,self \
    --mca oob_tcp_if_include $net --mca btl_tcp_if_include $net --hostfile $work/hosts --map-by node -np 4 $program $work/out
"#;

fn numbers(object: &Value) -> BTreeMap<String, i64> {
    object.as_object().unwrap().iter().map(|(name, n)| (name.clone(), n.as_i64().unwrap())).collect()
}

fn sums<'a>(spans: impl Iterator<Item = (&'a str, Option<i64>)>) -> BTreeMap<String, i64> {
    let mut sums = BTreeMap::new();
    for (name, value) in spans.filter_map(|(name, value)| Some((name, value?))) {
        *sums.entry(name.to_owned()).or_default() += value;
    }
    sums
}

/// What a rank asked for and moved in MPI-IO, by function, is what it says itself; on its own node and on no other.
fn rank_is_on_its_node(work: &Path, rank: i32) {
    let truth: Value = serde_json::from_slice(&fs::read(work.join(format!("out/truth.{rank}.json"))).unwrap()).unwrap();
    let data = Data::read(&work.join(format!("run/node{}", rank + 1))).lossless();
    assert_eq!(data.meta["host"], format!("node{}", rank + 1));
    let ranks: BTreeSet<i32> = data.processes.values().filter_map(|p| p.rank).collect();
    assert_eq!(ranks, BTreeSet::from([rank]));
    let io = || {
        let data = data.spans.iter().filter(|s| matches!(s.kind, Kind::Read | Kind::Write));
        data.filter(|s| s.layer == Layer::Mpiio && s.layer_top)
    };
    assert_eq!(sums(io().map(|s| (s.op, s.req_bytes))), numbers(&truth["asked"]), "rank {rank}");
    assert_eq!(sums(io().map(|s| (s.op, s.bytes))), numbers(&truth["moved"]), "rank {rank}");
}

#[test]
fn four_nodes_have_one_report() {
    let work = live::scratch();
    let tracer = live::tracer();
    let tracer = std::iter::once(tracer.get_program()).chain(tracer.get_args());
    let mut cluster = Command::new("unshare");
    cluster.args(["--net", "--uts", "--mount", "--fork", "--kill-child", "sh", "-ec", CLUSTER, "cluster"]);
    cluster.arg(work.path()).arg(programs::build("mpiio_mix")).arg(programs::openmpi("mpirun"));
    cluster.args(tracer).args(["--no-tui", "--ring-size", "16M"]).stdin(Stdio::null());
    cluster.env_remove("SUDO_UID").env_remove("SUDO_GID");
    let out = cluster.output().unwrap();
    let (said, erred) = (String::from_utf8_lossy(&out.stdout), String::from_utf8_lossy(&out.stderr));
    assert!(out.status.success(), "{said}{erred}");
    (0..NODES).for_each(|rank| rank_is_on_its_node(work.path(), rank));

    // The union: every rank where it was, and the calls of all.
    let run = work.path().join("run");
    sql::compare(&run);
    let report = report::build(&mut Union::open(&run).unwrap()).unwrap();
    let hosts: Vec<&str> = report.nodes.iter().map(|node| node.host.as_str()).collect();
    assert_eq!(hosts, ["node1", "node2", "node3", "node4"]);
    let ranks: Vec<_> =
        report.ranks.rows.iter().filter(|row| row.rank.is_some()).map(|r| (r.rank, &r.hosts[..])).collect();
    let nodes: Vec<String> = hosts.iter().map(ToString::to_string).collect();
    let expected: Vec<_> = (0..NODES).map(|rank| (Some(rank), std::slice::from_ref(&nodes[rank as usize]))).collect();
    assert_eq!(ranks, expected);

    // All clocks are one, and what the opens allow says so.
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
