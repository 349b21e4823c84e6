"""English steps: articles, number, adjectives before their noun."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from tinyworld.steps import Read, Step, Token, by_number, literal

VOWEL_ARTICLE = {"v": "an", "c": "a"}


def steps(token: Token, attributes: Mapping[int, int]) -> list[Step]:
    """Turn a token of an English pattern into steps; `attributes` are the adjective's slot of each noun's.

    A ValueError lists the operations that there are, if it is another.
    """
    if not token.operation:
        return [literal(token.word)]
    if token.operation in DETERMINERS:
        return _noun_phrase(token, attributes.get(token.slots[0]))
    if token.operation in BY_NUMBER:
        return [by_number(token.slots[0], *BY_NUMBER[token.operation])]
    if token.operation in PLAIN:
        slot, feature = token.slots[0], PLAIN[token.operation]
        return [Step(lambda read: read(slot, feature), fills=slot, tag=str(slot))]
    if token.operation == "touching":
        return [_touching(token)]
    known = sorted([*DETERMINERS, *BY_NUMBER, *PLAIN, "touching"])
    raise ValueError(f"an English operation must be one of {known}, got {token.operation!r}")


Determiner = Callable[[str, str], str]  # ("pl", "sg" or "mass", next sound) -> word

DETERMINERS: dict[str, tuple[Determiner, ...]] = {
    "the": (lambda number, sound: "the",),
    "this": (lambda number, sound: "these" if number == "pl" else "this",),
    "a": (lambda number, sound: VOWEL_ARTICLE[sound] if number == "sg" else "",),
    "what": (
        lambda number, sound: "what",
        lambda number, sound: VOWEL_ARTICLE[sound] if number == "sg" else "",
    ),
    "bare": (),
}
SOUNDING = ("a", "what")  # they depend on the next sound, and on whether the noun is countable
# operation: (singular, plural, tag)
BY_NUMBER: dict[str, tuple[str, ...]] = {
    "be": ("is", "are", "be"),
    "do": ("does", "do"),
    "speak": ("speaks", "speak", "speak"),
    "it": ("it", "they", "it"),
    "them": ("it", "them", "them"),
}
# operation: the feature of the slot that is the word
PLAIN = {
    "adj": "en",
    "adv": "en",
    "deg": "en",
    "made": "en",
    "liking": "english",
    "liked": "english_second",
    "advice": "english",
    "touching-base": "english_second",
}


def _noun_phrase(token: Token, adjective: int | None) -> list[Step]:
    noun = token.slots[0]
    features = {(noun, "number"), (noun, "an"), (noun, "countable")}
    if adjective is not None:
        features.add((adjective, "an"))
    if token.operation not in SOUNDING:
        features = {(noun, "number")}

    def determiner_step(determiner: Determiner, tag: str | None) -> Step:
        def write(read: Read) -> str:
            number = read(noun, "number")
            if token.operation not in SOUNDING:
                return determiner(number, "")
            sound = "-" if adjective is None else read(adjective, "an")
            number = number if read(noun, "countable") == "yes" else "mass"
            return determiner(number, read(noun, "an") if sound == "-" else sound)

        return Step(write, frozenset(features), tag=tag)

    determiners = DETERMINERS[token.operation]
    written = [determiner_step(d, f"det{noun}" if d is determiners[0] else None) for d in determiners]
    noun_step = Step(lambda read: read(noun, "en"), fills=noun, tag=str(noun))
    if adjective is None:
        return [*written, noun_step]
    return [
        *written,
        Step(lambda read: read(adjective, "en"), fills=adjective, tag=str(adjective)),
        noun_step,
    ]


def _touching(token: Token) -> Step:
    slot, noun = token.slots
    feature = {"sg": "english", "pl": "english_second"}
    return Step(
        lambda read: read(slot, feature[read(noun, "number")]), frozenset({(noun, "number")}), slot, str(slot)
    )
