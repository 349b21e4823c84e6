"""The count explorer: what a configuration learns, computes and stores, next to a pinned one."""

from __future__ import annotations

from typing import Any

import traitlets

from tinytx.config import PRESETS, TransformerConfig
from tinytx.counting import parameter_table
from tinytx_course.labs.lesson_06 import PUBLISHED
from tinytx_course.widgets.base import Explorer, bounded

# What a state consists of, and the largest of each number.
SIZES = {
    "vocab_size": 10**6,
    "d_model": 2**15,
    "n_layers": 128,
    "n_heads": 256,
    "d_ff": 2**17,
    "seq_len": 2**17,
    "batch_size": 2**12,
    "max_len": 2**17,
    "n_classes": 1_000,
}
SWITCHES = ("tie_embeddings", "learned", "plain", "causal", "bias", "norm_first", "gelu")
SETTINGS = (*SIZES, *SWITCHES, "head")
# Memory of common graphics cards in GB, smallest first, by the data sheets of their makers: nvidia.com, and
# amd.com for Instinct MI300X.
CARDS = {
    "RTX 4060, 8 GB": 8,
    "RTX 4070, 12 GB": 12,
    "T4, 16 GB": 16,
    "RTX 4090, 24 GB": 24,
    "A100, 40 GB": 40,
    "H100, 80 GB": 80,
    "H200, 141 GB": 141,
    "MI300X, 192 GB": 192,
}
# Known models; presets come first, each as a language model.
_GHOSTS = ("DistilBERT base", "BERT base", "BERT large", "GPT-2 small", "GPT-2 large", "GPT-2 XL", "mBART")


class CountExplorer(Explorer):
    """See `count`.

    `pinned` is a state like the explorer's own. Where `n_heads` does not divide `d_model`, the largest number
    below it that does counts; where `seq_len` exceeds `max_len`, a learned table grows with it.
    """

    kind = "count"
    title = traitlets.Unicode("Count explorer").tag(sync=True)

    vocab_size = bounded(100, 1, SIZES["vocab_size"])
    d_model = bounded(200, 1, SIZES["d_model"])
    n_layers = bounded(4, 1, SIZES["n_layers"])
    n_heads = bounded(2, 1, SIZES["n_heads"])
    d_ff = bounded(200, 1, SIZES["d_ff"])
    seq_len = bounded(512, 1, SIZES["seq_len"])
    batch_size = bounded(8, 1, SIZES["batch_size"])
    max_len = bounded(512, 1, SIZES["max_len"])
    n_classes = bounded(2, 1, SIZES["n_classes"])
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
    ghosts: traitlets.List = traitlets.List().tag(sync=True)  # names and numbers of parameters
    cards: traitlets.List = traitlets.List().tag(sync=True)  # names and gigabytes
    view = bounded(0, 0, 3)
    part = bounded(1, 0, 5)

    @traitlets.validate("pinned")
    def _check_pinned(self, proposal: Any) -> dict[str, Any]:
        if set(proposal.value) != set(SETTINGS):
            raise ValueError(f"pinned must hold {', '.join(SETTINGS)}, got {', '.join(proposal.value)}")
        for name, most in SIZES.items():
            if not 1 <= proposal.value[name] <= most:
                raise ValueError(f"pinned {name} must lie in 1..{most}, got {proposal.value[name]}")
        return proposal.value

    def summary(self) -> str:
        """Return what is shown, and the configuration."""
        return (
            "Parameters, operations and memory of a transformer as areas, next to a pinned configuration "
            "and published models, and the graphics cards that hold it. "
            f"Width {self.d_model}, {self.n_layers} layers, {self.n_heads} heads, vocabulary "
            f"{self.vocab_size:,}, {self.batch_size} × {self.seq_len:,} tokens."
        )


def count(config: TransformerConfig | None = None) -> CountExplorer:
    """Explore what a transformer costs: parameters, compute, memory, and the key-value cache.

    Until a reader pins a state, what is changed is compared with how it opened.

    Parameters
    ----------
    config : TransformerConfig, optional
        The start, by default the preset ``seed-lab``. Its dropout is taken as 0; the length is `max_len` up
        to 512.

    Raises
    ------
    ValueError
        If a number is out of range, or positions are rotary or ALiBi.

    Examples
    --------
    >>> explorer = count()
    >>> explorer.d_model, explorer.seq_len, explorer.pinned["seq_len"]
    (200, 512, 512)
    """
    start = _settings_of(PRESETS["seed-lab"] if config is None else config)
    explorer = CountExplorer(
        **start,
        seq_len=min(512, start["max_len"]),
        presets=_presets(),
        ghosts=[[name, parameter_table(config, "lm").total] for name, config in PRESETS.items()]
        + [[name, PUBLISHED[name].table().total] for name in _GHOSTS],
        cards=[list(card) for card in CARDS.items()],
    )
    explorer.pinned = {name: getattr(explorer, name) for name in SETTINGS}
    return explorer


def _settings_of(config: TransformerConfig) -> dict[str, Any]:
    """Return what a configuration says about a state; its positions must be a table or none."""
    if config.positions not in ("sinusoidal", "learned", "none"):
        raise ValueError(f"positions must be sinusoidal, learned or none, got {config.positions!r}")
    names = ("vocab_size", "d_model", "n_layers", "n_heads", "d_ff", "max_len", "causal", "bias")
    return {name: getattr(config, name) for name in (*names, "tie_embeddings")} | {
        "learned": config.positions == "learned",
        "norm_first": config.norm == "first",
        "gelu": config.activation == "gelu",
    }


def _presets() -> list[dict[str, Any]]:
    """Return the presets of the package and two sizes of GPT-2 (whose head has no bias, unlike ours)."""
    configs = dict(PRESETS)
    for name in ("GPT-2 small", "GPT-2 XL"):
        configs[f"{name}’s sizes"] = PUBLISHED[name].config.replace(tie_embeddings=True)
    return [{"name": name, **_settings_of(config)} for name, config in configs.items()]
