//! The view `v_node` has the points of the dashboard's resolutions, of rows that are written where a figure changes.

use crate::common::sql;
use crate::common::synthetic::trace::meta;
use crate::reports::random::write;
use iotrace_bpf::node::figures::{Digest, Figure, LEVELS, Reading, TOTALS};
use iotrace_bpf::node::resolutions::{Point, Resolutions};
use iotrace_bpf::rows::{Metric, Row};
use serde_json::Value;
use std::collections::{BTreeMap, HashSet};
use std::path::Path;

const MS: i64 = 1_000_000;

/// Figures of a node with a device and an interface that are hardware, and one of each that is not.
const FIGURES: [(Figure, &str, &str); 18] = [
    (Figure::Cpu, "", "user"),
    (Figure::Cpu, "", "nice"),
    (Figure::Cpu, "", "system"),
    (Figure::Cpu, "", "irq"),
    (Figure::Cpu, "", "idle"),
    (Figure::Cpu, "", "iowait"),
    (Figure::Memory, "", "total"),
    (Figure::Memory, "", "available"),
    (Figure::Memory, "", "dirty"),
    (Figure::Pressure, "io", "some"),
    (Figure::Pressure, "io", "full"),
    (Figure::Network, "eth0", "received"),
    (Figure::Network, "docker0", "received"),
    (Figure::DeviceBytes, "vda", "read"),
    (Figure::DeviceBytes, "dm-0", "read"),
    (Figure::DeviceBytes, "vda", "discard"),
    (Figure::DeviceBusy, "vda", ""),
    (Figure::DeviceBusy, "vdb", ""),
];

/// Numbers that look like chance, always the same.
struct Chance(u64);

impl Chance {
    fn below(&mut self, n: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % n
    }
}

/// What one look sees: most totals grow, levels go up and down, some stay for long.
fn grow(values: &mut [f64], chance: &mut Chance) {
    for ((figure, of, part), value) in FIGURES.iter().zip(values) {
        match (figure, *part) {
            (Figure::Memory, "total") => *value = 8e9,
            (Figure::Memory, _) if chance.below(3) == 0 => *value = 1e9 + chance.below(1_000_000) as f64,
            (Figure::DeviceBusy, _) if chance.below(40) == 0 => *value += 0.01,
            (Figure::Memory | Figure::DeviceBusy, _) => {}
            // A kernel that takes something back.
            _ if *of == "docker0" => *value = chance.below(100) as f64,
            _ => *value += chance.below(4) as f64,
        }
    }
}

fn readings(values: &[f64]) -> Vec<Reading> {
    let reading = |((figure, of, part), value): (&(Figure, &str, &'static str), &f64)| Reading {
        figure: *figure,
        of: (*of).into(),
        part,
        value: *value,
    };
    FIGURES.iter().zip(values).map(reading).collect()
}

/// Looks at these times: rows of the dataset, and points of the dashboard.
fn looked(times: impl IntoIterator<Item = i64>) -> (Vec<Row>, Resolutions) {
    let (mut rows, mut resolutions) = (vec![meta("node_hardware", "eth0 vda vdb")], Resolutions::default());
    let hardware: HashSet<_> = ["eth0", "vda", "vdb"].into_iter().map(Into::into).collect();
    let (mut chance, mut values, mut written) = (Chance(7), vec![0.0; FIGURES.len()], BTreeMap::new());
    for t_ns in times {
        grow(&mut values, &mut chance);
        let readings = readings(&values);
        resolutions.push(t_ns, &Digest::of(&readings, &hardware));
        for r in readings {
            let (name, label, value) = (r.figure.name(), r.label(), r.value);
            if written.insert((name, label.clone()), value.to_bits()) != Some(value.to_bits()) {
                rows.push(Row::Metric(Metric { t_ns, name, label, value }));
            }
        }
    }
    (rows, resolutions)
}

fn points(dataset: &Path) -> BTreeMap<(i64, i64, i64), Value> {
    let number = |row: &Value, name: &str| row[name].as_i64().unwrap();
    let key = |row: &Value| (number(row, "resolution_ns"), number(row, "from_ns"), number(row, "to_ns"));
    sql::query(dataset, "FROM v_node").into_iter().map(|row| (key(&row), row)).collect()
}

fn compare(width: i64, point: &Point, row: &Value) {
    let figures = TOTALS.iter().zip(&point.rates).chain(LEVELS.iter().zip(&point.means));
    for (name, ours) in figures {
        let sql = row[*name].as_f64();
        let same = match (ours, sql) {
            (Some(ours), Some(sql)) => (ours - sql).abs() <= 1e-9 * ours.abs().max(1.0),
            (ours, sql) => ours.is_none() && sql.is_none(),
        };
        assert!(same, "{name} of {width} ns at {}: {ours:?}, SQL {sql:?}", point.from_ns);
    }
    let rate = |name: &str| point.figure(name).unwrap();
    let idle = rate("cpu_idle") + rate("cpu_iowait");
    let all = idle + rate("cpu_user") + rate("cpu_system");
    let busy = row["cpu_busy"].as_f64();
    assert!(all == 0.0 || (busy.unwrap() - (1.0 - idle / all)).abs() < 1e-9, "{busy:?}");
}

#[test]
fn points_of_all_resolutions_are_those_of_the_dashboard() {
    // Looks that are a little late, as in life; twelve minutes with one a tenth of a second.
    let mut chance = Chance(1);
    let times: Vec<i64> = (0..7300).map(|n| n * 100 * MS + chance.below(5_000_000) as i64).collect();
    let (last, first) = (times[times.len() - 1], times[0]);
    let (rows, resolutions) = looked(times);
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("run.iotrace");
    write(&path, rows);
    let points = points(&path);
    let mut compared = 0;
    for (width, ours) in resolutions.points() {
        assert!(!ours.is_empty(), "{width}");
        for point in ours {
            let row = points.get(&(width, point.from_ns, point.to_ns)).unwrap_or_else(|| panic!("{width}: {point:?}"));
            compare(width, point, row);
            compared += 1;
        }
        // Those of the whole trace follow each other from the first look to the last.
        let all: Vec<_> = points.keys().filter(|(resolution, ..)| *resolution == width).collect();
        assert_eq!((all[0].1, all[all.len() - 1].2), (first, last), "{width}");
        assert!(all.windows(2).all(|two| two[0].2 == two[1].1), "{width}");
    }
    assert!(compared > 40, "{compared}");
    let busiest: HashSet<_> = points.values().map(|row| row["busiest_device"].as_str()).collect();
    assert_eq!(busiest, HashSet::from([None, Some("vda"), Some("vdb")]));
    let shares: Vec<f64> = points.values().map(|row| row["busiest_share"].as_f64().unwrap()).collect();
    assert!(shares.iter().all(|share| (0.0..=1.0).contains(share)) && shares.contains(&0.0));
}

#[test]
fn there_are_no_points_that_are_finer_than_the_looks() {
    let (rows, _) = looked((0..130).map(|n| n * 1000 * MS + MS));
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("run.iotrace");
    write(&path, rows);
    let counts =
        sql::query(&path, "SELECT resolution_ns // 1000000 AS ms, count(*) AS n FROM v_node GROUP BY ALL ORDER BY ms");
    let counts: Vec<_> = counts.iter().map(|row| (row["ms"].as_i64().unwrap(), row["n"].as_i64().unwrap())).collect();
    assert_eq!(counts, [(1000, 129), (10_000, 13), (60_000, 3), (600_000, 1)]);
}
