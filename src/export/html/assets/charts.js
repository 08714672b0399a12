// Charts over time (uPlot) and bars (canvas).

const CHART_HEIGHT = 210;

// The begins of the bins of the page, in s.
function binTimes() {
  return Array.from({ length: trace.bins }, (_, bin) => (bin * trace.bin_ns) / 1e9);
}

// A chart over time whose series are { label, color, scale, points }; drag selects a time.
class TimeChart {
  constructor(host, label, unit, series, options) {
    this.host = el("div", { role: "img", "aria-label": label + "; the table below has the figures" });
    host.append(el("h3", {}, label), this.host);
    Object.assign(this, { unit, series, options: options || {} });
  }

  set(columns) {
    const key = document.documentElement.dataset.theme + layout.width;
    if (!this.chart || this.key !== key) {
      this.make(columns);
    } else if (this.columns !== columns) {
      this.chart.setData(columns);
      work.drawn += 1;
    }
    Object.assign(this, { key, columns });
    this.mark();
  }

  make(columns) {
    if (this.chart) this.chart.destroy();
    const axis = (scale, show, side) => ({ scale, side, stroke: color("fg"), size: 80, values: (_, all) => all.map((v) => (v === null ? "" : show(v))),
      grid: { stroke: side === 3 ? color("line") : "transparent", width: 1 }, ticks: { stroke: color("line") } });
    const axes = [{ stroke: color("fg"), grid: { stroke: color("line"), width: 1 }, values: (_, all) => all.map((v) => v + " s") },
      axis("y", this.unit, 3)];
    const right = this.series.find((s) => s.scale);
    if (right) axes.push(axis(right.scale, right.show, 1));
    const series = this.series.map((s) => ({ label: s.label, stroke: color(s.color), width: 1.5, scale: s.scale || "y",
      paths: s.points ? () => null : uPlot.paths.stepped({ align: 1 }),
      points: { show: Boolean(s.points), size: 6 }, value: (_, v) => (v === null || v === undefined ? "" : (s.show || this.unit)(v)) }));
    const cursor = { drag: { x: true, y: false, setScale: false } };
    work.drawn += 1;
    this.chart = new uPlot({
      width: layout.width, height: CHART_HEIGHT, axes, cursor,
      scales: { x: { time: false, range: [0, (trace.bins * trace.bin_ns) / 1e9] }, y: { range: (_, __, most) => [0, most || 1] },
        depth: { range: (_, __, most) => [0, most || 1] } },
      series: [{ label: "time", value: (_, v) => (v === null ? "" : digits(v) + " s") }, ...series],
      hooks: { setSelect: [(chart) => this.selected(chart)] },
    }, columns, this.host);
  }

  selected(chart) {
    if (this.marking || chart.select.width < 2) return;
    const bin = (x) => Math.min(Math.max(Math.floor((chart.posToVal(x, "x") * 1e9) / trace.bin_ns), 0), trace.bins - 1);
    select({ b0: bin(chart.select.left), b1: bin(chart.select.left + chart.select.width) });
  }

  // Shows the selected time.
  mark() {
    this.marking = true;
    const at = (bin) => this.chart.valToPos((bin * trace.bin_ns) / 1e9, "x");
    const [left, right] = state.b0 === null ? [0, 0] : [at(state.b0), at(state.b1 + 1)];
    this.chart.setSelect({ left, top: 0, width: right - left, height: this.chart.bbox.height / (window.devicePixelRatio || 1) }, false);
    this.marking = false;
  }
}

// Groups of bars, { label, values: [read, written, other] }.
class Bars {
  constructor(host, label) {
    this.canvas = el("canvas", { class: "bars", role: "img", "aria-label": label + "; the table below has the figures" });
    host.append(el("h3", {}, label), this.canvas);
  }

  set(groups) {
    if (!changed(this, groups)) return;
    const [width, height] = [layout.width, 180];
    const context = drawing(this.canvas, width, height);
    const most = Math.max(1, ...groups.flatMap((g) => g.values));
    const each = (width - 70) / Math.max(groups.length, 1);
    context.font = "12px system-ui, sans-serif";
    context.fillStyle = color("fg");
    context.textAlign = "right";
    context.fillText(format.calls(most), 62, 12);
    context.fillText("0", 62, height - 22);
    context.textAlign = "center";
    const every = Math.ceil(70 / each);
    groups.forEach((group, at) => {
      const left = 68 + at * each;
      group.values.forEach((value, i) => {
        const tall = (value / most) * (height - 34);
        context.fillStyle = color(DIRECTIONS[i]);
        context.fillRect(left + (i * each * 0.9) / 3, height - 26 - tall, Math.max((each * 0.9) / 3, 1), tall);
      });
      context.fillStyle = color("fg");
      if (at % every === 0) context.fillText(group.label, left + each * 0.45, height - 8);
    });
  }
}

// What can be chosen by one value a rank: arrivals of ranks at a collective call, as points.
class Arrivals {
  constructor(host) {
    this.title = el("h3", {});
    this.canvas = el("canvas", { role: "img" });
    host.append(this.title, this.canvas);
  }

  set(call) {
    if (!changed(this, call, state.r0, state.r1)) return;
    const shown = Boolean(call && call.arrivals);
    this.canvas.hidden = !shown;
    this.title.textContent = !call ? "" : visible("Arrivals at " + call.op + " at " + digits(call.first_ns / 1e9) + " s" +
      (shown ? "" : ": not kept, only those with the greatest spread are"));
    if (!shown) return;
    const label = "When each rank arrived, after the first; the table below has the figures";
    this.canvas.setAttribute("aria-label", label);
    const [width, height] = [layout.width, 200];
    const context = drawing(this.canvas, width, height);
    context.fillStyle = color("fg");
    context.font = "12px system-ui, sans-serif";
    context.fillText(format.ns(call.spread_ns), 4, 12);
    context.fillText("first", 4, height - 22);
    const ranks = trace.ranks.length;
    context.fillText(trace.ranks[call.arrivals[0][0]], 68, height - 6);
    for (const [rank, ns] of call.arrivals) {
      const within = state.r0 === null || (rank >= state.r0 && rank <= state.r1);
      context.fillStyle = color(within ? "write" : "line");
      const x = 68 + (rank / Math.max(ranks - 1, 1)) * (width - 84);
      context.fillRect(x - 2, height - 28 - (ns / Math.max(call.spread_ns, 1)) * (height - 44), 5, 5);
    }
  }
}
