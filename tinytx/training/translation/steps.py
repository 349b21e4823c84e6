"""One step of a translator's decoder for many rows: from the whole prefix, or from kept keys and values.

Shape letters: N sources, K beams a source, R = N K rows, S source ids, T ids written so far, V vocabulary.
"""

from __future__ import annotations

import torch
from torch import Tensor

from tinytx.model import Translator
from tinytx.model.stepper import Sources, Stepper


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
        sources = Sources(model.encode(src_ids, src_mask), src_mask, beam_size)
        n_rows = len(src_ids) * beam_size
        self._stepper = Stepper(model.decoder, model.head, n_rows=n_rows, max_len=most, sources=sources)
        self._prefixes = src_ids.new_empty(n_rows, 0)

    def logits(self, prefixes: Tensor) -> Tensor:
        """Scores (R, V) of the next id after each prefix (R, T), one id longer at each call."""
        self._prefixes = prefixes.to(self._prefixes.device)
        return self._stepper.read(self._prefixes[:, self._stepper.length :])

    def select(self, rows: Tensor) -> None:
        """Go on with these rows, in this order."""
        if len(rows) != len(self._prefixes):
            return self._stepper.select(rows)
        # What two prefixes have in common is kept the same for both.
        differ = (self._prefixes != self._prefixes[rows]).any(dim=0)  # (T,)
        if differ.any():
            self._stepper.select(rows, start=int(torch.argmax(differ.int())))
        return None
