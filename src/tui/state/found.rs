//! Which finding is selected.

use crate::analysis::findings::rules::RULES;
use crate::analysis::findings::{Finding, Findings};
use crate::summary::view::Snapshot;
use crate::tui::state::{State, TableId};

/// Findings with numbers that they keep while others come and go: that of the rule, and which of its findings it is.
pub fn numbered(found: &Findings) -> impl Iterator<Item = (i64, &Finding)> {
    let rule = |finding: &Finding| RULES.iter().position(|rule| rule.id == finding.rule).unwrap_or(RULES.len());
    let all = &found.findings;
    all.iter().enumerate().map(move |(at, finding)| {
        let nth = all[..at].iter().filter(|before| before.rule == finding.rule).count();
        ((rule(finding) << 16 | nth) as i64, finding)
    })
}

impl State {
    /// The finding that is selected.
    pub fn finding<'a>(&self, snapshot: &'a Snapshot) -> Option<&'a Finding> {
        let wanted = self.selected(TableId::Findings)?;
        numbered(&snapshot.findings).find(|(id, _)| *id == wanted).map(|(_, finding)| finding)
    }
}
