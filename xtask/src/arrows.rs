//! Which part of the program may use which: imports lead from what is on top to what is below, and never in a circle.

use anyhow::{Context, Result, bail};
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

/// Top-level modules from below to the top. Each uses those of rows before its own.
const ROWS: &[&[&str]] = &[
    &["vocabulary", "base"],
    &["skel"],
    &["catalog", "node"],
    &["rows"],
    &["event", "inflight"],
    &["correlate", "loader"],
    &["analysis"],
    &["export"],
    &["summary", "metrics", "compare", "runs", "state"],
    &["cluster", "baseline"],
    &["batch", "query", "replay_code", "tui", "whatif"],
    &["tune"],
    &["cli"],
    &["config", "manual", "probes", "replay", "rules"],
    &["doctor"],
    &["record"],
    &["sql", "top"],
];

/// Modules by path (`correlate/call`), each with those that it uses.
type Uses = BTreeMap<String, BTreeSet<String>>;

/// Checks the modules below a directory of sources.
pub fn check(src: &Path) -> Result<()> {
    let uses = uses(&read(src)?);
    let wrong: Vec<String> = upward(&uses).into_iter().chain(circles(&uses)).collect();
    if wrong.is_empty() {
        return Ok(());
    }
    bail!("imports that lead the wrong way (allowed directions: xtask/src/arrows.rs):\n  {}", wrong.join("\n  "))
}

/// Imports of a top-level module that is not below the importing one.
fn upward(uses: &Uses) -> Vec<String> {
    let row = |module: &str| ROWS.iter().position(|row| row.contains(&top(module)));
    let mut wrong = Vec::new();
    for (from, to) in uses.iter().flat_map(|(from, all)| all.iter().map(move |to| (from, to))) {
        match (row(from), row(to)) {
            _ if top(from) == top(to) => {}
            (None, _) => wrong.push(format!("{from} is in no row")),
            (Some(_), None) => wrong.push(format!("{to} is in no row")),
            (Some(own), Some(other)) if own <= other => wrong.push(format!("{from} uses {to}")),
            (Some(_), Some(_)) => {}
        }
    }
    wrong
}

fn top(module: &str) -> &str {
    module.split('/').next().unwrap_or(module)
}

/// Modules that use each other, over others or directly. A module and the ones that it consists of may.
fn circles(uses: &Uses) -> Vec<String> {
    let mut found = BTreeSet::new();
    for module in uses.keys() {
        let (mut reached, mut next) = (BTreeSet::new(), vec![module]);
        while let Some(at) = next.pop() {
            let to = uses.get(at).into_iter().flatten().filter(|to| !is_part(at, to));
            next.extend(to.filter(|to| reached.insert((*to).clone())));
        }
        if reached.contains(module) {
            let back =
                |other: &&String| uses.get(*other).is_some_and(|to| to.contains(module) && !is_part(other, module));
            let by: Vec<&str> = reached.iter().filter(back).map(String::as_str).collect();
            found.insert(format!("{module} uses itself over {}", by.join(" and ")));
        }
    }
    found.into_iter().collect()
}

/// Is one of them part of the other?
fn is_part(one: &str, other: &str) -> bool {
    let below = |inner: &str, outer: &str| inner.strip_prefix(outer).is_some_and(|rest| rest.starts_with('/'));
    below(one, other) || below(other, one)
}

/// The texts of all modules that are not tests, by path.
fn read(src: &Path) -> Result<BTreeMap<String, String>> {
    let (mut texts, mut tests) = (BTreeMap::new(), BTreeSet::new());
    let mut directories = vec![(src.to_owned(), String::new())];
    while let Some((directory, name)) = directories.pop() {
        for entry in fs::read_dir(&directory).with_context(|| format!("cannot list {}", directory.display()))? {
            let path = entry.with_context(|| format!("cannot list {}", directory.display()))?.path();
            let Some(stem) = path.file_stem().and_then(|stem| stem.to_str()) else { continue };
            let inner = if name.is_empty() { stem.to_owned() } else { format!("{name}/{stem}") };
            if path.is_dir() {
                directories.push((path, inner));
                continue;
            }
            let module = match stem {
                "mod" => name.clone(),
                // What these declare is on top of everything.
                "lib" | "main" => continue,
                _ => inner,
            };
            let text = fs::read_to_string(&path).with_context(|| format!("cannot read {}", path.display()))?;
            let (code, test_modules) = code(&text);
            tests.extend(test_modules.iter().map(|test| format!("{module}/{test}")));
            texts.insert(module, code);
        }
    }
    let is_test = |module: &str| tests.iter().any(|test| module == test || is_part(module, test) && module > test);
    texts.retain(|module, _| !is_test(module));
    Ok(texts)
}

/// The code of a file without comments and without the tests in it, and the names of modules that are tests.
fn code(text: &str) -> (String, Vec<String>) {
    let (mut code, mut tests, mut test) = (String::new(), Vec::new(), false);
    for line in text.lines() {
        let line = line.split("//").next().unwrap_or_default();
        let words: Vec<&str> = line.trim_start_matches("pub ").split_whitespace().collect();
        match (test, words.as_slice()) {
            (_, ["#[cfg(test)]"]) => test = true,
            // Tests of a file are at its end.
            (true, ["mod", _, "{"]) => break,
            (true, ["mod", name]) => {
                tests.extend(name.strip_suffix(';').map(str::to_owned));
                test = false;
            }
            (true, [attribute, ..]) if attribute.starts_with("#[") => {}
            _ => test = false,
        }
        code += line;
        code.push('\n');
    }
    (code, tests)
}

/// Which module uses which.
fn uses(texts: &BTreeMap<String, String>) -> Uses {
    let module = |path: &[String]| {
        (1..=path.len()).rev().map(|n| path[..n].join("/")).find(|name| texts.contains_key(name.as_str()))
    };
    let of = |(name, text): (&String, &String)| {
        let own: Vec<String> = name.split('/').map(str::to_owned).collect();
        let used = named(text).into_iter().filter_map(|path| module(&absolute(&own, &path)));
        (name.clone(), used.filter(|used| used != name).collect())
    };
    texts.iter().map(of).collect()
}

/// A path that begins with `crate`, `self` or `super` from the root.
fn absolute(own: &[String], path: &[String]) -> Vec<String> {
    let supers = path.iter().take_while(|part| *part == "super").count();
    let base = match path.first().map(String::as_str) {
        Some("crate") => &[],
        Some("super") => &own[..own.len().saturating_sub(supers)],
        _ => own,
    };
    base.iter().chain(&path[supers.max(1)..]).cloned().collect()
}

/// The paths of a code that begin with `crate`, `self` or `super`, also those of groups.
fn named(code: &str) -> Vec<Vec<String>> {
    let mut found = Vec::new();
    for (at, _) in code.match_indices("::") {
        let before = &code[..at];
        let start = before.rfind(|c: char| !is_name(c)).map_or(0, |i| i + 1);
        let begins = ["crate", "self", "super"].contains(&&before[start..]) && !before[..start].ends_with("::");
        if begins {
            path(&code[start..], Vec::new(), &mut found);
        }
    }
    found
}

fn is_name(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}

/// Reads a path, or each of a group, and returns what follows.
fn path<'a>(code: &'a str, mut before: Vec<String>, found: &mut Vec<Vec<String>>) -> &'a str {
    let code = code.trim_start();
    let end = code.find(|c: char| !is_name(c)).unwrap_or(code.len());
    let (name, rest) = code.split_at(end);
    before.extend((!name.is_empty()).then(|| name.to_owned()));
    let Some(rest) = rest.strip_prefix("::") else {
        found.push(before);
        return rest;
    };
    let Some(mut rest) = rest.strip_prefix('{') else { return path(rest, before, found) };
    loop {
        rest = path(rest, before.clone(), found);
        // Up to the next one of this group: over `as NAME`, `*`.
        let Some(end) = rest.find([',', '}']) else { return "" };
        let closes = rest[end..].starts_with('}');
        rest = rest[end + 1..].trim_start();
        if closes || rest.starts_with('}') {
            return if closes { rest } else { &rest[1..] };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all(texts: &[(&str, &str)]) -> Uses {
        uses(&texts.iter().map(|(name, text)| ((*name).to_owned(), code(text).0)).collect())
    }

    #[test]
    fn the_program_keeps_to_it() {
        check(&Path::new(env!("CARGO_MANIFEST_DIR")).join("../src")).unwrap();
    }

    #[test]
    fn paths_are_read_with_their_groups() {
        let text = "use crate::a::{self, b::{C, d}, e as f};\nuse super::x;\nfn g() { self::y::z() } // crate::no\n";
        let found: Vec<String> = named(&code(text).0).iter().map(|path| path.join("::")).collect();
        let wanted = ["crate::a::self", "crate::a::b::C", "crate::a::b::d", "crate::a::e", "super::x", "self::y::z"];
        assert_eq!(found, wanted);
    }

    #[test]
    fn an_arrow_that_points_back_is_found() {
        let up = all(&[
            ("correlate/call", "use crate::export::X;"),
            ("export", "use crate::vocabulary::Layer;"),
            ("vocabulary", ""),
        ]);
        assert_eq!(upward(&up), ["correlate/call uses export"]);
        let beside = all(&[("correlate", "use crate::loader;"), ("loader", "")]);
        assert_eq!(upward(&beside), ["correlate uses loader"]);
        assert_eq!(upward(&all(&[("new", "use crate::vocabulary;"), ("vocabulary", "")])), ["new is in no row"]);
    }

    #[test]
    fn a_circle_is_found_and_parts_of_a_whole_are_none() {
        let round = all(&[("a/x", "use super::y::Y;"), ("a/y", "use super::z;"), ("a/z", "use crate::a::x::{X};")]);
        assert_eq!(circles(&round).len(), 3);
        let whole = all(&[("a", "use self::x::X;"), ("a/x", "use super::A;"), ("a/y", "use crate::a::x::X;")]);
        assert_eq!(circles(&whole), Vec::<String>::new());
        // Tests may use what they want.
        let test = all(&[("a/x", "#[cfg(test)]\nmod tests {\n    use crate::a::y::Y;\n}"), ("a/y", "use super::x;")]);
        assert_eq!(circles(&test), Vec::<String>::new());
    }
}
