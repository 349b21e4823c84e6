"""A checker of French grammar: the mistakes that a teacher would mark in a sentence.

It knows the forms of the tables and nothing of the rules that write sentences, so it can judge those rules,
and count the mistakes in sentences of a model. It reads any list of words, and names unknown ones.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import NamedTuple

from tinyworld.lexicon import Lexicon, adjective_forms, french_plural

# determiner: (genders, number)
DETERMINERS = {
    **{"le": ("m", "sg"), "la": ("f", "sg"), "l'": ("mf", "sg"), "les": ("mf", "pl")},
    **{"un": ("m", "sg"), "une": ("f", "sg"), "des": ("mf", "pl"), "du": ("m", "sg")},
    **{"au": ("m", "sg"), "aux": ("mf", "pl"), "ce": ("m", "sg"), "cet": ("m", "sg")},
    **{"cette": ("f", "sg"), "ces": ("mf", "pl"), "quel": ("m", "sg"), "quelle": ("f", "sg")},
    **{"quels": ("m", "pl"), "quelles": ("f", "pl")},
}
ENDINGS = {"": ("m", "sg"), "e": ("f", "sg"), "s": ("m", "pl"), "es": ("f", "pl")}  # as of participles
# kind of verb: the person of each of its columns
PERSONS = {
    "liking": {"french": "1sg"},
    "touching": {"french": "3sg", "second": "3pl"},
    "advice": {"french": "2pl"},
}
PRONOUNS = {"il": ("m", "sg"), "elle": ("f", "sg"), "ils": ("m", "pl"), "elles": ("f", "pl")}
# fmt: off
PLAIN = frozenset({
    "à", "ai", "aimez", "amis", "bonjour", "bref", "c'", "cause", "d'", "de", "en", "et", "fois",
    "franchement", "grâce", "honnêtement", "il", "j'", "je", "lecteurs", "les", "lu", "mais", "malgré",
    "me", "m'", "n'", "ne", "ni", "outre", "pas", "plus", "pourtant", "puis", "qu'", "que", "revanche",
    "si", "toutefois", "tous", "vous", ",", ".", "!",
})
# fmt: on
VOWELS = "aeiouàâéèêëîïôœ"
BREATHED = ("halet", "hâtif", "hideu", "haut")  # adjectives whose h forbids elision


@dataclass
class FrenchForms:
    """What each French form may be."""

    lexicon: Lexicon
    nouns: dict[str, list[tuple[str, str]]] = field(default_factory=dict)  # gender, number
    adjectives: dict[str, list[tuple[str, str, str]]] = field(default_factory=dict)  # and "before" or "after"
    participles: dict[str, list[tuple[str, str]]] = field(default_factory=dict)
    verbs: dict[str, set[str]] = field(default_factory=dict)  # person and number, as "3sg"
    special: dict[str, str] = field(default_factory=dict)  # before a vowel, such as "beau": "bel"

    def __post_init__(self) -> None:
        tables = self.lexicon
        self._breathed = {row["french"] for row in (*tables.nouns, *tables.verbs) if row["initial"] == "c"}
        self._breathed |= {row["second"] for row in tables.verbs if row["initial"] == "c"}
        for row in tables.nouns:
            self.nouns.setdefault(row["french"], []).append((row["gender"], "sg"))
            if (plural := french_plural(row)) != "-":
                self.nouns.setdefault(plural, []).append((row["gender"], "pl"))
        for row in tables.adjectives:
            forms = adjective_forms(row)
            for gender, number in ENDINGS.values():
                shapes = self.adjectives.setdefault(forms[gender + number[0]], [])
                shapes.append((gender, number, row["place"]))
            if forms["mv"] != forms["ms"]:
                self.special[forms["ms"]] = forms["mv"]
                self.adjectives.setdefault(forms["mv"], []).append(("m", "sg", "before"))
        for row in tables.verbs:
            for column, person in PERSONS[row["kind"]].items():
                self.verbs.setdefault(row[column], set()).add(person)
        made = [row["french"] for row in tables.particles if row["class"] == "made"]
        seconds = [row["second"] for row in tables.verbs if row["kind"] == "liking"]
        for stem in ("lu", *made, *seconds):
            for ending, shape in ENDINGS.items():
                self.participles.setdefault(stem + ending, []).append(shape)
        for form, person in (("est", "3sg"), ("sont", "3pl"), ("ai", "1sg"), ("aimez", "2pl")):
            self.verbs.setdefault(form, set()).add(person)
        self.verbs |= {"parle": {"1sg", "3sg"}, "parlent": {"3pl"}}
        self._plain = {*PLAIN, *DETERMINERS, *PRONOUNS, "l'", *(row["french"] for row in tables.adverbs)}
        self._plain |= {row["french"] for row in tables.particles}

    def sounds_like_vowel(self, word: str) -> bool:
        """Whether a word asks for elision before it."""
        if word[:1] == "h":
            stem = word.removesuffix("s").removesuffix("e")
            breathed = word in self._breathed or stem in self._breathed or word.startswith(BREATHED)
            return not breathed
        return word[:1] in VOWELS and bool(word)

    def known(self, word: str) -> bool:
        """Whether the tables have a word."""
        tables = (self.nouns, self.adjectives, self.participles, self.verbs, self._plain)
        return any(word in table for table in tables)


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
        """The mistakes of a sentence, given without the capital of its first word."""
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
        goes_on = following in forms.adjectives or following in forms.participles
        if word in (",", ".", "!") or (word in ("et", "mais") and not goes_on):
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
        number = DETERMINERS.get(determiner, ("", "pl"))[1]
        readings = forms.nouns[noun_word]  # where a form is singular and plural at once, its article decides
        noun = Shape(noun_word, *next((reading for reading in readings if reading[1] == number), readings[0]))
        belongs = words[start] in (*PREPOSITIONS, "du", "des", "au", "aux") and (
            previous in INTRODUCING or previous in forms.nouns or previous in forms.adjectives
        )
        self._check_determiner(determiner, words[begin], noun, bool(before), belongs)
        for adjective in before:
            self._check_adjective(adjective, noun, "before")
        for adjective in words[place:end]:
            self._check_adjective(adjective, noun, "after")
        self._check_special(before, noun)
        clause = self._clause
        if not belongs and previous != "malgré":
            clause.first = clause.first or noun
            if clause.person == "3" and not clause.auxiliary:
                clause.subject = noun
        self._place = end

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


FINAL = (".", "!")
MARKS = (*FINAL, ",")


@cache
def _checker() -> FrenchChecker:
    return FrenchChecker(Lexicon())


def check_sentence(words: Sequence[str]) -> list[str]:
    """The mistakes in one French sentence: agreement, elision, contraction, articles, capitals, punctuation.

    Parameters
    ----------
    words : sequence of str
        Its units, such as those of `SentencePair.french` or of `World.split`.

    Returns
    -------
    list of str
        One line a mistake; empty if there is none.

    Examples
    --------
    >>> check_sentence(["L'", "histoire", "est", "belle", "."])
    []
    >>> check_sentence(["La", "histoire", "est", "beau", "."])
    ["'la' must be elided before 'histoire'", "'beau' must agree with 'histoire' (f sg)"]
    """
    if not words:
        return ["a sentence must have words, got none"]
    return shape_errors(words) + _checker().errors([words[0][:1].lower() + words[0][1:], *words[1:]])


def shape_errors(words: Sequence[str], capitals: Collection[str] = ()) -> list[str]:
    """Mistakes of capitals and punctuation; `capitals` are words that have a capital everywhere."""
    errors = []
    if not words[0][:1].isupper():
        errors.append(f"the first word must have a capital, got {words[0]!r}")
    if words[-1] not in FINAL:
        errors.append(f"the last word must be one of {' '.join(FINAL)}, got {words[-1]!r}")
    for before, word in zip(words, words[1:], strict=False):
        if word[:1].isupper() and word not in capitals:
            errors.append(f"only the first word may have a capital, got {word!r}")
        if before in MARKS and word in MARKS:
            errors.append(f"two marks must not meet, got {before!r} {word!r}")
        elif before in FINAL:
            errors.append(f"a sentence must end at its {before!r}, got {word!r} after it")
    return errors
