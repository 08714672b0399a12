#![allow(unsafe_code)]
use super::*;
use crate::base::hist::{TABLE_BITS, bucket};
use crate::event::wire::devices::{message, reply};
use crate::event::{BUCKETS, Exchange, Message, RpcReply, RpcRequest};
use proptest::prelude::*;
use t::{iot_bio_flag as B, iot_reply_flag as R};

#[test]
fn what_a_sum_of_one_thread_does_not_keep_follows_from_what_it_keeps() {
    let mut sum: t::iot_sum = value(&[0; size_of::<t::iot_sum>()]).unwrap();
    sum.sizes.value[..2].copy_from_slice(&[4097, 513]);
    sum.sizes.n[..2].copy_from_slice(&[3, 2]);
    // One of another size, and so much more than was moved was asked for.
    (sum.sizes.others, sum.bytes, sum.missing) = (1, 10, 7);
    sum.by_size[0] = 1;
    sum.by_time[bucket::<TABLE_BITS>(1000)] = 5;
    sum.by_time[bucket::<TABLE_BITS>(3)] = 1;
    // SAFETY: `iot_sum` has no padding (bpf/sums/sum.h), so that every byte of it is initialised.
    let bytes = unsafe { plain::as_bytes(&sum) };
    let (own, [durations, sizes]) = figures(bytes, true).unwrap();
    let moved = 3 * 4096 + 2 * 512 + 10;
    assert_eq!((own.calls, own.bytes, own.asked), (6, moved, moved + 7));
    assert_eq!((own.by_size[..4].to_vec(), own.by_time[..4].to_vec()), (vec![1, 2, 3, 0], vec![1, 0, 0, 5]));
    assert_eq!((durations[bucket::<TABLE_BITS>(1000)], sizes[bucket::<TABLE_BITS>(4096)]), (5, 3));
    // Where others add to it at the same time, all is in it.
    let (shared, [_, sizes]) = figures(bytes, false).unwrap();
    assert_eq!((shared.bytes, shared.by_size[2], sizes), (10, 0, [0; BUCKETS]));
    assert_eq!(shared.sizes, own.sizes);

    // Counts of a damaged sum do not run over.
    sum.sizes.value[1] = 4098;
    sum.sizes.n[..2].copy_from_slice(&[u32::MAX, 5]);
    // SAFETY: as above.
    let (_, [_, sizes]) = figures(unsafe { plain::as_bytes(&sum) }, true).unwrap();
    assert_eq!(sizes[bucket::<TABLE_BITS>(4096)], u32::MAX);
}

#[test]
fn components_become_a_path() {
    assert_eq!(join_path(b"run.h5\0out\0tmp\0", false), b"/tmp/out/run.h5");
    assert_eq!(join_path(b"", false), b"/");
    assert_eq!(join_path(b"c\0b\0", true), "…/b/c".as_bytes());
}

#[test]
fn arguments_keep_empty_strings() {
    assert_eq!(strings(b"a\0\0b\0"), vec![b"a".to_vec(), b"".to_vec(), b"b".to_vec()]);
    assert!(strings(b"").is_empty());
}

#[test]
fn texts_of_execs_that_were_lost_do_not_pile_up() {
    let mut d = Decoder::default();
    let text = |thread: u32| {
        let what = t::iot_text_kind::IOT_X_EXE.0 as u8;
        let text = t::iot_text { r#type: t::iot_type::IOT_T_TEXT.0 as u8, what, thread, ..t::iot_text::default() };
        // SAFETY: `iot_text` has no padding: its fields fill its 32 bytes.
        unsafe { plain::as_bytes(&text) }.to_vec()
    };
    for thread in 0..3 * EXECS as u32 {
        assert_eq!(d.decode(&text(thread)), Ok(Record::Partial));
        assert!(d.execs.len() <= EXECS);
    }
}

#[test]
fn a_request_whose_end_was_not_seen_has_none() {
    let ends = [0, 1].map(|unseen| {
        let kind = t::iot_type::IOT_T_REQ.0 as u8;
        let req = t::iot_req { r#type: kind, unseen, issued: 5, completed: 9, ..t::iot_req::default() };
        // SAFETY: `iot_req` has no padding: its fields fill its 88 bytes.
        let decoded = Decoder::default().decode(unsafe { plain::as_bytes(&req) });
        let Ok(Record::Event(Event::Request(request))) = decoded else { panic!("{decoded:?}") };
        (request.completed, request.unseen, request.known_at())
    });
    assert_eq!(ends, [(Some(9), None, 9), (None, Some(9), 9)]);
}

#[test]
fn a_short_record_is_an_error() {
    let mut d = Decoder::default();
    for kind in (1..=12u8).chain([14, 20, 28, 29, 30]) {
        let mut bytes = [0u64; 1];
        bytes[0] = u64::from(kind);
        let raw: Vec<u8> = bytes.iter().flat_map(|w| w.to_ne_bytes()).collect();
        assert_eq!(d.decode(&raw), Err(WireError::Short { kind, len: 8 }));
    }
    assert_eq!(d.decode(&[99, 0]), Err(WireError::Unknown(99)));
    assert!(d.decode(&[]).is_err());
}

#[test]
fn a_request_and_its_reply_are_read_as_the_kernel_lays_them_out() {
    let mut record = t::iot_rpc { thread: 3, seq: 4, dev: 5, time: 6, channel: 7, ..t::iot_rpc::default() };
    let put = |record: &mut t::iot_rpc, at: usize, bytes: &[u8]| {
        record.message[at..][..bytes.len()].copy_from_slice(bytes);
    };
    for (at, word) in [(0, 80_u32), (4, 15), (8, 9), (32, 1234), (56, 4096)] {
        put(&mut record, at, &word.to_ne_bytes());
    }
    put(&mut record, 48, &(1_u64 << 40).to_ne_bytes());
    let asked = RpcRequest { operation: 15, dev: Some(5), tid: Some(1234), range: Some((1 << 40, 4096)) };
    let expected = Message { time: 6, thread: 3, seq: 4, channel: 7, number: 9, what: Exchange::Request(asked) };
    assert_eq!(message(&record), expected);
    // Numbers of threads in another namespace are other threads' here.
    record.nested = 1;
    assert_eq!(message(&record).what, Exchange::Request(RpcRequest { tid: None, ..asked }));
    record.reply = 1;
    for (at, word) in [(0, 24_u32), (4, (-5_i32) as u32), (16, 77)] {
        put(&mut record, at, &word.to_ne_bytes());
    }
    assert_eq!(message(&record).what, Exchange::Reply(RpcReply { errno: 5, body: 8, taken: Some(77) }));
}

#[test]
fn a_reply_has_what_is_known_of_it() {
    let bits = |flags: &[B]| flags.iter().fold(0, |all, flag| all | flag.0 as u8);
    let mut record = t::iot_reply { client_thread: 3, client_seq: 4, asked: 5, moved: 6, ..t::iot_reply::default() };
    let decoded = reply(&record);
    assert_eq!(decoded.client_tid.map(i64::from).or(decoded.client.map(|c| c.0.into())), None);
    assert_eq!((decoded.range, decoded.moved), (None, None));
    (record.flags, record.known, record.client_tid) =
        (bits(&[B::IOT_B_TRACED, B::IOT_B_KERNEL]), R::IOT_R_RANGE.0 as u8, 9);
    let decoded = reply(&record);
    assert_eq!((decoded.client, decoded.client_tid), (Some((3, None)), Some(9)));
    assert_eq!((decoded.range, decoded.moved), (Some((0, 5)), None));
    (record.flags, record.known) = (bits(&[B::IOT_B_TRACED, B::IOT_B_IN_CALL]), R::IOT_R_MOVED.0 as u8);
    let decoded = reply(&record);
    assert_eq!((decoded.client, decoded.range, decoded.moved), (Some((3, Some(4))), None, Some(6)));
}

proptest! {
    #[test]
    fn any_bytes_are_decoded_or_refused(words in proptest::collection::vec(any::<u64>(), 0..40), kind in 0u8..32) {
        let mut raw: Vec<u8> = words.iter().flat_map(|w| w.to_ne_bytes()).collect();
        if let Some(first) = raw.first_mut() {
            *first = kind;
        }
        let _ = Decoder::default().decode(&raw);
    }
}
