// The beam tree. `get` maps the name of a trait to its value; a node is [parent, token, log-probability, fate].

const NARROWEST = 74, WIDEST = 104, ROW = 38, WORDS = { kept: "kept", pruned: "pruned", finished: "finished", cut: "cut at the limit" };

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
const cut = (text, most) => (text.length > most ? `${text.slice(0, most - 1)}…` : text);
// The word that a hypothesis ends with, as far as it is written.
const lastWord = (path) => (path.at(-1) === "(the end)" ? path.at(-1) : written(path).split(" ").pop() || path.at(-1));
const ahead = (lead) => (Math.abs(lead) < 0.005 ? "beam and greedy are level" : `${lead > 0 ? "beam" : "greedy"} is ahead by ${number(Math.abs(lead))} nats`);
const worth = (p, length, penalty) => `log P ${number(p)}, score ${number(score(p, length, penalty))}`;

export function describe(get) {
  const tree = treeOf(get), n = stepOf(get), nodes = tree[n - 1], of = (fate) => nodes.filter((node) => node[3] === fate).length, penalty = get("length_penalty");
  const best = winner(tree, n, penalty), greedy = winner(get("trees")[get("source")][0], Infinity, penalty);
  return `Beam size ${get("beam_size")}, step ${n} of ${tree.length}: ${of("kept") + of("cut")} kept${nodes.map(([, , p, fate], i) => (fate === "kept" || fate === "cut" ? `${i ? ";" : ","} “${written(pathOf(tree, n - 1, i)).replace(/^.+(?=.{40}$)/, "…")}” ${number(p)}` : "")).join("")}; ${of("finished")} finished. ${ahead(leadOf(get)).replace(/^./, (letter) => letter.toUpperCase())}.\n`
    + `${best ? `Best finished so far: “${written(best[0])}”, ${worth(best[1], best[3] + 1, penalty)}.` : "None is finished yet."} Greedy: “${written(greedy[0])}”, ${worth(greedy[1], greedy[3] + 1, penalty)}.`;
}

// As many columns as fit; in each the best hypothesis on top.
function picture(ui) {
  const svg = h("svg", { role: "img", class: "tx-tree" });
  const update = () => {
    const tree = treeOf(ui.get), n = stepOf(ui.get), greedy = onGreedy(ui.get), wide = svg.clientWidth || 600, column = clamp(wide / tree.length, NARROWEST, WIDEST), box = column - 10, most = Math.max(1, Math.floor(wide / column + 0.01)), from = Math.max(0, n - most);
    const letter = 0.62 * (ui.large ? 15 : 13), height = ROW * Math.max(...tree.map((nodes) => nodes.length)) + 24, places = [], drawn = [];
    for (let step = from; step < n; step++) {
      places[step] = tree[step].map((_, slot) => 24 + ROW * (slot + 0.5));
      const x = (step - from) * column;
      drawn.push(h("text", { x: x + box / 2, y: 13, "text-anchor": "middle", class: "tx-head" }, `${from && step === from ? "‹ " : ""}step ${step + 1}${step + 1 === from + most && n < tree.length ? " ›" : ""}`));
      tree[step].forEach(([parent, , p, fate], i) => {
        const y = places[step][i], name = `tx-${fate}${greedy(step, i) ? " tx-greedy" : ""}`, start = places[step - 1]?.[parent];
        if (start !== undefined) drawn.unshift(h("path", { class: name, fill: "none", d: `M${x - 10},${start} C${x - 4},${start} ${x - 8},${y} ${x},${y}` }));
        drawn.push(h("g", { class: name, onpointermove: (event) => ui.tip(`${written(pathOf(tree, step, i))}: ${WORDS[fate]}, ${worth(p, step + 1, ui.get("length_penalty"))}`, event) },
          h("rect", { x, y: y - 17, width: box, height: 34, rx: 6 }), h("text", { x: x + box / 2, y: y - 3, "text-anchor": "middle" }, cut(lastWord(pathOf(tree, step, i)), Math.floor(box / letter))),
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

function build(ui) {
  const draw = picture(ui), rows = table(ui), results = h("p", { class: "tx-results", "aria-hidden": "true" });
  let ruler, asked = "", all;
  ui.painters.push(() => { ruler.max = treeOf(ui.get).length; });
  const slider = ui.slider("step", { label: "step", min: 1, max: 1, format: () => `${stepOf(ui.get)} of ${treeOf(ui.get).length}` });
  ruler = slider.querySelector("input");
  const line = (name, best, penalty) => h("span", {}, h("b", {}, `${name}: `), `${written(best[0])}${best[0].at(-1) === "(the end)" ? " ∎" : " …"} (${worth(best[1], best[3] + 1, penalty)})`);
  const paint = () => {
    const penalty = ui.get("length_penalty");
    draw();
    rows();
    const n = stepOf(ui.get), now = `${ui.get("beam_size")} ${penalty}`;
    if (now !== asked) [asked, all] = [now, gains(ui.get)];
    const wins = all.filter(({ end }) => end >= 0.005).length, led = all.filter(({ most }) => most >= 0.005).length;
    results.replaceChildren(line("greedy so far", leader(ui.get("trees")[ui.get("source")][0], n, penalty), penalty), line(`beam ${ui.get("beam_size")} so far`, leader(treeOf(ui.get), n, penalty), penalty),
      h("span", {}, h("b", {}, `In log P ${ahead(leadOf(ui.get))}.`), ` Of these ${counted(all.length, "sentence")} the beam ends ahead of greedy decoding in ${wins}; it was ahead at some step in ${led}.`));
  };
  ui.show(paint, h("p", { class: "tx-invite" }, "Move through the steps. Where does the beam keep what greedy decoding would drop, and does it pay in the end?"),
    h("div", { class: "tx-row" }, ui.picks("source", { label: "source", names: ui.get("sources"), reset: { step: 4 } })),
    h("div", { class: "tx-row tx-steps" }, slider, ui.choice("beam_size", { label: "beam size", options: [1, 2, 3, 4].map((k) => [k, String(k)]) }), ui.choice("length_penalty", { label: "length penalty", options: [0, 0.5, 1].map((a) => [a, String(a)]) })),
    draw.box, results, h("p", { class: "tx-note" }, "Numbers: log P of the whole hypothesis, in nats. Dashed frame: the path of greedy decoding. In each column the best stands on top. A box shows the last word as far as it is written. Score: log P ÷ (tokens, end mark included) to the power of the length penalty. Of the pruned, the best three."),
    h("details", {}, h("summary", {}, "Table of this step"), rows.box));
}

export default explorer("beam_tree", { build, describe });
