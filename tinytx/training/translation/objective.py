"""What a translator learns: each next piece of the target, from the source and what is written already."""

from __future__ import annotations

from collections.abc import Sequence

from torch import Tensor

from tinytx.model import Translator
from tinytx.text.batching import batches_of_pairs
from tinytx.training.engine.outputloss import smoothed_output_loss
from tinytx.training.objectives import PackedSequences


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
        See `smoothed_output_loss`.

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
        kept = [i for i, one in enumerate(fits) if one]
        self._sources = PackedSequences(([*sources[i], eos_id] for i in kept), pad_id)
        self._targets = PackedSequences(([bos_id, *targets[i], eos_id] for i in kept), pad_id)
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

    def loss(self, model: Translator, indices: list[int], batch: list[int] | None = None) -> Tensor:
        """Mean nats a target token, smoothed."""
        loss = self.nats(model, indices, self.label_smoothing)
        return loss if batch is None else loss * (self.n_predictions(indices) / self.n_predictions(batch))

    def nats(self, model: Translator, indices: list[int], label_smoothing: float = 0.0) -> Tensor:
        """Mean nats a target token with a smoothing of its own; by default none."""
        device = next(model.parameters()).device
        src_ids, tgt_ids, targets = (part.to(device) for part in self.batch(indices))
        src_real = src_ids != self._pad_id
        # Without padding no mask is needed, which is faster.
        src_mask = None if bool(src_real.all()) else src_real
        memory = model.encode(src_ids, src_mask)  # (B, S, D)
        hidden = model.decoder(tgt_ids, memory, memory_padding_mask=src_mask)  # (B, T, D)
        real = targets != self._pad_id
        return smoothed_output_loss(
            hidden[real],
            model.head.weight,
            targets[real],
            bias=model.head.bias,
            label_smoothing=label_smoothing,
        )
