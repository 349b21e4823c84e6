// The explorer of one query. `get` maps the name of a trait to its value, buffers as float32.

const STEPS = ["q and keys", "q·k", "÷ √d", "mask", "softmax", "× V"];
const SPELLED = 6;
const N_QUERIES = 64;
const N_KEYS = 8;
const WIDEST = 512;

// What attention does with the chosen query, from its products to its context.
export function chainOf(get) {
  const n = get("key_tokens").length;
  const at = get("query");
  const open = get("allowed").slice(at * n, (at + 1) * n);
  const width = get("k").length / n;
  const wide = get("v").length / n;
  const own = get("own_q") ?? [];
  const q = own.length === width ? Float64Array.from(own) : get("q").subarray(at * width, (at + 1) * width);
  const rows = (flat, size) => range(n).map((i) => flat.subarray(i * size, (i + 1) * size));
  const k = rows(get("k"), width);
  const v = rows(get("v"), wide);
  const products = k.map((row) => row.reduce((total, x, c) => total + x * q[c], 0));
  const scores = products.map((x) => (get("scaled") ? x / Math.sqrt(width) : x));
  const top = scores.reduce((most, x, i) => (open[i] ? Math.max(most, x) : most), -Infinity);
  const powers = scores.map((x, i) => (open[i] ? Math.exp(x - top) : 0));
  const sum = powers.reduce((a, b) => a + b, 0);
  const weights = powers.map((x) => x / (sum || 1));
  const context = range(wide).map((c) => v.reduce((total, row, i) => total + weights[i] * row[c], 0));
  return { q, k, v, open, products, scores, top, powers, sum, weights, context };
}

const factor = (x) => (number(x).startsWith("−") ? `(${number(x)})` : number(x));
const vector = (row) =>
  row.length > SPELLED ? `(${row.length} numbers)` : `(${Array.from(row, (x) => number(x)).join(", ")})`;

function softmaxInWords(c, key, name) {
  if (!c.open.some(Boolean)) return "Nothing may be seen: every weight is 0.";
  if (!c.open[key]) return `Key ${name}: exp(−∞) = 0, so its weight is 0.`;
  return (
    `Key ${name}: exp(${number(c.scores[key])} − ${factor(c.top)}) = ${number(c.powers[key], 3)}, ` +
    `divided by the sum ${number(c.sum, 3)} over keys: ${number(c.weights[key], 3)}.`
  );
}

// The mask that can be put on and off: among the same tokens the causal one, else the last key is padding.
// Null: another.
export function maskOf(get) {
  const [asks, keys] = ["query_tokens", "key_tokens"].map(get);
  const same = asks.join("\0") === keys.join("\0");
  const now = get("allowed");
  const masked = asks.flatMap((_, i) => keys.map((__, j) => ((same ? j <= i : j < keys.length - 1) ? 1 : 0)));
  const is = (cells) => cells.every((cell, at) => !cell === !now[at]);
  const open = masked.map(() => 1);
  const on = is(masked);
  return keys.length > 1 && (on || is(open))
    ? {
        on,
        masked,
        open,
        label: same ? "causal mask" : `mask ${named(keys, keys.length - 1)}, as if it were padding`,
      }
    : null;
}

// One step for the chosen key, in numbers.
export function spell(get, c = chainOf(get)) {
  const key = get("key");
  const name = named(get("key_tokens"), key);
  const score = number(c.scores[key]);
  const shut = c.open.filter((x) => !x).length;
  const terms =
    c.q.length > SPELLED
      ? `the sum of ${c.q.length} products`
      : Array.from(c.q, (x, i) => `${factor(x)}·${factor(c.k[key][i])}`).join(" + ");
  return [
    () =>
      `Query ${named(get("query_tokens"), get("query"))} asks with ${get("own_q")?.length ? "your " : ""}q = ${vector(c.q)}; key ${name} is ${vector(c.k[key])}, its value ${vector(c.v[key])}.`,
    () => `Key ${name}: ${terms} = ${number(c.products[key])}.`,
    () =>
      get("scaled")
        ? `Key ${name}: ${number(c.products[key])} / √${c.q.length} = ${score}.`
        : `Key ${name}: not divided, the score stays ${score}.`,
    () =>
      c.open[key]
        ? `Key ${name} may be seen: its score stays ${score}. ${shut ? `Masked: ${shut} of ${counted(c.open.length, "key")}.` : "No key is masked here."}`
        : `Key ${name} is blocked: its score ${score} becomes −∞.`,
    () => softmaxInWords(c, key, name),
    () =>
      `Key ${name} gives ${c.open[key] ? number(c.weights[key], 3) : "0"} of its value ${vector(c.v[key])}. All keys together: context ${vector(c.context)}.`,
  ][get("step")]();
}

// Random queries and keys of mean 0 and variance 1 (Box and Muller, 1958); a wider one is a longer piece of
// the same.
let drawn = null;
export function normals() {
  drawn ??= Float64Array.from(
    { length: (N_QUERIES + N_KEYS) * WIDEST },
    (_, i) => Math.sqrt(-2 * Math.log(uniform(2 * i + 1))) * Math.cos(2 * Math.PI * uniform(2 * i + 2)),
  );
  return drawn;
}

// Attention weights of all random queries over the random keys, a row each.
export function randomWeights(width, scaled) {
  const all = normals();
  const keys = N_QUERIES * WIDEST;
  return range(N_QUERIES).map((i) =>
    softmax(
      Float64Array.from({ length: N_KEYS }, (__, j) => {
        let sum = 0;
        for (let c = 0; c < width; c++) sum += all[i * WIDEST + c] * all[keys + j * WIDEST + c];
        return scaled ? sum / Math.sqrt(width) : sum;
      }),
    ),
  );
}

// Mean over rows of the largest weight, and of the entropy in bits.
export function sharpness(rows) {
  const mean = (f) => rows.reduce((sum, row) => sum + f(row), 0) / rows.length;
  return [mean((row) => Math.max(...row)), mean(entropy)];
}

export const keep = (get) => ({
  view: ["steps", "why"],
  query: [0, get("query_tokens").length - 1],
  key: [0, get("key_tokens").length - 1],
  step: [0, STEPS.length - 1],
  scaled: [0, 1],
  allowed: [0, 1],
  head_dim: [1, WIDEST],
  own_q: [-99, 99, "real"],
});

export function describe(get) {
  if (get("view") === "why") {
    const [raw, divided] = [false, true].map((scaled) => sharpness(randomWeights(get("head_dim"), scaled)));
    return (
      `Random q and k, d = ${get("head_dim")}: the largest of ${N_KEYS} weights is on average ${number(raw[0])} undivided ` +
      `and ${number(divided[0])} divided by √d; entropy ${number(raw[1])} and ${number(divided[1])} bits.`
    );
  }
  const c = chainOf(get);
  const step = get("step");
  const tokens = get("key_tokens");
  let text = `Step ${step + 1} of ${STEPS.length}, ${STEPS[step]}. ${spell(get, c)}`;
  if (step >= 4 && c.sum) {
    const most = Math.max(...c.weights);
    const first = c.weights.findIndex((w) => w > most - 1e-9);
    text += `\nLargest weight: ${number(most)} on key ${named(tokens, first)}; entropy ${number(entropy(c.weights))} bits.`;
  }
  return text;
}

// A vector as bars, up for more than 0 and down for less; a short one also in numbers, each so many pixels
// wide.
const CELLS = { usual: [40, 37, 34], large: [46, 42, 38, 34] };
function bars(row, scale, room, figures = true) {
  const short = row.length <= SPELLED;
  const cell = short ? room : Math.max(2, Math.min(8, 150 / row.length));
  const high = 13;
  const d = Array.from(row, (x, i) => {
    const y = high - (high - 1) * clamp(x / scale, -1, 1);
    return `M${((i + (short ? 0.25 : 0)) * cell).toFixed(1)} ${high}V${y.toFixed(1)}h${(short ? cell / 2 : Math.max(1, cell - 1)).toFixed(1)}V${high}Z`;
  });
  const width = row.length * cell;
  const own = short ? { "aria-hidden": "true" } : { role: "img", "aria-label": `${row.length} numbers` };
  return h(
    "span.tx-vec",
    h(
      "svg",
      { width, height: 2 * high, ...own },
      h("line", { x1: 0, x2: width, y1: high, y2: high }),
      h("path", { d: d.join("") }),
    ),
    short && figures
      ? h(
          "span.tx-vec-numbers",
          Array.from(row, (x) => h("span", { style: `width:${cell}px` }, number(x))),
        )
      : null,
  );
}

// The columns of the table: from which step each is filled, and in which steps it is needed to follow.
const COLUMNS = [
  { name: "key", from: 0, need: [0, 1], cell: (c, i, most, room, full) => bars(c.k[i], most, room, full) },
  { name: "q·k", from: 1, need: [1, 2], cell: (c, i) => number(c.products[i]) },
  { name: "÷ √d", from: 2, need: [2, 3], cell: (c, i) => number(c.scores[i]) },
  {
    name: "mask",
    from: 3,
    need: [3, 4],
    cell: (c, i) => (c.open[i] ? number(c.scores[i]) : h("span.tx-no", "−∞")),
  },
  { name: "softmax", from: 4, need: [4, 5], cell: (c, i) => weightCell(c, i) },
  { name: "value", from: 0, need: [0, 5], cell: (c, i, most, room, full) => bars(c.v[i], most, room, full) },
  {
    name: "weight × value",
    from: 5,
    need: [5],
    cell: (c, i, most, room, full) =>
      bars(
        c.v[i].map((x) => c.weights[i] * x),
        most,
        room,
        full,
      ),
  },
];
const NARROW = 700; // as in the style
const ACTIVE = [[0, 5], [1], [2], [3], [4], [6]];

function weightCell(c, i) {
  const bar = c.open[i] ? h("i", { style: `width:${100 * c.weights[i]}%` }) : null;
  return [
    h("span", { class: c.open[i] ? "tx-share" : "tx-share tx-no", "aria-hidden": "true" }, bar),
    c.open[i] ? c.weights[i].toFixed(3) : "0",
  ];
}

// Keys down, steps across; below it what comes out.
function table(ui) {
  const tokens = ui.get("key_tokens");
  const size = (name) => Math.max(1e-9, ...ui.get(name).map(Math.abs));
  const most = Math.max(size("k"), size("q"));
  const mostValue = size("v");
  const own = ownNumbers(ui, most);
  const unit = sharing(tokens);
  const keys = tokens.map((token, i) =>
    h(
      "button.tx-token",
      { "aria-label": `key ${named(tokens, i)}`, title: token, onclick: () => ui.save("key", i) },
      token,
    ),
  );
  const heads = COLUMNS.map(({ name }) => h("th", { scope: "col" }, name));
  const asks = COLUMNS.map(() => h("td"));
  const ends = COLUMNS.map(() => h("td"));
  const cells = tokens.map(() => COLUMNS.map(() => h("td")));
  const asker = h("th", { scope: "row" });
  const rows = tokens.map((_, i) =>
    h(
      "tr",
      {
        onclick: (event) => {
          if (!event.target.closest("button")) ui.save("key", i);
        },
      },
      h("th", { scope: "row" }, h("small", { "aria-hidden": "true" }, i), keys[i]),
      cells[i],
    ),
  );
  const box = h(
    "table.tx-chain",
    h("thead", h("tr", h("td"), heads), h("tr.tx-asks", asker, asks)),
    h("tbody", rows),
    h("tfoot", bodyRow("together", ends)),
  );
  const stop = roving(box, keys, { go: (i) => ui.save("key", i) });
  let known = "";
  let used = 0;
  let land = () => {};
  const fits = () => update.box.scrollWidth <= update.box.clientWidth;
  const write = (c, room) => {
    const step = ui.get("step");
    const key = ui.get("key");
    const fill = (cell, j, content, from = COLUMNS[j].from) => {
      const soon = step < from;
      const parts = [soon ? h("span.tx-soon", { "aria-hidden": "true" }, "·") : content()].flat();
      // what has the focus keeps it
      if (parts.length !== 1 || cell.firstChild !== parts[0]) cell.replaceChildren(...parts);
      cell.className = `${ACTIVE[step].includes(j) ? "tx-now" : ""} ${COLUMNS[j].need.includes(step) ? "" : "tx-far"}`;
    };
    heads.forEach((cell, j) =>
      fill(cell, j, () => (j === 2 && !ui.get("scaled") ? h("s", COLUMNS[j].name) : COLUMNS[j].name), 0),
    ); // as wide as before
    if (ui.get("scaled")) heads[2].removeAttribute("aria-label");
    else heads[2].setAttribute("aria-label", "not divided");
    cells.forEach((row, i) =>
      row.forEach((cell, j) =>
        fill(cell, j, () =>
          COLUMNS[j].cell(c, i, j ? mostValue : most, room, tokens.length <= 6 || i === key),
        ),
      ),
    );
    asks.forEach((cell, j) => fill(cell, j, () => (j === 0 ? own(c.q, room) : j === 4 ? unit(c, key) : "")));
    ends.forEach((cell, j) =>
      fill(cell, j, () =>
        j === 4 ? `sum ${number(c.sum ? 1 : 0, 3)}` : j === 6 ? bars(c.context, mostValue, room) : "",
      ),
    );
    asker.replaceChildren("q of ", h("b", ui.get("query_tokens")[ui.get("query")]));
  };
  const update = (c) => {
    const step = ui.get("step");
    const key = ui.get("key");
    land();
    // Where not all fits, the bars become narrower; on a phone, what this step does not need gives way.
    box.classList.remove("tx-tight");
    for (const room of ui.large ? CELLS.large : CELLS.usual) {
      used = room;
      write(c, room);
      if (fits()) break;
    }
    if (!fits() && ui.width < NARROW) box.classList.add("tx-tight");
    // And where that is not enough, what it is about comes into view.
    const about = heads[ACTIVE[step][0]];
    update.box.scrollLeft = about.offsetLeft + about.offsetWidth - update.box.clientWidth;
    const now = `${step}/${key}/${ui.get("query")}`;
    if (known && now !== known)
      land = fly(ui, c, key, {
        k: cells[key][0],
        score: cells[key][1],
        rows: cells,
        sum: ends[6],
        frame: update.box,
        total: (context) => bars(context, mostValue, used),
      });
    known = now;
    stop(key);
    keys.forEach((button, i) => {
      button.setAttribute("aria-pressed", i === key);
      rows[i].dataset.chosen = i === key;
    });
  };
  update.box = h("div.tx-scroll", box);
  return update;
}

// The numbers of the query: drag one, or press the arrow keys on it, and everything follows.
function ownNumbers(ui, most) {
  const box = h("span.tx-own");
  let grips = [];
  const put = (i, value) => {
    const q = Array.from(chainOf(ui.get).q);
    q[i] = clamp(Math.round(value * 4) / 4, -99, 99);
    ui.set("own_q", q);
  };
  const grip = (i) => {
    let from = 0;
    let start = 0;
    const element = h("span.tx-grip", {
      role: "slider",
      tabindex: 0,
      "aria-label": `number ${i} of q`,
      "aria-valuemin": -99,
      "aria-valuemax": 99,
      onpointerdown: (event) => {
        element.setPointerCapture(event.pointerId);
        [from, start] = [event.clientX - event.clientY, chainOf(ui.get).q[i]];
      },
      onpointermove: (event) => {
        if (event.buttons & 1) put(i, start + (event.clientX - event.clientY - from) / 24);
      },
      onpointerup: () => ui.done(),
      onkeydown: (event) => {
        const by = { ArrowUp: 0.25, ArrowRight: 0.25, ArrowDown: -0.25, ArrowLeft: -0.25 }[event.key];
        if (!by || event.ctrlKey || event.metaKey || event.altKey) return;
        event.preventDefault();
        put(i, chainOf(ui.get).q[i] + by);
        ui.done();
      },
    });
    return element;
  };
  return (q, room) => {
    if (q.length > SPELLED) return bars(q, most, room);
    if (grips.length !== q.length) grips = Array.from(q, (_, i) => grip(i));
    grips.forEach((element, i) => {
      const text = number(q[i]);
      element.style.width = `${room - 2}px`;
      if (element.textContent === text) return;
      element.textContent = text;
      element.setAttribute("aria-valuenow", q[i]);
      element.setAttribute("aria-valuetext", text);
    });
    if (!grips[0].isConnected) box.replaceChildren(h("span"), h("span.tx-vec-numbers", grips));
    box.firstChild.replaceWith(bars(q, Math.max(most, ...q.map(Math.abs)), room, false));
    return box;
  };
}

// One unit of weight, shared by the keys: a segment for each.
function sharing(tokens) {
  const parts = tokens.map(() => h("i"));
  const box = h("span.tx-unit", { "aria-hidden": "true" }, parts);
  return (c, key) => {
    parts.forEach((part, i) => {
      part.style.width = `${100 * c.weights[i]}%`;
      part.dataset.chosen = i === key;
    });
    return box;
  };
}

// What is multiplied flies to where it is added up, and counts when it lands: pairs of numbers, or weights of
// values.
function fly(ui, c, key, { k, score, rows, sum, frame, total }) {
  const chips = [];
  const land = () => chips.forEach((chip) => chip.remove()); // a redraw fills what was to come
  if (motionless() || ![1, 5].includes(ui.get("step"))) return land;
  const root = ui.root.getBoundingClientRect();
  const zoom = root.width / ui.root.offsetWidth;
  const inside = frame.getBoundingClientRect();
  const middle = (element) => {
    const box = element.getBoundingClientRect();
    return [
      (clamp(box.left + box.width / 2, inside.left, inside.right) - root.left) / zoom,
      (box.top + box.height / 2 - root.top) / zoom,
    ];
  };
  const send = (text, start, end, delay, landed) => {
    const chip = h("span.tx-fly", { "aria-hidden": "true" }, text);
    const at = ([x, y]) => `translate(${x}px, ${y}px) translate(-50%, -50%)`;
    ui.root.append(chip);
    chips.push(chip);
    chip
      .animate(
        [
          { transform: at(start), opacity: 0 },
          { transform: at(start), opacity: 1, offset: 0.2 },
          { transform: at(end), opacity: 1 },
        ],
        { duration: 700, delay, easing: "ease-in-out", fill: "both" },
      )
      .finished.then(
        () => {
          if (chip.isConnected) landed();
          chip.remove();
        },
        () => {},
      );
  };
  if (ui.get("step") === 5) {
    const given = c.weights.map((w, i) => [w, i]).filter(([w]) => w >= 0.0005);
    const so = new Float64Array(c.context.length);
    const apart = Math.min(450, 2400 / given.length);
    const last = sum.firstChild;
    sum.replaceChildren(total(so));
    given.forEach(([w, i], n) => {
      const product = rows[i][6].firstElementChild;
      product.style.visibility = "hidden";
      send(`${number(w, 3)} ·`, middle(rows[i][4]), middle(product), n * apart, () => {
        product.style.visibility = "";
        c.v[i].forEach((x, at) => {
          so[at] += w * x;
        });
        sum.replaceChildren(n < given.length - 1 ? total(so) : last);
      });
    });
    return land;
  }
  if (c.q.length > SPELLED) return land;
  const content = score.firstChild;
  const pairs = Array.from(c.q, (_, i) => middle(k.querySelectorAll(".tx-vec-numbers > span")[i] ?? k));
  let so = 0;
  pairs.forEach((from, i) =>
    send(`${factor(c.q[i])}·${factor(c.k[key][i])}`, from, middle(score), 200 * i, () => {
      so += c.q[i] * c.k[key][i];
      score.replaceChildren(i < pairs.length - 1 ? number(so) : content);
    }),
  );
  score.replaceChildren(number(0));
  return land;
}

const X = (width) => 36 + (Math.log2(width) / 9) * 370;
const Y = (share) => 30 + (1 - share) * 170;

// The mean largest weight against d, with and without the division.
function curves(ui) {
  const widths = range(10).map((i) => 2 ** i);
  const say = h("tbody");
  const line = (scaled) =>
    h("polyline", {
      class: scaled ? "tx-tame" : "tx-wild",
      fill: "none",
      points: widths.map((d) => `${X(d)},${Y(sharpness(randomWeights(d, scaled))[0])}`).join(" "),
    });
  const marker = h("line.tx-marker", { y1: Y(1), y2: Y(0) });
  const dots = [h("circle.tx-wild", { r: 5 }), h("circle.tx-tame", { r: 5 })];
  const chart = h(
    "svg.tx-curves",
    { viewBox: "0 0 420 246", role: "img" },
    lettering(4, 14, "mean largest weight", "start"),
    [0, 0.5, 1].map((share) => [
      h("line.tx-rule", { x1: X(1), x2: X(512), y1: Y(share), y2: Y(share) }),
      lettering(30, Y(share) + 4, share, "end"),
    ]),
    [1, 8, 64, 512].map((d) => lettering(X(d), Y(0) + 19, d, "middle")),
    lettering(221, 240, "d, the width of q and k", "middle"),
    line(false),
    line(true),
    marker,
    dots,
    lettering(X(10), Y(0.83), "undivided", "end", { class: "tx-wild" }),
    lettering(X(12), Y(0.22), "divided by √d", "middle", { class: "tx-tame" }),
  );
  const follow = (across) =>
    ui.set("head_dim", Math.round(2 ** (clamp((across * 420 - 36) / 370, 0, 1) * 9)));
  ui.drag(chart, follow);
  const update = () => {
    const d = ui.get("head_dim");
    const both = [false, true].map((scaled) => randomWeights(d, scaled));
    const sharp = both.map(sharpness);
    setAll(marker, { x1: X(d), x2: X(d) });
    dots.forEach((dot, i) => setAll(dot, { cx: X(d), cy: Y(sharp[i][0]) }));
    chart.ariaLabel = `Mean largest of ${N_KEYS} weights against d from 1 to ${WIDEST}: at ${d} it is ${number(sharp[0][0])} undivided and ${number(sharp[1][0])} divided.`;
    say.replaceChildren(
      ...["undivided", "divided by √d"].map((name, i) =>
        h(
          "tr",
          { class: i ? "tx-tame" : "tx-wild" },
          h("th", { scope: "row" }, name),
          h(
            "td",
            h(
              "span.tx-eight",
              { "aria-hidden": "true" },
              Array.from(both[i][0], (w) => h("i", { style: `height:${Math.max(1, 40 * w)}px` })),
            ),
          ),
          h("td", number(sharp[i][0])),
          h("td", number(sharp[i][1])),
        ),
      ),
    );
  };
  update.box = h(
    "div.tx-panels",
    chart,
    h(
      "div.tx-panel",
      ui.slider("head_dim", {
        label: "d",
        min: 0,
        max: 9,
        step: 0.25,
        to: (x) => Math.round(2 ** x),
        from: Math.log2,
      }),
      h(
        "div.tx-scroll",
        h(
          "table.tx-sharp",
          headRow([
            "",
            "one query, as an example",
            "largest weight, mean of 64",
            "entropy in bits, mean of 64",
          ]),
          say,
        ),
      ),
      h(
        "p.tx-note",
        "Bars: the 8 weights of the first of 64 random queries. Numbers: means over all 64, so not those of the bars. Entropy is 3 bits where all 8 keys get the same.",
      ),
    ),
  );
  return update;
}

// Puts the mask on or off, and shows a step, query and key that it changes.
function maskBox(ui) {
  const input = h("input", { type: "checkbox" });
  const label = labelled(input);
  const box = h("div.tx-control.tx-toggle", input, label);
  input.addEventListener("change", () => {
    const { masked, open } = maskOf(ui.get);
    const n = ui.get("key_tokens").length;
    const shut = (i) => range(n).filter((j) => !masked[i * n + j]);
    ui.set("allowed", input.checked ? masked : open);
    if (input.checked) {
      if (!shut(ui.get("query")).length) {
        ui.set({ own_q: [], query: Math.floor((n - 1) / 2) });
      }
      const { scores } = chainOf(ui.get);
      ui.set(
        "key",
        shut(ui.get("query")).reduce((most, j) => (scores[j] > scores[most] ? j : most)),
      );
    }
    if (ui.get("step") < 3) ui.set("step", 3);
    ui.done();
  });
  ui.paint(() => {
    const found = maskOf(ui.get);
    box.hidden = !found;
    input.checked = found?.on;
    label.textContent = found?.label;
  });
  return box;
}

function build(ui) {
  const rows = table(ui);
  const lines = curves(ui);
  const reset = pushButton("Reset q", () => ui.save("own_q", []));
  const own = h("span.tx-pair", h("span.tx-hint", "drag the numbers of q:"), reset);
  const query = ui.picks("query", { label: "Query", names: ui.get("query_tokens"), reset: { own_q: [] } });
  const mask = maskBox(ui);
  const invite = h("span.tx-invite", "Press “Next step”. Choose a key: its numbers are spelled out.");
  const steps = [
    h(
      "div.tx-row",
      h("span.tx-word", { "aria-hidden": "true" }, "query"),
      query,
      ui.toggle("scaled", { label: "divide by √d" }),
      further("More", mask, own),
    ),
    h(
      "div.tx-row.tx-steps",
      ui.picks("step", { label: "step", names: STEPS.map((name, i) => `${i + 1}  ${name}`) }),
      h("span.tx-pair", ui.steps("step", { words: ["← Back", "Next step →"], high: () => STEPS.length - 1 })),
    ),
  ];
  const why = h(
    "div.tx-part.tx-why",
    h("p.tx-title", "Random q and k, as wide as you like: does softmax still share?"),
    lines.box,
  );
  ui.paint(() => {
    const c = chainOf(ui.get);
    const random = ui.get("view") === "why";
    for (const part of [invite, ...steps, rows.box]) part.hidden = random;
    why.hidden = !random;
    ui.root.querySelector(".tx-called").textContent = random
      ? "One query: why divide by √d?"
      : ui.get("title");
    if (random) return lines();
    reset.disabled = !ui.get("own_q")?.length;
    rows(c);
    own.hidden = !ui.root.querySelector(".tx-own")?.offsetParent; // with the column of q, where it gives way
  });
  ui.show(
    h(
      "div.tx-row",
      ui.choice("view", {
        label: "Show",
        options: Object.entries({ steps: "one query, step by step", why: "why divide?" }),
      }),
      invite,
    ),
    steps,
    rows.box,
    why,
  );
}

export default explorer("one_query", { build, describe, keep });
