// The positions explorer. `get` maps the name of a trait to its value.

// By how much each hand turns from one position to the next, in radians.
export const speedsOf = (get) => Array.from({ length: get("d_model") / 2 }, (_, i) => get("base") ** (-(2 * i) / get("d_model")));

// Position, hand and shift as shown: the last there is, where the table is smaller than asked.
export function chosenOf(get) {
  const last = get("max_len") - 1;
  return [Math.min(get("position"), last), Math.min(get("hand"), get("d_model") / 2 - 1), Math.min(get("shift"), last)];
}

// The table, rows one after the other: sine and cosine of each hand in turn.
export function tableOf(get) {
  const width = get("d_model"), speeds = speedsOf(get), out = new Float64Array(get("max_len") * width);
  for (let place = 0, at = 0; place < get("max_len"); place++) {
    for (const speed of speeds) {
      out[at++] = Math.sin(place * speed);
      out[at++] = Math.cos(place * speed);
    }
  }
  return out;
}

// The block of R(k) that turns the chosen hand, row after row.
export function rotationOf(get) {
  const [, hand, shift] = chosenOf(get), angle = shift * speedsOf(get)[hand];
  return [Math.cos(angle), Math.sin(angle), -Math.sin(angle), Math.cos(angle)];
}

// Sine and cosine of the chosen hand at its position and k positions later.
export function tipsOf(get) {
  const [place, hand, shift] = chosenOf(get), speed = speedsOf(get)[hand];
  return [place, place + shift].map((p) => [Math.sin(p * speed), Math.cos(p * speed)]);
}

// PE(p) · PE(p + distance) divided by D/2: the mean over hands of the cosine of the angle between them, and that
// is what the table holds for the position that is as far from 0.
export function similarityOf(get, table = tableOf(get)) {
  const width = get("d_model");
  return Float64Array.from({ length: get("max_len") }, (_, distance) => {
    let sum = 0;
    for (let j = 1; j < width; j += 2) sum += table[distance * width + j];
    return (2 * sum) / width;
  });
}

const exact = (x) => number(x, 3);
const tipInWords = ([sine, cosine]) => `(${exact(sine)}, ${exact(cosine)})`;
const turn = (speed) => grouped(((2 * Math.PI) / speed).toFixed(1));

export function describe(get) {
  const [place, hand, shift] = chosenOf(get), speeds = speedsOf(get), n = speeds.length, [here, there] = tipsOf(get).map(tipInWords);
  const alike = speeds.reduce((sum, speed) => sum + Math.cos(shift * speed), 0) / n;
  return `${get("max_len")} positions, ${get("d_model")} dimensions, base ${grouped(get("base"))}: ${n} hands; `
    + `the fastest takes ${turn(speeds[0])} positions for a turn, the slowest ${turn(speeds[n - 1])}. `
    + `Position ${place}: hand ${hand} (dimensions ${2 * hand} and ${2 * hand + 1}, a turn in ${turn(speeds[hand])} positions) `
    + `points to (sine, cosine) = ${here}. R(${shift}) turns it by ${(shift * speeds[hand]).toFixed(3)} radians `
    + `to ${there}, its direction at position ${place + shift}. Positions ${shift} apart: similarity `
    + `${exact(alike)}, dot product ${number(alike * n, 2)} of ${n}.`;
}

// What follows a pressed pointer over an element: shares of its width and height.
function follow(ui, element, use) {
  const go = (event) => {
    const at = element.getBoundingClientRect();
    use(clamp((event.clientX - at.left) / at.width, 0, 1), clamp((event.clientY - at.top) / at.height, 0, 1));
  };
  element.addEventListener("pointerdown", (event) => { element.setPointerCapture(event.pointerId); go(event); });
  element.addEventListener("pointermove", (event) => { if (event.buttons & 1) go(event); });
  element.addEventListener("pointerup", () => ui.done());
}

// The table as a picture, with frames around the chosen row and the two columns of the chosen hand.
function heatmap(ui, tableNow) {
  const canvas = h("canvas", { role: "img", class: "tx-pe" }), row = h("i", { class: "tx-pe-row" }), columns = h("i", { class: "tx-pe-columns" });
  const stage = h("div", { class: "tx-pe-stage" }, canvas, row, columns), at = (x, n) => Math.min(n - 1, Math.floor(x * n));
  follow(ui, stage, (across, down) => {
    ui.set("position", at(down, ui.get("max_len")));
    ui.set("hand", at(across, ui.get("d_model") / 2));
  });
  stage.addEventListener("pointermove", (event) => {
    const box = stage.getBoundingClientRect(), place = at((event.clientY - box.top) / box.height, ui.get("max_len")), j = at((event.clientX - box.left) / box.width, ui.get("d_model"));
    const angle = place * speedsOf(ui.get)[j >> 1];
    ui.tip(place < 0 || j < 0 ? null : `position ${place}, dimension ${j}: ${number(j % 2 ? Math.cos(angle) : Math.sin(angle), 2)}`, event);
  });
  stage.addEventListener("pointerleave", () => ui.tip(null));
  const ends = ["dimension 0", ""].map((words) => h("span", {}, words)), title = h("p", { class: "tx-title" });
  let drawn = "";
  const update = (place, hand) => {
    const [n, width, base] = ["max_len", "d_model", "base"].map(ui.get), theme = ui.theme, key = [n, width, base, theme].join();
    if (key !== drawn) {
      const table = tableNow();
      paintPixels(canvas, { rows: n, cols: width, share: (i, j) => (table[i * width + j] + 1) / 2, theme, color: signedShade });
      stage.style.height = `${Math.max(250, n)}px`;
      drawn = key;
    }
    title.textContent = `The table: ${n} positions down, ${width} dimensions across`;
    ends[1].textContent = String(width - 1);
    Object.assign(row.style, { top: `${(100 * place) / n}%`, height: `${100 / n}%` });
    Object.assign(columns.style, { left: `${(200 * hand) / width}%`, width: `${200 / width}%` });
    canvas.setAttribute("aria-label", `Sinusoidal table of ${n} positions and ${width} dimensions, base ${base}; framed: position ${place}, dimensions ${2 * hand} and ${2 * hand + 1}`);
  };
  update.box = [title, stage, h("div", { class: "tx-pe-axis", "aria-hidden": "true" }, ends), scaleBar(signedShade, "−1", "+1", "value")];
  return update;
}

// The hands of the chosen position, each below its columns where there is room in one line.
function clocks(ui) {
  const title = h("p", { class: "tx-title" }), chart = h("svg", { role: "img", class: "tx-clocks" });
  const rims = h("path", { class: "tx-rim" }), hands = h("path", { class: "tx-hand" }), mark = h("circle", { class: "tx-mark" }), now = h("path", { class: "tx-hand tx-one" }), names = h("g");
  chart.append(rims, hands, mark, now, names);
  let grid;
  chart.addEventListener("click", (event) => {
    const box = chart.getBoundingClientRect(), i = Math.floor((event.clientX - box.left) / grid.cell) + grid.aRow * Math.floor((event.clientY - box.top) / grid.tall);
    if (i >= 0 && i < ui.get("d_model") / 2) ui.save("hand", i);
  });
  const update = (place, hand) => {
    const speeds = speedsOf(ui.get), n = speeds.length, width = chart.parentElement?.clientWidth || 300;
    const cell = Math.max(22, width / n), aRow = Math.floor(width / cell + 1e-9), r = Math.min(cell, 48) / 2 - 2, tall = 2 * r + (cell >= 26 ? 20 : 5);
    grid = { cell, aRow, tall };
    const center = (i) => [((i % aRow) + 0.5) * cell, Math.floor(i / aRow) * tall + r + 2];
    const line = (i) => {
      const [x, y] = center(i), angle = place * speeds[i];
      return `M${x.toFixed(1)} ${y.toFixed(1)}l${(0.86 * r * Math.sin(angle)).toFixed(1)} ${(-0.86 * r * Math.cos(angle)).toFixed(1)}`;
    };
    const every = speeds.map((_, i) => i), [x, y] = center(hand);
    chart.setAttribute("width", width);
    chart.setAttribute("height", Math.ceil(n / aRow) * tall + 2);
    rims.setAttribute("d", every.map((i) => { const [cx, cy] = center(i); return `M${(cx - r).toFixed(1)} ${cy.toFixed(1)}a${r} ${r} 0 1 1 ${2 * r} 0a${r} ${r} 0 1 1 ${-2 * r} 0`; }).join(""));
    hands.setAttribute("d", every.filter((i) => i !== hand).map(line).join(""));
    now.setAttribute("d", line(hand));
    for (const [name, value] of Object.entries({ cx: x, cy: y, r })) mark.setAttribute(name, value);
    names.replaceChildren(...(cell >= 26 ? every.map((i) => h("text", { x: center(i)[0], y: center(i)[1] + r + 13, "text-anchor": "middle", class: i === hand ? "tx-one" : "" }, i)) : []));
    title.textContent = `Position ${place} as ${n} clocks: fast hands first, slow ones last`;
    chart.setAttribute("aria-label", `${n} clocks at position ${place}; hand ${hand}, marked, points to (sine, cosine) = ${tipInWords(tipsOf(ui.get)[0])}`);
  };
  update.box = [title, h("div", { class: "tx-clock-box" }, chart)];
  return update;
}

const matrix = (rows) => h("span", { class: "tx-bracket" }, rows.map((row) => h("span", {}, row.map((x) => h("span", {}, exact(x))))));

// The chosen hand at its position and k positions later, and the same in numbers.
function dial(ui) {
  const title = h("p", { class: "tx-title" }), sum = h("div", { class: "tx-equation", role: "img" });
  const arc = h("path", { class: "tx-arc" }), from = h("line", { class: "tx-from" }), to = h("line", { class: "tx-to" });
  const word = (text, more) => h("text", { "text-anchor": "middle", ...more }, text), labels = [word("", { class: "tx-from" }), word("", { class: "tx-to" })];
  const chart = h("svg", { viewBox: "-130 -124 260 248", class: "tx-dial", "aria-hidden": "true" },
    h("circle", { r: 90, class: "tx-rim" }), h("line", { x1: -90, x2: 90, class: "tx-rule" }), h("line", { y1: -90, y2: 90, class: "tx-rule" }),
    h("text", { x: 56, y: -5, class: "tx-axis" }, "sine"), h("text", { x: -6, y: -70, class: "tx-axis", "text-anchor": "end" }, "cosine"), arc, from, to, labels);
  const note = h("p", { class: "tx-note" });
  const update = (place, hand, shift) => {
    const speed = speedsOf(ui.get)[hand], tips = tipsOf(ui.get), angle = shift * speed, r = rotationOf(ui.get);
    title.textContent = `Hand ${hand}, k = ${shift}: turned by ${shift} · ${speed.toPrecision(3)} = ${angle.toFixed(3)} radians`;
    [from, to].forEach((line, i) => { line.setAttribute("x2", 86 * tips[i][0]); line.setAttribute("y2", -86 * tips[i][1]); });
    const close = Math.hypot(tips[0][0] - tips[1][0], tips[0][1] - tips[1][1]) < 0.45;
    labels.forEach((label, i) => {
      const [x, y] = tips[i], out = close && i ? 128 : 110;
      label.textContent = [place, place + shift][i];
      label.setAttribute("x", out * x);
      label.setAttribute("y", -out * y + 5);
    });
    // More than a whole turn is drawn as a whole turn: the note has their number.
    const turns = Math.min(angle, 2 * Math.PI - 1e-3), start = Math.atan2(...tips[0]), end = start + turns;
    arc.setAttribute("d", `M${40 * Math.sin(start)} ${-40 * Math.cos(start)}A40 40 0 ${turns > Math.PI ? 1 : 0} 1 ${40 * Math.sin(end)} ${-40 * Math.cos(end)}`);
    sum.replaceChildren(h("span", {}, "PE(", h("b", { class: "tx-from" }, place), ")"), matrix([[tips[0][0]], [tips[0][1]]]), h("span", {}, `turned by R(${shift})`), matrix([r.slice(0, 2), r.slice(2)]), h("span", {}, "is PE(", h("b", { class: "tx-to" }, place + shift), ")"), matrix([[tips[1][0]], [tips[1][1]]]));
    sum.setAttribute("aria-label", `R(${shift}), rows (${exact(r[0])}, ${exact(r[1])}) and (${exact(r[2])}, ${exact(r[3])}), times ${tipInWords(tips[0])} is ${tipInWords(tips[1])}`);
    note.textContent = `${angle >= 2 * Math.PI ? `${(angle / (2 * Math.PI)).toFixed(1)} turns. ` : ""}The position does not occur in R(${shift}): change it, and the matrix stays the same.`;
  };
  update.box = [title, h("div", { class: "tx-turned" }, chart, sum), note];
  return update;
}

const LEFT = 34, RIGHT = 392, TOP = 10, BOTTOM = 150;
const Y = (alike) => TOP + ((1 - alike) / 2) * (BOTTOM - TOP);

// Similarity against distance; dragging moves k.
function curve(ui, tableNow) {
  const title = h("p", { class: "tx-title" }), line = h("polyline", { fill: "none" }), marker = h("line", { class: "tx-marker", y1: TOP, y2: BOTTOM }), dot = h("circle", { r: 5.5 });
  const word = (x, y, text, anchor) => h("text", { x, y, "text-anchor": anchor }, text), end = word(RIGHT, BOTTOM + 16, "", "end");
  const chart = h("svg", { viewBox: "0 0 400 170", role: "img", class: "tx-alike" },
    [1, 0, -1].map((alike) => [h("line", { class: "tx-rule", x1: LEFT, x2: RIGHT, y1: Y(alike), y2: Y(alike) }), word(LEFT - 8, Y(alike) + 4, number(alike, 0), "end")]),
    word(LEFT, BOTTOM + 16, "0", "middle"), word((LEFT + RIGHT) / 2, BOTTOM + 16, "distance k in positions", "middle"), end, line, marker, dot);
  follow(ui, chart, (across) => ui.set("shift", Math.round(clamp((across * 400 - LEFT) / (RIGHT - LEFT), 0, 1) * (ui.get("max_len") - 1))));
  let drawn = "", alike;
  const update = (place, hand, shift) => {
    const last = ui.get("max_len") - 1, key = ["max_len", "d_model", "base"].map(ui.get).join(), X = (d) => LEFT + (d / last) * (RIGHT - LEFT);
    if (key !== drawn) {
      alike = similarityOf(ui.get, tableNow());
      line.setAttribute("points", Array.from(alike, (a, d) => `${X(d).toFixed(1)},${Y(a).toFixed(1)}`).join(" "));
      end.textContent = last;
      drawn = key;
    }
    for (const name of ["x1", "x2"]) marker.setAttribute(name, X(shift));
    dot.setAttribute("cx", X(shift));
    dot.setAttribute("cy", Y(alike[shift]));
    title.textContent = `Positions ${shift} apart: similarity ${exact(alike[shift])} (1 = same position)`;
    chart.setAttribute("aria-label", `Similarity of two positions against their distance from 0 to ${last}; at ${shift} it is ${exact(alike[shift])}, the lowest is ${exact(Math.min(...alike))}`);
  };
  update.box = [title, chart, h("p", { class: "tx-note" }, "Similarity is the dot product divided by D/2. It depends on the distance only. Drag over the curve to change k.")];
  return update;
}

// A slider whose end follows the size of the table.
function bounded(ui, key, label, last, which) {
  let input;
  ui.painters.push(() => { input.max = last(); });
  const slider = ui.slider(key, { label, min: 0, max: 1, format: () => String(chosenOf(ui.get)[which]) });
  input = slider.querySelector("input");
  return slider;
}

function build(ui) {
  let known = "", table;
  const tableNow = () => {
    const key = ["max_len", "d_model", "base"].map(ui.get).join();
    if (key !== known) table = tableOf(ui.get);
    known = key;
    return table;
  };
  const parts = [heatmap(ui, tableNow), clocks(ui), dial(ui), curve(ui, tableNow)], toLast = () => ui.get("max_len") - 1;
  ui.show(() => parts.forEach((part) => part(...chosenOf(ui.get))),
    h("p", { class: "tx-invite" }, "Change the position: fast hands spin, slow ones creep. Then change k: the hand turns by one angle, whatever its position."),
    h("div", { class: "tx-row tx-look" }, bounded(ui, "position", "position", toLast, 0), bounded(ui, "shift", "shift k", toLast, 2), bounded(ui, "hand", "hand", () => ui.get("d_model") / 2 - 1, 1)),
    h("div", { class: "tx-row tx-sizes" }, ui.slider("max_len", { label: "max_len", min: 5, max: 18, to: halfSteps, from: halfStepOf }), ui.slider("d_model", { label: "d_model", min: 4, max: 16, to: (x) => 2 * Math.round(halfSteps(x) / 2), from: halfStepOf }),
      ui.slider("base", { label: "base", min: 0.5, max: 8, step: 0.25, to: (x) => Math.round(10 ** x), from: Math.log10, format: grouped })),
    h("div", { class: "tx-positions" }, h("div", {}, parts[0].box, h("div", { class: "tx-below" }, parts[1].box)), h("div", {}, parts[2].box), h("div", {}, parts[3].box)));
}

export default explorer("positions", { build, describe });
