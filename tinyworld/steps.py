"""The notation of sentence patterns, such as ``{adj+ 3 1}``, and the steps that it is compiled to."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

Read = Callable[[int, str], str]  # (slot, feature) -> value


# Plain words of patterns that translate each other: French, English, and the tag that they share.
MEANING = {
    word: tag
    for french, english, tag in (
        ("c' ce", "it", "it"),
        ("est", "is", "is"),
        ("j' je", "I", "i"),
        ("me", "", "me"),
        ("et", "and", "and"),
        ("mais", "but", "but"),
        ("pas", "not", "not"),
        ("que", "that", "that"),
        ("lu", "read", "read"),
        ("si", "if", "if"),
        ("vous", "you", "you"),
        ("aimez", "like", "like"),
        ("malgré", "despite", "despite"),
        ("grâce", "thanks", "thanks"),
        ("cause", "because", "because"),
    )
    for word in (*french.split(), *english.split())
}
OPPOSITE = {"+": "-", "-": "+"}
TOKEN = re.compile(r"\{[^}]*\}?|\S+")
OPERATION = re.compile(r"\{([^\d}]*?)([+-]?) (\d[^}]*)\}")
ATTRIBUTE = re.compile(r"adj([+\-0])(\??)(\d+)")


@dataclass(frozen=True)
class Attribute:
    """An adjective that belongs to a noun: its slot, its sign, whether it may be absent."""

    slot: int
    sign: str
    optional: bool


@dataclass(frozen=True)
class Token:
    """A parsed token: an operation with its slots and options, or a plain word (operation ``""``)."""

    operation: str  # without its sign, such as "adj" or "de+le"
    sign: str = ""  # "+": the polarity of the sentence, "-": the opposite, "0": neutral
    slots: tuple[int, ...] = ()  # the slot that it fills or asks, then the one that it agrees with
    options: tuple[str, ...] = ()  # roles and flags
    attribute: Attribute | None = None  # the adjective that belongs to the noun
    word: str = ""


@dataclass(frozen=True)
class Step:
    """One position at which a language writes at most one word.

    The word ``""`` writes nothing; None leaves the slot to another step of the same sentence (an adjective on
    the other side of its noun).
    """

    write: Callable[[Read], str | None]
    reads: frozenset[tuple[int, str]] = frozenset()  # features of *other* slots that `write` asks for
    fills: int | None = None  # the slot whose choice is made here
    tag: str | None = None  # the same in both languages for words that translate each other


def parse(pattern: str) -> list[Token]:
    """Split a pattern into tokens; ValueError if a brace is left open or an operation has no name.

    Examples
    --------
    >>> [token.operation or token.word for token in parse("C' est {adj+ 2} .")]
    ["C'", 'est', 'adj', '.']
    """
    return [
        _operation(text) if text.startswith("{") else Token("", word=text) for text in TOKEN.findall(pattern)
    ]


def _operation(text: str) -> Token:
    match = OPERATION.fullmatch(text)
    if match is None:
        raise ValueError(f"an operation must read {{name slot ...}}, got {text!r}")
    name, sign, rest = match[1], match[2], match[3].split()
    attribute = next((found for part in rest if (found := ATTRIBUTE.fullmatch(part))), None)
    plain = [part for part in rest if not ATTRIBUTE.fullmatch(part)]
    return Token(
        operation=name,
        sign=sign,
        slots=tuple(int(part) for part in plain if part.isdigit()),
        options=tuple(option for part in plain if not part.isdigit() for option in part.split(",")),
        attribute=Attribute(int(attribute[3]), attribute[1], bool(attribute[2])) if attribute else None,
    )


def signed(sign: str, polarity: str) -> str:
    """Turn a sign of a token (``+``, ``-``, ``0``) into a polarity, given that of the sentence.

    Examples
    --------
    >>> signed("+", "-"), signed("-", "-"), signed("0", "-")
    ('-', '+', '0')
    """
    return {"+": polarity, "-": OPPOSITE[polarity], "0": "0"}[sign]


def literal(word: str) -> Step:
    """Make a step that always writes the same word."""
    return Step(lambda read: word, tag=MEANING.get(word) if word[0].isalpha() else word)


def by_number(noun: int, singular: str, plural: str, tag: str | None = None) -> Step:
    """Make a step that writes one word for a noun in the singular, and another in the plural."""
    return Step(
        lambda read: singular if read(noun, "number") == "sg" else plural,
        frozenset({(noun, "number")}),
        tag=None if tag is None else f"{tag}{noun}",
    )
