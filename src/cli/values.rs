//! Values of options: what is accepted, and what is expected where it is not.

use crate::analysis::findings::rules::RULES;
use crate::analysis::findings::{Severity, Which};
use crate::catalog::{self, Phase};
use crate::loader::stacks::slow::Limit;
use crate::summary::filter::Filter;
use crate::vocabulary::Layer;
use std::time::Duration;

pub(super) fn library_layer(name: &str) -> Result<Layer, String> {
    let known = Layer::parse(name).filter(|layer| layer.is_in_files());
    known.ok_or_else(|| format!("layers of libraries are: {}", Layer::names(Layer::is_in_files)))
}

pub(super) fn phase(text: &str) -> Result<Phase, String> {
    let mut phase: Phase = text.parse()?;
    // A path as the kernel shows it, when it is one here; in a container it may be another.
    if let Some(path) = phase.binary.as_deref().filter(|b| b.contains('/')).and_then(|b| std::fs::canonicalize(b).ok())
    {
        phase.binary = Some(path.to_string_lossy().into_owned());
    }
    Ok(phase)
}

/// A layer to trace.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LayerChoice {
    pub layer: Layer,
    /// With the functions that are left out otherwise.
    pub all: bool,
}

impl From<Layer> for LayerChoice {
    fn from(layer: Layer) -> Self {
        Self { layer, all: false }
    }
}

pub(super) fn layer_choice(text: &str) -> Result<LayerChoice, String> {
    let (name, what) = text.split_once('=').map_or((text, None), |(name, what)| (name, Some(what)));
    let layer = layer(name)?;
    match what {
        None => Ok(layer.into()),
        Some("all") if catalog::has_secondary(layer) => Ok(LayerChoice { layer, all: true }),
        Some("all") => Err(format!("nothing of layer {layer} is left out: leave \"=all\" out")),
        Some(_) if catalog::has_secondary(layer) => Err(format!("expected {name} or {name}=all")),
        Some(_) => Err(format!("expected {name}")),
    }
}

fn layer(name: &str) -> Result<Layer, String> {
    // Only what the user adds is of the layer `app`.
    Layer::parse(name).ok_or_else(|| format!("no such layer; layers are: {}", Layer::names(Layer::is_traceable)))
}

pub(super) fn pid(text: &str) -> Result<u32, String> {
    let number = text.parse().ok().filter(|n| *n > 0);
    number.ok_or_else(|| "expected the number of a process, as ps shows it".to_owned())
}

fn split_unit(text: &str) -> (&str, &str) {
    text.split_at(text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len()))
}

/// Which findings: those of a rule, or of a severity and above.
///
/// # Errors
/// Names what was expected.
pub fn which(text: &str) -> Result<Which, String> {
    if let Some(severity) = Severity::parse(text) {
        return Ok(Which::Severity(severity));
    }
    let rule = RULES.iter().find(|rule| rule.id == text);
    rule.map(|rule| Which::Rule(rule.id))
        .ok_or_else(|| "neither warn nor critical, nor a rule: `iotrace-bpf rules` lists them".to_owned())
}

/// A time with its unit.
///
/// # Errors
/// Names what was expected.
pub fn duration(text: &str) -> Result<Duration, String> {
    let (number, unit) = split_unit(text);
    let n: u64 = number.parse().map_err(|_| "expected a number and a unit: 500ms, 30s, 5m, 1h".to_owned())?;
    let per_unit = match unit {
        "ms" => Duration::from_millis(1),
        "" | "s" => Duration::from_secs(1),
        "m" | "min" => Duration::from_mins(1),
        "h" => Duration::from_hours(1),
        _ => return Err(format!("unknown unit {unit:?}: ms, s, m or h")),
    };
    u32::try_from(n)
        .ok()
        .and_then(|n| per_unit.checked_mul(n))
        .filter(|d| !d.is_zero())
        .ok_or_else(|| "expected a time above zero and below 2^32 units".to_owned())
}

/// What is slow: a time, of all layers or of the one that is named before it and a colon.
///
/// # Errors
/// Names what was expected.
pub fn slow(text: &str) -> Result<(Option<Layer>, Duration), String> {
    let Some((name, time)) = text.rsplit_once(':') else { return Ok((None, duration(text)?)) };
    let layer = Layer::parse(name).ok_or_else(|| format!("no such layer: {name:?}"))?;
    Ok((Some(layer), duration(time)?))
}

/// From when on a call is slow where nothing else is asked for: above a write to a disk that turns, or to a busy server.
const SLOW: Duration = Duration::from_millis(10);

/// From when on calls are slow whose stacks are taken.
pub(super) fn stacks(text: &str) -> Result<Limit, String> {
    match text.split_once('=') {
        None if text == "slow" => Ok(Limit { layer: None, time: SLOW }),
        Some(("slow", value)) => slow(value).map(|(layer, time)| Limit { layer, time }),
        _ => Err("expected slow, slow=TIME or slow=LAYER:TIME".to_owned()),
    }
}

pub(super) fn period(text: &str) -> Result<Duration, String> {
    duration(text).and_then(|t| if t < Duration::from_secs(1) { Err("expected 1s or more".to_owned()) } else { Ok(t) })
}

pub(super) fn filter(text: &str) -> Result<Filter, String> {
    Filter::parse(text).map_err(|wrong| wrong.to_string())
}

pub(super) fn seconds(text: &str) -> Result<Duration, String> {
    let expected = || "expected seconds from 0.1 to 86400, such as 0.5".to_owned();
    let seconds: f64 = text.parse().map_err(|_| expected())?;
    if (0.1..=86_400.0).contains(&seconds) { Ok(Duration::from_secs_f64(seconds)) } else { Err(expected()) }
}

/// What share of a thread's time probes of brief calls may take.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Budget(Option<f64>);

impl Budget {
    /// From 0 to 1; nothing: every call is kept.
    pub const fn share(self) -> Option<f64> {
        self.0
    }
}

impl Default for Budget {
    fn default() -> Self {
        Self(Some(0.1))
    }
}

pub(super) fn budget(text: &str) -> Result<Budget, String> {
    if text == "none" {
        return Ok(Budget(None));
    }
    let (number, percent) = text.strip_suffix('%').map_or((text, 1.0), |number| (number, 100.0));
    let share = number.trim().parse::<f64>().ok().map(|n| n / percent).filter(|share| (0.001..=1.0).contains(share));
    share.map(|share| Budget(Some(share))).ok_or_else(|| "expected 0.1% to 100%, 0.001 to 1, or none".to_owned())
}

pub(super) fn size(text: &str) -> Result<u64, String> {
    let bytes = bytes(text)?;
    if (1 << 20..=1 << 36).contains(&bytes) { Ok(bytes) } else { Err("expected 1M to 64G".to_owned()) }
}

pub(super) fn disk_size(text: &str) -> Result<u64, String> {
    let bytes = bytes(text)?;
    if bytes >= 1 << 20 { Ok(bytes) } else { Err("expected 1M or more".to_owned()) }
}

fn bytes(text: &str) -> Result<u64, String> {
    let (number, unit) = split_unit(text);
    let n: u64 = number.parse().map_err(|_| "expected a number and a unit: 16M, 1G".to_owned())?;
    let shift = match unit.trim_end_matches("iB").trim_end_matches('B') {
        "" => 0,
        "K" | "k" => 10,
        "M" => 20,
        "G" => 30,
        "T" => 40,
        _ => return Err(format!("unknown unit {unit:?}: K, M, G or T")),
    };
    n.checked_shl(shift).filter(|b| b >> shift == n).ok_or_else(|| "too large".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn budgets() {
        for (text, share) in [("10%", Some(0.1)), ("0.25", Some(0.25)), ("100%", Some(1.0)), ("none", None)] {
            assert_eq!(budget(text), Ok(Budget(share)), "{text}");
        }
        for bad in ["", "%", "0", "101%", "1.5", "-5%", "NaN", "all"] {
            assert!(budget(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn times_and_sizes() {
        assert_eq!(duration("500ms"), Ok(Duration::from_millis(500)));
        assert_eq!(duration("90"), Ok(Duration::from_secs(90)));
        assert_eq!(duration("2h"), Ok(Duration::from_hours(2)));
        for bad in ["", "s", "0s", "1y", "-1s", "99999999999h"] {
            assert!(duration(bad).is_err(), "{bad}");
        }
        assert_eq!(size("16M"), Ok(16 << 20));
        assert_eq!(size("2GiB"), Ok(2 << 30));
        for bad in ["", "M", "1", "100G", "99999999999G", "1X"] {
            assert!(size(bad).is_err(), "{bad}");
        }
        assert_eq!(disk_size("2T"), Ok(2 << 40));
        for bad in ["1023K", "99999999T", "1P"] {
            assert!(disk_size(bad).is_err(), "{bad}");
        }
    }
}
