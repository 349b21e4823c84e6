"""What a model pretrained on real French says after "Bonjour les": trained once, measured and kept."""

from __future__ import annotations

import math
import os
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from experiments.store import Store, kept_or_measured
from tinytx.model.counting import count_parameters
from tinytx.model.transformer import LanguageModel
from tinytx.text.corpora import Corpus, Split, load_corpus
from tinytx.text.ngrams import NGramModel
from tinytx.text.pairs import load_pairs
from tinytx.text.tokenizer import Tokenizer, plain
from tinytx.training.evaluate import LanguageModelScore
from tinytx.training.fit import FitResult, Report, describe, fit
from tinytx.training.generate import generate
from tinytx.training.recipes import MUON, parse_budget, plan
from tinytx.training.tasks import fingerprint

NAME = "french"
PROMPTS = ("Bonjour les", "Bonjour les amis,", "Ce livre est", "La jeune fille")
ORDERS = (1, 2, 3, 4)  # of the models that count, for comparison
LONGEST = 30  # pieces that are written
# By budget. With Muon and a rate that falls to nothing, few steps bring more than with the budget's AdamW.
RATES = {"smoke": 1e-2, "laptop": 1e-2, "study": 5e-3, "gpu": 2e-3}
# The most probable piece each time; then draws, with what lies outside of the first 90 % left away.
WAYS: Mapping[str, Mapping[str, Any]] = {
    "greedy": {"top_k": 1},
    "drawn, seed 0": {"temperature": 0.8, "top_p": 0.9, "seed": 0},
    "drawn, seed 1": {"temperature": 0.8, "top_p": 0.9, "seed": 1},
    "drawn, seed 2": {"temperature": 0.8, "top_p": 0.9, "seed": 2},
}


@dataclass(frozen=True)
class Completions:
    """A model on real French, and what it says.

    Attributes
    ----------
    record : mapping
        As it is kept.
    """

    record: Mapping[str, Any]

    def __str__(self) -> str:
        record = self.record
        best = min(record["counts"].values())
        lines = [
            record["model"],
            f"{record['nats_per_token']:.4f} nats per token, {record['bits_per_character']:.4f} bits per "
            f"character on {record['valid']}; the best count {best:.4f} nats",
        ]
        lines += [f"{one['way']:<15}{one['text']}" for one in record["completions"]]
        return "\n".join(lines)


def french_corpus(data_dir: str | os.PathLike[str] | None = None) -> Corpus:
    """French without labels: novels, sentences and readers' reviews; to test, novels of other authors.

    Parameters
    ----------
    data_dir : path, optional
        Holds ``eltec-fra/``, ``tatoeba-en-fr/`` and ``reader-reviews-fr/``; by default where ``tinytx data
        get`` leaves them.
    """
    novels = load_corpus("eltec-fra", data_dir)
    held_out = _different(novels.valid.texts)
    sources = (
        novels.train.texts,
        load_pairs("tatoeba-en-fr", data_dir).train.targets,
        load_corpus("reader-reviews-fr", data_dir).train.texts,
    )
    seen = set(held_out)
    train = [text for texts in sources for text in _different(texts) if text not in seen]
    return Corpus(NAME, Split(tuple(train)), Split(tuple(held_out)))


def _different(texts: Iterable[str]) -> list[str]:
    return list(dict.fromkeys(filter(None, map(plain, texts))))


def completions(
    *,
    store: Store,
    budget: str | float | None = None,
    n_steps: int | None = None,
    seed: int = 0,
    data_dir: str | os.PathLike[str] | None = None,
    work_dir: str | os.PathLike[str] = "build",
    device: str = "auto",
    progress: bool | None = None,
    report: Report = print,
) -> Completions:
    """Pretrain on real French, compare with counts, and let the model carry on some prompts.

    What is kept from the same texts with the same recipe is not measured again; training goes on where it
    was broken off.

    Parameters
    ----------
    store : Store
        Such as ``tinytx_course.results.Results("completions")``.
    budget : str or float, optional
        Of the pretraining.
    n_steps : int, optional
        In place of the budget's.
    seed : int
    data_dir : path, optional
        See `french_corpus`.
    work_dir : path
        Takes the folder of the run.
    device, progress, report
        As in `fit`.
    """
    asked = parse_budget(budget)
    report("reading novels, sentences and reviews")
    corpus = french_corpus(data_dir)
    recipe = plan("text", "causal", asked, seed=seed)
    changes = {**MUON, "lr": RATES[recipe.budget], **({} if n_steps is None else {"n_steps": n_steps})}
    n_steps = recipe.settings.n_steps if n_steps is None else n_steps
    key = f"{corpus.name}/{asked}/{n_steps} steps/seed {seed}"
    origin = {
        "texts": fingerprint(corpus),
        "recipe": recipe.to_dict(),
        "changes": changes,
        "prompts": list(PROMPTS),
        "ways": {name: dict(how) for name, how in WAYS.items()},
    }

    def measure() -> dict[str, Any]:
        begin = time.process_time()
        result = fit(
            corpus,
            budget=asked,
            seed=seed,
            training_changes=changes,
            out=Path(work_dir) / f"completions-{corpus.name}-{asked}-{n_steps}-seed{seed}",
            resume=True,
            device=device,
            progress=progress,
            report=report,
        )
        seconds = round(time.process_time() - begin)
        return {**_measured(result, corpus), "budget": asked, "seed": seed, "cpu_seconds": seconds}

    return Completions(kept_or_measured(store, key, origin, measure))


def _measured(result: FitResult, corpus: Corpus) -> dict[str, Any]:
    model, tokenizer, score = result.model, result.tokenizer, result.evaluation.score
    assert isinstance(model, LanguageModel) and isinstance(score, LanguageModelScore)
    settings = result.recipe.settings
    return {
        "model": describe(model, settings),
        "n_params": count_parameters(model),
        "vocab_size": tokenizer.vocab_size,
        "n_steps": settings.n_steps,
        "tokens_per_batch": settings.tokens_per_batch,
        "train": f"{len(corpus.train):,} texts, {_n_words(corpus.train):,} words",
        "valid": f"{len(corpus.valid):,} paragraphs of novels by authors that were not read",
        "last_loss": result.history.loss[-1],
        "nats_per_token": score.nats_per_token,
        "bits_per_character": score.total_nats / math.log(2) / sum(map(len, corpus.valid.texts)),
        "counts": _counts(tokenizer, corpus),
        "completions": completed(model, tokenizer),
    }


def _n_words(split: Split) -> int:
    return sum(len(text.split()) for text in split.texts)


def _counts(tokenizer: Tokenizer, corpus: Corpus) -> dict[str, float]:
    """Nats per token of models that count, by order, of the same texts in the same pieces."""
    counting = NGramModel(max(ORDERS), tokenizer.vocab_size).fit(tokenizer.encode_batch(corpus.train.texts))
    held_out = tokenizer.encode_batch(corpus.valid.texts)
    return {str(order): counting.nats_per_token(held_out, order=order) for order in ORDERS}


def completed(model: LanguageModel, tokenizer: Tokenizer) -> list[dict[str, Any]]:
    """What a model says after each of `PROMPTS`, in each of `WAYS`."""
    found = []
    for prompt in PROMPTS:
        for way, how in WAYS.items():
            said = generate(model, tokenizer, prompt, max_new_tokens=LONGEST, **how)
            found.append({"prompt": prompt, "way": way, "text": str(said), "finished": said.finished})
    return found
