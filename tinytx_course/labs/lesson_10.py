"""Lesson 10, masked or causal: infilling by a masked model, the next-sentence baseline, stored results."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from tinytx.batching import pad_batch
from tinytx.generate import check_vocabulary, next_token_probs, unwritten_ids
from tinytx.inference import eval_mode
from tinytx.masked_lm import MaskedLanguageModel
from tinytx.tokenizer import Tokenizer
from tinytx_run.intervals import PairedInterval, paired_interval

Items = Sequence[int]
_CHUNK = 1_000  # passages whose words are laid out at once


class TopicOverlap:
    r"""Classifier of pairs of passages by the words in them.

    A pair (x, y) scores the mean, over all pairs of words, of

    .. math:: w(u, v) = \log \frac{(c_0(u, v) + 1) / (n_0 + 1)}{(c_1(u, v) + 1) / (n_1 + 1)}

    with c the number of training pairs that have u in x and v in y, for those that follow one another (0) and
    those that do not (1). A weight that chance could explain is 0, as most pairs of words are noise. The
    prediction is 0 above a threshold, which is chosen on training pairs that were not counted.

    Parameters
    ----------
    vocab_size : int
        Words are numbers below it.
    associations : bool
        False uses shared words only: w is 1 for u = v and 0 otherwise.
    certainty : float
        Standard errors, ``sqrt(1 / (c_0 + 1) + 1 / (c_1 + 1))``, that a weight must exceed.

    Examples
    --------
    >>> firsts, seconds, labels = [[0], [1]] * 20, [[0], [1], [1], [0]] * 10, [0, 0, 1, 1] * 10
    >>> model = TopicOverlap(2, certainty=0).fit(firsts, seconds, labels)
    >>> model.predict([[0], [0]], [[0], [1]]).tolist()
    [0, 1]
    """

    def __init__(self, vocab_size: int, *, associations: bool = True, certainty: float = 3.0) -> None:
        if vocab_size < 1:
            raise ValueError(f"vocab_size must be at least 1, got {vocab_size}")
        if certainty < 0:
            raise ValueError(f"certainty must be 0 or more, got {certainty}")
        self.vocab_size, self.associations, self.certainty = vocab_size, associations, certainty
        self.weights = np.eye(vocab_size)
        self.threshold: float | None = None  # until it is fitted

    def fit(self, firsts: Sequence[Items], seconds: Sequence[Items], labels: Sequence[int]) -> TopicOverlap:
        """Learn from N pairs; every second one is counted, the others choose the threshold.

        Labels are 0 where the second follows the first, else 1; both must occur among the pairs counted.
        """
        _check(firsts, seconds)
        kinds = np.asarray(labels)
        if len(kinds) != len(firsts) or len(set(kinds[::2].tolist())) < 2 or len(kinds) < 4:
            raise ValueError(f"labels must be one a pair and of both kinds, got {len(kinds)} labels")
        if self.associations:
            chosen = [[i for i in range(0, len(kinds), 2) if kinds[i] == kind] for kind in (0, 1)]
            counts = [self._count(firsts, seconds, part) + 1 for part in chosen]
            weights = np.log(counts[0] / (len(chosen[0]) + 1) * (len(chosen[1]) + 1) / counts[1])
            error = np.sqrt(1 / counts[0] + 1 / counts[1])
            self.weights = np.where(np.abs(weights) >= self.certainty * error, weights, 0.0)
        scores, wanted = self.scores(firsts[1::2], seconds[1::2]), kinds[1::2]
        order = np.argsort(-scores, kind="stable")
        # If the k best are predicted 0, the zeros among them and the ones below are right.
        right = np.r_[0, np.cumsum(np.where(wanted[order] == 0, 1, -1))] + (wanted == 1).sum()
        bounds = np.r_[np.inf, scores[order], -np.inf]
        # A threshold lies between different scores.
        best = int(np.where(bounds[:-1] > bounds[1:], right, -1).argmax())
        self.threshold = float(bounds[best + 1] if best < len(scores) else -np.inf)
        return self

    def scores(self, firsts: Sequence[Items], seconds: Sequence[Items]) -> np.ndarray:
        """Mean weight of the pairs of words of each pair of passages, shape (N,); 0 where one is empty."""
        _check(firsts, seconds)
        parts = []
        for at in range(0, len(firsts), _CHUNK):
            x, y = (self._present(side[at : at + _CHUNK]) for side in (firsts, seconds))  # (n, V)
            total = np.einsum("nv,nv->n", x @ self.weights, y)
            parts.append(total / np.maximum(x.sum(1) * y.sum(1), 1))
        return np.concatenate(parts) if parts else np.zeros(0)

    def predict(self, firsts: Sequence[Items], seconds: Sequence[Items]) -> np.ndarray:
        """0 for each pair predicted to follow, else 1; shape (N,)."""
        if self.threshold is None:
            raise ValueError("the classifier must be fitted before it predicts, got no call of fit")
        return (self.scores(firsts, seconds) <= self.threshold).astype(int)

    def _count(self, firsts: Sequence[Items], seconds: Sequence[Items], chosen: list[int]) -> np.ndarray:
        counts = np.zeros((self.vocab_size, self.vocab_size), dtype=np.float32)
        for at in range(0, len(chosen), _CHUNK):
            part = chosen[at : at + _CHUNK]
            counts += self._present([firsts[i] for i in part]).T @ self._present([seconds[i] for i in part])
        return counts.astype(float)

    def _present(self, passages: Sequence[Items]) -> np.ndarray:
        """Which words occur in each passage; shape (n, V)."""
        present = np.zeros((len(passages), self.vocab_size), dtype=np.float32)
        for row, passage in enumerate(passages):
            present[row, list(passage)] = 1
        return present


def _check(firsts: Sequence[Items], seconds: Sequence[Items]) -> None:
    if len(firsts) != len(seconds):
        raise ValueError(f"firsts and seconds must be as many, got {len(firsts)} and {len(seconds)}")


def complete_masked(
    model: MaskedLanguageModel,
    tokenizer: Tokenizer,
    prefixes: Sequence[Sequence[int]],
    n_new: Sequence[int],
    *,
    n_sweeps: int = 4,
    temperature: float = 1.0,
    seed: int = 0,
) -> list[list[int]]:
    """Continue prefixes with a masked model, by Gibbs sampling; return the new tokens of each.

    As many mask tokens as are wanted follow the prefix. They are filled from left to right; then each is
    masked and sampled again, all others visible, so early tokens come to see late ones. The conditionals of a
    masked model belong to no joint distribution over texts, so this converges to none that it has learned.

    Parameters
    ----------
    model : MaskedLanguageModel
    tokenizer : Tokenizer
    prefixes : sequence of N sequences of int
        Without special ids.
    n_new : sequence of N int
        New tokens of each, at least 1; after them the text ends.
    n_sweeps : int
        How often every new token is sampled again, in a random order.
    temperature : float
        Positive; below 1 sharpens.
    seed : int
        Equal seeds give equal texts.

    References
    ----------
    Wang and Cho, "BERT has a Mouth, and It Must Speak", arXiv 1902.04094, section 3.
    """
    check_vocabulary(model, tokenizer)
    if len(prefixes) != len(n_new) or not all(n >= 1 for n in n_new) or n_sweeps < 0:
        raise ValueError(
            "each prefix needs a number of new tokens of 1 or more, and n_sweeps must be 0 or more, got "
            f"{len(prefixes)} prefixes, {list(n_new)}, n_sweeps={n_sweeps}"
        )
    rows = [
        [tokenizer.cls_id, *prefix, *[tokenizer.mask_id] * n, tokenizer.sep_id]
        for prefix, n in zip(prefixes, n_new, strict=True)
    ]
    if (longest := max(map(len, rows), default=0)) > model.config.max_len:
        raise ValueError(f"a row must have at most {model.config.max_len} ids, got {longest}")
    if not rows:
        return []
    generator = torch.Generator().manual_seed(seed)
    ids = pad_batch(rows, tokenizer.pad_id)  # (N, T)
    starts, counts = torch.tensor([len(prefix) + 1 for prefix in prefixes]), torch.tensor(list(n_new))
    with eval_mode(model) as device:
        for sweep in range(1 + n_sweeps):
            order = [
                torch.arange(n) if sweep == 0 else torch.randperm(n, generator=generator)
                for n in counts.tolist()
            ]
            for turn in range(int(counts.max())):
                active = torch.nonzero(counts > turn)[:, 0]
                positions = starts[active] + torch.stack([order[row][turn] for row in active.tolist()])
                ids[active, positions] = tokenizer.mask_id
                inputs = ids[active].to(device)
                hidden = model.body(inputs, inputs != tokenizer.pad_id)[range(len(inputs)), positions]
                logits = model.head(hidden).float().cpu()
                logits[:, [*unwritten_ids(tokenizer), tokenizer.eos_id]] = -torch.inf
                probs = next_token_probs(logits, temperature)
                ids[active, positions] = torch.multinomial(probs, 1, generator=generator)[:, 0]
    return [
        ids[row, start : start + n].tolist()
        for row, (start, n) in enumerate(zip(starts.tolist(), counts.tolist(), strict=True))
    ]


@dataclass(frozen=True)
class ObjectiveRow:
    """One measure of one training objective, one value a seed.

    The interval is that of the mean over seeds, None for a single seed; `exact` is what the exact language
    reaches given the same side, None where that is not stored.
    """

    measure: str
    contestant: str
    values: tuple[float, ...]
    interval: PairedInterval | None
    exact: float | None


# Name of the row: measure and field of the stored records.
FIGURES = {
    "fill: nats": ("fill", "nats"),
    "fill: excess": ("fill", "excess"),
    "fill: accuracy": ("fill", "accuracy"),
    "fill, left: nats": ("fill, left side", "nats"),
    "fill, left: accuracy": ("fill, left side", "accuracy"),
    "complete: possible": ("complete", "possible"),
    "complete: good words": ("complete", "words_before_error"),
    "next: model": ("next sentence", "model"),
    "next: associations": ("next sentence", "associations"),
    "next: shared words": ("next sentence", "shared"),
}
OPTIMUM = {"fill: excess": 0.0, "complete: possible": 1.0}


def figures_of(measures: Iterable[str]) -> dict[str, tuple[str, str]]:
    """`FIGURES` and the accuracies with labels, by name of the row."""
    labelled = sorted({measure for measure in measures if measure.startswith(("probe", "finetune"))})
    return FIGURES | {f"{measure} labels": (measure, "accuracy") for measure in labelled}


def objective_rows(records: Mapping[str, Mapping[str, Any]], budget: str) -> list[ObjectiveRow]:
    """Rows of ``results/objectives.json`` for a budget, over the seeds for which every cell is measured.

    The keys of the records are "BUDGET/seed S/CONTESTANT/MEASURE"; those of "tuning" chose learning rates.
    """
    cells: dict[str, dict[tuple[str, str], Mapping[str, Any]]] = {}
    for key, record in sorted(records.items()):
        of_budget, of_seed, contestant, measure = key.split("/")
        if of_budget == budget and of_seed != "tuning":
            cells.setdefault(of_seed, {})[measure, contestant] = record
    every = set().union(*cells.values())
    seeds = [of_seed for of_seed in cells.values() if set(of_seed) == every]
    rows = []
    for name, (measure, field) in figures_of(measure for measure, _ in every).items():
        for contestant in dict.fromkeys(contestant for _, contestant in every):
            if (measure, contestant) in every and seeds:
                found = [of_seed[measure, contestant] for of_seed in seeds]
                values = tuple(record[field] for record in found)
                interval = paired_interval(values) if len(values) > 1 else None
                exact = found[0].get("exact", {}).get(field, OPTIMUM.get(name))
                # Older records hold the value for both sides here too, which no reader of the left reaches.
                if measure == "fill, left side" and found[0].get("exact_given") != "left":
                    exact = None
                rows.append(ObjectiveRow(name, contestant, values, interval, exact))
    return rows
