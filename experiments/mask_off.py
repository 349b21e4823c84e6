"""What the causal mask is for: a model learns, then a copy of it goes on without the mask.

The language is the world's English. The first model comes down to the entropy bound and writes reviews. The
copy falls through the bound, as it reads the word that it has to predict, and what it writes falls apart. The
picture at the top of the README is drawn from this, see `tinytx_course.building.picture`. The engine of the
page runs in node, for some 80 seconds of one core. Losses are those of held-out reviews, see `Run.evaluate`.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

import numpy as np
import pandas as pd

from experiments.harness import Record, Records, Settings
from tinytx_course.engine.node import run_in_node
from tinytx_course.engine.tables import world_tables
from tinyworld.world import World

PLAN: Mapping[str, Any] = {
    "n_steps": 1200,  # of the model with the mask
    "branch": 500,  # where the copy is made
    "end": 900,  # of the copy
    "moments": [0, 50, 1200],  # where a review is drawn with the mask; without it, at the end
    "text_seed": 101,  # the same for each review that is shown
}
SMOKE = {"n_steps": 30, "branch": 15, "end": 25, "moments": [0, 10, 30]}
N_REVIEWS = 20  # whose words are read by the grammar at each moment
_TRAIN = """
const world = new World(tensors.get("world").data);
const run = new Run(world, await kernelsFor("wasm"), one.seed, { settings: { n_steps: one.n_steps } });
const curves = { masked: [], unmasked: [] }, texts = [];
const judge = (name) => curves[name].push([run.step, run.evaluate().loss]);
const write = (name) => {
  const words = run.sample(generator(one.text_seed));
  const reviews = Array.from({ length: one.n_reviews }, (_, i) => run.sample(generator(one.text_seed + i)));
  const marks = reviews.flatMap((review) => world.allowed(review));
  const share = marks.filter((mark) => mark).length / Math.max(1, marks.length);
  const n_empty = reviews.filter((review) => !review.length).length;
  texts.push({ curve: name, step: run.step, words, allowed: world.allowed(words), share, n_empty });
};
const train = (name, end, visit) => {
  judge(name);
  visit();
  while (run.step < end) {
    run.advance();
    if (run.step % (run.step <= 100 ? 5 : 20) === 0 || run.step === end) judge(name);
    visit();
  }
};
// Weights and what the optimizer keeps of each, as arrays.
const { model: { parameters }, training: { moments } } = run;
const state = () => [...parameters].flatMap(([name, weights]) => [weights, ...moments.get(name)]);
let saved;
train("masked", one.n_steps, () => {
  if (run.step === one.branch) saved = state().map(({ data }) => data.slice());
  if (one.moments.includes(run.step)) write("masked");
});
state().forEach(({ data }, i) => data.set(saved[i]));
run.training.step = one.branch;
train("unmasked", one.end, () => { // the first point is the same as of the first model
  if (run.step === one.branch) run.change({ config: { causal: false } });
  if (run.step === one.end) write("unmasked");
});
return { ...curves, bound: run.evaluate().bound, texts };
"""


def mask_off(settings: Settings) -> pd.DataFrame:
    """Train with the mask, and a copy without it; see `table`."""
    plan = {**PLAN, **(SMOKE if settings.check_budget("smoke", "laptop") == "smoke" else {})}
    tables = np.frombuffer(world_tables(World("en")), np.uint8)
    cells = ((seed,) for seed in range(settings.n_seeds))
    measure = partial(_measured, plan, tables)
    return table(settings.measured("mask-off", cells, "seed {}".format, lambda seed: plan, measure))


def _measured(plan: Mapping[str, Any], tables: np.ndarray, seed: int) -> Record:
    facts = {**plan, "seed": seed, "n_reviews": N_REVIEWS}
    ((_, found),) = run_in_node(_TRAIN, (facts, {"world": tables}))
    return {"seed": seed, **found}


def table(records: Records) -> pd.DataFrame:
    """What each model ends with.

    Returns
    -------
    DataFrame
        One row a seed and model: ``steps``, held-out ``loss`` in nats a word, the entropy ``bound`` of the
        same reviews, how far the loss is ``above`` it in per cent, and the share of ``allowed`` words in what
        the model writes, in per cent.
    """
    rows = []
    for one in records.values():
        for name in ("masked", "unmasked"):
            (step, loss), bound = one[name][-1], one["bound"]
            (share,) = (
                text["share"] for text in one["texts"] if (text["curve"], text["step"]) == (name, step)
            )
            row = {"seed": one["seed"], "model": name, "steps": step, "loss": loss, "bound": bound}
            rows.append({**row, "above": 100 * (loss / bound - 1), "allowed": 100 * share})
    return pd.DataFrame(rows)
