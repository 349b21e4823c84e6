"""The forms of French words, as the tables list them."""

from __future__ import annotations

from dataclasses import dataclass, field

from tinytx.text.world.lexicon import Lexicon

# determiner: (genders, number)
DETERMINERS = {
    **{"le": ("m", "sg"), "la": ("f", "sg"), "l'": ("mf", "sg"), "les": ("mf", "pl")},
    **{"un": ("m", "sg"), "une": ("f", "sg"), "des": ("mf", "pl"), "du": ("m", "sg")},
    **{"au": ("m", "sg"), "aux": ("mf", "pl"), "ce": ("m", "sg"), "cet": ("m", "sg")},
    **{"cette": ("f", "sg"), "ces": ("mf", "pl"), "quel": ("m", "sg"), "quelle": ("f", "sg")},
    **{"quels": ("m", "pl"), "quelles": ("f", "pl")},
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
    """What each French form may be.

    Attributes
    ----------
    lexicon : Lexicon
    nouns : dict from str to list of (gender, number)
    adjectives : dict from str to list of (gender, number, place)
        `place` is "before" or "after" the noun.
    participles : dict from str to list of (gender, number)
    verbs : dict from str to set of str
        Person and number, as "3sg".
    special : dict from str to str
        Masculine adjectives with a form of their own before a vowel, such as "beau": "bel".
    """

    lexicon: Lexicon
    nouns: dict[str, list[tuple[str, str]]] = field(default_factory=dict)
    adjectives: dict[str, list[tuple[str, str, str]]] = field(default_factory=dict)
    participles: dict[str, list[tuple[str, str]]] = field(default_factory=dict)
    verbs: dict[str, set[str]] = field(default_factory=dict)
    special: dict[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        tables = self.lexicon
        self._breathed = {row["french"] for row in (*tables.nouns, *tables.verbs) if row["initial"] == "c"}
        self._breathed |= {row["second"] for row in tables.verbs if row["initial"] == "c"}
        for row in tables.nouns:
            self.nouns.setdefault(row["french"], []).append((row["gender"], "sg"))
            if row["plural"] != "-":
                plural = row["french"] + "s" if row["plural"] == "." else row["plural"]
                self.nouns.setdefault(plural, []).append((row["gender"], "pl"))
        for row in tables.adjectives:
            self._add_adjective(row)
        for row in tables.verbs:
            self._add_verb(row)
        made = [row["french"] for row in tables.particles if row["class"] == "made"]
        seconds = [row["second"] for row in tables.verbs if row["kind"] == "liking"]
        for stem in ("lu", *made, *seconds):
            for ending, gender, number in (
                ("", "m", "sg"),
                ("e", "f", "sg"),
                ("s", "m", "pl"),
                ("es", "f", "pl"),
            ):
                self.participles.setdefault(stem + ending, []).append((gender, number))
        for form, person in (("est", "3sg"), ("sont", "3pl"), ("ai", "1sg"), ("aimez", "2pl")):
            self.verbs.setdefault(form, set()).add(person)
        self.verbs |= {"parle": {"1sg", "3sg"}, "parlent": {"3pl"}}
        self._plain = {*PLAIN, *DETERMINERS, *PRONOUNS, "l'", *(row["french"] for row in tables.adverbs)}
        self._plain |= {row["french"] for row in tables.particles}

    def _add_adjective(self, row: dict[str, str]) -> None:
        masculine, feminine = row["masculine"], row["feminine"]
        plural = masculine + "s" if row["masculine_plural"] == "." else row["masculine_plural"]
        forms = (
            (masculine, "m", "sg"),
            (feminine, "f", "sg"),
            (plural, "m", "pl"),
            (feminine + "s", "f", "pl"),
        )
        for form, gender, number in forms:
            self.adjectives.setdefault(form, []).append((gender, number, row["place"]))
        if row["before_vowel"] not in (".", masculine):
            self.special[masculine] = row["before_vowel"]
            self.adjectives.setdefault(row["before_vowel"], []).append(("m", "sg", "before"))

    def _add_verb(self, row: dict[str, str]) -> None:
        if row["kind"] == "liking":
            self.verbs.setdefault(row["french"], set()).update({"1sg"})
        elif row["kind"] == "touching":
            self.verbs.setdefault(row["french"], set()).add("3sg")
            self.verbs.setdefault(row["second"], set()).add("3pl")
        else:
            self.verbs.setdefault(row["french"], set()).add("2pl")

    def sounds_like_vowel(self, word: str) -> bool:
        """Say whether a word asks for elision before it."""
        if word[:1] == "h":
            stem = word.removesuffix("s").removesuffix("e")
            breathed = word in self._breathed or stem in self._breathed or word.startswith(BREATHED)
            return not breathed
        return word[:1] in VOWELS and bool(word)

    def known(self, word: str) -> bool:
        """Say whether the tables hold a word."""
        tables = (self.nouns, self.adjectives, self.participles, self.verbs, self._plain)
        return any(word in table for table in tables)
