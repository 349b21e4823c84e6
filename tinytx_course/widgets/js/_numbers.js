// Numbers and words: formulas that tests compare with Python's. Shared by all explorers, imports nothing.

export const clamp = (x, low, high) => Math.min(high, Math.max(low, x));

// Softmax over the allowed entries; blocked ones get 0, and so does everything where nothing is allowed.
export function softmax(scores, allowed = null) {
  let top = -Infinity;
  for (let i = 0; i < scores.length; i++) if (!allowed || allowed[i]) top = Math.max(top, scores[i]);
  const out = new Float64Array(scores.length);
  let sum = 0;
  for (let i = 0; i < scores.length; i++) {
    if (!allowed || allowed[i]) sum += out[i] = Math.exp(scores[i] - top);
  }
  if (sum > 0) for (let i = 0; i < out.length; i++) out[i] /= sum;
  return out;
}

// In bits.
export function entropy(shares) {
  let bits = 0;
  for (const p of shares) if (p > 0) bits -= p * Math.log2(p);
  return bits;
}

// (n x k) times (k x m), rows one after the other.
export function matmul(a, b, n, k, m) {
  const out = new Float64Array(n * m);
  for (let i = 0; i < n; i++) {
    for (let l = 0; l < k; l++) {
      const x = a[i * k + l];
      for (let j = 0; j < m; j++) out[i * m + j] += x * b[l * m + j];
    }
  }
  return out;
}

// The bytes of a trait (a DataView) as float32; copied only where they do not start at a multiple of four.
const decoded = new WeakMap();
export function floats(view) {
  if (!(view instanceof DataView)) return view;
  if (!decoded.has(view)) {
    const { buffer, byteOffset: at, byteLength: size } = view;
    decoded.set(view, at % 4 ? new Float32Array(buffer.slice(at, at + size)) : new Float32Array(buffer, at, size / 4));
  }
  return decoded.get(view);
}

// Words.

export const percent = (share) => `${(100 * share).toFixed(0)}%`;
// A token is known by its place: the same word may stand there twice.
export const named = (tokens, i) => `${i} “${tokens[i]}”`;
// Numbers in order, runs drawn together: 0, 2–4, 6.
export function listed(items) {
  const parts = [];
  for (let start = 0, end = 1; end <= items.length; end++) {
    if (end < items.length && items[end] === items[end - 1] + 1) continue;
    const run = items.slice(start, end);
    parts.push(...(run.length > 2 ? [`${run[0]}–${run[run.length - 1]}`] : run.map(String)));
    start = end;
  }
  return parts.join(", ");
}
// A comma before each group of three digits; n may be a BigInt or the text of a number.
export const grouped = (n) => String(n).replace(/^\d+/, (whole) => whole.replace(/\B(?=(\d{3})+$)/g, ","));
