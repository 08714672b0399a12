//! `iotrace-bpf rules`: what the report looks for.

use crate::analysis::findings::rules::{RULES, Rule};
use crate::base::text::{Column, Set, escape, table};
use crate::base::usage::{bail, hint};
use crate::cli::RulesAction;
use anyhow::Result;
use std::io::Write;

/// Prints the list, or one of them.
pub fn run(action: Option<&RulesAction>, out: &mut dyn Write) -> Result<()> {
    let text = match action {
        None | Some(RulesAction::List) => list(),
        Some(RulesAction::Show { id }) => {
            let Some(rule) = RULES.iter().find(|rule| rule.id == id) else {
                let similar = hint(id, RULES.iter().map(|rule| rule.id));
                bail!("there is no rule {}{similar}: `iotrace-bpf rules` lists them", escape(id))
            };
            show(rule)
        }
    };
    out.write_all(text.as_bytes())?;
    Ok(())
}

fn list() -> String {
    let head: &[Column] = &[("rule", Set::Name, 0), ("cause", Set::Name, 0)];
    let rows: Vec<Vec<String>> = RULES.iter().map(|rule| vec![rule.id.to_owned(), rule.about.to_owned()]).collect();
    table(head, &rows, usize::MAX, 0)
        + "\nrules show RULE: its condition and what to do; docs/findings.md has all of them\n"
}

fn show(rule: &Rule) -> String {
    let mut out = format!("{}\n", rule.id);
    let mut line = |name: &str, text: &str| out += &format!("  {name:<10} {text}\n");
    line("cause", rule.about);
    for threshold in rule.thresholds {
        line("threshold", &format!("{} = {}: {}", threshold.name, threshold.value, threshold.about));
    }
    let layers: Vec<&str> = rule.needs.iter().map(|layer| layer.name()).collect();
    let sums = if rule.sums { "single calls or sums" } else { "single calls: not with --aggregate" };
    line("needs", &format!("layers {}; {sums}", layers.join(", ")));
    line("advice", rule.advice);
    line("SQL", rule.sql);
    line("source", rule.source);
    out
}
