// The count explorer. `get` maps the name of a trait to its value; what is counted are BigInts, exact at any size.

const SETTINGS = ["vocab_size", "d_model", "n_layers", "n_heads", "d_ff", "seq_len", "batch_size", "max_len", "n_classes",
  "tie_embeddings", "learned", "plain", "causal", "bias", "norm_first", "gelu", "head"];
const NAMES = {
  vocab_size: "vocabulary", d_model: "width", n_layers: "layers", n_heads: "heads", d_ff: "feed-forward width", seq_len: "length",
  batch_size: "batch", max_len: "longest length", n_classes: "classes", tie_embeddings: "tied embeddings", learned: "learned positions",
  plain: "weights kept", causal: "causal", bias: "biases", norm_first: "norm first", gelu: "GELU", head: "head",
};
const divisors = (n) => Array.from({ length: Math.min(n, 256) }, (_, i) => i + 1).filter((d) => n % d === 0);

// The state as it stands: the largest number of heads that divides the width counts.
export function settingsOf(get) {
  const state = Object.fromEntries(SETTINGS.map((name) => [name, get(name)]));
  return { ...state, n_heads: divisors(state.d_model).filter((d) => d <= state.n_heads).pop() };
}

// What every bar counts, in letters; M rows of a table of positions, N parameters, numbers of 4 bytes.
function termsOf(s) {
  const b = s.bias, norms = `${b ? "2·" : ""}D`, inner = s.gelu ? 8 : 4;
  const weights = s.plain ? (s.causal ? "8·B·H·T·T + 2·T·T" : "4·B·H·T·T") : "4·B·H·T";
  const lm = s.tie_embeddings ? (b ? "V" : "0") : `D·V${b ? " + V" : ""}`, last = s.norm_first ? "4·B·T·D + 8·B·T + " : "";
  return {
    parameters: [
      ["embeddings", s.learned ? "V·D + M·D" : "V·D"], ["attention", `L·4·${b ? "(D·D + D)" : "D·D"}`],
      ["feed-forward", b ? "L·(2·D·F + F + D)" : "L·2·D·F"], ["norms", s.norm_first ? `(2·L + 1)·${norms}` : `2·L·${norms}`],
      ["head", s.head === "lm" ? lm : `D·C${b ? " + C" : ""}`],
    ],
    compute: [
      ["attention, maps", "L·8·B·T·D·D"], ["attention, pairs", "L·4·B·T·T·D"], ["feed-forward", "L·4·B·T·D·F"],
      ["head", s.head === "lm" ? "2·B·T·D·V" : "2·B·D·C"],
    ],
    training: [
      ["parameters", "4·N"], ["gradients", "4·N"], ["Adam’s moments", "8·N"], ["activations, attention", `L·(20·B·T·D + ${weights})`],
      ["activations, feed-forward", `L·(12·B·T·D + 16·B·T + ${inner}·B·T·F)`],
      ["activations, head", `${last}${s.head === "lm" ? "4·B·T·D + 4·B·T·V + 16·B·T + 4" : "9·B·T + 4·B·D + 4·B·C + 16·B + 4"}`],
    ],
    generating: [["parameters", "4·N"], ["key-value cache", s.head === "lm" && s.causal ? "L·8·B·T·D" : "0"]],
  };
}

const total = (rows) => Object.values(rows).reduce((a, b) => a + b, 0n);

// The length of every bar, by group and row.
export function barsOf(s) {
  const letters = { V: s.vocab_size, D: s.d_model, L: s.n_layers, H: s.n_heads, F: s.d_ff, T: s.seq_len, B: s.batch_size, C: s.n_classes, M: Math.max(s.max_len, s.seq_len) };
  const bars = {};
  for (const [group, rows] of Object.entries(termsOf(s))) {
    bars[group] = Object.fromEntries(rows.map(([name, formula]) => [name, evaluate(formula, letters)]));
    letters.N ??= total(bars[group]);
  }
  return bars;
}

// Three digits and a prefix, and a space for the unit.
export function inShort(n) {
  const prefixes = ["", "k", "M", "G", "T", "P", "E", "Z"], step = Math.min(Math.floor((String(n).length - 1) / 3), 7), x = Number(n) / 1000 ** step;
  return step ? `${x.toFixed(x < 10 ? 2 : x < 100 ? 1 : 0)} ${prefixes[step]}` : `${n} `;
}
const share = (part, whole) => percent(Number(part) / Number(whole));
function ratio(now, then) {
  if (now === then) return "the same";
  const factor = Number(now) / Number(then);
  return then ? `× ${grouped(factor.toFixed(factor < 100 ? 2 : 0))}` : "new";
}
const inWords = (value) => (typeof value === "boolean" ? (value ? "on" : "off") : typeof value === "string" ? value : grouped(value));
const changes = (before, after) => Object.keys(NAMES).filter((key) => before[key] !== after[key])
  .map((key) => `${NAMES[key]} ${inWords(before[key])} → ${inWords(after[key])}`).join(", ");

export function describe(get) {
  const state = settingsOf(get), pinned = get("pinned"), now = barsOf(state), then = barsOf(pinned), learned = now.parameters;
  const sum = (bars, group) => total(bars[group]), cache = now.generating["key-value cache"], pairs = now.compute["attention, pairs"];
  const most = Object.keys(learned).reduce((best, name) => (learned[name] > learned[best] ? name : best)), changed = changes(pinned, state);
  const against = (group) => ratio(sum(now, group), sum(then, group));
  const text = `${grouped(sum(now, "parameters"))} parameters, the largest part ${most} (${share(learned[most], sum(now, "parameters"))}). `
    + `One forward pass of ${state.batch_size} × ${grouped(state.seq_len)} tokens: ${inShort(sum(now, "compute"))} operations, `
    + `${share(pairs, sum(now, "compute"))} of them for pairs of tokens. `
    + `Training holds ${inShort(sum(now, "training"))}B, generation ${inShort(sum(now, "generating"))}B, ${inShort(cache)}B of it cache. `;
  if (!changed) return `${text}This is the pinned state.`;
  return `${text}Against the pinned state (${changed}): parameters ${against("parameters")}, `
    + `compute ${against("compute")} (pairs ${ratio(pairs, then.compute["attention, pairs"])}), `
    + `training memory ${against("training")}, cache ${ratio(cache, then.generating["key-value cache"])}.`;
}

const GROUPS = {
  parameters: ["Parameters", grouped, "No T, B or H in any formula: length, batch and heads cost no parameters."],
  compute: ["Operations of one forward pass", inShort, "T·T: twice the length, four times the pairs."],
  training: ["Memory in training", (n) => `${inShort(n)}B`, "Activations are kept for the backward pass; plain attention keeps a weight for each head and pair: H·T·T. N: all parameters, 4 bytes each."],
  generating: ["Memory in generation", (n) => `${inShort(n)}B`, "The cache holds the keys and values of every layer and token, with the context full."],
};

// One group as a table of bars; below each bar that of the pinned state, on the same scale.
function group(ui, key) {
  const [title, write, words] = GROUPS[key], note = h("p", { class: "tx-note" }, words), sum = h("b"), factor = h("span", { class: "tx-factor" });
  const rows = termsOf(settingsOf(ui.get))[key].map(([name]) => {
    const part = { name, formula: h("small"), now: h("i"), then: h("i", { class: "tx-then" }), amount: h("td"), portion: h("small"), how: h("td", { class: "tx-factor" }) };
    part.row = h("tr", {}, h("th", { scope: "row" }, name, part.formula), h("td", { class: "tx-track" }, h("span", { "aria-hidden": "true" }, part.now, part.then)), part.amount, part.how);
    return part;
  });
  const head = h("thead", {}, h("tr", {}, ["what, formula", "now, pinned below", "now, share", "against pinned"].map((name) => h("th", { scope: "col" }, name))));
  const update = (state, now, then) => {
    const terms = Object.fromEntries(termsOf(state)[key]), whole = total(now[key]), before = total(then[key]), scale = Math.max(1, ...[now, then].flatMap((bars) => Object.values(bars[key]).map(Number))) / 100;
    sum.textContent = write(whole);
    setFactor(factor, whole, before);
    if (key === "parameters") {
      const grows = state.learned && state.seq_len > state.max_len;
      note.textContent = grows ? "A learned table needs a row for each place: M grows with T beyond its longest length." : words;
    }
    for (const part of rows) {
      const value = now[key][part.name], old = then[key][part.name];
      part.formula.textContent = terms[part.name];
      part.now.style.width = `${Number(value) / scale}%`;
      part.then.style.width = `${Number(old) / scale}%`;
      part.portion.textContent = whole ? share(value, whole) : "";
      part.amount.replaceChildren(key === "parameters" ? inShort(value) : write(value), part.portion);
      setFactor(part.how, value, old);
    }
  };
  update.box = h("section", { class: "tx-group" }, h("p", { class: "tx-title tx-sum" }, h("span", {}, `${title} `), sum, factor),
    h("table", { class: "tx-count" }, h("colgroup", {}, ["what", "bar", "amount", "how"].map((name) => h("col", { class: `tx-col-${name}` }))), head, h("tbody", {}, rows.map((part) => part.row))), note);
  return update;
}
function setFactor(cell, now, then) {
  cell.textContent = ratio(now, then);
  cell.classList.toggle("tx-changed", now !== then);
}

const twoDigits = (x) => { const step = 10 ** Math.max(0, Math.floor(Math.log10(x)) - 1); return Math.round(x / step) * step; };

function sliders(ui) {
  const log = (key, label, min, max, more = {}) => ui.slider(key, { label, min, max, to: halfSteps, from: halfStepOf, format: grouped, ...more });
  let heads;
  const all = () => divisors(ui.get("d_model")), atHeads = () => all().indexOf(settingsOf(ui.get).n_heads);
  ui.painters.push(() => { heads.max = all().length - 1; });
  const made = {
    T: log("seq_len", "length T", 8, 30),
    B: log("batch_size", "batch B", 0, 10, { to: (x) => 2 ** x, from: Math.log2 }),
    H: ui.slider("n_heads", { label: "heads H", min: 0, max: 1, to: (x) => all()[x], from: atHeads, format: () => String(settingsOf(ui.get).n_heads) }),
    V: log("vocab_size", "vocabulary V", 4, 18, { step: 0.125, to: (x) => twoDigits(2 ** x), from: Math.log2 }),
    D: log("d_model", "width D", 8, 28),
    L: log("n_layers", "layers L", 0, 12, { to: (x) => (x ? halfSteps(x + 1) : 1), from: (v) => (v > 1 ? halfStepOf(v) - 1 : 0) }),
    F: log("d_ff", "feed-forward F", 8, 32),
  };
  heads = made.H.querySelector("input");
  for (const [letter, slider] of Object.entries(made)) slider.classList.add(`tx-size-${letter}`);
  return h("div", { class: "tx-sizes" }, Object.values(made));
}

// Buttons for known configurations; length and batch stay as they are.
function presets(ui) {
  const known = ui.get("presets"), take = (values) => {
    for (const [name, value] of Object.entries(values)) if (name !== "name") ui.set(name, value);
    ui.done();
  };
  const buttons = known.map((one) => h("button", { type: "button", class: "tx-token", onclick: () => take(one) }, one.name));
  const box = h("div", { class: "tx-presets", role: "group", "aria-label": "Presets" }, buttons), stop = roving(box, buttons);
  stop(0);
  const pin = h("button", { type: "button", class: "tx-button", onclick: () => ui.save("pinned", settingsOf(ui.get)) }, "Pin this state");
  const again = h("button", { type: "button", class: "tx-button", onclick: () => take(ui.get("pinned")) }, "Back to pinned");
  ui.painters.push(() => {
    const now = settingsOf(ui.get);
    buttons.forEach((button, i) => button.setAttribute("aria-pressed", Object.entries(known[i]).every(([name, value]) => name === "name" || now[name] === value)));
    again.disabled = !changes(ui.get("pinned"), now);
  });
  return h("div", { class: "tx-row" }, h("span", { class: "tx-word" }, "presets"), box, h("span", { class: "tx-presets" }, pin, again));
}

function build(ui) {
  const parts = Object.keys(GROUPS).map((key) => group(ui, key)), changed = h("p", { class: "tx-against" });
  const paint = () => {
    const state = settingsOf(ui.get), pinned = ui.get("pinned"), now = barsOf(state), then = barsOf(pinned), words = changes(pinned, state);
    changed.replaceChildren(h("i", { class: "tx-key-now" }), " now ", h("i", { class: "tx-then" }), ` pinned${words ? `; since then ${words}` : ", the same"}`);
    parts.forEach((part) => part(state, now, then));
  };
  ui.show(paint,
    h("p", { class: "tx-invite" }, "Move the length T and see what stays “the same”. Then the heads H; then the vocabulary V, which rules small models."),
    sliders(ui),
    h("div", { class: "tx-row" }, ui.choice("head", { label: "head", options: [["lm", "next word"], ["classifier", "classifier"]] }), ui.toggle("tie_embeddings", { label: "tied embeddings" }),
      ui.toggle("learned", { label: "learned positions" }), ui.toggle("plain", { label: "keep attention weights (plain)" })),
    presets(ui), changed, h("div", { class: "tx-groups" }, parts.map((part) => part.box)));
}

export default explorer("count", { build, describe });
