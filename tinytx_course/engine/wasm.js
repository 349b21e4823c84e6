// The kernels in WebAssembly, four float32 at a time: kernels.ts, compiled to kernels.wasm. What is missing
// here is inherited, in plain JavaScript on the same memory.

import { Kernels } from "./kernels.js";

const PAGE = 2 ** 16; // bytes

// From the bytes of kernels.wasm; where the browser cannot run them, the kernels in plain JavaScript.
export async function fastKernels(bytes) {
  try {
    const { instance } = await WebAssembly.instantiate(bytes);
    return new WasmKernels(instance.exports);
  } catch {
    return new Kernels();
  }
}

class WasmKernels extends Kernels {
  constructor(wasm) {
    super(Float32Array, new Float32Array(wasm.memory.buffer));
    this.wasm = wasm;
    this.end = this.permanent = Math.ceil(wasm.firstFree() / 16) * 4;
  }

  grow(size) {
    const { memory } = this.wasm;
    const missing = 4 * Math.max(size, 1.5 * this.numbers.length) - memory.buffer.byteLength;
    memory.grow(Math.ceil(missing / PAGE));
    this.numbers = new Float32Array(memory.buffer);
  }

  times(out, a, b, add = false) {
    this.product(out, a, a.stride, 1, b, out.nRows, a.nColumns, add);
  }

  timesTransposed(out, a, b, add = false) {
    const { end } = this;
    const turned = this.empty(b.nColumns, b.nRows); // (I, O)
    this.wasm.transpose(4 * turned.start, 4 * b.start, b.stride, b.nRows, b.nColumns);
    this.product(out, a, a.stride, 1, turned, out.nRows, a.nColumns, add);
    this.end = end;
  }

  transposedTimes(out, a, b, add = false) {
    this.product(out, a, 1, a.stride, b, out.nRows, a.nRows, add);
  }

  product(out, a, aRow, aColumn, b, m, k, add) {
    // (m, k), (k, n) -> (m, n)
    this.wasm.product(
      4 * out.start,
      out.stride,
      4 * a.start,
      aRow,
      aColumn,
      4 * b.start,
      b.stride,
      m,
      k,
      out.nColumns,
      add,
    );
  }

  add(out, x) {
    this.wasm.add(4 * out.start, 4 * x.start, x.size);
  }

  activate(out, x, kind) {
    if (kind === "relu") this.wasm.relu(4 * out.start, 4 * x.start, x.size);
    else super.activate(out, x, kind);
  }

  activateBackward(dX, dOut, x, kind) {
    if (kind === "relu") this.wasm.reluBackward(4 * dX.start, 4 * dOut.start, 4 * x.start, x.size);
    else super.activateBackward(dX, dOut, x, kind);
  }

  scoreRows(scores, factor, slope, causal) {
    this.wasm.scoreRows(4 * scores.start, scores.nColumns, factor, slope, causal);
  }

  softmax(x) {
    this.wasm.softmax(4 * x.start, x.nRows, x.nColumns);
  }

  softmaxBackward(dW, w, factor) {
    this.wasm.softmaxBackward(4 * dW.start, 4 * w.start, w.nRows, w.nColumns, factor);
  }

  rowCrossEntropy(row, target, share) {
    return this.wasm.crossEntropy(4 * row.start, row.nColumns, target, share);
  }

  adamw(weight, grad, mean, square, { lr, decay, betas, eps, step, factor }) {
    const places = [weight, grad, mean, square].map((tensor) => 4 * tensor.start);
    const growth = [1 / (1 - betas[0] ** step), 1 / Math.sqrt(1 - betas[1] ** step)];
    this.wasm.adamw(...places, weight.size, lr, decay, ...betas, eps, ...growth, factor);
  }
}
