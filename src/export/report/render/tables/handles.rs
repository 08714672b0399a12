//! How files were opened: handles below handles, library by library.

use crate::export::report::render::table::{Cell, Column, Table, Value};
use crate::export::report::render::tables::files::path;
use crate::export::report::{FileRow, HandleNode, Report};

/// Lines shown.
const LINES: usize = 40;

pub fn table(report: &Report) -> Table<'_> {
    let mut rows = Vec::new();
    for file in &report.files {
        // Every system call on a file needs a descriptor: only others are shown.
        for handle in file.handles.iter().filter(|h| h.layer != "syscall" || !h.children.is_empty()) {
            add(file, handle, 0, &mut rows);
        }
    }
    let head =
        vec![Column::number("opens", "opens", 0), Column::name("handle", "handle", 0), Column::path("path", "file")];
    Table { head, rows: rows.into(), most: LINES, ..Table::default() }
}

fn add(file: &FileRow, handle: &HandleNode, depth: usize, rows: &mut Vec<Vec<Cell>>) {
    let what = match (&handle.object, handle.layer) {
        (Some(object), layer) => format!("{layer} {object}"),
        (None, "syscall") => "syscall fd".to_owned(),
        (None, "stdio") => "stdio FILE".to_owned(),
        (None, layer) => layer.to_owned(),
    };
    let indent = if depth > 0 { format!("{}> ", "  ".repeat(depth)) } else { String::new() };
    rows.push(vec![Value::Count(handle.count).into(), Cell::name(indent.clone() + &what), path(file)]);
    handle.children.iter().for_each(|child| add(file, child, depth + 1, rows));
    if handle.more > 0 {
        rows.push(vec![Value::Empty.into(), Cell::name(format!("{indent}  > {} more", handle.more)), path(file)]);
    }
}
