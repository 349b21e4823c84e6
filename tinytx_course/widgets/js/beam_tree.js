// The beam tree. `get` maps the name of a trait to its value; a node is [parent, token, log-probability, fate].

const NARROWEST = 74, WIDEST = 128, ROW = 38, WORDS = { kept: "kept", pruned: "pruned", finished: "finished", cut: "cut at the limit" };

export const treeOf = (get) => get("trees")[get("source")][get("beam_size") - 1];
export const stepOf = (get) => Math.min(get("step"), treeOf(get).length);

// The tokens from the root to a node of a step, counted from 0.
export function pathOf(tree, step, node) {
  const tokens = [];
  for (let i = step, at = node; i >= 0; i--) {
    tokens.unshift(tree[i][at][1]);
    at = tree[i][at][0];
  }
  return tokens;
}

export const score = (logProb, length, penalty) => logProb / length ** penalty;

// The best hypothesis that ended in the first n steps, or null: [path, log-probability, score, step].
export function winner(tree, n, penalty) {
  let best = null;
  tree.slice(0, n).forEach((nodes, step) => nodes.forEach(([, , p, fate], node) => {
    const value = score(p, step + 1, penalty);
    if ((fate === "finished" || fate === "cut") && (!best || value > best[2])) best = [pathOf(tree, step, node), p, value, step];
  }));
  return best;
}

// The best hypothesis after n steps, finished or not.
export function leader(tree, n, penalty) {
  const at = Math.min(n, tree.length), done = winner(tree, at, penalty), live = tree[at - 1].findIndex(([, , , fate]) => fate === "kept");
  if (live < 0) return done;
  const p = tree[at - 1][live][2], value = score(p, at, penalty);
  return done && done[2] >= value ? done : [pathOf(tree, at - 1, live), p, value, at - 1];
}

// By how many nats of log P the beam is ahead of greedy decoding after n steps.
export function leadOf(get, n = stepOf(get), source = get("source")) {
  const trees = get("trees")[source], of = (size) => leader(trees[size - 1], n, get("length_penalty"))[1];
  return of(get("beam_size")) - of(1);
}

// For each source by how much the beam is ahead in the end, and at most on the way there.
export const gains = (get) => get("trees").map((trees, source) => {
  const way = trees[get("beam_size") - 1].map((_, i) => leadOf(get, i + 1, source));
  return { end: leadOf(get, Infinity, source), most: Math.max(...way) };
});

// Which nodes of the last columns lie on the path of greedy decoding.
export function onGreedy(get) {
  const greedy = winner(get("trees")[get("source")][0], Infinity, 1)[0].join("\n");
  return (step, node) => `${greedy}\n`.startsWith(`${pathOf(treeOf(get), step, node).join("\n")}\n`);
}

const written = (tokens) => tokens.filter((token) => token !== "(the end)").join(" ").replaceAll(" -", "").replaceAll("␣", "");
// The word that a hypothesis ends with, as far as it is written.
const lastWord = (path) => (path.at(-1) === "(the end)" ? path.at(-1) : written(path).split(" ").pop() || path.at(-1));
const ahead = (lead) => (Math.abs(lead) < 0.005 ? "beam and greedy are level" : `${lead > 0 ? "beam" : "greedy"} is ahead by ${number(Math.abs(lead))} nats`);
const worth = (p, length, penalty) => `log P ${number(p)}, score ${number(score(p, length, penalty))}`;

const plain = (text) => text.replace(/\s+/g, " ").trim();

// Which translations are the reference, word for word: those of the beam and of greedy decoding, or null without one.
export function exactOf(get) {
  const right = get("references")?.[get("source")], tree = treeOf(get), penalty = get("length_penalty");
  if (!right) return null;
  return [tree, get("trees")[get("source")][0]].map((each) => plain(written(winner(each, Infinity, penalty)[0])) === plain(right));
}

// What a search has so far: its text, "…" where it goes on, and log P.
function soFar(get, size, n) {
  const tree = get("trees")[get("source")][size - 1], [path, p, , step] = leader(tree, n, get("length_penalty"));
  return [`“${written(path)}${path.at(-1) === "(the end)" || step + 1 === tree.length ? "" : " …"}”`, number(p)];
}

function verdict([beam, greedy], size) {
  if (size === 1) return beam ? " It is the reference." : " It is not the reference.";
  if (beam === greedy) return beam ? " Both are the reference." : " Neither is the reference.";
  return ` Only that of ${beam ? "the beam" : "greedy decoding"} is the reference.`;
}

export function describe(get) {
  const tree = treeOf(get), n = stepOf(get), nodes = tree[n - 1], size = get("beam_size"), exact = n === tree.length ? exactOf(get) : null;
  const of = (...fates) => nodes.filter((node) => fates.includes(node[3])).length, ended = tree.slice(0, n).flat().filter(([, , , fate]) => fate === "finished").length;
  const lead = ahead(leadOf(get)).replace(/^./, (letter) => letter.toUpperCase()), [text, p] = soFar(get, size, n), [other, q] = soFar(get, 1, n);
  return `Step ${n} of ${tree.length}: ${size > 1 ? `beam ${size}` : "greedy decoding"} ${n === tree.length ? "writes" : "has"} ${text}, log P ${p}`
    + `${size === 1 ? "." : text === other ? "; greedy the same." : `; greedy ${other}, ${q}. ${lead}.`}${exact ? verdict(exact, size) : ""}\n`
    + `${of("kept", "cut")} kept at this step${nodes.map(([, , p, fate], i) => (fate === "kept" || fate === "cut" ? `${i ? ";" : ","} “${written(pathOf(tree, n - 1, i))}” ${number(p)}` : "")).join("")}. Finished at this step: ${of("finished")}, so far: ${ended}.`;
}

// As many columns as fit, as wide as the longest word needs; in each the best hypothesis on top.
function picture(ui) {
  const svg = h("svg", { role: "img", class: "tx-tree" }), pen = h("canvas").getContext("2d");
  const long = (text) => pen.measureText(text).width;
  const fitted = (text, room) => {
    let end = text.length;
    while (end > 1 && long(end < text.length ? `${text.slice(0, end)}…` : text) > room) end--;
    return end < text.length ? `${text.slice(0, end)}…` : text;
  };
  const update = () => {
    const tree = treeOf(ui.get), n = stepOf(ui.get), greedy = onGreedy(ui.get), wide = svg.clientWidth || 600;
    pen.font = `${ui.large ? 15 : 13}px ${getComputedStyle(svg).fontFamily}`;
    const widest = Math.max(...tree.flatMap((nodes, step) => nodes.map((_, i) => long(lastWord(pathOf(tree, step, i))))));
    const most = Math.max(1, Math.floor(wide / clamp(widest + 22, NARROWEST, WIDEST))), column = Math.min(WIDEST, wide / Math.min(most, tree.length)), box = column - 10, from = Math.max(0, n - most);
    const height = ROW * Math.max(...tree.map((nodes) => nodes.length)) + 24, places = [], drawn = [];
    for (let step = from; step < n; step++) {
      places[step] = tree[step].map((_, slot) => 24 + ROW * (slot + 0.5));
      const x = (step - from) * column;
      drawn.push(h("text", { x: x + box / 2, y: 13, "text-anchor": "middle", class: "tx-head" }, `${from && step === from ? "‹ " : ""}step ${step + 1}${step + 1 === from + most && n < tree.length ? " ›" : ""}`));
      tree[step].forEach(([parent, , p, fate], i) => {
        const y = places[step][i], name = `tx-${fate}${greedy(step, i) ? " tx-greedy" : ""}`, start = places[step - 1]?.[parent];
        if (start !== undefined) drawn.unshift(h("path", { class: name, fill: "none", d: `M${x - 10},${start} C${x - 4},${start} ${x - 8},${y} ${x},${y}` }));
        drawn.push(h("g", { class: name, onpointermove: (event) => ui.tip(`${written(pathOf(tree, step, i))}: ${WORDS[fate]}, ${worth(p, step + 1, ui.get("length_penalty"))}`, event) },
          h("rect", { x, y: y - 17, width: box, height: 34, rx: 6 }), h("text", { x: x + box / 2, y: y - 3, "text-anchor": "middle" }, fitted(lastWord(pathOf(tree, step, i)), box - 6)),
          h("text", { x: x + box / 2, y: y + 13, "text-anchor": "middle", class: "tx-number" }, number(p))));
      });
    }
    // What is still to come, without its tokens.
    for (let step = n; step < Math.min(tree.length, from + most); step++) {
      tree[step].forEach((_, slot) => drawn.push(h("rect", { class: "tx-ahead", x: (step - from) * column, y: 26 + ROW * slot, width: box, height: 34, rx: 6 })));
    }
    svg.style.height = `${height}px`;
    svg.replaceChildren(...drawn);
    svg.setAttribute("aria-label", `Tree of hypotheses, steps ${from + 1} to ${n}; the table lists the last step`);
  };
  svg.addEventListener("pointerleave", () => ui.tip(null));
  update.box = svg;
  return update;
}

function table(ui) {
  const body = h("tbody");
  const update = () => {
    const tree = treeOf(ui.get), n = stepOf(ui.get), penalty = ui.get("length_penalty");
    body.replaceChildren(...tree[n - 1].map(([, , p, fate], i) => h("tr", { class: `tx-${fate}` }, h("th", { scope: "row" }, written(pathOf(tree, n - 1, i)) || "(empty)"),
      h("td", {}, number(p)), h("td", {}, number(score(p, n, penalty))), h("td", {}, WORDS[fate]))));
  };
  update.box = h("table", {}, h("thead", {}, h("tr", {}, ["hypothesis", "log P (nats)", "score", "at this step"].map((name) => h("th", { scope: "col" }, name)))), body);
  return update;
}

// Numbers, as six sentences would fill the screen; the chosen one stands in full below them, with its reference.
function sentences(ui) {
  const sources = ui.get("sources"), box = ui.picks("source", { label: "sentence", names: sources.map((_, i) => String(i + 1)), reset: { step: 1 } });
  [...box.children].forEach((button, i) => { button.setAttribute("aria-label", `${i + 1}: ${sources[i]}`); button.title = sources[i]; });
  const source = h("dd"), reference = h("dd"), right = h("div", {}, h("dt", {}, "reference"), reference);
  const update = () => {
    source.textContent = sources[ui.get("source")];
    reference.textContent = ui.get("references")?.[ui.get("source")] ?? "";
    right.hidden = !reference.textContent;
  };
  update.box = [h("div", { class: "tx-row tx-sentence" }, h("span", { class: "tx-word", "aria-hidden": "true" }, "sentence"), sources.length > 1 ? box : null,
    h("dl", { class: "tx-texts" }, h("div", {}, h("dt", {}, "source"), source), right))];
  return update;
}

function build(ui) {
  const draw = picture(ui), rows = table(ui), texts = sentences(ui), results = h("p", { class: "tx-note" });
  const go = (by) => () => ui.save("step", clamp(stepOf(ui.get) + by, 1, treeOf(ui.get).length));
  const back = h("button", { type: "button", class: "tx-button", onclick: go(-1) }, "← Back"), next = h("button", { type: "button", class: "tx-button tx-next", onclick: go(1) }, "Next →");
  let ruler, asked = "", all;
  ui.painters.push(() => { ruler.max = treeOf(ui.get).length; });
  const slider = ui.slider("step", { label: "step", min: 1, max: 1, format: () => `${stepOf(ui.get)} of ${treeOf(ui.get).length}` });
  ruler = slider.querySelector("input");
  const paint = () => {
    const n = stepOf(ui.get), now = `${ui.get("beam_size")} ${ui.get("length_penalty")}`;
    draw();
    rows();
    texts();
    back.disabled = n === 1;
    next.disabled = n === treeOf(ui.get).length;
    if (now !== asked) [asked, all] = [now, gains(ui.get)];
    const wins = all.filter(({ end }) => end >= 0.005).length, led = all.filter(({ most }) => most >= 0.005).length;
    results.textContent = `Of these ${counted(all.length, "sentence")} the beam ends ahead of greedy decoding in log P in ${wins}; it was ahead at some step in ${led}.`;
    results.hidden = ui.get("beam_size") === 1;
  };
  ui.show(paint, h("p", { class: "tx-invite" }, "Press “Next”. Where does the beam keep what greedy decoding would drop, and does it pay in the end?"),
    texts.box,
    h("div", { class: "tx-row tx-steps" }, slider, h("span", { class: "tx-pair" }, back, next), ui.choice("beam_size", { label: "beam size", options: [1, 2, 3, 4].map((k) => [k, String(k)]) }), ui.choice("length_penalty", { label: "length penalty", options: [0, 0.5, 1].map((a) => [a, String(a)]) })),
    draw.box, h("p", { class: "tx-legend" }, "A box: the last word as far as it is written, and log P of the whole hypothesis, in nats. Filled: kept. Thick frame: finished. Empty: pruned (the best three). Dashed frame: the path of greedy decoding. The best stands on top."),
    h("p", { class: "tx-note" }, "Score: log P ÷ (tokens, end mark included) to the power of the length penalty. It orders hypotheses of different lengths, so it changes nothing before one has ended."), results,
    h("details", {}, h("summary", {}, "Table of this step"), rows.box));
}

export default explorer("beam_tree", { build, describe });
