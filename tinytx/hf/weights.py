"""The same function with other weights: what is needed where two models are built differently.

Shape letters: D model width, V vocabulary.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor, nn

from tinytx.model.config import TransformerConfig
from tinytx.model.positions import sinusoidal_positions

# The names of functions in a `config.json`, and ours.
ACTIVATIONS = {
    "gelu": "gelu",
    "gelu_new": "gelu-tanh",
    "gelu_pytorch_tanh": "gelu-tanh",
    "relu": "relu",
    "silu": "silu",
    "swish": "silu",
}
THEIR_ACTIVATION = {"gelu": "gelu", "gelu-tanh": "gelu_new", "relu": "relu", "silu": "silu"}


@dataclass(frozen=True)
class Names:
    """Our modules, and theirs that hold the same weights.

    Attributes
    ----------
    once : mapping of str to str
        Modules, or single weights, that occur once.
    blocks : mapping of str to tuple of str and mapping
        For each of our stacks of blocks, the name of their stack, and the modules inside a block.

    Examples
    --------
    >>> names = Names({"body.final_norm": "ln_f"}, {"body.blocks": ("h", {"attn_norm": "ln_1"})})
    >>> names.theirs("body.final_norm.bias"), names.theirs("body.blocks.11.attn_norm.weight")
    ('ln_f.bias', 'h.11.ln_1.weight')
    """

    once: Mapping[str, str]
    blocks: Mapping[str, tuple[str, Mapping[str, str]]] = field(default_factory=dict)

    def theirs(self, name: str) -> str:
        """Their name of one of our weights."""
        if name in self.once:
            return self.once[name]
        module, _, kind = name.rpartition(".")
        if module in self.once:
            return f"{self.once[module]}.{kind}"
        for stack, (their_stack, inside) in self.blocks.items():
            if module.startswith(f"{stack}."):
                number, _, part = module.removeprefix(f"{stack}.").partition(".")
                return f"{their_stack}.{number}.{inside[part]}.{kind}"
        raise KeyError(name)

    def take(self, model: nn.Module, state: Mapping[str, Tensor]) -> dict[str, Tensor]:
        """The weights of one of our models, out of their state; one that is shared is taken once."""
        return {name: state[self.theirs(name)] for name, _ in model.named_parameters()}

    def give(self, weights: Mapping[str, Tensor]) -> dict[str, Tensor]:
        """Our weights under their names."""
        return {self.theirs(name): tensor for name, tensor in weights.items()}


def weights_of(model: nn.Module) -> dict[str, Tensor]:
    """The weights of one of our models by name, cut off from it; one that is shared stands there once."""
    return {name: parameter.detach().clone() for name, parameter in model.named_parameters()}


def fill_ours(model: nn.Module, weights: Mapping[str, Tensor]) -> None:
    """Copy weights into one of our models; every one must be there, and fit."""
    for name, parameter in model.named_parameters():
        if weights[name].shape != parameter.shape:
            expected, got = tuple(parameter.shape), tuple(weights[name].shape)
            raise ValueError(f"{name} must have shape {expected}, got {got}")
        parameter.data.copy_(weights[name])


def fill_theirs(model: nn.Module, weights: Mapping[str, Tensor], computed: Collection[str] = ()) -> None:
    """Copy weights into one of their models.

    Nothing may be left over, and only what shares its memory with something given, or is `computed` there,
    may be missing.
    """
    found = model.load_state_dict(dict(weights), strict=False)
    state = model.state_dict()
    given = {state[name].data_ptr() for name in weights if name in state}
    missing = [name for name in found.missing_keys if state[name].data_ptr() not in given]
    missing = [name for name in missing if name not in computed]
    if missing or found.unexpected_keys:
        raise ValueError(f"weights must fit, got missing {missing}, unknown {found.unexpected_keys}")


def expect(given: Any, **values: Any) -> None:
    """Refuse a configuration, theirs or ours, in which a setting has another value than the one that it must.

    A setting that is absent, as in the configurations of older versions, is not refused.
    """
    for name, value in values.items():
        if getattr(given, name, value) != value:
            raise ValueError(f"{name} must be {value!r} to have a counterpart, got {getattr(given, name)!r}")


def our_activation(name: str) -> Any:
    """Our name of a function that they name so."""
    if name not in ACTIVATIONS:
        raise ValueError(f"the activation must be one of {', '.join(ACTIVATIONS)}, got {name!r}")
    return ACTIVATIONS[name]


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
