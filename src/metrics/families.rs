//! Every metric there is: name, type, unit, labels, what it counts and its samples. docs/metrics.md has the same table.

pub use crate::metrics::family::{Family, Type};

use crate::metrics::family::family;
use crate::metrics::samples::{self, Page};
use crate::metrics::text::{Seconds, Text};
use crate::node::figures::Figure;
use crate::vocabulary::Layer;

/// Writes the samples of a metric.
type Samples = fn(&mut Text, &Page);

/// All of them, in the order in which they are served.
pub static ALL: [(Family, Samples); 40] = [
    (family("iotrace_build", Type::Info, "", "version, node", "The tracer, and the name of its node"), |t, p| {
        t.sample(&[("version", env!("CARGO_PKG_VERSION")), ("node", &p.own.node)], 1);
    }),
    (
        family(
            "iotrace_op_duration_seconds",
            Type::Histogram,
            "seconds",
            "layer, op, fs, scope, device",
            "Calls that are over, by duration: the outermost calls of their layer, as layer_top in the dataset. Layer block: requests, from \
     issue to completion, on each level of stacked devices",
        ),
        samples::op_duration,
    ),
    (
        family("iotrace_op_failed", Type::Counter, "", "layer, op, fs, scope, device", "Those of them that failed"),
        samples::op_failed,
    ),
    (
        family(
            "iotrace_op_self_seconds",
            Type::Counter,
            "seconds",
            "layer, op, fs, scope",
            "Exclusive time of all calls, outermost or not: their durations less what traced calls inside them cover. Adds up over layers",
        ),
        samples::op_self,
    ),
    (
        family(
            "iotrace_op_speed",
            Type::Counter,
            "",
            "layer, op, speed",
            "With --baseline: calls by class against calls like them in earlier runs, very slow to very fast",
        ),
        |t, p| {
            for (layer, op, speed, n) in p.counts.speeds() {
                t.sample(&[("layer", layer.name()), ("op", op), ("speed", speed)], n);
            }
        },
    ),
    (
        family(
            "iotrace_bytes",
            Type::Counter,
            "bytes",
            "layer, direction, fs, scope, device",
            "Bytes moved by outermost calls of the layer that read or write. Each layer moves the same bytes again: do not add up layers, nor \
     devices that are stacked",
        ),
        samples::bytes,
    ),
    (
        family(
            "iotrace_program_calls",
            Type::Counter,
            "",
            "rank",
            "Calls that the traced programs made themselves, whatever their layer; in aggregate mode system calls and page faults",
        ),
        |t, p| {
            samples::program(t, p, |sums| sums.calls);
        },
    ),
    (family("iotrace_program_failed", Type::Counter, "", "rank", "Those of them that failed"), |t, p| {
        samples::program(t, p, |sums| sums.errors);
    }),
    (
        family("iotrace_program_bytes", Type::Counter, "bytes", "rank, direction", "Bytes that they moved"),
        samples::program_bytes,
    ),
    (
        family(
            "iotrace_program_io_seconds",
            Type::Counter,
            "seconds",
            "rank",
            "Time in them: time in I/O of each rank",
        ),
        |t, p| {
            for (rank, sums) in p.counts.own() {
                t.sample(&[("rank", &rank)], Seconds(sums.dur_ns as u128));
            }
        },
    ),
    (
        family(
            "iotrace_device_queue_seconds",
            Type::Counter,
            "seconds",
            "device, op",
            "Time of the requests of layer block from queue to issue",
        ),
        |t, p| {
            for (device, op, requests) in p.counts.requests() {
                t.sample(&[("device", device), ("op", op)], Seconds(requests.queue_ns));
            }
        },
    ),
    (
        family(
            "iotrace_lost_events",
            Type::Counter,
            "",
            "layer, reason",
            "What a hook saw and what is in no other figure; the reasons are the places of table losses",
        ),
        |t, p| {
            for (layer, reason, n) in p.counts.lost() {
                t.sample(&[("layer", layer.map_or("unknown", Layer::name)), ("reason", reason)], n);
            }
        },
    ),
    (
        family(
            "iotrace_left_out_calls",
            Type::Counter,
            "",
            "what",
            "Calls that were left out on purpose, as in table metrics",
        ),
        |t, p| p.counts.left_out_calls().for_each(|(what, n)| t.sample(&[("what", what)], n)),
    ),
    (
        family(
            "iotrace_hooks_seconds",
            Type::Counter,
            "seconds",
            "",
            "Time that the tracer's hooks took in all traced threads together",
        ),
        |t, p| t.sample(&[], Seconds(p.counts.tracing.hooks_ns as u128)),
    ),
    (
        family(
            "iotrace_tracing_seconds",
            Type::Counter,
            "seconds",
            "",
            "By how much the hooks have lengthened what is traced: threads that run side by side count once",
        ),
        |t, p| t.sample(&[], Seconds(p.counts.tracing.tracing_ns() as u128)),
    ),
    (
        family(
            "iotrace_tracing_ratio",
            Type::Gauge,
            "ratio",
            "",
            "The same as a part of the run so far. Above 0.2 durations are not to be trusted",
        ),
        |t, p| p.counts.tracing.share().into_iter().for_each(|share| t.sample(&[], share)),
    ),
    (
        family(
            "iotrace_finding_seconds",
            Type::Gauge,
            "seconds",
            "rule",
            "Wall time of the last minute that a cause has cost the rank or process that decides how long the run takes: \
     `iotrace-bpf rules`. Each second counts for one rule. No samples while tracing takes more than 0.2 of the run",
        ),
        |t, p| p.counts.findings().for_each(|(rule, seconds)| t.sample(&[("rule", rule)], seconds)),
    ),
    (
        family(
            "iotrace_probes",
            Type::Gauge,
            "",
            "layer, status",
            "Verdicts on probes since the start: attached, refused, absent, skipped. A layer without an attached probe is not covered",
        ),
        |t, p| {
            for (layer, status, n) in p.counts.probes() {
                t.sample(&[("layer", layer.name()), ("status", status)], n);
            }
        },
    ),
    (
        family("iotrace_traced_processes", Type::Gauge, "", "", "Processes that are traced and have not ended"),
        |t, p| t.sample(&[], p.counts.processes()),
    ),
    (family("iotrace_records", Type::Counter, "", "", "Records that came out of the kernel's ring buffers"), |t, p| {
        t.sample(&[], p.own.records);
    }),
    (
        family(
            "iotrace_ring_fill_ratio",
            Type::Gauge,
            "ratio",
            "",
            "How full the fullest ring buffer was at most in the last minute; at 1 events are lost",
        ),
        |t, p| t.sample(&[], p.own.ring_fill),
    ),
    (
        family("iotrace_ring_bytes", Type::Gauge, "bytes", "", "Budget of all ring buffers together: --ring-size"),
        |t, p| t.sample(&[], p.own.ring_bytes),
    ),
    (family("process_cpu_seconds", Type::Counter, "seconds", "", "CPU time of the tracer's own process"), |t, p| {
        t.sample(&[], Seconds(p.own.cpu_ns));
    }),
    (
        family("process_resident_memory_bytes", Type::Gauge, "bytes", "", "Memory of the tracer's own process"),
        |t, p| p.own.memory_bytes.into_iter().for_each(|bytes| t.sample(&[], bytes)),
    ),
    (
        family("process_start_time_seconds", Type::Gauge, "seconds", "", "Start of the trace, seconds since 1970"),
        |t, p| t.sample(&[], Seconds(p.own.started_ns)),
    ),
    (
        family(
            "iotrace_node_source",
            Type::Gauge,
            "",
            "source",
            "1 when the figures of the node could be read there, 0 when the kernel does not have that",
        ),
        |t, p| {
            for (source, there) in &p.node.sources {
                t.sample(&[("source", source)], u8::from(*there));
            }
        },
    ),
    (
        family(
            "iotrace_node_cpu_seconds",
            Type::Counter,
            "seconds",
            "mode",
            "CPU time of all CPUs since boot: /proc/stat",
        ),
        |t, p| samples::figure(t, p, Figure::Cpu, "", "mode"),
    ),
    (family("iotrace_node_memory_bytes", Type::Gauge, "bytes", "kind", "Memory of the node: /proc/meminfo"), |t, p| {
        samples::figure(t, p, Figure::Memory, "", "kind");
    }),
    (
        family(
            "iotrace_node_pressure_seconds",
            Type::Counter,
            "seconds",
            "resource, kind",
            "Time in which some tasks, or all (full), waited for the resource since boot: /proc/pressure",
        ),
        |t, p| samples::figure(t, p, Figure::Pressure, "resource", "kind"),
    ),
    (
        family(
            "iotrace_node_network_bytes",
            Type::Counter,
            "bytes",
            "interface, direction",
            "Bytes of each network interface: /proc/net/dev",
        ),
        |t, p| samples::figure(t, p, Figure::Network, "interface", "direction"),
    ),
    (
        family(
            "iotrace_node_device_requests",
            Type::Counter,
            "",
            "device, op",
            "Requests that are complete, as the kernel counts them: /proc/diskstats, without partitions",
        ),
        |t, p| samples::figure(t, p, Figure::DeviceRequests, "device", "op"),
    ),
    (family("iotrace_node_device_bytes", Type::Counter, "bytes", "device, op", "Bytes of these requests"), |t, p| {
        samples::figure(t, p, Figure::DeviceBytes, "device", "op");
    }),
    (
        family("iotrace_node_device_time_seconds", Type::Counter, "seconds", "device, op", "Time of these requests"),
        |t, p| samples::figure(t, p, Figure::DeviceTime, "device", "op"),
    ),
    (
        family(
            "iotrace_node_device_busy_seconds",
            Type::Counter,
            "seconds",
            "device",
            "Time in which the device had a request",
        ),
        |t, p| samples::figure(t, p, Figure::DeviceBusy, "device", ""),
    ),
    (family("iotrace_node_device_in_flight", Type::Gauge, "", "device", "Requests that the device has now"), |t, p| {
        samples::figure(t, p, Figure::DeviceInFlight, "device", "");
    }),
    (family("iotrace_target_cpu_seconds", Type::Counter, "seconds", "", "CPU time of the traced processes"), |t, p| {
        samples::figure(t, p, Figure::TargetCpu, "", "");
    }),
    (
        family(
            "iotrace_target_page_faults",
            Type::Counter,
            "",
            "kind",
            "Page faults of the traced processes, on files or not",
        ),
        |t, p| samples::figure(t, p, Figure::TargetFaults, "", "kind"),
    ),
    (
        family(
            "iotrace_target_context_switches",
            Type::Counter,
            "",
            "",
            "How often threads of the traced processes left a CPU",
        ),
        |t, p| samples::figure(t, p, Figure::TargetSwitches, "", ""),
    ),
    (
        family(
            "iotrace_target_cpu_migrations",
            Type::Counter,
            "",
            "",
            "How often threads of the traced processes went on on another CPU",
        ),
        |t, p| samples::figure(t, p, Figure::TargetMigrations, "", ""),
    ),
    (
        family(
            "iotrace_target_hardware_events",
            Type::Counter,
            "",
            "event",
            "What the CPUs count of the traced processes: cycles, instructions, misses",
        ),
        |t, p| samples::figure(t, p, Figure::TargetHardware, "", "event"),
    ),
];

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn names_are_as_openmetrics_wants_them() {
        let names: BTreeSet<&str> = ALL.iter().map(|(f, _)| f.name).collect();
        assert_eq!(names.len(), ALL.len());
        for (f, _) in &ALL {
            let name = f.name;
            assert!(name.bytes().all(|b| b.is_ascii_lowercase() || b == b'_'), "{name}");
            assert!(!name.ends_with("_total") && !name.ends_with("_info"), "{name}: samples get that");
            assert!(f.unit.is_empty() || name.ends_with(&format!("_{}", f.unit)), "{name}: {}", f.unit);
            // No name may be that of another one's samples.
            for suffix in ["_total", "_info", "_bucket", "_count", "_sum", "_created"] {
                assert!(!names.contains(format!("{name}{suffix}").as_str()), "{name}{suffix}");
            }
            assert!(!f.help.is_empty() && !f.help.contains(['\n', '\\', '"']), "{name}: {:?}", f.help);
        }
    }
}
