"""An independent look at grammar: what a teacher would mark in a sentence.

It knows the forms of the tables, and nothing of the rules that write sentences, so that it can judge those
rules, and count the mistakes of a translation by a model. It reads any list of words, and names those it does
not know.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Protocol

from tinytx.text.world.checker.english import EnglishChecker
from tinytx.text.world.checker.french import FrenchChecker
from tinytx.text.world.lexicon import Lexicon

FINAL = (".", "!")
MARKS = (*FINAL, ",")
CAPITALS = ("I", "French")  # have their capital everywhere


class Checker(Protocol):
    """Judges the words of a sentence, given without the capital at its beginning."""

    def errors(self, words: Sequence[str]) -> list[str]:
        """Name each mistake."""
        ...


@cache
def _checker(language: str) -> Checker:
    checkers: dict[str, type[FrenchChecker] | type[EnglishChecker]] = {
        "fr": FrenchChecker,
        "en": EnglishChecker,
    }
    if language not in checkers:
        raise ValueError(f"language must be 'fr' or 'en', got {language!r}")
    return checkers[language](Lexicon())


def check_sentence(words: Sequence[str], language: str = "fr") -> list[str]:
    """Name the mistakes in one sentence: agreement, elision, contraction, articles, capitals, punctuation.

    Parameters
    ----------
    words : sequence of str
        Its units, such as those of `SentencePair.french` or of `World.split`.
    language : {"fr", "en"}

    Returns
    -------
    list of str
        One line a mistake; empty if there is nothing to mark.

    Examples
    --------
    >>> check_sentence(["L'", "histoire", "est", "belle", "."])
    []
    >>> check_sentence(["La", "histoire", "est", "beau", "."])
    ["'la' must be elided before 'histoire'", "'beau' must agree with 'histoire' (f sg)"]
    >>> check_sentence(["it", "is", "an", "novel"], "en")
    ["the first word must have a capital, got 'it'", "the last word must be one of . !, got 'novel'",
     "'an' must be 'a' before 'novel'"]
    """
    checker = _checker(language)
    if not words:
        return ["a sentence must have words, got none"]
    first = words[0] if words[0] in CAPITALS else words[0][:1].lower() + words[0][1:]
    return _shape_errors(words) + checker.errors([first, *words[1:]])


def _shape_errors(words: Sequence[str]) -> list[str]:
    errors = []
    if not words[0][:1].isupper():
        errors.append(f"the first word must have a capital, got {words[0]!r}")
    if words[-1] not in FINAL:
        errors.append(f"the last word must be one of {' '.join(FINAL)}, got {words[-1]!r}")
    for before, word in zip(words, words[1:], strict=False):
        if word[:1].isupper() and word not in CAPITALS:
            errors.append(f"only the first word may have a capital, got {word!r}")
        if before in MARKS and word in MARKS:
            errors.append(f"two marks must not meet, got {before!r} {word!r}")
        elif before in FINAL:
            errors.append(f"a sentence must end at its {before!r}, got {word!r} after it")
    return errors
