"""What a model is trained to do: predict the next token, or name the class of a text."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Protocol

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from tinytx.model import Classifier, LanguageModel
from tinytx.text.batching import batches_by_length, chunks, pad_batch
from tinytx.training.engine.outputloss import smoothed_output_loss


class Objective(Protocol):
    """What the training loop asks of an objective: an order of batches, and the loss on one of them."""

    def epoch_batches(self, *, seed: int, epoch: int, tokens_per_batch: int) -> list[list[int]]:
        """Index lists of one pass over the data, a pure function of the arguments."""
        ...

    def loss(self, model: Any, indices: list[int], batch: list[int] | None = None) -> Tensor:
        """Mean loss of some rows, in nats; or, given the ``batch`` they are of, what they add to its mean."""
        ...


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


def classification_loss(logits: Tensor, labels: Tensor) -> Tensor:
    """Mean surprise at the right class, in nats, from logits (B, C) and labels (B,)."""
    return F.cross_entropy(logits.float(), labels)


def output_loss(head: nn.Linear, hidden: Tensor, targets: Tensor, pad_id: int) -> Tensor:
    """`language_model_loss` of an output layer's predictions, from the states before it.

    Only positions with a target are predicted, and all logits never exist at once.

    Parameters
    ----------
    head : torch.nn.Linear
        From (B, T, D) to (B, T, V).
    hidden : Tensor of shape (B, T, D)
    targets : Tensor of shape (B, T)
        Best on the CPU, where looking for padding keeps no GPU waiting.
    pad_id : int
    """
    hidden, targets = hidden.flatten(0, 1), targets.flatten()
    real = (targets != pad_id).nonzero()[:, 0]
    if len(real) < len(targets):
        hidden, targets = hidden[real.to(hidden.device)], targets[real]
    return smoothed_output_loss(hidden, head.weight, targets.to(hidden.device), bias=head.bias)


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

    def loss(self, model: LanguageModel, indices: list[int], batch: list[int] | None = None) -> Tensor:
        """Mean nats a token. Padding stands on the right, where a causal model never looks: no mask."""
        inputs, targets = self.batch(indices)
        device = next(model.parameters()).device
        hidden = model.body(inputs.to(device))  # (B, T, D)
        loss = output_loss(model.head, hidden, targets, self._pad_id)
        return loss if batch is None else loss * (self.n_predictions(indices) / self.n_predictions(batch))


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

    def logits(self, model: Classifier, indices: Sequence[int]) -> Tensor:
        """Scores (B, C) of the texts at ``indices``."""
        token_ids = self._rows.rows(indices).to(next(model.parameters()).device)
        return model(token_ids, token_ids != self._pad_id)

    def loss(self, model: Classifier, indices: list[int], batch: list[int] | None = None) -> Tensor:
        """Mean nats a text."""
        logits = self.logits(model, indices)
        loss = classification_loss(logits, self.labels[indices].to(logits.device))
        return loss if batch is None else loss * (len(indices) / len(batch))
