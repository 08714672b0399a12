//! Thresholds of rules that a user changed, rules that are switched off, and rules of the user: `--rules FILE.toml`.

use std::collections::BTreeMap;
use std::path::Path;

use anyhow::{Context, Result, anyhow, bail};
use serde::Deserialize;

use crate::analysis::findings::own::OwnRule;
use crate::analysis::findings::rules::{RULES, Rule};
use crate::base::usage::hint;

/// As in the file: a table for each rule.
#[derive(Debug, Clone, Default)]
pub struct Config {
    rules: BTreeMap<String, Settings>,
    /// Rules of the user's own.
    pub own: Vec<OwnRule>,
}

/// What can be set of a rule: `off = true`, and its thresholds by name. A rule of the user's own has `sql` and `advice`.
#[derive(Debug, Clone, Default, Deserialize)]
struct Settings {
    #[serde(default)]
    off: bool,
    sql: Option<String>,
    advice: Option<String>,
    #[serde(flatten)]
    thresholds: BTreeMap<String, f64>,
}

impl Config {
    /// Reads a file, and checks that it names rules and thresholds that there are.
    pub fn read(path: &Path) -> Result<Self> {
        let text = std::fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))?;
        Self::parse(&text).with_context(|| format!("{} has no valid rules", path.display()))
    }

    pub(super) fn parse(text: &str) -> Result<Self> {
        // Its own words would show the line, which may be of a file that is no file of rules and not for everybody.
        let rules: BTreeMap<String, Settings> = toml::from_str(text).map_err(|e| {
            let before = e.span().and_then(|at| text.get(..at.start)).unwrap_or_default();
            anyhow!("line {}: {}", before.matches('\n').count() + 1, e.message())
        })?;
        let mut config = Self::default();
        for (id, settings) in rules {
            let known = RULES.iter().find(|rule| rule.id == id);
            let (rule, settings) = match (known, settings) {
                (Some(_), Settings { sql: Some(_), .. }) => bail!("there is a rule {id} already: name yours otherwise"),
                (Some(rule), settings) => (rule, settings),
                (None, Settings { sql: Some(sql), off, advice, thresholds }) => {
                    if let Some(name) = thresholds.keys().next() {
                        bail!("rule {id} has a query, and {name} is none of sql, advice and off");
                    }
                    if !off {
                        // Named for as long as the process lives, as those that are built in.
                        config.own.push(OwnRule { id: id.leak(), advice: advice.unwrap_or_default(), sql });
                    }
                    continue;
                }
                (None, _) => {
                    let similar = hint(&id, RULES.iter().map(|rule| rule.id));
                    bail!(
                        "there is no rule {id}{similar}: `iotrace-bpf rules` lists them; a rule of your own needs sql"
                    )
                }
            };
            for name in settings.thresholds.keys() {
                if !rule.thresholds.iter().any(|threshold| threshold.name == name) {
                    let known: Vec<_> = rule.thresholds.iter().map(|threshold| threshold.name).collect();
                    let similar = hint(name, &known);
                    bail!("rule {id} has no threshold {name}{similar}; it has {}", known.join(", "));
                }
            }
            config.rules.insert(id, settings);
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
        assert!(
            error("[sync-per-record]\ncall = 1\n")
                .contains("no threshold call (did you mean \"calls\"?); it has calls")
        );
        assert!(error("[sync-per-recrod]\ncalls = 1\n").contains("did you mean \"sync-per-record\"?"));
        assert!(error("[sync-per-record]\ncalls = \"x\"\n").contains("invalid type"));
        assert!(error("[reread]\nsql = \"FROM spans\"\n").contains("name yours otherwise"));
        assert!(error("[mine]\nsql = \"FROM spans\"\ncalls = 3\n").contains("none of sql, advice and off"));
        // The text of a file that is none of rules is not shown.
        assert_eq!(error("[reread]\nsecret:*:1\n"), "line 2: key with no value, expected `=`");
    }

    #[test]
    fn a_rule_of_the_users_own_is_a_query() {
        let config = Config::parse("[mine]\nsql = 'FROM spans'\n[off]\nsql = 'FROM files'\noff = true\n").unwrap();
        assert_eq!(config.own, [OwnRule { id: "mine", advice: String::new(), sql: "FROM spans".to_owned() }]);
    }
}
