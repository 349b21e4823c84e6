"""What a masked language model learns: hidden tokens, and whether one sentence follows another."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from tinytx.model import MaskedLanguageModel
from tinytx.text import Tokenizer
from tinytx.text.batching import batches_by_length
from tinytx.training.masked.masking import IGNORED, Masking, mask_tokens
from tinytx.training.masked.sentence_pairs import PairsOfSentences, draw_pairs, make_passages, word_starts
from tinytx.training.objectives import PackedSequences

_PAIRS, _MASKS = 1, 2  # what the random numbers of an epoch are for


class MaskedObjective:
    """Predict hidden tokens from both sides, over all text: long texts are read in windows.

    A row is ``[cls] x [sep]``; with `Masking.next_sentence` it is ``[cls] x [sep] y [sep]``, where y and its
    end belong to the second segment. What is hidden, and which y stands beside x, is drawn anew for each
    epoch, as a function of seed and epoch and of nothing else.

    Parameters
    ----------
    tokenizer : Tokenizer
    texts : sequence of str
    max_len : int
        Longest row.
    masking : Masking

    Attributes
    ----------
    n_tokens : int
        Ids that are read in the epoch at hand, marks included.
    """

    def __init__(
        self, tokenizer: Tokenizer, texts: Sequence[str], *, max_len: int, masking: Masking
    ) -> None:
        self._tokenizer, self._masking = tokenizer, masking
        self._begins = torch.from_numpy(word_starts(tokenizer))
        special = (tokenizer.pad_id, tokenizer.unk_id, tokenizer.bos_id, tokenizer.eos_id)
        self._special = (*special, tokenizer.cls_id, tokenizer.sep_id)
        self._room = max_len - 3 if masking.next_sentence else max_len - 2
        if self._room < 1:
            raise ValueError(f"max_len must leave room for text between the marks, got {max_len}")
        self._passages = make_passages(tokenizer, texts, self._room) if masking.next_sentence else []
        rows = [] if masking.next_sentence else masked_rows(tokenizer, texts, max_len)[0]
        if not self._passages and not rows:
            raise ValueError("a masked language model needs at least one text to learn from, got none")
        self._rows = rows
        self._epoch: tuple[int, int] | None = None
        self._prepare(seed=0, epoch=0)

    def epoch_batches(self, *, seed: int, epoch: int, tokens_per_batch: int) -> list[list[int]]:
        """Rows of similar length together, in shuffled order; `batch` and `loss` then speak of this epoch."""
        self._prepare(seed=seed, epoch=epoch)
        lengths = self._inputs.lengths
        return batches_by_length(lengths, max(tokens_per_batch, max(lengths)), seed=seed, epoch=epoch)

    def _prepare(self, *, seed: int, epoch: int) -> None:
        """Draw what is hidden in an epoch, and its pairs of sentences."""
        if self._epoch == (seed, epoch):
            return
        pad_id = self._tokenizer.pad_id
        rows, self._next_labels = self._rows, None
        if self._masking.next_sentence:
            pairs = draw_pairs(self._passages, self._room, np.random.default_rng([seed, epoch, _PAIRS]))
            rows = pair_rows(self._tokenizer, pairs)
            segments = ([0] * (len(x) + 2) + [1] * (len(y) + 1) for x, y in _both(pairs))
            self._segments = PackedSequences(segments, 0)
            self._next_labels = torch.tensor(pairs.labels)
        original = PackedSequences(rows, pad_id)
        inputs, labels = self._masked(original.flat, seed, epoch)
        self._inputs = PackedSequences.of_flat(inputs, original.lengths, pad_id)
        self._labels = PackedSequences.of_flat(labels, original.lengths, IGNORED)
        self.n_tokens = len(inputs)
        self._epoch = (seed, epoch)

    def _masked(self, ids: Tensor, seed: int, epoch: int) -> tuple[Tensor, Tensor]:
        state = np.random.SeedSequence([seed, epoch, _MASKS]).generate_state(1, np.uint64)
        words = None
        if self._masking.whole_words:
            marks = torch.isin(ids, torch.tensor(self._special, dtype=ids.dtype))
            words = (self._begins[ids] | marks).cumsum(0)
        return mask_tokens(
            ids,
            mask_id=self._tokenizer.mask_id,
            special_ids=self._special,
            vocab_size=self._tokenizer.vocab_size,
            p=self._masking.p,
            words=words,
            generator=torch.Generator().manual_seed(int(state[0]) >> 1),
        )

    def batch(self, indices: Sequence[int]) -> tuple[Tensor, Tensor, Tensor | None, Tensor | None]:
        """Inputs and labels (B, T), segments (B, T) and answers (B,) or None, of the rows at ``indices``."""
        inputs, labels = self._inputs.rows(indices), self._labels.rows(indices)
        if self._next_labels is None:
            return inputs, labels, None, None
        return inputs, labels, self._segments.rows(indices), self._next_labels[torch.as_tensor(indices)]

    def loss(
        self, model: MaskedLanguageModel, indices: list[int], batch: list[int] | None = None
    ) -> Tensor:
        """Mean nats a drawn token, and where sentences are paired, the mean nats of a pair on top."""
        device = next(model.parameters()).device
        inputs, labels, segments, follows = self.batch(indices)
        inputs, labels = inputs.to(device), labels.to(device)
        if segments is not None:
            segments = segments.to(device) if model.config.n_segments else None
        real = inputs != self._tokenizer.pad_id
        # Without padding no mask is needed, which is faster.
        mask = None if bool(real.all()) else real
        hidden = model.body(inputs, mask, segments)  # (B, T, D)
        drawn = labels != IGNORED
        if not bool(drawn.any()):
            # There is nothing to learn from rows of which nothing was drawn: every gradient is zero.
            loss = model.head(hidden[:, :1]).float().sum() * 0.0
        else:
            loss = F.cross_entropy(model.head(hidden[drawn]).float(), labels[drawn])
            if batch is not None:
                n_drawn = int((self._labels.rows(batch) != IGNORED).sum())
                loss = loss * (int(drawn.sum()) / n_drawn)
        if follows is not None and model.next_head is not None:
            answered = F.cross_entropy(model.next_head(hidden).float(), follows.to(device))
            loss = loss + (answered if batch is None else answered * (len(indices) / len(batch)))
        return loss


def masked_rows(
    tokenizer: Tokenizer, texts: Sequence[str], max_len: int
) -> tuple[list[list[int]], list[int]]:
    """Rows ``[cls] x [sep]`` of some texts, and the number of the text of each; empty texts have none."""
    room = max_len - 2
    rows, text_of_row = [], []
    for number, ids in enumerate(tokenizer.encode_batch(texts)):
        for at in range(0, len(ids), room):
            rows.append([tokenizer.cls_id, *ids[at : at + room], tokenizer.sep_id])
            text_of_row.append(number)
    return rows, text_of_row


def pair_rows(tokenizer: Tokenizer, pairs: PairsOfSentences) -> list[list[int]]:
    """Rows ``[cls] x [sep] y [sep]`` of some pairs."""
    cls_id, sep_id = tokenizer.cls_id, tokenizer.sep_id
    return [[cls_id, *x, sep_id, *y, sep_id] for x, y in _both(pairs)]


def _both(pairs: PairsOfSentences) -> zip:
    return zip(pairs.firsts, pairs.seconds, strict=True)
