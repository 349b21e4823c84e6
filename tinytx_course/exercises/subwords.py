"""Exercises on byte-pair encoding: merge one pair, learn the merges, apply them to a new word."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import pairwise

from tinytx_course.exercises.comparing import token_pairs, tokens
from tinytx_course.exercises.exercise import Exercise, chosen, mistakes
from tinytx_course.exercises.observation import Call

Slips = frozenset[str]
Pair = tuple[str, str]
_NO_SLIPS: Slips = frozenset()


def _matches(pair: Pair, left: str, right: str, slips: Slips) -> bool:
    if "right-not-compared" in slips:
        return pair[0] == left
    if "left-not-compared" in slips:
        return pair[1] == right
    return pair == ((right, left) if "order-exchanged" in slips else (left, right))


def _merge(old: Sequence[str], left: str, right: str, *, slips: Slips = _NO_SLIPS) -> list[str]:
    """Merge a pair wherever it occurs, from left to right, with slips."""
    if "from-the-right" in slips:
        return [token[::-1] for token in _merge([t[::-1] for t in old[::-1]], right[::-1], left[::-1])][::-1]
    if "boundaries-ignored" in slips:
        return " ".join(old).replace(f"{left} {right}", left + right).split()
    if "cut-into-letters" in slips:
        old = list("".join(old))
    joined = chosen(
        {"space-between": f"{left} {right}", "joined-backwards": right + left}, slips, left + right
    )
    new: list[str] = []
    i, merged = 0, False
    while i < len(old):
        found = i + 1 < len(old) and _matches((old[i], old[i + 1]), left, right, slips)
        if not found or (merged and "only-first" in slips):
            if i + 1 < len(old) or "last-token-lost" not in slips:
                new.append(old[i])
            i += 1
            continue
        new += [old[i], joined] if "left-not-removed" in slips else [joined]
        merged = True
        i += 1 if "right-not-removed" in slips else 2
    return new


def _only_last(old: Sequence[str], left: str, right: str) -> list[str]:
    places = [i for i, pair in enumerate(pairwise(old)) if pair == (left, right)]
    return [*old[: places[-1]], left + right, *old[places[-1] + 2 :]] if places else list(old)


def _merge_calls(seed: int) -> Iterator[Call]:
    fixed = (
        ("le", "l", "e"),
        ("el", "l", "e"),
        ("les", "l", "e"),
        ("elle", "l", "e"),
        ("lele", "l", "e"),
        ("aaa", "a", "a"),
    )
    for word, left, right in fixed:
        yield Call((list(word), left, right))
    yield Call((["al", "e", "l", "es", "l", "e"], "l", "e"))
    yield Call((["▁", "b", "el", "le", "s"], "el", "le"))
    yield Call((["l", "le", "l", "l", "e", "e", "r"], "l", "e"))
    yield Call(([], "l", "e"))
    drawn = random.Random(seed)
    yield Call(([drawn.choice(("l", "e", "el", "le", "s")) for _ in range(12)], "l", "e"))


MERGE_PAIR = Exercise(
    name="merge_pair",
    read=tokens,
    solve=_merge,
    calls=_merge_calls,
    mistakes=mistakes(
        "merge_pair",
        {
            "nothing-merged": lambda old, left, right: list(old),
            "everything-joined": lambda old, left, right: ["".join(old)],
            "only-last": _only_last,
        },
        _merge,
        exclusive=(["boundaries-ignored", "from-the-right"],),
        together=("last-token-lost",),
    ),
)


def _pair_counts(words: Mapping[tuple[str, ...], int], slips: Slips) -> Counter[Pair]:
    counts: Counter[Pair] = Counter()
    for word, n_uses in words.items():
        pairs = list(pairwise(word))
        if "once-a-word" in slips:
            pairs = list(dict.fromkeys(pairs))
        for pair in pairs:
            counts[pair] += 1 if "uses-ignored" in slips else n_uses
    return counts


_ORDERS: dict[str, Callable[[Counter[Pair], Pair], object]] = {  # the smallest is merged
    "ties-first-seen": lambda counts, pair: -counts[pair],
    "ties-longest": lambda counts, pair: (-counts[pair], -len("".join(pair)), "".join(pair)),
    "ties-without-length": lambda counts, pair: (-counts[pair], "".join(pair)),
    "ties-without-order": lambda counts, pair: (-counts[pair], len("".join(pair))),
    "ties-reversed": lambda counts, pair: (
        -counts[pair],
        len("".join(pair)),
        [-ord(letter) for letter in "".join(pair)],
    ),
    "rarest-first": lambda counts, pair: (counts[pair], len("".join(pair)), "".join(pair)),
    "longest-first": lambda counts, pair: (-len("".join(pair)), -counts[pair], "".join(pair)),
}


def _best(counts: Counter[Pair], slips: Slips) -> Pair:
    def right(counts: Counter[Pair], pair: Pair) -> object:
        return -counts[pair], len("".join(pair)), "".join(pair)

    if "ties-last-in-order" in slips:
        return max(counts, key=lambda pair: (counts[pair], pair))
    order = chosen(_ORDERS, slips, right)
    return min(counts, key=lambda pair: order(counts, pair))


def _learn(words: Mapping[tuple[str, ...], int], n_merges: int, *, slips: Slips = _NO_SLIPS) -> list[Pair]:
    """Learn merges, with slips."""
    n_merges += ("one-too-many" in slips) - ("one-too-few" in slips)
    learned: list[Pair] = []
    first = counts = _pair_counts(words, slips)
    while len(learned) < n_merges and counts:
        pair = _best(counts, slips)
        if "stops-at-one" in slips and counts[pair] < 2:
            break
        learned.append(pair)
        if "not-counted-again" in slips:
            counts = Counter({other: n for other, n in first.items() if other not in learned})
            continue
        if "text-not-merged" not in slips:
            changed: dict[tuple[str, ...], int] = {}
            how = frozenset({"only-first"}) & slips
            for word, n_uses in words.items():
                changed[tuple(_merge(word, *pair, slips=how))] = n_uses
            words = changed
        counts = _pair_counts(words, slips)
    return [(right, left) for left, right in learned] if "pair-reversed" in slips else learned


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
    tokens: tuple[dict[tuple[str, ...], int], ...] = (
        {("l", "e"): 1, ("l", "a"): 1},
        {("a", "bc"): 1, ("ab", "b"): 1},
    )
    for words in tokens:  # of equal pairs the new token that comes first
        yield Call((words, 1))
    drawn = random.Random(seed)
    counted = {f"▁{word}": drawn.randint(1, 9) for word in drawn.sample(_VOCABULARY, 6)}
    yield Call((_as_words(counted), 5))


LEARN_MERGES = Exercise(
    name="learn_merges",
    read=token_pairs,
    solve=_learn,
    calls=_learn_calls,
    mistakes=mistakes(
        "learn_merges",
        with_slips=_learn,
        exclusive=(
            [*_ORDERS, "ties-last-in-order"],
            ["one-too-many", "one-too-few"],
            ["not-counted-again", "text-not-merged", "only-first"],
        ),
        together=("ties-first-seen", "ties-last-in-order", "uses-ignored"),
    ),
)


def _longest_match(word: str, merges: Sequence[Pair]) -> list[str]:
    known = {left + right for left, right in merges}
    cut: list[str] = []
    while word:
        n = next((n for n in range(len(word), 1, -1) if word[:n] in known), 1)
        cut.append(word[:n])
        word = word[n:]
    return cut


def _leftmost_first(word: str, merges: Sequence[Pair]) -> list[str]:
    cut = list(word)
    while True:
        i = next((i for i, pair in enumerate(pairwise(cut)) if pair in merges), None)
        if i is None:
            return cut
        cut[i : i + 2] = [cut[i] + cut[i + 1]]


def _one_sweep(word: str, merges: Sequence[Pair]) -> list[str]:
    cut: list[str] = []
    for letter in word:
        if cut and (cut[-1], letter) in merges:
            cut[-1] += letter
        else:
            cut.append(letter)
    return cut


def _encode(word: str, merges: Sequence[Pair], *, slips: Slips = _NO_SLIPS) -> list[str]:
    """Apply merges in their order, with slips."""
    if "merges-reversed" in slips:
        merges = merges[::-1]
    if "longest-merge-first" in slips:
        merges = sorted(merges, key=lambda pair: -len("".join(pair)))
    if "last-merge-skipped" in slips:
        merges = merges[:-1]
    if "first-merge-skipped" in slips:
        merges = merges[1:]
    cut = list(word)
    how = slips & {
        "only-first",
        "right-not-removed",
        "from-the-right",
        "boundaries-ignored",
        "last-token-lost",
    }
    for left, right in merges:
        new = _merge(cut, left, right, slips=how)
        if "stops-at-a-miss" in slips and new == cut:
            break
        stop = "one-merge-only" in slips and new != cut
        cut = new
        if stop:
            break
    if "unknown-letters-lost" in slips:
        known = {token for left, right in merges for token in (left, right, left + right)}
        cut = [token for token in cut if token in known]
    return cut


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
        ("sel", []),
        *((f"▁{word}", _ELLE) for word in ("elle", "belle", "belles", "sel", "lessive")),
    )
    for word, merges in cases:
        yield Call((word, list(merges)))
    drawn = random.Random(seed)
    counted = {f"▁{word}": drawn.randint(1, 9) for word in drawn.sample(_VOCABULARY, 6)}
    yield Call((f"▁{drawn.choice(_VOCABULARY)}s", _learn(_as_words(counted), 7)))


ENCODE_BPE = Exercise(
    name="encode_bpe",
    read=tokens,
    solve=_encode,
    calls=_encode_calls,
    mistakes=mistakes(
        "encode_bpe",
        {
            "longest-match": _longest_match,
            "leftmost-first": _leftmost_first,
            "one-sweep": _one_sweep,
            "letters-only": lambda word, merges: list(word),
            "not-cut": lambda word, merges: [word],
        },
        _encode,
        exclusive=(
            ["merges-reversed", "longest-merge-first"],
            ["only-first", "right-not-removed", "from-the-right", "boundaries-ignored", "last-token-lost"],
        ),
        together=("last-merge-skipped",),
    ),
)
EXERCISES = (MERGE_PAIR, LEARN_MERGES, ENCODE_BPE)
