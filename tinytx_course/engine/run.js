// A training run of the page that trains: a small language model reads fresh reviews, and is compared with
// the exact entropy of the language.

import { generator, initialise } from "./init.js";
import { IGNORE_ID, LanguageModel } from "./model.js";
import { TrainingStep } from "./optim.js";
import { causalBatch, encodeWords, reviewBatches } from "./reviews.js";

// Chosen by `python -m experiments playground`: what is nearest to the bound after a minute on one core.
export const RECIPE = {
  config: {
    d_model: 64,
    n_heads: 4,
    n_layers: 2,
    d_ff: 256,
    max_len: 128,
    positions: "alibi",
    activation: "relu",
    bias: false,
  },
  settings: { n_steps: 1400, lr: 1.2e-2, decay: "linear", final_lr_fraction: 0, optimizer: "muon" },
  tokensPerBatch: 1024,
};
// Fields of a configuration that change no parameter, so a run can change them while it learns.
const LIVE = { causal: [true, false], n_heads: null, positions: ["alibi", "sinusoidal", "none"] };
const WARMUP_SHARE = 0.1;
const N_FORCED = 12;
const N_HELD_OUT = 100;
const HELD_OUT_SEED = 2 ** 31 - 1;
const TOGETHER = 20;

export class Run {
  // changes: { config, settings, switches, faults, tokensPerBatch } that take the place of the recipe's;
  // settings may hold the warm-up as a share of the schedule, and its length in seconds in place of n_steps:
  // see spend; faults are named as in the museum: targets_not_shifted, softmax_twice, no_zero_grad
  constructor(world, kernels, seed = 0, changes = {}) {
    const config = { ...RECIPE.config, vocab_size: world.words.length + 1, ...changes.config };
    const settings = { ...RECIPE.settings, warmup: WARMUP_SHARE, ...changes.settings };
    this.world = world;
    this.faults = { ...changes.faults };
    this.model = initialise(new LanguageModel(config, kernels, changes.switches), seed);
    this.training = new TrainingStep(this.model, settings);
    this.random = generator(seed + 1);
    this.readBatchesOf(changes.tokensPerBatch ?? RECIPE.tokensPerBatch);
    this.tokens = 0; // that were read
    this.spent = 0;
    this.spend(0);
  }

  // More seconds have passed. Of a schedule in seconds that share is done that has passed of them: it has as
  // many steps as they hold at the pace so far.
  spend(seconds) {
    this.spent += seconds;
    const { settings } = this.training;
    if (settings.seconds && this.spent) {
      const nSteps = Math.ceil((this.step * settings.seconds) / this.spent);
      settings.n_steps = Math.max(this.step, nSteps);
    }
    settings.warmup_steps = Math.round(settings.warmup * settings.n_steps);
  }

  readBatchesOf(tokensPerBatch) {
    this.batches = reviewBatches(this.world, this.random, tokensPerBatch);
  }

  // Other settings, switches, faults or batches from the next step on; of the configuration only what is
  // LIVE.
  change({ config = {}, settings = {}, switches = {}, faults = {}, tokensPerBatch } = {}) {
    const now = this.model.config;
    const { d_model: width } = now;
    for (const [name, value] of Object.entries(config)) {
      const isLive =
        name in LIVE && (LIVE[name]?.includes(value) ?? width % value === 0) && now.positions !== "learned";
      const rule =
        LIVE[name] === null && width % value
          ? `divide d_model=${width}`
          : "stay as it is while a model learns";
      if (value !== now[name] && !isLive) throw new Error(`${name} must ${rule}, got ${value}`);
    }
    Object.assign(now, config);
    Object.assign(this.model.switches, switches);
    Object.assign(this.training.settings, settings);
    Object.assign(this.faults, faults);
    this.spend(0);
    if (tokensPerBatch) this.readBatchesOf(tokensPerBatch);
  }

  get step() {
    return this.training.step;
  }
  get finished() {
    return this.step >= this.training.settings.n_steps;
  }

  // One step of training: { step, tokens, loss, norm, lr }.
  advance() {
    const { tokenIds, targets, batchSize, seqLen } = this.batches.next().value;
    const told = this.training.learn(
      tokenIds,
      this.asTargets(tokenIds, targets),
      batchSize,
      seqLen,
      this.faults,
    );
    this.tokens += tokenIds.length;
    return { step: this.step, tokens: this.tokens, ...told };
  }

  // What is to be predicted; with a fault, the inputs themselves.
  asTargets(tokenIds, targets) {
    if (!this.faults.targets_not_shifted) return targets;
    return targets.map((target, i) => (target === IGNORE_ID ? target : tokenIds[i]));
  }

  // Nats a word on reviews that are never trained on, and the same of the best possible model: -log P of the
  // same words. A faulty program judges itself with its fault.
  evaluate() {
    this.heldOut ??= heldOut(this.world);
    const { batches, bound, nWords } = this.heldOut;
    let nats = 0;
    for (const { tokenIds, targets, batchSize, seqLen, n } of batches) {
      const expected = this.asTargets(tokenIds, targets);
      const twice = this.faults.softmax_twice;
      nats += n * this.model.loss(tokenIds, expected, batchSize, seqLen, { twice });
    }
    return { step: this.step, loss: nats / nWords, bound: bound / nWords, above: nats / bound - 1 };
  }

  // All that is computed for some words, by name: see LanguageModel.forward.
  look(words) {
    const ids = [0, ...encodeWords(this.world, words)];
    const record = {};
    this.model.forward(ids, 1, ids.length, record);
    return record;
  }

  // What a page shows of this moment: the held-out loss, a review that the model writes, its English word by
  // word, which of its words the grammar allows, and what the model attends to in some words, (H, T, T) for each
  // block. A model that ends before the first word writes one more, `forced`, that must not end.
  moment(words, seed) {
    const text = this.sample(generator(seed));
    const forced = text.length ? [] : this.sample(generator(seed), { nForced: N_FORCED });
    const record = this.look(words);
    const attention = Array.from(
      { length: this.model.config.n_layers },
      (_, i) => record[`blocks.${i}.attn_weights`].data,
    );
    const { n_heads: heads } = this.model.config;
    return {
      ...this.evaluate(),
      tokens: this.tokens,
      ...this.reviewed(text),
      forced: forced.length ? this.reviewed(forced) : null,
      attention,
      heads,
    };
  }

  reviewed(text) {
    const { english, ids } = this.world;
    return { text, english: text.map((word) => english[ids.get(word)]), allowed: this.world.allowed(text) };
  }

  // Go on with another model of the same words, such as one that was saved; its schedule begins anew.
  open(model) {
    const [expected, got] = [this.model, model].map(({ config }) => config.vocab_size);
    if (expected !== got)
      throw new Error(`a saved state must have a vocabulary of ${expected} words, got ${got}`);
    this.model = model;
    this.training = new TrainingStep(model, this.training.settings);
    this.tokens = this.spent = 0;
  }

  // Draw a review from the model, word by word, after the words of a beginning; where it must have so many words
  // the end is left out, and it has no more.
  sample(random, { beginning = [], nForced = 0 } = {}) {
    const ids = [0, ...encodeWords(this.world, beginning)];
    const most = nForced ? nForced + 1 : this.model.config.max_len;
    while (ids.length < most) {
      const logits = this.model.forward(ids, 1, ids.length).data.slice(-this.model.config.vocab_size);
      if (nForced) logits[0] = -Infinity;
      const top = logits.reduce((a, b) => Math.max(a, b));
      const chances = logits.map((x) => Math.exp(x - top));
      let left = random() * chances.reduce((a, b) => a + b);
      let next = 0;
      for (; next < chances.length - 1; next++) {
        left -= chances[next];
        if (!(left >= 0)) break;
      }
      if (next === 0) break; // the end of the review
      ids.push(next);
    }
    return ids.slice(1).map((id) => this.world.words[id - 1]);
  }
}

function heldOut(world) {
  const random = generator(HELD_OUT_SEED);
  const reviews = Array.from({ length: N_HELD_OUT }, () => world.sample(random));
  const rows = reviews.map((words) => encodeWords(world, words)).sort((a, b) => a.length - b.length);
  const batches = [];
  for (let i = 0; i < rows.length; i += TOGETHER) {
    const some = rows.slice(i, i + TOGETHER);
    batches.push({ ...causalBatch(some), n: some.reduce((sum, row) => sum + row.length + 1, 0) });
  }
  return {
    batches,
    bound: -reviews.reduce((sum, words) => sum + world.logProb(words), 0),
    nWords: batches.reduce((sum, { n }) => sum + n, 0),
  };
}
