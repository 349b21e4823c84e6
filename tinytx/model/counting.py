"""How many numbers a transformer learns: the closed form, term by term, and the count."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal, get_args

import torch
from torch import nn

from tinytx.model.body import TransformerBody
from tinytx.model.config import TransformerConfig
from tinytx.model.masked import MaskedLanguageModel
from tinytx.model.terms import (
    LAYERED,
    ParameterRow,
    ParameterTable,
    Term,
    attention_terms,
    feed_forward_terms,
    linear,
    make_table,
    norm,
)
from tinytx.model.transformer import Classifier, LanguageModel
from tinytx.model.translator import Translator

__all__ = ["Head", "ParameterRow", "ParameterTable", "build_empty", "count_parameters", "parameter_table"]

Head = Literal["lm", "classifier", "translation", "masked", "masked+nsp"]


def parameter_table(
    config: TransformerConfig, head: Head | None = "lm", n_classes: int = 2
) -> ParameterTable:
    """Count the parameters of a model from its settings alone, without building it.

    A linear map from D to F learns a matrix and a bias, ``D·F + F``; a norm a factor and a shift, ``2·D``.

    Parameters
    ----------
    config : TransformerConfig
        The settings.
    head : {"lm", "classifier", "translation", "masked", "masked+nsp"} or None
        What stands on the body; None counts the body alone, an encoder or, with `causal`, a decoder: the mask
        learns nothing. "translation" counts both, the `Translator`. "masked" counts the `MaskedLanguageModel`
        with its transform (without it, it is "lm"), "masked+nsp" its head for next sentences too.
    n_classes : int
        C, read for a classifier.

    Returns
    -------
    ParameterTable
        ``table.total`` equals `count_parameters` of the model built from the same settings.

    Raises
    ------
    ValueError
        If `head` is not as above or `n_classes` is smaller than 1.

    Notes
    -----
    The number of heads occurs in no formula: H heads of width D / H have together the matrices of one head
    of width D. A head tied to the embeddings learns its bias only; fixed positions learn nothing.

    Examples
    --------
    >>> config = TransformerConfig(vocab_size=10, d_model=2, n_heads=1, n_layers=3, d_ff=5)
    >>> table = parameter_table(config, head="classifier")
    >>> table.parts
    {'embeddings': 20, 'blocks': 177, 'final_norm': 4, 'head': 6}
    >>> table.total
    207
    >>> row = table.rows[3]
    >>> row.name, row.formula, row.numbers, row.count, row.times
    ('q_proj, k_proj, v_proj', '3·(D·D + D)', '3·(2·2 + 2)', 18, 3)

    The encoder-decoder of the paper, whose authors write 65 million:

    >>> base = TransformerConfig(vocab_size=37_000, d_model=512, n_heads=8, n_layers=6, d_ff=2_048)
    >>> parameter_table(base.replace(norm="last", tie_embeddings=True), head="translation").total
    63082496
    """
    _check(head, n_classes)
    if head == "translation" and config.n_segments:
        raise ValueError(f"a translator must have n_segments=0, got n_segments={config.n_segments}")
    sizes = {
        "V": config.vocab_size,
        "D": config.d_model,
        "F": config.d_ff,
        "C": n_classes,
        "max_len": config.max_len,
        "n_segments": config.n_segments,
        "position_offset": config.position_offset,
    }
    terms = _translator_terms(config) if head == "translation" else _one_stack_terms(config, head)
    return make_table(terms, sizes, dict.fromkeys(LAYERED, config.n_layers))


def count_parameters(model: nn.Module) -> int:
    """Count the parameters that a model holds; one that is shared counts once.

    Examples
    --------
    >>> count_parameters(nn.Linear(3, 5))
    20
    """
    return sum(parameter.numel() for parameter in model.parameters())


def build_empty(config: TransformerConfig, head: Head | None = "lm", n_classes: int = 2) -> nn.Module:
    """Build the model of `parameter_table` with shapes but without numbers, so that any size costs nothing.

    Examples
    --------
    >>> from tinytx.model.config import PRESETS
    >>> count_parameters(build_empty(PRESETS["seed-lab"].replace(vocab_size=10**9)))
    401000968000
    """
    _check(head, n_classes)
    with torch.device("meta"):
        if head == "lm":
            return LanguageModel(config)
        if head == "classifier":
            return Classifier(config, n_classes)
        if head in ("masked", "masked+nsp"):
            return MaskedLanguageModel(config, next_sentence=head == "masked+nsp")
        return Translator(config) if head == "translation" else TransformerBody(config)


def _check(head: str | None, n_classes: int) -> None:
    if head is not None and head not in get_args(Head):
        known = ", ".join(map(repr, get_args(Head)))
        raise ValueError(f"head must be {known} or None, got {head!r}")
    if n_classes < 1:
        raise ValueError(f"n_classes must be at least 1, got {n_classes}")


def _one_stack_terms(config: TransformerConfig, head: Head | None) -> Iterator[Term]:
    yield Term("embeddings", "embeddings", "token_embed", "V·D")
    yield Term("embeddings", "embeddings", "pos_embed", _positions(config))
    if config.n_segments:
        yield Term("embeddings", "embeddings", "segment_embed", "n_segments·D")
    if config.embed_norm:
        yield Term("embeddings", "norms", "embed_norm", norm(config.bias))
    yield from attention_terms("blocks", config.bias)
    yield from feed_forward_terms("blocks", config.bias)
    if config.norm == "first":
        yield Term("final_norm", "norms", "final_norm", norm(config.bias))
    if head in ("masked", "masked+nsp"):
        yield Term("head", "head", "dense", linear("D", "D", config.bias))
        yield Term("head", "norms", "norm", norm(config.bias))
    if head in ("lm", "masked", "masked+nsp"):
        if config.tie_embeddings:
            yield Term("head", "head", "lm_head, tied", "V" if config.lm_bias else "0")
        else:
            yield Term("head", "head", "lm_head", linear("D", "V", config.lm_bias))
    if head == "masked+nsp":
        yield Term("head", "head", "pooler", linear("D", "D", config.bias))
        yield Term("head", "head", "next_head", linear("D", "2", config.bias))
    elif head == "classifier":
        yield Term("head", "head", "class_head", linear("D", "C", config.bias))


def _translator_terms(config: TransformerConfig) -> Iterator[Term]:
    tied, positions = config.tie_embeddings, _positions(config)
    yield Term("embeddings", "embeddings", "token_embed", "V·D" if tied else "2·V·D")
    two = f"2·({positions})" if " + " in positions else f"2·{positions}"
    yield Term("embeddings", "embeddings", "pos_embed", "0" if positions == "0" else two)
    if config.embed_norm:
        yield Term("embeddings", "norms", "embed_norm, two", f"2·{norm(config.bias)}")
    yield from attention_terms("encoder", config.bias)
    yield from feed_forward_terms("encoder", config.bias)
    yield from attention_terms("decoder", config.bias)
    yield from attention_terms("decoder", config.bias, "cross: ", "cross_norm")
    yield from feed_forward_terms("decoder", config.bias)
    if config.norm == "first":
        yield Term("final_norm", "norms", "final_norm, two", f"2·{norm(config.bias)}")
    if tied:
        yield Term("head", "head", "lm_head, tied", "V" if config.translation_bias else "0")
    else:
        yield Term("head", "head", "lm_head", linear("D", "V", config.translation_bias))


def _positions(config: TransformerConfig) -> str:
    if config.positions != "learned":
        return "0"
    return "max_len·D + position_offset·D" if config.position_offset else "max_len·D"
