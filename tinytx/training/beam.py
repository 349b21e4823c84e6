"""Searching for the best translation: greedy and beam search over many sources at once.

Shape letters: N sources, K beams a source, R = N K rows, T ids written so far, V vocabulary.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import torch
from torch import Tensor

from tinytx.model.encoder_decoder import Translator
from tinytx.model.kv_cache import IncrementalDecoder


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
        memory = model.encode(src_ids, src_mask)  # (N, S, D)
        n_rows = len(src_ids) * beam_size
        self._stepper = IncrementalDecoder(
            model.decoder,
            model.head,
            n_rows=n_rows,
            max_len=most,
            memory=memory,
            memory_padding_mask=src_mask,
        )
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


@dataclass(frozen=True, kw_only=True)
class Search:
    """How a translation is searched for.

    Parameters
    ----------
    beam_size : int
        Unfinished translations that are followed at once; 1 is greedy decoding.
    length_penalty : float
        Translations are compared by ``log P / (number of pieces) ** length_penalty``: at 0 the shorter wins,
        at 1 it is the mean. Without effect on greedy decoding.
    max_factor, max_extra : float, int
        A translation has at most ``max_factor * (pieces of the source) + max_extra`` pieces, and no more than
        the model can read.
    forbid_repeats : bool
        No piece is written twice: a diagnosis for broken models, not a way to translate.
    read_on : float
        The end mark is not taken before the translation has ``read_on`` times as many pieces as the source:
        another diagnosis.

    Raises
    ------
    ValueError
        For a value outside its range.
    """

    beam_size: int = 1
    length_penalty: float = 1.0
    max_factor: float = 2.0
    max_extra: int = 10
    forbid_repeats: bool = False
    read_on: float = 0.0

    def __post_init__(self) -> None:
        if self.beam_size < 1:
            raise ValueError(f"beam_size must be at least 1, got {self.beam_size}")
        for name in ("max_factor", "max_extra", "read_on"):
            if getattr(self, name) < 0:
                raise ValueError(f"{name} must be 0 or more, got {getattr(self, name)}")

    def most_pieces(self, n_source: int, max_len: int) -> int:
        """Most pieces of a translation, its end mark included."""
        return max(1, min(int(self.max_factor * n_source) + self.max_extra, max_len))

    def fewest_pieces(self, n_source: int) -> int:
        """Pieces before which the end mark is not taken."""
        return int(self.read_on * n_source)

    def to_dict(self) -> dict[str, Any]:
        """Fields as JSON can hold them."""
        return dataclasses.asdict(self)


@dataclass(frozen=True)
class Found:
    """What a search found for one source.

    Attributes
    ----------
    token_ids : tuple of int
        Generated ids, the end mark included where it was reached.
    log_prob : float
        Their summed log-probability, in nats.
    finished : bool
        Whether the end mark was reached.
    """

    token_ids: tuple[int, ...]
    log_prob: float
    finished: bool

    def score(self, length_penalty: float) -> float:
        """What translations of one source are compared by."""
        return self.log_prob / len(self.token_ids) ** length_penalty


class Steps(Protocol):
    """What a search asks of a model: scores of what may come next, for rows that it keeps in order."""

    def logits(self, prefixes: Tensor) -> Tensor:
        """Scores (R, V) of the next id after each prefix (R, T); called with T = 1, 2, ..."""
        ...

    def select(self, rows: Tensor) -> None:
        """Go on with these rows, in this order; a row may occur several times."""
        ...


@torch.no_grad()
def beam_search(
    steps: Steps,
    most: Sequence[int],
    *,
    bos_id: int,
    eos_id: int,
    search: Search,
    fewest: Sequence[int] | None = None,
    forbidden_ids: Sequence[int] = (),
) -> list[Found]:
    """Search for the best ids after ``bos_id``, for N sources side by side.

    From every unfinished beam all continuations are made; the K best by summed log-probability stay. Those
    that end in ``eos_id`` are finished and leave; nothing takes their places in that step, and the next step
    again keeps the K best of all continuations. It goes on until none is left, or as many ids as allowed are
    written; the answer is the best of finished and unfinished by `Found.score`. A source is left as soon as
    no unfinished beam can come to beat its best finished one, which changes no answer.

    Parameters
    ----------
    steps : Steps
        Begun with K rows a source, those of one source next to each other.
    most : sequence of N int
        Most ids of each source's answer.
    bos_id, eos_id : int
    search : Search
    fewest : sequence of N int, optional
        Ids of each answer before which ``eos_id`` is not taken.
    forbidden_ids : sequence of int
        Never written.

    Returns
    -------
    list of N Found
    """
    beams = _Beams(len(most), search, bos_id, eos_id)
    rules = _Rules(tuple(forbidden_ids), eos_id, search.forbid_repeats, tuple(fewest or [0] * len(most)))
    limits = list(most)
    while beams.sources:
        rows = beams.grow(rules.apply(steps.logits(beams.prefixes), beams), limits)
        if beams.sources:
            steps.select(rows)
    return [answer for answer in beams.answers if answer is not None]


@dataclass(frozen=True)
class _Rules:
    """What may not be written, beside what the model finds improbable."""

    forbidden: tuple[int, ...]
    eos_id: int
    forbid_repeats: bool
    fewest: tuple[int, ...]

    def apply(self, logits: Tensor, beams: _Beams) -> Tensor:
        """The scores (R, V) of what is allowed; those of the rest are -inf."""
        forbidden = torch.tensor(self.forbidden, dtype=torch.long, device=logits.device)
        logits.index_fill_(1, forbidden, -torch.inf)
        if self.forbid_repeats:
            ends = logits[:, self.eos_id].clone()
            logits.scatter_(1, beams.prefixes, -torch.inf)
            logits[:, self.eos_id] = ends
        early = [beams.length < self.fewest[source] for source in beams.sources]
        if any(early):
            rows = torch.tensor(early).repeat_interleave(beams.size)
            logits[rows.to(logits.device), self.eos_id] = -torch.inf
        return logits


class _Beams:
    """The unfinished translations of the sources still searched, K a source, and the best finished ones."""

    def __init__(self, n_sources: int, search: Search, bos_id: int, eos_id: int) -> None:
        self.size, self.penalty, self.eos_id = search.beam_size, search.length_penalty, eos_id
        self.sources = list(range(n_sources))
        self.answers: list[Found | None] = [None] * n_sources
        self.prefixes = torch.full((n_sources * self.size, 1), bos_id)  # (R, T)
        self.scores = torch.full((n_sources, self.size), -torch.inf, dtype=torch.float64)
        self.scores[:, 0] = 0.0  # one beam to begin with: copies of it would crowd out others

    @property
    def length(self) -> int:
        """Ids generated so far, in each beam."""
        return self.prefixes.shape[1] - 1

    def grow(self, logits: Tensor, limits: Sequence[int]) -> Tensor:
        """Make one step; return which rows go on, as indices (R',) into the rows before."""
        n, k = len(self.sources), self.size
        device = logits.device
        self.scores, self.prefixes = self.scores.to(device), self.prefixes.to(device)
        best = min(k, logits.shape[-1])
        values, ids = _best_log_probs(logits, best)  # (R, best)
        totals = (self.scores.view(n * k, 1) + values).view(n, -1)  # (N, K * best)
        scores, places = totals.topk(k, dim=-1)  # (N, K)
        order = _in_rows_of_parents(places // best)  # (N, K)
        self.scores, places = scores.gather(1, order), places.gather(1, order)
        parents = torch.arange(n, device=device)[:, None] * k + places // best  # (N, K), rows before
        new_ids = ids.view(n, -1).gather(1, places)  # (N, K)
        self.prefixes = torch.cat([self.prefixes[parents.flatten()], new_ids.view(-1, 1)], dim=1)
        self._take_finished(new_ids == self.eos_id)
        stay = self._settle(limits)
        kept = torch.tensor(stay, dtype=torch.long, device=device)
        self.sources = [self.sources[i] for i in stay]
        self.scores = self.scores[kept]
        self.prefixes = self.prefixes.view(n, k, -1)[kept].flatten(0, 1)
        return parents[kept].flatten()

    def _take_finished(self, ended: Tensor) -> None:
        ended &= self.scores > -torch.inf
        for row, beam in ended.nonzero().tolist():
            self._offer(row, beam, finished=True)
        self.scores = self.scores.masked_fill(ended, -torch.inf)

    def _settle(self, limits: Sequence[int]) -> list[int]:
        """Which of the sources are searched further; those at their limit offer what is unfinished."""
        stay = []
        for row, scores in enumerate(self.scores.tolist()):
            going = [beam for beam, score in enumerate(scores) if score > -torch.inf]
            limit = limits[self.sources[row]]
            if self.length >= limit:
                for beam in going:
                    self._offer(row, beam, finished=False)
            elif going and not self._is_beaten(row, max(scores), limit):
                stay.append(row)
        return stay

    def _is_beaten(self, row: int, best: float, limit: int) -> bool:
        """Whether no continuation of a beam of this log-probability can score above the best finished."""
        answer = self.answers[self.sources[row]]
        # Log-probabilities only fall, so the score is at most that of this sum at the kindest length.
        kindest = max(best / length**self.penalty for length in (self.length + 1, limit))
        return answer is not None and answer.score(self.penalty) >= kindest

    def _offer(self, row: int, beam: int, *, finished: bool) -> None:
        ids = tuple(self.prefixes[row * self.size + beam, 1:].tolist())
        found = Found(ids, float(self.scores[row, beam]), finished)
        source = self.sources[row]
        before = self.answers[source]
        if before is None or found.score(self.penalty) > before.score(self.penalty):
            self.answers[source] = found


def _best_log_probs(logits: Tensor, n: int) -> tuple[Tensor, Tensor]:
    """The n largest log-probabilities of each row, (R, n) in float64, and whose they are."""
    values, ids = logits.topk(n, dim=-1)  # (R, n); the order of logits is that of probabilities
    largest = values[:, :1]
    total = (logits - largest).exp_().sum(dim=-1, keepdim=True)  # (R, 1)
    return (values - largest).double() - total.double().log(), ids


def _in_rows_of_parents(parents: Tensor) -> Tensor:
    """An order of the children in which the first of each parent stands where its parent stood.

    Of a beam that goes on in its own place, nothing that is kept need be copied.

    Parameters
    ----------
    parents : Tensor of shape (N, K)
        The place, in 0..K-1, of the parent of each child.

    Returns
    -------
    Tensor of shape (N, K)
        The child that stands at each place.

    Examples
    --------
    Beam 2 goes on twice and beam 1 once; beams 0 and 3 end:

    >>> _in_rows_of_parents(torch.tensor([[2, 2, 1, 2]]))
    tensor([[1, 2, 0, 3]])
    """
    same = parents[:, :, None] == parents[:, None, :]  # (N, K, K)
    later = same.tril(-1).any(dim=-1)  # (N, K): children whose parent has a child before
    taken = torch.zeros_like(later).scatter_(1, parents, True)  # places of parents
    # Both have equally many: children that look for a place, places that are free.
    children, places = later.int().argsort(dim=1, stable=True), (~taken).int().argsort(dim=1, stable=True)
    first = (~later).sum(dim=1, keepdim=True)  # (N, 1)
    at = parents.gather(1, children)  # of a first child
    free = torch.arange(parents.shape[1], device=parents.device) >= first
    return torch.empty_like(parents).scatter_(1, torch.where(free, places, at), children)
