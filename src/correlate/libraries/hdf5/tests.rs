//! What is learned from one call is known to the next, and to no other process or copy of the library.

use crate::catalog;
use crate::correlate::testing::{Rows, Run, call, spec};
use crate::event::{Call, Event, TextKind};
use crate::rows::{Object, Row, Span};
use crate::vocabulary::flag;

/// Identifiers as the library makes them: the type above bit 56.
const FILE: u64 = 1 << 56;
const DATASPACE: u64 = 4 << 56;
const DATASET: u64 = 5 << 56;
const LIST: u64 = 10 << 56;

/// Calls one after the other, on thread 0.
struct Story {
    run: Run,
    seq: u32,
    /// Which copy of the library the next calls go to.
    copy: u16,
    thread: u32,
}

impl Story {
    fn new() -> Self {
        let mut story = Self { run: Run::new(), seq: 0, copy: 0, thread: 0 };
        story.named("H5Fcreate", "a.h5", Call { handle: Some(FILE), ..story.next() });
        story
    }

    fn next(&self) -> Call {
        let at = 10 * u64::from(self.seq) + 10;
        call(self.thread, self.seq + 1, 0, at, at + 5)
    }

    /// A call; returns its number.
    fn call(&mut self, symbol: &str, call: Call) -> u32 {
        self.seq += 1;
        let rows = catalog::rows().len() as u16;
        self.run.push(Event::Call(Call { spec: spec(symbol) + self.copy * rows, ..call }));
        self.seq
    }

    fn numbers(&mut self, symbol: &str, slot: u8, numbers: &[i64], call: Call) -> u32 {
        let bytes = numbers.iter().flat_map(|n| n.to_ne_bytes()).collect();
        let (time, thread, seq, what) = (call.start + 5, call.thread, call.seq, TextKind::Longs(slot));
        self.run.push(Event::Text { time, thread, seq, what, bytes, root: 0, cut: false, operation: false });
        self.call(symbol, call)
    }

    fn named(&mut self, symbol: &str, name: &str, call: Call) -> u32 {
        self.run.text(&call, TextKind::Path, name);
        self.call(symbol, call)
    }

    fn new_list(&mut self, raw: u64) {
        self.call("H5Pcreate", Call { got: Some(raw), ..self.next() });
    }

    /// Makes a dataset of 4 by 6 elements of 8 bytes.
    fn make(&mut self, name: &str, raw: u64, list: u64) -> u32 {
        let call = Call { handle: Some(raw), off: Some(FILE), got: Some(list), len: Some(8), ..self.next() };
        self.run.text(&call, TextKind::Path, name);
        self.numbers("H5Dcreate2", 0, &[4, 6], call)
    }

    fn read(&mut self, raw: u64, list: u64) -> u32 {
        self.call("H5Dread", Call { handle: Some(raw), len: Some(64), got: Some(8), off: Some(list), ..self.next() })
    }

    fn finish(self) -> Rows {
        self.run.finish()
    }
}

/// The last row of the object of a call.
fn object<'a>(rows: &'a Rows, span: &Span) -> &'a Object {
    let mut objects = rows.0.iter().rev().filter_map(|r| if let Row::Object(o) = r { Some(o) } else { None });
    objects.find(|o| Some(o.object_id) == span.object_id).unwrap()
}

/// Dimensions, chunk, size of an element, filters.
type Shape<'a> = (Option<&'a [i64]>, Option<&'a [i64]>, Option<i32>, Option<&'a str>);

fn shape(o: &Object) -> Shape<'_> {
    (o.dims.as_deref(), o.chunk.as_deref(), o.elem_size, o.filters.as_deref())
}

#[test]
fn a_dataset_has_the_chunks_and_filters_of_its_list_as_it_was_then() {
    let mut story = Story::new();
    story.new_list(LIST + 1);
    story.numbers("H5Pset_chunk", 0, &[2, 3], Call { off: Some(LIST + 1), ..story.next() });
    for (filter, level) in [("H5Pset_shuffle", None), ("H5Pset_deflate", Some(6)), ("H5Pset_fletcher32", None)] {
        story.call(filter, Call { off: Some(LIST + 1), got: level, ..story.next() });
    }
    story.call("H5Pcopy", Call { off: Some(LIST + 1), got: Some(LIST + 2), ..story.next() });
    story.numbers("H5Pmodify_filter", 0, &[9], Call { off: Some(LIST + 2), got: Some(1), ..story.next() });
    story.call("H5Premove_filter", Call { off: Some(LIST + 2), got: Some(2), ..story.next() });
    story.numbers("H5Pset_filter", 0, &[1, 2], Call { off: Some(LIST + 2), got: Some(32_015), ..story.next() });
    let (first, second) = (story.make("first", DATASET + 1, LIST + 1), story.make("second", DATASET + 2, LIST + 2));
    // Too late.
    story.call("H5Premove_filter", Call { off: Some(LIST + 1), got: Some(0), ..story.next() });
    let none = story.make("none", DATASET + 3, LIST + 1);
    story.call("H5Pset_layout", Call { off: Some(LIST + 1), got: Some(0), ..story.next() });
    let compact = story.make("compact", DATASET + 4, LIST + 1);
    story.call("H5Pclose", Call { off: Some(LIST + 1), ..story.next() });
    let unknown = story.make("unknown", DATASET + 5, LIST + 1);
    let usual = story.make("usual", DATASET + 6, 0);
    let rows = story.finish();
    let of = |seq| object(&rows, rows.span(0, seq));
    let is = |chunk, filters| (Some(&[4, 6][..]), chunk, Some(8), filters);
    assert_eq!(shape(of(first)), is(Some(&[2, 3][..]), Some("shuffle,deflate(6),fletcher32")));
    assert_eq!(shape(of(second)), is(Some(&[2, 3][..]), Some("deflate(9),fletcher32,32015")));
    assert_eq!(shape(of(none)), is(Some(&[2, 3][..]), Some("")));
    assert_eq!(shape(of(compact)), is(Some(&[][..]), Some("")));
    assert_eq!(shape(of(unknown)), is(None, None));
    assert_eq!(shape(of(usual)), is(Some(&[][..]), Some("")));
    assert_eq!((rows.span(0, first).bytes, rows.span(0, first).offset), (None, None));
}

#[test]
fn copies_of_the_library_and_processes_have_lists_of_their_own() {
    let mut story = Story::new();
    story.new_list(LIST);
    story.call("H5Pset_dxpl_mpio", Call { off: Some(LIST), got: Some(1), ..story.next() });
    story.call("H5Pcopy", Call { off: Some(LIST), got: Some(LIST + 1), ..story.next() });
    let collective = [story.read(DATASET, LIST), story.read(DATASET, LIST + 1)];
    story.copy = 1;
    let other = story.read(DATASET, LIST);
    story.copy = 0;
    story.run.process(15, 1, None);
    let elsewhere = story
        .call("H5Dread", Call { handle: Some(DATASET), len: Some(64), off: Some(LIST), thread: 1, ..story.next() });
    story.call("H5Pset_dxpl_mpio", Call { off: Some(LIST), got: Some(0), ..story.next() });
    let independent = story.read(DATASET, LIST);
    story.run.exec(10 * u64::from(story.seq) + 8, 0, &[]);
    let forgotten = story.read(DATASET, LIST + 1);
    let rows = story.finish();
    for seq in collective {
        assert_eq!((rows.span(0, seq).flags, rows.span(0, seq).bytes), (flag::COLLECTIVE, Some(64)));
    }
    for (thread, seq) in [(0, other), (1, elsewhere), (0, independent), (0, forgotten)] {
        assert_eq!(rows.span(thread, seq).flags, 0, "{seq}");
    }
}

#[test]
fn the_shape_of_an_old_dataset_comes_from_the_program_s_queries() {
    let mut story = Story::new();
    let call = Call { handle: Some(DATASET), off: Some(FILE), got: Some(2), ..story.next() };
    story.run.text(&call, TextKind::Path, "d");
    let opened = story.numbers("H5Dopen2", 0, &[8, 9], call);
    story.read(DATASET, 0);
    story.call("H5Dget_create_plist", Call { handle: Some(DATASET), got: Some(LIST), ..story.next() });
    // Asked for the rank alone, then with too little room, then well.
    story.call("H5Pget_chunk", Call { off: Some(LIST), got: Some(2), len: Some(0), ..story.next() });
    story.numbers("H5Pget_chunk", 0, &[4, 77], Call { off: Some(LIST), got: Some(2), len: Some(1), ..story.next() });
    story.numbers("H5Pget_chunk", 0, &[4, 3], Call { off: Some(LIST), got: Some(2), len: Some(2), ..story.next() });
    story.call("H5Pget_nfilters", Call { off: Some(LIST), got: Some(2), ..story.next() });
    story.numbers("H5Pget_filter2", 0, &[7], Call { off: Some(LIST), got: Some(1), len: Some(1), ..story.next() });
    story.call("H5Pget_filter2", Call { off: Some(LIST), got: Some(2), len: Some(0), ..story.next() });
    // The list is the program's from here on.
    story.numbers("H5Pset_chunk", 0, &[1, 1], Call { off: Some(LIST), ..story.next() });
    story.numbers("H5Pget_chunk", 0, &[1, 1], Call { off: Some(LIST), got: Some(2), len: Some(2), ..story.next() });
    story.numbers("H5Dset_extent", 0, &[16, 9, 4711], Call { handle: Some(DATASET), ..story.next() });
    story.numbers("H5Dextend", 0, &[10, 18], Call { handle: Some(DATASET), ..story.next() });
    let rows = story.finish();
    let expected = (Some(&[16, 18][..]), Some(&[4, 3][..]), Some(8), Some("shuffle,deflate(7)"));
    assert_eq!(shape(object(&rows, rows.span(0, opened))), expected);
}

#[test]
fn an_attribute_has_the_dimensions_of_its_dataspace() {
    let mut story = Story::new();
    story.numbers("H5Screate_simple", 0, &[2, 3], Call { got: Some(DATASPACE), ..story.next() });
    story.call("H5Screate", Call { off: Some(0), got: Some(DATASPACE + 1), ..story.next() });
    story.call("H5Scopy", Call { off: Some(DATASPACE), got: Some(DATASPACE + 2), ..story.next() });
    story.numbers("H5Sset_extent_simple", 0, &[5], Call { off: Some(DATASPACE), ..story.next() });
    story.call("H5Screate", Call { off: Some(1), got: Some(DATASPACE + 3), ..story.next() });
    story.call("H5Screate", Call { off: Some(1), got: Some(DATASPACE + 4), ..story.next() });
    story.call("H5Sextent_copy", Call { off: Some(DATASPACE + 4), got: Some(DATASPACE + 2), ..story.next() });
    let mut made = Vec::new();
    for (i, name) in (0..).zip(["five", "scalar", "six", "empty", "copied"]) {
        let (handle, got) = (Some((7 << 56) + i), Some(DATASPACE + i));
        let call = Call { handle, off: Some(FILE), got, len: Some(2), ..story.next() };
        made.push(story.named("H5Acreate2", name, call));
    }
    // One that was there before, and a program that asks.
    let call = Call { handle: Some(6 << 56), off: Some(FILE), len: Some(4), ..story.next() };
    made.push(story.named("H5Aopen", "old", call));
    story.call("H5Aget_space", Call { handle: Some(6 << 56), got: Some(DATASPACE + 9), ..story.next() });
    let query = Call { off: Some(DATASPACE + 9), got: Some(3), ..story.next() };
    story.numbers("H5Sget_simple_extent_dims", 0, &[7, 8, 9], query);
    let rows = story.finish();
    let dims: Vec<_> = made.iter().map(|seq| object(&rows, rows.span(0, *seq)).dims.as_deref()).collect();
    let expected: [Option<&[i64]>; 6] = [Some(&[5]), Some(&[]), Some(&[2, 3]), None, Some(&[2, 3]), Some(&[7, 8, 9])];
    assert_eq!(dims, expected);
    assert_eq!(object(&rows, rows.span(0, made[0])).chunk, None);
}

#[test]
fn what_is_made_without_a_name_is_one_object_before_and_after_it_gets_one() {
    let mut story = Story::new();
    let call = Call { handle: Some(DATASET), off: Some(FILE), got: Some(0), len: Some(2), ..story.next() };
    story.numbers("H5Dcreate_anon", 0, &[6], call);
    let before = story.read(DATASET, 0);
    let link = Call { handle: Some(DATASET), off: Some(FILE), ..story.next() };
    story.named("H5Olink", "late", link);
    // A second name is not another object, and not its name.
    let link = Call { handle: Some(DATASET), off: Some(FILE), ..story.next() };
    story.named("H5Olink", "later", link);
    let after = story.read(DATASET, 0);
    story.call("H5Dclose", Call { handle: Some(DATASET), ..story.next() });
    let call = Call { handle: Some(DATASET + 1), off: Some(FILE), got: Some(1), ..story.next() };
    let opened = story.named("H5Oopen", "late", call);
    let rows = story.finish();
    let ids = [before, after, opened].map(|seq| rows.span(0, seq).object_id);
    assert_eq!(ids, [ids[0]; 3]);
    let object = object(&rows, rows.span(0, before));
    assert_eq!((object.name.as_str(), object.class), ("/late", "dataset"));
    assert_eq!(shape(object), (Some(&[6][..]), Some(&[][..]), Some(2), Some("")));
}

/// A process opens the one file that both know by its inode.
fn open_shared(story: &mut Story) {
    let outer = story.next();
    let inner = Call { seq: outer.seq + 1, depth: 1, start: outer.start + 1, dur: 1, ..outer };
    story.run.openat(inner, "/d/a.h5", 7, 3);
    story.named("H5Fopen", "a.h5", Call { handle: Some(FILE), ..outer });
    story.seq += 1;
}

#[test]
fn what_a_process_makes_where_it_knew_something_is_another_object() {
    let mut story = Story::new();
    open_shared(&mut story);
    let first = story.make("d", DATASET, 0);
    story.run.process(15, 1, None);
    story.thread = 1;
    open_shared(&mut story);
    let elsewhere = story.make("d", DATASET, 0);
    story.thread = 0;
    let again = story.make("d", DATASET + 1, 0);
    story.thread = 1;
    let again_elsewhere = story.make("d", DATASET + 1, 0);
    let rows = story.finish();
    let id = |thread, seq| rows.span(thread, seq).object_id.unwrap();
    assert_eq!(id(0, first), id(1, elsewhere));
    assert_eq!(id(0, again), id(1, again_elsewhere));
    assert_ne!(id(0, first), id(0, again));
}

#[test]
fn a_handle_lives_as_long_as_its_last_reference() {
    let mut story = Story::new();
    story.make("d", DATASET, 0);
    story.call("H5Iinc_ref", Call { handle: Some(DATASET), got: Some(3), ..story.next() });
    for left in [2, 1] {
        story.call("H5Idec_ref", Call { handle: Some(DATASET), got: Some(left), ..story.next() });
    }
    let used = story.read(DATASET, 0);
    story.call("H5Iget_file_id", Call { handle: Some(FILE), off: Some(DATASET), ..story.next() });
    story.call("H5Fclose", Call { handle: Some(FILE), ..story.next() });
    let flush = story.call("H5Fflush", Call { handle: Some(FILE), ..story.next() });
    let last = story.call("H5Fclose", Call { handle: Some(FILE), ..story.next() });
    let gone = story.call("H5Idec_ref", Call { handle: Some(DATASET), got: Some(0), ..story.next() });
    // Identifiers of what lies in memory are no handles.
    let space = story.call("H5Idec_ref", Call { handle: Some(DATASPACE), got: Some(0), ..story.next() });
    let kind = story.call("H5Tclose", Call { handle: Some(3 << 56), ..story.next() });
    let rows = story.finish();
    let closed = |seq| rows.handle(rows.span(0, seq).handle_id.unwrap()).close_span_id;
    assert_eq!(closed(used), Some(rows.span(0, gone).span_id));
    assert_eq!(closed(flush), Some(rows.span(0, last).span_id));
    assert_eq!([space, kind].map(|seq| rows.span(0, seq).handle_id), [None; 2]);
}

#[test]
fn bytes_that_are_not_known_are_counted_with_the_reason() {
    let mut story = Story::new();
    let unknown = Call { handle: Some(DATASET), ..story.next() };
    story.call("H5Dread", unknown);
    story.run.correlator.advance(26, &mut story.run.out);
    story.call("H5Dread", Call { status: -1, ..story.next() });
    story.call("H5Awrite", Call { handle: Some(DATASET), ..story.next() });
    story.numbers("H5Dwrite_multi", 1, &[1, 2], story.next());
    story.call("H5Dwrite_async", story.next());
    let rows = story.finish();
    let mut metrics: Vec<(String, f64)> = Vec::new();
    for row in &rows.0 {
        if let Row::Metric(m) = row
            && m.name == "unknown_bytes"
        {
            metrics.push((m.label.clone().unwrap(), m.value));
        }
    }
    let inner = "hdf5: the library's inner functions were not seen";
    let expected = [
        (inner, 1.0),
        ("hdf5: asynchronous call: another thread may have done it", 1.0),
        ("hdf5: several datasets: the sizes of some were not seen", 1.0),
        (inner, 2.0),
    ];
    assert_eq!(metrics, expected.map(|(label, n)| (label.to_owned(), n)));
}

#[test]
fn a_call_of_several_datasets_is_about_one_only_if_there_is_one() {
    let mut story = Story::new();
    story.make("d", DATASET, 0);
    let of = |story: &Story| Call { handle: Some(DATASET), len: Some(100), off: Some(0), ..story.next() };
    let one = story.numbers("H5Dread_multi", 1, &[DATASET as i64], of(&story));
    let two = story.numbers("H5Dread_multi", 1, &[DATASET as i64, 9], of(&story));
    let rows = story.finish();
    assert!(rows.span(0, one).object_id.is_some() && rows.span(0, one).handle_id.is_some());
    assert_eq!((rows.span(0, two).object_id, rows.span(0, two).handle_id), (None, None));
    assert_eq!([one, two].map(|seq| rows.span(0, seq).bytes), [Some(100); 2]);
}
