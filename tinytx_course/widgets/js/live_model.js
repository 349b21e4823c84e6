// The whole model, live: one picture of what the shipped model computes, from a text to the next token, whose
// parts open in place. `get` maps the name of a trait to its value. The model comes with _live.js.

const N_ROWS = 8;
const FIRST_DRAW = 2017; // where the random numbers begin
// of the scale of square roots, the one of the next word
const TICKS = [0, 0.01, 0.02, 0.05, 0.1, 0.25, 0.5, 1];
const STAGES = ["embedding", "+ attention", "+ feed-forward"];
const PARTS = ["", "embedding", "head", "feed_forward", "output"]; // which one is open
const RUN = 1000; // ms of the dot that runs through
// Beginnings to press, by what decides the next word.
export const BEGINNINGS = {
  gender: "La fin des romans est",
  number: "Le ton des histoires",
  contrast: "Le ton est plat, mais les fées sont",
  pronoun: "J'ai lu cette idylle, et",
  participle: "Les univers, je les ai",
  elision: "Je recommande l'",
};

// The token that is followed: its place, the head and the key that are chosen, and the numbers of their dot
// product.
export function followed(get) {
  const read = readText(get("text"));
  const { config } = machine();
  const { record, ids } = read;
  const size = ids.length;
  const width = config.d_model / config.n_heads;
  const at = clamp(size - 1 - get("back"), 0, size - 1);
  const key = clamp(at - get("distance"), 0, at);
  const block = get("block");
  const head = get("head");
  const vector = (name, i) =>
    record[`blocks.${block}.${name}`].data.subarray((head * size + i) * width, (head * size + i + 1) * width);
  const rows = (name, h = head, b = block) =>
    record[`blocks.${b}.${name}`].data.subarray(h * size * size, (h + 1) * size * size);
  const q = vector("q", at);
  const k = vector("k", key);
  const products = Array.from(q, (x, n) => x * k[n]);
  const dot = products.reduce((a, x) => a + x, 0);
  const weights = rows("attn_weights").subarray(at * size, at * size + at + 1);
  const score = rows("attn_scores")[at * size + key];
  const scaled = dot / Math.sqrt(width);
  return {
    read,
    at,
    key,
    block,
    head,
    size,
    width,
    vector,
    rows,
    q,
    k,
    products,
    dot,
    scaled,
    bias: score - scaled,
    score,
    weights,
  };
}

// The residual stream of the followed token after each step, and what the model would say if it ended there.
export function stream({ read, at }) {
  if (!read.streams.has(at)) read.streams.set(at, streamOf(read, at));
  return read.streams.get(at);
}

function streamOf(read, at) {
  const { config, model } = machine();
  const width = config.d_model;
  const { record } = read;
  const vectors = [record.embed.data.slice(at * width, (at + 1) * width)];
  for (let b = 0; b < config.n_layers; b++) {
    for (const part of ["attn_out", "ff_out"]) {
      const added = record[`blocks.${b}.${part}`].data;
      vectors.push(vectors.at(-1).map((x, n) => x + added[at * width + n]));
    }
  }
  model.kernels.clear();
  const states = model.kernels.empty(vectors.length, width);
  vectors.forEach((vector, i) => states.data.set(vector, i * width));
  const normed = model.body.finalNorm.forward(states, [1, vectors.length, width]);
  const logits = model.head.forward(normed).data;
  return vectors.map((vector, stage) => {
    const chances = chancesOf(logits.subarray(stage * config.vocab_size, (stage + 1) * config.vocab_size), 1);
    const best = chances.reduce((top, p, id) => (p > chances[top] ? id : top), 0);
    return {
      vector,
      best,
      chance: chances[best],
      name: stage ? `${STAGES[1 + ((stage - 1) % 2)]}, block ${(stage - 1) >> 1}` : STAGES[0],
    };
  });
}

// The tokens with the largest mean of both probabilities.
export function candidates(read, at, temperature) {
  const model = modelChances(read, at, temperature);
  const truth = trueChances(read, at);
  return ranked(model, truth)
    .slice(0, N_ROWS)
    .map((id) => ({
      id,
      model: model[id],
      truth: truth?.[id],
      logit: read.record.logits.data[at * model.length + id],
    }));
}

const says = ({ best, chance: p }) => `“${shownAs(best)}” ${percent(p)}`;
const largest = (...vectors) => Math.max(1e-9, ...vectors.flatMap((vector) => Array.from(vector, Math.abs)));

// What the open part shows: a title, vectors as [name, numbers, words, full scale], and numbers with names.
export function opened(get) {
  const now = followed(get);
  const { read, at, key, block, head, q, k } = now;
  const { names, ids, record } = read;
  const { config, model } = machine();
  const token = named(names, at);
  const row = (name, n = config.d_model) => record[name].data.subarray(at * n, (at + 1) * n);
  const states = stream(now).map((state) => [state.vector, `would say ${says(state)}`]);
  const part = get("part");
  if (part === "embedding")
    return {
      title: `The embedding of token ${token}`,
      vectors: [[`its ${config.d_model} numbers`, ...states[0]]],
      numbers: [
        ["row of the embedding matrix", `${ids[at]} of ${grouped(config.vocab_size)}`],
        ["multiplied by √D", number(model.body.factor)],
      ],
    };
  if (part === "output") {
    const { best } = stream(now).at(-1);
    const chances = modelChances(read, at, get("temperature"));
    return {
      title: `From the last state of token ${token} to the next one`,
      vectors: [
        ["residual stream", ...states.at(-1)],
        ["after the final norm", row("final_norm"), ""],
      ],
      numbers: [
        ["logits, its products with the rows of the embedding matrix", grouped(config.vocab_size)],
        [`logit of “${shownAs(best)}”`, number(row("logits", config.vocab_size)[best])],
        [`softmax at temperature ${number(get("temperature"), 1)}`, chance(chances[best])],
      ],
    };
  }
  if (part === "feed_forward") {
    const added = row(`blocks.${block}.ff_out`);
    const active = row(`blocks.${block}.act`, config.d_ff);
    const [before, after] = [states[2 * block + 1], states[2 * block + 2]];
    const most = largest(before[0], added, after[0]);
    return {
      title: `Block ${block}, feed-forward network, for token ${token}: ${active.filter((x) => x > 0).length} of ${config.d_ff} activations above 0`,
      vectors: [
        ["residual stream before", ...before, most],
        ["after the norm", row(`blocks.${block}.ff_norm`), ""],
        [`its ${config.d_ff} activations`, active, ""],
        ["what is added", added, "", most],
        ["residual stream after", ...after, most],
      ],
      numbers: [],
    };
  }
  const value = now.vector("v", key);
  const mixed = new Float64Array(now.width);
  now.weights.forEach((weight, j) =>
    now.vector("v", j).forEach((x, d) => {
      mixed[d] += weight * x;
    }),
  );
  const order = [...now.weights.keys()].sort((a, b) => now.weights[b] - now.weights[a] || a - b);
  const seen = order.slice(0, 3).map((j) => `${named(names, j)} ${percent(now.weights[j])}`);
  const other = named(names, key);
  return {
    title: `Block ${block}, head ${head}: ${token} attends to ${seen.join(", ")}`,
    vectors: [
      [`query of ${token}`, q, "", largest(q, k)],
      [`key of ${other}`, k, "", largest(q, k)],
      [`value of ${other}`, value, "", largest(value, mixed)],
      [`output for ${token}`, mixed, "", largest(value, mixed)],
    ],
    numbers: [
      [`query of ${token} · key of ${other}`, number(now.dot)],
      [`divided by √${now.width}`, number(now.scaled)],
      [`ALiBi: added for a distance of ${at - key}`, number(now.bias)],
      ["score", number(now.score)],
      [`softmax over ${counted(now.weights.length, "key")}`, percent(now.weights[key])],
    ],
    products: [
      ["q", q, largest(q, k)],
      ["k", k, largest(q, k)],
      ["q · k", now.products, largest(now.products)],
    ],
  };
}

export function describe(get) {
  const now = followed(get);
  const { read, at } = now;
  const drawn = get("drawn");
  const best = candidates(read, at, get("temperature")).slice(0, 3);
  const heat = number(get("temperature"), 1);
  const next = `After token ${named(read.names, at)} at temperature ${heat}: ${best.map(({ id, model, truth }) => `“${shownAs(id)}” model ${chance(model)}, truth ${chance(truth)}`).join("; ")}.`;
  const all = `Residual stream of ${named(read.names, at)}: ${stream(now)
    .map((state) => `${state.name} would say ${says(state)}`)
    .join("; ")}.`;
  const known = drawn.truth === undefined || drawn.truth === null ? "" : `, grammar ${chance(drawn.truth)}`;
  const isDrawn = drawn.token !== undefined && at === read.ids.length - 1;
  const texts = [isDrawn ? `Drawn: “${shownAs(drawn.token)}” (model ${chance(drawn.model)}${known}).` : ""];
  texts.push(remarks(read) || expected(read, at, best.slice(0, 2), heat));
  let inside = "";
  if (get("part")) {
    const { title, vectors, numbers } = opened(get);
    const words = vectors.filter(([, , text]) => text).map(([name, , text]) => [name, text]);
    texts.push(`${title}.`);
    inside = `${title}; ${[...words, ...numbers].map((pair) => pair.join(": ")).join("; ")}. `;
  }
  return `${texts.filter(Boolean).join(" ")}\n${inside}${next} ${all}`;
}

// The likeliest next tokens in a plain sentence, of two lines at most: the page stays where it is while
// somebody types.
const LAST = 6; // tokens of the text
function expected({ ids, truths }, at, best, heat) {
  const text = ids.slice(Math.max(1, at + 1 - LAST), at + 1).reduce(appended, "");
  const where = text ? `After “${at > LAST ? "… " : ""}${text}”` : "At the beginning";
  const shares = (side) => best.map((one) => percent(one[side])).join(" and ");
  const models = best.map(({ id, model }) => `“${shownAs(id)}” ${percent(model)}`).join(" and ");
  const hot = heat === "1.0" ? "" : ` at temperature ${heat}`;
  return `${where} the model gives ${models}${hot}${truths.get(at) ? `; the grammar gives ${shares("truth")}` : ""}.`;
}

// A vector as a strip of colours, in so many rows.
function strip(rows = 1) {
  const canvas = h("canvas.tx-strip", { role: "img" });
  canvas.paint = (label, vector, theme, most = largest(vector)) => {
    const cols = vector.length / rows;
    const share = (i, j) => 0.5 + vector[i * cols + j] / (2 * most);
    paintPixels(canvas, { rows, cols, share, theme, color: signedShade });
    const [low, high] = [Math.min(...vector), Math.max(...vector)];
    canvas.ariaLabel = `${label}: ${vector.length} numbers from ${number(low)} to ${number(high)}`;
    return canvas;
  };
  return canvas;
}

// A small attention map. What is blocked is hatched where cells are large enough for stripes, and plain where
// they are not: one dark pixel would be taken for a weight.
const STRIPED = 12;
const THUMB = 48;
function paintMap(canvas, map) {
  if (map.rows > STRIPED) return paintPixels(canvas, { ...map, quiet: true });
  paintCells(canvas, { ...map, size: THUMB / map.rows });
  canvas.style.width = canvas.style.height = ""; // as large as its button
}

// What the open part shows, and of a head the key that is looked at.
function detail(ui) {
  const title = h("p.tx-title");
  const keys = tokenRow("Key", (j) => ui.save("distance", followed(ui.get).at - j));
  const vectors = h("tbody");
  const products = h("tbody");
  const scroll = h(
    "div.tx-scroll",
    { tabindex: 0, role: "group", "aria-label": "the numbers of the dot product" },
    h("table.tx-numbers", products),
  );
  const numbers = h("ol.tx-chain");
  const box = h("div.tx-opened", { id: uid() }, title, keys.box, h("table", vectors), scroll, numbers);
  const cells = ([name, vector, most], from, to) =>
    bodyRow(
      name,
      Array.from(vector.slice(from, to), (x) => {
        const color = signedShade(0.5 + x / (2 * most), ui.theme);
        return h("td", { style: `background:${rgb(color)};color:${inkOn(color)}` }, number(x));
      }),
    );
  const paint = (now) => {
    const found = opened(ui.get);
    const of = found.products ?? [];
    const across = ui.width < 480 ? 4 : 8;
    keys.box.hidden = scroll.hidden = !found.products;
    title.textContent = found.title;
    vectors.replaceChildren(
      ...found.vectors.map(([name, vector, words, most]) =>
        bodyRow(name, h("td", strip().paint(name, vector, ui.theme, most)), h("td", words)),
      ),
    );
    numbers.replaceChildren(...found.numbers.map(([name, value]) => h("li", name, h("b", value))));
    products.replaceChildren(
      ...range(Math.ceil(now.width / across)).flatMap((i) =>
        of.map((row) => cells(row, i * across, (i + 1) * across)),
      ),
    );
    keys.paint(now.read.names.slice(0, now.at + 1), now.key, (j) => [
      now.read.names[j],
      h("i", { style: `--share:${100 * now.weights[j]}%` }),
      h("small", percent(now.weights[j])),
    ]);
  };
  return { box, paint };
}

// Send a dot over these elements, from middle to middle.
function travel(dot, way) {
  const around = dot.parentElement.getBoundingClientRect();
  const zoom = around.width / dot.parentElement.offsetWidth;
  const frames = way.map((element) => {
    const { left, top, width, height } = element.getBoundingClientRect();
    const [x, y] = [left + width / 2 - around.left, top + height / 2 - around.top];
    return { opacity: 1, translate: `${x / zoom}px ${y / zoom}px` };
  });
  return dot.animate(frames, RUN);
}

// The machine from left to right, on a phone from top to bottom: each step has what is pressed to open it, and
// the sum on the stream below.
function picture(ui, next) {
  const { n_layers: layers, n_heads: n, d_model: width, d_ff: hidden, vocab_size: size } = machine().config;
  const open = detail(ui);
  const openers = [];
  let pressed = null; // and where on the screen
  const isOpen = (keys) => Object.entries(keys).every(([key, value]) => ui.get(key) === value);
  const choose = (keys) => {
    const anew = ui.get("part") !== "head"; // who opens another head stays at the key: heads can be compared
    ui.set(keys);
    const { at, weights } = followed(ui.get);
    if (anew && keys.part === "head") ui.set("distance", at - weights.indexOf(Math.max(...weights)));
    ui.done();
  };
  const opener = (name, keys, ...inside) => {
    const attributes = { "aria-label": name, "aria-controls": open.box.id };
    const onclick = () => {
      pressed = { button, top: button.getBoundingClientRect().top };
      choose(isOpen(keys) ? { part: "" } : keys);
    };
    const button = h("button.tx-opener", { ...attributes, onclick }, inside);
    openers.push({ button, keys });
    return button;
  };
  const plus = (sign) => h("i.tx-plus", { "aria-hidden": "true" }, sign);
  const strips = range(2 * layers + 1).map(() => strip());
  const words = strips.map(() => h("span.tx-says"));
  const sums = strips.map((canvas, i) => {
    const what = i ? canvas : opener("embedding of the token", { part: "embedding" }, canvas);
    return h("div.tx-sum", plus(i ? "+" : ""), what, words[i]);
  });
  const step = (at, title, inside, sum) =>
    h("div.tx-step", { style: `--at:${at}` }, h("p.tx-name", title), inside, sum);
  const maps = range(layers * n).map(() => h("canvas"));
  const heads = range(layers).map((block) => {
    const of = range(n).map((head) => ({ part: "head", block, head }));
    const buttons = of.map((keys) =>
      opener(`block ${block}, head ${keys.head}`, keys, maps[block * n + keys.head]),
    );
    const box = h("div.tx-thumbs", { role: "group", "aria-label": `Block ${block}: heads` }, buttons);
    const stop = roving(box, buttons, {
      columns: () => getComputedStyle(box).gridTemplateColumns.split(" ").length,
      go: (i) => ui.get("part") === "head" && choose(of[i]),
    });
    ui.paint(() => stop(ui.get("head")));
    return box;
  });
  const active = heads.map(() => strip(16));
  const normed = strip(16);
  const tokens = tokenRow("Token to follow", (i) =>
    ui.save("back", readText(ui.get("text")).ids.length - 1 - i),
  );
  const logits = h("div.tx-sum", plus("→"), h("span.tx-says", `${grouped(size)} logits`));
  const dot = h("i.tx-dot", { "aria-hidden": "true" });
  const box = h(
    "div.tx-machine",
    { style: `--layers:${layers}` },
    h("i.tx-line", { "aria-hidden": "true" }),
    step(0, "Tokens", tokens.box, sums[0]),
    heads.map((group, block) => {
      const keys = { part: "feed_forward", block };
      return [
        h("p.tx-name.tx-ground", { style: `--at:${2 * block + 1}` }, `Block ${block}`),
        step(2 * block + 1, "attention", group, sums[2 * block + 1]),
        step(
          2 * block + 2,
          "feed-forward",
          opener(`feed-forward, block ${block}`, keys, active[block]),
          sums[2 * block + 2],
        ),
      ];
    }),
    step(2 * layers + 1, "final norm", opener("final norm and logits", { part: "output" }, normed), logits),
    next.box,
    dot,
  );
  const shown = { part: ui.get("part") }; // what a link opens is scrolled to, as what is pressed
  let embeddings = [];
  const paint = (now) => {
    const { read, at, size: length } = now;
    const { theme } = ui;
    const row = (name, long) => read.record[name].data.subarray(at * long, (at + 1) * long);
    if (shown.read !== read || shown.theme !== theme) {
      Object.assign(shown, { read, theme }); // once for each text: what is chosen only moves marks
      const { data } = read.record.embed;
      embeddings = read.names.map((name, i) =>
        strip().paint(name, data.subarray(i * width, (i + 1) * width), theme),
      );
      embeddings.forEach((canvas) => canvas.setAttribute("aria-hidden", "true"));
      maps.forEach((canvas, i) => {
        const weights = now.rows("attn_weights", i % n, Math.floor(i / n));
        const share = (r, c) => weights[r * length + c];
        paintMap(canvas, { rows: length, cols: length, share, blocked: (r, c) => c > r, theme });
      });
    }
    box.style.setProperty("--row", at / length);
    box.style.setProperty("--tall", 1 / length);
    tokens.paint(read.names, at, (i) => {
      const p = i ? modelChances(read, i - 1)[read.ids[i]] : null;
      const truth = i ? trueChances(read, i - 1)?.[read.ids[i]] : null;
      const numbers = i ? `${chance(p)} · ${truth === undefined ? "–" : chance(truth)}` : "model · truth";
      return [read.names[i], embeddings[i], h("small", numbers)];
    });
    stream(now).forEach((state, i) => {
      strips[i].paint(state.name, state.vector, theme);
      words[i].replaceChildren(
        "would say ",
        h("span", h("b", shownAs(state.best)), ` ${percent(state.chance)}`),
      );
    });
    active.forEach((canvas, block) => canvas.paint("activations", row(`blocks.${block}.act`, hidden), theme));
    normed.paint("final norm", row("final_norm", width), theme);
    const part = ui.get("part");
    if (part) open.paint(now);
    open.box.hidden = !part;
    openers.forEach(({ button, keys }) => {
      button.setAttribute("aria-expanded", isOpen(keys));
      if (isOpen(keys) && !button.closest(".tx-step").contains(open.box))
        button.closest(".tx-step").append(open.box);
    });
    // What was open above it may have closed: it stays where it was pressed, whatever scrolls around it.
    for (let outer = pressed && ui.root; outer; outer = outer.parentElement)
      outer.scrollTop += pressed.button.getBoundingClientRect().top - pressed.top;
    if (part && (pressed || part !== shown.part)) open.box.scrollIntoView({ block: "nearest" });
    shown.part = part;
    pressed = null;
  };
  const run = (id) => {
    const stations = box.querySelectorAll(".tx-plus");
    return travel(dot, [
      tokens.box.querySelector("[aria-checked=true]"),
      ...stations,
      next.bar(id),
      tokens.box,
    ]);
  };
  return { box, paint, run };
}

// What comes next, by the model and in truth; take(id, chances) is called for a token that is pressed.
function nextTokens(ui, take) {
  const title = h("p.tx-title");
  const rows = range(N_ROWS).map(() => {
    const word = h("span.tx-next-word");
    const logit = h("small");
    const bars = ["model", "truth"].map((side) => ({ side, fill: h("i"), text: h("b") }));
    const row = { word, logit, bars };
    const onclick = () => row.last && take(row.found);
    row.box = h(
      "button.tx-option",
      { onclick },
      h("span.tx-name", word, " ", logit),
      " ",
      h(
        "span.tx-two",
        bars.map(({ side, fill, text }) =>
          h("span", { class: `tx-one tx-${side}` }, h("em", side), " ", h("u", fill), text, " "),
        ),
      ),
    );
    return row;
  });
  const axis = h("span.tx-ticks");
  const boxes = rows.map((row) => row.box);
  const list = h("div.tx-options", { role: "group", "aria-label": "tokens that may come next" }, boxes);
  const stop = roving(list, boxes);
  const paint = ({ read, at }, drawn) => {
    const last = at === read.ids.length - 1;
    title.textContent = `After token ${named(read.names, at)}${last ? ": press one to go on" : `. What was written: “${read.names[at + 1]}”.`}`;
    stop(Math.max(0, boxes.indexOf(document.activeElement)));
    const found = candidates(read, at, ui.get("temperature"));
    const full = fullBar(Math.max(...found.flatMap(({ model, truth }) => [model, truth ?? 0])));
    const wide = axis.clientWidth || 120;
    const place = (p) => Math.sqrt(p / full);
    const ticks = TICKS.filter((p) => p <= full)
      .reverse()
      .reduce((all, p) => (all.length && wide * (place(all[0]) - place(p)) < 32 ? all : [p, ...all]), []);
    axis.replaceChildren(...ticks.map((p) => h("span", { style: `left:${100 * place(p)}%` }, percent(p))));
    list.style.setProperty(
      "--grid",
      ticks
        .map((p) => `linear-gradient(var(--tx-line) 0 0) ${100 * place(p)}% 0 / 1px 100% no-repeat`)
        .join(","),
    );
    rows.forEach((row, i) => {
      const { id, model, truth, logit } = found[i];
      Object.assign(row, { found: found[i], last });
      row.box.setAttribute("aria-disabled", !last);
      row.box.dataset.chosen = (last ? drawn : read.ids[at + 1]) === id;
      row.word.textContent = shownAs(id);
      row.logit.textContent = `logit ${number(logit, 1)}`;
      [model, truth].forEach((p, j) => {
        const { fill, text } = row.bars[j];
        fill.style.width = p ? `max(1px, ${100 * place(p)}%)` : "0";
        fill.parentNode.className = p === 0 ? "tx-never" : "";
        text.textContent = p === undefined || p === null ? "" : chance(p);
      });
    });
  };
  const legend = ["model", "truth"].map((side) =>
    h("span", { class: `tx-key tx-${side}` }, h("u", h("i", { style: "width: 100%" })), side),
  );
  const head = h("div.tx-option.tx-axis", { "aria-hidden": "true" }, h("span"), h("span.tx-one", axis));
  const note = h("p.tx-keys", legend, "Square-root scale: twice as long is four times as probable.");
  const box = h("div.tx-part", title, head, list, note);
  return { box, paint, bar: (id) => rows.find(({ found }) => found.id === id)?.bars[0].fill ?? list };
}

function build(ui) {
  let flying = null; // the token that a dot brings, the text it belongs to, and its motion
  const append = (id) => {
    if (id !== machine().tokenizer.eosId) ui.set("text", appended(ui.get("text"), id));
    ui.set("back", 0);
    ui.done();
    ui.redraw();
  };
  // The dot is there, or too late as something else was written.
  const land = () => {
    const { id, text, motion } = flying ?? {};
    flying = null;
    motion?.cancel();
    if (motion && text === ui.get("text")) append(id);
  };
  const note = ({ id, model, truth }, n) => ui.set({ drawn: { token: id, model, truth }, n_draws: n });
  const next = nextTokens(ui, (found) => {
    flying?.motion.cancel();
    flying = null;
    note(found, ui.get("n_draws"));
    append(found.id);
  });
  readText(ui.get("text")); // what is drawn at first, read before
  const parts = picture(ui, next);
  const reset = { drawn: {}, back: 0 };
  const examples = Object.entries(BEGINNINGS).map(([what, text]) => {
    const onclick = () => ui.save({ text, ...reset });
    return h("button.tx-token", { onclick }, `${what}: `, h("b", { lang: "fr" }, text));
  });
  const paint = () => {
    const now = followed(ui.get);
    if (flying && flying.text !== ui.get("text")) land();
    parts.paint(now);
    next.paint(now, flying?.id);
  };
  // Draw the next token of the text, always after its last one.
  const draw = () => {
    land();
    if (ui.get("back")) {
      ui.set("back", 0);
      paint();
    }
    const { read, at } = followed(ui.get);
    const chances = modelChances(read, at, ui.get("temperature"));
    const n = ui.get("n_draws");
    let left = uniform(FIRST_DRAW + n);
    let id = 0;
    for (; id < chances.length - 1; id++) {
      left -= chances[id];
      if (!(left >= 0)) break;
    }
    note({ id, model: chances[id], truth: trueChances(read, at)?.[id] }, n + 1);
    if (motionless()) return append(id);
    flying = { id, text: ui.get("text"), motion: parts.run(id) };
    flying.motion.onfinish = land;
    setTimeout(() => flying && readText(appended(flying.text, flying.id)), RUN / 2); // where it lands is ready
    ui.done();
  };
  const drawNext = pushButton("Draw the next token", draw, ".tx-next.tx-draw");
  const temperature = { label: "temperature", min: 0.1, max: 3, step: 0.1, format: (x) => number(x, 1) };
  const field = beginning(
    ui,
    { reset, enter: draw },
    h("div.tx-row", drawNext, ui.slider("temperature", temperature)),
    h("div.tx-row.tx-scroll.tx-examples", examples),
  );
  const nParams = [...machine().model.parameters.values()].reduce((sum, { data }) => sum + data.length, 0);
  ui.paint(paint);
  ui.show(
    h(
      "p.tx-invite",
      `A language model of ${grouped(nParams)} numbers runs here, next to the truth, the grammar. Write, draw a token, press a part.`,
    ),
    h("div.tx-row", field), // a row, so that the sentence comes below what is written
    parts.box,
  );
}

const keep = () => ({
  text: (value) => value.length <= 2000,
  temperature: [0.1, 3, "real"],
  part: PARTS,
  back: [0, 127],
  distance: [0, 127],
  block: [0, machine().config.n_layers - 1],
  head: [0, machine().config.n_heads - 1],
});

export default explorer("live_model", { build, describe, keep });
