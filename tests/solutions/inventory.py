"""``python -m tests.solutions.inventory``: put the inventory to all wrong solutions, store their answers."""

from __future__ import annotations

from experiments.harness import Settings
from experiments.inventory import Solution, inventory
from tests.solutions import SOLUTIONS
from tinytx_course.lessons import project_root
from tinytx_course.results import Results


def wrong_solutions() -> list[Solution]:
    """All that end, each once: pytest may import modules a second time, to look for examples in them."""
    once = {(one.exercise, one.slug, one.name): one.function for one in SOLUTIONS}
    wrong = [(*key, function) for key, function in once.items()]
    return [one for one in wrong if one[1] not in (None, "time-limit")]


if __name__ == "__main__":
    settings = Settings(store=Results("inventory", project_root() / "results"), budget="laptop")
    print(inventory(settings, wrong_solutions()).to_string(index=False))
