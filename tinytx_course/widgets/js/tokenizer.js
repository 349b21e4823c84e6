// The tokenizer explorer. `get` maps the name of a trait to its value.

const MARK = "▁";
const wordsOf = (text) => text.split(" ").filter(Boolean);

// What follows from the corpus alone: the rank of each merged token, the ids of tokens and of words.
const vocabularies = new WeakMap();
function vocabularyOf(get) {
  const merges = get("merges");
  if (!vocabularies.has(merges)) {
    const first = get("n_special");
    const characters = [...get("characters")];
    const pieces = merges.map(([left, right]) => left + right);
    const numbered = (tokens) => new Map(tokens.map((token, i) => [token, first + i]));
    vocabularies.set(merges, {
      ranks: new Map(pieces.map((piece, rank) => [piece, rank])),
      longest: Math.max(1, ...pieces.map((piece) => piece.length)),
      ids: numbered([...characters, ...pieces]),
      wordIds: numbered(get("words")),
      steps: new Map(),
    });
  }
  return vocabularies.get(merges);
}

// A word cut by the first n merges: the earliest learned merge that applies is made first, from the left.
function segment(word, ranks, n) {
  const tokens = [MARK, ...word];
  for (;;) {
    let best = n;
    let at = -1;
    for (let i = 0; i + 1 < tokens.length; i++) {
      const rank = ranks.get(tokens[i] + tokens[i + 1]) ?? n;
      if (rank < best) [best, at] = [rank, i];
    }
    if (at < 0) return tokens;
    tokens.splice(at, 2, tokens[at] + tokens[at + 1]);
  }
}

// The tokens of the text by each tokenizer, as [token, id] pairs; what a vocabulary lacks gets the id of
// <unk>.
export function encode(get, n) {
  const { ranks, ids } = vocabularyOf(get);
  return wordsOf(get("text"))
    .flatMap((word) => segment(word, ranks, n))
    .map((token) => [token, ids.get(token) ?? get("unk_id")]);
}
export function encodeWords(get) {
  const { wordIds } = vocabularyOf(get);
  return wordsOf(get("text")).map((word) => [word, wordIds.get(word) ?? get("unk_id")]);
}

// After which merges a word gets fewer tokens, as [merges, tokens]: only tokens that are part of the word
// matter.
function stepsOf(word, { ranks, longest, steps }) {
  if (!steps.has(word)) {
    const whole = MARK + word;
    const after = new Set();
    for (let i = 0; i < whole.length; i++) {
      for (let j = i + 2; j <= Math.min(whole.length, i + longest); j++) {
        const rank = ranks.get(whole.slice(i, j));
        if (rank !== undefined) after.add(rank + 1);
      }
    }
    steps.set(
      word,
      [0, ...[...after].sort((a, b) => a - b)].map((n) => [n, segment(word, ranks, n).length]),
    );
  }
  return steps.get(word);
}

// The number of tokens of the text after 0, 1, 2, ... merges.
export function countsOf(get) {
  const vocabulary = vocabularyOf(get);
  const counts = new Int32Array(get("merges").length + 1);
  for (const word of wordsOf(get("text"))) {
    let before = 0;
    for (const [n, length] of stepsOf(word, vocabulary)) {
      counts[n] += length - before;
      before = length;
    }
  }
  return counts.map(
    (
      (sum) => (change) =>
        (sum += change)
    )(0),
  );
}

const perWord = (count, get) => number(count / wordsOf(get("text")).length, 1);
const unknown = (tokens, get) => tokens.filter(([, id]) => id === get("unk_id"));

// The next merge after n that makes fewer tokens of the text, or 0.
export const nextInText = (get, n = get("n_merges")) =>
  Math.max(
    0,
    countsOf(get).findIndex((count, k, all) => k > n && count < all[k - 1]),
  );
const actsNow = (get) => {
  const counts = countsOf(get);
  const n = get("n_merges");
  return counts[n] < counts[n - 1];
};

export function mergeInWords(get) {
  const n = get("n_merges");
  if (!n) return "No merge yet: every character is a token, and so is the mark ▁ of a space.";
  const [left, right, count] = get("merges")[n - 1];
  return `Merge ${n}: “${left}” + “${right}” → “${left + right}”, adjacent ${grouped(count)} ${count === 1 ? "time" : "times"} in the corpus${wordsOf(get("text")).length && !actsNow(get) ? "; not in this text" : ""}.`;
}

// The three tokenizers: name, tokens, size of the vocabulary.
function lanesOf(get) {
  const n = get("n_merges");
  const small = get("n_special") + [...get("characters")].length;
  return [
    ["characters", encode(get, 0), small],
    [`BPE, ${counted(n, "merge")}`, encode(get, n), small + n],
    ["words", encodeWords(get), get("n_special") + get("words").length],
  ];
}
const summed = ([, tokens, size], get) => {
  const odd = unknown(tokens, get).length;
  return (
    `${counted(tokens.length, "token")}, ${perWord(tokens.length, get)} a word` +
    `${odd ? `, ${odd} unknown` : ""}; vocabulary ${grouped(size)}`
  );
};

export function describe(get) {
  const n = wordsOf(get("text")).length;
  const lanes = n ? lanesOf(get) : [];
  if (!n) return "No text, no tokens. Type something.";
  const odd = unknown(lanes[1][1], get).map(([token]) => `“${token}”`);
  return (
    mergeInWords(get) +
    (odd.length
      ? ` The corpus has no ${[...new Set(odd)].join(", ")}: BPE too has only <unk> for what it never read.`
      : "") +
    `\n${counted(n, "word")}. ${lanes.map((each) => `${each[0]}: ${summed(each, get)}. `).join("")}Tokens of BPE: ${lanes[1][1].map(([token]) => token).join(" | ")}`
  );
}

// Colours by number: an id that stays in the picture keeps its own, a new one takes the first that is free.
// So within one vocabulary no two ids look alike, up to 24 of them.
export function palette() {
  let kept = new Map();
  return (ids) => {
    const shown = new Set(ids);
    const now = new Map([...kept].filter(([id]) => shown.has(id)));
    const used = new Set(now.values());
    let free = 0;
    for (const id of shown) {
      if (now.has(id)) continue;
      while (used.has(free)) free++;
      used.add(free);
      now.set(id, free);
    }
    kept = now;
    return now;
  };
}
const colour = (i) =>
  `--turn:${(i % 8) * 45 + (Math.floor(i / 8) % 3) * 15};--level:${Math.floor(i / 8) % 3}`;

// The tokens of one tokenizer: equal ids, equal colours; the newest merged token is framed, with a seam where
// its two parts met. Words have ids of their own, and no colours.
function lane(ui) {
  const title = h("p.tx-title");
  const name = h("b");
  const note = h("span");
  const box = h("div.tx-tokens");
  title.append(name, note);
  let shown;
  const update = ([words, tokens, size], newest, colours = null, joined = false) => {
    const now = [words, size, newest, ...tokens].join("\n");
    if (now === shown) return; // what moves is left to end
    shown = now;
    name.textContent = words;
    note.textContent = tokens.length ? ` · ${summed([words, tokens, size], ui.get)}` : "";
    box.replaceChildren(
      ...tokens.map(([token, id]) => {
        const odd = id === ui.get("unk_id");
        return h(
          "span",
          {
            class: odd ? "tx-unk" : colours ? "tx-piece" : "tx-whole",
            "data-new": token === newest?.join(""),
            "data-joined": joined,
            style: colours && !odd ? colour(colours.get(id)) : "",
          },
          h("span", ...(token === newest?.join("") ? [h("b", newest[0]), h("b", newest[1])] : [token])),
          h("small", odd ? `<unk> ${id}` : id),
        );
      }),
    );
  };
  update.box = h("div.tx-part", title, box);
  return update;
}

// Tokens a word against merges; a pressed pointer chooses the merges.
function chart(ui) {
  const draw = plot(ui, {
    xLabel: "merges",
    yLabel: "tokens a word",
    height: 160,
    right: 84,
    go: (x) => ui.set("n_merges", Math.round(x)),
  });
  ui.paint(() => {
    const n = wordsOf(ui.get("text")).length;
    const at = ui.get("n_merges");
    const last = ui.get("merges").length;
    const counts = countsOf(ui.get);
    const points = n ? Array.from(counts, (count, k) => [k, count / n]) : [];
    const top = Math.max(2, Math.ceil(points[0]?.[1] ?? 2));
    draw({
      x: [0, last],
      y: [0, top],
      at,
      xTicks: [...new Set([0, 1, 2, 3, 4].map((i) => Math.round((i * last) / 4)))].map((k) => [k, k]),
      yTicks: [...(top < 7 ? [0] : []), 1, ...(top > 3 ? [Math.round(top / 2)] : []), top].map((y) => [y, y]),
      lines: [
        n && {
          points: [
            [0, 1],
            [last, 1],
          ],
          tone: "tx-second",
          name: "words",
        },
        { points, tone: "tx-first", name: "BPE" },
      ],
      label: n
        ? `Tokens a word against merges: ${perWord(counts[0], ui.get)} at 0, ${perWord(counts[at], ui.get)} at ${at}, ${perWord(counts[last], ui.get)} at ${last}`
        : "No text",
    });
  });
  return h("div.tx-curve", h("p.tx-title", "The sequence shrinks"), draw.box);
}

function writing(ui) {
  const field = h("input.tx-field", {
    type: "text",
    maxlength: ui.get("longest"),
    autocomplete: "off",
    autocapitalize: "off",
    spellcheck: "false",
    oninput: () => ui.set("text", field.value),
    onchange: () => ui.done(),
  });
  const samples = ui
    .get("samples")
    .map((text, i) =>
      h(
        "button.tx-token",
        { "aria-label": `example ${i + 1}: ${text}`, title: text, onclick: () => ui.save("text", text) },
        text,
      ),
    );
  const box = h("div.tx-row.tx-samples", { role: "group", "aria-label": "examples" }, samples);
  const stop = roving(box, samples);
  ui.paint(() => {
    if (field.value !== ui.get("text")) field.value = ui.get("text");
    const at = ui.get("samples").indexOf(ui.get("text"));
    samples.forEach((button, i) => button.setAttribute("aria-pressed", i === at));
    stop(Math.max(0, at));
  });
  return [h("div.tx-row.tx-writing", labelled(field, "Text"), field), box];
}

function build(ui) {
  const lanes = [lane(ui), lane(ui), lane(ui)];
  const colours = palette();
  const last = ui.get("merges").length;
  const words = ["← Undo one", "Next merge →"];
  const here = pushButton("Next in this text ⇥", () => ui.save("n_merges", nextInText(ui.get)), ".tx-next");
  let before = ui.get("n_merges");
  ui.paint(() => {
    const n = ui.get("n_merges");
    const pair = ui.get("merges")[n - 1]?.slice(0, 2);
    const now = lanesOf(ui.get);
    const own = colours(now.slice(0, 2).flatMap(([, tokens]) => tokens.map(([, id]) => id)));
    now.forEach((one, i) => lanes[i](one, i === 1 ? pair : null, i < 2 ? own : null, n > before));
    before = n;
    here.disabled = !nextInText(ui.get);
  });
  ui.show(
    h(
      "p.tx-invite",
      "Type a text, or take an example. Then move the slider: characters grow into words. An id has one colour.",
    ),
    writing(ui),
    h(
      "div.tx-row.tx-merging",
      ui.slider("n_merges", { label: "merges", min: 0, max: last }),
      h("span.tx-pair", ui.steps("n_merges", { words, high: () => last, kind: "" }), here),
    ),
    h("div.tx-aside", h("div", lanes[1].box, lanes[2].box), chart(ui)),
    lanes[0].box,
  );
}

const keep = (get) => ({
  text: (value) => value.length <= get("longest"),
  n_merges: [0, get("merges").length],
});

export default explorer("tokenizer", { build, describe, keep });
