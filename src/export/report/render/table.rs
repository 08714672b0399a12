//! Tables of a report: typed cells, which text, markdown and CSV show each in their way.

use std::cmp::Ordering;

use anyhow::Result;

use crate::base::text::{bytes, columns, cut_end, cut_middle, escape, percent, ratio, time, wrapped};
use crate::export::report::Bytes;
use crate::export::report::render::style::{Line, Tone};

/// The least width that names and paths are cut to before columns are left out.
const NAME_MIN: usize = 20;
/// Columns of a line before the table.
const INDENT: usize = 2;

/// A value.
#[derive(Debug, Clone, PartialEq)]
pub enum Value {
    /// Has none.
    Empty,
    /// There is one, and it is not known.
    Unknown,
    Count(i64),
    /// Of a rank, process or the like: no amount.
    Number(i64),
    Bytes(i64),
    PerSecond(i64),
    Ns(i64),
    Share(f64),
    Times(f64),
    /// Of unknown origin: escaped when it is shown.
    Name(String),
    Path(String),
}

/// A value, and how much it can be trusted.
#[derive(Debug, Clone, PartialEq)]
pub struct Cell {
    value: Value,
    /// Loss could have changed it: `~`.
    unsure: bool,
    /// A sum to which some calls add an unknown part: `+?`.
    partly: bool,
}

impl From<Value> for Cell {
    fn from(value: Value) -> Self {
        Self { value, unsure: false, partly: false }
    }
}

impl From<Bytes> for Cell {
    fn from(of: Bytes) -> Self {
        let value = match (of.sum, of.unknown_calls) {
            (None, 0) => Value::Empty,
            (None, _) => Value::Unknown,
            (Some(n), _) => Value::Bytes(n),
        };
        Self { value, unsure: false, partly: of.unknown_calls > 0 && of.sum.is_some() }
    }
}

impl Cell {
    /// A value that there may be.
    pub fn of<T>(value: Option<T>, kind: fn(T) -> Value) -> Self {
        value.map_or(Value::Empty, kind).into()
    }

    pub fn name(text: impl Into<String>) -> Self {
        Value::Name(text.into()).into()
    }

    /// Marked where it is not complete.
    #[must_use]
    pub const fn sure(mut self, complete: bool) -> Self {
        self.unsure = !complete;
        self
    }

    /// Nothing to see: of such cells only a column is left out.
    const fn is_blank(&self) -> bool {
        matches!(self.value, Value::Empty | Value::Count(0) | Value::Bytes(0) | Value::Ns(0))
    }

    /// For people.
    fn text(&self) -> String {
        let text = match &self.value {
            Value::Empty | Value::Count(0) => return "-".to_owned(),
            Value::Unknown => return "unknown".to_owned(),
            Value::Name(text) | Value::Path(text) => return escape(text),
            Value::Number(n) => return n.to_string(),
            Value::Count(n) => n.to_string(),
            Value::Bytes(n) => bytes(*n),
            Value::PerSecond(n) => format!("{}/s", bytes(*n)),
            Value::Ns(ns) => time(*ns),
            Value::Share(part) => percent(*part),
            Value::Times(times) => ratio(*times),
        };
        format!("{}{text}{}", if self.unsure { "~" } else { "" }, if self.partly { " +?" } else { "" })
    }

    /// For programs: numbers in the unit of the column, nothing where there is none.
    fn raw(&self) -> String {
        match &self.value {
            Value::Empty | Value::Unknown => String::new(),
            Value::Name(text) | Value::Path(text) => escape(text),
            Value::Count(n) | Value::Number(n) | Value::Bytes(n) | Value::PerSecond(n) | Value::Ns(n) => n.to_string(),
            Value::Share(x) | Value::Times(x) => x.to_string(),
        }
    }

    fn amount(&self) -> Option<f64> {
        match self.value {
            Value::Empty | Value::Unknown | Value::Name(_) | Value::Path(_) => None,
            Value::Count(n) | Value::Number(n) | Value::Bytes(n) | Value::PerSecond(n) | Value::Ns(n) => Some(n as f64),
            Value::Share(x) | Value::Times(x) => Some(x),
        }
    }

    fn label(&self) -> Option<&str> {
        match &self.value {
            Value::Name(text) | Value::Path(text) => Some(text),
            _ => None,
        }
    }

    /// The greatest first, names in their order, and what has no value last.
    fn order(&self, other: &Self) -> Ordering {
        let names = in_order(self.label(), other.label(), Ord::cmp);
        names.then_with(|| in_order(self.amount(), other.amount(), |a, b| b.total_cmp(a)))
    }
}

/// What is there before what is not.
fn in_order<T>(one: Option<T>, other: Option<T>, order: impl Fn(&T, &T) -> Ordering) -> Ordering {
    match (one, other) {
        (Some(one), Some(other)) => order(&one, &other),
        (one, other) => other.is_some().cmp(&one.is_some()),
    }
}

/// How a column is set.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Set {
    Right,
    /// The end is cut when the table is too wide.
    Name,
    /// The middle is.
    Path,
}

/// A column.
#[derive(Debug, Clone, Copy)]
pub struct Column {
    /// For `--sort` and in CSV; `_ns` and the like name the unit.
    pub key: &'static str,
    title: &'static str,
    set: Set,
    /// When it goes from a table that is too wide (0: never; the highest goes first).
    drop: u8,
    tone: Tone,
}

impl Column {
    pub const fn number(key: &'static str, title: &'static str, drop: u8) -> Self {
        Self { key, title, set: Set::Right, drop, tone: Tone::Plain }
    }

    pub const fn name(key: &'static str, title: &'static str, drop: u8) -> Self {
        Self { key, title, set: Set::Name, drop, tone: Tone::Plain }
    }

    pub const fn path(key: &'static str, title: &'static str) -> Self {
        Self { key, title, set: Set::Path, drop: 0, tone: Tone::Plain }
    }

    pub const fn tone(mut self, tone: Tone) -> Self {
        self.tone = tone;
        self
    }

    fn is(&self, name: &str) -> bool {
        self.key == name || self.title == name
    }
}

/// The rows of a table. There can be very many, of which few are shown: cells are made when they are.
pub struct Rows<'a> {
    order: Vec<usize>,
    row: Box<dyn Fn(usize) -> Vec<Cell> + 'a>,
}

impl<'a> Rows<'a> {
    /// So many, each by its number.
    pub fn of(count: usize, row: impl Fn(usize) -> Vec<Cell> + 'a) -> Self {
        Self { order: (0..count).collect(), row: Box::new(row) }
    }

    const fn len(&self) -> usize {
        self.order.len()
    }

    fn first(&self, most: usize) -> impl Iterator<Item = Vec<Cell>> {
        self.order.iter().take(most).map(|at| (self.row)(*at))
    }

    /// Sorts by a column all but so many, and those.
    fn sort(&mut self, column: usize, last: usize) {
        let of = |at: &usize| ((self.row)(*at).into_iter().nth(column), *at);
        let mut cells: Vec<(Option<Cell>, usize)> = self.order.iter().map(of).collect();
        let (rows, last) = cells.split_at_mut(self.order.len().saturating_sub(last));
        for part in [rows, last] {
            part.sort_by(|a, b| match (&a.0, &b.0) {
                (Some(a), Some(b)) => a.order(b),
                _ => Ordering::Equal,
            });
        }
        self.order = cells.into_iter().map(|(_, at)| at).collect();
    }
}

impl Default for Rows<'_> {
    fn default() -> Self {
        Vec::new().into()
    }
}

impl From<Vec<Vec<Cell>>> for Rows<'_> {
    fn from(rows: Vec<Vec<Cell>>) -> Self {
        Self::of(rows.len(), move |at| rows[at].clone())
    }
}

impl FromIterator<Vec<Cell>> for Rows<'_> {
    fn from_iter<T: IntoIterator<Item = Vec<Cell>>>(rows: T) -> Self {
        rows.into_iter().collect::<Vec<_>>().into()
    }
}

/// Rows of one kind.
#[derive(Default)]
pub struct Table<'a> {
    pub head: Vec<Column>,
    pub rows: Rows<'a>,
    /// So many of the rows stay behind all others however these are sorted.
    pub last: usize,
    /// Rows of text without `--top`.
    pub most: usize,
    /// Rows that there are besides.
    pub more: usize,
    /// Lines below it.
    pub foot: Vec<String>,
}

impl Table<'_> {
    /// The columns, for `--sort`.
    pub fn keys(&self) -> impl Iterator<Item = &'static str> {
        self.head.iter().map(|column| column.key)
    }

    /// Sorts by a column; false when there is none of that name.
    pub fn sort(&mut self, name: &str) -> bool {
        let Some(at) = self.head.iter().position(|column| column.is(name)) else { return false };
        self.rows.sort(at, self.last);
        true
    }

    /// At most `width` columns: blank columns go, then those that matter least, then names are cut.
    pub fn lines(&self, width: usize, top: Option<usize>) -> Vec<Line> {
        let rows: Vec<Vec<Cell>> = self.rows.first(top.unwrap_or(self.most)).collect();
        let texts: Vec<Vec<String>> = rows.iter().map(|row| row.iter().map(Cell::text).collect()).collect();
        let filled = |at: &usize| rows.iter().any(|row| row.get(*at).is_some_and(|cell| !cell.is_blank()));
        let shown: Vec<usize> = (0..self.head.len()).filter(filled).collect();
        let (shown, widths) = self.fit(shown, &texts, width);
        let mut lines = Vec::new();
        if !shown.is_empty() {
            let titles: Vec<String> = self.head.iter().map(|column| column.title.to_owned()).collect();
            lines.push(self.line(&titles, &shown, &widths, Some(Tone::Dim)));
            lines.extend(texts.iter().map(|row| self.line(row, &shown, &widths, None)));
        }
        let more = self.more.saturating_add(self.rows.len() - rows.len());
        if more > 0 {
            lines.push(Line::of(Tone::Dim, format!("  {more} more (--top)")));
        }
        let foot = self.foot.iter().flat_map(|line| wrapped(&format!("  {line}"), width));
        lines.extend(foot.map(Line::plain));
        lines
    }

    /// Which of the columns fit, and how wide each is.
    fn fit(&self, mut shown: Vec<usize>, texts: &[Vec<String>], width: usize) -> (Vec<usize>, Vec<usize>) {
        let cell = |row: &Vec<String>, at: usize| row.get(at).map_or(0, |text| columns(text));
        let natural =
            |at: usize| texts.iter().map(|row| cell(row, at)).max().unwrap_or(0).max(columns(self.head[at].title));
        let is_right = |at: usize| self.head[at].set == Set::Right;
        let least = |at: usize| if is_right(at) { natural(at) } else { natural(at).min(NAME_MIN) };
        let total = |shown: &[usize], width_of: &dyn Fn(usize) -> usize| {
            INDENT + shown.iter().map(|at| width_of(*at)).sum::<usize>() + 2 * shown.len().saturating_sub(1)
        };
        while total(&shown, &least) > width {
            let goes = shown.iter().copied().filter(|at| self.head[*at].drop > 0).max_by_key(|at| self.head[*at].drop);
            match goes {
                Some(out) => shown.retain(|at| *at != out),
                None => break,
            }
        }
        let mut widths: Vec<usize> = shown.iter().map(|at| natural(*at)).collect();
        let mut over = total(&shown, &natural).saturating_sub(width);
        for (slot, at) in shown.iter().enumerate().rev().filter(|(_, at)| !is_right(**at)) {
            let give = over.min(widths[slot] - least(*at));
            widths[slot] -= give;
            over -= give;
        }
        (shown, widths)
    }

    fn line(&self, texts: &[String], shown: &[usize], widths: &[usize], tone: Option<Tone>) -> Line {
        let mut line = Line::plain(" ".repeat(INDENT));
        for (slot, (at, width)) in shown.iter().zip(widths).enumerate() {
            let (text, column) = (texts.get(*at).map_or("", String::as_str), &self.head[*at]);
            let text = if column.set == Set::Path { cut_middle(text, *width) } else { cut_end(text, *width) };
            let pad = " ".repeat(width.saturating_sub(columns(&text)));
            let gap = if slot == 0 { "" } else { "  " };
            let own = if text == "-" { Tone::Dim } else { column.tone };
            let (before, after) = if column.set == Set::Right { (pad, String::new()) } else { (String::new(), pad) };
            line = line.then(Tone::Plain, format!("{gap}{before}")).then(tone.unwrap_or(own), text);
            line = line.then(Tone::Plain, after);
        }
        line
    }

    /// As GitHub's Markdown has it.
    pub fn markdown(&self, top: Option<usize>) -> String {
        let safe = |text: &str| text.replace('\\', "\\\\").replace('|', "\\|").replace('<', "&lt;");
        let shown: Vec<Vec<Cell>> = self.rows.first(top.unwrap_or(self.most)).collect();
        let filled = |at: &usize| shown.iter().any(|row| row.get(*at).is_some_and(|cell| !cell.is_blank()));
        let at: Vec<usize> = (0..self.head.len()).filter(filled).collect();
        let row = |cells: Vec<String>| format!("| {} |\n", cells.join(" | "));
        let mut out = String::new();
        if !at.is_empty() {
            out += &row(at.iter().map(|at| safe(self.head[*at].title)).collect());
            let rule = |at: &usize| if self.head[*at].set == Set::Right { "---:" } else { "---" }.to_owned();
            out += &row(at.iter().map(rule).collect());
        }
        for cells in &shown {
            out += &row(at.iter().map(|at| cells.get(*at).map_or(String::new(), |cell| safe(&cell.text()))).collect());
        }
        for line in &self.foot {
            out += &format!("\n{}\n", safe(line));
        }
        out
    }

    /// All rows and columns; `complete` is false where loss could have changed one of a row.
    pub fn csv(&self, top: Option<usize>) -> Result<String> {
        let mut out = csv::Writer::from_writer(Vec::new());
        out.write_record(self.keys().chain(["complete"]))?;
        for row in self.rows.first(top.unwrap_or(usize::MAX)) {
            let complete = !row.iter().any(|cell| cell.unsure || cell.partly);
            out.write_record(row.iter().map(Cell::raw).chain([complete.to_string()]))?;
        }
        Ok(String::from_utf8(out.into_inner()?)?)
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    fn table() -> Table<'static> {
        let path = |path: &str| Cell::from(Value::Path(path.to_owned()));
        Table {
            head: vec![
                Column::number("time_ns", "time", 0),
                Column::number("calls", "calls", 1),
                Column::number("errors", "errors", 0),
                Column::path("path", "file"),
            ],
            rows: vec![
                vec![Value::Ns(1500).into(), Value::Count(2).into(), Value::Count(0).into(), path("/a|b,c/\x1b.h5")],
                vec![
                    Cell::from(Value::Ns(900)).sure(false),
                    Value::Count(30).into(),
                    Value::Empty.into(),
                    path("/scratch/project/experiment/run-0001/out.h5"),
                ],
                vec![Value::Ns(9000).into(), Value::Count(1).into(), Value::Empty.into(), path("/lib/libc.so.6")],
            ]
            .into(),
            last: 1,
            most: 2,
            ..Table::default()
        }
    }

    fn text(width: usize) -> Vec<String> {
        table().lines(width, None).iter().map(|line| line.print(width, false)).collect()
    }

    #[test]
    fn blank_columns_go_and_paths_lose_their_middle() {
        let wide = text(100);
        assert_eq!(wide[0], "     time  calls  file");
        assert_eq!(wide[1], "  1.50 us      2  /a|b,c/\\x1b.h5");
        assert_eq!(wide[3], "  1 more (--top)");
        assert_eq!(text(50)[2], "  ~900 ns     30  /scratch/pro…ent/run-0001/out.h5");
        assert_eq!(text(36)[2], "  ~900 ns  /scratch/…run-0001/out.h5");
    }

    #[test]
    fn what_is_last_stays_last() {
        let mut table = table();
        assert!(table.sort("calls") && table.sort("file") && table.sort("calls") && !table.sort("rank"));
        let csv = table.csv(None).unwrap();
        let rows: Vec<_> = csv.lines().collect();
        assert_eq!(rows[0], "time_ns,calls,errors,path,complete");
        assert_eq!(rows[1], "900,30,,/scratch/project/experiment/run-0001/out.h5,false");
        assert_eq!(rows[2], "1500,2,0,\"/a|b,c/\\x1b.h5\",true");
        assert_eq!(rows[3], "9000,1,,/lib/libc.so.6,true");
    }

    /// An order that is none makes a sort panic.
    #[test]
    fn what_has_no_value_comes_after_all_that_has_one() {
        let path = |text: &str| Cell::of((!text.is_empty()).then(|| text.to_owned()), Value::Path);
        let sorted = |paths: &[&str]| {
            let mut cells: Vec<Cell> = paths.iter().map(|text| path(text)).collect();
            cells.sort_by(Cell::order);
            cells.iter().map(Cell::raw).collect::<Vec<_>>()
        };
        assert_eq!(sorted(&["/b", "", "/a"]), ["/a", "/b", ""]);
        let many = [vec!["/c"], vec!["/b"; 5], vec![""; 6], vec!["/a"; 12]].concat();
        assert_eq!(sorted(&many), [vec!["/a"; 12], vec!["/b"; 5], vec!["/c"], vec![""; 6]].concat());
        let mut numbers =
            [Value::Share(0.5), Value::Empty, Value::Share(2.0), Value::Unknown, Value::Share(1.0)].map(Cell::from);
        numbers.sort_by(Cell::order);
        assert_eq!(numbers.map(|cell| cell.raw()), ["2", "1", "0.5", "", ""]);
    }

    #[test]
    fn markdown_is_a_table_whatever_names_hold() {
        assert_eq!(
            table().markdown(Some(1)),
            "| time | calls | file |\n| ---: | ---: | --- |\n| 1.50 us | 2 | /a\\|b,c/\\\\x1b.h5 |\n"
        );
    }
}
