// The trace, and what is selected of it.

const trace = JSON.parse(document.getElementById("data").textContent);
const cubes = Object.fromEntries(Object.entries(trace.cubes).map(([name, data]) => [name, new Cube(data)]));
delete trace.cubes;

const NONE = { file: null, r0: null, r1: null, b0: null, b1: null };
const state = { ...NONE, layer: 0, measure: "bytes" };
const listeners = [];
// The width of pictures, which is looked up before anything is drawn: the browser lays the page out for each look.
const layout = { width: 400 };

function onChange(f) {
  listeners.push(f);
}

function select(change) {
  Object.assign(state, change);
  for (const listener of listeners) listener();
}

// A figure of the selection that is worked out again only when what it is made of has changed.
function remembered(compute) {
  let [key, value] = [null, null];
  return (...of) => {
    const now = JSON.stringify(of);
    if (now !== key) [key, value] = [now, compute(...of)];
    return value;
  };
}

// Whether a picture is to be drawn again: its theme, its width or what it shows is not what it was.
function changed(picture, ...shown) {
  const now = [document.documentElement.dataset.theme, layout.width, ...shown];
  const same = picture.drawn && now.every((part, at) => part === picture.drawn[at]);
  picture.drawn = now;
  return !same;
}

// The selection without some of its sides: a picture shows what it could select.
function filterBut(...left) {
  const filter = { file: state.file, r0: state.r0, r1: state.r1, b0: state.b0, b1: state.b1, layer: state.layer };
  for (const name of left) filter[name] = null;
  return filter;
}

// The layers that calls were made in, and the one that is shown first: system calls, else that with the most time.
function layersPresent() {
  const ns = new Map();
  const { layer, values } = cubes.calls;
  for (let i = 0; i < cubes.calls.cells; i += 1) ns.set(layer[i], (ns.get(layer[i]) || 0) + values.ns[i]);
  return [...ns.keys()].sort((a, b) => a - b).map((at) => ({ layer: at, ns: ns.get(at) }));
}
