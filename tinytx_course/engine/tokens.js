// The generated language through a tokenizer: exact probabilities of tokens from those of words, as
// tinyworld.tokens. The first token of a word begins with the mark of a space, so tokens split into words in
// one way only, up to the last.

const WORD_MARK = "\u2581";
const MOST_STATES = 256; // remembered
const keyOf = (ids) => ids.join();
const push = (map, key, value) => (map.get(key) ?? map.set(key, []).get(key)).push(value);

export class TokenWorld {
  constructor(world, tokenizer) {
    Object.assign(this, { world, tokenizer });
    this.pieces = world.words.map((word) => tokenizer.encode(word));
    this.whole = new Map(this.pieces.map((ids, word) => [keyOf(ids), word]));
    this.begun = new Map(); // the first tokens of a word, and what may complete them
    this.pieces.forEach((ids, word) => {
      for (let n = 1; n < ids.length; n++) push(this.begun, keyOf(ids.slice(0, n)), word);
    });
    this.states = new Map([["", world.start()]]); // by the words read, so that one more word costs one step
  }

  read(words) {
    const key = words.join(" ");
    if (this.states.size > MOST_STATES) this.states = new Map([["", this.world.start()]]);
    if (!this.states.has(key))
      this.states.set(key, this.world.advance(this.read(words.slice(0, -1)), words.at(-1)));
    return this.states.get(key);
  }

  // P(next token), shape (V,), after the tokens of a beginning; null if no review begins so.
  nextToken(ids) {
    const starts = [...ids.keys()].filter((i) => this.tokenizer.piece(ids[i]).startsWith(WORD_MARK));
    if (ids.length && starts[0] !== 0) return null;
    const spans = starts.map((from, i) => ids.slice(from, starts[i + 1]));
    const last = spans.pop() ?? [];
    const words = spans.map((span) => this.world.words[this.whole.get(keyOf(span))]);
    const chances = new Float64Array(this.tokenizer.vocabSize);
    const whole = this.whole.get(keyOf(last));
    if (words.includes(undefined)) return null;
    const before = this.read(words);
    if (!(this.world.left(before) > 0)) return null;
    const next = this.world.nextWords(before);
    if (!last.length) this.#firstTokens(chances, next, 1);
    for (const word of this.begun.get(keyOf(last)) ?? [])
      chances[this.pieces[word][last.length]] += next[word];
    if (whole !== undefined && next[whole] > 0) {
      this.#firstTokens(
        chances,
        this.world.nextWords(this.read([...words, this.world.words[whole]])),
        next[whole],
      );
    }
    const sum = chances.reduce((a, b) => a + b, 0);
    return sum > 0 ? chances.map((chance) => chance / sum) : null;
  }

  #firstTokens(chances, next, share) {
    this.pieces.forEach((ids, word) => {
      chances[ids[0]] += share * next[word];
    });
    chances[this.tokenizer.eosId] += share * next[next.length - 1];
  }
}
