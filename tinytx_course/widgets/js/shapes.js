// The explorer of shapes. `get` maps the name of a trait to its value.

// The steps of a block with its norms first: name, code, axes of what comes out, formula of what it learns,
// what happens; `of` names the tensors drawn, `copies` counts those of this shape, `in_heads` says that the
// numbers belong to heads.
const makeStep = (name, code, axes, formula, say, more = {}) => ({
  name,
  code,
  axes,
  formula,
  say,
  of: "x",
  copies: 1,
  in_heads: false,
  ...more,
});
const ofHeads = (of, copies = 1) => ({ of, copies, in_heads: true });
const STEPS = [
  makeStep("input", "x", "BTD", "", "One vector of D numbers for each token."),
  makeStep(
    "norm",
    "h = attn_norm(x)",
    "BTD",
    "2·D",
    "Each token’s vector is brought to one size, on its own.",
    { of: "h" },
  ),
  makeStep(
    "projections",
    "q, k, v = q_proj(h), k_proj(h), v_proj(h)",
    "BTD",
    "3·(D·D + D)",
    "Three linear layers from D numbers to D. Each number of q is made of all the numbers of its token.",
    ofHeads("qkv", 3),
  ),
  makeStep(
    "cut into heads",
    "q = q.unflatten(-1, (H, K))",
    "BTHK",
    "",
    "A row of D is read as H lots of K. Nothing is computed, no number moves; k and v alike.",
    ofHeads("q", 3),
  ),
  makeStep(
    "heads forward",
    "q = q.transpose(1, 2)",
    "BHTK",
    "",
    "Axes T and H change places: each head now has its own table of T rows; k and v alike.",
    ofHeads("q", 3),
  ),
  makeStep(
    "scores",
    "scores = q @ k.transpose(-2, -1) / K**0.5",
    "BHTS",
    "",
    "In each head every query t meets every key s. The length enters twice.",
    ofHeads("s"),
  ),
  makeStep(
    "weights",
    "weights = scores.softmax(-1)",
    "BHTS",
    "",
    "Each row becomes shares that sum to 1.",
    ofHeads("w"),
  ),
  makeStep(
    "context",
    "context = weights @ v",
    "BHTK",
    "",
    "Each row of weights takes a mean of its head’s values: S is summed away, K comes back.",
    ofHeads("c"),
  ),
  makeStep(
    "heads back",
    "context = context.transpose(1, 2)",
    "BTHK",
    "",
    "Axes H and T change places again.",
    ofHeads("c"),
  ),
  makeStep(
    "join heads",
    "context = context.flatten(2)",
    "BTD",
    "",
    "H lots of K are read as one row of D: every entry is in the column it came from.",
    ofHeads("c"),
  ),
  makeStep(
    "out projection",
    "a = out_proj(context)",
    "BTD",
    "D·D + D",
    "Here the heads meet: each number is made of all heads of its token.",
    { of: "a" },
  ),
  makeStep("add", "x = x + a", "BTD", "", "Added to what came in: the shapes must be the same."),
  makeStep("norm", "h = ff_norm(x)", "BTD", "2·D", "As before attention, with numbers of its own.", {
    of: "h",
  }),
  makeStep(
    "feed-forward up",
    "u = act(up_proj(h))",
    "BTF",
    "D·F + F",
    "Each token by itself: from D numbers to F.",
    { of: "u" },
  ),
  makeStep("feed-forward down", "f = down_proj(u)", "BTD", "F·D + D", "And back from F to D.", { of: "f" }),
  makeStep("add", "x = x + f", "BTD", "", "The same shape that came in: the next block can follow."),
];

const nowOf = (get) => STEPS[get("step")];
export const paramsOf = (get, step = nowOf(get)) =>
  step.formula ? Number(evaluate(step.formula, get("sizes"))) : 0;
const LONGEST = 16; // as in shapes.py
// T as it is moved; a page may be older than that, or take it from its address as a text.
export const lengthOf = (get) => Number(get("seq_len")) || get("sizes").T;
function sizesOf(get) {
  const sizes = get("sizes");
  const H = get("n_heads");
  const T = lengthOf(get);
  return { ...sizes, T, S: T, H, K: sizes.D / H };
}
export const shapeOf = (get, step = nowOf(get), sizes = sizesOf(get)) =>
  [...step.axes].map((axis) => sizes[axis]);
const product = (shape) => shape.reduce((a, b) => a * b, 1);
// How many numbers a step gives, now and for the length that was shown at first.
export function numbersOf(get, step = nowOf(get)) {
  const sizes = sizesOf(get);
  const { T } = get("sizes");
  return [sizes, { ...sizes, T, S: T }].map((each) => product(shapeOf(get, step, each)));
}

// The entry that is followed.
export function entryOf(get) {
  const { B, T, K } = sizesOf(get);
  const token = Math.min(get("token"), B * T - 1);
  const d = get("column");
  return { b: Math.floor(token / T), t: token % T, d, h: Math.floor(d / K), k: d % K };
}

function labelOf(get, axes, at) {
  if (axes === "BHTS") return `${at.t}→${at.s}`;
  const { B, T, D, F } = sizesOf(get);
  const last = axes === "BTF" ? at.f : at.d;
  return [at.b, at.t, last].join(Math.max(B, T, axes === "BTF" ? F : D) <= 10 ? "" : ",");
}

// Where an entry is before its row is cut: d from head and place, or the other way round.
function placed(get, at) {
  const { K } = sizesOf(get);
  if (at.d === undefined && at.k !== undefined) at.d = at.h * K + at.k;
  if (at.d !== undefined && at.h === undefined) at.h = Math.floor(at.d / K);
  return at;
}

// The labels of the shown tensor, in the order of its axes.
export function labels(get) {
  const { axes } = nowOf(get);
  const shape = shapeOf(get);
  return range(product(shape)).map((flat) => {
    const at = {};
    for (let i = shape.length - 1; i >= 0; i--) {
      at[axes[i].toLowerCase()] = flat % shape[i];
      flat = Math.floor(flat / shape[i]);
    }
    return labelOf(get, axes, placed(get, at));
  });
}

function whereabouts(get, now) {
  const at = entryOf(get);
  const name = `Entry (b ${at.b}, t ${at.t}, d ${at.d})`;
  if (now.axes === "BTF") return `Token (b ${at.b}, t ${at.t}) is row [${at.b}, ${at.t}, :].`;
  if (now.axes === "BHTS")
    return `${name} is in head ${at.h}: the row of its token there is [${at.b}, ${at.h}, ${at.t}, :].`;
  const place = [...now.axes].map((axis) => at[axis.toLowerCase()]).join(", ");
  return `${name} is at [${place}]${now.in_heads ? ` and belongs to head ${at.h}` : ""}.`;
}

const letters = (step) => `(${[...step.axes].join(", ")})`;
const learned = (get, step) =>
  step.formula ? `${step.formula} = ${paramsOf(get, step)} parameters` : "no parameters";
const amount = (get, step) =>
  `${product(shapeOf(get, step))} numbers${step.copies > 1 ? `, ${step.copies} times` : ""}`;

export function describe(get) {
  const now = nowOf(get);
  const [n, first] = numbersOf(get, now);
  const lots = now.copies > 1 ? " in each of q, k, v" : "";
  const before = n === first ? "" : `, ${+(n / first).toPrecision(2)} times those at T = ${get("sizes").T}`;
  return (
    `Step ${get("step") + 1} of ${STEPS.length}, ${now.name}: ${[...now.axes].join("·")} = ${shapeOf(get).join("·")} = ${n} numbers${lots}${before}. ${whereabouts(get, now)}\n` +
    `${now.code}. Shape ${letters(now)} = (${shapeOf(get).join(", ")}): ${amount(get, now)}, ${learned(get, now)}. ${now.say}`
  );
}

// The tables of the shown tensor: one for each b, and for each h where the heads stand in front of the rows.
function tablesOf(get) {
  const now = nowOf(get);
  const { B, T, D, F, H, K } = sizesOf(get);
  const table = (title, width, at, lots = 1) => ({
    title,
    rows: T,
    cols: width,
    lots,
    at: (t, c) => placed(get, at(t, c)),
  });
  if (now.axes === "BTF") return range(B).map((b) => table(`b ${b}`, F, (t, f) => ({ b, t, f })));
  if (now.axes === "BTHK") return range(B).map((b) => table(`b ${b}`, D, (t, d) => ({ b, t, d }), H));
  if (now.axes === "BTD")
    return range(B).flatMap((b) =>
      [...now.of].map((name) => ({
        ...table(`${now.of.length > 1 ? `${name}, ` : ""}b ${b}`, D, (t, d) => ({ b, t, d })),
        name,
      })),
    );
  const cols = now.axes === "BHTS" ? T : K;
  return range(B).flatMap((b) =>
    range(H).map((h) =>
      table(`h ${h}`, cols, now.axes === "BHTS" ? (t, s) => ({ b, h, t, s }) : (t, k) => ({ b, h, t, k })),
    ),
  );
}

const LETTERS = 20; // pixels of a box that has room for them
const HIGHEST = 310; // of the tables, that the whole fits 720 pixels
// Room for the names of rows and columns, and between tables
const LEFT = 36;
const TOP = 36;
const GAP = 10;

// Tables one after the other, as large as lets a batch of heads, or all batches, stand in one line. Where
// there is little room, or all would be taller than a screen allows, only the batch of the followed token is
// drawn; and where that is not enough for letters that can be read, one table of it, with the others small
// beside it.
function laidOut(get, room, narrow = room < 440) {
  const now = nowOf(get);
  const { B, H } = sizesOf(get);
  const heads = now.axes[1] === "H";
  const least = now.axes === "BHTS" ? 32 : 20;
  const tables = tablesOf(get).filter((table) => !narrow || table.at(0, 0).b === entryOf(get).b);
  const { cols, lots } = tables[0];
  const split = lots > 1 ? 12 : 0;
  const group = heads ? H : now.of.length > 1 ? now.of.length : narrow ? 1 : B;
  // Tables of heads have the names of their rows once a line.
  const own = heads ? 0 : LEFT;
  const fit = (count) => Math.floor(((room - LEFT + own) / count - own - GAP - (lots - 1) * split) / cols);
  let n = group;
  while (n > 1 && fit(n) < least) n = Math.ceil(n / 2);
  const lowest = Math.floor((HIGHEST - TOP - 20) / tables[0].rows);
  const size = Math.min(clamp(fit(n), 20, narrow && n < group ? least : 34), Math.max(12, lowest));
  const step = (c) => c * size + Math.floor((c * lots) / cols) * split;
  const width = own + step(cols - 1) + size + (now.axes === "BHTS" ? GAP : 0);
  let x = LEFT - own;
  let y = 0;
  let most = 0;
  tables.forEach((table, i) => {
    if (i && i % n === 0) {
      x = LEFT - own;
      y += TOP + table.rows * size + GAP;
    }
    Object.assign(table, { x: x + own, y: y + TOP, size, step, first: !heads || i % n === 0 });
    x += width + GAP;
    most = Math.max(most, x);
  });
  const height = y + TOP + tables[0].rows * size + 4;
  const alone = narrow && B > 1;
  if ((height > HIGHEST || fit(n) < least) && !narrow && B > 1) return laidOut(get, room, true);
  if ((height > HIGHEST || fit(n) < least) && tables.length > 1)
    return { ...oneLarge(get, room, tables), alone };
  return { tables, width: most, height, alone };
}

// The table of the followed head, or the first, in large, and the others small on its right.
function oneLarge(get, room, tables) {
  const { h: head } = entryOf(get);
  const large = tables.find((table) => table.at(0, 0).h === head && !table.name) ?? tables[0];
  const small = tables.filter((table) => table !== large);
  const { rows, cols } = large;
  const size = clamp(Math.floor(Math.min((0.62 * room - LEFT) / cols, (HIGHEST - TOP - 20) / rows)), 14, 34);
  const from = LEFT + Math.max(60, cols * size) + 2 * GAP;
  const title = 20; // beside its name, too
  Object.assign(large, { x: LEFT, y: TOP, size, first: true, step: (c) => c * size });
  let cell = 15;
  let across;
  let down;
  do {
    across = Math.max(1, Math.floor((room - from + GAP) / (Math.max(24, --cell * cols) + GAP)));
    down = Math.ceil(small.length / across) * (rows * cell + title);
  } while (cell > 3 && (cell * cols > room - from || down > Math.max(HIGHEST - 40, rows * size + TOP)));
  const wide = Math.max(24, cell * cols) + GAP;
  small.forEach((table, i) =>
    Object.assign(table, {
      small: true,
      size: cell,
      step: (c) => c * cell,
      x: from + (i % across) * wide,
      y: title + Math.floor(i / across) * (rows * cell + title),
    }),
  );
  return {
    tables,
    large,
    width: from + Math.min(across, small.length) * wide,
    height: Math.max(TOP + rows * size, down) + 4,
  };
}

// The boxes of all entries: where they are and what they show. The same entry has the same key wherever it
// goes.
function boxesOf(get, { tables }, theme) {
  const followed = entryOf(get);
  const now = nowOf(get);
  const { D, F } = sizesOf(get);
  const plain = shade(0, theme);
  const tint = shade(0.3, theme);
  const strong = shade(0.8, theme);
  return tables.flatMap((table) =>
    range(table.rows * table.cols).map((flat) => {
      const t = Math.floor(flat / table.cols);
      const c = flat % table.cols;
      const at = table.at(t, c);
      const name = labelOf(get, now.axes, at);
      const here = at.b === followed.b;
      const exact = here && at.t === followed.t && now.axes !== "BHTS" && at.d === followed.d;
      const color = exact ? strong : now.in_heads && here && at.h === followed.h ? tint : plain;
      // b stands over the table: without it the letters can be larger.
      const text =
        table.size < LETTERS
          ? ""
          : now.axes === "BHTS"
            ? name
            : [at.t, at.f ?? at.d].join(Math.max(table.rows, now.axes === "BTF" ? F : D) > 10 ? "," : "");
      return {
        key: `${table.name ?? now.of}${now.axes === "BHTS" ? at.h : ""}:${at.b},${name}`,
        x: table.x + table.step(c),
        y: table.y + t * table.size,
        size: table.size,
        color,
        text,
        exact,
      };
    }),
  );
}

// Draw boxes on their way from `before` to where they belong: a box that was there moves, a new one appears.
function paintBoxes(canvas, get, layout, boxes, before, moved, { ink, soft, line }) {
  const zoom = canvas.getBoundingClientRect().width / canvas.offsetWidth || 1; // in front of a class
  const sharp = (window.devicePixelRatio || 1) * zoom;
  const pen = canvas.getContext("2d");
  const followed = entryOf(get);
  const now = nowOf(get);
  Object.assign(canvas, {
    width: Math.round(layout.width * sharp),
    height: Math.round(layout.height * sharp),
  });
  Object.assign(canvas.style, { width: `${layout.width}px`, height: `${layout.height}px` });
  pen.scale(sharp, sharp);
  pen.textBaseline = "middle";
  const write = (text, x, y, color, size, bold = false, align = "center") => {
    pen.textAlign = align;
    pen.fillStyle = color;
    pen.font = `${bold ? "700 " : ""}${size}px system-ui, sans-serif`;
    pen.fillText(text, x, y);
  };
  const dark = (color, by) => rgb(color.map((part) => Math.round(part * by)));
  const way = 1 - (1 - moved) ** 3;
  const between = boxes.map((box) => {
    const from = before.get(box.key) ?? box;
    return {
      ...box,
      x: from.x + (box.x - from.x) * way,
      y: from.y + (box.y - from.y) * way,
      size: from.size + (box.size - from.size) * way,
      alpha: before.has(box.key) ? 1 : moved,
    };
  });
  between.sort((a, b) => b.y - a.y || a.x - b.x); // whatever is in front comes later
  for (const { x, y, size, color, text, exact, alpha } of between) {
    const deep = size < 12 ? 0 : size / 6;
    const side = (points, fill) => {
      pen.fillStyle = fill;
      pen.beginPath();
      points.forEach(([a, b]) => pen.lineTo(a, b));
      pen.fill();
    };
    pen.globalAlpha = alpha;
    side(
      [
        [x, y],
        [x + deep, y - deep],
        [x + size + deep, y - deep],
        [x + size, y],
      ],
      dark(color, 0.86),
    );
    side(
      [
        [x + size, y],
        [x + size + deep, y - deep],
        [x + size + deep, y + size - deep],
        [x + size, y + size],
      ],
      dark(color, 0.7),
    );
    pen.fillStyle = rgb(color);
    pen.fillRect(x, y, size, size);
    pen.strokeStyle = line;
    pen.lineWidth = 1;
    pen.strokeRect(x + 0.5, y + 0.5, size - 1, size - 1);
    if (text)
      write(
        text,
        x + size / 2 - 0.5,
        y + size / 2,
        inkOn(color),
        Math.min(16, size * 0.66, (1.66 * (size - 2)) / (text.length + (text.includes("→") ? 0.7 : 0))),
        exact,
      );
  }
  pen.globalAlpha = moved; // names and frame arrive with the boxes
  for (const table of layout.tables) {
    const { x, y, size, step, rows, cols, small } = table;
    const mine = range(rows).find((t) => {
      const at = table.at(t, 0);
      return at.b === followed.b && at.t === followed.t;
    });
    const axes = now.axes === "BHTS" && step(cols) >= 170 ? ": query t ↓, key s →" : "";
    write(
      small ? table.title.replace(/b \d+, |, b \d+/, "") : table.title + axes,
      x,
      small ? y - 9 : y - 28,
      ink,
      13,
      !small && mine !== undefined,
      "left",
    );
    if (!small && table.first)
      for (let t = 0; t < rows; t++)
        write(`t ${t}`, x - 6, y + (t + 0.5) * size, t === mine ? ink : soft, 13, t === mine, "right");
    if (small) {
      /* its name is enough */
    } else if (now.in_heads && now.axes.startsWith("BT"))
      bracketHeads(table, get, write, pen, ink, soft, followed);
    else {
      // the letter of the axis once, or the names of narrow columns run together
      if (table.first)
        write(now.axes[now.axes.length - 1].toLowerCase(), x - 6, y - 12, soft, 13, false, "right");
      if (table.first && now.axes[1] === "H")
        write(`b ${table.at(0, 0).b}`, x - 6, y - 28, ink, 13, mine !== undefined, "right");
      for (let c = 0; c < cols; c += size < LETTERS ? 2 : 1)
        write(c, x + step(c) + size / 2, y - 12, soft, 13);
    }
    if (mine === undefined) continue;
    pen.strokeStyle = ink;
    pen.lineWidth = small ? 1.2 : 2.5;
    pen.strokeRect(x - 1.5, y + mine * size - 1.5, step(cols - 1) + size + 2, size + 2);
  }
}

// Over the columns of a row that is made of heads: which lot belongs to which.
function bracketHeads({ x, y, size, step, at }, get, write, pen, ink, soft, followed) {
  const { H, K } = sizesOf(get);
  const here = at(0, 0).b === followed.b;
  if (K * size < 25) write("h", x - 6, y - 17, soft, 13, false, "right");
  for (let head = 0; head < H; head++) {
    const from = x + step(head * K);
    const to = x + step(head * K + K - 1) + size - 1;
    const mine = here && head === followed.h;
    pen.fillStyle = mine ? ink : soft;
    pen.fillRect(from + 1, y - 8, to - from - 2, mine ? 3 : 1);
    write(to - from < 24 ? head : `h ${head}`, (from + to) / 2, y - 17, mine ? ink : soft, 13, mine);
  }
}

// A small picture of what a step gives: how many sheets, and how they are cut.
function glyph(get, { axes, code, of }) {
  const { H } = sizesOf(get);
  const n = Math.min(H, 4);
  const slabs = { BTHK: n, BHTK: n, BHTS: n }[axes] ?? of.length;
  const wide = { BHTS: 12, BTF: 40 }[axes] ?? (of.length > 1 ? 12 : slabs > 1 ? 30 / slabs : 30);
  const plus = code.includes("x + ");
  const gap = axes === "BTHK" ? 2 : 0;
  const [right, up] = axes[1] === "H" ? [5, 2.5] : [wide + (of.length > 1 ? 3 : gap), 0];
  const sheets = range(slabs).map((i) =>
    h("rect", {
      x: 1 + (slabs - 1 - i) * right,
      y: 4 + (axes[1] === "H" ? i * up : 3),
      width: wide,
      height: axes[1] === "H" ? 11 : 13,
    }),
  );
  return h(
    "svg.tx-glyph",
    { viewBox: "0 0 46 24", "aria-hidden": "true" },
    plus ? [h("circle", { cx: 15, cy: 12, r: 9 }), h("path", { d: "M9.5 12h11M15 6.5v11" })] : sheets,
  );
}

// The block, drawn: what comes out of each part and what it learns, with the residual stream around attention
// and feed-forward; one part is open.
function drawnBlock(ui) {
  const params = STEPS.map((step) => paramsOf(ui.get, step));
  const pictures = STEPS.map(() => h("span"));
  const counts = STEPS.map(() => h("span.tx-learned.tx-grown"));
  const rows = STEPS.map((step, i) =>
    h(
      "button.tx-step",
      { style: `grid-row:${i + 1}` },
      pictures[i],
      h("span", step.name),
      h("span.tx-axes", [...step.axes].join(" ")),
      counts[i],
      h("span.tx-learned", params[i] || ""),
    ),
  );
  const total = params.reduce((sum, n) => sum + n, 0);
  const list = h("div.tx-block", { role: "radiogroup", "aria-label": "Steps of the block" }, rows);
  const show = radioGroup(list, rows, (i) => ui.save("step", i));
  const around = [
    ["1 / 13", "tx-rail", ""],
    ["12 / 17", "tx-rail", ""],
    ["2 / 12", "tx-part", "attention"],
    ["13 / 16", "tx-part", "FFN"],
  ];
  list.append(
    ...around.map(([row, name, words]) =>
      h("div", { class: name, style: `grid-row:${row}`, "aria-hidden": "true" }, h("span", words)),
    ),
  );
  ui.paint(() => {
    show(ui.get("step"));
    // Bars behind the numbers: all of one scale, whose end is the largest at the greatest length.
    const sizes = sizesOf(ui.get);
    const most = Math.max(
      ...STEPS.map(
        (step) => step.copies * product(shapeOf(ui.get, step, { ...sizes, T: LONGEST, S: LONGEST })),
      ),
    );
    rows.forEach((row, i) => {
      pictures[i].replaceChildren(glyph(ui.get, STEPS[i]));
      const [n] = numbersOf(ui.get, STEPS[i]);
      const lots = STEPS[i].copies > 1 ? `${STEPS[i].copies} times ` : "";
      counts[i].style.setProperty("--part", `${(100 * STEPS[i].copies * n) / most}%`);
      counts[i].textContent = lots ? `${STEPS[i].copies}·${n}` : n;
      row.ariaLabel = `${i + 1}, ${STEPS[i].name}, shape ${shapeOf(ui.get, STEPS[i]).join(" by ")}, ${lots}${n} numbers, ${params[i]} parameters`;
    });
  });
  const names = h(
    "p.tx-heading",
    { "aria-hidden": "true" },
    ["", "step", "axes", "numbers", "learned"].map((name) => h("span", name)),
  );
  return h("div.tx-list", names, list, h("p.tx-total", "parameters of the block", h("b", total)));
}

function build(ui) {
  const { B, D } = ui.get("sizes");
  const buttons = ui.steps("step", { words: ["← Back", "Next step →"], high: () => STEPS.length - 1 });
  const title = h("h2.tx-now-name");
  const code = h("code.tx-code");
  const say = h("p.tx-note");
  const key = h("p.tx-note.tx-key");
  const canvas = h("canvas.tx-tables", { role: "img" });
  const panel = h("div.tx-panel.tx-stage");
  const holder = h("div.tx-scroll", canvas);
  // Where the boxes were, and at which step
  let layout = null;
  let places = new Map();
  let shown = null;
  // The entry nearest to the pointer, so that a finger need not be exact.
  const follow = ({ offsetX, offsetY }) => {
    const { T, K } = sizesOf(ui.get);
    const { k, h: head } = entryOf(ui.get);
    let nearest = Infinity;
    let at;
    for (const table of layout.tables) {
      const t = clamp(Math.floor((offsetY - table.y) / table.size), 0, table.rows - 1);
      const half = table.size / 2;
      for (let c = 0; c < table.cols; c++) {
        const far = Math.hypot(
          offsetX - table.x - table.step(c) - half,
          offsetY - table.y - t * table.size - half,
        );
        if (far < nearest) [nearest, at] = [far, table.at(t, c)];
      }
    }
    ui.set("token", at.b * T + at.t);
    if (at.d !== undefined) ui.set("column", at.d);
    // the same place in the head that was pressed
    else if (at.h !== undefined && at.h !== head) ui.set("column", at.h * K + k);
  };
  canvas.addEventListener("pointerdown", (event) => {
    if (!event.button) follow(event);
  });
  canvas.addEventListener("pointermove", (event) => {
    if (event.buttons & 1) follow(event);
  });
  canvas.addEventListener("pointerup", () => ui.done());
  ui.paint(() => {
    const now = nowOf(ui.get);
    title.textContent = `${ui.get("step") + 1}. ${now.name}`;
    code.textContent = now.code;
    const room = Math.max(240, panel.clientWidth - 6);
    layout = laidOut(ui.get, room);
    say.textContent =
      now.say +
      (layout.large
        ? ` Drawn: b ${entryOf(ui.get).b}, ${layout.large.title.replace(/b \d+, |, b \d+/, "")} large; press another one.`
        : layout.alone
          ? ` Drawn here: b ${entryOf(ui.get).b} alone.`
          : "");
    const says = (words) =>
      (layout.large ?? layout.tables[0]).size < LETTERS ? "" : `A box says ${words}. `;
    key.textContent =
      now.axes === "BHTS"
        ? `${says("t→s: the query of token t meets the key of token s")}Frame: your token. Tinted: its head.`
        : now.axes === "BTF"
          ? `${says("t and f")}Frame: your token.`
          : `${says("t and d, as in the input")}Solid: the entry you follow. Frame: its token.${now.in_heads ? " Tinted: its head." : ""}`;
    const frame = getComputedStyle(ui.root);
    const colors = { ink: frame.color, line: frame.borderTopColor, soft: getComputedStyle(say).color };
    const boxes = boxesOf(ui.get, layout, ui.theme);
    const from = places;
    const moves = shown !== null && shown !== ui.get("step");
    places = new Map(boxes.map((box) => [box.key, box]));
    shown = ui.get("step");
    const draw = (share) => paintBoxes(canvas, ui.get, layout, boxes, from, share, colors);
    ui.animate(moves ? 500 : 1, moves ? draw : () => {}); // the latter ends a movement
    if (!moves) draw(1);
    canvas.ariaLabel = `Entries of ${now.name}, ${shapeOf(ui.get).join(" by ")}. ${whereabouts(ui.get, now)}`;
  });
  // The followed token stays the same, or is the last of a shorter text.
  const lengthen = (T) => {
    const { b, t } = entryOf(ui.get);
    ui.set("token", b * T + Math.min(t, T - 1));
    return T;
  };
  const moved = () => lengthOf(ui.get);
  const tokens = ui.slider("token", {
    label: "token",
    min: 0,
    max: () => B * moved() - 1,
    format: () => {
      const { b, t } = entryOf(ui.get);
      return `b ${b}, t ${t}`;
    },
  });
  const length = ui.slider("seq_len", {
    label: "length T",
    min: Math.min(2, ui.get("sizes").T),
    max: LONGEST,
    to: lengthen,
    from: moved,
    format: moved,
  });
  length.classList.add("tx-length");
  panel.append(h("div.tx-row", buttons, title), code, say, holder, key);
  ui.show(
    h(
      "p.tx-invite",
      "Where does one entry go, and which tensors grow with T? Press “Next step”, click an entry, or move T and watch the column “numbers”.",
    ),
    h(
      "div.tx-row",
      length,
      ui.choice("n_heads", { label: "heads H", options: divisors(D).map((n) => [n, n]) }),
      further(
        "Follow by keys",
        tokens,
        ui.slider("column", {
          label: "entry d",
          min: 0,
          max: D - 1,
          format: (d) => `${d}, head ${Math.floor(d / sizesOf(ui.get).K)}`,
        }),
      ),
    ),
    h("div.tx-shapes", drawnBlock(ui), panel),
  );
}

const keep = (get) => ({
  seq_len: (T) => T >= 1 && T <= LONGEST && T % 1 === 0,
  step: [0, STEPS.length - 1],
  n_heads: (n) => get("sizes").D % n === 0,
  token: [0, get("sizes").B * LONGEST - 1],
  column: [0, get("sizes").D - 1],
});

export default explorer("shapes", { build, describe, keep });
