// A training run of the page that trains: a small language model reads fresh reviews, and is compared with the exact
// entropy of the language.

import { generator, initialise } from "./init.js";
import { LanguageModel } from "./model.js";
import { TrainingStep } from "./optim.js";
import { causalBatch, encodeWords, reviewBatches } from "./reviews.js";

// Chosen by `python -m experiments playground`: what is nearest to the bound after a minute on one core.
export const RECIPE = {
  config: { d_model: 64, n_heads: 4, n_layers: 2, d_ff: 256, max_len: 128, positions: "alibi", activation: "relu",
    bias: false },
  settings: { n_steps: 1400, lr: 1.2e-2, decay: "linear", final_lr_fraction: 0, optimizer: "muon" },
  tokensPerBatch: 1024,
};
export const N_STEPS = { minute: 1400, fiveMinutes: 7000 };
const WARMUP_SHARE = 0.1, N_HELD_OUT = 100, HELD_OUT_SEED = 2 ** 31 - 1, TOGETHER = 20;

export class Run {
  // changes: { config, settings, switches, tokensPerBatch } that take the place of the recipe's
  constructor(world, kernels, seed = 0, changes = {}) {
    const config = { ...RECIPE.config, vocab_size: world.words.length + 1, ...changes.config };
    const settings = { ...RECIPE.settings, ...changes.settings };
    settings.warmup_steps ??= Math.round(WARMUP_SHARE * settings.n_steps);
    this.world = world;
    this.model = initialise(new LanguageModel(config, kernels, changes.switches), seed);
    this.training = new TrainingStep(this.model, settings);
    this.batches = reviewBatches(world, generator(seed + 1), changes.tokensPerBatch ?? RECIPE.tokensPerBatch);
    this.tokens = 0; // that were read
  }

  get step() { return this.training.step; }
  get finished() { return this.step >= this.training.settings.n_steps; }

  // One step of training: { step, tokens, loss, norm, lr }.
  advance() {
    const { tokenIds, targets, batchSize, seqLen } = this.batches.next().value;
    const told = this.training.learn(tokenIds, targets, batchSize, seqLen);
    this.tokens += tokenIds.length;
    return { step: this.step, tokens: this.tokens, ...told };
  }

  // Nats a word on reviews that are never trained on, and the same of the best possible model: -log P of the same words.
  evaluate() {
    this.heldOut ??= heldOut(this.world);
    const { batches, bound, nWords } = this.heldOut;
    let nats = 0;
    for (const { tokenIds, targets, batchSize, seqLen, n } of batches) {
      nats += n * this.model.loss(tokenIds, targets, batchSize, seqLen);
    }
    return { step: this.step, loss: nats / nWords, bound: bound / nWords, above: nats / bound - 1 };
  }

  // All that is computed for some words, by name: see LanguageModel.forward.
  look(words) {
    const ids = [0, ...encodeWords(this.world, words)], record = {};
    this.model.forward(ids, 1, ids.length, record);
    return record;
  }

  // Go on with another model of the same words, such as one that was saved; its schedule begins anew.
  open(model) {
    const [expected, got] = [this.model, model].map(({ config }) => config.vocab_size);
    if (expected !== got) throw new Error(`a saved state must have a vocabulary of ${expected} words, got ${got}`);
    this.model = model;
    this.training = new TrainingStep(model, this.training.settings);
  }

  // Draw a review from the model, word by word, after the words of a beginning.
  sample(random, beginning = [], temperature = 1) {
    const ids = [0, ...encodeWords(this.world, beginning)], { max_len: maxLen } = this.model.config;
    while (ids.length < maxLen) {
      const logits = this.model.forward(ids, 1, ids.length).data.slice(-this.model.config.vocab_size);
      const top = logits.reduce((a, b) => Math.max(a, b)), chances = logits.map((x) => Math.exp((x - top) / temperature));
      let left = random() * chances.reduce((a, b) => a + b), next = 0;
      while (next < chances.length - 1 && (left -= chances[next]) >= 0) next++;
      if (next === 0) break; // the end of the review
      ids.push(next);
    }
    return ids.slice(1).map((id) => this.world.words[id - 1]);
  }
}

function heldOut(world) {
  const random = generator(HELD_OUT_SEED), reviews = Array.from({ length: N_HELD_OUT }, () => world.sample(random));
  const rows = reviews.map((words) => encodeWords(world, words)).sort((a, b) => a.length - b.length), batches = [];
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
