"""What is measured on the models of objectives: a masked token, a review completed, the next sentence."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from scipy import sparse
from torch import Tensor

from tinytx.batching import pad_batch
from tinytx.generate import Sampling, continue_rows, next_token_probs, unwritten_ids
from tinytx.inference import eval_mode, evaluate_rows
from tinytx.masked_lm import MaskedLanguageModel
from tinytx.masking import PairsOfSentences, draw_pairs, make_passages
from tinytx.objectives import pair_rows
from tinytx.tokenizer import Tokenizer
from tinytx.transformer import LanguageModel
from tinytx_run.evaluate import Sides, fill_probs
from tinyworld.tokens import TokenWorld
from tinyworld.world import World

Passages = Sequence[Sequence[int]]
N_SWEEPS = 4  # in which a masked model fills a row
_BLANK_SEED, _PAIR_SEED = 41, 42


def _exact_token(
    through: TokenWorld, ids: Sequence[int], position: int, sides: Sides, eos_id: int
) -> np.ndarray:
    """The exact distribution of a token given `sides`; as in `fill_probs`, the text does not end here."""
    if sides == "both":
        return through.fill_token(ids, position)
    probs = through.next_token(ids[:position]).copy()
    probs[eos_id] = 0.0
    return probs / probs.sum()


def fill_measures(
    model: LanguageModel | MaskedLanguageModel,
    tokenizer: Tokenizer,
    texts: Sequence[str],
    n_blanks: int,
    sides: Sides = "both",
    *,
    hybrid: bool = False,
) -> dict[str, Any]:
    """Predict one masked token in each of some texts of the world, as in `fill_probs`.

    Returns
    -------
    dict
        ``nats`` (mean negative log-probability of the true token), ``accuracy`` of the most probable one,
        ``excess`` (mean KL divergence from the exact distribution given `sides`), and under ``exact`` the
        first two for that exact distribution. Positions are the same for every model.
    """
    through, rng, rows = World().through(tokenizer), np.random.default_rng(_BLANK_SEED), []
    for ids in tokenizer.encode_batch(texts[:n_blanks]):
        position = int(rng.integers(len(ids)))
        truth = _exact_token(through, ids, position, sides, tokenizer.eos_id)
        predicted = fill_probs(model, tokenizer, ids, position, sides=sides, hybrid=hybrid)
        possible = truth > 0
        excess = (truth[possible] * np.log(truth[possible] / predicted[possible])).sum()
        pairs = [
            (-np.log(probs[ids[position]]), probs.argmax() == ids[position]) for probs in (predicted, truth)
        ]
        rows.append([excess, *pairs[0], *pairs[1]])
    excess, *means = np.mean(rows, axis=0).tolist()
    own, exact = (dict(zip(("nats", "accuracy"), pair, strict=True)) for pair in (means[:2], means[2:]))
    return {"n": len(rows), "exact_given": sides, **own, "excess": excess, "exact": exact}


def completion_measures(
    model: LanguageModel | MaskedLanguageModel,
    tokenizer: Tokenizer,
    texts: Sequence[str],
    n_prefixes: int,
    *,
    seed: int = 0,
) -> dict[str, Any]:
    """Continue the first half of some texts of the world by sampling, to the end of the review.

    A causal model stops by itself. A masked one gets the true number of tokens.

    Returns
    -------
    dict
        ``possible``: share of completed reviews that the world can write at all; ``words_before_error``: mean
        number of new words before the first one that no review could have there; ``new_words``: mean number
        of new words. Samples of the exact language would have 1, and no error.
    """
    prefixes, n_new = [], []
    for text in texts[:n_prefixes]:
        words = text.split(" ")
        prefixes.append(words[: len(words) // 2])
        n_new.append(len(tokenizer.encode(" ".join(words[len(words) // 2 :]))))
    starts = [tokenizer.encode(" ".join(prefix)) for prefix in prefixes]
    if isinstance(model, MaskedLanguageModel):
        new = complete_masked(model, tokenizer, starts, n_new, seed=seed)
    else:
        first = seed * len(starts)
        new = [_continued(model, tokenizer, start, first + i) for i, start in enumerate(starts)]
    world, possible, before_error, n_words = World(), 0, 0, 0
    for prefix, start, ids in zip(prefixes, starts, new, strict=True):
        words = tokenizer.decode([*start, *ids]).split(" ")
        possible += world.log_prob(words) > -np.inf
        fine = [state.total > 0 for state in world.automaton.prefixes(words)][1:]
        good = fine.index(False) if False in fine else len(fine)
        before_error += max(0, good - len(prefix))
        n_words += max(0, len(words) - len(prefix))
    n = len(prefixes)
    shares = {"possible": possible / n, "words_before_error": before_error / n, "new_words": n_words / n}
    return {"n": n, **shares, "n_sweeps": N_SWEEPS}


def complete_masked(
    model: MaskedLanguageModel,
    tokenizer: Tokenizer,
    prefixes: Sequence[Sequence[int]],
    n_new: Sequence[int],
    *,
    n_sweeps: int = N_SWEEPS,
    temperature: float = 1.0,
    seed: int = 0,
) -> list[list[int]]:
    """Continue N prefixes, without special ids, by so many tokens each, 1 or more, by Gibbs sampling.

    As many mask tokens as are wanted follow the prefix. They are filled from left to right; then each is
    masked and sampled again, all others visible, in a random order, so early tokens come to see late ones.
    The conditionals of a masked model belong to no joint distribution over texts, so this converges to none
    that it has learned.

    References
    ----------
    Wang and Cho, "BERT has a Mouth, and It Must Speak", arXiv 1902.04094, section 3.
    """
    generator = torch.Generator().manual_seed(seed)
    rows = [
        [tokenizer.cls_id, *prefix, *[tokenizer.mask_id] * n, tokenizer.sep_id]
        for prefix, n in zip(prefixes, n_new, strict=True)
    ]
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
    spans = zip(ids, starts.tolist(), counts.tolist(), strict=True)
    return [row[start : start + n].tolist() for row, start, n in spans]


def _continued(model: LanguageModel, tokenizer: Tokenizer, start: list[int], seed: int) -> list[int]:
    sampling = Sampling(max_new_tokens=model.config.max_len - len(start) - 1, seed=seed)
    marks: dict[str, Any] = {"eos_id": tokenizer.eos_id, "forbidden_ids": unwritten_ids(tokenizer)}
    (ids,) = continue_rows(model, [[tokenizer.bos_id, *start]], sampling, **marks)
    return ids[:-1] if ids[-1] == tokenizer.eos_id else ids


class TopicOverlap:
    r"""Classifier of pairs of passages by the words in them, which are numbers below `vocab_size`.

    A pair (x, y) scores the mean, over all pairs of words, of

    .. math:: w(u, v) = \log \frac{(c_0(u, v) + 1) / (n_0 + 1)}{(c_1(u, v) + 1) / (n_1 + 1)}

    with c the number of training pairs that have u in x and v in y, for those that follow one another (0) and
    those that do not (1). Most pairs of words are noise: a weight below `certainty` standard errors, each
    ``sqrt(1 / (c_0 + 1) + 1 / (c_1 + 1))``, is 0. Without associations w is 1 for u = v and 0 otherwise. The
    prediction is 0 above a threshold, which is chosen on training pairs that were not counted.

    Examples
    --------
    >>> firsts, seconds, labels = [[0], [1]] * 20, [[0], [1], [1], [0]] * 10, [0, 0, 1, 1] * 10
    >>> model = TopicOverlap(2, certainty=0).fit(firsts, seconds, labels)
    >>> model.predict([[0], [0]], [[0], [1]]).tolist()
    [0, 1]
    """

    def __init__(self, vocab_size: int, *, associations: bool = True, certainty: float = 3.0) -> None:
        self.vocab_size, self.associations, self.certainty = vocab_size, associations, certainty
        self.weights = np.eye(vocab_size)
        self.threshold = np.nan  # until it is fitted

    def fit(self, firsts: Passages, seconds: Passages, labels: Sequence[int]) -> TopicOverlap:
        """Learn from pairs; every second one is counted, the others choose the threshold.

        Labels are 0 where the second follows the first, else 1; both must occur among the pairs counted.
        """
        kinds = np.asarray(labels)
        if self.associations:
            x, y = self._words(firsts[::2]), self._words(seconds[::2])
            chosen = [np.flatnonzero(kinds[::2] == kind) for kind in (0, 1)]
            counts = [(x[rows].T @ y[rows]).toarray() + 1 for rows in chosen]
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
        self.threshold = float(bounds[best + 1])
        return self

    def scores(self, firsts: Passages, seconds: Passages) -> np.ndarray:
        """Mean weight of the pairs of words of each pair of passages, shape (N,); 0 where one is empty."""
        x, y = self._words(firsts), self._words(seconds)
        return y.multiply(x @ self.weights).sum(axis=1) / np.maximum(x.sum(axis=1) * y.sum(axis=1), 1)

    def predict(self, firsts: Passages, seconds: Passages) -> np.ndarray:
        """0 for each pair predicted to follow, else 1; shape (N,)."""
        return (self.scores(firsts, seconds) <= self.threshold).astype(int)

    def _words(self, passages: Passages) -> sparse.csr_array:
        """Which words occur in each passage, (n, V)."""
        rows = [sorted(set(passage)) for passage in passages]
        ends = np.cumsum([0, *map(len, rows)])
        words = [word for row in rows for word in row]
        return sparse.csr_array((np.ones(len(words)), words, ends), shape=(len(rows), self.vocab_size))


def next_sentence_measures(
    model: MaskedLanguageModel, tokenizer: Tokenizer, train: Sequence[str], test: Sequence[str]
) -> dict[str, Any]:
    """Predict whether one part of a text follows another, and predict the same from counts of words.

    Returns
    -------
    dict
        Accuracies on one pair a passage of the test texts: of the ``model``, of ``associations`` between
        words of the training pairs, and of ``shared`` words; see `TopicOverlap`.
    """
    room = model.config.max_len - 3
    train_pairs, test_pairs = (
        draw_pairs(make_passages(tokenizer, texts, room), room, np.random.default_rng(seed))
        for texts, seed in ((train, _PAIR_SEED), (test, _PAIR_SEED + 1))
    )
    labels = np.array(test_pairs.labels)
    accuracy = {"model": float((_follows(model, tokenizer, test_pairs) == labels).mean())}
    for name, associations in (("associations", True), ("shared", False)):
        baseline = TopicOverlap(tokenizer.vocab_size, associations=associations)
        baseline.fit(train_pairs.firsts, train_pairs.seconds, train_pairs.labels)
        accuracy[name] = float((baseline.predict(test_pairs.firsts, test_pairs.seconds) == labels).mean())
    return {"n": len(labels), **accuracy}


def _follows(model: MaskedLanguageModel, tokenizer: Tokenizer, pairs: PairsOfSentences) -> np.ndarray:
    """The model's answers, 0 or 1, shape (N,)."""
    second = torch.tensor([len(first) + 2 for first in pairs.firsts])  # where it begins

    def answers(token_ids: Tensor, rows: list[int]) -> Tensor:
        real = token_ids != tokenizer.pad_id
        positions = torch.arange(token_ids.shape[1])
        segments = (positions >= second[rows, None]).to(token_ids.device) & real  # (B, T)
        chosen = segments.long() if model.config.n_segments else None
        return model.follows(token_ids, real, chosen).argmax(dim=1)

    return evaluate_rows(model, pair_rows(tokenizer, pairs), answers, pad_id=tokenizer.pad_id).numpy()


def best_label_accuracy(texts: Sequence[str], labels: Sequence[int]) -> float:
    """How often the most probable label, given the whole review, is right; a tie counts half.

    It is the Bayes optimum on these texts.
    """
    world = World()
    posterior = np.array([world.label_posterior(text.split(" ")) for text in texts])
    right = np.where(abs(posterior - 0.5) < 1e-6, 0.5, (posterior > 0.5) == np.array(labels))
    return float(right.mean())
