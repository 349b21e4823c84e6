"""French articles: which form stands before which noun, contracted with a preposition or not."""

from __future__ import annotations

from collections.abc import Callable

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
