// The page: its sections, and what is drawn anew when the selection changes.

const views = [];

function section(title, note) {
  const box = el("section", { "aria-label": title }, el("h2", {}, title));
  if (note) box.append(el("p", { class: "note" }, note));
  const limits = el("p", { class: "note limits" });
  box.append(limits);
  document.getElementById("main").append(box);
  box.limits = limits;
  return box;
}

// Draws a section when the selection changes; draw returns what of the selection does not apply there.
function view(box, draw) {
  const note = (text) => { if (box.limits.textContent !== text) box.limits.textContent = text; };
  views.push({ box, due: true, draw: () => note(draw() || "") });
}

function drawView(one) {
  one.due = false;
  one.draw();
}

let frame = null;
let rest = null;
// Between two pictures out of sight, so that the page answers meanwhile.
const PAUSE_MS = 10;

// With the next frame what is in sight; then the rest, one by one.
function redraw() {
  for (const one of views) one.due = true;
  clearTimeout(rest);
  frame ??= requestAnimationFrame(() => {
    frame = null;
    drawInSight();
    drawRest();
  });
}

function drawInSight() {
  layout.width = Math.max(document.getElementById("main").clientWidth, 400);
  const inSight = views.filter(({ box }) => {
    const { top, bottom } = box.getBoundingClientRect();
    return bottom > 0 && top < window.innerHeight;
  });
  inSight.filter(({ due }) => due).forEach(drawView);
}

function drawRest() {
  rest = setTimeout(() => {
    const next = views.find(({ due }) => due);
    if (!next) return;
    drawView(next);
    drawRest();
  }, PAUSE_MS);
}

function time(cube) {
  return (bin) => timeLabel(bin * cube.binStep);
}

// A selection of a heat map as one of the page: bins, and rows by name.
function picked({ r0, r1, b0, b1 }, cube, rows) {
  const change = r0 === undefined ? {} : rows(r0, r1);
  if (b0 !== undefined) Object.assign(change, { b0: b0 * cube.binStep, b1: Math.min((b1 + 1) * cube.binStep, trace.bins) - 1 });
  select(change);
}

function chosen(cube, range) {
  const to = (at, step) => (at === null ? null : Math.floor(at / step));
  return { r0: range.r0, r1: range.r1, b0: to(state.b0, cube.binStep), b1: to(state.b1, cube.binStep) };
}

function layersSection() {
  const box = section("Layers", "Press a layer to show it in the pictures below.");
  const table = new Table(box, "Outermost calls by layer", [
    { head: "layer", value: (r) => trace.layers[r.key], press: (r) => select({ layer: r.key }) }, ...FIGURES.map((f) => ({ ...f, sum: false })),
  ]);
  const sums = remembered((filter) => sumsBy(filter, cubes.calls.layer));
  view(box, () => {
    table.set(sums(filterBut("layer")));
    return cubes.calls.coarser(state);
  });
}

function timeSection() {
  const box = section("Bytes over time");
  const chart = new TimeChart(box, "Read and written", (v) => format.bytes(v) + "/s", [{ label: "read", color: "read" }, { label: "written", color: "write" }]);
  const cube = cubes.calls;
  const columns = remembered((filter) => {
    const bytes = [new Float64Array(trace.bins), new Float64Array(trace.bins)];
    const seconds = (cube.binStep * trace.bin_ns) / 1e9;
    cube.each(filter, (i) => {
      const direction = cube.side[i] % 3;
      if (direction > 1) return;
      for (let bin = cube.bin[i] * cube.binStep; bin < Math.min((cube.bin[i] + 1) * cube.binStep, trace.bins); bin += 1) {
        bytes[direction][bin] += cube.values.bytes[i] / seconds;
      }
    });
    return [binTimes(), ...bytes];
  });
  view(box, () => {
    chart.set(columns(filterBut("b0", "b1")));
    return cube.coarser({ ...state, b0: null, b1: null });
  });
}

function ranksSection() {
  const cube = cubes.calls;
  // The last row, of calls whose process is not known, is there only where it has any.
  const used = cube.rank.reduce((most, rank) => Math.max(most, rank + 1), 1);
  const fold = Math.ceil(used / MOST_ROWS);
  const rows = Math.ceil(used / fold);
  const group = fold * cube.rankStep > 1 ? " So many ranks share a row of the pictures: " + fold * cube.rankStep + "; of the table: " + cube.rankStep + "." : "";
  const box = section("Ranks over time", "A row is a rank, or a process without one." + group);
  const last = (at, step) => Math.min((at + 1) * step, trace.ranks.length) - 1;
  const label = (step) => (at) => rankLabel(at * step, last(at, step));
  const ranks = (step) => (r0, r1) => ({ r0: r0 * step, r1: last(r1, step) });
  const step = fold * cube.rankStep;
  const maps = DIRECTIONS.map((direction) => new HeatMap(box, { label: "Rank by time: " + direction, row: label(step), time: time(cube),
    show: (v) => format[state.measure](v), pick: (p) => picked(p, cube, ranks(step)) }));
  const table = new Table(box, "By rank", [
    { head: "rank or process", value: (r) => label(cube.rankStep)(r.key), press: (r) => select(ranks(cube.rankStep)(r.key, r.key)) }, ...FIGURES,
  ]);
  const row = (at) => Math.min(Math.floor(at / fold), rows - 1);
  const cells = remembered((filter, measure) => {
    const sums = DIRECTIONS.map(() => new Float64Array(rows * cube.bins));
    const values = cube.values[measure];
    cube.each(filter, (i) => { sums[cube.side[i] % 3][row(cube.rank[i]) * cube.bins + cube.bin[i]] += values[i]; });
    return sums;
  });
  const byRank = remembered((filter) => sumsBy(filter, cube.rank));
  view(box, () => {
    const sums = cells(filterBut("r0", "r1", "b0", "b1"), state.measure);
    const { r0, r1 } = cube.range(state);
    maps.forEach((map, at) => map.set(rows, cube.bins, sums[at], chosen(cube, { r0: row(r0), r1: row(r1) })));
    table.set(byRank(filterBut()));
    return cube.coarser(state);
  });
}

function filesSection() {
  const cube = cubes.calls;
  const box = section("Files over time", "The files of the report, those with the most time; all others are one row.");
  const files = (r0, r1) => ({ file: r0 === r1 ? r0 : null });
  const map = new HeatMap(box, { label: "File by time", row: (at) => trace.files[at].name, time: time(cube),
    show: (v) => format[state.measure](v), pick: (p) => picked(p, cube, files) });
  const table = new Table(box, "By file", [
    { head: "file", value: (r) => trace.files[r.key].name, press: (r) => select({ file: r.key }) }, ...FIGURES,
  ]);
  const cells = remembered((filter, measure) => {
    const sums = new Float64Array(trace.files.length * cube.bins);
    const values = cube.values[measure];
    cube.each(filter, (i) => { sums[cube.file[i] * cube.bins + cube.bin[i]] += values[i]; });
    return sums;
  });
  const byFile = remembered((filter) => sumsBy(filter, cube.file).sort((a, b) => b.ns - a.ns));
  view(box, () => {
    const sums = cells(filterBut("file", "b0", "b1"), state.measure);
    map.set(trace.files.length, cube.bins, sums, chosen(cube, { r0: state.file, r1: state.file }));
    table.set(byFile(filterBut()));
    return cube.coarser(state);
  });
}

function sizeLabel(bucket) {
  return trace.size_classes ? "to " + trace.size_classes[bucket] : format.bytes(2 ** bucket).replace(".00", "");
}

// Counts by bucket and direction of what passes the filter, from the first bucket with calls to the last.
function histogram(cube, filter) {
  const counts = new Map();
  cube.each(filter, (i) => {
    const bucket = cube.bucket[i];
    if (!counts.has(bucket)) counts.set(bucket, [0, 0, 0]);
    counts.get(bucket)[cube.side[i] % 3] += cube.values.calls[i];
  });
  const [first, last] = [Math.min(...counts.keys()), Math.max(...counts.keys())];
  const all = [];
  for (let bucket = first; bucket <= last; bucket += 1) all.push({ bucket, values: counts.get(bucket) || [0, 0, 0] });
  return all;
}

const BY_DIRECTION = [["reads", 0], ["writes", 1], ["other calls", 2]].map(([head, at]) =>
  ({ head, value: (r) => r.values[at], show: format.calls }));

function sizesSection() {
  const box = section("Sizes of reads and writes", trace.size_classes ? "By the classes that sums have." : "By powers of two: 4 KiB has 4096 to 8191 bytes. Without calls whose bytes are not known.");
  const bars = new Bars(box, "Reads and writes by size");
  const table = new Table(box, "By size", [{ head: "size", value: (r) => sizeLabel(r.bucket) }, ...BY_DIRECTION.slice(0, 2)]);
  const bySize = remembered((filter) => {
    const all = histogram(cubes.sizes, filter);
    return { all, groups: all.map((g) => ({ label: sizeLabel(g.bucket), values: g.values })) };
  });
  view(box, () => {
    const { all, groups } = bySize(filterBut());
    bars.set(groups);
    table.set(all);
    return cubes.sizes.coarser(state);
  });
}

function latencySection() {
  const cube = cubes.latency;
  const box = section("How long calls took", "By powers of two, over time.");
  const label = (at) => format.ns(2 ** at);
  let low = 0;
  const map = new HeatMap(box, { label: "Duration by time: number of calls", row: (at) => label(low + at), time: time(cube), show: (v) => format.calls(v) + " calls",
    pick: (p) => picked(p, cube, () => ({})) });
  const table = new Table(box, "By duration", [{ head: "from", value: (r) => label(r.bucket) }, ...BY_DIRECTION]);
  const cells = remembered((filter) => {
    const all = histogram(cube, filter);
    const rows = Math.max(all.length, 1);
    low = all.length ? all[0].bucket : 0;
    const sums = new Float64Array(rows * cube.bins);
    cube.each(filter, (i) => { sums[(cube.bucket[i] - low) * cube.bins + cube.bin[i]] += cube.values.calls[i]; });
    return { rows, sums };
  });
  const byDuration = remembered((filter) => histogram(cube, filter));
  view(box, () => {
    const { rows, sums } = cells(filterBut("b0", "b1"));
    map.set(rows, cube.bins, sums, chosen(cube, { r0: null, r1: null }));
    table.set(byDuration(filterBut()));
    return cube.coarser(state);
  });
}

function treeSection() {
  const aggregate = trace.report.header.aggregate;
  const box = section("Call tree", (aggregate ? "Sums do not have the callers. " : "") +
    "Of all layers. The width is the exclusive time of a call and of all inside it; what system calls waited for hangs below them. " +
    "Enter or a click shows a frame alone, Backspace all again." + (trace.tree.merged ? " So many calls count for their caller: " + format.calls(trace.tree.merged) + "." : ""));
  const icicle = new Icicle(box, "Functions and what they call");
  const table = new Table(box, "By function, with what called it", [
    { head: "call path", value: (n) => icicle.path(n.at) },
    { head: "layer", value: (n) => n.node.layer || "waits" },
    { head: "calls", value: (n) => n.node.calls, show: format.calls },
    { head: "time of its own", value: (n) => n.node.own, show: format.ns },
    { head: "with all below", value: (n) => n.node.all, show: format.ns, sum: false },
  ]);
  const frames = remembered((filter) => {
    icicle.set(filter);
    return icicle.nodes.map((node, at) => ({ node, at })).filter((n) => n.node.own > 0 || n.node.calls > 0).sort((a, b) => b.node.own - a.node.own);
  });
  view(box, () => {
    const shown = frames(filterBut("layer"));
    if (changed(icicle, shown)) icicle.draw();
    table.set(shown);
    return cubes.tree.coarser(state);
  });
}

function collectivesSection() {
  const { list, number, left_out: left } = trace.collectives;
  const box = section("Collective calls", "How long the first rank waited until the last one arrived. " + format.calls(number) + " calls" +
    (number > list.length ? ", of which the " + list.length + " with the greatest spread are shown" : "") + (left ? "; arrivals that were left out: " + format.calls(left) : "") + ".");
  if (!list.length) return;
  const chart = new TimeChart(box, "Spread of arrivals", format.ns, [{ label: "first to last arrival", color: "write", points: true }]);
  const arrivals = new Arrivals(box);
  let open = null;
  const table = new Table(box, "Collective calls, those with the greatest spread first", [
    { head: "call", value: (c) => c.op + " at " + digits(c.first_ns / 1e9) + " s", press: (c) => { open = c; arrivals.set(open); } },
    { head: "file", value: (c) => trace.files[c.file].name },
    { head: "ranks", value: (c) => c.ranks, show: format.calls, sum: false },
    { head: "first to last", value: (c) => c.spread_ns, show: format.ns },
    { head: "last", value: (c) => trace.ranks[c.last] },
  ]);
  const of = (file) => list.filter((c) => file === null || c.file === file);
  const points = remembered((file) => [of(file).map((c) => c.first_ns / 1e9), of(file).map((c) => c.spread_ns)]);
  const bin = (c) => Math.floor(c.first_ns / trace.bin_ns);
  const within = remembered((file, b0, b1) => of(file).filter((c) => b0 === null || (bin(c) >= b0 && bin(c) <= b1)).sort((a, b) => b.spread_ns - a.spread_ns));
  view(box, () => {
    chart.set(points(state.file));
    const sorted = within(state.file, state.b0, state.b1);
    table.set(sorted);
    if (!open || !sorted.includes(open)) open = sorted[0] || null;
    arrivals.set(open);
    return state.r0 === null ? "" : "The selected ranks are marked in the arrivals; spreads are of all ranks, and all layers with collective calls are here.";
  });
}

function devicesSection() {
  const { list, left_out: left } = trace.devices;
  const box = section("Devices", "Requests to block devices, and the most that were in the device at once." + (left ? " Requests of further devices: " + format.calls(left) + "." : ""));
  if (!list.length) {
    box.append(el("p", {}, "No requests were recorded."));
    return;
  }
  const charts = list.map((device) => new TimeChart(box, "Device " + device.name, (v) => format.bytes(v) + "/s", [
    { label: "read", color: "read" }, { label: "written", color: "write" },
    { label: "queue depth", color: "other", scale: "depth", show: (v) => String(Math.round(v)) }]));
  const sum = (column) => (d) => {
    let total = 0;
    for (let bin = state.b0 ?? 0; bin <= (state.b1 ?? trace.bins - 1); bin += 1) total += d[column][bin];
    return total;
  };
  const most = (d) => d.depth.slice(state.b0 ?? 0, (state.b1 ?? trace.bins - 1) + 1).reduce((a, b) => Math.max(a, b), 0);
  const table = new Table(box, "By device", [
    { head: "device", value: (d) => d.name },
    { head: "requests", value: sum("requests"), show: format.calls },
    { head: "read", value: sum("read"), show: format.bytes },
    { head: "written", value: sum("written"), show: format.bytes },
    { head: "time in the device", value: sum("ns"), show: format.ns },
    { head: "most at once", value: most, show: (n) => (n ? format.calls(n) : "not known"), sum: false },
  ]);
  const seconds = trace.bin_ns / 1e9;
  const rate = (column) => column.map((bytes) => bytes / seconds);
  const columns = list.map((device) => [binTimes(), rate(device.read), rate(device.written), device.depth]);
  // Their sums are of the selected time.
  const within = remembered((_from, _to) => [...list]);
  view(box, () => {
    charts.forEach((chart, at) => chart.set(columns[at]));
    table.set(within(state.b0, state.b1));
    const ignored = [state.file === null ? null : "file", state.r0 === null ? null : "rank"].filter(Boolean);
    return ignored.length ? "Requests are not kept by " + ignored.join(" and ") + ": that filter does not apply here, the time does." : "";
  });
}

function imbalanceSection() {
  if (!trace.report.imbalance.length) return;
  const box = section("Balance of ranks", "Of the whole run: filters do not apply here.");
  const table = new Table(box, "Exclusive time by layer; all: time in the calls that the program made itself", [
    { head: "layer", value: (r) => r.layer },
    { head: "most", value: (r) => r.max_ns, show: format.ns, sum: false },
    { head: "mean", value: (r) => r.mean_ns, show: format.ns, sum: false },
    { head: "most to mean", value: (r) => r.max_to_mean, show: digits, sum: false },
    { head: "slowest", value: (r) => "rank " + r.slowest, press: (r) => { const at = trace.ranks.indexOf("rank " + r.slowest); if (at >= 0) select({ r0: at, r1: at }); } },
  ]);
  table.set(trace.report.imbalance);
}

function fillControls() {
  const id = (name) => document.getElementById("f-" + name);
  const option = (value, text) => el("option", { value }, text);
  id("file").append(option("", "all files"), ...trace.files.map((file, at) => option(at, file.name)));
  for (const side of ["r0", "r1"]) id(side).append(option("", "all"), ...trace.ranks.map((rank, at) => option(at, rank)));
  const layers = layersPresent();
  id("layer").append(...layers.map(({ layer }) => option(layer, trace.layers[layer])));
  const usual = layers.find(({ layer }) => trace.layers[layer] === "syscall") || [...layers].sort((a, b) => b.ns - a.ns)[0];
  state.layer = usual ? usual.layer : 0;
  const number = (text) => (text === "" ? null : Number(text));
  id("file").addEventListener("change", (e) => select({ file: number(e.target.value) }));
  id("layer").addEventListener("change", (e) => select({ layer: Number(e.target.value) }));
  id("measure").addEventListener("change", (e) => select({ measure: e.target.value }));
  const ends = (first, last, all, changed) => {
    if (first === null && last === null) return [null, null];
    const [low, high] = [first ?? 0, last ?? all - 1];
    return low <= high ? [low, high] : changed ? [low, low] : [high, high];
  };
  for (const side of ["r0", "r1"]) {
    id(side).addEventListener("change", () => {
      const [r0, r1] = ends(number(id("r0").value), number(id("r1").value), trace.ranks.length, side === "r0");
      select({ r0, r1 });
    });
  }
  // A time ends with the bin before its end.
  const bin = (text, end) => {
    if (text === "") return null;
    const at = (Number(text) * 1e9) / trace.bin_ns;
    return Math.min(Math.max(end ? Math.ceil(at - 1e-3) - 1 : Math.floor(at + 1e-3), 0), trace.bins - 1);
  };
  for (const side of ["t0", "t1"]) {
    id(side).addEventListener("change", () => {
      const [b0, b1] = ends(bin(id("t0").value, false), bin(id("t1").value, true), trace.bins, side === "t0");
      select({ b0, b1 });
    });
  }
  id("clear").addEventListener("click", () => select(NONE));
  document.getElementById("filters").addEventListener("submit", (e) => e.preventDefault());
  document.addEventListener("keydown", (e) => { if (e.key === "Escape") select(NONE); });
  onChange(() => showControls(id));
}

const whole = remembered((filter) => sumsBy(filter, new Uint8Array(cubes.calls.cells))[0]);

function showControls(id) {
  // The browser looks through the names of all ranks for one.
  const put = (name, value) => { if (id(name).value !== String(value)) id(name).value = value; };
  put("file", state.file ?? "");
  put("r0", state.r0 ?? "");
  put("r1", state.r1 ?? "");
  const seconds = (bin) => (bin === null ? "" : String(Number(((bin * trace.bin_ns) / 1e9).toPrecision(6))));
  id("t0").value = seconds(state.b0);
  id("t1").value = state.b1 === null ? "" : seconds(state.b1 + 1);
  put("layer", state.layer);
  put("measure", state.measure);
  const sums = whole(filterBut()) || { calls: 0, read: 0, written: 0, ns: 0 };
  const filters = [state.file === null ? null : trace.files[state.file].name, state.r0 === null ? null : rankLabel(state.r0, state.r1),
    state.b0 === null ? null : timeLabel(state.b0) + " to " + timeLabel(state.b1 + 1)].filter(Boolean);
  document.getElementById("status").textContent = visible((filters.length ? filters.join(", ") : "No filter") + ": " + format.calls(sums.calls) + " calls of " +
    trace.layers[state.layer] + ", " + format.bytes(sums.read) + " read, " + format.bytes(sums.written) + " written, " + format.ns(sums.ns) + " in calls");
}

function setTheme(name) {
  document.documentElement.dataset.theme = name;
  colors.clear();
}

function themes() {
  const dark = window.matchMedia("(prefers-color-scheme: dark)");
  let own = null;
  const wanted = () => own || (dark.matches ? "dark" : "light");
  const apply = () => { setTheme(wanted()); select({}); };
  setTheme(wanted());
  dark.addEventListener("change", apply);
  document.getElementById("theme").addEventListener("click", () => { own = wanted() === "dark" ? "light" : "dark"; apply(); });
  window.addEventListener("beforeprint", () => { setTheme("light"); views.forEach(drawView); });
  window.addEventListener("afterprint", apply);
}

function start() {
  themes();
  fillControls();
  drawRun(section("The run"));
  drawFindings(section("Findings"));
  for (const build of [layersSection, timeSection, ranksSection, filesSection, accessesSection, sizesSection, latencySection, treeSection, collectivesSection, devicesSection, imbalanceSection]) build();
  drawCoverage(section("Coverage"));
  onChange(redraw);
  let width = window.innerWidth;
  window.addEventListener("resize", () => { if (window.innerWidth !== width) { width = window.innerWidth; select({}); } });
  select({});
}

start();
