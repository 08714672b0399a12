//! The source of a program: its tables, the calls of each group of ranks, and which ranks make which.

use std::fmt::Write as _;

use crate::replay_code::advise::SWITCHES;
use crate::replay_code::fortran::syntax::{Fortran, list, literal, number, wrapped};
use crate::replay_code::program::{FIRST_COMMUNICATOR, Object, Program};
use crate::replay_code::ranks::Group;
use crate::replay_code::writer::{Writer, name};

/// Numbers on a line of a table.
const LINE: usize = 8;

pub fn source(program: &Program, groups: &[Group], syntax: Fortran, keep_time: bool) -> String {
    let mut writer = Writer::new(syntax, program, keep_time);
    for group in groups {
        writer.function(group);
    }
    let mut out = String::from(
        "! Made by `iotrace-bpf replay-code`; README.md says from what, and how it is run.\n\
         module replay_calls\n  use replay_common\n  use replay_library\n  implicit none\n\n",
    );
    for (at, values) in writer.tables.iter().enumerate() {
        _ = writeln!(out, "  integer(int64) :: t{at}(0:{})", values.len().saturating_sub(1));
    }
    if !writer.tables.is_empty() {
        out.push('\n');
    }
    out.push_str("contains\n\n");
    describe(program, &writer.tables, &mut out);
    out.push_str(&writer.text);
    out.push_str("end module replay_calls\n\n");
    main_program(groups, &mut out);
    out
}

/// The subroutine that fills all tables.
fn describe(program: &Program, tables: &[Vec<i64>], out: &mut String) {
    out.push_str("  ! Files below the directory, hints, communicators, objects; values of ranks.\n");
    out.push_str("  subroutine describe()\n");
    let mut put = |statement: &str| out.push_str(&wrapped("    ", statement));
    put(&format!(
        "call make_tables(ranks={}, handles={}, bytes={}_int64, files={}, hints={}, sets={}, parts={}, \
         communicators={}, objects={})",
        program.ranks.len(),
        program.handles.max(1),
        program.buffer_bytes(),
        program.files.len(),
        program.hints.iter().map(Vec::len).sum::<usize>(),
        program.hints.len(),
        program.communicators.iter().map(Vec::len).sum::<usize>(),
        FIRST_COMMUNICATOR + program.communicators.len() as i64,
        program.objects.len(),
    ));
    for file in &program.files {
        let found = file.found.map_or_else(String::new, |bytes| format!(", found={bytes}_int64"));
        put(&format!("call add_file({}{found})", literal(&file.name)));
    }
    for (set, hints) in program.hints.iter().enumerate() {
        for (key, value) in hints {
            put(&format!("call add_hint({}, {}, {})", set + 1, literal(key), literal(value)));
        }
    }
    for (number, ranges) in (FIRST_COMMUNICATOR..).zip(&program.communicators) {
        for [first, last, distance] in ranges {
            put(&format!("call add_part({number}, [{first}, {last}, {distance}])"));
        }
    }
    for (number, object) in program.objects.iter().enumerate() {
        put(&object_of(object, program.text.contains(&(number as i64))));
    }
    for name in SWITCHES {
        if let Some(value) = program.switches.get(name) {
            put(&format!("{} = {}", name.to_lowercase(), number(*value)));
        }
    }
    for (at, values) in tables.iter().enumerate() {
        for (line, values) in values.chunks(LINE).enumerate() {
            let first = line * LINE;
            let numbers: Vec<String> = values.iter().map(|value| number(*value)).collect();
            put(&format!("t{at}({first}:{}) = {}", first + values.len() - 1, list("int64", &numbers)));
        }
    }
    out.push_str("  end subroutine describe\n\n");
}

/// What an object is, without what it is not.
fn object_of(object: &Object, is_text: bool) -> String {
    let lengths = |values: &[i64]| list("int64", &values.iter().rev().map(|value| number(*value)).collect::<Vec<_>>());
    let mut text = format!(
        "call add_object({}, {}, bytes={}, dims={}",
        object.file,
        literal(&object.path),
        object.size,
        lengths(&object.dims)
    );
    // As in C, a length of 0 is no chunk.
    if object.chunk.first().is_some_and(|length| *length != 0) {
        _ = write!(text, ", chunk={}", lengths(&object.chunk));
    }
    if let Some(attribute) = &object.attribute {
        _ = write!(text, ", attribute={}", literal(attribute));
    }
    if let Some(level) = object.deflate() {
        _ = write!(text, ", deflate={level}");
    }
    for (name, is) in [
        ("group", object.is_group),
        ("shuffle", object.has_shuffle()),
        ("checksum", object.has_checksum()),
        ("text", is_text),
    ] {
        if is {
            _ = write!(text, ", {name}=.true.");
        }
    }
    text + ")"
}

fn main_program(groups: &[Group], out: &mut String) {
    out.push_str(
        "program replay\n  use replay_calls\n  implicit none\n\n  call begin()\n  call describe()\n  \
         call open_library()\n  if (prepares) then\n    if (rank == 0) call prepare(make_found)\n  else\n    \
         call ready()\n",
    );
    if let [only] = groups {
        _ = writeln!(out, "    member = rank\n    call {}()", name(only));
    } else {
        out.push_str("    select case (rank)\n");
        for group in groups {
            for (member, rank) in group.ranks.iter().enumerate() {
                _ = writeln!(out, "    case ({rank})\n      member = {member}\n      call {}()", name(group));
            }
        }
        out.push_str("    end select\n");
    }
    out.push_str("  end if\n  call close_library()\n  call finish()\nend program replay\n");
}
