//! The figures of the node and of the traced processes, and how those of the node are read from the texts of /proc.

use std::collections::HashSet;
use std::sync::Arc;

/// Devices, and interfaces, of which there are figures at most: what is kept and shown of them stays bounded.
const MAX: usize = 256;
/// Of /proc/diskstats, whatever the device's own sectors are (`Documentation/admin-guide/iostats.rst`).
const SECTOR: f64 = 512.0;

/// What a reading is of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Figure {
    Cpu,
    Memory,
    Pressure,
    Network,
    DeviceRequests,
    DeviceBytes,
    DeviceTime,
    DeviceBusy,
    DeviceInFlight,
    TargetCpu,
    TargetFaults,
    TargetSwitches,
    TargetMigrations,
    TargetHardware,
}

/// All figures, in the order in which they are shown.
pub const FIGURES: [Figure; 14] = [
    Figure::Cpu,
    Figure::Memory,
    Figure::Pressure,
    Figure::Network,
    Figure::DeviceRequests,
    Figure::DeviceBytes,
    Figure::DeviceTime,
    Figure::DeviceBusy,
    Figure::DeviceInFlight,
    Figure::TargetCpu,
    Figure::TargetFaults,
    Figure::TargetSwitches,
    Figure::TargetMigrations,
    Figure::TargetHardware,
];

impl Figure {
    /// Its name in the table `metrics`.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Cpu => "node_cpu_seconds",
            Self::Memory => "node_memory_bytes",
            Self::Pressure => "node_pressure_seconds",
            Self::Network => "node_network_bytes",
            Self::DeviceRequests => "node_device_requests",
            Self::DeviceBytes => "node_device_bytes",
            Self::DeviceTime => "node_device_time_seconds",
            Self::DeviceBusy => "node_device_busy_seconds",
            Self::DeviceInFlight => "node_device_in_flight",
            Self::TargetCpu => "target_cpu_seconds",
            Self::TargetFaults => "target_page_faults",
            Self::TargetSwitches => "target_context_switches",
            Self::TargetMigrations => "target_cpu_migrations",
            Self::TargetHardware => "target_hardware_events",
        }
    }
}

/// One value.
#[derive(Debug, Clone, PartialEq)]
pub struct Reading {
    pub figure: Figure,
    /// The device, interface or resource; empty for what there is once.
    pub of: Arc<str>,
    /// The mode, kind, direction or operation; empty where there is one only.
    pub part: &'static str,
    pub value: f64,
}

impl Reading {
    fn new(figure: Figure, of: impl Into<Arc<str>>, part: &'static str, value: f64) -> Self {
        Self { figure, of: of.into(), part, value }
    }

    /// Both names, as in the table `metrics`.
    pub fn label(&self) -> Option<String> {
        match (&*self.of, self.part) {
            ("", "") => None,
            (of, "") => Some(of.to_owned()),
            ("", part) => Some(part.to_owned()),
            (of, part) => Some(format!("{of} {part}")),
        }
    }
}

/// The columns of the first line of /proc/stat.
const MODES: [&str; 8] = ["user", "nice", "system", "idle", "iowait", "irq", "softirq", "steal"];

/// CPU seconds of all CPUs since boot, of /proc/stat.
pub fn cpu(stat: &str, ticks_per_second: f64) -> Vec<Reading> {
    let line = stat.lines().find_map(|l| l.strip_prefix("cpu ")).unwrap_or_default();
    let ticks = line.split_whitespace().map_while(|n| n.parse::<f64>().ok());
    MODES.iter().zip(ticks).map(|(mode, n)| Reading::new(Figure::Cpu, "", mode, n / ticks_per_second)).collect()
}

/// Lines of /proc/meminfo, and what they are called here.
const MEMORY: [(&str, &str); 6] = [
    ("MemTotal:", "total"),
    ("MemFree:", "free"),
    ("MemAvailable:", "available"),
    ("Cached:", "cached"),
    ("Dirty:", "dirty"),
    ("Writeback:", "writeback"),
];

/// Bytes, of /proc/meminfo.
pub fn memory(meminfo: &str) -> Vec<Reading> {
    let reading = |line: &str| {
        let mut fields = line.split_whitespace();
        let name = fields.next()?;
        let (_, kind) = MEMORY.iter().find(|(known, _)| *known == name)?;
        Some(Reading::new(Figure::Memory, "", kind, fields.next()?.parse::<f64>().ok()? * 1024.0))
    };
    meminfo.lines().filter_map(reading).collect()
}

/// Seconds for which some, or all, tasks waited for a resource, of a file in /proc/pressure.
pub fn pressure(resource: &str, text: &str) -> Vec<Reading> {
    let reading = |line: &str| {
        let mut fields = line.split_whitespace();
        let kind = fields.next()?;
        let kind = ["some", "full"].into_iter().find(|k| *k == kind)?;
        let micros: f64 = fields.find_map(|w| w.strip_prefix("total="))?.parse().ok()?;
        Some(Reading::new(Figure::Pressure, resource, kind, micros / 1e6))
    };
    text.lines().filter_map(reading).collect()
}

/// Bytes by interface, of /proc/net/dev.
pub fn network(text: &str) -> Vec<Reading> {
    let of = |line: &str| {
        // A name may have a colon in it; the figures have none.
        let (name, figures) = line.rsplit_once(':')?;
        let mut figures = figures.split_whitespace();
        let received = figures.next()?.parse().ok()?;
        let sent = figures.nth(7)?.parse().ok()?;
        let reading = |part, value| Reading::new(Figure::Network, name.trim(), part, value);
        Some([reading("received", received), reading("sent", sent)])
    };
    text.lines().filter_map(of).take(MAX).flatten().collect()
}

/// The figures of each operation: their positions in a line of /proc/diskstats, counted from the name: requests, sectors,
/// milliseconds.
const OPERATIONS: [(&str, usize, Option<usize>, usize); 4] =
    [("read", 1, Some(3), 4), ("write", 5, Some(7), 8), ("discard", 12, Some(14), 15), ("flush", 16, None, 17)];
const IN_FLIGHT: usize = 9;
const BUSY_MS: usize = 10;

/// What devices did since boot, of /proc/diskstats. `whole`: is it no partition?
pub fn devices(text: &str, mut whole: impl FnMut(&str) -> bool) -> Vec<Reading> {
    let mut readings = Vec::new();
    let lines = text.lines().map(|l| l.split_whitespace().skip(2).collect::<Vec<_>>());
    for fields in lines.filter(|w| w.first().is_some_and(|name| whole(name))).take(MAX) {
        let name: Arc<str> = fields[0].into();
        // Older kernels have shorter lines.
        let at = |at: usize| fields.get(at)?.parse::<f64>().ok();
        let mut add = |figure, part, value: Option<f64>| {
            readings.extend(value.map(|value| Reading::new(figure, Arc::clone(&name), part, value)));
        };
        for (op, requests, sectors, ms) in OPERATIONS {
            add(Figure::DeviceRequests, op, at(requests));
            add(Figure::DeviceBytes, op, sectors.and_then(at).map(|n| n * SECTOR));
            add(Figure::DeviceTime, op, at(ms).map(|n| n / 1e3));
        }
        add(Figure::DeviceBusy, "", at(BUSY_MS).map(|n| n / 1e3));
        add(Figure::DeviceInFlight, "", at(IN_FLIGHT));
    }
    readings
}

/// What is kept at several resolutions: totals, of which rates are made.
pub const TOTALS: [&str; 12] = [
    "cpu_user",
    "cpu_system",
    "cpu_iowait",
    "cpu_steal",
    "cpu_idle",
    "pressure_cpu",
    "pressure_io",
    "pressure_memory",
    "network_received_bytes",
    "network_sent_bytes",
    "device_read_bytes",
    "device_written_bytes",
];
/// The same: levels, of which means are made.
pub const LEVELS: [&str; 3] = ["memory_available_bytes", "dirty_bytes", "writeback_bytes"];

/// The few figures that are kept at several resolutions, at one time; `None` where the kernel does not give it.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Digest {
    pub totals: [Option<f64>; TOTALS.len()],
    pub levels: [Option<f64>; LEVELS.len()],
}

impl Digest {
    /// Of devices and interfaces only those that `hardware` names count: what others move is moved by these, too.
    pub fn of(readings: &[Reading], hardware: &HashSet<Arc<str>>) -> Self {
        let mut digest = Self::default();
        for r in readings {
            let total = match (r.figure, &*r.of, r.part) {
                (Figure::Cpu, _, "user" | "nice") => "cpu_user",
                (Figure::Cpu, _, "system" | "irq" | "softirq") => "cpu_system",
                (Figure::Cpu, _, "iowait") => "cpu_iowait",
                (Figure::Cpu, _, "steal") => "cpu_steal",
                (Figure::Cpu, _, "idle") => "cpu_idle",
                (Figure::Pressure, "cpu", "some") => "pressure_cpu",
                (Figure::Pressure, "io", "some") => "pressure_io",
                (Figure::Pressure, "memory", "some") => "pressure_memory",
                (Figure::Network, of, "received") if hardware.contains(of) => "network_received_bytes",
                (Figure::Network, of, "sent") if hardware.contains(of) => "network_sent_bytes",
                (Figure::DeviceBytes, of, "read") if hardware.contains(of) => "device_read_bytes",
                (Figure::DeviceBytes, of, "write") if hardware.contains(of) => "device_written_bytes",
                (Figure::Memory, _, "available") => "memory_available_bytes",
                (Figure::Memory, _, "dirty") => "dirty_bytes",
                (Figure::Memory, _, "writeback") => "writeback_bytes",
                _ => continue,
            };
            let index = |names: &[&str]| names.iter().position(|n| *n == total);
            let sum = match (index(&TOTALS), index(&LEVELS)) {
                (Some(at), _) => &mut digest.totals[at],
                (_, Some(at)) => &mut digest.levels[at],
                _ => continue,
            };
            *sum = Some(sum.unwrap_or(0.0) + r.value);
        }
        digest
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn values(readings: &[Reading]) -> Vec<(String, f64)> {
        readings.iter().map(|r| (r.label().unwrap_or_default(), r.value)).collect()
    }

    fn named(pairs: &[(&str, f64)]) -> Vec<(String, f64)> {
        pairs.iter().map(|(n, v)| ((*n).to_owned(), *v)).collect()
    }

    const STAT: &str = "cpu  6279366 517110 622329 1491240 24070 0 12201 116226 0 0\ncpu0 1 2 3 4\nintr 5\n";
    const DISKS: &str =
        "   7       0 loop0 24113 90 846015 6944 18264 13313 11535244 9988 2 10220 21826 285 0 85213442 15 4534 4877
 254       0 vda 1 0 8 3 2 0 16 5 0 4 9
 254       1 vda1 1 0 8 3 2 0 16 5 0 4 9
";

    #[test]
    fn cpu_seconds_are_those_of_the_first_line() {
        let seen = values(&cpu(STAT, 100.0));
        assert_eq!(seen[0], ("user".to_owned(), 62793.66));
        assert_eq!(seen[7], ("steal".to_owned(), 1162.26));
        assert_eq!(seen.len(), MODES.len());
        assert_eq!(cpu("", 100.0), []);
        // Linux 2.5 had four columns; what is no number ends the line.
        assert_eq!(values(&cpu("cpu  1 2 x 4", 1.0)), named(&[("user", 1.0), ("nice", 2.0)]));
    }

    #[test]
    fn memory_is_in_bytes() {
        let text =
            "MemTotal:        100 kB\nMemFree: 7 kB\nCached: 3 kB\nSwapCached: 9 kB\nDirty: 2 kB\nWriteback: x kB\n";
        let expected = named(&[("total", 102_400.0), ("free", 7168.0), ("cached", 3072.0), ("dirty", 2048.0)]);
        assert_eq!(values(&memory(text)), expected);
    }

    #[test]
    fn pressure_is_in_seconds() {
        let text =
            "some avg10=13.99 avg60=11.42 avg300=7.91 total=16739071910\nfull avg10=0.00 total=5\nelse total=1\n";
        assert_eq!(values(&pressure("io", text)), named(&[("io some", 16_739.071_91), ("io full", 0.000_005)]));
    }

    #[test]
    fn interfaces_may_have_colons_and_quotes_in_their_names() {
        let text = "Inter-|   Receive                                                |  Transmit
 face |bytes    packets errs drop fifo frame compressed multicast|bytes    packets errs drop fifo colls carrier compressed
    lo: 44123292   90686    0    0    0     0          0         0 44123293   90686    0    0    0     0       0          0
a:b\"c:7 1 0 0 0 0 0 0 8 1 0 0 0 0 0 0
";
        let expected =
            [("lo received", 44_123_292.0), ("lo sent", 44_123_293.0), ("a:b\"c received", 7.0), ("a:b\"c sent", 8.0)];
        assert_eq!(values(&network(text)), named(&expected));
    }

    #[test]
    fn devices_are_counted_by_operation_and_partitions_are_not() {
        let readings = devices(DISKS, |name| name != "vda1");
        let of = |figure| values(&readings.iter().filter(|r| r.figure == figure).cloned().collect::<Vec<_>>());
        assert_eq!(
            of(Figure::DeviceRequests),
            named(&[
                ("loop0 read", 24113.0),
                ("loop0 write", 18264.0),
                ("loop0 discard", 285.0),
                ("loop0 flush", 4534.0),
                // A line of a kernel before 4.18.
                ("vda read", 1.0),
                ("vda write", 2.0),
            ])
        );
        let bytes = of(Figure::DeviceBytes);
        assert_eq!(bytes[1], ("loop0 write".to_owned(), 11_535_244.0 * 512.0));
        assert_eq!(bytes[2], ("loop0 discard".to_owned(), 85_213_442.0 * 512.0));
        assert_eq!(of(Figure::DeviceTime)[3], ("loop0 flush".to_owned(), 4.877));
        assert_eq!(of(Figure::DeviceBusy), named(&[("loop0", 10.22), ("vda", 0.004)]));
        assert_eq!(of(Figure::DeviceInFlight), named(&[("loop0", 2.0), ("vda", 0.0)]));
        let many: Vec<String> = (0..1000).map(|n| format!("8 0 sd{n} 1 0 8 3 2 0 16 5 0 4 9")).collect();
        assert_eq!(devices(&many.join("\n"), |_| true).iter().filter(|r| r.figure == Figure::DeviceBusy).count(), MAX);
    }

    #[test]
    fn a_digest_adds_up_hardware_and_leaves_out_missing_figures() {
        let mut readings = cpu(STAT, 100.0);
        readings.extend(devices(DISKS, |name| name != "vda1"));
        readings.extend(pressure("memory", "some total=1000000"));
        let digest = Digest::of(&readings, &HashSet::from(["vda".into()]));
        let total = |name: &str| digest.totals[TOTALS.iter().position(|n| *n == name).unwrap()];
        assert_eq!(total("cpu_user"), Some(62793.66 + 5171.10));
        assert_eq!(total("device_read_bytes"), Some(4096.0));
        assert_eq!(total("device_written_bytes"), Some(8192.0));
        assert_eq!(total("pressure_memory"), Some(1.0));
        assert_eq!((total("pressure_io"), total("network_sent_bytes"), digest.levels), (None, None, [None; 3]));
    }
}
