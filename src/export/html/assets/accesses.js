// Offset over time: an access is a line from its first to its last byte.

class AccessChart {
  constructor(host, data) {
    this.data = data;
    this.title = el("h3", {});
    this.canvas = el("canvas", { role: "img" });
    host.append(this.title, this.canvas);
  }

  // The points of the selection, by number.
  chosen() {
    const { start_ns: start, rank } = this.data;
    const [from, to] = timeRange();
    return start.map((_, at) => at).filter((at) => start[at] >= from && start[at] < to &&
      (state.r0 === null || (rank[at] >= state.r0 && rank[at] <= state.r1)));
  }

  // paint: a point's number -> the name of its colour.
  set(hidden, paint) {
    if (!changed(this, hidden, paint, state.r0, state.r1, state.b0, state.b1)) return;
    this.title.hidden = hidden;
    this.canvas.hidden = hidden;
    if (hidden) return;
    const points = this.chosen();
    const { offset, bytes, start_ns: start, all } = this.data;
    const shown = start.length < all ? format.calls(start.length) + " of " + format.calls(all) + " accesses, chosen at random" :
      all === 1 ? "1 access" : format.calls(all) + " accesses";
    this.title.textContent = visible(trace.files[this.data.file].name + ": " + shown + (points.length < start.length ?
      ", " + format.calls(points.length) + " of them in the selection" : ""));
    this.canvas.setAttribute("aria-label", "Offset over time in " + visible(trace.files[this.data.file].name) + "; the table below has the figures");
    const [width, height, left, bottom] = [layout.width, 230, 84, 22];
    const context = drawing(this.canvas, width, height);
    const [wide, high] = [width - left - 8, height - bottom - 6];
    const end = Math.max(1, offset.reduce((most, from, at) => Math.max(most, from + bytes[at]), 0));
    const [from, to] = timeRange();
    context.fillStyle = color("panel");
    context.fillRect(left, 6, wide, high);
    for (const at of points) {
      const x = left + ((start[at] - from) / (to - from)) * wide;
      const [low, top] = [offset[at], offset[at] + bytes[at]].map((byte) => 6 + high - (byte / end) * high);
      context.fillStyle = paint(at, this.data);
      context.fillRect(x - 1, Math.min(top, low - 2), 2, Math.max(low - top, 2));
    }
    context.fillStyle = color("fg");
    context.font = "12px system-ui, sans-serif";
    context.textAlign = "right";
    for (let tick = 0; tick <= 4; tick += 1) context.fillText(format.bytes((end * tick) / 4), left - 6, 10 + high - (high * tick) / 4);
    for (let tick = 0; tick <= 6; tick += 1) {
      context.textAlign = tick === 0 ? "left" : tick === 6 ? "right" : "center";
      context.fillText(timeLabel((from + ((to - from) * tick) / 6) / trace.bin_ns), left + (wide * tick) / 6, height - 6);
    }
  }
}

// From when to when the page shows, in ns.
function timeRange() {
  return state.b0 === null ? [0, trace.bins * trace.bin_ns] : [state.b0 * trace.bin_ns, (state.b1 + 1) * trace.bin_ns];
}

const byKind = (at, { write }) => color(write[at] ? "write" : "read");
const byRank = (at, { rank }) => "rgb(" + shade(0.05 + (0.85 * rank[at]) / Math.max(trace.ranks.length - 1, 1)) + ")";

function accessesSection() {
  const { list, left_out: left } = trace.accesses;
  const box = section("Offset over time", "Where in each file system calls read and wrote: a line from the first byte of an access to its last. " +
    "The files with the most time that have such calls" + (left ? "; further files of the report: " + format.calls(left) : "") +
    ". Of more than 1200 accesses as many, chosen at random, are shown.");
  if (!list.length) {
    box.append(el("p", {}, "No single reads or writes with an offset were recorded."));
    return;
  }
  const several = new Set(list.flatMap((data) => data.rank)).size > 1;
  const choice = el("select", {}, el("option", { value: "rank" }, "rank, the first ones dark"), el("option", { value: "kind" }, "read or write"));
  choice.value = several ? "rank" : "kind";
  const legend = el("span", { class: "legend" }, ...["read", "write"].map((name) => el("span", {}, el("i", { style: `background: var(--${name})` }), name)));
  box.append(el("p", {}, el("label", {}, "Colour shows ", choice), " ", legend));
  const charts = list.map((data) => new AccessChart(box, data));
  const table = new Table(box, "Accesses by file", [
    { head: "file", value: (d) => trace.files[d.file].name, press: (d) => select({ file: d.file }) },
    { head: "accesses", value: (d) => d.all, show: format.calls },
    { head: "shown", value: (d) => d.start_ns.length, show: format.calls },
    { head: "ends at", value: (d) => d.offset.reduce((most, from, at) => Math.max(most, from + d.bytes[at]), 0), show: format.bytes, sum: false },
  ]);
  const draw = () => {
    const paint = choice.value === "rank" ? byRank : byKind;
    legend.style.visibility = paint === byRank ? "hidden" : "visible";
    charts.forEach((chart) => chart.set(state.file !== null && state.file !== chart.data.file, paint));
    table.set(list);
    const missing = state.file !== null && !list.some((data) => data.file === state.file);
    return missing ? "The selected file has no accesses here." : "Of system calls, whatever the layer; the table is of the whole run.";
  };
  choice.addEventListener("change", draw);
  view(box, draw);
}
