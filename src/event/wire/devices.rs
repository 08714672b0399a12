//! Records of block requests, of pages that became dirty, and of requests to servers.

use crate::event::{Bio, Dirtied, Event, Exchange, FileKey, Message, Reply, Request, RpcReply, RpcRequest};
use crate::skel::types as t;
use t::{iot_bio_flag as B, iot_reply_flag as R};

pub(super) fn bio_of(b: &t::iot_bio) -> Event {
    let key = FileKey { dev: b.dev, generation: b.generation, ino: b.ino };
    let has = |flag: B| u32::from(b.flags) & flag.0 != 0;
    Event::Bio(
        b.time,
        Bio {
            req: b.req,
            file: has(B::IOT_B_FILE).then_some(key),
            off: b.off,
            bytes: b.bytes,
            queued: b.queued,
            of: has(B::IOT_B_OPERATION).then_some(b.of),
            submitter: has(B::IOT_B_TRACED).then(|| (b.thread, has(B::IOT_B_IN_CALL).then_some(b.seq))),
            journal: has(B::IOT_B_JOURNAL).then_some(b.dev),
            meta: has(B::IOT_B_META),
            kernel: has(B::IOT_B_KERNEL),
            cgroup: (b.cgroup != 0).then_some(b.cgroup),
        },
    )
}

pub(super) fn dirtied(d: &t::iot_dirty) -> Event {
    Event::Dirty(Dirtied {
        time: d.time,
        file: FileKey { dev: d.dev, generation: d.generation, ino: d.ino },
        off: d.off,
        bytes: d.bytes,
        thread: d.thread,
        seq: (d.in_call != 0).then_some(d.seq),
    })
}

pub(super) fn request(r: &t::iot_req) -> Event {
    Event::Request(Request {
        req: r.req,
        dev: r.dev,
        sector: r.sector,
        bytes: r.bytes,
        cmd_flags: r.cmd_flags,
        status: r.status,
        nr_bios: r.nr_bios,
        splits: r.splits,
        pid: r.pid,
        queued: r.queued,
        inserted: (r.inserted != 0).then_some(r.inserted),
        issued: r.issued,
        completed: (r.unseen == 0).then_some(r.completed),
        unseen: (r.unseen != 0).then_some(r.completed),
        upper: (r.upper_dev != 0).then_some((r.upper_dev, r.upper_sector)),
    })
}

pub(super) fn disk(d: &t::iot_disk) -> Event {
    let name: Vec<u8> = d.name.iter().map(|c| *c as u8).take_while(|b| *b != 0).collect();
    Event::Disk { time: d.time, dev: d.dev, name: String::from_utf8_lossy(&name).into_owned() }
}

/// A message of FUSE: `struct fuse_in_header` and `fuse_read_in` or `fuse_write_in`; `struct fuse_out_header` and
/// `fuse_write_out` (`include/uapi/linux/fuse.h`).
pub(super) fn message(r: &t::iot_rpc) -> Message {
    const IN: u32 = 40;
    const OUT: u32 = 16;
    let words = r.message.as_chunks().0;
    let half = |at: usize| words.get(at / 4).map_or(0, |word| u32::from_ne_bytes(*word));
    let whole = |at: usize| u64::from(half(at)) | u64::from(half(at + 4)) << 32;
    let (length, second) = (half(0), half(4));
    let what = if r.reply == 0 {
        Exchange::Request(RpcRequest {
            operation: second,
            dev: (r.dev != 0).then_some(i64::from(r.dev)),
            tid: i32::try_from(half(32)).ok().filter(|tid| *tid > 0 && r.nested == 0),
            range: (length >= IN + 24).then(|| (whole(48), half(56))),
        })
    } else {
        let body = length.saturating_sub(OUT);
        let errno = i16::try_from((second as i32).saturating_neg()).unwrap_or(i16::MAX);
        Exchange::Reply(RpcReply { errno, body, taken: (body >= 8).then(|| half(16)) })
    };
    Message { time: r.time, thread: r.thread, seq: r.seq, channel: r.channel, number: whole(8), what }
}

pub(super) fn reply(r: &t::iot_reply) -> Reply {
    let has = |flag: B| u32::from(r.flags) & flag.0 != 0;
    let knows = |flag: R| u32::from(r.known) & flag.0 != 0;
    Reply {
        time: r.time,
        received: r.received,
        number: r.xid,
        operation: r.op,
        client: has(B::IOT_B_TRACED).then(|| (r.client_thread, has(B::IOT_B_IN_CALL).then_some(r.client_seq))),
        client_tid: i32::try_from(r.client_tid).ok().filter(|tid| *tid > 0),
        server: [r.tgid, r.tid],
        range: knows(R::IOT_R_RANGE).then_some((r.offset, r.asked)),
        moved: knows(R::IOT_R_MOVED).then_some(r.moved),
        status: r.status,
    }
}
