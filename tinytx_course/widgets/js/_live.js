// The shipped model and the generated language, both computed in the page by the engine, for explorers that
// take a text of the reader. Comes after the shared modules where ENGINE, SHIPPED and WORLD do: see
// assets.py.

// Tokens below UNWRITTEN are special; texts remembered
const UNWRITTEN = 7;
const MARK = "\u2581";
const REMEMBERED = 12;
const FULL = [0.1, 0.25, 0.5]; // how much a full bar may be, other than all
export const fullBar = (most) => FULL.find((end) => end >= most) ?? 1;

let loaded = null;
export function machine() {
  const load = () => {
    const { metadata, tensors } = ENGINE.readTensors(bytesOf(SHIPPED));
    const world = new ENGINE.World(bytesOf(WORLD));
    const tokenizer = new ENGINE.Tokenizer(tensors.get("tokenizer.model").data);
    const { config } = JSON.parse(metadata.tinytx);
    const model = new ENGINE.LanguageModel(config).load(ENGINE.dequantised(tensors));
    return { config, model, tokenizer, world, tokens: new ENGINE.TokenWorld(world, tokenizer) };
  };
  loaded ??= load();
  return loaded;
}

// All that the model computes from a text, and where the text leaves the language.
const known = new Map();
export function readText(text) {
  if (known.has(text)) return known.get(text);
  const { config, model, tokenizer, world } = machine();
  const words = world.split(text.normalize("NFC"));
  const all = tokenizer.encode(words.join(" "));
  const skipped = Math.max(0, all.length - config.max_len + 1);
  const ids = [tokenizer.bosId, ...all.slice(skipped)];
  const record = {};
  model.forward(ids, 1, ids.length, record);
  const names = ids.map((id, i) => (i ? tokenizer.piece(id).replace(MARK, "") || "␣" : "(start)"));
  const read = {
    text,
    words,
    all,
    skipped,
    ids,
    names,
    record,
    possible: world.possible(words),
    truths: new Map(),
    streams: new Map(),
  };
  read.instead = allowedInstead(read);
  if (known.size >= REMEMBERED) known.delete(known.keys().next().value);
  known.set(text, read);
  return read;
}

// P(next token) after token i of those read: of the model at a temperature, and the true one, or null outside
// the language.
export function modelChances(read, i, temperature = 1) {
  const { vocab_size: size } = machine().config;
  const logits = read.record.logits.data.subarray(i * size, (i + 1) * size);
  return chancesOf(logits, temperature);
}

export const isWritten = (id) => id >= UNWRITTEN || id === machine().tokenizer.eosId;
const chancesOf = (logits, temperature) =>
  softmax(
    Array.from(logits, (x) => x / temperature),
    Array.from(logits, (_, id) => isWritten(id)),
  );

export function trueChances(read, i) {
  if (!read.truths.has(i))
    read.truths.set(i, machine().tokens.nextToken(read.all.slice(0, read.skipped + i)));
  return read.truths.get(i);
}

// A probability in words: null where no review begins like the text.
export const chance = (p) =>
  p === undefined || p === null
    ? "unknown"
    : p === 0
      ? "never"
      : p < 0.0005
        ? "< 0.1%"
        : `${(100 * p).toFixed(1)}%`;
export const shownAs = (id) =>
  id === machine().tokenizer.eosId ? "(the end)" : machine().tokenizer.piece(id).replace(MARK, "") || "␣";

// All tokens, those with the largest mean of both probabilities first.
export function ranked(model, truth) {
  const mean = (id) => model[id] + (truth ? truth[id] : 0);
  return Array.from(model.keys()).sort((a, b) => mean(b) - mean(a) || a - b);
}

// The words that the language allows where a text leaves it, and those of them that begin as its last word.
function allowedInstead({ text, words, possible }) {
  if (possible >= words.length) return { begun: [], next: [] };
  const next = [...machine().world.nextWord(words.slice(0, possible)).keys()].filter((one) =>
    /\p{L}/u.test(one ?? ""),
  );
  const isWhole = possible < words.length - 1 || /\s$/.test(text);
  return { next, begun: isWhole ? [] : next.filter((one) => one.startsWith(words[possible])) };
}

// What to say where a text leaves the language, with words that it allows there, or is longer than the model can
// read.
const OFFERED = 3;
export function remarks(read) {
  const { words, possible, skipped } = read;
  const { config, tokenizer, world } = machine();
  const out = [];
  const word = words[possible];
  if (word !== undefined) {
    const { next, begun } = read.instead;
    const listed = (all) => {
      const more = all.length > OFFERED ? ` and ${counted(all.length - OFFERED, "other word")}` : "";
      return `“${all.slice(0, OFFERED).join("”, “")}”${more}`;
    };
    const why = world.ids.has(word)
      ? `The grammar never has “${word}” ${possible ? `after “${words[possible - 1]}”` : "at the beginning"}`
      : `“${word}” is not in the small French of this model, which reads it in ${counted(tokenizer.encode(word).length, "piece")}`;
    if (begun.length)
      out.push(`“${word}” begins ${listed(begun)} of the language; as it is, you see the model alone.`);
    else out.push(`${why}: from there on you see the model alone.`);
    if (next.length && !begun.length) out.push(`There the grammar allows ${listed(next)}.`);
  }
  if (skipped)
    out.push(
      `The model reads at most ${config.max_len} tokens: it sees the last ${config.max_len - 1} of yours.`,
    );
  return out.join(" ");
}

// Append a token to the text, as people write it; what was typed stays as it is.
export function appended(text, id) {
  const { tokenizer, world } = machine();
  const piece = tokenizer.piece(id);
  const word = piece.replace(MARK, "");
  return text + (piece.startsWith(MARK) ? world.gap(text, word) : "") + word;
}

// Where the reader writes the beginning of a review, with its English word by word, and words to press where it
// leaves the language; what was typed is changed by nobody else. `reset` holds what typing sets besides, `enter`
// is called by the key of that name.
const GLOSSED = 20; // words at the end of the text
const PRESSED = 6; // words to press, at most
export function beginning(ui, { reset = {}, enter = () => {} }, ...more) {
  const field = h("textarea.tx-field", {
    rows: 1,
    autocapitalize: "off",
    spellcheck: "false",
    lang: "fr",
  });
  const label = labelled(field, "Beginning of a review, in French");
  label.className = "tx-title";
  const english = h("p.tx-note");
  const instead = h("div.tx-instead", { role: "group", "aria-label": "words that fit" });
  field.addEventListener("input", () => {
    readText(field.value); // a task of its own: what is drawn comes in the next one
    ui.set({ text: field.value, ...reset });
  });
  field.addEventListener("change", () => ui.done());
  field.addEventListener("keydown", (event) => {
    if (event.key === "Enter") {
      event.preventDefault();
      enter();
    }
  });
  let shown = null;
  ui.paint(() => {
    const read = readText(ui.get("text"));
    const { world } = machine();
    if (field.value !== read.text) field.value = read.text;
    field.style.height = "auto"; // as high as its text, up to what the style allows
    if (field.scrollHeight) field.style.height = `${field.scrollHeight + 2}px`;
    if (read === shown) return; // a word to press that has the focus stays
    shown = read;
    const last = read.words.slice(-GLOSSED).map((word) => world.english[world.ids.get(word)] ?? word);
    english.textContent = wordByWord(last);
    ui.root.classList.toggle("tx-away", Boolean(remarks(read)));
    const { begun, next } = read.instead;
    const take = (word) => () => {
      ui.save({ text: world.written([...read.words.slice(0, read.possible), word]), ...reset });
      field.focus();
    };
    instead.replaceChildren(
      ...(begun.length ? begun : next)
        .slice(0, PRESSED)
        .map((word) => h("button.tx-token", { lang: "fr", onclick: take(word) }, word)),
    );
    instead.hidden = !instead.childElementCount;
  });
  return h("div.tx-writing", label, field, h("div.tx-glossed", english, instead), more);
}

// Tokens as one group for Tab; paint(names, chosen, fill) fills button i with fill(i), go(i) is called when
// one is chosen.
export function tokenRow(label, go) {
  const box = h("div.tx-tokens", { role: "radiogroup", "aria-label": label });
  let buttons = [];
  let show = () => {};
  return {
    box,
    paint(names, chosen, fill) {
      if (buttons.length !== names.length) {
        const held = box.contains(document.activeElement);
        buttons = names.map(() => h("button.tx-token"));
        const group = h("div.tx-radios", buttons);
        show = radioGroup(group, buttons, go);
        box.replaceChildren(group);
        if (held) buttons[chosen].focus();
      }
      show(chosen);
      buttons.forEach((button, i) => button.replaceChildren(...fill(i)));
      const row = buttons[chosen]; // of a long text three rows are in view, the chosen token among them
      if (!row) return;
      const tall = row.offsetHeight + 5; // with the gap: whole rows, none cut in two
      if (row.offsetHeight) box.style.maxHeight = `${3 * tall + 2}px`;
      box.scrollTop = Math.round((row.offsetTop - box.offsetTop - box.clientHeight / 2) / tall) * tall;
    },
  };
}
