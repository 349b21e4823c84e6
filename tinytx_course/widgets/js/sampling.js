// The explorer of sampling. `get` maps the name of a trait to its value, buffers as float32.

const N_ROWS = 12, MOST_DRAWS = 10000, CLOSE = 1e-6;

// Every stage of the chosen context, from its logits to what is drawn from: see tinytx.training.next_token_probs.
// Probabilities CLOSE to top-p count as reaching it, whatever the last bits say.
export function stagesOf(get) {
  const size = get("tokens").length, all = get("logits"), at = get("context");
  const logits = Float64Array.from(all.subarray(at * size, (at + 1) * size));
  const model = softmax(logits), heated = softmax(logits.map((x) => x / get("temperature")));
  const order = Array.from(logits.keys()).sort((i, j) => (logits[i] === logits[j] ? i - j : logits[j] > logits[i] ? 1 : -1));
  const byTopK = new Array(size).fill(false), byTopP = new Array(size).fill(false), kept = heated.slice();
  let before = 0, sum = 0;
  order.forEach((token, rank) => {
    const possible = logits[token] > -Infinity;
    byTopK[token] = possible && rank >= get("top_k");
    byTopP[token] = possible && get("top_p") < 1 && before >= get("top_p") - CLOSE;
    before += heated[token];
    if (byTopK[token] || byTopP[token]) kept[token] = 0;
    sum += kept[token];
  });
  const left = Array.from(model, (p, i) => p > 0 && !byTopK[i] && !byTopP[i]);
  return { model, heated, byTopK, byTopP, left, order, final: kept.map((p) => p / sum) };
}

// The true probabilities, or null where they are not known.
export function truthOf(get) {
  const pairs = get("truth")[get("context")];
  if (!pairs) return null;
  const out = new Float64Array(get("tokens").length);
  for (let i = 0; i < pairs.length; i += 2) out[pairs[i]] = pairs[i + 1];
  return out;
}

// The tokens drawn. Draw i of a seed has its own number, whatever the distribution.
export function drawsOf(get, s = stagesOf(get)) {
  const ranked = s.order.filter((token) => s.left[token]);
  let sum = 0;
  const reached = ranked.map((token) => (sum += s.final[token]));
  return Array.from({ length: get("n_draws") }, (_, i) => {
    const luck = uniform(i + 1 + 100003 * get("seed"));
    let low = 0, high = ranked.length - 1;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (reached[middle] > luck) high = middle;
      else low = middle + 1;
    }
    return ranked[low];
  });
}

const share = (p) => `${(100 * p).toFixed(1)}%`;
const add = (shares, which) => shares.reduce((sum, p, i) => (which(i) ? sum + p : sum), 0);
const count = (flags) => flags.reduce((n, flag) => n + (flag ? 1 : 0), 0);
const tally = (drawn, size) => drawn.reduce((counts, token) => { counts[token]++; return counts; }, new Array(size).fill(0));

function drawsInWords(get, s, drawn) {
  if (!drawn.length) return "Nothing was drawn yet.";
  const tokens = get("tokens"), counts = tally(drawn, tokens.length);
  const most = s.order.slice(0, N_ROWS).filter((token) => counts[token]).slice(0, 3);
  const often = most.map((token) => `“${tokens[token]}” ${counts[token]}`).join(", ") || "none of those shown";
  return `${drawn.length} drawn: ${often}; the last was “${tokens[drawn[drawn.length - 1]]}”.`;
}

export function describe(get) {
  const s = stagesOf(get), truth = truthOf(get), tokens = get("tokens"), left = count(s.left), best = s.order[0], are = left === 1 ? "is" : "are";
  const k = get("top_k") < tokens.length ? get("top_k") : "off", p = get("top_p") < 1 ? get("top_p").toFixed(2) : "off";
  let text = `After “${get("contexts")[get("context")]}”: temperature ${get("temperature").toFixed(2)}, top-k ${k}, top-p ${p}. `
    + `Of ${count(Array.from(s.model, (q) => q > 0))} tokens top-k cuts ${count(s.byTopK)} and top-p ${count(s.byTopP)}: ${left} ${are} left, `
    + `which held ${share(add(s.heated, (i) => s.left[i]))} and ${are} scaled to 100%. `
    + `Entropy: ${entropy(s.model).toFixed(2)} bits as the model says, ${entropy(s.final).toFixed(2)} as drawn`;
  if (truth) text += `, ${entropy(truth).toFixed(2)} in the world`;
  text += `. Most probable: “${tokens[best]}” ${share(s.final[best])}`;
  if (truth) text += `, in the world ${share(truth[best])}. The world never says ${share(add(s.final, (i) => truth[i] === 0))} of what is drawn`;
  return `${text}. ${drawsInWords(get, s, drawsOf(get, s))}`;
}

const why = (s, token) => (s.byTopK[token] && s.byTopP[token] ? "both" : s.byTopK[token] ? "top-k" : "top-p");

// One cell: a bar, and what it says; what is cut is hatched and named.
function cell() {
  const bar = h("i"), words = h("b");
  const box = h("td", {}, h("span", { class: "tx-bar", "aria-hidden": "true" }, bar), words);
  return {
    box,
    words: () => words.textContent,
    fill(p, full, text, cut) {
      const wide = p > 0 ? `max(${clamp((100 * p) / full, 0, 100).toFixed(2)}%, 1px)` : "0px";
      if (bar.style.width !== wide) bar.style.width = wide;
      if (words.textContent !== text) words.textContent = text;
      box.className = cut;
    },
  };
}

const COLUMNS = [
  { key: "model", head: "model", say: "softmax of its scores" },
  { key: "heated", head: "÷ temperature", say: "then softmax" },
  { key: "cut", head: "top-k, top-p", say: "what is cut is hatched" },
  { key: "final", head: "to 100%", say: "drawn from this" },
  { key: "drawn", head: "drawn", say: "" },
  { key: "truth", head: "world", say: "the true chances" },
];

function table(ui) {
  const columns = COLUMNS.filter(({ key }) => key !== "truth" || ui.get("truth").length);
  const says = columns.map(({ say }) => h("small", {}, say));
  const rows = Array.from({ length: Math.min(N_ROWS, ui.get("tokens").length) }, () => {
    const name = h("th", { scope: "row" }), cells = columns.map(cell);
    return { name, cells, box: h("tr", {}, name, cells.map(({ box }) => box)) };
  });
  const line = (words) => ({ name: h("th", { scope: "row" }, words), cells: columns.map(() => h("td")) });
  const feet = [line("all others"), line("tokens left"), line("entropy in bits")];
  const mark = (boxes) => boxes.forEach((box, j) => { box.dataset.column = columns[j].key; });
  const heads = columns.map(({ head }, j) => h("th", { scope: "col" }, head, says[j]));
  [heads, ...rows.map(({ cells }) => cells.map(({ box }) => box)), ...feet.map(({ cells }) => cells)].forEach(mark);
  const update = (s, truth, drawn) => {
    const counts = tally(drawn, s.model.length), shown = s.order.slice(0, rows.length).filter((token) => s.model[token] > 0);
    const shares = { model: s.model, heated: s.heated, cut: s.heated, final: s.final, drawn: counts.map((n) => n / Math.max(1, drawn.length)), truth };
    const most = Math.max(...columns.map(({ key }) => Math.max(...shown.map((token) => shares[key][token]))));
    const full = [0.25, 0.5, 1].find((scale) => most <= scale + 1e-9) ?? 1;
    rows.forEach(({ name, cells, box }, i) => {
      const token = shown[i];
      box.hidden = token === undefined;
      if (box.hidden) return;
      name.textContent = ui.get("tokens")[token];
      columns.forEach(({ key }, j) => {
        const p = shares[key][token], cut = !s.left[token] && (key === "cut" || key === "final");
        const text = cut ? (key === "cut" ? why(s, token) : "–") : key === "drawn" ? String(counts[token]) : key === "truth" && p === 0 ? "never" : share(p);
        const out = cut ? "tx-cut" : key === "truth" && p === 0 ? "tx-never" : "";
        cells[j].fill(key === "final" && cut ? 0 : p, full, text, out);
      });
    });
    const others = s.order.filter((token) => s.model[token] > 0).slice(shown.length), rest = new Set(others), far = (i) => rest.has(i);
    feet[0].name.textContent = `${others.length} others`;
    columns.forEach(({ key }, j) => {
      const kept = others.filter((token) => s.left[token]).length, possible = count(Array.from(s.model, (p) => p > 0)), left = count(s.left);
      const gone = key === "cut" && others.length > 0 && !kept;
      feet[0].cells[j].className = gone ? "tx-cut" : "";
      feet[0].cells[j].textContent = !others.length ? "" : gone ? "all cut" : key === "cut" ? `${others.length - kept} cut` : key === "drawn" ? others.reduce((n, token) => n + counts[token], 0) : share(add(shares[key], far));
      feet[1].cells[j].textContent = { model: possible, heated: possible, cut: left, final: left, drawn: counts.filter(Boolean).length, truth: truth && count(Array.from(truth, (p) => p > 0)) }[key];
      feet[2].cells[j].textContent = key === "cut" ? "" : key === "drawn" && !drawn.length ? "" : entropy(shares[key]).toFixed(2);
      if (key === "drawn") says[j].textContent = drawn.length ? `${drawn.length} ${drawn.length === 1 ? "time" : "times"}` : "nothing yet";
    });
    scale.textContent = `A bar over a whole column is ${(100 * full).toFixed(0)}%. “both”: either rule alone would cut it.`;
  };
  const scale = h("p", { class: "tx-note" }), body = h("tbody", {}, rows.map(({ box }) => box));
  body.addEventListener("pointermove", (event) => {
    const row = rows.find(({ box }) => box.contains(event.target));
    ui.tip(row ? `${row.name.textContent}: ${columns.map(({ head }, j) => `${head} ${row.cells[j].words()}`).join(", ")}` : null, event);
  });
  body.addEventListener("pointerleave", () => ui.tip(null));
  update.box = [h("div", { class: "tx-scroll" }, h("table", { class: "tx-stages" },
    h("thead", {}, h("tr", {}, h("td"), heads)), body,
    h("tfoot", {}, feet.map(({ name, cells }) => h("tr", {}, name, cells))))), scale];
  return update;
}

// Places of the top-k slider: each number at first, then ever wider steps, at last all tokens.
export function cutsUpTo(size) {
  const out = [];
  for (let k = 1; k < size; k = k < 20 ? k + 1 : Math.ceil(k * 1.25)) out.push(k);
  return [...out, size];
}

function build(ui) {
  const size = ui.get("tokens").length, sizes = cutsUpTo(size);
  const update = table(ui), heading = h("p", { class: "tx-sentence" }), last = h("span", { class: "tx-last", "aria-hidden": "true" });
  const more = (n) => () => ui.save("n_draws", Math.min(MOST_DRAWS, ui.get("n_draws") + n));
  const button = (words, onclick, name = null) => h("button", { type: "button", class: "tx-button", "aria-label": name, onclick }, words);
  const again = () => { ui.set("n_draws", 0); ui.save("seed", (ui.get("seed") + 1) % 10000); };
  const paint = () => {
    const s = stagesOf(ui.get), drawn = drawsOf(ui.get, s), tokens = ui.get("tokens");
    update(s, truthOf(ui.get), drawn);
    heading.replaceChildren(h("b", {}, ui.get("contexts")[ui.get("context")]), " …");
    last.textContent = drawn.length ? `… ${drawn.slice(-5).map((token) => tokens[token]).join("  ")}` : "";
  };
  ui.show(paint,
    h("p", { class: "tx-invite" }, "Move the three sliders and watch what is cut. Then draw, and compare with the world."),
    h("div", { class: "tx-row" }, ui.choice("context", { label: "after", options: ui.get("contexts").map((text, i) => [i, text]) })),
    h("div", { class: "tx-row tx-dials" },
      ui.slider("temperature", { label: "temperature", min: -1, max: 0.7, step: 0.05, to: (x) => Math.min(5, +(10 ** x).toFixed(2)), from: Math.log10, format: (x) => x.toFixed(2) }),
      ui.slider("top_k", { label: "top-k", min: 0, max: sizes.length - 1, to: (x) => sizes[x], from: (k) => sizes.findIndex((one) => one >= k), format: (x) => (x < size ? String(x) : "off") }),
      ui.slider("top_p", { label: "top-p", min: 0.05, max: 1, step: 0.01, format: (x) => (x < 1 ? x.toFixed(2) : "off") })),
    h("div", { class: "tx-row tx-draws" }, button("Draw 1", more(1)), button("Draw 10", more(10)), button("Draw 100", more(100)), button("Start again", again, "Start again with other luck"), last),
    heading, update.box);
}

export default explorer("sampling", { build, describe });
