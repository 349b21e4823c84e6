"""Which test finds which fault of the bug museum, over seeds, and what a colleague shows of each patient.

Each model is the program `tinytx_course/museum/program.py` with one line wrong or with none, trained by the
recipes in `patients.py`. Rows, steps and rates were chosen on the healthy models of seed 0, the thresholds of
the tests on all models of seed 0. Healthy models of each task are the control: what a test finds in one of
them is counted, too.
"""

from __future__ import annotations

import hashlib
from functools import partial
from typing import Any

import pandas as pd

from experiments.harness import Record, Records, Settings
from tinytx_course.museum.diagnosing import separation
from tinytx_course.museum.evidence import collect
from tinytx_course.museum.examining import TESTS, examine
from tinytx_course.museum.faults import FAULTS, PROGRAM
from tinytx_course.museum.patients import RECIPES, SMOKE_STEPS, Patient


def museum(settings: Settings) -> pd.DataFrame:
    """Train each patient and a healthy model of each task, and put every test to it; see `table`."""
    who: list[tuple[str | None, str]] = [(None, task) for task in RECIPES]
    who += [(name, fault.task) for name, fault in FAULTS.items()]
    smoke = settings.check_budget("smoke", "laptop") == "smoke"
    records = settings.measured(
        "museum",
        ((seed, *one) for seed in range(settings.n_seeds) for one in who),
        lambda seed, fault, task: f"{settings.budget}/seed {seed}/{fault or f'healthy {task}'}",
        lambda seed, fault, task: _origin(fault, task, smoke),
        partial(_measured, smoke),
    )
    return table(records)


def _origin(fault: str | None, task: str, smoke: bool) -> Record:
    """What a record follows from: the program as it is run, wherever its names come from, and the recipe."""
    source = FAULTS[fault].program if fault else PROGRAM
    source = "".join(line for line in source.splitlines(True) if not line.startswith(("from ", "import ")))
    recipe = {**RECIPES[task], **({"n_steps": SMOKE_STEPS} if smoke else {})}
    return {"program": hashlib.sha256(source.encode()).hexdigest()[:12], "recipe": recipe}


def _measured(smoke: bool, seed: int, fault: str | None, task: str) -> Record:
    patient = Patient(fault, task=task, seed=seed, n_steps=SMOKE_STEPS if smoke else None)
    numbers = {name: examine(patient, test) for name, test in TESTS.items() if task in test.tasks}
    record: dict[str, Any] = {"fault": fault or "healthy", "task": task, "seed": seed}
    record |= {"held_out_loss": patient.history.held_out[-1][1], "bound": patient.bound, "tests": numbers}
    if seed == 0:
        record["evidence"] = collect(patient)
    return record


def table(records: Records) -> pd.DataFrame:
    """In how many seeds each test finds something, see `separation`."""
    return separation(records.values()).reset_index(names="fault")
