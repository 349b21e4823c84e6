// The tokenizer in the page: encode and decode as tinytx.Tokenizer does with a BPE model of sentencepiece.
// Starting from single characters, the two neighbours that were merged first in training are merged, again
// and again.

const SPACE = "\u2581";
const UNKNOWN_SURFACE = "\u2047";
const ESCAPE = "\x1b";
// Kinds of pieces, and the kind of model
const NORMAL = 1;
const UNKNOWN = 2;
const BPE = 2;
// What sentencepiece reserves, and the control characters that take its place; those in a text are escaped.
const RESERVED = [SPACE, "\u2585", "\t", "\0", "\n", "\r", "\x1f"];
const INNER = ["\x01", "\x02", "\x03", "\x04", "\x05", "\x06", "\x07"];
const outward = new Map([
  ...RESERVED.map((char, i) => [char, INNER[i]]),
  ...[...INNER, ESCAPE].map((char) => [char, ESCAPE + char]),
]);
const escaped = (text) =>
  // biome-ignore lint/suspicious/noControlCharactersInRegex: they are what is escaped
  text.replace(/[\u2581\u2585\t\0\n\r\x1f\x01-\x07\x1b]/g, (char) => outward.get(char));
const unescaped = (text) =>
  // biome-ignore lint/suspicious/noControlCharactersInRegex: they are what is escaped
  text.replace(/\x1b(.)|([\x01-\x07])/gs, (_, kept, inner) => kept ?? RESERVED[INNER.indexOf(inner)]);

// The pieces of a serialised sentencepiece model, a message of protocol buffers: field 1 is a piece, field 2
// how it was trained.
function readPieces(bytes) {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.length);
  const text = new TextDecoder();
  const message = (at, end, visit) => {
    const varint = () => {
      let n = 0;
      let shift = 1;
      let byte;
      do {
        byte = bytes[at++];
        n += (byte & 127) * shift;
        shift *= 128;
      } while (byte & 128);
      return n;
    };
    while (at < end) {
      const key = varint();
      const field = Math.floor(key / 8);
      const type = key % 8;
      if (type === 0) visit(field, varint());
      else if (type === 1) at += 8;
      else if (type === 5) {
        visit(field, view.getFloat32(at, true));
        at += 4;
      } else if (type === 2) {
        const size = varint();
        visit(field, at, at + size);
        at += size;
      } else throw new Error(`a tokenizer must be a sentencepiece model, got a field of type ${type}`);
    }
  };
  const pieces = [];
  let model = 0;
  message(0, bytes.length, (field, from, to) => {
    if (field === 2)
      message(from, to, (inner, value) => {
        if (inner === 3) model = value;
      });
    if (field !== 1) return;
    const piece = { text: "", score: 0, kind: NORMAL };
    message(from, to, (inner, value, end) => {
      if (inner === 1) piece.text = text.decode(bytes.subarray(value, end));
      else if (inner === 2) piece.score = value;
      else if (inner === 3) piece.kind = value;
    });
    pieces.push(piece);
  });
  if (model !== BPE) throw new Error(`a tokenizer must be a BPE model, kind ${BPE}, got kind ${model}`);
  return pieces;
}

export class Tokenizer {
  padId = 0;
  unkId = 1;
  bosId = 2;
  eosId = 3;

  // bytes: a serialised sentencepiece model, as Tokenizer.to_bytes gives it.
  constructor(bytes) {
    this.pieces = readPieces(bytes);
    this.ids = new Map(this.pieces.flatMap(({ text, kind }, id) => (kind === NORMAL ? [[text, id]] : [])));
  }

  get vocabSize() {
    return this.pieces.length;
  }

  encode(text) {
    if (!text) return [];
    const parts = [...(SPACE + escaped(text).replaceAll(" ", SPACE))];
    for (;;) {
      let best = -1;
      let score = -Infinity;
      for (let i = 0; i + 1 < parts.length; i++) {
        const id = this.ids.get(parts[i] + parts[i + 1]);
        if (id !== undefined && this.pieces[id].score > score) [best, score] = [i, this.pieces[id].score];
      }
      if (best < 0) break;
      parts.splice(best, 2, parts[best] + parts[best + 1]);
    }
    const ids = parts.map((part) => this.ids.get(part) ?? this.unkId);
    // a run of unknown characters is one piece
    return ids.filter((id, i) => id !== this.unkId || ids[i - 1] !== this.unkId);
  }

  // Text of ids; special pieces add nothing, an unknown one adds U+2047.
  decode(ids) {
    const text = ids
      .map((id) => {
        const { text: piece, kind } = this.pieces[id];
        return kind === UNKNOWN ? UNKNOWN_SURFACE : kind === NORMAL ? piece.replaceAll(SPACE, " ") : "";
      })
      .join("");
    return unescaped(text.replace(/^ /, ""));
  }

  // One piece, with U+2581 for a space.
  piece(id) {
    return unescaped(this.pieces[id].text);
  }
}
