"""From words to text as people read it, and back."""

from __future__ import annotations

import re
from collections.abc import Iterable

APOSTROPHES = str.maketrans({"’": "'", "ʼ": "'"})
NO_SPACE_BEFORE = {"fr": {",", "."}, "en": {",", ".", "!"}}


def write_out(words: Iterable[str], language: str = "fr") -> str:
    """Join words as people write them: no space after an elision, none before a comma or a full stop.

    French keeps a space before an exclamation mark.

    Examples
    --------
    >>> write_out(["C'", "est", "beau", ",", "l'", "œuvre", "!"])
    "C'est beau, l'œuvre !"
    """
    text = ""
    for word in words:
        glued = not text or text.endswith("'") or word in NO_SPACE_BEFORE[language]
        text += word if glued else " " + word
    return text


def split_up(text: str, known: Iterable[str] = ()) -> list[str]:
    """Split text into words: elided articles and pronouns, words and punctuation marks, each by itself.

    Parameters
    ----------
    text : str
        As people write it, with either kind of apostrophe.
    known : iterable of str
        Words with an apostrophe inside ("chef-d'œuvre") that stay in one piece.

    Examples
    --------
    >>> split_up("Quel chef-d’œuvre ! J'adore l'humour.", known=["chef-d'œuvre"])
    ['Quel', "chef-d'œuvre", '!', "J'", 'adore', "l'", 'humour', '.']
    """
    whole = sorted((word for word in known if "'" in word[:-1]), key=len, reverse=True)
    pattern = "|".join([*map(re.escape, whole), r"[^\W\d_]+(?:-[^\W\d_]+)*'?", r"\S"])
    return re.findall(pattern, text.translate(APOSTROPHES))
