//! The files with the most time, libraries last.

use std::collections::HashMap;

use crate::base::text::time;
use crate::export::report::render::mark;
use crate::export::report::render::style::Tone;
use crate::export::report::render::table::{Cell, Column, Rows, Table, Value};
use crate::export::report::render::tables::on_node;
use crate::export::report::{Bytes, FileLayer, FileRow, Report};
use crate::vocabulary::{KINDS, Layer};

/// Files shown.
const FILES: usize = 10;
/// What calls of each kind are called, with how early the column goes where there is no room.
const OF_KINDS: [(&str, u8); 5] = [("open", 6), ("read", 5), ("write", 5), ("meta", 7), ("sync", 4)];
const TITLES: [&str; 5] = ["opens", "reads", "writes", "metas", "syncs"];

/// Files of one path, of which all but one were removed and made again.
struct OfPath<'a> {
    first: &'a FileRow,
    files: i64,
    calls: i64,
    time_ns: i64,
    read: Bytes,
    written: Bytes,
    errors: i64,
    kinds: Vec<i64>,
    layers: Vec<&'static str>,
    complete: bool,
}

pub fn title(report: &Report) -> String {
    let mut title = format!("Files: {}, by time in system calls", report.header.files);
    if let Some(ns) = report.header.unseen_file_ns {
        title += &format!("; too many to keep all apart: one with up to {} may be missing", time(ns));
    }
    match report.library_files.files {
        0 => title,
        n => {
            let took = mark(report.complete, time(report.library_files.time_ns));
            format!("{title}; libraries, /proc and /sys last ({n} files, {took} in all)")
        }
    }
}

/// The layer whose calls count: system calls, and where there are none the one with the most time.
fn counted(file: &FileRow) -> Option<&FileLayer> {
    let syscalls = file.layers.iter().find(|layer| layer.layer == Layer::Syscall.name());
    syscalls.or_else(|| file.layers.iter().max_by_key(|layer| layer.time_ns))
}

fn of_paths(files: &[FileRow]) -> Vec<OfPath<'_>> {
    let mut known = HashMap::new();
    let mut all = Vec::<OfPath>::new();
    for file in files {
        let Some(layer) = counted(file) else { continue };
        // Without a path each is its own.
        let nameless = file.path.is_none().then_some(file.file_id);
        let key = (file.is_library(), file.host.as_deref(), file.path.as_deref(), nameless);
        let at = *known.entry(key).or_insert(all.len());
        if at == all.len() {
            all.push(OfPath {
                first: file,
                files: 0,
                calls: 0,
                time_ns: 0,
                read: Bytes::default(),
                written: Bytes::default(),
                errors: 0,
                kinds: vec![0; KINDS.len()],
                layers: Vec::new(),
                complete: true,
            });
        }
        let Some(of) = all.get_mut(at) else { continue };
        let add = |to: &mut i64, n: i64| *to = to.saturating_add(n);
        add(&mut of.files, 1);
        add(&mut of.calls, layer.calls);
        add(&mut of.time_ns, file.time_ns);
        add(&mut of.errors, layer.errors);
        of.read.merge(layer.read);
        of.written.merge(layer.written);
        for (to, kind) in of.kinds.iter_mut().zip(KINDS) {
            add(to, layer.kinds.get(kind.name()).copied().unwrap_or(0));
        }
        for layer in &file.layers {
            if !of.layers.contains(&layer.layer) {
                of.layers.push(layer.layer);
            }
        }
        of.complete &= file.complete && layer.complete;
    }
    all.sort_by_key(|of| (of.first.is_library(), std::cmp::Reverse(of.time_ns)));
    all
}

pub fn table(report: &Report) -> Table<'_> {
    let files = of_paths(&report.files);
    let several = files.iter().any(|of| of.files > 1);
    let beside = files.iter().any(|of| of.layers != [Layer::Syscall.name()]);
    let mut head = vec![
        Column::number("time_ns", "time", 0),
        Column::number("calls", "calls", 0),
        Column::number("read", "read", 0),
        Column::number("written", "written", 0),
        Column::number("errors", "errors", 3).tone(Tone::Bad),
    ];
    let kinds = OF_KINDS.map(|(kind, _)| KINDS.iter().position(|known| known.name() == kind));
    head.extend(TITLES.iter().zip(OF_KINDS).map(|(title, (_, drop))| Column::number(title, title, drop)));
    head.extend(several.then_some(Column::number("files", "files", 2)));
    head.extend(beside.then_some(Column::name("layers", "layers", 1)));
    head.push(Column::path("path", "file"));
    let (count, last) = (files.len(), files.iter().filter(|of| of.first.is_library()).count());
    let row = move |at: usize| {
        let of = &files[at];
        let count = |n: i64| Cell::from(Value::Count(n)).sure(of.complete);
        let mut cells = vec![
            Cell::from(Value::Ns(of.time_ns)).sure(of.complete),
            count(of.calls),
            Cell::from(of.read).sure(of.complete),
            Cell::from(of.written).sure(of.complete),
            count(of.errors),
        ];
        cells.extend(kinds.iter().map(|at| count(at.and_then(|at| of.kinds.get(at)).copied().unwrap_or(0))));
        cells.extend(several.then_some(Value::Count(of.files).into()));
        cells.extend(beside.then(|| Cell::from(Value::Name(of.layers.join(",")))));
        cells.push(path(of.first));
        cells
    };
    Table { rows: Rows::of(count, row), head, last, most: FILES, ..Table::default() }
}

/// Its name, with its node where there are several.
pub fn path(file: &FileRow) -> Cell {
    let path = file.path.clone().unwrap_or_else(|| format!("file {} (name not recorded)", file.file_id));
    Value::Path(on_node(file.host.as_deref(), &path)).into()
}
