// The explorer of a blank. `get` maps the name of a trait to its value; a row is [token, both, left, model].

const SIDES = ["exact, both sides", "exact, left only", "model"];
const TONES = ["tx-both", "tx-left", "tx-model"];
const SHORT = ["both", "left", "model"];
const ENDS = [0.05, 0.1, 0.2, 0.5, 1];

// The chosen blank: tokens, hidden position, what is known of it.
export function blankOf(get) {
  const tokens = get("tokens")[get("review")];
  const at = Math.min(get("position"), tokens.length - 1);
  return { tokens, at, ...get("blanks")[get("review")][at] };
}

// The end of the axis: the smallest round share that all bars fit in.
export const endOf = (rows) =>
  ENDS.find((end) => rows.every(([, ...shares]) => shares.every((p) => p <= end)));

const share = (p) => (p > 0 && p < 0.001 ? "< 0.1%" : `${(100 * p).toFixed(1)}%`);
const nats = (x) => `${number(x, 3)} nats`;

const FRESH = { guess: "", revealed: false };
// Nothing is shown before the reader has chosen, or gives up.
const asks = (get) => !get("guess") && !get("revealed");

// The row of what the reader chose, and whether it can be and is the hidden token; null before, and for who
// chose none.
export function verdictOf(get) {
  const { rows, tokens, at } = blankOf(get);
  const row = rows.find(([token]) => token === get("guess"));
  if (!row) return null;
  const can = row[1] > 0;
  const right = row[0] === tokens[at];
  return {
    row,
    can,
    mark: can ? "✓" : "✗",
    text: !can
      ? "impossible here, so not the hidden token"
      : `possible, ${right ? "and" : "but not"} the hidden token`,
  };
}

export function describe(get) {
  const { tokens, at, rows, left, model, possible, impossible } = blankOf(get);
  const guess = verdictOf(get);
  const hidden = `Token ${at + 1} of ${tokens.length} is hidden`;
  // not how many are possible: one alone would be the answer
  if (asks(get)) return `${hidden}. Which would you fill in?`;
  const chosen = guess
    ? `You chose “${guess.row[0]}”: ${guess.mark} ${guess.text} (${SIDES.map((side, i) => `${side.replace("exact, ", "")} ${share(guess.row[i + 1])}`).join(", ")}). `
    : "";
  const best = SIDES.map((side, i) => [side, rows.reduce((a, b) => (b[i + 1] > a[i + 1] ? b : a)), i]);
  return (
    `${hidden}; ${counted(possible, "token")} ${possible === 1 ? "is" : "are"} possible. ${chosen}The model gives ${share(impossible)} to impossible tokens.${get("revealed") ? ` The hidden token: “${tokens[at]}”.` : ""}\nMost probable: ` +
    `${best.map(([side, row, i]) => `${side}, “${row[0]}” ${share(row[i + 1])}`).join("; ")}. KL divergence from the exact distribution: model ${nats(model)}, left side only ${nats(left)}.`
  );
}

// The review as buttons, one of them blank.
const hide = (ui, i) => ui.save({ ...FRESH, position: i });

function text(ui) {
  const box = h("div.tx-review", { role: "radiogroup", "aria-label": "hidden token" });
  let known = null;
  let words = [];
  ui.paint(() => {
    const { tokens, at } = blankOf(ui.get);
    if (tokens !== known) {
      words = tokens.map(() => h("button.tx-word"));
      const fresh = h("div.tx-words", words);
      fresh.show = radioGroup(fresh, words, (i) => hide(ui, i));
      box.replaceChildren(fresh);
      known = tokens;
    }
    box.firstChild.show(at);
    const guess = verdictOf(ui.get);
    words.forEach((word, i) => {
      const blank = i === at && !ui.get("revealed");
      word.textContent = !blank ? tokens[i] : guess ? `${guess.row[0]} ${guess.mark}` : "____";
      word.dataset.verdict = blank && guess ? guess.mark : "";
      word.ariaLabel = !blank
        ? tokens[i]
        : `token ${i}, hidden${guess ? `, your choice ${guess.row[0]}: ${guess.text}` : ""}`;
    });
  });
  return box;
}

// The word of the hidden token, counted from 0; a token that begins with a hyphen goes on with one.
export const wordOf = ({ tokens, at }) =>
  tokens.slice(1, at + 1).filter((token) => !token.startsWith("-")).length;

// What the chart has a row for: the tokens of the blank, then all other impossible ones in one, of which only
// the model's share is known.
export const entriesOf = ({ rows, impossible }) => {
  const named = rows.reduce((sum, [, both, , model]) => sum + (both > 0 ? 0 : model), 0);
  return [...rows, ["other impossible words", 0, 0, Math.max(0, impossible - named)]];
};

const entry = (name, bars = [], more = {}) => h("div.tx-entry", { ...more }, name, h("span", bars));
const bar = (i, width, said) =>
  h(
    "span",
    { class: `tx-one ${TONES[i]}` },
    h("em", SHORT[i]),
    h("u", h("i", { style: `width:${width}%` })),
    h("b", said),
  );

// What one may choose from: the tokens of the rows, in the order of the alphabet, where they will have bars.
function question(ui) {
  const box = h("div.tx-bars", { role: "group", "aria-label": "your choice" });
  const choice = (token, words = token, kind = "tx-token") =>
    h("button", { class: kind, onclick: () => ui.save("guess", token) }, words);
  let known = null;
  const update = ({ rows }) => {
    if (rows === known) return; // drawn again for another width: the button with the focus stays
    known = rows;
    const tokens = rows.map(([token]) => token).sort((a, b) => a.localeCompare(b, "fr"));
    box.replaceChildren(
      ...tokens.map((token) => entry(choice(token))),
      choice("?", "Show without choosing", "tx-button"),
    );
  };
  update.box = box;
  return update;
}

// Three bars a token; what the reader chose is marked.
function chart(ui) {
  const list = h("div.tx-bars.tx-chart", { role: "list", tabindex: "-1", "aria-label": "tokens" });
  const update = (blank, end) => {
    const right = ui.get("revealed") ? blank.tokens[blank.at] : null;
    const guess = verdictOf(ui.get);
    const entries = entriesOf(blank);
    list.replaceChildren(
      ...entries.map(([token, ...shares], at) => {
        const mine = guess?.row[0] === token ? guess.mark : "";
        const known = at < blank.rows.length;
        const can = shares[0] > 0;
        const words = mine
          ? `your choice${token === right ? ", right" : ""}`
          : token === right
            ? "hidden token"
            : known && !can
              ? "impossible"
              : "";
        return entry(
          h("span.tx-name", mine && `${mine} `, token, words && h("small", words)),
          shares.map((p, i) => (known || i === 2 ? bar(i, ((100 * p) / end).toFixed(2), share(p)) : "")),
          {
            role: "listitem",
            "data-possible": String(can),
            "data-right": String(token === right),
            "data-verdict": mine,
          },
        );
      }),
    );
  };
  update.box = list;
  return update;
}

function build(ui) {
  const ask = question(ui);
  const bars = chart(ui);
  const facts = h("p.tx-facts", { "aria-hidden": "true" });
  const note = h("p.tx-note");
  const gloss = h("p.tx-note");
  const all = ui.get("blanks").flat();
  const mean = (side) => all.reduce((sum, blank) => sum + blank[side], 0) / all.length;
  // Another token than now: whoever has just read the text is asked about one they did not pick.
  const random = () => {
    const { tokens, at } = blankOf(ui.get);
    const i = Math.floor(Math.random() * (tokens.length - 1));
    hide(ui, i < at ? i : Math.min(i + 1, tokens.length - 1));
  };
  const dice = pushButton("Hide one at random", random);
  const again = pushButton("Ask again", () => hide(ui, blankOf(ui.get).at));
  const key = h("p.tx-key");
  const average = `Divergence on average over all ${all.length} blanks: model ${nats(mean("model"))}, left only ${nats(mean("left"))}.`;
  note.textContent = `Impossible: no review of this world has the word here; grammar is one reason, an opinion that the rest contradicts another. ${average}`;
  let asked = true;
  ui.paint(() => {
    const blank = blankOf(ui.get);
    const shown = blank.rows.filter(([, both]) => both > 0).length;
    const rest = blank.possible - shown;
    const end = endOf(entriesOf(blank));
    const was = asked;
    const focused = document.activeElement;
    asked = asks(ui.get);
    const word = ui.get("revealed") ? -1 : wordOf(blank);
    gloss.textContent = wordByWord(
      ui.get("english")[ui.get("review")]?.map((one, i) => (i === word ? "____" : one)),
    );
    again.disabled = bars.box.hidden = asked;
    ask.box.hidden = !asked;
    const sides = SIDES.map((side, i) => h("span", { class: TONES[i] }, h("i"), side));
    key.replaceChildren(...(asked ? [h("b", "Fill in:")] : [...sides, `full bar: ${100 * end}%`]));
    facts.replaceChildren(
      ...(asked
        ? ["What is probable is shown after your choice."]
        : [
            "KL divergence from exact, both sides: ",
            h("b.tx-model", `model ${nats(blank.model)}`),
            " · ",
            h("b.tx-left", `left only ${nats(blank.left)}`),
            rest > 0 ? `. Not shown: ${counted(rest, "less probable possible token")}.` : "",
          ]),
    );
    if (asked) ask(blank);
    else bars(blank, end);
    bars.box.classList.toggle("tx-fresh", was && !asked);
    // The button that was pressed is gone: its result has the focus.
    if (!asked && ask.box.contains(focused)) bars.box.focus({ preventScroll: true });
    if (asked && focused === again) ask.box.querySelector("button").focus({ preventScroll: true });
  });
  ui.show(
    h(
      "p.tx-invite",
      "Press any token to hide it. What is probable from the left alone, and from both sides? Does the model agree?",
    ),
    h(
      "div.tx-row",
      ui.picks("review", {
        label: "review",
        names: ui.get("tokens").map((_, i) => `review ${i + 1}`),
        reset: (i) => ({ ...FRESH, position: ui.get("clearest")[i] }),
      }),
      h("span.tx-pair", dice, again),
      ui.toggle("revealed", { label: "show the hidden token" }),
    ),
    text(ui),
    gloss,
    key,
    ask.box,
    bars.box,
    facts,
    note,
  );
}

const keep = (get) => ({
  review: [0, get("tokens").length - 1],
  position: [0, Math.max(...get("tokens").map((words) => words.length)) - 1],
});

export default explorer("fill_blank", { build, describe, keep });
