"""The explorer of sampling: temperature, then top-k and top-p, then the remaining tokens scaled to 100%."""

from __future__ import annotations

import traitlets

from tinytx_course.widgets.base import bounded
from tinytx_course.widgets.live_model import LiveText, shipped_once

_MOST_DRAWS = 10_000


class SamplingExplorer(LiveText):
    """See `sampling`.

    `stage` is the step that the chart shows. `written` holds the ids of the tokens that the model has
    written at each of three temperatures. A `top_k` of the whole vocabulary and a `top_p` of 1 cut nothing.
    """

    kind = "sampling"
    about = "The distribution of the next token through temperature, top-k and top-p to what is drawn."
    title = traitlets.Unicode("How the next token is drawn").tag(sync=True)

    stage = bounded(0, 0, 4)
    temperature = bounded(1.5, 0.1, 5.0)
    top_k = bounded(10, 1, lambda _: shipped_once().model.config.vocab_size)
    top_p = bounded(0.8, 0.01, 1.0)
    n_draws = bounded(0, 0, _MOST_DRAWS)
    seed = bounded(0, 0, 9999)
    written = traitlets.List(traitlets.List(traitlets.Int()), [[], [], []]).tag(sync=True)

    def summary(self) -> str:
        """Return what model and language expect, and the settings in words."""
        top_k = self.top_k if self.top_k < shipped_once().model.config.vocab_size else "off"
        top_p = f"{self.top_p:g}" if self.top_p < 1 else "off"
        settings = f"temperature {self.temperature:g}, top-k {top_k}, top-p {top_p}"
        return f"{self.expected()} Settings: {settings}; {self.n_draws} drawn."


def sampling(text: str = "Le livre") -> SamplingExplorer:
    """Follow the next token of the shipped model from its logits to the draw, next to the true probabilities.

    The page computes everything itself, for any beginning, and writes on at three temperatures.

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
    >>> explorer = sampling("Bonjour")
    >>> explorer.temperature, explorer.top_k, explorer.top_p
    (1.5, 10, 0.8)
    """
    return SamplingExplorer(text)
