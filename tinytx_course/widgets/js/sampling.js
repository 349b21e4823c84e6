// The explorer of sampling: one chart that follows the next token from the logits to the draw, and three
// texts. `get` maps the name of a trait to its value. The model comes with _live.js.

// Bars, pixels
const N_BARS = 12;
const N_NARROW = 6;
const NARROW = 640;
const WIDE_LETTER = 9;
const FITS = 0.16; // of the scale: as tall as a number
const MOST_DRAWS = 10000;
const CLOSE = 1e-6;
const MOST_WRITTEN = 28;
const HEAT = [0.5, 1, 2];

// Every stage, from the logits of all tokens to what is drawn from: see tinytx.generate.next_token_probs.
// Probabilities CLOSE to top-p count as reaching it, whatever the last bits say.
export function stagesOf(logits, { temperature, top_k, top_p }) {
  const size = logits.length;
  const model = softmax(logits);
  const heated = softmax(logits.map((x) => x / temperature));
  const order = Array.from(logits.keys()).sort((i, j) =>
    logits[i] === logits[j] ? i - j : logits[j] > logits[i] ? 1 : -1,
  );
  const byTopK = new Array(size).fill(false);
  const byTopP = new Array(size).fill(false);
  const kept = heated.slice();
  let before = 0;
  let sum = 0;
  order.forEach((token, rank) => {
    const possible = logits[token] > -Infinity;
    byTopK[token] = possible && rank >= top_k;
    byTopP[token] = possible && top_p < 1 && before >= top_p - CLOSE;
    before += heated[token];
    if (byTopK[token] || byTopP[token]) kept[token] = 0;
    sum += kept[token];
  });
  const left = Array.from(model, (p, i) => p > 0 && !byTopK[i] && !byTopP[i]);
  return { model, heated, byTopK, byTopP, left, order, final: kept.map((p) => p / sum) };
}

const settings = (get, temperature = get("temperature")) => ({
  temperature,
  top_k: get("top_k"),
  top_p: get("top_p"),
});
const writable = (logits) => Float64Array.from(logits, (x, id) => (isWritten(id) ? x : -Infinity));

// The stages after the text of the reader, what was drawn, and the true distribution or null.
export function sampled(get) {
  const read = readText(get("text"));
  const last = read.ids.length - 1;
  const { vocab_size: size } = machine().config;
  const s = stagesOf(
    writable(read.record.logits.data.subarray(last * size, (last + 1) * size)),
    settings(get),
  );
  return { ...s, read, truth: trueChances(read, last), drawn: drawsOf(s, get("n_draws"), get("seed")) };
}

// The token that a number from 0 to 1 falls on.
function fallen({ order, left, final }, luck) {
  let sum = 0;
  const ranked = order.filter((token) => left[token]);
  const passed = ranked.find((token) => {
    sum += final[token];
    return sum > luck;
  });
  return passed ?? ranked.at(-1);
}

// The tokens drawn. Draw i of a seed has its own number, whatever the distribution.
export const drawsOf = (s, n, seed) => range(n).map((i) => fallen(s, uniform(i + 1 + 100003 * seed)));

// One more token for each of the three texts that has not ended.
export function writeOn(get) {
  const { config, model, tokenizer } = machine();
  const start = readText(get("text")).ids;
  return get("written").map((ids, row) => {
    if (ids.length >= MOST_WRITTEN || ids.at(-1) === tokenizer.eosId) return ids;
    const all = [...start, ...ids].slice(-config.max_len);
    const logits = model.forward(all, 1, all.length).data.subarray((all.length - 1) * config.vocab_size);
    return [
      ...ids,
      fallen(
        stagesOf(writable(logits), settings(get, HEAT[row])),
        uniform(1 + ids.length + 1000 * (row + 1) + 100003 * get("seed")),
      ),
    ];
  });
}

// What was written, as [word, whether the language allows it] pairs, the end as null.
export function textsOf(get) {
  const { tokenizer, world } = machine();
  const { words } = readText(get("text"));
  return get("written").map((ids) => {
    const ended = ids.at(-1) === tokenizer.eosId;
    const own = world.split(tokenizer.decode(ids));
    const allowed = world.allowed([...words, ...own]).slice(words.length);
    return { words: own.map((word, i) => [word, allowed[i]]), ended };
  });
}

// The text of the reader, with a space where people write one before the first of the words that go on.
export const begun = (text, first) => text + machine().world.gap(text, first);

// What is not quite 0 or 1 is not written as if it were.
const share = (p) =>
  p > 0 && p < 0.0005 ? "<0.1%" : p < 1 && p >= 0.9995 ? ">99.9%" : `${(100 * p).toFixed(1)}%`;
const add = (shares, which) => shares.reduce((sum, p, i) => (which(i) ? sum + p : sum), 0);
const count = (flags) => flags.reduce((n, flag) => n + (flag ? 1 : 0), 0);
const tally = (drawn, size) =>
  drawn.reduce((counts, token) => {
    counts[token]++;
    return counts;
  }, new Array(size).fill(0));
const inText = ({ words }) => machine().world.written(words.map(([word]) => word));

// The stage that is shown, and how it changes the most probable token.
function stageInWords(get, s) {
  const best = s.order[0];
  const stage = get("stage");
  const name = `“${shownAs(best)}”`;
  const model = share(s.model[best]);
  const heated = share(s.heated[best]);
  const moved = (from, to) => (from === to ? `stays at ${to}` : `goes from ${from} to ${to}`);
  return [
    `1, model: ${name} leads with ${model}.`,
    `2, ÷ ${get("temperature").toFixed(2)}: ${name} ${moved(model, heated)}.`,
    `3, cut: ${name} ${s.left[best] ? `stays, ${heated}` : "is cut"}.`,
    `4, to 100%: ${name} ${moved(heated, share(s.final[best]))}.`,
    `5, drawn: ${s.drawn.length ? `${name} ${share(s.drawn.filter((id) => id === best).length / s.drawn.length)} of ${counted(s.drawn.length, "draw")}` : "nothing yet"}.`,
  ][stage];
}

export function describe(get) {
  const s = sampled(get);
  const { truth } = s;
  const left = count(s.left);
  const best = s.order[0];
  const stage = get("stage");
  const cuts = [s.byTopK, s.byTopP].map(count);
  const k = get("top_k") < s.model.length ? get("top_k") : "off";
  const p = get("top_p") < 1 ? get("top_p").toFixed(2) : "off";
  const lastly = s.drawn.length && stage === 4 ? ` The last was “${shownAs(s.drawn.at(-1))}”.` : "";
  // Before stage 3 nothing is cut yet.
  const cut =
    cuts[0] + cuts[1]
      ? ` Of ${grouped(count(Array.from(s.model, (q) => q > 0)))} tokens top-k cuts ${grouped(cuts[0])} and top-p ${grouped(cuts[1])}: ${grouped(left)} ${left === 1 ? "is" : "are"} left, with ${share(add(s.heated, (i) => s.left[i]))}${stage > 2 ? ", scaled to 100%" : ""}.`
      : " No token is cut.";
  let text =
    `${remarks(s.read)} Stage ${stageInWords(get, s)}${stage > 1 ? cut : ""}${lastly}\n` +
    `After “${get("text")}”: temperature ${get("temperature").toFixed(2)}, top-k ${k}, top-p ${p}. Entropy: ${entropy(s.model).toFixed(2)} bits as the model says, ${entropy(s.final).toFixed(2)} as drawn`;
  if (truth) text += `, ${entropy(truth).toFixed(2)} in the language`;
  text += `. Most probable as drawn: “${shownAs(best)}” ${share(s.final[best])}, as the model says ${share(s.model[best])}`;
  const strange = truth ? add(s.final, (i) => truth[i] === 0) : 0;
  if (truth)
    text += `, in the language ${share(truth[best])}${strange > 0 ? `. The language never says ${share(strange)} of what is drawn` : ""}`;
  const counts = tally(s.drawn, s.model.length);
  const often = s.order
    .filter((token) => counts[token])
    .sort((a, b) => counts[b] - counts[a])
    .slice(0, 3);
  text += s.drawn.length
    ? `. ${s.drawn.length} drawn: ${often.map((token) => `“${shownAs(token)}” ${counts[token]}`).join(", ")}. `
    : ". Nothing was drawn yet. ";
  const texts = textsOf(get);
  if (texts.some(({ words, ended }) => words.length || ended))
    text += texts
      .map(
        (one, i) =>
          `At temperature ${HEAT[i]}: “${inText(one)}”, ${counted(count(one.words.map(([, fine]) => !fine)), "word")} not allowed.`,
      )
      .join(" ");
  return text.trim();
}

// What the bars of each stage are, and those of the stage before as ghosts.
const STAGES = [
  { key: "model", name: "1 model", say: "The softmax of the logits: what the model believes." },
  {
    key: "heated",
    name: "2 ÷ temperature",
    say: "Logits divided by the temperature, then softmax: above 1 flatter, below 1 steeper.",
    ghost: "the model",
  },
  { key: "heated", name: "3 cut", say: "Top-k and top-p cut what is hatched. Drag the two lines." },
  {
    key: "final",
    name: "4 to 100%",
    say: "What is left is scaled to 100%. From this a token is drawn.",
    ghost: "before the cut",
  },
  {
    key: "drawn",
    name: "5 drawn",
    say: "How often each token was drawn, as a share of all draws.",
    ghost: "what it is drawn from",
  },
];

// One bar a token; the curve is the sum of the bars from the left, on which top-p cuts.
function chart(ui) {
  const columns = range(N_BARS + 1).map(() => {
    const [ghost, bar, truth, value] = ["s", "i", "u", "b"].map((tag) => h(tag));
    const name = h("span.tx-bar-name", { lang: "fr" });
    const box = h("div.tx-bar", h("div.tx-track", ghost, bar, truth, value), name);
    return { ghost, bar, truth, value, name, box };
  });
  const curve = h("polyline", { fill: "none", "vector-effect": "non-scaling-stroke" });
  const svg = h("svg.tx-curve", { viewBox: "0 0 100 100", preserveAspectRatio: "none" }, curve);
  const heightOf = (p) => `calc(var(--names) + (100% - var(--names)) * ${p})`;
  const scaleAt = (kind, text) =>
    [0, 0.5, 1].map((p) => h(`small.tx-tick${kind}`, { style: `bottom:${heightOf(p)}` }, text(p)));
  const ticks = scaleAt("", () => null);
  const sums = scaleAt(".tx-sums", percent); // of the sum, on the right: bars and sum differ by a factor
  const byK = h("div.tx-cut-k", h("span"));
  const byP = h("div.tx-cut-p", h("span"));
  const area = h(
    "div.tx-area",
    { "aria-hidden": "true" },
    svg,
    ticks,
    sums,
    columns.map(({ box }) => box),
    byK,
    byP,
  );
  // On a narrow page there are fewer bars, so that their numbers fit
  let n = N_BARS;
  let slot = 100 / (n + 1);
  const cut = (handle, go) => {
    handle.addEventListener("pointerdown", (event) => {
      event.preventDefault();
      handle.setPointerCapture(event.pointerId);
      ui.set("stage", 2);
    });
    handle.addEventListener("pointermove", (event) => {
      if (event.buttons & 1) {
        const [across, down] = placeIn(area.firstChild, event);
        go(across, 1 - down);
      }
    });
    handle.addEventListener("pointerup", () => ui.done());
  };
  const reset = (name, value) => ui.set({ n_draws: 0, written: [[], [], []], [name]: value });
  cut(byK, (across) => {
    const k = Math.max(1, Math.round(across * (n + 1)));
    reset("top_k", k > n ? machine().config.vocab_size : k);
  });
  cut(byP, (_, up) => reset("top_p", clamp(Math.round(100 * up) / 100, 0.05, 1)));
  const paint = (s) => {
    const counts = tally(s.drawn, s.model.length);
    const shares = { ...s, drawn: counts.map((times) => times / Math.max(1, s.drawn.length)) };
    const stage = ui.get("stage");
    const { key } = STAGES[stage];
    n = ui.width < NARROW ? N_NARROW : N_BARS;
    slot = 100 / (n + 1);
    const shown = s.order.slice(0, n);
    const rest = new Set(s.order.slice(n));
    const of = (p, i) => (i < n ? p[shown[i]] : add(p, (id) => rest.has(id)));
    const bars = [...columns.slice(0, n), columns[N_BARS]];
    const room = (area.clientWidth || 800) / (n + 1);
    const written = n < N_BARS ? (p) => (p < 0.0095 ? share(p) : percent(p)) : share;
    for (const { box } of columns) box.hidden = !bars.some((one) => one.box === box);
    area.style.setProperty("--bars", n + 1);
    area.classList.toggle(
      "tx-staggered",
      shown.some((id) => shownAs(id).length * WIDE_LETTER > room),
    );
    const most = Math.max(
      ...["model", "heated", "final", "drawn"].flatMap((name) => shown.map((id) => shares[name][id])),
    );
    const full = fullBar(most);
    const height = (p) => `${100 * Math.min(1, p / full)}%`;
    bars.forEach(({ ghost, bar, truth, value, name, box }, i) => {
      const [p, known] = [of(shares[key], i), s.truth ? of(s.truth, i) : 0];
      const none = i < n ? !s.left[shown[i]] : !s.order.slice(n).some((id) => s.left[id]);
      const gone = stage === 2 && none;
      const cutAway = stage > 2 && none;
      const before = stage && stage !== 2 ? of(shares[STAGES[stage - 1].key], i) : 0;
      bar.style.height = height(p);
      ghost.style.height = height(before);
      truth.style.opacity = known > 0 ? 1 : 0;
      truth.style.bottom = height(known);
      box.classList.toggle("tx-over", Math.max(p, stage === 2 ? known : 0) > (stage === 2 ? 0.86 : 1) * full); // clear of the names of the cuts
      // Above its bar, and in it where a line is drawn above, which has another value.
      const lines = [before, known].filter((x) => x > p);
      const inBar = p > FITS * full && lines.some((x) => x > p + 0.1 * FITS * full);
      const close = lines.filter((x) => x < p + FITS * full);
      box.classList.toggle("tx-inside", inBar);
      value.style.bottom = box.classList.contains("tx-over") ? "" : height(inBar ? p : Math.max(p, ...close));
      value.textContent = gone
        ? n < N_BARS
          ? "cut"
          : why(s, shown[i] ?? s.order[n])
        : cutAway
          ? "–"
          : written(p);
      name.textContent = i < n ? shownAs(shown[i]) : "others";
      box.classList.toggle("tx-gone", gone || cutAway);
      box.classList.toggle("tx-strange", !!s.truth && i < n && s.truth[shown[i]] === 0);
    });
    let sum = 0;
    const points = bars.map((_, i) => {
      sum += of(s.heated, i);
      return `${((i + 1) * slot).toFixed(2)},${(100 * (1 - sum)).toFixed(2)}`;
    });
    curve.setAttribute("points", `0,100 ${points.join(" ")}`);
    area.classList.toggle("tx-cutting", stage === 2);
    const sumShown = stage === 2 || (stage > 2 && ui.get("top_p") < 1);
    area.classList.toggle("tx-summed", sumShown); // the scale of top-p
    const k = ui.get("top_k");
    // amid the others, or behind them
    byK.style.left = `${slot * (k <= n ? k : k < s.model.length ? n + 0.5 : n + 1)}%`;
    byK.classList.toggle("tx-late", k > n / 2);
    byP.style.bottom = heightOf(ui.get("top_p"));
    byK.firstChild.textContent = `⇔ top-k ${k < s.model.length ? k : "off"}`;
    byP.firstChild.textContent = `⇕ top-p\n${ui.get("top_p") < 1 ? ui.get("top_p").toFixed(2) : "off"}`;
    sums.forEach((tick, i) => {
      tick.hidden = Math.abs(ui.get("top_p") - i / 2) < 0.17;
    }); // under the name of top-p
    ticks.forEach((tick, i) => {
      tick.textContent = `${+(50 * full * i).toFixed(1)}%`;
    });
    const past = bars.some((_, i) => of(shares[key], i) > full);
    keys.language.hidden = keys.never.hidden = !s.truth;
    keys.before.hidden = !STAGES[stage].ghost;
    keys.before.lastChild.textContent = STAGES[stage].ghost ?? "";
    keys.cut.hidden = stage !== 2;
    keys.sum.hidden = !sumShown;
    keys.past.hidden = !past;
    keys.past.lastChild.textContent = `goes on above ${percent(full)}`;
  };
  const key = (kind, text) => h("span", h("i", { class: `tx-key-${kind}` }), text);
  const keys = {
    language: key("language", "the language"),
    never: key("never", "impossible here"),
    before: key("before", ""),
    cut: key("cut", "cut"),
    sum: key("sum", "sum from the left (right scale)"),
    past: key("past", ""),
  };
  const scale = h("p.tx-key", { "aria-hidden": "true" }, Object.values(keys));
  const why = (s, token) =>
    s.byTopK[token] && s.byTopP[token] ? "both" : s.byTopK[token] ? "top-k" : "top-p";
  // A token falls into its column.
  const drop = (token, s) => {
    if (motionless()) return;
    const place = s.order.indexOf(token);
    const at = place < n ? place : N_BARS;
    const dot = h("em.tx-drop", { onanimationend: () => dot.remove() });
    columns[at].box.firstChild.append(dot);
  };
  return { area, scale, paint, drop };
}

// Three texts that the model goes on with from the same beginning.
function threeTexts(ui) {
  const boxes = HEAT.map((t) => ({
    title: h("p.tx-title", `temperature ${t}`),
    text: h("p.tx-text", { lang: "fr" }),
    foot: h("small"),
  }));
  const box = h(
    "div.tx-three",
    boxes.map(({ title, text, foot }) => h("div", title, text, foot)),
  );
  let timer = null;
  const button = pushButton("", () => (timer === null ? begin() : stop()), ".tx-write");
  const say = () => {
    button.textContent = timer === null ? "✎ Write on at three temperatures" : "❚❚ Stop writing";
  };
  const stop = () => {
    clearTimeout(timer);
    timer = null;
    ui.done();
    say();
  };
  const step = () => {
    const before = ui.get("written");
    const after = writeOn(ui.get);
    if (ui.signal.aborted || after.every((ids, i) => ids === before[i])) return stop();
    ui.set("written", after);
    timer = setTimeout(step, 30);
  };
  const begin = () => {
    if (ui.get("written").some((ids) => ids.length)) ui.set("seed", (ui.get("seed") + 1) % 10000);
    ui.set("written", [[], [], []]);
    timer = setTimeout(step, 0);
    say();
  };
  say();
  const paint = () =>
    textsOf(ui.get).forEach(({ words, ended }, i) => {
      box.hidden = timer === null && ui.get("written").every((ids) => !ids.length);
      const strange = count(words.map(([, fine]) => !fine));
      const { world } = machine();
      boxes[i].text.replaceChildren(
        h("span", begun(ui.get("text"), words[0]?.[0])),
        ...words.flatMap(([word, fine], j) => [
          world.gap(j ? words[j - 1][0] : "", word),
          fine ? word : h("mark", word),
        ]),
        ended ? " ∎" : words.length ? " …" : "",
      );
      boxes[i].foot.textContent = words.length
        ? `${counted(words.length, "word")}, ${strange ? `${strange} that the language does not allow` : "all allowed"}`
        : "";
    });
  return { button, paint, box };
}

// Places of the top-k slider: each number at first, then ever wider steps, at last all tokens.
export function cutsUpTo(size) {
  const out = [];
  for (let k = 1; k < size; k = k < 20 ? k + 1 : Math.ceil(k * 1.25)) out.push(k);
  return [...out, size];
}

function build(ui) {
  const size = machine().config.vocab_size;
  const sizes = cutsUpTo(size);
  const bars = chart(ui);
  const texts = threeTexts(ui);
  const title = h("p.tx-title");
  const fresh = { n_draws: 0, written: [[], [], []] };
  const more = (n) => () => {
    ui.save({ stage: 4, n_draws: Math.min(MOST_DRAWS, ui.get("n_draws") + n) });
    const s = sampled(ui.get);
    s.drawn.slice(-Math.min(n, 12)).forEach((token) => bars.drop(token, s));
  };
  const dial = (key, stage, options) => {
    const control = ui.slider(key, options);
    control.addEventListener(
      "input",
      () => {
        ui.set({ n_draws: 0, stage });
        if (stage === 2) ui.set("written", fresh.written);
      },
      { capture: true },
    );
    return control;
  };
  ui.paint(() => {
    const s = sampled(ui.get);
    bars.paint(s);
    texts.paint();
    const { name, say } = STAGES[ui.get("stage")];
    const last =
      ui.get("stage") === 4 && s.drawn.length
        ? ["The last: ", h("span", { lang: "fr" }, s.drawn.slice(-3).map(shownAs).join(" · "))]
        : [];
    title.replaceChildren(
      `${name}. `,
      h("span", last.length ? `Shares of ${counted(s.drawn.length, "draw")}. ` : say, ...last),
    );
  });
  ui.show(
    h(
      "p.tx-invite",
      "Press Play: from what the model believes to what is drawn. Then move a slider, and draw. Or write another beginning.",
    ),
    // a row, so that the sentence comes after all controls
    h("div.tx-row.tx-start", beginning(ui, { reset: fresh })),
    h(
      "div.tx-row.tx-dials",
      dial("temperature", 1, {
        label: "temperature",
        min: -1,
        max: 0.7,
        step: 0.05,
        to: (x) => Math.min(5, +(10 ** x).toFixed(2)),
        from: Math.log10,
        format: (x) => x.toFixed(2),
      }),
      dial("top_k", 2, {
        label: "top-k",
        min: 0,
        max: sizes.length - 1,
        to: (x) => sizes[x],
        from: (k) => sizes.findIndex((one) => one >= k),
        format: (x) => (x < size ? String(x) : "off"),
      }),
      dial("top_p", 2, {
        label: "top-p",
        min: 0.05,
        max: 1,
        step: 0.01,
        format: (x) => (x < 1 ? x.toFixed(2) : "off"),
      }),
    ),
    h(
      "div.tx-row.tx-stage",
      ui.player({
        label: "Play",
        every: 1200,
        step: () => {
          const next = (ui.get("stage") + 1) % 5;
          if (next === 4) more(20)();
          else ui.set("stage", next);
          return next !== 4;
        },
      }),
      ui.choice("stage", { label: "show", options: STAGES.map(({ name }, i) => [i, name]) }),
      h("span.tx-draws", pushButton("Draw 1", more(1)), pushButton("Draw 100", more(100))),
    ),
    title,
    bars.area,
    bars.scale,
    h(
      "div.tx-row.tx-writes",
      texts.button,
      h("span.tx-note", "with the same cuts; what the language does not allow is marked"),
    ),
    texts.box,
  );
}

const keep = () => ({
  text: (value) => value.length <= 2000,
  stage: [0, 4],
  temperature: [0.1, 5, "real"],
  top_k: [1, machine().config.vocab_size],
  top_p: [0.01, 1, "real"],
  seed: [0, 9999],
  n_draws: [0, MOST_DRAWS],
});

export default explorer("sampling", { build, describe, keep });
