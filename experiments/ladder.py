"""The ladder on the world: counting models rung by rung, a transformer above them, the exact floor below all.

Everybody reads the same training text in the same pieces and is judged on the same held-out text, so that
the only question left is who predicts better.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cached_property, partial
from typing import Any

from experiments.store import Store, kept_or_measured
from tinytx.text.corpora import Corpus, load_corpus
from tinytx.text.ngrams import NGramModel
from tinytx.text.tokenizer import Tokenizer
from tinytx.training.evaluate import exact_nats
from tinytx.training.fit import Report, fit
from tinytx.training.loop import progress_bar
from tinytx.training.recipes import parse_budget, plan
from tinytx.training.tasks import fingerprint, train_tokenizer

ORDERS = (1, 2, 3, 4, 5, 6)
BEST_OF = 4  # the transformer is compared with the best counting model up to this order


@dataclass(frozen=True)
class LadderRow:
    """One model of the ladder.

    Attributes
    ----------
    model : str
        ``"3-gram"``, ``"transformer, seed 0"``.
    nats_per_token : float
        Loss on the held-out text.
    gap : float
        How far that is above the exact floor of the same text.
    share : float
        How much of the way from the best counting model (up to `BEST_OF`) to the floor is covered: 0 at that
        model, 1 at the floor, negative above it.
    """

    model: str
    nats_per_token: float
    gap: float
    share: float

    def __str__(self) -> str:
        return f"{self.model:<22}{self.nats_per_token:8.4f}{self.gap:9.4f}{self.share:8.2f}"


def ladder(
    *,
    store: Store,
    budget: str | float | None = None,
    n_seeds: int = 3,
    orders: Sequence[int] = ORDERS,
    device: str = "auto",
    progress: bool | None = None,
    report: Report = print,
) -> list[LadderRow]:
    """Measure count-based n-gram models and pretrained transformers against the floor of the world.

    Parameters
    ----------
    store : Store
        Keeps each figure as soon as it is measured.
    budget : str or float, optional
        Of each transformer.
    n_seeds : int
        Transformers trained, seeds 0, 1, ...
    orders : sequence of int
        Longest history plus one of the counting models (interpolated Witten-Bell).
    device : str
    progress : bool, optional
    report : callable

    Returns
    -------
    list of LadderRow
        Counting models by order, then transformers by seed.
    """
    asked, corpus = parse_budget(budget), load_corpus("world")
    recipe = plan("world", "causal", asked)
    tokenizer = train_tokenizer(corpus.train.texts, recipe.vocab_size, exact=False, kind="world")
    floor = _floor(corpus, tokenizer)
    origin = {"texts": fingerprint(corpus), "pieces": tokenizer.vocab_size}
    measured: dict[str, float] = {}
    counting = _Counting(corpus, tokenizer, max(orders))
    cells = [(f"{order}-gram", partial(counting.nats_per_token, order), origin) for order in orders]
    cells += [
        (
            f"transformer, seed {seed}",
            partial(_train, corpus, asked, seed, device, report),
            origin | {"recipe": plan("world", "causal", asked, seed=seed).to_dict()},
        )
        for seed in range(n_seeds)
    ]

    def fields(measure: Callable[[], float]) -> dict[str, float]:
        return {"nats_per_token": measure(), "floor": floor}

    with progress_bar(len(cells), label="ladder", show=progress) as bar:
        for name, measure, source in cells:
            key = f"world/{asked if name.startswith('transformer') else 'counts'}/{name}"
            record = kept_or_measured(store, key, source, partial(fields, measure))
            measured[name] = record["nats_per_token"]
            bar.update()
    best = min(measured[f"{order}-gram"] for order in orders if order <= BEST_OF)
    return [
        LadderRow(name, loss, loss - floor, (best - loss) / (best - floor)) for name, loss in measured.items()
    ]


@dataclass(frozen=True)
class LadderMean:
    """One kind of model of the ladder, over all its seeds.

    Attributes
    ----------
    model : str
        ``"3-gram"``, ``"transformer, laptop"``.
    n_runs : int
    nats_per_token : float
        Mean over the runs.
    spread : float or None
        Their standard deviation; None for a single run.
    share : float
        As in `LadderRow`, of the mean.
    """

    model: str
    n_runs: int
    nats_per_token: float
    spread: float | None
    share: float

    def __str__(self) -> str:
        spread = "" if self.spread is None else f"± {self.spread:.4f}"
        runs = f"{self.n_runs} run" + "s" * (self.n_runs > 1)
        return f"{self.model:<22}{runs:<8}{self.nats_per_token:7.4f} {spread:<9}{self.share:8.2f}"


def means(records: Mapping[str, Mapping[str, Any]]) -> list[LadderMean]:
    """Read what `ladder` kept in a store: means over seeds, best counting model and floor applied.

    Parameters
    ----------
    records : mapping of str to mapping
        By key, as the store holds them. Transformers that read other pieces or other text than the counting
        models are left out, as their figures cannot be compared.

    Returns
    -------
    list of LadderMean
        Counting models, then transformers by budget, each in the order of the records.
    """
    counts = {key: one for key, one in records.items() if "/counts/" in key}
    compared = [one for key, one in counts.items() if int(key.split("/")[-1].split("-")[0]) <= BEST_OF]
    if not compared:
        raise ValueError(f"records must hold a counting model of order 1 to {BEST_OF}, got {list(records)}")
    best, floor = min(one["nats_per_token"] for one in compared), compared[0]["floor"]
    same = {key: compared[0]["origin"][key] for key in ("texts", "pieces")}
    losses: dict[str, list[float]] = {}
    for key, one in (counts | dict(records)).items():
        _, budget, name = key.split("/")
        if same.items() <= one["origin"].items():
            kind = name if budget == "counts" else f"transformer, {budget}"
            losses.setdefault(kind, []).append(one["nats_per_token"])
    return [
        LadderMean(
            kind,
            len(nats),
            statistics.fmean(nats),
            statistics.stdev(nats) if len(nats) > 1 else None,
            (best - statistics.fmean(nats)) / (best - floor),
        )
        for kind, nats in losses.items()
    ]


def to_dict(rows: Sequence[LadderRow]) -> dict[str, Any]:
    """Rows as JSON can hold them."""
    return {"rows": [asdict(row) for row in rows]}


def _floor(corpus: Corpus, tokenizer: Tokenizer) -> float:
    texts = corpus.valid.texts
    nats = exact_nats(corpus, texts)
    if nats is None:
        raise ValueError(f"the ladder needs a corpus whose probabilities are known, got {corpus.name}")
    return float(nats.sum()) / sum(len(ids) + 1 for ids in tokenizer.encode_batch(texts))


class _Counting:
    """A counting model, fitted when it is first asked; one fit serves every order up to its own."""

    def __init__(self, corpus: Corpus, tokenizer: Tokenizer, order: int) -> None:
        self._corpus, self._tokenizer, self._order = corpus, tokenizer, order

    @cached_property
    def _model(self) -> NGramModel:
        sequences = self._tokenizer.encode_batch(self._corpus.train.texts)
        return NGramModel(self._order, self._tokenizer.vocab_size).fit(sequences)

    @cached_property
    def _held_out(self) -> list[list[int]]:
        return self._tokenizer.encode_batch(self._corpus.valid.texts)

    def nats_per_token(self, order: int) -> float:
        """Loss on the held-out text with histories of up to order - 1 tokens."""
        return self._model.nats_per_token(self._held_out, order=order)


def _train(corpus: Corpus, budget: str | float, seed: int, device: str, report: Report) -> float:
    result = fit(corpus, budget=budget, seed=seed, device=device, report=report)
    return float(result.evaluation.to_dict()["nats_per_token"])
