// First weights: the distributions and spreads of tinytx, drawn by a generator of our own.

const FIRST_LOGIT_STD = 0.25; // of the first logits: nearly equal, so the first loss is close to ln V

// A function that gives numbers in [0, 1), the same for equal seeds on every machine (sfc32, by C.
// Doty-Humphrey, in the public domain).
export function generator(seed) {
  let a = 0x9e3779b9;
  let b = 0x243f6a88;
  let c = seed | 0;
  let counter = 1;
  const random = () => {
    const sum = (a + b + counter++) | 0;
    a = b ^ (b >>> 9);
    b = (c + (c << 3)) | 0;
    c = (((c << 21) | (c >>> 11)) + sum) | 0;
    return (sum >>> 0) / 2 ** 32;
  };
  for (let i = 0; i < 16; i++) random(); // until all bits depend on the seed
  return random;
}

// Of mean 0 and variance 1: the radius and the angle of a point of the plane (Box and Muller).
const normal = (random) => Math.sqrt(-2 * Math.log(1 - random())) * Math.cos(2 * Math.PI * random());

// How a parameter begins: { normal: std }, { uniform: bound } for numbers in -bound..bound, or { constant }.
export function spread(name, shape, config) {
  const std = config.d_model ** -0.5;
  if (name === "body.token_embed.weight")
    return { normal: config.tie_embeddings && config.norm === "first" ? 0.5 * std : std }; // see tied_std
  if (name === "body.pos_embed.table") return { normal: std };
  if (name === "head.weight") return { normal: std * FIRST_LOGIT_STD };
  if (name.endsWith("norm.weight")) return { constant: 1 };
  if (name.endsWith("bias")) return { constant: 0 };
  // Glorot's uniform distribution; pre-norm, layers that write into the residual stream start smaller
  const residual = config.norm === "first" && /(out|down)_proj.weight$/.test(name);
  const gain = residual ? (2 * config.n_layers) ** -0.5 : 1;
  return { uniform: gain * Math.sqrt(6 / (shape[0] + shape[1])) };
}

// Draw all parameters of a model.
export function initialise(model, seed) {
  const random = generator(seed);
  for (const [name, parameter] of model.parameters) {
    const { data } = parameter;
    const how = spread(name, parameter.shape, model.config);
    for (let i = 0; i < data.length; i++) {
      if (how.normal) data[i] = how.normal * normal(random);
      else data[i] = how.uniform ? how.uniform * (2 * random() - 1) : how.constant;
    }
  }
  return model;
}
