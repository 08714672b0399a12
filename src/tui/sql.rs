//! The SQL behind the screens: a question for each table, and one for the rows of the dataset that a row sums up. For `DuckDB`, after the
//! dataset's `views.sql`.

mod row;
mod table;

use crate::summary::filter::quoted;
use crate::summary::view::{NodeId, Snapshot, Window};
use crate::tui::state::{State, TableId};

pub use row::row;

/// What the table that keys go to is asked of a dataset with.
pub fn screen(state: &State, snapshot: &Snapshot) -> Option<String> {
    let asked = SqlContext { state, snapshot };
    let text = table::table(state.focused()?, &asked)?;
    Some(format!("{text}\n"))
}

/// What the SQL is about: what is looked at.
struct SqlContext<'a> {
    state: &'a State,
    snapshot: &'a Snapshot,
}

impl SqlContext<'_> {
    fn window(&self) -> Option<Window> {
        let kept = self.snapshot.kept;
        self.state.window.filter(|w| w.from_ns > kept.from_ns || w.to_ns < kept.to_ns)
    }

    /// `WHERE` and what calls must fulfil; nothing where all of them count.
    fn conditions(&self) -> String {
        let mut all = Vec::new();
        if let Some(w) = self.window() {
            all.push(format!("start_ns >= {} AND start_ns < {}", w.from_ns, w.to_ns));
        }
        all.extend(self.state.filter.as_ref().map(|f| f.sql()));
        if all.is_empty() { String::new() } else { format!(" WHERE {}", all.join("\n    AND ")) }
    }

    /// The calls that are looked at, for the tables of a query.
    fn calls(&self) -> String {
        format!("WITH RECURSIVE calls AS (FROM spans{})", self.conditions())
    }

    /// The requests to devices that are looked at; a filter is on calls.
    fn requests(&self) -> String {
        let within = self
            .window()
            .map_or_else(String::new, |w| format!(" AND issue_ns >= {} AND issue_ns < {}", w.from_ns, w.to_ns));
        format!("requests AS (FROM block WHERE dur_ns IS NOT NULL{within})")
    }

    /// The functions from the outermost one down to a node of the call tree, as a list. A call that has not returned yet has no row.
    fn path(&self, node: NodeId) -> String {
        let mut names = Vec::new();
        let mut next = Some(node);
        while let Some(id) = next {
            let Some(node) = self.snapshot.tree.nodes.iter().find(|n| n.id == id) else { break };
            if node.layer.is_some() {
                names.push(quoted(node.op));
            }
            next = node.parent;
        }
        names.reverse();
        format!("[{}]", names.join(", "))
    }

    fn selected(&self, table: TableId) -> Option<i64> {
        self.state.selected(table)
    }
}

/// Calls with the functions around them, for the tables of a query that begins with `calls`.
const TREE: &str = ",
tree AS (
  SELECT span_id, [op] AS path FROM calls WHERE parent_id IS NULL OR parent_id NOT IN (SELECT span_id FROM calls)
  UNION ALL
  SELECT c.span_id, list_append(t.path, c.op) FROM calls c JOIN tree t ON c.parent_id = t.span_id)";

/// Calls that the program made itself: only phases enclose them.
const OWN: &str = ",
phases AS (
  SELECT span_id FROM calls WHERE layer = 'app' AND kind = 'other'
    AND (parent_id IS NULL OR parent_id NOT IN (SELECT span_id FROM calls))
  UNION ALL
  SELECT c.span_id FROM calls c JOIN phases p ON c.parent_id = p.span_id WHERE c.layer = 'app' AND c.kind = 'other'),
own AS (FROM calls WHERE NOT (layer = 'app' AND kind = 'other')
  AND (parent_id IS NULL OR parent_id NOT IN (SELECT span_id FROM calls) OR parent_id IN (SELECT span_id FROM phases)))";
