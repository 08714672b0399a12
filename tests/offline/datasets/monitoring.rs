//! Rules, alerts and the dashboard of `dist/` ask for metrics that there are, with the names of their samples and labels that they
//! have: a query for another one is no error in Prometheus, and has no samples.

use iotrace_bpf::metrics::families::{ALL, Type};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};

const RULES: &str = include_str!("../../../dist/prometheus/rules.yml");
const DASHBOARD: &str = include_str!("../../../dist/grafana/iotrace-bpf.json");

type Names = BTreeSet<String>;

fn names<'a>(names: impl IntoIterator<Item = &'a str>) -> Names {
    names.into_iter().map(str::trim).filter(|name| !name.is_empty()).map(str::to_owned).collect()
}

/// The names of all samples that Prometheus may have scraped, with their labels.
fn samples() -> BTreeMap<String, Names> {
    let mut all = BTreeMap::from([("up".to_owned(), names(["instance", "job"]))]);
    for (family, _) in &ALL {
        let suffixes: &[&str] = match family.kind {
            Type::Counter => &["_total"],
            Type::Gauge => &[""],
            Type::Histogram => &["_bucket", "_count", "_sum"],
            Type::Info => &["_info"],
        };
        for suffix in suffixes {
            let more = ["instance", "job"].into_iter().chain((*suffix == "_bucket").then_some("le"));
            all.insert(format!("{}{suffix}", family.name), names(family.labels.split(',').chain(more)));
        }
    }
    all
}

#[derive(Debug, PartialEq)]
enum Token<'a> {
    Name(&'a str),
    Text,
    Sign(char),
}

/// The parts of an expression; numbers and ranges are left out.
fn tokens(expression: &str) -> Vec<Token<'_>> {
    let mut tokens = Vec::new();
    let mut rest = expression.trim_start();
    while let Some(first) = rest.chars().next() {
        let is_name = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == ':';
        let end = |is: &dyn Fn(char) -> bool| rest.find(|c| !is(c)).unwrap_or(rest.len());
        let to = match first {
            '"' => rest[1..].find('"').unwrap() + 2,
            '[' => rest.find(']').unwrap() + 1,
            c if c.is_ascii_digit() => end(&|c| c.is_ascii_alphanumeric() || c == '.'),
            c if is_name(c) => end(&is_name),
            c => c.len_utf8(),
        };
        match first {
            '"' => tokens.push(Token::Text),
            '[' => {}
            c if c.is_ascii_digit() => {}
            c if is_name(c) => tokens.push(Token::Name(&rest[..to])),
            c => tokens.push(Token::Sign(c)),
        }
        rest = rest[to..].trim_start();
    }
    tokens
}

/// Where the bracket that opens at this place is closed.
fn closed(tokens: &[Token<'_>], at: usize) -> usize {
    let mut depth = 0;
    let ends = tokens.iter().enumerate().skip(at).find(|(_, token)| {
        depth +=
            i32::from(matches!(token, Token::Sign('(' | '{'))) - i32::from(matches!(token, Token::Sign(')' | '}')));
        depth == 0
    });
    ends.unwrap().0
}

/// The names in some parts.
fn named(tokens: &[Token<'_>]) -> Names {
    names(tokens.iter().filter_map(|token| if let Token::Name(name) = token { Some(*name) } else { None }))
}

/// What is wrong with an expression goes into `wrong`. Returns the labels that its result has.
fn check(expression: &str, samples: &BTreeMap<String, Names>, wrong: &mut Vec<String>) -> Names {
    let all = tokens(expression);
    result(&all, samples, &mut |what| wrong.push(format!("{what} in {expression}")))
}

/// The labels that all operands have. Those of functions and operators are those of what they are applied to.
fn result(tokens: &[Token<'_>], samples: &BTreeMap<String, Names>, wrong: &mut dyn FnMut(String)) -> Names {
    let mut labels: Option<Names> = None;
    let mut also = |of: Names| {
        if !of.is_empty() {
            labels = Some(labels.take().map_or_else(|| of.clone(), |labels| &labels & &of));
        }
    };
    let (mut at, mut needed) = (0, Names::new());
    while let Some(token) = tokens.get(at) {
        let next = tokens.get(at + 1);
        let Token::Name(name) = *token else {
            if *token == Token::Sign('(') {
                let end = closed(tokens, at);
                also(result(&tokens[at + 1..end], samples, wrong));
                at = end;
            }
            at += 1;
            continue;
        };
        at += 1;
        match name {
            "and" | "or" | "unless" | "bool" => {}
            "on" | "ignoring" => {
                let end = closed(tokens, at);
                needed.extend(named(&tokens[at..end]));
                at = end + 1;
            }
            "sum" | "max" | "min" | "avg" | "count" if next == Some(&Token::Name("by")) => {
                let by = closed(tokens, at + 1);
                let end = closed(tokens, by + 1);
                let (kept, of) = (named(&tokens[at + 1..by]), result(&tokens[by + 2..end], samples, wrong));
                kept.difference(&of).for_each(|label| wrong(format!("by {label}, which is not there,")));
                also(kept);
                at = end + 1;
            }
            // A function: its parameters come next.
            _ if next == Some(&Token::Sign('(')) => {}
            _ => {
                let Some(has) = samples.get(name) else {
                    wrong(format!("no metric {name}"));
                    continue;
                };
                if next == Some(&Token::Sign('{')) {
                    let end = closed(tokens, at);
                    let asked = named(&tokens[at..end]);
                    asked.difference(has).for_each(|label| wrong(format!("{name} has no label {label}:")));
                    at = end + 1;
                }
                also(has.clone());
            }
        }
    }
    let labels = labels.unwrap_or_default();
    needed.difference(&labels).for_each(|label| wrong(format!("on {label}, which is not there,")));
    labels
}

/// The labels that a text has in `{{ }}`, after this prefix.
fn shown(text: &str, prefix: &str) -> Names {
    let parts = text.split("{{").skip(1).filter_map(|part| part.split_once("}}")?.0.trim().strip_prefix(prefix));
    names(parts.filter(|part| !part.starts_with('$')).map(|part| part.split(' ').next().unwrap()))
}

/// The value of a key of a rule, which may be in the lines below.
fn value(rule: &str, key: &str) -> Option<String> {
    let start = format!("{key}: ");
    let mut lines = rule.lines().skip_while(|line| !line.trim_start().trim_start_matches("- ").starts_with(&start));
    let first = lines.next()?.split_once(&start)?.1;
    let deeper = lines.take_while(|line| line.starts_with("          "));
    let below: Vec<&str> = deeper.map(str::trim).collect();
    Some(if first.starts_with('>') { below.join(" ") } else { first.to_owned() })
}

#[test]
fn rules_and_alerts_ask_for_what_there_is() {
    let (mut samples, mut wrong, mut alerts) = (samples(), Vec::new(), 0);
    let rules: Vec<&str> = RULES.split("\n      - ").skip(1).collect();
    for rule in &rules {
        let labels = check(&value(rule, "expr").unwrap(), &samples, &mut wrong);
        if let Some(record) = value(rule, "record") {
            // By convention its name begins with the labels that are left.
            let level = names(record.split(':').next().unwrap().split('_'));
            let left = labels.iter().filter(|label| *label != "le");
            assert_eq!(level, left.cloned().collect(), "{record}");
            samples.insert(record, labels);
            continue;
        }
        alerts += 1;
        for label in shown(rule, "$labels.").difference(&labels) {
            wrong.push(format!("the text shows {label}, which is not there, in {rule}"));
        }
        // Metrics that texts refer to are named as in docs/metrics.md.
        for name in rule.split('`').skip(1).step_by(2).filter(|name| name.starts_with("iotrace_")) {
            assert!(ALL.iter().any(|(family, _)| family.name == name), "{name}");
        }
    }
    assert_eq!(wrong, Vec::<String>::new());
    assert!(rules.len() >= 15 && alerts >= 9, "{alerts} of {}", rules.len());
}

#[test]
fn the_dashboard_asks_for_what_there_is() {
    let (samples, mut wrong) = (samples(), Vec::new());
    let dashboard: Value = serde_json::from_str(DASHBOARD).unwrap();
    let panels = dashboard["panels"].as_array().unwrap();
    let targets: Vec<&Value> =
        panels.iter().flat_map(|panel| panel["targets"].as_array().into_iter().flatten()).collect();
    for target in &targets {
        let labels = check(target["expr"].as_str().unwrap(), &samples, &mut wrong);
        for label in shown(target["legendFormat"].as_str().unwrap(), "").difference(&labels) {
            wrong.push(format!("the legend shows {label}, which is not there, of {}", target["expr"]));
        }
    }
    let variables = dashboard["templating"]["list"].as_array().unwrap().iter();
    let asked: Vec<&str> = variables.filter_map(|variable| variable["query"]["query"].as_str()).collect();
    for query in &asked {
        let inside = query.strip_prefix("label_values(").unwrap().strip_suffix(')').unwrap();
        let (of, label) = inside.rsplit_once(',').unwrap();
        if !check(of, &samples, &mut wrong).contains(label.trim()) {
            wrong.push(format!("no label {label} in {query}"));
        }
    }
    assert_eq!(wrong, Vec::<String>::new());
    assert!(targets.len() >= 18 && !asked.is_empty(), "{} and {asked:?}", targets.len());
}

#[test]
fn what_there_is_not_is_found() {
    for (expression, what) in [
        ("rate(iotrace_bytes[5m])", "no metric iotrace_bytes"),
        ("iotrace_node_memory_bytes_total", "no metric"),
        ("sum(iotrace_lost_events_total{reason=\"ring\", place=\"a{b\"})", "has no label place"),
        ("sum by (le, rank) (rate(iotrace_op_duration_seconds_bucket[5m]))", "by rank"),
        ("sum by (le) (rate(iotrace_op_duration_seconds_count[5m]))", "by le"),
        ("sum by (op) (iotrace_op_failed_total) / on (layer) sum by (op) (iotrace_op_failed_total)", "on layer"),
        ("topk(8, iotrace_findings) > 0.5", "no metric iotrace_findings"),
    ] {
        let mut wrong = Vec::new();
        check(expression, &samples(), &mut wrong);
        assert!(wrong.len() == 1 && wrong[0].contains(what), "{expression}: {wrong:?}");
    }
    let mut wrong = Vec::new();
    let labels = check(
        "histogram_quantile(0.99, rate(iotrace_op_duration_seconds_bucket[5m])) and on (op) iotrace_tracing_ratio > 0",
        &samples(),
        &mut wrong,
    );
    assert_eq!((labels, wrong.len()), (names(["instance", "job"]), 1));
}
