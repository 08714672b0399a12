//! Where the probes of phases go that are lines of a function.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use crate::catalog::Lines;
use crate::loader::code::elf::Elf;
use crate::loader::code::lines::{self, Point};
use crate::loader::code::outline::Unread;
use crate::loader::code::plan::sites::{No, unprobed};
use crate::loader::code::plan::{Plan, PlannedProbe, Planner, RangeEdge};
use crate::loader::code::prologue;
use crate::skel::types::iot_cookie as C;

/// Ranges that may begin and end at one edge (`IOT_EDGE_ROWS`).
const ROWS: u16 = 8;

/// What happens at an edge.
struct At {
    point: Point,
    begins: BTreeSet<u16>,
    ends: BTreeSet<u16>,
    starts: bool,
}

impl At {
    fn rows(&self) -> impl Iterator<Item = u16> + use<'_> {
        self.begins.iter().chain(&self.ends).copied()
    }

    /// Of rows that are no further apart than fit.
    fn edge(&self, first: u16) -> RangeEdge {
        let row = self.rows().min().unwrap_or(first);
        let mask = |rows: &BTreeSet<u16>| rows.iter().fold(0, |bits: u64, of| bits | 1 << (of - row));
        let bit = |on: bool, bit: C| u64::from(on) << bit.0;
        let bits = bit(true, C::IOT_COOKIE_EDGE)
            | bit(self.point.frame.base, C::IOT_COOKIE_BASE)
            | bit(self.point.tail, C::IOT_COOKIE_TAIL)
            | bit(self.starts, C::IOT_COOKIE_STARTS)
            | u64::from(self.point.frame.words) << C::IOT_COOKIE_FRAME.0
            | mask(&self.ends) << C::IOT_COOKIE_ENDS.0
            | mask(&self.begins) << C::IOT_COOKIE_BEGINS.0;
        RangeEdge { offset: self.point.offset, row, bits }
    }
}

impl Planner {
    /// Adds to the plan of the file `path` the probes of lines. `read` gives its content with debug information.
    pub fn plan_lines(&self, plan: &mut Plan, path: &str, elf: &Elf, read: impl FnOnce() -> Result<Vec<u8>, Unread>) {
        let rows = (0_u16..).zip(self.catalog().rows());
        let rows = rows.filter(|(_, row)| plan.families.contains(&row.family));
        let wanted: Vec<(u16, Lines)> = rows.filter_map(|(spec, row)| Some((spec, row.lines()?))).collect();
        if wanted.is_empty() {
            return;
        }
        let bytes = match read() {
            Ok(_) if elf.go => return all_missing(plan, &wanted, "is a Go program, which moves its stacks"),
            Ok(bytes) => bytes,
            Err(why) => return all_missing(plan, &wanted, &why.to_string()),
        };
        let taken: HashMap<u64, &str> = plan.probes.iter().map(|probe| (probe.offset, probe.symbol)).collect();
        let mut edges: BTreeMap<u64, At> = BTreeMap::new();
        let mut probes = Vec::new();
        for (spec, lines) in wanted {
            let refused = match self.lines(spec, &lines, &bytes, &taken, &mut edges) {
                Ok((probe, own)) => {
                    probes.push((probe, own));
                    continue;
                }
                Err(lines::No::NotHere(why)) => {
                    plan.missing.push((spec, why));
                    continue;
                }
                Err(lines::No::Refused(reason)) => No { status: "refused", reason, offset: None },
            };
            let row = self.catalog().rows().get(usize::from(spec));
            plan.settled.extend(row.map(|row| unprobed(path, row, refused)));
        }
        // Each edge is set once, with the first of its ranges.
        for (mut probe, own) in probes {
            let mine = own.iter().filter_map(|at| Some(edges.remove(at)?.edge(probe.spec)));
            probe.edges = Some(mine.collect());
            plan.probes.push(probe);
        }
    }

    /// The probe of a range, and the addresses of its edges, which are added to those of the others.
    fn lines(
        &self,
        spec: u16,
        lines: &Lines,
        bytes: &[u8],
        taken: &HashMap<u64, &str>,
        edges: &mut BTreeMap<u64, At>,
    ) -> Result<(PlannedProbe, Vec<u64>), lines::No> {
        let points = lines::points(bytes, lines)?;
        let begins = || points.values().filter(|point| point.begins);
        for point in begins() {
            if let Some(other) = taken.get(&point.offset) {
                return Err(lines::No::Refused(format!(
                    "they begin where the phase {other} does: ask for one of them"
                )));
            }
        }
        for (address, point) in &points {
            let rows = edges.get(address).into_iter().flat_map(At::rows);
            if (point.begins || point.ends) && rows.into_iter().any(|row| row.abs_diff(spec) >= ROWS) {
                return Err(lines::No::Refused(format!("more than {ROWS} ranges of lines begin or end at one place")));
            }
        }
        let first = begins().next().ok_or_else(|| lines::No::Refused("nothing leads to them".to_owned()))?;
        let code = usize::try_from(first.offset).ok().and_then(|at| bytes.get(at..)).unwrap_or_default();
        let chosen = prologue::choose(code, 0, 0).map_err(|why| lines::No::Refused(why.to_string()))?;
        let row = &self.catalog().rows()[usize::from(spec)];
        let probe = PlannedProbe::at(spec, row, first.offset, (chosen.class, chosen.text));
        let probe = PlannedProbe { exit_points: Some(Vec::new()), ..probe };
        for (address, point) in &points {
            let new = || At { point: *point, begins: BTreeSet::new(), ends: BTreeSet::new(), starts: false };
            let at = edges.entry(*address).or_insert_with(new);
            at.starts |= point.starts;
            at.begins.extend(point.begins.then_some(spec));
            at.ends.extend(point.ends.then_some(spec));
        }
        Ok((probe, points.into_keys().collect()))
    }
}

fn all_missing(plan: &mut Plan, wanted: &[(u16, Lines)], why: &str) {
    plan.missing.extend(wanted.iter().map(|(spec, _)| (*spec, why.to_owned())));
}
