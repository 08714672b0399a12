//! Phases and libraries of the user that were not found: which files were looked into, and what was the matter with them.

use crate::catalog::{Catalog, Family};
use crate::loader::code::plan::Plan;
use crate::rows::Coverage;
use std::collections::{BTreeMap, BTreeSet};

/// Files named in a message.
const NAMED: usize = 3;

/// What is known of each phase, by its row of the catalog, and of each library.
#[derive(Debug, Default)]
pub struct Missing {
    phases: BTreeMap<u16, Looked>,
    seen: BTreeSet<Family>,
}

#[derive(Debug, Default)]
struct Looked {
    found: bool,
    /// The first of the files that do not have it, and why not.
    into: Vec<(String, String)>,
    /// The others.
    more: usize,
}

impl Missing {
    pub fn new(catalog: &Catalog) -> Self {
        let phases = (0_u16..).zip(catalog.rows()).filter(|(_, row)| {
            catalog.library(row.family).is_some_and(|l| l.is_phases() && matches!(l.family, Family::User(_)))
        });
        Self { phases: phases.map(|(spec, _)| (spec, Looked::default())).collect(), seen: BTreeSet::new() }
    }

    /// A file was looked into.
    pub fn classified(&mut self, path: &str, plan: &Plan, catalog: &Catalog) {
        self.seen.extend(plan.families.iter().copied());
        for (spec, looked) in &mut self.phases {
            let Some(row) = catalog.rows().get(usize::from(*spec)) else { continue };
            if let Some((_, why)) = plan.missing.iter().find(|(missing, _)| missing == spec) {
                looked.not_in(path, why);
            } else if plan.families.contains(&row.family) {
                looked.found = true;
            }
        }
    }

    /// A file could not be read.
    pub fn unreadable(&mut self, path: &str, why: &str, catalog: &Catalog) {
        for (spec, looked) in &mut self.phases {
            let library = catalog.rows().get(usize::from(*spec)).and_then(|row| catalog.library(row.family));
            // Whether it is a program is not known either.
            if library.is_some_and(|l| l.is(path, true, |_| false)) {
                looked.not_in(path, why);
            }
        }
    }

    /// Was a file found to be this library?
    pub fn saw(&self, family: Family) -> bool {
        self.seen.contains(&family)
    }

    /// A verdict on each phase that no file has.
    pub fn phases(&self, catalog: &Catalog) -> Vec<Coverage> {
        let verdict = |(spec, looked): (&u16, &Looked)| {
            let row = catalog.rows().get(usize::from(*spec)).filter(|_| !looked.found)?;
            let file = catalog.library(row.family).and_then(|l| l.file.as_ref());
            Some(Coverage {
                layer: row.layer,
                target: file.map(|f| f.text().to_owned()).unwrap_or_default(),
                symbol: row.symbol.to_owned(),
                tier: None,
                status: "absent",
                reason: Some(looked.reason(file.map(crate::catalog::library::Pattern::text), row.lines().is_some())),
                offset: None,
                insn: None,
            })
        };
        self.phases.iter().filter_map(verdict).collect()
    }
}

impl Looked {
    fn not_in(&mut self, path: &str, why: &str) {
        if self.into.len() < NAMED {
            self.into.push((path.to_owned(), why.to_owned()));
        } else {
            self.more += 1;
        }
    }

    fn reason(&self, file: Option<&str>, lines: bool) -> String {
        if self.into.is_empty() {
            return match file {
                Some(file) => format!("no traced process mapped a file {file}"),
                None => "no traced process executed a program that could be read".to_owned(),
            };
        }
        let shown = self.into.iter().map(|(path, why)| format!("{path} {why}"));
        let more = self.more;
        let rest = if more > 0 { format!(", nor do {more} more files have it") } else { String::new() };
        let hint = if lines {
            "compile the program with -g; lines of a library: SOURCE:FIRST-LAST@FILE"
        } else {
            "misspelt, inlined, or in another file: FUNCTION@FILE"
        };
        format!("{}{rest} ({hint})", shown.collect::<Vec<_>>().join(", "))
    }
}
