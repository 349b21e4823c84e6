"""The explorer of a whole model: the shipped one, computed in the page, next to the true distribution."""

from __future__ import annotations

from functools import cache
from typing import Any, ClassVar

import numpy as np
import torch
import traitlets

from tinytx.generate import unwritten_ids
from tinytx_course.engine.shipped import Shipped, shipped_model
from tinytx_course.widgets.base import Explorer, bounded
from tinyworld.world import World

_LONGEST = 2_000  # characters of a text
_N_NAMED = 3


@cache
def shipped_once() -> Shipped:
    """Return the shipped model, read once."""
    return shipped_model()


class LiveText(Explorer):
    """An explorer whose page runs the shipped model on a text of the reader.

    Attributes
    ----------
    about : str
        What it shows, in a sentence.
    """

    about: ClassVar[str]

    text = traitlets.Unicode().tag(sync=True)

    def __init__(self, text: str, **state: Any) -> None:
        if len(text) > _LONGEST:
            raise ValueError(f"text must have at most {_LONGEST:,} characters, got {len(text):,}")
        super().__init__(text=text, **state)

    def expected(self, temperature: float = 1.0, settings: str = "") -> str:
        """Return what is shown, and what model, at a temperature, and language expect after the text."""
        parts = []
        for word, model, truth in next_tokens(self.text, temperature)[:_N_NAMED]:
            exact = "" if truth is None else f", the language {100 * truth:.1f}%"
            parts.append(f"to “{word}” the model gives {100 * model:.1f}%{exact}")
        return f"{self.about} After “{self.text}”{settings}: {'; '.join(parts)}."


class LiveModelExplorer(LiveText):
    """See `live_model`.

    `part` is what is open in the picture. Of the tokens that the model reads, `back` of them follow the one
    that is looked into, and its key lies `distance` before it. `drawn` holds the id of the latest token and
    its probabilities.
    """

    kind = "live_model"
    about = (
        "A language model that runs in the page, from tokens over attention to the next token, next to the "
        "true distribution."
    )
    title = traitlets.Unicode("The whole model, live").tag(sync=True)

    temperature = bounded(1.0, 0.1, 3.0)
    part = traitlets.Enum(["", "embedding", "head", "feed_forward", "output"], "").tag(sync=True)
    back = bounded(0, 0, lambda _: shipped_once().model.config.max_len - 1)
    distance = bounded(1, 0, lambda _: shipped_once().model.config.max_len - 1)
    block = bounded(0, 0, lambda _: shipped_once().model.config.n_layers - 1)
    head = bounded(0, 0, lambda _: shipped_once().model.config.n_heads - 1)
    n_draws = traitlets.Int(0).tag(sync=True)
    drawn = traitlets.Dict().tag(sync=True)

    def summary(self) -> str:
        """Return what is shown, and what model and language expect at this temperature."""
        return self.expected(self.temperature, f" at temperature {self.temperature:.1f}")


def next_tokens(text: str, temperature: float = 1.0) -> list[tuple[str, float, float | None]]:
    """What the shipped model and the language expect after a text.

    Returns
    -------
    list of (str, float, float or None)
        Each token that may be written, with its probability by the model at a temperature and by the
        language, None where no review begins like the text. The largest mean of the two comes first.
    """
    shipped, world = shipped_once(), World()
    tokenizer = shipped.tokenizer
    written = tokenizer.encode(" ".join(world.split(text)))
    recent = written[max(0, len(written) - shipped.model.config.max_len + 1) :]
    with torch.no_grad():
        logits = shipped.model(torch.tensor([[tokenizer.bos_id, *recent]]))[0, -1] / temperature
    logits[list(unwritten_ids(tokenizer))] = -torch.inf
    model = logits.double().softmax(dim=-1).numpy()
    try:
        truth = world.through(tokenizer).next_token(written)
    except ValueError:
        truth = None
    order = np.argsort(-(model + (0 if truth is None else truth)), kind="stable")
    names = {tokenizer.eos_id: "(the end)"}
    return [
        (names.get(i) or tokenizer.decode([i]), float(model[i]), None if truth is None else float(truth[i]))
        for i in order.tolist()
    ]


def live_model(text: str = "Le roman est") -> LiveModelExplorer:
    """Type any French beginning and follow the shipped model from the tokens to the next one.

    The page computes everything itself and draws it as one picture, whose parts open: tokens, the residual
    stream, each head with the numbers of its dot products, and the distribution of the next token next to the
    true one. It needs no kernel.

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
    >>> live_model("Bonjour les").part
    ''
    """
    return LiveModelExplorer(text)
