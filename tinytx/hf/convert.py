"""Weights to and from the models of the `transformers` package, which give the same outputs.

A published model is the same house with more floors: GPT-2 is our `LanguageModel`, BERT and CamemBERT are our
`MaskedLanguageModel`, and Marian is our `Translator`, each with settings of its own.

gpt2          GPT-2
encoders      BERT, RoBERTa, CamemBERT
translators   BART, mBART, Marian, Pegasus
mapping       which weight of ours is which of theirs
equivalents   the same function with other weights
folders       models on disk, or by name
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from types import ModuleType, SimpleNamespace
from typing import TYPE_CHECKING, Any

from tinytx.hf import encoders, gpt2, translators
from tinytx.hf.encoders import BERT
from tinytx.hf.folders import is_published, load_published, save_published
from tinytx.hf.gpt2 import GPT2
from tinytx.model.config import TransformerConfig
from tinytx.model.encoder_decoder import Translator
from tinytx.model.masked_lm import MaskedLanguageModel
from tinytx.model.transformer import LanguageModel

if TYPE_CHECKING:
    from transformers import PretrainedConfig, PreTrainedModel

__all__ = [
    "BERT",
    "FAMILIES",
    "GPT2",
    "config_from_settings",
    "config_from_transformers",
    "from_transformers",
    "is_published",
    "save_transformers",
    "to_transformers",
]

Model = LanguageModel | MaskedLanguageModel | Translator

# By `model_type` of a `config.json`: who reads it, and the classes of `transformers` that are read.
FAMILIES: Mapping[str, tuple[ModuleType, tuple[str, ...]]] = {
    "gpt2": (gpt2, ("GPT2LMHeadModel",)),
    "bert": (encoders, ("BertForMaskedLM", "BertForPreTraining")),
    "roberta": (encoders, ("RobertaForMaskedLM",)),
    "camembert": (encoders, ("CamembertForMaskedLM",)),
    "xlm-roberta": (encoders, ("XLMRobertaForMaskedLM",)),
    "bart": (translators, ("BartForConditionalGeneration",)),
    "mbart": (translators, ("MBartForConditionalGeneration",)),
    "marian": (translators, ("MarianMTModel",)),
    "pegasus": (translators, ("PegasusForConditionalGeneration",)),
}
_CLASSES = {family: classes for family, (_, classes) in FAMILIES.items()}
_WRITERS = {LanguageModel: gpt2, MaskedLanguageModel: encoders, Translator: translators}


def from_transformers(model: PreTrainedModel | str | os.PathLike[str]) -> Model:
    """Build our model that computes the same as one of `transformers`, with the same weights.

    Parameters
    ----------
    model : transformers.PreTrainedModel, path or str
        A model of a class in ``FAMILIES``, a folder that its ``save_pretrained`` wrote, or the name of a
        published one, such as "camembert-base", which is fetched, or taken from where it was fetched before.

    Returns
    -------
    LanguageModel, MaskedLanguageModel or Translator
        In evaluation mode; weights are copied.

    Raises
    ------
    TypeError
        If the model is of another kind.
    ValueError
        If there is no such folder and the name cannot be fetched, a weight is missing, or a setting has no
        counterpart here; the message names it.

    Notes
    -----
    Outputs are equal at real tokens, with padding on the right. Where the two differ in what training drops
    out, ours drops at one rate what they drop at several.
    """
    theirs = load_published(model, _CLASSES) if isinstance(model, str | os.PathLike) else model
    reader, classes = FAMILIES.get(getattr(theirs.config, "model_type", ""), (None, ()))
    if reader is None or type(theirs).__name__ not in classes:
        known = ", ".join(name for names in _CLASSES.values() for name in names)
        raise TypeError(f"model must be one of {known}, got a {type(theirs).__name__}")
    return reader.read(theirs).to(theirs.dtype).eval()


def to_transformers(model: Model, **settings: Any) -> PreTrainedModel:
    """Build the model of `transformers` that computes the same, with the same weights.

    Parameters
    ----------
    model : LanguageModel, MaskedLanguageModel or Translator
        A causal language model with the norm first becomes a GPT-2; a masked one with the norm last, a norm
        on its embeddings and a transform, a BERT, or a RoBERTa where `position_offset` is not 0; a translator
        one of those in `tinytx.hf.translators`.
    **settings
        More for its configuration, such as ``eos_token_id=3``.

    Returns
    -------
    transformers.PreTrainedModel
        In evaluation mode; weights are copied.

    Raises
    ------
    TypeError
        If the model is of another kind.
    ValueError
        If a setting has no counterpart there; the message names it.

    Notes
    -----
    What they lack is written into what they have: sinusoidal positions into a table of learned ones, the
    scale of embeddings into the embeddings, missing biases as zeros, and the bias of a head that may have
    none into its matrix (`equivalents.hide_head_bias`).

    Examples
    --------
    >>> sizes = dict(vocab_size=11, d_model=6, n_heads=3, n_layers=2, d_ff=5, max_len=7)
    >>> model = MaskedLanguageModel(TransformerConfig(**sizes, **BERT, n_segments=2))
    >>> to_transformers(model).config.hidden_size                   # doctest: +SKIP
    6
    """
    if type(model) not in _WRITERS:
        known = ", ".join(kind.__name__ for kind in _WRITERS)
        raise TypeError(f"model must be one of {known}, got a {type(model).__name__}")
    return _WRITERS[type(model)].write(model, settings).eval()


def config_from_transformers(given: PretrainedConfig) -> TransformerConfig:
    """Our settings of a model with a configuration of theirs; no weight is needed.

    Raises
    ------
    ValueError
        If the family is unknown or a setting has no counterpart here.
    """
    if given.model_type not in FAMILIES:
        raise ValueError(f"model_type must be one of {', '.join(FAMILIES)}, got {given.model_type!r}")
    return FAMILIES[given.model_type][0].config_of(given)


# What is usual in a family, where only the settings are known that a count depends on.
_USUAL: Mapping[str, Mapping[str, Any]] = {
    "gpt2": {
        "activation_function": "gelu_new",
        "n_inner": None,
        "resid_pdrop": 0.1,
        "layer_norm_epsilon": 1e-5,
    },
    "bert": {"hidden_act": "gelu", "hidden_dropout_prob": 0.1, "layer_norm_eps": 1e-12},
    "roberta": {
        "hidden_act": "gelu",
        "hidden_dropout_prob": 0.1,
        "layer_norm_eps": 1e-5,
        "pad_token_id": 1,
    },
    "mbart": {"activation_function": "gelu", "dropout": 0.1, "scale_embedding": False},
}


def config_from_settings(family: str, settings: Mapping[str, Any]) -> TransformerConfig:
    """Our settings of a model by those of its ``config.json``; `transformers` need not be installed.

    Parameters
    ----------
    family : {"gpt2", "bert", "roberta", "camembert", "mbart"}
        Its ``model_type``.
    settings : mapping
        As in a ``config.json``. What is not in here is taken to be what is usual in the family.

    Raises
    ------
    ValueError
        If the family is another, or a setting is missing or has no counterpart here.

    Examples
    --------
    CamemBERT is our masked model with twelve floors:

    >>> from tinytx.model.counting import parameter_table
    >>> from tinytx_course.labs.lesson_06 import PUBLISHED
    >>> camembert = config_from_settings("camembert", PUBLISHED["CamemBERT base"].settings)
    >>> camembert.n_layers, camembert.d_model, camembert.n_heads, camembert.norm
    (12, 768, 12, 'last')
    >>> parameter_table(camembert, head=None).total
    110031360
    """
    usual = _USUAL.get("roberta" if family == "camembert" else family)
    if usual is None:
        raise ValueError(f"family must be one of {', '.join(_USUAL)}, camembert, got {family!r}")
    given: Any = SimpleNamespace(**{"tie_word_embeddings": True, **usual, **settings, "model_type": family})
    try:
        return FAMILIES[family][0].config_of(given)
    except AttributeError as missing:
        raise ValueError(f"settings of {family} must hold {missing.name}, got none") from None


def save_transformers(model: Model, folder: str | os.PathLike[str], **settings: Any) -> None:
    """Write a model as a folder that ``AutoModel.from_pretrained`` loads: ``config.json`` and safetensors.

    Parameters
    ----------
    model, settings
        As in `to_transformers`.
    folder : path
        New or empty.
    """
    save_published(to_transformers(model, **settings), folder)
