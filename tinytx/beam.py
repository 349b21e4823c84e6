"""Greedy and beam search for the most probable translation, over many sources at once.

Shape letters: N sources, K beams a source, R = N K rows, T ids generated so far, V vocabulary.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from numbers import Real
from typing import Any, Protocol

import torch
from torch import Tensor

from tinytx.encoder_decoder import Translator
from tinytx.kv_cache import Cache
from tinytx.settings import check_whole, require


@dataclass(frozen=True, kw_only=True)
class Search:
    """Settings of a search; ValueError for one outside its range.

    Parameters
    ----------
    beam_size : int
        Unfinished hypotheses that are followed at once; 1 is greedy decoding.
    length_penalty : float
        Hypotheses are compared by ``log P / (number of tokens) ** length_penalty``: 0 favours short ones, 1
        compares means. Without effect on greedy decoding.
    max_factor, max_extra : float, int
        A translation has at most ``max_factor * (tokens of the source) + max_extra`` tokens, and at most
        ``max_len`` of the model.
    min_factor, forbid_repeats : float, bool
        The end mark is not allowed before ``min_factor`` times as many tokens as the source has; no token may
        occur twice. Both are diagnoses of broken models, not ways to translate.
    """

    beam_size: int = 1
    length_penalty: float = 1.0
    max_factor: float = 2.0
    max_extra: int = 10
    min_factor: float = 0.0
    forbid_repeats: bool = False

    def __post_init__(self) -> None:
        check_whole("beam_size", self.beam_size, 1)
        check_whole("max_extra", self.max_extra, 0)
        for name in ("max_factor", "min_factor"):
            value: float = getattr(self, name)
            fits = isinstance(value, Real) and 0 <= value < math.inf
            require(fits, f"{name} must be a finite number, at least 0", repr(value))
        penalty = self.length_penalty
        fits = isinstance(penalty, Real) and abs(penalty) <= 50  # a float holds powers of lengths up to it
        require(fits, "length_penalty must lie between -50 and 50", repr(penalty))

    def max_tokens(self, n_source: int, max_len: int) -> int:
        """Largest length of a translation, its end mark included."""
        return max(1, min(int(self.max_factor * n_source) + self.max_extra, max_len))

    def min_tokens(self, n_source: int) -> int:
        """Length before which the end mark is not allowed."""
        return int(self.min_factor * n_source)

    def to_dict(self) -> dict[str, Any]:
        """Fields as JSON can hold them."""
        return dict(vars(self))


@dataclass(frozen=True)
class Hypothesis:
    """A target sequence that a search has scored."""

    token_ids: tuple[int, ...]  # the end mark included where it was reached
    log_prob: float  # their sum, in nats
    finished: bool  # whether the end mark was reached

    def score(self, length_penalty: float) -> float:
        """Log-probability normalised by length: the hypotheses of a source are ranked by it."""
        return self.log_prob / math.pow(len(self.token_ids), length_penalty)


class Steps(Protocol):
    """What a search asks of a model; prefixes and rows are on the CPU."""

    def logits(self, prefixes: Tensor) -> Tensor:
        """Logits (R, V) of the next id after each prefix (R, T); called with T = 1, 2, ..."""

    def select(self, rows: Tensor) -> None:
        """Replace the rows by these, in this order; a row may occur several times."""


class TranslatorSteps:
    """The steps of a translator over sources, (N, S), padded on the right, and their mask: True = a real id.

    At each step the decoder reads the newest id of each prefix; the others are in its cache.
    """

    def __init__(
        self, model: Translator, src_ids: Tensor, src_mask: Tensor, beam_size: int, max_tokens: int
    ) -> None:
        self._model = model
        self._memory = model.encode(src_ids, src_mask).repeat_interleave(beam_size, dim=0)  # (R, S, D)
        self._mask = None if src_mask.all() else src_mask.repeat_interleave(beam_size, dim=0)  # (R, S)
        self._cache = Cache(model.config.n_layers, min(max_tokens, model.config.max_len))
        self._prefixes = torch.empty(len(self._memory), 0, dtype=torch.long)  # on the CPU

    def logits(self, prefixes: Tensor) -> Tensor:
        """As `Steps` says."""
        self._prefixes = prefixes
        new_ids = prefixes[:, self._cache.length :].to(self._memory.device)
        hidden = self._model.decoder(new_ids, self._memory, None, self._mask, self._cache)
        logits: Tensor = self._model.head(hidden[:, -1])
        return logits

    def select(self, rows: Tensor) -> None:
        """As `Steps` says; what a row of the cache has in common with the next one is not copied."""
        if len(rows) < len(self._memory):
            self._memory = self._memory[rows]
            self._mask = None if self._mask is None else self._mask[rows]
            start = 0
        else:  # a row is followed by rows of its own source, whose memory is the same
            differ = (self._prefixes != self._prefixes[rows]).any(dim=0)  # (T,)
            if not differ.any():
                return
            start = int(torch.argmax(differ.int()))
        self._cache.select(rows, start)


@torch.no_grad()
def beam_search(
    steps: Steps,
    max_tokens: Sequence[int],
    *,
    bos_id: int,
    eos_id: int,
    search: Search,
    min_tokens: Sequence[int] | None = None,
    forbidden_ids: Sequence[int] = (),
    forced_ids: Sequence[int] = (),
) -> list[Hypothesis]:
    """Search for the best ids after ``bos_id``, for N sources at once.

    At each step every unfinished hypothesis is extended by every id; the K best by summed log-probability
    stay. Those that end in ``eos_id`` are finished and leave; nothing takes their places in that step. The
    search ends when no hypothesis is left or the longest length is reached; the result is the best by
    `Hypothesis.score`, finished or not. It ends early for a source when no unfinished hypothesis can beat its
    best finished one, which changes no result.

    Parameters
    ----------
    steps : Steps
        With K rows a source, those of one source next to each other.
    max_tokens, min_tokens : sequence of N int
        Most ids of each result, and those before which ``eos_id`` is not allowed (none by default).
    forbidden_ids, forced_ids : sequence of int
        Never generated, and those that every result begins with, at no cost.
    """
    beams = _Beams(max_tokens, min_tokens or [0] * len(max_tokens), search, bos_id, eos_id)
    while beams.sources:
        logits = steps.logits(beams.prefixes)  # (R, V)
        rows = beams.extend(beams.allowed(logits, forbidden_ids, forced_ids))
        if beams.sources:
            steps.select(rows)
    n_stuck = beams.best.count(None)
    rule = "at least one id must have a probability above zero at every step"
    require(not n_stuck, rule, f"none for {n_stuck} sources")
    return [best for best in beams.best if best is not None]


class _Beams:
    """The unfinished hypotheses, K a source, of the sources still searched, and the best of each source.

    All of it is on the CPU: at each step a GPU hands over the best of each row, and gets their rows and ids.
    """

    def __init__(
        self, max_tokens: Sequence[int], min_tokens: Sequence[int], search: Search, bos_id: int, eos_id: int
    ) -> None:
        self._max, self._min, self._search, self._eos_id = max_tokens, min_tokens, search, eos_id
        self.sources = list(range(len(max_tokens)))
        self.best: list[Hypothesis | None] = [None] * len(max_tokens)
        self.prefixes = torch.full((len(max_tokens) * search.beam_size, 1), bos_id)  # (R, T)
        self._log_probs = torch.full((len(max_tokens), search.beam_size), -torch.inf, dtype=torch.float64)
        self._log_probs[:, 0] = 0.0  # one hypothesis at first: equal copies would fill the beam

    @property
    def _length(self) -> int:
        return self.prefixes.shape[1] - 1

    def allowed(self, logits: Tensor, forbidden_ids: Sequence[int], forced_ids: Sequence[int]) -> Tensor:
        """Logits (R, V) in which those of ids that may not come next are -inf."""
        if self._length < len(forced_ids):
            allowed = torch.full_like(logits, -torch.inf)
            allowed[:, forced_ids[self._length]] = 0.0
            return allowed
        forbidden = torch.tensor(forbidden_ids, dtype=torch.long, device=logits.device)
        logits = logits.index_fill(1, forbidden, -torch.inf)
        if self._search.forbid_repeats:
            ends = logits[:, self._eos_id].clone()
            logits.scatter_(1, self.prefixes.to(logits.device), -torch.inf)
            logits[:, self._eos_id] = ends
        early = [self._length < self._min[source] for source in self.sources]
        if any(early):
            rows = torch.tensor(early).repeat_interleave(self._search.beam_size)
            logits[rows.to(logits.device), self._eos_id] = -torch.inf
        return logits

    def extend(self, logits: Tensor) -> Tensor:
        """Make one step; return the rows before (R',) that the remaining rows extend."""
        n, k = len(self.sources), self._search.beam_size
        n_best = min(k, logits.shape[-1])
        log_probs, ids = _best_log_probs(logits, n_best)  # (R, n_best)
        totals = (self._log_probs.view(n * k, 1) + log_probs).view(n, -1)  # (N, K * n_best)
        totals, choice = totals.topk(k, dim=-1)  # (N, K)
        order = _in_rows_of_parents(choice // n_best)  # (N, K)
        self._log_probs, choice = totals.gather(1, order), choice.gather(1, order)
        parents = torch.arange(n)[:, None] * k + choice // n_best  # (N, K)
        new_ids = ids.view(n, -1).gather(1, choice)  # (N, K)
        self.prefixes = torch.cat([self.prefixes[parents.flatten()], new_ids.view(-1, 1)], dim=1)
        ended = (new_ids == self._eos_id) & (self._log_probs > -torch.inf)
        for row, beam in ended.nonzero().tolist():
            self._offer(row, beam, finished=True)
        self._log_probs = self._log_probs.masked_fill(ended, -torch.inf)
        stay = [row for row, log_probs in enumerate(self._log_probs.tolist()) if self._stays(row, log_probs)]
        remaining = torch.tensor(stay, dtype=torch.long)
        self.sources = [self.sources[row] for row in stay]
        self._log_probs = self._log_probs[remaining]
        self.prefixes = self.prefixes.view(n, k, -1)[remaining].flatten(0, 1)
        return parents[remaining].flatten()

    def _stays(self, row: int, log_probs: list[float]) -> bool:
        """Whether a source is searched further; at its length limit the unfinished are offered."""
        unfinished = [beam for beam, log_prob in enumerate(log_probs) if log_prob > -torch.inf]
        limit, best = self._max[self.sources[row]], self.best[self.sources[row]]
        if self._length >= limit:
            for beam in unfinished:
                self._offer(row, beam, finished=False)
            return False
        if not unfinished or best is None:
            return bool(unfinished)
        # Log-probabilities only fall, so no extension scores above today's sum at the most favourable length.
        penalty = self._search.length_penalty
        bound = max(max(log_probs) / math.pow(n, penalty) for n in (self._length + 1, limit))
        return best.score(penalty) < bound

    def _offer(self, row: int, beam: int, *, finished: bool) -> None:
        ids = tuple(self.prefixes[row * self._search.beam_size + beam, 1:].tolist())
        hypothesis = Hypothesis(ids, float(self._log_probs[row, beam]), finished)
        source, penalty = self.sources[row], self._search.length_penalty
        best = self.best[source]
        if best is None or hypothesis.score(penalty) > best.score(penalty):
            self.best[source] = hypothesis


def _best_log_probs(logits: Tensor, n: int) -> tuple[Tensor, Tensor]:
    """The n largest log-probabilities of each row, (R, n) in float64, and their ids, on the CPU."""
    values, ids = logits.topk(n, dim=-1)  # (R, n); the order of logits is that of probabilities
    largest = values[:, :1]
    total = (logits - largest).exp_().sum(dim=-1, keepdim=True)  # (R, 1)
    log_probs = (values - largest).double() - total.double().log()
    return log_probs.masked_fill_(largest == -torch.inf, -torch.inf).cpu(), ids.cpu()  # nothing can follow


def _in_rows_of_parents(parents: Tensor) -> Tensor:
    """Order of the children (N, K) that leaves the first child of each parent (N, K) in its parent's row.

    The KV cache of a hypothesis that is extended in its own row need not be copied.

    Examples
    --------
    Beam 2 is extended three times and beam 1 once; beams 0 and 3 end:

    >>> _in_rows_of_parents(torch.tensor([[2, 2, 1, 2]]))
    tensor([[1, 2, 0, 3]])
    """
    orders = []
    for row in parents.tolist():
        first = {parent: child for child, parent in reversed([*enumerate(row)])}
        others = (child for child, parent in enumerate(row) if first[parent] != child)
        orders.append([first[beam] if beam in first else next(others) for beam in range(len(row))])
    return torch.tensor(orders)
