//! `--where`: what runs must be like.

use std::str::FromStr;

use crate::base::text::wall;
use crate::base::units;
use crate::base::usage::hint;
use crate::runs::row::{COLUMNS, Column, Of, Run};

/// `NAME=VALUE`, `!=`, `~` (has that part), `>`, `<`.
#[derive(Debug, Clone)]
pub struct Condition {
    column: &'static Column,
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
            return Err(format!("{name:?} is none of {}{}", names.join(", "), hint(name, names)));
        };
        let of = &column.of;
        let ordered = !matches!(of, Of::Text(_) | Of::TextIfAny(_) | Of::Texts(_) | Of::Truth(_));
        let number = number(of, value).map_err(|why| format!("{name}: {why}"))?;
        if !ordered && matches!(is, Is::Above | Is::Below) {
            return Err(format!("{name} has no order: use =, != or ~"));
        }
        if is == Is::With && !matches!(of, Of::Text(_) | Of::TextIfAny(_) | Of::Texts(_) | Of::Time(_)) {
            return Err(format!("{name} has no parts: use =, !=, > or <"));
        }
        Ok(Self { column, is, value: value.to_owned(), number })
    }
}

/// The value of a column that has numbers.
fn number(of: &Of, value: &str) -> Result<f64, String> {
    match of {
        Of::Text(_) | Of::TextIfAny(_) | Of::Texts(_) | Of::Time(_) => Ok(0.0),
        Of::Truth(_) => match value {
            "yes" => Ok(1.0),
            "no" => Ok(0.0),
            _ => Err(format!("{value:?} is neither yes nor no")),
        },
        Of::Count(_) | Of::FactorIfAny(_) => value.parse().map_err(|_| format!("{value:?} is no number")),
        // Bytes alone may be plain, as in other filters.
        Of::Bytes(_) => value.parse().or_else(|_| Ok(units::size(value)? as f64)),
        Of::Seconds(_) | Of::SecondsIfAny(_) => Ok(units::time(value)? as f64 / 1e9),
    }
}

impl Condition {
    pub fn holds(&self, run: &Run) -> bool {
        match &self.column.of {
            Of::Text(at) => self.of_text((at.of)(run)),
            Of::TextIfAny(at) => self.of_text((at.of)(run).as_deref().unwrap_or("")),
            Of::Texts(at) => {
                let like =
                    |text: &String| if self.is == Is::With { text.contains(&self.value) } else { *text == self.value };
                (at.of)(run).iter().any(like) != (self.is == Is::NotEqual)
            }
            // As it is shown, so that a part of it will do: 2026-11 is before 2026-11-01.
            Of::Time(at) => {
                let shown = wall(*(at.of)(run));
                let shown = shown.get(..self.value.len()).unwrap_or(&shown);
                match self.is {
                    Is::Above => shown > self.value.as_str(),
                    Is::Below => shown < self.value.as_str(),
                    Is::With | Is::Equal => shown == self.value,
                    Is::NotEqual => shown != self.value,
                }
            }
            Of::Count(at) | Of::Bytes(at) => self.of_number(*(at.of)(run) as f64),
            Of::Seconds(at) => self.of_number(*(at.of)(run)),
            Of::SecondsIfAny(at) | Of::FactorIfAny(at) => (at.of)(run).is_some_and(|seconds| self.of_number(seconds)),
            Of::Truth(at) => self.of_number(f64::from(u8::from(*(at.of)(run)))),
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
            slowdown: Some(1.75),
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
            ("slowdown>1.5", true),
            ("slowdown<1.5", false),
            ("usual_s>0s", false),
        ] {
            assert_eq!(text.parse::<Condition>().map(|c| c.holds(&run())), Ok(holds), "{text}");
        }
    }

    #[test]
    fn what_is_no_condition_is_named() {
        for (text, why) in [
            ("anna", "expected NAME=VALUE"),
            ("owner=anna", "\"owner\" is none of path, "),
            ("usr=anna", "did you mean \"user\"?"),
            ("written_bytes>2X", "unknown unit"),
            ("duration_s>5", "needs its unit"),
            ("user>anna", "no order"),
            ("calls~4", "no parts"),
            ("complete=maybe", "neither yes nor no"),
        ] {
            let error = text.parse::<Condition>().map(|_| ()).unwrap_err();
            assert!(error.contains(why), "{text}: {error}");
        }
    }
}
