//! The generated program as text: C of the groups of ranks, with what they need in front.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use nix::libc;

use crate::replay_code::advise::SWITCHES;
use crate::replay_code::calls::{Arg, parts};
use crate::replay_code::names::literal;
use crate::replay_code::program::{FIRST_COMMUNICATOR, Program};
use crate::replay_code::rank::WHENCE;
use crate::replay_code::ranks::{Expr, Group, Step, Value};
use crate::vocabulary::Layer;

/// Think time that is worth a call.
const SHORTEST_THINK_NS: i64 = 1000;
/// Page size, to which a buffer for `O_DIRECT` is aligned.
const PAGE: i64 = 4096;

const COMMON: &str = include_str!("c/common.h");
const POSIX: &str = include_str!("c/posix.h");
const MPI: &str = include_str!("c/mpi.h");
const ZEROS: &str = include_str!("c/zeros.h");
const HDF5: &str = include_str!("c/hdf5.h");
const NETCDF: &str = include_str!("c/netcdf.h");
const PNETCDF: &str = include_str!("c/pnetcdf.h");
const NC: &str = include_str!("c/nc.h");
const MPIIO: &str = include_str!("c/mpiio.h");

/// How a layer is compiled, and what its programs have in common.
pub struct Interface {
    pub name: &'static str,
    pub headers: &'static [&'static str],
    /// Packages of pkg-config; of several that are separated by `|` the first that there is.
    pub packages: &'static [&'static str],
    /// The type of starts and counts of selections.
    pub index: &'static str,
}

/// # Errors
/// When there is no generator for the layer.
pub fn interface(layer: Layer) -> anyhow::Result<Interface> {
    Ok(match layer {
        Layer::Syscall => Interface { name: "POSIX", headers: &[ZEROS, POSIX], packages: &[], index: "" },
        Layer::Mpiio => Interface { name: "MPI-IO", headers: &[ZEROS, MPI, MPIIO], packages: &[], index: "" },
        Layer::Hdf5 => Interface { name: "HDF5", headers: &[MPI, HDF5], packages: &["hdf5-openmpi"], index: "hsize_t" },
        Layer::Netcdf => {
            Interface { name: "NetCDF", headers: &[MPI, NETCDF, NC], packages: &["netcdf-mpi"], index: "size_t" }
        }
        Layer::Pnetcdf => {
            Interface { name: "PnetCDF", headers: &[MPI, PNETCDF, NC], packages: &["pnetcdf"], index: "MPI_Offset" }
        }
        other => anyhow::bail!("programs of layer {other} cannot be generated; take another --layer"),
    })
}

/// The functions that every program includes.
pub fn header(interface: &Interface) -> String {
    let mut text = COMMON.to_owned();
    for header in interface.headers {
        text.push('\n');
        text.push_str(header);
    }
    text
}

/// The program itself.
pub fn source(program: &Program, groups: &[Group], interface: &Interface, keep_time: bool) -> String {
    let mut writer = Writer { keep_time, program, index: interface.index, tables: Vec::new(), text: String::new() };
    for group in groups {
        writer.function(group);
    }
    let mut out =
        String::from("/* Made by `iotrace-bpf replay-code`; README.md says from what, and how it is run. */\n");
    out.push_str("#define _GNU_SOURCE\n");
    let buffer = program.buffer.max(1).saturating_add(PAGE - 1) / PAGE * PAGE;
    for (name, number) in [
        ("RANKS", program.ranks.len() as i64),
        ("HANDLES", program.handles.max(1)),
        ("REQUESTS", program.requests.max(1)),
        ("FILE_COUNT", program.files.len() as i64),
        ("HINT_SETS", program.hints.len() as i64),
        ("BUFFER", buffer),
    ] {
        _ = writeln!(out, "#define {name} {number}");
    }
    let data = if matches!(program.layer, Layer::Syscall | Layer::Mpiio) { "('a' + this_rank % 26)" } else { "0" };
    _ = writeln!(out, "#define DATA {data}");
    out.push_str("\n/* The files, below the directory. */\nstatic const char *const FILES[] = {\n");
    let found = program.files.iter().map(|file| file.found.unwrap_or(-1));
    for file in &program.files {
        _ = writeln!(out, "\t{},", literal(&file.name));
    }
    out.push_str("};\n\n/* Bytes of those that were there before; -1: the program makes it. */\n");
    _ = writeln!(out, "static const long long FOUND[] = {};\n", numbers(found));
    if program.layer != Layer::Syscall {
        out.push_str(
            "#include <stddef.h>\n\nstruct hint {\n\tlong long set;\n\tconst char *key, *value;\n};\n\nstatic const struct hint HINTS[] = {\n",
        );
        for (set, hints) in program.hints.iter().enumerate() {
            for (key, value) in hints {
                _ = writeln!(out, "\t{{{}, {}, {}}},", set + 1, literal(key), literal(value));
            }
        }
        out.push_str("\t{0, NULL, NULL},\n};\n\n");
        communicators(program, &mut out);
    }
    if matches!(program.layer, Layer::Hdf5 | Layer::Netcdf | Layer::Pnetcdf) {
        objects(program, &mut out);
    }
    out.push_str("#include \"replay.h\"\n\n");
    for (number, values) in writer.tables.iter().enumerate() {
        _ = writeln!(out, "static const long long T{number}[] = {};", numbers(values.iter().copied()));
    }
    if !writer.tables.is_empty() {
        out.push('\n');
    }
    out.push_str(&writer.text);
    out.push_str(&main_function(groups));
    out
}

/// Communicators of a part of the ranks, by number.
fn communicators(program: &Program, out: &mut String) {
    _ = writeln!(out, "#define COMMUNICATORS {}\n", FIRST_COMMUNICATOR + program.communicators.len() as i64);
    out.push_str("/* Their ranks: first, last and distance. */\n");
    out.push_str("static const struct {\n\tlong long communicator;\n\tint range[3];\n} PARTS[] = {\n");
    for (number, ranges) in (FIRST_COMMUNICATOR..).zip(&program.communicators) {
        for range in ranges {
            _ = writeln!(out, "\t{{{number}, {}}},", numbers(range.iter().copied()));
        }
    }
    out.push_str("\t{-1, {0, 0, 1}},\n};\n\n");
}

/// The objects of the files, as a table.
fn objects(program: &Program, out: &mut String) {
    for name in SWITCHES {
        _ = writeln!(out, "#define {name} {}", program.switches.get(name).unwrap_or(&0));
    }
    let most = program.objects.iter().map(|object| object.dims.len()).max().unwrap_or(0).max(1);
    _ = writeln!(out, "#define OBJECT_COUNT {}\n", program.objects.len());
    _ = writeln!(
        out,
        "/* Datasets, variables, groups, and attributes of these. */\nstruct object {{\n\tlong long file;\n\
         \tconst char *path, *attribute;\n\tint group, size, dims;\n\tlong long dim[{most}], chunk[{most}];\n\
         \tint shuffle, deflate, checksum, text;\n}};\n\nstatic const struct object OBJECTS[] = {{"
    );
    for (number, object) in program.objects.iter().enumerate() {
        let list = |values: &[i64]| if values.is_empty() { "{0}".into() } else { numbers(values.iter().copied()) };
        let deflate = object.filters.split_once("deflate(").and_then(|(_, rest)| rest.split_once(')')?.0.parse().ok());
        _ = writeln!(
            out,
            "\t{{{}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}}},",
            object.file,
            literal(&object.path),
            object.attribute.as_deref().map_or_else(|| "NULL".into(), literal),
            i32::from(object.is_group),
            object.size,
            object.dims.len(),
            list(&object.dims),
            list(&object.chunk),
            i32::from(object.filters.contains("shuffle")),
            deflate.unwrap_or(-1_i64),
            i32::from(object.filters.contains("fletcher32")),
            i32::from(program.text.contains(&(number as i64))),
        );
    }
    if program.objects.is_empty() {
        out.push_str("\t{-1, NULL, NULL, 0, 0, 0, {0}, {0}, 0, 0, 0, 0},\n");
    }
    out.push_str("};\n\n");
}

fn numbers(values: impl Iterator<Item = i64>) -> String {
    let texts: Vec<String> = values.map(number).collect();
    let lines: Vec<String> = texts.chunks(12).map(|line| line.join(", ")).collect();
    format!("{{{}}}", lines.join(",\n\t"))
}

fn main_function(groups: &[Group]) -> String {
    let mut text = String::from("int main(int argc, char **argv)\n{\n\tif (begin(&argc, &argv)) {\n");
    if let [only] = groups {
        text.push_str("\t\tmember = rank;\n");
        _ = writeln!(text, "\t\t{}();", name(only));
    } else {
        text.push_str("\t\tswitch (rank) {\n");
        for group in groups {
            for (member, rank) in group.ranks.iter().enumerate() {
                _ = writeln!(
                    text,
                    "\t\tcase {rank}:\n\t\t\tmember = {member};\n\t\t\t{}();\n\t\t\tbreak;",
                    name(group)
                );
            }
        }
        text.push_str("\t\t}\n");
    }
    text.push_str("\t\tfinish();\n\t}\n\tMPI_Finalize();\n\treturn 0;\n}\n");
    text
}

fn name(group: &Group) -> String {
    let first = group.ranks.first().copied().unwrap_or(0);
    if group.ranks.len() == 1 { format!("rank_{first}") } else { format!("ranks_from_{first}") }
}

struct Writer<'a> {
    keep_time: bool,
    program: &'a Program,
    /// The type of starts and counts.
    index: &'static str,
    /// Values by position of the rank.
    tables: Vec<Vec<i64>>,
    text: String,
}

impl Writer<'_> {
    fn function(&mut self, group: &Group) {
        let ranks: Vec<String> = group.ranks.iter().map(i64::to_string).collect();
        let comment = if ranks.len() > 16 { format!("{} ranks", ranks.len()) } else { ranks.join(", ") };
        _ = writeln!(self.text, "/* Of rank {comment}. */\nstatic void {}(void)\n{{", name(group));
        self.steps(&group.steps, 1);
        self.text.push_str("}\n\n");
    }

    fn steps(&mut self, steps: &[Step], indent: usize) {
        let tabs = "\t".repeat(indent);
        for step in steps {
            match step {
                Step::Call { function, args, think_ns } => {
                    if self.keep_time && *think_ns >= SHORTEST_THINK_NS {
                        _ = writeln!(self.text, "{tabs}think({think_ns});");
                    }
                    let statement = self.statement(*function, args);
                    _ = writeln!(self.text, "{tabs}{statement}");
                }
                Step::Loop { depth, count, body } => {
                    let (i, count) = (variable(*depth), self.value(count));
                    _ = writeln!(self.text, "{tabs}for (long long {i} = 0; {i} < {count}; {i}++) {{");
                    self.steps(body, indent + 1);
                    _ = writeln!(self.text, "{tabs}}}");
                }
            }
        }
    }

    fn statement(&mut self, function: usize, args: &[Expr]) -> String {
        let Some((row, op)) = parts(function) else { return String::new() };
        let op = self.program.ops.get(op).map_or("", String::as_str);
        let mut out = String::new();
        let mut rest = row.c;
        // `{` is also in C: a name in braces is one of ours.
        while let Some((before, after)) = rest.split_once('{') {
            let (name, behind) = after.split_once('}').unwrap_or((after, ""));
            out.push_str(before);
            out.push_str(&self.value_of(name, op, row.args, args));
            rest = behind;
        }
        out + rest
    }

    /// What a name in braces is.
    fn value_of(&mut self, name: &str, op: &str, kinds: &[Arg], args: &[Expr]) -> String {
        let selection = args.get(kinds.len().saturating_sub(1)..).unwrap_or_default();
        let (start, count) = selection.split_at(selection.len() / 2);
        match name {
            "op" => op.to_owned(),
            "start" => self.list(start),
            "count" => self.list(count),
            "turn" => number(args.get(1).map_or(0, turn)),
            _ => {
                let at = name.parse::<usize>().ok();
                let found = at.and_then(|at| Some((*kinds.get(at)?, args.get(at)?)));
                found.map_or_else(String::new, |(kind, arg)| self.argument(kind, arg))
            }
        }
    }

    fn argument(&mut self, kind: Arg, arg: &Expr) -> String {
        if let (Value::Same(value), []) = (&arg.base, arg.steps.as_slice()) {
            match kind {
                Arg::OpenFlags => return flags(*value, OPEN_FLAGS, &["O_RDONLY", "O_WRONLY", "O_RDWR"], 3),
                Arg::Amode => return flags(*value, AMODES, &["0"], 0),
                Arg::Whence => {
                    return WHENCE.get(*value as usize).map_or_else(|| number(*value), |name| (*name).into());
                }
                _ => {}
            }
        }
        self.expr(arg)
    }

    /// Start or count: C has no lists without a value.
    fn list(&mut self, values: &[Expr]) -> String {
        let values: Vec<String> = values.iter().map(|value| self.expr(value)).collect();
        let values = if values.is_empty() { "0".into() } else { values.join(", ") };
        format!("((const {}[]){{{values}}})", self.index)
    }

    fn expr(&mut self, expr: &Expr) -> String {
        let mut parts = Vec::new();
        if expr.base != Value::Same(0) || expr.steps.is_empty() {
            parts.push(self.value(&expr.base));
        }
        for (depth, step) in &expr.steps {
            let i = variable(*depth);
            parts.push(match step {
                Value::Same(1) => i,
                Value::Affine { .. } => format!("({}) * {i}", self.value(step)),
                _ => format!("{} * {i}", self.value(step)),
            });
        }
        parts.join(" + ").replace("+ -", "- ")
    }

    fn value(&mut self, value: &Value) -> String {
        match value {
            Value::Same(value) => number(*value),
            Value::Affine { base: 0, step: 1 } => "rank".into(),
            Value::Affine { base: 0, step } => format!("{} * rank", number(*step)),
            Value::Affine { base, step: 1 } => format!("{} + rank", number(*base)),
            Value::Affine { base, step } => {
                format!("{} + {} * rank", number(*base), number(*step)).replace("+ -", "- ")
            }
            Value::Table(values) => {
                let at = self.tables.iter().position(|table| table == values).unwrap_or_else(|| {
                    self.tables.push(values.clone());
                    self.tables.len() - 1
                });
                format!("T{at}[member]")
            }
        }
    }
}

/// By how much a displacement grows from rank to rank.
const fn turn(displacement: &Expr) -> i64 {
    match displacement.base {
        Value::Affine { step, .. } if step > 0 => step,
        _ => 0,
    }
}

/// The variable of the loop at a depth.
fn variable(depth: usize) -> String {
    ["i", "j", "k", "l", "m", "n"].get(depth).map_or_else(|| format!("i{depth}"), |name| (*name).into())
}

fn number(value: i64) -> String {
    // There is no literal of the smallest number in C.
    if value == i64::MIN { "(-9223372036854775807 - 1)".into() } else { value.to_string() }
}

const OPEN_FLAGS: &[(i64, &str)] = &[
    (libc::O_CREAT as i64, "O_CREAT"),
    (libc::O_EXCL as i64, "O_EXCL"),
    (libc::O_TRUNC as i64, "O_TRUNC"),
    (libc::O_APPEND as i64, "O_APPEND"),
    (libc::O_NONBLOCK as i64, "O_NONBLOCK"),
    (libc::O_SYNC as i64, "O_SYNC"),
    (libc::O_DSYNC as i64, "O_DSYNC"),
    (libc::O_DIRECT as i64, "O_DIRECT"),
    (libc::O_NOFOLLOW as i64, "O_NOFOLLOW"),
    (libc::O_NOATIME as i64, "O_NOATIME"),
    (libc::O_CLOEXEC as i64, "O_CLOEXEC"),
];

/// Modes of MPI-IO, of which Open MPI and MPICH have the same numbers.
const AMODES: &[(i64, &str)] = &[
    (1, "MPI_MODE_CREATE"),
    (2, "MPI_MODE_RDONLY"),
    (4, "MPI_MODE_WRONLY"),
    (8, "MPI_MODE_RDWR"),
    (16, "MPI_MODE_DELETE_ON_CLOSE"),
    (32, "MPI_MODE_UNIQUE_OPEN"),
    (64, "MPI_MODE_EXCL"),
    (128, "MPI_MODE_APPEND"),
    (256, "MPI_MODE_SEQUENTIAL"),
];

/// A number as the names of its bits; those without a name are left out.
fn flags(value: i64, names: &[(i64, &str)], access: &[&str], mask: i64) -> String {
    let mut parts = BTreeSet::new();
    let mut left = value & !mask;
    for (at, (bits, name)) in names.iter().enumerate() {
        if left & bits == *bits {
            left &= !bits;
            parts.insert((at, *name));
        }
    }
    let access = access.get((value & mask) as usize).filter(|name| **name != "0" || parts.is_empty());
    access.copied().into_iter().chain(parts.into_iter().map(|(_, name)| name)).collect::<Vec<_>>().join(" | ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn flags_have_names() {
        let open = |value: i32| flags(value.into(), OPEN_FLAGS, &["O_RDONLY", "O_WRONLY", "O_RDWR"], 3);
        assert_eq!(open(0), "O_RDONLY");
        assert_eq!(open(libc::O_RDWR | libc::O_CREAT | libc::O_SYNC), "O_RDWR | O_CREAT | O_SYNC");
        assert_eq!(flags(9, AMODES, &["0"], 0), "MPI_MODE_CREATE | MPI_MODE_RDWR");
    }
}
