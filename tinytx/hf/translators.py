"""BART, mBART, Marian and Pegasus: a `Translator`, in the four ways to place norms and to tell order.

============  ===========  ==========================================
model         norm         embeddings
============  ===========  ==========================================
BART          last         learned positions, then a norm
mBART         first        learned positions, then a norm
Marian        last         sinusoidal positions
Pegasus       first        sinusoidal positions
============  ===========  ==========================================

BARThez is an mBART. What goes wrong silently: learned positions begin at row 2, embeddings may be scaled,
logits have a bias that is no parameter, and sinusoidal positions hold all sines first and all cosines last.
Here sines and cosines stand in turn, so the numbers of every vector are put into another order.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import torch

from tinytx.hf import weights as equivalents
from tinytx.hf.weights import (
    THEIR_ACTIVATION,
    Names,
    expect,
    fill_ours,
    fill_theirs,
    our_activation,
    weights_of,
)
from tinytx.model.config import TransformerConfig
from tinytx.model.encoder_decoder import Translator

if TYPE_CHECKING:
    from transformers import PretrainedConfig, PreTrainedModel

OFFSET = 2  # rows before the first of the learned positions
# What sets the four apart, by `model_type`; sizes are free.
SETTINGS: dict[str, dict[str, Any]] = {
    "bart": {"norm": "last", "positions": "learned", "position_offset": OFFSET, "embed_norm": True},
    "mbart": {"norm": "first", "positions": "learned", "position_offset": OFFSET, "embed_norm": True},
    "marian": {"norm": "last", "positions": "sinusoidal", "embed_norm": False},
    "pegasus": {"norm": "first", "positions": "sinusoidal", "embed_norm": False},
}
_CLASSES = {
    "bart": ("BartConfig", "BartForConditionalGeneration"),
    "mbart": ("MBartConfig", "MBartForConditionalGeneration"),
    "marian": ("MarianConfig", "MarianMTModel"),
    "pegasus": ("PegasusConfig", "PegasusForConditionalGeneration"),
}
_ATTENTION = ("q_proj", "k_proj", "v_proj", "out_proj")
_ENCODER_BLOCK = {
    **{f"attn.{name}": f"self_attn.{name}" for name in _ATTENTION},
    "attn_norm": "self_attn_layer_norm",
    "ff.up_proj": "fc1",
    "ff.down_proj": "fc2",
    "ff_norm": "final_layer_norm",
}
_DECODER_BLOCK = {
    **_ENCODER_BLOCK,
    **{f"cross_attn.{name}": f"encoder_attn.{name}" for name in _ATTENTION},
    "cross_norm": "encoder_attn_layer_norm",
}
_ONCE = {"encoder.token_embed": "model.shared", "head.bias": "final_logits_bias"}
for _half in ("encoder", "decoder"):
    _ONCE |= {
        f"{_half}.pos_embed.table": f"model.{_half}.embed_positions.weight",
        f"{_half}.embed_norm": f"model.{_half}.layernorm_embedding",
        f"{_half}.final_norm": f"model.{_half}.layer_norm",
    }
_NAMES = Names(
    _ONCE,
    {
        "encoder.blocks": ("model.encoder.layers", _ENCODER_BLOCK),
        "decoder.blocks": ("model.decoder.layers", _DECODER_BLOCK),
    },
)
# Ids that stand in a configuration whether the vocabulary has them or not, unless one says otherwise.
_NO_MARKS = {
    "pad_token_id": 0,
    "decoder_start_token_id": 0,
    "bos_token_id": None,
    "eos_token_id": None,
    "forced_eos_token_id": None,
}
_COMPUTED = ("model.encoder.embed_positions.weight", "model.decoder.embed_positions.weight")


def config_of(given: PretrainedConfig) -> TransformerConfig:
    """Our settings of a model with such a configuration, without a bias in the head."""
    expect(
        given,
        tie_word_embeddings=True,
        share_encoder_decoder_embeddings=True,
        decoder_vocab_size=given.vocab_size,
        decoder_layers=given.encoder_layers,
        decoder_attention_heads=given.encoder_attention_heads,
        decoder_ffn_dim=given.encoder_ffn_dim,
    )
    return TransformerConfig(
        vocab_size=given.vocab_size,
        d_model=given.d_model,
        n_heads=given.encoder_attention_heads,
        n_layers=given.encoder_layers,
        d_ff=given.encoder_ffn_dim,
        max_len=given.max_position_embeddings,
        activation=our_activation(given.activation_function),
        dropout=given.dropout,
        bias=True,
        tie_embeddings=True,
        scale_embeddings=given.scale_embedding,
        **SETTINGS[given.model_type],
    )


def read(theirs: PreTrainedModel) -> Translator:
    """Our model with the weights of theirs."""
    config, state = config_of(theirs.config), theirs.state_dict()
    state["final_logits_bias"] = state["final_logits_bias"][0]  # (1, V) there
    if state["final_logits_bias"].any():
        config = config.replace(head_bias=True)
    ours = Translator(config)
    weights = _NAMES.take(ours, state)
    if config.positions == "sinusoidal":
        weights = equivalents.reorder(weights, equivalents.interleaved(config.d_model))
    fill_ours(ours, weights)
    return ours


def write(model: Translator, settings: Mapping[str, Any]) -> PreTrainedModel:
    """Their model with the weights of ours: that of the four which has its norms and positions."""
    import transformers

    config, name = model.config, _kind(model.config)
    expect(config, tie_embeddings=True, norm_eps=1e-5)
    config_kind, kind = (getattr(transformers, one) for one in _CLASSES[name])
    weights = weights_of(model)
    if config.embed_norm:
        for half in ("encoder", "decoder"):
            equivalents.write_positions(config, weights, half, OFFSET)
    equivalents.write_biases(model, weights)
    bias = weights.pop("head.bias", None)
    if not config.embed_norm:
        order = torch.argsort(equivalents.interleaved(config.d_model))
        weights = equivalents.reorder(weights, order)
    sizes = {"layers": config.n_layers, "attention_heads": config.n_heads, "ffn_dim": config.d_ff}
    theirs = kind(
        config_kind(
            vocab_size=config.vocab_size,
            d_model=config.d_model,
            max_position_embeddings=config.max_len,
            activation_function=THEIR_ACTIVATION[config.activation],
            dropout=config.dropout,
            attention_dropout=config.dropout,
            activation_dropout=config.dropout,
            scale_embedding=config.scale_embeddings,
            **{f"{half}_{size}": value for half in ("encoder", "decoder") for size, value in sizes.items()},
            **{**_NO_MARKS, **settings},
        )
    ).to(weights["encoder.token_embed.weight"].dtype)
    if bias is not None:
        theirs.final_logits_bias.copy_(bias)
    fill_theirs(theirs, _NAMES.give(weights), (*_COMPUTED, "final_logits_bias"))
    return theirs


def _kind(config: TransformerConfig) -> str:
    """Which of the four has the norms and positions of a configuration."""
    if config.embed_norm:
        return "bart" if config.norm == "last" else "mbart"
    expect(config, positions="sinusoidal")
    return "marian" if config.norm == "last" else "pegasus"
