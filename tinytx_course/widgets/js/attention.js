// The attention explorer. `get` maps the name of a trait to its value, buffers as float32.

// The open part: sizes, words, and weights as views into the one buffer.
export function openPart(get) {
  const part = get("part");
  const sizes = get("sizes");
  const [layers, heads, rows, cols] = sizes[part];
  const start = sizes.slice(0, part).reduce((sum, size) => sum + size.reduce((a, b) => a * b, 1), 0);
  const weights = get("weights");
  const masks = get("masks")[part];
  const head = (l, a) =>
    weights.subarray(start + (l * heads + a) * rows * cols, start + (l * heads + a + 1) * rows * cols);
  return {
    layers,
    heads,
    rows,
    cols,
    head,
    queries: get("query_tokens")[part],
    keys: get("key_tokens")[part],
    name: get("names")[part],
    layer: Math.min(get("layer"), layers - 1),
    at: Math.min(get("head"), heads - 1),
    query: Math.min(get("query"), rows - 1),
    row: (l, a, i) => head(l, a).subarray(i * cols, (i + 1) * cols),
    blocked: (i, j) => masks[i][j] === "0",
  };
}

// What a head does, on average over its queries from the third on: the mean weight on the token before, on
// the one two before, on the first, on the query itself and on the next, where both sides are the same
// tokens; else whether it has a favourite.
export function habitsOf(part) {
  const same = part.rows === part.cols && part.queries.every((word, i) => word === part.keys[i]);
  const targets = {
    before: (i) => i - 1,
    "two before": (i) => i - 2,
    first: () => 0,
    itself: (i) => i,
    next: (i) => i + 1,
  };
  const first = part.rows > 2 ? 2 : 0;
  return range(part.layers * part.heads).map((at) => {
    const rows = range(part.rows - first).map((n) =>
      part.row(Math.floor(at / part.heads), at % part.heads, first + n),
    );
    const mean = (f) => rows.reduce((sum, row, n) => sum + (f(row, first + n) ?? 0), 0) / rows.length;
    const found = Object.entries(same ? targets : {})
      .map(([name, of]) => [name, mean((row, i) => row[of(i)])])
      .sort((a, b) => b[1] - a[1])[0];
    const top = mean((row) => Math.max(...row));
    return found && found[1] >= 0.4 ? found : [top >= 0.5 ? "sharp" : "spread", top];
  });
}

// Slots of the small maps: by layer and head, or the heads that do the same next to each other.
export function orderOf(part, byHabit) {
  const habits = habitsOf(part);
  const all = habits.map((_, at) => at);
  const rank = ["before", "two before", "itself", "first", "next", "sharp", "spread"];
  return byHabit
    ? all.sort(
        (a, b) => rank.indexOf(habits[a][0]) - rank.indexOf(habits[b][0]) || habits[b][1] - habits[a][1],
      )
    : all;
}

export const keep = (get) => {
  const most = (axis) => Math.max(...get("sizes").map((size) => size[axis])) - 1;
  return {
    part: [0, get("names").length - 1],
    layer: [0, most(0)],
    head: [0, most(1)],
    query: [0, most(2)],
    by_habit: [0, 1],
  };
};

export function describe(get) {
  const part = openPart(get);
  const { layer, at, query, queries, keys, name } = part;
  const row = part.row(layer, at, query);
  const places = [...keys.keys()];
  const open = places.filter((j) => !part.blocked(query, j)).length;
  const text = `${name[0].toUpperCase()}${name.slice(1)}, layer ${layer}, head ${at}: query ${named(queries, query)} `;
  if (!row.some((w) => w > 0)) return `${text}may attend to nothing.`;
  const most = places
    .sort((a, b) => row[b] - row[a] || a - b)
    .slice(0, 3)
    .filter((j, n) => n === 0 || row[j] >= 0.005);
  const looks = most.map((j) => `${named(keys, j)} ${percent(row[j])}`).join(", ");
  return `${text}attends to ${looks}.\nEntropy ${entropy(row).toFixed(2)} of at most ${Math.log2(open).toFixed(2)} bits over ${open} open keys.`;
}

function build(ui) {
  const body = h("div");
  const parts = ui.get("names");
  const which =
    parts.length > 1
      ? ui.choice("part", { label: "Weights", options: parts.map((name, i) => [i, name]) })
      : null;
  const sort = ui.get("sizes").some(([layers, heads]) => layers * heads > 2)
    ? ui.toggle("by_habit", { label: "sort heads by what they do" })
    : null;
  // a note at the pointer speaks of what was chosen before
  ui.root.addEventListener("keydown", () => ui.tip(null));
  let shape;
  let view;
  ui.paint(() => {
    const part = openPart(ui.get);
    const now = JSON.stringify([part.layers, part.heads, part.queries, part.keys]);
    if (shape !== now) {
      // another part of the same shape is drawn into the same view, so that one sees what changed
      shape = now;
      view = partView(ui, part);
      body.replaceChildren(view.box);
    }
    view.paint(part);
  });
  ui.show(
    h(
      "p.tx-invite",
      "What does a head attend to? Choose a head, then a word: the thicker a line, the more weight.",
    ),
    which || sort ? h("div.tx-row", which, sort) : null,
    body,
  );
}

function partView(ui, part) {
  const thumbs = part.layers * part.heads > 1 ? thumbnails(ui, part) : null;
  const matrix = opened(ui, part);
  const words = wordLines(ui, part);
  const title = h("p.tx-title");
  const grid = h("div.tx-open", matrix.elements, words.elements);
  const panel = h("div.tx-panel", title, grid, scaleBar(shade, "0", "1", "weight"));
  const box = h("div.tx-view", thumbs?.box, panel);
  let shown = null;
  let aim = "";
  const paint = (now) => {
    const { rows, cols, layer, at, query } = now;
    let joined = ui.width >= 560; // the map, next to the words
    let beside = ui.width >= 760; // the heads, next to the map
    // heads in half as many columns, or no room is left for the words; many heads go above
    const crowded = beside && ui.width < 13 * cols + 700;
    beside &&= !crowded || now.heads <= 4;
    const { large } = ui;
    const least = large ? 16 : 13;
    const left = thumbs?.paint(now, beside, crowded && beside) ?? 0;
    const most = widest(ui, part.queries, 700);
    const both = most + widest(ui, part.keys, 400);
    const room = (share) =>
      joined
        ? ui.width - share * both - (large ? 165 : 172) - (beside && left ? left + 24 : 0)
        : ui.width - 74;
    const sizeOf = (share) =>
      clamp(
        Math.floor(Math.min(room(share) / cols, (large ? 330 : joined ? 400 : 264) / Math.max(rows, cols))),
        joined ? least : 3,
        36,
      );
    // In lower rows the letters are smaller.
    const low = large ? 1 : 0.87;
    if (beside && left && !large && room(low) < least * cols) {
      beside = false;
      thumbs.paint(now, false, false);
    }
    joined &&= large || room(low) >= least * cols;
    box.classList.toggle("tx-stacked", !beside);
    box.classList.toggle("tx-apart", !joined);
    const size = sizeOf(low) > 20 ? Math.max(20, sizeOf(1)) : sizeOf(low);
    const asks = size > 20 ? most : low * most;
    const step = Math.max(size, joined ? least : 20);
    const weights = now.head(layer, at);
    const row = now.row(layer, at, query);
    grid.style.setProperty("--cell", `${size}px`);
    grid.style.setProperty("--asks", `${asks}px`);
    grid.style.setProperty("--step", `${step}px`);
    grid.classList.toggle("tx-tiny", size < 12);
    title.textContent = `Layer ${layer}, head ${at}: ${named(now.queries, query)} attends to …`;
    const aims = { weights: Float32Array.from(weights), row: Float32Array.from(row), query };
    const from = shown ?? aims;
    const mix = (a, b, share) => (a.length === b.length ? b.map((x, i) => a[i] + share * (x - a[i])) : b);
    const put = (share) => {
      shown = {
        weights: mix(from.weights, aims.weights, share),
        row: mix(from.row, aims.row, share),
        query: from.query + share * (query - from.query),
      };
      matrix.paint(now, shown, size);
      words.draw(now, shown, step);
    };
    const key = [ui.get("part"), layer, at, query].join();
    if (aim && key !== aim) ui.animate(180, put);
    else put(1);
    words.paint(now);
    grid.classList.remove("tx-low");
    if (large) inSight(ui, grid, key !== aim && query);
    aim = key;
  };
  return { paint, box };
}

// The room that the longest of these words takes.
function widest(ui, words, weight) {
  const pen = h("canvas").getContext("2d");
  pen.font = `${weight} ${ui.large ? 15 : 14}px ${getComputedStyle(ui.root).fontFamily}`;
  return clamp(Math.ceil(Math.max(...words.map((word) => pen.measureText(word).width))) + 16, 40, 160);
}

// On the whole screen the names of the columns give way where not all fits, and the chosen query comes into
// view.
function inSight({ root }, grid, query) {
  if (root.scrollHeight <= root.clientHeight) return;
  grid.classList.add("tx-low");
  if (query === false) return;
  const frame = root.getBoundingClientRect();
  const { top, bottom } = grid.querySelectorAll(".tx-ask")[query].getBoundingClientRect();
  root.scrollTop += Math.max(0, bottom + 30 - frame.bottom) - Math.max(0, frame.top + 80 - top);
}

// All heads small, each with what it does.
function thumbnails(ui, { layers, heads, rows, cols }) {
  const all = layers * heads;
  const canvases = range(all).map(() => h("canvas", { "aria-hidden": "true" }));
  const names = canvases.map(() => h("small"));
  const places = canvases.map(() => h("small"));
  let order = canvases.map((_, i) => i);
  const choose = (slot) => ui.save({ layer: Math.floor(order[slot] / heads), head: order[slot] % heads });
  const buttons = canvases.map((canvas, i) => h("button.tx-thumb", places[i], canvas, names[i]));
  const grid = h(
    "div.tx-thumbs",
    { role: "radiogroup", "aria-label": "Layer and head", style: `--heads:${heads}` },
    buttons,
  );
  const columnsNow = () => +grid.style.getPropertyValue("--heads") || heads;
  const show = radioGroup(grid, buttons, choose, columnsNow);
  const title = h("p.tx-title", h("span", `${counted(all, "head")}: choose one`));
  let painted = "";
  const paint = (part, wide, crowded) => {
    // A head needs room for the word that says what it does.
    const room = wide ? (ui.width > 1000 ? 290 : 216) : Math.min(ui.width, 560);
    let columns = heads;
    while (columns > 4 && room < 54 * columns) columns = Math.ceil(columns / 2);
    const side = clamp(Math.floor(room / columns) - 10, 28, heads > columns ? 44 : 72);
    if (crowded) columns = Math.ceil(columns / 2);
    const open = part.layer * heads + part.at;
    grid.style.setProperty("--heads", columns);
    grid.style.setProperty("--thumb", `${side}px`);
    order = orderOf(part, ui.get("by_habit"));
    show(order.indexOf(open));
    grid.classList.toggle("tx-fine", rows > side);
    const now = [ui.theme, ui.get("part"), ...order].join();
    const habits = habitsOf(part);
    if (painted !== now) {
      canvases.forEach((canvas, slot) => {
        const l = Math.floor(order[slot] / heads);
        const a = order[slot] % heads;
        const weights = part.head(l, a);
        const [habit, share] = habits[order[slot]];
        paintPixels(canvas, {
          rows,
          cols,
          share: (r, c) => weights[r * cols + c],
          blocked: part.blocked,
          theme: ui.theme,
          quiet: true,
        });
        places[slot].textContent = `${l}.${a}`;
        names[slot].textContent = habit.replace("two before", "2 back");
        buttons[slot].ariaLabel = `${l}.${a} ${habit}: layer ${l}, head ${a}, ${percent(share)}`;
      });
    }
    painted = now;
    return Math.max(columns * (side + 10), title.firstChild.offsetWidth);
  };
  return {
    paint,
    box: h(
      "div.tx-panel.tx-heads",
      title,
      grid,
      h(
        "p.tx-habits",
        "Number: layer.head.",
        " Word: where most of its weight goes (the token before, 2 back, itself, the first, the next), else sharp (one other favourite) or spread (none).",
      ),
    ),
  };
}

// The open head: a row for each query. What the pointer says, the words say without it.
function opened(ui, { rows, cols, queries, keys }) {
  const canvas = h("canvas.tx-matrix", { role: "img" });
  const mark = h("div.tx-mark", { "aria-hidden": "true" });
  const across = h(
    "div.tx-across",
    { "aria-hidden": "true" },
    keys.map((token) => h("span", h("span", { title: token }, token))),
  );
  const place = (across_, down) => [
    Math.min(rows - 1, Math.floor(down * rows)),
    Math.min(cols - 1, Math.floor(across_ * cols)),
  ];
  ui.drag(canvas, (...at) => ui.set("query", place(...at)[0]));
  ui.tips(canvas, (event) => {
    const [i, j] = place(...placeIn(canvas, event));
    const part = openPart(ui.get);
    return `${named(queries, i)} attends to ${named(keys, j)}: ${part.blocked(i, j) ? "blocked by the mask" : part.row(part.layer, part.at, i)[j].toFixed(3)}`;
  });
  const paint = (part, shown, size) => {
    mark.style.cssText = `top:${shown.query * size}px;width:${cols * size}px;height:${size}px`;
    paintCells(canvas, {
      rows,
      cols,
      size,
      share: (i, j) => shown.weights[i * cols + j],
      blocked: part.blocked,
      theme: ui.theme,
      numbers: size >= 24,
    });
    canvas.ariaLabel = `Attention weights of layer ${part.layer}, head ${part.at}: ${rows} queries by ${cols} keys. Choose a query among the words to hear its row.`;
  };
  return { paint, elements: [across, h("div.tx-stage", canvas, mark)] };
}

// The sentence twice: who asks on the left, who is attended to on the right, lines between.
function wordLines(ui, { queries, keys }) {
  const asks = queries.map((token, i) =>
    h("button.tx-ask", { "aria-label": `query ${named(queries, i)}` }, token),
  );
  const group = h("div.tx-asks", { role: "radiogroup", "aria-label": "Query" }, asks);
  const show = radioGroup(group, asks, (i) => ui.save("query", i));
  const answers = keys.map((token) =>
    h("li", h("span.tx-key-word", { title: token }, token), h("i"), h("small")),
  );
  const others = h("g.tx-others");
  const own = h("g.tx-own");
  const threads = keys.map(() => h("path"));
  own.append(...threads);
  const svg = h("svg.tx-lines", { "aria-hidden": "true" }, others, own);
  let wide = 96;
  const curve = (i, j, step) =>
    `M0 ${((i + 0.5) * step).toFixed(1)}C${wide / 2} ${((i + 0.5) * step).toFixed(1)} ${wide / 2} ${((j + 0.5) * step).toFixed(1)} ${wide} ${((j + 0.5) * step).toFixed(1)}`;
  let known = "";
  const draw = (part, shown, step) => {
    wide = svg.clientWidth || 96;
    svg.setAttribute("height", Math.max(queries.length, keys.length) * step);
    threads.forEach((thread, j) => {
      thread.setAttribute("d", shown.row[j] < 0.005 ? "" : curve(shown.query, j, step));
      thread.style.strokeWidth = `${(0.4 + 0.55 * Math.min(step, 20) * shown.row[j]).toFixed(2)}px`;
      thread.style.opacity = (0.35 + 0.65 * shown.row[j]).toFixed(3);
    });
    const now = [ui.get("part"), part.layer, part.at, step, wide].join();
    if (now === known) return;
    known = now;
    others.replaceChildren(
      ...queries
        .flatMap((_, i) => keys.map((__, j) => [i, j, part.row(part.layer, part.at, i)[j]]))
        .filter(([, , w]) => w >= 0.15)
        .map(([i, j, w]) => h("path", { d: curve(i, j, step), style: `opacity:${(0.3 * w).toFixed(2)}` })),
    );
  };
  const paint = (part) => {
    const row = part.row(part.layer, part.at, part.query);
    const theme = ui.theme;
    show(part.query);
    answers.forEach((answer, j) => {
      const [word, bar, number] = answer.children;
      const off = part.blocked(part.query, j);
      const color = shade(row[j], theme);
      answer.classList.toggle("tx-blocked", off);
      word.style.cssText = off || row[j] < 0.005 ? "" : `background:${rgb(color)};color:${inkOn(color)}`;
      bar.style.width = `${off ? 0 : 100 * row[j]}%`;
      number.textContent = off ? "blocked" : row[j] < 0.005 ? "" : percent(row[j]);
    });
  };
  return {
    paint,
    draw,
    elements: [group, svg, h("ol.tx-answers", { "aria-label": "Keys" }, answers)],
  };
}

export default explorer("attention", { build, describe, keep });
