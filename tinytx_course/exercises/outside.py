"""Exercises on real text: repeated texts, splits by group, gains over folds."""

from __future__ import annotations

import random
from collections.abc import Iterator

from tinytx_course.exercises.comparing import ids, number, pair
from tinytx_course.exercises.exercise import Exercise
from tinytx_course.exercises.observation import Call

_WORDS = ("un", "livre", "été", "peut", "être", "fin", "belle", "mais", "triste", "roman", "déjà", "lu")


def _repeated_calls(seed: int) -> Iterator[Call]:
    drawn = random.Random(seed)

    def sentence(n_words: int) -> str:
        return " ".join(drawn.choice(_WORDS) for _ in range(n_words))

    new, other = sentence(4), sentence(5)
    fixed = (
        (["Un livre."], ["Un livre.", "Une fin."]),
        (["Une fin.", "Un livre !"], ["un livre", "la fin"]),
        (["La fin, hélas."], ["la fin... hélas", "la fin", "Lafin hélas"]),
        (["L'été est long"], ["Déjà lu.", "« L’été est long »"]),
        (["Peut-être.", "Déjà lu"], ["peut être", "deja lu", "déjà  lu", "Peutêtre"]),
        (["été", "un bel été", "Un\tlivre"], ["ôté", "été un bel", "un livre", "bel été"]),
        (["Note 3/5", "Vu 2 fois"], ["note 4/5", "note 3 5", "vu 2 fois"]),
        (["A_b", "!!!"], ["a b", "...", "ab"]),
        (
            ["la pêche", "La pêche !"],
            ["le péché", "La fin", "la fin", "LA PÊCHE", "la peche", "La pêche ★", "LA PÊCHE"],
        ),
    )
    for train, test in fixed:
        yield Call((train, test))
    train = [sentence(n) for n in (3, 4, 5)]
    noisy = [train[1].upper() + " !", new, train[2].replace(" ", ", "), other, train[1], other.title()]
    drawn.shuffle(noisy)
    yield Call((train, noisy))


def _split_calls(seed: int) -> Iterator[Call]:
    small = (("a", 1), ("ab", 1), ("aab", 1), ("aba", 1), ("ba", 1), ("aab", 2), ("babca", 3), ("abbbc", 2))
    for groups, n_test in (*small, ("abbbcdd", 3), ("abcacb", 5), ("abac", 4), ("cabbac", 0), ("", 0)):
        yield Call((list(groups), n_test))
    yield Call((["la fin", "fin", "la fin", "lu"], 2))
    drawn = random.Random(seed)
    films = [drawn.choice(_WORDS[:7]) for _ in range(17)]
    yield Call((films, 5 + seed % 3))


def _gain_calls(seed: int) -> Iterator[Call]:
    yield Call(([70.0, 74.0], [68.0, 70.0], 12.7))
    yield Call(([71.0, 76.5, 66.0], [69.5, 72.0, 66.5], 4.3))
    yield Call(([0.91, 0.873, 0.8951], [0.9, 0.86, 0.899], 4.3))
    drawn = random.Random(seed)
    for n, t in ((4, 3.18), (6, 2.57), (11, 2.23)):
        easy = [drawn.gauss(72, 4) for _ in range(n)]
        ours, theirs = ([round(one + drawn.gauss(gain, 1.5), 1) for one in easy] for gain in (2, 0))
        yield Call((ours, theirs, t))


EXERCISES = (
    Exercise(name="repeated_texts", read=ids, calls=_repeated_calls),
    Exercise(name="grouped_split", read=ids, calls=_split_calls),
    Exercise(name="gain_interval", read=pair(number, number, "low, high"), calls=_gain_calls),
)
