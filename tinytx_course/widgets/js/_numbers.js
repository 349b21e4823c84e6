// Numbers and words: formulas that tests compare with torch. Shared by all explorers, imports nothing.

export const clamp = (x, low, high) => Math.min(high, Math.max(low, x));
export const range = (n) => Array.from({ length: n }, (_, i) => i); // 0, 1, ..., n - 1
export const divisors = (n) => range(Math.min(n, 256) + 1).filter((d) => n % d === 0);

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

// Bits of a whole number, mixed (the last step of MurmurHash3, by A. Appleby, in the public domain), and as a
// number between 0 and 1: random numbers that are the same everywhere.
const mixed = (x) => {
  x = Math.imul(x ^ (x >>> 16), 0x85ebca6b);
  x = Math.imul(x ^ (x >>> 13), 0xc2b2ae35);
  return (x ^ (x >>> 16)) >>> 0;
};
export const uniform = (i) => (mixed(i) + 0.5) / 2 ** 32;

// Places of a slider as powers of two and what lies half way between them, and back.
export const halfSteps = (x) => 2 ** (x >> 1) * (x % 2 ? 1.5 : 1);
export const halfStepOf = (value) => {
  const low = Math.floor(Math.log2(value));
  return 2 * (low + value / 2 ** low - 1);
};

// The value of a formula: sums and products of numbers, letters and brackets, as a BigInt, exact at any size.
export function evaluate(formula, letters) {
  const tokens = formula.match(/\d+|[A-Z]|[·+()]/g);
  let at = 0;
  const factor = () => {
    const token = tokens[at++];
    if (token !== "(") return BigInt(/\d/.test(token) ? token : letters[token]);
    const value = sum();
    at++;
    return value;
  };
  const product = () => {
    let value = factor();
    while (tokens[at] === "·") {
      at++;
      value *= factor();
    }
    return value;
  };
  const sum = () => {
    let value = product();
    while (tokens[at] === "+") {
      at++;
      value += product();
    }
    return value;
  };
  return sum();
}

// The bytes that a text in base 64 stands for; the first way is fast, and new.
export const bytesOf = (base64) =>
  Uint8Array.fromBase64?.(base64) ?? Uint8Array.from(atob(base64), (letter) => letter.charCodeAt(0));

// The bytes of a trait (a DataView) as float32; copied only where they do not start at a multiple of four.
const decoded = new WeakMap();
export function floats(view) {
  if (!(view instanceof DataView)) return view;
  if (!decoded.has(view)) {
    const { buffer, byteOffset: at, byteLength: size } = view;
    decoded.set(
      view,
      at % 4 ? new Float32Array(buffer.slice(at, at + size)) : new Float32Array(buffer, at, size / 4),
    );
  }
  return decoded.get(view);
}

// Words.

// With a real minus sign, and none before zero.
export const number = (x, digits = 2) => {
  const text = x.toFixed(digits);
  return +text ? text.replace("-", "−") : text.replace("-", "");
};
export const percent = (share) => `${(100 * share).toFixed(0)}%`;
export const counted = (n, word) => `${n} ${word}${n === 1 ? "" : "s"}`;
// A token is known by its position: the same word may occur twice.
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

// As people write it: no space after an elision, none before a sign.
export const gap = (words, i) => (i && !/^[.,!]$/.test(words[i]) && !words[i - 1].endsWith("'") ? " " : "");

export const spelt = (words) => words.map((word, i) => gap(words, i) + word).join("");

// English for each word of a French text, as one line; "" is a word that English does without.
export function wordByWord(english = []) {
  const words = english.filter(Boolean);
  const line = spelt(words).replace(/\ba(?= (?!useless)[aeiou])/gi, "$&n"); // an idea, a useless idea
  return line && `Word by word: ${line}`;
}
