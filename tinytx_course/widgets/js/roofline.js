// The roofline explorer. `get` maps the name of a trait to its value; a kernel is [name, FLOPs, bytes, seconds].

const BYTES = 4, LARGEST = 65536, FEW = 0.1; // a share of the roof below which neither limit explains the time

// One product: n rows times a matrix d x d, each number moved once.
export const productOf = (n, d) => ({ flops: 2 * n * d * d, bytes: BYTES * (2 * n * d + d * d) });
export const intensityOf = (n, d) => n / (BYTES * (n / d + 0.5));
// The rows at which the product has this intensity, from 1 to the largest.
export const rowsFor = (intensity, d) => (intensity * BYTES >= d ? LARGEST : clamp(Math.round((0.5 * BYTES * intensity) / (1 - (BYTES * intensity) / d)), 1, LARGEST));
export const attainable = (get, intensity) => Math.min(get("flops"), intensity * get("bytes_per_second"));
// The same machine with its arithmetic and its memory made faster, as chosen.
export const fasterOf = (get) => (key) => get(key) * ({ flops: get("compute"), bytes_per_second: get("memory") }[key] ?? 1);
// How many times as fast at most: the faster roof by the measured one.
export const gainOf = (get, intensity) => attainable(fasterOf(get), intensity) / attainable(get, intensity);
export const limitOf = (get, intensity) => (intensity < get("flops") / get("bytes_per_second") ? "memory" : "compute");

// Measured kernels: where they lie, what part of the roof they reach, and which of its sides limits them.
export const pointsOf = (get) => get("kernels").map(([name, flops, bytes, seconds]) => {
  const intensity = flops / bytes, rate = flops / seconds;
  const part = rate / attainable(get, intensity);
  return { name, intensity, rate, part, limit: part < FEW ? "neither" : limitOf(get, intensity) };
});
const limitInWords = (limit) => (limit === "neither" ? "limited by neither memory nor compute, but by the time around them, such as its start" : `limited by ${limit}`);

const UNITS = [[1e15, "P"], [1e12, "T"], [1e9, "G"], [1e6, "M"], [1e3, "k"], [0, ""]];
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
  const n = get("batch_size"), d = get("width"), intensity = intensityOf(n, d), rate = attainable(get, intensity);
  return { n, d, intensity, rate, limit: limitOf(get, intensity), seconds: productOf(n, d).flops / rate };
};
const time = (seconds) => (seconds < 1e-3 ? `${+(1e6 * seconds).toPrecision(3)} µs` : seconds < 1 ? `${+(1e3 * seconds).toPrecision(3)} ms` : `${+seconds.toPrecision(3)} s`);

export function describe(get) {
  const { n, d, intensity, rate, limit, seconds } = best(get), faster = fasterOf(get), ridge = faster("flops") / faster("bytes_per_second"), points = pointsOf(get), at = points[get("kernel")];
  const product = `Product: ${grouped(n)} ${n === 1 ? "row" : "rows"} times a matrix ${grouped(d)} × ${grouped(d)}: ${perByte(intensity)}, limited by ${limit}; at best ${scaled(rate)}FLOP/s, ${time(seconds)}.`;
  const kernel = at ? ` Kernel “${at.name}”: ${perByte(at.intensity)}, ${scaled(at.rate)}FLOP/s, ${partOf(at.part)} of the measured roof, ${limitInWords(at.limit)}${at.part > 1 ? "; above the roof, which is a measurement, too" : ""}.` : "";
  const gained = (intensity) => (gainOf(get, intensity) < 1.005 ? "gains nothing" : `gets at most ${+gainOf(get, intensity).toPrecision(3)} times as fast`);
  const kernelGains = at && (at.limit === "neither" ? `, and “${at.name}”, at ${partOf(at.part)} of the roof and limited by neither side of it, hardly gains` : `, and “${at.name}”, at its measured part of the roof, ${gained(at.intensity)}`);
  const gain = get("compute") * get("memory") > 1 ? `With arithmetic × ${get("compute")} and memory speed × ${get("memory")}, the product ${gained(intensity)}${kernelGains ?? ""}.\n` : "";
  return `${gain}${product}${kernel}${gain ? " " : "\n"}The ridge is at ${perByte(ridge)}.`;
}

const generates = ({ name }) => name.endsWith("generation");
const phased = ({ name }) => /, (training|generation)$/.test(name);
// Where a mark tells training from generation, the name need not.
const shortOf = ({ name }) => name.replace(/, (training|generation)$/, "");

function chart(ui) {
  const draw = plot(ui, { xLabel: "arithmetic intensity (FLOP per byte)", yLabel: "FLOP/s", above: true, height: 290, right: 22, go: (x) => ui.set("batch_size", rowsFor(10 ** x, ui.get("width"))) });
  const update = () => {
    const points = pointsOf(ui.get), product = best(ui.get), get = fasterOf(ui.get), flops = get("flops"), ridge = flops / get("bytes_per_second"), log = Math.log10;
    const x = [Math.floor(log(Math.min(0.1, ridge / 10, ...points.map((p) => p.intensity)))), Math.ceil(log(Math.max(1e3, ridge * 10, LARGEST / 8, ...points.map((p) => p.intensity))))];
    const y = [Math.floor(log(Math.min(attainable(ui.get, 10 ** x[0]) * 10, ui.get("flops") / 1e3, ...points.map((p) => p.rate)))), Math.ceil(log(Math.max(flops * 1.5, ...points.map((p) => p.rate))))];
    const ticks = ([low, high]) => Array.from({ length: high - low + 1 }, (_, i) => low + i);
    const low = Math.max(x[0], y[0] - log(ui.get("bytes_per_second"))), moved = ui.get("compute") * ui.get("memory") > 1;
    const measured = [10 ** low, ui.get("flops") / ui.get("bytes_per_second"), 10 ** x[1]].map((i) => [log(i), log(attainable(ui.get, i))]), chosen = points[ui.get("kernel")];
    const gap = chosen ? [{ points: [chosen.rate, attainable(ui.get, chosen.intensity)].map((rate) => [log(chosen.intensity), log(rate)]), tone: "tx-second" }] : [];
    draw({
      x, y, at: log(product.intensity), xTicks: ticks(x).map((t) => [t, t < -3 ? t : +(10 ** t).toPrecision(1)]), yTicks: ticks(y).map((t) => [t, scaled(10 ** t)]),
      lines: [{ points: [[low, log(attainable(get, 10 ** low))], [log(ridge), log(flops)], [x[1], log(flops)]], tone: "tx-first" }, ...(moved ? [{ points: measured, tone: "tx-first tx-faint" }] : []), { points: [[log(product.intensity), log(product.rate)]], tone: "tx-first" }, ...gap],
      dots: [...points.filter((p) => p !== chosen), ...(chosen ? [chosen] : [])].map((p) => ({ at: [log(p.intensity), log(p.rate)], tone: `tx-second ${generates(p) ? "tx-up" : ""} ${p === chosen ? "tx-big" : ""}`, name: p === chosen ? shortOf(p) : "" })),
      label: `Roofline: memory limits below ${perByte(ridge)}, compute above; the product lies at ${perByte(product.intensity)}; ${points.map((p) => `${p.name} at ${perByte(p.intensity)}, ${scaled(p.rate)}FLOP/s`).join("; ")}`,
    });
  };
  update.box = draw.box;
  return update;
}

// One row a kernel, chosen with a button; where all is narrow, from a list above the picture.
function table(ui) {
  const points = pointsOf(ui.get), choose = (i) => ui.save("kernel", i);
  const buttons = points.map(({ name }, i) => h("button", { type: "button", class: "tx-token", "aria-label": name, onclick: () => choose(i) }, ...(phased(points[i]) ? [h("i", {}, generates(points[i]) ? "▲" : "●"), ` ${shortOf(points[i])}`] : [name]))), body = h("tbody");
  body.append(...points.map((p, i) => h("tr", {}, h("th", { scope: "row" }, buttons[i]), [+p.intensity.toPrecision(3), scaled(p.rate), partOf(p.part), p.limit].map((text) => h("td", {}, text)))));
  const move = roving(body, buttons, { go: choose }), id = uid();
  const list = h("select", { id, onchange: () => choose(list.selectedIndex) }, points.map(({ name }) => h("option", {}, name)));
  const fold = h("details", {}, h("summary", {}, "Table of kernels"), h("div", { class: "tx-scroll" }, h("table", {}, h("thead", {}, h("tr", {}, ["kernel", "FLOP/byte", "FLOP/s", ["of the roof", h("br"), "as measured"], "limited by"].map((name) => h("th", { scope: "col" }, name)))), body)));
  let narrow;
  const update = () => {
    if (points.length) move(ui.get("kernel"));
    list.selectedIndex = ui.get("kernel");
    if (narrow !== ui.width < 450) {
      narrow = ui.width < 450;
      fold.open = !narrow;
      if (update.list) update.list.hidden = !narrow;
    }
    buttons.forEach((button, i) => button.setAttribute("aria-pressed", i === ui.get("kernel")));
  };
  update.box = points.length ? fold : null;
  update.list = points.length ? h("div", { class: "tx-row tx-list" }, h("label", { for: id }, "kernel"), list) : null;
  return update;
}

function build(ui) {
  const draw = chart(ui), rows = table(ui), points = pointsOf(ui.get);
  const paint = () => {
    rows(); // first: an open table leaves the picture less room
    draw();
  };
  const sizes = { min: 0, max: 16, to: (i) => 2 ** i, from: Math.log2, format: (n) => grouped(n) };
  const legend = [["tx-roof tx-line", "roof"], ["tx-roof", "product at its best"], ...(points.length ? [["tx-measured", points.some(generates) ? "training" : "measured kernels"], ...(points.some(generates) ? [["tx-measured tx-up", "generation"]] : []), ["tx-measured tx-gap", "gap to the roof"]] : [])].map(([tone, name]) => h("span", { class: tone }, name));
  const faint = h("span", { class: "tx-roof tx-line tx-faint" }, "roof as measured");
  ui.painters.push(() => { faint.hidden = ui.get("compute") * ui.get("memory") === 1; });
  ui.show(paint, h("p", { class: "tx-invite" }, `Blue: a matrix product of your choice${points.length ? "; red: measured" : ""}. Change its rows, or drag: from how many on does compute limit it?`),
    h("div", { class: "tx-row tx-sizes" }, ui.slider("batch_size", { label: "rows (batch size)", ...sizes }), ui.slider("width", { label: "width", ...sizes })),
    h("div", { class: "tx-row" }, [["compute", "arithmetic"], ["memory", "memory speed"]].map(([key, label]) => ui.choice(key, { label, options: [1, 2, 4].map((n) => [n, `× ${n}`]) }))), rows.list, h("div", { class: "tx-aside" },
    h("div", {}, draw.box, h("p", { class: "tx-key" }, legend, faint),
      h("p", { class: "tx-note" }, "Over 100%: the roof was measured in a slow moment, or a cache helped. Below 10%: the time goes elsewhere.")), rows.box));
}

export default explorer("roofline", { build, describe });
