"""What a model of the world knows, where, and which heads carry it: probes, ablations, patches."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from itertools import product
from typing import Any

import numpy as np
import pandas as pd
import torch

from experiments.harness import Conclusions, Record, Records, Settings, entropy_bound, mean_table
from tinytx.tokenizer import Tokenizer
from tinytx.transformer import LanguageModel
from tinytx_course.labs.lesson_17 import (
    AWAITED,
    UNSEEN_PERIOD,
    WordForms,
    as_large,
    copy_nats,
    exact_variables,
    heads_replaced,
    hidden_after_words,
    induction_scores,
    prior_excess,
    probe_excess,
    record_heads,
    repeats_config,
    train_on_repeats,
)
from tinytx_course.labs.one_word import PairRuns, group_tokens, one_word_pairs
from tinytx_run.corpora import load_corpus
from tinytx_run.evaluate import text_nats
from tinytx_run.pretrain import pretrain
from tinytx_run.recipes import plan
from tinytx_run.training import RunOptions
from tinyworld.world import World

# Fresh reviews: to fit probes, to score them, to make pairs of, and to measure ablations on.
SIZES = {"smoke": (40, 20, 60, 20), "laptop": (300, 150, 400, 150)}
SEEDS = (101, 102, 103, 104)
REPEAT_STEPS = {"smoke": 20, "laptop": 400}
KINDS = ("polarity", "gender")  # of pairs


def looking_inside(settings: Settings) -> pd.DataFrame:
    """Train on the world and on repeated rows, and look inside the models; see `table`."""
    budget = settings.check_budget(*SIZES)
    sizes = {"sizes": list(SIZES[budget]), "variables": ["polarity", "genre", *AWAITED]}
    recipe = settings.lengthened(plan("world", "causal", budget))
    n_steps = {"repeats": settings.longer * REPEAT_STEPS[budget], "world": recipe.settings.n_steps}
    origins: dict[str, Record] = {
        "repeats": {"config": repeats_config().to_dict(), "n_steps": n_steps["repeats"]},
        "world": {"recipe": recipe.to_dict(), **sizes},
    }
    measures: dict[str, Callable[..., Record]] = {
        "repeats": _repeats,
        "world": partial(_world, options=settings.quiet),
    }
    records = settings.measured(
        "looking-inside",
        product(settings.seeds(), measures),
        f"{budget}/seed {{}}/{{}}".format,
        lambda seed, name: origins[name],
        lambda seed, name: measures[name](budget, seed, n_steps[name]),
    )
    return table(records)


def _repeats(budget: str, seed: int, n_steps: int) -> Record:
    """Induction: the loss of a second copy, also without the heads of the highest and the lowest scores."""
    model = train_on_repeats(repeats_config(), n_steps, seed=seed)
    shallow = train_on_repeats(repeats_config(n_layers=1), n_steps, seed=seed)
    scores = induction_scores(model, UNSEEN_PERIOD)
    ranked = [divmod(int(i), scores.shape[1]) for i in scores.flatten().argsort(descending=True)]
    inducing = [head for head in ranked if scores[head] > scores.max() / 2]
    last = [head for head in ranked if head[0] == ranked[0][0]]
    ablated = {"nothing": [], "the best head": ranked[:1], "induction heads": inducing, "control": last[-1:]}
    nats = {name: _second(model, heads) for name, heads in ablated.items()}
    return {"measure": "repeats", "seed": seed, "nats": {**nats, "one layer": _second(shallow, [])}}


def _second(model: LanguageModel, heads: list[tuple[int, int]]) -> float:
    with heads_replaced(model.body, dict.fromkeys(heads, 0.0)):
        return float(copy_nats(model, UNSEEN_PERIOD)[1].mean())


def _world(budget: str, seed: int, n_steps: int, options: RunOptions) -> Record:
    corpus, world = load_corpus("world"), World()
    steps = {"n_steps": n_steps}
    result = pretrain(corpus, budget=budget, seed=seed, training_changes=steps, **as_large(), options=options)
    model, tokenizer, forms = result.model.cpu(), result.tokenizer, WordForms(world)
    nats = text_nats(model, tokenizer, corpus.valid.texts).sum()
    return {
        "measure": "world",
        "seed": seed,
        "n_steps": n_steps,
        "above": float(nats / entropy_bound(corpus, corpus.valid.texts) - 1),
        "probes": _probes(model, tokenizer, world, forms, budget, seed),
        "ablation": _ablation(model, tokenizer, world, budget),
        "pairs": _pairs(model, tokenizer, world, forms, budget),
    }


def _probes(
    model: LanguageModel, tokenizer: Tokenizer, world: World, forms: WordForms, budget: str, seed: int
) -> Record:
    """Nats above the exact posterior: by variable, model and level."""
    fitted, asked = (world.reviews(n, seed=s) for n, s in zip(SIZES[budget][:2], SEEDS, strict=False))
    train, test = (exact_variables(world, forms, reviews) for reviews in (fitted, asked))
    torch.manual_seed(1_000 + seed)
    random, rng = LanguageModel(model.config), np.random.default_rng(seed)
    probes = {}

    def hidden(one: Any) -> list[tuple[torch.Tensor, torch.Tensor]]:
        both = (hidden_after_words(one, tokenizer, reviews) for reviews in (fitted, asked))
        return list(zip(*both, strict=True))  # by level

    def missed(level: tuple[torch.Tensor, torch.Tensor], name: str, labels: Any = None) -> float:
        known, wanted = ((x[one[name].row], one[name]) for x, one in zip(level, (train, test), strict=True))
        return float(probe_excess(known, wanted, labels=labels).mean())

    own, other = hidden(model), hidden(random)
    for name in train:
        shuffled = rng.permutation(train[name].drawn)
        probes[name] = {
            "prior": float(prior_excess(train[name], test[name]).mean()),
            "trained": [missed(level, name) for level in own],
            "shuffled": [missed(level, name, shuffled) for level in own],
            "random": [missed(level, name) for level in other],
        }
    return probes


def _ablation(model: LanguageModel, tokenizer: Tokenizer, world: World, budget: str) -> Record:
    """Nats per token that each head is worth: its output set to zero, or to its mean over all tokens."""
    texts = [" ".join(review.words) for review in world.reviews(SIZES[budget][3], seed=SEEDS[3])]
    n_tokens = sum(len(ids) + 1 for ids in tokenizer.encode_batch(texts))
    whole = text_nats(model, tokenizer, texts).sum()
    with record_heads(model.body) as recorded, torch.no_grad():
        for text in texts:
            model.body(torch.tensor([[tokenizer.bos_id, *tokenizer.encode(text)]]))
    n_layers, n_heads = len(model.body.blocks), model.config.n_heads
    contexts = [[context[0] for context in recorded[layer::n_layers]] for layer in range(n_layers)]
    means = [torch.cat(of_layer).mean(0) for of_layer in contexts]

    def worth(values: dict[tuple[int, int], Any]) -> float:
        with heads_replaced(model.body, values):
            return float((text_nats(model, tokenizer, texts).sum() - whole) / n_tokens)

    every = [[(layer, head) for head in range(n_heads)] for layer in range(n_layers)]
    return {
        "zero": [[worth({at: 0.0}) for at in layer] for layer in every],
        "mean": [[worth({at: means[at[0]][at[1]]}) for at in layer] for layer in every],
    }


def _pairs(
    model: LanguageModel, tokenizer: Tokenizer, world: World, forms: WordForms, budget: str
) -> dict[str, Record]:
    """Patches between two reviews that differ in one word; heads are chosen on even pairs, scored on odd."""
    reviews, runs, effects, chosen = world.reviews(SIZES[budget][2], seed=SEEDS[2]), {}, {}, {}
    for kind in KINDS:
        pairs = one_word_pairs(world, forms, tokenizer, reviews, kind)
        tokens = group_tokens(world, tokenizer, getattr(forms, kind))
        runs[kind] = PairRuns(model, tokenizer, pairs, tokens)
        effects[kind] = runs[kind].effects()  # (L, H, P)
        even = effects[kind][:, :, ::2].mean(axis=2)
        chosen[kind] = tuple(int(i) for i in np.unravel_index(even.argmax(), even.shape))
    found = {}
    for kind, other in zip(KINDS, KINDS[::-1], strict=True):
        run, whole = runs[kind], runs[kind].whole[1::2].mean()
        heads, attention = (x[:, :, 1::2].mean(axis=2) for x in (effects[kind], run.attention_to_change()))
        found[kind] = {
            "n": len(run.whole),
            "whole": float(whole),
            **{"heads": heads.tolist(), "attention": attention.tolist(), "chosen": list(chosen[kind])},
            "share": float(heads[chosen[kind]] / whole),
            "share_of_other": float(heads[chosen[other]] / whole),
            "correlation": float(np.corrcoef(attention.ravel(), np.abs(heads).ravel())[0, 1]),
            "share_of_most_attentive": float(heads.flat[attention.argmax()] / whole),
        }
    return found


def conclusions(records: Records) -> Conclusions:
    """Sentences of lesson 17, and whether these records bear them out, each seed by itself."""
    by_measure = {
        name: [one for one in records.values() if one["measure"] == name] for name in ("world", "repeats")
    }
    probes = [probe for one in by_measure["world"] for probe in one["probes"].values()]
    pairs = {kind: [one["pairs"][kind] for one in by_measure["world"]] for kind in KINDS}
    nats = [one["nats"] for one in by_measure["repeats"]]
    return {
        "a probe of the trained model is nearer to the exact posterior than one of random weights": all(
            one["trained"][-1] < one["random"][-1] for one in probes
        ),
        "each kind of pair has a head that carries more of it than the other kind's head": all(
            one["share"] > one["share_of_other"] for of_kind in pairs.values() for one in of_kind
        ),
        "two layers copy, one does not, and without its induction heads no model does": all(
            one["nothing"] < min(one["one layer"], one["induction heads"]) - 0.5 for one in nats
        ),
    }


def table(records: Records) -> pd.DataFrame:
    """Mean over seeds with its 95 % interval, and the paired difference from the model with random weights.

    Returns
    -------
    DataFrame
        Columns `budget`, `measure`, `name`, ``n`` seeds, ``mean``, ``low``, ``high`` and, for probes,
        ``minus random``; in nats, but for shares and correlations.
    """
    rows = []
    for key, one in records.items():
        budget, seed = key.split("/")[0], one["seed"]
        for measure, name, value in _rows(one):
            rows.append({"budget": budget, "measure": measure, "name": name, "seed": seed, "value": value})
    data = pd.DataFrame(rows)
    return mean_table(data, "value", by=("budget", "measure"), variant="name", baselines=("random",))


def _rows(one: Record) -> list[tuple[str, str, float]]:
    if one["measure"] == "repeats":
        return [("second copy, nats a token", name, value) for name, value in one["nats"].items()]
    rows = [("loss", "above the bound, share", one["above"])]
    for variable, scores in one["probes"].items():
        rows.append((f"probe of {variable}", "prior", scores["prior"]))
        rows += [
            (f"probe of {variable}", name, scores[name][-1]) for name in ("trained", "shuffled", "random")
        ]
    names = ("share", "share_of_other", "share_of_most_attentive", "correlation")
    for kind, found in one["pairs"].items():
        rows += [(f"pairs of {kind}", name, found[name]) for name in names]
    return rows
