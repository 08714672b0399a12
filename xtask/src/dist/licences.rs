//! The licences of what is linked into the tracer: a list, and each text once.

use anyhow::{Context, Result};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

use super::NAME;
use crate::shell;

/// How files with a licence are called, in capitals.
const NAMES: &[&str] = &["LICENSE", "LICENCE", "COPYING", "COPYRIGHT", "NOTICE", "UNLICENSE"];

/// Libraries in C that a static tracer has in it: name, licence, where it comes from, and the text, a file or directory
/// in the sources of libbpf-sys.
const IN_C: &[(&str, &str, &str, &str)] = &[
    ("libbpf", "LGPL-2.1-only OR BSD-2-Clause", "https://github.com/libbpf/libbpf", "libbpf"),
    ("libelf", "GPL-2.0-or-later OR LGPL-3.0-or-later", "https://sourceware.org/elfutils", "elfutils"),
    ("zlib", "Zlib", "https://zlib.net", "zlib"),
    ("glibc", "LGPL-2.1-or-later", "https://sourceware.org/glibc", "libbpf/LICENSE.LGPL-2.1"),
];

/// The crate with the sources of [`IN_C`].
const C_SOURCES: &str = "libbpf-sys";

struct Part {
    name: String,
    licence: String,
    from: String,
    /// A file, or a directory with files.
    texts: PathBuf,
}

/// The list of all parts, and the texts.
pub fn text() -> Result<String> {
    let metadata = shell::output(
        "cargo",
        &["metadata", "--format-version", "1", "--locked", "--filter-platform", "x86_64-unknown-linux-gnu"],
    )?;
    let metadata = serde_json::from_str(&metadata).context("the output of cargo metadata")?;
    let mut parts = crates(&metadata)?;
    let sources = parts.iter().find(|part| part.name.starts_with(C_SOURCES)).map(|part| part.texts.clone());
    let sources = sources.with_context(|| format!("{C_SOURCES} is not linked in"))?;
    parts.extend(IN_C.iter().map(|(name, licence, from, below)| Part {
        name: (*name).to_owned(),
        licence: (*licence).to_owned(),
        from: (*from).to_owned(),
        texts: sources.join(below),
    }));
    render(&parts)
}

/// The crates that the tracer is linked from: what it depends on, but for building and testing.
fn crates(metadata: &Value) -> Result<Vec<Part>> {
    let rows = |rows: &Value| rows.as_array().cloned().unwrap_or_default();
    let by_id = |rows: Vec<Value>| -> BTreeMap<String, Value> {
        rows.into_iter().filter_map(|row| Some((row["id"].as_str()?.to_owned(), row))).collect()
    };
    let packages = by_id(rows(&metadata["packages"]));
    let nodes = by_id(rows(&metadata["resolve"]["nodes"]));
    let own = packages.iter().find(|(_, package)| package["name"] == NAME).map(|(id, _)| id.clone());
    let own = own.with_context(|| format!("{NAME} is not in the output of cargo metadata"))?;
    let (mut seen, mut left) = (BTreeSet::new(), vec![own]);
    while let Some(id) = left.pop() {
        let links = |dep: &Value| rows(&dep["dep_kinds"]).iter().any(|kind| kind["kind"].is_null());
        let deps = nodes.get(&id).map(|node| rows(&node["deps"])).unwrap_or_default();
        if seen.insert(id) {
            left.extend(deps.iter().filter(|dep| links(dep)).filter_map(|dep| Some(dep["pkg"].as_str()?.to_owned())));
        }
    }
    // Those of this workspace have no source.
    seen.retain(|id| packages.get(id).is_none_or(|package| !package["source"].is_null()));
    let part = |id: &String| {
        let package = packages.get(id)?;
        let text = |key: &str| package[key].as_str().unwrap_or("-").to_owned();
        let texts = Path::new(package["manifest_path"].as_str()?).parent()?.to_path_buf();
        let name = format!("{} {}", text("name"), text("version"));
        Some(Part { name, licence: text("license"), from: text("repository"), texts })
    };
    seen.iter().map(|id| part(id).with_context(|| format!("{id} is in no row of cargo metadata"))).collect()
}

fn render(parts: &[Part]) -> Result<String> {
    let mut out = String::from(
        "iotrace-bpf is MIT OR Apache-2.0, its programs in the kernel are GPL-2.0-only. The program has these parts of \
         others in it.\nA tracer that is not static shares the C libraries of the system instead.\n\n",
    );
    let mut by_text: BTreeMap<String, Vec<&str>> = BTreeMap::new();
    for Part { name, licence, from, texts } in parts {
        writeln!(out, "{name}\n    {licence}\n    {from}")?;
        let texts = read_texts(texts)?;
        if texts.is_empty() {
            writeln!(out, "    (comes without a text of its own)")?;
        }
        for text in texts {
            by_text.entry(text).or_default().push(name);
        }
    }
    for (text, names) in by_text {
        writeln!(out, "\n{}\n{}\n\n{}", "=".repeat(80), names.join(", "), text.trim_end())?;
    }
    Ok(out)
}

/// A text, or those in a directory.
fn read_texts(path: &Path) -> Result<BTreeSet<String>> {
    let mut files = vec![path.to_path_buf()];
    if path.is_dir() {
        let entries = fs::read_dir(path).with_context(|| format!("cannot list {}", path.display()))?;
        files = entries.map(|entry| Ok(entry?.path())).collect::<Result<_>>()?;
        files.retain(|file| file.is_file() && is_licence(file));
    }
    let read = |file: &PathBuf| fs::read(file).with_context(|| format!("cannot read {}", file.display()));
    files.iter().map(|file| Ok(String::from_utf8_lossy(&read(file)?).replace('\r', ""))).collect()
}

fn is_licence(file: &Path) -> bool {
    let name = file.file_name().unwrap_or_default().to_string_lossy().to_uppercase();
    NAMES.iter().any(|start| name.starts_with(start))
}
