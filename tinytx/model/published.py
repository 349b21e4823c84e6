"""Published models as tables of terms, from their configurations alone.

The settings are those of the ``config.json`` that a model is published with, under the names used there, so
that the same functions count other models of these families too. Nothing is downloaded.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from tinytx.model.config import TransformerConfig
from tinytx.model.counting import parameter_table
from tinytx.model.terms import (
    LAYERED,
    ParameterTable,
    Term,
    attention_terms,
    feed_forward_terms,
    linear,
    make_table,
    norm,
)

Settings = Mapping[str, Any]


@dataclass(frozen=True)
class PublishedModel:
    """A model that others trained, by its settings.

    Attributes
    ----------
    family : str
        Which function counts it, one of ``FAMILIES``.
    counted_as : str
        The class of the `transformers` package that has these parameters; the original Transformer has none
        there and is counted as our `Translator`.
    settings : mapping of str to int
        Those that the count depends on.
    source : str
        Where the settings stand.
    stated : float or None
        Parameters as its paper gives them, in millions.
    """

    family: str
    counted_as: str
    settings: Settings
    source: str
    stated: float | None = None

    def table(self) -> ParameterTable:
        """Every term of its count."""
        return published_table(self.family, self.settings)


def published_table(family: str, settings: Settings) -> ParameterTable:
    """Count a model of a family of published ones from its settings.

    Parameters
    ----------
    family : str
        One of ``FAMILIES``; the ``model_type`` of a ``config.json``.
    settings : mapping
        As in a ``config.json``; entries that the count does not depend on are not read.

    Returns
    -------
    ParameterTable
        Of the bare model: what predicts words shares its matrix with the embedding in all of these, and other
        heads are chosen by those who fine-tune it.

    Raises
    ------
    ValueError
        If the family is unknown or a setting is missing.

    Examples
    --------
    >>> table = published_table("distilbert", PUBLISHED["DistilBERT base"].settings)
    >>> table.parts
    {'embeddings': 23835648, 'blocks': 42527232}
    >>> table.total
    66362880
    """
    if family not in FAMILIES:
        raise ValueError(f"family must be one of {', '.join(FAMILIES)}, got {family!r}")
    try:
        return FAMILIES[family](settings)
    except KeyError as missing:
        raise ValueError(f"settings of {family} must hold {missing.args[0]}, got none") from None


def _transformer(settings: Settings) -> ParameterTable:
    config = TransformerConfig(norm="last", tie_embeddings=True, activation="relu", **settings)
    return parameter_table(config, head="translation")


def _bert(settings: Settings) -> ParameterTable:
    sizes = {
        "V": settings["vocab_size"],
        "D": settings["hidden_size"],
        "F": settings["intermediate_size"],
        "max_len": settings["max_position_embeddings"],
        "types": settings["type_vocab_size"],
    }
    types = Term("embeddings", "embeddings", "type_embed", "types·D")
    pooler = Term("head", "head", "pooler", linear("D", "D"))
    return make_table([*_encoder(types), pooler], sizes, _times(settings["num_hidden_layers"]))


def _distilbert(settings: Settings) -> ParameterTable:
    sizes = {
        "V": settings["vocab_size"],
        "D": settings["dim"],
        "F": settings["hidden_dim"],
        "max_len": settings["max_position_embeddings"],
    }
    return make_table(_encoder(), sizes, _times(settings["n_layers"]))


def _encoder(*more_embeddings: Term) -> Iterator[Term]:
    yield Term("embeddings", "embeddings", "token_embed", "V·D")
    yield Term("embeddings", "embeddings", "pos_embed", "max_len·D")
    yield from more_embeddings
    yield Term("embeddings", "norms", "embed_norm", norm())
    yield from attention_terms("blocks")
    yield from feed_forward_terms("blocks")


def _gpt2(settings: Settings) -> ParameterTable:
    width = settings["n_embd"]
    sizes = {
        "V": settings["vocab_size"],
        "D": width,
        "F": settings.get("n_inner") or 4 * width,
        "max_len": settings["n_positions"],
    }
    terms = [
        Term("embeddings", "embeddings", "token_embed", "V·D"),
        Term("embeddings", "embeddings", "pos_embed", "max_len·D"),
        *attention_terms("blocks"),
        *feed_forward_terms("blocks"),
        Term("final_norm", "norms", "final_norm", norm()),
    ]
    return make_table(terms, sizes, _times(settings["n_layer"]))


def _mbart(settings: Settings) -> ParameterTable:
    sizes = {
        "V": settings["vocab_size"],
        "D": settings["d_model"],
        "F": settings["encoder_ffn_dim"],
        "G": settings["decoder_ffn_dim"],
        "max_len": settings["max_position_embeddings"] + 2,  # two rows are set aside and never used
    }
    terms = [
        Term("embeddings", "embeddings", "token_embed", "V·D"),
        Term("embeddings", "embeddings", "pos_embed, two", "2·max_len·D"),
        Term("embeddings", "norms", "embed_norm, two", "2·2·D"),
        *attention_terms("encoder"),
        *feed_forward_terms("encoder"),
        *attention_terms("decoder"),
        *attention_terms("decoder", module="cross: ", norm_name="cross_norm"),
        *feed_forward_terms("decoder", inner="G"),
        Term("final_norm", "norms", "final_norm, two", "2·2·D"),
    ]
    times = {"encoder": settings["encoder_layers"], "decoder": settings["decoder_layers"]}
    return make_table(terms, sizes, times)


def _t5(settings: Settings) -> ParameterTable:
    sizes = {
        "V": settings["vocab_size"],
        "D": settings["d_model"],
        "F": settings["d_ff"],
        "I": settings["num_heads"] * settings["d_kv"],  # all heads side by side
        "H": settings["num_heads"],
        "buckets": settings["relative_attention_num_buckets"],
    }
    gated = str(settings.get("feed_forward_proj", "relu")).startswith("gated")
    terms = [
        Term("embeddings", "embeddings", "token_embed", "V·D"),
        Term("embeddings", "embeddings", "distances, two", "2·buckets·H"),
        *_t5_attention("encoder"),
        *_t5_feed_forward("encoder", gated),
        *_t5_attention("decoder"),
        *_t5_attention("decoder", "cross: ", "cross_norm"),
        *_t5_feed_forward("decoder", gated),
        Term("final_norm", "norms", "final_norm, two", "2·D"),
    ]
    n_decoder = settings.get("num_decoder_layers") or settings["num_layers"]
    return make_table(terms, sizes, {"encoder": settings["num_layers"], "decoder": n_decoder})


def _t5_attention(part: str, module: str = "", norm_name: str = "attn_norm") -> Iterator[Term]:
    yield Term(part, "norms", norm_name, norm(bias=False))
    yield Term(part, "attention", f"{module}q_proj, k_proj, v_proj", "3·D·I")
    yield Term(part, "attention", f"{module}out_proj", "I·D")


def _t5_feed_forward(part: str, gated: bool) -> Iterator[Term]:
    yield Term(part, "norms", "ff_norm", norm(bias=False))
    yield Term(part, "feed_forward", "up_proj and gate" if gated else "up_proj", "2·D·F" if gated else "D·F")
    yield Term(part, "feed_forward", "down_proj", "F·D")


def _times(n_layers: int) -> dict[str, int]:
    return dict.fromkeys(LAYERED, n_layers)


FAMILIES: Mapping[str, Callable[[Settings], ParameterTable]] = {
    "transformer": _transformer,
    "bert": _bert,
    "roberta": _bert,
    "camembert": _bert,
    "distilbert": _distilbert,
    "gpt2": _gpt2,
    "mbart": _mbart,
    "t5": _t5,
}


def _paper(d_model: int, n_heads: int, d_ff: int) -> Settings:
    return {"vocab_size": 37_000, "d_model": d_model, "n_heads": n_heads, "n_layers": 6, "d_ff": d_ff}


def _bert_settings(vocab_size: int, *, large: bool = False, roberta: bool = False) -> Settings:
    return {
        "vocab_size": vocab_size,
        "hidden_size": 1_024 if large else 768,
        "num_hidden_layers": 24 if large else 12,
        "num_attention_heads": 16 if large else 12,
        "intermediate_size": 4_096 if large else 3_072,
        # RoBERTa counts places from 2 on, and knows one type of segment instead of two.
        "max_position_embeddings": 514 if roberta else 512,
        "type_vocab_size": 1 if roberta else 2,
    }


def _gpt2_settings(n_embd: int, n_layer: int, n_head: int) -> Settings:
    return {
        "vocab_size": 50_257,
        "n_positions": 1_024,
        "n_embd": n_embd,
        "n_layer": n_layer,
        "n_head": n_head,
    }


def _mbart_settings(vocab_size: int, d_model: int, n_layers: int, n_heads: int) -> Settings:
    both = {"layers": n_layers, "attention_heads": n_heads, "ffn_dim": 4 * d_model}
    halves = {f"{half}_{name}": value for half in ("encoder", "decoder") for name, value in both.items()}
    return {"vocab_size": vocab_size, "d_model": d_model, "max_position_embeddings": 1_024, **halves}


_DISTILBERT = {
    "vocab_size": 30_522,
    "dim": 768,
    "n_layers": 6,
    "n_heads": 12,
    "hidden_dim": 3_072,
    "max_position_embeddings": 512,
}
_T5_SMALL = {
    "vocab_size": 32_128,
    "d_model": 512,
    "d_kv": 64,
    "d_ff": 2_048,
    "num_layers": 6,
    "num_heads": 8,
    "relative_attention_num_buckets": 32,
}
_VASWANI = "arXiv 1706.03762, table 3; vocabulary from section 5.1"
_GPT2_PAPER = "Radford et al. 2019, table 2"

PUBLISHED: Mapping[str, PublishedModel] = {
    "Transformer base": PublishedModel("transformer", "Translator", _paper(512, 8, 2_048), _VASWANI, 65),
    "Transformer big": PublishedModel("transformer", "Translator", _paper(1_024, 16, 4_096), _VASWANI, 213),
    "BERT base": PublishedModel(
        "bert", "BertModel", _bert_settings(30_522), "bert-base-uncased; arXiv 1810.04805, section 3", 110
    ),
    "BERT large": PublishedModel(
        "bert",
        "BertModel",
        _bert_settings(30_522, large=True),
        "bert-large-uncased; arXiv 1810.04805, section 3",
        340,
    ),
    "RoBERTa base": PublishedModel(
        "roberta", "RobertaModel", _bert_settings(50_265, roberta=True), "roberta-base; arXiv 1907.11692"
    ),
    "RoBERTa large": PublishedModel(
        "roberta",
        "RobertaModel",
        _bert_settings(50_265, large=True, roberta=True),
        "roberta-large; arXiv 1907.11692, section 5",
        355,
    ),
    "CamemBERT base": PublishedModel(
        "camembert",
        "CamembertModel",
        _bert_settings(32_005, roberta=True),
        "camembert-base; arXiv 1911.03894, section 4",
        110,
    ),
    "DistilBERT base": PublishedModel(
        "distilbert",
        "DistilBertModel",
        _DISTILBERT,
        "distilbert-base-uncased; arXiv 1910.01108, table 3",
        66,
    ),
    "GPT-2 small": PublishedModel("gpt2", "GPT2Model", _gpt2_settings(768, 12, 12), _GPT2_PAPER, 117),
    "GPT-2 medium": PublishedModel("gpt2", "GPT2Model", _gpt2_settings(1_024, 24, 16), _GPT2_PAPER, 345),
    "GPT-2 large": PublishedModel("gpt2", "GPT2Model", _gpt2_settings(1_280, 36, 20), _GPT2_PAPER, 762),
    "GPT-2 XL": PublishedModel("gpt2", "GPT2Model", _gpt2_settings(1_600, 48, 25), _GPT2_PAPER, 1_542),
    "BARThez": PublishedModel(
        "mbart", "MBartModel", _mbart_settings(50_002, 768, 6, 12), "moussaKam/barthez; arXiv 2010.12321", 165
    ),
    "mBART": PublishedModel(
        "mbart",
        "MBartModel",
        _mbart_settings(250_027, 1_024, 12, 16),
        "facebook/mbart-large-cc25; arXiv 2001.08210, section 2.2",
        680,
    ),
    "T5 small": PublishedModel("t5", "T5Model", _T5_SMALL, "t5-small; arXiv 1910.10683, section 3.7", 60),
}
