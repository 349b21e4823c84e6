"""How fast the world answers: ``python -m tinytx.text.world.speed``."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from time import perf_counter

from tinytx.text.world.grammar import Grammar
from tinytx.text.world.network import build_network
from tinytx.text.world.world import World

# seconds on one quiet core
PROMISED = {
    "compile": 1.0,
    "next word after 60": 0.001,
    "fill one of 60 words": 0.005,
    "draw 100,000 reviews": 5.0,
    "log-probability of 2,000 reviews": 10.0,
}


def _seconds(task: Callable[[], object]) -> float:
    start = perf_counter()
    task()
    return perf_counter() - start


def measure(n_long: int = 40) -> dict[str, float]:
    """Measure each promise in seconds; over `n_long` reviews of about 60 words, the median."""
    times = {"compile": _seconds(lambda: build_network(Grammar(), "fr"))}
    world = World()
    times["draw 100,000 reviews"] = _seconds(lambda: world.reviews(100_000, seed=1))
    held_out = [review.words for review in world.reviews(2000, seed=2)]
    times["log-probability of 2,000 reviews"] = _seconds(lambda: world.batch_log_prob(held_out))
    long = [r.words for r in world.reviews(20_000, seed=3) if 55 <= len(r.words) <= 65][:n_long]

    def median(ask: Callable[[tuple[str, ...]], object]) -> float:
        found = []
        for words in long:
            world.automaton.forget()
            found.append(_seconds(partial(ask, words)))
        return sorted(found)[len(found) // 2]

    times["next word after 60"] = median(lambda words: world.next_word(words[:-2]))
    times["fill one of 60 words"] = median(lambda words: world.fill(words, len(words) // 2))
    return times


if __name__ == "__main__":
    measured = measure()
    for name, promised in PROMISED.items():
        print(f"{name:<34} {measured[name]:10.5f} s   promised {promised:g} s")
