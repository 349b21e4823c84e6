// The generated language in the page: exact probabilities of words by the forward algorithm, as in
// tinyworld.automaton. A state of reading is { mass, stopped, logScale }: for each state of the network the
// probability of what is hidden (label, number of finished sentences, book), the same of the review that ends
// here, and the logarithm of their factor.

import { readTensors } from "./safetensors.js";

const LABELS = 2;
const LETTER = "[\\p{L}\\p{Nl}\\p{No}]";
const APOSTROPHES = /[’ʼ]/g;
const total = (numbers) => {
  let sum = 0;
  for (const x of numbers) sum += x;
  return sum;
};
// The place that a random number from 0 to 1 falls into; weights need not sum to 1.
const picked = (weights, random) => {
  let left = random * total(weights);
  for (let i = 0; i < weights.length; i++) {
    left -= weights[i];
    if (left < 0) return i;
  }
  return weights.findLastIndex((weight) => weight > 0);
};

export class World {
  // bytes: what tinytx_course.engine.tables.world_tables wrote.
  constructor(bytes) {
    const { metadata, tensors } = readTensors(bytes);
    const plan = JSON.parse(metadata.tinytx);
    Object.assign(this, plan);
    for (const [name, { data }] of tensors) this[name] = data;
    this.closers = this.closing(); // words that end sentences
    this.ids = new Map(this.words.map((word, i) => [word, i]));
    this.nCounts = this.stop.length; // of finished sentences, 0 to the most
    this.size = LABELS * this.nCounts * this.n_books;
  }

  // Call visit(word, row, target) for each arc that leaves a state of the network.
  arcs(state, visit) {
    const block = this.state[2 * state];
    const lowest = this.state[2 * state + 1];
    for (let a = this.block[block]; a < this.block[block + 1]; a++)
      visit(this.arc[3 * a], this.arc[3 * a + 1], lowest + this.arc[3 * a + 2]);
  }

  closing() {
    const words = new Set();
    for (let state = 0; state < this.state.length / 2; state++) {
      this.arcs(state, (word, _, target) => {
        if (this.ends.includes(target)) words.add(this.words[word]);
      });
    }
    return words;
  }

  // P(arc | its state, book).
  weight(row, book) {
    return this.value[this.row[row * this.n_books + book]];
  }

  openerChances(previous, polarity) {
    return this.openers[previous === null ? "first" : previous === polarity ? "same" : "turn"];
  }

  #add(mass, state, from, factor) {
    const into = mass.get(state) ?? mass.set(state, new Float64Array(this.size)).get(state);
    for (let i = 0; i < this.size; i++) into[i] += factor(i) * from[i];
  }

  #label(i) {
    return Math.floor(i / (this.nCounts * this.n_books));
  }

  #count(i) {
    return Math.floor(i / this.n_books) % this.nCounts;
  }

  // Before the first word of a sentence that comes after one of each of these polarities; null: it comes
  // first.
  start(previous = [null]) {
    const hidden = new Float64Array(this.size);
    const mass = new Map();
    for (let i = 0; i < this.size; i++) if (this.#count(i) === 0) hidden[i] = 1 / (LABELS * this.n_books);
    for (const one of previous) this.#enter(one, hidden, mass);
    return { mass, stopped: new Float64Array(this.size), logScale: 0 };
  }

  // Spread the probability before a sentence over the entries of the network.
  #enter(previous, hidden, mass) {
    if (!hidden.some((p) => p > 0)) return;
    this.entries.forEach((entries, polarity) => {
      for (const [kind, chance] of Object.entries(this.openerChances(previous, polarity))) {
        this.#add(mass, entries[kind], hidden, (i) => chance * this.polarity[this.#label(i)][polarity]);
      }
    });
  }

  // Read one more word; after a word that cannot follow, nothing is left.
  advance({ mass, logScale }, word) {
    const id = this.ids.get(word);
    const moved = new Map();
    const stopped = new Float64Array(this.size);
    for (const [state, hidden] of id === undefined ? [] : mass) {
      this.arcs(state, (written, row, target) => {
        if (written === id) this.#add(moved, target, hidden, (i) => this.weight(row, i % this.n_books));
      });
    }
    const ended = this.ends.map((end) => moved.get(end));
    if (ended.every((hidden) => !hidden)) return { mass: moved, stopped, logScale };
    const sum = total([...moved.values()].map(total));
    for (const hidden of moved.values()) for (let i = 0; i < this.size; i++) hidden[i] /= sum;
    this.ends.forEach((end) => moved.delete(end));
    ended.forEach((hidden, polarity) => {
      if (!hidden) return;
      const finished = new Float64Array(this.size);
      const going = new Float64Array(this.size); // one more sentence is finished
      for (let i = 0; i < this.size; i++) if (this.#count(i) > 0) finished[i] = hidden[i - this.n_books];
      for (let i = 0; i < this.size; i++) {
        stopped[i] += finished[i] * this.stop[this.#count(i)];
        going[i] = finished[i] * (1 - this.stop[this.#count(i)]);
      }
      this.#enter(polarity, going, moved);
    });
    return { mass: moved, stopped, logScale: logScale + Math.log(sum) };
  }

  // The sum of what is left; 0 if no review begins so.
  left({ mass, stopped }) {
    return total(stopped) + total([...mass.values()].map(total));
  }

  read(words) {
    return words.reduce((state, word) => this.advance(state, word), this.start());
  }

  // How many of the first words begin some review.
  possible(words) {
    let state = this.start();
    let n = 0;
    for (; n < words.length; n++) {
      state = this.advance(state, words[n]);
      if (!(this.left(state) > 0)) break;
    }
    return n;
  }

  // For each word whether it can follow. What cannot, and the rest of its sentence, is not allowed; the next
  // sentence is read as one that may come first or later.
  allowed(words) {
    let state = this.start();
    let lost = false;
    return words.map((word, i) => {
      if (!lost || this.closers.has(words[i - 1])) {
        state = this.advance(lost ? this.start([null, 0, 1]) : state, word);
        lost = !(this.left(state) > 0);
      }
      return !lost;
    });
  }

  // P(next word), shape (V + 1,); the last entry is the end of the review.
  nextWords(state) {
    const chances = new Float64Array(this.words.length + 1);
    for (const [at, hidden] of state.mass) {
      const byBook = new Float64Array(this.n_books);
      for (let i = 0; i < this.size; i++) byBook[i % this.n_books] += hidden[i];
      this.arcs(at, (word, row) => {
        for (let g = 0; g < this.n_books; g++) chances[word] += byBook[g] * this.weight(row, g);
      });
    }
    chances[this.words.length] = total(state.stopped);
    const sum = this.left(state);
    return chances.map((chance) => chance / sum);
  }

  // The possible next words, most probable first, as a Map; the end of the review is null. None follow an
  // impossible prefix.
  nextWord(prefix) {
    const state = this.read(prefix);
    if (!(this.left(state) > 0)) return new Map();
    return new Map(
      [...this.nextWords(state)]
        .map((chance, i) => [this.words[i] ?? null, chance])
        .filter(([, chance]) => chance > 0)
        .sort(([, a], [, b]) => b - a),
    );
  }

  // log P(words is the whole review), in nats.
  logProb(words) {
    const state = this.read(words);
    return state.logScale + Math.log(total(state.stopped));
  }

  // Draw one review; random() gives numbers from 0 to 1.
  sample(random = Math.random) {
    const counts = Object.keys(this.sentences);
    const n = +counts[picked(Object.values(this.sentences), random())];
    const words = [];
    const label = Math.floor(LABELS * random());
    const book = Math.floor(this.n_books * random());
    for (let previous = null, sentence = 0; sentence < n; sentence++) {
      const polarity = picked(this.polarity[label], random());
      const openers = this.openerChances(previous, polarity);
      let state = this.entries[polarity][Object.keys(openers)[picked(Object.values(openers), random())]];
      while (state !== this.ends[polarity]) {
        const ways = [];
        this.arcs(state, (...arc) => ways.push(arc));
        const [word, , target] =
          ways[
            picked(
              ways.map(([, row]) => this.weight(row, book)),
              random(),
            )
          ];
        words.push(this.words[word]);
        state = target;
      }
      previous = polarity;
    }
    return words;
  }

  // Text as people write it, in words: elided articles, words and punctuation marks, each by itself.
  split(text) {
    const escaped = (word) => word.replace(/[.*+?^${}()|[\]\\]/g, "\\$&");
    const whole = this.words
      .filter((word) => word.slice(0, -1).includes("'"))
      .sort((a, b) => b.length - a.length)
      .map(escaped);
    const pattern = [...whole, `${LETTER}+(?:-${LETTER}+)*'?`, "\\S"].join("|");
    return text.replace(APOSTROPHES, "'").match(new RegExp(pattern, "gu")) ?? [];
  }

  // Words as people write them: no space after an elision, none before a comma or a full stop.
  written(words) {
    return words.reduce((text, word) => text + this.gap(text, word) + word, "");
  }

  // What people write between a text and the word that goes on: a space or nothing.
  gap(text, word) {
    return !text || /['’ʼ\s]$/.test(text) || this.glued.includes(word) ? "" : " ";
  }
}
