"""Which parameters an optimizer pulls towards zero, and which of them Muon takes."""

from __future__ import annotations

import torch
from torch import nn

from tinytx.training.engine.muon import Muon
from tinytx.training.settings import TrainingSettings


def make_optimizer(model: nn.Module, settings: TrainingSettings) -> torch.optim.AdamW:
    """AdamW, or `Muon`, that pulls matrices towards zero, but neither embeddings nor norms nor biases.

    Parameters that need no gradient, those of a frozen body, are left out.
    """
    if settings.optimizer == "muon":
        return _make_muon(model, settings)
    decayed, free = _decayed_and_free(model)
    groups = [
        {"params": decayed, "weight_decay": settings.weight_decay},
        {"params": free, "weight_decay": 0.0},
    ]
    filled = [group for group in groups if group["params"]]
    return torch.optim.AdamW(filled, lr=settings.lr, betas=settings.betas, fused=True)


def _make_muon(model: nn.Module, settings: TrainingSettings) -> Muon:
    heads = {id(parameter) for name, parameter in model.named_parameters() if name.startswith("head.")}
    decayed, free = _decayed_and_free(model)
    matrices = [parameter for parameter in decayed if parameter.dim() == 2 and id(parameter) not in heads]
    head = [parameter for parameter in decayed if id(parameter) in heads or parameter.dim() != 2]
    groups = [
        {"params": head, "weight_decay": settings.weight_decay},
        {"params": free, "weight_decay": 0.0},
    ]
    return Muon(
        matrices,
        [group for group in groups if group["params"]],
        lr=settings.lr,
        weight_decay=settings.weight_decay,
        betas=settings.betas,
    )


def _decayed_and_free(model: nn.Module) -> tuple[list[nn.Parameter], list[nn.Parameter]]:
    embeddings = {id(module.weight) for module in model.modules() if isinstance(module, nn.Embedding)}
    decayed: list[nn.Parameter] = []
    free: list[nn.Parameter] = []
    for name, parameter in model.named_parameters():
        if not parameter.requires_grad:
            continue
        spared = parameter.dim() < 2 or id(parameter) in embeddings or "pos_embed" in name
        (free if spared else decayed).append(parameter)
    return decayed, free
