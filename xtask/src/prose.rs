//! Documents that can be read: no line of prose above a width, no paragraph above a number of lines, no name of what is
//! not there.

use anyhow::{Context, Result, bail};
use std::fs;
use std::path::{Path, PathBuf};

use crate::references;

/// Characters in a line. Tables, code and the targets of links do not count.
const WIDTH: usize = 120;
/// Lines in a paragraph or in one item of a list.
const LINES: usize = 8;
/// Documents outside of `docs`.
const DOCUMENTS: &[&str] = &["README.md", "CONTRIBUTING.md", "bpf/README.md", "python/README.md"];

/// Checks the documents below the root of the tree.
pub fn check(root: &Path) -> Result<()> {
    let mut wrong = Vec::new();
    for path in documents(root)? {
        let text = fs::read_to_string(&path).with_context(|| format!("cannot read {}", path.display()))?;
        let name = path.strip_prefix(root).unwrap_or(&path).display().to_string();
        let found = complaints(&text).into_iter().chain(references::missing(root, &text));
        wrong.extend(found.map(|(line, what)| format!("{name}:{line}: {what}")));
    }
    if wrong.is_empty() {
        return Ok(());
    }
    bail!("documents: hard to read, or out of date (xtask/src/prose.rs, references.rs):\n  {}", wrong.join("\n  "))
}

fn documents(root: &Path) -> Result<Vec<PathBuf>> {
    let mut found: Vec<PathBuf> = DOCUMENTS.iter().map(|name| root.join(name)).collect();
    let docs = root.join("docs");
    for entry in fs::read_dir(&docs).with_context(|| format!("cannot list {}", docs.display()))? {
        let path = entry.with_context(|| format!("cannot list {}", docs.display()))?.path();
        if path.extension().is_some_and(|extension| extension == "md") {
            found.push(path);
        }
    }
    found.sort();
    Ok(found)
}

/// Lines of a Markdown text, from 1, with what is wrong with each.
fn complaints(text: &str) -> Vec<(usize, String)> {
    let (mut wrong, mut in_code, mut paragraph) = (Vec::new(), false, 0);
    for (number, line) in (1..).zip(text.lines()) {
        let start = line.trim_start();
        if start.starts_with("```") {
            in_code = !in_code;
        }
        let is_prose = !in_code && !start.is_empty() && !["```", "|", "#"].iter().any(|mark| start.starts_with(mark));
        paragraph = match (is_prose, is_item(start)) {
            (false, _) => 0,
            (true, true) => 1,
            (true, false) => paragraph + 1,
        };
        if paragraph == LINES + 1 {
            wrong.push((number, format!("a paragraph of more than {LINES} lines")));
        }
        let width = without_targets(line).chars().count();
        if is_prose && width > WIDTH {
            wrong.push((number, format!("{width} characters, {WIDTH} at most")));
        }
    }
    wrong
}

/// Does an item of a list begin here?
fn is_item(start: &str) -> bool {
    let digits = start.trim_start_matches(|c: char| c.is_ascii_digit());
    start.starts_with("- ") || start.starts_with("* ") || (digits.len() < start.len() && digits.starts_with(". "))
}

/// A line without the targets of its links: `[text](target)` counts as `[text]`.
fn without_targets(line: &str) -> String {
    let (mut kept, mut rest) = (String::new(), line);
    while let Some((before, target)) = rest.split_once("](") {
        kept += before;
        kept.push(']');
        rest = target.split_once(')').map_or("", |(_, after)| after);
    }
    kept + rest
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_documents_keep_to_it() {
        check(&Path::new(env!("CARGO_MANIFEST_DIR")).join("..")).unwrap();
    }

    #[test]
    fn long_lines_are_found_outside_of_tables_code_and_links() {
        let long = "x".repeat(WIDTH + 1);
        assert_eq!(complaints(&format!("fine\n\n{long}\n")), [(3, "121 characters, 120 at most".to_owned())]);
        assert_eq!(complaints(&format!("| {long} |\n\n```\n{long}\n```\n\n[a]({long}) and [b]({long})\n")), []);
        assert_eq!(complaints(&"ü".repeat(WIDTH)), []);
        assert_eq!(complaints(&format!("```\n```\n- {long}\n")).len(), 1);
    }

    #[test]
    fn long_paragraphs_are_found_and_each_item_of_a_list_is_one() {
        let lines = |first: &str, count: usize| format!("{first}\n{}", "more\n".repeat(count - 1));
        assert_eq!(complaints(&lines("one", LINES)), []);
        assert_eq!(complaints(&lines("one", LINES + 3)), [(9, "a paragraph of more than 8 lines".to_owned())]);
        assert_eq!(complaints(&(lines("- one", LINES) + &lines("12. two", LINES) + "\n" + &lines("x", LINES))), []);
        assert_eq!(complaints(&lines("- one", LINES + 1)).len(), 1);
        assert_eq!(complaints(&format!("```\n{}```\n", "code\n".repeat(20))), []);
    }
}
