// The alignment explorer. `get` maps the name of a trait to its value, buffers as float32.

const ROW = 30, WIDEST = 13, LEAST = 0.02;

// The open sentence: words, true links, weights (target words x source words) of the head or the mean of heads.
export function sentenceOf(get) {
  const at = get("pair"), sources = get("sources"), targets = get("targets"), L = get("n_layers"), H = get("n_heads");
  const size = (i) => targets[i].length * sources[i].length;
  const before = sources.slice(0, at).reduce((sum, _, i) => sum + L * H * size(i), 0), cells = size(at);
  const heads = get("head") < H ? [get("head")] : Array.from({ length: H }, (_, i) => i);
  const start = (head) => before + (get("layer") * H + head) * cells;
  const weights = Array.from({ length: cells }, (_, i) => heads.reduce((sum, head) => sum + get("weights")[start(head) + i], 0) / heads.length);
  return { source: sources[at], target: targets[at], links: get("links")[at], weights, word: Math.min(get("word"), targets[at].length - 1) };
}

// Mean over aligned target words of the weight on the words that they translate; and of weights spread evenly.
export function massOf({ source, target, links, weights }) {
  const words = [...new Set(links.map(([, t]) => t))], n = source.length;
  const mean = (f) => links.reduce((sum, [s, t]) => sum + f(s, t), 0) / words.length;
  return { mass: mean((s, t) => weights[t * n + s]), even: mean(() => 1 / n), n: words.length, of: target.length };
}

const rowOf = ({ source, weights, word }) => weights.slice(word * source.length, (word + 1) * source.length);
const trueOf = ({ links, source, word }) => links.filter(([, t]) => t === word).map(([s]) => `“${source[s]}”`);

export function describe(get) {
  const shown = sentenceOf(get), { mass, even, n, of } = massOf(shown), row = rowOf(shown), best = row.map((w, s) => [w, s]).sort((a, b) => b[0] - a[0]).slice(0, 2);
  const head = get("head") < get("n_heads") ? `head ${get("head")}` : "mean of all heads", right = trueOf(shown);
  return `“${shown.target[shown.word]}” attends most to ${best.map(([w, s]) => `“${shown.source[s]}” ${percent(w)}`).join(" and ")}; by the grammar it translates ${right.join(" and ") || "no single word"}.\n`
    + `Layer ${get("layer")}, ${head}: ${percent(mass)} of the weight of ${n} aligned words (of ${of}) lies on the words that they translate; spread evenly it would be ${percent(even)}.`;
}

function drawing(ui) {
  const left = h("div", { class: "tx-side tx-left" }), right = h("div", { class: "tx-side tx-right", role: "radiogroup", "aria-label": "target word" });
  const svg = h("svg", { role: "img", class: "tx-lines" });
  let known = null, words = [], stop;
  const choose = (t) => ui.save("word", t);
  const hover = (t, event) => {
    const { source, weights } = sentenceOf(ui.get), row = weights.slice(t * source.length, (t + 1) * source.length), s = row.indexOf(Math.max(...row));
    ui.tip(`${words[t].textContent}: ${percent(row[s])} on ${source[s]}`, event);
  };
  const update = (shown) => {
    const { source, target, links, weights, word } = shown, row = rowOf(shown);
    if (target !== known) {
      words = target.map((name, t) => h("button", { type: "button", role: "radio", onclick: () => choose(t), onpointermove: (event) => hover(t, event) }, name));
      const box = h("div", {}, words);
      stop = roving(box, words, { go: choose });
      right.replaceChildren(box);
      known = target;
    }
    stop(word);
    words.forEach((button, t) => button.setAttribute("aria-checked", t === word));
    left.replaceChildren(...source.map((name, s) => h("span", { "data-strong": String(row[s] >= 0.1) }, h("b", {}, percent(row[s])), name)));
    const wide = svg.clientWidth || 200, tall = ROW * Math.max(source.length, target.length), y = (i) => ROW * (i + 0.5);
    svg.style.height = `${tall}px`;
    const line = (s, t, name, width, more = {}) => h("line", { x1: 2, y1: y(s), x2: wide - 2, y2: y(t), class: name, "stroke-width": width, ...more });
    const all = weights.map((weight, i) => [i % source.length, Math.floor(i / source.length), weight]).filter(([, t, weight]) => weight >= LEAST || t === word);
    const mine = links.filter(([, t]) => t === word);
    svg.replaceChildren(...all.filter(([, t]) => t !== word).map(([s, t, weight]) => line(s, t, "tx-other", (WIDEST * weight).toFixed(2))),
      ...mine.map(([s, t]) => line(s, t, "tx-true", WIDEST + 6)), ...mine.map(([s, t]) => line(s, t, "tx-hollow", WIDEST + 2)),
      ...all.filter(([, t]) => t === word).map(([s, t, weight]) => line(s, t, "tx-chosen", (WIDEST * weight).toFixed(2))));
    svg.setAttribute("aria-label", `Lines from source to target words: ${target[word]} to ${source.map((name, s) => `${name} ${percent(row[s])}`).join(", ")}`);
  };
  right.addEventListener("pointerleave", () => ui.tip(null));
  update.box = h("div", { class: "tx-drawing" }, h("p", { class: "tx-title tx-left" }, "source (weight)"), h("i"), h("p", { class: "tx-title" }, "target"), left, svg, right);
  return update;
}

function build(ui) {
  const draw = drawing(ui), facts = h("p", { class: "tx-facts", "aria-hidden": "true" }), H = ui.get("n_heads");
  const numbers = (n) => Array.from({ length: n }, (_, i) => [i, String(i)]);
  const paint = () => {
    const shown = sentenceOf(ui.get), { mass, even } = massOf(shown);
    draw(shown);
    facts.replaceChildren("Weight on true pairs: ", h("b", {}, percent(mass)), ` · spread evenly: ${percent(even)}`);
  };
  ui.show(paint, h("p", { class: "tx-invite" }, "Choose a target word. Does its attention follow the outline of the true alignment? Which head does best?"),
    h("div", { class: "tx-row" }, ui.picks("pair", { label: "sentence", names: ui.get("sources").map((words) => words.filter((word) => word !== "(end mark)").join(" ").replace(/ ([.,])/g, "$1")), reset: { word: 0 } })),
    h("div", { class: "tx-row" }, ui.choice("layer", { label: "layer", options: numbers(ui.get("n_layers")) }), ui.choice("head", { label: "head", options: [...numbers(H), [H, "mean"]] })),
    facts, draw.box,
    h("p", { class: "tx-note" }, "Width of a line: weight of the step that predicts the target word. Outlined: what the chosen word translates, by the grammar. Weights below 2% are drawn for it only; those of other words are faint."));
}

export default explorer("alignment", { build, describe });
