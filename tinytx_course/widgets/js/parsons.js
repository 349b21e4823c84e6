// The Parsons problem: lines to be ordered, indented and, where two share a row, chosen. `get` maps the name
// of a trait to its value.

const quoted = (text) => `“${text}”`;

// The rows from top to bottom. Of rows with the same text the upper one counts as the earlier line.
export function rowsOf(get) {
  const blocks = get("blocks");
  const order = get("order");
  const twins = new Map();
  blocks.forEach(({ right }, id) => twins.set(right, [...(twins.get(right) ?? []), id]));
  return order.map((id, i) => {
    const block = blocks[id];
    const picked = get("picked")[id];
    const meant = blocks[twins.get(block.right).shift()];
    const text = picked < 0 ? `${block.right} / ${block.wrong}` : picked ? block.wrong : block.right;
    return {
      id,
      number: i + 1,
      text,
      picked,
      why: block.why,
      indent: get("indents")[id],
      meant: blocks.indexOf(meant),
      rank: meant.slot,
      free: meant.free ?? [],
      depth: meant.indent,
    };
  });
}

// The indices of a long part of the rows in which each may come after all before it: all others are out of
// order. Where rows are not free it is a longest one, whose ranks do not decrease.
export function inOrder(rows) {
  const best = [];
  rows.forEach((row, i) => {
    let longest = [];
    for (let j = 0; j < i; j++)
      if (best[j].length > longest.length && best[j].every((k) => mayFollow(rows[k], row))) longest = best[j];
    best.push([...longest, i]);
  });
  return best.reduce((a, b) => (b.length > a.length ? b : a), []);
}

const mayFollow = (above, row) => above.rank <= row.rank || above.free.includes(row.meant);

// What a check says: `mistake` names its kind ("" where all is right), `line` the row it is about.
export function verdictOf(get) {
  const rows = rowsOf(get);
  const say = (mistake, row, text) => ({ mistake, line: row.number, text });
  const open = rows.find(({ picked }) => picked < 0);
  if (open) return say("open", open, `Not yet. Line ${open.number} is a pair: choose one of its two lines.`);
  const wrong = rows.filter(({ picked }) => picked === 1);
  if (wrong.length) {
    const more =
      wrong.length > 1 ? ` Of the pairs, ${wrong.length} are chosen wrongly; this is the first.` : "";
    return say(
      "pair",
      wrong[0],
      `Not yet. Line ${wrong[0].number}: of the two, ${quoted(wrong[0].text)} is wrong. ${wrong[0].why}${more}`,
    );
  }
  const fits = inOrder(rows);
  const out = rows.findIndex((_, i) => !fits.includes(i));
  if (out >= 0) {
    const early = fits.some((i) => i > out && !mayFollow(rows[out], rows[i]));
    const which = early
      ? "too early: a line below it must come first"
      : "too late: it must come before a line above it";
    return say(
      "order",
      rows[out],
      `Not yet. Line ${rows[out].number}, ${quoted(rows[out].text)}, comes ${which}.`,
    );
  }
  const askew = rows.find(({ indent, depth }) => indent !== depth);
  if (askew) {
    const way = askew.indent > askew.depth ? "too far to the right" : "too far to the left";
    return say(
      "indent",
      askew,
      `Not yet. The order is right. Line ${askew.number}, ${quoted(askew.text)}, is ${way}: its indentation is ${counted(askew.indent, "level")}.`,
    );
  }
  return {
    mistake: "",
    line: 0,
    text: `Right: all ${rows.length} lines are chosen, ordered and indented as they should be.`,
  };
}

function isMoved(get) {
  return rowsOf(get).some(
    ({ id, indent, picked }, i) =>
      id !== get("start")[i] || indent || picked > 0 || (get("blocks")[id].wrong && picked === 0),
  );
}

const isChecked = (get) => ["check", "right"].includes(get("report"));

export function describe(get) {
  const rows = rowsOf(get);
  const held = rows.find(({ id }) => id === get("held"));
  if (get("report") === "solution") return "This is the solution. “Start again” shuffles the lines.";
  if (isChecked(get)) return verdictOf(get).text;
  const open = rows.filter(({ picked }) => picked < 0).length;
  const left = open ? ` Pairs to choose from: ${open}.` : "";
  if (!held || !isMoved(get)) return `${rows.length} lines to be ordered and indented.${left}`;
  return `Line ${held.number} of ${rows.length}: ${quoted(held.text)}, indented by ${counted(held.indent, "level")}.${left}`;
}

const STEPS = { ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1] };
const LEVEL = 28; // pixels of a drag to the side that make one level

// Change the state of the learner; what a check said no longer holds.
const change = (ui, key, value) => ui.save({ report: "", [key]: value });

function put(ui, id, at) {
  const order = ui.get("order");
  const next = order.filter((other) => other !== id);
  next.splice(clamp(at, 0, next.length), 0, id);
  if (next.some((other, i) => other !== order[i])) change(ui, "order", next);
}

function indentRow(ui, id, level) {
  const deepest = 1 + Math.max(...ui.get("blocks").map((block) => block.indent));
  const to = clamp(level, 0, deepest);
  if (to !== ui.get("indents")[id]) change(ui, "indents", ui.get("indents").with(id, to));
}

// The grip moves its row, by keys or by pointer.
function grip(ui, id, boxes) {
  let from = null;
  const button = h("button.tx-grip", {
    onfocus: () => ui.set("held", id),
    onkeydown(event) {
      const step = STEPS[event.key];
      if (!step || event.ctrlKey || event.metaKey || event.altKey) return;
      event.preventDefault();
      if (step[0]) put(ui, id, ui.get("order").indexOf(id) + step[0]);
      else indentRow(ui, id, ui.get("indents")[id] + step[1]);
    },
    onpointerdown(event) {
      if (event.button) return;
      button.focus();
      button.setPointerCapture(event.pointerId);
      from = { x: event.clientX, level: ui.get("indents")[id] };
    },
    onpointermove(event) {
      if (!from) return;
      const middle = (other) => {
        const box = boxes[other].getBoundingClientRect();
        return box.top + box.height / 2;
      };
      put(ui, id, ui.get("order").filter((other) => other !== id && middle(other) < event.clientY).length);
      indentRow(ui, id, from.level + Math.round((event.clientX - from.x) / LEVEL));
    },
    onpointerup() {
      from = null;
    },
    onpointercancel() {
      from = null;
    },
  });
  return button;
}

// What a row says: one line, or two of which one is chosen.
function lineOf(ui, block, id) {
  if (!block.wrong) return { box: h("code", block.right), inputs: [] };
  const name = uid();
  const texts = [block.right, block.wrong];
  const values = block.wrong_first ? [1, 0] : [0, 1];
  const inputs = values.map((value) =>
    h("input", {
      type: "radio",
      name,
      value,
      onfocus: () => ui.set("held", id),
      onchange: () => change(ui, "picked", ui.get("picked").with(id, value)),
    }),
  );
  const options = inputs.map((input, i) =>
    h("span.tx-option", input, labelled(input, h("code", texts[values[i]]))),
  );
  return {
    box: h("div.tx-pair", { role: "radiogroup", "aria-label": "Choose one of the two" }, options),
    inputs,
  };
}

// Bring the rows into an order. The held one, which may have the focus or the pointer, is not moved: the
// others are.
function arrange(list, boxes, order, held) {
  if (order.every((id, i) => list.children[i] === boxes[id])) return;
  const at = order.indexOf(held);
  order.forEach((id, i) => {
    if (i < at) list.insertBefore(boxes[id], boxes[held]);
    else if (i > at) list.append(boxes[id]);
  });
}

function build(ui) {
  const blocks = ui.get("blocks");
  const boxes = [];
  const grips = blocks.map((_, id) => grip(ui, id, boxes));
  const lines = blocks.map((block, id) => lineOf(ui, block, id));
  blocks.forEach((_, id) => boxes.push(h("li", grips[id], h("div.tx-line", lines[id].box))));
  const list = h("ol.tx-lines", boxes);
  const ids = blocks.map((_, id) => id);
  const solution = pushButton("Show the solution", () =>
    ui.save({
      order: ids,
      indents: blocks.map((block) => block.indent),
      picked: ids.map(() => 0),
      held: -1,
      report: "solution",
    }),
  );
  solution.hidden = true;
  const buttons = h(
    "div.tx-row.tx-buttons",
    pushButton("Check", () => {
      const isRight = verdictOf(ui.get).mistake === "";
      ui.save("report", isRight ? "right" : "check"); // Python hears of it
      if (isRight) remember(`task:${ui.get("title")}`, true);
    }),
    pushButton("Start again", () =>
      ui.save({
        order: ui.get("start"),
        indents: ids.map(() => 0),
        picked: blocks.map(({ wrong }) => (wrong ? -1 : 0)),
        held: -1,
        report: "",
      }),
    ),
    solution,
  );
  ui.paint(() => {
    if (ui.get("report") && isMoved(ui.get)) solution.hidden = false; // after the first try
    const verdict = isChecked(ui.get) ? verdictOf(ui.get) : { line: 0, mistake: null };
    arrange(list, boxes, ui.get("order"), ui.get("held"));
    rowsOf(ui.get).forEach(({ id, number, text, indent: level }) => {
      grips[id].textContent = `⠿ ${number}`;
      grips[id].ariaLabel =
        `Line ${number}, ${text}, indented by ${counted(level, "level")}: move with the arrow keys`;
      boxes[id].style.setProperty("--level", level);
      boxes[id].classList.toggle("tx-named", number === verdict.line);
      boxes[id].classList.toggle("tx-held", id === ui.get("held"));
      lines[id].inputs.forEach((input) => {
        input.checked = ui.get("picked")[id] === +input.value;
      });
    });
    ui.root.classList.toggle("tx-solved", verdict.mistake === "");
  });
  ui.show(
    h("p.tx-title", marked(ui.get("task"))),
    h(
      "p.tx-invite",
      "Drag a line by its number, up or down to order it, to the side to indent it. By keyboard: Tab to the number, then the arrow keys. Of two lines in a row choose the right one.",
    ),
    list,
    buttons,
  );
}

export default explorer("parsons", { build, describe });
