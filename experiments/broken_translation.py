"""A translator broken on purpose, as a student's was, and repaired one change at a time.

The student's model had its norms last, no warm-up, a rate that was too high and no dropout; it answered "suis
suis . . . suis". Which of the four mattered?
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from experiments.store import Store, kept_or_measured
from tinytx.text.pairs import PairCorpus, Pairs, load_pairs
from tinytx.training.beam import Search
from tinytx.training.bleu import evaluate_translator
from tinytx.training.fit import FitResult, Report, fit
from tinytx.training.loop import DivergenceError, progress_bar
from tinytx.training.recipes import pair_kind, parse_budget, plan
from tinytx.training.tasks import fingerprint
from tinytx.training.translate import translate

SOUND = {"norm": "first", "warm-up": True, "rate": 2e-3, "dropout": 0.1}
BROKEN = {"norm": "last", "warm-up": False, "rate": 2e-2, "dropout": 0.0}
N_SCORED, N_SHOWN = 300, 5  # held-out pairs
WARMUP_SHARE = 0.1
N_TIMES = 3  # as many steps as the budget's recipe: the student had Adam, which needs more of them than Muon
DIAGNOSES = {
    "greedy": Search(),
    "no repeats": Search(forbid_repeats=True),
    "no repeats, read on": Search(forbid_repeats=True, min_factor=1.0),
}


def variants() -> dict[str, dict[str, Any]]:
    """What is trained: all broken, each repair alone, all sound, each fault alone.

    Examples
    --------
    >>> list(variants())[:3]
    ['all four faults', 'repaired: norm', 'repaired: warm-up']
    """
    found: dict[str, dict[str, Any]] = {"all four faults": dict(BROKEN)}
    found |= {f"repaired: {name}": {**BROKEN, name: SOUND[name]} for name in SOUND}
    found["sound"] = dict(SOUND)
    return found | {f"only fault: {name}": {**SOUND, name: BROKEN[name]} for name in SOUND}


@dataclass(frozen=True)
class Patient:
    """One variant after training.

    Attributes
    ----------
    name : str
        A key of `variants`.
    step, loss : list
        Its training curve.
    bleu : float or None
        On the held-out pairs; None where the loss stopped being a number.
    nats_per_token : float or None
        Held-out loss.
    shown : list of dict
        Some held-out pairs: source, reference, and what each search of `DIAGNOSES` makes of the source.
    result : FitResult or None
        The model itself; None where it diverged or was read from a store.
    """

    name: str
    step: list[int]
    loss: list[float]
    bleu: float | None
    nats_per_token: float | None
    shown: list[dict[str, str]]
    result: FitResult | None = None

    def to_dict(self) -> dict[str, Any]:
        """Fields as JSON can hold them; not the model."""
        return {key: value for key, value in vars(self).items() if key != "result"}

    def __str__(self) -> str:
        if self.bleu is None:
            return f"{self.name:<24} diverged"
        return f"{self.name:<24} loss {self.loss[-1]:6.3f}  BLEU {self.bleu:5.1f}"


def train_patient(
    name: str,
    corpus: str | os.PathLike[str] | PairCorpus = "world",
    *,
    budget: str | float | None = None,
    seed: int = 0,
    training_changes: Mapping[str, Any] | None = None,
    data_dir: str | os.PathLike[str] | None = None,
    device: str = "auto",
    progress: bool | None = None,
    report: Report = print,
) -> Patient:
    """Train one variant and look at what it writes.

    Parameters
    ----------
    name : str
        A key of `variants`.
    corpus, budget, seed, data_dir, device, progress, report
        As in `fit`; everything but the four ingredients is the budget's, with AdamW and
        `N_TIMES` as many steps.
    training_changes : mapping, optional
        Further changes, such as a number of steps.
    """
    if name not in variants():
        raise ValueError(f"variant must be one of {', '.join(variants())}, got {name!r}")
    data = corpus if isinstance(corpus, PairCorpus) else load_pairs(corpus, data_dir)
    recipe = plan(pair_kind(data.name), "translation", budget, seed=seed)
    changes = dict(training_changes or {})
    changes.setdefault("n_steps", N_TIMES * recipe.settings.n_steps)
    model, training = _changes(variants()[name], changes["n_steps"])
    try:
        result = fit(
            data,
            objective="translation",
            budget=budget,
            seed=seed,
            model_changes=model,
            training_changes=changes | training,
            search=None,
            device=device,
            progress=progress,
            report=report,
        )
    except DivergenceError as stop:
        report(f"{name}: {stop}")
        return Patient(name, [], [], None, None, [])
    return _examined(name, result, data)


def _changes(ingredients: Mapping[str, Any], n_steps: int) -> tuple[dict[str, Any], dict[str, Any]]:
    model = {"norm": ingredients["norm"], "dropout": ingredients["dropout"]}
    training = {
        "lr": ingredients["rate"],
        "warmup_steps": int(WARMUP_SHARE * n_steps) if ingredients["warm-up"] else 0,
        "optimizer": "adamw",
    }
    return model, training


def _examined(name: str, result: FitResult, data: PairCorpus) -> Patient:
    few = _first(data, N_SCORED)
    score = evaluate_translator(result.model, result.tokenizer, few, split="valid")
    sources, targets = few.valid.sources[:N_SHOWN], few.valid.targets[:N_SHOWN]
    found = {
        how: translate(result.model, result.tokenizer, sources, search=search)
        for how, search in DIAGNOSES.items()
    }
    shown = [
        {"source": source, "reference": target, **{how: found[how][i].text for how in DIAGNOSES}}
        for i, (source, target) in enumerate(zip(sources, targets, strict=True))
    ]
    history = result.history
    return Patient(name, history.step, history.loss, score.score.bleu, score.nats_per_token, shown, result)


def _first(data: PairCorpus, n: int) -> PairCorpus:
    held_out = Pairs(data.valid.sources[:n], data.valid.targets[:n])
    return PairCorpus(data.name, data.train, held_out)


def broken_translation(
    corpus: str | os.PathLike[str] | PairCorpus = "world",
    *,
    store: Store,
    budget: str | float | None = None,
    n_seeds: int = 1,
    names: Sequence[str] | None = None,
    data_dir: str | os.PathLike[str] | None = None,
    device: str = "auto",
    progress: bool | None = None,
    report: Report = print,
) -> list[Patient]:
    """Train every variant with every seed; what is kept already, from the same recipe, is not trained again.

    Parameters
    ----------
    corpus, budget, data_dir, device, progress, report
        As in `train_patient`.
    store : Store
        Such as ``tinytx_course.results.Results("broken-translation")``.
    n_seeds : int
    names : sequence of str, optional
        Of `variants`; by default all.
    """
    asked = parse_budget(budget)
    data = corpus if isinstance(corpus, PairCorpus) else load_pairs(corpus, data_dir)
    cells = [(name, seed) for seed in range(n_seeds) for name in (names or variants())]
    patients = []
    with progress_bar(len(cells), label="broken translation", show=progress) as bar:
        for name, seed in cells:
            origin = {
                "texts": fingerprint(data),
                "recipe": plan(pair_kind(data.name), "translation", asked, seed=seed).to_dict(),
                "ingredients": variants()[name],
                "n_times": N_TIMES,
            }
            key = f"{data.name}/{asked}/seed {seed}/{name}"

            def measure(name: str = name, seed: int = seed) -> dict[str, Any]:
                patient = train_patient(
                    name, data, budget=asked, seed=seed, device=device, progress=False, report=report
                )
                return {"seed": seed, **patient.to_dict()}

            record = kept_or_measured(store, key, origin, measure)
            fields = {key: value for key, value in record.items() if key not in ("seed", "origin")}
            patients.append(Patient(**fields))
            bar.update()
    return patients
