// The weights of the shipped model in the page, as tinytx_course.engine.shipped reads them in Python.

const SCALE = ".scale";

// Tensors by name -> parameters by name: eight-bit matrices times the scale of their rows, vectors as they
// are.
export function dequantised(tensors) {
  const parameters = new Map();
  for (const [name, { shape, data }] of tensors) {
    const scale = tensors.get(name + SCALE)?.data;
    if (scale) {
      const numbers = new Float32Array(data);
      const [rows, columns] = shape;
      for (let r = 0, at = 0; r < rows; r++) for (let c = 0; c < columns; c++, at++) numbers[at] *= scale[r];
      parameters.set(name, { shape, data: numbers });
    } else if (data instanceof Float32Array && !name.endsWith(SCALE)) parameters.set(name, { shape, data });
  }
  return parameters;
}
