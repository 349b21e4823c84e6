"""What a model is trained to do: predict the next token, hidden tokens, a translation, or a class."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Protocol

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from tinytx.text.batching import batches_by_length, batches_of_pairs, chunks, pad_batch
from tinytx.text.tokenizer import Tokenizer
from tinytx.training.masking import (
    IGNORED,
    Masking,
    PairsOfSentences,
    draw_pairs,
    make_passages,
    mask_tokens,
    word_starts,
)


class Objective(Protocol):
    """What the training loop asks of an objective: an order of batches, and the loss on rows of one."""

    def epoch_batches(self, *, seed: int, epoch: int, tokens_per_batch: int) -> list[list[int]]:
        """Row numbers of each batch of one pass over the data, a pure function of the arguments."""
        ...

    def n_predictions(self, indices: Sequence[int]) -> int | list[int]:
        """How many predictions the mean loss of some rows is over: tokens, or rows."""
        ...

    def loss(self, model: Any, indices: list[int]) -> Tensor:
        """Mean loss of some rows, in nats a prediction.

        An objective of two terms gives two means, and two numbers of predictions; their sum is trained.
        """
        ...


def _device(model: nn.Module) -> torch.device:
    return next(model.parameters()).device


def _mask_of(token_ids: Tensor, pad_id: int) -> Tensor | None:
    """True = a real token; None without any padding, which is faster."""
    real = token_ids != pad_id
    return None if bool(real.all()) else real


def language_model_loss(logits: Tensor, targets: Tensor, pad_id: int) -> Tensor:
    """Mean surprise over real tokens: ``-log P(target)`` in nats.

    Parameters
    ----------
    logits : Tensor of shape (..., T, V)
    targets : Tensor of shape (..., T)
        ``pad_id`` where nothing is to be predicted.
    pad_id : int

    Returns
    -------
    Tensor of shape ()
        Computed in float32 whatever the precision of the logits; NaN when every target is padding.

    Examples
    --------
    >>> logits = torch.zeros(1, 3, 8)
    >>> round(language_model_loss(logits, torch.tensor([[5, 2, 0]]), pad_id=0).item(), 4)  # ln 8
    2.0794
    """
    return F.cross_entropy(logits.flatten(0, -2).float(), targets.flatten(), ignore_index=pad_id)


def causal_batch(
    sequences: Sequence[Sequence[int]], *, bos_id: int, eos_id: int, pad_id: int
) -> tuple[Tensor, Tensor]:
    """Inputs and targets of next-token prediction: what is read, and what should come next.

    Parameters
    ----------
    sequences : sequence of sequences of int
        Ids of each text, without special ids.
    bos_id, eos_id, pad_id : int

    Returns
    -------
    inputs : Tensor of shape (B, T)
        ``[bos, x...]``, padded on the right to the longest of the batch.
    targets : Tensor of shape (B, T)
        ``[x..., eos]``, padded likewise: the token after each input.

    Examples
    --------
    >>> inputs, targets = causal_batch([[7, 8], [9]], bos_id=2, eos_id=3, pad_id=0)
    >>> inputs.tolist(), targets.tolist()
    ([[2, 7, 8], [2, 9, 0]], [[7, 8, 3], [9, 3, 0]])
    """
    inputs = pad_batch([[bos_id, *ids] for ids in sequences], pad_id)
    targets = pad_batch([[*ids, eos_id] for ids in sequences], pad_id)
    return inputs, targets


class PackedSequences:
    """Sequences laid end to end in one tensor, from which padded batches are cut without a Python loop.

    Parameters
    ----------
    sequences : iterable of sequences of int
    pad_id : int

    Attributes
    ----------
    flat : Tensor of shape (total length,)
    lengths : list of int
    """

    def __init__(self, sequences: Iterable[Sequence[int]], pad_id: int) -> None:
        arrays = [np.asarray(ids, dtype=np.int32) for ids in sequences]
        flat = np.concatenate(arrays) if arrays else np.zeros(0, dtype=np.int32)
        self._set(torch.from_numpy(flat), [len(array) for array in arrays], pad_id)

    def _set(self, flat: Tensor, lengths: list[int], pad_id: int) -> None:
        self.flat, self.lengths, self.pad_id = flat, lengths, pad_id
        self._lengths = torch.tensor(lengths, dtype=torch.long)
        self._starts = self._lengths.cumsum(0) - self._lengths

    @classmethod
    def of_flat(cls, flat: Tensor, lengths: list[int], pad_id: int) -> PackedSequences:
        """Sequences that lie end to end already, of these lengths."""
        packed = cls.__new__(cls)
        packed._set(flat, lengths, pad_id)
        return packed

    def __len__(self) -> int:
        return len(self.lengths)

    def rows(self, indices: Sequence[int]) -> Tensor:
        """The sequences at ``indices`` as a LongTensor (B, T), padded on the right to their longest."""
        chosen = torch.as_tensor(indices)
        lengths = self._lengths[chosen]
        offsets = torch.arange(int(lengths.max()))
        real = offsets < lengths[:, None]  # (B, T)
        places = (self._starts[chosen][:, None] + offsets).clamp_(max=max(len(self.flat) - 1, 0))
        return torch.where(real, self.flat[places], self.pad_id).long()


def _batches(lengths: list[int], tokens_per_batch: int, *, seed: int, epoch: int) -> list[list[int]]:
    # A row longer than the budget gets a batch to itself.
    return batches_by_length(lengths, max(tokens_per_batch, max(lengths)), seed=seed, epoch=epoch)


class CausalObjective:
    """Predict each token from those before it, over all text: long texts are read in chunks.

    Parameters
    ----------
    sequences : sequence of sequences of int
        Ids of each text, without special ids.
    bos_id, eos_id, pad_id : int
    max_len : int
        Longest input.

    Attributes
    ----------
    n_tokens : int
        Number of predictions in one pass: all tokens and one ``eos`` a text.
    """

    def __init__(
        self, sequences: Sequence[Sequence[int]], *, bos_id: int, eos_id: int, pad_id: int, max_len: int
    ) -> None:
        pieces: list[Sequence[int]] = []
        self.text_of_row: list[int] = []
        for number, ids in enumerate(sequences):
            for piece in chunks([bos_id, *ids, eos_id], max_len):
                pieces.append(piece)
                self.text_of_row.append(number)
        if not pieces:
            raise ValueError("a language model needs at least one text to learn from, got none")
        self._rows = PackedSequences(pieces, pad_id)
        self._pad_id = pad_id
        self.n_texts = len(sequences)
        self._input_lengths = [length - 1 for length in self._rows.lengths]
        self.n_tokens = sum(self._input_lengths)

    def epoch_batches(self, *, seed: int, epoch: int, tokens_per_batch: int) -> list[list[int]]:
        """Rows of similar length together, in shuffled order."""
        return _batches(self._input_lengths, tokens_per_batch, seed=seed, epoch=epoch)

    def batch(self, indices: Sequence[int]) -> tuple[Tensor, Tensor]:
        """Inputs and targets (B, T) of the rows at ``indices``."""
        rows = self._rows.rows(indices)  # (B, T + 1)
        return rows[:, :-1], rows[:, 1:]

    def n_predictions(self, indices: Sequence[int]) -> int:
        """Real targets of the rows at ``indices``."""
        return sum(self._input_lengths[i] for i in indices)

    def loss(self, model: Any, indices: list[int]) -> Tensor:
        """Mean nats a token. Padding is on the right, where a causal model never looks: no mask."""
        inputs, targets = self.batch(indices)
        return model.loss(inputs.to(_device(model)), targets, ignore_id=self._pad_id)


class ClassificationObjective:
    """Name the class of each text.

    Parameters
    ----------
    sequences : sequence of sequences of int
        Ids of each text as the model reads them, no longer than it can read.
    labels : sequence of int
    pad_id : int

    Attributes
    ----------
    labels : LongTensor of shape (N,)
    """

    def __init__(self, sequences: Sequence[Sequence[int]], labels: Sequence[int], *, pad_id: int) -> None:
        if len(sequences) != len(labels) or not sequences:
            raise ValueError(
                f"texts and labels must be as many, at least one, got {len(sequences)} and {len(labels)}"
            )
        self._rows = PackedSequences(sequences, pad_id)
        self.labels = torch.tensor(labels, dtype=torch.long)
        self._pad_id = pad_id

    def epoch_batches(self, *, seed: int, epoch: int, tokens_per_batch: int) -> list[list[int]]:
        """Texts of similar length together, in shuffled order."""
        return _batches(self._rows.lengths, tokens_per_batch, seed=seed, epoch=epoch)

    def n_predictions(self, indices: Sequence[int]) -> int:
        """One a row."""
        return len(indices)

    def batch(self, indices: Sequence[int]) -> tuple[Tensor, Tensor]:
        """Texts (B, T), padded, and labels (B,) of the rows at ``indices``."""
        return self._rows.rows(indices), self.labels[torch.as_tensor(indices)]

    def logits(self, model: Any, indices: Sequence[int]) -> Tensor:
        """Scores (B, C) of the texts at ``indices``."""
        token_ids = self._rows.rows(indices).to(_device(model))
        return model(token_ids, token_ids != self._pad_id)

    def loss(self, model: Any, indices: list[int]) -> Tensor:
        """Mean nats a text."""
        token_ids, labels = self.batch(indices)
        token_ids = token_ids.to(_device(model))
        return model.loss(token_ids, labels, token_ids != self._pad_id)


_PAIRS, _MASKS = 1, 2  # what the random numbers of an epoch are for


class MaskedObjective:
    """Predict hidden tokens from both sides, over all text: long texts are read in windows.

    A row is ``[cls] x [sep]``; with `Masking.next_sentence` it is ``[cls] x [sep] y [sep]``, where y and its
    end belong to the second segment. What is hidden, and which y follows x, is drawn anew for each
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

    def __init__(self, tokenizer: Tokenizer, texts: Sequence[str], *, max_len: int, masking: Masking) -> None:
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

    def n_predictions(self, indices: Sequence[int]) -> int | list[int]:
        """Drawn tokens of the rows at ``indices``; where sentences are paired, also the rows."""
        n_drawn = int((self._labels.rows(indices) != IGNORED).sum())
        return [n_drawn, len(indices)] if self._masking.next_sentence else n_drawn

    def loss(self, model: Any, indices: list[int]) -> Tensor:
        """Mean nats a drawn token; where sentences are paired, also the mean nats of a pair: (2,)."""
        device = _device(model)
        inputs, labels, segments, next_labels = self.batch(indices)
        inputs = inputs.to(device)
        if segments is not None:
            segments = segments.to(device) if model.config.n_segments else None
        mask = _mask_of(inputs, self._tokenizer.pad_id)
        masked, following = model.losses(inputs, labels, mask, segments, next_labels)
        return masked if following is None else torch.stack([masked, following])


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


class TranslationObjective:
    """Predict every target piece and its end mark, over pairs.

    The encoder reads ``[x..., eos]``; the decoder reads ``[bos, y...]`` and predicts ``[y..., eos]``. Only
    real target positions reach the output layer.

    Parameters
    ----------
    sources, targets : sequence of N sequences of int
        Ids of each side, without special ids.
    bos_id, eos_id, pad_id : int
    max_len : int
        Most ids a side, marks included; longer pairs are left out and counted.
    label_smoothing : float
        See `tinytx.model.output_loss.output_loss`.

    Attributes
    ----------
    n_tokens : int
        Number of predictions in one pass.
    n_left_out : int
        Pairs that were too long.
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
        if len(sources) != len(targets):
            raise ValueError(f"sources and targets must be as many, got {len(sources)} and {len(targets)}")
        fits = [
            max(len(source), len(target)) < max_len for source, target in zip(sources, targets, strict=True)
        ]
        self.n_left_out = len(fits) - sum(fits)
        if not any(fits):
            raise ValueError(
                f"a translator needs a pair of at most {max_len - 1} pieces a side to learn from, "
                f"got {len(fits)} pairs, none so short"
            )
        short_enough = [i for i, one in enumerate(fits) if one]
        self._sources = PackedSequences(([*sources[i], eos_id] for i in short_enough), pad_id)
        self._targets = PackedSequences(([bos_id, *targets[i], eos_id] for i in short_enough), pad_id)
        self._pad_id = pad_id
        self.label_smoothing = label_smoothing
        self._tgt_lengths = [length - 1 for length in self._targets.lengths]
        self.n_tokens = sum(self._tgt_lengths)

    def epoch_batches(self, *, seed: int, epoch: int, tokens_per_batch: int) -> list[list[int]]:
        """Pairs of similar lengths together, in shuffled order; both sides count."""
        return batches_of_pairs(
            self._sources.lengths, self._tgt_lengths, tokens_per_batch, seed=seed, epoch=epoch
        )

    def n_predictions(self, indices: Sequence[int]) -> int:
        """Real target positions of the pairs at ``indices``."""
        return sum(self._tgt_lengths[i] for i in indices)

    def batch(self, indices: Sequence[int]) -> tuple[Tensor, Tensor, Tensor]:
        """Source (B, S), decoder input and targets (B, T) of the pairs at ``indices``, padded."""
        rows = self._targets.rows(indices)  # (B, T + 1)
        targets = rows[:, 1:]
        # An end mark that is read, but after which nothing is predicted, is padding like any other.
        return self._sources.rows(indices), rows[:, :-1], targets

    def loss(self, model: Any, indices: list[int]) -> Tensor:
        """Mean nats a target token, smoothed."""
        return self.nats(model, indices, self.label_smoothing)

    def nats(self, model: Any, indices: list[int], label_smoothing: float = 0.0) -> Tensor:
        """Mean nats a target token with a smoothing of its own; by default none."""
        device = _device(model)
        src_ids, tgt_ids, targets = self.batch(indices)
        src_ids = src_ids.to(device)
        mask = _mask_of(src_ids, self._pad_id)
        return model.loss(
            src_ids, tgt_ids.to(device), targets, mask,
            ignore_id=self._pad_id, label_smoothing=label_smoothing,
        )  # fmt: skip
