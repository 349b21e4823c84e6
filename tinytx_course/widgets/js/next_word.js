// The explorer of the next word. `get` maps the name of a trait to its value.
// A row is how many words may follow in the world, then word, model and world, again and again; 100000 is 1.

const WHOLE = 100000, N_ROWS = 10, PATIENCE = 5000;
const share = (part) => `${((100 * part) / WHOLE).toFixed(1)}%`;
const shownAs = (word) => word || "(the end)";
const same = (a, b) => a.length === b.length && a.every((word, i) => word === b[i]);

// Stored nodes by their way from the empty beginning: "3/7" goes on from node 3 with word 7.
const trees = new WeakMap();
function tree(stored) {
  if (!trees.has(stored)) {
    const ids = new Map(stored.words.map((word, i) => [word, i]));
    trees.set(stored, { ids, places: new Map(stored.nodes.map(([from, word], place) => [`${from}/${word}`, place])) });
  }
  return trees.get(stored);
}

// The node of a beginning as far as it is stored: [node, how many words of it].
function walk(stored, words) {
  const { ids, places } = tree(stored);
  let place = places.get("-1/-1"), length = 0;
  for (; length < words.length; length++) {
    const next = places.get(`${place}/${ids.get(words[length]) ?? "?"}`);
    if (next === undefined) break;
    place = next;
  }
  return [place, length];
}

// The stored row of a beginning, or null.
export function storedRow(stored, words) {
  const [place, length] = walk(stored, words);
  if (length < words.length) return null;
  const [, , possible, ...rest] = stored.nodes[place];
  return [possible, ...rest.map((x, i) => (i % 3 ? x : stored.words[x]))];
}

// What to say where no kernel answers and nothing is stored: how far it goes, and why no further.
export function mistake(stored, words) {
  const [, length] = walk(stored, words), good = words.slice(0, length), row = storedRow(stored, good), next = words[length];
  const [, , truth] = rowsOf(row).find(([word]) => word === next) ?? [];
  const outside = truth === 0 || (truth === undefined && rowsOf(row).filter(([, , t]) => t > 0).length === row[0]);
  const there = length ? `after “${words[length - 1]}”` : "at the beginning";
  return [good, outside ? `The language never says “${next}” ${there}. Choose one of the words that may follow.`
    : `“${next}” ${there} is not among the stored answers; a running notebook answers for any beginning.`];
}

const rowsOf = (row) => Array.from({ length: (row.length - 1) / 3 }, (_, i) => row.slice(1 + 3 * i, 4 + 3 * i));

// Words to text and back, as typography.py does it.
export const written = (words, glued) => words.reduce((text, word) => text + (!text || text.endsWith("'") || glued.includes(word) ? "" : " ") + word, "");
export function split(text, unsplit) {
  const whole = [...unsplit].sort((a, b) => b.length - a.length).map((word) => word.replace(/[\\^$.*+?()[\]{}|/]/g, "\\$&"));
  return text.normalize("NFC").replace(/[’ʼ]/g, "'").match(new RegExp([...whole, "\\p{L}+(?:-\\p{L}+)*'?", "\\S"].join("|"), "gu")) ?? [];
}

export function describe(get) {
  const row = get("answer").row, rows = rowsOf(row), words = get("words"), sides = get("has_model") ? [["model", 1], ["world", 2]] : [["world", 2]];
  let text = get("problem") ? `${get("problem")} ` : "";
  text += `${words.length ? `After “${written(words, get("glued"))}”` : "At the beginning"} ${row[0]} ${row[0] === 1 ? "word" : "words"} may follow in the world. `;
  for (const [side, column] of sides) {
    const best = [...rows].sort((a, b) => b[column] - a[column]).slice(0, 3).filter((one) => one[column] > 0);
    text += `The ${side} expects ${best.map((one) => `“${shownAs(one[0])}” ${share(one[column])}`).join(", ")}. `;
  }
  const [word, guess, true_] = rows[Math.min(get("pointed"), rows.length - 1)];
  return `${text}Chosen: “${shownAs(word)}”, ${get("has_model") ? `model ${share(guess)}, ` : ""}`
    + (true_ ? `world ${share(true_)}.` : "which the world never says here.");
}

// Asking for a beginning: what is stored comes at once, for the rest Python is asked where there is one.
function asking(ui) {
  const line = { text: "", live: false };
  let waiting = 0;
  const show = (words, row, problem = "") => {
    for (const [key, value] of [["words", words], ["answer", { words, row }], ["pointed", 0], ["problem", problem]]) ui.set(key, value);
    ui.done();
  };
  const say = (text) => { line.text = text; ui.redraw(); };
  const settled = () => { clearTimeout(waiting); say(""); };
  // Only Python changes pong: whoever hears of it has a kernel.
  const heard = () => { line.live = true; settled(); };
  ui.model.on("change:pong", heard);
  ui.signal.addEventListener("abort", () => { clearTimeout(waiting); ui.model.off("change:pong", heard); });
  ui.save("ping", (ui.get("ping") + 1) % 1e6);
  line.ask = (words) => {
    const stored = ui.get("stored"), row = storedRow(stored, words);
    if (row) return show(words, row);
    if (line.live) {
      clearTimeout(waiting);
      waiting = setTimeout(() => say("Python does not answer. Is the kernel busy, or gone?"), PATIENCE);
      ui.save("asked", { n: Date.now(), words });
      return say("Asking Python …");
    }
    const [good, problem] = mistake(stored, words);
    return show(good, storedRow(stored, good), problem);
  };
  line.refuse = (problem) => ui.save("problem", problem);
  return line;
}

// What the reader writes: a line of text, Enter to ask.
function writing(ui, line) {
  const id = uid(), field = h("input", { id, type: "text", class: "tx-field", autocomplete: "off", autocapitalize: "off", spellcheck: "false" });
  const send = () => line.ask(split(field.value, ui.get("unsplit")));
  const back = () => line.ask(ui.get("words").slice(0, -1));
  field.addEventListener("keydown", (event) => { if (event.key === "Enter") { event.preventDefault(); send(); } });
  const undo = h("button", { type: "button", class: "tx-button", onclick: back }, "← One word back");
  let shown = null;
  const update = () => {
    const words = ui.get("words");
    undo.disabled = words.length === 0;
    // What is being written stays until the beginning changes.
    if (words !== shown) field.value = written(words, ui.get("glued"));
    shown = words;
  };
  update.back = back;
  update.box = h("div", { class: "tx-row tx-writing" }, h("label", { for: id }, "Beginning"), field,
    h("button", { type: "button", class: "tx-button tx-next", onclick: send }, "Show"), undo);
  return update;
}

// The words that may come next: two bars each, one stop for Tab, arrows within.
function listing(ui, line, back) {
  const named = ui.get("has_model") ? ["model", "world"] : ["world"];
  const rows = Array.from({ length: N_ROWS }, (_, i) => {
    const word = h("span", { class: "tx-next-word" }), bars = named.map((side) => ({ fill: h("i"), text: h("b"), side }));
    const go = () => choose(i);
    const box = h("button", { type: "button", class: "tx-option", onclick: go, onfocus: () => point(i) }, word,
      " ",
      h("span", { class: "tx-two" }, bars.map(({ fill, text, side }) => h("span", { class: `tx-one tx-${side}` }, h("em", {}, side), " ", h("u", {}, fill), text, " "))));
    return { box, word, bars };
  });
  const current = () => rowsOf(ui.get("answer").row);
  const point = (i) => { if (i !== ui.get("pointed")) ui.save("pointed", i); };
  const choose = (i) => {
    const [word, , truth] = current()[i];
    if (!truth) return line.refuse(`The language never says “${shownAs(word)}” here, though the model may. Choose another word.`);
    if (!word) return line.refuse("The review ends here. Go one word back, or write another beginning.");
    return line.ask([...ui.get("words"), word]);
  };
  const box = h("div", { class: "tx-options", role: "group", "aria-label": "words that may come next" }, rows.map((row) => row.box));
  box.addEventListener("keydown", (event) => {
    const at = rows.findIndex((row) => row.box === event.target), last = current().length - 1;
    if (at < 0 || event.ctrlKey || event.metaKey || event.altKey) return;
    const to = { ArrowDown: at + 1, ArrowRight: at + 1, ArrowUp: at - 1, ArrowLeft: at - 1, Home: 0, End: last }[event.key];
    if (event.key === "Backspace" && ui.get("words").length) back();
    else if (to === undefined) return;
    else rows[clamp(to, 0, last)].box.focus();
    event.preventDefault();
  });
  box.addEventListener("pointermove", (event) => {
    const at = rows.findIndex((row) => row.box.contains(event.target)), [word, , truth] = current()[at] ?? [];
    ui.tip(word === undefined || !truth ? null : word ? `${written([...ui.get("words"), word], ui.get("glued"))} …` : "The review ends here.", event);
  });
  box.addEventListener("pointerleave", () => ui.tip(null));
  let before = ui.get("words");
  const update = () => {
    const found = current(), at = Math.min(ui.get("pointed"), found.length - 1), moved = !same(before, ui.get("words"));
    before = ui.get("words");
    if (moved && box.contains(document.activeElement)) rows[0].box.focus();
    rows.forEach(({ box: button, word, bars }, i) => {
      button.hidden = i >= found.length;
      button.tabIndex = i === at ? 0 : -1;
      if (button.hidden) return;
      const [name, guess, truth] = found[i];
      word.textContent = shownAs(name);
      const chances = named.map((side) => [side, side === "model" ? guess : truth]);
      button.dataset.chosen = i === at;
      bars.forEach(({ fill, text }, j) => {
        const p = chances[j][1];
        fill.style.width = p ? `max(1px, ${((100 * p) / WHOLE).toFixed(2)}%)` : "0";
        fill.parentNode.className = p || named[j] === "model" ? "" : "tx-never";
        text.textContent = p || named[j] === "model" ? share(p) : "never";
      });
    });
  };
  update.box = box;
  return update;
}

function build(ui) {
  const line = asking(ui), text = writing(ui, line), options = listing(ui, line, text.back);
  const sentence = h("p", { class: "tx-sentence", "aria-hidden": "true" }), problem = h("p", { class: "tx-problem", "aria-hidden": "true" });
  const rest = h("p", { class: "tx-note" }), source = h("p", { class: "tx-note" }), waiting = h("p", { class: "tx-note", role: "status" });
  const paint = () => {
    const row = ui.get("answer").row, rows = rowsOf(row), sum = (column) => WHOLE - rows.reduce((total, one) => total + one[column], 0);
    text();
    options();
    sentence.replaceChildren(h("b", {}, written(ui.get("words"), ui.get("glued"))), " …");
    problem.textContent = ui.get("problem");
    problem.hidden = !ui.get("problem");
    const more = row[0] - rows.filter(([, , truth]) => truth > 0).length;
    rest.textContent = `All other words: ${ui.get("has_model") ? `model ${share(Math.max(0, sum(1)))}, ` : ""}`
      + (more > 0 ? `world ${share(Math.max(0, sum(2)))} for ${more} ${more === 1 ? "word" : "words"}.` : "world never.");
    source.textContent = line.live ? "Python answers: write any beginning in the language."
      : `No kernel here: ${ui.get("stored").nodes.length} stored beginnings answer. In a running notebook you may write any.`;
    waiting.textContent = line.text;
  };
  ui.show(paint, h("p", { class: "tx-invite" }, "Which word comes next? Press one to go on with it, or write a beginning and press Enter."),
    text.box, problem, sentence, options.box, rest, source, waiting);
}

export default explorer("next_word", { build, describe });
