//! `--fail-if`: a change of a figure that must not be.

use std::str::FromStr;

use anyhow::Result;

use crate::base::text::percent;
use crate::base::usage::{bail, hint, list};
use crate::compare::{Change, Figure};

/// `NAME>10%`: the figure grew by more; `NAME<-10%`: it shrank by more.
#[derive(Debug, Clone, PartialEq)]
pub struct Condition {
    text: String,
    name: String,
    grows: bool,
    /// As a part: 0.1 for 10 %.
    limit: f64,
}

impl FromStr for Condition {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let expected = || "expected a figure and a change: 'time>10%', 'syscall.bytes>0%', 'time<-20%'".to_owned();
        let at = text.find(['>', '<']).ok_or_else(expected)?;
        let number = text[at + 1..].strip_suffix('%').and_then(|n| n.trim().parse::<f64>().ok());
        let limit = number.filter(|n| n.is_finite()).ok_or_else(expected)? / 100.0;
        let name = text[..at].trim().to_owned();
        if name.is_empty() {
            return Err(expected());
        }
        Ok(Self { text: text.to_owned(), name, grows: text[at..].starts_with('>'), limit })
    }
}

impl Condition {
    /// In words that it holds; nothing where it does not, or the change is within the noise of several runs.
    ///
    /// # Errors
    /// When there is no figure of that name.
    pub fn check(&self, figures: &[Figure]) -> Result<Option<String>> {
        let Some(figure) = figures.iter().find(|figure| figure.name == self.name) else {
            let names = || figures.iter().map(|figure| figure.name.as_str());
            let similar = hint(&self.name, names());
            bail!("there is no figure {}{similar}: --json names all, such as {}", self.name, list(names().take(3)));
        };
        let (a, b) = (figure.a.median, figure.b.median);
        let change = figure.change.unwrap_or(if b > a { f64::INFINITY } else { 0.0 });
        let holds = if self.grows { change > self.limit } else { change < self.limit };
        let holds = holds && figure.noise != Change::WithinNoise;
        let by = if change.is_finite() { signed(change) } else { "from 0".to_owned() };
        Ok(holds.then(|| format!("{}: {} changed by {by}", self.text, self.name)))
    }
}

/// `+12.0%`
pub fn signed(change: f64) -> String {
    format!("{}{}", if change < 0.0 { "-" } else { "+" }, percent(change.abs()))
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::compare::{Side, Unit};

    fn time(a: f64, b: f64, noise: Change) -> Vec<Figure> {
        let side = |median| Side { median, least: median, most: median, runs: 2 };
        let change = (a > 0.0).then(|| b / a - 1.0);
        vec![Figure { name: "time".to_owned(), unit: Unit::Seconds, a: side(a), b: side(b), change, noise }]
    }

    #[test]
    fn a_condition_holds_beyond_its_limit_and_the_noise() {
        let holds = |text: &str, figures: &[Figure]| text.parse::<Condition>().unwrap().check(figures).unwrap();
        let slower = time(10.0, 12.0, Change::BeyondNoise);
        assert_eq!(holds("time>10%", &slower).unwrap(), "time>10%: time changed by +20.0%");
        assert_eq!(holds("time>20.5%", &slower), None);
        assert_eq!(holds("time>10%", &time(10.0, 12.0, Change::WithinNoise)), None);
        assert!(holds("time<-40%", &time(10.0, 5.0, Change::Unknown)).is_some());
        assert!(holds("time>1000%", &time(0.0, 5.0, Change::Unknown)).unwrap().ends_with("from 0"));
        assert_eq!(holds("time>0%", &time(0.0, 0.0, Change::Unknown)), None);
    }

    #[test]
    fn what_is_no_condition_is_refused() {
        for wrong in ["", "time", "time>", "time>x%", "time>10", ">10%", "time=10%"] {
            assert!(wrong.parse::<Condition>().is_err(), "{wrong}");
        }
        let unknown = "times>1%".parse::<Condition>().unwrap().check(&time(1.0, 1.0, Change::Unknown));
        assert!(
            unknown
                .unwrap_err()
                .to_string()
                .contains("no figure times (did you mean \"time\"?): --json names all, such as time")
        );
    }
}
