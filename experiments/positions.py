"""Which positions hold: a game that needs the order of words, and language models trained short, tested long.

The games, the models and the loops are those of the cells of lesson 03, here trained until more steps change
no conclusion. Each cell runs on one thread.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import product

import pandas as pd

from experiments.harness import Record, Records, Settings
from experiments.lesson_cells import from_lesson

CODES = ("none", "sinusoidal", "learned", "rotary", "alibi")
KINDS: Mapping[str, tuple[str, ...]] = {"game": ("one number", *CODES), "language": CODES}
N_STEPS: Mapping[str, Mapping[str, int]] = {
    "laptop": {"game": 1_500, "language": 2_000},
    "smoke": {"game": 3, "language": 3},
}
LENGTHS = (8, 16)  # words of a game; no model has met sixteen


def positions(settings: Settings) -> pd.DataFrame:
    """Train each kind on both tasks; see `table`."""
    settings.check_budget(*N_STEPS)
    n_steps = {task: settings.longer * n for task, n in N_STEPS[str(settings.budget)].items()}
    cells = [(task, kind, seed) for task in KINDS for seed, kind in product(settings.seeds(), KINDS[task])]
    records = settings.measured(
        "positions",
        [(*cell, n_steps[cell[0]]) for cell in cells],
        lambda task, kind, seed, n: f"{task}/{kind}/seed {seed}",
        lambda task, kind, seed, n: {"n_steps": n},
        measure,
        n_threads=1,
    )
    return table(records)


def measure(task: str, kind: str, seed: int, n_steps: int) -> Record:
    """One cell: shares of right answers, or losses after so many words, with where attention went."""
    facts = {"task": task, "kind": kind, "seed": seed, "n_steps": n_steps}
    if task == "game":
        lesson = from_lesson("03", "train_player", "right_answers")
        model = lesson.train_player(kind, seed, n_steps)
        for n_words in LENGTHS:
            right, at = lesson.right_answers(model, n_words)
            facts[f"right {n_words}"] = round(right.mean().item(), 4)
            shares = [right[at == p].mean().item() for p in range(1, n_words)]
            facts[f"by position {n_words}"] = [round(share, 4) for share in shares]
        return facts
    lesson = from_lesson("03", "train_reader", "loss_on_first_eight", "befores", "far_shares", "bound")
    model = lesson.train_reader(kind, seed, n_steps)
    losses = [round(lesson.loss_on_first_eight(model, n), 4) for n in lesson.befores]
    return {
        **facts,
        **{"before": list(lesson.befores), "losses": losses, "bound": lesson.bound},
        "far": [round(share, 4) for share in lesson.far_shares(model).tolist()],
    }


def table(records: Records) -> pd.DataFrame:
    """Mean, lowest and highest value over seeds.

    Returns
    -------
    DataFrame
        Columns `task`, `kind`, `measure`, ``n`` seeds, ``mean``, ``min``, ``max``: shares of right answers in
        games of so many words, and nats per word after so many words of other reviews.
    """
    rows = []
    for one in records.values():
        values = {f"right, {n} words": one.get(f"right {n}") for n in LENGTHS}
        if one["task"] == "language":
            values = {f"loss after {n}": loss for n, loss in zip(one["before"], one["losses"], strict=True)}
        rows += [(one["task"], one["kind"], name, value) for name, value in values.items()]
    by = ["task", "kind", "measure"]
    found = pd.DataFrame(rows, columns=[*by, "value"]).groupby(by, sort=False)["value"]
    return found.agg(n="size", mean="mean", min="min", max="max").reset_index()
