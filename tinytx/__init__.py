"""tinytx: a small transformer to learn from, in PyTorch.

>>> import tinytx as tx
>>> model = tx.LanguageModel(tx.PRESETS["tiny"])

Names are imported when first used, so that ``import tinytx`` alone costs next to nothing.
"""

from __future__ import annotations

import importlib
import sys
from types import ModuleType
from typing import Any

__version__ = "0.1.0"

_NAMES = {  # where each public name is defined; `__init__.pyi` tells type checkers the same
    "tinytx.attention": ("MultiHeadAttention", "attention", "attention_weights", "record_attention"),
    "tinytx.config": ("PRESETS", "TransformerConfig"),
    "tinytx.counting": ("count_parameters", "parameter_table"),
    "tinytx.encoder_decoder": ("Translator",),
    "tinytx.generate": ("Sampling", "generate"),
    "tinytx.masked_lm": ("MaskedLanguageModel",),
    "tinytx.masks": ("causal_mask", "combine_masks", "padding_mask"),
    "tinytx.positions": ("alibi_bias", "rotate", "shift_matrix", "sinusoidal_positions"),
    "tinytx.tokenizer": ("Tokenizer",),
    "tinytx.classifier": ("Classifier",),
    "tinytx.transformer": ("Block", "LanguageModel", "Transformer"),
    "tinytx.translate": ("translate",),
    "tinyworld.reviews": ("Review",),
    "tinyworld.world": ("World",),
    "tinytx_run.checkpoint": ("load", "save"),
    "tinytx_run.classify": ("classify",),
    "tinytx_run.corpora": ("load_corpus",),
    "tinytx_run.evaluate": ("evaluate",),
    "tinytx_run.finetune": ("finetune",),
    "tinytx_run.pretrain": ("pretrain", "train_translator"),
    "tinytx_run.training": ("RunOptions",),
    "tinytx_course.counting.costs": ("cost_table",),
    "tinytx_course.counting.diagnosis": ("diagnose_count",),
}
_HOME = {name: module for module, names in _NAMES.items() for name in names}

__all__ = sorted(_HOME)


class _Face(ModuleType):
    """This module. Three functions have the name of their file: `tx.attention` stays the function."""

    def __setattr__(self, name: str, value: Any) -> None:
        if not (name in _HOME and isinstance(value, ModuleType)):  # importing a file sets it in its package
            super().__setattr__(name, value)


sys.modules[__name__].__class__ = _Face


def __getattr__(name: str) -> Any:
    """Import a public name on first use (PEP 562) and remember it."""
    if name not in _HOME:
        import difflib

        near = difflib.get_close_matches(name, _HOME, n=1)
        hint = f"; did you mean {near[0]!r}?" if near else ""
        raise AttributeError(f"module 'tinytx' has no attribute {name!r}{hint}")
    value = getattr(importlib.import_module(_HOME[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *_HOME})
