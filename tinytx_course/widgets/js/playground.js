// The playground: a transformer that learns in the page, its loss against the entropy bound, what it writes,
// and what it attends to; a second run next to it. `get` maps the name of a trait to its value. What is not
// drawing is in _training.js and _conductor.js.

const RATES = [0.0003, 0.001, 0.003, 0.006, 0.012, 0.025, 0.05, 0.1, 0.3, 1];
const NAMES = { first: "A", second: "B" };
// ticks, those first that are shown where there is no room for all
const LOSSES = [1, 2, 5, 10, 0.5, 0.2, 0.1, 0.05, 0.02, 0.01, 0.005, 0.002, 20, 50, 100, 3, 7];
const LEAST = 0.001;
const STEPS = [0, 10, 30, 100, 300, 1000, 3000, 10000];
// Pixels of a weight, and of a page where the band has few words
const CELL = 20;
const NARROW = 640;
// Pixels of the height of the curves, and of a row of names above them; such rows
const CURVES = 200;
const ROW = 17;
const ROWS = 3;

// Steps on a scale that is even at first and of equal factors later.
const EVEN = 20;
const placeOf = (step) => Math.log1p(step / EVEN);
const nats = (x) => `${number(x, 3)} nats`;
export const distance = (above) =>
  above === null
    ? "no number any more"
    : `${(100 * Math.abs(above)).toFixed(1)}% ${above < 0 ? "below" : "above"} the bound`;

// When it learned while a switch let it cheat, by the marks of the switches: the steps of the last such time
// before a step.
const LEAK_OF = {
  "mask on": "mask off",
  "not: targets not shifted": "targets not shifted",
  "not: norm over the positions": "norm over the positions",
};
export function cheatedWith(marks, shown) {
  const end = marks.findLastIndex(({ step, text }) => step <= shown && LEAK_OF[text]);
  const last = marks[end];
  if (!last) return "";
  const leak = LEAK_OF[last.text];
  const first = marks.slice(0, end).findLast(({ text }) => text === leak);
  return `${first ? `From step ${grouped(first.step)}` : "From the start"} to step ${grouped(last.step)} (${leak}) it cheated: it learned to copy words that it should predict. That is of no use now, so it learns anew from there.`;
}
const marksOf = ({ marks }) =>
  marks.map((mark) => mark.match(/^(.*) at step (\d+)$/)).map(([, text, step]) => ({ text, step: +step }));

// How far a run is, in a few words: the cards say the rest.
const ODD = 40;
function shortly(name, run) {
  const odd = unusual(run.settings);
  const what = odd.length > ODD ? `${counted(odd.split(", ").length, "setting")} changed` : odd;
  return `Run ${name}${what ? ` (${what})` : ""}: ${run.step ? progress(run, run.settings) : "it has learned nothing yet"}, ${run.above === null ? "its loss is no number any more" : distance(run.above)}${run.above < 0 ? ": it is cheating" : ""}.`;
}

function describeRun(name, run, get) {
  const odd = unusual(run.settings);
  const marks = run.marks.length ? ` While it learned: ${run.marks.join(", ")}.` : "";
  const learned = run.step
    ? `${progress(run, run.settings)}, ${grouped(run.tokens)} tokens read, loss of its last batch ${run.loss === null ? "no number" : nats(run.loss)}`
    : "untrained";
  const held =
    run.above === null
      ? "The held-out loss is no number any more."
      : `Held-out reviews after step ${grouped(run.shown)}: ${nats(run.held_out)} a word, ${distance(run.above)} of ${number(run.bound, 3)}.`;
  const cheats =
    run.above !== null && run.above < 0
      ? ` ${belowBound(run.settings, run.bound)}`
      : run.relearns
        ? ` ${cheatedWith(marksOf(run), run.shown)}`
        : "";
  const verdict = run.text.length
    ? `It writes: “${spelt(run.text)}”. The grammar allows ${run.n_allowed} of ${counted(run.text.length, "word")}.`
    : "It writes nothing.";
  const [block, head] = openHead(get, run.tops.length, run.tops[0].length);
  const [key, weight] = run.tops[block][head];
  const words = ["(start)", ...get("words")];
  return [
    `Run ${name}${odd ? ` (${odd})` : ""}: ${learned}.${marks} ${held}${cheats}`,
    `Run ${name}. ${verdict} Block ${block}, head ${head}: “${words.at(-1)}” attends most to “${words[key]}”, ${percent(weight)}.`,
  ];
}
const openHead = (get, layers, heads) => [
  Math.min(get("block"), layers - 1),
  Math.min(get("head"), heads - 1),
];

// The outcome of a prediction, once the second run has reached the step of the first.
export function resolved(get) {
  const { goal } = get("second");
  if (!goal || !("ended" in goal)) return "";
  const { guess } = goal;
  const outcome = outcomeOf(goal.above, goal.ended);
  const numbers = `after step ${grouped(goal.step)} run A was ${distance(goal.above)}, run B ${distance(goal.ended)}.`;
  return outcome === guess
    ? `✓ As you predicted, ${OUTCOMES[outcome]}: ${numbers}`
    : `✗ You predicted that ${OUTCOMES[guess]}; ${OUTCOMES[outcome]}: ${numbers}`;
}

export function describe(get) {
  if (get("brief")) return briefly(get);
  const runs = [
    ["A", get("first")],
    ["B", get("second")],
  ].filter(([, run]) => run.above !== undefined);
  if (get("first").above === undefined)
    return get("notice") || "A new model is being made. In grey: a run that was recorded.";
  const [reached, did] = [0, 1].map((i) => runs.map(([name, run]) => describeRun(name, run, get)[i]));
  const end = resolved(get);
  const brief = end ? [end] : runs.map(([name, run]) => shortly(name, run));
  return `${[get("notice"), ...brief].filter(Boolean).join(" ")}\n${[...reached, ...did].join(" ")}`;
}

// For who has read nothing yet.
function briefly(get) {
  const { step, shown, above, settings, marks } = get("first");
  if (get("notice")) return get("notice");
  if (!step) return "Dashed: the best that any model can be expected to do. Grey: a recorded run.";
  if (above === null) return "The loss is no number any more.";
  const far = `${(100 * Math.abs(above)).toFixed(1)}%`;
  if (above < 0) return `It is cheating, ${far} below the line: it reads the word that it has to predict.`;
  if (!settings.causal) return `The mask is off: it may read the answers. The loss is ${far} above the line.`;
  const anew = marks.length ? ". The mask is back: it learns anew." : ", the best to expect.";
  const end = step >= settings.n_steps ? `. Its ${settings.seconds} seconds are over.` : anew;
  return `After ${counted(shown, "step")} the loss is ${far} above the line${end}`;
}

// Losses between two heights that lie apart, and above the words at the lower end: [height, loss].
export const ticksOf = (low, high, pixel) =>
  LOSSES.map((loss) => [Math.log(loss), loss])
    .filter(([height]) => height > low + 22 * pixel && height < high)
    .reduce(
      (kept, tick) =>
        kept.some(([height]) => Math.abs(height - tick[0]) < 13 * pixel) ? kept : [...kept, tick],
      [],
    );

// Loss against steps, both on scales of equal factors.
function chart(ui, runs) {
  const look = (x) => {
    const far = ({ step }) => Math.abs(placeOf(step) - x);
    const nearest = runs.first.history.moments.toSorted((a, b) => far(a) - far(b))[0];
    if (nearest) ui.set("moment", nearest.step);
  };
  const draw = plot(ui, {
    xLabel: ui.get("brief") ? "step" : "step (log scale)",
    yLabel: ui.get("brief") ? "loss" : "nats a word (log scale)",
    height: 250,
    right: 24,
    go: look,
  });
  // What the lines are stands below: at their ends the names would lie on the lines of the other run.
  const sample = (tone, text) => h("span", h("i", { class: tone }), text);
  const sampled = (name, tone) => [
    sample(`tx-held ${tone}`, `${name} held out`),
    sample(`tx-batches ${tone}`, `${name} batches`),
  ];
  const second = h("span", sampled("B", "tx-second"));
  const limit = sample("tx-bound", "");
  const past = TRAINING.recorded;
  const recorded = sample("tx-past", "a recorded run");
  const first = ui.get("brief")
    ? [sample("tx-held tx-first", "this run"), sample("tx-batches tx-first", "its batches")]
    : sampled("A", "tx-first");
  const legend = h("p.tx-key", { "aria-hidden": "true" }, first, second, recorded, limit);
  ui.paint(() => {
    const shown = Object.entries(runs).filter(([, run]) => run);
    const bound = shown.map(([, { history }]) => history.at(-1)?.bound).find(Boolean) ?? past.bound;
    const ghost = runs.second ? [] : past.losses;
    recorded.hidden = !ghost.length;
    const all = shown
      .flatMap(([, { history }]) => [...history.losses, ...history.moments].map(({ loss }) => loss))
      .filter((loss) => loss > 0 && Number.isFinite(loss));
    const y = [
      Math.min(1.25, 0.8 * Math.min(...all, 2)),
      Math.max(8, 1.05 * Math.min(100, Math.max(...all, 2))),
    ].map((value) => Math.log(Math.max(value, LEAST)));
    // Names of switches have rows of their own above all curves, each with a line down to its step.
    const marks = shown.flatMap(([, { history }]) => history.marks);
    const rows = Math.min(ROWS, marks.length);
    const high = y[1];
    const line = ((high - y[0]) * ROW) / (CURVES - rows * ROW);
    y[1] += rows * line;
    const rowOf = (i) => y[1] - (i % ROWS) * line - (line * 22) / ROW;
    const most = Math.max(100, ghost.at(-1)?.[0] ?? 0, ...shown.map(([, { history }]) => 1.1 * history.step));
    const x = [0, placeOf(most)];
    const height = (loss) => clamp(Math.log(Math.max(loss, 1e-9)), y[0], high);
    const curves = shown.flatMap(([key, { history }], i) => [
      {
        tone: i ? "tx-faint tx-second" : "tx-faint",
        points: history.losses.map(({ step, loss }) => [placeOf(step), height(loss)]),
      },
      {
        tone: i ? "tx-second" : "tx-first",
        name: ui.get("brief") ? "" : NAMES[key],
        points: history.curve.map(({ step, loss }) => [placeOf(step), height(loss)]),
      },
    ]);
    const at = ui.get("moment") < 0 ? (shown[0][1].history.at(-1)?.step ?? 0) : ui.get("moment");
    const switched = shown.flatMap(([, { history }]) =>
      history.marks.map((mark) => [
        placeOf(mark.step),
        rowOf(marks.indexOf(mark)),
        Number.isFinite(mark.before) ? height(mark.before) : high,
        mark.text,
      ]),
    );
    second.hidden = !runs.second;
    limit.hidden = !bound;
    if (bound)
      limit.lastChild.textContent = `${ui.get("brief") ? "entropy bound: the best to expect" : "bound"} ${number(bound, 2)}`;
    draw({
      x,
      y,
      at: placeOf(at),
      lines: [
        { tone: "tx-faint tx-past", points: ghost.map(([step, loss]) => [placeOf(step), height(loss)]) },
        ...curves,
        ...switched.map(([across, top, down]) => ({
          tone: "tx-switched",
          points: [
            [across, top + (line * 12) / ROW],
            [across, down],
          ],
        })),
        bound && {
          tone: "tx-bound",
          points: [
            [1e-6, Math.log(bound)],
            [x[1], Math.log(bound)],
          ],
        },
      ],
      xTicks: STEPS.filter((step) => step <= most).map((step) => [placeOf(step), grouped(step)]),
      yTicks: ticksOf(y[0], high, line / ROW),
      dots: [
        ...switched.map(([across, , down]) => ({ at: [across, down], tone: "tx-first" })),
        ...switched.map(([across, top, , name]) => ({
          at: [across, top],
          tone: "tx-first",
          name,
          bare: true,
        })),
      ],
      band: bound
        ? {
            from: y[0],
            to: Math.log(bound),
            name:
              ui.width < NARROW || ui.get("brief")
                ? "below: only by cheating"
                : "below the bound: only by cheating",
          }
        : null,
      label: `Loss against steps. ${shown
        .map(([key, { history }]) => {
          const moment = history.at(-1);
          return moment ? `Run ${NAMES[key]}: ${number(moment.loss)} after step ${moment.step}` : "";
        })
        .join("; ")}${bound ? `; entropy bound ${number(bound, 3)}` : ""}`,
    });
  });
  return h("div.tx-chart", draw.box, legend);
}

// A review, its words that the grammar does not allow marked.
const waved = ({ text, allowed }, n = text.length) =>
  text.slice(0, n).flatMap((word, i) => [gap(text, i), allowed[i] ? word : h("s", word)]);

// One run: how far it is, what it writes with the verdict of the grammar, and what it attends to.
function panel(ui, key, runs) {
  const name = h("p.tx-title");
  const reached = h("p.tx-reached");
  const warning = h("p.tx-problem", { "aria-hidden": "true" });
  const text = h("p.tx-text", { lang: "fr" });
  const english = h("p.tx-english");
  const verdict = h("p.tx-note");
  const earlier = h("ul.tx-earlier");
  const map = attention(ui, NAMES[key]);
  const writes = h("div", text, english, verdict);
  const before = h("div", h("p.tx-title", `Before, run ${NAMES[key]} wrote`), earlier);
  const box = h("div.tx-part.tx-run", name, reached, writes, warning);
  ui.paint(() => {
    const run = runs[key];
    box.hidden = !run;
    before.hidden = map.box.hidden = !run?.history.moments.length;
    if (!run) return;
    const { history, settings } = run;
    const moment = history.at(ui.get("moment"));
    const told = ui.get(key); // as the summary says it
    const odd = unusual(settings);
    name.textContent = `Run ${NAMES[key]} · ${history.marks.length ? "now: " : ""}${odd || "nothing switched off"}`;
    warning.hidden = true;
    if (!moment) {
      const { above, step, text: past, english: said } = TRAINING.recorded;
      reached.textContent = `A recorded run was ${distance(above)} after ${grouped(step)} steps and wrote:`;
      text.textContent = spelt(past);
      english.textContent = wordByWord(said);
      return;
    }
    const above = finite(moment.above);
    reached.replaceChildren(
      h("b", distance(above)),
      `${progress(told, settings)} · ${grouped(told.tokens)} tokens${moment.step < history.at(-1).step ? ` · looking back at step ${grouped(moment.step)}` : ""}`,
    );
    warning.textContent =
      above < 0
        ? belowBound(settings, moment.bound)
        : relearning(history, moment)
          ? cheatedWith(history.marks, moment.step)
          : "";
    warning.hidden = !warning.textContent;
    const written = moment.forced ?? moment;
    const n = written.allowed.filter(Boolean).length;
    if (text.moment !== moment) {
      text.replaceChildren(...waved(written));
      text.moment = moment;
      english.textContent = wordByWord(written.english);
      const past = history.moments.slice(0, history.moments.indexOf(moment));
      const some = [...new Set([2, 1, 0].map((i) => past[Math.floor((i * past.length) / 3)]))].filter(
        (each) => each?.text.length,
      );
      earlier.replaceChildren(
        ...some.map((each) =>
          h("li", h("span", `step ${grouped(each.step)}`), h("span", { lang: "fr" }, spelt(each.text))),
        ),
      );
    }
    const how = moment.forced
      ? "It ends the review before the first word; made to go on, it would write this. "
      : "";
    verdict.textContent = written.text.length
      ? `${how}The grammar allows ${n} of ${counted(written.text.length, "word")}${n < written.text.length ? "; the others are marked" : ""}.`
      : "It writes nothing.";
    map.paint(moment, moment.heads, ui.get("words"));
  });
  return { box, before, map: map.box };
}

// The attention weights of all heads, small, and those of one.
function attention(ui, run) {
  const large = h("canvas", { role: "img" });
  const title = h("p.tx-title");
  const labels = h("div.tx-labels", { "aria-hidden": "true" });
  const note = h("p.tx-note");
  const heads = h("div", { role: "radiogroup", "aria-label": "Block and head" });
  const box = h("div.tx-attends", title, h("div.tx-sides", h("div.tx-map", labels, large), heads), note);
  let canvases = [];
  let show;
  let sizes = "";
  let drawn = "";
  const fit = (layers, n) => {
    if (sizes === `${layers}x${n}`) return;
    sizes = `${layers}x${n}`;
    canvases = range(layers * n).map(() => h("canvas", { "aria-hidden": "true" }));
    const buttons = canvases.map((canvas, i) =>
      h("button.tx-thumb", { "aria-label": `block ${Math.floor(i / n)}, head ${i % n}` }, canvas),
    );
    const choose = (i) => ui.save({ block: Math.floor(i / n), head: i % n });
    const group = h("div.tx-thumbs", { style: `--heads:${n}` }, buttons);
    show = radioGroup(group, buttons, choose, n);
    heads.replaceChildren(group);
  };
  const paint = (moment, n, words) => {
    const layers = moment.attention.length;
    const size = words.length + 1;
    const [block, head] = openHead(ui.get, layers, n);
    const theme = ui.theme;
    const now = [moment.step, moment.loss, block, head, n, theme].join();
    if (now === drawn) return;
    drawn = now;
    fit(layers, n);
    show(block * n + head);
    const share = (b, k) => (i, j) => moment.attention[b][(k * size + i) * size + j];
    // With the mask no word has a weight on a later one.
    const masked = moment.attention.every((weights) =>
      weights.every((w, at) => w === 0 || at % size <= Math.floor(at / size) % size),
    );
    const blocked = (i, j) => masked && j > i;
    note.textContent = `A row for each word; the stronger the colour, the more weight${masked ? "; hatched: masked" : ""}.`;
    canvases.forEach((canvas, i) =>
      paintPixels(canvas, {
        rows: size,
        cols: size,
        share: share(Math.floor(i / n), i % n),
        blocked,
        quiet: true,
        theme,
      }),
    );
    paintCells(large, { rows: size, cols: size, size: CELL, share: share(block, head), blocked, theme });
    const [key, weight] = topKeys(moment, n, size)[block][head];
    const names = ["(start)", ...words];
    title.textContent = `Run ${run}: what each word attends to in block ${block}, head ${head}`;
    labels.replaceChildren(...names.map((word) => h("span", { lang: "fr" }, word)));
    large.ariaLabel = `Attention weights of block ${block}, head ${head}, a row for each word: “${names.at(-1)}” attends most to “${names[key]}”, ${percent(weight)}`;
  };
  return { box, paint };
}

function switches(ui) {
  const toggle = (key, label) => ui.toggle(key, { label });
  const choice = (key, label, words) => ui.choice(key, { label, options: Object.entries(words) });
  const amount = (key, label, all) => ui.choice(key, { label, options: all.map((n) => [n, grouped(n)]) });
  const rate = ui.slider("lr", {
    label: "learning rate",
    min: 0,
    max: RATES.length - 1,
    to: (i) => RATES[i],
    from: (lr) => RATES.findIndex((each) => each >= lr),
  });
  rate.classList.add("tx-lr");
  const first = h(
    "div.tx-row.tx-switches",
    toggle("causal", "mask"),
    toggle("scale", "scale 1/√K"),
    toggle("residual", "residual stream"),
    choice("positions", "positions", { alibi: "ALiBi", sinusoidal: "sinusoidal", none: "none" }),
    rate,
  );
  const faults = h(
    "fieldset.tx-choice",
    h("legend", "faults of the bug museum"),
    Object.entries(SETTINGS)
      .filter(([, { isFault }]) => isFault)
      .map(([key, { says }]) => toggle(key, says(true))),
  );
  const rest = further(
    "More switches",
    amount("n_heads", "heads", [1, 2, 4, 8, 16]),
    amount("tokens_per_batch", "tokens a batch", [128, 256, 512, 1024, 2048]),
    faults,
    h(
      "div.tx-row",
      h("span", "With these a run begins anew:"),
      choice("norm", "norm", { first: "pre-norm", last: "post-norm" }),
      amount("n_layers", "blocks", [1, 2, 3, 4]),
      ui.slider("warmup", { label: "warm-up, % of the schedule", min: 0, max: 50 }),
      ui.slider("seed", { label: "seed", min: 0, max: 20 }),
    ),
  );
  return h("div.tx-part", h("p.tx-title", "Switch something while it learns"), first, rest);
}

const TO_SEE = 100; // steps, after which what a switch changes can be seen
// A second run: a copy with one switch changed. A prediction is asked for before it starts.
function comparison(ui, runs, begin) {
  const keys = Object.keys(SETTINGS);
  const select = h(
    "select.tx-select",
    { onchange: () => ui.save("change", keys[select.selectedIndex]) },
    keys.map(() => h("option")),
  );
  const guess = ui.choice("guess", {
    label: "By the step where run A is now,",
    options: OUTCOMES.map((text, i) => [i, text]),
  });
  const button = pushButton("", begin, ".tx-next.tx-second-run");
  const note = h("p.tx-note");
  const outcome = h("p.tx-outcome", { "aria-hidden": "true" });
  guess.classList.add("tx-guess");
  ui.paint(() => {
    const now = settingsOf(ui.get);
    const shown = runs.first.history.at(-1)?.step ?? 0;
    const said = ui.get("guess") >= 0;
    const goal = runs.second?.goal;
    const waits = goal && !("ended" in goal);
    keys.forEach((key, i) => {
      const text = SETTINGS[key].says(otherValue(key, now[key]));
      if (select.options[i].textContent !== text) select.options[i].textContent = text;
    });
    select.selectedIndex = keys.indexOf(ui.get("change"));
    guess.disabled = select.disabled = !!waits;
    button.textContent = runs.second ? "Start run B again" : "Start run B";
    button.disabled = !(said && shown >= TO_SEE);
    note.textContent =
      shown < TO_SEE
        ? `Let run A learn ${TO_SEE} steps first.`
        : said
          ? ""
          : `Predict first: then ${goal ? "another " : ""}run B starts.`;
    outcome.textContent =
      resolved(ui.get) ||
      (waits
        ? `You predicted: ${OUTCOMES[goal.guess]}. Run B learns up to step ${grouped(goal.step)}, where run A waits.`
        : "");
    outcome.hidden = !outcome.textContent;
  });
  const box = h(
    "div.tx-part.tx-compare",
    h("p.tx-title", "Two runs: predict, then run"),
    h("p.tx-note", "Run B starts anew with the settings of run A, but for one."),
    h("div.tx-row", h("div.tx-control", labelled(select, "run B has"), select)),
    h("div.tx-row", guess),
    h("div.tx-row", button, note),
    outcome,
  );
  return box;
}

function transport(ui, conduct) {
  const { runs } = conduct;
  const play = pushButton("", () => (conduct.playing ? conduct.pause() : conduct.play()), ".tx-next.tx-play");
  const step = pushButton("Step", () => conduct.step(), ".tx-one-step");
  const file = h("input", {
    type: "file",
    accept: ".safetensors",
    hidden: true,
    "aria-label": "a saved state",
    onchange: () => {
      if (file.files[0]) conduct.open(file.files[0]);
      file.value = "";
    },
  });
  const moments = () => runs.first.history.moments;
  const shown = () => moments().indexOf(runs.first.history.at(ui.get("moment")));
  const back = ui.slider("moment", {
    label: "look back",
    min: 0,
    max: () => Math.max(0, moments().length - 1),
    to: (i) => (i === moments().length - 1 ? -1 : moments()[i].step),
    from: () => Math.max(0, shown()),
    format: () => `step ${grouped(moments()[shown()]?.step ?? 0)}`,
  });
  const box = h(
    "div.tx-row.tx-transport",
    play,
    step,
    pushButton("Reset", () => conduct.reset(), ".tx-reset"),
    ui.choice("seconds", {
      label: "schedule",
      options: [
        [60, "a minute"],
        [300, "five minutes"],
      ],
    }),
  );
  const below = h(
    "div.tx-row.tx-transport.tx-look",
    back,
    pushButton("Save", () => runs.first.ask("save"), ".tx-save"),
    pushButton("Load", () => file.click(), ".tx-load"),
    file,
  );
  ui.paint(() => {
    const { history, settings } = runs.first;
    const ended =
      history.step >= settings.n_steps && !(runs.second && runs.second.history.step < settings.n_steps);
    play.textContent = conduct.playing ? "❚❚ Pause" : ended ? "The schedule has ended" : "▶ Play";
    play.disabled = !conduct.playing && ended;
    step.disabled = conduct.playing || ended;
  });
  return { box, below };
}

// One curve, what the model writes, a button and a switch. It begins by itself once it is seen, and waits while
// it is not.
const AT_FIRST = 20; // seconds that it learns unasked
const HONEST = 15; // seconds that it learns before it may cheat
const ENOUGH = 0.4; // of it is seen
const MOST_WORDS = 26;
const FIVE_MINUTES = 300;
const NOTE =
  "The loss is low where the model expects the next word. Without the mask the answer is in the input, one position to the right. Red waves: words that the grammar does not allow there.";
const NOTHING_TO_COPY =
  "It has learned to copy the word to the right. Where it writes there is none, as after the last word in training: there the answer was the end. Red waves: not allowed by the grammar.";
function stage(ui, conduct) {
  const { runs } = conduct;
  const reached = h("p.tx-reached");
  const text = h("p.tx-text", { lang: "fr" });
  const english = h("p.tx-english");
  const brief = h("p.tx-brief", { lang: "fr", "aria-hidden": "true" }); // in sight on a phone
  const why = h("p.tx-note");
  let isAsked = false; // by the reader
  let wasPlaying = false;
  const ended = () => runs.first.history.step >= runs.first.settings.n_steps;
  const go = () => {
    if (ended() && ui.get("seconds") === FIVE_MINUTES) conduct.reset();
    else if (ended()) ui.save("seconds", FIVE_MINUTES);
    conduct.play();
  };
  const asked = (act) => () => {
    isAsked = true;
    act();
  };
  const toggle = () => (conduct.playing ? conduct.pause() : go());
  const play = pushButton("", asked(toggle), ".tx-next.tx-play");
  const remove = () => {
    ui.save("causal", !ui.get("causal"));
    if (!conduct.playing) go();
  };
  const cheat = pushButton("", asked(remove), ".tx-cheat");
  const seen = new IntersectionObserver(
    ([{ isIntersecting, intersectionRatio: share }]) => {
      if (isIntersecting && share < ENOUGH) return;
      if (!isIntersecting) {
        wasPlaying = conduct.playing;
        conduct.pause();
      } else if (wasPlaying || !(isAsked || runs.first.history.step || motionless())) {
        go();
      }
    },
    { threshold: [0, ENOUGH] },
  );
  seen.observe(ui.root);
  ui.signal.addEventListener("abort", () => seen.disconnect());
  const shorter = (words) => {
    const end = words.findIndex((word, i) => i >= 8 && /^[.!]$/.test(word));
    return words.slice(0, end < 0 || end >= MOST_WORDS ? MOST_WORDS : end + 1);
  };
  ui.paint(() => {
    const { history, settings } = runs.first;
    if (!isAsked && conduct.playing && history.spent >= AT_FIRST) {
      conduct.pause();
      const { above } = history.at(-1);
      conduct.say(`After ${AT_FIRST} seconds it waits for you: ${distance(above)}. Go on, or let it cheat.`);
    }
    const moment = history.step ? history.at(-1) : null;
    const shown = moment ?? TRAINING.recorded;
    const forced = settings.causal ? null : moment?.forced;
    const last = moment && history.moments.findLast((each) => each.text.length);
    const writes = forced ?? last ?? TRAINING.recorded;
    const how = forced
      ? "it ends before the first word; made to go on, it writes:"
      : writes === moment
        ? "it writes:"
        : `it writes nothing; ${last ? "it" : "a recorded run"} wrote at step ${grouped(writes.step)}:`;
    const above = finite(shown.above);
    ui.root.setAttribute("aria-busy", conduct.busy);
    ui.root.classList.toggle("tx-below", above < 0);
    reached.replaceChildren(
      h("b", distance(above)),
      moment
        ? `${progress({ ...history, step: moment.step }, settings)}; ${how}`
        : `a recorded run, after ${grouped(shown.step)} steps; it writes:`,
    );
    if (text.moment !== writes) {
      text.moment = writes;
      const { length } = shorter(writes.text);
      text.replaceChildren(...waved(writes, length));
      brief.textContent = `writes: ${text.textContent}`;
      english.textContent = wordByWord(writes.english.slice(0, length));
    }
    why.textContent = forced ? NOTHING_TO_COPY : NOTE;
    const more = ui.get("seconds") === FIVE_MINUTES ? "▶ Train a new one" : "▶ Go on to five minutes";
    const next = ended() ? more : history.step ? "▶ Go on" : "▶ Train it";
    play.textContent = conduct.playing ? "❚❚ Pause" : next;
    cheat.disabled = ui.get("causal") && history.spent < HONEST;
    const offer = cheat.disabled ? `After ${HONEST} s: let it cheat` : "Let it cheat: remove the mask";
    cheat.textContent = ui.get("causal") ? offer : "Put the mask back";
  });
  const buttons = h("div.tx-row.tx-buttons", play, cheat);
  ui.show(h("div.tx-stage", chart(ui, runs), h("div.tx-part", reached, text, english), buttons, brief, why));
}

function build(ui) {
  const conduct = new Conductor(ui);
  if (ui.get("brief")) return stage(ui, conduct);
  const { runs } = conduct;
  const controls = transport(ui, conduct);
  const panels = ["first", "second"].map((key) => panel(ui, key, runs));
  const invite = h("p.tx-invite");
  const notice = h("p.tx-problem", { "aria-hidden": "true" });
  ui.paint(() => {
    const { fast, threaded } = runs.first;
    const slow = [
      threaded ? "" : "This browser starts no worker: the page learns in its own thread.",
      fast === false ? "It has no fast kernels: expect to wait much longer." : "",
    ]
      .filter(Boolean)
      .join(" ");
    invite.textContent = `Press Play: a new transformer learns French reviews of books in this page. Does its loss reach the dashed line, the lowest to expect? ${slow}`;
    ui.root.setAttribute("aria-busy", conduct.busy); // screen readers wait until it pauses
    notice.textContent = ui.get("notice");
    notice.hidden = !notice.textContent || !conduct.busy; // else the summary says it
  });
  // The curve and the switches on the left, what the runs write and attend to on the right.
  ui.show(
    invite,
    controls.box,
    notice,
    h(
      "div.tx-both",
      h("div", chart(ui, runs), switches(ui), controls.below),
      h(
        "div.tx-runs",
        panels.map(({ box }) => box),
        panels.map(({ map }) => map),
      ),
      h(
        "div",
        comparison(ui, runs, () => conduct.second()),
        panels.map(({ before }) => before),
      ),
    ),
  );
}

// The switches, as the address holds them: a shared run begins with them.
const keep = () => ({
  ...Object.fromEntries(Object.keys(SETTINGS).map((key) => [key, []])), // yes or no
  positions: ["alibi", "sinusoidal", "none"],
  norm: ["first", "last"],
  n_heads: (n) => [1, 2, 4, 8, 16].includes(n),
  n_layers: [1, 4],
  lr: [RATES[0], RATES.at(-1), "real"],
  warmup: [0, 50],
  tokens_per_batch: (n) => [128, 256, 512, 1024, 2048].includes(n),
  seed: [0, 20],
  seconds: (n) => n === 60 || n === FIVE_MINUTES,
  change: Object.keys(SETTINGS),
  block: [0, 3],
  head: [0, 15],
});

export default explorer("playground", { build, describe, keep });
