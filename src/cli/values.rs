//! Values of options: what is accepted, and what is expected where it is not.

use crate::analysis::findings::rules::RULES;
use crate::analysis::findings::{Severity, Which};
use crate::base::units;
use crate::base::usage::{hint, list};
use crate::catalog::{self, Phase};
use crate::loader::stacks::slow::Limit;
use crate::summary::filter::Filter;
use crate::vocabulary::{LAYERS, Layer};
use std::time::Duration;

pub(super) fn library_layer(name: &str) -> Result<Layer, String> {
    layer_of(name, Layer::is_in_files, "layers of functions")
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
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LayerChoice {
    pub layer: Layer,
    /// With the functions that are left out otherwise.
    pub all: bool,
    /// Only functions with such names.
    pub functions: Option<glob::Pattern>,
}

impl From<Layer> for LayerChoice {
    fn from(layer: Layer) -> Self {
        Self { layer, all: false, functions: None }
    }
}

pub(super) fn layer_choice(text: &str) -> Result<LayerChoice, String> {
    if let Some((name, pattern)) = text.split_once(':') {
        let layer = layer_of(name, Layer::is_in_files, "layers of functions")?;
        let functions = glob::Pattern::new(pattern).ok().filter(|_| !pattern.is_empty());
        let functions = functions.ok_or_else(|| format!("expected names of functions: {name}:*read*"))?;
        return Ok(LayerChoice { functions: Some(functions), ..layer.into() });
    }
    let (name, what) = text.split_once('=').map_or((text, None), |(name, what)| (name, Some(what)));
    // Only what the user adds is of the layer `app`.
    let layer = Layer::parse(name).map_or_else(|| layer_of(name, Layer::is_traceable, "layers"), Ok)?;
    match what {
        None => Ok(layer.into()),
        Some("all") if catalog::has_secondary(layer) => Ok(LayerChoice { all: true, ..layer.into() }),
        Some("all") => Err(format!("nothing of layer {layer} is left out: leave \"=all\" out")),
        Some(_) if catalog::has_secondary(layer) => Err(format!("expected {name} or {name}=all")),
        Some(_) => Err(format!("expected {name}")),
    }
}

/// A layer that recorded calls have.
pub(super) fn layer(name: &str) -> Result<Layer, String> {
    layer_of(name, |_| true, "layers")
}

/// One of such layers.
fn layer_of(name: &str, such: fn(Layer) -> bool, all: &str) -> Result<Layer, String> {
    let names: Vec<&str> = LAYERS.into_iter().filter(|layer| such(*layer)).map(Layer::name).collect();
    let known = Layer::parse(name).filter(|layer| such(*layer));
    known.ok_or_else(|| format!("no such layer{}; {all} are: {}", hint(name, &names), list(&names)))
}

pub(super) fn pid(text: &str) -> Result<u32, String> {
    let number = text.parse().ok().filter(|n| *n > 0);
    number.ok_or_else(|| "expected the number of a process, as ps shows it".to_owned())
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
    rule.map(|rule| Which::Rule(rule.id)).ok_or_else(|| {
        let known = RULES.iter().map(|rule| rule.id).chain(["info", "warn", "critical"]);
        format!("neither a rule nor warn or critical{}; `iotrace-bpf rules` lists all rules", hint(text, known))
    })
}

/// A time with its unit, above zero.
///
/// # Errors
/// Names what was expected.
pub fn duration(text: &str) -> Result<Duration, String> {
    let ns = units::time(text)?;
    let above_zero = u64::try_from(ns).ok().filter(|ns| *ns > 0).map(Duration::from_nanos);
    above_zero.ok_or_else(|| "expected a time above zero: 500ms, 30s, 5m, 1h".to_owned())
}

/// What is slow: a time, of all layers or of the one that is named before it and a colon.
///
/// # Errors
/// Names what was expected.
pub fn slow(text: &str) -> Result<(Option<Layer>, Duration), String> {
    let Some((name, time)) = text.rsplit_once(':') else { return Ok((None, duration(text)?)) };
    Ok((Some(layer(name)?), duration(time)?))
}

/// From when on a call is slow where nothing else is asked for: above a write to a disk that turns, or to a busy server.
const SLOW: Duration = Duration::from_millis(10);

/// From when on calls are slow whose stacks are taken.
pub(super) fn stacks(text: &str) -> Result<Limit, String> {
    match text.split_once('=') {
        None if text == "slow" => Ok(Limit { layer: None, time: SLOW }),
        Some(("slow", value)) => slow(value).map(|(layer, time)| Limit { layer, time }),
        _ => Err(format!("expected slow, slow=TIME or slow=LAYER:TIME{}", hint(text, ["slow"]))),
    }
}

pub(super) fn period(text: &str) -> Result<Duration, String> {
    duration(text).and_then(|t| if t < Duration::from_secs(1) { Err("expected 1s or more".to_owned()) } else { Ok(t) })
}

pub(super) fn filter(text: &str) -> Result<Filter, String> {
    Filter::parse(text).map_err(|wrong| wrong.to_string())
}

/// The time between two ticks.
pub(super) fn tick(text: &str) -> Result<Duration, String> {
    let range = Duration::from_millis(100)..=Duration::from_hours(24);
    duration(text).and_then(|t| if range.contains(&t) { Ok(t) } else { Err("expected 100ms to 24h".to_owned()) })
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
    let bytes = units::size(text)?;
    if (1 << 20..=1 << 36).contains(&bytes) { Ok(bytes) } else { Err("expected 1M to 64G".to_owned()) }
}

pub(super) fn disk_size(text: &str) -> Result<u64, String> {
    let bytes = units::size(text)?;
    if bytes >= 1 << 20 { Ok(bytes) } else { Err("expected 1M or more".to_owned()) }
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
        assert_eq!(duration("1.5h"), Ok(Duration::from_mins(90)));
        assert_eq!(duration("90"), Err("a time needs its unit: 90s, 90ms or 90m".to_owned()));
        for bad in ["", "s", "0", "0s", "1y", "-1s", "99999999999h"] {
            assert!(duration(bad).is_err(), "{bad}");
        }
        // As an option is printed again.
        let printed = format!("{:?}", Duration::from_micros(1500));
        assert_eq!(duration(&printed), Ok(Duration::from_micros(1500)), "{printed}");
        assert_eq!(tick("100ms"), Ok(Duration::from_millis(100)));
        for bad in ["1", "99ms", "25h"] {
            assert!(tick(bad).is_err(), "{bad}");
        }
        assert_eq!(size("16M"), Ok(16 << 20));
        for bad in ["1048576", "100G", "1023K"] {
            assert!(size(bad).is_err(), "{bad}");
        }
        assert_eq!(disk_size("2T"), Ok(2 << 40));
        assert!(disk_size("1023K").is_err());
    }

    #[test]
    fn names_that_are_close_are_suggested() {
        for (wrong, meant) in [
            (layer("hdf").unwrap_err(), "\"hdf5\""),
            (layer_choice("sycall").unwrap_err(), "\"syscall\""),
            (library_layer("studio").unwrap_err(), "\"stdio\""),
            (slow("mpio:1ms").unwrap_err(), "\"mpiio\""),
            (stacks("slwo").unwrap_err(), "\"slow\""),
            (which("sync-per-recrd").unwrap_err(), "\"sync-per-record\""),
            (which("critcal").unwrap_err(), "\"critical\""),
        ] {
            assert!(wrong.contains(&format!("did you mean {meant}?")), "{wrong}");
        }
    }
}
