// The transformer of tinytx, name by name, forward and backward. Each layer remembers what its way back
// needs. Letters: B batch size, T tokens, D model width, F feed-forward width, V vocabulary, H heads, K head
// width, N = B T.

import { Kernels } from "./kernels.js";

const SUPPORTED = {
  norm: ["first", "last"],
  activation: ["relu", "gelu"],
  positions: ["alibi", "sinusoidal", "learned", "none"],
  dropout: [0],
};
const DEFAULTS = {
  max_len: 512,
  causal: true,
  norm: "first",
  activation: "gelu",
  positions: "sinusoidal",
  dropout: 0,
  bias: true,
  tie_embeddings: false,
  scale_embeddings: true,
  norm_eps: 1e-5,
};
export const IGNORE_ID = -100; // a target where nothing is to be predicted

// y = x Wᵀ + b
class Linear {
  constructor(make, name, dIn, dOut, bias) {
    this.weight = make(`${name}.weight`, dOut, dIn);
    this.bias = bias ? make(`${name}.bias`, dOut) : null;
  }

  forward(x) {
    // x: (N, I)
    const y = x.kernels.empty(x.nRows, this.weight.nRows); // (N, O)
    x.kernels.timesTransposed(y, x, this.weight);
    if (this.bias) x.kernels.addRow(y, this.bias);
    this.x = x;
    return y;
  }

  // dW = dyᵀ x, db = Σ_n dy[n], dx = dy W
  backward(dy) {
    // dy: (N, O)
    const { kernels } = dy;
    const dx = kernels.empty(...this.x.shape); // (N, I)
    kernels.transposedTimes(this.weight.grad, dy, this.x, true);
    if (this.bias) kernels.sumRows(this.bias.grad, dy);
    kernels.times(dx, dy, this.weight);
    return dx;
  }
}

// (x - mean) / sqrt(variance + eps) · w + b, over the width of the residual stream
class LayerNorm {
  constructor(make, name, config, switches) {
    this.weight = make(`${name}.weight`, config.d_model);
    this.bias = config.bias ? make(`${name}.bias`, config.d_model) : null;
    this.eps = config.norm_eps;
    this.switches = switches;
  }

  forward(x, [batchSize, seqLen, width]) {
    // x: (N, D)
    const y = x.kernels.empty(...x.shape);
    const rightAxis = this.switches.feature_norm;
    this.seqLen = rightAxis ? 0 : seqLen;
    // mean and 1 / sqrt(variance + eps)
    this.stats = x.kernels.empty(rightAxis ? x.nRows : batchSize * width, 2);
    x.kernels.layerNorm(y, this.stats, x, this.weight, this.bias, this.eps, this.seqLen);
    this.x = x;
    return y;
  }

  backward(dy) {
    // dy: (N, D)
    const dx = dy.kernels.empty(...dy.shape);
    const { weight, bias } = this;
    dy.kernels.layerNormBackward(dx, weight.grad, bias?.grad, dy, this.stats, this.x, weight, this.seqLen);
    return dx;
  }
}

// act(x W_up + b_up) W_down + b_down, for each token on its own
class FeedForward {
  constructor(make, name, config) {
    this.upProj = new Linear(make, `${name}.up_proj`, config.d_model, config.d_ff, config.bias);
    this.downProj = new Linear(make, `${name}.down_proj`, config.d_ff, config.d_model, config.bias);
    this.activation = config.activation;
  }

  forward(x, note) {
    // x: (N, D)
    this.up = this.upProj.forward(x); // (N, F)
    const act = x.kernels.empty(...this.up.shape); // (N, F)
    x.kernels.activate(act, this.up, this.activation);
    note("up", this.up);
    note("act", act);
    return this.downProj.forward(act); // (N, D)
  }

  backward(dy) {
    // dy: (N, D)
    const dAct = this.downProj.backward(dy);
    const dUp = dy.kernels.empty(...dAct.shape); // (N, F)
    dy.kernels.activateBackward(dUp, dAct, this.up, this.activation);
    return this.upProj.backward(dUp);
  }
}

// concat(head_1, ..., head_H) W_O with head_h = softmax(q kᵀ / sqrt(K) + bias) v. What has no parameters of
// its own may change between two steps: heads, mask, scale and ALiBi.
class MultiHeadAttention {
  constructor(make, name, config, switches) {
    const { d_model: width, bias } = config;
    [this.qProj, this.kProj, this.vProj, this.outProj] = ["q_proj", "k_proj", "v_proj", "out_proj"].map(
      (part) => new Linear(make, `${name}.${part}`, width, width, bias),
    );
    Object.assign(this, { config, switches });
  }

  get nHeads() {
    return this.config.n_heads;
  }
  get factor() {
    return this.switches.scale ? Math.sqrt(this.nHeads / this.config.d_model) : 1;
  } // 1 / sqrt(K)

  forward(x, sizes, note) {
    // x: (N, D)
    const { kernels } = x;
    const [batchSize, seqLen, width] = sizes;
    const { causal, positions } = this.config;
    const slopes = positions === "alibi" ? alibiSlopes(this.nHeads) : new Array(this.nHeads).fill(0);
    this.sizes = sizes;
    [this.q, this.k, this.v] = [this.qProj, this.kProj, this.vProj].map((proj) => proj.forward(x)); // (N, D)
    this.weights = kernels.empty(batchSize, this.nHeads, seqLen, seqLen); // (B, H, T, T)
    const context = kernels.empty(x.nRows, width); // (N, D)
    this.eachHead((rows, w, h) => {
      // q, k, v and context of one head: (T, K)
      kernels.timesTransposed(w, rows(this.q), rows(this.k)); // (T, T)
      kernels.scoreRows(w, this.factor, slopes[h], causal);
    });
    note("attn_scores", this.weights);
    kernels.softmax(this.weights);
    this.eachHead((rows, w) => kernels.times(rows(context), w, rows(this.v)));
    note("attn_weights", this.weights);
    for (const [name, tensor] of Object.entries({ q: this.q, k: this.k, v: this.v, context }))
      note(name, tensor, this);
    return this.outProj.forward(context);
  }

  // dv = wᵀ dcontext, dw = dcontext vᵀ, back through softmax to the scores, then dq = dscores k and dk =
  // dscoresᵀ q
  backward(dy) {
    // dy: (N, D)
    const { kernels } = dy;
    const dContext = this.outProj.backward(dy);
    const [dq, dk, dv] = [0, 1, 2].map(() => kernels.empty(...dContext.shape)); // (N, D)
    const dWeights = kernels.empty(...this.weights.shape); // (B, H, T, T)
    this.eachHead((rows, w, _h, dw) => {
      kernels.transposedTimes(rows(dv), w, rows(dContext)); // (T, K)
      kernels.timesTransposed(dw, rows(dContext), rows(this.v)); // (T, T)
    }, dWeights);
    kernels.softmaxBackward(dWeights, this.weights, this.factor);
    this.eachHead((rows, _w, _h, dw) => {
      kernels.times(rows(dq), dw, rows(this.k)); // (T, K)
      kernels.transposedTimes(rows(dk), dw, rows(this.q)); // (T, K)
    }, dWeights);
    const dx = this.qProj.backward(dq); // (N, D)
    kernels.add(dx, this.kProj.backward(dk));
    kernels.add(dx, this.vProj.backward(dv));
    return dx;
  }

  // Call act(rows, w, h, dw) for each head of each row of the batch: rows(x) is its part of x, (T, K), and w
  // its weights, (T, T).
  eachHead(act, dWeights = this.weights) {
    const [batchSize, seqLen, width] = this.sizes;
    const headDim = width / this.nHeads;
    for (let b = 0; b < batchSize; b++) {
      for (let h = 0; h < this.nHeads; h++) {
        const first = (b * this.nHeads + h) * seqLen;
        const rows = (x) => x.part(b * seqLen, h * headDim, seqLen, headDim);
        act(rows, this.weights.part(first, 0, seqLen, seqLen), h, dWeights.part(first, 0, seqLen, seqLen));
      }
    }
  }
}

// 2^(-8h / H) for h = 1 ... H where H is a power of two; else those of the next smaller power, and then every
// second of twice as many heads.
export function alibiSlopes(nHeads) {
  const power = 2 ** Math.floor(Math.log2(nHeads));
  const slopes = [];
  for (let h = 1; h <= power; h++) slopes.push(2 ** ((-8 * h) / power));
  for (let h = 1; h < 2 * power; h += 2) slopes.push(2 ** ((-4 * h) / power));
  return slopes.slice(0, nHeads);
}

// PE[pos, 2i] = sin(pos / 10000^(2i / D)), PE[pos, 2i + 1] = cos(pos / 10000^(2i / D)): (T, D)
function sinusoidalPositions(seqLen, width) {
  return Float64Array.from({ length: seqLen * width }, (_, at) => {
    const position = Math.floor(at / width);
    const pair = Math.floor((at % width) / 2);
    const angle = position * 10000 ** ((-2 * pair) / width);
    return at % 2 ? Math.cos(angle) : Math.sin(angle);
  });
}

// Self-attention, then feed-forward, each added to the residual stream: x + f(norm(x)), or post-norm norm(x +
// f(x))
class Block {
  constructor(make, name, config, switches) {
    this.attnNorm = new LayerNorm(make, `${name}.attn_norm`, config, switches);
    this.attn = new MultiHeadAttention(make, `${name}.attn`, config, switches);
    this.ffNorm = new LayerNorm(make, `${name}.ff_norm`, config, switches);
    this.ff = new FeedForward(make, `${name}.ff`, config);
    Object.assign(this, { normFirst: config.norm === "first", switches });
  }

  forward(x, sizes, note) {
    // x: (N, D)
    x = this.sublayer(
      "attn",
      this.attnNorm,
      x,
      sizes,
      (normed) => this.attn.forward(normed, sizes, note),
      note,
    );
    x = this.sublayer("ff", this.ffNorm, x, sizes, (normed) => this.ff.forward(normed, note), note);
    note("out", x);
    return x;
  }

  sublayer(name, norm, x, sizes, f, note) {
    const normed = this.normFirst ? norm.forward(x, sizes) : x;
    if (this.normFirst) note(`${name}_norm`, normed);
    const out = f(normed);
    note(`${name}_out`, out);
    if (this.switches.residual) x.kernels.add(out, x);
    if (this.normFirst) return out;
    const last = norm.forward(out, sizes);
    note(`${name}_norm`, last);
    return last;
  }

  backward(dOut) {
    // dOut: (N, D)
    return this.sublayerBackward(this.attnNorm, this.attn, this.sublayerBackward(this.ffNorm, this.ff, dOut));
  }

  sublayerBackward(norm, f, dOut) {
    // the gradient of a sum goes to both of its terms
    const dSum = this.normFirst ? dOut : norm.backward(dOut);
    const dX = this.normFirst ? norm.backward(f.backward(dSum)) : f.backward(dSum);
    if (this.switches.residual) dX.kernels.add(dX, dSum);
    return dX;
  }
}

// Embeddings, positions and a stack of blocks: from token ids to hidden states
class Transformer {
  constructor(make, config, switches) {
    this.config = config;
    this.tokenEmbed = make("body.token_embed.weight", config.vocab_size, config.d_model); // (V, D)
    const learned = config.positions === "learned";
    // (max_len, D)
    this.posEmbed = learned ? make("body.pos_embed.table", config.max_len, config.d_model) : null;
    this.blocks = Array.from(
      { length: config.n_layers },
      (_, i) => new Block(make, `body.blocks.${i}`, config, switches),
    );
    this.finalNorm =
      config.norm === "first" ? new LayerNorm(make, "body.final_norm", config, switches) : null;
    this.factor = config.scale_embeddings ? Math.sqrt(config.d_model) : 1;
  }

  forward(kernels, tokenIds, sizes, note) {
    const [batchSize, seqLen, width] = sizes;
    let x = kernels.empty(batchSize * seqLen, width); // (N, D)
    kernels.gather(x, this.tokenEmbed, tokenIds, this.factor);
    if (this.posEmbed) kernels.addRow(x, this.posEmbed, seqLen);
    if (this.config.positions === "sinusoidal") {
      const table = kernels.empty(seqLen, width); // (T, D)
      table.data.set(sinusoidalPositions(seqLen, width));
      kernels.addRow(x, table, seqLen);
    }
    note("embed", x);
    this.blocks.forEach((block, i) => {
      x = block.forward(x, sizes, (name, ...rest) => note(`blocks.${i}.${name}`, ...rest));
    });
    if (this.finalNorm) {
      x = this.finalNorm.forward(x, sizes);
      note("final_norm", x);
    }
    [this.tokenIds, this.sizes] = [tokenIds, sizes];
    return x;
  }

  backward(dx) {
    // dx: (N, D)
    if (this.finalNorm) dx = this.finalNorm.backward(dx);
    for (const block of [...this.blocks].reverse()) dx = block.backward(dx);
    if (this.posEmbed) dx.kernels.sumRows(this.posEmbed.grad, dx, this.sizes[1]);
    dx.kernels.scatter(this.tokenEmbed.grad, dx, this.tokenIds, this.factor);
  }
}

// A transformer, `body`, and an output layer, `head`, that scores the vocabulary at every position.
// config    fields of tinytx.TransformerConfig
// switches  { scale, residual, feature_norm }: false takes away the division by sqrt(K), or the residual
// stream, or
//           lets norms take mean and variance over the positions, not over the features
export class LanguageModel {
  constructor(config, kernels = new Kernels(), switches = {}) {
    this.config = checked(config);
    this.switches = { scale: true, residual: true, feature_norm: true, ...switches };
    this.kernels = kernels;
    this.parameters = new Map(); // from the names of tinytx's state dict to tensors with a `grad`
    const make = (name, ...shape) => {
      const tensor = Object.assign(kernels.stay(...shape), { grad: kernels.stay(...shape) });
      this.parameters.set(name, tensor);
      return tensor;
    };
    const {
      vocab_size: vocabSize,
      d_model: width,
      tie_embeddings: tied,
      bias,
      head_bias: headBias,
    } = this.config;
    this.body = new Transformer(make, this.config, this.switches);
    const makeHead = (name, ...shape) =>
      tied && name === "head.weight" ? this.body.tokenEmbed : make(name, ...shape);
    this.head = new Linear(makeHead, "head", width, vocabSize, headBias ?? bias);
  }

  get grads() {
    return new Map([...this.parameters].map(([name, tensor]) => [name, tensor.grad]));
  }

  // Scores of every token at every position, (B, T, V), good until the next call. `tokenIds` holds B rows of
  // T ids. An object `record` is filled with copies of all that is computed on the way, as { shape, data }.
  forward(tokenIds, batchSize, seqLen, record = null) {
    const sizes = [batchSize, seqLen, this.config.d_model];
    this.check(tokenIds, sizes);
    const note = record
      ? (name, ...rest) => {
          record[name] = copy(sizes, ...rest);
        }
      : () => {};
    this.kernels.clear();
    const logits = this.head.forward(this.body.forward(this.kernels, tokenIds, sizes, note)); // (N, V)
    note("logits", logits);
    logits.shape = [batchSize, seqLen, this.config.vocab_size];
    return logits;
  }

  // Mean cross-entropy in nats a target; `targets` are the tokens to predict, IGNORE_ID where there is none.
  // `twice` is a fault: softmax comes before a cross-entropy that applies it again.
  loss(tokenIds, targets, batchSize, seqLen, { twice = false } = {}) {
    const { kernels } = this;
    const logits = this.forward(tokenIds, batchSize, seqLen);
    let shares = null;
    if (twice) {
      kernels.softmax(logits);
      shares = kernels.empty(logits.nRows, logits.nColumns);
      shares.data.set(logits.data);
    }
    const loss = kernels.crossEntropy(logits, targets, IGNORE_ID); // written over by the gradient
    if (shares) kernels.softmaxBackward(logits, shares, 1);
    this.dLogits = logits;
    return loss;
  }

  // Gradients of the latest loss, in the `grad` of each parameter; a fault adds them to what is there.
  backward({ zeroGrad = true } = {}) {
    if (zeroGrad) for (const { grad } of this.parameters.values()) grad.data.fill(0);
    this.body.backward(this.head.backward(this.dLogits));
  }

  // Take the numbers of all parameters from tensors by name.
  load(tensors) {
    for (const [name, parameter] of this.parameters) {
      const given = tensors.get(name);
      const fits = given?.shape.join() === parameter.shape.join();
      if (!fits)
        throw new Error(
          `${name} must have the shape (${parameter.shape}), got ${given ? `(${given.shape})` : "none"}`,
        );
    }
    for (const [name, parameter] of this.parameters) parameter.data.set(tensors.get(name).data);
    return this;
  }

  check(tokenIds, [batchSize, seqLen]) {
    const { max_len: maxLen, vocab_size: vocabSize } = this.config;
    const expected = batchSize * seqLen;
    if (!expected || tokenIds.length !== expected) {
      throw new Error(
        `token ids must be ${batchSize} rows of ${seqLen}, at least one, got ${tokenIds.length} ids`,
      );
    }
    if (seqLen > maxLen)
      throw new Error(`a row must hold at most max_len=${maxLen} token ids, got ${seqLen}`);
    const wrong = tokenIds.find((id) => !(id >= 0 && id < vocabSize));
    if (wrong !== undefined) throw new Error(`token ids must lie in 0..${vocabSize - 1}, got ${wrong}`);
  }
}

// A configuration with the defaults of tinytx; an error for what this engine cannot compute.
function checked(given) {
  const config = { ...DEFAULTS, ...given };
  const sizes = ["vocab_size", "d_model", "n_heads", "n_layers", "d_ff"];
  for (const name of [...sizes, "max_len"]) {
    if (!(Number.isInteger(config[name]) && config[name] > 0)) {
      throw new Error(`${name} must be an integer of at least 1, got ${config[name]}`);
    }
  }
  if (config.d_model % config.n_heads) {
    throw new Error(`n_heads must divide d_model, got d_model=${config.d_model}, n_heads=${config.n_heads}`);
  }
  if (config.positions === "sinusoidal" && config.d_model % 2) {
    throw new Error(`d_model must be even for sinusoidal positions, got d_model=${config.d_model}`);
  }
  for (const [name, value] of Object.entries(config)) {
    const choices = SUPPORTED[name] ?? [value];
    const known = name in DEFAULTS || sizes.includes(name) || name === "head_bias";
    if (!known) throw new Error(`the engine in the page has no ${name}, got ${name}=${value}`);
    if (!choices.includes(value))
      throw new Error(`${name} must be one of ${choices.join(", ")}, got ${value}`);
  }
  return config;
}

// A copy for `record` of rows, (N, X) -> (B, T, X), of attention weights as they are, and with `attn` of the
// columns of each head, (N, D) -> (B, H, T, K).
function copy([batchSize, seqLen], tensor, attn = null) {
  const { data } = tensor;
  if (tensor.shape.length > 2) return { shape: tensor.shape, data: data.slice() };
  const width = tensor.nColumns;
  if (!attn) return { shape: [batchSize, seqLen, width], data: data.slice() };
  const shape = [batchSize, attn.nHeads, seqLen, width / attn.nHeads];
  const out = data.slice();
  const headDim = shape[3];
  for (let at = 0; at < out.length; at++) {
    const k = at % headDim;
    const t = Math.floor(at / headDim) % seqLen;
    const bh = Math.floor(at / headDim / seqLen);
    const b = Math.floor(bh / attn.nHeads);
    const h = bh % attn.nHeads;
    out[at] = data[(b * seqLen + t) * width + h * headDim + k];
  }
  return { shape, data: out };
}
