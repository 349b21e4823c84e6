"""What the page that trains reaches in a minute and in five on one core: how near the entropy bound.

The engine runs in node, as it does in a page. Its vocabulary is the words of the world. Seconds are those of
the processor, so other work on the machine changes little; judging the model is left out. `playground_page`
measures the page itself in Chromium, judging and drawing included. Rate and width were
compared on the reviews that `Run.evaluate` draws: on others the recipe may be a little worse.

What did not help in a minute, seed 0, in per cent above the bound (tried once, not stored): batches of 512
tokens with 8 heads 6.1; width 96 with 8 heads, batches of 512 tokens and a rate of 8e-3, 10.8; width 128 with
8 heads and batches of 512 tokens 13.9, with AdamW at 1e-2 and batches of 1,024 tokens 13.5.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

from experiments.harness import Record, Records, Settings, mean_table
from experiments.playground_page import VARIANT, can_measure, measured_page
from tinytx_course.engine.node import run_in_node
from tinytx_course.engine.tables import world_tables
from tinyworld.world import World

MOMENTS = (5, 10, 20, 30, 45, 60, 120, 180, 240)  # seconds at which the model is judged
CHANGES: Mapping[str, Any] = {}  # of the page's recipe
LONG = 5  # minutes of one more run in node
PAGE = (1, 5)  # minutes in Chromium
_AROUND = 5  # seconds before and after a time: samples in between count
_TRAIN = """
const clock = () => { const { user, system } = process.cpuUsage(); return (user + system) / 1e6; };
const begin = clock(), world = new World(tensors.get("world").data);
const settings = { ...one.changes.settings, seconds: one.seconds };
const run = new Run(world, await kernelsFor("wasm"), one.seed, { ...one.changes, settings });
const first = run.sample(generator(one.seed)), firstSample = clock() - begin;
const moments = [...one.moments], curve = [], random = generator(one.seed);
const judge = () => {
  const reviews = Array.from({ length: 10 }, () => run.sample(random));
  const possible = reviews.reduce((sum, words) => sum + world.possible(words), 0);
  const all = reviews.reduce((sum, words) => sum + words.length, 0);
  const text = world.written(reviews[0]);
  curve.push({ seconds: run.spent, ...run.evaluate(), possible: possible / all, text });
};
while (!run.finished) {
  const before = clock();
  run.advance();
  run.spend(clock() - before);
  if (run.spent >= moments[0]) judge(moments.shift());
}
judge();
const { model: { config }, tokens } = run;
return { first: world.written(first), first_sample: firstSample, tokens, curve, config,
  settings: run.training.settings };
"""


def playground(settings: Settings) -> pd.DataFrame:
    """Train for a minute and for five, in node and in a page; see `table`."""
    minute = 1 if settings.check_budget("smoke", "laptop") == "smoke" else 60
    cells = [(minute, "recipe", seed) for seed in range(settings.n_seeds)]
    cells.append((LONG * minute, "recipe", 0))
    if can_measure():
        cells += [(n_minutes * minute, VARIANT, 0) for n_minutes in PAGE]
    else:
        settings.report("the page is left out: it needs Chromium and the package websocket-client")
    tables = np.frombuffer(world_tables(World()), np.uint8)

    def origin(seconds: int, variant: str, seed: int) -> Record:
        if variant == VARIANT:
            return {"seconds": seconds, "tasks": "processor"}
        return {"seconds": seconds, "changes": dict(CHANGES), "schedule": "clock"}

    def measure(seconds: int, variant: str, seed: int) -> Record:
        if variant == VARIANT:
            found = measured_page(seconds)
        else:
            moments = [moment for moment in MOMENTS if moment < seconds]
            facts = {**origin(seconds, variant, seed), "seed": seed, "moments": moments}
            ((_, found),) = run_in_node(_TRAIN, (facts, {"world": tables}))
        return {"variant": variant, "seed": seed, "seconds": seconds, **found}

    key = "{0} s/seed {2}/{1}".format
    return table(settings.measured("playground", cells, key, origin, measure))


def table(records: Records) -> pd.DataFrame:
    """Per cent above the bound at the end, and on the way.

    Returns
    -------
    DataFrame
        One row a length of training and place: ``n`` seeds, ``mean``, ``low`` and ``high`` in per cent
        above the entropy bound at the end; the same ``at 20 s``; ``possible``, the share of the words drawn
        at the end that come before the first one which the grammar does not allow, in per cent; ``tokens`` a
        second; seconds to the ``first sample``. For the page also ``allowed at 20 s``, the share of words
        that the grammar allows in its samples of 15 to 25 s, in per cent, its ``longest block`` in ms of the
        wall clock, 0 if none lasts 50 ms, and its ``longest task`` in ms of the processor.
    """
    rows = []
    for one in records.values():
        end = one["curve"][-1]
        early = [point["above"] for point in one["curve"] if point["seconds"] >= 20][:1]
        rows.append(
            {
                **{name: one[name] for name in ("seconds", "variant", "seed")},
                "above": 100 * end["above"],
                "at 20 s": 100 * early[0] if early else float("nan"),
                "possible": 100 * end.get("possible", float("nan")),
                "tokens": one["tokens"] / end["seconds"],
                "first sample": one["first_sample"],
                "allowed at 20 s": _allowed(one["curve"], 20),
                "longest block": max([0, *one["long_tasks"]]) if "long_tasks" in one else float("nan"),
                "longest task": max(one.get("longest_task", {"": float("nan")}).values()),
            }
        )
    data = pd.DataFrame(rows)
    others = data.columns.drop(["seconds", "variant", "seed", "above"])
    return mean_table(data, "above", by=("seconds",), variant="variant", others=others)


def _allowed(curve: Sequence[Mapping[str, Any]], seconds: float) -> float:
    """Mean share of allowed words, in per cent, in the samples around a time; NaN where there is none."""
    near = [one for one in curve if abs(one["seconds"] - seconds) <= _AROUND]
    known = [one["allowed"] for one in near if one.get("allowed") is not None]
    return 100 * float(np.mean(known)) if known else float("nan")
