"""English for each word of the French language, word by word: what a page shows below what a model writes."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache

from tinyworld.lexicon import Lexicon, adjective_forms, french_plural
from tinyworld.reviews import Review

# Words of no table of the lexicon; "ne" is half of "ne ... pas".
_SMALL = """
    , ,|. .|! !|ai have|aimez like|amis friends|au to the|aux to the|bonjour hello|bref in short|c' it
    cause because|ce this|ces these|cet this|cette this|d' of|de of|des of the|du of the|elle it
    elles they|en in|est is|et and|fois time|franchement frankly|grâce thanks|honnêtement honestly
    il it|ils they|j' I|je I|l' the|la the|le the|lecteurs readers|les the|m' me|mais but
    malgré despite|me me|n' |ne |ni nor|outre addition|parle speaks|parlent speak|pas not|plus more
    pourtant yet|puis then|que that|quel what|quelle what|quelles what|quels what|revanche contrast
    si if|sont are|tous all|toutefois nevertheless|un a|une a|vous you|à to
"""


@cache
def _glosses() -> dict[str, str]:
    lexicon = Lexicon()
    found = {}
    for noun in lexicon.nouns:
        one, several = noun["english"], noun["english_plural"]
        found[french_plural(noun)] = f"{one}s" if several == "." else several
        found[noun["french"]] = one
    for adjective in lexicon.adjectives:
        found |= dict.fromkeys(adjective_forms(adjective).values(), adjective["english"])
    participles = [(row["french"], row["english"]) for row in lexicon.particles if row["class"] == "made"]
    for verb in lexicon.verbs:
        found[verb["french"]] = verb["english"]
        if verb["kind"] == "touching":
            found[verb["second"]] = verb["english_second"]
        elif verb["kind"] == "liking":
            participles.append((verb["second"], verb["english_second"]))
    for stem, english in [("lu", "read"), *participles]:
        found |= dict.fromkeys((f"{stem}{ending}" for ending in ("", "e", "s", "es")), english)
    found |= {row["french"]: row["english"] for row in (*lexicon.adverbs, *lexicon.particles)}
    small = (entry.strip().partition(" ") for entry in _SMALL.strip().replace("\n", "|").split("|"))
    return found | {french: english for french, _, english in small}


def word_by_word(words: Sequence[str]) -> list[str]:
    """Return English for each French word; "" where English has none.

    Examples
    --------
    >>> word_by_word(["Les", "romans", "n'", "émeuvent", "pas", "."])
    ['The', 'novels', '', 'move', 'not', '.']
    >>> word_by_word(["si", "beau", ",", "si", "vous", "aimez"])
    ['so', 'beautiful', ',', 'if', 'you', 'like']
    """
    glosses = _glosses()
    english = [glosses[word.lower()] for word in words]
    for at, two in enumerate(zip(words, words[1:], strict=False)):
        if two[0] == "si" and two[1] != "vous":
            english[at] = "so"
    return [
        f"{one[:1].upper()}{one[1:]}" if word[0].isupper() else one
        for one, word in zip(english, words, strict=True)
    ]


def reviews_in_english(reviews: Sequence[Review]) -> list[list[str]]:
    """Return each review word by word; nothing for one that is not French."""
    return [word_by_word(one.words) if one.language == "fr" else [] for one in reviews]
