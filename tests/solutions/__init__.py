"""The proof that the checkers work: solutions as people write them, each tried with many seeds."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from time import process_time

from tests.solutions import (  # noqa: F401  (each enters its solutions)
    attention,
    blocks,
    costs,
    counting,
    decoding,
    faster,
    gpt,
    heads,
    inside,
    losses,
    masking,
    masks,
    modern,
    outside,
    pooling,
    positions,
    published,
    sampling,
    subwords,
    training,
)
from tests.solutions.collection import SOLUTIONS, Solution
from tinytx_course.exercises.checking import EXERCISES, check


@dataclass(frozen=True)
class Trial:
    """One solution, checked with one seed.

    Attributes
    ----------
    solution : Solution
    seed : int
    passed : bool
    mistake : str or None
    milliseconds : float
        Of the processor.
    """

    solution: Solution
    seed: int
    passed: bool
    mistake: str | None
    milliseconds: float

    @property
    def named(self) -> bool:
        """Whether the mistake got its name."""
        return self.mistake == self.solution.slug


def on_tensors() -> list[Solution]:
    """Right solutions that torch computes on any device: without NumPy."""
    return [s for s in SOLUTIONS if s.slug is None and "numpy" not in s.name]


def try_all(seeds: Iterable[int], solutions: Iterable[Solution] = SOLUTIONS) -> Iterator[Trial]:
    """Check every solution with every seed."""
    for seed in seeds:
        for solution in solutions:
            before = process_time()
            verdict = check(solution.exercise, solution.function, seed=seed, display=False)
            spent = 1_000 * (process_time() - before)
            yield Trial(solution, seed, verdict.passed, verdict.mistake, spent)


def table(trials: Iterable[Trial]) -> dict[str, dict]:
    """One row an exercise: how many solutions, how many judged as they should be, how fast."""
    rows = {}
    done = list(trials)
    for name in EXERCISES:
        own = [trial for trial in done if trial.solution.exercise == name]
        right = [trial for trial in own if trial.solution.slug is None]
        wrong = [trial for trial in own if trial.solution.slug is not None]
        ordinary = [t.milliseconds for t in own if t.solution.slug != "time-limit"]
        rows[name] = {
            "seeds": sorted({trial.seed for trial in own}),
            "right_solutions": len({trial.solution.name for trial in right}),
            "right_passed": sum(trial.passed for trial in right),
            "right_trials": len(right),
            "wrong_solutions": len({trial.solution.name for trial in wrong}),
            "wrong_rejected": sum(not trial.passed for trial in wrong),
            "wrong_named": sum(trial.named for trial in wrong),
            "wrong_trials": len(wrong),
            "named_otherwise": _otherwise(wrong),
            "median_ms": round(sorted(ordinary)[len(ordinary) // 2], 1),
            "slowest_ms": round(max(ordinary), 1),
        }
    return rows


def _otherwise(wrong: list[Trial]) -> dict[str, dict[str, int]]:
    found: dict[str, dict[str, int]] = {}
    for trial in wrong:
        if not trial.named:
            names = found.setdefault(trial.solution.name, {})
            names[str(trial.mistake)] = names.get(str(trial.mistake), 0) + 1
    return found
