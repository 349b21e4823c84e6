"""Texts that a tokenizer may stumble over, to try the promise that no text is lost."""

from __future__ import annotations

import random

#: What tokenizers tidy up, keep for themselves, or take for a special piece.
DANGEROUS = (
    *(" ", "  ", "\t", "\n", "\r", "\r\n", "\x00", "\x01", "\x1b", "\u00a0", "\u200d", "\ufeff"),
    *("\u2581", "\u2585", "<unk>", "<pad>", "<mask>", "<0x41>"),
    *("²", "ﬁ", "…", "é", "e\u0301"),
)


MAX_PARTS = 7  # characters and dangerous strings in one text


def difficult_texts(n_texts: int, *, seed: int) -> list[str]:
    """Mix characters from all of Unicode with what is dangerous.

    Parameters
    ----------
    n_texts : int
        At least 0. The first is the empty text.
    seed : int
        Equal seeds give equal texts.

    Returns
    -------
    list of str
        Valid Unicode, without surrogates; many characters in it are assigned to nothing.

    Examples
    --------
    >>> texts = difficult_texts(3, seed=0)
    >>> len(texts), texts[0]
    (3, '')
    """
    if n_texts < 0:
        raise ValueError(f"n_texts must be at least 0, got {n_texts}")
    rng = random.Random(seed)
    texts = [""]
    while len(texts) < n_texts:
        n_parts = rng.randint(1, MAX_PARTS)
        texts.append("".join(_part(rng) for _ in range(n_parts)))
    return texts[:n_texts]


def _part(rng: random.Random) -> str:
    """Something dangerous, or any character but a surrogate."""
    if rng.random() < 0.5:
        return rng.choice(DANGEROUS)
    code = rng.randrange(0x110000 - 0x800)
    return chr(code if code < 0xD800 else code + 0x800)
