"""What is measured on the models of objectives: a masked token."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from tinytx.masked_lm import MaskedLanguageModel
from tinytx.tokenizer import Tokenizer
from tinytx.transformer import LanguageModel
from tinytx_run.evaluate import Sides, fill_probs
from tinyworld.tokens import TokenWorld
from tinyworld.world import World

_BLANK_SEED = 41


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


def best_label_accuracy(texts: Sequence[str], labels: Sequence[int]) -> float:
    """How often the most probable label, given the whole review, is right; a tie counts half.

    It is the Bayes optimum on these texts.
    """
    world = World()
    posterior = np.array([world.label_posterior(text.split(" ")) for text in texts])
    right = np.where(abs(posterior - 0.5) < 1e-6, 0.5, (posterior > 0.5) == np.array(labels))
    return float(right.mean())
