"""Sentences in plain typography: one kind of space, one kind of apostrophe; and what says the same."""

from __future__ import annotations

import re

SPACES = re.compile("[\u00a0\u2007\u2009\u202f]")
UNSEEN = re.compile("[\u00ad\u200b\u2060\ufeff]")


def plain(text: str) -> str:
    """Write every kind of space and apostrophe in one way, and drop characters that nobody sees.

    French texts set the same sign of exclamation off with four different spaces, or with none: a model should
    not have to learn which, and a reader may type any.

    Examples
    --------
    >>> plain("L\u2019eau\u202f!")
    "L'eau !"
    """
    return UNSEEN.sub("", SPACES.sub(" ", text)).replace("\u2019", "'").replace("\u02bc", "'").strip()


CONTRACTIONS = (
    ("can't", "cannot"),
    ("won't", "will not"),
    ("n't", " not"),
    ("'m", " am"),
    ("'re", " are"),
    ("'s", " is"),
    ("'ll", " will"),
    ("'ve", " have"),
    ("'d", " would"),
)


def canonical(text: str) -> str:
    """A sentence without case, final punctuation and English contractions: equal for what says the same.

    Examples
    --------
    >>> canonical("I didn't mean to hurt you.") == canonical("I did not mean to hurt you")
    True
    """
    words = " ".join(plain(text).lower().split())
    for short, long in CONTRACTIONS:
        words = words.replace(short, long)
    return words.rstrip(" .!?\u2026")
