// Batches of reviews of the generated language, drawn in the page: each is read once. Tokens are words; token
// 0 comes before the first word, after the last one, and fills short rows up.

import { IGNORE_ID } from "./model.js";

const EDGE = 0;
const POOL = 8; // batches that are drawn, sorted by length and shuffled together

// The numbers of the words of a review, from 1 up.
export const encodeWords = (world, words) => words.map((word) => world.ids.get(word) + 1);

// Inputs [edge, x...] and targets [x..., edge], padded on the right: { tokenIds, targets, batchSize, seqLen
// }.
export function causalBatch(rows) {
  const seqLen = 1 + Math.max(...rows.map((row) => row.length));
  const size = rows.length * seqLen;
  const tokenIds = new Int32Array(size).fill(EDGE);
  const targets = new Int32Array(size).fill(IGNORE_ID);
  rows.forEach((row, b) => {
    tokenIds.set(row, b * seqLen + 1);
    targets.set([...row, EDGE], b * seqLen);
  });
  return { tokenIds, targets, batchSize: rows.length, seqLen };
}

// Batches without end, of reviews of similar length and at most so many tokens, padding included.
export function* reviewBatches(world, random, tokensPerBatch) {
  for (;;) {
    const rows = [];
    for (let n = 0; n < POOL * tokensPerBatch; n += rows.at(-1).length + 1) {
      rows.push(encodeWords(world, world.sample(random)));
    }
    rows.sort((a, b) => a.length - b.length);
    const batches = [];
    for (let first = 0, i = 1; i <= rows.length; i++) {
      if (i < rows.length && (i - first + 1) * (rows[i].length + 1) <= tokensPerBatch) continue;
      batches.push(rows.slice(first, i));
      first = i;
    }
    for (let i = batches.length - 1; i > 0; i--) {
      // shuffle
      const j = Math.floor((i + 1) * random());
      [batches[i], batches[j]] = [batches[j], batches[i]];
    }
    for (const batch of batches) yield causalBatch(batch);
  }
}
