// Files of named arrays: a length, a header in JSON, then the bytes of each array
// (huggingface.co/docs/safetensors).

const ARRAYS = {
  F64: Float64Array,
  F32: Float32Array,
  I32: Int32Array,
  U16: Uint16Array,
  U8: Uint8Array,
  I8: Int8Array,
};
const METADATA = "__metadata__";

// bytes: a Uint8Array -> { metadata, tensors }, a Map from names to { shape, data }; data are copies.
export function readTensors(bytes) {
  const broken = (why) => {
    throw new Error(`a file of tensors must be whole and of the format safetensors, got ${why}`);
  };
  if (bytes.length < 8) broken(`${bytes.length} bytes`);
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.length);
  const length = Number(view.getBigUint64(0, true));
  if (length > bytes.length - 8) broken("a header longer than the file");
  let header;
  try {
    header = JSON.parse(new TextDecoder().decode(bytes.subarray(8, 8 + length)));
  } catch {
    broken("a header that is not JSON");
  }
  if (Object.getPrototypeOf(header ?? 0) !== Object.prototype) broken("a header that is not an object");
  const { [METADATA]: metadata = {}, ...entries } = header;
  const tensors = new Map();
  for (const [name, entry] of Object.entries(entries)) {
    const { dtype, shape, data_offsets: offsets } = entry ?? {};
    const isList = Array.isArray(shape) && Array.isArray(offsets);
    if (!isList || ![...shape, ...offsets].every((n) => Number.isInteger(n) && n >= 0))
      broken(`no shape and place of ${name}`);
    const [from, to] = offsets;
    const kind = ARRAYS[dtype] ?? broken(`numbers of the type ${dtype}`);
    const count = shape.reduce((a, b) => a * b, 1);
    if (8 + length + to > bytes.length) broken(`an end before that of ${name}`);
    if (to - from !== count * kind.BYTES_PER_ELEMENT)
      broken(`${to - from} bytes for ${name} of the shape ${shape}`);
    tensors.set(name, { shape, data: new kind(bytes.slice(8 + length + from, 8 + length + to).buffer) });
  }
  return { metadata, tensors };
}

// The other way; wide numbers come first, so that each array begins at a multiple of its size.
export function writeTensors(tensors, metadata = {}) {
  const named = [...tensors].sort(([, a], [, b]) => b.data.BYTES_PER_ELEMENT - a.data.BYTES_PER_ELEMENT);
  const header = Object.keys(metadata).length ? { [METADATA]: metadata } : {};
  let at = 0;
  for (const [name, { shape, data }] of named) {
    const dtype = Object.keys(ARRAYS).find((key) => data instanceof ARRAYS[key]);
    header[name] = { dtype, shape: [...shape], data_offsets: [at, at + data.byteLength] };
    at += data.byteLength;
  }
  const text = new TextEncoder().encode(JSON.stringify(header));
  const length = Math.ceil(text.length / 8) * 8;
  const bytes = new Uint8Array(8 + length + at).fill(32, 8, 8 + length); // spaces fill the header up
  new DataView(bytes.buffer).setBigUint64(0, BigInt(length), true);
  bytes.set(text, 8);
  for (const [name, { data }] of named) {
    bytes.set(
      new Uint8Array(data.buffer, data.byteOffset, data.byteLength),
      8 + length + header[name].data_offsets[0],
    );
  }
  return bytes;
}
