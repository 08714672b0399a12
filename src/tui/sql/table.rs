//! A question for each table: what it shows, of the calls that are looked at.

use crate::summary::filter::quoted;
use crate::summary::view::{Grouping, Measure, ProcessPart};
use crate::tui::sql::{OWN, SqlContext, TREE};
use crate::tui::state::TableId;

/// `None`: nothing of it is in a dataset.
pub(super) fn table(table: TableId, asked: &SqlContext) -> Option<String> {
    let calls = asked.calls();
    Some(match table {
        TableId::Layers => format!("{calls},\n{}{LAYERS}", asked.requests()),
        TableId::TopProcesses => processes(&calls, Grouping::Process),
        TableId::Processes => processes(&calls, asked.state.grouping),
        TableId::TopFiles | TableId::Files => format!("{calls}{FILES}"),
        TableId::FileOps => format!("{calls}{}", FILE_OPS.replace("{file}", &asked.state.file?.to_string())),
        TableId::Handles => HANDLES.replace("{file}", &asked.state.file?.to_string()),
        TableId::Objects => format!("{calls}{}", OBJECTS.replace("{file}", &asked.state.file?.to_string())),
        TableId::Tree => format!("{calls}{TREE}{NODES}"),
        TableId::Inverted => format!("{calls}{FUNCTIONS}"),
        TableId::Slowest => format!("{calls}{TREE}{}", SLOWEST.replace("{path}", &asked.path(asked.state.node?))),
        TableId::NodeFiles => format!("{calls}{TREE}{}", NODE_FILES.replace("{path}", &asked.path(asked.state.node?))),
        TableId::Waterfall => format!("FROM call_tree({});", asked.snapshot.waterfall.as_ref()?.root_id),
        TableId::Ops => latency(asked, &calls),
        TableId::Flights => in_flight(asked),
        TableId::Events => format!("{calls}{EVENTS}"),
        TableId::Followed => {
            let of = asked.state.process.as_ref()?;
            let filter = match &of.part {
                ProcessPart::Calls(Some(filter)) => format!(" AND {}", filter.sql()),
                _ => String::new(),
            };
            format!("WITH RECURSIVE calls AS (FROM spans WHERE process_ix = {}{filter}){EVENTS}", of.process_ix)
        }
        // What a dataset does not have.
        TableId::Output | TableId::Stacks => return None,
        TableId::Devices => format!("WITH {}{DEVICES}", asked.requests()),
        TableId::Users => {
            let device = asked.selected(TableId::Devices)?.to_string();
            format!("WITH {}{}", asked.requests(), USERS.replace("{device}", &device))
        }
        TableId::Mounts => format!("{calls}{MOUNTS}"),
        TableId::Groups => GROUPS.to_owned(),
        TableId::Losses => LOSSES.to_owned(),
        TableId::Refused => REFUSED.to_owned(),
        TableId::Findings => asked.state.finding(asked.snapshot)?.sql.clone(),
    })
}

fn processes(calls: &str, by: Grouping) -> String {
    let (columns, group, order) = match by {
        Grouping::Process => (
            "coalesce(any_value(p.rank), any_value(c.rank)) AS rank, c.process_ix, any_value(c.pid) AS pid",
            "c.process_ix",
            "rank NULLS LAST, io_ns DESC",
        ),
        Grouping::Thread => (
            "coalesce(any_value(p.rank), any_value(c.rank)) AS rank, c.process_ix, any_value(c.pid) AS pid, c.tid",
            "c.process_ix, c.tid",
            "rank NULLS LAST, io_ns DESC",
        ),
        Grouping::Rank => {
            ("coalesce(p.rank, c.rank) AS rank, count(DISTINCT c.process_ix) AS processes", "1", "rank NULLS LAST")
        }
        _ => ("p.{name}, count(DISTINCT c.process_ix) AS processes", "p.{name}", "io_ns DESC"),
    };
    let text = PROCESSES.replace("{columns}", columns).replace("{group}", group).replace("{order}", order);
    // A user is a word of SQL.
    let text = text.replace("{name}", &by.name().map_or_else(String::new, |(_, column)| format!("\"{column}\"")));
    format!("{calls}{OWN}{text}")
}

/// The distribution, then the functions.
fn latency(asked: &SqlContext, calls: &str) -> String {
    let state = asked.state;
    let value = if state.measure == Measure::Latency { "net_ns" } else { "bytes" };
    let mut of = String::from("layer_top");
    if let Some(layer) = state.layer {
        of.push_str(&format!(" AND layer = {}", quoted(layer.name())));
    }
    if let Some(op) = state.op {
        of.push_str(&format!(" AND op = {}", quoted(op)));
    }
    let distribution = DISTRIBUTION.replace("{value}", value).replace("{of}", &of);
    format!("-- The distribution.\n{calls}{distribution}\n\n-- The functions.\n{calls}{OPS}")
}

fn in_flight(asked: &SqlContext) -> String {
    match asked.snapshot.inflight.as_ref() {
        Some(flight) => {
            let at = flight.at_ns.to_string();
            IN_FLIGHT.replace("{when}", "start_ns <= {at} AND start_ns + dur_ns > {at}").replace("{at}", &at)
        }
        // What never returned.
        None => IN_FLIGHT.replace("{when}", "flags & 64 <> 0"),
    }
}

const LAYERS: &str = "
SELECT layer,
       coalesce(sum(bytes) FILTER (layer_top AND kind = 'read'), 0) AS read,
       coalesce(sum(bytes) FILTER (layer_top AND kind = 'write'), 0) AS written,
       count(*) FILTER (layer_top) AS calls,
       coalesce(sum(layer_ns) FILTER (layer_top), 0) AS incl_ns,
       quantile_disc(net_ns, 0.5) FILTER (layer_top) AS p50_ns,
       quantile_disc(net_ns, 0.99) FILTER (layer_top) AS p99_ns,
       sum(self_ns) AS excl_ns,
       sum(self_ns) / nullif(sum(sum(self_ns)) OVER (), 0)::DOUBLE AS excl,
       count(*) FILTER (layer_top AND errno <> 0) AS failed
FROM calls GROUP BY layer
UNION ALL
SELECT 'block', coalesce(sum(bytes) FILTER (op = 'read' AND status = 0), 0),
       coalesce(sum(bytes) FILTER (op = 'write' AND status = 0), 0), count(*),
       coalesce(sum(dur_ns), 0), quantile_disc(dur_ns, 0.5), quantile_disc(dur_ns, 0.99),
       NULL, NULL, count(*) FILTER (status <> 0)
FROM requests WHERE upper_dev IS NULL
ORDER BY layer_rank(layer);
-- What became of the bytes: FROM v_amplification; how unequal ranks are: FROM v_imbalance;";

const PROCESSES: &str = "
SELECT {columns},
       coalesce(sum(o.layer_ns), 0) AS io_ns,
       coalesce(sum(o.bytes) FILTER (o.kind = 'read'), 0) AS read,
       coalesce(sum(o.bytes) FILTER (o.kind = 'write'), 0) AS written,
       count(o.span_id) AS calls,
       coalesce(sum(o.layer_ns) FILTER (o.kind = 'read'), 0) AS reads_ns,
       coalesce(sum(o.layer_ns) FILTER (o.kind = 'write'), 0) AS writes_ns,
       coalesce(sum(o.layer_ns) FILTER (o.kind NOT IN ('read', 'write')), 0) AS meta_ns,
       coalesce(sum(c.bytes) FILTER (c.kind = 'read' AND c.layer_top AND c.layer IN ('syscall', 'vfs')), 0) AS sys_read,
       coalesce(sum(c.bytes) FILTER (c.kind = 'write' AND c.layer_top AND c.layer IN ('syscall', 'vfs')), 0) AS sys_written,
       count(*) FILTER (o.errno <> 0) AS failed,
       array_to_string(any_value(p.cmdline), ' ') AS command
FROM calls c LEFT JOIN own o USING (span_id) LEFT JOIN processes p ON p.process_ix = c.process_ix
GROUP BY {group} ORDER BY {order};";

const FILES: &str = ",
used AS (SELECT *, layer_top AND layer IN ('syscall', 'vfs') AS counts FROM calls WHERE file_id IS NOT NULL)
SELECT file_id, any_value(f.path) AS path,
       coalesce(sum(layer_ns) FILTER (counts), 0) AS time_ns,
       coalesce(sum(bytes) FILTER (counts AND kind = 'read'), 0) AS read,
       coalesce(sum(bytes) FILTER (counts AND kind = 'write'), 0) AS written,
       count(*) FILTER (counts) AS calls,
       quantile_disc(net_ns, 0.5) FILTER (counts) AS p50_ns, quantile_disc(net_ns, 0.99) FILTER (counts) AS p99_ns,
       any_value(coalesce(f.size_last, f.size_first)) AS size,
       count(*) FILTER (counts AND kind IN ('read', 'write') AND bytes < 4096 AND errno = 0) AS small,
       coalesce(sum(miss_bytes) FILTER (counts), 0) AS missed,
       count(*) FILTER (counts AND kind = 'open') AS opens, count(*) FILTER (counts AND kind = 'sync') AS syncs,
       count(DISTINCT process_ix) FILTER (counts AND kind = 'read') AS readers,
       count(DISTINCT process_ix) FILTER (counts AND kind = 'write') AS writers,
       count(*) FILTER (counts AND errno <> 0) AS failed,
       arg_min(layer, layer_rank(layer)) AS top_layer
FROM used LEFT JOIN files f USING (file_id) GROUP BY file_id ORDER BY time_ns DESC, file_id;
-- How sequential, by kind: FROM v_sequential;";

const FILE_OPS: &str = "
SELECT layer, op, count(*) AS calls, sum(layer_ns) AS time_ns, sum(self_ns) AS excl_ns,
       coalesce(sum(bytes) FILTER (kind IN ('read', 'write')), 0) AS bytes, quantile_disc(net_ns, 0.99) AS p99_ns
FROM calls WHERE file_id = {file} GROUP BY layer, op ORDER BY time_ns DESC;
-- Offsets over time: SELECT start_ns, \"offset\", bytes, kind FROM spans WHERE layer = 'syscall' AND file_id = {file};";

const HANDLES: &str =
    "SELECT h.handle_id, h.parent_handle_id, h.layer, o.name, h.raw, h.pid, h.comm_size, h.start_ns, h.end_ns, h.hints
FROM handles h LEFT JOIN objects o USING (object_id)
WHERE h.file_id = {file} ORDER BY h.start_ns, h.handle_id;";

const OBJECTS: &str = "
SELECT o.object_id, any_value(o.name) AS name, any_value(o.class) AS class, any_value(o.dims) AS dims,
       any_value(o.chunk) AS chunk,
       coalesce(sum(c.bytes) FILTER (c.layer_top AND c.kind = 'read'), 0) AS read,
       coalesce(sum(c.bytes) FILTER (c.layer_top AND c.kind = 'write'), 0) AS written,
       coalesce(sum(c.layer_ns) FILTER (c.layer_top), 0) AS time_ns
FROM objects o LEFT JOIN calls c USING (object_id)
WHERE o.file_id = {file} GROUP BY o.object_id ORDER BY time_ns DESC;";

const NODES: &str = ",
device AS (SELECT span_id, sum(bytes) AS bytes FROM block_links WHERE how <> 'discard' GROUP BY span_id)
SELECT repeat('  ', len(path) - 1) || op AS call, layer, count(*) AS calls, sum(layer_ns) AS incl_ns, sum(self_ns) AS excl_ns,
       sum(layer_ns) // count(*) AS mean_ns, max(net_ns) AS max_ns,
       coalesce(sum(c.bytes) FILTER (kind IN ('read', 'write')), 0) AS bytes,
       coalesce(sum(d.bytes), 0) AS device, count(*) FILTER (errno <> 0) AS failed
FROM tree JOIN calls c USING (span_id) LEFT JOIN device d USING (span_id)
GROUP BY path, layer, op ORDER BY path;";

const FUNCTIONS: &str = "
SELECT layer, op, count(*) AS calls, sum(self_ns) AS excl_ns, max(net_ns) AS max_ns,
       coalesce(sum(bytes) FILTER (kind IN ('read', 'write')), 0) AS bytes
FROM calls GROUP BY layer, op ORDER BY excl_ns DESC;";

const SLOWEST: &str = "
SELECT net_ns, self_ns, start_ns, rank, pid, bytes, f.path AS file, span_id
FROM tree t JOIN calls USING (span_id) LEFT JOIN files f USING (file_id)
WHERE t.path = {path}
ORDER BY net_ns DESC LIMIT 20;";

const NODE_FILES: &str = "
SELECT any_value(f.path) AS file, count(*) AS calls, sum(layer_ns) AS time_ns,
       coalesce(sum(bytes) FILTER (kind IN ('read', 'write')), 0) AS bytes
FROM tree t JOIN calls USING (span_id) LEFT JOIN files f USING (file_id)
WHERE t.path = {path} AND file_id IS NOT NULL
GROUP BY file_id ORDER BY time_ns DESC;";

const DISTRIBUTION: &str = "
SELECT CASE WHEN {value} > 0 THEN 1::BIGINT << (length(bin({value})) - 1)::INT ELSE 0 END AS from_value, count(*) AS calls
FROM calls WHERE {of} AND {value} IS NOT NULL GROUP BY from_value ORDER BY from_value;";

const OPS: &str = "
SELECT layer, op, count(*) FILTER (layer_top) AS calls, coalesce(sum(layer_ns) FILTER (layer_top), 0) AS time_ns,
       sum(self_ns) AS excl_ns,
       coalesce(sum(bytes) FILTER (layer_top AND kind IN ('read', 'write')), 0) AS bytes,
       quantile_disc(net_ns, 0.99) FILTER (layer_top) AS p99_ns
FROM calls GROUP BY layer, op ORDER BY time_ns DESC;";

const IN_FLIGHT: &str = "SELECT start_ns, dur_ns, rank, pid, tid, layer, repeat(' ', depth) || op AS call, req_bytes, \"offset\", f.path, span_id
FROM spans LEFT JOIN files f USING (file_id)
WHERE {when}
ORDER BY pid, tid, start_ns;";

const EVENTS: &str = "
SELECT start_ns, rank, pid, tid, layer, repeat(' ', depth) || op AS call, net_ns, self_ns, bytes, req_bytes AS asked,
       miss_bytes AS missed, \"offset\", ret, errno, f.path, span_id
FROM calls LEFT JOIN files f USING (file_id)
ORDER BY start_ns + dur_ns DESC, span_id LIMIT 2000;";

const DEVICES: &str = "
SELECT any_value(device) AS device, dev, count(*) AS requests,
       coalesce(sum(bytes) FILTER (op = 'read'), 0) AS read, coalesce(sum(bytes) FILTER (op = 'write'), 0) AS written,
       avg(qdepth) AS depth, max(qdepth) AS max_depth,
       quantile_disc(issue_ns - queue_ns, 0.5) AS queue_p50_ns, quantile_disc(issue_ns - queue_ns, 0.99) AS queue_p99_ns,
       quantile_disc(dur_ns, 0.5) AS device_p50_ns, quantile_disc(dur_ns, 0.99) AS device_p99_ns,
       count(*) FILTER (status <> 0) AS failed
FROM requests GROUP BY dev ORDER BY read + written DESC;
-- Classes of requests: FROM v_block_classes;";

const USERS: &str = "
SELECT any_value(p.rank) AS rank, any_value(p.pid) AS pid, b.process_ix, count(*) AS requests, sum(b.bytes) AS bytes,
       array_to_string(any_value(p.cmdline), ' ') AS command
FROM requests r JOIN block_bytes b USING (req_id) LEFT JOIN processes p ON p.process_ix = b.process_ix
WHERE r.dev = {device} GROUP BY b.process_ix ORDER BY bytes DESC;";

const MOUNTS: &str = "
SELECT any_value(m.path) AS mount, any_value(m.fstype) AS type, any_value(m.source) AS source,
       count(DISTINCT file_id) AS files,
       coalesce(sum(c.bytes) FILTER (c.kind = 'read'), 0) AS read,
       coalesce(sum(c.bytes) FILTER (c.kind = 'write'), 0) AS written,
       count(*) AS calls, sum(c.layer_ns) AS time_ns, any_value(m.options) AS options
FROM calls c JOIN files f USING (file_id) JOIN mounts m USING (mount_id)
WHERE c.layer_top AND c.layer IN ('syscall', 'vfs')
GROUP BY mount_id ORDER BY time_ns DESC;";

const GROUPS: &str =
    "SELECT layer, count(*) FILTER (status = 'attached') AS attached, count(*) FILTER (status = 'refused') AS refused,
       count(*) FILTER (status = 'absent') AS absent, count(*) FILTER (status = 'skipped') AS skipped,
       count(*) FILTER (insn = 'stepped') AS stepped, list(DISTINCT tier) FILTER (tier IS NOT NULL) AS how, target
FROM coverage GROUP BY layer, target ORDER BY layer_rank(layer), target;";

const LOSSES: &str = "SELECT layer, place, sum(count) AS lost, max(t_ns) AS last_ns
FROM losses GROUP BY layer, place ORDER BY lost DESC;";

const REFUSED: &str =
    "SELECT layer, status AS verdict, symbol, reason, target FROM coverage WHERE status <> 'attached';";
