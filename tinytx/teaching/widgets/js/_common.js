// What all explorers share. It imports nothing: Python puts it in front of each explorer's own module.

// ---- numbers: the formulas that tests compare with Python's ----

export const clamp = (x, low, high) => Math.min(high, Math.max(low, x));

// Softmax over the allowed entries; blocked ones get 0, and so does everything where nothing is allowed.
export function softmax(scores, allowed = null) {
  let top = -Infinity;
  for (let i = 0; i < scores.length; i++) if (!allowed || allowed[i]) top = Math.max(top, scores[i]);
  const out = new Float64Array(scores.length);
  let sum = 0;
  for (let i = 0; i < scores.length; i++) {
    if (!allowed || allowed[i]) sum += out[i] = Math.exp(scores[i] - top);
  }
  if (sum > 0) for (let i = 0; i < out.length; i++) out[i] /= sum;
  return out;
}

// In bits.
export function entropy(shares) {
  let bits = 0;
  for (const p of shares) if (p > 0) bits -= p * Math.log2(p);
  return bits;
}

// (n x k) times (k x m), rows one after the other.
export function matmul(a, b, n, k, m) {
  const out = new Float64Array(n * m);
  for (let i = 0; i < n; i++) {
    for (let l = 0; l < k; l++) {
      const x = a[i * k + l];
      for (let j = 0; j < m; j++) out[i * m + j] += x * b[l * m + j];
    }
  }
  return out;
}

// The bytes of a trait (a DataView) as float32; copied only where they do not start at a multiple of four.
const decoded = new WeakMap();
export function floats(view) {
  if (!(view instanceof DataView)) return view;
  if (!decoded.has(view)) {
    const { buffer, byteOffset: at, byteLength: size } = view;
    decoded.set(view, at % 4 ? new Float32Array(buffer.slice(at, at + size)) : new Float32Array(buffer, at, size / 4));
  }
  return decoded.get(view);
}

// ---- words ----

export const percent = (share) => `${(100 * share).toFixed(0)}%`;
// A token is known by its place: the same word may stand there twice.
export const named = (tokens, i) => `${i} “${tokens[i]}”`;
// Numbers in order, runs drawn together: 0, 2–4, 6.
export function listed(items) {
  const parts = [];
  for (let start = 0, end = 1; end <= items.length; end++) {
    if (end < items.length && items[end] === items[end - 1] + 1) continue;
    const run = items.slice(start, end);
    parts.push(...(run.length > 2 ? [`${run[0]}–${run[run.length - 1]}`] : run.map(String)));
    start = end;
  }
  return parts.join(", ");
}

// ---- elements ----

const SVG = new Set(["svg", "path", "line", "circle", "rect", "g", "text", "polyline"]);
const FOCUSABLE = new Set(["button", "input", "select", "textarea", "summary", "a"]);

// An element with attributes and children; attributes named on... are listeners.
export function h(tag, attributes = {}, ...children) {
  const element = SVG.has(tag) ? document.createElementNS("http://www.w3.org/2000/svg", tag) : document.createElement(tag);
  // JupyterLab takes keys from whatever has the focus unless that very element refuses; its parents cannot.
  if (FOCUSABLE.has(tag) || "tabindex" in attributes) element.setAttribute("data-lm-suppress-shortcuts", "true");
  for (const [name, value] of Object.entries(attributes)) {
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else if (value === true) element.setAttribute(name, "");
    else if (value !== false && value != null) element.setAttribute(name, value);
  }
  element.append(...children.flat(Infinity).filter((child) => child != null));
  return element;
}

let made = 0;
export const uid = () => `tx-${++made}-${Math.random().toString(36).slice(2, 8)}`;

// One stop for Tab in a group of elements, the arrow keys move within; `columns` makes it a grid.
// go(index) is called when a key chose another element.
export function roving(box, elements, { columns = 1, go = () => {} } = {}) {
  const move = (to) => {
    elements.forEach((element, i) => { element.tabIndex = i === to ? 0 : -1; });
  };
  box.addEventListener("keydown", (event) => {
    const at = elements.indexOf(event.target);
    const column = at % columns;
    const steps = columns === 1
      ? { ArrowDown: 1, ArrowRight: 1, ArrowUp: -1, ArrowLeft: -1, Home: -at, End: elements.length - 1 - at }
      : { ArrowDown: columns, ArrowUp: -columns, ArrowRight: column < columns - 1 ? 1 : 0, ArrowLeft: column ? -1 : 0,
          Home: -column, End: columns - 1 - column };
    const step = steps[event.key];
    if (at < 0 || step === undefined || event.ctrlKey || event.metaKey || event.altKey) return;
    event.preventDefault();
    const to = at + step;
    if (step === 0 || to < 0 || to >= elements.length) return;
    move(to);
    elements[to].focus();
    go(to);
  });
  return move;
}

// ---- colours ----

// From nothing to all: on paper the darker, on a dark ground the brighter.
const RAMPS = {
  light: [[244, 248, 253], [178, 206, 235], [92, 150, 208], [33, 94, 168], [8, 42, 98]],
  dark: [[33, 39, 49], [38, 70, 112], [58, 112, 172], [112, 168, 226], [206, 228, 252]],
};
const BLOCKED = { light: [[231, 233, 237], [150, 157, 167]], dark: [[44, 48, 56], [104, 112, 124]] };
export const rgb = (color) => `rgb(${color.join(" ")})`;
export function shade(share, theme) {
  const stops = RAMPS[theme], place = clamp(share, 0, 1) * (stops.length - 1), low = Math.min(Math.floor(place), stops.length - 2);
  return stops[low].map((a, i) => Math.round(a + (stops[low + 1][i] - a) * (place - low)));
}
// Black or white, whichever can be read on this colour.
export function inkOn(color) {
  const [r, g, b] = color.map((c) => (c / 255 <= 0.04045 ? c / 255 / 12.92 : ((c / 255 + 0.055) / 1.055) ** 2.4));
  return 0.2126 * r + 0.7152 * g + 0.0722 * b > 0.179 ? "#000" : "#fff";
}

const hatching = {};
function hatch(context, theme) {
  hatching[theme] ??= (() => {
    const tile = h("canvas", { width: 8, height: 8 }), pen = tile.getContext("2d"), [ground, stripe] = BLOCKED[theme];
    pen.fillStyle = rgb(ground);
    pen.fillRect(0, 0, 8, 8);
    pen.strokeStyle = rgb(stripe);
    pen.lineWidth = 1.6;
    for (const x of [-8, 0, 8]) {
      pen.beginPath();
      pen.moveTo(x, 8);
      pen.lineTo(x + 8, 0);
      pen.stroke();
    }
    return tile;
  })();
  return context.createPattern(hatching[theme], "repeat");
}

// Draw a matrix of shares: blocked(i, j) is hatched, so that nobody takes it for a weight of 0.
export function paintCells(canvas, { rows, cols, size, share, blocked = () => false, theme, numbers = false }) {
  const sharp = window.devicePixelRatio || 1, gap = size >= 9 ? 1 : 0, pen = canvas.getContext("2d");
  canvas.width = Math.round(cols * size * sharp);
  canvas.height = Math.round(rows * size * sharp);
  canvas.style.width = `${cols * size}px`;
  canvas.style.height = `${rows * size}px`;
  pen.scale(sharp, sharp);
  const stripes = hatch(pen, theme);
  pen.textAlign = "center";
  pen.textBaseline = "middle";
  pen.font = `${Math.min(12, size * 0.4)}px system-ui, sans-serif`;
  for (let i = 0; i < rows; i++) {
    for (let j = 0; j < cols; j++) {
      const off = blocked(i, j), value = share(i, j), color = off ? null : shade(value, theme);
      pen.fillStyle = off ? stripes : rgb(color);
      pen.fillRect(j * size, i * size, size - gap, size - gap);
      if (numbers && !off) {
        pen.fillStyle = inkOn(color);
        pen.fillText(value.toFixed(2).replace(/^0/, ""), (j + 0.5) * size - gap / 2, (i + 0.5) * size);
      }
    }
  }
}

// The same at one pixel a cell, for thumbnails.
export function paintPixels(canvas, { rows, cols, share, blocked = () => false, theme }) {
  canvas.width = cols;
  canvas.height = rows;
  const pen = canvas.getContext("2d"), image = pen.createImageData(cols, rows), [ground, stripe] = BLOCKED[theme];
  const table = Array.from({ length: 256 }, (_, i) => shade(i / 255, theme));
  for (let i = 0, at = 0; i < rows; i++) {
    for (let j = 0; j < cols; j++, at += 4) {
      const off = blocked(i, j), color = off ? ((i + j) % 3 ? ground : stripe) : table[Math.round(255 * clamp(share(i, j), 0, 1))];
      image.data.set(color, at);
      image.data[at + 3] = 255;
    }
  }
  pen.putImageData(image, 0, 0);
}

// ---- the frame of an explorer ----

// Turn build(ui) and describe(get) into what anywidget and our own host call.
export function explorer({ build, describe }) {
  return {
    render({ model, el }) {
      const leaving = new AbortController();
      build(frame(model, el, describe, leaving.signal));
      return () => leaving.abort();
    },
  };
}

function frame(model, el, describe, signal) {
  const status = h("p", { class: "tx-say", role: "status" });
  const tip = h("div", { class: "tx-tip", "aria-hidden": "true", hidden: true });
  const root = h("div", { class: "tx", role: "group", "aria-label": model.get("title") });
  el.append(root);
  const painters = [];
  let asked = 0, spoken;
  const get = (key) => floats(model.get(key));
  const draw = () => {
    asked = 0;
    if (signal.aborted) return;
    painters.forEach((paint) => paint());
    // While a key is held the summary waits, or a screen reader would be flooded.
    clearTimeout(spoken);
    const text = describe(get);
    if (status.textContent) spoken = setTimeout(() => { if (status.textContent !== text) status.textContent = text; }, 150);
    else status.textContent = text;
  };
  const redraw = () => { asked ||= requestAnimationFrame(draw); };
  const ui = {
    model, root, signal, get, redraw,
    // set: while a gesture lasts; save: when it is done, one message to the kernel.
    set(key, value) { model.set(key, value); },
    save(key, value) { model.set(key, value); model.save_changes(); },
    done() { model.save_changes(); },
    get theme() { return inkOn(getComputedStyle(root).color.match(/\d+/g).slice(0, 3).map(Number)) === "#fff" ? "light" : "dark"; },
    // What parts may take up, in pixels.
    get width() { return (root.clientWidth || 640) - 30; },
    // Show parts, then call paint now and once a frame after any change of state, theme or width.
    show(paint, ...parts) {
      root.append(...parts.flat(Infinity), status, tip);
      painters.push(paint);
      draw();
    },
    // A note beside the pointer; null takes it away. What it says must also be found without a pointer.
    tip(text, event) {
      tip.hidden = text == null;
      if (tip.hidden) return;
      tip.textContent = text;
      const box = root.getBoundingClientRect(), left = event.clientX - box.left;
      tip.style.left = `${clamp(left + 14, 0, Math.max(0, box.width - tip.offsetWidth - 2))}px`;
      tip.style.top = `${event.clientY - box.top + 18}px`;
    },
    slider: (key, options) => slider(ui, key, options),
    toggle: (key, options) => toggle(ui, key, options),
    choice: (key, options) => choice(ui, key, options),
    painters,
  };
  model.on("change", redraw);
  const dark = matchMedia("(prefers-color-scheme: dark)"), themes = new MutationObserver(redraw);
  dark.addEventListener("change", redraw, { signal });
  themes.observe(document.body, { attributes: true, attributeFilter: ["data-jp-theme-light", "class"] });
  let width = 0;
  const sizes = new ResizeObserver(() => { if (root.clientWidth !== width) { width = root.clientWidth; redraw(); } });
  sizes.observe(root);
  signal.addEventListener("abort", () => { model.off("change", redraw); themes.disconnect(); sizes.disconnect(); clearTimeout(spoken); });
  return ui;
}

// ---- controls: native inputs, so that keys, names and values come with them ----

// to and from turn the place of the handle into the value of the state, as for a logarithmic scale.
function slider(ui, key, { label, min, max, step = 1, format = String, to = (x) => x, from = (x) => x }) {
  const id = uid();
  const value = h("span", { class: "tx-value", "aria-hidden": "true" });
  const input = h("input", {
    id, type: "range", min, max, step,
    oninput: () => ui.set(key, to(+input.value)), onchange: () => ui.done(),
  });
  ui.painters.push(() => {
    const now = ui.get(key);
    input.value = from(now);
    value.textContent = format(now);
    input.setAttribute("aria-valuetext", format(now));
  });
  return h("div", { class: "tx-control" }, h("label", { for: id }, label), input, value);
}

function toggle(ui, key, { label }) {
  const id = uid(), input = h("input", { id, type: "checkbox", onchange: () => ui.save(key, input.checked) });
  ui.painters.push(() => { input.checked = ui.get(key); });
  return h("div", { class: "tx-control tx-toggle" }, input, h("label", { for: id }, label));
}

// options: [value, words] pairs.
function choice(ui, key, { label, options }) {
  const name = uid();
  const inputs = options.map(([value]) => h("input", { type: "radio", name, id: uid(), onchange: () => ui.save(key, value) }));
  ui.painters.push(() => inputs.forEach((input, i) => { input.checked = options[i][0] === ui.get(key); }));
  return h("fieldset", { class: "tx-choice" }, h("legend", {}, label),
    inputs.map((input, i) => h("span", {}, input, h("label", { for: input.id }, options[i][1]))));
}
