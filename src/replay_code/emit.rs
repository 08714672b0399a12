//! Programs in C: the groups of ranks as text, with what they need in front.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use nix::libc;

use crate::replay_code::advise::SWITCHES;
use crate::replay_code::calls::{Arg, Row};
use crate::replay_code::names::literal;
use crate::replay_code::program::{FIRST_COMMUNICATOR, Program};
use crate::replay_code::rank::WHENCE;
use crate::replay_code::ranks::{Expr, Group, Value};
use crate::replay_code::readme::{Build, Sources};
use crate::replay_code::writer::{Syntax, Writer, name};
use crate::vocabulary::Layer;

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
struct Interface {
    name: &'static str,
    headers: &'static [&'static str],
    /// Packages of pkg-config.
    packages: &'static [&'static str],
    /// The type of starts and counts of selections.
    index: &'static str,
}

/// The program in C.
///
/// # Errors
/// When there is no generator for its layer.
pub fn sources(program: &Program, groups: &[Group], keep_time: bool) -> anyhow::Result<Sources> {
    let interface = interface(program.layer)?;
    let texts = vec![
        ("replay.c", source(program, groups, &interface, keep_time)),
        ("replay.h", header(&interface)),
        ("Makefile", build(&interface).makefile(program)),
    ];
    Ok(Sources { interface: interface.name, notes: Vec::new(), texts })
}

fn interface(layer: Layer) -> anyhow::Result<Interface> {
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

fn build(interface: &Interface) -> Build {
    let (mut flags, mut libraries) = (String::new(), String::new());
    if !interface.packages.is_empty() {
        let packages = interface.packages.join(" ");
        // Debian's own flags of NetCDF lead to the headers of the library without MPI.
        flags = format!(
            " -I$(shell pkg-config --variable=prefix {packages})/include $(shell pkg-config --cflags {packages})"
        );
        libraries = format!(" $(shell pkg-config --libs {packages})");
    }
    Build {
        variables: format!("CC = mpicc\nCFLAGS = -std=gnu11 -O2 -Wall -Wextra -Werror{flags}\nLDLIBS ={libraries}\n"),
        needs: "replay.c replay.h",
        compile: "$(CC) $(CFLAGS) -o $@ replay.c $(LDLIBS)",
        made: "replay",
    }
}

/// The functions that every program includes.
fn header(interface: &Interface) -> String {
    let mut text = COMMON.to_owned();
    for header in interface.headers {
        text.push('\n');
        text.push_str(header);
    }
    text
}

/// The program itself.
fn source(program: &Program, groups: &[Group], interface: &Interface, keep_time: bool) -> String {
    let mut writer = Writer::new(C(interface.index), program, keep_time);
    for group in groups {
        writer.function(group);
    }
    let mut out =
        String::from("/* Made by `iotrace-bpf replay-code`; README.md says from what, and how it is run. */\n");
    out.push_str("#define _GNU_SOURCE\n");
    for (name, number) in [
        ("RANKS", program.ranks.len() as i64),
        ("HANDLES", program.handles.max(1)),
        ("REQUESTS", program.requests.max(1)),
        ("FILE_COUNT", program.files.len() as i64),
        ("HINT_SETS", program.hints.len() as i64),
        ("BUFFER", program.buffer_bytes()),
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
            i32::from(object.has_shuffle()),
            object.deflate().unwrap_or(-1),
            i32::from(object.has_checksum()),
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

/// C, in which starts and counts of selections are of this type.
struct C(&'static str);

impl Syntax for C {
    fn statements(&self, row: &Row, _: &str) -> &'static str {
        row.c
    }

    fn word(&self, _turn: &str, _: &str, args: &[Expr]) -> String {
        number(args.get(1).map_or(0, turn))
    }

    fn argument(&self, kind: Arg, arg: &Expr, text: String) -> String {
        let (Value::Same(value), []) = (&arg.base, arg.steps.as_slice()) else { return text };
        match kind {
            Arg::OpenFlags => flags(*value, OPEN_FLAGS, &["O_RDONLY", "O_WRONLY", "O_RDWR"], 3),
            Arg::Amode => flags(*value, AMODES, &["0"], 0),
            Arg::Whence => WHENCE.get(*value as usize).map_or(text, |name| (*name).into()),
            _ => text,
        }
    }

    /// C has no lists without a value.
    fn list(&self, values: Vec<String>) -> String {
        let values = if values.is_empty() { "0".into() } else { values.join(", ") };
        format!("((const {}[]){{{values}}})", self.0)
    }

    fn first(&self) -> i64 {
        0
    }

    fn number(&self, value: i64) -> String {
        number(value)
    }

    fn table(&self, number: usize) -> String {
        format!("T{number}[member]")
    }

    fn function(&self, name: &str, ranks: &str, _: usize) -> [String; 2] {
        [format!("/* Of rank {ranks}. */\nstatic void {name}(void)\n{{\n"), "}\n\n".into()]
    }

    fn repeated(&self, variable: &str, count: &str) -> [String; 2] {
        [format!("for (long long {variable} = 0; {variable} < {count}; {variable}++) {{"), "}".into()]
    }

    fn think(&self, ns: i64) -> String {
        format!("think({ns});")
    }

    fn line(&self, text: &str, indent: usize) -> String {
        format!("{}{text}\n", "\t".repeat(indent))
    }
}

/// By how much a displacement grows from rank to rank.
const fn turn(displacement: &Expr) -> i64 {
    match displacement.base {
        Value::Affine { step, .. } if step > 0 => step,
        _ => 0,
    }
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
