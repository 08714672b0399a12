// A table below each picture: the first rows, all on request, and the sums of all.

const FIRST_ROWS = 15;

class Table {
  // columns: { head, value(row) -> number or text, show(value) -> text, press(row) }; of numbers the sum is shown.
  constructor(host, caption, columns) {
    this.columns = columns;
    this.all = false;
    this.rows = [];
    const head = el("tr", {}, columns.map((c) => el("th", { scope: "col", class: c.show ? "number" : "" }, c.head)));
    this.body = el("tbody");
    this.foot = el("tfoot");
    this.table = el("table", {}, el("caption", {}, caption), el("thead", {}, head), this.body, this.foot);
    this.more = el("button", { type: "button", class: "more", onclick: () => { this.all = !this.all; this.draw(); } });
    host.append(this.table, this.more);
  }

  set(rows) {
    this.rows = rows;
    this.draw();
  }

  draw() {
    const shown = this.all ? this.rows : this.rows.slice(0, FIRST_ROWS);
    this.body.replaceChildren(...shown.map((row) => el("tr", {}, this.columns.map((c) => this.cell(c, row)))));
    const sums = this.columns.map((c, at) => {
      if (!c.show || c.sum === false) return el("td", {}, at === 0 ? "all" : "");
      const sum = this.rows.reduce((total, row) => total + c.value(row), 0);
      return el("td", { class: "number", "data-value": sum }, c.show(sum));
    });
    const summed = this.columns.some((c) => c.show && c.sum !== false);
    this.foot.replaceChildren(...(summed ? [el("tr", {}, sums)] : []));
    this.more.hidden = this.rows.length <= FIRST_ROWS;
    this.more.textContent = this.all ? "Show the first " + FIRST_ROWS : "Show all " + this.rows.length + " rows";
  }

  cell(column, row) {
    const value = column.value(row);
    if (column.show) return el("td", { class: "number", "data-value": value }, column.show(value));
    if (!column.press) return el("td", {}, value);
    return el("td", {}, el("button", { type: "button", onclick: () => column.press(row) }, value));
  }
}

const FIGURES = [
  { head: "calls", value: (r) => r.calls, show: format.calls },
  { head: "read", value: (r) => r.read, show: format.bytes },
  { head: "written", value: (r) => r.written, show: format.bytes },
  { head: "time in calls", value: (r) => r.ns, show: format.ns },
  { head: "errors", value: (r) => r.errors, show: format.errors },
];

// Sums of the cells that pass the filter, by a key.
function sumsBy(filter, key) {
  const groups = new Map();
  const { side, values } = cubes.calls;
  cubes.calls.each(filter, (i) => {
    const at = key(i);
    let sums = groups.get(at);
    if (!sums) groups.set(at, (sums = { key: at, calls: 0, read: 0, written: 0, ns: 0, errors: 0 }));
    sums.calls += values.calls[i];
    if (side[i] % 3 === 0) sums.read += values.bytes[i];
    if (side[i] % 3 === 1) sums.written += values.bytes[i];
    sums.ns += values.ns[i];
    sums.errors += values.errors[i];
  });
  return [...groups.values()];
}
