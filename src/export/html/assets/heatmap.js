// A heat map on a canvas: rows by time, selected by mouse and keyboard.

// Rows of a map at most: a screen has no more pixels for them.
const MOST_ROWS = 512;
const LEFT = 150;
const BOTTOM = 22;
// Dark blue to yellow (viridis): as distinct without colours, on light and dark ground.
const STOPS = [[68, 1, 84], [59, 82, 139], [33, 145, 140], [94, 201, 98], [253, 231, 37]];

function shade(part) {
  const at = Math.min(Math.max(part, 0), 1) * (STOPS.length - 1);
  const low = Math.min(Math.floor(at), STOPS.length - 2);
  return STOPS[low].map((from, i) => Math.round(from + (STOPS[low + 1][i] - from) * (at - low)));
}

// As the bytes of a pixel: red, green, blue and opaque.
const SHADES = new Uint32Array(Uint8Array.from(Array.from({ length: 256 }, (_, at) => [...shade(0.12 + (0.88 * at) / 255), 255]).flat()).buffer);

class HeatMap {
  // spec: { label, row(at) -> text, time(at) -> text of the begin of a bin, show(value) -> text, pick({r0, r1, b0, b1}) }
  constructor(host, spec) {
    this.spec = spec;
    this.canvas = el("canvas", { class: "map", tabindex: "0", role: "application", "aria-roledescription": "heat map",
      "aria-label": spec.label });
    this.about = el("p", { class: "about", "aria-live": "polite" });
    host.append(el("h3", {}, spec.label), this.canvas, this.about);
    this.cursor = { r0: 0, r1: 0, b0: 0, b1: 0 };
    this.shape = { rows: 1, bins: 1 };
    this.picture = el("canvas");
    this.canvas.addEventListener("keydown", (event) => this.key(event));
    this.canvas.addEventListener("focus", () => this.draw());
    this.canvas.addEventListener("blur", () => this.draw());
    for (const type of ["pointerdown", "pointermove", "pointerup", "pointerleave"]) {
      this.canvas.addEventListener(type, (event) => this.pointer(event));
    }
  }

  // values: rows x bins; chosen: the selected part, { r0, r1, b0, b1 } in rows and bins, null: all.
  set(rows, bins, values, chosen) {
    if (!changed(this, values, rows, JSON.stringify(chosen))) return;
    const same = values === this.values;
    Object.assign(this, { values, shape: { rows, bins } });
    if (!same) this.shade(rows, bins);
    const { r0, r1, b0, b1 } = chosen;
    this.chosen = { r0: r0 ?? 0, r1: r1 ?? rows - 1, b0: b0 ?? 0, b1: b1 ?? bins - 1 };
    for (const side of ["r0", "r1"]) this.cursor[side] = Math.min(this.cursor[side], rows - 1);
    for (const side of ["b0", "b1"]) this.cursor[side] = Math.min(this.cursor[side], bins - 1);
    this.draw();
  }

  draw() {
    if (!this.values) return;
    const { rows } = this.shape;
    const height = Math.round(Math.max(rows * Math.min(18, Math.max(1, 320 / rows)), 36));
    const { width } = layout;
    this.plot = { width: width - LEFT - 8, height };
    const context = drawing(this.canvas, width, height + BOTTOM);
    context.fillStyle = color("panel");
    context.fillRect(LEFT, 0, this.plot.width, height);
    context.imageSmoothingEnabled = false;
    context.drawImage(this.picture, LEFT, 0, this.plot.width, height);
    this.veil(context);
    this.axes(context);
    if (document.activeElement === this.canvas) this.frame(context, this.cursor, color("accent"), 3);
  }

  // Makes the picture: a pixel for each cell.
  shade(rows, bins) {
    if (this.pixels?.width !== bins || this.pixels.height !== rows) {
      Object.assign(this.picture, { width: bins, height: rows });
      this.pixels = this.picture.getContext("2d").createImageData(bins, rows);
    }
    const { values } = this;
    let [least, most, filled] = [Infinity, 0, 0];
    for (let i = 0; i < values.length; i += 1) {
      const value = values[i];
      if (value <= 0) continue;
      filled += 1;
      if (value < least) least = value;
      if (value > most) most = value;
    }
    const dots = new Uint32Array(this.pixels.data.buffer).fill(0);
    const scale = 255 / (Math.log(most / least) || 1);
    for (let i = 0; filled > 0 && i < values.length; i += 1) {
      if (values[i] > 0) dots[i] = SHADES[most === least ? 255 : Math.round(Math.log(values[i] / least) * scale)];
    }
    work.shaded += filled;
    this.picture.getContext("2d").putImageData(this.pixels, 0, 0);
  }

  x(bin) { return LEFT + (bin / this.shape.bins) * this.plot.width; }
  y(row) { return (row / this.shape.rows) * this.plot.height; }

  // What is not selected is behind a veil.
  veil(context) {
    const { r0, r1, b0, b1 } = this.chosen;
    const { width, height } = this.plot;
    context.fillStyle = color("veil");
    const [left, right, top, bottom] = [this.x(b0), this.x(b1 + 1), this.y(r0), this.y(r1 + 1)];
    context.fillRect(LEFT, 0, left - LEFT, height);
    context.fillRect(right, 0, LEFT + width - right, height);
    context.fillRect(left, 0, right - left, top);
    context.fillRect(left, bottom, right - left, height - bottom);
  }

  frame(context, { r0, r1, b0, b1 }, style, line) {
    const [top, bottom, left, right] = [Math.min(r0, r1), Math.max(r0, r1) + 1, Math.min(b0, b1), Math.max(b0, b1) + 1];
    context.strokeStyle = style;
    context.lineWidth = line;
    const [w, h] = [Math.max(this.x(right) - this.x(left), 3), Math.max(this.y(bottom) - this.y(top), 3)];
    context.strokeRect(this.x(left), this.y(top), w, h);
  }

  axes(context) {
    const { rows, bins } = this.shape;
    context.fillStyle = color("fg");
    context.font = "12px system-ui, sans-serif";
    context.textBaseline = "middle";
    context.textAlign = "right";
    const every = Math.max(1, Math.ceil((rows * 14) / this.plot.height));
    for (let row = 0; row < rows; row += every) {
      const text = visible(this.spec.row(row));
      const cut = text.length > 22 ? "…" + text.slice(-21) : text;
      context.fillText(cut, LEFT - 6, this.y(row + 0.5), LEFT - 10);
    }
    context.textBaseline = "top";
    for (let tick = 0; tick <= 6; tick += 1) {
      context.textAlign = tick === 0 ? "left" : tick === 6 ? "right" : "center";
      context.fillText(this.spec.time((bins * tick) / 6), LEFT + (this.plot.width * tick) / 6, this.plot.height + 5);
    }
  }

  // The cell under the pointer; outside of the plot the row or the bin alone.
  at(event) {
    const box = this.canvas.getBoundingClientRect();
    const [x, y] = [event.clientX - box.left, event.clientY - box.top];
    const clamp = (part, of) => Math.min(Math.max(Math.floor(part * of), 0), of - 1);
    return { row: clamp(y / this.plot.height, this.shape.rows), bin: clamp((x - LEFT) / this.plot.width, this.shape.bins),
      rowOnly: x < LEFT, binOnly: y > this.plot.height };
  }

  pointer(event) {
    if (!this.plot) return;
    const at = this.at(event);
    if (event.type === "pointerdown") {
      this.canvas.setPointerCapture(event.pointerId);
      this.canvas.focus();
      this.held = true;
      this.cursor = { r0: at.row, r1: at.row, b0: at.bin, b1: at.bin };
    } else if (event.type === "pointermove" && this.held) {
      Object.assign(this.cursor, { r1: at.row, b1: at.bin });
    } else if (event.type === "pointermove") {
      this.tell(at.row, at.row, at.bin, at.bin);
      return;
    } else if (event.type === "pointerup" && this.held) {
      this.held = false;
      this.pick(at.rowOnly, at.binOnly);
      return;
    } else {
      this.held = false;
      return;
    }
    this.draw();
    this.tellCursor();
  }

  key(event) {
    const moves = { ArrowLeft: [0, -1], ArrowRight: [0, 1], ArrowUp: [-1, 0], ArrowDown: [1, 0],
      Home: [0, -Infinity], End: [0, Infinity], PageUp: [-10, 0], PageDown: [10, 0] };
    const move = moves[event.key];
    const key = event.key.toLowerCase();
    if (event.ctrlKey || event.altKey || event.metaKey) return;
    if (move) {
      const clamp = (value, of) => Math.min(Math.max(value, 0), of - 1);
      this.cursor.r1 = clamp(this.cursor.r1 + move[0], this.shape.rows);
      this.cursor.b1 = clamp(this.cursor.b1 + move[1], this.shape.bins);
      if (!event.shiftKey) Object.assign(this.cursor, { r0: this.cursor.r1, b0: this.cursor.b1 });
      this.draw();
      this.tellCursor();
    } else if (key === "enter" || key === " ") {
      this.pick(false, false);
    } else if (key === "r" || key === "t") {
      this.pick(key === "r", key === "t");
    } else {
      return;
    }
    event.preventDefault();
  }

  pick(rowOnly, binOnly) {
    const { r0, r1, b0, b1 } = this.cursor;
    const picked = {};
    if (!binOnly) Object.assign(picked, { r0: Math.min(r0, r1), r1: Math.max(r0, r1) });
    if (!rowOnly) Object.assign(picked, { b0: Math.min(b0, b1), b1: Math.max(b0, b1) });
    this.spec.pick(picked);
  }

  tellCursor() {
    const { r0, r1, b0, b1 } = this.cursor;
    this.tell(Math.min(r0, r1), Math.max(r0, r1), Math.min(b0, b1), Math.max(b0, b1));
  }

  tell(r0, r1, b0, b1) {
    let sum = 0;
    for (let row = r0; row <= r1; row += 1) {
      for (let bin = b0; bin <= b1; bin += 1) sum += this.values[row * this.shape.bins + bin];
    }
    const rows = r0 === r1 ? this.spec.row(r0) : this.spec.row(r0) + " to " + this.spec.row(r1);
    this.about.textContent = visible(rows + ", " + this.spec.time(b0) + " to " + this.spec.time(b1 + 1) + ": " + this.spec.show(sum));
  }
}
