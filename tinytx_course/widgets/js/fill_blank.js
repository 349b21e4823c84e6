// The explorer of a blank. `get` maps the name of a trait to its value; a row is [token, both, left, model].

const SIDES = ["exact, both sides", "exact, left only", "model"], TONES = ["tx-both", "tx-left", "tx-model"];
const SHORT = ["both", "left", "model"], ENDS = [0.05, 0.1, 0.2, 0.5, 1];

// The chosen blank: tokens, hidden position, what is known of it.
export function blankOf(get) {
  const tokens = get("tokens")[get("review")], at = Math.min(get("position"), tokens.length - 1);
  return { tokens, at, ...get("blanks")[get("review")][at] };
}

// The end of the axis: the smallest round share that all bars fit in.
export const endOf = (rows) => ENDS.find((end) => rows.every(([, ...shares]) => shares.every((p) => p <= end)));

const share = (p) => (p > 0 && p < 0.001 ? "< 0.1%" : `${(100 * p).toFixed(1)}%`);
const nats = (x) => `${number(x, 3)} nats`;

const FRESH = { guess: "", revealed: false };
// Nothing is shown before the reader has chosen, or gives up.
const asks = (get) => !get("guess") && !get("revealed");

export function describe(get) {
  const { tokens, at, rows, left, model, possible, impossible } = blankOf(get), guess = rows.find(([token]) => token === get("guess"));
  const hidden = `Token ${at} of 0 to ${tokens.length - 1} is hidden`;
  if (asks(get)) return `${hidden}. Which would you fill in?`; // not how many are possible: one alone would be the answer
  const chosen = guess ? `You chose “${guess[0]}”: ${SIDES.map((side, i) => `${side} ${share(guess[i + 1])}`).join("; ")}. ` : "";
  const best = SIDES.map((side, i) => [side, rows.reduce((a, b) => (b[i + 1] > a[i + 1] ? b : a)), i]);
  return `${hidden}; ${counted(possible, "token")} of the vocabulary ${possible === 1 ? "is" : "are"} possible. ${chosen}The model gives ${share(impossible)} to impossible tokens.${get("revealed") ? ` The hidden token: “${tokens[at]}”.` : ""}\nMost probable: `
    + `${best.map(([side, row, i]) => `${side}, “${row[0]}” ${share(row[i + 1])}`).join("; ")}. KL divergence from the exact distribution: model ${nats(model)}, left side only ${nats(left)}.`;
}

// The review as buttons, one of them blank.
const hide = (ui, i) => { Object.entries(FRESH).forEach(([key, value]) => ui.set(key, value)); ui.save("position", i); };

function text(ui) {
  const box = h("div", { class: "tx-review", role: "radiogroup", "aria-label": "hidden token" });
  let known = null, words = [];
  const update = ({ tokens, at }) => {
    if (tokens !== known) {
      words = tokens.map((_, i) => h("button", { type: "button", class: "tx-word", role: "radio", onclick: () => hide(ui, i) }));
      const fresh = h("div", { class: "tx-words" }, words);
      fresh.stop = roving(fresh, words, { go: (i) => hide(ui, i) });
      box.replaceChildren(fresh);
      known = tokens;
    }
    box.firstChild.stop(at);
    words.forEach((word, i) => {
      word.textContent = i === at && !ui.get("revealed") ? "____" : tokens[i];
      word.setAttribute("aria-checked", i === at);
      word.setAttribute("aria-label", i === at && !ui.get("revealed") ? `token ${i}, hidden` : tokens[i]);
    });
  };
  update.box = box;
  return update;
}

// What the chart has a row for: the possible tokens, then all impossible ones in one, of which only the model's share is known.
export const entriesOf = ({ rows, impossible }) => [...rows.filter(([, both]) => both > 0), ["impossible words", 0, 0, impossible]];

// What one may choose from: the tokens of the rows, in the order of the alphabet.
function question(ui) {
  const box = h("div", { class: "tx-radios", role: "group", "aria-label": "your choice" });
  const choice = (token, words = token, kind = "tx-token") => h("button", { type: "button", class: kind, onclick: () => ui.save("guess", token) }, words);
  const update = ({ rows }) => {
    const tokens = rows.map(([token]) => token).sort((a, b) => a.localeCompare(b, "fr"));
    box.replaceChildren(h("span", { class: "tx-title" }, "Fill in:"), ...tokens.map((token) => choice(token)), choice("?", "Show without choosing", "tx-button"));
  };
  update.box = box;
  return update;
}

// Three bars a token; the words that are most probable among the impossible ones are named in their row.
function chart(ui) {
  const list = h("div", { class: "tx-bars", role: "list", "aria-label": "tokens" });
  const axis = h("p", { class: "tx-axis", "aria-hidden": "true" });
  const update = ({ rows, tokens, at, impossible }) => {
    const entries = entriesOf({ rows, impossible }), end = endOf(entries), right = ui.get("revealed") ? tokens[at] : null;
    axis.replaceChildren(...[0, end / 2, end].map((p) => h("span", {}, `${+(100 * p).toFixed(1)}%`)));
    const wrong = rows.filter(([, both]) => both === 0).sort((a, b) => b[3] - a[3]).slice(0, 1).map(([token, , , p]) => `${token} ${share(p)}`);
    list.replaceChildren(...entries.map(([token, ...shares]) => h("div", { class: "tx-entry", role: "listitem", "data-possible": String(shares[0] > 0), "data-right": String(token === right) },
      h("span", { class: "tx-name" }, token, shares[0] > 0 ? null : h("small", {}, wrong.length ? `most: ${wrong}` : "all together"), token === right ? h("small", {}, "hidden here") : null, token === ui.get("guess") ? h("small", {}, "your choice") : null),
      h("span", {}, shares.map((p, i) => (shares[0] === 0 && i < 2 ? "" : h("span", { class: `tx-one ${TONES[i]}` }, h("em", {}, SHORT[i]), h("u", {}, h("i", { style: `width:${((100 * p) / end).toFixed(2)}%` })), h("b", {}, share(p)))))))));
  };
  update.box = h("div", { class: "tx-chart" }, h("p", { class: "tx-key" }, SIDES.map((side, i) => h("span", { class: TONES[i] }, h("i"), side))), axis, list);
  return update;
}

function build(ui) {
  const words = text(ui), ask = question(ui), bars = chart(ui), facts = h("p", { class: "tx-facts", "aria-hidden": "true" }), note = h("p", { class: "tx-note" });
  const all = ui.get("blanks").flat(), mean = (key) => all.reduce((sum, blank) => sum + blank[key], 0) / all.length;
  // Another token than now: whoever has just read the text is asked about one they did not pick.
  const random = () => { const { tokens, at } = blankOf(ui.get), i = Math.floor(Math.random() * (tokens.length - 1)); hide(ui, i < at ? i : Math.min(i + 1, tokens.length - 1)); };
  const dice = h("button", { type: "button", class: "tx-button", onclick: random }, "Hide one at random"), again = h("button", { type: "button", class: "tx-button", onclick: () => hide(ui, blankOf(ui.get).at) }, "Ask again");
  const paint = () => {
    again.disabled = asks(ui.get);
    const blank = blankOf(ui.get), rest = blank.possible - entriesOf(blank).length + 1;
    words(blank);
    ask.box.hidden = !asks(ui.get);
    bars.box.hidden = facts.hidden = note.hidden = asks(ui.get);
    if (asks(ui.get)) return ask(blank);
    bars(blank);
    facts.replaceChildren("KL divergence from exact, both sides: ", h("b", { class: "tx-model" }, `model ${nats(blank.model)}`), " · ", h("b", { class: "tx-left" }, `left only ${nats(blank.left)}`));
    note.textContent = `${rest > 0 ? `Not shown: ${counted(rest, "less probable possible token")}. ` : ""}Impossible: no review of this world has the word here; grammar is one reason, an opinion that the rest contradicts another. Divergence on average over all ${all.length} blanks: model ${nats(mean("model"))}, left only ${nats(mean("left"))}.`;
  };
  ui.show(paint, h("p", { class: "tx-invite" }, "Press any token to hide it. What is probable from the left alone, and from both sides? Does the model agree?"),
    h("div", { class: "tx-row" }, ui.picks("review", { label: "review", names: ui.get("tokens").map((_, i) => `review ${i + 1}`), reset: (i) => ({ ...FRESH, position: ui.get("clearest")[i] }) }), h("span", { class: "tx-pair" }, dice, again), ui.toggle("revealed", { label: "show the hidden token" })),
    words.box, ask.box, bars.box, facts, note);
}

export default explorer("fill_blank", { build, describe });
