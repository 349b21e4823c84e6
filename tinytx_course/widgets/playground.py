"""The explorer in which a transformer learns: in the page, next to the exact entropy bound."""

from __future__ import annotations

from typing import Any

import traitlets

from tinytx_course.widgets.base import Explorer, bounded
from tinyworld.world import World


class PlaygroundExplorer(Explorer):
    """See `playground`.

    The switches are traits, which take effect in the next step or, where parameters change, in a new run.
    `first` and `second` hold what the runs have reached: step, tokens, loss, and at their latest moment the
    held-out loss, the share above the bound and the text that was drawn. `moment` is the step that is looked
    back at, -1 for the latest; `guess` the prediction for the second run, which differs by `change`. Where it
    is `brief`, one run and one switch are all there is. Without a clock, equal seeds give equal numbers.
    """

    kind = "playground"
    title = traitlets.Unicode("A transformer learns").tag(sync=True)

    words = traitlets.List(traitlets.Unicode()).tag(sync=True)
    brief = traitlets.Bool(False).tag(sync=True)
    d_model = traitlets.Int(64).tag(sync=True)
    seed = bounded(0, 0, 99)
    seconds = bounded(60, 0, 3600)
    n_steps = bounded(1400, 1, 100_000)
    causal = traitlets.Bool(True).tag(sync=True)
    scale = traitlets.Bool(True).tag(sync=True)
    residual = traitlets.Bool(True).tag(sync=True)
    positions = traitlets.Enum(["alibi", "sinusoidal", "learned", "none"], "alibi").tag(sync=True)
    norm = traitlets.Enum(["first", "last"], "first").tag(sync=True)
    n_heads = bounded(4, 1, 64)
    n_layers = bounded(2, 1, 8)
    lr = bounded(0.012, 1e-05, 10.0)
    warmup = bounded(10, 0, 50)
    tokens_per_batch = traitlets.Enum([128, 256, 512, 1024, 2048], 1024).tag(sync=True)
    targets_not_shifted = traitlets.Bool(False).tag(sync=True)
    softmax_twice = traitlets.Bool(False).tag(sync=True)
    no_zero_grad = traitlets.Bool(False).tag(sync=True)
    norm_on_wrong_axis = traitlets.Bool(False).tag(sync=True)
    block = bounded(0, 0, 7)
    head = bounded(0, 0, 63)
    moment = bounded(-1, -1, 100_000)
    change = traitlets.Unicode("causal").tag(sync=True)
    guess = bounded(-1, -1, 3)
    notice = traitlets.Unicode().tag(sync=True)
    first = traitlets.Dict().tag(sync=True)
    second = traitlets.Dict().tag(sync=True)

    def summary(self) -> str:
        """Return what is shown, and what the runs have reached."""
        shown = (
            "A small transformer, new and untrained, learns the language of the course in the page. Its loss "
            "on held-out reviews is drawn against the entropy bound, next to a review that it writes "
            "and to its attention weights."
        )
        runs = (("A", self.first), ("B", self.second))
        return " ".join([shown, *(_reached(name, run) for name, run in runs if "above" in run)])


def _reached(name: str, run: dict[str, Any]) -> str:
    if run["above"] is None:
        return f"Run {name} after step {run['shown']}: the loss is no number any more."
    where = "above" if run["above"] >= 0 else "below"
    return f"Run {name} after step {run['shown']}: {100 * abs(run['above']):.1f}% {where} the bound."


def playground(
    *,
    seconds: int = 60,
    n_steps: int | None = None,
    d_model: int = 64,
    brief: bool = False,
) -> PlaygroundExplorer:
    """Let a transformer learn in the page, switch things off while it does, and compare two runs.

    The page computes everything itself, in a worker: fresh reviews of the generated language, the forward
    and the backward pass, the optimizer, the exact bound, and which of the words that it writes the grammar
    allows. It needs no kernel.

    Parameters
    ----------
    seconds : int
        Of the schedule, from 1 to 3,600: the learning rate falls to zero as they pass, however fast the
        steps are. Pauses do not count.
    n_steps : int, optional
        A schedule of so many steps instead, from 1 to 100,000.
    d_model : int
        Width of the residual stream, a multiple of 4 from 8 to 256; that of feed-forward is four times this.
    brief : bool
        Show the loss, what the model writes with its English, and one switch, the mask. It begins to learn
        by itself once it is seen, for 20 seconds; not where motion is not wanted.

    Raises
    ------
    ValueError
        If a number is out of these limits.

    Examples
    --------
    >>> playground().causal
    True
    """
    if n_steps is None and seconds < 1:
        raise ValueError(f"seconds must be from 1 to 3600, got {seconds}")
    if d_model % 4 or not 8 <= d_model <= 256:
        raise ValueError(f"d_model must be a multiple of 4 from 8 to 256, got {d_model}")
    return PlaygroundExplorer(
        words=list(World().reviews(1, seed=_SEED)[0].words[:_N_WORDS]),
        brief=brief,
        **({"seconds": seconds} if n_steps is None else {"seconds": 0, "n_steps": n_steps}),
        d_model=d_model,
    )


_SEED, _N_WORDS = 29, 10  # of the review whose attention weights are shown
