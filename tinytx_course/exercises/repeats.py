"""The exercise on texts that stand in train and in test, if not sign by sign."""

from __future__ import annotations

import random
import re
import string
from collections.abc import Iterator, Sequence
from typing import Any

from tinytx_course.exercises.comparing import ids
from tinytx_course.exercises.exercise import Exercise, family
from tinytx_course.exercises.observation import Call

_WITHOUT_ACCENTS = str.maketrans("àâéèêëîïôûùç", "aaeeeeiiouuc")
_WORDS = ("un", "livre", "été", "peut", "être", "fin", "belle", "mais", "triste", "roman", "déjà", "lu")


def _key(text: str, slips: frozenset[str]) -> Any:
    """What two texts must share to count as the same."""
    text = text if "case-kept" in slips else text.lower()
    if "case-only" in slips:
        return text
    if "only-the-ends" in slips:
        return text.strip(string.punctuation + string.whitespace)
    if "spaces-only" in slips:
        return " ".join(text.split())
    if "accents-removed" in slips:
        text = text.translate(_WITHOUT_ACCENTS)
    if "typographic-signs-kept" in slips:
        trace = "" if "words-joined" in slips else " "
        return " ".join(re.sub(f"[{re.escape(string.punctuation)}]", trace, text).split())
    if "words-joined" in slips:
        return " ".join(re.sub(r"[^\w\s]", "", text).split())
    if "spaces-removed" in slips:
        return re.sub(r"\W", "", text)
    words = re.findall(r"[a-z0-9]+" if "accents-cut" in slips else r"\w+", text)
    return frozenset(words) if "order-lost" in slips else " ".join(words)


def _repeated(train: Sequence[str], test: Sequence[str], *, slips: frozenset[str] = frozenset()) -> list[int]:
    """Places of repeated texts, with slips."""
    slips = slips | {"case-kept"} if "word-for-word" in slips else slips
    key = (lambda text, _: text) if "word-for-word" in slips else _key
    seen, keys = [key(text, slips) for text in train], [key(text, slips) for text in test]
    if "places-of-train" in slips:
        return [i for i, one in enumerate(seen) if one in keys]
    if "repeats-within-test" in slips:
        return [i for i, one in enumerate(keys) if one in seen or one in keys[:i]]
    if "first-copy-only" in slips:
        return [i for i, one in enumerate(keys) if one in seen and one not in keys[:i]]
    if "part-of-a-text" in slips:
        return [i for i, one in enumerate(keys) if any(one in other for other in seen)]
    found = [i for i, one in enumerate(keys) if (one in seen) != ("reversed" in slips)]
    if "marks-for-places" in slips:
        return [int(i in found) for i in range(len(test))]
    return [i + ("counted-from-one" in slips) for i in found]


_EVEN_OUT = "Compare lists of words: runs of letters and digits, in lower case."
_REPEATED_SLIPS = {
    "word-for-word": (f"Only texts that are equal sign by sign are found. {_EVEN_OUT}", ""),
    "case-only": (f"Only the case is evened out, signs and spaces still count. {_EVEN_OUT}", ""),
    "case-kept": ("Capitals still count: bring both texts to lower case first.", ""),
    "spaces-only": (f"Case and spaces are evened out, but signs still count. {_EVEN_OUT}", ""),
    "only-the-ends": (f"Signs are taken from the ends only, not from inside a text. {_EVEN_OUT}", ""),
    "typographic-signs-kept": (
        "`string.punctuation` holds the 32 signs of ASCII only: the apostrophe ’ and « » are none of them. "
        f"{_EVEN_OUT}",
        "",
    ),
    "words-joined": (
        "Signs are taken out without a trace, which glues words together: peut-être becomes peutêtre. A sign "
        "ends a word, as a space does.",
        "",
    ),
    "spaces-removed": (
        "Spaces are gone too, so that texts with other words become equal: *la fin* and *lafin*.",
        "",
    ),
    "accents-removed": ("Accents are taken off, but *pêche* and *péché* are two words: keep them.", ""),
    "accents-cut": (
        "Only a to z count as letters here, so that accents tear words apart: été leaves a t. `str.isalnum` "
        "and the `\\w` of `re` know all letters.",
        "",
    ),
    "order-lost": ("Words are compared as a set: the same words in another order are another text.", ""),
    "places-of-train": ("These are places in train: those in test are asked.", ""),
    "repeats-within-test": ("A text that stands twice in test, but not in train, is no leak.", ""),
    "first-copy-only": ("Each text is named once: every place in test that holds one is asked.", ""),
    "part-of-a-text": (
        "A text counts as repeated when it is a *part* of one in train: the whole is asked.",
        "",
    ),
    "reversed": ("These are the texts that do not stand in train: the others are asked.", ""),
    "marks-for-places": ("This is a 0 or 1 for each text of test: the places of the ones are asked.", ""),
    "counted-from-one": ("Places are counted from 0.", ""),
}


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
        (["la pêche"], ["le péché", "La fin", "la fin", "LA PÊCHE", "la peche", "La pêche..."]),
    )
    for train, test in fixed:
        yield Call((train, test))
    train = [sentence(n) for n in (3, 4, 5)]
    noisy = [train[1].upper() + " !", new, train[2].replace(" ", ", "), other, train[1], other.title()]
    drawn.shuffle(noisy)
    yield Call((train, noisy))


REPEATED_TEXTS = Exercise(
    name="repeated_texts",
    signature="repeated_texts(train, test)",
    lesson=15,
    section="Repeats that no comparison of strings finds",
    rule=(
        "a list of ints: the places in `test`, counted from 0 and in order, of texts with the same words in "
        "the same order as some text of `train`. Words are runs of letters and digits; case does not count."
    ),
    read=ids,
    solve=_repeated,
    calls=_repeated_calls,
    mistakes=family(
        _repeated,
        _REPEATED_SLIPS,
        (),
        together=("case-kept", "words-joined", "counted-from-one", "places-of-train", "repeats-within-test"),
    ),
)


EXERCISES = (REPEATED_TEXTS,)
