"""Translation measured: trained, translated greedily and with beams, scored on the whole held-out split."""

from __future__ import annotations

import hashlib
import os
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from experiments.store import Store, kept_or_measured
from tinytx.text.pairs import LAB_SENTENCES, PairCorpus, load_pairs
from tinytx.training.beam import Search
from tinytx.training.bleu import evaluate_translator
from tinytx.training.checkpoint import json_bytes, stored_plan
from tinytx.training.fit import Report, TranslatorResult, pairs_fingerprint, train_translator
from tinytx.training.recipes import pair_kind, parse_budget, plan_translation
from tinytx.training.translate import translate
from tinytx_course.labs.lesson_11 import alignment_mass

N_ALIGNED, ALIGNMENT_SEED = 300, 23_000  # sentences of the world whose attention is measured


@dataclass(frozen=True)
class TranslationRow:
    """One trained translator and how well it translates.

    Attributes
    ----------
    seed : int
    record : dict
        Everything that was kept: ``record["scores"]`` holds, for "greedy" and "beam of K", the figures of
        `TranslationEvaluation`; ``record["sentences"]`` the translations of the lab's sentences.
    """

    seed: int
    record: dict[str, Any]

    def __str__(self) -> str:
        lines = [f"seed {self.seed}, {self.record['n_steps']:,} steps"]
        for how, score in self.record["scores"].items():
            low, high = score["interval"]
            line = f"  {how:<10} BLEU {score['bleu']:.1f} [{low:.1f}, {high:.1f}], chrF {score['chrf']:.1f}"
            if score["all_references"] is not None:
                line += f", against all references {score['all_references']['bleu']:.1f}"
            if score["grammar"] is not None:
                line += f", {score['grammar']['n_errors']} mistakes of grammar"
            lines.append(line)
        for sentence, found in self.record["sentences"].items():
            lines.append(f"  {sentence} -> {' | '.join(found.values())}")
        return "\n".join(lines)


def translation(
    corpus: str | os.PathLike[str] | PairCorpus = "world",
    *,
    store: Store,
    budget: str | float | None = None,
    n_seeds: int = 1,
    beam_size: int = 4,
    length_penalty: float = 1.0,
    work_dir: str | os.PathLike[str] = "build",
    data_dir: str | os.PathLike[str] | None = None,
    device: str = "auto",
    progress: bool | None = None,
    report: Report = print,
) -> list[TranslationRow]:
    """Train translators, one a seed, and keep what they make of the split that figures are reported on.

    Training goes on where it was interrupted, from a run folder below ``work_dir``; what is kept already,
    from the same pairs and recipe, is not measured again.

    Parameters
    ----------
    corpus : str, path or PairCorpus
        As in `load_pairs`.
    store : Store
        Such as ``tinytx_course.results.Results("translation-world")``.
    budget : str or float, optional
    n_seeds : int
        Seeds 0, 1, ...
    beam_size, length_penalty
        Of the search beside the greedy one.
    work_dir, data_dir, device : path, path, str
    progress : bool, optional
    report : callable

    Returns
    -------
    list of TranslationRow
    """
    if n_seeds < 1:
        raise ValueError(f"n_seeds must be at least 1, got {n_seeds}")
    asked = parse_budget(budget)
    data = corpus if isinstance(corpus, PairCorpus) else load_pairs(corpus, data_dir)
    searches = {
        "greedy": Search(),
        f"beam of {beam_size}": Search(beam_size=beam_size, length_penalty=length_penalty),
    }
    rows = []
    for seed in range(n_seeds):
        origin = {
            "texts": pairs_fingerprint(data),
            "recipe": plan_translation(pair_kind(data.name), asked, seed=seed).to_dict(),
            "searches": {name: search.to_dict() for name, search in searches.items()},
        }
        key = f"{data.name}/{asked}/seed {seed}"

        def measure(seed: int = seed, origin: dict[str, Any] = origin) -> dict[str, Any]:
            folder = _folder(work_dir, data.name, asked, seed, origin)
            fresh = stored_plan(folder, resume=True) is None
            begin = time.perf_counter()
            result = train_translator(
                data,
                budget=asked,
                seed=seed,
                out=folder,
                resume=True,
                device=device,
                search=None,
                progress=progress,
                report=report,
            )
            seconds = time.perf_counter() - begin if fresh else None
            return {"seed": seed, "seconds": seconds} | _measured(result, data, searches)

        rows.append(TranslationRow(seed, kept_or_measured(store, key, origin, measure)))
    return rows


def _folder(
    work_dir: str | os.PathLike[str], name: str, budget: str | float, seed: int, origin: dict[str, Any]
) -> Path:
    what = {part: origin[part] for part in ("texts", "recipe")}
    digest = hashlib.sha256(json_bytes(what)).hexdigest()[:12]
    return Path(work_dir) / f"translation-{name}-{budget}-seed{seed}-{digest}"


def _measured(result: TranslatorResult, data: PairCorpus, searches: dict[str, Search]) -> dict[str, Any]:
    model, tokenizer = result.model, result.tokenizer
    scores = {
        name: evaluate_translator(model, tokenizer, data, search=search).to_dict()
        for name, search in searches.items()
    }
    record = {
        "n_pairs": len(data.train),
        "n_removed": data.n_removed,
        **{key: value for key, value in result.to_dict().items() if key != "path"},
        "recipe": result.recipe.to_dict(),
        "history": {"step": result.history.step, "loss": result.history.loss},
        "scores": scores,
        "sentences": {} if data.name == "world" else sentences(result, LAB_SENTENCES, searches),
    }
    if data.name == "world":
        from tinytx.world.world import World

        drawn = World().sentence_pairs(N_ALIGNED, seed=ALIGNMENT_SEED)
        found = alignment_mass(model, tokenizer, drawn)
        record["alignment"] = {"mass": found.mass.tolist(), "uniform": found.uniform, "n": found.n_tokens}
    return record


def sentences(
    result: TranslatorResult, texts: Sequence[str], searches: dict[str, Search]
) -> dict[str, dict[str, str]]:
    """Translations of some texts: text -> name of the search -> translation."""
    found = {
        name: translate(result.model, result.tokenizer, texts, search=search)
        for name, search in searches.items()
    }
    return {text: {name: found[name][i].text for name in searches} for i, text in enumerate(texts)}
