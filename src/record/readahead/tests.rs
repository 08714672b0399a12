//! What is read ahead, and what is counted of it.
#![allow(clippy::unwrap_used)]
use super::*;
use crate::correlate::testing::{call, key, spec, specs};
use crate::event::Cached;

const NOTHING: &str = "nothing: no reads at a fixed distance missed the page cache again and again";

#[test]
fn what_came_of_it_is_text() {
    assert_eq!(Outcome::default().text(), NOTHING);
    let counts = Counts { asked: 200, bytes: 200 << 12, hits: 150, misses: 0, late: 40, unread: 10, saved_ns: 1.5e9 };
    let outcome = Outcome { counts, handles: 1, given_up: 0, refused: 2 };
    let expected = "200 reads (800 KiB) of 1 open file, 75.0% of them then from the page cache; 1.50 s saved; 40 came \
                    before they were asked for; 10 were never made; 2 of the open files could not be opened once more";
    assert_eq!(outcome.text(), expected);
}

fn thread(ahead: &mut ReadAhead, thread: u32, process: u32) {
    let pid = 100 + process;
    ahead.see(&Event::Thread { time: 0, thread, process, pid, tid: pid, comm: [0; 16] });
}

fn read(seq: u32) -> Call {
    Call {
        spec: spec("pread64"),
        probe: 30,
        handle: Some(3),
        got: Some(4096),
        off: Some(8192),
        file: Some(key(55)),
        ..call(1, seq, 0, 1000, 1100)
    }
}

#[test]
fn reads_through_the_page_cache_are_found() {
    let mut ahead = ReadAhead::start(&specs(), || 0).unwrap();
    ahead.see(&Event::Call(read(1)));
    assert!(ahead.found.is_empty(), "whose thread it is is not known");
    thread(&mut ahead, 1, 7);
    let cached = |seq, miss| Event::Cached {
        time: 0,
        thread: 1,
        seq,
        cached: Cached { miss, ahead: None, throttled: 0, locked: 0 },
    };
    // Its record comes before the call; without one all was there.
    let cases = [(Some(cached(2, Some(512))), true), (Some(cached(9, Some(512))), false), (None, false)];
    for (before, expected) in cases {
        if let Some(event) = &before {
            ahead.see(event);
        }
        ahead.see(&Event::Call(read(2)));
        let Some((1000, Message::Read { pid: 107, fd: 3, ino: 55, read })) = ahead.found.pop() else { panic!() };
        assert_eq!((read.offset, read.bytes, read.start_ns, read.dur_ns), (8192, 4096, 1000, 70));
        assert_eq!(read.missed, expected);
    }
    let others = [
        Call { got: Some(0), ..read(3) },
        Call { off: None, ..read(3) },
        Call { handle: None, ..read(3) },
        Call { file: None, ..read(3) },
        Call { direct: true, ..read(3) },
        Call { unfinished: true, ..read(3) },
        Call { spec: spec("pwrite64"), ..read(3) },
        Call { spec: spec("fread"), ..read(3) },
        Call { spec: u16::MAX, ..read(3) },
    ];
    for other in others {
        ahead.see(&Event::Call(other));
    }
    assert!(ahead.found.is_empty());
    ahead.see(&Event::Call(Call { spec: spec("close"), ..read(4) }));
    assert!(matches!(ahead.found.pop(), Some((1000, Message::Closed { pid: 107, fd: 3 }))));
    thread(&mut ahead, 2, 7);
    ahead.see(&Event::Exit { time: 2000, process: 7, status: 0 });
    assert!(matches!(ahead.found.pop(), Some((2000, Message::Ended(107)))) && ahead.threads.is_empty());
    assert_eq!(ahead.finish(), Row::Meta(Meta { key: READ_AHEAD.to_owned(), value: NOTHING.to_owned() }));
}

#[test]
fn a_descriptor_is_one_file_until_it_is_closed() {
    let mut readers = Readers::default();
    let message = |n: i64, fd: u64, ino: u64| {
        let read = Read { offset: n << 20, bytes: 4096, missed: true, start_ns: n, dur_ns: 1000 };
        Message::Read { pid: u32::MAX, fd, ino, read }
    };
    let key = (u32::MAX, 3);
    for n in 0..10 {
        assert_eq!(readers.take(message(n, 3, 5)), Some(key));
    }
    assert!(readers.open[&key].reader.wants());
    readers.look(key, &|| 100);
    readers.look(key, &|| 100);
    assert_eq!(readers.outcome.refused, 1, "there is no such process");
    readers.take(message(0, 3, 6));
    assert!(!readers.open[&key].reader.wants() && !readers.open[&key].refused, "another file");
    readers.take(message(0, 4, 6));
    readers.take(Message::Closed { pid: u32::MAX, fd: 3 });
    assert_eq!(readers.open.keys().collect::<Vec<_>>(), [&(u32::MAX, 4)]);
    readers.take(Message::Ended(u32::MAX));
    let refused = format!("{NOTHING}; 1 of the open files could not be opened once more");
    assert_eq!((readers.open.len(), readers.outcome.text()), (0, refused));
}

#[test]
fn after_messages_found_no_room_all_files_are_closed() {
    let (sender, inbox) = mpsc::sync_channel(1);
    let (_outcome, outcome) = mpsc::channel();
    let found = vec![(5, Message::Ended(7))];
    let mut ahead = ReadAhead { kinds: Vec::new(), threads: HashMap::new(), missed: None, found, sender, outcome };
    ahead.pass_on();
    assert!(ahead.found.is_empty());
    ahead.found.push((6, Message::Ended(8)));
    ahead.pass_on();
    assert!(matches!(ahead.found[..], [(6, Message::Missed)]), "{:?}", ahead.found);
    inbox.recv().unwrap();
    ahead.pass_on();
    assert!(ahead.found.is_empty());

    let mut readers = Readers::default();
    let read = Read { offset: 0, bytes: 4096, missed: true, start_ns: 0, dur_ns: 1000 };
    for pid in 1..3 {
        readers.take(Message::Read { pid, fd: 3, ino: 5, read });
    }
    for (_, message) in inbox.recv().unwrap() {
        readers.take(message);
    }
    assert!(readers.open.is_empty());
}
