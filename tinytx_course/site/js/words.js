// How words are compared where a reader looks for some: without accents, capitals and kinds of apostrophe.
// biome-ignore lint/correctness/noUnusedVariables: the scripts that this one is put before use it
const plain = (text) =>
  text
    .normalize("NFD")
    .replace(/[\u0300-\u036f]/g, "")
    .replace(/[‘’]/g, "'")
    .toLowerCase();

// Where letters are text. With a choice, a box or a slider they are keys.
// biome-ignore lint/correctness/noUnusedVariables: the scripts that this one is put before use it
const TYPING = "textarea, select, [contenteditable], input:not([type=radio], [type=checkbox], [type=range])";
