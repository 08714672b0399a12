//! A client and a server of NFS inside one kernel: its requests are those that the kernel counts, each is linked to the call
//! that it is part of, and so is what the server writes and reads for it. Where the kernel has no server, verdicts report that.

use crate::common::live::{self, Data, Running};
use crate::common::machine::client;
use crate::common::machine::device::{Device, run};
use crate::common::sql;
use iotrace_bpf::export::Dataset;
use iotrace_bpf::rows::{Block, Rpc, Span};
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fs;
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// Two threads, each on files of its own, whose numbers are printed; at last a file that the kernel's own threads write.
const CLIENT: &str = "
import mmap, sys
mount = sys.argv[1]
def forget():
    with open('/proc/sys/vm/drop_caches', 'w') as file: file.write('3')
def use(name):
    path = f'{mount}/{name}'
    written(path)
    block = mmap.mmap(-1, 65536)
    fd = os.open(path + '.direct', os.O_RDWR | os.O_CREAT | os.O_DIRECT, 0o600)
    for n in range(3): os.pwritev(fd, [block], n * 65536)
    os.fsync(fd)
    forget()
    os.preadv(fd, [block], 65536)
    os.close(fd)
    gone(path, 3000)
for name in 'ab':
    thread = threading.Thread(target=use, args=(name,))
    thread.start()
    thread.join()
fd = os.open(mount + '/late', os.O_WRONLY | os.O_CREAT, 0o600)
os.pwrite(fd, b'z' * 5000, 0)
os.sync()
os.close(fd)
";

/// An ext4 of its own that is exported and mounted again over NFS; gone in the end.
struct Served {
    mount: PathBuf,
    exported: String,
    _programs: Vec<Running>,
    _device: Device,
}

const MOUNTD_PORT: &str = "20048";

impl Served {
    fn new(work: &Path, version: &str) -> Self {
        let device = Device::new(work, "ext4");
        let mount = work.join("nfs");
        fs::create_dir(&mount).unwrap();
        if !Path::new("/proc/fs/nfsd/threads").exists() {
            run("mount", &["-t", "nfsd", "nfsd", "/proc/fs/nfsd"]);
        }
        let exported = format!("127.0.0.1:{}", device.mount.display());
        let mut programs = Vec::new();
        // The server's numbers of protocols are kept by rpcbind, its exports are looked up by mountd.
        if TcpStream::connect("127.0.0.1:111").is_err() {
            programs.push(Running::spawn(Command::new("rpcbind").args(["-f", "-w"]).stderr(Stdio::null())));
            live::until("rpcbind", || TcpStream::connect("127.0.0.1:111").is_ok());
        }
        run("exportfs", &["-o", "rw,sync,no_root_squash,no_subtree_check,fsid=0,insecure", &exported]);
        let mut mountd = Command::new("rpc.mountd");
        programs.push(Running::spawn(mountd.args(["-F", "-p", MOUNTD_PORT]).stderr(Stdio::null())));
        live::until("mountd", || TcpStream::connect(format!("127.0.0.1:{MOUNTD_PORT}")).is_ok());
        run("rpc.nfsd", &["-G", "10", "-L", "10", "2"]);
        // Of version 4 the file system with number 0 is the root.
        let path = if version == "3" { exported.clone() } else { "127.0.0.1:/".to_owned() };
        let mountd = format!(",nolock,proto=tcp,mountproto=tcp,mountport={MOUNTD_PORT}");
        let options = format!("vers={version}{}", if version == "3" { &mountd } else { "" });
        run("mount", &["-t", "nfs", "-o", &options, &path, mount.to_str().unwrap()]);
        Self { mount, exported, _programs: programs, _device: device }
    }

    /// How many requests of each kind the client has sent, as the kernel counts them (`nfsstat` reads the same).
    fn sent(&self) -> BTreeMap<String, i64> {
        let text = fs::read_to_string("/proc/self/mountstats").unwrap();
        let of_mount = format!(" mounted on {} with fstype nfs", self.mount.display());
        let mut lines = text.lines().skip_while(|line| !line.contains(&of_mount)).skip(1);
        lines.by_ref().find(|line| line.contains("per-op statistics")).unwrap();
        let count = |line: &str| -> Option<(String, i64)> {
            let (name, counts) = line.trim().split_once(": ")?;
            Some((name.to_lowercase(), counts.split(' ').next()?.parse().ok()?))
        };
        lines.map_while(count).collect()
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        let _ = Command::new("umount").args(["-f"]).arg(&self.mount).status();
        let _ = Command::new("exportfs").args(["-u", &self.exported]).status();
        let _ = Command::new("rpc.nfsd").arg("0").status();
        let _ = Command::new("exportfs").arg("-f").status();
    }
}

/// Bytes that the server has read and written, as it counts them.
fn moved() -> [i64; 2] {
    let text = fs::read_to_string("/proc/net/rpc/nfsd").unwrap();
    let line = text.lines().find_map(|line| line.strip_prefix("io ")).unwrap();
    let mut numbers = line.split(' ').map(|number| number.parse().unwrap());
    [numbers.next().unwrap(), numbers.next().unwrap()]
}

fn requests(dir: &Path) -> Vec<Rpc> {
    let mut rows = Vec::new();
    let take = |row: Rpc| {
        rows.push(row);
        Ok(())
    };
    Dataset::open(dir).unwrap().rows(take).unwrap();
    rows
}

/// Version 4.2 has two.
const READS: [&str; 2] = ["read", "read_plus"];

const HOOKS: [&str; 8] = [
    "rpc_task_begin",
    "xprt_reserve",
    "svc_process",
    "nfsd_read_start",
    "nfsd_write_start",
    "nfsd_read_io_done",
    "nfsd_write_io_done",
    "svc_stats_latency",
];

/// The verdicts are these, of all hooks.
fn verdicts(data: &Data, status: &str) {
    for hook in HOOKS {
        let verdict = data.coverage.iter().find(|c| c.symbol == hook).unwrap_or_else(|| panic!("no verdict: {hook}"));
        assert_eq!(verdict.status, status, "{verdict:?}");
        assert!(
            status == "attached" || verdict.reason.as_deref().is_some_and(|why| why.contains("nfsd")),
            "{verdict:?}"
        );
    }
}

/// A kernel without the server has nothing to hook into: the verdict names that, and nothing else is different.
fn nothing_is_there() {
    let work = live::scratch();
    let traced = live::trace(work.path(), &[], &["cat", "/etc/passwd"]);
    let data = traced.data().lossless();
    verdicts(&data, "absent");
    assert_eq!(requests(&traced.dir), []);
    assert!(data.calls("read").count() > 0);
}

/// What was recorded of a client and its server.
struct Recorded<'a> {
    data: &'a Data,
    rows: Vec<Rpc>,
    by_id: HashMap<i64, &'a Span>,
    blocks: HashMap<i64, &'a Block>,
    /// The threads of the client.
    tids: BTreeSet<i32>,
}

impl<'a> Recorded<'a> {
    fn new(data: &'a Data, rows: Vec<Rpc>, tids: BTreeSet<i32>) -> Self {
        let by_id = data.spans.iter().map(|s| (s.span_id, s)).collect();
        let blocks = data.block.iter().map(|b| (b.req_id, b)).collect();
        Self { data, rows, by_id, blocks, tids }
    }

    /// Calls of the client.
    fn calls(&self, op: &'static str) -> Vec<&'a Span> {
        self.data.calls(op).filter(|s| self.tids.contains(&s.tid)).collect()
    }

    /// Requests of these kinds that belong to a call.
    fn of(&self, span: &Span, ops: &[&str]) -> Vec<&Rpc> {
        self.rows.iter().filter(|r| r.client_span_id == Some(span.span_id) && ops.contains(&r.op)).collect()
    }

    /// Bytes on the device that are linked to a call, by requests of the server's threads that were queued for it.
    fn linked(&self, span: &Span, op: &str) -> i64 {
        let links = self.data.links.iter().filter(|l| l.span_id == span.span_id && l.how != "writeback");
        let of_op = links.filter(|l| self.blocks[&l.req_id].op == op);
        of_op
            .inspect(|l| {
                let at = self.blocks[&l.req_id].queue_ns;
                let inside = |r: &&Rpc| r.received_ns <= at && at <= r.received_ns + r.dur_ns.unwrap();
                assert!(
                    self.rows.iter().filter(|r| r.client_span_id == Some(span.span_id)).any(|r| inside(&r)),
                    "{l:?}"
                );
                assert_eq!(l.root_id, span.root_id);
            })
            .map(|l| l.bytes)
            .sum()
    }

    /// As many of each kind as the client's side of the kernel counts, and as many bytes as the server's. When the kernel
    /// keeps its lease (`SEQUENCE`) does not depend on the trace.
    fn compare_counts(&self, sent: [&BTreeMap<String, i64>; 2], moved: [[i64; 2]; 2]) {
        let mut seen: BTreeMap<&str, i64> = BTreeMap::new();
        for row in self.rows.iter().filter(|r| r.op != "sequence") {
            *seen.entry(row.op).or_default() += 1;
        }
        let grown: BTreeMap<&str, i64> = sent[1]
            .iter()
            .map(|(op, n)| (op.as_str(), n - sent[0][op]))
            .filter(|(op, n)| *n > 0 && *op != "sequence")
            .collect();
        assert_eq!(seen, grown);
        let bytes =
            |ops: &[&str]| -> i64 { self.rows.iter().filter(|r| ops.contains(&r.op)).filter_map(|r| r.bytes).sum() };
        assert_eq!([bytes(&READS), bytes(&["write"])], [0, 1].map(|at| moved[1][at] - moved[0][at]));
    }

    /// Each is in a call of the thread that asked, which lasts from before until after, or in none.
    fn compare_calls(&self) {
        for row in &self.rows {
            assert_eq!((row.protocol, row.dev, row.server_process_ix), ("nfs", None, -1), "{row:?}");
            let comm = fs::read_to_string(format!("/proc/{}/comm", row.server_tid)).unwrap();
            assert_eq!(comm.trim(), "nfsd");
            let Some(id) = row.client_span_id else { continue };
            let call = self.by_id.get(&id).unwrap_or_else(|| panic!("{row:?}"));
            assert_eq!((Some(call.tid), Some(call.process_ix)), (row.client_tid, row.client_process_ix));
            let end = row.received_ns + row.dur_ns.unwrap();
            // No call waits for read-ahead.
            let waits = !READS.contains(&row.op) || call.op == "preadv2";
            assert!(call.start_ns <= row.received_ns, "{call:?} {row:?}");
            assert!(!waits || end <= call.start_ns + call.dur_ns, "{call:?} {row:?}");
            assert!(row.op != "close" || call.op == "close", "{call:?} {row:?}");
        }
        // The write-back of the last file is the kernel's own.
        let late: Vec<&Rpc> = self.rows.iter().filter(|r| r.op == "write" && r.client_tid.is_none()).collect();
        assert_eq!(late.iter().map(|r| (r.client_span_id, r.bytes)).collect::<Vec<_>>(), [(None, Some(5000))]);
    }

    /// Direct writes are sent by the thread itself, and on the device when they return.
    fn compare_direct_writes(&self) {
        let written = self.calls("pwritev2");
        assert_eq!(written.len(), 6);
        for call in &written {
            let parts = self.of(call, &["write"]);
            assert_eq!(parts.iter().filter_map(|r| r.bytes).sum::<i64>(), 65536, "{call:?}");
            let (from, to) = (call.offset.unwrap(), call.offset.unwrap() + call.bytes.unwrap());
            let within = |r: &&Rpc| from <= r.offset.unwrap() && r.offset.unwrap() + r.req_bytes.unwrap() <= to;
            assert!(parts.iter().all(within), "{parts:?}");
            assert!(parts.iter().all(|r| r.errno == Some(0)));
            assert!(self.linked(call, "write") >= 65536, "{call:?}");
        }
    }

    /// What is in the page cache is sent by fsync, and then it is on the device: because the WRITE asks for that, or by a
    /// COMMIT, which follows when the WRITE is over. The last file's may be the kernel's own.
    fn compare_synced_writes(&self) {
        let commits: Vec<&Rpc> = self.rows.iter().filter(|r| r.op == "commit").collect();
        let fsyncs: usize = self.calls("fsync").into_iter().map(|s| self.of(s, &["commit"]).len()).sum();
        assert!(commits.len() - fsyncs <= 1 && (commits.len() < 2 || fsyncs >= 2), "{commits:?}");
        let synced: Vec<&Span> =
            self.calls("fsync").into_iter().filter(|s| !self.of(s, &["write"]).is_empty()).collect();
        assert_eq!(synced.len(), 2);
        for call in synced {
            // A part of a page may be sent with what is before it in that page.
            let parts: Vec<[i64; 2]> = self
                .of(call, &["write"])
                .iter()
                .map(|r| [r.offset.unwrap(), r.offset.unwrap() + r.bytes.unwrap()])
                .collect();
            assert_eq!(parts.len(), 2, "{parts:?}");
            for [from, to] in [[0, 10000], [20000, 20500]] {
                let holds = |part: &&[i64; 2]| from / 4096 * 4096 <= part[0] && part[0] <= from && part[1] == to;
                assert_eq!(parts.iter().filter(holds).count(), 1, "{parts:?}");
            }
            assert!(self.linked(call, "write") >= 10500, "{call:?}");
            // It also dirtied the server's pages.
            let owned = self.data.owners.iter().filter(|o| o.span_id == Some(call.span_id));
            let owned = owned.filter(|o| matches!(o.known_by, "page" | "range")).map(|o| o.bytes).sum::<i64>();
            assert!(owned >= 10500, "{owned} {call:?}");
        }
    }

    /// What the server does not have any more is read from the device.
    fn compare_reads(&self) {
        for (op, bytes) in [("preadv2", 65536), ("pread64", 3000)] {
            let reads: Vec<&Span> = self.calls(op).into_iter().filter(|s| s.bytes == Some(bytes)).collect();
            assert_eq!(reads.len(), 2);
            for call in reads {
                let parts = self.of(call, &READS);
                let end = call.offset.unwrap() + bytes;
                assert!(parts.iter().any(|r| r.offset.unwrap() < end && r.bytes > Some(0)), "{parts:?}");
                assert!(self.linked(call, "read") > 0, "{call:?}");
            }
        }
    }

    /// Calls on names have requests for them.
    fn compare_names(&self, version: &str) {
        let asked = |op: &'static str| -> BTreeSet<(&str, Option<i16>)> {
            let of_call =
                |s: &Span| self.rows.iter().filter(|r| r.client_span_id == Some(s.span_id)).collect::<Vec<_>>();
            self.calls(op).into_iter().flat_map(of_call).map(|r| (r.op, r.errno)).collect()
        };
        let mkdir = if version == "3" { "mkdir" } else { "create" };
        let readdir = if version == "3" { "readdirplus" } else { "readdir" };
        let needed = [("rename", "rename"), ("unlink", "remove"), ("mkdir", mkdir), ("getdents64", readdir)];
        for (op, request) in needed {
            assert!(asked(op).contains(&(request, Some(0))), "{op}: {:?}", asked(op));
        }
        // No such file.
        assert!(asked("newfstatat").contains(&("lookup", Some(2))), "{:?}", asked("newfstatat"));
    }
}

fn requests_belong_to_calls(version: &str) {
    if !Path::new("/sys/module/nfsd").exists() {
        return nothing_is_there();
    }
    let work = live::scratch();
    let served = Served::new(work.path(), version);
    let (sent, moved_before) = (served.sent(), moved());
    let traced = live::trace(
        work.path(),
        &[],
        &["python3", "-c", &format!("{}{CLIENT}", client::PYTHON), served.mount.to_str().unwrap()],
    );
    let (now_sent, now_moved) = (served.sent(), moved());
    let data = traced.data().lossless();
    verdicts(&data, "attached");
    // Then comes the report.
    let tids: BTreeSet<i32> = traced.stdout.lines().map_while(|line| line.parse().ok()).collect();
    assert_eq!(tids.len(), 2);
    let recorded = Recorded::new(&data, requests(&traced.dir), tids);
    recorded.compare_counts([&sent, &now_sent], [moved_before, now_moved]);
    recorded.compare_calls();
    recorded.compare_direct_writes();
    recorded.compare_synced_writes();
    recorded.compare_reads();
    recorded.compare_names(version);

    sql::holds(
        &traced.dir,
        &format!(
            "exists(FROM v_rpc WHERE client_span_id = {} AND request = 'write' AND client_op = 'pwritev2' AND bytes = 65536)",
            recorded.calls("pwritev2")[0].span_id
        ),
    );
}

#[test]
fn requests_of_version_3_belong_to_the_calls_of_their_client() {
    requests_belong_to_calls("3");
}

#[test]
fn requests_of_version_4_belong_to_the_calls_of_their_client() {
    requests_belong_to_calls("4.2");
}
