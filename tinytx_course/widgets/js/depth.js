// The depth explorer. `get` maps the name of a trait to its value; the buffers hold powers of ten.

const NORMS = ["none", "pre", "post"];
const NORM_NAMES = ["no norm", "pre-norm", "post-norm"];
const LIMITS = [-12, 12];
const WIDE = [-300, 300];
const ALIKE = -2;
const GONE = -3;
const END = 299.9;
const SETTINGS = NORMS.flatMap((norm) => [
  [norm, false],
  [norm, true],
]);
const nameOf = ([norm, residual]) =>
  `${NORM_NAMES[NORMS.indexOf(norm)]}, ${residual ? "with residual" : "no residual"}`;

// Size, variety and gradient at levels 0 to n_layers, as powers of ten.
export function seriesOf(get, [norm, residual] = [get("norm"), get("residual")]) {
  const at = 2 * NORMS.indexOf(norm) + (residual ? 1 : 0);
  const depths = get("depths");
  const n = get("n_layers");
  const levels = depths[depths.length - 1] + 1;
  const before = (end) => depths.slice(0, end).reduce((sum, depth) => sum + depth + 1, 0);
  const start = at * before(depths.length) + before(depths.indexOf(n));
  const cut = (key) => get(key).subarray(at * levels, at * levels + n + 1);
  return {
    size: cut("sizes"),
    variety: cut("varieties"),
    gradient: get("gradients").subarray(start, start + n + 1),
  };
}

const raised = (n) =>
  String(n)
    .replace("-", "⁻")
    .replace(/\d/g, (digit) => "⁰¹²³⁴⁵⁶⁷⁸⁹"[digit]);
// The number that has this power of ten.
export function sized(power) {
  if (Math.abs(power) > END) return power > 0 ? "over 10³⁰⁰" : "under 10⁻³⁰⁰";
  if (Math.abs(power) < 3) return String(+(10 ** power).toPrecision(2));
  const [digits, exponent] = (10 ** power).toExponential(1).split("e");
  return `${digits}·10${raised(+exponent)}`;
}

// What survives, by the powers of ten at the ends.
function verdict({ variety, gradient }) {
  const top = variety[variety.length - 1];
  const low = gradient[0] - gradient[gradient.length - 1];
  const lost = [];
  if (top < ALIKE) lost.push("the tokens become alike");
  if (low < GONE) lost.push("the gradient vanishes");
  if (low > -GONE) lost.push("the gradient explodes");
  const text = lost.join(" and ");
  return text ? `${text[0].toUpperCase()}${text.slice(1)}.` : "Signal and gradient survive.";
}

export function describe(get) {
  const series = seriesOf(get);
  const n = get("n_layers");
  const { size, variety, gradient } = series;
  const name = nameOf([get("norm"), get("residual")]);
  return (
    `${name[0].toUpperCase()}${name.slice(1)}, ${counted(n, "layer")}. ${verdict(series)} At the top: size ${sized(size[n])}, variety ${sized(variety[n])}; gradient at the input ${sized(gradient[0])}.\n` +
    `From input to top the size of the signal is ${sized(size[0])} and becomes ${sized(size[n])}; the share of it that tells tokens apart, ${sized(variety[0])}, becomes ${sized(variety[n])}. ` +
    `The gradient, ${sized(gradient[n])} at the top, arrives at the input as ${sized(gradient[0])}.`
  );
}

// Decades that hold all these powers, from 10⁻¹² to 10¹² at most unless said otherwise; a line ends where it
// leaves them.
export function decades(rows, [from, to] = LIMITS) {
  const all = rows.flatMap((row) => [...row]);
  const low = clamp(Math.floor(Math.min(-1, ...all)), from, 0);
  const high = clamp(Math.ceil(Math.max(1, ...all)), 0, to);
  const by = [1, 2, 5, 10, 20, 50, 100].find((step) => 6 * step >= high - low);
  const ticks = [];
  for (let power = Math.ceil(low / by) * by; power <= high; power += by) ticks.push(power);
  return [[low, high], ticks];
}

// The part of a curve inside [low, high] as points, and the edge at which its first or last leaves them.
export function inside(powers, [low, high]) {
  const fits = (power) => power >= low && power <= high;
  const all = Array.from(powers);
  const from = all.findIndex(fits);
  const to = all.findLastIndex(fits);
  const edge = (power) => (power === undefined ? undefined : power < low ? low : high);
  const first = edge(all[from - 1]);
  const last = edge(all[to + 1]);
  const crossing = (next, step, at) => [
    next + step * clamp((at - all[next]) / (all[next + step] - all[next]), 0, 1),
    at,
  ];
  const points = all.slice(from, to + 1).map((power, i) => [from + i, clamp(power, low, high)]);
  if (first !== undefined) points.unshift(crossing(from, -1, first));
  if (last !== undefined) points.push(crossing(to, 1, last));
  return { points, first, last };
}

// The curves of one direction; `end` is the level where it arrives, whose numbers the sentence says.
function panel(ui, { title, yLabel, keys, limits, end }) {
  const draw = plot(ui, { xLabel: "level (0 = input)", yLabel, above: true, height: 195, right: 92 });
  ui.paint(() => {
    const series = seriesOf(ui.get);
    const n = ui.get("n_layers");
    const rows = keys.map(([key]) => series[key]);
    const [y, ticks] = decades(rows, limits);
    const tones = ["tx-first", "tx-second"];
    const parts = rows.map((row) => inside(row, y));
    const beyond = (power) => (power === y[0] ? `↓ below 10${raised(y[0])}` : `↑ above 10${raised(y[1])}`);
    draw({
      x: [0, n],
      y,
      at: end(n),
      xTicks: [...new Set([0, 1, 2, 3, 4].map((i) => Math.round((i * n) / 4)))].map((l) => [l, l]),
      yTicks: ticks.map((power) => [power, Math.abs(power) < 2 ? 10 ** power : `10${raised(power)}`]),
      lines: keys.map(([, name], i) => ({
        points: parts[i].points,
        tone: tones[i],
        name: parts[i].last === undefined ? name : `${name} ${beyond(parts[i].last)}`,
      })),
      dots: parts.flatMap(({ first, points }, i) =>
        first === undefined
          ? []
          : [{ at: points[0], tone: tones[i], name: `${keys[i][1]} ${beyond(first)}`, bare: true }],
      ),
      label: `${title}: ${keys.map(([key, name]) => `${name} ${sized(series[key][0])} at the input, ${sized(series[key][n])} at the top`).join("; ")}`,
    });
  });
  return h("div.tx-panel", h("p.tx-title", title), draw.box);
}

// The settings that were tried, at this depth; blue is less than 1, red more.
function table(ui) {
  const tried = new Set(); // their numbers
  const columns = [
    ["size", "signal at the top"],
    ["variety", "variety at the top"],
    ["gradient", "gradient at the input"],
  ];
  const cells = SETTINGS.map(() => columns.map(() => h("td", "?")));
  const rows = SETTINGS.map(([norm, residual], i) =>
    h(
      "tr",
      { onclick: () => ui.save({ norm, residual }) },
      h("th", { scope: "row" }, nameOf(SETTINGS[i])),
      cells[i],
    ),
  );
  const box = h("table.tx-all", headRow(["", ...columns.map(([, name]) => name)]), h("tbody", rows));
  ui.paint(() =>
    SETTINGS.forEach((setting, i) => {
      const chosen = setting[0] === ui.get("norm") && setting[1] === ui.get("residual");
      rows[i].dataset.chosen = chosen;
      if (chosen) tried.add(i);
      if (!tried.has(i)) return;
      const series = seriesOf(ui.get, setting);
      const n = ui.get("n_layers");
      columns.forEach(([key], j) => {
        const power = series[key][key === "gradient" ? 0 : n];
        cells[i][j].textContent = sized(power);
        cells[i][j].className = power < 0 ? "tx-less" : "tx-more";
        cells[i][j].style.setProperty(
          "--part",
          `${(60 * clamp(Math.abs(power) / LIMITS[1], 0, 1) ** 0.6).toFixed(0)}%`,
        );
      });
    }),
  );
  return h(
    "div.tx-panel",
    h("p.tx-title", "The settings that you tried, at this depth"),
    h("div.tx-scroll", box),
  );
}

function build(ui) {
  const depths = ui.get("depths");
  const signal = panel(ui, {
    title: "The signal, going up",
    yLabel: "size: root mean square; variety: a share of it",
    keys: [
      ["size", "size"],
      ["variety", "variety"],
    ],
    end: (n) => n,
  });
  const gradient = panel(ui, {
    title: "The gradient, coming down",
    yLabel: "root mean square",
    keys: [["gradient", "gradient"]],
    limits: WIDE,
    end: () => 0,
  });
  ui.show(
    h(
      "p.tx-invite",
      "Add layers: what is left at the top, and what comes back to the input? Then add residuals and norms.",
    ),
    h(
      "div.tx-row.tx-setting",
      ui.slider("n_layers", {
        label: "layers",
        min: 0,
        max: depths.length - 1,
        to: (i) => depths[i],
        from: (n) => depths.indexOf(n),
      }),
      ui.toggle("residual", { label: "residual connections" }),
      ui.choice("norm", { label: "norm", options: NORMS.map((norm, i) => [norm, NORM_NAMES[i]]) }),
    ),
    h("div.tx-two", signal, gradient),
    table(ui),
    h(
      "p.tx-note",
      "Press a row to fill it. Blue: less than 1; red: more. Variety: what tells tokens apart, as a share of the signal. Untrained blocks, in float64, which ends near 10⁻¹⁶.",
    ),
  );
}

const keep = (get) => ({
  n_layers: (n) => get("depths").includes(n),
  residual: [],
  norm: NORMS,
});

export default explorer("depth", { build, describe, keep });
