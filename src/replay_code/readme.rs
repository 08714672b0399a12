//! README and Makefile of a generated program.

use std::fmt::Write as _;
use std::path::Path;

use crate::replay_code::names::comment;
use crate::replay_code::program::Program;
use crate::vocabulary::Layer;

/// Files that are listed.
const FILES: usize = 100;

/// The text of a program in one language.
pub struct Sources {
    /// The interface that it uses.
    pub interface: &'static str,
    /// What differs from the trace because of the language.
    pub notes: Vec<String>,
    /// Names and texts of its files; the calls are in the first one.
    pub texts: Vec<(&'static str, String)>,
}

/// How a language compiles it.
pub struct Build {
    /// Lines of the `Makefile`.
    pub variables: String,
    /// The files that it is made of, and how.
    pub needs: &'static str,
    pub compile: &'static str,
    /// What is there then.
    pub made: &'static str,
}

impl Build {
    pub fn makefile(&self, program: &Program) -> String {
        let Self { variables, needs, compile, made } = self;
        let ranks = program.ranks.len();
        format!(
            "# `make`, and `make run DIR=DIRECTORY`.\n{variables}MPIRUN = mpirun\nDIR = data\n\n\
             replay: {needs}\n\t{compile}\n\n\
             run: replay\n\tmkdir -p $(DIR)\n\t./replay -p $(DIR)\n\t$(MPIRUN) -n {ranks} ./replay $(DIR)\n\n\
             clean:\n\trm -f {made}\n\n.PHONY: run clean\n"
        )
    }
}

/// `fixed`: what was changed as findings advise.
pub fn readme(
    dir: &Path,
    program: &Program,
    sources: &Sources,
    (keep_time, fixed): (bool, Option<&[String]>),
) -> String {
    let mut text = format!(
        "# I/O of {}\n\nMade by `iotrace-bpf replay-code`. The program makes the calls of the trace at the interface {}, \
         with {} processes{}.\n\n```\nmake\n./replay -p DIRECTORY                  # makes the files that the calls need, \
         and removes those of an earlier run\nmpirun -n {} ./replay DIRECTORY         # the calls\n```\n\n",
        comment(&dir.display().to_string()),
        sources.interface,
        program.ranks.len(),
        if keep_time { " and the mean time between them" } else { ", one after the other" },
        program.ranks.len()
    );
    text.push_str("## Files\n\n| file below the directory | bytes before | in the trace |\n|---|---|---|\n");
    for file in program.files.iter().take(FILES) {
        let found = file.found.map_or_else(|| "made by the calls".into(), |bytes| bytes.to_string());
        _ = writeln!(text, "| `{}` | {found} | `{}` |", cell(&file.name), cell(&file.path));
    }
    if program.files.len() > FILES {
        let source = sources.texts.first().map_or("", |(name, _)| name);
        _ = writeln!(text, "\n{} more are in `{source}`.", program.files.len() - FILES);
    }
    text.push_str("\n## Calls\n\n| call | replayed |\n|---|---|\n");
    for (op, calls) in &program.calls {
        _ = writeln!(text, "| `{}` | {calls} |", cell(op));
    }
    if !program.left_out.is_empty() {
        text.push_str("\nNot replayed:\n\n| call | calls |\n|---|---|\n");
        for (op, calls) in &program.left_out {
            _ = writeln!(text, "| `{}` | {calls} |", cell(op));
        }
    }
    if let Some(fixed) = fixed {
        text.push_str("\n## What was changed for findings of the report\n\n");
        let none = ["Nothing: the report has no findings.".to_owned()];
        for line in if fixed.is_empty() { &none } else { fixed } {
            _ = writeln!(text, "- {line}");
        }
    }
    text.push_str("\n## What differs from the traced program\n\n");
    let always = [
        "Data: the trace has no contents; each rank writes its own letter, and files that were there before have zeros.",
        "Threads of a process make their calls one after the other, in the order in which they began.",
        "Barriers are where ranks made collective calls; other messages between ranks are not in the trace.",
    ];
    let notes = sources.notes.iter().chain(&program.notes).map(String::as_str);
    for line in always.into_iter().chain(of_layer(program.layer).iter().copied()).chain(notes) {
        _ = writeln!(text, "- {line}");
    }
    text
}

fn cell(text: &str) -> String {
    comment(text).replace('|', "\\|")
}

/// What the trace lacks of a layer, and what is taken instead.
fn of_layer(layer: Layer) -> &'static [&'static str] {
    match layer {
        Layer::Mpiio => &[
            "Elementary and file types of views: explicit offsets count bytes. Where displacements grow \
             with the rank, views have blocks of that size in turn, else all bytes.",
            "Types in memory: all data is `MPI_BYTE` in one piece. Seeks count from the beginning (`MPI_SEEK_SET`).",
        ],
        Layer::Netcdf | Layer::Pnetcdf => &[
            "Types in the file: elements of 4 and 8 bytes are `float` and `double`, of 1 and 2 integers or text.",
            "Selections: blocks of as many elements; strides, maps and lists of pieces are not in the trace.",
            "Dimensions: they have the lengths of the variables, other names (`dim_LENGTH`), and none is unlimited.",
            "Files that were there before have the variables that the program used, without attributes and data.",
        ],
        Layer::Hdf5 => &[
            "Types: elements of 4 and 8 bytes are `float` and `double`, of 1 and 2 integers, others opaque.",
            "Selections: blocks of as many elements, at the place that calls below show; strides and points are not in the trace.",
            "Property lists: chunks, shuffle, deflate, checksum and collective transfers are kept, other properties are not.",
            "Files that were there before have the objects that the program used, with no data written to them.",
        ],
        _ => &[
            "Pieces of vectors (`readv`, `writev`): they have one piece.",
            "Modes of new files (0644), of `fallocate` (0), advice (`POSIX_FADV_NORMAL`).",
        ],
    }
}
