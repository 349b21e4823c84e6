"""Exercises on byte-pair encoding: merge one pair, learn the merges, apply them to a new word, decode."""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping, Sequence

from tinytx_course.exercises.comparing import text, token_pairs, tokens
from tinytx_course.exercises.exercise import Exercise
from tinytx_course.exercises.observation import Call

Pair = tuple[str, str]


def _merge_calls(seed: int) -> Iterator[Call]:
    for word in ("le", "el", "les", "elle", "lele"):
        yield Call((list(word), "l", "e"))
    yield Call((list("aaa"), "a", "a"))
    yield Call((["al", "e", "l", "es", "l", "e"], "l", "e"))
    yield Call((["▁", "b", "el", "le", "s"], "el", "le"))
    yield Call((["l", "le", "l", "l", "e", "e", "r"], "l", "e"))
    yield Call((["a", "bc"], "ab", "c"))
    yield Call(([], "l", "e"))
    drawn = random.Random(seed)
    yield Call(([drawn.choice(("l", "e", "el", "le", "s")) for _ in range(12)], "l", "e"))


def _as_words(counted: Mapping[str, int]) -> dict[tuple[str, ...], int]:
    return {tuple(word): n_uses for word, n_uses in counted.items()}


_VOCABULARY = ("le", "les", "elle", "belle", "sel", "bel", "roman", "romans", "livre", "lire", "rive", "mare")


def _learn_calls(seed: int) -> Iterator[Call]:
    fixed: tuple[tuple[dict[str, int], int], ...] = (
        ({"le": 2}, 1),
        ({"le": 2}, 3),
        ({"le": 1, "un": 3}, 1),
        ({"un": 1, "le": 1}, 1),
        ({"les": 3}, 2),
        ({"un": 2, "le": 5, "les": 1}, 3),
        ({"été": 2, "tri": 3}, 1),
        ({"lele": 2, "ami": 3}, 4),
        ({"▁le": 6, "▁les": 3, "▁elle": 2, "▁belle": 1}, 6),
        ({"abc": 2, "xy": 2, "za": 2}, 4),
        ({"papa": 3, "pas": 1, "sa": 4, "bac": 5}, 5),
        ({"le": 4}, 0),
    )
    for counted, n_merges in fixed:
        yield Call((_as_words(counted), n_merges))
    for words in ({("l", "e"): 1, ("l", "a"): 1}, {("a", "bc"): 1, ("ab", "b"): 1}):
        yield Call((words, 1))  # of equal pairs the new token that comes first
    yield Call(({("ab", "c"): 2, ("a", "bc"): 1}, 2))
    yield Call(({("a", "a", "a"): 3}, 5))
    yield Call(({("a", "l", "x"): 5, ("a", "l", "e"): 1, ("l", "e"): 2}, 9))
    drawn = random.Random(seed)
    counted = {f"▁{word}": drawn.randint(1, 9) for word in drawn.sample(_VOCABULARY, 6)}
    yield Call((_as_words(counted), 5))


LEARN_MERGES = Exercise(name="learn_merges", read=token_pairs, calls=_learn_calls)
_ELLE: tuple[Pair, ...] = (("l", "e"), ("▁", "le"), ("e", "l"), ("▁le", "s"), ("el", "le"), ("▁", "elle"))


def _encode_calls(seed: int) -> Iterator[Call]:
    cases: tuple[tuple[str, Sequence[Pair]], ...] = (
        ("le", [("l", "e")]),
        ("elle", [("l", "e")]),
        ("les", [("e", "s"), ("l", "es")]),
        ("les", [("e", "s"), ("l", "e")]),
        ("les", [("a", "b"), ("l", "e"), ("le", "s")]),
        ("lele", [("l", "e"), ("le", "le")]),
        ("aaa", [("a", "a")]),
        ("abab", [("a", "b"), ("b", "a"), ("ab", "ab")]),
        ("bale", [("a", "l"), ("l", "e"), ("b", "al")]),
        ("abcd", [("b", "c"), ("a", "b"), ("c", "d"), ("ab", "cd")]),
        ("abc", [("b", "c"), ("a", "bc"), ("a", "b")]),
        ("abc", [("b", "c"), ("ab", "c")]),
        ("sel", []),
        *((f"▁{word}", _ELLE) for word in ("elle", "belle", "belles", "sel", "lessive")),
    )
    for word, merges in cases:
        yield Call((word, list(merges)))
    drawn = random.Random(seed)
    counted = {f"▁{word}": drawn.randint(1, 9) for word in drawn.sample(_VOCABULARY, 6)}
    yield Call((f"▁{drawn.choice(_VOCABULARY)}s", LEARN_MERGES.solve(_as_words(counted), 7)))


def _decode_calls(seed: int) -> Iterator[Call]:
    some = ("▁le", "▁le ▁rom an", "▁ le ▁livre", "▁l ' été ▁!", "", "▁le ▁ ▁roman", "▁ ▁le", "▁le ▁")
    for case in (*some, "▁▁le ▁rom▁an", "▁b el le s ▁et ▁lon gue s"):
        yield Call((case.split(),))
    drawn = random.Random(seed)
    yield Call((list("".join(f"▁{drawn.choice(_VOCABULARY)}" for _ in range(3))),))


EXERCISES = (
    Exercise(name="merge_pair", read=tokens, calls=_merge_calls),
    LEARN_MERGES,
    Exercise(name="encode_bpe", read=tokens, calls=_encode_calls),
    Exercise(name="decode_bpe", read=text, calls=_decode_calls),
)
