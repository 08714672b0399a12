// Sums by rank, file, side (layer and direction), bucket and time bin, as src/export/html/cube.rs writes them.

class Cube {
  constructor(data) {
    const cells = data.steps.length;
    Object.assign(this, { cells, bins: data.bins, ranks: data.ranks, binStep: data.bin_step, rankStep: data.rank_step });
    this.rank = new Uint16Array(cells);
    this.file = new Uint8Array(cells);
    this.side = new Uint8Array(cells);
    this.bucket = new Uint16Array(cells);
    this.bin = new Uint16Array(cells);
    let number = 0;
    for (let i = 0; i < cells; i += 1) {
      number += data.steps[i];
      let rest = number;
      const part = (of) => { const at = rest % of; rest = (rest - at) / of; return at; };
      this.bin[i] = part(data.bins);
      this.bucket[i] = part(data.buckets);
      this.side[i] = part(data.sides);
      this.file[i] = part(data.files);
      this.rank[i] = rest;
    }
    this.layer = this.side.map((side) => Math.floor(side / 3));
    // The cells of each layer, and all of them: in the order of ranks.
    this.all = Uint32Array.from(this.rank.keys());
    this.ofLayer = new Map();
    for (const layer of new Set(this.layer)) this.ofLayer.set(layer, this.all.filter((i) => this.layer[i] === layer));
    this.values = {};
    for (const [name, column] of Object.entries(data.values)) this.values[name] = Float64Array.from(column);
  }

  // The filter in this cube's own ranks and bins.
  range(filter) {
    const down = (at, step, otherwise) => (at === null ? otherwise : Math.floor(at / step));
    return {
      file: filter.file, layer: filter.layer ?? null,
      r0: down(filter.r0, this.rankStep, 0), r1: down(filter.r1, this.rankStep, this.ranks - 1),
      b0: down(filter.b0, this.binStep, 0), b1: down(filter.b1, this.binStep, this.bins - 1),
    };
  }

  // Calls f with the number of each cell that passes the filter.
  each(filter, f) {
    const { file, layer, r0, r1, b0, b1 } = this.range(filter);
    const cells = layer === null ? this.all : this.ofLayer.get(layer) || [];
    const { bin } = this;
    const [first, end] = [this.firstOf(cells, r0), this.firstOf(cells, r1 + 1)];
    work.cells += end - first;
    for (let at = first; at < end; at += 1) {
      const i = cells[at];
      if (bin[i] < b0 || bin[i] > b1 || (file !== null && this.file[i] !== file)) continue;
      f(i);
    }
  }

  // Where the cells of a rank begin among some.
  firstOf(cells, rank) {
    let [low, high] = [0, cells.length];
    while (low < high) {
      const middle = (low + high) >> 1;
      if (this.rank[cells[middle]] < rank) low = middle + 1;
      else high = middle;
    }
    return low;
  }

  // What is shown in place of a selection that is finer than the cube; null where it is as asked.
  coarser(filter) {
    const { r0, r1, b0, b1 } = this.range(filter);
    const said = [];
    const inexact = (from, to, a, b, step, most) =>
      from !== null && (a * step !== from || Math.min((b + 1) * step - 1, most) !== to);
    if (inexact(filter.r0, filter.r1, r0, r1, this.rankStep, trace.ranks.length - 1)) {
      said.push("of " + rankLabel(r0 * this.rankStep, Math.min((r1 + 1) * this.rankStep, trace.ranks.length) - 1));
    }
    if (inexact(filter.b0, filter.b1, b0, b1, this.binStep, trace.bins - 1)) {
      said.push("from " + timeLabel(b0 * this.binStep) + " to " + timeLabel((b1 + 1) * this.binStep));
    }
    return said.length ? "The selection is finer than what is kept here: this is " + said.join(" and ") + "." : null;
  }
}

function rankLabel(from, to) {
  const first = trace.ranks[from];
  return from === to ? first : first + " to " + trace.ranks[to];
}

// The begin of a bin of the page.
function timeLabel(bin) {
  return digits(bin * trace.bin_ns / 1e9) + " s";
}
