"""French words of a page marked as French: a screen reader then says them as they are said."""

from __future__ import annotations

import re
from functools import cache

from tinyworld.world import World

_EMPHASISED = re.compile(r"<(em|strong)>([^<]{1,80})</\1>")
_WORD = re.compile(r"[^\W\d_]+")
_BETWEEN = r"(?:[ ,.!?'’▁]|&#39;)*"  # words of one sentence


@cache
def _words() -> tuple[frozenset[str], frozenset[str]]:
    """Return the words of the course's language, and those that its English twin does not have."""
    pairs = World().pairs(3000, seed=0)
    english, french = (
        {word for pair in pairs for word in _WORD.findall(pair[side].lower())} for side in (0, 1)
    )
    return frozenset(french), frozenset(french - english)


@cache
def _sentence() -> re.Pattern[str]:
    """Return what finds three words of the course's language in a row, and more."""
    word = rf"(?<![^\W\d_])(?:{'|'.join(_words()[0])})(?![^\W\d_])"
    return re.compile(rf"{word}(?:{_BETWEEN}{word}){{2,}}", re.IGNORECASE)


def mark_french(page: str) -> str:
    """Return HTML in which emphasised text of French words alone has their language.

    Examples
    --------
    >>> mark_french("<em>le roman</em> is not <em>beautiful</em>")
    '<em lang="fr">le roman</em> is not <em>beautiful</em>'
    """

    def marked(match: re.Match[str]) -> str:
        words = _WORD.findall(match[2].lower())
        if not words or not _words()[1].issuperset(words):
            return match[0]
        return f'<{match[1]} lang="fr">{match[2]}</{match[1]}>'

    return _EMPHASISED.sub(marked, page)


def mark_sentences(text: str) -> str:
    """Return what a cell has printed, as HTML, in which several French words in a row have their language.

    Examples
    --------
    >>> mark_sentences("0.31  Le roman est beau . It praises.")
    '0.31  <span lang="fr">Le roman est beau</span> . It praises.'
    """
    french = _words()[1]

    def marked(run: re.Match[str]) -> str:
        n_french = len(french.intersection(_WORD.findall(run[0].lower())))
        return f'<span lang="fr">{run[0]}</span>' if n_french > 1 else run[0]

    return _sentence().sub(marked, text)
