"""``python -m experiments doubt NAME``: does a conclusion stay with twice the steps and with fresh seeds?

An experiment that can be doubted has a function ``conclusions`` in its module: from records to sentences,
each with whether it holds of them. Records of the doubt are stored apart, so one that was stopped resumes.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from types import ModuleType

import pandas as pd

from experiments.harness import Records, Settings
from tinytx_course.results import Results

LONGER, FIRST_SEED = 2, 1_000  # beyond every seed that an experiment takes


def doubt(settings: Settings, name: str, module: ModuleType, stored: Records) -> pd.DataFrame:
    """Measure an experiment again, longer and with other seeds, and try its conclusions on both.

    Its function has this name in the module; new records are put into ``doubt-NAME.json`` next to its own.
    Gives the columns `sentence`, ``stored`` and ``doubted``, whether it holds of either, and ``stays``, both.
    """
    store = Results(f"doubt-{settings.store.name}", settings.store.path.parent)
    measure: Callable[[Settings], pd.DataFrame] = getattr(module, name)
    measure(replace(settings, store=store, first_seed=FIRST_SEED, longer=LONGER))
    before, after = (module.conclusions(records) for records in (stored, store.data))
    rows = [(sentence, before[sentence], after[sentence]) for sentence in before]
    found = pd.DataFrame(rows, columns=["sentence", "stored", "doubted"])
    return found.assign(stays=found["stored"] & found["doubted"])
