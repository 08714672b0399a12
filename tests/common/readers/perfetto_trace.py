"""Reads a trace with Perfetto's own messages and compares it with its dataset: python perfetto_trace.py DATASET TRACE

Without a dataset (-) only with itself, and prints the names of its processes."""
import collections, glob, os, sys
import duckdb
from google.protobuf import unknown_fields
from perfetto.protos.perfetto.trace import perfetto_trace_pb2 as protos

dataset, path = sys.argv[1:]
trace = protos.Trace()
trace.ParseFromString(open(path, "rb").read())

def known(message):
    """All fields are Perfetto's."""
    assert not len(unknown_fields.UnknownFieldSet(message)), message
    for field, value in message.ListFields():
        if field.message_type:
            for inner in value if field.is_repeated else [value]:
                known(inner)


known(trace)

interned = {name: {} for name in (
    "event_categories", "event_names", "debug_annotation_names", "debug_annotation_string_values")}
tracks, events, clocks, defaults, cleared = {}, [], [], None, False
for packet in trace.packet:
    assert packet.trusted_packet_sequence_id == 1
    if packet.HasField("clock_snapshot"):
        clocks.append({clock.clock_id: clock.timestamp for clock in packet.clock_snapshot.clocks})
        primary = packet.clock_snapshot.primary_trace_clock
    if packet.HasField("trace_packet_defaults"):
        defaults = packet.trace_packet_defaults.timestamp_clock_id
    cleared |= bool(packet.sequence_flags & protos.TracePacket.SEQ_INCREMENTAL_STATE_CLEARED)
    for kind, names in interned.items():
        for entry in getattr(packet.interned_data, kind):
            assert entry.iid not in names, (kind, entry)
            names[entry.iid] = entry.str.decode() if kind == "debug_annotation_string_values" else entry.name
    if packet.HasField("track_descriptor"):
        descriptor = packet.track_descriptor
        assert descriptor.uuid not in tracks and descriptor.parent_uuid in {0, *tracks}
        tracks[descriptor.uuid] = descriptor
    if packet.HasField("track_event"):
        # A name may be used from its packet on, and not before.
        event = packet.track_event
        assert cleared and packet.sequence_flags & protos.TracePacket.SEQ_NEEDS_INCREMENTAL_STATE
        assert event.track_uuid in tracks
        notes = {}
        for note in event.debug_annotations:
            value = note.int_value
            if note.HasField("string_value_iid"):
                value = interned["debug_annotation_string_values"][note.string_value_iid]
            notes[interned["debug_annotation_names"][note.name_iid]] = value
        category = [interned["event_categories"][iid] for iid in event.category_iids]
        name = interned["event_names"][event.name_iid] if event.name_iid else None
        events.append((packet.timestamp, event, name, category, notes))

# As Perfetto: by time, what is equal in the order of the file. Each track begins and ends its slices like brackets.
events.sort(key=lambda event: event[0])
open_slices, slices, flows = collections.defaultdict(list), [], collections.Counter()
for at, event, name, category, notes in events:
    stack = open_slices[event.track_uuid]
    if event.type == protos.TrackEvent.TYPE_SLICE_BEGIN:
        stack.append(len(slices))
        slices.append([event.track_uuid, at, None, name, category[0], notes, len(stack)])
        assert len(event.flow_ids) <= 1
        flows.update(event.flow_ids)
        flows.update(event.terminating_flow_ids)
    elif event.type == protos.TrackEvent.TYPE_SLICE_END:
        assert stack, f"an end without a begin on {tracks[event.track_uuid]}"
        slices[stack.pop()][2] = at
    elif event.type == protos.TrackEvent.TYPE_INSTANT:
        assert dataset == "-"
    else:
        assert event.type == protos.TrackEvent.TYPE_COUNTER and tracks[event.track_uuid].HasField("counter")
assert not any(open_slices.values()), "a begin without an end"
assert all(n >= 2 for n in flows.values()), flows
if dataset == "-":
    names = sorted({track.process.process_name for track in tracks.values() if track.HasField("process")})
    print(len(slices), *names, sep="\n")
    sys.exit()

db = duckdb.connect()
db.execute("SET VARIABLE iotrace_dir = ?", [dataset])
os.chdir(dataset)
if os.path.exists("views.sql"):
    db.execute(open("views.sql").read())
else:
    # A dataset of an earlier version, whose tables are as they are.
    for table in {name.rsplit("-", 1)[0] for name in glob.glob("*.parquet")}:
        db.execute(f"CREATE VIEW {table} AS FROM read_parquet('{table}-*.parquet', union_by_name = true)")
    db.execute("""CREATE OR REPLACE VIEW files AS
        SELECT host, file_id, arg_max(path, (filename, file_row_number)) AS path
        FROM read_parquet('files-*.parquet', filename = true, file_row_number = true) GROUP BY ALL""")
    db.execute("CREATE VIEW v_bandwidth_over_time AS SELECT '' AS layer, '' AS kind, 0 AS t_ns, 0 AS bps WHERE false")
meta = dict(db.execute("SELECT key, value FROM meta").fetchall())
t0, wall = int(meta["t0_ns"]), int(meta["t0_wall_ns"])
assert (defaults, primary, clocks[0]) == (3, 3, {3: t0, 1: wall}), (defaults, clocks)

# Every row is a slice, with its function, times, bytes and file.
spans = db.execute("""SELECT s.span_id, layer, op, start_ns, start_ns + greatest(dur_ns, 0), bytes, pid, tid, f.path
    FROM spans s LEFT JOIN files f USING (host, file_id)""").fetchall()
shown = {s[5]["span_id"]: s for s in slices if s[4] != "block"}
assert len(spans) == len(shown) == sum(s[4] != "block" for s in slices)
for span_id, layer, op, start, end, bytes_, pid, tid, file in spans:
    track, begin, over, name, category, notes, _ = shown[span_id]
    assert (category, name, begin - t0, over - t0) == (layer, op, start, end), (span_id, shown[span_id])
    assert notes.get("bytes") == bytes_
    assert file is None or notes["path"] == file.replace("\x1b", "\\x1b")
    descriptor = tracks[track]
    while not descriptor.HasField("thread"):
        descriptor = tracks[descriptor.parent_uuid]
    assert (descriptor.thread.pid, descriptor.thread.tid) == (pid, tid)
    assert tracks[descriptor.parent_uuid].process.pid == pid
# A call lies inside the one around it, on the same track.
inside = db.execute("""SELECT s.span_id, s.parent_id
    FROM spans s JOIN spans p ON p.span_id = s.parent_id AND p.host = s.host
    WHERE s.flags & 4 = 0 AND p.flags & 4 = 0 AND p.layer != 'app' AND s.layer != 'app'
      AND s.start_ns + s.dur_ns <= p.start_ns + p.dur_ns AND s.span_id >> 33 = p.span_id >> 33""").fetchall()
for child, parent in inside:
    assert shown[child][0] == shown[parent][0] and shown[child][6] > shown[parent][6], (child, parent)
requests = db.execute("SELECT req_id, op, issue_ns, coalesce(dur_ns, 0), bytes FROM block").fetchall()
blocks = {s[5]["req_id"]: s for s in slices if s[4] == "block"}
assert len(requests) == len(blocks)
for req_id, op, issued, took, bytes_ in requests:
    _, begin, over, name, _, notes, depth = blocks[req_id]
    assert (name, begin - t0, over - begin, notes["bytes"], depth) == (op, issued, took, bytes_, 1), req_id

# Arrows: each call that was written back, and each operation that another call is about.
arrows = db.execute("""SELECT count(*) FROM (
    SELECT async_id FROM spans WHERE async_id IS NOT NULL GROUP BY ALL HAVING count(*) > 1
    UNION SELECT l.span_id FROM block_links l JOIN block b USING (host, req_id) JOIN spans s USING (host, span_id)
    WHERE l.how = 'writeback' AND (s.async_id IS NULL OR s.async_id IN
      (SELECT async_id FROM spans WHERE async_id IS NOT NULL GROUP BY ALL HAVING count(*) = 1)))""").fetchall()[0][0]
assert len(flows) == arrows, (len(flows), arrows)

# Counters: bytes by second, requests in devices, and the figures of the node.
counters = collections.defaultdict(list)
for at, event, *_ in events:
    if event.type == protos.TrackEvent.TYPE_COUNTER:
        counters[tracks[event.track_uuid].name].append((at - t0, event.double_counter_value))
for layer, kind, at, rate in db.execute("SELECT layer, kind, t_ns, bps FROM v_bandwidth_over_time").fetchall():
    name = f"{layer} {kind} by second"
    now = [value for time, value in counters[name] if time <= at][-1]
    assert abs(now - rate) <= 1e-6 * rate + 1, (name, at, now, rate)
for name, label, rows in db.execute("""SELECT name, label, list({t: t_ns, v: value}) FROM metrics
    WHERE name[:5] = 'node_' OR name[:7] = 'target_' GROUP BY ALL""").fetchall():
    track = name if label is None else f"{name} {label}"
    assert sorted(counters[track]) == sorted((row["t"], row["v"]) for row in rows), track
depth = sum(len(values) for name, values in counters.items() if name == "requests in the device")
assert depth == len(requests) + len({s[0] for s in blocks.values()} and
    db.execute("SELECT DISTINCT host, dev FROM block").fetchall())
print(len(spans), len(requests), len(flows), len(counters))
