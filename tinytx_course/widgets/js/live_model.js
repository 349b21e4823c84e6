// The whole model, live: what the shipped model computes, from a text to the numbers of one dot product.
// `get` maps the name of a trait to its value. The model comes with _live.js.

const N_ROWS = 8;
const FIRST_DRAW = 2017; // where the random numbers begin
// of the scale of square roots, the one of the next word
const TICKS = [0, 0.01, 0.02, 0.05, 0.1, 0.25, 0.5, 1];
const STAGES = ["embedding", "+ attention", "+ feed-forward"];

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
  const norm = model.parameters.get("body.final_norm.weight").data;
  const head = model.parameters.get("head.weight") ?? model.parameters.get("body.token_embed.weight");
  return vectors.map((vector, stage) => {
    const mean = vector.reduce((a, x) => a + x, 0) / width;
    const spread = vector.reduce((a, x) => a + (x - mean) ** 2, 0) / width;
    const normed = vector.map(
      (x, n) => ((x - mean) / Math.sqrt(spread + (config.norm_eps ?? 1e-5))) * norm[n],
    );
    const chances = chancesOf(matmul(head.data, normed, config.vocab_size, width, 1), 1);
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

export function describe(get) {
  const now = followed(get);
  const { read, at, key, block, head } = now;
  const { names } = read;
  const token = named(names, at);
  const drawn = get("drawn");
  const texts = [remarks(read)];
  const best = candidates(read, at, get("temperature")).slice(0, 3);
  const next = `After token ${token} at temperature ${number(get("temperature"), 1)}: ${best.map(({ id, model, truth }) => `“${shownAs(id)}” model ${chance(model)}, truth ${chance(truth)}`).join("; ")}.`;
  let rest = next;
  const away = Boolean(texts[0]);
  if (drawn.token !== undefined && at === read.ids.length - 1)
    texts.push(
      `Drawn: “${shownAs(drawn.token)}”, to which the model gave ${chance(drawn.model)} and the language ${chance(drawn.truth)}.`,
    );
  if (get("zoom") === 1) {
    const order = [...now.weights.keys()]
      .sort((a, b) => now.weights[b] - now.weights[a] || a - b)
      .slice(0, 3);
    texts.push(
      `Block ${block}, head ${head}: ${token} attends to ${order.map((j) => `${named(names, j)} ${percent(now.weights[j])}`).join(", ")}.`,
    );
  } else if (get("zoom") === 2) {
    texts.push(
      `Block ${block}, head ${head}: query of ${token} · key of ${named(names, key)} = ${number(now.dot)}; divided by √${now.width}: ${number(now.scaled)}; ` +
        `ALiBi added for the distance ${at - key}: ${number(now.bias)}; score ${number(now.score)}; weight ${percent(now.weights[key])}.`,
    );
  } else {
    if (!away) texts.push(next); // the page stays where it is while somebody types: no more than two lines
    rest = `${away ? `${next} ` : ""}Residual stream of ${token}: ${stream(now)
      .map(
        ({ name, best: likeliest, chance }) => `${name} would say “${shownAs(likeliest)}” ${percent(chance)}`,
      )
      .join("; ")}.`;
  }
  return `${texts.filter(Boolean).join(" ")}\n${rest}`;
}

// Draw the next token of the text, always after its last one.
function draw(ui) {
  const { read } = followed(ui.get);
  const last = read.ids.length - 1;
  const n = ui.get("n_draws");
  const chances = modelChances(read, last, ui.get("temperature"));
  const truth = trueChances(read, last);
  let left = uniform(FIRST_DRAW + n);
  let token = 0;
  for (; token < chances.length - 1; token++) {
    left -= chances[token];
    if (!(left >= 0)) break;
  }
  take(ui, token, { token, model: chances[token], truth: truth?.[token] }, n + 1);
}

function take(ui, id, drawn, nDraws) {
  if (id !== machine().tokenizer.eosId) ui.set("text", appended(ui.get("text"), id));
  for (const [key, value] of [
    ["drawn", drawn],
    ["n_draws", nDraws],
    ["back", 0],
  ])
    ui.set(key, value);
  ui.done();
}

// A vector as a strip of colours.
function strip(label) {
  const canvas = h("canvas", { role: "img", class: "tx-strip" });
  canvas.paint = (vector, most, theme) => {
    paintPixels(canvas, {
      rows: 1,
      cols: vector.length,
      share: (_, n) => 0.5 + vector[n] / (2 * most),
      theme,
      color: signedShade,
    });
    canvas.setAttribute(
      "aria-label",
      `${label}: ${vector.length} numbers from ${number(Math.min(...vector))} to ${number(Math.max(...vector))}`,
    );
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
const largest = (...vectors) => Math.max(1e-9, ...vectors.flatMap((vector) => Array.from(vector, Math.abs)));

// First zoom: the residual stream of one token, step by step.
function stages(ui) {
  const { n_layers: layers } = machine().config;
  const strips = Array.from({ length: 1 + 2 * layers }, (_, i) => strip(i ? "residual stream" : "embedding"));
  const names = strips.map(() => h("th", { scope: "row" }));
  const says = strips.map(() => h("td"));
  const title = h("p", { class: "tx-title" });
  const into = (i) => () => {
    ui.set("block", (i - 1) >> 1);
    ui.set("zoom", 1);
    lookAtMost(ui);
  };
  const box = h(
    "div",
    { class: "tx-part" },
    title,
    h(
      "table",
      {},
      h(
        "thead",
        {},
        h(
          "tr",
          {},
          ["after", `its ${machine().config.d_model} numbers`, "would say"].map((text) =>
            h("th", { scope: "col" }, text),
          ),
        ),
      ),
      h(
        "tbody",
        {},
        strips.map((canvas, i) => h("tr", {}, names[i], h("td", {}, canvas), says[i])),
      ),
    ),
  );
  const paint = (now) => {
    title.textContent = `The vector of token ${named(now.read.names, now.at)} after each step`;
    stream(now).forEach(({ vector, name, best, chance }, i) => {
      strips[i].paint(vector, largest(vector), ui.theme);
      if (!names[i].firstChild)
        names[i].append(
          ...(i % 2 ? [h("button", { type: "button", class: "tx-link", onclick: into(i) }, name)] : [name]),
        );
      says[i].replaceChildren(h("b", {}, shownAs(best)), ` ${percent(chance)}`);
    });
  };
  return { box, paint };
}

// Choose the key with the largest weight in the chosen head.
function lookAtMost(ui) {
  const { at, weights } = followed(ui.get);
  const most = weights.reduce((best, w, j) => (w > weights[best] ? j : best), 0);
  ui.set("distance", at - most);
  ui.done();
}

// Second zoom: all heads small, and the weights, queries, keys and values of one.
function heads(ui) {
  const { n_layers: layers, n_heads: n } = machine().config;
  const group = { role: "radiogroup", "aria-label": "Block and head" };
  // The key stays when another head is opened: heads can be compared.
  const { canvases, buttons, group: grid, stop } = headButtons(ui, layers, n, group);
  const title = h("p", { class: "tx-title" });
  const keys = tokenRow("Key", (j) => ui.save("distance", followed(ui.get).at - j));
  const numbers = h("button", {
    type: "button",
    class: "tx-button tx-deeper",
    onclick: () => ui.save("zoom", 2),
  });
  const parts = ["query of", "key of", "value of", "output for"].map((name) => ({
    name,
    canvas: strip(name),
    of: h("td", { class: "tx-strip-of" }),
  }));
  const paint = (now) => {
    const open = now.block * n + now.head;
    stop(open);
    canvases.forEach((canvas, i) => {
      const weights = now.rows("attn_weights", i % n, Math.floor(i / n));
      paintMap(canvas, {
        rows: now.size,
        cols: now.size,
        share: (r, c) => weights[r * now.size + c],
        blocked: (r, c) => c > r,
        theme: ui.theme,
      });
      buttons[i].setAttribute("aria-checked", i === open);
    });
    title.textContent = `Block ${now.block}, head ${now.head}: ${named(now.read.names, now.at)} attends to`;
    numbers.textContent = `The numbers behind the ${percent(now.weights[now.key])} of ${named(now.read.names, now.key)} →`;
    keys.paint(now.read.names.slice(0, now.at + 1), now.key, (j) => [
      now.read.names[j],
      h("i", { style: `--share:${100 * now.weights[j]}%` }),
      h("small", {}, percent(now.weights[j])),
    ]);
    const mixed = new Float64Array(now.width);
    now.weights.forEach((weight, j) =>
      now.vector("v", j).forEach((x, d) => {
        mixed[d] += weight * x;
      }),
    );
    const of = [now.at, now.key, now.key, now.at];
    const vectors = [now.q, now.k, now.vector("v", now.key), mixed];
    const most = [largest(now.q, now.k), largest(now.q, now.k)];
    parts.forEach(({ canvas, of: cell }, i) => {
      canvas.paint(vectors[i], most[i] ?? largest(vectors[2], mixed), ui.theme);
      cell.textContent = named(now.read.names, of[i]);
    });
  };
  const box = h(
    "div",
    { class: "tx-part" },
    h(
      "p",
      { class: "tx-title" },
      `${counted(layers, "block")} down, ${counted(n, "head")} across; in each map, queries down, keys across`,
    ),
    grid,
    title,
    keys.box,
    numbers,
    h(
      "table",
      {},
      h(
        "tbody",
        {},
        parts.map(({ name, canvas, of }) =>
          h("tr", {}, h("th", { scope: "row", class: "tx-strip-of" }, name), of, h("td", {}, canvas)),
        ),
      ),
    ),
  );
  return { box, paint };
}

// Third zoom: every number of one dot product, and what becomes of it.
function product(ui) {
  const title = h("p", { class: "tx-title" });
  const body = h("tbody");
  const chain = h("ol", { class: "tx-chain" });
  const keys = tokenRow("Key", (j) => ui.save("distance", followed(ui.get).at - j));
  const paint = (now) => {
    const { names } = now.read;
    const cell = (x, scale) => {
      const color = signedShade(0.5 + x / (2 * scale), ui.theme);
      return h("td", { style: `background:${rgb(color)};color:${inkOn(color)}` }, number(x));
    };
    title.textContent = `Block ${now.block}, head ${now.head}: the query of ${named(names, now.at)} with the key of`;
    keys.paint(names.slice(0, now.at + 1), now.key, (j) => [names[j]]);
    const most = largest(now.q, now.k);
    const mostProduct = largest(now.products);
    const across = ui.width < 480 ? 4 : ui.width < 760 ? 8 : now.width;
    const rows = [
      ["q", now.q],
      ["k", now.k],
      ["q · k", now.products],
    ];
    body.replaceChildren(
      ...Array.from({ length: Math.ceil(now.width / across) }, (_, part) =>
        rows.map(([name, vector], i) =>
          h(
            "tr",
            {},
            h("th", { scope: "row" }, name),
            Array.from(vector.slice(part * across, (part + 1) * across), (x) =>
              cell(x, i < 2 ? most : mostProduct),
            ),
          ),
        ),
      ).flat(),
    );
    const total = now.weights.length;
    const steps = [
      ["the sum of the products", number(now.dot)],
      [`divided by √${now.width}`, number(now.scaled)],
      [`ALiBi: added for a distance of ${now.at - now.key}`, number(now.bias)],
      ["the score", number(now.score)],
      [`softmax over ${total} ${total === 1 ? "key" : "keys"}`, percent(now.weights[now.key])],
    ];
    chain.replaceChildren(...steps.map(([name, value]) => h("li", {}, name, h("b", {}, value))));
  };
  return {
    box: h(
      "div",
      { class: "tx-part" },
      title,
      keys.box,
      h(
        "div",
        { class: "tx-scroll", tabindex: 0, role: "group", "aria-label": "the numbers of the dot product" },
        h("table", { class: "tx-numbers" }, body),
      ),
      chain,
    ),
    paint,
  };
}

// What comes next, by the model and in truth.
function nextTokens(ui) {
  const title = h("p", { class: "tx-title" });
  const rows = Array.from({ length: N_ROWS }, () => {
    const word = h("span", { class: "tx-next-word" });
    const logit = h("span", { class: "tx-logit" });
    const bars = ["model", "truth"].map((side) => ({ side, fill: h("i"), text: h("b") }));
    const box = h(
      "button",
      {
        type: "button",
        class: "tx-option",
        onclick: () => {
          const [id, model, truth] = box.dataset.row.split("/").map(Number);
          take(
            ui,
            id,
            { token: id, model, truth: Number.isNaN(truth) ? undefined : truth },
            ui.get("n_draws"),
          );
        },
      },
      word,
      " ",
      logit,
      " ",
      h(
        "span",
        { class: "tx-two" },
        bars.map(({ side, fill, text }) =>
          h("span", { class: `tx-one tx-${side}` }, h("em", {}, side), " ", h("u", {}, fill), text, " "),
        ),
      ),
    );
    return { box, word, logit, bars };
  });
  const axis = h("span", { class: "tx-ticks" });
  const scale = h("p", { class: "tx-note" }, "Square-root scale: twice as long is four times as probable.");
  const list = h(
    "div",
    { class: "tx-options", role: "group", "aria-label": "tokens that may come next" },
    rows.map(({ box }) => box),
  );
  const stop = roving(
    list,
    rows.map(({ box }) => box),
  );
  const paint = ({ read, at }) => {
    const last = at === read.ids.length - 1;
    title.textContent = `After token ${named(read.names, at)}${last ? ": press one to go on" : `. What was written: “${read.names[at + 1]}”.`}`;
    stop(
      Math.max(
        0,
        rows.findIndex(({ box }) => box === document.activeElement),
      ),
    );
    const found = candidates(read, at, ui.get("temperature"));
    const most = Math.max(...found.flatMap(({ model, truth }) => [model, truth ?? 0]));
    const full = fullBar(most);
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
    found.forEach(({ id, model, truth, logit }, i) => {
      const { box, word, logit: score, bars } = rows[i];
      box.dataset.row = [id, model, truth ?? NaN].join("/");
      box.setAttribute("aria-disabled", !last);
      box.dataset.chosen = !last && read.ids[at + 1] === id;
      word.textContent = shownAs(id);
      score.textContent = `logit ${number(logit, 1)}`;
      [model, truth].forEach((p, j) => {
        bars[j].fill.style.width = p ? `max(1px, ${100 * place(p)}%)` : "0";
        bars[j].fill.parentNode.className = p === 0 ? "tx-never" : "";
        bars[j].text.textContent = chance(p);
      });
    });
  };
  list.addEventListener(
    "click",
    (event) => {
      if (event.target.closest("[aria-disabled='true']")) event.stopPropagation();
    },
    { capture: true },
  );
  const head = h(
    "div",
    { class: "tx-option tx-axis", "aria-hidden": "true" },
    h("span"),
    h("span", { class: "tx-logit" }),
    h("span", { class: "tx-one" }, h("em"), axis, h("b")),
  );
  return { box: h("div", { class: "tx-part" }, title, head, list, scale), paint };
}

function build(ui) {
  const again = { drawn: {}, back: 0 };
  const write = () => draw(ui);
  const button = h(
    "button",
    { type: "button", class: "tx-button tx-next tx-draw", onclick: write },
    "Draw the next token",
  );
  const field = beginning(
    ui,
    { reset: again, enter: write },
    h(
      "div",
      { class: "tx-row" },
      button,
      ui.slider("temperature", {
        label: "temperature",
        min: 0.1,
        max: 3,
        step: 0.1,
        format: (x) => number(x, 1),
      }),
    ),
  );
  const tokens = tokenRow("Token to follow", (i) =>
    ui.save("back", readText(ui.get("text")).ids.length - 1 - i),
  );
  const next = nextTokens(ui);
  const nParams = [...machine().model.parameters.values()].reduce((sum, { data }) => sum + data.length, 0);
  const views = [stages(ui), heads(ui), product(ui)];
  const zoom = ui.choice("zoom", {
    label: "Inside",
    options: [
      [0, "1 residual stream"],
      [1, "2 one head"],
      [2, "3 dot product"],
    ],
  });
  zoom.classList.add("tx-zoom");
  // Who leaves the first zoom sees what is attended to most.
  let shown = 0;
  zoom.addEventListener("change", () => {
    if (!shown) lookAtMost(ui);
  });
  const paint = () => {
    const now = followed(ui.get);
    const { read, at } = now;
    tokens.paint(read.names, at, (i) => {
      const p = i ? modelChances(read, i - 1)[read.ids[i]] : null;
      const truth = i ? trueChances(read, i - 1)?.[read.ids[i]] : null;
      return [
        read.names[i],
        h("small", {}, i ? `${chance(p)} · ${truth === undefined ? "–" : chance(truth)}` : "model · truth"),
      ];
    });
    ui.root.classList.toggle("tx-away", Boolean(remarks(read)));
    shown = ui.get("zoom");
    views.forEach(({ box }, i) => {
      box.hidden = i !== shown;
    });
    next.box.hidden = shown === 2; // the numbers take its place, so that all of them are in sight
    views[ui.get("zoom")].paint(now);
    next.paint(now);
  };
  ui.show(
    paint,
    h(
      "p",
      { class: "tx-invite" },
      `A language model of ${grouped(nParams)} numbers runs here, next to the truth, the grammar. Write, or press Enter to draw a token.`,
    ),
    h("div", { class: "tx-row" }, field), // a row, so that the sentence comes below what is written
    h("p", { class: "tx-title" }, "Tokens, and how probable each was: choose one to look inside"),
    tokens.box,
    h(
      "div",
      { class: "tx-both" },
      next.box,
      h(
        "div",
        { class: "tx-inside" },
        zoom,
        views.map(({ box }) => box),
      ),
    ),
  );
}

const keep = () => ({
  text: (value) => value.length <= 2000,
  zoom: [0, 2],
  back: [0, 127],
  distance: [0, 127],
  block: [0, machine().config.n_layers - 1],
  head: [0, machine().config.n_heads - 1],
});

export default explorer("live_model", { build, describe, keep });
