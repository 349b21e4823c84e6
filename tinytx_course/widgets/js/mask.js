// The mask explorer. `get` maps the name of a trait to its value, buffers as float32.

// 1 where query i may look at key j, at i * T + j.
export function allowedCells(get) {
  const n = get("tokens").length, out = new Uint8Array(n * n);
  for (let i = 0; i < n; i++) {
    for (let j = 0; j < n; j++) {
      const near = !get("window") || Math.abs(i - j) < get("window");
      const seen = ((!get("causal") || j <= i) && near) || j < get("prefix");
      out[i * n + j] = seen && j < n - get("padding") ? 1 : 0;
    }
  }
  for (const cell of get("drawn")) out[cell] ^= 1;
  return out;
}

export function maskedWeights(get, x, allowed) {
  const n = get("tokens").length, d = x.length / n, maps = get("maps"), size = d * d;
  const q = matmul(x, maps.subarray(0, size), n, d, d), k = matmul(x, maps.subarray(size, 2 * size), n, d, d);
  const out = new Float64Array(n * n), before = get("where") === "before";
  for (let i = 0; i < n; i++) {
    const scores = new Float64Array(n);
    for (let j = 0; j < n; j++) {
      for (let c = 0; c < d; c++) scores[j] += q[i * d + c] * k[j * d + c];
      scores[j] /= Math.sqrt(d);
    }
    const open = allowed.subarray(i * n, (i + 1) * n);
    softmax(scores, before ? open : null).forEach((w, j) => { out[i * n + j] = open[j] ? w : 0; });
  }
  return out;
}

// By how much each output moves when one input is pushed aside.
export function outputMoves(get, allowed) {
  const n = get("tokens").length, push = get("push"), d = push.length, v = get("maps").subarray(2 * d * d);
  const run = (x) => {
    for (let layer = 0; layer < get("layers"); layer++) {
      const context = matmul(maskedWeights(get, x, allowed), matmul(x, v, n, d, d), n, n, d);
      x = x.map((a, c) => a + context[c]);
    }
    return x;
  };
  const start = Float64Array.from(get("inputs")), pushed = start.slice();
  push.forEach((a, c) => { pushed[get("moved") * d + c] += a; });
  const one = run(start), other = run(pushed);
  return Array.from({ length: n }, (_, i) => {
    let most = 0;
    for (let c = i * d; c < (i + 1) * d; c++) most = Math.max(most, Math.abs(one[c] - other[c]));
    return most;
  });
}

// Which outputs the mask lets the moved input reach, in as many layers.
export function reachable(get, allowed) {
  const n = get("tokens").length;
  let lit = Array.from({ length: n }, (_, i) => i === get("moved"));
  for (let layer = 0; layer < get("layers"); layer++) {
    lit = lit.map((now, i) => now || lit.some((on, j) => on && allowed[i * n + j]));
  }
  return lit;
}

const rowSums = (weights, n) => Array.from({ length: n }, (_, i) => weights.subarray(i * n, (i + 1) * n).reduce((a, b) => a + b, 0));
const verdictOf = (much, reach) => (much <= 1e-9 ? "still" : reach ? "moves" : "LEAK");

export function describe(get) {
  const tokens = get("tokens"), n = tokens.length, moved = get("moved"), drawn = get("drawn").length;
  const allowed = allowedCells(get), sums = rowSums(maskedWeights(get, Float64Array.from(get("inputs")), allowed), n);
  const [low, high] = [Math.min(...sums), Math.max(...sums)].map((sum) => sum.toFixed(2));
  const moves = outputMoves(get, allowed), reach = reachable(get, allowed);
  const rules = [get("causal") && "causal", ...["window", "prefix", "padding"].map((key) => get(key) && `${key} ${get(key)}`), drawn && `${drawn} cells drawn`];
  const verdicts = moves.map((much, i) => verdictOf(much, reach[i])), places = [...tokens.keys()];
  const ahead = places.filter((i) => i < moved && verdicts[i] === "moves"), leaks = places.filter((i) => verdicts[i] === "LEAK");
  return `Mask (${rules.filter(Boolean).join(", ") || "none"}): ${allowed.reduce((a, b) => a + b, 0)} of ${n * n} cells open. `
    + `Blocked by ${get("where") === "before" ? "−∞ before softmax" : "0 after softmax"}: rows sum to ${low === high ? low : `${low} up to ${high}`}. `
    + `Moving input ${named(tokens, moved)} moves outputs ${listed(places.filter((i) => verdicts[i] !== "still"))}`
    + (ahead.length ? `; the mask lets ${listed(ahead)} see ahead` : "")
    + (leaks.length ? `; LEAK: the mask hides it from ${listed(leaks)}.` : "; no leak.");
}

function build(ui) {
  const tokens = ui.get("tokens"), n = tokens.length;
  const labels = (kind) => tokens.map((token) => h("span", { class: kind, title: token }, h("span", {}, token)));
  const size = () => clamp(Math.floor((Math.min(ui.width, 420) - 106) / n), 16, 32);
  const counter = (key, label, zero) => ui.slider(key, { label, min: 0, max: n, format: (x) => (x ? String(x) : zero) });
  const erase = h("button", { type: "button", class: "tx-button", onclick: () => ui.save("drawn", []) }, "Erase what I drew");

  const cells = Array.from({ length: n * n }, () => h("button", { type: "button", class: "tx-cell" }));
  const grid = h("div", { class: "tx-mask-grid", role: "group", "aria-label": "Mask, a row for each query: arrow keys move, Space opens or blocks a cell" },
    h("span"), labels("tx-key"), tokens.map((token, i) => [labels("tx-query")[i], cells.slice(i * n, (i + 1) * n)]));
  const focusOn = roving(grid, cells, { columns: n });
  focusOn(0);
  drawing(ui, grid, cells);

  const canvas = h("canvas", { role: "img", class: "tx-weights" });
  const sums = h("div", { class: "tx-sums", "aria-hidden": "true" });
  const weightGrid = h("div", { class: "tx-weight-grid" }, h("div", { class: "tx-keys", "aria-hidden": "true" }, labels("tx-key")), h("span", { class: "tx-sum-head", "aria-hidden": "true" }, "row sum"), canvas, sums);
  let weights = [];
  canvas.addEventListener("pointermove", (event) => {
    const side = size(), i = clamp(Math.floor(event.offsetY / side), 0, n - 1), j = clamp(Math.floor(event.offsetX / side), 0, n - 1);
    ui.tip(`${named(tokens, i)} looks at ${named(tokens, j)}: ${allowedCells(ui.get)[i * n + j] ? weights[i * n + j].toFixed(3) : "blocked"}`, event);
  });
  canvas.addEventListener("pointerleave", () => ui.tip(null));

  const leak = leakTest(ui, tokens);
  const paint = () => {
    const allowed = allowedCells(ui.get), side = size(), drawn = new Set(ui.get("drawn"));
    ui.root.style.setProperty("--cell", `${side}px`);
    ui.root.style.setProperty("--tokens", n);
    cells.forEach((cell, at) => {
      const open = !!allowed[at], i = Math.floor(at / n), j = at % n;
      const name = `${named(tokens, i)} at ${named(tokens, j)}: ${open ? "open" : "blocked"}${drawn.has(at) ? ", drawn by you" : ""}`;
      if (cell.getAttribute("aria-label") === name) return;
      cell.setAttribute("aria-label", name);
      cell.setAttribute("aria-pressed", open);
      cell.dataset.drawn = drawn.has(at);
    });
    erase.disabled = !drawn.size;
    weights = maskedWeights(ui.get, Float64Array.from(ui.get("inputs")), allowed);
    paintCells(canvas, { rows: n, cols: n, size: side, share: (i, j) => weights[i * n + j], blocked: (i, j) => !allowed[i * n + j], theme: ui.theme, numbers: side >= 24 });
    const totals = rowSums(weights, n);
    canvas.setAttribute("aria-label", `Attention weights of the first layer. Sums of rows: ${totals.map((sum) => sum.toFixed(2)).join(", ")}.`);
    sums.replaceChildren(...totals.map((sum) => h("span", { class: Math.abs(sum - 1) > 0.005 ? "tx-sum tx-off" : "tx-sum" },
      h("i", { style: `width:${44 * sum}px` }), sum.toFixed(2))));
    leak(allowed);
  };

  ui.show(paint,
    h("div", { class: "tx-row" }, ui.toggle("causal", { label: "causal" }), counter("window", "window", "off"), counter("prefix", "prefix", "off"), counter("padding", "padding", "none"), erase),
    h("div", { class: "tx-row" },
      ui.choice("where", { label: "Blocked cells become", options: [["before", "−∞ before softmax"], ["after", "0 after softmax"]] }),
      ui.slider("layers", { label: "layers", min: 1, max: 6 })),
    h("div", { class: "tx-panels" },
      h("div", { class: "tx-panel" }, h("p", { class: "tx-title" }, "Who may attend to whom"), h("div", { class: "tx-scroll" }, grid),
        h("p", { class: "tx-note" }, "Rows are queries, columns keys. Click or drag to open and block cells.")),
      h("div", { class: "tx-panel" }, h("p", { class: "tx-title" }, "Weights after softmax"), h("div", { class: "tx-scroll" }, weightGrid), scaleBar(shade, "0", "1", "weight"),
        h("p", { class: "tx-note" }, "Striped: blocked. Plain: open, however small its weight.")),
      h("div", { class: "tx-panel tx-leak-panel" }, h("p", { class: "tx-title" }, "Leak test: move one input"), leak.box)));
}

// Press and drag over cells: all become what the first one became.
function drawing(ui, grid, cells) {
  let value = null;
  const turn = (cell) => {
    const at = cells.indexOf(cell), open = allowedCells(ui.get)[at];
    if (at < 0 || open === value) return;
    const drawn = new Set(ui.get("drawn"));
    if (!drawn.delete(at)) drawn.add(at);
    ui.set("drawn", [...drawn].sort((a, b) => a - b));
  };
  const finish = () => { if (value !== null) ui.done(); value = null; };
  grid.addEventListener("pointerdown", (event) => {
    const at = cells.indexOf(event.target);
    if (at < 0 || event.button) return;
    event.target.releasePointerCapture?.(event.pointerId); // a finger would hold on to the first cell
    value = 1 - allowedCells(ui.get)[at];
    turn(event.target);
  });
  grid.addEventListener("pointerover", (event) => { if (value !== null) turn(event.target); });
  window.addEventListener("pointerup", finish, { signal: ui.signal });
  window.addEventListener("pointercancel", finish, { signal: ui.signal });
  // The keyboard's click: the pointer's own has been dealt with.
  grid.addEventListener("click", (event) => {
    if (event.detail !== 0 || cells.indexOf(event.target) < 0) return;
    value = 1 - allowedCells(ui.get)[cells.indexOf(event.target)];
    turn(event.target);
    finish();
  });
}

// Inputs on the left, outputs on the right, a thread to every output that moves.
function leakTest(ui, tokens) {
  const step = 30, n = tokens.length;
  const inputs = tokens.map((token, i) => h("button", { type: "button", class: "tx-token", role: "radio", "aria-label": `input ${named(tokens, i)}`, onclick: () => ui.save("moved", i) }, token));
  const left = h("div", { class: "tx-inputs", role: "radiogroup", "aria-label": "Input that is moved" }, inputs);
  const stop = roving(left, inputs, { go: (i) => ui.save("moved", i) });
  const outputs = tokens.map(() => h("li"));
  const threads = h("svg", { viewBox: `0 0 100 ${n * step}`, height: n * step, preserveAspectRatio: "none", "aria-hidden": "true" });
  const update = (allowed) => {
    const moved = ui.get("moved"), moves = outputMoves(ui.get, allowed), reach = reachable(ui.get, allowed), most = Math.max(...moves);
    stop(moved);
    inputs.forEach((input, i) => input.setAttribute("aria-checked", i === moved));
    outputs.forEach((output, i) => {
      const verdict = verdictOf(moves[i], reach[i]), words = { still: "still", moves: i < moved ? "sees ahead" : "moves", LEAK: "⚠ LEAK" }[verdict];
      output.className = `tx-${verdict}`;
      output.replaceChildren(h("span", { class: "tx-name" }, tokens[i]),
        h("span", { class: "tx-much" }, h("i", { style: `width:${verdict === "still" ? 0 : Math.max(2, 40 * moves[i] / most)}px` })), h("span", {}, words));
    });
    threads.replaceChildren(...moves.flatMap((much, i) => (much <= 1e-9 ? [] : [h("path", {
      class: `tx-thread-${verdictOf(much, reach[i])}`, "vector-effect": "non-scaling-stroke", fill: "none",
      d: `M0 ${(moved + 0.5) * step} C50 ${(moved + 0.5) * step} 50 ${(i + 0.5) * step} 100 ${(i + 0.5) * step}`,
    })])));
  };
  update.box = h("div", { class: "tx-leak", style: `--step:${step}px` }, left, threads, h("ol", { class: "tx-outputs", "aria-label": "Outputs" }, outputs));
  return update;
}

export default explorer("mask", { build, describe });
