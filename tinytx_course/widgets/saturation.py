"""Random queries and keys that Python and the page draw alike, to show what the scale is for.

The page must not carry a table of random numbers, so both sides compute them: number ``i`` comes from mixing
the bits of ``i``, not from a stream, and a wider query is a longer piece of the same numbers.
"""

from __future__ import annotations

import math
from functools import cache

import numpy as np

from tinytx_course.widgets.picture import ACCENT, LINE, SOFT, WARN, Picture

N_QUERIES = 64
N_KEYS = 8
WIDEST = 512


def mixed(counts: np.ndarray) -> np.ndarray:
    """Mix the bits of whole numbers, uint32 to uint32: the last step of MurmurHash3.

    References
    ----------
    .. [1] A. Appleby, MurmurHash3, function ``fmix32``, in the public domain.

    Examples
    --------
    >>> mixed(np.array([0, 1, 2], dtype=np.uint32))
    array([         0, 1364076727,  821347078], dtype=uint32)
    """
    bits = counts.astype(np.uint32)
    bits = (bits ^ (bits >> np.uint32(16))) * np.uint32(0x85EBCA6B)  # modulo 2 ** 32
    bits = (bits ^ (bits >> np.uint32(13))) * np.uint32(0xC2B2AE35)
    return bits ^ (bits >> np.uint32(16))


def normals(n_numbers: int) -> np.ndarray:
    """Return independent numbers of mean 0 and variance 1, always the same ones.

    ``sqrt(-2 ln u) cos(2 π w)`` of two numbers u and w spread evenly over 0..1 (Box and Muller, 1958).
    """
    counts = np.arange(1, 2 * n_numbers + 1, dtype=np.uint32)
    even = (mixed(counts).astype(float) + 0.5) / 2.0**32
    return np.sqrt(-2.0 * np.log(even[0::2])) * np.cos(2.0 * np.pi * even[1::2])


@cache
def _vectors() -> np.ndarray:
    return normals((N_QUERIES + N_KEYS) * WIDEST).reshape(-1, WIDEST)  # (N_QUERIES + N_KEYS, WIDEST)


def random_weights(head_dim: int, *, scaled: bool) -> np.ndarray:
    """Return the attention weights of random queries over random keys.

    Parameters
    ----------
    head_dim : int
        How many numbers of each vector are used, 1 to `WIDEST`.
    scaled : bool
        True divides the scores by the square root of `head_dim`.

    Returns
    -------
    ndarray of shape (N_QUERIES, N_KEYS)
    """
    q, k = np.split(_vectors()[:, :head_dim], [N_QUERIES])
    scores = q @ k.T / (np.sqrt(head_dim) if scaled else 1.0)  # (N_QUERIES, N_KEYS)
    powers = np.exp(scores - scores.max(axis=1, keepdims=True))
    return powers / powers.sum(axis=1, keepdims=True)


def sharpness(weights: np.ndarray) -> tuple[float, float]:
    """Return the mean over rows of the largest weight, and of the entropy in bits.

    Examples
    --------
    >>> sharpness(np.array([[0.5, 0.5], [0.5, 0.5]]))
    (0.5, 1.0)
    """
    logs = np.log2(weights, out=np.zeros_like(weights), where=weights > 0)
    return float(weights.max(axis=1).mean()), float(-(weights * logs).sum(axis=1).mean())


def draw_curves(picture: Picture, x: float, y: float, width: float, height: float, head_dim: int) -> None:
    """Draw the mean largest weight of random queries against d, with and without the division."""
    picture.text(x, 14, f"Mean largest of {N_KEYS} weights", bold=True)
    picture.rect(x, y, width, height, outline=LINE)
    widths = [2**power for power in range(10)]
    for scaled, color in ((True, ACCENT), (False, WARN)):
        heights = [sharpness(random_weights(d, scaled=scaled))[0] for d in widths]
        points = [(x + width * i / 9, y + height * (1 - h)) for i, h in enumerate(heights)]
        picture.line(points, color=color, width=2.5)
        words, down = ("divided by √d", height - 20) if scaled else ("undivided", 12)
        picture.text(x + 6, y + down, words, color=color)
    at = x + width * math.log2(head_dim) / 9
    picture.line([(at, y), (at, y + height)], color=SOFT, width=1)
    picture.text(at, y + height + 12, f"d = {head_dim}", anchor="mm")
    for share in (0, 0.5, 1):
        picture.text(x - 6, y + height * (1 - share), f"{share:g}", anchor="rm", color=SOFT)
