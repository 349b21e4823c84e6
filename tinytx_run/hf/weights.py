"""Weights under two sets of names, and the same function with other weights.

Shape letters: D model width, V vocabulary.
"""

from __future__ import annotations

import math
import re
from collections.abc import Collection, Mapping
from typing import Any

import torch
from torch import Tensor, nn

from tinytx.config import TransformerConfig
from tinytx.positions import sinusoidal_positions

# The names of functions in a `config.json`, and ours.
ACTIVATIONS = {
    "gelu": "gelu",
    "gelu_new": "gelu-tanh",
    "gelu_pytorch_tanh": "gelu-tanh",
    "relu": "relu",
    "silu": "silu",
    "swish": "silu",
}
Weights = dict[str, Tensor]

# Weights with an axis of width D, by the end of their names: the first axis, or the last one.
_FIRST = tuple(
    f"{module}.{kind}" for module in ("norm", "out_proj", "down_proj") for kind in ("weight", "bias")
)
_LAST = ("embed.weight", "q_proj.weight", "k_proj.weight", "v_proj.weight", "up_proj.weight")


def their_name(table: Mapping[str, str], name: str) -> str:
    """Their name of one of our weights, by a table of modules and weights in which a * is any number.

    Examples
    --------
    >>> their_name({"body.blocks.*.attn_norm": "h.*.ln_1"}, "body.blocks.11.attn_norm.weight")
    'h.11.ln_1.weight'
    """
    number = re.search(r"\.(\d+)\.", name)
    key = re.sub(r"\.\d+\.", ".*.", name)
    module, _, kind = key.rpartition(".")
    theirs = table[key] if key in table else f"{table[module]}.{kind}"
    return theirs.replace("*", number[1]) if number else theirs


def fill_theirs(model: nn.Module, weights: Mapping[str, Tensor], computed: Collection[str] = ()) -> None:
    """Copy weights into one of their models.

    None may be left over; one may be missing if it shares its memory with another, or is `computed` there.
    """
    found = model.load_state_dict(dict(weights), strict=False)
    state = model.state_dict()
    given = {state[name].data_ptr() for name in weights if name in state}
    missing = [name for name in found.missing_keys if state[name].data_ptr() not in given]
    missing = [name for name in missing if name not in computed]
    if missing or found.unexpected_keys:
        raise ValueError(f"weights must fit, got missing {missing}, unknown {found.unexpected_keys}")


def expect(given: Any, **values: Any) -> None:
    """Raise ValueError if an attribute has another value; an absent one, as in older versions, may be."""
    for name, value in values.items():
        if getattr(given, name, value) != value:
            raise ValueError(f"{name} must be {value!r} to have a counterpart, got {getattr(given, name)!r}")


def add_biases(model: nn.Module, weights: Weights) -> None:
    """Add a bias of zeros for each linear layer and norm that has none."""
    for name, module in model.named_modules():
        weight = weights.get(f"{name}.weight")
        if isinstance(module, nn.Linear | nn.LayerNorm) and module.bias is None and weight is not None:
            weights[f"{name}.bias"] = weight.new_zeros(len(weight))


def add_positions(config: TransformerConfig, weights: Weights, body: str, offset: int = 0) -> None:
    """Write absolute positions as a table of learned ones, with `offset` rows before the first."""
    like = next(iter(weights.values()))
    shape = (config.max_len, config.d_model)
    if config.positions == "learned" and config.position_offset == offset:
        return
    if config.positions == "learned":
        table = weights[f"{body}.pos_embed.table"][config.position_offset :]
    elif config.positions == "sinusoidal":
        table = sinusoidal_positions(*shape).to(like)
    elif config.positions == "none":
        table = like.new_zeros(shape)
    else:
        raise ValueError(
            f"positions must be learned, sinusoidal or none to have a counterpart, got {config.positions!r}"
        )
    weights[f"{body}.pos_embed.table"] = torch.cat([table.new_zeros(offset, config.d_model), table])


def fold_scale(config: TransformerConfig, weights: Weights) -> None:
    """Multiply the token embeddings of a language model by ``sqrt(D)``; a tied head gets its own matrix."""
    embed = weights["body.token_embed.weight"]
    weights.setdefault("head.weight", embed)
    weights["body.token_embed.weight"] = embed * math.sqrt(config.d_model)


def fold_head_bias(weights: Weights) -> None:
    """Move the bias of an output layer into its weight matrix, for a model whose output layer may have none.

    What a norm returns before its factor and shift, z, sums to zero. So with a factor and a shift of 1
    everywhere, ``h = z + 1`` sums to D whatever the text, and a matrix whose rows are constant reads a
    constant from it. With g and s the factor and the shift of the last norm, ``W (g z + s) + b`` becomes
    ``W' (z + 1)`` with ``W' = W diag(g) + t 1ᵀ / D`` and ``t = W s + b - W g``.
    """
    factor, shift = weights["body.final_norm.weight"], weights["body.final_norm.bias"]
    head = weights.get("head.weight", weights["body.token_embed.weight"])  # (V, D)
    constant = head @ (shift - factor) + weights.pop("head.bias")  # (V,), t
    weights["head.weight"] = head * factor + constant[:, None] / len(factor)
    weights["body.final_norm.weight"] = torch.ones_like(factor)
    weights["body.final_norm.bias"] = torch.ones_like(shift)


def permute(weights: Weights, order: Tensor) -> Weights:
    """Permute the D entries of the residual stream, in every weight that reads or writes it.

    The model computes the same in any order, as long as all weights agree: projections read the residual
    stream by columns and write it by rows, norms and embeddings have one entry for each. Entry i of the new
    order is entry ``order[i]`` of the old one.
    """
    moved = {}
    for name, tensor in weights.items():
        if name.endswith(_FIRST):
            tensor = tensor[order]
        elif name.endswith(_LAST):
            tensor = tensor[..., order]
        moved[name] = tensor
    return moved


def pair_rotary(weights: Weights, order: Tensor) -> Weights:
    """Permute the K numbers of each head in queries and keys, which are only compared with one another.

    Entry i of the new order is entry ``order[i]`` of the old one, as `rotary_order` gives it.
    """
    return {
        name: tensor.unflatten(0, (-1, len(order)))[:, order].flatten(0, 1)
        if name.endswith(("q_proj.weight", "k_proj.weight"))
        else tensor
        for name, tensor in weights.items()
    }


def rotary_order(head_dim: int) -> Tensor:
    """Where our pairs of rotary positions are in a head of a Llama.

    Numbers 2i and 2i + 1 are its numbers i + K/2 and i: it rotates the other way, as the paper does.

    Examples
    --------
    >>> rotary_order(6).tolist()
    [3, 0, 4, 1, 5, 2]
    """
    return torch.arange(head_dim).view(2, -1).flip(0).T.flatten()


def interleaved(d_model: int) -> Tensor:
    """The permutation that takes all sines before all cosines to sines and cosines in turn.

    Examples
    --------
    >>> interleaved(6).tolist()
    [0, 3, 1, 4, 2, 5]
    """
    return torch.arange(d_model).view(2, -1).T.flatten()
