"""A synchronous grammar: sentences as one abstract structure, written by two languages.

A row of `sentences.tsv` is a *rule*. Its French side declares numbered slots, ``{adj+ 3 1}`` being "slot 3,
an adjective of the sentence's polarity, agreeing with slot 1"; its English side names the same slots in its
own order. A sentence is a rule with filled slots; each language takes its *steps*, each of which writes at
most one word. Only rules and slots are random, so both languages have the same probabilities.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from tinyworld.english import steps as english_steps
from tinyworld.french import declare
from tinyworld.french import steps as french_steps
from tinyworld.lexicon import TABLES, Choice, Lexicon, read_table
from tinyworld.steps import Step, parse

POLARITIES = ("-", "+")  # in the order of the labels 0 and 1


@dataclass(frozen=True)
class Rule:
    """One sentence pattern for one polarity."""

    weight: float  # probability of the rule among those of its polarity
    slots: Mapping[int, list[Choice]]  # what each may hold; weights sum to 1 for every book
    steps: Mapping[str, tuple[Step, ...]]  # how "fr" and "en" write it

    def write(self, language: str, filled: Mapping[int, Choice]) -> list[tuple[str, str | None]]:
        """The words of the sentence, the first without its capital, and their tags."""

        def read(slot: int, feature: str) -> str:
            return filled[slot].features[feature]

        words = [(step.write(read), step.tag) for step in self.steps[language]]
        return [(word, tag) for word, tag in words if word]


def capitalised(words: list[tuple[str, str | None]]) -> list[tuple[str, str | None]]:
    """Give the first word of a sentence its capital."""
    (first, tag), *rest = words
    return [(capital(first), tag), *rest]


def capital(word: str) -> str:
    """Put the first letter of a word in upper case, and leave the others alone."""
    return word[:1].upper() + word[1:]


@dataclass(frozen=True)
class Opener:
    """Words before a sentence: a greeting, or how the sentence follows from the one before."""

    kind: str
    words: Mapping[str, tuple[str, ...]]

    def tagged(self, language: str) -> list[tuple[str, str | None]]:
        """Give the words with their tags: commas, first and last words match, or all match a single one.

        Examples
        --------
        >>> words = {"fr": ("Bonjour", "les", "amis", ","), "en": ("Hello", "friends", ",")}
        >>> [tag for _, tag in Opener("greeting", words).tagged("fr")]
        ['first', None, 'last', 'comma']
        """
        spoken = {side: [word for word in words if word != ","] for side, words in self.words.items()}
        lengths = {len(words) for words in spoken.values()}
        last = len(spoken[language]) - 1

        def tag(place: int) -> str | None:
            if place > last:
                return "comma"
            if place == 0 or 1 in lengths:
                return "first"
            return "last" if place == last else str(-place) if len(lengths) == 1 else None

        return [(word, tag(place)) for place, word in enumerate(self.words[language])]


class Grammar:
    """Rules and openers, read from a folder with `sentences.tsv`, `openers.tsv` and all of a `Lexicon`."""

    def __init__(self, tables: Path = TABLES) -> None:
        self.lexicon = Lexicon(tables)
        rows = read_table(tables / "sentences.tsv")
        self.rules = {polarity: _rules(rows, polarity, self.lexicon) for polarity in POLARITIES}
        self.openers = [
            Opener(
                row["class"], {"fr": tuple(row["french"].split(" ")), "en": tuple(row["english"].split(" "))}
            )
            for row in read_table(tables / "openers.tsv")
        ]


def _rules(rows: Sequence[dict[str, str]], polarity: str, lexicon: Lexicon) -> list[Rule]:
    known = ("both", *POLARITIES)
    if wrong := [row for row in rows if row["polarity"] not in known]:
        raise ValueError(f"the polarity of a sentence must be one of {', '.join(known)}, got {wrong[0]}")
    chosen = [row for row in rows if row["polarity"] in ("both", polarity)]
    total = sum(float(row["weight"]) for row in chosen)
    return [_rule(row, polarity, lexicon, total) for row in chosen]


def _rule(row: dict[str, str], polarity: str, lexicon: Lexicon, total: float) -> Rule:
    french_tokens, english_tokens = parse(row["french"]), parse(row["english"])
    slots: dict[int, list[Choice]] = {}
    attributes: dict[int, int] = {}  # noun slot -> slot of the adjective that belongs to it
    for token in french_tokens:
        slots |= declare(token, lexicon, polarity)
        if token.attribute is not None:
            attributes[token.slots[0]] = token.attribute.slot
    steps = {
        "fr": tuple(step for token in french_tokens for step in french_steps(token)),
        "en": tuple(step for token in english_tokens for step in english_steps(token, attributes)),
    }
    for language, sequence in steps.items():
        if missing := set(slots) - {step.fills for step in sequence}:
            raise ValueError(
                f"each language must fill every slot, {language} leaves {sorted(missing)}: {row}"
            )
    return Rule(float(row["weight"]) / total, slots, steps)
