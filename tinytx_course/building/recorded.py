"""A whole run of the page that trains, recorded: what the page shows in grey before anything is pressed.

``python -m tinytx_course.building.recorded`` writes recorded.json; node computes it, some two minutes.
"""

from __future__ import annotations

import json

import numpy as np

from tinytx_course.engine.node import run_in_node
from tinytx_course.engine.shipped import FOLDER, RECORDED
from tinytx_course.engine.tables import world_tables
from tinyworld.world import World

_RUN = """
const run = new Run(new World(tensors.get("world").data), await kernelsFor("wasm"), one.seed);
const losses = [];
const judge = () => losses.push([run.step, +run.evaluate().loss.toFixed(4)]);
judge();
while (!run.finished) {
  run.advance();
  if (isMoment(run.step) || run.finished) judge();
}
const { step, above, bound, text, english, allowed } = run.moment(one.words, one.seed + run.step);
return { step, above, bound, text, english, allowed, losses };
"""


def main(seed: int = 0) -> None:
    """Let the model of the page learn; write its last step and review, the entropy bound and its losses."""
    world = World()
    facts = {"seed": seed, "words": [world.vocabulary[0]]}
    ((_, run),) = run_in_node(_RUN, (facts, {"world": np.frombuffer(world_tables(world), np.uint8)}))
    text = json.dumps(run, ensure_ascii=False) + "\n"
    (FOLDER / RECORDED).write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
