"""Rows of ids carried on side by side, each new id from scores for all rows.

Shape letters: R rows that go on, T ids of each so far, V vocabulary.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from tinytx.model import LanguageModel
from tinytx.model.asbuilt import is_as_built
from tinytx.model.stepper import Stepper
from tinytx.training.generation.sampling import check_sampling, draw


@torch.inference_mode()
def continue_rows(
    model: LanguageModel,
    prefixes: Sequence[Sequence[int]],
    *,
    eos_id: int,
    forbidden_ids: Sequence[int] = (),
    max_new_tokens: int = 50,
    temperature: float = 1.0,
    top_k: int | None = None,
    top_p: float | None = None,
    seed: int = 0,
    cached: bool = True,
) -> list[list[int]]:
    """Carry on some prefixes, id by id, each until ``eos_id`` (kept) or ``max_new_tokens``.

    All rows grow by one id a step: one whose prefix is longer takes its own ids while others begin to write
    already, so that nothing is padded. A row that has ended leaves. What is longer than the model can read
    loses its beginning, not its end. The global random state is left alone.

    Parameters
    ----------
    model : LanguageModel
        A causal one; put into evaluation mode meanwhile.
    prefixes : sequence of sequences of int
        None empty.
    eos_id : int
    forbidden_ids : sequence of int
        Never written.
    max_new_tokens : int
        Of each row.
    temperature, top_k, top_p : see `next_token_probs`
    seed : int
        Equal seeds give equal ids.
    cached : bool
        Keep keys and values of what is read already; False computes them anew at each step.

    Returns
    -------
    list of lists of int
        The new ids only.
    """
    check_sampling(temperature, top_k, top_p)
    if not all(prefixes):
        raise ValueError("generation needs at least one id to start from, got an empty prefix")
    if max_new_tokens < 1:
        raise ValueError(f"max_new_tokens must be at least 1, got {max_new_tokens}")
    low, high = min(map(min, prefixes)), max(map(max, prefixes))
    if low < 0 or high >= model.config.vocab_size:
        raise ValueError(f"ids must lie in 0..{model.config.vocab_size - 1}, got {low} to {high}")
    was_training = model.training
    scores = _Scores(model.eval(), prefixes, max_new_tokens, cached)
    generator = torch.Generator().manual_seed(seed)
    forbidden = torch.tensor(sorted(forbidden_ids), dtype=torch.long, device=scores.device)
    rows = _Rows(prefixes, max_new_tokens, eos_id)
    while len(rows.going):
        logits = scores.after(rows.ids).index_fill_(1, forbidden, -torch.inf)  # (R, V)
        left = rows.grow(draw(logits, generator, temperature, top_k, top_p))
        if left is not None:
            scores.select(left)
    model.train(was_training)
    return rows.new_ids


class _Rows:
    """Ids of the rows that go on, and what those that have ended wrote."""

    def __init__(self, prefixes: Sequence[Sequence[int]], max_new_tokens: int, eos_id: int) -> None:
        self.new_ids: list[list[int]] = [[] for _ in prefixes]
        self.going = torch.arange(len(prefixes))
        self._lengths = torch.tensor([len(one) for one in prefixes])
        first, longest = int(self._lengths.min()), int(self._lengths.max())
        self._given = torch.tensor([[*one, *[0] * (longest - len(one))] for one in prefixes])  # (R, longest)
        self.ids = self._given[:, :first]  # (R, T)
        self._most, self._eos_id = max_new_tokens, eos_id

    def grow(self, drawn: Tensor) -> Tensor | None:
        """Add an id to each row; return which rows go on, (R',), or None where all do."""
        n_ids = self.ids.shape[1]
        writes = self._lengths <= n_ids  # (R,)
        if n_ids < self._given.shape[1]:
            drawn = drawn.where(writes, self._given[:, n_ids])
        self.ids = torch.cat([self.ids, drawn[:, None]], dim=1)
        ended = writes & ((drawn == self._eos_id) | (n_ids + 1 - self._lengths >= self._most))
        if not ended.any():
            return None
        for row in ended.nonzero()[:, 0].tolist():
            self.new_ids[self.going[row]] = self.ids[row, self._lengths[row] :].tolist()
        (left,) = torch.nonzero(~ended, as_tuple=True)
        self.going, self.ids, self._given, self._lengths = (
            each[left] for each in (self.going, self.ids, self._given, self._lengths)
        )
        return left


class _Scores:
    """Scores of what may follow rows that grow, from kept keys and values as far as the model reads."""

    def __init__(
        self, model: LanguageModel, prefixes: Sequence[Sequence[int]], max_new_tokens: int, cached: bool
    ) -> None:
        self._model = model
        self.device = next(model.parameters()).device
        self._most = min(model.config.max_len, max(map(len, prefixes)) + max_new_tokens)
        repaid = self._most - min(map(len, prefixes)) > 1  # laying out weights for a single token is not
        self._stepper: Stepper | None = None
        if cached and repaid and is_as_built(model):
            self._stepper = Stepper(model.body, model.head, n_rows=len(prefixes), max_len=self._most)

    def after(self, ids: Tensor) -> Tensor:
        """Scores (R, V) of what may follow each row (R, T)."""
        ids = ids.to(self.device)
        if self._stepper is None or ids.shape[1] > self._most:  # places shift: nothing that is kept holds
            self._stepper = None
            return self._model.head(self._model.body(ids[:, -self._model.config.max_len :])[:, -1])
        if not self._stepper.length and len(ids) > 1 and (ids == ids[0]).all():  # read once what is common
            logits = self._stepper.read(ids[:1])
            self._stepper.select(torch.zeros(len(ids), dtype=torch.long, device=self.device))
            return logits.repeat(len(ids), 1)
        return self._stepper.read(ids[:, self._stepper.length :])

    def select(self, rows: Tensor) -> None:
        """Go on with these rows."""
        if self._stepper is not None and len(rows):
            self._stepper.select(rows.to(self.device))
