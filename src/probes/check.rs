//! `iotrace-bpf probes check`: what would be attached to a process or to files, found out without attaching anything.

use crate::base::text::{Column, Set, escape, table};
use crate::catalog::{Catalog, Family};
use crate::loader::code::elf::{Elf, ElfError};
use crate::loader::code::outline::{self, Outline};
use crate::loader::code::plan::{PlannedProbe, Planner};
use crate::loader::code::prologue::InsnClass;
use crate::loader::code::{examine, safety};
use crate::loader::processes::{existing, maps};
use crate::rows::Coverage;
use anyhow::{Context as _, Result, anyhow, bail};
use serde::Serialize;
use std::collections::HashSet;
use std::fs;
use std::io::Write;
use std::path::PathBuf;

/// What would come of one file.
#[derive(Serialize)]
pub struct File {
    path: String,
    /// What it was recognised as.
    libraries: Vec<&'static str>,
    functions: Vec<Function>,
    /// Why it could not be looked into.
    error: Option<String>,
}

/// What would come of one function.
#[derive(Serialize)]
struct Function {
    layer: &'static str,
    symbol: String,
    /// `attach`, `alias`, `absent`, `refused` or `skipped`.
    status: &'static str,
    /// In the file, in bytes.
    offset: Option<i64>,
    /// The instruction under the probe.
    instruction: Option<String>,
    /// `emulated` by the kernel, or `stepped`, which costs about ten times as much.
    cost: Option<&'static str>,
    /// How its end is seen: by a return `probe`, in `place` by probes on this many instructions, or `none`: it is no
    /// call, but a value is read there.
    returns: Option<&'static str>,
    places: Option<usize>,
    /// Why not.
    reason: Option<String>,
}

const STEPPED: &str = InsnClass::Stepped.name();
/// What the kernel takes to step an instruction, measured on a virtual machine; less where nothing is virtual.
const STEP_US: u8 = 8;

/// The way out for a file without symbols.
const ADVICE: &str = "use a build with symbols, or trace it with --layers syscall,block";

/// What would come of files; each must be a program or library.
pub fn files(paths: &[PathBuf], catalog: Catalog) -> Result<Vec<File>> {
    let planner = Planner::new(catalog);
    let check = |path: &PathBuf| {
        let shown = path.display();
        let metadata = fs::metadata(path).with_context(|| format!("cannot read {shown}"))?;
        if !metadata.is_file() {
            bail!("{shown} is no file");
        }
        let opened = fs::File::open(path).with_context(|| format!("cannot read {shown}"))?;
        let bytes = outline::content(&opened).map_err(|why| anyhow!("{shown}: {why}"))?;
        // Phases name files by the path that the kernel shows.
        let real = fs::canonicalize(path).unwrap_or_else(|_| path.clone());
        let real = real.to_string_lossy();
        let elf = Elf::parse(&bytes, |symbol| planner.takes(symbol)).map_err(|why| match why {
            ElfError::NoSections => anyhow!("{shown}: {why}; {ADVICE}"),
            why => anyhow!("{shown}: {why}"),
        })?;
        if !elf.symtab && !elf.dynamic {
            bail!(
                "{shown} has no symbols: it is linked statically and stripped, so no function in it can be found; {ADVICE}"
            );
        }
        Ok(file(path.to_string_lossy().into_owned(), &real, &opened, &elf, &bytes, &planner))
    };
    paths.iter().map(check).collect()
}

/// What would come of the files that a process maps as code. Files that are nothing to the catalog are left out.
pub fn process(pid: u32, catalog: Catalog) -> Result<Vec<File>> {
    existing::check(&[pid])?;
    let text = fs::read(format!("/proc/{pid}/maps")).with_context(|| format!("process {pid}"))?;
    let status = fs::read(format!("/proc/{pid}/status")).map(|text| maps::status(&text)).unwrap_or_default();
    let release = nix::sys::utsname::uname().map(|u| u.release().to_string_lossy().into_owned()).unwrap_or_default();
    let allowed = safety::return_probes_allowed(&release, status.seccomp.unwrap_or(0));
    let planner = Planner::new(catalog);
    let (mut seen, mut kept) = (HashSet::new(), Outline::default());
    let mut found = Vec::new();
    for mapping in maps::mappings(&text).iter().filter(|m| m.is_code() && seen.insert((m.dev, m.inode))) {
        let path = String::from_utf8_lossy(&mapping.path).into_owned();
        let read = examine::open(pid, mapping).and_then(|opened| {
            let read = outline::classify(&mut kept, &opened, |s| planner.takes(s));
            read.map(|(elf, bytes)| (opened, elf, bytes)).map_err(|why| why.to_string())
        });
        let mut file = match read {
            Ok((opened, elf, bytes)) => file(path.clone(), &path, &opened, &elf, &bytes, &planner),
            Err(error) => File { path, libraries: Vec::new(), functions: Vec::new(), error: Some(error) },
        };
        if let Err(why) = &allowed {
            for function in file.functions.iter_mut().filter(|f| f.status == "attach") {
                (function.status, function.reason) = ("skipped", Some(why.clone()));
            }
        }
        if file.error.is_some() || !file.libraries.is_empty() {
            found.push(file);
        }
    }
    Ok(found)
}

fn file(shown: String, path: &str, opened: &fs::File, elf: &Elf, bytes: &[u8], planner: &Planner) -> File {
    let catalog = planner.catalog();
    let mut plan = planner.plan(path, elf, bytes, &|_| true);
    planner.plan_lines(&mut plan, path, elf, || outline::with_debug(opened));
    let mut functions: Vec<Function> = plan.probes.iter().map(Function::planned).collect();
    functions.extend(plan.settled.into_iter().map(Function::settled));
    let missing = plan.missing.iter().filter_map(|(spec, why)| Some((catalog.rows().get(usize::from(*spec))?, why)));
    functions.extend(missing.map(|(row, why)| {
        let plain = row.lines().is_none() && elf.symtab;
        let why = if plain { "does not define it" } else { why.as_str() };
        Function::without(row.layer.name(), row.symbol.to_owned(), "absent", format!("the file {why}"))
    }));
    let order = |f: &Function| catalog.rows().iter().position(|row| row.symbol == f.symbol);
    functions.sort_by_cached_key(|f| (order(f), f.offset));
    let library = |family: &Family| catalog.library(*family).map(|l| l.name);
    File { path: shown, libraries: plan.families.iter().filter_map(library).collect(), functions, error: None }
}

impl Function {
    fn without(layer: &'static str, symbol: String, status: &'static str, reason: String) -> Self {
        let (offset, instruction, cost, returns, places) = (None, None, None, None, None);
        Self { layer, symbol, status, offset, instruction, cost, returns, places, reason: Some(reason) }
    }

    fn planned(probe: &PlannedProbe) -> Self {
        let in_frame = probe.framed.as_ref().map(|framed| framed.exits.len());
        let exits = probe.exit_points.as_ref().map(Vec::len).or(in_frame);
        let (offset, class, text) = probe.breakpoint();
        Self {
            offset: Some(offset as i64),
            instruction: Some(text.to_owned()),
            cost: Some(class.name()),
            returns: Some(match (&probe.field, exits) {
                (Some(_), _) => "none",
                (None, Some(_)) => "place",
                (None, None) => "probe",
            }),
            places: match &probe.edges {
                Some(edges) => Some(edges.len()),
                None => exits.filter(|_| probe.field.is_none()),
            },
            reason: probe.slow_path.then(|| SLOW_PATH.to_owned()),
            ..Self::without(probe.layer.name(), probe.symbol.to_owned(), "attach", String::new())
        }
    }

    fn settled(c: Coverage) -> Self {
        let reason = c.reason.unwrap_or_default();
        let status = if reason.starts_with("alias of ") { "alias" } else { c.status };
        Self { offset: c.offset, ..Self::without(c.layer.name(), c.symbol, status, reason) }
    }
}

/// Why a probe is not set at once.
const SLOW_PATH: &str = "only when functions that fill or empty a buffer are demoted (--max-overhead)";

/// Writes what was found.
pub fn show(files: &[File], json: bool, out: &mut dyn Write) -> Result<()> {
    if json {
        serde_json::to_writer_pretty(&mut *out, files)?;
        return Ok(writeln!(out)?);
    }
    if files.is_empty() {
        writeln!(out, "no library of the catalog is mapped, and no phase was asked for")?;
    }
    for (n, file) in files.iter().enumerate() {
        let gap = if n > 0 { "\n" } else { "" };
        let what = match &file.error {
            Some(error) => format!("cannot be looked into: {}", escape(error)),
            None if file.libraries.is_empty() => "nothing of the catalog".to_owned(),
            None => file.libraries.join(", "),
        };
        writeln!(out, "{gap}{}: {what}", escape(&file.path))?;
        if !file.functions.is_empty() {
            out.write_all(functions(&file.functions).as_bytes())?;
        }
    }
    Ok(())
}

fn functions(functions: &[Function]) -> String {
    let name = |name| (name, Set::Name, 0);
    let head: [Column; 8] = [
        name("LAYER"),
        name("FUNCTION"),
        ("OFFSET", Set::Right, 0),
        name("INSTRUCTION"),
        name("COST"),
        name("RETURN"),
        name("STATUS"),
        name("WHY NOT"),
    ];
    let dash = |text: Option<String>| text.unwrap_or_else(|| "-".to_owned());
    let row = |f: &Function| {
        vec![
            f.layer.to_owned(),
            escape(&f.symbol),
            dash(f.offset.map(|at| format!("{at:#x}"))),
            dash(f.instruction.clone()),
            dash(f.cost.map(|cost| if cost == STEPPED { format!("{cost} (+{STEP_US} us)") } else { cost.to_owned() })),
            dash(f.places.map(|n| format!("in place: {n}")).or_else(|| f.returns.map(str::to_owned))),
            f.status.to_owned(),
            f.reason.as_deref().map(escape).unwrap_or_default(),
        ]
    };
    table(&head, &functions.iter().map(row).collect::<Vec<_>>(), usize::MAX, 2)
}
