//! Names in documents that must be in the tree: paths in backticks, and tests.

use std::fs;
use std::path::{Path, PathBuf};

/// What a path in the tree begins with.
const FOLDERS: &[&str] = &["src/", "bpf/", "tests/", "xtask/", "docs/", "examples/", "fuzz/", "dist/"];
/// What only a run makes there.
const MADE: &[&str] = &["fuzz/artifacts/"];
/// The folders of the test programs; a room of tests is a folder in one of these.
const PROGRAMS: [&str; 2] = ["tests/live", "tests/offline"];

/// Lines of a Markdown text, from 1, with what they name and the tree does not have.
pub fn missing(root: &Path, text: &str) -> Vec<(usize, String)> {
    let (mut wrong, mut in_code) = (Vec::new(), false);
    for (number, line) in (1..).zip(text.lines()) {
        in_code ^= line.trim_start().starts_with("```");
        if in_code {
            continue;
        }
        let paths = paths(line).filter(|path| !is_there(root, path)).map(|path| format!("there is no {path}"));
        let tests = named_tests(root, line).into_iter();
        let tests = tests.filter(|(test, files)| !files.iter().any(|file| has(file, test)));
        let tests = tests.map(|(test, _)| format!("there is no test {test} in the file that is named"));
        wrong.extend(paths.chain(tests).map(|what| (number, what)));
    }
    wrong
}

/// The paths in backticks; of `FILE.rs::TEST` the file.
fn paths(line: &str) -> impl Iterator<Item = &str> {
    let words = line.split('`').skip(1).step_by(2).flat_map(str::split_whitespace);
    let paths = words.filter(|word| FOLDERS.iter().any(|folder| word.starts_with(folder)));
    paths.map(|word| word.split_once("::").map_or(word, |(file, _)| file).trim_end_matches([',', ';', ':']))
}

/// Is a path in the tree, as far as it has no placeholder? One that ends in `/` must be a folder.
fn is_there(root: &Path, path: &str) -> bool {
    let mut at = root.to_owned();
    for part in path.split('/') {
        at.push(part);
        if !at.exists() {
            return is_placeholder(part) || MADE.iter().any(|made| path.starts_with(made));
        }
    }
    true
}

/// Does a part of a path stand for any name: `*.rs`, `NAME.rs`?
fn is_placeholder(part: &str) -> bool {
    part.contains('*') || part.as_bytes().windows(2).any(|pair| pair.iter().all(u8::is_ascii_uppercase))
}

/// Tests, each with the files that may have it: `ROOM::FILE::TEST`, `PATH/FILE.rs::TEST`, and `::TEST` in the file of
/// the one before. Other names with colons are none.
fn named_tests<'a>(root: &Path, line: &'a str) -> Vec<(&'a str, Vec<PathBuf>)> {
    let is_room = |room: &str| PROGRAMS.iter().any(|program| root.join(program).join(room).is_dir());
    let (mut found, mut files) = (Vec::new(), Vec::new());
    for word in line.split(|c: char| !(c.is_alphanumeric() || "_:/.".contains(c))) {
        let Some((file, test)) = word.trim_end_matches(['.', ':']).rsplit_once("::") else { continue };
        files = match file.split_once("::") {
            _ if file.is_empty() => files,
            None if file.contains('/') => vec![root.join(file)],
            Some((room, file)) if is_room(room) => {
                PROGRAMS.map(|program| root.join(program).join(room).join(format!("{file}.rs"))).to_vec()
            }
            _ => Vec::new(),
        };
        if !files.is_empty() {
            found.push((test, files.clone()));
        }
    }
    found
}

/// Has a file a function of that name?
fn has(file: &Path, function: &str) -> bool {
    fs::read_to_string(file).is_ok_and(|text| text.contains(&format!("fn {function}(")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    fn root() -> PathBuf {
        Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
    }

    fn missing_in(text: &str) -> Vec<(usize, String)> {
        missing(&root(), text)
    }

    #[test]
    fn files_and_folders_in_backticks_must_be_there() {
        let text = "see `src/lib.rs`, `tests/programs/`, `src/*/x.rs`, `tests/cases/NAME.c`, `docs/schema.md: a line`";
        assert_eq!(missing_in(text), []);
        assert_eq!(missing_in("src/gone.rs\n\n```\n`src/gone.rs`\n```\n\n`target/x` `fuzz/artifacts/TARGET`"), []);
        let gone = |path: &str| vec![(2, format!("there is no {path}"))];
        assert_eq!(missing_in("\n`src/gone.rs`"), gone("src/gone.rs"));
        assert_eq!(missing_in("\n`cat src/lib.rs src/gone/NAME.rs`"), gone("src/gone/NAME.rs"));
        assert_eq!(missing_in("\n`src/lib.rs/`"), gone("src/lib.rs/"));
    }

    #[test]
    fn tests_must_be_functions_of_the_files_that_are_named() {
        let here = "xtask/src/references.rs::tests_must_be_functions_of_the_files_that_are_named";
        assert_eq!(missing_in(&format!("| {here}, ::files_and_folders_in_backticks_must_be_there |")), []);
        assert_eq!(missing_in("`datasets::schema_doc::every_view_is_named`. Not `Span::new` or sim::Solver::step"), []);
        let gone = (1, "there is no test gone in the file that is named".to_owned());
        assert_eq!(missing_in(&format!("{here}, ::gone")), std::slice::from_ref(&gone));
        assert_eq!(missing_in("datasets::schema_doc::gone"), std::slice::from_ref(&gone));
        assert_eq!(missing_in("src/gone.rs::gone"), [gone]);
    }

    #[test]
    fn the_kernel_side_describes_its_maps_and_programs() {
        let read = |name: &str| fs::read_to_string(root().join(name)).unwrap();
        let (readme, skeleton) = (read("bpf/README.md"), read("bpf/skeleton/iotrace.rs"));
        let declared = skeleton.lines().filter_map(|line| line.strip_prefix("pub iot_")?.split_once(": libbpf_rs::"));
        let names: BTreeSet<String> = declared.map(|(name, _)| format!("iot_{name}")).collect();
        assert!(names.contains("iot_targets") && names.contains("iot_sys_enter"), "{names:?}");
        // Copies of a program are "`iot_rq_issue0` to `2`".
        let copies = |name: &str| format!("`{}0` to `2`", name.trim_end_matches(['0', '1', '2']));
        let is_there = |name: &String| readme.contains(&format!("`{name}`")) || readme.contains(&copies(name));
        assert_eq!(names.iter().filter(|name| !is_there(name)).collect::<Vec<_>>(), [] as [&String; 0]);
    }
}
