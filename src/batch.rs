//! `--batch`: what the overview shows, as lines or as one JSON object per tick, for scripts and logs.

use crate::base::text::{self, Column, Set, bytes, escape, percent, table, time};
use crate::node::Recent;
use crate::node::figures::{LEVELS, TOTALS};
use crate::summary::filter::Filter;
use crate::summary::view::{Focus, Percentiles, Snapshot, Source, Sums};
use crate::vocabulary::Layer;
use anyhow::Result;
use serde_json::{Value, json};
use std::io::Write;
use std::sync::Arc;
use std::time::Duration;

/// Files and processes of a tick.
const ROWS: usize = 10;
/// A line is not cut.
const WIDTH: usize = 4096;

/// How it is to be shown.
#[derive(Debug, Clone, Default)]
pub struct Batch {
    pub json: bool,
    pub delay: Duration,
    /// Ticks; until the end when not given.
    pub ticks: Option<u64>,
    pub filter: Option<Arc<Filter>>,
}

/// Writes ticks until there are enough, or nothing new comes. `wait` returns false when it is to end.
///
/// # Errors
/// When nothing can be written.
pub fn run(
    source: &mut dyn Source,
    batch: &Batch,
    out: &mut dyn Write,
    mut wait: impl FnMut(Duration) -> bool,
) -> Result<()> {
    let focus = Focus { filter: batch.filter.clone(), ..Focus::default() };
    let mut ticks = 0;
    while batch.ticks.is_none_or(|n| ticks < n) {
        let live = wait(batch.delay);
        let snapshot = source.snapshot(&focus);
        if batch.json {
            writeln!(out, "{}", text::json(&object(&snapshot).to_string()))?;
        } else {
            write!(out, "{}", lines(&snapshot))?;
        }
        out.flush()?;
        ticks += 1;
        if !live {
            break;
        }
    }
    Ok(())
}

fn name(layer: Option<Layer>) -> &'static str {
    layer.map_or("unknown", Layer::name)
}

fn rate(per_s: f64) -> String {
    format!("{}/s", bytes(per_s as i64))
}

/// One tick for people.
pub fn lines(s: &Snapshot) -> String {
    let lost: Vec<String> = s.status.lost_by_layer.iter().map(|(l, n)| format!("{} {n}", name(*l))).collect();
    let lost = if lost.is_empty() { String::new() } else { format!(" ({})", lost.join(", ")) };
    let mut text = format!(
        "at {}  events/s {:.0}  lost {}{lost}  probes {}/{}  processes {}\n",
        time(s.window.to_ns),
        s.status.events_per_s,
        s.status.lost,
        s.status.probes_attached,
        s.status.probes,
        s.status.processes
    );
    for note in s.notes.iter() {
        text += &format!("note: {}\n", escape(note));
    }
    let head: [Column; 10] = ["layer", "calls/s", "read", "written", "self", "p50", "p99", "max", "calls", "errors"]
        .map(|h| (h, if h == "layer" { Set::Name } else { Set::Right }, 0));
    let rows: Vec<Vec<String>> = s
        .overview
        .layers
        .iter()
        .map(|l| {
            let latency = |of: fn(&Percentiles) -> i64| l.latency.as_ref().map_or("-".to_owned(), |p| time(of(p)));
            if !l.covered {
                let why =
                    l.why_not.as_deref().map_or_else(|| "not covered".to_owned(), |w| format!("not covered: {w}"));
                return vec![name(l.layer).to_owned(), escape(why)];
            }
            vec![
                name(l.layer).to_owned(),
                format!("{:.0}", l.calls_per_s),
                rate(l.read_per_s),
                rate(l.written_per_s),
                percent(l.self_share),
                latency(|p| p.p50),
                latency(|p| p.p99),
                latency(|p| p.max),
                l.sums.calls.to_string(),
                l.sums.errors.to_string(),
            ]
        })
        .collect();
    let (covered, not): (Vec<_>, Vec<_>) = rows.into_iter().partition(|r| r.len() > 2);
    text += &table(&head, &covered, WIDTH, 0);
    for row in not {
        text += &format!("{}\n", row.join(": "));
    }
    text.push('\n');
    text
}

fn sums(s: &Sums) -> Value {
    json!({
        "calls": s.calls, "bytes_read": s.bytes_read, "bytes_written": s.bytes_written,
        "dur_ns": s.dur_ns, "self_ns": s.self_ns, "errors": s.errors,
    })
}

fn percentiles(p: Option<&Percentiles>) -> Value {
    p.map_or(Value::Null, |p| json!({"p50": p.p50, "p90": p.p90, "p95": p.p95, "p99": p.p99, "max": p.max}))
}

/// The last points of the node at each resolution.
fn node(recent: &Recent) -> Value {
    let figures = |names: &[&'static str], values: &[Option<f64>]| -> Vec<(String, Value)> {
        names.iter().zip(values).map(|(name, value)| ((*name).to_owned(), json!(value))).collect()
    };
    let resolutions = recent.resolutions.points().map(|(width, points)| {
        let points = points.iter().map(|p| {
            let times = [("from_ns".to_owned(), json!(p.from_ns)), ("to_ns".to_owned(), json!(p.to_ns))];
            let figures = figures(&TOTALS, &p.rates).into_iter().chain(figures(&LEVELS, &p.means));
            Value::Object(times.into_iter().chain(figures).collect())
        });
        json!({"width_ns": width, "points": points.collect::<Vec<_>>()})
    });
    let missing = recent.missing.iter().map(|m| json!({"path": m.path, "why": m.why}));
    json!({"resolutions": resolutions.collect::<Vec<_>>(), "missing": missing.collect::<Vec<_>>()})
}

/// One tick for programs.
pub fn object(s: &Snapshot) -> Value {
    let layers = s.overview.layers.iter().map(|l| {
        json!({
            "layer": name(l.layer), "covered": l.covered, "why_not": l.why_not, "sums": sums(&l.sums),
            "calls_per_s": l.calls_per_s, "read_per_s": l.read_per_s, "written_per_s": l.written_per_s,
            "self_share": l.self_share, "latency_ns": percentiles(l.latency.as_ref()), "lost": l.lost,
        })
    });
    let chain = s.overview.chain.iter().map(|c| {
        json!({
            "layer": c.layer.map_or("asked", Layer::name),
            "bytes_read": c.bytes_read, "bytes_written": c.bytes_written, "ratio": c.ratio,
        })
    });
    let processes = s.processes.rows.iter().take(ROWS).map(|p| {
        json!({"process_ix": p.process_ix, "pid": p.pid, "rank": p.rank, "command": &*p.cmdline, "sums": sums(&p.sums)})
    });
    let files = s.files.rows.iter().take(ROWS).map(
        |f| json!({"file_id": f.file_id, "path": &*f.path, "sums": sums(&f.sums), "device_bytes": f.device_bytes}),
    );
    let lost = s.status.lost_by_layer.iter().map(|(l, n)| (name(*l).to_owned(), json!(n)));
    json!({
        "t_ns": s.window.to_ns,
        "ended": s.run.ended,
        "events": s.status.events,
        "events_per_s": s.status.events_per_s,
        "lost": s.status.lost,
        "lost_by_layer": lost.collect::<serde_json::Map<_, _>>(),
        "probes_attached": s.status.probes_attached,
        "probes": s.status.probes,
        "processes_now": s.status.processes,
        "layers": layers.collect::<Vec<_>>(),
        "chain": chain.collect::<Vec<_>>(),
        "processes": processes.collect::<Vec<_>>(),
        "files": files.collect::<Vec<_>>(),
        "node": s.recent_node.as_deref().map(node),
        "notes": s.notes.iter().collect::<Vec<_>>(),
    })
}
