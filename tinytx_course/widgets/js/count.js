// The count explorer. `get` maps the name of a trait to its value; what is counted are BigInts, exact at any
// size.

const NAMES = {
  vocab_size: "vocabulary",
  d_model: "width",
  n_layers: "layers",
  n_heads: "heads",
  d_ff: "feed-forward width",
  seq_len: "length",
  batch_size: "batch",
  max_len: "longest length",
  n_classes: "classes",
  tie_embeddings: "tied embeddings",
  learned: "learned positions",
  plain: "weights kept",
  causal: "causal",
  bias: "biases",
  norm_first: "norm first",
  gelu: "GELU",
  head: "head",
};
const SETTINGS = Object.keys(NAMES);
// Sizes of the frame that the treemap grows in, and what is still drawn as a ghost, as shares of its area.
const RUNG = 2;
const LEAST = 1 / 400;
const FAR = 1.8;

// The state as it stands: the largest number of heads that divides the width counts.
export function settingsOf(get) {
  const state = Object.fromEntries(SETTINGS.map((name) => [name, get(name)]));
  return {
    ...state,
    n_heads: divisors(state.d_model)
      .filter((d) => d <= state.n_heads)
      .pop(),
  };
}

// What every bar counts, in letters; M rows of a table of positions, N parameters, numbers of 4 bytes.
function termsOf(s) {
  const b = s.bias;
  const norms = `${b ? "2·" : ""}D`;
  const inner = s.gelu ? 8 : 4;
  const weights = s.plain ? (s.causal ? "8·B·H·T·T + 2·T·T" : "4·B·H·T·T") : "4·B·H·T";
  const lm = s.tie_embeddings ? (b ? "V" : "0") : `D·V${b ? " + V" : ""}`;
  const last = s.norm_first ? "4·B·T·D + 8·B·T + " : "";
  return {
    parameters: [
      ["embeddings", s.learned ? "V·D + M·D" : "V·D"],
      ["attention", `L·4·${b ? "(D·D + D)" : "D·D"}`],
      ["feed-forward", b ? "L·(2·D·F + F + D)" : "L·2·D·F"],
      ["norms", s.norm_first ? `(2·L + 1)·${norms}` : `2·L·${norms}`],
      ["head", s.head === "lm" ? lm : `D·C${b ? " + C" : ""}`],
    ],
    compute: [
      ["attention, maps", "L·8·B·T·D·D"],
      ["attention, pairs", "L·4·B·T·T·D"],
      ["feed-forward", "L·4·B·T·D·F"],
      ["head", s.head === "lm" ? "2·B·T·D·V" : "2·B·D·C"],
    ],
    training: [
      ["parameters", "4·N"],
      ["gradients", "4·N"],
      ["Adam’s moments", "8·N"],
      ["activations, attention", `L·(20·B·T·D + ${weights})`],
      ["activations, feed-forward", `L·(12·B·T·D + 16·B·T + ${inner}·B·T·F)`],
      [
        "activations, head",
        `${last}${s.head === "lm" ? "4·B·T·D + 4·B·T·V + 16·B·T + 4" : "9·B·T + 4·B·D + 4·B·C + 16·B + 4"}`,
      ],
    ],
    generating: [
      ["parameters", "4·N"],
      ["key-value cache", s.head === "lm" && s.causal ? "L·8·B·T·D" : "0"],
    ],
  };
}

const total = (rows) => Object.values(rows).reduce((a, b) => a + b, 0n);

const rowsOf = (s) => Math.max(s.max_len, s.seq_len); // of a table of positions

// The letters of a formula that no slider has, with their numbers.
export function lettersIn(formula, s, n) {
  const meanings = {
    M: [rowsOf(s), "rows of the position table"],
    N: [n, "parameters"],
    C: [s.n_classes, "classes"],
  };
  return Object.entries(meanings)
    .filter(([letter]) => formula.includes(letter))
    .map(([letter, [x, words]]) => `${letter} = ${grouped(x)} ${words}`)
    .join(", ");
}

// What in a configuration costs no parameters: a learned table of positions has a row for each.
export const costsNone = (s) =>
  s.learned
    ? `T above ${grouped(s.max_len)} adds rows to M; batch and heads cost no parameters.`
    : "No T, B or H: length, batch and heads cost no parameters.";

// The length of every bar, by group and row.
export function barsOf(s) {
  const letters = {
    V: s.vocab_size,
    D: s.d_model,
    L: s.n_layers,
    H: s.n_heads,
    F: s.d_ff,
    T: s.seq_len,
    B: s.batch_size,
    C: s.n_classes,
    M: rowsOf(s),
  };
  const bars = {};
  for (const [group, rows] of Object.entries(termsOf(s))) {
    bars[group] = Object.fromEntries(rows.map(([name, formula]) => [name, evaluate(formula, letters)]));
    letters.N ??= total(bars[group]);
  }
  return bars;
}

// What each use holds in memory, in bytes: N parameters, their gradients, and the two moments of Adam; A
// activations and C cache in float32, half of them in bfloat16. With bfloat16 a copy of the weights in
// float32 is trained (arXiv:1910.02054, section 3.1): 2 + 2 + 4 + 8 bytes.
const USES = [
  ["train, float32", "16·N + A", (n, a) => 16n * n + a],
  ["train, bfloat16 and a float32 copy", "16·N + A/2", (n, a) => 16n * n + half(a)],
  ["generate, float32", "4·N + C", (n, _, c) => 4n * n + c],
  ["generate, bfloat16", "2·N + C/2", (n, _, c) => 2n * n + half(c)],
  ["generate, 4 bits a weight", "N/2 + C/2", (n, _, c) => half(n) + half(c)],
];
const half = (n) => (n + 1n) / 2n;
export function usesOf(bars) {
  const n = total(bars.parameters);
  const a = total(bars.training) - 16n * n;
  const c = bars.generating["key-value cache"];
  return USES.map(([name, formula, bytes]) => ({ name, formula, bytes: bytes(n, a, c) }));
}

// The smallest card that holds so many bytes, or how many of the largest.
export function cardFor(bytes, cards) {
  const [name] = cards.find(([, gigabytes]) => bytes <= BigInt(gigabytes) * 10n ** 9n) ?? [];
  const [largest, most] = cards.at(-1);
  return name ?? `${grouped(bytes / (BigInt(most) * 10n ** 9n) + 1n)} × ${largest}`;
}

// Rectangles [x, y, width, height] in a unit square, with areas in proportion: the largest takes a slice of
// the longer side, the others share what is left. `wide` is the true ratio of width to height.
export function treemap(values, wide) {
  const order = values
    .map((_, i) => i)
    .filter((i) => values[i] > 0)
    .sort((i, j) => values[j] - values[i]);
  const out = values.map(() => null);
  let [x, y, w, hh] = [0, 0, 1, 1];
  let left = values.reduce((sum, v) => sum + v, 0);
  for (const i of order) {
    const part = values[i] / left;
    if (w * wide >= hh) {
      out[i] = [x, y, w * part, hh];
      x += w * part;
      w *= 1 - part;
    } else {
      out[i] = [x, y, w, hh * part];
      y += hh * part;
      hh *= 1 - part;
    }
    left -= values[i];
  }
  return out;
}

// Whether texts, broken at their spaces, fit a box of so many pixels; a letter is a little more than half its
// size wide.
export function fitsIn(texts, wide, tall, size) {
  let lines = 0;
  for (const text of texts) {
    let left = 0;
    for (const word of text.split(/ |(?<=-)/)) {
      const long = 0.58 * size * word.length;
      if (long > wide) return false;
      if (long > left) {
        lines++;
        left = wide;
      }
      left -= long + 0.3 * size;
    }
  }
  return 1.25 * size * lines <= tall;
}

// The amount that fills the frame: a power of RUNG, so that the picture grows in between.
export function frameOf(now, others) {
  const near = Math.min(...others.filter((n) => n > now && n <= FAR * now), Infinity);
  return RUNG ** Math.ceil(Math.log(Math.max(1, now, near < Infinity ? near : 0) * 1.02) / Math.log(RUNG));
}

// Three digits and a prefix, and a space for the unit.
export function inShort(n) {
  const prefixes = ["", "k", "M", "G", "T", "P", "E", "Z"];
  const step = Math.min(Math.floor((String(n).length - 1) / 3), 7);
  const x = Number(n) / 1000 ** step;
  return step ? `${x.toFixed(x < 10 ? 2 : x < 100 ? 1 : 0)} ${prefixes[step]}` : `${n} `;
}
// 1.63 GB, 14.7 G operations.
const withUnit = (n, unit) => (unit === "B" ? `${inShort(n)}B` : `${inShort(n).trim()} ${unit}`);
const share = (part, whole) => percent(Number(part) / Number(whole));
function ratio(now, then) {
  if (now === then) return "the same";
  const factor = Number(now) / Number(then);
  return then
    ? `× ${grouped(factor < 0.1 ? +factor.toPrecision(2) : factor.toFixed(factor < 100 ? 2 : 0))}`
    : "new";
}
const inWords = (value) =>
  typeof value === "boolean" ? (value ? "on" : "off") : typeof value === "string" ? value : grouped(value);
const changes = (before, after) =>
  SETTINGS.filter((key) => before[key] !== after[key])
    .map((key) => `${NAMES[key]} ${inWords(before[key])} → ${inWords(after[key])}`)
    .join(", ");

// The pinned state by the one setting in which it differs, if it is one.
function pinnedName(get) {
  const [state, pinned] = [settingsOf(get), get("pinned")];
  const [key, ...more] = SETTINGS.filter((name) => pinned[name] !== state[name]);
  return key && !more.length ? `${NAMES[key]} ${inWords(pinned[key])}` : "the earlier state";
}

export function describe(get) {
  const state = settingsOf(get);
  const pinned = get("pinned");
  const now = barsOf(state);
  const then = barsOf(pinned);
  const learned = now.parameters;
  const sum = (bars, group) => total(bars[group]);
  const cache = now.generating["key-value cache"];
  const pairs = now.compute["attention, pairs"];
  const most = Object.keys(learned).reduce((best, each) => (learned[each] > learned[best] ? each : best));
  const changed = changes(pinned, state);
  const against = (group) => ratio(sum(now, group), sum(then, group));
  const size = `${grouped(sum(now, "parameters"))} parameters, the largest part ${most} (${share(learned[most], sum(now, "parameters"))}).`;
  let text =
    `One forward pass of ${state.batch_size} × ${grouped(state.seq_len)} tokens: ${withUnit(sum(now, "compute"), "operations")}, ` +
    `${share(pairs, sum(now, "compute"))} of them for pairs of tokens. ` +
    `Training holds ${withUnit(sum(now, "training"), "B")}, generation ${withUnit(sum(now, "generating"), "B")}, ${withUnit(cache, "B")} of it cache. `;
  const uses = usesOf(now);
  const [name, formula] = termsOf(state)[GROUPS[get("view")].key][get("part")] ?? [];
  text += `Training in float32 fits on ${cardFor(uses[0].bytes, get("cards"))}, generation in bfloat16 on ${cardFor(uses[3].bytes, get("cards"))}.`;
  const { key, title, unit } = GROUPS[get("view")];
  const [part, amount] = Object.entries(now[key]).reduce((best, one) => (one[1] > best[1] ? one : best));
  const card = get("view")
    ? `${withUnit(sum(now, key), unit)} ${title}, ${share(amount, sum(now, key))} of it ${part}. `
    : "";
  const also = name && lettersIn(formula, state, sum(now, "parameters"));
  if (name)
    text += ` Chosen: ${name}, ${formula} = ${grouped(now[GROUPS[get("view")].key][name])}${also && `, with ${also}`}.`;
  if (!changed)
    return `${card || `${size} `}Change something, and it is compared.\n${card && `${size} `}${text}`;
  const kinds = Object.entries({
    parameters: "parameters",
    compute: "compute",
    training: "training memory",
    generating: "generation memory",
  });
  const by = ([group]) => Math.abs(Math.log(Number(sum(now, group)) / Number(sum(then, group))));
  const said = kinds
    .sort((one, other) => by(other) - by(one))
    .map(([group, kind]) => `${kind} ${against(group)}`);
  const within = `Pairs of tokens ${ratio(pairs, then.compute["attention, pairs"])}, cache ${ratio(cache, then.generating["key-value cache"])}.`;
  return `${card}Against ${pinnedName(get)}: ${said.join(", ")}.\nChanged: ${changed}. ${within} ${size} ${text}`;
}

const GROUPS = [
  { key: "parameters", title: "learned", unit: "parameters", say: costsNone },
  {
    key: "compute",
    title: "computed",
    unit: "operations",
    say: () => "One forward pass. T·T: twice the length, four times the pairs.",
  },
  {
    key: "training",
    title: "kept in training",
    unit: "B",
    say: () =>
      "Activations wait for the backward pass; plain attention keeps a weight for each head and pair: H·T·T.",
  },
  {
    key: "generating",
    title: "kept in generation",
    unit: "B",
    say: () => "The cache holds keys and values of every layer and token, with the context full.",
  },
];
const FRAME = 2.15; // width to height

// Four totals, one of which the picture shows.
function tabs(ui) {
  const all = GROUPS.map(({ title, unit }) => {
    const sum = h("b");
    const factor = h("small");
    return {
      sum,
      factor,
      box: h("button.tx-tab", h("span", `${unit === "B" ? "memory" : unit} ${title}`), " ", sum, " ", factor),
    };
  });
  const choose = (i) => {
    const parts = Object.values(barsOf(settingsOf(ui.get))[GROUPS[i].key]);
    ui.save({ part: parts.reduce((best, n, j) => (n > parts[best] ? j : best), 0), view: i });
  };
  const buttons = all.map((one) => one.box);
  const box = h("div.tx-tabs", { role: "radiogroup", "aria-label": "What the picture shows" }, buttons);
  const show = radioGroup(box, buttons, choose);
  const paint = (now, then) => {
    const long = pinnedName(ui.get);
    const name = long.length > 12 ? "earlier" : long;
    const narrow = ui.width < 480; // one line in any case
    const changed = changes(ui.get("pinned"), settingsOf(ui.get));
    show(ui.get("view"));
    all.forEach(({ sum, factor }, i) => {
      const [whole, before] = [now, then].map((bars) => total(bars[GROUPS[i].key]));
      sum.textContent = i ? `${inShort(whole)}${GROUPS[i].unit === "B" ? "B" : ""}` : grouped(whole);
      factor.textContent = !changed
        ? "\u00a0"
        : whole === before
          ? `= ${narrow ? "as earlier" : `the same as ${name}`}`
          : `${ratio(whole, before)} ${narrow ? "vs earlier" : `against ${name}`}`;
      factor.classList.toggle("tx-changed", whole !== before);
    });
  };
  return { box, paint };
}

// A part has one colour in all pictures.
const HUES = [
  "embeddings",
  "attention",
  "feed-forward",
  "norms",
  "head",
  "parameters",
  "pairs",
  "gradients",
  "Adam’s moments",
  "key-value cache",
];
const hueOf = (name) =>
  HUES.indexOf(
    HUES.includes(name)
      ? name
      : name === "attention, pairs"
        ? "pairs"
        : name.replace("activations, ", "").replace(", maps", ""),
  );

// One picture of what is counted: its area is the amount. Ghosts are the pinned state and, for parameters,
// known models.
function picture(ui) {
  const tiles = range(6).map((i) =>
    h(
      "button.tx-tile",
      { onclick: () => point(i), onfocus: () => point(i), onpointerenter: () => point(i) },
      h("b"),
      " ",
      h("small"),
    ),
  );
  const point = (i) => {
    if (i !== ui.get("part")) ui.save("part", i);
  };
  const map = h("div.tx-map", { role: "group", "aria-label": "Parts, by their share of the area" }, tiles);
  const stop = roving(map, tiles);
  const ghosts = h("div", { "aria-hidden": "true" });
  // The same parts by name: some tiles are too small for words, and for a finger.
  const names = tiles.map((_, i) =>
    h("button.tx-name", { onclick: () => point(i) }, h("i"), h("span"), " ", h("small")),
  );
  const legend = h("div.tx-names", { role: "group", "aria-label": "Parts by name" }, names);
  const among = roving(legend, names);
  const scale = h("p.tx-note");
  const formula = h("p.tx-formula", { "aria-hidden": "true" });
  const box = h("div.tx-frame", ghosts, map);
  const side = (n, frame) => `${(100 * Math.sqrt(n / frame)).toFixed(2)}%`;
  const paint = (state, now, then) => {
    const { key, unit, say } = GROUPS[ui.get("view")];
    const bars = Object.entries(now[key]);
    const whole = Number(total(now[key]));
    const pinned = Number(total(then[key]));
    const known = [["pinned", pinned], ...(key === "parameters" ? ui.get("ghosts") : [])].filter(
      ([, n]) => n !== whole,
    );
    const frame = frameOf(
      whole,
      known.map(([, n]) => n),
    );
    const rects = treemap(
      bars.map(([, n]) => Number(n)),
      FRAME,
    );
    map.style.width = map.style.height = side(whole, frame);
    const { clientWidth: wide, clientHeight: tall } = box;
    const reach = Math.sqrt(whole / frame);
    const letters = parseFloat(getComputedStyle(box).fontSize);
    const part = Math.min(ui.get("part"), bars.length - 1);
    stop(rects[part] ? part : rects.findIndex(Boolean)); // what is nothing has no tile
    among(part);
    tiles.forEach((tile, i) => {
      const rect = rects[i];
      const label = names[i];
      tile.hidden = !rect;
      label.hidden = !bars[i];
      if (!bars[i]) return;
      const [name, value] = bars[i];
      const portion = share(value, total(now[key]));
      label.firstChild.dataset.hue = hueOf(name);
      label.querySelector("span").textContent = name;
      label.lastChild.textContent = !value ? "none" : portion === "0%" ? "< 1%" : portion;
      label.setAttribute("aria-pressed", i === ui.get("part"));
      if (!rect) return;
      ["left", "top", "width", "height"].forEach((edge, at) => {
        tile.style[edge] = `${(100 * rect[at]).toFixed(2)}%`;
      });
      tile.dataset.hue = hueOf(name);
      tile.firstChild.textContent = name;
      tile.lastChild.textContent = `${unit === "B" ? withUnit(value, unit) : inShort(value).trim()} · ${portion}`;
      tile.ariaLabel = `${name} ${tile.lastChild.textContent}, exactly ${grouped(value)}`;
      tile.setAttribute("aria-pressed", i === ui.get("part"));
      const [width, height] = [rect[2] * reach * wide, rect[3] * reach * tall];
      tile.lastChild.hidden = !fitsIn([name, tile.lastChild.textContent], width - 8, height - 7, letters);
      tile.classList.toggle("tx-tiny", !fitsIn([name], (width - 13) / 1.2, height - 4, letters)); // bold
    });
    // The pinned state, and of the models the nearest that is smaller and the nearest that is larger.
    const sorted = known.filter(([model]) => model !== "pinned").sort(([, a], [, b]) => a - b);
    const smaller = sorted.filter(([, n]) => n < whole).slice(-1);
    const near = [
      ...known.filter(([model]) => model === "pinned"),
      ...smaller,
      ...sorted.filter(([, n]) => n > whole).slice(0, 1),
    ];
    const drawn = near.filter(([, n]) => n <= frame && n >= LEAST * frame).sort(([, a], [, b]) => a - b);
    // A name stands in the corner of its frame where nothing else is: not over the tiles, and not over a
    // smaller frame.
    const amount = (n) => withUnit(Math.round(n), unit === "B" ? unit : "").trim();
    const titled = (model) => (model === "pinned" ? pinnedName(ui.get) : model);
    const called = ([model, n]) => `${titled(model)} (${amount(n)})`;
    const room = (n, i) =>
      Math.sqrt(n / frame) - Math.max(reach, Math.sqrt((drawn[i - 1]?.[1] ?? 0) / frame));
    const above = drawn.map(([, n], i) => room(n, i) * tall >= 1.5 * letters);
    // Or else at the foot of its frame, on the tiles where they are larger, if a smaller frame leaves room.
    const foot = (n, i) => Math.sqrt(n / frame) - Math.sqrt((drawn[i - 1]?.[1] ?? 0) / frame);
    const named = drawn.map(
      (one, i) => above[i] || foot(one[1], i) * wide >= 0.58 * letters * called(one).length + 12,
    );
    ghosts.replaceChildren(
      ...drawn.map((one, i) =>
        h(
          "div",
          {
            class: `tx-ghost${one[0] === "pinned" ? " tx-pinned" : ""}`,
            style: `width:${side(one[1], frame)};height:${side(one[1], frame)}`,
          },
          named[i]
            ? h(
                "span",
                { class: above[i] ? (one[1] < 0.12 * frame ? "tx-outside" : null) : "tx-foot" },
                called(one),
              )
            : "",
        ),
      ),
    );
    const next = near.filter(([, n]) => n > frame).sort(([, a], [, b]) => a - b)[0];
    const others = drawn.filter((_, i) => !named[i]).map(called);
    scale.textContent = `Areas are amounts; the frame is ${withUnit(frame, unit)}.${others.length ? ` Outline${others.length > 1 ? "s" : ""}: ${others.join(", ")}.` : ""}${next ? ` Next larger: ${called(next)}, ${ratio(next[1], whole)}.` : ""} ${say(state)}`;
    const [name, terms] = termsOf(state)[key][ui.get("part")] ?? [];
    const also = name && lettersIn(terms, state, total(now.parameters));
    formula.replaceChildren(
      ...(name
        ? [h("b", name), ` ${terms} = ${grouped(now[key][name])}`, also && h("small", `, with ${also}`)]
        : []),
    );
  };
  return { box: [box, legend, formula, scale], paint };
}

// Which card holds it: memory by use and precision.
function fits(ui) {
  const rows = USES.map(([name, formula]) => ({
    bytes: h("td"),
    card: h("td"),
    row: bodyRow([name, " ", h("small", formula)]),
  }));
  const short = h("b");
  rows.forEach(({ row, bytes, card }) => row.append(bytes, card));
  const paint = (now) =>
    usesOf(now).reduce((above, { bytes }, i) => {
      // a card is named once for all rows below one another
      const { card } = rows[i];
      const name = cardFor(bytes, ui.get("cards"));
      rows[i].bytes.textContent = withUnit(bytes, "B");
      Object.assign(card, { textContent: name, rowSpan: 1, hidden: above?.textContent === name });
      if (card.hidden) above.rowSpan++;
      if (!i) short.textContent = `Training: ${name}`;
      return card.hidden ? above : card;
    }, null);
  return {
    paint,
    box: h(
      "details.tx-fits",
      h("summary", "Which GPU does this fit? ", short),
      h(
        "table",
        headRow(["use", "memory", "smallest card"]),
        h(
          "tbody",
          rows.map(({ row }) => row),
        ),
      ),
      h("p.tx-note", "N parameters, A activations, C cache. Not counted: program, buffers."),
    ),
  };
}

const twoDigits = (x) => {
  const step = 10 ** Math.max(0, Math.floor(Math.log10(x)) - 1);
  return Math.round(x / step) * step;
};

function sliders(ui) {
  const log = (key, label, min, max, more = {}) =>
    ui.slider(key, { label, min, max, to: halfSteps, from: halfStepOf, format: grouped, ...more });
  const all = () => divisors(ui.get("d_model"));
  const atHeads = () => all().indexOf(settingsOf(ui.get).n_heads);
  const made = {
    T: log("seq_len", "length T", 8, 30),
    B: log("batch_size", "batch B", 0, 10, { to: (x) => 2 ** x, from: Math.log2 }),
    H: ui.slider("n_heads", {
      label: "heads H",
      min: 0,
      max: () => all().length - 1,
      to: (x) => all()[x],
      from: atHeads,
      format: () => String(settingsOf(ui.get).n_heads),
    }),
    V: log("vocab_size", "vocabulary V", 4, 18, {
      step: 0.125,
      to: (x) => twoDigits(2 ** x),
      from: Math.log2,
    }),
    D: log("d_model", "width D", 8, 28),
    L: log("n_layers", "layers L", 0, 12, {
      to: (x) => (x ? halfSteps(x + 1) : 1),
      from: (v) => (v > 1 ? halfStepOf(v) - 1 : 0),
    }),
    F: log("d_ff", "feed-forward F", 8, 32),
  };
  for (const [letter, slider] of Object.entries(made)) slider.classList.add(`tx-size-${letter}`);
  const { B, H, F, ...first } = made;
  return [first, { B, H, F }].map((some) => h("div.tx-sizes", Object.values(some)));
}

// Known configurations; length and batch stay as they are.
function presets(ui) {
  const known = ui.get("presets");
  const list = h(
    "select",
    {
      onchange: () => {
        const { name, ...values } = known[list.value] ?? {};
        if (name) ui.save(values);
      },
    },
    h("option", { value: "" }, "sizes of your own"),
    known.map(({ name }, i) => h("option", { value: i }, name)),
  );
  const pin = pushButton("Pin", () => ui.save("pinned", settingsOf(ui.get)));
  const again = pushButton("Back to that state", () => ui.save(ui.get("pinned")));
  ui.paint(() => {
    const now = settingsOf(ui.get);
    const at = known.findIndex((one) =>
      Object.entries(one).every(([name, value]) => name === "name" || now[name] === value),
    );
    list.value = at < 0 ? "" : String(at);
    again.disabled = !changes(ui.get("pinned"), now);
  });
  return h("div.tx-row", labelled(list, "model"), list, pin, again);
}

function build(ui) {
  const totals = tabs(ui);
  const map = picture(ui);
  const cards = fits(ui);
  const changed = h("p.tx-against");
  const [first, rest] = sliders(ui);
  ui.paint(() => {
    const state = settingsOf(ui.get);
    const pinned = ui.get("pinned");
    const now = barsOf(state);
    const then = barsOf(pinned);
    const words = changes(pinned, state);
    const n = words.split(" → ").length - 1;
    changed.textContent =
      words &&
      `Compared with the earlier state: ${n > 4 ? `${n} settings changed, listed in “In words”` : words}`;
    totals.paint(now, then);
    map.paint(state, now, then);
    cards.paint(now);
  });
  const invite = h(
    "p.tx-invite",
    "Which part costs most? Move a slider or choose a model: each card compares with how this opened, or with what you pin.",
  );
  ui.show(
    invite,
    totals.box,
    h(
      "div.tx-groups",
      h("div", map.box),
      h(
        "div",
        presets(ui),
        first,
        changed,
        h(
          "details",
          h("summary", "More settings: batch, heads, feed-forward, output layer, positions"),
          rest,
          h(
            "div.tx-row",
            ui.choice("head", {
              label: "head",
              options: Object.entries({ lm: "next word", classifier: "classifier" }),
            }),
            ui.toggle("tie_embeddings", { label: "tied" }),
            ui.toggle("learned", { label: "learned positions" }),
            ui.toggle("plain", { label: "keep attention weights" }),
          ),
        ),
        cards.box,
      ),
    ),
  );
}

const keep = () => ({
  view: [0, 3],
  part: [0, 5],
  seq_len: [1, 2 ** 17],
  batch_size: [1, 2 ** 12],
  n_heads: [1, 256],
  vocab_size: [1, 1e6],
  d_model: [1, 2 ** 15],
  n_layers: [1, 128],
  d_ff: [1, 2 ** 17],
  head: ["lm", "classifier"],
  max_len: [1, 2 ** 17],
  n_classes: [1, 1000],
  tie_embeddings: [],
  learned: [],
  plain: [],
  causal: [],
  bias: [],
  norm_first: [],
  gelu: [],
});

export default explorer("count", { build, describe, keep });
