// The explorer of certainty. `get` maps the name of a trait to its value, buffers as float32.

const STRONG = 2.5;
const NARROW = 450;
const NAMES = ["unfavourable", "favourable"];

// A probability by its log-odds; only infinite ones make it 0 or 1.
export function chanceOf(odds) {
  const p = 1 / (1 + Math.exp(-odds));
  return Number.isFinite(odds) ? clamp(p, Number.EPSILON, 1 - Number.EPSILON) : p;
}

// The chosen review: its words, the exact log-odds and P(favourable) after 0, 1, ... of them, how many are read.
export function chosenOf(get) {
  const reviews = get("reviews");
  const at = get("review");
  const words = reviews[at];
  const before = reviews.slice(0, at).reduce((sum, one) => sum + one.length, 0);
  const odds = get("log_odds").subarray(before + at, before + at + words.length + 1);
  const exact = Float64Array.from(odds, chanceOf);
  return { words, odds, exact, n: Math.min(get("n_read"), words.length) };
}

// By how much each word moves the log-odds of the exact posterior, in nats.
export const evidenceOf = (odds) => Array.from(odds.subarray(1), (x, i) => x - odds[i]);

const signed = (x) => (x > 0 && number(x) !== "0.00" ? `+${number(x)}` : number(x));

// A probability in three digits; only what is certain is 0 or 1.
export const probability = (p) =>
  p > 0 && p < 0.0005 ? "below 0.001" : p < 1 && p >= 0.9995 ? "above 0.999" : number(p, 3);

// Up, down, or nothing that could be seen.
export const movedBy = (from, to) => (Math.abs(to - from) < 0.005 ? 0 : Math.sign(to - from));
// A probability in two digits; only what is certain is 0 or 1.
const short = (p) => (p > 0 && p < 0.005 ? "< 0.01" : p < 1 && p >= 0.995 ? "> 0.99" : number(p));

export function describe(get) {
  const { words, odds, exact, n } = chosenOf(get);
  const start = `Review ${get("review") + 1}. `;
  if (!n)
    return `${start}No word is read: the exact probability that the review is favourable is ${probability(exact[0])}.`;
  const went = ["falls", "stays", "rises"][1 + movedBy(exact[n - 1], exact[n])];
  const label = n < words.length ? "" : ` The label: ${NAMES[get("labels")[get("review")]]}.`;
  return (
    `${start}“${words[n - 1]}”, word ${n} of ${words.length}: exact P(favourable) ${went}, ` +
    `${probability(exact[n - 1])} → ${probability(exact[n])} (${signed(evidenceOf(odds)[n - 1])} nats of log-odds).${label}`
  );
}

// The review; words that are not yet read are only as wide as they are. Pressing one reads up to it.
function text(ui) {
  const box = h("div.tx-review", { role: "group", "aria-label": "words" });
  let shown = null;
  let spans = [];
  ui.tips(box, ({ target }) => {
    const { exact, n } = chosenOf(ui.get);
    const i = spans.indexOf(target);
    return i >= 0 && i < n ? `P(favourable) ${short(exact[i])} → ${short(exact[i + 1])}` : null;
  });
  ui.paint(() => {
    const { words, odds, n } = chosenOf(ui.get);
    const moves = evidenceOf(odds);
    if (words !== shown) {
      spans = words.map((word, i) => h("span", { onclick: () => ui.save("n_read", i + 1) }, word));
      box.replaceChildren(...spans);
      shown = words;
    }
    spans.forEach((span, i) => {
      span.className = i >= n ? "tx-hidden" : moves[i] > 0 ? "tx-for" : "tx-against";
      span.dataset.last = i === n - 1;
      if (i < n) span.removeAttribute("aria-hidden");
      else span.setAttribute("aria-hidden", "true");
      span.style.setProperty("--part", `${(55 * clamp(Math.abs(moves[i]) / STRONG, 0, 1)).toFixed(0)}%`);
    });
  });
  const scale = [-STRONG, -STRONG / 2, 0, STRONG / 2, STRONG].map((move) =>
    h("i", { class: move > 0 ? "tx-for" : "tx-against", style: `--part:${(55 * Math.abs(move)) / STRONG}%` }),
  );
  return [
    box,
    h(
      "p.tx-key",
      h("span", "exact evidence of a word, in nats of log-odds:"),
      h("span", `unfavourable ${number(-STRONG, 1)} `, scale, ` +${number(STRONG, 1)} favourable`),
    ),
  ];
}

function chart(ui) {
  // On a phone the names at the ends have no numbers, which the sentence says: more room for the curves.
  const plots = [112, 52].map((right) =>
    plot(ui, {
      xLabel: "words read",
      yLabel: "P(favourable)",
      height: 240,
      right,
      go: (x) => ui.set("n_read", Math.round(x)),
    }),
  );
  const holder = h("div");
  ui.paint(() => {
    const { words, exact, n } = chosenOf(ui.get);
    const every = Math.max(1, Math.round(words.length / 6));
    const ticks = range(Math.floor(words.length / every) + 1).map((i) => i * every);
    // Between two words nothing changes: steps.
    const read = Array.from(exact.subarray(0, n + 1));
    const points = read.flatMap((p, i) => [...(i ? [[i, read[i - 1]]] : []), [i, p]]);
    const narrow = ui.width < NARROW;
    if (holder.firstChild !== plots[+narrow].box) holder.replaceChildren(plots[+narrow].box);
    plots[+narrow]({
      x: [0, words.length],
      y: [0, 1],
      at: n,
      xTicks: ticks.map((t) => [t, t]),
      yTicks: [0, 0.25, 0.5, 0.75, 1].map((p) => [p, p]),
      lines: [{ points, tone: "tx-first", name: narrow ? "exact" : `exact ${short(exact[n])}` }],
      label: `Probability that the review is favourable, against words read: exact ${read.map((p) => number(p)).join(", ")}`,
    });
  });
  return holder;
}

function build(ui) {
  // A guess before a word, and how it ended; only of this visit.
  let guess = null;
  let right = 0;
  let asked = 0;
  const ended = h("span.tx-ended", { "aria-live": "polite" });
  const ways = ["↑ rises", "= stays", "↓ falls"].map((name, i) =>
    h(
      "button.tx-button",
      {
        onclick: () => {
          const { exact, n } = chosenOf(ui.get);
          const moved = movedBy(exact[n], exact[n + 1]);
          const fine = moved === 1 - i;
          right += fine;
          guess = {
            review: ui.get("review"),
            n: n + 1,
            text: `${fine ? "✓" : "✗"} It ${["falls", "stays", "rises"][moved + 1]}: ${short(exact[n])} → ${short(exact[n + 1])}. ${right} of ${++asked} right.`,
          };
          ui.save("n_read", n + 1);
        },
      },
      name,
    ),
  );
  const gloss = h("p.tx-note");
  const slider = ui.slider("n_read", {
    label: "words read",
    min: 0,
    max: () => chosenOf(ui.get).words.length,
    format: () => String(chosenOf(ui.get).n),
  });
  ui.paint(() => {
    const chosen = chosenOf(ui.get);
    ended.textContent = guess?.review === ui.get("review") && guess.n === chosen.n ? guess.text : "";
    for (const way of ways) way.disabled = chosen.n === chosen.words.length;
    gloss.textContent = wordByWord(ui.get("english")[ui.get("review")]?.slice(0, chosen.n));
  });
  ui.show(
    h(
      "p.tx-invite",
      "Reveal the review word by word. Before each word: will the exact probability rise or fall?",
    ),
    h(
      "div.tx-row",
      ui.picks("review", {
        label: "review",
        names: ui.get("reviews").map((_, i) => `review ${i + 1}`),
        reset: { n_read: 0 },
      }),
    ),
    h("div.tx-row.tx-reading", slider),
    h("div.tx-row.tx-guess", h("span", "With the next word P(favourable)"), h("span.tx-pair", ways), ended),
    text(ui),
    chart(ui),
    gloss,
  );
}

const keep = (get) => ({
  review: [0, get("reviews").length - 1],
  n_read: [0, Math.max(...get("reviews").map((words) => words.length))],
});

export default explorer("how_sure", { build, describe, keep });
