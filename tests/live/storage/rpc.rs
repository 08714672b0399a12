//! A client of a FUSE file system and the daemon that serves it: each request is linked to the call that waited for it and to
//! the calls that served it, as strace sees the same daemon at the same time.

use crate::common::live::{self, Data, Running};
use crate::common::machine::client;
use crate::common::sql;
use iotrace_bpf::catalog::kernel::fuse;
use iotrace_bpf::export::Dataset;
use iotrace_bpf::rows::{Rpc, Span};
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// Two threads at once, each on files of its own; prints the number of each.
const CLIENT: &str = "
import sys, time
work, mount = sys.argv[1:3]
def use(name):
    written(f'{mount}/{name}')
    gone(f'{mount}/{name}', 6000)
open(work + '/up', 'w')
while not os.path.exists(work + '/go'): time.sleep(0.02)
threads = [threading.Thread(target=use, args=(name,)) for name in 'ab']
for thread in threads: thread.start()
for thread in threads: thread.join()
";

/// A daemon that serves one directory as another, which is not mounted any more in the end.
struct Mounted {
    daemon: Running,
    mount: PathBuf,
}

impl Mounted {
    fn new(work: &Path) -> Self {
        let (below, mount) = (work.join("below"), work.join("mount"));
        fs::create_dir(&below).unwrap();
        fs::create_dir(&mount).unwrap();
        let daemon = Running::spawn(Command::new("bindfs").arg("-f").args([&below, &mount]));
        live::until("the mount", || fs::read_to_string("/proc/mounts").unwrap().contains(mount.to_str().unwrap()));
        Self { daemon, mount }
    }
}

impl Drop for Mounted {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg(&self.mount).status();
        let _ = self.daemon.0.wait();
    }
}

/// A request as strace saw the daemon serve it: the header that it read, the error that it wrote, and reads and writes of
/// the same thread in between.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Served {
    op: &'static str,
    client: i32,
    /// Offset and size in the request.
    asked: Option<(i64, i64)>,
    errno: Option<i16>,
    /// Offsets and bytes.
    calls: Vec<(String, i64, i64)>,
}

/// Bytes of a string of `strace -xx`.
fn bytes(text: &str) -> Vec<u8> {
    let inner = text.split('"').nth(1).unwrap_or_default();
    inner.split("\\x").skip(1).map(|hex| u8::from_str_radix(hex, 16).unwrap()).collect()
}

fn number<const N: usize>(bytes: &[u8], at: usize) -> [u8; N] {
    bytes[at..at + N].try_into().unwrap()
}

/// What strace wrote, by the number of the request.
fn served(trace: &str) -> BTreeMap<i64, Served> {
    let mut all = BTreeMap::new();
    let mut open: HashMap<&str, (i64, Served)> = HashMap::new();
    let mut begun: HashMap<&str, &str> = HashMap::new();
    for line in trace.lines() {
        let (tid, rest) = line.split_once(' ').unwrap();
        let rest = rest.trim();
        if let Some((start, _)) = rest.split_once(" <unfinished") {
            begun.insert(tid, start);
            continue;
        }
        let call = match rest.split_once("resumed>") {
            // A call that strace did not see the beginning of has no arguments before what it read.
            Some((_, end)) => format!("{}{end}", begun.remove(tid).unwrap_or("read(</dev/fuse>, ")),
            None => rest.to_owned(),
        };
        let Some((output, result)) = call.rsplit_once(" = ") else { continue };
        let result: i64 = result.split(' ').next().unwrap().parse().unwrap_or(-1);
        let name = output.split('(').next().unwrap();
        let is_fuse = output.contains("/dev/fuse") || output.contains("\\x2f\\x64\\x65\\x76\\x2f\\x66\\x75\\x73\\x65");
        match name {
            "read" if is_fuse && result >= 40 => {
                let head = bytes(output);
                let op = fuse::of(u32::from_ne_bytes(number(&head, 4)));
                let range = matches!(op.name, "read" | "write");
                let served = Served {
                    op: op.name,
                    client: i32::from_ne_bytes(number(&head, 32)),
                    asked: range
                        .then(|| (i64::from_ne_bytes(number(&head, 48)), i32::from_ne_bytes(number(&head, 56)).into())),
                    errno: None,
                    calls: Vec::new(),
                };
                let unique = i64::from_ne_bytes(number(&head, 8));
                if op.replied {
                    open.insert(tid, (unique, served));
                } else {
                    all.insert(unique, served);
                }
            }
            "write" | "writev" if is_fuse => {
                let head = bytes(output);
                let (unique, mut served) = open.remove(tid).unwrap();
                assert_eq!(unique, i64::from_ne_bytes(number(&head, 8)));
                served.errno = Some(-i32::from_ne_bytes(number(&head, 4)) as i16);
                all.insert(unique, served);
            }
            "pread64" | "pwrite64" => {
                let offset = output.trim_end_matches(')').rsplit_once(", ").unwrap().1.parse().unwrap();
                open.get_mut(tid).unwrap().1.calls.push((name.to_owned(), offset, result));
            }
            _ => {}
        }
    }
    all.extend(open.into_values());
    all
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

/// What was recorded of a client and a daemon, which strace saw at the same time.
struct Recorded {
    work: PathBuf,
    dir: PathBuf,
    data: Data,
    requests: Vec<Rpc>,
    /// By the number of the request.
    truth: BTreeMap<i64, Served>,
    /// The threads of the client.
    tids: BTreeSet<i32>,
}

impl Recorded {
    fn new(work: &Path) -> Self {
        let mounted = Mounted::new(work);
        let trace = work.join("strace");
        let mut strace = Command::new("strace");
        strace.args(["-f", "-y", "-xx", "-s64", "-e", "trace=read,write,readv,writev,pread64,pwrite64"]);
        strace.arg("-o").arg(&trace).args(["-p", &mounted.daemon.pid().to_string()]).stderr(Stdio::null());
        let mut strace = Running::spawn(&mut strace);
        let status = format!("/proc/{}/status", mounted.daemon.pid());
        live::until("strace", || !fs::read_to_string(&status).unwrap().contains("TracerPid:\t0"));

        let mut client = Command::new("python3");
        client.args(["-c", &format!("{}{CLIENT}", client::PYTHON)]).args([work, &mounted.mount]).stdout(Stdio::piped());
        let mut client = Running::spawn(&mut client);
        live::until("the client", || work.join("up").exists());
        let dir = work.join("run.iotrace");
        let pids = format!("{},{}", client.pid(), mounted.daemon.pid());
        let err = work.join("stderr");
        let mut tracer = live::tracer();
        tracer.arg("-o").arg(&dir).args(["-p", &pids, "--no-tui"]).stderr(fs::File::create(&err).unwrap());
        let mut tracer = Running::spawn(tracer.stdout(Stdio::null()));
        // The first part with calls: the client asks whether it may begin.
        live::until("the trace", || dir.join("spans-00002.parquet").exists());
        fs::write(work.join("go"), "").unwrap();
        let mut output = String::new();
        std::io::Read::read_to_string(client.0.stdout.as_mut().unwrap(), &mut output).unwrap();
        assert!(client.wait().success());
        let tids: BTreeSet<i32> = output.lines().map(|tid| tid.parse().unwrap()).collect();
        assert_eq!(tids.len(), 2);
        drop(mounted);
        assert!(tracer.wait().success(), "{}", fs::read_to_string(&err).unwrap());
        strace.wait();

        let truth = served(&fs::read_to_string(&trace).unwrap());
        let (data, requests) = (Data::read(&dir).lossless(), requests(&dir));
        Self { work: work.to_owned(), dir, data, requests, truth, tids }
    }

    fn span(&self, id: i64) -> Option<&Span> {
        self.data.spans.iter().find(|s| s.span_id == id)
    }

    /// The calls that served a request.
    fn calls_of(&self, request: &Rpc) -> Vec<&Span> {
        let (Some(first), Some(last)) = (request.first_span_id, request.last_span_id) else { return Vec::new() };
        (first..=last).filter_map(|id| self.span(id)).collect()
    }

    /// The requests of a call.
    fn of(&self, span: &Span) -> Vec<&Rpc> {
        self.requests.iter().filter(|r| r.client_span_id == Some(span.span_id)).collect()
    }

    /// Calls of the client.
    fn ops(&self, op: &str) -> Vec<&Span> {
        self.data.spans.iter().filter(|s| self.tids.contains(&s.tid) && s.op == op).collect()
    }

    /// Every request that strace saw, no other, each served by the same reads and writes.
    fn compare_requests(&self) {
        let seen: BTreeMap<i64, Served> = self
            .requests
            .iter()
            .map(|r| {
                let moved = self.calls_of(r).into_iter().filter(|s| matches!(s.op, "pread64" | "pwrite64"));
                let calls = moved.map(|s| (s.op.to_owned(), s.offset.unwrap(), s.bytes.unwrap())).collect();
                let asked = r.offset.zip(r.req_bytes);
                let (op, client) = (r.op, r.client_tid.unwrap_or(0));
                (r.xid, Served { op, client, asked, errno: r.errno, calls })
            })
            .collect();
        assert_eq!(seen.len(), self.requests.len());
        let ours = |all: &BTreeMap<i64, Served>| -> BTreeMap<i64, Served> {
            all.iter().filter(|(_, s)| self.tids.contains(&s.client)).map(|(xid, s)| (*xid, s.clone())).collect()
        };
        assert!(ours(&self.truth).len() > 40, "{} requests", ours(&self.truth).len());
        assert_eq!(ours(&seen), ours(&self.truth));
        // Requests without a waiting call, too: the kernel releases files when it likes.
        assert!(self.truth.values().any(|s| s.client == 0));
        assert_eq!(
            seen.values().filter(|s| s.client == 0).count(),
            self.truth.values().filter(|s| s.client == 0).count()
        );
    }

    /// Each belongs to a call of its thread, which lasted from before it was read until after the reply.
    fn compare_calls(&self) {
        let dev =
            self.data.files.values().find(|f| f.path.as_deref().is_some_and(|p| p.contains("/mount/"))).unwrap().dev;
        for r in &self.requests {
            assert_eq!((r.protocol, r.dev), ("fuse", Some(dev)), "{r:?}");
            assert_eq!(
                r.server_process_ix,
                self.data.processes.values().find(|p| p.pid == r.server_pid).unwrap().process_ix
            );
            let Some(tid) = r.client_tid.filter(|tid| self.tids.contains(tid)) else {
                assert_eq!(r.client_span_id, None);
                continue;
            };
            let call = self.span(r.client_span_id.unwrap_or_else(|| panic!("{r:?}"))).unwrap();
            assert_eq!((call.tid, Some(call.process_ix)), (tid, r.client_process_ix));
            let end = r.received_ns + r.dur_ns.unwrap();
            assert!(call.start_ns <= r.received_ns && end <= call.start_ns + call.dur_ns, "{call:?} {r:?}");
            assert!(self.calls_of(r).iter().all(|s| {
                r.received_ns <= s.start_ns && s.start_ns + s.dur_ns <= end && s.process_ix == r.server_process_ix
            }));
        }
    }

    /// What each call asked for, and how the daemon moved it in its own file.
    fn compare_bytes(&self) {
        let below = self.work.join("below");
        let writes = self.ops("pwrite64");
        assert_eq!(writes.len(), 4);
        for write in writes {
            let parts = self.of(write);
            let written: Vec<&Rpc> = parts.iter().copied().filter(|r| r.op == "write").collect();
            assert_eq!(written.iter().map(|r| r.bytes.unwrap()).sum::<i64>(), write.bytes.unwrap());
            assert_eq!(written[0].offset, write.offset);
            for request in written {
                let calls = self.calls_of(request);
                let call = calls.iter().find(|s| s.op == "pwrite64").unwrap();
                assert_eq!((call.offset, call.bytes), (request.offset, request.bytes));
                assert!(self.data.path(call).unwrap().starts_with(&below), "{call:?}");
            }
        }
        for read in self.ops("pread64") {
            assert!(self.of(read).iter().any(|r| r.op == "read" && r.offset <= read.offset), "{:?}", self.of(read));
            assert!(self.of(read).iter().flat_map(|r| self.calls_of(r)).any(|s| s.op == "pread64" && s.errno == 0));
        }
    }

    /// Calls on names have requests for them.
    fn compare_names(&self) {
        let asked = |op: &str| {
            self.ops(op).into_iter().flat_map(|s| self.of(s)).map(|r| (r.op, r.errno)).collect::<BTreeSet<_>>()
        };
        let needed = [
            ("openat", "create"),
            ("openat", "open"),
            ("openat", "opendir"),
            ("fsync", "fsync"),
            ("mkdir", "mkdir"),
            ("getdents64", "readdir"),
            ("unlink", "unlink"),
        ];
        for (op, request) in needed {
            assert!(asked(op).contains(&(request, Some(0))), "{op}: {:?}", asked(op));
        }
        assert!(asked("rename").iter().any(|(op, errno)| op.starts_with("rename") && *errno == Some(0)));
        // bindfs does not do this one, and returns an error the first time.
        assert!(asked("close").contains(&("flush", Some(38))), "{:?}", asked("close"));
        assert!(asked("newfstatat").contains(&("lookup", Some(2))), "{:?}", asked("newfstatat"));
    }

    /// One question to the dataset gives the same.
    fn compare_view(&self) {
        let write = self.ops("pwrite64")[0];
        sql::holds(
            &self.dir,
            &format!(
                "(SELECT bool_and(request = 'write') AND sum(server_bytes) = {} FROM v_rpc
                  WHERE client_span_id = {} AND server_op = 'pwrite64')",
                write.bytes.unwrap(),
                write.span_id
            ),
        );
    }
}

#[test]
fn requests_are_those_that_the_daemon_read_and_belong_to_the_calls_that_waited() {
    let work = live::scratch();
    let recorded = Recorded::new(work.path());
    recorded.compare_requests();
    recorded.compare_calls();
    recorded.compare_bytes();
    recorded.compare_names();
    recorded.compare_view();
}
