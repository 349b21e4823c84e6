// One step of training: the gradient is clipped, the learning rate follows its schedule, AdamW updates the
// weights.

// The names and defaults of tinytx's TrainingSettings; n_steps has none.
export const DEFAULT_SETTINGS = {
  lr: 1e-3,
  warmup_steps: 0,
  decay: "cosine",
  final_lr_fraction: 0.05,
  weight_decay: 0.1,
  optimizer: "adamw",
  betas: [0.9, 0.98],
  clip_norm: 1,
};
const EPS = 1e-8;
// Of Muon
const MOMENTUM = 0.95;
const N_ITERATIONS = 5;
const COEFFICIENTS = [3.4445, -4.775, 2.0315];
const ADAM_LENGTH = 0.2;

// The rate of a step, the first being step 1: it rises over the warm-up and falls to a share of lr at the
// last step.
export function lrAt({ n_steps: nSteps, lr, warmup_steps: warmup, decay, final_lr_fraction: final }, step) {
  if (step <= warmup) return (lr * step) / warmup;
  const done = Math.min(1, (step - warmup) / Math.max(1, nSteps - warmup));
  const left = decay === "linear" ? 1 - done : (1 + Math.cos(Math.PI * done)) / 2;
  return lr * (final + (1 - final) * left);
}

// AdamW (arXiv 1711.05101): with gradient g, m = β₁ m + (1 - β₁) g and v = β₂ v + (1 - β₂) g²,
//   w -= lr · (decay · w + m̂ / (sqrt(v̂) + eps)), where m̂ = m / (1 - β₁ᵗ) and v̂ = v / (1 - β₂ᵗ)
// Muon, for the matrices of hidden layers: with m = 0.95 m + 0.05 g and u = 0.95 m + 0.05 g,
//   w -= lr · (decay · w + 0.2 sqrt(longer side) · orthogonalised(u))
export class TrainingStep {
  constructor(model, settings) {
    this.settings = { ...DEFAULT_SETTINGS, ...settings };
    Object.assign(this, { model, step: 0, moments: new Map() });
    for (const [name, { shape }] of model.parameters) {
      this.moments.set(name, [model.kernels.stay(...shape), model.kernels.stay(...shape)]);
    }
  }

  // Learn from a batch; gives its loss, the length of its gradient and the rate. Faults are those of the
  // museum.
  learn(tokenIds, targets, batchSize, seqLen, faults = {}) {
    const loss = this.model.loss(tokenIds, targets, batchSize, seqLen, { twice: faults.softmax_twice });
    this.model.backward({ zeroGrad: !faults.no_zero_grad });
    this.step += 1;
    const lr = lrAt(this.settings, this.step);
    return { loss, norm: this.update(lr), lr };
  }

  update(lr) {
    const { parameters, kernels } = this.model;
    const { clip_norm: clipNorm, weight_decay: decay, betas } = this.settings;
    let squares = 0;
    for (const { grad } of parameters.values()) squares += kernels.sumOfSquares(grad);
    const norm = Math.sqrt(squares);
    const factor = Math.min(1, clipNorm / (norm + 1e-6)); // shortens a long gradient
    for (const [name, parameter] of parameters) {
      const [mean, square] = this.moments.get(name);
      const isMatrix = parameter.shape.length > 1 && !/_embed\b/.test(name);
      if (isMatrix && this.settings.optimizer === "muon" && !name.startsWith("head.")) {
        this.muon(parameter, mean, { lr, decay, factor });
      } else {
        // decay is for matrices, not for embeddings, norms and biases
        const own = { lr, decay: isMatrix ? decay : 0, betas, eps: EPS, step: this.step, factor };
        kernels.adamw(parameter, parameter.grad, mean, square, own);
      }
    }
    return norm;
  }

  muon(parameter, mean, { lr, decay, factor }) {
    const { kernels, shape, size, grad } = parameter;
    const update = kernels.empty(...shape);
    const [g, m, u] = [grad.data, mean.data, update.data];
    for (let i = 0; i < size; i++) {
      m[i] = MOMENTUM * m[i] + (1 - MOMENTUM) * factor * g[i];
      u[i] = MOMENTUM * m[i] + (1 - MOMENTUM) * factor * g[i];
    }
    const length = ADAM_LENGTH * Math.sqrt(Math.max(...shape));
    const out = orthogonalised(update).data;
    const now = parameter.data;
    for (let i = 0; i < size; i++) now[i] -= lr * (decay * now[i] + length * out[i]);
  }
}

// About U Vᵀ of a matrix U S Vᵀ: Newton-Schulz iterations x ← a x + (b s + c s s) x with s = x xᵀ, from x /
// |x|, which lift every singular value to about 1.
function orthogonalised(matrix) {
  // matrix: (M, N)
  const { kernels } = matrix;
  const [a, b, c] = COEFFICIENTS;
  const tall = matrix.nRows > matrix.nColumns;
  let x = tall ? transposed(matrix) : matrix;
  const length = Math.sqrt(kernels.sumOfSquares(x)) + 1e-7;
  x.data.forEach((value, i, all) => {
    all[i] = value / length;
  });
  for (let i = 0; i < N_ITERATIONS; i++) {
    const s = kernels.empty(x.nRows, x.nRows);
    const mix = kernels.empty(x.nRows, x.nRows);
    const next = kernels.empty(...x.shape);
    kernels.timesTransposed(s, x, x);
    kernels.times(mix, s, s);
    const [first, second] = [s.data, mix.data];
    for (let j = 0; j < first.length; j++) second[j] = b * first[j] + c * second[j];
    for (let j = 0; j < x.nRows; j++) second[j * x.nRows + j] += a;
    kernels.times(next, mix, x);
    x = next;
  }
  return tall ? transposed(x) : x;
}

function transposed(matrix) {
  // matrix (M, N) -> (N, M)
  const out = matrix.kernels.empty(matrix.nColumns, matrix.nRows);
  const [to, from] = [out.data, matrix.data];
  for (let i = 0; i < matrix.nRows; i++) {
    for (let j = 0; j < matrix.nColumns; j++) to[j * matrix.nRows + i] = from[i * matrix.nColumns + j];
  }
  return out;
}
