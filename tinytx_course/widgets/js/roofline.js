// The roofline explorer. `get` maps the name of a trait to its value; a kernel is [name, FLOPs, bytes,
// seconds].

const BYTES = 4;
const LARGEST = 65536;
const CLOSE = 0.6; // a share from which on the mark itself covers its gap to the roof
const FEW = 0.1; // a share of the roof below which neither limit explains the time

// One product: n rows times a matrix d x d, each number moved once.
export const productOf = (n, d) => ({ flops: 2 * n * d * d, bytes: BYTES * (2 * n * d + d * d) });
export const intensityOf = (n, d) => n / (BYTES * (n / d + 0.5));
// The rows at which the product has this intensity, from 1 to the largest.
export const rowsFor = (intensity, d) =>
  intensity * BYTES >= d
    ? LARGEST
    : clamp(Math.round((0.5 * BYTES * intensity) / (1 - (BYTES * intensity) / d)), 1, LARGEST);
export const attainable = (get, intensity) => Math.min(get("flops"), intensity * get("bytes_per_second"));
// The same machine with its arithmetic and its memory made faster, as chosen.
export const fasterOf = (get) => (key) =>
  get(key) * ({ flops: get("compute"), bytes_per_second: get("memory") }[key] ?? 1);
// How many times as fast at most: the faster roof by the measured one.
export const gainOf = (get, intensity) => attainable(fasterOf(get), intensity) / attainable(get, intensity);
// The fewest rows of a product of this width that compute limits; null where no number of them does.
export function crossingOf(get, d) {
  const ridge = get("flops") / get("bytes_per_second");
  const rest = 1 - (BYTES * ridge) / d;
  return rest > 0 ? Math.max(1, Math.ceil((0.5 * BYTES * ridge) / rest - 1e-9)) : null;
}
export const limitOf = (get, intensity) =>
  intensity < get("flops") / get("bytes_per_second") ? "memory" : "compute";

// Measured kernels: where they lie, what part of the roof they reach, and which of its sides limits them.
export const pointsOf = (get) =>
  get("kernels").map(([name, flops, bytes, seconds]) => {
    const intensity = flops / bytes;
    const rate = flops / seconds;
    const part = rate / attainable(get, intensity);
    return { name, intensity, rate, part, limit: part < FEW ? "neither" : limitOf(get, intensity) };
  });
const limitInWords = (limit) =>
  limit === "neither"
    ? "limited by neither memory nor compute, but by the time around them, such as its start"
    : `limited by ${limit}`;

const UNITS = [
  [1e15, "P"],
  [1e12, "T"],
  [1e9, "G"],
  [1e6, "M"],
  [1e3, "k"],
  [0, ""],
];
// Three digits with a prefix: 2.5 G.
export function scaled(x) {
  const [size, prefix] = UNITS.find(([least]) => x >= least);
  return `${+(x / (size || 1)).toPrecision(3)} ${prefix}`;
}
// A small share is not zero: < 0.1%.
export const partOf = (p) => (p < 0.001 ? "< 0.1%" : p < 0.01 ? `${(100 * p).toFixed(1)}%` : percent(p));
const perByte = (x) => `${+x.toPrecision(3)} FLOP/byte`;
const best = (measured) => {
  const get = fasterOf(measured);
  const n = get("batch_size");
  const d = get("width");
  const intensity = intensityOf(n, d);
  const rate = attainable(get, intensity);
  return { n, d, intensity, rate, limit: limitOf(get, intensity), seconds: productOf(n, d).flops / rate };
};
const time = (seconds) =>
  seconds < 1e-3
    ? `${+(1e6 * seconds).toPrecision(3)} µs`
    : seconds < 1
      ? `${+(1e3 * seconds).toPrecision(3)} ms`
      : `${+seconds.toPrecision(3)} s`;

export function describe(get) {
  const { n, d, intensity, rate, limit, seconds } = best(get);
  const faster = fasterOf(get);
  const ridge = faster("flops") / faster("bytes_per_second");
  const points = pointsOf(get);
  const at = points[get("kernel")];
  const from = crossingOf(faster, d);
  const moved = get("compute") * get("memory") > 1;
  const where =
    from === null
      ? " (with any number of rows)"
      : ` (${limit === "compute" ? "" : "compute "}from ${counted(from, "row")} on)`;
  const product = `${limit === "compute" ? "Compute" : "Memory"} limits a product of ${counted(n, "row")}, width ${grouped(d)}${where}: ${perByte(intensity)}, at best ${scaled(rate)}FLOP/s${moved ? "" : `, ${time(seconds)}`}.`;
  const kernel = at
    ? ` Kernel “${at.name}”: ${perByte(at.intensity)}, ${scaled(at.rate)}FLOP/s, ${partOf(at.part)} of the measured roof, ${limitInWords(at.limit)}${at.part > 1 ? "; above the roof, which is a measurement, too" : ""}.`
    : "";
  const gained = (ratio) =>
    gainOf(get, ratio) < 1.005 ? "no faster" : `up to ${+gainOf(get, ratio).toPrecision(3)} times as fast`;
  const kernelGains =
    at &&
    (at.limit === "neither"
      ? `; “${at.name}”, at ${partOf(at.part)} of the roof and limited by neither side of it, hardly faster`
      : `; “${at.name}”, at its part of the roof, ${gained(at.intensity)}`);
  const gain = moved ? ` Against × 1: product ${gained(intensity)}${kernelGains ?? ""}.` : "";
  const reaches = at ? ` “${at.name}” reaches ${partOf(at.part)} of the roof.` : "";
  return `${product}${gain || reaches}\n${kernel.trim()} The ridge is at ${perByte(ridge)}.`;
}

const generates = ({ name }) => name.endsWith("generation");
const phased = ({ name }) => /, (training|generation)$/.test(name);
// Where a mark tells training from generation, the name need not.
const shortOf = ({ name }) => name.replace(/, (training|generation)$/, "");

function chart(ui) {
  const draw = plot(ui, {
    xLabel: "arithmetic intensity (FLOP per byte)",
    yLabel: "FLOP/s",
    above: true,
    height: 300,
    right: 22,
    go: (x) => ui.set("batch_size", rowsFor(10 ** x, ui.get("width"))),
  });
  let order = []; // of the marks
  ui.paint(() => {
    const points = pointsOf(ui.get);
    const product = best(ui.get);
    const get = fasterOf(ui.get);
    const flops = get("flops");
    const ridge = flops / get("bytes_per_second");
    const log = Math.log10;
    const x = [
      Math.floor(log(Math.min(0.1, ridge / 10, ...points.map((p) => p.intensity)))),
      Math.ceil(log(Math.max(1e3, ridge * 10, LARGEST / 8, ...points.map((p) => p.intensity)))),
    ];
    const y = [
      Math.min(attainable(ui.get, 10 ** x[0]) * 10, ui.get("flops") / 1e3, ...points.map((p) => p.rate)) / 2,
      3 * Math.max(flops, ...points.map((p) => p.rate)),
    ].map(log);
    const far = [(ui.width - 74) / (x[1] - x[0]), 240 / (y[1] - y[0])];
    const spot = (p) => [log(p.intensity) * far[0], log(p.rate) * far[1]];
    const apart = (p, other, across, down) =>
      Math.abs(spot(p)[0] - spot(other)[0]) > across || Math.abs(spot(p)[1] - spot(other)[1]) > down;
    // Names where there is room for one, and the number of those that lie together.
    const label = (p) => {
      const others = points.filter((other) => other !== p);
      if (p === chosen || (ui.width > 480 && others.every((other) => apart(p, other, 170, 20))))
        return shortOf(p);
      const near = others.filter((other) => !apart(p, other, 30, 60));
      const room = !chosen || apart(p, chosen, 170, 60);
      return room && near.length > 1 && near.every(({ rate }) => rate <= p.rate)
        ? `${near.length + 1} kernels`
        : "";
    };
    const ticks = ([first, last]) =>
      range(Math.floor(last) - Math.ceil(first) + 1).map((i) => Math.ceil(first) + i);
    const low = (down = 0) => Math.max(x[0], y[0] - log(ui.get("bytes_per_second")) - down);
    const moved = ui.get("compute") * ui.get("memory") > 1;
    // The roof as measured, or as much further down.
    const measured = (down = 0) =>
      [low(down), log(ui.get("flops") / ui.get("bytes_per_second")), x[1]].map((i) => [
        i,
        log(attainable(ui.get, 10 ** i)) + down,
      ]);
    const chosen = points[ui.get("kernel")];
    order = [...points.filter((p) => p !== chosen), chosen].filter(Boolean).map((p) => points.indexOf(p));
    draw({
      x,
      y,
      at: log(product.intensity),
      xTicks: ticks(x).map((t) => [t, t < -3 ? t : +(10 ** t).toPrecision(1)]),
      yTicks: ticks(y).map((t) => [t, scaled(10 ** t)]),
      lines: [
        {
          points: [
            [low(), log(attainable(get, 10 ** low()))],
            [log(ridge), log(flops)],
            [x[1], log(flops)],
          ],
          tone: "tx-first",
        },
        moved && { points: measured(), tone: "tx-first tx-faint" },
        { points: [[log(product.intensity), log(product.rate)]], tone: "tx-first" },
        {
          points: [
            [log(ridge), y[0]],
            [log(ridge), log(flops)],
          ],
          tone: "tx-ridge",
        },
        points.length && { points: measured(log(FEW)), tone: "tx-few" },
        chosen && {
          points: [chosen.rate, attainable(ui.get, chosen.intensity)].map((rate) => [
            log(chosen.intensity),
            log(rate),
          ]),
          tone: "tx-second",
        },
      ],
      dots: [
        {
          at: [log(ridge), log(flops)],
          tone: "tx-ridge",
          bare: true,
          name: "ridge",
        },
        ...order
          .map((i) => points[i])
          .map((p) => ({
            at: [log(p.intensity), log(p.rate)],
            tone: `tx-second ${generates(p) ? "tx-up" : ""} ${p === chosen ? "tx-big" : ""}`,
            name: label(p),
          })),
      ],
      label: `Roofline: memory limits below ${perByte(ridge)}, compute above; the product lies at ${perByte(product.intensity)}; ${points.map((p) => `${p.name} at ${perByte(p.intensity)}, ${scaled(p.rate)}FLOP/s`).join("; ")}`,
    });
  });
  // A mark is chosen with the pointer, and names itself; the table does the same by keys.
  const under = ({ target }) =>
    order[[...draw.box.querySelectorAll(":is(circle, path).tx-second")].indexOf(target)];
  const box = h("div", draw.box);
  box.addEventListener(
    "pointerdown",
    (event) => {
      const i = under(event);
      if (i !== undefined) {
        event.stopPropagation();
        ui.save("kernel", i);
      }
    },
    { capture: true },
  );
  ui.tips(box, (event) => {
    const p = pointsOf(ui.get)[under(event)];
    return p ? `${p.name}: ${scaled(p.rate)}FLOP/s, ${partOf(p.part)} of the roof` : null;
  });
  return box;
}

// The kernels, one row each in a table below the picture, chosen with a button.
function table(ui) {
  const points = pointsOf(ui.get);
  const choose = (i) => ui.save("kernel", i);
  const buttons = points.map(({ name }, i) =>
    h(
      "button.tx-token",
      { "aria-label": name, onclick: () => choose(i) },
      ...(phased(points[i]) ? [h("i", generates(points[i]) ? "▲" : "●"), ` ${shortOf(points[i])}`] : [name]),
    ),
  );
  const body = h("tbody");
  body.append(
    ...points.map((p, i) =>
      bodyRow(
        buttons[i],
        [+p.intensity.toPrecision(3), scaled(p.rate), partOf(p.part), p.limit].map((text) => h("td", text)),
      ),
    ),
  );
  const move = roving(body, buttons, { go: choose });
  const fold = h(
    "details.tx-fold",
    {
      ontoggle: () => {
        inner.hidden = !fold.open;
      },
    },
    h("summary", `Table of the ${points.length} kernels`),
  );
  const inner = h(
    "div.tx-scroll",
    { hidden: true },
    h(
      "table",
      headRow(["kernel", "FLOP/byte", "FLOP/s", ["of the roof", h("br"), "as measured"], "limited by"]),
      body,
    ),
  );
  fold.append(
    inner,
    h(
      "p.tx-note",
      "Over 100%: the roof was measured in a slow moment, or a cache helped. Below 10%: the time goes elsewhere.",
    ),
  );
  ui.paint(() => {
    if (points.length) move(ui.get("kernel"));
    buttons.forEach((button, i) => button.setAttribute("aria-pressed", i === ui.get("kernel")));
  });
  return points.length ? fold : null;
}

function build(ui) {
  const points = pointsOf(ui.get);
  const sizes = { min: 0, max: 16, to: (i) => 2 ** i, from: Math.log2, format: (n) => grouped(n) };
  const legend = [
    ["tx-roof tx-line", "roof"],
    ["tx-roof", "product at its best"],
    ...(points.length
      ? [
          ["tx-measured", points.some(generates) ? "training" : "measured kernels"],
          ...(points.some(generates) ? [["tx-measured tx-up", "generation"]] : []),
          ["tx-measured tx-gap", "gap to the roof"],
          ["tx-few", "a tenth of the roof: below it the time around a kernel decides"],
        ]
      : []),
  ].map(([tone, name]) => h("span", { class: tone }, name));
  const gap = legend.find((one) => one.classList.contains("tx-gap"));
  const faint = h("span.tx-roof.tx-line.tx-faint", "roof as measured");
  ui.paint(() => {
    faint.hidden = ui.get("compute") * ui.get("memory") === 1;
    if (gap) gap.hidden = pointsOf(ui.get)[ui.get("kernel")].part > CLOSE;
  });
  ui.show(
    h(
      "p.tx-invite",
      `From how many rows on does compute, not memory, limit a matrix product? Change them, or drag.${points.length ? " Red: measured kernels; press one." : ""}`,
    ),
    h(
      "div.tx-row.tx-sizes",
      ui.slider("batch_size", { label: "rows (batch size)", ...sizes }),
      ui.slider("width", { label: "width", ...sizes }),
    ),
    h(
      "div.tx-row",
      [
        ["compute", "compute speed"],
        ["memory", "memory speed"],
      ].map(([key, label]) => ui.choice(key, { label, options: [1, 2, 4].map((n) => [n, `× ${n}`]) })),
    ),
    chart(ui),
    h("p.tx-key", legend, faint),
    table(ui),
  );
}

const keep = (get) => ({
  batch_size: [1, 2 ** 16],
  width: [1, 2 ** 16],
  kernel: [0, Math.max(0, get("kernels").length - 1)],
  compute: (times) => [1, 2, 4].includes(times),
  memory: (times) => [1, 2, 4].includes(times),
});

export default explorer("roofline", { build, describe, keep });
