//! `iotrace-bpf probes`: the catalog as people read it, what would come of it, and catalogs for other libraries.

mod check;
mod generate;

use crate::base::text::{Column, Set, escape, table};
use crate::base::usage::{bail, wrong};
use crate::catalog::{Catalog, Phase};
use crate::cli::{AddedArgs, LayerChoice, ProbesAction};
use crate::loader::code::plan::NOT_SELECTED;
use crate::rows::Coverage;
use crate::vocabulary::{LAYERS, Layer};
use anyhow::{Context as _, Result};
use serde::Serialize;
use std::io::Write;

/// The built-in catalog with what the command line adds to it.
pub fn catalog(added: &AddedArgs) -> Result<Catalog> {
    let mut catalog = Catalog::built_in();
    for path in &added.probes {
        let name = path.display().to_string();
        let text = std::fs::read_to_string(path).with_context(|| format!("cannot read {name}"));
        text.and_then(|text| catalog.add_file(&name, &text)).map_err(|e| wrong(&e))?;
    }
    let mut phases: Vec<&Phase> = added.phase.iter().collect();
    phases.sort_by_key(|phase| phase.order());
    phases.into_iter().try_for_each(|phase| catalog.add_phase(phase))?;
    Ok(catalog)
}

/// The layers to trace, of a command and of processes that are listed or of all that are there (`wide`). What the user
/// adds is wanted, whatever `--layers` selects.
pub fn layers(asked: &[LayerChoice], catalog: &Catalog, wide: bool) -> Result<Vec<Layer>> {
    let asked: Vec<Layer> = asked.iter().map(|choice| choice.layer).collect();
    let added = || catalog.user_rows().map(|row| row.layer);
    let mut layers = if asked.is_empty() { usual().collect() } else { asked.clone() };
    if asked.is_empty() && wide {
        layers.retain(|layer| !layer.is_in_files());
    }
    if let Some(empty) = asked.iter().find(|layer| !layer.is_traceable() && !added().any(|l| l == **layer)) {
        bail!("layer {empty} has no built-in probes: give some with --probes, or phases with --phase");
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

/// The layers that are traced by default.
fn usual() -> impl Iterator<Item = Layer> {
    LAYERS.into_iter().filter(|layer| layer.is_usual())
}

/// The untraced processes that these layers slow, with `--system` and `--cgroup`.
pub fn slows(layers: &[Layer]) -> Option<String> {
    let names: Vec<&str> = layers.iter().filter(|layer| layer.is_library()).map(|l| l.name()).collect();
    (!names.is_empty()).then(|| {
        format!(
            "library probes run in every process of the node that maps these libraries, traced or not, and slow each call of \
             theirs: {}",
            names.join(", ")
        )
    })
}

/// Adds the reason to the verdicts of layers off by default, where these are left out for what they would do to
/// others.
pub fn mark_default(verdicts: &mut [Coverage], of: &'static str) {
    for c in verdicts.iter_mut().filter(|c| c.status == "skipped" && c.layer.is_in_files()) {
        if c.reason.as_deref() == Some(NOT_SELECTED) {
            let wanted = std::iter::once(c.layer).chain(usual().filter(|l| !l.is_in_files()));
            let wanted = wanted.map(Layer::name).collect::<Vec<_>>().join(",");
            c.reason = Some(format!("off by default with {of}; --layers {wanted} turns it on"));
        }
    }
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
        // An inner function has no calls of its own: it gives values to the call that it runs in.
        kind: if row.inner().is_some() { "inner" } else { row.kind.name() },
    });
    if json {
        serde_json::to_writer_pretty(&mut *out, &rows.collect::<Vec<_>>())?;
        return Ok(writeln!(out)?);
    }
    let head: [Column; 5] = ["LAYER", "LIBRARY", "FUNCTION", "OPERATION", "KIND"].map(|name| (name, Set::Name, 0));
    let cells = rows.map(|r| [r.layer, r.library, r.symbol, r.op, r.kind].map(escape).to_vec());
    Ok(out.write_all(table(&head, &cells.collect::<Vec<_>>(), usize::MAX, 0).as_bytes())?)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use Layer::{App, Block, Hdf5, Mpiio, Syscall, Vfs};

    #[test]
    fn untraced_processes_are_not_slowed_unless_that_is_asked_for() {
        let mut catalog = Catalog::built_in();
        assert_eq!(layers(&[], &catalog, true).unwrap(), [Syscall, Block]);
        assert_eq!(layers(&[], &catalog, false).unwrap().len(), usual().count());
        assert_eq!(layers(&[Hdf5.into(), Vfs.into()], &catalog, true).unwrap(), [Hdf5, Syscall, Vfs]);
        catalog.add_phase(&"step".parse().unwrap()).unwrap();
        assert_eq!(layers(&[], &catalog, true).unwrap(), [App, Syscall, Block]);
        assert_eq!(slows(&[App, Syscall, Block]), None);
        assert!(slows(&[Hdf5, Mpiio, Syscall]).unwrap().ends_with(": hdf5, mpiio"));
    }
}
