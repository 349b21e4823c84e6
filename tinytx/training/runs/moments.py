"""What an optimizer remembers of each weight, and where the random states stand: tensors by name."""

from __future__ import annotations

import torch
from torch import Tensor, nn


def moments(model: nn.Module, optimizer: torch.optim.Optimizer) -> dict[str, Tensor]:
    """What the optimizer remembers of each weight, and the random states, by name."""
    tensors = {"random/cpu": torch.get_rng_state()}
    for name, parameter in model.named_parameters():
        for key, value in optimizer.state[parameter].items():
            tensors[f"optimizer/{key}/{name}"] = value.detach().cpu().contiguous()
        if parameter.device.type == "cuda":
            tensors["random/cuda"] = torch.cuda.get_rng_state(parameter.device)
    return tensors


def restore_moments(model: nn.Module, optimizer: torch.optim.Optimizer, tensors: dict[str, Tensor]) -> None:
    """Give them back.

    Raises
    ------
    KeyError
        When those of a parameter are not among them.
    """
    by_name: dict[str, dict[str, Tensor]] = {}
    for path, tensor in tensors.items():
        kind, _, rest = path.partition("/")
        if kind == "optimizer":
            key, _, name = rest.partition("/")
            by_name.setdefault(name, {})[key] = tensor
    for name, parameter in model.named_parameters():
        if not parameter.requires_grad:
            continue
        optimizer.state[parameter] = {
            key: tensor.to(parameter.device) for key, tensor in by_name[name].items()
        }
        if parameter.device.type == "cuda" and "random/cuda" in tensors:
            torch.cuda.set_rng_state(tensors["random/cuda"], parameter.device)
    torch.set_rng_state(tensors["random/cpu"])
