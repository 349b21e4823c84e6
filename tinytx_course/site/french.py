"""French words of a page marked as French: a screen reader then says them as they are said."""

from __future__ import annotations

import re
from functools import cache

from tinytx.world.world import World

_EMPHASISED = re.compile(r"<(em|strong)>([^<]{1,80})</\1>")
_WORD = re.compile(r"[^\W\d_]+")


@cache
def _french() -> frozenset[str]:
    """Return the words of the course's language that its English twin does not have."""
    pairs = World().pairs(3000, seed=0)
    english, french = (
        {word for pair in pairs for word in _WORD.findall(pair[side].lower())} for side in (0, 1)
    )
    return frozenset(french - english)


def mark_french(page: str) -> str:
    """Return HTML in which emphasised text of French words alone has their language.

    Examples
    --------
    >>> mark_french("<em>le roman</em> is not <em>beautiful</em>")
    '<em lang="fr">le roman</em> is not <em>beautiful</em>'
    """

    def marked(match: re.Match[str]) -> str:
        words = _WORD.findall(match[2].lower())
        if not words or not all(word in _french() for word in words):
            return match[0]
        return f'<{match[1]} lang="fr">{match[2]}</{match[1]}>'

    return _EMPHASISED.sub(marked, page)
