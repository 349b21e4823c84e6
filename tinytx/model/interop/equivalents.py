"""The same function with other weights: what is needed where two models are built differently.

Shape letters: D model width, V vocabulary.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn

from tinytx.model.config import TransformerConfig
from tinytx.model.positions import sinusoidal_positions

Weights = dict[str, Tensor]

# Where the axis of width D stands in a weight, by the end of its name; it comes last in embeddings.
_FIRST = (
    "norm.weight",
    "norm.bias",
    "out_proj.weight",
    "out_proj.bias",
    "down_proj.weight",
    "down_proj.bias",
)
_LAST = ("embed.weight", "q_proj.weight", "k_proj.weight", "v_proj.weight", "up_proj.weight")


def write_biases(model: nn.Module, weights: Weights) -> None:
    """Give a bias of zeros to each linear map and norm of a model that has none."""
    for name, module in model.named_modules():
        if (
            isinstance(module, nn.Linear | nn.LayerNorm)
            and module.bias is None
            and f"{name}.weight" in weights
        ):
            weights[f"{name}.bias"] = weights[f"{name}.weight"].new_zeros(module.weight.shape[0])


def write_positions(config: TransformerConfig, weights: Weights, body: str, offset: int = 0) -> None:
    """Write the positions of a body as a table of learned ones, with `offset` rows before the first.

    Raises
    ------
    ValueError
        If positions act inside attention.
    """
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


def write_scale(config: TransformerConfig, weights: Weights) -> None:
    """Multiply the embeddings of a language model by ``sqrt(D)`` once and for all.

    A head that shared them keeps the matrix as it was.
    """
    embed = weights["body.token_embed.weight"]
    weights.setdefault("head.weight", embed)
    weights["body.token_embed.weight"] = embed * math.sqrt(config.d_model)


def hide_head_bias(weights: Weights) -> None:
    """Move the bias of a head into its matrix, for a model whose head may have none.

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


def reorder(weights: Weights, order: Tensor) -> Weights:
    """Put the D numbers of every vector of a model into another order.

    A vector of a transformer means the same in any order of its numbers, as long as all that reads and
    writes it keeps to one: maps read it by columns and write it by rows, norms and embeddings hold one number
    for each.

    Parameters
    ----------
    weights : dict
    order : Tensor of shape (D,)
        Number i of the new order is number ``order[i]`` of the old one.
    """
    moved = {}
    for name, tensor in weights.items():
        if name.endswith(_FIRST):
            tensor = tensor[order]
        elif name.endswith(_LAST):
            tensor = tensor[..., order]
        moved[name] = tensor
    return moved


def interleaved(d_model: int) -> Tensor:
    """Order that takes positions with all sines first and all cosines last to sines and cosines in turn.

    Examples
    --------
    >>> interleaved(6).tolist()
    [0, 3, 1, 4, 2, 5]
    """
    return torch.arange(d_model).view(2, -1).T.flatten()
