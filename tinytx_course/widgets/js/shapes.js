// The explorer of shapes. `get` maps the name of a trait to its value.

// The steps of a block with its norms first: name, code, axes of what comes out, formula of what it learns, what happens;
// `of` names the tensors drawn, `copies` counts those of this shape, `in_heads` says that the numbers belong to heads.
const makeStep = (name, code, axes, formula, say, more = {}) => ({ name, code, axes, formula, say, of: "x", copies: 1, in_heads: false, ...more });
const ofHeads = (of, copies = 1) => ({ of, copies, in_heads: true });
const STEPS = [
  makeStep("input", "x", "BTD", "", "One vector of D numbers for each token."),
  makeStep("norm", "h = attn_norm(x)", "BTD", "2·D", "Each token’s vector is brought to one size, on its own.", { of: "h" }),
  makeStep("projections", "q, k, v = q_proj(h), k_proj(h), v_proj(h)", "BTD", "3·(D·D + D)", "Three maps from D numbers to D. Each number of q is made of all the numbers of its token.", ofHeads("qkv", 3)),
  makeStep("cut into heads", "q = q.unflatten(-1, (H, K))", "BTHK", "", "A row of D is read as H lots of K. Nothing is computed, no number moves; k and v alike.", ofHeads("q", 3)),
  makeStep("heads forward", "q = q.transpose(1, 2)", "BHTK", "", "Axes T and H change places: each head now has its own table of T rows; k and v alike.", ofHeads("q", 3)),
  makeStep("scores", "scores = q @ k.transpose(-2, -1) / K**0.5", "BHTS", "", "In each head every query t meets every key s. The length enters twice.", ofHeads("s")),
  makeStep("weights", "weights = scores.softmax(-1)", "BHTS", "", "Each row becomes shares that sum to 1.", ofHeads("w")),
  makeStep("context", "context = weights @ v", "BHTK", "", "Each row of weights takes a mean of its head’s values: S is summed away, K comes back.", ofHeads("c")),
  makeStep("heads back", "context = context.transpose(1, 2)", "BTHK", "", "Axes H and T change places again.", ofHeads("c")),
  makeStep("join heads", "context = context.flatten(2)", "BTD", "", "H lots of K are read as one row of D: every entry stands in the column it came from.", ofHeads("c")),
  makeStep("out projection", "a = out_proj(context)", "BTD", "D·D + D", "Here the heads meet: each number is made of all heads of its token.", { of: "a" }),
  makeStep("add", "x = x + a", "BTD", "", "Added to what came in: the shapes must be the same."),
  makeStep("norm", "h = ff_norm(x)", "BTD", "2·D", "As before attention, with numbers of its own.", { of: "h" }),
  makeStep("feed-forward up", "u = act(up_proj(h))", "BTF", "D·F + F", "Each token by itself: from D numbers to F.", { of: "u" }),
  makeStep("feed-forward down", "f = down_proj(u)", "BTD", "F·D + D", "And back from F to D.", { of: "f" }),
  makeStep("add", "x = x + f", "BTD", "", "The same shape that came in: the next block can follow."),
];

const nowOf = (get) => STEPS[get("step")];
export const paramsOf = (get, step = nowOf(get)) => (step.formula ? Number(evaluate(step.formula, get("sizes"))) : 0);
function sizesOf(get) {
  const sizes = get("sizes"), H = get("n_heads");
  return { ...sizes, S: sizes.T, H, K: sizes.D / H };
}
export const shapeOf = (get, step = nowOf(get)) => [...step.axes].map((axis) => sizesOf(get)[axis]);
const product = (shape) => shape.reduce((a, b) => a * b, 1);

// The entry that is followed.
export function entryOf(get) {
  const { T, K } = sizesOf(get), token = get("token"), d = get("column");
  return { b: Math.floor(token / T), t: token % T, d, h: Math.floor(d / K), k: d % K };
}

function labelOf(get, axes, at) {
  if (axes === "BHTS") return `${at.t}→${at.s}`;
  const { B, T, D, F } = sizesOf(get), last = axes === "BTF" ? at.f : at.d;
  return [at.b, at.t, last].join(Math.max(B, T, axes === "BTF" ? F : D) <= 10 ? "" : ",");
}

// Where an entry stands before its row is cut: d from head and place, or the other way round.
function placed(get, at) {
  const { K } = sizesOf(get);
  if (at.d === undefined && at.k !== undefined) at.d = at.h * K + at.k;
  if (at.d !== undefined && at.h === undefined) at.h = Math.floor(at.d / K);
  return at;
}

// The labels of the shown tensor, in the order of its axes.
export function labels(get) {
  const { axes } = nowOf(get), shape = shapeOf(get);
  return Array.from({ length: product(shape) }, (_, flat) => {
    const at = {};
    for (let i = shape.length - 1; i >= 0; i--) {
      at[axes[i].toLowerCase()] = flat % shape[i];
      flat = Math.floor(flat / shape[i]);
    }
    return labelOf(get, axes, placed(get, at));
  });
}

function whereabouts(get, now) {
  const at = entryOf(get), name = `Entry (b ${at.b}, t ${at.t}, d ${at.d})`;
  if (now.axes === "BTF") return `Token (b ${at.b}, t ${at.t}) is row [${at.b}, ${at.t}, :].`;
  if (now.axes === "BHTS") return `${name} is in head ${at.h}: the row of its token there is [${at.b}, ${at.h}, ${at.t}, :].`;
  const place = [...now.axes].map((axis) => at[axis.toLowerCase()]).join(", ");
  return `${name} stands at [${place}]${now.in_heads ? ` and belongs to head ${at.h}` : ""}.`;
}

const letters = (step) => `(${[...step.axes].join(", ")})`;
const learned = (get, step) => (step.formula ? `${step.formula} = ${paramsOf(get, step)} parameters` : "no parameters");
const amount = (get, step) => `${product(shapeOf(get, step))} numbers${step.copies > 1 ? `, ${step.copies} times` : ""}`;

export function describe(get) {
  const now = nowOf(get);
  return `Step ${get("step") + 1} of ${STEPS.length}, ${now.name}: ${now.code}. Shape ${letters(now)} = (${shapeOf(get).join(", ")}): `
    + `${amount(get, now)}, ${learned(get, now)}. ${now.say} ${whereabouts(get, now)}`;
}

// The tables of the shown tensor: one for each b, and for each h where the heads stand in front of the rows.
function tablesOf(get) {
  const now = nowOf(get), { B, T, D, F, H, K } = sizesOf(get), count = (n) => Array.from({ length: n }, (_, i) => i);
  const table = (title, cols, at, lots = 1) => ({ title, rows: T, cols, lots, at: (t, c) => placed(get, at(t, c)) });
  if (now.axes === "BTF") return count(B).map((b) => table(`b ${b}`, F, (t, f) => ({ b, t, f })));
  if (now.axes === "BTHK") return count(B).map((b) => table(`b ${b}`, D, (t, d) => ({ b, t, d }), H));
  if (now.axes === "BTD") return [...now.of].flatMap((name) => count(B).map((b) => table(`${now.of.length > 1 ? `${name}, ` : ""}b ${b}`, D, (t, d) => ({ b, t, d }))));
  const cols = now.axes === "BHTS" ? T : K;
  return count(B).flatMap((b) => count(H).map((h) => table(`b ${b}, h ${h}`, cols, now.axes === "BHTS" ? (t, s) => ({ b, h, t, s }) : (t, k) => ({ b, h, t, k }))));
}

// Tables one after the other, as large as lets a batch of heads, or all batches, stand in one line. Where there is
// little room only the batch of the followed token is drawn.
function laidOut(get, room) {
  const now = nowOf(get), { B, H } = sizesOf(get), left = 30, top = 40, gap = 10, heads = now.axes[1] === "H", narrow = room < 480;
  const tables = tablesOf(get).filter((table) => !narrow || table.at(0, 0).b === entryOf(get).b);
  const { cols, lots } = tables[0], split = lots > 1 ? 6 : 0, group = heads ? H : narrow ? 1 : B;
  const fit = (n) => Math.floor((room / n - left - gap - (lots - 1) * split) / cols);
  let n = group;
  while (n > 1 && fit(n) < 24) n = Math.ceil(n / 2);
  const size = clamp(fit(n), 22, 36), step = (c) => c * size + Math.floor((c * lots) / cols) * split;
  const width = left + step(cols - 1) + size;
  let x = 0, y = 0, most = 0;
  tables.forEach((table, i) => {
    if (x > 0 && (x + width > room || i % group === 0)) { x = 0; y += top + table.rows * size + gap; }
    Object.assign(table, { x: x + left, y: y + top, size, step });
    x += width + gap;
    most = Math.max(most, x);
  });
  return { tables, width: most, height: y + top + tables[0].rows * size + 4, narrow: narrow && B > 1 };
}

function paintTables(canvas, get, { tables, width, height }, theme, { ink, soft, line }) {
  const sharp = window.devicePixelRatio || 1, pen = canvas.getContext("2d"), followed = entryOf(get), now = nowOf(get);
  canvas.width = Math.round(width * sharp);
  canvas.height = Math.round(height * sharp);
  canvas.style.width = `${width}px`;
  canvas.style.height = `${height}px`;
  pen.scale(sharp, sharp);
  pen.textBaseline = "middle";
  const plain = shade(0, theme), tint = shade(0.3, theme), strong = shade(0.8, theme);
  const font = (size, bold) => { pen.font = `${bold ? "700 " : ""}${size}px system-ui, sans-serif`; };
  const write = (text, x, y, color, size, bold = false, align = "center") => { pen.textAlign = align; pen.fillStyle = color; font(size, bold); pen.fillText(text, x, y); };
  const inHead = (at) => now.in_heads && at.h === followed.h && at.b === followed.b, inToken = (at) => at.b === followed.b && at.t === followed.t;
  for (const table of tables) {
    const { x, y, size, step, rows, cols } = table, mine = Array.from({ length: rows }, (_, t) => t).find((t) => inToken(table.at(t, 0)));
    write(table.title, x, y - 28, ink, 13, mine !== undefined, "left");
    pen.strokeStyle = line;
    pen.lineWidth = 1;
    for (let t = 0; t < rows; t++) {
      write(`t ${t}`, x - 6, y + (t + 0.5) * size, t === mine ? ink : soft, 11, t === mine, "right");
      for (let c = 0; c < cols; c++) {
        const at = table.at(t, c), exact = inToken(at) && (now.axes === "BHTS" ? false : at.d === followed.d);
        const color = exact ? strong : inHead(at) ? tint : plain, text = labelOf(get, now.axes, at);
        pen.fillStyle = rgb(color);
        pen.fillRect(x + step(c), y + t * size, size, size);
        pen.strokeRect(x + step(c) + 0.5, y + t * size + 0.5, size - 1, size - 1);
        write(text, x + step(c) + size / 2 - 0.5, y + (t + 0.5) * size, inkOn(color), Math.min(14, size * 0.48, (1.75 * (size - 3)) / (text.length + (text.includes("→") ? 0.7 : 0))), exact);
      }
    }
    if (now.in_heads && now.axes.startsWith("BT")) bracketHeads(table, get, write, pen, ink, soft, followed);
    else for (let c = 0; c < cols; c++) write(`${now.axes[now.axes.length - 1].toLowerCase()} ${c}`, x + step(c) + size / 2, y - 10, soft, 11);
    if (mine === undefined) continue;
    pen.strokeStyle = ink;
    pen.lineWidth = 2.5;
    pen.strokeRect(x - 1.5, y + mine * size - 1.5, step(cols - 1) + size + 2, size + 2);
  }
}

// Over the columns of a row that is made of heads: which lot belongs to which.
function bracketHeads({ x, y, size, step, at }, get, write, pen, ink, soft, followed) {
  const { H, K } = sizesOf(get), here = at(0, 0).b === followed.b;
  for (let head = 0; head < H; head++) {
    const from = x + step(head * K), to = x + step(head * K + K - 1) + size - 1, mine = here && head === followed.h;
    pen.fillStyle = mine ? ink : soft;
    pen.fillRect(from + 1, y - 5, to - from - 2, mine ? 3 : 1);
    write(`h ${head}`, (from + to) / 2, y - 13, mine ? ink : soft, 11, mine);
  }
}

// All steps with what comes out of them and what they learn; one is open.
function stepList(ui) {
  const params = STEPS.map((step) => paramsOf(ui.get, step));
  const rows = STEPS.map((step, i) => h("button", { type: "button", class: "tx-step", role: "radio", onclick: () => ui.save("step", i) },
    h("span", { class: "tx-number" }, i + 1), h("span", {}, step.name), h("span", { class: "tx-axes" }, [...step.axes].join(" ")), h("span", { class: "tx-learned" }, params[i] || "–")));
  const total = params.reduce((sum, n) => sum + n, 0);
  const list = h("div", { role: "radiogroup", "aria-label": "Steps of the block" }, rows), stop = roving(list, rows, { go: (i) => ui.save("step", i) });
  ui.painters.push(() => {
    stop(ui.get("step"));
    rows.forEach((row, i) => {
      row.setAttribute("aria-checked", i === ui.get("step"));
      row.setAttribute("aria-label", `${i + 1}, ${STEPS[i].name}, shape ${shapeOf(ui.get, STEPS[i]).join(" by ")}, ${params[i]} parameters`);
    });
  });
  return h("div", { class: "tx-list" }, h("div", { class: "tx-step tx-head", "aria-hidden": "true" }, h("span"), h("span", {}, "step"), h("span", {}, "axes"), h("span", { class: "tx-learned" }, "learns")),
    list, h("div", { class: "tx-step tx-total" }, h("span"), h("span", {}, "the block"), h("span"), h("span", { class: "tx-learned" }, total)));
}

function build(ui) {
  const { B, T, D } = ui.get("sizes"), last = STEPS.length - 1;
  const go = (by) => () => ui.save("step", clamp(ui.get("step") + by, 0, last));
  const back = h("button", { type: "button", class: "tx-button", onclick: go(-1) }, "← Back"), next = h("button", { type: "button", class: "tx-button tx-next", onclick: go(1) }, "Next step →");
  const title = h("h2", { class: "tx-now-name" }), code = h("code", { class: "tx-code" }), facts = h("dl", { class: "tx-facts" }), say = h("p", { class: "tx-note" });
  const canvas = h("canvas", { role: "img", class: "tx-tables" }), panel = h("div", { class: "tx-panel tx-stage" });
  let layout = null;
  // The entry nearest to the pointer, so that a finger need not be exact.
  const follow = ({ offsetX, offsetY }) => {
    let nearest = Infinity, at;
    for (const table of layout.tables) {
      const t = clamp(Math.floor((offsetY - table.y) / table.size), 0, table.rows - 1), half = table.size / 2;
      for (let c = 0; c < table.cols; c++) {
        const far = Math.hypot(offsetX - table.x - table.step(c) - half, offsetY - table.y - t * table.size - half);
        if (far < nearest) [nearest, at] = [far, table.at(t, c)];
      }
    }
    ui.set("token", at.b * T + at.t);
    if (at.d !== undefined) ui.set("column", at.d);
  };
  canvas.addEventListener("pointerdown", (event) => { if (!event.button) follow(event); });
  canvas.addEventListener("pointermove", (event) => { if (event.buttons & 1) follow(event); });
  canvas.addEventListener("pointerup", () => ui.done());
  const fact = (name, value) => h("div", {}, h("dt", {}, name), h("dd", {}, value));
  const paint = () => {
    const now = nowOf(ui.get);
    back.disabled = ui.get("step") === 0;
    next.disabled = ui.get("step") === last;
    title.textContent = `${ui.get("step") + 1}. ${now.name}`;
    code.textContent = now.code;
    facts.replaceChildren(fact("shape", `${letters(now)} = (${shapeOf(ui.get).join(", ")})`), fact("numbers", `${product(shapeOf(ui.get))}${now.copies > 1 ? " in each of q, k, v" : ""}`), fact("parameters", now.formula ? learned(ui.get, now).replace(" parameters", "") : "0"));
    layout = laidOut(ui.get, Math.max(240, panel.clientWidth - 6));
    say.textContent = now.say + (layout.narrow ? ` Drawn here: b ${entryOf(ui.get).b} alone.` : "");
    const frame = getComputedStyle(ui.root);
    paintTables(canvas, ui.get, layout, ui.theme, { ink: frame.color, line: frame.borderTopColor, soft: getComputedStyle(say).color });
    canvas.setAttribute("aria-label", `Entries of ${now.name}, ${shapeOf(ui.get).join(" by ")}. ${whereabouts(ui.get, now)}`);
  };
  const divisors = Array.from({ length: D }, (_, i) => i + 1).filter((n) => D % n === 0);
  panel.append(h("div", { class: "tx-row" }, back, next), title, code, facts, h("div", { class: "tx-scroll" }, canvas), say);
  ui.show(paint,
    h("p", { class: "tx-invite" }, "Press “Next step” and watch where the marked entry goes. Click any entry to follow that one. Every entry carries its b, t, d."),
    h("div", { class: "tx-row" }, ui.choice("n_heads", { label: "heads H", options: divisors.map((n) => [n, n]) }),
      ui.slider("token", { label: "token", min: 0, max: B * T - 1, format: (i) => `b ${Math.floor(i / T)}, t ${i % T}` }),
      ui.slider("column", { label: "entry d", min: 0, max: D - 1, format: (d) => `${d}, head ${Math.floor(d / sizesOf(ui.get).K)}` })),
    h("div", { class: "tx-shapes" }, stepList(ui), panel),
    h("p", { class: "tx-note" }, "Solid: the entry you follow. Frame: its token. Tinted: its head, as long as there are heads."));
}

export default explorer("shapes", { build, describe });
