//! Requests of clients to servers, where one or both are traced: the call of the client that waits for each, and the calls of
//! the server that serve it. A server inside the kernel (NFS) makes no calls, but its client is known from the start.

use std::collections::BTreeMap;

use crate::HashMap;
use crate::catalog::kernel::fuse::{self, Moves};
use crate::catalog::kernel::nfs;
use crate::correlate::losses::Losses;
use crate::correlate::resources::processes::{Processes, ThreadState};
use crate::event::{Exchange, Message, Reply, RpcReply, RpcRequest};
use crate::rows::{Row, Rpc, span_id};
use crate::vocabulary::Layer;

/// Requests that wait for their reply, or for the end of the call that they may be part of.
const MAX_WAITING: usize = 1 << 18;

/// The largest number in a table.
const MAX_NUMBER: u64 = (1 << 53) - 1;

struct Waiting {
    row: Rpc,
    operation: fuse::Operation,
    /// The server's thread that read it, and the number of its next call.
    from: (u32, u32),
    /// Its entry in `open`.
    key: (u64, u64),
    /// The client's thread, while it is not known in which of its calls the request is.
    client: Option<u32>,
    /// No reply comes any more.
    over: bool,
}

/// A call of a client that has ended.
pub struct Ended {
    pub thread: u32,
    pub span: i64,
    pub start_ns: i64,
    pub end_ns: i64,
    /// The devices that the file is on which alone it is about.
    pub devs: Option<[Option<i64>; 2]>,
    /// No call is open any more that began before its end.
    pub outermost: bool,
}

/// Requests that are not written yet.
pub struct Rpcs {
    max: usize,
    next: i64,
    waiting: BTreeMap<i64, Waiting>,
    /// By channel and number.
    open: HashMap<(u64, u64), i64>,
    /// Threads by the number that the kernel calls them.
    threads: HashMap<i32, u32>,
    /// Requests by the thread of the client.
    clients: HashMap<u32, Vec<i64>>,
}

impl Default for Rpcs {
    fn default() -> Self {
        Self::new(MAX_WAITING)
    }
}

impl Rpcs {
    fn new(max: usize) -> Self {
        let (waiting, open, threads, clients) =
            (BTreeMap::new(), HashMap::default(), HashMap::default(), HashMap::default());
        Self { max, next: 1, waiting, open, threads, clients }
    }

    pub fn thread_begins(&mut self, thread: u32, tid: u32) {
        self.threads.insert(tid as i32, thread);
    }

    /// Nothing more comes from this thread.
    pub fn thread_ends(&mut self, thread: u32, tid: Option<i32>, out: &mut Vec<Row>) {
        if let Some(tid) = tid.filter(|tid| self.threads.get(tid) == Some(&thread)) {
            self.threads.remove(&tid);
        }
        for id in self.clients.remove(&thread).unwrap_or_default() {
            if let Some(request) = self.waiting.get_mut(&id) {
                request.client = None;
            }
            self.write(id, out);
        }
    }

    /// A server has read a request, or replies.
    pub fn message(
        &mut self,
        t_ns: i64,
        message: &Message,
        processes: &Processes,
        losses: &mut Losses,
        out: &mut Vec<Row>,
    ) {
        match &message.what {
            Exchange::Request(asked) => self.asked(t_ns, message, asked, processes, out),
            Exchange::Reply(replied) => self.replied(t_ns, message, replied, out),
        }
        if self.waiting.len() > self.max
            && let Some(id) = self.waiting.keys().next().copied()
        {
            losses.add("rpc", Some(Layer::Syscall), 1);
            self.give_up(id, out);
        }
    }

    fn asked(&mut self, t_ns: i64, message: &Message, asked: &RpcRequest, processes: &Processes, out: &mut Vec<Row>) {
        let operation = fuse::of(asked.operation);
        let server = processes.threads.get(&message.thread);
        let client = asked.tid.and_then(|tid| self.threads.get(&tid)).copied();
        let process = |t: &ThreadState| t.owner.process_ix();
        let moves = operation.moves != Moves::Nothing;
        let id = self.next;
        self.next += 1;
        let row = Rpc {
            rpc_id: id,
            protocol: "fuse",
            op: operation.name,
            xid: message.number.min(MAX_NUMBER) as i64,
            dev: asked.dev,
            client_tid: asked.tid,
            client_process_ix: client.and_then(|c| processes.threads.get(&c)).map(process).filter(|ix| *ix >= 0),
            client_span_id: None,
            server_process_ix: server.map_or(-1, process),
            server_pid: server.map_or(0, |t| t.pid),
            server_tid: server.map_or(0, |t| t.tid),
            first_span_id: None,
            last_span_id: None,
            received_ns: t_ns,
            dur_ns: None,
            offset: asked.range.filter(|_| moves).and_then(|(offset, _)| i64::try_from(offset).ok()),
            req_bytes: asked.range.filter(|_| moves).map(|(_, size)| i64::from(size)),
            bytes: None,
            errno: None,
        };
        let key = (message.channel, message.number);
        let over = !operation.replied;
        let from = (message.thread, message.seq);
        self.waiting.insert(id, Waiting { row, operation, from, key, client, over });
        if let Some(client) = client {
            self.clients.entry(client).or_default().push(id);
        }
        if over {
            self.write(id, out);
        } else if let Some(lost) = self.open.insert(key, id) {
            // Numbers are used again when the channel is another one: its end was not seen.
            self.end(lost, out);
        }
    }

    fn replied(&mut self, t_ns: i64, message: &Message, replied: &RpcReply, out: &mut Vec<Row>) {
        let Some(id) = self.open.remove(&(message.channel, message.number)) else { return };
        let Some(request) = self.waiting.get_mut(&id) else { return };
        let row = &mut request.row;
        row.dur_ns = Some(t_ns.saturating_sub(row.received_ns).max(0));
        row.errno = Some(replied.errno);
        row.bytes = match request.operation.moves {
            Moves::Nothing => None,
            Moves::Read => Some(i64::from(replied.body)),
            Moves::Write => replied.taken.map(i64::from),
        };
        row.bytes = row.bytes.filter(|_| replied.errno == 0);
        let (thread, seq) = request.from;
        if thread == message.thread && seq < message.seq {
            row.first_span_id = Some(span_id(thread, seq));
            row.last_span_id = Some(span_id(thread, message.seq - 1));
        }
        request.over = true;
        self.write(id, out);
    }

    /// A server inside the kernel has served a request.
    pub fn served(&mut self, t_ns: i64, dur_ns: i64, reply: &Reply, processes: &Processes, out: &mut Vec<Row>) {
        let client = reply.client.and_then(|(thread, _)| processes.threads.get(&thread));
        let [pid, tid] = reply.server.map(|number| number as i32);
        let id = self.next;
        self.next += 1;
        out.push(Row::Rpc(Box::new(Rpc {
            rpc_id: id,
            protocol: "nfs",
            op: nfs::word(&reply.operation),
            xid: i64::from(reply.number),
            dev: None,
            client_tid: reply.client_tid,
            client_process_ix: client.map(|t| t.owner.process_ix()).filter(|ix| *ix >= 0),
            client_span_id: reply.client.and_then(|(thread, seq)| Some(span_id(thread, seq?))),
            server_process_ix: -1,
            server_pid: pid,
            server_tid: tid,
            first_span_id: None,
            last_span_id: None,
            received_ns: t_ns.saturating_sub(dur_ns),
            dur_ns: Some(dur_ns),
            offset: reply.range.and_then(|(offset, _)| i64::try_from(offset).ok()),
            req_bytes: reply.range.map(|(_, size)| i64::from(size)),
            bytes: reply.moved.map(i64::from),
            errno: Some(i16::try_from(reply.status).unwrap_or(i16::MAX)),
        })));
    }

    /// Is it not known of requests of this thread in which call they are?
    pub fn awaited(&self, thread: u32) -> bool {
        !self.clients.is_empty() && self.clients.contains_key(&thread)
    }

    /// A call has ended, after those inside it: what its thread asked for while it was open is part of it.
    pub fn called(&mut self, call: &Ended, out: &mut Vec<Row>) {
        let Some(mut ids) = self.clients.remove(&call.thread) else { return };
        ids.retain(|id| {
            let Some(request) = self.waiting.get_mut(id) else { return false };
            if request.row.received_ns >= call.start_ns && request.row.received_ns <= call.end_ns {
                request.row.client_span_id = Some(call.span).filter(|_| request.may_be_of(call));
            } else if !call.outermost {
                return true;
            }
            request.client = None;
            self.write(*id, out);
            false
        });
        if !ids.is_empty() {
            self.clients.insert(call.thread, ids);
        }
    }

    /// Nothing more comes at all.
    pub fn finish(&mut self, out: &mut Vec<Row>) {
        while let Some(id) = self.waiting.keys().next().copied() {
            self.give_up(id, out);
        }
    }

    fn give_up(&mut self, id: i64, out: &mut Vec<Row>) {
        if let Some(client) = self.waiting.get_mut(&id).and_then(|request| request.client.take())
            && let Some(ids) = self.clients.get_mut(&client)
        {
            ids.retain(|other| *other != id);
        }
        self.end(id, out);
    }

    fn end(&mut self, id: i64, out: &mut Vec<Row>) {
        if let Some(request) = self.waiting.get_mut(&id) {
            request.over = true;
        }
        self.write(id, out);
    }

    /// Writes a request of which nothing more will be known.
    fn write(&mut self, id: i64, out: &mut Vec<Row>) {
        if self.waiting.get(&id).is_some_and(|request| request.over && request.client.is_none())
            && let Some(request) = self.waiting.remove(&id)
        {
            if self.open.get(&request.key) == Some(&id) {
                self.open.remove(&request.key);
            }
            out.push(Row::Rpc(Box::new(request.row)));
        }
    }
}

impl Waiting {
    /// The kernel reads ahead without waiting, so that a thread may be in another call when such a request is taken up: of
    /// that one it is not, if it is about another file system.
    fn may_be_of(&self, call: &Ended) -> bool {
        let elsewhere = |devs: [Option<i64>; 2]| self.row.dev.is_some() && !devs.contains(&self.row.dev);
        self.operation.moves != Moves::Read || !call.devs.is_some_and(elsewhere)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::correlate::testing::{Rows, Run, call, key};
    use crate::event::{Call, Event};

    const READ: u32 = 15;
    const OPEN: u32 = 14;
    const FORGET: u32 = 2;
    const CLIENT: i32 = 100;

    /// Process 0 is the client, process 1 the daemon.
    fn run() -> Run {
        let mut run = Run::new();
        run.process(0, 1, None);
        run
    }

    fn asked(run: &mut Run, number: u64, operation: u32, time: u64, seq: u32, tid: i32) {
        let asked =
            RpcRequest { operation, dev: Some(0x10_0001), tid: Some(tid).filter(|t| *t > 0), range: Some((512, 64)) };
        run.push(Event::Message(Message { time, thread: 1, seq, channel: 9, number, what: Exchange::Request(asked) }));
    }

    fn replied(run: &mut Run, number: u64, time: u64, (thread, seq): (u32, u32), errno: i16) {
        let what = Exchange::Reply(RpcReply { errno, body: 40, taken: Some(30) });
        run.push(Event::Message(Message { time, thread, seq, channel: 9, number, what }));
    }

    fn requests(rows: &Rows) -> Vec<Rpc> {
        rows.0.iter().filter_map(|r| if let Row::Rpc(r) = r { Some((**r).clone()) } else { None }).collect()
    }

    #[test]
    fn a_request_is_of_the_innermost_call_that_waits_and_has_the_calls_up_to_the_reply() {
        let mut run = run();
        asked(&mut run, 2, READ, 20, 5, CLIENT);
        run.call("pread64", call(1, 5, 0, 22, 24));
        run.call("fstat", call(1, 6, 0, 25, 26));
        replied(&mut run, 2, 30, (1, 7), 0);
        run.call("pread64", Call { file: Some(key(1)), ..call(0, 1, 1, 10, 40) });
        run.call("fread", call(0, 0, 0, 5, 50));
        let rows = run.finish();
        let [r] = &requests(&rows)[..] else { panic!("{:?}", requests(&rows)) };
        assert_eq!((r.op, r.xid, r.client_tid, r.client_process_ix), ("read", 2, Some(CLIENT), Some(0)));
        assert_eq!(r.client_span_id, Some(span_id(0, 1)));
        assert_eq!((r.server_process_ix, r.server_pid), (1, 101));
        assert_eq!((r.first_span_id, r.last_span_id), (Some(span_id(1, 5)), Some(span_id(1, 6))));
        assert_eq!((r.received_ns, r.dur_ns, r.errno), (20, Some(10), Some(0)));
        assert_eq!((r.offset, r.req_bytes, r.bytes), (Some(512), Some(64), Some(40)));
    }

    #[test]
    fn a_request_outside_of_calls_has_none_and_waits_for_no_later_one() {
        let mut run = run();
        asked(&mut run, 2, OPEN, 20, 5, CLIENT);
        replied(&mut run, 2, 30, (1, 5), 2);
        run.call("read", call(0, 0, 0, 40, 50));
        let mut out = Vec::new();
        run.correlator.advance(100, &mut out);
        let rows = Rows(out);
        let [r] = &requests(&rows)[..] else { panic!("{:?}", requests(&rows)) };
        assert_eq!((r.client_span_id, r.client_process_ix), (None, Some(0)));
        assert_eq!((r.first_span_id, r.last_span_id, r.errno), (None, None, Some(2)));
        assert_eq!((r.offset, r.req_bytes, r.bytes), (None, None, None));
    }

    #[test]
    fn read_ahead_is_not_of_a_call_on_another_file_system() {
        for (operation, dev, of_call) in [(READ, 7, false), (READ, 0x10_0001, true), (OPEN, 7, true)] {
            let mut run = run();
            let mut file = key(1);
            file.dev = dev;
            asked(&mut run, 2, operation, 20, 5, CLIENT);
            run.call("pwrite64", Call { file: Some(file), ..call(0, 0, 0, 10, 25) });
            replied(&mut run, 2, 30, (1, 5), 0);
            let rows = run.finish();
            let found = requests(&rows)[0].client_span_id;
            assert_eq!(found, Some(span_id(0, 0)).filter(|_| of_call), "{operation} {dev}");
        }
    }

    #[test]
    fn requests_without_reply_by_another_thread_or_without_client_are_kept() {
        let mut run = run();
        asked(&mut run, 2, FORGET, 20, 5, 0);
        asked(&mut run, 4, READ, 21, 5, 555);
        asked(&mut run, 6, READ, 22, 5, 0);
        replied(&mut run, 4, 30, (0, 9), 0);
        // Of nothing that was read.
        replied(&mut run, 8, 31, (1, 9), 0);
        let rows = run.finish();
        let kept = requests(&rows);
        let facts = |r: &Rpc| (r.xid, r.op, r.client_tid, r.client_process_ix, r.dur_ns, r.first_span_id, r.errno);
        assert_eq!(
            kept.iter().map(facts).collect::<Vec<_>>(),
            [
                (2, "forget", None, None, None, None, None),
                (4, "read", Some(555), None, Some(9), None, Some(0)),
                (6, "read", None, None, None, None, None),
            ]
        );
    }

    #[test]
    fn a_request_of_a_thread_that_ended_in_its_call_is_written() {
        let mut run = run();
        asked(&mut run, 2, OPEN, 20, 5, CLIENT);
        run.push(Event::Exit { time: 30, process: 0, status: 9 });
        replied(&mut run, 2, 40, (1, 5), 0);
        let rows = run.finish();
        assert_eq!(
            requests(&rows).iter().map(|r| (r.client_span_id, r.dur_ns)).collect::<Vec<_>>(),
            [(None, Some(20))]
        );
    }

    #[test]
    fn what_the_kernel_has_served_names_its_client_at_once() {
        let mut run = run();
        let reply = Reply {
            time: 30,
            received: 20,
            number: 7,
            operation: *b"WRITE\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0",
            client: Some((0, Some(3))),
            client_tid: Some(CLIENT),
            server: [40, 41],
            range: Some((512, 64)),
            moved: Some(64),
            status: 0,
        };
        run.push(Event::Reply(reply));
        // No particular thread; one that has ended; a status that is no error number.
        let kernel = Reply { client: None, client_tid: None, range: None, moved: None, ..reply };
        run.push(Event::Reply(Reply { time: 31, ..kernel }));
        run.push(Event::Reply(Reply { time: 32, client: Some((9, None)), status: 10_008, ..reply }));
        let rows = run.finish();
        let [a, b, c] = &requests(&rows)[..] else { panic!("{:?}", requests(&rows)) };
        assert_eq!((a.protocol, a.op, a.xid, a.rpc_id, b.rpc_id), ("nfs", "write", 7, 1, 2));
        assert_eq!((a.client_tid, a.client_process_ix, a.client_span_id), (Some(CLIENT), Some(0), Some(span_id(0, 3))));
        assert_eq!((a.server_process_ix, a.server_pid, a.server_tid), (-1, 40, 41));
        assert_eq!((a.received_ns, a.dur_ns, a.errno), (20, Some(10), Some(0)));
        assert_eq!((a.offset, a.req_bytes, a.bytes), (Some(512), Some(64), Some(64)));
        assert_eq!((b.client_tid, b.client_process_ix, b.client_span_id), (None, None, None));
        assert_eq!((b.offset, b.req_bytes, b.bytes), (None, None, None));
        assert_eq!((c.client_tid, c.client_process_ix, c.client_span_id), (Some(CLIENT), None, None));
        assert_eq!(c.errno, Some(10_008));
    }

    #[test]
    fn what_waits_is_bounded() {
        let mut rpcs = Rpcs::new(2);
        let processes = Processes::new(crate::correlate::Variables { rank: vec![], size: vec![], job: vec![] });
        let (mut losses, mut out) = (Losses::default(), Vec::new());
        let asked = RpcRequest { operation: OPEN, dev: None, tid: None, range: None };
        for number in 0..5 {
            let message = Message { time: 0, thread: 1, seq: 0, channel: 9, number, what: Exchange::Request(asked) };
            rpcs.message(0, &message, &processes, &mut losses, &mut out);
        }
        assert_eq!((out.len(), rpcs.waiting.len(), rpcs.open.len()), (3, 2, 2));
        losses.report(0, &mut out);
        assert!(matches!(&out[3], Row::Loss(loss) if loss.place == "rpc" && loss.count == 3));
    }
}
