"""Lesson 06, counting parameters: published models by their settings.

Nothing is downloaded: a count needs only the ``config.json`` that a model is published with.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from tinytx.config import TransformerConfig
from tinytx.counting import ParameterTable, Term, linear, make_table, parameter_table
from tinytx_run.hf.families import DECODER_FIELDS, FAMILIES

# The sizes of a configuration, in the order in which models are listed here.
_OURS = ("vocab_size", "d_model", "n_heads", "n_layers", "d_ff", "max_len", "n_segments")

Settings = Mapping[str, int]

# The settings of a ``config.json`` on which a count depends, by family, in the order of `_OURS`.
_THEIRS: Mapping[str, tuple[str, ...]] = {
    "distilbert": ("vocab_size", "dim", "n_heads", "n_layers", "hidden_dim", "max_position_embeddings"),
    **{
        name: tuple(one.fields[ours] for ours in _OURS if ours in one.fields)
        for name, one in FAMILIES.items()
    },
}
_ENCODER = {"norm": "last", "positions": "learned", "embed_norm": True}
_FIXED: Mapping[str, dict[str, Any]] = {  # what all models of a family have in common
    "gpt2": {"positions": "learned"},
    "mbart": {"positions": "learned", "embed_norm": True, "tie_embeddings": True, "head_bias": False},
}


@dataclass(frozen=True)
class PublishedModel:
    """A published model."""

    family: str  # the ``model_type`` of its ``config.json``
    settings: Settings  # those of its ``config.json`` that the count depends on
    source: str  # where the settings were published
    stated: float | None = None  # parameters as its paper gives them, in millions

    @property
    def config(self) -> TransformerConfig:
        """As one of our models."""
        theirs = (self.settings[name] for name in _THEIRS[self.family])
        sizes: dict[str, Any] = dict(zip(_OURS, theirs, strict=False))
        if self.family == "mbart":
            sizes["max_len"] += 2  # two rows of its positions are never used
        return TransformerConfig(**_FIXED.get(self.family, _ENCODER), **sizes)

    def table(self) -> ParameterTable:
        """Every term of the bare model; each of these ties its output layer to the embeddings.

        Examples
        --------
        >>> PUBLISHED["DistilBERT base"].table().parts
        {'embeddings': 23835648, 'blocks': 42527232}
        """
        table = parameter_table(self.config, "translation" if self.family == "mbart" else None)
        if not self.config.n_segments:  # no BERT
            return table
        width = {"D": self.config.d_model}
        pooler = make_table([Term("head", "head", "pooler", linear("D", "D"))], width, {})
        return ParameterTable((*table.rows, *pooler.rows))


def _model(family: str, sizes: tuple[int, ...], source: str, stated: float | None = None) -> PublishedModel:
    """A model from its settings in the order of `_THEIRS`."""
    settings = dict(zip(_THEIRS[family], sizes, strict=True))
    if family == "mbart":
        fields = FAMILIES[family].fields
        settings |= {theirs: settings[fields[ours]] for ours, theirs in DECODER_FIELDS.items()}
    return PublishedModel(family, settings, source, stated)


_DEVLIN = "arXiv 1810.04805, section 3"
_RADFORD = "Radford et al. 2019, table 2"

PUBLISHED: Mapping[str, PublishedModel] = {
    "BERT base": _model("bert", (30_522, 768, 12, 12, 3_072, 512, 2), _DEVLIN, 110),
    "BERT large": _model("bert", (30_522, 1_024, 16, 24, 4_096, 512, 2), _DEVLIN, 340),
    # RoBERTa counts positions from 2 on, and has one type of segment instead of two.
    "RoBERTa base": _model("roberta", (50_265, 768, 12, 12, 3_072, 514, 1), "arXiv 1907.11692"),
    "RoBERTa large": _model(
        "roberta", (50_265, 1_024, 16, 24, 4_096, 514, 1), "arXiv 1907.11692, section 5", 355
    ),
    "CamemBERT base": _model(
        "camembert", (32_005, 768, 12, 12, 3_072, 514, 1), "arXiv 1911.03894, section 4", 110
    ),
    "DistilBERT base": _model(
        "distilbert", (30_522, 768, 12, 6, 3_072, 512), "arXiv 1910.01108, table 3", 66
    ),
    "GPT-2 small": _model("gpt2", (50_257, 768, 12, 12, 3_072, 1_024), _RADFORD, 117),
    "GPT-2 medium": _model("gpt2", (50_257, 1_024, 16, 24, 4_096, 1_024), _RADFORD, 345),
    "GPT-2 large": _model("gpt2", (50_257, 1_280, 20, 36, 5_120, 1_024), _RADFORD, 762),
    "GPT-2 XL": _model("gpt2", (50_257, 1_600, 25, 48, 6_400, 1_024), _RADFORD, 1_542),
    "BARThez": _model("mbart", (50_002, 768, 12, 6, 3_072, 1_024), "arXiv 2010.12321", 165),
    "mBART": _model("mbart", (250_027, 1_024, 16, 12, 4_096, 1_024), "arXiv 2001.08210, section 2.2", 680),
}
