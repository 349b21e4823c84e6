"""The count explorer: what a configuration learns, computes and keeps, as bars beside a pinned one."""

from __future__ import annotations

from typing import Any, Literal

import traitlets

from tinytx.model.config import PRESETS, TransformerConfig
from tinytx.model.costs import CostTable
from tinytx_course.widgets.base import Explorer, between, grouped, percent
from tinytx_course.widgets.count_state import (
    SETTINGS,
    SIZES,
    all_presets,
    bars_of,
    config_of,
    cost_of,
    settings_of,
)
from tinytx_course.widgets.count_words import changes, draw_bars, in_short, ratio
from tinytx_course.widgets.picture import Picture


class CountExplorer(Explorer):
    """See `count`."""

    kind = "count"
    title = "Count explorer"

    vocab_size = traitlets.Int(100).tag(sync=True)
    d_model = traitlets.Int(200).tag(sync=True)
    n_layers = traitlets.Int(4).tag(sync=True)
    n_heads = traitlets.Int(2).tag(sync=True)
    d_ff = traitlets.Int(200).tag(sync=True)
    seq_len = traitlets.Int(512).tag(sync=True)
    batch_size = traitlets.Int(8).tag(sync=True)
    max_len = traitlets.Int(512).tag(sync=True)
    n_classes = traitlets.Int(2).tag(sync=True)
    head = traitlets.Enum(["lm", "classifier"], "lm").tag(sync=True)
    tie_embeddings = traitlets.Bool(False).tag(sync=True)
    learned = traitlets.Bool(False).tag(sync=True)
    plain = traitlets.Bool(True).tag(sync=True)
    causal = traitlets.Bool(True).tag(sync=True)
    bias = traitlets.Bool(True).tag(sync=True)
    norm_first = traitlets.Bool(True).tag(sync=True)
    gelu = traitlets.Bool(True).tag(sync=True)
    pinned = traitlets.Dict().tag(sync=True)
    presets = traitlets.List(traitlets.Dict()).tag(sync=True)

    @traitlets.validate(*SIZES)
    def _check_size(self, proposal: Any) -> int:
        return between(proposal, 1, SIZES[proposal.trait.name])

    @traitlets.validate("pinned")
    def _check_pinned(self, proposal: Any) -> dict[str, Any]:
        if set(proposal.value) != set(SETTINGS):
            raise ValueError(f"pinned must hold {', '.join(SETTINGS)}, got {', '.join(proposal.value)}")
        cost_of(proposal.value)
        return proposal.value

    def settings(self) -> dict[str, Any]:
        """Return the state as it stands: the largest number of heads that divides the width counts."""
        state = {name: getattr(self, name) for name in SETTINGS}
        wish = min(self.n_heads, self.d_model)
        state["n_heads"] = next(n for n in range(wish, 0, -1) if self.d_model % n == 0)
        return state

    def pin(self) -> None:
        """Compare with the state as it stands from now on."""
        self.pinned = self.settings()

    def config(self) -> TransformerConfig:
        """Return the configuration, to build a model from."""
        return config_of(self.settings())

    def costs(self) -> CostTable:
        """Return parameters, operations and memory of the state."""
        return cost_of(self.settings())

    def bars(self, *, pinned: bool = False) -> dict[str, dict[str, int]]:
        """Return the length of every bar, by group and row.

        Parameters
        ----------
        pinned : bool
            True for the pinned state.

        Returns
        -------
        dict of dict of int
            Parameters in numbers, the compute of one forward pass in operations, memory in bytes. Of the
            activations, those of norms in blocks stand with the feed-forward network, those of token ids and
            the last norm with the head.
        """
        return bars_of(cost_of(self.pinned if pinned else self.settings()))

    def describe(self) -> str:
        """Say what the state costs, and by what factor that differs from the pinned one."""
        state, now, then = self.settings(), self.bars(), self.bars(pinned=True)
        sums, before = ({group: sum(rows.values()) for group, rows in bars.items()} for bars in (now, then))
        learned, compute = now["parameters"], now["compute"]
        most = max(learned, key=lambda name: learned[name])
        cache = now["generating"]["key-value cache"]
        text = (
            f"{grouped(sums['parameters'])} parameters, the largest part {most} "
            f"({percent(learned[most] / sums['parameters'])}). One forward pass of {state['batch_size']} × "
            f"{grouped(state['seq_len'])} tokens: {in_short(sums['compute'])} operations, "
            f"{percent(compute['attention, pairs'] / sums['compute'])} of them for pairs of tokens. "
            f"Training holds {in_short(sums['training'])}B, generation {in_short(sums['generating'])}B, "
            f"{in_short(cache)}B of it cache. "
        )
        changed = changes(self.pinned, state)
        if not changed:
            return text + "This is the pinned state."
        pairs = ratio(compute["attention, pairs"], then["compute"]["attention, pairs"])
        return text + (
            f"Against the pinned state ({changed}): "
            f"parameters {ratio(sums['parameters'], before['parameters'])}, "
            f"compute {ratio(sums['compute'], before['compute'])} (pairs {pairs}), "
            f"training memory {ratio(sums['training'], before['training'])}, "
            f"cache {ratio(cache, then['generating']['key-value cache'])}."
        )

    def picture(self) -> Picture:
        """Draw all bars, and the pinned ones as thin grey ones below them."""
        return draw_bars(self.bars(), self.bars(pinned=True), changes(self.pinned, self.settings()))


def count(
    config: TransformerConfig | None = None,
    head: Literal["lm", "classifier"] = "lm",
    *,
    seq_len: int | None = None,
    batch_size: int = 8,
    n_classes: int = 2,
    attention: Literal["plain", "fused"] = "plain",
    pinned_len: int | None = None,
) -> CountExplorer:
    """Explore what a transformer costs: parameters, compute, memory, and the key-value cache.

    Beside each bar stands that of a pinned state, at first the same model on shorter texts: parameters are
    the same, what attention computes for pairs of tokens grows with the square of the length.

    Parameters
    ----------
    config : TransformerConfig, optional
        The start; the preset ``seed-lab`` when left out. Its dropout is taken as 0.
    head : {"lm", "classifier"}
        What stands on the body.
    seq_len, batch_size : int
        T, at first `max_len` up to 512, and B. Where T exceeds `max_len`, a learned table grows with it.
    n_classes : int
        C, read for a classifier.
    attention : {"plain", "fused"}
        Whether the weights of all heads are kept for the backward pass, as in `cost_table`.
    pinned_len : int, optional
        Length of the pinned state, at first a quarter of `seq_len`.

    Returns
    -------
    CountExplorer
        Its `costs` is the `CostTable` of the state as it stands, its `config` the configuration.

    Raises
    ------
    ValueError
        If a number is out of range, or positions are rotary or ALiBi.

    Examples
    --------
    >>> explorer = count()
    >>> explorer.bars()["parameters"]
    {'embeddings': 20000, 'attention': 643200, 'feed-forward': 321600, 'norms': 3200, 'head': 20100}
    >>> explorer.bars(pinned=True)["parameters"] == explorer.bars()["parameters"]
    True
    >>> pairs, before = (explorer.bars(pinned=each)["compute"]["attention, pairs"] for each in (False, True))
    >>> pairs // before
    16
    """
    if attention not in ("plain", "fused"):
        raise ValueError(f"attention must be 'plain' or 'fused', got {attention!r}")
    start = settings_of(PRESETS["seed-lab"] if config is None else config)
    length = min(512, start["max_len"]) if seq_len is None else seq_len
    explorer = CountExplorer(
        **start, head=head, seq_len=length, batch_size=batch_size, n_classes=n_classes,
        plain=attention == "plain", presets=all_presets(),
    )  # fmt: skip
    shorter = max(1, length // 4) if pinned_len is None else pinned_len
    explorer.pinned = explorer.settings() | {"seq_len": shorter}
    return explorer
