//! `--where`: what runs must be like.

use std::str::FromStr;

use crate::runs::row::{COLUMNS, Of, Run};
use crate::text::wall;

/// `NAME=VALUE`, `!=`, `~` (has that part), `>`, `<`.
#[derive(Debug, Clone)]
pub struct Condition {
    of: Of,
    is: Is,
    value: String,
    /// The same as a number, for columns that have one.
    number: f64,
}

#[derive(Debug, Clone, Copy, PartialEq)]
enum Is {
    Equal,
    NotEqual,
    With,
    Above,
    Below,
}

/// Two characters first: `!=` has a `=` in it.
const OPERATORS: [(&str, Is); 5] =
    [("!=", Is::NotEqual), ("=", Is::Equal), ("~", Is::With), (">", Is::Above), ("<", Is::Below)];
const TIMES: [(&str, f64); 5] = [("ms", 1e-3), ("s", 1.0), ("min", 60.0), ("h", 3600.0), ("d", 86_400.0)];
const SIZES: [(&str, f64); 5] =
    [("K", 1024.0), ("M", 1_048_576.0), ("G", 1_073_741_824.0), ("T", 1_099_511_627_776.0), ("", 1.0)];

impl FromStr for Condition {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let found = OPERATORS.iter().filter_map(|(sign, is)| Some((text.find(sign)?, *sign, *is)));
        let Some((at, sign, is)) = found.min_by_key(|(at, sign, _)| (*at, std::cmp::Reverse(sign.len()))) else {
            return Err("expected NAME=VALUE, NAME!=VALUE, NAME~PART, NAME>VALUE or NAME<VALUE".to_owned());
        };
        let (name, value) = (text[..at].trim(), text[at + sign.len()..].trim());
        let Some(column) = COLUMNS.iter().find(|column| column.name == name) else {
            let names: Vec<&str> = COLUMNS.iter().map(|column| column.name).collect();
            return Err(format!("{name:?} is none of {}", names.join(", ")));
        };
        let of = column.of;
        let (ordered, number) = match of {
            Of::Text(_) | Of::Texts(_) => (false, Some(0.0)),
            Of::Truth(_) => (false, ["no", "yes"].iter().position(|word| *word == value).map(|at| at as f64)),
            Of::Time(_) => (true, Some(0.0)),
            Of::Count(_) => (true, value.parse().ok()),
            Of::Bytes(_) => (true, with_unit(value, &SIZES)),
            Of::Seconds(_) => (true, with_unit(value, &TIMES)),
        };
        let number = number.ok_or_else(|| format!("{name}: {value:?} is no value: {}", example(of)))?;
        if !ordered && matches!(is, Is::Above | Is::Below) {
            return Err(format!("{name} has no order: use =, != or ~"));
        }
        if is == Is::With && !matches!(of, Of::Text(_) | Of::Texts(_) | Of::Time(_)) {
            return Err(format!("{name} has no parts: use =, !=, > or <"));
        }
        Ok(Self { of, is, value: value.to_owned(), number })
    }
}

fn with_unit(value: &str, units: &[(&str, f64)]) -> Option<f64> {
    let digits = value.find(|c: char| !(c.is_ascii_digit() || c == '.')).unwrap_or(value.len());
    let factor = units.iter().find(|(unit, _)| *unit == &value[digits..])?.1;
    Some(value[..digits].parse::<f64>().ok()? * factor)
}

fn example(of: Of) -> &'static str {
    match of {
        Of::Seconds(_) => "500ms, 30s, 5min, 2h",
        Of::Bytes(_) => "4096, 64K, 10M, 1G",
        Of::Truth(_) => "yes or no",
        _ => "a number",
    }
}

impl Condition {
    pub fn holds(&self, run: &Run) -> bool {
        match self.of {
            Of::Text(of) => self.of_text(of(run).unwrap_or("")),
            Of::Texts(of) => {
                let any = of(run)
                    .iter()
                    .any(|text| if self.is == Is::With { text.contains(&self.value) } else { *text == self.value });
                any != (self.is == Is::NotEqual)
            }
            // As it is shown, so that a part of it will do: 2026-11 is before 2026-11-01.
            Of::Time(of) => {
                let shown = wall(of(run));
                let shown = shown.get(..self.value.len()).unwrap_or(&shown);
                match self.is {
                    Is::Above => shown > self.value.as_str(),
                    Is::Below => shown < self.value.as_str(),
                    Is::With | Is::Equal => shown == self.value,
                    Is::NotEqual => shown != self.value,
                }
            }
            Of::Count(of) | Of::Bytes(of) => self.of_number(of(run) as f64),
            Of::Seconds(of) => of(run).is_some_and(|seconds| self.of_number(seconds)),
            Of::Truth(of) => self.of_number(f64::from(u8::from(of(run)))),
        }
    }

    fn of_text(&self, text: &str) -> bool {
        match self.is {
            Is::With => text.contains(&self.value),
            Is::NotEqual => text != self.value,
            _ => text == self.value,
        }
    }

    fn of_number(&self, number: f64) -> bool {
        match self.is {
            Is::Above => number > self.number,
            Is::Below => number < self.number,
            Is::NotEqual => (number - self.number).abs() > f64::EPSILON,
            Is::Equal | Is::With => (number - self.number).abs() <= f64::EPSILON,
        }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    fn run() -> Run {
        Run {
            user: Some("anna".into()),
            command: "mpirun -np 4 ./sim in.nc".into(),
            written_bytes: 3 << 30,
            duration_s: 90.0,
            finding: Some("sync-per-record".into()),
            findings: vec!["sync-per-record".into(), "small-transfers".into()],
            start_ns: 1_795_000_000_000_000_000,
            complete: true,
            ..Run::default()
        }
    }

    #[test]
    fn conditions_hold_by_value_unit_and_part() {
        for (text, holds) in [
            ("user=anna", true),
            ("user!=anna", false),
            ("job=7", false),
            ("job=", true),
            ("command~sim", true),
            ("command~=", false),
            ("written_bytes>2G", true),
            ("written_bytes<3145728K", false),
            ("written_bytes=3G", true),
            ("duration_s>1min", true),
            ("duration_s<1500ms", false),
            ("finding_s>0s", false),
            ("findings=small-transfers", true),
            ("findings~transfers", true),
            ("findings!=reread", true),
            ("start>2026", false),
            ("start=2026-11", true),
            ("start>2026-11-01", true),
            ("start<2026-11-01", false),
            ("complete=yes", true),
            ("processes=0", true),
        ] {
            assert_eq!(text.parse::<Condition>().map(|c| c.holds(&run())), Ok(holds), "{text}");
        }
    }

    #[test]
    fn what_is_no_condition_is_named() {
        for (text, why) in [
            ("anna", "expected NAME=VALUE"),
            ("owner=anna", "\"owner\" is none of path, "),
            ("written_bytes>2X", "64K, 10M"),
            ("duration_s>5", "30s, 5min"),
            ("user>anna", "no order"),
            ("calls~4", "no parts"),
            ("complete=maybe", "yes or no"),
        ] {
            let error = text.parse::<Condition>().map(|_| ()).unwrap_err();
            assert!(error.contains(why), "{text}: {error}");
        }
    }
}
