//! The rows of the dataset that the selected row sums up.

use crate::inflight::OperationKind;
use crate::summary::filter::quoted;
use crate::summary::view::{BarOf, Grouping, NodeId, Snapshot, grouped};
use crate::tui::sql::{SqlContext, TREE};
use crate::tui::state::{State, TableId};
use crate::vocabulary::{LAYERS, Layer};

/// What it is called, and its SQL; `None` where nothing is selected, or nothing of it is in a dataset.
pub fn row(state: &State, snapshot: &Snapshot) -> Option<String> {
    let table = state.focused()?;
    let id = state.selected(table)?;
    let asked = SqlContext { state, snapshot };
    let nth = usize::try_from(id).ok();
    let calls = |which: &str| asked.calls_with(which);
    let text = match table {
        TableId::Layers => match LAYERS.get(nth?)?.name() {
            "block" => "FROM block ORDER BY issue_ns;".to_owned(),
            layer => calls(&format!("layer = {}", quoted(layer))),
        },
        TableId::TopProcesses => calls(&format!("process_ix = {id}")),
        TableId::Processes => calls(&of_processes(state, snapshot, id)?),
        TableId::TopFiles | TableId::Files => calls(&format!("file_id = {id}")),
        TableId::FileOps => {
            let op = snapshot.file.as_ref()?.ops.get(nth?)?;
            calls(&format!("file_id = {} AND {}", state.file?, function(op.layer.name(), op.op)))
        }
        TableId::Handles => calls(&format!("handle_id = {id}")),
        TableId::Objects => calls(&format!("object_id = {id}")),
        TableId::Tree => asked.calls_of_node(id as u32),
        TableId::Inverted => {
            let node = snapshot.tree.nodes.iter().find(|n| i64::from(n.id) == id)?;
            calls(&function(node.layer?.name(), node.op))
        }
        TableId::NodeFiles => {
            let path = quoted(&snapshot.node.as_ref()?.files.get(nth?)?.0);
            calls(&format!("file_id IN (SELECT file_id FROM files WHERE path = {path})"))
        }
        TableId::Slowest | TableId::Events | TableId::Followed => format!("FROM call_tree({id});"),
        TableId::Waterfall => match snapshot.waterfall.as_ref()?.bars.get(nth?)?.what {
            BarOf::Span { span_id, .. } => format!("FROM call_tree({span_id});"),
            BarOf::Request { req_id, .. } => format!("FROM block WHERE req_id = {req_id};"),
        },
        TableId::Ops => {
            let op = snapshot.latency.ops.get(nth?)?;
            calls(&function(op.layer.name(), op.op))
        }
        // What a dataset does not have.
        TableId::Output | TableId::Stacks => return None,
        TableId::Flights => in_flight(snapshot, id)?,
        TableId::Devices => format!("FROM block WHERE dev = {id}\nORDER BY issue_ns;"),
        TableId::Users => of_user(&asked, snapshot, nth?)?,
        TableId::Mounts => {
            let path = quoted(&snapshot.devices.mounts.get(nth?)?.path);
            calls(&format!(
                "file_id IN (SELECT file_id FROM files JOIN mounts USING (mount_id) WHERE mounts.path = {path})"
            ))
        }
        TableId::Groups => {
            let group = snapshot.coverage.groups.get(nth?)?;
            format!("{};", covered(group.layer, &group.target))
        }
        TableId::Losses => lost(snapshot, nth?)?,
        TableId::Findings => evidence(state, snapshot)?,
        TableId::Refused => {
            let probe = snapshot.coverage.refused.get(nth?)?;
            format!("{} AND symbol = {};", covered(probe.layer, &probe.target), quoted(&probe.symbol))
        }
    };
    Some(format!("{text}\n"))
}

impl SqlContext<'_> {
    /// Calls that are looked at and fulfil this as well.
    fn calls_with(&self, condition: &str) -> String {
        let before = self.conditions();
        let joined = if before.is_empty() { " WHERE" } else { "\n    AND" };
        format!("FROM spans{before}{joined} {condition}\nORDER BY start_ns;")
    }

    /// Calls of a node of the call tree.
    fn calls_of_node(&self, node: NodeId) -> String {
        let (calls, path) = (self.calls(), self.path(node));
        format!(
            "{calls}{TREE}\nSELECT calls.* FROM tree JOIN calls USING (span_id) WHERE path = {path}\nORDER BY start_ns;"
        )
    }
}

fn function(layer: &str, op: &str) -> String {
    format!("layer = {} AND op = {}", quoted(layer), quoted(op))
}

/// The probes of a layer in a target.
fn covered(layer: Layer, target: &str) -> String {
    format!("FROM coverage WHERE layer = {} AND target = {}", quoted(layer.name()), quoted(target))
}

/// The calls that show a finding.
fn evidence(state: &State, snapshot: &Snapshot) -> Option<String> {
    let spans = &state.finding(snapshot)?.evidence.spans;
    let ids: Vec<String> = spans.iter().map(ToString::to_string).collect();
    (!ids.is_empty()).then(|| format!("FROM spans WHERE span_id IN ({})\nORDER BY start_ns;", ids.join(", ")))
}

/// What is in flight: a request, or the calls that it is.
fn in_flight(snapshot: &Snapshot, id: i64) -> Option<String> {
    let flight = snapshot.inflight.as_ref()?;
    let operation = flight.operations.iter().find(|o| o.id == id)?;
    Some(if operation.kind == OperationKind::Request {
        format!("FROM block WHERE req_id = {id};")
    } else {
        let ids: Vec<String> = operation.calls.iter().map(|c| c.id.to_string()).collect();
        format!("FROM spans WHERE span_id IN ({})\nORDER BY depth;", ids.join(", "))
    })
}

/// The requests of one process to the device that is selected.
fn of_user(asked: &SqlContext<'_>, snapshot: &Snapshot, nth: usize) -> Option<String> {
    let device = asked.selected(TableId::Devices)?;
    let device_row = snapshot.devices.rows.iter().find(|d| i64::from(d.dev) == device)?;
    let process = device_row.users.get(nth)?.process_ix.map_or_else(|| "NULL".to_owned(), |ix| ix.to_string());
    Some(format!(
        "SELECT b.*, w.bytes AS of_it, w.file_id, w.span_id FROM block b JOIN block_bytes w USING (req_id)\nWHERE b.dev = {device} AND w.process_ix IS NOT DISTINCT FROM {process}\nORDER BY b.issue_ns;"
    ))
}

fn lost(snapshot: &Snapshot, nth: usize) -> Option<String> {
    let loss = snapshot.coverage.losses.get(nth)?;
    let layer = loss.layer.map_or_else(|| "NULL".to_owned(), |l| quoted(l.name()));
    let place = quoted(loss.place);
    Some(format!("FROM losses WHERE layer IS NOT DISTINCT FROM {layer} AND place = {place}\nORDER BY t_ns;"))
}

/// What the calls of a row of the processes screen have in common.
fn of_processes(state: &State, snapshot: &Snapshot, id: i64) -> Option<String> {
    let rows = &snapshot.processes.rows;
    let row = grouped(rows, state.grouping).into_iter().find(|r| r.id() == id)?;
    Some(match state.grouping {
        Grouping::Process => format!("process_ix = {}", row.process_ix),
        Grouping::Thread => format!("process_ix = {} AND tid = {}", row.process_ix, row.tid?),
        _ => {
            let members = state.grouping.members(rows, &row);
            let each: Vec<String> = members.iter().map(|r| r.process_ix.to_string()).collect();
            format!("process_ix IN ({})", each.join(", "))
        }
    })
}
