//! The platform and the run, a line for each fact: `# NAME: VALUE`, or `# NAME FIELD=VALUE ...` where there are
//! several.

use std::collections::BTreeMap;
use std::io::Write;

use anyhow::Result;

use super::lines::{Line, quoted};
use crate::analysis::trace::source::Source;
use crate::base::text::{escape, wall};
use crate::export::report::{Finding, LayerCoverage, LossRow, NodeRow, Report, Union};
use crate::rows::{Mount, Process};

/// Facts that come first, in this order.
const FIRST: [&str; 16] = [
    "version",
    "schema",
    "command",
    "mode",
    "host",
    "kernel",
    "cpus",
    "cpu_model",
    "memory_bytes",
    "numa_nodes",
    "node_hardware",
    "library_tier",
    "ring_bytes",
    "phases",
    "probes",
    "config",
];

pub fn write(union: &mut Union, report: &Report, out: &mut dyn Write) -> Result<()> {
    writeln!(out, "# iotrace-bpf text: {}", crate::export::SCHEMA)?;
    let mut facts = union.facts();
    let fact = |out: &mut dyn Write, name: &str, value: &str| writeln!(out, "# {}: {}", escape(name), escape(value));
    for name in FIRST {
        facts.remove(name).map_or(Ok(()), |value| fact(out, name, &value))?;
    }
    report.header.start_wall_ns.map_or(Ok(()), |ns| fact(out, "start", &wall(ns)))?;
    // By their numbers.
    let number = |name: &str| name.rsplit(['.', '_']).next().and_then(|n| n.parse::<u64>().ok());
    let mut rest: Vec<_> = facts.iter().collect();
    rest.sort_by_key(|(name, _)| {
        (number(name).map(|_| name.trim_end_matches(|c: char| c.is_ascii_digit())), number(name), *name)
    });
    rest.into_iter().try_for_each(|(name, value)| fact(out, name, value))?;
    for NodeRow { host, datasets, start_wall_ns, kernel, .. } in &report.nodes {
        let mut line = Line::fact("node");
        line.field("host", Some(escape(host)));
        line.field("kernel", kernel.as_ref().map(escape));
        line.field("start", start_wall_ns.map(|ns| quoted(&wall(ns))));
        line.field("datasets", Some(datasets));
        writeln!(out, "{}", line.text())?;
    }
    for (by, opens) in &report.header.mpiio {
        let mut line = Line::fact("mpiio");
        line.field("by", Some(quoted(by)));
        line.field("opens", Some(opens));
        writeln!(out, "{}", line.text())?;
    }
    processes(union, out)?;
    mounts(union, out)?;
    report.coverage.iter().try_for_each(|layer| writeln!(out, "{}", coverage(layer)))?;
    report.losses.iter().try_for_each(|loss| writeln!(out, "{}", lost(loss)))?;
    report.findings.findings.iter().try_for_each(|finding| writeln!(out, "{}", found(finding)))?;
    Ok(())
}

fn processes(union: &mut Union, out: &mut dyn Write) -> Result<()> {
    // Of several rows of one process the last holds.
    let mut all = BTreeMap::<i32, Process>::new();
    union.processes(&mut |process| {
        all.insert(process.process_ix, process.clone());
        Ok(())
    })?;
    for process in all.into_values() {
        let mut line = Line::fact("process");
        line.field("pid", Some(process.pid));
        line.field("ppid", Some(process.ppid));
        line.field("rank", process.rank);
        line.field("world_size", process.world_size);
        line.field("exe", process.exe.as_deref().map(quoted));
        line.field("cmdline", (!process.cmdline.is_empty()).then(|| quoted(&process.cmdline.join(" "))));
        line.field("uid", Some(process.uid));
        line.field("user", process.user.as_deref().map(quoted));
        line.field("container", process.container.as_deref().map(quoted));
        line.field("unit", process.unit.as_deref().map(quoted));
        line.field("job_id", process.job_id.as_deref().map(quoted));
        line.field("start_ns", Some(process.start_ns));
        line.field("end_ns", process.end_ns);
        line.field("exit_code", process.exit_code);
        writeln!(out, "{}", line.text())?;
    }
    Ok(())
}

fn mounts(union: &mut Union, out: &mut dyn Write) -> Result<()> {
    let mut all = BTreeMap::<i32, Mount>::new();
    union.mounts(&mut |mount| {
        all.insert(mount.mount_id, mount.clone());
        Ok(())
    })?;
    for mount in all.into_values() {
        let mut line = Line::fact("mount");
        line.field("path", Some(quoted(&mount.path)));
        line.field("fstype", Some(escape(&mount.fstype)));
        line.field("scope", Some(mount.scope));
        line.field("source", Some(quoted(&mount.source)));
        line.field("server", mount.server.as_deref().map(quoted));
        line.field("options", Some(quoted(&mount.options)));
        line.field("super_options", Some(quoted(&mount.super_options)));
        line.field("device", mount.device.as_deref().map(quoted));
        line.field("disk", mount.disk.as_deref().map(quoted));
        line.field("model", mount.model.as_deref().map(quoted));
        line.field("block_size", mount.block_size);
        line.field("opt_io_size", mount.opt_io_size);
        line.field("rotational", mount.rotational);
        line.field("scheduler", mount.scheduler.as_deref().map(quoted));
        writeln!(out, "{}", line.text())?;
    }
    Ok(())
}

fn coverage(layer: &LayerCoverage) -> String {
    let mut line = Line::fact("coverage");
    line.field("layer", Some(layer.layer));
    line.field("attached", Some(layer.attached));
    line.field("probes", Some(layer.probes));
    let tiers: Vec<String> = layer.tiers.iter().map(|(tier, n)| format!("{tier}:{n}")).collect();
    line.field("tiers", (!tiers.is_empty()).then(|| tiers.join(",")));
    line.field("not_covered", layer.not_covered.as_deref().map(quoted));
    line.text()
}

fn lost(loss: &LossRow) -> String {
    let mut line = Line::fact("lost");
    line.field("layer", loss.layer);
    line.field("place", Some(loss.place));
    line.field("count", Some(loss.count));
    line.text()
}

fn found(finding: &Finding) -> String {
    let mut line = Line::fact("finding");
    line.field("rule", Some(finding.rule));
    line.field("severity", Some(finding.severity.name()));
    line.field("seconds", finding.seconds);
    line.field("title", Some(quoted(&finding.title)));
    line.field("advice", Some(quoted(&finding.advice)));
    line.text()
}
