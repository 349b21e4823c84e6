// The beam tree. `get` maps the name of a trait to its value; a node is [parent, token, log-probability,
// fate].

const NARROWEST = 84;
const WIDEST = 150;
const GAP = 34;
const PENALTIES = [0, 0.5, 1];
const WORDS = { kept: "kept", pruned: "pruned", finished: "finished", cut: "cut at the limit" };

// The tiny model that the lesson follows by hand: after these words, these words.
const END = "(the end)";
const TABLE = {
  "": { la: 0.5, le: 0.4, [END]: 0.1 },
  la: { chat: 0.4, nuit: 0.3, [END]: 0.3 },
  le: { chat: 0.9, nuit: 0.05, [END]: 0.05 },
  "la chat": { [END]: 0.6, noir: 0.4 },
  "le chat": { [END]: 0.52, noir: 0.48 },
};
export function byHand(size) {
  const steps = [];
  for (let beams = [[-1, "", 0]]; beams.length; ) {
    const all = beams
      .flatMap(([at, path, p]) =>
        Object.entries(TABLE[path] ?? { [END]: 1 }).map(([word, q]) => [
          at,
          word,
          p + Math.log(q),
          `${path} ${word}`.trim(),
        ]),
      )
      .sort((a, b) => b[2] - a[2])
      .slice(0, size + 3)
      .map((node, i) => [...node, i >= size ? "pruned" : node[1] === END ? "finished" : "kept"]);
    beams = all.flatMap(([, , p, path, fate], i) => (fate === "kept" ? [[i, path, p]] : []));
    steps.push(all.map(([at, word, p, , fate]) => [at, word, p, fate]));
  }
  return steps;
}

// The trees of a source, one for each size of the beam; after the last source comes the table.
let table = null;
function treesOf(get, source = get("source")) {
  table ??= [1, 2, 3, 4].map(byHand);
  return get("trees")[source] ?? table;
}
export const treeOf = (get) => treesOf(get)[get("beam_size") - 1];
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

// The best hypothesis that ended in the first n steps, or null: [path, log-probability, score, step, node].
export function winner(tree, n, penalty) {
  let best = null;
  tree.slice(0, n).forEach((nodes, step) =>
    nodes.forEach(([, , p, fate], node) => {
      const value = score(p, step + 1, penalty);
      if ((fate === "finished" || fate === "cut") && (!best || value > best[2]))
        best = [pathOf(tree, step, node), p, value, step, node];
    }),
  );
  return best;
}

// The best hypothesis after n steps, finished or not.
export function leader(tree, n, penalty) {
  const at = Math.min(n, tree.length);
  const done = winner(tree, at, penalty);
  const live = tree[at - 1].findIndex(([, , , fate]) => fate === "kept");
  if (live < 0) return done;
  const p = tree[at - 1][live][2];
  const value = score(p, at, penalty);
  return done && done[2] >= value ? done : [pathOf(tree, at - 1, live), p, value, at - 1, live];
}

// By how many nats of log P the beam is ahead of greedy decoding after n steps.
export function leadOf(get, n = stepOf(get), source = get("source")) {
  const trees = treesOf(get, source);
  const of = (size) => leader(trees[size - 1], n, get("length_penalty"))[1];
  return of(get("beam_size")) - of(1);
}

// Which nodes of the last columns lie on the path of greedy decoding.
export function onGreedy(get) {
  const greedy = winner(treesOf(get)[0], Infinity, 1)[0].join("\n");
  return (step, node) => `${greedy}\n`.startsWith(`${pathOf(treeOf(get), step, node).join("\n")}\n`);
}

const written = (tokens) =>
  tokens
    .filter((token) => token !== END)
    .map((token) => ` ${token}`)
    .join("")
    .replaceAll(" -", "")
    .trim()
    .replaceAll("␣", "");
// The word that a hypothesis ends with, as far as it is written.
const lastWord = (path) =>
  path.at(-1) === END ? path.at(-1) : written(path).split(" ").pop() || path.at(-1);
const ahead = (lead) =>
  Math.abs(lead) < 0.005
    ? "beam and greedy are level"
    : `${lead > 0 ? "beam" : "greedy"} is ahead by ${number(Math.abs(lead))} nats`;
const worth = (p, length, penalty) => `log P ${number(p)}, score ${number(score(p, length, penalty))}`;

const plain = (text) => text.replace(/\s+/g, " ").trim();

// Which translations are the reference, word for word: those of the beam and of greedy decoding, or null
// without one.
export function exactOf(get) {
  const right = get("references")?.[get("source")];
  const tree = treeOf(get);
  const penalty = get("length_penalty");
  if (!right) return null;
  return [tree, treesOf(get)[0]].map(
    (each) => plain(written(winner(each, Infinity, penalty)[0])) === plain(right),
  );
}

// What a search has so far: its text, "…" where it goes on, and log P.
function soFar(get, size, n) {
  const tree = treesOf(get)[size - 1];
  const [path, p, , step] = leader(tree, n, get("length_penalty"));
  return [`“${written(path)}${path.at(-1) === END || step + 1 === tree.length ? "" : " …"}”`, number(p)];
}

// What has ended in the first n steps, best first by the chosen penalty: text, tokens, log P, and the score
// with each penalty.
export function ended(get, n) {
  const tree = treeOf(get);
  const now = PENALTIES.indexOf(get("length_penalty"));
  const scored = (step, i, p) => ({
    text: written(pathOf(tree, step, i)),
    tokens: step + 1,
    p,
    scores: PENALTIES.map((a) => score(p, step + 1, a)),
  });
  return tree
    .slice(0, n)
    .flatMap((nodes, step) =>
      nodes.flatMap(([, , p, fate], i) =>
        fate === "finished" || fate === "cut" ? [scored(step, i, p)] : [],
      ),
    )
    .sort((a, b) => b.scores[now] - a.scores[now]);
}

// What the length penalty decides among them.
export function decides(get, n) {
  const all = ended(get, n);
  const wins = PENALTIES.map((_, i) => all.reduce((a, b) => (b.scores[i] > a.scores[i] ? b : a), all[0]));
  const [best] = wins;
  const called = ({ text, tokens }) => `“${text}” (${tokens} tokens)`;
  if (all.length < 2)
    return all.length
      ? "One has ended: every length penalty chooses it."
      : "Nothing has ended yet: until then the length penalty changes nothing.";
  if (wins.some((one) => one !== best)) {
    const each = [...new Set(wins)].map(
      (one) => `${PENALTIES.filter((_, i) => wins[i] === one).join(" and ")}: ${called(one)}`,
    );
    return `The length penalty decides: ${each.join("; ")}.`;
  }
  if (all.every(({ tokens }) => tokens === best.tokens))
    return `The same with every length penalty: all ${all.length} that ended have ${best.tokens} tokens.`;
  // A longer one wins from some penalty on: log P ÷ n^a of both are equal there.
  const longer = all
    .filter(({ tokens }) => tokens > best.tokens)
    .map((each) => [Math.log(each.p / best.p) / Math.log(each.tokens / best.tokens), each]);
  const [[above, rival] = []] = longer.sort(([a], [b]) => a - b);
  return `Penalties 0, 0.5 and 1 agree: ${rival ? `above ${number(above)}, ${called(rival)} would win` : "none that ended is longer"}.`;
}

function verdict([beam, greedy], size) {
  if (size === 1) return beam ? " It is the reference." : " It is not the reference.";
  if (beam === greedy) return beam ? " Both are the reference." : " Neither is the reference.";
  return ` Only that of ${beam ? "the beam" : "greedy decoding"} is the reference.`;
}

export function describe(get) {
  const tree = treeOf(get);
  const n = stepOf(get);
  const nodes = tree[n - 1];
  const size = get("beam_size");
  const exact = n === tree.length ? exactOf(get) : null;
  const of = (fate) =>
    nodes.flatMap(([, , logP, its], i) =>
      its === fate ? [`“${written(pathOf(tree, n - 1, i))}” ${number(logP)}`] : [],
    );
  const all = Object.entries(WORDS)
    .map(([fate, words]) => [words, of(fate)])
    .filter(([, list]) => list.length);
  const lead = ahead(leadOf(get)).replace(/^./, (letter) => letter.toUpperCase());
  const [text, p] = soFar(get, size, n);
  const [other, q] = soFar(get, 1, n);
  return (
    `Step ${n} of ${tree.length}: ${size > 1 ? `the best of ${size} beams is` : `greedy decoding ${n === tree.length ? "writes" : "has"}`} ${text}, log P ${p}` +
    `${size === 1 ? "." : text === other ? "; greedy decoding has the same." : `; greedy decoding has ${other}, ${q}. ${lead}.`}${exact ? verdict(exact, size) : ""}${n === tree.length && decides(get, n).startsWith("The length") ? " The length penalty decides." : ""}\n` +
    `At this step ${all.map(([words, list]) => `${words} ${list.length}: ${list.join(", ")}`).join("; ")}. ${decides(get, n)}`
  );
}

// Which node of each step the best hypothesis after n steps goes through, and in which step greedy decoding
// leaves it.
export function bestWay(get, n) {
  const tree = treeOf(get);
  const [, , , last, end] = leader(tree, n, get("length_penalty"));
  const way = [];
  const greedy = onGreedy(get);
  for (let step = last, at = end; step >= 0; step--) {
    way[step] = at;
    at = tree[step][at][0];
  }
  return { way, split: way.findIndex((at, step) => !greedy(step, at)) };
}

// Which nodes of each of the first n steps lead to a hypothesis that has ended or goes on.
export function aliveAt(tree, n) {
  let later = [];
  return tree
    .slice(0, n)
    .reverse()
    .map((nodes, back) => {
      const alive = nodes.map(
        ([, , , fate], i) =>
          fate !== "pruned" && (!back || fate !== "kept" || later.some(([at]) => at === i)),
      );
      later = nodes.filter((_, i) => alive[i]);
      return alive;
    })
    .reverse();
}

// As many columns as fit, as wide as the longest word needs; in each the best hypothesis on top.
function picture(ui) {
  const svg = h("svg.tx-tree", { role: "img" });
  const pen = h("canvas").getContext("2d");
  const long = (text) => pen.measureText(text).width;
  const fitted = (text, room) => {
    let end = text.length;
    while (end > 1 && long(end < text.length ? `${text.slice(0, end)}…` : text) > room) end--;
    return end < text.length ? `${text.slice(0, end)}…` : text;
  };
  let seen = 0;
  ui.paint(() => {
    const tree = treeOf(ui.get);
    const n = stepOf(ui.get);
    const greedy = onGreedy(ui.get);
    const wide = svg.clientWidth || 600;
    const { way, split } = bestWay(ui.get, n);
    const alive = aliveAt(tree, n);
    pen.font = `${ui.large ? 15 : 13}px ${getComputedStyle(svg).fontFamily}`;
    const widest = Math.max(
      ...tree.flatMap((nodes, step) => nodes.map((_, i) => long(lastWord(pathOf(tree, step, i))))),
    );
    const gap = wide < 480 ? 22 : GAP;
    const most = Math.max(1, Math.floor((wide + gap) / clamp(widest + 12 + gap, NARROWEST, WIDEST)));
    const column = Math.min(WIDEST, (wide + gap) / Math.min(most, tree.length));
    const box = column - gap;
    const from = Math.max(0, n - most);
    const row = ui.large ? 42 : 38;
    const tall = row - 4;
    const height = row * Math.max(...tree.map((nodes) => nodes.length)) + 24;
    const y = (slot) => 24 + row * (slot + 0.5);
    const boxes = [];
    const links = [];
    const thick = [];
    for (let step = from; step < n; step++) {
      const x = (step - from) * column;
      const leaves = step === split;
      const left = step === from && split >= 0 && split < from;
      const head = leaves
        ? `${step + 1}: greedy leaves`
        : left
          ? "‹ greedy left"
          : `${from && step === from ? "‹ " : ""}step ${step + 1}${step + 1 === from + most && n < tree.length ? " ›" : ""}`;
      boxes.push(
        lettering(x + box / 2, 13, head, "middle", {
          class: leaves || left ? "tx-head tx-leaves" : "tx-head",
        }),
      );
      tree[step].forEach(([parent, , p, fate], i) => {
        const best = way[step] === i;
        const dashed = greedy(step, i);
        const name = `tx-${fate}${dashed ? " tx-greedy" : ""}${best ? " tx-best" : ""}${alive[step][i] ? "" : " tx-dropped"}`;
        if (step > from)
          (best || dashed ? thick : links).push(
            h("path", {
              class: name,
              fill: "none",
              d: `M${x - gap},${y(parent)} C${x - gap / 2},${y(parent)} ${x - gap / 2},${y(i)} ${x},${y(i)}`,
            }),
          );
        boxes.push(
          h(
            "g",
            {
              class: name,
              "data-step": step + 1,
              onpointermove: (event) =>
                ui.tip(
                  `${written(pathOf(tree, step, i))}: ${WORDS[fate]}, ${worth(p, step + 1, ui.get("length_penalty"))}`,
                  event,
                ),
            },
            h("rect", { x, y: y(i) - tall / 2, width: box, height: tall, rx: 6 }),
            lettering(x + box / 2, y(i) - 4, fitted(lastWord(pathOf(tree, step, i)), box - 6), "middle"),
            lettering(x + box / 2, y(i) + (ui.large ? 14 : 11), number(p), "middle", { class: "tx-number" }),
          ),
        );
      });
    }
    // Of what is still to come, the numbers of the steps.
    for (let step = n; step < Math.min(tree.length, from + most); step++) {
      const x = (step - from) * column + box / 2;
      boxes.push(lettering(x, 13, `step ${step + 1}`, "middle", { class: "tx-head" }));
    }
    svg.style.height = `${height}px`;
    svg.replaceChildren(...links, ...thick, ...boxes);
    // The new column comes in from the left.
    const fresh =
      n === seen + 1 && !motionless() ? boxes.filter((box_) => box_.dataset.step === String(n)) : [];
    fresh.forEach((box_) => box_.animate([{ opacity: 0, transform: "translateX(-16px)" }, {}], 300));
    seen = n;
    svg.ariaLabel = `Tree of hypotheses, steps ${from + 1} to ${n}${split >= 0 ? `; greedy decoding leaves the best way at step ${split + 1}` : ""}; “In words” lists the last step`;
  });
  svg.addEventListener("pointerleave", () => ui.tip(null));
  return svg;
}

// The best that have ended, and their scores with each penalty; the best of each column is marked.
const SHOWN = 3;
function ranking(ui) {
  const body = h("tbody");
  const says = h("p.tx-decides");
  ui.paint(() => {
    const all = ended(ui.get, stepOf(ui.get));
    const most = PENALTIES.map((_, i) => Math.max(...all.map(({ scores }) => scores[i])));
    says.textContent = decides(ui.get, stepOf(ui.get));
    box.dataset.now = ui.get("length_penalty");
    for (const part of box.children) part.hidden = all.length < 2; // there is nothing to decide
    body.replaceChildren(
      ...all.slice(0, SHOWN).map(({ text, tokens, scores }) =>
        bodyRow(
          text || "(empty)",
          h("td", tokens),
          scores.map((x, i) => h("td", x === most[i] ? h("b", `★ ${number(x)}`) : number(x))),
        ),
      ),
    );
  });
  const names = [
    "ended so far; score with each length penalty: log P ÷ tokens ^ penalty",
    "tokens",
    "0",
    "0.5",
    "1",
  ];
  const options = PENALTIES.map((a) => [a, a]);
  const choice = h("div.tx-row", ui.choice("length_penalty", { label: "length penalty", options }));
  const box = h("div.tx-ended", says, choice, h("table", headRow(names), body));
  return box;
}

// Numbers, as six sentences would fill the screen, and the table; the chosen one is shown in full next to
// them, with its reference.
function sentences(ui) {
  const sources = [...ui.get("sources"), "the tiny model of the table in the lesson"];
  const names = [...ui.get("sources").map((_, i) => String(i + 1)), "table"];
  const box = ui.picks("source", { label: "sentence", names, titles: sources, reset: { step: 1 } });
  const source = h("dd");
  const reference = h("dd");
  const right = h("div", h("dt", "reference"), reference);
  ui.paint(() => {
    source.textContent = sources[ui.get("source")];
    reference.textContent = ui.get("references")?.[ui.get("source")] ?? "";
    right.hidden = !reference.textContent;
  });
  return h(
    "div.tx-row.tx-sentence",
    h("span.tx-word", { "aria-hidden": "true" }, "sentence"),
    box,
    h("dl.tx-texts", h("div", h("dt", "source"), source), right),
  );
}

function build(ui) {
  const last = () => treeOf(ui.get).length;
  const at = () => stepOf(ui.get);
  const slider = ui.slider("step", {
    label: "step",
    min: 1,
    max: last,
    format: () => `${at()} of ${last()}`,
  });
  ui.show(
    h(
      "p.tx-invite",
      "Press “Next”. Where does the beam keep what greedy decoding would drop, and does it pay in the end?",
    ),
    sentences(ui),
    h(
      "div.tx-row.tx-steps",
      slider,
      h("span.tx-pair", ui.steps("step", { words: ["← Back", "Next →"], low: 1, high: last, at })),
      ui.choice("beam_size", { label: "beam size", options: [1, 2, 3, 4].map((k) => [k, k]) }),
    ),
    picture(ui),
    h(
      "p.tx-legend",
      "A box: the last word of a hypothesis, as far as it is written, and log P of all its tokens. Filled: kept; pale: given up later. Empty: pruned. Round: finished. Dashed: greedy decoding. Thick: the best.",
    ),
    ranking(ui),
  );
}

const keep = (get) => ({
  source: [0, get("sources").length - 1],
  beam_size: [1, get("trees")[0].length],
  length_penalty: (a) => PENALTIES.includes(a),
  step: [1, Math.max(...get("trees").flatMap((trees) => trees.map((steps) => steps.length)))],
});

export default explorer("beam_tree", { build, describe, keep });
