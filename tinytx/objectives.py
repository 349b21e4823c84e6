"""What a model is trained to do: predict the next token, masked tokens, a translation, or a class."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Protocol

import numpy as np
import torch
from torch import Tensor, nn

from tinytx.batching import PackedSequences, batches_by_length, batches_of_pairs, chunks
from tinytx.fast import IGNORE_ID, sent
from tinytx.inference import padding_mask_or_none
from tinytx.masking import Masking, PairsOfSentences, draw_pairs, make_passages, mask_tokens, word_starts
from tinytx.settings import mixed_seed, require
from tinytx.tokenizer import Tokenizer
from tinytx.transformer import bidirectional


class Objective(Protocol):
    """What the training loop asks of an objective: an order of batches, and the loss on rows of one."""

    def epoch_batches(self, *, seed: int, epoch: int, tokens_per_batch: int) -> list[list[int]]:
        """Row numbers of each batch of one pass over the data, a pure function of the arguments."""

    def n_predictions(self, indices: Sequence[int]) -> int | list[int]:
        """How many predictions the mean loss of some rows is over: tokens, or rows."""

    def loss(self, model: Any, indices: list[int]) -> Tensor:
        """Mean loss of some rows, in nats a prediction.

        An objective of two terms gives two means, and two numbers of predictions; their sum is trained.
        """


class Prepared(list[int]):
    """Row numbers of a batch, or of the part of it that one of several processes computes.

    ``made`` is what a worker has made of them, with which their loss begins: see `tinytx.prefetching`.
    ``share`` is that of the predictions of the batch, or None where it is all of it.
    """

    def __init__(self, rows: Sequence[int], share: Any = None) -> None:
        super().__init__(rows)
        self.made, self.share = list[Any](), share

    def __getstate__(self) -> dict[str, Any]:  # processes exchange arrays: a tensor would take a file each
        return {**vars(self), "made": [x.numpy() if isinstance(x, Tensor) else x for x in self.made]}

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state)
        self.made = [torch.from_numpy(x) if isinstance(x, np.ndarray) else x for x in self.made]


class FreshObjective:
    """Learn from new texts in each pass over the data, so that none is read twice.

    ``make(epoch)``, a pure function, gives the objective of one pass, of which the methods then speak.
    """

    def __init__(self, make: Callable[[int], CausalObjective | MaskedObjective]) -> None:
        self._make, self._epoch, self._objective = make, 0, make(0)

    def epoch_batches(self, *, seed: int, epoch: int, tokens_per_batch: int) -> list[list[int]]:
        """Batches of the texts of this pass."""
        if epoch != self._epoch:
            self._epoch, self._objective = epoch, self._make(epoch)
        return self._objective.epoch_batches(seed=seed, epoch=epoch, tokens_per_batch=tokens_per_batch)

    def n_predictions(self, indices: Sequence[int]) -> int | list[int]:
        """Predictions of some rows of this pass."""
        return self._objective.n_predictions(indices)

    def batch(self, indices: Sequence[int]) -> Any:
        """Inputs and targets of some rows of this pass."""
        return self._objective.batch(indices)

    def loss(self, model: Any, indices: list[int]) -> Tensor:
        """Mean loss of some rows of this pass."""
        return self._objective.loss(model, indices)


def causal_batch(rows: Tensor) -> tuple[Tensor, Tensor]:
    """Inputs and targets of next-token prediction, (B, T) each: the target is the token after each input.

    `rows`, (B, T + 1), are texts with their marks, ``[bos, x..., eos]``, or windows of long ones, padded on
    the right: inputs are all but the last column, targets all but the first.

    Examples
    --------
    >>> inputs, targets = causal_batch(torch.tensor([[2, 7, 8, 3], [2, 9, 3, 0]]))
    >>> inputs.tolist(), targets.tolist()
    ([[2, 7, 8], [2, 9, 3]], [[7, 8, 3], [9, 3, 0]])
    """
    return rows[:, :-1], rows[:, 1:]


def _on_device_of(model: nn.Module, *inputs: Any) -> Any:
    """Inputs on the device of a model; where they are looked into, that happens before, on the CPU."""
    device = next(model.parameters()).device
    return [None if x is None else sent(x, device) for x in inputs]


class CausalObjective:
    """Predict each token from those before it, over all text: long texts are read in chunks.

    `sequences` are the ids of each text, without special ids; no input is longer than `max_len`. In one pass
    `n_tokens` are predicted: all tokens and one ``eos`` a text.
    """

    def __init__(
        self, sequences: Sequence[Sequence[int]], *, bos_id: int, eos_id: int, pad_id: int, max_len: int
    ) -> None:
        rows = [row for ids in sequences for row in chunks([bos_id, *ids, eos_id], max_len)]
        require(rows, "a language model needs at least one text to learn from", "none")
        self._rows = PackedSequences(rows, pad_id)
        self._input_lengths = [length - 1 for length in self._rows.lengths]
        self.n_tokens = sum(self._input_lengths)

    def epoch_batches(self, *, seed: int, epoch: int, tokens_per_batch: int) -> list[list[int]]:
        """Rows of similar length together, in shuffled order."""
        return batches_by_length(self._input_lengths, tokens_per_batch, seed=seed, epoch=epoch)

    def n_predictions(self, indices: Sequence[int]) -> int:
        """Real targets of the rows at ``indices``."""
        return sum(self._input_lengths[i] for i in indices)

    def batch(self, indices: Sequence[int]) -> tuple[Tensor, Tensor]:
        """Inputs and targets (B, T) of the rows at ``indices``."""
        return causal_batch(self._rows.rows(indices))

    def loss(self, model: Any, indices: list[int]) -> Tensor:
        """Mean nats a token. Padding is on the right, where a causal model never looks: no mask."""
        inputs, targets, *_ = getattr(indices, "made", None) or self.batch(indices)
        inputs = sent(inputs, next(model.parameters()).device)
        loss: Tensor = model.loss(inputs, targets, ignore_id=self._rows.pad_id)
        return loss


class ClassificationObjective:
    """Predict the class of each text, given as the ids that the model reads, no more than it can."""

    def __init__(self, sequences: Sequence[Sequence[int]], labels: Sequence[int], *, pad_id: int) -> None:
        n, n_labels = len(sequences), len(labels)
        require(n == n_labels > 0, "texts and labels must be as many, at least one", f"{n} and {n_labels}")
        self._rows = PackedSequences(sequences, pad_id)
        self.labels = torch.tensor(labels, dtype=torch.long)

    def epoch_batches(self, *, seed: int, epoch: int, tokens_per_batch: int) -> list[list[int]]:
        """Texts of similar length together, in shuffled order."""
        return batches_by_length(self._rows.lengths, tokens_per_batch, seed=seed, epoch=epoch)

    def n_predictions(self, indices: Sequence[int]) -> int:
        """One a row."""
        return len(indices)

    def logits(self, model: Any, indices: Sequence[int]) -> Tensor:
        """Scores (B, C) of the texts at ``indices``."""
        (token_ids,) = _on_device_of(model, self._rows.rows(indices))
        logits: Tensor = model(token_ids, token_ids != self._rows.pad_id)
        return logits

    def batch(self, indices: Sequence[int]) -> tuple[Tensor, Tensor]:
        """Texts (B, T) at ``indices`` and their classes (B,)."""
        return self._rows.rows(indices), self.labels[torch.as_tensor(indices)]

    def loss(self, model: Any, indices: list[int]) -> Tensor:
        """Mean nats a text."""
        token_ids, labels = getattr(indices, "made", None) or self.batch(indices)
        (token_ids,) = _on_device_of(model, token_ids)
        loss: Tensor = model.loss(token_ids, labels, token_ids != self._rows.pad_id)
        return loss


_PAIRS, _MASKS, _DIRECTIONS = 1, 2, 3  # what the random numbers of an epoch are for


class MaskedObjective:
    """Predict masked tokens from both sides, over all text: long texts are read in windows.

    A row is ``[cls] x [sep]``; with `Masking.next_sentence` it is ``[cls] x [sep] y [sep]``, where y and its
    end belong to the second segment; no row is longer than `max_len`. What is masked, and which y follows x,
    is drawn anew for each epoch, as a function of seed and epoch alone: call `epoch_batches` before anything
    else.
    """

    def __init__(self, tokenizer: Tokenizer, texts: Sequence[str], *, max_len: int, masking: Masking) -> None:
        self._tokenizer, self._masking = tokenizer, masking
        self._word_starts = torch.from_numpy(word_starts(tokenizer))
        marked = not masking.whole_words or self._word_starts.any()
        require(marked, "whole_words must have a tokenizer that marks where words begin", "one without")
        self._room = max_len - (3 if masking.next_sentence else 2)
        require(self._room >= 1, "max_len must leave room for text between the marks", max_len)
        self._passages = make_passages(tokenizer, texts, self._room) if masking.next_sentence else []
        self._texts = [] if masking.next_sentence else masked_rows(tokenizer, texts, max_len)
        kind = " of two sentences" if masking.next_sentence else ""
        rule = f"a masked language model needs at least one text{kind} to learn from"
        require(self._passages or self._texts, rule, "none")

    def epoch_batches(self, *, seed: int, epoch: int, tokens_per_batch: int) -> list[list[int]]:
        """Rows of similar length together, in shuffled order; `batch` and `loss` then speak of this epoch."""
        rows, self._next_labels = self._texts, None
        if self._masking.next_sentence:
            pairs = draw_pairs(self._passages, self._room, np.random.default_rng([seed, epoch, _PAIRS]))
            rows, self._next_labels = pair_rows(self._tokenizer, pairs), torch.tensor(pairs.labels)
        packed, words = PackedSequences(rows, self._tokenizer.pad_id), None
        if self._masking.whole_words:
            marks = torch.isin(packed.flat, torch.tensor(special_ids(self._tokenizer)))
            words = (self._word_starts[packed.flat] | marks).cumsum(0)
        inputs, labels = masked_tokens(self._tokenizer, packed.flat, self._masking, seed, epoch, words)
        self._inputs = packed.filled(inputs, self._tokenizer.pad_id)
        self._labels = packed.filled(labels, IGNORE_ID)
        return batches_by_length(packed.lengths, tokens_per_batch, seed=seed, epoch=epoch)

    def n_predictions(self, indices: Sequence[int]) -> int | list[int]:
        """Chosen tokens of the rows at ``indices``; where sentences are paired, also the rows."""
        n_chosen = int((self._labels.rows(indices) != IGNORE_ID).sum())
        return [n_chosen, len(indices)] if self._masking.next_sentence else n_chosen

    def batch(self, indices: Sequence[int]) -> tuple[Tensor, Tensor, Tensor | None, Tensor | None]:
        """Inputs and labels (B, T), segments (B, T) and answers (B,) or None, of the rows at ``indices``."""
        inputs, labels = self._inputs.rows(indices), self._labels.rows(indices)
        if self._next_labels is None:
            return inputs, labels, None, None
        ends = inputs == self._tokenizer.sep_id
        segments = (ends.cumsum(1) - ends.long() == 1).long()  # 1 after one [sep], 0 after none and after two
        return inputs, labels, segments, self._next_labels[torch.as_tensor(indices)]

    def loss(self, model: Any, indices: list[int]) -> Tensor:
        """Mean nats a chosen token; where sentences are paired, also the mean nats of a pair: (2,)."""
        inputs, labels, segments, next_labels = getattr(indices, "made", None) or self.batch(indices)
        if segments is not None and not model.config.n_segments:
            segments = None
        mask = padding_mask_or_none(inputs, self._tokenizer.pad_id)
        inputs, segments, mask = _on_device_of(model, inputs, segments, mask)
        masked, following = model.losses(inputs, labels, mask, segments, next_labels)
        return masked if following is None else torch.stack([masked, following])


class HybridObjective(CausalObjective):
    """Predict the next token in some batches, masked tokens in the others: one model, one output layer.

    In a masked batch the model attends to both sides, a row is framed by ``cls`` and ``sep``, and a masked
    token is predicted at the position before it, where the next token is predicted, too. As there, the last
    column of a batch is no input: a row sees its own ``sep`` next to longer rows only. `max_len` is that of
    an input. Which batches are masked, and what is masked in them, is drawn anew for each epoch: call
    `epoch_batches` first.

    References
    ----------
    Charpentier and Samuel, "GPT or BERT: why not both?", arXiv 2410.24159, section 2.
    """

    def __init__(self, tokenizer: Tokenizer, texts: Sequence[str], *, max_len: int, masking: Masking) -> None:
        ids = {name: getattr(tokenizer, name) for name in ("bos_id", "eos_id", "pad_id")}
        super().__init__(tokenizer.encode_batch(texts), max_len=max_len, **ids)
        self._tokenizer, self._masking = tokenizer, masking
        frame = {tokenizer.bos_id: tokenizer.cls_id, tokenizer.eos_id: tokenizer.sep_id}
        self._framed = self._rows.flat.clone()
        for causal_id, masked_id in frame.items():
            self._framed[self._rows.flat == causal_id] = masked_id

    def epoch_batches(self, *, seed: int, epoch: int, tokens_per_batch: int) -> list[list[int]]:
        """Batches as of a causal model, each for one of the two predictions."""
        batches = super().epoch_batches(seed=seed, epoch=epoch, tokens_per_batch=tokens_per_batch)
        draws = np.random.default_rng([seed, epoch, _DIRECTIONS]).random(len(batches))
        share, drawn = self._masking.causal_share, zip(batches, draws, strict=True)
        self._masked_rows = {row for batch, draw in drawn if draw >= share for row in batch}
        inputs, labels = masked_tokens(self._tokenizer, self._framed, self._masking, seed, epoch)
        self._inputs = self._rows.filled(inputs, self._rows.pad_id)
        self._labels = self._rows.filled(labels, IGNORE_ID)
        return batches

    def n_predictions(self, indices: Sequence[int]) -> int:
        """Next tokens or, in a masked batch, masked ones."""
        if indices[0] not in self._masked_rows:
            return super().n_predictions(indices)
        return int((self.batch(indices)[1] != IGNORE_ID).sum())

    def batch(self, indices: Sequence[int]) -> tuple[Tensor, Tensor, bool]:  # type: ignore[override]
        """Inputs and targets (B, T) of rows of one batch, and whether it is a masked one."""
        if indices[0] not in self._masked_rows:
            return *super().batch(indices), False
        return self._inputs.rows(indices)[:, :-1], self._labels.rows(indices)[:, 1:], True

    def loss(self, model: Any, indices: list[int]) -> Tensor:
        """Mean nats a predicted token; 0 in a masked batch without any."""
        made = getattr(indices, "made", None)
        if not (made[2] if made else indices[0] in self._masked_rows):
            return super().loss(model, indices)
        inputs, targets, _ = made or self.batch(indices)
        inputs, mask = _on_device_of(model, inputs, padding_mask_or_none(inputs, self._rows.pad_id))
        with bidirectional(model.body):
            if bool((targets != IGNORE_ID).any()):
                loss: Tensor = model.loss(inputs, targets, mask)
            else:
                loss = model.head(model.body(inputs[:, :1])).float().sum() * 0.0
            return loss


def special_ids(tokenizer: Tokenizer) -> list[int]:
    """Ids that masking never chooses, besides that of the mask itself."""
    return [getattr(tokenizer, f"{name}_id") for name in ("pad", "unk", "bos", "eos", "cls", "sep")]


def masked_tokens(
    tokenizer: Tokenizer, ids: Tensor, masking: Masking, seed: int, epoch: int, words: Tensor | None = None
) -> tuple[Tensor, Tensor]:
    """Masked inputs and labels of an epoch; parameters as in `mask_tokens`."""
    return mask_tokens(
        ids,
        mask_id=tokenizer.mask_id,
        special_ids=special_ids(tokenizer),
        vocab_size=tokenizer.vocab_size,
        p=masking.p,
        words=words,
        generator=torch.Generator().manual_seed(mixed_seed(seed, epoch, _MASKS)),
    )


def masked_rows(tokenizer: Tokenizer, texts: Sequence[str], max_len: int) -> list[list[int]]:
    """Rows ``[cls] x [sep]`` of some texts, cut into windows; empty texts have none."""
    room = max_len - 2
    return [
        [tokenizer.cls_id, *ids[at : at + room], tokenizer.sep_id]
        for ids in tokenizer.encode_batch(texts)
        for at in range(0, len(ids), room)
    ]


def pair_rows(tokenizer: Tokenizer, pairs: PairsOfSentences) -> list[list[int]]:
    """Rows ``[cls] x [sep] y [sep]`` of some pairs."""
    cls_id, sep_id = tokenizer.cls_id, tokenizer.sep_id
    return [[cls_id, *x, sep_id, *y, sep_id] for x, y in zip(pairs.firsts, pairs.seconds, strict=True)]


class TranslationObjective:
    """Predict every target token and its end mark, over pairs.

    The encoder reads ``[x..., eos]``; the decoder reads ``[bos, y...]`` and predicts ``[y..., eos]``. Only
    real target positions reach the output layer.

    Parameters
    ----------
    sources, targets : sequence of N sequences of int
        Ids of each side, without special ids.
    max_len : int
        Most ids a side, marks included; longer pairs are left out, and counted in `n_left_out`.
    label_smoothing : float
        See `tinytx.fast.output_loss`.
    """

    def __init__(
        self,
        sources: Sequence[Sequence[int]],
        targets: Sequence[Sequence[int]],
        *,
        bos_id: int,
        eos_id: int,
        pad_id: int,
        max_len: int,
        label_smoothing: float = 0.0,
    ) -> None:
        pairs = list(zip(sources, targets, strict=True))
        short = [pair for pair in pairs if max(map(len, pair)) < max_len]
        self.n_left_out = len(pairs) - len(short)
        rule = f"a translator needs a pair of at most {max_len - 1} tokens a side to learn from"
        require(short, rule, f"{len(pairs)} pairs, none so short")
        self._sources = PackedSequences(([*source, eos_id] for source, _ in short), pad_id)
        self._targets = PackedSequences(([bos_id, *target, eos_id] for _, target in short), pad_id)
        self.label_smoothing = label_smoothing
        self._tgt_lengths = [length - 1 for length in self._targets.lengths]
        self.n_tokens = sum(self._tgt_lengths)

    def epoch_batches(self, *, seed: int, epoch: int, tokens_per_batch: int) -> list[list[int]]:
        """Pairs of similar lengths together, in shuffled order; both sides count."""
        lengths = self._sources.lengths, self._tgt_lengths
        return batches_of_pairs(*lengths, tokens_per_batch, seed=seed, epoch=epoch)

    def n_predictions(self, indices: Sequence[int]) -> int:
        """Real target positions of the pairs at ``indices``."""
        return sum(self._tgt_lengths[i] for i in indices)

    def batch(self, indices: Sequence[int]) -> tuple[Tensor, Tensor, Tensor]:
        """Source (B, S), decoder input and targets (B, T) of the pairs at ``indices``, padded."""
        # An end mark that is read, but after which nothing is predicted, is padding like any other.
        return self._sources.rows(indices), *causal_batch(self._targets.rows(indices))

    def loss(self, model: Any, indices: list[int]) -> Tensor:
        """Mean nats a target token, smoothed."""
        src_ids, tgt_ids, targets = getattr(indices, "made", None) or self.batch(indices)
        pad_id, smoothing = self._sources.pad_id, self.label_smoothing
        mask = padding_mask_or_none(src_ids, pad_id)
        src_ids, tgt_ids, mask = _on_device_of(model, src_ids, tgt_ids, mask)
        loss: Tensor = model.loss(
            src_ids, tgt_ids, targets, mask, ignore_id=pad_id, label_smoothing=smoothing
        )
        return loss
