// The positions explorer. `get` maps the name of a trait to its value.

// By how much each hand turns from one position to the next, in radians.
export const speedsOf = (get) =>
  range(get("d_model") / 2).map((i) => get("base") ** (-(2 * i) / get("d_model")));

// Position, hand and shift as shown: the last there is, where the table is smaller than asked.
export function chosenOf(get) {
  const last = get("max_len") - 1;
  return [
    Math.min(get("position"), last),
    Math.min(get("hand"), get("d_model") / 2 - 1),
    Math.min(get("shift"), last),
  ];
}

// The table, rows one after the other: sine and cosine of each hand in turn.
export function tableOf(get) {
  const width = get("d_model");
  const speeds = speedsOf(get);
  const out = new Float64Array(get("max_len") * width);
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
  const [, hand, shift] = chosenOf(get);
  const angle = shift * speedsOf(get)[hand];
  return [Math.cos(angle), Math.sin(angle), -Math.sin(angle), Math.cos(angle)];
}

// Sine and cosine of the chosen hand at its position and k positions later.
export function tipsOf(get, place = chosenOf(get)[0]) {
  const [, hand, shift] = chosenOf(get);
  const speed = speedsOf(get)[hand];
  return [place, place + shift].map((p) => [Math.sin(p * speed), Math.cos(p * speed)]);
}

// PE(p) · PE(p + distance) divided by D/2: the mean over hands of the cosine of the angle between them, and
// that is what the table holds for the position that is as far from 0.
export function similarityOf(get, table = tableOf(get)) {
  const width = get("d_model");
  return Float64Array.from({ length: get("max_len") }, (_, distance) => {
    let sum = 0;
    for (let j = 1; j < width; j += 2) sum += table[distance * width + j];
    return (2 * sum) / width;
  });
}

// Rotary positions: the two numbers of a query and of a key that the chosen hand turns, before any turn.
export const CONTENT = { q: [0.3, 0.9], k: [0.8, 0.45] };
const turned = ([a, b], angle) => [
  a * Math.cos(angle) + b * Math.sin(angle),
  b * Math.cos(angle) - a * Math.sin(angle),
];

// The query at the chosen position and the key k positions later, turned, and their product.
export function rotaryOf(get, place = chosenOf(get)[0]) {
  const [, hand, shift] = chosenOf(get);
  const speed = speedsOf(get)[hand];
  const q = turned(CONTENT.q, place * speed);
  const k = turned(CONTENT.k, (place + shift) * speed);
  return { q, k, score: q[0] * k[0] + q[1] * k[1] };
}

// What the dial shows of them, in either mode.
function dialled(get, place) {
  const { q, k } = rotaryOf(get, place);
  return get("mode") === "rotary" ? [q, k] : tipsOf(get, place);
}

// That product at each distance: it depends on nothing else.
export const scoresOf = (get) =>
  Float64Array.from({ length: get("max_len") }, (_, distance) => {
    const k = turned(CONTENT.k, distance * speedsOf(get)[chosenOf(get)[1]]);
    return CONTENT.q[0] * k[0] + CONTENT.q[1] * k[1];
  });

export const keep = () => ({
  max_len: [2, 512],
  d_model: (width) => width >= 2 && width <= 256 && width % 2 === 0,
  base: [2, 1e9],
  position: [0, 511],
  hand: [0, 127],
  shift: [0, 511],
  mode: ["added", "rotary"],
});

const exact = (x) => number(x, 3);
const tipInWords = ([sine, cosine]) => `(${exact(sine)}, ${exact(cosine)})`;
const turn = (speed) => grouped(((2 * Math.PI) / speed).toFixed(1));

export function describe(get) {
  const [place, hand, shift] = chosenOf(get);
  const speeds = speedsOf(get);
  const n = speeds.length;
  const [here, there] = tipsOf(get).map(tipInWords);
  const alike = speeds.reduce((sum, speed) => sum + Math.cos(shift * speed), 0) / n;
  const sizes =
    `${get("max_len")} positions, ${get("d_model")} dimensions, base ${grouped(get("base"))}: ${n} hands; ` +
    `the fastest takes ${turn(speeds[0])} positions for a turn, the slowest ${turn(speeds[n - 1])}. `;
  const which = `hand ${hand} (dimensions ${2 * hand} and ${2 * hand + 1}, a turn in ${turn(speeds[hand])} positions) `;
  const beyond =
    place + shift >= get("max_len")
      ? ` Position ${place + shift} is beyond the table; the hands turn on all the same.`
      : "";
  if (get("mode") === "rotary") {
    const { q, k, score } = rotaryOf(get);
    return (
      `Query and key ${shift} apart: their product is ${exact(score)} at every position, as it depends on the distance alone.\n` +
      `${sizes}Rotary: ${which}turns the query at position ${place} to ${tipInWords(q)} and the key at position ${place + shift} to ${tipInWords(k)}.${beyond}`
    );
  }
  // The finding holds at every position, so that it is true while Play runs, too.
  return (
    `Wherever they are, two positions ${shift} apart have similarity ${exact(alike)} and dot product ${number(alike * n, 2)} of ${n}.\n` +
    `${sizes}Position ${place}: ${which}points to (sine, cosine) = ${here}. R(${shift}) turns it by ${(shift * speeds[hand]).toFixed(3)} radians ` +
    `to ${there}, its direction at position ${place + shift}.${beyond}`
  );
}

// The table as a picture, with frames around the chosen row and the two columns of the chosen hand.
function heatmap(ui, tableNow) {
  const canvas = h("canvas.tx-pe", { role: "img" });
  const row = h("i.tx-pe-row");
  const columns = h("i.tx-pe-columns");
  const hovered = h("i.tx-pe-columns.tx-pe-hover", { hidden: true });
  const stage = h("div.tx-pe-stage", canvas, hovered, row, columns);
  const at = (x, n) => Math.min(n - 1, Math.floor(x * n));
  ui.drag(stage, (across, down) =>
    ui.set({ position: at(down, ui.get("max_len")), hand: at(across, ui.get("d_model") / 2) }),
  );
  ui.tips(stage, (event) => {
    const [across, down] = placeIn(stage, event);
    const place = at(down, ui.get("max_len"));
    const j = at(across, ui.get("d_model"));
    const angle = place * speedsOf(ui.get)[j >> 1];
    return `position ${place}, dimension ${j}: ${number(j % 2 ? Math.cos(angle) : Math.sin(angle), 2)}`;
  });
  const ends = ["dimension 0", ""].map((words) => h("span", words));
  const title = h("p.tx-title");
  const frame = ({ style }, hand) => {
    const width = ui.get("d_model");
    Object.assign(style, { left: `${(200 * hand) / width}%`, width: `${200 / width}%` });
  };
  let drawn = "";
  const update = (place, hand) => {
    const [n, width, base] = ["max_len", "d_model", "base"].map(ui.get);
    const theme = ui.theme;
    const key = [n, width, base, theme].join();
    if (key !== drawn) {
      const table = tableNow();
      paintPixels(canvas, {
        rows: n,
        cols: width,
        share: (i, j) => (table[i * width + j] + 1) / 2,
        theme,
        color: signedShade,
      });
      canvas.classList.toggle("tx-fine", n > 230);
      drawn = key;
    }
    title.textContent =
      ui.get("mode") === "rotary"
        ? `Sine and cosine of each turn: ${n} positions × ${width}`
        : `The table: ${n} positions down, ${width} dimensions across`;
    ends[1].textContent = String(width - 1);
    Object.assign(row.style, { top: `${(100 * place) / n}%`, height: `${100 / n}%` });
    frame(columns, hand);
    canvas.ariaLabel = `Sinusoidal table of ${n} positions and ${width} dimensions, base ${base}; framed: position ${Math.round(place)}, dimensions ${2 * hand} and ${2 * hand + 1}`;
  };
  update.point = (hand) => {
    hovered.hidden = hand === null;
    frame(hovered, hand);
  };
  update.box = [
    title,
    stage,
    h(
      "div.tx-pe-axis",
      { "aria-hidden": "true" },
      ends[0],
      scaleBar(signedShade, "−1", "+1", "value"),
      ends[1],
    ),
  ];
  return update;
}

// The hands of the chosen position, each below its columns where there is room in one line.
function clocks(ui, point) {
  const title = h("p.tx-title");
  const chart = h("svg.tx-clocks", { role: "img" });
  const rims = h("path.tx-rim");
  const hands = h("path.tx-hand");
  const mark = h("circle.tx-mark");
  const now = h("path.tx-hand.tx-one");
  const names = h("g");
  chart.append(rims, hands, mark, now, names);
  let grid;
  const handAt = (event) => {
    const [across, down] = placeIn(chart, event);
    const column = Math.min(grid.aRow - 1, Math.floor((across * grid.width) / grid.cell));
    const i = column + grid.aRow * Math.floor((down * grid.high) / grid.tall);
    return i < ui.get("d_model") / 2 ? i : null;
  };
  chart.addEventListener("click", (event) => {
    const i = handAt(event);
    if (i !== null) ui.save("hand", i);
  });
  ui.tips(chart, (event) => {
    const i = handAt(event);
    point(i);
    if (i === null) return null;
    return `hand ${i}: dimensions ${2 * i} and ${2 * i + 1}, a turn in ${turn(speedsOf(ui.get)[i])} positions`;
  });
  chart.addEventListener("pointerleave", () => point(null));
  const update = (place, hand) => {
    const speeds = speedsOf(ui.get);
    const n = speeds.length;
    const width = chart.parentElement?.clientWidth || 300;
    const aRow = Math.ceil(n / Math.ceil((n * (n > 64 ? 15 : 26)) / width));
    const cell = Math.min(width / aRow, 60);
    const r = Math.min(cell, 48) / 2 - 2;
    const tall = 2 * r + (cell >= 26 ? 20 : 5);
    grid = { cell, aRow, tall, width, high: Math.ceil(n / aRow) * tall + 2 };
    const center = (i) => [((i % aRow) + 0.5) * cell, Math.floor(i / aRow) * tall + r + 2];
    const line = (i) => {
      const [x, y] = center(i);
      const angle = place * speeds[i];
      return `M${x.toFixed(1)} ${y.toFixed(1)}l${(0.86 * r * Math.sin(angle)).toFixed(1)} ${(-0.86 * r * Math.cos(angle)).toFixed(1)}`;
    };
    const every = speeds.map((_, i) => i);
    const [x, y] = center(hand);
    setAll(chart, { width, height: grid.high });
    rims.setAttribute(
      "d",
      every
        .map((i) => {
          const [cx, cy] = center(i);
          return `M${(cx - r).toFixed(1)} ${cy.toFixed(1)}a${r} ${r} 0 1 1 ${2 * r} 0a${r} ${r} 0 1 1 ${-2 * r} 0`;
        })
        .join(""),
    );
    hands.setAttribute(
      "d",
      every
        .filter((i) => i !== hand)
        .map(line)
        .join(""),
    );
    now.setAttribute("d", line(hand));
    setAll(mark, { cx: x, cy: y, r });
    names.replaceChildren(
      ...(cell >= 26
        ? every.map((i) =>
            lettering(center(i)[0], center(i)[1] + r + 13, i, "middle", {
              class: i === hand ? "tx-one" : "",
            }),
          )
        : []),
    );
    const [at] = chosenOf(ui.get); // as the slider says, while the hands are on their way
    title.textContent =
      ui.get("mode") === "rotary"
        ? `Turns of q and k at position ${at}, the fastest first`
        : `Position ${at} as ${n} clocks, the fastest first`;
    chart.ariaLabel = `${n} clocks at position ${at}; hand ${hand}, marked, points to (sine, cosine) = ${tipInWords(tipsOf(ui.get)[0])}`;
  };
  update.box = [title, h("div.tx-clock-box", chart)];
  return update;
}

const matrix = (rows) =>
  h(
    "span.tx-bracket",
    rows.map((row) =>
      h(
        "span",
        row.map((x) => h("span", exact(x))),
      ),
    ),
  );

// The chosen hand at its position and k positions later, or the query and the key it turns; both can be
// dragged.
function dial(ui) {
  const title = h("p.tx-title");
  const sum = h("div.tx-equation", { role: "img" });
  const arc = h("path.tx-arc");
  const ghosts = [h("line.tx-ghost.tx-from"), h("line.tx-ghost.tx-to")];
  const lines = ["tx-from", "tx-to"].map((name) => h("line", { class: name }));
  const grips = ["tx-from", "tx-to"].map((name) => h("circle", { r: 8, class: `tx-grip ${name}` }));
  const labels = ["tx-from", "tx-to"].map((name) => h("text", { "text-anchor": "middle", class: name }));
  const chart = h(
    "svg.tx-dial",
    { viewBox: "-130 -124 260 248", "aria-hidden": "true" },
    h("circle.tx-rim", { r: 90 }),
    h("line.tx-rule", { x1: -90, x2: 90 }),
    h("line.tx-rule", { y1: -90, y2: 90 }),
    ghosts,
    arc,
    lines,
    grips,
    labels,
  );
  const note = h("p.tx-note");
  turning(ui, chart);
  const update = (place, hand, shift) => {
    const rotary = ui.get("mode") === "rotary";
    const speed = speedsOf(ui.get)[hand];
    const angle = shift * speed;
    const [here] = chosenOf(ui.get);
    const tips = dialled(ui.get, place);
    title.textContent = rotary
      ? `Rotary, hand ${hand}: turn q and k by their positions`
      : `Hand ${hand}, turned by k · w = ${shift} · ${speed.toPrecision(3)} = ${angle.toFixed(3)} radians`;
    const long = tips.map(([x, y]) => Math.hypot(x, y));
    const close = Math.hypot(tips[0][0] - tips[1][0], tips[0][1] - tips[1][1]) < 0.45;
    tips.forEach(([x, y], i) => {
      setAll(lines[i], { x2: (86 * x).toFixed(2), y2: (-86 * y).toFixed(2) });
      setAll(grips[i], { cx: (80 * x).toFixed(2), cy: (-80 * y).toFixed(2) });
      const out = (close && i ? 126 : 108) / long[i];
      const bare = CONTENT["qk"[i]];
      labels[i].textContent = `${rotary ? "qk"[i] : ""}${here + i * shift}`;
      setAll(labels[i], { x: (out * x).toFixed(1), y: (5 - out * y).toFixed(1) });
      setAll(ghosts[i], rotary ? { x2: 86 * bare[0], y2: -86 * bare[1] } : { x2: 0, y2: 0 });
    });
    // From hand to hand; more than a whole turn is drawn as a whole turn: the note has their number.
    const start = Math.atan2(...tips[0]);
    const full = 2 * Math.PI;
    const between = rotary
      ? (((Math.atan2(...tips[1]) - start) % full) + full) % full
      : Math.min(angle, full - 1e-3);
    const end = start + between;
    arc.setAttribute(
      "d",
      `M${40 * Math.sin(start)} ${-40 * Math.cos(start)}A40 40 0 ${between > Math.PI ? 1 : 0} 1 ${40 * Math.sin(end)} ${-40 * Math.cos(end)}`,
    );
    (rotary ? rotaryNumbers : addedNumbers)(ui, sum);
    sum.append(
      h(
        "span.tx-axes",
        rotary ? `dial: ↑ dimension ${2 * hand + 1}, → ${2 * hand}` : "dial: ↑ cosine, → sine",
      ),
    );
    note.textContent = rotary
      ? "Play: both turn alike, the score stays. Faint: before the turn."
      : `${angle >= full ? `${(angle / full).toFixed(1)} turns. ` : ""}Play: R(${shift}) stays the same at every position.`;
  };
  update.box = [title, h("div.tx-turned", h("div.tx-dial-box", chart), sum), note];
  return update;
}

// A hand that is dragged takes the position along, or k: whichever was nearer to the pointer.
function turning(ui, chart) {
  const angleAt = (event) => {
    const [across, down] = placeIn(chart, event);
    return Math.atan2(across * 260 - 130, 124 - down * 248);
  };
  const apart = (a, b) => Math.atan2(Math.sin(a - b), Math.cos(a - b));
  let key = null;
  let last = 0;
  let exactly = 0;
  chart.addEventListener("pointerdown", (event) => {
    const [place, , shift] = chosenOf(ui.get);
    last = angleAt(event);
    const [one, other] = dialled(ui.get).map((tip) => Math.abs(apart(last, Math.atan2(...tip))));
    [key, exactly] = other < one ? ["shift", shift] : ["position", place];
    chart.setPointerCapture(event.pointerId);
  });
  chart.addEventListener("pointermove", (event) => {
    if (!key || !(event.buttons & 1)) return;
    const now = angleAt(event);
    const [, hand] = chosenOf(ui.get);
    exactly = clamp(exactly + apart(now, last) / speedsOf(ui.get)[hand], 0, ui.get("max_len") - 1);
    last = now;
    ui.set(key, Math.round(exactly));
  });
  chart.addEventListener("pointerup", () => {
    key = null;
    ui.done();
  });
}

function addedNumbers(ui, sum) {
  const [place, , shift] = chosenOf(ui.get);
  const tips = tipsOf(ui.get);
  const r = rotationOf(ui.get);
  sum.replaceChildren(
    h("span", `R(${shift})`),
    matrix([r.slice(0, 2), r.slice(2)]),
    h("span", "· PE(", h("b.tx-from", place), ")"),
    matrix([[tips[0][0]], [tips[0][1]]]),
    h("span", "= PE(", h("b.tx-to", place + shift), ")"),
    matrix([[tips[1][0]], [tips[1][1]]]),
  );
  sum.ariaLabel = `R(${shift}), rows (${exact(r[0])}, ${exact(r[1])}) and (${exact(r[2])}, ${exact(r[3])}), times ${tipInWords(tips[0])} is ${tipInWords(tips[1])}`;
}

function rotaryNumbers(ui, sum) {
  const [place, , shift] = chosenOf(ui.get);
  const { q, k, score } = rotaryOf(ui.get);
  sum.replaceChildren(
    h("span", "R(", h("b.tx-from", place), ") q"),
    matrix([[q[0]], [q[1]]]),
    h("span", "R(", h("b.tx-to", place + shift), ") k"),
    matrix([[k[0]], [k[1]]]),
    h("span", "score q·k"),
    h("b.tx-score", exact(score)),
  );
  sum.ariaLabel = `The turned query ${tipInWords(q)} times the turned key ${tipInWords(k)} is ${exact(score)}`;
}

const LEFT = 34;
const RIGHT = 392;
const TOP = 8;
const BOTTOM = 88;
const Y = (alike) => TOP + ((1 - alike) / 2) * (BOTTOM - TOP);

// Similarity against distance; dragging moves k.
function curve(ui, tableNow) {
  const note = h("p.tx-note");
  const title = h("p.tx-title");
  const line = h("polyline", { fill: "none" });
  const marker = h("line.tx-marker", { y1: TOP, y2: BOTTOM });
  const dot = h("circle", { r: 5.5 });
  const end = lettering(RIGHT, BOTTOM + 16, "", "end");
  const chart = h(
    "svg.tx-alike",
    { viewBox: "0 0 400 108", role: "img" },
    [1, 0, -1].map((level) => [
      h("line.tx-rule", { x1: LEFT, x2: RIGHT, y1: Y(level), y2: Y(level) }),
      lettering(LEFT - 8, Y(level) + 4, number(level, 0), "end"),
    ]),
    lettering(LEFT, BOTTOM + 16, "0", "middle"),
    lettering((LEFT + RIGHT) / 2, BOTTOM + 16, "distance k in positions", "middle"),
    end,
    line,
    marker,
    dot,
  );
  ui.drag(chart, (across) => {
    const share = clamp((across * 400 - LEFT) / (RIGHT - LEFT), 0, 1);
    ui.set("shift", Math.round(share * (ui.get("max_len") - 1)));
  });
  let drawn = "";
  let alike;
  const update = (_place, hand, shift) => {
    const last = ui.get("max_len") - 1;
    const rotary = ui.get("mode") === "rotary";
    const key = [...["max_len", "d_model", "base", "mode"].map(ui.get), rotary && hand].join();
    const X = (d) => LEFT + (d / last) * (RIGHT - LEFT);
    if (key !== drawn) {
      alike = rotary ? scoresOf(ui.get) : similarityOf(ui.get, tableNow());
      line.setAttribute(
        "points",
        Array.from(alike, (a, d) => `${X(d).toFixed(1)},${Y(a).toFixed(1)}`).join(" "),
      );
      end.textContent = last;
      drawn = key;
    }
    setAll(marker, { x1: X(shift), x2: X(shift) });
    setAll(dot, { cx: X(shift), cy: Y(alike[shift]) });
    title.textContent = rotary
      ? `q and k ${shift} apart: score ${exact(alike[shift])} of hand ${hand}`
      : `Positions ${shift} apart: similarity ${exact(alike[shift])} (1 = the same)`;
    note.textContent = rotary
      ? "The score of this one hand. Drag to change k."
      : "It depends on the distance only. Drag to change k.";
    chart.ariaLabel = `${rotary ? "Score of the turned q and k" : "Similarity of two positions"} against their distance from 0 to ${last}; at ${shift} it is ${exact(alike[shift])}, the lowest is ${exact(Math.min(...alike))}`;
  };
  update.box = [title, chart, note];
  return update;
}

function build(ui) {
  let known = "";
  let table;
  const tableNow = () => {
    const key = ["max_len", "d_model", "base"].map(ui.get).join();
    if (key !== known) table = tableOf(ui.get);
    known = key;
    return table;
  };
  const map = heatmap(ui, tableNow);
  const parts = [map, clocks(ui, map.point), dial(ui), curve(ui, tableNow)];
  const last = () => ui.get("max_len") - 1;
  // The end of these sliders follows the size of the table.
  const bounded = (key, label, max, which) =>
    ui.slider(key, { label, min: 0, max, format: () => String(chosenOf(ui.get)[which]) });
  // Hands turn to where they are to be; what is written says at once where that is.
  let shown = null;
  ui.paint(() => {
    const [place, ...rest] = chosenOf(ui.get);
    const from = shown ?? place;
    const put = (share) => {
      shown = place - (1 - share) * (place - from);
      parts.forEach((part) => part(shown, ...rest));
    };
    if (from !== place && Math.abs(place - from) < 4) ui.animate(110, put);
    else put(1);
  });
  const play = ui.player({
    label: "Play",
    every: 130,
    step: () => ui.set("position", (chosenOf(ui.get)[0] + 1) % ui.get("max_len")),
  });
  // At first sight three sliders are enough.
  const sizes = further(
    "Base and size",
    ui.slider("base", {
      label: "base",
      min: 0.5,
      max: 8,
      step: 0.25,
      to: (x) => Math.round(10 ** x),
      from: Math.log10,
      format: grouped,
    }),
    ui.slider("max_len", { label: "max_len", min: 5, max: 18, to: halfSteps, from: halfStepOf }),
    ui.slider("d_model", {
      label: "d_model",
      min: 4,
      max: 16,
      to: (x) => 2 * Math.round(halfSteps(x) / 2),
      from: halfStepOf,
    }),
  );
  ui.show(
    h("p.tx-invite", "Press Play, choose a clock, or drag a hand. What stays the same at every position?"),
    h(
      "div.tx-row.tx-look",
      play,
      bounded("position", "position", last, 0),
      bounded("shift", "shift k", last, 2),
      bounded("hand", "hand", () => ui.get("d_model") / 2 - 1, 1),
      ui.choice("mode", {
        label: "Positions",
        options: ["added", "rotary"].map((mode) => [mode, mode]),
      }),
      sizes,
    ),
    h(
      "div.tx-positions",
      h("div.tx-first", h("div", map.box), h("div.tx-clock-part", parts[1].box)),
      h("div", parts[2].box, parts[3].box),
    ),
  );
}

export default explorer("positions", { build, describe, keep });
