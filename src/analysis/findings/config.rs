//! Thresholds of rules that a user changed, and rules that are switched off: `--rules FILE.toml`.

use std::collections::BTreeMap;
use std::path::Path;

use anyhow::{Context, Result, bail};
use serde::Deserialize;

use crate::analysis::findings::rules::{RULES, Rule};

/// As in the file: a table for each rule.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(transparent)]
pub struct Config {
    rules: BTreeMap<String, Settings>,
}

/// What can be set of a rule: `off = true`, and its thresholds by name.
#[derive(Debug, Clone, Default, Deserialize)]
struct Settings {
    #[serde(default)]
    off: bool,
    #[serde(flatten)]
    thresholds: BTreeMap<String, f64>,
}

impl Config {
    /// Reads a file, and checks that it names rules and thresholds that there are.
    pub fn read(path: &Path) -> Result<Self> {
        let text = std::fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))?;
        Self::parse(&text).with_context(|| format!("{} has no valid rules", path.display()))
    }

    fn parse(text: &str) -> Result<Self> {
        let config: Self = toml::from_str(text)?;
        for (id, settings) in &config.rules {
            let Some(rule) = RULES.iter().find(|rule| rule.id == id) else {
                bail!("there is no rule {id}: `iotrace-bpf rules` lists them");
            };
            for name in settings.thresholds.keys() {
                if !rule.thresholds.iter().any(|threshold| threshold.name == name) {
                    let known: Vec<_> = rule.thresholds.iter().map(|threshold| threshold.name).collect();
                    bail!("rule {id} has no threshold {name}; it has {}", known.join(", "));
                }
            }
        }
        Ok(config)
    }

    pub fn is_off(&self, rule: &str) -> bool {
        self.rules.get(rule).is_some_and(|settings| settings.off)
    }

    /// The threshold as set, or its default.
    pub fn threshold(&self, rule: &Rule, name: &str) -> f64 {
        let set = self.rules.get(rule.id).and_then(|settings| settings.thresholds.get(name).copied());
        let default = || rule.thresholds.iter().find(|threshold| threshold.name == name).map(|t| t.value);
        set.or_else(default).unwrap_or(f64::INFINITY)
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn thresholds_are_set_and_rules_switched_off() {
        let config = Config::parse("[sync-per-record]\ncalls = 50\n[reread]\noff = true\n").unwrap();
        let rule = RULES.iter().find(|rule| rule.id == "sync-per-record").unwrap();
        assert_eq!((config.threshold(rule, "calls"), config.is_off("reread")), (50.0, true));
        assert!(!config.is_off("sync-per-record"));
    }

    #[test]
    fn rules_and_thresholds_that_do_not_exist_are_named() {
        let error = |text| Config::parse(text).unwrap_err().to_string();
        assert!(error("[fsync]\ncalls = 1\n").contains("no rule fsync"));
        assert!(error("[sync-per-record]\ncall = 1\n").contains("no threshold call; it has calls"));
        assert!(error("[sync-per-record]\ncalls = \"x\"\n").contains("invalid type"));
    }
}
