//! Every metric there is: name, type, unit, labels and what it counts. docs/metrics.md has the same table.

/// Types of metrics.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Type {
    Counter,
    Gauge,
    Histogram,
    Info,
}

/// One metric. Samples of counters have `_total` after the name, those of infos `_info`.
#[derive(Debug, PartialEq, Eq)]
pub struct Family {
    pub name: &'static str,
    pub kind: Type,
    /// Empty when it just counts. A unit ends the name.
    pub unit: &'static str,
    /// Those that a sample may have.
    pub labels: &'static str,
    pub help: &'static str,
}

const fn family(
    name: &'static str,
    kind: Type,
    unit: &'static str,
    labels: &'static str,
    help: &'static str,
) -> Family {
    Family { name, kind, unit, labels, help }
}

pub static BUILD: Family = family("iotrace_build", Type::Info, "", "version", "The tracer");
pub static OP_DURATION: Family = family(
    "iotrace_op_duration_seconds",
    Type::Histogram,
    "seconds",
    "layer, op, fs, scope, device",
    "Calls that are over, by duration: the outermost calls of their layer, as layer_top in the dataset. Layer block: requests, from \
     issue to completion, on each level of stacked devices",
);
pub static OP_FAILED: Family =
    family("iotrace_op_failed", Type::Counter, "", "layer, op, fs, scope, device", "Those of them that failed");
pub static OP_SELF: Family = family(
    "iotrace_op_self_seconds",
    Type::Counter,
    "seconds",
    "layer, op, fs, scope",
    "Exclusive time of all calls, outermost or not: their durations less what traced calls inside them cover. Adds up over layers",
);
pub static BYTES: Family = family(
    "iotrace_bytes",
    Type::Counter,
    "bytes",
    "layer, direction, fs, scope, device",
    "Bytes moved by outermost calls of the layer that read or write. Each layer moves the same bytes again: do not add up layers, nor \
     devices that are stacked",
);
pub static QUEUE: Family = family(
    "iotrace_device_queue_seconds",
    Type::Counter,
    "seconds",
    "device, op",
    "Time of the requests of layer block from queue to issue",
);
pub static LOST: Family = family(
    "iotrace_lost_events",
    Type::Counter,
    "",
    "layer, reason",
    "What a hook saw and what is in no other figure; the reasons are the places of table losses",
);
pub static LEFT_OUT: Family = family(
    "iotrace_left_out_calls",
    Type::Counter,
    "",
    "what",
    "Calls that were left out on purpose, as in table metrics",
);
pub static HOOKS: Family = family(
    "iotrace_hooks_seconds",
    Type::Counter,
    "seconds",
    "",
    "Time that the tracer's hooks took in all traced threads together",
);
pub static TRACING: Family = family(
    "iotrace_tracing_seconds",
    Type::Counter,
    "seconds",
    "",
    "By how much the hooks have lengthened what is traced: threads that run side by side count once",
);
pub static TRACING_RATIO: Family = family(
    "iotrace_tracing_ratio",
    Type::Gauge,
    "ratio",
    "",
    "The same as a part of the run so far. Above 0.2 durations are not to be trusted",
);
pub static PROBES: Family = family(
    "iotrace_probes",
    Type::Gauge,
    "",
    "layer, status",
    "Verdicts on probes since the start: attached, refused, absent, skipped. A layer without an attached probe is not covered",
);
pub static PROCESSES: Family =
    family("iotrace_traced_processes", Type::Gauge, "", "", "Processes that are traced and have not ended");
pub static RECORDS: Family =
    family("iotrace_records", Type::Counter, "", "", "Records that came out of the kernel's ring buffers");
pub static RING_FILL: Family = family(
    "iotrace_ring_fill_ratio",
    Type::Gauge,
    "ratio",
    "",
    "How full the fullest ring buffer was at most in the last minute; at 1 events are lost",
);
pub static RING: Family =
    family("iotrace_ring_bytes", Type::Gauge, "bytes", "", "Budget of all ring buffers together: --ring-size");
pub static OWN_CPU: Family =
    family("process_cpu_seconds", Type::Counter, "seconds", "", "CPU time of the tracer's own process");
pub static OWN_MEMORY: Family =
    family("process_resident_memory_bytes", Type::Gauge, "bytes", "", "Memory of the tracer's own process");
pub static OWN_START: Family =
    family("process_start_time_seconds", Type::Gauge, "seconds", "", "Start of the trace, seconds since 1970");
pub static NODE_SOURCE: Family = family(
    "iotrace_node_source",
    Type::Gauge,
    "",
    "source",
    "1 when the figures of the node could be read there, 0 when the kernel does not have that",
);
pub static NODE_CPU: Family =
    family("iotrace_node_cpu_seconds", Type::Counter, "seconds", "mode", "CPU time of all CPUs since boot: /proc/stat");
pub static NODE_MEMORY: Family =
    family("iotrace_node_memory_bytes", Type::Gauge, "bytes", "kind", "Memory of the node: /proc/meminfo");
pub static NODE_PRESSURE: Family = family(
    "iotrace_node_pressure_seconds",
    Type::Counter,
    "seconds",
    "resource, kind",
    "Time in which some tasks, or all (full), waited for the resource since boot: /proc/pressure",
);
pub static NODE_NETWORK: Family = family(
    "iotrace_node_network_bytes",
    Type::Counter,
    "bytes",
    "interface, direction",
    "Bytes of each network interface: /proc/net/dev",
);
pub static NODE_DEVICE_REQUESTS: Family = family(
    "iotrace_node_device_requests",
    Type::Counter,
    "",
    "device, op",
    "Requests that are complete, as the kernel counts them: /proc/diskstats, without partitions",
);
pub static NODE_DEVICE_BYTES: Family =
    family("iotrace_node_device_bytes", Type::Counter, "bytes", "device, op", "Bytes of these requests");
pub static NODE_DEVICE_TIME: Family =
    family("iotrace_node_device_time_seconds", Type::Counter, "seconds", "device, op", "Time of these requests");
pub static NODE_DEVICE_BUSY: Family = family(
    "iotrace_node_device_busy_seconds",
    Type::Counter,
    "seconds",
    "device",
    "Time in which the device had a request",
);
pub static NODE_DEVICE_IN_FLIGHT: Family =
    family("iotrace_node_device_in_flight", Type::Gauge, "", "device", "Requests that the device has now");
pub static TARGET_CPU: Family =
    family("iotrace_target_cpu_seconds", Type::Counter, "seconds", "", "CPU time of the traced processes");
pub static TARGET_FAULTS: Family = family(
    "iotrace_target_page_faults",
    Type::Counter,
    "",
    "kind",
    "Page faults of the traced processes, on files or not",
);
pub static TARGET_SWITCHES: Family = family(
    "iotrace_target_context_switches",
    Type::Counter,
    "",
    "",
    "How often threads of the traced processes left a CPU",
);
pub static TARGET_MIGRATIONS: Family = family(
    "iotrace_target_cpu_migrations",
    Type::Counter,
    "",
    "",
    "How often threads of the traced processes went on on another CPU",
);
pub static TARGET_HARDWARE: Family = family(
    "iotrace_target_hardware_events",
    Type::Counter,
    "",
    "event",
    "What the CPUs count of the traced processes: cycles, instructions, misses",
);

/// All of them, in the order in which they are served.
pub static ALL: [&Family; 34] = [
    &BUILD,
    &OP_DURATION,
    &OP_FAILED,
    &OP_SELF,
    &BYTES,
    &QUEUE,
    &LOST,
    &LEFT_OUT,
    &HOOKS,
    &TRACING,
    &TRACING_RATIO,
    &PROBES,
    &PROCESSES,
    &RECORDS,
    &RING_FILL,
    &RING,
    &OWN_CPU,
    &OWN_MEMORY,
    &OWN_START,
    &NODE_SOURCE,
    &NODE_CPU,
    &NODE_MEMORY,
    &NODE_PRESSURE,
    &NODE_NETWORK,
    &NODE_DEVICE_REQUESTS,
    &NODE_DEVICE_BYTES,
    &NODE_DEVICE_TIME,
    &NODE_DEVICE_BUSY,
    &NODE_DEVICE_IN_FLIGHT,
    &TARGET_CPU,
    &TARGET_FAULTS,
    &TARGET_SWITCHES,
    &TARGET_MIGRATIONS,
    &TARGET_HARDWARE,
];

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn names_are_as_openmetrics_wants_them() {
        let names: BTreeSet<&str> = ALL.iter().map(|f| f.name).collect();
        assert_eq!(names.len(), ALL.len());
        for f in ALL {
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
