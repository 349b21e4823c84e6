// One step of training: the gradient is clipped, the learning rate follows its schedule, AdamW updates the weights.

// The names and defaults of tinytx's TrainingSettings; n_steps has none.
export const DEFAULT_SETTINGS = {
  lr: 1e-3, warmup_steps: 0, decay: "cosine", final_lr_fraction: 0.05, weight_decay: 0.1, betas: [0.9, 0.98],
  clip_norm: 1,
};
const EPS = 1e-8;

// The rate of a step, the first being step 1: it rises over the warm-up and falls to a share of lr at the last step.
export function lrAt({ n_steps: nSteps, lr, warmup_steps: warmup, decay, final_lr_fraction: final }, step) {
  if (step <= warmup) return (lr * step) / warmup;
  const done = (step - warmup) / Math.max(1, nSteps - warmup);
  const left = decay === "linear" ? 1 - done : (1 + Math.cos(Math.PI * done)) / 2;
  return lr * (final + (1 - final) * left);
}

// AdamW (arXiv 1711.05101): with gradient g, m = β₁ m + (1 - β₁) g and v = β₂ v + (1 - β₂) g²,
//   w -= lr · (decay · w + m̂ / (sqrt(v̂) + eps)), where m̂ = m / (1 - β₁ᵗ) and v̂ = v / (1 - β₂ᵗ)
export class TrainingStep {
  constructor(model, settings) {
    this.settings = { ...DEFAULT_SETTINGS, ...settings };
    Object.assign(this, { model, step: 0 });
    const { kernels } = model;
    this.moments = new Map(
      [...model.parameters].map(([name, { shape }]) => [name, [kernels.stay(...shape), kernels.stay(...shape)]]),
    );
  }

  // Learn from a batch; gives its loss, the length of its gradient and the rate.
  learn(tokenIds, targets, batchSize, seqLen) {
    const loss = this.model.loss(tokenIds, targets, batchSize, seqLen);
    this.model.backward();
    this.step += 1;
    const lr = lrAt(this.settings, this.step);
    return { loss, norm: this.update(lr), lr };
  }

  update(lr) {
    const { parameters, kernels } = this.model, { clip_norm: clipNorm, weight_decay: decay, betas } = this.settings;
    let squares = 0;
    for (const { grad } of parameters.values()) squares += kernels.sumOfSquares(grad);
    const norm = Math.sqrt(squares), factor = Math.min(1, clipNorm / (norm + 1e-6)); // shortens a long gradient
    for (const [name, parameter] of parameters) {
      const [mean, square] = this.moments.get(name);
      const own = { lr, decay: isDecayed(name, parameter) ? decay : 0, betas, eps: EPS, step: this.step, factor };
      kernels.adamw(parameter, parameter.grad, mean, square, own);
    }
    return norm;
  }
}

// Weight decay is for matrices, not for embeddings, norms and biases.
const isDecayed = (name, { shape }) => shape.length > 1 && !/_embed\b/.test(name);
