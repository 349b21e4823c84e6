"""One step of a translator's decoder for many rows: from the whole prefix, or from kept keys and values.

Shape letters: N sources, K beams a source, R = N K rows, S source ids, T ids written so far, V vocabulary.
"""

from __future__ import annotations

from torch import Tensor

from tinytx.model import Translator


class WholeSteps:
    """Read every prefix from its beginning at each step: slow, and obviously right.

    Parameters
    ----------
    model : Translator
    src_ids, src_mask : Tensor of shape (N, S)
        Sources, padded on the right; True = a real id.
    beam_size : int
        K, rows a source.
    most : int
        Most ids that will be written.
    """

    def __init__(
        self, model: Translator, src_ids: Tensor, src_mask: Tensor, beam_size: int, most: int
    ) -> None:
        self._model = model
        self._memory = model.encode(src_ids, src_mask).repeat_interleave(beam_size, dim=0)  # (R, S, D)
        self._mask = src_mask.repeat_interleave(beam_size, dim=0)  # (R, S)

    def logits(self, prefixes: Tensor) -> Tensor:
        """Scores (R, V) of the next id after each prefix (R, T)."""
        hidden = self._model.decoder(prefixes.to(self._memory.device), self._memory, None, self._mask)
        return self._model.head(hidden[:, -1])

    def select(self, rows: Tensor) -> None:
        """Go on with these rows, in this order."""
        self._memory, self._mask = self._memory[rows], self._mask[rows]


class CachedSteps:
    """Read only the newest id of each prefix, and keep keys and values of those before it.

    Parameters as in `WholeSteps`, whose scores it gives, up to rounding.
    """

    def __init__(
        self, model: Translator, src_ids: Tensor, src_mask: Tensor, beam_size: int, most: int
    ) -> None:
        self._model = model
        memory = model.encode(src_ids, src_mask)  # (N, S, D)
        self._cache = model.decoder.begin(memory, src_mask, rows_per_source=beam_size, max_len=most)

    def logits(self, prefixes: Tensor) -> Tensor:
        """Scores (R, V) of the next id after each prefix (R, T), one id longer at each call."""
        newest = prefixes[:, -1:].to(self._cache.mask.device)
        return self._model.head(self._model.decoder.step(newest, self._cache)[:, 0])

    def select(self, rows: Tensor) -> None:
        """Go on with these rows, in this order."""
        self._cache.select(rows)
