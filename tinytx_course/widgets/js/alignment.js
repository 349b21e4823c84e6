// The alignment explorer. `get` maps the name of a trait to its value, buffers as float32.

const ROW = 30;
const WIDEST = 13;
const LEAST = 0.02;

// The open sentence: words, true links, weights (target words x source words) of a head or the mean of heads.
export function sentenceOf(get, layer = get("layer"), chosen = get("head")) {
  const at = get("pair");
  const sources = get("sources");
  const targets = get("targets");
  const L = get("n_layers");
  const H = get("n_heads");
  const size = (i) => targets[i].length * sources[i].length;
  const before = sources.slice(0, at).reduce((sum, _, i) => sum + L * H * size(i), 0);
  const cells = size(at);
  const averaged = chosen < H ? [chosen] : range(H);
  const start = (head) => before + (layer * H + head) * cells;
  const weights = range(cells).map(
    (i) => averaged.reduce((sum, head) => sum + get("weights")[start(head) + i], 0) / averaged.length,
  );
  return {
    source: sources[at],
    target: targets[at],
    links: get("links")[at],
    weights,
    word: Math.min(get("word"), targets[at].length - 1),
  };
}

// Mean over aligned target words of the weight on the words that they translate; and of weights spread
// evenly.
export function massOf({ source, target, links, weights }) {
  const words = [...new Set(links.map(([, t]) => t))];
  const n = source.length;
  const mean = (f) => links.reduce((sum, [s, t]) => sum + f(s, t), 0) / words.length;
  return {
    mass: mean((s, t) => weights[t * n + s]),
    even: mean(() => 1 / n),
    n: words.length,
    of: target.length,
  };
}

const rowOf = ({ source, weights, word }) => weights.slice(word * source.length, (word + 1) * source.length);
const trueOf = ({ links, source, word }) =>
  links.filter(([, t]) => t === word).map(([s]) => `“${source[s]}”`);

export function describe(get) {
  const shown = sentenceOf(get);
  const { mass, even, n, of } = massOf(shown);
  const row = rowOf(shown);
  const best = row
    .map((w, s) => [w, s])
    .sort((a, b) => b[0] - a[0])
    .slice(0, 2)
    .filter(([w], i) => !i || percent(w) !== "0%");
  const head = get("head") < get("n_heads") ? `head ${get("head")}` : "mean of all heads";
  const right = trueOf(shown);
  return (
    `“${shown.target[shown.word]}” attends most to ${best.map(([w, s]) => `“${shown.source[s]}” ${percent(w)}`).join(" and ")}; by the grammar it translates ${right.join(" and ") || "no single word"}.\n` +
    `Layer ${get("layer")}, ${head}: ${percent(mass)} of the weight of ${n} aligned words (of ${of}) lies on the words that they translate; spread evenly it would be ${percent(even)}. ${everyInWords(everySentence(get), get("n_heads"))}`
  );
}

function drawing(ui) {
  const left = h("div.tx-side.tx-left");
  const right = h("div.tx-side.tx-right", { role: "radiogroup", "aria-label": "target word" });
  const svg = h("svg.tx-lines", { role: "img" });
  let known = null;
  let show;
  ui.paint(() => {
    const shown = sentenceOf(ui.get);
    const { source, target, links, weights, word } = shown;
    const row = rowOf(shown);
    if (target !== known) {
      const words = target.map((name) => h("button", name));
      const box = h("div", words);
      show = radioGroup(box, words, (t) => ui.save("word", t));
      right.replaceChildren(box);
      known = target;
    }
    show(word);
    left.replaceChildren(
      ...source.map((name, s) =>
        h("span", { "data-strong": String(row[s] >= 0.1) }, h("b", percent(row[s])), name),
      ),
    );
    const wide = svg.clientWidth || 200;
    const tall = ROW * Math.max(source.length, target.length);
    const y = (i) => ROW * (i + 0.5);
    svg.style.height = `${tall}px`;
    const line = (s, t, name, width) =>
      h("line", { x1: 2, y1: y(s), x2: wide - 2, y2: y(t), class: name, "stroke-width": width });
    // A whole outline for each true word: two that meet cross, and none hides the end of the other.
    const outline = (s, t) => {
      const long = Math.hypot(wide - 4, y(t) - y(s));
      const angle = (180 / Math.PI) * Math.atan2(y(t) - y(s), wide - 4);
      const round = (WIDEST + 6) / 2;
      return h("rect.tx-true", {
        x: -round,
        y: -round,
        width: long + 2 * round,
        height: 2 * round,
        rx: round,
        transform: `translate(2 ${y(s)}) rotate(${angle.toFixed(2)})`,
      });
    };
    const all = weights
      .map((weight, i) => [i % source.length, Math.floor(i / source.length), weight])
      .filter(([, t, weight]) => weight >= LEAST || t === word);
    svg.replaceChildren(
      ...[false, true].flatMap((mine) =>
        all
          .filter(([, t]) => (t === word) === mine)
          .map(([s, t, weight]) => line(s, t, mine ? "tx-chosen" : "tx-other", (WIDEST * weight).toFixed(2))),
      ),
      ...links.filter(([, t]) => t === word).map(([s, t]) => outline(s, t)),
    );
    svg.ariaLabel = `Lines from source to target words: ${target[word]} to ${source.map((name, s) => `${name} ${percent(row[s])}`).join(", ")}`;
  });
  return h(
    "div.tx-drawing",
    h("p.tx-title.tx-left", "source (weight)"),
    h("i"),
    h("p.tx-title", "target"),
    left,
    svg,
    right,
  );
}

// A button for each head and for the mean of each layer, with its share on true pairs in the open sentence.
export const sharesOf = (get) =>
  range(get("n_layers")).map((layer) =>
    range(get("n_heads") + 1).map((head) => massOf(sentenceOf(get, layer, head))),
  );

// For each head its share in every sentence, and in how many of them it has the most.
export function everySentence(get) {
  const H = get("n_heads");
  const shares = get("sources").map((_, pair) =>
    sharesOf((key) => (key === "pair" ? pair : get(key))).flatMap((row) =>
      row.slice(0, H).map(({ mass }) => mass),
    ),
  );
  const tops = shares.map((row) => row.indexOf(Math.max(...row)));
  const wins = shares[0].map((_, i) => tops.filter((top) => top === i).length);
  const best = wins.indexOf(Math.max(...wins));
  return { shares, tops, best, wins: wins[best] };
}
const everyInWords = ({ best, wins, shares }, H) =>
  `Layer ${Math.floor(best / H)}, head ${best % H} does best in ${wins} of ${counted(shares.length, "sentence")}.`;

// Every head in every sentence, as colours and numbers.
function grid(ui) {
  const H = ui.get("n_heads");
  const L = ui.get("n_layers");
  const all = everySentence(ui.get);
  const { shares, tops } = all;
  const cells = shares.map((row, pair) =>
    row.map((share, i) => h("td", `${tops[pair] === i ? "★" : ""}${(100 * share).toFixed(0)}`)),
  );
  const rows = cells.map((row, pair) => bodyRow(pair + 1, row));
  const names = shares[0].map((_, i) =>
    h(
      "th",
      { scope: "col", "aria-label": `layer ${Math.floor(i / H)}, head ${i % H}` },
      `${Math.floor(i / H)}.${i % H}`,
    ),
  );
  ui.paint(() => {
    const theme = ui.theme;
    cells.forEach((row, pair) =>
      row.forEach((cell, i) => {
        const color = shade(0.9 * shares[pair][i], theme);
        cell.style.cssText = `background:${rgb(color)};color:${inkOn(color)}`;
        cell.dataset.open = pair === ui.get("pair") && ui.get("layer") * H + ui.get("head") === i;
      }),
    );
  });
  return h(
    "div.tx-every",
    h("p.tx-title", "Every head (layer.head) in every sentence, in %"),
    h(
      "div.tx-scroll",
      { tabindex: L * H > 8 ? 0 : null, role: "group", "aria-label": "all heads" },
      h("table", h("thead", h("tr", h("td"), names)), h("tbody", rows)),
    ),
    h("p.tx-note", everyInWords(all, H)),
  );
}

function heads(ui) {
  const L = ui.get("n_layers");
  const H = ui.get("n_heads");
  const name = (head) => (head < H ? String(head) : "mean");
  const go = (i) => ui.save({ layer: Math.floor(i / (H + 1)), head: i % (H + 1) });
  const shares = [];
  const bars = [];
  const buttons = range(L * (H + 1)).map((i) => {
    shares[i] = h("span");
    bars[i] = h("i");
    return h("button.tx-token", shares[i], h("u", bars[i]));
  });
  const box = h(
    "div.tx-heads",
    { role: "radiogroup", "aria-label": "layer and head", style: `--columns:${H + 1}` },
    h("span", { "aria-hidden": "true" }, "head"),
    range(H + 1).map((head) => h("span", { "aria-hidden": "true" }, name(head))),
    range(L).map((layer) => [
      h("span", { "aria-hidden": "true" }, `layer ${layer}`),
      buttons.slice(layer * (H + 1), (layer + 1) * (H + 1)),
    ]),
  );
  const show = radioGroup(box, buttons, go, H + 1);
  const note = h("p.tx-note");
  ui.paint(() => {
    const all = sharesOf(ui.get).flat();
    const open = ui.get("layer") * (H + 1) + ui.get("head");
    const top = Math.max(...all.map(({ mass }) => mass));
    show(open);
    buttons.forEach((button, i) => {
      const text = `${percent(all[i].mass)}${all[i].mass === top ? " ★" : ""}`;
      button.ariaLabel = `layer ${Math.floor(i / (H + 1))}, ${i % (H + 1) < H ? `head ${i % (H + 1)}` : "mean of all heads"}: ${text.replace("★", "the most")}`;
      shares[i].textContent = text;
      bars[i].style.width = percent(all[i].mass);
    });
    note.textContent = `How much of the attention of a target word lies on the source words that it translates, by the grammar: the mean over ${all[0].n} words of this sentence. Spread evenly: ${percent(all[0].even)}. ★ marks the most.`;
  });
  return h("div", h("p.tx-title", "Weight on true pairs, head by head"), h("div.tx-scroll", box), note);
}

function build(ui) {
  const sources = ui.get("sources").map((words) =>
    words
      .filter((word) => word !== "(end mark)")
      .join(" ")
      .replace(/ ([.,])/g, "$1"),
  );
  const names = sources.map((_, i) => String(i + 1));
  const pairs = ui.picks("pair", { label: "sentence", names, titles: sources, reset: { word: 0 } });
  ui.show(
    h(
      "p.tx-invite",
      "Choose a target word. Does its attention follow the outline, the true alignment? Which head does best, and in every sentence?",
    ),
    h("div.tx-row.tx-sentence", h("span.tx-word", { "aria-hidden": "true" }, "sentence"), pairs),
    h(
      "div.tx-both",
      drawing(ui),
      h("div.tx-panel", heads(ui), grid(ui)),
      h(
        "p.tx-legend",
        "Width of a line: weight of the step that predicts the target word. Outlined: what the chosen word translates, by the grammar. Weights below 2% are drawn for it only; those of other words are faint.",
      ),
    ),
  );
}

const keep = (get) => ({
  pair: [0, get("sources").length - 1],
  layer: [0, get("n_layers") - 1],
  head: [0, get("n_heads")],
  word: [0, Math.max(...get("targets").map((words) => words.length)) - 1],
});

export default explorer("alignment", { build, describe, keep });
