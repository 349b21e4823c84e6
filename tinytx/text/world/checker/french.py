"""What a teacher would mark in a French sentence."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from tinytx.text.world.checker.french_forms import DETERMINERS, PRONOUNS, FrenchForms
from tinytx.text.world.lexicon import Lexicon

ELIDED = {"le": "l'", "la": "l'", "je": "j'", "me": "m'", "ne": "n'", "de": "d'", "que": "qu'"}
CONTRACTED = {("de", "le"): "du", ("de", "les"): "des", ("à", "le"): "au", ("à", "les"): "aux"}
BEFORE_VOWEL = {"ce": "cet", "du": "de l'", "au": "à l'"}  # and must not stand there themselves
CLITICS = {"l'": "sg", "le": "sg", "la": "sg", "les": "pl"}
PREPOSITIONS = ("de", "d'", "à")
INTRODUCING = ("grâce", "cause", "parle", "parlent")  # what follows with "de" or "à" belongs to them


class Shape(NamedTuple):
    """Gender and number of a noun, with the word itself for messages."""

    word: str
    gender: str
    number: str

    def __str__(self) -> str:
        return f"{self.word!r} ({self.gender} {self.number})"


IT = Shape("c'", "m", "sg")


@dataclass
class Clause:
    """What has been read since the last comma."""

    subject: Shape | None = None
    person: str = "3"
    first: Shape | None = None  # first noun, which a later pronoun stands for
    object_before: Shape | None = None
    auxiliary: str = ""
    negated: bool = False
    denied: bool = False
    outer: Shape | None = None  # subject outside a relative clause


class FrenchChecker:
    """Judges French sentences by the forms of a lexicon."""

    def __init__(self, lexicon: Lexicon) -> None:
        self.forms = FrenchForms(lexicon)

    def errors(self, words: Sequence[str]) -> list[str]:
        """Name the mistakes of a sentence, whose first word comes without its capital."""
        unknown = [f"unknown word {word!r}" for word in words if not self.forms.known(word)]
        return unknown + self._contacts(words) + _Reading(self.forms, words).errors()

    def _contacts(self, words: Sequence[str]) -> list[str]:
        errors = []
        for word, following in zip(words, words[1:], strict=False):
            if (word, following) in CONTRACTED:
                errors.append(f"{word} {following} must be contracted to {CONTRACTED[word, following]!r}")
            vowel = self.forms.sounds_like_vowel(following)
            if vowel and (word in ELIDED or (word, following) == ("ce", "est")):
                errors.append(f"{word!r} must be elided before {following!r}")
            elif word.endswith("'") and not vowel:
                errors.append(f"{word!r} must not be elided before {following!r}")
            elif word == "si" and following in ("il", "ils"):
                errors.append(f"'si' must be elided before {following!r}")
        return errors


class _Reading:
    """Reads a sentence from left to right, keeping in mind what must agree with what."""

    def __init__(self, forms: FrenchForms, words: Sequence[str]) -> None:
        self._forms, self._words = forms, [*words, ""]
        self._errors: list[str] = []
        self._clause = Clause()
        self._antecedent: Shape | None = None
        self._last_noun: Shape | None = None
        self._place = 0

    def errors(self) -> list[str]:
        while self._place < len(self._words) - 1:
            self._read()
        self._end_clause()
        return self._errors

    def _read(self) -> None:
        word, following = self._words[self._place], self._words[self._place + 1]
        forms, clause = self._forms, self._clause
        if word in (",", ".", "!") or (word in ("et", "mais") and not self._goes_on(following)):
            self._end_clause()
        elif word in CLITICS and following in forms.verbs:
            self._clitic(word)
        elif word in ("ce", "c'") and following in ("est", "sont", "n'", "ne"):
            clause.subject, clause.person = IT, "3"
        elif self._begins_phrase(word, following):
            return self._noun_phrase()
        elif word in PRONOUNS:
            self._pronoun(word)
        elif word in ("je", "j'", "vous"):
            clause.subject, clause.person = None, "2pl" if word == "vous" else "1sg"
        elif word in ("que", "qu'"):
            clause.object_before, clause.outer = clause.subject, clause.subject
        elif word in ("ne", "n'"):
            clause.negated = True
        elif word in ("pas", "ni"):
            clause.denied = True
        elif word in forms.verbs and not (clause.auxiliary and word in forms.participles):
            self._verb(word)
        elif word in forms.participles and clause.auxiliary:
            self._participle(word)
        elif word in forms.adjectives:
            self._predicate(word)
        self._place += 1

    def _goes_on(self, word: str) -> bool:
        return word in self._forms.adjectives or word in self._forms.participles

    def _begins_phrase(self, word: str, following: str) -> bool:
        if word in DETERMINERS:
            return True
        nominal = (
            following in DETERMINERS or following in self._forms.nouns or following in self._forms.adjectives
        )
        return (word in PREPOSITIONS and nominal) or word in self._forms.nouns

    def _end_clause(self) -> None:
        clause = self._clause
        if clause.negated and not clause.denied:
            self._errors.append("'ne' must have its 'pas' or 'ni'")
        if clause.denied and not clause.negated:
            self._errors.append("'pas' or 'ni' must have its 'ne'")
        self._antecedent = clause.first or self._antecedent
        self._clause = Clause()

    # --- noun phrases -------------------------------------------------------------------------------

    def _noun_phrase(self) -> None:
        words, forms, start = self._words, self._forms, self._place
        previous = words[start - 1] if start else ""
        place = start + (words[start] in PREPOSITIONS and words[start + 1] in DETERMINERS)
        determiner = words[place] if words[place] in DETERMINERS or words[place] in PREPOSITIONS else ""
        place += bool(determiner)
        begin = place
        while words[place] in forms.adjectives and words[place] not in forms.nouns:
            place += 1
        if words[place] not in forms.nouns:  # something else: read on after the determiner
            self._place = max(begin, start + 1)
            return
        before, noun_word = words[begin:place], words[place]
        place += 1
        end = place
        while words[end] in forms.adjectives:
            end += 1
        noun = self._noun(noun_word, determiner, [*before, *words[place:end]])
        belongs = words[start] in (*PREPOSITIONS, "du", "des", "au", "aux") and (
            previous in INTRODUCING or previous in forms.nouns or previous in forms.adjectives
        )
        self._check_determiner(determiner, words[begin], noun, bool(before), belongs)
        for adjective in before:
            self._check_adjective(adjective, noun, "before")
        for adjective in words[place:end]:
            self._check_adjective(adjective, noun, "after")
        self._check_special(before, noun)
        self._enter(noun, belongs or previous == "malgré")
        self._place = end

    def _noun(self, word: str, determiner: str, adjectives: Sequence[str]) -> Shape:
        """Choose, where a form is singular and plural at once, what its neighbours agree to."""
        readings = self._forms.nouns[word]
        number = DETERMINERS.get(determiner, ("", "pl"))[1]
        gender, number = next((r for r in readings if r[1] == number), readings[0])
        return Shape(word, gender, number)

    def _check_determiner(
        self, word: str, following: str, noun: Shape, adjective: bool, belongs: bool
    ) -> None:
        vowel = self._forms.sounds_like_vowel(following)
        if not word:
            self._errors.append(f"{noun.word!r} must have an article")
        elif word in PREPOSITIONS:
            if noun.number == "sg" or word == "à":
                self._errors.append(f"{noun.word!r} must have an article after {word!r}")
            elif not belongs and not adjective:
                self._errors.append(f"{word!r} must be 'des' before {following!r}")
        else:
            genders, number = DETERMINERS[word]
            if noun.gender not in genders or noun.number != number:
                self._errors.append(f"{word!r} must agree with {noun}")
            elif word in BEFORE_VOWEL and vowel:
                self._errors.append(f"{word!r} must be {BEFORE_VOWEL[word]!r} before {following!r}")
            elif word == "cet" and not vowel:
                self._errors.append(f"'cet' must be 'ce' before {following!r}")
            elif word == "des" and adjective and not belongs:
                self._errors.append(f"'des' must be 'de' before {following!r}")

    def _check_adjective(self, word: str, noun: Shape, place: str) -> None:
        readings = self._forms.adjectives[word]
        if (noun.gender, noun.number) not in [reading[:2] for reading in readings]:
            self._errors.append(f"{word!r} must agree with {noun}")
        if place not in [reading[2] for reading in readings]:
            other = "before" if place == "after" else "after"
            self._errors.append(f"{word!r} must stand {other} {noun.word!r}")

    def _check_special(self, adjectives: Sequence[str], noun: Shape) -> None:
        special = self._forms.special
        vowel = self._forms.sounds_like_vowel(noun.word)
        for word in adjectives:
            if word in special and vowel and noun.number == "sg":
                self._errors.append(f"{word!r} must be {special[word]!r} before {noun.word!r}")
            elif word in special.values() and not vowel:
                self._errors.append(f"{word!r} must not stand before {noun.word!r}")

    def _enter(self, noun: Shape, belongs: bool) -> None:
        clause = self._clause
        if belongs:
            return
        clause.first = clause.first or noun
        if clause.person == "3" and not clause.auxiliary:
            clause.subject = noun

    # --- around the verb ----------------------------------------------------------------------------

    def _clitic(self, word: str) -> None:
        if self._antecedent and self._antecedent.number != CLITICS[word]:
            self._errors.append(f"{word!r} must agree with {self._antecedent}")
        self._clause.object_before = self._antecedent

    def _pronoun(self, word: str) -> None:
        gender, number = PRONOUNS[word]
        if self._antecedent and (self._antecedent.gender, self._antecedent.number) != (gender, number):
            self._errors.append(f"{word!r} must agree with {self._antecedent}")
        self._clause.subject, self._clause.person = Shape(word, gender, number), "3"

    def _verb(self, word: str) -> None:
        clause = self._clause
        person = clause.person
        if person == "3":
            person = "3" + clause.subject.number if clause.subject else ""
        imperative = "2pl" in self._forms.verbs[word]
        if person and person not in self._forms.verbs[word] and not imperative:
            subject = str(clause.subject) if clause.subject else {"1sg": "'je'", "2pl": "'vous'"}[person]
            self._errors.append(f"{word!r} must agree with {subject}")
        clause.auxiliary = word

    def _participle(self, word: str) -> None:
        clause = self._clause
        if clause.auxiliary == "ai":
            wanted = clause.object_before or Shape("ai", "m", "sg")
        elif clause.subject:
            wanted = clause.subject
        else:
            return
        if (wanted.gender, wanted.number) not in self._forms.participles[word]:
            self._errors.append(f"{word!r} must agree with {wanted}")
        if clause.outer:  # the relative clause ends here
            clause.subject, clause.outer, clause.object_before = clause.outer, None, None
            clause.person, clause.auxiliary = "3", ""

    def _predicate(self, word: str) -> None:
        subject = self._clause.subject
        if subject is None:
            return
        readings = [reading[:2] for reading in self._forms.adjectives[word]]
        if (subject.gender, subject.number) not in readings or word in self._forms.special.values():
            self._errors.append(f"{word!r} must agree with {subject}")
