"""tinytx: a small transformer to learn from, in PyTorch.

>>> import tinytx as tx
>>> model = tx.LanguageModel(tx.PRESETS["tiny"])

Names are imported when first used, so that ``import tinytx`` alone costs next to nothing.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

if TYPE_CHECKING:
    from tinytx.model.attention import MultiHeadAttention, attention, attention_weights, record_attention
    from tinytx.model.config import PRESETS, TransformerConfig
    from tinytx.model.costs import cost_table
    from tinytx.model.counting import count_parameters, parameter_table
    from tinytx.model.diagnosis import diagnose_count
    from tinytx.model.encoder_decoder import Translator
    from tinytx.model.masked_lm import MaskedLanguageModel
    from tinytx.model.masks import causal_mask, combine_masks, padding_mask
    from tinytx.model.positions import alibi_bias, rotate, shift_matrix, sinusoidal_positions
    from tinytx.model.transformer import Block, Classifier, LanguageModel, Transformer
    from tinytx.text.corpora import load_corpus
    from tinytx.text.tokenizer import Tokenizer
    from tinytx.training.checkpoint import load, save
    from tinytx.training.generate import generate
    from tinytx.world.reviews import Review
    from tinytx.world.world import World

_NAMES = {
    "tinytx.model.attention": ("MultiHeadAttention", "attention", "attention_weights", "record_attention"),
    "tinytx.model.config": ("PRESETS", "TransformerConfig"),
    "tinytx.model.costs": ("cost_table",),
    "tinytx.model.counting": ("count_parameters", "parameter_table"),
    "tinytx.model.diagnosis": ("diagnose_count",),
    "tinytx.model.encoder_decoder": ("Translator",),
    "tinytx.model.masked_lm": ("MaskedLanguageModel",),
    "tinytx.model.masks": ("causal_mask", "combine_masks", "padding_mask"),
    "tinytx.model.positions": ("alibi_bias", "rotate", "shift_matrix", "sinusoidal_positions"),
    "tinytx.model.transformer": ("Block", "Classifier", "LanguageModel", "Transformer"),
    "tinytx.text.corpora": ("load_corpus",),
    "tinytx.text.tokenizer": ("Tokenizer",),
    "tinytx.training.checkpoint": ("load", "save"),
    "tinytx.training.generate": ("generate",),
    "tinytx.world.reviews": ("Review",),
    "tinytx.world.world": ("World",),
}
_HOME = {name: module for module, names in _NAMES.items() for name in names}

__all__ = [
    "PRESETS",
    "Block",
    "Classifier",
    "LanguageModel",
    "MaskedLanguageModel",
    "MultiHeadAttention",
    "Review",
    "Tokenizer",
    "Transformer",
    "TransformerConfig",
    "Translator",
    "World",
    "alibi_bias",
    "attention",
    "attention_weights",
    "causal_mask",
    "combine_masks",
    "cost_table",
    "count_parameters",
    "diagnose_count",
    "generate",
    "load",
    "load_corpus",
    "padding_mask",
    "parameter_table",
    "record_attention",
    "rotate",
    "save",
    "shift_matrix",
    "sinusoidal_positions",
]


def __getattr__(name: str) -> Any:
    """Import a public name on first use (PEP 562) and remember it."""
    if name not in _HOME:
        raise AttributeError(_unknown(name))
    value = getattr(importlib.import_module(_HOME[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *_HOME})


def _unknown(name: str) -> str:
    import difflib

    near = difflib.get_close_matches(name, _HOME, n=1)
    hint = f"; did you mean {near[0]!r}?" if near else ""
    return f"module 'tinytx' has no attribute {name!r}{hint}"
