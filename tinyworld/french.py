"""French steps: articles and their contractions, elision, agreement, the place of adjectives.

Each operation of a pattern becomes one or more steps. A step asks only for features (gender, number, the
first sound of what follows), so the same few rules write every word of the tables correctly.
"""

from __future__ import annotations

from collections.abc import Callable

from tinyworld.lexicon import Choice, Lexicon
from tinyworld.steps import Read, Step, Token, by_number, literal, signed

# (gender, number, next sound, an adjective comes first) -> word
Article = Callable[[str, str, str, bool], str]


def _le(gender: str, number: str, sound: str, _: bool) -> str:
    if number == "pl":
        return "les"
    return "l'" if sound == "v" else {"m": "le", "f": "la"}[gender]


def _contracted(simple: str, masculine: str, plural: str) -> Article:
    def article(gender: str, number: str, sound: str, _: bool) -> str:
        if number == "pl":
            return plural
        return masculine if gender == "m" and sound == "c" else simple

    return article


def _rest_of_contraction(gender: str, number: str, sound: str, _: bool) -> str:
    if number == "pl" or (gender == "m" and sound == "c"):
        return ""
    return "l'" if sound == "v" else "la"


def _un(gender: str, number: str, sound: str, adjective_first: bool) -> str:
    if number == "pl":
        return _de(gender, number, sound, adjective_first) if adjective_first else "des"
    return {"m": "un", "f": "une"}[gender]


def _de(_gender: str, _number: str, sound: str, _: bool) -> str:
    return "d'" if sound == "v" else "de"


def _de_before_un(gender: str, number: str, sound: str, first: bool) -> str:
    return _de(gender, number, sound, first) if number == "pl" else "d'"


def _un_singular(gender: str, number: str, sound: str, first: bool) -> str:
    return "" if number == "pl" else _un(gender, number, sound, first)


def _ce(gender: str, number: str, sound: str, _: bool) -> str:
    if number == "pl":
        return "ces"
    return "cette" if gender == "f" else "cet" if sound == "v" else "ce"


def _quel(gender: str, number: str, _sound: str, _: bool) -> str:
    return {"m": "quel", "f": "quelle"}[gender] + ("s" if number == "pl" else "")


ARTICLES: dict[str, tuple[Article, ...]] = {
    "le": (_le,),
    "un": (_un,),
    "ce": (_ce,),
    "quel": (_quel,),
    "de+le": (_contracted("de", "du", "des"), _rest_of_contraction),
    "à+le": (_contracted("à", "au", "aux"), _rest_of_contraction),
    "de+ce": (lambda *_: "de", _ce),
    "de+un": (_de_before_un, _un_singular),
}


VERDICT = "verdict"
VERBS = {"liking": "liking", "liked": "liking", "touching": "touching", "advice": "advice"}


def declare(token: Token, lexicon: Lexicon, polarity: str) -> dict[int, list[Choice]]:
    """The slots that a token declares, with the choices of each in a sentence of the polarity."""
    if not token.operation:
        return {}
    slot, options = token.slots[0], frozenset(token.options)
    kind = token.operation.split()[-1]
    if token.operation in ARTICLES:
        return _declare_noun(token, lexicon, polarity)
    if kind == "adj":
        return {slot: lexicon.adjective_choices(signed(token.sign, polarity), options)}
    if kind in VERBS:
        return {slot: lexicon.verb_choices(VERBS[kind], signed(token.sign, polarity))}
    if kind == "adv":
        return {slot: lexicon.adverb_choices(signed(token.sign, polarity))}
    if kind in ("deg", "made"):
        return {slot: lexicon.particle_choices({"deg": "degree", "made": "made"}[kind])}
    return {}


def _declare_noun(token: Token, lexicon: Lexicon, polarity: str) -> dict[int, list[Choice]]:
    numbers = frozenset(token.options) & {"sg", "pl"}
    roles = [option for option in token.options if option not in numbers]
    if roles[0].startswith(VERDICT):
        roles = [VERDICT + signed(roles[0].removeprefix(VERDICT), polarity)]
    slots = {token.slots[0]: lexicon.noun_choices(roles, numbers)}
    if token.attribute is not None:
        narrow = frozenset("?") if token.attribute.optional else frozenset()
        slots[token.attribute.slot] = lexicon.adjective_choices(
            signed(token.attribute.sign, polarity), narrow
        )
    return slots


def steps(token: Token) -> list[Step]:
    """Turn a token of a French pattern into steps; a ValueError lists the operations if it is none."""
    if not token.operation:
        return [literal(token.word)]
    if token.operation in ARTICLES:
        return _noun_phrase(token)
    if token.operation in OPERATIONS:
        return OPERATIONS[token.operation](token)
    raise ValueError(
        f"a French operation must be one of {sorted([*ARTICLES, *OPERATIONS])}, got {token.operation!r}"
    )


def _noun_phrase(token: Token) -> list[Step]:
    noun = token.slots[0]
    adjective = token.attribute.slot if token.attribute else None
    features = {(noun, "gender"), (noun, "number"), (noun, "initial")}
    if adjective is not None:
        features.add((adjective, "lead"))

    def article_step(article: Article, tag: str | None) -> Step:
        def write(read: Read) -> str:
            lead = "-" if adjective is None else read(adjective, "lead")
            sound = read(noun, "initial") if lead == "-" else lead
            return article(read(noun, "gender"), read(noun, "number"), sound, lead != "-")

        return Step(write, frozenset(features), tag=tag)

    articles = ARTICLES[token.operation]
    written = [
        article_step(article, f"det{noun}" if article is articles[-1] else None) for article in articles
    ]
    noun_step = Step(lambda read: read(noun, "fr"), fills=noun, tag=str(noun))
    if adjective is None:
        return [*written, noun_step]

    def before(read: Read) -> str | None:
        if read(adjective, "lead") == "-":
            return None
        masculine_singular = read(noun, "gender") == "m" and read(noun, "number") == "sg"
        special = masculine_singular and read(noun, "initial") == "v"
        return read(adjective, "mv") if special else agreeing(read, adjective, noun)

    def after(read: Read) -> str | None:
        return agreeing(read, adjective, noun) if read(adjective, "lead") == "-" else None

    first, last = (Step(write, frozenset(features), adjective, str(adjective)) for write in (before, after))
    return [*written, first, noun_step, last]


def agreeing(read: Read, adjective: int, noun: int) -> str:
    """Give an adjective the gender and number of a noun; nothing if the adjective is absent."""
    if not read(adjective, "ms"):
        return ""
    return read(adjective, read(noun, "gender") + read(noun, "number")[0])


def _be(token: Token) -> Step:
    return by_number(token.slots[0], "est", "sont", "be")


def _pronoun(token: Token) -> list[Step]:
    noun = token.slots[0]
    reads = frozenset({(noun, "gender"), (noun, "number")})

    def write(read: Read) -> str:
        return {"m": "il", "f": "elle"}[read(noun, "gender")] + ("s" if read(noun, "number") == "pl" else "")

    return [Step(write, reads, tag=f"it{noun}")]


def _adjective(token: Token) -> list[Step]:
    slot = token.slots[0]
    if len(token.slots) == 1:
        return [Step(lambda read: read(slot, "ms"), fills=slot, tag=str(slot))]
    noun = token.slots[1]
    reads = frozenset({(noun, "gender"), (noun, "number")})
    return [Step(lambda read: agreeing(read, slot, noun), reads, slot, str(slot))]


def _ending(read: Read, noun: int) -> str:
    return ("e" if read(noun, "gender") == "f" else "") + ("s" if read(noun, "number") == "pl" else "")


def _form(token: Token, feature: str) -> list[Step]:
    """A form unchanged or, if the token names a noun, as a participle that agrees with it."""
    slot = token.slots[0]
    if len(token.slots) == 1:
        return [Step(lambda read: read(slot, feature), fills=slot, tag=str(slot))]
    noun = token.slots[1]
    reads = frozenset({(noun, "gender"), (noun, "number")})
    return [Step(lambda read: read(slot, feature) + _ending(read, noun), reads, slot, str(slot))]


def _read_participle(token: Token) -> list[Step]:
    noun = token.slots[0]
    reads = frozenset({(noun, "gender"), (noun, "number")})
    return [Step(lambda read: "lu" + _ending(read, noun), reads, tag="read")]


def _touching(token: Token) -> list[Step]:
    slot, noun = token.slots
    me = Step(
        lambda read: "m'" if read(slot, "initial") == "v" else "me", frozenset({(slot, "initial")}), tag="me"
    )
    feature = {"sg": "french", "pl": "second"}
    verb = Step(
        lambda read: read(slot, feature[read(noun, "number")]), frozenset({(noun, "number")}), slot, str(slot)
    )
    return [me, verb]


def _i_like(token: Token) -> list[Step]:
    slot = token.slots[0]
    elided = frozenset({(slot, "initial")})
    verb = Step(lambda read: read(slot, "french"), fills=slot, tag=str(slot))
    if token.operation.startswith("je-ne"):
        ne = Step(lambda read: "n'" if read(slot, "initial") == "v" else "ne", elided)
        return [Step(lambda read: "je", tag="i"), ne, verb]
    return [Step(lambda read: "j'" if read(slot, "initial") == "v" else "je", elided, tag="i"), verb]


OPERATIONS: dict[str, Callable[[Token], list[Step]]] = {
    "be": lambda token: [_be(token)],
    "ne-be": lambda token: [by_number(token.slots[0], "n'", "ne"), _be(token)],
    "speak": lambda token: [by_number(token.slots[0], "parle", "parlent", "speak")],
    "il": _pronoun,
    "clitic": lambda token: [by_number(token.slots[0], "l'", "les", "them")],
    "adj": _adjective,
    "adv": lambda token: _form(token, "fr"),
    "deg": lambda token: _form(token, "fr"),
    "made": lambda token: _form(token, "fr"),
    "liked": lambda token: _form(token, "second"),
    "advice": lambda token: _form(token, "french"),
    "lu": _read_participle,
    "touching": _touching,
    "je liking": _i_like,
    "je-ne liking": _i_like,
}
