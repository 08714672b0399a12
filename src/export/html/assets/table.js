// A table below each picture: the first rows, more on request, and the sums of all.

const FIRST_ROWS = 15;
const MORE_ROWS = 200;

class Table {
  // columns: { head, value(row) -> number or text, show(value) -> text, press(row) }; of numbers the sum is shown.
  constructor(host, caption, columns) {
    this.columns = columns;
    this.most = FIRST_ROWS;
    this.rows = [];
    this.lines = [];
    const head = el("tr", {}, columns.map((c) => el("th", { scope: "col", class: c.show ? "number" : "" }, c.head)));
    this.body = el("tbody");
    this.sums = this.line();
    this.foot = el("tfoot", {}, ...(columns.some(hasSum) ? [el("tr", {}, this.sums.map(({ cell }) => cell))] : []));
    this.table = el("table", {}, el("caption", {}, caption), el("thead", {}, head), this.body, this.foot);
    this.more = el("button", { type: "button", class: "more", onclick: () => { this.most += MORE_ROWS; this.draw(); } });
    this.fewer = el("button", { type: "button", class: "more", onclick: () => { this.most = FIRST_ROWS; this.draw(); } }, "Show the first " + FIRST_ROWS);
    host.append(this.table, this.more, this.fewer);
  }

  set(rows) {
    if (rows === this.rows) return;
    this.rows = rows;
    this.draw();
  }

  draw() {
    const shown = this.rows.slice(0, this.most);
    for (const line of this.lines.splice(shown.length)) line.element.remove();
    for (let at = this.lines.length; at < shown.length; at += 1) {
      const cells = this.line(() => this.rows[at]);
      const element = el("tr", {}, cells.map(({ cell }) => cell));
      this.lines.push({ cells, element });
      this.body.append(element);
    }
    shown.forEach((row, at) => this.columns.forEach((c, i) => write(this.lines[at].cells[i], c, c.value(row))));
    this.columns.forEach((c, at) => {
      if (hasSum(c)) write(this.sums[at], c, this.rows.reduce((total, row) => total + c.value(row), 0));
    });
    const left = this.rows.length - shown.length;
    this.more.hidden = left <= 0;
    this.fewer.hidden = this.most === FIRST_ROWS || this.rows.length <= FIRST_ROWS;
    this.more.textContent = "Show " + Math.min(left, MORE_ROWS) + " more of " + this.rows.length + " rows";
  }

  // The cells of a line; without a row those of the sums.
  line(row) {
    return this.columns.map((column, at) => {
      if (column.show) {
        const cell = el("td", { class: "number" });
        return { cell, text: cell };
      }
      if (!row) return { cell: el("td", {}, at === 0 ? "all" : "") };
      const button = column.press && el("button", { type: "button", onclick: () => column.press(row()) });
      const cell = el("td", {}, button || "");
      return { cell, text: button || cell };
    });
  }
}

function hasSum(column) {
  return Boolean(column.show) && column.sum !== false;
}

// Writes a value into a cell where another one stands.
function write(place, column, value) {
  if (place.value === value) return;
  place.value = value;
  place.text.textContent = column.show ? column.show(value) : visible(value);
  if (column.show) place.cell.dataset.value = value;
  work.written += 1;
}

const FIGURES = [
  { head: "calls", value: (r) => r.calls, show: format.calls },
  { head: "read", value: (r) => r.read, show: format.bytes },
  { head: "written", value: (r) => r.written, show: format.bytes },
  { head: "time in calls", value: (r) => r.ns, show: format.ns },
  { head: "errors", value: (r) => r.errors, show: format.errors },
];

// Sums of the cells that pass the filter by a column of numbers, in its order.
function sumsBy(filter, keys) {
  const groups = [];
  const { side, values } = cubes.calls;
  const { calls, bytes, ns, errors } = values;
  cubes.calls.each(filter, (i) => {
    const sums = (groups[keys[i]] ??= { key: keys[i], calls: 0, read: 0, written: 0, ns: 0, errors: 0 });
    sums.calls += calls[i];
    if (side[i] % 3 === 0) sums.read += bytes[i];
    if (side[i] % 3 === 1) sums.written += bytes[i];
    sums.ns += ns[i];
    sums.errors += errors[i];
  });
  return groups.filter(Boolean);
}
