// How words are compared where a reader looks for some: without accents, capitals and kinds of apostrophe.
// biome-ignore lint/correctness/noUnusedVariables: the scripts that this one is put before use it
const plain = (text) =>
  text
    .normalize("NFD")
    .replace(/[\u0300-\u036f]/g, "")
    .replace(/[‘’]/g, "'")
    .toLowerCase();
