//! Jobs of several ranks: what each reports of itself is compared with what was recorded; four nodes made of namespaces on one
//! machine, and a job of Open MPI over them.

use super::live::{self, Data};
use super::programs;
use iotrace_bpf::rows::Process;
use iotrace_bpf::vocabulary::{Kind, Layer};
use serde_json::Value;
use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::{Command, Output, Stdio};

pub const NODES: i32 = 4;

/// Makes the nodes and runs the job over them: WORK SLOTS UNSHARE-OPTIONS MPIRUN ARGS... `mpirun` itself is on a node without
/// ranks.
const CLUSTER: &str = r#"
work=$1 slots=$2 namespaces=$3 mpirun=$4; shift 4
export IOT_WORK=$work
hostname head
ip link set lo up
ip link add hub type bridge
ip addr add 10.99.0.100/24 dev hub
ip link set hub up
nodes=
trap 'kill $nodes' EXIT
for n in 1 2 3 4; do
    unshare --net --uts $namespaces sh -c "hostname node$n; echo > $work/node$n.up; exec sleep 1000" & pid=$!
    nodes="$nodes $pid"
    until [ -e $work/node$n.up ]; do sleep 0.05; done
    # The first process of a PID namespace is a child.
    first=$(cut -d ' ' -f 1 /proc/$pid/task/$pid/children)
    first=${first:-$pid}
    echo $first > $work/node$n.pid
    ip link add hub$n type veth peer name eth0 netns $first
    ip link set hub$n master hub up
    nsenter -t $first -n ip addr add 10.99.0.$n/24 dev eth0
    nsenter -t $first -n ip link set eth0 up
    nsenter -t $first -n ip link set lo up
    echo "10.99.0.$n slots=$slots" >> $work/hosts
done
# What mpirun starts instead of ssh: HOST COMMAND...
cat > $work/agent <<'AGENT'
#!/bin/sh -e
node=node${1##*.}
shift
# Until all have ended that are started here, it is not free.
exec 9< $IOT_WORK/hosts
flock -s 9
exec nsenter -t $(cat $IOT_WORK/$node.pid) -n -u -m -p sh -c "$*"
AGENT
chmod +x $work/agent
net=10.99.0.0/24
$mpirun --allow-run-as-root --leave-session-attached --mca plm_rsh_agent $work/agent --mca btl tcp,self \
    --mca oob_tcp_if_include $net --mca btl_tcp_if_include $net --hostfile $work/hosts "$@"
flock -x $work/hosts true
"#;

/// What the nodes have of their own.
#[derive(Clone, Copy)]
pub enum Own {
    /// Network and name.
    Network,
    /// Mounts and numbers of processes, too.
    Processes,
}

/// Runs a job with so many ranks on each node; `daemon` is started on the nodes instead of Open MPI's own. The job is given a
/// stdin without anything, and no user who called sudo. One that hangs is killed.
pub fn run<S: AsRef<OsStr>>(work: &Path, own: Own, slots: i32, daemon: Option<&str>, job: &[S]) -> Output {
    let mut cluster = Command::new("timeout");
    cluster.args(["--signal=KILL", "240", "unshare"]);
    // With the first process of a PID namespace ends all that is in it.
    cluster.args(["--net", "--uts", "--pid", "--mount-proc", "--fork", "--kill-child"]);
    cluster.args(["sh", "-ec", CLUSTER, "cluster"]).arg(work).arg(slots.to_string());
    cluster.arg(match own {
        Own::Network => "",
        Own::Processes => "--mount --pid --fork --kill-child --mount-proc",
    });
    cluster.arg(programs::openmpi("mpirun"));
    if let Some(script) = daemon {
        let path = work.join("daemon");
        fs::write(&path, script).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
        cluster.args(["--mca", "orte_launch_agent"]).arg(path);
    }
    cluster.args(job).stdin(Stdio::null()).env_remove("SUDO_UID").env_remove("SUDO_GID");
    cluster.output().unwrap()
}

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

/// The processes that are ranks, and not children of one, which have the lower numbers.
pub fn ranks(data: &Data) -> BTreeMap<i32, &Process> {
    let ranks = data.processes.values().filter_map(|p| Some((p.rank?, p)));
    // Of those with one key the last stays.
    ranks.rev().collect()
}

/// What a rank of `mpiio_mix` asked for and moved, by function, is what it reports itself in `out`; and so is the number of its
/// process.
pub fn rank_is_that_of_its_environment(data: &Data, out: &Path, rank: i32) {
    let truth: Value = serde_json::from_slice(&fs::read(out.join(format!("truth.{rank}.json"))).unwrap()).unwrap();
    assert_eq!(Some(i64::from(ranks(data)[&rank].pid)), truth["pid"].as_i64(), "rank {rank}");
    let io = || {
        let data = data.spans.iter().filter(|s| matches!(s.kind, Kind::Read | Kind::Write));
        data.filter(|s| s.layer == Layer::Mpiio && s.layer_top && s.rank == Some(rank))
    };
    assert_eq!(sums(io().map(|s| (s.op, s.req_bytes))), numbers(&truth["asked"]), "rank {rank}");
    assert_eq!(sums(io().map(|s| (s.op, s.bytes))), numbers(&truth["moved"]), "rank {rank}");
    let calls = |op: &str| io().filter(|s| s.op == op).count() as i64;
    for (op, n) in numbers(&truth["calls"]) {
        assert!(calls(&op) == n || !numbers(&truth["asked"]).contains_key(&op), "rank {rank}: {n} {op}");
    }
}

/// Processes that are this tracer, but for those of offline tests, which only read datasets and run beside this one.
fn all_tracers() -> Vec<u32> {
    let environment = |pid: &u32| fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
    let offline =
        |pid: &u32| environment(pid).split(|b| *b == 0).any(|v| v == b"NEXTEST_BINARY_ID=iotrace-bpf::offline");
    let entries = fs::read_dir("/proc").unwrap().flatten();
    let is_tracer = |exe: &Path| exe == Path::new(env!("CARGO_BIN_EXE_iotrace-bpf"));
    let tracers = entries.filter(|entry| fs::read_link(entry.path().join("exe")).is_ok_and(|exe| is_tracer(&exe)));
    let tracers = tracers.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    tracers.filter(|pid| !offline(pid)).collect()
}

pub fn tracers() -> usize {
    all_tracers().len()
}

/// The tracers of nodes.
pub fn nodes() -> Vec<u32> {
    let arguments = |pid| fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
    let is_node = |pid: &u32| arguments(*pid).split(|b| *b == 0).nth(1) == Some(b"__node");
    all_tracers().into_iter().filter(is_node).collect()
}

/// Waits until none is left.
pub fn until_no_tracer() {
    live::until("the end of all tracers", || tracers() == 0);
}
