// A model as one file: its numbers, and what it is in the metadata, as tinytx.load reads it.

import { LanguageModel } from "./model.js";
import { readTensors, writeTensors } from "./safetensors.js";

const FORMAT = "tinytx checkpoint";
const VERSION = 1;
const KIND = "language_model";

// The bytes of a model; `more` is stored with it, as JSON can hold it.
export function writeState(model, more = {}) {
  const tied = model.config.tie_embeddings ? { "head.weight": "body.token_embed.weight" } : {};
  const { config, switches } = model;
  const description = { ...more, format: FORMAT, version: VERSION, kind: KIND, config, switches, tied };
  return writeTensors(model.parameters, { tinytx: JSON.stringify(description) });
}

// The other way: { model, description }. An error says what is wrong with the file, in one sentence.
export function readState(bytes, kernels = undefined) {
  const { metadata, tensors } = readTensors(bytes);
  const refuse = (got) => {
    throw new Error(`a saved state must be a language model of tinytx, got ${got}`);
  };
  if (!metadata.tinytx) refuse("a file that does not describe one");
  let description;
  try {
    description = JSON.parse(metadata.tinytx);
  } catch {
    refuse("a description that is not JSON");
  }
  if (description?.format !== FORMAT || description.kind !== KIND)
    refuse(`a ${description?.kind ?? "file of another kind"}`);
  if (description.version !== VERSION) refuse(`version ${description.version} where ${VERSION} is known`);
  const model = new LanguageModel(description.config, kernels, description.switches);
  return { model: model.load(tensors), description };
}
