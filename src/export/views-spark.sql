-- Questions about a trace, as Spark SQL views over its Parquet tables: those of views.sql, which explains them. Made from it by
-- tests/common/readers/spark_views.py. In Python (pip install pyspark, 4.1 or newer), DIR being a dataset, or a directory that those of
-- several nodes are in, on any file system that Spark reads, and VIEWS a copy of this file:
--
--   spark.conf.set("iotrace.dir", DIR)
--   for statement in open(VIEWS).read().split(";\n"):
--       if statement.strip(): spark.sql(statement)
--   spark.table("v_ops").show()
--
-- All views and functions are temporary: they belong to the session.

-- Levels of calls are few, calls are many.
SET spark.sql.cteRecursionRowLimit = -1;

-- Otherwise each view is worked out anew, down to the footers of the files, wherever it is named.
SET spark.sql.legacy.storeAnalyzedPlanForView = true;

CREATE OR REPLACE TEMPORARY VIEW parts_block AS
SELECT *, _metadata.file_path AS filename, _metadata.row_index AS file_row_number
FROM parquet.`${iotrace.dir}` WITH (recursiveFileLookup = true, pathGlobFilter = 'block-*.parquet', mergeSchema = true);

CREATE OR REPLACE TEMPORARY VIEW parts_block_bytes AS
SELECT *, _metadata.file_path AS filename, _metadata.row_index AS file_row_number
FROM parquet.`${iotrace.dir}` WITH (recursiveFileLookup = true, pathGlobFilter = 'block_bytes-*.parquet', mergeSchema = true);

CREATE OR REPLACE TEMPORARY VIEW parts_block_links AS
SELECT *, _metadata.file_path AS filename, _metadata.row_index AS file_row_number
FROM parquet.`${iotrace.dir}` WITH (recursiveFileLookup = true, pathGlobFilter = 'block_links-*.parquet', mergeSchema = true);

CREATE OR REPLACE TEMPORARY VIEW parts_coverage AS
SELECT *, _metadata.file_path AS filename, _metadata.row_index AS file_row_number
FROM parquet.`${iotrace.dir}` WITH (recursiveFileLookup = true, pathGlobFilter = 'coverage-*.parquet', mergeSchema = true);

CREATE OR REPLACE TEMPORARY VIEW parts_file_paths AS
SELECT *, _metadata.file_path AS filename, _metadata.row_index AS file_row_number
FROM parquet.`${iotrace.dir}` WITH (recursiveFileLookup = true, pathGlobFilter = 'file_paths-*.parquet', mergeSchema = true);

CREATE OR REPLACE TEMPORARY VIEW parts_file_rollup AS
SELECT *, _metadata.file_path AS filename, _metadata.row_index AS file_row_number
FROM parquet.`${iotrace.dir}` WITH (recursiveFileLookup = true, pathGlobFilter = 'file_rollup-*.parquet', mergeSchema = true);

CREATE OR REPLACE TEMPORARY VIEW parts_files AS
SELECT *, _metadata.file_path AS filename, _metadata.row_index AS file_row_number
FROM parquet.`${iotrace.dir}` WITH (recursiveFileLookup = true, pathGlobFilter = 'files-*.parquet', mergeSchema = true);

CREATE OR REPLACE TEMPORARY VIEW parts_handles AS
SELECT *, _metadata.file_path AS filename, _metadata.row_index AS file_row_number
FROM parquet.`${iotrace.dir}` WITH (recursiveFileLookup = true, pathGlobFilter = 'handles-*.parquet', mergeSchema = true);

CREATE OR REPLACE TEMPORARY VIEW parts_hist AS
SELECT *, _metadata.file_path AS filename, _metadata.row_index AS file_row_number
FROM parquet.`${iotrace.dir}` WITH (recursiveFileLookup = true, pathGlobFilter = 'hist-*.parquet', mergeSchema = true);

CREATE OR REPLACE TEMPORARY VIEW parts_losses AS
SELECT *, _metadata.file_path AS filename, _metadata.row_index AS file_row_number
FROM parquet.`${iotrace.dir}` WITH (recursiveFileLookup = true, pathGlobFilter = 'losses-*.parquet', mergeSchema = true);

CREATE OR REPLACE TEMPORARY VIEW parts_meta AS
SELECT *, _metadata.file_path AS filename, _metadata.row_index AS file_row_number
FROM parquet.`${iotrace.dir}` WITH (recursiveFileLookup = true, pathGlobFilter = 'meta-*.parquet', mergeSchema = true);

CREATE OR REPLACE TEMPORARY VIEW parts_metrics AS
SELECT *, _metadata.file_path AS filename, _metadata.row_index AS file_row_number
FROM parquet.`${iotrace.dir}` WITH (recursiveFileLookup = true, pathGlobFilter = 'metrics-*.parquet', mergeSchema = true);

CREATE OR REPLACE TEMPORARY VIEW parts_mounts AS
SELECT *, _metadata.file_path AS filename, _metadata.row_index AS file_row_number
FROM parquet.`${iotrace.dir}` WITH (recursiveFileLookup = true, pathGlobFilter = 'mounts-*.parquet', mergeSchema = true);

CREATE OR REPLACE TEMPORARY VIEW parts_objects AS
SELECT *, _metadata.file_path AS filename, _metadata.row_index AS file_row_number
FROM parquet.`${iotrace.dir}` WITH (recursiveFileLookup = true, pathGlobFilter = 'objects-*.parquet', mergeSchema = true);

CREATE OR REPLACE TEMPORARY VIEW parts_paths AS
SELECT *, _metadata.file_path AS filename, _metadata.row_index AS file_row_number
FROM parquet.`${iotrace.dir}` WITH (recursiveFileLookup = true, pathGlobFilter = 'paths-*.parquet', mergeSchema = true);

CREATE OR REPLACE TEMPORARY VIEW parts_processes AS
SELECT *, _metadata.file_path AS filename, _metadata.row_index AS file_row_number
FROM parquet.`${iotrace.dir}` WITH (recursiveFileLookup = true, pathGlobFilter = 'processes-*.parquet', mergeSchema = true);

CREATE OR REPLACE TEMPORARY VIEW parts_rollup AS
SELECT *, _metadata.file_path AS filename, _metadata.row_index AS file_row_number
FROM parquet.`${iotrace.dir}` WITH (recursiveFileLookup = true, pathGlobFilter = 'rollup-*.parquet', mergeSchema = true);

CREATE OR REPLACE TEMPORARY VIEW parts_rpc AS
SELECT *, _metadata.file_path AS filename, _metadata.row_index AS file_row_number
FROM parquet.`${iotrace.dir}` WITH (recursiveFileLookup = true, pathGlobFilter = 'rpc-*.parquet', mergeSchema = true);

CREATE OR REPLACE TEMPORARY VIEW parts_spans AS
SELECT *, _metadata.file_path AS filename, _metadata.row_index AS file_row_number
FROM parquet.`${iotrace.dir}` WITH (recursiveFileLookup = true, pathGlobFilter = 'spans-*.parquet', mergeSchema = true);

CREATE OR REPLACE TEMPORARY VIEW parts_stacks AS
SELECT *, _metadata.file_path AS filename, _metadata.row_index AS file_row_number
FROM parquet.`${iotrace.dir}` WITH (recursiveFileLookup = true, pathGlobFilter = 'stacks-*.parquet', mergeSchema = true);

CREATE OR REPLACE TEMPORARY VIEW parts_threads AS
SELECT *, _metadata.file_path AS filename, _metadata.row_index AS file_row_number
FROM parquet.`${iotrace.dir}` WITH (recursiveFileLookup = true, pathGlobFilter = 'threads-*.parquet', mergeSchema = true);

CREATE OR REPLACE TEMPORARY VIEW datasets AS
WITH facts AS (
  SELECT
    host,
    key,
    value,
    SUBSTRING(filename, 1, LENGTH(filename) - INSTR(REVERSE(filename), '/') + 1) AS dir,
    ROW_NUMBER() OVER (
      PARTITION BY SUBSTRING(filename, 1, LENGTH(filename) - INSTR(REVERSE(filename), '/') + 1), key
      ORDER BY filename DESC, file_row_number DESC
    ) AS nth
  FROM parts_meta
), numbers AS (
  SELECT
    dir,
    MAX(host) AS host,
    MAX(CASE WHEN key = 'run_t0_ns' THEN TRY_CAST(value AS BIGINT) END) AS run_ns,
    MAX(CASE WHEN key = 't0_ns' THEN TRY_CAST(value AS BIGINT) END) AS t0_ns,
    MAX(CASE WHEN key = 't0_wall_ns' THEN TRY_CAST(value AS BIGINT) END) AS wall_ns
  FROM facts
  WHERE
    nth = 1
  GROUP BY
    dir
), runs AS (
  SELECT
    *,
    COALESCE(run_ns, t0_ns) AS run_t0_ns
  FROM numbers
), firsts AS (
  SELECT
    *,
    t0_ns - FIRST_VALUE(t0_ns) OVER (PARTITION BY host, run_t0_ns ORDER BY t0_ns NULLS LAST) AS later_ns,
    FIRST_VALUE(wall_ns) OVER (PARTITION BY host, run_t0_ns ORDER BY t0_ns NULLS LAST) AS first_wall_ns
  FROM runs
)
SELECT
  dir,
  host,
  run_t0_ns,
  t0_ns,
  COALESCE(first_wall_ns + later_ns, wall_ns) AS t0_wall_ns,
  COALESCE(later_ns, 0) AS later_ns
FROM firsts;

CREATE OR REPLACE TEMPORARY VIEW spans AS
SELECT
  t.*
  EXCEPT (filename, file_row_number, start_ns, layer_ns),
  start_ns + COALESCE(later_ns, 0) AS start_ns,
  COALESCE(layer_ns, dur_ns - COALESCE(probe_ns, 0)) AS layer_ns,
  dur_ns - COALESCE(probe_ns, 0) AS net_ns,
  CASE
    WHEN NOT cpu_ns IS NULL
    THEN GREATEST(
      dur_ns - COALESCE(probe_ns, 0) - cpu_ns - COALESCE(runq_ns, 0) - COALESCE(throttle_ns, 0) - COALESCE(lock_ns, 0) - COALESCE(writeback_ns, 0) - COALESCE(journal_ns, 0) - COALESCE(flush_ns, 0) - COALESCE(devqueue_ns, 0) - COALESCE(device_ns, 0) - COALESCE(remote_ns, 0),
      0
    )
  END AS sleep_ns
FROM parts_spans AS t
LEFT JOIN datasets AS d
  ON d.dir = SUBSTRING(filename, 1, LENGTH(filename) - INSTR(REVERSE(filename), '/') + 1);

CREATE OR REPLACE TEMPORARY VIEW block AS
SELECT
  t.*
  EXCEPT (filename, file_row_number, queue_ns, insert_ns, issue_ns),
  queue_ns + COALESCE(later_ns, 0) AS queue_ns,
  insert_ns + COALESCE(later_ns, 0) AS insert_ns,
  issue_ns + COALESCE(later_ns, 0) AS issue_ns
FROM parts_block AS t
LEFT JOIN datasets AS d
  ON d.dir = SUBSTRING(filename, 1, LENGTH(filename) - INSTR(REVERSE(filename), '/') + 1);

CREATE OR REPLACE TEMPORARY VIEW block_bytes AS
SELECT
  *
  EXCEPT (filename, file_row_number)
FROM parts_block_bytes;

CREATE OR REPLACE TEMPORARY VIEW block_links AS
SELECT
  *
  EXCEPT (filename, file_row_number)
FROM parts_block_links;

CREATE OR REPLACE TEMPORARY VIEW rpc AS
SELECT
  t.*
  EXCEPT (filename, file_row_number, received_ns),
  received_ns + COALESCE(later_ns, 0) AS received_ns
FROM parts_rpc AS t
LEFT JOIN datasets AS d
  ON d.dir = SUBSTRING(filename, 1, LENGTH(filename) - INSTR(REVERSE(filename), '/') + 1);

CREATE OR REPLACE TEMPORARY VIEW rollup_bins AS
SELECT
  t.*
  EXCEPT (filename, file_row_number, t_ns),
  t_ns + COALESCE(later_ns, 0) AS t_ns
FROM parts_rollup AS t
LEFT JOIN datasets AS d
  ON d.dir = SUBSTRING(filename, 1, LENGTH(filename) - INSTR(REVERSE(filename), '/') + 1);

CREATE OR REPLACE TEMPORARY VIEW file_rollup AS
SELECT
  t.*
  EXCEPT (filename, file_row_number, from_ns, to_ns, slowest_ns, first_ns, last_ns),
  from_ns + COALESCE(later_ns, 0) AS from_ns,
  to_ns + COALESCE(later_ns, 0) AS to_ns,
  slowest_ns + COALESCE(later_ns, 0) AS slowest_ns,
  first_ns + COALESCE(later_ns, 0) AS first_ns,
  last_ns + COALESCE(later_ns, 0) AS last_ns
FROM parts_file_rollup AS t
LEFT JOIN datasets AS d
  ON d.dir = SUBSTRING(filename, 1, LENGTH(filename) - INSTR(REVERSE(filename), '/') + 1);

CREATE OR REPLACE TEMPORARY VIEW hist AS
SELECT
  t.*
  EXCEPT (filename, file_row_number, t_ns),
  t_ns + COALESCE(later_ns, 0) AS t_ns
FROM parts_hist AS t
LEFT JOIN datasets AS d
  ON d.dir = SUBSTRING(filename, 1, LENGTH(filename) - INSTR(REVERSE(filename), '/') + 1);

CREATE OR REPLACE TEMPORARY VIEW metrics AS
SELECT
  t.*
  EXCEPT (filename, file_row_number, t_ns),
  t_ns + COALESCE(later_ns, 0) AS t_ns
FROM parts_metrics AS t
LEFT JOIN datasets AS d
  ON d.dir = SUBSTRING(filename, 1, LENGTH(filename) - INSTR(REVERSE(filename), '/') + 1);

CREATE OR REPLACE TEMPORARY VIEW losses AS
SELECT
  t.*
  EXCEPT (filename, file_row_number, t_ns),
  t_ns + COALESCE(later_ns, 0) AS t_ns
FROM parts_losses AS t
LEFT JOIN datasets AS d
  ON d.dir = SUBSTRING(filename, 1, LENGTH(filename) - INSTR(REVERSE(filename), '/') + 1);

CREATE OR REPLACE TEMPORARY VIEW coverage AS
SELECT DISTINCT
  *
  EXCEPT (filename, file_row_number)
FROM parts_coverage;

CREATE OR REPLACE TEMPORARY VIEW file_paths AS
SELECT DISTINCT
  t.*
  EXCEPT (filename, file_row_number, from_ns),
  from_ns + COALESCE(later_ns, 0) AS from_ns
FROM parts_file_paths AS t
LEFT JOIN datasets AS d
  ON d.dir = SUBSTRING(filename, 1, LENGTH(filename) - INSTR(REVERSE(filename), '/') + 1);

CREATE OR REPLACE TEMPORARY VIEW files AS
SELECT
  *
  EXCEPT (filename, file_row_number, place)
FROM (
  SELECT
    *,
    ROW_NUMBER() OVER (PARTITION BY host, file_id ORDER BY filename DESC, file_row_number DESC) AS place
  FROM parts_files
)
WHERE
  place = 1;

CREATE OR REPLACE TEMPORARY VIEW paths AS
SELECT
  *
  EXCEPT (filename, file_row_number, place)
FROM (
  SELECT
    *,
    ROW_NUMBER() OVER (PARTITION BY host, path_id ORDER BY filename DESC, file_row_number DESC) AS place
  FROM parts_paths
)
WHERE
  place = 1;

CREATE OR REPLACE TEMPORARY VIEW handles AS
SELECT
  t.*
  EXCEPT (filename, file_row_number, start_ns, end_ns),
  start_ns + COALESCE(later_ns, 0) AS start_ns,
  end_ns + COALESCE(later_ns, 0) AS end_ns
FROM (
  SELECT
    *
    EXCEPT (place)
  FROM (
    SELECT
      *,
      ROW_NUMBER() OVER (PARTITION BY host, handle_id ORDER BY filename DESC, file_row_number DESC) AS place
    FROM parts_handles
  )
  WHERE
    place = 1
) AS t
LEFT JOIN datasets AS d
  ON d.dir = SUBSTRING(filename, 1, LENGTH(filename) - INSTR(REVERSE(filename), '/') + 1);

CREATE OR REPLACE TEMPORARY VIEW objects AS
SELECT
  *
  EXCEPT (filename, file_row_number, place)
FROM (
  SELECT
    *,
    ROW_NUMBER() OVER (PARTITION BY host, object_id ORDER BY filename DESC, file_row_number DESC) AS place
  FROM parts_objects
)
WHERE
  place = 1;

CREATE OR REPLACE TEMPORARY VIEW processes AS
SELECT
  t.*
  EXCEPT (filename, file_row_number, start_ns, end_ns),
  start_ns + COALESCE(later_ns, 0) AS start_ns,
  end_ns + COALESCE(later_ns, 0) AS end_ns
FROM (
  SELECT
    *
    EXCEPT (place)
  FROM (
    SELECT
      *,
      ROW_NUMBER() OVER (PARTITION BY host, process_ix ORDER BY filename DESC, file_row_number DESC) AS place
    FROM parts_processes
  )
  WHERE
    place = 1
) AS t
LEFT JOIN datasets AS d
  ON d.dir = SUBSTRING(filename, 1, LENGTH(filename) - INSTR(REVERSE(filename), '/') + 1);

CREATE OR REPLACE TEMPORARY VIEW threads AS
SELECT
  *
  EXCEPT (filename, file_row_number, place)
FROM (
  SELECT
    *,
    ROW_NUMBER() OVER (PARTITION BY host, thread_ix ORDER BY filename DESC, file_row_number DESC) AS place
  FROM parts_threads
)
WHERE
  place = 1;

CREATE OR REPLACE TEMPORARY VIEW mounts AS
SELECT
  *
  EXCEPT (filename, file_row_number, place)
FROM (
  SELECT
    *,
    ROW_NUMBER() OVER (PARTITION BY host, mount_id ORDER BY filename DESC, file_row_number DESC) AS place
  FROM parts_mounts
)
WHERE
  place = 1;

CREATE OR REPLACE TEMPORARY VIEW stacks AS
SELECT
  *
  EXCEPT (filename, file_row_number, place)
FROM (
  SELECT
    *,
    ROW_NUMBER() OVER (PARTITION BY host, stack_id ORDER BY filename DESC, file_row_number DESC) AS place
  FROM parts_stacks
)
WHERE
  place = 1;

CREATE OR REPLACE TEMPORARY VIEW meta AS
SELECT
  t.*
  EXCEPT (filename, file_row_number, value),
  CASE key
    WHEN 'end_ns'
    THEN COALESCE(CAST(TRY_CAST(value AS BIGINT) + later_ns AS STRING), value)
    WHEN 't0_ns'
    THEN COALESCE(CAST(t0_ns - later_ns AS STRING), value)
    WHEN 't0_wall_ns'
    THEN COALESCE(CAST(t0_wall_ns - later_ns AS STRING), value)
    ELSE value
  END AS value
FROM (
  SELECT
    *
    EXCEPT (place)
  FROM (
    SELECT
      *,
      ROW_NUMBER() OVER (PARTITION BY host, key ORDER BY filename DESC, file_row_number DESC) AS place
    FROM parts_meta
  )
  WHERE
    place = 1
) AS t
LEFT JOIN datasets AS d
  ON d.dir = SUBSTRING(filename, 1, LENGTH(filename) - INSTR(REVERSE(filename), '/') + 1);

CREATE OR REPLACE TEMPORARY VIEW v_commands AS
SELECT
  host,
  process_ix,
  pid,
  rank,
  COALESCE(NULLIF(ARRAY_JOIN(cmdline, ' '), ''), exe) AS command
FROM processes;

CREATE OR REPLACE TEMPORARY VIEW v_calls AS
SELECT
  s.*,
  COALESCE(f.path, n.path) AS path,
  o.name AS object,
  p.command
FROM spans AS s
LEFT JOIN files AS f
  ON f.host IS NOT DISTINCT FROM s.host AND f.file_id = s.file_id
LEFT JOIN paths AS n
  ON n.host IS NOT DISTINCT FROM s.host AND n.path_id = s.path_id
LEFT JOIN objects AS o
  ON o.host IS NOT DISTINCT FROM s.host AND o.object_id = s.object_id
LEFT JOIN v_commands AS p
  ON p.host IS NOT DISTINCT FROM s.host AND p.process_ix = s.process_ix;

CREATE OR REPLACE TEMPORARY VIEW v_loss AS
SELECT
  layer,
  place,
  SUM(count) AS lost
FROM losses
GROUP BY ALL
HAVING
  SUM(count) <> 0
ORDER BY
  lost DESC;

CREATE OR REPLACE TEMPORARY VIEW v_coverage AS
SELECT
  layer,
  COUNT(*) FILTER(WHERE
    status = 'attached') AS attached,
  COUNT(*) FILTER(WHERE
    status <> 'absent' OR symbol = '') AS probes,
  COUNT(*) FILTER(WHERE
    status = 'absent' AND symbol <> '') AS absent,
  ARRAY_SORT(COLLECT_LIST(DISTINCT tier) FILTER(WHERE
    status = 'attached')) AS tiers,
  ARRAY_SORT(
    COLLECT_LIST(DISTINCT status || ': ' || COALESCE(reason, 'no reason recorded')) FILTER(WHERE
      status <> 'attached')
  ) AS reasons
FROM coverage
WHERE
  NOT status IN ('demoted', 'paused')
GROUP BY
  layer
ORDER BY
  ARRAY_POSITION(ARRAY('app', 'netcdf', 'pnetcdf', 'hdf5', 'mpiio', 'mpi', 'stdio', 'syscall', 'vfs', 'fs', 'block'), layer) NULLS LAST;

CREATE OR REPLACE TEMPORARY VIEW v_tracing AS
WITH datasets_costs AS (
  SELECT
    host,
    SUBSTRING(filename, 1, LENGTH(filename) - INSTR(REVERSE(filename), '/') + 1) AS dir,
    MAX(value) FILTER(WHERE
      name = 'hooks_ns') AS hooks_ns,
    MAX(value) FILTER(WHERE
      name = 'tracing_ns') AS tracing_ns,
    MAX(value) FILTER(WHERE
      name = 'held_ns') AS held_ns
  FROM parts_metrics
  GROUP BY
    host,
    dir
), costs AS (
  SELECT
    host,
    SUM(hooks_ns) AS hooks_ns,
    SUM(tracing_ns) AS tracing_ns,
    SUM(held_ns) AS held_ns
  FROM datasets_costs
  GROUP BY
    host
), lasted AS (
  SELECT
    host,
    MAX(t_ns) - MIN(t_ns) AS run_ns
  FROM metrics
  WHERE
    name = 'tracing_ns'
  GROUP BY
    host
), counted AS (
  SELECT
    host,
    COUNT(*) AS calls
  FROM spans
  WHERE
    flags & 512 = 0
  GROUP BY
    host
  UNION ALL
  SELECT
    host,
    SUM(calls + nested_calls)
  FROM file_rollup
  WHERE
    layer <> 'block' AND (
      calls_error IS NULL OR dur_ns > 0
    )
  GROUP BY
    host
), made AS (
  SELECT
    host,
    SUM(calls) AS calls
  FROM counted
  GROUP BY
    host
)
SELECT
  c.host,
  CASE WHEN l.run_ns > 0 THEN c.tracing_ns / l.run_ns ELSE 0 END AS share,
  c.tracing_ns / 1e9 AS seconds,
  c.hooks_ns / m.calls AS ns_per_call,
  COALESCE(c.held_ns, 0) / 1e9 AS held_seconds
FROM costs AS c
LEFT JOIN lasted AS l
  ON l.host = c.host
LEFT JOIN made AS m
  ON m.host = c.host
WHERE
  NOT c.tracing_ns IS NULL
ORDER BY
  c.host NULLS LAST;

CREATE OR REPLACE TEMPORARY VIEW estimated_calls AS
SELECT
  host,
  layer,
  op,
  kind,
  process_ix,
  pid,
  rank,
  file_id,
  calls,
  calls_error,
  CASE WHEN kind IN ('read', 'write') THEN req_bytes END AS req_bytes,
  CASE WHEN kind IN ('read', 'write') THEN bytes END AS bytes
FROM file_rollup
WHERE
  NOT calls_error IS NULL
  AND NOT host IN (
    SELECT
      host
    FROM meta
    WHERE
      key = 'aggregate'
  );

CREATE OR REPLACE TEMPORARY VIEW demoted_calls AS
SELECT
  *
FROM estimated_calls
WHERE
  layer <> 'mpi';

CREATE OR REPLACE TEMPORARY VIEW v_layers AS
WITH recorded AS (
  SELECT
    layer,
    COUNT(*) FILTER(WHERE
      layer_top) AS calls,
    COUNT(*) FILTER(WHERE
      NOT layer_top) AS nested_calls,
    COALESCE(SUM(layer_ns) FILTER(WHERE
      layer_top), 0) AS inclusive_ns,
    SUM(self_ns) AS exclusive_ns,
    SUM(self_ns) / CAST(NULLIF(SUM(SUM(self_ns)) OVER (), 0) AS DOUBLE) AS exclusive_share,
    SUM(req_bytes) FILTER(WHERE
      layer_top AND kind IN ('read', 'write')) AS asked,
    SUM(bytes) FILTER(WHERE
      layer_top AND kind IN ('read', 'write')) AS moved,
    COUNT(*) FILTER(WHERE
      layer_top AND kind IN ('read', 'write') AND bytes IS NULL AND errno = 0) AS moved_unknown_calls,
    COUNT(*) FILTER(WHERE
      layer_top AND errno <> 0) AS errors
  FROM spans
  GROUP BY
    layer
), more AS (
  SELECT
    layer,
    SUM(calls) AS calls,
    SUM(req_bytes) AS asked,
    SUM(bytes) AS moved
  FROM estimated_calls
  GROUP BY
    layer
)
SELECT
  t.layer,
  CAST((
    t.calls + COALESCE(m.calls, 0)
  ) AS BIGINT) AS calls,
  t.nested_calls,
  t.inclusive_ns,
  t.exclusive_ns,
  t.exclusive_share,
  CASE WHEN m.asked IS NULL THEN t.asked ELSE COALESCE(t.asked, 0) + m.asked END AS asked,
  CASE WHEN m.moved IS NULL THEN t.moved ELSE COALESCE(t.moved, 0) + m.moved END AS moved,
  t.moved_unknown_calls,
  t.errors
FROM recorded AS t
LEFT JOIN more AS m
  ON m.layer = t.layer
ORDER BY
  ARRAY_POSITION(ARRAY('app', 'netcdf', 'pnetcdf', 'hdf5', 'mpiio', 'mpi', 'stdio', 'syscall', 'vfs', 'fs', 'block'), t.layer) NULLS LAST;

CREATE OR REPLACE TEMPORARY VIEW v_ops AS
WITH recorded AS (
  SELECT
    layer,
    op,
    ANY_VALUE(kind) IGNORE NULLS AS kind,
    COUNT(*) AS calls,
    COUNT(*) FILTER(WHERE
      NOT layer_top) AS nested_calls,
    COALESCE(SUM(layer_ns) FILTER(WHERE
      layer_top), 0) AS inclusive_ns,
    SUM(self_ns) AS exclusive_ns,
    SUM(self_ns) / CAST(NULLIF(SUM(SUM(self_ns)) OVER (), 0) AS DOUBLE) AS exclusive_share,
    SUM(req_bytes) FILTER(WHERE
      layer_top AND kind IN ('read', 'write')) AS asked,
    SUM(bytes) FILTER(WHERE
      layer_top AND kind IN ('read', 'write')) AS moved,
    COUNT(*) FILTER(WHERE
      errno <> 0) AS errors,
    MIN(net_ns) AS min_ns,
    AVG(net_ns) AS mean_ns,
    STDDEV_SAMP(net_ns) AS stddev_ns,
    MAX(net_ns) AS max_ns
  FROM spans
  GROUP BY
    layer,
    op
), widths AS (
  SELECT
    layer,
    op,
    net_ns,
    CAST(POWER(2, GREATEST(FLOOR(LOG(2, GREATEST(net_ns, 1))) - 5, 0)) AS BIGINT) AS width
  FROM spans
), buckets AS (
  SELECT
    layer,
    op,
    net_ns DIV width * width + (
      width - 1
    ) DIV 2 AS middle,
    COUNT(*) AS calls
  FROM widths
  GROUP BY ALL
), counted AS (
  SELECT
    layer,
    op,
    middle,
    SUM(calls) OVER (PARTITION BY layer, op ORDER BY middle NULLS LAST) AS up_to,
    CAST(SUM(calls) OVER (PARTITION BY layer, op) AS DOUBLE) AS calls
  FROM buckets
), percentiles AS (
  SELECT
    layer,
    op,
    MIN(middle) FILTER(WHERE
      up_to >= CEIL(calls * CAST(0.5 AS DOUBLE))) AS p50_ns,
    MIN(middle) FILTER(WHERE
      up_to >= CEIL(calls * CAST(0.99 AS DOUBLE))) AS p99_ns
  FROM counted
  GROUP BY
    layer,
    op
), more AS (
  SELECT
    layer,
    op,
    SUM(calls) AS calls,
    SUM(req_bytes) AS asked,
    SUM(bytes) AS moved
  FROM estimated_calls
  GROUP BY
    layer,
    op
)
SELECT
  t.layer,
  t.op,
  t.kind,
  CAST((
    t.calls + COALESCE(m.calls, 0)
  ) AS BIGINT) AS calls,
  t.nested_calls,
  t.inclusive_ns,
  t.exclusive_ns,
  t.exclusive_share,
  CASE WHEN m.asked IS NULL THEN t.asked ELSE COALESCE(t.asked, 0) + m.asked END AS asked,
  CASE WHEN m.moved IS NULL THEN t.moved ELSE COALESCE(t.moved, 0) + m.moved END AS moved,
  t.errors,
  t.min_ns,
  t.mean_ns,
  t.stddev_ns,
  LEAST(GREATEST(p.p50_ns, t.min_ns), t.max_ns) AS p50_ns,
  LEAST(GREATEST(p.p99_ns, t.min_ns), t.max_ns) AS p99_ns,
  t.max_ns
FROM recorded AS t
JOIN percentiles AS p
  ON p.layer = t.layer AND p.op = t.op
LEFT JOIN more AS m
  ON m.layer = t.layer AND m.op = t.op
ORDER BY
  t.exclusive_ns DESC;

CREATE OR REPLACE TEMPORARY VIEW v_waiting AS
WITH calls AS (
  SELECT
    op,
    1 AS calls,
    cpu_ns AS cpu,
    runq_ns AS runq,
    throttle_ns AS throttle,
    lock_ns AS lock,
    writeback_ns AS writeback,
    journal_ns AS journal,
    flush_ns AS flush,
    devqueue_ns AS devqueue,
    device_ns AS device,
    remote_ns AS remote,
    sleep_ns AS sleep
  FROM spans
  WHERE
    layer = 'syscall' AND layer_top AND NOT cpu_ns IS NULL AND flags & 512 = 0
  UNION ALL
  SELECT
    op,
    calls,
    cpu_ns,
    runq_ns,
    wait_ns,
    lock_ns,
    0,
    0,
    0,
    0,
    0,
    0,
    GREATEST(dur_ns - cpu_ns - runq_ns - wait_ns - lock_ns, 0)
  FROM file_rollup
  WHERE
    layer = 'syscall' AND calls_error IS NULL
), ops AS (
  SELECT
    op,
    SUM(calls) AS calls,
    SUM(cpu) AS cpu,
    SUM(runq) AS runq,
    SUM(throttle) AS throttle,
    SUM(lock) AS lock,
    SUM(writeback) AS writeback,
    SUM(journal) AS journal,
    SUM(flush) AS flush,
    SUM(devqueue) AS devqueue,
    SUM(device) AS device,
    SUM(remote) AS remote,
    SUM(sleep) AS sleep
  FROM calls
  GROUP BY
    op
), parts AS (
  SELECT
    op,
    calls,
    part,
    CASE part
      WHEN 'cpu'
      THEN cpu
      WHEN 'runq'
      THEN runq
      WHEN 'throttle'
      THEN throttle
      WHEN 'lock'
      THEN lock
      WHEN 'writeback'
      THEN writeback
      WHEN 'journal'
      THEN journal
      WHEN 'flush'
      THEN flush
      WHEN 'devqueue'
      THEN devqueue
      WHEN 'device'
      THEN device
      WHEN 'remote'
      THEN remote
      WHEN 'sleep'
      THEN sleep
    END AS ns
  FROM ops
  CROSS JOIN VALUES
    ('cpu'),
    ('runq'),
    ('throttle'),
    ('lock'),
    ('writeback'),
    ('journal'),
    ('flush'),
    ('devqueue'),
    ('device'),
    ('remote'),
    ('sleep') AS names(part)
), ranked AS (
  SELECT
    part,
    op,
    calls,
    ns,
    SUM(ns) OVER (PARTITION BY part) AS part_ns,
    SUM(ns) OVER () AS all_ns,
    ROW_NUMBER() OVER (PARTITION BY part ORDER BY ns DESC, op NULLS LAST) AS nth
  FROM parts
)
SELECT
  part,
  CAST(part_ns AS BIGINT) AS ns,
  part_ns / CAST(all_ns AS DOUBLE) AS share,
  op,
  CAST(ns AS BIGINT) AS op_ns,
  CAST(calls AS BIGINT) AS op_calls
FROM ranked
WHERE
  nth = 1 AND part_ns > 0
ORDER BY
  ns DESC;

CREATE OR REPLACE TEMPORARY VIEW v_own AS
WITH RECURSIVE phases AS (
  SELECT
    host,
    span_id
  FROM spans
  WHERE
    parent_id IS NULL AND layer = 'app' AND kind = 'other'
  UNION ALL
  SELECT
    s.host,
    s.span_id
  FROM spans AS s
  JOIN phases AS p
    ON s.host IS NOT DISTINCT FROM p.host AND s.parent_id = p.span_id
  WHERE
    s.layer = 'app' AND s.kind = 'other'
)
SELECT
  *
FROM spans
WHERE
  (
    layer <> 'app' OR kind <> 'other'
  ) AND parent_id IS NULL
UNION ALL
SELECT
  s.*
FROM spans AS s
JOIN phases AS p
  ON s.host IS NOT DISTINCT FROM p.host AND s.parent_id = p.span_id
WHERE
  s.layer <> 'app' OR s.kind <> 'other';

CREATE OR REPLACE TEMPORARY VIEW v_inside AS
WITH RECURSIVE below AS (
  SELECT
    host,
    span_id,
    span_id AS call_id,
    layer AS called
  FROM v_own
  WHERE
    NOT parent_id IS NULL
  UNION ALL
  SELECT
    s.host,
    s.span_id,
    b.call_id,
    b.called
  FROM spans AS s
  JOIN below AS b
    ON s.host IS NOT DISTINCT FROM b.host AND s.parent_id = b.span_id
)
SELECT
  s.host,
  s.span_id,
  s.root_id AS call_id,
  r.layer AS called
FROM spans AS s
JOIN (
  SELECT
    *
  FROM v_own
  WHERE
    parent_id IS NULL
) AS r
  ON s.host IS NOT DISTINCT FROM r.host AND s.root_id = r.span_id
UNION ALL
SELECT
  *
FROM below;

CREATE OR REPLACE TEMPORARY VIEW v_asked AS
WITH RECURSIVE opaque AS (
  SELECT
    host,
    span_id
  FROM v_own
  WHERE
    op IN ('io_submit', 'io_uring_enter')
    OR (
      kind IN ('read', 'write') AND COALESCE(req_bytes, bytes) IS NULL AND errno = 0
    )
  UNION ALL
  SELECT
    s.host,
    s.span_id
  FROM spans AS s
  JOIN opaque AS o
    ON s.host IS NOT DISTINCT FROM o.host AND s.parent_id = o.span_id
  WHERE
    (
      s.layer = 'app' AND s.kind = 'other'
    )
    OR s.op IN ('io_submit', 'io_uring_enter')
    OR (
      s.kind IN ('read', 'write')
      AND COALESCE(s.req_bytes, s.bytes) IS NULL
      AND s.errno = 0
    )
), calls AS (
  SELECT
    *,
    COALESCE(req_bytes, bytes) AS asked
  FROM v_own
  WHERE
    kind IN ('read', 'write')
  UNION ALL
  SELECT
    s.*,
    COALESCE(s.req_bytes, s.bytes)
  FROM spans AS s
  JOIN opaque AS o
    ON s.host IS NOT DISTINCT FROM o.host AND s.parent_id = o.span_id
  WHERE
    s.kind IN ('read', 'write') AND NOT COALESCE(s.req_bytes, s.bytes) IS NULL
)
SELECT
  *
FROM calls
UNION ALL
SELECT
  s.*,
  COALESCE(s.req_bytes, s.bytes)
FROM spans AS s
JOIN calls AS c
  ON s.host IS NOT DISTINCT FROM c.host AND s.parent_id = c.span_id
WHERE
  s.op IN ('copy_file_range.read', 'sendfile.read', 'splice.read', 'tee.read');

CREATE OR REPLACE TEMPORARY VIEW v_amplification AS
WITH parts AS (
  SELECT
    0 AS step,
    'asked' AS layer,
    kind,
    COUNT(*) AS calls,
    SUM(asked) AS bytes,
    COUNT(*) FILTER(WHERE
      asked IS NULL AND errno = 0) AS unknown_calls
  FROM v_asked
  GROUP BY
    kind
  UNION ALL
  SELECT
    0,
    'asked',
    kind,
    SUM(calls),
    SUM(req_bytes),
    0
  FROM demoted_calls
  GROUP BY
    kind
  UNION ALL
  SELECT
    ARRAY_POSITION(ARRAY('app', 'netcdf', 'pnetcdf', 'hdf5', 'mpiio', 'mpi', 'stdio', 'syscall', 'vfs', 'fs', 'block'), layer),
    layer,
    kind,
    COUNT(*),
    SUM(bytes),
    COUNT(*) FILTER(WHERE
      bytes IS NULL AND errno = 0)
  FROM spans
  WHERE
    layer_top AND kind IN ('read', 'write')
  GROUP BY
    layer,
    kind
  UNION ALL
  SELECT
    ARRAY_POSITION(ARRAY('app', 'netcdf', 'pnetcdf', 'hdf5', 'mpiio', 'mpi', 'stdio', 'syscall', 'vfs', 'fs', 'block'), layer),
    layer,
    kind,
    SUM(calls),
    SUM(bytes),
    0
  FROM demoted_calls
  GROUP BY
    layer,
    kind
), steps AS (
  SELECT
    step,
    layer,
    kind,
    CAST(SUM(calls) AS BIGINT) AS calls,
    SUM(bytes) AS bytes,
    CAST(SUM(unknown_calls) AS BIGINT) AS unknown_calls
  FROM parts
  GROUP BY
    step,
    layer,
    kind
  UNION ALL
  SELECT
    11,
    'block',
    op,
    COUNT(*),
    SUM(CASE WHEN status = 0 THEN bytes ELSE 0 END),
    0
  FROM block
  WHERE
    op IN ('read', 'write') AND upper_dev IS NULL AND NOT status IS NULL
  GROUP BY
    op
)
SELECT
  kind,
  layer,
  calls,
  bytes,
  unknown_calls,
  bytes / CAST(NULLIF(MAX(bytes) FILTER(WHERE
    layer = 'asked') OVER (PARTITION BY kind), 0) AS DOUBLE) AS to_asked
FROM steps
ORDER BY
  kind NULLS LAST,
  step NULLS LAST;

CREATE OR REPLACE TEMPORARY VIEW v_amplification_by_called AS
WITH inside AS (
  SELECT
    *
  FROM v_inside
), requests AS (
  SELECT
    l.host,
    l.root_id,
    l.span_id,
    l.how,
    l.bytes,
    b.op,
    BOOL_OR(l.how = 'writeback') OVER (PARTITION BY l.host, l.req_id) AS written
  FROM block_links AS l
  JOIN block AS b
    USING (host, req_id)
  WHERE
    b.op IN ('read', 'write') AND b.status = 0 AND b.upper_dev IS NULL
), linked AS (
  SELECT
    r.*,
    COALESCE(i.called, root.called, s.layer) AS called
  FROM requests AS r
  LEFT JOIN inside AS i
    ON i.host IS NOT DISTINCT FROM r.host AND i.span_id = r.span_id
  LEFT JOIN inside AS root
    ON root.host IS NOT DISTINCT FROM r.host AND root.span_id = r.root_id
  LEFT JOIN spans AS s
    ON s.host IS NOT DISTINCT FROM r.host AND s.span_id = r.span_id
), parts AS (
  SELECT
    called,
    0 AS step,
    'asked' AS layer,
    kind,
    COUNT(*) AS calls,
    SUM(asked) AS bytes,
    COUNT(*) FILTER(WHERE
      asked IS NULL AND errno = 0) AS unknown_calls
  FROM v_asked
  JOIN inside
    USING (host, span_id)
  GROUP BY
    called,
    kind
  UNION ALL
  SELECT
    layer,
    0,
    'asked',
    kind,
    SUM(calls),
    SUM(req_bytes),
    0
  FROM demoted_calls
  GROUP BY
    layer,
    kind
  UNION ALL
  SELECT
    layer,
    ARRAY_POSITION(ARRAY('app', 'netcdf', 'pnetcdf', 'hdf5', 'mpiio', 'mpi', 'stdio', 'syscall', 'vfs', 'fs', 'block'), layer),
    layer,
    kind,
    SUM(calls),
    SUM(bytes),
    0
  FROM demoted_calls
  GROUP BY
    layer,
    kind
  UNION ALL
  SELECT
    called,
    ARRAY_POSITION(ARRAY('app', 'netcdf', 'pnetcdf', 'hdf5', 'mpiio', 'mpi', 'stdio', 'syscall', 'vfs', 'fs', 'block'), layer),
    layer,
    kind,
    COUNT(*),
    SUM(bytes),
    COUNT(*) FILTER(WHERE
      bytes IS NULL AND errno = 0)
  FROM spans
  JOIN inside
    USING (host, span_id)
  WHERE
    layer_top AND kind IN ('read', 'write')
  GROUP BY
    called,
    layer,
    kind
), steps AS (
  SELECT
    called,
    step,
    layer,
    kind,
    CAST(SUM(calls) AS BIGINT) AS calls,
    SUM(bytes) AS bytes,
    CAST(SUM(unknown_calls) AS BIGINT) AS unknown_calls
  FROM parts
  GROUP BY
    called,
    step,
    layer,
    kind
  UNION ALL
  SELECT
    called,
    11,
    'block',
    op,
    COUNT(*),
    SUM(bytes),
    0
  FROM linked
  WHERE
    NOT called IS NULL AND (
      op = 'read' OR how = 'writeback' OR NOT written
    )
  GROUP BY
    called,
    op
)
SELECT
  kind,
  called,
  layer,
  calls,
  bytes,
  unknown_calls,
  bytes / CAST(NULLIF(MAX(bytes) FILTER(WHERE
    layer = 'asked') OVER (PARTITION BY kind, called), 0) AS DOUBLE) AS to_asked
FROM steps
ORDER BY
  kind NULLS LAST,
  ARRAY_POSITION(ARRAY('app', 'netcdf', 'pnetcdf', 'hdf5', 'mpiio', 'mpi', 'stdio', 'syscall', 'vfs', 'fs', 'block'), called) NULLS LAST,
  step NULLS LAST;

CREATE OR REPLACE TEMPORARY VIEW v_block_classes AS
SELECT
  op,
  class,
  COUNT(*) AS requests,
  SUM(CASE WHEN status = 0 THEN bytes ELSE 0 END) AS bytes,
  COUNT(*) FILTER(WHERE
    status <> 0) AS errors,
  SUM(issue_ns - queue_ns) AS queue_ns,
  SUM(dur_ns) AS device_ns,
  PERCENTILE_DISC(0.5) WITHIN GROUP (ORDER BY dur_ns) AS p50_ns,
  PERCENTILE_DISC(0.99) WITHIN GROUP (ORDER BY dur_ns) AS p99_ns,
  MAX(dur_ns) AS max_ns
FROM block
WHERE
  upper_dev IS NULL AND NOT status IS NULL
GROUP BY
  op,
  class
ORDER BY
  bytes DESC;

CREATE OR REPLACE TEMPORARY VIEW v_devices AS
WITH owned AS (
  SELECT
    host,
    req_id,
    SUM(bytes) FILTER(WHERE
      known_by <> 'none') AS known
  FROM block_bytes
  GROUP BY
    host,
    req_id
), requests AS (
  SELECT
    *,
    CASE WHEN status IS NULL THEN 'unfinished' ELSE op END AS what
  FROM block
)
SELECT
  host,
  ANY_VALUE(device) IGNORE NULLS AS device,
  dev,
  ANY_VALUE(upper_dev) IGNORE NULLS AS upper_dev,
  COUNT(*) FILTER(WHERE
    what = 'read') AS reads,
  SUM(bytes) FILTER(WHERE
    what = 'read') AS bytes_read,
  SUM(merges) FILTER(WHERE
    what = 'read') AS reads_merged,
  COUNT(*) FILTER(WHERE
    what = 'write') AS writes,
  SUM(bytes) FILTER(WHERE
    what = 'write') AS bytes_written,
  SUM(merges) FILTER(WHERE
    what = 'write') AS writes_merged,
  COUNT(*) FILTER(WHERE
    what = 'flush') AS flushes,
  COUNT(*) FILTER(WHERE
    what = 'discard') AS discards,
  SUM(known) FILTER(WHERE
    what = 'write') AS bytes_written_known,
  SUM(splits) AS splits,
  SUM(issue_ns - queue_ns) AS queue_ns,
  SUM(dur_ns) AS device_ns,
  PERCENTILE_DISC(0.99) WITHIN GROUP (ORDER BY dur_ns) AS p99_ns,
  MAX(qdepth) AS max_qdepth,
  COUNT(*) FILTER(WHERE
    status <> 0) AS errors,
  COUNT(*) FILTER(WHERE
    what = 'unfinished') AS unfinished
FROM requests
LEFT JOIN owned
  USING (host, req_id)
GROUP BY
  host,
  dev
ORDER BY
  host NULLS LAST,
  dev NULLS LAST;

CREATE OR REPLACE TEMPORARY VIEW v_files AS
WITH recorded AS (
  SELECT
    s.host,
    s.file_id,
    s.layer,
    COUNT(*) AS calls,
    SUM(s.layer_ns) AS time_ns,
    SUM(s.bytes) FILTER(WHERE
      s.kind = 'read') AS bytes_read,
    SUM(s.bytes) FILTER(WHERE
      s.kind = 'write') AS bytes_written,
    COUNT(*) FILTER(WHERE
      s.kind = 'read') AS reads,
    COUNT(*) FILTER(WHERE
      s.kind = 'write') AS writes,
    COUNT(*) FILTER(WHERE
      s.kind = 'open') AS opens,
    COUNT(*) FILTER(WHERE
      s.kind = 'meta') AS metas,
    COUNT(*) FILTER(WHERE
      s.kind = 'sync') AS syncs,
    COUNT(*) FILTER(WHERE
      s.errno <> 0) AS errors,
    CAST(PERCENTILE_DISC(0.99) WITHIN GROUP (ORDER BY CAST(s.net_ns AS FLOAT)) AS BIGINT) AS p99_ns
  FROM spans AS s
  WHERE
    s.layer_top AND NOT s.file_id IS NULL
  GROUP BY
    s.host,
    s.file_id,
    s.layer
), more AS (
  SELECT
    host,
    file_id,
    layer,
    SUM(calls) AS calls,
    SUM(bytes) FILTER(WHERE
      kind = 'read') AS bytes_read,
    SUM(bytes) FILTER(WHERE
      kind = 'write') AS bytes_written,
    COALESCE(SUM(calls) FILTER(WHERE
      kind = 'read'), 0) AS reads,
    COALESCE(SUM(calls) FILTER(WHERE
      kind = 'write'), 0) AS writes
  FROM demoted_calls
  WHERE
    NOT file_id IS NULL
  GROUP BY
    host,
    file_id,
    layer
)
SELECT
  t.host,
  t.file_id,
  f.path,
  t.layer,
  CAST((
    t.calls + COALESCE(m.calls, 0)
  ) AS BIGINT) AS calls,
  t.time_ns,
  CASE
    WHEN m.bytes_read IS NULL
    THEN t.bytes_read
    ELSE COALESCE(t.bytes_read, 0) + m.bytes_read
  END AS bytes_read,
  CASE
    WHEN m.bytes_written IS NULL
    THEN t.bytes_written
    ELSE COALESCE(t.bytes_written, 0) + m.bytes_written
  END AS bytes_written,
  CAST((
    t.reads + COALESCE(m.reads, 0)
  ) AS BIGINT) AS reads,
  CAST((
    t.writes + COALESCE(m.writes, 0)
  ) AS BIGINT) AS writes,
  t.opens,
  t.metas,
  t.syncs,
  t.errors,
  t.p99_ns
FROM recorded AS t
LEFT JOIN more AS m
  ON m.host IS NOT DISTINCT FROM t.host AND m.file_id = t.file_id AND m.layer = t.layer
LEFT JOIN files AS f
  ON f.host IS NOT DISTINCT FROM t.host AND f.file_id = t.file_id
ORDER BY
  t.time_ns DESC;

CREATE OR REPLACE TEMPORARY VIEW v_failed_lookups AS
SELECT
  s.host,
  CASE
    WHEN p.path LIKE '%/%'
    THEN COALESCE(NULLIF(REGEXP_REPLACE(p.path, '/[^/]*$', ''), ''), '/')
  END AS directory,
  s.errno,
  COUNT(*) AS calls,
  COUNT(DISTINCT s.path_id) AS paths,
  SUM(s.net_ns) AS time_ns
FROM spans AS s
LEFT JOIN paths AS p
  ON p.host IS NOT DISTINCT FROM s.host AND p.path_id = s.path_id
WHERE
  s.layer = 'syscall' AND s.errno <> 0 AND NOT s.path_id IS NULL
GROUP BY
  1,
  2,
  3
ORDER BY
  calls DESC,
  1 NULLS LAST,
  2 NULLS LAST,
  3 NULLS LAST;

CREATE OR REPLACE TEMPORARY VIEW v_bandwidth AS
SELECT
  s.host,
  s.file_id,
  ANY_VALUE(f.path) IGNORE NULLS AS path,
  s.process_ix,
  ANY_VALUE(p.command) IGNORE NULLS AS command,
  s.kind,
  SUM(bytes) AS bytes,
  COUNT(*) AS samples,
  MAX(bytes) AS max_bytes,
  MIN(bytes) AS min_bytes,
  AVG(bytes) AS mean_bytes,
  STDDEV_SAMP(bytes) AS stddev_bytes,
  MAX(bytes * 1e9 / GREATEST(net_ns, 1)) AS max_bps,
  MIN(bytes * 1e9 / GREATEST(net_ns, 1)) AS min_bps,
  AVG(bytes * 1e9 / GREATEST(net_ns, 1)) AS mean_bps,
  STDDEV_SAMP(bytes * 1e9 / GREATEST(net_ns, 1)) AS stddev_bps
FROM spans AS s
LEFT JOIN files AS f
  ON f.host IS NOT DISTINCT FROM s.host AND f.file_id = s.file_id
LEFT JOIN v_commands AS p
  ON p.host IS NOT DISTINCT FROM s.host AND p.process_ix = s.process_ix
WHERE
  layer = 'syscall' AND layer_top AND kind IN ('read', 'write') AND bytes > 0
GROUP BY
  s.host,
  s.file_id,
  s.process_ix,
  s.kind
ORDER BY
  bytes DESC;

CREATE OR REPLACE TEMPORARY VIEW v_ranks AS
WITH calls AS (
  SELECT
    host,
    process_ix,
    pid,
    rank,
    layer,
    CASE WHEN layer_top THEN 1 ELSE 0 END AS calls,
    0 AS own_calls,
    CASE WHEN layer_top AND kind = 'read' THEN bytes END AS bytes_read,
    CASE WHEN layer_top AND kind = 'write' THEN bytes END AS bytes_written,
    CASE WHEN layer_top THEN layer_ns END AS inclusive_ns,
    self_ns AS exclusive_ns,
    0 AS own_inclusive_ns,
    0 AS own_bytes
  FROM spans
  UNION ALL
  SELECT
    host,
    process_ix,
    pid,
    rank,
    layer,
    0,
    1,
    NULL,
    NULL,
    NULL,
    0,
    layer_ns,
    CASE WHEN kind IN ('read', 'write') THEN bytes END
  FROM v_own
  UNION ALL
  SELECT
    host,
    process_ix,
    pid,
    rank,
    layer,
    calls,
    calls,
    CASE WHEN kind = 'read' THEN bytes END,
    CASE WHEN kind = 'write' THEN bytes END,
    0,
    0,
    0,
    0
  FROM demoted_calls
), sums AS (
  SELECT
    host,
    process_ix,
    pid,
    rank,
    layer,
    SUM(calls) AS calls,
    SUM(own_calls) AS own_calls,
    SUM(bytes_read) AS bytes_read,
    SUM(bytes_written) AS bytes_written,
    SUM(inclusive_ns) AS inclusive_ns,
    SUM(exclusive_ns) AS exclusive_ns,
    SUM(own_inclusive_ns) AS own_inclusive_ns,
    SUM(own_bytes) AS own_bytes
  FROM calls
  GROUP BY
    host,
    process_ix,
    pid,
    rank,
    layer
)
SELECT
  COALESCE(p.rank, s.rank) AS rank,
  CASE WHEN COALESCE(p.rank, s.rank) IS NULL THEN s.process_ix END AS process_ix,
  CASE WHEN COALESCE(p.rank, s.rank) IS NULL THEN s.host END AS host,
  ARRAY_SORT(COLLECT_LIST(DISTINCT s.pid)) AS pids,
  MIN(p.command) AS command,
  s.layer,
  CAST(SUM(s.calls) AS BIGINT) AS calls,
  CAST(SUM(s.own_calls) AS BIGINT) AS own_calls,
  COALESCE(SUM(s.bytes_read), 0) AS bytes_read,
  COALESCE(SUM(s.bytes_written), 0) AS bytes_written,
  COALESCE(SUM(s.inclusive_ns), 0) AS inclusive_ns,
  SUM(s.exclusive_ns) AS exclusive_ns,
  COALESCE(SUM(s.own_inclusive_ns), 0) AS own_inclusive_ns,
  COALESCE(SUM(s.own_bytes), 0) AS own_bytes
FROM sums AS s
LEFT JOIN v_commands AS p
  ON p.host IS NOT DISTINCT FROM s.host AND p.process_ix = s.process_ix
GROUP BY
  1,
  2,
  3,
  6
ORDER BY
  1 NULLS LAST,
  3 NULLS LAST,
  2 NULLS LAST,
  ARRAY_POSITION(ARRAY('app', 'netcdf', 'pnetcdf', 'hdf5', 'mpiio', 'mpi', 'stdio', 'syscall', 'vfs', 'fs', 'block'), s.layer) NULLS LAST;

CREATE OR REPLACE TEMPORARY VIEW v_imbalance AS
WITH ranks AS (
  SELECT
    *
  FROM v_ranks
  WHERE
    NOT rank IS NULL
), everyone AS (
  SELECT
    COUNT(DISTINCT rank) AS n
  FROM ranks
), parts AS (
  SELECT
    layer,
    rank,
    exclusive_ns AS ns,
    bytes_read + bytes_written AS bytes
  FROM ranks
  UNION ALL
  SELECT
    'all',
    rank,
    SUM(own_inclusive_ns),
    SUM(own_bytes)
  FROM ranks
  GROUP BY
    rank
)
SELECT
  layer,
  MAX(ns) AS max_ns,
  SUM(ns) / CAST(ANY_VALUE(n) IGNORE NULLS AS DOUBLE) AS mean_ns,
  MAX(ns) * ANY_VALUE(n) IGNORE NULLS / CAST(NULLIF(SUM(ns), 0) AS DOUBLE) AS time_max_to_mean,
  MAX(bytes) * ANY_VALUE(n) IGNORE NULLS / CAST(NULLIF(SUM(bytes), 0) AS DOUBLE) AS bytes_max_to_mean,
  MAX_BY(rank, (ns, -rank)) AS slowest
FROM parts, everyone
WHERE
  n > 1
GROUP BY
  layer
ORDER BY
  COALESCE(ARRAY_POSITION(ARRAY('app', 'netcdf', 'pnetcdf', 'hdf5', 'mpiio', 'mpi', 'stdio', 'syscall', 'vfs', 'fs', 'block'), layer), 0) NULLS LAST;

CREATE OR REPLACE TEMPORARY VIEW v_phases AS
WITH RECURSIVE inside AS (
  SELECT
    host,
    span_id AS phase_id,
    op AS phase,
    span_id,
    op,
    layer,
    kind,
    FALSE AS in_app
  FROM spans
  WHERE
    layer = 'app' AND kind = 'other'
  UNION ALL
  SELECT
    i.host,
    i.phase_id,
    i.phase,
    s.span_id,
    s.op,
    s.layer,
    s.kind,
    i.in_app OR (
      i.layer = 'app' AND i.kind <> 'other'
    )
  FROM spans AS s
  JOIN inside AS i
    ON s.host IS NOT DISTINCT FROM i.host AND s.parent_id = i.span_id
), nested AS (
  SELECT
    host,
    span_id
  FROM inside
  WHERE
    span_id <> phase_id AND op = phase AND layer = 'app' AND kind = 'other'
), phases AS (
  SELECT
    op AS phase,
    COUNT(*) AS calls,
    COUNT(*) FILTER(WHERE
      flags & 64 <> 0) AS unfinished_calls,
    COALESCE(SUM(net_ns) FILTER(WHERE
      n.span_id IS NULL), 0) AS inclusive_ns,
    SUM(self_ns) AS exclusive_ns
  FROM spans AS s
  LEFT JOIN (
    SELECT DISTINCT
      host,
      span_id
    FROM nested
  ) AS n
    ON n.host IS NOT DISTINCT FROM s.host AND n.span_id = s.span_id
  WHERE
    layer = 'app' AND kind = 'other'
  GROUP BY
    op
), held AS (
  SELECT
    phase,
    host,
    span_id,
    BOOL_AND(in_app) AS in_app
  FROM inside
  WHERE
    layer <> 'app' OR kind <> 'other'
  GROUP BY
    phase,
    host,
    span_id
), layers AS (
  SELECT
    h.phase,
    s.layer,
    COUNT(*) AS layer_calls,
    SUM(s.bytes) FILTER(WHERE
      s.kind = 'read') AS bytes_read,
    SUM(s.bytes) FILTER(WHERE
      s.kind = 'write') AS bytes_written,
    COUNT(*) FILTER(WHERE
      s.kind IN ('read', 'write') AND s.bytes IS NULL AND s.errno = 0) AS unknown_calls,
    SUM(s.layer_ns) AS time_ns
  FROM held AS h
  JOIN spans AS s
    USING (host, span_id)
  WHERE
    s.layer_top OR (
      s.layer = 'app' AND NOT h.in_app
    )
  GROUP BY
    h.phase,
    s.layer
)
SELECT
  p.phase AS op,
  calls,
  unfinished_calls,
  inclusive_ns,
  exclusive_ns,
  layer,
  layer_calls,
  bytes_read,
  bytes_written,
  unknown_calls,
  time_ns
FROM phases AS p
LEFT JOIN layers AS l
  ON l.phase = p.phase
ORDER BY
  inclusive_ns DESC,
  op NULLS LAST,
  ARRAY_POSITION(ARRAY('app', 'netcdf', 'pnetcdf', 'hdf5', 'mpiio', 'mpi', 'stdio', 'syscall', 'vfs', 'fs', 'block'), layer) NULLS LAST;

CREATE OR REPLACE TEMPORARY VIEW v_slowest AS
WITH RECURSIVE calls AS (
  SELECT
    host,
    span_id,
    parent_id,
    layer,
    op,
    net_ns,
    start_ns,
    dur_ns,
    pid,
    tid,
    rank,
    bytes,
    errno,
    file_id,
    object_id,
    process_ix
  FROM v_own
  WHERE
    flags & 4 = 0
  ORDER BY
    net_ns DESC,
    host NULLS LAST,
    span_id NULLS LAST
  LIMIT 50
), below AS (
  SELECT
    s.host,
    s.span_id,
    s.span_id AS call_id,
    s.op,
    s.layer,
    s.self_ns,
    s.start_ns,
    s.dur_ns
  FROM spans AS s
  JOIN calls AS c
    ON c.host IS NOT DISTINCT FROM s.host AND c.span_id = s.span_id
  WHERE
    NOT c.parent_id IS NULL
  UNION ALL
  SELECT
    s.host,
    s.span_id,
    b.call_id,
    s.op,
    s.layer,
    s.self_ns,
    s.start_ns,
    s.dur_ns
  FROM spans AS s
  JOIN below AS b
    ON b.host IS NOT DISTINCT FROM s.host AND b.span_id = s.parent_id
), inside AS (
  SELECT
    s.host,
    s.span_id,
    c.span_id AS call_id,
    s.op,
    s.layer,
    s.self_ns,
    s.start_ns,
    s.dur_ns
  FROM spans AS s
  JOIN calls AS c
    ON c.host IS NOT DISTINCT FROM s.host AND c.span_id = s.root_id
  WHERE
    c.parent_id IS NULL
  UNION ALL
  SELECT
    *
  FROM below
)
SELECT
  r.host,
  r.span_id AS root_id,
  r.layer,
  r.op,
  r.net_ns,
  r.start_ns,
  r.pid,
  r.tid,
  r.rank,
  r.bytes,
  r.errno,
  ANY_VALUE(f.path) IGNORE NULLS AS path,
  ANY_VALUE(o.name) IGNORE NULLS AS object,
  ANY_VALUE(p.command) IGNORE NULLS AS command,
  COUNT(*) AS calls,
  MAX_BY(s.op, (s.self_ns, -s.span_id)) AS worst_op,
  MAX_BY(s.layer, (s.self_ns, -s.span_id)) AS worst_layer,
  MAX(s.self_ns) / CAST(NULLIF(r.net_ns, 0) AS DOUBLE) AS worst_share
FROM calls AS r
JOIN inside AS s
  ON s.host IS NOT DISTINCT FROM r.host AND s.call_id = r.span_id
LEFT JOIN files AS f
  ON f.host IS NOT DISTINCT FROM r.host AND f.file_id = r.file_id
LEFT JOIN objects AS o
  ON o.host IS NOT DISTINCT FROM r.host AND o.object_id = r.object_id
LEFT JOIN v_commands AS p
  ON p.host IS NOT DISTINCT FROM r.host AND p.process_ix = r.process_ix
WHERE
  s.start_ns + s.dur_ns <= r.start_ns + r.dur_ns
GROUP BY
  r.host,
  r.span_id,
  r.layer,
  r.op,
  r.net_ns,
  r.start_ns,
  r.pid,
  r.tid,
  r.rank,
  r.bytes,
  r.errno
ORDER BY
  r.net_ns DESC,
  r.host NULLS LAST,
  r.span_id NULLS LAST;

CREATE OR REPLACE TEMPORARY FUNCTION call_tree(call_id BIGINT, node STRING DEFAULT NULL)
RETURNS TABLE (call STRING, layer STRING, start_ns BIGINT, dur_ns BIGINT, self_ns BIGINT, bytes BIGINT, offset BIGINT,
  errno INT, span_id BIGINT) RETURN
WITH top AS (
  SELECT
    *
  FROM spans
  WHERE
    span_id = call_id AND (
      node IS NULL OR host = node
    )
), tree AS (
  SELECT
    s.*,
    s.depth - top.depth AS level
  FROM spans AS s, top
  WHERE
    s.host IS NOT DISTINCT FROM top.host
    AND s.root_id = top.root_id
    AND SHIFTRIGHT(s.span_id, 33) = SHIFTRIGHT(top.span_id, 33)
    AND s.span_id >= top.span_id
    AND s.start_ns + s.dur_ns <= top.start_ns + top.dur_ns
)
SELECT
  REPEAT('  ', level) || op AS call,
  layer,
  start_ns,
  dur_ns,
  self_ns,
  bytes,
  `offset`,
  errno,
  span_id
FROM tree
UNION ALL
SELECT
  'block ' || b.op || ' ' || b.class || ' (' || l.how || ')',
  'block',
  b.issue_ns,
  b.dur_ns,
  NULL,
  l.bytes,
  NULL,
  b.status,
  l.span_id
FROM block_links AS l
JOIN block AS b
  USING (host, req_id)
WHERE
  (
    node IS NULL OR host = node
  )
  AND (
    l.root_id = call_id OR l.span_id IN (
      SELECT
        span_id
      FROM tree
    )
  )
ORDER BY
  start_ns NULLS LAST,
  span_id NULLS LAST;

CREATE OR REPLACE TEMPORARY VIEW v_calls_to_device AS
WITH inside AS (
  SELECT
    *
  FROM v_inside
), below AS (
  SELECT
    host,
    call_id,
    COUNT(*) AS n,
    SUM(bytes) FILTER(WHERE
      kind IN ('read', 'write')) AS b
  FROM spans
  JOIN inside
    USING (host, span_id)
  WHERE
    layer = 'syscall' AND layer_top
  GROUP BY
    host,
    call_id
), requests AS (
  SELECT
    host,
    COALESCE(i.call_id, l.root_id) AS call_id,
    req_id,
    GREATEST(
      SUM(l.bytes) FILTER(WHERE
        how = 'writeback'),
      SUM(l.bytes) FILTER(WHERE
        how <> 'writeback')
    ) AS b
  FROM block_links AS l
  JOIN block AS b
    USING (host, req_id)
  LEFT JOIN inside AS i
    USING (host, span_id)
  WHERE
    b.upper_dev IS NULL AND l.how <> 'discard'
  GROUP BY
    1,
    2,
    req_id
), device AS (
  SELECT
    host,
    call_id,
    COUNT(*) AS n,
    SUM(b) AS b
  FROM requests
  GROUP BY
    host,
    call_id
)
SELECT
  r.layer,
  r.op,
  COUNT(*) AS calls,
  SUM(r.bytes) AS bytes,
  SUM(below.n) AS syscalls,
  SUM(below.b) AS syscall_bytes,
  SUM(device.n) AS requests,
  SUM(device.b) AS device_bytes
FROM v_own AS r
LEFT JOIN below
  ON below.host IS NOT DISTINCT FROM r.host AND below.call_id = r.span_id
LEFT JOIN device
  ON device.host IS NOT DISTINCT FROM r.host AND device.call_id = r.span_id
GROUP BY
  r.layer,
  r.op
ORDER BY
  calls DESC;

CREATE OR REPLACE TEMPORARY VIEW v_rpc AS
SELECT
  r.host,
  r.client_span_id,
  c.op AS client_op,
  c.pid AS client_pid,
  c.dur_ns AS client_ns,
  f.path,
  r.rpc_id,
  r.protocol,
  r.op AS request,
  r.`offset`,
  r.req_bytes,
  r.bytes,
  r.errno,
  r.received_ns,
  r.dur_ns AS served_ns,
  r.server_pid,
  s.span_id AS server_span_id,
  s.layer AS server_layer,
  s.op AS server_op,
  s.`offset` AS server_offset,
  s.bytes AS server_bytes,
  s.dur_ns AS server_ns,
  s.errno AS server_errno,
  s.file_id AS server_file_id
FROM rpc AS r
LEFT JOIN spans AS c
  ON c.host IS NOT DISTINCT FROM r.host AND c.span_id = r.client_span_id
LEFT JOIN files AS f
  ON f.host IS NOT DISTINCT FROM c.host AND f.file_id = c.file_id
LEFT JOIN spans AS s
  ON s.span_id BETWEEN r.first_span_id AND r.last_span_id
  AND s.host >= r.host
  AND s.host <= r.host
ORDER BY
  r.host NULLS LAST,
  r.rpc_id NULLS LAST,
  s.span_id NULLS LAST;

CREATE OR REPLACE TEMPORARY VIEW v_servers AS
SELECT
  s.host,
  m.server,
  m.fstype,
  m.path AS mount,
  s.kind,
  COUNT(*) AS calls,
  CAST(COALESCE(SUM(s.bytes), 0) AS BIGINT) AS bytes,
  CAST(SUM(s.net_ns) AS BIGINT) AS time_ns,
  CAST(COALESCE(SUM(s.remote_ns), 0) AS BIGINT) AS remote_ns,
  MAX(s.net_ns) AS max_ns,
  COUNT(DISTINCT s.file_id) AS files
FROM spans AS s
JOIN files AS f
  ON f.host IS NOT DISTINCT FROM s.host AND f.file_id = s.file_id
JOIN mounts AS m
  ON m.host IS NOT DISTINCT FROM s.host AND m.mount_id = f.mount_id
WHERE
  s.layer = 'syscall' AND s.layer_top AND NOT m.server IS NULL
GROUP BY
  s.host,
  m.server,
  m.fstype,
  m.path,
  s.kind
ORDER BY
  time_ns DESC,
  s.host NULLS LAST,
  m.server NULLS LAST,
  m.path NULLS LAST,
  s.kind NULLS LAST;

CREATE OR REPLACE TEMPORARY VIEW v_clocks AS
WITH opens AS (
  SELECT
    s.host,
    s.coll_id,
    COALESCE(s.rank, -1 - s.process_ix) AS member,
    s.start_ns + d.t0_wall_ns AS came,
    s.start_ns + s.dur_ns + d.t0_wall_ns AS went
  FROM (
    SELECT
      *,
      SUBSTRING(filename, 1, LENGTH(filename) - INSTR(REVERSE(filename), '/') + 1) AS dir
    FROM parts_spans
    WHERE
      op = 'MPI_File_open' AND NOT coll_id IS NULL AND errno = 0 AND flags & 64 = 0
  ) AS s
  JOIN datasets AS d
    USING (dir)
), runs AS (
  SELECT
    *,
    ROW_NUMBER() OVER (PARTITION BY host, coll_id, member ORDER BY came NULLS LAST) AS run,
    COUNT(*) OVER (PARTITION BY host, coll_id, member) AS times
  FROM opens
), even AS (
  SELECT
    host,
    coll_id,
    MIN(times) AS times
  FROM runs
  GROUP BY
    host,
    coll_id
  HAVING
    MIN(times) = MAX(times)
), stays AS (
  SELECT
    host,
    coll_id,
    times,
    run,
    MAX(came) AS came,
    MIN(went) AS went
  FROM runs
  JOIN even
    USING (host, coll_id, times)
  GROUP BY
    host,
    coll_id,
    times,
    run
), shared AS (
  SELECT
    coll_id,
    times,
    run,
    MIN(host) AS first
  FROM stays
  GROUP BY
    coll_id,
    times,
    run
  HAVING
    COUNT(*) > 1
), first AS (
  SELECT
    COALESCE(
      (
        SELECT
          MIN(first)
        FROM shared
      ),
      (
        SELECT
          MIN(host)
        FROM datasets
      )
    ) AS host
), bounds AS (
  SELECT
    s.host,
    MAX(r.came - s.went) AS least_ns,
    MIN(r.went - s.came) AS most_ns,
    COUNT(*) AS calls
  FROM stays AS r
  JOIN first AS f
    ON r.host = f.host
  JOIN stays AS s
    ON s.coll_id = r.coll_id AND s.times = r.times AND s.run = r.run
  WHERE
    s.host <> r.host
  GROUP BY
    s.host
)
SELECT
  h.host,
  COALESCE(
    CASE
      WHEN least_ns > most_ns OR (
        least_ns <= 0 AND most_ns >= 0
      )
      THEN 0
      ELSE least_ns + CAST(FLOOR((
        most_ns - least_ns
      ) / 2) AS BIGINT)
    END,
    0
  ) AS offset_ns,
  least_ns,
  most_ns,
  COALESCE(calls, 0) AS calls,
  CASE
    WHEN h.host IS NOT DISTINCT FROM f.host
    THEN 'reference'
    WHEN calls IS NULL
    THEN 'wall'
    WHEN least_ns > most_ns
    THEN 'contradiction'
    WHEN least_ns <= 0 AND most_ns >= 0
    THEN 'wall'
    ELSE 'calls'
  END AS how
FROM (
  SELECT DISTINCT
    host
  FROM datasets
) AS h
CROSS JOIN first AS f
LEFT JOIN bounds AS b
  ON b.host IS NOT DISTINCT FROM h.host
ORDER BY
  h.host NULLS LAST;

CREATE OR REPLACE TEMPORARY VIEW v_spans AS
SELECT
  s.*
  EXCEPT (filename, file_row_number, dir, start_ns),
  s.start_ns + d.later_ns AS start_ns,
  s.start_ns + d.t0_wall_ns + c.offset_ns AS wall_ns
FROM (
  SELECT
    *,
    SUBSTRING(filename, 1, LENGTH(filename) - INSTR(REVERSE(filename), '/') + 1) AS dir
  FROM parts_spans
) AS s
JOIN datasets AS d
  ON d.dir = s.dir
JOIN v_clocks AS c
  ON c.host IS NOT DISTINCT FROM s.host;

CREATE OR REPLACE TEMPORARY VIEW v_collectives AS
WITH RECURSIVE calls AS (
  SELECT
    s.*,
    ROW_NUMBER() OVER (
      PARTITION BY host, coll_id, COALESCE(rank, -1 - process_ix)
      ORDER BY wall_ns NULLS LAST
    ) AS run
  FROM v_spans AS s
  WHERE
    NOT coll_id IS NULL
), tops AS (
  SELECT
    host,
    span_id AS call,
    span_id
  FROM calls
  UNION ALL
  SELECT
    w.host,
    w.async_id,
    w.span_id
  FROM spans AS w
  JOIN calls AS c
    ON c.host IS NOT DISTINCT FROM w.host AND c.span_id = w.async_id
  WHERE
    w.kind = 'wait' AND w.coll_id IS NULL
), below AS (
  SELECT
    *
  FROM tops
  UNION ALL
  SELECT
    b.host,
    b.call,
    s.span_id
  FROM below AS b
  JOIN spans AS s
    ON s.host IS NOT DISTINCT FROM b.host AND s.parent_id = b.span_id
), io AS (
  SELECT
    b.host,
    b.call,
    COUNT(*) AS n,
    COALESCE(SUM(s.bytes), 0) AS bytes,
    BOOL_OR(s.file_id = c.file_id) AS aggregates
  FROM below AS b
  JOIN spans AS s
    USING (host, span_id)
  JOIN calls AS c
    ON c.host IS NOT DISTINCT FROM b.host AND c.span_id = b.call
  WHERE
    s.layer = 'syscall' AND s.kind IN ('read', 'write')
  GROUP BY
    b.host,
    b.call
)
SELECT
  c.coll_id,
  c.run,
  ANY_VALUE(c.op) IGNORE NULLS AS op,
  ANY_VALUE(f.path) IGNORE NULLS AS path,
  ANY_VALUE(h.comm_size) IGNORE NULLS AS comm_size,
  ANY_VALUE(h.comm_ranks) IGNORE NULLS AS comm_ranks,
  COUNT(*) AS ranks,
  MIN(c.wall_ns) AS first_wall_ns,
  MAX(c.wall_ns) AS last_wall_ns,
  MAX(c.wall_ns) - MIN(c.wall_ns) AS first_waits_ns,
  MAX_BY(c.rank, (c.wall_ns, -c.rank)) FILTER(WHERE
    NOT c.rank IS NULL) AS last_rank,
  MAX_BY(c.rank, (c.dur_ns, -c.rank)) FILTER(WHERE
    NOT c.rank IS NULL) AS slowest_rank,
  MAX(c.dur_ns) AS slowest_ns,
  SUM(c.req_bytes) FILTER(WHERE
    c.kind IN ('read', 'write')) AS asked,
  SUM(c.bytes) FILTER(WHERE
    c.kind IN ('read', 'write')) AS moved,
  COALESCE(SUM(io.n), 0) AS syscalls,
  COALESCE(SUM(io.bytes), 0) AS syscall_bytes,
  COUNT(*) FILTER(WHERE
    io.aggregates) AS aggregators,
  ARRAY_SORT(
    COLLECT_LIST(
      STRUCT(c.rank AS rank, COALESCE(io.n, 0) AS syscalls, COALESCE(io.bytes, 0) AS bytes)
    )
  ) AS by_rank
FROM calls AS c
LEFT JOIN io
  ON io.host IS NOT DISTINCT FROM c.host AND io.call = c.span_id
LEFT JOIN handles AS h
  ON h.host IS NOT DISTINCT FROM c.host AND h.handle_id = c.handle_id
LEFT JOIN files AS f
  ON f.host IS NOT DISTINCT FROM c.host AND f.file_id = c.file_id
GROUP BY
  c.coll_id,
  c.run
ORDER BY
  first_wall_ns NULLS LAST;

CREATE OR REPLACE TEMPORARY VIEW errno_names AS
SELECT
  CAST(errno AS SMALLINT) AS errno,
  ELEMENT_AT(names, errno) AS error
FROM (
  SELECT
    EXPLODE(
      IF((
        SIZE(names) + 1 - 1
      ) < 1, ARRAY(), SEQUENCE(1, (
        SIZE(names) + 1 - 1
      )))
    ) AS errno,
    names
  FROM (
    SELECT
      ARRAY(
        'EPERM',
        'ENOENT',
        'ESRCH',
        'EINTR',
        'EIO',
        'ENXIO',
        'E2BIG',
        'ENOEXEC',
        'EBADF',
        'ECHILD',
        'EAGAIN',
        'ENOMEM',
        'EACCES',
        'EFAULT',
        'ENOTBLK',
        'EBUSY',
        'EEXIST',
        'EXDEV',
        'ENODEV',
        'ENOTDIR',
        'EISDIR',
        'EINVAL',
        'ENFILE',
        'EMFILE',
        'ENOTTY',
        'ETXTBSY',
        'EFBIG',
        'ENOSPC',
        'ESPIPE',
        'EROFS',
        'EMLINK',
        'EPIPE',
        'EDOM',
        'ERANGE',
        'EDEADLK',
        'ENAMETOOLONG',
        'ENOLCK',
        'ENOSYS',
        'ENOTEMPTY',
        'ELOOP',
        NULL,
        'ENOMSG',
        'EIDRM',
        'ECHRNG',
        'EL2NSYNC',
        'EL3HLT',
        'EL3RST',
        'ELNRNG',
        'EUNATCH',
        'ENOCSI',
        'EL2HLT',
        'EBADE',
        'EBADR',
        'EXFULL',
        'ENOANO',
        'EBADRQC',
        'EBADSLT',
        NULL,
        'EBFONT',
        'ENOSTR',
        'ENODATA',
        'ETIME',
        'ENOSR',
        'ENONET',
        'ENOPKG',
        'EREMOTE',
        'ENOLINK',
        'EADV',
        'ESRMNT',
        'ECOMM',
        'EPROTO',
        'EMULTIHOP',
        'EDOTDOT',
        'EBADMSG',
        'EOVERFLOW',
        'ENOTUNIQ',
        'EBADFD',
        'EREMCHG',
        'ELIBACC',
        'ELIBBAD',
        'ELIBSCN',
        'ELIBMAX',
        'ELIBEXEC',
        'EILSEQ',
        'ERESTART',
        'ESTRPIPE',
        'EUSERS',
        'ENOTSOCK',
        'EDESTADDRREQ',
        'EMSGSIZE',
        'EPROTOTYPE',
        'ENOPROTOOPT',
        'EPROTONOSUPPORT',
        'ESOCKTNOSUPPORT',
        'EOPNOTSUPP',
        'EPFNOSUPPORT',
        'EAFNOSUPPORT',
        'EADDRINUSE',
        'EADDRNOTAVAIL',
        'ENETDOWN',
        'ENETUNREACH',
        'ENETRESET',
        'ECONNABORTED',
        'ECONNRESET',
        'ENOBUFS',
        'EISCONN',
        'ENOTCONN',
        'ESHUTDOWN',
        'ETOOMANYREFS',
        'ETIMEDOUT',
        'ECONNREFUSED',
        'EHOSTDOWN',
        'EHOSTUNREACH',
        'EALREADY',
        'EINPROGRESS',
        'ESTALE',
        'EUCLEAN',
        'ENOTNAM',
        'ENAVAIL',
        'EISNAM',
        'EREMOTEIO',
        'EDQUOT',
        'ENOMEDIUM',
        'EMEDIUMTYPE',
        'ECANCELED',
        'ENOKEY',
        'EKEYEXPIRED',
        'EKEYREVOKED',
        'EKEYREJECTED',
        'EOWNERDEAD',
        'ENOTRECOVERABLE',
        'ERFKILL',
        'EHWPOISON'
      ) AS names
  )
);

CREATE OR REPLACE TEMPORARY VIEW v_errors AS
SELECT
  c.host,
  c.layer,
  c.op,
  c.errno,
  COALESCE(n.error, CASE WHEN c.errno < 0 THEN 'failed' ELSE 'errno ' || c.errno END) AS error,
  c.path,
  c.command,
  COUNT(*) AS calls,
  SUM(c.net_ns) AS time_ns,
  MIN(c.start_ns) AS first_ns,
  MAX(c.start_ns) AS last_ns
FROM v_calls AS c
LEFT JOIN errno_names AS n
  ON n.errno = c.errno
WHERE
  c.errno <> 0 AND c.layer_top
GROUP BY
  c.host,
  c.layer,
  c.op,
  c.errno,
  n.error,
  c.path,
  c.command
ORDER BY
  calls DESC,
  c.host NULLS LAST,
  c.layer NULLS LAST,
  c.op NULLS LAST,
  error NULLS LAST,
  c.path NULLS LAST,
  c.command NULLS LAST;

CREATE OR REPLACE TEMPORARY VIEW v_small_io AS
SELECT
  host,
  file_id,
  ANY_VALUE(path) IGNORE NULLS AS path,
  command,
  layer,
  op,
  kind,
  COUNT(*) AS calls,
  COUNT(*) FILTER(WHERE
    bytes < 4096) AS small_calls,
  AVG(CASE WHEN bytes < 4096 THEN 1 ELSE 0 END) AS small_share,
  SUM(bytes) FILTER(WHERE
    bytes < 4096) AS small_bytes,
  SUM(net_ns) FILTER(WHERE
    bytes < 4096) AS small_ns,
  SUM(net_ns) AS time_ns
FROM v_calls
WHERE
  layer_top AND kind IN ('read', 'write') AND NOT bytes IS NULL
GROUP BY
  host,
  file_id,
  command,
  layer,
  op,
  kind
HAVING
  COUNT(*) FILTER(WHERE
    bytes < 4096) > 0
ORDER BY
  small_calls DESC,
  host NULLS LAST,
  file_id NULLS LAST,
  command NULLS LAST,
  layer NULLS LAST,
  op NULLS LAST;

CREATE OR REPLACE TEMPORARY VIEW v_metadata AS
WITH ops AS (
  SELECT
    host,
    command,
    kind,
    op,
    COUNT(*) AS calls,
    COUNT(*) FILTER(WHERE
      errno <> 0) AS errors,
    COUNT(DISTINCT path) FILTER(WHERE
      NOT kind IN ('read', 'write')) AS files,
    SUM(net_ns) AS time_ns
  FROM v_calls
  WHERE
    layer = 'syscall' AND layer_top
  GROUP BY
    host,
    command,
    kind,
    op
), shares AS (
  SELECT
    *,
    time_ns / CAST(NULLIF(SUM(time_ns) OVER (PARTITION BY host, command), 0) AS DOUBLE) AS share
  FROM ops
)
SELECT
  *
FROM shares
WHERE
  NOT kind IN ('read', 'write')
ORDER BY
  time_ns DESC,
  host NULLS LAST,
  command NULLS LAST,
  op NULLS LAST;

CREATE OR REPLACE TEMPORARY VIEW v_page_cache AS
SELECT
  host,
  file_id,
  ANY_VALUE(path) IGNORE NULLS AS path,
  COUNT(*) FILTER(WHERE
    NOT miss_bytes IS NULL) AS reads,
  SUM(bytes) FILTER(WHERE
    NOT miss_bytes IS NULL) AS bytes_read,
  SUM(miss_bytes) AS miss_bytes,
  SUM(ahead_bytes) AS ahead_bytes,
  COUNT(*) FILTER(WHERE
    miss_bytes = 0) AS hits,
  1 - SUM(miss_bytes) / CAST(NULLIF(SUM(bytes) FILTER(WHERE
    NOT miss_bytes IS NULL), 0) AS DOUBLE) AS hit_share,
  SUM(bytes) FILTER(WHERE
    kind = 'write' AND flags & 8 = 0) AS bytes_written,
  SUM(throttle_ns) AS throttle_ns
FROM v_calls
WHERE
  layer = 'syscall'
  AND layer_top
  AND NOT file_id IS NULL
  AND (
    NOT miss_bytes IS NULL OR (
      kind = 'write' AND flags & 8 = 0
    )
  )
GROUP BY
  host,
  file_id
ORDER BY
  miss_bytes DESC,
  host NULLS LAST,
  file_id NULLS LAST;

CREATE OR REPLACE TEMPORARY VIEW v_file_to_device AS
SELECT
  y.host,
  y.file_id,
  ANY_VALUE(f.path) IGNORE NULLS AS path,
  ANY_VALUE(b.device) IGNORE NULLS AS device,
  b.dev,
  b.op,
  b.class,
  y.known_by,
  COUNT(DISTINCT b.req_id) AS requests,
  SUM(y.bytes) AS bytes,
  SUM(b.issue_ns - b.queue_ns) AS queue_ns,
  SUM(b.dur_ns) AS device_ns
FROM block_bytes AS y
JOIN block AS b
  USING (host, req_id)
LEFT JOIN files AS f
  USING (host, file_id)
WHERE
  b.status = 0
GROUP BY
  y.host,
  y.file_id,
  b.dev,
  b.op,
  b.class,
  y.known_by
ORDER BY
  bytes DESC,
  y.host NULLS LAST,
  y.file_id NULLS LAST,
  b.dev NULLS LAST;

CREATE OR REPLACE TEMPORARY VIEW v_aggregators AS
SELECT
  path,
  op,
  one.rank AS rank,
  COUNT(*) AS collectives,
  COUNT(*) FILTER(WHERE
    one.syscalls > 0) AS aggregated,
  SUM(one.syscalls) AS syscalls,
  SUM(one.bytes) AS bytes
FROM (
  SELECT
    path,
    op,
    EXPLODE(by_rank) AS one
  FROM v_collectives
)
GROUP BY
  path,
  op,
  one.rank
ORDER BY
  path NULLS LAST,
  op NULLS LAST,
  bytes DESC,
  rank NULLS LAST;

CREATE OR REPLACE TEMPORARY VIEW v_waiting_by_file AS
SELECT
  host,
  layer,
  op,
  path,
  command,
  COUNT(*) AS calls,
  SUM(net_ns) AS time_ns,
  SUM(cpu_ns) AS cpu_ns,
  SUM(runq_ns) AS runq_ns,
  SUM(throttle_ns) AS throttle_ns,
  SUM(lock_ns) AS lock_ns,
  SUM(writeback_ns) AS writeback_ns,
  SUM(journal_ns) AS journal_ns,
  SUM(flush_ns) AS flush_ns,
  SUM(devqueue_ns) AS devqueue_ns,
  SUM(device_ns) AS device_ns,
  SUM(remote_ns) AS remote_ns,
  SUM(sleep_ns) AS sleep_ns
FROM v_calls
WHERE
  layer_top AND (
    layer = 'mpi' OR NOT cpu_ns IS NULL
  )
GROUP BY
  host,
  layer,
  op,
  path,
  command
ORDER BY
  time_ns DESC,
  host NULLS LAST,
  layer NULLS LAST,
  op NULLS LAST,
  path NULLS LAST,
  command NULLS LAST;

CREATE OR REPLACE TEMPORARY VIEW v_slow_stacks AS
WITH taken AS (
  SELECT
    host,
    stack_id,
    layer,
    op,
    net_ns,
    dur_ns,
    ROW_NUMBER() OVER (PARTITION BY host, stack_id ORDER BY depth DESC, span_id NULLS LAST) AS nth
  FROM spans
  WHERE
    NOT stack_id IS NULL
)
SELECT
  t.host,
  t.layer,
  t.op,
  s.frames,
  COUNT(*) AS calls,
  CAST(SUM(t.net_ns) AS BIGINT) AS time_ns,
  MAX(t.dur_ns) AS longest_ns
FROM taken AS t
JOIN stacks AS s
  ON s.host IS NOT DISTINCT FROM t.host AND s.stack_id = t.stack_id
WHERE
  t.nth = 1
GROUP BY
  t.host,
  t.layer,
  t.op,
  s.frames
ORDER BY
  time_ns DESC,
  t.host NULLS LAST,
  t.layer NULLS LAST,
  t.op NULLS LAST;

CREATE OR REPLACE TEMPORARY VIEW v_speed AS
WITH compared AS (
  SELECT
    layer,
    op,
    COUNT(*) AS calls,
    COUNT(speed) AS compared,
    CAST(COALESCE(SUM(net_ns) FILTER(WHERE
      NOT speed IS NULL), 0) AS BIGINT) AS time_ns,
    CAST(COALESCE(SUM(usual_ns), 0) AS BIGINT) AS usual_ns,
    COUNT(*) FILTER(WHERE
      speed = 'very slow') AS very_slow_calls,
    CAST(COALESCE(SUM(net_ns) FILTER(WHERE
      speed = 'very slow'), 0) AS BIGINT) AS very_slow_ns,
    COUNT(*) FILTER(WHERE
      speed = 'slow') AS slow_calls,
    CAST(COALESCE(SUM(net_ns) FILTER(WHERE
      speed = 'slow'), 0) AS BIGINT) AS slow_ns,
    COUNT(*) FILTER(WHERE
      speed = 'normal') AS normal_calls,
    CAST(COALESCE(SUM(net_ns) FILTER(WHERE
      speed = 'normal'), 0) AS BIGINT) AS normal_ns,
    COUNT(*) FILTER(WHERE
      speed = 'fast') AS fast_calls,
    CAST(COALESCE(SUM(net_ns) FILTER(WHERE
      speed = 'fast'), 0) AS BIGINT) AS fast_ns,
    COUNT(*) FILTER(WHERE
      speed = 'very fast') AS very_fast_calls,
    CAST(COALESCE(SUM(net_ns) FILTER(WHERE
      speed = 'very fast'), 0) AS BIGINT) AS very_fast_ns
  FROM spans
  WHERE
    layer_top AND layer <> 'app' AND flags & 576 = 0
  GROUP BY
    layer,
    op
), earlier AS (
  SELECT
    label,
    CAST(SUM(value) AS BIGINT) AS earlier_calls
  FROM metrics
  WHERE
    name = 'earlier_calls'
  GROUP BY
    label
)
SELECT
  c.layer,
  c.op,
  c.calls,
  e.earlier_calls,
  c.compared,
  c.time_ns,
  c.usual_ns,
  c.time_ns - c.usual_ns AS extra_ns,
  c.very_slow_calls,
  c.very_slow_ns,
  c.slow_calls,
  c.slow_ns,
  c.normal_calls,
  c.normal_ns,
  c.fast_calls,
  c.fast_ns,
  c.very_fast_calls,
  c.very_fast_ns,
  CONCAT_WS(
    ', ',
    CASE
      WHEN c.very_slow_calls > 2 AND 10 * c.very_slow_calls > c.compared
      THEN 'slow'
    END,
    CASE
      WHEN c.very_fast_calls > 2 AND 10 * c.very_fast_calls > c.compared
      THEN 'fast'
    END,
    CASE WHEN c.calls > 2 * e.earlier_calls THEN 'many' END
  ) AS unusual
FROM compared AS c
LEFT JOIN earlier AS e
  ON e.label = c.layer || ' ' || c.op
WHERE
  c.compared > 0 OR NOT e.earlier_calls IS NULL
ORDER BY
  ABS(c.time_ns - c.usual_ns) DESC,
  ARRAY_POSITION(ARRAY('app', 'netcdf', 'pnetcdf', 'hdf5', 'mpiio', 'mpi', 'stdio', 'syscall', 'vfs', 'fs', 'block'), c.layer) NULLS LAST,
  c.op NULLS LAST;

CREATE OR REPLACE TEMPORARY VIEW v_composition AS
WITH numbered AS (
  SELECT
    *,
    ROW_NUMBER() OVER (
      PARTITION BY host, coll_id, COALESCE(rank, -1 - process_ix)
      ORDER BY start_ns NULLS LAST
    ) AS run
  FROM v_own
), calls AS (
  SELECT
    host,
    span_id AS call_id,
    layer AS called,
    op,
    NOT coll_id IS NULL AS collective,
    coll_id,
    CASE WHEN coll_id IS NULL THEN 0 ELSE run END AS run
  FROM numbered
), inside AS (
  SELECT
    host,
    span_id,
    call_id
  FROM v_inside
  WHERE
    SHIFTRIGHT(span_id, 33) = SHIFTRIGHT(call_id, 33)
), times AS (
  SELECT
    c.called,
    c.op,
    c.collective,
    c.coll_id,
    c.run,
    s.layer,
    s.host,
    SHIFTRIGHT(s.span_id, 33) AS part,
    s.start_ns AS s,
    s.start_ns + s.net_ns AS e,
    CASE WHEN s.kind IN ('read', 'write') THEN s.bytes END AS bytes
  FROM spans AS s
  JOIN inside AS i
    ON i.host IS NOT DISTINCT FROM s.host AND i.span_id = s.span_id
  JOIN calls AS c
    ON c.host IS NOT DISTINCT FROM i.host AND c.call_id = i.call_id
  WHERE
    s.layer_top
  UNION ALL
  SELECT
    c.called,
    c.op,
    c.collective,
    c.coll_id,
    c.run,
    'block',
    b.host,
    CAST(b.dev AS BIGINT),
    b.issue_ns,
    b.issue_ns + b.dur_ns,
    l.bytes
  FROM block_links AS l
  JOIN block AS b
    ON b.host IS NOT DISTINCT FROM l.host AND b.req_id = l.req_id
  JOIN inside AS i
    ON i.host IS NOT DISTINCT FROM l.host AND i.span_id = l.span_id
  JOIN calls AS c
    ON c.host IS NOT DISTINCT FROM i.host AND c.call_id = i.call_id
  WHERE
    b.upper_dev IS NULL
    AND b.status = 0
    AND l.how <> 'writeback'
    AND b.op IN ('read', 'write')
), seen AS (
  SELECT
    *,
    MAX(e) OVER (
      PARTITION BY called, op, collective, coll_id, run, layer, host, part
      ORDER BY s NULLS LAST, e NULLS LAST
      ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING
    ) AS until
  FROM times
), parts AS (
  SELECT
    called,
    op,
    collective,
    coll_id,
    run,
    layer,
    host,
    part,
    COUNT(*) AS calls,
    COALESCE(SUM(bytes), 0) AS bytes,
    SUM(GREATEST(0, e - GREATEST(s, COALESCE(until, s)))) AS ns
  FROM seen
  GROUP BY
    called,
    op,
    collective,
    coll_id,
    run,
    layer,
    host,
    part
), operations AS (
  SELECT
    called,
    op,
    collective,
    coll_id,
    run,
    layer,
    MAX(ns) AS latency_ns,
    COUNT(*) AS parts
  FROM parts
  GROUP BY
    called,
    op,
    collective,
    coll_id,
    run,
    layer
), latency AS (
  SELECT
    called,
    op,
    collective,
    layer,
    SUM(latency_ns) AS latency_ns,
    MAX(parts) AS parts
  FROM operations
  GROUP BY
    called,
    op,
    collective,
    layer
), sides AS (
  SELECT
    called,
    op,
    collective,
    layer,
    host,
    part,
    SUM(calls) AS calls,
    SUM(bytes) AS bytes,
    SUM(ns) AS ns
  FROM parts
  GROUP BY
    called,
    op,
    collective,
    layer,
    host,
    part
), sums AS (
  SELECT
    called,
    op,
    collective,
    layer,
    SUM(calls) AS calls,
    SUM(bytes) AS bytes,
    SUM(ns) AS added_ns,
    SUM(bytes * 1e9 / NULLIF(ns, 0)) AS throughput_bps
  FROM sides
  GROUP BY
    called,
    op,
    collective,
    layer
)
SELECT
  s.called,
  s.op,
  s.collective,
  s.layer,
  CAST(s.calls AS BIGINT) AS calls,
  l.parts,
  CAST(l.latency_ns AS BIGINT) AS latency_ns,
  CAST(s.added_ns AS BIGINT) AS added_ns,
  CAST(s.bytes AS BIGINT) AS bytes,
  s.throughput_bps
FROM sums AS s
JOIN latency AS l
  ON l.called = s.called
  AND l.op = s.op
  AND l.collective = s.collective
  AND l.layer = s.layer
ORDER BY
  ARRAY_POSITION(ARRAY('app', 'netcdf', 'pnetcdf', 'hdf5', 'mpiio', 'mpi', 'stdio', 'syscall', 'vfs', 'fs', 'block'), s.called) NULLS LAST,
  s.op NULLS LAST,
  s.collective NULLS LAST,
  ARRAY_POSITION(ARRAY('app', 'netcdf', 'pnetcdf', 'hdf5', 'mpiio', 'mpi', 'stdio', 'syscall', 'vfs', 'fs', 'block'), s.layer) NULLS LAST;

CREATE OR REPLACE TEMPORARY VIEW v_sizes AS
WITH sized AS (
  SELECT
    layer,
    kind,
    CASE
      WHEN bytes <= 100
      THEN 1
      WHEN bytes <= 1024
      THEN 2
      WHEN bytes <= 10240
      THEN 3
      WHEN bytes <= 102400
      THEN 4
      WHEN bytes <= 1048576
      THEN 5
      WHEN bytes <= 4194304
      THEN 6
      WHEN bytes <= 10485760
      THEN 7
      WHEN bytes <= 104857600
      THEN 8
      WHEN bytes <= 1073741824
      THEN 9
      ELSE 10
    END AS class,
    1 AS calls,
    bytes,
    layer_ns AS time_ns
  FROM spans
  WHERE
    layer_top AND kind IN ('read', 'write') AND bytes >= 0 AND flags & 512 = 0
  UNION ALL
  SELECT
    layer,
    kind,
    class,
    ELEMENT_AT(sizes, class),
    NULL,
    NULL
  FROM file_rollup, (
    SELECT
      EXPLODE(SEQUENCE(1, 10)) AS class
  )
  WHERE
    kind IN ('read', 'write') AND layer <> 'block'
)
SELECT
  layer,
  kind,
  ELEMENT_AT(
    ARRAY(100, 1024, 10240, 102400, 1048576, 4194304, 10485760, 104857600, 1073741824, NULL),
    class
  ) AS at_most,
  CAST(SUM(calls) AS BIGINT) AS calls,
  SUM(bytes) AS bytes,
  SUM(time_ns) AS time_ns
FROM sized
GROUP BY
  layer,
  kind,
  class
HAVING
  SUM(calls) > 0
ORDER BY
  ARRAY_POSITION(ARRAY('app', 'netcdf', 'pnetcdf', 'hdf5', 'mpiio', 'mpi', 'stdio', 'syscall', 'vfs', 'fs', 'block'), layer) NULLS LAST,
  kind NULLS LAST,
  class NULLS LAST;

CREATE OR REPLACE TEMPORARY VIEW v_sequential AS
WITH steps AS (
  SELECT
    host,
    file_id,
    kind,
    start_ns - LAG(start_ns) OVER w AS gap,
    `offset`,
    COALESCE(LAG(`offset` + bytes - 1) OVER w, 0) AS last,
    COALESCE(`offset` - LAG(`offset` + bytes) OVER w, 0) AS jump
  FROM spans
  WHERE
    layer = 'syscall'
    AND layer_top
    AND kind IN ('read', 'write')
    AND bytes > 0
    AND NOT `offset` IS NULL
  WINDOW w AS (
    PARTITION BY host, process_ix, file_id, kind
    ORDER BY start_ns + dur_ns NULLS LAST, span_id NULLS LAST
  )
)
SELECT
  s.host,
  s.file_id,
  ANY_VALUE(f.path) IGNORE NULLS AS path,
  s.kind,
  COUNT(*) AS accesses,
  MEDIAN(gap) AS median_gap_ns,
  AVG(CAST((
    `offset` > last
  ) AS INT)) AS sequential,
  AVG(CAST((
    `offset` = last + 1
  ) AS INT)) AS consecutive,
  AVG(CAST((
    jump <> 0 AND ABS(jump) <= 131072
  ) AS INT)) AS short_jumps,
  AVG(CAST((
    ABS(jump) > 131072
  ) AS INT)) AS long_jumps
FROM steps AS s
LEFT JOIN files AS f
  ON f.host IS NOT DISTINCT FROM s.host AND f.file_id = s.file_id
GROUP BY
  s.host,
  s.file_id,
  s.kind
ORDER BY
  accesses DESC;

CREATE OR REPLACE TEMPORARY VIEW v_handle_pattern AS
WITH viewed AS (
  SELECT DISTINCT
    host,
    handle_id
  FROM spans
  WHERE
    op = 'MPI_File_set_view' AND NOT handle_id IS NULL
), accesses AS (
  SELECT
    host,
    handle_id,
    layer,
    file_id,
    kind,
    bytes,
    `offset` - LAG(`offset` + bytes) OVER (
      PARTITION BY host, handle_id, kind
      ORDER BY start_ns NULLS LAST, span_id NULLS LAST
    ) AS jump,
    LAG(kind) OVER (PARTITION BY host, handle_id ORDER BY start_ns NULLS LAST, span_id NULLS LAST) <> kind AS switched
  FROM spans
  WHERE
    layer_top
    AND kind IN ('read', 'write')
    AND bytes > 0
    AND NOT `offset` IS NULL
    AND NOT handle_id IS NULL
    AND NOT EXISTS(
      SELECT
        *
      FROM viewed AS v
      WHERE
        v.host IS NOT DISTINCT FROM spans.host AND v.handle_id = spans.handle_id
    )
), strides AS (
  SELECT
    host,
    handle_id,
    kind,
    jump AS stride,
    COUNT(*) AS n,
    ROW_NUMBER() OVER (PARTITION BY host, handle_id, kind ORDER BY COUNT(*) DESC, jump NULLS LAST) AS nth
  FROM accesses
  WHERE
    jump > 0
  GROUP BY
    host,
    handle_id,
    kind,
    jump
), top_strides AS (
  SELECT
    host,
    handle_id,
    kind,
    SUM(n) FILTER(WHERE
      nth <= 4 AND n > 1) AS strided,
    MAX(stride) FILTER(WHERE
      nth = 1) AS stride1,
    MAX(n) FILTER(WHERE
      nth = 1) AS stride1_calls,
    MAX(stride) FILTER(WHERE
      nth = 2) AS stride2,
    MAX(n) FILTER(WHERE
      nth = 2) AS stride2_calls,
    MAX(stride) FILTER(WHERE
      nth = 3) AS stride3,
    MAX(n) FILTER(WHERE
      nth = 3) AS stride3_calls,
    MAX(stride) FILTER(WHERE
      nth = 4) AS stride4,
    MAX(n) FILTER(WHERE
      nth = 4) AS stride4_calls
  FROM strides
  GROUP BY
    host,
    handle_id,
    kind
), sizes AS (
  SELECT
    host,
    handle_id,
    kind,
    bytes AS size,
    COUNT(*) AS n,
    ROW_NUMBER() OVER (PARTITION BY host, handle_id, kind ORDER BY COUNT(*) DESC, bytes NULLS LAST) AS nth
  FROM accesses
  GROUP BY
    host,
    handle_id,
    kind,
    bytes
), top_sizes AS (
  SELECT
    host,
    handle_id,
    kind,
    MAX(size) FILTER(WHERE
      nth = 1) AS size1,
    MAX(n) FILTER(WHERE
      nth = 1) AS size1_calls,
    MAX(size) FILTER(WHERE
      nth = 2) AS size2,
    MAX(n) FILTER(WHERE
      nth = 2) AS size2_calls,
    MAX(size) FILTER(WHERE
      nth = 3) AS size3,
    MAX(n) FILTER(WHERE
      nth = 3) AS size3_calls,
    MAX(size) FILTER(WHERE
      nth = 4) AS size4,
    MAX(n) FILTER(WHERE
      nth = 4) AS size4_calls
  FROM sizes
  GROUP BY
    host,
    handle_id,
    kind
), totals AS (
  SELECT
    host,
    handle_id,
    kind,
    ANY_VALUE(layer) IGNORE NULLS AS layer,
    ANY_VALUE(file_id) IGNORE NULLS AS file_id,
    COUNT(*) AS calls,
    SUM(bytes) AS bytes,
    COUNT(jump) AS steps,
    COUNT(*) FILTER(WHERE
      jump = 0) AS consecutive,
    COUNT(*) FILTER(WHERE
      jump >= 0) AS sequential,
    COUNT(*) FILTER(WHERE
      jump < 0) AS random,
    COUNT(*) FILTER(WHERE
      jump <> 0 AND ABS(jump) <= 131072) AS short_jumps,
    COUNT(*) FILTER(WHERE
      ABS(jump) > 131072) AS long_jumps,
    COUNT(*) FILTER(WHERE
      switched) AS switches
  FROM accesses
  GROUP BY
    host,
    handle_id,
    kind
)
SELECT
  host,
  handle_id,
  layer,
  file_id,
  f.path,
  kind,
  CASE
    WHEN steps = 0
    THEN 'single'
    WHEN consecutive >= 0.8 * steps
    THEN 'consecutive'
    WHEN consecutive + COALESCE(strided, 0) >= 0.8 * steps
    THEN 'strided'
    WHEN sequential >= 0.8 * steps
    THEN 'sequential'
    WHEN consecutive <= 0.2 * steps
    THEN 'random'
    ELSE 'mixed'
  END AS pattern,
  calls,
  bytes,
  steps,
  consecutive,
  sequential,
  COALESCE(strided, 0) AS strided,
  random,
  short_jumps,
  long_jumps,
  switches,
  stride1,
  stride1_calls,
  stride2,
  stride2_calls,
  stride3,
  stride3_calls,
  stride4,
  stride4_calls,
  size1,
  size1_calls,
  size2,
  size2_calls,
  size3,
  size3_calls,
  size4,
  size4_calls
FROM totals
LEFT JOIN top_strides
  USING (host, handle_id, kind)
LEFT JOIN top_sizes
  USING (host, handle_id, kind)
LEFT JOIN files AS f
  USING (host, file_id)
ORDER BY
  host NULLS LAST,
  handle_id NULLS LAST,
  kind NULLS LAST;

CREATE OR REPLACE TEMPORARY VIEW v_stdio_flush AS
WITH above AS (
  SELECT
    host,
    handle_id,
    kind,
    COUNT(*) AS calls,
    SUM(bytes) AS bytes,
    COUNT(*) FILTER(WHERE
      bytes IS NULL AND errno = 0) AS unknown_calls
  FROM spans
  WHERE
    layer = 'stdio'
    AND layer_top
    AND kind IN ('read', 'write')
    AND NOT handle_id IS NULL
  GROUP BY
    host,
    handle_id,
    kind
), below AS (
  SELECT
    s.host,
    fd.parent_handle_id AS handle_id,
    s.kind,
    COUNT(*) AS calls,
    SUM(s.bytes) AS bytes
  FROM spans AS s
  JOIN handles AS fd
    ON fd.host IS NOT DISTINCT FROM s.host AND fd.handle_id = s.handle_id
  JOIN handles AS stream
    ON stream.host IS NOT DISTINCT FROM s.host
    AND stream.handle_id = fd.parent_handle_id
  WHERE
    s.layer = 'syscall' AND s.kind IN ('read', 'write') AND stream.layer = 'stdio'
  GROUP BY
    s.host,
    fd.parent_handle_id,
    s.kind
)
SELECT
  host,
  handle_id,
  file_id,
  f.path,
  kind,
  COALESCE(above.calls, 0) AS calls,
  above.bytes AS bytes,
  COALESCE(above.unknown_calls, 0) AS unknown_calls,
  COALESCE(below.calls, 0) AS syscalls,
  below.bytes AS syscall_bytes,
  above.calls / CAST(NULLIF(below.calls, 0) AS DOUBLE) AS calls_per_syscall
FROM above
FULL JOIN below
  USING (host, handle_id, kind)
LEFT JOIN handles AS h
  USING (host, handle_id)
LEFT JOIN files AS f
  USING (host, file_id)
ORDER BY
  calls DESC,
  host NULLS LAST,
  handle_id NULLS LAST,
  kind NULLS LAST;

CREATE OR REPLACE TEMPORARY VIEW v_rereads AS
WITH reads AS (
  SELECT
    host,
    file_id,
    `offset` AS s,
    `offset` + bytes AS e,
    MAX(`offset` + bytes) OVER (
      PARTITION BY host, file_id
      ORDER BY `offset` NULLS LAST, bytes NULLS LAST
      ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING
    ) AS seen
  FROM spans
  WHERE
    layer = 'syscall'
    AND layer_top
    AND kind = 'read'
    AND bytes > 0
    AND NOT `offset` IS NULL
)
SELECT
  r.host,
  r.file_id,
  ANY_VALUE(f.path) IGNORE NULLS AS path,
  SUM(e - s) AS bytes_read,
  SUM(GREATEST(0, e - GREATEST(s, COALESCE(seen, s)))) AS distinct_bytes,
  SUM(e - s) / CAST(NULLIF(SUM(GREATEST(0, e - GREATEST(s, COALESCE(seen, s)))), 0) AS DOUBLE) AS times_read
FROM reads AS r
LEFT JOIN files AS f
  ON f.host IS NOT DISTINCT FROM r.host AND f.file_id = r.file_id
GROUP BY
  r.host,
  r.file_id
ORDER BY
  times_read DESC;

CREATE OR REPLACE TEMPORARY VIEW v_bandwidth_over_time AS
WITH calls AS (
  SELECT
    host,
    layer,
    kind,
    start_ns AS s,
    start_ns + GREATEST(dur_ns, 1) AS e,
    bytes
  FROM spans
  WHERE
    layer_top AND kind IN ('read', 'write') AND bytes > 0
), parts AS (
  SELECT
    host,
    layer,
    kind,
    s,
    e,
    bytes,
    EXPLODE(
      IF(
        (
          (
            e - 1
          ) DIV 100000000 + 1 - 1
        ) < s DIV 100000000,
        ARRAY(),
        SEQUENCE(s DIV 100000000, (
          (
            e - 1
          ) DIV 100000000 + 1 - 1
        ))
      )
    ) AS bin
  FROM calls
)
SELECT
  host,
  layer,
  kind,
  bin * 100000000 AS t_ns,
  10 * SUM(
    bytes * CAST((
      LEAST(e, (
        bin + 1
      ) * 100000000) - GREATEST(s, bin * 100000000)
    ) AS DOUBLE) / (
      e - s
    )
  ) AS bps
FROM parts
GROUP BY
  host,
  layer,
  kind,
  t_ns
ORDER BY
  host NULLS LAST,
  ARRAY_POSITION(ARRAY('app', 'netcdf', 'pnetcdf', 'hdf5', 'mpiio', 'mpi', 'stdio', 'syscall', 'vfs', 'fs', 'block'), layer) NULLS LAST,
  kind NULLS LAST,
  t_ns NULLS LAST;

CREATE OR REPLACE TEMPORARY VIEW v_busy AS
WITH calls AS (
  SELECT
    host,
    layer,
    start_ns AS s,
    start_ns + dur_ns AS e,
    MAX(start_ns + dur_ns) OVER (
      PARTITION BY host, layer
      ORDER BY start_ns NULLS LAST, dur_ns NULLS LAST
      ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING
    ) AS seen
  FROM spans
  WHERE
    layer_top
)
SELECT
  host,
  layer,
  SUM(GREATEST(0, e - GREATEST(s, COALESCE(seen, s)))) AS busy_ns
FROM calls
GROUP BY
  host,
  layer
ORDER BY
  host NULLS LAST,
  ARRAY_POSITION(ARRAY('app', 'netcdf', 'pnetcdf', 'hdf5', 'mpiio', 'mpi', 'stdio', 'syscall', 'vfs', 'fs', 'block'), layer) NULLS LAST;

CREATE OR REPLACE TEMPORARY VIEW file_sums AS
WITH calls AS (
  SELECT
    *,
    layer_top AND kind IN ('read', 'write') AND NOT `offset` IS NULL AND bytes > 0 AS placed,
    CASE WHEN layer IN ('syscall', 'vfs', 'fs') THEN file_id ELSE handle_id END AS subject
  FROM spans
  WHERE
    flags & 512 = 0
), befores AS (
  SELECT
    *,
    CASE
      WHEN placed
      THEN COALESCE(
        LAG(`offset` + bytes - 1) OVER (
          PARTITION BY host, process_ix, layer, subject, placed, kind
          ORDER BY start_ns + dur_ns NULLS LAST, span_id NULLS LAST
        ),
        0
      )
    END AS last,
    CASE
      WHEN placed
      THEN LAG(kind) OVER (
        PARTITION BY host, process_ix, layer, subject, placed
        ORDER BY start_ns + dur_ns NULLS LAST, span_id NULLS LAST
      )
    END AS last_kind
  FROM calls
)
SELECT
  host,
  layer,
  op,
  kind,
  process_ix,
  pid,
  rank,
  file_id,
  object_id,
  calls,
  errors,
  unknown_calls,
  bytes,
  req_bytes,
  dur_ns,
  self_ns,
  max_ns,
  first_ns,
  last_ns,
  end_offset,
  sequential,
  consecutive,
  switches,
  unaligned,
  sizes
FROM file_rollup
UNION ALL
SELECT
  host,
  layer,
  op,
  kind,
  process_ix,
  pid,
  rank,
  file_id,
  object_id,
  COUNT(*) FILTER(WHERE
    layer_top),
  COUNT(*) FILTER(WHERE
    errno <> 0),
  COUNT(*) FILTER(WHERE
    layer_top AND kind IN ('read', 'write') AND bytes IS NULL AND errno = 0),
  COALESCE(SUM(bytes) FILTER(WHERE
    layer_top), 0),
  COALESCE(SUM(req_bytes) FILTER(WHERE
    layer_top), 0),
  COALESCE(SUM(layer_ns) FILTER(WHERE
    layer_top), 0),
  SUM(self_ns),
  COALESCE(MAX(net_ns) FILTER(WHERE
    layer_top), 0),
  MIN(start_ns) FILTER(WHERE
    layer_top),
  MAX(start_ns + dur_ns) FILTER(WHERE
    layer_top),
  MAX(`offset` + bytes) FILTER(WHERE
    placed),
  COUNT(*) FILTER(WHERE
    `offset` > last),
  COUNT(*) FILTER(WHERE
    `offset` = last + 1),
  COUNT(*) FILTER(WHERE
    kind <> last_kind),
  COUNT(*) FILTER(WHERE
    placed AND `offset` % 4096 <> 0),
  ARRAY(
    COUNT(*) FILTER(WHERE
      layer_top AND bytes <= 100),
    COUNT(*) FILTER(WHERE
      layer_top AND bytes BETWEEN 101 AND 1024),
    COUNT(*) FILTER(WHERE
      layer_top AND bytes BETWEEN 1025 AND 10240),
    COUNT(*) FILTER(WHERE
      layer_top AND bytes BETWEEN 10241 AND 102400),
    COUNT(*) FILTER(WHERE
      layer_top AND bytes BETWEEN 102401 AND 1048576),
    COUNT(*) FILTER(WHERE
      layer_top AND bytes BETWEEN 1048577 AND 4194304),
    COUNT(*) FILTER(WHERE
      layer_top AND bytes BETWEEN 4194305 AND 10485760),
    COUNT(*) FILTER(WHERE
      layer_top AND bytes BETWEEN 10485761 AND 104857600),
    COUNT(*) FILTER(WHERE
      layer_top AND bytes BETWEEN 104857601 AND 1073741824),
    COUNT(*) FILTER(WHERE
      layer_top AND bytes > 1073741824)
  )
FROM befores
GROUP BY
  host,
  layer,
  op,
  kind,
  process_ix,
  pid,
  rank,
  file_id,
  object_id;

CREATE OR REPLACE TEMPORARY VIEW frequent AS
WITH calls AS (
  SELECT
    *,
    CASE WHEN layer IN ('syscall', 'vfs', 'fs') THEN file_id ELSE handle_id END AS subject
  FROM spans
  WHERE
    layer_top
    AND kind IN ('read', 'write')
    AND NOT bytes IS NULL
    AND errno = 0
    AND flags & 512 = 0
), befores AS (
  SELECT
    *,
    LAG(`offset` + bytes - 1) OVER (
      PARTITION BY host, process_ix, layer, subject, kind
      ORDER BY start_ns + dur_ns NULLS LAST, span_id NULLS LAST
    ) AS last
  FROM calls
  WHERE
    bytes > 0 AND NOT `offset` IS NULL
), lists AS (
  SELECT
    host,
    layer,
    kind,
    process_ix,
    file_id,
    object_id,
    'size' AS what,
    common_sizes AS those,
    common_size_calls AS counts
  FROM file_rollup
  UNION ALL
  SELECT
    host,
    layer,
    kind,
    process_ix,
    file_id,
    object_id,
    'stride',
    common_strides,
    common_stride_calls
  FROM file_rollup
), numbered AS (
  SELECT
    *,
    EXPLODE(
      IF((
        SIZE(those) + 1 - 1
      ) < 1, ARRAY(), SEQUENCE(1, (
        SIZE(those) + 1 - 1
      )))
    ) AS nth
  FROM lists
), all_values AS (
  SELECT
    host,
    layer,
    kind,
    process_ix,
    file_id,
    object_id,
    what,
    ELEMENT_AT(those, nth) AS value,
    ELEMENT_AT(counts, nth) AS calls
  FROM numbered
  UNION ALL
  SELECT
    host,
    layer,
    kind,
    process_ix,
    file_id,
    object_id,
    'size',
    bytes,
    1
  FROM calls
  UNION ALL
  SELECT
    host,
    layer,
    kind,
    process_ix,
    file_id,
    object_id,
    'stride',
    `offset` - last - 1,
    1
  FROM befores
  WHERE
    last > 0 AND `offset` > last + 1
)
SELECT
  host,
  layer,
  kind,
  process_ix,
  file_id,
  object_id,
  what,
  value,
  SUM(calls) AS calls
FROM all_values
GROUP BY ALL;

CREATE OR REPLACE TEMPORARY VIEW darshan AS
WITH modules AS (
  SELECT
    *
    EXCEPT (pid, rank),
    MAX(pid) OVER (PARTITION BY host, process_ix) AS pid,
    MAX(rank) OVER (PARTITION BY host, process_ix) AS rank,
    CASE layer
      WHEN 'syscall'
      THEN 'POSIX'
      WHEN 'stdio'
      THEN 'STDIO'
      WHEN 'mpiio'
      THEN 'MPIIO'
      WHEN 'hdf5'
      THEN IF(object_id IS NULL, 'H5F', 'H5D')
      WHEN 'pnetcdf'
      THEN IF(object_id IS NULL, 'PNETCDF_FILE', 'PNETCDF_VAR')
      WHEN 'netcdf'
      THEN IF(object_id IS NULL, 'NETCDF_FILE', 'NETCDF_VAR')
    END AS module,
    CASE
      WHEN layer <> 'mpiio'
      THEN ''
      WHEN op LIKE '%_begin' OR op LIKE '%_end'
      THEN 'SPLIT_'
      WHEN op LIKE 'MPI_File_i%'
      THEN 'NB_'
      WHEN op LIKE '%_all'
      OR op LIKE '%_ordered'
      OR op IN ('MPI_File_open', 'MPI_File_close')
      THEN 'COLL_'
      ELSE 'INDEP_'
    END AS way,
    CASE
      WHEN layer IN ('mpiio', 'stdio')
      THEN kind IN ('write', 'sync')
      WHEN layer = 'syscall'
      THEN kind = 'write'
      OR op IN ('fsync', 'fdatasync')
      OR op LIKE '%.fsync'
      OR op LIKE '%.fdsync'
      OR op LIKE '%.fdatasync'
      ELSE kind = 'write'
    END AS writes,
    CASE
      WHEN layer = 'mpiio'
      THEN kind IN ('open', 'close')
      WHEN layer = 'stdio'
      THEN kind IN ('open', 'close', 'seek')
      WHEN layer = 'syscall'
      THEN kind IN ('open', 'close', 'seek')
      OR op IN ('dup', 'dup2', 'dup3')
      OR op LIKE 'rename%'
      OR kind = 'meta'
      AND op LIKE '%stat%'
      AND op NOT LIKE '%statfs%'
      ELSE kind IN ('open', 'close', 'sync') OR op LIKE '%redef' OR op LIKE '%enddef'
    END AS describes
  FROM file_sums
  WHERE
    layer IN ('syscall', 'stdio', 'mpiio', 'hdf5', 'pnetcdf', 'netcdf')
    AND NOT file_id IS NULL
), counted AS (
  SELECT
    host,
    module,
    process_ix,
    ANY_VALUE(pid) IGNORE NULLS AS pid,
    ANY_VALUE(rank) IGNORE NULLS AS rank,
    file_id,
    object_id,
    ARRAY(
      STRUCT(
        way || 'OPENS' AS name,
        CAST(SUM(calls) FILTER(WHERE
          kind = 'open') AS DOUBLE) AS value
      ),
      STRUCT(way || 'READS' AS name, SUM(calls) FILTER(WHERE
        kind = 'read') AS value),
      STRUCT(way || 'WRITES' AS name, SUM(calls) FILTER(WHERE
        kind = 'write') AS value),
      STRUCT('SEEKS' AS name, SUM(calls) FILTER(WHERE
        kind = 'seek') AS value),
      STRUCT('MMAPS' AS name, SUM(calls) FILTER(WHERE
        op = 'mmap') AS value),
      STRUCT(
        'STATS' AS name,
        SUM(calls) FILTER(WHERE
          module = 'POSIX' AND op LIKE '%stat%' AND op NOT LIKE '%statfs%' AND kind = 'meta') AS value
      ),
      STRUCT(
        CASE module WHEN 'POSIX' THEN 'FSYNCS' WHEN 'MPIIO' THEN 'SYNCS' ELSE 'FLUSHES' END AS name,
        SUM(calls) FILTER(WHERE
          kind = 'sync' AND (
            module <> 'POSIX' OR op = 'fsync' OR op LIKE '%.fsync'
          )) AS value
      ),
      STRUCT(
        'FDSYNCS' AS name,
        SUM(calls) FILTER(WHERE
          op IN ('fdatasync', 'aio.fdsync')) AS value
      )
    ) AS counters
  FROM modules
  GROUP BY
    host,
    module,
    way,
    process_ix,
    file_id,
    object_id
), summed AS (
  SELECT
    host,
    module,
    process_ix,
    ANY_VALUE(pid) IGNORE NULLS AS pid,
    ANY_VALUE(rank) IGNORE NULLS AS rank,
    file_id,
    object_id,
    ARRAY(
      STRUCT(
        'BYTES_READ' AS name,
        CAST(SUM(bytes) FILTER(WHERE
          kind = 'read') AS DOUBLE) AS value
      ),
      STRUCT('BYTES_WRITTEN' AS name, SUM(bytes) FILTER(WHERE
        kind = 'write') AS value),
      STRUCT(
        'MAX_BYTE_READ' AS name,
        MAX(end_offset - 1) FILTER(WHERE
          kind = 'read') AS value
      ),
      STRUCT(
        'MAX_BYTE_WRITTEN' AS name,
        MAX(end_offset - 1) FILTER(WHERE
          kind = 'write') AS value
      ),
      STRUCT('SEQ_READS' AS name, SUM(sequential) FILTER(WHERE
        kind = 'read') AS value),
      STRUCT('SEQ_WRITES' AS name, SUM(sequential) FILTER(WHERE
        kind = 'write') AS value),
      STRUCT('CONSEC_READS' AS name, SUM(consecutive) FILTER(WHERE
        kind = 'read') AS value),
      STRUCT('CONSEC_WRITES' AS name, SUM(consecutive) FILTER(WHERE
        kind = 'write') AS value),
      STRUCT('RW_SWITCHES' AS name, SUM(switches) AS value),
      STRUCT('FILE_NOT_ALIGNED' AS name, SUM(unaligned) AS value),
      STRUCT(
        'F_OPEN_START_TIMESTAMP' AS name,
        MIN(first_ns) FILTER(WHERE
          kind = 'open') / 1e9 AS value
      ),
      STRUCT(
        'F_READ_START_TIMESTAMP' AS name,
        MIN(first_ns) FILTER(WHERE
          kind = 'read') / 1e9 AS value
      ),
      STRUCT(
        'F_WRITE_START_TIMESTAMP' AS name,
        MIN(first_ns) FILTER(WHERE
          kind = 'write') / 1e9 AS value
      ),
      STRUCT(
        'F_CLOSE_START_TIMESTAMP' AS name,
        MIN(first_ns) FILTER(WHERE
          kind = 'close') / 1e9 AS value
      ),
      STRUCT(
        'F_OPEN_END_TIMESTAMP' AS name,
        MAX(last_ns) FILTER(WHERE
          kind = 'open') / 1e9 AS value
      ),
      STRUCT(
        'F_READ_END_TIMESTAMP' AS name,
        MAX(last_ns) FILTER(WHERE
          kind = 'read') / 1e9 AS value
      ),
      STRUCT(
        'F_WRITE_END_TIMESTAMP' AS name,
        MAX(last_ns) FILTER(WHERE
          kind = 'write') / 1e9 AS value
      ),
      STRUCT(
        'F_CLOSE_END_TIMESTAMP' AS name,
        MAX(last_ns) FILTER(WHERE
          kind = 'close') / 1e9 AS value
      ),
      STRUCT('F_READ_TIME' AS name, SUM(dur_ns) FILTER(WHERE
        kind = 'read') / 1e9 AS value),
      STRUCT('F_WRITE_TIME' AS name, SUM(dur_ns) FILTER(WHERE
        writes) / 1e9 AS value),
      STRUCT('F_META_TIME' AS name, SUM(dur_ns) FILTER(WHERE
        describes) / 1e9 AS value),
      STRUCT(
        'F_MAX_READ_TIME' AS name,
        MAX(max_ns) FILTER(WHERE
          kind = 'read') / 1e9 AS value
      ),
      STRUCT(
        'F_MAX_WRITE_TIME' AS name,
        MAX(max_ns) FILTER(WHERE
          kind = 'write') / 1e9 AS value
      )
    ) AS counters
  FROM modules
  GROUP BY
    host,
    module,
    process_ix,
    file_id,
    object_id
), sized AS (
  SELECT
    host,
    module,
    process_ix,
    ANY_VALUE(pid) IGNORE NULLS AS pid,
    ANY_VALUE(rank) IGNORE NULLS AS rank,
    file_id,
    object_id,
    'SIZE_' || UPPER(kind) || '_' || IF(module = 'POSIX', '', 'AGG_') || ELEMENT_AT(
      ARRAY(
        '0_100',
        '100_1K',
        '1K_10K',
        '10K_100K',
        '100K_1M',
        '1M_4M',
        '4M_10M',
        '10M_100M',
        '100M_1G',
        '1G_PLUS'
      ),
      nth
    ) AS name,
    CAST(SUM(ELEMENT_AT(sizes, nth)) AS DOUBLE) AS value
  FROM (
    SELECT
      *,
      EXPLODE(
        IF((
          SIZE(sizes) + 1 - 1
        ) < 1, ARRAY(), SEQUENCE(1, (
          SIZE(sizes) + 1 - 1
        )))
      ) AS nth
    FROM modules
    WHERE
      kind IN ('read', 'write')
  )
  GROUP BY
    host,
    module,
    process_ix,
    file_id,
    object_id,
    kind,
    nth
), ranked AS (
  SELECT
    *,
    ROW_NUMBER() OVER (
      PARTITION BY host, layer, process_ix, file_id, object_id, what
      ORDER BY calls DESC, value NULLS LAST
    ) AS n,
    IF(what = 'size', 'ACCESS', 'STRIDE') AS word
  FROM (
    SELECT
      host,
      layer,
      process_ix,
      file_id,
      object_id,
      what,
      value,
      SUM(calls) AS calls
    FROM frequent
    GROUP BY ALL
  )
), named AS (
  SELECT DISTINCT
    host,
    layer,
    module,
    process_ix,
    pid,
    rank,
    file_id,
    object_id
  FROM modules
), listed AS (
  SELECT
    host,
    module,
    process_ix,
    pid,
    rank,
    file_id,
    object_id,
    EXPLODE(counters) AS counter
  FROM counted
  UNION ALL
  SELECT
    host,
    module,
    process_ix,
    pid,
    rank,
    file_id,
    object_id,
    EXPLODE(counters)
  FROM summed
  UNION ALL
  SELECT
    m.host,
    m.module,
    m.process_ix,
    m.pid,
    m.rank,
    m.file_id,
    m.object_id,
    EXPLODE(
      ARRAY(
        STRUCT(word || n || '_' || word AS name, CAST(value AS DOUBLE) AS value),
        STRUCT(word || n || '_COUNT' AS name, calls AS value)
      )
    )
  FROM ranked AS f
  JOIN named AS m
    ON m.host IS NOT DISTINCT FROM f.host
    AND m.layer = f.layer
    AND m.process_ix IS NOT DISTINCT FROM f.process_ix
    AND m.file_id = f.file_id
    AND m.object_id IS NOT DISTINCT FROM f.object_id
  WHERE
    n <= 4
), every AS (
  SELECT
    host,
    module,
    process_ix,
    pid,
    rank,
    file_id,
    object_id,
    counter.name AS name,
    counter.value AS value
  FROM listed
  UNION ALL
  SELECT
    host,
    module,
    process_ix,
    pid,
    rank,
    file_id,
    object_id,
    name,
    value
  FROM sized
)
SELECT
  e.host,
  e.module,
  e.rank,
  e.process_ix,
  e.pid,
  e.file_id,
  e.object_id,
  f.path,
  e.module || '_' || e.name AS counter,
  SUM(e.value) AS value
FROM every AS e
LEFT JOIN files AS f
  ON f.host IS NOT DISTINCT FROM e.host AND f.file_id = e.file_id
WHERE
  NOT e.value IS NULL
GROUP BY ALL;

CREATE OR REPLACE TEMPORARY VIEW v_node AS
WITH hardware AS (
  SELECT
    host,
    ' ' || value || ' ' AS names
  FROM meta
  WHERE
    key = 'node_hardware'
), steps AS (
  SELECT
    m.host,
    t_ns,
    name,
    label,
    value,
    COALESCE(
      LOCATE(' ' || SPLIT_PART(label, ' ', 1) || ' ', h.names) > 0,
      label NOT LIKE 'lo %'
    ) AS counts,
    COALESCE(
      GREATEST(
        value - LAG(value) OVER (PARTITION BY m.host, name, label ORDER BY t_ns NULLS LAST, value NULLS LAST),
        0
      ),
      0
    ) AS grown
  FROM metrics AS m
  LEFT JOIN hardware AS h
    ON h.host IS NOT DISTINCT FROM m.host
  WHERE
    STARTSWITH(name, 'node_')
), looks AS (
  SELECT
    host,
    t_ns,
    SUM(grown) FILTER(WHERE
      name = 'node_cpu_seconds' AND label IN ('user', 'nice')) AS cpu_user,
    SUM(grown) FILTER(WHERE
      name = 'node_cpu_seconds' AND label IN ('system', 'irq', 'softirq')) AS cpu_system,
    SUM(grown) FILTER(WHERE
      name = 'node_cpu_seconds' AND label = 'iowait') AS cpu_iowait,
    SUM(grown) FILTER(WHERE
      name = 'node_cpu_seconds' AND label = 'steal') AS cpu_steal,
    SUM(grown) FILTER(WHERE
      name = 'node_cpu_seconds' AND label = 'idle') AS cpu_idle,
    SUM(grown) FILTER(WHERE
      name = 'node_pressure_seconds' AND label = 'cpu some') AS pressure_cpu,
    SUM(grown) FILTER(WHERE
      name = 'node_pressure_seconds' AND label = 'io some') AS pressure_io,
    SUM(grown) FILTER(WHERE
      name = 'node_pressure_seconds' AND label = 'memory some') AS pressure_memory,
    SUM(grown) FILTER(WHERE
      name = 'node_network_bytes' AND counts AND label LIKE '% received') AS network_received_bytes,
    SUM(grown) FILTER(WHERE
      name = 'node_network_bytes' AND counts AND label LIKE '% sent') AS network_sent_bytes,
    SUM(grown) FILTER(WHERE
      name = 'node_device_bytes' AND counts AND label LIKE '% read') AS device_read_bytes,
    SUM(grown) FILTER(WHERE
      name = 'node_device_bytes' AND counts AND label LIKE '% write') AS device_written_bytes,
    SUM(grown) FILTER(WHERE
      name = 'node_device_busy_seconds') AS device_busy,
    MAX(value) FILTER(WHERE
      name = 'node_memory_bytes' AND label = 'total') AS memory_total,
    MAX(value) FILTER(WHERE
      name = 'node_memory_bytes' AND label = 'available') AS memory_available,
    MAX(value) FILTER(WHERE
      name = 'node_memory_bytes' AND label = 'dirty') AS memory_dirty,
    MAX(value) FILTER(WHERE
      name = 'node_memory_bytes' AND label = 'writeback') AS memory_writeback
  FROM steps
  GROUP BY
    host,
    t_ns
), running AS (
  SELECT
    host,
    t_ns,
    SUM(cpu_user) OVER w AS cpu_user,
    SUM(cpu_system) OVER w AS cpu_system,
    SUM(cpu_iowait) OVER w AS cpu_iowait,
    SUM(cpu_steal) OVER w AS cpu_steal,
    SUM(cpu_idle) OVER w AS cpu_idle,
    SUM(pressure_cpu) OVER w AS pressure_cpu,
    SUM(pressure_io) OVER w AS pressure_io,
    SUM(pressure_memory) OVER w AS pressure_memory,
    SUM(network_received_bytes) OVER w AS network_received_bytes,
    SUM(network_sent_bytes) OVER w AS network_sent_bytes,
    SUM(device_read_bytes) OVER w AS device_read_bytes,
    SUM(device_written_bytes) OVER w AS device_written_bytes,
    SUM(device_busy) OVER w AS device_busy,
    LAST_VALUE(memory_total) IGNORE NULLS OVER w AS memory_total,
    LAST_VALUE(memory_available) IGNORE NULLS OVER w AS memory_available,
    LAST_VALUE(memory_dirty) IGNORE NULLS OVER w AS memory_dirty,
    LAST_VALUE(memory_writeback) IGNORE NULLS OVER w AS memory_writeback
  FROM looks
  WINDOW w AS (
    PARTITION BY host
    ORDER BY t_ns NULLS LAST
    ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW
  )
), since AS (
  SELECT
    *,
    LAG(t_ns) OVER v AS before_ns,
    LAG(cpu_user) OVER v AS cpu_user_before,
    LAG(cpu_system) OVER v AS cpu_system_before,
    LAG(cpu_iowait) OVER v AS cpu_iowait_before,
    LAG(cpu_steal) OVER v AS cpu_steal_before,
    LAG(cpu_idle) OVER v AS cpu_idle_before,
    LAG(pressure_cpu) OVER v AS pressure_cpu_before,
    LAG(pressure_io) OVER v AS pressure_io_before,
    LAG(pressure_memory) OVER v AS pressure_memory_before,
    LAG(network_received_bytes) OVER v AS network_received_bytes_before,
    LAG(network_sent_bytes) OVER v AS network_sent_bytes_before,
    LAG(device_read_bytes) OVER v AS device_read_bytes_before,
    LAG(device_written_bytes) OVER v AS device_written_bytes_before,
    LAG(device_busy) OVER v AS device_busy_before
  FROM running
  WINDOW v AS (PARTITION BY host ORDER BY t_ns NULLS LAST)
), places AS (
  SELECT
    *,
    SUM(CASE WHEN t_ns DIV resolution_ns = before_ns DIV resolution_ns THEN 0 ELSE 1 END) OVER (
      PARTITION BY host, resolution_ns
      ORDER BY t_ns NULLS LAST
      ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING
    ) AS point
  FROM since
  CROSS JOIN VALUES
    (100000000),
    (1000000000),
    (10000000000),
    (60000000000),
    (600000000000) AS widths(resolution_ns)
), points AS (
  SELECT
    host,
    resolution_ns,
    point,
    MIN(before_ns) AS from_ns,
    MAX(t_ns) AS to_ns,
    (
      MAX(t_ns) - MIN(before_ns)
    ) / 1e9 AS s,
    MAX(cpu_user) - MIN(cpu_user_before) AS cpu_user,
    MAX(cpu_system) - MIN(cpu_system_before) AS cpu_system,
    MAX(cpu_iowait) - MIN(cpu_iowait_before) AS cpu_iowait,
    MAX(cpu_steal) - MIN(cpu_steal_before) AS cpu_steal,
    MAX(cpu_idle) - MIN(cpu_idle_before) AS cpu_idle,
    MAX(pressure_cpu) - MIN(pressure_cpu_before) AS pressure_cpu,
    MAX(pressure_io) - MIN(pressure_io_before) AS pressure_io,
    MAX(pressure_memory) - MIN(pressure_memory_before) AS pressure_memory,
    MAX(network_received_bytes) - MIN(network_received_bytes_before) AS network_received_bytes,
    MAX(network_sent_bytes) - MIN(network_sent_bytes_before) AS network_sent_bytes,
    MAX(device_read_bytes) - MIN(device_read_bytes_before) AS device_read_bytes,
    MAX(device_written_bytes) - MIN(device_written_bytes_before) AS device_written_bytes,
    MAX(device_busy) - MIN(device_busy_before) AS device_busy,
    MAX(memory_total) AS memory_total,
    AVG(memory_available) AS memory_available,
    AVG(memory_dirty) AS memory_dirty,
    AVG(memory_writeback) AS memory_writeback
  FROM places
  WHERE
    NOT before_ns IS NULL
  GROUP BY
    host,
    resolution_ns,
    point
  HAVING
    MAX(t_ns) - MIN(before_ns) <= 2 * resolution_ns
), by_device AS (
  SELECT
    p.host,
    p.resolution_ns,
    p.point,
    s.label AS device,
    SUM(s.grown) AS busy
  FROM places AS p
  JOIN steps AS s
    ON s.host IS NOT DISTINCT FROM p.host AND s.t_ns = p.t_ns
  WHERE
    s.name = 'node_device_busy_seconds' AND s.grown > 0
  GROUP BY
    p.host,
    p.resolution_ns,
    p.point,
    s.label
), busiest AS (
  SELECT
    host,
    resolution_ns,
    point,
    MAX(busy) AS busy,
    MAX_BY(device, busy) AS device
  FROM by_device
  GROUP BY
    host,
    resolution_ns,
    point
)
SELECT
  p.host,
  p.resolution_ns,
  p.from_ns,
  p.to_ns,
  1 - (
    cpu_idle + COALESCE(cpu_iowait, 0)
  ) / NULLIF(
    cpu_user + cpu_system + cpu_idle + COALESCE(cpu_iowait, 0) + COALESCE(cpu_steal, 0),
    0
  ) AS cpu_busy,
  cpu_user / s AS cpu_user,
  cpu_system / s AS cpu_system,
  cpu_iowait / s AS cpu_iowait,
  cpu_steal / s AS cpu_steal,
  cpu_idle / s AS cpu_idle,
  pressure_cpu / s AS pressure_cpu,
  pressure_io / s AS pressure_io,
  pressure_memory / s AS pressure_memory,
  1 - memory_available / NULLIF(memory_total, 0) AS memory_used,
  memory_available AS memory_available_bytes,
  memory_dirty AS dirty_bytes,
  memory_writeback AS writeback_bytes,
  network_received_bytes / s AS network_received_bytes,
  network_sent_bytes / s AS network_sent_bytes,
  device_read_bytes / s AS device_read_bytes,
  device_written_bytes / s AS device_written_bytes,
  b.device AS busiest_device,
  LEAST(COALESCE(b.busy, 0 * device_busy) / s, 1) AS busiest_share
FROM points AS p
LEFT JOIN busiest AS b
  ON b.host IS NOT DISTINCT FROM p.host
  AND b.resolution_ns = p.resolution_ns
  AND b.point = p.point
ORDER BY
  p.host NULLS LAST,
  p.resolution_ns NULLS LAST,
  p.from_ns NULLS LAST;
