//! `iotrace-bpf probes`: the catalog as people read it, what would come of it, and catalogs for other libraries.

mod check;
mod generate;

use crate::catalog::Catalog;
use crate::cli::{AddedArgs, ProbesAction, TRACEABLE, USUAL};
use crate::export::text::{Column, Set, escape, table};
use crate::words::Layer;
use anyhow::{Context as _, Result, anyhow};
use serde::Serialize;
use std::io::Write;

/// The built-in catalog with what the command line adds to it.
pub fn catalog(added: &AddedArgs) -> Result<Catalog> {
    let mut catalog = Catalog::built_in();
    for path in &added.probes {
        let name = path.display().to_string();
        let text = std::fs::read_to_string(path).with_context(|| format!("cannot read {name}"))?;
        catalog.add_file(&name, &text)?;
    }
    added.phase.iter().try_for_each(|phase| catalog.add_phase(phase))?;
    Ok(catalog)
}

/// The layers to trace. What the user adds is wanted, whatever `--layers` says.
pub fn layers(asked: &[Layer], catalog: &Catalog) -> Result<Vec<Layer>> {
    let added = || catalog.user_rows().map(|row| row.layer);
    let mut layers = if asked.is_empty() { USUAL.to_vec() } else { asked.to_vec() };
    if let Some(empty) = asked.iter().find(|layer| !TRACEABLE.contains(layer) && !added().any(|l| l == **layer)) {
        return Err(anyhow!("layer {empty} has no built-in probes: give some with --probes, or phases with --phase"));
    }
    layers.extend(added());
    // Functions inside the kernel are seen inside the system calls that are recorded.
    if layers.iter().any(|l| matches!(l, Layer::Vfs | Layer::Fs)) {
        layers.push(Layer::Syscall);
    }
    layers.sort_unstable();
    layers.dedup();
    Ok(layers)
}

/// Does what was asked for.
pub fn run(action: &ProbesAction, out: &mut dyn Write) -> Result<()> {
    match action {
        ProbesAction::List { json, probes } => {
            let added = AddedArgs { probes: probes.clone(), ..AddedArgs::default() };
            list(&catalog(&added)?, *json, out)
        }
        ProbesAction::Generate { library, header, layer, output } => {
            let options = generate::Options { library, header: header.as_deref(), layer: *layer };
            let Some(path) = output else { return generate::run(&options, out) };
            let mut text = Vec::new();
            generate::run(&options, &mut text)?;
            let created = std::fs::OpenOptions::new().write(true).create_new(true).open(path);
            created
                .and_then(|mut file| file.write_all(&text))
                .with_context(|| format!("cannot write {}", path.display()))
        }
        ProbesAction::Check { pid, paths, added, json } => {
            let catalog = catalog(added)?;
            let files = match pid {
                Some(pid) => check::process(*pid, catalog)?,
                None => check::files(paths, catalog)?,
            };
            check::show(&files, *json, out)
        }
    }
}

/// A row of the catalog as it is listed.
#[derive(Serialize)]
struct Listed {
    layer: &'static str,
    library: &'static str,
    symbol: &'static str,
    op: &'static str,
    kind: &'static str,
}

fn list(catalog: &Catalog, json: bool, out: &mut dyn Write) -> Result<()> {
    let rows = catalog.rows().iter().map(|row| Listed {
        layer: row.layer.name(),
        library: catalog.library(row.family).map_or(row.family.name(), |library| library.name),
        symbol: row.symbol,
        op: row.op,
        // An inner function has no calls of its own: it tells what the call is about that it runs in.
        kind: if row.note.is_some() { "inner" } else { row.kind.name() },
    });
    if json {
        serde_json::to_writer_pretty(&mut *out, &rows.collect::<Vec<_>>())?;
        return Ok(writeln!(out)?);
    }
    let head: [Column; 5] = ["LAYER", "LIBRARY", "FUNCTION", "OPERATION", "KIND"].map(|name| (name, Set::Name, 0));
    let cells = rows.map(|r| [r.layer, r.library, r.symbol, r.op, r.kind].map(escape).to_vec());
    Ok(out.write_all(table(&head, &cells.collect::<Vec<_>>(), usize::MAX, 0).as_bytes())?)
}
