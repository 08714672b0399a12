//! What is selected on the dashboard, as rows of a dataset.

use std::collections::HashSet;
use std::path::Path;

use crate::base::sudo;
use crate::export::{DatasetWriter, Options, VIEWS};
use crate::rows::{Meta, Row, Span};
use crate::summary::accumulate::Summary;
use crate::summary::view::{Focus, Screen};

impl Summary {
    /// The calls that are kept and selected (window, file, node, tree of a call), what they refer to, and what the run was.
    pub fn selection(&self, focus: &Focus) -> Vec<Row> {
        let root = focus.span_id.and_then(|id| self.recent.spans.iter().find(|s| s.span_id == id)).map(|s| s.root_id);
        let file = focus.file_id.filter(|_| focus.screen == Screen::Files);
        let node = focus.node.filter(|_| focus.screen == Screen::Tree);
        let chosen = |s: &&Span| {
            focus.window.is_none_or(|w| (w.from_ns..w.to_ns).contains(&s.start_ns))
                && root.is_none_or(|root| s.root_id == root)
                && file.is_none_or(|file| s.file_id == Some(file))
                && (root.is_some() || node.is_none_or(|node| self.node_of(s.span_id) == Some(node)))
        };
        let spans: Vec<Span> = self.recent.spans.iter().filter(chosen).cloned().collect();
        let ids: HashSet<i64> = spans.iter().map(|s| s.span_id).collect();
        let mut rows = self.dims.rows();
        rows.push(Row::Meta(Meta { key: "selection".to_owned(), value: describe(focus, self.recent.gone) }));
        let (links, blocks) = self.recent.requests(&ids);
        rows.extend(links.into_iter().map(Row::BlockLink));
        rows.extend(blocks.into_iter().map(Row::Block));
        rows.extend(spans.into_iter().map(|row| Row::Span(Box::new(row))));
        rows
    }
}

/// Writes rows as a dataset.
///
/// # Errors
/// Names why it cannot be written.
pub fn export(rows: Vec<Row>, path: &Path, host: &str) -> Result<String, String> {
    let spans = rows.iter().filter(|r| matches!(r, Row::Span(_))).count();
    let write = || {
        let owner = sudo::invoking_user();
        let mut writer = DatasetWriter::create(Options { path, host, force: false, owner, views: VIEWS })?;
        rows.into_iter().try_for_each(|row| writer.push(row))?;
        writer.finish()
    };
    let done = write().map_err(|e| format!("{e:#}"))?;
    Ok(format!("{spans} calls in {} ({} bytes)", path.display(), done.bytes))
}

fn describe(focus: &Focus, gone: u64) -> String {
    let mut parts = Vec::new();
    if let Some(w) = focus.window {
        parts.push(format!("{} ns to {} ns", w.from_ns, w.to_ns));
    }
    if let Some(filter) = &focus.filter {
        parts.push(filter.text().to_owned());
    }
    if gone > 0 {
        parts.push(format!("of the last calls only: {gone} earlier ones were not kept"));
    }
    parts.join("; ")
}
