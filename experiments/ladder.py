"""N-gram models of rising order, transformers above them, and the entropy bound of the world below all.

Every model reads the same training text in the same tokens and is evaluated on the same held-out text.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache, partial
from typing import TYPE_CHECKING, Any

from tqdm.auto import tqdm

from experiments.harness import Settings
from tinytx.text.corpora import load_corpus
from tinytx.text.ngrams import NGramModel
from tinytx.training.evaluate import exact_nats
from tinytx.training.fit import fit
from tinytx.training.recipes import plan
from tinytx.training.tasks import fingerprint, train_tokenizer
from tinytx_course.labs.lesson_08 import ladder_table as table

if TYPE_CHECKING:
    import pandas as pd

ORDERS = (1, 2, 3, 4, 5, 6)


def ladder(settings: Settings, orders: Sequence[int] = ORDERS) -> pd.DataFrame:
    """Measure interpolated Witten-Bell n-gram models and pretrained transformers against the entropy bound.

    Parameters
    ----------
    settings : Settings
        One transformer is trained a seed.
    orders : sequence of int
        Of the n-gram models.

    Returns
    -------
    DataFrame
        See `ladder_table`.
    """
    corpus, recipe = load_corpus("world"), plan("world", "causal", settings.budget)
    tokenizer = train_tokenizer(corpus.train.texts, recipe.vocab_size, exact=False, kind="world")
    held_out = tokenizer.encode_batch(corpus.valid.texts)
    nats = exact_nats(corpus, corpus.valid.texts)
    assert nats is not None
    bound = float(nats.sum()) / sum(len(ids) + 1 for ids in held_out)
    origin = {"texts": fingerprint(corpus), "pieces": tokenizer.vocab_size}

    @cache
    def counts() -> NGramModel:
        sequences = tokenizer.encode_batch(corpus.train.texts)
        return NGramModel(max(orders), tokenizer.vocab_size).fit(sequences)

    def of_ngrams(order: int) -> dict[str, float]:
        return {"nats_per_token": counts().nats_per_token(held_out, order=order), "floor": bound}

    def of_transformer(seed: int) -> dict[str, float]:
        result = fit(
            corpus, budget=settings.budget, seed=seed, device=settings.device, report=settings.report
        )
        return {"nats_per_token": float(result.evaluation.to_dict()["nats_per_token"]), "floor": bound}

    cells: list[tuple[str, Any, dict[str, Any]]] = [
        (f"world/counts/{order}-gram", partial(of_ngrams, order), origin) for order in orders
    ]
    for seed in range(settings.n_seeds):
        trained = origin | {"recipe": plan("world", "causal", settings.budget, seed=seed).to_dict()}
        key = f"world/{settings.budget}/transformer, seed {seed}"
        cells.append((key, partial(of_transformer, seed), trained))
    measured = {key: settings.cached(key, source, one) for key, one, source in tqdm(cells, disable=None)}
    return table(measured)
