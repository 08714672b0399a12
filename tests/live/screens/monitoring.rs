//! Alerts, recording rules and the dashboard of `dist/`: Prometheus evaluates each expression on a real trace, and its own
//! `promtool` shows when alerts fire.

use crate::common::live::until;
use crate::common::tools::prometheus::Prometheus;
use serde_json::Value;
use std::process::Command;

pub const RULES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/dist/prometheus/rules.yml");
const DASHBOARD: &str = include_str!("../../../dist/grafana/iotrace-bpf.json");

/// Parts of expressions that have no samples where nothing goes wrong while Prometheus looks, or not yet: findings are of a
/// minute.
const MAY_BE_EMPTY: [&str; 2] = ["iotrace_finding_seconds", "iotrace_op_failed_total"];

/// The rules that Prometheus has loaded, and the expressions of the dashboard, on what it has scraped.
pub fn check(prometheus: &Prometheus) {
    until("all rules to be evaluated", || {
        let rules = prometheus.rules();
        rules.len() >= 15 && rules.iter().all(|[_, health, _]| health != "unknown")
    });
    let wrong: Vec<_> = prometheus.rules().into_iter().filter(|[_, health, _]| health != "ok").collect();
    assert!(wrong.is_empty(), "{wrong:?}");
    // A rate needs two samples.
    until("a recorded figure", || prometheus.value("instance_layer:iotrace_calls:rate5m{layer='syscall'}").is_some());

    let expressions = expressions(&serde_json::from_str(DASHBOARD).unwrap());
    assert!(expressions.len() >= 18, "{expressions:?}");
    for expression in expressions {
        let query = expression.replace("$__rate_interval", "1m").replace("$instance", ".*");
        assert!(!query.contains('$'), "{expression}");
        let samples = prometheus.samples(&query);
        let may_be_empty = MAY_BE_EMPTY.iter().any(|part| query.contains(part));
        assert!(may_be_empty || !samples.is_empty(), "no samples for {query}");
    }
}

/// What the panels of a dashboard ask.
fn expressions(dashboard: &Value) -> Vec<String> {
    let panels = dashboard["panels"].as_array().unwrap();
    let targets = panels.iter().flat_map(|panel| panel["targets"].as_array().into_iter().flatten());
    targets.map(|target| target["expr"].as_str().unwrap().to_owned()).collect()
}

#[test]
fn each_alert_fires_for_what_it_is_about_and_for_nothing_else() {
    let cases = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/fixtures/prometheus/alerts.yml");
    for arguments in [["check", "rules", RULES], ["test", "rules", cases]] {
        let out = Command::new("promtool").args(arguments).output().unwrap();
        assert!(
            out.status.success(),
            "{}{}",
            String::from_utf8_lossy(&out.stdout),
            String::from_utf8_lossy(&out.stderr)
        );
    }
}
