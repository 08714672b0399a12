"""Opens a page of `report --html` in Chromium and compares what it shows with DuckDB: check.py PAGE DATASET [SCREENSHOT].

DATASET may be a directory with those of several nodes.

Times of actions are printed, and compared with nothing.
"""

import statistics
import sys

import duckdb

from browser import Page

ENTRIES = ("calls", "read", "written", "ns", "errors")
CANVAS = "[...document.querySelectorAll('canvas')].filter(c => !c.hidden && c.clientWidth && !c.closest('.u-legend'))"
# Of each canvas: how many pixels are not as the one in its first row and column.
DRAWN = f"""{CANVAS}.map(c => {{
  const all = new Uint32Array(c.getContext('2d').getImageData(0, 0, c.width, c.height).data.buffer);
  return all.reduce((n, pixel) => n + (pixel !== all[0]), 0);
}})"""
PICTURE = f"{CANVAS}.map(c => c.toDataURL()).join()"


# What is selected, and the most that this may take of what the page counts: cells of cubes visited, cells of heat maps
# shaded, cells of tables written, pictures drawn.
OF_LAYER = "cubes.calls.ofLayer.get(state.layer).length"
OF_RANK = "Object.values(cubes).reduce((sum, cube) => sum + cube.rank.filter((rank) => rank === 0).length, 0)"
WRITTEN = "document.querySelectorAll('td').length"
MAPS = "document.querySelectorAll('canvas').length + trace.devices.list.length"
ACTIONS = (
    ("{r0: 0, r1: 0}", {"cells": f"4 * {OF_RANK}", "shaded": "cubes.calls.bins * (trace.files.length + 64)", "written": WRITTEN, "drawn": MAPS}),
    ("{file: 0}", {"cells": f"3 * {OF_RANK} + 2 * {OF_LAYER}", "written": WRITTEN, "drawn": MAPS}),
    ("{b0: 10, b1: 200}", {"cells": f"4 * {OF_RANK}", "shaded": "0", "written": WRITTEN, "drawn": MAPS}),
    ("{...NONE}", {"written": WRITTEN, "drawn": MAPS}),
    ("{measure: 'calls'}", {"cells": f"2 * {OF_LAYER}", "written": "0", "drawn": "4"}),
    ("{measure: 'calls'}", {"cells": "0", "shaded": "0", "written": "0", "drawn": "0"}),
)


class Dataset:
    """The same figures from the tables."""

    def __init__(self, directory, page):
        self.page = page
        self.bins, self.bin_ns = page.ask("trace.bins"), page.ask("trace.bin_ns")
        self.aggregate = page.ask("trace.report.header.aggregate")
        self.db = duckdb.connect()
        self.nodes = page.ask("Object.fromEntries(trace.report.nodes.map((node) => [node.host, node.clock.offset_ns]))")
        if len(self.nodes) > 1:
            directory += "/*"
        for table in ("spans", "files", "processes", "block", "file_rollup", "meta"):
            try:
                self.db.sql(f"CREATE VIEW {table} AS FROM read_parquet('{directory}/{table}-*.parquet', union_by_name = true)")
            except duckdb.IOException:
                pass  # An aggregate run has no table of calls.
        # What times of a node count from, since the first of them began.
        self.db.sql("""CREATE TABLE begins AS SELECT host AS begins_host, value::BIGINT - min(value::BIGINT) OVER () AS begins_ns
                       FROM meta WHERE key = 't0_wall_ns'""")
        if self.aggregate:
            self.db.sql("""CREATE VIEW rows_of AS SELECT host, process_ix, layer, kind, rank, pid, file_id, from_ns AS began, calls AS n, bytes, dur_ns AS ns,
                           self_ns, errors FROM file_rollup WHERE layer <> 'block'""")
        else:
            # Datasets of earlier versions have not all columns.
            known = self.db.sql("FROM spans").columns
            layer_ns, probe_ns = (name if name in known else "NULL::BIGINT" for name in ("layer_ns", "probe_ns"))
            self.db.sql(f"""CREATE VIEW rows_of AS SELECT host, process_ix, layer, kind, rank, pid, file_id, start_ns AS began, 1 AS n, bytes,
                           coalesce({layer_ns}, dur_ns - coalesce({probe_ns}, 0)) AS ns, (errno <> 0)::INT AS errors
                           FROM spans WHERE layer_top AND flags & 512 = 0""")

        # A process may have made calls before it had a rank.
        self.db.sql("""CREATE VIEW calls AS SELECT s.* REPLACE (coalesce(p.rank, s.rank) AS rank, began + coalesce(begins_ns, 0) AS began)
                       FROM rows_of s LEFT JOIN begins ON begins_host = s.host
                       LEFT JOIN (SELECT DISTINCT host, process_ix AS ix, rank FROM processes WHERE rank IS NOT NULL) p
                       ON p.ix = s.process_ix AND p.host = s.host""")
        # What the page calls a file.
        name = "host || ': ' || path" if len(self.nodes) > 1 else "path"
        self.db.sql(f"CREATE VIEW named AS SELECT DISTINCT host, file_id, {name} AS name FROM files WHERE path IS NOT NULL")

    def one(self, query):
        return self.db.sql(query).fetchall()[0]

    def where(self):
        """The selection of the page as a condition."""
        state = self.page.ask("({...state})")
        parts = [f"layer = '{self.page.ask('trace.layers[state.layer]')}'"]
        if state["file"] is not None:
            name = self.page.ask("trace.files[state.file].name")
            parts.append({"(no file)": "file_id IS NULL"}.get(name, f"(host, file_id) IN (SELECT (host, file_id) FROM named WHERE name = '{name}')"))
        if state["r0"] is not None:
            labels = self.page.ask("trace.ranks.slice(state.r0, state.r1 + 1)")
            ranks = [label.split()[1] for label in labels if label.startswith("rank ")] or ["NULL"]
            pids = [label.split()[1] for label in labels if label.startswith("pid ")] or ["NULL"]
            nobody = " OR (rank IS NULL AND pid IS NULL)" if "process not known" in labels else ""
            parts.append(f"(rank IN ({','.join(ranks)}) OR (rank IS NULL AND pid IN ({','.join(pids)})){nobody})")
        if state["b0"] is not None:
            parts.append(f"least(greatest(began, 0) // {self.bin_ns}, {self.bins - 1}) BETWEEN {state['b0']} AND {state['b1']}")
        return " AND ".join(parts)

    def figures(self):
        row = self.one(f"""SELECT sum(n), sum(bytes) FILTER (kind = 'read'), sum(bytes) FILTER (kind = 'write'), sum(ns), sum(errors)
                           FROM calls WHERE {self.where()}""")
        return [int(value or 0) for value in row]


def settle(page):
    page.wait("!views.some(v => v.due)")


def foot(page, caption):
    """The sums below a table."""
    settle(page)
    return page.ask(f"""[...document.querySelectorAll('table')].filter(t => t.caption && t.caption.textContent.startsWith('{caption}'))
        .flatMap(t => [...t.querySelectorAll('tfoot td[data-value]')].map(d => Number(d.dataset.value)))""")


def body(page, caption, column):
    settle(page)
    return page.ask(f"""[...document.querySelectorAll('table')].filter(t => t.caption && t.caption.textContent.startsWith('{caption}'))
        .flatMap(t => [...t.tBodies[0].rows].map(r => r.cells[{column}].dataset.value ?? r.cells[{column}].textContent))""")


def agree(page, data, what):
    want = data.figures()
    assert want[0] > 0, f"{what}: nothing is selected, which would show nothing"
    for caption in ("By rank", "By file"):
        got = foot(page, caption)
        assert got == want, f"{what}: {caption} has {dict(zip(ENTRIES, got))}, DuckDB {dict(zip(ENTRIES, want))}"
    return want


def cpu_ms(page):
    """CPU time of the page's main thread."""
    metrics = {metric["name"]: metric["value"] for metric in page.call("Performance.getMetrics")["metrics"]}
    return metrics["TaskDuration"] * 1000


def timed(page, action, times):
    """An action: until the browser has drawn what is in sight, and the CPU time until it has drawn all."""
    before = cpu_ms(page)
    took = page.ask(f"""new Promise(done => {{ const start = performance.now(); {action};
        requestAnimationFrame(() => setTimeout(() => done(performance.now() - start))); }})""")
    settle(page)
    times.append((took, cpu_ms(page) - before))


def selections(page, data, times):
    """By button, keyboard and mouse: sums follow, and are those of DuckDB."""
    whole = agree(page, data, "no filter")
    names = [name for (name,) in data.db.sql("SELECT DISTINCT name FROM named").fetchall()]
    button = page.ask(f"""(() => {{ const names = {names!r};
        const all = [...document.querySelectorAll('td button')].filter(b => names.includes(b.textContent));
        all[0].click(); return all[0].textContent; }})()""")
    assert agree(page, data, f"file {button}") != whole
    page.press("Escape")
    assert agree(page, data, "after Escape") == whole

    page.ask("""(() => { const map = [...document.querySelectorAll('canvas.map')].find(c => c.getAttribute('aria-label').startsWith('Rank by time'));
        map.scrollIntoView({ block: 'center' }); map.focus(); })()""")
    rows = page.ask("[...new Set(cubes.calls.rank.filter((_, i) => cubes.calls.layer[i] === state.layer))].sort((a, b) => a - b)")
    last = page.ask(f"Math.floor({rows[-1]} / Math.ceil({rows[-1] + 1} / MOST_ROWS))")
    for key in ["PageDown"] * (last // 10) + ["ArrowDown"] * (last % 10):
        page.press(key)
    page.press("r")
    rank = agree(page, data, "a rank by the keyboard")
    assert (rank != whole or len(rows) == 1) and page.ask("state.r0 !== null && state.b0 === null")
    page.press("Escape")
    # Sums of a short run have one period, at its begin.
    bins = page.ask("cubes.calls.bins")
    late = page.ask(f"cubes.calls.bin.some((bin, i) => bin > {bins // 4} && cubes.calls.layer[i] === state.layer)")
    page.press("End" if late else "Home")
    for _ in range(bins * 3 // 4):
        page.press("ArrowLeft" if late else "ArrowRight", shift=True)
    page.press("t")
    part = agree(page, data, "a time by the keyboard")
    assert (part[0] < whole[0] or not late) and page.ask("state.r0 === null && state.b0 !== null && state.b1 - state.b0 < 399")
    page.press("Escape")

    box = page.ask("""(() => { const b = document.activeElement.getBoundingClientRect(); return [b.left, b.top, b.width, b.height]; })()""")
    left, top, width, height = box
    page.drag((left + 151, top + 2), (left + 150 + (width - 150) * 0.7, top + (height - 22) * 0.6))
    both = agree(page, data, "ranks and time by the mouse")
    assert page.ask("state.r0 !== null && state.b0 !== null") and (both[0] < whole[0] or not late)
    page.press("Escape")
    for change, bound in ACTIONS:
        settle(page)
        before = page.ask("({ ...work })")
        timed(page, f"select({change})", times)
        did = {name: count - before[name] for name, count in page.ask("({ ...work })").items()}
        bound = {name: page.ask(f"({of})") for name, of in bound.items()}
        assert all(did[name] <= most for name, most in bound.items()), f"{change}: {did}, of at most {bound}"
    page.ask("select({...NONE, measure: 'bytes'})")
    assert agree(page, data, "at the end") == whole


def other_tables(page, data):
    where = data.where()
    calls = foot(page, "By duration")
    tree = foot(page, "By function")
    requests = foot(page, "By device")
    if data.aggregate:
        assert sum(calls) > 0 and sum(foot(page, "By size")) > 0
        assert tree[1] == int(data.one("SELECT sum(self_ns) FROM calls")[0]), tree
        return
    assert calls == [data.one(f"SELECT count(*) FROM calls WHERE {where} AND {kind}")[0]
                     for kind in ("kind = 'read'", "kind = 'write'", "kind NOT IN ('read', 'write')")], calls
    sizes = foot(page, "By size")
    assert sizes == [data.one(f"SELECT count(*) FROM calls WHERE {where} AND kind = '{kind}' AND bytes IS NOT NULL")[0]
                     for kind in ("read", "write")], sizes
    own = data.one("SELECT count(*), sum(self_ns) FILTER (flags & 4 = 0) FROM spans WHERE flags & 512 = 0")
    assert tree == [own[0], int(own[1])], (tree, own)
    if requests:
        want = data.one("""SELECT count(dur_ns), coalesce(sum(bytes) FILTER (op = 'read' AND status = 0), 0),
                           coalesce(sum(bytes) FILTER (op = 'write' AND status = 0), 0), sum(dur_ns) FROM block""")
        assert requests == [int(value) for value in want], (requests, want)
    collectives(page, data)
    accesses(page, data)


def collectives(page, data):
    # Each node's clock as the report has aligned it.
    clock = " ".join(f"WHEN '{host}' THEN {offset}" for host, offset in data.nodes.items())
    want = data.one(f"""WITH arrivals AS (SELECT coll_id, start_ns + coalesce(begins_ns, 0) + CASE host {clock} ELSE 0 END AS start_ns, row_number() OVER (PARTITION BY coll_id, rank ORDER BY start_ns) AS run
                       FROM spans LEFT JOIN begins ON begins_host = host WHERE coll_id IS NOT NULL)
                       SELECT count(*), sum(spread) FROM (SELECT max(start_ns) - min(start_ns) AS spread FROM arrivals GROUP BY coll_id, run)""")
    if want[0]:
        assert page.ask("trace.collectives.list.length") == want[0]
        assert foot(page, "Collective calls") == [int(want[1])]


def accesses(page, data):
    """Points are reads and writes of the table, all of them where there are few; a selection leaves those within."""
    files = page.ask("trace.accesses.list.map((a) => ({ ...a, name: trace.files[a.file].name }))")
    if not files:
        assert data.one("""SELECT count(*) FROM spans JOIN files USING (host, file_id) WHERE layer = 'syscall' AND layer_top AND bytes > 0
            AND kind IN ('read', 'write') AND "offset" >= 0 AND flags & 512 = 0 AND role NOT IN ('lib', 'proc')""")[0] == 0
        return
    assert foot(page, "Accesses by file") == [sum(f["all"] for f in files), sum(len(f["offset"]) for f in files)]
    for file in files:
        calls = data.db.sql(f"""SELECT start_ns + coalesce(begins_ns, 0), "offset", bytes, (kind = 'write')::BIGINT
            FROM spans LEFT JOIN begins ON begins_host = host JOIN named USING (host, file_id)
            WHERE layer = 'syscall' AND layer_top AND kind IN ('read', 'write') AND bytes > 0 AND "offset" >= 0 AND flags & 512 = 0
              AND name = '{file['name']}'""").fetchall()
        points = list(zip(file["start_ns"], file["offset"], file["bytes"], file["write"]))
        # Several files may have had one name.
        alone = page.ask("trace.files.map((f) => f.name)").count(file["name"]) == 1
        assert file["all"] == len(calls) if alone else file["all"] <= len(calls), file["name"]
        assert set(points) <= set(calls), file["name"]
        assert len(points) == file["all"] or 400 < len(points) <= 1200, (len(points), file["all"])
    count = "[...document.querySelectorAll('section[aria-label=\"Offset over time\"] canvas')].filter(c => !c.hidden).length"
    assert page.ask(count) == len(files)
    page.ask(f"select({{file: {files[-1]['file']}}})")
    settle(page)
    assert page.ask(count) == 1
    page.ask("select({...NONE})")
    before = page.ask(PICTURE)
    page.ask("""(() => { const choice = document.querySelector('section[aria-label="Offset over time"] select');
        choice.value = choice.value === 'rank' ? 'kind' : 'rank'; choice.dispatchEvent(new Event('change')); })()""")
    assert page.ask(PICTURE) != before


def pictures(page):
    settle(page)
    drawn = page.ask(DRAWN)
    labels = page.ask(f"{CANVAS}.map(c => c.getAttribute('aria-label') || (c.closest('[aria-label]') || c).getAttribute('aria-label'))")
    # Maps of kinds of calls that there are none of are empty.
    empty = [label for label, pixels in zip(labels, drawn) if pixels < 100]
    assert len(drawn) > 7 and not empty, (labels, drawn)


def themes(page):
    light = page.ask(PICTURE)
    assert page.ask("document.documentElement.dataset.theme") == "light"
    page.call("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": "dark"}])
    page.wait("document.documentElement.dataset.theme === 'dark'")
    settle(page)
    dark = page.ask(PICTURE)
    assert dark != light
    assert page.ask("getComputedStyle(document.body).backgroundColor") == "rgb(18, 22, 27)"
    page.ask("document.getElementById('theme').click()")
    settle(page)
    assert page.ask("document.documentElement.dataset.theme") == "light"
    assert page.ask(PICTURE) != dark
    pictures(page)


def usable(page):
    """What has a role has a name; all that can be pressed can be reached by the keyboard."""
    nameless = page.ask("""[...document.querySelectorAll('canvas, button, select, input, section')].filter(e => !e.hidden &&
        !(e.getAttribute('aria-label') || e.textContent || (e.labels && e.labels.length) || e.closest('[role=img]'))).map(e => e.outerHTML)""")
    assert not nameless, nameless
    assert page.ask("[...document.querySelectorAll('canvas.map')].every(c => c.tabIndex === 0)")
    assert page.pdf().startswith(b"%PDF")
    assert page.ask("document.documentElement.dataset.theme") == "light"


def main(path, directory, screenshot=None):
    page, times = Page(path), []
    try:
        page.call("Performance.enable", timeDomain="threadTicks")
        data = Dataset(directory, page)
        assert all(url.startswith(("file:", "data:")) for url in page.requests), page.requests
        pictures(page)
        selections(page, data, times)
        other_tables(page, data)
        usable(page)
        themes(page)
        if screenshot:
            page.screenshot(screenshot)
        assert not page.errors, page.errors
        took, cpu = zip(*times)
        print(f"actions: median {statistics.median(took):.0f} ms, most {max(took):.0f} ms; CPU time with all that is out of sight "
              f"{statistics.mean(cpu):.0f} ms")
    finally:
        page.close()


if __name__ == "__main__":
    main(*sys.argv[1:])
