// How words are compared where a reader looks for some: without accents, capitals and kinds of apostrophe.
const plain = (text) =>
  text
    .normalize("NFD")
    .replace(/[\u0300-\u036f]/g, "")
    .replace(/[‘’]/g, "'")
    .toLowerCase();
