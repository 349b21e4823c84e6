// The attention explorer. `get` maps the name of a trait to its value, buffers as float32.

// The open part: sizes, words, and weights as views into the one buffer.
export function openPart(get) {
  const part = get("part"), sizes = get("sizes"), [layers, heads, rows, cols] = sizes[part];
  const start = sizes.slice(0, part).reduce((sum, size) => sum + size.reduce((a, b) => a * b, 1), 0);
  const weights = get("weights"), masks = get("masks")[part];
  const head = (l, a) => weights.subarray(start + (l * heads + a) * rows * cols, start + (l * heads + a + 1) * rows * cols);
  return {
    layers, heads, rows, cols, head,
    queries: get("query_tokens")[part], keys: get("key_tokens")[part], name: get("names")[part],
    layer: Math.min(get("layer"), layers - 1), at: Math.min(get("head"), heads - 1), query: Math.min(get("query"), rows - 1),
    row: (l, a, i) => head(l, a).subarray(i * cols, (i + 1) * cols),
    blocked: (i, j) => masks[i][j] === "0",
  };
}

export const rowEntropies = (part) => Array.from({ length: part.rows }, (_, i) => entropy(part.row(part.layer, part.at, i)));

export function describe(get) {
  const part = openPart(get), { layer, at, query, queries, keys, name } = part, row = part.row(layer, at, query);
  const places = [...keys.keys()], open = places.filter((j) => !part.blocked(query, j)).length;
  const text = `${name[0].toUpperCase()}${name.slice(1)}, layer ${layer}, head ${at}: query ${named(queries, query)} `;
  if (!row.some((w) => w > 0)) return `${text}may look at nothing.`;
  const most = places.sort((a, b) => row[b] - row[a] || a - b).slice(0, 3).filter((j, n) => n === 0 || row[j] >= 0.005);
  const looks = most.map((j) => `${named(keys, j)} ${percent(row[j])}`).join(", ");
  return `${text}looks at ${looks}. Entropy ${entropy(row).toFixed(2)} of at most ${Math.log2(open).toFixed(2)} bits over ${open} open keys.`;
}

function build(ui) {
  const body = h("div"), parts = ui.get("names");
  const which = parts.length > 1 ? h("div", { class: "tx-row" }, ui.choice("part", { label: "Attention", options: parts.map((name, i) => [i, name]) })) : null;
  let shown, paintPart;
  const paint = () => {
    if (shown !== ui.get("part")) {
      shown = ui.get("part");
      const made = partView(ui);
      paintPart = made.paint;
      body.replaceChildren(...made.elements);
    }
    paintPart();
  };
  ui.show(paint, which, body);
}

function partView(ui) {
  const thumbs = thumbnails(ui), matrix = opened(ui), words = sentence(ui);
  // What the pointer is over shows for as long as it stays; a click keeps it.
  let hovered = null;
  const look = (query) => { hovered = query; ui.redraw(); };
  matrix.listen(look);
  words.listen(look);
  const paint = () => {
    const part = openPart(ui.get), query = hovered ?? part.query;
    thumbs.paint(part);
    matrix.paint(part, query);
    words.paint(part, query);
  };
  return { paint, elements: [h("div", { class: "tx-panels" }, thumbs.box, matrix.box), words.box] };
}

// All heads small: layers down, heads across.
function thumbnails(ui) {
  const { layers, heads, rows, cols } = openPart(ui.get), all = layers * heads;
  const canvases = Array.from({ length: all }, () => h("canvas", { "aria-hidden": "true" }));
  const choose = (i) => { ui.set("layer", Math.floor(i / heads)); ui.save("head", i % heads); };
  const buttons = canvases.map((canvas, i) => h("button", {
    type: "button", role: "radio", class: "tx-thumb", onclick: () => choose(i),
    "aria-label": `layer ${Math.floor(i / heads)}, head ${i % heads}`,
  }, canvas));
  const grid = h("div", { class: "tx-thumbs", role: "radiogroup", "aria-label": "Layer and head", style: `--heads:${heads}` },
    h("span"), Array.from({ length: heads }, (_, a) => h("span", { class: "tx-small", "aria-hidden": "true" }, a)),
    Array.from({ length: layers }, (_, l) => [h("span", { class: "tx-small", "aria-hidden": "true" }, l), buttons.slice(l * heads, (l + 1) * heads)]));
  const stop = roving(grid, buttons, { columns: heads, go: choose });
  let painted;
  const paint = (part) => {
    const side = clamp(Math.floor((Math.min(ui.width, 460) - 40) / heads) - 4, 18, 64), open = part.layer * heads + part.at;
    grid.style.setProperty("--thumb", `${side}px`);
    stop(open);
    buttons.forEach((button, i) => button.setAttribute("aria-checked", i === open));
    grid.classList.toggle("tx-fine", rows > side);
    if (painted === ui.theme) return;
    painted = ui.theme;
    canvases.forEach((canvas, i) => {
      const weights = part.head(Math.floor(i / heads), i % heads);
      paintPixels(canvas, { rows, cols, share: (r, c) => weights[r * cols + c], blocked: part.blocked, theme: painted });
    });
  };
  const title = h("p", { class: "tx-title" }, `${counted(layers, "layer")} down, ${counted(heads, "head")} across`);
  return { paint, box: h("div", { class: "tx-panel" }, title, h("div", { class: "tx-scroll" }, grid)) };
}

// The open head: a row for each query, with its entropy beside it.
function opened(ui) {
  const { rows, cols, queries, keys } = openPart(ui.get);
  const title = h("p", { class: "tx-title" });
  const canvas = h("canvas", { role: "img", class: "tx-matrix" }), bars = h("canvas", { role: "img", class: "tx-entropy" });
  const mark = h("div", { class: "tx-mark", "aria-hidden": "true" });
  const down = h("div", { class: "tx-down", "aria-hidden": "true" }, queries.map((token) => h("span", {}, token)));
  const across = h("div", { class: "tx-across", "aria-hidden": "true" }, keys.map((token) => h("span", {}, h("span", {}, token))));
  const grid = h("div", { class: "tx-open" }, h("span"), across, h("span", { class: "tx-small tx-bits", "aria-hidden": "true" }, "entropy"), down, h("div", { class: "tx-stage" }, canvas, mark), bars);
  let size = 8, painted = "";
  const place = (event) => [clamp(Math.floor(event.offsetY / size), 0, rows - 1), clamp(Math.floor(event.offsetX / size), 0, cols - 1)];
  const listen = (look) => {
    canvas.addEventListener("pointermove", (event) => {
      const [i, j] = place(event), part = openPart(ui.get);
      look(i);
      ui.tip(`${named(queries, i)} looks at ${named(keys, j)}: ${part.blocked(i, j) ? "blocked by the mask" : part.row(part.layer, part.at, i)[j].toFixed(3)}`, event);
    });
    canvas.addEventListener("pointerleave", () => { look(null); ui.tip(null); });
    canvas.addEventListener("click", (event) => ui.save("query", place(event)[0]));
  };
  const paint = (part, query) => {
    size = clamp(Math.floor(Math.min((ui.width - (ui.width < 420 ? 125 : 150)) / cols, 520 / Math.max(rows, cols))), 3, 28);
    const now = `${part.layer}/${part.at}/${size}/${ui.theme}`;
    mark.style.cssText = `top:${query * size}px;width:${cols * size}px;height:${size}px`;
    [...down.children].forEach((label, i) => { label.className = i === query ? "tx-at" : ""; });
    if (painted === now) return;
    painted = now;
    title.textContent = `Layer ${part.layer}, head ${part.at}: queries down, keys across`;
    grid.classList.toggle("tx-tiny", size < 12);
    grid.style.setProperty("--cell", `${size}px`);
    const weights = part.head(part.layer, part.at);
    paintCells(canvas, { rows, cols, size, share: (i, j) => weights[i * cols + j], blocked: part.blocked, theme: ui.theme, numbers: size >= 26 });
    canvas.setAttribute("aria-label", `Attention weights of layer ${part.layer}, head ${part.at}: ${rows} queries by ${cols} keys. Choose a query below to hear its row.`);
    paintBars(bars, rowEntropies(part), size, Math.log2(Math.max(2, cols)), ui.theme);
    bars.setAttribute("aria-label", `Entropy of each row in bits: ${rowEntropies(part).map((bits) => bits.toFixed(1)).join(", ")}`);
  };
  return { paint, listen, box: h("div", { class: "tx-panel" }, title, h("div", { class: "tx-scroll" }, grid), scaleBar(shade, "0", "1", "weight")) };
}

function paintBars(canvas, values, size, most, theme) {
  const sharp = window.devicePixelRatio || 1, width = 52, pen = canvas.getContext("2d");
  canvas.width = width * sharp;
  canvas.height = Math.round(values.length * size * sharp);
  canvas.style.width = `${width}px`;
  canvas.style.height = `${values.length * size}px`;
  pen.scale(sharp, sharp);
  pen.fillStyle = rgb(shade(0.55, theme));
  values.forEach((value, i) => pen.fillRect(0, i * size + size * 0.2, Math.max(1, (width * value) / most), Math.max(1, size * 0.6)));
}

// The words themselves: choose a query, see its keys coloured, with bars and numbers.
function sentence(ui) {
  const { queries, keys } = openPart(ui.get);
  const asks = queries.map((token, i) => h("button", { type: "button", class: "tx-token", role: "radio", "aria-label": `query ${named(queries, i)}`, onclick: () => ui.save("query", i) }, token));
  const group = h("div", { class: "tx-words", role: "radiogroup", "aria-label": "Query" }, asks);
  const stop = roving(group, asks, { go: (i) => ui.save("query", i) });
  const answers = keys.map((token) => h("li", { class: "tx-key-word" }, h("span", { class: "tx-word" }, token), h("i"), h("small")));
  const title = h("p", { class: "tx-title" });
  const listen = (look) => asks.forEach((ask, i) => {
    ask.addEventListener("pointerenter", () => look(i));
    ask.addEventListener("pointerleave", () => look(null));
  });
  const paint = (part, query) => {
    const row = part.row(part.layer, part.at, query), theme = ui.theme;
    stop(part.query);
    asks.forEach((ask, i) => ask.setAttribute("aria-checked", i === part.query));
    title.textContent = `${query === part.query ? "" : "Under the pointer: "}${named(queries, query)} looks at · entropy ${entropy(row).toFixed(2)} bits`;
    answers.forEach((answer, j) => {
      const [word, bar, number] = answer.children, off = part.blocked(query, j), color = shade(row[j], theme);
      answer.classList.toggle("tx-blocked", off);
      word.style.cssText = off ? "" : `background:${rgb(color)};color:${inkOn(color)}`;
      bar.style.setProperty("--share", `${off ? 0 : 100 * row[j]}%`);
      number.textContent = off ? "blocked" : percent(row[j]);
    });
  };
  const box = h("div", { class: "tx-sentence" }, h("p", { class: "tx-title" }, "Query: choose a word"), group, title, h("ol", { class: "tx-words", "aria-label": "Keys" }, answers));
  return { paint, listen, box };
}

export default explorer("attention", { build, describe });
