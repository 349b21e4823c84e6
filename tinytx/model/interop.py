"""Weights to and from the models of the `transformers` package, which give the same outputs.

Nothing is downloaded: what goes in is a model at hand, or a folder on disk.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from tinytx.model.config import TransformerConfig
from tinytx.model.masked import MaskedLanguageModel

if TYPE_CHECKING:
    from torch import Tensor
    from transformers import PreTrainedModel

# What makes a `MaskedLanguageModel` a BERT; sizes are free.
BERT: dict[str, Any] = {
    "causal": False,
    "norm": "last",
    "positions": "learned",
    "bias": True,
    "tie_embeddings": True,
    "scale_embeddings": False,
    "embed_norm": True,
}

_ONCE = {
    "body.token_embed.weight": "bert.embeddings.word_embeddings.weight",
    "body.pos_embed.table": "bert.embeddings.position_embeddings.weight",
    "body.segment_embed.weight": "bert.embeddings.token_type_embeddings.weight",
    "body.embed_norm": "bert.embeddings.LayerNorm",
    "head.dense.0": "cls.predictions.transform.dense",
    "head.norm": "cls.predictions.transform.LayerNorm",
    "head.output.bias": "cls.predictions.bias",
}
_NEXT_SENTENCE = {"next_head.pooler": "bert.pooler.dense", "next_head.output": "cls.seq_relationship"}
_IN_A_BLOCK = {
    "attn.q_proj": "attention.self.query",
    "attn.k_proj": "attention.self.key",
    "attn.v_proj": "attention.self.value",
    "attn.out_proj": "attention.output.dense",
    "attn_norm": "attention.output.LayerNorm",
    "ff.up_proj": "intermediate.dense",
    "ff.down_proj": "output.dense",
    "ff_norm": "output.LayerNorm",
}


def to_transformers(model: MaskedLanguageModel) -> PreTrainedModel:
    """Build the model of `transformers` that computes the same, with the same weights.

    Parameters
    ----------
    model : MaskedLanguageModel
        With the settings in ``BERT``, at least one segment, and its transform.

    Returns
    -------
    transformers.BertForMaskedLM or transformers.BertForPreTraining
        The latter for a model with a head for next sentences. In evaluation mode; weights are copied.

    Raises
    ------
    TypeError
        If the model is of another kind.
    ValueError
        If a setting has no counterpart there; the message names it.

    Notes
    -----
    Outputs are the same where nothing is dropped out: BERT drops nothing inside the feed-forward network.

    Examples
    --------
    >>> sizes = dict(vocab_size=11, d_model=6, n_heads=3, n_layers=2, d_ff=5, max_len=7)
    >>> model = MaskedLanguageModel(TransformerConfig(**sizes, **BERT, n_segments=2))
    >>> to_transformers(model).config.hidden_size                   # doctest: +SKIP
    6
    """
    import transformers

    if not isinstance(model, MaskedLanguageModel):
        raise TypeError(f"model must be a MaskedLanguageModel, got a {type(model).__name__}")
    config = model.config
    for name, value in BERT.items():
        if getattr(config, name) != value:
            raise ValueError(f"{name} must be {value!r} to be a BERT, got {getattr(config, name)!r}")
    if config.n_segments < 1 or not model.transform:
        got = f"n_segments={config.n_segments}, transform={model.transform}"
        raise ValueError(f"n_segments must be 1 or more and transform True to be a BERT, got {got}")
    with_next = model.next_head is not None
    kind = transformers.BertForPreTraining if with_next else transformers.BertForMaskedLM
    theirs = kind(
        transformers.BertConfig(
            vocab_size=config.vocab_size,
            hidden_size=config.d_model,
            num_hidden_layers=config.n_layers,
            num_attention_heads=config.n_heads,
            intermediate_size=config.d_ff,
            hidden_act=config.activation,
            hidden_dropout_prob=config.dropout,
            attention_probs_dropout_prob=config.dropout,
            max_position_embeddings=config.max_len,
            type_vocab_size=config.n_segments,
            layer_norm_eps=config.norm_eps,
        )
    )
    ours = model.state_dict()
    named = {other: ours[name] for name, other in _names(list(ours), config.n_layers, with_next)}
    _fill(theirs, {**named, "cls.predictions.decoder.weight": named[_ONCE["body.token_embed.weight"]]})
    return theirs.eval()


def from_transformers(model: PreTrainedModel | str | os.PathLike[str]) -> MaskedLanguageModel:
    """Build our model that computes the same as one of `transformers`, with the same weights.

    Parameters
    ----------
    model : transformers.BertForMaskedLM, transformers.BertForPreTraining or path
        A model, or a folder that its ``save_pretrained`` wrote.

    Returns
    -------
    MaskedLanguageModel
        In evaluation mode; weights are copied.

    Raises
    ------
    TypeError
        If the model is of another kind.
    ValueError
        If the folder does not exist, or a setting has no counterpart here.
    """
    import transformers

    theirs = _from_folder(model) if isinstance(model, str | os.PathLike) else model
    if not isinstance(theirs, transformers.BertForMaskedLM | transformers.BertForPreTraining):
        raise TypeError(
            f"model must be a BertForMaskedLM or a BertForPreTraining, got a {type(theirs).__name__}"
        )
    given = theirs.config
    if given.hidden_act not in ("gelu", "relu"):
        raise ValueError(f"hidden_act must be 'gelu' or 'relu', got {given.hidden_act!r}")
    if getattr(given, "is_decoder", False) or not given.tie_word_embeddings:
        raise ValueError("the model must be an encoder with tied embeddings, got another")
    config = TransformerConfig(
        vocab_size=given.vocab_size,
        d_model=given.hidden_size,
        n_heads=given.num_attention_heads,
        n_layers=given.num_hidden_layers,
        d_ff=given.intermediate_size,
        max_len=given.max_position_embeddings,
        activation="gelu" if given.hidden_act == "gelu" else "relu",
        dropout=given.hidden_dropout_prob,
        n_segments=given.type_vocab_size,
        norm_eps=given.layer_norm_eps,
        **BERT,
    )
    with_next = isinstance(theirs, transformers.BertForPreTraining)
    ours = MaskedLanguageModel(config, next_sentence=with_next)
    state = theirs.state_dict()
    names = _names(list(ours.state_dict()), config.n_layers, with_next)
    named = {name: state[other] for name, other in names}
    _fill(ours, {**named, "head.output.weight": named["body.token_embed.weight"]})
    return ours.eval()


def _from_folder(folder: str | os.PathLike[str]) -> PreTrainedModel:
    import transformers

    if not os.path.isdir(folder):
        raise ValueError(f"model must be a model or an existing folder, got {os.fspath(folder)!r}")
    config = transformers.AutoConfig.from_pretrained(folder, local_files_only=True)
    kinds = {kind.__name__: kind for kind in (transformers.BertForMaskedLM, transformers.BertForPreTraining)}
    (name,) = getattr(config, "architectures", None) or ("none",)
    if name not in kinds:
        raise TypeError(f"model must be a {' or a '.join(kinds)}, got a folder with {name}")
    return kinds[name].from_pretrained(folder, local_files_only=True)


def _names(ours: list[str], n_layers: int, with_next: bool) -> Iterator[tuple[str, str]]:
    """Our name and theirs of each weight that is no copy of another."""
    modules = dict(_ONCE) | (_NEXT_SENTENCE if with_next else {})
    for layer in range(n_layers):
        for name, other in _IN_A_BLOCK.items():
            modules[f"body.blocks.{layer}.{name}"] = f"bert.encoder.layer.{layer}.{other}"
    for name in ours:
        if name == "head.output.weight":  # tied
            continue
        if name in modules:
            yield name, modules[name]
        else:
            module, _, kind = name.rpartition(".")
            yield name, f"{modules[module]}.{kind}"


def _fill(model: Any, weights: dict[str, Tensor]) -> None:
    """Copy weights into a model; nothing may be left over, and only what is computed anew may be missing."""
    found = model.load_state_dict(weights, strict=False)
    missing = set(found.missing_keys) - {"cls.predictions.decoder.bias", "bert.embeddings.position_ids"}
    if missing or found.unexpected_keys:
        raise ValueError(f"weights must fit, got missing {sorted(missing)}, unknown {found.unexpected_keys}")
