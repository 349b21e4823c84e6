"""Which positions hold: a game that needs the order of words, and language models trained short, tested long.

The games, the models and the loops are those of the cells of lesson 03, here trained until more steps change
no conclusion. Each cell runs on one thread.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import product

import numpy as np
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


def conclusions(records: Records) -> dict[str, bool]:
    """Sentences of lesson 03, and whether these records bear them out, seeds taken together."""
    data = pd.DataFrame(records.values())
    right = data[data["task"] == "game"].groupby("kind")[["right 8", "right 16"]].mean()
    short, long = right["right 8"], right["right 16"]
    readers = [one for one in records.values() if one["task"] == "language"]
    by_kind = pd.DataFrame(readers).groupby("kind")["losses"]
    means = {kind: np.mean(losses.tolist(), axis=0) for kind, losses in by_kind}
    loss = pd.DataFrame(means, index=readers[0]["before"])
    rise, outside = loss.loc[96] - loss.loc[0], loss.loc[32] - loss.loc[8]
    added = ["sinusoidal", "learned"]
    return {
        "without positions a model of both sides stays at the bag": bool(abs(short["none"] - 1 / 7) < 0.03),
        "one number between 0 and 1 solves the game of one length": bool(short["one number"] > 0.95),
        "what it learned does not carry over to sixteen words": bool(long["one number"] < 0.8),
        "sinusoidal and learned positions solve the game of eight": bool((short[added] > 0.95).all()),
        "of sixteen words they know the positions met in training": bool((long[added] < 0.6).all()),
        "rotary positions are as good with sixteen words as with eight": bool(
            abs(long["rotary"] - short["rotary"]) < 0.05
        ),
        "ALiBi ends at about one half": bool(0.4 < short["alibi"] < 0.55),
        "within the trained length no positions cost at most 0.15 nats": bool(
            (loss["none"] - loss.min(axis=1))[[0, 4, 8]].max() < 0.15
        ),
        "learned and sinusoidal positions jump beyond it": bool((outside[added] > 0.5).all()),
        "rotary positions hold at 32 words before, and fail at 96 like these": bool(
            outside["rotary"] < 0.5 and rise["rotary"] > rise[added].min() > 0.5
        ),
        "ALiBi holds": bool(rise["alibi"] < 0.15 and rise.idxmin() == "alibi"),
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
