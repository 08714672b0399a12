//! A report for people, and its tables for programs: from the report alone.

mod sections;
mod style;
mod table;
mod tables;
mod text;

use anyhow::Result;

use crate::base::text::wrapped;
use crate::base::usage::{bail, hint};
use crate::export::report::Report;
use crate::export::report::render::style::{Line, Tone};
pub use sections::{FINDINGS, SECTIONS, Section, section};
use table::Table;

/// Columns of the text that has no terminal to fit.
pub const WIDTH: usize = 120;
/// The least width that is laid out, and the greatest width of sentences.
const NARROWEST: usize = 60;

/// How a report is to look.
#[derive(Clone, Default)]
pub struct Look {
    /// Columns; `None`: as many as paths need.
    pub width: Option<usize>,
    pub colours: bool,
    /// Sections in place of the usual ones.
    pub sections: Option<Vec<&'static Section>>,
    /// Rows of a table.
    pub top: Option<usize>,
    /// The column that tables are sorted by.
    pub sort: Option<String>,
    /// All that is known of coverage and losses.
    pub coverage: bool,
}

impl Look {
    fn columns(&self) -> usize {
        self.width.map_or(usize::MAX, |width| width.max(NARROWEST))
    }

    /// Are findings the only section?
    pub fn only_findings(&self) -> bool {
        self.sections.as_deref().is_some_and(|chosen| chosen.iter().all(|section| section.name == FINDINGS))
    }

    /// Columns of sentences.
    fn prose(&self) -> usize {
        self.columns().min(WIDTH)
    }

    /// Lines of a sentence.
    fn sentence(&self, tone: Tone, text: &str) -> Vec<Line> {
        wrapped(text, self.prose()).into_iter().map(|line| Line::of(tone, line)).collect()
    }
}

/// A mark beside a figure that loss could have changed.
fn mark(whole: bool, figure: String) -> String {
    if whole || figure.is_empty() || figure == "-" { figure } else { format!("~{figure}") }
}

fn plural(n: usize, one: &str, many: &str) -> String {
    if n == 1 { format!("1 {one}") } else { format!("{n} {many}") }
}

impl Report {
    /// The report as text with the usual sections, no line over `width` columns (60 at least).
    pub fn text(&self, width: usize) -> String {
        let look = Look { width: Some(width), ..Look::default() };
        self.sections(&look).map(|section| self.section_text(section, &look, &(section.table)(self))).collect()
    }

    /// The report as text.
    ///
    /// # Errors
    /// When no section has the column to sort by.
    pub fn shown(&self, look: &Look) -> Result<String> {
        Ok(self.tables(look)?.into_iter().map(|(section, table)| self.section_text(section, look, &table)).collect())
    }

    /// The same tables in GitHub's Markdown.
    ///
    /// # Errors
    /// As of [`Self::shown`].
    pub fn markdown(&self, look: &Look) -> Result<String> {
        let part = |(section, table): (&Section, Table<'_>)| {
            format!("## {}\n\n{}\n", (section.title)(self), table.markdown(look.top))
        };
        Ok(self.tables(look)?.into_iter().map(part).collect())
    }

    /// One table as CSV.
    ///
    /// # Errors
    /// When not one section was chosen; as of [`Self::shown`].
    pub fn csv(&self, look: &Look) -> Result<String> {
        let mut tables = self.tables(look)?;
        match (look.sections.is_some(), tables.pop()) {
            (true, Some((_, table))) if tables.is_empty() => table.csv(look.top),
            _ => {
                let names: Vec<_> = SECTIONS.iter().map(|section| section.name).collect();
                bail!("CSV is one table: choose it with --section, one of {}", names.join(", "))
            }
        }
    }

    fn sections<'a>(&'a self, look: &'a Look) -> impl Iterator<Item = &'static Section> + 'a {
        let chosen = look.sections.iter().flatten().copied();
        let usual = SECTIONS.iter().filter(|section| look.sections.is_none() && (section.usual)(self));
        chosen.chain(usual)
    }

    fn tables(&self, look: &Look) -> Result<Vec<(&'static Section, Table<'_>)>> {
        let mut tables: Vec<_> = self.sections(look).map(|section| (section, (section.table)(self))).collect();
        if let Some(by) = &look.sort {
            // Each is tried: a column that all have sorts all.
            let sorted = tables.iter_mut().fold(false, |any, (_, table)| table.sort(by) || any);
            if !sorted {
                let mut keys: Vec<_> = tables.iter().flat_map(|(_, table)| table.keys()).collect();
                keys.sort_unstable();
                keys.dedup();
                // `_ns` may be left out.
                let titles = keys.iter().filter_map(|key| key.strip_suffix("_ns"));
                let similar = hint(by, titles.chain(keys.iter().copied()));
                bail!(
                    "--sort {by}: no table of this report has such a column{similar}; columns are: {}",
                    keys.join(", ")
                );
            }
        }
        Ok(tables)
    }

    fn section_text(&self, section: &Section, look: &Look, table: &Table<'_>) -> String {
        let lines = match section.text {
            Some(text) => text(self, look),
            None => table.lines(look.columns(), look.top),
        };
        let print = |line: &Line| line.print(look.columns(), look.colours) + "\n";
        let mut out: String = lines.iter().map(print).collect();
        // What ran needs no title.
        if section.name != SECTIONS[0].name {
            let title: String = look.sentence(Tone::Strong, &(section.title)(self)).iter().map(print).collect();
            let none = if lines.is_empty() { "  nothing\n" } else { "" };
            out = format!("\n{title}{none}{out}");
        }
        out
    }
}
