//! What is noted at each tick: verdicts, losses, and what the hooks cost.

use crate::base::{notices, text};
use crate::loader::session::{EXCLUDED, UNPLACED};
use crate::probes;
use crate::record::session::run::Run;
use crate::record::session::share::{Cpu, Share};
use crate::rows::{self, Coverage, Loss, Metric, Row};
use crate::vocabulary::Layer;
use std::collections::BTreeMap;

/// What was counted so far.
#[derive(Default)]
pub struct Totals {
    pub(super) lost: u64,
    /// Left out on purpose.
    pub(super) excluded: BTreeMap<&'static str, u64>,
    pub(super) attached: usize,
    pub(super) probes: usize,
    pub(super) libraries: usize,
    pub(super) share: Share,
}

impl Run<'_, '_> {
    /// Not on a dashboard, which would be spoilt: that shows the verdicts.
    pub(super) fn warn(&self, verdicts: &[Coverage]) {
        if !self.display.shows() {
            for warning in warnings(verdicts) {
                notices::note(&warning);
            }
        }
    }

    pub(super) fn with_reasons(&self, mut verdicts: Vec<Coverage>) -> Vec<Coverage> {
        if let Some(of) = self.args.wide().filter(|_| self.args.layers.is_empty()) {
            probes::mark_default(&mut verdicts, of);
        }
        verdicts
    }

    /// Verdicts on what was not seen.
    pub(super) fn uncovered(&self) -> Vec<Coverage> {
        self.with_reasons(self.session.uncovered())
    }

    /// Verdicts and losses since the last tick.
    pub(super) fn tick(&mut self) {
        let t_ns = self.relative();
        let verdicts = self.session.verdicts();
        let verdicts = self.with_reasons(verdicts);
        self.warn(&verdicts);
        self.totals.probes += verdicts.iter().filter(|c| c.status == "attached" || c.status == "refused").count();
        self.totals.attached += verdicts.iter().filter(|c| c.status == "attached").count();
        for library in self.session.libraries() {
            self.totals.libraries += 1;
            self.meta(&[(&format!("library.{}", self.totals.libraries), library.to_string())]);
        }
        let (excluded, losses): (Vec<Loss>, Vec<Loss>) =
            self.session.losses(t_ns).into_iter().partition(|l| [EXCLUDED, UNPLACED].contains(&l.place));
        self.totals.lost += losses.iter().filter(|l| l.place != rows::DETAIL).map(|l| l.count as u64).sum::<u64>();
        let mut rows: Vec<Row> = verdicts.into_iter().map(Row::Coverage).collect();
        // They are in the sums: nothing is missing from these.
        let refused = self.session.refused().into_iter().map(|(process, count)| Loss {
            t_ns,
            layer: None,
            cpu: None,
            place: rows::DETAIL,
            process_ix: i32::try_from(process).ok(),
            count: i64::try_from(count).unwrap_or(i64::MAX),
        });
        rows.extend(refused.map(Row::Loss));
        rows.extend(losses.into_iter().map(Row::Loss));
        for (name, layer, place) in [
            ("excluded_calls", Layer::Syscall, EXCLUDED),
            ("excluded_faults", Layer::Vfs, EXCLUDED),
            ("unplaced_faults", Layer::Vfs, UNPLACED),
            ("unplaced_calls", Layer::Syscall, UNPLACED),
        ] {
            let of = excluded.iter().filter(|l| l.layer == Some(layer) && l.place == place);
            let new = of.map(|l| l.count as u64).sum::<u64>();
            if new > 0 {
                let total = self.totals.excluded.entry(name).or_default();
                *total += new;
                let (label, value) = (Some(layer.name().to_owned()), *total as f64);
                rows.push(Row::Metric(Metric { t_ns, name, label, value }));
            }
        }
        if !rows.is_empty() {
            self.send(rows);
        }
    }

    /// What hooks have cost so far.
    pub(super) fn report_costs(&mut self) {
        let t_ns = self.relative();
        self.totals.share.add(self.session.hooked(), Cpu::now(), t_ns);
        self.send(self.totals.share.rows().collect());
    }
}

/// Why each phase that is not traced is not: someone waits for it.
fn warnings(verdicts: &[Coverage]) -> Vec<String> {
    let mut warnings = Vec::new();
    for c in verdicts.iter().filter(|c| c.layer == Layer::App && c.status != "attached" && !c.symbol.is_empty()) {
        let file = if c.target.is_empty() { String::new() } else { format!(" in {}", text::escape(&c.target)) };
        let why = c.reason.as_deref().unwrap_or("for an unknown reason");
        let symbol = text::escape(&c.symbol);
        warnings.push(format!("warning: {symbol}{file} is not traced: {}", text::escape(why)));
    }
    warnings
}
