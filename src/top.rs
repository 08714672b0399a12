//! `top`: several nodes while they are traced.

use std::io::Write;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Result, bail};
use serde_json::{Value, json};

use crate::base::text::{self, Column, Set, bytes, escape, percent, table, time};
use crate::cli::top::TopArgs;
use crate::cluster::history::State;
use crate::cluster::totals::Work;
use crate::cluster::view::{NodeRow, RankRow, View};
use crate::cluster::watch::Watch;
use crate::tui;

/// Ticks over which `--batch` compares nodes and ranks.
const TICKS: usize = 60;
/// A line is not cut.
const WIDTH: usize = 4096;
/// How often it is looked for a signal.
const STEP: Duration = Duration::from_millis(100);

/// Shows what the tracers at these addresses serve.
///
/// # Errors
/// When there is no terminal, or nothing can be written.
pub fn run(args: &TopArgs) -> Result<()> {
    if !args.batch && !tui::wanted() {
        bail!("top needs a terminal; use --batch");
    }
    let stop = tui::stop_on_signals()?;
    let mut targets = args.nodes.clone();
    let mut seen = std::collections::HashSet::new();
    targets.retain(|target| seen.insert(target.url.clone()));
    let watch = Watch::begin(&targets, args.delay)?;
    if args.batch {
        return batch(&watch, args, &stop, &mut std::io::stdout().lock());
    }
    tui::cluster::run(&watch, &stop)
}

/// A tick each time, a little after all nodes have been asked.
fn batch(watch: &Watch, args: &TopArgs, stop: &AtomicBool, out: &mut dyn Write) -> Result<()> {
    let mut due = Instant::now() + args.delay / 2;
    let mut ticks = 0;
    while args.ticks.is_none_or(|n| ticks < n) {
        // The first request has nothing to be compared with.
        due += args.delay;
        while Instant::now() < due {
            if stop.load(Ordering::Relaxed) {
                return Ok(());
            }
            thread::sleep(STEP.min(due.saturating_duration_since(Instant::now())));
        }
        let view = watch.view(TICKS);
        if args.json {
            writeln!(out, "{}", text::json(&object(&view).to_string()))?;
        } else {
            write!(out, "{}", lines(&view))?;
        }
        out.flush()?;
        ticks += 1;
    }
    Ok(())
}

fn lines(view: &View) -> String {
    let head: [Column; 12] = [
        "node", "calls/s", "read", "written", "I/O", "of mean", "wait", "failed/s", "lost", "procs", "ranks", "finding",
    ]
    .map(|head| (head, if matches!(head, "node" | "finding") { Set::Name } else { Set::Right }, 0));
    let row = |row: &NodeRow| {
        let figure = |show: &dyn Fn(&Work) -> String| row.work.as_ref().map_or_else(|| "-".to_owned(), show);
        let part = |part: Option<f64>| part.map_or_else(|| "-".to_owned(), percent);
        let finding = match (&row.state, row.findings.first()) {
            (State::Silent { why, .. }, _) => format!("no answer: {}", escape(why)),
            (State::Asked, _) => "no answer yet".to_owned(),
            (State::Answers, Some(found)) => format!("{} {}", escape(&found.rule), time((found.seconds * 1e9) as i64)),
            (State::Answers, None) => String::new(),
        };
        vec![
            escape(&row.name),
            figure(&|work| format!("{:.0}", work.calls)),
            figure(&|work| format!("{}/s", bytes(work.read as i64))),
            figure(&|work| format!("{}/s", bytes(work.written as i64))),
            part(row.share),
            row.of_mean.map_or_else(|| "-".to_owned(), |times| format!("{times:.2}x")),
            part(row.pressure),
            figure(&|work| format!("{:.0}", work.failed)),
            format!("{:.0}", row.lost),
            format!("{:.0}", row.processes),
            row.ranks.to_string(),
            finding,
        ]
    };
    let mut text = table(&head, &view.nodes.iter().map(row).collect::<Vec<_>>(), WIDTH, 0);
    for (name, times) in view.stragglers() {
        text += &format!("straggler: {} ({times:.1}x the mean)\n", escape(&name));
    }
    text.push('\n');
    text
}

/// One tick for programs.
fn object(view: &View) -> Value {
    let stragglers = view.stragglers().into_iter().map(|(name, times)| json!({"name": name, "of_mean": times}));
    json!({
        "interval_s": view.interval.as_secs_f64(),
        "nodes": view.nodes.iter().map(node).collect::<Vec<_>>(),
        "ranks": view.ranks.iter().map(rank).collect::<Vec<_>>(),
        "stragglers": stragglers.collect::<Vec<_>>(),
    })
}

fn work(work: Option<&Work>) -> Value {
    work.map_or(Value::Null, |work| {
        json!({
            "calls": work.calls, "failed": work.failed, "bytes_read": work.read, "bytes_written": work.written,
            "io_seconds": work.seconds,
        })
    })
}

fn node(row: &NodeRow) -> Value {
    let (state, why) = match &row.state {
        State::Asked => ("asked", None),
        State::Answers => ("answers", None),
        State::Silent { why, .. } => ("silent", Some(why)),
    };
    let layers = row.layers.iter().map(|(layer, of)| {
        json!({
            "layer": layer.name(), "per_second": work(Some(&of.work)), "self_seconds": of.own_seconds, "lost": of.lost,
        })
    });
    let findings = row.findings.iter().map(|found| json!({"rule": found.rule, "seconds": found.seconds}));
    json!({
        "node": row.name, "address": row.address, "state": state, "why": why, "version": row.version,
        "per_second": work(row.work.as_ref()), "io_share": row.share, "io_ns": row.io_ns, "of_mean": row.of_mean,
        "pressure_io": row.pressure, "lost": row.lost, "processes": row.processes, "ranks": row.ranks,
        "tracing": row.tracing, "restarts": row.restarts, "findings": findings.collect::<Vec<_>>(),
        "layers": layers.collect::<Vec<_>>(), "io_over_time": row.cells,
    })
}

fn rank(row: &RankRow) -> Value {
    json!({
        "rank": row.rank, "node": row.node, "per_second": work(row.work.as_ref()), "io_ns": row.io_ns,
        "of_mean": row.of_mean, "io_over_time": row.cells,
    })
}
