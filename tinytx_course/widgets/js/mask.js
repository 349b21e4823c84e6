// The mask explorer. `get` maps the name of a trait to its value, buffers as float32.

// 1 where query i may look at key j, at i * T + j.
export function allowedCells(get) {
  const n = get("tokens").length;
  const out = new Uint8Array(n * n);
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

// Blocked cells: −∞ "before" softmax, a "score" of 0, or 0 "after" softmax; the first is right.
export function maskedWeights(get, x, allowed) {
  const n = get("tokens").length;
  const d = x.length / n;
  const maps = get("maps");
  const size = d * d;
  const where = get("where");
  const q = matmul(x, maps.subarray(0, size), n, d, d);
  const k = matmul(x, maps.subarray(size, 2 * size), n, d, d);
  const out = new Float64Array(n * n);
  for (let i = 0; i < n; i++) {
    const scores = new Float64Array(n);
    const open = allowed.subarray(i * n, (i + 1) * n);
    for (let j = 0; j < n; j++) {
      for (let c = 0; c < d; c++) scores[j] += q[i * d + c] * k[j * d + c];
      scores[j] *= where === "score" && !open[j] ? 0 : 1 / Math.sqrt(d);
    }
    softmax(scores, where === "before" ? open : null).forEach((w, j) => {
      out[i * n + j] = where === "after" && !open[j] ? 0 : w;
    });
  }
  return out;
}

// By how much each output of each layer moves when one input is pushed aside; the input itself comes first.
export function movesByLayer(get, allowed) {
  const n = get("tokens").length;
  const push = get("push");
  const d = push.length;
  const v = get("maps").subarray(2 * d * d);
  const layer = (x) => {
    const context = matmul(maskedWeights(get, x, allowed), matmul(x, v, n, d, d), n, n, d);
    return x.map((a, c) => a + context[c]);
  };
  let one = Float64Array.from(get("inputs"));
  let other = one.slice();
  push.forEach((a, c) => {
    other[get("moved") * d + c] += a;
  });
  const apart = () =>
    range(n).map((i) => {
      let most = 0;
      for (let c = i * d; c < (i + 1) * d; c++) most = Math.max(most, Math.abs(one[c] - other[c]));
      return most;
    });
  const all = [apart()];
  for (let l = 0; l < get("layers"); l++) {
    [one, other] = [layer(one), layer(other)];
    all.push(apart());
  }
  return all;
}
export const outputMoves = (get, allowed) => movesByLayer(get, allowed).pop();

// Which outputs the mask lets the moved input reach, in as many layers.
export function reachable(get, allowed) {
  const n = get("tokens").length;
  let lit = range(n).map((i) => i === get("moved"));
  for (let layer = 0; layer < get("layers"); layer++) {
    lit = lit.map((now, i) => now || lit.some((on, j) => on && allowed[i * n + j]));
  }
  return lit;
}

const rowSums = (weights, n) =>
  range(n).map((i) => weights.subarray(i * n, (i + 1) * n).reduce((a, b) => a + b, 0));
const STILL = 1e-9;
const verdictOf = (much, reach, ahead) =>
  much <= STILL ? "still" : !reach ? "leak" : ahead ? "ahead" : "moves";
const VERDICTS = { still: "still", moves: "allowed", ahead: "sees ahead", leak: "⚠ LEAK" };
const WHERE = { before: "−∞ before softmax", score: "a score of 0", after: "0 after softmax" };

// The verdict on each output: still, moves as it should, sees ahead because the mask lets it, or leaks: moves
// against the mask.
export function verdictsOf(get, allowed) {
  const reach = reachable(get, allowed);
  return outputMoves(get, allowed).map((much, i) => verdictOf(much, reach[i], i < get("moved")));
}

// Whether the moved input changes its own output by its query alone: its cell is blocked.
const asksItself = (get, allowed, verdicts) =>
  verdicts[get("moved")] === "moves" && !allowed[get("moved") * (get("tokens").length + 1)];

// What people ask for, and what they write by mistake, as the state of an explorer.
const cellsWhere = (n, turned) => range(n * n).filter((at) => turned(Math.floor(at / n), at % n));
const OPEN = { causal: true, window: 0, prefix: 0, padding: 0, drawn: [], where: "before" };
export const PRESETS = {
  causal: () => OPEN,
  "both ways (BERT)": () => ({ ...OPEN, causal: false }),
  prefix: (n) => ({ ...OPEN, prefix: Math.min(3, n - 1) }),
  window: (n) => ({ ...OPEN, window: Math.min(3, n - 1) }),
  padding: () => ({ ...OPEN, padding: 1 }),
};
export const MISTAKES = {
  transposed: (n) => ({ ...OPEN, causal: false, drawn: cellsWhere(n, (i, j) => j < i) }),
  "one too far": (n) => ({ ...OPEN, drawn: cellsWhere(n, (i, j) => j === i + 1) }),
  "one too short": (n) => ({ ...OPEN, drawn: cellsWhere(n, (i, j) => j === i) }),
  "score times 0": () => ({ ...OPEN, where: "score" }),
  "zeroed after softmax": () => ({ ...OPEN, where: "after" }),
};

const SAYS = {
  transposed: "rows and columns are swapped, so each query sees what follows it",
  "one too far": "each query sees the next token, which it is to predict",
  "one too short": "no query sees its own token, and the first sees none",
  "score times 0": "a score of 0 is a score like others, so what is blocked keeps a weight",
  "zeroed after softmax": "softmax has counted what is blocked, so rows sum to less than 1",
};
const holds = (get, state) =>
  Object.entries(state).every(([key, value]) => String(get(key)) === String(value));

export const keep = (get) => {
  const n = get("tokens").length;
  return {
    causal: [0, 1],
    window: [0, n],
    prefix: [0, n],
    padding: [0, n],
    where: Object.keys(WHERE),
    layers: [1, 6],
    moved: [0, n - 1],
    drawn: [0, n * n - 1],
  };
};

// What it means that outputs see ahead: a mask for whole texts, or one that was to hide what follows.
const MEANT = "right for reading a whole text, wrong for predicting the next token";
const SPOILT = "the model obeys your mask, but the mask lets the answer in (by the causal mask, a leak)";
const opensAhead = (get, n) =>
  get("drawn").some((at) => at % n > Math.floor(at / n) && allowedCells(get)[at]);

export function describe(get) {
  const tokens = get("tokens");
  const n = tokens.length;
  const moved = get("moved");
  const drawn = get("drawn").length;
  const allowed = allowedCells(get);
  const sums = rowSums(maskedWeights(get, Float64Array.from(get("inputs")), allowed), n);
  const [low, high] = [Math.min(...sums), Math.max(...sums)].map((sum) => sum.toFixed(2));
  const rules = [
    get("causal") && "causal",
    ...["window", "prefix", "padding"].map((key) => get(key) && `${key} ${get(key)}`),
    drawn && `${counted(drawn, "cell")} drawn`,
  ];
  const verdicts = verdictsOf(get, allowed);
  const places = [...tokens.keys()];
  const with_ = (verdict) => listed(places.filter((i) => verdicts[i] === verdict));
  const ahead = with_("ahead");
  const sees = allowed.some((open, at) => open && at % n > Math.floor(at / n));
  const mistake = Object.keys(MISTAKES).find((name) => holds(get, MISTAKES[name](n)));
  const blind = listed(places.filter((i) => !allowed.subarray(i * n, (i + 1) * n).includes(1)));
  return (
    `Moving input ${named(tokens, moved)} moves outputs ${listed(places.filter((i) => verdicts[i] !== "still")) || "nowhere"}` +
    (ahead &&
      `; ${ahead} ${/^\d+$/.test(ahead) ? "sees" : "see"} ahead: ${mistake || opensAhead(get, n) ? SPOILT : MEANT}`) +
    (with_("leak")
      ? `; LEAK: the mask hides it from ${with_("leak")}.`
      : ahead
        ? "."
        : sees && !moved
          ? "; no output lies before it to see ahead."
          : "; no leak.") +
    (mistake
      ? ` A usual mistake: ${SAYS[mistake]}.`
      : blind
        ? ` Nothing is open to ${/^\d+$/.test(blind) ? "query" : "queries"} ${blind}.`
        : "") +
    `\nMask (${rules.filter(Boolean).join(", ") || "none"}): ${allowed.reduce((a, b) => a + b, 0)} of ${n * n} cells open. ` +
    `Blocked by ${WHERE[get("where")]}: rows sum to ${low === high ? low : `${low} up to ${high}`}.`
  );
}

function build(ui) {
  const tokens = ui.get("tokens");
  const n = tokens.length;
  // Three pictures in a row where there is room for them, or two: their rows are the same tokens.
  const size = () => {
    const wide = ui.width;
    const most = wide >= 800 ? (wide - 515) / 2 : wide >= 560 ? (wide - 200) / 2 : wide - 106;
    return clamp(Math.floor(Math.min(most, ui.large ? 256 : 352) / n), 16, ui.large ? 37 : 44);
  };
  const counter = (key, label, zero) =>
    ui.slider(key, { label, min: 0, max: n, format: (x) => (x ? String(x) : zero) });
  const erase = pushButton("Erase what I drew", () => ui.save("drawn", []));
  const grid = maskGrid(ui, tokens);
  const weights = weightTable(ui, tokens, size);
  const leak = leakTest(ui, tokens, size);
  ui.paint(() => {
    const allowed = allowedCells(ui.get);
    const verdicts = verdictsOf(ui.get, allowed);
    ui.root.style.setProperty("--cell", `${size()}px`);
    ui.root.style.setProperty("--tokens", n);
    erase.disabled = !ui.get("drawn").length;
    ui.root.classList.toggle("tx-leaks", verdicts.includes("leak"));
    grid(allowed, verdicts);
    weights(allowed);
    leak(allowed, verdicts);
    own.hidden = !asksItself(ui.get, allowed, verdicts);
  });
  const own = h(
    "span",
    h("b", "own query"),
    "this output’s own query comes from the moved input, though it may not look at it",
  );
  const legend = ["moves", "ahead", "leak"].map((verdict) =>
    h(
      "span",
      h("i", { class: `tx-box tx-${verdict}` }),
      { moves: "allowed", ahead: "sees ahead: the mask lets it", leak: "leak: moves although it is hidden" }[
        verdict
      ],
    ),
  );
  ui.show(
    h(
      "p.tx-invite",
      "Click or drag over cells to open and block them. The input of that column is moved, and every output says whether it noticed.",
    ),
    h("div.tx-row.tx-presets", presets(ui, "Masks", PRESETS), presets(ui, "Usual mistakes", MISTAKES)),
    h(
      "div.tx-row.tx-counters",
      ui.toggle("causal", { label: "causal" }),
      counter("window", "window", "off"),
      counter("prefix", "prefix", "off"),
      counter("padding", "padding", "none"),
      ui.slider("layers", { label: "layers", min: 1, max: 6 }),
    ),
    h(
      "div.tx-row",
      ui.choice("where", { label: "Blocked cells become", options: Object.entries(WHERE) }),
      erase,
    ),
    h(
      "div.tx-panels",
      h("div.tx-panel", h("p.tx-title", "Who may attend to whom"), h("div.tx-scroll", grid.box)),
      h("div.tx-panel", h("p.tx-title", "Weights after softmax"), h("div.tx-scroll", weights.box)),
      h("div.tx-panel.tx-leak-panel", h("p.tx-title", "Leak test: move one input"), leak.box),
    ),
    h(
      "div.tx-row.tx-legend",
      { "aria-hidden": "true" },
      h("span", h("i.tx-box"), "blocked"),
      legend,
      own,
      scaleBar(shade, "0", "1", "weight"),
    ),
  );
}

// Buttons that set the whole mask at once; the one that holds is pressed.
function presets(ui, label, all) {
  const n = ui.get("tokens").length;
  const buttons = Object.entries(all).map(([name, state]) => {
    const button = h("button.tx-token", { onclick: () => ui.save(state(n)) }, name);
    ui.paint(() => button.setAttribute("aria-pressed", holds(ui.get, state(n))));
    return button;
  });
  return h(
    "div.tx-radios",
    { role: "group", "aria-label": label },
    h("span.tx-soft", { "aria-hidden": "true" }, label),
    buttons,
  );
}

const labels = (tokens, kind) =>
  tokens.map((token) => h("span", { class: kind, title: token }, h("span", token)));

// The mask itself, in the colours of the verdicts; the column of the moved input is framed.
function maskGrid(ui, tokens) {
  const n = tokens.length;
  const cells = range(n * n).map(() => h("button.tx-cell"));
  const keys = labels(tokens, "tx-key");
  const queries = labels(tokens, "tx-query");
  const grid = h(
    "div.tx-mask-grid",
    {
      role: "group",
      "aria-label": "Mask, a row for each query: arrow keys move, Space opens or blocks a cell",
    },
    h("span.tx-corner", { "aria-hidden": "true" }, "query ↓\nkey →"),
    keys,
    tokens.map((_, i) => [queries[i], cells.slice(i * n, (i + 1) * n)]),
  );
  const follow = (at) => ui.save("moved", at % n);
  const focusOn = roving(grid, cells, { columns: n, go: follow });
  focusOn(0);
  drawing(ui, grid, cells);
  const update = (allowed, verdicts) => {
    const drawn = new Set(ui.get("drawn"));
    const moved = ui.get("moved");
    keys.forEach((key, j) => {
      key.dataset.now = j === moved;
    });
    cells.forEach((cell, at) => {
      const open = !!allowed[at];
      const i = Math.floor(at / n);
      const j = at % n;
      const leaks = j === moved && verdicts[i] === "leak";
      const name = `${named(tokens, i)} at ${named(tokens, j)}: ${open ? (j > i ? "open, sees ahead" : "open") : "blocked"}${drawn.has(at) ? ", drawn by you" : ""}${leaks && !open ? ", leaks" : ""}`;
      cell.dataset.now = j === moved;
      if (cell.getAttribute("aria-label") === name) return;
      cell.ariaLabel = name;
      cell.setAttribute("aria-pressed", open);
      cell.dataset.ahead = open && j > i;
      cell.dataset.leaks = leaks && !open;
      cell.dataset.drawn = drawn.has(at);
    });
  };
  update.box = grid;
  return update;
}

// The weights of the first layer, which flow to their new values, and what each row sums to.
function weightTable(ui, tokens, size) {
  const n = tokens.length;
  const canvas = h("canvas.tx-weights", { role: "img" });
  const sums = h("div.tx-sums", { "aria-hidden": "true" });
  let weights = [];
  let shown = null;
  let aim = "";
  ui.tips(canvas, (event) => {
    const [across, down] = placeIn(canvas, event);
    const [i, j] = [down, across].map((share) => Math.min(n - 1, Math.floor(share * n)));
    const open = allowedCells(ui.get)[i * n + j];
    return `${named(tokens, i)} attends to ${named(tokens, j)}: ${open ? "" : "blocked, "}${weights[i * n + j].toFixed(3)}`;
  });
  const update = (allowed) => {
    weights = maskedWeights(ui.get, Float64Array.from(ui.get("inputs")), allowed);
    const side = size();
    const theme = ui.theme;
    const from = shown;
    const key = [...weights].join();
    const put = (share) => {
      shown = from ? weights.map((w, at) => from[at] + share * (w - from[at])) : weights;
      const off = (i, j) => !allowed[i * n + j] && weights[i * n + j] === 0;
      paintCells(canvas, {
        rows: n,
        cols: n,
        size: side,
        share: (i, j) => shown[i * n + j],
        blocked: off,
        theme,
        numbers: side >= 24,
      });
    };
    if (from && key !== aim) ui.animate(180, put);
    else put(1);
    aim = key;
    const totals = rowSums(weights, n);
    canvas.ariaLabel = `Attention weights of the first layer. Sums of rows: ${totals.map((sum) => sum.toFixed(2)).join(", ")}.`;
    sums.replaceChildren(
      ...totals.map((sum) =>
        h(
          "span",
          { class: Math.abs(sum - 1) > 0.005 ? "tx-sum tx-off" : "tx-sum" },
          h("b", sum.toFixed(2)),
          h("i", { style: `width:${30 * sum}px` }),
        ),
      ),
    );
  };
  update.box = h(
    "div.tx-weight-grid",
    h("div.tx-keys", { "aria-hidden": "true" }, labels(tokens, "tx-key")),
    h("span.tx-sum-head", { "aria-hidden": "true" }, "row sum"),
    canvas,
    sums,
  );
  return update;
}

// Press and drag over cells: all become what the first one became, and the leak test follows.
function drawing(ui, grid, cells) {
  let value = null;
  const turn = (cell) => {
    const at = cells.indexOf(cell);
    const open = allowedCells(ui.get)[at];
    if (at < 0) return;
    ui.set("moved", at % ui.get("tokens").length);
    if (open === value) return;
    const drawn = new Set(ui.get("drawn"));
    if (!drawn.delete(at)) drawn.add(at);
    ui.set(
      "drawn",
      [...drawn].sort((a, b) => a - b),
    );
  };
  const finish = () => {
    if (value !== null) ui.done();
    value = null;
  };
  grid.addEventListener("pointerdown", (event) => {
    const at = cells.indexOf(event.target);
    if (at < 0 || event.button) return;
    event.target.releasePointerCapture?.(event.pointerId); // a finger would hold on to the first cell
    value = 1 - allowedCells(ui.get)[at];
    turn(event.target);
  });
  grid.addEventListener("pointerover", (event) => {
    if (value !== null) turn(event.target);
  });
  window.addEventListener("pointerup", finish, { signal: ui.signal });
  window.addEventListener("pointercancel", finish, { signal: ui.signal });
  // The keyboard's click: the pointer's own has been dealt with.
  grid.addEventListener("click", (event) => {
    const at = cells.indexOf(event.target);
    if (event.detail !== 0 || at < 0) return;
    value = 1 - allowedCells(ui.get)[at];
    turn(event.target);
    finish();
  });
}

// Inputs on the left, outputs on the right, a column of dots for each layer between; news spreads along the
// threads.
function leakTest(ui, tokens, size) {
  const n = tokens.length;
  const inputs = tokens.map((token, i) =>
    h("button.tx-token", { "aria-label": `input ${named(tokens, i)}` }, token),
  );
  const left = h("div.tx-inputs", { role: "radiogroup", "aria-label": "Input that is moved" }, inputs);
  const show = radioGroup(left, inputs, (i) => ui.save("moved", i));
  const outputs = tokens.map((token) =>
    h("li", h("span.tx-name", token), h("span.tx-much", h("i")), h("span")),
  );
  const threads = h("svg", { "aria-hidden": "true" });
  const head = h("span.tx-small", { "aria-hidden": "true" });
  let known = "";
  const draw = (allowed, moved, wide, side) => {
    const all = movesByLayer(ui.get, allowed);
    const layers = all.length - 1;
    const X = (l) => (l && l < layers ? (l / layers) * wide : l && wide);
    const parts = [];
    for (let l = 0; l < layers; l++) {
      for (let i = 0; i < n; i++) {
        if (all[l + 1][i] <= STILL) continue;
        const from = [...tokens.keys()].filter((j) => all[l][j] > STILL && (allowed[i * n + j] || i === j));
        const leaks = !from.length;
        for (const j of leaks ? [moved] : from) {
          const a = (j + 0.5) * side;
          const b = (i + 0.5) * side;
          const mid = (X(l) + X(l + 1)) / 2;
          const verdict = leaks ? "leak" : i < j ? "ahead" : "moves";
          parts.push(
            h("path", {
              class: `tx-thread tx-thread-${verdict}`,
              pathLength: leaks ? null : 1,
              fill: "none",
              style: `animation-delay:${l * 160}ms`,
              d: `M${X(l)} ${a}C${mid} ${a} ${mid} ${b} ${X(l + 1)} ${b}`,
            }),
          );
        }
      }
      if (l)
        all[l].forEach((much, i) =>
          parts.push(
            h("path", {
              class: much > STILL ? "tx-dot tx-lit" : "tx-dot",
              d: `M${X(l)} ${(i + 0.5) * side}h0.001`,
            }),
          ),
        );
    }
    threads.replaceChildren(...parts);
  };
  const update = (allowed, verdicts) => {
    const moved = ui.get("moved");
    const moves = outputMoves(ui.get, allowed);
    const most = Math.max(...moves);
    const wide = threads.clientWidth || 100;
    const side = size();
    const layers = ui.get("layers");
    head.textContent = layers === 1 ? "one layer" : `${layers} layers →`;
    const key = [wide, side, moved, layers, ui.get("where"), ...allowed].join();
    show(moved);
    outputs.forEach((output, i) => {
      const [, much, words] = output.children;
      const verdict = verdicts[i];
      output.className = `tx-${verdict}`;
      much.firstChild.style.width = `${verdict === "still" ? 0 : Math.max(2, (34 * moves[i]) / most)}px`;
      words.textContent =
        i === moved && asksItself(ui.get, allowed, verdicts) ? "own query" : VERDICTS[verdict];
    });
    if (key !== known) draw(allowed, moved, wide, side);
    known = key;
  };
  update.box = h(
    "div.tx-leak",
    h("span"),
    head,
    h("span"),
    left,
    threads,
    h("ol.tx-outputs", { "aria-label": "Outputs" }, outputs),
  );
  return update;
}

export default explorer("mask", { build, describe, keep });
