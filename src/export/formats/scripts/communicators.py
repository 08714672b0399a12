"""The communicators of an archive of OTF2, of opens of MPI-IO: their processes, and the handles that have them."""

from otf2.enums import GroupType, Paradigm

# By the collective call that the opens are; two runs of one program have the same ids.
OPENS = """
WITH opens AS (
  SELECT h.host, h.handle_id, h.comm_size, h.comm_ranks, s.rank, s.process_ix, s.pid, s.span_id >> 33 AS thread,
         s.coll_id, s.wall_ns, row_number() OVER (PARTITION BY s.host, s.coll_id, coalesce(s.rank, -1 - s.process_ix)
                                                  ORDER BY s.wall_ns, h.handle_id) AS run
  FROM handles h JOIN v_spans s ON s.host IS NOT DISTINCT FROM h.host AND s.span_id = h.open_span_id
  WHERE h.layer = 'mpiio' AND s.layer = 'mpiio' AND s.coll_id IS NOT NULL AND h.comm_size > 0)
SELECT comm_size, comm_ranks, list({host: host, process: process_ix, thread: thread, pid: pid, rank: rank,
                                    handle: handle_id} ORDER BY rank, host, process_ix)
FROM opens GROUP BY coll_id, run, comm_size, comm_ranks ORDER BY min(wall_ns), coll_id, run
"""


class Communicators:
    """The processes whose opens are one collective call are the members, in the order of their ranks."""

    def __init__(self, db, definitions, location):
        self.all, self.of = definitions, {}
        # More members than its size: several communicators, which the dataset does not distinguish.
        opens = [(size, ranks, members) for size, ranks, members in rows(db, OPENS) if len(members) <= size]
        locations = self.locations(opens, location)
        known = {}
        for size, ranks, members in opens:
            keys = tuple((member["host"], member["process"]) for member in members)
            same = (size, ranks, keys) if size > 1 else size
            if same not in known:
                known[same] = self.define(size, ranks, [locations[key] for key in keys])
            self.of.update({(member["host"], member["handle"]): known[same] for member in members})

    def locations(self, opens, location):
        """The first thread of each process that opened files."""
        first = {}
        for _, _, members in opens:
            for member in members:
                key = (member["host"], member["process"])
                if key not in first or member["thread"] < first[key]["thread"]:
                    first[key] = member
        in_order = sorted(first.items(), key=lambda item: (
            item[1]["rank"] is None, item[1]["rank"] or 0, str(item[0][0]), item[0][1]))
        found = {key: location(key[0], member["thread"], member["pid"]) for key, member in in_order}
        if found:
            self.all.groups.create("processes that opened files", GroupType.COMM_LOCATIONS, Paradigm.MPI,
                                   members=list(found.values()))
        return found

    def define(self, size, ranks, members):
        """Those of one process are one definition: OTF2 has one group for them."""
        if size == 1:
            group = self.all.groups.create("one process", GroupType.COMM_SELF, Paradigm.MPI, members=[])
            return self.all.comm("one process", group)
        name = f"{size} processes" if ranks is None else f"{size} processes, ranks {ranks}"
        if len(members) < size:
            name += f", {len(members)} of them recorded"
        group = self.all.groups.create(plain(name), GroupType.COMM_GROUP, Paradigm.MPI, members=members)
        return self.all.comm(plain(name), group)

    def spread(self, parents, parallel):
        """Handles of libraries have that of the file of MPI-IO below them, and objects that of what they are in."""
        for key, comm in list(self.of.items()):
            for around in chain(parents, key):
                if around in parallel:
                    self.of.setdefault(around, comm)
        for key in parallel:
            known = [self.of[around] for around in chain(parents, key) if around in self.of]
            if known:
                self.of.setdefault(key, known[0])


def chain(parents, key):
    """A handle and those around it; a circle, in damaged rows, is cut."""
    seen = set()
    while key in parents and key not in seen:
        seen.add(key)
        yield key
        key = (key[0], parents[key])
