"""The lexicon: words from the tables in `tables/`, as choices with features.

A *choice* is one way to fill a slot of a sentence: a noun in the singular, an adjective, a verb. It has a
weight for each book and a few features; the grammar of each language asks for the features that it needs
(gender, number, first sound, place ...) and never for a word itself. A new line in a table extends the world.
"""

from __future__ import annotations

import csv
import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

TABLES = Path(__file__).parent / "tables"
COLUMNS = {
    "nouns": "french plural gender initial english english_plural role genre",
    "adjectives": "masculine feminine masculine_plural before_vowel place of degree english polarity",
    "verbs": "kind french second initial english english_second polarity",
    "adverbs": "french english polarity",
    "particles": "class french english",
    "sentences": "weight polarity french english",
    "openers": "class french english",
}
Row = dict[str, str]
WORK = "work"  # the role of nouns for the book itself
GENRES = ("crime", "love", "history", "fantasy", "travel")

OWN_GENRE, ANY_GENRE = 0.42, 0.55  # the rest of a noun's chance is spread over the nouns of other genres
OWN_BOOK, ANY_BOOK = 0.58, 0.38  # the same for nouns for the book itself: "cette saga", "ce roman"
PLURAL_SHARE = 0.25
OPTIONAL_SHARE = 0.20  # how often an optional adjective ("adj0?") is there
ZIPF_SHIFT = 1.0  # the word at rank r (from 0) of its table has a weight of 1 / (r + ZIPF_SHIFT)


@dataclass(frozen=True)
class Choice:
    """One way to fill a slot."""

    weights: tuple[float, ...]  # probability of the choice within its slot, one for each kind of book
    features: Mapping[str, str]  # "gender", "number", "initial", "en", ...


@dataclass(frozen=True)
class Book:
    """The subject of a review: a genre, and the usual noun for such a book."""

    genre: str
    noun: str


def first_sound_english(word: str) -> str:
    """Say whether an English word takes "an" (``"v"``) or "a" (``"c"``).

    Examples
    --------
    >>> [first_sound_english(word) for word in ("idyll", "hour", "useless", "unbearable", "unique")]
    ['v', 'v', 'c', 'v', 'c']
    """
    word = word.lower()
    if word.startswith(("hour", "honest", "heir")):
        return "v"
    if re.match("us|uni(?!n|m)|eu|one", word):
        return "c"
    return "v" if word[0] in "aeiou" else "c"


def zipf(n: int) -> list[float]:
    """Give the probabilities of `n` ranks, each proportional to 1 / (rank + `ZIPF_SHIFT`)."""
    raw = [1.0 / (rank + ZIPF_SHIFT) for rank in range(n)]
    return [weight / sum(raw) for weight in raw]


def _starts_with_vowel(word: str) -> str:
    return "v" if word[0] in "aeiouéèêâàîœ" else "c"


class Lexicon:
    """All words of the world, with their forms in French and English, read from a folder of tables.

    A ValueError names file and line where a column is missing, or a row has a field too many or too few.
    """

    def __init__(self, tables: Path = TABLES) -> None:
        self.nouns = read_table(tables / "nouns.tsv")
        self.adjectives = read_table(tables / "adjectives.tsv")
        self.verbs = read_table(tables / "verbs.tsv")
        self.adverbs = read_table(tables / "adverbs.tsv")
        self.particles = read_table(tables / "particles.tsv")
        self.books = tuple(_books(self.nouns))

    def noun_choices(self, roles: Sequence[str], options: frozenset[str]) -> list[Choice]:
        """List the nouns of some roles, in the singular, the plural or both (options ``sg``, ``pl``).

        A genre prefers its own nouns: of the chance of a role, `ANY_GENRE` goes to nouns of any genre and
        `OWN_GENRE` to the nouns of that genre, as far as the role has both kinds. Among the nouns for the
        work itself, `OWN_BOOK` goes to the one noun that the reviewed book is called by.
        """
        choices = []
        for row, weights in self._noun_weights(roles):
            has_plural = row["plural"] != "-" and "sg" not in options
            if "pl" in options and not has_plural:
                raise ValueError(
                    f"a slot with the option pl needs nouns that have a plural, got {row['french']!r}"
                )
            share = 1.0 if "pl" in options else PLURAL_SHARE if has_plural else 0.0
            for number, chance in (("sg", 1.0 - share), ("pl", share)):
                if chance > 0:
                    features = _noun_features(row, number)
                    choices.append(Choice(tuple(w * chance for w in weights), features))
        return choices

    def adjective_choices(self, polarity: str, options: frozenset[str]) -> list[Choice]:
        """List the adjectives of a polarity (``+``, ``-`` or ``0``); the options narrow the list.

        ``any`` keeps those said of persons too, ``degree`` those that take "very", ``odd`` and ``even`` every
        other rank (so that two adjectives of one sentence differ), ``?`` adds the choice of none.
        """
        rows = [row for row in self.adjectives if row["polarity"] == polarity]
        if "any" in options:
            rows = [row for row in rows if row["of"] == "any"]
        if "degree" in options:
            rows = [row for row in rows if row["degree"] == "yes"]
        if options & {"odd", "even"}:
            rows = rows[1::2] if "odd" in options else rows[::2]
        share = OPTIONAL_SHARE if "?" in options else 1.0
        choices = self._ranked(rows, _adjective_features, share)
        if share < 1.0:
            none = {"lead": "-", "an": "-", "en": "", "ms": ""}
            choices.append(Choice((1.0 - share,) * len(self.books), none))
        return choices

    def verb_choices(self, kind: str, polarity: str) -> list[Choice]:
        """List the verbs of a kind (``liking``, ``touching``, ``advice``) and polarity."""
        rows = [row for row in self.verbs if row["kind"] == kind and row["polarity"] == polarity]
        return self._ranked(rows, dict)

    def adverb_choices(self, polarity: str) -> list[Choice]:
        """List the adverbs of manner of a polarity."""
        return self._ranked([row for row in self.adverbs if row["polarity"] == polarity], _in_both)

    def particle_choices(self, kind: str) -> list[Choice]:
        """List the neutral particles of a class: adverbs of ``degree``, or ``made`` (how a book was made)."""
        return self._ranked([row for row in self.particles if row["class"] == kind], _in_both)

    def _ranked(
        self, rows: list[Row], features: Callable[[Row], Mapping[str, str]], share: float = 1.0
    ) -> list[Choice]:
        return [
            Choice((chance * share,) * len(self.books), features(row))
            for row, chance in zip(rows, zipf(len(rows)), strict=True)
        ]

    def _noun_weights(self, roles: Sequence[str]) -> Iterator[tuple[Row, list[float]]]:
        """Pair the nouns of some roles, each as likely as the others, with their chances by book."""
        for role in roles:
            nouns = [row for row in self.nouns if row["role"] == role]
            if not nouns:
                raise ValueError(
                    f"the table of nouns must hold some of each role in use, got none of {role!r}"
                )
            by_book = [_weights_within_role(nouns, book) for book in self.books]
            for row, weights in zip(nouns, zip(*by_book, strict=True), strict=True):
                yield row, [weight / len(roles) for weight in weights]


def read_table(path: Path) -> list[Row]:
    """Read a table: one header line, then rows of as many fields, separated by tabs."""
    with open(path, encoding="utf-8", newline="") as file:
        header, *rows = [*csv.reader(file, delimiter="\t", quoting=csv.QUOTE_NONE)] or [[]]
    if lacking := [column for column in COLUMNS.get(path.stem, "").split() if column not in header]:
        raise ValueError(f"{path.name} line 1 must have the column {lacking[0]}, got {header}")
    for line, row in enumerate(rows, start=2):
        if len(row) != len(header):
            raise ValueError(f"{path.name} line {line} must have {len(header)} fields, got {len(row)}: {row}")
    return [dict(zip(header, row, strict=True)) for row in rows]


def _books(nouns: list[Row]) -> Iterator[Book]:
    for genre in GENRES:
        own = [row["french"] for row in nouns if row["role"] == WORK and row["genre"] == genre]
        yield from (Book(genre, noun) for noun in own or [""])


def _weights_within_role(nouns: list[Row], book: Book) -> list[float]:
    """Give the chance of each noun of one role in reviews of a book."""
    is_work = nouns[0]["role"] == WORK
    own_share, any_share = (OWN_BOOK, ANY_BOOK) if is_work else (OWN_GENRE, ANY_GENRE)

    def group(row: Row) -> str:
        if row["genre"] == "any":
            return "any"
        own = row["french"] == book.noun if is_work else row["genre"] == book.genre
        return "own" if own else "other"

    shares = {"any": any_share, "own": own_share, "other": 1.0 - any_share - own_share}
    sizes = Counter(group(row) for row in nouns)
    total = sum(shares[name] for name in sizes)
    chances = {name: iter(zipf(size)) for name, size in sizes.items()}
    return [shares[group(row)] / total * next(chances[group(row)]) for row in nouns]


def french_plural(row: Mapping[str, str]) -> str:
    """The plural of a noun of the table; "-" where it has none."""
    return row["french"] + "s" if row["plural"] == "." else row["plural"]


def adjective_forms(row: Mapping[str, str]) -> dict[str, str]:
    """The forms of an adjective of the table: ms, fs, mp and fp by gender and number, mv before a vowel."""
    masculine, feminine = row["masculine"], row["feminine"]
    return {
        "ms": masculine,
        "fs": feminine,
        "mp": masculine + "s" if row["masculine_plural"] == "." else row["masculine_plural"],
        "fp": feminine + "s",
        "mv": masculine if row["before_vowel"] == "." else row["before_vowel"],
    }


def _in_both(row: Row) -> dict[str, str]:
    return {"fr": row["french"], "en": row["english"]}


def _noun_features(row: Row, number: str) -> dict[str, str]:
    singular = number == "sg"
    english_plural = row["english"] + "s" if row["english_plural"] == "." else row["english_plural"]
    english = row["english"] if singular else english_plural
    return {
        "gender": row["gender"],
        "number": number,
        "initial": row["initial"],
        "fr": row["french"] if singular else french_plural(row),
        "en": english,
        "an": first_sound_english(english),
        "countable": "no" if row["english_plural"] == "mass" else "yes",
    }


def _adjective_features(row: Row) -> dict[str, str]:
    return {
        "lead": _starts_with_vowel(row["masculine"]) if row["place"] == "before" else "-",
        "an": first_sound_english(row["english"]),
        "en": row["english"],
        **adjective_forms(row),
    }
