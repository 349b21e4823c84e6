"""What is measured on the models of objectives: a masked token, a review completed, the next sentence."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor

from tinytx.generate import Sampling, continue_rows, unwritten_ids
from tinytx.inference import evaluate_rows
from tinytx.masked_lm import MaskedLanguageModel
from tinytx.masking import PairsOfSentences, draw_pairs, make_passages
from tinytx.objectives import pair_rows
from tinytx.tokenizer import Tokenizer
from tinytx.transformer import LanguageModel
from tinytx_course.labs.lesson_10 import TopicOverlap, complete_masked
from tinytx_run.evaluate import Sides, fill_probs
from tinyworld.tokens import TokenWorld
from tinyworld.world import World

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
        own, best = (
            (-np.log(probs[ids[position]]), probs.argmax() == ids[position]) for probs in (predicted, truth)
        )
        rows.append((*own, excess, *best))
    means = (float(np.mean(column)) for column in zip(*rows, strict=True))
    nats, accuracy, excess, exact_nats, exact_accuracy = means
    found = {"n": len(rows), "exact_given": sides, "nats": nats, "accuracy": accuracy, "excess": excess}
    return {**found, "exact": {"nats": exact_nats, "accuracy": exact_accuracy}}


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
        new = complete_masked(model, tokenizer, starts, n_new, n_sweeps=N_SWEEPS, seed=seed)
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


def _continued(model: LanguageModel, tokenizer: Tokenizer, start: list[int], seed: int) -> list[int]:
    sampling = Sampling(max_new_tokens=model.config.max_len - len(start) - 1, seed=seed)
    marks: dict[str, Any] = {"eos_id": tokenizer.eos_id, "forbidden_ids": unwritten_ids(tokenizer)}
    (ids,) = continue_rows(model, [[tokenizer.bos_id, *start]], sampling, **marks)
    return ids[:-1] if ids[-1] == tokenizer.eos_id else ids


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
