// The weights of the shipped model in the page, as tinytx_course.engine.shipped reads them in Python.

const SCALE = ".scale";

// Tensors by name -> parameters by name: eight-bit matrices times the scale of their rows, vectors as they are.
export function dequantised(tensors) {
  const parameters = new Map();
  for (const [name, { shape, data }] of tensors) {
    const scale = tensors.get(name + SCALE)?.data;
    if (scale) parameters.set(name, { shape, data: Float32Array.from(data, (x, i) => x * scale[Math.floor(i / shape[1])]) });
    else if (data instanceof Float32Array && !name.endsWith(SCALE)) parameters.set(name, { shape, data });
  }
  return parameters;
}
