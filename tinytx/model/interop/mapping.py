"""Weights under two sets of names: which of ours is which of theirs, and copies in either direction."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Any

from torch import Tensor, nn

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
