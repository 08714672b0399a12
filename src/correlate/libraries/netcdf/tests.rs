//! NetCDF-C and `PnetCDF`, call by call.
#![allow(clippy::unwrap_used)]

use crate::catalog::variables::slot;
use crate::correlate::testing::{Rows, Run, call};
use crate::event::{Call, TextKind};
use crate::rows::{Handle, Object, Row, Span};
use crate::vocabulary::{Layer, flag};

/// A file, and a group in it, as NetCDF-C numbers them.
const FILE: u64 = 1 << 16;
const GROUP: u64 = FILE + 1;
const INNER: u64 = FILE + 2;

/// One call after the other, of one thread.
struct Calls {
    run: Run,
    next: u32,
    /// The number of the call around those that are being made.
    around: Option<u32>,
}

/// What goes with a call.
#[derive(Clone, Copy, Default)]
struct With<'a> {
    handle: u64,
    off: Option<u64>,
    len: Option<i64>,
    got: Option<i64>,
    name: Option<&'a str>,
    arrays: &'a [(u8, &'a [i64])],
    ints: &'a [(u8, &'a [i32])],
    status: i32,
}

fn on(handle: u64) -> With<'static> {
    With { handle, ..With::default() }
}

impl<'a> With<'a> {
    fn id(self, id: i32) -> Self {
        Self { off: Some(u64::from(id as u32)), ..self }
    }
    /// The value of an inner function, in the bits above the id.
    fn with_inner(self, id: i32, inner: u64) -> Self {
        Self { off: Some(u64::from(id as u32) | (inner + 1) << 32), ..self }
    }
    fn len(self, len: i64) -> Self {
        Self { len: Some(len), ..self }
    }
    fn got(self, got: i64) -> Self {
        Self { got: Some(got), ..self }
    }
    fn name(self, name: &'a str) -> Self {
        Self { name: Some(name), ..self }
    }
    fn arrays(self, arrays: &'a [(u8, &'a [i64])]) -> Self {
        Self { arrays, ..self }
    }
    fn ints(self, ints: &'a [(u8, &'a [i32])]) -> Self {
        Self { ints, ..self }
    }
    fn status(self, status: i32) -> Self {
        Self { status, ..self }
    }
}

impl Calls {
    fn new() -> Self {
        Self { run: Run::new(), next: 1, around: None }
    }

    /// A call by itself; its number.
    fn make(&mut self, symbol: &str, with: With) -> u32 {
        self.next += 1;
        self.end(symbol, with, self.next - 1, 0)
    }

    /// A call that the next one but for such calls makes.
    fn inner(&mut self, symbol: &str, with: With) {
        if self.around.is_none() {
            self.around = Some(self.next);
            self.next += 1;
        }
        self.next += 1;
        self.end(symbol, with, self.next - 1, 1);
    }

    /// The call around those.
    fn outer(&mut self, symbol: &str, with: With) -> u32 {
        let seq = self.around.take().unwrap();
        self.end(symbol, with, seq, 0)
    }

    fn end(&mut self, symbol: &str, with: With, seq: u32, depth: u8) -> u32 {
        let end = u64::from(self.next) * 100 - u64::from(depth);
        let made = Call {
            handle: Some(with.handle),
            off: with.off,
            len: with.len.map(|n| n as u64),
            got: with.got.map(|n| n as u64),
            status: with.status,
            ..call(0, seq, depth, u64::from(seq) * 100, end)
        };
        if let Some(name) = with.name {
            self.run.text(&made, TextKind::Path, name);
        }
        for (slot, arrays) in with.arrays {
            self.array(&made, TextKind::Longs(*slot), arrays.iter().flat_map(|w| w.to_ne_bytes()).collect());
        }
        for (slot, ints) in with.ints {
            self.array(&made, TextKind::Ints(*slot), ints.iter().flat_map(|w| w.to_ne_bytes()).collect());
        }
        self.run.call(symbol, made);
        seq
    }

    fn array(&mut self, call: &Call, what: TextKind, bytes: Vec<u8>) {
        let (time, thread, seq) = (call.start + call.dur, call.thread, call.seq);
        self.run.push(crate::event::Event::Text {
            time,
            thread,
            seq,
            what,
            bytes,
            root: 0,
            cut: false,
            operation: false,
        });
    }

    /// A file with a variable `v` of doubles over `time`, which grows, and `x`, of 4.
    fn define(&mut self, open: &str) {
        self.make(open, on(FILE).len(0).name("a.nc"));
        self.make("nc_def_dim", on(FILE).id(0).len(0));
        self.make("nc_def_dim", on(FILE).id(1).len(4));
        self.make("nc_def_var", on(FILE).id(0).len(6).got(2).name("v").ints(&[(slot::IDS, &[0, 1])]));
    }

    fn finish(self) -> Rows {
        self.run.finish()
    }
}

/// Asked for, moved.
fn bytes(span: &Span) -> (Option<i64>, Option<i64>) {
    (span.req_bytes, span.bytes)
}

fn asked(rows: &Rows, seq: u32) -> Option<i64> {
    rows.span(0, seq).req_bytes
}

/// The last row of an object.
fn object<'a>(rows: &'a Rows, name: &str) -> Option<&'a Object> {
    let mut objects = rows.0.iter().filter_map(|r| if let Row::Object(o) = r { Some(o) } else { None });
    objects.rfind(|o| o.name == name)
}

fn unknown(rows: &Rows) -> Vec<(String, f64)> {
    let metric = |r: &Row| if let Row::Metric(m) = r { Some(m.clone()) } else { None };
    let metrics = rows.0.iter().filter_map(metric).filter(|m| m.name == "unknown_bytes");
    metrics.map(|m| (m.label.unwrap(), m.value)).collect()
}

/// As many integers as are sent where the number of dimensions is not known.
fn eight(start: &[i64]) -> Vec<i64> {
    let mut all = start.to_vec();
    all.resize(8, 99);
    all
}

fn boxed(with: With<'_>, start: &[i64], count: &[i64], make: &mut dyn FnMut(With)) {
    let (start, count) = (eight(start), eight(count));
    make(With { arrays: &[(slot::START, &start), (slot::COUNT, &count)], ..with });
}

#[test]
fn counts_and_the_type_in_the_name_give_the_bytes_and_records_grow() {
    let mut calls = Calls::new();
    calls.define("nc_create");
    let mut put = 0;
    boxed(on(FILE).id(0), &[3, 0], &[2, 4], &mut |with| put = calls.make("nc_put_vara_float", with));
    let one = calls.make("nc_put_var1_short", on(FILE).id(0).arrays(&[(slot::START, &eight(&[6, 1]))]));
    let whole = calls.make("nc_get_var_double", on(FILE).id(0).arrays(&[(slot::SHAPE, &[7, 4])]));
    let mut failed = 0;
    boxed(on(FILE).id(0).status(-40), &[9, 0], &[1, 4], &mut |with| failed = calls.make("nc_put_vara_float", with));
    calls.make("nc_close", on(FILE));
    let rows = calls.finish();
    assert_eq!(bytes(rows.span(0, put)), (Some(32), Some(32)));
    assert_eq!(bytes(rows.span(0, one)), (Some(2), Some(2)));
    assert_eq!(asked(&rows, whole), Some(7 * 4 * 8));
    assert_eq!((bytes(rows.span(0, failed)), rows.span(0, failed).ret), ((Some(16), None), Some(-40)));
    let v = object(&rows, "/v").unwrap();
    assert_eq!((v.class, v.dims.clone(), v.elem_size), ("variable", Some(vec![7, 4]), Some(8)));
    assert_eq!(rows.span(0, put).object_id, Some(v.object_id));
    assert_eq!(unknown(&rows), []);
}

#[test]
fn an_inner_function_gives_the_number_of_counts() {
    let mut calls = Calls::new();
    calls.make("nc_open", on(FILE).len(0).name("a.nc"));
    calls.make("nc_inq_varid", on(FILE).id(5).name("v"));
    let mut seen = Vec::new();
    boxed(on(FILE).id(5), &[0, 0], &[2, 4], &mut |with| seen.push(calls.make("nc_get_vara_int", with)));
    // A value that can be no number of dimensions is ignored.
    boxed(on(FILE).with_inner(5, 4464), &[0, 0], &[2, 4], &mut |with| {
        seen.push(calls.make("nc_get_vara_int", with));
    });
    boxed(on(FILE).with_inner(5, 3), &[0, 0], &[2, 4, 5], &mut |with| seen.push(calls.make("nc_get_vara_int", with)));
    // Now it is known.
    boxed(on(FILE).id(5), &[0, 0], &[2, 4, 6], &mut |with| seen.push(calls.make("nc_get_vara_int", with)));
    // A variable without dimensions has one element, whatever the counts are.
    boxed(on(FILE).with_inner(6, 0), &[9], &[9], &mut |with| seen.push(calls.make("nc_get_vara_int", with)));
    // No counts: all there is.
    let shape = on(FILE).with_inner(7, 2).arrays(&[(slot::SHAPE, &[5, 6])]);
    seen.push(calls.make("nc_get_vara_int", shape));
    let rows = calls.finish();
    let asked: Vec<_> = seen.into_iter().map(|seq| asked(&rows, seq)).collect();
    assert_eq!(asked, [None, None, Some(160), Some(192), Some(4), Some(120)]);
    let reason = "netcdf: the number of dimensions of the variable was not seen".to_owned();
    assert_eq!(unknown(&rows), [(reason, 2.0)]);
    assert_eq!(rows.span(0, 3).object_id, Some(object(&rows, "/v").unwrap().object_id));
}

#[test]
fn the_type_of_the_file_comes_from_definitions_inquiries_or_hdf5() {
    let mut calls = Calls::new();
    calls.define("nc_create");
    calls.make("nc_def_compound", on(FILE).id(32).len(24));
    calls.make("nc_def_vlen", on(FILE).id(33));
    calls.make("nc_def_enum", on(FILE).id(34).len(3));
    let mut seen = Vec::new();
    for kind in [32, 33, 34] {
        let name = format!("of{kind}");
        calls.make("nc_def_var", on(FILE).id(kind).len(i64::from(kind)).got(1).name(&name).ints(&[(slot::IDS, &[1])]));
        seen.push(calls.make("nc_put_var", on(FILE).id(kind).arrays(&[(slot::SHAPE, &[4])])));
    }
    // The type of a variable without earlier queries comes from the call's own query.
    calls.inner("nc_inq_vartype", on(FILE).id(40).len(3));
    seen.push(calls.outer("nc_get_var1", on(FILE).id(40)));
    // For an unknown type: the last transfer of HDF5 inside the call.
    calls.inner("H5Aread", on(7).len(999));
    calls.inner("H5Dread", on(7).len(8));
    calls.inner("H5Dread", on(7).len(72));
    seen.push(calls.outer("nc_get_var", on(FILE).id(41).arrays(&[(slot::SHAPE, &[3])])));
    seen.push(calls.make("nc_get_var", on(FILE).id(42).arrays(&[(slot::SHAPE, &[3])])));
    let rows = calls.finish();
    let asked: Vec<_> = seen.into_iter().map(|seq| asked(&rows, seq)).collect();
    assert_eq!(asked, [Some(96), Some(64), Some(8), Some(2), Some(72), None]);
    assert_eq!(unknown(&rows), [("netcdf: the size of the type was not seen".to_owned(), 1.0)]);
}

#[test]
fn the_length_of_an_attribute_comes_from_its_put_query_or_get() {
    let mut calls = Calls::new();
    calls.define("nc_create");
    let put = calls.make("nc_put_att_float", on(FILE).id(0).name("scale").len(2).got(6));
    let get = calls.make("nc_get_att_int", on(FILE).id(0).name("scale"));
    let title = calls.make("nc_put_att_text", on(FILE).id(-1).name("title").len(11));
    calls.make("nc_inq_att", on(FILE).id(-1).name("list").len(3).got(5));
    let list = calls.make("nc_get_att", on(FILE).id(-1).name("list"));
    let known = calls.make("nc_get_att_double", on(FILE).id(-1).name("other").len(4));
    calls.make("nc_del_att", on(FILE).id(0).name("scale"));
    let gone = calls.make("nc_get_att_int", on(FILE).id(0).name("scale"));
    let rows = calls.finish();
    let all = [put, get, title, list, known, gone].map(|seq| asked(&rows, seq));
    assert_eq!(all, [Some(8), Some(8), Some(11), Some(12), Some(32), None]);
    assert_eq!(rows.span(0, put).object_id, object(&rows, "/v/scale").map(|o| o.object_id));
    assert_eq!(rows.span(0, title).object_id, object(&rows, "/title").map(|o| o.object_id));
    assert_eq!(unknown(&rows), [("netcdf: the length of the attribute was not seen".to_owned(), 1.0)]);
}

#[test]
fn groups_have_handles_and_names_below_their_parents() {
    let mut calls = Calls::new();
    calls.make("nc_open", on(FILE).len(0).name("a.nc"));
    // Once for the number, once for the ids.
    calls.make("nc_inq_grps", on(FILE).got(1));
    calls.make("nc_inq_grps", on(FILE).ints(&[(slot::IDS, &[GROUP as i32, 77, 78])]));
    calls.make("nc_inq_grpname", on(GROUP).name("outer"));
    calls.make("nc_inq_ncid", on(GROUP).id(INNER as i32).name("deep"));
    let var = calls.make("nc_inq_varid", on(INNER).id(0).name("v"));
    // One that nothing led to: whose child it is, is not known.
    let stray = calls.make("nc_inq_varid", on(FILE + 9).id(0).name("v"));
    calls.make("nc_inq_grpname", on(FILE + 9).name("stray"));
    calls.make("nc_inq_grpname_full", on(FILE + 9).name("/outer/stray"));
    let found = calls.make("nc_inq_varid", on(FILE + 9).id(0).name("v"));
    calls.make("nc_close", on(FILE));
    let rows = calls.finish();
    let v = object(&rows, "/outer/deep/v").unwrap();
    assert_eq!(rows.span(0, var).object_id, Some(v.object_id));
    assert_eq!((rows.span(0, stray).object_id, object(&rows, "/stray")), (None, None));
    assert_eq!(rows.span(0, found).object_id, object(&rows, "/outer/stray/v").map(|o| o.object_id));
    let handle = |raw: u64| -> &Handle {
        let handles = rows.0.iter().rev().filter_map(|r| if let Row::Handle(h) = r { Some(h) } else { None });
        handles.into_iter().find(|h| h.raw == raw as i64).unwrap()
    };
    let file = handle(FILE).handle_id;
    assert_eq!(handle(GROUP).parent_handle_id, Some(file));
    assert_eq!(handle(INNER).parent_handle_id, Some(handle(GROUP).handle_id));
    assert_eq!(handle(FILE + 9).parent_handle_id, Some(file));
    assert!([FILE, GROUP, INNER, FILE + 9].iter().all(|raw| handle(*raw).end_ns.is_some()));
}

#[test]
fn calls_are_collective_in_a_parallel_file_as_far_as_its_variables_are() {
    let collective = |open: &str, steps: &dyn Fn(&mut Calls)| {
        let mut calls = Calls::new();
        calls.define(open);
        steps(&mut calls);
        let put = calls.make("nc_put_var_double", on(FILE).id(0).arrays(&[(slot::SHAPE, &[1, 4])]));
        let rows = calls.finish();
        [2, put].map(|seq| rows.span(0, seq).flags & flag::COLLECTIVE != 0)
    };
    let access = |calls: &mut Calls| {
        calls.make("nc_var_par_access", on(FILE).id(0).len(1));
    };
    assert_eq!(collective("nc_create", &access), [false, false]);
    assert_eq!(collective("nc_create_par", &|_| {}), [true, false]);
    assert_eq!(collective("nc_create_par", &access), [true, true]);
    let filtered = |calls: &mut Calls| {
        calls.make("nc_def_var_deflate", on(FILE).id(0).len(1).got(4));
    };
    assert_eq!(collective("nc_create_par", &filtered), [true, true]);
}

#[test]
fn layout_and_filters_are_those_of_the_variable() {
    let mut calls = Calls::new();
    calls.define("nc_create");
    calls.make("nc_def_var_chunking", on(FILE).id(0).len(0).arrays(&[(slot::CHUNK, &eight(&[1, 4]))]));
    calls.make("nc_def_var_deflate", on(FILE).id(0).len(1).got(4));
    calls.make("nc_def_var_filter", on(FILE).id(0).len(32_015).ints(&[(slot::PARAMETERS, &[9])]));
    calls.make("nc_inq_var_filter_ids", on(FILE).id(0).ints(&[(slot::IDS, &[2, 1, 32_015, 3])]));
    let rows = calls.finish();
    let v = object(&rows, "/v").unwrap();
    assert_eq!(v.chunk, Some(vec![1, 4]));
    assert_eq!(v.filters.as_deref(), Some("shuffle,deflate(4),32015,fletcher32"));
}

#[test]
fn a_call_through_another_is_the_same_file_and_its_bytes_are_those_inside() {
    let mut calls = Calls::new();
    calls.inner("nc__create", on(FILE).len(0).name("a.nc"));
    let open = calls.outer("nc_create", on(FILE).len(0).name("a.nc"));
    calls.make("nc_def_dim", on(FILE).id(1).len(4));
    calls.make("nc_def_var", on(FILE).id(0).len(6).got(1).name("v").ints(&[(slot::IDS, &[1])]));
    calls.inner("nc_put_vara", on(FILE).id(0).arrays(&[(slot::START, &[0]), (slot::COUNT, &[3])]));
    calls.inner("nc_get_vara", on(FILE).id(0).arrays(&[(slot::START, &[0]), (slot::COUNT, &[4])]));
    let copy = calls.outer("nc_put_rec", on(FILE));
    calls.make("nc_rename_var", on(FILE).id(0).name("w"));
    calls.make("nc_close", on(FILE));
    let rows = calls.finish();
    assert_eq!(rows.span(0, open).handle_id, rows.span(0, open + 1).handle_id);
    assert_eq!(rows.0.iter().filter(|r| matches!(r, Row::Handle(h) if h.end_ns.is_none())).count(), 1);
    assert_eq!(bytes(rows.span(0, copy)), (Some(24), Some(24)));
    assert_eq!((rows.span(0, copy + 1).layer_top, asked(&rows, copy + 1)), (false, Some(24)));
    let v = rows.span(0, copy + 1).object_id;
    assert_eq!(object(&rows, "/w").map(|o| o.object_id), v);
}

/// A `PnetCDF` file with a variable of doubles over two dimensions of 10.
fn parallel() -> Calls {
    let mut calls = Calls::new();
    calls.make("ncmpi_create", on(0).len(0).name("a.nc"));
    calls.make("ncmpi_def_dim", on(0).id(0).len(10));
    calls.make("ncmpi_def_var", on(0).id(0).len(6).got(2).name("v").ints(&[(slot::IDS, &[0, 0])]));
    calls
}

#[test]
fn datatypes_have_sizes_or_none() {
    let mut calls = parallel();
    let counts: &[(u8, &[i64])] = &[(slot::START, &[0, 0]), (slot::COUNT, &[2, 5])];
    let at = |len: Option<i64>, inner: Option<u64>| {
        let with = With { len, ..on(0).arrays(counts) };
        inner.map_or(with.id(0), |inner| with.with_inner(0, inner))
    };
    let ways = [
        // Size times count; as many as there are elements; nothing; no datatype; the value of an inner function.
        (at(Some(40), None), Some(40)),
        (at(Some(-4), None), Some(40)),
        (at(Some(0), None), Some(0)),
        (at(None, None), Some(80)),
        (at(None, Some(2 | 4 << 16)), Some(40)),
    ];
    let seen: Vec<u32> = ways.iter().map(|(with, _)| calls.make("ncmpi_put_vara_all", *with)).collect();
    let by_filetype = calls.make("ncmpi_put_vard_all", on(0).id(0).got(7));
    let rows = calls.finish();
    for (seq, (_, wanted)) in seen.into_iter().zip(ways) {
        assert_eq!(asked(&rows, seq), wanted);
    }
    assert_eq!(asked(&rows, by_filetype), Some(56));
}

#[test]
fn lists_come_to_what_their_boxes_do() {
    let mut calls = parallel();
    let list = |id: i32, number: u64| With { off: Some(u64::from(id as u32) | number << 32), ..on(0) };
    // Two boxes of 2 x 5 and of 1 element.
    let arrays: &[(u8, &[i64])] = &[(slot::BOXES, &[4, 3, 11])];
    let two = calls.make("ncmpi_put_varn_float", list(0, 2).arrays(arrays));
    let none = calls.make("ncmpi_put_varn_float", list(0, 0));
    // One dimension could be read.
    let torn = calls.make("ncmpi_put_varn_float", list(0, 3).arrays(&[(slot::BOXES, &[4, 3])]));
    let packed = calls.make("ncmpi_put_varn_float", list(0, 5000).len(7));
    let other_file = calls.make("ncmpi_put_varn_float", list(9, 3).arrays(arrays));
    let known = calls.make("ncmpi_put_varn_float", list(9, 3).len(6).arrays(arrays));
    let mut several = on(0).ints(&[(slot::IDS, &[0, 0])]);
    several.arrays = &[(slot::SHAPE, &[2, 5]), (slot::SHAPE, &[3, 3])];
    let several = calls.make("ncmpi_mput_vara_short_all", several);
    let rows = calls.finish();
    let all = [two, none, torn, packed, other_file, known, several].map(|seq| asked(&rows, seq));
    assert_eq!(all, [Some(44), Some(0), None, Some(28), None, Some(24), Some(38)]);
    assert_eq!(unknown(&rows).len(), 2);
}

/// A write of ten floats that is only submitted.
fn submit(calls: &mut Calls, request: Option<i64>) -> u32 {
    let with = With { got: request, ..on(0).id(0).arrays(&[(slot::START, &[0, 0]), (slot::COUNT, &[2, 5])]) };
    calls.make("ncmpi_iput_vara_float", with)
}

#[test]
fn what_is_submitted_is_moved_by_the_wait() {
    let mut calls = parallel();
    let seen: Vec<u32> = [Some(0), Some(2), Some(4), None].map(|request| submit(&mut calls, request)).into();
    let empty = submit(&mut calls, Some(-1));
    let read = calls.make("ncmpi_iget_var1_double", on(0).id(0).got(1));
    // The second one failed; the third and the one without a name are left to the next.
    let wait = calls.make("ncmpi_wait_all", on(0).len(2).ints(&[(0, &[0, 2]), (1, &[0, -60])]));
    let all = calls.make("ncmpi_wait_all", on(0).len(-1));
    let rows = calls.finish();
    let of = |seq: u32| (rows.span(0, seq).bytes, rows.span(0, seq).errno);
    assert_eq!(
        seen.iter().map(|seq| of(*seq)).collect::<Vec<_>>(),
        [(Some(40), 0), (None, -1), (Some(40), 0), (Some(40), 0)]
    );
    assert_eq!((of(empty), rows.span(0, empty).async_id), ((Some(0), 0), None));
    assert_eq!(of(read), (Some(8), 0));
    let end = |seq: u32| rows.span(0, seq).start_ns + rows.span(0, seq).dur_ns;
    assert_eq!((end(seen[0]), end(seen[3]), end(read)), (end(wait), end(all), end(all)));
    assert_eq!(rows.span(0, wait).async_id, Some(rows.span(0, seen[0]).span_id));
    assert_eq!(rows.span(0, wait).bytes, None);
}

#[test]
fn a_close_cancels_what_is_left_and_closes_whatever_it_reports() {
    const NC_EPENDING: i32 = -236;
    const NC_EBADID: i32 = -33;
    const NC_EINDEP: i32 = -203;
    let mut calls = parallel();
    let left = submit(&mut calls, Some(0));
    calls.make("ncmpi_wait_all", on(0).len(-1).status(NC_EINDEP));
    let not = calls.make("ncmpi_close", on(0).status(NC_EBADID));
    let close = calls.make("ncmpi_close", on(0).status(NC_EPENDING));
    let rows = calls.finish();
    let span = rows.span(0, left);
    assert_eq!((span.bytes, span.errno, span.flags & flag::UNFINISHED), (None, -1, 0));
    let handle = rows.handle(rows.span(0, close).handle_id.unwrap());
    assert_eq!(handle.close_span_id, Some(rows.span(0, close).span_id));
    assert_eq!(rows.span(0, not).handle_id, Some(handle.handle_id));
    assert!(rows.span(0, close).layer == Layer::Pnetcdf && rows.span(0, close).flags & flag::COLLECTIVE != 0);
}
