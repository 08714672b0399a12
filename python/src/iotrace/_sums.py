"""What the views of single calls show, of traces with sums (`--aggregate`), added up from the view `file_sums`.

The columns are the same. Columns that sums do not have are null.
"""

LAYERS = """
SELECT layer, sum(calls)::BIGINT AS calls, NULL::BIGINT AS nested_calls, sum(dur_ns) AS inclusive_ns,
       CASE WHEN layer <> 'block' THEN sum(self_ns) END AS exclusive_ns,
       CASE WHEN layer <> 'block' THEN sum(self_ns) / nullif(sum(sum(self_ns)) OVER (), 0)::DOUBLE END
         AS exclusive_share,
       sum(req_bytes) FILTER (kind IN ('read', 'write')) AS asked,
       sum(bytes) FILTER (kind IN ('read', 'write')) AS moved,
       sum(unknown_calls)::BIGINT AS moved_unknown_calls, sum(errors)::BIGINT AS errors
FROM file_sums GROUP BY layer ORDER BY layer_rank(layer)"""

OPS = """
WITH inner_calls AS (SELECT layer, op, sum(nested_calls) AS n
                     FROM file_rollup WHERE layer <> 'block' GROUP BY layer, op)
SELECT layer, op, any_value(kind) AS kind, (sum(calls) + coalesce(any_value(n), 0))::BIGINT AS calls,
       coalesce(any_value(n), 0)::BIGINT AS nested_calls,
       sum(dur_ns) AS inclusive_ns, CASE WHEN layer <> 'block' THEN sum(self_ns) END AS exclusive_ns,
       CASE WHEN layer <> 'block' THEN sum(self_ns) / nullif(sum(sum(self_ns)) OVER (), 0)::DOUBLE END
         AS exclusive_share,
       sum(req_bytes) FILTER (kind IN ('read', 'write')) AS asked,
       sum(bytes) FILTER (kind IN ('read', 'write')) AS moved, sum(errors)::BIGINT AS errors,
       NULL::BIGINT AS min_ns, NULL::DOUBLE AS mean_ns, NULL::DOUBLE AS stddev_ns,
       NULL::BIGINT AS p50_ns, NULL::BIGINT AS p99_ns, max(max_ns) AS max_ns
FROM file_sums LEFT JOIN inner_calls USING (layer, op)
GROUP BY layer, op ORDER BY exclusive_ns DESC NULLS LAST, layer, op"""

FILES = """
SELECT s.host, s.file_id, any_value(f.path) AS path, s.layer, sum(s.calls)::BIGINT AS calls, sum(s.dur_ns) AS time_ns,
       sum(s.bytes) FILTER (s.kind = 'read') AS bytes_read, sum(s.bytes) FILTER (s.kind = 'write') AS bytes_written,
       coalesce(sum(s.calls) FILTER (s.kind = 'read'), 0)::BIGINT AS reads,
       coalesce(sum(s.calls) FILTER (s.kind = 'write'), 0)::BIGINT AS writes,
       coalesce(sum(s.calls) FILTER (s.kind = 'open'), 0)::BIGINT AS opens,
       coalesce(sum(s.calls) FILTER (s.kind = 'meta'), 0)::BIGINT AS metas,
       coalesce(sum(s.calls) FILTER (s.kind = 'sync'), 0)::BIGINT AS syncs,
       sum(s.errors)::BIGINT AS errors, NULL::BIGINT AS p99_ns
FROM file_sums s LEFT JOIN files f ON f.host IS NOT DISTINCT FROM s.host AND f.file_id = s.file_id
WHERE s.file_id IS NOT NULL GROUP BY s.host, s.file_id, s.layer ORDER BY time_ns DESC, s.host, s.file_id, s.layer"""

RANKS = """
SELECT coalesce(p.rank, s.rank) AS rank, CASE WHEN coalesce(p.rank, s.rank) IS NULL THEN s.process_ix END AS process_ix,
       CASE WHEN coalesce(p.rank, s.rank) IS NULL THEN s.host END AS host, list_sort(list(DISTINCT s.pid)) AS pids,
       min(p.command) AS command, s.layer, sum(s.calls)::BIGINT AS calls, NULL::BIGINT AS own_calls,
       coalesce(sum(s.bytes) FILTER (s.kind = 'read'), 0) AS bytes_read,
       coalesce(sum(s.bytes) FILTER (s.kind = 'write'), 0) AS bytes_written,
       sum(s.dur_ns) AS inclusive_ns, CASE WHEN s.layer <> 'block' THEN sum(s.self_ns) END AS exclusive_ns,
       NULL::BIGINT AS own_inclusive_ns, NULL::BIGINT AS own_bytes
FROM file_sums s LEFT JOIN v_commands p ON p.host IS NOT DISTINCT FROM s.host AND p.process_ix = s.process_ix
GROUP BY 1, 2, 3, 6 ORDER BY 1, 3, 2, layer_rank(s.layer)"""
