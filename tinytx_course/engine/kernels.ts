// The hot loops of kernels.js in WebAssembly, four float32 at a time. AssemblyScript, compiled by `make engine`.
// Matrices lie row by row; places are bytes, sizes and strides are numbers.

const ROWS = 4, COLUMNS = 8, DEPTH = 128; // of a block of a product: eight sums of four numbers stay in registers

export function firstFree(): usize { return __heap_base; }

// c[i, j] (+)= Σ_l a(i, l) b[l, j], where a(i, l) is at a + i · aRow + l · aColumn: (m, k), (k, n) -> (m, n)
export function product(
  c: usize, cStride: i32, a: usize, aRow: i32, aColumn: i32, b: usize, bStride: i32, m: i32, k: i32, n: i32, add: bool,
): void {
  cStride <<= 2; aRow <<= 2; aColumn <<= 2; bStride <<= 2;
  for (let from = 0; from < k; from += DEPTH) { // a slice of b that stays in the cache
    const depth = min(DEPTH, k - from), more = add || from > 0;
    let i = 0;
    for (; i + ROWS <= m; i += ROWS) {
      const left = a + i * aRow + from * aColumn, right = b + from * bStride, out = c + i * cStride;
      let j = 0;
      for (; j + COLUMNS <= n; j += COLUMNS) {
        block(out + (j << 2), cStride, left, aRow, aColumn, right + (j << 2), bStride, depth, more);
      }
      for (; j < n; j++) {
        for (let r = 0; r < ROWS; r++) {
          one(out + r * cStride + (j << 2), left + r * aRow, aColumn, right + (j << 2), bStride, depth, more);
        }
      }
    }
    for (; i < m; i++) {
      const left = a + i * aRow + from * aColumn, right = b + from * bStride, out = c + i * cStride;
      let j = 0;
      for (; j + 4 <= n; j += 4) four(out + (j << 2), left, aColumn, right + (j << 2), bStride, depth, more);
      for (; j < n; j++) one(out + (j << 2), left, aColumn, right + (j << 2), bStride, depth, more);
    }
  }
}

// Four rows and eight columns of a product.
// @ts-ignore: decorator
@inline
function block(
  c: usize, cStride: i32, a: usize, aRow: i32, aColumn: i32, b: usize, bStride: i32, depth: i32, add: bool,
): void {
  let c00 = f32x4.splat(0), c01 = c00, c10 = c00, c11 = c00, c20 = c00, c21 = c00, c30 = c00, c31 = c00;
  let a0 = a, a1 = a + aRow, a2 = a1 + aRow, a3 = a2 + aRow;
  for (let l = 0; l < depth; l++) {
    const b0 = v128.load(b), b1 = v128.load(b, 16);
    let x = v128.load_splat<f32>(a0);
    c00 = f32x4.add(c00, f32x4.mul(x, b0)); c01 = f32x4.add(c01, f32x4.mul(x, b1));
    x = v128.load_splat<f32>(a1);
    c10 = f32x4.add(c10, f32x4.mul(x, b0)); c11 = f32x4.add(c11, f32x4.mul(x, b1));
    x = v128.load_splat<f32>(a2);
    c20 = f32x4.add(c20, f32x4.mul(x, b0)); c21 = f32x4.add(c21, f32x4.mul(x, b1));
    x = v128.load_splat<f32>(a3);
    c30 = f32x4.add(c30, f32x4.mul(x, b0)); c31 = f32x4.add(c31, f32x4.mul(x, b1));
    a0 += aColumn; a1 += aColumn; a2 += aColumn; a3 += aColumn; b += bStride;
  }
  put(c, c00, add); put(c + 16, c01, add); c += cStride;
  put(c, c10, add); put(c + 16, c11, add); c += cStride;
  put(c, c20, add); put(c + 16, c21, add); c += cStride;
  put(c, c30, add); put(c + 16, c31, add);
}

// @ts-ignore: decorator
@inline
function put(c: usize, x: v128, add: bool): void { v128.store(c, add ? f32x4.add(v128.load(c), x) : x); }

function four(c: usize, a: usize, aColumn: i32, b: usize, bStride: i32, depth: i32, add: bool): void {
  let sum = f32x4.splat(0);
  for (let l = 0; l < depth; l++) {
    sum = f32x4.add(sum, f32x4.mul(v128.load_splat<f32>(a), v128.load(b)));
    a += aColumn; b += bStride;
  }
  put(c, sum, add);
}

function one(c: usize, a: usize, aColumn: i32, b: usize, bStride: i32, depth: i32, add: bool): void {
  let sum: f32 = add ? load<f32>(c) : 0;
  for (let l = 0; l < depth; l++) {
    sum += load<f32>(a) * load<f32>(b);
    a += aColumn; b += bStride;
  }
  store<f32>(c, sum);
}

// out[j, i] = x[i, j]: (m, n) -> (n, m)
export function transpose(out: usize, x: usize, stride: i32, m: i32, n: i32): void {
  for (let i = 0; i < m; i++) {
    const row = x + ((i * stride) << 2);
    for (let j = 0; j < n; j++) store<f32>(out + ((j * m + i) << 2), load<f32>(row + (j << 2)));
  }
}

// exp(x), 0 below -87: x = n ln 2 + r, a polynomial in r, and n added to the exponent.
// @ts-ignore: decorator
@inline
function exp(x: v128): v128 {
  const tiny = f32x4.lt(x, f32x4.splat(-87));
  x = f32x4.min(f32x4.max(x, f32x4.splat(-87)), f32x4.splat(88));
  const n = f32x4.nearest(f32x4.mul(x, f32x4.splat(1.44269504)));
  let r = f32x4.sub(x, f32x4.mul(n, f32x4.splat(0.693359375)));
  r = f32x4.add(r, f32x4.mul(n, f32x4.splat(2.12194440e-4)));
  let sum = f32x4.splat(1 / 5040);
  sum = f32x4.add(f32x4.mul(sum, r), f32x4.splat(1 / 720));
  sum = f32x4.add(f32x4.mul(sum, r), f32x4.splat(1 / 120));
  sum = f32x4.add(f32x4.mul(sum, r), f32x4.splat(1 / 24));
  sum = f32x4.add(f32x4.mul(sum, r), f32x4.splat(1 / 6));
  sum = f32x4.add(f32x4.mul(sum, r), f32x4.splat(0.5));
  sum = f32x4.add(f32x4.mul(sum, r), f32x4.splat(1));
  sum = f32x4.add(f32x4.mul(sum, r), f32x4.splat(1));
  const power = i32x4.shl(i32x4.add(i32x4.trunc_sat_f32x4_s(n), i32x4.splat(127)), 23);
  return v128.andnot(f32x4.mul(sum, power), tiny);
}

// @ts-ignore: decorator
@inline
function expOf(x: f32): f32 { return f32x4.extract_lane(exp(f32x4.splat(x)), 0); }

// @ts-ignore: decorator
@inline
function sumOf(x: v128): f32 {
  return f32x4.extract_lane(x, 0) + f32x4.extract_lane(x, 1) + f32x4.extract_lane(x, 2) + f32x4.extract_lane(x, 3);
}

// Scores of one head, (n, n): factor · x - slope |t - s|, and -∞ where a causal query t must not attend to s > t.
export function scoreRows(x: usize, n: i32, factor: f32, slope: f32, causal: bool): void {
  const steps = f32x4(0, 1, 2, 3);
  for (let t = 0; t < n; t++) {
    let s = 0, end = causal ? t + 1 : n;
    for (; s + 4 <= end; s += 4) {
      const distance = f32x4.abs(f32x4.add(f32x4.splat(<f32>(s - t)), steps));
      v128.store(x, f32x4.sub(
        f32x4.mul(f32x4.splat(factor), v128.load(x)), f32x4.mul(f32x4.splat(slope), distance)));
      x += 16;
    }
    for (; s < n; s++) {
      store<f32>(x, s < end ? factor * load<f32>(x) - slope * <f32>abs(t - s) : -Infinity);
      x += 4;
    }
  }
}

// softmax of each of m rows of n numbers, in place.
export function softmax(x: usize, m: i32, n: i32): void {
  for (let i = 0; i < m; i++) {
    exponentials(x, n);
    x += n << 2;
  }
}

// One row: exp(x - max) / Σ exp(x - max); returns max + ln Σ.
function exponentials(x: usize, n: i32): f32 {
  const wide = x + ((n & ~3) << 2), end = x + (n << 2);
  let tops = f32x4.splat(-Infinity), sums = f32x4.splat(0), at = x;
  for (; at < wide; at += 16) tops = f32x4.max(tops, v128.load(at));
  let top = max(max(f32x4.extract_lane(tops, 0), f32x4.extract_lane(tops, 1)),
    max(f32x4.extract_lane(tops, 2), f32x4.extract_lane(tops, 3)));
  for (; at < end; at += 4) top = max(top, load<f32>(at));
  for (at = x; at < wide; at += 16) {
    const value = exp(f32x4.sub(v128.load(at), f32x4.splat(top)));
    v128.store(at, value);
    sums = f32x4.add(sums, value);
  }
  let sum = sumOf(sums);
  for (; at < end; at += 4) {
    const value = expOf(load<f32>(at) - top);
    store<f32>(at, value);
    sum += value;
  }
  scale(x, n, 1 / sum);
  return top + <f32>Math.log(sum);
}

function scale(x: usize, n: i32, factor: f32): void {
  const wide = x + ((n & ~3) << 2), end = x + (n << 2);
  for (; x < wide; x += 16) v128.store(x, f32x4.mul(v128.load(x), f32x4.splat(factor)));
  for (; x < end; x += 4) store<f32>(x, load<f32>(x) * factor);
}

// The gradient before softmax, over that after it: factor · w (dw - Σ w dw).
export function softmaxBackward(dw: usize, w: usize, m: i32, n: i32, factor: f32): void {
  const wide: usize = (n & ~3) << 2, end: usize = n << 2;
  for (let i = 0; i < m; i++) {
    let sums = f32x4.splat(0), at: usize = 0;
    for (; at < wide; at += 16) sums = f32x4.add(sums, f32x4.mul(v128.load(dw + at), v128.load(w + at)));
    let along = sumOf(sums);
    for (; at < end; at += 4) along += load<f32>(dw + at) * load<f32>(w + at);
    for (at = 0; at < wide; at += 16) {
      const error = f32x4.sub(v128.load(dw + at), f32x4.splat(along));
      v128.store(dw + at, f32x4.mul(f32x4.mul(f32x4.splat(factor), v128.load(w + at)), error));
    }
    for (; at < end; at += 4) store<f32>(dw + at, factor * load<f32>(w + at) * (load<f32>(dw + at) - along));
    dw += end; w += end;
  }
}

// -log softmax(x)[target] of one row of n logits; the gradient times `share` is written over them.
export function crossEntropy(x: usize, n: i32, target: i32, share: f32): f32 {
  const at = x + (target << 2), expected = load<f32>(at), nats = exponentials(x, n) - expected;
  scale(x, n, share);
  store<f32>(at, load<f32>(at) - share);
  return nats;
}

export function relu(out: usize, x: usize, n: i32): void {
  for (let at: usize = 0, end: usize = n << 2; at < end; at += 16) { // tensors end at multiples of four
    v128.store(out + at, f32x4.max(v128.load(x + at), f32x4.splat(0)));
  }
}

export function reluBackward(dx: usize, dOut: usize, x: usize, n: i32): void {
  for (let at: usize = 0, end: usize = n << 2; at < end; at += 16) {
    v128.store(dx + at, v128.and(v128.load(dOut + at), f32x4.gt(v128.load(x + at), f32x4.splat(0))));
  }
}

export function add(out: usize, x: usize, n: i32): void {
  for (let at: usize = 0, end: usize = n << 2; at < end; at += 16) {
    v128.store(out + at, f32x4.add(v128.load(out + at), v128.load(x + at)));
  }
}

// One step of AdamW for n numbers. `grow1` and `grow2` undo the start of the means at zero.
export function adamw(
  weight: usize, grad: usize, mean: usize, square: usize, n: i32, lr: f32, decay: f32, beta1: f32, beta2: f32,
  eps: f32, grow1: f32, grow2: f32, factor: f32,
): void {
  for (let at: usize = 0, end: usize = n << 2; at < end; at += 16) {
    const g = f32x4.mul(f32x4.splat(factor), v128.load(grad + at));
    const first = f32x4.add(
      f32x4.mul(f32x4.splat(beta1), v128.load(mean + at)), f32x4.mul(f32x4.splat(1 - beta1), g));
    const second = f32x4.add(
      f32x4.mul(f32x4.splat(beta2), v128.load(square + at)), f32x4.mul(f32x4.splat(1 - beta2), f32x4.mul(g, g)));
    v128.store(mean + at, first);
    v128.store(square + at, second);
    const size = f32x4.add(f32x4.mul(f32x4.sqrt(second), f32x4.splat(grow2)), f32x4.splat(eps));
    const w = v128.load(weight + at), update = f32x4.div(f32x4.mul(first, f32x4.splat(grow1)), size);
    const change = f32x4.add(f32x4.mul(f32x4.splat(decay), w), update);
    v128.store(weight + at, f32x4.sub(w, f32x4.mul(f32x4.splat(lr), change)));
  }
}
