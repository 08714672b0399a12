//! How busy CPUs, memory, devices and networks of a node were during the run, in words: of several nodes, the busiest.

use std::collections::BTreeMap;

use serde::Serialize;

use crate::base::text::{bytes, escape, percent};
use crate::node::figures::Figure;
use crate::rows::Metric;

/// How busy one resource was.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Utilisation {
    /// `cpu`, `memory`, `device` or `network`.
    pub resource: &'static str,
    /// The device or interface: the busiest one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub of: Option<String>,
    /// The part of the run that CPUs and devices were busy; the greatest part of the memory that was in use. `None` for
    /// networks: how much an interface could carry is not known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub share: Option<f64>,
    /// Of networks: received and sent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bytes_per_s: Option<f64>,
    pub word: &'static str,
}

/// From which value on each grade holds, the greatest first.
type Grades = &'static [(f64, &'static str)];

const BUSY: Grades = &[(0.9, "saturated"), (0.6, "busy"), (0.2, "in use"), (0.0, "idle most of the time")];
const FULL: Grades = &[(0.95, "nearly full"), (0.7, "well filled"), (0.0, "enough is free")];
const RATES: Grades = &[(1e8, "much in use"), (1e6, "in use"), (0.0, "idle most of the time")];

/// No network. Of interfaces that carried nothing there is nothing to say, either.
const LOOPBACK: &str = "lo";

fn grade(grades: Grades, value: f64) -> &'static str {
    grades.iter().find(|(from, _)| value >= *from).or(grades.last()).map_or("", |(_, grade)| grade)
}

/// A total that grows: when it had its first and its last value, and these.
type Grows = [(i64, f64); 2];

/// What is known of one node.
#[derive(Debug, Default)]
struct Node {
    totals: BTreeMap<(&'static str, String), Grows>,
    /// Bytes of memory, and the least that was available.
    memory: Option<f64>,
    available: Option<f64>,
}

/// Takes the rows of table `metrics`, by node. A figure has a row when it changes: in a window of a trace the first one may be
/// from long before.
#[derive(Debug, Default)]
pub struct Utilisations {
    nodes: BTreeMap<String, Node>,
}

impl Utilisations {
    pub fn add(&mut self, host: &str, row: &Metric) {
        let is = |figures: &[Figure]| figures.iter().any(|figure| figure.name() == row.name);
        let total = is(&[Figure::Cpu, Figure::DeviceBusy, Figure::Network]);
        if !total && !is(&[Figure::Memory]) {
            return;
        }
        if !self.nodes.contains_key(host) {
            self.nodes.insert(host.to_owned(), Node::default());
        }
        let Some(node) = self.nodes.get_mut(host) else { return };
        let label = row.label.as_deref().unwrap_or_default();
        match label {
            _ if total => {
                let now = (row.t_ns, row.value);
                let [first, last] = node.totals.entry((row.name, label.to_owned())).or_insert([now; 2]);
                if now.0 < first.0 {
                    *first = now;
                }
                if now.0 >= last.0 {
                    *last = now;
                }
            }
            "total" => node.memory = Some(row.value),
            "available" => node.available = Some(node.available.map_or(row.value, |least| least.min(row.value))),
            _ => {}
        }
    }

    /// Of each resource that was used the busiest.
    pub fn finish(self) -> Vec<Utilisation> {
        let all: Vec<Utilisation> = self.nodes.values().flat_map(Node::of).collect();
        let busiest = |resource| {
            let of = all.iter().filter(|u| u.resource == resource);
            of.max_by(|a, b| a.value().total_cmp(&b.value())).cloned()
        };
        ["cpu", "memory", "device", "network"].into_iter().filter_map(busiest).collect()
    }
}

impl Node {
    /// By how much a total grew, by its label.
    fn grown(&self, figure: Figure) -> impl Iterator<Item = (&str, f64)> {
        let of = self.totals.iter().filter(move |((name, _), _)| *name == figure.name());
        of.map(|((_, label), [first, last])| (label.as_str(), (last.1 - first.1).max(0.0)))
    }

    /// How long it was looked at: from the first sample, which has all of CPU time, to the last.
    fn seconds(&self) -> f64 {
        let of_cpus = self.totals.iter().filter(|((name, _), _)| *name == Figure::Cpu.name());
        let from = of_cpus.map(|(_, [first, _])| first.0).max();
        let to = self.totals.values().map(|[_, last]| last.0).max();
        from.zip(to).map_or(0.0, |(from, to)| to.saturating_sub(from) as f64 / 1e9)
    }

    fn of(&self) -> Vec<Utilisation> {
        let seconds = self.seconds();
        if seconds <= 0.0 {
            return Vec::new();
        }
        let busy = |resource, of: Option<&str>, share: f64, grades| Utilisation {
            resource,
            of: of.map(str::to_owned),
            share: Some(share.min(1.0)),
            bytes_per_s: None,
            word: grade(grades, share),
        };
        let mut all = Vec::new();
        let cpu: f64 = self.grown(Figure::Cpu).map(|(_, s)| s).sum();
        let idle: f64 =
            self.grown(Figure::Cpu).filter(|(mode, _)| ["idle", "iowait"].contains(mode)).map(|(_, s)| s).sum();
        if cpu > 0.0 {
            all.push(busy("cpu", None, 1.0 - idle / cpu, BUSY));
        }
        if let (Some(total), Some(available)) = (self.memory.filter(|total| *total > 0.0), self.available) {
            all.push(busy("memory", None, 1.0 - available / total, FULL));
        }
        let greatest = |figures: &BTreeMap<&str, f64>| {
            figures.iter().max_by(|a, b| a.1.total_cmp(b.1)).map(|(of, value)| ((*of).to_owned(), value / seconds))
        };
        if let Some((device, share)) = greatest(&self.grown(Figure::DeviceBusy).collect()) {
            all.push(busy("device", Some(&device), share, BUSY));
        }
        let mut interfaces: BTreeMap<&str, f64> = BTreeMap::new();
        for (label, bytes) in self.grown(Figure::Network) {
            let name = label.rsplit_once(' ').map_or(label, |(name, _)| name);
            if name != LOOPBACK && bytes > 0.0 {
                *interfaces.entry(name).or_default() += bytes;
            }
        }
        all.extend(greatest(&interfaces).map(|(of, bytes)| Utilisation {
            resource: "network",
            of: Some(of),
            share: None,
            bytes_per_s: Some(bytes),
            word: grade(RATES, bytes),
        }));
        all
    }
}

impl Utilisation {
    fn value(&self) -> f64 {
        self.share.or(self.bytes_per_s).unwrap_or_default()
    }

    /// `CPU 93.0% busy (saturated)`
    pub fn text(&self) -> String {
        let name = match self.resource {
            "cpu" => "CPU".to_owned(),
            other => self.of.as_deref().map_or_else(|| other.to_owned(), escape),
        };
        let how = if self.resource == "memory" { "used at most" } else { "busy" };
        let value = match (self.share, self.bytes_per_s) {
            (Some(share), _) => format!("{} {how}", percent(share)),
            (None, rate) => format!("{}/s", bytes(rate.unwrap_or_default() as i64)),
        };
        format!("{name} {value} ({})", self.word)
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    type Row<'a> = (i64, Figure, &'a str, f64);

    fn texts(rows: &[Row<'_>]) -> Vec<String> {
        texts_of_nodes(&[rows])
    }

    fn texts_of_nodes(nodes: &[&[Row<'_>]]) -> Vec<String> {
        let mut all = Utilisations::default();
        for (n, rows) in nodes.iter().enumerate() {
            for (s, figure, label, value) in *rows {
                let label = Some((*label).to_owned());
                let row = Metric { t_ns: s * 1_000_000_000, name: figure.name(), label, value: *value };
                all.add(&format!("node{n}"), &row);
            }
        }
        all.finish().iter().map(Utilisation::text).collect()
    }

    #[test]
    fn each_resource_has_a_figure_and_a_word() {
        use Figure::{Cpu, DeviceBusy, Memory, Network};
        let first =
            [(1, Cpu, "user", 100.0), (1, Cpu, "idle", 50.0), (1, Cpu, "iowait", 5.0), (1, Memory, "total", 1000.0)];
        let more = [(1, Memory, "available", 400.0), (1, DeviceBusy, "vda", 7.0), (1, DeviceBusy, "vdb", 1.0)];
        let network =
            [(1, Network, "eth0 sent", 0.0), (1, Network, "eth0 received", 0.0), (1, Network, "lo sent", 0.0)];
        let last = [
            (5, Memory, "available", 250.0),
            (9, Memory, "available", 300.0),
            (11, Cpu, "user", 119.0),
            (11, Cpu, "idle", 51.0),
        ];
        let end = [(11, DeviceBusy, "vda", 8.2), (11, Network, "eth0 sent", 3e7), (11, Network, "lo sent", 9e9)];
        let all = [&first[..], &more, &network, &last, &end].concat();
        let expected = [
            "CPU 95.0% busy (saturated)",
            "memory 75.0% used at most (well filled)",
            "vda 12.0% busy (idle most of the time)",
        ];
        assert_eq!(texts(&all)[..3], expected);
        assert!(texts(&all)[3].starts_with("eth0 ") && texts(&all)[3].ends_with(" (in use)"), "{:?}", texts(&all));
        // Of two nodes the busier one.
        let idle = [(1, Cpu, "user", 0.0), (1, Cpu, "idle", 0.0), (2, Cpu, "user", 1.0), (2, Cpu, "idle", 9.0)];
        assert_eq!(texts(&idle), ["CPU 10.0% busy (idle most of the time)"]);
        assert_eq!(texts_of_nodes(&[&idle[..], &all])[..3], expected);
    }

    #[test]
    fn figures_of_a_window_may_be_from_before_it() {
        use Figure::{Cpu, DeviceBusy};
        // In the order of their names; what did not change since the third second has no row after that.
        let before =
            [(20, Cpu, "idle", 10.0), (3, Cpu, "steal", 0.0), (20, Cpu, "user", 5.0), (3, DeviceBusy, "vda", 1.0)];
        let window = [(22, DeviceBusy, "vda", 2.0), (30, Cpu, "idle", 15.0), (30, Cpu, "user", 10.0)];
        let expected = ["CPU 50.0% busy (in use)", "vda 10.0% busy (idle most of the time)"];
        assert_eq!(texts(&[&before[..], &window].concat()), expected);
    }

    #[test]
    fn one_sample_shows_nothing() {
        assert!(texts(&[(1, Figure::Cpu, "user", 7.0), (1, Figure::Memory, "total", 7.0)]).is_empty());
        assert!(texts(&[]).is_empty());
    }
}
