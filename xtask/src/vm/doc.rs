//! `docs/kernels.md`: by kernel, how each layer was probed and which tests saw it. Made of what the live tests noted.

use crate::vocabulary::{LAYERS, Layer};
use anyhow::{Context, Result, bail};
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

const PATH: &str = "docs/kernels.md";

/// The layers that have a line in the table of each kernel.
fn layers() -> impl Iterator<Item = &'static str> {
    LAYERS.into_iter().filter(|layer| layer.is_traceable()).map(Layer::name)
}

/// What one test noted of one layer; `tests/common/live.rs` writes these lines.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Note {
    /// The file of tests: `ROOM::FILE`.
    pub file: String,
    pub test: String,
    pub release: String,
    pub layer: String,
    /// How it was probed; empty when it was not.
    pub tier: String,
    pub attached: u64,
    pub refused: u64,
    pub calls: u64,
    pub why: String,
}

/// Reads notes.
pub fn notes(text: &str) -> Result<Vec<Note>> {
    let note = |line: &str| -> Option<Note> {
        let fields: Vec<&str> = line.splitn(9, '\t').collect();
        let [file, test, release, layer, tier, attached, refused, calls, why] = fields[..] else { return None };
        let number = |text: &str| text.parse().ok();
        let [file, test, release, layer, tier, why] = [file, test, release, layer, tier, why].map(str::to_owned);
        let (attached, refused, calls) = (number(attached)?, number(refused)?, number(calls)?);
        Some(Note { file, test, release, layer, tier, attached, refused, calls, why })
    };
    text.lines().map(|line| note(line).with_context(|| format!("not a note of a live test: {line}"))).collect()
}

/// The first two numbers of a release: the name of a kernel's section.
pub fn version(release: &str) -> String {
    release.split('.').take(2).collect::<Vec<_>>().join(".")
}

/// A kernel's section. `left_out` are tests that did not run there, and why.
pub fn section(place: &str, notes: &[Note], left_out: &BTreeMap<String, String>) -> Result<String> {
    let Some(first) = notes.first() else { bail!("no live test noted what it saw") };
    let mut text = format!("Release {}, {place}.\n\n", first.release);
    text += "| layer | probed by | most probes at once | tests that saw calls |\n|---|---|---|---|\n";
    for layer in layers() {
        let of: Vec<&Note> = notes.iter().filter(|n| n.layer == layer).collect();
        let tiers: BTreeSet<&str> = of.iter().map(|n| n.tier.as_str()).filter(|t| !t.is_empty()).collect();
        let most = of.iter().max_by_key(|n| n.attached).filter(|n| n.attached > 0);
        let mut seen: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
        for note in of.iter().filter(|n| n.attached > 0 && n.calls > 0) {
            seen.entry(&note.file).or_default().insert(&note.test);
        }
        let tests: Vec<String> = seen.iter().map(|(file, tests)| format!("{file} ({})", tests.len())).collect();
        let refused = of.iter().filter(|n| n.refused > 0).map(|n| n.why.as_str()).next();
        let most = match (most, refused) {
            (Some(n), Some(_)) => format!("{} of {}", n.attached, n.attached + n.refused),
            (Some(n), None) => n.attached.to_string(),
            (None, Some(why)) => format!("refused: {}", why.replace('|', "/")),
            (None, None) => "-".to_owned(),
        };
        let or = |text: String, other: &str| if text.is_empty() { other.to_owned() } else { text };
        let tiers = or(tiers.into_iter().collect::<Vec<_>>().join(", "), "not tested");
        text += &format!("| {layer} | {tiers} | {most} | {} |\n", or(tests.join(", "), "-"));
    }
    if !left_out.is_empty() {
        text += "\n| not run there | why |\n|---|---|\n";
        for (test, why) in left_out {
            text += &format!("| {test} | {why} |\n");
        }
    }
    Ok(text)
}

/// Puts a section into the document.
pub fn write(version: &str, section: &str) -> Result<()> {
    let text = fs::read_to_string(PATH).with_context(|| format!("cannot read {PATH}"))?;
    let new = replaced(&text, version, section);
    if new != text {
        fs::write(PATH, new).with_context(|| format!("cannot write {PATH}"))?;
        println!("{PATH}: the section on Linux {version} is new");
    }
    Ok(())
}

/// Notes of the tests of the running kernel, when all of them ran: they become its section.
pub fn write_running(file: &Path) -> Result<()> {
    let text = fs::read_to_string(file).with_context(|| format!("cannot read {}", file.display()))?;
    let notes = notes(&text)?;
    let version = notes.first().map(|n| version(&n.release)).context("no live test noted what it saw")?;
    write(&version, &section("the machine that the tests ran on", &notes, &BTreeMap::new())?)
}

fn heading(version: &str) -> String {
    format!("## Linux {version}\n")
}

/// The text with the section of a kernel replaced, or added at its end.
fn replaced(text: &str, version: &str, section: &str) -> String {
    let heading = heading(version);
    let new = format!("{heading}\n{}\n", section.trim_end());
    let Some(start) = text.find(&heading) else { return format!("{}\n\n{new}", text.trim_end()) };
    let body = start + heading.len();
    match text[body..].find("\n## ") {
        Some(end) => format!("{}{new}{}", &text[..start], &text[body + end..]),
        None => format!("{}{new}", &text[..start]),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::vm::{kernels, suite};

    fn note(file: &str, test: &str, layer: &str, (tier, attached, refused): (&str, u64, u64), calls: u64) -> String {
        format!("{file}\t{test}\t6.1.0-56\t{layer}\t{tier}\t{attached}\t{refused}\t{calls}\tfull\n")
    }

    #[test]
    fn a_section_has_the_tiers_of_each_layer_and_its_tests() {
        let text = note("room::a", "one", "syscall", ("tp_btf", 5, 0), 10)
            + &note("room::a", "two", "syscall", ("tp_btf", 5, 0), 7)
            + &note("room::b", "one", "syscall", ("tp_btf", 5, 0), 0)
            + &note("room::b", "one", "stdio", ("uprobe", 20, 127), 3)
            + &note("room::b", "one", "hdf5", ("", 0, 300), 0);
        let left_out = BTreeMap::from([("room::c".to_owned(), "too much".to_owned())]);
        let section = section("in QEMU", &notes(&text).unwrap(), &left_out).unwrap();
        assert!(section.starts_with("Release 6.1.0-56, in QEMU.\n"), "{section}");
        assert!(section.contains("| syscall | tp_btf | 5 | room::a (2) |\n"), "{section}");
        assert!(section.contains("| stdio | uprobe | 20 of 147 | room::b (1) |\n"), "{section}");
        assert!(section.contains("| hdf5 | not tested | refused: full | - |\n"), "{section}");
        assert!(section.contains("| block | not tested | - | - |\n"), "{section}");
        assert!(section.ends_with("| room::c | too much |\n"), "{section}");
    }

    #[test]
    fn bad_notes_are_refused() {
        assert!(notes("room::a\tone\t6.1\n").is_err());
        assert!(section("", &[], &BTreeMap::new()).is_err());
    }

    #[test]
    fn a_section_replaces_the_old_one_and_no_other() {
        let text = "# Kernels\n\n## Linux 6.1\n\nold\n\n## Linux 6.12\n\nother\n";
        let new = replaced(text, "6.1", "new\n");
        assert_eq!(new, "# Kernels\n\n## Linux 6.1\n\nnew\n\n## Linux 6.12\n\nother\n");
        assert_eq!(replaced(&new, "6.1", "new\n"), new);
        assert_eq!(replaced(&new, "6.12", "last"), "# Kernels\n\n## Linux 6.1\n\nnew\n\n## Linux 6.12\n\nlast\n");
        assert!(replaced(&new, "7.0", "next").ends_with("other\n\n## Linux 7.0\n\nnext\n"));
        assert_eq!(version("6.12.117+deb12-cloud-amd64"), "6.12");
    }

    #[test]
    fn the_document_has_every_kernel_layer_and_test_file() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
        let text = fs::read_to_string(root.join(PATH)).unwrap();
        for version in kernels::VERSIONS {
            let (_, rest) = text.split_once(&heading(version)).unwrap_or_else(|| panic!("no section on {version}"));
            let section = rest.split("\n## ").next().unwrap_or_default();
            for layer in layers() {
                assert!(section.contains(&format!("| {layer} | ")), "{layer} is not in the section on {version}");
            }
            for file in suite::SUITE {
                assert!(section.contains(file.name), "{} is not in the section on {version}", file.name);
            }
        }
        let names = text.split(|c: char| c != '_' && c != ':' && !c.is_alphanumeric()).filter(|w| w.contains("::"));
        for name in names {
            let file = name.split("::").take(2).collect::<Vec<_>>().join("/");
            assert!(root.join(format!("tests/live/{file}.rs")).exists(), "there is no {name}");
        }
    }
}
