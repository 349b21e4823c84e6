// Memory and arithmetic of the engine in plain JavaScript, in float32 or float64. wasm.js has the same
// methods, in WebAssembly. Letters: N rows, I and O columns, T queries and keys of one head, V vocabulary.

// Numbers in the memory of some kernels: those of the last axis follow each other, and rows are `stride`
// apart.
export class Tensor {
  constructor(kernels, shape, start, stride = shape.at(-1)) {
    Object.assign(this, { kernels, shape, start, stride, size: shape.reduce((a, b) => a * b, 1) });
  }

  get nColumns() {
    return this.shape.at(-1);
  }
  get nRows() {
    return this.size / this.nColumns;
  }

  // A view of the numbers, good until the memory grows; of tensors without gaps only.
  get data() {
    return this.kernels.view(this.start, this.size);
  }

  // Some columns of some rows, in place: (nRows, nColumns).
  part(row, column, nRows, nColumns) {
    return new Tensor(this.kernels, [nRows, nColumns], this.start + row * this.stride + column, this.stride);
  }
}

const AT_FIRST = 2 ** 20; // numbers

// The memory is one long array. Parameters and optimizer lie at its beginning for good; what forward and
// backward write comes after them and is overwritten by the next forward.
export class Kernels {
  constructor(Numbers = Float32Array, numbers = new Numbers(AT_FIRST)) {
    Object.assign(this, { Numbers, numbers });
    this.end = this.permanent = 0; // of all that is in use, and of what stays
  }

  view(start, size) {
    return this.numbers.subarray(start, start + size);
  }

  grow(size) {
    // hold at least so many numbers
    const larger = new this.Numbers(Math.max(size, 2 * this.numbers.length));
    larger.set(this.numbers);
    this.numbers = larger;
  }

  empty(...shape) {
    // not zero: whatever was there before
    const tensor = new Tensor(this, shape, this.end);
    this.end += Math.ceil(tensor.size / 4) * 4; // WebAssembly reads four numbers at a time
    if (this.end > this.numbers.length) this.grow(this.end);
    return tensor;
  }

  zeros(...shape) {
    const tensor = this.empty(...shape);
    tensor.data.fill(0);
    return tensor;
  }

  stay(...shape) {
    // zeros that `clear` leaves alone
    const tensor = this.zeros(...shape);
    this.permanent = this.end;
    return tensor;
  }

  clear() {
    this.end = this.permanent;
  }

  // Products of matrices. With `add` the product is added to what `out` holds.

  // out = a b: (N, I), (I, O) -> (N, O)
  times(out, a, b, add = false) {
    const m = this.numbers;
    const n = out.nColumns;
    for (let i = 0; i < a.nRows; i++) {
      const row = out.start + i * out.stride;
      if (!add) m.fill(0, row, row + n);
      for (let l = 0; l < a.nColumns; l++) {
        const x = m[a.start + i * a.stride + l];
        const from = b.start + l * b.stride;
        for (let j = 0; j < n; j++) m[row + j] += x * m[from + j];
      }
    }
  }

  // out = a bᵀ: (N, I), (O, I) -> (N, O)
  timesTransposed(out, a, b, add = false) {
    const m = this.numbers;
    const width = a.nColumns;
    for (let i = 0; i < a.nRows; i++) {
      const left = a.start + i * a.stride;
      const row = out.start + i * out.stride;
      for (let j = 0; j < b.nRows; j++) {
        const right = b.start + j * b.stride;
        let sum = 0;
        for (let l = 0; l < width; l++) sum += m[left + l] * m[right + l];
        m[row + j] = add ? m[row + j] + sum : sum;
      }
    }
  }

  // out = aᵀ b: (N, O), (N, I) -> (O, I)
  transposedTimes(out, a, b, add = false) {
    const m = this.numbers;
    const n = out.nColumns;
    for (let i = 0; !add && i < out.nRows; i++)
      m.fill(0, out.start + i * out.stride, out.start + i * out.stride + n);
    for (let l = 0; l < a.nRows; l++) {
      const from = b.start + l * b.stride;
      for (let i = 0; i < a.nColumns; i++) {
        const x = m[a.start + l * a.stride + i];
        const row = out.start + i * out.stride;
        for (let j = 0; j < n; j++) m[row + j] += x * m[from + j];
      }
    }
  }

  // Sums.

  add(out, x) {
    // out += x
    const m = this.numbers;
    for (let i = 0; i < x.size; i++) m[out.start + i] += m[x.start + i];
  }

  addRow(out, row, step = 0) {
    // out[n] += row, or with `step` row[n mod step]: (N, I), (I,) or (step, I)
    const m = this.numbers;
    const n = out.nColumns;
    for (let i = 0; i < out.nRows; i++) {
      const from = row.start + (step ? i % step : 0) * n;
      for (let j = 0; j < n; j++) m[out.start + i * n + j] += m[from + j];
    }
  }

  sumRows(out, x, step = 0) {
    // out += Σ_n x[n]; the way back of addRow
    const m = this.numbers;
    const n = x.nColumns;
    for (let i = 0; i < x.nRows; i++) {
      const to = out.start + (step ? i % step : 0) * n;
      for (let j = 0; j < n; j++) m[to + j] += m[x.start + i * n + j];
    }
  }

  sumOfSquares(x) {
    let sum = 0;
    for (const value of x.data) sum += value * value;
    return sum;
  }

  // Rows of a table: out[n] = factor · table[ids[n]].

  gather(out, table, ids, factor) {
    const m = this.numbers;
    const n = out.nColumns;
    for (let i = 0; i < ids.length; i++) {
      for (let j = 0; j < n; j++) m[out.start + i * n + j] = factor * m[table.start + ids[i] * n + j];
    }
  }

  scatter(table, dOut, ids, factor) {
    // table[ids[n]] += factor · dOut[n]
    const m = this.numbers;
    const n = dOut.nColumns;
    for (let i = 0; i < ids.length; i++) {
      for (let j = 0; j < n; j++) m[table.start + ids[i] * n + j] += factor * m[dOut.start + i * n + j];
    }
  }

  // Norm of each row: (x - mean) / sqrt(variance + eps) · weight + bias. `stats` (N, 2) gets mean and 1 /
  // sqrt(...). With `seqLen`, a fault, mean and variance are those of each feature over the T positions:
  // stats (B D, 2).

  layerNorm(out, stats, x, weight, bias, eps, seqLen = 0) {
    const m = this.numbers;
    for (let group = 0; group < stats.nRows; group++) {
      const { first, count, step, feature, next } = normGroup(x, group, seqLen);
      let mean = 0;
      let variance = 0;
      for (let i = 0, at = x.start + first; i < count; i++, at += step) mean += m[at] / count;
      for (let i = 0, at = x.start + first; i < count; i++, at += step)
        variance += (m[at] - mean) ** 2 / count;
      const scale = 1 / Math.sqrt(variance + eps);
      m[stats.start + 2 * group] = mean;
      m[stats.start + 2 * group + 1] = scale;
      for (let i = 0, at = first, j = feature; i < count; i++, at += step, j += next) {
        m[out.start + at] =
          (m[x.start + at] - mean) * scale * m[weight.start + j] + (bias ? m[bias.start + j] : 0);
      }
    }
  }

  // With x̂ = (x - mean) · scale and g = dOut · weight: dX = scale (g - mean(g) - x̂ mean(g x̂)).
  layerNormBackward(dX, dWeight, dBias, dOut, stats, x, weight, seqLen = 0) {
    const m = this.numbers;
    for (let group = 0; group < stats.nRows; group++) {
      const { first, count, step, feature, next } = normGroup(x, group, seqLen);
      const mean = m[stats.start + 2 * group];
      const scale = m[stats.start + 2 * group + 1];
      let sum = 0;
      let along = 0;
      for (let i = 0, at = first, j = feature; i < count; i++, at += step, j += next) {
        const normed = (m[x.start + at] - mean) * scale;
        const error = m[dOut.start + at];
        const g = error * m[weight.start + j];
        sum += g / count;
        along += (g * normed) / count;
        m[dWeight.start + j] += error * normed;
        if (dBias) m[dBias.start + j] += error;
      }
      for (let i = 0, at = first, j = feature; i < count; i++, at += step, j += next) {
        const normed = (m[x.start + at] - mean) * scale;
        const g = m[dOut.start + at] * m[weight.start + j];
        m[dX.start + at] = scale * (g - sum - along * normed);
      }
    }
  }

  // Activations: relu(x) = max(x, 0), gelu(x) = x Φ(x) with Φ(x) = (1 + erf(x / √2)) / 2, the normal
  // distribution.

  activate(out, x, kind) {
    const m = this.numbers;
    for (let i = 0; i < x.size; i++) {
      const value = m[x.start + i];
      m[out.start + i] = kind === "relu" ? Math.max(value, 0) : value * normalShare(value);
    }
  }

  activateBackward(dX, dOut, x, kind) {
    // relu' is 0 or 1, gelu'(x) = Φ(x) + x φ(x)
    const m = this.numbers;
    for (let i = 0; i < x.size; i++) {
      const value = m[x.start + i];
      const slope = kind === "relu" ? Number(value > 0) : normalShare(value) + value * normalDensity(value);
      m[dX.start + i] = slope * m[dOut.start + i];
    }
  }

  // Scores of one head: factor · scores - slope |t - s|, and -∞ where a causal query t must not attend to s >
  // t.
  scoreRows(scores, factor, slope, causal) {
    // scores: (T, T)
    const m = this.numbers;
    const n = scores.nColumns;
    for (let t = 0; t < scores.nRows; t++) {
      for (let s = 0; s < n; s++) {
        const at = scores.start + t * n + s;
        m[at] = causal && s > t ? -Infinity : factor * m[at] - slope * Math.abs(t - s);
      }
    }
  }

  // softmax of each row, in place: exp(x - max) / Σ exp(x - max)
  softmax(x) {
    const m = this.numbers;
    const n = x.nColumns;
    for (let i = 0; i < x.nRows; i++) {
      const from = x.start + i * n;
      let top = -Infinity;
      let sum = 0;
      for (let j = 0; j < n; j++) top = Math.max(top, m[from + j]);
      for (let j = 0; j < n; j++) sum += m[from + j] = Math.exp(m[from + j] - top);
      for (let j = 0; j < n; j++) m[from + j] /= sum;
    }
  }

  // With weights w = softmax(x): dX = factor · w (dW - Σ w dW), written over dW.
  softmaxBackward(dW, w, factor) {
    const m = this.numbers;
    const n = w.nColumns;
    for (let i = 0; i < w.nRows; i++) {
      const from = w.start + i * n;
      const error = dW.start + i * n;
      let along = 0;
      for (let j = 0; j < n; j++) along += m[from + j] * m[error + j];
      for (let j = 0; j < n; j++) m[error + j] = factor * m[from + j] * (m[error + j] - along);
    }
  }

  // Mean of -log softmax(logits)[target] over rows with a target, in nats; the gradient is written over the
  // logits.
  crossEntropy(logits, targets, ignoreId) {
    // logits (N, V), targets (N,)
    const count = targets.reduce((sum, target) => sum + (target !== ignoreId), 0);
    let nats = 0;
    for (let i = 0; i < logits.nRows; i++) {
      const row = logits.part(i, 0, 1, logits.nColumns);
      if (targets[i] === ignoreId) row.data.fill(0);
      else nats += this.rowCrossEntropy(row, targets[i], 1 / count);
    }
    return nats / count;
  }

  // Nats of one row; its gradient, share · (softmax(row) - [v = target]), is written over it.
  rowCrossEntropy(row, target, share) {
    // row: (1, V)
    const { data } = row;
    const expected = data[target];
    const top = data.reduce((a, b) => Math.max(a, b));
    this.softmax(row);
    const highest = data.reduce((a, b) => Math.max(a, b)); // exp(top - top) / Σ exp(x - top)
    for (let j = 0; j < data.length; j++) data[j] *= share;
    data[target] -= share;
    return top - Math.log(highest) - expected;
  }

  // One step of AdamW for one parameter: see optim.js.
  adamw(weight, grad, mean, square, { lr, decay, betas: [beta1, beta2], eps, step, factor }) {
    const m = this.numbers;
    const short1 = 1 - beta1 ** step;
    const short2 = Math.sqrt(1 - beta2 ** step);
    for (let i = 0; i < weight.size; i++) {
      const g = factor * m[grad.start + i];
      const first = beta1 * m[mean.start + i] + (1 - beta1) * g;
      const second = beta2 * m[square.start + i] + (1 - beta2) * g * g;
      m[mean.start + i] = first;
      m[square.start + i] = second;
      m[weight.start + i] -=
        lr * (decay * m[weight.start + i] + first / short1 / (Math.sqrt(second) / short2 + eps));
    }
  }
}

// What a norm takes one mean over: the features of a position, one after the other, or the positions of a
// feature.
function normGroup({ nColumns: n }, group, seqLen) {
  if (!seqLen) return { first: group * n, count: n, step: 1, feature: 0, next: 1 };
  const feature = group % n;
  return { first: (group - feature) * seqLen + feature, count: seqLen, step: n, feature, next: 0 };
}

// Φ(x) by the series erf(z) = 2/√π exp(-z²) Σ_n 2ⁿ z²ⁿ⁺¹ / (1·3·5···(2n + 1)), to the last digits of float64.
function normalShare(x) {
  const z = Math.abs(x) / Math.SQRT2;
  if (z > 6) return x > 0 ? 1 : 0;
  let term = z;
  let sum = z;
  for (let n = 1; term > 1e-17 * sum; n++) sum += term *= (2 * z * z) / (2 * n + 1);
  const erf = (2 / Math.sqrt(Math.PI)) * Math.exp(-z * z) * sum;
  return (1 + Math.sign(x) * erf) / 2;
}

const normalDensity = (x) => Math.exp((-x * x) / 2) / Math.sqrt(2 * Math.PI); // φ(x)
