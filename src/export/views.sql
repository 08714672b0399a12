-- Questions about a trace, as DuckDB views over its Parquet tables, from any directory:
--
--   iotrace-bpf sql run.iotrace 'FROM v_layers'
--   iotrace-bpf sql run.iotrace
--   D FROM call_tree(8589934592);   D SHOW TABLES;
--
-- or with the dataset as working directory:
--
--   cd run.iotrace && duckdb -init views.sql
--
-- or in Python (pip install duckdb pandas):
--
--   import duckdb
--   db = duckdb.connect()
--   db.execute("SET VARIABLE iotrace_dir = 'run.iotrace'")
--   db.execute(open("run.iotrace/views.sql").read())
--   db.sql("FROM v_ops").df()
--
-- Several nodes at once: put the datasets side by side, and run the views of any of them in the directory that holds them
-- (duckdb -init node1/views.sql). Ids are those of one host: join on host as well, and give the host with an id. Spark reads
-- the same with views-spark.sql.
-- Times are ns since the start of the trace on each node (of its first dataset that is there); v_spans has them on one clock. Null means "has none" or "not
-- known", never 0.
-- Datasets of --flight of one trace have rows in common: look at one at a time.
-- Before trusting a sum look at v_loss (what was lost) and v_coverage (what was never traced).

-- Views lead to the same parts again and again: their footers are read once, and again when they have changed.
SET parquet_metadata_cache = true;

-- The parts of a table in the datasets below the variable iotrace_dir, or the working directory; and one without rows that
-- iotrace-bpf gives (iotrace_none), which has the columns that datasets of earlier versions lack. Of a table that they lack
-- (iotrace_absent) that one alone.
CREATE OR REPLACE MACRO parts(name) AS coalesce(getvariable('iotrace_absent')[name], list_concat(coalesce(
  getvariable('iotrace_some')[name], [coalesce(getvariable('iotrace_dir') || '/', '') || '**/' || name || '-*.parquet']),
  getvariable('iotrace_none')[name]));

-- While views are made each leads to two parts of a table, and from the end of this file on to all: DuckDB looks into
-- every file wherever a view names a table. The first and the last part by name: where datasets are of several
-- versions, one has all columns.
SET VARIABLE iotrace_some = (
  SELECT map(list(name), list(list_distinct([first, last])))
  FROM (SELECT regexp_extract(file, '([a-z_]+)-[0-9]+[.]parquet$', 1) AS name, min(file) AS first, max(file) AS last
        FROM glob(coalesce(getvariable('iotrace_dir') || '/', '') || '**/*-*.parquet') GROUP BY 1));
SET VARIABLE iotrace_absent = CAST(map_from_entries([entry for entry in map_entries(getvariable('iotrace_none'))
  if NOT list_contains(map_keys(getvariable('iotrace_some')), entry.key)]) AS MAP(VARCHAR, VARCHAR[]));

-- Joins compare hosts by IS NOT DISTINCT FROM: from '=' DuckDB concludes that all rows of a host fit each other, and begins there.

-- The datasets, by their directory: whose they are, of which run (the beginning of its trace), and when they began on the two
-- clocks of the node. Within a run later_ns is how much later than the first one that is there, and t0_wall_ns goes by the
-- clock that is never set (CLOCK_MONOTONIC).
CREATE OR REPLACE VIEW datasets AS
  WITH facts AS (SELECT host, key, value, regexp_replace(filename, '[^/]*$', '') AS dir,
                        row_number() OVER (PARTITION BY regexp_replace(filename, '[^/]*$', ''), key
                                           ORDER BY filename DESC, file_row_number DESC) AS nth
                 FROM read_parquet(parts('meta'), union_by_name = true, filename = true, file_row_number = true)),
       numbers AS (SELECT dir, max(host) AS host, max(CASE WHEN key = 'run_t0_ns' THEN TRY_CAST(value AS BIGINT) END) AS run_ns,
                       max(CASE WHEN key = 't0_ns' THEN TRY_CAST(value AS BIGINT) END) AS t0_ns,
                       max(CASE WHEN key = 't0_wall_ns' THEN TRY_CAST(value AS BIGINT) END) AS wall_ns
                FROM facts WHERE nth = 1 GROUP BY dir),
       runs AS (SELECT *, coalesce(run_ns, t0_ns) AS run_t0_ns FROM numbers),
       firsts AS (SELECT *, t0_ns - first_value(t0_ns) OVER (PARTITION BY host, run_t0_ns ORDER BY t0_ns) AS later_ns,
                         first_value(wall_ns) OVER (PARTITION BY host, run_t0_ns ORDER BY t0_ns) AS first_wall_ns FROM runs)
  SELECT dir, host, run_t0_ns, t0_ns, coalesce(first_wall_ns + later_ns, wall_ns) AS t0_wall_ns, coalesce(later_ns, 0) AS later_ns
  FROM firsts;

-- Tables of calls and requests. layer_top marks the outermost call of a layer: sum bytes over these only. Times count from the
-- start of the first dataset of a run. net_ns is the duration of a call without the tracer's own hooks in it;
-- layer_ns what it adds to the time of its layer: sum these, for asynchronous operations overlap.
CREATE OR REPLACE VIEW spans AS
  SELECT t.* EXCLUDE (filename) REPLACE (start_ns + coalesce(later_ns, 0) AS start_ns,
           coalesce(layer_ns, dur_ns - coalesce(probe_ns, 0)) AS layer_ns),
         dur_ns - coalesce(probe_ns, 0) AS net_ns,
         CASE WHEN cpu_ns IS NOT NULL THEN greatest(dur_ns - coalesce(probe_ns, 0) - cpu_ns - coalesce(runq_ns, 0)
           - coalesce(throttle_ns, 0) - coalesce(lock_ns, 0) - coalesce(writeback_ns, 0) - coalesce(journal_ns, 0)
           - coalesce(flush_ns, 0) - coalesce(devqueue_ns, 0) - coalesce(device_ns, 0) - coalesce(remote_ns, 0), 0) END AS sleep_ns
  FROM read_parquet(parts('spans'), union_by_name = true, filename = true) t
       LEFT JOIN datasets d ON d.dir = regexp_replace(filename, '[^/]*$', '');
CREATE OR REPLACE VIEW block AS
  SELECT t.* EXCLUDE (filename) REPLACE (queue_ns + coalesce(later_ns, 0) AS queue_ns,
    insert_ns + coalesce(later_ns, 0) AS insert_ns,
    issue_ns + coalesce(later_ns, 0) AS issue_ns)
  FROM read_parquet(parts('block'), union_by_name = true, filename = true) t
       LEFT JOIN datasets d ON d.dir = regexp_replace(filename, '[^/]*$', '');
CREATE OR REPLACE VIEW block_bytes AS FROM read_parquet(parts('block_bytes'), union_by_name = true);
CREATE OR REPLACE VIEW block_links AS FROM read_parquet(parts('block_links'), union_by_name = true);
CREATE OR REPLACE VIEW rpc AS
  SELECT t.* EXCLUDE (filename) REPLACE (received_ns + coalesce(later_ns, 0) AS received_ns)
  FROM read_parquet(parts('rpc'), union_by_name = true, filename = true) t
       LEFT JOIN datasets d ON d.dir = regexp_replace(filename, '[^/]*$', '');
CREATE OR REPLACE VIEW rollup_bins AS
  SELECT t.* EXCLUDE (filename) REPLACE (t_ns + coalesce(later_ns, 0) AS t_ns)
  FROM read_parquet(parts('rollup'), union_by_name = true, filename = true) t
       LEFT JOIN datasets d ON d.dir = regexp_replace(filename, '[^/]*$', '');
CREATE OR REPLACE VIEW file_rollup AS
  SELECT t.* EXCLUDE (filename) REPLACE (from_ns + coalesce(later_ns, 0) AS from_ns,
    to_ns + coalesce(later_ns, 0) AS to_ns,
    slowest_ns + coalesce(later_ns, 0) AS slowest_ns,
    first_ns + coalesce(later_ns, 0) AS first_ns,
    last_ns + coalesce(later_ns, 0) AS last_ns)
  FROM read_parquet(parts('file_rollup'), union_by_name = true, filename = true) t
       LEFT JOIN datasets d ON d.dir = regexp_replace(filename, '[^/]*$', '');
CREATE OR REPLACE VIEW hist AS
  SELECT t.* EXCLUDE (filename) REPLACE (t_ns + coalesce(later_ns, 0) AS t_ns)
  FROM read_parquet(parts('hist'), union_by_name = true, filename = true) t
       LEFT JOIN datasets d ON d.dir = regexp_replace(filename, '[^/]*$', '');
CREATE OR REPLACE VIEW metrics AS
  SELECT t.* EXCLUDE (filename) REPLACE (t_ns + coalesce(later_ns, 0) AS t_ns)
  FROM read_parquet(parts('metrics'), union_by_name = true, filename = true) t
       LEFT JOIN datasets d ON d.dir = regexp_replace(filename, '[^/]*$', '');
CREATE OR REPLACE VIEW losses AS
  SELECT t.* EXCLUDE (filename) REPLACE (t_ns + coalesce(later_ns, 0) AS t_ns)
  FROM read_parquet(parts('losses'), union_by_name = true, filename = true) t
       LEFT JOIN datasets d ON d.dir = regexp_replace(filename, '[^/]*$', '');
-- Each dataset of a run has its verdicts again.
CREATE OR REPLACE VIEW coverage AS SELECT DISTINCT * FROM read_parquet(parts('coverage'), union_by_name = true);
-- Each dataset of a run has its paths again, too.
CREATE OR REPLACE VIEW file_paths AS
  SELECT DISTINCT t.* EXCLUDE (filename) REPLACE (from_ns + coalesce(later_ns, 0) AS from_ns)
  FROM read_parquet(parts('file_paths'), union_by_name = true, filename = true) t
       LEFT JOIN datasets d ON d.dir = regexp_replace(filename, '[^/]*$', '');

-- Dimension tables. A row is written again when more is known about its id: the last one holds.
CREATE OR REPLACE VIEW files AS SELECT * EXCLUDE (filename, file_row_number)
  FROM read_parquet(parts('files'), union_by_name = true, filename = true, file_row_number = true)
  QUALIFY row_number() OVER (PARTITION BY host, file_id ORDER BY filename DESC, file_row_number DESC) = 1;
CREATE OR REPLACE VIEW paths AS SELECT * EXCLUDE (filename, file_row_number)
  FROM read_parquet(parts('paths'), union_by_name = true, filename = true, file_row_number = true)
  QUALIFY row_number() OVER (PARTITION BY host, path_id ORDER BY filename DESC, file_row_number DESC) = 1;
CREATE OR REPLACE VIEW handles AS
  SELECT t.* EXCLUDE (filename, file_row_number) REPLACE (start_ns + coalesce(later_ns, 0) AS start_ns, end_ns + coalesce(later_ns, 0) AS end_ns)
  FROM (SELECT * FROM read_parquet(parts('handles'), union_by_name = true, filename = true, file_row_number = true)
        QUALIFY row_number() OVER (PARTITION BY host, handle_id ORDER BY filename DESC, file_row_number DESC) = 1) t
       LEFT JOIN datasets d ON d.dir = regexp_replace(filename, '[^/]*$', '');
CREATE OR REPLACE VIEW objects AS SELECT * EXCLUDE (filename, file_row_number)
  FROM read_parquet(parts('objects'), union_by_name = true, filename = true, file_row_number = true)
  QUALIFY row_number() OVER (PARTITION BY host, object_id ORDER BY filename DESC, file_row_number DESC) = 1;
CREATE OR REPLACE VIEW processes AS
  SELECT t.* EXCLUDE (filename, file_row_number) REPLACE (start_ns + coalesce(later_ns, 0) AS start_ns, end_ns + coalesce(later_ns, 0) AS end_ns)
  FROM (SELECT * FROM read_parquet(parts('processes'), union_by_name = true, filename = true, file_row_number = true)
        QUALIFY row_number() OVER (PARTITION BY host, process_ix ORDER BY filename DESC, file_row_number DESC) = 1) t
       LEFT JOIN datasets d ON d.dir = regexp_replace(filename, '[^/]*$', '');
CREATE OR REPLACE VIEW threads AS SELECT * EXCLUDE (filename, file_row_number)
  FROM read_parquet(parts('threads'), union_by_name = true, filename = true, file_row_number = true)
  QUALIFY row_number() OVER (PARTITION BY host, thread_ix ORDER BY filename DESC, file_row_number DESC) = 1;
CREATE OR REPLACE VIEW mounts AS SELECT * EXCLUDE (filename, file_row_number)
  FROM read_parquet(parts('mounts'), union_by_name = true, filename = true, file_row_number = true)
  QUALIFY row_number() OVER (PARTITION BY host, mount_id ORDER BY filename DESC, file_row_number DESC) = 1;
CREATE OR REPLACE VIEW stacks AS SELECT * EXCLUDE (filename, file_row_number)
  FROM read_parquet(parts('stacks'), union_by_name = true, filename = true, file_row_number = true)
  QUALIFY row_number() OVER (PARTITION BY host, stack_id ORDER BY filename DESC, file_row_number DESC) = 1;
-- Of several datasets of a run the facts are those of the last one, but its times those of rows.
CREATE OR REPLACE VIEW meta AS
  SELECT t.* EXCLUDE (filename, file_row_number) REPLACE (CASE key WHEN 'end_ns' THEN coalesce(CAST(TRY_CAST(value AS BIGINT) + later_ns AS VARCHAR), value)
             WHEN 't0_ns' THEN coalesce(CAST(t0_ns - later_ns AS VARCHAR), value)
             WHEN 't0_wall_ns' THEN coalesce(CAST(t0_wall_ns - later_ns AS VARCHAR), value) ELSE value END AS value)
  FROM (SELECT * FROM read_parquet(parts('meta'), union_by_name = true, filename = true, file_row_number = true)
        QUALIFY row_number() OVER (PARTITION BY host, key ORDER BY filename DESC, file_row_number DESC) = 1) t
       LEFT JOIN datasets d ON d.dir = regexp_replace(filename, '[^/]*$', '');

-- Names for ids: of a process its command line, or the program where that is not known; of calls all that are known.
CREATE OR REPLACE VIEW v_commands AS
  SELECT host, process_ix, pid, rank, coalesce(nullif(array_to_string(cmdline, ' '), ''), exe) AS command FROM processes;
CREATE OR REPLACE VIEW v_calls AS
  SELECT s.*, coalesce(f.path, n.path) AS path, o.name AS object, p.command
  FROM spans s LEFT JOIN files f ON f.host IS NOT DISTINCT FROM s.host AND f.file_id = s.file_id
       LEFT JOIN paths n ON n.host IS NOT DISTINCT FROM s.host AND n.path_id = s.path_id
       LEFT JOIN objects o ON o.host IS NOT DISTINCT FROM s.host AND o.object_id = s.object_id
       LEFT JOIN v_commands p ON p.host IS NOT DISTINCT FROM s.host AND p.process_ix = s.process_ix;

-- Layers from top to bottom.
CREATE OR REPLACE MACRO layer_rank(layer) AS list_position(
  ['app', 'netcdf', 'pnetcdf', 'hdf5', 'mpiio', 'mpi', 'stdio', 'syscall', 'vfs', 'fs', 'block'], layer);

-- What was lost, and which layers were covered. A layer without attached probes is not covered: that it has no rows means nothing.
CREATE OR REPLACE VIEW v_loss AS
  SELECT layer, place, sum(count) AS lost FROM losses GROUP BY ALL HAVING sum(count) <> 0 ORDER BY lost DESC;
CREATE OR REPLACE VIEW v_coverage AS
  SELECT layer, count(*) FILTER (status = 'attached') AS attached,
         count(*) FILTER (status <> 'absent' OR symbol = '') AS probes,
         count(*) FILTER (status = 'absent' AND symbol <> '') AS absent,
         list_sort(list(DISTINCT tier) FILTER (status = 'attached')) AS tiers,
         list_sort(list(DISTINCT status || ': ' || coalesce(reason, 'no reason recorded')) FILTER (status <> 'attached')) AS reasons
  FROM coverage WHERE status NOT IN ('demoted', 'paused') GROUP BY layer ORDER BY layer_rank(layer);

-- The tracer's own share: by how much hooks lengthened the run, and what a recorded call cost its thread.
CREATE OR REPLACE VIEW v_tracing AS
  WITH datasets_costs AS (
    SELECT host, regexp_replace(filename, '[^/]*$', '') AS dir, max(value) FILTER (name = 'hooks_ns') AS hooks_ns,
           max(value) FILTER (name = 'tracing_ns') AS tracing_ns, max(value) FILTER (name = 'held_ns') AS held_ns
    FROM read_parquet(parts('metrics'), union_by_name = true, filename = true) GROUP BY host, dir),
  costs AS (SELECT host, sum(hooks_ns) AS hooks_ns, sum(tracing_ns) AS tracing_ns, sum(held_ns) AS held_ns
            FROM datasets_costs GROUP BY host),
  lasted AS (SELECT host, max(t_ns) - min(t_ns) AS run_ns FROM metrics WHERE name = 'tracing_ns' GROUP BY host),
  counted AS (
    SELECT host, count(*) AS calls FROM spans WHERE flags & 512 = 0 GROUP BY host
    UNION ALL
    SELECT host, sum(calls + nested_calls) FROM file_rollup
    WHERE layer <> 'block' AND (calls_error IS NULL OR dur_ns > 0) GROUP BY host),
  made AS (SELECT host, sum(calls) AS calls FROM counted GROUP BY host)
  SELECT c.host, CASE WHEN l.run_ns > 0 THEN c.tracing_ns / l.run_ns ELSE 0 END AS share, c.tracing_ns / 1e9 AS seconds, c.hooks_ns / m.calls AS ns_per_call,
         coalesce(c.held_ns, 0) / 1e9 AS held_seconds
  FROM costs c LEFT JOIN lasted l ON l.host = c.host LEFT JOIN made m ON m.host = c.host
  WHERE c.tracing_ns IS NOT NULL ORDER BY c.host;

-- What calls of demoted functions, and those of MPI in a pause, came to that are not in spans: their number is estimated, bytes are
-- exact, and not known of MPI. In a trace with --aggregate those of demoted functions are among the sums.
CREATE OR REPLACE VIEW estimated_calls AS
  SELECT host, layer, op, kind, process_ix, pid, rank, file_id, calls, calls_error,
         CASE WHEN kind IN ('read', 'write') THEN req_bytes END AS req_bytes,
         CASE WHEN kind IN ('read', 'write') THEN bytes END AS bytes
  FROM file_rollup
  WHERE calls_error IS NOT NULL AND host NOT IN (SELECT host FROM meta WHERE key = 'aggregate');

-- Those that the program made, for all that is known: MPI is in calls of I/O libraries.
CREATE OR REPLACE VIEW demoted_calls AS SELECT * FROM estimated_calls WHERE layer <> 'mpi';

-- Layer by layer: calls, bytes, errors and inclusive time of outermost calls, exclusive time of all calls.
CREATE OR REPLACE VIEW v_layers AS
  WITH recorded AS (
    SELECT layer,
           count(*) FILTER (layer_top) AS calls,
           count(*) FILTER (NOT layer_top) AS nested_calls,
           coalesce(sum(layer_ns) FILTER (layer_top), 0) AS inclusive_ns,
           sum(self_ns) AS exclusive_ns,
           sum(self_ns) / nullif(sum(sum(self_ns)) OVER (), 0)::DOUBLE AS exclusive_share,
           sum(req_bytes) FILTER (layer_top AND kind IN ('read', 'write')) AS asked,
           sum(bytes) FILTER (layer_top AND kind IN ('read', 'write')) AS moved,
           count(*) FILTER (layer_top AND kind IN ('read', 'write') AND bytes IS NULL AND errno = 0) AS moved_unknown_calls,
           count(*) FILTER (layer_top AND errno <> 0) AS errors
    FROM spans GROUP BY layer),
  more AS (SELECT layer, sum(calls) AS calls, sum(req_bytes) AS asked, sum(bytes) AS moved FROM estimated_calls GROUP BY layer)
  SELECT t.layer, (t.calls + coalesce(m.calls, 0))::BIGINT AS calls, t.nested_calls, t.inclusive_ns, t.exclusive_ns, t.exclusive_share,
         CASE WHEN m.asked IS NULL THEN t.asked ELSE coalesce(t.asked, 0) + m.asked END AS asked,
         CASE WHEN m.moved IS NULL THEN t.moved ELSE coalesce(t.moved, 0) + m.moved END AS moved, t.moved_unknown_calls, t.errors
  FROM recorded t LEFT JOIN more m ON m.layer = t.layer ORDER BY layer_rank(t.layer);

-- Function by function. Calls, errors and the distribution count every call; inclusive time and bytes outermost ones.
CREATE OR REPLACE VIEW v_ops AS
  WITH recorded AS (
    SELECT layer, op, any_value(kind) AS kind,
           count(*) AS calls,
           count(*) FILTER (NOT layer_top) AS nested_calls,
           coalesce(sum(layer_ns) FILTER (layer_top), 0) AS inclusive_ns,
           sum(self_ns) AS exclusive_ns,
           sum(self_ns) / nullif(sum(sum(self_ns)) OVER (), 0)::DOUBLE AS exclusive_share,
           sum(req_bytes) FILTER (layer_top AND kind IN ('read', 'write')) AS asked,
           sum(bytes) FILTER (layer_top AND kind IN ('read', 'write')) AS moved,
           count(*) FILTER (errno <> 0) AS errors,
           min(net_ns) AS min_ns, avg(net_ns) AS mean_ns, stddev_samp(net_ns) AS stddev_ns, max(net_ns) AS max_ns
    FROM spans GROUP BY layer, op),
  -- The buckets of the report, 32 of a width to a power of two: exact percentiles would hold every duration in memory.
  widths AS (
    SELECT layer, op, net_ns, CAST(pow(2, greatest(floor(log2(greatest(net_ns, 1))) - 5, 0)) AS BIGINT) AS width FROM spans),
  buckets AS (
    SELECT layer, op, net_ns // width * width + (width - 1) // 2 AS middle, count(*) AS calls FROM widths GROUP BY ALL),
  counted AS (
    SELECT layer, op, middle, sum(calls) OVER (PARTITION BY layer, op ORDER BY middle) AS up_to,
           CAST(sum(calls) OVER (PARTITION BY layer, op) AS DOUBLE) AS calls
    FROM buckets),
  percentiles AS (
    SELECT layer, op, min(middle) FILTER (up_to >= ceil(calls * CAST(0.5 AS DOUBLE))) AS p50_ns,
           min(middle) FILTER (up_to >= ceil(calls * CAST(0.99 AS DOUBLE))) AS p99_ns
    FROM counted GROUP BY layer, op),
  more AS (
    SELECT layer, op, sum(calls) AS calls, sum(req_bytes) AS asked, sum(bytes) AS moved FROM estimated_calls GROUP BY layer, op)
  SELECT t.layer, t.op, t.kind, (t.calls + coalesce(m.calls, 0))::BIGINT AS calls, t.nested_calls, t.inclusive_ns, t.exclusive_ns,
         t.exclusive_share, CASE WHEN m.asked IS NULL THEN t.asked ELSE coalesce(t.asked, 0) + m.asked END AS asked,
         CASE WHEN m.moved IS NULL THEN t.moved ELSE coalesce(t.moved, 0) + m.moved END AS moved,
         t.errors, t.min_ns, t.mean_ns, t.stddev_ns,
         least(greatest(p.p50_ns, t.min_ns), t.max_ns) AS p50_ns, least(greatest(p.p99_ns, t.min_ns), t.max_ns) AS p99_ns, t.max_ns
  FROM recorded t JOIN percentiles p ON p.layer = t.layer AND p.op = t.op
       LEFT JOIN more m ON m.layer = t.layer AND m.op = t.op ORDER BY t.exclusive_ns DESC;

-- What outermost system calls spent their time on, and the function whose calls have most of it.
CREATE OR REPLACE VIEW v_waiting AS
  WITH calls AS (
    SELECT op, 1 AS calls, cpu_ns AS cpu, runq_ns AS runq, throttle_ns AS throttle, lock_ns AS lock, writeback_ns AS writeback,
           journal_ns AS journal, flush_ns AS flush, devqueue_ns AS devqueue, device_ns AS device, remote_ns AS remote, sleep_ns AS sleep
    FROM spans WHERE layer = 'syscall' AND layer_top AND cpu_ns IS NOT NULL AND flags & 512 = 0
    UNION ALL
    SELECT op, calls, cpu_ns, runq_ns, wait_ns, lock_ns, 0, 0, 0, 0, 0, 0, greatest(dur_ns - cpu_ns - runq_ns - wait_ns - lock_ns, 0)
    FROM file_rollup WHERE layer = 'syscall' AND calls_error IS NULL),
  ops AS (
    SELECT op, sum(calls) AS calls, sum(cpu) AS cpu, sum(runq) AS runq, sum(throttle) AS throttle, sum(lock) AS lock,
           sum(writeback) AS writeback, sum(journal) AS journal, sum(flush) AS flush, sum(devqueue) AS devqueue, sum(device) AS device,
           sum(remote) AS remote, sum(sleep) AS sleep FROM calls GROUP BY op),
  parts AS (
    SELECT op, calls, part, CASE part WHEN 'cpu' THEN cpu WHEN 'runq' THEN runq WHEN 'throttle' THEN throttle WHEN 'lock' THEN lock WHEN 'writeback' THEN writeback
      WHEN 'journal' THEN journal WHEN 'flush' THEN flush WHEN 'devqueue' THEN devqueue WHEN 'device' THEN device WHEN 'remote' THEN remote WHEN 'sleep' THEN sleep END AS ns
    FROM ops CROSS JOIN (VALUES ('cpu'), ('runq'), ('throttle'), ('lock'), ('writeback'), ('journal'), ('flush'), ('devqueue'), ('device'), ('remote'), ('sleep')) AS names (part)),
  ranked AS (
    SELECT part, op, calls, ns, sum(ns) OVER (PARTITION BY part) AS part_ns, sum(ns) OVER () AS all_ns,
           row_number() OVER (PARTITION BY part ORDER BY ns DESC, op) AS nth FROM parts)
  SELECT part, part_ns::BIGINT AS ns, part_ns / all_ns::DOUBLE AS share, op, ns::BIGINT AS op_ns, calls::BIGINT AS op_calls
  FROM ranked WHERE nth = 1 AND part_ns > 0 ORDER BY ns DESC;

-- The program's own calls: the outermost ones that are no phases. A phase is a call of layer app and kind other.
CREATE OR REPLACE VIEW v_own AS
  WITH RECURSIVE phases AS (
    SELECT host, span_id FROM spans WHERE parent_id IS NULL AND layer = 'app' AND kind = 'other'
    UNION ALL
    SELECT s.host, s.span_id FROM spans s JOIN phases p ON s.host IS NOT DISTINCT FROM p.host AND s.parent_id = p.span_id
    WHERE s.layer = 'app' AND s.kind = 'other')
  FROM spans WHERE (layer <> 'app' OR kind <> 'other') AND parent_id IS NULL
  UNION ALL
  SELECT s.* FROM spans s JOIN phases p ON s.host IS NOT DISTINCT FROM p.host AND s.parent_id = p.span_id
  WHERE s.layer <> 'app' OR s.kind <> 'other';

-- Which of these calls each span is part of, and the layer of that call; phases around them are part of none.
CREATE OR REPLACE VIEW v_inside AS
  WITH RECURSIVE below AS (
    SELECT host, span_id, span_id AS call_id, layer AS called FROM v_own WHERE parent_id IS NOT NULL
    UNION ALL
    SELECT s.host, s.span_id, b.call_id, b.called FROM spans s JOIN below b ON s.host IS NOT DISTINCT FROM b.host AND s.parent_id = b.span_id)
  SELECT s.host, s.span_id, s.root_id AS call_id, r.layer AS called
  FROM spans s JOIN (FROM v_own WHERE parent_id IS NULL) r ON s.host IS NOT DISTINCT FROM r.host AND s.root_id = r.span_id
  UNION ALL
  FROM below;

-- Calls that the program itself asked bytes of: its own reads and writes, and where such a call (or one that submits operations)
-- has no known bytes, the first calls below it that do. Of calls that copy, their halves that read as well.
CREATE OR REPLACE VIEW v_asked AS
  WITH RECURSIVE opaque AS (
    SELECT host, span_id FROM v_own
    WHERE op IN ('io_submit', 'io_uring_enter') OR
          (kind IN ('read', 'write') AND coalesce(req_bytes, bytes) IS NULL AND errno = 0)
    UNION ALL
    SELECT s.host, s.span_id FROM spans s JOIN opaque o ON s.host IS NOT DISTINCT FROM o.host AND s.parent_id = o.span_id
    WHERE (s.layer = 'app' AND s.kind = 'other') OR s.op IN ('io_submit', 'io_uring_enter')
       OR (s.kind IN ('read', 'write') AND coalesce(s.req_bytes, s.bytes) IS NULL AND s.errno = 0)),
       calls AS (
    SELECT *, coalesce(req_bytes, bytes) AS asked FROM v_own WHERE kind IN ('read', 'write')
    UNION ALL
    SELECT s.*, coalesce(s.req_bytes, s.bytes)
    FROM spans s JOIN opaque o ON s.host IS NOT DISTINCT FROM o.host AND s.parent_id = o.span_id
    WHERE s.kind IN ('read', 'write') AND coalesce(s.req_bytes, s.bytes) IS NOT NULL)
  FROM calls
  UNION ALL
  SELECT s.*, coalesce(s.req_bytes, s.bytes)
  FROM spans s JOIN calls c ON s.host IS NOT DISTINCT FROM c.host AND s.parent_id = c.span_id
  WHERE s.op IN ('copy_file_range.read', 'sendfile.read', 'splice.read', 'tee.read');

-- What was asked and what each layer made of it, read and write apart. A device request counts once;
-- requests are those of the whole node, for those of traced calls see the next view.
CREATE OR REPLACE VIEW v_amplification AS
  WITH parts AS (
    SELECT 0 AS step, 'asked' AS layer, kind, count(*) AS calls, sum(asked) AS bytes,
           count(*) FILTER (asked IS NULL AND errno = 0) AS unknown_calls
    FROM v_asked GROUP BY kind
    UNION ALL
    SELECT 0, 'asked', kind, sum(calls), sum(req_bytes), 0 FROM demoted_calls GROUP BY kind
    UNION ALL
    SELECT layer_rank(layer), layer, kind, count(*), sum(bytes), count(*) FILTER (bytes IS NULL AND errno = 0)
    FROM spans WHERE layer_top AND kind IN ('read', 'write') GROUP BY layer, kind
    UNION ALL
    SELECT layer_rank(layer), layer, kind, sum(calls), sum(bytes), 0 FROM demoted_calls GROUP BY layer, kind),
  steps AS (
    SELECT step, layer, kind, sum(calls)::BIGINT AS calls, sum(bytes) AS bytes, sum(unknown_calls)::BIGINT AS unknown_calls
    FROM parts GROUP BY step, layer, kind
    UNION ALL
    SELECT 11, 'block', op, count(*), sum(CASE WHEN status = 0 THEN bytes ELSE 0 END), 0
    FROM block WHERE op IN ('read', 'write') AND upper_dev IS NULL AND status IS NOT NULL GROUP BY op)
  SELECT kind, layer, calls, bytes, unknown_calls,
         bytes / nullif(max(bytes) FILTER (layer = 'asked') OVER (PARTITION BY kind), 0)::DOUBLE AS to_asked
  FROM steps ORDER BY kind, step;

-- The same by the layer that the program called: what was asked, what each layer moved inside these calls, and (as
-- layer 'block') what of it went to the device. Where the calls that wrote the data of a request are known, it counts
-- for them and not for the call that flushed it. A phase counts where it submitted a request outside of any call.
CREATE OR REPLACE VIEW v_amplification_by_called AS
  WITH inside AS (FROM v_inside),
       requests AS (SELECT l.host, l.root_id, l.span_id, l.how, l.bytes, b.op,
                           bool_or(l.how = 'writeback') OVER (PARTITION BY l.host, l.req_id) AS written
                    FROM block_links l JOIN block b USING (host, req_id)
                    WHERE b.op IN ('read', 'write') AND b.status = 0 AND b.upper_dev IS NULL),
       -- The root of a call whose span is missing is known.
       linked AS (SELECT r.*, coalesce(i.called, root.called, s.layer) AS called FROM requests r
                  LEFT JOIN inside i ON i.host IS NOT DISTINCT FROM r.host AND i.span_id = r.span_id
                  LEFT JOIN inside root ON root.host IS NOT DISTINCT FROM r.host AND root.span_id = r.root_id
                  LEFT JOIN spans s ON s.host IS NOT DISTINCT FROM r.host AND s.span_id = r.span_id),
       -- Whether the program or a library called a demoted function is not known: it counts for the program.
       parts AS (
         SELECT called, 0 AS step, 'asked' AS layer, kind, count(*) AS calls, sum(asked) AS bytes,
                count(*) FILTER (asked IS NULL AND errno = 0) AS unknown_calls
         FROM v_asked JOIN inside USING (host, span_id) GROUP BY called, kind
         UNION ALL
         SELECT layer, 0, 'asked', kind, sum(calls), sum(req_bytes), 0 FROM demoted_calls GROUP BY layer, kind
         UNION ALL
         SELECT layer, layer_rank(layer), layer, kind, sum(calls), sum(bytes), 0 FROM demoted_calls GROUP BY layer, kind
         UNION ALL
         SELECT called, layer_rank(layer), layer, kind, count(*), sum(bytes),
                count(*) FILTER (bytes IS NULL AND errno = 0)
         FROM spans JOIN inside USING (host, span_id) WHERE layer_top AND kind IN ('read', 'write')
         GROUP BY called, layer, kind),
       steps AS (
         SELECT called, step, layer, kind, sum(calls)::BIGINT AS calls, sum(bytes) AS bytes, sum(unknown_calls)::BIGINT AS unknown_calls
         FROM parts GROUP BY called, step, layer, kind
         UNION ALL
         SELECT called, 11, 'block', op, count(*), sum(bytes), 0
         FROM linked WHERE called IS NOT NULL AND (op = 'read' OR how = 'writeback' OR NOT written)
         GROUP BY called, op)
  SELECT kind, called, layer, calls, bytes, unknown_calls,
         bytes / nullif(max(bytes) FILTER (layer = 'asked') OVER (PARTITION BY kind, called), 0)::DOUBLE AS to_asked
  FROM steps ORDER BY kind, layer_rank(called), step;
CREATE OR REPLACE VIEW v_block_classes AS
  SELECT op, class, count(*) AS requests, sum(CASE WHEN status = 0 THEN bytes ELSE 0 END) AS bytes,
         count(*) FILTER (status <> 0) AS errors,
         sum(issue_ns - queue_ns) AS queue_ns, sum(dur_ns) AS device_ns,
         quantile_disc(dur_ns, 0.5) AS p50_ns, quantile_disc(dur_ns, 0.99) AS p99_ns, max(dur_ns) AS max_ns
  FROM block WHERE upper_dev IS NULL AND status IS NOT NULL GROUP BY op, class ORDER BY bytes DESC;

-- Devices as /sys/block/*/stat counts them, what was not over apart: of stacked ones each has its own sums.
CREATE OR REPLACE VIEW v_devices AS
  WITH owned AS (SELECT host, req_id, sum(bytes) FILTER (known_by <> 'none') AS known FROM block_bytes
                 GROUP BY host, req_id),
       requests AS (SELECT *, CASE WHEN status IS NULL THEN 'unfinished' ELSE op END AS what FROM block)
  SELECT host, any_value(device) AS device, dev, any_value(upper_dev) AS upper_dev,
         count(*) FILTER (what = 'read') AS reads, sum(bytes) FILTER (what = 'read') AS bytes_read,
         sum(merges) FILTER (what = 'read') AS reads_merged,
         count(*) FILTER (what = 'write') AS writes, sum(bytes) FILTER (what = 'write') AS bytes_written,
         sum(merges) FILTER (what = 'write') AS writes_merged,
         count(*) FILTER (what = 'flush') AS flushes, count(*) FILTER (what = 'discard') AS discards,
         sum(known) FILTER (what = 'write') AS bytes_written_known,
         sum(splits) AS splits, sum(issue_ns - queue_ns) AS queue_ns, sum(dur_ns) AS device_ns,
         quantile_disc(dur_ns, 0.99) AS p99_ns, max(qdepth) AS max_qdepth,
         count(*) FILTER (status <> 0) AS errors, count(*) FILTER (what = 'unfinished') AS unfinished
  FROM requests LEFT JOIN owned USING (host, req_id) GROUP BY host, dev ORDER BY host, dev;

-- Files, layer by layer. Seven digits of p99_ns: the durations of all calls are in memory for it.
CREATE OR REPLACE VIEW v_files AS
  WITH recorded AS (
    SELECT s.host, s.file_id, s.layer, count(*) AS calls, sum(s.layer_ns) AS time_ns,
           sum(s.bytes) FILTER (s.kind = 'read') AS bytes_read, sum(s.bytes) FILTER (s.kind = 'write') AS bytes_written,
           count(*) FILTER (s.kind = 'read') AS reads, count(*) FILTER (s.kind = 'write') AS writes,
           count(*) FILTER (s.kind = 'open') AS opens, count(*) FILTER (s.kind = 'meta') AS metas,
           count(*) FILTER (s.kind = 'sync') AS syncs, count(*) FILTER (s.errno <> 0) AS errors,
           CAST(quantile_disc(CAST(s.net_ns AS FLOAT), 0.99) AS BIGINT) AS p99_ns
    FROM spans s
    WHERE s.layer_top AND s.file_id IS NOT NULL GROUP BY s.host, s.file_id, s.layer),
  more AS (
    SELECT host, file_id, layer, sum(calls) AS calls,
           sum(bytes) FILTER (kind = 'read') AS bytes_read, sum(bytes) FILTER (kind = 'write') AS bytes_written,
           coalesce(sum(calls) FILTER (kind = 'read'), 0) AS reads, coalesce(sum(calls) FILTER (kind = 'write'), 0) AS writes
    FROM demoted_calls WHERE file_id IS NOT NULL GROUP BY host, file_id, layer)
  SELECT t.host, t.file_id, f.path, t.layer, (t.calls + coalesce(m.calls, 0))::BIGINT AS calls, t.time_ns,
         CASE WHEN m.bytes_read IS NULL THEN t.bytes_read ELSE coalesce(t.bytes_read, 0) + m.bytes_read END AS bytes_read,
         CASE WHEN m.bytes_written IS NULL THEN t.bytes_written ELSE coalesce(t.bytes_written, 0) + m.bytes_written END
           AS bytes_written,
         (t.reads + coalesce(m.reads, 0))::BIGINT AS reads, (t.writes + coalesce(m.writes, 0))::BIGINT AS writes, t.opens, t.metas, t.syncs, t.errors,
         t.p99_ns
  FROM recorded t LEFT JOIN more m ON m.host IS NOT DISTINCT FROM t.host AND m.file_id = t.file_id AND m.layer = t.layer
       LEFT JOIN files f ON f.host IS NOT DISTINCT FROM t.host AND f.file_id = t.file_id
  ORDER BY t.time_ns DESC;

-- Failed look-ups: system calls that named a path and failed, by the directory that it is in and the error number.
CREATE OR REPLACE VIEW v_failed_lookups AS
  SELECT s.host,
         CASE WHEN p.path LIKE '%/%' THEN coalesce(nullif(regexp_replace(p.path, '/[^/]*$', ''), ''), '/') END AS directory,
         s.errno, count(*) AS calls, count(DISTINCT s.path_id) AS paths, sum(s.net_ns) AS time_ns
  FROM spans s LEFT JOIN paths p ON p.host IS NOT DISTINCT FROM s.host AND p.path_id = s.path_id
  WHERE s.layer = 'syscall' AND s.errno <> 0 AND s.path_id IS NOT NULL GROUP BY 1, 2, 3 ORDER BY calls DESC, 1, 2, 3;

-- Bandwidth per file, process and direction in system calls: total, number, max, min, mean, deviation over the calls.
CREATE OR REPLACE VIEW v_bandwidth AS
  SELECT s.host, s.file_id, any_value(f.path) AS path, s.process_ix, any_value(p.command) AS command, s.kind, sum(bytes) AS bytes,
         count(*) AS samples, max(bytes) AS max_bytes, min(bytes) AS min_bytes, avg(bytes) AS mean_bytes,
         stddev_samp(bytes) AS stddev_bytes, max(bytes * 1e9 / greatest(net_ns, 1)) AS max_bps, min(bytes * 1e9 / greatest(net_ns, 1)) AS min_bps,
         avg(bytes * 1e9 / greatest(net_ns, 1)) AS mean_bps, stddev_samp(bytes * 1e9 / greatest(net_ns, 1)) AS stddev_bps
  FROM spans s LEFT JOIN files f ON f.host IS NOT DISTINCT FROM s.host AND f.file_id = s.file_id
       LEFT JOIN v_commands p ON p.host IS NOT DISTINCT FROM s.host AND p.process_ix = s.process_ix
  WHERE layer = 'syscall' AND layer_top AND kind IN ('read', 'write') AND bytes > 0
  GROUP BY s.host, s.file_id, s.process_ix, s.kind ORDER BY bytes DESC;

-- Ranks (or processes without one), layer by layer.
CREATE OR REPLACE VIEW v_ranks AS
  WITH calls AS (
    SELECT host, process_ix, pid, rank, layer, CASE WHEN layer_top THEN 1 ELSE 0 END AS calls, 0 AS own_calls,
           CASE WHEN layer_top AND kind = 'read' THEN bytes END AS bytes_read,
           CASE WHEN layer_top AND kind = 'write' THEN bytes END AS bytes_written,
           CASE WHEN layer_top THEN layer_ns END AS inclusive_ns, self_ns AS exclusive_ns, 0 AS own_inclusive_ns, 0 AS own_bytes
    FROM spans
    UNION ALL
    -- The program's own calls once more: to find each among all calls, a join would have all of them in memory.
    SELECT host, process_ix, pid, rank, layer, 0, 1, NULL, NULL, NULL, 0, layer_ns, CASE WHEN kind IN ('read', 'write') THEN bytes END
    FROM v_own
    UNION ALL
    SELECT host, process_ix, pid, rank, layer, calls, calls, CASE WHEN kind = 'read' THEN bytes END,
           CASE WHEN kind = 'write' THEN bytes END, 0, 0, 0, 0
    FROM demoted_calls),
  sums AS (
    SELECT host, process_ix, pid, rank, layer, sum(calls) AS calls, sum(own_calls) AS own_calls, sum(bytes_read) AS bytes_read,
           sum(bytes_written) AS bytes_written, sum(inclusive_ns) AS inclusive_ns, sum(exclusive_ns) AS exclusive_ns,
           sum(own_inclusive_ns) AS own_inclusive_ns, sum(own_bytes) AS own_bytes
    FROM calls GROUP BY host, process_ix, pid, rank, layer)
  SELECT coalesce(p.rank, s.rank) AS rank, CASE WHEN coalesce(p.rank, s.rank) IS NULL THEN s.process_ix END AS process_ix,
         CASE WHEN coalesce(p.rank, s.rank) IS NULL THEN s.host END AS host, list_sort(list(DISTINCT s.pid)) AS pids,
         min(p.command) AS command, s.layer,
         sum(s.calls)::BIGINT AS calls, sum(s.own_calls)::BIGINT AS own_calls,
         coalesce(sum(s.bytes_read), 0) AS bytes_read, coalesce(sum(s.bytes_written), 0) AS bytes_written,
         coalesce(sum(s.inclusive_ns), 0) AS inclusive_ns, sum(s.exclusive_ns) AS exclusive_ns,
         coalesce(sum(s.own_inclusive_ns), 0) AS own_inclusive_ns, coalesce(sum(s.own_bytes), 0) AS own_bytes
  FROM sums s LEFT JOIN v_commands p ON p.host IS NOT DISTINCT FROM s.host AND p.process_ix = s.process_ix
  GROUP BY 1, 2, 3, 6 ORDER BY 1, 3, 2, layer_rank(s.layer);

-- How unevenly ranks share the time and the bytes of a layer; 1 is even. 'all' is the time in the calls that the
-- program made itself, and their bytes. Processes without a rank have no part in it: they have no reason to do the
-- same.
CREATE OR REPLACE VIEW v_imbalance AS
  WITH ranks AS (FROM v_ranks WHERE rank IS NOT NULL),
       everyone AS (SELECT count(DISTINCT rank) AS n FROM ranks),
       parts AS (SELECT layer, rank, exclusive_ns AS ns, bytes_read + bytes_written AS bytes FROM ranks
                 UNION ALL
                 SELECT 'all', rank, sum(own_inclusive_ns), sum(own_bytes) FROM ranks GROUP BY rank)
  SELECT layer, max(ns) AS max_ns, sum(ns) / any_value(n)::DOUBLE AS mean_ns,
         max(ns) * any_value(n) / nullif(sum(ns), 0)::DOUBLE AS time_max_to_mean,
         max(bytes) * any_value(n) / nullif(sum(bytes), 0)::DOUBLE AS bytes_max_to_mean,
         arg_max(rank, (ns, -rank)) AS slowest
  FROM parts, everyone WHERE n > 1 GROUP BY layer ORDER BY coalesce(layer_rank(layer), 0);

-- What happens inside phases, on the same thread: of each phase a line for each layer, with its outermost calls. Phases in
-- phases: each call counts for all of them, and once for each name.
CREATE OR REPLACE VIEW v_phases AS
  WITH RECURSIVE inside AS (
    SELECT host, span_id AS phase_id, op AS phase, span_id, op, layer, kind, false AS in_app
    FROM spans WHERE layer = 'app' AND kind = 'other'
    UNION ALL
    -- in_app: between the phase and the span there is a call of layer app that is no phase.
    SELECT i.host, i.phase_id, i.phase, s.span_id, s.op, s.layer, s.kind, i.in_app OR (i.layer = 'app' AND i.kind <> 'other')
    FROM spans s JOIN inside i ON s.host IS NOT DISTINCT FROM i.host AND s.parent_id = i.span_id),
  nested AS (SELECT host, span_id FROM inside
             WHERE span_id <> phase_id AND op = phase AND layer = 'app' AND kind = 'other'),
  phases AS (SELECT op AS phase, count(*) AS calls, count(*) FILTER (flags & 64 <> 0) AS unfinished_calls,
                    coalesce(sum(net_ns) FILTER (n.span_id IS NULL), 0) AS inclusive_ns,
                    sum(self_ns) AS exclusive_ns
             FROM spans s LEFT JOIN (SELECT DISTINCT host, span_id FROM nested) n ON n.host IS NOT DISTINCT FROM s.host AND n.span_id = s.span_id
             WHERE layer = 'app' AND kind = 'other' GROUP BY op),
  held AS (SELECT phase, host, span_id, bool_and(in_app) AS in_app FROM inside
           WHERE layer <> 'app' OR kind <> 'other' GROUP BY phase, host, span_id),
  layers AS (SELECT h.phase, s.layer, count(*) AS layer_calls,
                    sum(s.bytes) FILTER (s.kind = 'read') AS bytes_read, sum(s.bytes) FILTER (s.kind = 'write') AS bytes_written,
                    count(*) FILTER (s.kind IN ('read', 'write') AND s.bytes IS NULL AND s.errno = 0) AS unknown_calls,
                    sum(s.layer_ns) AS time_ns
             FROM held h JOIN spans s USING (host, span_id) WHERE s.layer_top OR (s.layer = 'app' AND NOT h.in_app)
             GROUP BY h.phase, s.layer)
  SELECT p.phase AS op, calls, unfinished_calls, inclusive_ns, exclusive_ns,
         layer, layer_calls, bytes_read, bytes_written, unknown_calls, time_ns
  FROM phases p LEFT JOIN layers l ON l.phase = p.phase ORDER BY inclusive_ns DESC, op, layer_rank(layer);

-- The slowest calls of the program, with the call below them that kept the most time for itself. What is over later, such as an
-- operation that a call submitted, is not inside it.
CREATE OR REPLACE VIEW v_slowest AS
  WITH RECURSIVE
       calls AS (SELECT host, span_id, parent_id, layer, op, net_ns, start_ns, dur_ns, pid, tid, rank, bytes, errno, file_id, object_id, process_ix
                 FROM v_own WHERE flags & 4 = 0 ORDER BY net_ns DESC, host, span_id LIMIT 50),
       -- What is inside these, as v_inside has it of all: that of each call of a long run would not fit into memory.
       below AS (SELECT s.host, s.span_id, s.span_id AS call_id, s.op, s.layer, s.self_ns, s.start_ns, s.dur_ns
                 FROM spans s JOIN calls c ON c.host IS NOT DISTINCT FROM s.host AND c.span_id = s.span_id WHERE c.parent_id IS NOT NULL
                 UNION ALL
                 SELECT s.host, s.span_id, b.call_id, s.op, s.layer, s.self_ns, s.start_ns, s.dur_ns
                 FROM spans s JOIN below b ON b.host IS NOT DISTINCT FROM s.host AND b.span_id = s.parent_id),
       inside AS (SELECT s.host, s.span_id, c.span_id AS call_id, s.op, s.layer, s.self_ns, s.start_ns, s.dur_ns
                  FROM spans s JOIN calls c ON c.host IS NOT DISTINCT FROM s.host AND c.span_id = s.root_id WHERE c.parent_id IS NULL
                  UNION ALL
                  FROM below)
  SELECT r.host, r.span_id AS root_id, r.layer, r.op, r.net_ns, r.start_ns, r.pid, r.tid, r.rank, r.bytes, r.errno,
         any_value(f.path) AS path, any_value(o.name) AS object, any_value(p.command) AS command, count(*) AS calls, arg_max(s.op, (s.self_ns, -s.span_id)) AS worst_op,
         arg_max(s.layer, (s.self_ns, -s.span_id)) AS worst_layer,
         max(s.self_ns) / nullif(r.net_ns, 0)::DOUBLE AS worst_share
  FROM calls r JOIN inside s ON s.host IS NOT DISTINCT FROM r.host AND s.call_id = r.span_id
       LEFT JOIN files f ON f.host IS NOT DISTINCT FROM r.host AND f.file_id = r.file_id
       LEFT JOIN objects o ON o.host IS NOT DISTINCT FROM r.host AND o.object_id = r.object_id
       LEFT JOIN v_commands p ON p.host IS NOT DISTINCT FROM r.host AND p.process_ix = r.process_ix
  WHERE s.start_ns + s.dur_ns <= r.start_ns + r.dur_ns
  GROUP BY r.host, r.span_id, r.layer, r.op, r.net_ns, r.start_ns, r.pid, r.tid, r.rank, r.bytes, r.errno
  ORDER BY r.net_ns DESC, r.host, r.span_id;

-- One call down to the device: FROM call_tree(SPAN_ID), of several nodes: call_tree(SPAN_ID, HOST). What is inside it is of the same thread, later and over sooner.
CREATE OR REPLACE MACRO call_tree(call_id, node := NULL) AS TABLE
  WITH top AS (FROM spans WHERE span_id = call_id AND (node IS NULL OR host = node)),
       tree AS (SELECT s.*, s.depth - top.depth AS level FROM spans s, top
                WHERE s.host IS NOT DISTINCT FROM top.host AND s.root_id = top.root_id AND s.span_id >> 33 = top.span_id >> 33 AND s.span_id >= top.span_id
                  AND s.start_ns + s.dur_ns <= top.start_ns + top.dur_ns)
  SELECT repeat('  ', level) || op AS call, layer, start_ns, dur_ns, self_ns, bytes, "offset", errno, span_id
  FROM tree
  UNION ALL
  SELECT 'block ' || b.op || ' ' || b.class || ' (' || l.how || ')', 'block', b.issue_ns, b.dur_ns, NULL, l.bytes,
         NULL, b.status, l.span_id
  FROM block_links l JOIN block b USING (host, req_id)
  WHERE (node IS NULL OR host = node) AND (l.root_id = call_id OR l.span_id IN (SELECT span_id FROM tree))
  ORDER BY start_ns, span_id;

-- Every call of the program with the system calls and device bytes it led to.
CREATE OR REPLACE VIEW v_calls_to_device AS
  WITH inside AS (FROM v_inside),
       below AS (SELECT host, call_id, count(*) AS n, sum(bytes) FILTER (kind IN ('read', 'write')) AS b
                 FROM spans JOIN inside USING (host, span_id) WHERE layer = 'syscall' AND layer_top GROUP BY host, call_id),
       -- A request is linked to the call that submitted it and to those that wrote its data: it counts once.
       requests AS (SELECT host, coalesce(i.call_id, l.root_id) AS call_id, req_id,
                           greatest(sum(l.bytes) FILTER (how = 'writeback'), sum(l.bytes) FILTER (how <> 'writeback')) AS b
                    FROM block_links l JOIN block b USING (host, req_id) LEFT JOIN inside i USING (host, span_id)
                    WHERE b.upper_dev IS NULL AND l.how <> 'discard' GROUP BY 1, 2, req_id),
       device AS (SELECT host, call_id, count(*) AS n, sum(b) AS b FROM requests GROUP BY host, call_id)
  SELECT r.layer, r.op, count(*) AS calls, sum(r.bytes) AS bytes, sum(below.n) AS syscalls, sum(below.b) AS syscall_bytes,
         sum(device.n) AS requests, sum(device.b) AS device_bytes
  FROM v_own r LEFT JOIN below ON below.host IS NOT DISTINCT FROM r.host AND below.call_id = r.span_id
       LEFT JOIN device ON device.host IS NOT DISTINCT FROM r.host AND device.call_id = r.span_id
  GROUP BY r.layer, r.op ORDER BY calls DESC;

-- What servers (traced FUSE daemons, NFS) did for clients: a line for each call of the server that served a request, and the
-- call of the client that the request is part of. WHERE client_span_id = SPAN_ID: what was done elsewhere for one call.
CREATE OR REPLACE VIEW v_rpc AS
  SELECT r.host, r.client_span_id, c.op AS client_op, c.pid AS client_pid, c.dur_ns AS client_ns, f.path,
         r.rpc_id, r.protocol, r.op AS request, r."offset", r.req_bytes, r.bytes, r.errno, r.received_ns, r.dur_ns AS served_ns,
         r.server_pid, s.span_id AS server_span_id, s.layer AS server_layer, s.op AS server_op, s."offset" AS server_offset,
         s.bytes AS server_bytes, s.dur_ns AS server_ns, s.errno AS server_errno, s.file_id AS server_file_id
  FROM rpc r LEFT JOIN spans c ON c.host IS NOT DISTINCT FROM r.host AND c.span_id = r.client_span_id
       LEFT JOIN files f ON f.host IS NOT DISTINCT FROM c.host AND f.file_id = c.file_id
       -- As a range, the host too: an equality would be the key of the join, and pair all rows of a host.
       LEFT JOIN spans s ON s.span_id BETWEEN r.first_span_id AND r.last_span_id AND s.host >= r.host AND s.host <= r.host
  ORDER BY r.host, r.rpc_id, s.span_id;

-- Time and bytes of system calls by server of a remote file system, and direction: where one of several servers or targets is
-- slower than the others. remote_ns is what they slept for its replies.
CREATE OR REPLACE VIEW v_servers AS
  SELECT s.host, m.server, m.fstype, m.path AS mount, s.kind, count(*) AS calls, coalesce(sum(s.bytes), 0)::BIGINT AS bytes,
         sum(s.net_ns)::BIGINT AS time_ns, coalesce(sum(s.remote_ns), 0)::BIGINT AS remote_ns, max(s.net_ns) AS max_ns,
         count(DISTINCT s.file_id) AS files
  FROM spans s JOIN files f ON f.host IS NOT DISTINCT FROM s.host AND f.file_id = s.file_id
       JOIN mounts m ON m.host IS NOT DISTINCT FROM s.host AND m.mount_id = f.mount_id
  WHERE s.layer = 'syscall' AND s.layer_top AND m.server IS NOT NULL
  GROUP BY s.host, m.server, m.fstype, m.path, s.kind ORDER BY time_ns DESC, s.host, m.server, m.path, s.kind;

-- How far the clocks of nodes are apart: what to add to the wall clock of each to get that of the first one that met another.
-- No rank leaves an open before all are in it, which bounds the offset from both sides; wall clocks are taken where they are
-- inside. Two runs of one program may have the same ids: where nodes do not have an id equally often, which is which is not known.
CREATE OR REPLACE VIEW v_clocks AS
  WITH opens AS (SELECT s.host, s.coll_id, coalesce(s.rank, -1 - s.process_ix) AS member,
                        s.start_ns + d.t0_wall_ns AS came, s.start_ns + s.dur_ns + d.t0_wall_ns AS went
                 FROM (SELECT *, regexp_replace(filename, '[^/]*$', '') AS dir
                       FROM read_parquet(parts('spans'), union_by_name = true, filename = true)
                       WHERE op = 'MPI_File_open' AND coll_id IS NOT NULL AND errno = 0 AND flags & 64 = 0) s JOIN datasets d USING (dir)),
       runs AS (SELECT *, row_number() OVER (PARTITION BY host, coll_id, member ORDER BY came) AS run,
                       count(*) OVER (PARTITION BY host, coll_id, member) AS times FROM opens),
       even AS (SELECT host, coll_id, min(times) AS times FROM runs GROUP BY host, coll_id HAVING min(times) = max(times)),
       stays AS (SELECT host, coll_id, times, run, max(came) AS came, min(went) AS went
                 FROM runs JOIN even USING (host, coll_id, times) GROUP BY host, coll_id, times, run),
       shared AS (SELECT coll_id, times, run, min(host) AS first FROM stays GROUP BY coll_id, times, run HAVING count(*) > 1),
       first AS (SELECT coalesce((SELECT min(first) FROM shared), (SELECT min(host) FROM datasets)) AS host),
       -- Each node with that one: of a thousand nodes all pairs would be a million for each call.
       bounds AS (SELECT s.host, max(r.came - s.went) AS least_ns, min(r.went - s.came) AS most_ns, count(*) AS calls
                  FROM stays r JOIN first f ON r.host = f.host JOIN stays s ON s.coll_id = r.coll_id AND s.times = r.times AND s.run = r.run
                  WHERE s.host <> r.host GROUP BY s.host)
  SELECT h.host,
         coalesce(CASE WHEN least_ns > most_ns OR (least_ns <= 0 AND most_ns >= 0) THEN 0
                       ELSE least_ns + CAST(floor((most_ns - least_ns) / 2) AS BIGINT) END, 0) AS offset_ns,
         least_ns, most_ns, coalesce(calls, 0) AS calls,
         CASE WHEN h.host IS NOT DISTINCT FROM f.host THEN 'reference' WHEN calls IS NULL THEN 'wall' WHEN least_ns > most_ns THEN 'contradiction'
              WHEN least_ns <= 0 AND most_ns >= 0 THEN 'wall' ELSE 'calls' END AS how
  FROM (SELECT DISTINCT host FROM datasets) h CROSS JOIN first f LEFT JOIN bounds b ON b.host IS NOT DISTINCT FROM h.host
  ORDER BY h.host;

-- Calls on one clock: wall_ns is the start in ns since 1970, by the clock of the node that is `reference` in v_clocks.
CREATE OR REPLACE VIEW v_spans AS
  SELECT s.* EXCLUDE (filename, dir) REPLACE (s.start_ns + d.later_ns AS start_ns), s.start_ns + d.t0_wall_ns + c.offset_ns AS wall_ns
  FROM (SELECT *, regexp_replace(filename, '[^/]*$', '') AS dir
        FROM read_parquet(parts('spans'), union_by_name = true, filename = true)) s
       JOIN datasets d ON d.dir = s.dir JOIN v_clocks c ON c.host IS NOT DISTINCT FROM s.host;

-- Collective MPI-IO calls: which rank came when, which took longest, and what of it ended in system calls of which ranks. Two runs
-- of one program have the same ids: `run` counts them.
CREATE OR REPLACE VIEW v_collectives AS
  WITH RECURSIVE
       calls AS (SELECT s.*, row_number() OVER (PARTITION BY host, coll_id, coalesce(rank, -1 - process_ix)
                                                ORDER BY wall_ns) AS run
                 FROM v_spans s WHERE coll_id IS NOT NULL),
       -- What is done while a rank waits for a non-blocking one belongs to it.
       tops AS (SELECT host, span_id AS call, span_id FROM calls
                UNION ALL
                SELECT w.host, w.async_id, w.span_id FROM spans w JOIN calls c ON c.host IS NOT DISTINCT FROM w.host AND c.span_id = w.async_id
                WHERE w.kind = 'wait' AND w.coll_id IS NULL),
       below AS (SELECT * FROM tops
                 UNION ALL
                 SELECT b.host, b.call, s.span_id FROM below b JOIN spans s ON s.host IS NOT DISTINCT FROM b.host AND s.parent_id = b.span_id),
       io AS (SELECT b.host, b.call, count(*) AS n, coalesce(sum(s.bytes), 0) AS bytes,
                     bool_or(s.file_id = c.file_id) AS aggregates
              FROM below b JOIN spans s USING (host, span_id) JOIN calls c ON c.host IS NOT DISTINCT FROM b.host AND c.span_id = b.call
              WHERE s.layer = 'syscall' AND s.kind IN ('read', 'write') GROUP BY b.host, b.call)
  SELECT c.coll_id, c.run, any_value(c.op) AS op, any_value(f.path) AS path, any_value(h.comm_size) AS comm_size,
         any_value(h.comm_ranks) AS comm_ranks, count(*) AS ranks, min(c.wall_ns) AS first_wall_ns, max(c.wall_ns) AS last_wall_ns, max(c.wall_ns) - min(c.wall_ns) AS first_waits_ns,
         arg_max(c.rank, (c.wall_ns, -c.rank)) FILTER (c.rank IS NOT NULL) AS last_rank,
         arg_max(c.rank, (c.dur_ns, -c.rank)) FILTER (c.rank IS NOT NULL) AS slowest_rank, max(c.dur_ns) AS slowest_ns,
         sum(c.req_bytes) FILTER (c.kind IN ('read', 'write')) AS asked,
         sum(c.bytes) FILTER (c.kind IN ('read', 'write')) AS moved,
         coalesce(sum(io.n), 0) AS syscalls, coalesce(sum(io.bytes), 0) AS syscall_bytes,
         count(*) FILTER (io.aggregates) AS aggregators,
         list_sort(list({rank: c.rank, syscalls: coalesce(io.n, 0), bytes: coalesce(io.bytes, 0)})) AS by_rank
  FROM calls c LEFT JOIN io ON io.host IS NOT DISTINCT FROM c.host AND io.call = c.span_id
       LEFT JOIN handles h ON h.host IS NOT DISTINCT FROM c.host AND h.handle_id = c.handle_id
       LEFT JOIN files f ON f.host IS NOT DISTINCT FROM c.host AND f.file_id = c.file_id
  GROUP BY c.coll_id, c.run ORDER BY first_wall_ns;

-- Failed calls by the name of their error; those of libraries, which have no number, are 'failed'.
CREATE OR REPLACE VIEW errno_names AS
  SELECT errno::SMALLINT AS errno, names[errno] AS error
  FROM (SELECT unnest(range(1, array_length(names) + 1)) AS errno, names FROM (SELECT [
    'EPERM', 'ENOENT', 'ESRCH', 'EINTR', 'EIO', 'ENXIO', 'E2BIG', 'ENOEXEC', 'EBADF', 'ECHILD', 'EAGAIN', 'ENOMEM',
    'EACCES', 'EFAULT', 'ENOTBLK', 'EBUSY', 'EEXIST', 'EXDEV', 'ENODEV', 'ENOTDIR', 'EISDIR', 'EINVAL', 'ENFILE',
    'EMFILE', 'ENOTTY', 'ETXTBSY', 'EFBIG', 'ENOSPC', 'ESPIPE', 'EROFS', 'EMLINK', 'EPIPE', 'EDOM', 'ERANGE',
    'EDEADLK', 'ENAMETOOLONG', 'ENOLCK', 'ENOSYS', 'ENOTEMPTY', 'ELOOP', NULL, 'ENOMSG', 'EIDRM', 'ECHRNG',
    'EL2NSYNC', 'EL3HLT', 'EL3RST', 'ELNRNG', 'EUNATCH', 'ENOCSI', 'EL2HLT', 'EBADE', 'EBADR', 'EXFULL', 'ENOANO',
    'EBADRQC', 'EBADSLT', NULL, 'EBFONT', 'ENOSTR', 'ENODATA', 'ETIME', 'ENOSR', 'ENONET', 'ENOPKG', 'EREMOTE',
    'ENOLINK', 'EADV', 'ESRMNT', 'ECOMM', 'EPROTO', 'EMULTIHOP', 'EDOTDOT', 'EBADMSG', 'EOVERFLOW', 'ENOTUNIQ',
    'EBADFD', 'EREMCHG', 'ELIBACC', 'ELIBBAD', 'ELIBSCN', 'ELIBMAX', 'ELIBEXEC', 'EILSEQ', 'ERESTART', 'ESTRPIPE',
    'EUSERS', 'ENOTSOCK', 'EDESTADDRREQ', 'EMSGSIZE', 'EPROTOTYPE', 'ENOPROTOOPT', 'EPROTONOSUPPORT',
    'ESOCKTNOSUPPORT', 'EOPNOTSUPP', 'EPFNOSUPPORT', 'EAFNOSUPPORT', 'EADDRINUSE', 'EADDRNOTAVAIL', 'ENETDOWN',
    'ENETUNREACH', 'ENETRESET', 'ECONNABORTED', 'ECONNRESET', 'ENOBUFS', 'EISCONN', 'ENOTCONN', 'ESHUTDOWN',
    'ETOOMANYREFS', 'ETIMEDOUT', 'ECONNREFUSED', 'EHOSTDOWN', 'EHOSTUNREACH', 'EALREADY', 'EINPROGRESS', 'ESTALE',
    'EUCLEAN', 'ENOTNAM', 'ENAVAIL', 'EISNAM', 'EREMOTEIO', 'EDQUOT', 'ENOMEDIUM', 'EMEDIUMTYPE', 'ECANCELED',
    'ENOKEY', 'EKEYEXPIRED', 'EKEYREVOKED', 'EKEYREJECTED', 'EOWNERDEAD', 'ENOTRECOVERABLE', 'ERFKILL', 'EHWPOISON'] AS names));
CREATE OR REPLACE VIEW v_errors AS
  SELECT c.host, c.layer, c.op, c.errno, coalesce(n.error, CASE WHEN c.errno < 0 THEN 'failed' ELSE 'errno ' || c.errno END) AS error,
         c.path, c.command, count(*) AS calls, sum(c.net_ns) AS time_ns, min(c.start_ns) AS first_ns, max(c.start_ns) AS last_ns
  FROM v_calls c LEFT JOIN errno_names n ON n.errno = c.errno
  WHERE c.errno <> 0 AND c.layer_top GROUP BY c.host, c.layer, c.op, c.errno, n.error, c.path, c.command
  ORDER BY calls DESC, c.host, c.layer, c.op, error, c.path, c.command;

-- Reads and writes of less than 4 KiB, by function and file: how many of its calls they are, and of their time.
CREATE OR REPLACE VIEW v_small_io AS
  SELECT host, file_id, any_value(path) AS path, command, layer, op, kind, count(*) AS calls,
         count(*) FILTER (bytes < 4096) AS small_calls, avg(CASE WHEN bytes < 4096 THEN 1 ELSE 0 END) AS small_share,
         sum(bytes) FILTER (bytes < 4096) AS small_bytes, sum(net_ns) FILTER (bytes < 4096) AS small_ns, sum(net_ns) AS time_ns
  FROM v_calls WHERE layer_top AND kind IN ('read', 'write') AND bytes IS NOT NULL
  GROUP BY host, file_id, command, layer, op, kind HAVING count(*) FILTER (bytes < 4096) > 0
  ORDER BY small_calls DESC, host, file_id, command, layer, op;

-- System calls that move no data: by program and function, and what part of the time of all its system calls they take.
CREATE OR REPLACE VIEW v_metadata AS
  WITH ops AS (
    SELECT host, command, kind, op, count(*) AS calls, count(*) FILTER (errno <> 0) AS errors,
           count(DISTINCT path) FILTER (kind NOT IN ('read', 'write')) AS files, sum(net_ns) AS time_ns
    FROM v_calls WHERE layer = 'syscall' AND layer_top GROUP BY host, command, kind, op),
  shares AS (
    SELECT *, time_ns / nullif(sum(time_ns) OVER (PARTITION BY host, command), 0)::DOUBLE AS share FROM ops)
  SELECT * FROM shares WHERE kind NOT IN ('read', 'write') ORDER BY time_ns DESC, host, command, op;

-- What reads found in the page cache, file by file; and how long writes waited because too much was dirty.
CREATE OR REPLACE VIEW v_page_cache AS
  SELECT host, file_id, any_value(path) AS path, count(*) FILTER (miss_bytes IS NOT NULL) AS reads,
         sum(bytes) FILTER (miss_bytes IS NOT NULL) AS bytes_read, sum(miss_bytes) AS miss_bytes, sum(ahead_bytes) AS ahead_bytes,
         count(*) FILTER (miss_bytes = 0) AS hits,
         1 - sum(miss_bytes) / nullif(sum(bytes) FILTER (miss_bytes IS NOT NULL), 0)::DOUBLE AS hit_share,
         sum(bytes) FILTER (kind = 'write' AND flags & 8 = 0) AS bytes_written, sum(throttle_ns) AS throttle_ns
  FROM v_calls WHERE layer = 'syscall' AND layer_top AND file_id IS NOT NULL
    AND (miss_bytes IS NOT NULL OR (kind = 'write' AND flags & 8 = 0))
  GROUP BY host, file_id ORDER BY miss_bytes DESC, host, file_id;

-- Which bytes of which file went to or came from which device, and how that is known. Those of no known file have none.
CREATE OR REPLACE VIEW v_file_to_device AS
  SELECT y.host, y.file_id, any_value(f.path) AS path, any_value(b.device) AS device, b.dev, b.op, b.class, y.known_by,
         count(DISTINCT b.req_id) AS requests, sum(y.bytes) AS bytes, sum(b.issue_ns - b.queue_ns) AS queue_ns, sum(b.dur_ns) AS device_ns
  FROM block_bytes y JOIN block b USING (host, req_id) LEFT JOIN files f USING (host, file_id)
  WHERE b.status = 0 GROUP BY y.host, y.file_id, b.dev, b.op, b.class, y.known_by ORDER BY bytes DESC, y.host, y.file_id, b.dev;

-- Collective calls on a file, rank by rank: those whose rank made system calls on it aggregate for the others.
CREATE OR REPLACE VIEW v_aggregators AS
  SELECT path, op, one.rank AS rank, count(*) AS collectives, count(*) FILTER (one.syscalls > 0) AS aggregated,
         sum(one.syscalls) AS syscalls, sum(one.bytes) AS bytes
  FROM (SELECT path, op, unnest(by_rank) AS one FROM v_collectives) GROUP BY path, op, one.rank ORDER BY path, op, bytes DESC, rank;

-- The same function by function and file: what system calls waited for, in parts that add up. A call of an I/O library
-- waits for other ranks where it communicates: layer mpi.
CREATE OR REPLACE VIEW v_waiting_by_file AS
  SELECT host, layer, op, path, command, count(*) AS calls, sum(net_ns) AS time_ns,
         sum(cpu_ns) AS cpu_ns, sum(runq_ns) AS runq_ns, sum(throttle_ns) AS throttle_ns, sum(lock_ns) AS
         lock_ns, sum(writeback_ns) AS writeback_ns, sum(journal_ns) AS journal_ns, sum(flush_ns) AS flush_ns,
         sum(devqueue_ns) AS devqueue_ns, sum(device_ns) AS device_ns, sum(remote_ns) AS remote_ns,
         sum(sleep_ns) AS sleep_ns
  FROM v_calls WHERE layer_top AND (layer = 'mpi' OR cpu_ns IS NOT NULL)
  GROUP BY host, layer, op, path, command ORDER BY time_ns DESC, host, layer, op, path, command;

-- Where slow calls were made (--stacks), the innermost frame first. Of calls inside each other with one stack the innermost is
-- counted.
CREATE OR REPLACE VIEW v_slow_stacks AS
  WITH taken AS (
    SELECT host, stack_id, layer, op, net_ns, dur_ns,
           row_number() OVER (PARTITION BY host, stack_id ORDER BY depth DESC, span_id) AS nth
    FROM spans WHERE stack_id IS NOT NULL)
  SELECT t.host, t.layer, t.op, s.frames, count(*) AS calls, sum(t.net_ns)::BIGINT AS time_ns, max(t.dur_ns) AS longest_ns
  FROM taken t JOIN stacks s ON s.host IS NOT DISTINCT FROM t.host AND s.stack_id = t.stack_id
  WHERE t.nth = 1
  GROUP BY t.host, t.layer, t.op, s.frames ORDER BY time_ns DESC, t.host, t.layer, t.op;

-- Functions against earlier runs (--baseline): outermost calls by class, how long as many took in earlier runs, and the most
-- calls of the function in any of the last runs. Of those like which there were enough: all but the numbers of calls. unusual:
-- more than a tenth are very slow, or very fast, where a hundredth is usual; more than twice as many calls.
CREATE OR REPLACE VIEW v_speed AS
  WITH compared AS (
    SELECT layer, op, count(*) AS calls, count(speed) AS compared, coalesce(sum(net_ns) FILTER (speed IS NOT NULL), 0)::BIGINT AS time_ns,
           coalesce(sum(usual_ns), 0)::BIGINT AS usual_ns,
           count(*) FILTER (speed = 'very slow') AS very_slow_calls, coalesce(sum(net_ns) FILTER (speed = 'very slow'), 0)::BIGINT AS very_slow_ns,
           count(*) FILTER (speed = 'slow') AS slow_calls, coalesce(sum(net_ns) FILTER (speed = 'slow'), 0)::BIGINT AS slow_ns,
           count(*) FILTER (speed = 'normal') AS normal_calls, coalesce(sum(net_ns) FILTER (speed = 'normal'), 0)::BIGINT AS normal_ns,
           count(*) FILTER (speed = 'fast') AS fast_calls, coalesce(sum(net_ns) FILTER (speed = 'fast'), 0)::BIGINT AS fast_ns,
           count(*) FILTER (speed = 'very fast') AS very_fast_calls, coalesce(sum(net_ns) FILTER (speed = 'very fast'), 0)::BIGINT AS very_fast_ns
    FROM spans WHERE layer_top AND layer <> 'app' AND flags & 576 = 0 GROUP BY layer, op),
  earlier AS (SELECT label, sum(value)::BIGINT AS earlier_calls FROM metrics WHERE name = 'earlier_calls' GROUP BY label)
  SELECT c.layer, c.op, c.calls, e.earlier_calls, c.compared, c.time_ns, c.usual_ns, c.time_ns - c.usual_ns AS extra_ns,
         c.very_slow_calls, c.very_slow_ns, c.slow_calls, c.slow_ns, c.normal_calls, c.normal_ns, c.fast_calls, c.fast_ns,
         c.very_fast_calls, c.very_fast_ns,
         concat_ws(', ', CASE WHEN c.very_slow_calls > 2 AND 10 * c.very_slow_calls > c.compared THEN 'slow' END,
                   CASE WHEN c.very_fast_calls > 2 AND 10 * c.very_fast_calls > c.compared THEN 'fast' END,
                   CASE WHEN c.calls > 2 * e.earlier_calls THEN 'many' END) AS unusual
  FROM compared c LEFT JOIN earlier e ON e.label = c.layer || ' ' || c.op
  WHERE c.compared > 0 OR e.earlier_calls IS NOT NULL
  ORDER BY abs(c.time_ns - c.usual_ns) DESC, layer_rank(c.layer), c.op;

-- How long each layer takes the program (IOPro's composition): times of parts one after the other are added, of parts
-- side by side the longest counts, and throughputs of parts side by side are added. Parts are what one thread does in a
-- layer, each moment once, and what one device does. A collective call is one operation of all ranks, which ends for
-- all when its last part does: such operations come one after the other. Others belong to one thread each: their times
-- are added before the longest counts.
CREATE OR REPLACE VIEW v_composition AS
  WITH numbered AS (
         SELECT *, row_number() OVER (PARTITION BY host, coll_id, coalesce(rank, -1 - process_ix) ORDER BY start_ns) AS run FROM v_own),
       calls AS (
         SELECT host, span_id AS call_id, layer AS called, op, coll_id IS NOT NULL AS collective, coll_id,
                CASE WHEN coll_id IS NULL THEN 0 ELSE run END AS run FROM numbered),
       inside AS (SELECT host, span_id, call_id FROM v_inside WHERE span_id >> 33 = call_id >> 33),
       times AS (
         SELECT c.called, c.op, c.collective, c.coll_id, c.run, s.layer, s.host, s.span_id >> 33 AS part, s.start_ns AS s,
                s.start_ns + s.net_ns AS e, CASE WHEN s.kind IN ('read', 'write') THEN s.bytes END AS bytes
         FROM spans s JOIN inside i ON i.host IS NOT DISTINCT FROM s.host AND i.span_id = s.span_id
              JOIN calls c ON c.host IS NOT DISTINCT FROM i.host AND c.call_id = i.call_id
         WHERE s.layer_top
         UNION ALL
         SELECT c.called, c.op, c.collective, c.coll_id, c.run, 'block', b.host, b.dev::BIGINT, b.issue_ns, b.issue_ns + b.dur_ns, l.bytes
         FROM block_links l JOIN block b ON b.host IS NOT DISTINCT FROM l.host AND b.req_id = l.req_id
              JOIN inside i ON i.host IS NOT DISTINCT FROM l.host AND i.span_id = l.span_id
              JOIN calls c ON c.host IS NOT DISTINCT FROM i.host AND c.call_id = i.call_id
         WHERE b.upper_dev IS NULL AND b.status = 0 AND l.how <> 'writeback' AND b.op IN ('read', 'write')),
       seen AS (
         SELECT *, max(e) OVER (PARTITION BY called, op, collective, coll_id, run, layer, host, part ORDER BY s, e
                                ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) AS until FROM times),
       parts AS (
         SELECT called, op, collective, coll_id, run, layer, host, part, count(*) AS calls, coalesce(sum(bytes), 0) AS bytes,
                sum(greatest(0, e - greatest(s, coalesce(until, s)))) AS ns
         FROM seen GROUP BY called, op, collective, coll_id, run, layer, host, part),
       operations AS (
         SELECT called, op, collective, coll_id, run, layer, max(ns) AS latency_ns, count(*) AS parts
         FROM parts GROUP BY called, op, collective, coll_id, run, layer),
       latency AS (
         SELECT called, op, collective, layer, sum(latency_ns) AS latency_ns, max(parts) AS parts
         FROM operations GROUP BY called, op, collective, layer),
       sides AS (
         SELECT called, op, collective, layer, host, part, sum(calls) AS calls, sum(bytes) AS bytes, sum(ns) AS ns
         FROM parts GROUP BY called, op, collective, layer, host, part),
       sums AS (
         SELECT called, op, collective, layer, sum(calls) AS calls, sum(bytes) AS bytes, sum(ns) AS added_ns,
                sum(bytes * 1e9 / nullif(ns, 0)) AS throughput_bps
         FROM sides GROUP BY called, op, collective, layer)
  SELECT s.called, s.op, s.collective, s.layer, s.calls::BIGINT AS calls, l.parts, l.latency_ns::BIGINT AS latency_ns,
         s.added_ns::BIGINT AS added_ns, s.bytes::BIGINT AS bytes, s.throughput_bps
  FROM sums s JOIN latency l ON l.called = s.called AND l.op = s.op AND l.collective = s.collective AND l.layer = s.layer
  ORDER BY layer_rank(s.called), s.op, s.collective, layer_rank(s.layer);

-- Reads and writes by size, in Darshan's classes as in section `sizes` of the report: at_most is the most bytes of a class, null of
-- the last. Bytes and time are of calls that were recorded one by one.
CREATE OR REPLACE VIEW v_sizes AS
  WITH sized AS (
    SELECT layer, kind,
           CASE WHEN bytes <= 100 THEN 1 WHEN bytes <= 1024 THEN 2 WHEN bytes <= 10240 THEN 3 WHEN bytes <= 102400 THEN 4
                WHEN bytes <= 1048576 THEN 5 WHEN bytes <= 4194304 THEN 6 WHEN bytes <= 10485760 THEN 7
                WHEN bytes <= 104857600 THEN 8 WHEN bytes <= 1073741824 THEN 9 ELSE 10 END AS class,
           1 AS calls, bytes, layer_ns AS time_ns
    FROM spans WHERE layer_top AND kind IN ('read', 'write') AND bytes >= 0 AND flags & 512 = 0
    UNION ALL
    SELECT layer, kind, class, sizes[class], NULL, NULL FROM file_rollup, (SELECT unnest(range(1, 11)) AS class)
    WHERE kind IN ('read', 'write') AND layer <> 'block')
  SELECT layer, kind, [100, 1024, 10240, 102400, 1048576, 4194304, 10485760, 104857600, 1073741824, NULL][class] AS at_most,
         sum(calls)::BIGINT AS calls, sum(bytes) AS bytes, sum(time_ns) AS time_ns
  FROM sized GROUP BY layer, kind, class HAVING sum(calls) > 0 ORDER BY layer_rank(layer), kind, class;

-- Of the reads, and of the writes, of a file in system calls: how many begin behind the last byte of the one before by the same
-- process (sequential), and right behind it (consecutive). As Darshan counts: the last byte of what was never touched is its first one.
-- Jumps are those that begin elsewhere, forwards or backwards: short ones up to 128 KiB from there, as v_handle_pattern has them.
CREATE OR REPLACE VIEW v_sequential AS
  WITH steps AS (
    SELECT host, file_id, kind, start_ns - lag(start_ns) OVER w AS gap, "offset",
           coalesce(lag("offset" + bytes - 1) OVER w, 0) AS last, coalesce("offset" - lag("offset" + bytes) OVER w, 0) AS jump
    FROM spans WHERE layer = 'syscall' AND layer_top AND kind IN ('read', 'write') AND bytes > 0 AND "offset" IS NOT NULL
    WINDOW w AS (PARTITION BY host, process_ix, file_id, kind ORDER BY start_ns + dur_ns, span_id))
  SELECT s.host, s.file_id, any_value(f.path) AS path, s.kind, count(*) AS accesses, median(gap) AS median_gap_ns,
         avg(("offset" > last)::INT) AS sequential, avg(("offset" = last + 1)::INT) AS consecutive,
         avg((jump <> 0 AND abs(jump) <= 131072)::INT) AS short_jumps, avg((abs(jump) > 131072)::INT) AS long_jumps
  FROM steps s LEFT JOIN files f ON f.host IS NOT DISTINCT FROM s.host AND f.file_id = s.file_id
  GROUP BY s.host, s.file_id, s.kind ORDER BY accesses DESC;

-- How each handle was read and written, as Darshan defines it: an access is consecutive when it begins where the last one
-- of its kind ended, and sequential when it begins there or behind it; a stride is the gap then. Of the steps from one
-- access to the next the others, back into what was passed, are random. Steps that leave a gap or go back are short up to
-- 128 KiB, which the kernel may have read ahead by then, and long otherwise. Accesses with bytes and a known offset count;
-- those of MPI-IO as long as no file view was set, for then their offsets do not count bytes.
CREATE OR REPLACE VIEW v_handle_pattern AS
  WITH viewed AS (SELECT DISTINCT host, handle_id FROM spans WHERE op = 'MPI_File_set_view' AND handle_id IS NOT NULL),
       accesses AS (
         SELECT host, handle_id, layer, file_id, kind, bytes,
                "offset" - lag("offset" + bytes) OVER (PARTITION BY host, handle_id, kind ORDER BY start_ns, span_id) AS jump,
                lag(kind) OVER (PARTITION BY host, handle_id ORDER BY start_ns, span_id) <> kind AS switched
         FROM spans WHERE layer_top AND kind IN ('read', 'write') AND bytes > 0 AND "offset" IS NOT NULL
           AND handle_id IS NOT NULL AND NOT EXISTS (FROM viewed v WHERE v.host IS NOT DISTINCT FROM spans.host AND v.handle_id = spans.handle_id)),
       strides AS (
         SELECT host, handle_id, kind, jump AS stride, count(*) AS n,
                row_number() OVER (PARTITION BY host, handle_id, kind ORDER BY count(*) DESC, jump) AS nth
         FROM accesses WHERE jump > 0 GROUP BY host, handle_id, kind, jump),
       top_strides AS (
         SELECT host, handle_id, kind, sum(n) FILTER (nth <= 4 AND n > 1) AS strided,
                max(stride) FILTER (nth = 1) AS stride1, max(n) FILTER (nth = 1) AS stride1_calls,
                max(stride) FILTER (nth = 2) AS stride2, max(n) FILTER (nth = 2) AS stride2_calls,
                max(stride) FILTER (nth = 3) AS stride3, max(n) FILTER (nth = 3) AS stride3_calls,
                max(stride) FILTER (nth = 4) AS stride4, max(n) FILTER (nth = 4) AS stride4_calls
         FROM strides GROUP BY host, handle_id, kind),
       sizes AS (
         SELECT host, handle_id, kind, bytes AS size, count(*) AS n,
                row_number() OVER (PARTITION BY host, handle_id, kind ORDER BY count(*) DESC, bytes) AS nth
         FROM accesses GROUP BY host, handle_id, kind, bytes),
       top_sizes AS (
         SELECT host, handle_id, kind,
                max(size) FILTER (nth = 1) AS size1, max(n) FILTER (nth = 1) AS size1_calls,
                max(size) FILTER (nth = 2) AS size2, max(n) FILTER (nth = 2) AS size2_calls,
                max(size) FILTER (nth = 3) AS size3, max(n) FILTER (nth = 3) AS size3_calls,
                max(size) FILTER (nth = 4) AS size4, max(n) FILTER (nth = 4) AS size4_calls
         FROM sizes GROUP BY host, handle_id, kind),
       totals AS (
         SELECT host, handle_id, kind, any_value(layer) AS layer, any_value(file_id) AS file_id, count(*) AS calls,
                sum(bytes) AS bytes, count(jump) AS steps, count(*) FILTER (jump = 0) AS consecutive,
                count(*) FILTER (jump >= 0) AS sequential, count(*) FILTER (jump < 0) AS random,
                count(*) FILTER (jump <> 0 AND abs(jump) <= 131072) AS short_jumps, count(*) FILTER (abs(jump) > 131072) AS long_jumps,
                count(*) FILTER (switched) AS switches
         FROM accesses GROUP BY host, handle_id, kind)
  SELECT host, handle_id, layer, file_id, f.path, kind,
         -- Four steps in five decide.
         CASE WHEN steps = 0 THEN 'single'
              WHEN consecutive >= 0.8 * steps THEN 'consecutive'
              WHEN consecutive + coalesce(strided, 0) >= 0.8 * steps THEN 'strided'
              WHEN sequential >= 0.8 * steps THEN 'sequential'
              WHEN consecutive <= 0.2 * steps THEN 'random'
              ELSE 'mixed' END AS pattern,
         calls, bytes, steps, consecutive, sequential, coalesce(strided, 0) AS strided, random, short_jumps, long_jumps, switches,
         stride1, stride1_calls, stride2, stride2_calls, stride3, stride3_calls, stride4, stride4_calls,
         size1, size1_calls, size2, size2_calls, size3, size3_calls, size4, size4_calls
  FROM totals LEFT JOIN top_strides USING (host, handle_id, kind) LEFT JOIN top_sizes USING (host, handle_id, kind)
       LEFT JOIN files f USING (host, file_id)
  ORDER BY host, handle_id, kind;

-- What the buffer of each C stream made of its calls: those on the FILE, and the system calls on its descriptor, also
-- those that flushed it at the end of the program or that went past it.
CREATE OR REPLACE VIEW v_stdio_flush AS
  WITH above AS (
         SELECT host, handle_id, kind, count(*) AS calls, sum(bytes) AS bytes,
                count(*) FILTER (bytes IS NULL AND errno = 0) AS unknown_calls
         FROM spans WHERE layer = 'stdio' AND layer_top AND kind IN ('read', 'write') AND handle_id IS NOT NULL
         GROUP BY host, handle_id, kind),
       below AS (
         SELECT s.host, fd.parent_handle_id AS handle_id, s.kind, count(*) AS calls, sum(s.bytes) AS bytes
         FROM spans s JOIN handles fd ON fd.host IS NOT DISTINCT FROM s.host AND fd.handle_id = s.handle_id
              JOIN handles stream ON stream.host IS NOT DISTINCT FROM s.host AND stream.handle_id = fd.parent_handle_id
         WHERE s.layer = 'syscall' AND s.kind IN ('read', 'write') AND stream.layer = 'stdio'
         GROUP BY s.host, fd.parent_handle_id, s.kind)
  SELECT host, handle_id, file_id, f.path, kind, coalesce(above.calls, 0) AS calls, above.bytes AS bytes,
         coalesce(above.unknown_calls, 0) AS unknown_calls, coalesce(below.calls, 0) AS syscalls,
         below.bytes AS syscall_bytes, above.calls / nullif(below.calls, 0)::DOUBLE AS calls_per_syscall
  FROM above FULL JOIN below USING (host, handle_id, kind) LEFT JOIN handles h USING (host, handle_id)
       LEFT JOIN files f USING (host, file_id)
  ORDER BY calls DESC, host, handle_id, kind;

-- Bytes read in system calls against the bytes of the file that they cover: 1 is each byte once.
CREATE OR REPLACE VIEW v_rereads AS
  WITH reads AS (
    SELECT host, file_id, "offset" AS s, "offset" + bytes AS e,
           max("offset" + bytes) OVER (PARTITION BY host, file_id ORDER BY "offset", bytes
                                       ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) AS seen
    FROM spans WHERE layer = 'syscall' AND layer_top AND kind = 'read' AND bytes > 0 AND "offset" IS NOT NULL)
  SELECT r.host, r.file_id, any_value(f.path) AS path, sum(e - s) AS bytes_read, sum(greatest(0, e - greatest(s, coalesce(seen, s)))) AS distinct_bytes,
         sum(e - s) / nullif(sum(greatest(0, e - greatest(s, coalesce(seen, s)))), 0)::DOUBLE AS times_read
  FROM reads r LEFT JOIN files f ON f.host IS NOT DISTINCT FROM r.host AND f.file_id = r.file_id
  GROUP BY r.host, r.file_id ORDER BY times_read DESC;

-- Bytes per second in bins of 100 ms, the bytes of a call spread over its duration.
CREATE OR REPLACE VIEW v_bandwidth_over_time AS
  WITH calls AS (SELECT host, layer, kind, start_ns AS s, start_ns + greatest(dur_ns, 1) AS e, bytes FROM spans
                 WHERE layer_top AND kind IN ('read', 'write') AND bytes > 0),
       parts AS (SELECT host, layer, kind, s, e, bytes, unnest(range(s // 100000000, (e - 1) // 100000000 + 1)) AS bin FROM calls)
  SELECT host, layer, kind, bin * 100000000 AS t_ns,
         10 * sum(bytes * (least(e, (bin + 1) * 100000000) - greatest(s, bin * 100000000))::DOUBLE / (e - s)) AS bps
  FROM parts GROUP BY host, layer, kind, t_ns ORDER BY host, layer_rank(layer), kind, t_ns;

-- Wall-clock time during which at least one call of the layer was open.
CREATE OR REPLACE VIEW v_busy AS
  WITH calls AS (
    SELECT host, layer, start_ns AS s, start_ns + dur_ns AS e,
           max(start_ns + dur_ns) OVER (PARTITION BY host, layer ORDER BY start_ns, dur_ns
                                        ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) AS seen
    FROM spans WHERE layer_top)
  SELECT host, layer, sum(greatest(0, e - greatest(s, coalesce(seen, s)))) AS busy_ns FROM calls
  GROUP BY host, layer ORDER BY host, layer_rank(layer);

-- Sums by process, file or object, layer and function, of whole traces: in a trace with --aggregate the table file_rollup, else
-- from the calls that are in no sum (bit 9 of flags). Figures are of outermost calls of their layer. sequential, consecutive, strides: against the read (or write)
-- before by the same process on the same file, or handle of a library, as Darshan defines them.
CREATE OR REPLACE VIEW file_sums AS
  WITH calls AS (
    SELECT *, layer_top AND kind IN ('read', 'write') AND "offset" IS NOT NULL AND bytes > 0 AS placed,
           CASE WHEN layer IN ('syscall', 'vfs', 'fs') THEN file_id ELSE handle_id END AS subject
    FROM spans WHERE flags & 512 = 0),
  befores AS (
    SELECT *, CASE WHEN placed THEN coalesce(lag("offset" + bytes - 1) OVER (
                PARTITION BY host, process_ix, layer, subject, placed, kind ORDER BY start_ns + dur_ns, span_id), 0) END AS last,
              CASE WHEN placed THEN lag(kind) OVER (
                PARTITION BY host, process_ix, layer, subject, placed ORDER BY start_ns + dur_ns, span_id) END AS last_kind
    FROM calls)
  SELECT host, layer, op, kind, process_ix, pid, rank, file_id, object_id, calls, errors, unknown_calls, bytes, req_bytes, dur_ns,
         self_ns, max_ns, first_ns, last_ns, end_offset, sequential, consecutive, switches, unaligned, sizes
  FROM file_rollup
  UNION ALL
  SELECT host, layer, op, kind, process_ix, pid, rank, file_id, object_id,
         count(*) FILTER (layer_top), count(*) FILTER (errno <> 0),
         count(*) FILTER (layer_top AND kind IN ('read', 'write') AND bytes IS NULL AND errno = 0),
         coalesce(sum(bytes) FILTER (layer_top), 0), coalesce(sum(req_bytes) FILTER (layer_top), 0),
         coalesce(sum(layer_ns) FILTER (layer_top), 0), sum(self_ns), coalesce(max(net_ns) FILTER (layer_top), 0),
         min(start_ns) FILTER (layer_top), max(start_ns + dur_ns) FILTER (layer_top), max("offset" + bytes) FILTER (placed),
         count(*) FILTER ("offset" > last), count(*) FILTER ("offset" = last + 1), count(*) FILTER (kind <> last_kind),
         count(*) FILTER (placed AND "offset" % 4096 <> 0),
         [count(*) FILTER (layer_top AND bytes <= 100), count(*) FILTER (layer_top AND bytes BETWEEN 101 AND 1024),
          count(*) FILTER (layer_top AND bytes BETWEEN 1025 AND 10240), count(*) FILTER (layer_top AND bytes BETWEEN 10241 AND 102400),
          count(*) FILTER (layer_top AND bytes BETWEEN 102401 AND 1048576),
          count(*) FILTER (layer_top AND bytes BETWEEN 1048577 AND 4194304),
          count(*) FILTER (layer_top AND bytes BETWEEN 4194305 AND 10485760),
          count(*) FILTER (layer_top AND bytes BETWEEN 10485761 AND 104857600),
          count(*) FILTER (layer_top AND bytes BETWEEN 104857601 AND 1073741824),
          count(*) FILTER (layer_top AND bytes > 1073741824)]
  FROM befores GROUP BY host, layer, op, kind, process_ix, pid, rank, file_id, object_id;

-- The most frequent sizes of reads and writes (what = 'size') and distances between them ('stride'), at most four a second in a
-- trace with --aggregate.
CREATE OR REPLACE VIEW frequent AS
  WITH calls AS (
    SELECT *, CASE WHEN layer IN ('syscall', 'vfs', 'fs') THEN file_id ELSE handle_id END AS subject FROM spans
    WHERE layer_top AND kind IN ('read', 'write') AND bytes IS NOT NULL AND errno = 0 AND flags & 512 = 0),
  befores AS (
    SELECT *, lag("offset" + bytes - 1) OVER (
      PARTITION BY host, process_ix, layer, subject, kind ORDER BY start_ns + dur_ns, span_id) AS last
    FROM calls WHERE bytes > 0 AND "offset" IS NOT NULL),
  lists AS (
    SELECT host, layer, kind, process_ix, file_id, object_id, 'size' AS what, common_sizes AS those, common_size_calls AS counts
    FROM file_rollup
    UNION ALL
    SELECT host, layer, kind, process_ix, file_id, object_id, 'stride', common_strides, common_stride_calls FROM file_rollup),
  numbered AS (SELECT *, unnest(range(1, array_length(those) + 1)) AS nth FROM lists),
  all_values AS (
    SELECT host, layer, kind, process_ix, file_id, object_id, what, those[nth] AS value, counts[nth] AS calls FROM numbered
    UNION ALL
    SELECT host, layer, kind, process_ix, file_id, object_id, 'size', bytes, 1 FROM calls
    UNION ALL
    SELECT host, layer, kind, process_ix, file_id, object_id, 'stride', "offset" - last - 1, 1 FROM befores
    WHERE last > 0 AND "offset" > last + 1)
  SELECT host, layer, kind, process_ix, file_id, object_id, what, value, sum(calls) AS calls FROM all_values GROUP BY ALL;

-- The same by Darshan's names: module, process, file, counter, value (as darshan-parser prints them; times in seconds since the
-- start of the trace). Calls without a file have no row. NETCDF is no module of Darshan: the names are those of its others.
CREATE OR REPLACE VIEW darshan AS
  WITH modules AS (
    -- The rank of a process may become known later than its first calls.
    SELECT * REPLACE (max(pid) OVER (PARTITION BY host, process_ix) AS pid, max(rank) OVER (PARTITION BY host, process_ix) AS rank),
              CASE layer WHEN 'syscall' THEN 'POSIX' WHEN 'stdio' THEN 'STDIO' WHEN 'mpiio' THEN 'MPIIO'
                         WHEN 'hdf5' THEN if(object_id IS NULL, 'H5F', 'H5D')
                         WHEN 'pnetcdf' THEN if(object_id IS NULL, 'PNETCDF_FILE', 'PNETCDF_VAR')
                         WHEN 'netcdf' THEN if(object_id IS NULL, 'NETCDF_FILE', 'NETCDF_VAR') END AS module,
              CASE WHEN layer <> 'mpiio' THEN '' WHEN op LIKE '%_begin' OR op LIKE '%_end' THEN 'SPLIT_'
                   WHEN op LIKE 'MPI_File_i%' THEN 'NB_'
                   WHEN op LIKE '%_all' OR op LIKE '%_ordered' OR op IN ('MPI_File_open', 'MPI_File_close') THEN 'COLL_'
                   ELSE 'INDEP_' END AS way,
              -- Time in writing has that in what makes bytes written permanent; metadata are not all other calls.
              CASE WHEN layer IN ('mpiio', 'stdio') THEN kind IN ('write', 'sync')
                   WHEN layer = 'syscall' THEN kind = 'write' OR op IN ('fsync', 'fdatasync') OR op LIKE '%.fsync'
                     OR op LIKE '%.fdsync' OR op LIKE '%.fdatasync'
                   ELSE kind = 'write' END AS writes,
              CASE WHEN layer = 'mpiio' THEN kind IN ('open', 'close')
                   WHEN layer = 'stdio' THEN kind IN ('open', 'close', 'seek')
                   WHEN layer = 'syscall' THEN kind IN ('open', 'close', 'seek') OR op IN ('dup', 'dup2', 'dup3')
                     OR op LIKE 'rename%' OR kind = 'meta' AND op LIKE '%stat%' AND op NOT LIKE '%statfs%'
                   ELSE kind IN ('open', 'close', 'sync') OR op LIKE '%redef' OR op LIKE '%enddef' END AS describes
    FROM file_sums
    WHERE layer IN ('syscall', 'stdio', 'mpiio', 'hdf5', 'pnetcdf', 'netcdf') AND file_id IS NOT NULL),
  counted AS (
    SELECT host, module, process_ix, any_value(pid) AS pid, any_value(rank) AS rank, file_id, object_id, [
      {'name': way || 'OPENS', 'value': sum(calls) FILTER (kind = 'open')::DOUBLE},
      {'name': way || 'READS', 'value': sum(calls) FILTER (kind = 'read')},
      {'name': way || 'WRITES', 'value': sum(calls) FILTER (kind = 'write')},
      {'name': 'SEEKS', 'value': sum(calls) FILTER (kind = 'seek')},
      {'name': 'MMAPS', 'value': sum(calls) FILTER (op = 'mmap')},
      {'name': 'STATS', 'value': sum(calls) FILTER (module = 'POSIX' AND op LIKE '%stat%' AND op NOT LIKE '%statfs%' AND kind = 'meta')},
      {'name': CASE module WHEN 'POSIX' THEN 'FSYNCS' WHEN 'MPIIO' THEN 'SYNCS' ELSE 'FLUSHES' END,
       'value': sum(calls) FILTER (kind = 'sync' AND (module <> 'POSIX' OR op = 'fsync' OR op LIKE '%.fsync'))},
      {'name': 'FDSYNCS', 'value': sum(calls) FILTER (op IN ('fdatasync', 'aio.fdsync'))}] AS counters
    FROM modules GROUP BY host, module, way, process_ix, file_id, object_id),
  summed AS (
    SELECT host, module, process_ix, any_value(pid) AS pid, any_value(rank) AS rank, file_id, object_id, [
      {'name': 'BYTES_READ', 'value': sum(bytes) FILTER (kind = 'read')::DOUBLE},
      {'name': 'BYTES_WRITTEN', 'value': sum(bytes) FILTER (kind = 'write')},
      {'name': 'MAX_BYTE_READ', 'value': max(end_offset - 1) FILTER (kind = 'read')},
      {'name': 'MAX_BYTE_WRITTEN', 'value': max(end_offset - 1) FILTER (kind = 'write')},
      {'name': 'SEQ_READS', 'value': sum(sequential) FILTER (kind = 'read')},
      {'name': 'SEQ_WRITES', 'value': sum(sequential) FILTER (kind = 'write')},
      {'name': 'CONSEC_READS', 'value': sum(consecutive) FILTER (kind = 'read')},
      {'name': 'CONSEC_WRITES', 'value': sum(consecutive) FILTER (kind = 'write')},
      {'name': 'RW_SWITCHES', 'value': sum(switches)},
      {'name': 'FILE_NOT_ALIGNED', 'value': sum(unaligned)},
      {'name': 'F_OPEN_START_TIMESTAMP', 'value': min(first_ns) FILTER (kind = 'open') / 1e9},
      {'name': 'F_READ_START_TIMESTAMP', 'value': min(first_ns) FILTER (kind = 'read') / 1e9},
      {'name': 'F_WRITE_START_TIMESTAMP', 'value': min(first_ns) FILTER (kind = 'write') / 1e9},
      {'name': 'F_CLOSE_START_TIMESTAMP', 'value': min(first_ns) FILTER (kind = 'close') / 1e9},
      {'name': 'F_OPEN_END_TIMESTAMP', 'value': max(last_ns) FILTER (kind = 'open') / 1e9},
      {'name': 'F_READ_END_TIMESTAMP', 'value': max(last_ns) FILTER (kind = 'read') / 1e9},
      {'name': 'F_WRITE_END_TIMESTAMP', 'value': max(last_ns) FILTER (kind = 'write') / 1e9},
      {'name': 'F_CLOSE_END_TIMESTAMP', 'value': max(last_ns) FILTER (kind = 'close') / 1e9},
      {'name': 'F_READ_TIME', 'value': sum(dur_ns) FILTER (kind = 'read') / 1e9},
      {'name': 'F_WRITE_TIME', 'value': sum(dur_ns) FILTER (writes) / 1e9},
      {'name': 'F_META_TIME', 'value': sum(dur_ns) FILTER (describes) / 1e9},
      {'name': 'F_MAX_READ_TIME', 'value': max(max_ns) FILTER (kind = 'read') / 1e9},
      {'name': 'F_MAX_WRITE_TIME', 'value': max(max_ns) FILTER (kind = 'write') / 1e9}] AS counters
    FROM modules GROUP BY host, module, process_ix, file_id, object_id),
  sized AS (
    SELECT host, module, process_ix, any_value(pid) AS pid, any_value(rank) AS rank, file_id, object_id,
           'SIZE_' || upper(kind) || '_' || if(module = 'POSIX', '', 'AGG_') ||
             ['0_100', '100_1K', '1K_10K', '10K_100K', '100K_1M', '1M_4M', '4M_10M', '10M_100M', '100M_1G', '1G_PLUS'][nth] AS name,
           sum(sizes[nth])::DOUBLE AS value
    FROM (SELECT *, unnest(range(1, array_length(sizes) + 1)) AS nth FROM modules WHERE kind IN ('read', 'write'))
    GROUP BY host, module, process_ix, file_id, object_id, kind, nth),
  ranked AS (
    SELECT *, row_number() OVER (PARTITION BY host, layer, process_ix, file_id, object_id, what ORDER BY calls DESC, value) AS n,
           if(what = 'size', 'ACCESS', 'STRIDE') AS word
    FROM (SELECT host, layer, process_ix, file_id, object_id, what, value, sum(calls) AS calls FROM frequent GROUP BY ALL)),
  named AS (SELECT DISTINCT host, layer, module, process_ix, pid, rank, file_id, object_id FROM modules),
  listed AS (
    SELECT host, module, process_ix, pid, rank, file_id, object_id, unnest(counters) AS counter FROM counted
    UNION ALL
    SELECT host, module, process_ix, pid, rank, file_id, object_id, unnest(counters) FROM summed
    UNION ALL
    SELECT m.host, m.module, m.process_ix, m.pid, m.rank, m.file_id, m.object_id, unnest([
      {'name': word || n || '_' || word, 'value': value::DOUBLE}, {'name': word || n || '_COUNT', 'value': calls}])
    FROM ranked f JOIN named m ON m.host IS NOT DISTINCT FROM f.host AND m.layer = f.layer AND m.process_ix IS NOT DISTINCT FROM f.process_ix
     AND m.file_id = f.file_id AND m.object_id IS NOT DISTINCT FROM f.object_id
    WHERE n <= 4),
  every AS (
    SELECT host, module, process_ix, pid, rank, file_id, object_id, counter.name AS name, counter.value AS value FROM listed
    UNION ALL
    SELECT host, module, process_ix, pid, rank, file_id, object_id, name, value FROM sized)
  SELECT e.host, e.module, e.rank, e.process_ix, e.pid, e.file_id, e.object_id, f.path,
         e.module || '_' || e.name AS counter, sum(e.value) AS value
  FROM every e LEFT JOIN files f ON f.host IS NOT DISTINCT FROM e.host AND f.file_id = e.file_id
  WHERE e.value IS NOT NULL GROUP BY ALL;

-- What the node did, at the resolutions of the dashboard: 100 ms, 1 s, 10 s, 1 min and 10 min. A point goes from the first look at
-- the node in one interval of that width to the first look in the next one, or to the last look there is. It is left out where it
-- is longer than two of them: the node was not looked at as often (--aggregate: once a second). Totals are rates, what they grew
-- by in a second; levels are means over the looks, the first one left out. Network and device bytes are those of hardware, for
-- what others move is moved by these, too; in datasets without node_hardware of all devices, and of all interfaces but lo.
CREATE OR REPLACE VIEW v_node AS
  WITH hardware AS (SELECT host, ' ' || value || ' ' AS names FROM meta WHERE key = 'node_hardware'),
       steps AS (
         SELECT m.host, t_ns, name, label, value,
                coalesce(position(' ' || split_part(label, ' ', 1) || ' ' IN h.names) > 0, label NOT LIKE 'lo %') AS counts,
                coalesce(greatest(value - lag(value) OVER (PARTITION BY m.host, name, label ORDER BY t_ns, value), 0), 0) AS grown
         FROM metrics m LEFT JOIN hardware h ON h.host IS NOT DISTINCT FROM m.host WHERE starts_with(name, 'node_')),
       looks AS (
         SELECT host, t_ns,
                sum(grown) FILTER (name = 'node_cpu_seconds' AND label IN ('user', 'nice')) AS cpu_user,
                sum(grown) FILTER (name = 'node_cpu_seconds' AND label IN ('system', 'irq', 'softirq')) AS cpu_system,
                sum(grown) FILTER (name = 'node_cpu_seconds' AND label = 'iowait') AS cpu_iowait,
                sum(grown) FILTER (name = 'node_cpu_seconds' AND label = 'steal') AS cpu_steal,
                sum(grown) FILTER (name = 'node_cpu_seconds' AND label = 'idle') AS cpu_idle,
                sum(grown) FILTER (name = 'node_pressure_seconds' AND label = 'cpu some') AS pressure_cpu,
                sum(grown) FILTER (name = 'node_pressure_seconds' AND label = 'io some') AS pressure_io,
                sum(grown) FILTER (name = 'node_pressure_seconds' AND label = 'memory some') AS pressure_memory,
                sum(grown) FILTER (name = 'node_network_bytes' AND counts AND label LIKE '% received') AS network_received_bytes,
                sum(grown) FILTER (name = 'node_network_bytes' AND counts AND label LIKE '% sent') AS network_sent_bytes,
                sum(grown) FILTER (name = 'node_device_bytes' AND counts AND label LIKE '% read') AS device_read_bytes,
                sum(grown) FILTER (name = 'node_device_bytes' AND counts AND label LIKE '% write') AS device_written_bytes,
                sum(grown) FILTER (name = 'node_device_busy_seconds') AS device_busy,
                max(value) FILTER (name = 'node_memory_bytes' AND label = 'total') AS memory_total,
                max(value) FILTER (name = 'node_memory_bytes' AND label = 'available') AS memory_available,
                max(value) FILTER (name = 'node_memory_bytes' AND label = 'dirty') AS memory_dirty,
                max(value) FILTER (name = 'node_memory_bytes' AND label = 'writeback') AS memory_writeback
         FROM steps GROUP BY host, t_ns),
       -- A figure has a row where it changes: between two of them it is as it was. It has none before the first one.
       running AS (
         SELECT host, t_ns,
                sum(cpu_user) OVER w AS cpu_user, sum(cpu_system) OVER w AS cpu_system, sum(cpu_iowait) OVER w AS cpu_iowait,
                sum(cpu_steal) OVER w AS cpu_steal, sum(cpu_idle) OVER w AS cpu_idle, sum(pressure_cpu) OVER w AS pressure_cpu,
                sum(pressure_io) OVER w AS pressure_io, sum(pressure_memory) OVER w AS pressure_memory, sum(network_received_bytes) OVER w AS network_received_bytes,
                sum(network_sent_bytes) OVER w AS network_sent_bytes, sum(device_read_bytes) OVER w AS device_read_bytes, sum(device_written_bytes) OVER w AS device_written_bytes,
                sum(device_busy) OVER w AS device_busy, last_value(memory_total IGNORE NULLS) OVER w AS memory_total, last_value(memory_available IGNORE NULLS) OVER w AS memory_available,
                last_value(memory_dirty IGNORE NULLS) OVER w AS memory_dirty, last_value(memory_writeback IGNORE NULLS) OVER w AS memory_writeback
         FROM looks WINDOW w AS (PARTITION BY host ORDER BY t_ns ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW)),
       since AS (
         SELECT *, lag(t_ns) OVER v AS before_ns,
                lag(cpu_user) OVER v AS cpu_user_before, lag(cpu_system) OVER v AS cpu_system_before, lag(cpu_iowait) OVER v AS cpu_iowait_before,
                lag(cpu_steal) OVER v AS cpu_steal_before, lag(cpu_idle) OVER v AS cpu_idle_before, lag(pressure_cpu) OVER v AS pressure_cpu_before,
                lag(pressure_io) OVER v AS pressure_io_before, lag(pressure_memory) OVER v AS pressure_memory_before, lag(network_received_bytes) OVER v AS network_received_bytes_before,
                lag(network_sent_bytes) OVER v AS network_sent_bytes_before, lag(device_read_bytes) OVER v AS device_read_bytes_before, lag(device_written_bytes) OVER v AS device_written_bytes_before,
                lag(device_busy) OVER v AS device_busy_before
         FROM running WINDOW v AS (PARTITION BY host ORDER BY t_ns)),
       places AS (
         SELECT *, sum(CASE WHEN t_ns // resolution_ns = before_ns // resolution_ns THEN 0 ELSE 1 END)
                     OVER (PARTITION BY host, resolution_ns ORDER BY t_ns ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) AS point
         FROM since CROSS JOIN (VALUES (100000000), (1000000000), (10000000000), (60000000000), (600000000000)) AS widths (resolution_ns)),
       points AS (
         SELECT host, resolution_ns, point, min(before_ns) AS from_ns, max(t_ns) AS to_ns, (max(t_ns) - min(before_ns)) / 1e9 AS s,
                max(cpu_user) - min(cpu_user_before) AS cpu_user, max(cpu_system) - min(cpu_system_before) AS cpu_system,
                max(cpu_iowait) - min(cpu_iowait_before) AS cpu_iowait, max(cpu_steal) - min(cpu_steal_before) AS cpu_steal,
                max(cpu_idle) - min(cpu_idle_before) AS cpu_idle, max(pressure_cpu) - min(pressure_cpu_before) AS pressure_cpu,
                max(pressure_io) - min(pressure_io_before) AS pressure_io, max(pressure_memory) - min(pressure_memory_before) AS pressure_memory,
                max(network_received_bytes) - min(network_received_bytes_before) AS network_received_bytes, max(network_sent_bytes) - min(network_sent_bytes_before) AS network_sent_bytes,
                max(device_read_bytes) - min(device_read_bytes_before) AS device_read_bytes, max(device_written_bytes) - min(device_written_bytes_before) AS device_written_bytes,
                max(device_busy) - min(device_busy_before) AS device_busy, max(memory_total) AS memory_total,
                avg(memory_available) AS memory_available, avg(memory_dirty) AS memory_dirty,
                avg(memory_writeback) AS memory_writeback
         FROM places WHERE before_ns IS NOT NULL GROUP BY host, resolution_ns, point
         HAVING max(t_ns) - min(before_ns) <= 2 * resolution_ns),
       by_device AS (
         SELECT p.host, p.resolution_ns, p.point, s.label AS device, sum(s.grown) AS busy
         FROM places p JOIN steps s ON s.host IS NOT DISTINCT FROM p.host AND s.t_ns = p.t_ns
         WHERE s.name = 'node_device_busy_seconds' AND s.grown > 0 GROUP BY p.host, p.resolution_ns, p.point, s.label),
       busiest AS (
         SELECT host, resolution_ns, point, max(busy) AS busy, arg_max(device, busy) AS device FROM by_device GROUP BY host, resolution_ns, point)
  SELECT p.host, p.resolution_ns, p.from_ns, p.to_ns,
         1 - (cpu_idle + coalesce(cpu_iowait, 0)) / nullif(cpu_user + cpu_system + cpu_idle + coalesce(cpu_iowait, 0) + coalesce(cpu_steal, 0), 0) AS cpu_busy,
         cpu_user / s AS cpu_user, cpu_system / s AS cpu_system, cpu_iowait / s AS cpu_iowait, cpu_steal / s AS cpu_steal,
         cpu_idle / s AS cpu_idle, pressure_cpu / s AS pressure_cpu, pressure_io / s AS pressure_io,
         pressure_memory / s AS pressure_memory, 1 - memory_available / nullif(memory_total, 0) AS memory_used,
         memory_available AS memory_available_bytes, memory_dirty AS dirty_bytes, memory_writeback AS writeback_bytes,
         network_received_bytes / s AS network_received_bytes, network_sent_bytes / s AS network_sent_bytes,
         device_read_bytes / s AS device_read_bytes, device_written_bytes / s AS device_written_bytes,
         b.device AS busiest_device, least(coalesce(b.busy, 0 * device_busy) / s, 1) AS busiest_share
  FROM points p
       LEFT JOIN busiest b ON b.host IS NOT DISTINCT FROM p.host AND b.resolution_ns = p.resolution_ns AND b.point = p.point
  ORDER BY p.host, p.resolution_ns, p.from_ns;

RESET VARIABLE iotrace_some;
