"""How near a model of the world comes to the entropy bound in one minute and in five, and what is missing."""

from __future__ import annotations

import dataclasses
import statistics
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, cast

import numpy as np
import pandas as pd
import torch

from experiments.harness import Record, Records, Settings, mean_table
from tinytx.loop import TrainingStep
from tinytx.settings import choose_device, choose_precision
from tinytx.tokenizer import Tokenizer
from tinytx.transformer import LanguageModel
from tinytx_run.corpora import Corpus, load_corpus
from tinytx_run.evaluate import evaluate_language_model, exact_nats
from tinytx_run.pretrain import new_model, objective_for, pretrain, train_tokenizer
from tinytx_run.recipes import plan
from tinytx_run.training import RunOptions
from tinyworld.lexicon import Lexicon, adjective_forms, french_plural
from tinyworld.world import World

N_SPLIT = 500  # held-out reviews whose excess is split into parts
PACE_STEPS = 100
PARTS = (
    "start and end",
    "structure",
    "polarity, first sentence",
    "polarity at a distance",
    "book",
    "choice of words",
    "agreement",
    "spelling",
)


@dataclass(frozen=True)
class Variant:
    """The laptop recipe, with some of it changed; all variants read equally many tokens."""

    name: str
    changes: dict[str, Any] = field(default_factory=dict)  # arguments of `pretrain`
    repeats: bool = False  # whether each pass reads the same 30,000 reviews


def variants() -> list[Variant]:
    """Other choices for each part of the recipe, one at a time, and those of the first edition together."""
    recipe = plan("world", "causal", "laptop").settings
    adamw = {"optimizer": "adamw", "decay": "cosine", "final_lr_fraction": 0.05, "lr": 8e-3}
    smaller = {"tokens_per_batch": recipe.tokens_per_batch // 2, "n_steps": 2 * recipe.n_steps}
    before = {"positions": "sinusoidal", "activation": "gelu", "bias": True, "n_heads": 4}
    return [
        Variant("sinusoidal positions", {"model_changes": {"positions": "sinusoidal"}}),
        Variant("rotary positions", {"model_changes": {"positions": "rotary"}}),
        Variant("AdamW", {"training_changes": adamw}),
        Variant("a vocabulary of 1,000", {"vocab_size": 1000}),
        Variant("4 heads", {"model_changes": {"n_heads": 4}}),
        Variant("16 heads", {"model_changes": {"n_heads": 16}}),
        Variant("3 layers", {"model_changes": {"n_layers": 3}}),
        Variant("tied embeddings", {"model_changes": {"tie_embeddings": True}}),
        Variant("GELU and biases", {"model_changes": {"activation": "gelu", "bias": True}}),
        Variant("batches half as large", {"training_changes": smaller}),
        Variant("30,000 reviews, read again", repeats=True),
        Variant(
            "sinusoidal, AdamW, 1,000, 4 heads, GELU and biases, read again",
            {"vocab_size": 1000, "model_changes": before, "training_changes": adamw},
            repeats=True,
        ),
    ]


def world_minute(settings: Settings) -> pd.DataFrame:
    """Train on the world with the budgets laptop and study, and with the laptop recipe changed; see `table`.

    Losses are those of the valid split, on which the parts of the recipe were compared. The number of steps
    decides the result; how long a step takes is measured on its own, with two threads on
    a machine that does nothing else (record "pace"), so losses may be computed on a busy one.
    """
    settings.check_budget("smoke", "laptop")
    corpus = load_corpus("world")
    recipe, short = Variant("recipe"), settings.budget == "smoke"
    budgets = ("smoke",) if short else ("laptop", "study")
    cells = [(budget, recipe, seed) for budget in budgets for seed in range(settings.n_seeds)]
    if not short:
        cells += [("laptop", variant, 0) for variant in variants()]
    paces = settings.measured(
        "pace", ((one,) for one in budgets), "{}/pace".format, lambda one: _origin(one, recipe), _pace
    )
    records = settings.measured(
        "world-minute",
        cells,
        lambda budget, variant, seed: f"{budget}/seed {seed}/{variant.name}",
        lambda budget, variant, seed: _origin(budget, variant),
        partial(_measured, settings, corpus),
    )
    return table({**paces, **records})


def _origin(budget: str, variant: Variant) -> Record:
    return {"recipe": plan("world", "causal", budget).to_dict(), **dataclasses.asdict(variant)}


def _pace(budget: str) -> Record:
    """Seconds of a training step: the median of many."""
    corpus, recipe = load_corpus("world"), plan("world", "causal", budget)
    tokenizer = train_tokenizer(corpus.train.texts, recipe.vocab_size, exact=False, kind="world")
    learning = objective_for(recipe, tokenizer, corpus.train.texts)
    device = choose_device("auto")
    step = TrainingStep(new_model(recipe, 0).to(device), learning, recipe.settings)
    batches = learning.epoch_batches(seed=0, epoch=0, tokens_per_batch=recipe.settings.tokens_per_batch)
    seconds = []
    for batch in batches[:PACE_STEPS]:
        begin = time.perf_counter()
        step.backward(batch)
        step.update(recipe.settings.lr)
        seconds.append(time.perf_counter() - begin)
    return {
        "measure": "pace",
        "seconds_per_step": statistics.median(seconds),
        "tokens_per_step": float(np.mean([learning.n_predictions(batch) for batch in batches[:PACE_STEPS]])),
        "threads": torch.get_num_threads(),
        "precision": choose_precision("auto", device),
    }


def _measured(settings: Settings, corpus: Corpus, budget: str, variant: Variant, seed: int) -> Record:
    result = pretrain(
        dataclasses.replace(corpus, draw=None) if variant.repeats else corpus,
        budget=budget,
        seed=seed,
        options=RunOptions(device=settings.device, progress=False, report=lambda line: None),
        **variant.changes,
    )
    texts = corpus.valid.texts
    score = evaluate_language_model(result.model, result.tokenizer, texts)
    bound = float(cast(np.ndarray, exact_nats(corpus, texts)).sum())
    return {
        **{"measure": "loss", "variant": variant.name, "seed": seed},
        **{"n_steps": result.recipe.settings.n_steps, "n_texts": len(texts)},
        "nats_per_review": score.total_nats / len(texts),
        "bound_per_review": bound / len(texts),
        "above": score.total_nats / bound - 1,
        "missing": missing(result.model, result.tokenizer, texts[:N_SPLIT]),
    }


def missing(model: LanguageModel, tokenizer: Tokenizer, texts: Sequence[str]) -> dict[str, float]:
    r"""Split what a model loses against the exact language into parts, in nats a review.

    At each word the excess :math:`\log p(x) - \log q(x)` of the model q is a sum, by the chain rule: that of
    the kind of word (noun, adjective, ...), of its polarity given the kind, of the lemma given both, and of
    the form given the lemma. The parts add up to the whole excess.

    Returns
    -------
    dict
        One number for each of `PARTS`: the kind at the first word of a sentence and at the end of a review
        ("start and end") and elsewhere ("structure"); the polarity, in the first sentence and later; the
        lemma of a noun for the book ("book") or of another word; the form ("agreement"); and the tokens of a
        word after its first ("spelling").
    """
    world, levels = World(), _Levels(tokenizer)
    totals = dict.fromkeys(PARTS, 0.0)
    for text in texts:
        words = text.split(" ")
        ids = tokenizer.encode(text)
        model_log = _log_probs(model, tokenizer, ids)  # (T + 1, V)
        position = sentence = 0
        exact = world.next_words(words)  # (W + 1, words + 1)
        for number, word in enumerate([*words, None]):
            pieces = (tokenizer.eos_id,) if word is None else tuple(tokenizer.word_pieces(word))
            p, log_q = levels.first_token(exact[number]), model_log[position]
            begins = number == 0 or words[number - 1] in (".", "!")
            for part, nats in levels.parts(p, np.exp(log_q), pieces[0], begins, sentence):
                totals[part] += nats
            if word is not None:
                rest = model_log[np.arange(position + 1, position + len(pieces)), list(pieces[1:])].sum()
                exact_rest = np.log(exact[number][world.automaton.word_ids[word]] / p[pieces[0]])
                totals["spelling"] += float(exact_rest - rest)
            position += len(pieces)
            sentence += word in (".", "!")
    return {name: value / len(texts) for name, value in totals.items()}


@torch.no_grad()
def _log_probs(model: LanguageModel, tokenizer: Tokenizer, ids: Sequence[int]) -> np.ndarray:
    device = next(model.parameters()).device
    logits = model(torch.tensor([[tokenizer.bos_id, *ids]], device=device))[0]
    return logits.double().log_softmax(-1).cpu().numpy()


class _Levels:
    """Tokens that begin a word, in groups of groups: by kind, polarity, lemma and form."""

    def __init__(self, tokenizer: Tokenizer) -> None:
        self._vocabulary = World().vocabulary
        first = [tokenizer.word_pieces(word)[0] for word in self._vocabulary]
        self._first = np.array([*first, tokenizer.eos_id])
        self._size = tokenizer.vocab_size
        names = _names(Lexicon())
        of_token: dict[int, tuple[str, ...]] = {}
        for word, token in zip(self._vocabulary, first, strict=True):
            name = names.get(word, (word, "", word))
            known = of_token.setdefault(token, name)
            if known != name:  # a token that begins words of several groups is a group of its own
                of_token[token] = (f"token {token}", "", f"token {token}")
        own = [of_token.get(token, (f"token {token}", "", "")) for token in range(self._size)]
        self._kinds = [name[0] for name in own]
        self._groups = [_numbered(name[:depth] for name in own) for depth in (1, 2, 3)]

    def first_token(self, words: np.ndarray) -> np.ndarray:
        """Probability of each token that begins a word, or ends the review; shape (V,)."""
        return np.bincount(self._first, weights=words, minlength=self._size)

    def parts(
        self, p: np.ndarray, q: np.ndarray, token: int, begins: bool, sentence: int
    ) -> Iterator[tuple[str, float]]:
        """The excess at one word by part; p and q are the exact and the model's probabilities, (V,)."""
        alike = [group == group[token] for group in self._groups]
        excess = [float(np.log(p[same].sum() / q[same].sum())) for same in alike]
        excess.append(float(np.log(p[token] / q[token])))
        kind, polarity, lemma, form = np.diff([0.0, *excess]).tolist()
        yield "start and end" if begins else "structure", kind
        yield "polarity at a distance" if sentence else "polarity, first sentence", polarity
        yield "book" if self._kinds[token] == "work" else "choice of words", lemma
        yield "agreement", form


def _numbered(names: Iterable[tuple[str, ...]]) -> np.ndarray:
    numbers: dict[tuple[str, ...], int] = {}
    return np.array([numbers.setdefault(name, len(numbers)) for name in names])


def _names(lexicon: Lexicon) -> dict[str, tuple[str, str, str]]:
    """Kind, polarity and lemma of each form that has one of each; other words are kinds of their own."""
    found: dict[str, set[tuple[str, str, str]]] = {}

    def add(kind: str, polarity: str, lemma: str, *forms: str) -> None:
        for form in forms:
            found.setdefault(form, set()).add((kind, polarity, lemma))

    def agreeing(stem: str) -> list[str]:
        return [stem + end for end in ("", "e", "s", "es")]

    for row in lexicon.nouns:
        kind = row["role"].rstrip("+-")
        add(kind, row["role"].removeprefix(kind), row["french"], row["french"], french_plural(row))
    for row in lexicon.adjectives:
        add("adjective", row["polarity"], row["masculine"], *adjective_forms(row).values())
    for row in lexicon.verbs:
        likes = row["kind"] == "liking"
        add(row["kind"], row["polarity"], row["french"], row["french"])
        forms = agreeing(row["second"]) if likes else [row["second"]]
        add("liked" if likes else row["kind"], row["polarity"], row["french"], *forms)
    for row in lexicon.adverbs:
        add("adverb", row["polarity"], row["french"], row["french"])
    for row in lexicon.particles:
        add(row["class"], "", row["french"], *agreeing(row["french"])[: 4 if row["class"] == "made" else 1])
    add("be", "", "être", "est", "sont")
    add("it", "", "il", "il", "elle", "ils", "elles")
    add("read", "", "lu", *agreeing("lu"))
    return {form: next(iter(names)) for form, names in found.items() if len(names) == 1}


def table(records: Records) -> pd.DataFrame:
    """Per cent above the bound, mean over seeds with its interval, and the parts of what is missing.

    Returns
    -------
    DataFrame
        One row a budget and variant: ``n`` seeds, ``seconds`` of training at the measured pace (of the recipe
        itself), ``mean``, ``low`` and ``high`` in per cent above the entropy bound, and each of `PARTS` in
        per cent of the bound.
    """
    pace = {
        key.split("/")[0]: one["seconds_per_step"] for key, one in records.items() if one["measure"] == "pace"
    }
    rows = []
    for key, one in records.items():
        if one["measure"] != "loss":
            continue
        budget, bound = key.split("/")[0], one["bound_per_review"]
        plain = one["variant"] == "recipe" and budget in pace
        parts = {name: 100 * nats / bound for name, nats in one["missing"].items()}
        facts = {"budget": budget, "variant": one["variant"], "seed": one["seed"]}
        seconds = one["n_steps"] * pace[budget] if plain else float("nan")
        rows.append({**facts, "seconds": seconds, "above": 100 * one["above"], **parts})
    data, by = pd.DataFrame(rows), ["budget", "variant"]
    means = mean_table(data, "above", by=("budget",), variant="variant")
    others = data.groupby(by, sort=False)[["seconds", *PARTS]].mean().reset_index()
    return means.merge(others, on=by)
