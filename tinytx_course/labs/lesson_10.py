"""Carrying on a text with a model that fills blanks, which was never asked to.

How long the text will be must be said beforehand: as many blanks are put behind it. They are filled from
left to right; then each is hidden and filled again, all others in view, as in Gibbs sampling, so that what
was written first gets to see what came later. The answers of a masked model fit no one distribution over
texts, so this converges to nothing that it could be said to believe.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor

from tinytx.model.masked_lm import MaskedLanguageModel
from tinytx.text.batching import pad_batch
from tinytx.text.tokenizer import Tokenizer
from tinytx.training.generate import check_vocabulary, next_token_probs, unwritten_ids

Items = Sequence[int]
_CHUNK = 1_000  # passages whose words are laid out at once


class TopicOverlap:
    r"""Classifier of pairs of passages by the words in them.

    A pair (x, y) scores the mean, over all pairs of words, of

    .. math:: w(u, v) = \log \frac{(c_0(u, v) + 1) / (n_0 + 1)}{(c_1(u, v) + 1) / (n_1 + 1)}

    with c the number of training pairs that have u in x and v in y, for those that follow one another (0) and
    those that do not (1). A weight that chance could explain is 0: most pairs of words say nothing, and would
    drown the few that do. Above a threshold, chosen on training pairs that were not counted, it says 0.

    Parameters
    ----------
    vocab_size : int
        Words are numbers below it.
    associations : bool
        False looks at shared words only: w is 1 for u = v and 0 otherwise.
    certainty : float
        Standard errors, ``sqrt(1 / (c_0 + 1) + 1 / (c_1 + 1))``, that a weight must exceed; 0 keeps all.

    Notes
    -----
    Takes two matrices of vocab_size by vocab_size numbers.

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
        self.threshold = 0.0
        self._fitted = False

    def fit(self, firsts: Sequence[Items], seconds: Sequence[Items], labels: Sequence[int]) -> TopicOverlap:
        """Learn from pairs; every second one is counted, the others choose the threshold.

        Parameters
        ----------
        firsts, seconds : sequence of N sequences of int
        labels : sequence of N int
            0 where the second follows the first, else 1; both must occur among the pairs counted.

        Returns
        -------
        TopicOverlap
            This model.
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
        self._fitted = True
        scores, wanted = self.scores(firsts[1::2], seconds[1::2]), kinds[1::2]
        order = np.argsort(-scores, kind="stable")
        # With the k best called 0: right are the zeros among them and the ones below.
        right = np.r_[0, np.cumsum(np.where(wanted[order] == 0, 1, -1))] + (wanted == 1).sum()
        bounds = np.r_[np.inf, scores[order], -np.inf]
        # Equal scores cannot be told apart, so a threshold lies between different ones.
        best = int(np.where(bounds[:-1] > bounds[1:], right, -1).argmax())
        self.threshold = float(bounds[best + 1] if best < len(scores) else -np.inf)
        return self

    def scores(self, firsts: Sequence[Items], seconds: Sequence[Items]) -> np.ndarray:
        """Mean weight of the pairs of words of each pair of passages, shape (N,); 0 where one is empty."""
        _check(firsts, seconds)
        found = []
        for at in range(0, len(firsts), _CHUNK):
            x, y = (self._present(side[at : at + _CHUNK]) for side in (firsts, seconds))  # (n, V)
            total = np.einsum("nv,nv->n", x @ self.weights, y)
            found.append(total / np.maximum(x.sum(1) * y.sum(1), 1))
        return np.concatenate(found) if found else np.zeros(0)

    def predict(self, firsts: Sequence[Items], seconds: Sequence[Items]) -> np.ndarray:
        """0 for each pair that seems to follow, else 1; shape (N,)."""
        if not self._fitted:
            raise ValueError("the classifier must be fitted before it is asked, got no call of fit")
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


@torch.no_grad()
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
    """Write so many pieces behind each of some prefixes.

    Parameters
    ----------
    model : MaskedLanguageModel
    tokenizer : Tokenizer
    prefixes : sequence of N sequences of int
        Without special ids.
    n_new : sequence of N int
        Pieces to be written, at least 1 each; after them the text ends.
    n_sweeps : int
        How often every new piece is written again after the first time, in an order drawn anew.
    temperature : float
        Positive; below 1 sharpens.
    seed : int
        Equal seeds give equal texts.

    Returns
    -------
    list of N lists of int
        The new pieces.

    References
    ----------
    Wang and Cho, "BERT has a Mouth, and It Must Speak", arXiv 1902.04094, section 3.
    """
    check_vocabulary(model, tokenizer)
    if len(prefixes) != len(n_new) or not all(n >= 1 for n in n_new) or n_sweeps < 0:
        raise ValueError(
            "each prefix needs a number of new pieces of 1 or more, and n_sweeps must be 0 or more, got "
            f"{len(prefixes)} prefixes, {list(n_new)}, n_sweeps={n_sweeps}"
        )
    rows = [
        [tokenizer.cls_id, *prefix, *[tokenizer.mask_id] * n, tokenizer.sep_id]
        for prefix, n in zip(prefixes, n_new, strict=True)
    ]
    if (longest := max(map(len, rows), default=0)) > model.config.max_len:
        most = model.config.max_len
        raise ValueError(f"prefix, blanks and two marks must be at most {most} together, got {longest}")
    if not rows:
        return []
    generator = torch.Generator().manual_seed(seed)
    ids = pad_batch(rows, tokenizer.pad_id)  # (N, T)
    starts, counts = torch.tensor([len(prefix) + 1 for prefix in prefixes]), torch.tensor(list(n_new))
    was_training = model.training
    model.eval()
    for sweep in range(1 + n_sweeps):
        order = [
            torch.arange(n) if sweep == 0 else torch.randperm(n, generator=generator) for n in counts.tolist()
        ]
        for turn in range(int(counts.max())):
            going = torch.nonzero(counts > turn)[:, 0]
            places = starts[going] + torch.stack([order[row][turn] for row in going.tolist()])
            _write(model, tokenizer, ids, going, places, temperature, generator)
    model.train(was_training)
    return [
        ids[row, start : start + n].tolist()
        for row, (start, n) in enumerate(zip(starts.tolist(), counts.tolist(), strict=True))
    ]


def _write(
    model: MaskedLanguageModel,
    tokenizer: Tokenizer,
    ids: Tensor,
    rows: Tensor,
    places: Tensor,
    temperature: float,
    generator: torch.Generator,
) -> None:
    """Hide one place in each of some rows, and draw what stands there; ``ids`` is changed in place."""
    device = next(model.parameters()).device
    ids[rows, places] = tokenizer.mask_id
    inputs = ids[rows].to(device)
    hidden = model.body(inputs, inputs != tokenizer.pad_id)  # (n, T, D)
    at = hidden[torch.arange(len(rows), device=device), places.to(device)]
    logits = model.head(at).float().cpu()  # (n, V)
    logits[:, [*unwritten_ids(tokenizer), tokenizer.eos_id]] = -torch.inf
    drawn = torch.multinomial(next_token_probs(logits, temperature), 1, generator=generator)
    ids[rows, places] = drawn[:, 0]
