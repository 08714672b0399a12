//! A comparison as text.

use crate::base::text::{Column, Set, bytes, cut_end, escape, table, time};
use crate::compare::condition::signed;
use crate::compare::{Change, Comparison, Figure, Found, Side, Unit};

/// Changes below this part are not shown, but for the run itself.
const LEAST: f64 = 0.05;
/// Seconds below which a difference is not shown.
const LEAST_S: f64 = 0.001;
/// Files that are shown.
const FILES: usize = 10;

/// Columns of figures; the last three are of several runs.
const FIGURES: &[Column] = &[
    ("figure", Set::Path, 0),
    ("A", Set::Right, 0),
    ("B", Set::Right, 0),
    ("change", Set::Right, 0),
    ("A from to", Set::Right, 2),
    ("B from to", Set::Right, 2),
    ("", Set::Name, 1),
];

/// All of it.
pub fn text(comparison: &Comparison, held: &[String], width: usize) -> String {
    let mut out = String::new();
    for (name, runs) in [("A", &comparison.a), ("B", &comparison.b)] {
        let names: Vec<String> = runs.iter().map(escape).collect();
        out += &cut_end(&format!("{name}  {}", names.join(", ")), width);
        out.push('\n');
    }
    for caveat in &comparison.caveats {
        out += &format!("{}\n", cut_end(&format!("WARNING: {}", escape(caveat)), width));
    }
    out += &figures(&comparison.figures, width);
    out += &findings(comparison, width);
    for condition in held {
        out += &format!("\nFAILED  {}\n", escape(condition));
    }
    out
}

fn figures(all: &[Figure], width: usize) -> String {
    let always = |figure: &Figure| matches!(figure.name.as_str(), "time" | "calls.time");
    let (mut files, mut unchanged, mut noise) = (0, 0, 0);
    let mut rows = Vec::new();
    for figure in all {
        if !always(figure) {
            if !differs(figure) {
                unchanged += 1;
                continue;
            }
            if figure.noise == Change::WithinNoise {
                noise += 1;
                continue;
            }
            if figure.name.starts_with("file.") {
                files += 1;
                if files > FILES {
                    continue;
                }
            }
        }
        rows.push(row(figure));
    }
    let several = all.iter().any(|figure| figure.a.runs > 1 || figure.b.runs > 1);
    let head = if several { FIGURES } else { &FIGURES[..4] };
    let mut out = format!("\n{}", table(head, &rows, width, 0));
    let left = [
        (unchanged, "changed by less than 5%"),
        (noise, "differ by no more than runs of one side do"),
        (files.saturating_sub(FILES), "more files"),
    ];
    for (n, what) in left.into_iter().filter(|(n, _)| *n > 0) {
        out += &format!("{n} {what}\n");
    }
    out
}

/// Is there a difference that somebody would look at?
fn differs(figure: &Figure) -> bool {
    let (a, b) = (figure.a.median, figure.b.median);
    let least = if figure.unit == Unit::Seconds { LEAST_S } else { 0.0 };
    (b - a).abs() > least && figure.change.is_none_or(|change| change.abs() >= LEAST)
}

fn row(figure: &Figure) -> Vec<String> {
    let Figure { name, unit, a, b, change, noise } = figure;
    let range = |side: &Side| {
        if side.runs > 1 {
            format!("{} {}", amount(*unit, side.least), amount(*unit, side.most))
        } else {
            String::new()
        }
    };
    let change = match change {
        Some(change) => signed(*change),
        None if b.median > 0.0 => "new".to_owned(),
        None => "-".to_owned(),
    };
    let noise = if *noise == Change::WithinNoise { "within the noise" } else { "" };
    vec![escape(name), amount(*unit, a.median), amount(*unit, b.median), change, range(a), range(b), noise.to_owned()]
}

fn amount(unit: Unit, value: f64) -> String {
    match unit {
        Unit::Seconds => time((value * 1e9) as i64),
        Unit::Bytes => bytes(value as i64),
        Unit::Count => format!("{}", value as i64),
    }
}

fn findings(comparison: &Comparison, width: usize) -> String {
    let Comparison { a, b, findings, .. } = comparison;
    if findings.is_empty() {
        return "\nnothing found in any run\n".to_owned();
    }
    let how = |found: &Found| match (found.a_runs, found.b_runs) {
        (0, _) => "new",
        (_, 0) => "gone",
        _ => "",
    };
    let side = |runs: usize, all: usize, s: Option<f64>| match (runs, s) {
        (0, _) => "-".to_owned(),
        (_, None) => format!("in {runs} of {all}"),
        (_, Some(s)) if all == 1 => amount(Unit::Seconds, s),
        (_, Some(s)) => format!("{} in {runs} of {all}", amount(Unit::Seconds, s)),
    };
    let rows: Vec<Vec<String>> = findings
        .iter()
        .map(|f| {
            let (a, b) = (side(f.a_runs, a.len(), f.a_s), side(f.b_runs, b.len(), f.b_s));
            vec![f.rule.to_owned(), a, b, how(f).to_owned()]
        })
        .collect();
    let head: &[Column] = &[("finding", Set::Name, 0), ("A", Set::Right, 0), ("B", Set::Right, 0), ("", Set::Name, 0)];
    format!("\n{}", table(head, &rows, width, 0))
}
