//! What is asked: a figure, of which calls, and by what they are put together. And the texts of it on the command line.

use std::ops::{Range, RangeInclusive};
use std::str::FromStr;

use clap::ValueEnum;

use crate::base::units::time;
use crate::base::usage::hint;
use crate::summary::filter::Filter;
use crate::vocabulary::Layer;

/// The figure.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Metric {
    /// How durations are distributed: least, median, 95th and 99th percentile, greatest, mean
    Latency,
    /// Time in outermost calls of a layer, with all that they called
    Inclusive,
    /// Time of calls less that of the traced calls inside them
    Exclusive,
    /// Bytes per second of outermost reads and writes: rates of ranks add up
    Throughput,
    /// How many calls there are
    Calls,
    /// The calls themselves, in order of their start
    List,
    /// The longest call
    Max,
    /// The shortest call
    Min,
    /// The mean duration and its standard deviation
    Avg,
    /// Requests to devices that calls led to
    Requests,
    /// Joules that devices took for these requests
    Energy,
}

impl Metric {
    /// As the command line names it.
    pub fn name(self) -> String {
        self.to_possible_value().map(|value| value.get_name().to_owned()).unwrap_or_default()
    }

    /// Is it of the requests that are linked to calls?
    pub const fn is_of_links(self) -> bool {
        matches!(self, Self::Requests | Self::Energy)
    }

    /// Do sums of calls have it?
    pub const fn is_of_sums(self) -> bool {
        matches!(self, Self::Inclusive | Self::Exclusive | Self::Throughput | Self::Calls | Self::Max | Self::Avg)
    }
}

/// What calls of one layer are put together by.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum By {
    #[default]
    Layer,
    Rank,
    File,
    Op,
    Device,
    Phase,
    /// Bins of so many ns.
    Time(i64),
}

impl By {
    /// The title of its column; layers have one anyway.
    pub const fn name(self) -> Option<&'static str> {
        match self {
            Self::Layer => None,
            Self::Rank => Some("rank"),
            Self::File => Some("file"),
            Self::Op => Some("op"),
            Self::Device => Some("device"),
            Self::Phase => Some("phase"),
            Self::Time(_) => Some("from_ns"),
        }
    }
}

impl FromStr for By {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        Ok(match text.split_once('=').map_or((text, None), |(name, value)| (name, Some(value))) {
            ("layer", None) => Self::Layer,
            ("rank", None) => Self::Rank,
            ("file", None) => Self::File,
            ("op", None) => Self::Op,
            ("device", None) => Self::Device,
            ("phase", None) => Self::Phase,
            ("time", Some(width)) => Self::Time(time(width).and_then(|ns| {
                if ns > 0 { Ok(ns) } else { Err("expected bins longer than 0: time=100ms".to_owned()) }
            })?),
            ("time", None) => return Err("give the width of a bin: time=100ms".to_owned()),
            (name, _) => {
                let known = ["layer", "rank", "file", "op", "device", "phase", "time"];
                return Err(format!(
                    "expected layer, rank, file, op, device, phase or time=100ms{}",
                    hint(name, known)
                ));
            }
        })
    }
}

/// How the answer is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, ValueEnum)]
pub enum Format {
    /// For people
    #[default]
    Table,
    /// One object, with a list of rows
    Json,
    /// A line of titles and a line for each row; times in ns
    Csv,
}

/// A query.
#[derive(Debug, Clone, PartialEq)]
pub struct Query {
    pub metric: Metric,
    pub by: By,
    pub filter: Option<Filter>,
    /// Functions that are named without a pattern.
    pub functions: Vec<String>,
    /// Layers that the filter names; none: all.
    pub layers: Vec<Layer>,
    /// The name of a device.
    pub device: Option<String>,
    /// Calls inside this function.
    pub phase: Option<String>,
    /// Calls inside a call of this function, whatever its layer.
    pub inside: Option<String>,
    /// These matching calls of each rank, counted from 1 in order of their start.
    pub calls: Option<RangeInclusive<usize>>,
    /// Calls that start in this time, in ns since the start of the trace.
    pub time: Option<Range<i64>>,
    /// Rows of each layer, or calls of a list.
    pub limit: usize,
}

/// Which rows a query is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Scope {
    pub calls: bool,
    /// Requests to devices, as calls of layer `block`.
    pub requests: bool,
}

impl Query {
    /// Which rows it is about.
    ///
    /// # Errors
    /// When options do not go together.
    pub fn scope(&self) -> Result<Scope, String> {
        let of_device = self.device.is_some() || self.by == By::Device;
        let (links, block) = (self.metric.is_of_links(), self.layers.contains(&Layer::Block));
        if links && block {
            return Err(format!(
                "--metric {} is of calls that led to requests: leave --layer block out, or take another layer",
                self.metric.name()
            ));
        }
        if links {
            return Ok(Scope { calls: true, requests: false });
        }
        if of_device && !self.layers.is_empty() && !block {
            return Err("only requests have a device: take --layer block, or --metric requests or energy".to_owned());
        }
        let of_calls =
            self.phase.is_some() || self.inside.is_some() || self.calls.is_some() || matches!(self.by, By::Phase);
        if of_calls && (of_device || (block && self.layers.len() == 1)) {
            return Err(
                "requests to devices have no number and no phase, and are inside no call: take another layer, or --metric requests".to_owned()
            );
        }
        Ok(Scope { calls: !of_device, requests: !of_calls })
    }
}

/// `FROM-TO`; either may be missing.
///
/// # Errors
/// Names what was expected.
pub fn window(text: &str) -> Result<Range<i64>, String> {
    let (from, to) = text.split_once('-').ok_or("expected FROM-TO: 1s-2.5s, 100ms- or -2s")?;
    let at = |text: &str, missing| if text.is_empty() { Ok(missing) } else { time(text) };
    let range = at(from, i64::MIN)?..at(to, i64::MAX)?;
    if from.is_empty() && to.is_empty() {
        Err("expected FROM-TO: 1s-2.5s, 100ms- or -2s".to_owned())
    } else if range.is_empty() {
        Err("the time ends before it begins".to_owned())
    } else {
        Ok(range)
    }
}

/// `FIRST-LAST` or one number, from 1.
///
/// # Errors
/// Names what was expected.
pub fn numbers(text: &str) -> Result<RangeInclusive<usize>, String> {
    let expected = || "expected the numbers of calls, from 1: 100-200, or 7".to_owned();
    let (first, last) = text.split_once('-').unwrap_or((text, text));
    let number = |text: &str| text.parse::<usize>().map_err(|_| expected());
    let range = number(first)?..=number(last)?;
    if range.is_empty() || *range.start() == 0 {
        return Err(expected());
    }
    if *range.end() > NUMBERED_MAX {
        return Err(format!("calls are numbered up to {NUMBERED_MAX}; take --time for later ones"));
    }
    Ok(range)
}

/// Calls of one rank that are numbered.
const NUMBERED_MAX: usize = 1 << 20;

/// `0-3,7`: ranks in the words of the filter language.
///
/// # Errors
/// Names what was expected.
pub fn ranks(text: &str) -> Result<String, String> {
    let expected = || "expected ranks and ranges of them: 0-3,7".to_owned();
    let range = |part: &str| {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        let number = |text: &str| text.parse::<u32>().map_err(|_| expected());
        let (first, last) = (number(first)?, number(last)?);
        if first <= last { Ok(format!("{first}..{last}")) } else { Err(expected()) }
    };
    let ranges = text.split(',').map(range).collect::<Result<Vec<_>, _>>()?;
    Ok(format!("rank={}", ranges.join(",")))
}

/// A condition on texts in the words of the filter language.
///
/// # Errors
/// When a pattern has both quotation marks, which the language cannot say.
pub fn like(field: &str, patterns: &[String]) -> Result<String, String> {
    let quoted = |pattern: &String| match (pattern.contains('"'), pattern.contains('\'')) {
        (true, true) => Err(format!("{pattern:?} has both quotation marks: write ? for one of them")),
        (true, false) => Ok(format!("'{pattern}'")),
        _ => Ok(format!("\"{pattern}\"")),
    };
    Ok(format!("{field}~{}", patterns.iter().map(quoted).collect::<Result<Vec<_>, _>>()?.join(",")))
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn ranges_of_time_calls_and_ranks() {
        assert_eq!(window("1s-2s"), Ok(1_000_000_000..2_000_000_000));
        assert_eq!(window("-2ms"), Ok(i64::MIN..2_000_000));
        assert_eq!(window("2ms-"), Ok(2_000_000..i64::MAX));
        for bad in ["", "-", "1s", "2s-1s", "1-2", "1s-1s"] {
            assert!(window(bad).is_err(), "{bad}");
        }
        assert_eq!((numbers("100-200"), numbers("7")), (Ok(100..=200), Ok(7..=7)));
        for bad in ["", "0-3", "5-4", "a", "1-", "1-99999999"] {
            assert!(numbers(bad).is_err(), "{bad}");
        }
        assert_eq!(ranks("0-3,7").unwrap(), "rank=0..3,7..7");
        for bad in ["", "3-0", "-1", "1,,2", "a", "1-2-3"] {
            assert!(ranks(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn groups_have_names() {
        assert_eq!("time=100ms".parse(), Ok(By::Time(100_000_000)));
        assert_eq!("rank".parse(), Ok(By::Rank));
        for bad in ["time", "time=0", "time=5", "rank=3", "ranks", ""] {
            assert!(bad.parse::<By>().is_err(), "{bad}");
        }
    }

    #[test]
    fn patterns_are_quoted() {
        let text = |pattern: &str| like("file", &[pattern.to_owned()]);
        assert_eq!(text("*.h5").unwrap(), "file~\"*.h5\"");
        let matches = Filter::parse(&text("a \"b, c").unwrap());
        assert!(matches.is_ok());
        assert!(text("'\"").is_err());
    }

    #[test]
    fn what_does_not_go_together_is_refused() {
        let query = |metric, by, layers: &[Layer], calls: bool| Query {
            metric,
            by,
            filter: None,
            functions: Vec::new(),
            layers: layers.to_vec(),
            device: None,
            phase: None,
            inside: None,
            calls: calls.then_some(1..=2),
            time: None,
            limit: 10,
        };
        let scope = |calls, requests| Ok(Scope { calls, requests });
        assert_eq!(query(Metric::Latency, By::Op, &[], false).scope(), scope(true, true));
        assert_eq!(query(Metric::Latency, By::Op, &[], true).scope(), scope(true, false));
        assert_eq!(query(Metric::Latency, By::Device, &[], false).scope(), scope(false, true));
        assert_eq!(query(Metric::Requests, By::Device, &[Layer::Hdf5], true).scope(), scope(true, false));
        assert!(query(Metric::Latency, By::Device, &[Layer::Hdf5], false).scope().is_err());
        assert!(query(Metric::Energy, By::File, &[Layer::Block], false).scope().is_err());
        assert!(query(Metric::Calls, By::Phase, &[Layer::Block], false).scope().is_err());
    }
}
