// The call tree as an icicle: the width of a frame is the time in it, what is waited for hangs below the call.

const FRAME = 22;
const LAYER_COLORS = ["#7a869a", "#8a63d2", "#a04fb0", "#5a6fd8", "#2f8fc4", "#2aa198", "#6f8f2f", "#4f7d4a", "#8f7a2f", "#a0662f", "#7d5a4a"];
const PART_COLORS = { runq: "#e8c547", throttle: "#d9480f", lock: "#c2255c", writeback: "#e8590c", journal: "#f08c00", flush: "#f76707",
  devqueue: "#e64980", device: "#e03131", remote: "#9c36b5", sleep: "#adb5bd" };

class Icicle {
  constructor(host, label) {
    this.canvas = el("canvas", { class: "map", tabindex: "0", role: "application", "aria-roledescription": "call tree", "aria-label": label });
    this.about = el("p", { class: "about", "aria-live": "polite" });
    this.legend = el("p", { class: "legend" });
    host.append(el("h3", {}, label), this.canvas, this.about, this.legend);
    this.nodes = trace.tree.nodes.map(([around, layer, name]) => ({ around, layer, name, children: [], own: 0, calls: 0, all: 0, deep: 0 }));
    this.roots = [];
    this.nodes.forEach((node, at) => {
      (node.around === null ? this.roots : this.nodes[node.around].children).push(at);
      node.deep = node.around === null ? 0 : this.nodes[node.around].deep + 1;
    });
    this.zoom = null;
    this.cursor = 0;
    this.canvas.addEventListener("keydown", (event) => this.key(event));
    this.canvas.addEventListener("focus", () => this.draw());
    this.canvas.addEventListener("blur", () => this.draw());
    this.canvas.addEventListener("pointermove", (event) => { const at = this.at(event); if (at !== null) this.tell(at); });
    this.canvas.addEventListener("click", (event) => { const at = this.at(event); if (at !== null) { this.cursor = at; this.zoomTo(at); } });
  }

  set(filter) {
    for (const node of this.nodes) node.own = node.calls = node.all = 0;
    const { bucket, values } = cubes.tree;
    cubes.tree.each({ ...filter, layer: null }, (i) => {
      const node = this.nodes[bucket[i]];
      node.own += values.ns[i];
      node.calls += values.calls[i];
    });
    // A caller has a lower number than what it calls.
    for (let at = this.nodes.length - 1; at >= 0; at -= 1) {
      const node = this.nodes[at];
      node.all += node.own;
      if (node.around !== null) this.nodes[node.around].all += node.all;
    }
  }

  title(at) {
    const node = this.nodes[at];
    if (node.layer) return node.layer + " " + node.name;
    const part = trace.tree.parts.find(([name]) => name === node.name);
    return "waits: " + (part ? part[1] : node.name);
  }

  path(at) {
    const names = [];
    for (let next = at; next !== null; next = this.nodes[next].around) names.unshift(this.nodes[next].name);
    return names.join(" > ");
  }

  color(node) {
    return node.layer ? LAYER_COLORS[trace.layers.indexOf(node.layer)] : PART_COLORS[node.name] || "#868e96";
  }

  draw() {
    const { width } = layout;
    const roots = this.zoom === null ? this.roots : [this.zoom];
    const above = this.zoom === null ? 0 : this.nodes[this.zoom].deep;
    const deep = this.nodes.reduce((most, node) => (node.all > 0 ? Math.max(most, node.deep - above + 1) : most), 1);
    const height = Math.min(deep, 24) * FRAME;
    const context = drawing(this.canvas, width, height);
    context.font = "12px system-ui, sans-serif";
    context.textBaseline = "middle";
    this.frames = [];
    const seen = new Set();
    const all = roots.reduce((sum, at) => sum + this.nodes[at].all, 0);
    const place = (list, left, scale, row) => {
      for (const at of list.filter((n) => this.nodes[n].all > 0).sort((a, b) => this.nodes[b].all - this.nodes[a].all)) {
        const wide = this.nodes[at].all * scale;
        if (wide < 0.5 || row >= 24) break;
        this.frame(context, at, left, row, wide);
        seen.add(this.nodes[at].layer ? "layer " + this.nodes[at].layer : "waits: " + this.nodes[at].name);
        place(this.nodes[at].children, left, scale, row + 1);
        left += wide;
      }
    };
    place(roots, 0, width / Math.max(all, 1), 0);
    this.legend.replaceChildren(...[...seen].sort().map((name) => {
      const box = el("i", {});
      const last = name.split(" ").at(-1);
      box.style.background = name.startsWith("layer") ? LAYER_COLORS[trace.layers.indexOf(last)] : PART_COLORS[last] || "#868e96";
      return el("span", {}, box, name);
    }));
  }

  frame(context, at, left, row, wide) {
    const node = this.nodes[at];
    this.frames.push({ at, left, row, wide });
    context.fillStyle = this.color(node);
    context.fillRect(left, row * FRAME, Math.max(wide - 1, 0.5), FRAME - 1);
    if (at === this.cursor && document.activeElement === this.canvas) {
      context.strokeStyle = color("fg");
      context.lineWidth = 3;
      context.strokeRect(left + 1, row * FRAME + 1, Math.max(wide - 3, 2), FRAME - 3);
    }
    if (wide < 40) return;
    context.fillStyle = ["runq", "sleep"].includes(node.name) ? "#000" : "#fff";
    const text = this.title(at);
    const fits = Math.floor(wide / 7);
    context.fillText(text.length > fits ? text.slice(0, Math.max(fits - 1, 1)) + "…" : text, left + 4, (row + 0.5) * FRAME);
  }

  at(event) {
    const box = this.canvas.getBoundingClientRect();
    const [x, row] = [event.clientX - box.left, Math.floor((event.clientY - box.top) / FRAME)];
    const found = (this.frames || []).find((f) => f.row === row && x >= f.left && x < f.left + f.wide);
    return found ? found.at : null;
  }

  tell(at) {
    const node = this.nodes[at];
    this.about.textContent = visible(this.path(at) + ": " + format.ns(node.all) + " with all below, " + format.ns(node.own) + " of its own, " +
      format.calls(node.calls) + " calls");
  }

  zoomTo(at) {
    this.zoom = this.zoom === at ? null : at;
    this.draw();
    this.tell(at);
  }

  key(event) {
    const drawn = (list) => list.filter((at) => this.frames.some((f) => f.at === at));
    const node = this.nodes[this.cursor];
    if (!node || event.ctrlKey || event.altKey || event.metaKey) return;
    const among = this.frames.filter((f) => this.nodes[f.at].around === node.around).sort((a, b) => a.left - b.left).map((f) => f.at);
    const here = among.indexOf(this.cursor);
    const inner = this.frames.filter((f) => this.nodes[f.at].around === this.cursor).sort((a, b) => a.left - b.left).map((f) => f.at);
    const to = { ArrowRight: among[here + 1], ArrowLeft: among[here - 1], ArrowDown: inner[0], ArrowUp: node.around ?? undefined }[event.key];
    if (event.key.startsWith("Arrow")) {
      if (to !== undefined) this.cursor = to;
      else if (here < 0 && drawn(this.roots).length) this.cursor = drawn(this.roots)[0];
      this.draw();
      this.tell(this.cursor);
    } else if (event.key === "Enter") {
      this.zoomTo(this.cursor);
    } else if (event.key === "Backspace") {
      this.zoom = null;
      this.draw();
    } else {
      return;
    }
    event.preventDefault();
  }
}
