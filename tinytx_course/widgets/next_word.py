"""The explorer of the next word: what the shipped model and the language expect after a beginning."""

from __future__ import annotations

import traitlets

from tinytx_course.widgets.base import bounded
from tinytx_course.widgets.live_model import LiveText, shipped_once


class NextWordExplorer(LiveText):
    """See `next_word`. The distribution is that after all tokens but the last `back`."""

    kind = "next_word"
    about = "The words that may come next, by a trained model and by the language itself, and the impossible."
    title = traitlets.Unicode("The next word").tag(sync=True)

    back = bounded(0, 0, lambda _: shipped_once().model.config.max_len - 1)


def next_word(text: str = "Bonjour les") -> NextWordExplorer:
    """Write any French beginning and see what the shipped model and the language expect next.

    The page computes both distributions itself: those of the model that ships with the course, and the exact
    one of the generated language, where the beginning is possible in it. It needs no kernel.

    Parameters
    ----------
    text : str
        The beginning that is shown first, at most 2,000 characters.

    Raises
    ------
    ValueError
        If the text is longer.

    Examples
    --------
    >>> next_word("Le roman est").back
    0
    """
    return NextWordExplorer(text)
