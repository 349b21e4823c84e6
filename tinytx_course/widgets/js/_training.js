// What the playground knows of its runs, without a page: settings as words and as messages, histories,
// outcomes. TRAINING comes with the module: see assets.py.

// A setting: what it is by default, how it is said, and whether a run can change it while it learns.
const on = (name) => (value) => `${name} ${value ? "on" : "off"}`;
const fault = (text) => (value) => (value ? text : `not: ${text}`);
export const SETTINGS = {
  causal: { usual: true, says: on("mask"), live: true },
  scale: { usual: true, says: on("scale"), live: true },
  residual: { usual: true, says: on("residual stream"), live: true },
  positions: {
    usual: "alibi",
    other: "none",
    says: (value) => (value === "none" ? "no positions" : `positions ${value === "alibi" ? "ALiBi" : value}`),
    live: true,
  },
  norm: { usual: "first", other: "last", says: (value) => (value === "first" ? "pre-norm" : "post-norm") },
  n_heads: { usual: 4, other: 1, says: (n) => counted(n, "head"), live: true },
  n_layers: { usual: 2, other: 1, says: (n) => counted(n, "block") },
  lr: { usual: 0.012, other: 1, says: (lr) => `rate ${lr}${lr >= 0.3 ? ", huge" : ""}`, live: true },
  tokens_per_batch: { usual: 1024, other: 256, says: (n) => `batches of ${grouped(n)} tokens`, live: true },
  warmup: {
    usual: 10,
    other: 0,
    says: (share) => (share ? `warm-up over ${share}% of the schedule` : "no warm-up"),
  },
  targets_not_shifted: { usual: false, says: fault("targets not shifted"), live: true, isFault: true },
  softmax_twice: { usual: false, says: fault("softmax before cross-entropy"), live: true, isFault: true },
  no_zero_grad: { usual: false, says: fault("gradients never set to zero"), live: true, isFault: true },
  norm_on_wrong_axis: { usual: false, says: fault("norm over the positions"), live: true, isFault: true },
  seed: { usual: 0, says: (n) => `seed ${n}` },
};
const picked = (keys, get) => Object.fromEntries(keys.map((key) => [key, get(key)]));
export const settingsOf = (get) => picked(["d_model", "n_steps", "seconds", ...Object.keys(SETTINGS)], get);

// The other value that a second run gets.
export function otherValue(key, value) {
  const { usual, other } = SETTINGS[key];
  if (key === "seed") return value + 1;
  return typeof value === "boolean" ? !value : value === other ? usual : other;
}

// How far a run is: in steps, or by the clock where its schedule follows that.
export const progress = ({ step, spent = 0 }, { n_steps, seconds }) =>
  `step ${grouped(step)}${seconds ? `, ${Math.min(seconds, Math.round(spent))} of ${seconds} s` : ` of ${grouped(n_steps)}`}`;

// What is not as usual, in words.
export const unusual = (settings) =>
  Object.entries(SETTINGS)
    .filter(([key, { usual }]) => settings[key] !== usual)
    .map(([key, { says }]) => says(settings[key]))
    .join(", ");

// The settings as the worker takes them.
const CONFIG = ["causal", "positions", "norm", "n_heads", "n_layers"];
const FAULTS = ["targets_not_shifted", "softmax_twice", "no_zero_grad"];
export function changesOf(s) {
  const { d_model, n_steps, seconds, lr, scale, residual } = s;
  const get = (key) => s[key];
  return {
    config: { d_model, d_ff: 4 * d_model, ...picked(CONFIG, get) },
    switches: { scale, residual, feature_norm: !s.norm_on_wrong_axis },
    settings: { n_steps, seconds, lr, warmup: s.warmup / 100 },
    faults: picked(FAULTS, get),
    tokensPerBatch: s.tokens_per_batch,
  };
}

// The other way: the controls as an opened model has them.
export const controlsOf = (config, { scale, residual, feature_norm: rightAxis }) => ({
  ...picked(CONFIG, (key) => config[key]),
  scale,
  residual,
  norm_on_wrong_axis: !rightAxis,
});

// The same for one setting that changes while a run learns.
export function liveChange(key, settings) {
  const all = changesOf(settings);
  if (key === "tokens_per_batch") return { tokensPerBatch: all.tokensPerBatch };
  if (["lr", "seconds"].includes(key)) return { settings: { [key]: settings[key] } };
  if (["causal", "positions", "n_heads"].includes(key)) return { config: { [key]: settings[key] } };
  return { switches: all.switches, faults: all.faults };
}

// How the second run may end at a step where both were judged, compared with the first.
export const OUTCOMES = [
  "it falls below the bound",
  "it ends nearer to the bound than run A",
  "both end within 2 percentage points",
  "it ends farther from the bound than run A",
];
const ALIKE = 0.02;
export function outcomeOf(first, second) {
  if (second === null || Number.isNaN(second)) return 3;
  if (second < 0) return 0;
  if (Math.abs(second - first) <= ALIKE) return 2;
  return second < first ? 1 : 3;
}

// Why a loss below the bound is no good news, by what is switched.
const LEAKS = [
  ["targets_not_shifted", true, "its targets are its inputs, so it copies the word it was given"],
  ["causal", false, "without the mask each position attends to the word that it has to predict"],
  ["norm_on_wrong_axis", true, "the norm takes its mean and variance over words that come later"],
];
export function belowBound(settings, bound) {
  const why = LEAKS.filter(([key, value]) => settings[key] === value).map(([, , text]) => text);
  const cause = why.length ? `${why.join(", and ")}` : "it must know words that it has not read";
  return `Below the bound: it is cheating. No model that reads from left to right can be expected to lose less than ${number(bound, 3)} nats a word; ${cause}.`;
}

// What a run has told: losses of steps, thinned out as steps grow, and moments.
const BINS = 45; // for each factor of e
export class History {
  constructor() {
    Object.assign(this, { losses: [], moments: [], marks: [], step: 0, tokens: 0, spent: 0, loss: null });
  }

  note({ step, tokens, spent, loss }) {
    Object.assign(this, { step, tokens, spent, loss });
    const bin = Math.floor(BINS * Math.log(step));
    const last = this.losses.at(-1);
    if (!Number.isFinite(loss)) return;
    if (last?.bin === bin)
      Object.assign(last, { n: last.n + 1, loss: last.loss + (loss - last.loss) / (last.n + 1), step });
    else this.losses.push({ bin, step, loss, n: 1 });
  }

  show(moment) {
    if (this.moments.at(-1)?.step === moment.step) this.moments.pop();
    this.moments.push(moment);
  }

  // Steps and held-out losses of a curve: of a step at which something was switched, also the loss before it.
  get curve() {
    const points = this.marks.map(({ step, before: loss }) => ({ step, loss }));
    return [...points, ...this.moments]
      .filter(({ loss }) => Number.isFinite(loss))
      .sort((a, b) => a.step - b.step);
  }

  // The moment at a step, or before it; the latest one for -1.
  at(step) {
    if (step < 0) return this.moments.at(-1);
    return this.moments.findLast((moment) => moment.step <= step) ?? this.moments[0];
  }
}

// What a run learned while it cheated is lost with the switch that let it.
export const relearning = ({ moments }, moment) =>
  moment.above >= 0 && moments.some(({ step, above }) => step < moment.step && above < 0);

// As JSON can hold it: no number is null.
export const finite = (x) => (Number.isFinite(x) ? x : null);

// What is shown of a moment, as the state of the explorer holds it.
export function facts(history, settings, step, size) {
  const moment = history.at(step);
  if (!moment) return {};
  const n = moment.allowed.filter(Boolean).length;
  return {
    step: history.step,
    tokens: history.tokens,
    spent: history.spent,
    loss: finite(history.loss),
    settings,
    marks: history.marks.map(({ step: at, text }) => `${text} at step ${at}`),
    shown: moment.step,
    held_out: finite(moment.loss),
    bound: moment.bound,
    above: finite(moment.above),
    text: moment.text,
    n_allowed: n,
    relearns: relearning(history, moment),
    tops: topKeys(moment, moment.heads, size),
  };
}

// Where the last of the words attends most, in each head of each block: [key, weight].
export function topKeys({ attention }, heads, size) {
  const last = (weights, head) =>
    Array.from(weights.subarray((head * size + size - 1) * size, (head + 1) * size * size));
  return attention.map((weights) =>
    range(heads).map((head) =>
      last(weights, head).reduce((top, weight, key) => (weight > top[1] ? [key, weight] : top), [0, 0]),
    ),
  );
}

// A run in a worker of its own, or in the thread of the page where there is none; listen(message) hears what
// it tells.
export class Trainer {
  constructor(listen, makeWorker = () => engine().workerFrom(`const ENGINE = (${TRAINING.make})();`)) {
    Object.assign(this, { listen, history: new History(), threaded: true });
    try {
      this.open(makeWorker());
    } catch {
      this.fallBack();
    }
  }

  open(worker) {
    this.worker = worker;
    worker.onmessage = ({ data }) => {
      this.heard = true;
      if (["started", "error"].includes(data.told)) this.starting = false;
      if (!this.starting) this.listen(data, this); // what an earlier run told comes too late
    };
    worker.onerror = (event) => {
      event.preventDefault?.();
      if (this.heard) this.listen({ told: "error", message: event.message ?? "the worker has ended" }, this);
      else this.fallBack();
    };
  }

  fallBack() {
    // the browser starts no worker
    this.threaded = false;
    this.open(engine().withoutWorker());
    if (this.begun) this.start(...this.begun);
  }

  ask(ask, more = {}) {
    this.worker.postMessage({ ask, ...more });
  }

  start(settings, words) {
    this.begun = [settings, words];
    this.settings = settings;
    this.history = new History();
    this.starting = true;
    const { wasm, tables } = trainingFiles();
    this.ask("start", { wasm, tables, seed: settings.seed, changes: changesOf(settings), words });
    this.ask("show");
  }

  end() {
    this.worker.terminate();
  }
}

let engineHere = null;
let filesHere = null;
function engine() {
  engineHere ??= TRAINING.make();
  return engineHere;
}
function trainingFiles() {
  filesHere ??= { wasm: bytesOf(TRAINING.wasm), tables: bytesOf(TRAINING.tables) };
  return filesHere;
}
