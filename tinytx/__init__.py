"""tinytx: a small transformer to learn from, and the course around it.

>>> import tinytx as tx
>>> model = tx.LanguageModel(tx.PRESETS["tiny"])

Names are imported when first used, so that ``import tinytx`` alone costs next to nothing.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

if TYPE_CHECKING:
    from tinytx.model.attention import attention, attention_weights
    from tinytx.model.body import TransformerBody
    from tinytx.model.config import PRESETS, TransformerConfig
    from tinytx.model.costs import cost_table
    from tinytx.model.counting import count_parameters, parameter_table
    from tinytx.model.diagnosis import diagnose_count
    from tinytx.model.masked import MaskedLanguageModel
    from tinytx.model.masks import causal_mask, padding_mask
    from tinytx.model.multihead import MultiHeadAttention
    from tinytx.model.positions import shift_matrix, sinusoidal_positions
    from tinytx.model.transformer import Classifier, LanguageModel
    from tinytx.model.translator import Translator
    from tinytx.teaching import widgets  # noqa: F401  (a module, so not among the names of a star import)
    from tinytx.teaching.exercises.checking import check
    from tinytx.teaching.exercises.verdict import Verdict
    from tinytx.teaching.quizzes import quiz
    from tinytx.text.corpora import load_corpus
    from tinytx.text.tokenizer import Tokenizer
    from tinytx.text.world import Review, World
    from tinytx.training.runs.checkpoints import load, save

_NAMES = {
    "tinytx.model.attention": ("attention", "attention_weights"),
    "tinytx.model.body": ("TransformerBody",),
    "tinytx.model.config": ("PRESETS", "TransformerConfig"),
    "tinytx.model.costs": ("cost_table",),
    "tinytx.model.counting": ("count_parameters", "parameter_table"),
    "tinytx.model.diagnosis": ("diagnose_count",),
    "tinytx.model.masked": ("MaskedLanguageModel",),
    "tinytx.model.masks": ("causal_mask", "padding_mask"),
    "tinytx.model.multihead": ("MultiHeadAttention",),
    "tinytx.model.positions": ("shift_matrix", "sinusoidal_positions"),
    "tinytx.model.transformer": ("Classifier", "LanguageModel"),
    "tinytx.model.translator": ("Translator",),
    "tinytx.teaching.quizzes": ("quiz",),
    "tinytx.teaching.exercises.checking": ("check",),
    "tinytx.teaching.exercises.verdict": ("Verdict",),
    "tinytx.text.corpora": ("load_corpus",),
    "tinytx.text.tokenizer": ("Tokenizer",),
    "tinytx.text.world": ("Review", "World"),
    "tinytx.training.runs.checkpoints": ("load", "save"),
}
_HOME = {name: module for module, names in _NAMES.items() for name in names}
_MODULES = {"widgets": "tinytx.teaching.widgets"}

__all__ = [
    "PRESETS",
    "Classifier",
    "LanguageModel",
    "MaskedLanguageModel",
    "MultiHeadAttention",
    "Review",
    "Tokenizer",
    "TransformerBody",
    "TransformerConfig",
    "Translator",
    "Verdict",
    "World",
    "attention",
    "attention_weights",
    "causal_mask",
    "check",
    "cost_table",
    "count_parameters",
    "diagnose_count",
    "load",
    "load_corpus",
    "padding_mask",
    "parameter_table",
    "quiz",
    "save",
    "shift_matrix",
    "sinusoidal_positions",
]


def __getattr__(name: str) -> Any:
    """Import a public name on first use (PEP 562) and remember it."""
    value: Any
    if name in _MODULES:
        value = importlib.import_module(_MODULES[name])
    elif name in _HOME:
        value = getattr(importlib.import_module(_HOME[name]), name)
    else:
        raise AttributeError(_unknown(name))
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *_HOME, *_MODULES})


def _unknown(name: str) -> str:
    import difflib

    near = difflib.get_close_matches(name, [*_HOME, *_MODULES], n=1)
    hint = f"; did you mean {near[0]!r}?" if near else ""
    return f"module 'tinytx' has no attribute {name!r}{hint}"
