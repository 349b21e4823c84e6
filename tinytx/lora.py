"""Low-rank adaptation (LoRA): frozen weight matrices with a small trained update next to each.

Shape letters: D_in and D_out of a linear layer, R rank.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import TypeVar

import torch
from torch import Tensor, nn

from tinytx.settings import check_whole, require

LayerT = TypeVar("LayerT", bound=nn.Module)
ATTENTION = ("q_proj", "v_proj")  # arXiv 2106.09685, section 4.2


class LoRALinear(nn.Module):
    """A frozen linear layer plus a trained update of low rank: ``W x + b + (alpha / R) B A x``.

    Parameters
    ----------
    base : torch.nn.Linear
        Frozen here, and not copied.
    rank : int
        R, at least 1.
    alpha : float
        The update is scaled by ``alpha / R``, so the learning rate depends less on the rank.

    Attributes
    ----------
    a : Parameter of shape (R, D_in)
        Starts random, as torch draws a linear layer.
    b : Parameter of shape (D_out, R)
        Starts at zero: the first outputs are those of `base`. Were both zero, neither would get a gradient.

    References
    ----------
    .. [1] Hu et al., "LoRA: Low-Rank Adaptation of Large Language Models", arXiv 2106.09685, section 4.1,
       equation 3.
    """

    def __init__(self, base: nn.Linear, rank: int, alpha: float) -> None:
        super().__init__()
        check_whole("rank", rank, 1)
        self.base, self.scale = base.requires_grad_(False), alpha / rank
        self.a = nn.Parameter(torch.empty_like(base.weight[:1]).repeat(rank, 1))
        self.b = nn.Parameter(base.weight.new_zeros(base.out_features, rank))
        nn.init.kaiming_uniform_(self.a, a=5**0.5)

    def forward(self, x: Tensor) -> Tensor:
        """Transform x, (..., D_in), to (..., D_out)."""
        frozen: Tensor = self.base(x)
        return frozen + self.scale * (x @ self.a.T @ self.b.T)

    def update(self) -> Tensor:
        """What is added to the weight matrix, (D_out, D_in): ``(alpha / R) B A``."""
        return self.scale * (self.b @ self.a)


def add_lora(
    model: nn.Module, rank: int = 4, alpha: float = 8.0, names: Sequence[str] = ATTENTION
) -> list[LoRALinear]:
    """Freeze a model and put a `LoRALinear` in the place of each linear layer of some names.

    Parameters
    ----------
    model : Module
        Changed in place: all that it has is frozen. A new output layer is thawed by the caller.
    rank, alpha
        As in `LoRALinear`.
    names : sequence of str
        The last parts of the names of layers.

    Returns
    -------
    list of LoRALinear
        In the order of the model; only their `a` and `b` are trained.

    Raises
    ------
    ValueError
        If the model has no linear layer of these names, or has been adapted before.
    """
    adapted_before = any(isinstance(module, LoRALinear) for module in model.modules())
    require(not adapted_before, "model must have no LoRALinear yet", "one that was adapted before")
    owners = Counter(id(own) for module in model.modules() for own in module.parameters(recurse=False))
    places = [place for place in _places(model, nn.Linear) if place[1] in names]
    require(places, f"model must have linear layers named {' or '.join(names)}", "none")
    for _, name, base in places:
        own = owners[id(base.weight)] == 1
        require(own, f"{name} must have a weight of its own to be adapted", "one that is tied")
    adapted = [LoRALinear(base, rank, alpha) for _, _, base in places]
    model.requires_grad_(False)
    for (parent, name, _), layer in zip(places, adapted, strict=True):
        setattr(parent, name, layer)
    return adapted


@torch.no_grad()
def merge_lora(model: nn.Module) -> None:
    """Add each update to its weight matrix: ordinary linear layers, still frozen, which compute the same."""
    for parent, name, layer in _places(model, LoRALinear):
        layer.base.weight += layer.update()
        setattr(parent, name, layer.base)


def remove_lora(model: nn.Module) -> None:
    """Take the updates away: the linear layers are what they were, to the last bit, and still frozen."""
    for parent, name, layer in _places(model, LoRALinear):
        setattr(parent, name, layer.base)


def _places(model: nn.Module, kind: type[LayerT]) -> Iterator[tuple[nn.Module, str, LayerT]]:
    """All layers of a kind, each with the module that holds it and its name there."""
    for parent in list(model.modules()):
        for name, layer in list(parent.named_children()):
            if isinstance(layer, kind):
                yield parent, name, layer
