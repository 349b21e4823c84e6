"""An independent judge of English sentences: the mistakes that a teacher would mark."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cache

from tinyworld.checker import shape_errors
from tinyworld.lexicon import Lexicon

CAPITALS = ("I", "French")  # have their capital everywhere

# fmt: off
PLAIN = frozenset({
    "I", "a", "an", "and", "because", "besides", "but", "despite", "did", "do", "does", "everyone",
    "frankly", "friends", "hello", "honestly", "however", "if", "in", "is", "are", "it", "like", "me",
    "moreover", "neither", "nor", "not", "of", "read", "readers", "short", "speak", "speaks", "that",
    "the", "them", "then", "these", "they", "this", "thanks", "time", "to", "what", "yet", "you",
    "nevertheless", ",", ".", "!",
})
# fmt: on
NUMBERED = {"is": "sg", "are": "pl", "does": "sg", "do": "pl", "speaks": "sg", "speak": "pl"}
PRONOUNS = {"it": "sg", "they": "pl"}
ARTICLES = ("a", "an")
DETERMINERS = ("a", "an", "the", "this", "these")
CONSONANT_SOUND = ("us", "uni", "eu", "one")
VOWEL_SOUND = ("hour", "honest", "heir", "unin", "unim")


@dataclass
class EnglishChecker:
    """Judges English sentences by the forms of a lexicon."""

    lexicon: Lexicon
    nouns: dict[str, str] = field(default_factory=dict)  # form -> "sg", "pl" or "mass"
    verbs: dict[str, str] = field(default_factory=dict)  # form -> "sg" or "pl"

    def __post_init__(self) -> None:
        tables = self.lexicon
        for row in tables.nouns:
            plural = row["english_plural"]
            self.nouns[row["english"]] = "mass" if plural == "mass" else "sg"
            if plural not in ("-", "mass"):
                self.nouns[row["english"] + "s" if plural == "." else plural] = "pl"
        self.adjectives = {row["english"] for row in tables.adjectives}
        touching = [row for row in tables.verbs if row["kind"] == "touching"]
        self.verbs |= {row["english"]: "sg" for row in touching} | {
            row["english_second"]: "pl" for row in touching
        }
        others = [row for row in tables.verbs if row["kind"] != "touching"]
        self.plain = {*PLAIN, *(row["english"] for row in (*tables.adverbs, *tables.particles))}
        self.plain |= {form for row in others for form in (row["english"], row["english_second"])}

    def known(self, word: str) -> bool:
        """Whether the tables have a word."""
        return any(word in table for table in (self.nouns, self.adjectives, self.verbs, self.plain))

    def errors(self, words: Sequence[str]) -> list[str]:
        """The mistakes of a sentence, given without the capital of its first word."""
        unknown = [f"unknown word {word!r}" for word in words if not self.known(word)]
        return unknown + _Reading(self, words).errors()


class _Reading:
    """Reads a sentence from left to right, keeping in mind the number of the subject."""

    def __init__(self, checker: EnglishChecker, words: Sequence[str]) -> None:
        self._forms, self._words = checker, [*words, ""]
        self._errors: list[str] = []
        self._subject = self._first = self._antecedent = ""  # "sg", "pl", or nothing yet
        self._verb_seen = False
        self._place = 0

    def errors(self) -> list[str]:
        while self._place < len(self._words) - 1:
            self._read()
        return self._errors

    def _read(self) -> None:
        word, forms = self._words[self._place], self._forms
        previous = self._words[self._place - 1] if self._place else ""
        if word == ",":
            self._antecedent = self._first or self._antecedent
            self._subject, self._first, self._verb_seen = "", "", False
        elif self._begins_phrase(word):
            return self._noun_phrase(previous)
        elif word in ("I", "you", "that"):
            self._subject = self._subject if word == "that" else self._subject or "other"
        elif word in PRONOUNS and not self._verb_seen:
            self._pronoun(word)
        elif word in ("it", "them"):
            self._object(word)
        elif word in NUMBERED or (word in forms.verbs and previous != "not"):
            self._verb(word)
        elif word in ("liked", "read", "like") or word in forms.plain and self._subject == "other":
            self._verb_seen = True
        self._place += 1

    def _begins_phrase(self, word: str) -> bool:
        if word in self._forms.verbs and self._subject:
            return False
        if word in DETERMINERS or word in self._forms.nouns:
            return True
        place = self._place
        while self._words[place] in self._forms.adjectives:
            place += 1
        return place > self._place and self._words[place] in self._forms.nouns

    def _noun_phrase(self, previous: str) -> None:
        words, forms = self._words, self._forms
        determiner = words[self._place] if words[self._place] in DETERMINERS else ""
        place = begin = self._place + bool(determiner)
        while words[place] in forms.adjectives:
            place += 1
        if words[place] not in forms.nouns:
            self._place = max(begin, self._place + 1)
            return
        self._check_determiner(determiner, words[begin], words[place])
        number = "pl" if forms.nouns[words[place]] == "pl" else "sg"
        if previous not in ("of", "to", "despite"):
            self._first = self._first or number
            if not self._subject and not self._verb_seen:
                self._subject = number
        self._place = place + 1

    def _check_determiner(self, determiner: str, following: str, noun: str) -> None:
        kind = self._forms.nouns[noun]
        vowel = following[:1] in "aeiou" and not following.startswith(CONSONANT_SOUND)
        vowel = vowel or following.startswith(VOWEL_SOUND)
        if not determiner and kind == "sg":
            self._errors.append(f"{noun!r} must have an article")
        elif determiner in ARTICLES and kind != "sg":
            self._errors.append(f"{determiner!r} must not stand before {noun!r} ({kind})")
        elif determiner in ARTICLES and vowel != (determiner == "an"):
            self._errors.append(f"{determiner!r} must be {'an' if vowel else 'a'!r} before {following!r}")
        elif determiner in ("this", "these") and (determiner == "these") != (kind == "pl"):
            self._errors.append(f"{determiner!r} must agree with {noun!r} ({kind})")

    def _pronoun(self, word: str) -> None:
        wanted, previous = self._antecedent, self._words[self._place - 1]
        all_that_was_said = word == "it" and previous == "and" and self._speaks()
        if wanted not in ("", PRONOUNS[word]) and not all_that_was_said:
            self._errors.append(f"{word!r} must agree with its noun ({wanted})")
        self._subject = PRONOUNS[word]

    def _speaks(self) -> bool:
        """After "speak of ..., and it is", the pronoun stands for all that was said."""
        return any(word in ("speak", "speaks") for word in self._words[: self._place])

    def _object(self, word: str) -> None:
        number = "sg" if word == "it" else "pl"
        if self._antecedent and self._antecedent != number:
            self._errors.append(f"{word!r} must agree with its noun ({self._antecedent})")

    def _verb(self, word: str) -> None:
        number = NUMBERED.get(word) or self._forms.verbs[word]
        self._verb_seen = True
        if self._subject in ("sg", "pl") and self._subject != number:
            self._errors.append(f"{word!r} must agree with its subject ({self._subject})")


@cache
def _checker() -> EnglishChecker:
    return EnglishChecker(Lexicon())


def check_english(words: Sequence[str]) -> list[str]:
    """The mistakes in one English sentence."""
    first = words[0] if words[0] in CAPITALS else words[0][:1].lower() + words[0][1:]
    return shape_errors(words, CAPITALS) + _checker().errors([first, *words[1:]])
