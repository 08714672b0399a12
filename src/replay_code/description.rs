//! A program from a description in place of a trace: dimensions, decomposition, pattern, interface.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use anyhow::{Context as _, Result, ensure};
use nix::libc;
use serde::Deserialize;

use crate::replay_code::calls::{Arg, function, named, parts};
use crate::replay_code::described::has_objects;
use crate::replay_code::layer;
use crate::replay_code::loops::Folder;
use crate::replay_code::names::below;
use crate::replay_code::program::{Call, File, Node, Object, Program, Think};
use crate::replay_code::select::total;
use crate::vocabulary::Layer;

/// Bytes of a description.
const LONGEST: u64 = 1 << 20;
/// Transfers of all ranks together.
const CALLS_MAX: i64 = 1 << 24;
const RANKS_MAX: i64 = 1 << 20;
/// Variable of the file; those of datasets follow.
const FILE: i64 = 0;

#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
struct Description {
    /// `posix`, `mpiio`, `hdf5`, `pnetcdf` or `netcdf`.
    interface: String,
    ranks: i64,
    file: String,
    variable: Vec<Variable>,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
struct Variable {
    name: String,
    dims: Vec<i64>,
    /// Bytes of an element.
    #[serde(default = "eight")]
    element: i64,
    /// Parts of each dimension: as many parts as ranks.
    decomposition: Vec<i64>,
    /// What happens to it, in order.
    #[serde(default = "write")]
    pattern: Vec<Pattern>,
    #[serde(default)]
    collective: bool,
    /// How often all of it is transferred.
    #[serde(default = "one")]
    steps: i64,
    #[serde(default)]
    chunk: Vec<i64>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Pattern {
    Write,
    Read,
}

const fn eight() -> i64 {
    8
}

const fn one() -> i64 {
    1
}

fn write() -> Vec<Pattern> {
    vec![Pattern::Write]
}

/// The functions of an interface.
struct Functions {
    create: &'static str,
    /// How it is created: `H5F_ACC_TRUNC`, `NC_64BIT_DATA`, `NC_NETCDF4`.
    mode: i64,
    define: Option<&'static str>,
    end_define: Option<&'static str>,
    /// Read and write: independent, and collective.
    read: [&'static str; 2],
    write: [&'static str; 2],
    close_variable: Option<&'static str>,
    close: &'static str,
}

const fn functions(layer: Layer) -> Functions {
    let plain = Functions {
        create: "openat",
        mode: 0,
        define: None,
        end_define: None,
        read: ["pread64"; 2],
        write: ["pwrite64"; 2],
        close_variable: None,
        close: "close",
    };
    match layer {
        Layer::Mpiio => Functions {
            create: "MPI_File_open",
            read: ["MPI_File_read_at", "MPI_File_read_at_all"],
            write: ["MPI_File_write_at", "MPI_File_write_at_all"],
            close: "MPI_File_close",
            ..plain
        },
        Layer::Hdf5 => Functions {
            create: "H5Fcreate",
            mode: 2,
            define: Some("H5Dcreate2"),
            read: ["H5Dread"; 2],
            write: ["H5Dwrite"; 2],
            close_variable: Some("H5Dclose"),
            close: "H5Fclose",
            ..plain
        },
        Layer::Pnetcdf => Functions {
            create: "ncmpi_create",
            mode: 0x20,
            define: Some("ncmpi_def_var"),
            end_define: Some("ncmpi_enddef"),
            read: ["ncmpi_get_vara_*_all"; 2],
            write: ["ncmpi_put_vara_*_all"; 2],
            close: "ncmpi_close",
            ..plain
        },
        Layer::Netcdf => Functions {
            create: "nc_create_par",
            mode: 0x1000,
            define: Some("nc_def_var"),
            end_define: Some("nc_enddef"),
            read: ["nc_get_vara_*"; 2],
            write: ["nc_put_vara_*"; 2],
            close: "nc_close",
            ..plain
        },
        _ => plain,
    }
}

/// # Errors
/// When it cannot be read, or what it says does not go together.
pub fn read(path: &Path, limit: usize) -> Result<Program> {
    let size = path.metadata().with_context(|| path.display().to_string())?.len();
    ensure!(size <= LONGEST, "{} is larger than 1 MiB and no description", path.display());
    let text = std::fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))?;
    program(&text, limit).with_context(|| path.display().to_string())
}

fn program(text: &str, limit: usize) -> Result<Program> {
    let description: Description = toml::from_str(text)?;
    let layer = layer(&description.interface).map_err(anyhow::Error::msg)?;
    ensure!((1..=RANKS_MAX).contains(&description.ranks), "ranks: from 1 to {RANKS_MAX}");
    description.variable.iter().try_for_each(|variable| check(variable, description.ranks))?;
    check_all(&description, layer)?;
    let mut made = Program {
        layer,
        ranks: Vec::new(),
        files: files(&description.file),
        ops: Vec::new(),
        objects: description.variable.iter().map(object).collect(),
        text: BTreeSet::new(),
        hints: Vec::new(),
        communicators: Vec::new(),
        switches: BTreeMap::new(),
        handles: FILE + 1 + description.variable.len() as i64,
        requests: 0,
        buffer: 0,
        calls: BTreeMap::new(),
        left_out: BTreeMap::new(),
        notes: BTreeSet::new(),
    };
    for rank in 0..description.ranks {
        let mut writer = Writer { layer, rank, folder: Folder::new(limit), program: &mut made };
        writer.file(&description)?;
        let nodes: Vec<Node> = writer.folder.finish();
        made.ranks.push(nodes);
    }
    Ok(made)
}

fn check(variable: &Variable, ranks: i64) -> Result<()> {
    let Variable { name, dims, decomposition, .. } = variable;
    ensure!(dims.iter().all(|dim| *dim > 0), "{name}: dims are lengths above 0");
    ensure!(
        total(dims).checked_mul(variable.element.max(1)).is_some_and(|all| all < i64::MAX),
        "{name}: dims are too large"
    );
    ensure!(matches!(variable.element, 1 | 2 | 4 | 8), "{name}: an element has 1, 2, 4 or 8 bytes");
    ensure!((1..=CALLS_MAX).contains(&variable.steps), "{name}: steps are from 1 to {CALLS_MAX}");
    ensure!(decomposition.len() == dims.len(), "{name}: decomposition has as many numbers as dims");
    ensure!(
        total(decomposition) == ranks,
        "{name}: decomposition has {} parts for {ranks} ranks",
        total(decomposition)
    );
    let whole = dims.iter().zip(decomposition).all(|(dim, parts)| *parts > 0 && dim % parts == 0);
    ensure!(whole, "{name}: each dimension is a multiple of its number of parts");
    ensure!(
        variable.chunk.is_empty() || variable.chunk.len() == dims.len(),
        "{name}: chunk has as many numbers as dims"
    );
    Ok(())
}

/// What all variables come to: bytes of the file, and calls of all ranks.
fn check_all(description: &Description, layer: Layer) -> Result<()> {
    let (mut bytes, mut calls) = (0_i64, 0_i64);
    for variable in &description.variable {
        bytes = bytes.saturating_add(total(&variable.dims).saturating_mul(variable.element));
        let transfers = variable.steps.saturating_mul(variable.pattern.len() as i64);
        let rows = if has_objects(layer) { 1 } else { Rows::of(variable, &part(variable, 0).1).number };
        calls = calls.saturating_add(transfers.saturating_mul(rows).saturating_mul(description.ranks));
    }
    ensure!(bytes < i64::MAX, "the variables are too large together");
    ensure!(calls <= CALLS_MAX, "more than {CALLS_MAX} calls of all ranks: fewer parts of rows, steps or ranks");
    Ok(())
}

/// Bytes of a rank's part that follow each other in the file.
struct Rows {
    number: i64,
    bytes: i64,
    /// Dimensions that go over the rows.
    outer: usize,
}

impl Rows {
    fn of(variable: &Variable, count: &[i64]) -> Self {
        // The last dimensions that are whole, and the one before.
        let whole = count.iter().zip(&variable.dims).rev().take_while(|(count, dim)| count == dim).count();
        let outer = count.len().saturating_sub(whole + 1);
        let (over, inside) = count.split_at(outer);
        Self { number: total(over), bytes: total(inside).saturating_mul(variable.element), outer }
    }
}

fn files(path: &str) -> Vec<File> {
    let names = below(&[format!("/{path}")]);
    names.into_iter().map(|name| File { path: path.to_owned(), name, found: None }).collect()
}

fn object(variable: &Variable) -> Object {
    Object {
        file: 0,
        path: format!("/{}", variable.name.trim_matches('/')),
        attribute: None,
        is_group: false,
        dims: variable.dims.clone(),
        chunk: variable.chunk.clone(),
        size: variable.element,
        filters: String::new(),
    }
}

/// What a call is about.
#[derive(Default)]
struct About {
    mode: i64,
    handle: i64,
    object: i64,
    element: i64,
    collective: bool,
    offset: i64,
    bytes: i64,
    selection: Vec<i64>,
}

struct Writer<'a> {
    layer: Layer,
    rank: i64,
    folder: Folder,
    program: &'a mut Program,
}

impl Writer<'_> {
    fn file(&mut self, description: &Description) -> Result<()> {
        let functions = functions(self.layer);
        self.call(functions.create, &About { mode: functions.mode, handle: FILE, ..About::default() })?;
        let of_variable =
            |number: usize| if functions.close_variable.is_some() { FILE + 1 + number as i64 } else { FILE };
        let about = |number: usize| About { handle: of_variable(number), object: number as i64, ..About::default() };
        for number in 0..description.variable.len() {
            functions.define.map_or(Ok(()), |op| self.call(op, &about(number)))?;
        }
        functions.end_define.map_or(Ok(()), |op| self.call(op, &about(0)))?;
        let mut begins = 0;
        for (number, variable) in description.variable.iter().enumerate() {
            for pattern in &variable.pattern {
                let ops = if *pattern == Pattern::Read { functions.read } else { functions.write };
                let op = ops[usize::from(variable.collective)].replace('*', type_name(variable.element));
                for _ in 0..variable.steps {
                    self.transfer(&op, variable, (about(number), begins))?;
                }
            }
            // Below `i64::MAX` together: `check_all`.
            begins += total(&variable.dims).saturating_mul(variable.element);
        }
        for number in 0..description.variable.len() {
            functions.close_variable.map_or(Ok(()), |op| self.call(op, &about(number)))?;
        }
        self.call(functions.close, &About { handle: FILE, ..About::default() })
    }

    /// The rank's part of a variable: a block, or its rows one after the other.
    fn transfer(&mut self, op: &str, variable: &Variable, (about, begins): (About, i64)) -> Result<()> {
        let (start, count) = part(variable, self.rank);
        let about = About { element: variable.element, collective: variable.collective, ..about };
        if has_objects(self.layer) {
            let bytes = total(&count).saturating_mul(variable.element);
            return self.call(op, &About { bytes, selection: [start, count].concat(), ..about });
        }
        let Rows { number, bytes, outer } = Rows::of(variable, &count);
        for row in 0..number {
            let (mut left, mut at) = (row, start.clone());
            for d in (0..outer).rev() {
                at[d] += left % count[d];
                left /= count[d];
            }
            let element = at
                .iter()
                .zip(&variable.dims)
                .fold(0_i64, |element, (at, dim)| element.saturating_mul(*dim).saturating_add(*at));
            let offset = begins + element.saturating_mul(variable.element);
            self.call(op, &About { offset, bytes, handle: about.handle, ..About::default() })?;
        }
        Ok(())
    }

    fn call(&mut self, op: &str, about: &About) -> Result<()> {
        let row = named(op).with_context(|| format!("no call {op}"))?;
        let known = self.program.ops.iter().position(|known| known == op);
        let number = known.unwrap_or_else(|| {
            self.program.ops.push(op.to_owned());
            self.program.ops.len() - 1
        });
        let function = function(row, number);
        let mut args = Vec::new();
        for arg in parts(function).map_or(&[][..], |(row, _)| row.args) {
            match arg {
                Arg::Selection => args.extend(&about.selection),
                arg => args.push(value(*arg, about)),
            }
        }
        self.program.buffer = self.program.buffer.max(about.bytes);
        *self.program.calls.entry(op.to_owned()).or_default() += 1;
        self.folder.push(Call { function, args, think: Think::default() })
    }
}

fn value(arg: Arg, about: &About) -> i64 {
    match arg {
        Arg::Opened | Arg::Handle => about.handle,
        Arg::OpenFlags => i64::from(libc::O_RDWR | libc::O_CREAT),
        // MPI_MODE_CREATE | MPI_MODE_RDWR
        Arg::Amode => 9,
        Arg::Mode => about.mode,
        Arg::Offset => about.offset,
        Arg::Requested | Arg::Moved => about.bytes,
        Arg::Object => about.object,
        Arg::ElementSize => about.element,
        Arg::Collective => about.collective.into(),
        // The first file, all ranks, no hints, the variable of the file.
        _ => 0,
    }
}

fn type_name(bytes: i64) -> &'static str {
    match bytes {
        1 => "schar",
        2 => "short",
        4 => "float",
        _ => "double",
    }
}

/// Start and count of a rank's part; the last dimension changes from rank to rank first.
fn part(variable: &Variable, rank: i64) -> (Vec<i64>, Vec<i64>) {
    let count: Vec<i64> = variable.dims.iter().zip(&variable.decomposition).map(|(dim, parts)| dim / parts).collect();
    let (mut start, mut left) = (vec![0; count.len()], rank);
    for (d, parts) in variable.decomposition.iter().enumerate().rev() {
        start[d] = left % parts * count[d];
        left /= parts;
    }
    (start, count)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::replay_code::ranks::{Group, Step, group};

    const FIELD: &str =
        "ranks = 4\nfile = 'field.dat'\n[[variable]]\nname = 'field'\ndims = [64, 32]\ndecomposition = [2, 2]\n";

    fn groups(interface: &str) -> Vec<Group> {
        group(&program(&format!("interface = '{interface}'\n{FIELD}"), 100).unwrap().ranks)
    }

    #[test]
    fn blocks_are_loops_over_rows_or_one_transfer() {
        let posix = groups("posix");
        let [Group { steps, .. }] = posix.as_slice() else { panic!("{posix:?}") };
        assert!(matches!(steps.as_slice(), [Step::Call { .. }, Step::Loop { .. }, Step::Call { .. }]), "{steps:?}");
        for (interface, calls) in [("hdf5", 5), ("pnetcdf", 5), ("netcdf", 5)] {
            assert_eq!(groups(interface).iter().map(|group| group.steps.len()).max(), Some(calls), "{interface}");
        }
    }

    #[test]
    fn what_does_not_go_together_is_refused() {
        for (text, why) in [
            ("decomposition = [2, 2]", "decomposition = [2, 3]"),
            ("ranks = 4", "ranks = 0"),
            ("dims = [64, 32]", "dims = [64, 33]"),
            ("dims = [64, 32]", "dims = [64]"),
            ("dims = [64, 32]", "dims = [9223372036854775807, 9223372036854775807]"),
            ("dims = [64, 32]", "dims = [1_000_000_000, 32]"),
            ("dims = [64, 32]", "steps = 16777216\ndims = [64, 32]"),
            ("name", "nam"),
        ] {
            let text = format!("interface = 'posix'\n{}", FIELD.replacen(text, why, 1));
            assert!(program(&text, 100).is_err(), "{why}");
        }
        assert!(program(&format!("interface = 'tape'\n{FIELD}"), 100).is_err());
        // Each by itself would do.
        let (first, variable) = FIELD.split_once("[[").unwrap();
        let huge = format!("[[{}", variable.replace("[64, 32]", "[288230376151711744, 2]"));
        for (variables, why) in [(huge.clone(), "calls"), (huge.repeat(2), "too large")] {
            let text = format!("interface = 'posix'\n{first}{variables}");
            assert!(format!("{:#}", program(&text, 100).unwrap_err()).contains(why), "{why}");
        }
        let steps = FIELD.replace("dims", "steps = 16777216\ndims");
        assert!(program(&format!("interface = 'hdf5'\n{steps}"), 100).is_err());
    }
}
