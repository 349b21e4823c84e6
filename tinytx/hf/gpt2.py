"""GPT-2: a causal `LanguageModel` with the norm first.

What goes wrong silently: maps are stored transposed, queries, keys and values lie in one matrix, GELU is an
approximation, and the head has no bias.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

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
from tinytx.model.transformer import LanguageModel

if TYPE_CHECKING:
    from transformers import GPT2LMHeadModel, PretrainedConfig

# What makes a `LanguageModel` a GPT-2; sizes are free.
GPT2: dict[str, Any] = {
    "causal": True,
    "norm": "first",
    "activation": "gelu-tanh",
    "positions": "learned",
    "bias": True,
    "tie_embeddings": True,
    "scale_embeddings": False,
    "head_bias": False,
}
_PARTS = ("q", "k", "v")  # as they are called once they are cut apart
_NAMES = Names(
    {
        "body.token_embed": "transformer.wte",
        "body.pos_embed.table": "transformer.wpe.weight",
        "body.final_norm": "transformer.ln_f",
        "head": "lm_head",
    },
    {
        "body.blocks": (
            "transformer.h",
            {
                "attn_norm": "ln_1",
                "attn.q_proj": "attn.q",
                "attn.k_proj": "attn.k",
                "attn.v_proj": "attn.v",
                "attn.out_proj": "attn.c_proj",
                "ff_norm": "ln_2",
                "ff.up_proj": "mlp.c_fc",
                "ff.down_proj": "mlp.c_proj",
            },
        )
    },
)


def config_of(given: PretrainedConfig) -> TransformerConfig:
    """Our settings of a model with such a configuration."""
    expect(given, scale_attn_weights=True, scale_attn_by_inverse_layer_idx=False, add_cross_attention=False)
    settings = {
        **GPT2,
        "activation": our_activation(given.activation_function),
        "tie_embeddings": given.tie_word_embeddings,
    }
    return TransformerConfig(
        vocab_size=given.vocab_size,
        d_model=given.n_embd,
        n_heads=given.n_head,
        n_layers=given.n_layer,
        d_ff=given.n_inner or 4 * given.n_embd,
        max_len=given.n_positions,
        dropout=given.resid_pdrop,
        norm_eps=given.layer_norm_epsilon,
        **settings,
    )


def read(theirs: GPT2LMHeadModel) -> LanguageModel:
    """Our model with the weights of theirs."""
    ours = LanguageModel(config_of(theirs.config))
    fill_ours(ours, _NAMES.take(ours, _cut_apart(theirs.state_dict())))
    return ours


def write(model: LanguageModel, settings: Mapping[str, Any]) -> GPT2LMHeadModel:
    """Their model with the weights of ours."""
    import transformers

    config = model.config
    expect(config, causal=True, norm="first", n_segments=0, embed_norm=False)
    weights = weights_of(model)
    equivalents.write_positions(config, weights, "body")
    equivalents.write_biases(model, weights)
    if config.scale_embeddings:
        equivalents.write_scale(config, weights)
    bias = weights.get("head.bias")
    if bias is not None and not bias.any():
        del weights["head.bias"]
    elif bias is not None:
        equivalents.hide_head_bias(weights)
    theirs: Any = transformers.GPT2LMHeadModel(
        transformers.GPT2Config(
            vocab_size=config.vocab_size,
            n_embd=config.d_model,
            n_head=config.n_heads,
            n_layer=config.n_layers,
            n_inner=config.d_ff,
            n_positions=config.max_len,
            activation_function=THEIR_ACTIVATION[config.activation],
            resid_pdrop=config.dropout,
            embd_pdrop=config.dropout,
            attn_pdrop=config.dropout,
            layer_norm_epsilon=config.norm_eps,
            tie_word_embeddings="head.weight" not in weights,
            **{"bos_token_id": None, "eos_token_id": None, **settings},
        )
    )
    theirs.to(weights["body.token_embed.weight"].dtype)
    fill_theirs(theirs, _put_together(_NAMES.give(weights)))
    return theirs


def _cut_apart(state: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Their weights with matrices as `torch.nn.Linear` has them, and queries, keys and values apart."""
    parts = {}
    for name, tensor in state.items():
        module, _, kind = name.rpartition(".")
        upright = tensor.T if module.endswith(("c_attn", "c_proj", "c_fc")) and kind == "weight" else tensor
        if module.endswith("c_attn"):
            for part, piece in zip(_PARTS, upright.chunk(3), strict=True):  # (D, D) or (D,) each
                parts[f"{module.removesuffix('c_attn')}{part}.{kind}"] = piece
        else:
            parts[name] = upright
    return parts


def _put_together(parts: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Undo `_cut_apart`."""
    state = {}
    for name, tensor in parts.items():
        module, _, kind = name.rpartition(".")
        if module.endswith("attn.q"):
            attn = module.removesuffix("q")
            merged = torch.cat([parts[f"{attn}{part}.{kind}"] for part in _PARTS])  # (3 D, D) or (3 D,)
            state[f"{attn}c_attn.{kind}"] = merged.T if kind == "weight" else merged
        elif module.endswith(("c_proj", "c_fc")) and kind == "weight":
            state[name] = tensor.T
        elif not module.endswith(("attn.k", "attn.v")):
            state[name] = tensor
    return state
